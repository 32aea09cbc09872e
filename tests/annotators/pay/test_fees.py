"""What panels take beside what people get, as the panel itself tells it."""

from decimal import Decimal

import pytest
from django.core.cache import cache
from django.utils import timezone

from annotators.models import PanelTask, Payment, Recruitment
from annotators.pay import ledger
from annotators.pay.costs import compute_link_cost
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.channels.prolific.service import ProlificService
from annotators.recruitment.channels.prolific.stand_in import TOKEN, ProlificStandIn
from annotators.recruitment.panels import ChargedFees, PanelBusy, RequestRefused
from annotators.recruitment.panels.alerts import cached_fees, refresh_cached_fees
from annotators.recruitment.panels.http_client import store_or_delete_secrets
from annotators.recruitment.panels.sync import send_orders_and_sync_panel
from studies.models import Arm
from tests.admin_pages import logged_in
from tests.annotators.recruitment.pretend import Pretend
from tests.builders import launched, panel, spa_draft, spa_study, user
from tests.players import submitted

pytestmark = pytest.mark.django_db


def paying(study, channel) -> Recruitment:
    made = panel(study)
    Recruitment.objects.filter(pk=made.pk).update(channel=channel, currency="USD")
    return Recruitment.objects.select_related("study").get(pk=made.pk)


def bonus(assignment, amount, number, **columns) -> None:
    usual = {"kind": "bonus", "way": "bonus", "currency": "USD", "reason": "thanks"}
    Payment.objects.create(assignment=assignment, amount=Decimal(amount), number=number, **usual | columns)


def test_a_reward_that_comes_in_two_parts_costs_the_same_before_and_after_it_is_written_down():
    """The panel pays what the study names; what an arm pays beyond that comes as a bonus."""
    study = spa_draft(owner=user("owner"), target_n=2)
    Arm.objects.create(study=study, name="paid more", reward=Decimal("5.00"))
    recruitment = paying(launched(study), "prolific")
    done = [submitted(recruitment.study, person, recruitment=recruitment) for person in ("a", "b")]
    assert {one.batch.arm.name for one in done} == {"all", "paid more"}
    for _ in range(2):  # before anything was written down, and after
        found = compute_link_cost(recruitment)
        assert (found.people_to_come, found.total) == (0, Decimal("7.50"))
        ledger.update_ledger(recruitment, by=None)


def test_where_a_panel_tells_no_fees_nothing_is_made_up():
    study = spa_study(user("owner"), target_n=1)
    recruitment = paying(study, "prolific")
    bonus(submitted(study, "a", recruitment=recruitment), "1.00", 1)
    assert compute_link_cost(recruitment).fees == ()


def told(amount, currency="GBP") -> ChargedFees:
    return ChargedFees(Decimal(amount), Decimal("0.20"), Decimal("0.05"), currency)


class Telling(Pretend):
    """A panel that tells what it has taken, by task; a word of its own where it has none."""

    def __init__(self, **costs):
        super().__init__()
        self.costs = costs

    def charged_fees(self, task):
        found = self.costs[task]
        if isinstance(found, Exception):
            raise found
        return found


@pytest.fixture
def at_prolific():
    cache.clear()
    made = paying(spa_study(user("owner"), target_n=1, currency="GBP"), "prolific")
    Recruitment.objects.filter(pk=made.pk).update(currency="")
    made.refresh_from_db()
    return made


def test_what_the_panel_itself_says_is_stored_with_its_source_and_moment(at_prolific):
    client, address = logged_in(user("owner")), f"/admin/annotators/recruitment/{at_prolific.pk}/pay/"
    assert "The panel adds its own fee. heval does not know the amount." in client.get(address).content.decode()
    refresh_cached_fees(at_prolific, Telling(T1=told("1.00"), T2=told("0.50")), ["T1", "T2"])
    found = compute_link_cost(at_prolific)
    sums = {fee.label: fee.amount for fee in found.fees}
    assert sums == {"on rewards": Decimal("1.50"), "on bonuses": Decimal("0.40"), "tax on these fees": Decimal("0.10")}
    assert found.is_lower_bound and found.total == found.to_come + Decimal("2.00")
    page = client.get(address).content.decode()
    today = f"{timezone.now():%Y-%m-%d}"
    assert f'<dt>Fee: on rewards</dt><dd>1.50 GBP <span class="quiet">(Prolific, on {today}' in page
    # What it will take of who is still to come is not among it.
    assert "<b>at least" in page
    everything = client.get(f"/admin/studies/study/{at_prolific.study_id}/pay/").content.decode()
    assert f">at least {found.total:.2f} " in everything


@pytest.mark.parametrize(
    "later",
    [
        {"T1": told("9.00"), "T2": None},
        {"T1": told("9.00"), "T2": PanelBusy("Later.")},
        {"T1": told("9.00"), "T2": told("9.00", "USD")},
        {"T1": RequestRefused("No."), "T2": None},
        {},
    ],
)
def test_a_part_is_no_sum_and_what_was_said_before_stays(at_prolific, later):
    refresh_cached_fees(at_prolific, Telling(T1=told("1.00")), ["T1"])
    refresh_cached_fees(at_prolific, Telling(**later), list(later))
    assert compute_link_cost(at_prolific).fees[0].amount == Decimal("1.00")


def test_sums_in_another_currency_are_not_added(at_prolific):
    refresh_cached_fees(at_prolific, Telling(T1=told("1.00", "USD")), ["T1"])
    assert compute_link_cost(at_prolific).fees == ()


def test_each_look_at_the_panel_reads_what_it_has_taken(at_prolific):
    with ProlificStandIn() as fake:
        task = fake.add_study()
        fake.add_submission(task, "5f1a" * 6, "APPROVED")
        PanelTask.objects.create(recruitment=at_prolific, external_id=task)
        Recruitment.objects.filter(pk=at_prolific.pk).update(settings={"code_complete": "A2K7PQ"})
        service = ProlificService(TOKEN, {}, fake.url)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(REGISTRY["prolific"]), "service", lambda self, recruitment, secrets: service)
            store_or_delete_secrets(at_prolific, {"token": TOKEN}, by=None)
            send_orders_and_sync_panel(at_prolific, lambda *_: None, dry_run=True)
            assert cached_fees(at_prolific) is None
            send_orders_and_sync_panel(at_prolific, lambda *_: None)
    found, _ = cached_fees(at_prolific)
    assert found == ChargedFees(Decimal("0.53"), Decimal("0"), Decimal("0.10"), "GBP")
