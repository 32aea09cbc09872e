"""The lines of decisions about one piece of work, and of appeals against a rejection."""

from django.utils import timezone
from pytest import MonkeyPatch

from annotators.models import Appeal, Assignment, PanelSubmission, PanelTask, Verdict
from annotators.pay import decisions, evidence
from annotators.pay.decisions import answer_appeal, create_appeal
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.channels.prolific.client import REJECTION_POLICY
from annotators.recruitment.panels.http_client import store_or_delete_secrets
from annotators.recruitment.panels.orders import send_due_orders
from studies.models import StudyMember
from tests import builders, players
from tests.admin_pages import logged_in
from tests.annotators.pay.verdicts.conftest import LONG, checks, sent, work
from tests.annotators.recruitment.pretend import Pretend, speaks
from tests.builders import promised
from tests.messages.forms.scenarios import link, link_url, me, said, says_refused
from tests.messages.lines import only_informs
from tests.messages.pages.scenarios import launched


def with_work(act, answers=(1, 2, 90), has_token=True):
    """``act(panel, submission)``, where the panel answers in memory and shows somebody's work."""

    def scenario():
        with MonkeyPatch.context() as patch:
            panel = Pretend()
            speaks(patch, panel)
            patch.setattr(type(REGISTRY["generic"]), "rejection_policy", REJECTION_POLICY)
            one = link("generic", launched())
            StudyMember.objects.create(study=one.study, user=colleague(), role="editor")
            if has_token:
                store_or_delete_secrets(one, {"token": "t"}, by=None)
            PanelTask.objects.create(recruitment=one, external_id="T")
            submission = sent(one)
            checks(submission, *answers)
            return act(panel, submission)

    return scenario


def colleague():
    return builders.user("colleague")


def decided(change=None, user=me, **data):
    """What the page of this work says after a decision; ``change`` comes before it."""

    def act(panel, submission):
        if change:
            change(submission)
        url = link_url(submission.recruitment, f"panel/submission/{submission.pk}/")
        return said(logged_in(user()).post(url, data, follow=True))

    return with_work(act)


def refused(act, **options):
    """What an act upon the submission says that refuses."""
    return with_work(lambda panel, submission: says_refused(lambda: act(submission))(), **options)


def rejects(change=None, **data):
    return decided(change, **{"look": "1", "category": "FAILED_CHECK", "message": LONG, "note": ""} | data)


def set_work(**columns):
    return lambda submission: Assignment.objects.filter(pk=submission.assignment_id).update(**columns)


def set_submission(**columns):
    return lambda submission: PanelSubmission.objects.filter(pk=submission.pk).update(**columns)


def rejected(submission) -> Verdict:
    return decisions.reject_work(work(submission), "FAILED_CHECK", LONG, me())


def asks(submission):
    decisions.order_return_request(work(submission), "Please.", me())


def reverses(of_reversal=False):
    def act(submission):
        verdict = rejected(submission)
        back = decisions.create_rejection_reversal(verdict, me())
        decisions.create_rejection_reversal(back if of_reversal else verdict, me())

    return refused(act)


def appealed(submission) -> Appeal:
    return create_appeal(rejected(submission).assignment, "Why?")


def at_panel_rejected(submission) -> Appeal:
    PanelSubmission.objects.filter(pk=submission.pk).update(state="rejected", decided_at=timezone.now())
    return create_appeal(submission.assignment, "Why?")


def failed_checks_appealed(submission) -> Appeal:
    ended = {"submitted_at": None, "released_at": timezone.now(), "released_reason": "failed_checks"}
    Assignment.objects.filter(pk=submission.assignment_id).update(**ended)
    promised(submission.recruitment, failed_checks="all", fault="all")
    return create_appeal(Assignment.objects.get(pk=submission.assignment_id), "Why?", "checks")


def answered(make=appealed, user=colleague, before=None, is_sent=False, **data):
    """What the page of an appeal says to an answer."""

    def act(panel, submission):
        appeal = make(submission)
        if is_sent:
            send_due_orders(submission.recruitment, panel, lambda *_: None)
            PanelSubmission.objects.update(state="rejected", decided_at=timezone.now())
        if before:
            before(appeal)
        url = link_url(submission.recruitment, f"panel/appeal/{appeal.pk}/")
        whole = {"is_upheld": "no", "answer": "We looked again.", "says_another": "on"} | data
        return said(logged_in(user()).post(url, whole, follow=True))

    return with_work(act)


def answer_without_word(submission):
    appeal = at_panel_rejected(submission)
    answer_appeal(appeal, "No.", False, colleague())


def answer_to_paid_work(submission):
    appeal = appealed(submission)
    PanelSubmission.objects.update(state="approved")
    appeal.verdict.submission.refresh_from_db()
    answer_appeal(appeal, "No.", False, colleague())


