"""A page is recorded once, whatever the browser does."""

import random
from contextlib import nullcontext
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotators.models import Assignment, PageVisit, Response
from annotators.pages.record import (
    AlreadyStored,
    AssignmentClosed,
    ConflictingAnswers,
    DraftTooLong,
    NoSuchPage,
    PageOutOfOrder,
    full_page_state,
    record_page_answers,
    save_page_draft_and_extend_deadline,
)
from annotators.places import assign
from annotators.views.lookup import get_page_assignment_or_404_and_allow_framing
from studies.models import Batch, Study
from studies.services import lifecycle
from tests.builders import spa_study
from tests.players import answered, claimed, form, open_page, plausible, submitted

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


@pytest.fixture(scope="module")
def stored_study(module_transaction) -> int:
    return spa_study(target_n=3).pk


@pytest.fixture
def study(stored_study, db):
    return Study.objects.get(pk=stored_study)


def at_questions(study, person="w"):
    """An assignment whose next page is the SPA questions."""
    return submitted(study, person, until="s2.ask")


def fresh(assignment):
    return Assignment.objects.select_related("study", "recruitment").get(pk=assignment.pk)


def test_a_whole_assignment_is_stored_as_it_was_shown(study):
    assignment = submitted(study, "w", comment="thank you")
    assert assignment.submitted_at and not assignment.is_late
    rows = {r.slot: r for r in Response.objects.filter(assignment=assignment).select_related("question")}
    shown = {v.key: v.shown for v in PageVisit.objects.filter(assignment=assignment)}
    assert set(shown) == {"s1", "start", "s2.read", "s2.ask", "s3.p1", "s4"}
    for position, question, text, label in shown["s2.ask"]["questions"]:
        row = rows[f"s2.q{position}"]
        assert row.question_id == question and row.label == label and row.position == position
        assert f"writer {label[0]} is" in text and f"writer {label[1]}?" in text
        assert row.item_id is None and row.exposure_id is None and 0 <= row.value <= 100
    for position, item, exposures in shown["s3.p1"]["items"]:
        for label, exposure in exposures:
            row = rows[f"s3.q1.i{position}.{label}"]
            assert (row.item_id, row.exposure_id, row.label) == (item, exposure, label)
    assert rows["s1.q1"].choice == "yes" and rows["s4.q1"].text == "thank you"
    assert not PageVisit.objects.filter(assignment=assignment).exclude(draft=None).exists()


def test_labels_mean_one_system_throughout(study):
    """The letters of the reading are those of the questions and of the rating that reuses it."""
    for person in "abc":
        assignment = submitted(study, person)
        meant = {}
        for visit in PageVisit.objects.filter(assignment=assignment):
            for _, item, exposures in visit.shown["items"]:
                for label, exposure in exposures:
                    system = study.items.get(pk=item).exposures.get(pk=exposure).output.system.name
                    assert meant.setdefault(label, system) == system
        for row in Response.objects.filter(assignment=assignment, question__x__isnull=False).select_related(
            "question__x", "question__y"
        ):
            assert (meant[row.label[0]], meant[row.label[1]]) == (row.question.x.name, row.question.y.name)


def test_the_rated_item_is_the_first_one_shown(study):
    assignment = submitted(study, "w")
    shown = {v.key: v.shown for v in PageVisit.objects.filter(assignment=assignment)}
    assert [item for _, item, _ in shown["s3.p1"]["items"]] == [shown["s2.read"]["items"][0][1]]


def test_a_page_sent_twice_changes_nothing(study):
    assignment = at_questions(study)
    step, page, asks = open_page(assignment)
    answers = form(**plausible(assignment, rng=random.Random(3)))
    first = record_page_answers(fresh(assignment), page.key, answers)
    before = list(Response.objects.filter(assignment=assignment).values_list())
    again = record_page_answers(fresh(assignment), page.key, answers)
    assert again.next_key == first.next_key == "s3.p1"
    assert list(Response.objects.filter(assignment=assignment).values_list()) == before


def test_other_answers_for_a_recorded_page_are_refused(study):
    assignment = at_questions(study)
    _, page, asks = open_page(assignment)
    answers = plausible(assignment, rng=random.Random(3))
    record_page_answers(fresh(assignment), page.key, form(**answers))
    slot = next(iter(asks))
    with pytest.raises(ConflictingAnswers):
        record_page_answers(fresh(assignment), page.key, form(**answers | {slot: str((int(answers[slot]) + 1) % 101)}))
    assert Response.objects.get(assignment=assignment, slot=slot).value == Decimal(answers[slot])


