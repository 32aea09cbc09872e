"""The lines of annotators' pages: what is said of an answer, an agreement or a question that is not stored.

A page says beside a field what it asks for, so that the cause and the next step are often the same words.
"""

import re
from html import unescape

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from annotators.models import Assignment, Inquiry
from annotators.pages.record import full_page_state
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from annotators.places import assign
from annotators.places.places import new_limited_address
from studies.models import Question
from tests import builders, players
from tests.messages.forms.scenarios import me, said
from tests.messages.lines import NOTHING, Line, Shown

FIELDS, PAGES, VIEWS = "studies/protocols/base", "annotators/pages", "annotators/views"
APPLE = [{"key": "a", "label": "Apple"}, {"key": "b", "label": "Bread"}]
ASKED = [
    {"key": "n", "scale": {"kind": "percent"}},
    {"key": "c", "scale": {"kind": "choice", "options": APPLE}, "skip_reasons": [{"key": "no", "label": "I cannot"}]},
    {"key": "l", "scale": {"kind": "likert", "labels": ["bad", "middling", "good"]}},
    {"key": "a", "scale": {"kind": "acknowledgement", "high": "I have read it."}},
    {"key": "t", "scale": {"kind": "text", "minimum_length": 5, "maximum_length": 20}},
    {"key": "d", "scale": {"kind": "number", "minimum": 1, "maximum": 5}},
]


def survey():
    study = builders.draft_study(systems=("alpha", "beta"), prompts=4, target_n=2, owner=me(), instructions="")
    builders.add_survey(study, position=1, questions=[{"text": f"{one['key']}?"} | one for one in ASKED])
    builders.add_spa(study, position=2, m=2)
    return builders.launched(study, me())


def of(add, is_required=True):
    """A study of one section."""

    def make():
        study = builders.draft_study(systems=("alpha", "beta", "gamma"), prompts=6, target_n=2, owner=me())
        add(study)
        Question.objects.filter(section__study=study).update(required=is_required)
        return builders.launched(study, me())

    return make


CHOICE, RANKING, MARKS = (
    of(builders.add_choice),
    of(lambda study: builders.add_ranking(study, allows_ties=False), False),
    of(builders.add_marks),
)


def best_worst():
    study = builders.draft_study(systems=("alpha", "beta", "gamma", "delta"), prompts=6, target_n=2, owner=me())
    builders.add_section(study, "best_worst", settings={"noun": "story"})
    study.sections.get().questions.update(required=False)
    return builders.launched(study, me())


def page_says(response) -> list[Shown]:
    """With the reason why nothing was stored, which is linked to where its button leads."""
    html = response.content.decode()
    url = (re.findall(r'class="button first" href="([^"]*)"', html) or [""])[-1]
    reasons = re.findall(r'<p id="refused">(.*?)</p>', html, re.DOTALL)
    loose = [unescape(re.sub(r"<[^>]+>", "", one)) for one in re.findall(r">([^<>]+)<", html)]
    return [*(Shown(unescape(one), url) for one in reasons), *said(response), *map(Shown, loose)]


def sent(make, *changes, before=None, key="", **more):
    """What the first page says. ``changes``: the number of an answer on the page and what is sent for it, or its whole name."""

    def scenario():
        one = players.claimed(make(), "somebody")
        while not players.open_page(one)[2]:
            players.answered(one)
        page = full_page_state(one).next_key
        data: dict = players.plausible(one, page)
        slots = list(players.open_page(one, page)[2])
        for name, value in changes:
            name = slots[name] if isinstance(name, int) else name.format(*slots)
            data[name] = value
        if before:
            before(one, page, data)
        return page_says(Client().post(f"/p/{one.code}/{key or page}/", {"go": "1"} | data | more, follow=True))

    return scenario


def stored(one, page, data):
    Client().post(f"/p/{one.code}/{page}/", data | {"go": "1"})


def withdrawn(one, page, data):
    withdraw_annotator_and_erase_texts(Assignment.objects.select_related("study").get(pk=one.pk))


def finished(one, page, data):
    now = timezone.now()
    Assignment.objects.filter(pk=one.pk).update(started_at=now, submitted_at=now)


def turned_away(one, page, data):
    assign.release_assignment(one.pk, "screened_out")


def without_place():
    """Somebody who came when no place was free, and sends answers all the same."""
    study = survey()
    late = assign.get_or_create_annotator("panel", "late")
    one = Assignment.objects.create(
        study=study, annotator=late, released_reason="full", released_at=timezone.now(), design=study.designs.get()
    )
    return page_says(Client().post(f"/p/{one.code}/s1.read/", {"go": "1", "s1.q1": "50"}, follow=True))


def mark(number=1, **parts):
    return [(f"{{{number}}}.{name}", value) for name, value in parts.items()]


def asks_again(text, n=0):
    """What the page says on which an annotator writes to the researchers, after ``n`` messages."""

    def scenario():
        one = players.claimed(survey(), "somebody")
        Inquiry.objects.bulk_create(Inquiry(assignment=one, kind="question", text="Why?") for _ in range(n))
        return page_says(Client().post(f"/p/{one.code}/question/", {"text": text, "kind": "question"}))

    return scenario


def leaves_and_asks():
    one = players.claimed(survey(), "somebody")
    withdrawn(one, "", {})
    return page_says(Client().post(f"/p/{one.code}/question/", {"text": "Why?"}))


def sent_again_elsewhere():
    """At the address that shows no stored answers."""
    one = players.claimed(survey(), "somebody")
    page = full_page_state(one).next_key
    players.answered(one, page)
    return page_says(Client().post(f"/p/{new_limited_address(one)}/{page}/", {"s1.q1": "a", "save": "auto"}))


