"""The order of sections and items on one person's pages, and the letters of outputs. All are drawn from the assignment's seed."""

from collections.abc import Sequence
from string import ascii_uppercase

from annotators.places.batch_plan import BatchPlan, PlannedSection
from studies.design.seeds import seeded_random
from studies.models import Study
from studies.protocols import REGISTRY, PageItem
from studies.protocols.base.balance import draw_balanced_positions


def letter_label(index: int) -> str:
    """Return the n-th label: A, B, … Z, AA, AB, …"""
    return (letter_label(index // 26 - 1) if index >= 26 else "") + ascii_uppercase[index % 26]


def order_sections(plan: BatchPlan, seed: int) -> Sequence[PlannedSection]:
    """Return the sections in order: screening, training, then live sections in the order of the design or at random.

    A section that reuses another always comes directly after it, because it asks about what was just read.
    """
    order = {"screening": 0, "training": 1, "live": 2}
    sections = sorted(plan.sections, key=lambda section: (order[section.purpose], section.position))
    if plan.wording.study["section_order"] != Study.SectionOrder.COUNTERBALANCED:
        return sorted(plan.sections, key=lambda section: (section.purpose != "screening", section.position))
    heads = [
        section
        for section in sections
        if section.purpose == "live" and section.reuses is None and REGISTRY[section.protocol].has_items
    ]
    shuffled = iter(seeded_random(seed, "sections").sample(heads, len(heads)))
    arranged: list[PlannedSection] = []
    for section in sections:
        if section in heads:
            head = next(shuffled)
            arranged.append(head)
            arranged += [section for section in sections if section.reuses == head.position]
        elif section.reuses is None:
            arranged.append(section)
    return arranged


def order_and_label_items(
    plan: BatchPlan, source: PlannedSection, seed: int, letters: tuple[str, ...]
) -> tuple[PageItem, ...]:
    """Return the section's items in this person's order, with the letters of their exposures.

    The letters belong to the section or are drawn for each item. Those of items are balanced: within the person, each pair of systems is shown
    each way equally often, and each system at each position.
    """
    order = seeded_random(seed, "items", source.position).sample(source.items, len(source.items))
    if REGISTRY[source.protocol].labels == "section" or source.settings.get("labels") == "fixed":
        item_letters = [letters] * len(order)
    elif plan.wording.is_balanced:
        sorted_letters = sorted(letters, key=_letter_key)
        systems = [[plan.source_numbers[exposure] for _, exposure in exposures] for _, exposures in order]
        positions = draw_balanced_positions(systems, seeded_random(seed, "positions", source.position))
        item_letters = [tuple(sorted_letters[position] for position in row) for row in positions]
    else:
        item_letters = [tuple(seeded_random(seed, "item", item).sample(letters, len(letters))) for item, _ in order]
    items = []
    for position, ((item, exposures), own) in enumerate(zip(order, item_letters, strict=True), 1):
        labelled = ((own[number], exposure) for number, exposure in exposures)
        items.append(PageItem(position, item, tuple(sorted(labelled, key=lambda pair: _letter_key(pair[0])))))
    return tuple(items)


def _letter_key(letter: str) -> tuple[int, str]:
    return len(letter), letter
