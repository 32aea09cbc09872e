"""Submissions that a panel shows of work that was done here."""

from annotators.places import assign
from annotators.places.places import compute_receipt
from annotators.recruitment.panels import SubmissionSnapshot
from annotators.recruitment.panels.reconcile import import_submissions_and_release_places


def shown(recruitment, *states):
    """The panel shows these works; ``states``: (assignment, state)."""
    seen = [
        SubmissionSnapshot("T", f"S{one.pk}", f"person {one.pk}", state, code=compute_receipt(one.code))
        for one, state in states
    ]
    for one, _ in states:
        key = assign.hash_person_id(recruitment.pool, f"person {one.pk}")
        type(one.annotator).objects.filter(pk=one.annotator_id).update(pool=recruitment.pool, external_id=key)
    return import_submissions_and_release_places(recruitment, seen, "service")
