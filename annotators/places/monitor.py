"""Progress of a running study: counts, times and comments.

The number of queries does not depend on the number of annotators.

Nothing here reveals a result: answers to questions about systems are not read.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from statistics import median
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, F, Max, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Now, TruncHour
from django.utils import timezone

from annotators.counting import Use, select
from annotators.models import Assignment, Inquiry, PageVisit, Response
from studies.figures import Axis, Frame, at, path_of
from studies.models import FIRST_TEST_NUMBER, Batch, Item, Job, Placement, Section, Study, audit
from studies.protocols import REGISTRY

from .exclusions import annotate_is_excluded
from .places import sections_that_may_need_top_ups

# The median needs the times of at least the first number of people, and uses the latest of at most the second number.
USUAL_TIME_MIN_PEOPLE, USUAL_TIME_MAX_PEOPLE = 10, 200


@dataclass(frozen=True, slots=True)
class StudyProgress:
    submitted: int
    last_submitted_at: datetime | None
    robots: int = 0
    imported: int = 0
    in_progress: int = 0


def progress_by_study(study_ids: Iterable[int], **signal_kwargs: object) -> dict[int, StudyProgress]:
    """Return the progress of each study.

    It holds the annotators who submitted in time, the time of the last submission, and the robots that submitted. It
    also holds the imported assignments, and the annotators who hold a place and have not submitted. If the target
    counts kept annotators, those who were replaced are not counted.
    """
    replaced = Q(study__target_kind=Study.Target.KEPT, replaced_at__isnull=False)
    live, robots, imported = (Q(origin=origin) for origin in ("live", "robot", "imported"))
    rows = (
        Assignment.objects.filter(study__in=list(study_ids))
        .exclude(origin=Assignment.Origin.TEST)
        .order_by()
        .values("study")
        .annotate(
            submitted=Count("pk", filter=Q(submitted_at__isnull=False, is_late=False) & ~replaced & live),
            last=Max("submitted_at", filter=live),
            robots=Count("pk", filter=Q(submitted_at__isnull=False) & robots),
            imported=Count("pk", filter=Q(submitted_at__isnull=False) & imported),
            inside=Count("pk", filter=Q(submitted_at=None, released_at=None) & live),
        )
    )
    return {
        row["study"]: StudyProgress(row["submitted"], row["last"], row["robots"], row["imported"], row["inside"])
        for row in rows
    }


def _filter_live(assignments: QuerySet[Assignment]) -> QuerySet[Assignment]:
    return assignments.filter(origin=Assignment.Origin.LIVE)


@dataclass(frozen=True, slots=True)
class PlaceCounts:
    """Counts of places.

    ``free``: not held, not even by a robot; ``reserved``: held, no page shown yet; ``started``: page shown.
    """

    name: str
    wanted: int = 0
    free: int = 0
    reserved: int = 0
    started: int = 0
    submitted: int = 0
    excluded: int = 0
    replaced: int = 0
    late: int = 0
    released: tuple[tuple[str, int], ...] = ()

    @property
    def held_by_robots(self) -> int:
        return self.wanted - self.free - self.reserved - self.started - self.submitted


_COUNTS = {
    "reserved": Count("pk", filter=Q(released_at=None, submitted_at=None, started_at=None)),
    "started": Count("pk", filter=Q(released_at=None, submitted_at=None, started_at__isnull=False)),
    "submitted": Count("pk", filter=Q(released_at=None, submitted_at__isnull=False)),
    "excluded": Count("pk", filter=Q(is_excluded=True)),
    "replaced": Count("pk", filter=Q(released_at=None, replaced_at__isnull=False)),
    "late": Count("pk", filter=Q(is_late=True)),
}


def count_claims_by_state(study: Study) -> dict[str, int]:
    """Return how many live assignments hold a place, of them started or submitted, and how many were released or withdrawn."""
    holds_place = Q(released_at=None)
    return _filter_live(Assignment.objects.filter(study=study)).aggregate(
        claimed=Count("pk", filter=holds_place),
        started=Count("pk", filter=holds_place & Q(started_at__isnull=False)),
        submitted=Count("pk", filter=holds_place & Q(submitted_at__isnull=False)),
        released=Count("pk", filter=~holds_place),
        withdrawn=Count("pk", filter=Q(withdrawn_at__isnull=False)),
    )


def count_places_by_arm(study: Study) -> tuple[PlaceCounts, list[PlaceCounts]]:
    """Return the counts of all open places of the study, and those of each arm."""
    assignments = annotate_is_excluded(_filter_live(Assignment.objects.filter(study=study)))
    by_arm = assignments.order_by().values("batch__arm").annotate(**_COUNTS)
    counts: dict[Any, dict[str, Any]] = {}
    for arm_row in by_arm:
        columns: dict[str, Any] = {**arm_row}
        counts[columns.pop("batch__arm")] = columns
    released: dict[Any, list[tuple[str, int]]] = {}
    released_rows = (
        assignments.filter(released_at__isnull=False)
        .order_by()
        .values("batch__arm", "released_reason")
        .annotate(n=Count("pk"))
    )
    for row in released_rows:
        reason = Assignment.Released(row["released_reason"]).label if row["released_reason"] else "?"
        released.setdefault(row["batch__arm"], []).append((str(reason).lower(), row["n"]))
    open_batches = study.batches.filter(number__lt=min(study.open_to, FIRST_TEST_NUMBER)).order_by().values_list("arm")
    open_counts = {arm: (n, n - taken) for arm, n, taken in open_batches.annotate(Sum("wanted"), Sum("claimed"))}
    arms = [
        PlaceCounts(
            arm.name,
            *open_counts.get(arm.pk, (0, 0)),
            **counts.get(arm.pk, {}),
            released=tuple(sorted(released.get(arm.pk, ()))),
        )
        for arm in study.arms.all()
    ]
    total: dict[str, int] = {}
    for counted in counts.values():
        for name, n in counted.items():
            total[name] = total.get(name, 0) + n
    all_released: dict[str, int] = {}
    for rows in released.values():
        for reason, n in rows:
            all_released[reason] = all_released.get(reason, 0) + n
    n_places, free = (sum(column) for column in zip(*open_counts.values(), strict=True)) if open_counts else (0, 0)
    return PlaceCounts("all", n_places, free, **total, released=tuple(sorted(all_released.items()))), arms


HOUR, DAY, WEEK = timedelta(hours=1), timedelta(days=1), timedelta(weeks=1)
MAX_HOURS, MAX_DAYS = 48, 120


@dataclass(frozen=True, slots=True)
class PeriodCounts:
    """The places that were claimed and the work that was submitted in one period; ``total`` is the work until its end."""

    start: datetime
    claimed: int
    submitted: int
    total: int


@dataclass(frozen=True, slots=True)
class PeopleOverTime:
    """The periods in which anything happened. They are hours in the first two days, later days, and weeks after four months."""

    step: timedelta
    start: datetime
    n_periods: int
    periods: tuple[PeriodCounts, ...]


def count_people_over_time(study: Study) -> PeopleOverTime | None:
    """Return how many live annotators claimed a place and submitted, by time (UTC), up to now if the study runs.

    Submitted work counts as it counts for the target. None: nobody has come yet.
    """
    live = select(Use.RECORD, study.assignments.exclude(batch=None), [Assignment.Origin.LIVE]).order_by()
    done = select(Use.TARGET if study.target_kind == Study.Target.KEPT else Use.HOLDING, live)
    claimed = dict(live.values_list(TruncHour("claimed_at")).annotate(n=Count("pk")))
    submitted = dict(done.values_list(TruncHour("submitted_at")).annotate(n=Count("pk")))
    if not claimed:
        return None
    hours = sorted({*claimed, *submitted})
    start, end = hours[0], max(hours[-1], timezone.now()) if study.state in Study.RUNNING else hours[-1]
    step = HOUR if end - start < MAX_HOURS * HOUR else DAY
    if step == DAY:
        start = start.replace(hour=0)
        step = DAY if end - start < MAX_DAYS * DAY else WEEK
    arrived: dict[int, int] = defaultdict(int)
    finished: dict[int, int] = defaultdict(int)
    for hour in hours:
        arrived[(hour - start) // step] += claimed.get(hour, 0)
        finished[(hour - start) // step] += submitted.get(hour, 0)
    periods = (
        PeriodCounts(start + index * step, arrived[index], finished[index], total)
        for index, total in zip(finished, accumulate(finished.values()), strict=True)
    )
    return PeopleOverTime(step, start, (end - start) // step + 1, tuple(periods))


def count_leavers_by_last_page(study: Study) -> tuple[int, dict[str, dict[str, int]]]:
    """Return how many live annotators started, and those of them who left, by the last page that they sent and by the reason.

    The key of the page is '' for who sent none.
    """
    started = _filter_live(study.assignments.filter(started_at__isnull=False)).order_by()
    sent = PageVisit.objects.filter(assignment=OuterRef("pk"), recorded_at__isnull=False)
    last_key = Subquery(sent.order_by("-recorded_at", "-pk").values("key")[:1])
    left = started.filter(released_at__isnull=False, submitted_at=None).annotate(last_key=last_key)
    counts: dict[str, dict[str, int]] = {}
    for key, reason, n in left.values_list("last_key", "released_reason").annotate(n=Count("pk")):
        counts.setdefault(key or "", {})[str(Assignment.Released(reason).label).lower()] = n
    return started.count(), counts


def seconds_by_page(study: Study) -> list[dict[str, float]]:
    """Return the seconds that each of the latest live annotators who submitted in time used on each page, by page key.

    A page counts while it is visible and used. If a browser counted nothing, the time from showing to sending counts.
    """
    done = select(Use.PROGRESS, study.assignments.all(), [Assignment.Origin.LIVE]).order_by("-submitted_at")
    latest = list(done.values_list("pk", flat=True)[:USUAL_TIME_MAX_PEOPLE])
    return list(seconds_of_visits(PageVisit.objects.filter(assignment__in=latest)).values())


def seconds_of_visits(visits: QuerySet[PageVisit]) -> dict[int, dict[str, float]]:
    """Return the seconds of each recorded page by assignment and page key, in two queries; see ``seconds_by_page``."""
    sent = visits.filter(recorded_at__isnull=False).order_by("pk")
    people: dict[int, dict[str, float]] = defaultdict(dict)
    for pk, key, seconds in sent.values_list("assignment", "key", "active_seconds"):
        people[pk][key] = float(seconds)
    uncounted: dict[int, dict[str, float]] = {pk: {} for pk, pages in people.items() if not any(pages.values())}
    people |= uncounted
    counted = PageVisit.objects.filter(
        assignment=OuterRef("assignment"), recorded_at__isnull=False, active_seconds__gt=0
    )
    shown = sent.filter(~Exists(counted), shown_at__isnull=False)
    for pk, key, start, end in shown.values_list("assignment", "key", "shown_at", "recorded_at"):
        if pk in uncounted:
            people[pk][key] = (end - start).total_seconds()
    return dict(people)


@dataclass(frozen=True, slots=True)
class MedianTimes:
    """Median minutes from the first page to the last, and median minutes of activity on visible pages."""

    n: int
    minutes: float | None
    active_minutes: float | None


def median_working_times(study: Study) -> MedianTimes:
    """Return the median times of the annotators who submitted in time."""
    submitted = _filter_live(
        Assignment.objects.filter(study=study, submitted_at__isnull=False, is_late=False, started_at__isnull=False)
    )
    times = submitted.order_by().annotate(active=Sum("visits__active_seconds"))
    rows = list(times.values_list("started_at", "submitted_at", "active"))
    minutes = [(end - start).total_seconds() / 60 for start, end, _ in rows if start and end]
    active = [seconds / 60 for _, _, seconds in rows if seconds]
    return MedianTimes(len(rows), median(minutes) if minutes else None, median(active) if active else None)


def count_devices(study: Study) -> list[tuple[str, int]]:
    """Return how many places annotators took on each class of device, the most frequent first. '' is unknown."""
    taken = _filter_live(Assignment.objects.filter(study=study, batch__isnull=False)).order_by()
    return list(taken.values_list("device").annotate(n=Count("pk")).order_by("-n", "device"))


def update_median_working_time(study: Study) -> bool:
    """Store the median time of the latest submissions if there are enough. Return whether it changed."""
    submitted = _filter_live(
        Assignment.objects.filter(study=study, submitted_at__isnull=False, is_late=False, started_at__isnull=False)
    )
    times = list(submitted.order_by("-submitted_at").values_list("started_at", "submitted_at")[:USUAL_TIME_MAX_PEOPLE])
    if len(times) < USUAL_TIME_MIN_PEOPLE:
        return False
    usual = round(median((end - start).total_seconds() for start, end in times if start and end))
    return bool(Study.objects.filter(pk=study.pk).exclude(usual_seconds=usual).update(usual_seconds=usual))


def latest_survey_comments(study: Study, limit: int = 500) -> QuerySet[Response]:
    """Return the written answers to survey questions, newest first. They are about no system."""
    return (
        Response.objects.filter(assignment__study=study, item=None, question__x=None)
        .exclude(text="")
        .exclude(assignment__origin=Assignment.Origin.TEST)
        .select_related("assignment", "question")
        .order_by("-pk")[:limit]
    )


def inquiries_unhandled_first(study: Study) -> QuerySet[Inquiry]:
    """Return annotators' reports and questions, unhandled ones first."""
    from django.db.models import F

    return (
        Inquiry.objects.filter(assignment__study=study)
        .select_related("assignment", "answered_by")
        .order_by(F("handled_at").asc(nulls_first=True), "-pk")
    )


