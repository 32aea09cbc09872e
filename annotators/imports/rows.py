"""The rows of a file of answers: their columns, the study that they are checked against, and the cleaned values."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from annotators.counting import UNSEEN
from annotators.models import Assignment, Response
from annotators.pages.form_data import clean_answer
from annotators.places.assign import hash_person_id
from studies.design.wording import QuestionWording, SectionWording, wording_of
from studies.imports.tables.columns import (
    CellRefused,
    ColumnLayout,
    RecordReader,
    parse_identity_cell,
    parse_name_cell,
    parse_non_negative_integer_cell,
    parse_text_cell,
)
from studies.models import Exposure, Output, Question, Study
from studies.protocols import REGISTRY, Page, PageField, PageItem, Protocol, StimulusPool, UnfillableBatch
from studies.protocols.base.fields import Answer, AnswerRefused, ColumnRefused
from studies.stimuli.numbers import NumberRefused, parse_number
from studies.stimuli.rows import Row, Rows, TableProblems, unescape_formula
from studies.stimuli.texts import SettingsRefused, name_key

# The id of the section that shows the item, its prompt, and its outputs in ascending order.
ItemKey = tuple[int, int, tuple[int, ...]]
# The columns of one answer: value, chosen output, choice, part, text, skip reason.
StoredAnswer = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class StudyIndex:
    """Index of a study for checking rows of a file.

    An item is (section that shows it, prompt, outputs); an exposure is its output.
    """

    study: Study
    sections: dict[int, SectionWording]
    ids: dict[tuple[int, str], int]
    section_ids: dict[int, int]
    systems: dict[str, int]
    prompts: dict[str, int]
    outputs: dict[tuple[int, int], dict[int, int]]
    arms: dict[str, int]
    item_sizes: dict[int, int | None]
    texts: dict[int, str] = field(default_factory=dict)

    def protocol(self, section: SectionWording) -> Protocol:
        return REGISTRY[section.protocol]

    def questions_with_key(self, key: str) -> Iterator[tuple[SectionWording, QuestionWording]]:
        """Return the questions with this key, or all questions for ''."""
        for section in self.sections.values():
            for question in section.questions:
                if key in ("", question.key):
                    yield section, question

    def section_owning_items(self, section: SectionWording) -> SectionWording:
        """Return the section whose items this section shows."""
        return self.sections.get(section.reuses or section.position, section)

    def text_of(self, output: int) -> str:
        """Return an output's text. The first call reads those of all outputs; most files need none."""
        if not self.texts:
            rows = Output.objects.filter(system__study=self.study)
            self.texts.update(rows.values_list("pk", "text").iterator(2000))
        return self.texts[output]


def build_study_index(study: Study) -> StudyIndex:
    design = study.designs.order_by("version").last()
    wording = wording_of(study, design.pk if design else None)
    systems = dict(study.systems.values_list("name", "pk"))
    outputs: dict[tuple[int, int], dict[int, int]] = {}
    rows = Output.objects.filter(system__study=study).order_by("pk")
    for prompt, system, sample, pk in rows.values_list("prompt_id", "system_id", "sample", "pk").iterator(2000):
        outputs.setdefault((prompt, system), {})[sample] = pk
    sections = {section.position: section for section in wording.sections if section.protocol in REGISTRY}
    questions = Question.objects.filter(section__study=study).values_list("section__position", "key", "pk")
    return StudyIndex(
        study,
        sections,
        {(position, key): pk for position, key, pk in questions},
        dict(study.sections.values_list("position", "pk")),
        systems,
        dict(study.prompts.values_list("key", "pk")),
        outputs,
        dict(study.arms.values_list("name", "pk")),
        _item_sizes(study, systems),
    )


def _item_sizes(study: Study, systems: dict[str, int]) -> dict[int, int | None]:
    """Return the number of outputs per item by section; None if the protocol shows one output of any system."""
    sizes: dict[int, int | None] = {}
    names = sorted(systems.values())
    for section in study.sections.order_by("position"):
        protocol = REGISTRY.get(section.protocol)
        if protocol is None or not protocol.has_items:
            continue
        if not protocol.shows_every_system:
            sizes[section.position] = None
            continue
        section.m = section.m or 1
        pool = StimulusPool([0], names, {(0, system): (system,) for system in names})
        try:
            drawn = protocol.draw(section, pool, _FirstChoice())  # type: ignore[arg-type]  # it has what protocols use of a Random
        except UnfillableBatch:
            drawn = []
        sizes[section.position] = len(drawn[0].outputs) if drawn else len(names)
    return sizes


