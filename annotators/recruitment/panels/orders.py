"""Orders to panels: stored, sent, and checked if the reply was lost.

The only writer of PanelOrder.
An order is committed as sent before the panel receives it. If the process dies in between, the order stays sent. The
next process asks the panel, and sends it again under the same token only if the panel says that nothing was done. If
the panel cannot say, a person decides.
"""

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from math import ceil
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.urls import reverse

from annotators.models import (
    Annotator,
    Assignment,
    PanelBar,
    PanelIdentity,
    PanelOrder,
    PanelPlan,
    PanelSubmission,
    PanelTask,
    Recruitment,
)
from annotators.models.constants import OPERATIONS, WORKING
from annotators.models.identity import PERSON_PREFIX, get_person_id, get_person_ids, keyed_hash, submission_id_at_panel
from annotators.places.assign import REVIVABLE_REASONS
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.channels.thresholds import declared_thresholds
from annotators.recruitment.signals import collect_obstacles
from studies.access import Action, check_permission_or_404
from studies.design.workload import reward_per_hour
from studies.models import Study, audit
from studies.services.lifecycle import ActionRefused

from . import Order, OrderNotReady, PanelBusy, PanelService, RequestRefused, ResultUnclear
from .reconcile import SENT_STATES

logger = logging.getLogger("heval.panels")

State = PanelOrder.State
# The reply to a sent order is lost after this time; a call waits at most half a minute.
LOST_AFTER = 120  # seconds
MAX_ATTEMPTS = 8
MAX_WORDS_LENGTH = 500  # maximum length of a panel's message


def get_or_create_order(
    recruitment: Recruitment,
    operation: str,
    token: str,
    *,
    by,
    submission: PanelSubmission | None = None,
    **values: Any,
) -> PanelOrder:
    """Store an order, once per token; repeated calls return the same row.

    Raises ValueError for other values under a token.
    The values never contain a person. The person is stored with the submission or beside the order, and decrypted when
    the order is sent.
    """
    allowed = set(OPERATIONS[operation]) - {"person", "people", "submission"}
    if unknown := set(values) - allowed:
        raise ValueError(f"{operation} does not accept {', '.join(sorted(unknown))}.")
    columns = {"recruitment": recruitment, "operation": operation, "values": values, "submission": submission, "by": by}
    with transaction.atomic():
        order, is_new = PanelOrder.objects.get_or_create(token=token, defaults=columns)
        same = (order.recruitment_id, order.operation, order.values, order.submission_id)
        if same != (recruitment.pk, operation, values, submission and submission.pk):
            raise ValueError("This token belongs to another order.")
        if is_new:
            audit.record(
                f"order {operation}",
                study=recruitment.study,
                by=by,
                recruitment=recruitment.key,
                token=token,
                assignment_code=submission.assignment.code if submission and submission.assignment else "",
            )
    return order


def create_orders(
    recruitment: Recruitment, operation: str, submissions_by_token: Mapping[str, PanelSubmission], *, by, **values: Any
) -> int:
    """Store the same order for many submissions, by token, with a constant number of queries.

    Existing tokens are skipped. Return the number of new orders.
    """
    with transaction.atomic():
        existing_tokens = set(
            PanelOrder.objects.filter(token__in=list(submissions_by_token)).values_list("token", flat=True)
        )
        new = {token: submission for token, submission in submissions_by_token.items() if token not in existing_tokens}
        PanelOrder.objects.bulk_create(
            [
                PanelOrder(
                    recruitment=recruitment,
                    operation=operation,
                    token=token,
                    values=values,
                    submission=submission,
                    by=by,
                )
                for token, submission in new.items()
            ],
            batch_size=500,
        )
        audit.bulk_record(
            f"order {operation}",
            [
                {
                    "assignment_code": submission.assignment.code if submission.assignment else "",
                    "recruitment": recruitment.key,
                    "token": token,
                }
                for token, submission in new.items()
            ],
            study=recruitment.study,
            by=by,
        )
    return len(new)


