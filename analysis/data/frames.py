"""Read database rows into DataFrames. Numeric answers are rescaled to 0..1, and texts that repeat are categories.

A damaged row never stops a frame: unreadable values become missing and are listed in ``FrameResult.problems``. Withdrawn
assignments are not included, and erased values are missing.
"""

import json
import math
import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import count, islice
from typing import TYPE_CHECKING, Any

from django.db.models import Count, F, Model, OuterRef, Q, QuerySet, Subquery, Sum, TextField
from django.db.models.functions import Cast

from annotators.counting import Use, select
from annotators.models import Assignment, Response
from annotators.recruitment.channels import REGISTRY as CHANNELS
from studies.models import Exposure, Item, Question, Section, Study
from studies.protocols.base.fields import ScaleSpec, parse_scale

from .flat_rows import annotator_pseudonym

if TYPE_CHECKING:
    import numpy as np
    from pandas import DataFrame, Index, Series

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
    "is_submitted": "assignment__submitted_text",
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
# What an answer refers to, with the path from there to the study.
REFERRED: dict[str, tuple[type[Model], str]] = {
    "assignment": (Assignment, "study"),
    "question": (Question, "section__study"),
    "item": (Item, "study"),
    "exposure": (Exposure, "item__study"),
    "chosen": (Exposure, "item__study"),
}
ROWS_AT_ONCE = 20_000
# Columns of texts that can be compared with each other.
COMPARABLE = (("system", "chosen_system", "x", "y"), ("prompt", SECOND_SAMPLE))
TEXTS = frozenset(
    {
        "annotator", "arm", "condition", "origin", "trust", "protocol", "purpose", "question", "criterion", "x", "y", "item", "kind",
        "prompt", "domain", SECOND_SAMPLE, "system", "chosen_system", "label", "slot", "part", "value", "choice", "text", "skip_reason",
    }
)  # fmt: skip
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
ITEM_SLOT = re.compile(r"(s\d+)\.q\d+\.i(\d+)")


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
        )
    )
    frame = _answers(study, rows)
    for name in ("is_submitted", "is_erased"):
        frame[name] = frame[name].notna()
    frame["is_late"] = frame["is_late"].astype(bool)
    problems: list[dict[str, Any]] = []
    scales = read_scales_by_question(study, problems)
    frame["value"] = _values(frame, scales, problems)
    # A chance and a size about one pair are answers to different questions: only chances are found by their systems.
    is_size = frame["question_id"].isin([pk for pk, scale in scales.items() if scale.kind != "percent"])
    if (is_size & frame["x"].notna()).any():
        frame["x"], frame["y"] = frame["x"].mask(is_size), frame["y"].mask(is_size)
    frame["received_at"] = _parse_times(frame["received_at"], "received_at", frame["id"], problems)
    frame = frame.drop(columns=["item_section", "question_id"])
    frame = frame.sort_values(ORDER, kind="stable", na_position="first", ignore_index=True)
    frame["asked_first"] = _asked_first(frame)
    problems += _strays(study, origins)
    return FrameResult(frame, problems[:MAX_PROBLEMS], len(problems))


def _answers(study: Study, rows: QuerySet[Response]) -> "DataFrame":
    """Return the columns of ``RESPONSE_PATHS``.

    A million answers refer to few people, questions and outputs, and repeat few texts. So an answer is read with its keys, what they
    refer to is read once, and each column is made from its distinct values.
    """
    import numpy as np
    import pandas as pd

    keys = {name: f"{name}_id" for name in REFERRED}
    read = list(dict.fromkeys([*keys.values(), *(path for path in RESPONSE_PATHS.values() if "__" not in path)]))
    read.remove("pk")
    # A new value gets the next number.
    numbers = {path: defaultdict[Any, int](count().__next__) for path in read}
    codes, pks = {path: array("i") for path in read}, array("q")
    answers = rows.values_list("pk", *read).iterator(chunk_size=ROWS_AT_ONCE)
    while chunk := list(islice(answers, ROWS_AT_ONCE)):
        first, *columns = zip(*chunk, strict=True)
        pks.extend(first)
        for path, values in zip(read, columns, strict=True):
            codes[path].extend(map(numbers[path].__getitem__, values))
    referred = {name: _referred(study, name, numbers[key]) for name, key in keys.items()}
    frame: dict[str, Any] = {"id": np.array(pks, dtype=np.int64)}
    for column, path in RESPONSE_PATHS.items():
        if path == "pk":
            continue
        name, _, rest = path.partition("__")
        distinct = pd.Series(referred[name][rest] if rest else list(numbers[path]))
        if column in TEXTS:
            distinct = distinct.astype("category")
        frame[column] = distinct.array.take(np.array(codes[keys[name] if rest else path], dtype=np.int64))
    found = pd.DataFrame(frame, columns=list(RESPONSE_PATHS))
    return found.astype(
        {
            name: pd.CategoricalDtype(sorted({label for one in names for label in found[one].cat.categories}))
            for names in COMPARABLE
            for name in names
        }
    )