class _FirstChoice:
    """A random generator that always takes the first option.

    Only the number of drawn outputs is used, not the outputs.
    """

    def choice(self, options):
        return options[0]

    def randrange(self, n):
        return 0

    def sample(self, options, n):
        return list(options)[:n]


def natural_sort_key(key: str) -> list[tuple[int, int, str]]:
    """Return a sort key that compares numbers by their value, so that p2 comes before p10."""
    return [
        (0, int(part), "") if part.isascii() and part.isdigit() else (1, 0, part)
        for part in re.split(r"([0-9]+)", key)
        if part
    ]


@dataclass(slots=True)
class EarlierImports:
    """Earlier imports: annotators by keyed name, their stored answers, and the annotators who withdrew."""

    people: dict[str, int] = field(default_factory=dict)
    answers: dict[tuple[int, int, ItemKey | None, int | None], list[StoredAnswer]] = field(default_factory=dict)
    ordinals: dict[int, int] = field(default_factory=dict)
    withdrawn: set[int] = field(default_factory=set)
    items: set[ItemKey] = field(default_factory=set)


ERASED_ANSWER: StoredAnswer = ("erased",)


def load_earlier_imports(study: Study) -> EarlierImports:
    """Return everything that was imported into the study before, and its items as (section, prompt, outputs)."""
    earlier = EarlierImports()
    outputs_by_item: dict[int, tuple[int, int, list[int]]] = {}
    exposures = Exposure.objects.filter(item__study=study).order_by("item_id", "output_id")
    for item, section, prompt, output in exposures.values_list(
        "item_id", "item__section_id", "item__prompt_id", "output_id"
    ).iterator(2000):
        outputs_by_item.setdefault(item, (section, prompt, []))[2].append(output)
    keys = {item: (section, prompt, tuple(outputs)) for item, (section, prompt, outputs) in outputs_by_item.items()}
    earlier.items = set(keys.values())
    imported = Assignment.objects.filter(study=study, origin=Assignment.Origin.IMPORTED)
    for person, key, ordinal, withdrawn in imported.values_list(
        "annotator_id", "annotator__external_id", "ordinal", "withdrawn_at"
    ):
        earlier.people[key] = person
        earlier.ordinals[person] = max(ordinal, earlier.ordinals.get(person, 0))
        if withdrawn:
            earlier.withdrawn.add(person)
    if not earlier.people:
        return earlier
    rows = Response.objects.filter(assignment__in=imported).values_list(
        "assignment__annotator_id", "question_id", "item_id", "exposure__output_id", "erased_at", "value", "chosen__output_id", "choice", "part", "text", "skip_reason",
    )  # fmt: skip
    for person, question, item, output, erased, *columns in rows.iterator(2000):
        question_key = (person, question, keys.get(item), output)
        earlier.answers.setdefault(question_key, []).append(ERASED_ANSWER if erased else tuple(columns))
    return earlier


def imported_person_hash(study: Study, name: str) -> str:
    """Return the keyed hash of a name in the file. The same name has another hash in another study."""
    return hash_person_id(import_pool_name(study), name)


def import_pool_name(study: Study) -> str:
    return f"imported-{study.code.hex[:24]}"


# The columns of a file of answers, and the parsing of its rows.


