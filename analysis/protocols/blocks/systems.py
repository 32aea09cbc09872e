"""The systems of one question in their order: a sentence over all of them, and a table with the best first."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from studies.design.subjects import in_parentheses

from .cells import interval_bounds
from .layouts import Table, build_table
from .populations import heading_words, population_of

if TYPE_CHECKING:
    from analysis.stats.ranks import RankSets
    from analysis.stats.results import Estimate

# A sentence names at most this number of systems, and counts more.
MAX_NAMED = 4
PLACES = ("first", "second", "third", "fourth", "fifth", "sixth")


# What a planned comparison says of a pair, as (x, y, side): ">" or "<" if one is better, "~" if they are equivalent, "?" if it is open.
Decided = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemOrder:
    """The systems that one question compares, each with one estimate.

    ``measure`` is what orders them, such as "mean rating", and ``about`` is what the question is about ('' if the study has only one).
    ``sets``: the sets of ranks of the same question. ``claims``: the planned comparisons of the question. What they say of a pair
    takes the place of the sets, so that no sentence says more than the comparison of this pair. A pair without either has no order.
    """

    measure: str
    estimates: Sequence["Estimate"]
    about: str = ""
    sets: "RankSets | None" = None
    is_lower_better: bool = False
    claims: tuple[Decided, ...] = ()

    @property
    def population(self) -> str:
        return population_of(self.estimates[0]) if self.estimates else ""

    @property
    def ranks(self) -> "Ranks | None":
        """Return which systems are better than which, or None where some pair has neither a set of ranks nor a comparison."""
        claimed = claimed_pairs(self.claims)
        ranges = _ranges_of(self.sets)
        names = list(ranges) or [system_of(one) for one in sorted(self.estimates, key=self._best_first)]
        better: set[tuple[str, str]] = set()
        for one, other in combinations(names, 2):
            if (pair := frozenset((one, other))) in claimed:
                if decided := claimed[pair]:
                    better.add(decided)
            elif not ranges:
                return None
            elif ranges[one][1] < ranges[other][0]:
                better.add((one, other))
            elif ranges[other][1] < ranges[one][0]:
                better.add((other, one))
        return Ranks(tuple(names), frozenset(better)) if len(names) > 1 else None

    def sentence(self) -> str:
        """Return what is known of all systems together, or '' if that is not known."""
        ranks = self.ranks
        if ranks is None and (self.sets is None or len(self.sets.systems) < 2):
            return ""
        said = (
            ranks.sentence()
            if ranks
            else f"it is not known how sure the order is, because {self.sets and self.sets.reason}"
        )
        named = ["the planned comparisons"] if self.claims and ranks else []
        if self.sets is not None and not (ranks and set(claimed_pairs(self.claims)) >= ranks.pairs):
            named = [self.measure, *named]
        about = f" on {self.about}" if self.about else ""
        return f"By {' and '.join(named)}{about}: {said}{heading_words([self.population])}."

    def table(self) -> Table:
        """Return the systems, the best first, with the places that each may have."""
        ranks = self.ranks
        rows = [
            {
                "system": system_of(estimate),
                "estimate": estimate.estimate,
                "interval": interval_bounds(estimate),
                "places": ranks.places(system_of(estimate)) if ranks else "",
                "n": estimate.n,
            }
            for estimate in sorted(self.estimates, key=self._best_first)
        ]
        units = {f"{estimate.unit}s" for estimate in self.estimates}
        columns = (
            f"system|System|text; estimate|{self.measure[:1].upper()}{self.measure[1:]}|number; interval|95% CI|wide_interval; "
            f"places|Place|text; n|n {' or '.join(sorted(units))}|integer"
        )
        reasons = {one.reason: system_of(one) for one in self.estimates if one.reason}
        notes = [f"{system}: {reason}." for reason, system in reasons.items()]
        if ranks:
            compared = "the planned comparisons" if self.claims else "comparing all pairs at once"
            notes.insert(
                0,
                f"Place: where each system can be among all, as far as {compared} {'tell' if self.claims else 'tells'}.",
            )
        elif self.sets is not None and self.sets.reason:
            notes.append(f"No places: {self.sets.reason}.")
        title = (
            f"The systems by {self.measure}, best first{in_parentheses(self.about)}{heading_words([self.population])}"
        )
        warnings = self.sets.warnings if self.sets is not None else ()
        return build_table("answer", title, columns, rows, "answer", " ".join(notes), warnings)

    def _best_first(self, estimate: "Estimate") -> tuple[bool, float, str]:
        value = estimate.estimate or 0.0
        return estimate.estimate is None, value if self.is_lower_better else -value, system_of(estimate)


def system_of(estimate: "Estimate") -> str:
    """Return the system of an estimate about one system."""
    return str(estimate.settings.get("system") or estimate.detail.get("system"))


def claimed_pairs(claims: Iterable[Decided]) -> dict[frozenset[str], tuple[str, str] | None]:
    """Return the better and the other system of each compared pair; None where no comparison, or no agreement, says which it is."""
    found: dict[frozenset[str], set[tuple[str, str]]] = {}
    for x, y, side in claims:
        decided = {">": {(x, y)}, "<": {(y, x)}}.get(side, set())
        found.setdefault(frozenset((x, y)), set()).update(decided)
    return {pair: next(iter(decided)) if len(decided) == 1 else None for pair, decided in found.items()}


def _ranges_of(sets: "RankSets | None") -> dict[str, tuple[int, int]]:
    if sets is None or sets.low is None or sets.high is None:
        return {}
    return {str(name): (low, high) for name, low, high in zip(sets.systems, sets.low, sets.high, strict=True)}


@dataclass(frozen=True, slots=True)
class Ranks:
    """Systems, and the pairs of them of which the first is known to be better."""

    names: tuple[str, ...]
    better: frozenset[tuple[str, str]]

    @property
    def pairs(self) -> set[frozenset[str]]:
        return {frozenset(pair) for pair in combinations(self.names, 2)}

    def range(self, name: str) -> tuple[int, int]:
        """Return the best and the worst place that a system can have."""
        n_above = sum(other == name for _, other in self.better)
        return 1 + n_above, len(self.names) - sum(one == name for one, _ in self.better)

    def places(self, name: str) -> str:
        if name not in self.names:
            return ""
        low, high = self.range(name)
        return f"{low}" if low == high else f"{low} to {high}"

    def sentence(self) -> str:
        """Return which systems are best, and which cannot be distinguished, without a full stop."""
        names = self.names
        best = [name for name in names if self.range(name)[0] == 1]
        if len(names) == 2:
            if len(best) == 1:
                return f"{best[0]} is better than {next(name for name in names if name not in best)}"
            return f"it remains open whether {names[0]} or {names[1]} is better"
        if not best:
            return f"the comparisons form a circle, so none of {_named(names, 'and', 'the')} is best"
        if len(best) == len(names):
            return f"it remains open which of {_named(names, 'and', 'the')} is best"
        parts = [f"{best[0]} is best"]
        if len(best) > 1:
            parts = [f"{_named(best, 'or', 'one of')} is best, and it remains open which"]
        place = len(best) + 1
        for group in self._groups_after(best):
            low, high = self.range(group[0])
            if len(group) > 1:
                whole = "all " if any({one, other} <= set(group) for one, other in self.better) else ""
                parts.append(f"{_named(group, 'and', 'the')} cannot {whole}be distinguished")
            elif low == high:
                parts.append(f"{group[0]} is {PLACES[place - 1] if place <= len(PLACES) else f'number {place}'}")
            else:
                parts.append(f"{group[0]} can be in the places {low} to {high}")
            place += len(group)
        return "; ".join(parts)

    def _groups_after(self, best: Sequence[str]) -> list[list[str]]:
        """Return the other systems in groups: the places of each group come before those of the next ones."""
        rest = sorted((name for name in self.names if name not in best), key=lambda name: (*self.range(name), name))
        groups: list[list[str]] = []
        lowest = 0
        for name in rest:
            low, high = self.range(name)
            if groups and low <= lowest:
                groups[-1].append(name)
            else:
                groups.append([name])
            lowest = max(lowest, high)
        return groups


def _named(names: Sequence[str], last: str, counted: str) -> str:
    """Return the names with a word before the last one. More than ``MAX_NAMED`` are counted."""
    if len(names) > MAX_NAMED:
        return f"{counted} {len(names)} systems"
    return f"{', '.join(names[:-1])} {last} {names[-1]}" if len(names) > 1 else names[0]


def comparisons_sentence(decided: Iterable[Decided]) -> str:
    """Return what the planned comparisons say together; '' for fewer than two.

    >>> comparisons_sentence([("b", "a", ">"), ("b", "c", "<")])
    'All 2 planned comparisons are decided: c > b > a. Only neighbours in this order were compared.'
    >>> comparisons_sentence([("b", "a", ">"), ("c", "b", "?")])
    '1 of 2 planned comparisons is decided: b > a. It remains open which is better for c and b.'
    """
    decided = list(decided)
    if len(decided) < 2:
        return ""
    better = [(x, y) if side == ">" else (y, x) for x, y, side in decided if side in ("<", ">")]
    equal = [f"{x} ~ {y} (equivalent)" for x, y, side in decided if side == "~"]
    open_pairs = [f"{x} and {y}" for x, y, side in decided if side not in ("<", ">", "~")]
    n_decided = len(better) + len(equal)
    chains = _chains(better)
    found = "; ".join(_cut([*(" > ".join(chain) for chain in chains), *equal]))
    if not n_decided:
        return f"None of the {len(decided)} planned comparisons is decided."
    head = f"All {n_decided}" if n_decided == len(decided) else f"{n_decided} of {len(decided)}"
    verb = "is" if n_decided == 1 else "are"
    still = f" It remains open which is better for {_named_pairs(open_pairs)}." if open_pairs else ""
    compared = {frozenset((x, y)) for x, y, _ in decided}
    if any(frozenset(pair) not in compared for chain in chains for pair in combinations(chain, 2)):
        still = f" Only neighbours in this order were compared.{still}"
    return f"{head} planned comparisons {verb} decided: {found}.{still}"


def _cut(parts: list[str]) -> list[str]:
    more = len(parts) - MAX_NAMED
    return parts if more <= 0 else [*parts[:MAX_NAMED], f"and {more} more"]


def _named_pairs(pairs: Sequence[str]) -> str:
    return f"{len(pairs)} pairs" if len(pairs) > MAX_NAMED else "; ".join(pairs)


def _chains(better: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Return pairs, first better than second, joined where each system of a chain has one neighbour on each side."""
    pairs = list(dict.fromkeys(better))
    after: dict[str, list[str]] = {}
    before: dict[str, list[str]] = {}
    for one, other in pairs:
        after.setdefault(one, []).append(other)
        before.setdefault(other, []).append(one)

    def follows(name: str) -> bool:
        """Return whether the pair that ends in this system and the pair that begins with it are one chain."""
        return len(after.get(name, ())) == 1 and len(before.get(name, ())) == 1

    chains = []
    for one, other in pairs:
        if follows(one):
            continue  # inside a chain
        chain = [one, other]
        while follows(chain[-1]) and after[chain[-1]][0] not in chain:
            chain += after[chain[-1]]
        chains.append(chain)
    return chains or [[one, other] for one, other in pairs]


def answer_tables(orders: Iterable[SystemOrder]) -> list[Table]:
    return [order.table() for order in orders if order.estimates]


def answer_sentences(orders: Sequence[SystemOrder], decided: Mapping[str, Sequence[Decided]]) -> list[str]:
    """Return the sentences over all systems: one for each question whose systems have an order, else over its planned comparisons.

    ``decided``: the planned comparisons by what they are about.
    """
    if said := list(filter(None, (order.sentence() for order in orders))):
        return said
    sentences = {about: comparisons_sentence(pairs) for about, pairs in decided.items()}
    return [f"{about}: {text}" if about else text for about, text in sentences.items() if text]