def nothing_to_take_back(panel, submission):
    url = link_url(submission.recruitment, f"panel/submission/{submission.pk}/")
    return said(logged_in(me()).post(url, {"back": "1"}))


def credited(submission):
    """The order of its approval waits, while the panel has not seen the work submitted."""
    decisions.approve_work(work(submission), me())
    PanelSubmission.objects.filter(pk=submission.pk).update(state="working")
    with MonkeyPatch.context() as patch:
        patch.setattr(type(REGISTRY["generic"]), "credits_on_completion", True)
        patch.setattr(decisions, "effective_approval", lambda work: None)
        decisions.approve_work(work(submission), me())


def unknown_person(submission):
    other = PanelSubmission.objects.create(
        recruitment=submission.recruitment, external_id="S-x", annotator=submission.annotator, state="submitted",
        source="service",
    )  # fmt: skip
    decisions.validate_rejection(work(other), "FAILED_CHECK", LONG)


def unfinished(act):
    """An act upon work of which no panel knows, before it is submitted."""

    def scenario():
        one = link("prolific", launched())
        claimed = players.claimed(one.study, "b", one)
        return says_refused(lambda: act(decisions.get_work_by_assignment(one, claimed.pk)))()

    return scenario


def objects(text, make=rejected, times=1):
    """What the annotator's last page says to an objection."""

    def act(panel, submission):
        make(submission)
        for _ in range(times - 1):
            create_appeal(submission.assignment, "Why?")
        return says_refused(lambda: create_appeal(submission.assignment, text))()

    return with_work(act)


FORMS = {
    "Your objection is empty": objects(" "),
    "Your objection is too": objects("x" * 2001),
    "You have already": objects("Why?", times=2),
    "Your work is not rejected": objects("Why?", make=lambda submission: None),
    "You rejected this work": refused(lambda one: answer_appeal(appealed(one), "No.", False, me())),
    "The person who rejected": refused(answer_without_word),
    "The panel has approved": refused(answer_to_paid_work),
    "This appeal is already": refused(
        lambda one: [answer_appeal(appeal, "No.", False, colleague()) for appeal in [appealed(one)] * 2]
    ),
    "Answered. The rejection is taken back. heval": answered(
        is_sent=True, is_upheld="yes", before=lambda appeal: set_work(origin="robot")(appeal.verdict)
    ),
    "Answered. The rejection is taken back before": only_informs(answered(is_upheld="yes")),
    "Answered. The work": answered(make=failed_checks_appealed, is_upheld="yes"),
    "Answered. The rejection is taken back. The panel": only_informs(answered(is_sent=True, is_upheld="yes")),
    "This work has no rejection": with_work(nothing_to_take_back),
    "No category has evidence": rejects(set_work(submitted_at=None)),
    "The … still": rejects(message=f"{LONG} {evidence.MESSAGE_PLACEHOLDER}"),
    "The … has … characters. Write": rejects(message="Wrong"),
    "The … has … characters. Shorten": refused(
        lambda one: answer_appeal(appealed(one), "x" * 2500, False, colleague())
    ),
    "The … names": rejects(message=f"{LONG} Alpha was right."),
    "The panel has no such": refused(lambda one: decisions.validate_rejection(work(one), "whim", LONG)),
    "cannot be chosen": refused(lambda one: decisions.validate_rejection(work(one), "TOO_QUICKLY", LONG)),
    "has no measured": rejects(category="LOW_EFFORT"),
    "The panel shows": refused(unknown_person),
    "heval does not reject": lambda: says_refused(lambda: decisions.validate_rejection(_without_policy(), "x", LONG))(),
    "This work has no real": rejects(set_work(origin="robot")),
    "The annotator has withdrawn": rejects(set_work(withdrawn_at=timezone.now())),
    "heval ended this visit": rejects(
        set_work(submitted_at=None, released_at=timezone.now(), released_reason="screened_out")
    ),
    "validate_rejection: The work is not finished": unfinished(
        lambda found: decisions.validate_rejection(found, "FAILED_CHECK", LONG)
    ),
    "The work is rejected already": refused(lambda one: (rejected(one), rejected(one))),
    "The work is approved": rejects(lambda one: decisions.approve_work(work(one), me())),
    "The work is rejected. Take": decided(rejected, approve="1"),
    "approve_work: The work is not finished": unfinished(lambda found: decisions.approve_work(found, me())),
    "The work was not submitted": decided(set_submission(state="working"), approve="1"),
    "The credit is ordered": refused(credited),
    "This decision is not a rejection": reverses(of_reversal=True),
    "The rejection was taken": reverses(),
    "heval cannot ask": refused(asks, has_token=False),
    "The panel has decided": refused(lambda one: (set_submission(state="returned")(one), asks(one))),
    "The annotator was asked": refused(lambda one: (asks(one), asks(one))),
}


def _without_policy():
    one = link(study=launched())
    done = players.submitted(one.study, "b", recruitment=one)
    return decisions.get_work_by_assignment(one, done.pk)
