"""The report of an import or a dry run: plain values for a page, a job's result and a command's output."""

from dataclasses import asdict, dataclass, field
from typing import Any

from studies.stimuli.rows import MAX_LISTED_PROBLEMS, TableProblem, TableProblems

MAX_LISTED_CHANGES = 100
MAX_EXAMPLES = 100
MAX_LISTED_MISSING = 10_000
COUNTED_KINDS = ("systems", "prompts", "outputs", "batches")


@dataclass
class RowCounts:
    """Numbers of one kind of row in the file: new, the same as in the study, and changed."""

    new: int = 0
    same: int = 0
    changed: int = 0


@dataclass(frozen=True)
class ImportChange:
    """Something that has other content in the study than in the file."""

    row: int
    what: str
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class ImportFinding:
    """Something to know before confirming; ``kind`` names it for programs."""

    kind: str
    text: str
    count: int = 0
    examples: tuple[str, ...] = ()


@dataclass
class ImportReport:
    """The result of a dry run, and of an import."""

    filename: str = ""
    sha256: str = ""
    rows: int = 0
    counts: dict[str, RowCounts] = field(default_factory=lambda: {kind: RowCounts() for kind in COUNTED_KINDS})
    problems: TableProblems = field(default_factory=TableProblems)
    first: list[dict[str, Any]] = field(default_factory=list)
    findings: list[ImportFinding] = field(default_factory=list)
    changes: list[ImportChange] = field(default_factory=list)
    changes_count: int = 0
    missing: list[tuple[str, str]] = field(default_factory=list)
    missing_count: int = 0
    is_written: bool = False
    # The columns of the file with their roles and examples, if a person may change the roles.
    columns: list[dict[str, Any]] = field(default_factory=list)
    is_mapped: bool = False
    # The mapping that heval would propose in place of an earlier one, if it used an earlier one.
    proposed: list[str] = field(default_factory=list)
    # Outputs of each new system, drawn at random: [key of the prompt, text].
    samples: dict[str, list[list[str]]] = field(default_factory=dict)

    @property
    def is_sound(self) -> bool:
        return not self.problems

    @property
    def has_changes(self) -> bool:
        """Whether the import would change anything in the study."""
        return any(count.new for count in self.counts.values()) or self.changes_count > 0

    @property
    def has_only_prompts(self) -> bool:
        """Whether the file has new prompts and no output: outputs come later, or its columns were not recognised."""
        outputs = self.counts["outputs"] if "outputs" in self.counts else RowCounts()
        return bool("prompts" in self.counts and self.counts["prompts"].new) and not (
            outputs.new or outputs.same or outputs.changed
        )

    @property
    def mapping(self) -> list[str]:
        """Return how the columns were read, as the option ``columns``."""
        return [f"{one['role']}={one['column']}" for one in self.columns if one["role"]]

    @property
    def more_problems(self) -> int:
        return self.problems.count - len(self.problems)

    def add_finding(self, kind: str, text: str, examples: list[str] | tuple[str, ...] = (), count: int = 0) -> None:
        self.findings.append(ImportFinding(kind, text, count or len(examples), tuple(examples[:MAX_EXAMPLES])))

    def outcome(self) -> dict[str, Any]:
        """Return what a researcher confirms. It is compared before anything is written."""
        return {"sha256": self.sha256, "counts": {kind: asdict(count) for kind, count in self.counts.items()}}

    def as_json(self) -> dict[str, Any]:
        return {
            "filename": self.filename,
            "sha256": self.sha256,
            "rows": self.rows,
            "counts": {kind: asdict(count) for kind, count in self.counts.items()},
            "problems": {"count": self.problems.count, "first": [asdict(problem) for problem in self.problems]}
            | ({"sheets": list(self.problems.sheets)} if self.problems.sheets else {}),
            "first": self.first,
            "findings": [asdict(finding) | {"examples": list(finding.examples)} for finding in self.findings],
            "changes": {"count": self.changes_count, "first": [asdict(change) for change in self.changes]},
            "missing": {"count": self.missing_count, "pairs": [list(pair) for pair in self.missing]},
            "is_written": self.is_written,
            **({"columns": self.columns, "is_mapped": self.is_mapped} if self.columns else {}),
            **({"proposed": self.proposed} if self.proposed else {}),
            **({"samples": self.samples} if self.samples else {}),
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "ImportReport":
        problems = TableProblems(
            [TableProblem(**problem) for problem in stored["problems"]["first"]],
            stored["problems"]["count"],
            tuple(stored["problems"].get("sheets", ())),
        )
        return cls(
            filename=stored["filename"],
            sha256=stored["sha256"],
            rows=stored["rows"],
            counts={kind: RowCounts(**count) for kind, count in stored["counts"].items()},
            problems=problems,
            first=stored["first"],
            findings=[
                ImportFinding(**finding | {"examples": tuple(finding["examples"])}) for finding in stored["findings"]
            ],
            changes=[ImportChange(**change) for change in stored["changes"]["first"]],
            changes_count=stored["changes"]["count"],
            missing=[(prompt, system) for prompt, system in stored["missing"]["pairs"]],
            missing_count=stored["missing"]["count"],
            is_written=stored["is_written"],
            columns=stored.get("columns", []),
            is_mapped=stored.get("is_mapped", False),
            proposed=stored.get("proposed", []),
            samples=stored.get("samples", {}),
        )


__all__ = ["MAX_LISTED_PROBLEMS", "ImportChange", "RowCounts", "ImportFinding", "ImportReport"]
