"""Draw batches from a study's design. Batch k depends only on the seed, k and the design; the stored rows are the record."""

import hashlib
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain, count, islice
from math import floor, gcd
from random import Random
from typing import Any, TypeVar

from django.db import transaction

from studies.design.subjects import numbered_name
from studies.models import (
    FIRST_TEST_NUMBER,
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
    System,
)
from studies.protocols import REGISTRY, DrawnItem, StimulusPool, UnfillableBatch
from studies.protocols.base.known_answers import KnownAnswerSettings
from studies.protocols.base.pairs import Shown, ShownCounts

# Random generators that a seed and a purpose determine.


def seeded_random(seed: int, *purpose: object) -> Random:
    """Return a separate generator for each purpose. The same seed and purpose always give the same numbers."""
    digest = hashlib.sha256("|".join(map(str, (seed, *purpose))).encode()).digest()
    return Random(int.from_bytes(digest))


# Group batches by the prompts that they share.


def group_batches_by_shared_prompts(prompts: Mapping[int, Set[Hashable]]) -> dict[int, int]:
    """Return the group of each batch, from 0. Batches are in one group if a chain of shared prompts connects them.

    So groups share no prompt and are independent samples of prompts. Batches that share nine of ten prompts are not. Give the
    group of a prompt in place of a prompt that belongs to one: batches that share a document are not independent either.

    >>> group_batches_by_shared_prompts({1: {10, 11}, 2: {11, 12}, 3: {13}, 4: {12, 14}})
    {1: 0, 2: 0, 3: 1, 4: 0}
    """
    parents: dict[Hashable, Hashable] = {}

    def root_of(prompt: Hashable) -> Hashable:
        while (parent := parents.setdefault(prompt, prompt)) != prompt:
            parents[prompt] = prompt = parents[parent]
        return prompt

    for shared in prompts.values():
        first, *others = shared
        for other in others:
            parents[root_of(other)] = root_of(first)
    codes: dict[Hashable, int] = {}
    return {batch: codes.setdefault(root_of(next(iter(shared))), len(codes)) for batch, shared in prompts.items()}


# Which prompts a batch gets in balanced coverage.


def require_prompts(needed: int, left: int) -> None:
    """Raise UnfillableBatch if fewer prompts are left than are needed."""
    if left < needed:
        raise UnfillableBatch(
            f"{needed} more prompt{'' if needed == 1 else 's'} {'is' if needed == 1 else 'are'} needed and {left} "
            f"{'is' if left == 1 else 'are'} left"
        )


def _spread(members: Sequence[list[int]], rng: Random) -> list[int]:
    """Return the prompts in an order in which each group has about equal distances between its prompts."""
    at = {}
    for prompts in members:
        start = rng.random()
        at.update({prompt: (start + number) / len(prompts) for number, prompt in enumerate(prompts)})
    return sorted(at, key=at.__getitem__)


def _packed(members: Sequence[list[int]], size: int) -> list[int]:
    """Return the prompts such that each next ``size`` of them hold whole groups, as far as the groups fit.

    >>> _packed([[1, 2, 3], [4, 5], [6]], 4)
    [1, 2, 3, 6, 4, 5]
    """
    waiting, order, room = list(members), [], size
    while waiting:
        prompts = next((one for one in waiting if len(one) <= room), waiting[0])
        waiting.remove(prompts)
        order += prompts
        room = (room - len(prompts)) % size or size
    return order


