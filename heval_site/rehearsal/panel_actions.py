"""A rehearsal's orders at the panel's stand-in: publishing, checks, decisions, pay and stopping, by the same functions
as the pages.
"""

from decimal import Decimal

from annotators.models import PanelOrder, PanelSubmission, Payment
from annotators.pay import ledger
from annotators.pay.verdicts.decisions import get_work_by_submission, reject_work
from annotators.recruitment.panels import publishing, sync
from annotators.recruitment.panels.secrets import get_panel_service
from studies.models import Job
from studies.services import jobs, lifecycle

from .rehearsal_context import RehearsalContext

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
            publishing.order_blocklist_and_publication(
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
        for task in publishing.get_panel_tasks_or_create_from_arrivals(self.recruitment):
            publishing.order_task_stop(task, by=self.study.owner)
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
