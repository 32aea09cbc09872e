"""The columns of an import. A row of either format becomes one entry: a prompt with outputs, perhaps in a batch.

Long: one row per output (``system``, ``text`` or ``image``). Wide: one row per prompt, with an ``outputs`` object (JSON lines) or
columns named by system, such as ``output:ada``. docs: reference/import-formats.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

from studies.models import Output, Study
from studies.stimuli.columns import Columns, column_words
from studies.stimuli.numbers import NumberRefused, parse_whole_number
from studies.stimuli.rows import Row, Rows, TableProblems
from studies.stimuli.texts import (
    LANGUAGE_TAG,
    SettingsRefused,
    TextRefused,
    clean_name,
    clean_text,
    is_blank,
    is_missing_word,
    parse_record,
    tuples_to_lists,
)

# The options that a researcher sets before an import. heval never guesses them from the file.


SOURCE = "source"
# Columns that may name what prompts belong together to, and the source, of which equal texts make a group.
GROUP_COLUMNS = ("document", "doc_id", "dialogue", "topic")
GROUPS_BY = (*GROUP_COLUMNS, SOURCE)
# Names in the record of a file that was uploaded before an upgrade.
OLDER_NAMES = {"pairs_within": "max_length_difference", "pairs_most": "max_pairs"}


@dataclass(frozen=True)
class Options:
    """How to read a file. Each switch allows something that is refused without it.

    ``makes_batches``: the rows name ready-made batches, one per annotator. ``creates_systems``: add systems that the
    study does not have. ``allows_empty``: a blank text is an empty output, even without ``is_empty``.
    ``replaces_changed``: replace content of the study that differs from the file. ``makes_pairs``: the rows are single
    texts of two systems. Pairs have equal attributes ``pairs_by`` and lengths that differ by at most
    ``max_length_difference`` words. ``max_pairs`` limits their number; 0 means all. ``groups_by``: what names the group of a prompt
    (``GROUPS_BY``); '' is the column ``group``, if the file has one. ``columns``: what columns with other names than heval's mean, as
    ``mapping`` describes it; ``proposes_columns``: if there is no such mapping, use the proposed one. ``human_systems``: those of the
    new systems whose author is a person. ``left_out_systems``: those of the file whose outputs are not imported. ``sheet``: the sheet of a
    workbook that has several.
    """

    makes_batches: bool = False
    creates_systems: bool = False
    allows_empty: bool = False
    replaces_changed: bool = False
    makes_pairs: bool = False
    pairs_by: tuple[str, ...] = ()
    max_length_difference: int = 0
    max_pairs: int = 0
    groups_by: str = ""
    columns: tuple[str, ...] = ()
    proposes_columns: bool = False
    human_systems: tuple[str, ...] = ()
    left_out_systems: tuple[str, ...] = ()
    sheet: str = ""

    def __post_init__(self) -> None:
        if self.makes_pairs and self.makes_batches:
            raise SettingsRefused(
                "options: a file of single texts cannot contain ready-made batches. Choose makes_pairs or makes_batches."
            )
        if self.groups_by and self.groups_by not in GROUPS_BY:
            raise SettingsRefused(
                f"options: groups_by must be empty or one of {', '.join(GROUPS_BY)}, not “{self.groups_by:.40}”."
            )
        if self.max_length_difference < 0 or self.max_pairs < 0:
            raise SettingsRefused(
                "options: the maximum difference in length and the maximum number of pairs must be whole numbers from 0."
            )

    def as_json(self) -> dict[str, Any]:
        """Return the options as JSON. Those about one file are left out where they say nothing, as in records of before."""
        parts = tuples_to_lists(asdict(self))
        of_file = ("columns", "proposes_columns", "human_systems", "left_out_systems", "sheet")
        return {name: part for name, part in parts.items() if part or name not in of_file}

    @classmethod
    def from_json(cls, stored: object) -> "Options":
        """Return the options from stored JSON. Raise SettingsRefused, which names the wrong part."""
        if isinstance(stored, dict):
            stored = {OLDER_NAMES.get(name, name): part for name, part in stored.items()}
        options: Options = parse_record(cls, stored, "options")
        return options


# Code that all importers share: rows of a table as records, and parsers of common cells.


MAX_NUMBER = 32_767
MAX_LISTED_IGNORED = 50


class CellRefused(Exception):
    """A row, or one cell of it, that cannot be imported."""

    def __init__(self, column: str | None, text: str):
        super().__init__(text)
        self.column, self.text = column, text


@dataclass(frozen=True)
class ColumnLayout:
    """The meaning of a row's columns. ``cells`` maps our name of a column to the file's. ``problem`` says why they cannot be read."""

    cells: Mapping[str, str]
    ignored: tuple[str, ...]
    problem: str = ""


class RecordReader:
    """Read the rows of a table as records. Skip a row with a problem, and note the problem."""

    def __init__(self, rows: Rows, problems: TableProblems):
        self.rows, self.problems = rows, problems
        self.count = 0
        self.ignored: dict[str, None] = {}

    def parse_layout(self, columns: tuple[str, ...]) -> ColumnLayout:
        raise NotImplementedError

    def parse_row(self, row: Row, layout: Any) -> Any:
        """Return the row as a record, or None if it has a problem, which is noted."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        for row in self.rows:
            self.count += 1
            layout = self.parse_layout(tuple(row.values))
            if layout.problem:
                self.problems.add(row.number, None, layout.problem)
                if self.count == 1:  # the header's fault: all rows below it have it too
                    return
                continue
            if layout.ignored and len(self.ignored) < MAX_LISTED_IGNORED:
                self.ignored |= dict.fromkeys(layout.ignored)
            record = self.parse_row(row, layout)
            if record is not None:
                yield record

    def read_or_add_problem(self, row: Row, read: Callable[[], Any]) -> Any:
        """Return the result of ``read``, or None if it refuses. Then note a problem of the row."""
        try:
            return read()
        except CellRefused as refused:
            self.problems.add(row.number, refused.column, refused.text)
            return None


