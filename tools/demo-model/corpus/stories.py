# SPDX-FileCopyrightText: The Vitrine authors
# SPDX-License-Identifier: GPL-3.0-only
"""Stories of one to four sentences about what a prompt names, and single lines, from a grammar."""

from .tasks import MORE_WORDS, invented

PEOPLE = {"girl": "she", "boy": "he", "king": "he", "queen": "she", "baker": "he", "sailor": "he", "teacher": "she",
          "farmer": "he", "old woman": "she", "old man": "he", "princess": "she", "doctor": "she", "painter": "he",
          "child": "it", "wizard": "he", "witch": "she", "gardener": "she", "fisherman": "he", "student": "she",
          "astronaut": "she", "knight": "he", "pirate": "he", "programmer": "she", "musician": "he", "cook": "she"}
ANIMALS = """fox cat dog bear bird mouse rabbit owl wolf horse frog duck cow goat pig lion tiger turtle whale fish
ant bat beaver camel crab donkey dolphin eagle falcon kangaroo kitten lizard llama mole octopus otter panda parrot
peacock pigeon pony puppy raven salmon seal shark sparrow swan toad wasp worm zebra alien fairy elf dwarf troll mermaid
squirrel hedgehog deer elephant penguin monkey spider bee crow snail goose donkey sheep hen dragon robot ghost giant
dinosaur unicorn""".split()
OBJECTS = """boat lamp tree house car train kite clock bridge star cloud stone river computer key book door umbrella
balloon bicycle ship piano candle chair coat hat mirror letter tower model token machine phone wheel ball cup
snowman""".split() + [word for word in MORE_WORDS if word not in ("armor", "soap", "garlic", "butter", "soup", "cheese", "thunder")]
FEMALE = "Anna Clara Emma Greta Ida Karin Lena Mia Nina Olga Rosa Tina Vera Alice Carla Dora Eva Iris Kate Lily Nora Ruth Sara".split()
MALE = "Ben David Felix Hugo Jonas Leo Noah Paul Sam Tom Max Oscar Otto Simon Will Bob Finn Hans Jack Mark Peter Theo Victor".split()
TRAITS = "small old young clever shy brave kind quiet curious lazy hungry friendly tired happy lonely proud gentle funny".split()
LOOKS = "small old golden broken beautiful heavy forgotten shiny dusty strange red blue tiny large wooden".split()
PLACES = ["in a small village", "near a wide river", "at the edge of a forest", "in a house with a green door",
          "by the sea", "on a high hill", "in a quiet town", "in a deep valley", "on a little island", "in an old garden",
          "behind the mill", "under a large oak", "in a tall tower", "at the end of a long road", "on a farm"]
TIMES = ["One morning", "One evening", "One day", "One cold night", "In spring", "On a rainy day", "Late in autumn",
         "One winter", "Early one morning", "On a warm afternoon", "One summer"]
FOUND = ["a golden key", "a lost letter", "a small silver bell", "an old map", "a blue stone", "a basket of apples",
         "a tiny door", "a broken lamp", "a red balloon", "a sleeping bird", "a box of candles", "a warm coat"]
WISHES = ["to see the sea", "to find a friend", "to learn a song", "to touch the moon", "to build a boat",
          "to bake the best bread", "to fly like a bird", "to see snow", "to find the way home", "to grow a rose"]
HELPERS = ["an owl", "a kind farmer", "an old sailor", "a little girl", "a wise turtle", "a friendly dog",
           "a tired postman", "a passing bird", "a young teacher", "a brave mouse"]
TROUBLES = ["a storm came", "the bridge broke", "the lights went out", "the snow would not stop", "the road was gone",
            "it began to rain", "the river rose", "fog covered everything", "the wind took the roof"]
ENDS = ["From then on they were friends.", "That night everybody slept well.", "Nobody ever forgot that day.",
        "In the end all was well.", "They laughed until the sun went down.", "And they shared a warm soup.",
        "It was the best day of the year.", "Since then the door is always open.", "Then they went home together."]

