"""Compare each person's state in heval, at the panel and in the ledger with what their role expects."""

from decimal import Decimal

from annotators.models import Assignment, Payment
from annotators.models.constants import REJECTED
from annotators.pay import ledger
from annotators.pay.statement import pay_statement
from annotators.places import assign
from annotators.recruitment.panels.reconcile import MATCH_STATUSES, unseen_assignments

from .rehearsal_context import Person, RehearsalContext
from .roles import FINISHED, NOTHING_STORED, STATES_WITHOUT_SERVICE


def check_expectations(scene: RehearsalContext) -> None:
    unsent = {one.code for one, _ in unseen_assignments(scene.recruitment)} if scene.has_service else set()
    ledger.settle_payments(scene.recruitment, by=None)
    for person in scene.people:
        mine = scene.assignment_of(person)
        person.here = (
            NOTHING_STORED if mine is None else FINISHED if mine.submitted_at else mine.released_reason or "at work"
        )
        person.there = scene.panel.standing(person.visit) if person.visit else ""
        if scene.has_service:
            row = scene.submission_of(person)
            person.standing = row.standing if row else "unsent" if mine and mine.code in unsent else ""
        _check_states(scene, person, mine)
        if mine is not None:
            _check_pay(scene, person, mine)
    if wrong := assign.miscounted_batches():
        scene.faults.append(f"{len(wrong)} batches count other places than the places that are held.")
    twice = scene.rows().filter(standing__in=["left_after_work", "surplus", "unreadable"]) if scene.has_service else ()
    for row in twice:
        scene.faults.append(
            f"Reconciliation shows a person as “{MATCH_STATUSES[row.standing][0]}” ({row.word or row.state}), "
            "but heval had no such person."
        )


def _check_states(scene: RehearsalContext, person: Person, mine: Assignment | None) -> None:
    role = person.role
    if role.told and person.told not in role.told:
        person.note(f"Their last page says “{person.told}”, but “{role.told[0]}” was expected.")
    if person.here not in role.here:
        person.note(f"In heval they are “{person.here}”, but “{' or '.join(role.here)}” was expected.")
    there = role.there if scene.has_service else STATES_WITHOUT_SERVICE.get(role.there[0], role.there)
    if person.there and person.there not in there:
        person.note(f"At the panel they are “{person.there}”, but “{' or '.join(there)}” was expected.")
    if not scene.has_service:
        return
    if role.classes and person.standing not in role.classes and (person.standing or scene.panel.shows_leavers):
        words = MATCH_STATUSES[person.standing][0] if person.standing else "not at all"
        person.note(f"Reconciliation shows them as “{words}”, but “{MATCH_STATUSES[role.classes[0]][0]}” was expected.")
    if (
        person.there in ("approved", "rejected", "submitted")
        and mine
        and mine.submitted_at
        and mine.trust != Assignment.Trust.CONFIRMED
    ):
        person.note("The panel shows their work, but it is not confirmed.")


def _check_pay(scene: RehearsalContext, person: Person, mine: Assignment) -> None:
    """The ledger must contain what their last page promised; rejected people are promised nothing."""
    rows = Payment.objects.filter(assignment=mine).exclude(state__in=["failed", "cancelled"]).order_by("pk")
    standing = list(rows)
    person.pay = ", ".join(f"{row.amount:.2f} {row.currency} {row.get_state_display()}" for row in standing)
    told = None if person.there == REJECTED else pay_statement(mine)
    promised = told.amount if told else Decimal(0)
    written = ledger.total_of(row for row in standing if row.kind in Payment.COVERING)
    if written != promised:
        person.note(f"They are promised {promised:.2f} {scene.currency}, but the ledger has {written:.2f}.")
