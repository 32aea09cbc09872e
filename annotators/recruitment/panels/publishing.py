"""Publishing at a panel: cost, obstacles, and the order."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse

from annotators.models import Assignment, PanelOrder, PanelTask, Recruitment
from annotators.models.identity import PERSON_PREFIX
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.signals import collect_obstacles
from studies.access import Action, check_permission_or_404
from studies.models import Study
from studies.services.lifecycle import ActionRefused

from .blocklists import blocklist_names, order_blocklist_additions
from .orders import get_or_create_order

State = PanelOrder.State
ENDED_STATES = (State.DONE, State.REFUSED, State.CANCELLED)


@dataclass(frozen=True, slots=True)
class RewardCost:
    """Return the cost for this number of people, without the panel's fees and bonuses."""

    people: int
    reward: Decimal

    @property
    def rewards(self) -> Decimal:
        return self.reward * self.people


def reward_per_hour(reward: Decimal, minutes: int) -> Decimal:
    """Return the hourly rate of a reward.

    >>> reward_per_hour(Decimal("1.25"), 10)
    Decimal('7.50')
    """
    return (reward * 60 / minutes).quantize(Decimal("0.01"))


def publishing_obstacles(recruitment: Recruitment) -> list[str]:
    """Return the problems to fix before people may be recruited by this link."""
    obstacles = [
        *REGISTRY[recruitment.channel].problems(recruitment),
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


def threshold_lines_of_link(recruitment: Recruitment) -> list[tuple[str, str]]:
    """Return who may see a task that is published by this link, as labels and words."""
    channel = REGISTRY[recruitment.channel]
    return channel.threshold_lines(channel.thresholds(recruitment))


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
        "thresholds": REGISTRY[recruitment.channel].thresholds(recruitment),
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