def _referred(study: Study, name: str, keys: Iterable[int | None]) -> dict[str, list[Any]]:
    """Return what answers with these keys refer to: one list for each path, with None for the key None."""
    model, path_to_study = REFERRED[name]
    paths = [path.removeprefix(f"{name}__") for path in RESPONSE_PATHS.values() if path.startswith(f"{name}__")]
    rows = model._default_manager.all()
    if model is Assignment:
        rows = rows.annotate(submitted_text=Cast("submitted_at", TextField()))
    found = {row[0]: row[1:] for row in rows.filter(**{path_to_study: study}).values_list("pk", *paths)}
    # A damaged answer can refer to another study; see ``_strays``.
    if others := set(keys) - found.keys() - {None}:
        found |= {row[0]: row[1:] for row in rows.filter(pk__in=others).values_list("pk", *paths)}
    cells = [found.get(key, (None,) * len(paths)) for key in keys]
    columns = {path: [row[place] for row in cells] for place, path in enumerate(paths)}
    if name == "assignment":
        pseudonym = cache(lambda code: annotator_pseudonym(study, code))
        columns["annotator__code"] = [pseudonym(code) for code in columns["annotator__code"]]
    if name == "item":
        places = zip(columns["section__position"], columns["number"], strict=True)
        columns["number"] = [None if number is None else f"s{section}.{number}" for section, number in places]
        groups = second_sample_labels(columns["prompt__key"], columns["prompt__group"], study.group_noun)
        columns["prompt__group"] = groups
    return columns


def page_of_slot(slot: str) -> str:
    """Return the key of the page that asks about one item, from the slot of an answer, or '' if it is about none.

    >>> page_of_slot("s1.q2.i3"), page_of_slot("s1.q2")
    ('s1.p3', '')
    """
    match = ITEM_SLOT.match(slot)
    return f"{match[1]}.p{match[2]}" if match else ""


def rows_where(frame: "DataFrame", mask: "Series") -> "DataFrame":
    """Return the rows in a mask. If these are all rows, no memory is taken for another copy."""
    return frame if mask.all() else frame[mask]


def is_counted(frame: "DataFrame") -> "Series":
    """Return the mask of answers to live questions about no item, or about a live one: its truth is never shown."""
    return (frame["purpose"] == "live") & (frame["kind"].isna() | (frame["kind"] == "live"))


def cluster_labels(labels: "Series | Index") -> Any:
    """Return labels as the numbers of their categories, which are sorted, so that no statistic sorts or compares texts.

    Texts that are no categories remain texts, and so do labels of which some are missing.
    """
    import numpy as np
    import pandas as pd

    if isinstance(labels.dtype, pd.CategoricalDtype) and not labels.hasnans:
        return labels.array.codes.astype(np.int64)
    return labels.to_numpy(object)


def with_plain_texts(frame: "DataFrame") -> "DataFrame":
    """Return a frame whose categories are texts, for code that makes other texts from them."""
    return frame.astype(dict.fromkeys(frame.select_dtypes("category").columns, "str"))


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
    names = sorted(hashed.columns)
    return unordered_rows_sha256(names, (_plain_column(hashed[name]) for name in names))


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


def _values(frame: "DataFrame", scales: dict[int, ScaleSpec], problems: list[dict[str, Any]]) -> "np.ndarray":
    """Return the stored values rescaled to 0..1. NaN if there is no value, or if it is outside its scale."""
    import numpy as np

    ends = {
        pk: (float(scale.minimum), float(scale.maximum)) if scale.kind in RANGED_SCALE_KINDS else (0.0, 1.0)
        for pk, scale in scales.items()
    }
    stored = frame["value"].cat
    numbers = np.array([*map(_number, stored.categories), math.nan])[stored.codes]
    low, high = (
        frame["question_id"].map({pk: pair[end] for pk, pair in ends.items()}).to_numpy(float) for end in (0, 1)
    )
    with np.errstate(invalid="ignore"):
        is_inside = (low <= numbers) & (numbers <= high)
        values = np.where(is_inside, (numbers - low) / (high - low), math.nan)
    for row in np.flatnonzero(frame["value"].notna() & ~is_inside):
        reason = "its scale is unreadable" if math.isnan(low[row]) else f"outside {low[row]:g}..{high[row]:g}"
        text = f"{frame['value'].iloc[row][:40]!r}: {reason}"
        problems.append({"row": f"response {frame['id'].iloc[row]}", "column": "value", "text": text})
    return values


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _parse_times(column: "Series", name: str, rows: "Series", problems: list[dict[str, Any]]) -> Any:
    import numpy as np
    import pandas as pd

    codes, distinct = pd.factorize(column)
    moments: list[datetime | None] = []
    damaged = set()
    for number, stored in enumerate(distinct):
        try:
            moments.append(datetime.fromisoformat(str(stored)))
        except ValueError:
            moments.append(None)
            damaged.add(number)
    for row in np.flatnonzero(np.isin(codes, list(damaged))):
        text = f"{str(distinct[codes[row]])[:40]!r} is not a time"
        problems.append({"row": f"row {rows.iloc[row]}", "column": name, "text": text})
    # The last one is for the code -1, of missing times.
    parsed = pd.to_datetime(pd.Series([*moments, None], dtype="object"), utc=True, errors="coerce")
    return parsed.array[codes]


def _asked_first(frame: "DataFrame") -> list[bool | None]:
    """Return whether each directed question came before its reverse for a person, or None if it has no reverse."""
    directed = frame[frame["x"].notna() & frame["y"].notna() & frame["position"].notna()]
    columns = (directed[name] for name in ("assignment", "section", "criterion", "x", "y"))
    keys = list(zip(*columns, strict=True))
    places = dict(zip(keys, directed["position"], strict=True))
    first: list[bool | None] = [None] * len(frame)
    for row, (*about, x, y) in zip(directed.index, keys, strict=True):
        if (reverse := places.get((*about, y, x))) is not None:
            first[row] = places[*about, x, y] < reverse
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


def _plain_column(column: "Series") -> tuple["np.ndarray", list[Any]]:
    """Return the number of each row's value, and the distinct values in canonical form: '' if missing, times as ISO 8601 in UTC."""
    import pandas as pd

    codes, distinct = pd.factorize(column)
    is_time = str(column.dtype).startswith("datetime64")
    return codes, [*(value.isoformat() if is_time else value for value in distinct.tolist()), ""]
