"""Draw the test questions of a batch: items with a known answer, made in the draft, among the drawn ones."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import floor
from random import Random
from typing import Any

from studies.models import FIRST_TEST_NUMBER, Exposure, Item, System
from studies.protocols import REGISTRY, DrawnItem, UnfillableBatch
from studies.protocols.base.test_questions import TestQuestionSettings

from .seeds import seeded_random

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


class TestQuestionDraw:
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


def has_test_question_settings(section: Any) -> bool:
    """Return whether the section's protocol can have test questions."""
    protocol = REGISTRY.get(section.protocol)
    return protocol is not None and issubclass(protocol.settings_form or object, TestQuestionSettings)


def shows_one_output(section: Any) -> bool:
    """Return whether a page of the section shows the output of one system only."""
    return REGISTRY[section.protocol].cleaned_settings(section).get("shown") == "one"