def cancel_order(order: PanelOrder, *, by) -> bool:
    """Cancel an order that was not sent yet. Return False if it was sent."""
    check_permission_or_404(by, Action.PANEL, order.recruitment.study)
    with transaction.atomic():
        waiting = PanelOrder.objects.filter(pk=order.pk, state=State.WAITING, sent_at=None)
        is_taken_back = bool(waiting.update(state=State.CANCELLED, ended_at=Now()))
        if is_taken_back:
            audit.record("cancel order", study=order.recruitment.study, by=by, token=order.token)
    return is_taken_back


def resolve_order(order: PanelOrder, was_carried_out: bool, by) -> bool:
    """Record a person's answer about an unclear order: it was carried out, or must be sent again.

    Return False if nothing is left to decide. This also works for a refused approval, because panels refuse work that
    was approved there before.
    """
    check_permission_or_404(by, Action.PANEL, order.recruitment.study)
    with transaction.atomic():
        unresolved = PanelOrder.objects.filter(pk=order.pk)
        if was_carried_out:
            is_resolvable = Q(state=State.UNCLEAR) | Q(state=State.REFUSED, operation="approve")
            is_decided = unresolved.filter(is_resolvable).update(state=State.DONE, ended_at=Now())
        else:
            # Treat it as never sent: a panel that could not say before cannot say now.
            is_decided = unresolved.filter(state=State.UNCLEAR).update(
                state=State.WAITING, not_before=None, tries=0, sent_at=None
            )
        if is_decided:
            audit.record(
                "decide order", study=order.recruitment.study, by=by, token=order.token, is_carried_out=was_carried_out
            )
    return bool(is_decided)


def due_orders(recruitment: Recruitment) -> QuerySet[PanelOrder]:
    """Return orders to send now, and sent ones without a reply; the oldest first."""
    is_lost = Q(state=State.SENT, sent_at__lt=Now() - timedelta(seconds=LOST_AFTER))
    orders = PanelOrder.objects.filter(recruitment=recruitment)
    may_be_sent = Q(not_before=None) | Q(not_before__lte=Now())
    return orders.filter(Q(state=State.WAITING) | is_lost, may_be_sent).order_by("pk")


def send_due_orders(
    recruitment: Recruitment, service: PanelService, progress: Callable[[int, int, str], None]
) -> dict[str, int]:
    """Send all due orders, one after the other. Return the number of orders by final state."""
    ended: dict[str, int] = {}
    pks = list(due_orders(recruitment).values_list("pk", flat=True))
    for n, pk in enumerate(pks):
        progress(n, len(pks), "Sending orders to the panel")
        order = _mark_sent(pk)
        if order is None:
            continue
        state, may_continue = _carry_out(*order, service)
        ended[state] = ended.get(state, 0) + 1
        if not may_continue:
            break  # the panel asked to wait, or cannot be reached
    return ended


def _mark_sent(pk: int) -> tuple[PanelOrder, bool] | None:
    """Mark the order as sent. Return it and whether it had been sent before; None if another process has it."""
    with transaction.atomic():
        order = (
            PanelOrder.objects.select_for_update(of=("self",), skip_locked=True)
            .select_related("recruitment__study", "submission__annotator", "submission__task")
            .filter(pk=pk, state__in=[State.WAITING, State.SENT])
            .first()
        )
        if order is None or not due_orders(order.recruitment).filter(pk=pk).exists():
            return None
        was_sent = order.sent_at is not None
        PanelOrder.objects.filter(pk=pk).update(state=State.SENT, sent_at=Now(), tries=order.tries + 1)
        order.tries += 1
    return order, was_sent


