"""Answers and assignments as flat rows: the columns, what each means, and how they are read.

Exports, lists of the REST interface and the codebook all take their columns from here. Rows are read past Django's converters,
one damaged cell would else stop a whole list; what cannot be read becomes empty and ``problems_in`` names it.

A response's row is put together from three parts: what the assignment says (formatted once an assignment), what the page says
(once a page), and what the answer says (made by the database). So the cost of a row is that of its own cells.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import Case, Count, Exists, F, Func, OuterRef, Q, QuerySet, TextField, Value, When
from django.db.models.functions import Cast

from annotators.models import Assignment, Exclusion, PageVisit, Response
from annotators.models.crypto import keyed
from studies.models import Study
from studies.stimuli.spreadsheet import FORMULA_STARTS

from .snapshot import forgiving  # the same reading of damaged texts, without a snapshot: a list is one query

ASSIGNMENTS_AT_ONCE = 1000
MAX_PROBLEMS = 100
COUNTED = ("live", "imported")
APOSTROPHE = "''''"  # of SQL
# Texts of ours, never empty.
OWN_WORDS = frozenset({"protocol", "purpose", "item_kind", "slot"})
LARGEST = 10**10  # a stored value has ten digits before the point


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a flat row. ``type``: text, integer, number, boolean or time."""

    name: str
    type: str
    meaning: str
    unit: str = ""
    levels: tuple[str, ...] = ()


def _values(choices) -> tuple[str, ...]:
    return tuple(str(value) for value, _ in choices.choices)


WHO = (
    Column("assignment", "text", "An annotator with a batch: a name within this study that tells nothing."),
    Column(
        "annotator", "text",
        "The annotator: the same in all rows of this study, different in every other study; empty after a withdrawal.",
    ),
    Column("ordinal", "integer", "Which of this annotator's assignments in the study it is, from 1."),
    Column("channel", "text", "By which kind of recruitment the annotator came."),
    Column("batch", "integer", "The number of the batch."),
    Column("arm", "text", "The between-subject cell."),
    Column("condition", "text", "The condition of the arm.", levels=("none", "instructions", "examples", "comparison")),
    Column("origin", "text", "Where the answers come from.", levels=_values(Assignment.Origin)),
    Column("trust", "text", "How sure it is who answered.", levels=_values(Assignment.Trust)),
    Column("design_version", "integer", "The version of the design that the annotator saw; empty for a test of a draft."),
    Column("is_submitted", "boolean", "The annotator sent the last page."),
    Column("is_late", "boolean", "It was sent after its place had gone to somebody else, or after the study was closed."),
    Column("is_withdrawn", "boolean", "The annotator withdrew; exports have such rows only when they are asked for."),
    Column("exclusion", "text", "Reasons of the standing exclusions that people decided, by semicolons; rules are not in it."),
)  # fmt: skip
PAGE = (
    Column("page", "text", "The page, as counted for this annotator; empty for imported answers."),
    Column("layout", "text", "How the page was laid out on the annotator's screen, as far as its script told."),
    Column("shown_at", "time", "When the page was first shown; empty where it is not known."),
    Column("received_at", "time", "When the answer was stored."),
    Column("active_seconds", "integer", "Time with the page in the foreground, as its script counted; a hint.", "seconds"),
    Column(
        "unseen", "text",
        "The page's images that the annotator could not see, by semicolons: i2.A is the output with the letter A at position 2, "
        "i2 the image of the prompt there.",
    ),
)  # fmt: skip
ANSWER = (
    Column("section", "integer", "The position of the section in the design."),
    Column("protocol", "text", "The protocol of the section."),
    Column("purpose", "text", "What the section is for.", levels=("live", "training", "screening")),
    Column("question", "text", "The key of the question."),
    Column("criterion", "text", "The criterion that the question asks about."),
    Column("x", "text", "The system in the first place of a directed question: it means P[x > y]."),
    Column("y", "text", "The system in the second place of a directed question."),
    Column("item", "text", "The item judged, s<section>.<number>; empty for a question about systems."),
    Column("item_kind", "text", "What the item is for.", levels=("live", "test", "practice")),
    Column("prompt", "text", "The key of the item's prompt."),
    Column("domain", "text", "The domain of the prompt."),
    Column("system", "text", "The system whose output was judged; empty where the answer is not about one output."),
    Column("sample", "integer", "Which of the system's outputs for the prompt it was, from 0."),
    Column("label", "text", "The letter, or letters, on the annotator's screen."),
    Column("position", "integer", "The place at which the annotator met the item, or the question about systems."),
    Column("slot", "text", "The form field, unique within an assignment."),
    Column("value", "number", "The answer as a number, on the question's own scale, as it was given."),
    Column("chosen_system", "text", "The system whose output was chosen."),
    Column("choice", "text", "The option chosen, or the option that this row is about."),
    Column("part", "text", "The part of the output that this row is about."),
    Column("text", "text", "The answer in words, as typed."),
    Column("skip_reason", "text", "Why the annotator could not answer."),
    Column("is_erased", "boolean", "The answer was blanked at the annotator's wish."),
)
TIMES = (
    Column("claimed_at", "time", "When the batch was claimed."),
    Column("consented_at", "time", "When the annotator agreed to take part."),
    Column("started_at", "time", "When the annotator began."),
    Column("submitted_at", "time", "When the last page was sent."),
    Column("released_at", "time", "When the place was given back."),
    Column("released_reason", "text", "Why it was given back.", levels=_values(Assignment.Released)),
    Column("withdrawn_at", "time", "When the annotator withdrew."),
    Column(
        "seconds",
        "number",
        "From the start to the last page, by the server's clock; empty for imported answers.",
        "seconds",
    ),
    Column("active_seconds", "integer", "The sum over pages of the time in the foreground; a hint.", "seconds"),
    Column("pages", "integer", "Pages answered."),
    Column(
        "unseen",
        "text",
        "The images that the annotator could not see, by semicolons, each after its page: s2.read:i2.A. A page that asks "
        "nothing is named here alone.",
    ),
)
RESPONSES = WHO + PAGE + ANSWER
ASSIGNMENTS = WHO + TIMES


