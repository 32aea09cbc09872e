"""Check the stimuli of a study: are there enough systems, prompts and outputs?"""

from collections.abc import Iterator

from django.db.models import Count, Q

from studies.design.draw import SHORTAGE_ADVICE, BatchDraw
from studies.models import ArmSystem, Batch, Output, Placement, Question, Study, System
from studies.protocols import REGISTRY, Problem


def stimuli_problems(study: Study, sections, drawing: BatchDraw | None) -> Iterator[Problem]:
    with_items = [
        s for s in sections if s.protocol in REGISTRY and REGISTRY[s.protocol].has_items and s.reuses_id is None and s.m
    ]
    if not with_items:
        return
    systems = study.systems.judged().count()
    if systems < 2:
        yield Problem(
            f"The study has {'only 1 system' if systems else 'no systems'}, so nothing can be compared. Import outputs of two systems.",
            "systems",
            systems == 0,
            "one_system",
        )
    yield from _test_source_problems(study)
    # A protocol that shows one output per prompt has other needs and checks them itself.
    full_sections = [section for section in with_items if REGISTRY[section.protocol].shows_every_system]
    if full_sections and drawing is not None:
        yield from _coverage_problems(study, full_sections, drawing)
    if drawing is None and (n_repeated := _count_prompts_twice_in_batch(study)):
        yield Problem(
            f"{n_repeated} prompts occur twice in a ready-made batch.", "batches", False, "prompt_twice_in_batch"
        )
    alone = study.prompts.filter(group="").exclude(source="").order_by()
    shared = alone.values("source").annotate(n=Count("pk")).filter(n__gt=1).values_list("n", flat=True)
    if shared:
        yield Problem(
            f"{sum(shared)} prompts share their source with another one, but count as independent. Import the file again with equal "
            "source texts as groups.",
            "prompts",
            False,
            "shared_sources",
        )
    empty = Output.objects.filter(system__study=study, is_empty=True).count()
    if empty:
        yield Problem(
            f"{empty} outputs are empty. Annotators will read that the system gave no text.",
            "outputs",
            False,
            "empty_outputs",
        )


def _test_source_problems(study: Study) -> Iterator[Problem]:
    """Yield where a source of texts for test questions is used as if it were a system under evaluation."""
    for system in study.systems.filter(reference=System.Reference.TEST):
        uses = {
            "an arm": ArmSystem.objects.filter(system=system),
            "a comparison": study.contrasts.filter(Q(x=system) | Q(y=system)),
            "a question": Question.objects.filter(Q(x=system) | Q(y=system)),
        }
        for use, rows in uses.items():
            if rows.exists():
                yield Problem(
                    f"{system} holds texts of test questions only, but {use} names it. Remove it there.", "systems"
                )


def _count_prompts_twice_in_batch(study: Study) -> int:
    """Return how often a ready-made batch holds several items of one prompt."""
    prompts = Placement.objects.filter(batch__study=study, batch__origin=Batch.Origin.IMPORTED).values(
        "batch", "item__prompt"
    )
    return prompts.annotate(n=Count("pk")).filter(n__gt=1).count()


def _coverage_problems(study: Study, sections, plan: BatchDraw) -> Iterator[Problem]:
    """Check that each arm has enough prompts with an output of every system that the arm shows."""
    positions = {section.position for section in sections}
    keys = dict(study.prompts.values_list("pk", "key"))
    arms_by_need: dict[tuple, list] = {}
    for arm in plan.arms:
        n_needed = sum(section.m for section in plan.sections_with_own_items(arm.pk) if section.position in positions)
        arms_by_need.setdefault((tuple(plan.systems[arm.pk]), arm.domain, n_needed), []).append(arm)
    for (_, _, n_needed), arms in arms_by_need.items():
        names = ", ".join(arm.name for arm in arms)
        where, arm_text, shown_text, key_suffix = (
            (f"Arm {names}: ", f" of arm {names}", " that the arm shows", f":{arms[0].name}")
            if len(arms_by_need) > 1
            else ("", "", "", "")
        )
        all_prompts, usable = plan.prompts_by_arm[arms[0].pk], plan.prompts[arms[0].pk]
        lacking = sorted(keys[prompt] for prompt in set(all_prompts) - set(usable))
        if lacking and n_needed:
            yield Problem(
                f"{where}{len(lacking)} of {len(all_prompts)} prompts lack the output of a system and are not shown: {', '.join(lacking[:5])}"
                f"{' …' if len(lacking) > 5 else ''}.",
                "outputs",
                False,
                f"outputs_missing{key_suffix}",
            )
        if len(usable) < n_needed:
            yield Problem(
                f"A batch{arm_text} needs {n_needed} prompts with an output of every system{shown_text}; there {'is' if len(usable) == 1 else 'are'} "
                f"{len(usable)}. {SHORTAGE_ADVICE['prompts']}",
                "prompts",
            )
