"""The bootstrap over annotators has the spread of the sandwich."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import davidson as paired
from analysis.stats import ranks
from analysis.stats.bootstrap import multinomial_weights
from analysis.stats.davidson import _model
from tests.analysis.stats.davidson.labels import estimates, labels, tables


def test_each_draw_is_the_model_fitted_to_its_annotators():
    first, second, outcomes, who = labels(10, n_annotators=12)
    found = paired.davidson_bootstrap(
        first, second, outcomes, who, n_systems=4, rng=np.random.default_rng(3), resamples=20
    )
    (weights,) = multinomial_weights(12, 20, np.random.default_rng(3))
    for number, times in enumerate(weights):
        rows = np.concatenate([np.flatnonzero(who == one) for one in np.repeat(np.arange(12), times.astype(int))])
        again = paired.fit_davidson_to_counts(*tables(first[rows], second[rows], outcomes[rows], 4))
        assert_allclose(found.draws[number], estimates(again), atol=1e-8)
        assert_allclose(found.tie_draws[number], again.tie.estimate, rtol=1e-8)


def test_few_labels_of_few_systems_are_fitted_from_afar_as_from_near():
    """A resample of a handful of labels may lie far from the sample: the short way there must give up, not go astray."""
    draw = np.random.default_rng(11)
    wins = draw.integers(0, 4, (300, 3, 3)) * ~np.eye(3, dtype=bool)
    ties = np.triu(draw.integers(0, 2, (300, 3, 3)), 1)
    ties = (ties + ties.transpose(0, 2, 1)).astype(float)
    counts = _model.PairCounts.from_tables(wins.astype(float), ties)
    near = _model.fit_parameters_by_table(counts, start=np.array([0.3, 0.0, -0.3, 0.0]))
    assert_allclose(near, _model.fit_parameters_by_table(counts), atol=1e-8)
    there = ~np.isnan(near).any(axis=1)
    assert 200 < there.sum() < 290 and not (there & ~counts.has_maximum()).any()
    for number in range(0, 300, 10):
        again = paired.fit_davidson_to_counts(wins[number], ties[number])
        assert (again.status == "ok") == there[number]
        if there[number]:
            assert_allclose(near[number, :-1], estimates(again), atol=1e-8)


def test_the_bootstrap_over_annotators_has_the_spread_of_the_sandwich():
    rows = labels(12, n_annotators=300, lean=0.5)
    fit = paired.fit_davidson(*rows, n_systems=4)
    found = paired.davidson_bootstrap(*rows, n_systems=4, rng=np.random.default_rng(1))
    for x, y in ((0, 1), (0, 3), (2, 3)):
        assert_allclose(np.std(found.draws[:, x] - found.draws[:, y]), fit.difference(x, y).detail["se"], rtol=0.08)
        ends, theirs = found.difference(x, y).interval, fit.difference(x, y).interval
        assert_allclose([ends.low, ends.high], [theirs.low, theirs.high], atol=0.03)
    assert_allclose(found.draws.sum(axis=1), 0, atol=1e-8)
    assert found.tie.interval.low < fit.tie.estimate < found.tie.interval.high
    # Labels taken as independent would claim more than these annotators gave.
    assert (
        fit.difference(0, 3).detail["se"]
        > 1.1 * paired.fit_davidson_to_counts(*tables(*rows[:3], 4)).difference(0, 3).detail["se"]
    )


def test_the_draws_rank_the_systems():
    rows = labels(13, n_annotators=120, strengths=(1.2, 0.0, -0.05, -1.2))
    found = paired.davidson_bootstrap(*rows, n_systems=4, rng=np.random.default_rng(1))
    sets = ranks.rank_confidence_sets([one.estimate for one in found.strengths], found.draws, n=120)
    assert (sets.low, sets.high) == ((1, 2, 2, 4), (1, 3, 3, 4))


def test_labels_are_resampled_by_cells_of_the_table():
    wins = np.array([[0, 60, 80], [40, 0, 70], [20, 30, 0]])
    found = paired.bradley_terry_bootstrap(wins, rng=np.random.default_rng(2), resamples=1999)
    fit = paired.fit_bradley_terry_to_counts(wins)
    for x, y in ((0, 1), (0, 2), (1, 2)):
        assert_allclose(np.std(found.draws[:, x] - found.draws[:, y]), fit.difference(x, y).detail["se"], rtol=0.06)
    assert found.tie is None and found.tie_draws is None


def test_the_bootstrap_keeps_the_law_of_edges():
    one, nobody = np.random.default_rng(0), ([], [], [], [])
    cases = {
        "no_data": (*nobody, 3),
        "not_identified": ([0, 2], [1, 3], [1, 0], ["a", "b"], 4),
        "separation": ([0, 0], [1, 1], [1, 1], ["a", "b"], 2),
        "n_lt_2": ([0, 0, 0], [1, 1, 1], [1, 0, 0.5], ["a"] * 3, 2),
        "zero_variance": (np.tile([0, 0], 9), np.tile([1, 1], 9), np.tile([1, 0], 9), np.repeat(np.arange(9), 2), 2),
    }
    for status, (*rows, n_systems) in cases.items():
        first, second = (np.array(side, dtype=np.int64) for side in rows[:2])
        found = paired.davidson_bootstrap(first, second, *rows[2:], n_systems=n_systems, rng=one, resamples=50)
        assert found.difference(0, 1).status == status and found.difference(0, 1).interval is None
        json.dumps(found.as_dict(), allow_nan=False)
    assert "wins: only whole labels" in str(
        pytest.raises(ValueError, paired.bradley_terry_bootstrap, [[0, 1.5], [1, 0]], rng=one).value
    )


def test_resamples_without_a_maximum_are_left_out_and_counted():
    # One label of a hundred for the worse system: without its annotator nobody ever beat the better one.
    outcomes, who = np.r_[np.ones(19), 0.0], np.repeat(np.arange(10), 2)
    found = paired.davidson_bootstrap(
        np.zeros(20, dtype=int), np.ones(20, dtype=int), outcomes, who, n_systems=2, rng=np.random.default_rng(4)
    )
    share = found.difference(0, 1).warnings[-1].detail["share"]
    assert found.difference(0, 1).has_warning("undefined_resamples") and abs(share - 0.9**10) < 0.05
    assert np.isnan(found.draws).any(axis=1).mean() == pytest.approx(share)


@pytest.mark.parametrize("share_tied", [0, 0.3])
@pytest.mark.parametrize("asked", [[(0, 1), (0, 2), (1, 2)], [(0, 1), (0, 3), (2, 3), (1, 4), (0, 4)]])
def test_many_tables_have_the_slopes_that_each_has_alone(asked, share_tied):
    rng, tables = np.random.default_rng(3), np.zeros((_model.MANY_TABLES, 5, 5))
    ties = np.zeros_like(tables)
    for x, y in asked:
        tables[:, x, y], tables[:, y, x] = rng.integers(0, 9, (2, len(tables)))
        ties[:, x, y] = ties[:, y, x] = rng.binomial(3, share_tied, len(tables))
    counts = _model.PairCounts.from_tables(tables, ties)
    log_nu = np.where(counts.has_ties, rng.normal(0, 1, len(tables)), -np.inf)
    values = np.column_stack([rng.normal(0, 2, (len(tables), 5)), log_nu])
    alone = [counts.select_tables(np.array([at])).gradient(values[[at]], 0.3)[0] for at in range(len(tables))]
    assert_allclose(counts.gradient(values, 0.3), alone, atol=1e-12)
