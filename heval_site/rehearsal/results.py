"""The results of a rehearsal, as plain values for pages and machines."""

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from annotators.models import Assignment, Payment
from annotators.models.constants import APPROVED, REJECTED, SUBMITTED
from annotators.pay import ledger
from annotators.pay.statement import pay_statement
from annotators.places import assign
from annotators.recruitment.panels.reconcile import MATCH_STATUSES, finished_assignments_missing_at_panel

from .context import FINISHED, NOTHING_STORED, STATES_WITHOUT_SERVICE, Person, RehearsalContext

# Compare each person's state in heval, at the panel and in the ledger with what their role expects.


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


def build_report(rehearsal: RehearsalContext) -> dict[str, Any]:
    """Return the report as JSON values. ``is_ok``: everything was as expected."""
    roles: dict[str, list[Person]] = {}
    for person in rehearsal.people:
        roles.setdefault(person.role.key, []).append(person)
    rows = [_role_row(people) for people in roles.values()]
    faults = list(dict.fromkeys(rehearsal.faults))
    return {
        "is_ok": not faults and all(row["is_ok"] for row in rows),
        "roles": rows,
        "faults": faults,
        "proofs": rehearsal.passed_checks,
        "notes": list(dict.fromkeys(rehearsal.notes)),
        "money": _cost_summary(rehearsal),
    }


def _role_row(people: list[Person]) -> dict[str, Any]:
    role = people[0].role
    faults = list(dict.fromkeys(fault for person in people for fault in person.faults))
    return {
        "key": role.key,
        "label": role.label,
        "people": len(people),
        "expected": role.expected,
        "last_page": _join_counts(person.last_heading for person in people),
        "sent": _join_counts(_describe_way_back(person) for person in people) if role.has_way_back else "",
        "at_panel": _join_counts(person.panel_state.replace("_", " ") for person in people),
        "in_heval": _join_counts(person.site_state.replace("_", " ") for person in people),
        "match_status": _join_counts(
            MATCH_STATUSES[person.match_status][0] for person in people if person.match_status
        ),
        "pay": _join_counts(person.pay for person in people),
        "faults": faults,
        "is_ok": not faults,
    }


def _describe_way_back(person: Person) -> str:
    """Describe where the last page leads, without the code itself."""
    way_back = person.way_back
    if way_back.fields:
        return f"a form to {urlsplit(way_back.url).netloc}"
    if way_back.url:
        return f"{urlsplit(way_back.url).netloc}{' with a code' if urlsplit(way_back.url).query else ''}"
    return "a code to copy" if way_back.code else "nowhere"


def _join_counts(texts: Iterable[str]) -> str:
    """Return one sentence for all people, or one per person with their number."""
    counts = Counter(word for word in texts if word)
    return next(iter(counts)) if len(counts) == 1 else ", ".join(f"{n} {word}" for word, n in counts.items())


def _cost_summary(rehearsal: RehearsalContext) -> dict[str, Any]:
    """Return the cost of these robots as real people, and the cost of the target number of people."""
    reward = rehearsal.reward
    if reward is None:
        return {}
    paid = sum(
        person.site_state == FINISHED and person.panel_state in (APPROVED, SUBMITTED) for person in rehearsal.people
    )
    bonuses = sum(
        (rehearsal.panel.paid_bonus_total(person.visit) for person in rehearsal.people if person.visit), Decimal(0)
    )
    n_places = rehearsal.recruitment.wanted or rehearsal.study.target_n or 0
    return {
        "currency": rehearsal.currency,
        "reward": f"{reward:.2f}",
        "paid": paid,
        "bonuses": f"{bonuses:.2f}",
        "rehearsed": f"{reward * paid + bonuses:.2f}",
        "wanted": n_places,
        "rewards": f"{reward * n_places:.2f}",
    }
