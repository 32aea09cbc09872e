"""The steps of a study's life. Only this module writes ``Study.state``. Each step is one transaction and one audit event.

``by`` is the user who acts; their permission is checked. It is None if the site itself or its operator's command acts.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, transaction
from django.db.models.functions import Greatest, Now

from studies import signals
from studies.access import Action, check_permission_or_404
from studies.design.checklist import find_analysis_blockers, find_design_problems
from studies.design.draw import DrawnBatch, UnfillableBatch, draw_batches, store_drawn_batches
from studies.design.serialization import canonical_json, serialize_design, sha256_of
from studies.design.unfinished import CHUNK, UnfinishedBatches, delete_in_turns, unfinished_rows
from studies.models import Arm, Batch, Design, Exposure, Item, Job, Output, Placement, Prompt, Question, Study, audit
from studies.models.events import EventKind
from studies.models.guards import allowing_amendment
from studies.protocols import Problem
from studies.stimuli.rows import TableProblems

from . import databases, events, jobs, translations

# The states of a study in which each step is allowed. The steps and their buttons both use this table.


State = Study.State
OPEN = frozenset(Study.RUNNING)
STATES = {
    "launch": {State.DRAFT},
    "pause": {State.LAUNCHED},
    "resume": {State.PAUSED},
    "draw more": OPEN,
    "amend": OPEN,
    "close": OPEN,
    "unblind": OPEN | {State.CLOSING},
    "clone": set(State),
    "archive": {State.DRAFT, State.CLOSED},
    "restore": {State.DRAFT, State.CLOSED},
    "delete draft": {State.DRAFT},
    "remove texts": {State.DRAFT},
}


def is_lifecycle_step_allowed(step: str, study: Study) -> bool:
    """Return whether the study can take this step now."""
    if step in ("clone", "delete draft"):
        return study.state in STATES[step]
    if bool(study.archived_at) != (step == "restore"):
        return False
    return study.state in STATES[step] and not (step == "unblind" and study.unblinded_at)


# Tables that grow suddenly when a study is launched, or shortly before.
LAUNCH_MODELS = (Batch, Item, Exposure, Placement, Output, Prompt)

AMENDABLE = {
    "study": Study.amendable_fields,
    "arm": frozenset({"reward", "minutes", "instructions"}),
    "question": frozenset({"text", "help"}),
}


AMEND_REFUSAL = (
    "You can amend only a launched or paused study. Edit a draft on its page. If the study is closed, clone it."
)


class ActionRefused(Exception):
    """An action is refused and nothing has changed. The message is for the user. Base class of all such refusals."""


class FileRefused(ActionRefused):
    """A file of which nothing was stored. ``problems`` lists the reasons, with rows."""

    def __init__(self, problems: TableProblems):
        super().__init__("; ".join(str(problem) for problem in problems.first))
        self.problems = problems


class FieldsRefused(ValueError):
    """Values that cannot be used. ``errors``: field name > what to change."""

    def __init__(self, errors: Mapping[str, str]):
        super().__init__(" ".join(f"{name}: {text}" for name, text in errors.items()))
        self.errors = dict(errors)


class NotReady(ActionRefused):
    """Problems prevent a launch. ``problems`` lists them."""

    def __init__(self, problems: list[Problem]):
        super().__init__("; ".join(problem.text for problem in problems))
        self.problems = problems


def _lock_study(study: Study) -> Study:
    return Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study.pk)


def _set_state(study: Study, state: str, **columns: Any) -> None:
    # Bypass the manager's guard. Only this function may do so.
    models.QuerySet(Study).filter(pk=study.pk).update(state=state, **columns)
    if state == State.CLOSED:
        events.record(study, EventKind.CLOSED)


def set_archived_state(study: Study, state: str, **times: Any) -> None:
    """Give a study whose rows were read from its archive the state and the times that it had there."""
    _set_state(study, state, **times)


def blocking_or_unacknowledged_problems(study: Study, acknowledged: Iterable[str] = ()) -> list[Problem]:
    """Return the blocking problems, and the warnings whose keys are not acknowledged."""
    accepted = set(acknowledged)
    return [problem for problem in find_design_problems(study) if problem.is_blocking or problem.key not in accepted]


def _refuse_launched(study: Study) -> None:
    if study.state not in (State.DRAFT, State.LAUNCHING):
        raise ActionRefused(f"Only a draft can be launched, and the study is {study.state}. Clone it to collect again.")
    if study.archived_at:
        raise ActionRefused("The study is archived. Bring it back first.")


# Imports and launches write in many short transactions. Meanwhile nobody else adds stimuli to their study or deletes what they refer to.

IMPORT_KIND = "import"  # of the jobs that import files
UNFINISHED = (
    "unfinished"  # the argument of a job that says which rows it has stored before the import's last transaction
)


def writing_imports() -> models.QuerySet[Job]:
    """Return the jobs that write imported files or launch a study now, or are about to."""
    running = Job.objects.filter(state=Job.State.RUNNING, leased_until__gt=Now())
    return running.filter(models.Q(kind="launch") | models.Q(kind=IMPORT_KIND, arguments__is_confirmed=True))


def refuse_other_import(study: Study, job: Job | None) -> None:
    """Raise ActionRefused if another job than this one imports into the study or launches it."""
    if writing_imports().filter(study=study).exclude(pk=job.pk if job else 0).exists():
        raise ActionRefused(
            "Another file is being imported into this study, or it is being launched. Wait until that has ended."
        )


def refuse_during_import(study: Study, job: Job | None = None) -> None:
    """The same, and raise ActionRefused if an import has left rows that are to be removed."""
    unfinished = Job.objects.filter(kind=IMPORT_KIND, arguments__has_key=UNFINISHED)
    if (writing_imports() | unfinished).filter(study=study).exclude(pk=job.pk if job else 0).exists():
        raise ActionRefused(
            "A file is being imported into this study, or it is being launched. Wait until that has ended, or cancel it."
        )


def request_launch(study: Study, by, acknowledged: Iterable[str] = ()) -> Job:
    """Check the study and submit the launch as a job. Return the Job. Raise NotReady or ActionRefused."""
    check_permission_or_404(by, Action.LAUNCH, study)
    acknowledged = sorted(set(acknowledged))
    with transaction.atomic():
        study = _lock_study(study)
        _refuse_launched(study)
        if problems := blocking_or_unacknowledged_problems(study, acknowledged):
            raise NotReady(problems)
        # One launch at a time. After a failed launch, the next request makes a new job.
        ended = study.jobs.filter(kind="launch", ended_at__isnull=False).count()
        token = f"launch-{study.pk}-{ended}"
        return jobs.submit("launch", study=study, by=by, request_token=token, acknowledged=acknowledged)


def launch(
    study: Study,
    by,
    acknowledged: Iterable[str] = (),
    progress=lambda done, total, doing="": None,
    job: Job | None = None,
) -> Study:
    """Draw the batches and store them in short transactions. The last one freezes the design and opens the places."""
    check_permission_or_404(by, Action.LAUNCH, study)
    acknowledged = sorted(set(acknowledged))
    study = Study.objects.get(pk=study.pk)  # launch the stored study, not the values of an instance
    # Checking and drawing need no lock: the design that they read is later compared with the frozen one, under the lock.
    before = sha256_of(canonical_json(serialize_design(study)))
    if problems := blocking_or_unacknowledged_problems(study, acknowledged):
        raise NotReady(problems)
    ready_made = study.batches.filter(origin=Batch.Origin.IMPORTED).exists()
    places_per_batch = study.annotators_per_batch
    count = -(-(study.target_n or 0) // places_per_batch)
    drawn_batches = []
    if not ready_made:
        try:
            drawn_batches = draw_batches(study, 0, count, progress)
        except UnfillableBatch as spent:
            raise NotReady([Problem(str(spent), spent.field)]) from None
    edited = ActionRefused("The study was edited during the launch. Check it and launch it again.")
    checked = study

    @contextmanager
    def turn() -> Iterator[Study]:
        with _turn_of_launch(checked, job) as locked:
            progress(count, count, "Storing batches")
            if locked.version != checked.version:
                raise edited
            yield locked

    _remove_unfinished_launch(study, job)  # one that was killed
    batches = UnfinishedBatches(study, drawn_batches, places_per_batch)
    try:
        batches.store(turn)
        with turn() as study:
            if unfinished_rows(study)[1].count() != len(drawn_batches):
                raise edited
            # Checking and drawing leave the rows of test runs out. A launch that is refused keeps them.
            signals.deleting_test_runs.send(Study, study=study, spares_imports=True)
            if ready_made:
                study.batches.filter(origin=Batch.Origin.IMPORTED).update(wanted=places_per_batch)
            design = serialize_design(study)
            if sha256_of(canonical_json(design)) != before:
                raise edited
            text = canonical_json(design | translations.keep(study))
            batches.publish()
            _check_warning_limit(study)
            progress(count, count, "Freezing the design")
            Design.objects.create(study=study, version=1, canonical=text, sha256=sha256_of(text), by=by)
            open_to = _open_to(study, study.target_n or 0)
            _set_state(study, Study.State.LAUNCHED, launched_at=Now(), open_to=open_to)
            audit.record(
                "launch", study=study, by=by, sha256=sha256_of(text), acknowledged=acknowledged, open_to=open_to
            )
            events.record(study, EventKind.LAUNCHED)
    except jobs.LeaseLost:
        raise  # another process has the job now, and the rows are its own
    except BaseException as stopped:
        with suppress(ActionRefused):  # somebody else writes, who removes them
            _remove_unfinished_launch(checked, job)
        if isinstance(stopped, IntegrityError):  # somebody has deleted the rows, or made the same
            raise edited from None
        raise
    databases.analyze_tables(*LAUNCH_MODELS)
    study.refresh_from_db()
    return study


def _check_warning_limit(study: Study) -> None:
    """Raise NotReady if a person could get more outputs with a warning than the study allows."""
    if study.warning_limit is None:
        return
    shown = Exposure.objects.filter(item__placements__batch__study=study).exclude(output__warning="").order_by()
    counts = shown.values("item__placements__batch").annotate(n=models.Count("pk")).values_list("n", flat=True)
    most = max(counts, default=0) * study.batches_per_annotator
    if most > study.warning_limit:
        raise NotReady(
            [
                Problem(
                    f"A person could get {most} outputs with a warning; the limit is {study.warning_limit}. Show fewer of them, or raise the limit.",
                    "warning_limit",
                )
            ]
        )


@contextmanager
def _turn_of_launch(study: Study, job: Job | None) -> Iterator[Study]:
    """Open a short transaction of a launch, unless somebody else has launched the study or imports into it. Yield the study."""
    began = time.monotonic()
    with transaction.atomic():
        study = _lock_study(study)
        _refuse_launched(study)
        refuse_during_import(study, job)
        yield study
    databases.let_others_write(time.monotonic() - began)


def _remove_unfinished_launch(study: Study, job: Job | None) -> None:
    delete_in_turns(unfinished_rows(study), lambda: _turn_of_launch(study, job))


def freeze_and_close(draft: Study, by) -> Study:
    """Freeze a draft for imported answers and close it in the same step. It never has annotators of its own.

    Only the checklist's points that an analysis needs must be fulfilled.
    """
    check_permission_or_404(by, Action.EDIT, draft)
    with transaction.atomic():
        draft = _lock_study(draft)
        if draft.state != Study.State.DRAFT:
            raise ActionRefused(
                f"Only a draft can be frozen, and the study is {draft.state}. Clone it, and import the answers into the copy."
            )
        if problems := list(find_analysis_blockers(draft)):
            raise NotReady(problems)
        signals.deleting_test_runs.send(Study, study=draft, spares_imports=True)
        text = canonical_json(serialize_design(draft))
        Design.objects.create(study=draft, version=1, canonical=text, sha256=sha256_of(text), by=by)
        _set_state(draft, Study.State.CLOSED, launched_at=Now(), closing_at=Now(), closed_at=Now())
        audit.record("freeze", study=draft, by=by, sha256=sha256_of(text))
    draft.refresh_from_db()
    return draft


def _open_to(study: Study, places: int) -> int:
    """Return the lowest number such that the batches below it have this many places. Places for third labels do not count."""
    total = following = 0
    for number, n_places, origin in (
        study.batches.exclude(origin=Batch.Origin.TEST).order_by("number").values_list("number", "wanted", "origin")
    ):
        if total >= places:
            return number
        total += n_places if origin != Batch.Origin.TOP_UP else 0
        following = number + 1
    return following


def count_opened_places_towards_cap(study: Study) -> int:
    """Return the number of open places, including taken ones. Places for third labels do not count towards the cap."""
    batches = study.batches.exclude(origin__in=[Batch.Origin.TEST, Batch.Origin.TOP_UP]).filter(
        number__lt=study.open_to
    )
    return batches.aggregate(n=models.Sum("wanted"))["n"] or 0


def remaining_places_text(places: int) -> str:
    """Return a sentence with the number of places that the cap still allows."""
    return f"You can open at most {places} more." if places else "You cannot open any more."


def open_more_places(study: Study, places: int, by) -> int:
    """Open this many more places, and draw batches if none are left. Return the number of added places.

    Batches are stored in short transactions, so that others write in between. Nobody gets one before the last transaction
    opens the places. Batches of an opening that was stopped stay, and are the first of the next one.
    """
    check_permission_or_404(by, Action.RUN, study)
    drawn_batches: dict[int, DrawnBatch] = {}
    is_any_stored = False
    while True:
        began = time.monotonic()
        with transaction.atomic():
            study = _lock_study(study)
            n_open, missing = _open_and_missing_places(study, places)
            if missing <= 0:
                open_to = _open_to(study, n_open + places)
                Study.objects.filter(pk=study.pk).update(open_to=open_to)
                audit.record("draw more", study=study, by=by, places=places, open_to=open_to)
                break
            first = study.batches.filter(origin=Batch.Origin.DRAWN).count()
            count = -(-missing // study.annotators_per_batch)
            chunk = _next_drawn_batches(drawn_batches, first, count)
            if chunk:
                following = study.batches.exclude(origin=Batch.Origin.TEST).latest("number").number + 1
                store_drawn_batches(study, chunk, places_per_batch=study.annotators_per_batch, first_number=following)
                is_any_stored = True
        if chunk:
            databases.let_others_write(time.monotonic() - began)
            continue
        try:
            drawn_batches = {batch.number: batch for batch in draw_batches(study, first, count)}
        except UnfillableBatch as spent:
            raise ActionRefused(
                f"There are not enough items left for {count} more batches. {spent} The design cannot change now: "
                "clone it, and do this in the copy."
            ) from None
    if is_any_stored:
        databases.analyze_tables(*LAUNCH_MODELS)
    return places


def _open_and_missing_places(study: Study, places: int) -> tuple[int, int]:
    """Return the number of open places, and how many are missing to open this many more. Raise ActionRefused if that is not allowed."""
    if not is_lifecycle_step_allowed("draw more", study):
        raise ActionRefused(
            f"You can open places only while a study is launched or paused, and it is {study.state}. Clone it to collect more."
        )
    n_open = count_opened_places_towards_cap(study)
    if study.cap is not None and n_open + places > study.cap:
        n_left = max(0, study.cap - n_open)
        raise ActionRefused(
            f"The study is capped at {study.cap} places; {n_open} are open. {remaining_places_text(n_left)} "
            "Clone the study with a higher cap."
        )
    batches = study.batches.exclude(origin__in=[Batch.Origin.TEST, Batch.Origin.TOP_UP])
    missing = n_open + places - (batches.aggregate(n=models.Sum("wanted"))["n"] or 0)
    if missing > 0 and batches.filter(origin=Batch.Origin.IMPORTED).exists():
        raise ActionRefused(
            "The study has ready-made batches, and all of them are open. To collect more answers, clone the study and import "
            "more."
        )
    return n_open, missing


def _next_drawn_batches(drawn_batches: Mapping[int, DrawnBatch], first: int, count: int) -> list[DrawnBatch]:
    """Return batches from this number on, at most ``count``, as many as one short transaction stores."""
    if first not in drawn_batches:
        return []
    count = min(count, max(1, CHUNK // max(1, len(drawn_batches[first].items))))
    return [drawn_batches[number] for number in range(first, first + count) if number in drawn_batches]


def pause(study: Study, by) -> None:
    """Let no new annotators start. Annotators who have started continue."""
    _change_state(study, by, "pause", Study.State.LAUNCHED, Study.State.PAUSED)


def resume(study: Study, by) -> None:
    _change_state(study, by, "resume", Study.State.PAUSED, Study.State.LAUNCHED)


def start_closing(study: Study, by, reason: str = "") -> None:
    """Let no new annotators start. Annotators who have started have the grace period; then the study is closed."""
    check_permission_or_404(by, Action.RUN, study)
    with transaction.atomic():
        study = _lock_study(study)
        if not is_lifecycle_step_allowed("close", study):
            raise ActionRefused(
                f"Only a launched or paused study can be closed, and this one is {study.state}. You need not do anything."
            )
        _set_state(study, Study.State.CLOSING, closing_at=Greatest("launched_at", Now()))
        audit.record("close", study=study, by=by, reason=reason)


def closes_at(study: Study) -> datetime | None:
    """Return when a closing study stops taking answers, or None for other studies."""
    if study.state != Study.State.CLOSING or study.closing_at is None:
        return None
    return study.closing_at + timedelta(seconds=study.grace_seconds)


def end_grace_period(study: Study, by) -> None:
    """End the grace period."""
    _change_state(study, by, "finish", Study.State.CLOSING, Study.State.CLOSED, closed_at=Greatest("closing_at", Now()))


def _change_state(study: Study, by, verb: str, before: str, after: str, **columns: Any) -> None:
    check_permission_or_404(by, Action.RUN, study)
    with transaction.atomic():
        study = _lock_study(study)
        if study.state != before:
            raise ActionRefused(
                f"The study is {study.state}, not {before}. Somebody may have changed it meanwhile. Reload its page."
            )
        _set_state(study, after, **columns)
        audit.record(verb, study=study, by=by)


# A person who claimed a place in the moment of closing is not seen at once, so a study closes after a minute at the earliest.
SHORTEST_GRACE = timedelta(minutes=1)


def end_due_grace_periods(is_waiting: Callable[[Study], bool] = lambda study: True) -> int:
    """Close every study whose grace period is over, or in which nothing is waited for. Periodic work calls this."""
    ended = 0
    for study in Study.objects.filter(state=Study.State.CLOSING).annotate(now=Now()):
        closing = closes_at(study)
        if closing is None or study.closing_at is None:
            continue
        if closing < study.now or (study.closing_at + SHORTEST_GRACE <= study.now and not is_waiting(study)):
            try:
                end_grace_period(study, by=None)
                ended += 1
            except ActionRefused:  # somebody closed it meanwhile
                continue
    return ended


def amend(study: Study, changes: dict[str, dict[Any, dict[str, Any]]], by, reason: str) -> Design:
    """Amend a launched study, with a reason. This makes a new Design version, which later assignments get.

    ``changes``: {"study": {None: {column: value}}, "arm": {id: {...}}, "question": {id: {...}}, "item": {id: {"retired": True}}}.
    Pay may only rise.
    """
    check_permission_or_404(by, Action.RUN, study)
    if not reason.strip():
        raise ActionRefused("Enter a reason. It is stored with the new version of the design.")
    querysets: dict[str, models.QuerySet] = {
        "study": Study.objects.filter(pk=study.pk),
        "arm": Arm.objects.filter(study=study),
        "question": Question.objects.filter(section__study=study),
        "item": Item.objects.filter(study=study),
    }
    with transaction.atomic(), allowing_amendment():
        study = _lock_study(study)
        if not is_lifecycle_step_allowed("amend", study):
            raise ActionRefused(AMEND_REFUSAL)
        latest = study.designs.latest("version")
        retired = []
        for kind, rows in changes.items():
            for pk, columns in rows.items():
                selected = querysets[kind] if pk is None else querysets[kind].filter(pk=pk)
                if kind == "item":
                    retired.append(pk)
                    continue
                forbidden = set(columns) - AMENDABLE[kind]
                if forbidden:
                    raise ActionRefused(
                        f"After launch {', '.join(sorted(forbidden))} cannot be amended. To change it, clone the study."
                    )
                _refuse_invalid(study if kind == "study" else None, selected, columns)
                _refuse_lower_pay(selected, columns)
                selected.update(**columns)
        if retired:
            # The new version has no row yet. So first retire the items in the latest version: the hash must cover them.
            querysets["item"].filter(pk__in=retired).update(retired_in=latest)
        study = Study.objects.get(pk=study.pk)
        text = canonical_json(serialize_design(study))
        if sha256_of(text) == latest.sha256:
            raise ActionRefused("Nothing would change. Change at least one value, or leave the design as it is.")
        design = Design.objects.create(
            study=study, version=latest.version + 1, canonical=text, sha256=sha256_of(text), by=by, reason=reason
        )
        if retired:
            querysets["item"].filter(pk__in=retired).update(retired_in=design)
        audit.record(
            "amend",
            study=study,
            by=by,
            version=design.version,
            reason=reason,
            columns={k: sorted({c for r in v.values() for c in r}) for k, v in changes.items()},
        )
    return design


def _refuse_invalid(study: Study | None, selected, columns) -> None:
    """Run the validators of the columns, because a queryset's update() does not."""
    for name, value in columns.items():
        field = selected.model._meta.get_field(name)
        try:
            field.clean(value, None)
            if study is not None:
                setattr(study, name, value)
                study.clean()
        except ValidationError as error:
            raise ActionRefused(f"{field.verbose_name}: {' '.join(error.messages)}") from None


