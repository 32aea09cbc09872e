"""The table of systems, with the published numbers of the Genie paper's Table 3."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import metric_comparison, metrics
from analysis.stats.results import Estimate
from tests.analysis.stats.draws import rng
from tests.analysis.stats.metrics.scores import scored

# WMT21 in Table 3: human score, ROUGE, SacreBLEU and BLEURT of each system.
WMT21 = {
    "Watermelon": (75.7, 64.8, 34.5, 34.7),
    "VolcTrans-AT": (75.2, 64.8, 34.4, 34.6),
    "HUMAN": (75.2, 59.3, 29.5, 30.0),
    "Genie-large-6-6": (70.4, 63.3, 32.4, 31.3),
    "Genie-base-6-6": (69.0, 63.3, 31.8, 28.2),
    "Genie-base-3-3": (65.3, 62.7, 31.2, 23.9),
    "Genie-base-1-1": (50.7, 59.3, 27.0, -0.2),
}


def test_the_table_of_the_paper():
    columns = np.array(list(WMT21.values())).T
    names = ("ROUGE", "SacreBLEU", "BLEURT")
    found = metric_comparison.metric_table(
        columns[:1], dict(zip(names, columns[1:], strict=True)), rng=rng(), resamples=9
    )
    assert [row.system for row in found.rows] == list(range(7))
    assert [row.best for row in found.rows[:3]] == [("human", *names), ("ROUGE",), ()]
    assert [row.metrics["BLEURT"].estimate for row in found.rows] == [one[3] for one in WMT21.values()]
    for one, column in zip(found.agreements, columns[1:], strict=True):
        assert_allclose(one.pearson.estimate, stats.pearsonr(columns[0], column).statistic)
        assert_allclose(one.kendall.estimate, stats.kendalltau(columns[0], column).statistic)
        assert one.corrected.status == "not_applicable"
    # BLEURT follows people, ROUGE hardly does: the human translation has the lowest ROUGE of all.
    assert found.agreements[2].pearson.estimate > 0.9 > 0.6 > found.agreements[0].pearson.estimate


def test_means_over_items_have_intervals_over_items_and_best_scores_are_marked():
    human, metric = scored(rng(3))
    human[0, 2] = np.nan
    found = metric_comparison.metric_table(human, {"chrF": metric, "BLEU": np.arange(6.0)}, rng=rng(), resamples=99)
    order = np.argsort(-np.nanmean(human, axis=0))
    assert [row.system for row in found.rows] == list(order)
    for row in found.rows:
        column = human[:, row.system]
        assert_allclose(row.human.estimate, np.nanmean(column))
        low, high = stats.t.interval(
            0.95, np.sum(~np.isnan(column)) - 1, np.nanmean(column), stats.sem(column, nan_policy="omit")
        )
        assert_allclose([row.human.interval.low, row.human.interval.high], [low, high])
        assert (row.human.unit, row.human.n) == ("prompt", np.sum(~np.isnan(column)))
        assert row.human.settings["population"] == "items, for exactly these people"
        assert row.metrics["BLEU"].interval is None and row.metrics["BLEU"].estimate == row.system
        assert ("human" in row.best) == (row is found.rows[0])
    chrf, bleu = found.agreements
    alone = metrics.system_level_correlations(human, metric, rng=rng(), resamples=99)
    assert chrf.pearson.estimate == alone["pearson"].estimate and chrf.corrected.interval is not None
    assert bleu.accuracy.status == "ok"
    json.dumps(found.as_dict(), allow_nan=False)


def test_human_scores_of_another_analysis_are_taken_as_they_are():
    human, metric = scored(rng(4))
    given = [Estimate(analysis="a", estimand="b", unit="annotator", n=9, estimate=float(k)) for k in range(5)]
    lost = Estimate(analysis="a", estimand="b", unit="annotator", n=0, status="no_data", reason="nobody")
    found = metric_comparison.metric_table(human, {"chrF": metric}, human_scores=[lost, *given], rng=rng(), resamples=9)
    assert [row.system for row in found.rows] == [5, 4, 3, 2, 1, 0]
    assert found.rows[0].human is given[4] and found.rows[-1].best == ()


def test_arguments_are_named_when_they_are_refused():
    human, metric = scored(rng(5))
    with pytest.raises(ValueError, match="metrics: 'human'"):
        metric_comparison.metric_table(human, {"human": metric}, rng=rng())
    with pytest.raises(ValueError, match="human_scores: 0 estimates for 6"):
        metric_comparison.metric_table(human, {}, human_scores=[], rng=rng())
    with pytest.raises(ValueError, match="metric: 5 scores"):
        metric_comparison.metric_table(human, {"chrF": np.arange(5)}, rng=rng())
    gone = metric_comparison.metric_table(human, {"chrF": [1, 2, 3, 4, 5, np.nan]}, rng=rng(), resamples=9)
    assert [row.metrics["chrF"].status for row in gone.rows if row.system == 5] == ["no_data"]


def test_the_agreement_is_over_the_systems_that_a_metric_scored():
    human, metric = scored(rng(6))
    part = metric.copy()
    part[:, 0] = np.nan
    found = metric_comparison.metric_table(human, {"chrF": part}, rng=rng(), resamples=9).agreements[0]
    own = metric_comparison.metric_table(human[:, 1:], {"chrF": metric[:, 1:]}, rng=rng(), resamples=9).agreements[0]
    assert own.pearson.status == own.corrected.status == "ok"
    assert found.as_dict() == own.as_dict()