class PromptQueue:
    """The prompts of one section and arm in balanced coverage. Each pass is a new shuffle of all prompts.

    A prompt that the batch already holds is skipped and stays in front for the next batch, so counts differ by at most
    one. ``turns`` gives, for each prompt taken, its place in the first pass and the pass in which it was last taken.

    ``groups``: the groups of prompts that belong together; other prompts are alone. A pass spreads each group evenly, so that a batch
    shows many groups. With ``whole_groups_of``, the size of a batch, a batch shows whole groups as far as they fit. Either way the
    prompts of a group have places in a row, so that a group shows all sets in turns.
    """

    def __init__(
        self,
        prompts: list[int],
        seed: int,
        *purpose: object,
        groups: Mapping[int, str] | None = None,
        whole_groups_of: int = 0,
    ):
        self.prompts, self.seed, self.purpose = prompts, seed, purpose
        self.groups = {prompt: groups[prompt] for prompt in prompts if prompt in groups} if groups else {}
        self.whole_groups_of = whole_groups_of
        self.queue: deque[tuple[int, int]] = deque()
        self.passes = 0
        self.places: dict[int, int] = {}
        self.turns: dict[int, tuple[int, int]] = {}

    def take(self, count: int, excluded: set[int]) -> list[int]:
        require_prompts(count, len(set(self.prompts) - excluded))
        taken: list[int] = []
        skipped: list[tuple[int, int]] = []
        while len(taken) < count:
            if not self.queue:
                self.queue.extend((prompt, self.passes) for prompt in self._next_pass())
                self.passes += 1
            prompt, number = self.queue.popleft()
            if prompt in excluded or prompt in taken:
                skipped.append((prompt, number))
            else:
                taken.append(prompt)
                self.turns[prompt] = self.places[prompt], number
        self.queue.extendleft(reversed(skipped))
        return taken

    def _next_pass(self) -> list[int]:
        rng = seeded_random(self.seed, *self.purpose, self.passes)
        order = rng.sample(self.prompts, len(self.prompts))
        if not self.groups:
            self.places = self.places or {prompt: position for position, prompt in enumerate(order)}
            return order
        by_group: dict[Hashable, list[int]] = {}
        for prompt in order:
            by_group.setdefault(self.groups.get(prompt, prompt), []).append(prompt)
        members = rng.sample(list(by_group.values()), len(by_group))
        self.places = self.places or {prompt: place for place, prompt in enumerate(chain.from_iterable(members))}
        return _packed(members, self.whole_groups_of) if self.whole_groups_of else _spread(members, rng)


class TurnQueue(PromptQueue):
    """The prompts of a section whose items show sets of systems in turns, such as pairs.

    Of the prompts that wait in a pass, a batch gets those whose turns show the sets and the systems equally often. The
    two numbers of a prompt's turn add up to the number of its set, modulo the number of sets.
    """

    def __init__(
        self,
        sets: Sequence[Shown],
        prompts: list[int],
        seed: int,
        *purpose: object,
        groups: Mapping[int, str] | None = None,
    ):
        super().__init__(prompts, seed, *purpose, groups=groups)
        self.sets = sets
        self.rng = seeded_random(seed, *purpose, "turns")
        self.waiting: dict[int, dict[Shown, list[int]]] = {}  # by pass and set

    def take(self, count: int, excluded: set[int]) -> list[int]:
        require_prompts(count, len(set(self.prompts) - excluded))
        counts = ShownCounts(self.sets)
        taken: list[int] = []
        while len(taken) < count:
            number, free = self._oldest_free(excluded | set(taken))
            n_left = {shown: len(prompts) for shown, prompts in free.items()}
            while n_left and len(taken) < count:
                shown = counts.pick_and_count(n_left, self.rng)
                n_left[shown] -= 1
                if not n_left[shown]:
                    del n_left[shown]
                prompt = free[shown].pop(0)
                self.waiting[number][shown].remove(prompt)
                self.turns[prompt] = self.sets.index(shown) - number, number
                taken.append(prompt)
        return taken

    def _oldest_free(self, excluded: set[int]) -> tuple[int, dict[Shown, list[int]]]:
        """Return the oldest pass in which prompts wait that are not excluded, and these prompts by set."""
        while True:
            for number, by_set in self.waiting.items():
                free = {
                    shown: [prompt for prompt in prompts if prompt not in excluded] for shown, prompts in by_set.items()
                }
                if free := {shown: prompts for shown, prompts in free.items() if prompts}:
                    return number, free
            self._open_pass()

    def _open_pass(self) -> None:
        self.waiting = {number: by_set for number, by_set in self.waiting.items() if any(by_set.values())}
        by_set = self.waiting[self.passes] = {shown: [] for shown in self.sets}
        # Each pass goes on where the last one ended, so that all sets are shown equally often over passes too. A step is
        # added whenever this would repeat a turn. So a prompt has had every set after as many passes as there are sets.
        n_sets, n_prompts = len(self.sets), len(self.prompts)
        shift = self.passes * n_prompts + self.passes * gcd(n_prompts, n_sets) // n_sets
        for prompt in self._next_pass():
            by_set[self.sets[(self.places[prompt] + shift) % n_sets]].append(prompt)
        self.passes += 1


