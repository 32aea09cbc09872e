"""Practice items in the admin: made, refused with words, deleted, and closed to who may not change the design."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from studies.models import Expected, Item, StudyMember
from tests import builders
from tests.admin_pages import logged_in
from tests.analysis.api.rest import api_of
from tests.builders import humanlike_draft, launched

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner():
    return builders.user("olga")


@pytest.fixture
def section(owner):
    study = humanlike_draft(conditions=("none", "examples"), domains=("news",), owner=owner)
    return study.sections.get(purpose="training")


def url_of(section):
    return f"/admin/studies/section/{section.pk}/practice/"


def sent(section, **changes):
    systems = {system.name: system.pk for system in section.study.systems.all()}
    data = {
        "prompt": "news-human-003",
        "first": systems["human"],
        "second": "",
        "explanation": "Its “upon a time” is old.",
    }
    return data | {name: systems.get(value, value) for name, value in changes.items()}


def test_an_item_is_made_listed_and_deleted(section, owner):
    client = logged_in(owner)
    page = client.post(url_of(section), sent(section), follow=True).content.decode()
    assert "The practice item is stored." in page and "news-human-003" in page and "4; each annotator" not in page
    item = section.items.get(prompt__key="news-human-003")
    assert (item.kind, item.number) == ("practice", 4)
    expected = item.expected.get()
    assert (expected.low, expected.high, expected.explanation) == (1, 2, "Its “upon a time” is old.")
    assert "4; each annotator sees 3" in client.get(f"/admin/studies/section/{section.pk}/change/").content.decode()
    assert "is deleted" in client.post(url_of(section), {"delete": item.pk}, follow=True).content.decode()
    assert "already deleted" in client.post(url_of(section), {"delete": item.pk}, follow=True).content.decode()
    assert not Item.objects.filter(pk=item.pk).exists()


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"prompt": "nothing"}, "human has no output for a prompt with the key “nothing”"),
        ({"prompt": ""}, "required"),
        ({"first": ""}, "required"),
        ({"first": "99999999"}, "valid choice"),
        ({"prompt": "examples-news-0", "first": "human", "second": "human"}, "two different texts"),
        ({"prompt": "examples-news-0", "first": "human", "second": ""}, "already"),
        ({"explanation": "a\x00b"}, "explanation"),
    ],
)
def test_what_makes_no_item_is_refused_with_words(section, owner, changes, words):
    response = logged_in(owner).post(url_of(section), sent(section, **changes))
    assert response.status_code == 422 and words in response.content.decode()
    assert section.items.count() == 3


def read_file(section, owner, content, **options):
    file = SimpleUploadedFile("practice.csv", content.encode())
    return logged_in(owner).post(url_of(section), {"given": "1", "file": file}, **options)


def test_items_are_read_from_a_file_all_or_none(section, owner):
    rows = "prompt,systems,explanation\nnews-human-003,human,Its “upon a time” is old.\nnews-gpt3-004, gpt3 ,\n"
    page = read_file(section, owner, rows, follow=True).content.decode()
    assert "2 practice items of the file are new." in page and section.items.count() == 5
    expected = section.items.get(prompt__key="news-human-003").expected.get()
    assert (expected.low, expected.high, expected.explanation) == (1, 2, "Its “upon a time” is old.")
    again = read_file(section, owner, f"{rows}news-gpt3-005,gpt3,\n", follow=True).content.decode()
    assert "1 practice item of the file is new." in again and section.items.count() == 6


@pytest.mark.parametrize(
    "row, words",
    [
        ("news-human-003,nobody,", "no text of “nobody” answers the prompt “news-human-003”"),
        ("news-gpt3-004,gpt3,", "another row has the same texts"),
        ("examples-news-0,human|gpt3|gpt3,", "row 3: The same text is chosen twice"),
    ],
)
def test_a_file_with_a_wrong_row_stores_nothing(section, owner, row, words):
    response = read_file(section, owner, f"prompt,systems,explanation\nnews-gpt3-004,gpt3,\n{row}\n")
    assert response.status_code == 422 and words in response.content.decode()
    assert section.items.count() == 3


def test_a_file_for_ratings_has_right_answers(owner):
    study = builders.draft_study(owner=owner, systems=("alpha", "beta"), prompts=6)
    section = builders.add_rating(study, position=1, m=2)
    section.purpose = "training"
    section.save()
    key = section.questions.get().key
    rows = f"prompt,systems,right:{key},explanation\np000,alpha,4-5,Because.\np001,beta,2,\n"
    assert "2 practice items of the file are new." in read_file(section, owner, rows, follow=True).content.decode()
    assert [(one.low, one.high) for one in Expected.objects.order_by("item__number")] == [(4, 5), (2, 2)]
    rest = api_of(owner).get(f"studies/{study.code}/practice-items/").json()["results"]
    assert [(row["right"][0]["low"], row["right"][0]["high"]) for row in rest] == [(4.0, 5.0), (2.0, 2.0)]
    refused = read_file(section, owner, f"prompt,systems,right:{key}\np002,alpha,9\n")
    assert refused.status_code == 422 and "row 2: " in refused.content.decode() and section.items.count() == 2


def test_a_section_with_practice_items_can_be_deleted(section, owner):
    client = logged_in(owner)
    assert client.post(f"/admin/studies/section/{section.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not Item.objects.filter(kind="practice").exists()


def test_only_who_may_change_the_draft_makes_items(section, owner):
    viewer, stranger = builders.user("vera"), builders.user("sven")
    StudyMember.objects.create(study=section.study, user=viewer, role="viewer")
    assert logged_in(stranger).get(url_of(section)).status_code == 404
    page = logged_in(viewer).get(url_of(section))
    assert page.status_code == 200 and "Add a practice item" not in page.content.decode()
    assert logged_in(viewer).post(url_of(section), sent(section)).status_code == 403
    launched(section.study)
    page = logged_in(owner).post(url_of(section), sent(section), follow=True).content.decode()
    assert "so its design cannot change" in page and section.items.filter(kind="practice").count() == 3


def test_only_training_sections_have_the_page(section, owner):
    live = section.study.sections.get(purpose="live")
    assert logged_in(owner).get(url_of(live)).status_code == 404


def test_a_new_section_begins_with_the_papers_questions(section, owner):
    client = logged_in(owner)
    client.post("/admin/studies/section/add/", {"study": section.study_id, "protocol": "humanlike", "purpose": "live"})
    made = section.study.sections.order_by("position").last()
    assert [question.key for question in made.questions.all()] == ["source", "why", "change"]
    assert made.settings["why_up_to"] == 1 and made.settings["mix"] == "half"
