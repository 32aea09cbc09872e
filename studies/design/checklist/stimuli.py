"""Check the stimuli of a study: are there enough systems, prompts and outputs?"""

from collections.abc import Iterator

from django.db.models import Count

from studies.design.draw import SHORTAGE_ADVICE, BatchDraw
from studies.models import Batch, Output, Placement, Study
from studies.protocols import REGISTRY, Problem


def stimuli_problems(study: Study, sections) -> Iterator[Problem]:
    drawing = [
        s for s in sections if s.protocol in REGISTRY and REGISTRY[s.protocol].has_items and s.reuses_id is None and s.m
    ]
    if not drawing:
        return
    systems = study.systems.count()
    if systems < 2:
        yield Problem(
            f"The study has {'only 1 system' if systems else 'no systems'}, so nothing can be compared. Import outputs of two systems.",
            "systems",
            systems == 0,
            "one_system",
        )
    ready_made = study.batches.filter(origin=Batch.Origin.IMPORTED).exists()
    # A protocol that shows one output per prompt has other needs and checks them itself.
    full_sections = [section for section in drawing if REGISTRY[section.protocol].shows_every_system]
    if full_sections and not ready_made:
        yield from _coverage_problems(study, full_sections)
    twice = (
        Placement.objects.filter(batch__study=study, batch__origin=Batch.Origin.IMPORTED)
        .values("batch", "item__prompt")
        .annotate(n=Count("pk"))
        .filter(n__gt=1)
        .count()
    )
    if twice:
        yield Problem(f"{twice} prompts occur twice in a ready-made batch.", "batches", False, "prompt_twice_in_batch")
    empty = Output.objects.filter(system__study=study, is_empty=True).count()
    if empty:
        yield Problem(
            f"{empty} outputs are empty. Annotators will read that the system gave no text.",
            "outputs",
            False,
            "empty_outputs",
        )


def _coverage_problems(study: Study, drawing) -> Iterator[Problem]:
    """Check that each arm has enough prompts with an output of every system that the arm shows."""
    plan = BatchDraw(study)
    positions = {section.position for section in drawing}
    keys = dict(study.prompts.values_list("pk", "key"))
    alike: dict[tuple, list] = {}
    for arm in plan.arms:
        wanted = sum(section.m for section in plan.sections_with_own_items(arm.pk) if section.position in positions)
        alike.setdefault((tuple(plan.systems[arm.pk]), arm.domain, wanted), []).append(arm)
    for (_, _, wanted), arms in alike.items():
        names = ", ".join(arm.name for arm in arms)
        where, of_arm, shown, some = (
            (f"Arm {names}: ", f" of arm {names}", " that the arm shows", f":{arms[0].name}")
            if len(alike) > 1
            else ("", "", "", "")
        )
        all_prompts, usable = plan.prompts_by_arm[arms[0].pk], plan.prompts[arms[0].pk]
        lacking = sorted(keys[prompt] for prompt in set(all_prompts) - set(usable))
        if lacking and wanted:
            yield Problem(
                f"{where}{len(lacking)} of {len(all_prompts)} prompts lack the output of a system and are not shown: {', '.join(lacking[:5])}"
                f"{' …' if len(lacking) > 5 else ''}.",
                "outputs",
                False,
                f"outputs_missing{some}",
            )
        if len(usable) < wanted:
            yield Problem(
                f"A batch{of_arm} needs {wanted} prompts with an output of every system{shown}; there {'is' if len(usable) == 1 else 'are'} "
                f"{len(usable)}. {SHORTAGE_ADVICE['prompts']}",
                "prompts",
            )
