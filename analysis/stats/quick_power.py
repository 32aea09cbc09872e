"""Power, interval width and smallest finding of a comparison in closed form, before the first answer.

The formulas are approximate and take a few milliseconds without numpy, so a page can show them while somebody moves a
slider. `planning.simulate_part` simulates the same design with the analysis of the report; only its numbers go on record. The model is that of `plan_inputs`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from analysis.stats.plain_records import PlainRecord
from analysis.stats.plan_inputs import EQUIVALENCE, FEWEST_PEOPLE, StudySize, Target, Variation
from analysis.stats.quick_bets import bets_half_width, bets_power, one_sided_power
from analysis.stats.quick_conditions import components_of_difference, variances_of_difference
from analysis.stats.quick_moments import NODES, WEIGHTS, answer_moments, normal_mean
from analysis.stats.quick_score import score_limits, se_factor
from analysis.stats.quick_t import noncentral_t_above, t_quantile

# With fewer people or prompts than this the formula promised up to .15 too much in tests/calibration/plans.py.
ROUGH_BELOW = 20
# Standard deviation of an answer about the same chance in the other order (SPA), as a share.
ORDER_SD = 0.1
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True, kw_only=True)
class Components(PlainRecord):
    """The mean of the headline and the variances of one answer on its scale: over people, over prompts, and the rest."""

    mean: float
    people: float
    prompts: float
    rest: float

    @property
    def total(self) -> float:
        """Return the variance of one answer."""
        return self.people + self.prompts + self.rest


@dataclass(frozen=True, slots=True, kw_only=True)
class QuickPlan(PlainRecord):
    """The approximate plan of a comparison.

    `power` of reaching the goal; `half_width` of the expected interval on the scale of the headline; `value` is the
    expected headline; `population` is what the claim can be about. `is_rough`: with so few people or prompts answers are
    often skewed, and the report then replaces the t test by bets, which find less than this formula says.
    """

    power: float
    half_width: float
    value: float
    se: float
    df: float
    population: str
    is_rough: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Assurance(PlainRecord):
    """The mean `power` and `half_width` over draws of the variation; 80 % of the draws have a power from `low` to `high`."""

    power: float
    low: float
    high: float
    half_width: float


def shift_of(difference: float, variation: Variation) -> float:
    """Return the mean perceived difference at which x is preferred with this probability.

    >>> round(shift_of(0.6, Variation(sd_people=0, sd_prompts=0)), 4)
    0.2533
    """
    return _NORMAL.inv_cdf(difference) * variation.sd_total


def components(size: StudySize, target: Target, variation: Variation) -> Components:
    """Return the expected headline and the variances of one answer, by numerical integration.

    Parameters
    ----------
    size, target, variation : StudySize, Target, Variation
        The design, what it is to find, and how much people and prompts vary.

    Returns
    -------
    Components
        The mean and the variances. In SPA an answer is that of one person about all prompts.

    Examples
    --------
    >>> found = components(StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20), Target(), Variation())
    >>> round(found.mean, 3), round(found.total, 3)
    (0.6, 0.24)
    """
    if size.is_between_conditions:
        return _between_conditions(size, target, variation)
    shift = shift_of(target.difference, variation)
    if size.kind == "chance":
        return _stated_chances(size, shift, variation)
    first, second = answer_moments(size.protocol, size.points, variation)
    people, prompts = variation.sd_people, variation.sd_prompts
    of_people = [first(shift + people * node, prompts) for node in NODES]
    of_prompts = [first(shift + prompts * node, people) for node in NODES]
    mean = sum(weight * value for weight, value in zip(WEIGHTS, of_people, strict=True))
    both = math.hypot(people, prompts)
    total = second(shift, both) - mean**2
    by_people, by_prompts = _variance(of_people, mean), _variance(of_prompts, mean)
    return Components(mean=mean, people=by_people, prompts=by_prompts, rest=max(1e-12, total - by_people - by_prompts))


def quick_plan(size: StudySize, target: Target, variation: Variation) -> QuickPlan:
    """Return the approximate power and interval of a design.

    Parameters
    ----------
    size, target, variation : StudySize, Target, Variation
        The design, what it is to find, and how much people and prompts vary.

    Returns
    -------
    QuickPlan
        The plan. Power is 0 if the report makes no test: with fewer than six people.

    Notes
    -----
    The mean has the variance v_people / people + v_prompts / prompts + v_rest / answers, and the degrees of freedom of
    Satterthwaite's rule for the two jackknife variances (`clusters.two_way_jackknife`). For exactly these prompts the
    variance of prompts is left out, with people - 1 degrees of freedom. A value is tested with the variance under it if that is larger, as by
    `score_curve.ScoreCurve`. The noncentral t distribution is that of
    Abramowitz and Stegun 1964, 26.7.10.

    Examples
    --------
    >>> size = StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20)
    >>> plan = quick_plan(size, Target(), Variation())
    >>> round(plan.power, 2), round(plan.half_width, 3)
    (0.77, 0.072)
    """
    return plan_of_components(components(size, target, variation), size, target)


def plan_of_components(parts: Components, size: StudySize, target: Target) -> QuickPlan:
    """Return the approximate plan for known variances of one answer; see `quick_plan`.

    >>> size = StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20)
    >>> parts = Components(mean=0.6, people=0.01, prompts=0.04, rest=0.19)
    >>> round(plan_of_components(parts, size, Target()).half_width, 3)
    0.07
    """
    people, prompts, answers = size.people, size.prompts, size.answers
    if target.is_sequential:
        return _plan_with_bets(parts, size, target)
    is_about_prompts = size.is_about_prompts(target.population)
    too_wide = 1.0
    if size.is_between_conditions:
        variance, reported, df = variances_of_difference(parts, size)
        too_wide = math.sqrt(reported / variance)
    elif not is_about_prompts or size.kind == "chance":
        variance = variance_of_person(parts, size) / people
        df = max(1.0, people - 1.0)
    else:
        variance = parts.people / people + parts.prompts / prompts + parts.rest / answers
        over_people = parts.people / people + (parts.rest + parts.prompts * (1 - size.prompts_each / prompts)) / answers
        per_prompt = min(1.0, size.labels_per_prompt / people)
        over_prompts = parts.prompts / prompts + (parts.rest + parts.people * (1 - per_prompt)) / answers
        df = max(
            1.0,
            variance**2 / (over_people**2 / max(1.0, people - 1.0) + over_prompts**2 / max(1.0, prompts - 1.0)),
        )
    se = math.sqrt(variance)
    half_width = _half_width(parts.mean, t_quantile(1 - target.level / 2, df) * se * too_wide, df, size)
    compared = 2 * size.people_each if size.is_between_conditions else people
    power = 0.0 if compared < FEWEST_PEOPLE else _power(parts.mean, se, df, size, target, too_wide)
    return QuickPlan(
        power=power,
        half_width=half_width,
        value=parts.mean,
        se=se,
        df=df,
        population="people_and_prompts" if is_about_prompts else "people",
        is_rough=size.bounds is not None
        and not size.is_between_conditions
        and (people < ROUGH_BELOW or (is_about_prompts and prompts < ROUGH_BELOW)),
    )


def variance_of_person(parts: Components, size: StudySize) -> float:
    """Return the variance of people's means about exactly these prompts. People who see different prompts differ more.

    >>> size = StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20)
    >>> round(variance_of_person(Components(mean=0.6, people=0.01, prompts=0.03, rest=0.2), size), 4)
    0.021
    """
    answers_each = 1 if size.kind == "chance" else size.prompts_each
    return parts.people + (parts.rest + parts.prompts * (1 - size.prompts_each / size.prompts)) / answers_each


def _plan_with_bets(parts: Components, size: StudySize, target: Target) -> QuickPlan:
    """Return the plan with the anytime-valid rule, which bets on people's means after every person."""
    mean, n, level = parts.mean, size.people, target.level
    variance = variance_of_person(parts, size)
    if target.goal == EQUIVALENCE:
        margin = target.margin or 0.0
        ends = ((size.null - margin, 1), (size.null + margin, -1))
        power = max(0.0, sum(one_sided_power(mean, variance, n, end, level, sign) for end, sign in ends) - 1)
    else:
        power = bets_power(mean, variance, n, size.null, level)
    return QuickPlan(
        power=power,
        half_width=bets_half_width(mean, variance, n, level),
        value=mean,
        se=math.sqrt(variance / n),
        df=max(1.0, n - 1.0),
        population="people",
        is_rough=True,
    )


