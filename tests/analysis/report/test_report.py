"""The report finds what was put in, says no more than that, and gives the same bytes again."""

import json
import random
import re
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F

from analysis.protocols.blocks.layouts import format_cell
from analysis.report.build import BadParameters, build_report
from annotators.models import Assignment, Exclusion
from annotators.participation.simulate import CrowdSettings, record_simulated_answers
from studies.design import checklist
from studies.models import Contrast, Question, Study, System
from studies.services import lifecycle
from tests.analysis.protocols.answers import answer
from tests.analysis.report.reported import closed, pairs, report, table
from tests.builders import launched, spa_draft, spa_study, user

pytestmark = pytest.mark.django_db
# Tests that ask the database for something of their own. Beside them, what a report says follows from the same rows.
postgres = pytest.mark.postgres


@pytest.mark.slow
@postgres
def test_known_preferences_go_in_and_come_out():
    study = spa_study(systems=("alpha", "beta", "gamma"), target_n=40, prompts=20)
    crowd = CrowdSettings(acquiescent=0.0, screened_out=0.0)
    record_simulated_answers(study, 40, {"alpha": 0.0, "beta": 0.8, "gamma": 0.8}, random.Random(5), crowd=crowd)
    result = report(study, origins=["robot"])
    found = pairs(result)
    up, level = found["beta", "alpha"], found["gamma", "beta"]
    assert up["estimate"] == pytest.approx(0.69, abs=0.06) and up["detail"]["verdict"] == "different"
    assert level["interval"]["low"] < 0.5 < level["interval"]["high"]
    claims = [one["claim"] for one in result["conclusions"]]
    assert claims[0] == "beta was preferred to alpha, for exactly these prompts."
    assert claims[1] == "It remains open whether gamma or beta is preferred, for exactly these prompts."
    rows = {(row["x"], row["y"]): row for row in table(result, "table1")["rows"]}
    assert rows["beta", "alpha"]["recovered"] == "recovered" and rows["beta", "alpha"]["delta"] > 0
    assert rows["gamma", "beta"]["recovered"] == "not shown"
    ranking = table(result, "ranking")["rows"]
    assert [row["system"] for row in ranking][2] == "alpha"


def test_where_ways_of_counting_stand_side_by_side_each_estimate_has_its_n():
    study = spa_study(target_n=8)
    record_simulated_answers(
        study, 8, {"alpha": 0, "beta": 1, "gamma": 2}, random.Random(3), crowd=CrowdSettings(screened_out=0.0)
    )
    ways = table(report(study, origins=["robot"]), "ways_of_counting")
    names = [column["key"] for column in ways["columns"]]
    of = {"p_xy": "n", "paper": "paper_n", "above": "above_n", "delta": "delta_n"}
    places = [names.index(name) for pair in of.items() for name in pair]
    assert places == sorted(places)  # the n of each before the next estimate
    assert names[names.index("delta") + 1] == "scored"  # points are of a unit
    assert all(row[n] == 8 and row[name] is not None for row in ways["rows"] for name, n in of.items())


def test_no_preference_with_a_margin_is_equivalence():
    study = spa_draft(target_n=40, prompts=20, with_rating=False)
    Contrast.objects.update(margin=0.05, expected="~")
    study = launched(study)
    answer(study, 40, percent=lambda person, x, y: 48 + (person + len(x)) % 5)
    result = report(closed(study))
    assert {e["detail"]["verdict"] for e in pairs(result).values()} == {"equivalent"}
    first = result["conclusions"][0]
    assert (
        first["claim"] == "beta and alpha are indistinguishable within ±5 percentage points, for exactly these prompts."
    )
    assert re.search(
        r"The 90 % simultaneous confidence interval .+ % to .+ %, which decides this, is within the margin\.",
        first["text"],
    )
    assert {row["recovered"] for row in table(result, "table1")["rows"]} == {"recovered"}
    assert result["confirmatory"] == {"is_confirmatory": True, "reasons": []}


