"""Rules about test questions flag whom they say, with evidence, and give the same result for the same answers."""

import random
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.exclusions import FAIL, PASS, UNKNOWN, RuleInput
from analysis.exclusions.rules.checks import MODEL_CHOICES, FailedTestsSettings
from analysis.exclusions.screening import (
    AnnotatorTestCounts,
    ModelSettings,
    boundary_rows,
    count_by_annotator,
    fit_and_screen,
    model_sentences,
    probability_in_words,
)
from analysis.report.build import build_report
from analysis.stats.mixture import MODELS, screen_annotators_by_question_type
from studies.models.design import REGISTRY
from tests.analysis.exclusions.frames import assignments, responses
from tests.known_answers import answered


def answers(**annotators):
    """Answers to test questions: for each annotator the right and the counted answers, positive and negative."""
    rows = []
    for number, (annotator, pairs) in enumerate(annotators.items(), 1):
        for is_positive, (right, counted) in zip((True, False), pairs, strict=True):
            rows += [
                {
                    "assignment": number,
                    "annotator": annotator,
                    "type": "positive" if is_positive else "negative",
                    "is_positive": is_positive,
                    "is_right": place < right,
                    "is_counted": True,
                    "is_submitted": True,
                    "is_own": True,
                }
                for place in range(counted)
            ]
    return pd.DataFrame(rows)


def material(frame, *rows):
    return RuleInput(responses({"assignment": 1}), assignments(*rows), test_answers=lambda: frame)


def test_the_simple_rule_needs_the_number_and_the_share():
    frame = answers(a1=((2, 2), (0, 2)), a2=((2, 2), (1, 2)), a3=((0, 2), (0, 1)), a4=((9, 10), (9, 10)))
    rule = REGISTRY["failed_tests"].flag
    given = material(frame, {}, {}, {}, {}, {})
    flags = rule(given)
    assert flags.states == {1: FAIL, 2: PASS, 3: UNKNOWN, 4: PASS, 5: UNKNOWN}
    assert flags.evidence == {1: "2 of 2 positive and 0 of 2 negative test questions right"}
    assert rule(given, share=None).states[4] == FAIL
    assert rule(given, failed=3, counted=3).states == {1: PASS, 2: PASS, 3: FAIL, 4: PASS, 5: UNKNOWN}
    assert not FailedTestsSettings({"failed": 5, "counted": 4}).is_valid()


def test_all_submitted_work_of_a_flagged_annotator_is_flagged():
    frame = answers(p=((0, 5), (5, 5)), q=((5, 5), (5, 5)))
    given = material(frame, {"annotator": "p"}, {"annotator": "q"}, {"annotator": "p"})
    flags = REGISTRY["test_question_model"].flag(given)
    assert flags.states == {1: FAIL, 2: PASS, 3: FAIL}
    assert flags.evidence[3] == (
        "0 of 5 positive and 5 of 5 negative test questions right; probability of being inattentive above .999"
    )
    assert REGISTRY["failed_tests"].flag(given).states == {1: FAIL, 2: PASS, 3: FAIL}


def test_answers_that_do_not_count_and_unsubmitted_work_say_nothing():
    frame = answers(a1=((0, 5), (0, 5)), a2=((0, 5), (0, 5)))
    frame.loc[frame["annotator"] == "a1", "is_counted"] = False
    frame.loc[frame["annotator"] == "a2", "is_submitted"] = False
    given = material(frame, {}, {})
    for rule in ("failed_tests", "test_question_model"):
        assert REGISTRY[rule].flag(given).states == {1: UNKNOWN, 2: UNKNOWN}
    (counts,) = count_by_annotator(frame)
    assert (counts.n_counted, counts.n_uncounted) == (0, 10)


def crowd(n=40):
    rng = random.Random(5)
    rates = [0.3 if number < 5 else 0.97 for number in range(n)]
    return [
        AnnotatorTestCounts(
            f"w{number:02}", tuple(sum(rng.random() < rate for _ in range(6)) for _ in range(2)), (6, 6), 0
        )
        for number, rate in enumerate(rates)
    ]


