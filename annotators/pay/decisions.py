"""Approve, reject, and take rejections back.

The only writer of Verdict.
Only one piece of work at a time: there is no function to reject several, or to reject by a rule.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import BooleanField, Case, Count, Exists, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Now
from django.utils import timezone

from annotators.models import Annotator, Appeal, Assignment, PanelOrder, PanelSubmission, Payment, Recruitment, Verdict
from annotators.models.constants import APPROVED, REJECTED, SUBMITTED
from annotators.pay.ledger import ExtraPayment, add_extra_payments, total_amount
from annotators.pay.statement import pay_statement
from annotators.places.assign import change_failed_checks_to_fault, has_ended_by_wrong_answers
from annotators.places.barrings import active_barrings, lift_barring
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels import RejectionPolicy
from annotators.recruitment.panels.http_client import available_operations
from annotators.recruitment.panels.orders import cancel_order, create_orders, get_or_create_order
from annotators.recruitment.panels.reconcile import MATCH_STATUSES, SENT_STATES, submissions_with_match_status
from studies.access import Action, allowed_active_member_users, check_permission_or_404
from studies.language import gettext, ngettext
from studies.models import Study, System, audit
from studies.models.guards import allowing_erasure
from studies.services.events import record_attention
from studies.services.lifecycle import ActionRefused
from studies.stimuli.texts import TextRefused, clean_text, is_blank

from .evidence import (
    MESSAGE_PLACEHOLDER,
    RejectionGround,
    WorkEvidence,
    assess_rejection_grounds,
    measure_work_evidence,
)

Kind, State = Verdict.Kind, PanelOrder.State
# Only work of a known person that was submitted at the panel can be rejected there.
REJECTABLE_STATUSES = ("matched", "orphan")
MAX_MESSAGE_LENGTH = 2000
# Results of the order. A rejection that no panel has carried out does not count.
INEFFECTIVE_STATES = (State.REFUSED, State.CANCELLED)
REJECTED_AT_PANEL_MESSAGE = "The work was rejected at the panel. No reason was written here."


@dataclass(frozen=True, slots=True)
class WorkUnderReview:
    """One piece of work to decide about: the panel's submission, heval's assignment, and how they match."""

    recruitment: Recruitment
    submission: PanelSubmission | None
    assignment: Assignment | None
    standing: str = ""

    @property
    def rejection_policy(self) -> RejectionPolicy | None:
        return REGISTRY[self.recruitment.channel].rejection_policy

    @property
    def verdict_columns(self) -> dict:
        return {"submission": self.submission, "assignment": self.assignment}


def get_work_by_submission(recruitment: Recruitment, submission_pk: int) -> WorkUnderReview | None:
    rows = submissions_with_match_status(recruitment).select_related(
        "assignment__study", "assignment__recruitment", "task", "annotator"
    )
    row = rows.filter(pk=submission_pk).first()
    return WorkUnderReview(recruitment, row, row.assignment, row.standing) if row else None


def get_work_by_assignment(recruitment: Recruitment, assignment_pk: int) -> WorkUnderReview | None:
    """Return the work by its assignment, with the panel's submission if there is one."""
    assignments = Assignment.objects.filter(recruitment=recruitment, pk=assignment_pk)
    assignment = assignments.select_related("study", "recruitment").first()
    if assignment is None:
        return None
    submissions = PanelSubmission.objects.filter(recruitment=recruitment, assignment=assignment)
    rows = submissions.order_by("pk").values_list("pk", Q(state__in=SENT_STATES))  # type: ignore[arg-type]  # Django takes a Q
    pks = {is_sent: assignment_pk for assignment_pk, is_sent in rows}
    if pks:
        return get_work_by_submission(recruitment, pks.get(True) or pks[False])
    is_known = PanelSubmission.objects.filter(recruitment=recruitment).exists()
    return WorkUnderReview(recruitment, None, assignment, "unsent" if is_known else "")


def unreversed_rejections(assignments) -> QuerySet[Verdict]:
    """Return rejections that were not taken back, carried out or not, the newest first."""
    rejections = Verdict.objects.filter(assignment__in=assignments, kind=Kind.REJECT, reversed_by=None)
    return rejections.order_by("-pk")


def panel_order_for_verdict(verdict: Verdict) -> PanelOrder | None:
    return PanelOrder.objects.filter(token=f"{verdict.kind}-{verdict.pk}").first()


