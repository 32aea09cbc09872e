"""People to recruit, minutes and money of a planned study, without numpy."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from analysis.stats.plain_records import PlainRecord
from analysis.stats.plan_inputs import OF_SINGLE_OUTPUTS, StudySize

# What a pace that names no design assumes of a protocol: outputs that a page shows about one prompt, and answers that it asks for.
# In SPA the answers come at the end: both orders.
_OUTPUTS = dict.fromkeys(OF_SINGLE_OUTPUTS, 1)
_ANSWERS = {"rating": 2, "spa": 0, "marks": 4}
_ANSWERS_AT_THE_END = {"spa": 2}


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
        answers = _ANSWERS.get(own, 1) and self.answers_per_prompt / _ANSWERS.get(own, 1) * _ANSWERS.get(other, 1)
        outputs = self.outputs_per_prompt / _OUTPUTS.get(own, 2) * _OUTPUTS.get(other, 2)
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

    Parameters
    ----------
    size : StudySize
        The size of the study.
    pace : Pace
        How long the work takes.
    test_share : float, default 0.0
        Share of all items that are test questions; they come on top of `prompts_each`.

    Returns
    -------
    float
        The minutes.

    Examples
    --------
    >>> round(minutes_each(StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20), Pace()), 1)
    35.3
    """
    outputs, answers, at_the_end = pace.outputs_per_prompt, pace.answers_per_prompt, 0.0
    if outputs is None:
        outputs = _OUTPUTS.get(size.protocol, 2)
    if answers is None:
        answers, at_the_end = _ANSWERS.get(size.protocol, 1), _ANSWERS_AT_THE_END.get(size.protocol, 0)
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
    """Return the people to recruit, and what they cost.

    Parameters
    ----------
    size : StudySize
        The size of the study; `size.people` are those whose answers count.
    pace, prices : Pace, Prices
        How long the work takes, and what it costs.

    Returns
    -------
    Budget
        The budget.

    Examples
    --------
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
