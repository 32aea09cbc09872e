"""Studies of every protocol, with every kind of scale and every way out."""

from studies.models import Question
from studies.protocols.base.fields import SCALE_KINDS
from tests.builders import (
    COMMENT,
    SCREENING,
    add_choice,
    add_rating,
    add_relative,
    add_survey,
    draft_study,
    humanlike_draft,
)

REASONS = [{"key": "no", "label": "I would rather not say"}]
OPTIONS = [{"key": f"o{n}", "label": f"Option {n}"} for n in range(11, 0, -1)]
# What a kind of scale needs to be asked; a kind that is not named here is asked as it is.
NEEDS = {
    "choice": {"options": OPTIONS},
    "multiple": {"options": OPTIONS[:2]},
    "acknowledgement": {"high": "I have read it."},
    "text": {"is_long": False},
}
# Points that look alike and are not: from best to worst, from zero to ten, below zero, and those without numbers of one digit.
LIKERTS = [
    {"labels": ["bad", "fair", "good"], "is_best_first": True},
    {"minimum": 0, "maximum": 10},
    {"minimum": -2, "maximum": 2},
    {"minimum": 10, "maximum": 12},
]


def every_scale():
    """A survey that asks on every scale that a survey can have: required with a way out, and optional."""
    draft = draft_study(systems=("alpha",), prompts=1, instructions="", target_n=4)
    scales = [
        {"kind": kind} | NEEDS.get(kind, {}) for kind in SCALE_KINDS if kind not in ("output", "rewrite")
    ]  # both need outputs
    scales += [{"kind": "likert"} | more for more in LIKERTS]
    questions = [{"key": f"q{n}", "text": f"Question on {scale}?", "scale": scale} for n, scale in enumerate(scales)]
    without = ("multiple", "acknowledgement")
    ways_out = [one | ({} if one["scale"]["kind"] in without else {"skip_reasons": REASONS}) for one in questions]
    add_survey(draft, position=1, questions=ways_out)
    add_survey(draft, position=2, questions=[one | {"required": False} for one in questions])
    return draft


def criteria():
    """Two choices by two criteria, with a tie and a way out."""
    draft = draft_study(systems=("alpha", "beta"), prompts=8, instructions="Read **both**.", target_n=4)
    section = add_choice(draft, m=1, allows_tie=True)
    Question.objects.create(section=section, position=2, key="all", text="And all in all?", scale={"kind": "output"})
    Question.objects.filter(section=section).update(skip_reasons=REASONS)
    return draft


def reasons():
    """A relative scale with a way out, and a rating between two ends."""
    draft = draft_study(systems=("alpha", "beta"), prompts=12, instructions="", target_n=4)
    section = add_relative(draft, position=1, m=1)
    Question.objects.filter(section=section).update(skip_reasons=REASONS)
    rating = add_rating(draft, position=2, m=1)
    between = {"kind": "continuous", "minimum": -50, "maximum": 50}
    Question.objects.create(
        section=rating, position=2, key="fun", text="How funny is it?", scale=between, skip_reasons=REASONS
    )
    add_survey(draft, position=3, questions=[SCREENING, COMMENT])
    return draft


def practice():
    """Human or machine after practice on pairs, whose answers are explained."""
    return humanlike_draft(conditions=("comparison",), domains=("news",), instructions="", target_n=4, m=1, texts=6)
