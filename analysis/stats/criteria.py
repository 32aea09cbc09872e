"""Several criteria next to an overall question; criteria are never averaged.

The overall preference is asked, not computed: annotators weigh criteria in their own way, and a mean would use
the analyst's weights. The criteria can describe which answers go together with the overall answers.

Reference: Ethayarajh and Jurafsky 2022, The Authenticity Gap in Human Evaluation, Limitations, point 3.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import cluster_models, cluster_variances, clusters
from analysis.stats.arrays import (
    MIN_SPREAD,
    group_sizes,
    label_codes_where,
    matrix,
    validate_level,
    validate_within_bounds,
    vector,
)
from analysis.stats.results import Estimate, Record, ResultWarning

# Share of a criterion's variance explained by the others, from which its own coefficient means little.
COLLINEAR = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Drivers(Record):
    """Association of overall answers with criteria: one coefficient per criterion, and the share of variance described.

    `intercept` is the overall preference if every criterion is undecided. No coefficient has a test.
    """

    coefficients: Mapping[str, Estimate]
    intercept: Estimate
    r_squared: float | None
    n_rows: int
    n_annotators: int

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dict."""
        return Record.as_dict(self) | {"is_descriptive": True}


def regress_overall_on_criteria(
    overall: npt.ArrayLike,
    criteria: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    names: Sequence[str],
    level: float = 0.95,
) -> Drivers:
    """Estimate the regression of overall answers on answers about criteria, clustered by annotator (CV3).

    A row is an annotator and a pair, with combined answers in 0..1 (`spa.combine_orders`), overall and on each of the K
    criteria. A row with a missing value is left out. All values are centred at .5, so a coefficient of .6 means that
    answers ten points higher on this criterion go with six points more overall. The coefficients have intervals and no
    tests. The regression describes and does not explain: annotators who like a text tend to like everything about it.
    Linearly dependent criteria give the status `not_identified`, and there is the warning `collinear` if the others
    explain more than nine tenths of a criterion's variance.

    >>> rng = np.random.default_rng(0)
    >>> criteria = rng.uniform(0.2, 0.8, (60, 2))
    >>> overall = 0.5 + 0.7 * (criteria[:, 0] - 0.5) + rng.normal(0, 0.02, 60)
    >>> result = regress_overall_on_criteria(overall, criteria, np.repeat(np.arange(20), 3), names=["interest", "grammar"])
    >>> [round(estimate.estimate, 1) for estimate in result.coefficients.values()], result.n_annotators
    ([0.7, 0.0], 20)
    """
    validate_level(level)
    response, table = vector(overall, "overall"), matrix(criteria, "criteria")
    if len(table) != len(response):
        raise ValueError(f"criteria: {len(table)} rows where overall has {len(response)}")
    if len(names) != table.shape[1] or not names:
        raise ValueError(f"names: {len(names)} names where criteria has {table.shape[1]} columns")
    if len(set(names)) != len(names):
        raise ValueError("names: a criterion occurs twice")
    validate_within_bounds(response, (0.0, 1.0), "overall")
    for column, name in enumerate(names):
        validate_within_bounds(table[:, column], (0.0, 1.0), f"criteria ({name})")
    is_complete = ~np.isnan(response) & ~np.isnan(table).any(axis=1)
    centred, columns = response[is_complete] - 0.5, table[is_complete] - 0.5
    annotator_codes, n_annotators = label_codes_where(annotators, "annotators", is_complete)
    terms = ("intercept", *names)
    common: dict[str, Any] = {
        "analysis": "spa.drivers",
        "unit": "annotator",
        "n": n_annotators,
        "n_clusters": n_annotators,
        "n_rows": len(centred),
        "settings": {"criteria": list(names), "level": level, "method": "cv3"},
    }
    detail = {"n_missing": int((~is_complete).sum())}

    def undefined(status: str, reason: str) -> Drivers:
        coefficients = [
            Estimate(status=status, reason=reason, estimand=_estimand(term), detail=detail, **common) for term in terms
        ]
        return _drivers(coefficients, names, None, len(centred), n_annotators)

    if len(centred) == 0:
        return undefined("no_data", "no row has all answers")
    if n_annotators < 2:
        return undefined("n_lt_2", "one annotator has no spread")
    design = np.column_stack([np.ones(len(centred)), columns])
    try:
        fit = cluster_models.clustered_regression(design, centred, annotator_codes)
    except ValueError as problem:
        return undefined("not_identified", str(problem))
    warnings = cluster_variances.cluster_warnings(group_sizes(annotator_codes, n_annotators), name="annotator")
    results = []
    for position, term in enumerate(terms):
        explained = None if position == 0 else _explained(columns, position - 1)
        term_warnings = warnings
        if explained is not None and explained > COLLINEAR:
            term_warnings = (*warnings, ResultWarning("collinear", "warn", {"criterion": term, "explained": explained}))
        results.append(
            clusters.t_estimate(
                float(fit.coefficients[position]),
                math.sqrt(max(0.0, float(fit.covariance[position, position]))),
                fit.df,
                fewest_clusters=n_annotators,
                level=level,
                method="cv3_t",
                estimand=_estimand(term),
                warnings=term_warnings,
                detail={**detail, "explained_by_others": explained},
                **common,
            )
        )
    residuals = centred - design @ fit.coefficients
    total = float(np.sum((centred - np.mean(centred)) ** 2))
    r_squared = None if total < MIN_SPREAD else 1 - float(residuals @ residuals) / total
    return _drivers(results, names, r_squared, len(centred), n_annotators)


def _drivers(
    estimates: Sequence[Estimate], names: Sequence[str], r_squared: float | None, n_rows: int, n_annotators: int
) -> Drivers:
    return Drivers(
        coefficients=dict(zip(names, estimates[1:], strict=True)),
        intercept=estimates[0],
        r_squared=r_squared,
        n_rows=n_rows,
        n_annotators=n_annotators,
    )


def _estimand(term: str) -> str:
    if term == "intercept":
        return "overall P[x > y] - .5 where every criterion is at .5"
    return f"change of overall P[x > y] per unit of {term}, the other criteria equal (descriptive)"


def _explained(columns: npt.NDArray[np.float64], position: int) -> float | None:
    """Return the share of a criterion's variance that the others explain, or None if it does not vary."""
    target = columns[:, position]
    total = float(np.sum((target - np.mean(target)) ** 2))
    if total < MIN_SPREAD:
        return None
    others = np.column_stack([np.ones(len(target)), np.delete(columns, position, axis=1)])
    fitted = others @ np.linalg.lstsq(others, target, rcond=None)[0]
    return 1 - float(np.sum((target - fitted) ** 2)) / total
