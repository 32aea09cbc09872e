"""The page of test questions: made, read from a file, shown, deleted, and closed to those who may not change the design."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from studies.models import Expected, Item, Output, StudyMember
from tests import builders
from tests.admin_pages import logged_in
from tests.known_answers import draft, make

pytestmark = pytest.mark.django_db


def url_of(section):
    return f"/admin/studies/section/{section.pk}/test-questions/"


def sent(section, **changes):
    data = {
        "question": section.questions.first().pk,
        "reference": section.study.systems.get(name="human").pk,
        "positive": 3,
        "negative": 2,
        "damaged": 1,
        "damages": ["shuffled", "other"],
    } | changes
    return {f"make-{name}": value for name, value in data.items()}


def given(section, text, name="tests.csv"):
    file = SimpleUploadedFile(name, text.encode())
    return {"given": "1", "given-question": section.questions.first().pk, "given-file": file}


@pytest.mark.parametrize("protocol", ["rating", "two_choice", "relative"])
def test_test_questions_are_made_listed_and_deleted(protocol):
    study, section, owner = draft(protocol)
    client = logged_in(owner)
    change = f"/admin/studies/section/{section.pk}/change/"
    assert "None yet. They show who reads carefully." in client.get(change).content.decode()
    page = client.post(url_of(section), sent(section), follow=True).content.decode()
    assert "Test questions are stored: 3 positive, 2 negative, 1 damaged." in page
    assert page.count("This text is the better one." if protocol != "rating" else "Right: ") == 6
    assert "6 made: batches mix them" in client.get(change).content.decode()
    item = section.items.filter(kind="test").first()
    assert "is deleted" in client.post(url_of(section), {"delete": item.pk}, follow=True).content.decode()
    assert "already deleted" in client.post(url_of(section), {"delete": item.pk}, follow=True).content.decode()
    assert not Item.objects.filter(pk=item.pk).exists()


def test_a_file_of_ratings_says_which_answers_are_right():
    study, section, owner = draft("rating")
    text = 'prompt,text,expected\np001,"Bad, bad text",low\np002,Good text,4-5\np003,Choose the middle,3\n'
    page = logged_in(owner).post(url_of(section), given(section, text), follow=True).content.decode()
    assert "3 test questions of the file are new." in page
    rows = Expected.objects.filter(item__section=section).order_by("item__prompt__key")
    assert [(row.low, row.high, row.about.output.text) for row in rows] == [
        (1, 3, "Bad, bad text"),
        (4, 5, "Good text"),
        (3, 3, "Choose the middle"),
    ]
    page = logged_in(owner).post(url_of(section), given(section, text), follow=True).content.decode()
    assert "0 test questions of the file are new." in page
    assert Output.objects.filter(system__reference="test").count() == 3


def test_a_file_of_pairs_names_the_worse_text():
    study, section, owner = draft("two_choice")
    text = '{"prompt": "p001", "text": "Sound", "worse": "Unsound"}\n'
    page = logged_in(owner).post(url_of(section), given(section, text, "tests.jsonl"), follow=True).content.decode()
    assert "1 test question of the file is new." in page
    known = Expected.objects.get(item__section=section)
    assert known.exposure.output.text == "Sound" and known.item.exposures.count() == 2


def test_a_file_with_faults_stores_nothing_and_names_each_row():
    study, section, owner = draft("rating")
    text = "prompt,text,expected\np001,fine,high\nnone,fine,high\np003,fine,up\n"
    response = logged_in(owner).post(url_of(section), given(section, text))
    page = response.content.decode()
    assert response.status_code == 422
    assert "row 3, column “prompt”: no prompt has the key “none”" in page
    assert "row 4, column “expected”: must be high, low, or a range from 1 to 5" in page
    assert not section.items.exists() and not Output.objects.filter(system__reference="test").exists()


def test_a_given_text_needs_the_other_texts_of_its_page():
    study, section, owner = draft("rating")
    Output.objects.filter(system__name="beta", prompt__key="p001").delete()
    text = "prompt,text,expected\np000,fine,high\np001,fine,high\n"
    page = logged_in(owner).post(url_of(section), given(section, text)).content.decode()
    assert "row 3: beta has no output for p001, so the page would show fewer texts. Use another prompt." in page
    assert not section.items.exists()


@pytest.mark.parametrize("content", [b"\xff\xfe\x00bad", b"", b"prompt\np001\n", b'{"prompt": 1}'])
def test_a_damaged_file_gets_a_message(content):
    study, section, owner = draft("rating")
    data = given(section, "") | {"given-file": SimpleUploadedFile("t.csv", content)}
    response = logged_in(owner).post(url_of(section), data)
    assert response.status_code == 422 and 'role="alert"' in response.content.decode()


def test_viewers_read_and_strangers_find_nothing():
    study, section, owner = draft("rating")
    make(study, section, owner, positive=2)
    viewer, stranger = builders.user("vera"), builders.user("sam")
    StudyMember.objects.create(study=study, user=viewer, role="viewer")
    page = logged_in(viewer).get(url_of(section)).content.decode()
    assert "2 positive" in page and "Make test questions" not in page and "Delete" not in page
    assert logged_in(viewer).post(url_of(section), sent(section)).status_code == 403
    assert logged_in(stranger).get(url_of(section)).status_code == 404


def test_a_launched_study_shows_its_test_questions_and_changes_none():
    study, section, owner = draft("rating")
    make(study, section, owner, positive=8, negative=8)
    study = builders.launched(study, owner)
    client = logged_in(owner)
    page = client.get(url_of(section)).content.decode()
    assert "8 positive, 8 negative" in page and "Make test questions" not in page
    page = client.post(url_of(section), sent(section), follow=True).content.decode()
    assert "The study is launched" in page
    assert section.items.filter(kind="test").count() == 16


def test_other_protocols_have_no_such_page():
    owner = builders.user()
    study = builders.draft_study(owner=owner)
    section = builders.add_spa(study)
    assert logged_in(owner).get(url_of(section)).status_code == 404
    assert "Test questions" not in logged_in(owner).get(f"/admin/studies/section/{section.pk}/change/").content.decode()


def test_the_page_costs_as_many_queries_for_many_as_for_few(django_assert_max_num_queries):
    study, section, owner = draft("rating")
    make(study, section, owner, positive=2)
    client = logged_in(owner)
    with django_assert_max_num_queries(30) as few:
        client.get(url_of(section))
    make(study, section, owner, positive=20, negative=20)
    with django_assert_max_num_queries(len(few.captured_queries)):
        client.get(url_of(section))
