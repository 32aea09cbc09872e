"""The status of an annotator's work, for their own page: received, approved, paid, or rejected with the reason.

The panel's state has priority over heval's decisions. A rejection that never reached the panel does not count.
"""

from dataclasses import dataclass, field
from datetime import datetime

from django.utils import timezone

from annotators.models import Appeal, Assignment, Barring, PanelOrder, PanelSubmission, Payment, Verdict
from annotators.models.constants import APPROVED, REJECTED, SCREENED_OUT
from annotators.places.assign import has_ended_by_wrong_answers, has_failed_test
from annotators.places.barrings import applicable_barrings
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels.reconcile import LEFT_STATES, SENT_STATES, UNSENT_AFTER
from studies.language import format_amount, gettext, gettext_noop
from studies.models import Study

from .decisions import ANSWER_DEADLINE, INEFFECTIVE_STATES, current_panel_submission, is_still_rejected_at_panel
from .evidence import evidence_sentences

Kind, Released = Verdict.Kind, Assignment.Released
EXTRA_KINDS = (Payment.Kind.BONUS, Payment.Kind.COMPENSATION)
# Translators: %(amount)s is an amount of money with its currency
KIND_TEXTS: dict[str, str] = {
    Payment.Kind.OUTCOME: gettext_noop("%(amount)s, the amount promised for this outcome"),
    Payment.Kind.DIFFERENCE: gettext_noop("%(amount)s, the difference to the present promise"),
    Payment.Kind.BONUS: gettext_noop("%(amount)s, a bonus"),
    Payment.Kind.COMPENSATION: gettext_noop("%(amount)s, compensation"),
}


@dataclass(frozen=True, slots=True)
class Stage:
    """One of the states in their order. ``at``: since when; None if not reached or unknown."""

    name: str
    is_reached: bool
    at: datetime | None = None
    detail: str = ""


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
    subject: str = Appeal.Subject.REJECTION


@dataclass(frozen=True, slots=True)
class WorkStatus:
    stages: tuple[Stage, ...]
    rejection: RejectionStatus | None = None
    answered: Appeal | None = None  # the answer to an upheld appeal
    hint: str = ""  # what the person should do, if anything
    is_at_panel: bool = False


@dataclass(frozen=True, slots=True)
class BarringStatus:
    """Why an annotator gets no further batch, as they read it. It names no test question and no researcher.

    ``appeal``: their objection. ``is_lifted``: the barring is over, and only the answer to the objection is left to
    read. ``is_of_group``: another study of the exclusion group, or another round of the board, barred them.
    """

    is_by_rule: bool
    is_lifted: bool
    is_of_group: bool
    appeal: Appeal | None
    due_at: datetime
    is_late: bool
    may_appeal: bool
    subject: str = Appeal.Subject.BARRING


@dataclass(frozen=True, slots=True)
class FailedChecksStatus:
    """That an assignment ended because of wrong answers, with the objection to it.

    ``is_test``: in both attempts at the test before the work; otherwise, to attention checks.
    """

    appeal: Appeal | None
    due_at: datetime
    is_late: bool
    may_appeal: bool
    is_test: bool
    subject: str = Appeal.Subject.CHECKS


def barring_status(study: Study, annotator_id: int) -> BarringStatus | None:
    """Return the barring that applies to the annotator, or else the last one that was lifted after they objected."""
    known = list(applicable_barrings(study).filter(annotator=annotator_id).select_related("appeal").order_by("-pk"))
    # First what applies, and of that the study's own.
    known.sort(key=lambda row: (row.lifted_at is not None, row.study_id != study.pk))
    barring = known[0] if known else None
    appeal = getattr(barring, "appeal", None)
    is_of_group = barring is not None and barring.study_id != study.pk
    if barring is None or (barring.lifted_at is not None and appeal is None):
        return None
    return BarringStatus(
        is_by_rule=barring.ground == Barring.Ground.RULE,
        is_lifted=barring.lifted_at is not None,
        is_of_group=is_of_group,
        appeal=appeal,
        due_at=_answer_due_at(appeal),
        is_late=_is_answer_late(appeal),
        may_appeal=appeal is None and barring.lifted_at is None,
    )


