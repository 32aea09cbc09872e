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
from tests.messages.forms.scenarios import PANEL_PAGES, WORK, link, link_url, me, said, says_refused
from tests.messages.lines import NOTHING
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


OPEN = f"{WORK}:_store_appeal"
LINES = {
    OPEN: [
        ("Your objection is empty", "Please write a few words", objects(" ")),
        ("Your objection is too long", "Please use at most 2000", objects("x" * 2001)),
        ("You have already sent an objection", "You do not need to send it again", objects("Why?", times=2)),
    ],
    f"{WORK}:_rejection_to_appeal": [
        ("Your work is not rejected", "you do not need to object", objects("Why?", make=lambda submission: None)),
    ],
    f"{WORK}:answer_appeal": [
        (
            "You rejected this work",
            "Another editor must answer",
            refused(lambda one: answer_appeal(appealed(one), "No.", False, me())),
        ),
        (
            "The person who rejected this work at the panel cannot answer",
            "Confirm that it was not you",
            refused(answer_without_word),
        ),
        (
            "The panel has approved this work since",
            "No answer is needed",
            refused(answer_to_paid_work),
        ),
        (
            "This appeal is already answered",
            "You need not do anything",
            refused(lambda one: [answer_appeal(appeal, "No.", False, colleague()) for appeal in [appealed(one)] * 2]),
        ),
    ],
    f"{PANEL_PAGES}:answer_appeal_view": [
        (
            "Answered. The rejection is taken back. heval cannot send this to the panel",
            "approve the work there",
            answered(is_sent=True, is_upheld="yes", before=lambda appeal: set_work(origin="robot")(appeal.verdict)),
        ),
        ("taken back before it took effect", NOTHING, answered(is_upheld="yes")),
        (
            "Answered. The work now pays",
            "Settle the link",
            answered(make=failed_checks_appealed, is_upheld="yes"),
        ),
        ("The panel cannot pay any more, so a compensation of 2.50", NOTHING, answered(is_sent=True, is_upheld="yes")),
    ],
    f"{PANEL_PAGES}:_back": [
        ("This work has no rejection to take back", "You need not do anything", with_work(nothing_to_take_back))
    ],
    f"{PANEL_PAGES}:_reject": [
        (
            "No category has evidence. Approve",
            "Approve the work, or leave it undecided",
            rejects(set_work(submitted_at=None)),
        )
    ],
    f"{WORK}:clean_message_to_annotator": [
        (
            "The message still says “[Write here",
            "Replace this with your own words",
            rejects(message=f"{LONG} {evidence.MESSAGE_PLACEHOLDER}"),
        ),
        ("The message has 5 characters", "Write at least 100", rejects(message="Wrong")),
        (
            "The answer has 2500 characters",
            "Shorten it to at most 2000",
            refused(lambda one: answer_appeal(appealed(one), "x" * 2500, False, colleague())),
        ),
        ("The message names the system “alpha”", "Remove it", rejects(message=f"{LONG} Alpha was right.")),
    ],
    f"{WORK}:validate_rejection": [
        (
            "The panel has no such category",
            "Choose one of its categories",
            refused(lambda one: decisions.validate_rejection(work(one), "whim", LONG)),
        ),
        (
            "TOO_QUICKLY cannot be chosen: the time cannot be compared",
            "Choose another category",
            refused(lambda one: decisions.validate_rejection(work(one), "TOO_QUICKLY", LONG)),
        ),
        (
            "LOW_EFFORT has no measured evidence",
            "Describe your observations in the note",
            rejects(category="LOW_EFFORT"),
        ),
        ("a person who is unknown in heval", "Ask the person", refused(unknown_person)),
        (
            "heval does not reject work at this channel",
            "Approve the work",
            lambda: says_refused(lambda: decisions.validate_rejection(_without_policy(), "x", LONG))(),
        ),
        ("This work has no real annotator", "You need not decide", rejects(set_work(origin="robot"))),
        ("The annotator has withdrawn", "You need not decide", rejects(set_work(withdrawn_at=timezone.now()))),
        (
            "heval ended this visit early",
            "Pay the amount promised for this",
            rejects(set_work(submitted_at=None, released_at=timezone.now(), released_reason="screened_out")),
        ),
        (
            "The work is not finished, and no panel shows it",
            "Wait until it is submitted",
            unfinished(lambda found: decisions.validate_rejection(found, "FAILED_CHECK", LONG)),
        ),
        (
            "The work is rejected already",
            "take the rejection back",
            refused(lambda one: (rejected(one), rejected(one))),
        ),
        (
            "The work is approved already",
            "You need not do anything",
            rejects(lambda one: decisions.approve_work(work(one), me())),
        ),
    ],
    f"{WORK}:approve_work": [
        ("The work is rejected", "Take back the rejection instead", decided(rejected, approve="1")),
        (
            "The work is not finished, and no panel shows it",
            "Wait until it is submitted",
            unfinished(lambda found: decisions.approve_work(found, me())),
        ),
    ],
    f"{WORK}:_require_renewable_credit": [
        (
            "The work was not submitted at the panel",
            "Wait until it is submitted",
            decided(set_submission(state="working"), approve="1"),
        ),
        ("The credit is ordered already", "See its status on the panel page", refused(credited)),
    ],
    f"{WORK}:create_rejection_reversal": [
        ("This decision is not a rejection", "Choose a rejection", reverses(of_reversal=True)),
        ("The rejection was taken back already", "You need not do anything", reverses()),
    ],
    f"{WORK}:order_return_request": [
        (
            "heval cannot ask for a return here",
            "Write to the annotator",
            refused(asks, has_token=False),
        ),
        (
            "there is nothing to return",
            "You need not do anything",
            refused(lambda one: (set_submission(state="returned")(one), asks(one))),
        ),
        (
            "The annotator was asked already",
            "Wait for the answer",
            refused(lambda one: (asks(one), asks(one))),
        ),
    ],
}


def _without_policy():
    one = link(study=launched())
    done = players.submitted(one.study, "b", recruitment=one)
    return decisions.get_work_by_assignment(one, done.pk)
