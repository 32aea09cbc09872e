"""Prolific's service against a stand-in that speaks its protocol: every order, as it goes well and as it breaks."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from annotators.models.constants import OPERATIONS, SUBMISSION_STATES
from annotators.recruitment.channels.prolific.client import to_minor_units
from annotators.recruitment.channels.prolific.service import ProlificService, completion_codes
from annotators.recruitment.channels.prolific.stand_in import TOKEN
from annotators.recruitment.panels import (
    Order,
    OrderNotReady,
    PanelBusy,
    RequestRefused,
    ResultUnclear,
    SubmissionSnapshot,
)
from tests.annotators.recruitment.channels.prolific.submissions import CODES, OTHER, PERSON, work

REASON = "The text fields hold letters at random where two sentences were asked for, in every one of the eight items of the study."


def order_of(operation: str, fake, task: str) -> Order:
    values = {
        "publish": {
            "title": "Rate stories", "description": "You read stories.", "url": "https://eval.example.org/e/k/?PROLIFIC_PID=x", "reward": "1.60",
            "currency": "GBP", "minutes": 8, "places": 30, "name": "Stories", "lists": [], "thresholds": {},
        },
        "stop": {"task": task}, "extend": {"task": task, "places": 15}, "bar": {"people": [PERSON], "list": "ours"},
        "reject": {"category": "LOW_EFFORT", "message": REASON}, "approve": {"message": ""}, "bonus": {"amount": "0.50", "currency": "GBP", "reason": "Thanks"},
        "screen_out": {"amount": "", "currency": "GBP"}, "request_return": {"message": "Withdrew consent"},
    }[operation]  # fmt: skip
    if operation == "bar":
        fake.get_or_create_group_id("ours")
    if "submission" in OPERATIONS[operation]:
        values = work(fake, task) | values
    assert set(values) == set(OPERATIONS[operation])
    return Order(operation, "token-1", values)


# The request that carries the order out, and how often the panel shows that it was.
TOLD_BY = {
    "publish": (
        "POST /studies/",
        lambda fake, v: len([s for s in fake.studies.values() if s["internal_name"] == "Stories [token-1]"]),
    ),
    "stop": ("POST /studies/", lambda fake, v: fake.studies[v["task"]]["status"] == "AWAITING REVIEW"),
    "extend": ("PATCH /studies/", lambda fake, v: fake.studies[v["task"]]["total_available_places"] == 15),
    "approve": ("POST /submissions/", lambda fake, v: fake.submissions[v["submission"]]["status"] == "APPROVED"),
    "reject": ("POST /submissions/", lambda fake, v: fake.submissions[v["submission"]]["status"] == "REJECTED"),
    "bonus": (
        "POST /bulk-bonus-payments/",
        lambda fake, v: fake.submissions[v["submission"]]["bonus_payments"].count(50),
    ),
    "screen_out": ("POST /studies/", lambda fake, v: fake.submissions[v["submission"]]["status"] == "SCREENED OUT"),
    "request_return": (
        "POST /submissions/",
        lambda fake, v: fake.submissions[v["submission"]]["return_requested"] is not None,
    ),
    "bar": (
        "POST /participant-groups/",
        lambda fake, v: fake.groups[fake.get_or_create_group_id(v["list"])].count(PERSON),
    ),
}
EVERY = pytest.mark.parametrize("operation", sorted(TOLD_BY))


def test_every_operation_is_proven_here():
    assert set(TOLD_BY) == ProlificService.operations
    assert set(OPERATIONS) - ProlificService.operations == {"reverse"}


@EVERY
def test_an_order_is_carried_out_once(operation, fake, service, task):
    order = order_of(operation, fake, task)
    result = service.carry_out(order)
    assert TOLD_BY[operation][1](fake, order.values) == 1
    if operation == "publish":
        assert fake.studies[result["task"]]["status"] == "ACTIVE"
    if operation == "bonus":
        with pytest.raises(ResultUnclear, match="Paid so far on this submission: 0.50"):
            service.find_order_result(order)
    else:
        assert service.find_order_result(order) == ({"task": result["task"]} if operation == "publish" else {})


@EVERY
@pytest.mark.parametrize("fault", ["drop before", "drop after", "500"])
def test_a_reply_that_is_lost_is_looked_up_and_nothing_is_done_twice(operation, fault, fake, service, task):
    order = order_of(operation, fake, task)
    request, done = TOLD_BY[operation]
    fake.faults.append((request, fault))
    with pytest.raises(ResultUnclear):
        service.carry_out(order)
    assert done(fake, order.values) == (fault == "drop after")
    if operation == "bonus":  # money: a person looks, the job never guesses
        with pytest.raises(ResultUnclear, match="0.50" if fault == "drop after" else "none"):
            service.find_order_result(order)
        return
    if service.find_order_result(order) is None:
        service.carry_out(order)
    assert done(fake, order.values) == 1 and service.find_order_result(order) is not None


@EVERY
def test_an_order_that_is_throttled_was_not_given(operation, fake, service, task):
    order = order_of(operation, fake, task)
    request, done = TOLD_BY[operation]
    fake.faults.append((request, "429"))
    with pytest.raises(PanelBusy) as busy:
        service.carry_out(order)
    assert busy.value.seconds == 7 and not done(fake, order.values)
    service.carry_out(order)
    assert done(fake, order.values) == 1


@EVERY
def test_an_order_that_the_panel_refuses_comes_back_with_its_words(operation, fake, service, task):
    order = order_of(operation, fake, task)
    worse = {
        "publish": {"url": "http://plain.example.org"},
        "extend": {"places": 3},
        "stop": {"task": fake.add_study(status="COMPLETED")},
        "request_return": {"message": ""},
        "bar": {"people": ["robert"]},
    }.get(operation, work(fake, task, "RETURNED"))
    values = dict(order.values) | worse
    if operation == "request_return":
        values["submission"] = "e" * 24
    words = {
        "publish": "Enter a valid URL",
        "extend": "only be increased",
        "stop": "is COMPLETED",
        "bonus": "not taken part",
        "bar": "no participant",
        "request_return": "no such submission",
    }.get(operation, "RETURNED")
    with pytest.raises(RequestRefused, match=words):
        service.carry_out(replace(order, values=values))
    assert not TOLD_BY[operation][1](fake, order.values)


@pytest.mark.parametrize("operation", sorted(name for name in TOLD_BY if "submission" in OPERATIONS[name]))
def test_a_submission_that_is_somebody_elses_by_now_is_left_alone(operation, fake, service, task):
    order = order_of(operation, fake, task)
    fake.submissions[order.values["submission"]]["participant"] = OTHER
    with pytest.raises(RequestRefused, match="another person"):
        service.carry_out(order)
    assert all(call.startswith("GET ") for call, _ in fake.calls)


def test_what_prolific_cannot_do_is_said_and_not_tried(fake, service, task):
    with pytest.raises(RequestRefused, match="does not support “reverse”"):
        service.carry_out(Order("reverse", "t", work(fake, task, "REJECTED") | {"message": ""}))
    assert not fake.calls


# Publishing


def test_what_is_published_is_what_was_asked(fake):
    settings = CODES | {"review": "automatic", "screen_out_pay": 0.2, "screen_out_places": 5, "barred_group": "a" * 24}
    service = ProlificService(TOKEN, settings, fake.url)
    made = fake.studies[service.carry_out(order_of("publish", fake, ""))["task"]]
    assert (
        made["reward"],
        made["total_available_places"],
        made["estimated_completion_time"],
        made["maximum_allowed_time"],
    ) == (160, 30, 8, 26)
    assert made["prolific_id_option"] == "url_parameters" and made["external_study_url"].startswith(
        "https://eval.example.org/e/k/"
    )
    assert made["filters"] == [{"filter_id": "participant_group_blocklist", "selected_values": ["a" * 24]}]
    assert {code["code"]: code["actions"][0]["action"] for code in made["completion_codes"]} == {
        "A2K7PQ": "AUTOMATICALLY_APPROVE",
        "B3T4RW": "FIXED_SCREEN_OUT_PAYMENT",
        "D5XNUV": "MANUALLY_REVIEW",
    }


def test_codes_without_settings_are_looked_at_by_a_person():
    codes = completion_codes(CODES)
    assert all(code["actions"] == [{"action": "MANUALLY_REVIEW"}] for code in codes)
    assert len({code["code_type"] for code in codes}) == len(codes) == 3


def test_a_draft_whose_publishing_failed_is_published_and_not_made_anew(fake, service):
    fake.balance = 100
    order = order_of("publish", fake, "")
    with pytest.raises(RequestRefused, match="balance is too low"):
        service.carry_out(order)
    assert service.find_order_result(order) is None
    fake.balance = 100_000
    service.carry_out(order)
    assert [study["status"] for study in fake.studies.values()] == ["ACTIVE"]


def test_an_account_in_another_currency_is_noticed_before_money_moves(fake, service):
    fake.currency = "USD"
    with pytest.raises(RequestRefused, match="pays in USD"):
        service.carry_out(order_of("publish", fake, ""))
    assert not fake.studies


@pytest.mark.parametrize("amount", ["0", "-1", "1.005", "abc", "NaN", "1e400", None])
def test_amounts_that_are_no_money_are_refused(amount):
    with pytest.raises(RequestRefused, match="money"):
        to_minor_units(amount)
    assert (to_minor_units("1.60"), to_minor_units(0.2), to_minor_units(3)) == (160, 20, 300)


# Decisions and money


def test_a_rejection_needs_a_category_and_a_hundred_characters(fake, service, task):
    values = work(fake, task) | {"category": "LOW_EFFORT", "message": "Bad."}
    with pytest.raises(RequestRefused, match="at least 100 characters; this one has 4"):
        service.carry_out(Order("reject", "t", values))
    with pytest.raises(RequestRefused, match="no category"):
        service.carry_out(Order("reject", "t", values | {"message": REASON, "category": "EXCLUDED"}))
    assert not fake.calls


@pytest.mark.parametrize("status", ["ACTIVE", "RESERVED", "PROCESSING"])
def test_who_is_on_the_way_back_is_approved_a_little_later(status, fake, service, task):
    values = work(fake, task, status) | {"message": ""}
    with pytest.raises(OrderNotReady, match=status) as busy:
        service.carry_out(Order("approve", "t", values))
    assert busy.value.seconds == 5
    fake.submit_work(values["submission"], "A2K7PQ")
    service.carry_out(Order("approve", "t", values))
    service.carry_out(Order("approve", "t", values))  # approved already: no error
    assert [call for call, _ in fake.calls if call.startswith("POST")] == [
        f"POST /submissions/{values['submission']}/transition/"
    ]


def test_a_state_that_nobody_knows_is_decided_by_a_person(fake, service, task):
    with pytest.raises(RequestRefused, match="PARTIALLY APPROVED"):
        service.carry_out(Order("approve", "t", work(fake, task, "PARTIALLY APPROVED") | {"message": ""}))


@pytest.mark.parametrize("fault", ["drop before", "drop after", "500", "429"])
def test_a_bonus_that_was_not_set_up_is_simply_ordered_again(fault, fake, service, task):
    order = order_of("bonus", fake, task)
    fake.faults.append(("POST /submissions/bonus-payments/", fault))
    with pytest.raises(PanelBusy):
        service.carry_out(order)
    service.carry_out(order)
    assert fake.submissions[order.values["submission"]]["bonus_payments"] == [50]


def test_screening_out_with_pay_is_not_given_twice_while_it_may_be_on_its_way(fake, service, task):
    order = order_of("screen_out", fake, task)
    order = replace(order, values=dict(order.values) | {"amount": "0.20"})
    fake.faults.append(("POST /studies/", "drop before"))
    with pytest.raises(ResultUnclear):
        service.carry_out(order)
    with pytest.raises(ResultUnclear, match="screened out yet"):
        service.find_order_result(order)
    service.carry_out(order)
    assert (
        fake.submissions[order.values["submission"]]["bonus_payments"] == [20]
        and service.find_order_result(order) == {}
    )


# What is seen


def test_all_pages_are_read_and_none_past_the_last(fake, service, task):
    people = [f"{n:024x}" for n in range(250)]
    for person in people:
        fake.add_submission(task, person)
    fake.add_submission(fake.add_study(), PERSON)
    assert [one.person for one in service.submissions(task)] == people
    assert len(fake.calls) == 3
    fake.calls.clear()

    assert len(list(service.submissions(task))) == 250
    assert list(service.submissions(fake.add_study())) == []


def test_states_are_mapped_and_a_new_word_changes_nothing(fake, service, task):
    words = {
        "RESERVED": "working", "ACTIVE": "working", "AWAITING REVIEW": "submitted", "APPROVED": "approved", "REJECTED": "rejected",
        "RETURNED": "returned", "TIMED-OUT": "expired", "TIMED_OUT": "expired", "SCREENED OUT": "screened_out", "PROCESSING": "unknown",
        "PARTIALLY APPROVED": "unknown", "ON THE MOON": "unknown", "": "unknown",
    }  # fmt: skip
    for n, word in enumerate(words):
        fake.add_submission(task, f"{n:024x}", word)
    assert {one.word: one.state for one in service.submissions(task)} == words
    assert set(words.values()) == set(SUBMISSION_STATES)


def test_a_submission_is_the_same_from_the_list_and_alone(fake, service, task):
    values = work(fake, task)
    fake.submit_work(values["submission"], "A2K7PQ")
    fake.submissions[values["submission"]] |= {
        "started_at": "2026-11-20T10:00:00.000000Z",
        "completed_at": "2026-11-20T10:20:00Z",
    }
    (listed,) = service.submissions(task)
    assert listed == service.submission(values["submission"])
    assert listed == SubmissionSnapshot(
        task=task,
        submission=values["submission"],
        person=PERSON,
        state="submitted",
        word="AWAITING REVIEW",
        code="A2K7PQ",
        started_at=datetime(2026, 11, 20, 10, tzinfo=UTC),
        submitted_at=datetime(2026, 11, 20, 10, 20, tzinfo=UTC),
        decides_itself_at=datetime(2026, 12, 11, 10, 20, tzinfo=UTC),
    )
    assert service.submission("f" * 24) is None


@pytest.mark.parametrize("fault", ["drop before", "drop after", "500", "429"])
def test_asking_may_be_repeated_whatever_broke(fault, fake, service, task):
    fake.faults += [("GET /users/me/", fault), ("GET /submissions/", fault)]
    with pytest.raises(PanelBusy):
        service.funds()
    with pytest.raises(PanelBusy):
        list(service.submissions(task))
    assert service.funds().amount == 1000
