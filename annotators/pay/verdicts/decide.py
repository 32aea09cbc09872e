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
from annotators.pay.ledger import Extra, add, total_of
from annotators.pay.telling import pay_of
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels import Refusals
from annotators.recruitment.panels.orders import cancel, give, give_all
from annotators.recruitment.panels.reconcile import CLASSES, SENT, with_class
from annotators.recruitment.panels.secrets import can_order
from studies.access import Action, check
from studies.models import Study, System, audit
from studies.services.lifecycle import NotNow
from studies.stimuli.texts import TextRefused, clean_text, is_blank

from .grounds import TO_BE_SAID, Ground, grounds_for
from .measured import Measured, measured

Kind, State = Verdict.Kind, PanelOrder.State
# Only work that reached the panel, and of which we know the person, can be refused there.
MAY_BE_REJECTED = ("matched", "orphan")
LONGEST = 2000
# What became of the order for it: until the panel has one, a rejection that nobody carried out is none.
WITHOUT_EFFECT = (State.REFUSED, State.CANCELLED)
NO_WORDS = "The work was rejected at the panel. No reason was written here."


@dataclass(frozen=True, slots=True)
class Work:
    """One piece of work to be decided about: as the panel shows it, as it is known here, and how the two stand to each other."""

    recruitment: Recruitment
    submission: PanelSubmission | None
    assignment: Assignment | None
    standing: str = ""

    @property
    def refusals(self) -> Refusals | None:
        return REGISTRY[self.recruitment.channel].refusals

    @property
    def about(self) -> dict:
        return {"submission": self.submission, "assignment": self.assignment}


def work_of_submission(recruitment: Recruitment, pk: int) -> Work | None:
    rows = with_class(recruitment).select_related("assignment__study", "assignment__recruitment", "task", "annotator")
    row = rows.filter(pk=pk).first()
    return Work(recruitment, row, row.assignment, row.standing) if row else None


def work_of_assignment(recruitment: Recruitment, pk: int) -> Work | None:
    """The same, found by the work here: what the panel shows of it is taken, where it shows something."""
    assignment = (
        Assignment.objects.filter(recruitment=recruitment, pk=pk).select_related("study", "recruitment").first()
    )
    if assignment is None:
        return None
    mine = PanelSubmission.objects.filter(recruitment=recruitment, assignment=assignment)
    pks = {is_sent: pk for pk, is_sent in mine.order_by("pk").values_list("pk", Q(state__in=SENT))}
    if pks:
        return work_of_submission(recruitment, pks.get(True) or pks[False])
    is_known = PanelSubmission.objects.filter(recruitment=recruitment).exists()
    return Work(recruitment, None, assignment, "unsent" if is_known else "")


def rejections(assignments) -> QuerySet[Verdict]:
    """Rejections of these that nobody has taken back, whether or not the panel has carried them out, the newest first."""
    mine = Verdict.objects.filter(assignment__in=assignments, kind=Kind.REJECT, reversed_by=None)
    return mine.order_by("-pk")


def order_of(verdict: Verdict) -> PanelOrder | None:
    return PanelOrder.objects.filter(token=f"{verdict.kind}-{verdict.pk}").first()


def standing_rejection(assignment: Assignment) -> Verdict | None:
    """The rejection that holds: not taken back, and neither refused by the panel nor cancelled before it was sent."""
    for one in rejections([assignment]):
        if one.category == Verdict.AT_PANEL:
            if still_shown(one, shown_of(assignment)):
                return one
        elif (order := order_of(one)) is None or order.state not in WITHOUT_EFFECT:
            return one
    return None


def shown_of(assignment: Assignment) -> PanelSubmission | None:
    """What the panel shows of this work: of several the last that was sent, else the last."""
    mine = list(PanelSubmission.objects.filter(assignment=assignment).order_by("-pk"))
    return next((one for one in mine if one.state in SENT), mine[0] if mine else None)


def still_shown(verdict: Verdict, shown: PanelSubmission | None) -> bool:
    """Whether a rejection that was made at the panel holds: as long as the panel shows it, which may change its mind without us."""
    return shown is not None and shown.pk == verdict.submission_id and shown.state == REJECTED


def rejected_at_panel(assignment: Assignment) -> Verdict | None:
    """Write down that the panel shows this work as rejected where nobody here decided so: once, for whoever objects to it. None where it
    shows no such thing, or where a rejection of this work was taken back here."""
    shown = shown_of(assignment)
    was_taken_back = Verdict.objects.filter(assignment=assignment, kind=Kind.REVERSE).exists()
    if shown is None or shown.state != REJECTED or was_taken_back:
        return None
    made = Verdict.objects.create(
        submission=shown, assignment=assignment, kind=Kind.REJECT, category=Verdict.AT_PANEL, message=NO_WORDS
    )
    audit.record("note rejection at the panel", study=assignment.study, by=None, assignment_code=assignment.code)
    return made