def _carry_out(order: PanelOrder, was_sent: bool, service: PanelService) -> tuple[str, bool]:
    """Send one order and store the result; first check the state if it was sent before.

    Return the state, and whether the panel accepts further orders now.
    """
    try:
        order_to_send = Order(order.operation, order.token, _values_with_ids(order))
    except RequestRefused as erased:
        return _end_order(order, State.UNCLEAR if was_sent else State.REFUSED, str(erased)), True
    result = None
    if was_sent:
        try:
            result = service.find_order_result(order_to_send)
        except (RequestRefused, ResultUnclear) as error:
            return _end_order(order, State.UNCLEAR, str(error)), True
        except PanelBusy as error:
            return _postpone_lookup(order, error, error.seconds), isinstance(error, OrderNotReady)
    if result is None:
        try:
            result = service.carry_out(order_to_send)
        except RequestRefused as error:
            return _end_order(order, State.REFUSED, str(error)), True
        except PanelBusy as error:
            not_before = Now() + timedelta(seconds=error.seconds)
            # Nothing was done, so treat it as never sent.
            _update_sent_order(
                order,
                state=State.WAITING,
                panel_message=str(error)[:MAX_WORDS_LENGTH],
                not_before=not_before,
                sent_at=None,
            )
            return State.WAITING, isinstance(error, OrderNotReady)
        except ResultUnclear as error:
            if order.tries >= MAX_ATTEMPTS:
                return _end_order(order, State.UNCLEAR, str(error)), True
            return _postpone_lookup(order, error, 0), False
    return _end_order(order, State.DONE, "", result), True


def _postpone_lookup(order: PanelOrder, error: Exception, seconds: float) -> str:
    lost_at = Now() - timedelta(seconds=LOST_AFTER + 1)
    # Within the same millisecond, "now" does not count as past.
    not_before = Now() + timedelta(seconds=seconds) if seconds else None
    _update_sent_order(order, panel_message=str(error)[:MAX_WORDS_LENGTH], sent_at=lost_at, not_before=not_before)
    return State.SENT


def _values_with_ids(order: PanelOrder) -> Mapping[str, Any]:
    if order.operation == "bar":
        people = get_person_ids(PanelBar.objects.filter(order=order).values_list("annotator", flat=True))
        return {**order.values, "people": sorted(people.values())}
    if order.submission is None:
        return order.values
    submission, person = order.submission, get_person_id(order.submission.annotator) or ""
    ids = {"submission": submission_id_at_panel(submission, person), "person": person}
    if not ids["submission"]:
        raise RequestRefused(
            "The panel's id of this work has been erased, so heval cannot send the order. Decide at the panel itself."
        )
    return {"task": submission.task.external_id if submission.task else "", **order.values, **ids}


def _end_order(order: PanelOrder, state: str, message: str, result: Mapping[str, Any] | None = None) -> str:
    with transaction.atomic():
        ended_at = None if state == State.UNCLEAR else Now()
        if not _update_sent_order(
            order, state=state, panel_message=message[:MAX_WORDS_LENGTH], result=result or {}, ended_at=ended_at
        ):
            return state
        if state == State.DONE and order.operation == "publish":
            PanelTask.objects.get_or_create(
                recruitment=order.recruitment,
                external_id=str((result or {})["task"]),
                defaults={"places": order.values.get("places")},
            )
        if state == State.DONE and order.operation == "extend" and (places := order.values.get("places")):
            task = PanelTask.objects.filter(recruitment=order.recruitment, external_id=order.values["task"])
            task.update(places=places)
        if state == State.DONE and order.operation == "stop":
            PanelTask.objects.filter(recruitment=order.recruitment, external_id=order.values["task"]).update(
                closed_at=Now()
            )
    if state != State.DONE:
        logger.warning(
            "Order %s (%s) of recruitment %s: %s", order.token, order.operation, order.recruitment.key, state
        )
    return state


def _update_sent_order(order: PanelOrder, **columns: Any) -> bool:
    if message := columns.get("panel_message"):
        columns["panel_message"] = _redact_person_ids(order, message)
    return bool(PanelOrder.objects.filter(pk=order.pk, state=State.SENT).update(**columns))