@dataclass(frozen=True, slots=True)
class Selection:
    """Whose rows are read. Rows of people who withdrew are left out unless asked for."""

    study: Study
    origins: tuple[str, ...] = COUNTED
    withdrawn: bool = False

    @property
    def assignments(self) -> QuerySet:
        rows = Assignment.objects.filter(study=self.study, origin__in=self.origins)
        return rows if self.withdrawn else rows.filter(withdrawn_at=None)

    @property
    def responses(self) -> QuerySet:
        rows = Response.objects.filter(assignment__study=self.study, assignment__origin__in=self.origins)
        return rows if self.withdrawn else rows.filter(assignment__withdrawn_at=None)


def pseudonym(study: Study, code: Any) -> str:
    """An annotator's name within one study. The shorter one in reports is its beginning."""
    return keyed("frame", str(study.code), str(code))[:16]


def assignment_name(code: str) -> str:
    """A name for an assignment: its code is what annotators come in with, and never leaves."""
    return keyed("assignment", code)[:16]


# Expressions. The two databases must give the same cells.


class _Value(Func):
    """A stored value as a number, or nothing where the cell holds something that is none."""

    def as_postgresql(self, compiler, connection, **context):
        return self.as_sql(compiler, connection, template="trim_scale(NULLIF(%(expressions)s, 'NaN'))", **context)

    def as_sqlite(self, compiler, connection, **context):
        template = (
            "CASE WHEN typeof(%(expressions)s) IN ('integer', 'real') AND abs(%(expressions)s) < "
            f"{LARGEST} THEN %(expressions)s END"
        )
        return self.as_sql(compiler, connection, template=template, **context)


class _Text(Func):
    """A text; nothing where it is empty."""

    template = "NULLIF(%(expressions)s, '')"


class _GuardedText(Func):
    """A text that no spreadsheet takes for a formula; nothing where it is empty."""

    # By the number of the first character: comparing texts a dozen times a row costs more than all the rest of it.
    cases = "".join(f" WHEN {ord(start)} THEN {APOSTROPHE} || %(expressions)s" for start in FORMULA_STARTS)
    template = f"CASE %(function)s(%(expressions)s){cases} WHEN 0 THEN NULL ELSE %(expressions)s END"
    function = "ascii"

    def as_sqlite(self, compiler, connection, **context):
        return self.as_sql(compiler, connection, function="unicode", **context)


