"""External questions: who arrives, what a preview shows, where the last page leads, and by whom a page may be framed."""

import re
from xml.etree import ElementTree

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from annotators.models import Annotator, Assignment, PageVisit, PanelSubmission, Recruitment, Response
from annotators.models.identity import get_person_id
from annotators.places import assign
from annotators.places.places import compute_receipt
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.channels.external_question import (
    HTML,
    OPEN_FROM_PANEL_MESSAGE,
    PREVIEW_ASSIGNMENT_ID,
    external_question_xml,
    survey_link_xml,
)
from heval_site.runtime import environment
from studies.models import Output, Study
from tests.builders import add_rating, draft_study, launched, recruitment
from tests.players import answered

pytestmark = pytest.mark.django_db
SITE = "https://tasks.example.org"
IDS = {"assignmentId": "3ASG1", "hitId": "3HIT1", "workerId": "A1ANNA", "turkSubmitTo": SITE}


def small_study(m=1, **columns) -> Study:
    study = draft_study(systems=("alpha", "beta"), prompts=2, target_n=3, instructions="", **columns)
    add_rating(study, position=1, m=m)
    return launched(study)


@pytest.fixture(autouse=True)
def allowed(settings):
    settings.EXTERNAL_QUESTION_SITES = (SITE,)


def link(study, **settings) -> Recruitment:
    return recruitment(study, "external_question", settings={"site": SITE} | settings)


@pytest.fixture
def door():
    return link(small_study(), submits=["screened_out"])


def unsaved(**settings) -> Recruitment:
    """A link that no database holds: reading an address needs none."""
    return Recruitment(study=Study(), channel="external_question", settings={"site": SITE} | settings)


def arrive(door, client=None, **ids):
    """Start with these ids; gives the assignment, to which the person was sent."""
    parameters = "&".join(f"{name}={value}" for name, value in (IDS | ids).items())
    response = (client or Client()).post(f"/e/{door.key}/?{parameters}", {"agree": "1"})
    assert response.status_code == 302, response.content.decode()
    return Assignment.objects.get(code=response["Location"].split("/")[2])


def finished(door, **ids) -> Assignment:
    assignment = arrive(door, **ids)
    while answered(assignment).next_key is not None:
        pass
    return Assignment.objects.get(pk=assignment.pk)


def last_page(assignment) -> str:
    return Client().get(f"/p/{assignment.code}/done/").content.decode()


def form_of(page: str) -> tuple[str, dict[str, str]]:
    action, inner = re.search(r'<form method="post" action="([^"]+)">(.*?)</form>', page, re.DOTALL).groups()
    return action, dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', inner))


# The door


def test_a_preview_shows_title_pay_and_consent_and_writes_nothing(door):
    texts = list(Output.objects.filter(system__study=door.study).values_list("text", flat=True))
    for address in (
        f"assignmentId={PREVIEW_ASSIGNMENT_ID}&hitId=3HIT1",
        f"assignmentId={PREVIEW_ASSIGNMENT_ID}&hitId=3HIT1&workerId=&turkSubmitTo=x",
    ):
        page = Client().get(f"/e/{door.key}/?{address}").content.decode()
        assert "Accept the task to start." in page and door.study.public_title in page and "What you agree to" in page
        assert 'name="start"' not in page and not any(text in page for text in texts)
        posted = Client().post(f"/e/{door.key}/?{address}", {"agree": "1"})
        assert posted.status_code == 200 and "Accept the task to start." in posted.content.decode()
    assert not Annotator.objects.exists() and not Assignment.objects.exists() and not PageVisit.objects.exists()


@pytest.mark.parametrize(
    "changes",
    [
        dict.fromkeys(IDS, ""),
        {"workerId": ""},
        {"assignmentId": ""},
        {"workerId": "A" + "1" * 64},
        {"assignmentId": "3ASG1/../x"},
        {"hitId": "${hitId}"},
    ],
    ids=str,
)
def test_who_opens_it_outside_or_with_ids_of_another_shape_is_sent_back(changes):
    arrival = REGISTRY["external_question"].read_arrival(unsaved(), IDS | changes)
    assert arrival.problem == OPEN_FROM_PANEL_MESSAGE and not arrival.person and not arrival.ids


