"""The lines of what is missing or unwise in a section of best and worst."""

from studies.models import Question
from tests import builders
from tests.messages.checklist.drafts import (
    arm,
    names_systems,
    on,
    question_with,
    ready_made,
    section_with,
    without_question,
)

P = "studies/protocols/best_worst"


def best_worst(systems=("alpha", "beta", "gamma", "delta")):
    study = builders.draft_study(systems=systems)
    builders.add_section(study, "best_worst")
    return study


def shown_again(protocol):
    """The items of a section of another protocol, of which the best and the worst are chosen."""
    study = builders.draft_study(systems=("alpha", "beta", "gamma"))
    study.systems.filter(name="gamma").update(is_human=True)
    builders.add_section(study, "best_worst", position=2, reuses=builders.add_section(study, protocol))
    return study


def worst_with(**columns):
    return lambda study: Question.objects.filter(section__study=study, key="worst").update(**columns)


LINES = {
    f"{P}:problems": [
        (
            "Best and worst need outputs of at least 3 systems",
            "#systems-group",
            on(lambda: best_worst(("alpha", "beta"))),
        ),
        (
            "alpha would always be chosen",
            "#systems-group",
            on(best_worst, lambda s: s.systems.filter(name="alpha").update(reference="maximal")),
        ),
        (
            "Arm second shows the outputs of fewer than 3 systems",
            "#arms-group",
            on(best_worst, arm(systems=["alpha", "beta"])),
        ),
        ("Annotators must see at least one prompt", "#id_m", on(best_worst, section_with(m=0))),
        ("1 ready-made items have fewer than 3 outputs", "/", on(best_worst, ready_made(2))),
        ("1 ready-made items have fewer than 3 outputs", "/", on(lambda: shown_again("rating"), ready_made(1))),
        (
            "Section 1 shows one output at a time",
            "Reuse another section's items",
            on(lambda: shown_again("humanlike")),
        ),
    ],
    f"{P}:_question_problems": [
        (
            "The question with the key “worst” is missing",
            "#questions-group",
            on(best_worst, without_question("worst")),
        ),
        ("Question least is neither “best” nor “worst”", "#questions-group", on(best_worst, worst_with(key="least"))),
        (
            "Question best must have the scale “one of the outputs shown”",
            "#questions-group",
            on(best_worst, question_with(scale={"kind": "percent"})),
        ),
        ("Question best is about all outputs of a page", "#questions-group", on(best_worst, names_systems)),
        (
            "Question worst has reasons to skip",
            "#questions-group",
            on(best_worst, worst_with(skip_reasons=[{"key": "no", "label": "No"}])),
        ),
        (
            "Best and worst have two different criteria",
            "#questions-group",
            on(best_worst, worst_with(criterion="fluency")),
        ),
        (
            "Only one of the two questions is required",
            "#questions-group",
            on(best_worst, worst_with(required=False)),
        ),
    ],
}
