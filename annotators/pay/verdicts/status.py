"""Where somebody's work stands, for the page that they can open for ever: received, approved, paid, or rejected and why.

What the panel says goes before what was decided here: a rejection that never reached it is none.
"""

from dataclasses import dataclass, field
from datetime import datetime

from django.utils import timezone

from annotators.models import Appeal, Assignment, PanelOrder, PanelSubmission, Payment, Verdict
from annotators.models.constants import APPROVED, REJECTED, SCREENED_OUT
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels.reconcile import LEFT_STATES, SENT_STATES, UNSENT_AFTER

from .appeals import ANSWER_DEADLINE
from .decisions import INEFFECTIVE_STATES, current_submission, is_still_rejected_at_panel
from .evidence import evidence_sentences

Kind = Verdict.Kind
EXTRA_KINDS = (Payment.Kind.BONUS, Payment.Kind.COMPENSATION)


@dataclass(frozen=True, slots=True)
class Stage:
    """One of the states in their order. ``at``: since when; None where it has not come, or nobody knows when."""

    name: str
    is_reached: bool
    at: datetime | None = None
    words: str = ""


@dataclass(frozen=True, slots=True)
class RejectionStatus:
    """A rejection that holds, as its person reads it. ``message``: '' where it was made at the panel, in words that nobody here knows."""

    at: datetime | None
    message: str = ""
    evidence: list[str] = field(default_factory=list)
    appeal: Appeal | None = None
    due_at: datetime | None = None
    is_late: bool = False
    may_appeal: bool = False


@dataclass(frozen=True, slots=True)
class WorkStatus:
    stages: tuple[Stage, ...]
    rejection: RejectionStatus | None = None
    answered: Appeal | None = None  # the answer to an appeal that was upheld
    hint: str = ""  # what is to be done, where something is
    is_at_panel: bool = False


def work_status(assignment: Assignment) -> WorkStatus | None:
    """None where there is nothing to tell: nobody pays by this way, and nobody has decided anything."""
    recruitment = assignment.recruitment
    shown = current_submission(assignment)
    verdicts = list(Verdict.objects.filter(assignment=assignment).select_related("appeal").order_by("-pk"))
    payments = list(Payment.objects.filter(assignment=assignment).order_by("pk"))
    channel = REGISTRY.get(recruitment.channel) if recruitment else None
    has_panel = bool(channel and (channel.secrets or channel.takes_file(recruitment) or channel.rejection_policy))
    is_told = bool(shown or verdicts or [one for one in payments if one.state != Payment.State.CANCELLED])
    if not is_told and not (has_panel and assignment.submitted_at):
        return None
    rejection, rejected_at = _rejection(verdicts, shown)
    approval = _approved(verdicts, shown)
    stages = [_received(assignment, shown)]
    rejected = None
    if rejected_at is not None or rejection is not None:
        rejected = _told_of(rejection, rejected_at, shown)
        stages.append(Stage("Rejected", True, rejected.at))
    else:
        stages.append(
            Stage(
                "Approved", approval is not None, approval.at if approval else None, approval.words if approval else ""
            )
        )
    # Credit is all that such a panel gives: nobody waits for money that was never written down.
    if payments or not (channel and channel.credits_on_completion):
        stages += _paid(payments, rejected is not None)
    reversed_one = next((one for one in verdicts if one.pk in _reversed_pks(verdicts)), None)
    answered = getattr(reversed_one, "appeal", None) if reversed_one and rejected is None else None
    hint = "" if rejected or approval else _hint(assignment, shown, has_panel)
    return WorkStatus(tuple(stages), rejected, answered, hint, shown is not None and shown.state in SENT_STATES)


def _received(assignment: Assignment, shown: PanelSubmission | None) -> Stage:
    if assignment.submitted_at:
        at_panel = shown is not None and shown.state in SENT_STATES
        return Stage(
            "Received",
            True,
            assignment.submitted_at,
            "here and at the panel" if at_panel else "here, with all your answers",
        )
    is_sent = shown is not None and shown.state in (*SENT_STATES, SCREENED_OUT)
    return Stage(
        "Received", is_sent, shown.submitted_at if shown and is_sent else None, "at the panel" if is_sent else ""
    )


