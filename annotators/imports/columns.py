"""The columns of a file of answers: the role of each, proposed from names and from what the study knows, and the rows that they give.

A role is one of ``ROLES``, the system under a letter (``shown:A``), or an answer to one question (``value:overall``), perhaps about one
prompt and one system (``value:overall@p1@ada``). A row with several columns of answers gives as many answers.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import compress
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple

from annotators.recruitment.channels import is_unfilled
from studies.design.wording import QuestionWording
from studies.imports.tables.columns import (
    CellRefused,
    ColumnLayout,
    RecordReader,
    parse_identity_cell,
    parse_name_cell,
    parse_non_negative_integer_cell,
    parse_text_cell,
)
from studies.protocols.base.fields import TIE, ScaleSpec
from studies.stimuli.columns import KEY, OTHER_NAMES, PERSON, QUESTION, SYSTEM, TEXT, TIME, VALUE, WINNER
from studies.stimuli.numbers import NumberRefused, is_number, parse_number
from studies.stimuli.rows import Row, Rows, TableProblems, unescape_formula
from studies.stimuli.texts import SettingsRefused, name_key

MAX_COLUMN_NAME_LENGTH = 200


@lru_cache(10_000)
def natural_sort_key(key: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key that compares numbers by their value, so that p2 comes before p10."""
    return tuple(
        (0, int(part), "") if part.isascii() and part.isdigit() else (1, 0, part)
        for part in re.split(r"([0-9]+)", key)
        if part
    )


# Cells


def parse_answer(value: Any, column: str, limit: int) -> str:
    """Return an answer as it is written. What it means depends on the question's scale."""
    return parse_text_cell(value, column).strip() if isinstance(value, str | None) else json.dumps(value)


def _parse_text(value: Any, column: str, limit: int) -> str:
    return parse_text_cell(value, column).strip()


def _parse_person(value: Any, column: str, limit: int) -> str:
    """Return the id of an annotator. A text such as “Ann <ann@example.org>” is one, although it has marks of placeholders."""
    name = parse_identity_cell(value, column, limit)
    if name and not name[0].isalnum() and is_unfilled(name):
        raise CellRefused(
            column, f"“{name[:60]}” is a placeholder that was not filled in, so it names nobody. Remove the row."
        )
    return name


def _parse_integer(value: Any, column: str, limit: int) -> int | None:
    return parse_non_negative_integer_cell(value, column)


def _parse_label(value: Any, column: str, limit: int) -> str:
    label = parse_name_cell(value, column, limit)
    if label and not LABEL_PATTERN.fullmatch(label):
        raise CellRefused(column, f"must be a letter such as A or B, not “{label}”.")
    return label


def _parse_outputs(value: Any, column: str, limit: int) -> tuple[tuple[str, int], ...]:
    """Return the outputs of an item as heval's own export writes them: a list of pairs of system and sample."""
    try:
        pairs = json.loads(value) if isinstance(value, str) and value else value or []
        return tuple((str(system), int(sample)) for system, sample in pairs)
    except (ValueError, TypeError, RecursionError):
        raise CellRefused(
            column, "is not as heval exports it. Leave this column out, or export the file again."
        ) from None


LABEL_PATTERN = re.compile(r"[A-Z]{1,4}")
_TURK_TIME = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2} [0-9]{1,2} [0-9:]{8}) (PST|PDT|UTC|GMT) ([0-9]{4})")
_TURK_ZONES = {"PST": -8, "PDT": -7, "UTC": 0, "GMT": 0}
_FORM_TIME = re.compile(
    r"([0-9]{4}/[0-9]{1,2}/[0-9]{1,2} [0-9]{1,2}:[0-9]{2}:[0-9]{2} [AP]M)(?: GMT([+-][0-9]{1,2})(?::([0-9]{2}))?)?"
)


