"""Connect's channel: ids that it adds, a way back that it owns."""

import pytest

from annotators.models import Recruitment
from annotators.recruitment.channels import OUTCOMES, REGISTRY

CONNECT = REGISTRY["connect"]
SENT = {"participantId": "A1B2C3D4", "assignmentId": "as-77", "projectId": "FF4E356E38"}
COMPLETE = "https://connect.cloudresearch.com/participant/project/FF4E356E38/complete"
IN_PART = "https://connect.cloudresearch.com/participant/project/FF4E356E38/partial"


def test_connects_ids_tell_the_person_the_assignment_and_the_project():
    arrival = CONNECT.read_arrival(Recruitment(), SENT)
    assert arrival.person == "A1B2C3D4" and arrival.ids == {
        "person": "A1B2C3D4",
        "session": "as-77",
        "task": "FF4E356E38",
    }
    assert CONNECT.read_arrival(Recruitment(), SENT | {"participantId": "{participantId}"}).is_preview


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"participantId": "", "assignmentId": "", "projectId": ""}, "from Connect"),
        ({"participantId": ""}, "participantId should"),
        ({"assignmentId": "a b c d"}, "assignmentId should"),
        ({"projectId": "x" * 65, "participantId": "é" * 8}, "participantId and projectId"),
    ],
)
def test_what_is_missing_or_no_id_is_named(changes, words):
    arrival = CONNECT.read_arrival(Recruitment(), SENT | changes)
    assert words in arrival.problem and not arrival.person


def test_the_address_of_who_completed_is_given_to_nobody_else():
    door = Recruitment(settings={"return_complete": COMPLETE, "return_in_part": IN_PART})
    backs = {outcome: CONNECT.way_back(door, outcome, {}, "R").url for outcome in OUTCOMES}
    assert [outcome for outcome, url in backs.items() if url == COMPLETE] == ["complete"]
    assert {outcome for outcome, url in backs.items() if url == IN_PART} == {"screened_out", "failed_checks"}
    assert set(backs.values()) == {COMPLETE, IN_PART, "https://connect.cloudresearch.com/"}


def test_a_code_is_shown_beside_the_way_to_connect():
    back = CONNECT.way_back(Recruitment(settings={"return_complete": "K7PQ2MXA"}), "complete", {}, "R")
    assert (back.code, back.url) == ("K7PQ2MXA", "https://connect.cloudresearch.com/")
    assert CONNECT.problems(Recruitment()) and not CONNECT.problems(
        Recruitment(settings={"return_complete": "K7PQ2MXA"})
    )


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        (
            {"return_complete": "https://connect.cloudresearch.com.evil.example/x"},
            "return_complete",
            "not an address of Connect",
        ),
        (
            {"return_complete": "https://evil.example/?connect.cloudresearch.com"},
            "return_complete",
            "not an address of Connect",
        ),
        ({"return_complete": COMPLETE.replace("https", "http")}, "return_complete", "must begin with https"),
        ({"return_complete": "https://connect.cloudresearch.com@evil.example/"}, "return_complete", "name a host"),
        ({"return_complete": COMPLETE + "?p={person}"}, "return_complete", "heval fills in nothing"),
        ({"return_in_part": COMPLETE}, "return_in_part", "as if they had"),
    ],
)
def test_a_way_back_that_is_not_connects_own_is_refused(changes, field, words):
    form = CONNECT.settings_form({"return_complete": COMPLETE, "return_in_part": IN_PART} | changes)
    assert not form.is_valid() and words in str(form.errors[field]), form.errors
    assert CONNECT.settings_form({"return_complete": COMPLETE, "return_in_part": IN_PART}).is_valid()
