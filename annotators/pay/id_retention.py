"""Whose panel ids are kept: of people who are still owed something, who could not be paid without them, and until its day of
everybody who has not left."""

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
    """How many people's ids a link keeps beyond ``day``, and what these are owed."""

    people: int
    amount: Decimal
    currency: str
    day: date


def erasure_time(study: Study) -> datetime:
    """When the ids of a closed study's people are erased."""
    return study.closed_at + timedelta(days=study.erase_after_days)


def past_erasure_study_ids() -> list[int]:
    """Studies whose day has passed."""
    closed = Study.objects.filter(state=Study.State.CLOSED).annotate(now=Now())
    return [study.pk for study in closed if erasure_time(study) < study.now]


def unpaid_payments() -> QuerySet[Payment]:
    """What is written down and neither paid nor taken back. What a panel refused stands there once more, by another way."""
    return Payment.objects.filter(state__in=[Payment.State.DUE, Payment.State.ORDERED])


def assignments_needing_ids() -> QuerySet[Assignment]:
    """Work of people in studies whose day has not passed, and which they have not left."""
    left = Assignment.objects.filter(
        annotator=OuterRef("annotator"), study=OuterRef("study"), withdrawn_at__isnull=False
    )
    return Assignment.objects.exclude(study__in=past_erasure_study_ids()).filter(~Exists(left))


def uncredited_assignments() -> QuerySet[Assignment]:
    """Finished work for which the panel grants credit, where it has not said yet that it did."""
    crediting = [slug for slug, channel in REGISTRY.items() if channel.credits_on_completion]
    granted = PanelSubmission.objects.filter(
        recruitment=OuterRef("recruitment"), annotator=OuterRef("annotator"), state=APPROVED
    )
    done = Assignment.objects.filter(recruitment__channel__in=crediting, submitted_at__isnull=False)
    return done.filter(~Exists(granted), origin=Assignment.Origin.LIVE)


def erase_withdrawn_ids(annotators) -> int:
    """Erase the ids of those among these people who have left every study, and for whom nothing is written down as due. Whether
    something is owed that is not written down yet, the caller knows."""
    theirs = {"annotator": OuterRef("annotator")}
    due = unpaid_payments().filter(assignment__annotator=OuterRef("annotator"))
    known = PanelIdentity.objects.filter(annotator__in=annotators, ciphertext__isnull=False)
    gone = known.filter(
        ~Exists(assignments_needing_ids().filter(**theirs)),
        ~Exists(uncredited_assignments().filter(**theirs)),
        ~Exists(due),
    )
    return gone.update(ciphertext=None, purge_at=None)


def retained_ids(recruitment: Recruitment) -> RetainedIds | None:
    """None where nothing is kept beyond its day."""
    study = recruitment.study
    if study.state != Study.State.CLOSED or erasure_time(study) > timezone.now():
        return None
    rows = _with_ids(unpaid_payments().filter(assignment__recruitment=recruitment))
    found = rows.aggregate(people=Count("assignment__annotator", distinct=True), amount=Sum("amount"))
    if not found["people"]:
        return None
    currency = recruitment.currency or study.currency
    return RetainedIds(found["people"], found["amount"], currency, erasure_time(study).date())


def retention_alerts(recruitment: Recruitment) -> Iterator[Alert]:
    if kept := retained_ids(recruitment):
        whose = "1 person are" if kept.people == 1 else f"{kept.people} people are"
        owed = f"{kept.amount:.2f} {kept.currency}"
        yield Alert(
            "ids",
            f"Ids of {whose} kept beyond their day ({kept.day}), because {owed} are owed to them.",
            "Pay them, and mark by hand what was paid by hand: the ids are erased within the hour after.",
        )


def links_retaining_ids() -> QuerySet[Recruitment]:
    """Links that keep somebody's."""
    rows = _with_ids(unpaid_payments().filter(assignment__study__in=past_erasure_study_ids()))
    return Recruitment.objects.filter(pk__in=rows.values("assignment__recruitment")).select_related("study")


def _with_ids(rows: QuerySet[Payment]) -> QuerySet[Payment]:
    known = PanelIdentity.objects.filter(annotator=OuterRef("assignment__annotator"), ciphertext__isnull=False)
    shown = PanelSubmission.objects.filter(assignment=OuterRef("assignment")).exclude(
        external_id__startswith=ERASED_PREFIX
    )
    return rows.filter(Exists(known) | Exists(shown) | ~Q(assignment__external_ids={}))