def test_without_a_hit_or_a_place_to_submit_to_one_may_come_in():
    ids = {name: IDS[name] for name in ("assignmentId", "workerId")}
    arrival = REGISTRY["external_question"].read_arrival(unsaved(), ids)
    assert (arrival.person, arrival.ids) == ("A1ANNA", {"person": "A1ANNA", "session": "3ASG1"})


def test_an_assignment_that_is_given_to_a_second_worker_is_two_works(door):
    """A panel gives the id of a returned assignment to the next worker."""
    first, second = finished(door), finished(door, workerId="A2BERT")
    assert first.annotator != second.annotator and first.external_ids["session"] == second.external_ids["session"]
    receipts = {form_of(last_page(one))[1]["receipt"] for one in (first, second)}
    assert receipts == {compute_receipt(first.code), compute_receipt(second.code)} and len(receipts) == 2


def test_a_return_and_another_acceptance_rebinds_the_work_and_keeps_the_answers():
    door = link(small_study(m=2))
    first = arrive(door)
    assert answered(first).next_key
    answers = set(Response.objects.values_list("slot", "value"))
    again = arrive(door, assignmentId="3ASG9", hitId="3HIT2")
    assert again.pk == first.pk and again.seed == first.seed
    assert answers and answers == set(Response.objects.filter(assignment=again).values_list("slot", "value"))
    assert get_person_id(again.annotator) == "A1ANNA"
    assert again.external_ids == {"session": "3ASG9", "task": "3HIT2"}


def test_who_finished_here_but_never_reached_the_panel_submits_with_the_new_assignment(door):
    """Within one HIT a second assignment is given to nobody who submitted the first."""
    done = finished(door)
    again = arrive(door, assignmentId="3ASG2")
    assert again.pk == done.pk and form_of(last_page(again))[1]["assignmentId"] == "3ASG2"


def test_without_the_hits_names_a_second_assignment_is_another_task():
    """Taken for the same one, what was never done for it would be submitted."""
    retaken = REGISTRY["external_question"].is_retaken_task
    assert retaken({"session": "A", "task": "H1"}, {"session": "B", "task": "H1"})
    for before, now in (({}, {}), ({"task": "H1"}, {}), ({}, {"task": "H1"})):
        assert retaken({"session": "A"} | before, {"session": "B"} | now) is False
    assert retaken({"session": "A"}, {"session": "A"}) is None


def test_who_finished_and_takes_another_hit_is_asked_to_return_it(door):
    done = finished(door)
    response = Client().post(f"/e/{door.key}/?assignmentId=3ASG2&hitId=3HIT2&workerId=A1ANNA", {"agree": "1"})
    page = response.content.decode()
    assert "You have already taken part" in page and "Please return the task" in page
    assert "externalSubmit" not in page
    done.refresh_from_db()
    assert done.external_ids["session"] == "3ASG1"


# The last page


@pytest.mark.parametrize(
    "told",
    [
        "",
        SITE,
        f"{SITE}/",
        "http://tasks.example.org",
        "https://tasks.example.org@evil.example.org",
        "https://tasks.example.org.evil.example.org",
        "https://evil.example.org/tasks.example.org",
        "https://[",
    ],
)
def test_the_last_form_goes_to_the_panel_whatever_the_address_says(door, told):
    ids = REGISTRY["external_question"].read_arrival(door, IDS | {"turkSubmitTo": told}).ids
    assert ids == {"person": "A1ANNA", "session": "3ASG1", "task": "3HIT1"}
    way_back = REGISTRY["external_question"].way_back(door, "complete", ids | {"submit_to": told}, "R")
    assert way_back.url == f"{SITE}/mturk/externalSubmit" and way_back.origin == SITE


def test_the_last_page_posts_a_receipt_and_no_answer_and_can_be_opened_for_ever(door):
    assignment = finished(door)
    pages = {last_page(assignment) for _ in range(3)}
    (page,) = pages
    action, fields = form_of(page)
    assert action == f"{SITE}/mturk/externalSubmit"
    assert fields == {
        "assignmentId": "3ASG1",
        "receipt": compute_receipt(assignment.code),
        "study": str(door.study.code),
    }
    assert (
        "Submit the task" in page
        and "way-back.js" in page
        and " target=" not in page.split("<main")[1].split("</main")[0]
    )


