"""Compare two submissions by the simultaneous intervals that a snapshot stores."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analysis.metrics.scoring import Criterion, is_about_outputs
from analysis.protocols.blocks.populations import population_of
from boards.models import Board, BoardRound, BoardSnapshot, RoundEntry, SubmittedOutput
from studies.models import Output
from studies.services.lifecycle import ActionRefused
from studies.stimuli.texts import word_count

from .submissions import probe_fields, sensitivity_fields

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from pandas import DataFrame

    from analysis.stats.vote_ratings import PairedRatings


# The paper's studies of its own design, on the labels of a board: aggregation over days, and one label against
# several per output.
#
# Reference: Genie (Khashabi et al. 2022), section 4, Figures 2 and 3.


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


METHOD = "max_t"
POINTS, RATING_POINTS = "points", "rating points"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The difference of two overall scores, submission minus baseline, in points of 100 or in points of a rating (``unit``).

    ``low`` and ``high`` hold for all pairs of the snapshot's systems at once with probability ``level``. They are None, with
    a reason, if the snapshot has no interval for this pair.
    """

    submission: int
    baseline: int
    snapshot: int
    criterion: str
    estimate: float | None
    low: float | None
    high: float | None
    level: float
    method: str
    unit: str
    systems: int
    reason: str = ""


def stored_differences(
    systems: Sequence[Any], differences: Any, *, unit: str = POINTS, scale: float = 1.0
) -> dict[str, Any] | None:
    """Return the intervals of all pairs as JSON: for each system, its distance from the first, and half widths to those before it.

    ``differences``: the ``SimultaneousDifferences`` of these systems; ``scale`` brings them into the unit. Half widths are enough, because each interval has the
    difference of two distances in its middle; whole tables would be six times as large.
    """
    if differences is None:
        return None
    halves = scale * (differences.high - differences.low) / 2
    return {
        "level": differences.level,
        "method": METHOD,
        "unit": unit,
        "systems": [int(system) for system in systems],
        "from_first": [float(distance) for distance in scale * differences.estimates[:, 0]],
        "half_widths": [
            [float(half) if known else None for half, known in zip(row[:n], decidable[:n], strict=True)]
            for n, (row, decidable) in enumerate(zip(halves, differences.decidable, strict=True))
        ],
    }


def compare_submissions(snapshot: BoardSnapshot, submission: int, baseline: int) -> Comparison:
    """Return the stored comparison of two submissions of a snapshot. Raise ActionRefused if one of them has no row."""
    result = snapshot.result
    scored = {row["submission"] for row in result["rows"]}
    for number in (submission, baseline):
        if number not in scored:
            raise ActionRefused(f"Snapshot {snapshot.number} has no score of submission {number}. Choose a scored one.")
    overall = result["criteria"][0]["key"]
    table = result["tables"][overall]
    stored = table.get("differences") or {"systems": []}
    places = {number: place for place, number in enumerate(stored["systems"])}
    estimate: float | None = None
    half: float | None = None
    reason = table.get("reason", "")
    if submission in places and baseline in places and submission != baseline:
        one, other = places[submission], places[baseline]
        estimate = stored["from_first"][one] - stored["from_first"][other]
        half = stored["half_widths"][max(one, other)][min(one, other)]
        reason = "" if half is not None else "the difference does not vary"
    elif submission == baseline:
        reason = "a submission has no baseline in itself"
    elif len(places) > 1:
        reason = reason or "no anchor puts both on one scale"
    return Comparison(
        submission=submission,
        baseline=baseline,
        snapshot=snapshot.number,
        criterion=overall,
        estimate=estimate,
        low=None if estimate is None or half is None else estimate - half,
        high=None if estimate is None or half is None else estimate + half,
        level=stored.get("level", result["level"]),
        method=METHOD,
        unit=stored.get("unit", POINTS),
        systems=len(places),
        reason=reason or ("the snapshot has no interval for this pair" if half is None else ""),
    )


# The numbers of a Bradley-Terry board: ratings from preferences, with ties, style control and categories.


LEVEL = 0.95
ALPHA = 0.05
RESAMPLES = 1999
# A rating difference of 400 points is odds of ten to one, as in chess.
POINTS_PER_LOG_ODDS = 400 / math.log(10)
CENTRE = 1000
MARKDOWN = ("**", "\n#", "\n- ", "\n* ", "\n1. ", "```")


