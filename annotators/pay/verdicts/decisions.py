"""Approve, reject, take a rejection back. The only writer of Verdict.

One piece of work at a time: there is no way here to reject several, and none to reject by a rule.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.db.models import Count, Q, QuerySet

from annotators.models import Annotator, Assignment, PanelOrder, PanelSubmission, Payment, Recruitment, Verdict
from annotators.models.constants import APPROVED, REJECTED, SUBMITTED
from annotators.pay.ledger import ExtraPayment, add_extra_payments, total_of
from annotators.pay.statement import pay_statement
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels import RejectionPolicy
from annotators.recruitment.panels.orders import cancel_order, create_order, create_orders
from annotators.recruitment.panels.reconcile import MATCH_STATUSES, SENT_STATES, with_match_status
from annotators.recruitment.panels.secrets import available_operations
from studies.access import Action, check_permission
from studies.models import Study, System, audit
from studies.services.lifecycle import ActionRefused
from studies.stimuli.texts import TextRefused, clean_text, is_blank

from .evidence import WorkEvidence, measure_work
from .grounds import MESSAGE_PLACEHOLDER, RejectionGround, grounds_for

Kind, State = Verdict.Kind, PanelOrder.State
# Only work that reached the panel, and of which we know the person, can be refused there.
REJECTABLE_STATUSES = ("matched", "orphan")
MAX_MESSAGE_LENGTH = 2000
# What became of the order for it: until the panel has one, a rejection that nobody carried out is none.
INEFFECTIVE_STATES = (State.REFUSED, State.CANCELLED)
REJECTED_AT_PANEL_MESSAGE = "The work was rejected at the panel. No reason was written here."


@dataclass(frozen=True, slots=True)
class WorkUnderReview:
    """One piece of work to be decided about: as the panel shows it, as it is known here, and how the two stand to each other."""

    recruitment: Recruitment
    submission: PanelSubmission | None
    assignment: Assignment | None
    standing: str = ""

    @property
    def rejection_policy(self) -> RejectionPolicy | None:
        return REGISTRY[self.recruitment.channel].rejection_policy

    @property
    def about(self) -> dict:
        return {"submission": self.submission, "assignment": self.assignment}


def work_of_submission(recruitment: Recruitment, pk: int) -> WorkUnderReview | None:
    rows = with_match_status(recruitment).select_related(
        "assignment__study", "assignment__recruitment", "task", "annotator"
    )
    row = rows.filter(pk=pk).first()
    return WorkUnderReview(recruitment, row, row.assignment, row.standing) if row else None


def work_of_assignment(recruitment: Recruitment, pk: int) -> WorkUnderReview | None:
    """The same, found by the work here: what the panel shows of it is taken, where it shows something."""
    assignment = (
        Assignment.objects.filter(recruitment=recruitment, pk=pk).select_related("study", "recruitment").first()
    )
    if assignment is None:
        return None
    mine = PanelSubmission.objects.filter(recruitment=recruitment, assignment=assignment)
    pks = {is_sent: pk for pk, is_sent in mine.order_by("pk").values_list("pk", Q(state__in=SENT_STATES))}
    if pks:
        return work_of_submission(recruitment, pks.get(True) or pks[False])
    is_known = PanelSubmission.objects.filter(recruitment=recruitment).exists()
    return WorkUnderReview(recruitment, None, assignment, "unsent" if is_known else "")


def unreversed_rejections(assignments) -> QuerySet[Verdict]:
    """Rejections of these that nobody has taken back, whether or not the panel has carried them out, the newest first."""
    mine = Verdict.objects.filter(assignment__in=assignments, kind=Kind.REJECT, reversed_by=None)
    return mine.order_by("-pk")


def order_of(verdict: Verdict) -> PanelOrder | None:
    return PanelOrder.objects.filter(token=f"{verdict.kind}-{verdict.pk}").first()


def effective_rejection(assignment: Assignment) -> Verdict | None:
    """The rejection that holds: not taken back, and neither refused by the panel nor cancelled before it was sent."""
    for one in unreversed_rejections([assignment]):
        if one.category == Verdict.AT_PANEL:
            if is_still_rejected_at_panel(one, current_submission(assignment)):
                return one
        elif (order := order_of(one)) is None or order.state not in INEFFECTIVE_STATES:
            return one
    return None


def current_submission(assignment: Assignment) -> PanelSubmission | None:
    """What the panel shows of this work: of several the last that was sent, else the last."""
    mine = list(PanelSubmission.objects.filter(assignment=assignment).order_by("-pk"))
    return next((one for one in mine if one.state in SENT_STATES), mine[0] if mine else None)


def is_still_rejected_at_panel(verdict: Verdict, submission: PanelSubmission | None) -> bool:
    """Whether a rejection that was made at the panel holds: as long as the panel shows it, which may change its mind without us."""
    return submission is not None and submission.pk == verdict.submission_id and submission.state == REJECTED


def record_panel_rejection(assignment: Assignment) -> Verdict | None:
    """Write down that the panel shows this work as rejected where nobody here decided so: once, for whoever objects to it. None where it
    shows no such thing, or where a rejection of this work was taken back here."""
    shown = current_submission(assignment)
    was_taken_back = Verdict.objects.filter(assignment=assignment, kind=Kind.REVERSE).exists()
    if shown is None or shown.state != REJECTED or was_taken_back:
        return None
    made = Verdict.objects.create(
        submission=shown,
        assignment=assignment,
        kind=Kind.REJECT,
        category=Verdict.AT_PANEL,
        message=REJECTED_AT_PANEL_MESSAGE,
    )
    audit.record("note rejection at the panel", study=assignment.study, by=None, assignment_code=assignment.code)
    return made


def lock_annotator(annotator_id: int) -> None:
    """Lock a person: who decides about them waits for whoever does so just now."""
    Annotator.objects.select_for_update(no_key=True, of=("self",)).get(pk=annotator_id)


def reason_not_rejectable(work: WorkUnderReview) -> str:
    """Why this work cannot be rejected, whatever was measured; '' where nothing forbids it."""
    one = work.assignment
    if one is None:
        return "The panel shows somebody who is unknown here. That is never a reason to reject."
    if work.rejection_policy is None:
        return "At this channel nothing is refused through heval."
    if one.origin != Assignment.Origin.LIVE:
        return "This is nobody's work: a robot's, a try, or read from a file."
    if one.withdrawn_at:
        return "The person has left the study: what they did is paid as it was promised, and not judged any more."
    if one.released_reason and not one.submitted_at and one.released_reason not in ("expired", "returned"):
        return "The visit was ended by us: what was promised for that is paid."
    if work.standing and work.standing not in REJECTABLE_STATUSES:
        return f"It stands so: {MATCH_STATUSES[work.standing][0]}. {MATCH_STATUSES[work.standing][1]}".strip()
    if not work.standing and not one.submitted_at:
        return "It is not finished, and no panel shows it."
    if effective_rejection(one):
        return "It is rejected already."
    if effective_approval(work):
        return "It is approved already."
    return ""


def effective_approval(work: WorkUnderReview) -> Verdict | None:
    """The approval that holds: neither refused by the panel nor cancelled before it was sent."""
    order = _latest_approval_order(work.submission) if work.submission else None
    return None if order and order.state in INEFFECTIVE_STATES else _find_approval(work)


def _find_approval(work: WorkUnderReview) -> Verdict | None:
    mine = Verdict.objects.filter(kind=Kind.APPROVE)
    return (mine.filter(submission=work.submission) if work.submission else mine.filter(**work.about)).first()


def _latest_approval_order(submission: PanelSubmission) -> PanelOrder | None:
    return PanelOrder.objects.filter(submission=submission, operation="approve").order_by("-pk").first()


def clean_message(study: Study, text: str, min_length: int = 1, label: str = "message") -> str:
    """The words as they may reach an annotator. Raises NotNow naming what is wrong."""
    try:
        text = clean_text(text).strip()
    except TextRefused as refused:
        raise ActionRefused(f"The {label}: {refused}") from None
    if MESSAGE_PLACEHOLDER in text:
        raise ActionRefused(f"The {label} still says “{MESSAGE_PLACEHOLDER}”: replace that by your own words.")
    if is_blank(text) or len(text) < min_length:
        raise ActionRefused(f"The {label} has {len(text)} characters; at least {min_length} are needed.")
    if len(text) > MAX_MESSAGE_LENGTH:
        raise ActionRefused(f"The {label} has {len(text)} characters; at most {MAX_MESSAGE_LENGTH} are taken.")
    for name in System.objects.filter(study=study).values_list("name", flat=True):
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE):
            raise ActionRefused(
                f"The {label} names the system “{name}”. Annotators must not learn what a system is called."
            )
    return text


def validate_rejection(
    work: WorkUnderReview, category: str, message: str, note: str = ""
) -> tuple[WorkEvidence, RejectionGround, str]:
    """What a rejection rests on, measured now, with the message as it would be sent. Raises NotNow with what forbids it."""
    if words := reason_not_rejectable(work):
        raise ActionRefused(words)
    found = measure_work(work.assignment)
    open_to = {
        one.category: one for one in grounds_for(work.rejection_policy, found, bool(work.assignment.submitted_at))
    }
    if category not in open_to:
        raise ActionRefused("Choose a category of the panel.")
    ground = open_to[category]
    if ground.missing:
        raise ActionRefused(f"{category} cannot be chosen: {ground.missing}.")
    if ground.needs_note and is_blank(note):
        raise ActionRefused(f"{category} rests on nothing that was measured: say in the note what you saw.")
    return found, ground, clean_message(work.assignment.study, message, work.rejection_policy.min_message_length)


def reject(work: WorkUnderReview, category: str, message: str, by, note: str = "") -> Verdict:
    """One person's decision about one piece of work. Answers stay, the place stays taken, exclusion is another matter.

    Everything is looked at anew: what a form showed may have changed. Raises NotNow.
    """
    check_permission(by, Action.REJECT, work.recruitment.study)
    with transaction.atomic():
        work = _lock_and_reload(work)
        found, _, message = validate_rejection(work, category, message, note)
        made = Verdict.objects.create(
            **work.about,
            kind=Kind.REJECT,
            category=category,
            message=message,
            note=note.strip(),
            evidence=found.as_json(),
            by=by,
        )
        audit.record(
            "reject", study=work.recruitment.study, by=by, assignment_code=work.assignment.code, category=category
        )
        if work.submission and "reject" in available_operations(work.recruitment):
            create_order(
                work.recruitment,
                "reject",
                f"reject-{made.pk}",
                submission=work.submission,
                by=by,
                category=category,
                message=message,
            )
    return made


def approve(work: WorkUnderReview, by) -> Verdict:
    """Approved once and for all; again it is the same decision. Raises NotNow where a rejection stands: that is taken back instead."""
    check_permission(by, Action.REJECT, work.recruitment.study)
    with transaction.atomic():
        work = _lock_and_reload(work)
        if made := effective_approval(work):
            return made
        if work.assignment and effective_rejection(work.assignment):
            raise ActionRefused("It is rejected. Take the rejection back instead.")
        if work.submission is None and not (work.assignment and work.assignment.submitted_at):
            raise ActionRefused("It is not finished, and no panel shows it.")
        if work.submission and work.submission.state not in SENT_STATES:
            _may_be_credited(work)
        made = _find_approval(work) or Verdict.objects.create(**work.about, kind=Kind.APPROVE, by=by)
        code = work.assignment.code if work.assignment else ""
        audit.record("approve", study=work.recruitment.study, by=by, assignment_code=code)
        submission = work.submission
        if submission and submission.state != APPROVED and "approve" in available_operations(work.recruitment):
            (token,) = _approval_tokens([submission])
            create_order(work.recruitment, "approve", token, submission=submission, by=by, message="")
    return made


def _may_be_credited(work: WorkUnderReview) -> None:
    """Credit that the panel refused, or that was taken back, may be ordered anew. Raises NotNow for everything else that never reached it."""
    is_credited = (
        REGISTRY[work.recruitment.channel].credits_on_completion and work.assignment and work.assignment.submitted_at
    )
    order = _latest_approval_order(work.submission)
    if not is_credited or order is None:
        raise ActionRefused("It was not sent to the panel: nothing there can be approved.")
    if order.state not in INEFFECTIVE_STATES:
        raise ActionRefused("Its credit is ordered already: the page of the panel says how that stands.")


def approve_submissions(recruitment: Recruitment, submissions: Sequence[PanelSubmission], by) -> int:
    """The same about many, in a number of queries that does not depend on how many. Rejected ones are left out by who asks."""
    if by is None:  # ignoring conflicts, SQLite would ignore that too, and write nothing
        raise ValueError("Somebody approves.")
    check_permission(by, Action.REJECT, recruitment.study)
    with transaction.atomic():
        Verdict.objects.bulk_create(
            [Verdict(submission=row, assignment=row.assignment, kind=Kind.APPROVE, by=by) for row in submissions],
            ignore_conflicts=True,
            batch_size=500,
        )
        return create_orders(recruitment, "approve", _approval_tokens(submissions), by=by, message="")


def _approval_tokens(rows: Sequence[PanelSubmission]) -> dict[str, PanelSubmission]:
    """The token of each one's next approval: what was refused or cancelled keeps its own for ever."""
    orders = PanelOrder.objects.filter(submission__in=rows, operation="approve").order_by()
    before = dict(orders.values_list("submission").annotate(n=Count("pk")))
    return {f"approve-{row.pk}" + (f"-{n}" if (n := before.get(row.pk, 0)) else ""): row for row in rows}


