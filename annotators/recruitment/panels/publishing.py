"""Publishing at a panel: what it costs, what speaks against it, and the order."""

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
from studies.access import Action, check_permission
from studies.models import Study
from studies.services.lifecycle import ActionRefused

from .blocklists import blocklist_names, order_blocks
from .orders import create_order

State = PanelOrder.State
ENDED_STATES = (State.DONE, State.REFUSED, State.CANCELLED)


@dataclass(frozen=True, slots=True)
class RewardCost:
    """What so many people cost, before the panel's fees and anybody's bonus."""

    people: int
    reward: Decimal

    @property
    def rewards(self) -> Decimal:
        return self.reward * self.people


def reward_per_hour(reward: Decimal, minutes: int) -> Decimal:
    """What a reward comes to an hour.

    >>> per_hour(Decimal("1.25"), 10)
    Decimal('7.50')
    """
    return (reward * 60 / minutes).quantize(Decimal("0.01"))


def publishing_obstacles(recruitment: Recruitment) -> list[str]:
    """What must be mended before anybody may be sent here."""
    found = [
        *REGISTRY[recruitment.channel].problems(recruitment),
        *(words for _, told in collect_obstacles.send(Recruitment, recruitment=recruitment) for words in told),
    ]
    if recruitment.study.state != Study.State.LAUNCHED:
        found.append("The study is not launched: people would come to a closed door.")
    if recruitment.stopped_at:
        found.append("This link is stopped.")
    if not settings.SITE_URL.startswith("https://"):
        found.append("Panels send people to addresses that begin with https:// alone: SITE_URL has another one.")
    return found


def publishing_warnings(recruitment: Recruitment, reward: Decimal, minutes: int, places: int) -> list[str]:
    """What a careful researcher would want to know before paying."""
    study, found = recruitment.study, []
    if n := publication_orders(recruitment).count():
        times = "once" if n == 1 else f"{n} times"
        found.append(f"This link was published {times} already: this is another task beside it, for other people.")
    if study.wage_per_hour and (hourly := reward_per_hour(reward, minutes)) < study.wage_per_hour:
        found.append(f"{reward} for {minutes} minutes is {hourly} an hour. The study declares {study.wage_per_hour}.")
    if study.usual_seconds and (taken := round(study.usual_seconds / 60)) > minutes:
        found.append(f"Those who have submitted took {taken} minutes, median. {minutes} are announced.")
    declared = recruitment.reward if recruitment.reward is not None else study.reward
    if declared is not None and declared != reward:
        found.append(f"The study's first page says {declared}, and the panel would say {reward}.")
    if study.target_n and places > study.target_n:
        found.append(
            f"{places} places at the panel, and {study.target_n} are wanted here: the others come to a full study."
        )
    return found


def panel_entry_url(recruitment: Recruitment) -> str:
    """The address that the panel sends people to, with the panel's own placeholders in it."""
    base = f"{settings.SITE_URL}{reverse('entry', args=[recruitment.key])}"
    return REGISTRY[recruitment.channel].links(recruitment, base)[0][1]


def publish(recruitment: Recruitment, *, by, **task_values: Any) -> PanelOrder:
    """Order it: ``title``, ``description``, ``reward`` (Decimal), ``currency``, ``minutes``, ``places``. Pressed twice it is one order.

    Raises NotNow.
    """
    check_permission(by, Action.PANEL, recruitment.study)
    if found := publishing_obstacles(recruitment):
        raise ActionRefused(" ".join(found))
    values = task_values | {
        "reward": f"{task_values['reward']:.2f}",
        "url": panel_entry_url(recruitment),
        "lists": blocklist_names(recruitment),
        "name": f"heval {recruitment.key}",
    }
    ended = _orders(recruitment, "publish").filter(state__in=ENDED_STATES).count()
    try:
        with transaction.atomic():
            # Those who are known today are on the list before the first person can see the task.
            order_blocks(recruitment, by=by)
            return create_order(recruitment, "publish", f"publish-{recruitment.pk}-{ended + 1}", by=by, **values)
    except ValueError:
        raise ActionRefused("An order to publish with other values has not ended yet.") from None


def publication_orders(recruitment: Recruitment) -> QuerySet[PanelOrder]:
    """What was published by this link, or may have been."""
    return _orders(recruitment, "publish").exclude(state__in=[State.REFUSED, State.CANCELLED])


def stop_task(task: PanelTask, *, by) -> PanelOrder:
    """Nobody new comes from this task; who is at work can finish. Pressed twice it is one order, and a new one where the panel refused it."""
    check_permission(by, Action.PANEL, task.recruitment.study)
    without_effect = _orders(task.recruitment, "stop").filter(state__in=[State.REFUSED, State.CANCELLED])
    n = without_effect.filter(values__task=task.external_id).count()
    token = f"stop-{task.pk}" + (f"-{n}" if n else "")
    return create_order(task.recruitment, "stop", token, by=by, task=task.external_id)


def _orders(recruitment: Recruitment, operation: str) -> QuerySet[PanelOrder]:
    return PanelOrder.objects.filter(recruitment=recruitment, operation=operation)


def tasks_of(recruitment: Recruitment) -> QuerySet[PanelTask]:
    """The recruitment's tasks at its panel. Where none was published from here, those that its people's addresses name."""
    mine = PanelTask.objects.filter(recruitment=recruitment)
    if not PanelOrder.objects.filter(recruitment=recruitment, operation="publish", state=State.DONE).exists():
        came = Assignment.objects.filter(recruitment=recruitment, external_ids__has_key="task").order_by()
        named = set(came.values_list("external_ids__task", flat=True).distinct()) - {""}
        named = {name for name in named if not name.startswith(PERSON_PREFIX)}
        new = sorted(named - set(mine.values_list("external_id", flat=True)))
        PanelTask.objects.bulk_create(
            (PanelTask(recruitment=recruitment, external_id=name) for name in new), ignore_conflicts=True
        )
    return mine.order_by("pk")
