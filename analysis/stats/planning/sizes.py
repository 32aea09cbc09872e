"""People to recruit, minutes and money of a planned study, without numpy."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist
from typing import Any

from analysis.stats.plain_records import PlainRecord
from analysis.stats.planning.closed_forms import components, plan_of_components, quick_plan, smallest_difference
from analysis.stats.planning.inputs import (
    FEWEST_PEOPLE,
    FEWEST_PROMPTS,
    HEADLINES,
    MOST_ANSWERS,
    MOST_PEOPLE,
    MOST_PROMPTS,
    StudySize,
    Target,
    Variation,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace(PlainRecord):
    """How long the work takes: words of a prompt and of an output, reading speed, seconds of an answer, minutes of everything else.

    `outputs_per_prompt` and `answers_per_prompt` are those of the design, None for what is usual in the protocol.
    Raises ValueError if a number is negative, or the reading speed is 0.
    """

    words_per_prompt: float = 40
    words_per_output: float = 150
    words_per_minute: float = 240
    seconds_per_answer: float = 15
    other_minutes: float = 2
    outputs_per_prompt: float | None = None
    answers_per_prompt: float | None = None

    def in_protocol(self, own: str, other: str) -> "Pace":
        """Return the pace of the same study in another protocol: its usual outputs and answers, in the proportion of the design.

        >>> Pace(outputs_per_prompt=6, answers_per_prompt=3).in_protocol("two_choice", "rating").answers_per_prompt
        6.0
        """
        if own == other or self.outputs_per_prompt is None or self.answers_per_prompt is None:
            return self
        mine, theirs = HEADLINES[own], HEADLINES[other]
        answers = mine.answers and self.answers_per_prompt / mine.answers * theirs.answers
        outputs = self.outputs_per_prompt / mine.outputs * theirs.outputs
        # Where one of the two asks at the end, nothing follows from the answers of the other.
        return replace(self, outputs_per_prompt=outputs, answers_per_prompt=answers or None)

    def __post_init__(self) -> None:
        _refuse_negative(self)
        if self.words_per_minute == 0:
            raise ValueError("words_per_minute: 0 is no reading speed. Give about 240.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices(PlainRecord):
    """What the work costs.

    Attributes
    ----------
    wage_per_hour : float
        Pay for an hour of the expected minutes, unless `reward` is given.
    reward : float or None
        Pay for one annotator.
    fee_rate : float
        The panel's fee with its tax, as a share of the pay.
    dropped_out_share : float
        Share of people who start and do not finish. They are not paid.
    excluded_share : float
        Share of people who finish and whose answers do not count. They are paid.
    screened_out_share, screen_out_pay : float
        Share of people who do not pass the screening, and what each of them gets.
    test_share : float
        Share of all items that are test questions.

    Raises
    ------
    ValueError
        If a number is negative, or a share is 1 or more.
    """

    wage_per_hour: float = 12
    reward: float | None = None
    fee_rate: float = 0.0
    dropped_out_share: float = 0.05
    excluded_share: float = 0.05
    screened_out_share: float = 0.0
    screen_out_pay: float = 0.0
    test_share: float = 0.0

    def __post_init__(self) -> None:
        _refuse_negative(self)
        for name in ("dropped_out_share", "excluded_share", "screened_out_share", "test_share"):
            if getattr(self, name) >= 1:
                raise ValueError(f"{name}: {getattr(self, name)!r} is not a share below 1, such as 0.05.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget(PlainRecord):
    """People, minutes and money.

    `finishing` people finish and are paid; `starting` people must start; `arriving` people come before the screening.
    `minutes_each` is the time of one annotator; `hours` is that of all who finish. `pay`, `screen_outs` and `fees` add up to
    `total`.
    """

    finishing: int
    starting: int
    arriving: int
    minutes_each: float
    hours: float
    reward: float
    pay: float
    screen_outs: float
    fees: float
    total: float


def minutes_each(size: StudySize, pace: Pace, *, test_share: float = 0.0) -> float:
    """Return the minutes of one annotator: reading, answers, and the time before and after.

    `test_share` is the share of all items that are test questions; they come on top of `prompts_each`.

    >>> round(minutes_each(StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20), Pace()), 1)
    35.3
    """
    outputs, answers, at_the_end = pace.outputs_per_prompt, pace.answers_per_prompt, 0.0
    if outputs is None:
        outputs = size.headline.outputs
    if answers is None:
        answers, at_the_end = size.headline.answers, size.headline.answers_at_the_end
    words = pace.words_per_prompt + outputs * pace.words_per_output
    each = words / pace.words_per_minute + answers * pace.seconds_per_answer / 60
    shown = shown_prompts(size.prompts_each, test_share)
    return shown * each + at_the_end * pace.seconds_per_answer / 60 + pace.other_minutes


def shown_prompts(prompts_each: int, test_share: float) -> int:
    """Return how many prompts a person sees, with those of test questions.

    >>> shown_prompts(20, 0.1)
    23
    """
    return math.ceil(round(prompts_each / (1 - test_share), 6))


def plan_budget(size: StudySize, pace: Pace, prices: Prices) -> Budget:
    """Return the people to recruit, and what they cost; `size.people` are those whose answers count.

    >>> size = StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20)
    >>> budget = plan_budget(size, Pace(), Prices(reward=2, fee_rate=0.3, excluded_share=0.1))
    >>> budget.finishing, budget.starting, budget.total
    (40, 43, 104.0)
    """
    finishing = _enough(size.people, prices.excluded_share)
    starting = _enough(finishing, prices.dropped_out_share)
    arriving = _enough(starting, prices.screened_out_share)
    minutes = minutes_each(size, pace, test_share=prices.test_share)
    reward = prices.wage_per_hour * minutes / 60 if prices.reward is None else prices.reward
    pay, screen_outs = finishing * reward, (arriving - starting) * prices.screen_out_pay
    fees = prices.fee_rate * (pay + screen_outs)
    return Budget(
        finishing=finishing,
        starting=starting,
        arriving=arriving,
        minutes_each=minutes,
        hours=finishing * minutes / 60,
        reward=reward,
        pay=pay,
        screen_outs=screen_outs,
        fees=fees,
        total=pay + screen_outs + fees,
    )


def people_who_count(finishing: int, excluded_share: float) -> int:
    """Return how many count if this many finish: the inverse of what `plan_budget` adds for exclusions.

    >>> people_who_count(40, 0.05), people_who_count(1, 0.05)
    (38, 1)
    """
    return max(1, math.floor(round(finishing * (1 - excluded_share), 9)))


def _enough(n: int, lost_share: float) -> int:
    """Return how many people are needed so that n remain."""
    return math.ceil(round(n / (1 - lost_share), 9))


def _refuse_negative(record: Any) -> None:
    for name, value in asdict(record).items():
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{name}: {value!r} is not a number of at least 0.")


# Other sizes of a planned study: those of its curves, and the smallest ones with enough power. Without numpy.


_NORMAL = NormalDist()
PEOPLE_FACTORS = (0.25, 0.5, 0.75, 1.5, 2.0, 3.0, 4.0)
DIFFERENCE_QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9, 0.97)
# Prompts that each person reads in the size with SPA among the other protocols.
SPA_PROMPTS_EACH = 4


def wrong_target(size: StudySize, target: Target, variation: Variation) -> Target:
    """Return the target under which reaching the goal is a wrong decision: no difference, or exactly the margin.

    For a goal by a margin, the difference of the target lies at the limit of the claim.

    >>> size = StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20)
    >>> round(wrong_target(size, Target(goal="equivalence", margin=0.05), Variation()).difference, 3)
    0.55
    """
    if target.goal == "difference":
        return replace(target, difference=target.baseline)
    limit = target.limit(size.null)
    low, high = 1e-6, 1 - 1e-6
    for _ in range(40):
        middle = (low + high) / 2
        if components(size, replace(target, difference=middle), variation).mean < limit:
            low = middle
        else:
            high = middle
    return replace(target, difference=(low + high) / 2)


def most_power_by_people(size: StudySize, target: Target, variation: Variation) -> float:
    """Return the approximate power with the same prompts and any number of people.

    Examples
    --------
    >>> size = StudySize(protocol="two_choice", people=40, prompts=10, prompts_each=10)
    >>> round(most_power_by_people(size, Target(), Variation()), 2)
    0.24
    """
    return quick_plan(_with_people(size, MOST_PEOPLE), target, variation).power


def needed_people(size: StudySize, target: Target, variation: Variation) -> StudySize | None:
    """Return the smallest size with the wanted power by other people alone, or None if no number of people has it.

    >>> size = StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20)
    >>> needed_people(size, Target(), Variation()).people
    44
    """
    parts = components(size, target, variation)
    return _smallest(
        lambda n: _with_people(size, n),
        max(6, math.ceil(size.prompts / size.prompts_each)),
        MOST_PEOPLE,
        lambda own: plan_of_components(parts, own, target).power >= target.wanted,
    )


def needed_prompts(size: StudySize, target: Target, variation: Variation) -> StudySize | None:
    """Return the smallest size with the wanted power by other prompts alone, or None if no number of prompts has it.

    Each person answers about as many as before, so more prompts mean fewer people for each.

    >>> size = StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20)
    >>> needed_prompts(size, Target(), Variation()).prompts
    68
    """
    if size.kind == "chance":
        return None
    parts = components(size, target, variation)
    return _smallest(
        lambda n: replace(size, prompts=n),
        max(FEWEST_PROMPTS, size.prompts_each),
        size.people * size.prompts_each,
        lambda own: plan_of_components(parts, own, target).power >= target.wanted,
    )


def needed_both(size: StudySize, target: Target, variation: Variation) -> StudySize | None:
    """Return about the smallest size with the wanted power by more people and more prompts together, in the same proportion.

    None if the size has the power already, or if no size that can be planned has it.

    >>> size = StudySize(protocol="two_choice", people=12, prompts=20, prompts_each=10)
    >>> found = needed_both(size, Target(), Variation())
    >>> found.people, found.prompts
    (46, 78)
    """
    parts = components(size, target, variation)

    def sized(factor: float) -> StudySize:
        people = max(FEWEST_PEOPLE, round(size.people * factor))
        prompts = max(FEWEST_PROMPTS, round(size.prompts * factor))
        return replace(size, people=people, prompts=min(prompts, people * size.prompts_each))

    def is_enough(factor: float) -> bool:
        return plan_of_components(parts, sized(factor), target).power >= target.wanted

    most = min(MOST_PEOPLE / size.people, MOST_PROMPTS / size.prompts, MOST_ANSWERS / size.answers)
    low, high = 1.0, 1.0
    while not is_enough(high):
        low, high = high, 2 * high
        if high > most:
            return None
    for _ in range(8 if high > 1 else 0):
        middle = (low + high) / 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return sized(high) if high > 1 else None


def _smallest(
    sized: Callable[[int], StudySize], low: int, high: int, is_enough: Callable[[StudySize], bool]
) -> StudySize | None:
    """Return the smallest size that is enough, by bisection."""
    if low > high or not is_enough(sized(high)):
        return None
    while low < high:
        middle = (low + high) // 2
        if is_enough(sized(middle)):
            high = middle
        else:
            low = middle + 1
    return sized(low)


def _with_people(size: StudySize, people: int) -> StudySize:
    """Return the size with other people, and as many prompts each as fit."""
    most_each = max(1, 5_000_000 // people)
    return replace(size, people=people, prompts_each=min(size.prompts_each, most_each))


def other_differences(size: StudySize, target: Target, variation: Variation) -> list[float]:
    """Return differences around the smallest one that is found, on the side of the target.

    >>> size = StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20)
    >>> [round(one, 2) for one in other_differences(size, Target(), Variation())]
    [0.53, 0.55, 0.57, 0.59, 0.62, 0.64]
    """
    found = smallest_difference(size, replace(target, wanted=target.wanted), variation)
    middle = max(0.9, (1 + target.baseline) / 2) if found is None else found
    none = target.baseline
    spread = (middle - none) / (_NORMAL.inv_cdf(1 - target.level / 2) + _NORMAL.inv_cdf(target.wanted))
    critical = none + spread * _NORMAL.inv_cdf(1 - target.level / 2)
    sign = 1 if target.difference >= none else -1
    wanted = [critical + spread * _NORMAL.inv_cdf(q) for q in DIFFERENCE_QUANTILES]
    return [round(none + sign * (d - none), 4) for d in wanted if none < d < min(0.99, 0.99 if sign > 0 else 2 * none)]


def other_people(size: StudySize) -> list[StudySize]:
    """Return other numbers of people with the same prompts, at least six and as many as see all prompts.

    >>> [one.people for one in other_people(StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20))]
    [9, 18, 27, 54, 72, 108, 144]
    """
    fewest = math.ceil(size.prompts / size.prompts_each)
    numbers = {max(6, fewest, round(size.people * factor)) for factor in PEOPLE_FACTORS} - {size.people}
    return [replace(size, people=n) for n in sorted(numbers) if n * size.prompts_each <= 1_000_000]


def other_prompts(size: StudySize) -> list[StudySize]:
    """Return other numbers of prompts with the same answers, from everybody sees the same to nobody does.

    >>> [one.prompts for one in other_prompts(StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20))]
    [20, 36, 66, 120, 218, 396, 720]
    """
    if size.kind == "chance":
        return []
    fewest, most = size.prompts_each, size.people * size.prompts_each
    numbers = {round(fewest * (most / fewest) ** (k / 6)) for k in range(7)} - {size.prompts}
    return [replace(size, prompts=n) for n in sorted(numbers) if fewest <= n <= most]


def other_protocols(size: StudySize) -> list[StudySize]:
    """Return sizes with the same people in other protocols that compare pairs; in SPA each person reads fewer prompts.

    >>> size = StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20)
    >>> [(one.protocol, one.prompts_each) for one in other_protocols(size)]
    [('rating', 20), ('ranking', 20), ('relative', 20), ('spa', 4)]
    """
    if size.headline.outputs == 1:
        return []
    sizes = []
    for protocol, headline in HEADLINES.items():
        # Scores need a codebook of errors, which no other protocol has.
        if protocol == size.protocol or headline.outputs == 1 or headline.kind == "score":
            continue
        each = min(SPA_PROMPTS_EACH, size.prompts_each) if headline.kind == "chance" else size.prompts_each
        sizes.append(replace(size, protocol=protocol, prompts_each=each, prompts=min(size.prompts, size.people * each)))
    return sizes