def reverse_rejection(verdict: Verdict, by, message: str = "") -> Verdict:
    """Take a rejection back. ``evidence`` of what is made says by which way the person is paid now: "unsent" (the panel never heard of
    the rejection, and is told to approve), "hand" (no panel takes a rejection back, and somebody owes them a compensation)."""
    check_permission(by, Action.REJECT, verdict.assignment.study)
    if verdict.kind != Kind.REJECT:
        raise ActionRefused("That is no rejection.")
    assignment = verdict.assignment
    message = clean_message(assignment.study, message) if message.strip() else ""
    try:
        with transaction.atomic():
            lock_annotator(assignment.annotator_id)
            way = _way_to_take_back(verdict, by)
            evidence = {"way": way} | (_compensated(assignment, by) if way == "hand" else {})
            made = Verdict.objects.create(
                submission=verdict.submission,
                assignment=assignment,
                kind=Kind.REVERSE,
                message=message,
                by=by,
                reverses=verdict,
                evidence=evidence,
            )
            audit.record("reverse rejection", study=assignment.study, by=by, assignment_code=assignment.code, way=way)
            if way == "unsent" and verdict.submission and verdict.submission.state == SUBMITTED:
                approve(work_of_submission(verdict.submission.recruitment, verdict.submission_id), by)
    except IntegrityError:
        raise ActionRefused("It was taken back already.") from None
    return made


