"""Read a file of answers of an earlier evaluation: who answered about what, and which output was better."""

import hashlib
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from analysis.stats.planning.inputs import PROTOCOLS, StudySize
from studies.services.lifecycle import ActionRefused
from studies.stimuli.rows import Row, TableLimits, TableProblems, read_rows

if TYPE_CHECKING:
    from analysis.stats.planning.pilot_estimates import PilotEstimate

MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_ROWS = 100_000
PEOPLE, PROMPTS = "annotator", "prompt"
PREFERRED, VALUE, RATINGS = "preferred", "value", ("x", "y")
CHOICES = {"x": 1.0, "y": 0.0, "tie": 0.5}


class AnswersRefused(ActionRefused):
    """A file of answers that says nothing. ``problems`` lists the reasons, with rows."""

    def __init__(self, problems: TableProblems):
        super().__init__("; ".join(str(problem) for problem in problems.first))
        self.problems = problems


@dataclass(slots=True)
class AnswersFile:
    """The answers about one pair of systems, on the scale of the headline of ``protocol``."""

    sha256: str
    protocol: str
    points: int
    values: list[float] = field(default_factory=list)
    people: list[str] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)

    def estimate(self, source: str) -> "PilotEstimate":
        """Return what the answers say. Raise AnswersRefused if they say too little."""
        import numpy as np

        from analysis.stats.planning.pilot_estimates import estimate_pilot
        from analysis.stats.seeds import seeded_generator

        try:
            return estimate_pilot(
                self.values,
                np.array(self.people, dtype=object),
                np.array(self.prompts, dtype=object),
                protocol=self.protocol,
                points=self.points,
                rng=seeded_generator(self.sha256, "pilot"),
                source=source,
            )
        except ValueError as refused:
            column, _, text = str(refused).partition(": ")
            problems = TableProblems()
            problems.add(None, {"people": PEOPLE, "prompts": PROMPTS}.get(column, column), text)
            raise AnswersRefused(problems) from None


def read_answers_file(filename: str, data: bytes, *, protocol: str = "", points: int = 5) -> AnswersFile:
    """Read a CSV or JSON-lines file of answers about one pair of systems. Raise AnswersRefused with every problem.

    Columns: ``annotator`` and ``prompt``, and one of: ``preferred`` (x, y or tie), ``x`` and ``y`` (ratings), or ``value`` (on the
    scale of the headline of ``protocol``). Other columns are ignored.
    """
    return _Reader(filename, protocol, points).read(data)


class _Reader:
    def __init__(self, filename: str, protocol: str, points: int):
        self.filename, self.protocol, self.points = filename, protocol, points
        self.problems = TableProblems()
        self.row_of: dict[tuple[str, str], int] = {}

    def read(self, data: bytes) -> AnswersFile:
        problems = self.problems
        if self.protocol and self.protocol not in PROTOCOLS:
            problems.add(None, None, f"“{self.protocol[:40]}” is not a protocol. Use {', '.join(PROTOCOLS)}.")
            raise AnswersRefused(problems)
        if len(data) > MAX_FILE_BYTES:
            problems.add(None, None, f"The file is larger than {MAX_FILE_BYTES // 2**20} MB. Send a smaller file.")
            raise AnswersRefused(problems)
        rows = read_rows(
            self.filename,
            data,
            known_columns=(PREFERRED, VALUE, *RATINGS),
            required_columns=(PEOPLE, PROMPTS),
            limits=TableLimits(bytes=MAX_FILE_BYTES, rows=MAX_ROWS),
            problems=problems,
        )
        found: AnswersFile | None = None
        kind = ""
        for row in rows:
            if found is None:
                kind = self._kind(row)
                protocol = self.protocol or ("rating" if kind == RATINGS[0] else "two_choice")
                # The same file, read as answers to another protocol, says something else.
                digest = hashlib.sha256(f"{protocol} {self.points} ".encode() + data).hexdigest()
                found = AnswersFile(digest, protocol, self.points)
            if not kind:
                break
            self._read_row(row, kind, found)
        if found is None or problems:
            problems.sort_by_row()
            raise AnswersRefused(problems)
        return found

    def _kind(self, row: Row) -> str:
        """Return the column that says which output was better, or '' after adding a problem."""
        kinds = [PREFERRED] * (PREFERRED in row.values) + [VALUE] * (VALUE in row.values)
        kinds += [RATINGS[0]] * all(name in row.values for name in RATINGS)
        if len(kinds) == 1:
            return kinds[0]
        text = "Name the answer in one way: a column preferred (x, y or tie), columns x and y, or a column value."
        self.problems.add(None, None, text)
        return ""

    def _read_row(self, row: Row, kind: str, found: AnswersFile) -> None:
        person, prompt = self._name(row, PEOPLE), self._name(row, PROMPTS)
        value = self._value(row, kind)
        if not person or not prompt or value is None:
            return
        first = self.row_of.setdefault((person, prompt), row.number)
        if first != row.number:
            self.problems.add(
                row.number, None, f"Row {first} already has an answer of this annotator about this prompt. Keep one."
            )
            return
        found.values.append(value)
        found.people.append(person)
        found.prompts.append(prompt)

    def _name(self, row: Row, column: str) -> str:
        text = _text(row.values.get(column))
        if not text:
            self.problems.add(row.number, column, f"The {column} is empty. Enter a name or number.")
        return text

    def _value(self, row: Row, kind: str) -> float | None:
        if kind == PREFERRED:
            text = _text(row.values.get(PREFERRED)).casefold()
            if text not in CHOICES:
                self.problems.add(row.number, PREFERRED, f"“{text[:40]}” is not x, y or tie.")
            return CHOICES.get(text)
        if kind == VALUE:
            value = self._number(row, VALUE)
            low, high = StudySize(
                protocol=self.protocol or "two_choice", people=6, prompts=6, prompts_each=6, points=self.points
            ).scale_ends
            if value is not None and not low <= value <= high:
                self.problems.add(row.number, VALUE, f"{value:g} is outside of the scale from {low:g} to {high:g}.")
                return None
            return value
        x, y = (self._number(row, name) for name in RATINGS)
        return None if x is None or y is None else (math.copysign(1, x - y) + 1) / 2 if x != y else 0.5

    def _number(self, row: Row, column: str) -> float | None:
        text = _text(row.values.get(column))
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if math.isfinite(value):
            return value
        self.problems.add(row.number, column, f"“{text[:40]}” is not a number. Enter a number, or remove the row.")
        return None


def _text(value: Any) -> str:
    return str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
