"""Screening of annotators: what the job stores, when it is due, and what the page and REST show to whom."""

import random

import pandas as pd
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from analysis.data.flat_rows import annotator_pseudonym
from analysis.data.frames import responses_frame
from analysis.models import AnnotatorScreening
from analysis.report.build import build_report
from analysis.report.screening.run import (
    AnnotatorRow,
    agreement_by_annotator,
    evidence_by_annotator,
    given_labels,
    read_screened_study,
    screen_annotators,
    sort_rows,
    submit_due_screenings,
)
from annotators.models import Assignment
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from studies.models import Job, StudyMember
from studies.models.guards import AppendOnlyViolation
from studies.services import jobs, lifecycle
from tests import builders
from tests.known_answers import answered

from .api.rest import api_of

pytestmark = pytest.mark.django_db


def live_study(protocol="rating", **options):
    """A study whose robots count as people."""
    study = answered(protocol, **options)
    study.assignments.update(origin="live")
    return study


def client_of(study, role="viewer"):
    member = builders.user(f"{role}-{random.random()}")
    StudyMember.objects.create(study=study, user=member, role=role)
    client = Client()
    client.force_login(member)
    return client


def page_of(client, study, **query):
    return client.get(reverse("study_annotators", args=[study.pk]), query)


@pytest.mark.slow
@pytest.mark.postgres
def test_the_stored_screening_agrees_with_the_rules_of_the_report():
    rules = [("test_question_model", {"cutoff": 0.5}), ("failed_tests", {"failed": 3, "share": None})]
    study = answered("rating", robots=14, noisy=0.6, rules=rules)
    stored = screen_annotators(study, "robot", by=None)
    assert stored.rule_settings["model"]["cutoff"] == 0.5 and stored.rule_settings["simple"]["failed"] == 3
    report = build_report(study, {"origins": ["robot"], "resamples": 99})
    steps = {step["rule"]: step for step in report["flow"]["rules"]}
    rows = stored.result["rows"]
    assert len(rows) == 14 == stored.n_assignments
    assert 0 < len(stored.result["flagged"]) == steps["test_question_model"]["n_flagged"]
    assert sum(row["is_failed"] is True for row in rows) == steps["failed_tests"]["n_flagged"]
    tables = {table["name"]: table["rows"] for table in report["tables"]}
    assert stored.result["boundaries"] == tables["test_question_boundaries"]
    assert stored.n_answers == sum(row["counted"] for row in tables["test_questions"])
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    assert all(0 <= row["agreement"]["share"] <= 1 for row in rows if row["agreement"])
    with pytest.raises(AppendOnlyViolation):
        stored.delete()


def test_agreement_compares_answers_to_the_same_question_about_the_same_text():
    usual = {"question": "q", "sample": 0, "part": ""}
    rows = [
        {"annotator": "a", "item": "s1.1", "system": "x", "given": "1"},
        {"annotator": "b", "item": "s1.1", "system": "x", "given": "1"},
        {"annotator": "c", "item": "s1.1", "system": "x", "given": "0"},
        {"annotator": "c", "item": "s1.1", "system": "y", "given": "1"},
        {"annotator": "d", "item": "s1.2", "system": "x", "given": "1"},
        {"annotator": "b", "item": "s1.3", "system": None, "given": "1"},
        {"annotator": "c", "item": "s1.3", "system": None, "given": "1"},
    ]
    found = agreement_by_annotator(pd.DataFrame([usual | {"label": ""} | row for row in rows]))
    assert found == {
        "a": {"share": 1 / 2, "n": 2},
        "b": {"share": 2 / 3, "n": 3},
        "c": {"share": 1 / 3, "n": 3},
    }


def test_relative_answers_agree_whichever_output_was_shown_first():
    usual = {"protocol": "relative", "item": "s1.1", "question": "q", "part": "", "label": "", "choice": ""}
    usual |= {"is_submitted": True, "is_erased": False, "chosen_system": None}
    rows = [
        {"annotator": "a", "system": "x", "sample": 0, "value": 0.75},
        {"annotator": "b", "system": "y", "sample": 3, "value": 0.25},
        {"annotator": "c", "system": "y", "sample": 3, "value": 0.75},
        {"annotator": "d", "system": "z", "sample": 0, "value": 0.75, "item": "s2.1", "protocol": "rating"},
        {"annotator": "a", "system": "y", "sample": 0, "value": 0.25, "item": "s2.1", "protocol": "rating"},
    ]
    found = agreement_by_annotator(given_labels(pd.DataFrame([usual | row for row in rows])))
    assert found == {"a": {"share": 0.5, "n": 2}, "b": {"share": 0.5, "n": 2}, "c": {"share": 0.0, "n": 2}}