class _Joined(Func):
    """Its parts one after the other; nothing where one is missing."""

    template = "(%(expressions)s)"
    arg_joiner = " || "


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
    if column.name == "is_erased":
        yes, no = (Value(1), Value(0)) if as_numbers else (Value(True), Value(False))
        return Case(When(erased_at__isnull=False, then=yes), default=no)
    path = F(_ANSWER_PATHS.get(column.name, column.name))
    if column.type != "text" or column.name in OWN_WORDS:
        return path
    return (_GuardedText if guarded else _Text)(path, output_field=TextField())


def answers(responses: QuerySet, *, guarded: bool, as_numbers: bool = True) -> QuerySet:
    """The part of the rows that the database makes: assignment, time, then the columns of ANSWER, in stable order."""
    cells = {f"c_{c.name}": _expression(c, guarded=guarded, as_numbers=as_numbers) for c in ANSWER}
    rows = responses.order_by("assignment_id", "pk").annotate(**cells)
    return rows.values_list("assignment_id", "received_at", *cells)


def compiled(queryset: QuerySet) -> tuple[str, Sequence[Any]]:
    """The queryset as SQL of the connection now in use."""
    return queryset.query.get_compiler(connection=connections["default"]).as_sql()


def raw_rows(queryset: QuerySet) -> list[tuple]:
    """What the database holds, past the converters of Django's fields."""
    try:
        sql, params = compiled(queryset)
    except EmptyResultSet:  # what can match nothing is not sent to the database
        return []
    connection = connections["default"]
    with forgiving(connection), connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall()


def moment(stored: Any) -> datetime | None:
    """A stored time, whatever the driver makes of it; None where it is none."""
    if isinstance(stored, str):
        try:
            stored = datetime.fromisoformat(stored)
        except ValueError:
            return None
    if not isinstance(stored, datetime):
        return None
    return stored if stored.tzinfo else stored.replace(tzinfo=UTC)


def written(time: datetime | None) -> str | None:
    """ISO 8601 in UTC, with as many digits as the database keeps."""
    if time is None:
        return None
    if time.utcoffset():
        time = time.astimezone(UTC)
    return f"{time.replace(tzinfo=None).isoformat()}Z"


# What assignments and pages say


@dataclass(slots=True)
class Seat:
    """An assignment of the selection: its cells, and its pages in the order in which they were recorded."""

    pk: int
    who: tuple
    times: tuple
    recorded: list[datetime]
    pages: list[tuple]

    def page_at(self, received: datetime | None) -> tuple:
        """The page on which an answer was given: the last one recorded when the answer was stored."""
        place = bisect_right(self.recorded, received) if received else 0
        page, layout, shown, active, unseen = self.pages[place - 1] if place else (None,) * 5
        return (page, layout, shown, written(received), active, unseen)


_SEAT = (
    "pk", "code", "annotator__code", "ordinal", "recruitment__channel", "batch__number", "batch__arm__name", "batch__arm__condition",
    "origin", "trust", "design__version", "is_late", "released_reason",
)  # fmt: skip
_SEAT_TIMES = ("claimed_at", "consented_at", "started_at", "submitted_at", "released_at", "withdrawn_at")


def _as_text(*names: str) -> list[Cast]:
    """Times as text: the driver's own objects cost ten times what reading the text does, and a damaged one raises."""
    return [Cast(name, TextField()) for name in names]


