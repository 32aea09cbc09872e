"""What Python says on annotators' pages is in the study's language, and no language stays for the next request of the thread."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from annotators.models import Assignment, OutcomePay, Payment
from annotators.models.constants import REGISTRY as CHANNELS
from annotators.pages.form_data import describe_posted_answers
from annotators.pages.record import full_page_state
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from annotators.pay import statement, verdict_status
from annotators.pay.evidence import evidence_sentences
from annotators.pay.promises import early_end_pay_lines
from annotators.places import deadlines
from annotators.places.places import offer_range
from annotators.views import lookup, pages
from studies.design.wording import wording_of
from studies.language import active_language, gettext, in_language
from tests.builders import panel, promised, recruitment, spa_draft, user
from tests.launching import launched
from tests.players import claimed, form
from tests.pseudo_language import LANGUAGE, give_pseudo_language, in_pseudo, pseudo_page_language

pytestmark = pytest.mark.django_db
LATIN = re.compile("[A-Za-z]{2,}")


def both(act):
    """Return what is said in English and in the pseudo language."""
    english = act()
    with in_language(pseudo_page_language()):
        foreign = act()
    return english, foreign


def latin_words(*texts: str) -> list[str]:
    return [word for text in texts for word in LATIN.findall(text)]


@pytest.fixture
def study():
    return launched(give_pseudo_language(spa_draft(owner=user("owner"))))


def test_a_page_has_the_studys_language_and_the_next_request_of_the_thread_has_none(study):
    link = panel(study, opens_at=timezone.now() + timedelta(days=1))
    title, text = lookup.NOTICES["not_open"]
    page = Client().get(f"/e/{link.key}/?who=a&session=1").content.decode()
    assert in_pseudo(title) in page and in_pseudo(text) in page and f'lang="{LANGUAGE}"' in page
    assert active_language().words == "en" and gettext(title) == title
    # An address of no study is answered in English, also after such a page.
    assert "There is nothing here" in Client().get("/p/nothing/").content.decode()


@pytest.mark.parametrize(
    "query", ["?who=a&who=b", "?", "?who=[ID]", f"?who={'a' * 201}"], ids=["repeated", "no id", "unfilled", "too long"]
)
def test_why_a_link_does_not_work_is_said_in_the_studys_language(study, query):
    page = Client().get(f"/e/{panel(study).key}/{query}").content.decode()
    (problem,) = re.findall('<div class="problems" role="alert"><h2>[^<]*</h2><p>([^<]*)</p>', page)
    assert problem and not latin_words(problem)


def test_refusals_of_a_page_are_in_the_studys_language(study):
    mine = claimed(study, "w")
    path = f"/p/{mine.code}/"
    Client().get(path, follow=True)
    key = full_page_state(mine).next_key
    page = Client().post(f"{path}{key}/", {"other": "1"}).content.decode()
    assert in_pseudo("This page does not ask for ") in page
    page = Client().post(f"{path}question/", {"text": " "}).content.decode()
    assert in_pseudo("Please write a few words.") in page
    page = Client().post(f"{path}s9.p9/", {"s9.q1": "7"}).content.decode()
    assert in_pseudo("There is no such page in your part of this study.") in page
    withdraw_annotator_and_erase_texts(Assignment.objects.get(pk=mine.pk))
    page = Client().post(f"{path}{key}/", {"other": "1"}).content.decode()
    assert in_pseudo("You have left this study.") in page


@pytest.mark.parametrize("refusal", pages.NOT_STORED_MESSAGES)
def test_each_reason_why_answers_are_not_stored_is_translated(refusal):
    english, foreign = both(lambda: pages._not_stored_message(refusal(), Assignment()))
    assert latin_words(english) and not latin_words(foreign)


def test_each_text_about_a_place_is_translated():
    now = timezone.now()

    def texts():
        over = [deadlines._expired_status(state).text for state in deadlines.EXPIRED_TEXTS]
        kept = [
            deadlines._reserved_status(now + left, now)
            for left in (timedelta(seconds=30), timedelta(minutes=1.5), timedelta(minutes=9))
        ]
        closing = [
            deadlines._closing_status(left, may_ask=True)
            for left in (timedelta(seconds=30), timedelta(minutes=2), timedelta(days=1), timedelta(days=3))
        ]
        both_texts = [text for one in (*kept, *closing) for text in (one.text, one.until_text)]
        return [*over, *both_texts]

    english, foreign = both(texts)
    assert english[5:11:2] == [
        "Your place is kept for less than a minute.",
        "Your place is kept for 1 more minute.",
        "Your place is kept for 9 more minutes.",
    ]
    assert english[11::2] == [
        "The study has been closed. You can finish within less than a minute.",
        "The study has been closed. You can finish within 2 more minutes.",
        "The study has been closed. You can finish within 1 more day.",
        "The study has been closed. You can finish within 3 more days.",
    ]
    assert not latin_words(*(text.replace("%(time)s", "") for text in foreign))
    assert sum("%(time)s" in text for text in english) == sum("%(time)s" in text for text in foreign) == 5


def test_answers_that_are_shown_again_are_named_in_the_studys_language(study):
    mine = claimed(study, "w")
    step = next(step for step in full_page_state(mine).steps.values() if step.page_fields())
    data = form(**{"unseen.i1.A": "1"})
    english, foreign = both(lambda: [answer.said for answer in describe_posted_answers(step.page_fields(), data)])
    assert english == ["I cannot see this, or do not want to"] and not latin_words(*foreign)


# Pay


def test_what_an_early_end_pays_is_said_in_the_studys_language(study):
    link = promised(panel(study), failed_checks="all", fault="all", withdrawn="share", full="0.10")
    wording = wording_of(study, study.designs.get().pk)
    english, foreign = both(lambda: early_end_pay_lines(link, "USD", wording))
    assert [line.pays for line in english] == [
        "All of it",
        "0.10 USD",
        "A share for the pages that you have sent",
        "Nothing",
    ]
    assert set(
        latin_words(*(line.pays for line in foreign), *(reason for line in foreign for reason in line.when))
    ) == {"USD"}
    ranges = both(lambda: offer_range(wording))
    assert ranges[0].minutes == ranges[1].minutes and ranges[1].reward.replace(",", ".") == ranges[0].reward


@pytest.mark.parametrize("outcome", ["complete", OutcomePay.Outcome.SCREENED_OUT, OutcomePay.Outcome.WITHDRAWN])
@pytest.mark.parametrize("channel", ["prolific", "open_link"])
def test_how_people_are_paid_is_said_in_the_studys_language(channel, outcome):
    english, foreign = both(lambda: statement._payment_way_text(channel, outcome))
    assert english and set(latin_words(foreign)) <= {"Prolific"}


def test_the_evidence_of_a_rejection_is_said_in_the_studys_language():
    seen = {"checks": 3, "failed": 1, "seconds": 61, "minutes": 12, "z": -3.5, "people": 12, "answers": 0}
    english, foreign = both(lambda: evidence_sentences(seen) + evidence_sentences(seen | {"z": 4}))
    assert english[:4] == [
        "1 of 3 questions with a known answer was not answered as expected.",
        "You needed 1 minute and 1 second from your first page to your last page. The announced time was 12 minutes.",
        "This is much less than others needed. People who finished: 12.",
        "No answers from you are stored.",
    ]
    assert len(foreign) == 8 and not latin_words(*foreign)


def test_the_stages_of_work_are_named_in_the_studys_language():
    kinds = [
        Payment(amount="2.50", currency="USD", kind=kind, state=state, way=way)
        for kind in Payment.Kind
        for state in (Payment.State.PAID, Payment.State.ORDERED, Payment.State.DUE)
        for way in (Payment.Way.APPROVAL, Payment.Way.HAND)
    ]

    def stages():
        mine = Assignment(submitted_at=timezone.now())
        return [
            verdict_status._received_stage(mine, None),
            verdict_status._received_stage(Assignment(), None),
            *verdict_status._payment_stages(kinds, is_rejected=False),
        ]

    english, foreign = both(stages)
    details = {stage.detail for stage in english}
    assert {
        "2.50 USD",
        "2.50 USD, a bonus, on its way",
        "2.50 USD, owed to you",
        "2.50 USD, with the approval",
    } <= details
    shown = latin_words(*(text for stage in foreign for text in (stage.name, stage.detail)))
    assert len(foreign) == 32 and set(shown) == {"USD"}


# Links


@pytest.mark.parametrize("channel", sorted(CHANNELS))
def test_the_way_back_of_each_channel_is_named_in_the_studys_language(study, channel):
    link = recruitment(study, channel, settings={"site": "sona.example.org"})
    ids = {"person": "p", "session": "1", "task": "t"}

    def texts():
        ways = [CHANNELS[channel].way_back(link, outcome, ids, "R") for outcome in ("complete", "withdrawn", "full")]
        return [text for way in ways for text in (way.label, way.instructions)]

    english, foreign = both(texts)
    names = {"Prolific", "Connect", "SONA"}
    assert latin_words(*english) and set(latin_words(*foreign)) <= names
    arrivals = [{}, dict.fromkeys(("PROLIFIC_PID", "participantId", "survey_code", "i", "participant"), "?")]
    for parameters in arrivals:
        english, foreign = both(lambda given=parameters: CHANNELS[channel].read_arrival(link, given).problem)
        parts = {
            "PROLIFIC",
            "PID",
            "STUDY",
            "ID",
            "SESSION",
            "survey",
            "code",
            "participantId",
            "assignmentId",
            "projectId",
        }
        assert set(latin_words(foreign)) <= names | parts, english
    assert not latin_words(both(lambda: gettext(CHANNELS[channel].preview_words))[1])


# Previews for researchers


def test_a_preview_is_in_the_studys_language_and_the_page_around_it_in_english(study):
    from annotators.admin.preview import render_preview_page

    request = type("Request", (), {"GET": {}, "method": "GET", "user": user("owner"), "headers": {}})()
    page = render_preview_page(request, study, "start")
    assert f'lang="{LANGUAGE}"' in page.html and active_language().words == "en"
    assert page.names["start"] == "Instructions"
