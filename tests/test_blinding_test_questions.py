"""Annotators cannot tell test questions from other items: not by a word, not by the page's form, not by length and not by place."""

import re
from statistics import mean

import pytest

from annotators.models import Assignment
from annotators.pages.record import full_page_state
from annotators.places import assign
from studies.models import Exposure, Item, Placement, System
from studies.services.known_answers import KnownAnswerRequest as Request
from studies.services.known_answers import make_test_questions_and_delete_test_runs
from tests import builders
from tests.known_answers import draft
from tests.leaks import all_bytes, leaks
from tests.robots import Robot

pytestmark = pytest.mark.django_db
PROTOCOLS = ("rating", "two_choice", "relative")


def launched(protocol, **settings):
    """A launched study with test questions of every type. Its secret names are rare words."""
    study, section, owner = draft(protocol, positive_share=0.2, negative_share=0.2, **settings)
    System.objects.filter(study=study, name="human").update(name="qxzhuman")
    counts = {"positive": 8, "negative": 8, "damaged": 8}
    request = Request(section.questions.first(), counts, study.systems.get(name="qxzhuman"))
    make_test_questions_and_delete_test_runs(section, request, by=owner)
    System.objects.filter(study=study, reference="test").update(name="qxzmadeup")
    return builders.launched(study, owner)


def played(study):
    """A person who has answered all pages, over HTTP."""
    robot = Robot(f"/e/{builders.recruitment(study).key}/?who=ann&session=s")
    robot.play()
    return robot


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_page_names_a_source_a_type_or_a_known_answer(protocol):
    study = launched(protocol)
    robot = played(study)
    sent = all_bytes(robot.responses)
    words = {"reference": "qxzhuman", "source": "qxzmadeup"}
    assert not leaks(sent, words)
    for word in (b"positive", b"negative", b"damaged", b"planted", b"test question", b"attention", b"expected"):
        assert word not in sent.lower(), word


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_pages_with_and_without_a_test_question_have_the_same_form(protocol):
    study = launched(protocol)
    robot = played(study)
    assignment = study.assignments.get()
    kinds = dict(Item.objects.filter(study=study).values_list("pk", "kind"))
    shapes = {"test": set(), "live": set()}
    for key, step in full_page_state(assignment).steps.items():
        body = next(r for r in robot.responses if r.request["PATH_INFO"].endswith(f"/{key}/") and r.status_code == 200)
        for item in step.page.items:
            shapes[kinds[item.id]].add(shape(body.content.decode()))
    assert shapes["test"] and shapes["test"] <= shapes["live"]


def shape(body):
    """The elements of a page with the names of their attributes, without texts and values."""
    return tuple(
        (tag, tuple(sorted(re.findall(r"\s([a-z-]+)=", attributes))))
        for tag, attributes in re.findall(r"<([a-z0-9]+)((?:\s[^>]*)?)>", body)
        if tag not in {"p", "br", "em", "strong"}
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_lengths_and_numbers_of_texts_do_not_tell(protocol):
    study = launched(protocol)
    lengths = {"test": [], "live": []}
    counts = {"test": set(), "live": set()}
    items = {}
    for item, kind, text in Exposure.objects.filter(item__study=study).values_list(
        "item_id", "item__kind", "output__text"
    ):
        lengths[kind].append(len(text.split()))
        items.setdefault((kind, item), []).append(text)
    for (kind, _), texts in items.items():
        counts[kind].add(len(texts))
    assert counts["test"] == counts["live"]
    assert abs(mean(lengths["test"]) - mean(lengths["live"])) < 2
    assert min(lengths["live"]) <= min(lengths["test"]) and max(lengths["test"]) <= max(lengths["live"])


def test_people_meet_test_questions_at_any_place():
    study = launched("rating")
    kinds = dict(Item.objects.filter(study=study).values_list("pk", "kind"))
    places = []
    for number in range(study.batches.count()):
        claim = assign.claim_batch(
            study, assign.get_or_create_annotator("p", f"n{number}"), origin=Assignment.Origin.ROBOT, is_consented=True
        )
        Assignment.objects.filter(pk=claim.assignment.pk).update(seed=number)  # else it is random, and so is this test
        claim.assignment.refresh_from_db()
        shown = [item.id for step in full_page_state(claim.assignment).steps.values() for item in step.page.items]
        places += [n / (len(shown) - 1) for n, item in enumerate(shown) if kinds[item] == "test"]
    assert len(places) > 15 and 0.3 < mean(places) < 0.7
    assert min(places) < 0.2 and max(places) > 0.8
    assert Placement.objects.filter(batch__study=study, item__kind="test").count() >= len(places)