def test_a_study_of_relative_points_has_agreement_across_sides():
    study = live_study("relative", robots=10)
    lifecycle.unblind(study, None, "a look")
    frame = responses_frame(study, ["live"], ["live"]).rows
    both = frame[frame["value"].notna()].groupby("item")["system"].nunique()
    assert (both == 2).any()  # some items were seen in both orders
    rows = given_labels(frame)
    assert rows.groupby("item")["system"].nunique().max() == 1
    n = rows[rows["value"].notna()].groupby("item").size()
    pairs = int((n * (n - 1)).sum())
    found = screen_annotators(study, "live", by=None).result["rows"]
    assert sum(row["agreement"]["n"] for row in found if row["agreement"]) == pairs > 0


def test_models_of_all_answers_are_evidence_beside_the_test_questions():
    usual = {"protocol": "rating", "section": 1, "question": "q", "system": "x", "sample": 0, "part": "", "label": ""}
    scores = {"a": [0.2, 0.8] * 5, "b": [0.2, 0.8] * 5, "c": [0.2, 0.8] * 5, "d": [0.8] * 10}
    rows = [
        usual | {"annotator": who, "item": f"s1.{n}", "value": value, "given": f"{value}"}
        for who, values in scores.items()
        for n, value in enumerate(values)
    ]
    names = {(1, "q"): "Rating, fluency"}
    found, reasons = evidence_by_annotator(pd.DataFrame(rows), names)
    assert not reasons and {one["error_n"] for one in found.values()} == {10}
    assert found["a"]["error_rate"] < 0.01 and found["d"]["error_rate"] == pytest.approx(0.5, abs=0.01)
    assert found["a"]["competence"] > 0.9 and found["d"]["competence"] < 0.1
    # Own minus others: 0.8 - 0.2 for half of the items.
    assert found["d"]["severity"] == pytest.approx(0.3) and found["d"]["severity_n"] == 10
    assert found["d"]["severity_low"] < 0.3 < found["d"]["severity_high"]
    pairs, reasons = evidence_by_annotator(pd.DataFrame([row for row in rows if row["annotator"] in ("a", "d")]), names)
    assert "error_rate" not in pairs["a"] and reasons == ["Rating, fluency: no item has answers of three annotators."]
    assert pairs["a"]["severity"] == pytest.approx(-0.3)


@pytest.mark.parametrize("protocol", ["rating", "two_choice", "relative"])
def test_the_page_and_rest_show_the_evidence_when_outcomes_are_shown(protocol):
    study = live_study(protocol, robots=10)
    lifecycle.unblind(study, None, "a look")
    stored = screen_annotators(study, "live", by=None)
    study.refresh_from_db()
    rows = read_screened_study(study, "live").rows
    known = [row for row in rows if row.evidence]
    assert known or stored.result["no_evidence"]
    client = client_of(study, "editor")
    text = page_of(client, study, sort="severity").content.decode()
    assert ">Competence" in text and "exclude nobody" in text
    for row in known:
        assert all(0 <= row.evidence[name] <= 1 for name in ("error_rate", "competence") if name in row.evidence)
        assert ("severity" in row.evidence) <= (protocol == "rating")
    by_name = {row.annotator: row for row in rows}
    shown = api_of(builders.user()).get(reverse("api-annotators", args=[study.code])).json()["results"]
    assert len(shown) == len(rows)
    for one in shown:
        evidence = by_name[one["annotator"]].evidence
        assert (one["error_rate"], one["severity"]) == (evidence.get("error_rate"), evidence.get("severity"))


