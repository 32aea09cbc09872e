"""A mixed model with random annotators and random prompts."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import clusters
from analysis.stats.arrays import MIN_SPREAD, FloatArray, IntArray, group_sizes, label_codes_where, validate_level
from analysis.stats.ratings._systems import missing_rating_estimate, select_two_systems
from analysis.stats.results import Estimate, ResultWarning

# Standard deviations of annotators and prompts relative to the residual one: start and upper end of the search.
STARTS = ((1.0, 1.0), (0.1, 0.1), (0.1, 1.0), (1.0, 0.1))
MAX_RATIO = 1e3


def crossed_mixed_model(
    ratings: npt.ArrayLike,
    systems: npt.ArrayLike,
    annotators: npt.ArrayLike,
    prompts: npt.ArrayLike,
    *,
    system: object,
    reference: object,
    level: float = 0.95,
    analysis: str = "rating.crossed_mixed",
    unit: str = "annotator",
) -> Estimate:
    """Difference of mean ratings in a mixed model with crossed random annotators and random prompts.

    Parameters
    ----------
    ratings : array_like, shape (n_rows,)
        Ratings; NaN is missing.
    systems : array_like, shape (n_rows,)
        Label of each row's system. Rows of other systems are left out.
    annotators, prompts : array_like, shape (n_rows,)
        Labels of each row's annotator and prompt.
    system, reference : object
        The two systems; the estimate is system - reference.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    analysis, unit : str, optional
        Labels that are copied to the record.

    Returns
    -------
    Estimate
        The difference. `detail` has the variance components and their shares (`icc_annotator`, `icc_prompt`), which
        planning needs. If the fit fails, the estimate is the two-way clustered contrast of means (warning
        `mixed_not_converged`); `detail["method"]` names the method.

    Notes
    -----
    It takes seconds for thousands of rows: do not call it in a web request.

    References
    ----------
    Bates et al. 2015, Fitting linear mixed-effects models using lme4, section 3 (the profiled REML criterion).

    Examples
    --------
    >>> rng = np.random.default_rng(3)
    >>> annotators, prompts = np.repeat(np.arange(8), 12), np.tile(np.repeat(np.arange(6), 2), 8)
    >>> systems = np.tile(["x", "y"], 48)
    >>> ratings = 3 + (systems == "x") + rng.normal(0, 1, 8)[annotators] + rng.normal(0, 1, 96)
    >>> round(crossed_mixed_model(ratings, systems, annotators, prompts, system="x", reference="y").estimate, 1)
    1.0
    """
    validate_level(level)
    observed, treated, is_used = select_two_systems(ratings, systems, system, reference)
    annotator_codes, n_annotators = label_codes_where(annotators, "annotators", is_used)
    prompt_codes, n_prompts = label_codes_where(prompts, "prompts", is_used)
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "difference of mean ratings, system - reference",
        "unit": unit,
        "n": n_annotators,
        "n_clusters": min(n_annotators, n_prompts) if len(observed) else 0,
        "n_rows": len(observed),
        "settings": {"system": str(system), "reference": str(reference), "level": level},
    }
    edge = missing_rating_estimate(treated, common)
    if edge is not None:
        return edge
    difference = float(np.mean(observed[treated == 1])) - float(np.mean(observed[treated == 0]))
    if min(n_annotators, n_prompts) < 2:
        reason = "one annotator, or one prompt, has no spread"
        return Estimate(status="n_lt_2", reason=reason, estimate=difference, **common)
    if float(np.std(observed)) < MIN_SPREAD:
        return Estimate(status="zero_variance", reason="all ratings are equal", estimate=difference, **common)
    fitted = _fit_mixed(observed, treated, annotator_codes, prompt_codes)
    warnings: tuple[ResultWarning, ...] = ()
    if isinstance(fitted, str):
        value, se = difference, _two_way_contrast_se(observed, treated, annotator_codes, prompt_codes)
        warnings = (ResultWarning("mixed_not_converged", "warn", {"reason": fitted}),)
        detail: dict[str, Any] = {"method": "two_way_cluster"}
    else:
        value, se, components = fitted
        total = sum(components.values())
        detail = {"method": "mixed", "components": components}
        for name in ("annotator", "prompt"):
            detail[f"icc_{name}"] = components[name] / total if total > MIN_SPREAD else None
    return clusters.t_estimate(
        value,
        se,
        float(min(n_annotators, n_prompts) - 1),
        fewest_clusters=min(n_annotators, n_prompts),
        level=level,
        method=f"{detail['method']}_t",
        null=0.0,
        test_name=detail["method"],
        warnings=(*warnings, *clusters.cluster_warnings(group_sizes(annotator_codes, n_annotators), name=unit)),
        detail=detail,
        **common,
    )


def _fit_mixed(
    ratings: FloatArray, treated: FloatArray, annotators: IntArray, prompts: IntArray
) -> tuple[float, float, dict[str, float]] | str:
    """Return the contrast, its standard error and the variance components by REML, or the reason why the fit failed.

    The search is over two standard deviations relative to the residual one, from zero; the rest follows from them. A
    component can be exactly zero. The order of rows and the labels do not change the fit.
    """
    from scipy import linalg, optimize

    n = len(ratings)
    factors = np.column_stack([np.eye(int(labels.max()) + 1)[labels] for labels in (annotators, prompts)])
    sizes = [int(labels.max()) + 1 for labels in (annotators, prompts)]
    rows = np.column_stack([np.ones(n), treated, ratings])
    crossed, shared, plain = factors.T @ factors, factors.T @ rows, rows.T @ rows

    def solved(ratios: FloatArray) -> tuple[float, FloatArray, FloatArray, float]:
        scales = np.repeat(ratios, sizes)
        root = np.linalg.cholesky(np.eye(len(scales)) + scales[:, None] * crossed * scales)
        projected = linalg.solve_triangular(root, scales[:, None] * shared, lower=True)
        remaining = plain - projected.T @ projected
        fixed = np.linalg.solve(remaining[:2, :2], remaining[:2, 2])
        return (
            2 * float(np.log(np.diag(root)).sum()),
            remaining[:2, :2],
            fixed,
            float(remaining[2, 2] - remaining[:2, 2] @ fixed),
        )

    def misfit(ratios: FloatArray) -> float:
        log_det, precision, _, rest = solved(ratios)
        return log_det + float(np.linalg.slogdet(precision)[1]) + (n - 2) * math.log(max(rest, 1e-300))

    try:
        optima = [
            optimize.minimize(
                misfit, start, method="L-BFGS-B", bounds=[(0.0, MAX_RATIO)] * 2, options={"ftol": 1e-14, "gtol": 1e-9}
            )
            for start in STARTS
        ]
        best = min(optima, key=lambda optimum: float(optimum.fun))
        _, precision, fixed, rest = solved(best.x)
        residual = rest / (n - 2)
        se = math.sqrt(residual * float(np.linalg.inv(precision)[1, 1]))
    except (ValueError, np.linalg.LinAlgError, ZeroDivisionError) as problem:
        return f"the fit failed: {problem}"
    if residual < MIN_SPREAD or max(best.x) >= MAX_RATIO:
        return "the fit leaves no residual variance"
    components = {
        name: float(ratio) ** 2 * residual for name, ratio in zip(("annotator", "prompt"), best.x, strict=True)
    }
    return float(fixed[1]), se, components | {"residual": residual}


def _two_way_contrast_se(ratings: FloatArray, treated: FloatArray, annotators: IntArray, prompts: IntArray) -> float:
    """Return the two-way CR1 standard error of the difference of means, with the maximum rule on the contrast."""
    mean_x, mean_y = float(np.mean(ratings[treated == 1])), float(np.mean(ratings[treated == 0]))
    n_x = float(treated.sum())
    n_y = len(treated) - n_x
    influence = np.where(treated == 1, (ratings - mean_x) / n_x, -(ratings - mean_y) / n_y) * len(ratings)
    return math.sqrt(clusters.two_way_variance(influence, annotators, prompts).variance)