def _compensated(assignment: Assignment, by) -> dict[str, str]:
    """What is still owed to somebody whom the panel will not pay any more, written down to be paid by hand."""
    if (owed := pay_statement(assignment)) is None:
        return {}
    rows = Payment.objects.filter(assignment=assignment, kind__in=Payment.COVERING, state__in=["ordered", "paid"])
    amount = owed.amount - total_of(rows)
    if amount <= 0:
        return {}
    extra = ExtraPayment(assignment, amount, "The rejection of your work was taken back.")
    add_extra_payments(assignment.recruitment, [extra], Payment.Kind.COMPENSATION, by)
    return {"compensation": f"{amount:.2f}", "currency": owed.currency}


def _way_to_take_back(verdict: Verdict, by) -> str:
    order, submission = order_of(verdict), verdict.submission
    if order and (order.state in INEFFECTIVE_STATES or cancel_order(order, by=by)):
        return "unsent"
    if submission and submission.state == APPROVED:
        return "unsent"
    if verdict.category == Verdict.AT_PANEL and submission.state == SUBMITTED:
        return "unsent"  # the panel has opened it again
    return "hand"


def ask_for_return(work: WorkUnderReview, message: str, by) -> PanelOrder:
    """Ask the person to give the task back, before anybody speaks of rejecting. Once; the panel asks, the person decides."""
    check_permission(by, Action.REJECT, work.recruitment.study)
    if work.submission is None or "request_return" not in available_operations(work.recruitment):
        raise ActionRefused("This panel cannot ask for a return.")
    if work.submission.state not in ("working", "submitted"):
        raise ActionRefused("The panel has decided, or the person has left: there is nothing to give back.")
    token = f"return-{work.submission.pk}"
    if PanelOrder.objects.filter(token=token).exists():
        raise ActionRefused("They were asked already.")
    message = clean_message(work.recruitment.study, message)
    return create_order(work.recruitment, "request_return", token, submission=work.submission, by=by, message=message)


def _lock_and_reload(work: WorkUnderReview) -> WorkUnderReview:
    """The work as it is now, its person locked."""
    lock_annotator(work.assignment.annotator_id if work.assignment else work.submission.annotator_id)
    if work.submission:
        return work_of_submission(work.recruitment, work.submission.pk)
    return work_of_assignment(work.recruitment, work.assignment.pk)