def effective_rejection(assignment: Assignment) -> Verdict | None:
    """Return the effective rejection: not taken back, not refused by the panel, not cancelled before sending."""
    for rejection in unreversed_rejections([assignment]):
        if rejection.category == Verdict.AT_PANEL:
            if is_still_rejected_at_panel(rejection, current_panel_submission(assignment)):
                return rejection
        elif (order := panel_order_for_verdict(rejection)) is None or order.state not in INEFFECTIVE_STATES:
            return rejection
    return None


def current_panel_submission(assignment: Assignment) -> PanelSubmission | None:
    """Return the panel's submission of this work: the last submitted one, otherwise the last."""
    rows = list(PanelSubmission.objects.filter(assignment=assignment).order_by("-pk"))
    return next((row for row in rows if row.state in SENT_STATES), rows[0] if rows else None)


def is_still_rejected_at_panel(verdict: Verdict, submission: PanelSubmission | None) -> bool:
    """Return whether a rejection made at the panel is still in force. The panel may change its state at any time."""
    return submission is not None and submission.pk == verdict.submission_id and submission.state == REJECTED


def record_panel_rejection(assignment: Assignment) -> Verdict | None:
    """Record a rejection made at the panel once, so that the annotator can appeal.

    Return None if the panel shows no rejection, or if a rejection of this work was taken back in heval.
    """
    submission = current_panel_submission(assignment)
    was_taken_back = Verdict.objects.filter(assignment=assignment, kind=Kind.REVERSE).exists()
    if submission is None or submission.state != REJECTED or was_taken_back:
        return None
    verdict = Verdict.objects.create(
        submission=submission,
        assignment=assignment,
        kind=Kind.REJECT,
        category=Verdict.AT_PANEL,
        message=REJECTED_AT_PANEL_MESSAGE,
    )
    audit.record("note rejection at the panel", study=assignment.study, by=None, assignment_code=assignment.code)
    return verdict


def lock_annotator(annotator_id: int) -> None:
    """Lock a person, so that decisions about them wait for each other."""
    Annotator.objects.select_for_update(no_key=True, of=("self",)).get(pk=annotator_id)


def reason_not_rejectable(work: WorkUnderReview) -> str:
    """Return why this work cannot be rejected, whatever the evidence; '' if it can."""
    assignment = work.assignment
    if assignment is None:
        return "The panel shows a person who is unknown in heval. This is never a reason to reject. Ask the person."
    if work.rejection_policy is None:
        return "heval does not reject work at this channel. Approve the work, or leave it undecided."
    if assignment.origin != Assignment.Origin.LIVE:
        return "This work has no real annotator: it is from a robot, a test run, or a file. You need not decide."
    if assignment.withdrawn_at:
        return "The annotator has withdrawn and gets the promised pay. You need not decide about the work."
    ending = assignment.released_reason
    if ending and not assignment.submitted_at and ending not in ("expired", "returned"):
        return "heval ended this visit early. Pay the amount promised for this."
    if work.standing and work.standing not in REJECTABLE_STATUSES:
        return f"Status: {MATCH_STATUSES[work.standing][0]}. {MATCH_STATUSES[work.standing][1]}".strip()
    if not work.standing and not assignment.submitted_at:
        return "The work is not finished, and no panel shows it. Wait until it is submitted."
    if effective_rejection(assignment):
        return "The work is rejected already. To change this, take the rejection back."
    if effective_approval(work):
        return "The work is approved already. You need not do anything."
    return ""


def effective_approval(work: WorkUnderReview) -> Verdict | None:
    """Return the effective approval: not refused by the panel, and not cancelled before sending."""
    order = _latest_approval_order(work.submission) if work.submission else None
    return None if order and order.state in INEFFECTIVE_STATES else _find_approval(work)


def _find_approval(work: WorkUnderReview) -> Verdict | None:
    approvals = Verdict.objects.filter(kind=Kind.APPROVE)
    same_work = {"submission": work.submission} if work.submission else work.verdict_columns
    return approvals.filter(**same_work).first()


def _latest_approval_order(submission: PanelSubmission | None) -> PanelOrder | None:
    return PanelOrder.objects.filter(submission=submission, operation="approve").order_by("-pk").first()