def _power(mean: float, se: float, df: float, size: StudySize, target: Target, too_wide: float) -> float:
    """Return the probability of the goal by the noncentral t distribution.

    `too_wide`: the standard error that the report finds, as a multiple of the true one.
    """
    quantile = t_quantile(1 - target.level / 2, df)

    def critical(value: float, quantile: float) -> float:
        return too_wide * quantile * _wider_at(value, mean, df, size)

    if target.goal == "difference":
        distance, reach = (mean - size.null) / se, critical(size.null, quantile)
        return noncentral_t_above(reach, distance, df) + noncentral_t_above(reach, -distance, df)
    margin = target.margin or 0.0
    if target.goal == EQUIVALENCE:
        low, high = size.null - margin, size.null + margin
        one_sided = t_quantile(1 - target.level, df)
        above = noncentral_t_above(critical(low, one_sided), (mean - low) / se, df)
        below = noncentral_t_above(critical(high, one_sided), (high - mean) / se, df)
        return max(0.0, above + below - 1)
    limit = target.limit(size.null)
    return noncentral_t_above(critical(limit, quantile), (mean - limit) / se, df)


def _wider_at(value: float, mean: float, df: float, size: StudySize) -> float:
    """Return the standard error that tests `value` as a multiple of the one at the mean; see `score_curve.score_se`."""
    if size.bounds is None or size.is_between_conditions:
        return 1.0
    low, high = size.bounds
    is_within = low < value < high and low < mean < high
    return max(1.0, se_factor(value, mean, df, size.bounds)) if is_within else 1.0


