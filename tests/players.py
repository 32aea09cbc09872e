"""Annotators for tests: they answer pages in process, as a browser would send them."""

import random

from django.http import QueryDict

from annotators.models import Assignment, PageVisit
from annotators.pages.form_data import parse_page_form
from annotators.pages.record import full_page_state, record_page_answers, restore_shown_step
from annotators.pages.sequence import page_snapshot
from annotators.participation.simulate import robot_refusal_message
from annotators.places import assign
from annotators.places.places import assignment_code
from studies.models import Exposure, Item
from studies.protocols.base.fields import TIE, Robot


class Perceiving(Robot):
    """A robot that perceives these strengths of systems, where its protocol asks for them; its other answers are chance."""

    def __init__(self, rng, strengths, comment=""):
        super().__init__(rng, comment)
        self.strengths, self.middle = strengths, sum(strengths.values()) / len(strengths)

    def strength(self, exposure_id):
        return self.strengths.get(Exposure.objects.get(pk=exposure_id).output.system.name, self.middle)


def form(**fields) -> QueryDict:
    data = QueryDict(mutable=True)
    for name, value in fields.items():
        data.setlist(name, value if isinstance(value, list) else [value])
    return data


def claimed(study, person="", recruitment=None, **options) -> Assignment:
    claim = assign.claim_batch(study, assign.get_or_create_annotator("panel", person), recruitment, **options)
    assert claim.outcome == "claimed", claim
    return claim.assignment


def open_page(assignment: Assignment, key: str | None = None):
    """Look at a page, as a GET does: (step as shown, its asks)."""
    standing = full_page_state(assignment)
    key = key or standing.next_key
    step = standing.steps[key]
    visit = standing.visits.get(key)
    if visit is None:
        made = PageVisit(assignment=assignment, key=key, shown=page_snapshot(step.page))
        PageVisit.objects.bulk_create([made], ignore_conflicts=True)
        visit = PageVisit.objects.get(assignment=assignment, key=key)
    step = restore_shown_step(step, visit)
    return step, step.page, step.page_fields()


def plausible(assignment: Assignment, key: str | None = None, rng=None, comment="") -> dict[str, str]:
    """What a careful person might send from a page, the next one where no key is given."""
    step, _, asks = open_page(assignment, key)
    answers = Robot(rng or random.Random(1), comment).answers(step.protocol, asks)
    sent = parse_page_form(step, asks, form(**answers))
    assert sent.is_valid, robot_refusal_message(step, sent)
    return answers


def sent_from(path: str, rng=None) -> dict[str, str] | None:
    """What a browser sends from the page at this address; None where nothing is asked any more."""
    address, key = path.split("/")[2:4]
    assignment = Assignment.objects.select_related("study", "recruitment").get(code=assignment_code(address))
    return {"go": "1"} | plausible(assignment, key, rng) if key in full_page_state(assignment).steps else None


def answered(assignment: Assignment, key: str | None = None, rng=None, comment="", **changes):
    """Answer one page; gives the outcome."""
    key = key or full_page_state(assignment).next_key
    answers = plausible(assignment, key, rng, comment) | changes
    assignment = Assignment.objects.select_related("study", "recruitment").get(pk=assignment.pk)
    return record_page_answers(assignment, key, form(**answers))


def submitted(study, person="", rng=None, comment="", until=None, **options) -> Assignment:
    """Claim a place and answer every page (or those before ``until``)."""
    assignment = claimed(study, person, **options)
    rng = rng or random.Random(person or 0)
    while True:
        assignment = Assignment.objects.select_related("study", "recruitment").get(pk=assignment.pk)
        key = full_page_state(assignment).next_key
        if key is None or key == until:
            return assignment
        if answered(assignment, key, rng, comment).next_key is None:
            return Assignment.objects.get(pk=assignment.pk)


STRENGTHS = {"alpha": 0.0, "beta": 0.6, "gamma": 1.1}


def play(study, n, until=None, strengths=STRENGTHS):
    """Somebody who answers as a robot would, and now and then says that both are alike, or that they cannot."""
    rng = random.Random(n)
    assignment = claimed(study, f"person {n}")
    done = 0
    while (key := full_page_state(assignment).next_key) is not None and (until is None or done < until):
        step, page, asks = open_page(assignment, key)
        sent = Perceiving(rng, strengths, "because of its words").answers(step.protocol, asks)
        for slot, ask in asks.items():
            if ask.field.kind == "exposure" and rng.random() < 0.2:
                sent[slot] = TIE
            if ask.skip_reasons and rng.random() < 0.2:
                sent[slot] = ""
                sent[f"{slot}.skip"] = "cannot_judge"
        assert record_page_answers(assignment, page.key, form(**sent)).sent is None
        assignment.refresh_from_db()
        done += 1
    return assignment


MAX_THREE = {"settings": {"strategy": "max_three"}, "annotators_per_batch": 2}


def choosing(study, person, prefers, until=None):
    """Somebody who takes a batch and chooses, on each page, what ``prefers(item)`` names."""
    assignment = claimed(study, person)
    while (key := full_page_state(assignment).next_key) is not None and key != until:
        _, page, asks = open_page(assignment)
        systems = {
            e.pk: e.output.system.name
            for e in Item.objects.get(pk=page.items[0].id).exposures.select_related("output__system")
        }
        wanted = prefers(page.items[0].id)
        answers = {
            slot: next((label for label, exposure in ask.field.exposures if systems[exposure] == wanted), wanted)
            for slot, ask in asks.items()
        }
        answered(assignment, key, **answers)
        assignment.refresh_from_db()
    return assignment


def many(study, n, chance, seed=1, first=0):
    """``n`` people, each of whose choices is beta with this chance."""
    rng = random.Random(seed)
    for number in range(first, first + n):
        choosing(study, f"p{number}", lambda item: "beta" if rng.random() < chance else "alpha")