def time_of(text: str) -> datetime | None:
    """Return a time as ISO 8601 writes it, MTurk (“Mon Nov 25 11:21:32 PST 2019”) or Google Forms (“2024/02/28 10:12:13 AM GMT+1”)."""
    try:
        if turk := _TURK_TIME.fullmatch(text):
            zone = timezone(timedelta(hours=_TURK_ZONES[turk[2]]))
            return datetime.strptime(f"{turk[1]} {turk[3]}", "%b %d %H:%M:%S %Y").replace(tzinfo=zone)
        if form := _FORM_TIME.fullmatch(text):
            read = datetime.strptime(f"{form[1]} +0000", "%Y/%m/%d %I:%M:%S %p %z")
            if form[2] is None:
                return read.replace(tzinfo=None)
            hours, minutes = int(form[2]), int(form[3] or 0)
            return read.replace(tzinfo=timezone(timedelta(hours=hours, minutes=-minutes if hours < 0 else minutes)))
        return datetime.fromisoformat(text) if len(text) < 50 else None
    except (ValueError, OverflowError):
        return None


def _parse_time(value: Any, column: str, limit: int) -> tuple[datetime | None, bool]:
    """Return the time in UTC, and whether the file gave its UTC offset."""
    if value is None or value == "":
        return None, True
    parsed = time_of(value.strip()) if isinstance(value, str) else None
    try:
        in_utc = parsed and (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        in_utc = None
    if parsed is None or in_utc is None or in_utc.year < 1970:
        raise CellRefused(column, f"must be a time such as 2026-11-21T10:00:00Z, not {value!r:.40}.")
    if in_utc > datetime.now(UTC):
        raise CellRefused(column, f"must not be in the future: {value!r:.40}.")
    return in_utc, parsed.tzinfo is not None


# The roles. The declaration below says everything about a column: its names, its limit, and how a cell is read.


@dataclass(frozen=True, slots=True)
class Role:
    """A column of a file of answers.

    ``label``: what the page calls it. ``own``: heval's other names of it. ``known``: names that people and tools give it, a better one
    first; they count only if no column has one of heval's own names. ``is_answer``: an answer, and not what the answer is about.
    """

    name: str
    label: str
    parse: Callable[[Any, str, int], Any] = parse_name_cell
    limit: int = 0
    own: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    is_answer: bool = False


# fmt: off
ROLES = {
    role.name: role
    for role in (
        Role("annotator", "annotator", _parse_person, 200, known=OTHER_NAMES[PERSON]),
        Role("arm", "arm", limit=50),
        Role("section", "position of the section", _parse_integer),
        Role("question", "question or criterion", limit=2000, known=(*OTHER_NAMES[QUESTION], "metric")),
        Role("prompt_key", "key of the prompt", parse_identity_cell, 100, own=("prompt", "key", "pair"), known=OTHER_NAMES[KEY]),
        Role("prompt_text", "text of the prompt", _parse_text, known=OTHER_NAMES[TEXT]),
        Role("system", "system whose output was judged", limit=100, known=OTHER_NAMES[SYSTEM]),
        Role("sample", "number of the output", _parse_integer),
        Role("value", "answer", parse_answer, is_answer=True, known=OTHER_NAMES[VALUE]),
        Role("chosen", "chosen output", limit=100, own=("chosen_system",), is_answer=True, known=OTHER_NAMES[WINNER]),
        Role("choice", "key of the chosen option", limit=200, is_answer=True),
        Role("text", "text that the annotator wrote", _parse_text, is_answer=True, known=(
            "comment", "comments", "explanation", "rationale",
        )),
        Role("skip_reason", "reason to skip", limit=200, is_answer=True),
        Role("part", "place of an error mark", limit=50),
        Role("label", "letter on the screen", _parse_label, 8),
        Role("position", "position in the order", _parse_integer),
        Role("time", "time of the answer", _parse_time, known=OTHER_NAMES[TIME]),
        Role("outputs", "outputs of the item", _parse_outputs, own=("shown_outputs",)),
        Role("status", "status of the work", limit=100, known=("assignmentstatus", "assignment status")),
    )
}
# fmt: on
COLUMNS = tuple(ROLES)
# What a file without the column gives.
ABSENT = {role.name: role.parse(None, role.name, role.limit) for role in ROLES.values()}
ANSWER_COLUMNS = tuple(role.name for role in ROLES.values() if role.is_answer)
_answers = attrgetter(*ANSWER_COLUMNS)
# The system that was shown under each letter of the screen: shown:A, shown:B, …
SHOWN_COLUMN = re.compile(r"shown:([A-Z]{1,2})")
SHOWN_NAMES = {"shown:A": OTHER_NAMES["first"], "shown:B": OTHER_NAMES["second"]}
# An answer to a question, perhaps about one prompt and one system: value:overall, value:overall@p1@ada
ANSWER_TO = re.compile(r"value:([^@]+)(?:@([^@]+)(?:@([^@]+))?)?")
OWN_NAMES = {name: role.name for role in ROLES.values() for name in (role.name, *role.own)}
# Columns that only heval's own export has. Cells of such a file that would run as formulas have an apostrophe before them.
OWN_COLUMNS = frozenset({"chosen_system", "slot", "item_kind", "is_erased"})
# Words for the status of work that a panel or a survey program does not count.
NOT_COUNTED = frozenset({"rejected", "survey preview", "survey test", "spam"})
TIE_WORDS = frozenset({"tie", "tie (bothbad)", "tie (both bad)", "draw", "equal", "both bad", "bothbad", "neither"})
LETTER_WORDS = {"left": "A", "right": "B", "first": "A", "second": "B", "1": "A", "2": "B"}


def is_role(name: str) -> bool:
    return name in ROLES or bool(SHOWN_COLUMN.fullmatch(name) or ANSWER_TO.fullmatch(name))


# The options of an import of answers.


@dataclass(frozen=True)
class Options:
    """``columns`` maps roles to the file's names of columns, as in {"annotator": "worker"}. Columns that are ``left_out`` are not read.
    ``proposes_columns``: give the other columns the roles that their contents propose, for a person who sees them first. ``sheet``: the
    sheet of a workbook that has several."""

    columns: dict[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    proposes_columns: bool = False
    sheet: str = ""

    def as_json(self) -> dict[str, Any]:
        parts = asdict(self) | {"left_out": list(self.left_out)}
        return {name: part for name, part in parts.items() if part or name == "columns"}

    @classmethod
    def from_json(cls, options_json: object) -> "Options":
        """Return the options from stored JSON. Raises SettingsRefused for anything invalid."""
        options = options_json if isinstance(options_json, dict) else {"columns": None}
        columns, left_out, sheet = options.get("columns", {}), options.get("left_out", []), options.get("sheet", "")
        if (
            not isinstance(columns, dict)
            or not isinstance(left_out, list)
            or not isinstance(sheet, str)
            or set(options) - {"columns", "left_out", "proposes_columns", "sheet"}
        ):
            raise SettingsRefused("options: must be an object with columns, left_out, proposes_columns and sheet.")
        return cls(_checked_mapping(columns), tuple(map(str, left_out)), bool(options.get("proposes_columns")), sheet)

    @classmethod
    def from_texts(cls, texts: Iterable[str], **others: Any) -> "Options":
        """Return the options from texts such as ``annotator=worker``. Raises SettingsRefused, which names the wrong text."""
        mapping: dict[str, str] = {}
        for text in texts:
            # Keys of prompts and names of systems may have an equals sign.
            name, equals, column = text.rpartition("=") if "@" in text else text.partition("=")
            if not (name.strip() and equals and column.strip()):
                raise SettingsRefused(
                    f"“{text[:80]}” has no role or no column. Write ROLE=COLUMN, such as annotator=worker."
                )
            if name.strip() in mapping:
                raise SettingsRefused(f"The role “{name.strip()[:80]}” is given twice. Keep one of them.")
            mapping[name.strip()] = column.strip()
        return cls(_checked_mapping(mapping), **others)


def _checked_mapping(mapping: dict[Any, Any]) -> dict[str, str]:
    """Return the mapping after checking its roles and names. Raises SettingsRefused."""
    for name, column in mapping.items():
        if (
            not isinstance(name, str)
            or not isinstance(column, str)
            or not column
            or len(column) > MAX_COLUMN_NAME_LENGTH
        ):
            raise SettingsRefused(f"columns: the value of {str(name)[:60]!r} must be the name of a column of the file.")
        if not is_role(name):
            known = f"{', '.join(COLUMNS)}, shown:A, shown:B, …, and value:QUESTION"
            raise SettingsRefused(f"columns: heval has no column “{name[:60]}”. Its columns are {known}.")
    columns = list(map(name_key, mapping.values()))
    if repeated := [column for column in mapping.values() if columns.count(name_key(column)) > 1]:
        raise SettingsRefused(f"columns: “{repeated[0][:60]}” is named twice.")
    return dict(mapping)


# What the study knows: its names, by which columns are recognised and cells are understood.


class Names:
    """Names with what they mean, found as they are written or, if only one is like it, in another case, width or composition."""

    def __init__(self, meanings: Iterable[tuple[str, str]]):
        self.exact: dict[str, str] = {}
        self.folded: dict[str, str] = {}
        for name, meaning in meanings:
            _add(self.exact, name, meaning, meaning)
            _add(self.folded, name_key(name), meaning, name_key(meaning))

    def find(self, text: str) -> str:
        """Return the meaning of a name, or ''."""
        return self.exact[text] if text in self.exact else self.folded.get(name_key(text), "")

    def is_ambiguous(self, text: str) -> bool:
        return not self.find(text) and name_key(text) in self.folded

    @cached_property
    def by_words(self) -> dict[str, str]:
        """The names as words without marks, for names inside of other names."""
        words: dict[str, str] = {}
        for name, meaning in self.exact.items():
            _add(words, words_of(name), meaning, words_of(meaning))
        return words

    def find_inside(self, text: str) -> str:
        """Return the meaning of the longest name among the words of a text, or '' if it has none or several."""
        words = words_of(text).split()
        for length in range(min(len(words), 12), 0, -1):
            runs = (" ".join(words[start : start + length]) for start in range(len(words) - length + 1))
            if found := {self.by_words[run] for run in runs if run in self.by_words}:
                return found.pop() if len(found) == 1 else ""
        return ""


def _add(names: dict[str, str], name: str, meaning: str, itself: str) -> None:
    """Add a name. With another meaning it means neither, unless it names itself: a key comes before a criterion like it."""
    if name and names.setdefault(name, meaning) != meaning:
        is_key = names[name] and itself != name and (names[name] == name or name_key(names[name]) == name)
        names[name] = names[name] if is_key else ""


def words_of(text: str) -> str:
    return " ".join(re.sub(r"[\W_]+", " ", name_key(text)).split())


@dataclass(frozen=True)
class StudyNames:
    """The names of a study. ``questions`` also finds criteria and wordings; ``load_prompt_texts`` reads texts only if a file has them."""

    systems: Names
    prompts: Names
    questions: Names
    wordings: tuple[tuple[QuestionWording, bool], ...]  # with whether it is asked about each output
    load_prompt_texts: Callable[[], Names]

    @cached_property
    def prompt_texts(self) -> Names:
        return self.load_prompt_texts()

    @property
    def has_choices_of_outputs(self) -> bool:
        return any(question.scale.kind == "output" for question, _ in self.wordings)

    def is_about_outputs(self, key: str) -> bool:
        return any(question.key == key and is_each for question, is_each in self.wordings)

    def fits_a_scale(self, text: str) -> bool:
        return any(_fits(question, text) for question, _ in self.wordings)


def _fits(question: QuestionWording, text: str) -> bool:
    scale = question.scale
    if scale.answer_column != "value" or scale.kind == "multiple":
        return bool(_option_key(scale, text))
    try:
        return scale.minimum <= Decimal(parse_scale_value(scale, text, "")) <= scale.maximum
    except CellRefused:
        return False


# Answers in the words of a scale


def parse_scale_value(scale: ScaleSpec, written: str, column: str) -> str:
    """Return the number that an answer means on a scale, as a page would send it: 4.0, “good” and “4 - good” can all be 4."""
    word = written.casefold()
    if word in ("true", "false"):
        is_true = word == "true"
        if scale.kind in ("multiple", "acknowledgement"):
            return str(int(is_true))
        raise CellRefused(column, f"must be a number, not {word}. Write {int(is_true)}.")
    text = written.removesuffix("%").strip() if scale.kind == "percent" else written
    if not is_number(text) and (point := _point(scale, written)):
        return point
    try:
        if abs(parse_number(text)) > 10**9 or len(text) > 40:
            raise CellRefused(column, f"must be a number up to 1,000,000,000, not {written!r:.40}.")
    except NumberRefused as refused:
        raise CellRefused(column, str(refused)) from None
    number = Decimal(text)
    return str(int(number)) if number == number.to_integral_value() else str(number)


def _point(scale: ScaleSpec, written: str) -> str:
    """Return the point of a scale that a text names by its label, by “4 - good” or by “good (4)”; or ''."""
    if scale.kind != "likert":
        return ""
    labels = {point.key: name_key(point.label) for point in scale.points if point.label}
    text = name_key(written)
    found = [key for key, label in labels.items() if label == text]
    if not found and (
        both := re.fullmatch(r"(-?[0-9]+)(?:\.0)?\s*[-–—:=.)]+\s*(.+)|(.+?)\s*\(\s*(-?[0-9]+)\s*\)", text)
    ):
        number, label = both[1] or both[4], both[2] or both[3]
        found = [number] if labels.get(number) == label else []
    return found[0] if len(found) == 1 else ""


def _skip_reason(question: QuestionWording, written: str) -> str:
    """Return the key of the reason to skip that a text names by its key or its label, or ''."""
    return Names((name, key) for key, label in question.skip_reasons for name in (key, label)).find(written)


def _option_key(scale: ScaleSpec, written: str) -> str:
    keys = [option.key for option in scale.options if option.key == written]
    keys = keys or [o.key for o in scale.options if name_key(written) in (name_key(o.key), name_key(o.label))]
    return keys[0] if len(keys) == 1 else ""


# Rows


class AnswerRow(NamedTuple):
    """One answer of the file, and what it is about.

    ``shown``: the (letter, system) pairs that the file contains. ``outputs``: the (system, sample) pairs of the item, as an own export
    names them. ``columns``: the file's names of the columns.
    """

    row: int
    annotator: str
    arm: str = ""
    section: int | None = None
    question: str = ""
    prompt: str = ""
    system: str = ""
    sample: int = 0
    value: str = ""
    chosen: str = ""
    choice: str = ""
    text: str = ""
    skip_reason: str = ""
    part: str = ""
    label: str = ""
    position: int | None = None
    time: datetime | None = None
    has_utc_offset: bool = True
    shown: tuple[tuple[str, str], ...] = ()
    outputs: tuple[tuple[str, int], ...] = ()
    status: str = ""
    columns: Mapping[str, str] = MappingProxyType({})

    @property
    def answered_columns(self) -> tuple[str, ...]:
        """Return the answer columns that are not empty in this row."""
        return tuple(compress(ANSWER_COLUMNS, _answers(self)))

    @property
    def canonical_order(self) -> tuple[Any, ...]:
        """Return a sort key for the rows of one annotator. It depends on the row's number only if two rows answer the same."""
        return (
            -1 if self.section is None else self.section,
            self.question,
            natural_sort_key(self.prompt),
            self.prompt,
            sorted(system for _, system in self.shown),
            self.shown,
            self.outputs,
            self.system,
            self.sample,
            self.chosen,
            self.choice,
            self.part,
            self.row,
        )

    def column(self, name: str | None) -> str | None:
        """Return the file's name of one of heval's columns."""
        return self.columns.get(name, name) if name else name

    def understood(self, question: QuestionWording, systems: Names) -> "AnswerRow":
        """Return the row with its answer in the column of the question's scale, in the study's words. Raises CellRefused."""
        row, scale = self, question.scale
        if row.value and row.answered_columns == ("value",):
            if not is_number(row.value) and (reason := _skip_reason(question, row.value)):
                return row._replace(value="", skip_reason=reason)
            if scale.answer_column != "value":
                moved: dict[str, Any] = {"value": "", scale.answer_column: row.value}
                row = row._replace(**moved)
        if row.value and (value := parse_scale_value(scale, row.value, "value")) != row.value:
            row = row._replace(value=value)
        if row.choice and (key := _option_key(scale, row.choice)):
            row = row._replace(choice=key)
        if row.skip_reason:
            row = row._replace(skip_reason=_skip_reason(question, row.skip_reason) or row.skip_reason)
        return row._with_chosen(systems) if scale.kind == "output" and row.chosen else row

    def _with_chosen(self, systems: Names) -> "AnswerRow":
        """Return the row with the name of the chosen system, which the file may give by a letter, by a side or by a column of its own."""
        if name := systems.find(self.chosen):
            return self._replace(chosen=name)
        word = name_key(self.chosen)
        if word in TIE_WORDS and not self.choice:
            return self._replace(chosen="", choice=TIE)
        shown = dict(self.shown)
        by_column = {name_key(self.columns.get(f"shown:{letter}", letter)): letter for letter in shown}
        letter = by_column.get(word) or LETTER_WORDS.get(word) or self.chosen.strip().upper()
        return self._replace(chosen=shown[letter]) if letter in shown else self


def _cause_to_leave_out(values: Mapping[str, Any]) -> str:
    """Return why a row of an own export is no answer to import, or ''."""
    if str(values.get("is_erased")).casefold() in ("1", "true"):
        return "erased answers"
    if str(values.get("is_withdrawn")).casefold() in ("1", "true"):
        return "answers of people who withdrew"
    kind = values.get("item_kind")
    return f"answers about {kind} items" if kind in ("test", "practice") else ""


@dataclass(frozen=True, slots=True)
class WideColumn:
    """A column with the answers to one question. ``columns``: what messages about these answers call heval's columns."""

    column: str
    question: str
    prompt: str
    system: str
    columns: Mapping[str, str]


@dataclass(frozen=True)
class AnswerLayout(ColumnLayout):
    places: tuple[tuple[str, str], ...] = ()  # letter, column
    wide: tuple[WideColumn, ...] = ()
    roles: tuple[tuple[Role, str], ...] = ()  # with the column of each
    columns: Mapping[str, str] = field(default_factory=dict)


class AnswerReader(RecordReader):
    """Read the answers of a table. A row gives a list of them: one for each column of answers that is not empty."""

    def __init__(self, rows: Rows, roles: Mapping[str, str], study: StudyNames | None, problems: TableProblems):
        super().__init__(rows, problems)
        self.roles = {column: role for role, column in roles.items()}
        self.study = study
        self.layouts: dict[tuple[str, ...], AnswerLayout] = {}
        self.n_empty = 0
        self.left_out: dict[str, list[int]] = {}
        self.is_own_export = not OWN_COLUMNS.isdisjoint(rows.columns)
        self.is_guarded = self.is_own_export and not rows.is_json
        if self.is_guarded:
            rows.notes.append(
                "This is an export of heval. Apostrophes that protect its cells from spreadsheets are left out."
            )

    def parse_layout(self, columns: tuple[str, ...]) -> AnswerLayout:
        if columns not in self.layouts:
            if len(self.layouts) > 64:
                self.layouts.clear()
            self.layouts[columns] = self._layout(columns)
        return self.layouts[columns]

    def _layout(self, columns: tuple[str, ...]) -> AnswerLayout:
        cells = {role: column for column in columns if (role := self.roles.get(column))}
        ignored = tuple(column for column in columns if column not in self.roles)
        plain = {role: column for role, column in cells.items() if not ANSWER_TO.fullmatch(role)}
        wide = tuple(
            self._wide(column, to, {**plain, **dict.fromkeys(ANSWER_COLUMNS, column)})
            for role, column in cells.items()
            if (to := ANSWER_TO.fullmatch(role))
        )
        places = tuple(
            sorted((name.partition(":")[2], column) for name, column in cells.items() if SHOWN_COLUMN.fullmatch(name))
        )
        problem = ""
        found = ", ".join(columns)[:500]
        if "annotator" not in cells:
            problem = f"no column annotator; the columns found are: {found}. Give one of them the role “annotator” (--map annotator=COLUMN)."
        elif not wide and not any(name in cells for name in (*ANSWER_COLUMNS, "label")):
            problem = f"no column holds an answer ({', '.join(ANSWER_COLUMNS)}); the columns found are: {found}. Give one of them the role “answer” (--map value=COLUMN)."
        roles = tuple((role, cells[name]) for name, role in ROLES.items() if name in cells)
        return AnswerLayout(cells, ignored, problem, places, wide, roles, MappingProxyType(cells))

    def _wide(self, column: str, to: re.Match[str], columns: Mapping[str, str]) -> WideColumn:
        question, prompt, system = (name or "" for name in to.groups())
        known = self._known("questions", question), self._known("prompts", prompt), self._known("systems", system)
        return WideColumn(column, *known, columns)

    def parse_row(self, row: Row, layout: AnswerLayout) -> list[AnswerRow] | None:
        if self.is_guarded:
            row = Row(row.number, {name: unescape_formula(cell) for name, cell in row.values.items()})
        if self.is_own_export and (cause := _cause_to_leave_out(row.values)):
            self.left_out.setdefault(cause, []).append(row.number)
            return []
        base = self.read_or_add_problem(row, lambda: self._base(row, layout))
        if base is None or not layout.wide:
            return base and [base]
        answers = [base] if base.answered_columns else []
        bare = base._replace(**dict.fromkeys(ANSWER_COLUMNS, ""))
        for wide in layout.wide:
            written = self._written_or_none(row, wide.column)
            if not written:
                self.n_empty += written is not None
                continue
            about = {"prompt": wide.prompt or base.prompt, "system": wide.system or base.system}
            answers.append(bare._replace(value=written, question=wide.question, columns=wide.columns, **about))
        return answers

    def _written_or_none(self, row: Row, column: str) -> str | None:
        """Return an answer of a wide row, or None if it cannot be read, which is noted."""
        written: str | None = self.read_or_add_problem(row, lambda: parse_answer(row.values.get(column), column, 0))
        return written

    def _base(self, row: Row, layout: AnswerLayout) -> AnswerRow:
        values, cells = row.values, layout.cells
        read = ABSENT.copy()
        for role, column in layout.roles:
            read[role.name] = role.parse(values.get(column), column, role.limit)
        if not read["annotator"]:
            raise CellRefused(cells["annotator"], "must not be empty.")
        shown = tuple(
            (letter, self._known("systems", system))
            for letter, column in layout.places
            if (system := parse_name_cell(values.get(column), column, 100))
        )
        if len({system for _, system in shown}) < len(shown):
            raise CellRefused(layout.places[0][1], "the same system is in two of the shown: columns.")
        time, has_offset = read.pop("time")
        prompt, prompt_text = read.pop("prompt_key"), read.pop("prompt_text")
        return AnswerRow(
            row.number,
            prompt=self._known("prompts", prompt) or self._prompt_of(prompt_text, cells.get("prompt_text")),
            system=self._known("systems", read.pop("system")),
            question=self._known("questions", read.pop("question")),
            sample=read.pop("sample") or 0,
            time=time,
            has_utc_offset=has_offset,
            shown=shown,
            columns=layout.columns,
            **read,
        )

    def _known(self, kind: str, name: str) -> str:
        """Return the study's own name for a name that looks like it."""
        return (getattr(self.study, kind).find(name) if self.study and name else "") or name

    def _prompt_of(self, text: str, column: str | None) -> str:
        if not text or self.study is None:
            return ""
        if key := self.study.prompt_texts.find(text):
            return key
        if self.study.prompt_texts.is_ambiguous(text):
            raise CellRefused(column, "is the same in several prompts of the study. Name the prompt by its key.")
        raise CellRefused(column, f"no prompt of the study has the text “{text[:60]}”.")
