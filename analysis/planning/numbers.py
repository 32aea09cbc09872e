"""The approximate numbers of a plan as data, for REST and `heval plan`. They take milliseconds and load no numpy."""

from collections.abc import Sequence
from typing import Any

from analysis.stats.planning.closed_forms import quick_plan, smallest_difference
from analysis.stats.planning.comparisons import quick_claims
from analysis.stats.planning.inputs import Variation
from analysis.stats.planning.sizes import plan_budget

from .advice import advice_sentences, finding_sentence, size_sentence
from .assured import assurance_sentence, live_power
from .inputs import PlanInputs
from .panels import panel_rows


def quick_numbers(inputs: PlanInputs, currency: str, draws: Sequence[Variation] = ()) -> dict[str, Any]:
    """Return power, interval, smallest difference, people, time and money, with sentences and advice.

    ``draws``: what a pilot leaves open. Power and interval are averaged over them.
    """
    size, target, variation = inputs.size, inputs.target, inputs.variation
    budget, quick = plan_budget(size, inputs.pace, inputs.prices), quick_plan(size, target, variation)
    live = live_power(inputs, draws)
    return {
        "inputs": inputs.as_json(),
        "fingerprint": inputs.fingerprint(),
        "is_approximate": True,
        **quick.as_dict(),
        **live.as_dict(),
        "smallest_difference": smallest_difference(size, target, variation) if target.goal == "difference" else None,
        "comparisons": [
            {
                "name": one.claim.name,
                "family": one.claim.family,
                "method": one.method,
                "family_size": one.family_size,
                "power": one.power,
                "power_at_most": one.power_at_most,
            }
            for one in quick_claims(size, target, variation, *inputs.comparisons.claims_of(target))
        ],
        "currency": currency,
        "budget": budget.as_dict(),
        "panels": [
            {name: row[name] for name in ("key", "label", "rate", "total", "source")}
            for row in panel_rows(inputs, currency, {})
        ],
        "sentences": [
            size_sentence(size, budget, currency),
            finding_sentence(size, target, live.power, live.half_width, "approximate"),
            *([text] if (text := assurance_sentence(live)) else []),
        ],
        "advice": advice_sentences(inputs),
    }
