"""A test before the work: two attempts, a paid end after the second failure, and a pass that is valid in other studies."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from annotators.models import QualificationAttempt
from annotators.pages.record import full_page_state
from annotators.pay.ledger import compute_amount_owed
from annotators.pay.promises import get_pay_terms
from annotators.places.assign import count_qualification_results
from studies.design.serialization import serialize_design
from studies.imports.bundle import BundleRefused
from studies.imports.bundle_files import bundle_text, create_draft_from_bundle, serialize_bundle
from studies.models import Qualification, Section, Study
from studies.services.copying import clone_study
from tests import builders
from tests.admin_pages import changed, form_of, logged_in
from tests.annotators.pages.quizzes import WORDS, attempt, fresh, quiz_study
from tests.attention import instructed
from tests.leaks import all_bytes
from tests.players import answered, claimed, open_page
from tests.robots import Robot
from tests.samples import blocking

pytestmark = pytest.mark.django_db


def practice_study(m, pass_mark):
    """A human-or-machine study whose training section, with three practice items in each arm, is the test."""
    study = builders.humanlike_draft(conditions=("examples",), target_n=6)
    study.sections.filter(purpose="training").update(m=m, pass_mark=pass_mark)
    return builders.launched(study)


def pages(assignment) -> list[str]:
    return list(full_page_state(fresh(assignment)).steps)


def test_a_person_who_passes_goes_on_and_one_who_fails_twice_is_screened_out_and_paid():
    study = quiz_study()
    link = builders.promised(builders.panel(study), screened_out="0.60", failed_checks="all")
    first_page = Client().get(f"/e/{link.key}/?who=x&session=1").content.decode()
    assert "<b>0.60 USD</b>: if you do not pass the test at the beginning in two attempts" in first_page
    good, bad, second = (claimed(study, name, link) for name in ("good", "bad", "second"))
    attempt(good, 0)
    assert full_page_state(fresh(good)).next_key == "s3.p1" or full_page_state(fresh(good)).next_key == "start"
    asked_first = attempt(bad, 1)
    assert not fresh(bad).released_at and full_page_state(fresh(bad)).next_key == "s2.again"
    shown = Client().get(f"/p/{bad.code}/s2.again/").content.decode()
    assert "One more attempt" in shown
    answered(fresh(bad))
    asked_second = attempt(bad, 2)
    assert not asked_first & asked_second  # other questions, because there are enough
    bad = fresh(bad)
    assert bad.released_reason == "screened_out" and bad.batch.claimed == 0
    assert str(compute_amount_owed(bad, 3, get_pay_terms(link)).amount) == "0.60"
    attempt(second, 2)
    answered(fresh(second))
    attempt(second, 0)
    assert not fresh(second).released_at
    rows = QualificationAttempt.objects.order_by("pk").values_list(
        "assignment", "number", "n_right", "n_asked", "is_passed"
    )
    assert list(rows) == [
        (good.pk, 1, 2, 2, True), (bad.pk, 1, 1, 2, False), (bad.pk, 2, 0, 2, False),
        (second.pk, 1, 0, 2, False), (second.pk, 2, 2, 2, True),
    ]  # fmt: skip
    assert count_qualification_results(study) == {
        "section": 1, "pass_mark": 2, "qualification": None, "passed": 2, "failed": 1, "skipped": 0,
    }  # fmt: skip


def test_the_second_attempt_repeats_the_questions_in_another_order_if_there_are_too_few():
    study = quiz_study(words=WORDS, m=3, pass_mark=3)
    orders = set()
    for number in range(4):
        assignment = claimed(study, f"p{number}")
        first = [ask.question_id for ask in open_page(assignment)[2].values()]
        attempt(assignment, 1)
        answered(fresh(assignment))
        second = [ask.question_id for ask in open_page(fresh(assignment))[2].values()]
        assert sorted(first) == sorted(second)
        orders.add(first == second)
    assert False in orders


def test_a_pass_is_valid_in_other_studies_with_the_qualification_as_long_as_it_says():
    owner = builders.user()
    named = Qualification.objects.create(owner=owner, name="reads English", valid_days=30)
    first, second = (quiz_study(qualification=named, owner=owner) for _ in range(2))
    other = quiz_study(owner=owner)
    one = claimed(first, "ann")
    attempt(one, 0)
    assert any(step.attempt for step in full_page_state(claimed(other, "ann")).steps.values())
    again = claimed(second, "ann")
    assert again.qualified_by.assignment == one
    assert not any(step.attempt for step in full_page_state(again).steps.values())
    assert Client().get(f"/p/{again.code}/{pages(again)[0]}/").status_code == 200
    while (key := full_page_state(fresh(again)).next_key) is not None:
        answered(fresh(again), key)
        if fresh(again).submitted_at:
            break
    assert fresh(again).submitted_at
    assert claimed(second, "bea").qualified_by is None
    another = Qualification.objects.create(owner=owner, name="writes English", valid_days=30)
    assert claimed(quiz_study(qualification=another, owner=owner), "ann").qualified_by is None
    assert count_qualification_results(second)["skipped"] == 1
    # An old pass is over, and the frozen design decides how long it is valid.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timezone, "now", lambda real=timezone.now: real() + timedelta(days=31))
        third = quiz_study(qualification=named, owner=owner)
        assert claimed(third, "ann").qualified_by is None


@pytest.mark.parametrize(("m", "n_placed"), [(1, 2), (2, 2), (3, 3)])
def test_practice_items_can_be_the_test_and_then_show_no_truth(m, n_placed):
    """Three practice items are two sets of one, but not two sets of two or three. Two sets share no item."""
    study = practice_study(m, m)
    robot = Robot(f"/e/{builders.recruitment(study).key}/?who=ann&session=s")
    robot.play()
    (assignment,) = study.assignments.all()
    attempts = list(QualificationAttempt.objects.values_list("number", "n_asked", "is_passed"))
    assert attempts and all(n_asked == m for _, n_asked, _ in attempts)
    assert bool(assignment.released_reason) is (attempts[-1][0] == 2 and not attempts[-1][2])
    assert assignment.batch.placements.filter(item__kind="practice").count() == n_placed
    sent = all_bytes(robot.responses)
    for word in (b"wrote this.", b"pass mark", b"is_right", b"qualification"):
        assert word not in sent.lower(), word


def test_the_design_the_bundle_and_a_clone_keep_the_test():
    owner = builders.user()
    named = Qualification.objects.create(owner=owner, name="reads English", valid_days=30)
    study = quiz_study(qualification=named, owner=owner)
    design = serialize_design(study)["sections"][0]
    assert design["pass_mark"] == 2 and design["qualification"] == {"name": "reads English", "valid_days": 30}
    assert "pass_mark" not in serialize_design(study)["sections"][1]
    clone = clone_study(study, owner)
    assert clone.sections.get(position=1).qualification == named and clone.sections.get(position=1).pass_mark == 2
    assert not blocking(clone)
    again = create_draft_from_bundle(bundle_text(study), owner)
    assert again.sections.get(position=1).qualification == named
    elsewhere = create_draft_from_bundle(bundle_text(study), builders.user("somebody"))
    assert elsewhere.sections.get(position=1).qualification.owner.username == "somebody"
    assert serialize_design(elsewhere)["sections"] == serialize_design(study)["sections"]


def _bundle(change):
    value = serialize_bundle(quiz_study())
    change(value["sections"])
    return value


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda rows: rows[0].update(pass_mark=None), "sections[0].pass_mark"),
        (lambda rows: rows[0].update(pass_mark="2"), "sections[0].pass_mark"),
        (lambda rows: rows[0].update(purpose="live"), "sections[0].pass_mark"),
        (lambda rows: rows[0].update(qualification="mine"), "sections[0].qualification"),
        (lambda rows: rows[0].update(qualification={"name": "", "valid_days": 0}), "sections[0].qualification.name"),
        (lambda rows: rows[1].update(pass_mark=1, qualification=None, purpose="training"), "sections: only one"),
    ],
)
def test_a_bundle_with_an_impossible_test_is_refused_by_its_path(change, path):
    with pytest.raises(BundleRefused) as refused:
        create_draft_from_bundle(_bundle(change), builders.user("importer"))
    assert any(problem.startswith(path) for problem in refused.value.problems), refused.value.problems


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"pass_mark": 5}, "Lower the pass mark"),
        ({"pass_mark": 3}, "Lower the pass mark"),
    ],
)
def test_the_checklist_names_what_a_test_lacks(columns, words):
    study = builders.draft_study(target_n=4)
    section = builders.add_survey(study, position=1, purpose="screening", questions=[instructed(w) for w in WORDS])
    builders.add_rating(study, position=2, m=2)
    Section.objects.filter(pk=section.pk).update(m=2, pass_mark=2)
    assert not blocking(Study.objects.get(pk=study.pk))
    Section.objects.filter(pk=section.pk).update(**columns)
    assert any(words in text for text in blocking(Study.objects.get(pk=study.pk)))


def test_the_form_of_a_section_declares_a_test_and_its_qualification():
    owner = builders.user()
    study = builders.draft_study(owner=owner, target_n=4)
    section = builders.add_survey(study, position=1, purpose="screening", questions=[instructed(w) for w in WORDS])
    client = logged_in(owner)
    url = f"/admin/studies/section/{section.pk}/change/"
    given = {"m": "2", "pass_mark": "2", "qualification_name": "reads English", "valid_days": "30"}
    sent = client.post(url, changed(form_of(client.get(url), "section_form"), **given))
    assert sent.status_code == 302
    section.refresh_from_db()
    assert (section.m, section.pass_mark, str(section.qualification)) == (2, 2, "reads English (valid for 30 days)")
    # Saving it again makes no second qualification, and the name is offered to the owner's other sections.
    client.post(url, changed(form_of(client.get(url), "section_form"), pass_mark="1"))
    assert Qualification.objects.get().sections.get().pass_mark == 1
    assert "You have: reads English" in client.get(url).content.decode()
    client.post(url, changed(form_of(client.get(url), "section_form"), pass_mark="", qualification_name="", m="0"))
    section.refresh_from_db()
    assert section.pass_mark is None and section.qualification is None


def test_the_collecting_page_and_rest_count_the_results():
    owner = builders.user()
    study = quiz_study(owner=owner)
    for name, wrong in (("good", 0), ("bad", 2)):
        assignment = claimed(study, name)
        attempt(assignment, wrong)
    answered(fresh(assignment))
    attempt(assignment, 1)
    shown = logged_in(owner).get(f"/admin/studies/study/{study.pk}/collecting/", follow=True).content.decode()
    assert "1 passed, 1 failed twice, 0 skipped" in shown
    answer = logged_in(owner).get(f"/api/v1/studies/{study.code}/progress/").json()
    assert answer["test"]["passed"] == answer["test"]["failed"] == 1
