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
AGGREGATES = ("mean", "majority")


def paper_studies(rows: "DataFrame", rng: "np.random.Generator") -> list[dict[str, Any]]:
    """Return one entry for each criterion, system and round in which enough outputs have several labels.

    ``score``: the mean over outputs of each output's mean or majority (its median label), in points. ``sd_unilabel`` and
    ``sd_multilabel``: the spread of the score over simulated rounds, if one budget buys one label each on many outputs, or all
    labels on few outputs.
    """
    from analysis.stats import leaderboard

    found = []
    cells = rows[["criterion", "system", "round"]].drop_duplicates().sort_values(["criterion", "system", "round"])
    for criterion, system, number in cells.itertuples(index=False):
        is_own = (rows["criterion"] == criterion) & (rows["system"] == system) & (rows["round"] == number)
        own = rows[is_own]
        table = label_table(own)
        if table is None:
            continue
        for aggregate in AGGREGATES:
            spread = leaderboard.unilabel_and_multilabel_spread_in_points(
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


def label_table(rows: "DataFrame") -> "npt.NDArray[np.float64] | None":
    """Return the labels of outputs with several labels, one row each; None if there are too few.

    All outputs have the number of labels that most of those with several have; further labels are left out, in the order of annotators.
    """
    counts = rows.groupby("prompt")["value"].size()
    several = counts[counts >= 2]
    if len(several) < FEWEST_ITEMS:
        return None
    k = int(several.mode().max())
    prompts = several.index[several >= k]
    if len(prompts) < FEWEST_ITEMS:
        return None
    chosen = rows[rows["prompt"].isin(prompts)].sort_values(["prompt", "annotator"], kind="stable")
    return chosen.groupby("prompt").head(k)["value"].to_numpy(float).reshape(-1, k)
