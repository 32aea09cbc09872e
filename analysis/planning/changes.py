"""Single values of a plan's inputs by name, as REST and `heval plan` take them."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from analysis.stats.plan_budget import Pace, Prices
from analysis.stats.plan_inputs import GOALS, PROTOCOLS, StudySize, Target, Variation
from analysis.stats.priors import PRIORS
from studies.models import Study

from .inputs import PlanInputs, inputs_from_draft
from .pilots import resolve_prior

# Every value that can be sent > what it is. Shares and probabilities are from 0 to 1.
HELP = {
    "protocol": f"one of {', '.join(PROTOCOLS)}",
    "people": "annotators whose answers count",
    "prompts": "prompts that are shown in all",
    "prompts_each": "prompts that each person answers about",
    "points": "points of the scale in rating and relative points",
    "goal": f"one of {', '.join(GOALS)}",
    "difference": "smallest difference that matters: how often x is preferred, such as 0.6",
    "margin": "margin of the goal, on the scale of the result",
    "significance": "two-sided significance level of all comparisons together",
    "tests": "comparisons by which the level is divided",
    "wanted": "wanted power",
    "population": "people_and_prompts, or people for exactly these prompts",
    "prior": f"source of the variation: {', '.join(prior.key for prior in PRIORS)}, or pilot:CODE of a study",
    "sd_people": "standard deviation over people, relative to one answer",
    "sd_prompts": "standard deviation over prompts, relative to one answer",
    "sd_quality_people": "in ratings: of the quality of both outputs, over people",
    "sd_quality_prompts": "in ratings: of the quality of both outputs, over prompts",
    "sd_quality": "in ratings: of the quality of both outputs, over answers",
    "words_per_prompt": "words of a prompt",
    "words_per_output": "words of an output",
    "words_per_minute": "reading speed",
    "seconds_per_answer": "seconds of an answer",
    "other_minutes": "minutes before and after the work",
    "wage_per_hour": "pay for an hour",
    "reward": "pay for one annotator, instead of by the hour",
    "fee_rate": "fees of the panel with tax, as a share of the pay",
    "dropped_out_share": "share of people who start and do not finish",
    "excluded_share": "share of people who finish and do not count",
    "screened_out_share": "share of people who do not pass the screening",
    "screen_out_pay": "pay of a screened-out person",
    "test_share": "share of items that are test questions",
}
_KINDS = {"size": StudySize, "target": Target, "variation": Variation, "pace": Pace, "prices": Prices}
RECORD_OF = {one.name: record for record, kind in _KINDS.items() for one in fields(kind) if one.name in HELP}
# Values that are whole numbers or texts. All others are numbers.
WHOLE = frozenset({"people", "prompts", "prompts_each", "points", "tests"})
TEXTS = frozenset({"protocol", "goal", "population", "prior"})


def starting_inputs(study: Study) -> PlanInputs:
    """Return the inputs of the chosen plan, or else what the design says."""
    return PlanInputs.from_json(study.size_plan.inputs) if study.size_plan else inputs_from_draft(study)


def changed_inputs(start: PlanInputs, changes: Mapping[str, Any], user: Any) -> PlanInputs:
    """Return the inputs with other values. Raise InvalidPlanInputs with the faults of all values.

    ``user``: who asks, and so which studies and files can be the prior. None is the site itself.
    """
    data = start.as_json()
    prior = changes.get("prior")
    if prior is not None and prior != start.prior:
        data["prior"] = prior
        if prior:
            data["variation"] = resolve_prior(prior, user).variation.as_dict()
    if any(name.startswith("sd_") for name in changes):
        data["prior"] = ""
        data["variation"] = data["variation"] | {"source": "entered by hand"}
    for name, value in changes.items():
        if name != "prior":
            data.setdefault(RECORD_OF.get(name, name), {})[name] = value
    return PlanInputs.from_json(data)
