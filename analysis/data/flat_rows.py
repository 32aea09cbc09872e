"""Read answers and assignments as flat rows, for exports, lists of the REST API and the codebook.

Rows bypass Django's converters, because one damaged cell would otherwise stop a whole list. Unreadable cells become empty, and
``answers.find_damaged_cells`` lists them.

A response row has three parts: cells of the assignment, cells of the page, and cells of the answer. The first two are
formatted once per assignment and once per page. The database builds the cells of the answer. So each row costs only its
own cells.
"""

import re
import secrets
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import Case, Count, Exists, F, Func, OuterRef, Q, QuerySet, TextField, Value, When
from django.db.models.functions import Cast

from analysis.data.snapshot import lenient_text_decoding
from annotators.counting import PEOPLES_ORIGINS, Use, select
from annotators.models import Assignment, Exclusion, PageVisit, Response
from annotators.models.identity import keyed_hash
from studies.models import Exposure, Item, Output, Section, Study, System
from studies.models.fields import FIRST_IMPORT_NUMBER
from studies.stimuli.rows import FORMULA_STARTS

# The columns of flat rows, each with its type and its meaning.


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a flat row. ``type``: text, integer, number, boolean, time or, in JSON lines, object."""

    name: str
    type: str
    meaning: str
    unit: str = ""
    levels: tuple[str, ...] = ()


def _values(choices) -> tuple[str, ...]:
    return tuple(str(value) for value, _ in choices.choices)


IDENTITY_COLUMNS = (
    Column("assignment", "text", "Pseudonym of the assignment (an annotator with a batch) within this study."),
    Column(
        "annotator",
        "text",
        "Pseudonym of the annotator: the same in all rows of this study, different in other studies. Empty after a withdrawal.",
    ),
    Column("ordinal", "integer", "Number of this assignment among the annotator's assignments in this study, from 1."),
    Column("channel", "text", "The channel of the link by which the annotator came."),
    Column("batch", "integer", "The number of the batch."),
    Column("arm", "text", "The arm (between-subject cell)."),
    Column("condition", "text", "The condition of the arm.", levels=("none", "instructions", "examples", "comparison")),
    Column("origin", "text", "Where the answers come from.", levels=_values(Assignment.Origin)),
    Column("trust", "text", "How reliably the annotator is identified.", levels=_values(Assignment.Trust)),
    Column(
        "design_version",
        "integer",
        "The version of the design that the annotator saw. Empty for a test run of a draft.",
    ),
    Column("is_submitted", "boolean", "The annotator submitted the last page."),
    Column(
        "is_late",
        "boolean",
        "It was submitted after its place was given to another annotator, or after the study closed.",
    ),
    Column("is_withdrawn", "boolean", "The annotator withdrew. Exports include such rows only on request."),
    Column(
        "exclusion",
        "text",
        "Reasons of active exclusions that researchers decided, separated by semicolons. Exclusion rules are not included.",
    ),
)
PAGE_COLUMNS = (
    Column("page", "text", "The page, as numbered for this annotator. Empty for imported answers."),
    Column("layout", "text", "The page layout on the annotator's screen, if the page's script reported it."),
    Column("shown_at", "time", "When the page was first shown. Empty if unknown."),
    Column("received_at", "time", "When the answer was stored."),
    Column(
        "active_seconds",
        "integer",
        "Time with the page in the foreground, counted by the page's script. Approximate.",
        "seconds",
    ),
    Column(
        "unseen",
        "text",
        "Images of the page that the annotator could not see, separated by semicolons: i2.A is the output with letter A at "
        "position 2; i2 is the image of the prompt at position 2.",
    ),
)
ANSWER_COLUMNS = (
    Column("section", "integer", "The position of the section in the design."),
    Column("protocol", "text", "The protocol of the section."),
    Column("purpose", "text", "The purpose of the section.", levels=_values(Section.Purpose)),
    Column("question", "text", "The key of the question."),
    Column("criterion", "text", "The criterion that the question asks about."),
    Column("x", "text", "The first system of a directed question, which asks for P[x > y] or how much better x is."),
    Column("y", "text", "The second system of a directed question."),
    Column("item", "text", "The judged item as s<section>.<number>. Empty for a question about systems."),
    Column("item_kind", "text", "The purpose of the item.", levels=("live", "test", "practice")),
    Column("prompt", "text", "The key of the item's prompt."),
    Column("domain", "text", "The domain of the prompt."),
    Column("system", "text", "The system whose output was judged. Empty if the answer is not about a single output."),
    Column("sample", "integer", "Number of the output among the system's outputs for the prompt, from 0."),
    Column("label", "text", "The letter or letters of the outputs on the annotator's screen."),
    Column("position", "integer", "The position at which the annotator saw the item, or the question about systems."),
    Column("slot", "text", "The name of the form field, unique within an assignment."),
    Column(
        "value", "number", "The answer as a number on the question's scale, as given. Of a box: 1 if ticked, 0 if not."
    ),
    Column("chosen_system", "text", "The system whose output was chosen."),
    Column("choice", "text", "The chosen option, or the option that this row is about."),
    Column("part", "text", "The part of the output that this row is about."),
    Column("text", "text", "The free-text answer, as typed."),
    Column(
        "skip_reason",
        "text",
        "Why the annotator could not answer. unseen: they could not see an image that the question is about.",
    ),
    Column("is_erased", "boolean", "The answer was erased at the annotator's request."),
    Column(
        "shown_outputs",
        "text",
        "The outputs that the item shows: a JSON list of pairs of system and sample. An import of this row needs it, if items show some of "
        "the systems.",
    ),
)
TIME_COLUMNS = (
    Column("claimed_at", "time", "When the batch was claimed."),
    Column("consented_at", "time", "When the annotator agreed to take part."),
    Column("started_at", "time", "When the annotator began."),
    Column("submitted_at", "time", "When the annotator submitted the last page."),
    Column("released_at", "time", "When the place was released."),
    Column("released_reason", "text", "Why the place was released.", levels=_values(Assignment.Released)),
    Column("withdrawn_at", "time", "When the annotator withdrew."),
    Column(
        "seconds",
        "number",
        "Time from the start to submission, by the server's clock. Empty for imported answers.",
        "seconds",
    ),
    Column("active_seconds", "integer", "Total time with a page in the foreground. Approximate.", "seconds"),
    Column("pages", "integer", "Number of answered pages."),
    Column(
        "unseen",
        "text",
        "Images that the annotator could not see, separated by semicolons, each after its page: s2.read:i2.A. Pages without "
        "questions appear only here.",
    ),
    Column(
        "device",
        "text",
        "The coarse class of the device on which the batch was claimed. Empty if unknown.",
        levels=_values(Assignment.Device),
    ),
    Column(
        "page_language",
        "text",
        "The language of the words around the study's own texts. Empty for a study from before these words were kept.",
    ),
    Column("words_version", "text", "The version of these words: the sha256 of their catalogue."),
)
RESPONSE_COLUMNS = IDENTITY_COLUMNS + PAGE_COLUMNS + ANSWER_COLUMNS
ASSIGNMENT_COLUMNS = IDENTITY_COLUMNS + TIME_COLUMNS


# Read rows as they are stored, without Django's converters, and format times in one way.


def compile_sql_for_default_db(queryset: QuerySet) -> tuple[str, Sequence[Any]]:
    """Return the queryset as SQL for the current default connection."""
    return queryset.query.get_compiler(connection=connections["default"]).as_sql()


def fetch_raw_rows_from_default_db(queryset: QuerySet) -> list[tuple]:
    """Return the stored values without the conversions of Django's fields."""
    try:
        sql, params = compile_sql_for_default_db(queryset)
    except EmptyResultSet:  # Django raises this for a queryset that cannot match any row
        return []
    connection = connections["default"]
    with lenient_text_decoding(connection), connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall()