def clean_message_to_annotator(study: Study, text: str, min_length: int = 1, label: str = "message") -> str:
    """Validate and return a message to an annotator. Raises ActionRefused naming the problem."""
    try:
        text = clean_text(text).strip()
    except TextRefused as refused:
        raise ActionRefused(f"The {label}: {refused}") from None
    if MESSAGE_PLACEHOLDER in text:
        raise ActionRefused(f"The {label} still says “{MESSAGE_PLACEHOLDER}”. Replace this with your own words.")
    if is_blank(text) or len(text) < min_length:
        raise ActionRefused(f"The {label} has {len(text)} characters. Write at least {min_length}.")
    if len(text) > MAX_MESSAGE_LENGTH:
        raise ActionRefused(f"The {label} has {len(text)} characters. Shorten it to at most {MAX_MESSAGE_LENGTH}.")
    for name in System.objects.filter(study=study).values_list("name", flat=True):
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE):
            raise ActionRefused(
                f"The {label} names the system “{name}”. Remove it: annotators must not learn the names of systems."
            )
    return text


def validate_rejection(
    work: WorkUnderReview, category: str, message: str, note: str = ""
) -> tuple[WorkEvidence, RejectionGround, str]:
    """Return the evidence of a rejection, measured now, and the message to send. Raises ActionRefused with the reason."""
    assignment, policy = work.assignment, work.rejection_policy
    if (reason := reason_not_rejectable(work)) or assignment is None or policy is None:
        raise ActionRefused(reason)
    evidence = measure_work_evidence(assignment)
    grounds = {row.category: row for row in assess_rejection_grounds(policy, evidence, bool(assignment.submitted_at))}
    if category not in grounds:
        raise ActionRefused("The panel has no such category. Choose one of its categories.")
    ground = grounds[category]
    if ground.missing:
        raise ActionRefused(f"{category} cannot be chosen: {ground.missing}. Choose another category.")
    if ground.needs_note and is_blank(note):
        raise ActionRefused(f"{category} has no measured evidence. Describe your observations in the note.")
    return evidence, ground, clean_message_to_annotator(assignment.study, message, policy.min_message_length)


def reject_work(work: WorkUnderReview, category: str, message: str, by, note: str = "") -> Verdict:
    """Reject one piece of work, by one person's decision.

    Answers and place stay; exclusion is separate.
    Everything is checked again, because it may have changed since the form was shown. Raises ActionRefused.
    """
    check_permission_or_404(by, Action.REJECT, work.recruitment.study)
    with transaction.atomic():
        work = _lock_and_reload(work)
        evidence, _, message = validate_rejection(work, category, message, note)
        verdict = Verdict.objects.create(
            **work.verdict_columns,
            kind=Kind.REJECT,
            category=category,
            message=message,
            note=note.strip(),
            evidence=evidence.as_json(),
            by=by,
        )
        code = work.assignment.code if work.assignment else ""
        audit.record("reject", study=work.recruitment.study, by=by, assignment_code=code, category=category)
        if work.submission and "reject" in available_operations(work.recruitment):
            token, submission = f"reject-{verdict.pk}", work.submission
            get_or_create_order(
                work.recruitment, "reject", token, submission=submission, by=by, category=category, message=message
            )
    return verdict


def approve_work(work: WorkUnderReview, by) -> Verdict:
    """Approve one piece of work.

    Idempotent. Raises ActionRefused if a rejection is in force, which must be taken back instead.
    """
    check_permission_or_404(by, Action.REJECT, work.recruitment.study)
    with transaction.atomic():
        work = _lock_and_reload(work)
        if verdict := effective_approval(work):
            return verdict
        if work.assignment and effective_rejection(work.assignment):
            raise ActionRefused("The work is rejected. Take back the rejection instead.")
        if work.submission is None and not (work.assignment and work.assignment.submitted_at):
            raise ActionRefused("The work is not finished, and no panel shows it. Wait until it is submitted.")
        if work.submission and work.submission.state not in SENT_STATES:
            _require_renewable_credit(work)
        verdict = _find_approval(work) or Verdict.objects.create(**work.verdict_columns, kind=Kind.APPROVE, by=by)
        code = work.assignment.code if work.assignment else ""
        audit.record("approve", study=work.recruitment.study, by=by, assignment_code=code)
        submission = work.submission
        if submission and submission.state != APPROVED and "approve" in available_operations(work.recruitment):
            (token,) = _approval_tokens([submission])
            get_or_create_order(work.recruitment, "approve", token, submission=submission, by=by, message="")
    return verdict


