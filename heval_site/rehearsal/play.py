"""The course of a rehearsal, in the copy's own database: publish, let people come, look, decide, pay, stop; and note what differs.

Everything goes the way it goes in life: orders by the functions that the pages call, looks by the job, people over HTTP. Only time is
set forward by hand, and the doors are closed to whoever shall come too late.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from urllib.parse import parse_qsl, urlsplit

from django.conf import settings
from django.db.models import F
from django.urls import reverse

from annotators.models import Assignment, PanelOrder, PanelSubmission, Payment, Recruitment
from annotators.models.constants import REJECTED
from annotators.models.identity import ids_of, mark_of
from annotators.pages.record import standing_of
from annotators.participation.simulate import Crowd, Judge, World, answers_on, default_preferences
from annotators.pay import ledger
from annotators.pay.telling import pay_of
from annotators.pay.verdicts.decide import reject, work_of_submission
from annotators.places import assign
from annotators.places.receipts import receipt_of
from annotators.recruitment.channels import OUTCOMES, REGISTRY
from annotators.recruitment.panels import publishing, sync
from annotators.recruitment.panels.reconcile import CLASSES, unseen, with_class
from annotators.recruitment.panels.stand_in import StandIn, Visit, Way
from studies.models import Job, Study
from studies.services import jobs, lifecycle

from .browser import Ask, Browser, Page, Trouble
from .cast import FINISHED, NOTHING, SENT, Role, cast

# After so long a look finds who never reached the panel, and the places of those who left are free.
A_DAY = timedelta(days=1)
BONUS = Decimal("0.50")
REASON = (
    "This is a rehearsal: no person is meant. In earnest this message says with evidence what was not done as the task asked, and "
    "the person reads it."
)
MOST_PAGES = 1000

Progress = Callable[[int, int, str], object]


@dataclass
class Person:
    role: Role
    number: int
    ask: Ask
    id: str = ""
    visit: Visit | None = None
    code: str = ""  # of their assignment
    told: str = ""
    way: Way = field(default_factory=Way)
    wrong: list[str] = field(default_factory=list)
    here: str = ""
    there: str = ""
    standing: str = ""
    pay: str = ""

    def note(self, words: str) -> None:
        if words not in self.wrong:
            self.wrong.append(words)


class Rehearsal:
    """``asks`` gives a way to the site for each person, by number. ``play`` does it all; what it found is in the attributes."""

    def __init__(
        self, recruitment: Recruitment, panel: StandIn, asks: Callable[[int], Ask], seed: int, progress: Progress
    ):
        self.recruitment, self.panel, self.asks, self.progress = recruitment, panel, asks, progress
        self.study: Study = recruitment.study
        self.channel = REGISTRY[recruitment.channel]
        self.rng = random.Random(seed)
        self.has_service = bool(panel.secrets)
        self.people: list[Person] = []
        self.faults: list[str] = []  # what is not as it should be, beside what people met
        self.proofs: list[str] = []  # what was broken on purpose and held
        self.notes: list[str] = []
        self._steps = 0

    # Who

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

    # The course

    def play(self, people: int) -> None:
        out = self.left_out()
        self.notes += out.values()
        chosen = self._that_fit(cast(people, set(out)))
        self.people = [Person(role, n, self.asks(n)) for n, role in enumerate(chosen, 1)]
        self._total = len(self.people) + 6
        if not self._published():
            return
        self._say("Somebody looks without accepting")
        self._looked_at()
        late = [person for person in self.people if person.role.key == "full"]
        for person in self.people:
            if person not in late:
                self._comes(person)
        self._say("A day passes, and the panel is asked")
        self._a_day_passes()
        self._asked_and_put_off()
        assign.sweep()
        Study.objects.filter(pk=self.study.pk).update(open_to=0)
        for person in late:
            self._comes(person)
        if self.has_service:
            self._say("Deciding and paying")
            self._asked()
            self._decided()
            self._stopped()
        self._say("Comparing the books")
        self._compared()

    def _say(self, words: str) -> None:
        self._steps += 1
        self.progress(self._steps, max(self._total, self._steps), words)

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

    # Publishing

    @property
    def reward(self) -> Decimal | None:
        return self.recruitment.reward if self.recruitment.reward is not None else self.study.reward

    @property
    def currency(self) -> str:
        return self.recruitment.currency or self.study.currency

    def _published(self) -> bool:
        """By the product's own order, whose reply is lost once."""
        if not self.has_service:
            return True
        self._say("Publishing at the panel's stand-in")
        self.panel.opens_account(self.currency)
        reward = self.reward
        if not reward:
            self.faults.append(
                "No pay is set, in the link or in the study: nothing can be published at a panel that pays."
            )
            return False
        self.panel.loses_reply("publish")
        try:
            publishing.publish(
                self.recruitment, title=self.study.public_title[:120] or "A study", description=self.study.purpose[:2000] or "A study.",
                reward=reward, currency=self.currency, minutes=self.study.minutes or 10, places=len(self.people) + 2,
            )  # fmt: skip
        except lifecycle.NotNow as words:
            self.faults.append(f"heval would not publish it: {words}")
            return False
        self._asked()
        self._soon()
        self._asked()
        order = PanelOrder.objects.get(recruitment=self.recruitment, operation="publish")
        if order.state != PanelOrder.State.DONE:
            self.faults.append(f"The order to publish is “{order.get_state_display()}”: {order.words}")
            return False
        return self._held(self.panel.tasks() == 1, "publishing lost its reply: the task stands at the panel once")

    def _held(self, is_so: bool, words: str) -> bool:
        (self.proofs if is_so else self.faults).append(words if is_so else f"This did not hold: {words}.")
        return is_so

    # People

    def _looked_at(self) -> None:
        """A look without accepting writes nothing down."""
        address = self.panel.preview()
        if not address:
            return
        before = Assignment.objects.count()
        try:
            page = Browser(settings.SITE_URL, self.asks(0)).get(address)
        except Trouble as words:
            self.faults.append(f"Somebody who looks without accepting: {words}")
            return
        is_quiet = page.form_with("start") is None and Assignment.objects.count() == before
        self._held(is_quiet, "somebody who looks without accepting can start nothing, and nothing is stored")

    def _comes(self, person: Person) -> None:
        self._say(f"Person {person.number} of {len(self.people)}: {person.role.label}")
        try:
            getattr(self, f"_who_{person.role.key}", self._who_finishes)(person)
        except Trouble as words:
            person.note(str(words))

    def _accepts(self, person: Person) -> Browser:
        person.id = person.id or self.panel.person(person.number)
        person.visit = self.panel.accepted(person.id)
        return Browser(settings.SITE_URL, person.ask)

    def _door(self, person: Person) -> tuple[Browser, Page]:
        browser = self._accepts(person)
        page = browser.get(person.visit.address)
        person.told = page.heading
        return browser, page

    def _begins(self, person: Person, button: str = "start") -> tuple[Browser, Page]:
        """Through the door, with Start pressed; whoever is known is led to their page at once or asked to continue."""
        browser, page = self._door(person)
        form = page.form_with(button)
        if form is None:
            raise Trouble(f"The door shows “{page.heading}” and no button to {button}.")
        fields = {button: "1"} | ({"agree": "1"} if "agree" in form.names and button == "start" else {})
        page = browser.post(form.action, fields)
        person.told, person.way = page.heading, page.way_back
        return browser, page

    def _works(self, person: Person, browser: Browser, page: Page, is_half: bool = False) -> Page:
        """Answers page after page: to the end, or half of them."""
        robot, until = None, None
        for n in range(MOST_PAGES):
            form = page.form_with("go")
            person.told, person.way = page.heading, page.way_back
            if form is None or n == until:
                return page
            _, _, code, key, *_ = browser.url[len(settings.SITE_URL) :].split("/")
            assignment = Assignment.objects.select_related("study", "recruitment", "batch").get(code=code)
            person.code = code
            if robot is None:
                robot = self._robot(person, assignment)
                until = max(1, len(standing_of(assignment).steps) // 2) if is_half else None
            data = answers_on(standing_of(assignment), key, robot)
            if missing := sorted(set(data) - form.names):
                raise Trouble(f"Page {key} has no field for {missing[0]}.")
            fields = dict(data.lists()) | {"go": "1"}
            if person.role.key == "lost_reply" and self._is_last(assignment, key):
                browser.post(form.action, fields, is_reply_lost=True)
            page = browser.post(form.action, fields)
            if page.url.split("?")[0].rstrip("/").endswith(f"/{key}"):
                raise Trouble(f"Page {key} was sent and comes back: its answers were refused.")
        raise Trouble("The study has no last page.")

    def _is_last(self, assignment: Assignment, key: str) -> bool:
        return list(standing_of(assignment).steps)[-1] == key

    def _robot(self, person: Person, assignment: Assignment) -> Judge:
        robot = Judge(self._world, self._world.systems_of(assignment.batch_id), random.Random(self.rng.getrandbits(64)))
        robot.is_screened_out = person.role.key == "screened_out"
        return robot

    @property
    def _world(self) -> World:
        if not hasattr(self, "_made_world"):
            self._made_world = World(self.study, default_preferences(self.study), Crowd())
        return self._made_world

    def _goes_back(self, person: Person, outcome: str) -> None:
        """The person does what the last page says; where it names no way that counts, they return the task."""
        self._is_as_promised(person, outcome)
        if not (person.way.url or person.way.code) or (outcome != "complete" and not self._carries_a_word(person.way)):
            self.panel.given_back(person.visit)
            if outcome == "complete":
                person.note("Their last page shows no way back to the panel.")
            else:
                self.notes.append(
                    f"Who “{OUTCOMES[outcome]}” has no code or form for the panel, and is asked to return the task there."
                )
            return
        if refused := self.panel.sent(person.visit, person.way):
            person.note(refused)

    def _carries_a_word(self, way: Way) -> bool:
        return bool(way.code or way.fields or "?" in way.url)

    def _is_as_promised(self, person: Person, outcome: str) -> None:
        """The page showed what the link's settings say for this outcome, and who did not complete does not go back as who did."""
        mine = Assignment.objects.filter(code=person.code).first()
        if mine is None:
            return
        receipt, ids, shown = receipt_of(mine.code), ids_of(mine), person.way
        promised, complete = (
            self.channel.way_back(self.recruitment, one, ids, receipt) for one in (outcome, "complete")
        )
        if (promised.code, promised.url) != (shown.code, shown.url):
            person.note(
                f"The page shows {shown.code or shown.url or 'no way back'}, and the link's settings say "
                f"{promised.code or promised.url or 'none'}."
            )
        is_own = bool(shown.fields) or shown.code == receipt  # says by itself whose it is
        if outcome != "complete" and not is_own and (complete.code, complete.url) == (shown.code, shown.url):
            person.note(
                f"Who “{OUTCOMES[outcome]}” goes back exactly as those who completed: the panel cannot tell them apart."
            )

    def _who_finishes(self, person: Person) -> None:
        page = self._works(person, *self._begins(person))
        person.told = page.heading
        self._goes_back(person, "complete")

    def _who_unsent(self, person: Person) -> None:
        self._works(person, *self._begins(person))

    def _who_never_starts(self, person: Person) -> None:
        self._accepts(person)
        self.panel.run_out(person.visit)

    def _half(self, person: Person) -> None:
        self._works(person, *self._begins(person), is_half=True)

    def _who_leaves(self, person: Person) -> None:
        self._half(person)
        self.panel.run_out(person.visit)

    def _who_returns(self, person: Person) -> None:
        self._half(person)
        self.panel.given_back(person.visit)

    def _who_retakes(self, person: Person) -> None:
        self._half(person)
        self.panel.given_back(person.visit)
        before, first = person.code, person.visit
        browser, page = self._door(person)
        form = page.form_with("start")
        if form is None:
            raise Trouble(f"Who accepts the task again is shown “{page.heading}” and cannot go on.")
        page = self._works(
            person,
            browser,
            browser.post(form.action, {"start": "1"} | ({"agree": "1"} if "agree" in form.names else {})),
        )
        if self.channel.identifies_people and before and before != person.code:
            person.note(
                "Who accepted the task again was given another assignment: their first answers are not theirs any more."
            )
        self._goes_back(person, "complete")
        if first.session != person.visit.session and self.panel.standing(first) not in ("returned", "working"):
            person.note("The task that they had returned does not stand as returned.")

    def _who_screened_out(self, person: Person) -> None:
        self._works(person, *self._begins(person))
        self._goes_back(person, "screened_out")

    def _who_full(self, person: Person) -> None:
        browser, page = self._begins(person)
        if form := page.form_with("leave"):
            page = browser.post(form.action, form.hidden | {"leave": "1"})
            person.told, person.way = page.heading, page.way_back
        self._goes_back(person, "full")

    def _who_declines(self, person: Person) -> None:
        self._begins(person, button="decline")
        self._goes_back(person, "no_consent")

    # Time

    def _a_day_passes(self) -> None:
        mine = Assignment.objects.filter(study=self.study)
        moments = ("claimed_at", "reserved_until", "started_at", "submitted_at")
        mine.update(**{name: F(name) - A_DAY for name in moments})

    def _soon(self) -> None:
        """What was put off is due."""
        PanelOrder.objects.filter(recruitment=self.recruitment).update(not_before=None)

    # The panel's side

    def _asked(self, **how) -> Job:
        """As the job does it every five minutes."""
        job = jobs.submit(sync.KIND, study=self.study, by=self.study.owner, recruitment=self.recruitment.pk, **how)
        jobs.run(job.pk)
        job.refresh_from_db()
        return job

    def _asked_and_put_off(self) -> None:
        if not self.has_service:
            return
        self.panel.throttles("look")
        before = PanelSubmission.objects.count()
        put_off = self._asked()
        is_told = put_off.state == Job.State.FAILED and PanelSubmission.objects.count() == before
        self._held(is_told, "the panel put off a look: it is told, and nothing is half written down")
        for _ in range(2):  # the second changes nothing
            self._asked()
        if (job := self._asked()).state != Job.State.DONE:
            self.faults.append(f"The look at the panel failed: {job.error}")
        elif job.result["changed"] or job.result["new"]:
            self.faults.append("A look at an unchanged panel changed something.")

    def _rows(self) -> Iterator[PanelSubmission]:
        return with_class(self.recruitment).select_related("assignment", "annotator").order_by("pk")

    def _row_of(self, person: Person) -> PanelSubmission | None:
        if person.visit is None:
            return None
        key = assign.pool_key(self.recruitment.pool, person.id)
        mine = self._rows().filter(external_id__in=[person.visit.session, mark_of(key)], annotator__external_id=key)
        return mine.first()

    def _decided(self) -> None:
        service_can = self._service_can()
        for person in self.people:
            if person.role.key == "rejected" and (row := self._row_of(person)) and row.standing == "matched":
                self._rejected(row)
        self._asked()
        waiting = sum(row.standing == "matched" for row in self._rows())
        if waiting:
            self.panel.loses_reply("approve")
            self._asked(approves=True)
            for _ in range(3):
                self._soon()
                self._asked(approves=True)
            done = PanelOrder.objects.filter(
                recruitment=self.recruitment, operation="approve", state=PanelOrder.State.DONE
            )
            self._held(
                done.count() == waiting,
                f"an approval lost its reply: {waiting} were ordered, and each was carried out once",
            )
        self._paid(service_can)

    def _service_can(self) -> frozenset[str]:
        from annotators.recruitment.panels.secrets import service_of

        return service_of(self.recruitment).can

    def _rejected(self, row: PanelSubmission) -> None:
        """By the decision that the page makes, with what it demands."""
        category = list(self.channel.refusals.categories)[-1]
        try:
            reject(work_of_submission(self.recruitment, row.pk), category, REASON, self.study.owner, "A rehearsal.")
        except lifecycle.NotNow as words:
            self.faults.append(f"Nobody could be rejected: {words}")

    def _paid(self, service_can: frozenset[str]) -> None:
        """A bonus is added, and what is due is ordered for the total that somebody would type back."""
        person = next((one for one in self.people if one.role.key == "finishes" and self._row_of(one)), None)
        before = self.panel.bonus(person.visit) if person else None
        if person and "bonus" in service_can:
            extra = ledger.Extra(self._assignment_of(person), BONUS, "Thank you for the care.")
            ledger.add(self.recruitment, [extra], Payment.Kind.BONUS, self.study.owner)
        if due := list(ledger.to_order(self.recruitment, service_can)):
            ledger.order(self.recruitment, service_can, ledger.total_of(due), self.study.owner)
        for _ in range(2):
            self._asked()
            self._soon()
        if person and "bonus" in service_can:
            paid = self.panel.bonus(person.visit) - before
            self._held(paid == BONUS, f"a bonus of {BONUS} {self.currency} is paid once")

    def _stopped(self) -> None:
        for task in publishing.tasks_of(self.recruitment):
            publishing.stop(task)
        for _ in range(2):
            self._asked()
            self._soon()
        self._held(self.panel.tasks() == 0, "stopped at the panel: nobody new comes")
        for order in PanelOrder.objects.filter(recruitment=self.recruitment).exclude(state=PanelOrder.State.DONE):
            self.faults.append(
                f"The order to {order.operation.replace('_', ' ')} is “{order.get_state_display()}”: {order.words}"
            )

    # Comparing

    def _compared(self) -> None:
        unsent = {one.code for one, _ in unseen(self.recruitment)} if self.has_service else set()
        ledger.settle(self.recruitment)
        for person in self.people:
            mine = self._assignment_of(person)
            person.here = (
                NOTHING if mine is None else FINISHED if mine.submitted_at else mine.released_reason or "at work"
            )
            person.there = self.panel.standing(person.visit) if person.visit else ""
            if self.has_service:
                row = self._row_of(person)
                person.standing = row.standing if row else "unsent" if mine and mine.code in unsent else ""
            self._judge(person, mine)
            if mine is not None:
                self._judge_pay(person, mine)
        if wrong := assign.miscounted_batches():
            self.faults.append(f"{len(wrong)} batches count other places than are held.")
        twice = (
            self._rows().filter(standing__in=["left_after_work", "surplus", "unreadable"]) if self.has_service else ()
        )
        for row in twice:
            self.faults.append(
                f"Reconciliation shows somebody as “{CLASSES[row.standing][0]}” ({row.word or row.state}), and nobody here was."
            )

    def _assignment_of(self, person: Person) -> Assignment | None:
        if person.code:
            return Assignment.objects.get(code=person.code)
        if not self.channel.identifies_people or person.visit is None:
            return None
        arrival = self.channel.arrive(self.recruitment, dict(parse_qsl(urlsplit(person.visit.address).query)))
        key = assign.pool_key(self.recruitment.pool, arrival.person)
        return Assignment.objects.filter(study=self.study, annotator__external_id=key).order_by("-pk").first()

    def _judge(self, person: Person, mine: Assignment | None) -> None:
        role = person.role
        if role.told and person.told not in role.told:
            person.note(f"Their last page says “{person.told}”, and “{role.told[0]}” was expected.")
        if person.here not in role.here:
            person.note(f"In our books they are “{person.here}”, and “{' or '.join(role.here)}” was expected.")
        there = role.there if self.has_service else SENT.get(role.there[0], role.there)
        if person.there and person.there not in there:
            person.note(f"At the panel they are “{person.there}”, and “{' or '.join(there)}” was expected.")
        if not self.has_service:
            return
        if role.classes and person.standing not in role.classes and (person.standing or self.panel.shows_who_left):
            words = CLASSES[person.standing][0] if person.standing else "not at all"
            person.note(f"Reconciliation shows them as “{words}”, and “{CLASSES[role.classes[0]][0]}” was expected.")
        if (
            person.there in ("approved", "rejected", "submitted")
            and mine
            and mine.submitted_at
            and mine.trust != Assignment.Trust.CONFIRMED
        ):
            person.note("The panel shows their work, and it does not count as confirmed.")

    def _judge_pay(self, person: Person, mine: Assignment) -> None:
        """What stands in the book for them is what their last page promised; who is rejected is promised nothing."""
        rows = Payment.objects.filter(assignment=mine).exclude(state__in=["failed", "cancelled"]).order_by("pk")
        standing = list(rows)
        person.pay = ", ".join(f"{row.amount:.2f} {row.currency} {row.get_state_display()}" for row in standing)
        told = None if person.there == REJECTED else pay_of(mine)
        promised = told.amount if told else Decimal(0)
        written = ledger.total_of(row for row in standing if row.kind in Payment.COVERING)
        if written != promised:
            person.note(f"They are promised {promised:.2f} {self.currency}, and {written:.2f} stands in the book.")


def link_base(recruitment: Recruitment) -> str:
    return f"{settings.SITE_URL}{reverse('entry', args=[recruitment.key])}"