def seats_of(study: Study, assignments: QuerySet) -> list[Seat]:
    """The assignments with their pages and exclusions: three queries. They must be few (``ASSIGNMENTS_AT_ONCE``)."""
    rows = raw_rows(assignments.order_by("pk").values_list(*_SEAT, *_as_text(*_SEAT_TIMES)))
    ids = [row[0] for row in rows]
    visits: dict[int, list] = {pk: [] for pk in ids}
    recorded = PageVisit.objects.filter(assignment__in=ids, recorded_at__isnull=False).order_by("pk")
    for pk, key, layout, shown, at, active, unseen in raw_rows(
        recorded.values_list(
            "assignment_id", "key", "layout", *_as_text("shown_at", "recorded_at"), "active_seconds", "unseen"
        )
    ):
        if time := moment(at):
            seconds = active if isinstance(active, int) else None
            visits[pk].append((time, (key, layout or None, written(moment(shown)), seconds, unseen or None)))
    reasons: dict[int, list[str]] = {pk: [] for pk in ids}
    standing = Exclusion.objects.filter(assignment__in=ids, reverses=None).filter(
        ~Exists(Exclusion.objects.filter(reverses=OuterRef("pk")))
    )
    for pk, reason in raw_rows(standing.order_by("pk").values_list("assignment_id", "reason")):
        reasons[pk].append(reason)
    return [_seat(study, row, sorted(visits[row[0]], key=lambda visit: visit[0]), reasons[row[0]]) for row in rows]


def _seat(study: Study, row: tuple, visits: list, reasons: list[str]) -> Seat:
    pk, code, annotator, ordinal, channel, batch, arm, condition, origin, trust, version, is_late, reason, *rest = row
    claimed, consented, started, submitted, released, withdrawn = map(moment, rest)
    who = (
        assignment_name(code), None if withdrawn else pseudonym(study, _dashed(annotator)), ordinal, channel, batch, arm, condition,
        origin, trust, version, submitted is not None, bool(is_late), withdrawn is not None, ";".join(reasons) or None,
    )  # fmt: skip
    is_timed = submitted and started and origin != Assignment.Origin.IMPORTED
    seconds = round((submitted - started).total_seconds(), 3) if is_timed else None
    active = sum(visit[1][3] for visit in visits if isinstance(visit[1][3], int))
    times = (
        *(written(time) for time in (claimed, consented, started, submitted, released)), reason or None, written(withdrawn),
        seconds, active, len(visits), _unseen(visits),
    )  # fmt: skip
    return Seat(pk, who, times, [visit[0] for visit in visits], [visit[1] for visit in visits])


def _unseen(visits: list) -> str | None:
    """The images that were not seen, each with its page."""
    return ";".join(f"{page[0]}:{name}" for _, page in visits if page[4] for name in page[4].split(";")) or None


def _dashed(code: Any) -> str:
    """A uuid as text: SQLite keeps it without dashes."""
    text = str(code)
    return (
        text
        if "-" in text or len(text) != 32
        else "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
    )


def seats(selection: Selection) -> Iterator[list[Seat]]:
    """All assignments of the selection, some hundreds at a time, in stable order."""
    last = 0
    while True:
        following = selection.assignments.filter(pk__gt=last).order_by("pk")
        ids = list(following.values_list("pk", flat=True)[:ASSIGNMENTS_AT_ONCE])
        if not ids:
            return
        yield seats_of(selection.study, Assignment.objects.filter(pk__in=ids))
        last = ids[-1]


def answers_of(selection: Selection, some: Sequence[Seat]) -> QuerySet:
    """The answers of neighbouring assignments. By a range: databases read it along the index, not so a long list of keys."""
    return selection.responses.filter(assignment_id__gte=some[0].pk, assignment_id__lte=some[-1].pk)


# What cannot be read


def _unreadable() -> Q | Exists:
    if connections["default"].vendor == "postgresql":
        return Q(value=Value("NaN"))
    return Q(value__isnull=False, readable=None)


def problems_in(selection: Selection) -> tuple[int, list[dict[str, str]]]:
    """How many cells of the answers hold what no page could have stored, and the first of them."""
    damaged = selection.responses.annotate(readable=_Value(F("value"))).filter(_unreadable())
    n = damaged.aggregate(n=Count("pk"))["n"]
    if not n:
        return 0, []
    first = damaged.order_by("assignment_id", "pk").values_list("assignment__code", "slot")[:MAX_PROBLEMS]
    return n, [
        {"assignment": assignment_name(code), "slot": slot, "column": "value", "message": "is no number; left empty"}
        for code, slot in raw_rows(first)
    ]
