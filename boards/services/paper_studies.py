"""The paper's studies of its own design, on the labels of a board: aggregation over days, and one label against several per output.

Reference: Genie (Khashabi et al. 2022), section 4, Figures 2 and 3.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from pandas import DataFrame

FEWEST_ITEMS = 10
DRAWS = 500
NUMBERS_OF_LABELS = (50, 100, 200, 300, 400, 800, 1600)
AGGREGATES = ("mean", "majority")


def paper_studies(rows: "DataFrame", rng: "np.random.Generator") -> list[dict[str, Any]]:
    """Return one entry for each criterion, system and round in which enough outputs have several labels.

    ``score``: the mean over outputs of each output's mean or majority (its median label), in points. ``sd_unilabel`` and
    ``sd_multilabel``: the spread of the score over simulated rounds, if one budget buys one label each on many outputs, or all
    labels on few outputs.
    """
    from analysis.stats import board_scores

    found = []
    cells = rows[["criterion", "system", "round"]].drop_duplicates().sort_values(["criterion", "system", "round"])
    for criterion, system, number in cells.itertuples(index=False):
        is_own = (rows["criterion"] == criterion) & (rows["system"] == system) & (rows["round"] == number)
        own = rows[is_own]
        table = label_table(own, rng)
        if table is None:
            continue
        for aggregate in AGGREGATES:
            spread = board_scores.unilabel_and_multilabel_spread_in_points(
                table, rng=rng, rounds=DRAWS, aggregate=aggregate
            )
            found.append(
                {
                    "criterion": str(criterion),
                    "submission": int(system),
                    "round": int(number),
                    "day": min((day for day in own["day"] if isinstance(day, str)), default=None),
                    "aggregate": aggregate,
                    "score": float(100 * aggregated(table, aggregate).mean()),
                    "outputs": spread.n_items,
                    "labels_per_output": spread.labels_per_item,
                    "sd_unilabel": spread.sd_unilabel,
                    "sd_multilabel": spread.sd_multilabel,
                    "exact_unilabel": spread.exact_unilabel,
                    "exact_multilabel": spread.exact_multilabel,
                    "icc": spread.icc,
                    "design_effect": spread.design_effect,
                    "draws": spread.rounds,
                }
            )
    return found


def aggregated(table: "npt.NDArray[np.float64]", aggregate: str) -> "npt.NDArray[np.float64]":
    """Return the score of each output: the mean of its labels, or their median."""
    import numpy as np

    return np.asarray(table.mean(axis=1) if aggregate == "mean" else np.median(table, axis=1))


def label_table(rows: "DataFrame", rng: "np.random.Generator") -> "npt.NDArray[np.float64] | None":
    """Return the labels of outputs with several labels, one row each; None if there are too few.

    All outputs have the number of labels that most of those with several have. Of an output with more, some are drawn.
    """
    from analysis.stats import board_scores

    counts = rows.groupby("prompt")["value"].size()
    several = counts[counts >= 2]
    if len(several) < FEWEST_ITEMS:
        return None
    k = int(several.mode().max())
    table = board_scores.pilot_label_table(
        rows["value"].to_numpy(float), rows["prompt"].to_numpy(), labels_per_item=k, rng=rng
    )
    return table if len(table) >= FEWEST_ITEMS else None


def double_labels(rows: "DataFrame", minimum: float) -> dict[str, Any]:
    """Return the share of outputs with two labels or more, against the declared minimum."""
    from analysis.stats import board_scores

    outputs = rows["system"].astype(str) + "\x1f" + rows["prompt"].astype(str)
    found = board_scores.double_label_share(rows["value"].to_numpy(float), outputs.to_numpy(), minimum=minimum)
    return {
        "unit": "output",
        "n": found.n,
        "n_double": found.n_double,
        "share": found.share,
        "minimum": found.minimum,
        "is_enough": found.is_enough,
        "n_missing": found.n_missing,
    }


def cost_and_precision(rows: "DataFrame", cost_per_label: float) -> list[dict[str, Any]]:
    """Return, for each system, the standard error of its score against the cost of its labels: worst case, and as measured."""
    from analysis.stats import board_scores

    found = []
    for system in sorted(rows["system"].unique().tolist()):
        own = rows[rows["system"] == system]
        curve = board_scores.precision_for_cost(
            own["value"].to_numpy(float),
            own["prompt"].to_numpy(),
            own["annotator"].to_numpy(),
            n_labels=NUMBERS_OF_LABELS,
            cost_per_label=cost_per_label,
        )
        found.append(
            {
                "submission": int(system),
                "labels": list(curve.n_labels),
                "costs": list(curve.costs),
                "worst_case_se": list(curve.worst_case_se),
                "measured_se": list(curve.measured_se),
                "design_effect": curve.design_effect,
                "reason": curve.reason,
                "unit": curve.unit,
                "n": curve.n,
            }
        )
    return found
