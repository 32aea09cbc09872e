"""A few draws in the place of many, so that a page can average over what a pilot leaves open. Nothing here loads numpy."""

import math
from collections.abc import Sequence

from analysis.stats.plan_inputs import StudySize, Variation


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