@pytest.mark.parametrize(
    ("outcome", "submits"),
    [
        ("screened_out", True),
        ("failed_checks", False),
        ("full", False),
        ("no_consent", False),
        ("closed", False),
        ("done", False),
    ],
)
def test_who_did_not_complete_submits_only_where_the_link_says_so(outcome, submits):
    door = unsaved(submits=["screened_out"])
    way_back = REGISTRY["external_question"].way_back(door, outcome, {"session": "3ASG1"}, "R")
    assert bool(way_back.fields) is submits and ("Please return" in way_back.instructions) is not submits
    assert not REGISTRY["external_question"].way_back(door, outcome, {"session": "3ASG1"}, "").fields


def test_who_finished_and_then_left_submits_all_the_same_and_who_left_before_returns_it(door):
    done, half = finished(door), arrive(door, workerId="A2BERT", assignmentId="3ASG2")
    for one in (done, half):
        Client().post(f"/p/{one.code}/withdraw/")
        one.refresh_from_db()
        assert one.withdrawn_at
    url, fields = form_of(last_page(done))
    assert url == f"{SITE}/mturk/externalSubmit" and fields["receipt"] == compute_receipt(done.code)
    assert "please return the task" not in last_page(done).lower() and "return the task" in last_page(half)


def test_with_a_link_in_place_of_the_frame_each_assignment_has_its_code(door):
    door.settings |= {"variant": "link"}
    door.save()
    one, other = finished(door), finished(door, workerId="A2BERT", assignmentId="3ASG2")
    codes = [compute_receipt(assignment.code) for assignment in (one, other)]
    assert codes[0] != codes[1]
    for assignment, code in zip((one, other), codes, strict=True):
        page = last_page(assignment)
        assert f'id="code">{code}<' in page and "externalSubmit" not in page


# Frames


def test_every_page_of_an_assignment_may_be_framed_by_its_panel_and_by_nobody_else(door):
    client, parameters = Client(), "&".join(f"{name}={value}" for name, value in IDS.items())
    assignment = arrive(door)
    base = f"/p/{assignment.code}/"
    first = client.get(base)["Location"]
    looked = [
        client.get(f"/e/{door.key}/?{parameters}"),
        client.get(f"/e/{door.key}/"),
        client.post(f"/e/{door.key}/?{parameters}", {"decline": "1"}),
        client.get(base),
        client.get(first),
        client.post(first, {"go": "1"}),
        client.get(f"{base}question/"),
        client.post(f"{base}question/"),
        client.get(f"{base}consent/"),
        client.get(f"{base}withdraw/"),
        client.post(f"{base}time/"),
        client.get(f"{base}done/"),
    ]
    assert {response.status_code for response in looked} == {200, 302, 422}
    for response in looked:
        assert "X-Frame-Options" not in response
        ancestors = response["Content-Security-Policy"].split("frame-ancestors ")[1]
        assert ancestors == SITE
    plain = Client().get(f"/e/{recruitment(door.study).key}/")
    assert plain["Content-Security-Policy"].endswith("frame-ancestors 'none'")


@pytest.mark.slow
def test_the_last_page_goes_by_itself_only_where_nothing_is_left_to_read_or_do():
    goes = []
    for columns in ({"debriefing": ""}, {}, {"debriefing": "", "batches_per_annotator": 2}):
        assignment = finished(link(small_study(**columns)), workerId=f"A{len(goes)}0")
        goes.append("data-goes" in last_page(assignment))
    assert goes == [True, False, False]
    # An annotator who opens it again when the panel has their work wants to read its status.
    first = Assignment.objects.get(study__debriefing="", study__batches_per_annotator=1)
    PanelSubmission.objects.create(
        recruitment=first.recruitment,
        external_id="S",
        annotator=first.annotator,
        assignment=first,
        state="submitted",
        source="service",
    )
    page = last_page(first)
    assert "data-goes" not in page and "here and on the panel" in page