def failed_checks_status(assignment: Assignment) -> FailedChecksStatus | None:
    """Return None if the assignment did not end because of attention checks or a test."""
    if not has_ended_by_wrong_answers(assignment):
        return None
    is_test = assignment.released_reason != Released.FAILED_CHECKS and has_failed_test(assignment)
    appeal = Appeal.objects.filter(assignment=assignment, verdict=None, barring=None).first()
    return FailedChecksStatus(appeal, _answer_due_at(appeal), _is_answer_late(appeal), appeal is None, is_test)


def _answer_due_at(appeal: Appeal | None) -> datetime:
    """Return when the annotator gets an answer. Without an appeal: if they objected now."""
    return appeal.due_at if appeal else timezone.now() + ANSWER_DEADLINE


def _is_answer_late(appeal: Appeal | None) -> bool:
    return appeal is not None and appeal.answered_at is None and appeal.due_at < timezone.now()


def work_status(assignment: Assignment) -> WorkStatus | None:
    """Return the status; None if there is nothing to show: this channel does not pay, and there is no decision."""
    recruitment = assignment.recruitment
    submission = current_panel_submission(assignment)
    verdicts = list(Verdict.objects.filter(assignment=assignment).select_related("appeal").order_by("-pk"))
    payments = list(Payment.objects.filter(assignment=assignment).order_by("pk"))
    channel = REGISTRY.get(recruitment.channel) if recruitment else None
    has_panel = bool(
        channel and (channel.secrets or channel.can_read_export_file(recruitment) or channel.rejection_policy)
    )
    is_known = bool(
        submission or verdicts or [payment for payment in payments if payment.state != Payment.State.CANCELLED]
    )
    if not is_known and not (has_panel and assignment.submitted_at):
        return None
    rejection, rejected_at = _effective_rejection(verdicts, submission)
    approval = _approval_stage(verdicts, submission)
    stages = [_received_stage(assignment, submission)]
    rejected = None
    if rejected_at is not None or rejection is not None:
        rejected = _rejection_status(rejection, rejected_at, submission)
        stages.append(Stage(gettext("Rejected"), True, rejected.at))
    else:
        stages.append(approval or Stage(gettext("Approved"), False))
    # Such a panel gives only credit, so people wait for no other payment.
    if payments or not (channel and channel.credits_on_completion):
        stages += _payment_stages(payments, rejected is not None)
    reversed_verdict = next((verdict for verdict in verdicts if verdict.pk in _reversed_pks(verdicts)), None)
    answered = getattr(reversed_verdict, "appeal", None) if reversed_verdict and rejected is None else None
    hint = "" if rejected or approval else _next_step_hint(assignment, submission, has_panel)
    return WorkStatus(
        tuple(stages), rejected, answered, hint, submission is not None and submission.state in SENT_STATES
    )


def _received_stage(assignment: Assignment, submission: PanelSubmission | None) -> Stage:
    if assignment.submitted_at:
        at_panel = submission is not None and submission.state in SENT_STATES
        detail = gettext("here and on the panel") if at_panel else gettext("here, with all your answers")
        return Stage(gettext("Received"), True, assignment.submitted_at, detail)
    is_sent = submission is not None and submission.state in (*SENT_STATES, SCREENED_OUT)
    return Stage(
        # Translators: a state of the work, as are Approved, Rejected and Paid
        gettext("Received"),
        is_sent,
        submission.submitted_at if submission and is_sent else None,
        # Translators: where the work was received
        gettext("on the panel") if is_sent else "",
    )


def _effective_rejection(
    verdicts: list[Verdict], submission: PanelSubmission | None
) -> tuple[Verdict | None, datetime | None]:
    """Return the effective rejection and its date: from the panel if it must receive rejections, otherwise from heval's
    decision.
    """
    rejections = [
        verdict for verdict in verdicts if verdict.kind == Kind.REJECT and verdict.pk not in _reversed_pks(verdicts)
    ]
    rejections = [
        verdict
        for verdict in rejections
        if verdict.category != Verdict.AT_PANEL or is_still_rejected_at_panel(verdict, submission)
    ]
    if submission is not None and submission.state == APPROVED:
        return None, None
    orders = _order_states(rejections)
    effective = [verdict for verdict in rejections if orders.get(f"reject-{verdict.pk}") not in INEFFECTIVE_STATES]
    if submission is not None and submission.state == REJECTED:
        reversals = [verdict for verdict in verdicts if verdict.kind == Kind.REVERSE]
        if reversals and not effective:
            return None, None
        return (effective[0] if effective else None), submission.decided_at or submission.seen_at
    carried_out = [
        verdict for verdict in effective if orders.get(f"reject-{verdict.pk}", "done") == PanelOrder.State.DONE
    ]
    return (carried_out[0], carried_out[0].at) if carried_out else (None, None)