def count_recorded_pages(assignments: Collection[Assignment]) -> dict[int, int]:
    """Return the number of sent pages by assignment id."""
    recorded_visits = PageVisit.objects.filter(assignment__in=assignments, recorded_at__isnull=False).order_by()
    counts = dict(recorded_visits.values_list("assignment").annotate(n=Count("pk")))
    return {assignment.pk: counts.get(assignment.pk, 0) for assignment in assignments}


# The figure of a study's stopping rule: evidence after each unit and threshold, without the direction of the result.


WIDTH, HEIGHT = 420, 200
LEFT, RIGHT, TOP, BOTTOM = 44, 410, 16, 152
AXIS_LABELS = {
    "anytime": "Evidence (e-process, powers of ten)",
    "first": "Distance from one half, in widths of Hoeffding's bound",
}


@dataclass(frozen=True, slots=True)
class StoppingFigure:
    """The figure of one comparison in pixels, with its texts."""

    name: str
    axis_label: str
    unit: str
    n: int
    now: float | None
    threshold: float
    is_decided: bool
    remaining: Mapping[str, Any] | None
    frame: Frame
    path: str
    line: str
    running: "RunningShareFigure | None"


@dataclass(frozen=True, slots=True)
class RunningShareFigure:
    """The share of choices for x after each unit, with the bounds of the rule, once outcomes are shown."""

    n: int
    share: float
    low: float
    high: float
    frame: Frame
    path: str
    bounds: str
    half: str
    decision: str