def hold(annotator: int) -> None:
    """Lock a person: who decides about them waits for whoever does so just now."""
    Annotator.objects.select_for_update(no_key=True, of=("self",)).get(pk=annotator)


def hindrance(work: Work) -> str:
    """Why this work cannot be rejected, whatever was measured; '' where nothing forbids it."""
    one = work.assignment
    if one is None:
        return "The panel shows somebody who is unknown here. That is never a reason to reject."
    if work.refusals is None:
        return "At this channel nothing is refused through heval."
    if one.origin != Assignment.Origin.LIVE:
        return "This is nobody's work: a robot's, a try, or read from a file."
    if one.withdrawn_at:
        return "The person has left the study: what they did is paid as it was promised, and not judged any more."
    if one.released_reason and not one.submitted_at and one.released_reason not in ("expired", "returned"):
        return "The visit was ended by us: what was promised for that is paid."
    if work.standing and work.standing not in MAY_BE_REJECTED:
        return f"It stands so: {CLASSES[work.standing][0]}. {CLASSES[work.standing][1]}".strip()
    if not work.standing and not one.submitted_at:
        return "It is not finished, and no panel shows it."
    if standing_rejection(one):
        return "It is rejected already."
    if approval_of(work):
        return "It is approved already."
    return ""


def approval_of(work: Work) -> Verdict | None:
    """The approval that holds: neither refused by the panel nor cancelled before it was sent."""
    order = _approval_ordered(work.submission) if work.submission else None
    return None if order and order.state in WITHOUT_EFFECT else _approved(work)


def _approved(work: Work) -> Verdict | None:
    mine = Verdict.objects.filter(kind=Kind.APPROVE)
    return (mine.filter(submission=work.submission) if work.submission else mine.filter(**work.about)).first()


def _approval_ordered(submission: PanelSubmission) -> PanelOrder | None:
    return PanelOrder.objects.filter(submission=submission, operation="approve").order_by("-pk").first()


def said_to_person(study: Study, text: str, least: int = 1, what: str = "message") -> str:
    """The words as they may reach an annotator. Raises NotNow naming what is wrong."""
    try:
        text = clean_text(text).strip()
    except TextRefused as refused:
        raise NotNow(f"The {what}: {refused}") from None
    if TO_BE_SAID in text:
        raise NotNow(f"The {what} still says “{TO_BE_SAID}”: replace that by your own words.")
    if is_blank(text) or len(text) < least:
        raise NotNow(f"The {what} has {len(text)} characters; at least {least} are needed.")
    if len(text) > LONGEST:
        raise NotNow(f"The {what} has {len(text)} characters; at most {LONGEST} are taken.")
    for name in System.objects.filter(study=study).values_list("name", flat=True):
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE):
            raise NotNow(f"The {what} names the system “{name}”. Annotators must not learn what a system is called.")
    return text


def checked(work: Work, category: str, message: str, note: str = "") -> tuple[Measured, Ground, str]:
    """What a rejection rests on, measured now, with the message as it would be sent. Raises NotNow with what forbids it."""
    if words := hindrance(work):
        raise NotNow(words)
    found = measured(work.assignment)
    open_to = {one.category: one for one in grounds_for(work.refusals, found, bool(work.assignment.submitted_at))}
    if category not in open_to:
        raise NotNow("Choose a category of the panel.")
    ground = open_to[category]
    if ground.missing:
        raise NotNow(f"{category} cannot be chosen: {ground.missing}.")
    if ground.needs_note and is_blank(note):
        raise NotNow(f"{category} rests on nothing that was measured: say in the note what you saw.")
    return found, ground, said_to_person(work.assignment.study, message, work.refusals.least_characters)


def reject(work: Work, category: str, message: str, by, note: str = "") -> Verdict:
    """One person's decision about one piece of work. Answers stay, the place stays taken, exclusion is another matter.

    Everything is looked at anew: what a form showed may have changed. Raises NotNow.
    """
    check(by, Action.REJECT, work.recruitment.study)
    with transaction.atomic():
        work = _locked(work)
        found, _, message = checked(work, category, message, note)
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
        if work.submission and "reject" in can_order(work.recruitment):
            give(
                work.recruitment,
                "reject",
                f"reject-{made.pk}",
                submission=work.submission,
                by=by,
                category=category,
                message=message,
            )
    return made


def approve(work: Work, by) -> Verdict:
    """Approved once and for all; again it is the same decision. Raises NotNow where a rejection stands: that is taken back instead."""
    check(by, Action.REJECT, work.recruitment.study)
    with transaction.atomic():
        work = _locked(work)
        if made := approval_of(work):
            return made
        if work.assignment and standing_rejection(work.assignment):
            raise NotNow("It is rejected. Take the rejection back instead.")
        if work.submission is None and not (work.assignment and work.assignment.submitted_at):
            raise NotNow("It is not finished, and no panel shows it.")
        if work.submission and work.submission.state not in SENT:
            _may_be_credited(work)
        made = _approved(work) or Verdict.objects.create(**work.about, kind=Kind.APPROVE, by=by)
        code = work.assignment.code if work.assignment else ""
        audit.record("approve", study=work.recruitment.study, by=by, assignment_code=code)
        submission = work.submission
        if submission and submission.state != APPROVED and "approve" in can_order(work.recruitment):
            (token,) = _tokens([submission])
            give(work.recruitment, "approve", token, submission=submission, by=by, message="")
    return made


