"""Somebody types a marked text into every field that takes words, at every stage. After they leave, none of it is found anywhere.

Only an objection stays, and only until it is closed.
"""

import re
from itertools import count
from pathlib import Path

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.test import Client

from annotators import tasks
from annotators.models import Appeal, Assignment, Inquiry, PanelSubmission, Verdict
from annotators.pages.record import full_page_state
from annotators.participation.withdrawal import create_inquiry
from annotators.pay.decisions import answer_appeal
from annotators.places.barrings import bar_annotator, lift_barring
from studies.models import StudyMember
from studies.models.guards import allowing_erasure
from tests.attention import play, study_with_checks
from tests.builders import launched, panel, spa_draft, spa_study, user
from tests.players import answered, claimed, submitted
from tests.robots import Page
from tests.traces import Hunt

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
ANSWER = "We have read your objection."
APPEALS = "annotators_appeal.text"
TEMPLATES, TYPED = Path(__file__).parents[3] / "templates", re.compile(r'<textarea|type="text"')
FIELDS = {"text.html", "number.html", "rewrite.html"}


class Typist:
    """A browser that types a new marked text into every field for words that a page offers."""

    def __init__(self):
        self.client, self.numbers, self.typed = Client(), count(1), {}

    def mark(self, where: str) -> str:
        text = f"Marked words {next(self.numbers)} of zoe@example.org"
        self.typed[f"{where}: {text}"] = text
        return text

    def fields_of(self, path: str) -> list[tuple[str, dict[str, str], list[str]]]:
        """The forms of a page that take words: where each is sent, its hidden values, and the names of its fields for words."""
        response = self.client.get(path)
        assert response.status_code == 200, (path, response.status_code)
        found = []
        for form in Page(response.content.decode()).forms:
            names = [name for name, kind in form.kinds.items() if kind in ("text", "textarea")]
            hidden = {name: form.fields[name][0] for name, kind in form.kinds.items() if kind == "hidden"}
            found += [(form.action or path, hidden, names)] * bool(names)
        return found

    def types(self, path: str, **more) -> int:
        """Type into every form of the page and send it. Return the number of fields."""
        forms = self.fields_of(path)
        for action, hidden, names in forms:
            reply = self.client.post(action, hidden | {name: self.mark(f"{path} {name}") for name in names} | more)
            assert reply.status_code in (200, 302), (action, reply.content.decode()[-900:])
        return sum(len(names) for _, _, names in forms)

    def found(self) -> set[str]:
        return set(Hunt(self.typed).database())

    def leaves(self, assignment) -> str:
        shown = self.client.get(f"/p/{assignment.code}/withdraw/").content.decode()
        assert "also your messages to the researchers" in shown
        assert self.client.post(f"/p/{assignment.code}/withdraw/", {"leave": "1"}).status_code in (200, 302)
        return self.client.get(f"/p/{assignment.code}/done/").content.decode()


def works_and_types(typist: Typist, mine: Assignment, pages: int | None = None) -> dict[str, int]:
    """Answer pages in order, and type on each page and beside it whatever can be typed. Return the fields of each page."""
    fields = {}
    while (key := full_page_state(mine).next_key) and len(fields) != pages:
        fields[key] = typist.types(f"/p/{mine.code}/{key}/", save="auto")
        typist.types(f"/p/{mine.code}/question/?page={key}", kind="report")
        answered(mine, key, comment=typist.mark(f"{key}, sent"))
        mine = Assignment.objects.select_related("study", "recruitment").get(pk=mine.pk)
    return fields


@pytest.mark.parametrize("pages", [0, 3, 5, None])
def test_nothing_that_a_person_typed_is_found_after_they_left(pages):
    study, typist = spa_study(target_n=2), Typist()
    link = panel(study)
    assert not typist.fields_of(f"/e/{link.key}/?who=zoe&session=1"), "no words are asked before the consent"
    mine = claimed(study, "zoe", link)
    fields = works_and_types(typist, mine, pages)
    mine.refresh_from_db()
    n_open = 0
    if mine.submitted_at is None:
        n_open = typist.types(f"/p/{mine.code}/{full_page_state(mine).next_key}/", save="auto")
    typist.types(f"/p/{mine.code}/question/")
    assert pages is not None or sum(fields.values()) > 3, fields
    found = typist.found()
    assert "annotators_inquiry.text" in found
    if pages is None:
        assert "annotators_response.text" in found and mine.submitted_at
    elif pages:
        assert n_open
        assert "annotators_pagevisit.draft" in found
    last = typist.leaves(mine)
    assert "We have deleted everything that you wrote, also your messages" in last and "objection" not in last
    assert typist.found() == set() and not Inquiry.objects.exists()
    # Afterwards nothing is offered, and nothing is stored.
    assert "Ask or report" not in last
    refused = typist.client.post(f"/p/{mine.code}/question/", {"text": typist.mark("after leaving")})
    assert refused.status_code == 422 and "You have left this study" in refused.content.decode()
    assert not create_inquiry(mine, "question", "late", "") and typist.found() == set()


def rejected(owner) -> Assignment:
    mine = submitted(spa_study(owner, with_rating=False, with_surveys=False), "zoe")
    Verdict.objects.create(assignment=mine, kind="reject", category="c", message="m", by=owner)
    return mine


