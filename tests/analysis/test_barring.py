"""Barring through the product: robots answer, the job screens, the flagged get no further batch, are paid, object, and return."""

import random

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from analysis.data.flat_rows import annotator_pseudonym
from analysis.data.rule_input import read_test_answers
from analysis.exclusions.screening import SimpleSettings, count_by_annotator, fails_simple_rule
from analysis.models import AnnotatorScreening
from analysis.report.screening.run import read_screened_study, request_screening
from annotators.models import Appeal, Assignment, Barring, PanelOrder, Payment
from annotators.participation.simulate import CrowdSettings, record_simulated_answers
from annotators.pay import ledger
from annotators.pay.decisions import answer_appeal, create_appeal
from annotators.pay.verdict_status import barring_status
from annotators.places import assign
from annotators.places.barrings import bar_annotator, bar_flagged_annotators, is_barred, lift_barring
from studies.design.checklist import find_design_problems
from studies.design.serialization import serialize_design
from studies.design.wording import BARRING_SENTENCE, wording_of
from studies.models import AuditEvent, ExclusionRule, Study, StudyMember
from studies.services import jobs
from studies.services.lifecycle import ActionRefused
from tests import builders, known_answers, players

from .api.rest import api_of

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
WHY = "My phone showed the texts cut off."


def barring_draft(**columns):
    """A draft whose flagged annotators get no further batch, with test questions and a simple rule."""
    study, section, researcher = known_answers.draft(
        "rating", pilot_answers=0, positive_share=0.4, negative_share=0.4, prompts=90, m=6
    )
    known_answers.make(study, section, researcher, positive=10, negative=10, damaged=10)
    ExclusionRule.objects.create(study=study, rule="failed_tests", settings={"failed": 1, "share": None}, position=1)
    columns = {"bars_flagged_annotators": True, "consent": "I take part.", "batches_per_annotator": 3} | columns
    Study.objects.filter(pk=study.pk).update(target_n=30, seed=5, reward="2.00", **columns)
    study.refresh_from_db()
    return study, researcher


def crowd_of(study, n, noisy, prefix):
    crowd = CrowdSettings(careless=noisy, screened_out=0, acquiescent=0)
    record_simulated_answers(study, n, rng=random.Random(3), crowd=crowd, name_prefix=prefix)


def who_fails(study):
    """The ids of those who fail the declared rule, by the counts themselves."""
    counts = count_by_annotator(read_test_answers(study, ["robot"]))
    pks = {
        annotator_pseudonym(study, code): pk
        for code, pk in study.assignments.values_list("annotator__code", "annotator")
    }
    return {pks[row.annotator] for row in counts if fails_simple_rule(row, SimpleSettings(1, 4, None))}


@pytest.fixture
def played():
    """A launched study in which six read, and some answer at random until two of these fail. They came by a link, as people do."""
    draft, researcher = barring_draft()
    study = builders.launched(draft, researcher)
    link = builders.panel(study, reward="2.00")
    crowd_of(study, 6, 0.0, "careful")
    for tried in range(15):
        if len(who_fails(study)) == 2:
            break
        crowd_of(study, 1, 1.0, f"noisy {tried}")
    failed = who_fails(study)
    assert len(failed) == 2
    study.assignments.update(origin="live", recruitment=link)
    noisy = list(study.assignments.filter(annotator__in=failed).select_related("annotator").order_by("pk"))
    return study, noisy, link, researcher


def screened(study, by=None):
    request_screening(study, by, "live")
    jobs.run_waiting_jobs()


def page(path, **posted):
    client = Client()
    return client.post(path, posted) if posted else client.get(path)