def add_preferences(
    board: Board,
    criterion: Criterion,
    rows: "DataFrame",
    by_number: dict[int, dict[str, Any]],
    rng: "np.random.Generator",
    styles: "DataFrame | None",
) -> dict[str, Any]:
    """Add the ratings of one criterion to the rows of the systems. Return what concerns all systems.

    ``estimate`` is the chance to win against the average system of the board, in percent; ``rating`` the same in points, 1000 for
    the average. ``styles``: those of ``read_styles``, if the board controls for style.
    """
    from analysis.stats import vote_ratings

    if rows.empty:
        return {"status": "no_data", "reason": "no answer to analyse", "equating": None}
    systems, first, second = _system_numbers(rows)
    covariates, names = style_differences(rows, styles)
    options: dict[str, Any] = {
        "weights": balanced_weights(first, second, rows["value"].to_numpy(float)) if board.balances_pairs else None,
        "n_systems": len(systems),
        "rng": rng,
        "level": LEVEL,
        "resamples": RESAMPLES,
        "covariates": covariates,
        "covariate_names": names,
        # A chance of 50 is no tie: the chances themselves are fitted.
        "ties": "davidson" if is_about_outputs(board.template) else "half",
    }
    arguments = (first, second, rows["value"].to_numpy(float), rows["annotator"].to_numpy())
    found = vote_ratings.paired_ratings(*arguments, **options)
    for place, number in enumerate(systems):
        own = (first == place) | (second == place)
        row = by_number.setdefault(number, {"submission": number, "scores": {}})
        row["scores"][criterion.key] = rating_fields(found, place) | {
            "labels": int(own.sum()),
            "annotators": int(rows["annotator"][own].nunique()),
            "prompts": rows["prompt"][own].nunique() or None,
        }
    numbers = [systems[place] for place in found.rated]
    differences = stored_differences(numbers, found.differences, unit=RATING_POINTS, scale=POINTS_PER_LOG_ODDS)
    return {
        # Only of the overall rating: pairs are many.
        **({"differences": differences} if criterion.is_overall else {}),
        "status": found.status,
        "reason": found.reason,
        "annotators": int(rows["annotator"].nunique()),
        "labels": len(rows),
        "prompts": rows["prompt"].nunique() or None,
        "equating": None,
        "is_balanced": board.balances_pairs,
        "ties": None if found.tie is None else found.tie.estimate,
        "covariates": [
            {
                "name": name,
                "estimate": one.estimate,
                "low": one.interval.low if one.interval else None,
                "high": one.interval.high if one.interval else None,
                "pvalue": one.pvalue,
                "status": one.status,
                "reason": one.reason,
                "population": population_of(one),
            }
            for name, one in zip(names, found.covariates, strict=True)
        ],
        "by_category": _by_category(rows, systems, arguments, options),
    }


def _system_numbers(rows: "DataFrame") -> tuple[list[int], "npt.NDArray[np.int64]", "npt.NDArray[np.int64]"]:
    import numpy as np

    both = np.r_[rows["system"].to_numpy(int), rows["other"].to_numpy(int)]
    systems, codes = np.unique(both, return_inverse=True)
    return [int(number) for number in systems], codes[: len(rows)], codes[len(rows) :]


def balanced_weights(
    first: "npt.NDArray[np.int64]", second: "npt.NDArray[np.int64]", outcomes: "npt.NDArray[np.float64]"
) -> "npt.NDArray[np.float64]":
    """Return weights with which each pair of systems has the same total, and whose mean is 1.

    Anchors meet one another in every round, so without weights their comparisons decide most of the fit.

    >>> import numpy as np
    >>> balanced_weights(np.array([0, 1, 0, 0]), np.array([1, 0, 1, 2]), np.ones(4)).round(3).tolist()
    [0.667, 0.667, 0.667, 2.0]
    """
    import numpy as np

    pairs = np.sort(np.c_[first, second], axis=1)
    _, numbers = np.unique(pairs, axis=0, return_inverse=True)
    is_answered = ~np.isnan(outcomes)
    counts = np.bincount(numbers.ravel(), weights=is_answered)
    weights = 1 / np.maximum(counts, 1)[numbers.ravel()]
    mean = weights[is_answered].mean() if is_answered.any() else 1.0
    return np.asarray(weights / mean)


def rating_fields(found: "PairedRatings", place: int) -> dict[str, Any]:
    """Return the fields of one system's rating."""
    one = found.ratings[place]
    ranks = found.ranks
    order = {system: position for position, system in enumerate(ranks.systems)}
    position = order.get(place)
    rank_fields: dict[str, Any] = dict.fromkeys(("rank_low", "rank_high", "is_best"))
    if ranks.low is not None and ranks.high is not None and position is not None:
        rank_fields = {
            "rank_low": ranks.low[position],
            "rank_high": ranks.high[position],
            "is_best": ranks.best[position],
        }
    low, high = (one.interval.low, one.interval.high) if one.interval else (None, None)
    return {
        "estimate": win_percent(one.estimate),
        "low": win_percent(low),
        "high": win_percent(high),
        "rating": _points(one.estimate),
        "rating_low": _points(low),
        "rating_high": _points(high),
        "method": one.interval.method if one.interval else "",
        "population": population_of(one),
        "status": one.status,
        "reason": one.reason,
        "unit": one.unit,
        "n": one.n,
        "warnings": [warning.code for warning in one.warnings],
        **rank_fields,
    }


def win_percent(log_odds: float | None) -> float | None:
    """Return the chance to win against the average system, in percent.

    >>> win_percent(0.0), round(win_percent(1.0), 1), win_percent(None)
    (50.0, 73.1, None)
    """
    return None if log_odds is None else 100 / (1 + math.exp(-max(-500.0, min(500.0, log_odds))))