def _rejection(verdicts: list[Verdict], shown: PanelSubmission | None) -> tuple[Verdict | None, datetime | None]:
    """The rejection that holds and since when: as the panel shows it, or as it was decided where no panel has to be told."""
    standing = [one for one in verdicts if one.kind == Kind.REJECT and one.pk not in _reversed_pks(verdicts)]
    standing = [one for one in standing if one.category != Verdict.AT_PANEL or is_still_rejected_at_panel(one, shown)]
    if shown is not None and shown.state == APPROVED:
        return None, None
    orders = _orders(standing)
    of_effect = [one for one in standing if orders.get(f"reject-{one.pk}") not in INEFFECTIVE_STATES]
    if shown is not None and shown.state == REJECTED:
        reversed_here = [one for one in verdicts if one.kind == Kind.REVERSE]
        if reversed_here and not of_effect:
            return None, None
        return (of_effect[0] if of_effect else None), shown.decided_at or shown.seen_at
    carried_out = [one for one in of_effect if orders.get(f"reject-{one.pk}", "done") == PanelOrder.State.DONE]
    return (carried_out[0], carried_out[0].at) if carried_out else (None, None)


def _reversed_pks(verdicts: list[Verdict]) -> set[int]:
    return {one.reverses_id for one in verdicts if one.reverses_id}


def _orders(verdicts: list[Verdict]) -> dict[str, str]:
    tokens = [f"reject-{one.pk}" for one in verdicts]
    return dict(PanelOrder.objects.filter(token__in=tokens).values_list("token", "state")) if tokens else {}


def _approved(verdicts: list[Verdict], shown: PanelSubmission | None) -> Stage | None:
    if shown is not None and shown.state == APPROVED:
        return Stage("Approved", True, shown.decided_at)
    back = next((one for one in verdicts if one.kind == Kind.REVERSE), None)
    if back is not None:
        return Stage("Approved", True, back.at, "the rejection was taken back")
    given = next((one for one in verdicts if one.kind == Kind.APPROVE), None)
    # Where a panel is told, it is approved when the panel says so.
    return Stage("Approved", True, given.at) if given is not None and given.submission_id is None else None


def _paid(payments: list[Payment], is_rejected: bool) -> list[Stage]:
    """Each sum. Of who is rejected, what was promised for the work is not told as something that will come."""
    made = []
    for one in payments:
        words = f"{one.amount} {one.currency}" + (
            f", {one.get_kind_display()}" if one.kind != Payment.Kind.BASE else ""
        )
        if one.state == Payment.State.PAID:
            made.append(Stage("Paid", True, one.ended_at, words))
        elif one.state == Payment.State.ORDERED:
            made.append(Stage("Paid", False, None, f"{words}, on its way"))
        elif one.state == Payment.State.DUE and not (is_rejected and one.kind not in EXTRA_KINDS):
            how = "with the approval" if one.way == Payment.Way.APPROVAL else "owed to you"
            made.append(Stage("Paid", False, None, f"{words}, {how}"))
    return made or ([] if is_rejected else [Stage("Paid", False)])


def _told_of(verdict: Verdict | None, at: datetime | None, shown: PanelSubmission | None) -> RejectionStatus:
    now = timezone.now()
    if verdict is None:
        return RejectionStatus(at, due_at=now + ANSWER_DEADLINE, may_appeal=True)
    message = "" if verdict.category == Verdict.AT_PANEL else verdict.message
    appeal = getattr(verdict, "appeal", None)
    is_late = appeal is not None and appeal.answered_at is None and appeal.due_at < now
    return RejectionStatus(
        at,
        message,
        evidence_sentences(verdict.evidence),
        appeal,
        appeal.due_at if appeal else now + ANSWER_DEADLINE,
        is_late,
        appeal is None,
    )


def _hint(assignment: Assignment, shown: PanelSubmission | None, has_panel: bool) -> str:
    """What a person who finished here should do, where the panel does not have their work."""
    if not assignment.submitted_at or not has_panel or (shown is not None and shown.state in SENT_STATES):
        return ""
    if shown is not None and shown.state in LEFT_STATES:
        how = "was given back" if shown.state == "returned" else "ran out of time"
        return (
            f"At the panel your task {how}, so the panel does not pay it by itself. You did the work here and it is stored: write to the "
            "researchers, name your receipt, and they pay you another way."
        )
    is_waiting = timezone.now() - assignment.submitted_at < UNSENT_AFTER
    asked = PanelSubmission.objects.filter(
        recruitment=assignment.recruitment, seen_at__gt=assignment.submitted_at + UNSENT_AFTER
    )
    if is_waiting or (shown is None and not asked.exists()):
        return ""
    return (
        "Your answers are stored here, but the panel does not have your work yet. Send it there with the button or the code on this page. If "
        "that does not work, write to the researchers and name your receipt: you did the work."
    )