def parse_text_cell(value: Any, column: str | None, max_length: int | None = None) -> str:
    if value is None:
        return ""
    try:
        return clean_text(value, max_length=max_length)
    except TextRefused as refused:
        raise CellRefused(column, _without_field(refused)) from None


def parse_name_cell(value: Any, column: str | None, max_length: int) -> str:
    """Return a name or key, or '' if the cell is empty. A JSON integer becomes the text of its digits."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    try:
        return clean_name(value, max_length=max_length, field="text")
    except TextRefused as refused:
        raise CellRefused(column, _without_field(refused)) from None


def parse_identity_cell(value: Any, column: str | None, max_length: int) -> str:
    """Return the name of a prompt, group, system or person. A word that programs write for a missing value is refused: it is nobody's."""
    if isinstance(value, str) and is_missing_word(value):
        raise CellRefused(
            column, f"“{value.strip()}” is a word for a missing value. Enter the name, or remove the row."
        )
    return parse_name_cell(value, column, max_length)


def _without_field(refused: TextRefused) -> str:
    return str(refused).removeprefix("text: ")


def parse_non_negative_integer_cell(value: Any, column: str | None) -> int | None:
    """Return a whole number that the database can store, or None if the cell is empty."""
    if value is None or value == "":
        return None
    try:
        return parse_whole_number(value, 0, MAX_NUMBER)
    except NumberRefused as refused:
        raise CellRefused(column, str(refused)) from None


ALIASES = {"key": "prompt_key", "prompt": "prompt_text"}
PROMPT_COLUMNS = ("prompt_key", "prompt_text", "source", "group", "domain", "language", "prompt_image", "attributes")
OUTPUT_COLUMNS = ("system", "sample", "text", "image", "format", "alt", "is_empty", "output_language", "warning")
BATCH_COLUMNS = ("batch", "position", "arm", "section")
COLUMNS = (*PROMPT_COLUMNS, *OUTPUT_COLUMNS, "outputs", *BATCH_COLUMNS)
# Parts of an output in wide columns, such as "alt:ada", and the keys of an output written as an object.
PARTS = {
    "output": "text", "text": "text", "image": "image", "format": "format", "alt": "alt", "is_empty": "is_empty",
    "sample": "sample", "language": "output_language", "warning": "warning",
}  # fmt: skip
# Names that a header may write in another case.
KNOWN_COLUMNS = Columns(optional=(*COLUMNS, *ALIASES, *GROUP_COLUMNS))
ATTRIBUTE = "attribute"
FORMATS = tuple(Output.Format.values)
MAX_SYSTEMS = 500  # of one row

_TAG = re.compile(LANGUAGE_TAG)
_TRUE, _FALSE = {"true", "1", "yes"}, {"false", "0", "no", ""}


@dataclass(frozen=True, slots=True)
class PromptCells:
    """A prompt as one row describes it. '' means that the row does not change the value."""

    key: str
    text: str = ""
    source: str = ""
    domain: str = ""
    language: str = ""
    image: str = ""
    attributes: str = ""  # canonical JSON
    has_text_column: bool = True
    group: str = ""
    group_noun: str = ""
    # Values of columns that may name the group, and that the options do not choose.
    proposed_groups: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OutputCells:
    """An output as one row describes it. None means that the row gives no value."""

    system: str
    column: str
    text: str = ""
    image: str = ""
    is_empty: bool = False
    sample: int | None = None
    format: str | None = None
    alt: str | None = None
    language: str | None = None
    warning: str | None = None