@pytest.mark.slow
def test_the_flagged_finish_are_paid_get_no_further_batch_object_and_come_back(played):
    study, noisy, link, researcher = played
    first, second = noisy
    running = page(f"/p/{second.code}/another/", start="1")["Location"]  # begun before the screening
    screened(study)
    barrings = list(Barring.objects.order_by("annotator"))
    assert [row.annotator_id for row in barrings] == [first.annotator_id, second.annotator_id]
    screening = AnnotatorScreening.objects.get()
    assert {(row.ground, row.screening, row.by) for row in barrings} == {("rule", screening.pk, None)}
    assert AuditEvent.objects.filter(verb="bar annotator", study=study).count() == 2
    screened(study)
    assert Barring.objects.count() == 2  # the same evidence again
    # A batch that was begun is finished.
    answers = page(running)
    assert answers.status_code in (200, 302)
    live = study.assignments.get(annotator=second.annotator, submitted_at=None)
    while players.answered(live).next_key:
        pass
    live.refresh_from_db()
    assert live.submitted_at
    # No further batch, for either; the careful may have one.
    for one in (first, second):
        back = page(f"/p/{one.code}/another/", start="1")
        assert back["Location"] == f"/p/{one.code}/done/#barring"
    careful = study.assignments.exclude(annotator__in=[first.annotator, second.annotator]).first()
    assert "/done/" not in page(f"/p/{careful.code}/another/", start="1")["Location"]
    # Everything that was submitted is paid as promised.
    ledger.update_ledger(link, by=None)
    for one in (first, second, live):
        assert [str(row.amount) for row in Payment.objects.filter(assignment=one)] == ["2.00"]
    # The page says why, and how to object; nothing of a system or an answer.
    text = page(f"/p/{first.code}/done/").content.decode()
    assert "No further part for you" in text and "does not change your pay" in text and "Do another part" not in text
    names = study.systems.values_list("name", flat=True)
    assert not any(name in text for name in names) and "failed_tests" not in text and "right" not in text
    assert page(f"/p/{first.code}/appeal/", about="barring", text=" ").status_code == 422
    assert page(f"/p/{first.code}/appeal/", about="barring", text=WHY).status_code == 302
    appeal = Appeal.objects.get()
    assert (appeal.barring, appeal.verdict, appeal.work, appeal.rejected_by) == (barrings[0], None, first, None)
    assert page(f"/p/{first.code}/appeal/", about="barring", text="Again!").status_code == 409
    assert "You objected on" in page(f"/p/{first.code}/done/").content.decode()
    # An editor reads it among the appeals, and answers.
    editor = Client()
    editor.force_login(researcher)
    panel = editor.get(f"/admin/annotators/recruitment/{link.pk}/panel/").content.decode()
    address = reverse("admin:annotators_appeal", args=[link.pk, appeal.pk])
    assert address in panel and "the test questions" in panel
    shown = editor.get(address).content.decode()
    assert WHY in shown and "lift the barring" in shown and "at the panel" not in shown
    sent = editor.post(address, {"is_upheld": "yes", "answer": "The texts were cut off indeed. We are sorry."})
    assert sent.status_code == 302
    appeal.refresh_from_db()
    barrings[0].refresh_from_db()
    assert appeal.is_upheld and barrings[0].lifted_by == researcher and barrings[0].lifted_at
    text = page(f"/p/{first.code}/done/").content.decode()
    assert "You can do further parts again" in text and "We are sorry" in text and "Do another part" in text
    # The same evidence does not bar again; the person works again.
    screened(study)
    assert not is_barred(study, first.annotator_id) and is_barred(study, second.annotator_id)
    begun = page(f"/p/{first.code}/another/", start="1")["Location"]
    assert "/done/" not in begun
    assert not PanelOrder.objects.exists()


@pytest.mark.slow
def test_new_work_that_is_flagged_bars_again_after_a_lifting(played):
    study, (first, _), _, researcher = played
    screened(study)
    barring = Barring.objects.get(annotator=first.annotator)
    lift_barring(barring, "Their phone.", researcher)
    assert bar_flagged_annotators(study, {first.annotator_id: 1}, 7) == []
    again = page(f"/p/{first.code}/another/", start="1")["Location"].split("/")[2]
    live = study.assignments.get(code=again)
    while players.answered(live).next_key:
        pass
    # A screening that read the old work only does not bar; one that read the new work does.
    assert bar_flagged_annotators(study, {first.annotator_id: 1}, 8) == []
    assert len(bar_flagged_annotators(study, {first.annotator_id: 2}, 9)) == 1
    with pytest.raises(ActionRefused, match="already lifted"):
        lift_barring(barring, "Once more.", researcher)


