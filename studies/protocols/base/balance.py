"""Balance within one person: which systems they meet how often, and at which position a page shows each of them."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from random import Random

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