def parse_time(stored: Any) -> datetime | None:
    """Return a stored time (text or datetime) as an aware datetime, or None if it is not a time."""
    if isinstance(stored, str):
        try:
            stored = datetime.fromisoformat(stored)
        except ValueError:
            return None
    if not isinstance(stored, datetime):
        return None
    return stored if stored.tzinfo else stored.replace(tzinfo=UTC)


def format_time(time: datetime | None) -> str | None:
    """Return the time as ISO 8601 in UTC, with the precision of the database."""
    if time is None:
        return None
    if time.utcoffset():
        time = time.astimezone(UTC)
    return f"{time.replace(tzinfo=None).isoformat()}Z"


# Select the rows to read, and give annotators and assignments pseudonyms for exports.


COUNTED_ORIGINS = tuple(map(str, PEOPLES_ORIGINS))


@dataclass(frozen=True, slots=True)
class Selection:
    """The study and origins of the rows to read. Rows of withdrawn annotators are included only if ``withdrawn``."""

    study: Study
    origins: tuple[str, ...] = COUNTED_ORIGINS
    withdrawn: bool = False

    @property
    def use(self) -> Use:
        return Use.RECORD if self.withdrawn else Use.ROWS

    @property
    def assignments(self) -> QuerySet:
        return select(self.use, Assignment.objects.filter(study=self.study), self.origins)

    @property
    def responses(self) -> QuerySet:
        return select(self.use, Response.objects.filter(assignment__study=self.study), self.origins)


