"""The steps of a rehearsal in the copy's database: publish, let people come, check, decide, pay, stop, and compare.

Everything uses the product's own code: orders by the pages' functions, checks by the job, people over HTTP. Only time
is moved forward by hand, and the places are used up for people who must come too late.
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

from .browser import SendRequest
from .comparison import update_ledger_and_record_mismatches
from .panel_actions import PanelActions
from .rehearsal_context import Person, Progress, RehearsalContext
from .roles import Role, choose_roles
from .visits import VisitPlayer

# After this time, a check finds people who never reached the panel, and places of people who left are free.
ONE_DAY = timedelta(days=1)


class Rehearsal(RehearsalContext):
    """``asks`` returns a connection to the site for each person, by number.

    ``play`` runs all steps; the findings are in the attributes.
    """

    def __init__(
        self,
        recruitment: Recruitment,
        panel: StandIn,
        senders: Callable[[int], SendRequest],
        seed: int,
        progress: Progress,
    ):
        super().__init__(recruitment, panel, progress)
        self.asks, self.seed = senders, seed

    def unplayable_role_reasons(self) -> dict[str, str]:
        """Return the roles that this study or panel cannot play, each with the reason."""
        out = {}
        if not self._can_screen_out():
            out["screened_out"] = "The study screens nobody out."
        if not self.study.consent:
            out["declines"] = "The study asks for no consent."
        can_reject = self.has_service and self.channel.rejection_policy is not None
        if not can_reject:
            out["rejected"] = "heval does not reject work at this channel."
        elif self.recruitment.settings.get("review") == "automatic":
            out["rejected"] = "The panel approves automatically at once, so nothing is left to reject."
        return out

    def _can_screen_out(self) -> bool:
        for section in self.study.sections.filter(purpose="screening").prefetch_related("questions"):
            for question in section.questions.all():
                if any(option.get("screens_out") for option in (question.scale or {}).get("options", ())):
                    return True
        return False

    def play(self, people: int) -> None:
        visits, orders = VisitPlayer(self, self.asks, self.seed), PanelActions(self)
        out = self.unplayable_role_reasons()
        self.notes += out.values()
        chosen = self._fitting_roles(choose_roles(people, set(out)))
        self.people = [Person(role, n, self.asks(n)) for n, role in enumerate(chosen, 1)]
        self.total = len(self.people) + 6
        if not orders.publish():
            return
        self.report_progress("A visitor looks without accepting")
        visits.play_preview()
        late = [person for person in self.people if person.role.key == "full"]
        for person in self.people:
            if person not in late:
                visits.play_person(person)
        self.report_progress("A day passes, and heval asks the panel")
        self._shift_times_back()
        orders.sync_when_throttled()
        assign.release_expired_places()
        Study.objects.filter(pk=self.study.pk).update(open_to=0)
        for person in late:
            visits.play_person(person)
        if self.has_service:
            self.report_progress("Deciding and paying")
            orders.sync_panel()
            orders.decide_and_pay()
            orders.stop_tasks_and_check()
        self.report_progress("Comparing the results")
        update_ledger_and_record_mismatches(self)

    def _fitting_roles(self, chosen: list[Role]) -> list[Role]:
        """Reduce the people to the available places if the study cannot get more; the last ones are left out."""
        missing = sum(role.needs_place for role in chosen) - lifecycle.count_opened_places_towards_cap(self.study)
        if missing <= 0:
            return chosen
        shortage_text = "The study has fewer places than this rehearsal has people: "
        try:
            lifecycle.open_more_places(self.study, missing, by=None)
        except lifecycle.ActionRefused as refused:
            staying_away = [n for n, role in enumerate(chosen) if role.needs_place][-missing:]
            left_labels = ", ".join(dict.fromkeys(f"“{chosen[n].label}”" for n in staying_away))
            self.notes.append(f"{shortage_text}{missing} are left out (of those who {left_labels}). {refused}")
            return [role for n, role in enumerate(chosen) if n not in staying_away]
        self.notes.append(f"{shortage_text}the copy has {missing} more.")
        return chosen

    def _shift_times_back(self) -> None:
        assignments = Assignment.objects.filter(study=self.study)
        moments = ("claimed_at", "reserved_until", "started_at", "submitted_at")
        assignments.update(**{name: F(name) - ONE_DAY for name in moments})


def entry_url(recruitment: Recruitment) -> str:
    return f"{settings.SITE_URL}{reverse('entry', args=[recruitment.key])}"
