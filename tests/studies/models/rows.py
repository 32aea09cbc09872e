"""Rows of the tables of annotators, each with what a test does not give itself."""

from datetime import timedelta

from django.utils import timezone

from annotators.models import (
    Annotator,
    Appeal,
    Assignment,
    Barring,
    OutcomePay,
    PanelOrder,
    PanelSecret,
    PanelSubmission,
    Payment,
    QualificationAttempt,
    SampleColumn,
    Verdict,
)
from studies.models import Qualification

NOW = timezone.now()


def other(world, **columns):
    """A second assignment of another person, without what a case gives itself."""
    someone = Annotator.objects.create(pool="p", external_id="y")
    return Assignment(
        **{
            "study": world["study"],
            "batch": world["batch"],
            "annotator": someone,
            "design": world["design"],
            "started_at": NOW,
        }
        | columns
    )


def secret(w):
    return PanelSecret(recruitment=w["recruitment"], name="token", ciphertext=b"x")


def submission(w, **columns):
    usual = {
        "recruitment": w["recruitment"],
        "external_id": "S",
        "annotator": w["assignment"].annotator,
        "state": "working",
    }
    return PanelSubmission(**usual | {"source": "service"} | columns)


def verdict(w, **columns):
    return Verdict(**{"assignment": w["assignment"], "kind": "approve", "by": w["researcher"]} | columns)


def rejection(w):
    return Verdict.objects.filter(kind="reject").first() or Verdict.objects.create(
        assignment=w["assignment"], kind="reject", by=w["researcher"], category="c", message="m"
    )


def at_panel(w, **columns):
    shown = PanelSubmission.objects.filter(external_id="S").first() or saved(submission(w))
    return verdict(
        w, **{"kind": "reject", "category": "at_panel", "message": "m", "by": None, "submission": shown} | columns
    )


def taken_back(w):
    return verdict(w, kind="reverse", reverses=rejection(w))


def barring(w, **columns):
    usual = {"annotator": w["assignment"].annotator, "ground": "hand", "reason": "Copies.", "by": w["researcher"]}
    return Barring(**{"study": w["study"], "at": NOW} | usual | columns)


def appeal(w, **columns):
    usual = {"verdict": rejection(w), "rejected_by": w["researcher"], "text": "Why?", "due_at": NOW + timedelta(days=9)}
    return Appeal(**usual | columns)


def order(w, **columns):
    return PanelOrder(**{"recruitment": w["recruitment"], "operation": "stop", "token": "t"} | columns)


def saved(row):
    row.save()
    return row


def column(w):
    return SampleColumn(study=w["study"], name="Age", kind="number")


def outcome_pay(w, **columns):
    return OutcomePay(**{"recruitment": w["recruitment"], "outcome": "full", "rule": "all"} | columns)


def payment(w, **columns):
    usual = {"assignment": w["assignment"], "kind": "base", "amount": 1, "currency": "USD", "way": "hand"}
    return Payment(**usual | columns)


def qualification(w):
    return Qualification.objects.create(owner=w["researcher"], name="reads", valid_days=30)


def second_qualification(w):
    """One with the owner, name and validity of a stored one."""
    stored = qualification(w)
    return Qualification(owner=stored.owner, name=stored.name, valid_days=stored.valid_days)


def attempt(w, **columns):
    values = {"number": 1, "n_right": 1, "n_asked": 2, "is_passed": True} | columns
    return QualificationAttempt(assignment=w["assignment"], section=w["spa"], **values)