def _redact_person_ids(order: PanelOrder, message: str) -> str:
    """Return the panel's message without the ids in the order.

    Panels repeat ids, and messages are stored unencrypted.
    """
    if order.operation == "bar":
        people = get_person_ids(PanelBar.objects.filter(order=order).values_list("annotator", flat=True)).values()
    else:
        people = get_person_ids([order.submission.annotator_id] if order.submission else []).values()
    for person in people:
        message = re.sub(rf"(?<!\w){re.escape(person)}(?!\w)", "…", message, flags=re.IGNORECASE)
    return message


# Separate pools: people who may not take part in a study are also blocked at its panel, by a list there.
#
# The constraint in ``assign`` is the actual guard. The list only avoids useless visits and wasted places.


# People per order. Some panels take one request per person, about two per second.
PEOPLE_PER_ORDER = 50
RETRY_AFTER = timedelta(hours=1)


def blocklist_name(study: Study) -> str:
    """Return the name of the list at every panel; '' if no one is excluded.

    Studies of one exclusion group share a list. A study has its own list if it also excludes other studies, or if
    people may come again. Workers can read the name, so it reveals nothing.
    """
    keeps_origin_out = bool(study.clone_of_id and study.keeps_origin_out)
    is_once = study.batches_per_annotator == 1
    if study.exclusion_group and is_once and not keeps_origin_out:
        return f"heval-{keyed_hash('list of group', study.exclusion_group)[:24]}"
    if is_once or keeps_origin_out or study.exclusion_group:
        return f"heval-{keyed_hash('list of study', str(study.code))[:24]}"
    return ""


def blocklist_names(recruitment: Recruitment) -> list[str]:
    """Return the lists of people who must not see a task published now."""
    name = blocklist_name(recruitment.study) if REGISTRY[recruitment.channel].has_blocklist else ""
    return [name] if name else []


def barred_annotators_with_panel_id(recruitment: Recruitment) -> QuerySet[Annotator]:
    """Return the people who may not take part by this link, as known to its panel.

    These are the people of ``is_kept_out_by_other_study`` and those who have started here. People who returned their
    place or let it expire may come again.
    """
    study = recruitment.study
    arrivals = Assignment.objects.filter(annotator=OuterRef("pk")).exclude(origin=Assignment.Origin.TEST)
    arrivals = arrivals.exclude(released_reason=Assignment.Released.FULL)
    barring = Q(pk=None)
    if study.clone_of_id and study.keeps_origin_out:
        barring |= Q(study=study.clone_of_id)
    if study.exclusion_group:
        barring |= Q(study__exclusion_group=study.exclusion_group) & ~Q(study=study.pk)
    if study.batches_per_annotator == 1:
        may_return = Q(released_reason__in=REVIVABLE_REASONS, submitted_at=None)
        barring |= Q(study=study.pk) & ~may_return
    identities = PanelIdentity.objects.filter(annotator=OuterRef("pk"), ciphertext__isnull=False)
    return Annotator.objects.filter(Exists(arrivals.filter(barring)), Exists(identities), pool=recruitment.pool)


def annotators_to_block_at_panel(recruitment: Recruitment) -> QuerySet[Annotator]:
    """Return people to block who are in no order yet, and those of a refused order after one hour."""
    ordered = PanelBar.objects.filter(annotator=OuterRef("pk"), order__recruitment=recruitment)
    is_waiting = Q(order__state=PanelOrder.State.REFUSED, order__ended_at__lt=Now() - RETRY_AFTER)
    return barred_annotators_with_panel_id(recruitment).filter(~Exists(ordered.exclude(is_waiting)))


def order_blocklist_additions(recruitment: Recruitment, *, by) -> int:
    """Order that these people are added to the list, many per order. Return how many. Idempotent."""
    if not (lists := blocklist_names(recruitment)):
        return 0
    with transaction.atomic():
        # Run one at a time: a person added to an order that was already sent would never be listed.
        Recruitment.objects.select_for_update(of=("self",), no_key=True).get(pk=recruitment.pk)
        pks = list(annotators_to_block_at_panel(recruitment).order_by("pk").values_list("pk", flat=True))
        n_earlier = PanelOrder.objects.filter(recruitment=recruitment, operation="bar").count() if pks else 0
        for n, start in enumerate(range(0, len(pks), PEOPLE_PER_ORDER), n_earlier + 1):
            order = get_or_create_order(recruitment, "bar", f"bar-{recruitment.pk}-{n}", by=by, list=lists[0])
            PanelBar.objects.bulk_create(
                PanelBar(order=order, annotator_id=pk) for pk in pks[start : start + PEOPLE_PER_ORDER]
            )
    return len(pks)


