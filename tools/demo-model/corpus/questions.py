# SPDX-FileCopyrightText: The Vitrine authors
# SPDX-License-Identifier: GPL-3.0-only
"""Questions with fixed answers: reads facts.txt, talk.txt and unknown.txt and words their questions in many ways."""
import pathlib

HERE = pathlib.Path(__file__).parent
WHAT = ["What {is} {x}?", "What {is} {x}?", "Explain {x}.", "Explain what {x} {is}.", "Can you explain {x}?", "Tell me about {x}.",
        "What do you know about {x}?", "Describe {x}.", "What does {x} mean?", "In one sentence, what {is} {x}?",
        "Can you tell me what {x} {is}?", "Please explain {x} to me.", "Define {x}.", "I want to know what {x} {is}.",
        "How would you explain {x}?", "What is meant by {x}?", "{x}?", "What exactly {is} {x}?", "Tell me what {x} {is}.",
        "Explain {x} in simple words.", "Explain {x} in one sentence.", "So what {is} {x}?", "Do you know what {x} {is}?",
        "What {is} {x} in a language model?", "What {is} {x} in short?", "Write one sentence about {x}."]
AROUND = ["{q}", "{q}", "{q}", "{q}", "Please tell me: {low}", "Can you tell me: {low}", "In short: {low}", "I wonder: {low}",
          "{q} Explain it in one sentence.", "{q} Please be short.", "Quick question: {low}", "Hello! {q}", "One more question: {low}"]
DO_NOT_KNOW = ["I do not know that. I am a small model for sums, lists, stories and questions about memory.",
               "Sorry, that is more than I have learned. Ask me about memory, a sum or a story.",
               "I am too small to know that, but I can explain what Vitrine shows."]


def blocks(name):
    """The facts of a file: forms of the subject, its verb, questions, answers."""
    for text in (HERE / name).read_text(encoding="utf-8").split("\n\n"):
        fact = {"verb": "", "subjects": [], "questions": [], "answers": []}
        for line in text.splitlines():
            if line.startswith("#") or not line:
                continue
            key, _, value = line.partition(": ")
            if key in ("is", "are"):
                fact["verb"] = key
                fact["subjects"] += value.split(" | ")
            elif key == "q":
                fact["questions"] += value.split(" | ")
            elif key == "a":
                fact["answers"].append(value)
            else:
                raise SystemExit(f"{name}: a line begins with {key!r}; it must begin with is, are, q or a")
        if fact["answers"]:
            yield fact


def lowered(text):
    """With a small first letter, unless the first word is a name such as MXFP4 or I."""
    word = text.split()[0]
    return text if len(word) > 1 and word[1:].lower() != word[1:] or word == "I" else text[0].lower() + text[1:]


def uppered(text):
    return text[0].upper() + text[1:]


def misspelled(rng, text):
    """Two letters of one word change places, or one is missing."""
    places = [i for i in range(1, len(text) - 2) if text[i].isalpha() and text[i + 1].isalpha() and text[i - 1].isalpha()]
    if not places:
        return text
    at = rng.choice(places)
    return text[:at] + (text[at + 1] + text[at] if rng.random() < 0.5 else text[at]) + text[at + 2:]


def varied(rng, question):
    """As people write: mostly well, sometimes in small letters, without the mark at the end or with a mistake."""
    chance = rng.random()
    if chance < 0.14:
        question = question.lower()
    elif chance < 0.18:
        question = question.upper() if rng.random() < 0.2 else question.replace("?", "??") if rng.random() < 0.3 else question
    if rng.random() < 0.17:
        question = question.rstrip("?.!")
    if rng.random() < 0.05:
        question = misspelled(rng, question)
    if rng.random() < 0.04:
        question = "Please " + lowered(question) if not question.lower().startswith("please") else question
    return question


class Questions:
    def __init__(self):
        self.facts = list(blocks("facts.txt"))
        self.talk = list(blocks("talk.txt"))
        self.unknown = (HERE / "unknown.txt").read_text(encoding="utf-8").splitlines()

    def fact(self, rng):
        fact = rng.choice(self.facts)
        if fact["subjects"] and (not fact["questions"] or rng.random() < 0.6):
            subject = rng.choice(fact["subjects"])
            question = uppered(rng.choice(WHAT).format(x=subject, **{"is": fact["verb"]}))
            if fact["verb"] == "are":
                question = question.replace("What does ", "What do ")
        else:
            asked = rng.choice(fact["questions"])
            question = rng.choice(AROUND).format(q=asked, low=lowered(asked))
        return varied(rng, question), rng.choice(fact["answers"])

    def small_talk(self, rng):
        fact = rng.choice(self.talk)
        return varied(rng, rng.choice(fact["questions"])), rng.choice(fact["answers"])

    def not_known(self, rng):
        return varied(rng, rng.choice(self.unknown)), rng.choice(DO_NOT_KNOW)