def latest_stopping_figures(study: Study) -> tuple[Job | None, list[StoppingFigure]]:
    """Return the last finished check of the study's stopping rule and its figures; (None, []) before the first check."""
    job = study.jobs.filter(kind="stopping_check", state=Job.State.DONE).order_by("-pk").first()
    return job, [_figure(result) for result in (job.result or {}).get("looks", [])] if job else []


def _figure(result: Mapping[str, Any]) -> StoppingFigure:
    points = result["points"]
    upwards = Axis([0.0, result["threshold"] * 1.15, *(value for _, value in points)], BOTTOM, TOP)
    across = Axis([0.0, max(1, result["n"])], LEFT, RIGHT, least_step=1)
    start = [(0, 0.0), *points] if points else []
    return StoppingFigure(
        name=result["name"],
        axis_label=AXIS_LABELS.get(result["rule"], ""),
        unit=result["unit"],
        n=result["n"],
        now=points[-1][1] if points else None,
        threshold=result["threshold"],
        is_decided=result["is_decided"],
        remaining=result["remaining"],
        frame=Frame(WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, across.ticks, upwards.ticks, f"{result['unit']}s"),
        path=path_of([(across.place(n), upwards.place(value)) for n, value in start]),
        line=at(upwards.place(result["threshold"])),
        running=_running_share_figure(result) if result.get("running") else None,
    )


