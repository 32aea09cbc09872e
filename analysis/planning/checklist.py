"""The checklist of a draft says where it differs from the chosen plan of its size."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from analysis.report.planned import percent
from analysis.stats.planning.closed_forms import quick_plan, smallest_difference
from analysis.stats.planning.comparisons import CORRECTIONS, families_in_order
from analysis.stats.planning.inputs import GOALS, HEADLINES, STOPPING, StudySize, Target, Variation
from analysis.stats.planning.priors import PRIORS
from analysis.stats.planning.sizes import Pace, Prices, plan_budget
from studies.design.subjects import numbered_name
from studies.design.workload import BatchWorkload, minutes_text
from studies.models import SizePlan, Study
from studies.protocols import Problem

from .advice import finding_sentence
from .forms import DECLARED
from .inputs import InvalidPlanInputs, PlanInputs, count_second_sample, inputs_from_draft, planned_section
from .pilots import resolve_prior
from .results import DOCUMENTED_KEYS, documented_rate
from .run import FORMAT, planned_items_each, planned_target

# Single values of a plan's inputs by name, as REST and `heval study plan` take them.


# Every value that can be sent > what it is. Shares and probabilities are from 0 to 1.
HELP = {
    "protocol": f"one of {', '.join(HEADLINES)}",
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


# Parts of the plan's target > their names in a warning.
DECLARED_TARGETS = {
    "goal": "goal",
    "margin": "margin",
    "tests": "number of primary comparisons",
    "significance": "significance level",
    "population": "population of the claim",
    "stopping": "stopping rule",
}


def describe_forecast(sender: Any, study: Study, workloads: Sequence[BatchWorkload], **_: Any) -> list[str]:
    """Return what the declared size and rule can find, with the numbers of the page Plan: simulated ones if it has them."""
    if planned_section(study) is None or not study.target_n or not workloads:
        return []
    inputs, plan = forecast_inputs(study, workloads)
    size, target = inputs.size, inputs.target
    if plan is None:
        quick = quick_plan(size, target, inputs.variation)
        power, half_width, how = quick.power, quick.half_width, "approximate"
        is_lost = target.goal == "difference" and smallest_difference(size, target, inputs.variation) is None
    else:
        planned = plan.result["plan"]["planned"]
        power, half_width, how = planned["power"], planned["half_width"], "simulated"
        is_lost = False
    budget = plan_budget(size, inputs.pace, inputs.prices)
    sentences = [finding_sentence(size, target, power, half_width, how)]
    if budget.finishing > size.people:
        sentences.insert(0, f"Of {budget.finishing} who finish, rules exclude some: {size.people} count.")
    if is_lost:
        rule = ", or remove the stopping rule" if target.is_sequential else ""
        sentences.append(
            f"No difference is found with {percent(target.wanted)} power at this size. Add annotators or prompts{rule}."
        )
    if study.minutes and budget.minutes_each > 1.5 * study.minutes * study.batches_per_annotator:
        sentences.append(
            f"The study declares {study.minutes} minutes for a batch, but the median one takes about "
            f"{minutes_text(budget.minutes_each / study.batches_per_annotator)}."
        )
    return sentences


def forecast_inputs(
    study: Study, workloads: Sequence[BatchWorkload] | None = None
) -> tuple[PlanInputs, SizePlan | None]:
    """Return the draft's inputs with what the chosen plan assumes, and the simulated plan of the same question if there is one."""
    chosen = study.size_plan
    if chosen is None:
        inputs = inputs_from_draft(study, workloads)
        return inputs, study.size_plans.filter(fingerprint=inputs.fingerprint(), result__format=FORMAT).first()
    own = PlanInputs.from_json(chosen.inputs)
    inputs = inputs_from_draft(study, workloads, excluded_share=own.prices.excluded_share)
    aim = own.target
    target = replace(inputs.target, difference=aim.difference, baseline=aim.baseline, wanted=aim.wanted)
    inputs = replace(inputs, target=target, variation=own.variation, prior=own.prior)
    is_same = (own.size, own.target, own.comparisons) == (inputs.size, inputs.target, inputs.comparisons)
    return inputs, chosen if is_same else None


def find_plan_problems(sender: Any, study: Study, **_: Any) -> Iterator[Problem]:
    """Yield a warning for each part of the design that differs from the chosen plan."""
    plan = study.size_plan
    if plan is None:
        return
    planned, drafted = PlanInputs.from_json(plan.inputs), inputs_from_draft(study, [])
    section = planned_section(study)
    if section is None:
        return  # a live section is missing, which the checklist says
    if planned.size.protocol != drafted.size.protocol:
        yield Problem(
            f"The plan of the size is for another protocol ({planned.size.protocol}). Plan again, or change section {numbered_name(section)}.",
            "sections",
            False,
            "plan_has_another_protocol",
        )
        return
    yield from _size_problems(study, plan, planned, drafted)
    differing = [
        name for key, name in DECLARED_TARGETS.items() if getattr(planned.target, key) != getattr(drafted.target, key)
    ]
    if "tests" not in differing and _are_corrected_otherwise(planned, drafted):
        differing.append("comparisons or their correction")
    if differing:
        yield Problem(
            f"The planned comparisons differ from the plan of the size in: {', '.join(differing)}. Plan again, or change them.",
            "contrasts",
            False,
            "plan_has_other_comparisons",
        )


def _are_corrected_otherwise(planned: PlanInputs, drafted: PlanInputs) -> bool:
    own, now = planned.comparisons, drafted.comparisons
    if own.claims:
        return own != now
    methods = {family.method for family in families_in_order(now.claims, now.families)}
    return bool(methods - {own.method}) or any(family.after for family in now.families)


def _size_problems(study: Study, plan: SizePlan, planned: PlanInputs, drafted: PlanInputs) -> Iterator[Problem]:
    size = planned.size
    target = planned_target(study, planned, plan)
    if study.target_n and study.target_n != target:
        finishing = "" if target == size.people else f", so a target of {target}"
        yield Problem(
            f"Planned {size.people} people{finishing}, but the target is {study.target_n}. Change the target to {target}, or plan again.",
            "target_n",
            False,
            "target_differs_from_plan",
        )
    n_prompts = count_second_sample(study)
    # People who answer about few prompts leave the others out, in the plan as in the study.
    reached = min(n_prompts, size.people * size.prompts_each)
    groups = study.prompts.exclude(group="").exists() and Study.GroupNoun(study.group_noun).label
    if n_prompts and reached != size.prompts:
        yield Problem(
            f"Planned {size.prompts} prompts{f' or {groups}' if groups else ''}, but the study has {n_prompts}. Import or delete prompts, or plan again.",
            "prompts",
            False,
            "prompts_differ_from_plan",
        )
    section = planned_section(study)
    if section is None:
        return
    m = planned_items_each(section, planned)
    if drafted.size.prompts_each != size.prompts_each and section.m != m:
        yield Problem(
            f"Section {numbered_name(section)} shows {section.m} items to each annotator, but the plan has {m}. Change m, or plan again.",
            "m",
            False,
            f"items_differ_from_plan:{section.position}",
        )