# The first half of the code of a person of an archive. No random UUID begins like this.
_ARCHIVED = b"hevalarc".hex()


def annotator_pseudonym(study: Study, code: Any) -> str:
    """Return an annotator's pseudonym within one study. Reports show its first characters."""
    digits = str(code).replace("-", "")
    if digits.startswith(_ARCHIVED):
        return digits[16:]
    return keyed_hash("frame", str(study.code), str(code))[:16]


ARCHIVED_CODE = 32  # characters; other codes have 22


def archived_assignment_code(pseudonym: str) -> str:
    """Return a new code of an assignment of an archive, with its pseudonym in it. What follows is secret, as in other codes."""
    return f"-{_checked(pseudonym)}{secrets.token_urlsafe(11)}"


def _checked(pseudonym: str) -> str:
    if not re.fullmatch("[0-9a-f]{16}", pseudonym):
        raise ValueError(pseudonym)
    return pseudonym


def archived_annotator_code(pseudonym: str) -> UUID:
    """Return the code of a person of an archive. It has the pseudonym in it: reports sort by pseudonyms, and their hash is in the seed.

    Raises ValueError if it is no pseudonym.
    """
    return UUID(hex=f"{_ARCHIVED}{_checked(pseudonym)}")


def stimulus_text(study: Study, text: str) -> str:
    """Return a text of the study, or its hash if the text may not be passed on."""
    return f"sha256:{sha256(text.encode()).hexdigest()}" if study.stimuli_source and text else text


def assignment_pseudonym(code: str) -> str:
    """Return the pseudonym of an assignment. The code itself gives access to the annotator's pages, so it is never exported."""
    if len(code) == ARCHIVED_CODE:
        return code[1:17]
    return keyed_hash("assignment", code)[:16]


# Read and format the cells of an assignment and its pages once, for all rows of its answers.


ASSIGNMENTS_AT_ONCE = 1000


@dataclass(slots=True)
class AssignmentRow:
    """The cells of an assignment, and its pages in the order in which they were recorded."""

    pk: int
    identity: tuple
    times: tuple
    recorded_times: list[datetime]
    pages: list[tuple]

    def page_cells_at(self, received: datetime | None) -> tuple:
        """Return the cells of the page on which an answer was given: the last page recorded when the answer was stored."""
        n_recorded = bisect_right(self.recorded_times, received) if received else 0
        page, layout, shown_at, active, unseen = self.pages[n_recorded - 1] if n_recorded else (None,) * 5
        return (page, layout, shown_at, format_time(received), active, unseen)


_SEAT = (
    "pk",
    "code",
    "annotator__code",
    "ordinal",
    "recruitment__channel",
    "batch__number",
    "batch__arm__name",
    "batch__arm__condition",
    "origin",
    "trust",
    "design__version",
    "is_late",
    "released_reason",
    "device",
    # The design names the same words: they are frozen by the launch.
    "design__study__translation__language",
    "design__study__translation__version",
)
_SEAT_TIMES = ("claimed_at", "consented_at", "started_at", "submitted_at", "released_at", "withdrawn_at")


def _as_text(*names: str) -> list[Cast]:
    """Read times as text. The driver's time objects cost ten times more, and a damaged one raises an error."""
    return [Cast(name, TextField()) for name in names]


