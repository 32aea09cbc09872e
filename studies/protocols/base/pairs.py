"""Pairs of systems whose outputs are shown side by side: which pairs a section shows and a batch gets."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from random import Random
from typing import Any

from django import forms
from django.db.models import Count, Q

from .balance import ShownCounts, in_balanced_order
from .drawing import DrawnItem, StimulusPool, UnfillableBatch
from .problems import Problem
from .references import EXTREME_REFERENCES, Reference
from .test_questions import TestQuestionSettings

Pair = tuple[int, int]
PAIR_CHOICES = [
    ("all", "all pairs of systems"),
    ("chain", "neighbouring systems, in the order given below"),
    ("reference", "each system with the reference"),
    ("chosen", "the pairs of the planned comparisons"),
]


class PairSettings(TestQuestionSettings):
    """The settings that all protocols with pairs share."""

    pairs = forms.ChoiceField(
        choices=PAIR_CHOICES,
        initial="all",
        help_text="An item is a prompt with the outputs of one pair; m counts items. Maximal and minimal references are shown only "
        "if a planned comparison names them.",
    )
    order = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 3}),
        required=False,
        initial="",
        label="order of the systems",
        help_text="For neighbouring systems: one name per line. Systems that you do not list come last. Empty: by name.",
    )


def order_systems(names_by_id: Mapping[int, str], listed_names: str) -> list[int]:
    """Return the ids of systems in the researcher's order: listed names first, one per line, then the others by name."""
    places = {name.strip(): position for position, name in enumerate(listed_names.splitlines())}
    return sorted(names_by_id, key=lambda pk: (places.get(names_by_id[pk], len(places)), names_by_id[pk]))


def unknown_system_names(study: Any, listed_names: str) -> list[str]:
    """Return the listed names that are not systems of the study."""
    names = [name.strip() for name in listed_names.splitlines() if name.strip()]
    known_names = set(study.systems.judged().values_list("name", flat=True))
    return [name for name in names if name not in known_names]


def shown_pairs(section: Any, settings: Mapping[str, Any], system_ids: Sequence[int]) -> list[Pair]:
    """Return the pairs of ids of these systems that the section shows."""
    if not hasattr(section, "_of_pairs"):  # cached, because this runs for every batch
        planned = section.study.contrasts.filter(x__isnull=False).filter(Q(section=None) | Q(section=section.pk))
        rows = list(section.study.systems.values_list("pk", "name", "reference"))
        section._of_pairs = (
            {frozenset(pair) for pair in planned.values_list("x_id", "y_id")},
            {pk: name for pk, name, _ in rows},
            {pk: reference for pk, _, reference in rows},
        )
    planned, names, references = section._of_pairs
    if settings["pairs"] == "chosen":
        return [pair for pair in combinations(system_ids, 2) if frozenset(pair) in planned]
    shown_ids = [pk for pk in system_ids if references[pk] not in EXTREME_REFERENCES]
    match settings["pairs"]:
        case "all":
            pairs = list(combinations(shown_ids, 2))
        case "chain":
            pairs = list(pairwise(order_systems({pk: names[pk] for pk in shown_ids}, settings["order"])))
        case _:
            against = [pk for pk in shown_ids if references[pk] == Reference.ORDINARY]
            pairs = [(pk, other) for other in against for pk in shown_ids if references[pk] != Reference.ORDINARY]
    shown_pair_sets = {frozenset(pair) for pair in pairs}
    ends = [pk for pk in system_ids if references[pk] in EXTREME_REFERENCES]
    return pairs + [
        pair
        for pair in combinations(system_ids, 2)
        if set(pair) & set(ends) and frozenset(pair) in planned and frozenset(pair) not in shown_pair_sets
    ]