LINES = {
    "the sea": ["The sea was calm, and the moon drew a silver road on it.", "The sea keeps its secrets under every wave.",
                "Wave after wave, the sea tells the same old story to the sand.", "The sea smelled of salt and of far countries."],
    "the moon": ["The moon hung over the roofs like a lamp that somebody forgot.", "The moon looked into every window and woke nobody.",
                 "A thin moon lay in the branches of the old tree."],
    "the sun": ["The sun came up and painted the hills gold.", "The sun went down slowly, as if it wanted to stay.",
                "The sun warmed the stones until evening."],
    "rain": ["Rain fell on the roof like soft fingers on a drum.", "The rain washed the dust from the leaves and the sky from the street.",
             "All night the rain told stories to the window."],
    "snow": ["Snow fell without a sound and made the village white.", "The first snow covered every path and every name.",
             "In the snow the fox left a line of small steps."],
    "the wind": ["The wind ran through the field and turned every page of grass.", "The wind knocked at the door but would not come in.",
                 "A warm wind carried the smell of bread over the wall."],
    "a river": ["The river went on and on and never asked where.", "The river carried a leaf to the sea.",
                "Under the bridge the river sang to itself."],
    "a forest": ["The forest was green and still, and only the birds knew the way.", "In the forest every tree listened.",
                 "Light fell through the forest in long yellow lines."],
    "a mountain": ["The mountain wore a white hat and looked far away.", "On top of the mountain the air was clear and cold.",
                   "The mountain stood there before the first road and will outlast the last."],
    "winter": ["In winter the lake sleeps under a lid of ice.", "Winter came at night and left ice on every window.",
               "In winter the trees have patience."],
    "summer": ["Summer smelled of grass and of warm stone.", "In summer the evenings forget to end.",
               "Summer lay on the fields like a yellow blanket."],
    "spring": ["In spring the garden opened like a book.", "Spring came with mud on its shoes and flowers in its hands.",
               "In spring even the old tree felt young."],
    "autumn": ["In autumn the trees let go of their gold.", "Autumn walked through the park and left red leaves.",
               "In autumn the wind learned to whistle."],
    "the night": ["The night was quiet, and the stars kept watch.", "At night the town breathed slowly.",
                  "The night put a dark coat over the hills."],
    "the morning": ["The morning came with birds and the smell of coffee.", "In the morning the world looked new.",
                    "The morning opened all the windows of the street."],
    "a star": ["A star fell, and somebody made a wish.", "One star stayed until the morning.",
               "A small star shone over the sleeping harbour."],
    "a garden": ["In the garden the roses leaned over the wall to see the street.", "The garden was full of bees and quiet work.",
                 "An old gate led into a garden that nobody owned."],
    "a city": ["The city woke up with a thousand windows.", "At night the city was a second sky.",
               "In the city every street had its own song."],
    "time": ["Time walked slowly that day and looked at everything.", "Time is a river that flows only one way.",
             "The clock counted, but time did not listen."],
    "love": ["Love is a lamp that two people carry.", "Love came quietly and stayed for supper.",
             "Where love lives, the door is never locked."],
    "a friend": ["A friend is somebody who waits when you are late.", "A good friend hears what you do not say.",
                 "My friend brought bread and asked no questions."],
    "music": ["Music filled the room like warm water.", "A little music came over the wall and made the street smile.",
              "Music began where the words ended."],
    "a book": ["The book fell open at the page that I needed.", "A good book is a door that fits in a pocket.",
               "She closed the book and stayed in its world."],
    "a computer": ["The computer hummed and thought of nothing at all.", "All night the computer counted, and nobody said thank you.",
                   "The computer turned light into words."],
    "memory": ["Memory is a drawer that is always a little too small.", "The memory was full, but there was always room for one more page.",
               "Memory keeps what time would throw away."],
    "a tree": ["The tree held the evening in its branches.", "The old tree knew the names of all the birds.",
               "A tree is a slow fountain of leaves."],
    "a flower": ["A small flower grew between two stones and was not afraid.", "The flower turned its face to the light.",
                 "One red flower was enough for the whole window."],
    "home": ["Home is where the light is left on.", "At home the soup was warm and the door was open.",
             "Home smelled of bread and of rain."],
    "a dream": ["In the dream the stairs went up and never ended.", "A dream is a letter from the night.",
                "She woke up, but the dream stayed a little longer."],
    "the sky": ["The sky was wide and blue and had time for everybody.", "Clouds crossed the sky like slow ships.",
                "In the evening the sky tried all its colours."],
    "a GPU": ["The GPU had ten thousand hands and one clock.", "The GPU was hot, fast and always hungry for memory.",
              "Inside the GPU the numbers ran like rain."],
    "a language model": ["The model read one word, then the next, and called it thinking.",
                         "The language model wrote a line and hoped that it made sense.",
                         "A language model is a library that guesses the next word."],
}