def read_assignment_rows(study: Study, assignments: QuerySet) -> list[AssignmentRow]:
    """Return assignments with their pages and exclusions, in three queries. Pass at most ``ASSIGNMENTS_AT_ONCE``."""
    rows = fetch_raw_rows_from_default_db(assignments.order_by("pk").values_list(*_SEAT, *_as_text(*_SEAT_TIMES)))
    ids = [row[0] for row in rows]
    visits: dict[int, list] = {pk: [] for pk in ids}
    recorded = PageVisit.objects.filter(assignment__in=ids, recorded_at__isnull=False).order_by("pk")
    for pk, key, layout, shown_at, recorded_at, active, unseen in fetch_raw_rows_from_default_db(
        recorded.values_list(
            "assignment_id", "key", "layout", *_as_text("shown_at", "recorded_at"), "active_seconds", "unseen"
        )
    ):
        if time := parse_time(recorded_at):
            seconds = active if isinstance(active, int) else None
            visits[pk].append((time, (key, layout or None, format_time(parse_time(shown_at)), seconds, unseen or None)))
    reasons: dict[int, list[str]] = {pk: [] for pk in ids}
    active = Exclusion.objects.filter(assignment__in=ids, reverses=None).filter(
        ~Exists(Exclusion.objects.filter(reverses=OuterRef("pk")))
    )
    for pk, reason in fetch_raw_rows_from_default_db(active.order_by("pk").values_list("assignment_id", "reason")):
        reasons[pk].append(reason)
    return [_seat(study, row, sorted(visits[row[0]], key=lambda visit: visit[0]), reasons[row[0]]) for row in rows]


def _seat(study: Study, row: tuple, visits: list, reasons: list[str]) -> AssignmentRow:
    (
        pk,
        code,
        annotator,
        ordinal,
        channel,
        batch,
        arm,
        condition,
        origin,
        trust,
        version,
        is_late,
        reason,
        device,
        page_language,
        words_version,
        *rest,
    ) = row
    claimed, consented, started, submitted, released, withdrawn = map(parse_time, rest)
    identity = (
        assignment_pseudonym(code),
        None if withdrawn else annotator_pseudonym(study, _dashed(annotator)),
        ordinal,
        channel,
        batch,
        arm,
        condition,
        origin,
        trust,
        version,
        submitted is not None,
        bool(is_late),
        withdrawn is not None,
        ";".join(reasons) or None,
    )
    is_timed = origin != Assignment.Origin.IMPORTED
    seconds = round((submitted - started).total_seconds(), 3) if submitted and started and is_timed else None
    active = sum(visit[1][3] for visit in visits if isinstance(visit[1][3], int))
    times = (
        *(format_time(time) for time in (claimed, consented, started, submitted, released)),
        reason or None,
        format_time(withdrawn),
        seconds,
        active,
        len(visits),
        _unseen(visits),
        device or None,
        page_language,
        words_version,
    )
    return AssignmentRow(pk, identity, times, [visit[0] for visit in visits], [visit[1] for visit in visits])


def _unseen(visits: list) -> str | None:
    """Return the images that the annotator could not see, each with its page."""
    return ";".join(f"{page[0]}:{name}" for _, page in visits if page[4] for name in page[4].split(";")) or None


def _dashed(code: Any) -> str:
    """Return a UUID as text with dashes. SQLite stores it without them."""
    text = str(code)
    return (
        text
        if "-" in text or len(text) != 32
        else "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
    )


def assignment_row_chunks(selection: Selection) -> Iterator[list[AssignmentRow]]:
    """Yield all assignments of the selection in stable order, ``ASSIGNMENTS_AT_ONCE`` at a time."""
    last, is_last = 0, False
    while not is_last:
        following = selection.assignments.filter(pk__gt=last).order_by("pk")
        ids = list(following.values_list("pk", flat=True)[:ASSIGNMENTS_AT_ONCE])
        is_last = len(ids) < ASSIGNMENTS_AT_ONCE
        if ids:
            yield read_assignment_rows(selection.study, Assignment.objects.filter(pk__in=ids))
            last = ids[-1]


# Build the answer cells of response rows in the database. SQLite and PostgreSQL must give the same cells.


MAX_PROBLEMS = 100
APOSTROPHE = "''''"  # an SQL literal
# Texts that heval itself writes. They are never empty and need no guard.
TRUSTED_TEXT_COLUMNS = frozenset({"protocol", "purpose", "item_kind", "slot", "shown_outputs"})
MAX_STORED_VALUE = 10**10  # a stored value has ten digits before the point