def entered(query="", **data):
    def scenario():
        link = builders.recruitment(survey())
        return page_says(
            Client().post(f"/e/{link.key}/{query}", data) if data else Client().get(f"/e/{link.key}/{query}")
        )

    return scenario


def asked(words, scenario) -> Line:
    """A line of which the cause and the next step are the same words."""
    return (words, words, scenario)


MARKED = {"where": "1", "category": "style", "severity": "minor", "words": ""}
LINES = {
    f"{FIELDS}:": [
        asked("Please choose one of the points.", sent(survey, (2, ""))),
        asked("Please choose one of the answers.", sent(survey, (1, "z"))),
        asked("Please choose one of them.", sent(CHOICE, (0, "Z"))),
        asked("Please tick this box to go on.", sent(survey, (3, ""))),
        asked("Please write a few words.", sent(survey, (4, " "))),
    ],
    f"{FIELDS}:clean": [
        asked("Please give a whole number from 0 to 100.", sent(survey, (0, "many"))),
        ("without a comma, point or space", "Please give a whole number", sent(survey, (0, "1,000"))),
        ("This scale takes whole numbers only", "Please give a whole number", sent(survey, (0, "5.5"))),
        ("without “%”", "Please give a whole number from 1 to 5", sent(survey, (5, "5%"))),
    ],
    f"{FIELDS}:parse": [
        ("these are 25", "Please use at most 20 characters", sent(survey, (4, "x" * 25))),
        asked("Please write at least 5 characters.", sent(survey, (4, "yes"))),
    ],
    "studies/protocols/best_worst:complete_data_and_find_errors": [
        asked("Please choose the best story and the worst one, or neither.", sent(best_worst, (0, ""))),
        ("Story A cannot be the best and the worst", "Please choose another one", sent(best_worst, (0, "A"), (1, "A"))),
    ],
    "studies/protocols/ranking:complete_data_and_find_errors": [
        asked("Please give every story a place, or none.", sent(RANKING, (0, ""))),
        ("has the same place", "Please decide", sent(RANKING, (0, "1"), (1, "1"), (2, "2"))),
    ],
    "studies/protocols/marks:clean": [
        ("Please say where it is", "or remove the error", sent(MARKS, *mark(**MARKED | {"where": ""}))),
        asked("Please choose from what is offered.", sent(MARKS, *mark(**MARKED | {"category": "spelling"}))),
    ],
    "studies/protocols/marks:complete_data_and_find_errors": [
        asked("Please choose one of the sentences.", sent(MARKS, (0, ""), *mark(**MARKED | {"where": "77"}))),
        (
            "This error is marked twice",
            "Please remove one of the two",
            sent(MARKS, (0, ""), *mark(**MARKED), *mark(2, **MARKED)),
        ),
        ("You marked errors", "Please remove them", sent(MARKS, (0, "1"), *mark(**MARKED))),
        (
            "Please mark an error",
            "tick that there is no error",
            sent(MARKS, (0, ""), *[one for n in range(1, 5) for one in mark(n, **dict.fromkeys(MARKED, ""))]),
        ),
    ],
    f"{PAGES}:parse_page_form": [
        ("This page does not ask for s9.q9", "Please reload it", sent(survey, ("s9.q9", "1"))),
        (
            "You cannot send files on this page",
            "Please send your answers without a file",
            lambda: sent(survey, ("upload", SimpleUploadedFile("a.txt", b"a")))(),
        ),
    ],
    f"{PAGES}:_clean_unseen_images": [
        ("This page does not show the image unseen.i1", "Please reload it", sent(survey, ("unseen.i1", "1")))
    ],
    f"{PAGES}:clean_answer": [
        asked("Please give only one answer.", sent(survey, (0, ["1", "2"]))),
        asked("Please choose one of the answers.", sent(survey, ("{1}.skip", "yes"))),
        ("Please answer, or say that you cannot answer", "not both", sent(survey, (1, "a"), ("{1}.skip", "no"))),
    ],
    f"{VIEWS}:inquiry_page": [
        ("You have sent 50 messages", "Please wait for an answer", asks_again("Why?", 50)),
        ("You have left this study, so", "Please write to the address", leaves_and_asks),
        asked("Please write a few words.", asks_again(" ")),
        asked("Please use at most 2000 characters.", asks_again("x" * 2001)),
    ],
    f"{VIEWS}:entry_page": [
        ("This link is not valid", "Please start from the panel again", entered("?a=1&a=2")),
        asked("Please tick the box if you agree to take part.", entered(start="1")),
    ],
    f"{VIEWS}:_not_stored_message": [
        ("This page is already stored", "Reload it", sent(survey, before=stored, save="auto")),
        ("and this address shows no stored answers", "Please go on", sent_again_elsewhere),
        (
            "You must answer another page before this one",
            "Please copy what you want to keep",
            sent(survey, key="s2.read"),
        ),
        (
            "There is no such page in your part of this study",
            "Please go on with the next page",
            sent(survey, key="s9.p1"),
        ),
        ("Your text is too long to be saved", "Please make it shorter", sent(survey, (4, "x" * 200_001), save="1")),
        ("You have left this study", "/done/", sent(survey, before=withdrawn)),
        ("You have finished this part of the study", "/done/", sent(survey, before=finished)),
        ("No place was free for you", NOTHING, without_place),
        ("This study has ended for you", "/done/", sent(survey, before=turned_away)),
    ],
}
