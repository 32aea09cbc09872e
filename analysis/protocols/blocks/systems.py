"""The systems of one question in their order: a sentence over all of them, and a table with the best first."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from studies.design.subjects import in_parentheses

from .cells import interval_bounds
from .layouts import Table, build_table, rank_cells
from .populations import heading_words, population_of

if TYPE_CHECKING:
    from analysis.stats.ranks import RankSets
    from analysis.stats.results import Estimate

# A sentence names at most this number of systems, and counts more.
MAX_NAMED = 4
PLACES = ("first", "second", "third", "fourth", "fifth", "sixth")


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemOrder:
    """The systems that one question compares, each with one estimate.

    ``measure`` is what orders them, such as "mean rating", and ``about`` is what the question is about ('' if the study has only one).
    ``sets``: the sets of ranks of the same question. Without them, nothing is said about which systems differ.
    """

    measure: str
    estimates: Sequence["Estimate"]
    about: str = ""
    sets: "RankSets | None" = None
    is_lower_better: bool = False

    @property
    def population(self) -> str:
        return population_of(self.estimates[0]) if self.estimates else ""

    def sentence(self) -> str:
        """Return what the sets of ranks say of all systems together, or '' without sets."""
        if self.sets is None or len(self.sets.systems) < 2:
            return ""
        said = rank_sets_sentence(self.sets)
        begin = f"By {self.measure}{f' on {self.about}' if self.about else ''}: "
        return f"{begin}{said}{heading_words([self.population])}."

    def table(self) -> Table:
        """Return the systems, the best first, with the places that each may have."""
        ranks = rank_cells(self.sets) if self.sets is not None else {}
        rows = []
        for estimate in sorted(self.estimates, key=self._best_first):
            cells = ranks.get(system_of(estimate), {})
            rows.append(
                {
                    "system": system_of(estimate),
                    "estimate": estimate.estimate,
                    "interval": interval_bounds(estimate),
                    "places": _places(cells.get("highest"), cells.get("lowest")),
                    "n": estimate.n,
                }
            )
        units = {f"{estimate.unit}s" for estimate in self.estimates}
        columns = (
            f"system|System|text; estimate|{self.measure[:1].upper()}{self.measure[1:]}|number; interval|95% CI|wide_interval; "
            f"places|Place|text; n|n {' or '.join(sorted(units))}|integer"
        )
        reasons = {one.reason: system_of(one) for one in self.estimates if one.reason}
        notes = [f"{system}: {reason}." for reason, system in reasons.items()]
        if ranks:
            notes = [
                "Place: where the system can be among all. The places of all systems hold together at the level of the intervals.",
                *notes,
            ]
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


def _places(highest: int | None, lowest: int | None) -> str:
    if highest is None or lowest is None:
        return ""
    return f"{highest}" if highest == lowest else f"{highest} to {lowest}"


def rank_sets_sentence(sets: "RankSets") -> str:
    """Return which systems are best, and which cannot be told apart, without a full stop."""
    if sets.low is None or sets.high is None:
        return f"it is not known how sure the order is, because {sets.reason}"
    names = list(sets.systems)
    best = [name for name, low in zip(names, sets.low, strict=True) if low == 1]
    if len(names) == 2:
        if len(best) == 1:
            return f"{best[0]} is better than {next(name for name in names if name not in best)}"
        return f"it remains open whether {names[0]} or {names[1]} is better"
    if len(best) == len(names):
        apart = f", but {_n_apart(sets)} of the pairs are told apart" if _n_apart(sets) else ""
        return f"it remains open which of {_named(names, 'and', 'the')} is best{apart}"
    parts = [f"{best[0]} is best" if len(best) == 1 else f"{_named(best, 'or', 'one of')} is best"]
    place = len(best) + 1
    for group in _groups_after(sets, best):
        if len(group) == 1:
            low, high = _range_of(sets, group[0])
            word = PLACES[place - 1] if place <= len(PLACES) else f"number {place}"
            parts.append(f"{group[0]} is {word}" if low == high else f"{group[0]} can be in the places {low} to {high}")
        else:
            whole = "" if _are_alike(sets, group) else "all "
            parts.append(f"{_named(group, 'and', 'the')} cannot {whole}be told apart")
        place += len(group)
    return "; ".join(parts)


def _named(names: Sequence[str], last: str, counted: str) -> str:
    """Return the names with a word before the last one. More than ``MAX_NAMED`` are counted."""
    if len(names) > MAX_NAMED:
        return f"{counted} {len(names)} systems"
    return f"{', '.join(names[:-1])} {last} {names[-1]}" if len(names) > 1 else names[0]


def _range_of(sets: "RankSets", name: str) -> tuple[int, int]:
    place = list(sets.systems).index(name)
    return (sets.low or ())[place], (sets.high or ())[place]


def _are_apart(sets: "RankSets", one: str, other: str) -> bool:
    (low, high), (other_low, other_high) = _range_of(sets, one), _range_of(sets, other)
    return high < other_low or other_high < low


def _are_alike(sets: "RankSets", names: Sequence[str]) -> bool:
    return not any(_are_apart(sets, one, other) for n, one in enumerate(names) for other in names[:n])


def _n_apart(sets: "RankSets") -> int:
    names = list(sets.systems)
    return sum(_are_apart(sets, one, other) for n, one in enumerate(names) for other in names[:n])


def _groups_after(sets: "RankSets", best: Sequence[str]) -> list[list[str]]:
    """Return the other systems in groups: each system of a group is told apart from each of the next groups."""
    rest = sorted(
        (name for name in sets.systems if name not in best), key=lambda name: (*_range_of(sets, name), str(name))
    )
    groups: list[list[str]] = []
    lowest = 0
    for name in rest:
        low, high = _range_of(sets, name)
        if groups and low <= lowest:
            groups[-1].append(name)
        else:
            groups.append([name])
        lowest = max(lowest, high)
    return groups


def comparisons_sentence(decided: Iterable[tuple[str, str, str]]) -> str:
    """Return what the planned comparisons say together; '' for fewer than two.

    ``decided``: x, y and the side of each: ">" or "<" if one is better, "~" if they are equivalent, "?" if it remains open.

    >>> comparisons_sentence([("b", "a", ">"), ("b", "c", "<")])
    'All 2 planned comparisons are decided: c > b > a.'
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
    found = "; ".join(_cut([*_chains(better), *equal]))
    if not n_decided:
        return f"None of the {len(decided)} planned comparisons is decided."
    head = f"All {n_decided}" if n_decided == len(decided) else f"{n_decided} of {len(decided)}"
    verb = "is" if n_decided == 1 else "are"
    still = f" It remains open which is better for {_named_pairs(open_pairs)}." if open_pairs else ""
    return f"{head} planned comparisons {verb} decided: {found}.{still}"


