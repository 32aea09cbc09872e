"""Prolific's channel: who arrives, the link to paste, a code for each way to end."""

import re

import pytest
from django.conf import settings as site

from annotators.models import Annotator, Assignment, Recruitment
from annotators.models.identity import restored_external_ids
from annotators.recruitment.channels import OUTCOMES, REGISTRY
from annotators.recruitment.channels.generic import ALPHABET, generate_outcome_code, is_guessable_from_code
from tests.admin_pages import changed, errors_of, form_of
from tests.blockers import AD_WORDS
from tests.builders import recruitment, spa_study, user
from tests.leaks import all_bytes
from tests.robots import Robot

PID, STUDY, SESSION = "5f1a" * 6, "60ab" * 6, "66f0" * 6
SENT = f"PROLIFIC_PID={PID}&STUDY_ID={STUDY}&SESSION_ID={SESSION}"
WORDS = ("A2K7PQ", "B3T4RW", "C4ZBHM", "D5XNUV", "E6JYGA", "F7SLQD", "G8RCWX", "H9VETK")
CODES = {f"code_{outcome}": code for outcome, code in zip(OUTCOMES, WORDS, strict=True)}


def door_of(study, **settings):
    return recruitment(study, "prolific", settings=CODES | settings)


@pytest.fixture
def channel():
    return REGISTRY["prolific"]


def arrive(channel, query: dict[str, str]):
    return channel.read_arrival(Recruitment(settings=CODES), query)


# Arrival


def test_three_ids_tell_the_person_the_study_and_the_submission(channel):
    arrival = arrive(
        channel, {"PROLIFIC_PID": f" {PID.upper()} ", "STUDY_ID": STUDY, "SESSION_ID": SESSION, "other": "x"}
    )
    assert (arrival.person, arrival.trust, arrival.problem, arrival.is_preview) == (PID, "claimed", "", False)
    assert arrival.ids == {"person": PID, "task": STUDY, "session": SESSION}


def test_placeholders_that_nobody_filled_in_are_a_look(channel):
    arrival = arrive(
        channel, {"PROLIFIC_PID": "{{%PROLIFIC_PID%}}", "STUDY_ID": "{{%STUDY_ID%}}", "SESSION_ID": SESSION}
    )
    assert arrival.is_preview and not arrival.person


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({}, "from Prolific"),
        ({"PROLIFIC_PID": PID}, "STUDY_ID and SESSION_ID"),
        ({"PROLIFIC_PID": "robert", "STUDY_ID": STUDY, "SESSION_ID": SESSION}, "PROLIFIC_PID should"),
        ({"PROLIFIC_PID": PID[:-1], "STUDY_ID": STUDY, "SESSION_ID": SESSION}, "PROLIFIC_PID should"),
        ({"PROLIFIC_PID": PID, "STUDY_ID": STUDY, "SESSION_ID": SESSION + "0"}, "SESSION_ID should"),
        ({"PROLIFIC_PID": "٣" * 24, "STUDY_ID": STUDY, "SESSION_ID": SESSION}, "PROLIFIC_PID should"),
        ({"PROLIFIC_PID": PID + "\n", "STUDY_ID": "", "SESSION_ID": SESSION}, "STUDY_ID should"),
    ],
)
def test_what_is_missing_or_no_id_is_named(channel, query, words):
    arrival = arrive(channel, query)
    assert words in arrival.problem and not arrival.person and not arrival.is_preview


# The way back


def test_each_way_to_end_has_a_code_of_its_own_and_the_address_that_takes_it(channel):
    backs = {
        outcome: channel.way_back(Recruitment(settings=CODES), outcome, {"session": SESSION}, "R")
        for outcome in OUTCOMES
    }
    assert len({back.code for back in backs.values()}) == len(OUTCOMES)
    assert backs["complete"].url == "https://app.prolific.com/submissions/complete?cc=A2K7PQ"
    assert all(back.url.endswith(f"?cc={back.code}") and SESSION not in back.url for back in backs.values())


def test_without_a_code_people_get_to_prolific_all_the_same(channel):
    back = channel.way_back(Recruitment(settings={}), "done", {}, "R")
    assert (back.code, back.url) == ("", "https://app.prolific.com/")


def test_the_link_has_prolifics_placeholders_exactly(channel):
    ((_, link),) = channel.links(Recruitment(), "https://eval.example.org/e/k/")
    assert link == (
        "https://eval.example.org/e/k/?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
    )


@pytest.mark.parametrize("slug", ["prolific", "connect", "sona"])
def test_no_address_of_a_panel_is_one_that_blockers_hide(slug):
    channel = REGISTRY[slug]
    known = CODES | {
        "site": "s.sona-systems.com",
        "experiment_id": "1",
        "credit_token": "2",
        "return_complete": "https://connect.cloudresearch.com/c",
    }
    door = Recruitment(settings=known)
    addresses = [link for _, link in channel.links(door, "https://eval.example.org/e/k/")]
    addresses += [channel.way_back(door, outcome, {"session": "12"}, "R").url for outcome in OUTCOMES]
    assert all(addresses) and not AD_WORDS.search(" ".join(addresses).replace("_", " "))


# Codes


def test_codes_are_made_and_no_two_are_near():
    codes = [generate_outcome_code() for _ in range(200)]
    assert all(re.fullmatch(f"[{ALPHABET}]{{10}}", code) for code in codes) and len(set(codes)) == 200


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("C1ABCDEF", "C1ABCDEF"),
        ("C1ABCDEF", "c1abcdef"),
        ("C1ABCDE1", "C1ABCDE2"),
        ("C1ABCDEF", "C1ABCDEFX9"),
        ("K7PQ2M", "K7PQ9W"),
        ("K7PQ2M", "FULL-OF-K7PQ2M"),
    ],
)
def test_codes_of_a_series_are_near(one, other):
    assert is_guessable_from_code(one, other)
    assert not is_guessable_from_code("K7PQ2MXA", "T4RW9ZBH")


