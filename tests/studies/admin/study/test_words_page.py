"""The page of the words of a study's pages: who wrote them, a file to download, and a file to bring."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from studies.language.catalogues import header_field, message_count
from studies.models import Translation
from tests.admin_pages import logged_in
from tests.builders import launched, spa_draft, user
from tests.pseudo_language import LANGUAGE, pseudo_file

pytestmark = pytest.mark.django_db


@pytest.fixture
def draft():
    return spa_draft(owner=user("owner"), language=LANGUAGE)


@pytest.fixture
def client(draft):
    return logged_in(draft.owner)


@pytest.fixture
def url(draft):
    return reverse("admin:studies_study_words", args=[draft.pk])


def bring(client, url, text):
    return client.post(url, {"file": SimpleUploadedFile("el.po", text.encode())}, follow=True)


def test_the_words_are_english_until_a_file_is_brought_and_again_when_it_is_removed(client, draft, url):
    before = client.get(url).content.decode()
    assert "Greek (el)" in before and "English (en)" in before and "Remove the file" not in before
    home = client.get(reverse("admin:studies_study_change", args=[draft.pk])).content.decode()
    assert (
        f'href="{url}">Annotators read the words around the texts in English' in home
        and home.count(f'href="{url}"') == 3
    )
    page = bring(client, url, pseudo_file()).content.decode()
    n = message_count()
    assert f"{n} of {n} messages" in page and "a file that owner brought on" in page and "Greek (el)</td>" in page
    draft.refresh_from_db()
    assert draft.translation.language == LANGUAGE
    assert "Remove the file" in page
    page = client.post(url, {"remove": "1"}, follow=True).content.decode()
    draft.refresh_from_db()
    assert draft.translation is None and "The file is removed" in page and "English (en)" in page


def test_the_file_is_downloaded_with_its_header(client, url):
    answer = client.get(f"{url}?file")
    assert answer["Content-Disposition"] == 'attachment; filename="heval-words-el.po"'
    assert header_field(answer.content.decode(), "Language") == LANGUAGE
    assert header_field(answer.content.decode(), "Plural-Forms").startswith("nplurals=2")


def test_a_file_with_faults_is_refused_with_line_and_message(client, draft, url):
    answer = bring(client, url, 'msgid "A %(n)s"\nmsgstr "B"\n\nmsgid ""\nmsgstr "Language: el\\n"\n')
    page = answer.content.decode()
    assert answer.status_code == 422 and "Line 1: “A %(n)s”: the placeholders and tags must be %(n)s" in page
    assert not Translation.objects.exists()
    assert "This field is required" in client.post(url, {}).content.decode()


def test_a_launched_study_shows_what_it_keeps(client, draft, url):
    bring(client, url, pseudo_file())
    launched(draft)
    page = client.get(url).content.decode()
    assert "kept since the launch" in page and "Clone it to change them" in page and 'type="file"' not in page
    refused = bring(client, url, pseudo_file())
    assert refused.status_code == 422 and "part of what was shown" in refused.content.decode()


def test_an_english_study_needs_no_file():
    study = spa_draft(owner=user("other"))
    page = logged_in(study.owner).get(reverse("admin:studies_study_words", args=[study.pk])).content.decode()
    assert "this study needs no file" in page and 'type="file"' not in page
