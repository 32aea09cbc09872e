"""Places of a link in steps: the next few open when the last ones have brought finished work.

For links at which heval publishes nothing. Where it publishes at a panel, the panel's places are rounds
(``recruitment.panels.orders``).
"""

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Count, Q

from annotators.counting import Use, select
from annotators.models import Assignment, PanelPlan, Recruitment
from annotators.models.constants import REGISTRY
from studies.models import Study


@dataclass(frozen=True, slots=True)
class StepStatus:
    """People of a link: how many are wanted in all and at a time, and how many have finished or are at work.

    >>> first, second = (StepStatus(people=10, step_places=4, finished=n, at_work=1) for n in (3, 4))
    >>> (first.number, first.opened, first.free), (second.number, second.opened, second.free)
    ((1, 4, 0), (2, 8, 3))
    """

    people: int
    step_places: int
    finished: int
    at_work: int

    @property
    def number(self) -> int:
        """The current step, from 1."""
        return self.finished // self.step_places + 1

    @property
    def opened(self) -> int:
        """How many people may have come up to now."""
        return min(self.people, self.number * self.step_places)

    @property
    def free(self) -> int:
        return max(0, self.opened - self.finished - self.at_work)


def step_status(plan: PanelPlan) -> StepStatus:
    """Return how far the steps of a link are. A place that was given back is free again."""
    return step_statuses([plan])[plan.recruitment_id]


def step_statuses(plans: Collection[PanelPlan]) -> dict[int, StepStatus]:
    """Return how far the steps of several links are, by the number of the link."""
    works = select(
        Use.ROWS,
        Assignment.objects.filter(recruitment__in=[plan.recruitment_id for plan in plans]),
        [Assignment.Origin.LIVE],
    )
    is_finished = Q(submitted_at__isnull=False)
    rows = (
        works.filter(is_finished | Q(released_at=None), batch__isnull=False)
        .order_by()
        .values("recruitment")
        .annotate(
            people=Count("annotator", distinct=True), finished=Count("annotator", filter=is_finished, distinct=True)
        )
    )
    counts = {row["recruitment"]: (row["finished"], row["people"] - row["finished"]) for row in rows}
    return {
        plan.recruitment_id: StepStatus(plan.people, plan.round_places, *counts.get(plan.recruitment_id, (0, 0)))
        for plan in plans
    }


def steps_of_study(study: Study) -> list[tuple[Recruitment, StepStatus]]:
    """Return the steps of each link of a study that has a plan of them."""
    plans = PanelPlan.objects.filter(recruitment__study=study).select_related("recruitment").order_by("recruitment")
    found = [plan for plan in plans if opens_in_steps(plan.recruitment)]
    statuses = step_statuses(found)
    return [(plan.recruitment, statuses[plan.recruitment_id]) for plan in found]


def opens_in_steps(recruitment: Recruitment) -> bool:
    """Return whether a plan of this link limits who may come now, and not what heval publishes at a panel."""
    return not REGISTRY[recruitment.channel].publishes


def lock_and_read_steps(recruitment: Recruitment) -> StepStatus | None:
    """Return the steps of a link, or None without a plan. Two newcomers wait for each other until the transaction ends."""
    plan = PanelPlan.objects.select_for_update(no_key=True, of=("self",)).filter(recruitment=recruitment).first()
    return step_status(plan) if plan else None
