"""Answers that end an assignment before its last page. The page that holds them is stored like any other."""

from collections.abc import Mapping

from annotators.models import Assignment
from studies.protocols import PageField

from .attention import answered_checks
from .form_data import PageForm
from .qualification import SECOND, AttemptScore
from .sequence import Step

Released = Assignment.Released
# The first wrong answer to an attention check changes nothing, because anybody can misread once.
FAILURES_THAT_END = 2


def early_end_reason(
    assignment: Assignment,
    step: Step,
    page_fields: Mapping[str, PageField],
    form: PageForm,
    attempt: AttemptScore | None,
) -> str:
    """Return why this valid form ends the assignment before its last page, or ''. ``attempt``: at a test, if it is complete."""
    if attempt and attempt.number == SECOND and not attempt.is_passed:
        return Released.SCREENED_OUT
    if step.purpose == "screening" and has_disqualifying_answer(page_fields, form):
        return Released.SCREENED_OUT
    return Released.FAILED_CHECKS if _fails_too_many_checks(assignment, page_fields, form) else ""


def has_disqualifying_answer(page_fields: Mapping[str, PageField], form: PageForm) -> bool:
    """Return whether an answer screens the annotator out."""
    return any(
        option.screens_out
        for slot, ask in page_fields.items()
        for option in getattr(ask.field, "options", ())
        if form.values.get(slot) == option.key
    )


def _fails_too_many_checks(assignment: Assignment, page_fields: Mapping[str, PageField], form: PageForm) -> bool:
    """Return whether the form holds the wrong answer that ends the assignment. No query unless it holds a wrong one."""
    n_wrong = sum(bool(ask.right_key) and form.values[slot] != ask.right_key for slot, ask in page_fields.items())
    if not n_wrong:
        return False
    return n_wrong + sum(not is_right for _, is_right in answered_checks(assignment)) >= FAILURES_THAT_END