@pytest.mark.slow
def test_a_running_study_is_screened_after_enough_new_answers_and_a_closed_one_to_the_end():
    study = live_study("two_choice", robots=8)
    assert submit_due_screenings() == 1 and submit_due_screenings() == 1  # the same job still waits
    assert Job.objects.filter(kind="screen_annotators").count() == 1
    jobs.run_waiting_jobs()
    stored = AnnotatorScreening.objects.get()
    assert stored.n_assignments == 8 and not stored.has_agreement
    assert all(row["agreement"] is None for row in stored.result["rows"])
    assert submit_due_screenings() == 0
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    assert submit_due_screenings() == 1
    jobs.run_waiting_jobs()
    newest = AnnotatorScreening.objects.order_by("-pk").first()
    assert newest.has_agreement and any(row["agreement"] for row in newest.result["rows"])
    assert submit_due_screenings() == 0


@pytest.mark.parametrize(
    ("n", "last", "has_agreement", "is_blind", "is_due"),
    [
        (1, None, None, True, True),
        (14, 10, False, True, False),
        (15, 10, False, True, True),
        (219, 200, False, True, False),
        (220, 200, False, True, True),
        (199, 200, False, True, True),
        (200, 200, False, False, True),
        (200, 200, True, False, False),
        (201, 200, True, False, True),
    ],
)
def test_when_a_screening_is_due(n, last, has_agreement, is_blind, is_due):
    from analysis.report.screening.run import _is_due

    assert _is_due(n, last, has_agreement, is_blind=is_blind) is is_due


@pytest.mark.slow
def test_while_outcomes_are_hidden_the_page_says_nothing_about_systems_or_agreement():
    study = live_study(robots=8, noisy=0.4)
    lifecycle.unblind(study, None, "a look")
    stored = screen_annotators(study, "live", by=None)
    assert stored.has_agreement
    client = client_of(study)
    study.refresh_from_db()
    assert b">Agreement" in page_of(client, study).content
    type(study).objects.filter(pk=study.pk).update(unblinded_at=None)
    study.refresh_from_db()
    text = page_of(client, study).content.decode()
    assert "Agreement" not in text and "Competence" not in text and "still collecting" in text
    assert not any(name in text for name in study.systems.values_list("name", flat=True))
    shown = read_screened_study(study, "live")
    assert all(row.agreement is None and row.agreement_n == 0 and not row.evidence for row in shown.rows)


@pytest.mark.slow
def test_the_page_sorts_pages_and_refuses_other_values():
    study = live_study(robots=12, noisy=0.3)
    screen_annotators(study, "live", by=None)
    client = client_of(study)
    rows = read_screened_study(study, "live").rows
    for sort in ("-probability", "annotator", "minutes", "-labels", "positive"):
        text = page_of(client, study, sort=sort).content.decode()
        places = [text.index(f"<code>{row.annotator[:8]}</code>") for row in sort_rows(rows, sort)]
        assert places == sorted(places), sort
        assert text.count("aria-sort") == 1
    assert page_of(client, study, sort="value").status_code == 404
    assert page_of(client, study, origin="test").status_code == 404
    assert page_of(client, study, page="99").status_code == 200
    assert b"not computed yet" in page_of(client, study, origin="robot").content


def row_of(annotator, **values):
    unknown = dict.fromkeys(("is_flagged", "is_failed", "agreement", "minutes", "share"))
    counts = {
        "pk": 1,
        "n_assignments": 1,
        "right": (0, 0),
        "counted": (0, 0),
        "n_uncounted": 0,
        "posteriors": (None, None),
    }
    return AnnotatorRow(annotator, **unknown | counts | {"agreement_n": 0, "labels": 0} | values)


def test_rows_are_sorted_both_ways_with_unknown_values_last():
    rows = [
        row_of("d"),
        row_of("c", posteriors=(0.2, 0.9), minutes=3.0, right=(1, 0), counted=(2, 0)),
        row_of("b", posteriors=(0.5, None), minutes=9.0, right=(3, 0), counted=(4, 0)),
        row_of("a", posteriors=(0.5, None), minutes=1.0, right=(9, 0), counted=(10, 0)),
    ]

    def order(sort):
        return "".join(row.annotator for row in sort_rows(rows, sort))

    assert order("-probability") == "cabd" and order("probability") == "abcd"
    assert order("minutes") == "acbd" and order("-minutes") == "bcad"
    assert order("positive") == "cbad" and order("-annotator") == "dcba"


