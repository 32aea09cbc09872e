"""Attention checks come from a file: by the admin and by REST, all rows or none, and nothing is replaced without a word."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from studies.imports.check_files import ChecksFileRefused, store_attention_checks_and_delete_test_runs
from studies.models import Question, Section, StudyMember, audit
from studies.services.lifecycle import ActionRefused
from tests.admin_pages import logged_in
from tests.analysis.api.rest import api_of
from tests.attention import add_attention, fresh, play
from tests.builders import launched, recruitment, spa_draft, user
from tests.players import claimed
from tests.samples import blocking

pytestmark = pytest.mark.django_db
FILE = """key,text,answers,right,help
reads,"To show that you read this, choose “No” here.",Yes | No | Either \\| or,No,
agrees,"Choose “Agree”, whatever you think.",Disagree | Agree,Agree,*Only* here.
"""
BAD = """key,text,answers,right
a b,Choose No.,No,No
good,,Yes | No | No,Perhaps
good,Choose Yes.,Yes | No,Perhaps
good,Choose Yes.,Yes | | No,Yes
good,Choose Yes.,Yes | No,Yes
good,Choose No.,Yes | No,No
"""


@pytest.fixture
def draft(researcher):
    study = spa_draft(owner=researcher, target_n=2)
    StudyMember.objects.get_or_create(study=study, user=researcher, role="owner")
    return study


@pytest.fixture
def researcher():
    return user()


def store(study, text=FILE, name="checks.csv", **options):
    return store_attention_checks_and_delete_test_runs(study, name, text.encode(), by=None, **options)


def uploaded(client, study, text, **data):
    url = reverse("admin:studies_study_attention_checks", args=[study.pk])
    sent = {"file": SimpleUploadedFile("checks.csv", text.encode())} | data
    answer = client.post(url, sent, follow=True)
    return answer.status_code, answer.content.decode()


def test_a_file_makes_the_section_and_the_checks_work(draft):
    stored = store(draft)
    section = draft.sections.get(purpose="attention")
    assert (stored.section, stored.added) == (section.position, ("reads", "agrees"))
    assert (section.protocol, section.m) == ("survey", 0) and not blocking(draft)
    first, second = section.questions.order_by("position")
    assert [(option["key"], option["label"]) for option in first.scale["options"]] == [
        ("yes", "Yes"),
        ("no", "No"),
        ("either-or", "Either | or"),
    ]
    assert [option["label"] for option in second.scale["options"] if option.get("is_right")] == ["Agree"]
    assert (second.help, second.required, second.skip_reasons) == ("*Only* here.", True, [])
    assert audit.events_of(draft).latest("pk").data["added"] == ["reads", "agrees"]
    study = launched(draft)
    failed = play(claimed(study, "twice", recruitment(study)), 2)
    assert fresh(failed).released_reason == "failed_checks"


def test_every_fault_has_its_row_and_nothing_is_stored(draft):
    with pytest.raises(ChecksFileRefused) as refused:
        store(draft, BAD)
    found = [(problem.row, problem.column, problem.text) for problem in refused.value.problems]
    assert [(row, column) for row, column, _ in found] == [
        (2, "key"),
        (2, "answers"),
        (3, "text"),
        (3, "answers"),
        (4, "right"),
        (5, "answers"),
        (7, "key"),
    ]
    assert "also in row 6" in found[-1][2] and not Section.objects.filter(purpose="attention").exists()
    for text in ("key,text\n", "", "key,text,answers,right\n"):
        with pytest.raises(ChecksFileRefused):
            store(draft, text)


def test_nothing_is_replaced_without_a_word(draft):
    store(draft)
    changed = FILE.replace("whatever you think", "please") + "new,Choose Yes.,Yes | No,Yes,\n"
    with pytest.raises(ChecksFileRefused, match="row 3, column “key”: “agrees” exists with other words"):
        store(draft, changed)
    assert Question.objects.filter(section__study=draft, key="new").count() == 0
    stored = store(draft, changed, replaces=True)
    assert (stored.added, stored.replaced, stored.unchanged) == (("new",), ("agrees",), ("reads",))
    texts = dict(draft.sections.get(purpose="attention").questions.values_list("key", "text"))
    assert texts["agrees"] == "Choose “Agree”, please." and len(texts) == 3
    version = fresh_version(draft)
    assert store(draft, changed).unchanged == ("reads", "agrees", "new") and fresh_version(draft) == version


def fresh_version(study) -> int:
    return type(study).objects.values_list("version", flat=True).get(pk=study.pk)


def test_the_section_is_named_where_there_are_several(draft):
    one, two = add_attention(draft, position=8), add_attention(draft, position=9)
    with pytest.raises(ActionRefused, match="Several sections hold attention checks: 8, 9"):
        store(draft)
    with pytest.raises(ActionRefused, match="Section 1 holds no attention checks"):
        store(draft, position=1)
    assert store(draft, position=9).section == 9
    assert (one.questions.count(), two.questions.count()) == (3, 5)


@pytest.mark.slow
def test_the_page_shows_faults_and_says_what_was_replaced(draft, researcher):
    client = logged_in(researcher)
    status, page = uploaded(client, draft, BAD)
    assert status == 422 and "row 2, column “answers”" in page and "row 7, column “key”" in page
    status, page = uploaded(client, draft, FILE)
    assert status == 200 and "2 new (reads, agrees)" in page and "<b>Agree (right)</b>" in page
    changed = FILE.replace("whatever you think", "please")
    assert "exists with other words" in uploaded(client, draft, changed)[1]
    assert "1 replaced (agrees); 1 unchanged (reads)" in uploaded(client, draft, changed, replaces="on")[1]
    link = reverse("admin:studies_study_attention_checks", args=[draft.pk])
    section = draft.sections.get(purpose="attention")
    for name, pk in (("study", draft.pk), ("section", section.pk)):
        assert link in client.get(reverse(f"admin:studies_{name}_change", args=[pk])).content.decode()
    launched(draft)
    page = client.get(link).content.decode()
    assert "Choose “Agree”, please." in page and 'type="file"' not in page
    assert "its design cannot change" in uploaded(client, draft, FILE)[1]


def test_rest_stores_rows_or_a_file(draft, researcher):
    api, path = api_of(researcher), f"studies/{draft.code}/attention-checks/"
    check = {"key": "reads", "text": "Choose No.", "answers": ["Yes", "No"], "right": "No"}
    bad = api.post(path, {"checks": [check, {"key": "x", "text": "y", "answers": ["Yes"], "right": 3}]})
    assert bad.status_code == 400
    assert [(one["row"], one["field"]) for one in bad.json()["errors"]] == [(2, "answers"), (2, "right")]
    assert api.get(path).json() == {"checks": []}
    made = api.post(path, {"checks": [check]})
    position = draft.sections.get(purpose="attention").position
    assert made.status_code == 201
    assert made.json() == {"section": position, "added": ["reads"], "replaced": [], "unchanged": []}
    assert api.post(path, {"checks": [check]}).status_code == 200
    (listed,) = api.get(path).json()["checks"]
    assert (listed["section"], listed["key"]) == (position, "reads") and listed["scale"]["options"][1]["is_right"]
    settings = json.dumps({"replaces": True, "section": position})
    sent = {"file": SimpleUploadedFile("checks.csv", FILE.encode()), "settings": settings}
    form = Client().post(f"/api/v1/{path}", sent, headers=api.headers)
    assert form.json()["replaced"] == ["reads"] and form.json()["added"] == ["agrees"]
    assert api.post(path, {"checks": [check], "section": 1}).status_code == 409
    launched(draft)
    assert api.post(path, {"checks": [check]}).status_code == 409
