"""Tabs that stayed behind and questions that cannot be sent lose nothing."""

import pytest

from annotators.models import Inquiry, Response
from annotators.views import pages
from tests.bad_input.annotators.assignments import at_questions, finished, words_of
from tests.players import claimed

pytestmark = pytest.mark.postgres


# Two tabs, and pages out of time


def test_a_tab_that_stayed_behind_overwrites_nothing_and_is_shown_what_is_stored(study, client):
    assignment, address, good = at_questions(study)
    assert client.post(address, good).status_code == 302
    other = {slot: str((int(value) + 1) % 101) for slot, value in good.items()}
    refused = client.post(address, other)
    assert refused.status_code == 409 and "Other answers are already stored" in words_of(refused)
    # Neither does a draft of it, nor a page that is not yet due.
    assert client.post(address, other | {"save": "auto"}).status_code == 409
    early = client.post(f"/p/{assignment.code}/s4/", {"s4.q1": "words"})
    assert early.status_code == 409 and "not stored" in words_of(early) and ">words<" in early.content.decode()
    stored = Response.objects.filter(assignment=assignment, slot__startswith="s2")
    assert {row.slot: f"{row.value:.0f}" for row in stored} == good
    assert finished(assignment).submitted_at and Response.objects.filter(assignment=assignment).count() == 8


def test_the_answers_of_one_person_do_not_fit_the_page_of_another(study, client):
    """Same names of fields, another page key: each page stores under its own assignment and nowhere else."""
    mine, address, good = at_questions(study, "mine")
    theirs = claimed(study, "theirs")
    refused = client.post(f"/p/{theirs.code}/s2.ask/", good)
    assert refused.status_code == 409 and all(f">{value}<" in refused.content.decode() for value in good.values())
    assert not Response.objects.filter(slot__startswith="s2").exists()
    assert client.post(address, good).status_code == 302 and Response.objects.filter(assignment=mine).count() == 5


# The inbox

INQUIRIES = {
    "nothing": ("", "a few words"),
    "blanks": (" \n", "a few words"),
    "zero width": ("\u200b\u200d", "a few words"),
    "NUL": ("a\x00b", "NUL character"),
    "control character": ("a\x07b", "control character"),
    "too long": ("x" * 2001, "at most 2000"),
    "a megabyte": ("x" * 1_000_000, "at most 2000"),
}


@pytest.mark.parametrize(("text", "said"), INQUIRIES.values(), ids=INQUIRIES)
def test_a_question_that_cannot_be_sent_says_why(study, client, text, said):
    address = f"/p/{claimed(study).code}/question/?page=s1"
    response = client.post(address, {"kind": "report", "text": text})
    assert response.status_code == 422 and said in words_of(response) and not Inquiry.objects.exists()


def test_one_person_does_not_fill_the_inbox(study, client, monkeypatch):
    monkeypatch.setattr(pages, "MAX_INQUIRIES", 2)
    one, other = claimed(study), claimed(study)
    sent = [client.post(f"/p/{one.code}/question/", {"text": f"Hello {n}"}) for n in range(3)]
    assert [response.status_code for response in sent] == [302, 302, 422]
    assert "2 messages" in words_of(sent[-1]) and "Hello 2" in sent[-1].content.decode(), (
        "what was typed is there still"
    )
    assert client.post(f"/p/{other.code}/question/", {"text": "Hello"}).status_code == 302
    assert Inquiry.objects.count() == 3


@pytest.mark.parametrize("page", ["%00", "x" * 1000, "%ED%A0%80", "<b>"])
def test_a_question_from_a_page_that_is_none_arrives(study, client, page):
    response = client.post(f"/p/{claimed(study).code}/question/?page={page}", {"kind": "nonsense", "text": "Hello"})
    assert response.status_code == 302 and Inquiry.objects.get().kind == "question"
    refused = client.post(f"/p/{claimed(study).code}/time/?page={page}", {"s1.q1": "yes"})
    assert refused.status_code == 409 and "no such page" in words_of(refused) and ">yes<" in refused.content.decode()
