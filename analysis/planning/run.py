"""The job that plans the size of a study, and the choice of a plan."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from analysis.stats.plan_inputs import Variation
from studies.access import Action, check_permission_or_404
from studies.models import Job, Section, SizePlan, Study, new_seed
from studies.services import jobs
from studies.services.drafts import locked_draft, record_edit_and_raise_version, refuse_if_launched
from studies.services.lifecycle import ActionRefused

from .inputs import METHOD_VERSION, PlanInputs, items_per_prompt, planned_section

KIND = "plan_size"
FORMAT = "heval.size_plan/1"


def request_plan(study: Study, by, inputs: PlanInputs, request_token: str | None = None) -> Job:
    """Submit the job, or return the one that computes or computed the same plan. Raise ActionRefused after the launch."""
    check_permission_or_404(by, Action.EDIT, study)
    refuse_if_launched(study)
    fingerprint = inputs.fingerprint()
    same = study.jobs.filter(kind=KIND, arguments__fingerprint=fingerprint)
    State = Job.State
    unfinished_or_done = same.filter(state__in=[State.WAITING, State.RUNNING, State.DONE], is_cancel_wanted=False)
    if found := unfinished_or_done.order_by("-pk").first():
        return found
    return jobs.submit(
        KIND, study=study, by=by, request_token=request_token, inputs=inputs.as_json(), fingerprint=fingerprint
    )


def compute_plan(
    study: Study,
    by,
    inputs: PlanInputs,
    progress: Callable[..., None] = lambda done, total, doing="": None,
    draws: Sequence[Variation] = (),
) -> SizePlan:
    """Simulate the plan and store it, or return the stored plan of the same inputs. ``progress`` may raise to cancel."""
    fingerprint = inputs.fingerprint()
    if stored := SizePlan.objects.filter(study=study, fingerprint=fingerprint).first():
        return stored
    seed = new_seed()
    result = simulate_plan(inputs, seed, progress, draws)
    return SizePlan.objects.get_or_create(
        study=study,
        fingerprint=fingerprint,
        defaults={"inputs": inputs.as_json(), "seed": seed, "result": result, "by": by},
    )[0]


def simulate_plan(
    inputs: PlanInputs,
    seed: int,
    progress: Callable[..., None] = lambda done, total, doing="": None,
    draws: Sequence[Variation] = (),
) -> dict[str, Any]:
    """Return what is stored as the result of a plan. ``progress`` may raise to cancel."""
    from analysis.stats.planning import assemble_plan, plan_parts, simulate_part

    from .results import compare_claims, describe_plan

    parts = plan_parts(inputs.size, inputs.target, inputs.variation, seed=seed)
    simulated = []
    for number, part in enumerate(parts):
        progress(number, len(parts) + 1, "Simulating studies")
        simulated.append(simulate_part(part, draws or inputs.variation))
    progress(len(parts), len(parts) + 1, "Comparing fixed and sequential designs")
    plan = assemble_plan(
        inputs.size,
        inputs.target,
        inputs.variation,
        simulated,
        settings={
            "seed": seed,
            "n_draws": len(draws),
            "prior": inputs.prior,
            "method_version": METHOD_VERSION,
        },
    )
    return {"format": FORMAT, **describe_plan(plan, inputs), **compare_claims(inputs, draws, seed=seed)}


def choose_plan(study: Study, plan: SizePlan, by, *, sets_target: bool = False) -> list[str]:
    """Make the plan the study's own and return what else changed. ``sets_target``: also set the draft's target and items each.

    Raise ActionRefused if the study is launched or the plan is another study's.
    """
    with locked_draft(study.pk, by) as draft:
        if plan.study_id != draft.pk:
            raise ActionRefused("The plan belongs to another study. Choose a plan of this study.")
        columns: dict[str, Any] = {"size_plan": plan}
        details: dict[str, Any] = {"size_plan": plan.pk}
        changed: list[str] = []
        if sets_target:
            inputs = PlanInputs.from_json(plan.inputs)
            target = planned_target(draft, inputs, plan)
            if target != draft.target_n:
                columns["target_n"] = details["target_n"] = target
                changed.append(f"The target is {target}.")
                if draft.target_cap is not None and draft.target_cap < target:
                    columns["target_cap"] = details["target_cap"] = None
                    changed.append("The cap is 1.5 times the target.")
            changed += _set_items_each(draft, inputs, details)
        Study.objects.filter(pk=draft.pk).update(**columns)
        record_edit_and_raise_version(draft, by, **details)
    study.refresh_from_db()
    return changed


def planned_target(study: Study, inputs: PlanInputs, plan: SizePlan) -> int:
    """Return how many annotators must submit, or be kept by the rules, in whole batches."""
    is_kept = study.target_kind == Study.Target.KEPT
    people = inputs.size.people if is_kept else plan.result["budget"]["finishing"]
    return math.ceil(people / study.annotators_per_batch) * study.annotators_per_batch


def planned_items_each(section: Section, inputs: PlanInputs) -> int:
    """Return how many items of a batch the section needs."""
    return math.ceil(inputs.size.prompts_each * items_per_prompt(section) / section.study.batches_per_annotator)


def _set_items_each(study: Study, inputs: PlanInputs, details: dict[str, Any]) -> list[str]:
    """Set the number of items of the section that the plan is about, if the draft has it."""
    section = planned_section(study)
    if section is None:
        return []
    m = planned_items_each(section, inputs)
    if m == section.m:
        return []
    if m > 100:
        return [f"Section {section.position} keeps m = {section.m}, because the plan's {m} is above 100."]
    Section.objects.filter(pk=section.pk).update(m=m)
    details["m"] = m
    return [f"Section {section.position} shows {m} items to each annotator."]