def order_blocklist_additions_if_published(recruitment: Recruitment) -> int:
    """Update the list while people come, if heval published the task.

    Tasks made by hand at the panel do not use heval's list.
    """
    published = PanelOrder.objects.filter(recruitment=recruitment, operation="publish")
    is_published = published.exclude(state__in=[PanelOrder.State.REFUSED, PanelOrder.State.CANCELLED]).exists()
    return order_blocklist_additions(recruitment, by=None) if is_published else 0


def count_listed_people_and_doubtful_orders(recruitment: Recruitment) -> dict[str, int]:
    """Return how many people heval put on the panel's list, and how many of these orders were refused or are unclear."""
    orders = PanelOrder.objects.filter(recruitment=recruitment, operation="bar")
    carried_out = PanelBar.objects.filter(order__in=orders, order__state=PanelOrder.State.DONE)
    return {
        "listed": carried_out.values("annotator").distinct().count(),
        "doubtful": orders.filter(state__in=["refused", "unclear"]).count(),
    }


# Publishing at a panel: cost, obstacles, and the order.


ENDED_STATES = (State.DONE, State.REFUSED, State.CANCELLED)


@dataclass(frozen=True, slots=True)
class RewardCost:
    """Return the cost for this number of people, without the panel's fees and bonuses."""

    people: int
    reward: Decimal

    @property
    def rewards(self) -> Decimal:
        return self.reward * self.people


def publishing_obstacles(recruitment: Recruitment) -> list[str]:
    """Return the problems to fix before people may be recruited by this link."""
    obstacles = [
        *REGISTRY[recruitment.channel].obstacles(recruitment),
        *(
            obstacle
            for _, obstacles_of_app in collect_obstacles.send(Recruitment, recruitment=recruitment)
            for obstacle in obstacles_of_app
        ),
    ]
    if recruitment.study.state != Study.State.LAUNCHED:
        obstacles.append("The study is not launched, so people could not take part. Launch it first.")
    if recruitment.stopped_at:
        obstacles.append("This link is stopped. Open it again first.")
    if not settings.SITE_URL.startswith("https://"):
        obstacles.append("Panels accept only addresses that begin with https://. Set SITE_URL to such an address.")
    return obstacles


def publishing_warnings(recruitment: Recruitment, reward: Decimal, minutes: int, places: int) -> list[str]:
    """Return warnings to consider before paying."""
    study, warnings = recruitment.study, []
    if n := done_or_pending_publication_orders(recruitment).count():
        times = "once" if n == 1 else f"{n} times"
        warnings.append(f"This link was published {times} already. This is an additional task, for other people.")
    if study.wage_per_hour and (hourly := reward_per_hour(reward, minutes)) < study.wage_per_hour:
        warnings.append(
            f"{reward} for {minutes} minutes is {hourly} per hour. The study declares {study.wage_per_hour}."
        )
    if study.usual_seconds and (median_minutes := round(study.usual_seconds / 60)) > minutes:
        warnings.append(
            f"People who have submitted took {median_minutes} minutes (median). The task announces {minutes}."
        )
    declared = recruitment.reward if recruitment.reward is not None else study.reward
    if declared is not None and declared != reward:
        warnings.append(f"The study's first page says {declared}, but the panel would say {reward}.")
    if study.target_n and places > study.target_n:
        warnings.append(
            f"You publish {places} places, but the study needs {study.target_n} people. The others would find "
            "the study full."
        )
    return warnings


