"""A model with random annotators and random prompts."""

import math
import warnings as python_warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import clusters
from analysis.stats.arrays import DEGENERATE, FloatArray, IntArray, kept_codes, refuse_level, sizes_of
from analysis.stats.ratings._systems import of_two_systems, unless_both_rated
from analysis.stats.results import Estimate, Warning


def crossed_mixed(
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
    """The difference of mean ratings in a model with random annotators and random prompts, crossed.

    All arrays have shape (n_rows,); rows of other systems are left out. detail has the components of variance and
    their shares (`icc_annotator`, `icc_prompt`), which planning needs. A fit that does not converge falls back to the
    two-way clustered contrast of means (warning `mixed_not_converged`, detail["method"] says which it is). Takes seconds
    for thousands of rows: never inside a web request.

    >>> rng = np.random.default_rng(3)
    >>> annotators, prompts = np.repeat(np.arange(8), 12), np.tile(np.repeat(np.arange(6), 2), 8)
    >>> systems = np.tile(["x", "y"], 48)
    >>> ratings = 3 + (systems == "x") + rng.normal(0, 1, 8)[annotators] + rng.normal(0, 1, 96)
    >>> round(crossed_mixed(ratings, systems, annotators, prompts, system="x", reference="y").estimate, 1)
    1.0
    """
    refuse_level(level)
    kept, treated, here = of_two_systems(ratings, systems, system, reference)
    annotator_codes, n_annotators = kept_codes(annotators, "annotators", here)
    prompt_codes, n_prompts = kept_codes(prompts, "prompts", here)
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "difference of mean ratings, system - reference",
        "unit": unit,
        "n": n_annotators,
        "n_clusters": min(n_annotators, n_prompts) if len(kept) else 0,
        "n_rows": len(kept),
        "settings": {"system": str(system), "reference": str(reference), "level": level},
    }
    edge = unless_both_rated(treated, common)
    if edge is not None:
        return edge
    difference = float(np.mean(kept[treated == 1])) - float(np.mean(kept[treated == 0]))
    if min(n_annotators, n_prompts) < 2:
        reason = "one annotator, or one prompt, has no spread"
        return Estimate(status="n_lt_2", reason=reason, estimate=difference, **common)
    if float(np.std(kept)) < DEGENERATE:
        return Estimate(status="zero_variance", reason="all ratings are equal", estimate=difference, **common)
    fitted = _fit_mixed(kept, treated, annotator_codes, prompt_codes)
    warnings: tuple[Warning, ...] = ()
    if isinstance(fitted, str):
        value, se = difference, _two_way_contrast_se(kept, treated, annotator_codes, prompt_codes)
        warnings = (Warning("mixed_not_converged", "warn", {"reason": fitted}),)
        detail: dict[str, Any] = {"method": "two_way_cluster"}
    else:
        value, se, components = fitted
        total = sum(components.values())
        detail = {"method": "mixed", "components": components}
        for name in ("annotator", "prompt"):
            detail[f"icc_{name}"] = components[name] / total if total > DEGENERATE else None
    return clusters.t_estimate(
        value,
        se,
        float(min(n_annotators, n_prompts) - 1),
        fewest=min(n_annotators, n_prompts),
        level=level,
        method=f"{detail['method']}_t",
        null=0.0,
        test=detail["method"],
        warnings=(*warnings, *clusters.cluster_warnings(sizes_of(annotator_codes, n_annotators), name=unit)),
        detail=detail,
        **common,
    )


def _fit_mixed(
    ratings: FloatArray, treated: FloatArray, annotators: IntArray, prompts: IntArray
) -> tuple[float, float, dict[str, float]] | str:
    """The contrast, its standard error and the components of variance, or why there are none."""
    from statsmodels.regression.mixed_linear_model import MixedLM, VCSpec

    names: Sequence[str] = ("annotator", "prompt")
    factors = [np.eye(int(labels.max()) + 1)[labels] for labels in (annotators, prompts)]
    spec = VCSpec(
        list(names),
        [[[f"{name}[{k}]" for k in range(factor.shape[1])]] for name, factor in zip(names, factors, strict=True)],
        [[factor] for factor in factors],
    )
    design = np.column_stack([np.ones(len(ratings)), treated])
    try:
        with python_warnings.catch_warnings(), np.errstate(all="ignore"):
            python_warnings.simplefilter("ignore")
            fit = MixedLM(ratings, design, groups=np.ones(len(ratings)), exog_vc=spec).fit()
        converged = bool(fit.converged)
        value, se = float(fit.params[1]), float(fit.bse[1])
        components = {name: float(part) for name, part in zip(names, fit.vcomp, strict=True)}
        components["residual"] = float(fit.scale)
    except (ValueError, np.linalg.LinAlgError, FloatingPointError) as problem:
        return f"the fit failed: {problem}"
    if not converged:
        return "the fit did not converge"
    if not all(map(math.isfinite, (value, se, *components.values()))):
        return "the fit has no finite standard error"
    return value, se, components


def _two_way_contrast_se(ratings: FloatArray, treated: FloatArray, annotators: IntArray, prompts: IntArray) -> float:
    """Two-way CR1 of the difference of means, the maximum rule applied to the contrast itself."""
    mean_x, mean_y = float(np.mean(ratings[treated == 1])), float(np.mean(ratings[treated == 0]))
    n_x = float(treated.sum())
    n_y = len(treated) - n_x
    influence = np.where(treated == 1, (ratings - mean_x) / n_x, -(ratings - mean_y) / n_y) * len(ratings)
    return math.sqrt(clusters.two_way_variance(influence, annotators, prompts).variance)
