"""The effect of a file on a study, decided row by row. A dry run reports it, and a confirmation writes it.

The plan keeps only digests of the texts, so memory grows with the number of rows and not with their length. For a confirmed
import, each decision goes to a journal: a temporary file that the writing replays without new decisions.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import IO, Any

from studies.design.draw import seeded_random
from studies.models import Output, Study
from studies.stimuli.images import ImageRefused
from studies.stimuli.rows import Row, Rows, TableProblems
from studies.stimuli.surface import (
    SurfaceProfile,
    is_refusal,
    odd_lengths,
    personal_data_in,
    surface_warnings_from_profiles,
)
from studies.stimuli.texts import is_blank, is_missing_word, is_shortened_number, word_count

from .batches import BatchCollector
from .columns import (
    MAX_NUMBER,
    SOURCE,
    DistinctNames,
    Options,
    OutputCells,
    PromptCells,
    StimulusRow,
    around_difference,
    columns_of,
    excerpt,
    stimulus_row_preview,
)
from .existing import (
    MAX_PROFILED_TEXTS,
    NO_EXTRAS,
    ExistingStimuli,
    ImportedImages,
    OutputKey,
    PromptState,
    output_content_digest,
    text_digest,
)
from .result import MAX_EXAMPLES, MAX_LISTED_CHANGES, MAX_LISTED_MISSING, ImportChange, ImportReport

SAMPLED_TEXTS = 3

# The groups of prompts of an import: those that the file names, those by equal sources, and those that heval
# proposes.


PROPOSED = "groups_proposed"  # the kind of a finding; its example is the value of ``Options.groups_by`` that accepts it


class PromptGroups:
    """Note the group of each prompt of a file once, and propose groups if the file seems to have some."""

    def __init__(self, options: Options, known: Iterable[PromptState]):
        self.options = options
        known = list(known)
        self._names = DistinctNames({state.group for state in known} - {""})
        self._taken = {state.group for state in known}
        self._by_source = {state.source: state.group for state in known if state.source and state.group}
        self._proposed: dict[str, Counter[str | bytes]] = {}

    def with_group(self, cells: PromptCells) -> PromptCells:
        """Return the prompt with the group of its source, if the options ask for it. Equal sources have a group with a number."""
        if self.options.groups_by != SOURCE or not cells.source or cells.group:
            return cells
        digest = text_digest(cells.source)
        if digest not in self._by_source:
            names = (f"source {number}" for number in count(len(self._by_source) + 1))
            self._by_source[digest] = name = next(name for name in names if name not in self._taken)
            self._taken.add(name)
        return replace(cells, group=self._by_source[digest])

    def find_lookalike(self, group: str) -> str:
        """Take the group. Return another group that looks the same, or '' if there is none."""
        return self._names.add_and_find_lookalike(group) if group else ""

    def note(self, cells: PromptCells) -> None:
        """Count a prompt for the proposals. Call it once for each prompt of the file."""
        proposed: dict[str, str | bytes] = dict(cells.proposed_groups)
        if cells.source and not cells.group:
            proposed[SOURCE] = text_digest(cells.source)
        for name, value in proposed.items():
            self._proposed.setdefault(name, Counter())[value] += 1

    def findings(self, prompts: Iterable[PromptState]) -> Iterator[tuple[str, str, list[str], int]]:
        """Yield (kind, text, examples, number): the groups that the study would have, or what may be groups."""
        groups = Counter(state.group for state in prompts)
        n_alone = groups.pop("", 0)
        if groups:
            yield (
                "groups",
                f"Groups of prompts: {len(groups):,}, with {groups.total():,} prompts; prompts without a group: {n_alone:,}. Results count groups "
                "in place of prompts.",
                [],
                len(groups),
            )
            return
        for name, values in self._proposed.items():
            # One value for all prompts, or another one for each, says nothing about which prompts belong together.
            if not 1 < len(values) < values.total():
                continue
            what = "Equal source texts" if name == SOURCE else f"The column “{name}”"
            yield (
                PROPOSED,
                f"{what} may say which prompts belong together: {len(values):,} groups of {values.total():,} prompts. Choose this if prompts of "
                "a group resemble each other.",
                [name],
                len(values),
            )


# Pair outputs that have no common prompt: equal in declared attributes, similar in length, otherwise at random.
#
# Each text is used once; a text that its system repeats is left out. Each group of equal attributes gives the largest
# number of pairs that the allowed difference in words permits. Source: Thorleiksdóttir et al. 2022, section 5.3.


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


FIRST_ROWS = 10


class ImportPlan:
    """Take the entries of a file one by one. ``finish`` completes the report."""

    def __init__(
        self,
        study: Study,
        options: Options,
        existing: ExistingStimuli,
        images: ImportedImages,
        report: ImportReport,
        journal: IO | None,
    ):
        self.study, self.options, self.stored = study, options, existing
        self.images, self.report, self.journal = images, report, journal
        self.problems: TableProblems = report.problems
        self.systems = dict(existing.systems)
        self.new_systems: dict[str, list[int]] = {}  # name > first row, number of rows
        self.prompts = existing.prompts
        self.seen: dict[OutputKey, int] = {}
        self.by_content: dict[tuple[int, int, bytes], int] = {}
        self.batch_collector = BatchCollector(study, report.problems) if options.makes_batches else None
        self.groups = PromptGroups(options, self.prompts.values())
        self._system_names = DistinctNames(self.systems)
        self._prompt_names = DistinctNames(self.prompts)
        self._profiles = existing.profiles
        self._first_places: dict[bytes, tuple[int, int]] = {}
        self._without_text = 0
        # What is odd about outputs and prompts, by kind: its number, and the first examples.
        self._odd: dict[str, tuple[int, list[str]]] = {}
        self._sampling = seeded_random(study.seed, report.sha256)
        self._word_counts: list[int] = []
        self._first_prompts: dict[bytes, str] = {}
        self._changed_keys: list[tuple[ImportChange, tuple[str, str, int] | None]] = []
        for (system, prompt, sample), content in existing.outputs.items():
            self._first_places.setdefault(content, (system, prompt))
            if self.batch_collector:
                self.by_content[system, prompt, content] = sample

    def add(self, entry: StimulusRow) -> None:
        """Decide what one row changes."""
        self.report.rows += 1
        if len(self.report.first) < FIRST_ROWS:
            self.report.first.append(stimulus_row_preview(entry))
        prompt = self._prompt(entry)
        if prompt is None:
            return
        placed: dict[str, int] = {}
        is_complete = True
        for cells in entry.outputs:
            sample = self._output(entry, prompt, cells)
            if sample is None:
                is_complete = False
            elif cells.system in placed:
                self.problems.add(entry.row, cells.column, f"{cells.system} occurs twice in this row.")
                is_complete = False
            else:
                placed[cells.system] = sample
        if self.batch_collector and entry.batch and is_complete:
            self.batch_collector.add(entry, entry.batch, placed)

    # Prompts

    def _prompt(self, entry: StimulusRow) -> PromptState | None:
        cells = self.groups.with_group(entry.prompt)
        try:
            media = self.images.stored_name(cells.image) if cells.image else ""
        except ImageRefused as refused:
            self.problems.add(entry.row, "prompt_image", str(refused))
            return None
        state = self.prompts.get(cells.key)
        if other := self.groups.find_lookalike(cells.group):
            self.problems.add(entry.row, "group", f"“{cells.group}” and “{other}” differ only in case or blanks.")
            return None
        if state is None:
            return self._new_prompt(entry, cells, media)
        differing = self._differing(state, cells, media)
        if state.row is not None:
            if differing:
                self.problems.add(
                    entry.row, differing[0], f"differs from row {state.row}, which has the same prompt {cells.key}."
                )
                return None
            return state
        state.row = entry.row
        self.groups.note(cells)
        if differing:
            state.is_changed = True
            self.report.counts["prompts"].changed += 1
            self._note_change(
                ImportChange(entry.row, f"prompt {cells.key}: {', '.join(differing)}", "", excerpt(cells.text)), None
            )
            self._write("P", *columns_of(cells, media))
            self._take_over(state, cells, media)
        else:
            self.report.counts["prompts"].same += 1
        return state

    def _new_prompt(self, entry: StimulusRow, cells: PromptCells, media: str) -> PromptState | None:
        if other := self._prompt_names.add_and_find_lookalike(cells.key):
            self.problems.add(entry.row, "prompt_key", f"“{cells.key}” and “{other}” differ only in case or blanks.")
            return None
        state = PromptState(
            len(self.prompts), text_digest(cells.text), text_digest(cells.source), cells.domain, cells.language, media,
            text_digest(cells.attributes), cells.group, entry.row, is_new=True,
        )  # fmt: skip
        self.prompts[cells.key] = state
        if not (cells.text or cells.source or media):
            if cells.has_text_column:
                self.problems.add(
                    entry.row, "prompt_text", f"the prompt {cells.key} has no text here and no text in the study."
                )
                return None
            self._without_text += 1
        for noun in personal_data_in(f"{cells.text}\n{cells.source}"):
            self._note_odd(f"personal:{noun}", f"prompt {cells.key} (row {entry.row})")
        if cells.text:
            digest = text_digest(cells.text.strip() + cells.source)
            first = self._first_prompts.setdefault(digest, cells.key)
            if first != cells.key:
                self._note_odd("same_prompts", f"{first} = {cells.key} (row {entry.row})")
        self.groups.note(cells)
        self.report.counts["prompts"].new += 1
        self._write("p", *columns_of(cells, media))
        return state

    @staticmethod
    def _differing(state: PromptState, cells: PromptCells, media: str) -> list[str]:
        """Return the columns in which a row differs from the known prompt. Blank cells are ignored."""
        pairs = (
            ("prompt_text", text_digest(cells.text), state.text), ("source", text_digest(cells.source), state.source),
            ("domain", cells.domain, state.domain), ("language", cells.language, state.language),
            ("prompt_image", media, state.media), ("attributes", text_digest(cells.attributes), state.attributes),
            ("group", cells.group, state.group),
        )  # fmt: skip
        return [name for name, given, known in pairs if given and given != known]

    @staticmethod
    def _take_over(state: PromptState, cells: PromptCells, media: str) -> None:
        state.text = text_digest(cells.text) or state.text
        state.source = text_digest(cells.source) or state.source
        state.domain, state.language = cells.domain or state.domain, cells.language or state.language
        state.group = cells.group or state.group
        state.media, state.attributes = media or state.media, text_digest(cells.attributes) or state.attributes

    # Outputs

    def _output(self, entry: StimulusRow, prompt: PromptState, cells: OutputCells) -> int | None:
        system = self._system(entry.row, cells)
        if system is None:
            return None
        try:
            media = self.images.stored_name(cells.image) if cells.image else ""
        except ImageRefused as refused:
            self.problems.add(entry.row, cells.column, str(refused))
            return None
        content = output_content_digest(cells.text, media, cells.is_empty)
        sample = self._sample(system, prompt.index, cells.sample, content)
        if sample > MAX_NUMBER:
            self.problems.add(
                entry.row, cells.column, f"{cells.system} has more than {MAX_NUMBER:,} samples of one prompt."
            )
            return None
        key = (system, prompt.index, sample)
        known = self.stored.outputs.get(key)
        if key in self.seen:
            if self.batch_collector is None or known != content:
                is_same = "with the same text" if known == content else "with another text"
                self.problems.add(
                    entry.row,
                    cells.column,
                    f"{cells.system} on {entry.prompt.key} is already in row {self.seen[key]}, {is_same}; number several "
                    "outputs of one system for a prompt in a column “sample”.",
                )
                return None
            return sample
        self.seen[key] = entry.row
        if known is None:
            self._new_output(entry, key, cells, media, content)
        else:
            self._known_output(entry, key, cells, media, content, known)
        return sample

    def _system(self, row: int, cells: OutputCells) -> int | None:
        index = self.systems.get(cells.system)
        if index is not None:
            if cells.system in self.new_systems:
                self.new_systems[cells.system][1] += 1
            return index
        if other := self._system_names.add_and_find_lookalike(cells.system):
            self.problems.add(
                row, cells.column, f"the system “{cells.system}” differs from “{other}” only in case or blanks."
            )
            return None
        index = self.systems[cells.system] = len(self.systems)
        self.new_systems[cells.system] = [row, 1]
        self._profiles[cells.system] = SurfaceProfile()
        return index

    def _sample(self, system: int, prompt: int, given: int | None, content: bytes) -> int:
        """Return the given number. In ready-made batches: the number of the same content, or the next one. Otherwise 0."""
        if given is not None or self.batch_collector is None:
            return given or 0
        return self.by_content.get((system, prompt, content), self.stored.next_sample.get((system, prompt), 0))

    def _new_output(self, entry: StimulusRow, key: OutputKey, cells: OutputCells, media: str, content: bytes) -> None:
        system, prompt, sample = key
        self.stored.outputs[key] = content
        self.stored.next_sample[system, prompt] = max(self.stored.next_sample.get((system, prompt), 0), sample + 1)
        if self.batch_collector:
            self.by_content[system, prompt, content] = sample
        self.report.counts["outputs"].new += 1
        self._note_text(entry, system, prompt, cells, content)
        extras = [cells.format or NO_EXTRAS[0], cells.alt or "", cells.language or ""]
        self._write("o", cells.system, entry.prompt.key, sample, cells.text, media, cells.is_empty, *extras)

    def _known_output(
        self, entry: StimulusRow, key: OutputKey, cells: OutputCells, media: str, content: bytes, known: bytes
    ) -> None:
        before = self.stored.extras.get(key, NO_EXTRAS)
        given = (cells.format, cells.alt, cells.language)
        if content == known and all(new is None or new == old for new, old in zip(given, before, strict=True)):
            self.report.counts["outputs"].same += 1
            return
        self.stored.outputs[key] = content
        self.report.counts["outputs"].changed += 1
        after = "(empty)" if cells.is_empty else f"image {cells.image}" if media else cells.text
        label = f"{cells.system} on {entry.prompt.key}" + (f", sample {key[2]}" if key[2] else "")
        self._note_change(ImportChange(entry.row, label, "", after[:4000]), (cells.system, entry.prompt.key, key[2]))
        self._note_text(entry, key[0], key[1], cells, content)
        extras = [new if new is not None else old for new, old in zip(given, before, strict=True)]
        self._write("O", cells.system, entry.prompt.key, key[2], cells.text, media, cells.is_empty, *extras)

    def _note_odd(self, kind: str, example: str) -> None:
        n, examples = self._odd.setdefault(kind, (0, []))
        self._odd[kind] = n + 1, examples
        if len(examples) < MAX_EXAMPLES:
            examples.append(example)

    def _note_text(self, entry: StimulusRow, system: int, prompt: int, cells: OutputCells, content: bytes) -> None:
        place = f"{cells.system} on {entry.prompt.key} (row {entry.row})"
        if cells.is_empty:
            self._note_odd("empty", place)
            return
        if is_missing_word(cells.text):
            self._note_odd("missing_words", place)
        if is_refusal(cells.text):
            self._note_odd("refusals", place)
        for noun in personal_data_in(cells.text):
            self._note_odd(f"personal:{noun}", place)
        self._note_sample(cells.system, entry.prompt.key, cells.text)
        if cells.text:
            self._word_counts.append(word_count(cells.text))
        profile = self._profiles[cells.system]
        if cells.text and profile.n < MAX_PROFILED_TEXTS:
            profile.add(cells.text)
        stripped = cells.text.strip()
        same = content if len(stripped) == len(cells.text) else output_content_digest(stripped, "", False)
        first = self._first_places.setdefault(same, (system, prompt))
        if first == (system, prompt):
            return
        names, keys = list(self.systems), list(self.prompts)
        kind = "same_between_systems" if first[0] != system else "same_within_system"
        self._note_odd(kind, f"{names[first[0]]} on {keys[first[1]]} = {place}")

    def _note_sample(self, system: str, prompt: str, text: str) -> None:
        """Keep three texts of each new system, each with the same chance: wrong outputs show when a person looks at a few."""
        if not text or system not in self.new_systems:
            return
        kept = self.report.samples.setdefault(system, [])
        n = self.new_systems[system][1]
        place = len(kept) if len(kept) < SAMPLED_TEXTS else self._sampling.randrange(n)
        if place < SAMPLED_TEXTS:
            kept[place : place + 1] = [[prompt, excerpt(text, 300)]]

    # Results

    def _note_change(self, change: ImportChange, output: tuple[str, str, int] | None) -> None:
        self.report.changes_count += 1
        if len(self._changed_keys) < MAX_LISTED_CHANGES:
            self._changed_keys.append((change, output))

    def _write(self, *operation: Any) -> None:
        if self.journal is not None:
            self.journal.write(json.dumps(operation) + "\n")

    def complete_report(self) -> None:
        """Complete the report after all rows are read."""
        report = self.report
        report.counts["systems"].new = len(self.new_systems)
        used = {system for system, _, _ in self.seen}
        report.counts["systems"].same = sum(index in used for index in self.stored.systems.values())
        if self.new_systems and not self.options.creates_systems:
            for name, (row, n) in self.new_systems.items():
                report.problems.add(
                    row,
                    "system",
                    f"the study has no system “{name}” (in {n:,} row{'' if n == 1 else 's'}); correct the name, or tick “Add systems that the study does not have yet”.",
                )
        if self.batch_collector:
            self.batch_collector.check_and_count(report, self.stored.batches, set(self.systems))
            for batch in self.batch_collector.changed_batches(self.stored.batches):
                if batch.key in self.stored.batches:
                    self._note_change(ImportChange(batch.row, f"batch {batch.key}"), None)
        report.changes = self._described_changes()
        if report.changes_count and not self.options.replaces_changed:
            first = report.changes[0]
            others_n = report.changes_count - 1
            report.problems.add(
                first.row,
                None,
                f"{first.what} has other content in the study{f', and so have {others_n:,} more' if others_n else ''}; tick "
                "“Replace content of the study that differs from the file”, or remove these rows.",
            )
        for pair in self.missing_outputs():
            report.missing_count += 1
            if len(report.missing) < MAX_LISTED_MISSING:
                report.missing.append(pair)
        self._add_findings()
        report.problems.first.sort(key=lambda problem: problem.row or 0)  # some problems are found at the end

    def _described_changes(self) -> list[ImportChange]:
        """Return the changes with the study's current content. This needs one query."""
        changed = {output for _, output in self._changed_keys if output}
        rows = Output.objects.filter(
            system__study=self.study, prompt__key__in={key for _, key, _ in changed}, system__name__in={s for s, _, _ in changed}
        ).values_list("system__name", "prompt__key", "sample", "text", "original", "is_empty", "media")  # fmt: skip
        current = {
            (system, key, sample): "(empty)" if is_empty else "(image)" if media else original or text
            for system, key, sample, text, original, is_empty, media in (rows if changed else ())
        }
        changes = []
        for change, output in self._changed_keys:
            before, after = around_difference(current.get(output, "") if output else "", change.after)
            changes.append(ImportChange(change.row, change.what, before, after))
        return changes

    def missing_outputs(self) -> Iterator[tuple[str, str]]:
        """Yield (prompt, system) of every output that would still be missing, in order."""
        known_outputs = self.stored.next_sample
        systems = sorted(self.systems.items())
        for key in sorted(self.prompts):
            index = self.prompts[key].index
            for name, system in systems:
                if (system, index) not in known_outputs:
                    yield key, name

    def _add_findings(self) -> None:
        report = self.report
        for difference in surface_warnings_from_profiles(self._profiles):
            report.add_finding(
                f"surface:{difference.mark}",
                f"{difference.text[:1].upper()}{difference.text[1:]} Annotators may recognise the system by it.",
                count=difference.n,
            )
        if shortened := [key for key in self.prompts if is_shortened_number(key)]:
            report.add_finding(
                "shortened_keys",
                "Keys of prompts that a spreadsheet shortened: different prompts may have one key.",
                shortened,
            )
        for kind, text, examples, n in self.groups.findings(self.prompts.values()):
            report.add_finding(kind, text, examples, n)
        for kind, text in (
            ("empty", "Empty outputs: annotators see that the system produced no text."),
            (
                "missing_words",
                "Outputs are words for a missing value, such as “nan”. Annotators would judge these words; the texts are "
                "not changed.",
            ),
            ("refusals", "Outputs read like a model that refuses to answer. Decide whether people should judge them."),
            (
                "same_prompts",
                "Prompts have the same text under different keys. Remove those that are there by mistake.",
            ),
            ("same_between_systems", "Two systems gave the same output."),
            ("same_within_system", "A system gave the same output to different prompts."),
        ):
            n, examples = self._odd.get(kind, (0, []))
            if n:
                report.add_finding(kind, text, examples, n)
        for kind, (n, examples) in self._odd.items():
            if kind.startswith("personal:"):
                noun = kind.partition(":")[2]
                report.add_finding(
                    kind, f"Texts contain {noun}. Remove personal data before people read them.", examples, n
                )
        if self._without_text:
            report.add_finding(
                "prompt_without_text",
                "New prompts have no text: the file has no column for it.",
                [],
                self._without_text,
            )
        median, short, long = odd_lengths(self._word_counts)
        if short or long:
            report.add_finding(
                "lengths",
                f"Half of the outputs have {median} words or more. Ten times longer: {long}; ten times shorter: {short}. Check that "
                "they are whole.",
                count=short + long,
            )
        if self.new_systems and self.options.creates_systems:
            report.add_finding(
                "new_systems",
                "Systems that will be added; tick those whose texts a person wrote.",
                sorted(self.new_systems),
            )
        if self.images.notes:
            report.add_finding("image_notes", "Images that heval changed when it converted them.", self.images.notes)
        if unused := self.images.unused_image_names():
            report.add_finding(
                "images_unused", "Images in the archive that no row names; they are not imported.", unused
            )
