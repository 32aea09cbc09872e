"""The visits of a rehearsal's people: from the first page through the study, and back to the panel, according to their
role.
"""

import random
from collections.abc import Callable
from functools import cached_property

from django.conf import settings

from annotators.models import Assignment
from annotators.models.identity import restored_external_ids
from annotators.pages.record import full_page_state
from annotators.participation.simulate import (
    CrowdSettings,
    PreferenceRobot,
    SharedRobotData,
    default_system_strengths,
    visit_page_and_draw_robot_answers,
)
from annotators.places.addresses import assignment_code
from annotators.places.receipts import compute_receipt
from annotators.recruitment.channels import OUTCOMES
from annotators.recruitment.panels.stand_in import ShownWayBack

from .browser import Browser, Page, SendRequest, UnexpectedPage
from .rehearsal_context import Person, RehearsalContext

MAX_PAGES = 1000


class VisitPlayer:
    def __init__(self, rehearsal: RehearsalContext, senders: Callable[[int], SendRequest], seed: int):
        self.rehearsal, self.asks = rehearsal, senders
        self.recruitment, self.panel, self.study = rehearsal.recruitment, rehearsal.panel, rehearsal.study
        self.rng = random.Random(seed)

    def play_preview(self) -> None:
        """Check that a preview without accepting stores nothing."""
        address = self.panel.preview_url()
        if not address:
            return
        before = Assignment.objects.count()
        try:
            page = Browser(settings.SITE_URL, self.asks(0)).get(address)
        except UnexpectedPage as unexpected:
            self.rehearsal.faults.append(f"A visitor who has not accepted: {unexpected}")
            return
        is_quiet = page.find_form("start") is None and Assignment.objects.count() == before
        self.rehearsal.record_check(is_quiet, "a visitor who has not accepted cannot start, and nothing is stored")

    def play_person(self, person: Person) -> None:
        self.rehearsal.report_progress(f"Person {person.number} of {len(self.rehearsal.people)}: {person.role.label}")
        try:
            getattr(self, f"_play_{person.role.key}", self._play_finishes)(person)
        except UnexpectedPage as unexpected:
            person.add_fault(str(unexpected))

    def _accept_task(self, person: Person) -> Browser:
        person.id = person.id or self.panel.nth_person_id(person.number)
        person.visit = self.panel.accept_task(person.id)
        return Browser(settings.SITE_URL, person.send)

    def _open_entry_page(self, person: Person) -> tuple[Browser, Page]:
        browser = self._accept_task(person)
        page = browser.get(person.accepted_task.address)
        person.last_heading = page.heading
        return browser, page

    def _start_work(self, person: Person, button: str = "start") -> tuple[Browser, Page]:
        """Open the link and press Start. Known people are led to their page or asked to continue."""
        browser, page = self._open_entry_page(person)
        form = page.find_form(button)
        if form is None:
            raise UnexpectedPage(f"The first page shows “{page.heading}” but no button to {button}.")
        fields = {button: "1"} | ({"agree": "1"} if "agree" in form.names and button == "start" else {})
        page = browser.post(form.action, fields)
        person.last_heading, person.way_back = page.heading, page.way_back
        return browser, page

    def _answer_pages(self, person: Person, browser: Browser, page: Page, is_half: bool = False) -> Page:
        """Answer page after page: to the end, or half of them."""
        robot, until = None, None
        for n in range(MAX_PAGES):
            form = page.find_form("go")
            person.last_heading, person.way_back = page.heading, page.way_back
            if form is None or n == until:
                return page
            _, _, address, key, *_ = browser.url[len(settings.SITE_URL) :].split("/")
            code = assignment_code(address)
            assignment = Assignment.objects.select_related("study", "recruitment", "batch").get(code=code)
            person.code = code
            if robot is None:
                robot = self._make_robot(person, assignment)
                until = max(1, len(full_page_state(assignment).steps) // 2) if is_half else None
            data = visit_page_and_draw_robot_answers(full_page_state(assignment), key, robot)
            if missing := sorted(set(data) - form.names):
                raise UnexpectedPage(f"Page {key} has no field for {missing[0]}.")
            fields = dict(data.lists()) | {"go": "1"}
            if person.role.key == "lost_reply" and self._is_last_page(assignment, key):
                browser.post_and_lose_reply(form.action, fields)
            page = browser.post(form.action, fields)
            if page.url.split("?")[0].rstrip("/").endswith(f"/{key}"):
                raise UnexpectedPage(f"Page {key} was shown again after sending: its answers were not accepted.")
        raise UnexpectedPage("The study has no last page.")

    def _is_last_page(self, assignment: Assignment, key: str) -> bool:
        return list(full_page_state(assignment).steps)[-1] == key

    def _make_robot(self, person: Person, assignment: Assignment) -> PreferenceRobot:
        robot = PreferenceRobot(
            self._world,
            self._world.systems_by_exposure(assignment.batch_id),
            random.Random(self.rng.getrandbits(64)),
            self._world.known_quality_by_exposure(assignment.batch_id),
        )
        robot.is_screened_out = person.role.key == "screened_out"
        return robot

    @cached_property
    def _world(self) -> SharedRobotData:
        return SharedRobotData(self.study, default_system_strengths(self.study), CrowdSettings())

    def _return_to_panel(self, person: Person, outcome: str) -> None:
        """Follow the last page's instructions; if it shows no usable way back, return the task."""
        self._check_way_back(person, outcome)
        if not (person.way_back.url or person.way_back.code) or (
            outcome != "complete" and not self._carries_outcome(person.way_back)
        ):
            self.panel.return_task(person.accepted_task)
            if outcome == "complete":
                person.add_fault("Their last page shows no way back to the panel.")
            else:
                self.rehearsal.notes.append(
                    f"People who “{OUTCOMES[outcome]}” get no code or form for the panel, and are asked to "
                    "return the task there."
                )
            return
        if refused := self.panel.use_way_back(person.accepted_task, person.way_back):
            person.add_fault(refused)

    def _carries_outcome(self, way_back: ShownWayBack) -> bool:
        return bool(way_back.code or way_back.fields or "?" in way_back.url)

    def _check_way_back(self, person: Person, outcome: str) -> None:
        """Check that the page showed the way back from the link's settings, and that incomplete visits do not return
        like complete ones.
        """
        assignment = Assignment.objects.filter(code=person.code).first()
        if assignment is None:
            return
        receipt, ids, way_back = compute_receipt(assignment.code), restored_external_ids(assignment), person.way_back
        promised, complete = (
            self.rehearsal.channel.way_back(self.recruitment, purpose, ids, receipt)
            for purpose in (outcome, "complete")
        )
        if (promised.code, promised.url) != (way_back.code, way_back.url):
            person.add_fault(
                f"The page shows {way_back.code or way_back.url or 'no way back'}, but the link's settings say "
                f"{promised.code or promised.url or 'none'}."
            )
        is_own = bool(way_back.fields) or way_back.code == receipt  # names the person itself
        if outcome != "complete" and not is_own and (complete.code, complete.url) == (way_back.code, way_back.url):
            person.add_fault(
                f"People who “{OUTCOMES[outcome]}” return exactly like those who completed, so the panel cannot "
                "tell them apart."
            )

    def _play_finishes(self, person: Person) -> None:
        page = self._answer_pages(person, *self._start_work(person))
        person.last_heading = page.heading
        self._return_to_panel(person, "complete")

    def _play_unsent(self, person: Person) -> None:
        self._answer_pages(person, *self._start_work(person))

    def _play_never_starts(self, person: Person) -> None:
        self._accept_task(person)
        self.panel.expire_task(person.accepted_task)

    def _answer_half(self, person: Person) -> None:
        self._answer_pages(person, *self._start_work(person), is_half=True)

    def _play_leaves(self, person: Person) -> None:
        self._answer_half(person)
        self.panel.expire_task(person.accepted_task)

    def _play_returns(self, person: Person) -> None:
        self._answer_half(person)
        self.panel.return_task(person.accepted_task)

    def _play_retakes(self, person: Person) -> None:
        self._answer_half(person)
        self.panel.return_task(person.accepted_task)
        before, first = person.code, person.accepted_task
        browser, page = self._open_entry_page(person)
        form = page.find_form("start")
        if form is None:
            raise UnexpectedPage(f"People who accept the task again see “{page.heading}” and cannot continue.")
        page = self._answer_pages(
            person,
            browser,
            browser.post(form.action, {"start": "1"} | ({"agree": "1"} if "agree" in form.names else {})),
        )
        if self.rehearsal.channel.identifies_people and before and before != person.code:
            person.add_fault(
                "A person who accepted the task again got another assignment, and lost their first answers."
            )
        self._return_to_panel(person, "complete")
        if first.session != person.accepted_task.session and self.panel.submission_state(first) not in (
            "returned",
            "working",
        ):
            person.add_fault("The returned task is not recorded as returned.")

    def _play_screened_out(self, person: Person) -> None:
        self._answer_pages(person, *self._start_work(person))
        self._return_to_panel(person, "screened_out")

    def _play_full(self, person: Person) -> None:
        browser, page = self._start_work(person)
        if form := page.find_form("leave"):
            page = browser.post(form.action, form.hidden | {"leave": "1"})
            person.last_heading, person.way_back = page.heading, page.way_back
        self._return_to_panel(person, "full")

    def _play_declines(self, person: Person) -> None:
        self._start_work(person, button="decline")
        self._return_to_panel(person, "no_consent")
