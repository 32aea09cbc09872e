"""Rounds: a task's places go out a few at a time, the next when the last are taken, and as many more as are expected to bring nothing.

A small round shows what is wrong while it is cheap, and brings a task to the top of a panel's list again. What a round brings is measured;
before there is enough to measure it is what was declared.
"""

from dataclasses import dataclass
from math import ceil

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from annotators.models import Assignment, PanelOrder, PanelPlan, PanelSubmission, PanelTask, Recruitment
from annotators.models.constants import WORKING
from studies.access import Action, check
from studies.models import audit

from .orders import give
from .publishing import hindrances
from .reconcile import SENT

# So many used places are enough to measure by.
MEASURED_FROM = 20
# Where more places than these bring nothing, something is wrong that more places do not mend.
MOST_LOST = 0.5
State = PanelOrder.State


@dataclass(frozen=True, slots=True)
class Standing:
    """How a plan stands. ``taken``: of ``places``, those that somebody has. ``lost``: the expected share of places that bring no finished
    work, measured on ``used`` places or declared. ``next``: places of the next round; 0 with the reason in ``waits``."""

    places: int
    taken: int
    finished: int
    at_work: int
    used: int
    lost: float
    is_measured: bool
    next: int
    waits: str


@dataclass(frozen=True, slots=True)
class Taken:
    """Places of a panel: ``taken`` by somebody, of these ``used`` up, of these ``brought`` finished work. ``finished``: all that is here."""

    taken: int
    finished: int
    at_work: int
    used: int
    brought: int


def plan(recruitment: Recruitment, *, by, people: int, round_places: int, lost_percent: int) -> PanelPlan:
    """Declare it, or declare it anew."""
    check(by, Action.PANEL, recruitment.study)
    with transaction.atomic():
        columns = {"people": people, "round_places": round_places, "lost_percent": lost_percent}
        if there := PanelPlan.objects.filter(recruitment=recruitment, **columns).first():
            return there
        made, _ = PanelPlan.objects.update_or_create(recruitment=recruitment, defaults=columns)
        audit.record("plan rounds", study=recruitment.study, by=by, recruitment=recruitment.key, **columns)
    return made


def further(people: int, finished: int, at_work: int, lost: float) -> int:
    """How many more places are expected to bring ``people`` finished works, with those at work counted by what they are expected to bring.

    >>> further(20, 14, 0, 0.2), further(20, 14, 5, 0.2), further(20, 20, 0, 0.2)
    (8, 3, 0)
    """
    # Halves of a person that rounding of binary fractions makes are no person.
    return max(0, ceil(round((people - finished) / (1 - lost) - at_work, 9)))


def places_taken(recruitment: Recruitment) -> Taken:
    """Counted from what the panel shows and who is here, each person once."""
    live = Assignment.objects.filter(recruitment=recruitment, origin=Assignment.Origin.LIVE)
    finished = live.filter(submitted_at__isnull=False, is_late=False, replaced_at=None, withdrawn_at=None).count()
    rows = PanelSubmission.objects.filter(recruitment=recruitment)
    sent = rows.filter(state__in=SENT)
    used = sent.count()
    brought = sent.filter(assignment__submitted_at__isnull=False).count()
    # At work there, or here without the panel's showing it; finished here and not seen there yet.
    inside = live.filter(Q(released_at=None) | Q(submitted_at__isnull=False))
    unseen = inside.filter(~Exists(PanelSubmission.objects.filter(assignment=OuterRef("pk"))))
    at_work = rows.filter(state=WORKING).count() + unseen.filter(submitted_at=None).count()
    taken = used + at_work + unseen.filter(submitted_at__isnull=False).count()
    return Taken(taken, finished, at_work, used, brought)


def standing(made: PanelPlan) -> Standing:
    """How it stands now."""
    recruitment = made.recruitment
    now = places_taken(recruitment)
    is_measured = now.used >= MEASURED_FROM
    lost = (now.used - now.brought) / now.used if is_measured else made.lost_percent / 100
    task = task_of(recruitment)
    places = (task.places or 0) if task else 0
    figures = (places, now.taken, now.finished, now.at_work, now.used, lost, is_measured)
    if waits := _waits(made, task, now.taken, lost):
        return Standing(*figures, 0, waits)
    wanted = min(further(made.people, now.finished, now.at_work, lost), made.round_places)
    if not wanted:
        return Standing(*figures, 0, "As many people as were wanted have finished, or are expected to.")
    cap = recruitment.study.cap
    if cap is not None and places + wanted > cap:
        wanted = max(0, cap - places)
        if not wanted:
            return Standing(*figures, 0, f"The study is capped at {cap} places, and all of them were published.")
    return Standing(*figures, wanted, "")


def task_of(recruitment: Recruitment) -> PanelTask | None:
    """The task that rounds enlarge: the newest that was published from here."""
    orders = PanelOrder.objects.filter(recruitment=recruitment, operation="publish", state=State.DONE).order_by("pk")
    last = orders.values_list("result", flat=True).last()
    name = str((last or {}).get("task", ""))
    return PanelTask.objects.filter(recruitment=recruitment, external_id=name).first() if name else None


def _orders_of(task: PanelTask):
    return PanelOrder.objects.filter(
        recruitment=task.recruitment_id, operation="extend", values__task=task.external_id
    ).order_by("pk")


def _waits(made: PanelPlan, task: PanelTask | None, taken: int, lost: float) -> str:
    if task is None:
        return "Publish the first round from here."
    if task.closed_at:
        return "The task is stopped."
    if found := hindrances(made.recruitment):
        return found[0]
    last = _orders_of(task).last()
    if last is not None and last.state not in (State.DONE, State.CANCELLED):
        return f"The last order for more places is {last.get_state_display()}. {last.words}".strip()
    if taken < (task.places or 0):
        return f"{taken} of {task.places} places are taken. The next round goes out when all are."
    if lost > MOST_LOST:
        return f"{lost:.0%} of the places brought no finished work. Look at why before more are published."
    return ""


def advance(recruitment: Recruitment, *, by) -> PanelOrder | None:
    """Order the next round, where it is time. Again it is the same order."""
    made = PanelPlan.objects.filter(recruitment=recruitment).select_related("recruitment__study").first()
    if made is None or not (now := standing(made)).next:
        return None
    task = task_of(recruitment)
    ended = _orders_of(task).count()
    return give(
        recruitment,
        "extend",
        f"round-{task.pk}-{ended + 1}",
        by=by,
        task=task.external_id,
        places=now.places + now.next,
    )


def try_again(recruitment: Recruitment, by) -> bool:
    """A person has mended what the panel refused: the round may be ordered anew. False where no refused order is in the way."""
    check(by, Action.PANEL, recruitment.study)
    task = task_of(recruitment)
    if task is None or not is_refused(task):
        return False
    orders = _orders_of(task)
    values = orders.values_list("values", flat=True).last()
    give(recruitment, "extend", f"round-{task.pk}-{orders.count() + 1}", by=by, **values)
    return True


def is_refused(task: PanelTask) -> bool:
    """Whether the panel refused the newest order for more places."""
    last = _orders_of(task).last()
    return last is not None and last.state == State.REFUSED