def _require_renewable_credit(work: WorkUnderReview) -> None:
    """Allow refused or revoked credit to be ordered again.

    Raises ActionRefused for all other work that was never submitted.
    """
    is_credited = (
        REGISTRY[work.recruitment.channel].credits_on_completion and work.assignment and work.assignment.submitted_at
    )
    order = _latest_approval_order(work.submission)
    if not is_credited or order is None:
        raise ActionRefused(
            "The work was not submitted at the panel, so nothing can be approved there. Wait until it is submitted."
        )
    if order.state not in INEFFECTIVE_STATES:
        raise ActionRefused("The credit is ordered already. See its status on the panel page.")


def approve_submissions(recruitment: Recruitment, submissions: Sequence[PanelSubmission], by) -> int:
    """Approve many pieces of work with a constant number of queries. The caller leaves out rejected ones."""
    if by is None:  # with ignore_conflicts, SQLite would also ignore that error and write nothing
        raise ValueError("Somebody approves.")
    check_permission_or_404(by, Action.REJECT, recruitment.study)
    with transaction.atomic():
        Verdict.objects.bulk_create(
            [Verdict(submission=row, assignment=row.assignment, kind=Kind.APPROVE, by=by) for row in submissions],
            ignore_conflicts=True,
            batch_size=500,
        )
        return create_orders(recruitment, "approve", _approval_tokens(submissions), by=by, message="")


def _approval_tokens(rows: Sequence[PanelSubmission]) -> dict[str, PanelSubmission]:
    """Return the token of each next approval. Refused and cancelled orders keep their own tokens."""
    orders = PanelOrder.objects.filter(submission__in=rows, operation="approve").order_by()
    n_earlier = dict(orders.values_list("submission").annotate(n=Count("pk")))
    return {f"approve-{row.pk}" + (f"-{n}" if (n := n_earlier.get(row.pk, 0)) else ""): row for row in rows}


def create_rejection_reversal(rejection: Verdict, by, message: str = "") -> Verdict:
    """Take a rejection back.

    The new verdict's ``evidence`` says how the person is paid. "unsent": the panel never received the rejection and
    gets an approval. "hand": the panel cannot reverse it, and a compensation is due.
    """
    check_permission_or_404(by, Action.REJECT, rejection.assignment.study)
    if rejection.kind != Kind.REJECT:
        raise ActionRefused("This decision is not a rejection. Choose a rejection to take back.")
    assignment, study = rejection.assignment, rejection.assignment.study
    message = clean_message_to_annotator(study, message) if message.strip() else ""
    try:
        with transaction.atomic():
            lock_annotator(assignment.annotator_id)
            method = _reversal_method(rejection, by)
            evidence = {"way": method} | (_record_compensation(assignment, by) if method == "hand" else {})
            reversal = Verdict.objects.create(
                submission=rejection.submission,
                assignment=assignment,
                kind=Kind.REVERSE,
                message=message,
                by=by,
                reverses=rejection,
                evidence=evidence,
            )
            audit.record("reverse rejection", study=study, by=by, assignment_code=assignment.code, way=method)
            submission = rejection.submission if method == "unsent" else None
            if submission and submission.state == SUBMITTED:
                approve_work(_require_work(get_work_by_submission(submission.recruitment, submission.pk)), by)
    except IntegrityError:
        raise ActionRefused("The rejection was taken back already. You need not do anything.") from None
    return reversal


def _record_compensation(assignment: Assignment, by) -> dict[str, str]:
    """Record the amount that the panel will not pay any more, to be paid by hand."""
    if (owed := pay_statement(assignment)) is None:
        return {}
    rows = Payment.objects.filter(assignment=assignment, kind__in=Payment.COVERING, state__in=["ordered", "paid"])
    amount = owed.amount - total_amount(rows)
    if amount <= 0:
        return {}
    extra = ExtraPayment(assignment, amount, "The rejection of your work was taken back.")
    add_extra_payments(assignment.recruitment, [extra], Payment.Kind.COMPENSATION, by)
    return {"compensation": f"{amount:.2f}", "currency": owed.currency}


