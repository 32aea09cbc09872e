"""Rounds: publish a task's places a few at a time, with extra places for those expected to produce no work.

A small round shows problems while they are cheap, and moves a task up in a panel's list again. The loss is measured.
Until there is enough data, the declared value is used.
"""

from dataclasses import dataclass
from math import ceil
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from annotators.models import Assignment, PanelOrder, PanelPlan, PanelSubmission, PanelTask, Recruitment
from annotators.models.constants import WORKING
from studies.access import Action, check_permission_or_404
from studies.models import audit

from .orders import get_or_create_order
from .publishing import publishing_obstacles
from .reconcile import SENT_STATES

# This number of used places is enough for measuring.
MIN_USED_PLACES = 20
# If more places than this share are lost, something is wrong that extra places cannot fix.
MAX_LOST_SHARE = 0.5
State = PanelOrder.State


@dataclass(frozen=True, slots=True)
class RoundStatus:
    """The status of a plan.

    ``taken``: how many of ``places`` are taken. ``lost``: the expected share of places without finished work, measured
    on ``used`` places or declared. ``next_places``: places of the next round; 0 with the reason in ``waits``.
    """

    places: int
    taken: int
    finished: int
    at_work: int
    used: int
    lost: float
    is_measured: bool
    next_places: int
    waits: str


@dataclass(frozen=True, slots=True)
class PanelPlaceCounts:
    """The numbers of places at a panel.

    ``used``: places of submitted work. ``with_finished_work``: used places with finished work in heval. ``finished``: all
    finished work in heval.
    """

    taken: int
    finished: int
    at_work: int
    used: int
    with_finished_work: int


def save_round_plan(recruitment: Recruitment, *, by, people: int, round_places: int, lost_percent: int) -> PanelPlan:
    """Create or change the plan."""
    check_permission_or_404(by, Action.PANEL, recruitment.study)
    with transaction.atomic():
        columns: dict[str, Any] = {"people": people, "round_places": round_places, "lost_percent": lost_percent}
        if unchanged := PanelPlan.objects.filter(recruitment=recruitment, **columns).first():
            return unchanged
        plan, _ = PanelPlan.objects.update_or_create(recruitment=recruitment, defaults=columns)
        audit.record("plan rounds", study=recruitment.study, by=by, recruitment=recruitment.key, **columns)
    return plan


def count_further_places_needed(wanted: int, finished: int, at_work: int, lost_share: float) -> int:
    """Return how many more places should bring ``wanted`` finished works.

    People at work count by the share of them that is expected to finish.

    >>> [count_further_places_needed(20, 14, at_work, 0.2) for at_work in (0, 5)]
    [8, 3]
    >>> count_further_places_needed(20, 20, 0, 0.2)
    0
    """
    # Ignore tiny fractions that come from binary rounding.
    return max(0, ceil(round((wanted - finished) / (1 - lost_share) - at_work, 9)))


def count_taken_panel_places(recruitment: Recruitment) -> PanelPlaceCounts:
    """Count from the panel's submissions and heval's assignments, each person once."""
    live = Assignment.objects.filter(recruitment=recruitment, origin=Assignment.Origin.LIVE)
    finished = live.filter(submitted_at__isnull=False, is_late=False, replaced_at=None, withdrawn_at=None).count()
    rows = PanelSubmission.objects.filter(recruitment=recruitment)
    submitted = rows.filter(state__in=SENT_STATES)
    n_used = submitted.count()
    n_with_work = submitted.filter(assignment__submitted_at__isnull=False).count()
    # At work at the panel, or in heval but not shown by the panel; or finished in heval and not shown yet.
    inside = live.filter(Q(released_at=None) | Q(submitted_at__isnull=False))
    unlisted = inside.filter(~Exists(PanelSubmission.objects.filter(assignment=OuterRef("pk"))))
    n_at_work = rows.filter(state=WORKING).count() + unlisted.filter(submitted_at=None).count()
    n_taken = n_used + n_at_work + unlisted.filter(submitted_at__isnull=False).count()
    return PanelPlaceCounts(n_taken, finished, n_at_work, n_used, n_with_work)


