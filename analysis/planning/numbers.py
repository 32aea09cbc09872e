"""The approximate numbers of a plan as data, for REST and `heval plan`. They take milliseconds and load no numpy."""

from typing import Any

from analysis.stats.plan_budget import plan_budget
from analysis.stats.quick_power import quick_plan, smallest_difference

from .advice import advice_sentences, finding_sentence, size_sentence
from .inputs import PlanInputs


def quick_numbers(inputs: PlanInputs, currency: str) -> dict[str, Any]:
    """Return power, interval, smallest difference, people, time and money, with sentences and advice."""
    size, target, variation = inputs.size, inputs.target, inputs.variation
    budget, quick = plan_budget(size, inputs.pace, inputs.prices), quick_plan(size, target, variation)
    return {
        "inputs": inputs.as_json(),
        "fingerprint": inputs.fingerprint(),
        "is_approximate": True,
        **quick.as_dict(),
        "smallest_difference": smallest_difference(size, target, variation) if target.goal == "difference" else None,
        "currency": currency,
        "budget": budget.as_dict(),
        "sentences": [
            size_sentence(size, budget, currency),
            finding_sentence(size, target, quick.power, quick.half_width, "approximate"),
        ],
        "advice": advice_sentences(inputs),
    }