def draw_pair_items(
    pairs: Sequence[Pair], m: int, pool: StimulusPool, rng: Random, *, without_repeats: bool = False
) -> list[DrawnItem]:
    """Return a pair for each of m prompts, as ``draw_items_of_sets`` does. Raise UnfillableBatch if no pair is shown."""
    if not pairs:
        raise UnfillableBatch(*_no_pair_reason(len(pool.systems)))
    sets = in_balanced_order(tuple(pairs)) if pool.is_balanced else tuple(pairs)
    return draw_items_of_sets(sets, m, pool, rng, without_repeats=without_repeats)


def draw_items_of_sets(
    sets: Sequence[tuple[int, ...]], m: int, pool: StimulusPool, rng: Random, *, without_repeats: bool = False
) -> list[DrawnItem]:
    """Return a set of systems for each of m prompts, with an output of each system. In balanced coverage a prompt's sets take turns.

    So every item is drawn once before any is drawn again. In independent coverage, a batch shows the sets equally often. With
    ``without_repeats`` no item is drawn again, and the last batch may be shorter.

    Raise UnfillableBatch if not enough items are left.
    """
    items = []
    counts = ShownCounts(sets)
    for prompt in pool.prompts[:m]:
        if pool.is_balanced and prompt not in pool.turns:
            shown = counts.pick_and_count(dict.fromkeys(sets, 1), rng)
        else:
            first, turn = pool.turns.get(prompt, (rng.randrange(len(sets)), 0))
            if without_repeats and turn >= len(sets):
                continue
            shown = sets[(first + turn) % len(sets)]
        items.append(DrawnItem(prompt, tuple(rng.choice(pool.outputs[prompt, system]) for system in shown)))
    if m and not items:
        raise UnfillableBatch(
            "each pair of each prompt has been drawn once, and the labelling strategy draws none twice", "target_n"
        )
    return items


def _no_pair_reason(n: int) -> tuple[str, str]:
    """Return why these systems form no pair, and the part of the study in which to change this."""
    if n < 2:
        return f"two systems are needed to make a pair and there {'is 1' if n == 1 else 'are none'}", "systems"
    return "none of the pairs that the section shows is made of these systems", "contrasts"


def pair_problems(section: Any, settings: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what is missing or wrong in the pairs of a section."""
    study = section.study
    if section.m < 1:
        yield Problem("Annotators must see at least one pair. Set m to 1 or more.", "m")
    systems = list(study.systems.judged().order_by("name").values_list("pk", flat=True))
    pairs = {frozenset(pair) for pair in shown_pairs(section, settings, systems)}
    if len(systems) < 2:
        yield Problem(
            f"A pair needs two systems, but the study has {len(systems) or 'none'}. Add a system and import its outputs.",
            "systems",
        )
    elif not pairs:
        missing = {
            "chosen": "No pair is chosen. Plan a comparison of two systems, or let the section show all pairs.",
            "reference": "No system is marked as the reference. Mark one under Systems, or let the section show all pairs.",
        }
        message = "No pair is shown. Plan a comparison with a maximal or minimal reference, or add a system."
        yield Problem(missing.get(settings["pairs"], message), "contrasts")
    for name in unknown_system_names(study, settings["order"]):
        yield Problem(f"The order of the systems names {name}, which is not a system of this study.", "settings")
    planned = study.contrasts.filter(x__isnull=False).select_related("x", "y", "section")
    for contrast in planned:
        if contrast.section_id in (None, section.pk) and frozenset((contrast.x_id, contrast.y_id)) not in pairs:
            yield Problem(
                f"The comparison {contrast} is planned, but this section does not show its pair.", "contrasts"
            )
    n_wrong = section.design_items.annotate(n=Count("exposures")).exclude(n=2).count() if section.pk else 0
    if n_wrong:
        yield Problem(f"{n_wrong} ready-made items do not have exactly two outputs.", "batches")


def unordered_pair_key(x: str, y: str) -> str:
    """Return the key of a pair, made from both names, as in the claims of ``analysis.data.planned_labels``."""
    return "\x1f".join(sorted((x, y)))