def _may_be_credited(work: Work) -> None:
    """Credit that the panel refused, or that was taken back, may be ordered anew. Raises NotNow for everything else that never reached it."""
    is_credited = (
        REGISTRY[work.recruitment.channel].credits_who_finish and work.assignment and work.assignment.submitted_at
    )
    order = _approval_ordered(work.submission)
    if not is_credited or order is None:
        raise NotNow("It was not sent to the panel: nothing there can be approved.")
    if order.state not in WITHOUT_EFFECT:
        raise NotNow("Its credit is ordered already: the page of the panel says how that stands.")


def approve_all(recruitment: Recruitment, rows: Sequence[PanelSubmission], by) -> int:
    """The same about many, in a number of queries that does not depend on how many. Rejected ones are left out by who asks."""
    if by is None:  # ignoring conflicts, SQLite would ignore that too, and write nothing
        raise ValueError("Somebody approves.")
    check(by, Action.REJECT, recruitment.study)
    with transaction.atomic():
        Verdict.objects.bulk_create(
            [Verdict(submission=row, assignment=row.assignment, kind=Kind.APPROVE, by=by) for row in rows],
            ignore_conflicts=True,
            batch_size=500,
        )
        return give_all(recruitment, "approve", _tokens(rows), by=by, message="")


def _tokens(rows: Sequence[PanelSubmission]) -> dict[str, PanelSubmission]:
    """The token of each one's next approval: what was refused or cancelled keeps its own for ever."""
    orders = PanelOrder.objects.filter(submission__in=rows, operation="approve").order_by()
    before = dict(orders.values_list("submission").annotate(n=Count("pk")))
    return {f"approve-{row.pk}" + (f"-{n}" if (n := before.get(row.pk, 0)) else ""): row for row in rows}


def reverse(verdict: Verdict, by, message: str = "") -> Verdict:
    """Take a rejection back. ``evidence`` of what is made says by which way the person is paid now: "unsent" (the panel never heard of
    the rejection, and is told to approve), "hand" (no panel takes a rejection back, and somebody owes them a compensation)."""
    check(by, Action.REJECT, verdict.assignment.study)
    if verdict.kind != Kind.REJECT:
        raise NotNow("That is no rejection.")
    assignment = verdict.assignment
    message = said_to_person(assignment.study, message) if message.strip() else ""
    try:
        with transaction.atomic():
            hold(assignment.annotator_id)
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
        raise NotNow("It was taken back already.") from None
    return made


def _compensated(assignment: Assignment, by) -> dict[str, str]:
    """What is still owed to somebody whom the panel will not pay any more, written down to be paid by hand."""
    if (owed := pay_of(assignment)) is None:
        return {}
    rows = Payment.objects.filter(assignment=assignment, kind__in=Payment.COVERING, state__in=["ordered", "paid"])
    amount = owed.amount - total_of(rows)
    if amount <= 0:
        return {}
    extra = Extra(assignment, amount, "The rejection of your work was taken back.")
    add(assignment.recruitment, [extra], Payment.Kind.COMPENSATION, by)
    return {"compensation": f"{amount:.2f}", "currency": owed.currency}


def _way_to_take_back(verdict: Verdict, by) -> str:
    order, submission = order_of(verdict), verdict.submission
    if order and (order.state in WITHOUT_EFFECT or cancel(order, by=by)):
        return "unsent"
    if submission and submission.state == APPROVED:
        return "unsent"
    if verdict.category == Verdict.AT_PANEL and submission.state == SUBMITTED:
        return "unsent"  # the panel has opened it again
    return "hand"


def ask_for_return(work: Work, message: str, by) -> PanelOrder:
    """Ask the person to give the task back, before anybody speaks of rejecting. Once; the panel asks, the person decides."""
    check(by, Action.REJECT, work.recruitment.study)
    if work.submission is None or "request_return" not in can_order(work.recruitment):
        raise NotNow("This panel cannot ask for a return.")
    if work.submission.state not in ("working", "submitted"):
        raise NotNow("The panel has decided, or the person has left: there is nothing to give back.")
    token = f"return-{work.submission.pk}"
    if PanelOrder.objects.filter(token=token).exists():
        raise NotNow("They were asked already.")
    message = said_to_person(work.recruitment.study, message)
    return give(work.recruitment, "request_return", token, submission=work.submission, by=by, message=message)


def _locked(work: Work) -> Work:
    """The work as it is now, its person locked."""
    hold(work.assignment.annotator_id if work.assignment else work.submission.annotator_id)
    if work.submission:
        return work_of_submission(work.recruitment, work.submission.pk)
    return work_of_assignment(work.recruitment, work.assignment.pk)