@dataclass(frozen=True, slots=True)
class BatchCells:
    """The position of a row in a ready-made batch."""

    key: str
    position: int | None = None
    arm: str = ""
    section: int | None = None


@dataclass(frozen=True, slots=True)
class StimulusRow:
    """One row, of either format."""

    row: int
    prompt: PromptCells
    outputs: tuple[OutputCells, ...] = ()
    batch: BatchCells | None = None
    is_wide: bool = False


@dataclass(frozen=True)
class StimulusLayout(ColumnLayout):
    wide: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # system > part > column
    attributes: Mapping[str, str] = field(default_factory=dict)
    group_noun: str = ""

    @property
    def is_wide(self) -> bool:
        return bool(self.wide) or "outputs" in self.cells

    @property
    def is_long(self) -> bool:
        return any(name in self.cells for name in ("system", "text", "image"))


def group_noun(column: str) -> str:
    """Return what the name of a column calls a group of prompts, or '' if heval has no word for it.

    >>> group_noun("doc_id"), group_noun("Topic"), group_noun("cluster")
    ('document', 'topic', '')
    """
    word = column_words(column).removesuffix(" id")
    word = {"doc": "document", "dialog": "dialogue"}.get(word, word)
    return word if word in Study.GroupNoun.values else ""


@lru_cache(maxsize=64)
def parse_stimulus_columns(columns: tuple[str, ...], groups_by: str = "") -> StimulusLayout:
    """Return the meaning of these columns. ``problem`` says why they cannot be read. ``groups_by``: the column that names the group."""
    cells: dict[str, str] = {}
    wide: dict[str, dict[str, str]] = {}
    attributes: dict[str, str] = {}
    ignored: list[str] = []
    problem = noun = ""
    for column in columns:
        before, colon, after = column.partition(":")
        part, system = before.strip().casefold(), after.strip()
        is_named_group = column == groups_by or (part == "group" and colon)
        name = "group" if is_named_group else ALIASES.get(column, column)
        if is_named_group:
            noun = group_noun(after if colon else column)
        if name in COLUMNS:
            if name in cells:
                problem = problem or f"the columns “{cells[name]}” and “{column}” mean the same."
            cells[name] = column
        elif colon and part in PARTS and system:
            parts = wide.setdefault(system, {})
            if PARTS[part] in parts:
                problem = problem or f"the columns “{parts[PARTS[part]]}” and “{column}” mean the same."
            parts[PARTS[part]] = column
        elif colon and part == ATTRIBUTE and system:
            attributes[system] = column
        else:
            ignored.append(column)
    layout = StimulusLayout(cells, tuple(ignored), problem, wide, attributes, noun)
    if not problem and layout.is_wide and layout.is_long:
        problem = "two formats are mixed: use either one system with a text (or image) per row, or outputs of several systems per row."
    known_columns_text = f"the columns found are: {', '.join(columns)[:500]}."
    # Without this check, every text would count as empty if empty outputs are allowed.
    if not problem and "system" in cells and not any(name in cells for name in ("text", "image", "is_empty")):
        problem = f"no column text, image or is_empty beside the system; {known_columns_text}"
    if "prompt_key" not in cells:
        problem = f"no column prompt_key (or key); {known_columns_text}"
    return replace(layout, problem=problem)


class StimulusReader(RecordReader):
    def __init__(self, rows: Rows, options: Options, problems: TableProblems):
        super().__init__(rows, problems)
        self.options = options

    def parse_layout(self, columns: tuple[str, ...]) -> StimulusLayout:
        return parse_stimulus_columns(
            columns, self.options.groups_by if self.options.groups_by in GROUP_COLUMNS else ""
        )

    def parse_row(self, row: Row, layout: StimulusLayout) -> StimulusRow | None:
        before = self.problems.count
        prompt = self.read_or_add_problem(row, lambda: _prompt(row.values, layout))
        outputs = list(self._outputs(row, layout))
        batch = self.read_or_add_problem(row, lambda: _batch(row.values, layout, self.options))
        if self.problems.count > before or prompt is None:
            return None
        return StimulusRow(row.number, prompt, tuple(outputs), batch, layout.is_wide)

    def _outputs(self, row: Row, layout: StimulusLayout) -> Iterator[OutputCells]:
        for written in self.read_or_add_problem(row, lambda: list(_written_outputs(row.values, layout))) or ():
            output = self.read_or_add_problem(row, partial(_output, self.options, *written))
            if output is not None and output.system not in self.options.left_out_systems:
                yield output