def test_indistinguishable_is_said_of_equivalence_alone():
    study = spa_study(target_n=40, prompts=20, with_rating=False)
    answer(study, 40, percent=lambda person, x, y: 30 + 40 * ((person + (x > y)) % 2))
    text = json.dumps(report(closed(study))["conclusions"])
    assert "indistinguishable" not in text and "remains open" in text


def test_every_sentence_carries_estimate_interval_corrected_p_and_n():
    study = spa_study(target_n=20)
    answer(study, 20, percent=lambda person, x, y: 70 + person % 7 if x > y else 30)
    for one in report(closed(study))["conclusions"]:
        assert re.search(
            r"[\d.]+ %; 95 % simultaneous confidence interval [\d.]+ % to [\d.]+ %; Bonferroni-adjusted p [<=] .+; n = 20 annotators\.",
            one["text"],
        )
        assert re.search(
            r"P\[.+\] = \.\d\d+, 95% simultaneous CI \[\.\d\d+, \.\d\d+\], t\(19\) = .+, Bonferroni-adjusted p < \.001, d = .+, n = 20 annotators, for exactly these prompts",
            one["apa"],
        )


def test_families_are_declared_and_never_shrink():
    study = spa_study(target_n=20)
    answer(
        study,
        20,
        percent=lambda person, x, y: None if {x, y} == {"beta", "gamma"} else 60 + person % 9 if x > y else 40,
    )
    result = report(closed(study))
    known, missing = pairs(result)["beta", "alpha"], pairs(result)["gamma", "beta"]
    assert missing["status"] == "no_data" and missing["test"] is None and missing["reason"]
    assert known["test"]["family_size"] == 2
    assert known["test"]["pvalue_adjusted"] == pytest.approx(2 * known["test"]["pvalue"])
    assert {"family": "primary", "size": 2, "adjust": "bonferroni"} in result["families"]


@pytest.mark.parametrize("n", [0, 1, 2])
def test_hardly_anybody_is_no_error(n):
    study = spa_study(target_n=5)
    answer(study, n, percent=lambda person, x, y: 60 + person if x > y else 40)
    result = report(closed(study))
    estimate = pairs(result)["beta", "alpha"]
    assert estimate["status"] == {0: "no_data", 1: "n_lt_2"}.get(n, "ok")
    assert result["n"]["submitted"] == n
    if n < 2:
        assert estimate["test"] is None
        claim = result["conclusions"][0]["claim"]
        assert claim.startswith("Nothing can be said of" if n == 0 else "No test was possible for")


@postgres
def test_all_excluded_is_said_and_not_estimated():
    study = spa_study(target_n=5, rules=[("not_native", {"question": "fluent", "options": ["yes"]}), ("too_fast", {})])
    answer(study, 5, seconds=1)
    result = report(closed(study))
    assert result["n"] | {"arrived": 5} == {"arrived": 5, "submitted": 5, "kept": 0, "kept_paper": 0}
    assert "all_excluded" in {notice["code"] for notice in result["notices"]}
    assert pairs(result)["beta", "alpha"]["status"] == "no_data"
    assert {row["after"] for row in table(result, "before_after")["rows"] if row["rule"] == "too_fast"} == {None}


@pytest.mark.parametrize(
    ("n", "role", "is_said"), [(3, "primary", True), (2, "primary", False), (3, "sensitivity", False)]
)
def test_a_rule_that_excludes_more_than_half_is_named_at_the_top(n, role, is_said):
    draft = spa_draft(target_n=4, rules=[("too_fast", {"z": None})], with_rating=False)
    draft.exclusion_rules.update(role=role)
    study = launched(draft)
    made = answer(study, 4, seconds=100_000)
    for quick in made[:n]:
        Assignment.objects.filter(pk=quick.pk).update(started_at=F("submitted_at") - timedelta(seconds=1))
    notices = report(closed(study))["notices"]
    assert [notice["code"] for notice in notices].count("rule_excludes_most") == is_said
    if is_said:
        first = notices[0]
        assert first["severity"] == "block" and "“too fast” excludes 3 of 4 annotators" in first["text"]


