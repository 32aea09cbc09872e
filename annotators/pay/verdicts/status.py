"""The status of an annotator's work, for their own page: received, approved, paid, or rejected with the reason.

The panel's state has priority over heval's decisions. A rejection that never reached the panel does not count.
"""

from dataclasses import dataclass, field
from datetime import datetime

from django.utils import timezone

from annotators.models import Appeal, Assignment, PanelOrder, PanelSubmission, Payment, Verdict
from annotators.models.constants import APPROVED, REJECTED, SCREENED_OUT
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels.reconcile import LEFT_STATES, SENT_STATES, UNSENT_AFTER

from .appeals import ANSWER_DEADLINE
from .decisions import INEFFECTIVE_STATES, current_panel_submission, is_still_rejected_at_panel
from .evidence import evidence_sentences

Kind = Verdict.Kind
EXTRA_KINDS = (Payment.Kind.BONUS, Payment.Kind.COMPENSATION)


@dataclass(frozen=True, slots=True)
class Stage:
    """One of the states in their order. ``at``: since when; None if not reached or unknown."""

    name: str
    is_reached: bool
    at: datetime | None = None
    words: str = ""


@dataclass(frozen=True, slots=True)
class RejectionStatus:
    """An effective rejection, as the annotator reads it.

    ``message``: '' if it was made at the panel, because heval does not know the text.
    """

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
    answered: Appeal | None = None  # the answer to an upheld appeal
    hint: str = ""  # what the person should do, if anything
    is_at_panel: bool = False


def work_status(assignment: Assignment) -> WorkStatus | None:
    """Return the status; None if there is nothing to show: this channel does not pay, and there is no decision."""
    recruitment = assignment.recruitment
    shown = current_panel_submission(assignment)
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
    # Such a panel gives only credit, so people wait for no other payment.
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
            "here and on the panel" if at_panel else "here, with all your answers",
        )
    is_sent = shown is not None and shown.state in (*SENT_STATES, SCREENED_OUT)
    return Stage(
        "Received", is_sent, shown.submitted_at if shown and is_sent else None, "on the panel" if is_sent else ""
    )


def _rejection(verdicts: list[Verdict], shown: PanelSubmission | None) -> tuple[Verdict | None, datetime | None]:
    """Return the effective rejection and its date: from the panel if it must receive rejections, otherwise from heval's
    decision.
    """
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
    # If the panel must approve, the work counts as approved only when the panel says so.
    return Stage("Approved", True, given.at) if given is not None and given.submission_id is None else None


def _paid(payments: list[Payment], is_rejected: bool) -> list[Stage]:
    """Return each amount. After a rejection, the promised pay for the work is not shown as coming."""
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
    """Return what an annotator should do who finished in heval, but whose work the panel does not have."""
    if not assignment.submitted_at or not has_panel or (shown is not None and shown.state in SENT_STATES):
        return ""
    if shown is not None and shown.state in LEFT_STATES:
        how = "was returned" if shown.state == "returned" else "ran out of time"
        return (
            f"On the panel your task {how}, so the panel does not pay it automatically. We have stored your "
            "work. Write to the researchers and give them your receipt. They will pay you in another way."
        )
    is_waiting = timezone.now() - assignment.submitted_at < UNSENT_AFTER
    asked = PanelSubmission.objects.filter(
        recruitment=assignment.recruitment, seen_at__gt=assignment.submitted_at + UNSENT_AFTER
    )
    if is_waiting or (shown is None and not asked.exists()):
        return ""
    return (
        "We have stored your answers, but the panel does not have your work yet. Use the button or the code on "
        "this page to send it. If that does not work, write to the researchers and give them your receipt."
    )