COLUMN_ALIASES = {"prompt": "prompt_key", "key": "prompt_key", "pair": "prompt_key", "chosen_system": "chosen"}
# Names that people and tools give to columns. They count only if the file has no column with heval's own name.
OTHER_NAMES = {
    "annotator": (
        "worker", "worker id", "workerid", "annotator id", "annotator name", "rater", "rater id", "user", "user id", "participant", "participant id",
        "prolific pid", "judge", "judge id", "evaluator", "coder",
    ),
    "prompt_key": ("prompt id", "item", "item id", "example id", "pair id", "doc id"),
    "question": ("criterion", "aspect", "dimension", "metric name"),
    "system": ("model", "model name", "system name", "model id"),
    "value": ("rating", "score", "likert", "points"),
    "chosen": ("winner", "preferred", "preference", "chosen model"),
    "time": ("timestamp", "submitted at", "created at", "date", "completed at"),
    "shown:A": ("model a", "system a", "option a"),
    "shown:B": ("model b", "system b", "option b"),
}  # fmt: skip
# Columns that only heval's own export has. Cells of such a file that would run as formulas have an apostrophe before them.
OWN_COLUMNS = frozenset({"chosen_system", "slot", "item_kind", "is_erased"})
COLUMNS = (
    "annotator", "arm", "section", "question", "prompt_key", "system", "sample", "value", "chosen", "choice", "text", "skip_reason",
    "part", "label", "position", "time",
)  # fmt: skip
# The system that was shown under each letter of the screen: shown:A, shown:B, …
SHOWN_COLUMN = re.compile(r"shown:([A-Z]{1,2})")
LABEL_PATTERN = re.compile(r"[A-Z]{1,4}")
ANSWER_COLUMNS = ("value", "chosen", "choice", "text", "skip_reason")
NAME_LIMITS = {"annotator": 200, "arm": 50, "question": 50, "prompt_key": 100, "system": 100, "chosen": 100, "choice": 50, "part": 50, "skip_reason": 50}  # fmt: skip


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One row of the file: an answer and what it is about.

    ``shown``: the (letter, system) pairs that the file contains.
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

    @property
    def answered_columns(self) -> tuple[str, ...]:
        """Return the answer columns that are not empty in this row."""
        return tuple(name for name in ANSWER_COLUMNS if getattr(self, name))

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
            self.system,
            self.sample,
            self.chosen,
            self.choice,
            self.part,
            self.row,
        )


@dataclass(frozen=True)
class AnswerLayout(ColumnLayout):
    places: tuple[tuple[str, str], ...] = ()  # letter, column
    renamed: tuple[tuple[str, str], ...] = ()  # heval's name, column


@lru_cache(maxsize=64)
def _read_layout(columns: tuple[str, ...], mapping: tuple[tuple[str, str], ...]) -> AnswerLayout:
    name_by_column = {column: name for name, column in mapping}
    cells: dict[str, str] = {}
    ignored, problem = [], ""
    for missing in [column for column in name_by_column if column not in columns]:
        problem = problem or f"the file has no column “{missing}”, which is declared as {name_by_column[missing]}."
    for column in columns:
        # A mapped column has only its mapped meaning. If one of heval's names is mapped, a column with that name is
        # ignored.
        own_name = name_by_column.get(column) or COLUMN_ALIASES.get(column, column)
        if column not in name_by_column and own_name in dict(mapping):
            ignored.append(column)
        elif own_name in COLUMNS or SHOWN_COLUMN.fullmatch(own_name):
            if own_name in cells:
                problem = problem or f"the columns “{cells[own_name]}” and “{column}” mean the same."
            cells[own_name] = column
        else:
            ignored.append(column)
    renamed = _columns_with_other_names(cells, ignored)
    cells |= renamed
    ignored = [column for column in ignored if column not in renamed.values()]
    if "annotator" not in cells:
        column_list = ", ".join(columns)
        problem = problem or (
            f"no column annotator; the columns found are: {column_list[:500]}. If one of them names the annotator, write "
            f"under “Column mapping”: annotator = {columns[0][:50] if columns else 'worker'}."
        )
    if not problem and not any(name in cells for name in (*ANSWER_COLUMNS, "label")):
        problem = (
            f"no column holds an answer ({', '.join(ANSWER_COLUMNS)}); the columns found are: {', '.join(columns)[:500]}. If one of them "
            f"does, write under “Column mapping”: value = {columns[-1][:50]}."
        )
    places = sorted((name.partition(":")[2], column) for name, column in cells.items() if SHOWN_COLUMN.fullmatch(name))
    return AnswerLayout(cells, tuple(ignored), problem, tuple(places), tuple(renamed.items()))


