"""The lines of barring an annotator from further batches, and of objections to it."""

from django.urls import reverse

from analysis.data.flat_rows import annotator_pseudonym
from annotators.models import Appeal, Barring
from annotators.pay.decisions import answer_appeal, create_appeal
from annotators.places import assign
from annotators.places.barrings import bar_annotator, lift_barring
from tests.admin_pages import logged_in
from tests.messages.forms.scenarios import me, said
from tests.messages.forms.work import colleague, refused, with_work
from tests.messages.lines import only_informs


def barred(submission, reason="Copies.") -> Barring:
    return bar_annotator(submission.assignment.study, submission.assignment.annotator, reason, me())


def bars_somebody_else(submission):
    somebody = assign.get_or_create_annotator("panel", "somebody")
    bar_annotator(submission.assignment.study, somebody, "Copies.", me())


def on_barring_page(before=None, **data):
    """What the page of an annotator's barrings says to a decision."""

    def act(panel, submission):
        if before:
            before(submission)
        study = submission.assignment.study
        name = annotator_pseudonym(study, submission.assignment.annotator.code)
        url = reverse("study_annotator_barring", args=[study.pk, name])
        return said(logged_in(me()).post(url, {"reason": "Copies."} | data, follow=True))

    return with_work(act)


def barring_appealed(submission) -> Appeal:
    barred(submission)
    return create_appeal(submission.assignment, "Why?", subject="barring")


def answer_after_lifting(submission):
    appeal = barring_appealed(submission)
    lift_barring(appeal.barring, "A mistake.", me())
    appeal.barring.refresh_from_db()
    answer_appeal(appeal, "No.", False, colleague())


def object_in_test_run(submission):
    submission.assignment.origin = "test"
    create_appeal(submission.assignment, "Why?", subject="checks")


FORMS = {
    "You may do": refused(lambda one: create_appeal(one.assignment, "Why?", subject="barring")),
    "Your work did": refused(lambda one: create_appeal(one.assignment, "Why?", subject="checks")),
    "This is a test": only_informs(refused(object_in_test_run)),
    "This annotator is already": refused(lambda one: [barred(one), barred(one)]),
    "This person has no batch": refused(bars_somebody_else),
    "lift_barring: This barring is already": refused(
        lambda one: [lift_barring(row, "Why?", me()) for row in [barred(one)] * 2]
    ),
    "Barred. A batch": only_informs(on_barring_page()),
    "Lifted. The annotator": only_informs(on_barring_page(barred, lift="1")),
    "barring_page: This barring is already": on_barring_page(lift="1"),
    "The reason is empty": refused(lambda one: barred(one, " ")),
    "The reason is too": refused(lambda one: barred(one, "x" * 2001)),
    "You barred this annotator": refused(lambda one: answer_appeal(barring_appealed(one), "No.", False, me())),
    "The barring is lifted": refused(answer_after_lifting),
}
