"""How many human labels an interval of a wanted width needs, with and without the judges of a pilot."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import MIN_SPREAD, validate_level, validate_non_negative
from analysis.stats.prediction_powered._combine import combine
from analysis.stats.prediction_powered._sample import LabelledSample, labelled_sample
from analysis.stats.results import Record

USELESS, USEFUL, UNCLEAR = "useless", "useful", "unclear"
# The share of the labels that a judge must save to be of use.
USEFUL_SHARE = 0.1
# A correlation needs more labelled prompts than this for an interval.
FEWEST_PROMPTS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelNeed(Record):
    """The labels that an interval of one width needs.

    `people_alone` and `with_judge` are numbers of labels, each with a lower and an upper answer (`_low`, `_high`) that allow
    for the pilot's uncertainty. `share_saved` = 1 - with_judge / people_alone at the pilot's spread of labels; its lower and
    upper answers allow for the uncertain accuracy of the judges. `money` is the price of the labels with the judges.
    `needs_more_items` says that the labels with the judges are more than the planned items can have.
    """

    width: float
    people_alone: int
    people_alone_low: int
    people_alone_high: int
    with_judge: int
    with_judge_low: int
    with_judge_high: int
    share_saved: float
    share_saved_low: float
    share_saved_high: float
    needs_more_items: bool
    money: float | None
    money_saved: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgePlan(Record):
    """The plan. `explained` is the share of the variance of the human mean that the judges explain, between `explained_low` and `explained_high` at `level`.

    `verdict`: "useless" if the judges save less than `useful_share` of the labels of every width, "useful" if they save at least that also by the lower answer, otherwise
    "unclear": a larger pilot is needed. None without enough data, with a `reason`.
    """

    n_labels: int
    n_labelled: int
    n_items: int
    level: float
    useful_share: float
    explained: float | None
    explained_low: float | None
    explained_high: float | None
    needs: tuple[LabelNeed, ...]
    verdict: str | None
    reason: str = ""


def plan_labels_with_judge(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike | None,
    items: npt.ArrayLike,
    *,
    judges: npt.ArrayLike,
    widths: Sequence[float],
    n_items: int | None = None,
    prompts: npt.ArrayLike | None = None,
    price: float | None = None,
    level: float = 0.95,
) -> JudgePlan:
    """Plan the number of human labels from a pilot with the same judges.

    Parameters
    ----------
    values, annotators, items, judges, prompts, price, level
        The pilot, as in `prediction_powered_mean`.
    widths : sequence of float
        Wanted widths of the interval of the mean, in points of the human scale.
    n_items : int, optional
        Number of items that the judges will score. Those of the pilot if None.

    Returns
    -------
    JudgePlan
        The labels for each width, and the verdict.

    Raises
    ------
    ValueError
        As in `prediction_powered_mean`, or for a width that is not positive.

    Notes
    -----
    With n labels, Var(people) = V n0 / n and Var(combined) = V n0 / n (1 - E (1 - n / N)): V and E are the pilot's variance and the explained share,
    N the labels if all items were labelled. People and prompts grow with the labels. V has a chi-squared interval, E that of a squared correlation of as many
    prompts (Fisher's z). The upper answer has the larger V and the smaller E, so it is cautious.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> quality = rng.normal(3, 1, 2000)
    >>> values = quality[:100] + rng.normal(0, 0.3, 100)
    >>> plan = plan_labels_with_judge(values, None, np.arange(100), judges=quality + rng.normal(0, 0.5, 2000), widths=[0.2])
    >>> plan.verdict, plan.needs[0].with_judge < plan.needs[0].people_alone / 2
    ('useful', True)
    """
    validate_level(level)
    if price is not None:
        validate_non_negative(price=price)
    strange = [width for width in widths if not (math.isfinite(width) and width > 0)]
    if strange or not len(widths):
        raise ValueError(f"widths: expected positive numbers, got {list(widths)!r}")
    sample = labelled_sample(values, annotators, items, judges, prompts=prompts, names=None)
    n_labelled = len(np.unique(sample.items))
    planned = sample.n_items if n_items is None else n_items
    if planned < n_labelled:
        raise ValueError(f"n_items: {planned} is less than the {n_labelled} labelled items of the pilot")
    pilot = _pilot(sample)
    n_labels = len(sample.values)
    needs: tuple[LabelNeed, ...]
    spans: tuple[float, float, float] | tuple[None, None, None] = (None, None, None)
    if isinstance(pilot, str):
        needs, reason = (), pilot
    else:
        variance, df, explained, n_prompts = pilot
        known = _span_of_explained(explained, n_prompts, level)
        spans, reason = known, ""
        most = n_labels * planned / n_labelled
        needs = tuple(
            _need(width, variance * n_labels, df, n_labels, known, most, level=level, price=price) for width in widths
        )
    return JudgePlan(
        n_labels=n_labels,
        n_labelled=n_labelled,
        n_items=planned,
        level=level,
        useful_share=USEFUL_SHARE,
        explained=spans[0],
        explained_low=spans[1],
        explained_high=spans[2],
        needs=needs,
        verdict=_verdict(needs),
        reason=reason,
    )


def _pilot(sample: LabelledSample) -> tuple[float, float, float, int] | str:
    """Return the variance and the degrees of freedom of people alone, the explained share, and the prompts; or why not."""
    if not len(sample.values):
        return "the pilot has no label"
    alone = combine(sample, np.ones(1), weights=np.zeros(len(sample.names)))
    both = combine(sample, np.ones(1), is_judge_mean_known=True)
    if alone is None or both is None:
        return "one annotator or one prompt has all labels of the pilot"
    if alone.n_prompts < FEWEST_PROMPTS:
        return f"the pilot has labels of fewer than {FEWEST_PROMPTS} prompts"
    if alone.variance < MIN_SPREAD**2:
        return "the labels of the pilot do not vary"
    return alone.variance, alone.df, max(0.0, 1 - both.variance / alone.variance), alone.n_prompts


def _span_of_explained(explained: float, n_prompts: int, level: float) -> tuple[float, float, float]:
    """Return the explained share and its interval by Fisher's z."""
    correlation = math.sqrt(min(explained, 1 - 1e-9))
    half = float(special.ndtri((1 + level) / 2)) / math.sqrt(n_prompts - 3)
    low = math.tanh(max(0.0, math.atanh(correlation) - half))
    return explained, low**2, math.tanh(math.atanh(correlation) + half) ** 2


def _labels(width: float, unit_variance: float, df_share: float, explained: float, most: float, level: float) -> float:
    """Return the number of labels that gives the width. Labels beyond those of the planned items are of people alone."""

    def width_of(n: float) -> float:
        quantile = float(special.stdtrit(max(1.0, df_share * n), (1 + level) / 2))
        return 2 * quantile * math.sqrt(unit_variance / n * (1 - explained * max(0.0, 1 - n / most)))

    low, high = 2.0, 4.0
    while width_of(high) > width:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if width_of(middle) <= width else (middle, high)
    return high


def _need(
    width: float,
    unit_variance: float,
    df: float,
    n_labels: int,
    spans: tuple[float, float, float],
    most: float,
    *,
    level: float,
    price: float | None,
) -> LabelNeed:
    """Return the labels for one width: the pilot's answer, the lower and the upper one."""
    point, low, high = spans
    smaller, larger = (
        unit_variance * df / float(special.chdtri(df, tail)) for tail in ((1 - level) / 2, (1 + level) / 2)
    )

    def labels(variance: float, explained: float) -> float:
        return _labels(width, variance, df / n_labels, explained, most, level)

    def whole(count: float) -> int:
        return math.ceil(count - 1e-6)

    alone, joint = labels(unit_variance, 0.0), labels(unit_variance, point)
    n_alone, n_joint = whole(alone), whole(joint)
    return LabelNeed(
        width=width,
        people_alone=n_alone,
        people_alone_low=whole(labels(smaller, 0.0)),
        people_alone_high=whole(labels(larger, 0.0)),
        with_judge=n_joint,
        with_judge_low=whole(labels(smaller, high)),
        with_judge_high=whole(labels(larger, low)),
        share_saved=1 - joint / alone,
        share_saved_low=1 - labels(unit_variance, low) / alone,
        share_saved_high=1 - labels(unit_variance, high) / alone,
        needs_more_items=joint > most,
        money=None if price is None else n_joint * price,
        money_saved=None if price is None else (n_alone - n_joint) * price,
    )


def _verdict(needs: Sequence[LabelNeed]) -> str | None:
    """Return the verdict over all widths."""
    if not needs:
        return None
    if all(need.share_saved < USEFUL_SHARE for need in needs):
        return USELESS
    return USEFUL if all(need.share_saved_low >= USEFUL_SHARE for need in needs) else UNCLEAR