def _columns_with_other_names(cells: Mapping[str, str], others: Iterable[str]) -> dict[str, str]:
    """Return the columns that are known by another name, by heval's names that the file does not have."""
    by_words = {" ".join(re.sub(r"[_.\-]+", " ", name_key(column)).split()): column for column in others}
    found = {
        name: next((by_words[other] for other in known if other in by_words), "")
        for name, known in OTHER_NAMES.items()
        if name not in cells
    }
    return {name: column for name, column in found.items() if column}


class AnswerReader(RecordReader):
    def __init__(self, rows: Rows, columns: Mapping[str, str], problems: TableProblems):
        super().__init__(rows, problems)
        self.mapping = tuple(sorted(columns.items()))
        self.renamed: dict[str, str] = {}
        self.is_guarded = not rows.is_json and not OWN_COLUMNS.isdisjoint(rows.columns)
        if self.is_guarded:
            rows.notes.append(
                "This is an export of heval. Apostrophes that protect its cells from spreadsheets are left out."
            )

    def parse_layout(self, columns: tuple[str, ...]) -> AnswerLayout:
        layout = _read_layout(columns, self.mapping)
        self.renamed |= dict(layout.renamed)
        return layout

    def parse_row(self, row: Row, layout: AnswerLayout) -> AnswerRow | None:
        if self.is_guarded:
            row = Row(row.number, {name: unescape_formula(cell) for name, cell in row.values.items()})
        return self.read_or_add_problem(row, lambda: _parse_row(row, layout))


def _parse_row(row: Row, layout: AnswerLayout) -> AnswerRow:
    values, cells = row.values, layout.cells

    def cell(name: str) -> tuple[Any, str]:
        column = cells.get(name)
        return (values.get(column) if column else None), column or name

    names = {
        name: (parse_identity_cell if name in ("annotator", "prompt_key") else parse_name_cell)(*cell(name), limit)
        for name, limit in NAME_LIMITS.items()
    }
    if not names["annotator"]:
        raise CellRefused(cells["annotator"], "must not be empty.")
    time, has_offset = _parse_time(*cell("time"))
    label = parse_name_cell(*cell("label"), 8)
    if label and not LABEL_PATTERN.fullmatch(label):
        raise CellRefused(cells["label"], f"must be a letter such as A or B, not “{label}”.")
    shown_systems = tuple(
        (letter, system)
        for letter, column in layout.places
        if (system := parse_name_cell(values.get(column), column, 100))
    )
    if len({system for _, system in shown_systems}) < len(shown_systems):
        raise CellRefused(layout.places[0][1], "the same system is in two of the shown: columns.")
    prompt = names.pop("prompt_key")
    return AnswerRow(
        row.number,
        prompt=prompt,
        section=parse_non_negative_integer_cell(*cell("section")),
        sample=parse_non_negative_integer_cell(*cell("sample")) or 0,
        value=_parse_value(*cell("value")),
        text=parse_text_cell(*cell("text")).strip(),
        label=label,
        position=parse_non_negative_integer_cell(*cell("position")),
        time=time,
        has_utc_offset=has_offset,
        shown=shown_systems,
        **names,
    )


def _parse_value(value: Any, column: str) -> str:
    """Return a number as a page would send it: 4.0 from a spreadsheet is 4."""
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        raise CellRefused(column, f"must be a number, not {str(value).lower()}. Write {int(value)}.")
    written = str(value).strip()
    try:
        if abs(parse_number(value)) > 10**9 or len(written) > 40:
            raise CellRefused(column, f"must be a number up to 1,000,000,000, not {value!r:.40}.")
    except NumberRefused as refused:
        raise CellRefused(column, str(refused)) from None
    number = Decimal(written)
    return str(int(number)) if number == number.to_integral_value() else str(number)


