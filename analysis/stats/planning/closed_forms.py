"""Means of an answer and of its square, for a perceived difference that is normal. They are approximate and need no numpy."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist

from analysis.stats.plain_records import PlainRecord
from analysis.stats.planning.inputs import (
    EQUIVALENCE,
    FEWEST_PEOPLE,
    FEWEST_PROMPTS,
    HEADLINES,
    StudySize,
    Target,
    Variation,
)
from analysis.stats.scalar_forms import noncentral_t_above, score_limits, se_factor, t_quantile

# Points of a mark's score for one unit of the perceived difference.
MARK_POINTS = 10.0
_NORMAL = NormalDist()
# Of a normal variable: from its mean and standard deviation.
Moment = Callable[[float, float], float]
# Nodes of a standard normal variable, and their weights.
NODES = tuple(-5 + 0.25 * k for k in range(41))
_RAW = tuple(math.exp(-node * node / 2) for node in NODES)
WEIGHTS = tuple(weight / sum(_RAW) for weight in _RAW)


def scale_cuts(points: int) -> tuple[float, ...]:
    """Return where the perceived quality is cut into points, one unit apart and symmetric.

    >>> scale_cuts(5)
    (-1.5, -0.5, 0.5, 1.5)
    """
    return tuple(k - points / 2 + 1 for k in range(points - 1))


def answer_moments(protocol: str, points: int, variation: Variation) -> tuple[Moment, Moment]:
    """Return the means of an answer and of its square, as functions of the mean perceived difference and its standard deviation.

    The standard deviation is that over people, over prompts or over both; the noise of an answer comes on top of it.

    >>> first, second = answer_moments("relative", 5, Variation())
    >>> round(first(1.0, 0.0), 2), round(second(0.0, 0.0), 2), round(first(1.0, 2.0), 2)
    (0.93, 1.02, 0.62)
    """
    sds = (variation.sd_quality_people, variation.sd_quality_prompts, variation.sd_quality)
    return _moments(HEADLINES[protocol].kind, points, math.hypot(*sds))


def normal_mean(function: Callable[[float], float], mean: float, sd: float) -> float:
    """Return the mean of a function of a normal variable.

    >>> round(normal_mean(lambda value: value * value, 1.0, 2.0), 2)
    5.0
    """
    if sd == 0:
        return function(mean)
    return sum(weight * function(mean + sd * node) for node, weight in zip(NODES, WEIGHTS, strict=True))


@lru_cache(maxsize=64)
def _moments(kind: str, points: int, sd_quality: float) -> tuple[Moment, Moment]:
    """Return E[answer] and E[answer squared]. A normal probability of a normal variable is one of a wider distribution."""
    if kind == "preference":

        def preferred(s: float, sd: float) -> float:
            return _NORMAL.cdf(s / math.hypot(1, sd))

        return preferred, preferred
    if kind == "score":
        return lambda s, sd: MARK_POINTS * s, lambda s, sd: MARK_POINTS**2 * (s * s + sd * sd + 1) + 25 / 12
    cuts = scale_cuts(points)
    if kind == "point":
        lowest = -(points - 1) / 2

        def first(s: float, sd: float) -> float:
            wide = math.hypot(1, sd)
            return lowest + sum(_NORMAL.cdf((s - cut) / wide) for cut in cuts)

        def second(s: float, sd: float) -> float:
            wide = math.hypot(1, sd)
            above = [1.0, *(_NORMAL.cdf((s - cut) / wide) for cut in cuts), 0.0]
            return sum((lowest + k) ** 2 * (above[k] - above[k + 1]) for k in range(points))

        return first, second
    return _rating_moments(cuts, sd_quality)


def _rating_moments(cuts: tuple[float, ...], sd_quality: float) -> tuple[Moment, Moment]:
    """Return the moments of {1, .5, 0} for "x rated above y", from a table of 321 values."""
    step, end = 0.05, 8.0

    def rated_apart(d: float) -> float:
        """Return the probability that a cut lies between the two qualities q - d / 2 and q + d / 2."""
        total, before = 0.0, -math.inf
        for cut in cuts:
            low, high = max(before, cut - abs(d) / 2), cut + abs(d) / 2
            total += _NORMAL.cdf(high / sd_quality) - _NORMAL.cdf(low / sd_quality) if sd_quality else low < 0 <= high
            before = high
        return total

    grid = [k * step for k in range(-int(2 * end / step), int(2 * end / step) + 1)]
    apart = [rated_apart(d) for d in grid]
    first_of_d = [0.5 + math.copysign(p / 2, d) if d else 0.5 for p, d in zip(apart, grid, strict=True)]
    # 1 for above and .25 for a tie.
    second_of_d = [(f - (1 - p) / 2) + (1 - p) / 4 for f, p in zip(first_of_d, apart, strict=True)]

    def table(values: list[float]) -> Moment:
        def at_d(d: float) -> float:
            place = min(max((d + 2 * end) / step, 0.0), len(values) - 1.001)
            k = int(place)
            return values[k] + (place - k) * (values[k + 1] - values[k])

        smooth = [normal_mean(at_d, -end + k * step, 1.0) for k in range(int(2 * end / step) + 1)]

        def at_s(s: float) -> float:
            place = min(max((s + end) / step, 0.0), len(smooth) - 1.001)
            k = int(place)
            return smooth[k] + (place - k) * (smooth[k + 1] - smooth[k])

        return lambda s, sd: normal_mean(at_s, s, sd)

    return table(first_of_d), table(second_of_d)


# Approximate power and interval of bets that are checked after every person, without numpy.
#
# The logarithm of the wealth of `betting.log_wealth` is a random walk. Its mean and variance follow from the stakes,
# and the chance that it ever reaches the threshold from the first passage of a Brownian motion with this drift.


# The cap of `betting.log_wealth`, which loads numpy.
STAKE_CAP = 0.5
# Each of the first people has a node of the sum; later ones share nodes that are this factor apart.
SINGLE, STEP = 30, 1.15


def bets_power(mean: float, variance: float, people: int, null: float, level: float) -> float:
    """Return the chance that bets refute the null after some person.

    `mean` and `variance` are those of one person's mean, in 0..1, `people` is the largest number of people, and `level`
    is the significance level of all checks together.

    >>> [round(bets_power(0.67, 0.03, n, 0.5, 0.05), 1) for n in (12, 24, 48)]
    [0.0, 0.4, 1.0]
    """
    return min(1.0, sum(one_sided_power(mean, variance, people, null, level, sign) for sign in (1, -1)))


def one_sided_power(mean: float, variance: float, people: int, null: float, level: float, sign: int) -> float:
    """Return the chance that bets on larger means (`sign` 1) or on smaller ones (-1) refute the null.

    >>> round(one_sided_power(0.8, 0.1, 24, 0.5, 0.05, 1), 2) > round(one_sided_power(0.6, 0.1, 24, 0.5, 0.05, 1), 2)
    True
    """
    growth, spread = _log_wealth(sign * (mean - null), variance, people, null if sign > 0 else 1 - null, level)
    needed, sd = _threshold(level), math.sqrt(max(spread, 1e-12))
    reflected = 2 * growth * needed / max(spread, 1e-12)
    # Where the growth is large against its spread, the second term is a product of a huge and a tiny number, and is 0.
    late = math.exp(reflected) * _NORMAL.cdf((-needed - growth) / sd) if reflected < 100 else 0.0
    return min(1.0, _NORMAL.cdf((growth - needed) / sd) + late)


def bets_half_width(mean: float, variance: float, people: int, level: float) -> float:
    """Return half the expected width of the interval after all people: values that the bets do not refute.

    >>> round(bets_half_width(0.6, 0.03, 36, 0.05), 1), round(bets_half_width(0.6, 0.03, 3600, 0.05), 2)
    (0.1, 0.01)
    """
    return (_reach(mean, variance, people, level) + _reach(1 - mean, variance, people, level)) / 2


def _reach(mean: float, variance: float, people: int, level: float) -> float:
    """Return how far the interval reaches below the mean."""
    low, high = 0.0, mean
    for _ in range(14):
        middle = (low + high) / 2
        is_refuted = _log_wealth(middle, variance, people, mean - middle, level)[0] >= _threshold(level)
        low, high = (low, middle) if is_refuted else (middle, high)
    return high


def _threshold(level: float) -> float:
    """Return the needed logarithm of one of the two bets, each of which has half of the stake."""
    return math.log(2 / level)


def _log_wealth(distance: float, variance: float, people: int, null: float, level: float) -> tuple[float, float]:
    """Return the mean and the variance of the log wealth after all people, of bets on means above the null."""
    growth = spread = 0.0
    before = 0
    while before < people:
        after = before + 1 if before < SINGLE else min(people, math.ceil(before * STEP))
        t = (before + 1 + after) / 2
        running = (0.25 + (t - 1) * variance) / t
        stake = min(STAKE_CAP / max(null, 1e-9), math.sqrt(2 * math.log(2 / level) / (running * t * math.log(t + 1))))
        gain, noise = max(1 + stake * distance, 1e-9), stake**2 * variance
        growth += (after - before) * (math.log(gain) - noise / (2 * gain**2))
        spread += (after - before) * noise / gain**2
        before = after
    return growth, spread


# A few draws in the place of many, so that a page can average over what a pilot leaves open. Nothing here loads
# numpy.


def spread_draws(size: StudySize, draws: Sequence[Variation], most: int) -> tuple[Variation, ...]:
    """Return at most `most` draws that represent all of them, evenly spaced in the order of the power that they leave.

    They are the middle draw of each of `most` equal parts, or all draws if there are no more. The order is that of the
    standard error of the perceived difference, relative to its standard deviation. Power falls with it, so the mean
    over the middles is nearly the mean over all draws (a systematic sample).

    >>> size = StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20)
    >>> drawn = [Variation(sd_prompts=sd / 10) for sd in (9, 1, 5, 3, 7, 2)]
    >>> [one.sd_prompts for one in spread_draws(size, drawn, 3)]
    [0.2, 0.5, 0.9]
    """
    if len(draws) <= most:
        return tuple(draws)

    def relative_error(one: Variation) -> float:
        over_people, over_prompts = one.sd_people**2 / size.people, one.sd_prompts**2 / size.prompts
        return math.sqrt(over_people + over_prompts + 1 / size.answers) / one.sd_total

    ordered = sorted(draws, key=relative_error)
    return tuple(ordered[int((k + 0.5) * len(ordered) / most)] for k in range(most))


# Power, interval width and smallest finding of a comparison in closed form, before the first answer.
#
# The formulas are approximate and take a few milliseconds without numpy, so a page can show them while somebody moves
# a slider. `study_plans.simulate_part` simulates the same design with the analysis of the report; only its numbers go on
# record. The model is that of `plan_inputs`.


# With fewer people or prompts than this the formula promised up to .15 too much in tools/proofs/calibration/plans.py.
ROUGH_BELOW = 20
# Standard deviation of an answer about the same chance in the other order (SPA), as a share.
ORDER_SD = 0.1


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

    In SPA an answer is that of one person about all prompts.

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
    Satterthwaite's rule for the two jackknife variances (`cluster_variances.two_way_jackknife`). For exactly these prompts the
    variance of prompts is left out, with people - 1 degrees of freedom. A value is tested with the variance under it if that is larger, as by
    `confidence.ScoreCurve`. The noncentral t distribution is that of
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
    """Return the standard error that tests `value` as a multiple of the one at the mean; see `confidence.score_se`."""
    if size.bounds is None or size.is_between_conditions:
        return 1.0
    low, high = size.bounds
    is_within = low < value < high and low < mean < high
    return max(1.0, se_factor(value, mean, df, size.bounds)) if is_within else 1.0


def _half_width(mean: float, reach: float, df: float, size: StudySize) -> float:
    """Return half the width of the interval with this reach at the mean, as `confidence.ScoreCurve` has it."""
    if size.bounds is None or size.is_between_conditions or not size.bounds[0] < mean < size.bounds[1]:
        return reach
    low, high = score_limits(mean, reach, df, size.bounds)
    return (max(mean + reach, high) - min(mean - reach, low)) / 2


def quick_assurance(size: StudySize, target: Target, draws: Sequence[Variation]) -> Assurance:
    """Return the approximate power, averaged over what a pilot leaves open.

    `draws` are what the variation may be, see `pilot_estimates.estimate_pilot`; the result is the mean power, and the range of
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
    alone = replace(size, protocol=size.headline.within, conditions=1)
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