def _prompt(values: Mapping[str, Any], layout: StimulusLayout) -> PromptCells:
    cells = layout.cells

    def text(name: str, **limits: Any) -> str:
        column = cells.get(name)
        return parse_text_cell(values.get(column), column, **limits) if column else ""

    key = parse_identity_cell(values.get(cells["prompt_key"]), cells["prompt_key"], 100)
    if not key:
        raise CellRefused(cells["prompt_key"], "must not be empty.")
    language = text("language", max_length=12).strip()
    if language and not _TAG.fullmatch(language):
        raise CellRefused(cells["language"], f"“{language}” is not a language tag such as en or pt-BR.")
    return PromptCells(
        key,
        _unless_blank(text("prompt_text")),
        _unless_blank(text("source")),
        parse_name_cell(values.get(cells.get("domain", "")), cells.get("domain"), 50),
        language,
        text("prompt_image", max_length=500).strip(),
        _attributes(values, layout),
        "prompt_text" in cells,
        parse_identity_cell(values.get(cells.get("group", "")), cells.get("group"), 100),
        layout.group_noun,
        {
            name: str(values[name])
            for name in layout.ignored
            if name in GROUP_COLUMNS and values[name] not in (None, "")
        },
    )


def _attributes(values: Mapping[str, Any], layout: StimulusLayout) -> str:
    column = layout.cells.get("attributes")
    cell = values.get(column) if column else None
    if cell is not None and cell != "" and not isinstance(cell, dict):
        raise CellRefused(column, "must be an object (JSON lines). In CSV, use columns such as attribute:length.")
    attributes = dict(cell or {})
    for name, column_name in layout.attributes.items():
        if values.get(column_name) not in (None, ""):
            attributes[name] = values[column_name]
    return json.dumps(attributes, sort_keys=True, ensure_ascii=False) if attributes else ""


def _written_outputs(
    values: Mapping[str, Any], layout: StimulusLayout
) -> Iterator[tuple[Any, str, dict[str, Any], dict[str, str]]]:
    """Yield (system, column for messages, parts, their columns) of each output in a row."""
    cells = layout.cells
    if layout.is_wide:
        yield from _wide_outputs(values, layout)
    elif layout.is_long:
        if "system" not in cells:
            raise CellRefused("system", "is missing: name the system that made this text or image.")
        names = [name for name in OUTPUT_COLUMNS[1:] if name in cells]
        yield (
            values[cells["system"]],
            cells["system"],
            {n: values[cells[n]] for n in names},
            {n: cells[n] for n in names},
        )


def _wide_outputs(
    values: Mapping[str, Any], layout: StimulusLayout
) -> Iterator[tuple[Any, str, dict[str, Any], dict[str, str]]]:
    shared = {name: layout.cells[name] for name in ("format", "output_language") if name in layout.cells}
    for system, columns in layout.wide.items():
        named = {**shared, **columns}
        first = columns.get("text") or columns.get("image") or next(iter(columns.values()))
        yield system, first, {name: values.get(column) for name, column in named.items()}, named
    column = layout.cells.get("outputs")
    if column is None:
        return
    outputs = values.get(column)
    if not isinstance(outputs, dict):
        raise CellRefused(column, "must be an object of outputs by system, such as {“ada”: “A text.”}.")
    if len(outputs) > MAX_SYSTEMS:
        raise CellRefused(column, f"has {len(outputs):,} systems. At most {MAX_SYSTEMS} are allowed.")
    for system, given in outputs.items():
        where = f"{column}.{system[:100]}"
        if given is None:  # null: this system has no output for the prompt
            continue
        parts = given if isinstance(given, dict) else {"text": given}
        unknown = [name for name in parts if name not in PARTS]
        if unknown:
            raise CellRefused(
                where, f"has unknown parts: {', '.join(sorted(unknown))[:200]}. Allowed are: {', '.join(PARTS)}."
            )
        cells: dict[str, Any] = {PARTS[name]: value for name, value in parts.items()}
        cells |= {name: values.get(column_name) for name, column_name in shared.items() if cells.get(name) is None}
        yield system, where, cells, dict.fromkeys(cells, where)


