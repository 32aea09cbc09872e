"""What Prolific says that a study has cost."""

from decimal import Decimal

import pytest

from annotators.recruitment.channels.prolific.client import parse_charged_fees
from annotators.recruitment.panels import ChargedFees
from tests.annotators.recruitment.channels.prolific.submissions import OTHER, work


def money(amount, currency="GBP") -> dict:
    return {"amount": amount, "currency": currency}


def test_what_prolific_has_taken_until_now(fake, service, task):
    assert service.charged_fees(task) is None  # nothing yet
    work(fake, task, "APPROVED")
    work(fake, task, "AWAITING REVIEW", OTHER)
    fake.submissions[work(fake, fake.add_study(), "APPROVED")["submission"]]["bonus_payments"].append(900)
    assert service.charged_fees(task) == ChargedFees(Decimal("0.53"), Decimal("0"), Decimal("0.10"), "GBP")
    fake.submissions[work(fake, task, "APPROVED")["submission"]]["bonus_payments"].append(60)
    assert service.charged_fees(task) == ChargedFees(Decimal("1.06"), Decimal("0.20"), Decimal("0.25"), "GBP")


def test_every_fee_and_every_tax_is_counted_and_what_people_got_is_not():
    names = ("rewards", "fees", "tax", "rep_sample_fees", "rep_sample_tax")
    rewards = {name: money(10.0**n) for n, name in enumerate(names)}
    told = parse_charged_fees(
        {"rewards": rewards, "bonuses": {"rewards": money(9), "fees": money(200), "tax": money(3000)}}
    )
    assert told == ChargedFees(Decimal("10.10"), Decimal("2"), Decimal("131"), "GBP")


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"total_cost": 6400},
        {"rewards": None, "bonuses": None},
        {"rewards": 5},
        {"rewards": {}},
        {"rewards": {"tax": money(5)}},
        {"rewards": {"fees": 5}},
        {"rewards": {"fees": {"amount": "5", "currency": "GBP"}}},
        {"rewards": {"fees": {"amount": True, "currency": "GBP"}}},
        {"rewards": {"fees": {"amount": -5, "currency": "GBP"}}},
        {"rewards": {"fees": {"amount": float("nan"), "currency": "GBP"}}},
        {"rewards": {"fees": {"amount": 5}}},
        {"rewards": {"fees": {"amount": 5, "currency": 826}}},
        {"rewards": {"fees": money(5)}, "bonuses": [1]},
        {"rewards": {"fees": money(5)}, "bonuses": {"fees": money(5, "USD")}},
        {"rewards": {"fees": money(5), "tax": {"total": 5}}},
    ],
)
def test_a_cost_in_other_words_is_none_that_is_known(answer):
    assert parse_charged_fees(answer) is None
