# SPDX-FileCopyrightText: The Vitrine authors
# SPDX-License-Identifier: GPL-3.0-only
"""Exercises whose answers are computed: sums with their steps, sorting, brackets, counting, spelling."""

PLACES = ["Ones", "Tens", "Hundreds", "Thousands"]
NAMES = """Anna Ben Clara David Emma Felix Greta Hugo Ida Jonas Karin Leo Mia Noah Olga Paul Rosa Sam Tina Otto Lena Max
Nina Oscar Petra Rita Simon Tom Vera Will Alice Bob Carla Dora Eva Finn Gina Hans Iris Jack Kate Lily Mark Nora Peter
Ruth Sara Theo Uma Victor""".split()
THINGS = """apples pears books coins stones stamps eggs cards shells pens marbles flowers cookies balls keys cups buttons
nuts plums candles tokens pages""".split()
WORDS = """apple ant arm bear bird boat book bread bridge bus cake candle car cat chair cloud coat corn cow cup dance day
deer desk dog door dragon dress drum duck ear earth egg eye farm fire fish flag flower fog fork fox frog garden gate
ghost goat gold grape grass green hand hat hill home honey horse house ice ink island jam jar jewel juice key king kite
knife lake lamp leaf lemon letter light lion map milk mirror moon mountain mouse music nail needle nest night nose nut
oak ocean onion orange owl paper pear pen piano pig plum pond queen rabbit rain ring river road robot rose salt sand
sea shoe snow soap song spoon star stone sugar sun table tea tiger tower train tree turtle uncle vase violin wagon wall
water whale wheel wind window winter wolf wood yarn yard zebra zoo banana cherry kiwi mango melon peach""".split()
MORE_WORDS = """lighthouse library kitchen market station airport hospital school museum castle village harbour desert
jungle volcano waterfall canyon meadow field beach cave planet comet rocket satellite spaceship telescope microscope
camera radio television printer keyboard screen battery engine motor truck tractor ambulance submarine helicopter
airplane sailboat raft canoe sled skateboard scooter guitar trumpet flute harp bell whistle puppet doll toy puzzle
game chess dice coin wallet purse suitcase backpack basket bucket bottle jug kettle pot pan plate bowl fork blanket
pillow carpet curtain sofa bench shelf drawer cupboard broom brush comb towel soap sponge hammer saw screw rope ladder
shovel rake wheelbarrow fence barn stable nest hive web shell feather egg acorn cone seed root branch bush cactus
mushroom tulip daisy sunflower rose lemon pumpkin carrot potato tomato onion garlic pepper cheese butter sandwich soup
pizza pancake chocolate cookie sock glove scarf boot belt button zipper needle thread ring necklace crown sword shield
helmet armor cannon treasure map compass anchor sail wave storm cloud thunder rainbow shadow whisper dream secret song
poem sentence word number question answer idea server cable chip sensor robot pixel byte cache kernel tensor matrix
graph stream thread batch layer expert router""".split()
NUMBER_WORDS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen twenty""".split()
SYLLABLES = "ba be bo da di do fa fi ga go ka ki la lo lu ma mi mo na no pa pi ra ri ro sa so ta ti va vo za zi".split()
OPPOSITES = """hot/cold big/small up/down day/night open/closed wet/dry fast/slow young/old full/empty hard/soft
light/dark happy/sad long/short high/low early/late left/right near/far loud/quiet rich/poor strong/weak true/false
thick/thin clean/dirty first/last good/bad""".split()


def invented(rng):
    """A word that nobody has heard, so that copying is learned and not only known words."""
    return "".join(rng.choice(SYLLABLES) for _ in range(rng.choice([2, 2, 3]))) + rng.choice(["", "", "n", "r", "s", "k"])


def sum_steps(a, b):
    """The written addition: one sentence for each place."""
    steps, carry, place = [], 0, 0
    while a >= 10 ** place or b >= 10 ** place or place == 0:
        x, y = a // 10 ** place % 10, b // 10 ** place % 10
        total = x + y + carry
        middle = f"{x} + {y} + {carry}" if carry else f"{x} + {y}"
        carry = total // 10
        steps.append(f"{PLACES[place]}: {middle} = {total}, write {total % 10}" + (", carry 1." if carry else "."))
        place += 1
    if carry:
        steps.append(f"{PLACES[place]}: write 1.")
    return " ".join(steps)


def difference_steps(a, b):
    """The written subtraction of the smaller b from a."""
    steps, borrow, place = [], 0, 0
    while a >= 10 ** place or place == 0:
        x, y = a // 10 ** place % 10, b // 10 ** place % 10
        taken = y + borrow
        middle = f"{y} - {borrow}" if borrow else f"{y}"
        if x < taken:
            steps.append(f"{PLACES[place]}: {x} + 10 - {middle} = {x + 10 - taken}, write {x + 10 - taken}, borrow 1.")
        else:
            steps.append(f"{PLACES[place]}: {x} - {middle} = {x - taken}, write {x - taken}.")
        borrow = 1 if x < taken else 0
        place += 1
    return " ".join(steps)


def addition(a, b):
    if a < 10 and b < 10:
        return f"{a} + {b} = {a + b}."
    return f"{sum_steps(a, b)} So {a} + {b} = {a + b}."


def subtraction(a, b):
    if a < b:
        return f"{a} is less than {b}, so turn them. {subtraction(b, a)} With a minus: {a} - {b} = -{b - a}."
    if a < 10:
        return f"{a} - {b} = {a - b}."
    return f"{difference_steps(a, b)} So {a} - {b} = {a - b}."


def number(rng):
    """More of two digits than of one or three."""
    digits = rng.choices([1, 2, 3], [2, 6, 3])[0]
    return rng.randrange(10 ** (digits - 1) if digits > 1 else 0, 10 ** digits)


def plus(rng):
    a, b = number(rng), number(rng)
    ask = rng.choice([
        f"What is {a} + {b}?", f"{a} + {b}", f"{a} + {b} =", f"{a}+{b}", f"{a}+{b}=?", f"Add {a} and {b}.",
        f"What is {a} plus {b}?", f"How much is {a} + {b}?", f"Calculate {a} + {b}.", f"Compute {a} + {b}.",
        f"What is the sum of {a} and {b}?", f"Please add {b} to {a}.", f"{a} plus {b}", f"What does {a} + {b} make?",
        f"What's {a} + {b}?", f"Solve {a} + {b}.", f"Can you add {a} and {b}?", f"Tell me {a} + {b}.",
        f"How much is {a} plus {b}?", f"Work out {a} + {b} step by step.", f"Sum {a} and {b}", f"What is {a}+{b}?"])
    if ask == f"Please add {b} to {a}." and rng.random() < 0.5:
        ask = f"Add {b} to {a}"
    return ask, addition(a, b)


def minus(rng):
    a, b = number(rng), number(rng)
    if a < b and rng.random() < 0.85:
        a, b = b, a
    ask = rng.choice([
        f"What is {a} - {b}?", f"{a} - {b}", f"{a} - {b} =", f"{a}-{b}", f"Subtract {b} from {a}.",
        f"What is {a} minus {b}?", f"How much is {a} - {b}?", f"Calculate {a} - {b}.", f"Take {b} away from {a}.",
        f"What is the difference of {a} and {b}?", f"{a} minus {b}", f"Compute {a} - {b}.", f"What's {a} - {b}?",
        f"Please subtract {b} from {a}.", f"What is left of {a} when {b} is taken away?", f"Solve {a} - {b}.",
        f"What is {a}-{b}?", f"How much is {a} minus {b}?", f"Work out {a} - {b} step by step."])
    return ask, subtraction(a, b)


def long_sum(rng):
    """Three numbers: the sum of the first two, and then the third."""
    a, b, c = (rng.randrange(1, rng.choice([10, 100])) for _ in range(3))
    ask = rng.choice([f"What is {a} + {b} + {c}?", f"{a} + {b} + {c}", f"Add {a}, {b} and {c}.", f"{a}+{b}+{c}=?",
                      f"What is the sum of {a}, {b} and {c}?", f"Sum up {a}, {b}, {c}.", f"How much is {a} + {b} + {c}?"])
    return ask, f"First {a} + {b}. {addition(a, b)} Then {a + b} + {c}. {addition(a + b, c)} Together {a + b + c}."


def worded_sum(rng):
    """Small numbers as words."""
    a, b = rng.randrange(0, 11), rng.randrange(0, 11)
    x, y = NUMBER_WORDS[a], NUMBER_WORDS[b]
    if rng.random() < 0.6:
        ask = rng.choice([f"What is {x} plus {y}?", f"{x} plus {y}", f"How much is {x} and {y}?", f"Add {x} and {y}.",
                          f"What is {x} + {y}?"])
        return ask, f"{a} + {b} = {a + b}. {x.capitalize()} plus {y} is {NUMBER_WORDS[a + b]}."
    a, b = max(a, b), min(a, b)
    x, y = NUMBER_WORDS[a], NUMBER_WORDS[b]
    ask = rng.choice([f"What is {x} minus {y}?", f"{x} minus {y}", f"Subtract {y} from {x}.", f"Take {y} from {x}."])
    return ask, f"{a} - {b} = {a - b}. {x.capitalize()} minus {y} is {NUMBER_WORDS[a - b]}."


def story_sum(rng):
    name, other = rng.sample(NAMES, 2)
    thing = rng.choice(THINGS)
    a, b = rng.randrange(2, 100), rng.randrange(2, 100)
    if rng.random() < 0.5:
        ask = rng.choice([f"{name} has {a} {thing} and gets {b} more. How many {thing} does {name} have?",
                          f"{name} has {a} {thing}, {other} has {b}. How many do they have together?",
                          f"There are {a} {thing} on a table and {b} in a box. How many {thing} are there?",
                          f"{name} finds {a} {thing} and then {b} more. How many is that?"])
        return ask, f"{addition(a, b)} That makes {a + b} {thing}."
    a, b = max(a, b), min(a, b)
    ask = rng.choice([f"{name} has {a} {thing} and gives {b} to {other}. How many are left?",
                      f"There are {a} {thing} in a box. {name} takes {b}. How many {thing} are left?",
                      f"{name} had {a} {thing} and lost {b}. How many does {name} still have?"])
    return ask, f"{subtraction(a, b)} That leaves {a - b} {thing}."


def small_number_facts(rng):
    kind = rng.randrange(6)
    if kind == 0:
        a, b = rng.randrange(0, 13), rng.randrange(0, 13)
        ask = rng.choice([f"What is {a} * {b}?", f"What is {a} times {b}?", f"{a} x {b}", f"Multiply {a} and {b}.",
                          f"How much is {a} times {b}?", f"{a} * {b} ="])
        return ask, f"{a} times {b} is {a * b}."
    a, b = number(rng), number(rng)
    if kind == 1:
        ask = rng.choice([f"Which is larger, {a} or {b}?", f"Which number is bigger: {a} or {b}?",
                          f"Is {a} larger than {b}?", f"Compare {a} and {b}."])
        if a == b:
            return ask, f"They are equal: both are {a}."
        high, low = max(a, b), min(a, b)
        start = ("Yes, " if a > b else "No, ") if ask.startswith("Is") else ""
        return ask, f"{start}{high} is larger than {low}."
    if kind == 2:
        ask = rng.choice([f"Is {a} even or odd?", f"Is {a} even?", f"Is {a} an odd number?", f"Even or odd: {a}?"])
        even = a % 2 == 0
        word = "even" if even else "odd"
        asked = "odd" if "an odd" in ask else "even"
        start = "" if "or" in ask else ("Yes, " if asked == word else "No, ")
        return ask, f"{start}{a} is {word}, because its last digit is {a % 10}."
    if kind == 3:
        ask = rng.choice([f"What comes after {a}?", f"Which number comes after {a}?", f"What is the next number after {a}?"])
        return ask, f"After {a} comes {a + 1}."
    if kind == 4:
        start, count = rng.randrange(0, 30), rng.randrange(3, 11)
        ask = rng.choice([f"Count from {start} to {start + count}.", f"count from {start} to {start + count}",
                          f"Please count from {start} to {start + count}."])
        if rng.random() < 0.3:
            start, ask = 1, rng.choice([f"Count to {count + 1}.", f"Please count to {count + 1}."])
        return ask, ", ".join(str(start + i) for i in range(count + 1)) + "."
    a = rng.randrange(1, 100)
    ask = rng.choice([f"What is twice {a}?", f"Double {a}.", f"What is the double of {a}?"])
    return ask, f"{addition(a, a)} So twice {a} is {a + a}."


def sort_numbers(rng):
    count = rng.choices([3, 4, 5, 6, 7], [4, 5, 5, 3, 1])[0]
    top = rng.choice([10, 100, 100, 1000])
    numbers = [rng.randrange(0, top) for _ in range(count)]
    text = rng.choice([", ", ", ", ", ", " "]).join(str(x) for x in numbers)
    if rng.random() < 0.2:
        text = ", ".join(str(x) for x in numbers[:-1]) + f" and {numbers[-1]}"
    down = rng.random() < 0.25
    if down:
        ask = rng.choice([f"Sort {text} from largest to smallest.", f"Sort these numbers, largest first: {text}",
                          f"Order {text} from high to low.", f"Put {text} in descending order.",
                          f"Sort in falling order: {text}.", f"Sort {text} in descending order.",
                          f"Sort these numbers in descending order: {text}", f"Sort {text}, largest first.",
                          f"Sort {text} downwards.", f"Sort {text} backwards."])
    else:
        ask = rng.choice([f"Sort {text}.", f"Sort these numbers: {text}", f"Sort the numbers {text}.",
                          f"Put {text} in order.", f"Order these numbers: {text}.", f"Please sort {text}",
                          f"Sort the list {text}.", f"Sort {text} from smallest to largest.",
                          f"Arrange {text} in ascending order.", f"Can you sort {text}?", f"Sort [{text}]",
                          f"Which order do {text} have when they are sorted?", f"Sort this list: {text}",
                          f"Order {text} by size.", f"Please put {text} in the right order.", f"sort: {text}",
                          f"What is the sorted order of {text}?", f"Bring {text} into order.", f"{text} sorted, please",
                          f"Sort the following numbers: {text}", f"Put these numbers in order: {text}",
                          f"Arrange the numbers {text}.", f"Sort these numbers in ascending order: {text}"])
    ordered = ", ".join(str(x) for x in sorted(numbers, reverse=down))
    return ask, f"{'Largest' if down else 'Smallest'} first: {ordered}."


def extreme(rng):
    numbers = [rng.randrange(0, rng.choice([20, 100])) for _ in range(rng.randrange(3, 6))]
    text = ", ".join(str(x) for x in numbers)
    high = rng.random() < 0.5
    word, value = ("largest", max(numbers)) if high else ("smallest", min(numbers))
    ask = rng.choice([f"Which is the {word} of {text}?", f"What is the {word} number in {text}?",
                      f"Find the {word} of {text}.", f"Which number is the {word}: {text}?"])
    return ask, f"The {word} is {value}."


def sort_words(rng):
    known = sorted(set(WORDS + MORE_WORDS)) if rng.random() < 0.6 else NAMES if rng.random() < 0.4 else list("abcdefghijklmnopqrstuvwxyz")
    words = rng.sample(known, rng.choice([3, 3, 4, 4, 5]))
    text = ", ".join(words)
    if rng.random() < 0.3:
        text = ", ".join(words[:-1]) + f" and {words[-1]}"
    ask = rng.choice([f"Sort {text}.", f"Sort these words: {text}", f"Put {text} in alphabetical order.",
                      f"Sort the words {text}.", f"Order these words: {text}.", f"Sort {text} by the alphabet.",
                      f"Alphabetical order, please: {text}", f"Please sort the words {text}.",
                      f"Can you sort {text} alphabetically?", f"Sort alphabetically: {text}",
                      f"Put these words in alphabetical order: {text}", f"Which order do {text} have in a dictionary?",
                      f"Sort these words alphabetically: {text}", f"Arrange {text} from a to z.", f"Sort {text} from A to Z.",
                      f"Put {text} in order.", f"sort: {text}"])
    return ask, f"In alphabetical order: {', '.join(sorted(words))}."


def brackets(rng):
    """The open brackets after each one are written out, so that the answer can be read off."""
    pairs = ["()"] if rng.random() < 0.4 else ["()", "[]", "{}"]
    closing = {pair[0]: pair[1] for pair in pairs}
    text, stack = "", []
    for _ in range(rng.randrange(2, 9)):
        if stack and rng.random() < 0.5:
            text += closing[stack.pop()]
        else:
            stack.append(rng.choice(pairs)[0])
            text += stack[-1]
    if rng.random() < 0.6:
        text += "".join(closing[x] for x in reversed(stack))
    elif rng.random() < 0.6:
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice("".join(pairs)) + text[at + 1:]
    ask = rng.choice([f"Do the brackets match: {text}", f"Do these brackets match? {text}", f"Is {text} balanced?",
                      f"Are the brackets in {text} balanced?", f"Check the brackets {text}", f"Does {text} match?",
                      f"Do the brackets {text} match?", f"Are these brackets closed: {text}", f"Check {text}",
                      f"Is this well formed: {text}", f"Check whether {text} is balanced.", f"Is {text} well formed?",
                      f"Are the brackets {text} balanced?", f"Is every bracket closed in {text}?", f"Balanced or not: {text}",
                      f"Tell me whether {text} matches.", f"Is this balanced: {text}", f"Are all brackets closed: {text}"])
    steps, stack = [], []
    for mark in text:
        if mark in closing:
            stack.append(mark)
            steps.append(f"{mark} opens")
            continue
        opener = next(x for x in closing if closing[x] == mark)
        if not stack:
            return ask, "; ".join(steps + [f"{mark} has no open bracket"]) + ". No, they do not match."
        if stack[-1] != opener:
            return ask, "; ".join(steps + [f"{mark} does not close {stack[-1]}"]) + ". No, they do not match."
        stack.pop()
        steps.append(f"{mark} closes, open {' '.join(stack) if stack else 'none'}")
    if stack:
        return ask, "; ".join(steps) + f". {' '.join(stack)} stays open. No, they do not match."
    return ask, "; ".join(steps) + ". Yes, they match."


def letters(rng):
    word = invented(rng) if rng.random() < 0.3 else rng.choice(WORDS + MORE_WORDS)
    kind = rng.randrange(4)
    if kind == 0:
        ask = rng.choice([f"Spell {word}.", f"How do you spell {word}?", f"Spell the word {word}"])
        return ask, "-".join(word) + "."
    if kind == 1:
        ask = rng.choice([f"Repeat the word {word}.", f"Say {word}.", f"Please say {word}", f"Repeat: {word}"])
        return ask, f"{word}".capitalize() + "."
    if kind == 2:
        ask = rng.choice([f"What is the first letter of {word}?", f"With which letter does {word} begin?",
                          f"First letter of {word}?"])
        return ask, f"The word {word} begins with {word[0]}."
    one, other = rng.choice(OPPOSITES).split("/")
    if rng.random() < 0.5:
        one, other = other, one
    ask = rng.choice([f"What is the opposite of {one}?", f"Opposite of {one}?", f"Name the opposite of {one}.",
                      f"What is the contrary of {one}?"])
    return ask, f"The opposite of {one} is {other}."
