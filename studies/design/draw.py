"""Draw batches from a study's design. Batch k depends only on the seed, k and the design; the stored rows are the record."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from math import gcd
from random import Random

from django.db import transaction

from studies.models import (
    Arm,
    ArmSystem,
    Batch,
    Exposure,
    Item,
    Output,
    Placement,
    Section,
    SectionArm,
    Study,
)
from studies.protocols import REGISTRY, DrawnItem, StimulusPool, UnfillableBatch

from .queues import PromptQueue, TurnQueue, require_prompts
from .seeds import seeded_random
from .test_question_draw import TestQuestionDraw


class ArmSharesRefused(UnfillableBatch):
    """The arms' places cannot be divided into blocks, so nothing can be drawn. The message is for the researcher."""

    def __init__(self, text: str):
        super().__init__(text, "arms")


MAX_BLOCK_SIZE = 60


def build_arm_block(arms: list) -> list:
    """Return a block of arms: each arm once, or in proportion to its places. Raise ArmSharesRefused if there is no such block."""
    n_places = [arm.wanted for arm in arms]
    if not any(n_places):
        return arms
    if not all(n_places):
        raise ArmSharesRefused(
            "Some arms have a number of places and others have no number. Give each arm a number, or leave all of them empty."
        )
    shared = gcd(*n_places)
    if sum(n_places) // shared > MAX_BLOCK_SIZE:
        raise ArmSharesRefused(
            f"The places of the arms ({', '.join(map(str, n_places))}) need blocks of more than {MAX_BLOCK_SIZE} batches, in which each arm "
            "has its share. Give the arms rounder numbers."
        )
    return [arm for arm, n in zip(arms, n_places, strict=True) for _ in range(n // shared)]


def arm_of_batch(arm_block: list, seed: int, batch_number: int) -> Arm:
    """Return the arm of batch k. Arms come in permuted blocks: after each complete block, every arm has exactly its share."""
    number, position = divmod(batch_number, len(arm_block))
    return seeded_random(seed, "arms", number).sample(arm_block, len(arm_block))[position]


@dataclass(frozen=True, slots=True)
class DrawnBatch:
    number: int
    arm_id: int
    items: tuple[tuple[int, DrawnItem], ...]  # (section id, item)


# Advice if a batch cannot be filled, by the part of the study that lacks something.
SHORTAGE_ADVICE = {
    "prompts": "Import more prompts and outputs, or lower the number of items that sections show (m).",
    "systems": "Add another system with its outputs, or show more systems in this arm.",
    "contrasts": "Plan a comparison of two of the arm's systems, or show other pairs.",
    "test_questions": "Make more test questions, lower their share, or lower the number of items that sections show (m).",
    "target_n": "Lower the target, import more prompts, or choose another labelling strategy.",
}


class BatchDraw:
    """The parts of a design that the draw needs, as plain ids, read once."""

    def __init__(self, study: Study):
        self.study = study
        self.seed = study.seed
        self.is_balanced = study.drawing_version >= Study.BALANCED_DRAWING
        # Sort here by code point. A database sorts by its collation, and the draw must not depend on that.
        self.arms = sorted(study.arms.order_by(), key=lambda arm: arm.name)
        arm_systems: dict[int, list[int]] = {arm.pk: [] for arm in self.arms}
        rows = list(study.systems.judged().order_by().values_list("pk", "name", "is_human"))
        names = {system: name for system, name, _ in rows}
        systems = sorted(names, key=names.__getitem__)
        for arm_id, system_id in ArmSystem.objects.filter(arm__study=study).values_list("arm_id", "system_id"):
            if system_id in names:
                arm_systems[arm_id].append(system_id)
        for system_ids in arm_systems.values():
            system_ids.sort(key=names.__getitem__)
        # A study and its copy have different ids, and the draw must not depend on them.
        self.places = {system: position for position, system in enumerate(systems)}
        self.systems = {arm.pk: arm_systems[arm.pk] or systems for arm in self.arms}
        self.sections = list(study.sections.order_by("position"))
        self.section_arms: dict[int, set[int]] = {section.pk: set() for section in self.sections}
        section_arms = SectionArm.objects.filter(section__study=study)
        for section_id, arm_id in section_arms.values_list("section_id", "arm_id"):
            self.section_arms.setdefault(section_id, set()).add(arm_id)
        self.human = frozenset(system for system, _, is_human in rows if is_human)
        self.test_questions = TestQuestionDraw(study, study.seed)
        # Practice reveals who wrote a text, so an annotator must not see that text again in a live section.
        self.practice_items, practised = self._load_practice_items()
        by_key = sorted(study.prompts.order_by().values_list("key", "pk", "domain", "group"))
        prompts = [(pk, domain) for _, pk, domain, _ in by_key if pk not in practised]
        self.groups = {pk: group for _, pk, _, group in by_key if group}
        self.outputs: dict[tuple[int, int], tuple[int, ...]] = {}
        outputs = Output.objects.filter(system__study=study).order_by("prompt_id", "system_id", "sample")
        for prompt, system, output in outputs.values_list("prompt_id", "system_id", "pk"):
            self.outputs[prompt, system] = (*self.outputs.get((prompt, system), ()), output)
        self.prompts_by_arm = {
            arm.pk: [prompt for prompt, domain in prompts if not arm.domain or domain == arm.domain]
            for arm in self.arms
        }
        self.prompts = {
            arm.pk: [
                prompt
                for prompt in self.prompts_by_arm[arm.pk]
                if all((prompt, system) in self.outputs for system in self.systems[arm.pk])
            ]
            for arm in self.arms
        }

    def _load_practice_items(self) -> tuple[dict[tuple[int, int], list[tuple[int, str]]], set[int]]:
        """Return the items made in the draft, by section and arm, and all their prompts. They match the arm's domain and its systems."""
        training = [section.pk for section in self.sections if section.purpose == Section.Purpose.TRAINING]
        if not training:
            return {}, set()
        rows = self.study.items.filter(section__in=training, kind=Item.Kind.PRACTICE)
        items: dict[int, tuple[int, str, str, set[int]]] = {}
        practised: set[int] = set()
        for section, item, prompt, kind, domain, system in rows.order_by(
            "section_id", "number", "exposures__number"
        ).values_list("section_id", "pk", "prompt_id", "kind", "prompt__domain", "exposures__output__system_id"):
            practised.add(prompt)
            items.setdefault(item, (section, kind, domain, set()))[3].add(system)
        draft_items: dict[tuple[int, int], list[tuple[int, str]]] = {}
        for item, (section, kind, domain, systems) in items.items():
            for arm in self.arms:
                is_of_domain = not arm.domain or domain in ("", arm.domain)
                if is_of_domain and systems <= set(self.systems[arm.pk]):
                    draft_items.setdefault((section, arm.pk), []).append((item, kind))
        return draft_items, practised

    def sections_with_own_items(self, arm_id: int) -> list:
        """Return the arm's sections that show their own items."""
        return [
            section
            for section in self.sections
            if REGISTRY[section.protocol].has_items
            and section.reuses_id is None
            and section.m
            and (not self.section_arms[section.pk] or arm_id in self.section_arms[section.pk])
        ]

    def batches(self) -> Iterator[DrawnBatch]:
        """Yield batches from number 0, without end. Raise UnfillableBatch if a batch cannot be filled."""
        supplies: dict[tuple, PromptQueue] = {}
        block = build_arm_block(self.arms)
        k = 0
        while True:
            arm = arm_of_batch(block, self.seed, k)
            yield DrawnBatch(k, arm.pk, tuple(self._draw_items(k, arm, supplies)))
            k += 1

    def _draw_items(self, batch_number, arm, queues) -> Iterator[tuple[int, DrawnItem]]:
        used_prompts: set[int] = set()
        for section in self.sections_with_own_items(arm.pk):
            try:
                yield from self._draw_section_items(section, batch_number, arm, used_prompts, queues)
            except UnfillableBatch as spent:
                raise self._explain_shortage(spent, section, arm, batch_number, used_prompts) from None

    def _explain_shortage(
        self, shortage: UnfillableBatch, section, arm, batch_number: int, used_prompts: set[int]
    ) -> UnfillableBatch:
        """Return the same error with the batch and the section that cannot be filled."""
        arm_text = f" of arm {arm.name}" if len(self.arms) > 1 else ""
        used_text = f" besides the {len(used_prompts)} that this batch already holds" if used_prompts else ""
        return UnfillableBatch(
            f"Batch {batch_number + 1}{arm_text} cannot be filled: for section {section.position} {shortage}{used_text}. {SHORTAGE_ADVICE[shortage.field]}",
            shortage.field,
        )

    def _draw_section_items(
        self, section, batch_number, arm, used_prompts: set[int], queues
    ) -> Iterator[tuple[int, DrawnItem]]:
        # Before the live items, because there are fewer of them to choose from.
        rng = seeded_random(self.seed, "batch", batch_number, "test questions", section.position)
        test_items = self.test_questions.take(section, self.systems[arm.pk], used_prompts, batch_number, rng)
        prompts = self.prompts[arm.pk]
        rng = seeded_random(self.seed, "batch", batch_number, "section", section.position)
        turns: dict[int, tuple[int, int]] = {}
        if own_items := self.practice_items.get((section.pk, arm.pk)):
            # The second attempt at a test has items of its own if there are enough.
            n_sets = 2 if section.pass_mark is not None and len(own_items) >= 2 * section.m else 1
            for own, kind in rng.sample(own_items, min(n_sets * section.m, len(own_items))):
                yield section.pk, DrawnItem(item=own, kind=kind)
            return
        sources = REGISTRY[section.protocol].candidate_systems_by_place(section, self.systems[arm.pk], self.human, rng)
        if sources:
            prompt_ids = self._draw_from_source_systems(section, arm, sources, used_prompts, rng, queues)
        elif self.study.coverage == Study.Coverage.INDEPENDENT:
            unused = [prompt for prompt in prompts if prompt not in used_prompts]
            require_prompts(section.m, len(unused))
            prompt_ids = rng.sample(unused, section.m)
        else:
            supply = queues.get((section.pk, arm.pk)) or self._open_queue(section, arm, queues)
            prompt_ids = supply.take(section.m, used_prompts)
            turns = supply.turns
        pool = StimulusPool(
            prompt_ids,
            self.systems[arm.pk],
            self.outputs,
            turns=turns,
            sources=sources,
            is_balanced=self.is_balanced,
        )
        for item in REGISTRY[section.protocol].draw(section, pool, rng):
            if item.prompt is not None:
                used_prompts.add(item.prompt)
            yield section.pk, item
        for item in test_items:
            yield section.pk, item

    def _open_queue(self, section, arm, queues) -> PromptQueue:
        purpose = self.seed, "pass", section.position, self.arms.index(arm)
        sets = REGISTRY[section.protocol].turn_sets(section, self.systems[arm.pk]) if self.is_balanced else ()
        prompts = self.prompts[arm.pk]
        # Answers about all that a batch showed are about independent sets of prompts only if no two batches share a group.
        whole = section.m if REGISTRY[section.protocol].has_directed_questions else 0
        queue = (
            TurnQueue(sets, prompts, *purpose, groups=self.groups)
            if sets
            else PromptQueue(prompts, *purpose, groups=self.groups, whole_groups_of=whole)
        )
        return queues.setdefault((section.pk, arm.pk), queue)

    def _draw_from_source_systems(
        self, section, arm, sources, used_prompts: set[int], rng: Random, queues
    ) -> list[int]:
        """Return a prompt for each place, such that one of the place's systems has an output for it. All texts are shown equally often."""
        prompt_ids: list[int] = []
        for source in sources:
            taken = used_prompts | set(prompt_ids)
            key = (section.pk, arm.pk, source)
            if key not in queues:
                prompts = [
                    p for p in self.prompts_by_arm[arm.pk] if any((p, system) in self.outputs for system in source)
                ]
                queue_key = ("pass", section.position, self.arms.index(arm), [self.places[system] for system in source])
                queues[key] = PromptQueue(prompts, self.seed, *queue_key, groups=self.groups)
            if self.study.coverage == Study.Coverage.INDEPENDENT:
                unused = [prompt for prompt in queues[key].prompts if prompt not in taken]
                require_prompts(1, len(unused))
                prompt_ids.append(rng.choice(unused))
            else:
                prompt_ids += queues[key].take(1, taken)
        return prompt_ids


def item_content_hash(prompt_id: int | None, output_ids: Iterable[int], kind: str) -> str:
    """Return the hash of an item's prompt, set of outputs and kind. Items with the same hash are the same item."""
    return hashlib.sha256(repr((prompt_id, sorted(output_ids), kind)).encode()).hexdigest()


def item_key(section_id: int, drawn_item: DrawnItem) -> tuple[int, str]:
    """Return the key that identifies an item: its section and content hash."""
    return section_id, item_content_hash(drawn_item.prompt, drawn_item.outputs, drawn_item.kind)


@transaction.atomic
def create_missing_and_get_all_items(
    study: Study, drawn_items: Iterable[tuple[int, DrawnItem]]
) -> dict[tuple[int, str], Item]:
    """Return the study's items by key, after creating the missing ones. New items are numbered in the order of the records."""
    items = {(item.section_id, item.content): item for item in study.items.all()}
    counts: dict[int, int] = {}  # the highest item number in each section
    for (section_id, _), item in items.items():
        counts[section_id] = max(counts.get(section_id, 0), item.number)
    new_items: list[Item] = []
    new_outputs: list[tuple[int, ...]] = []
    for section_id, record in drawn_items:
        key = item_key(section_id, record)
        if key not in items:
            counts[section_id] = number = counts.get(section_id, 0) + 1
            items[key] = Item(
                study=study,
                section_id=section_id,
                number=number,
                prompt_id=record.prompt,  # type: ignore[misc]  # a new item has a prompt
                kind=record.kind,
                content=key[1],
            )
            new_items.append(items[key])
            new_outputs.append(record.outputs)
    Item.objects.bulk_create(new_items, batch_size=500)
    Exposure.objects.bulk_create(
        (
            Exposure(item=item, output_id=output, number=number)
            for item, outputs in zip(new_items, new_outputs, strict=True)
            for number, output in enumerate(outputs)
        ),
        batch_size=1000,
    )
    return items


@transaction.atomic
def store_drawn_batches(
    study: Study,
    drawn_batches: list[DrawnBatch],
    *,
    places_per_batch: int,
    origin: str = Batch.Origin.DRAWN,
    first_number: int | None = None,
    keys: list[str] | None = None,
) -> list[Batch]:
    """Store drawn batches with their items. An item with existing content is reused. The number of queries is constant."""
    records = [(section, record) for batch in drawn_batches for section, record in batch.items if record.item is None]
    items = create_missing_and_get_all_items(study, records)
    placed: list[list[Item | int]] = [
        [items[item_key(section, record)] if record.item is None else record.item for section, record in batch.items]
        for batch in drawn_batches
    ]
    batches = Batch.objects.bulk_create(
        (
            Batch(
                study=study,
                arm_id=batch.arm_id,
                wanted=places_per_batch,
                origin=origin,
                key=keys[number] if keys else "",
                number=batch.number if first_number is None else first_number + number,
            )
            for number, batch in enumerate(drawn_batches)
        ),
        batch_size=500,
    )
    Placement.objects.bulk_create(
        (
            Placement(batch=batch, item_id=item if isinstance(item, int) else item.pk, number=number)
            for batch, batch_items in zip(batches, placed, strict=True)
            for number, item in enumerate(batch_items)
        ),
        batch_size=1000,
    )
    return batches


def draw_batches(
    study: Study, first_number: int, count: int, progress=lambda done, total, doing="": None
) -> list[DrawnBatch]:
    """Return batches first .. first + count - 1 without storing them. Raise UnfillableBatch if one cannot be filled."""
    drawn = []
    for batch in islice(BatchDraw(study).batches(), first_number + count):
        if batch.number >= first_number:
            drawn.append(batch)
            if not len(drawn) % 50:
                progress(len(drawn), count, "Drawing batches")
    return drawn
