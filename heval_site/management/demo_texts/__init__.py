"""The demo study: four programs and a human author continue fables, and what annotators read."""

import json
from importlib.resources import files
from typing import Any

# The texts of the demo study: what researchers and annotators read, in Markdown for pages of text.
#
# Before DEBRIEFING, nothing says how many writers are programs, how they differ or what is expected.


TITLE = "Demo: continuations of fables by word n-grams of order 1, 2, 3 and 5 and by a human author"
PUBLIC_TITLE = "Five writers, one short fable"

PURPOSE = "You read how five writers continue the same short fables. Then you tell us which writers you find better."

INSTRUCTIONS = """\
## What you will see

We took the opening of a short fable and gave it to five writers: **A, B, C, D and E**. Each wrote how the fable goes on.
You will read five openings, and under each one the five continuations. A letter is always the same writer.

Some of the writing is by people and some by computer programs. Please judge only the writing, no matter who you think wrote it.

## What makes a good continuation

- It makes **sense** from one sentence to the next.
- It is good, **fluent** English. The fables are old, so old-fashioned words are no fault.
- It **follows from the opening**: the same animals and people, the same matter.
- It is **interesting** to read.

## How to go about it

1. Read each opening and all five continuations. Take your time; you may go back to the texts at any moment.
2. Then compare the writers two at a time. Think of everything you have read of each, not of one text alone.
3. At the end, rate the first continuation by each writer.

There are no right answers. If you know a fable already, judge what is on the page.
"""

CONSENT = {
    "What this is about": "We study how people judge the quality of writing. Your answers help to find good ways of asking.",
    "What you do": "You read five openings of fables, each with five short continuations, and answer questions about the "
    "writers. We ask nothing about you except how well you know English.",
    "Who may take part": "You are 18 or older, and read English with ease.",
    "How long it takes": (
        "About 20 minutes. You can pause at any time. To continue, open the address of the page at which you stopped."
    ),
    "Risks": (
        "We know of no risks except those of reading for a while. Some of the texts make little sense, "
        "which can be tiring."
    ),
    "Benefits and pay": (
        "You are paid the amount that you saw where you found this study. Your pay does not depend on your answers."
    ),
    "Your choice": (
        "Taking part is voluntary. You may stop at any time, without giving a reason. To stop, "
        "close the page or use the link “Leave the study” on every page. That link also says what "
        "is paid and what is deleted."
    ),
    "Your data": (
        "We keep your answers and their times. We store your id from the site that sent you "
        "separately, and only until you are paid. We delete comments if you withdraw. We may keep and "
        "publish answers without any identity for research."
    ),
    "Questions": "Write to research@example.org, before, during or after the study.",
}

CONTENT_WARNING = (
    "These are old fables. Animals hunt and trick one another, and some animals die. The texts describe "
    "nothing in detail."
)

SPA_EXPLANATION = """\
Your answer is a **chance from 0 to 100**: how sure are you that one writer is better than the other?

- **100**: you are totally certain that the writer named first is better.
- **0**: you are totally certain that the writer named first is **no better** than the other.
- **50**: you have no idea.
- **Between 50 and 100**: you are somewhat certain that the writer named first is better. The closer to 100, the surer.
- **Between 0 and 50**: you are somewhat certain that the writer named first is no better. The closer to 0, the surer.

You have read only a few texts by each writer, so few people will be totally certain. Most have some idea, though.

We may ask about the same two writers twice, with the other one named first. This is not a trap. Answer each question for
itself.
"""
SPA_QUESTION = "From what you have read, what is the chance that writer {x} is a better writer than writer {y}?"

LIKERT_QUESTION = "How good do you find this continuation?"
LIKERT_LABELS = ("Very bad", "Bad", "Neither bad nor good", "Good", "Very good")  # 1 to 5

SCREENING_QUESTION = "How well do you know English?"
SCREENING_ANSWERS = {
    "native": "It is my first language, or one of them",
    "fluent": "It is not my first language, but I read books or long articles in it with ease",
    "learning": "I can read it, with some effort",
}
SCREENING_PASSES = ("native", "fluent")

CLOSING_QUESTION = "Is there anything you would like to tell us about the texts or the questions?"

DEBRIEFING = """\
## Who wrote what

Thank you for reading. Now we can say what we could not say before.

**Four of the five writers were small computer programs.** Each put down one word after another, by what it had counted in
about a hundred old fables. They differ in one thing only: how far back they look. One looks at no word before the next,
one at the last word, one at the last two, and one at the last four. The one that looks farthest back often repeats whole
phrases from its fables.

**The fifth was a person**: George Fyler Townsend, whose English versions of Aesop's fables appeared in 1867. You read the
fables as he ended them. The programs had never seen those fables.

We expect that readers prefer the person, and then the programs that look farther back. We did not say so at first,
because it would have changed how you read. Since we know what to expect, this study tells us how well our questions work.

If you would rather not have your answers used now that you know, you can still withdraw. For questions, write to
research@example.org.
"""


def consent_text() -> str:
    """Return the consent page: each element under its heading."""
    return "\n\n".join(f"### {heading}\n\n{text}" for heading, text in CONSENT.items()) + "\n"


# The demo study: four programs and a human author continue the openings of fables.
#
# `demo.jsonl` has the texts, one prompt per line. `tools/demo_texts` created them and names the source: a translation
# of 1867 in the public domain.


# Each should be preferred to the one before it.
SYSTEMS = ("order-1", "order-2", "order-3", "order-5", "human")


def load_demo_texts() -> list[dict[str, Any]]:
    """Return key, source, prompt and outputs by system of each prompt."""
    lines = files(__name__).joinpath("demo.jsonl").read_text(encoding="ascii").splitlines()
    return [json.loads(line) for line in lines]
