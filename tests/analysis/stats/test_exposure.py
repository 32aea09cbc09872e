import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import exposure
from tests.analysis.stats.golden import golden

GOLDEN = golden("exposure")
XY, YX = np.array(GOLDEN["xy_percent"]), np.array(GOLDEN["yx_percent"])


def study(xy=XY, yx=YX, **more):
    return exposure.preference_by_n_outputs_seen(xy, yx, **more)


def test_the_table_the_steps_and_the_trend_agree_with_the_references():
    found = study()
    assert_allclose([estimate.estimate for estimate in found.by_level], GOLDEN["means"], atol=1e-12)
    assert_allclose([estimate.pvalue for estimate in found.by_level], GOLDEN["level_pvalues"], atol=1e-12)
    for estimate, wanted in zip(found.contrasts, GOLDEN["contrasts"], strict=True):
        assert_allclose(
            [
                estimate.estimate,
                estimate.test.statistic,
                estimate.pvalue,
                estimate.interval.low,
                estimate.interval.high,
            ],
            [wanted["mean"], wanted["statistic"], wanted["pvalue"], *wanted["interval"]],
            atol=1e-9,
        )
    adjusted = [estimate.test.pvalue_adjusted for estimate in found.contrasts]
    assert_allclose(adjusted, GOLDEN["contrasts_holm"], atol=1e-12)
    assert {(e.test.family, e.test.family_size, e.test.adjust) for e in found.contrasts} == {
        ("spa.exposure.contrasts", 3, "holm")
    }
    for estimate, name in ((found.slope, "slope"), (found.diminishing_returns, "diminishing_returns")):
        wanted = GOLDEN[name]
        assert_allclose(
            [estimate.estimate, estimate.test.statistic, estimate.pvalue],
            [wanted["mean"], wanted["statistic"], wanted["pvalue"]],
            atol=1e-9,
        )


def test_each_level_shows_both_orders_as_the_paper_tests_them():
    found = study()
    for column, estimate in enumerate(found.by_level):
        xy, yx = estimate.sensitivity
        assert_allclose([xy.estimate, yx.estimate], [XY[:, column].mean() / 100, YX[:, column].mean() / 100])
        assert xy.mode == "paper" and xy.test.family_size == 4 and yx.test.family != xy.test.family
        assert_allclose(estimate.estimate, (xy.estimate + 1 - yx.estimate) / 2)
        assert estimate.n_rows == 24 and estimate.detail["n_both"] == 12


def test_overconfidence_is_the_first_step_the_other_way_round_and_no_further_test():
    found = study()
    first, over = found.contrasts[0], found.overconfidence
    assert over.estimate == -first.estimate and over.interval.low == -first.interval.high
    assert over.test.pvalue_adjusted == first.test.pvalue_adjusted and over.test.family_size == 3
    assert over.test.statistic == -first.test.statistic and over.effect.low == -first.effect.high
    assert over.effect.hedges_g == -first.effect.hedges_g


def test_exchanging_the_systems_turns_every_sign():
    there, back = study(), study(YX, XY)
    for a, b in zip(there.by_level, back.by_level, strict=True):
        assert_allclose([a.estimate, a.pvalue], [1 - b.estimate, b.pvalue], atol=1e-9)
        assert_allclose(a.detail["conviction"], b.detail["conviction"], atol=1e-12)
    for a, b in zip(
        (*there.contrasts, there.slope, there.diminishing_returns),
        (*back.contrasts, back.slope, back.diminishing_returns),
        strict=True,
    ):
        assert_allclose([a.estimate, a.pvalue], [-b.estimate, b.pvalue], atol=1e-9)


