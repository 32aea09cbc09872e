"""The assignment that an address means."""

from dataclasses import replace
from itertools import islice

from django.db.models import FilteredRelation, Q
from django.http import Http404
from django.utils import timezone

from annotators.pages.compiled_queries import Select, columns_of, loaded
from annotators.pages.record import OF_VISIT, OF_VISIT_BEFORE
from annotators.pages.sequence import page_before
from annotators.places import assign, leases
from annotators.places.deadlines import Place, is_cut_off, place_of
from studies.models import Study

from ..models import Assignment, PageVisit
from ..pay.telling import pay_of
from .replies import framed


def assignment_or_404(request, code: str) -> Assignment:
    try:
        assignment = Assignment.objects.select_related("study", "recruitment").get(code=code)
    except Assignment.DoesNotExist:
        raise Http404 from None
    if assignment.recruitment is not None:
        assignment.recruitment.study = assignment.study
        framed(request, assignment.recruitment.channel)
    return assignment


# What a page and its record read. A study has fifty columns: loading them took longer than anything else in a page.
OF_ASSIGNMENT = columns_of(
    Assignment,
    "id", "code", "study_id", "batch_id", "annotator_id", "design_id", "seed", "origin", "reserved_until", "started_at",
    "submitted_at", "withdrawn_at", "released_at", "released_reason", "consented_at",
)  # fmt: skip
OF_STUDY = columns_of(Study, "id", "idle_seconds", "minutes", "usual_seconds", "state", "closing_at", "grace_seconds")
_on_page = Select(
    lambda code, before, key: (
        Assignment.objects.filter(code=code)
        .annotate(
            before=FilteredRelation("visits", condition=Q(visits__key=before)),
            here=FilteredRelation("visits", condition=Q(visits__key=key)),
        )
        .order_by()
        .values_list(
            *OF_ASSIGNMENT,
            *(f"study__{name}" for name in OF_STUDY),
            *(f"before__{name}" for name in OF_VISIT_BEFORE),
            *(f"here__{name}" for name in OF_VISIT),
            "recruitment__channel",
        )
    ),
    str,
    str,
    str,
)


def assignment_on_page(request, code: str, key: str = "") -> Assignment:
    """The assignment with what its pages read of it, and the visits around this page; every other column would be loaded when
    asked for. Raises Http404."""
    wanted = (page_before(code, key) if key else "", key)
    rows = _on_page(code, *wanted)
    if not rows:
        raise Http404
    row = iter(rows[0])
    assignment, study, before, here = (
        loaded(model, columns, islice(row, len(columns)))
        for model, columns in (
            (Assignment, OF_ASSIGNMENT),
            (Study, OF_STUDY),
            (PageVisit, OF_VISIT_BEFORE),
            (PageVisit, OF_VISIT),
        )
    )
    Assignment.study.field.set_cached_value(assignment, study)
    framed(request, next(row))
    assignment.around = wanted, {visit.key: visit for visit in (before, here) if visit.pk is not None}
    return assignment


def has_ended(assignment: Assignment) -> bool:
    return bool(
        assignment.submitted_at
        or assignment.withdrawn_at
        or assignment.released_reason in assign.ENDS_PARTICIPATION
        or assignment.batch_id is None
        or is_cut_off(assignment)
    )


def may_withdraw(assignment) -> bool:
    until = assignment.study.withdrawal_until
    return (
        not assignment.withdrawn_at
        and assignment.batch_id is not None
        and (until is None or timezone.now().date() <= until)
    )


def has_work(assignment) -> bool:
    """Whether the person has a list of parts: they came by a recruitment that keeps places for days, and may still take part."""
    return (
        leases.kept_seconds(assignment.recruitment) > 0
        and assignment.batch_id is not None
        and assignment.withdrawn_at is None
        and assignment.released_reason not in assign.ENDS_PARTICIPATION
    )


def kept_place(assignment: Assignment) -> Place | None:
    """What a page says of the time: once it is over, also that whoever finishes is paid, where that was promised."""
    place = place_of(assignment)
    if place and place.is_over and (pay := pay_of(assignment, "complete")) and pay.amount:
        return replace(place, words=f"{place.words} If you finish, you are paid all the same.")
    return place