def test_the_last_page_sent_twice_submits_once(study):
    assignment = submitted(study, "w")
    again = answered(assignment, "s4")
    assert again.next_key is None and Assignment.objects.get(pk=assignment.pk).submitted_at == assignment.submitted_at


def test_pages_are_answered_in_order(study):
    assignment = claimed(study, "w")
    with pytest.raises(PageOutOfOrder):
        record_page_answers(fresh(assignment), "s2.ask", form())
    with pytest.raises(NoSuchPage):
        record_page_answers(fresh(assignment), "nonsense", form())


def test_a_page_whose_visit_is_missing_is_recorded_and_when_it_was_shown_is_not_known(study):
    assignment = claimed(study, "w")
    assert record_page_answers(fresh(assignment), "s1", form(**{"s1.q1": "yes"})).next_key == "start"
    visit = PageVisit.objects.get(assignment=assignment, key="s1")
    assert visit.recorded_at and visit.shown_at is None and visit.shown["questions"]
    assert fresh(assignment).started_at and Response.objects.get(assignment=assignment).choice == "yes"


def test_a_page_is_recorded_as_it_was_shown_even_where_it_would_be_laid_otherwise_today(study):
    """Its visit was written by an earlier release of the code, with the outputs' letters the other way round."""
    assignment = submitted(study, "w", until="s3.p1")
    step, _, _ = open_page(assignment)
    visit = PageVisit.objects.get(assignment=assignment, key="s3.p1")
    ((position, item, labelled),) = visit.shown["items"]
    letters = [label for label, _ in labelled]
    turned = [[letter, exposure] for letter, (_, exposure) in zip(reversed(letters), labelled, strict=True)]
    PageVisit.objects.filter(pk=visit.pk).update(shown=visit.shown | {"items": [[position, item, turned]]})
    answers = dict.fromkeys(step.protocol.page_fields(step.page), "3")
    answer = Client().post(f"/p/{assignment.code}/s3.p1/", answers)
    assert answer.status_code == 302, answer.content.decode()
    stored = Response.objects.filter(assignment=assignment, item=item).values_list("label", "exposure")
    assert dict(stored) == dict(map(tuple, turned)) != dict(map(tuple, labelled))


def test_a_page_keeps_the_place_for_as_long_as_its_study_says_by_now(study):
    assignment = at_questions(study)
    _, page, _ = open_page(assignment)
    lifecycle.amend(study, {"study": {None: {"idle_seconds": 7_000}}}, by=None, reason="People are slower.")
    sent = plausible(assignment, rng=random.Random(1))
    assert Client().post(f"/p/{assignment.code}/{page.key}/", sent).status_code == 302
    left = Assignment.objects.get(pk=assignment.pk).reserved_until - timezone.now()
    assert timedelta(seconds=6_900) < left <= timedelta(seconds=7_001)


BAD = {
    "missing": [],
    "blank": [""],
    "words": ["a lot"],
    "above": ["101"],
    "below": ["-1"],
    "minus zero": ["-0"],
    "comma": ["3,5"],
    "exponent": ["1e1"],
    "huge": ["9" * 5000],
    "nan": ["NaN"],
    "infinity": ["inf"],
    "hexadecimal": ["0x3"],
    "underscore": ["0_3"],
    "superscript": ["³"],
    "NUL": ["3\x00"],
    "line break": ["3\n"],
    "two values": ["3", "4"],
    "the same twice": ["3", "3"],
}


@pytest.mark.parametrize("sent", BAD.values(), ids=BAD)
def test_a_chance_is_a_whole_number_from_0_to_100(study, sent):
    assignment = at_questions(study)
    _, page, asks = open_page(assignment)
    slot = next(iter(asks))
    data = form(**plausible(assignment))
    data.setlist(slot, sent)
    outcome = record_page_answers(fresh(assignment), page.key, data)
    assert list(outcome.sent.errors) == [slot] and outcome.sent.errors[slot]
    assert not Response.objects.filter(assignment=assignment, slot__startswith="s2").exists()


@pytest.mark.parametrize("sent", [["6"], ["0"], ["-1"], ["3.5"], ["03"], ["3", "4"], ["３"], ["on"]])
def test_a_rating_is_one_of_its_points(study, sent):
    assignment = submitted(study, "w", until="s3.p1")
    _, page, asks = open_page(assignment)
    slot = next(iter(asks))
    data = form(**plausible(assignment))
    data.setlist(slot, sent)
    assert list(record_page_answers(fresh(assignment), page.key, data).sent.errors) == [slot]