def _cut(parts: list[str]) -> list[str]:
    more = len(parts) - MAX_NAMED
    return parts if more <= 0 else [*parts[:MAX_NAMED], f"and {more} more"]


def _named_pairs(pairs: Sequence[str]) -> str:
    return f"{len(pairs)} pairs" if len(pairs) > MAX_NAMED else "; ".join(pairs)


def _chains(better: Iterable[tuple[str, str]]) -> list[str]:
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
        chains.append(" > ".join(chain))
    return chains or [f"{one} > {other}" for one, other in pairs]


def answer_tables(orders: Iterable[SystemOrder]) -> list[Table]:
    return [order.table() for order in orders if order.estimates]


def answer_sentences(orders: Sequence[SystemOrder], decided: Iterable[tuple[str, str, str, str]]) -> list[str]:
    """Return the sentences over all systems: one for each question with sets of ranks, else over its planned comparisons.

    ``decided``: what each planned comparison is about, x, y and its side, as for ``comparisons_sentence``.
    """
    if said := list(filter(None, (order.sentence() for order in orders))):
        return said
    by_subject: dict[str, list[tuple[str, str, str]]] = {}
    for about, x, y, side in decided:
        by_subject.setdefault(about, []).append((x, y, side))
    sentences = {about: comparisons_sentence(pairs) for about, pairs in by_subject.items()}
    return [f"{about}: {text}" if about else text for about, text in sentences.items() if text]
