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
    def __init__(self, scene: RehearsalContext):
        self.scene = scene
        self.recruitment, self.panel, self.study = scene.recruitment, scene.panel, scene.study

    def publish(self) -> bool:
        """Publish by heval's real order; its reply is lost once."""
        if not self.scene.has_service:
            return True
        self.scene.report_progress("Publishing at the panel's stand-in")
        self.panel.open_account(self.scene.currency)
        reward = self.scene.reward
        if not reward:
            self.scene.faults.append(
                "No pay is set for the link or the study, so nothing can be published at a panel that pays. "
                "Set the pay first."
            )
            return False
        self.panel.lose_next_reply("publish")
        try:
            publishing.order_publication(
                self.recruitment,
                by=self.study.owner,
                title=self.study.public_title[:120] or "A study",
                description=self.study.purpose[:2000] or "A study.",
                reward=reward,
                currency=self.scene.currency,
                minutes=self.study.minutes or 10,
                places=len(self.scene.people) + 2,
            )
        except lifecycle.ActionRefused as words:
            self.scene.faults.append(f"heval would not publish it: {words}")
            return False
        self.look()
        self._make_orders_due()
        self.look()
        order = PanelOrder.objects.get(recruitment=self.recruitment, operation="publish")
        if order.state != PanelOrder.State.DONE:
            self.scene.faults.append(f"The order to publish is “{order.get_state_display()}”: {order.words}")
            return False
        return self.scene.record_check(
            self.panel.count_open_tasks() == 1,
            "the reply to publishing was lost: the task still exists only once at the panel",
        )

    def look(self, **how) -> Job:
        """Check the panel, as the job does every five minutes."""
        job = jobs.submit(sync.KIND, study=self.study, by=self.study.owner, recruitment=self.recruitment.pk, **how)
        jobs.run_job(job.pk)
        job.refresh_from_db()
        return job

    def sync_when_throttled(self) -> None:
        if not self.scene.has_service:
            return
        self.panel.throttle_next("look")
        before = PanelSubmission.objects.count()
        put_off = self.look()
        is_told = put_off.state == Job.State.FAILED and PanelSubmission.objects.count() == before
        self.scene.record_check(
            is_told, "the panel postponed a check: this was reported, and no partial data was stored"
        )
        for _ in range(2):  # the second check must change nothing
            self.look()
        if (job := self.look()).state != Job.State.DONE:
            self.scene.faults.append(f"The check of the panel failed: {job.error}")
        elif job.result is None or job.result["changed"] or job.result["new"]:
            self.scene.faults.append("A check of an unchanged panel changed data.")

    def _make_orders_due(self) -> None:
        """Make postponed orders due."""
        PanelOrder.objects.filter(recruitment=self.recruitment).update(not_before=None)

    def decide_and_pay(self) -> None:
        service_can = get_panel_service(self.recruitment).operations
        for person in self.scene.people:
            if (
                person.role.key == "rejected"
                and (row := self.scene.submission_of(person))
                and row.standing == "matched"
            ):
                self._reject(row)
        self.look()
        waiting = sum(row.standing == "matched" for row in self.scene.rows())
        if waiting:
            self.panel.lose_next_reply("approve")
            self.look(approves=True)
            for _ in range(3):
                self._make_orders_due()
                self.look(approves=True)
            done = PanelOrder.objects.filter(
                recruitment=self.recruitment, operation="approve", state=PanelOrder.State.DONE
            )
            self.scene.record_check(
                done.count() == waiting,
                f"the reply to an approval was lost: {waiting} were ordered, and each was carried out once",
            )
        self._pay(service_can)

    def _reject(self, row: PanelSubmission) -> None:
        """Reject by the page's own function, with the required inputs."""
        category = list(self.scene.channel.rejection_policy.categories)[-1]
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
        except lifecycle.ActionRefused as words:
            self.scene.faults.append(f"No rejection was possible: {words}")

    def _pay(self, service_can: frozenset[str]) -> None:
        """Add a bonus, and order all due payments with the confirmed total."""
        person = next(
            (one for one in self.scene.people if one.role.key == "finishes" and self.scene.submission_of(one)), None
        )
        before = self.panel.bonus(person.accepted) if person else Decimal(0)
        if person and "bonus" in service_can and (mine := self.scene.assignment_of(person)):
            extra = ledger.ExtraPayment(mine, BONUS, "Thank you for the care.")
            ledger.add_extra_payments(self.recruitment, [extra], Payment.Kind.BONUS, self.study.owner)
        if due := list(ledger.payments_orderable_at_panel(self.recruitment, service_can)):
            ledger.order_due_payments_at_panel(
                self.recruitment, service_can, ledger.total_amount(due), self.study.owner
            )
        for _ in range(2):
            self.look()
            self._make_orders_due()
        if person and "bonus" in service_can:
            paid = self.panel.bonus(person.accepted) - before
            self.scene.record_check(paid == BONUS, f"a bonus of {BONUS} {self.scene.currency} is paid once")

    def stop(self) -> None:
        for task in publishing.get_or_create_panel_tasks(self.recruitment):
            publishing.order_task_stop(task, by=self.study.owner)
        for _ in range(2):
            self.look()
            self._make_orders_due()
        self.scene.record_check(
            self.panel.count_open_tasks() == 0, "the task is stopped at the panel and accepts no new people"
        )
        for order in PanelOrder.objects.filter(recruitment=self.recruitment).exclude(state=PanelOrder.State.DONE):
            self.scene.faults.append(
                f"The order to {order.operation.replace('_', ' ')} is “{order.get_state_display()}”: {order.words}"
            )
