"""The truth behind the demo board, which its results should find: how good the systems are, and how robots differ.

Robots do not read. They rate an output by the strength of its system, in log-odds: a system of strength 0 gets the middle of the
scale on average.
"""

from dataclasses import dataclass

HUMAN = "human"
STRENGTHS = {
    HUMAN: 1.7,
    "nearest fable, renamed": 0.9,
    "nearest fable": 0.1,
    "three words": -0.3,
    "rare words": -0.3,
    "two words": -0.9,
    "echo": -1.2,
    "one word": -1.9,
}


@dataclass(frozen=True, slots=True)
class Week:
    """A round: the systems that are submitted, and the robots that come.

    ``leniency``: how much too high its robots rate all outputs, in log-odds. ``noisy``: how many robots answer at random.
    """

    submitted: tuple[str, ...]
    leniency: float = 0.0
    noisy: int = 0


WEEKS = (
    Week(("two words", "three words")),
    Week(("one word", "echo"), noisy=1),
    Week(("rare words",)),
    # The planted drift: without anchors, the system of this week looks better than it is.
    Week(("nearest fable",), leniency=1.0),
    Week(("nearest fable, renamed",), noisy=1),
)
# Scored again in each later round, as the human endings are.
ANCHORS = WEEKS[0].submitted
# A robot that answers at random does so in all batches that an annotator may have.
BATCHES_PER_ANNOTATOR = 3
TEAMS = dict.fromkeys(("one word", "two words", "three words", "rare words"), "Counters") | dict.fromkeys(
    ("echo", "nearest fable", "nearest fable, renamed"), "Borrowers"
)
DESCRIPTIONS = {
    "one word": "Draws each word alone, as often as it occurs in 23 fables.",
    "two words": "Draws each word by the word before it.",
    "three words": "Draws each word by the two words before it.",
    "echo": "Says the last sentence of the opening again.",
    "rare words": "Takes the three sentences of other fables that share the rarest words with the opening.",
    "nearest fable": "Takes the ending of the fable whose opening is most alike.",
    "nearest fable, renamed": "Takes the ending of the nearest fable, with this fable's animals.",
}