class _Value(Func):
    """A stored value as a number, or NULL if the cell is not a number."""

    def as_postgresql(self, compiler, connection, **context):
        return self.as_sql(compiler, connection, template="trim_scale(NULLIF(%(expressions)s, 'NaN'))", **context)

    def as_sqlite(self, compiler, connection, **context):
        template = (
            "CASE WHEN typeof(%(expressions)s) IN ('integer', 'real') AND abs(%(expressions)s) < "
            f"{MAX_STORED_VALUE} THEN %(expressions)s END"
        )
        return self.as_sql(compiler, connection, template=template, **context)


class _Text(Func):
    """A text, or NULL if it is empty."""

    template = "NULLIF(%(expressions)s, '')"


class _GuardedText(Func):
    """A text that a spreadsheet does not run as a formula, or NULL if it is empty."""

    # Compare the code of the first character: comparing texts a dozen times per row costs more than the rest of the row.
    cases = "".join(f" WHEN {ord(start)} THEN {APOSTROPHE} || %(expressions)s" for start in FORMULA_STARTS)
    template = f"CASE %(function)s(%(expressions)s){cases} WHEN 0 THEN NULL ELSE %(expressions)s END"
    function = "ascii"

    def as_sqlite(self, compiler, connection, **context):
        return self.as_sql(compiler, connection, function="unicode", **context)


class _Joined(Func):
    """Concatenate the parts. NULL if one is missing."""

    template = "(%(expressions)s)"
    arg_joiner = " || "


class _ShownOutputs(Func):
    """The outputs of an item as JSON, or NULL without an item."""

    output_field = TextField()
    template = (
        "(SELECT '[' || %(function)s || ']' FROM (SELECT '[' || %(quote)s || ',' || CAST(o.sample AS text) || ']' AS shown "
        "FROM %(exposures)s e JOIN %(outputs)s o ON o.id = e.output_id JOIN %(systems)s s ON s.id = o.system_id "
        "WHERE e.item_id = %(expressions)s ORDER BY o.id) AS ordered)"
    )
    tables = {"exposures": Exposure._meta.db_table, "outputs": Output._meta.db_table, "systems": System._meta.db_table}

    def as_postgresql(self, compiler, connection, **context):
        how = {"quote": "to_json(s.name)::text", **self.tables, **context}
        return self.as_sql(compiler, connection, "string_agg(shown, ',')", **how)

    def as_sqlite(self, compiler, connection, **context):
        how = {"quote": "json_quote(s.name)", **self.tables, **context}
        return self.as_sql(compiler, connection, "group_concat(shown, ',')", **how)


_ANSWER_PATHS = {
    "section": "question__section__position",
    "protocol": "question__section__protocol",
    "purpose": "question__section__purpose",
    "question": "question__key",
    "criterion": "question__criterion",
    "x": "question__x__name",
    "y": "question__y__name",
    "item_kind": "item__kind",
    "prompt": "item__prompt__key",
    "domain": "item__prompt__domain",
    "system": "exposure__output__system__name",
    "sample": "exposure__output__sample",
    "chosen_system": "chosen__output__system__name",
}


def _expression(column: Column, *, guarded: bool, as_numbers: bool):
    if column.name == "value":
        return _Value(F("value"))
    if column.name == "item":
        number = Cast("item__number", TextField())
        section = Cast("item__section__position", TextField())
        return _Joined(Value("s"), section, Value("."), number, output_field=TextField())
    if column.name == "shown_outputs":
        # COPY of PostgreSQL writes the lines itself. ``with_shown_outputs`` fills in the cell elsewhere, once for each item.
        return _ShownOutputs("item_id") if connections["default"].vendor == "postgresql" else F("item_id")
    if column.name == "is_erased":
        yes, no = (Value(1), Value(0)) if as_numbers else (Value(True), Value(False))
        return Case(When(erased_at__isnull=False, then=yes), default=no)
    path = F(_ANSWER_PATHS.get(column.name, column.name))
    if column.type != "text" or column.name in TRUSTED_TEXT_COLUMNS:
        return path
    return (_GuardedText if guarded else _Text)(path, output_field=TextField())