def _reversal_method(verdict: Verdict, by) -> str:
    order, submission = panel_order_for_verdict(verdict), verdict.submission
    if order and (order.state in INEFFECTIVE_STATES or cancel_order(order, by=by)):
        return "unsent"
    if submission and submission.state == APPROVED:
        return "unsent"
    if verdict.category == Verdict.AT_PANEL and submission.state == SUBMITTED:
        return "unsent"  # the panel has reopened it
    return "hand"


def order_return_request(work: WorkUnderReview, message: str, by) -> PanelOrder:
    """Ask the person to return the task before any rejection. Only once; the panel asks, and the person decides."""
    check_permission_or_404(by, Action.REJECT, work.recruitment.study)
    if work.submission is None or "request_return" not in available_operations(work.recruitment):
        raise ActionRefused("heval cannot ask for a return here. Write to the annotator at the panel.")
    if work.submission.state not in ("working", "submitted"):
        raise ActionRefused(
            "The panel has decided, or the annotator has left, so there is nothing to return. You need not do anything."
        )
    token = f"return-{work.submission.pk}"
    if PanelOrder.objects.filter(token=token).exists():
        raise ActionRefused("The annotator was asked already. Wait for the answer at the panel.")
    message = clean_message_to_annotator(work.recruitment.study, message)
    return get_or_create_order(
        work.recruitment, "request_return", token, submission=work.submission, by=by, message=message
    )


def _lock_and_reload(work: WorkUnderReview) -> WorkUnderReview:
    """Return the current work, with its person locked."""
    if (row := work.assignment or work.submission) is None:
        raise ValueError("There is no work.")
    lock_annotator(row.annotator_id)
    if work.submission:
        return _require_work(get_work_by_submission(work.recruitment, work.submission.pk))
    return _require_work(get_work_by_assignment(work.recruitment, row.pk))


def _require_work(work: WorkUnderReview | None) -> WorkUnderReview:
    if work is None:
        raise PanelSubmission.DoesNotExist
    return work


# Approve all work that was finished both in heval and at the panel.


def finished_submissions_awaiting_approval(recruitment: Recruitment) -> QuerySet[PanelSubmission]:
    """Return work that was finished at both and not rejected in heval."""
    rejected = Verdict.objects.filter(assignment=OuterRef("assignment"), kind=Verdict.Kind.REJECT, reversed_by=None)
    # If the panel rejected the work but shows it as undecided again, heval has no decision about it.
    rejected_in_heval = rejected.exclude(category=Verdict.AT_PANEL)
    return submissions_with_match_status(recruitment).filter(~Exists(rejected_in_heval), standing="matched")


def submissions_to_approve(recruitment: Recruitment) -> QuerySet[PanelSubmission]:
    """Return those without an ordered approval, including approvals that the panel refused.

    The cause of the refusal, such as a lack of money, may be fixed by now.
    """
    ordered = PanelOrder.objects.filter(submission=OuterRef("pk"), operation="approve")
    return finished_submissions_awaiting_approval(recruitment).filter(
        ~Exists(ordered.exclude(state=PanelOrder.State.REFUSED))
    )


def approve_matched_submissions(recruitment: Recruitment, by) -> int:
    """Order the approval of all work finished at both. Skip work with an earlier order or another decision."""
    return approve_submissions(recruitment, list(submissions_to_approve(recruitment).select_related("assignment")), by)


# Appeals: an annotator objects to a decision, and a person who did not make it answers by a promised date.
#
# The only writer of Appeal.


Subject, Released = Appeal.Subject, Assignment.Released
ANSWER_DEADLINE = timedelta(days=14)
# Answered, or without need of an answer: the barring is lifted, or the rejection was taken back or overtaken by the panel.
_CLOSED = (
    Q(answered_at__isnull=False)
    | Q(barring__lifted_at__isnull=False)
    | Q(verdict__submission__state=APPROVED)
    | Q(verdict__reversed_by__isnull=False)
)


def create_appeal(assignment: Assignment, text: str, subject: str = Subject.REJECTION) -> Appeal:
    """Store an appeal: one per rejection, made in heval or at the panel, per barring, or per end by wrong answers.

    Raises ActionRefused with a message for the annotator.
    """
    find: dict[str, Callable[[], dict[str, Any]]] = {
        Subject.REJECTION: lambda: _rejection_to_appeal(assignment),
        Subject.BARRING: lambda: _barring_to_appeal(assignment.study, assignment.annotator_id, assignment),
        Subject.CHECKS: lambda: _failed_checks_to_appeal(assignment),
    }
    return _store_appeal(assignment.annotator_id, text, find[subject])