# Draw the test questions of a batch: items with a known answer, made in the draft, among the drawn ones.


# A section with this many items or more has at least one test question in every batch.
ALWAYS_FROM = 10


@dataclass(slots=True)
class _TestItem:
    """A test question with the prompts that a batch must not show elsewhere, and the systems that it shows in their own place."""

    pk: int
    is_positive: bool
    prompts: set[int] = field(default_factory=set)
    systems: set[int] = field(default_factory=set)
    n_outputs: int = 0
    n_drawn: int = 0


class KnownAnswerDraw:
    """The test questions of a study's sections. Those that were drawn least often come first."""

    def __init__(self, study, seed: int):
        self.seed = seed
        self.items: dict[int, dict[int, _TestItem]] = {}
        rows = list(
            Exposure.objects.filter(item__study=study, item__kind=Item.Kind.TEST, item__number__lt=FIRST_TEST_NUMBER)
            .order_by("item__section__position", "item__number", "number")
            .values_list(
                "item__section_id",
                "item_id",
                "item__test_type",
                "item__prompt_id",
                "output__prompt_id",
                "output__system_id",
                "pk",
            )
        )
        if not rows:
            return
        made_up = set(study.systems.filter(reference=System.Reference.TEST).values_list("pk", flat=True))
        planted = set(
            study.items.filter(kind=Item.Kind.TEST, expected__about__isnull=False).values_list(
                "expected__about", flat=True
            )
        )
        for section, pk, test_type, prompt, own_prompt, system, exposure in rows:
            is_positive = test_type == Item.TestType.POSITIVE
            item = self.items.setdefault(section, {}).setdefault(pk, _TestItem(pk, is_positive))
            # The page shows the text of another prompt as if it answered this one, so neither may be seen twice.
            item.prompts |= {prompt, own_prompt}
            item.n_outputs += 1
            if exposure not in planted and system not in made_up and own_prompt == prompt:
                item.systems.add(system)
        for items in self.items.values():
            for item in items.values():
                if item.n_outputs == 1:
                    # The only output is the planted one. It may be of a reference that the arm does not show.
                    item.systems.clear()

    def take(
        self, section: Any, systems: Sequence[int], used_prompts: set[int], batch_number: int, rng: Random
    ) -> list[DrawnItem]:
        """Return the test questions of one batch, and add their prompts to ``used_prompts``.

        ``systems``: those that the batch's arm shows. Raise UnfillableBatch if too few test questions are left.
        """
        items = self.items.get(section.pk)
        if not items:
            return []
        drawn = []
        protocol = REGISTRY[section.protocol]
        shows_every_system = protocol.comparison_scope != "pair"
        n_outputs = 1 if shows_one_output(section) else len(systems)
        fitting = [
            item
            for item in items.values()
            if not shows_every_system or (item.systems <= set(systems) and item.n_outputs == n_outputs)
        ]
        for is_positive, wanted in self._counts(section, batch_number).items():
            same_type = [item for item in fitting if item.is_positive == is_positive] or fitting
            for _ in range(wanted):
                free = [item for item in same_type if not item.prompts & used_prompts]
                if not free:
                    raise UnfillableBatch("no test question is left whose prompt is new to the batch", "test_questions")
                fewest = min(item.n_drawn for item in free)
                item = rng.choice([item for item in free if item.n_drawn == fewest])
                item.n_drawn += 1
                used_prompts |= item.prompts
                drawn.append(DrawnItem(item=item.pk, kind=Item.Kind.TEST))
        return drawn

    def _counts(self, section: Any, batch_number: int) -> dict[bool, int]:
        """Return how many positive (True) and other (False) test questions a batch has.

        Over all batches each type has its share of the live items. Single batches differ by one, and the first numbers
        are random, so that no place in a batch is known.
        """
        settings = REGISTRY[section.protocol].cleaned_settings(section)
        shares = {True: settings["positive_share"], False: settings["negative_share"]}
        counts = {}
        for is_positive, share in shares.items():
            start = seeded_random(self.seed, "test questions", section.position, is_positive).random()
            rate = share * section.m
            counts[is_positive] = floor((batch_number + 1) * rate + start) - floor(batch_number * rate + start)
        has_shares = any(shares.values())
        if has_shares and section.m >= ALWAYS_FROM and not any(counts.values()):
            counts[shares[True] > shares[False] or (shares[True] == shares[False] and batch_number % 2 == 0)] = 1
        return counts