def _output(options: Options, system: Any, column: str, parts: dict[str, Any], columns: dict[str, str]) -> OutputCells:
    name = parse_identity_cell(system, column, 100)
    if not name:
        raise CellRefused(column, "names no system.")
    where = columns.get("text") or columns.get("image") or column
    text = parse_text_cell(parts.get("text"), where)
    image = parse_text_cell(parts.get("image"), columns.get("image"), max_length=500).strip()
    is_empty = _flag(parts.get("is_empty"), columns.get("is_empty"))
    if image and text:
        raise CellRefused(
            columns.get("image"), "is given together with a text: an output is either a text or an image."
        )
    if is_empty and (image or not is_blank(text)):
        raise CellRefused(columns.get("is_empty"), "marks the output as empty, but it has a text or an image.")
    if not image and is_blank(text):
        if not is_empty and not options.allows_empty:
            raise CellRefused(
                where,
                f"the output of {name} is empty. If this is intended, set is_empty or allow empty outputs. Otherwise use null, or "
                "remove the row.",
            )
        text, is_empty = "", True
    return OutputCells(
        name,
        where,
        text,
        image,
        is_empty,
        parse_non_negative_integer_cell(parts.get("sample"), columns.get("sample")),
        _format(parts.get("format"), columns.get("format")),
        _line(parts.get("alt"), columns.get("alt"), 300),
        _language(parts.get("output_language"), columns.get("output_language")),
        _line(parts.get("warning"), columns.get("warning"), 200),
    )


def _batch(values: Mapping[str, Any], layout: StimulusLayout, options: Options) -> BatchCells | None:
    cells = layout.cells
    column = cells.get("batch")
    if not options.makes_batches:
        if column is not None:
            raise CellRefused(
                column, "names a batch: tick “The file contains ready-made batches”, or remove the column."
            )
        return None
    if column is None:
        raise CellRefused("batch", "is missing: you ticked “The file contains ready-made batches”.")
    key = parse_name_cell(values.get(column), column, 100)
    if not key:
        raise CellRefused(column, "must not be empty.")
    return BatchCells(
        key,
        parse_non_negative_integer_cell(values.get(cells.get("position", "")), cells.get("position")),
        parse_name_cell(values.get(cells.get("arm", "")), cells.get("arm"), 50),
        parse_non_negative_integer_cell(values.get(cells.get("section", "")), cells.get("section")),
    )


# Cells


def _unless_blank(text: str) -> str:
    return "" if is_blank(text) else text


def _flag(value: Any, column: str | None) -> bool:
    if value is None or isinstance(value, bool):
        return bool(value)
    word = value.strip().casefold() if isinstance(value, str) else str(value)
    if word not in _TRUE | _FALSE:
        raise CellRefused(column, f"must be true or false, not {value!r:.40}.")
    return word in _TRUE


def _format(value: Any, column: str | None) -> str | None:
    word = _line(value, column, 40)
    if word is None or word.casefold() in FORMATS:
        return word and word.casefold()
    raise CellRefused(column, f"must be one of {', '.join(FORMATS)}, not “{word}”.")


def _line(value: Any, column: str | None, max_length: int) -> str | None:
    return parse_text_cell(value, column, max_length).strip() or None


def _language(value: Any, column: str | None) -> str | None:
    tag = _line(value, column, 12)
    if tag and not _TAG.fullmatch(tag):
        raise CellRefused(column, f"“{tag}” is not a language tag such as en or pt-BR.")
    return tag


def excerpt(text: str, length: int = 160) -> str:
    """Return the beginning of a text, short enough for a table."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def stimulus_row_preview(entry: StimulusRow) -> dict[str, Any]:
    """Return a short form of an entry for a table, so that a researcher can check it."""
    return {
        "row": entry.row,
        "batch": entry.batch and entry.batch.key,
        "prompt": entry.prompt.key,
        "prompt_text": excerpt(entry.prompt.text) or (f"image {entry.prompt.image}" if entry.prompt.image else ""),
        "outputs": [[output.system, _shown_output(output)] for output in entry.outputs[:20]],
    }


def _shown_output(output: OutputCells) -> str:
    return "(empty)" if output.is_empty else f"image {output.image}" if output.image else excerpt(output.text)


def around_difference(before: str, after: str) -> tuple[str, str]:
    """Return both texts from shortly before the first difference."""
    at = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after)))
    start = max(0, at - 30) if before else 0
    mark = "…" if start else ""
    return mark + excerpt(before[start:]) if before else "", mark + excerpt(after[start:])


def columns_of(cells: PromptCells, media: str) -> tuple[str, ...]:
    """Return the columns of a prompt in the order of the journal."""
    return cells.key, cells.text, cells.source, cells.domain, cells.language, media, cells.attributes, cells.group