def test_only_those_who_may_analyse_start_the_job_and_a_form_sent_twice_starts_one():
    study = live_study(robots=4)
    address = reverse("study_annotators_screen", args=[study.pk])
    viewer, editor = client_of(study), client_of(study, "editor")
    assert b"Compute with all answers now" not in page_of(viewer, study).content
    assert viewer.post(address, {"origin": "live"}).status_code == 403
    assert client_of(study, "coder").get(reverse("study_annotators", args=[study.pk])).status_code == 403
    assert b"Compute with all answers now" in page_of(editor, study).content
    for _ in range(2):
        assert editor.post(address, {"origin": "live", "token": "abc"}).status_code == 302
    assert Job.objects.filter(kind="screen_annotators").count() == 1
    assert editor.post(address, {"origin": "other"}).status_code == 404
    assert b'Reading the answers to test questions: <span class="doing">It will start' in page_of(viewer, study).content
    jobs.run_waiting_jobs()
    assert b"The model flags" in page_of(viewer, study).content


def test_people_who_withdrew_since_are_not_shown():
    study = live_study(robots=6)
    screen_annotators(study, "live", by=None)
    gone = Assignment.objects.filter(study=study, submitted_at__isnull=False).first()
    pseudonym = annotator_pseudonym(study, gone.annotator.code)
    assert pseudonym in {row.annotator for row in read_screened_study(study, "live").rows}
    withdraw_annotator_and_erase_texts(gone)
    assert pseudonym not in {row.annotator for row in read_screened_study(study, "live").rows}


def test_other_studies_of_a_person_are_shown_only_to_their_members():
    first, second = live_study(robots=6), live_study("two_choice", robots=6)
    person = Assignment.objects.filter(study=first).order_by("pk").first().annotator
    moved = Assignment.objects.filter(study=second).order_by("pk").first()
    Assignment.objects.filter(pk=moved.pk).update(annotator=person)
    screen_annotators(first, "live", by=None)
    screen_annotators(second, "live", by=None)
    client = client_of(first)
    there = annotator_pseudonym(second, person.code)
    assert there[:8] not in page_of(client, first).content.decode()
    viewer = StudyMember.objects.get(study=first, role="viewer").user
    assert all(not row["other_studies"] for row in _rest_rows(viewer, first))
    StudyMember.objects.create(study=second, user=viewer, role="viewer")
    assert there[:8] in page_of(client, first).content.decode()
    (named,) = [row["other_studies"] for row in _rest_rows(viewer, first) if row["other_studies"]]
    assert named[0]["annotator"] == there and named[0]["code"] == str(second.code)
    assert named[0]["is_flagged"] in (True, False)


def _rest_rows(user, study):
    return api_of(user).get(f"studies/{study.code}/annotators/").json()["results"]


def test_rest_gives_the_numbers_of_the_page_in_pages():
    study = live_study(robots=7, noisy=0.3)
    member = builders.user("reader")
    StudyMember.objects.create(study=study, user=member, role="viewer")
    api = api_of(member)
    empty = api.get(f"studies/{study.code}/annotators/").json()
    assert empty == {"next": None, "results": [], "screening": None}
    stored = screen_annotators(study, "live", by=None)
    first = api.get(f"studies/{study.code}/annotators/?page_size=4").json()
    assert len(first["results"]) == 4 and first["screening"]["boundaries"] == stored.result["boundaries"]
    rest = api.get(first["next"].partition("/api/v1/")[2]).json()
    seen = {row["annotator"]: row for row in [*first["results"], *rest["results"]]}
    assert set(seen) == {row["annotator"] for row in stored.result["rows"]} and rest["next"] is None
    for row in stored.result["rows"]:
        shown = seen[row["annotator"]]
        assert [shown[name]["posterior"] for name in ("positive", "negative")] == row["posteriors"]
        assert shown["is_flagged"] == row["is_flagged"] and shown["agreement"] is None
    assert api.get(f"studies/{study.code}/annotators/?origin=test").status_code == 400


@pytest.mark.slow
@pytest.mark.postgres
def test_the_number_of_queries_does_not_depend_on_the_number_of_annotators():
    def queries(study):
        client = client_of(study)
        page_of(client, study)
        with CaptureQueriesContext(
            connection,
        ) as seen:
            assert page_of(client, study).status_code == 200
        return len(seen)

    few, many = live_study(robots=3), live_study(robots=12)
    for study in (few, many):
        screen_annotators(study, "live", by=None)
    assert queries(few) == queries(many) <= 16
