"""Pair outputs that have no common prompt: equal in declared attributes, similar in length, otherwise at random.

Each text is used once; a text that its system repeats is left out. Each group of equal attributes gives the largest number of pairs
that the allowed difference in words permits. Source: Thorleiksdóttir et al. 2022, section 5.3.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from studies.design.seeds import seeded_random
from studies.stimuli.rows import Row, Rows, TableProblems
from studies.stimuli.texts import is_blank, word_count

from .options import Options

ATTRIBUTE_PREFIX = "attribute:"


@dataclass(frozen=True, slots=True)
class PairCandidate:
    """A text to pair, with its row."""

    row: int
    system: str
    text: str
    n_words: int
    attributes: tuple[str, ...]


@dataclass(slots=True)
class Pairing:
    """The pairs of a file, and the numbers of unpaired and repeated texts."""

    pairs: list[tuple[PairCandidate, PairCandidate]] = field(default_factory=list)
    unpaired: dict[str, int] = field(default_factory=dict)
    repeated: dict[str, int] = field(default_factory=dict)
    surplus_pairs: int = 0

    def notes(self) -> list[str]:
        """Return sentences about the texts that were not used."""
        notes = [f"{n:,} texts of {system} have no partner" for system, n in sorted(self.unpaired.items()) if n]
        notes += [f"{n:,} texts of {system} are repeated" for system, n in sorted(self.repeated.items()) if n]
        return notes + (
            [f"{self.surplus_pairs:,} more pairs are possible, above the maximum number of pairs"]
            if self.surplus_pairs
            else []
        )


def pair_texts_by_attributes_and_length(rows: Rows, options: Options, seed: int) -> tuple[Rows, Pairing]:
    """Turn the rows of a file (``system``, ``text``, attributes) into rows of pairs. Note problems in ``rows.problems``."""
    problems = rows.problems
    pairing = Pairing()
    by_system = _candidates(rows, options, problems, pairing)
    if problems:
        return Rows((), iter(()), problems), pairing
    if len(by_system) != 2:
        names = ", ".join(sorted(by_system)) or "none"
        problems.add(None, "system", f"pairs need exactly two systems; the file has {len(by_system)}: {names[:300]}.")
        return Rows((), iter(()), problems), pairing
    (first, first_texts), (second, second_texts) = sorted(by_system.items())
    groups: dict[tuple[str, ...], tuple[list[PairCandidate], list[PairCandidate]]] = defaultdict(lambda: ([], []))
    for side_number, side in enumerate((first_texts, second_texts)):
        for candidate in side:
            groups[candidate.attributes][side_number].append(candidate)
    for attributes, sides in sorted(groups.items()):
        shuffled = [
            seeded_random(seed, "pairs", attributes, side_number).sample(side, len(side))
            for side_number, side in enumerate(sides)
        ]
        first_texts, second_texts = (sorted(side, key=lambda candidate: candidate.n_words) for side in shuffled)
        pairing.pairs += _matched(first_texts, second_texts, options.max_length_difference)
    pairing.pairs = seeded_random(seed, "pairs").sample(pairing.pairs, len(pairing.pairs))
    for name, side in ((first, first_texts), (second, second_texts)):
        pairing.unpaired[name] = len(side) - len(pairing.pairs)
    if options.max_pairs:
        pairing.surplus_pairs = max(0, len(pairing.pairs) - options.max_pairs)
        pairing.pairs = pairing.pairs[: options.max_pairs]
    if not pairing.pairs:
        problems.add(
            None,
            None,
            "no two texts of the two systems have equal attributes and similar lengths: allow a larger difference in length.",
        )
    columns = (
        "prompt_key",
        *(ATTRIBUTE_PREFIX + name for name in options.pairs_by),
        f"output:{first}",
        f"output:{second}",
    )
    return Rows(columns, _as_rows(pairing.pairs, columns), problems), pairing


def _candidates(
    rows: Rows, options: Options, problems: TableProblems, pairing: Pairing
) -> dict[str, list[PairCandidate]]:
    by_system: dict[str, list[PairCandidate]] = {}
    seen: set[tuple[str, str]] = set()
    for row in rows:
        system, text = row.values.get("system"), row.values.get("text")
        if not isinstance(system, str) or not system.strip():
            problems.add(row.number, "system", "names no system: each row needs a system and a text.")
            continue
        if not isinstance(text, str) or is_blank(text):
            problems.add(row.number, "text", "is empty: there is nothing to pair.")
            continue
        attributes = tuple(_attribute(row, name, problems) for name in options.pairs_by)
        system, key = system.strip(), text.strip()
        candidates = by_system.setdefault(system, [])
        if (system, key) in seen:
            pairing.repeated[system] = pairing.repeated.get(system, 0) + 1
            continue
        seen.add((system, key))
        candidates.append(PairCandidate(row.number, system, text, word_count(text), attributes))
    return by_system


def _attribute(row: Row, name: str, problems: TableProblems) -> str:
    stored = row.values.get("attributes")
    cell_attributes: Mapping[str, Any] = stored if isinstance(stored, Mapping) else {}
    value = next(
        (
            where[key]
            for where, key in ((row.values, ATTRIBUTE_PREFIX + name), (row.values, name), (cell_attributes, name))
            if key in where
        ),
        None,
    )
    if value is None or value == "":
        problems.add(row.number, name, "is missing: texts are paired by it.")
        return ""
    return str(value).strip()


def _matched(
    first_texts: list[PairCandidate], second_texts: list[PairCandidate], within: int
) -> Iterator[tuple[PairCandidate, PairCandidate]]:
    """Pair two lists that are sorted by length. Taking the shortest match each time gives the largest number of pairs."""
    i = j = 0
    while i < len(first_texts) and j < len(second_texts):
        difference = first_texts[i].n_words - second_texts[j].n_words
        if abs(difference) <= within:
            yield first_texts[i], second_texts[j]
        i += difference <= within
        j += difference >= -within


def _as_rows(pairs: list[tuple[PairCandidate, PairCandidate]], columns: tuple[str, ...]) -> Iterator[Row]:
    for number, (first, second) in enumerate(pairs, 1):
        yield Row(
            first.row,
            dict(zip(columns, (f"pair-{number:05}", *first.attributes, first.text, second.text), strict=True)),
        )
