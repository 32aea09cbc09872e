"""Preview stores nothing; a test run is stored apart and goes at the launch."""

import re

import pytest
from django.apps import apps
from django.test import Client

from annotators.admin.preview import PreviewPage, build_preview_html
from annotators.models import Annotator, Assignment, PageVisit, Response
from annotators.places.batch_plan import erase_test_run_data, start_test_run
from studies.models import FIRST_TEST_NUMBER, Batch, Exposure, Item, Output, Placement
from studies.services.lifecycle import ActionRefused
from tests import builders, players
from tests.admin_pages import errors_of, logged_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner():
    return builders.user("olga")


@pytest.fixture
def client(owner):
    return logged_in(owner)


@pytest.fixture
def study(owner):
    return builders.spa_draft(owner=owner)


def url(study, key=""):
    return f"/admin/studies/study/{study.pk}/preview/{key + '/' if key else ''}"


def rows():
    models = [*apps.get_app_config("studies").get_models(), *apps.get_app_config("annotators").get_models()]
    return {model.__name__: model.objects.count() for model in models}


KEYS = ["landing", "s1", "start", "s2.read", "s2.ask", "s3.p1", "s4", "done", "consent", "withdraw"]


@pytest.mark.parametrize("is_launched", [False, True])
def test_every_page_is_shown_and_nothing_is_stored(client, study, is_launched):
    if is_launched:
        builders.launched(study)
    before = rows()
    for key in KEYS:
        response = client.get(url(study, key))
        html = response.content.decode()
        assert response.status_code == 200 and 'class="preview-bar"' in html, key
        assert not re.search(r'(?:href|action|formaction|src)="/[pe]/', html), key
        assert "<script" not in html
    assert rows() == before
    assert "Some writers were <strong>programs</strong>" in client.get(url(study, "done")).content.decode()


def test_pages_are_the_same_each_time_and_lead_on(client, study):
    first, again = (
        re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", client.get(url(study, "s2.read")).content.decode())
        for _ in range(2)
    )
    assert again == first
    response = client.post(url(study, "s2.ask"), {"anything": "at all"})
    assert response.status_code == 302
    action = re.search(r'<form id="answers"[^>]*action="([^"]*)"', first)[1]
    assert action == url(study, "s2.ask")


@pytest.mark.slow
def test_a_page_is_sent_with_its_token_and_stores_nothing(owner, study):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(owner)
    before = rows()
    for key in KEYS:
        for form in re.findall(r"<form.*?</form>", strict.get(url(study, key)).content.decode(), re.DOTALL):
            if 'method="post"' not in form:
                continue
            action = re.search(r'action="([^"]*)"', form)[1]
            sent = dict.fromkeys(re.findall(r' name="([^"]*)"', form), "50")
            assert strict.post(action, sent | {"csrfmiddlewaretoken": ""}).status_code == 403
            (token,) = re.findall(r'name="csrfmiddlewaretoken" value="([^"]*)"', form)
            assert strict.post(action, sent | {"csrfmiddlewaretoken": token}).status_code == 302
    assert rows() == before


def test_no_form_that_leads_elsewhere_gets_the_token():
    forms = '<body><form method="post" action="https://panel.example/"></form><form method="post" action="//a.example/"></form>'
    page = PreviewPage(forms, ("done",), "done", {"": "code"})
    assert "the-token" not in build_preview_html(page, str, str, "", "", "the-token")


def test_no_page_is_lost_when_a_page_is_not_there(client, study):
    assert client.get(url(study, "s99.p1")).status_code == 404


def test_a_design_that_cannot_be_shown_says_why(client, owner):
    study = builders.spa_draft(owner=owner, prompts=2)
    response = client.get(url(study), follow=True)
    assert "A batch needs 4 prompts" in errors_of(response)


def test_an_arm_is_chosen(client, study):
    study.arms.update(name="one", instructions="Do this.")
    other = builders.Arm.objects.create(study=study, name="two", instructions="Do **that**.")
    html = client.get(url(study, "start") + f"?arm={other.pk}").content.decode()
    assert "<strong>that</strong>" in html
    assert client.get(url(study, "start") + "?arm=%00").status_code == 200