# The difference between people in two conditions, in closed form and without numpy; see `quick_power`.


def components_of_difference(x: "Components", y: "Components", kind: str) -> "Components":
    """Return the expected difference of two conditions, and the variances of one answer, averaged over both.

    `x` and `y` have the share of right answers under each condition and the variances of one answer; the result is on
    the scale of the difference, which is that of the shares for `kind` "accuracy" and that of d' for "sensitivity".
    With as many human as machine texts and no leaning, d' is 2 Phi^-1(share of right answers), and its variances follow
    by the derivative.

    >>> from analysis.stats.planning.closed_forms import Components
    >>> x, y = (Components(mean=p, people=0.01, prompts=0.03, rest=0.2) for p in (0.6, 0.5))
    >>> round(components_of_difference(x, y, "accuracy").mean, 3), round(components_of_difference(x, y, "sensitivity").mean, 3)
    (0.1, 0.507)
    """
    slopes, values = [1.0, 1.0], [x.mean, y.mean]
    if kind == "sensitivity":
        places = [_NORMAL.inv_cdf(share) for share in values]
        slopes, values = [2 / _NORMAL.pdf(z) for z in places], [2 * z for z in places]

    def mean_of(name: str) -> float:
        return float(sum(slope**2 * getattr(one, name) for slope, one in zip(slopes, (x, y), strict=True)) / 2)

    return replace(
        x, mean=values[0] - values[1], people=mean_of("people"), prompts=mean_of("prompts"), rest=mean_of("rest")
    )


