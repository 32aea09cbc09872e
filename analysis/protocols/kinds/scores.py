"""Analyses of scores: numbers for outputs, such as ratings, ranks, penalties and utilities."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.data.frames import cluster_labels, rows_where
from analysis.protocols.blocks.comparisons import Comparison, samples_if_unpaired
from analysis.protocols.blocks.populations import SECOND_SAMPLE, about_groups

from .answers import column_arrays

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.ranks import RankSets
    from analysis.stats.results import Estimate


def wide_scores(rows: "DataFrame", column: str, *keys: str) -> "DataFrame":
    """Return one row for each annotator, further ``keys`` and prompt, and one column for each system."""
    index = ["annotator", *keys, "prompt", SECOND_SAMPLE]
    return rows.pivot_table(index=index, columns="system", values=column, aggfunc="mean", sort=True)


def paired_scores(wide: "DataFrame", comparison: Comparison) -> "DataFrame":
    """Return the rows with scores of both systems, in columns x and y, with their annotators and second sample."""
    table = wide.reindex(columns=[comparison.x, comparison.y])
    table.columns = ["x", "y"]
    return table[table.notna().to_numpy().all(axis=1)].reset_index()


def judged_scores(wide: "DataFrame", comparison: Comparison) -> "DataFrame":
    """Return the rows with a score of one of the systems, or of both."""
    return wide.reindex(columns=[comparison.x, comparison.y]).dropna(how="all")


def score_difference(
    wide: "DataFrame",
    comparison: Comparison,
    *,
    level: float,
    analysis: str,
    estimand: str,
    sign: float = 1.0,
    scores_per_row: int = 1,
    has_equal_weights: bool = False,
) -> "Estimate":
    """Return the mean difference of x and y, paired if enough annotators judged both for the same prompt.

    Annotators and, unless the design declares exactly these prompts, prompts are clusters. ``sign`` is -1 if lower scores are
    better. ``has_equal_weights``: every annotator has the same weight, also with more pairs than others.
    """
    from analysis.stats import clusters, unpaired

    samples = samples_if_unpaired(wide, comparison)
    if samples is not None:
        samples |= {name: sign * samples[name] for name in "xy"}
        estimate = unpaired.mean_difference(**samples, level=level).labelled(
            analysis=f"{analysis}_unpaired", estimand=f"{estimand} (not side by side)"
        )
        estimate = about_groups(estimate, judged_scores(wide, comparison), comparison.population)
    else:
        pairs = paired_scores(wide, comparison)
        annotators, prompts = column_arrays(pairs, "annotator", SECOND_SAMPLE)
        weights = 1 / pairs.groupby("annotator")["x"].transform("size").to_numpy(float) if has_equal_weights else None
        estimate = clusters.annotator_prompt_clustered_mean(
            sign * (pairs["x"] - pairs["y"]).to_numpy(float),
            annotators,
            prompts,
            weights=weights,
            null=0.0,
            level=level,
            population=comparison.population,
            analysis=analysis,
            estimand=estimand,
        )
        if scores_per_row > 1:
            estimate = replace(estimate, n_rows=scores_per_row * len(pairs))
        estimate = about_groups(estimate, pairs, comparison.population)
    return comparison.with_equivalence_tests(estimate, null=0.0)


def means_by_system(
    rows: "DataFrame", column: str, mean: Callable[..., "Estimate"], **settings: Any
) -> list["Estimate"]:
    """Return a mean of each system, with its name and ``settings``. ``mean``: a statistic of scores, annotators and prompts."""
    estimates = []
    for system, system_rows in rows.groupby("system", sort=True):
        estimate = mean(*column_arrays(system_rows, column, "annotator", SECOND_SAMPLE))
        estimates.append(replace(estimate, settings={**estimate.settings, "system": str(system), **settings}))
    return estimates


def judged_by_several(rows: "DataFrame", unit: str) -> "DataFrame":
    """Return the rows of units that several annotators judged."""
    return rows_where(rows, rows.groupby(unit)["annotator"].transform("nunique") > 1)


def agreement_alpha(
    units: Any, values: Any, *, cluster_of: Callable[[str], str] | None = None, **options: Any
) -> "Estimate":
    """Return Krippendorff's alpha. ``cluster_of``: returns what a unit is resampled with, if units depend on each other."""
    from analysis.stats import agreement

    counts, points = agreement.value_counts_by_unit(cluster_labels(units), values.to_numpy(float))
    if cluster_of is not None:
        options["clusters"] = [cluster_of(name) for name in sorted(units.unique())]
    return agreement.krippendorff_alpha(counts, points, **options)


def change_per_place(rows: "DataFrame", column: str, population: str, level: float) -> "Estimate":
    """Return the change of the score from one place on the page to the next. Letters follow the places."""
    from analysis.stats import ratings

    letters = sorted(set(rows["label"]), key=lambda label: (len(label), label))
    scores, annotators, prompts, systems = column_arrays(rows, column, "annotator", SECOND_SAMPLE, "system")
    return ratings.rating_change_per_position(
        scores,
        rows["label"].map({label: n for n, label in enumerate(letters)}).to_numpy(float),
        annotators,
        None if population == "people" else prompts,
        systems=systems,
        level=level,
    )


def sets_of_ranks(rows: "DataFrame", column: str, **options: Any) -> "RankSets":
    """Return the sets of ranks of all systems, which hold jointly. Rank 1 has the highest scores."""
    from analysis.stats import ranks

    columns = column_arrays(rows, column, "annotator", "system", SECOND_SAMPLE)
    return ranks.rank_confidence_sets_from_rows(*columns, **options)
