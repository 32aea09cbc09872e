"""Annotators of the golden studies: they answer as robots of known preferences, with the exceptions that real people make."""

import math
import random
from datetime import timedelta

from django.db.models import F

from annotators.models import Assignment
from annotators.pages.record import full_page_state, record_page_answers
from annotators.participation.simulate import CrowdSettings, Robot, SharedRobotData
from studies.models import Study
from studies.protocols.base.fields import TIE
from studies.services import lifecycle
from tests.players import claimed, open_page

CROWD = CrowdSettings(acquiescent=0.2, screened_out=0.0, commenting=0.6)


class People:
    """The people of one study. ``strengths``: how good they find each system, in log-odds."""

    def __init__(self, study: Study, strengths: dict[str, float], crowd: CrowdSettings = CROWD):
        self.study, self.world = study, SharedRobotData(study, strengths, crowd)

    def come(self, *numbers: int, **options) -> list[Assignment]:
        return [self.comes(number, **options) for number in numbers]

    def comes(self, number: int, until: int | None = None, exceptions: float = 0.15, change=None, **options):
        """One person answers every page, or ``until`` that many, and takes as long as people do.

        ``exceptions``: how often they say that both are alike, or give a reason why they do not answer. ``change`` may rewrite what
        is sent: it gets the asks and the answers.
        """
        rng = random.Random(1000 * self.study.pk + number)
        assignment = claimed(self.study, f"person {number}", **options)
        robot = Robot(self.world, self.world.systems_by_exposure(assignment.batch_id), rng)
        done = 0
        while (
            not assignment.released_at
            and (key := full_page_state(assignment).next_key) is not None
            and (until is None or done < until)
        ):
            step, page, asks = open_page(assignment, key)
            sent = robot.form(step.protocol, asks, step.purpose)
            for slot, ask in asks.items():
                if ask.field.kind == "exposure" and ask.field.tie and rng.random() < exceptions:
                    sent[slot] = TIE
                if ask.skip_reasons and rng.random() < exceptions:
                    sent[slot] = ""
                    sent[f"{slot}.skip"] = ask.skip_reasons[0][0]
            if change is not None:
                change(asks, sent)
            outcome = record_page_answers(assignment, page.key, sent)
            assert outcome.sent is None, (self.study.title, page.key, outcome.sent)
            assignment = Assignment.objects.select_related("study", "recruitment").get(pk=assignment.pk)
            done += 1
        self.takes(assignment, self.world.minutes.get(assignment.batch.number, 5.0) * math.exp(rng.gauss(0, 0.3)))
        return assignment

    @staticmethod
    def takes(assignment: Assignment, minutes: float) -> None:
        """As if the person had begun so long ago."""
        Assignment.objects.filter(pk=assignment.pk, submitted_at__isnull=False).update(
            claimed_at=F("submitted_at") - timedelta(minutes=minutes),
            started_at=F("submitted_at") - timedelta(minutes=minutes),
        )


def closed(study: Study) -> Study:
    study = Study.objects.get(pk=study.pk)
    if study.state in ("launched", "paused"):
        lifecycle.start_closing(study)
    if Study.objects.get(pk=study.pk).state == "closing":
        lifecycle.end_grace_period(study)
    return Study.objects.get(pk=study.pk)
