"""The job that plans the size of a study, and the choice of a plan."""

import math
from collections.abc import Sequence
from typing import Any

from analysis.stats.planning.inputs import Variation
from analysis.stats.planning.sizes import needed_people, plan_budget
from studies.access import Action, check_permission_or_404
from studies.design.subjects import numbered_name
from studies.models import Job, Section, SizePlan, Study, new_seed
from studies.protocols import REGISTRY
from studies.services import jobs
from studies.services.drafts import locked_draft, record_edit_and_raise_version, refuse_if_launched
from studies.services.lifecycle import ActionRefused

from .inputs import PlanInputs, items_per_prompt, planned_section
from .results import ComputePieces, compute_here, plan_pieces, simulated_size

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
    draws: Sequence[Variation] = (),
    *,
    seed: int | None = None,
    compute: ComputePieces = compute_here,
) -> SizePlan:
    """Simulate the plan and store it, or return the stored plan of the same inputs. ``compute`` may raise to cancel."""
    fingerprint = inputs.fingerprint()
    if stored := SizePlan.objects.filter(study=study, fingerprint=fingerprint).first():
        return stored
    seed = new_seed() if seed is None else seed
    result = simulate_plan(inputs, seed, draws, compute)
    return SizePlan.objects.get_or_create(
        study=study,
        fingerprint=fingerprint,
        defaults={"inputs": inputs.as_json(), "seed": seed, "result": result, "by": by},
    )[0]


def simulate_plan(
    inputs: PlanInputs, seed: int, draws: Sequence[Variation] = (), compute: ComputePieces = compute_here
) -> dict[str, Any]:
    """Return what is stored as the result of a plan. It does not depend on who computes which piece."""
    from analysis.stats.planning.study_plans import assemble_plan

    from .results import describe_plan

    sequential, claims, *sizes = compute(plan_pieces(inputs, seed, draws))
    plan = assemble_plan(
        inputs.size,
        inputs.target,
        inputs.variation,
        [simulated_size(size) for size in sizes],
        settings={
            "seed": seed,
            "n_draws": len(draws),
            "prior": inputs.prior,
            "method_version": inputs.method_version,
        },
    )
    return {"format": FORMAT, **describe_plan(plan, sequential, inputs), **claims}


def seed_of_job(job: Job) -> int:
    """Return the seed of a job's plan. A repetition has the same one, so it can go on with the pieces that are done."""
    return job.code.int >> 66


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
    """Return how many parts of the work must be submitted, or kept by the rules, in whole batches. A person does all their parts."""
    return _target_of(study, inputs.size.people, plan.result["budget"]["finishing"])


def _target_of(study: Study, people: int, finishing: int) -> int:
    parts = (people if study.target_kind == Study.Target.KEPT else finishing) * study.batches_per_annotator
    return math.ceil(parts / study.annotators_per_batch) * study.annotators_per_batch


def proposed_target(study: Study, inputs: PlanInputs) -> int:
    """Return a first target for a draft: the people who reach the wanted power, if any number does.

    It is rounded up until each item is shown equally often, if this adds at most a quarter.
    """
    size = needed_people(inputs.size, inputs.target, inputs.variation) or inputs.size
    target = _target_of(study, size.people, plan_budget(size, inputs.pace, inputs.prices).finishing)
    section = planned_section(study)
    if section is not None and section.m:
        n_items = study.prompts.count() * items_per_prompt(section)
        one_round = n_items // math.gcd(n_items, section.m) * study.annotators_per_batch
        if one_round and (full := math.ceil(target / one_round) * one_round) <= 1.25 * target:
            target = full
    most = most_places(study)
    return target if most is None else max(1, min(target, most))


def most_places(study: Study) -> int | None:
    """Return the largest target for which the items of all sections are enough, or None without a limit."""
    found = [REGISTRY[one.protocol].most_places(one) for one in study.read_sections() if one.protocol in REGISTRY]
    return min((n for n in found if n), default=None)


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
        return [f"Section {numbered_name(section)} keeps m = {section.m}, because the plan's {m} is above 100."]
    Section.objects.filter(pk=section.pk).update(m=m)
    details["m"] = m
    return [f"Section {numbered_name(section)} shows {m} items to each annotator."]
