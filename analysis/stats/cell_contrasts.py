"""Contrasts of cell means, and conditions by domains, where cells share annotators and items."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats import basic, cluster_models, cluster_variances
from analysis.stats.arrays import (
    MIN_SPREAD,
    FloatArray,
    IntArray,
    group_sizes,
    group_sums,
    label_codes,
    label_codes_where,
    validate_level,
    validate_within_bounds,
    vector,
)
from analysis.stats.clusters import weights_of_rows
from analysis.stats.groups import difference_detectable_at_power_80, label_codes_and_names
from analysis.stats.results import Estimate, HypothesisTest, Record, ResultWarning

# Answers in cells that share annotators and items, and the covariance of contrasts of cell means.


@dataclass(frozen=True, slots=True)
class ContrastCovariance:
    """Covariance of contrasts: one way (`two_way` is None), or over annotators, items and both combined."""

    annotators: FloatArray
    items: FloatArray | None = None
    two_way: FloatArray | None = None

    def candidate_covariances(self) -> list[FloatArray]:
        """Return the covariances; a joint hypothesis is rejected only if it is under each of them."""
        if self.items is None or self.two_way is None:
            return [self.annotators]
        scale = np.trace(self.annotators + self.items)
        is_definite = float(np.linalg.eigvalsh(self.two_way)[0]) > 1e-9 * scale
        return [self.annotators, self.items, self.two_way if is_definite else self.annotators + self.items]


@dataclass(frozen=True, slots=True)
class CellRows:
    """Answers in cells, with the codes of their annotators and items, and the weighted sums of the cells."""

    values: FloatArray
    weights: FloatArray
    cells: IntArray
    names: tuple[Any, ...]
    annotators: IntArray
    items: IntArray | None
    n_annotators: int
    n_items: int
    sums: FloatArray
    counts: FloatArray
    n_missing: int

    @classmethod
    def from_arrays(
        cls,
        values: npt.ArrayLike,
        cells: npt.ArrayLike,
        annotators: npt.ArrayLike,
        items: npt.ArrayLike | None,
        *,
        cell_names: Sequence[Any],
        row_weights: npt.ArrayLike | None = None,
    ) -> "CellRows":
        array = vector(values, "values")
        all_weights = weights_of_rows(row_weights, np.ones(len(array), dtype=np.bool_))
        positions, label_names = label_codes_and_names(cells, "cells", len(array))
        item_codes = None if items is None else label_codes(np.asarray(items), "items", len(array))[0]
        column_of = {cell: column for column, cell in enumerate(cell_names)}
        columns = np.array([column_of.get(cell, -1) for cell in label_names], dtype=np.int64)
        column = columns[positions] if len(label_names) else positions
        chosen = column >= 0
        is_used = chosen & ~np.isnan(array)
        observed, weights = array[is_used], all_weights[is_used]
        annotator_codes, n_annotators = label_codes_where(annotators, "annotators", is_used)
        n_items = 0
        if item_codes is not None:
            item_codes, n_items = label_codes(item_codes[is_used], "items", len(observed))
        sums, counts = (
            group_sums(column[is_used], weights * observed, len(column_of)),
            group_sums(column[is_used], weights, len(column_of)),
        )
        missing = int(chosen.sum()) - len(observed)
        return cls(
            observed,
            weights,
            column[is_used],
            tuple(cell_names),
            annotator_codes,
            item_codes,
            n_annotators,
            n_items,
            sums,
            counts,
            missing,
        )

    @property
    def n_clusters(self) -> int:
        return self.n_annotators if self.items is None else min(self.n_annotators, self.n_items)

    @property
    def df(self) -> float:
        """Return the degrees of freedom of a joint test: G* - 1, with items the smaller one."""
        ways = [self.annotators] if self.items is None else [self.annotators, self.items]
        return max(1.0, min(cluster_variances.effective_n_clusters(np.bincount(codes)) for codes in ways) - 1)

    def spread(self, *, unit: str) -> cluster_models.ModelSpread:
        """Return the spread of the cells' means over annotators and, if they are five or more, items."""
        cells = np.eye(len(self.counts))
        means = self.sums / self.counts
        scores = cells[self.cells] * (self.weights * (self.values - means[self.cells]))[:, None]
        of_cells = cells[:, :, None] * cells[:, None, :]
        rows = cluster_models.FittedRows(np.diag(self.counts), scores, self.cells, of_cells, self.weights)
        return cluster_models.ModelSpread.from_rows(rows, self.annotators, self.items, unit=unit, second="item")

    @property
    def method(self) -> str:
        return "cv3_t" if self.items is None else "two_way_t"

    def warnings(self, unit: str) -> tuple[ResultWarning, ...]:
        if self.items is None:
            return cluster_variances.cluster_warnings(group_sizes(self.annotators, self.n_annotators), name=unit)
        return cluster_variances.two_way_warnings(self.annotators, self.items, unit=unit)

    def covariance(self, gradients: FloatArray, means: FloatArray) -> ContrastCovariance | None:
        """Return the CV3 covariance of contrasts with the `gradients` (n_contrasts, n_cells) by the cell means.

        None if one annotator (or one item) gave all answers of a cell, because the jackknife then has nothing left.
        """
        by_annotator = self._jackknife(gradients, means, self.annotators, self.n_annotators)
        if self.items is None or by_annotator is None:
            return None if by_annotator is None else ContrastCovariance(by_annotator)
        pairs, n_pairs = label_codes(self.annotators * self.n_items + self.items, "pairs", len(self.values))
        by_item = self._jackknife(gradients, means, self.items, self.n_items)
        by_both = self._jackknife(gradients, means, pairs, n_pairs)
        if by_item is None or by_both is None:
            return None
        return ContrastCovariance(by_annotator, by_item, by_annotator + by_item - by_both)

    def _jackknife(
        self, gradients: FloatArray, means: FloatArray, positions: IntArray, n_clusters: int
    ) -> FloatArray | None:
        n_cells = len(self.counts)
        annotator_cells = positions * n_cells + self.cells
        sums = group_sums(annotator_cells, self.weights * self.values, n_clusters * n_cells).reshape(-1, n_cells)
        counts = group_sums(annotator_cells, self.weights, n_clusters * n_cells).reshape(-1, n_cells)
        remaining = self.counts - counts
        if np.any(remaining <= MIN_SPREAD):
            return None
        shift = ((self.sums - sums) / remaining - means) @ gradients.T
        return np.asarray((n_clusters - 1) / n_clusters * shift.T @ shift, dtype=np.float64)


