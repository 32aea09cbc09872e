"""Probes of a judge: each finds what was put into the data, and nothing where nothing was put."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from statsmodels.regression.linear_model import WLS

from analysis.stats import judge_probes
from tests.analysis.stats.draws import rng
from tests.analysis.stats.judges.tables import rows


def scored(seed, favour=0.0, per_doubling=0.0, **options):
    """Scores of people and a judge that favours system 0, and long outputs."""
    made, draw = rows(seed, **options), rng(seed + 100)
    n = len(made["people"])
    n_items = made["items"].max() + 1
    lengths = np.exp(draw.normal(4, 0.6, n_items))[made["items"]]
    quality = draw.normal(3, 1, n_items)[made["items"]]
    people = quality + draw.normal(0, 0.3, 9)[made["annotators"]] + draw.normal(0, 0.5, n)
    judge = quality + draw.normal(0, 0.5, n_items)[made["items"]]
    judge = judge + favour * (made["systems"] == 0) + per_doubling * np.log2(lengths)
    rest = {name: made[name] for name in ("annotators", "prompts", "weights")}
    return judge, people, lengths, (made["systems"] == 0).astype(float), rest


def test_flips_and_the_first_place():
    original, exchanged = np.tile([1, 1, 0.5, 0, 0], 8), np.tile([1, 0, 0.5, 1, 0.5], 8)
    probe = judge_probes.order_probe(original, exchanged, prompts=np.arange(40) // 2)
    assert_allclose(probe.flips.estimate, 3 / 5)
    assert_allclose(probe.first_place.estimate, (0.5 + 1 + 0.5 + 0 + 0.25) / 5)
    assert (probe.n_to_first, probe.n_to_second) == (8, 8)
    assert (probe.flips.unit, probe.flips.n, probe.flips.n_rows) == ("prompt", 20, 40)
    assert probe.first_place.test.null == 0.5 and not probe.flips.has_warning("people_left_out")


def test_a_judge_that_always_takes_the_first():
    probe = judge_probes.order_probe([1.0] * 30 + [np.nan], [0.0] * 30 + [1.0], prompts=np.arange(31))
    assert (probe.flips.estimate, probe.first_place.estimate, probe.n_to_first) == (1.0, 1.0, 30)
    assert probe.first_place.pvalue < 0.001 and probe.first_place.interval.low > 0.5
    with pytest.raises(ValueError, match="exchanged: row 0 is 2"):
        judge_probes.order_probe([1], [2], prompts=[1])
    with pytest.raises(ValueError, match="exchanged: 1 values"):
        judge_probes.order_probe([1, 0], [1], prompts=[1, 2])


def test_the_slope_by_length_is_least_squares_with_the_two_way_variance():
    judge, people, lengths, _, rest = scored(1, per_doubling=0.3)
    found = judge_probes.length_probe(judge, people, lengths, **rest)

    def slope(kept):
        design = np.column_stack([np.ones(kept.sum()), np.log2(lengths[kept])])
        return WLS((judge - people)[kept], design, weights=rest["weights"][kept]).fit().params[1]

    value = slope(np.ones(len(judge), dtype=bool))
    assert_allclose(found.estimate, value)
    spreads = []
    for labels in (rest["annotators"], rest["prompts"], rest["annotators"] * 100 + rest["prompts"]):
        without = np.array([slope(labels != one) for one in np.unique(labels)])
        spreads.append((len(without) - 1) / len(without) * np.sum((without - value) ** 2))
    combined = max(spreads[0] + spreads[1] - spreads[2], *spreads[:2])
    assert_allclose(found.detail["se"] ** 2, combined)
    assert_allclose(found.detail["judge_slope"] - found.detail["people_slope"], value)
    assert found.test.null == 0 and (found.unit, found.n, found.n_rows) == ("annotator", 9, 378)
    assert found.pvalue < 0.01


def test_equal_or_impossible_lengths():
    judge, people, lengths, _, rest = scored(2)
    same = judge_probes.length_probe(judge, people, np.full(378, 99.0), **rest)
    assert (same.status, same.detail["judge_slope"]) == ("not_identified", None)
    with pytest.raises(ValueError, match="lengths: row 0 is 0"):
        judge_probes.length_probe(judge, people, np.zeros(378), **rest)
    with pytest.raises(ValueError, match="people: 1 values"):
        judge_probes.length_probe(judge, [1], lengths, **rest)
    judge[5] = np.nan
    assert judge_probes.length_probe(judge, people, lengths, **rest).detail["n_missing"] == 1


def test_repeated_runs():
    verdicts = np.array([[1, 1, 2], [3, 3, 3], [4, 5, np.nan], [2, np.nan, np.nan]] * 4)
    probe = judge_probes.repeat_probe(verdicts, prompts=np.arange(16) // 2)
    assert_allclose(probe.identical.estimate, (1 / 3 + 1 + 0) / 3)
    assert_allclose(probe.always_identical.estimate, 1 / 3)
    assert_allclose(probe.sd.estimate, np.sqrt((1 / 3 + 0 + 1 / 2) / 3))
    assert (probe.identical.n, probe.identical.n_rows, probe.sd.n) == (8, 12, 8)
    assert probe.sd.interval.low < probe.sd.estimate < probe.sd.interval.high
    texts = judge_probes.repeat_probe([["a", "a"], ["a", "b"]] * 4)
    assert (texts.identical.estimate, texts.sd.status) == (0.5, "not_applicable")
    never = judge_probes.repeat_probe([[1, 1], [2, 2]] * 4)
    assert (never.identical.estimate, never.sd.estimate, never.sd.status) == (1.0, 0.0, "zero_variance")
    with pytest.raises(ValueError, match="verdicts"):
        judge_probes.repeat_probe([1, 2])


def test_the_family_is_a_difference_in_differences():
    judge, people, _, own, rest = scored(3, favour=0.6)
    found = judge_probes.family_probe(judge, people, own, **rest)
    w, error = rest["weights"], judge - people
    means = [np.average(error[own == kind], weights=w[own == kind]) for kind in (1, 0)]
    assert_allclose([found.own.estimate, found.others.estimate], means)
    assert_allclose(found.difference.estimate, means[0] - means[1])
    assert found.difference.pvalue < 0.01 and found.difference.settings["population"] == "people and prompts"


def test_outputs_of_one_kind_only():
    judge, people, _, own, rest = scored(4)
    found = judge_probes.family_probe(judge, people, np.zeros(378), **rest)
    assert (found.own.status, found.difference.status) == ("no_data", "not_identified")
    with pytest.raises(ValueError, match="is_own_family"):
        judge_probes.family_probe(judge, people, own + 2, **rest)
    json.dumps(found.as_dict(), allow_nan=False)


def test_nothing_is_found_where_nothing_was_put():
    lengthy, related = [], []
    for seed in range(60):
        judge, people, lengths, own, rest = scored(200 + seed)
        lengthy.append(judge_probes.length_probe(judge, people, lengths, **rest).pvalue < 0.05)
        related.append(judge_probes.family_probe(judge, people, own, **rest).difference.pvalue < 0.05)
    assert sum(lengthy) <= 8 and sum(related) <= 8