def create_appeal_of_refused_visitor(study: Study, annotator: Annotator, text: str) -> Appeal:
    """Store an appeal against a barring, of a person whom a link of the study refused. They may have no assignment in it.

    Raises ActionRefused with a message for the annotator.
    """
    return _store_appeal(annotator.pk, text, lambda: _barring_to_appeal(study, annotator.pk))


def _store_appeal(annotator_id: int, text: str, find_subject: Callable[[], dict[str, Any]]) -> Appeal:
    try:
        text = clean_text(text).strip()
    except TextRefused as refused:
        raise ActionRefused(str(refused)) from None
    if is_blank(text):
        raise ActionRefused(gettext("Your objection is empty. Please write a few words."))
    if len(text) > MAX_MESSAGE_LENGTH:
        message = ngettext(
            "Your objection is too long. Please use at most %(n)s character.",
            "Your objection is too long. Please use at most %(n)s characters.",
            MAX_MESSAGE_LENGTH,
        )
        raise ActionRefused(message % {"n": MAX_MESSAGE_LENGTH})
    try:
        with transaction.atomic():
            lock_annotator(annotator_id)
            appeal = Appeal.objects.create(**find_subject(), text=text, due_at=timezone.now() + ANSWER_DEADLINE)
            audit.record(
                "appeal", study=appeal.work.study, by=None, assignment_code=appeal.work.code, subject=appeal.subject
            )
            record_attention(appeal.work.study, "an annotator has objected", appeal.pk)
    except IntegrityError:
        raise ActionRefused(
            gettext(
                "You have already sent an objection, and the researchers are reading it. You do not need to send it again."
            )
        ) from None
    return appeal


def _rejection_to_appeal(assignment: Assignment) -> dict[str, Any]:
    verdict = effective_rejection(assignment) or record_panel_rejection(assignment)
    if verdict is None:
        raise ActionRefused(gettext("Your work is not rejected, so you do not need to object."))
    return {"verdict": verdict, "rejected_by_id": verdict.by_id}


def _barring_to_appeal(study: Study, annotator_id: int, page: Assignment | None = None) -> dict[str, Any]:
    """Return what an objection to the barring is about. People of the study that barred answer, wherever the page is.

    ``page``: the assignment from whose page the annotator objects; None if they were refused before a first one.
    """
    barrings = list(active_barrings(study).filter(annotator=annotator_id))
    # First the study's own, as on the page.
    barrings.sort(key=lambda barring: (barring.study_id != study.pk, -barring.pk))
    barring, work = barrings[0] if barrings else None, page
    if barring is not None and (page is None or barring.study_id != page.study_id):
        done = Assignment.objects.filter(study=barring.study_id, annotator=annotator_id, batch__isnull=False)
        work = done.exclude(origin=Assignment.Origin.TEST).order_by("-pk").first() or page
    if barring is None or work is None:
        raise ActionRefused(gettext("You may do further parts, so you do not need to object."))
    return {"barring": barring, "assignment": work, "rejected_by_id": barring.by_id}


def _failed_checks_to_appeal(assignment: Assignment) -> dict[str, Any]:
    if assignment.origin == Assignment.Origin.TEST:
        raise ActionRefused(
            gettext("This is a test run, so nobody would answer. Only objections of annotators are stored.")
        )
    if not has_ended_by_wrong_answers(assignment):
        raise ActionRefused(gettext("Your work did not end because of wrong answers, so you do not need to object."))
    return {"assignment": assignment}


