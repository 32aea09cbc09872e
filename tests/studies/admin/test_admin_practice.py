"""Practice items in the admin: made, refused with words, deleted, and closed to who may not change the design."""

import pytest

from studies.models import Item, StudyMember
from tests import builders
from tests.admin_pages import logged_in
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
