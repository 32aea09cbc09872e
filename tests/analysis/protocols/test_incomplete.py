"""Who answered all that they were asked is complete, though others were asked more or had more to mark."""

import pytest

from analysis.data.frames import assignments_frame, responses_frame
from analysis.data.rule_input import build_rule_input
from analysis.exclusions import FAIL, PASS
from annotators.models import Response
from annotators.places import monitor
from studies.models import Item, Study
from studies.models.design import REGISTRY
from studies.services import lifecycle
from tests.builders import add_marks, choice_study, draft_study, launched
from tests.players import MAX_THREE, choosing, play

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("same_orders")]


def states(study, lacking=None):
    """What the rule finds; of the assignment ``lacking`` one answer is not there."""
    study = Study.objects.get(pk=study.pk)
    rows = responses_frame(study).rows
    rows = rows.drop(index=rows.index[(rows["assignment"] == lacking) & (rows["question"] != "errors")][:1])
    material = build_rule_input(study, rows, assignments_frame(study).rows)
    return REGISTRY["incomplete"].flag(material).states


@pytest.mark.slow
def test_who_marks_fewer_errors_has_answered_as_much():
    study = draft_study(prompts=30, target_n=5, instructions="")
    add_marks(study, m=2)
    launched(study)
    people = [play(study, n) for n in range(5)]
    assert len({Response.objects.filter(assignment=one).count() for one in people}) > 1, "they mark more and less"
    assert set(states(study).values()) == {PASS}
    assert states(study, people[0].pk)[people[0].pk] == FAIL


def test_who_came_after_an_item_was_retired_owes_no_answer_to_it():
    study = choice_study(prompts=8, m=4, target_n=4, annotators_per_batch=2, settings={"strategy": "any"})
    first, other = (choosing(study, person, lambda item: "beta") for person in "ab")
    item = Item.objects.filter(placements__batch=first.batch).order_by("number").first()
    lifecycle.amend(
        Study.objects.get(pk=study.pk), {"item": {item.pk: {"retired": True}}}, reason="a broken text", by=None
    )
    late = {one.batch_id: one for one in (choosing(study, person, lambda item: "beta") for person in "cd")}
    counts = {one.pk: one.responses.count() for one in (first, other, *late.values())}
    assert counts[late[first.batch_id].pk] == 3 and sorted(counts.values()) == [3, 4, 4, 4]
    assert set(states(study).values()) == {PASS}
    short = late[other.batch_id].pk
    assert states(study, short)[short] == FAIL


def test_who_gives_third_labels_is_asked_what_their_batch_holds():
    study = choice_study(prompts=2, m=2, target_n=2, **MAX_THREE)
    disputed = Item.objects.filter(study=study).order_by("number").first().pk
    for person in "ab":
        choosing(study, person, lambda item, p=person: "beta" if item == disputed and p == "b" else "alpha")
    assert monitor.settle_or_top_up_study_items(study) == 1
    third = choosing(study, "c", lambda item: "beta")
    assert third.responses.count() == 1
    assert set(states(study).values()) == {PASS}