def test_a_study_that_does_not_declare_it_bars_nobody():
    draft, researcher = barring_draft(bars_flagged_annotators=False)
    study = builders.launched(draft, researcher)
    crowd_of(study, 5, 1.0, "noisy")
    assert who_fails(study)
    study.assignments.update(origin="live")
    screened(study)
    assert AnnotatorScreening.objects.get().result["rows"] and not Barring.objects.exists()


@pytest.mark.slow
def test_by_hand_from_the_page_of_annotators_and_over_rest(played):
    study, (first, second), _, researcher = played
    editor = Client()
    editor.force_login(researcher)
    name = annotator_pseudonym(study, first.annotator.code)
    address = reverse("study_annotator_barring", args=[study.pk, name])
    assert editor.post(address, {"reason": " "}).status_code == 422
    assert editor.post(address, {"reason": "Copies its answers."}).status_code == 302
    barring = Barring.objects.get()
    assert (barring.ground, barring.by, barring.annotator_id) == ("hand", researcher, first.annotator_id)
    shown = editor.get(address).content.decode()
    assert "Copies its answers." in shown and "Lift the barring" in shown
    text = page(f"/p/{first.code}/done/").content.decode()
    assert "The researchers decided" in text and "Copies" not in text
    assert page(f"/p/{first.code}/appeal/", about="barring", text=WHY).status_code == 302
    # Who barred does not answer.
    with pytest.raises(ActionRefused, match="Another editor must answer"):
        answer_appeal(Appeal.objects.get(), "No, it stays so, sorry.", False, researcher)
    colleague = builders.user("colleague")
    StudyMember.objects.create(study=study, user=colleague, role="editor")
    answer_appeal(Appeal.objects.get(), "We looked again, and it stays so.", False, colleague)
    text = page(f"/p/{first.code}/done/").content.decode()
    assert "the decision stays" in text and "We looked again" in text and "<textarea" not in text
    viewer = builders.user("viewer")
    StudyMember.objects.create(study=study, user=viewer, role="viewer")
    reader = Client()
    reader.force_login(viewer)
    assert reader.post(address, {"lift": "1", "reason": "x"}).status_code == 403
    assert "<textarea" not in reader.get(address).content.decode()
    assert reader.get(reverse("study_annotator_barring", args=[study.pk, "nobody"])).status_code == 404
    screened(study)
    assert read_screened_study(study, "live").rows and Barring.objects.filter(ground="rule").count() == 1
    api = api_of(researcher)
    rows = {
        row["annotator"]: row["barred"]
        for row in api.get(reverse("api-annotators", args=[study.code])).json()["results"]
    }
    assert rows[name] is True and sum(rows.values()) == 2
    lift = reverse("api-annotator-lift", args=[study.code, name])
    assert api.post(lift, {"reason": ""}).status_code == 400
    assert api.post(lift, {"reason": "A mistake."}).json()["lifted_by"] == researcher.username
    assert api.post(lift, {"reason": "A mistake."}).status_code == 409
    bar = reverse("api-annotator-bar", args=[study.code, name])
    assert api.post(bar, {"reason": "After all."}).status_code == 201
    assert api.post(bar, {"reason": "After all."}).status_code == 409
    shown = editor.get(reverse("study_annotators", args=[study.pk])).content.decode()
    assert shown.count("<strong>barred</strong>") == 2
    listed = f"?study={study.pk}&amp;annotator={first.annotator_id}"
    assert listed in shown
    rows = editor.get(reverse("admin:annotators_assignment_changelist") + listed.replace("&amp;", "&"))
    assert rows.status_code == 200 and rows.context["cl"].result_count == 1


@pytest.mark.slow
def test_a_barring_holds_in_the_group_and_costs_a_newcomer_no_query(played):
    study, (first, _), link, researcher = played
    bar_annotator(study, first.annotator, "Copies.", researcher)
    other = builders.launched(builders.spa_draft(owner=researcher, title="other", exclusion_group=""), researcher)
    assert not is_barred(other, first.annotator_id)
    for one in (study, other):
        Study._base_manager.filter(pk=one.pk)._update([(Study._meta.get_field("exclusion_group"), None, "tales")])
        one.refresh_from_db()
    assert is_barred(other, first.annotator_id)
    assert assign.claim_batch(other, first.annotator).outcome == "no_further"
    lift_barring(Barring.objects.get(), "Enough.", researcher)
    assert assign.claim_batch(other, first.annotator).outcome == "done"
    with CaptureQueriesContext(connection) as queries:
        alone = builders.launched(builders.spa_draft(owner=researcher, title="alone"), researcher)
        queries_before = len(queries)
        assign.claim_batch(alone, assign.get_or_create_annotator("panel", "new"))
    asked = [one["sql"] for one in queries.captured_queries[queries_before:]]
    assert not [sql for sql in asked if "annotators_barring" in sql]