def test_one_order_only_warns_that_order_is_not_identified():
    study = spa_study(target_n=10, both=False, with_rating=False)
    answer(study, 10, percent=lambda person, x, y: 60 + person)
    result = report(closed(study))
    assert "order" in {notice["code"] for notice in result["notices"]}
    assert table(result, "gap")["rows"][0]["gap"] is None and table(result, "gap")["rows"][0]["reason"]
    paper = pairs(result, "paper")["beta", "alpha"]["estimate"]
    assert pairs(result)["beta", "alpha"]["estimate"] == pytest.approx(paper, abs=1e-12)


def test_bets_test_answers_that_are_all_equal_and_the_paper_gives_no_stars():
    study = spa_study(target_n=10)
    answer(study, 10, percent=lambda person, x, y: 70 if x > y else 30)
    result = report(closed(study))
    estimate = pairs(result)["beta", "alpha"]
    assert estimate["status"] == "ok" and estimate["test"]["name"] == "independent_units_betting"
    assert (
        estimate["interval"]["method"] == "betting" and estimate["interval"]["low"] < 0.7 < estimate["interval"]["high"]
    )
    assert (estimate["test"]["pvalue"] < 0.05) == (estimate["interval"]["low"] > 0.5)
    few, bets, batches = result["conclusions"][0]["warnings"]
    assert (few["code"], batches["code"], bets["code"]) == ("few_clusters", "few_batches", "betting_instead_of_t")
    assert "Only 10 annotators" in few["text"]
    assert bets["text"].startswith("Answers hardly vary, so bets replace the t test. 20 annotators would narrow")
    assert bets["text"] in [row["text"] for row in table(result, "warnings")["rows"]]
    assert "detectable_difference" not in estimate["detail"]
    paper = pairs(result, "paper")["beta", "alpha"]
    assert paper["status"] == "zero_variance" and paper["test"] is None
    assert table(result, "table1")["rows"][0]["p_xy_stars"] == ""


def test_tau_spares_the_recommended_estimates_and_moves_the_papers():
    study = spa_study(target_n=20, rules=[("incoherent", {"tau": 1.1})], with_rating=False)
    answer(study, 20, percent=lambda person, x, y: 90 if person < 5 else (65 if x > y else 35) + person % 4)
    result = report(closed(study))
    recommended, paper = pairs(result)["beta", "alpha"], pairs(result, "paper")["beta", "alpha"]
    assert (recommended["n"], paper["n"]) == (20, 15)
    assert {"outcome_rule", "tau_one_order_bias"} <= {notice["code"] for notice in result["notices"]}
    change = next(row for row in table(result, "before_after")["rows"] if row["rule"] == "incoherent")
    assert (change["n_before"], change["n_after"]) == (20, 15) and change["interval"]
    assert change["change"] == pytest.approx(change["after"] - change["before"])


@postgres
def test_outcomes_are_hidden_while_a_study_collects():
    study = spa_study(target_n=20)
    answer(study, 6, percent=lambda person, x, y: 90 if x > y else 10)
    result = report(study)
    assert (
        result["outcomes"]["is_hidden"]
        and result["blocks"] == []
        and result["conclusions"] == []
        and result["figures"] == []
    )
    assert result["flow"]["submitted"] == 6
    assert not result["confirmatory"]["is_confirmatory"]
    lifecycle.unblind(study, reason="a look", by=None)
    result = report(study)
    assert not result["outcomes"]["is_hidden"] and pairs(result)
    closed(study)
    assert "The study was unblinded while it was collecting." in report(study)["confirmatory"]["reasons"]