def _running_share_figure(result: Mapping[str, Any]) -> RunningShareFigure:
    points = result["running"]
    upwards, across = Axis([0.0, 1.0], BOTTOM, TOP), Axis([0.0, max(1, result["n"])], LEFT, RIGHT, least_step=1)
    places = [(across.place(n), *(upwards.place(value) for value in values)) for n, *values in points]
    n, share, low, high = points[-1]
    return RunningShareFigure(
        n=n,
        share=share,
        low=low,
        high=high,
        frame=Frame(WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, across.ticks, upwards.ticks, f"{result['unit']}s"),
        path=path_of([(x, y) for x, y, _, _ in places]),
        bounds=path_of([(x, y) for x, _, y, _ in places] + [(x, y) for x, _, _, y in reversed(places)]),
        half=at(upwards.place(0.5)),
        decision=at(across.place(result["stopped_at"])) if result["stopped_at"] else "",
    )


# Settle items whose labels agree.
#
# Others go to one more annotator in a top-up batch, if the labelling strategy says so.
#
# Only this module writes ``Item.settled_at`` and creates batches of origin ``top_up``. It locks the study, and it
# counts places, not answers. An item with an open place for another label gets no second one, so no item gets a
# fourth label.


def settle_or_top_up_items() -> int:
    """Settle the items of all running studies. Return the number of items that go to one more annotator."""
    return sum(settle_or_top_up_study_items(study) for study in Study.objects.filter(state__in=Study.RUNNING))


