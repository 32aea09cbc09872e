"""The first page of a new study makes a draft from a file, pasted rows or the example texts, and leads on."""

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from studies.imports.tables import run
from studies.models import AuditEvent, Output, Study
from tests.builders import draft_study, launched, spa_draft, user

GOOD = b"prompt_key,prompt_text,system,text\np1,Go.,ada,A cat.\np1,Go.,human,A dog.\np2,Stay.,ada,Bob.\np2,Stay.,human,Eve.\n"
pytestmark = pytest.mark.django_db


@pytest.fixture
def researcher(client, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    client.force_login(user())
    return client


def started(client, data=GOOD, name="table.csv", **fields):
    sent = {"title": "Who answers better", "file": SimpleUploadedFile(name, data)} | fields
    return client.post(reverse("new_study"), sent)


def test_a_file_becomes_a_draft_that_leads_on(researcher):
    response = started(researcher)
    study = Study.objects.get()
    assert response.status_code == 302 and study.title == "Who answers better" and study.owner == user()
    page = researcher.get(response.url).content.decode()
    assert "Do these texts belong to these systems?" in page and 'aria-label="Steps of a new study"' in page
    assert not Output.objects.exists()
    on = researcher.post(response.url, {"confirm": "1", "human": ["human"]})
    assert Output.objects.count() == 4 and study.systems.get(is_human=True).name == "human"
    # The written import shows no page of its own, also from another tab.
    on = researcher.get(on.url)
    assert on.status_code == 302 and on.url == researcher.get(response.url).url
    assert on.url.startswith(reverse("new_study_file", args=[study.pk]).removesuffix("file/"))


LONG = GOOD + b"p1,Go.,third,A bird.\np2,Stay.,third,Zoe.\n"
WIDE = b"prompt,ada,human,third\n" + b"".join(
    b"What is number %d?,It is a cat of %d years.,It is a dog of %d years.,It is a bird of %d years.\n" % (n, n, n, n)
    for n in range(2)
)


@pytest.mark.parametrize("data", [LONG, WIDE], ids=["long", "wide"])
def test_systems_that_are_ticked_are_left_out_at_once(researcher, data):
    address = started(researcher, data).url
    page = researcher.get(address).content.decode()
    assert page.count('name="leave_out"') == 3 and "Read the file again" not in page
    assert researcher.post(address, {"confirm": "1", "leave_out": ["third"], "human": ["human"]}).status_code == 302
    names = list(Output.objects.values_list("system__name", flat=True))
    assert len(names) == 4 and "third" not in names
    assert Study.objects.get().systems.count() == 2


@pytest.mark.parametrize("has_texts", [False, True])
def test_systems_that_a_template_does_not_have_are_proposed_to_be_left_out(researcher, has_texts):
    study = draft_study(owner=user(), prompts=2 * has_texts, systems=("ada", "human"), guide={})
    sent = {"file": SimpleUploadedFile("table.csv", LONG.replace(b"p1", b"k1").replace(b"p2", b"k2"))}
    address = researcher.post(reverse("new_study_file", args=[study.pk]), sent).url
    page = researcher.get(address).content.decode()
    ticked = re.findall(r'name="leave_out" value="(\w+)" checked', page)
    assert ticked == ([] if has_texts else ["third"])
    assert ("no system “<bdi>third</bdi>”, so heval proposes to leave it out" in page) == (not has_texts)
    # A tick that is taken back adds the system.
    researcher.post(address, {"confirm": "1"})
    assert study.systems.filter(name="third").exists()


def test_pasted_rows_are_a_file(researcher):
    response = researcher.post(reverse("new_study"), {"title": "T", "pasted": GOOD.decode().replace(",", "\t")})
    researcher.post(response.url, {"confirm": "1"})
    assert Output.objects.count() == 4


def test_the_example_texts_need_no_file_and_no_title(researcher):
    response = researcher.post(reverse("new_study"), {"example": "1", "title": " "})
    study = Study.objects.get()
    assert response.status_code == 302 and study.prompts.count() == 12
    assert [system.name for system in study.systems.filter(is_human=True)] == ["human"]
    page = researcher.get(reverse("new_study_file", args=[study.pk])).content.decode()
    assert "12 prompts and 36 outputs of 3 systems" in page


@pytest.mark.parametrize(
    ("sent", "field", "said"),
    [
        ({"title": ""}, "title", "This field is required"),
        ({"file": ""}, "file", "Choose a file, or paste rows"),
        ({"file": SimpleUploadedFile("t.csv", b"")}, "file", "empty"),
        ({"example": "1", "title": "x" * 201}, "title", "at most 200 characters"),
    ],
)
def test_what_is_refused_at_once_leaves_no_draft(researcher, sent, field, said):
    response = started(researcher, **sent)
    text = response.content.decode()
    assert response.status_code == 400 and said in text and f'href="#id_{field}"' in text
    assert not Study.objects.exists() and not AuditEvent.objects.filter(verb="create").exists()
    assert "title" not in sent or f'value="{sent["title"]}"' in text or not sent["title"]


def test_a_file_above_the_limit_leaves_no_draft(researcher, monkeypatch):
    monkeypatch.setattr(run, "MAX_BYTES", 20)
    response = started(researcher)
    assert response.status_code == 400 and "more than 20 bytes" in response.content.decode()
    assert not Study.objects.exists() and 'value="Who answers better"' in response.content.decode()


@pytest.mark.parametrize(
    "data", [b"\xff\xfe\x00", b"prompt_key,prompt_text,system,text\np1,Go.,a\n", b"a" * 50, b'{"a": [1, 2']
)
def test_an_unreadable_file_leads_back_to_its_draft(researcher, data):
    response = started(researcher, data)
    page = researcher.get(response.url).content.decode()
    study = Study.objects.get()
    again = reverse("new_study_file", args=[study.pk])
    assert f'href="{again}"' in page and "Import into the study" not in page
    assert "The study has no outputs yet" in researcher.get(again).content.decode()
    better = researcher.post(again, {"file": SimpleUploadedFile("b.csv", GOOD)})
    researcher.post(better.url, {"confirm": "1"})
    assert Output.objects.count() == 4 and Study.objects.count() == 1


def test_the_page_of_the_file_says_who_is_a_person(researcher):
    researcher.post(started(researcher).url, {"confirm": "1"})
    study = Study.objects.get()
    address = reverse("new_study_file", args=[study.pk])
    human, version = study.systems.get(name="human"), study.version
    researcher.post(address, {"authors": "1", "human": [human.pk]})
    assert study.systems.get(is_human=True) == human
    researcher.post(address, {"authors": "1", "human": [human.pk]})
    study.refresh_from_db()
    assert study.version > version and AuditEvent.objects.filter(data__human_authors=["human"]).count() == 1
    assert "checked" in researcher.get(address).content.decode()
    researcher.post(address, {"authors": "1"})
    assert not study.systems.filter(is_human=True).exists()


def test_another_file_without_content_is_refused_on_the_page(researcher):
    study = draft_study(owner=user(), prompts=2)
    response = researcher.post(reverse("new_study_file", args=[study.pk]), {})
    assert response.status_code == 400 and "Choose a file, or paste rows" in response.content.decode()


def test_a_launched_study_is_sent_to_its_page(researcher):
    study = launched(spa_draft(prompts=12, owner=user()))
    address = reverse("new_study_file", args=[study.pk])
    for response in (researcher.get(address), researcher.post(address, {"authors": "1"})):
        assert response.status_code == 302 and response.url == reverse("admin:studies_study_change", args=[study.pk])


def test_the_usual_import_keeps_its_page(researcher):
    study = draft_study(owner=user(), prompts=2)
    response = researcher.post(
        reverse("import", args=[study.pk]), {"file": SimpleUploadedFile("t.csv", GOOD), "creates_systems": "on"}
    )
    assert "Steps of a new study" not in researcher.get(response.url).content.decode()
    done = researcher.post(response.url, {"confirm": "1"}, follow=True)
    assert "The whole file was imported" in done.content.decode()


def test_the_usual_import_asks_for_one_thing_and_folds_the_rest(researcher):
    study = draft_study(owner=user(), prompts=2)
    page = researcher.get(reverse("import", args=[study.pk])).content.decode()
    shown, _, folded = page.partition("<summary>More options</summary>")
    seen = [kind for kind in re.findall(r'<input[^>]* type="(\w+)"|<input type="(\w+)"', shown) if "hidden" not in kind]
    assert len(seen) == 1 and "file" in seen[0]
    assert 'name="creates_systems" class=' not in shown and "checked" in folded.partition("</details>")[0]
