"""The reliability of split halves is the one that was put in."""

import numpy as np

from analysis.stats import reliability
from tests.analysis.stats.draws import rng


def test_split_half_finds_the_reliability_that_was_put_in():
    draw = rng(3)
    truth, n_annotators = draw.normal(0, 1, 400), 10
    scores = truth + draw.normal(0, 2, (n_annotators, 400))
    wanted = 1 / (1 + 4 / n_annotators)
    result = reliability.split_half_reliability(scores, rng=rng())
    assert abs(result.estimate - wanted) < 0.06
    assert result.interval.low < wanted < result.interval.high
    assert (result.n, result.detail["n_annotators"]) == (400, 10)


def test_split_half_tolerates_missing_scores_and_an_odd_annotator():
    draw = rng(4)
    scores = draw.normal(0, 1, 60) + draw.normal(0, 0.5, (9, 60))
    scores[draw.random((9, 60)) < 0.4] = np.nan
    # An item that a half did not score has no mean there, although the rest of its sum is not exactly zero.
    with np.errstate(divide="raise"):
        result = reliability.split_half_reliability(scores, rng=rng(), resamples=199)
    assert result.status == "ok" and 0.5 < result.estimate < 1


def test_split_half_of_noise_is_near_zero_and_needs_three_items():
    noise = rng(5).normal(0, 1, (20, 200))
    assert abs(reliability.split_half_reliability(noise, rng=rng(), resamples=99).estimate) < 0.3
    for scores, status in ((np.ones((4, 2)), "not_identified"), (np.ones((4, 9)), "not_identified")):
        assert reliability.split_half_reliability(scores, rng=rng()).status == status
    assert reliability.split_half_reliability(np.full((3, 3), np.nan), rng=rng()).status == "no_data"


def test_blocks_of_halvings_change_nothing(monkeypatch):
    scores = rng(6).integers(1, 6, (7, 30)).astype(float)
    whole = reliability.split_half_reliability(scores, rng=rng(), resamples=99)
    monkeypatch.setattr(reliability, "MAX_CELLS", 300)
    assert reliability.split_half_reliability(scores, rng=rng(), resamples=99) == whole
