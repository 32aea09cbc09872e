"""The power that the page and REST show while one types, without numpy. With a pilot it is the assurance."""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.stats.plain_records import PlainRecord
from analysis.stats.planning.closed_forms import quick_assurance, quick_plan, spread_draws
from analysis.stats.planning.inputs import Variation

from .advice import percent
from .inputs import PlanInputs

# Draws over which the live power is averaged. One takes .1 to 4 ms.
DRAWS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePower(PlainRecord):
    """The approximate power and half the width of the interval. 80 % of what a pilot leaves open have a power between the other two."""

    power: float
    half_width: float
    power_low: float | None = None
    power_high: float | None = None


def live_power(inputs: PlanInputs, draws: Sequence[Variation] = ()) -> LivePower:
    """Return the approximate power, averaged over draws that stand for all of them if there are any."""
    size, target = inputs.size, inputs.target
    if not draws:
        quick = quick_plan(size, target, inputs.variation)
        return LivePower(power=quick.power, half_width=quick.half_width)
    found = quick_assurance(size, target, spread_draws(size, draws, DRAWS))
    return LivePower(power=found.power, half_width=found.half_width, power_low=found.low, power_high=found.high)


def assurance_sentence(live: LivePower) -> str:
    """Return what the power is an average of, or '' without a pilot."""
    if live.power_low is None or live.power_high is None:
        return ""
    return (
        f"This power is averaged over what the pilot leaves open (80 % of it: {percent(live.power_low)} to {percent(live.power_high)}). "
        "The smallest difference, the advice and the curves take the pilot's estimates as exact."
    )