def _parse_time(value: Any, column: str) -> tuple[datetime | None, bool]:
    """Return the time in UTC, and whether the file gave its UTC offset."""
    if value is None or value == "":
        return None, True
    try:
        parsed = datetime.fromisoformat(value.strip()) if isinstance(value, str) and len(value) < 50 else None
        in_utc = parsed and (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        parsed = None
    if parsed is None or in_utc is None or in_utc.year < 1970:
        raise CellRefused(column, f"must be a time such as 2026-11-21T10:00:00Z, not {value!r:.40}.")
    if in_utc > datetime.now(UTC):
        raise CellRefused(column, f"must not be in the future: {value!r:.40}.")
    return in_utc, parsed.tzinfo is not None


# The options of an import of answers.


MAX_COLUMN_NAME_LENGTH = 200


@dataclass(frozen=True)
class Options:
    """``columns`` maps heval's column names to the file's names, if they differ, as in {"annotator": "worker"}."""

    columns: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, options_json: object) -> "Options":
        """Return the options from stored JSON. Raises SettingsRefused for anything invalid."""
        options = options_json if isinstance(options_json, dict) else {"columns": None}
        columns = options.get("columns", {})
        if not isinstance(columns, dict) or set(options) - {"columns"}:
            raise SettingsRefused("options: must be an object with only the key “columns”.")
        return cls(validate_column_mapping(columns))

    @classmethod
    def from_text(cls, lines: str) -> "Options":
        """Return the options from lines such as ``annotator = worker``.

        Raises SettingsRefused with the number of a bad line.
        """
        mapping: dict[str, str] = {}
        for number, line in enumerate(lines.splitlines(), 1):
            if not line.strip():
                continue
            name, equals, column = (part.strip() for part in line.partition("="))
            if not (name and equals and column):
                raise SettingsRefused(
                    f"line {number}: write heval's column name, “=”, and the file's column name, as in: annotator = worker."
                )
            if name in mapping:
                raise SettingsRefused(f"line {number}: the column {name[:60]} is named twice.")
            mapping[name] = column
        return cls(validate_column_mapping(mapping))


def validate_column_mapping(mapping: dict[Any, Any]) -> dict[str, str]:
    """Return the mapping after checking its column names. Raises SettingsRefused."""
    for name, column in mapping.items():
        if (
            not isinstance(name, str)
            or not isinstance(column, str)
            or not column
            or len(column) > MAX_COLUMN_NAME_LENGTH
        ):
            raise SettingsRefused(f"columns: the value of {str(name)[:60]!r} must be the name of a column of the file.")
        if name not in COLUMNS and not SHOWN_COLUMN.fullmatch(name):
            known_names = f"{', '.join(COLUMNS)}, and shown:A, shown:B, …"
            raise SettingsRefused(f"columns: heval has no column “{name[:60]}”. Its columns are {known_names}.")
    repeated = [column for column in mapping.values() if list(mapping.values()).count(column) > 1]
    if repeated:
        raise SettingsRefused(f"columns: “{repeated[0][:60]}” is named twice.")
    return dict(mapping)


# A row of a file of answers together with the question, item and outputs that it is about.


SORTS_LAST = math.inf


@dataclass(slots=True)
class ImportedItem:
    """An item as this annotator saw it: its outputs by letter. The file may give the letters and the position, or not."""

    key: ItemKey
    letters: dict[str, int]
    is_layout_known: bool
    rows: list["ResolvedRow"] = field(default_factory=list)
    is_position_known: bool = False

    @property
    def sort_key(self) -> tuple[float, float]:
        places = [resolved.answer_row.position for resolved in self.rows if resolved.answer_row.position is not None]
        times = [resolved.answer_row.time.timestamp() for resolved in self.rows if resolved.answer_row.time]
        return (min(places, default=SORTS_LAST), min(times, default=SORTS_LAST))


@dataclass(slots=True)
class ResolvedRow:
    """A row with the question, item and outputs that it is about."""

    answer_row: AnswerRow
    section: SectionWording
    question: QuestionWording
    item: ImportedItem | None = None
    output: int | None = None
    chosen: int | None = None


# Find the form field of a page that a row answers, and check the row's answer as this field checks it.


# Fields by question, item, output and option. Only a question with a row for each mark has several fields under one key.
FieldsBySubject = dict[tuple[int, int | None, int | None, str], list[tuple[str, PageField]]]
FilledSlots = Mapping[str, tuple[ResolvedRow, PageField]]


