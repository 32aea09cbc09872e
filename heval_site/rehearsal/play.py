"""The course of a rehearsal, in the copy's own database: publish, let people come, look, decide, pay, stop; and note what differs.

Everything goes the way it goes in life: orders by the functions that the pages call, looks by the job, people over HTTP. Only time is
set forward by hand, and the doors are closed to whoever shall come too late.
"""

from collections.abc import Callable
from datetime import timedelta

from django.conf import settings
from django.db.models import F
from django.urls import reverse

from annotators.models import Assignment, Recruitment
from annotators.places import assign
from annotators.recruitment.panels.stand_in import StandIn
from studies.models import Study
from studies.services import lifecycle

from .browser import Ask
from .cast import Role, cast
from .comparison import compare
from .orders import Orders
from .scene import Person, Progress, Scene
from .visits import Visits

# After so long a look finds who never reached the panel, and the places of those who left are free.
A_DAY = timedelta(days=1)


class Rehearsal(Scene):
    """``asks`` gives a way to the site for each person, by number. ``play`` does it all; what it found is in the attributes."""

    def __init__(
        self, recruitment: Recruitment, panel: StandIn, asks: Callable[[int], Ask], seed: int, progress: Progress
    ):
        super().__init__(recruitment, panel, progress)
        self.asks, self.seed = asks, seed

    def left_out(self) -> dict[str, str]:
        """Roles that this study or panel has no place for, each with why."""
        out = {}
        if not self._can_screen_out():
            out["screened_out"] = "The study screens nobody out."
        if not self.study.consent:
            out["declines"] = "The study asks for no consent."
        can_reject = self.has_service and self.channel.refusals is not None
        if not can_reject:
            out["rejected"] = "Nobody is rejected through heval here."
        elif self.recruitment.settings.get("review") == "automatic":
            out["rejected"] = "The panel approves by itself at once: there is nothing left to reject."
        return out

    def _can_screen_out(self) -> bool:
        for section in self.study.sections.filter(purpose="screening").prefetch_related("questions"):
            for question in section.questions.all():
                if any(option.get("screens_out") for option in (question.scale or {}).get("options", ())):
                    return True
        return False

    def play(self, people: int) -> None:
        visits, orders = Visits(self, self.asks, self.seed), Orders(self)
        out = self.left_out()
        self.notes += out.values()
        chosen = self._that_fit(cast(people, set(out)))
        self.people = [Person(role, n, self.asks(n)) for n, role in enumerate(chosen, 1)]
        self.total = len(self.people) + 6
        if not orders.publish():
            return
        self.say("Somebody looks without accepting")
        visits.looks_without_accepting()
        late = [person for person in self.people if person.role.key == "full"]
        for person in self.people:
            if person not in late:
                visits.comes(person)
        self.say("A day passes, and the panel is asked")
        self._a_day_passes()
        orders.look_put_off()
        assign.sweep()
        Study.objects.filter(pk=self.study.pk).update(open_to=0)
        for person in late:
            visits.comes(person)
        if self.has_service:
            self.say("Deciding and paying")
            orders.look()
            orders.decide()
            orders.stop()
        self.say("Comparing the books")
        compare(self)

    def _that_fit(self, chosen: list[Role]) -> list[Role]:
        """As many as there are places for, where the study cannot be given more: the last ones stay away."""
        missing = sum(role.takes_place for role in chosen) - lifecycle.open_places(self.study)
        if missing <= 0:
            return chosen
        few = "The study has fewer places than this rehearsal has people: "
        try:
            lifecycle.draw_more(self.study, missing, by=None)
        except lifecycle.NotNow as words:
            staying_away = [n for n, role in enumerate(chosen) if role.takes_place][-missing:]
            left = ", ".join(dict.fromkeys(f"“{chosen[n].label}”" for n in staying_away))
            self.notes.append(f"{few}{missing} stay away (of those who {left}). {words}")
            return [role for n, role in enumerate(chosen) if n not in staying_away]
        self.notes.append(f"{few}the copy has {missing} more.")
        return chosen

    def _a_day_passes(self) -> None:
        mine = Assignment.objects.filter(study=self.study)
        moments = ("claimed_at", "reserved_until", "started_at", "submitted_at")
        mine.update(**{name: F(name) - A_DAY for name in moments})


def link_base(recruitment: Recruitment) -> str:
    return f"{settings.SITE_URL}{reverse('entry', args=[recruitment.key])}"