@pytest.mark.slow
def test_what_researchers_write_in_markdown_is_markdown_on_every_page(client, study):
    words = {name: f"*{name}*" for name in ("purpose", "consent", "instructions", "debriefing")}
    type(study).objects.filter(pk=study.pk).update(**words)
    spa = study.sections.get(protocol="spa")
    spa.settings["explanation"] = "*explanation*"
    spa.save()
    Output.objects.filter(system__study=study).update(format="markdown", text="*output*")
    spa.questions.update(help="*help*")
    seen = "".join(client.get(url(study, key)).content.decode() for key in KEYS)
    for word in (*words, "explanation", "output", "help"):
        assert f"<em>{word}</em>" in seen and f"*{word}*" not in seen, word


# Test runs


def test_a_try_is_answered_on_the_real_pages_and_goes_at_the_launch(client, study, owner):
    before = rows()
    response = client.post(f"/admin/studies/study/{study.pk}/test-run/")
    assignment = Assignment.objects.get()
    assert response.url == f"/p/{assignment.code}/"
    assert (assignment.origin, assignment.design, assignment.batch.origin) == ("test", None, "test")
    assert assignment.batch.number >= FIRST_TEST_NUMBER and assignment.batch.claimed == 0
    assert client.get(response.url, follow=True).status_code == 200
    while (key := players.full_page_state(Assignment.objects.get(pk=assignment.pk)).next_key) is not None:
        outcome = players.answered(assignment, key)
        assert outcome.sent is None
    assert Response.objects.exists() and Assignment.objects.get().submitted_at
    assert erase_test_run_data(study) == 1
    assert rows() == before
    start_test_run(study, owner)
    builders.launched(study, owner)
    assert not Assignment.objects.exists() and not Batch.objects.filter(origin="test").exists()
    assert min(study.items.values_list("number", flat=True)) == 1
    assert max(study.items.values_list("number", flat=True)) < FIRST_TEST_NUMBER


def test_two_tries_stand_beside_each_other(study, owner):
    first, second = start_test_run(study, owner), start_test_run(study, owner)
    assert first.batch.number != second.batch.number and first.annotator != second.annotator
    assert Item.objects.filter(number__lt=FIRST_TEST_NUMBER).count() == 0
    assert erase_test_run_data(study) == 2
    assert not (Item.objects.exists() or Exposure.objects.exists() or Placement.objects.exists())
    assert not Annotator.objects.exists() and not PageVisit.objects.exists()


def test_items_made_by_hand_stay_when_tries_go(study, owner):
    prompt = study.prompts.first()
    made = Item.objects.create(
        study=study, section=study.sections.get(protocol="spa"), number=1, prompt=prompt, content="by hand"
    )
    start_test_run(study, owner)
    erase_test_run_data(study)
    assert list(study.items.all()) == [made]


def test_a_launched_study_is_not_tried_out(client, study, owner):
    builders.launched(study)
    with pytest.raises(ActionRefused):
        start_test_run(study, owner)
    response = client.post(f"/admin/studies/study/{study.pk}/test-run/", follow=True)
    assert "A test run is not possible" in errors_of(response) and not Assignment.objects.exists()


def test_a_try_does_not_count(client, study, owner):
    start_test_run(study, owner)
    html = client.get("/admin/studies/study/").content.decode()
    assert "0 of 6" in html


def test_pages_are_named_by_the_section_as_the_study_knows_it_and_what_is_asked(client, study):
    # A screening section is met first, wherever it is in the study.
    study.sections.filter(position=1).update(position=9)
    html = client.get(url(study)).content.decode()
    bar = html[: html.index("</nav>")]
    names = re.findall(r'<a href="[^"]*/preview/[^"]*"[^>]*>([^<]*)</a>', bar.partition("<ol>")[2])
    assert names == [
        "Landing page", "9. Survey: fluent", "Instructions", "2. SPA, reading", "2. SPA, questions", "3. Rating, page 1: overall",
        "4. Survey: comment", "The end", "Consent, to read again", "Withdrawal",
    ]  # fmt: skip
