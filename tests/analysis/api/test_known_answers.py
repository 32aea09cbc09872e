"""Test questions and practice items over REST: the same services as on the admin's pages."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from studies.models import Item, Section
from tests.boards import builders as boards
from tests.builders import add_section, draft_study, spa_draft

from .rest import api_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def draft(owner):
    return boards.rating_template(owner, systems=("human", "alpha"))


def errors_of(answer):
    return [(one["row"], one["field"], one["message"]) for one in answer.json()["errors"]]


def test_test_questions_are_made_from_the_texts_of_a_draft(draft):
    api, path = api_of(draft.owner), f"studies/{draft.code}/test-questions/"
    made = api.post(path, {"reference": "human", "positive": 2, "negative": 3})
    assert made.status_code == 201, made.body
    assert made.json() == {"section": 1, "made": {"positive": 2, "negative": 3}}
    listed = api.get(path).json()["results"]
    assert len(listed) == 5 == Item.objects.filter(study=draft, kind="test").count()
    positive = next(row for row in listed if row["type"] == "positive")
    (right,) = positive["right"]
    assert positive["texts"][right["text"] - 1]["system"] == "human"
    assert (right["question"], right["low"], right["high"]) == ("overall", 3.0, 5.0)


def test_given_test_questions_come_as_rows_or_as_a_file(draft):
    api, path = api_of(draft.owner), f"studies/{draft.code}/test-questions/"
    rows = [
        {"prompt": "p000", "text": "Bla bla.", "expected": "low"},
        {"prompt": "p001", "text": "Fine.", "expected": "4-5"},
    ]
    assert api.post(path, {"questions": rows}).json()["made"] == {"given": 2}
    assert api.post(path, {"questions": rows}).status_code == 200
    file = SimpleUploadedFile("t.csv", b"prompt,text,expected\np002,Choose 2.,2\nnone,Bla.,low\n")
    sent = {"file": file, "settings": json.dumps({"section": 1})}
    refused = api.client.post(f"/api/v1/{path}", sent, headers=api.headers)
    assert refused.status_code == 400 and errors_of(refused)[0][:2] == (3, "prompt")
    assert len(api.get(path).json()["results"]) == 2


def test_what_cannot_be_a_test_question_is_refused_by_its_field(draft):
    api, path = api_of(draft.owner), f"studies/{draft.code}/test-questions/"
    for sent, field in (
        ({"section": 7, "damaged": 1}, "section"),
        ({"question": "colour", "damaged": 1}, "question"),
        ({"reference": "nobody", "positive": 1}, "reference"),
        ({"positive": -1}, "positive"),
        ({"damaged": 1, "damages": ["burnt"]}, "damages"),
    ):
        answer = api.post(path, sent)
        assert answer.status_code == 400 and errors_of(answer)[0][1].startswith(field), (sent, answer.body)
    assert api.post(path, {"positive": 1}).status_code == 409
    other = spa_draft(owner=draft.owner)
    Section.objects.filter(study=other).update(purpose="training")
    refused = api.post(f"studies/{other.code}/test-questions/", {"damaged": 1})
    assert "Add one in the admin" in errors_of(refused)[0][2]


def test_practice_items_have_the_right_answers_that_are_sent(owner):
    draft = draft_study(owner=owner)
    section = add_section(draft, "rating", m=2)
    key = section.questions.get().key
    Section.objects.filter(pk=section.pk).update(purpose="training", pass_mark=1)
    api, path = api_of(owner), f"studies/{draft.code}/practice-items/"
    sent = {"prompt": "p000", "systems": ["beta", "alpha"], "right": {key: "4-5"}, "explanation": "It ends well."}
    made = api.post(path, sent)
    assert made.status_code == 201, made.body
    assert api.get(path).json()["results"] == [made.json()]
    (right,) = made.json()["right"]
    assert (right["low"], right["high"], right["explanation"]) == (4.0, 5.0, "It ends well.")
    assert made.json()["texts"][right["text"] - 1]["system"] == "beta"
    refused = api.post(path, sent | {"systems": ["beta", "nobody"]})
    assert refused.status_code == 400 and errors_of(refused)[0][:2] == (2, "systems")
    assert api.post(path, sent).status_code == 409