def round_status(plan: PanelPlan) -> RoundStatus:
    """Return the current status."""
    recruitment = plan.recruitment
    counts = count_taken_panel_places(recruitment)
    is_measured = counts.used >= MIN_USED_PLACES
    lost_share = (counts.used - counts.with_finished_work) / counts.used if is_measured else plan.lost_percent / 100
    task = newest_published_task(recruitment)
    places = (task.places or 0) if task else 0
    figures = (places, counts.taken, counts.finished, counts.at_work, counts.used, lost_share, is_measured)
    if waiting_reason := _waiting_reason(plan, task, counts.taken, lost_share):
        return RoundStatus(*figures, 0, waiting_reason)
    next_places = min(
        count_further_places_needed(plan.people, counts.finished, counts.at_work, lost_share), plan.round_places
    )
    if not next_places:
        return RoundStatus(*figures, 0, "The wanted number of people have finished, or are expected to finish.")
    cap = recruitment.study.cap
    if cap is not None and places + next_places > cap:
        next_places = max(0, cap - places)
        if not next_places:
            return RoundStatus(
                *figures,
                0,
                f"The study is capped at {cap} places, and all are published. To collect more, clone the study.",
            )
    return RoundStatus(*figures, next_places, "")


def newest_published_task(recruitment: Recruitment) -> PanelTask | None:
    """Return the task that rounds enlarge: the newest one that heval published."""
    orders = PanelOrder.objects.filter(recruitment=recruitment, operation="publish", state=State.DONE).order_by("pk")
    last = orders.values_list("result", flat=True).last()
    name = str((last or {}).get("task", ""))
    return PanelTask.objects.filter(recruitment=recruitment, external_id=name).first() if name else None


def _extend_orders(task: PanelTask):
    return PanelOrder.objects.filter(
        recruitment=task.recruitment_id, operation="extend", values__task=task.external_id
    ).order_by("pk")


def _waiting_reason(plan: PanelPlan, task: PanelTask | None, n_taken: int, lost_share: float) -> str:
    if task is None:
        return "Publish the first round on the Publish page."
    if task.closed_at:
        return "The task is stopped."
    if obstacles := publishing_obstacles(plan.recruitment):
        return obstacles[0]
    last = _extend_orders(task).last()
    if last is not None and last.state not in (State.DONE, State.CANCELLED):
        return f"The last order for more places is {last.get_state_display()}. {last.panel_message}".strip()
    if n_taken < (task.places or 0):
        return f"{n_taken} of {task.places} places are taken. The next round is published when all are taken."
    if lost_share > MAX_LOST_SHARE:
        return f"{lost_share:.0%} of the places brought no finished work. Find the cause before you publish more."
    return ""


def order_next_round(recruitment: Recruitment, *, by) -> PanelOrder | None:
    """Order the next round if it is due. Idempotent."""
    plan = PanelPlan.objects.filter(recruitment=recruitment).select_related("recruitment__study").first()
    if plan is None or not (status := round_status(plan)).next_places:
        return None
    task = newest_published_task(recruitment)
    if task is None:
        return None
    ended = _extend_orders(task).count()
    return get_or_create_order(
        recruitment,
        "extend",
        f"round-{task.pk}-{ended + 1}",
        by=by,
        task=task.external_id,
        places=status.places + status.next_places,
    )


def retry_refused_round(recruitment: Recruitment, by) -> bool:
    """Allow a refused round to be ordered again, after a person fixed the cause.

    Return False if no refused order exists.
    """
    check_permission_or_404(by, Action.PANEL, recruitment.study)
    task = newest_published_task(recruitment)
    if task is None or not is_last_round_refused(task):
        return False
    orders = _extend_orders(task)
    values = orders.values_list("values", flat=True).last()
    get_or_create_order(recruitment, "extend", f"round-{task.pk}-{orders.count() + 1}", by=by, **values)
    return True


def is_last_round_refused(task: PanelTask) -> bool:
    """Return whether the panel refused the newest order for more places."""
    last = _extend_orders(task).last()
    return last is not None and last.state == State.REFUSED
