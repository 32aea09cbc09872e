"""What a rehearsal orders at the panel's stand-in: publishing, looks, decisions, pay and stopping, by the functions of the pages."""

from decimal import Decimal

from annotators.models import PanelOrder, PanelSubmission, Payment
from annotators.pay import ledger
from annotators.pay.verdicts.decisions import reject, work_of_submission
from annotators.recruitment.panels import publishing, sync
from annotators.recruitment.panels.secrets import service_of
from studies.models import Job
from studies.services import jobs, lifecycle

from .rehearsal_context import RehearsalContext

BONUS = Decimal("0.50")
REJECTION_REASON = (
    "This is a rehearsal: no person is meant. In earnest this message says with evidence what was not done as the task asked, and "
    "the person reads it."
)


class PanelActions:
    def __init__(self, scene: RehearsalContext):
        self.scene = scene
        self.recruitment, self.panel, self.study = scene.recruitment, scene.panel, scene.study

    def publish(self) -> bool:
        """By the product's own order, whose reply is lost once."""
        if not self.scene.has_service:
            return True
        self.scene.report_progress("Publishing at the panel's stand-in")
        self.panel.open_account(self.scene.currency)
        reward = self.scene.reward
        if not reward:
            self.scene.faults.append(
                "No pay is set, in the link or in the study: nothing can be published at a panel that pays."
            )
            return False
        self.panel.lose_next_reply("publish")
        try:
            publishing.publish(
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
            self.panel.count_open_tasks() == 1, "publishing lost its reply: the task stands at the panel once"
        )

    def look(self, **how) -> Job:
        """As the job does it every five minutes."""
        job = jobs.submit(sync.KIND, study=self.study, by=self.study.owner, recruitment=self.recruitment.pk, **how)
        jobs.run(job.pk)
        job.refresh_from_db()
        return job

    def sync_when_throttled(self) -> None:
        if not self.scene.has_service:
            return
        self.panel.throttle_next("look")
        before = PanelSubmission.objects.count()
        put_off = self.look()
        is_told = put_off.state == Job.State.FAILED and PanelSubmission.objects.count() == before
        self.scene.record_check(is_told, "the panel put off a look: it is told, and nothing is half written down")
        for _ in range(2):  # the second changes nothing
            self.look()
        if (job := self.look()).state != Job.State.DONE:
            self.scene.faults.append(f"The look at the panel failed: {job.error}")
        elif job.result["changed"] or job.result["new"]:
            self.scene.faults.append("A look at an unchanged panel changed something.")

    def _make_orders_due(self) -> None:
        """What was put off is due."""
        PanelOrder.objects.filter(recruitment=self.recruitment).update(not_before=None)

    def decide_and_pay(self) -> None:
        service_can = service_of(self.recruitment).operations
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
                f"an approval lost its reply: {waiting} were ordered, and each was carried out once",
            )
        self._pay(service_can)

    def _reject(self, row: PanelSubmission) -> None:
        """By the decision that the page makes, with what it demands."""
        category = list(self.scene.channel.rejection_policy.categories)[-1]
        try:
            reject(
                work_of_submission(self.recruitment, row.pk),
                category,
                REJECTION_REASON,
                self.study.owner,
                "A rehearsal.",
            )
        except lifecycle.ActionRefused as words:
            self.scene.faults.append(f"Nobody could be rejected: {words}")

    def _pay(self, service_can: frozenset[str]) -> None:
        """A bonus is added, and what is due is ordered for the total that somebody would type back."""
        person = next(
            (one for one in self.scene.people if one.role.key == "finishes" and self.scene.submission_of(one)), None
        )
        before = self.panel.bonus(person.visit) if person else None
        if person and "bonus" in service_can:
            extra = ledger.ExtraPayment(self.scene.assignment_of(person), BONUS, "Thank you for the care.")
            ledger.add_extra_payments(self.recruitment, [extra], Payment.Kind.BONUS, self.study.owner)
        if due := list(ledger.orderable_payments(self.recruitment, service_can)):
            ledger.order_payments(self.recruitment, service_can, ledger.total_of(due), self.study.owner)
        for _ in range(2):
            self.look()
            self._make_orders_due()
        if person and "bonus" in service_can:
            paid = self.panel.bonus(person.visit) - before
            self.scene.record_check(paid == BONUS, f"a bonus of {BONUS} {self.scene.currency} is paid once")

    def stop(self) -> None:
        for task in publishing.tasks_of(self.recruitment):
            publishing.stop_task(task, by=self.study.owner)
        for _ in range(2):
            self.look()
            self._make_orders_due()
        self.scene.record_check(self.panel.count_open_tasks() == 0, "stopped at the panel: nobody new comes")
        for order in PanelOrder.objects.filter(recruitment=self.recruitment).exclude(state=PanelOrder.State.DONE):
            self.scene.faults.append(
                f"The order to {order.operation.replace('_', ' ')} is “{order.get_state_display()}”: {order.words}"
            )
