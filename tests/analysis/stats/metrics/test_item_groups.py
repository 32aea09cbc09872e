"""Items of one group are no sample of items: agreements of metrics with people draw groups again."""

import inspect

import numpy as np
import pytest

from analysis.stats import metric_comparison, metrics
from tests.analysis.stats.draws import rng

SIZE, GROUPS, K = 10, 12, 5


def tables():
    """Each group's items have the same scores, so that the groups are all there is."""
    draw = rng(41)
    truth = np.linspace(0, 0.6, K)
    human, first, second = (truth + draw.normal(0, sd, (GROUPS, K)) for sd in (0.25, 0.25, 0.8))
    return [np.repeat(table, SIZE, axis=0) for table in (human, human + first, human + second)]


def once(table):
    return table[::SIZE]


def one(name, **options):
    def measure(human, first, second, **more):
        return [getattr(metrics, name)(human, first, rng=rng(2), resamples=199, **options, **more)]

    return measure


def correlations(human, first, second, **more):
    return list(metrics.system_level_correlations(human, first, rng=rng(2), resamples=199, **more).values())


def corrected(human, first, second, **more):
    return [metric_comparison.noise_corrected_correlation(human, first, **more)]


def overview(human, first, second, **more):
    found = metric_comparison.metric_table(human, {"own": first}, rng=rng(2), resamples=199, **more)
    return [estimate for row in found.rows for estimate in (row.human, row.metrics["own"])]


def compared(statistic):
    def measure(human, first, second, **more):
        return [
            metric_comparison.compare_metrics(
                human, first, second, rng=rng(2), statistic=statistic, resamples=199, **more
            )
        ]

    return measure


WAYS = {
    "correlations": correlations,
    "corrected": corrected,
    "overview": overview,
    "pairwise_accuracy": one("pairwise_accuracy"),
    "soft_pairwise_accuracy": one("soft_pairwise_accuracy"),
    "segment_tau": one("segment_level_kendall_tau"),
    "tie_calibrated_accuracy": one("tie_calibrated_accuracy"),
    **{f"compared by {name}": compared(name) for name in ("pearson", "segment_tau")},
}


def numbers(estimates):
    """The estimates with their intervals, ranges and p-values."""
    found = []
    for estimate in estimates:
        spread = estimate.detail.get("item_range") or (None, None)
        ends = (estimate.interval.low, estimate.interval.high) if estimate.interval else spread
        found.append([np.nan if value is None else value for value in (estimate.estimate, *ends, estimate.pvalue)])
    return np.array(found, dtype=float)


def test_each_function_with_items_has_a_case():
    functions = {
        one for module in (metrics, metric_comparison) for one in inspect.getmembers(module, inspect.isfunction)
    }
    own = {name for name, one in functions if "item_groups" in (inspect.getdoc(one) or "")}
    assert own == {
        "compare_metrics", "metric_table", "noise_corrected_correlation", "pairwise_accuracy", "segment_level_kendall_tau",
        "soft_pairwise_accuracy", "system_level_correlations", "tie_calibrated_accuracy",
    }  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_the_numbers_are_those_of_the_groups_as_items(way):
    human, first, second = tables()
    groups = np.repeat(np.arange(GROUPS), SIZE)
    found = numbers(WAYS[way](human, first, second, item_groups=groups))
    as_items = numbers(WAYS[way](once(human), once(first), once(second)))
    alone = numbers(WAYS[way](human, first, second))
    assert np.isfinite(found[:, 0]).all()
    np.testing.assert_allclose(found, as_items, atol=1e-9)
    assert not np.allclose(found, alone, atol=1e-3, equal_nan=True)


@pytest.mark.parametrize("way", WAYS)
def test_groups_of_one_item_change_nothing(way):
    human, first, second = tables()
    found = numbers(WAYS[way](human, first, second, item_groups=np.arange(SIZE * GROUPS)))
    np.testing.assert_array_equal(found, numbers(WAYS[way](human, first, second)))


@pytest.mark.parametrize("way", ["correlations", "corrected", "segment_tau", "tie_calibrated_accuracy"])
def test_few_groups_give_no_interval(way):
    human, first, second = tables()
    found = numbers(WAYS[way](human, first, second, item_groups=np.arange(SIZE * GROUPS) % 4))
    assert np.isnan(found[:, 1:]).all()
