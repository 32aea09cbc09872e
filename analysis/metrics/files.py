"""Read a file of scores: a row for each output or pair of outputs, and a column for each metric or judge."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from analysis.models import LARGEST_SCORE
from studies.models import Output, Question, Section, Study
from studies.services.lifecycle import FileRefused
from studies.stimuli.columns import KEY, PROMPT_ALIASES, QUESTION, SYSTEM, VALUE, Columns
from studies.stimuli.numbers import NumberRefused, parse_number, parse_whole_number
from studies.stimuli.rows import Row, TableLimits, TableProblems, read_rows
from studies.stimuli.texts import SettingsRefused, name_key

MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_ROWS = 500_000
OUTPUT_COLUMNS = ("system", "prompt", "sample", "question", "run", "version")
PAIR_COLUMNS = ("first", "second")
ROLES = frozenset((*OUTPUT_COLUMNS, *PAIR_COLUMNS, *PROMPT_ALIASES))
LISTED = 5


class ScoresRefused(FileRefused):
    """A file of scores that cannot be stored."""


@dataclass(frozen=True, slots=True)
class ColumnScores:
    """The scores of one column about one question: output id (or ids of the first and second output of a pair) and run to value."""

    column: str
    question: Question | None
    by_output: dict[tuple[int, int], float] = field(default_factory=dict)
    by_pair: dict[tuple[int, int, int], float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.by_output) + len(self.by_pair)

    @property
    def question_id(self) -> int | None:
        return self.question.pk if self.question else None


@dataclass(slots=True)
class ScoresFile:
    sha256: str
    columns: list[ColumnScores] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ScoresFileSettings:
    """What a person says about a file. ``columns``: what columns with other names than heval's are, such as ``prompt_key=id``; and those
    that hold scores, such as ``value=bleu`` or ``bleu``, if not every other column does. ``proposes_columns``: columns that only their
    contents show are read.

    ``question``: the key or criterion that all scores are about, if the file has no column ``question``. ``is_partial``: the
    file may leave out outputs.
    """

    columns: tuple[str, ...] = ()
    question: str = ""
    scale_low: float | None = None
    scale_high: float | None = None
    is_partial: bool = False
    proposes_columns: bool = True

    @property
    def mapping(self) -> list[str]:
        return [text for text in self.columns if "=" in text and _role(text) in ROLES]

    @property
    def score_columns(self) -> list[str]:
        return [
            text.partition("=")[2].strip() if "=" in text and _role(text) == VALUE else text
            for text in self.columns
            if text not in self.mapping
        ]


def _role(text: str) -> str:
    return name_key(text.partition("=")[0])


def find_question(study: Study, name: str) -> Question | None:
    """Return the live question with this key or criterion, or None. A key comes before a criterion, and the first section first."""
    live = Question.objects.filter(section__study=study, section__purpose=Section.Purpose.LIVE)
    by_position = live.order_by("section__position", "position")
    return by_position.filter(key=name).first() or by_position.filter(criterion=name).first()


def question_names(study: Study) -> list[str]:
    live = Question.objects.filter(section__study=study, section__purpose=Section.Purpose.LIVE)
    return list(dict.fromkeys(live.order_by("section__position", "position").values_list("key", flat=True)))


def read_scores_file(study: Study, filename: str, data: bytes, chosen: ScoresFileSettings) -> ScoresFile:
    """Read a CSV or JSON-lines file of scores. Raise ScoresRefused with every problem; then nothing is stored.

    Columns: ``system`` and ``prompt`` (or ``first``, ``second`` and ``prompt`` for pairs), optionally ``sample``, ``question``, ``run`` and
    ``version``; every other column has the scores of one metric or judge. An empty cell has no score. A row is about a pair if it
    names a first or a second system.
    """
    return _Reader(study, chosen).read(filename, data)


class _Reader:
    def __init__(self, study: Study, chosen: ScoresFileSettings):
        self.study, self.chosen = study, chosen
        self.problems = TableProblems()
        self.found: dict[tuple[str, int | None], ColumnScores] = {}
        self.row_of: dict[tuple[Any, ...], int] = {}
        # Outputs whose score has a fault of its own, by column and question: they are not said to have none.
        self.faulty: dict[tuple[str, int | None], set[int]] = {}
        self.version: tuple[str, int] | None = None
        self.questions: dict[str, Question | None] = {}

    def read(self, filename: str, data: bytes) -> ScoresFile:
        problems = self.problems
        if len(data) > MAX_FILE_BYTES:
            problems.add(None, None, f"The file is larger than {MAX_FILE_BYTES // 2**20} MB. Send a smaller file.")
            raise ScoresRefused(problems)
        outputs = Output.objects.filter(system__study=self.study).values_list(
            "pk", "system__name", "prompt__key", "sample"
        )
        self.outputs = {(system, prompt, sample): pk for pk, system, prompt, sample in outputs}
        # Names are compared as everywhere: case, blanks and composition make no other name.
        self.by_key = {
            (name_key(system), name_key(prompt), sample): pk for (system, prompt, sample), pk in self.outputs.items()
        }
        self.systems, self.prompts = {key[0] for key in self.by_key}, {key[1] for key in self.by_key}
        limits = TableLimits(bytes=MAX_FILE_BYTES, rows=MAX_ROWS)
        try:
            columns = Columns(
                ("prompt",),
                (*OUTPUT_COLUMNS, *PAIR_COLUMNS),
                aliases=PROMPT_ALIASES,
                meanings={"prompt": KEY, "system": SYSTEM, "question": QUESTION}
                | {name: name for name in PAIR_COLUMNS},
                contents={"prompt": self._is_prompt, "system": self._is_system},
                mapping=self.chosen.mapping,
                proposes=self.chosen.proposes_columns,
            )
        except SettingsRefused as refused:
            problems.add(None, None, str(refused))
            raise ScoresRefused(problems) from None
        rows = read_rows(filename, data, columns=columns, limits=limits, problems=problems)
        if self.chosen.question and find_question(self.study, self.chosen.question) is None:
            self._unknown_question(None, self.chosen.question)
        for row in rows:
            self._read_row(row)
        self._check_columns()
        if problems:
            problems.sort_by_row()
            raise ScoresRefused(problems)
        return ScoresFile(hashlib.sha256(data).hexdigest(), list(self.found.values()))

    def _is_prompt(self, text: str) -> bool:
        return name_key(text) in self.prompts

    def _is_system(self, text: str) -> bool:
        return name_key(text) in self.systems

    def _read_row(self, row: Row) -> None:
        self._check_version(row)
        question = self._question(row)
        key = self._key(row)
        names = self.chosen.score_columns or [
            name for name in row.values if name and name not in (*OUTPUT_COLUMNS, *PAIR_COLUMNS)
        ]
        if not names:
            self.problems.add(row.number, None, "The row has no column with scores. Add one, named like its metric.")
        if key is None:
            return
        question_id = question.pk if question else None
        seen = self.row_of.setdefault((key, question_id), row.number)
        if seen != row.number:
            text = f"Row {seen} already has scores for the same output, question and run. Keep one of the two rows."
            self.problems.add(row.number, None, text)
            return
        for name in names:
            value = self._value(row, name, is_pair=len(key) == 3)
            if value is None:
                if _text(row.values.get(name)):
                    self.faulty.setdefault((name, question_id), set()).add(key[0])
                continue
            scores = self.found.setdefault((name, question_id), ColumnScores(name, question))
            if len(key) == 3:
                scores.by_pair[key] = value
            else:
                scores.by_output[key] = value

    def _check_version(self, row: Row) -> None:
        version = _text(row.values.get("version"))
        if not version:
            return
        if self.version is None:
            self.version = (version, row.number)
        elif version != self.version[0]:
            text = f"The version is “{version[:40]}”, and in row {self.version[1]} “{self.version[0][:40]}”. Upload one version at a time."
            self.problems.add(row.number, "version", text)

    def _question(self, row: Row) -> Question | None:
        name = _text(row.values.get("question")) or self.chosen.question
        if not name:
            return None
        if name not in self.questions:
            self.questions[name] = find_question(self.study, name)
        if self.questions[name] is None and name != self.chosen.question:
            self._unknown_question(row.number, name)
        return self.questions[name]

    def _unknown_question(self, row: int | None, name: str) -> None:
        names = ", ".join(f"“{key}”" for key in question_names(self.study)[:LISTED])
        self.problems.add(row, "question", f"“{name[:80]}” is not a question of this study. Use one of: {names}.")

    def _key(self, row: Row) -> Any:
        run = self._number(row, "run", 1, at_least=1)
        sample = self._number(row, "sample", 0, at_least=0)
        if run is None or sample is None:
            return None
        prompt = _text(row.values.get("prompt"))
        if _is_about_a_pair(row):
            first, second = (self._output(row, column, prompt, sample) for column in PAIR_COLUMNS)
            if first is None or second is None:
                return None
            if first == second:
                self.problems.add(row.number, "second", "Both outputs of the pair are the same. Name two systems.")
                return None
            return first, second, run
        output = self._output(row, "system", prompt, sample)
        return None if output is None else (output, run)

    def _output(self, row: Row, column: str, prompt: str, sample: int) -> int | None:
        system = _text(row.values.get(column))
        if not system:
            self.problems.add(row.number, column, "The name of the system is empty. Enter a system of this study.")
            return None
        found = self.by_key.get((name_key(system), name_key(prompt), sample))
        if found is None:
            text = (
                f"“{system[:60]}” has no output for the prompt “{prompt[:60]}”. Correct the names, or remove the row."
            )
            self.problems.add(row.number, column, text)
        return found

    def _number(self, row: Row, column: str, default: int, *, at_least: int) -> int | None:
        text = _text(row.values.get(column))
        if not text:
            return default
        try:
            return parse_whole_number(text, at_least, 32_767)
        except NumberRefused as refused:
            self.problems.add(row.number, column, str(refused))
            return None

    def _value(self, row: Row, column: str, *, is_pair: bool) -> float | None:
        raw = row.values.get(column)
        text = _text(raw)
        if not text:
            return None
        if is_pair and (named := self._named_verdict(row, text)) is not None:
            return named
        try:
            value = parse_number(raw if isinstance(raw, bool) else text)
        except NumberRefused as refused:
            self.problems.add(row.number, column, str(refused))
            return None
        low, high = (0.0, 1.0) if is_pair else (self.chosen.scale_low, self.chosen.scale_high)
        if abs(value) > LARGEST_SCORE:
            self.problems.add(
                row.number, column, f"“{text[:40]}” is too large. Leave the cell empty if there is no score."
            )
        elif (low is not None and value < low) or (high is not None and value > high):
            text = (
                f"{value:g} is outside of the scale from {low:g} to {high:g}. Convert the scores, or correct the scale."
            )
            self.problems.add(row.number, column, text)
        else:
            return value
        return None

    @staticmethod
    def _named_verdict(row: Row, text: str) -> float | None:
        word = name_key(text)
        if word == name_key(_text(row.values.get("first"))) or word == "first":
            return 1.0
        if word == name_key(_text(row.values.get("second"))) or word == "second":
            return 0.0
        return 0.5 if word == "tie" else None

    def _check_columns(self) -> None:
        for name in self.chosen.score_columns if self.row_of or not self.problems else ():
            if not any(column == name for column, _ in self.found):
                self.problems.add(None, name, "The file has no scores in this column. Check the name of the column.")
        if not self.found and not self.problems:
            self.problems.add(None, None, "The file has no scores. Add a row for each output.")
        for scores in self.found.values():
            self._check_column(scores)

    def _check_column(self, scores: ColumnScores) -> None:
        about = f" for the question “{scores.question.key}”" if scores.question else ""
        # Verdicts on pairs may all be “first”: the files of judges list the winner first, and a judge who always says it is a finding.
        values = set(scores.by_output.values())
        if len(values) == 1 and len(scores.by_output) > 1 and not scores.by_pair:
            rows = [self.row_of[key, scores.question_id] for key in scores.by_output]
            text = (
                f"All scores{about} (rows {min(rows):,} to {max(rows):,}) are {next(iter(values)):g}, so they distinguish nothing. "
                "Check the metric or judge."
            )
            self.problems.add(None, scores.column, text)
        if self.chosen.is_partial or not scores.by_output:
            return
        covered = {output for output, _ in scores.by_output}
        covered |= self.faulty.get((scores.column, scores.question_id), set())
        missing = [key for key, pk in self.outputs.items() if pk not in covered]
        if missing:
            text = (
                f"{len(missing):,} of {len(self.outputs):,} outputs have no score{about}: {_listed(missing)}. "
                "Add them, or say that the file covers a part."
            )
            self.problems.add(None, scores.column, text)


def _is_about_a_pair(row: Row) -> bool:
    """Return whether a row names two outputs. A file may have rows about pairs and rows about single outputs."""
    if any(_text(row.values.get(name)) for name in PAIR_COLUMNS):
        return True
    return "system" not in row.values and any(name in row.values for name in PAIR_COLUMNS)


def _listed(missing: Iterable[tuple[str, str, int]]) -> str:
    named = [f"“{system[:40]}” for “{prompt[:40]}”" for system, prompt, _ in missing]
    more = f" and {len(named) - LISTED:,} more" if len(named) > LISTED else ""
    return ", ".join(named[:LISTED]) + more


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).strip() if isinstance(value, str | int | float) else ""