def article(noun):
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def hero(rng, noun):
    """(noun with an article, pronoun, possessive) of a story's hero."""
    pronoun = PEOPLE.get(noun, "it")
    return pronoun, {"she": "her", "he": "his", "it": "its"}[pronoun]


def opening(rng, noun, name):
    pronoun, _ = hero(rng, noun)
    trait = rng.choice(LOOKS if noun in OBJECTS else TRAITS)
    described = f"{trait} {noun}" if not noun.startswith("old") or trait not in ("old", "young") else noun
    named = f" called {name}" if name else ""
    place = rng.choice(PLACES)
    lives = "lived" if noun not in OBJECTS else "stood" if noun in ("tree", "house", "tower", "bridge") else "was"
    return rng.choice([f"Once upon a time there was {article(described)}{named} {place}.",
                       f"There once was {article(described)}{named} who lived {place}." if lives == "lived" else
                       f"There once was {article(described)}{named} {place}.",
                       f"{article(described)}{named} {lives} {place}.".capitalize() if not name else
                       f"{article(described)[0].upper()}{article(described)[1:]}{named} {lives} {place}."])


def animate_story(rng, noun, name):
    pronoun, possessive = hero(rng, noun)
    called = name or f"the {noun}"
    upper = called[0].upper() + called[1:]
    time, wish, thing, helper, trouble = (rng.choice(x) for x in (TIMES, WISHES, FOUND, HELPERS, TROUBLES))
    plot = rng.randrange(6)
    if plot == 0:
        middle = [f"{time} {called} found {thing}.",
                  rng.choice([f"{pronoun.capitalize()} took it home and showed it to {helper}.",
                              f"{pronoun.capitalize()} did not know whose it was, so {pronoun} asked {helper}."])]
    elif plot == 1:
        middle = [f"{upper} always wanted {wish}.",
                  f"{time} {helper} came by and said, \"Come with me, and I will show you how.\""]
    elif plot == 2:
        middle = [f"{time} {trouble}, and {called} could not go home.",
                  f"Then {helper} came with a light and showed {'her' if pronoun == 'she' else 'him' if pronoun == 'he' else 'it'} the way."]
    elif plot == 3:
        middle = [f"{time} {called} met {helper}.",
                  rng.choice([f"They had no bread left, so they shared {possessive} last apple.",
                              "They talked about the stars until it was dark.",
                              f"Together they carried {thing} over the hill."])]
    elif plot == 4:
        middle = [f"{upper} was afraid of the dark.",
                  f"{time} {trouble}, and {pronoun} had to be brave and help {helper}."]
    else:
        middle = [f"Every day {called} walked to the river and dreamed of {rng.choice(['snow', 'the sea', 'a friend', 'far countries', 'the stars'])}.",
                  f"{time} {pronoun} found {thing} there, and everything changed."]
    return middle


def object_story(rng, noun):
    time, helper, trouble = rng.choice(TIMES), rng.choice(HELPERS), rng.choice(TROUBLES)
    return rng.choice([
        [f"For many years nobody had looked at the {noun}.", f"{time} {helper} came by and was glad to see it."],
        [f"Everybody said that the {noun} was too old.", f"{time} {trouble}, and only the {noun} could help."],
        [f"The {noun} belonged to {rng.choice(FEMALE + MALE)}, who looked after it every day.",
         f"{time} it was gone, but {helper} brought it back."],
        [f"{time} {trouble}, and the {noun} was lost.", f"A week later {helper} found it by the river."]])