def _half_width(mean: float, reach: float, df: float, size: StudySize) -> float:
    """Return half the width of the interval with this reach at the mean, as `score_curve.ScoreCurve` has it."""
    if size.bounds is None or size.is_between_conditions or not size.bounds[0] < mean < size.bounds[1]:
        return reach
    low, high = score_limits(mean, reach, df, size.bounds)
    return (max(mean + reach, high) - min(mean - reach, low)) / 2


def quick_assurance(size: StudySize, target: Target, draws: Sequence[Variation]) -> Assurance:
    """Return the approximate power, averaged over what a pilot leaves open.

    `draws` are what the variation may be, see `planning.estimate_pilot`; the result is the mean power, and the range of
    it over the middle 80 % of the draws. Assurance is the power averaged over the uncertainty of what it depends on
    (O'Hagan, Stevens and Campbell 2005). The difference of the target is not averaged: it is the smallest one that
    matters, whatever a pilot observed.

    >>> size = StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20)
    >>> found = quick_assurance(size, Target(), [Variation(sd_prompts=sd) for sd in (0.3, 0.7, 1.4)])
    >>> round(found.power, 2), round(found.low, 2), round(found.high, 2)
    (0.75, 0.57, 0.92)
    """
    if not draws:
        raise ValueError("draws: no draw was given. Estimate the variation from a pilot first.")
    plans = [quick_plan(size, target, variation) for variation in draws]
    powers = sorted(plan.power for plan in plans)
    last = len(powers) - 1
    return Assurance(
        power=sum(powers) / len(powers),
        low=powers[round(0.1 * last)],
        high=powers[round(0.9 * last)],
        half_width=sum(plan.half_width for plan in plans) / len(plans),
    )


def smallest_difference(size: StudySize, target: Target, variation: Variation) -> float | None:
    """Return the smallest probability above the baseline that the design finds with the wanted power, or None if no difference is large enough.

    Examples
    --------
    >>> size = StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20)
    >>> round(smallest_difference(size, Target(), Variation()), 3)
    0.603
    """
    low, high = target.baseline, 0.99
    if low >= high or quick_plan(size, replace(target, difference=high), variation).power < target.wanted:
        return None
    for _ in range(12):
        middle = (low + high) / 2
        if quick_plan(size, replace(target, difference=middle), variation).power >= target.wanted:
            high = middle
        else:
            low = middle
    return high


def _variance(values: list[float], mean: float) -> float:
    return max(0.0, sum(weight * (value - mean) ** 2 for value, weight in zip(values, WEIGHTS, strict=True)))


def _between_conditions(size: StudySize, target: Target, variation: Variation) -> Components:
    alone = replace(size, protocol="humanlike", conditions=1)
    x, y = (
        components(alone, replace(target, difference=share, baseline=0.5), variation)
        for share in (target.difference, target.baseline)
    )
    return components_of_difference(x, y, size.kind)


def _stated_chances(size: StudySize, shift: float, variation: Variation) -> Components:
    """Return the components of a stated chance: what share of prompts a person finds x better for, with noise of both orders.

    A person extrapolates from the m prompts that they read to prompts like these.
    """
    m = size.prompts_each
    sd = math.sqrt(variation.sd_people**2 + (variation.sd_prompts**2 + 1) / m)
    spread = math.hypot(1.0, variation.sd_prompts)
    mean = normal_mean(lambda d: _NORMAL.cdf(d / spread), shift, sd)
    square = normal_mean(lambda d: _NORMAL.cdf(d / spread) ** 2, shift, sd)
    return Components(mean=mean, people=square - mean**2 + ORDER_SD**2 / 2, prompts=0.0, rest=0.0)