def find_field_and_clean_value(
    study_index: StudyIndex,
    resolved: ResolvedRow,
    item: PageItem | None,
    fields: FieldsBySubject,
    filled: FilledSlots,
    values: Mapping[str, Any],
) -> tuple[str, PageField, Any]:
    """Return the slot and the field that a row answers, and its answer as the field cleans it. Raises CellRefused."""
    own_fields = _find_fields(study_index, resolved, item, fields)
    if any(ask.field.inputs for _, ask in own_fields):
        return _place_mark(study_index, resolved, own_fields, filled, values)
    slot, ask = own_fields[-1]
    if slot in filled:
        raise CellRefused(None, f"answers the same question as row {filled[slot][0].answer_row.row}.")
    return slot, ask, _clean_value(resolved, ask)


def _find_fields(
    study_index: StudyIndex, resolved: ResolvedRow, item: PageItem | None, fields: FieldsBySubject
) -> list[tuple[str, PageField]]:
    """Return the slots and fields that a row may answer. Raises CellRefused and says what to change."""
    question = study_index.ids[resolved.section.position, resolved.question.key]
    for choice in dict.fromkeys((resolved.answer_row.choice, "")):
        if found := fields.get((question, item.id if item else None, resolved.output, choice)):
            return found
    key = resolved.question.key
    asks = [ask for found in fields.values() for _, ask in found if ask.question_id == question]
    if any(ask.choice for ask in asks):
        options = ", ".join(dict.fromkeys(ask.choice for ask in asks))
        raise CellRefused("choice", f"must be one of {options[:300]}: “{key}” needs a row for each.")
    if item is None and any(ask.item_id for ask in asks) or not asks:
        raise CellRefused("prompt_key", f"must not be empty: “{key}” is asked about texts.")
    if item is not None and all(ask.item_id is None for ask in asks):
        raise CellRefused("prompt_key", f"must be empty: “{key}” is not asked about one text.")
    if resolved.output is None:
        raise CellRefused("system", f"must not be empty: “{key}” is asked about each output.")
    raise CellRefused(
        "system",
        f"must be empty: “{key}” is asked about all outputs together. Put the chosen system into the column chosen.",
    )


def _clean_value(resolved: ResolvedRow, ask: PageField) -> Any:
    """Return the row's answer as the field cleans it. Raises CellRefused."""
    answer_row, key = resolved.answer_row, resolved.question.key
    column, text = _form_value(resolved, ask)
    if not (text or answer_row.skip_reason or (ask.choice and answer_row.value)):
        raise CellRefused(column, "is empty. Give the answer or a skip_reason, or remove the row.")
    allowed = {column, "skip_reason"} | ({"choice"} if ask.choice else set())
    if other_columns := [name for name in answer_row.answered_columns if name not in allowed]:
        raise CellRefused(other_columns[0], f"must be empty: answers to “{key}” belong in the column {column}.")
    if answer_row.part:
        raise CellRefused("part", f"must be empty: answers to “{key}” are about no part of an output.")
    if answer_row.skip_reason == UNSEEN and not text and ask.item_id is not None:
        return Answer(skip_reason=UNSEEN)
    try:
        return clean_answer(ask, {"": [text]}, [answer_row.skip_reason] if answer_row.skip_reason else [])
    except AnswerRefused as refused:
        if answer_row.skip_reason:
            raise CellRefused("skip_reason", f"“{answer_row.skip_reason}”: {refused}") from None
        raise CellRefused(column, f"“{text[:60]}” is not a valid answer to “{key}”: {refused}") from None


def _form_value(resolved: ResolvedRow, ask: PageField) -> tuple[str, str]:
    """Return the column that holds the answer, and the answer as a browser would send it."""
    answer_row = resolved.answer_row
    if ask.choice:
        return "value", "" if answer_row.value == "0" else answer_row.value or "1"
    if ask.answer_column != "chosen":
        return ask.answer_column, getattr(answer_row, ask.answer_column)
    if answer_row.choice and not answer_row.chosen:
        return "choice", answer_row.choice
    letters = resolved.item.letters if resolved.item else {}
    if not answer_row.chosen:
        if answer_row.label and resolved.item and resolved.item.is_layout_known and not answer_row.skip_reason:
            if answer_row.label not in letters:
                raise CellRefused("label", f"no output was shown under “{answer_row.label}”.")
            return "chosen", answer_row.label
        return "chosen", ""
    letter = next((letter for letter, output in letters.items() if output == resolved.chosen), None)
    if letter is None:
        raise CellRefused("chosen", f"“{answer_row.chosen}” is not among the outputs shown.")
    return "chosen", letter


