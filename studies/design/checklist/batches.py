"""The checklist looks at the batches that a launch would draw."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter

from studies.design.draw import MAX_BLOCK_SIZE, BatchDraw
from studies.models import Batch, Contrast, Item, Placement, Section, Study
from studies.protocols import REGISTRY, Problem, ShownSystems

from .populations import SectionPrompts, describe_populations, population_problems
from .unanswered import ready_made_batch_problems, unanswered_prompt_problems

# The checklist draws at least this many trial batches if the target needs them. The launch draws all of them.
MIN_TRIAL_BATCHES = 200


@dataclass(frozen=True, slots=True)
class TrialBatches:
    """What the first ``n_read`` of the ``n_wanted`` batches show.

    ``unanswered`` has the comparisons that none of them answers, with their sections, and ``answered`` has the others.
    """

    answered: dict[Contrast, list[Section]]
    unanswered: dict[Contrast, list[Section]]
    shown_by_section: dict[int, ShownSystems]
    prompts_by_section: dict[int, SectionPrompts]
    n_read: int
    n_wanted: int

    def describe_populations(self) -> list[str]:
        return describe_populations(self.answered, self.prompts_by_section, self.n_read, self.n_wanted)


def read_trial_batches(study: Study, drawing: BatchDraw | None) -> TrialBatches:
    """Draw trial batches until every comparison can be answered, usually after a few of them. Nothing is stored.

    ``drawing`` is None if the study has ready-made batches. Raise UnfillableBatch if a batch cannot be filled.
    """
    live = [
        section
        for section in study.sections.select_related("reuses", "study").prefetch_related(
            "questions__x", "questions__y", "arms"
        )
        if section.purpose == "live"
    ]
    contrasts = study.contrasts.select_related("x", "y", "section")
    estimating = {contrast: [section for section in live if _can_estimate(section, contrast)] for contrast in contrasts}
    pending = dict(estimating)
    shown_by_section = {section.pk: ShownSystems() for section in live}
    groups = drawing.groups if drawing else dict(study.prompts.exclude(group="").values_list("pk", "group"))
    prompts_by_section = {section.pk: SectionPrompts(groups) for section in live}
    n_read = 0
    for arm, placed in _items_by_batch(study, drawing):
        if not pending and n_read >= MIN_TRIAL_BATCHES:
            break
        n_read += 1
        for section in live:
            arms = {section_arm.pk for section_arm in section.arms.all()}
            prompts_and_systems = placed.get(section.reuses_id or section.pk) if not arms or arm in arms else None
            if prompts_and_systems:
                prompts_by_section[section.pk].add_batch(prompts_and_systems)
                items = [systems for _, systems in prompts_and_systems]
                shown = shown_by_section[section.pk]
                shown.arms.setdefault(arm, set()).update(*items)
                shown.items |= set(items)
                shown.batches.add(frozenset().union(*items))
                shown.systems |= frozenset().union(*items)
        pending = {
            contrast: sections
            for contrast, sections in pending.items()
            if all(
                REGISTRY[section.protocol].reason_not_answerable(section, contrast, shown_by_section[section.pk])
                for section in sections
            )
        }
    answered = {contrast: sections for contrast, sections in estimating.items() if contrast not in pending}
    return TrialBatches(
        answered, pending, shown_by_section, prompts_by_section, n_read, max(n_read, batch_count_for_target(study))
    )


def trial_batch_problems(study: Study, trial: TrialBatches, drawing: BatchDraw | None) -> Iterator[Problem]:
    """Yield problems that only drawn batches show.

    These are planned comparisons that no batch can answer, those that want more prompts than are shown, and prompts that
    nobody answers about.
    """
    for contrast, sections in trial.unanswered.items():
        if not sections:
            yield Problem(
                f"The planned comparison {contrast} cannot be answered: its live sections compare nothing. Name another "
                "section, or none.",
                "contrasts",
                name=f"unanswered:{contrast}",
            )
            continue
        reasons = dict.fromkeys(
            REGISTRY[section.protocol].reason_not_answerable(section, contrast, trial.shown_by_section[section.pk])
            for section in sections
        )
        yield Problem(
            f"The planned comparison {contrast} cannot be answered: {'; '.join(reasons)}.",
            "contrasts",
            name=f"unanswered:{contrast}",
        )
    yield from population_problems(trial.answered, trial.prompts_by_section)
    if drawing is None:
        yield from ready_made_batch_problems(study, trial.n_wanted)
    else:
        yield from unanswered_prompt_problems(
            drawing, trial.answered, trial.prompts_by_section, trial.n_read, trial.n_wanted
        )


def _can_estimate(section, contrast) -> bool:
    """Return whether a comparison is about this section and the section's protocol has its estimand."""
    protocol = REGISTRY[section.protocol]
    return contrast.section_id in (None, section.pk) and (
        contrast.estimand or protocol.default_estimand(section)
    ) in protocol.estimands(section)


def batch_count_for_target(study: Study) -> int:
    """Return how many batches the target needs. Without a target (a separate problem), count one block with every arm."""
    return -(-(study.target_n or MAX_BLOCK_SIZE) // study.annotators_per_batch)


def _items_by_batch(
    study: Study, drawing: BatchDraw | None
) -> Iterator[tuple[int, dict[int, list[tuple[int | None, frozenset[int]]]]]]:
    """Yield the arm of each batch that a launch would open, and by section the prompt and the systems of each live item.

    Raise UnfillableBatch if a batch cannot be filled.
    """
    count = batch_count_for_target(study)
    if drawing is None:
        own_batches = study.batches.filter(origin=Batch.Origin.IMPORTED)
        rows = (
            Placement.objects.filter(batch__in=own_batches, item__kind=Item.Kind.LIVE)
            .order_by("batch__number", "number")
            .values_list(
                "batch__number",
                "batch__arm_id",
                "item__section_id",
                "item_id",
                "item__prompt_id",
                "item__exposures__output__system_id",
            )
        )
        for (_, arm), batch_rows in islice(groupby(rows.iterator(2000), key=itemgetter(0, 1)), count):
            systems: dict[tuple[int, int, int], set[int]] = {}
            for _, _, section, item, prompt, system in batch_rows:
                systems.setdefault((section, item, prompt), set()).add(system)
            placed: dict[int, list[tuple[int | None, frozenset[int]]]] = {}
            for (section, _, prompt), system_ids in systems.items():
                placed.setdefault(section, []).append((prompt, frozenset(system_ids)))
            yield arm, placed
        return
    system_by_output = {output: system for (_, system), outputs in drawing.outputs.items() for output in outputs}
    for batch in islice(drawing.batches(), count):
        placed = {}
        for section, drawn in batch.items:
            if drawn.item is None and drawn.kind == Item.Kind.LIVE:
                systems_of_item = frozenset(system_by_output[output] for output in drawn.outputs)
                placed.setdefault(section, []).append((drawn.prompt, systems_of_item))
        yield batch.arm_id, placed