def _refuse_lower_pay(selected, columns) -> None:
    """Refuse a lower reward. An arm without a reward pays the study's."""
    if "reward" not in columns:
        return
    for arm_reward, study_reward in selected.values_list("reward", "study__reward"):
        before, after = (study_reward if reward is None else reward for reward in (arm_reward, columns["reward"]))
        if (before or 0) > (after or 0):
            raise ActionRefused("Pay can only rise after launch. Enter at least the promised amount.")


def unblind(study: Study, by, reason: str) -> None:
    """Show outcomes by system while the study still collects. From then on its tests are not confirmatory."""
    check_permission_or_404(by, Action.UNBLIND, study)
    if not reason.strip():
        raise ActionRefused("Enter a reason. The report shows it.")
    with transaction.atomic():
        study = _lock_study(study)
        if not is_lifecycle_step_allowed("unblind", study):
            raise ActionRefused(
                "There is nothing to unblind: the study is a draft, or its outcomes are already visible."
            )
        Study.objects.filter(pk=study.pk).update(unblinded_at=Now())
        audit.record("unblind", study=study, by=by, reason=reason)


def archive(study: Study, by) -> None:
    """Remove a draft or a closed study from the lists."""
    check_permission_or_404(by, Action.ARCHIVE, study)
    with transaction.atomic():
        study = _lock_study(study)
        if study.archived_at:
            raise ActionRefused("The study is already archived. You need not do anything.")
        if not is_lifecycle_step_allowed("archive", study):
            raise ActionRefused(
                f"Close the study first: only a draft or a closed study can be archived, and this one is {study.state}."
            )
        Study.objects.filter(pk=study.pk).update(archived_at=Now())
        audit.record("archive", study=study, by=by)
