"""Single values of a plan's inputs by name, as REST and `heval plan` take them."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from analysis.stats.planning.comparisons import CORRECTIONS
from analysis.stats.planning.inputs import GOALS, KINDS, STOPPING, StudySize, Target, Variation
from analysis.stats.planning.priors import PRIORS
from analysis.stats.planning.sizes import Pace, Prices
from studies.models import Study

from .forms import DECLARED
from .inputs import InvalidPlanInputs, PlanInputs, inputs_from_draft
from .panels import DOCUMENTED_KEYS, documented_rate
from .pilots import resolve_prior

# Every value that can be sent > what it is. Shares and probabilities are from 0 to 1.
HELP = {
    "protocol": f"one of {', '.join(KINDS)}",
    "people": "annotators whose answers count",
    "prompts": "prompts that are shown in all",
    "prompts_each": "prompts that each person answers about",
    "conditions": "conditions over which people are spread, to compare two of them",
    "points": "points of the scale in rating and relative points",
    "goal": f"one of {', '.join(GOALS)}",
    "difference": "smallest difference that matters: how often x is preferred, such as 0.6",
    "baseline": "between conditions: the share of right answers in the other condition",
    "margin": "margin of the goal, on the scale of the result",
    "significance": "two-sided significance level of all comparisons together",
    "correction": f"one of {', '.join((*CORRECTIONS, DECLARED))}: of as many comparisons as tests, or those of the draft",
    "tests": "comparisons of one family; the approximate power divides the level by it",
    "wanted": "wanted power",
    "population": "people_and_prompts, or people for exactly these prompts",
    "stopping": f"stopping rule of two choices, one of {', '.join(STOPPING)}; a rule needs the population people",
    "prior": f"source of the variation: {', '.join(prior.key for prior in PRIORS)}, or pilot:CODE of a study",
    "sd_people": "standard deviation over people, relative to one answer",
    "sd_prompts": "standard deviation over prompts, relative to one answer",
    "sd_quality_people": "in ratings: of the quality of both outputs, over people",
    "sd_quality_prompts": "in ratings: of the quality of both outputs, over prompts",
    "sd_quality": "in ratings: of the quality of both outputs, over answers",
    "words_per_prompt": "words of a prompt",
    "words_per_output": "words of an output",
    "outputs_per_prompt": "outputs read for a prompt, if not as usual in the protocol",
    "answers_per_prompt": "answers about a prompt, if not as usual in the protocol",
    "words_per_minute": "reading speed",
    "seconds_per_answer": "seconds of an answer",
    "other_minutes": "minutes for everything else",
    "wage_per_hour": "pay for an hour",
    "reward": "pay for one annotator, instead of by the hour",
    "panel": f"fills in the published fees of one of {', '.join(DOCUMENTED_KEYS)}",
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
WHOLE = frozenset({"people", "prompts", "prompts_each", "points", "conditions", "tests"})
TEXTS = frozenset({"protocol", "goal", "population", "stopping", "prior", "correction", "panel"})


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
    errors: dict[str, str] = {}
    if "panel" in changes:
        try:
            data["prices"] = data["prices"] | {"fee_rate": documented_rate(changes["panel"])}
        except ValueError as refused:
            errors["panel"] = str(refused)
    correction = changes.get("correction")
    if correction == DECLARED and not start.comparisons.claims:
        errors["correction"] = "The draft declares no several comparisons. Give tests and a correction."
    elif "tests" in changes and correction in (None, DECLARED) and start.comparisons.claims:
        errors["tests"] = "The draft declares its comparisons. Leave tests out, or give a correction for them."
    elif correction not in (None, DECLARED):
        data["comparisons"] = {"method": correction}
    if errors:
        raise InvalidPlanInputs(errors)
    for name, value in changes.items():
        if name not in ("prior", "panel", "correction"):
            data.setdefault(RECORD_OF.get(name, name), {})[name] = value
    return PlanInputs.from_json(data)