def test_levels_are_never_taken_as_independent_samples():
    # A table with a row for each annotator and m: each row has one level.
    long_xy, long_yx = np.full((48, 4), np.nan), np.full((48, 4), np.nan)
    for row in range(48):
        long_xy[row, row % 4], long_yx[row, row % 4] = XY[row // 4, row % 4], YX[row // 4, row % 4]
    # Different people at different levels cannot be compared.
    found = study(long_xy, long_yx)
    for estimate in (*found.contrasts, found.diminishing_returns, found.overconfidence):
        assert estimate.status == "not_identified" and estimate.test is None
        assert estimate.has_warning("levels_not_paired")
    assert found.slope.status == "no_data" and found.slope.detail["n_dropped"] == 48
    assert found.by_level[0].estimate == pytest.approx(GOLDEN["means"][0])


def test_an_annotator_without_a_level_is_dropped_from_its_steps_and_counted():
    xy, yx = XY.copy(), YX.copy()
    xy[0, 3] = yx[0, 3] = np.nan
    xy[1, 0] = np.nan
    found = study(xy, yx)
    assert [estimate.n for estimate in found.contrasts] == [12, 12, 11]
    assert found.contrasts[2].has_warning("incomplete_pairs") and found.contrasts[2].detail["n_dropped"] == 1
    assert not found.contrasts[0].has_warning("incomplete_pairs")
    assert found.slope.n == 12 and found.slope.detail["n_complete"] == 11
    assert_allclose(found.contrasts[1].estimate, GOLDEN["contrasts"][1]["mean"], atol=1e-12)
    # One order is an answer too: the combined value is the one that was given.
    assert found.by_level[0].detail["n_xy"] == 11 and found.by_level[0].n == 12


def test_conviction_is_biased_by_noise_alone_and_has_no_test():
    rng = np.random.default_rng(0)
    runs, n = 400, 30
    noise = rng.normal(0.5, 0.2, (runs, n))
    found = np.mean([exposure.distance_of_mean_from_half(row) for row in noise])
    assert abs(found - 0.2 * np.sqrt(2 / (np.pi * n))) < 0.003
    assert exposure.distance_of_mean_from_half([np.nan]) is None
    detail = study().by_level[0].detail
    assert detail["is_conviction_descriptive"] and "conviction" not in study().as_dict()["contrasts"][0]


def test_a_preference_that_saturates_shows_diminishing_returns():
    rng = np.random.default_rng(1)
    beliefs = 100 * (np.array([0.72, 0.58, 0.68, 0.72]) + rng.normal(0, 0.1, (400, 4)))
    xy, yx = (
        np.clip(5 * np.rint((side + rng.normal(0, 10, (400, 4))) / 5), 0, 100) for side in (beliefs, 100 - beliefs)
    )
    found = exposure.preference_by_n_outputs_seen(xy, yx)
    assert found.overconfidence.estimate > 0.1 and found.overconfidence.test.pvalue_adjusted < 0.001
    assert found.diminishing_returns.estimate < 0 and found.diminishing_returns.pvalue < 0.01
    assert found.as_dict()["recommended_least"] == 4


def test_edges_are_statuses_and_the_result_is_json():
    one = study([[80, 60, 70, 75]], [[20, 40, 30, 25]])
    assert {e.status for e in (*one.contrasts, one.slope, *one.by_level)} == {"n_lt_2"}
    empty = study(np.empty((0, 4)), np.empty((0, 4)))
    assert {e.status for e in (*empty.contrasts, empty.slope, *empty.by_level)} == {"no_data"}
    still = study(np.tile([60.0, 70, 80, 90], (5, 1)), np.tile([40.0, 30, 20, 10], (5, 1)))
    assert {e.status for e in still.contrasts} == {"zero_variance"}
    assert still.contrasts[0].interval is not None and still.slope.status == "zero_variance"
    two = study(XY[:, :2], YX[:, :2], levels=[1, 2])
    assert two.diminishing_returns.status == "not_applicable" and len(two.contrasts) == 1
    for found in (one, empty, still, two, study()):
        json.dumps(found.as_dict(), allow_nan=False)


@pytest.mark.parametrize(
    "levels,named",
    [([1, 2, 4], "3 exposures"), ([1, 4, 2, 8], "ascend"), ([0, 1, 2, 4], "ascend"), ([1, 2.5, 4, 8], "whole")],
)
def test_levels_must_be_an_ascending_list_as_long_as_the_table(levels, named):
    with pytest.raises(ValueError, match=f"levels: .*{named}"):
        study(levels=levels)
    with pytest.raises(ValueError, match="at least two"):
        study(XY[:, :1], YX[:, :1], levels=[1])
    with pytest.raises(ValueError, match="xy_percent: row 0 is 101"):
        study(XY * 0 + 101, YX)