# Marks


def _place_mark(
    study_index: StudyIndex,
    resolved: ResolvedRow,
    own_fields: list[tuple[str, PageField]],
    filled: FilledSlots,
    values: Mapping[str, Any],
) -> tuple[str, PageField, Any]:
    """Return the first free slot for a row about one mark, or the slot that says "nothing to mark" for the value 0.

    The rules between the marks of an output are those of its page. They are checked here, because a file needs no answers
    to the other questions of the page. Raises CellRefused.
    """
    answer_row, key = resolved.answer_row, resolved.question.key
    if other_columns := [name for name in answer_row.answered_columns if name not in ("value", "choice")]:
        message = f"must be empty: answers to “{key}” belong in the columns value, choice and part."
        raise CellRefused(other_columns[0], message)
    is_mark = answer_row.value != "0"
    taken = {slot: filled[slot][0].answer_row.row for slot, _ in own_fields if slot in filled}
    if not is_mark:
        (slot, ask) = next((slot, ask) for slot, ask in own_fields if not ask.field.inputs)
        if column := next((name for name in ("choice", "part") if getattr(answer_row, name)), None):
            raise CellRefused(column, "must be empty: the value 0 marks nothing. Remove it, or correct the value.")
        if taken:
            message = (
                f"0 marks nothing, but row {next(iter(taken.values()))} is about the same output. Remove one of them."
            )
            raise CellRefused("value", message)
        return slot, ask, clean_answer(ask, {"": ["1"]}, [])
    marks = _mark_fields(own_fields)
    answer = _clean_mark(study_index, resolved, marks[0][1])
    for slot, row in taken.items():
        if not filled[slot][1].field.inputs:
            raise CellRefused("value", f"marks an output in which row {row} marks nothing. Remove one of them.")
        if values[slot] == answer:
            raise CellRefused(None, f"is the same mark as row {row}. Remove one of them.")
    free = next(((slot, ask) for slot, ask in marks if slot not in taken), None)
    if free is None:
        message = f"is one mark too many: “{key}” takes {len(marks)} for an output. Keep the worst ones."
        raise CellRefused("question", message)
    return *free, answer


def _mark_fields(fields: Iterable[tuple[str, PageField]]) -> list[tuple[str, PageField]]:
    return [(slot, ask) for slot, ask in fields if ask.field.inputs]


def find_rows_without_marks(
    pages: Iterable[tuple[Page, Mapping[str, PageField]]], filled: FilledSlots
) -> Iterator[tuple[ResolvedRow, str]]:
    """Yield the first row of each page that lacks its required marks, with the key of the question that asks for them.

    Reports leave out an output of which nobody knows the marks, so its other answers would be lost.
    """
    for page, asks in pages:
        answered = next((filled[slot][0] for slot in asks if slot in filled), None)
        asking = {ask.question_id for _, ask in _mark_fields(asks.items())}
        for question in page.questions if answered else ():
            slots = [slot for slot, ask in asks.items() if ask.question_id == question.id]
            if answered and question.id in asking and question.required and not any(slot in filled for slot in slots):
                yield answered, question.key


def _clean_mark(study_index: StudyIndex, resolved: ResolvedRow, ask: PageField) -> Any:
    """Return one mark as its field cleans it. The row has its columns as an export writes them. Raises CellRefused."""
    answer_row = resolved.answer_row
    output = resolved.output
    text = study_index.text_of(output) if output else ""
    try:
        sent = ask.field.form_values_of_columns(answer_row.value, answer_row.choice, answer_row.part, text)
        return clean_answer(ask, {name: [sent[name]] for name in sent}, [])
    except ColumnRefused as refused:
        raise CellRefused(refused.column, str(refused)) from None
