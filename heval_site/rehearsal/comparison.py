"""Compare each person's state in heval, at the panel and in the ledger with what their role expects."""

from decimal import Decimal

from annotators.models import Assignment, Payment
from annotators.models.constants import REJECTED
from annotators.pay import ledger
from annotators.pay.statement import pay_statement
from annotators.places import assign
from annotators.recruitment.panels.reconcile import MATCH_STATUSES, finished_assignments_missing_at_panel

from .rehearsal_context import Person, RehearsalContext
from .roles import FINISHED, NOTHING_STORED, STATES_WITHOUT_SERVICE


def record_unmet_expectations(rehearsal: RehearsalContext) -> None:
    unsent = (
        {one.code for one, _ in finished_assignments_missing_at_panel(rehearsal.recruitment)}
        if rehearsal.has_service
        else set()
    )
    ledger.update_ledger(rehearsal.recruitment, by=None)
    for person in rehearsal.people:
        mine = rehearsal.assignment_of(person)
        person.here = (
            NOTHING_STORED if mine is None else FINISHED if mine.submitted_at else mine.released_reason or "at work"
        )
        person.there = rehearsal.panel.standing(person.visit) if person.visit else ""
        if rehearsal.has_service:
            row = rehearsal.submission_of(person)
            person.standing = row.standing if row else "unsent" if mine and mine.code in unsent else ""
        _check_states(rehearsal, person, mine)
        if mine is not None:
            _check_pay(rehearsal, person, mine)
    if wrong := assign.find_miscounted_batches():
        rehearsal.faults.append(f"{len(wrong)} batches count other places than the places that are held.")
    twice = (
        rehearsal.rows().filter(standing__in=["left_after_work", "surplus", "unreadable"])
        if rehearsal.has_service
        else ()
    )
    for row in twice:
        rehearsal.faults.append(
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
    written = ledger.total_amount(row for row in standing if row.kind in Payment.COVERING)
    if written != promised:
        person.note(f"They are promised {promised:.2f} {scene.currency}, but the ledger has {written:.2f}.")