def settle_or_top_up_study_items(study: Study) -> int:
    """Mark decided items, and put undecided items into top-up batches.

    A top-up batch is made when it is full, or when no other place is open. Return the number of items in new batches.
    """
    if not sections_that_may_need_top_ups(study):
        return 0
    with transaction.atomic():
        study = Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study.pk)
        if study.state not in Study.RUNNING:
            return 0
        return sum(_settle_section(study, section) for section in sections_that_may_need_top_ups(study))


def submitted_and_not_replaced_assignments(study: Study) -> QuerySet[Assignment]:
    """Return the assignments whose labels count: submitted in time and not replaced.

    A later withdrawal does not unsettle an item, and its place stays taken.
    """
    return Assignment.objects.filter(
        study=study, submitted_at__isnull=False, released_at=None, replaced_at=None, batch__number__lt=FIRST_TEST_NUMBER
    )


def _settle_section(study: Study, section: Section) -> int:
    # Read places first. If an answer arrives between the two queries, its place still counts as open until the next
    # run.
    places = _place_counts_by_item(study, section)
    labels = _labels(study, section)
    protocol = REGISTRY[section.protocol]
    questions = list(section.questions.values_list("pk", flat=True))
    items = Item.objects.filter(section=section)
    settled = set(items.filter(settled_at__isnull=False).values_list("pk", flat=True))
    decided, reopened, disputed = [], [], []
    for item, (n_answered, all_places) in places.items():
        item_labels = labels.get(item, {})
        if n_answered and all(
            protocol.is_item_settled(section, item_labels.get(question, [])) for question in questions
        ):
            decided.append(item)
        elif n_answered < all_places:
            reopened.append(item)  # an answer is missing, perhaps because an annotator was replaced
        elif item not in settled:
            disputed.append(item)
    items.filter(pk__in=set(decided) - settled).update(settled_at=Now())
    items.filter(pk__in=settled.intersection(reopened)).update(settled_at=None)
    return _top_up(study, section, disputed)


