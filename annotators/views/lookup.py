"""Find the assignment of a page's address, and its status."""

from dataclasses import replace
from itertools import islice
from typing import Any

from django.conf import settings
from django.db.models import FilteredRelation, Q
from django.http import Http404
from django.utils import timezone

from annotators.models import Assignment, PageVisit
from annotators.pages.compiled_queries import CompiledSelect, columns_in_model_order, instance_from_row
from annotators.pages.record import PREVIOUS_VISIT_COLUMNS, VISIT_COLUMNS
from annotators.pages.sequence import previous_fixed_page_key
from annotators.pay.statement import pay_statement
from annotators.places import assign, leases
from annotators.places.addresses import assignment_code
from annotators.places.deadlines import PlaceStatus, is_closed_before_first_answer, place_status
from studies.design.wording import wording_of
from studies.models import Study

from .http_responses import allow_framing


def _code_or_404(address: str) -> tuple[str, str]:
    """Return the code that an address names, and the address if it shows no stored answers."""
    try:
        code = assignment_code(address)
    except LookupError:
        raise Http404 from None
    return code, "" if code == address else address


def get_assignment_or_404_and_allow_framing(request, address: str) -> Assignment:
    code, limited_address = _code_or_404(address)
    try:
        assignment = Assignment.objects.select_related("study", "recruitment").get(code=code)
    except Assignment.DoesNotExist:
        raise Http404 from None
    assignment.limited_address = limited_address
    if assignment.recruitment is not None:
        assignment.recruitment.study = assignment.study
        allow_framing(request, assignment.recruitment.channel)
    return assignment


# The columns that showing and recording a page read. Loading all fifty columns of a study was the slowest part of a
# page.
ASSIGNMENT_COLUMNS = columns_in_model_order(
    Assignment,
    "id", "code", "study_id", "batch_id", "annotator_id", "design_id", "seed", "origin", "reserved_until", "started_at",
    "submitted_at", "withdrawn_at", "released_at", "released_reason", "consented_at", "qualified_by_id",
)  # fmt: skip
STUDY_COLUMNS = columns_in_model_order(
    Study, "id", "idle_seconds", "minutes", "usual_seconds", "state", "closing_at", "grace_seconds"
)
_select_page_row = CompiledSelect(
    lambda code, before, key: (
        Assignment.objects.filter(code=code)
        .annotate(
            before=FilteredRelation("visits", condition=Q(visits__key=before)),
            here=FilteredRelation("visits", condition=Q(visits__key=key)),
        )
        .order_by()
        .values_list(
            *ASSIGNMENT_COLUMNS,
            *(f"study__{name}" for name in STUDY_COLUMNS),
            *(f"before__{name}" for name in PREVIOUS_VISIT_COLUMNS),
            *(f"here__{name}" for name in VISIT_COLUMNS),
            "recruitment__channel",
        )
    ),
    str,
    str,
    str,
)


def get_page_assignment_or_404_and_allow_framing(request, address: str, page_key: str = "") -> Assignment:
    """Return the assignment with the columns that its pages read, and the visits of this page and the one before it.

    Other columns are loaded on access. Raises Http404.
    """
    code, limited_address = _code_or_404(address)
    page_keys = (previous_fixed_page_key(code, page_key) if page_key else "", page_key)
    rows = _select_page_row(code, *page_keys)
    if not rows:
        raise Http404
    row = iter(rows[0])
    assignment, study, previous_visit, page_visit = (
        instance_from_row(model, columns, islice(row, len(columns)))
        for model, columns in (
            (Assignment, ASSIGNMENT_COLUMNS),
            (Study, STUDY_COLUMNS),
            (PageVisit, PREVIOUS_VISIT_COLUMNS),
            (PageVisit, VISIT_COLUMNS),
        )
    )
    Assignment.study.field.set_cached_value(assignment, study)
    assignment.limited_address = limited_address
    allow_framing(request, next(row))
    assignment.preloaded_visits = (
        page_keys,
        {visit.key: visit for visit in (previous_visit, page_visit) if visit.pk is not None},
    )
    return assignment


def page_frame(assignment: Assignment) -> dict[str, Any]:
    """Return what the head and the foot of each page of an assignment show."""
    return {
        "study": wording_of(assignment.study, assignment.design_id).study,
        "assignment_path": assignment.path,
        "own_address": f"{settings.SITE_URL}{assignment.path}",
        "is_limited": bool(assignment.limited_address),
        "has_left": assignment.withdrawn_at is not None,
        "has_agreed": assignment.consented_at is not None,
    }


def has_assignment_ended(assignment: Assignment) -> bool:
    return bool(
        assignment.submitted_at
        or assignment.withdrawn_at
        or assignment.released_reason in assign.FINAL_RELEASE_REASONS
        or assignment.batch_id is None
        or is_closed_before_first_answer(assignment)
    )


def may_withdraw(assignment) -> bool:
    until = assignment.study.withdrawal_until
    return (
        not assignment.withdrawn_at
        and not assignment.limited_address
        and assignment.batch_id is not None
        and (until is None or timezone.now().date() <= until)
    )


def has_parts_overview(assignment) -> bool:
    """Return whether the person has a list of parts: the link keeps places for days, and they may still take part."""
    return (
        leases.channel_min_reserved_seconds(assignment.recruitment) > 0
        and not assignment.limited_address
        and assignment.batch_id is not None
        and assignment.withdrawn_at is None
        and assignment.released_reason not in assign.FINAL_RELEASE_REASONS
    )


def place_status_with_pay(assignment: Assignment) -> PlaceStatus | None:
    """Return what a page says about the time left.

    After the time is over, add that finishing is paid, if pay was promised.
    """
    status = place_status(assignment)
    if status and status.is_over and (pay := pay_statement(assignment, "complete")) and pay.amount:
        return replace(status, text=f"{status.text} If you finish, you are still paid.")
    return status
