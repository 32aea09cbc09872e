"""Pairs of systems whose outputs are shown side by side: which pairs a section shows and a batch gets."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations, pairwise
from random import Random
from typing import Any

from django import forms
from django.db.models import Count, TextChoices

from .known_answers import KnownAnswerSettings
from .protocol import DrawnItem, Problem, StimulusPool, UnfillableBatch

# Balance within one person: which systems they meet how often, and at which position a page shows each of them.


Shown = tuple[int, ...]


class ShownCounts:
    """How often one batch shows each system, and each set of systems."""

    def __init__(self, sets: Iterable[Shown] = ()):
        """``sets``: all sets that may be shown. A system of many sets, such as a reference, is shown more often than others."""
        self.n_sets = Counter(system for shown in sets for system in shown)
        self.systems: Counter[int] = Counter()
        self.sets: Counter[Shown] = Counter()

    def pick_and_count(self, n_left: Mapping[Shown, int], rng: Random) -> Shown:
        """Choose the set that was shown least, then the one with the rarest systems, and count it.

        ``n_left``: how often each set can still be chosen. Of equal sets, those are taken of which, and of whose systems, most
        is left, so that later batches can be balanced too. If these are equal too, a random one is taken.
        """
        systems_left: dict[int, int] = defaultdict(int)
        for shown, n in n_left.items():
            for system in shown:
                systems_left[system] += n

        def rarity(shown: Shown) -> tuple[float, ...]:
            counts = [self.systems[system] / self.n_sets[system] for system in shown]
            return sum(counts), max(counts), -n_left[shown], -sum(systems_left[system] for system in shown)

        fewest = min(self.sets[shown] for shown in n_left)
        ranks = {shown: rarity(shown) for shown in n_left if self.sets[shown] == fewest}
        first = min(ranks.values())
        chosen = rng.choice([shown for shown, rank in ranks.items() if rank == first])
        self.add(chosen)
        return chosen

    def add(self, shown: Shown) -> None:
        self.systems.update(shown)
        self.sets[shown] += 1

    def pick_and_count_systems(self, systems: Sequence[int], size: int, rng: Random) -> list[int]:
        """Choose this many of the systems, the rarest first and at random among equals, and count them. They keep their order."""
        by_count = sorted(rng.sample(systems, len(systems)), key=self.systems.__getitem__)
        chosen = set(by_count[:size])
        self.add(tuple(system for system in systems if system in chosen))
        return [system for system in systems if system in chosen]


@lru_cache(maxsize=64)
def in_balanced_order(sets: tuple[Shown, ...]) -> tuple[Shown, ...]:
    """Return the sets in an order in which neighbours show different systems, as far as possible.

    So a part of the sets, in this order, shows all systems about equally often.
    """
    left, ordered, counts = list(sets), [], ShownCounts(sets)
    while left:
        shown = min(
            left,
            key=lambda one: (sum(counts.systems[system] / counts.n_sets[system] for system in one), left.index(one)),
        )
        counts.add(shown)
        left.remove(shown)
        ordered.append(shown)
    return tuple(ordered)


def draw_balanced_positions(items: Sequence[Sequence[Hashable]], rng: Random) -> list[tuple[int, ...]]:
    """Return the position of each output on its page, such that positions are balanced over the items.

    ``items``: the system of each output, for each item. Over the items of one size, each system is at each position equally
    often, and of two systems each is first equally often in the items that show both: the counts differ by at most one.
    Everything else is random. As long as all items show the same systems, these are rows of random Latin squares.

    Items and their systems form a bipartite graph, in which positions are colours of edges. The items of a system are
    divided into groups of the size of an item, first among items with the same systems, then among the rest. An edge
    colouring of items and groups (Kőnig 1916) gives each position once to each item and at most once to each group.
    """
    positions: list[tuple[int, ...]] = [()] * len(items)
    by_size: dict[int, list[int]] = {}
    for index, systems in enumerate(items):
        by_size.setdefault(len(systems), []).append(index)
    for size, indices in by_size.items():
        colours = _colour_edges(_edges({index: items[index] for index in indices}, size, rng), size, rng)
        for index in indices:
            positions[index] = tuple(colours[index, place] for place in range(size))
    return positions


def _edges(items: Mapping[int, Sequence[Hashable]], size: int, rng: Random) -> list[tuple[int, int, tuple]]:
    """Return (item, place of the output in it, group) in random order. No group has more edges than an item has outputs."""
    by_set: dict[frozenset, list[int]] = {}
    for index in rng.sample(list(items), len(items)):
        by_set.setdefault(frozenset(_numbered_repeats(items[index])), []).append(index)
    whole = {index: n // size for same in by_set.values() for n, index in enumerate(same[: len(same) // size * size])}
    edges, n_rest = [], Counter[Hashable]()
    for same in by_set.values():
        for index in same:
            for place, system in enumerate(_numbered_repeats(items[index])):
                group: tuple[Hashable, ...]
                if index in whole:
                    group = (system, frozenset(_numbered_repeats(items[index])), whole[index])
                else:
                    group = (system, None, n_rest[system] // size)
                    n_rest[system] += 1
                edges.append((index, place, group))
    return rng.sample(edges, len(edges))


def _numbered_repeats(systems: Iterable[Hashable]) -> list[tuple[Hashable, int]]:
    """Return the systems with a number, so that two outputs of one system in an item differ."""
    seen: Counter[Hashable] = Counter()
    numbered = []
    for system in systems:
        numbered.append((system, seen[system]))
        seen[system] += 1
    return numbered


def _colour_edges(edges: list[tuple[int, int, tuple]], n: int, rng: Random) -> dict[tuple[int, int], int]:
    """Colour the edges of a bipartite graph with n colours, such that no node has a colour twice. No node has more than n edges."""
    at: dict[Hashable, dict[int, tuple[int, int, tuple]]] = defaultdict(dict)  # the edges of each node, by colour

    def follow(node: Hashable, colour: int, other: int) -> None:
        """Exchange the two colours on the path that leaves the node by an edge of the first colour."""
        path = []
        while colour in at[node]:
            edge = at[node][colour]
            path.append((edge, colour, other))
            node = edge[0] if node == edge[2] else edge[2]
            colour, other = other, colour
        for edge, old, _ in path:
            del at[edge[0]][old], at[edge[2]][old]
        for edge, _, new in path:
            at[edge[0]][new] = at[edge[2]][new] = edge

    for edge in edges:
        item, _, group = edge
        free_of_item = [colour for colour in range(n) if colour not in at[item]]
        free_of_group = [colour for colour in range(n) if colour not in at[group]]
        common = [colour for colour in free_of_item if colour in free_of_group]
        colour = rng.choice(common or free_of_item)
        if not common:
            follow(group, colour, rng.choice(free_of_group))
        at[item][colour] = at[group][colour] = edge
    return {(item, place): colour for item, _, _ in edges for colour, (_, place, _) in at[item].items()}


# Select the planned comparisons that concern a section.


def system_contrasts_for_section(
    contrasts: Iterable[Any], section: Any, estimand: str, default_estimand: str
) -> list[Any]:
    """Return the contrasts of two systems for this section and estimand.

    A contrast without a section concerns every section. A contrast without an estimand concerns the default one.
    """
    return [
        contrast
        for contrast in contrasts
        if contrast.x_id
        and contrast.section_id in (None, section.pk)
        and (contrast.estimand == estimand or (not contrast.estimand and estimand == default_estimand))
    ]


# Reference systems: their role in the design and in protocols that show pairs.


class Reference(TextChoices):
    ORDINARY = "reference", "reference"
    MAXIMAL = "maximal", "maximal reference"
    MINIMAL = "minimal", "minimal reference"
    TEST = "test", "only in test questions"


# The planted ends of a rating scale. They are not systems under evaluation.
EXTREME_REFERENCES = (Reference.MAXIMAL, Reference.MINIMAL)


Pair = tuple[int, int]
PAIR_CHOICES = [
    ("all", "all pairs of systems"),
    ("chain", "neighbouring systems, in the order given below"),
    ("reference", "each system with the reference"),
    ("chosen", "the pairs of the planned comparisons"),
]


class PairSettings(KnownAnswerSettings):
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
        planned = [one for one in section.study.contrasts.all() if one.x_id and one.section_id in (None, section.pk)]
        systems = list(section.study.systems.all())
        section._of_pairs = (
            {frozenset((one.x_id, one.y_id)) for one in planned},
            {system.pk: system.name for system in systems},
            {system.pk: system.reference for system in systems},
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