# Contrasts of cell means: a single contrast, and the condition x domain model.


LINKS = ("identity", "logit", "probit")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionModel(Record):
    """Means by condition and domain, effects of conditions, and their interaction with the domain.

    `cells` has one mean per condition and domain. `effects` has one difference from the reference per other
    condition, the mean of its differences in the domains with equal weights. `by_domain` has these differences.
    `interaction` is the joint test that they are equal in all domains.
    """

    cells: tuple[Estimate, ...]
    effects: tuple[Estimate, ...]
    by_domain: tuple[Estimate, ...]
    interaction: Estimate


def cell_contrast(
    values: npt.ArrayLike,
    cells: npt.ArrayLike,
    weights: Mapping[Any, float],
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    row_weights: npt.ArrayLike | None = None,
    link: str = "identity",
    is_log_linear_corrected: bool = False,
    null: float = 0.0,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    analysis: str = "cell_contrast",
    estimand: str = "contrast of cell means",
    unit: str = "annotator",
) -> Estimate:
    """Contrast sum_c w_c g(mean of cell c), clustered by annotator and, if given, by item, with a t test.

    Parameters
    ----------
    values : array_like, shape (n_rows,)
        Values; NaN is missing.
    cells : array_like, shape (n_rows,)
        Label of each row's cell.
    weights : mapping[Any, float]
        Weight w_c of each cell. Rows of other cells are left out.
    annotators, items : array_like, shape (n_rows,)
        Labels of each row's annotator and item.
    row_weights : array_like, shape (n_rows,), optional
        Positive weights of the rows. Equal if None.
    link : {"identity", "logit", "probit"}, default 'identity'
        The function g; logit and probit need 0/1 values.
    is_log_linear_corrected : bool, default False
        Whether to move shares off 0 and 1, (sum + 1/2) / (n + 1).
    null : float, default 0.0
        Value of the null hypothesis.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    bounds : tuple[float, float], optional
        Ends of the scale of the values. The interval is clipped to the possible range of the contrast.
    analysis, estimand, unit : str, optional
        Labels that are copied to the record.

    Returns
    -------
    Estimate
        The contrast. `detail["detectable"]` is the smallest distance from the null that this standard error finds
        with power .8. A cell that is all 0 or all 1 under logit or probit: `separation`, with an estimate only if
        corrected.

    Raises
    ------
    ValueError
        If `link` is not allowed, or a value does not fit it.

    Notes
    -----
    The jackknife over annotators (CV3) and, with five items or more, over both: see `cluster_models.ModelSpread`, with the
    gradient w_c g'(mean of cell c). `settings["population"]` says which. Only clusters with a row in these cells count;
    with fewer than six annotators there is no test.

    References
    ----------
    Cameron, Gelbach and Miller 2011; MacKinnon, Nielsen and Webb 2023; log-linear correction of Hautus 1995.

    Examples
    --------
    >>> correct, arms = [1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1, 1], ["a"] * 6 + ["b"] * 8
    >>> result = cell_contrast(correct, arms, {"a": 1, "b": -1}, np.repeat(np.arange(7), 2))
    >>> round(result.estimate, 4), result.n, result.n_rows
    (0.0417, 7, 14)
    >>> turned = cell_contrast(correct, arms, {"a": -1, "b": 1}, np.repeat(np.arange(7), 2), bounds=(0, 1))
    >>> turned.interval.low < turned.estimate < 0
    True
    """
    validate_level(level)
    if link not in LINKS:
        raise ValueError(f"link: {link!r} is not one of {', '.join(LINKS)}")
    rows = CellRows.from_arrays(
        values,
        cells,
        annotators,
        items,
        cell_names=[cell for cell, weight in weights.items() if weight != 0],
        row_weights=row_weights,
    )
    if bounds is not None:
        validate_within_bounds(rows.values, bounds, "values")
    if link != "identity" and not np.isin(rows.values, (0.0, 1.0)).all():
        raise ValueError(f"values: the {link} link takes shares of 0 and 1")
    factors = np.array([float(weights[cell]) for cell in rows.names])
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": estimand,
        "unit": unit,
        "n": rows.n_annotators,
        "n_clusters": rows.n_clusters,
        "n_rows": len(rows.values),
        "settings": {
            "null": null,
            "link": link,
            "corrected": is_log_linear_corrected,
            "level": level,
            "method": rows.method,
            "weights": {str(cell): float(weight) for cell, weight in weights.items()},
        },
    }
    empty = np.flatnonzero(rows.counts == 0)
    if len(empty) or not len(factors):
        reason = f"cell {rows.names[int(empty[0])]} has no value" if len(empty) else "no cell has a weight"
        return Estimate(status="no_data", reason=reason, **common)
    raw = rows.sums / rows.counts
    means = (rows.sums + 0.5) / (rows.counts + 1) if is_log_linear_corrected else raw
    detail: dict[str, Any] = {
        "cells": {
            str(cell): {"n": int(n), "mean": float(mean)}
            for cell, n, mean in zip(rows.names, group_sizes(rows.cells, len(rows.names)), raw, strict=True)
        },
        "n_missing": rows.n_missing,
    }
    is_split = link != "identity" and bool(np.any((raw <= 0) | (raw >= 1)))
    if is_split and not is_log_linear_corrected:
        detail |= {"clopper_pearson": _exact(rows, level)}
        return Estimate(status="separation", reason="a cell is all 0 or all 1", detail=detail, **common)
    scores, slopes = _linked(means, link)
    estimate = float(np.sum(factors * scores))
    if is_split:
        detail |= {"clopper_pearson": _exact(rows, level)}
        reason = "a cell is all 0 or all 1"
        return Estimate(status="separation", reason=reason, estimate=estimate, detail=detail, **common)
    if rows.n_clusters < 2:
        reason = "one cluster has no spread"
        return Estimate(status="n_lt_2", reason=reason, estimate=estimate, detail=detail, **common)
    spread = rows.spread(unit=unit)
    result = spread.estimate(
        estimate,
        factors * slopes,
        level=level,
        null=null,
        bounds=None if bounds is None or link != "identity" else _reach(factors, bounds),
        detail=detail,
        **common,
    )
    if result.status != "ok" or result.interval is None:
        return result
    detectable = difference_detectable_at_power_80(result.detail["se"], result.detail["df"], level)
    return replace(
        result,
        detail={**result.detail, "detectable": detectable},
        settings={**result.settings, "method": result.interval.method},
    )