def panel_entry_url(recruitment: Recruitment) -> str:
    """Return the address to which the panel sends people, with the panel's own placeholders."""
    base = f"{settings.SITE_URL}{reverse('entry', args=[recruitment.key])}"
    return REGISTRY[recruitment.channel].links(recruitment, base)[0][1]


def order_blocklist_and_publication(recruitment: Recruitment, *, by, **task_values: Any) -> PanelOrder:
    """Order the publication: ``title``, ``description``, ``reward`` (Decimal), ``currency``, ``minutes``, ``places``.

    Idempotent: pressing twice makes one order. Raises ActionRefused.
    """
    check_permission_or_404(by, Action.PANEL, recruitment.study)
    if obstacles := publishing_obstacles(recruitment):
        raise ActionRefused(" ".join(obstacles))
    values = task_values | {
        "reward": f"{task_values['reward']:.2f}",
        "url": panel_entry_url(recruitment),
        "lists": blocklist_names(recruitment),
        "name": f"heval {recruitment.key}",
        "thresholds": declared_thresholds(recruitment.settings),
    }
    ended = _orders(recruitment, "publish").filter(state__in=ENDED_STATES).count()
    try:
        with transaction.atomic():
            # Known people are on the list before the first person can see the task.
            order_blocklist_additions(recruitment, by=by)
            return get_or_create_order(recruitment, "publish", f"publish-{recruitment.pk}-{ended + 1}", by=by, **values)
    except ValueError:
        raise ActionRefused(
            "An earlier order to publish with other values is still open. Wait until it ends, or take it back."
        ) from None


def done_or_pending_publication_orders(recruitment: Recruitment) -> QuerySet[PanelOrder]:
    """Return orders that published by this link, or may have done so."""
    return _orders(recruitment, "publish").exclude(state__in=[State.REFUSED, State.CANCELLED])


def order_task_stop(task: PanelTask, *, by) -> PanelOrder:
    """Stop recruiting for this task; people at work can finish.

    Idempotent. If the panel refused the order, a new one is made.
    """
    check_permission_or_404(by, Action.PANEL, task.recruitment.study)
    without_effect = _orders(task.recruitment, "stop").filter(state__in=[State.REFUSED, State.CANCELLED])
    n = without_effect.filter(values__task=task.external_id).count()
    token = f"stop-{task.pk}" + (f"-{n}" if n else "")
    return get_or_create_order(task.recruitment, "stop", token, by=by, task=task.external_id)


def _orders(recruitment: Recruitment, operation: str) -> QuerySet[PanelOrder]:
    return PanelOrder.objects.filter(recruitment=recruitment, operation=operation)


def get_panel_tasks_or_create_from_arrivals(recruitment: Recruitment) -> QuerySet[PanelTask]:
    """Return the recruitment's tasks at its panel; if heval published none, the tasks named in people's addresses."""
    tasks = PanelTask.objects.filter(recruitment=recruitment)
    if not PanelOrder.objects.filter(recruitment=recruitment, operation="publish", state=State.DONE).exists():
        arrivals = Assignment.objects.filter(recruitment=recruitment, external_ids__has_key="task").order_by()
        task_names = set(arrivals.values_list("external_ids__task", flat=True).distinct()) - {""}
        task_names = {name for name in task_names if not name.startswith(PERSON_PREFIX)}
        new = sorted(task_names - set(tasks.values_list("external_id", flat=True)))
        PanelTask.objects.bulk_create(
            (PanelTask(recruitment=recruitment, external_id=name) for name in new), ignore_conflicts=True
        )
    return tasks.order_by("pk")


# Rounds: publish a task's places a few at a time, with extra places for those expected to produce no work.
#
# A small round shows problems while they are cheap, and moves a task up in a panel's list again. The loss is
# measured. Until there is enough data, the declared value is used.


# This number of used places is enough for measuring.
MIN_USED_PLACES = 20
# If more places than this share are lost, something is wrong that extra places cannot fix.
MAX_LOST_SHARE = 0.5


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