def answer_cells(responses: QuerySet, *, escape_formulas: bool, booleans_as_numbers: bool = True) -> QuerySet:
    """Return the cells that the database builds: assignment, time, then ``ANSWER_COLUMNS``, in stable order."""
    cells = {
        f"c_{c.name}": _expression(c, guarded=escape_formulas, as_numbers=booleans_as_numbers) for c in ANSWER_COLUMNS
    }
    rows = responses.order_by("assignment_id", "pk").annotate(**cells)
    return rows.values_list("assignment_id", "received_at", *cells)


def with_shown_outputs(rows: list[tuple], known: dict[int | None, str | None]) -> list[tuple]:
    """Return rows of ``answer_cells`` whose last cell is as it is exported. ``known``: that cell by item, kept from earlier rows."""
    if connections["default"].vendor == "postgresql":
        return rows
    if missing := {row[-1] for row in rows} - known.keys():
        shown = Item.objects.filter(pk__in=missing).values_list("pk", _ShownOutputs("pk"))
        known |= dict.fromkeys(missing) | dict(shown.iterator())
    return [(*row[:-1], known[row[-1]]) for row in rows]


def responses_of_assignment_chunk(selection: Selection, assignment_rows: Sequence[AssignmentRow]) -> QuerySet:
    """Return the answers of consecutive assignments. A range uses the index; a long list of keys does not."""
    return selection.responses.filter(
        assignment_id__gte=assignment_rows[0].pk, assignment_id__lte=assignment_rows[-1].pk
    )


def _unreadable() -> Q | Exists:
    if connections["default"].vendor == "postgresql":
        return Q(value=Value("NaN"))
    return Q(value__isnull=False, readable=None)


def find_damaged_cells(selection: Selection) -> tuple[int, list[dict[str, str]]]:
    """Return the number of answer cells that no page could have stored, and the first of them."""
    damaged = selection.responses.annotate(readable=_Value(F("value"))).filter(_unreadable())
    n = damaged.aggregate(n=Count("pk"))["n"]
    if not n:
        return 0, []
    first = damaged.order_by("assignment_id", "pk").values_list("assignment__code", "slot")[:MAX_PROBLEMS]
    return n, [
        {
            "assignment": assignment_pseudonym(code),
            "slot": slot,
            "column": "value",
            "message": "not a number; exported as empty",
        }
        for code, slot in fetch_raw_rows_from_default_db(first)
    ]


# Items as flat rows: the outputs of each item. A row of answers names its item, but at most one system.


ITEM_COLUMNS = (
    Column("item", "text", "The item as s<section>.<number>, as in the table responses."),
    Column("section", "integer", "The position of the section in the design."),
    Column("item_kind", "text", "The purpose of the item.", levels=tuple(Item.Kind.values)),
    Column("prompt", "text", "The key of the item's prompt."),
    Column("domain", "text", "The domain of the prompt."),
    Column("system", "text", "A system whose output the item shows. An item with two outputs has two rows."),
    Column("is_human", "boolean", "The system is a human author."),
    Column("sample", "integer", "Number of the output among the system's outputs for the prompt, from 0."),
    Column("retired_in", "integer", "The version of the design that retired the item. Empty if the item is in use."),
)
_PATHS = (
    "item__section__position",
    "item__number",
    "item__kind",
    "item__prompt__key",
    "item__prompt__domain",
    "output__system__name",
    "output__system__is_human",
    "output__sample",
    "item__retired_in__version",
)


def exposures_of_all_items(selection: Selection) -> QuerySet[Exposure]:
    """Return the outputs of all items of the study, answered or not."""
    return Exposure.objects.filter(item__study=selection.study, item__number__lt=FIRST_IMPORT_NUMBER)


def item_output_rows(selection: Selection) -> Iterator[tuple[Any, ...]]:
    """Yield cells in the order of ``ITEM_COLUMNS``, sorted by section, item and system. Makes one query."""
    rows = exposures_of_all_items(selection).order_by(
        "item__section__position", "item__number", "output__system__name", "output__sample"
    )
    for section, number, kind, prompt, domain, *rest in rows.values_list(*_PATHS).iterator(2000):
        yield (f"s{section}.{number}", section, kind, prompt, domain or None, *rest)