@pytest.mark.slow
def test_the_model_and_its_fit_are_those_of_the_settings():
    counts = crowd()
    default = fit_and_screen(counts, ModelSettings())
    assert default.model == "class_learned2" and default.mode == "recommended"
    assert fit_and_screen(counts[:20], ModelSettings()).model == "rate_fixed2"
    flagged = np.flatnonzero(default.flagged)
    assert len(flagged) >= 3 and flagged.max() < 5
    paper = fit_and_screen(counts, ModelSettings(model="class_learned2", fit="paper", cutoff_rule="more_than"))
    expected = screen_annotators_by_question_type(
        [row.right for row in counts],
        [row.counted for row in counts],
        model="class_learned2",
        mode="paper",
        rng=np.random.default_rng(0),
    )
    assert paper.mode == "paper" and paper.settings == expected.settings
    assert paper.posteriors == pytest.approx(expected.posteriors, abs=5e-3)
    strict = fit_and_screen(counts, ModelSettings(model="rate_uniform", threshold=0.99, cutoff=0.5))
    assert strict.settings["threshold"] == 0.99 and strict.flagged.sum() > 10
    assert "below .99" in model_sentences(strict)[0] and "reaches .5 " in model_sentences(strict)[0]


def test_equal_answers_give_equal_results_in_any_order():
    counts = crowd()
    first = fit_and_screen(counts, ModelSettings())
    again = fit_and_screen(counts[::-1], ModelSettings())
    assert first.posteriors.tolist() == again.posteriors.tolist()[::-1]


def test_the_boundary_table_agrees_with_the_flags():
    counts = crowd()
    screening = fit_and_screen(counts, ModelSettings(model="rate_fixed2"))
    rows = boundary_rows(screening, counts)
    assert [row["n"] for row in rows] == list(range(1, 11))
    at_six = rows[5]
    for row, is_flagged in zip(counts, screening.flagged, strict=True):
        assert is_flagged == (row.right[0] <= at_six["positive"] or row.right[1] <= at_six["negative"])


def test_the_boundary_table_spares_annotators_without_a_mistake_as_the_flags_do():
    counts = [AnnotatorTestCounts(f"w{n}", (1, 1), (1, 1), 0) for n in range(3)]
    eager = ModelSettings(model="rate_jeffreys", threshold=0.999, cutoff=0.5)
    screening = fit_and_screen(counts, eager)
    assert not screening.flagged.any() and screening.spared
    assert boundary_rows(screening, counts)[0] == {"n": 1, "positive": 0, "negative": 0}
    paper = fit_and_screen(counts, replace(eager, fit="paper"))
    assert paper.flagged.all() and boundary_rows(paper, counts)[0] == {"n": 1, "positive": 1, "negative": 1}


def test_the_choices_are_the_models_of_the_statistics():
    assert {value for value, _ in MODEL_CHOICES} == {*MODELS, "default"}


def test_probabilities_have_three_digits():
    assert [probability_in_words(value) for value in (0.9966, 0.99951, 0.0001, 0.5)] == [
        ".997",
        "above .999",
        "below .001",
        ".500",
    ]


@pytest.mark.slow
@pytest.mark.django_db
def test_the_report_of_a_study_names_the_rules_and_shows_the_tables():
    rules = [("test_question_model", {"cutoff": 0.5}), ("failed_tests", {})]
    study = answered("rating", robots=14, noisy=0.6, rules=rules)
    report = build_report(study, {"origins": ["robot"], "resamples": 99})
    steps = {step["rule"]: step for step in report["flow"]["rules"]}
    assert steps["test_question_model"]["n_excluded"] > 0
    tables = {table["name"]: table for table in report["tables"]}
    by_type = {row["type"]: row for row in tables["test_questions"]["rows"]}
    assert set(by_type) == {"positive", "negative", "damaged"}
    assert all(row["counted"] <= row["answers"] for row in by_type.values())
    flags = {row["rule"].split()[0]: row for row in tables["test_question_flags"]["rows"]}
    assert flags["model"]["flagged"] == steps["test_question_model"]["n_flagged"]
    assert flags["failed"]["flagged"] == steps["failed_tests"]["n_flagged"]
    assert "reaches .5 " in tables["test_question_flags"]["note"]
    assert [row["n"] for row in tables["test_question_boundaries"]["rows"]][:10] == list(range(1, 11))
    again = build_report(study, {"origins": ["robot"], "resamples": 99})
    assert again == report


@pytest.mark.slow
@pytest.mark.django_db
def test_while_outcomes_are_hidden_the_tables_say_nothing_about_systems():
    study = answered("two_choice", robots=6)
    study.assignments.update(origin="live")
    report = build_report(study, {"origins": ["live"], "resamples": 99})
    assert report["outcomes"]["is_hidden"] and not report["blocks"]
    tables = {table["name"]: table for table in report["tables"]}
    assert {"test_questions", "test_question_flags", "test_question_boundaries"} <= set(tables)
    text = str([tables[name] for name in tables if name.startswith("test_question")])
    assert not any(name in text for name in study.systems.values_list("name", flat=True))
