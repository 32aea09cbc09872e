"""What the last pages say, and those beside a person's own."""

import pytest
from django.template.loader import render_to_string

from annotators.models import Assignment
from annotators.recruitment.channels import WayBack
from tests.annotators.pages.elements import Elements, at, seen
from tests.builders import panel, spa_study
from tests.players import claimed


def ended(outcome, **more):
    context = {
        "study": {"public_title": "Reading", "contact": "", "retention": "", "language": "en", "withdrawal_blanks_ratings": False, "consent": ""},
        "outcome": outcome, "receipt": "AAAAA-BBBBB", "way_back": WayBack(code="AAAAA-BBBBB"), "debriefing": "", "is_late": False,
        "may_withdraw": False, "assignment_path": "/p/c/", "submitted_at": None, "more": None,
    }  # fmt: skip
    return Elements(render_to_string("annotate/done.html", context | more))


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ("complete", "All your answers are stored."),
        ("withdrawn", "You have left the study"),
        ("screened_out", "You did nothing wrong."),
        ("failed_checks", "Two of your answers to them were different"),
        ("full", "No place was free"),
        ("closed", "It was closed before you sent any answers"),
    ],
)
def test_each_end_has_honest_words_and_can_be_reopened(outcome, words):
    page = ended(outcome)
    assert words in page.words
    assert "You can open this page again at any time." in page.words
    assert "AAAAA-BBBBB" in page.words


def test_the_way_back_is_a_link_or_a_form_and_the_code_can_be_copied():
    page = ended("complete")
    assert [attrs for attrs in page.of("button") if attrs.get("data-copies") == "code"]
    assert "hidden" in page.of("button")[0]  # it needs the script, which shows it
    link = ended("complete", way_back=WayBack(url="https://panel.example.org/done?cc=C1"))
    assert "https://panel.example.org/done?cc=C1" in [attrs.get("href") for attrs in link.of("a")]
    assert "AAAAA-BBBBB" in link.words
    posted = ended("complete", way_back=WayBack(url="https://panel.example.org/x", fields={"a": '1"'}))
    assert posted.of("form")[0] == {"method": "post", "action": "https://panel.example.org/x"}
    assert posted.named("a")[0]["value"] == '1"'


def test_the_page_says_truthfully_that_answers_are_late_and_shows_the_code():
    page = ended("complete", is_late=True)
    assert "another person had it" in page.words and "marked as late" in page.words
    assert "AAAAA-BBBBB" in page.words
    assert "late" not in ended("complete").words


@pytest.mark.django_db
def test_leaving_says_first_what_becomes_of_everything(client):
    assignment = claimed(spa_study(withdrawal_blanks_ratings=True))
    page = seen(client.get(at(assignment) + "withdraw/"))
    assert "all your ratings" in page.words and "You have not finished" in page.words
    assert Assignment.objects.get().withdrawn_at is None
    client.post(at(assignment) + "withdraw/", {"leave": "1"})
    done = seen(client.get(at(assignment) + "done/"))
    assert "We have also deleted your ratings" in done.words and "Leave the study" not in done.words


@pytest.mark.django_db
def test_a_question_that_could_not_be_sent_is_not_lost(client):
    assignment = claimed(spa_study())
    address = at(assignment) + "question/?page=s1"
    refused = client.post(address, {"kind": "report", "text": "w" * 2001})
    assert refused.status_code == 422
    assert "w" * 2001 in seen(refused).words
    assert [attrs["value"] for attrs in seen(refused).named("kind") if "checked" in attrs] == ["report"]
    sent = client.post(address, {"kind": "report", "text": "Text B is cut off."})
    assert "Your message has arrived" in seen(client.get(sent["Location"])).words
    assert assignment.inquiries.get().page_key == "s1"


@pytest.mark.django_db
def test_what_was_agreed_to_can_be_read_again(client):
    address = f"/e/{panel(spa_study()).key}/?who=anna"
    client.post(address, {"start": "1", "agree": "1"})
    page = seen(client.get(at(Assignment.objects.get()) + "consent/"))
    assert "You agreed on" in page.words and "to version 1" in page.words
    assert "You take part of your own free will." in page.words
