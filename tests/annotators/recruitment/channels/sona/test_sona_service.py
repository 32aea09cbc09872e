"""SONA's service against its stand-in: what is credit, what is an error, and what is neither."""

import pytest

from annotators.models import Recruitment
from annotators.recruitment.channels.sona import SonaService, grant_credit, parse_xml_texts
from annotators.recruitment.panels import Order, PanelBusy, RequestRefused, ResultUnclear
from tests.annotators.recruitment.channels.sona.stand_in import (
    ANSWER,
    ERROR,
    NO_ERROR,
    NO_RESULT,
    RESULT,
    SECRETS,
    SETTINGS,
    SONA,
    TOKEN,
)


def granted(fake, token=TOKEN):
    return grant_credit("yourschool.sona-systems.com", "123", token, "40351", origin=fake.url)


def test_credit_is_granted_when_sona_says_so(fake):
    assert granted(fake) == {"credit_status": "G"} and fake.granted == {"40351"}
    ((path, asked),) = fake.asked
    assert path == "/services/SonaAPI.svc/WebstudyCredit"
    assert asked == {"experiment_id": "123", "credit_token": TOKEN, "survey_code": "40351"}


def test_an_error_with_http_200_is_an_error_and_does_not_repeat_the_token(fake):
    with pytest.raises(RequestRefused, match="Invalid token …"):
        granted(fake, "f" * 32)
    assert not fake.granted


@pytest.mark.parametrize(
    ("answer", "raised", "words"),
    [
        (ANSWER.format(NO_ERROR + RESULT.format("N")), RequestRefused, "“N”, not as granted"),
        (ANSWER.format(ERROR.format("x") + RESULT.format("G")), RequestRefused, "Invalid token x"),
        (ANSWER.format(NO_ERROR + NO_RESULT), ResultUnclear, "neither"),
        (ANSWER.format(NO_ERROR + "<a:credit_status>G</a:credit_status>"), RequestRefused, "not as granted"),
        ("<html><body>Maintenance</html>", ResultUnclear, "not XML"),
        (" ", ResultUnclear, "not XML"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', ResultUnclear, "document type"),
        ("drop", ResultUnclear, "broke"),
    ],
)
def test_what_does_not_say_granted_is_not_taken_for_it(fake, answer, raised, words):
    fake.next_answer = answer
    with pytest.raises(raised, match=words):
        granted(fake)


def test_a_server_that_fails_leaves_it_open_and_one_that_is_away_did_nothing(fake):
    fake.status = 500
    with pytest.raises(ResultUnclear):
        granted(fake)
    fake.status = 429
    with pytest.raises(PanelBusy):
        granted(fake)
    with pytest.raises(PanelBusy, match="cannot be reached"):
        grant_credit("yourschool.sona-systems.com", "123", TOKEN, "40351", origin="http://127.0.0.1:1")
    with pytest.raises(RequestRefused, match="not an address"):
        grant_credit("evil.example", "123", TOKEN, "40351")


def test_the_service_grants_once_more_what_may_be_lost_and_shows_no_token(fake):
    service = SonaService("yourschool.sona-systems.com", "123", TOKEN, fake.url)
    order = Order("approve", "t", {"task": "123", "submission": "40351", "person": "40351", "message": ""})
    fake.next_answer = "drop"
    with pytest.raises(ResultUnclear):
        service.carry_out(order)
    assert (
        service.find_order_result(order) is None
        and service.carry_out(order) == {"credit_status": "G"}
        and fake.granted == {"40351"}
    )
    with pytest.raises(RequestRefused, match="does not support “reject”"):
        service.carry_out(Order("reject", "t", order.values))
    assert TOKEN not in repr(service)
    door = Recruitment(settings=SETTINGS)
    assert SONA.service(door, SECRETS).operations == {"approve"}
    assert SONA.service(door, {}) is None and SONA.service(Recruitment(), SECRETS) is None
    with pytest.raises(RequestRefused, match="not a credit token"):
        SONA.service(door, {"credit_token": "a&b"})


def test_text_is_read_below_each_name():
    assert parse_xml_texts(b"<x:a xmlns:x='u'><b>1<c>2</c></b><c/></x:a>") == {"a": "12", "b": "12", "c": "2"}
