"""Annotators for tests: they answer pages in process, as a browser would send them."""

import random

from django.http import QueryDict

from annotators import assign
from annotators.models import Assignment, PageVisit
from annotators.pages import page_as_shown, shown_of
from annotators.record import record_page, standing_of


def form(**fields) -> QueryDict:
    data = QueryDict(mutable=True)
    for name, value in fields.items():
        data.setlist(name, value if isinstance(value, list) else [value])
    return data


def claimed(study, person="", recruitment=None, **options) -> Assignment:
    claim = assign.claim_batch(study, assign.annotator_of("panel", person), recruitment, **options)
    assert claim.outcome == "claimed", claim
    return claim.assignment


def open_page(assignment: Assignment, key: str | None = None):
    """Look at a page, as a GET does: (step as shown, its asks)."""
    standing = standing_of(assignment)
    key = key or standing.next_key
    step = standing.steps[key]
    visit = standing.visits.get(key)
    if visit is None:
        made = PageVisit(assignment=assignment, key=key, shown=shown_of(step.page))
        PageVisit.objects.bulk_create([made], ignore_conflicts=True)
        visit = PageVisit.objects.get(assignment=assignment, key=key)
    page = page_as_shown(step.page, visit.shown)
    return step, page, step.protocol.asks(page)


def plausible(asks, rng: random.Random, comment="") -> dict[str, str]:
    """An answer to each question that a careful person might give."""
    answers = {}
    for slot, ask in asks.items():
        kind = ask.field.kind
        if kind == "number":
            answers[slot] = str(rng.randint(ask.field.minimum, ask.field.maximum))
        elif kind == "scale":
            answers[slot] = rng.choice(ask.field.points).key
        elif kind == "choice":
            answers[slot] = ask.field.options[0].key
        elif kind == "exposure":
            answers[slot] = rng.choice(ask.field.exposures)[0]
        elif kind == "text":
            answers[slot] = comment
        elif kind == "tick":
            answers[slot] = "1"
    return answers


def answered(assignment: Assignment, key: str | None = None, rng=None, comment="", **changes):
    """Answer one page; gives the outcome."""
    step, page, asks = open_page(assignment, key)
    answers = plausible(asks, rng or random.Random(1), comment)
    answers.update(changes)
    assignment = Assignment.objects.select_related("study", "recruitment").get(pk=assignment.pk)
    return record_page(assignment, page.key, form(**answers))


def submitted(study, person="", rng=None, comment="", until=None, **options) -> Assignment:
    """Claim a place and answer every page (or those before ``until``)."""
    assignment = claimed(study, person, **options)
    rng = rng or random.Random(person or 0)
    while True:
        assignment = Assignment.objects.select_related("study", "recruitment").get(pk=assignment.pk)
        key = standing_of(assignment).next_key
        if key is None or key == until:
            return assignment
        outcome = answered(assignment, key, rng, comment)
        assert outcome.sent is None, outcome.sent
        if outcome.following is None:
            return Assignment.objects.get(pk=assignment.pk)
