"""A study with a quiz before the work, and people who attempt it."""

from annotators.models import Assignment
from studies.models import Section
from tests import builders
from tests.attention import instructed
from tests.players import answered, open_page

WORDS = ("Agree", "Disagree", "Strongly agree", "Strongly disagree")


def quiz_study(words=WORDS, m=2, pass_mark=2, qualification=None, **columns):
    """A rating study with a quiz before it: m of the questions in each attempt."""
    study = builders.draft_study(owner=columns.pop("owner", None) or builders.user(), target_n=4, **columns)
    section = builders.add_survey(study, position=1, purpose="screening", questions=[instructed(w) for w in words])
    Section.objects.filter(pk=section.pk).update(m=m, pass_mark=pass_mark, qualification=qualification)
    builders.add_rating(study, position=2, m=2)
    return builders.launched(study)


def fresh(assignment) -> Assignment:
    return Assignment.objects.select_related("study", "recruitment").get(pk=assignment.pk)


def attempt(assignment, n_wrong: int):
    """Answer all pages of one attempt at the quiz, the first ``n_wrong`` questions wrongly."""
    step, _, asks = open_page(fresh(assignment))
    assert step.attempt
    right = {slot: next(o.key for o in ask.field.options if o.is_right) for slot, ask in asks.items()}
    wrong = {slot: next(o.key for o in ask.field.options if not o.is_right) for slot, ask in asks.items()}
    answers = {slot: (wrong if number < n_wrong else right)[slot] for number, slot in enumerate(asks)}
    answered(fresh(assignment), **answers)
    return {ask.question_id for ask in asks.values()}
