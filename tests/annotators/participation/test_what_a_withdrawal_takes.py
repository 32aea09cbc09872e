"""What a person had in a study before they withdrew: erased, without effect afterwards, or kept for a named reason."""

import pytest
from django.apps import apps

from annotators.counting import Use, select
from annotators.models import Annotator, Assignment, Payment, Response, SampleColumn, SampleValue
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from annotators.pay import ledger
from annotators.places import assign
from annotators.places.assign import count_qualification_results
from annotators.places.barrings import bar_annotator, is_barred
from annotators.recruitment.panels import orders
from studies.models import Qualification, Study
from tests import builders
from tests.annotators.pages.quizzes import attempt, fresh, quiz_study
from tests.annotators.views.visitors import undone
from tests.players import answered, claimed, open_page

pytestmark = pytest.mark.django_db
ERASED, VOID, KEPT = "erased", "without effect", "kept"
# Each table that names a person or their work, with what a withdrawal does to its rows. A new table must be added here.
TABLES = {
    "annotators.Response.assignment": VOID,
    "annotators.QualificationAttempt.assignment": VOID,
    "annotators.SampleValue.annotator": ERASED,
    "annotators.Inquiry.assignment": ERASED,
    "annotators.PageVisit.assignment": VOID,
    "annotators.PanelIdentity.annotator": ERASED,
    "annotators.Assignment.annotator": VOID,
    # Leaving is no way out of a decision, and no loss of what was earned.
    "annotators.Barring.annotator": KEPT,
    "annotators.Payment.assignment": KEPT,
    "annotators.Exclusion.assignment": KEPT,
    "annotators.Verdict.assignment": KEPT,
    "annotators.PanelSubmission.assignment": KEPT,
    "annotators.PanelSubmission.annotator": KEPT,
    "annotators.PanelBar.annotator": KEPT,
    "annotators.Appeal.assignment": "erased when it is closed",
    "analysis.CodingItem.assignment": VOID,
}


def test_every_table_about_people_says_what_a_withdrawal_does_to_it():
    found = {
        f"{model._meta.label}.{field.name}"
        for model in apps.get_models()
        for field in model._meta.get_fields()
        if field.many_to_one or field.one_to_one
        if not field.auto_created and field.related_model in (Assignment, Annotator)
    }
    assert found == set(TABLES)


@pytest.fixture
def mine():
    """Work that passed its test, was finished, paid, described by a file, and excluded; its person is barred."""
    owner = builders.user("owner")
    named = Qualification.objects.create(owner=owner, name="reads English", valid_days=30)
    study = quiz_study(qualification=named, owner=owner, exclusion_group="tales", reward="2.00")
    link = builders.promised(builders.panel(study, currency="USD"), withdrawn="share")
    one = claimed(study, "ann", link, external_ids={"person": "ann", "session": "s"})
    attempt(one, 0)
    while not fresh(one).submitted_at:
        open_page(fresh(one))
        answered(fresh(one))
    column = SampleColumn.objects.create(study=study, name="Age", kind="number")
    SampleValue.objects.create(column=column, annotator=one.annotator, value="30")
    ledger.update_ledger(link, by=owner)
    bar_annotator(study, one.annotator, "Copies.", owner)
    return fresh(one)


def next_claim(mine, **columns):
    return assign.claim_batch(quiz_study(owner=mine.study.owner, **columns), mine.annotator)


def has_pass_elsewhere(mine) -> bool:
    named = Qualification.objects.get()
    return next_claim(mine, qualification=named).assignment.qualified_by is not None


def has_pass_from_another_study_of_the_qualification(mine) -> bool:
    """The pass was made in a first study; leaving a second one with the same test takes nothing from it."""
    first = claimed(quiz_study(qualification=Qualification.objects.get(), owner=mine.study.owner), "bea")
    attempt(first, 0)
    second = claimed(quiz_study(qualification=Qualification.objects.get(), owner=mine.study.owner), "bea")
    withdraw_annotator_and_erase_texts(second)
    third = claimed(quiz_study(qualification=Qualification.objects.get(), owner=mine.study.owner), "bea")
    return third.qualified_by is not None and third.qualified_by.assignment_id == first.pk


def has_skipped_by_a_pass(mine) -> bool:
    second = quiz_study(qualification=Qualification.objects.get(), owner=mine.study.owner)
    claimed(second, "ann")
    return count_qualification_results(second)["skipped"] == 1


# What counts before the withdrawal, and whether it counts afterwards.
CELLS = {
    "a pass in the next study": (has_pass_elsewhere, False),
    "a pass that another study gave": (has_pass_from_another_study_of_the_qualification, True),
    "a pass among those who passed": (lambda m: count_qualification_results(m.study)["passed"] == 1, False),
    "a skipped test among those who skipped": (has_skipped_by_a_pass, False),
    "answers in results": (
        lambda m: select(Use.RESULTS, Response.objects.filter(assignment__study=m.study)).exists(),
        False,
    ),
    "answers in exports": (
        lambda m: select(Use.ROWS, Assignment.objects.filter(study=m.study)).exists(),
        False,
    ),
    "a place of the panel's round": (lambda m: orders.count_taken_panel_places(m.recruitment).finished == 1, False),
    "a value of the panel's file": (lambda m: SampleValue.objects.filter(annotator=m.annotator).exists(), False),
    "a barring in the study": (lambda m: is_barred(m.study, m.annotator_id), True),
    "a barring in the group": (lambda m: is_barred(Study(exclusion_group="tales"), m.annotator_id), True),
    "a person of the group, kept out": (
        lambda m: next_claim(m, exclusion_group="tales").outcome in (assign.NO_FURTHER, assign.DONE),
        True,
    ),
    "pay": (lambda m: Payment.objects.filter(assignment=m).exclude(state="cancelled").exists(), True),
}


@pytest.mark.parametrize("what", CELLS)
def test_what_was_earned_before_leaving(mine, what):
    counts, counts_afterwards = CELLS[what]
    with undone():
        assert counts(mine), "it counts for people who stay"
    withdraw_annotator_and_erase_texts(mine)
    ledger.update_ledger(mine.recruitment, by=None)
    assert bool(counts(fresh(mine))) is counts_afterwards


def test_a_person_who_leaves_is_not_among_those_who_skipped_the_test(mine):
    second = quiz_study(qualification=Qualification.objects.get(), owner=mine.study.owner)
    withdraw_annotator_and_erase_texts(claimed(second, "ann"))
    assert count_qualification_results(second)["skipped"] == 0