@postgres
def test_robots_count_when_asked_for_alone():
    study = spa_study(target_n=10)
    answer(study, 4)
    answer(study, 6, origin="robot")
    study = closed(study)
    assert report(study)["n"]["submitted"] == 4
    both = report(study, origins=["live", "robot"])
    assert both["n"]["submitted"] == 10 and not both["confirmatory"]["is_confirmatory"]


@postgres
def test_a_decision_of_a_person_excludes_until_it_is_taken_back():
    study, by = spa_study(target_n=10), user()
    made = answer(study, 10, percent=lambda person, x, y: 40 + person)
    exclusion = Exclusion.objects.create(assignment=made[0], reason="wrote to us", by=by)
    study = closed(study)
    assert report(study)["n"]["kept"] == 9
    Exclusion.objects.create(assignment=made[0], reason="mistake", by=by, reverses=exclusion)
    assert report(study)["n"]["kept"] == 10


@postgres
def test_late_answers_are_left_out_undeclared():
    study = spa_study(target_n=10)
    made = answer(study, 10, percent=lambda person, x, y: 40 + person)
    Assignment.objects.filter(pk=made[0].pk).update(
        is_late=True, released_at=made[0].submitted_at, released_reason="expired"
    )
    result = report(closed(study))
    assert result["n"]["kept"] == 9
    assert next(step for step in result["flow"]["rules"] if step["rule"] == "late")["n_excluded"] == 1


@postgres
def test_the_result_without_earlier_versions_is_beside_it():
    study = spa_study(target_n=20, with_rating=False)
    answer(study, 8, percent=lambda person, x, y: 80 if x > y else 20 + person)
    question = Question.objects.filter(section__study=study, x__isnull=False).first()
    lifecycle.amend(study, {"question": {question.pk: {"help": "Take your time."}}}, reason="a hint", by=None)
    answer(study, 8, percent=lambda person, x, y: 55 if x > y else 45 + person)
    result = report(closed(study))
    rows = table(result, "versions")["rows"]
    assert [(row["all_n"], row["n"]) for row in rows] == [(16, 8), (16, 8)]
    assert rows[0]["newest"] < rows[0]["all"]
    assert "amended" in {notice["code"] for notice in result["notices"]}


@postgres
def test_a_changed_design_is_printed_and_takes_the_confirmation_away():
    study = spa_study(target_n=10)
    answer(study, 10, percent=lambda person, x, y: 40 + person)
    study = closed(study)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "SET LOCAL session_replication_role = replica"
            )  # past the triggers, as an administrator could
        cursor.execute("UPDATE studies_prompt SET text = 'another' WHERE id = (SELECT min(id) FROM studies_prompt)")
    result = report(study)
    assert "differs from the frozen version 1" in result["design"]["mismatch"]
    assert not result["confirmatory"]["is_confirmatory"]


@postgres
def test_a_rule_that_cannot_run_excludes_nobody_and_says_so(monkeypatch):
    """A launch refuses such a rule. An older version of heval did not."""
    monkeypatch.setattr(checklist, "exclusion_rule_problems", lambda *_: ())
    study = spa_study(target_n=5, rules=[("incoherent", {"tau": "much"}), ("not_native", {})])
    answer(study, 5, percent=lambda person, x, y: 80 + person)
    result = report(closed(study))
    assert result["n"]["kept_paper"] == 5
    assert [problem["row"] for problem in result["problems"]] == ["rule incoherent", "rule not_native"]


def answered_by_twelve():
    study = spa_study(target_n=12)
    answer(
        study,
        12,
        percent=lambda person, x, y: 40 + 3 * person,
        rating=lambda person, system: 1 + (person + len(system)) % 5,
    )
    return closed(study)


@pytest.mark.slow
@postgres
def test_the_same_inputs_give_the_same_report():
    study = answered_by_twelve()
    assert report(study) == report(study)
    assert report(study)["seed"] != report(study, level=0.9)["seed"]


