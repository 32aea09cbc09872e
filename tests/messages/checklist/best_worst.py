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
from tests.messages.lines import At


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


CHECKLIST = {
    "Best and worst need": At("#systems-group", on(lambda: best_worst(("alpha", "beta")))),
    "would always be chosen": At(
        "#systems-group", on(best_worst, lambda s: s.systems.filter(name="alpha").update(reference="maximal"))
    ),
    "Arm … shows the outputs": At("#arms-group", on(best_worst, arm(systems=["alpha", "beta"]))),
    "studies/protocols/best_worst:problems: Annotators must see": At("#id_m", on(best_worst, section_with(m=0))),
    "ready-made items have fewer": (
        At("/", on(best_worst, ready_made(2))),
        At("/", on(lambda: shown_again("rating"), ready_made(1))),
    ),
    "items are reused shows": on(lambda: shown_again("humanlike")),
    "The question with the key “…” is missing. Add one that asks which output": At(
        "#questions-group", on(best_worst, without_question("worst"))
    ),
    "Question … is neither": At("#questions-group", on(best_worst, worst_with(key="least"))),
    "_question_problems: Question … must have the scale": At(
        "#questions-group", on(best_worst, question_with(scale={"kind": "percent"}))
    ),
    "Question … is about": At("#questions-group", on(best_worst, names_systems)),
    "Question … has reasons to skip, but a best": At(
        "#questions-group", on(best_worst, worst_with(skip_reasons=[{"key": "no", "label": "No"}]))
    ),
    "Best and worst have two": At("#questions-group", on(best_worst, worst_with(criterion="fluency"))),
    "Only one of the two": At("#questions-group", on(best_worst, worst_with(required=False))),
}
