"""Each study's pages are in its own words, whatever another study has and a later release changes."""

import re
from itertools import zip_longest

import pytest
from django.test import Client

from annotators.models import Assignment
from annotators.pages.record import full_page_state
from annotators.places.batch_plan import create_test_batch_and_assignment
from studies.design import wording
from studies.language import catalogues
from studies.models import Study
from tests import builders
from tests.annotators.language.foreign import in_foreign_letters, launched_abroad
from tests.annotators.language.walking import WORDS, path_of, send
from tests.builders import launched, panel, promised
from tests.frozen import forget_frozen_designs
from tests.players import claimed
from tests.pseudo_language import GEORGIAN, GREEK, pseudo_file
from tests.samples import sample_draft

pytestmark = pytest.mark.django_db


def visit(study: Study):
    """Look at pages of every kind, one after another."""
    door, client = promised(panel(study), withdrawn="share"), Client()
    yield client.get(f"/e/{door.key}/?who=anna")
    yield client.post(f"/e/{door.key}/?who=anna", {"start": "1"})
    yield client.get(f"/e/{door.key}/")
    one = claimed(study, "bert", door, is_consented=True)
    while (key := full_page_state(Assignment.objects.get(pk=one.pk)).next_key) is not None:
        path = path_of(one, f"{key}/")
        yield client.get(path)
        yield client.post(path, {"go": "1"}, follow=True)
        yield client.post(path, {"save": "auto"})
        send(one, key)
        yield client.get(path)
    for rest in ("done/", "question/", "consent/", "withdraw/"):
        yield client.get(path_of(one, rest))
    yield client.post(path_of(one, "question/"), {"text": WORDS}, follow=True)
    yield client.post(path_of(one, "withdraw/"), {"leave": "1"}, follow=True)
    yield client.get("/p/nobody/")


@pytest.mark.parametrize("slug", ["rating", "spa", "marks"])
def test_pages_of_two_languages_that_are_served_by_turns_share_no_word(slug):
    languages = {"el": GREEK, "ka": GEORGIAN}
    visits = [visit(launched_abroad(sample_draft(slug, 2, 4), language=language)) for language in languages]
    seen = 0
    for pages in zip_longest(*visits):
        for (language, own), page in zip(languages.items(), pages, strict=True):
            html, (other,) = page.content.decode(), set(languages.values()) - {own}
            assert not re.search(f"[{other}]", html), (language, page.request["PATH_INFO"])
            seen += bool(re.search(f"[{own}]", html))
    assert seen > 20


def test_a_request_leaves_no_language_behind():
    study = launched_abroad(sample_draft("rating", 2, 4))
    assert re.search(f"[{GREEK}]", Client().get(f"/e/{panel(study).key}/").content.decode())
    english = launched(sample_draft("rating", 2, 4))
    for path in ("/p/nobody/", f"/e/{panel(english).key}/", "/"):
        assert not re.search(f"[{GREEK}]", Client().get(path, follow=True).content.decode()), path


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """Let a release come with other words of Greek."""

    def ship(text: str) -> None:
        file = tmp_path / "el" / "LC_MESSAGES" / "annotate.po"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        forget_everything()

    def forget_everything() -> None:
        """As a new process has it."""
        caches = (catalogues.shipped_text, catalogues.shipped_translations, catalogues.shipped_page_language)
        for cached in (*caches, wording.kept_page_language):
            cached.cache_clear()
        forget_frozen_designs()

    monkeypatch.setattr(catalogues, "LOCALE", tmp_path)
    yield ship
    monkeypatch.undo()
    forget_everything()


def test_a_launched_study_keeps_its_words_and_a_draft_gets_those_of_the_release(shipped):
    def draft() -> Study:
        made = builders.draft_study(systems=("alpha", "beta"), prompts=6, instructions="", language="el")
        builders.add_rating(made, position=1, m=2)
        return in_foreign_letters(made)

    shipped(pseudo_file("el"))
    kept, open_draft = launched(draft()), draft()
    assert kept.translation.language == "el" and open_draft.translation is None
    mine = claimed(kept, "anna")
    test_run = create_test_batch_and_assignment(open_draft, open_draft.arms.get(), seed=1)

    def letters(one: Assignment) -> str:
        key = full_page_state(Assignment.objects.get(pk=one.pk)).next_key
        html = Client().get(path_of(one, f"{key}/")).content.decode()
        return "".join(
            name for name, own in (("Greek ", GREEK), ("Georgian ", GEORGIAN)) if re.search(f"[{own}]", html)
        )

    assert letters(mine) == letters(test_run) == "Greek "
    # A release with other words for the same language.
    shipped(pseudo_file("ka").replace("Language: ka", "Language: el"))
    assert letters(mine) == "Greek " and letters(test_run) == "Georgian "
    later = launched(Study.objects.get(pk=open_draft.pk))
    assert later.translation != kept.translation
    assert letters(claimed(later, "bert")) == "Georgian "