def test_only_the_last_page_may_send_a_form_to_the_panel(door):
    assignment = arrive(door)
    page = Client().get(Client().get(f"/p/{assignment.code}/")["Location"])
    assert "form-action 'self';" in page["Content-Security-Policy"]
    while answered(assignment).next_key is not None:
        pass
    last = Client().get(f"/p/{assignment.code}/done/")["Content-Security-Policy"]
    assert f"form-action 'self' {SITE}" in last and "unsafe" not in last


def test_a_page_about_a_fault_is_seen_in_the_frame_too(door):
    missing = Client().get("/p/nobody/")
    assert missing.status_code == 404
    assert SITE in missing["Content-Security-Policy"].split("frame-ancestors")[1]
    elsewhere = Client().get("/nowhere/")
    assert elsewhere["Content-Security-Policy"].endswith("frame-ancestors 'none'")


# The site


def test_a_site_takes_the_form_only_as_long_as_it_is_allowed(door, settings):
    channel = REGISTRY["external_question"]
    settings.EXTERNAL_QUESTION_SITES = ()
    assert not channel.way_back(door, "complete", {"session": "42"}, "R").fields
    assert "is not set or not allowed" in " ".join(channel.problems(door))
    form = channel.settings_form({"variant": "frame", "site": SITE})
    assert not form.is_valid() and f"does not list {SITE}" in str(form.errors)


def test_the_panels_file_is_read_by_the_columns_that_the_link_names(door):
    channel = REGISTRY["external_question"]
    assert not channel.can_read_export_file(door)
    door.settings |= {"file_person": "worker", "file_session": "assignment"}
    assert channel.can_read_export_file(door)
    (seen,) = channel.read_export(door, "worker,assignment\nA1ANNA,3ASG1\n")
    assert (seen.person, seen.submission, seen.state) == ("A1ANNA", "3ASG1", "submitted")


@pytest.mark.parametrize(
    "value",
    ["http://tasks.example.org", "https://a.example.org/x", "tasks.example.org", "https://a.org;x", "https://a b"],
)
def test_a_site_that_is_no_origin_stops_the_start(monkeypatch, value):
    monkeypatch.setenv("EXTERNAL_QUESTION_SITES", value)
    with pytest.raises(ImproperlyConfigured, match="EXTERNAL_QUESTION_SITES"):
        environment.origins("EXTERNAL_QUESTION_SITES")


# The question as XML


def test_the_question_holds_the_address_whatever_it_contains():
    address = "https://eval.example.org/e/k/?a=1&b=<2>"
    root = ElementTree.fromstring(external_question_xml(address))
    assert root.tag.startswith(
        "{http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2006-07-14/ExternalQuestion.xsd}"
    )
    assert [child.text for child in root] == [address, "0"]
    with pytest.raises(ValueError, match="https"):
        external_question_xml("http://eval.example.org/e/k/")
    with pytest.raises(ValueError, match="65,535 bytes"):
        external_question_xml("https://eval.example.org/?" + "&" * 14_000)


def test_the_question_with_a_link_asks_for_the_code():
    root = ElementTree.fromstring(
        survey_link_xml("https://eval.example.org/e/k/?a=1&b=2", f"{SITE}/mturk/externalSubmit")
    )
    assert root.tag == f"{{{HTML}}}HTMLQuestion"
    page = root[0].text
    assert (
        'href="https://eval.example.org/e/k/?a=1&amp;b=2"' in page and f'action="{SITE}/mturk/externalSubmit"' in page
    )
    assert 'name="assignmentId"' in page and 'name="receipt"' in page


def test_the_admin_shows_the_question_to_paste(admin_client, settings, door):
    settings.SITE_URL = "https://eval.example.org"
    page = admin_client.get(f"/admin/annotators/recruitment/{door.pk}/change/").content.decode()
    assert f"&lt;ExternalURL&gt;https://eval.example.org/e/{door.key}/&lt;/ExternalURL&gt;" in page
    settings.SITE_URL = "http://127.0.0.1:8000"
    page = admin_client.get(f"/admin/annotators/recruitment/{door.pk}/change/").content.decode()
    assert "Set SITE_URL to an address that begins with https" in page and "ExternalURL" not in page


def test_words_of_the_claim_know_the_pool(door):
    arrive(door)
    assert Annotator.objects.get().pool == "external_question"
    assert assign.get_or_create_annotator("external_question", "A1ANNA") == Annotator.objects.get()