@pytest.mark.parametrize(
    "name",
    ["s2.q99", "s3.q1.i1.A", "s1.q1", "s2.q1.skip", "system", "csrfmiddlewaretoken", "s2.q1 ", "S2.Q1", "s2.q1\x00"],
)
def test_a_field_that_the_page_does_not_have_is_refused(study, name):
    assignment = at_questions(study)
    _, page, asks = open_page(assignment)
    data = form(**plausible(assignment))
    data[name] = "5"
    outcome = record_page_answers(fresh(assignment), page.key, data)
    assert (
        outcome.sent.non_field_errors
        and not Response.objects.filter(assignment=assignment, slot__startswith="s2").exists()
    )


@pytest.mark.parametrize(
    "text, is_kept",
    [
        ("x" * 2000, True),
        ("x" * 2001, False),
        ("😀" * 2000, True),
        ("a\x00b", False),
        ("a\ud800b", False),
        ("  \u200b ", True),
        ("‮abc", True),
    ],
)
def test_words_are_kept_whole_or_refused(study, text, is_kept):
    assignment = submitted(study, "w", until="s4")
    open_page(assignment)
    outcome = record_page_answers(fresh(assignment), "s4", form(**{"s4.q1": text}))
    assert (outcome.sent is None) is is_kept
    stored = list(Response.objects.filter(assignment=assignment, slot="s4.q1").values_list("text", flat=True))
    assert not stored or stored == [text.strip()]


def test_who_is_screened_out_gives_the_place_back(study):
    assignment = claimed(study, "w")
    open_page(assignment)
    outcome = record_page_answers(fresh(assignment), "s1", form(**{"s1.q1": "no"}))
    assignment = Assignment.objects.get(pk=assignment.pk)
    assert outcome.next_key is None and assignment.released_reason == "screened_out" and assignment.submitted_at is None
    assert Batch.objects.get(pk=assignment.batch_id).claimed == 0
    assert Response.objects.get(assignment=assignment).choice == "no"
    assert assign.claim_batch(study, assignment.annotator).outcome == "barred"
    with pytest.raises(AssignmentClosed):
        answered(assignment, "start")


def test_an_expired_place_that_is_free_is_taken_again(study):
    assignment = at_questions(study)
    assert assign.release_assignment(assignment.pk, "expired")
    answered(assignment, "s2.ask")
    assignment = Assignment.objects.get(pk=assignment.pk)
    assert assignment.released_at is None and Batch.objects.get(pk=assignment.batch_id).claimed == 1


def test_who_is_screened_out_after_the_place_was_given_to_another_has_not_finished(study):
    assignment = claimed(study, "slow")
    open_page(assignment)
    assign.release_assignment(assignment.pk, "expired")
    for n in range(study.target_n):
        claimed(study, f"newcomer {n}")
    (slot,) = open_page(assignment, "s1")[2]
    assert answered(assignment, "s1", **{slot: "no"}).next_key is None
    assignment = fresh(assignment)
    assert (assignment.released_reason, assignment.submitted_at, assignment.is_late) == ("screened_out", None, False)
    assert [answer.choice for answer in Response.objects.filter(assignment=assignment)] == ["no"]


@pytest.mark.parametrize("reason", ["failed_checks", "screened_out"])
def test_who_is_turned_away_while_a_page_is_on_its_way_answers_it_no_more(study, reason):
    assignment = at_questions(study)
    as_read, answers = fresh(assignment), form(**plausible(assignment))
    assign.release_assignment(assignment.pk, reason)
    n_answers = Response.objects.filter(assignment=assignment).count()
    with pytest.raises(AssignmentClosed):
        record_page_answers(as_read, "s2.ask", answers)
    assert Response.objects.filter(assignment=assignment).count() == n_answers


def test_work_that_comes_late_is_kept_and_marked(study):
    study = spa_study(target_n=1, title="one place")
    late = at_questions(study, "slow")
    assign.release_assignment(late.pk, "expired")
    submitted(study, "quick")
    while (key := full_page_state(fresh(late)).next_key) is not None:
        answered(late, key)
    late = Assignment.objects.get(pk=late.pk)
    assert late.is_late and late.submitted_at and late.released_reason == "expired"
    assert Batch.objects.get(pk=late.batch_id).claimed == 1
    assert Response.objects.filter(assignment=late).count() == 8