def barred(owner) -> Assignment:
    mine = submitted(
        spa_study(owner, batches_per_annotator=2, prompts=24, with_rating=False, with_surveys=False), "zoe"
    )
    bar_annotator(mine.study, mine.annotator, "Copies.", owner)
    return mine


def failed_checks(owner) -> Assignment:
    study = study_with_checks("rating")
    StudyMember.objects.create(study=study, user=owner, role="editor")
    return play(claimed(study, "zoe"), 2)


def refused_at_entry(owner) -> Assignment:
    """Barred by another study of the group, the person objects at the link of this one."""
    first, second = (launched(spa_draft(owner=owner, title=t, exclusion_group="tales"), owner) for t in ("a", "b"))
    mine = claimed(first, "zoe", panel(first))
    bar_annotator(first, mine.annotator, "Copies.", owner)
    mine.objects_at = f"/e/{panel(second).key}/?who=zoe&session=1"
    return mine


OBJECTIONS = {"rejection": rejected, "barring": barred, "checks": failed_checks, "at entry": refused_at_entry}


def answers(appeal, second) -> None:
    answer_appeal(appeal, ANSWER, False, second)


def is_overtaken(appeal, second) -> None:
    """No answer is needed any more: the barring is lifted, or the panel approves the work."""
    if appeal.barring:
        lift_barring(appeal.barring, "Enough.", second)
    else:
        Verdict.objects.create(assignment=appeal.work, kind="reverse", reverses=appeal.verdict, by=second)
    assert tasks.erase_closed_appeals_of_withdrawn() in (0, 1)


# Only an answer closes an objection to failed checks.
WAYS = [
    (about, way) for about in OBJECTIONS for way in (answers, is_overtaken) if (about, way) != ("checks", is_overtaken)
]


@pytest.mark.parametrize("when", ["before leaving", "after leaving"])
@pytest.mark.parametrize(("about", "closes"), WAYS)
def test_an_objection_stays_until_it_is_closed(about, when, closes):
    owner, second, typist = user("owner"), user("second"), Typist()
    mine = OBJECTIONS[about](owner)
    StudyMember.objects.create(study=mine.study, user=second, role="editor")
    path = f"/p/{mine.code}/done/"
    if about == "at entry":
        (path,) = [
            link
            for link in Page(typist.client.post(mine.objects_at, {"agree": "1"}).content.decode()).links
            if "/appeal/" in link
        ]
    assert typist.types(path) == 1 and typist.found() == {APPEALS}
    appeal = Appeal.objects.get()
    if when == "before leaving":
        closes(appeal, second)
        assert typist.found() == {APPEALS}, "people who stay keep what they wrote"
    last = typist.leaves(mine)
    assert ("We keep your objection until it is answered" in last) is (when == "after leaving")
    if when == "after leaving":
        assert typist.found() == {APPEALS}
        closes(appeal, second)
    assert typist.found() == set()
    answer = Appeal.objects.filter(pk=appeal.pk).first()
    assert (answer.answer if answer else None) == (ANSWER if closes is answers else None)
    if answer and about != "at entry":
        assert ANSWER in typist.client.get(f"/p/{mine.code}/done/").content.decode()


def test_an_objection_that_the_panel_settles_is_erased_within_the_hour():
    owner, typist = user("owner"), Typist()
    mine = rejected(owner)
    link = panel(mine.study)
    shown = PanelSubmission.objects.create(
        recruitment=link, external_id="S", annotator=mine.annotator, assignment=mine, state="rejected", source="file"
    )
    typist.types(f"/p/{mine.code}/done/")
    # Objections to a rejection at the panel are about its submission.
    verdict = Verdict.objects.create(
        assignment=mine, submission=shown, kind="reject", category="at_panel", message="m", by=None
    )
    Appeal.objects.create(verdict=verdict, text=typist.mark("panel"), due_at=Appeal.objects.get().due_at)
    typist.leaves(mine)
    PanelSubmission.objects.update(state="approved")
    assert tasks.erase_closed_appeals_of_withdrawn() == 1 and Appeal.objects.count() == 1


def test_the_database_keeps_open_objections_and_answers():
    """Nothing else of an objection changes, also not while something is erased (on SQLite, only the constraint holds)."""
    owner, second = user("owner"), user("second")
    mine = rejected(owner)
    StudyMember.objects.create(study=mine.study, user=second, role="editor")
    Typist().types(f"/p/{mine.code}/done/")
    appeal = Appeal.objects.get()
    with pytest.raises((IntegrityError, ValidationError)), transaction.atomic(), allowing_erasure():
        Appeal.objects.update(text="")
    answer_appeal(appeal, ANSWER, False, second)
    if transaction.get_connection().vendor == "postgresql":
        for change in ({"text": ""}, {"answer": "other", "text": ""}):
            with pytest.raises(IntegrityError), transaction.atomic():
                Appeal.objects.update(**change)
        with pytest.raises(IntegrityError), transaction.atomic(), allowing_erasure():
            Appeal.objects.all().delete()
    with allowing_erasure():
        assert Appeal.objects.update(text="") == 1


def test_every_template_with_a_field_for_words_is_known_here():
    """Fields of pages become answers and drafts. The others are messages and objections."""
    folders = (TEMPLATES / "annotate", TEMPLATES / "protocols")
    found = {path.name for folder in folders for path in folder.rglob("*.html") if TYPED.search(path.read_text())}
    assert found == FIELDS | {"inquiry.html", "_appeal_form.html"}