T = TypeVar("T")


def items_shown_again(items: Iterable[T], m: int, is_test: Callable[[T], bool]) -> tuple[T, ...]:
    """Return what a section shows that repeats these items of another: the first ``m`` live items, and every test question."""
    places = count()
    return tuple(item for item in items if is_test(item) or next(places) < m)


def has_test_question_settings(section: Any) -> bool:
    """Return whether the section's protocol can have test questions."""
    protocol = REGISTRY.get(section.protocol)
    return protocol is not None and issubclass(protocol.settings_form or object, KnownAnswerSettings)


def shows_one_output(section: Any) -> bool:
    """Return whether a page of the section shows the output of one system only."""
    return REGISTRY[section.protocol].cleaned_settings(section).get("shown") == "one"


def has_own_prompts(section: Any) -> bool:
    """Return whether each system of the section has prompts of its own, of which an annotator reads m."""
    return REGISTRY[section.protocol].cleaned_settings(section).get("prompts") == "own"


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
        self.arms = sorted(study.arms.all(), key=lambda arm: arm.name)
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
        self.sections = list(study.sections.all())
        self.section_arms: dict[int, set[int]] = {section.pk: set() for section in self.sections}
        section_arms = SectionArm.objects.filter(section__study=study)
        for section_id, arm_id in section_arms.values_list("section_id", "arm_id"):
            self.section_arms.setdefault(section_id, set()).add(arm_id)
        self.human = frozenset(system for system, _, is_human in rows if is_human)
        self.test_questions = KnownAnswerDraw(study, study.seed)
        # Practice reveals who wrote a text, so an annotator must not see that text again in a live section.
        self.practice_items, practised = self._load_practice_items()
        self._own_prompts: dict[int, dict[int, list[int]]] = {}
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

    def own_prompts(self, section: Section) -> dict[int, list[int]]:
        """Return the prompts of each system if systems have prompts of their own. A prompt, with its group, belongs to one system.

        Those with the fewest systems to choose from are given first, each to the system that has the fewest. So the prompts of two
        systems are independent samples.
        """
        if section.pk not in self._own_prompts:
            rng = seeded_random(self.seed, "own prompts", section.position)
            shown = {system for systems in self.systems.values() for system in systems}
            units: dict[Hashable, list[int]] = {}
            for prompt in dict.fromkeys(chain.from_iterable(self.prompts_by_arm.values())):
                units.setdefault(self.groups.get(prompt, prompt), []).append(prompt)
            answered = {
                unit: [s for s in shown if any((prompt, s) in self.outputs for prompt in prompts)]
                for unit, prompts in units.items()
            }
            own: dict[int, list[int]] = {system: [] for system in sorted(shown, key=self.places.__getitem__)}
            for unit in sorted(rng.sample(list(units), len(units)), key=lambda unit: len(answered[unit])):
                if answered[unit]:
                    system = min(answered[unit], key=lambda system: (len(own[system]), self.places[system]))
                    own[system] += [prompt for prompt in units[unit] if (prompt, system) in self.outputs]
            self._own_prompts[section.pk] = own
        return self._own_prompts[section.pk]

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
        if not block:
            raise UnfillableBatch(field="arms")
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
            f"Batch {batch_number + 1}{arm_text} cannot be filled: for section {numbered_name(section)} {shortage}{used_text}. {SHORTAGE_ADVICE[shortage.field]}",
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
                groups, whole = self.groups, 0
                if has_own_prompts(section):
                    own, whole = set(self.own_prompts(section)[source[0]]), section.m
                    prompts = seeded_random(self.seed, "own sets", *queue_key[1:]).sample(
                        [prompt for prompt in prompts if prompt in own], len(own.intersection(prompts))
                    )
                    if not any(prompt in groups for prompt in prompts):
                        # Sets of m prompts stay together in all passes, so that each is one draw from the system's prompts.
                        prompts = prompts[: max(whole, len(prompts) // whole * whole)]
                        groups = {prompt: str(place // whole) for place, prompt in enumerate(prompts)}
                queues[key] = PromptQueue(prompts, self.seed, *queue_key, groups=groups, whole_groups_of=whole)
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