def test_a_table_says_at_which_level_its_intervals_hold():
    made = {one["name"]: one for one in report(answered_by_twelve(), level=0.8)["tables"]}
    labels = [column["label"] for one in made.values() for column in one["columns"]]
    assert "80% CI" in labels and not [label for label in labels if "95%" in label]
    # Equivalence is shown by two one-sided tests, whose interval leaves out twice as much.
    held = {row["analysis"]: row["level"] for row in made["estimates"]["rows"]}
    assert held["spa.pair"] == "80 %" and held["spa.order_symmetry.equivalence"] == "60 %"


def test_swapping_x_and_y_mirrors_the_estimate():
    results = []
    for swap in (False, True):
        study = spa_draft(systems=("alpha", "beta"), target_n=12, with_rating=False)
        if swap:
            contrast = Contrast.objects.get(study=study)
            Contrast.objects.filter(pk=contrast.pk).update(x=contrast.y_id, y=contrast.x_id)
        study = launched(study)
        answer(study, 12, percent=lambda person, x, y: 55 + 3 * person if x > y else 50 - 2 * person)
        results.append(pairs(report(closed(study))))
    one, other = results[0]["beta", "alpha"], results[1]["alpha", "beta"]
    assert one["estimate"] == pytest.approx(1 - other["estimate"])
    assert one["test"]["pvalue"] == pytest.approx(other["test"]["pvalue"])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"colour": 1}, "colour"),
        ({"origins": ["android"]}, "origins"),
        ({"origins": []}, "origins"),
        ({"level": 2}, "level"),
        ({"level": "high"}, "level"),
        ({"resamples": 1}, "resamples"),
        ({"resamples": True}, "resamples"),
        ({"star_scheme": "1/2/3"}, "star_scheme"),
    ],
)
def test_a_wrong_parameter_is_named(parameters, message):
    with pytest.raises(BadParameters, match=message):
        build_report(Study(), parameters)


def test_every_table_cell_can_be_printed_and_undefined_is_a_dash():
    study = spa_study(target_n=6, rules=[("too_fast", {}), ("incoherent", {})])
    answer(study, 6, percent=lambda person, x, y: 40 + 3 * person, rating=lambda person, system: 1 + person % 5)
    result = report(closed(study))
    for one in result["tables"]:
        kept = {"section", "question"} if one["name"] == "answers" else set()
        for row in one["rows"]:
            assert set(row) == {column["key"] for column in one["columns"]} | kept
            for column in one["columns"]:
                assert format_cell(row[column["key"]], column["kind"]) or row[column["key"]] == ""


@postgres
def test_a_study_that_rates_only_is_reported_by_its_ratings():
    study = spa_draft(target_n=20, with_surveys=False)
    study.sections.filter(protocol="spa").first().questions.all().delete()
    Contrast.objects.filter(study=study).delete()
    first, second = study.sections.order_by("position")
    type(second).objects.filter(pk=second.pk).update(reuses=None)
    type(first).objects.get(pk=first.pk).delete()
    names = {system.name: system for system in System.objects.filter(study=study)}
    Contrast.objects.create(study=study, x=names["gamma"], y=names["alpha"], expected=">")
    study = launched(study)
    answer(study, 20, rating=lambda person, system: {"alpha": 2, "beta": 3, "gamma": 4}[system] + person % 2)
    result = report(closed(study))
    conclusion = result["conclusions"][0]
    assert (
        conclusion["claim"] == "gamma was rated higher than alpha, for prompts like these."
        and "The chance that an annotator rates gamma above alpha is 100 %" in conclusion["text"]
    )
    assert table(result, "ratings")["rows"][0]["reversal"] == "excluded"


def test_the_report_says_of_each_number_whether_it_was_planned():
    study = spa_draft(target_n=6)
    study.contrasts.last().delete()
    study = launched(study)
    answer(study, 6, percent=lambda person, x, y: 70 + person if x > y else 35)
    rows = table(report(closed(study)), "estimates")["rows"]
    roles = {"primary", "beside a planned one", "sensitivity", "not planned", "no comparison"}
    assert {row["role"] for row in rows} == roles
