"""Panel ids are kept until the erasure date, and longer for people whose pay still needs them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Now
from django.utils import timezone

from annotators.models import Assignment, PanelIdentity, PanelSubmission, Payment, Recruitment
from annotators.models.constants import APPROVED
from annotators.models.identity import ERASED_PREFIX
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels.alerts import Alert
from studies.models import Study


@dataclass(frozen=True, slots=True)
class RetainedIds:
    """The number of people whose ids a link keeps beyond ``day``, and the amount due to them."""

    people: int
    amount: Decimal
    currency: str
    day: date


def id_erasure_time(study: Study) -> datetime:
    """Return the erasure date of the ids of a closed study's people."""
    return study.closed_at + timedelta(days=study.erase_after_days)


def study_ids_past_erasure_time() -> list[int]:
    """Return studies past their erasure date."""
    closed = Study.objects.filter(state=Study.State.CLOSED).annotate(now=Now())
    return [study.pk for study in closed if id_erasure_time(study) < study.now]


def unpaid_payments() -> QuerySet[Payment]:
    """Return payments that are neither paid nor cancelled.

    Payments refused by the panel appear again with another way.
    """
    return Payment.objects.filter(state__in=[Payment.State.DUE, Payment.State.ORDERED])


def unwithdrawn_assignments_before_id_erasure() -> QuerySet[Assignment]:
    """Return work of people in studies before their erasure date, without those who left."""
    leavers = Assignment.objects.filter(
        annotator=OuterRef("annotator"), study=OuterRef("study"), withdrawn_at__isnull=False
    )
    return Assignment.objects.exclude(study__in=study_ids_past_erasure_time()).filter(~Exists(leavers))


def finished_assignments_awaiting_credit() -> QuerySet[Assignment]:
    """Return finished work for which the panel has not confirmed the credit yet."""
    crediting = [slug for slug, channel in REGISTRY.items() if channel.credits_on_completion]
    granted = PanelSubmission.objects.filter(
        recruitment=OuterRef("recruitment"), annotator=OuterRef("annotator"), state=APPROVED
    )
    submitted = Assignment.objects.filter(recruitment__channel__in=crediting, submitted_at__isnull=False)
    return submitted.filter(~Exists(granted), origin=Assignment.Origin.LIVE)


def erase_ids_of_withdrawn_without_open_payments(annotators) -> int:
    """Erase the ids of people who have left every study and have no recorded amount due.

    The caller checks whether an unrecorded amount is due.
    """
    same_person = {"annotator": OuterRef("annotator")}
    due = unpaid_payments().filter(assignment__annotator=OuterRef("annotator"))
    identities = PanelIdentity.objects.filter(annotator__in=annotators, ciphertext__isnull=False)
    erasable = identities.filter(
        ~Exists(unwithdrawn_assignments_before_id_erasure().filter(**same_person)),
        ~Exists(finished_assignments_awaiting_credit().filter(**same_person)),
        ~Exists(due),
    )
    return erasable.update(ciphertext=None, purge_at=None)


def ids_retained_for_pay_past_erasure_time(recruitment: Recruitment) -> RetainedIds | None:
    """Return None if no ids are kept beyond the erasure date."""
    study = recruitment.study
    if study.state != Study.State.CLOSED or id_erasure_time(study) > timezone.now():
        return None
    rows = _filter_with_ids(unpaid_payments().filter(assignment__recruitment=recruitment))
    totals = rows.aggregate(people=Count("assignment__annotator", distinct=True), amount=Sum("amount"))
    if not totals["people"]:
        return None
    currency = recruitment.currency or study.currency
    return RetainedIds(totals["people"], totals["amount"], currency, id_erasure_time(study).date())


def id_retention_alerts(recruitment: Recruitment) -> Iterator[Alert]:
    if retained := ids_retained_for_pay_past_erasure_time(recruitment):
        subject = "1 person are" if retained.people == 1 else f"{retained.people} people are"
        owed = f"{retained.amount:.2f} {retained.currency}"
        yield Alert(
            "ids",
            f"Ids of {subject} kept beyond the erasure date ({retained.day}), because {owed} is still due to them.",
            "Pay them, and mark payments made by hand. heval then erases the ids within an hour.",
        )


def links_retaining_ids_for_pay_past_erasure() -> QuerySet[Recruitment]:
    """Return links that keep ids."""
    rows = _filter_with_ids(unpaid_payments().filter(assignment__study__in=study_ids_past_erasure_time()))
    return Recruitment.objects.filter(pk__in=rows.values("assignment__recruitment")).select_related("study")


def _filter_with_ids(rows: QuerySet[Payment]) -> QuerySet[Payment]:
    identities = PanelIdentity.objects.filter(annotator=OuterRef("assignment__annotator"), ciphertext__isnull=False)
    submissions = PanelSubmission.objects.filter(assignment=OuterRef("assignment")).exclude(
        external_id__startswith=ERASED_PREFIX
    )
    return rows.filter(Exists(identities) | Exists(submissions) | ~Q(assignment__external_ids={}))