def answer_appeal(
    appeal: Appeal, answer_text: str, is_upheld: bool, by, denies_rejecting: bool = False
) -> Verdict | None:
    """Answer an appeal once, by a person other than the one who rejected or barred.

    If upheld, lift the barring, change how the assignment ended from wrong answers to a fault of the study, or take the
    rejection back and return the reversal. Raises ActionRefused.
    ``denies_rejecting``: the answering person confirms that they did not reject the work at the panel; heval cannot know.
    """
    study, verdict, barring = appeal.work.study, appeal.verdict, appeal.barring
    check_permission_or_404(by, Action.REJECT, study)
    if by.pk == appeal.rejected_by_id and barring is not None:
        raise ActionRefused("You barred this annotator. Another editor must answer, or you lift the barring.")
    if by.pk == appeal.rejected_by_id:
        raise ActionRefused("You rejected this work. Another editor must answer.")
    is_by_unknown_person = verdict is not None and appeal.rejected_by_id is None
    if is_by_unknown_person and not denies_rejecting:
        raise ActionRefused(
            "The person who rejected this work at the panel cannot answer. Confirm that it was not you."
        )
    if is_appeal_settled(appeal):
        raise ActionRefused(
            "The barring is lifted since. No answer is needed."
            if barring
            else "The panel has approved this work since. No answer is needed."
        )
    answer_text = clean_message_to_annotator(study, answer_text, label="answer")
    with transaction.atomic():
        unanswered = Appeal.objects.filter(pk=appeal.pk, answered_at=None)
        if not unanswered.update(answer=answer_text, is_upheld=is_upheld, answered_by=by, answered_at=Now()):
            raise ActionRefused("This appeal is already answered. You need not do anything.")
        erase_closed_appeals_of_withdrawn()
        denial = {"says_another": True} if is_by_unknown_person else {}
        audit.record(
            "answer appeal", study=study, by=by, assignment_code=appeal.work.code, is_upheld=is_upheld, **denial
        )
        if is_upheld and barring is not None:
            lift_barring(barring, answer_text, by)
        if is_upheld and appeal.subject == Subject.CHECKS and (before := change_failed_checks_to_fault(appeal.work.pk)):
            outcomes = {"before": before, "after": Released.FAULT}
            audit.record("change outcome", study=study, by=by, assignment_code=appeal.work.code, **outcomes)
        if is_upheld and verdict is not None and not Verdict.objects.filter(reverses=verdict).exists():
            return create_rejection_reversal(verdict, by, answer_text)
    return None


def erase_closed_appeals_of_withdrawn() -> int:
    """Erase what people who left a study wrote in appeals that are closed. Return the number of these appeals.

    The answer stays, for the person to read. An appeal without an answer is deleted.
    """
    left = Q(assignment__withdrawn_at__isnull=False) | Q(verdict__assignment__withdrawn_at__isnull=False)
    closed = Appeal.objects.filter(pk__in=Appeal.objects.filter(left & _CLOSED).exclude(text="").values("pk"))
    with allowing_erasure():
        n_deleted, _ = closed.filter(answered_at=None).delete()
        return n_deleted + closed.filter(answered_at__isnull=False).update(text="")


def has_open_appeal(assignment: Assignment) -> bool:
    """Return whether an objection of this person in this study still waits for an answer."""
    own = Assignment.objects.filter(study=assignment.study_id, annotator=assignment.annotator_id)
    return Appeal.objects.filter(Q(assignment__in=own) | Q(verdict__assignment__in=own)).exclude(_CLOSED).exists()


def is_appeal_settled(appeal: Appeal) -> bool:
    """Return whether an open appeal needs no answer any more: the barring is lifted, or the panel now pays the work."""
    if appeal.answered_at is not None:
        return False
    if appeal.barring is not None:
        return appeal.barring.lifted_at is not None
    submission = appeal.verdict.submission if appeal.verdict else None
    return submission is not None and submission.state == APPROVED


def appeals_awaiting_answer(recruitments: Iterable[Recruitment] | QuerySet[Recruitment]) -> QuerySet[Appeal]:
    """Return open appeals with ``is_late``: late ones first, then by promised date."""
    rejected = Q(verdict__assignment__recruitment__in=recruitments, verdict__reversed_by=None)
    barred_or_failed = Q(assignment__recruitment__in=recruitments, barring__lifted_at=None)
    waiting = Appeal.objects.filter(rejected | barred_or_failed, answered_at=None)
    waiting = waiting.exclude(verdict__submission__state=APPROVED)
    late = Case(When(due_at__lt=Now(), then=Value(True)), default=Value(False), output_field=BooleanField())
    return (
        waiting.annotate(is_late=late)
        .select_related("verdict__assignment__recruitment", "assignment", "barring", "rejected_by")
        .order_by("due_at", "pk")
    )


def eligible_appeal_answerers(study: Study, rejected_by_id: int | None) -> list:
    """Return the people who may answer an appeal: all editors of the study except the person who rejected.

    For rejections made at the panel, that person is unknown; the answering editor must confirm that it was not them.
    """
    return list(allowed_active_member_users(Action.REJECT, study).exclude(pk=rejected_by_id))