def _points(log_odds: float | None) -> float | None:
    return None if log_odds is None else CENTRE + POINTS_PER_LOG_ODDS * log_odds


def _by_category(
    rows: "DataFrame", systems: list[int], arguments: tuple[Any, ...], options: dict[str, Any]
) -> dict[str, list[dict[str, Any]]]:
    """Return the ratings within each domain of prompts, if there are several. Each domain holds at its level by itself."""
    from analysis.stats import vote_ratings

    categories = rows["domain"].fillna("").astype(str)
    if categories.nunique() < 2:
        return {}
    first, second, outcomes, people = arguments
    found = vote_ratings.paired_ratings_by_category(first, second, outcomes, people, categories.to_numpy(), **options)
    return {
        str(name): [
            {"submission": number, **rating_fields(one, place)}
            for place, number in enumerate(systems)
            if one.ratings[place].estimate is not None
        ]
        for name, one in found.items()
    }


def audit_of_preferences(rows: "DataFrame", rng: "np.random.Generator") -> list[dict[str, Any]]:
    """Return the probes of a board of preferences. Rounds after the first half count as late."""
    from analysis.stats import board_audit

    if rows.empty:
        return []
    systems, first, second = _system_numbers(rows)
    values = rows["value"].to_numpy(float)
    # The probe of the order needs the system that was shown first in the first place.
    is_swapped = rows["is_first"].eq(False).to_numpy()
    shown_first, shown_second = first.copy(), second.copy()
    shown_first[is_swapped], shown_second[is_swapped] = second[is_swapped], first[is_swapped]
    values = values.copy()
    values[is_swapped] = 1 - values[is_swapped]
    rounds = sorted(rows["round"].unique().tolist())
    is_late = rows["round"].isin(rounds[len(rounds) // 2 :]).to_numpy() if len(rounds) > 1 else None
    probes = board_audit.audit_votes(
        shown_first,
        shown_second,
        values,
        rows["annotator"].to_numpy(),
        n_systems=len(systems),
        rng=rng,
        is_late=is_late,
        alpha=ALPHA,
        resamples=RESAMPLES,
    )
    return [probe_fields(probe) for probe in probes]


def sensitivity_of_preferences(rows: "DataFrame") -> dict[str, Any] | None:
    """Return how few votes, and how few people, decide the first place; None with one system."""
    from analysis.stats import first_place

    systems, first, second = _system_numbers(rows)
    if len(systems) < 2:
        return None
    found = first_place.first_place_sensitivity_of_votes(
        first, second, rows["value"].to_numpy(float), rows["annotator"].to_numpy(), n_systems=len(systems)
    )
    return sensitivity_fields(found, systems)


# Style


def read_styles(board: Board) -> "DataFrame":
    """Return the length in words and the number of marks of Markdown of each output, by submission and prompt."""
    import pandas as pd

    rows: dict[tuple[int, str], tuple[int, int]] = {}
    submitted = SubmittedOutput.objects.filter(submission__board=board)
    for number, key, text in submitted.values_list("submission__number", "prompt_key", "text").iterator(2000):
        rows[number, key] = _style(text)
    rounds = BoardRound.objects.filter(board=board, cancelled_at=None)
    entries = RoundEntry.objects.filter(round__in=rounds, submission__team=None)
    number_of = dict(entries.values_list("system", "submission__number"))
    of_template = Output.objects.filter(system__in=number_of).values_list("system", "prompt__key", "text")
    for system, key, text in of_template.iterator(2000):
        rows.setdefault((number_of[system], key), _style(text))
    index = pd.MultiIndex.from_tuples(rows.keys(), names=["system", "prompt"])
    return pd.DataFrame(list(rows.values()), index=index, columns=["words", "marks"])


def _style(text: str) -> tuple[int, int]:
    return word_count(text), sum(text.count(mark) for mark in MARKDOWN)


def style_differences(
    rows: "DataFrame", styles: "DataFrame | None"
) -> tuple["npt.NDArray[np.float64] | None", tuple[str, ...]]:
    """Return the differences of style, first minus second system: of the logarithms of length, and of format."""
    import numpy as np
    import pandas as pd

    if styles is None:
        return None, ()
    values = np.log1p(styles.to_numpy(float))
    place = {key: number for number, key in enumerate(styles.index)}
    pairs = [
        [place.get((system, prompt)) for system, prompt in zip(rows[column].astype(int), rows["prompt"], strict=True)]
        for column in ("system", "other")
    ]
    if any(pd.isna(pd.Series(side)).any() for side in pairs):
        return None, ()
    differences = values[pairs[0]] - values[pairs[1]]
    names = ("length (log of words)", "format (log of marks of Markdown)")
    varies = differences.std(axis=0) > 0
    return differences[:, varies], tuple(name for name, is_used in zip(names, varies, strict=True) if is_used)
