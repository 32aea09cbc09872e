"""Whether groups of people, or of prompts, disagree about a comparison: the estimate in each group, and an interaction.

A row is an answer about the comparison, with its annotator, its prompt and its group. Groups divide annotators (by panel, by
an answer of a survey) or prompts (by domain, by length). In both, annotators and prompts are shared by rows of several
groups, or not, and the jackknife over both counts what is shared once.

References: Cameron, Gelbach and Miller 2011, Robust inference with multiway clustering; MacKinnon, Nielsen and Webb 2023,
Leverage, influence, and the jackknife in clustered regression models.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import clusters
from analysis.stats.arrays import FloatArray, IntArray, label_codes, validate_level, vector
from analysis.stats.cluster_models import FittedRows, ModelSpread
from analysis.stats.groups import label_codes_and_names
from analysis.stats.results import Estimate, Record

MIN_PEOPLE, MIN_PROMPTS = 10, 5


@dataclass(frozen=True, slots=True)
class Opinions(Record):
    """A comparison in several groups.

    Attributes
    ----------
    names : tuple[Any, ...]
        The groups, sorted.
    estimates : tuple[Estimate, ...]
        The estimate in each group. With too few people or prompts it has no value, and the reason.
    contrast : tuple[Any, ...]
        The group that differs most clearly from all other estimated groups, or empty.
    difference : Estimate
        Its mean less that of the others. With k > 2 groups, the interval and the adjusted p-value account for the choice among
        k differences (Bonferroni). The status says why there is none.
    """

    names: tuple[Any, ...]
    estimates: tuple[Estimate, ...]
    contrast: tuple[Any, ...]
    difference: Estimate

    @property
    def pvalue(self) -> float | None:
        """Return the p-value of the interaction, which accounts for the number of groups."""
        test = self.difference.test
        return None if test is None else min(1.0, test.pvalue * self.difference.detail["n_differences"])


def opinions_of_groups(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike,
    prompts: npt.ArrayLike,
    groups: npt.ArrayLike,
    *,
    of: str,
    null: float,
    weights: npt.ArrayLike | None = None,
    population: str = "",
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
) -> Opinions:
    """Mean of the answers in each group, and whether groups differ.

    Parameters
    ----------
    values : array_like, shape (n_rows,)
        Answers about the comparison; NaN is missing.
    annotators, prompts, groups : array_like, shape (n_rows,)
        Labels of each row's annotator, prompt and group. Rows with the group '' are in no group.
    of : {"annotators", "prompts"}
        What the groups divide. Groups of prompts need five prompts each.
    null : float
        Value of an answer without a preference.
    weights : array_like, shape (n_rows,), optional
        Positive weights of the rows. Equal if None.
    population : {"", "people_and_prompts", "people"}, default ""
        As in `clusters.annotator_prompt_clustered_mean`.
    bounds : tuple[float, float], optional
        Ends of the scale.
    level : float, default 0.95
        Confidence level of the intervals, between 0 and 1.

    Returns
    -------
    Opinions
        Groups with fewer than ten annotators, and groups of prompts with fewer than five prompts, are not shown and not compared.

    Examples
    --------
    >>> people, prompts = np.repeat(np.arange(24), 6), np.tile(np.arange(6), 24)
    >>> panel = np.where(people < 12, "crowd", "experts")
    >>> likes_x = ((people * 7 + prompts * 5) % 10 < np.where(panel == "experts", 9, 3)).astype(float)
    >>> found = opinions_of_groups(likes_x, people, prompts, panel, of="annotators", null=0.5, bounds=(0, 1))
    >>> found.contrast, round(found.difference.estimate, 3), found.pvalue < 0.001
    (('crowd',), -0.542, True)
    """
    if of not in ("annotators", "prompts"):
        raise ValueError(f"of: {of!r} is not annotators or prompts")
    validate_level(level)
    array = vector(values, "values")
    labels = np.asarray(groups, dtype=object)
    is_used = ~np.isnan(array) & (labels != "")
    row_weights = clusters.weights_of_rows(weights, is_used) if weights is not None else np.ones(int(is_used.sum()))
    array, people, asked, labels = (
        column[is_used] for column in (array, np.asarray(annotators), np.asarray(prompts), labels.astype(str))
    )
    codes, names = label_codes_and_names(labels, "groups", len(array))
    options: dict[str, Any] = {"population": population, "level": level, "bounds": bounds}
    estimates = []
    for code in range(len(names)):
        own = codes == code
        problem = _too_few(len(set(people[own].tolist())), len(set(asked[own].tolist())), of)
        estimates.append(
            _undefined("opinions.group", "mean in the group", problem)
            if problem
            else clusters.annotator_prompt_clustered_mean(
                array[own],
                people[own],
                asked[own],
                weights=row_weights[own],
                null=null,
                analysis="opinions.group",
                estimand="mean in the group",
                **options,
            )
        )
    shown = [code for code, one in enumerate(estimates) if one.estimate is not None]
    if len(shown) < 2:
        reason = "fewer than two groups are large enough"
        return Opinions(names, tuple(estimates), (), _undefined("opinions.difference", "difference of groups", reason))
    kept = np.isin(codes, shown)
    n_tests = 1 if len(shown) == 2 else len(shown)
    is_about_people = population == "people" or len(set(asked[kept].tolist())) < MIN_PROMPTS
    compared = [
        (
            code,
            _difference(
                array[kept],
                (codes[kept] == code).astype(np.int64),
                row_weights[kept],
                label_codes(people[kept], "annotators", int(kept.sum()))[0],
                None if is_about_people else label_codes(asked[kept], "prompts", int(kept.sum()))[0],
                level=1 - (1 - level) / n_tests,
                bounds=bounds,
            ),
        )
        for code in shown[:n_tests]
    ]
    code, clearest = min(compared, key=lambda one: (1.0 if one[1].pvalue is None else one[1].pvalue, one[0]))
    difference = replace(clearest, detail={**clearest.detail, "n_differences": n_tests})
    return Opinions(names, tuple(estimates), (names[code],), difference)


def _too_few(n_people: int, n_prompts: int, of: str) -> str:
    if n_people < MIN_PEOPLE:
        return f"fewer than {MIN_PEOPLE} people"
    return f"fewer than {MIN_PROMPTS} prompts" if of == "prompts" and n_prompts < MIN_PROMPTS else ""


def _undefined(analysis: str, estimand: str, reason: str) -> Estimate:
    return Estimate(analysis=analysis, estimand=estimand, unit="annotator", n=0, status="not_identified", reason=reason)


def _difference(
    values: FloatArray,
    is_group: IntArray,
    weights: FloatArray,
    annotators: IntArray,
    prompts: IntArray | None,
    *,
    level: float,
    bounds: tuple[float, float] | None,
) -> Estimate:
    """Return the mean of one group less that of the others, with the two-way jackknife of weighted means."""
    totals = np.bincount(is_group, weights, minlength=2)
    means = np.bincount(is_group, weights * values, minlength=2) / totals
    sides = np.eye(2)
    # Rows of one side and one weight have the same information.
    distinct, numbers = np.unique(weights, return_inverse=True)
    cells = is_group * len(distinct) + numbers
    of_cells = np.einsum("w,sij->swij", distinct, sides[:, :, None] * sides[:, None, :]).reshape(-1, 2, 2)
    scores = sides[is_group] * (weights * (values - means[is_group]))[:, None]
    spread = ModelSpread.from_rows(
        FittedRows(np.diag(totals), scores, cells, of_cells), annotators, prompts, unit="annotator"
    )
    reach = None if bounds is None else bounds[1] - bounds[0]
    return spread.estimate(
        float(means[1] - means[0]),
        np.array([-1.0, 1.0]),
        level=level,
        null=0.0,
        bounds=None if reach is None else (-reach, reach),
        analysis="opinions.difference",
        estimand="mean in the group less that in the others",
        unit="annotator",
        n=int(annotators.max()) + 1,
        n_rows=len(values),
    )
