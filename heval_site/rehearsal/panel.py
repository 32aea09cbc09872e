"""A rehearsal's orders at the panel's stand-in: publishing, checks, decisions, pay and stopping, by the same functions
as the pages.
"""

import random
from collections.abc import Callable
from decimal import Decimal
from functools import cached_property

from django.conf import settings

from annotators.models import Assignment, PanelOrder, PanelSubmission, Payment
from annotators.models.identity import restored_external_ids
from annotators.pages.record import full_page_state
from annotators.participation.simulate import (
    CrowdSettings,
    PreferenceRobot,
    SharedRobotData,
    default_system_strengths,
    visit_page_and_draw_robot_answers,
)
from annotators.pay import ledger
from annotators.pay.decisions import get_work_by_submission, reject_work
from annotators.places.places import assignment_code, compute_receipt
from annotators.recruitment.channels import OUTCOMES
from annotators.recruitment.panels import orders, sync
from annotators.recruitment.panels.http_client import get_panel_service
from annotators.recruitment.panels.stand_in import ShownWayBack
from studies.models import Job
from studies.services import jobs, lifecycle

from .browser import Browser, Page, SendRequest, UnexpectedPage
from .context import Person, RehearsalContext

BONUS = Decimal("0.50")
REJECTION_REASON = (
    "This is a rehearsal, and no real person is affected. A real message explains with evidence what was not "
    "done as the task asked. The annotator reads it."
)