def test_after_closing_those_inside_finish_and_nobody_is_revived(study):
    inside, outside = at_questions(study, "in"), at_questions(study, "out")
    assign.release_assignment(outside.pk, "expired")
    lifecycle.start_closing(study, by=None)
    assert assign.claim_batch(study, assign.get_or_create_annotator("panel", "new")).outcome == "closed"
    for assignment in (inside, outside):
        while (key := full_page_state(fresh(assignment)).next_key) is not None:
            answered(assignment, key)
    assert not Assignment.objects.get(pk=inside.pk).is_late
    assert Assignment.objects.get(pk=outside.pk).is_late


def test_seconds_that_a_draft_counted_while_the_page_was_on_its_way_stay(study):
    assignment = at_questions(study)
    _, page, asks = open_page(assignment)
    as_read = get_page_assignment_or_404_and_allow_framing(RequestFactory().post("/"), assignment.code, page.key)
    save_page_draft_and_extend_deadline(fresh(assignment), page.key, form(active="90"))
    record_page_answers(as_read, page.key, form(active="7", **plausible(assignment)))
    assert PageVisit.objects.get(assignment=assignment, key=page.key).active_seconds == 90


def test_a_draft_is_kept_until_the_page_is_recorded(study):
    assignment = at_questions(study)
    open_page(assignment)
    save_page_draft_and_extend_deadline(
        fresh(assignment), "s2.ask", form(**{"s2.q1": "40", "go": "1", "active": "12", "layout": "one"})
    )
    visit = PageVisit.objects.get(assignment=assignment, key="s2.ask")
    assert (visit.draft, visit.layout, visit.active_seconds) == ({"s2.q1": ["40"]}, "one", 12)
    answered(assignment, "s2.ask")
    with pytest.raises(ConflictingAnswers):
        save_page_draft_and_extend_deadline(fresh(assignment), "s2.ask", form(**{"s2.q1": "50"}))
    assert PageVisit.objects.get(pk=visit.pk).draft is None


def test_a_draft_of_a_recorded_page_that_says_what_is_stored_is_no_conflict(study):
    assignment = at_questions(study)
    _, _, asks = open_page(assignment)
    sent = form(**plausible(assignment, rng=random.Random(3)))
    record_page_answers(fresh(assignment), "s2.ask", sent)
    for draft in (sent, form(active="3")):
        with pytest.raises(AlreadyStored):
            save_page_draft_and_extend_deadline(fresh(assignment), "s2.ask", draft)
    assert PageVisit.objects.get(assignment=assignment, key="s2.ask").draft is None


def test_a_draft_makes_a_missing_visit_again(study):
    assignment = at_questions(study)
    before = PageVisit.objects.get(assignment=assignment, key="s2.read")
    PageVisit.objects.filter(pk=before.pk).update(layout="one")
    save_page_draft_and_extend_deadline(fresh(assignment), "s2.ask", form(**{"s2.q1": "40"}))
    visit = PageVisit.objects.get(assignment=assignment, key="s2.ask")
    assert (visit.draft, visit.layout, visit.shown_at) == ({"s2.q1": ["40"]}, "one", None)


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        ("s2.q1=" + "x" * 300_000, None),
        ("&".join(f"f{n}=1" for n in range(1500)), None),
        (f"{'x' * 300_000}=1", None),
        ("s2.q1=%00%ED%A0%80a", {"s2.q1": ["\ufffd\ufffd\ufffda"]}),
        (f"{'x' * 200}=1", {"x" * 200: ["1"]}),
        ("s2.q1=1" * 1 + "&s2.q1=2" * 30, {"s2.q1": ["1"] + ["2"] * 30}),
    ],
)
def test_a_draft_is_kept_whole_or_refused(study, data, kept):
    assignment = at_questions(study)
    open_page(assignment)
    with nullcontext() if kept else pytest.raises(DraftTooLong):
        save_page_draft_and_extend_deadline(fresh(assignment), "s2.ask", QueryDict(data))
    assert PageVisit.objects.get(assignment=assignment, key="s2.ask").draft == kept


def test_a_middle_page_takes_at_most_eight_queries(study):
    assignment = at_questions(study)
    _, page, asks = open_page(assignment)
    loaded, answers = fresh(assignment), form(**plausible(assignment))
    with CaptureQueriesContext(
        connection,
    ) as queries:
        record_page_answers(loaded, page.key, answers)
    assert (
        len([q for q in queries if not q["sql"].startswith(("SAVEPOINT", "RELEASE", "BEGIN"))]) <= 7
    )  # and one to find the assignment