def cleaned(**changes):
    return REGISTRY["prolific"].settings_form(CODES | {"review": "manual"} | changes)


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"code_full": "A2K7PQ"}, "code_full", "too similar"),
        ({"code_screened_out": "A2K7PX", "code_complete": "A2K7PQ"}, "code_screened_out", "too similar"),
        ({"code_complete": ""}, "code_complete", "required"),
        ({"code_complete": "COMPLETED1"}, "code_complete", "easy to guess"),
        ({"code_no_consent": "NO-CONSENT"}, "code_no_consent", "easy to guess"),
        ({"code_complete": "1111111111"}, "code_complete", "repeats itself"),
        ({"code_complete": "K7P Q2M"}, "code_complete", "without spaces"),
        ({"code_complete": "K7PQ"}, "code_complete", "6 to 64"),
        ({"screen_out_pay": "0.20"}, "screen_out_places", "or neither"),
        ({"screen_out_places": "5"}, "screen_out_pay", "or neither"),
        ({"project": "mine"}, "project", "24 characters"),
        ({"review": "never"}, "review", "valid choice"),
    ],
)
def test_settings_that_would_give_a_code_away_are_refused(changes, field, words):
    form = cleaned(**changes)
    assert not form.is_valid() and words in str(form.errors[field]), form.errors


def test_settings_of_different_codes_are_taken():
    form = cleaned(code_complete="K7PQ2MXA", code_full="", screen_out_pay="0.20", screen_out_places="5")
    assert form.is_valid(), form.errors


@pytest.mark.django_db
def test_a_new_link_has_codes_already_and_they_stay(client):
    owner = user()
    study = spa_study(owner)
    client.force_login(owner)
    url = f"/admin/annotators/recruitment/add/?study={study.pk}"
    response = client.post(url, changed(form_of(client.get(url), "recruitment_form"), channel="prolific"), follow=True)
    made = Recruitment.objects.get()
    codes = {name: value for name, value in made.settings.items() if name.startswith("code_")}
    assert len(set(codes.values())) == len(OUTCOMES) and not REGISTRY["prolific"].problems(made)
    page = response.content.decode()
    assert f"{site.SITE_URL}/e/{made.key}/?PROLIFIC_PID={{{{%PROLIFIC_PID%}}}}&amp;STUDY_ID=" in page
    change = f"/admin/annotators/recruitment/{made.pk}/change/"
    client.post(change, changed(form_of(response, "recruitment_form")))
    made.refresh_from_db()
    assert {name: made.settings[name] for name in codes} == codes
    same = changed(form_of(client.get(change), "recruitment_form"), **{"settings-code_full": codes["code_complete"]})
    assert "too similar" in errors_of(client.post(change, same))


# A whole visit


@pytest.mark.django_db
def test_a_visit_shows_the_code_at_its_end_alone_and_no_id_on_its_pages(client):
    door = door_of(spa_study(target_n=1))
    address = f"/e/{door.key}/?{SENT}"
    # Looking, also by the robots that preview links, takes no place.
    assert all(client.get(address).status_code == 200 and client.head(address).status_code == 200 for _ in range(2))
    assert not Assignment.objects.exists() and not Annotator.objects.exists()
    robot = Robot(address)
    assert robot.play() == "Thank you"
    assignment = Assignment.objects.get()
    assert assignment.external_ids == {"task": STUDY, "session": SESSION}
    assert restored_external_ids(assignment) == {"person": PID, "task": STUDY, "session": SESSION}
    end = f"/p/{assignment.code}/done/"
    for _ in range(2):  # reloaded, in another browser, at any time
        page = client.get(end).content.decode()
        assert CODES["code_complete"] in page and f"complete?cc={CODES['code_complete']}" in page
    before = [response for response in robot.responses if b"Thank you" not in response.content]
    assert before and not [code for code in CODES.values() if code.encode() in all_bytes(before)]
    assert not [code for name, code in CODES.items() if name != "code_complete" and code in page]
    inside = [r for r in robot.responses if r.request["PATH_INFO"].startswith("/p/")] + [client.get(end)]
    assert len(inside) > 4 and not [i for i in (PID, STUDY, SESSION) if i.encode() in all_bytes(inside).lower()]
    # The same person again, from another submission: the way they came leads to their end, not to a second place.
    again = client.post(f"/e/{door.key}/?{SENT.replace(SESSION, '77f0' * 6)}", {"agree": "1"}, follow=True)
    assert CODES["code_complete"] in again.content.decode() and Assignment.objects.count() == 1
    full = client.post(f"/e/{door.key}/?{SENT.replace(PID, '6f1a' * 6)}", {"agree": "1"}).content.decode()
    assert CODES["code_full"] in full and CODES["code_complete"] not in full


@pytest.mark.django_db
def test_who_cannot_come_in_reads_which_of_three_reasons_it_is(client):
    door = door_of(spa_study())
    raw = client.get(
        f"/e/{door.key}/?PROLIFIC_PID={{{{%PROLIFIC_PID%}}}}&STUDY_ID={STUDY}&SESSION_ID={SESSION}"
    ).content.decode()
    missing = client.get(f"/e/{door.key}/?PROLIFIC_PID={PID}").content.decode()
    declined = client.post(f"/e/{door.key}/?{SENT}", {"decline": "1"}).content.decode()
    assert "not complete" in missing and "not complete" not in raw
    assert CODES["code_no_consent"] in declined and CODES["code_complete"] not in declined
    assert not Annotator.objects.exists()