def _labels(study: Study, section: Section) -> dict[int, dict[int, list[str]]]:
    """Return the labels by item and question, in the order of their arrival."""
    rows = (
        Response.objects.filter(
            assignment__in=submitted_and_not_replaced_assignments(study),
            question__section=section,
            item__kind=Item.Kind.LIVE,
        )
        .order_by("received_at", "pk")
        .values_list("item_id", "question_id", "chosen__output__system_id", "choice", "skip_reason")
    )
    labels: dict[int, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for item, question, chosen, choice, skipped in rows:
        labels[item][question].append(str(chosen or choice or f"skipped {skipped}"))
    return labels


def _place_counts_by_item(study: Study, section: Section) -> dict[int, tuple[int, int]]:
    """Return by item (answered places, all places). The place of a replaced person does not count; its copy does."""
    answered: dict[int, int] = defaultdict(int)
    for batch in submitted_and_not_replaced_assignments(study).values_list("batch_id", flat=True):
        answered[batch] += 1
    replaced: dict[int, int] = defaultdict(int)
    for batch in Assignment.objects.filter(study=study, replaced_at__isnull=False, released_at=None).values_list(
        "batch_id", flat=True
    ):
        replaced[batch] += 1
    counts: dict[int, tuple[int, int]] = {}
    placed = Placement.objects.filter(
        item__section=section,
        item__kind=Item.Kind.LIVE,
        item__retired_in=None,
        batch__number__lt=min(study.open_to, FIRST_TEST_NUMBER),
    ).order_by("item__number", "batch__number")
    for item, batch, n_wanted in placed.values_list("item_id", "batch_id", "batch__wanted"):
        n_answered, total = counts.get(item, (0, 0))
        counts[item] = n_answered + answered[batch], total + n_wanted - replaced[batch]
    return counts


def _top_up(study: Study, section: Section, disputed: Sequence[int]) -> int:
    is_any_open = study.batches.filter(claimed__lt=F("wanted"), number__lt=study.open_to).exists()
    n = len(disputed) - len(disputed) % section.m if is_any_open else len(disputed)
    if not n:
        return 0
    chunks = [disputed[start : min(start + section.m, n)] for start in range(0, n, section.m)]
    last = study.batches.filter(number__lt=FIRST_TEST_NUMBER).aggregate(last=Max("number"))["last"]
    arms = dict(
        Placement.objects.filter(item__in=disputed[:n])
        .order_by("-batch__number")
        .values_list("item_id", "batch__arm_id")
    )
    batches = Batch.objects.bulk_create(
        Batch(study=study, arm_id=arms[chunk[0]], number=last + offset, wanted=1, origin=Batch.Origin.TOP_UP)
        for offset, chunk in enumerate(chunks, 1)
    )
    Placement.objects.bulk_create(
        Placement(batch=batch, item_id=item, number=number)
        for batch, chunk in zip(batches, chunks, strict=True)
        for number, item in enumerate(chunk)
    )
    Study.objects.filter(pk=study.pk).update(open_to=last + len(chunks) + 1)
    audit.record("top up", study=study, by=None, section=section.position, items=n, batches=len(chunks))
    return n