def test_a_person_barred_in_a_group_objects_on_the_page_of_another_study(played):
    study, (first, _), link, researcher = played
    other = builders.launched(builders.spa_draft(owner=researcher, title="other"), researcher)
    there = assign.claim_batch(other, first.annotator).assignment
    for one in (study, other):
        Study._base_manager.filter(pk=one.pk)._update([(Study._meta.get_field("exclusion_group"), None, "tales")])
    there, study = Assignment.objects.select_related("study").get(pk=there.pk), Study.objects.get(pk=study.pk)
    barring = bar_annotator(study, first.annotator, "Copies.", researcher)
    assert (
        barring_status(there.study, there.annotator_id).may_appeal
        and barring_status(there.study, there.annotator_id).is_of_group
    )
    appeal = create_appeal(there, "I did not copy.", subject="barring")
    newest = study.assignments.filter(annotator=first.annotator, batch__isnull=False).order_by("-pk").first()
    assert (appeal.barring, appeal.work, appeal.rejected_by) == (barring, newest, researcher)
    assert (
        not barring_status(there.study, there.annotator_id).may_appeal
        and barring_status(newest.study, newest.annotator_id).appeal == appeal
    )
    second = builders.user("second")
    StudyMember.objects.create(study=study, user=second, role="editor")
    answer_appeal(appeal, "You are right.", True, second)
    assert not is_barred(other, first.annotator_id) and barring_status(there.study, there.annotator_id).is_lifted


def test_a_batch_that_was_given_back_may_be_finished_and_no_other_begun(played):
    study, (first, _), _, researcher = played
    code = page(f"/p/{first.code}/another/", start="1")["Location"].split("/")[2]
    begun = study.assignments.get(code=code)
    assign.release_assignment(begun.pk, "returned")
    bar_annotator(study, first.annotator, "Copies.", researcher)
    claim = assign.claim_batch(study, first.annotator)
    assert (claim.outcome, claim.assignment.pk) == ("claimed", begun.pk)
    assign.release_assignment(begun.pk, "returned")
    study.batches.filter(pk=begun.batch_id).update(claimed=1)  # somebody else has it now
    assert assign.claim_batch(study, first.annotator).outcome == "no_further"


def test_the_consent_text_says_it_and_designs_without_the_setting_keep_their_hash():
    draft, _ = barring_draft()
    assert wording_of(draft, None).study["consent"] == f"I take part.\n\n{BARRING_SENTENCE}"
    assert serialize_design(draft)["study"]["bars_flagged_annotators"] is True
    draft, _ = barring_draft(bars_flagged_annotators=False)
    assert wording_of(draft, None).study["consent"] == "I take part."
    assert "bars_flagged_annotators" not in serialize_design(draft)["study"]


@pytest.mark.parametrize(
    ("columns", "has_rule", "words"),
    [
        ({}, False, "No rule says which annotators get no further batch"),
        ({"consent": " "}, True, "no consent text says so"),
        ({"batches_per_annotator": 1}, True, "every annotator gets only one"),
    ],
)
def test_the_checklist_says_what_barring_needs(columns, has_rule, words):
    draft, _ = barring_draft(**columns)
    if not has_rule:
        draft.exclusion_rules.all().delete()
    found = [one.text for one in find_design_problems(draft)]
    assert any(words in text for text in found), found
    draft.bars_flagged_annotators = False
    draft.save()
    assert not any(words in one.text for one in find_design_problems(draft))


def test_who_is_not_barred_has_nothing_to_object_to(played):
    study, (first, _), _, _ = played
    with pytest.raises(ActionRefused, match="You may do further parts"):
        create_appeal(first, WHY, subject="barring")
    assert page(f"/p/{first.code}/appeal/", about="barring", text=WHY).status_code == 409
