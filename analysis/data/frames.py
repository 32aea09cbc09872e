"""Read database rows into DataFrames. Each frame is one query. Numeric answers are rescaled to 0..1.

A damaged row never stops a frame: unreadable values become missing and are listed in ``FrameResult.problems``. Withdrawn
assignments are not included, and erased values are missing.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db.models import Count, F, OuterRef, Q, Subquery, Sum, TextField
from django.db.models.functions import Cast

from annotators.counting import Use, select
from annotators.models import Assignment, Response
from annotators.recruitment.channels import REGISTRY as CHANNELS
from studies.models import Item, Question, Section, Study
from studies.protocols.base.fields import ScaleSpec, parse_scale

from .flat_rows import annotator_pseudonym

if TYPE_CHECKING:
    from pandas import DataFrame

ORIGINS = tuple(Assignment.Origin.values)
# The column with the second sample beside annotators: the group of the row's prompt or, if it is alone, the prompt.
SECOND_SAMPLE = "second_sample"
# Scales with a minimum and a maximum. Other scales store 0 and 1.
RANGED_SCALE_KINDS = frozenset({"percent", "likert", "continuous", "number"})
# Frame columns and their field paths from Response.
RESPONSE_PATHS = {
    "assignment": "assignment_id",
    "annotator": "assignment__annotator__code",
    "ordinal": "assignment__ordinal",
    "batch": "assignment__batch__number",
    "arm": "assignment__batch__arm__name",
    "condition": "assignment__batch__arm__condition",
    "origin": "assignment__origin",
    "trust": "assignment__trust",
    "is_late": "assignment__is_late",
    "is_submitted": "assignment__submitted_at",
    "design_version": "assignment__design__version",
    "section": "question__section__position",
    "protocol": "question__section__protocol",
    "purpose": "question__section__purpose",
    "m": "question__section__m",
    "question": "question__key",
    "question_id": "question_id",
    "criterion": "question__criterion",
    "x": "question__x__name",
    "y": "question__y__name",
    "item_section": "item__section__position",
    "item": "item__number",
    "kind": "item__kind",
    "prompt": "item__prompt__key",
    "domain": "item__prompt__domain",
    SECOND_SAMPLE: "item__prompt__group",
    "system": "exposure__output__system__name",
    "sample": "exposure__output__sample",
    "chosen_system": "chosen__output__system__name",
    "label": "label",
    "position": "position",
    "slot": "slot",
    "part": "part",
    "value": "value_text",
    "choice": "choice",
    "text": "text",
    "skip_reason": "skip_reason",
    "received_at": "received_text",
    "is_erased": "erased_text",
    "id": "pk",
}
ORDER = ["annotator", "section", "prompt", "item", "system", "x", "y", "question", "slot", "ordinal", "id"]
ASSIGNMENT_PATHS = {
    "assignment": "pk",
    "annotator": "annotator__code",
    "batch": "batch__number",
    "arm": "batch__arm__name",
    "condition": "batch__arm__condition",
    "ordinal": "ordinal",
    "origin": "origin",
    "trust": "trust",
    "channel": "recruitment__channel",
    "design_version": "design__version",
    "claimed_at": "claimed_text",
    "started_at": "started_text",
    "submitted_at": "submitted_text",
    "released_at": "released_text",
    "released_reason": "released_reason",
    "is_late": "is_late",
    "queue_number": "queue_number",
    "pages": "pages",
    "unseen_pages": "unseen_pages",
    "active_seconds": "active_seconds",
    "first_asked": "first_asked",
}
MAX_PROBLEMS = 200


@dataclass(frozen=True, slots=True)
class FrameResult:
    """A frame with the first ``MAX_PROBLEMS`` problems and their total number.

    ``n_withdrawn``: assignments that are not included because the annotator withdrew.
    """

    rows: "DataFrame"
    problems: Sequence[dict[str, Any]] = ()
    n_problems: int = 0
    n_withdrawn: int = 0


def responses_frame(
    study: Study, origins: Iterable[str] = ("live",), purposes: Iterable[str] = tuple(Section.Purpose)
) -> FrameResult:
    """Return one row per answer: its subject, its value on 0..1, and its time. The order is the same on every database.

    ``asked_first`` says whether a directed question came before its reverse. The problems are rows with values that no page
    could have stored. Raises ValueError for an unknown origin.
    """
    import pandas as pd

    origins = validate_origins(origins)
    rows = (
        select(Use.ROWS, Response.objects.filter(assignment__study=study), origins)
        .filter(question__section__study=study, question__section__purpose__in=list(purposes))
        # Answers to test questions say something about annotators, and nothing about systems (analysis.data.rule_input).
        .exclude(item__kind=Item.Kind.TEST)
        # Read as text: SQLite can store any value, and a converter that raises would lose all other rows.
        .annotate(
            value_text=Cast("value", TextField()),
            received_text=Cast("received_at", TextField()),
            erased_text=Cast("erased_at", TextField()),
            submitted_text=Cast("assignment__submitted_at", TextField()),
        )
    )
    paths = ["submitted_text" if name == "is_submitted" else path for name, path in RESPONSE_PATHS.items()]
    frame = pd.DataFrame.from_records(list(rows.values_list(*paths)), columns=list(RESPONSE_PATHS))
    problems: list[dict[str, Any]] = []
    names = {code: annotator_pseudonym(study, code) for code in frame["annotator"].unique()}
    frame["annotator"] = frame["annotator"].map(names).astype("object")
    frame["is_submitted"] = frame["is_submitted"].notna()
    frame["is_erased"] = frame["is_erased"].notna()
    frame["is_late"] = frame["is_late"].astype(bool)
    frame["value"] = _values(frame, read_scales_by_question(study, problems), problems)
    frame["received_at"] = _parse_times(frame["received_at"], "received_at", frame["id"], problems)
    frame["item"] = [
        None if number is None or number != number else f"s{int(section)}.{int(number)}"
        for section, number in zip(frame["item_section"], frame["item"], strict=True)
    ]
    frame[SECOND_SAMPLE] = second_sample_labels(frame["prompt"], frame[SECOND_SAMPLE], study.group_noun)
    frame = frame.drop(columns=["item_section", "question_id"])
    frame = frame.sort_values(ORDER, kind="stable", na_position="first", ignore_index=True)
    frame["asked_first"] = _asked_first(frame)
    problems += _strays(study, origins)
    return FrameResult(frame, problems[:MAX_PROBLEMS], len(problems))


def second_sample_labels(
    prompts: Iterable[str | None], groups: Iterable[str | None], noun: str = ""
) -> list[str | None]:
    """Return the group of each prompt, or the prompt's own key if it is alone. No key of a prompt is the label of a group.

    ``noun``: what the study calls a group. It is part of the labels, so that results can name their groups.

    >>> second_sample_labels(["p1", "p2", None], ["report", "", None], "document")
    ['\\x1fdocument\\x1freport', 'p2', None]
    """
    start = f"\x1f{noun}\x1f"
    return [
        f"{start}{group}" if group and group == group else prompt for prompt, group in zip(prompts, groups, strict=True)
    ]


def is_group_label(label: object) -> bool:
    """Return whether a label of the second sample is a group, and not a prompt or a text that is alone."""
    return isinstance(label, str) and label.startswith("\x1f")


def assignments_frame(study: Study, origins: Iterable[str] = ("live",)) -> FrameResult:
    """Return one row per assignment: its state, times, durations, reason of release and first question.

    ``seconds``: from start to submission, missing for imported answers. ``active_seconds``: counted by the page's
    script, so approximate. Withdrawn assignments are not included, only counted.
    """
    import pandas as pd

    origins = validate_origins(origins)
    own = Assignment.objects.filter(study=study)
    first = Response.objects.filter(assignment=OuterRef("pk"), question__x__isnull=False).order_by("position", "pk")
    rows = select(Use.ROWS, own, origins).annotate(
        claimed_text=Cast("claimed_at", TextField()),
        started_text=Cast("started_at", TextField()),
        submitted_text=Cast("submitted_at", TextField()),
        released_text=Cast("released_at", TextField()),
        pages=Count("visits", filter=Q(visits__recorded_at__isnull=False)),
        unseen_pages=Count("visits", filter=Q(visits__recorded_at__isnull=False, visits__unseen__gt="")),
        active_seconds=Sum("visits__active_seconds"),
        first_asked=Subquery(first.values("question__key")[:1]),
    )
    frame = pd.DataFrame.from_records(
        list(rows.values_list(*ASSIGNMENT_PATHS.values())), columns=list(ASSIGNMENT_PATHS)
    )
    problems: list[dict[str, Any]] = []
    names = {code: annotator_pseudonym(study, code) for code in frame["annotator"].unique()}
    frame["annotator"] = frame["annotator"].map(names).astype("object")
    for name in ("claimed_at", "started_at", "submitted_at", "released_at"):
        frame[name] = _parse_times(frame[name], name, frame["assignment"], problems)
    frame["seconds"] = (frame["submitted_at"] - frame["started_at"]).dt.total_seconds()
    frame.loc[frame["origin"] == Assignment.Origin.IMPORTED, "seconds"] = math.nan
    frame["is_submitted"] = frame["submitted_at"].notna()
    frame["is_late"] = frame["is_late"].astype(bool)
    open_links = [slug for slug, channel in CHANNELS.items() if not channel.identifies_people]
    frame["is_identified"] = ~frame["channel"].isin(open_links)
    frame = frame.sort_values(["annotator", "batch", "assignment"], kind="stable", ignore_index=True)
    n_withdrawn = select(Use.WITHDRAWN, own, origins).count()
    return FrameResult(frame, problems[:MAX_PROBLEMS], len(problems), n_withdrawn)


def frame_sha256(frame: "DataFrame") -> str:
    """Return the hash of a frame's sorted canonical CSV, without database ids and without the times of imported answers.

    A file without times gives its answers the time of the import, so the same file would have another hash at each import. The hash
    of the design covers the groups of prompts.
    """
    from analysis.stats.seeds import unordered_rows_sha256

    hashed = frame.drop(columns=[name for name in ("assignment", "id", SECOND_SAMPLE) if name in frame])
    if {"origin", "received_at"} <= set(hashed):
        hashed["received_at"] = hashed["received_at"].mask(hashed["origin"] == Assignment.Origin.IMPORTED)
    hashed = hashed[sorted(hashed.columns)]
    columns = [_plain_column(hashed[name]) for name in hashed.columns]
    return unordered_rows_sha256([list(hashed.columns), *(list(row) for row in zip(*columns, strict=True))])


def validate_origins(origins: Iterable[str]) -> list[str]:
    """Return the origins in the order of the model. Raises ValueError, which names an unknown one."""
    chosen = set(origins)
    if unknown := chosen - set(ORIGINS):
        raise ValueError(f"origins: {sorted(unknown)[0]!r} is not an origin. Use {', '.join(ORIGINS)}.")
    return [origin for origin in ORIGINS if origin in chosen]


def read_scales_by_question(study: Study, problems: list[dict[str, Any]] | None = None) -> dict[int, ScaleSpec]:
    """Return the scale of every question by id. Unreadable scales are added to ``problems``."""
    scales = {}
    for pk, key, stored in Question.objects.filter(section__study=study).values_list(
        "pk", "key", Cast("scale", TextField())
    ):
        try:
            scales[pk] = parse_scale(json.loads(stored))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            if problems is not None:
                problems.append({"row": f"question {key}", "column": "scale", "text": f"unreadable: {error}"[:200]})
    return scales


def _values(frame: "DataFrame", scales: dict[int, ScaleSpec], problems: list[dict[str, Any]]) -> list[float]:
    """Return the stored values rescaled to 0..1. NaN if there is no value, or if it is outside its scale."""
    ends = {
        pk: (float(scale.minimum), float(scale.maximum)) if scale.kind in RANGED_SCALE_KINDS else (0.0, 1.0)
        for pk, scale in scales.items()
    }
    values = []
    for row, question, stored in zip(frame["id"], frame["question_id"], frame["value"], strict=True):
        if stored is None or stored != stored:
            values.append(math.nan)
            continue
        low, high = ends.get(question, (math.nan, math.nan))
        try:
            number = float(stored)
        except ValueError:
            number = math.nan
        if low <= number <= high:
            values.append((number - low) / (high - low))
        else:
            values.append(math.nan)
            reason = "its scale is unreadable" if low != low else f"outside {low:g}..{high:g}"
            problems.append({"row": f"response {row}", "column": "value", "text": f"{str(stored)[:40]!r}: {reason}"})
    return values


def _parse_times(column: Iterable[Any], name: str, rows: Iterable[Any], problems: list[dict[str, Any]]) -> Any:
    import pandas as pd

    parsed: list[datetime | None] = []
    for row, stored in zip(rows, column, strict=True):
        moment = None
        if stored is not None and stored == stored:
            try:
                moment = datetime.fromisoformat(str(stored))
            except ValueError:
                problems.append({"row": f"row {row}", "column": name, "text": f"{str(stored)[:40]!r} is not a time"})
        parsed.append(moment)
    return pd.to_datetime(
        pd.Series(parsed, dtype="object", index=getattr(column, "index", None)), utc=True, errors="coerce"
    )


def _asked_first(frame: "DataFrame") -> list[bool | None]:
    """Return whether each directed question came before its reverse for a person, or None if it has no reverse."""
    places: dict[tuple, float] = {}
    keys = []
    columns = (frame[name] for name in ("assignment", "section", "criterion", "x", "y", "position"))
    for assignment, section, criterion, x, y, position in zip(*columns, strict=True):
        is_directed = isinstance(x, str) and isinstance(y, str) and position == position and position is not None
        keys.append((assignment, section, criterion, x, y) if is_directed else None)
        if is_directed:
            places[assignment, section, criterion, x, y] = position
    first: list[bool | None] = []
    for key in keys:
        reverse = None if key is None else places.get((*key[:3], key[4], key[3]))
        first.append(None if key is None or reverse is None else places[key] < reverse)
    return first


def _strays(study: Study, origins: Sequence[str]) -> list[dict[str, Any]]:
    """Return answers about questions or items of another study. Pages never store such answers."""
    questions = Question.objects.filter(section__study=study)
    strays = (
        select(Use.RECORD, Response.objects.filter(assignment__study=study), origins)
        .filter(~Q(question__in=questions) | (Q(item__isnull=False) & ~Q(item__study=F("assignment__study"))))
        .order_by("pk")
        .values_list("pk", "question_id")[:MAX_PROBLEMS]
    )
    text = "the question or item belongs to another study; not used"
    return [{"row": f"response {pk}", "column": "question", "text": f"{question}: {text}"} for pk, question in strays]


def _plain_column(column: Any) -> list[Any]:
    """Return values in canonical form: '' if missing, times as ISO 8601 in UTC."""
    if str(column.dtype).startswith("datetime64"):
        return ["" if value != value else value.isoformat() for value in column]
    return ["" if value is None or value != value else value for value in column.tolist()]
