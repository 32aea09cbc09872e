"""The effect of a file on a study, decided row by row. A dry run reports it, and a confirmation writes it.

The plan keeps only digests of the texts, so memory grows with the number of rows and not with their length. For a confirmed
import, each decision goes to a journal: a temporary file that the writing replays without new decisions.
"""

import json
from collections.abc import Iterator
from typing import IO, Any

from studies.models import Output, Study
from studies.stimuli.images import ImageRefused
from studies.stimuli.rows import TableProblems
from studies.stimuli.surface import SurfaceProfile, surface_warnings_from_profiles

from .batches import BatchCollector
from .cells import MAX_NUMBER
from .columns import OutputCells, PromptCells, StimulusRow, around_difference, columns_of, excerpt, stimulus_row_preview
from .existing import (
    MAX_PROFILED_TEXTS,
    NO_EXTRAS,
    ExistingStimuli,
    OutputKey,
    PromptState,
    output_content_digest,
    text_digest,
)
from .groups import PromptGroups
from .images import ImportedImages
from .names import DistinctNames
from .options import Options
from .result import MAX_EXAMPLES, MAX_LISTED_CHANGES, MAX_LISTED_MISSING, ImportChange, ImportReport

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
        self._between: list[str] = []
        self._within: list[str] = []
        self._between_count = self._within_count = 0
        self._empty: list[str] = []
        self._empty_count = self._without_text = 0
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

    def _note_text(self, entry: StimulusRow, system: int, prompt: int, cells: OutputCells, content: bytes) -> None:
        if cells.is_empty:
            self._empty_count += 1
            if len(self._empty) < MAX_EXAMPLES:
                self._empty.append(f"{cells.system} on {entry.prompt.key} (row {entry.row})")
            return
        profile = self._profiles[cells.system]
        if cells.text and profile.n < MAX_PROFILED_TEXTS:
            profile.add(cells.text)
        stripped = cells.text.strip()
        same = content if len(stripped) == len(cells.text) else output_content_digest(stripped, "", False)
        first = self._first_places.setdefault(same, (system, prompt))
        if first == (system, prompt):
            return
        is_between = first[0] != system
        self._between_count += is_between
        self._within_count += not is_between
        examples = self._between if is_between else self._within
        if len(examples) < MAX_EXAMPLES:
            names, keys = list(self.systems), list(self.prompts)
            examples.append(
                f"{names[first[0]]} on {keys[first[1]]} = {cells.system} on {entry.prompt.key} (row {entry.row})"
            )

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
        for kind, text, examples, n in self.groups.findings(self.prompts.values()):
            report.add_finding(kind, text, examples, n)
        for kind, text, examples, n in (
            (
                "empty",
                "Empty outputs: annotators see that the system produced no text.",
                self._empty,
                self._empty_count,
            ),
            ("same_between_systems", "Two systems gave the same output.", self._between, self._between_count),
            (
                "same_within_system",
                "A system gave the same output to different prompts.",
                self._within,
                self._within_count,
            ),
            ("prompt_without_text", "New prompts have no text: the file has no column for it.", [], self._without_text),
        ):
            if n:
                report.add_finding(kind, text, examples, n)
        if self.new_systems and self.options.creates_systems:
            report.add_finding(
                "new_systems",
                "Systems that will be added; tick for each one whether it is a human author.",
                sorted(self.new_systems),
            )
        if self.images.notes:
            report.add_finding("image_notes", "Images that heval changed when it converted them.", self.images.notes)
        if unused := self.images.unused_image_names():
            report.add_finding(
                "images_unused", "Images in the archive that no row names; they are not imported.", unused
            )