class PanelActions:
    def __init__(self, rehearsal: RehearsalContext):
        self.rehearsal = rehearsal
        self.recruitment, self.panel, self.study = rehearsal.recruitment, rehearsal.panel, rehearsal.study

    def publish(self) -> bool:
        """Publish by heval's real order; its reply is lost once."""
        if not self.rehearsal.has_service:
            return True
        self.rehearsal.report_progress("Publishing at the panel's stand-in")
        self.panel.open_account(self.rehearsal.currency)
        reward = self.rehearsal.reward
        if not reward:
            self.rehearsal.faults.append(
                "No pay is set for the link or the study, so nothing can be published at a panel that pays. "
                "Set the pay first."
            )
            return False
        self.panel.lose_next_reply("publish")
        try:
            orders.order_blocklist_and_publication(
                self.recruitment,
                by=self.study.owner,
                title=self.study.public_title[:120] or "A study",
                description=self.study.purpose[:2000] or "A study.",
                reward=reward,
                currency=self.rehearsal.currency,
                minutes=self.study.minutes or 10,
                places=len(self.rehearsal.people) + 2,
            )
        except lifecycle.ActionRefused as refused:
            self.rehearsal.faults.append(f"heval would not publish it: {refused}")
            return False
        self.sync_panel()
        self._make_orders_due()
        self.sync_panel()
        order = PanelOrder.objects.get(recruitment=self.recruitment, operation="publish")
        if order.state != PanelOrder.State.DONE:
            self.rehearsal.faults.append(
                f"The order to publish is “{order.get_state_display()}”: {order.panel_message}"
            )
            return False
        return self.rehearsal.record_check(
            self.panel.count_open_tasks() == 1,
            "the reply to publishing was lost: the task still exists only once at the panel",
        )

    def sync_panel(self, **job_options) -> Job:
        """Check the panel, as the job does every five minutes."""
        job = jobs.submit(
            sync.KIND, study=self.study, by=self.study.owner, recruitment=self.recruitment.pk, **job_options
        )
        jobs.claim_and_run_job(job.pk)
        job.refresh_from_db()
        return job

    def sync_when_throttled(self) -> None:
        if not self.rehearsal.has_service:
            return
        self.panel.throttle_next("look")
        before = PanelSubmission.objects.count()
        put_off = self.sync_panel()
        is_reported = put_off.state == Job.State.FAILED and PanelSubmission.objects.count() == before
        self.rehearsal.record_check(
            is_reported, "the panel postponed a check: this was reported, and no partial data was stored"
        )
        for _ in range(2):  # the second check must change nothing
            self.sync_panel()
        if (job := self.sync_panel()).state != Job.State.DONE:
            self.rehearsal.faults.append(f"The check of the panel failed: {job.error}")
        elif job.result is None or job.result["changed"] or job.result["new"]:
            self.rehearsal.faults.append("A check of an unchanged panel changed data.")

    def _make_orders_due(self) -> None:
        """Make postponed orders due."""
        PanelOrder.objects.filter(recruitment=self.recruitment).update(not_before=None)

    def decide_and_pay(self) -> None:
        service_can = get_panel_service(self.recruitment).operations
        for person in self.rehearsal.people:
            if (
                person.role.key == "rejected"
                and (row := self.rehearsal.submission_of(person))
                and row.standing == "matched"
            ):
                self._reject(row)
        self.sync_panel()
        waiting = sum(row.standing == "matched" for row in self.rehearsal.submissions())
        if waiting:
            self.panel.lose_next_reply("approve")
            self.sync_panel(approves=True)
            for _ in range(3):
                self._make_orders_due()
                self.sync_panel(approves=True)
            done = PanelOrder.objects.filter(
                recruitment=self.recruitment, operation="approve", state=PanelOrder.State.DONE
            )
            self.rehearsal.record_check(
                done.count() == waiting,
                f"the reply to an approval was lost: {waiting} were ordered, and each was carried out once",
            )
        self._pay(service_can)

    def _reject(self, row: PanelSubmission) -> None:
        """Reject by the page's own function, with the required inputs."""
        category = list(self.rehearsal.channel.rejection_policy.categories)[-1]
        if (work := get_work_by_submission(self.recruitment, row.pk)) is None:
            return
        try:
            reject_work(
                work,
                category,
                REJECTION_REASON,
                self.study.owner,
                "A rehearsal.",
            )
        except lifecycle.ActionRefused as refused:
            self.rehearsal.faults.append(f"No rejection was possible: {refused}")

    def _pay(self, service_can: frozenset[str]) -> None:
        """Add a bonus, and order all due payments with the confirmed total."""
        person = next(
            (
                candidate
                for candidate in self.rehearsal.people
                if candidate.role.key == "finishes" and self.rehearsal.submission_of(candidate)
            ),
            None,
        )
        before = self.panel.paid_bonus_total(person.accepted_task) if person else Decimal(0)
        if person and "bonus" in service_can and (assignment := self.rehearsal.assignment_of(person)):
            extra = ledger.ExtraPayment(assignment, BONUS, "Thank you for the care.")
            ledger.add_extra_payments(self.recruitment, [extra], Payment.Kind.BONUS, self.study.owner)
        if due_payments := list(ledger.payments_orderable_at_panel(self.recruitment, service_can)):
            ledger.order_due_payments_at_panel(
                self.recruitment, service_can, ledger.total_amount(due_payments), self.study.owner
            )
        for _ in range(2):
            self.sync_panel()
            self._make_orders_due()
        if person and "bonus" in service_can:
            paid = self.panel.paid_bonus_total(person.accepted_task) - before
            self.rehearsal.record_check(paid == BONUS, f"a bonus of {BONUS} {self.rehearsal.currency} is paid once")

    def stop_tasks_and_check(self) -> None:
        for task in orders.get_panel_tasks_or_create_from_arrivals(self.recruitment):
            orders.order_task_stop(task, by=self.study.owner)
        for _ in range(2):
            self.sync_panel()
            self._make_orders_due()
        self.rehearsal.record_check(
            self.panel.count_open_tasks() == 0, "the task is stopped at the panel and accepts no new people"
        )
        for order in PanelOrder.objects.filter(recruitment=self.recruitment).exclude(state=PanelOrder.State.DONE):
            self.rehearsal.faults.append(
                f"The order to {order.operation.replace('_', ' ')} is “{order.get_state_display()}”: {order.panel_message}"
            )


# The visits of a rehearsal's people: from the first page through the study, and back to the panel, according to their
# role.


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
        robot = PreferenceRobot(self._world, random.Random(self.rng.getrandbits(64)))
        robot.begin_batch(assignment.batch_id)
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