def _reach(factors: FloatArray, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return the smallest and largest possible contrast of cell means within `bounds`."""
    ends = np.outer(factors, np.asarray(bounds, float))
    return float(ends.min(axis=1).sum()), float(ends.max(axis=1).sum())


def condition_by_domain_model(
    values: npt.ArrayLike,
    conditions: npt.ArrayLike,
    domains: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    reference: Any,
    level: float = 0.95,
) -> ConditionModel:
    """Estimate a condition x domain model: cell means, effects of conditions and their interaction with domains, clustered.

    `values` are 1 for a correct answer, for example, with NaN for missing. The mean effect of a condition weighs all
    domains equally. The interaction is a joint F test of (k - 1)(d - 1) contrasts with the jackknife covariance: with
    items, the least F among the two-way covariance and either way alone, on min(G) - 1; without items, Hotelling's
    correction on G* - q. A difference in significance between domains is not a difference between domains; the
    interaction tests that. The source is Clark et al. 2021, section 3.2.

    >>> rng = np.random.default_rng(0)
    >>> annotators, text = np.repeat(np.arange(80), 5), rng.integers(0, 20, 400)
    >>> arms, domains = np.array(["none", "examples"])[annotators % 2], np.array(["news", "story"])[annotators // 2 % 2]
    >>> model = condition_by_domain_model(rng.random(400) < 0.5, arms, domains, annotators, text, reference="none")
    >>> len(model.cells), model.effects[0].settings["condition"], model.interaction.detail["df_between"]
    (4, 'examples', 1)
    """
    array = vector(values, "values")
    arms, arm_names = label_codes_and_names(conditions, "conditions", len(array))
    domain_codes, domain_names = label_codes_and_names(domains, "domains", len(array))
    if reference not in arm_names:
        raise ValueError(f"reference: {reference!r} is not one of the conditions")
    base = arm_names.index(reference)
    n_domains = len(domain_names)
    cells = arms * n_domains + domain_codes
    annotator_codes, _ = label_codes(np.asarray(annotators), "annotators", len(array))
    item_codes = None if items is None else label_codes(np.asarray(items), "items", len(array))[0]

    def contrast(weights: dict[int, float], named: dict[str, Any], **labels: Any) -> Estimate:
        result = cell_contrast(array, cells, weights, annotator_codes, item_codes, level=level, **labels)
        detail = {key: value for key, value in result.detail.items() if key != "cells"}
        settings = {key: value for key, value in result.settings.items() if key != "weights"}
        return replace(result, detail=detail, settings={**settings, **named})

    def named(arm: int, domain: int | None) -> dict[str, Any]:
        names = {"condition": str(arm_names[arm])}
        return names if domain is None else {**names, "domain": str(domain_names[domain])}

    means = []
    for arm in range(len(arm_names)):
        for domain in range(n_domains):
            labels = {"analysis": "humanlike.condition_model.cell", "estimand": "mean of the cell"}
            mean = contrast({arm * n_domains + domain: 1.0}, named(arm, domain), **labels)
            # A mean has no null here; only differences are tested.
            means.append(replace(mean, test=None))
    gains, by_domain = [], []
    others = [arm for arm in range(len(arm_names)) if arm != base]
    for arm in others:
        weights: dict[int, float] = {}
        for domain in range(n_domains):
            pair = {arm * n_domains + domain: 1.0, base * n_domains + domain: -1.0}
            weights |= {cell: weight / n_domains for cell, weight in pair.items()}
            labels = {
                "analysis": "humanlike.condition_model.by_domain",
                "estimand": "difference from the reference in the domain",
            }
            by_domain.append(contrast(pair, {**named(arm, domain), "reference": str(reference)}, **labels))
        labels = {
            "analysis": "humanlike.condition_model.effect",
            "estimand": "mean over domains of the difference from the reference",
        }
        gains.append(contrast(weights, {**named(arm, None), "reference": str(reference)}, **labels))
    rows = CellRows.from_arrays(
        array, cells, annotator_codes, item_codes, cell_names=list(range(len(arm_names) * n_domains))
    )
    shift = [
        {arm * n_domains + p: 1.0, base * n_domains + p: -1.0, arm * n_domains: -1.0, base * n_domains: 1.0}
        for arm in others
        for p in range(1, n_domains)
    ]
    hypotheses = np.zeros((len(shift), len(rows.names)))
    for row, cell_weights in enumerate(shift):
        for cell, weight in cell_weights.items():
            hypotheses[row, cell] = weight
    interaction = joint_test(
        rows,
        hypotheses,
        level,
        analysis="humanlike.condition_model.interaction",
        estimand="whether the effects of conditions differ between domains",
    )
    return ConditionModel(cells=tuple(means), effects=tuple(gains), by_domain=tuple(by_domain), interaction=interaction)


def _linked(means: FloatArray, link: str) -> tuple[FloatArray, FloatArray]:
    """Return g(mean) and its derivative."""
    if link == "logit":
        return np.asarray(special.logit(means)), 1 / (means * (1 - means))
    if link == "probit":
        z = np.asarray(special.ndtri(means), dtype=np.float64)
        return z, math.sqrt(2 * math.pi) * np.exp(z**2 / 2)
    return means, np.ones_like(means)


def _exact(rows: CellRows, level: float) -> dict[str, list[float]]:
    return {
        str(cell): list(basic.clopper_pearson_interval(int(hits), int(n), level))
        for cell, hits, n in zip(rows.names, rows.sums, rows.counts, strict=True)
    }


def joint_test(rows: CellRows, hypotheses: FloatArray, level: float, **labels: Any) -> Estimate:
    """Test jointly by F that all contrasts of the cell means, (n_contrasts, n_cells), are 0. `labels` are those of the record.

    >>> rng = np.random.default_rng(0)
    >>> people = np.repeat(np.arange(60), 4)
    >>> rows = CellRows.from_arrays(rng.random(240), people % 3, people, None, cell_names=[0, 1, 2])
    >>> found = joint_test(rows, np.array([[1.0, -1, 0], [1, 0, -1]]), 0.95, analysis="demo", estimand="equality")
    >>> found.detail["df_between"], found.test.name
    (2, 'clustered_f')
    """
    common: dict[str, Any] = {
        **labels,
        "unit": "annotator",
        "n": rows.n_annotators,
        "n_clusters": rows.n_clusters,
        "n_rows": len(rows.values),
        "settings": {
            "link": "identity",
            "level": level,
            "method": rows.method,
            "population": cluster_variances.PEOPLE if rows.items is None else cluster_variances.PEOPLE_AND_PROMPTS,
        },
    }
    n_contrasts = len(hypotheses)
    if n_contrasts == 0:
        return Estimate(status="not_applicable", reason="needs two conditions and two domains", **common)
    if np.any(rows.counts == 0):
        return Estimate(status="no_data", reason="a condition has no answers in some domain", **common)
    if rows.n_clusters <= max(n_contrasts, cluster_variances.TOO_FEW_CLUSTERS - 1):
        return Estimate(status="not_identified", reason="too few clusters for a joint test", **common)
    means = rows.sums / rows.counts
    spread = rows.covariance(hypotheses, means)
    if spread is None:
        reason = "one annotator (or item) alone gives the answers of a cell"
        return Estimate(status="not_identified", reason=reason, **common)
    contrasts = hypotheses @ means
    statistics = []
    for covariance in spread.candidate_covariances():
        smallest = float(np.linalg.eigvalsh(covariance)[0])
        if smallest <= MIN_SPREAD * max(1.0, float(np.trace(covariance))):
            continue
        statistics.append(float(contrasts @ np.linalg.solve(covariance, contrasts)) / n_contrasts)
    if not statistics:
        return Estimate(status="zero_variance", reason="the contrasts do not vary", **common)
    statistic, df = min(statistics), rows.df
    if rows.items is None and df > n_contrasts:
        # Hotelling's correction for an estimated covariance. With two ways the least of three statistics replaces it.
        statistic *= (df - n_contrasts + 1) / df
        df -= n_contrasts - 1
    pvalue = float(special.fdtrc(n_contrasts, df, statistic))
    return Estimate(
        test=HypothesisTest(name="clustered_f", null=0.0, statistic=statistic, pvalue=pvalue, alternative="greater"),
        detail={"df_between": n_contrasts, "df_within": df, "contrasts": contrasts},
        warnings=rows.warnings("annotator"),
        **common,
    )
