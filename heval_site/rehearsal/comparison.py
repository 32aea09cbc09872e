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


def update_ledger_and_record_mismatches(rehearsal: RehearsalContext) -> None:
    unsent = (
        {assignment.code for assignment, _ in finished_assignments_missing_at_panel(rehearsal.recruitment)}
        if rehearsal.has_service
        else set()
    )
    ledger.update_ledger(rehearsal.recruitment, by=None)
    for person in rehearsal.people:
        assignment = rehearsal.assignment_of(person)
        person.site_state = (
            NOTHING_STORED
            if assignment is None
            else FINISHED
            if assignment.submitted_at
            else assignment.released_reason or "at work"
        )
        person.panel_state = rehearsal.panel.submission_state(person.visit) if person.visit else ""
        if rehearsal.has_service:
            row = rehearsal.submission_of(person)
            person.match_status = row.standing if row else "unsent" if assignment and assignment.code in unsent else ""
        _check_states(rehearsal, person, assignment)
        if assignment is not None:
            _check_pay(rehearsal, person, assignment)
    if miscounted := assign.find_miscounted_batches():
        rehearsal.faults.append(f"{len(miscounted)} batches count other places than the places that are held.")
    unknown_people = (
        rehearsal.submissions().filter(standing__in=["left_after_work", "surplus", "unreadable"])
        if rehearsal.has_service
        else ()
    )
    for row in unknown_people:
        rehearsal.faults.append(
            f"Reconciliation shows a person as “{MATCH_STATUSES[row.standing][0]}” ({row.word or row.state}), "
            "but heval had no such person."
        )


def _check_states(rehearsal: RehearsalContext, person: Person, assignment: Assignment | None) -> None:
    role = person.role
    if role.last_headings and person.last_heading not in role.last_headings:
        person.add_fault(f"Their last page says “{person.last_heading}”, but “{role.last_headings[0]}” was expected.")
    if person.site_state not in role.site_states:
        person.add_fault(
            f"In heval they are “{person.site_state}”, but “{' or '.join(role.site_states)}” was expected."
        )
    panel_states = (
        role.panel_states
        if rehearsal.has_service
        else STATES_WITHOUT_SERVICE.get(role.panel_states[0], role.panel_states)
    )
    if person.panel_state and person.panel_state not in panel_states:
        person.add_fault(
            f"At the panel they are “{person.panel_state}”, but “{' or '.join(panel_states)}” was expected."
        )
    if not rehearsal.has_service:
        return
    if (
        role.classes
        and person.match_status not in role.classes
        and (person.match_status or rehearsal.panel.shows_leavers)
    ):
        status = MATCH_STATUSES[person.match_status][0] if person.match_status else "not at all"
        person.add_fault(
            f"Reconciliation shows them as “{status}”, but “{MATCH_STATUSES[role.classes[0]][0]}” was expected."
        )
    if (
        person.panel_state in ("approved", "rejected", "submitted")
        and assignment
        and assignment.submitted_at
        and assignment.trust != Assignment.Trust.CONFIRMED
    ):
        person.add_fault("The panel shows their work, but it is not confirmed.")


def _check_pay(rehearsal: RehearsalContext, person: Person, assignment: Assignment) -> None:
    """Check that the ledger contains what the last page promised. Rejected people are promised nothing."""
    rows = Payment.objects.filter(assignment=assignment).exclude(state__in=["failed", "cancelled"]).order_by("pk")
    payments = list(rows)
    person.pay = ", ".join(f"{row.amount:.2f} {row.currency} {row.get_state_display()}" for row in payments)
    statement = None if person.panel_state == REJECTED else pay_statement(assignment)
    promised = statement.amount if statement else Decimal(0)
    ledger_amount = ledger.total_amount(row for row in payments if row.kind in Payment.COVERING)
    if ledger_amount != promised:
        person.add_fault(
            f"They are promised {promised:.2f} {rehearsal.currency}, but the ledger has {ledger_amount:.2f}."
        )