def _reversed_pks(verdicts: list[Verdict]) -> set[int]:
    return {verdict.reverses_id for verdict in verdicts if verdict.reverses_id}


def _order_states(verdicts: list[Verdict]) -> dict[str, str]:
    tokens = [f"reject-{verdict.pk}" for verdict in verdicts]
    return dict(PanelOrder.objects.filter(token__in=tokens).values_list("token", "state")) if tokens else {}


def _approval_stage(verdicts: list[Verdict], submission: PanelSubmission | None) -> Stage | None:
    if submission is not None and submission.state == APPROVED:
        return Stage(gettext("Approved"), True, submission.decided_at)
    reversal = next((verdict for verdict in verdicts if verdict.kind == Kind.REVERSE), None)
    if reversal is not None:
        return Stage(gettext("Approved"), True, reversal.at, gettext("the rejection was taken back"))
    approval = next((verdict for verdict in verdicts if verdict.kind == Kind.APPROVE), None)
    # If the panel must approve, the work counts as approved only when the panel says so.
    return (
        Stage(gettext("Approved"), True, approval.at)
        if approval is not None and approval.submission_id is None
        else None
    )


def _payment_stages(payments: list[Payment], is_rejected: bool) -> list[Stage]:
    """Return each amount. After a rejection, the promised pay for the work is not shown as coming."""
    stages = []
    for payment in payments:
        amount = format_amount(payment.amount, payment.currency)
        if payment.kind in KIND_TEXTS:
            amount = gettext(KIND_TEXTS[payment.kind]) % {"amount": amount}
        if payment.state == Payment.State.PAID:
            stages.append(Stage(gettext("Paid"), True, payment.ended_at, amount))
        elif payment.state == Payment.State.ORDERED:
            text = gettext("%(amount)s, on its way")
            stages.append(Stage(gettext("Paid"), False, None, text % {"amount": amount}))
        elif payment.state == Payment.State.DUE and not (is_rejected and payment.kind not in EXTRA_KINDS):
            is_approval = payment.way == Payment.Way.APPROVAL
            text = gettext("%(amount)s, with the approval") if is_approval else gettext("%(amount)s, owed to you")
            stages.append(Stage(gettext("Paid"), False, None, text % {"amount": amount}))
    return stages or ([] if is_rejected else [Stage(gettext("Paid"), False)])


def _rejection_status(
    verdict: Verdict | None, at: datetime | None, submission: PanelSubmission | None
) -> RejectionStatus:
    if verdict is None:
        return RejectionStatus(at, due_at=_answer_due_at(None), may_appeal=True)
    message = "" if verdict.category == Verdict.AT_PANEL else verdict.message
    appeal = getattr(verdict, "appeal", None)
    return RejectionStatus(
        at,
        message,
        evidence_sentences(verdict.evidence),
        appeal,
        _answer_due_at(appeal),
        _is_answer_late(appeal),
        appeal is None,
    )


def _next_step_hint(assignment: Assignment, submission: PanelSubmission | None, has_panel: bool) -> str:
    """Return what an annotator should do who finished in heval, but whose work the panel does not have."""
    if not assignment.submitted_at or not has_panel or (submission is not None and submission.state in SENT_STATES):
        return ""
    if submission is not None and submission.state in LEFT_STATES:
        if submission.state == "returned":
            return gettext(
                "On the panel your task was returned, so the panel does not pay it automatically. We have stored your "
                "work. Write to the researchers and give them your receipt. They will pay you in another way."
            )
        return gettext(
            "On the panel your task ran out of time, so the panel does not pay it automatically. We have stored your "
            "work. Write to the researchers and give them your receipt. They will pay you in another way."
        )
    is_waiting = timezone.now() - assignment.submitted_at < UNSENT_AFTER
    later_submissions = PanelSubmission.objects.filter(
        recruitment=assignment.recruitment, seen_at__gt=assignment.submitted_at + UNSENT_AFTER
    )
    if is_waiting or (submission is None and not later_submissions.exists()):
        return ""
    return gettext(
        "We have stored your answers, but the panel does not have your work yet. Use the button or the code on "
        "this page to send it. If that does not work, write to the researchers and give them your receipt."
    )
