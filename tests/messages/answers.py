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
from tests.messages.lines import At, Shown, only_informs

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


def rewriting():
    study = builders.draft_study(systems=("alpha",), prompts=4, target_n=2, owner=me())
    section = builders.add_section(study, "marks")
    section.questions.filter(key="score").delete()
    Question.objects.create(section=section, position=9, key="rewrite", text="Better?", scale={"kind": "rewrite"})
    return builders.launched(study, me())


def without_change(one, page, data):
    slot, ask = list(players.open_page(one, page)[2].items())[-1]
    data[slot] = ask.field.starting_text


def emptied(one, page, data):
    data[list(players.open_page(one, page)[2])[-1]] = " "


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


def drafted_elsewhere(one, page, data):
    """In a tab that the sender's page has not seen."""
    Client().post(f"/p/{one.code}/{page}/", data | {"save": "auto", "seen": "", "tab": "another"})


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


MARKED = {"where": "1", "category": "style", "severity": "minor", "words": ""}
ANSWERS = {
    "Please choose one of the points": sent(survey, (2, "")),
    "studies/protocols/base:: Please choose one of the answers": sent(survey, (1, "z")),
    "Please choose one of them": sent(CHOICE, (0, "Z")),
    "Please tick this box": sent(survey, (3, "")),
    "studies/protocols/base:: Please write a few": sent(survey, (4, " ")),
    "studies/protocols/base:: Please give a whole": sent(survey, (0, "many")),
    "Please give a whole number from … to …, without a comma": sent(survey, (0, "1,000")),
    "This scale takes": sent(survey, (0, "5.5")),
    "Please give a whole number from … to …, without “…”": sent(survey, (5, "5%")),
    "Please use at most … characters; these": sent(survey, (4, "x" * 25)),
    "Please write at least … characters": sent(survey, (4, "yes")),
    "This is the text as": sent(rewriting, before=without_change),
    "The field is empty": sent(rewriting, before=emptied),
    "Please choose the best": sent(best_worst, (0, "")),
    "cannot be the best": sent(best_worst, (0, "A"), (1, "A")),
    "Please give each": sent(RANKING, (0, "")),
    "The same place": sent(RANKING, (0, "1"), (1, "1"), (2, "2")),
    "Please say where it is, or remove": sent(MARKS, *mark(**MARKED | {"where": ""})),
    "Please say its category, or remove": sent(MARKS, *mark(**MARKED | {"category": ""})),
    "Please say its severity, or remove": sent(MARKS, *mark(**MARKED | {"severity": ""})),
    "Please say where it is and": sent(MARKS, *mark(**MARKED | {"where": "", "severity": ""})),
    "Please say its category and": sent(MARKS, *mark(**MARKED | {"category": "", "severity": ""})),
    "Please choose from what": sent(MARKS, *mark(**MARKED | {"category": "spelling"})),
    "Please choose one of the sentences": sent(MARKS, (0, ""), *mark(**MARKED | {"where": "77"})),
    "This error is marked": sent(MARKS, (0, ""), *mark(**MARKED), *mark(2, **MARKED)),
    "You marked errors": sent(MARKS, (0, "1"), *mark(**MARKED)),
    "Please mark an error": sent(
        MARKS, (0, ""), *[one for n in range(1, 5) for one in mark(n, **dict.fromkeys(MARKED, ""))]
    ),
    "This page does not ask": sent(survey, ("s9.q9", "1")),
    "You cannot send files": lambda: sent(survey, ("upload", SimpleUploadedFile("a.txt", b"a")))(),
    "This page does not show": sent(survey, ("unseen.i1", "1")),
    "Please give only one answer": sent(survey, (0, ["1", "2"])),
    "clean_answer: Please choose one of the answers": sent(survey, ("{1}.skip", "yes")),
    "Please answer, or say": sent(survey, (1, "a"), ("{1}.skip", "no")),
    "You have sent": asks_again("Why?", 50),
    "You have left this study, so this page": leaves_and_asks,
    "inquiry_page: Please write a few": asks_again(" "),
    "inquiry_page: Please use at most": asks_again("x" * 2001),
    "This link is not valid": entered("?a=1&a=2"),
    "Please tick the box": entered(start="1"),
    "This page is already stored. Reload": sent(survey, before=stored, save="auto"),
    "This page is already stored, and this address": sent_again_elsewhere,
    "This page has newer answers": sent(survey, before=drafted_elsewhere, save="auto", seen="", tab="mine"),
    "You must answer": sent(survey, key="s2.read"),
    "There is no such": sent(survey, key="s9.p1"),
    "Your text is too": sent(survey, (4, "x" * 200_001), save="1"),
    "You have left this study. We": At("/done/", sent(survey, before=withdrawn)),
    "You have finished": At("/done/", sent(survey, before=finished)),
    "No place was free": only_informs(without_place),
    "This study has ended": At("/done/", sent(survey, before=turned_away)),
}
