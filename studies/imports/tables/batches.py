"""Ready-made batches of a file: collect rows into items and items into batches, and check each against the design."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from studies.models import Arm, Section, Study
from studies.protocols import REGISTRY
from studies.stimuli.rows import TableProblems
from studies.stimuli.surface import find_repeated_prompts
from studies.stimuli.texts import name_key

from .columns import BatchCells, StimulusRow
from .existing import batch_digest
from .result import ImportReport


@dataclass(slots=True)
class GatheredPlacement:
    """An item in a batch: a prompt with one output of each system."""

    row: int
    section: int  # its position
    prompt: str
    position: int | None
    outputs: dict[str, int] = field(default_factory=dict)  # system > sample


@dataclass(slots=True)
class GatheredBatch:
    key: str
    arm: str
    row: int
    places: list[GatheredPlacement] = field(default_factory=list)
    by_position: dict[tuple[int, object], GatheredPlacement] = field(default_factory=dict)

    def ordered_placements(self) -> list[GatheredPlacement]:
        """Return the places by section, then by position if the file gives positions, or else in the order of the file."""
        return sorted(self.places, key=lambda placement: (placement.section, placement.position or 0))

    def digest_lines(self) -> list[list]:
        return [
            [self.arm, number, placement.section, placement.prompt, system, sample]
            for number, placement in enumerate(self.ordered_placements())
            for system, sample in placement.outputs.items()
        ]


class BatchCollector:
    """Collect the places that the rows describe. ``finish`` checks each complete batch."""

    def __init__(self, study: Study, problems: TableProblems):
        self.problems = problems
        self.batches: dict[str, GatheredBatch] = {}
        self._by_name: dict[str, str] = {}
        self._arms = {arm.name: arm for arm in Arm.objects.filter(study=study.pk).prefetch_related("systems")}
        self._arm_systems = {name: {s.name for s in arm.systems.all()} for name, arm in self._arms.items()}
        self._sections: dict[int, Section] = {
            section.position: section
            for section in Section.objects.filter(study=study.pk).prefetch_related("arms").order_by("position")
            if section.protocol in REGISTRY
            and REGISTRY[section.protocol].has_items
            and section.m
            and not section.reuses_id
        }
        self._seen_by = {p: {arm.name for arm in section.arms.all()} for p, section in self._sections.items()}
        self._has_reported_missing_section = False

    def add(self, entry: StimulusRow, cells: BatchCells, outputs: dict[str, int]) -> None:
        """Add an entry's outputs (system > sample) to the batch and place that its row names."""
        section = self._section(entry.row, cells.section)
        batch = self._batch(entry, cells)
        if section is None or batch is None:
            return
        if self._seen_by[section] and batch.arm not in self._seen_by[section]:
            self.problems.add(entry.row, "arm", f"the arm {batch.arm} does not see section {section}.")
            return
        placement = self._placement(batch, entry, section, cells.position)
        if placement is None:
            return
        for system, sample in outputs.items():
            if system in placement.outputs:
                self.problems.add(
                    entry.row,
                    "system",
                    f"{system} occurs twice for {entry.prompt.key} in batch {batch.key}; if the batch shows the prompt twice, "
                    "number its places in a column “position”.",
                )
                return
            if (allowed := self._arm_systems.get(batch.arm)) and system not in allowed:
                self.problems.add(entry.row, "arm", f"the arm {batch.arm} does not see {system}.")
                return
            placement.outputs[system] = sample

    def _section(self, row: int, position: int | None) -> int | None:
        if position is None and len(self._sections) == 1:
            return next(iter(self._sections))
        if position in self._sections:
            return position
        drawing_sections = ", ".join(map(str, self._sections))
        if not self._sections:
            if not self._has_reported_missing_section:  # report it once: it concerns the study, not the row
                self.problems.add(
                    None,
                    None,
                    "The study has no section that shows items: add one before you import ready-made batches.",
                )
            self._has_reported_missing_section = True
        elif position is None:
            self.problems.add(row, "section", f"is missing: several sections show items ({drawing_sections}).")
        else:
            self.problems.add(
                row, "section", f"no section {position} draws items; sections that do: {drawing_sections}."
            )
        return None

    def _batch(self, entry: StimulusRow, cells: BatchCells) -> GatheredBatch | None:
        arm = cells.arm
        if arm and arm not in self._arms:
            self.problems.add(
                entry.row, "arm", f"the study has no arm “{arm}”; it has {', '.join(self._arms) or 'none'}."
            )
            return None
        batch = self.batches.get(cells.key)
        if batch is not None:
            if arm and arm != batch.arm:
                self.problems.add(
                    entry.row,
                    "arm",
                    f"batch {cells.key} has the arm {batch.arm} in row {batch.row}: use one arm for each batch.",
                )
                return None
            return batch
        first_key = self._by_name.setdefault(name_key(cells.key), cells.key)
        if first_key != cells.key:
            self.problems.add(entry.row, "batch", f"“{cells.key}” and “{first_key}” differ only in case or blanks.")
            return None
        if not arm and len(self._arms) != 1:
            arms_text = (
                f"the study has {len(self._arms)}: {', '.join(self._arms)}" if self._arms else "the study has none"
            )
            self.problems.add(entry.row, "arm", f"is missing; {arms_text}.")
            return None
        batch = self.batches[cells.key] = GatheredBatch(cells.key, arm or next(iter(self._arms)), entry.row)
        return batch

    def _placement(
        self, batch: GatheredBatch, entry: StimulusRow, section: int, position: int | None
    ) -> GatheredPlacement | None:
        if position is not None:
            at: object = position
        elif entry.is_wide:
            at = ("row", entry.row)  # each row of the wide format is one item
        else:
            at = ("prompt", entry.prompt.key)
        placement = batch.by_position.get((section, at))
        if placement is None:
            if batch.places and (batch.places[0].position is None) != (position is None):
                self.problems.add(
                    entry.row,
                    "position",
                    f"is given in some rows of batch {batch.key} and not in others (row {batch.places[0].row}).",
                )
                return None
            placement = GatheredPlacement(entry.row, section, entry.prompt.key, position)
            batch.by_position[section, at] = placement
            batch.places.append(placement)
        elif placement.prompt != entry.prompt.key:
            self.problems.add(
                entry.row,
                "position",
                f"place {position} of batch {batch.key} already has the prompt {placement.prompt} (row {placement.row}).",
            )
            return None
        return placement

    def check_and_count(self, report: ImportReport, existing: dict[str, bytes], systems: set[str]) -> None:
        """Check each complete batch, and count the new ones."""
        count = report.counts["batches"]
        incomplete: list[str] = []
        sizes: list[str] = []
        uncovered: list[str] = []
        existing_keys = {name_key(key): key for key in existing}
        for batch in self.batches.values():
            self._check_items(batch)
            other = existing_keys.get(name_key(batch.key), batch.key)
            if other != batch.key:
                self.problems.add(
                    batch.row, "batch", f"“{batch.key}” differs from “{other}” of the study only in case or blanks."
                )
            expected = self._arm_systems.get(batch.arm) or systems
            for placement in batch.places:
                lacking = sorted(expected - set(placement.outputs))
                if lacking:
                    incomplete.append(f"{batch.key}: {placement.prompt} lacks {', '.join(lacking)}")
            sizes += self._wrong_sizes(batch)
            uncovered += self._uncovered(batch)
            if batch.key not in existing:
                count.new += 1
            elif existing[batch.key] == batch_digest(batch.digest_lines()):
                count.same += 1
            else:
                count.changed += 1
        self._add_findings(report, incomplete, sizes, uncovered)

    def changed_batches(self, existing: dict[str, bytes]) -> Iterator[GatheredBatch]:
        """Yield the batches that are new or differ from the study's."""
        for batch in self.batches.values():
            if existing.get(batch.key) != batch_digest(batch.digest_lines()):
                yield batch

    def _check_items(self, batch: GatheredBatch) -> None:
        first_rows: dict[tuple, int] = {}
        for placement in batch.places:
            if not placement.outputs:
                self.problems.add(
                    placement.row, None, f"batch {batch.key} has the prompt {placement.prompt} without any output."
                )
                continue
            item_key = (placement.section, placement.prompt, tuple(sorted(placement.outputs.items())))
            first = first_rows.setdefault(item_key, placement.row)
            if first != placement.row:
                self.problems.add(
                    placement.row,
                    "prompt_key",
                    f"batch {batch.key} already has {placement.prompt} with the same outputs (row {first}).",
                )

    def _wrong_sizes(self, batch: GatheredBatch) -> Iterator[str]:
        for position, section in self._sections.items():
            n = sum(placement.section == position for placement in batch.places)
            if n and n != section.m and section.purpose == Section.Purpose.LIVE:
                yield f"{batch.key}: {n} in section {position}, whose m is {section.m}"

    def _uncovered(self, batch: GatheredBatch) -> Iterator[str]:
        sections = {placement.section for placement in batch.places}
        for position in self._sections:
            if position not in sections and (not self._seen_by[position] or batch.arm in self._seen_by[position]):
                yield f"{batch.key}: nothing in section {position}"

    def _add_findings(self, report: ImportReport, incomplete, sizes, uncovered) -> None:
        repeated_prompts = find_repeated_prompts((b.key, [p.prompt for p in b.places]) for b in self.batches.values())
        if repeated_prompts:
            report.add_finding(
                "prompt_twice_in_batch",
                "A batch contains the same prompt more than once: its annotator sees it again.",
                [f"{repeated.batch}: {repeated.prompt}, {repeated.times} times" for repeated in repeated_prompts],
            )
        if incomplete:
            report.add_finding(
                "item_incomplete", "Items of ready-made batches lack the output of a system.", incomplete
            )
        if sizes:
            report.add_finding(
                "batch_size", "Ready-made batches have more or fewer items than their section's m.", sizes
            )
        if uncovered:
            report.add_finding(
                "section_uncovered", "Ready-made batches have no items for a section that shows items.", uncovered
            )
