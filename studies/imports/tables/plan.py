"""The effect of a file on a study, decided row by row. A dry run reports it, and a confirmation writes it.

The plan keeps digests of the texts in a temporary database, so memory does not grow with the rows. For a confirmed import, what is new
and what changes goes to a journal each: temporary files that the writing replays without new decisions.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random
from tempfile import TemporaryFile
from typing import Any

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
    OutputState,
    PromptState,
    last_ids,
    load_existing_stimuli,
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

    def __init__(self, options: Options, stored: ExistingStimuli, stored_noun: str):
        self.options, self.stored = options, stored
        self._by_source = stored.staging.table("sources", "digest", "grp")
        self._n_sources = 0
        for source, group in stored.sources_with_groups() if options.groups_by == SOURCE else ():
            self._n_sources += self._by_source.add(source, group)
        self._proposed = stored.staging.table("proposed", "name value", "")
        self._stored_noun, self._nouns = stored_noun, {stored_noun} if stored.count_groups()[0] else set[str]()
        self._noted: Counter[str] = Counter()
        self._distinct: Counter[str] = Counter()

    def with_group(self, cells: PromptCells) -> PromptCells:
        """Return the prompt with the group of its source, if the options ask for it. Equal sources have a group with a number."""
        if self.options.groups_by != SOURCE or not cells.source or cells.group:
            return cells
        digest = text_digest(cells.source)
        found = self._by_source.get(digest)
        if found is None:
            names = (f"source {number}" for number in count(self._n_sources + 1))
            found = (next(name for name in names if not self.stored.has_name("group", name)),)
            self._n_sources += self._by_source.add(digest, *found)
        return replace(cells, group=found[0], group_noun=SOURCE)

    @property
    def noun(self) -> str:
        """What a group is called: the word that all groups have, of this file and of those before."""
        return self._stored_noun if not self._nouns else min(self._nouns) if len(self._nouns) == 1 else ""

    def find_lookalike(self, group: str) -> str:
        """Take the group. Return another group that looks the same, or '' if there is none."""
        return self.stored.find_lookalike("group", group) if group else ""

    def note(self, cells: PromptCells) -> None:
        """Count a prompt for the proposals. Call it once for each prompt of the file."""
        if cells.group:
            self._nouns.add(cells.group_noun)
        proposed = dict(cells.proposed_groups)
        if cells.source and not cells.group:
            proposed[SOURCE] = cells.source
        for name, value in proposed.items():
            self._noted[name] += 1
            self._distinct[name] += self._proposed.add(name, text_digest(value))

    def findings(self) -> Iterator[tuple[str, str, list[str], int]]:
        """Yield (kind, text, examples, number): the groups that the study would have, or what may be groups."""
        n_groups, n_grouped = self.stored.count_groups()
        if n_groups:
            yield (
                "groups",
                f"Groups of prompts: {n_groups:,}, with {n_grouped:,} prompts; prompts without a group: "
                f"{self.stored.n_prompts - n_grouped:,}. Results count groups in place of prompts.",
                [],
                n_groups,
            )
            return
        for name, n in self._noted.items():
            # One value for all prompts, or another one for each, says nothing about which prompts belong together.
            if not 1 < self._distinct[name] < n:
                continue
            what = "Equal source texts" if name == SOURCE else f"The column “{name}”"
            yield (
                PROPOSED,
                f"{what} may say which prompts belong together: {self._distinct[name]:,} groups of {n:,} prompts. Choose this if prompts of "
                "a group resemble each other.",
                [name],
                self._distinct[name],
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


class Journal:
    """Operations in a temporary file, in the order in which they came."""

    def __init__(self) -> None:
        self.count = 0
        self._file = TemporaryFile("w+", encoding="ascii")  # noqa: SIM115 - closed with this object

    def add(self, operation: Any) -> None:
        self.count += 1
        self._file.write(json.dumps(operation) + "\n")

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Any]:
        self._file.seek(0)
        return map(json.loads, self._file)


class ImportPlan:
    """Take the entries of a file one by one. ``finish`` completes the report."""

    def __init__(
        self,
        study: Study,
        options: Options,
        images: ImportedImages,
        report: ImportReport,
        *,
        stores: bool,
    ):
        self.study, self.options = study, options
        self.last_ids = last_ids(study)
        self.stored = existing = load_existing_stimuli(study, with_batches=options.makes_batches)
        self.images, self.report = images, report
        # What is new, and what changes: "p" or "o", and the columns of a prompt or an output.
        self.additions = Journal() if stores else None
        self.changes = Journal() if stores else None
        self.problems: TableProblems = report.problems
        self.systems, self._n_stored_systems = existing.systems, len(existing.systems)
        self.new_systems: dict[str, list[int]] = {}  # name > first row, number of rows
        self._known_by_texts = {name for name, profile in existing.profiles.items() if profile.n}
        self._n_texts: Counter[str] = Counter()
        self._used_systems: set[int] = set()
        self.batch_collector = BatchCollector(study, report.problems) if options.makes_batches else None
        self.groups = PromptGroups(options, existing, study.group_noun)
        self._profiles = existing.profiles
        self._without_text = 0
        # Blank cells of a column of texts are problems only if another prompt has words.
        self._blank_text_problems = TableProblems()
        self._has_words = False
        # What is odd about outputs and prompts, by kind: its number, and the first examples.
        self._odd: dict[str, tuple[int, list[str]]] = {}
        self._sampling: dict[str, Random] = {}
        self._word_counts: Counter[int] = Counter()
        self._changed_keys: list[tuple[ImportChange, tuple[str, str, int] | None]] = []
        for key in existing.prompt_keys():
            self._note_key(key)

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
        self._has_words = self._has_words or bool(cells.text or cells.source or media)
        state = self.stored.prompt(cells.key)
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
        self.groups.note(cells)
        if differing:
            self.report.counts["prompts"].changed += 1
            self._note_change(
                ImportChange(entry.row, f"prompt {cells.key}: {', '.join(differing)}", "", excerpt(cells.text)), None
            )
            self._write(self.changes, "p", *columns_of(cells, media))
            state = self._taken_over(state, cells, media)
        else:
            self.report.counts["prompts"].same += 1
        state = state._replace(row=entry.row)
        self.stored.keep_prompt(cells.key, state)
        return state

    def _new_prompt(self, entry: StimulusRow, cells: PromptCells, media: str) -> PromptState | None:
        if other := self.stored.find_lookalike("prompt", cells.key):
            self.problems.add(entry.row, "prompt_key", f"“{cells.key}” and “{other}” differ only in case or blanks.")
            return None
        state = PromptState(
            self.stored.new_number(), text_digest(cells.text), text_digest(cells.source), cells.domain, cells.language, media,
            text_digest(cells.attributes), cells.group, entry.row,
        )  # fmt: skip
        self.stored.keep_prompt(cells.key, state)
        self._note_key(cells.key)
        if not (cells.text or cells.source or media):
            self._without_text += 1
            if cells.has_text_column:
                self._blank_text_problems.add(
                    entry.row, "prompt_text", f"the prompt {cells.key} has no text here and no text in the study."
                )
        for noun in personal_data_in(f"{cells.text}\n{cells.source}"):
            self._note_odd(f"personal:{noun}", f"prompt {cells.key} (row {entry.row})")
        if cells.text:
            digest = text_digest(cells.text.strip() + cells.source)
            if not self.stored.prompt_texts.add(digest, cells.key) and (first := self.stored.prompt_texts.get(digest)):
                self._note_odd("same_prompts", f"{first[0]} = {cells.key} (row {entry.row})")
        self.groups.note(cells)
        self.report.counts["prompts"].new += 1
        self._write(self.additions, "p", *columns_of(cells, media))
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
    def _taken_over(state: PromptState, cells: PromptCells, media: str) -> PromptState:
        return state._replace(
            text=text_digest(cells.text) or state.text,
            source=text_digest(cells.source) or state.source,
            domain=cells.domain or state.domain,
            language=cells.language or state.language,
            media=media or state.media,
            attributes=text_digest(cells.attributes) or state.attributes,
            group=cells.group or state.group,
        )

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
        sample = self._sample(system, prompt.number, cells.sample, content)
        if sample > MAX_NUMBER:
            self.problems.add(
                entry.row, cells.column, f"{cells.system} has more than {MAX_NUMBER:,} samples of one prompt."
            )
            return None
        known = self.stored.output(prompt.number, system, sample)
        if known is not None and known.row is not None:
            if self.batch_collector is None or known.content != content:
                is_same = "with the same text" if known.content == content else "with another text"
                self.problems.add(
                    entry.row,
                    cells.column,
                    f"{cells.system} on {entry.prompt.key} is already in row {known.row}, {is_same}; number several "
                    "outputs of one system for a prompt in a column “sample”.",
                )
                return None
            return sample
        self._used_systems.add(system)
        before = known or OutputState(b"", *NO_EXTRAS)
        state = OutputState(
            content,
            cells.format if cells.format is not None else before.format,
            cells.alt if cells.alt is not None else before.alt,
            cells.language if cells.language is not None else before.language,
            cells.warning if cells.warning is not None else before.warning,
            entry.row,
        )
        self.stored.keep_output(prompt.number, system, sample, state)
        if known is not None and known == state._replace(row=None):
            self.report.counts["outputs"].same += 1
            return sample
        if known is None:
            self.report.counts["outputs"].new += 1
        else:
            self.report.counts["outputs"].changed += 1
            after = "(empty)" if cells.is_empty else f"image {cells.image}" if media else cells.text
            label = f"{cells.system} on {entry.prompt.key}" + (f", sample {sample}" if sample else "")
            change = ImportChange(entry.row, label, "", after[:4000])
            self._note_change(change, (cells.system, entry.prompt.key, sample))
        self._note_text(entry, system, prompt.number, cells, content)
        columns = (cells.system, entry.prompt.key, sample, cells.text, media, cells.is_empty, *state[1:5])
        self._write(self.additions if known is None else self.changes, "o", *columns)
        return sample

    def _system(self, row: int, cells: OutputCells) -> int | None:
        index = self.systems.get(cells.system)
        if index is not None:
            if cells.system in self.new_systems:
                self.new_systems[cells.system][1] += 1
            return index
        if other := self.stored.find_lookalike("system", cells.system):
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
        return self.stored.find_sample(prompt, system, content)

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
            self._word_counts[word_count(cells.text)] += 1
        profile = self._profiles[cells.system]
        if cells.text and profile.n < MAX_PROFILED_TEXTS:
            profile.add(cells.text)
        stripped = cells.text.strip()
        same = content if len(stripped) == len(cells.text) else output_content_digest(stripped, "", False)
        if self.stored.places.add(same, system, prompt, entry.prompt.key):
            return
        first_system, first_prompt, first_key = self.stored.places.get(same) or ()
        if (first_system, first_prompt) != (system, prompt):
            kind = "same_between_systems" if first_system != system else "same_within_system"
            self._note_odd(kind, f"{list(self.systems)[first_system]} on {first_key} = {place}")

    def _note_key(self, key: str) -> None:
        if is_shortened_number(key):
            self._note_odd("shortened_keys", key)

    def _note_sample(self, system: str, prompt: str, text: str) -> None:
        """Keep three texts of each system that had none, each with the same chance: wrong outputs show when a person looks at a few."""
        if not text or system in self._known_by_texts:
            return
        kept = self.report.samples.setdefault(system, [])
        if not kept:
            # Of its own, so that other systems do not change what is shown.
            self._sampling[system] = seeded_random(self.study.seed, self.report.sha256, system)
        self._n_texts[system] += 1
        place = len(kept) if len(kept) < SAMPLED_TEXTS else self._sampling[system].randrange(self._n_texts[system])
        if place < SAMPLED_TEXTS:
            kept[place : place + 1] = [[prompt, excerpt(text, 300)]]

    # Results

    @property
    def n_operations(self) -> int:
        return sum(journal.count for journal in (self.additions, self.changes) if journal)

    def _note_change(self, change: ImportChange, output: tuple[str, str, int] | None) -> None:
        self.report.changes_count += 1
        if len(self._changed_keys) < MAX_LISTED_CHANGES:
            self._changed_keys.append((change, output))

    @staticmethod
    def _write(journal: "Journal | None", *operation: Any) -> None:
        if journal is not None:
            journal.add(operation)

    def complete_report(self) -> None:
        """Complete the report after all rows are read."""
        report = self.report
        report.counts["systems"].new = len(self.new_systems)
        report.counts["systems"].same = sum(number < self._n_stored_systems for number in self._used_systems)
        if self.new_systems and not self.options.creates_systems:
            for name, (row, n) in self.new_systems.items():
                report.problems.add(
                    row,
                    "system",
                    f"the study has no system “{name}” (in {n:,} row{'' if n == 1 else 's'}); correct the name, or tick “Add systems that the study does not have yet”.",
                )
        if self._blank_text_problems and (
            self._has_words or self.study.prompts.exclude(text="", source="", media="").exists()
        ):
            for problem in self._blank_text_problems:
                report.problems.add(problem.row, problem.column, problem.text)
            report.problems.count += self._blank_text_problems.count - len(self._blank_text_problems)
            self._without_text -= self._blank_text_problems.count
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
        report.missing_count, report.missing = self.stored.missing_outputs(MAX_LISTED_MISSING)
        self._add_findings()
        report.problems.first.sort(key=lambda problem: problem.row or 0)  # some problems are found at the end

    def _described_changes(self) -> list[ImportChange]:
        """Return the changes with the study's current content. This needs one query."""
        changed = {output for _, output in self._changed_keys if output}
        rows = Output.objects.filter(
            system__study=self.study.pk, prompt__key__in={key for _, key, _ in changed}, system__name__in={s for s, _, _ in changed}
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

    def _add_findings(self) -> None:
        report = self.report
        differences = surface_warnings_from_profiles(self._profiles)
        longer = [one.systems for one in differences if one.mark == "words"]
        for difference in differences:
            if difference.mark == "characters" and difference.systems in longer:
                continue  # the number of words says the same
            report.add_finding(
                f"surface:{difference.mark}",
                f"{difference.text[:1].upper()}{difference.text[1:]} Annotators may recognise the system by it.",
                count=difference.n,
            )
        for kind, text, examples, n in self.groups.findings():
            report.add_finding(kind, text, examples, n)
        for kind, text in (
            ("shortened_keys", "Keys of prompts that a spreadsheet shortened: different prompts may have one key."),
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
                "New prompts have no text: the file has no column for it, or only blank cells.",
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