def variances_of_difference(parts: "Components", size: StudySize) -> tuple[float, float, float]:
    """Return the variance of the difference of two conditions, that which the report finds, and its degrees of freedom.

    `parts` are from `components_of_difference`; the second value is the expected value of the reported variance, to
    which the degrees of freedom belong. Both conditions show the same prompts, so the differences between prompts
    cancel, except for prompts that one condition shows once more than others. The report (`cell_contrasts.cell_contrast`) takes
    the largest of the variances over people, over prompts, and of both combined; that over people still has the
    differences between the prompts that each person saw.

    >>> from analysis.stats.planning.closed_forms import Components
    >>> size = StudySize(protocol="accuracy_between_conditions", people=80, prompts=40, prompts_each=10, conditions=2)
    >>> true, reported, df = variances_of_difference(Components(mean=0.1, people=0.01, prompts=0.03, rest=0.2), size)
    >>> round(true, 5), round(reported, 5), df
    (0.0015, 0.00161, 79.0)
    """
    people, prompts, each = size.people_each, size.prompts, size.prompts_each
    answers = people * each
    uneven = (answers / prompts) % 1
    of_prompts = 2 * parts.prompts * prompts * uneven * (1 - uneven) / answers**2
    true = 2 * (parts.people / people + parts.rest / answers) + of_prompts
    over_people = 2 * (parts.people / people + (parts.rest + parts.prompts * (1 - each / prompts)) / answers)
    over_prompts = 2 * (parts.rest + parts.people * (1 - 1 / people)) / answers + of_prompts
    df_people, df_prompts = max(1.0, 2 * people - 1.0), max(1.0, prompts - 1.0)
    if prompts < FEWEST_PROMPTS or over_people >= max(true, over_prompts):
        return true, over_people, df_people
    if over_prompts >= true:
        return true, over_prompts, df_prompts
    return true, true, max(1.0, true**2 / (over_people**2 / df_people + over_prompts**2 / df_prompts))
