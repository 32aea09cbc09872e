"""The table of systems with their human score and their metrics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import clusters
from analysis.stats.arrays import FloatArray, matrix, validate_level
from analysis.stats.metrics._noise import noise_corrected_correlation
from analysis.stats.metrics._systems import pairwise_accuracy, system_level_correlations
from analysis.stats.metrics._tables import ITEMS, ScoreTables
from analysis.stats.results import Estimate, Record


@dataclass(frozen=True, slots=True)
class SystemScores(Record):
    """A row: the system's column, its human score, its metrics by name, and which of these no other system exceeds."""

    system: int
    human: Estimate
    metrics: Mapping[str, Estimate]
    best: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MetricAgreement(Record):
    """A metric's agreement with people over the systems of the table; `corrected` is without the noise of few items."""

    metric: str
    pearson: Estimate
    spearman: Estimate
    kendall: Estimate
    corrected: Estimate
    accuracy: Estimate


@dataclass(frozen=True, slots=True)
class MetricTable(Record):
    """Systems from the best to the worst human score (those without one last), and each metric's agreement with people."""

    rows: tuple[SystemScores, ...]
    agreements: tuple[MetricAgreement, ...]


def metric_table(
    human: npt.ArrayLike,
    metrics: Mapping[str, npt.ArrayLike],
    *,
    rng: np.random.Generator,
    human_scores: Sequence[Estimate] | None = None,
    level: float = 0.95,
    resamples: int = 999,
    item_groups: npt.ArrayLike | None = None,
) -> MetricTable:
    """Return each system's mean human score beside its metrics, and the metrics' agreement with people over systems.

    `human` (n_items, K) has NaN for missing. A metric is (n_items, K), or (K,) for one of all outputs together, whose
    scores have no interval; higher is better, and a metric called "human" raises ValueError. `human_scores` are the
    systems' human scores from an analysis with people as a sample. By default they are means over items, whose
    intervals are over items only. A system's mean is over its own scores, and its interval is that of
    `clusters.clustered_mean` over items. `item_groups` labels what is drawn again in place of items, such as the
    document of each. The agreement of a metric is over the systems that it scored: a reference that the metric compares
    with has no score of its own. With fewer than four systems the correlations are `not_applicable`. The source is
    Khashabi et al. 2022, Genie, Table 3 (scores of systems by people and by metrics, the best of each column marked);
    the paper leaves correlations to future work, because it has too few systems.

    >>> human = [[0.1, 0.4, 0.6, 0.9], [0.2, 0.3, 0.7, 0.8], [0.0, 0.5, 0.4, 1.0]]
    >>> table = metric_table(human, {"BLEU": [3, 5, 4, 9]}, rng=np.random.default_rng(0), resamples=99)
    >>> [(row.system, round(row.human.estimate, 2), row.metrics["BLEU"].estimate, row.best) for row in table.rows][:2]
    [(3, 0.9, 9.0, ('human', 'BLEU')), (2, 0.57, 4.0, ())]
    >>> round(table.agreements[0].pearson.estimate, 3)
    0.889
    """
    validate_level(level)
    scores = matrix(human, "human")
    k = scores.shape[1]
    if "human" in metrics:
        raise ValueError("metrics: 'human' is the name of the people's column")
    if human_scores is not None and len(human_scores) != k:
        raise ValueError(f"human_scores: {len(human_scores)} estimates for {k} systems")
    options: dict[str, Any] = {"level": level, "item_groups": item_groups}
    columns: dict[str, Sequence[Estimate]] = {
        "human": _means(scores, "human", **options) if human_scores is None else human_scores
    }
    agreements = []
    for name, values in metrics.items():
        # Refuse other shapes before any number is computed.
        tables = ScoreTables.from_arrays(scores, values)
        metric = np.asarray(values, dtype=np.float64)
        is_scored = ~np.isnan(np.atleast_2d(metric)).all(axis=0)
        both = scores[:, is_scored], metric[..., is_scored]
        if tables.fixed is None:
            columns[name] = _means(matrix(values, name), name, **options)
        else:
            columns[name] = [_of_all_outputs(float(value), name) for value in tables.fixed]
        common: dict[str, Any] = {"rng": rng, "resamples": resamples, **options}
        agreements.append(
            MetricAgreement(
                name,
                **system_level_correlations(*both, **common),
                corrected=noise_corrected_correlation(*both, **options),
                accuracy=pairwise_accuracy(*both, **common),
            )
        )
    best = {
        name: max((one.estimate for one in column if one.estimate is not None), default=None)
        for name, column in columns.items()
    }
    rows = [
        SystemScores(
            system,
            columns["human"][system],
            {name: columns[name][system] for name in metrics},
            tuple(
                name
                for name, column in columns.items()
                if column[system].estimate is not None and column[system].estimate == best[name]
            ),
        )
        for system in range(k)
    ]
    rows.sort(key=lambda row: -np.inf if row.human.estimate is None else row.human.estimate, reverse=True)
    return MetricTable(tuple(rows), tuple(agreements))


def _means(table: FloatArray, name: str, *, level: float, item_groups: npt.ArrayLike | None) -> list[Estimate]:
    found = []
    for column in table.T:
        mean = clusters.clustered_mean(
            column,
            np.arange(len(column)) if item_groups is None else item_groups,
            level=level,
            analysis="metrics.table",
            estimand=f"mean score of the system, {name}",
            unit="prompt",
        )
        found.append(replace(mean, settings={**mean.settings, "population": ITEMS}))
    return found


def _of_all_outputs(value: float, name: str) -> Estimate:
    common: dict[str, Any] = {
        "analysis": "metrics.table",
        "estimand": f"score of all outputs of the system together, {name}",
        "unit": "score of all outputs",
    }
    if np.isnan(value):
        return Estimate(status="no_data", reason="the metric has no score of this system", n=0, **common)
    return Estimate(estimate=value, n=1, **common)