def story(rng):
    """A question for a story and the story."""
    noun = rng.choices([rng.choice(list(PEOPLE)), rng.choice(ANIMALS), rng.choice(OBJECTS)], [4, 5, 3])[0]
    if rng.random() < 0.06:
        noun = invented(rng)
    name = ""
    if noun not in OBJECTS and rng.random() < 0.45:
        name = rng.choice(FEMALE if hero(rng, noun)[0] == "she" else MALE if hero(rng, noun)[0] == "he" else FEMALE + MALE)
        name = invented(rng).capitalize() if rng.random() < 0.15 else name
    trait = rng.choice(LOOKS if noun in OBJECTS else TRAITS)
    subject = f"{article(noun)} {rng.choice(['named', 'called'])} {name}" if name and rng.random() < 0.6 else \
        article(f"{trait} {noun}") if rng.random() < 0.2 and not noun.startswith("old") else article(noun)
    length = rng.choices([0, 1, 2, 3, 4], [6, 1, 2, 2, 1])[0]
    if length == 0:
        ask = rng.choice([f"Tell me a story about {subject}.", f"Tell a story about {subject}.", f"Write a story about {subject}.",
                          f"Write a short story about {subject}.", f"Can you tell me a story about {subject}?",
                          f"I want to hear a story about {subject}.", f"Tell me something about {subject}.",
                          f"A story about {subject}, please.", f"Make up a story about {subject}.",
                          f"Please write a little story about {subject}.", f"Short story: {subject}",
                          f"Please tell me a story about {subject}.", f"Tell me a short story about {subject}.",
                          f"Tell a short story about {subject} and a friend.", f"Invent a story about {subject}.",
                          f"Once upon a time there was {subject}. Go on."])
        length = 4
    else:
        word = ["one sentence", "two sentences", "three sentences", "four sentences"][length - 1]
        ask = rng.choice([f"Tell me a story about {subject} in {word}.", f"Write {word} about {subject}.",
                          f"In {word}, tell a story about {subject}.", f"Write a story of {word} about {subject}."])
    return ask, told(rng, noun, name, length)


def told(rng, noun, name, length):
    first = opening(rng, noun, name)
    rest = object_story(rng, noun) if noun in OBJECTS else animate_story(rng, noun, name)
    if length == 1:
        ending = rng.choice([f", and {rng.choice(TIMES).lower()} {'the ' + noun if not name else name} found {rng.choice(FOUND)}.",
                             f", and everybody liked {'the ' + noun if not name else name}.",
                             f", where the nights were long and the stars were near."])
        return first[:-1] + ending
    sentences = [first] + rest + [rng.choice(ENDS)]
    return " ".join(sentences[:length] if length < 4 else sentences)


def open_story(rng):
    """A story without a subject in the question."""
    ask = rng.choice(["Tell me a story.", "Tell me a short story.", "Write a story.", "Can you tell me a story?",
                      "I would like to hear a story.", "Please tell me a story", "Once upon a time", "Tell me another story.",
                      "Write a little story for a child.", "Do you know a story?", "Make up a story."])
    noun = rng.choice(list(PEOPLE) + ANIMALS)
    pronoun = hero(rng, noun)[0]
    name = rng.choice(FEMALE if pronoun == "she" else MALE) if rng.random() < 0.5 else ""
    return ask, told(rng, noun, name, 4)


def line(rng):
    """One line about a theme: one of its own, or one that any thing can have."""
    if rng.random() < 0.65:
        theme = rng.choice(list(LINES))
        answer = rng.choice(LINES[theme])
    else:
        noun = invented(rng) if rng.random() < 0.06 else rng.choice(ANIMALS + OBJECTS + list(PEOPLE))
        theme = article(noun)
        trait, place = rng.choice(LOOKS if noun in OBJECTS else TRAITS), rng.choice(PLACES)
        pronoun, possessive = hero(rng, noun)
        answer = rng.choice([f"The {trait} {noun} waited {place} and watched the clouds.",
                             f"The {noun} was {trait}, and the night was long.",
                             f"{rng.choice(TIMES)} the {noun} saw the first star and was {trait} no more." if trait in ("tired", "lonely", "shy", "hungry") else
                             f"{rng.choice(TIMES)} the {noun} saw the first star and was happy.",
                             f"Nobody knew that the {noun} kept {rng.choice(FOUND)}.",
                             f"The {noun} stood {place} and kept {possessive} secret."])
    bare = theme.split(" ", 1)[1] if theme.startswith(("a ", "an ", "the ")) and rng.random() < 0.15 else theme
    ask = rng.choice([f"Write one line about {bare}.", f"Write a line about {bare}.", f"One line about {bare}.",
                      f"Write one sentence about {bare}.", f"Say something about {bare} in one line.", f"A sentence about {bare}, please.",
                      f"Give me one line about {bare}.", f"Can you write a line about {bare}?", f"Please write one line about {bare}",
                      f"Write a one-line story about {bare}.", f"Describe {bare} in one sentence.", f"Write a short poem about {bare}.",
                      f"Tell me one sentence about {bare}.", f"Give me a one-line story about {bare}.", f"Write me a line about {bare}.",
                      f"A one-line story about {bare}, please.", f"Tell a story about {bare} in one line.",
                      f"One sentence on {bare}.", f"Write a very short story about {bare}."])
    return ask, answer
