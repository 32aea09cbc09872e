"""Accuracy, precision, recall and their like are computed as they are defined and as they were published."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import signal_detection
from tests.analysis.stats.detection.answers import GOLDEN, study


def test_ratings_fall_into_two_bins_and_none_on_the_threshold():
    assert_allclose(signal_detection.ratings_to_machine_answers([1, 2, 3, 4, None]), [0, 0, 1, 1, np.nan])
    with pytest.raises(ValueError, match="ratings: row 1 lies on the threshold 3"):
        signal_detection.ratings_to_machine_answers([1, 3, 5], threshold=3)
    assert_allclose(signal_detection.score_correct_answers([1, 0, None], [1, 1, 0]), [1, 0, np.nan])
    for call, word in (
        (lambda: signal_detection.score_correct_answers([2], [1]), "says: row 0 is 2"),
        (lambda: signal_detection.score_correct_answers([1], [0.5]), "is_machine: row 0"),
        (lambda: signal_detection.score_correct_answers([1], [None]), "is_machine: row 0 is missing"),
        (lambda: signal_detection.score_correct_answers([1, 0], [1]), "is_machine: 1 values"),
    ):
        with pytest.raises(ValueError, match=word):
            call()


def test_measures_agree_with_the_definitions():
    case = GOLDEN["measures"]
    found = signal_detection.measures_from_counts(case["tp"], case["fp"], case["fn"], case["tn"])
    for name in ("accuracy", "precision", "recall", "f1", "specificity", "balanced_accuracy"):
        assert_allclose(getattr(found, name), case[name], atol=1e-12)
    assert_allclose(100 * found.share_human, case["pct_human"])
    case = GOLDEN["classification"]
    truth = [label == "m" for label in case["true"]]
    from_rows = signal_detection.detection_measures([3 if label == "m" else 2 for label in case["pred"]], truth)
    for name in ("accuracy", "precision", "recall", "f1"):
        assert_allclose(getattr(from_rows, name), case[name], atol=1e-12)
    assert from_rows.share_confident == 0


def test_undefined_measures_are_none():
    never = signal_detection.measures_from_counts(0, 0, 5, 5)
    assert (never.precision, never.recall, never.f1, never.share_human) == (None, 0, 0, 1)
    only_human = signal_detection.detection_measures([1, 4], [0, 0])
    assert (only_human.recall, only_human.balanced_accuracy, only_human.accuracy) == (None, None, 0.5)
    nothing = signal_detection.detection_measures([None], [1])
    assert (nothing.n, nothing.accuracy, nothing.share_confident) == (0, None, None)
    with pytest.raises(ValueError, match="false_positives: -1"):
        signal_detection.measures_from_counts(1, -1, 1, 1)
    with pytest.raises(ValueError, match="n_confident"):
        signal_detection.measures_from_counts(1, 1, 1, 1, n_confident=5)


def test_swapping_the_classes_swaps_the_measures():
    ratings, truth, _, _ = study(1)
    found, swapped = (
        signal_detection.detection_measures(ratings, truth),
        signal_detection.detection_measures(5 - ratings, 1 - truth),
    )
    assert (found.recall, found.accuracy) == (swapped.specificity, swapped.accuracy)
    assert found.share_human == pytest.approx(1 - swapped.share_human)


@pytest.mark.parametrize("row", GOLDEN["published"], ids=lambda row: f"{row['group']}-{row['domain']}")
def test_published_rows_come_back_from_the_counts_that_they_allow(row):
    # 650 answers a row; every pair (machine texts, true positives) whose measures round to the row's.
    guessed = 650 - row["n_human_guess"]
    solutions, possible = [], []
    for n_machine in range(250, 401):
        for hits in range(max(0, guessed - (650 - n_machine)), min(guessed, n_machine) + 1):
            if not (
                abs(hits / guessed - row["precision"]) <= 0.005 + 1e-9
                and abs(hits / n_machine - row["recall"]) <= 0.005 + 1e-9
            ):
                continue
            false = guessed - hits
            possible.append((n_machine, (hits + 650 - n_machine - false) / 650))
            found = signal_detection.measures_from_counts(
                hits, false, n_machine - hits, 650 - n_machine - false, n_confident=row["n_confident"]
            )
            assert found.n == 650 and found.share_human == pytest.approx(row["n_human_guess"] / 650)
            columns = ("precision", "recall", "f1", "accuracy")
            if all(abs(getattr(found, name) - row[name]) <= 0.005 + 1e-9 for name in columns):
                solutions.append((n_machine, hits, false))
    # One row of the paper contradicts itself: no counts give its precision, recall and accuracy together.
    assert len(solutions) == row["n_solutions"]
    shares = [round(n_machine / 650, 3) for n_machine, _, _ in solutions]
    assert row["machine_share_full"] == ([min(shares), max(shares)] if shares else None)
    # What precision and recall allow, whatever accuracy is printed beside them.
    needed, accuracies = (
        [round(value, 3) for value in values] for values in zip(*((n / 650, a) for n, a in possible), strict=True)
    )
    assert row["machine_share_needed"] == [min(needed), max(needed)] and row["acc_implied"] == [
        min(accuracies),
        max(accuracies),
    ]
    for n_machine, hits, false in solutions:
        signal = signal_detection.signal_detection(hits, n_machine - hits, false, 650 - n_machine - false)
        assert_allclose(signal.d_prime, row["d_prime"], atol=0.06)
        assert_allclose(signal.criterion, row["criterion"], atol=0.03)


@pytest.mark.parametrize("row", GOLDEN["published"], ids=lambda row: f"{row['group']}-{row['domain']}")
def test_published_columns_are_not_those_of_balanced_texts(row):
    """What the printed recall and share of answers would give if half of the texts were machines'."""
    half, guessed = 500_000, 1 - row["n_human_guess"] / 650
    hits = round(half * row["recall"])
    false = round(2 * half * guessed) - hits
    found = signal_detection.measures_from_counts(hits, false, half - hits, half - false)
    assert_allclose(found.balanced_accuracy, row["balanced_accuracy_implied"], atol=6e-5)
    assert_allclose(
        [found.accuracy, found.precision], [found.balanced_accuracy, row["balanced_precision_implied"]], atol=6e-5
    )
    # F1 is the harmonic mean of the two other columns, so it needs no count.
    p, r = row["precision"], row["recall"]
    assert_allclose([2 * p * r / (p + r), row["f1"]], row["f1_from_p_r"], atol=0.0101)
    assert_allclose(2 * p * r / (p + r), row["f1_from_p_r"], atol=6e-5)
