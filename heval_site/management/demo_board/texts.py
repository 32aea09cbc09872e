"""What annotators and visitors of the demo board read."""

SLUG = "demo"
TITLE = "Demo: endings of fables"
TEMPLATE_TITLE = "Demo board: endings of fables (template)"
DESCRIPTION = """\
Systems read the opening of a fable and write its ending. All is a demonstration:

- The **systems** are small programs. They learn from 23 other fables of this demo, and run in a second.
- The **annotators** are robots. They do not read, but know how good each system is meant to be.
- The five rounds stand for **five weeks**. They ran one after the other, when the demo was started.

In one week all robots were too lenient, and in two weeks a robot answered at random. The anchors and the test questions
are there to find this.
"""

PUBLIC_TITLE = "How does the fable end?"
PURPOSE = "You read the openings of old fables with an ending each, and say how good the ending is."
INSTRUCTIONS = """\
Each page has the opening of a short fable and an ending. Some endings are by people and some by computer programs.

A good ending **makes sense**, is good **English**, and **belongs to this opening**: the same animals and people, the same
matter. The fables are old, so old-fashioned words are no fault.

There are no right answers. If you know a fable already, judge what is on the page.
"""
QUESTION = "How good is this ending?"
LABELS = ("Very bad", "Bad", "Neither bad nor good", "Good", "Very good")
CONSENT = """\
You rate ten to twenty endings of fables, which takes about eight minutes. You are 18 or older, and read English with ease.
You are paid the amount that you saw where you found this study; it does not depend on your answers. You may stop at any time.
We store your answers without your name. Questions: research@example.org.
"""
DEBRIEFING = """\
Thank you. Some of the endings were by George Fyler Townsend, whose English versions of Aesop's fables appeared in 1867. The
others were made by small computer programs, from the words or the endings of other fables. A few pages showed an ending
that we knew to be right or wrong, to see who reads.
"""
