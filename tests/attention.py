"""Studies with attention checks, for tests."""

from annotators.models import Assignment
from annotators.pages.record import full_page_state
from studies.models import Study
from studies.protocols import REGISTRY
from tests import builders
from tests.players import answered, open_page
from tests.samples import sample_draft

WORDS = ["Strongly disagree", "Disagree", "Agree", "Strongly agree"]


def instructed(right: str) -> dict:
    """The columns of a question that says which answer to give."""
    key = right.lower().replace(" ", "_")
    options = [{"key": word.lower().replace(" ", "_"), "label": word} for word in WORDS]
    options = [option | ({"is_right": True} if option["key"] == key else {}) for option in options]
    return {
        "key": f"says_{key}",
        "text": f"To show that you read this, choose “{right}” here.",
        "scale": {"kind": "choice", "options": options},
    }


def add_attention(study: Study, position=2, words=("Strongly agree", "Disagree", "Agree")):
    return builders.add_survey(
        study, position=position, purpose="attention", questions=[instructed(word) for word in words]
    )


def study_with_checks(slug: str, m=4, target_n=2, **columns) -> Study:
    study = sample_draft(slug, m if REGISTRY[slug].has_items else 0, target_n)
    Study.objects.filter(pk=study.pk).update(**columns)
    study.refresh_from_db()
    add_attention(study)
    return builders.launched(study)


def check_pages(assignment: Assignment) -> list[str]:
    """The keys of the pages that ask an attention check, in order."""
    return [key for key, step in full_page_state(assignment).steps.items() if step.page.checks]


def wrong_answers(assignment: Assignment, key: str) -> dict[str, str]:
    """Wrong answers to the attention checks of this page."""
    _, _, asks = open_page(assignment, key)
    return {
        slot: next(option.key for option in ask.field.options if option.key != ask.right_key)
        for slot, ask in asks.items()
        if ask.right_key
    }


def fresh(assignment) -> Assignment:
    return Assignment.objects.select_related("study", "recruitment").get(pk=assignment.pk)


def play(assignment, n_wrong: int):
    """Answer all pages, the first ``n_wrong`` attention checks wrongly, until the assignment has ended."""
    while (key := full_page_state(fresh(assignment)).next_key) is not None:
        wrong = wrong_answers(fresh(assignment), key)
        wrong = dict(list(wrong.items())[:n_wrong])
        n_wrong -= len(wrong)
        answered(fresh(assignment), key, **wrong)
        if fresh(assignment).released_at or fresh(assignment).submitted_at:
            break
    return fresh(assignment)
