"""Probes of a judge beside itself: the order of a pair, and repeated runs."""

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import validate_level, validate_within_bounds, vector
from analysis.stats.judges._jackknife import SumsJackknife, ratio
from analysis.stats.judges._rows import ClusteredRows, label_positions
from analysis.stats.results import Estimate, Record


@dataclass(frozen=True, slots=True)
class OrderProbe(Record):
    """What a judge's verdicts owe to the order of the pair.

    Attributes
    ----------
    flips : Estimate
        Share of pairs with another verdict in the other order.
    first_place : Estimate
        Mean preference for the output in the first place, with the test that it is .5.
    n_to_first, n_to_second : int
        Pairs whose verdicts both favour the first (second) place.
    """

    flips: Estimate
    first_place: Estimate
    n_to_first: int
    n_to_second: int


@dataclass(frozen=True, slots=True)
class RepeatProbe(Record):
    """How much a judge agrees with itself.

    Attributes
    ----------
    identical : Estimate
        Share of pairs of runs with the same verdict.
    always_identical : Estimate
        Share of items with the same verdict in all runs.
    sd : Estimate
        Standard deviation of a verdict between runs, within items. Verdicts that are no numbers: `not_applicable`.
    """

    identical: Estimate
    always_identical: Estimate
    sd: Estimate


def order_probe(
    original: npt.ArrayLike,
    exchanged: npt.ArrayLike,
    *,
    prompts: npt.ArrayLike,
    level: float = 0.95,
) -> OrderProbe:
    """Compare a judge's verdicts on the same pairs of outputs in both orders.

    Both arrays have the preference for the same output A of each pair, from 0 (the other) to 1, with .5 for a tie and
    NaN for missing: `original` with A in the first place, `exchanged` with A in the second. The preference for the
    first place of a pair is (original + 1 - exchanged) / 2. The results are shares of pairs, with the intervals of
    `clusters.clustered_mean` over prompts; `n` counts prompts, and `n_rows` counts pairs.

    >>> probe = order_probe([1, 1, 0, 1, 1, 0] * 5, [1, 0, 0, 0, 1, 1] * 5, prompts=np.arange(30))
    >>> round(probe.flips.estimate, 3), round(probe.first_place.estimate, 3), probe.n_to_first, probe.n_to_second
    (0.5, 0.583, 10, 5)
    """
    validate_level(level)
    first, second = vector(original, "original"), vector(exchanged, "exchanged")
    if len(second) != len(first):
        raise ValueError(f"exchanged: {len(second)} values where original has {len(first)}")
    for name, values in (("original", first), ("exchanged", second)):
        validate_within_bounds(values, (0.0, 1.0), name)
    is_used = ~np.isnan(first + second)
    rows = ClusteredRows.from_arrays(is_used, annotators=None, prompts=prompts, weights=None, has_people=False)
    first, second = first[is_used], second[is_used]
    flips = rows.mean(
        np.asarray(first != second, dtype=np.float64),
        level=level,
        analysis="judges.order.flips",
        estimand="share of pairs with another verdict in the other order",
    )
    place = rows.mean(
        (first + 1 - second) / 2,
        null=0.5,
        level=level,
        analysis="judges.order.first_place",
        estimand="mean preference for the output in the first place",
    )
    to_first, to_second = ((first > 0.5) & (second < 0.5), (first < 0.5) & (second > 0.5))
    return OrderProbe(flips, place, int(to_first.sum()), int(to_second.sum()))


def repeat_probe(
    verdicts: npt.ArrayLike | Sequence[Sequence[object]],
    *,
    prompts: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> RepeatProbe:
    """Estimate the agreement of a judge with itself in repeated runs on the same items.

    `verdicts` (n_items, n_runs) are numbers or texts; None and NaN are missing, and an item with fewer than two
    verdicts is left out. If `prompts` is None, each item is its own prompt. `weights` are the inverse probabilities
    with which the items were drawn (equal if None). `identical` is per item the share of its pairs of runs with the
    same verdict, then the mean over items, and `sd` is the root of the mean over items of the variance (ddof = 1). The
    intervals are over prompts, that of `sd` by leaving out each prompt; `n` counts prompts, and `n_rows` counts items.

    >>> probe = repeat_probe([[4, 4, 4], [3, 4, 4], [5, 5, 5], [2, 2, 3]] * 3)
    >>> round(probe.identical.estimate, 3), probe.always_identical.estimate, round(probe.sd.estimate, 3)
    (0.667, 0.5, 0.408)
    """
    validate_level(level)
    table = np.asarray(verdicts, dtype=object)
    if table.ndim != 2:
        raise ValueError(f"verdicts: expected two dimensions, got {table.ndim}")
    n_items, n_runs = table.shape
    positions, names = label_positions({"verdicts": table.ravel()}, None)
    codes = positions["verdicts"].reshape(n_items, n_runs)
    is_used = np.sum(codes >= 0, axis=1) >= 2
    rows = ClusteredRows.from_arrays(
        is_used,
        annotators=None,
        prompts=np.arange(n_items) if prompts is None else prompts,
        weights=weights,
        has_people=False,
    )
    codes = codes[is_used]
    n = np.sum(codes >= 0, axis=1)
    pairs = np.zeros(len(codes))
    is_same = np.zeros(len(codes), dtype=np.bool_)
    for number in range(len(names)):
        count = np.sum(codes == number, axis=1)
        pairs += count * (count - 1)
        is_same |= count == n
    identical = rows.mean(
        pairs / (n * (n - 1)),
        level=level,
        analysis="judges.repeat.identical",
        estimand="share of pairs of runs with the same verdict",
    )
    always = rows.mean(
        is_same.astype(np.float64),
        level=level,
        analysis="judges.repeat.always_identical",
        estimand="share of items with the same verdict in all runs",
    )
    return RepeatProbe(identical, always, _sd(rows, codes, names, level=level))


def _sd(rows: ClusteredRows, codes: npt.NDArray[np.int64], names: tuple[Any, ...], *, level: float) -> Estimate:
    labels: dict[str, Any] = {
        "analysis": "judges.repeat.sd",
        "estimand": "standard deviation of a verdict between runs, within items",
    }
    if not all(isinstance(name, numbers.Real) for name in names):
        reason = "the verdicts are no numbers"
        return Estimate(status="not_applicable", reason=reason, unit="prompt", n=0, **labels)
    values = np.where(codes >= 0, np.array([*names, np.nan], dtype=np.float64)[codes], np.nan)
    variances = np.nanvar(values, axis=1, ddof=1) if len(values) else np.empty(0)
    contributions = rows.weights[:, None] * np.column_stack([np.ones(len(variances)), variances])
    jackknife = SumsJackknife.from_rows(
        rows, contributions, lambda sums: np.sqrt(np.maximum(0.0, ratio(sums[..., 1], sums[..., 0])))[..., None]
    )
    return jackknife.estimate(undefined="no item has two runs", level=level, **labels)
