"""Fees of panels: what they publish, and what the ledger of this site says."""

from decimal import Decimal

import pytest
from django.core.cache import cache
from django.urls import reverse

from analysis.planning.forms import PlanForm
from analysis.planning.results import all_panels, documented_rate, panel_rows, panel_values, site_costs
from annotators.models import Assignment, Payment, Recruitment
from annotators.pay.costs import channel_costs
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels import ChargedFees
from annotators.recruitment.panels.alerts import refresh_cached_fees
from studies.models import Study
from tests.annotators.recruitment.pretend import Pretend
from tests.builders import add_choice, draft_study, panel, spa_study, user
from tests.players import submitted

from .quick import inputs, words

pytestmark = pytest.mark.django_db


class Charging(Pretend):
    """A panel that took one sum for its only task."""

    def __init__(self, amount: str, currency: str):
        super().__init__()
        self.fees = ChargedFees(Decimal(amount), Decimal("0.20"), Decimal("0.10"), currency)

    def charged_fees(self, task):
        return self.fees


@pytest.fixture
def owner():
    return user("owner")


@pytest.fixture
def paid(owner):
    """A link at Prolific that paid two people 4 USD each, and one who was screened out 50 cents."""
    cache.clear()
    study = spa_study(owner, target_n=3)
    link = panel(study)
    Recruitment.objects.filter(pk=link.pk).update(channel="prolific", currency="USD")
    link.refresh_from_db()
    for person, amount in (("a", "4.00"), ("b", "4.00"), ("c", "0.50")):
        assignment = submitted(study, person, recruitment=link)
        Payment.objects.create(
            assignment=assignment,
            kind="bonus",
            way="bonus",
            state="paid",
            reason="pay",
            number=1,
            amount=Decimal(amount),
            currency="USD",
            ended_at=assignment.submitted_at,
        )  # fmt: skip - one payment in two lines
    Assignment.objects.filter(pk=assignment.pk).update(
        released_reason="screened_out", released_at=assignment.submitted_at, submitted_at=None
    )
    return link


@pytest.fixture
def draft(owner):
    study = draft_study(owner=owner)
    add_choice(study, m=6, stopping="none")
    return study


def test_every_panel_that_takes_new_links_is_offered_with_a_source():
    offered = all_panels()
    assert {panel.channel for panel in offered} == {slug for slug, one in REGISTRY.items() if one.takes_new_links}
    assert all(panel.source for panel in offered) and len({panel.key for panel in offered}) == len(offered)
    assert documented_rate("prolific_other") == 0.428
    for unknown in ("sona", "generic", "nobody"):
        with pytest.raises(ValueError, match="Give fee_rate"):
            documented_rate(unknown)


def test_published_fees_fill_the_form_and_can_be_changed():
    assert panel_values("prolific_academic", "USD", {}) == {"fee_rate": 0.333, "screen_out_pay": 0.14}
    assert panel_values("prolific_academic", "EUR", {}) == {"fee_rate": 0.333}, "a least pay in another currency"
    assert panel_values("an old key", "USD", {}) == {}
    form = PlanForm(inputs(), {"fee_rate": "7"}, fees=panel_values("connect_other", "USD", {}))
    assert form.is_valid() and form.inputs.prices.fee_rate == 0.4 and form["fee_rate"].value() == 40
    unknown = PlanForm(inputs(), {"fee_rate": "7"}, fees=panel_values("sona", "USD", {}))
    assert unknown.is_valid() and unknown["fee_rate"].value() == "" and unknown.inputs.prices.fee_rate == 0


def test_the_ledger_says_what_a_panel_really_took(paid, owner):
    refresh_cached_fees(paid, Charging("3.00", "USD"), ["T"])
    cost = site_costs(owner, "USD")["prolific"]
    assert (cost.links, cost.people, cost.screened_out) == (1, 3, 1)
    assert cost.fee_rate == pytest.approx(3.30 / 8.50) and cost.screen_out_pay == 0.5
    assert site_costs(owner, "GBP") == {} and site_costs(user("stranger"), "USD") == {}
    rows = panel_rows(inputs(), "USD", {"prolific": cost}, {"prolific"})
    assert [row["key"] for row in rows[:3]] == ["site:prolific", "prolific_academic", "prolific_other"]
    assert rows[0]["source"] == (
        "The ledger: 3 people by 1 link of this site; fees of 3 people by 1 link; 1 person screened out."
    )
    assert rows[0]["fee"] == "38.8 %" and rows[0]["is_linked"] and rows[1]["total"] < rows[0]["total"]


def test_fees_in_another_currency_or_without_a_report_are_not_known(paid, owner):
    assert site_costs(owner, "USD")["prolific"].fee_rate is None
    refresh_cached_fees(paid, Charging("3.00", "GBP"), ["T"])
    cost = site_costs(owner, "USD")["prolific"]
    assert cost.fee_rate is None and panel_values("site:prolific", "USD", {"prolific": cost})["fee_rate"] is None


@pytest.mark.slow
def test_the_page_compares_panels_and_its_button_fills_in_fees(paid, draft, client):
    refresh_cached_fees(paid, Charging("3.00", "USD"), ["T"])
    client.force_login(draft.owner)
    address = reverse("admin:studies_plan", args=[draft.pk])
    said = words(client.get(address))
    assert (
        "Prolific, as this site paid 38.8 % 0.50" in said
        and "Prolific, universities and non-profits 33.3 % 0.14" in said
    )
    assert "SONA not known" in said and "without fees SONA gives course credits." in said
    page = client.get(address, {"use_panel": "site:prolific"}).content.decode()
    assert 'name="fee_rate" value="38.82' in page and 'name="screen_out_pay" value="0.5"' in page
    said = words(client.get(address, {"use_panel": "generic"}))
    assert " USD without fees. Finds" in said and "fees not counted." in said


def test_costs_take_as_many_queries_with_many_links(paid, django_assert_max_num_queries):
    for _ in range(3):
        panel(paid.study)
    with django_assert_max_num_queries(3):  # links, payments, and reported fees where the cache is a table
        assert channel_costs(Study.objects.all(), "USD")["prolific"].links == 1
