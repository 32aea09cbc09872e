"""What is unusual while a panel works: said where it matters, and silent where all is well or too little is known."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.cache import cache
from django.utils import timezone

from annotators.models import Assignment, PanelOrder, PanelSecret, PanelSubmission, PanelTask, Recruitment
from annotators.models.constants import APPROVED, RETURNED, SUBMITTED, WORKING
from annotators.places import assign
from annotators.recruitment.panels import Funds, PanelBusy, SubmissionSnapshot
from annotators.recruitment.panels.alerts import (
    cached_funds,
    find_panel_alerts,
    refresh_cached_funds,
    waiting_bonus_and_screen_out_total,
)
from annotators.recruitment.panels.http_client import store_or_delete_secrets
from annotators.recruitment.panels.orders import get_or_create_order
from annotators.recruitment.panels.reconcile import import_submissions_and_release_places
from heval_site.runtime import doctor
from studies.services import lifecycle
from tests.admin_pages import logged_in
from tests.annotators.recruitment.pretend import Pretend
from tests.builders import promised, spa_study, user
from tests.players import claimed

pytestmark = pytest.mark.django_db
PEOPLE = [f"{n:x}f1a" * 6 for n in range(1, 16)]


@pytest.fixture
def recruitment():
    cache.clear()
    study = spa_study(user("owner"), target_n=24)
    made = Recruitment.objects.create(
        study=study, channel="prolific", pool="panel", settings={"code_complete": "A2K7PQ"}
    )
    store_or_delete_secrets(made, {"token": "a-token"}, by=None)
    return made


def kinds(recruitment) -> list[str]:
    return [
        alert.kind for alert in find_panel_alerts(Recruitment.objects.select_related("study").get(pk=recruitment.pk))
    ]


def came(recruitment, *people, finish=True, hours=1) -> list[Assignment]:
    made = [
        claimed(recruitment.study, one, recruitment, external_ids={"person": one, "session": f"S{one}"})
        for one in people
    ]
    at = timezone.now() - timedelta(hours=hours)
    rows = Assignment.objects.filter(pk__in=[one.pk for one in made])
    rows.update(claimed_at=at, started_at=at, **({"submitted_at": at} if finish else {}))
    return made


def shows(recruitment, people, state=SUBMITTED, **more):
    import_submissions_and_release_places(
        recruitment, [SubmissionSnapshot("T", f"S{one}", one, state, **more) for one in people], "service"
    )


def test_all_is_well(recruitment):
    assert kinds(recruitment) == []
    came(recruitment, *PEOPLE[:10])
    shows(recruitment, PEOPLE[:10])
    assert kinds(recruitment) == [] and doctor._panels().status == doctor.OK


@pytest.mark.slow
@pytest.mark.parametrize(("finish", "kind"), [(False, "orphan"), (True, "unsent")])
def test_differences_above_a_twentieth_are_said_and_one_alone_is_not(recruitment, finish, kind):
    came(recruitment, *PEOPLE[:10])
    shows(recruitment, PEOPLE[:10])
    for n, person in enumerate(PEOPLE[10:12], 1):
        came(recruitment, person, finish=finish)
        if kind == "orphan":
            shows(recruitment, [person])
        assert kinds(recruitment) == [kind] * (n == 2)


@pytest.mark.slow
@pytest.mark.parametrize("channel", ["prolific", "external_question", "connect", "generic", "invitation", "open_link"])
def test_nobody_is_said_not_to_have_reached_a_panel_that_was_never_looked_at(recruitment, channel):
    """Every link without a token said of everybody that their way back fails."""
    PanelSecret.objects.all().delete()
    Recruitment.objects.update(channel=channel, settings={"people": 20})
    came(recruitment, *PEOPLE[:10])
    assert kinds(recruitment) == []
    page = logged_in(user("owner")).get(f"/admin/annotators/recruitment/{recruitment.pk}/panel/").content.decode()
    assert "not submitted at the panel" not in page
    # A file says something of those who finished before it, and nothing of those who finished since.
    import_submissions_and_release_places(
        recruitment, [SubmissionSnapshot("T", f"S{one}", one, SUBMITTED) for one in PEOPLE[:7]], "file"
    )
    came(recruitment, *PEOPLE[10:15], hours=0)
    PanelSubmission.objects.update(seen_at=timezone.now() - timedelta(minutes=20))
    assert [alert.problem for alert in find_panel_alerts(Recruitment.objects.select_related("study").get())] == [
        "3 of 10 are finished in heval but not submitted at the panel."
    ]


def test_returns_above_a_quarter_are_said_of_people_not_of_rows(recruitment):
    came(recruitment, *PEOPLE[:6])
    shows(recruitment, PEOPLE[:6])
    shows(recruitment, PEOPLE[6:8], RETURNED)
    assert kinds(recruitment) == []  # a quarter is not above it
    for one in came(recruitment, PEOPLE[8], finish=False):
        assign.release_assignment(one.pk, "returned")
    assert kinds(recruitment) == ["returned"]
    # Somebody who returned, came again and finished has not left.
    came(recruitment, PEOPLE[6])
    assert kinds(recruitment) == []


@pytest.mark.slow
def test_two_quiet_hours_are_said_while_places_are_free(recruitment):
    promised(recruitment)
    task = PanelTask.objects.create(recruitment=recruitment, external_id="T", places=4)
    long_ago = timezone.now() - timedelta(hours=3)
    assert kinds(recruitment) == []  # just published
    PanelTask.objects.update(made_at=long_ago)
    assert kinds(recruitment) == ["quiet"]
    came(recruitment, PEOPLE[0], hours=1, finish=False)
    assert kinds(recruitment) == []
    Assignment.objects.update(claimed_at=long_ago)
    assert kinds(recruitment) == ["quiet"]
    for change, back in (
        ({"stopped_at": timezone.now()}, {"stopped_at": None}),
        ({"opens_at": timezone.now() - timedelta(minutes=5)}, {"opens_at": None}),
    ):
        Recruitment.objects.update(**change)
        assert kinds(recruitment) == []
        Recruitment.objects.update(**back)
    shows(recruitment, PEOPLE[1:4], WORKING)
    assert kinds(recruitment) == []  # all four are taken
    PanelTask.objects.filter(pk=task.pk).update(places=9)
    assert kinds(recruitment) == ["quiet"]
    lifecycle.pause(recruitment.study, by=None)
    assert kinds(recruitment) == []


def test_what_the_panel_decides_by_itself_soon_is_said_while_nobody_has_looked(recruitment):
    came(recruitment, *PEOPLE[:3], hours=0)
    now = timezone.now()
    shows(recruitment, PEOPLE[:1], decides_itself_at=now + timedelta(hours=13))
    assert kinds(recruitment) == []
    shows(recruitment, PEOPLE[1:2], decides_itself_at=now + timedelta(hours=11))
    shows(recruitment, PEOPLE[2:3], APPROVED, decides_itself_at=now)
    (alert,) = find_panel_alerts(recruitment)
    assert alert.kind == "undecided" and alert.problem.startswith("The panel approves 1 automatically within 12 hours")
    row = PanelSubmission.objects.get(external_id=f"S{PEOPLE[1]}")
    order = get_or_create_order(recruitment, "approve", "a1", submission=row, by=None, message="")
    assert kinds(recruitment) == []
    PanelOrder.objects.filter(pk=order.pk).update(state="refused", sent_at=now, ended_at=now)
    assert kinds(recruitment) == ["undecided"], "what the panel refused has told it nothing"
    get_or_create_order(recruitment, "reject", "r1", submission=row, by=None, category="OTHER", message="m")
    assert kinds(recruitment) == []


class Account(Pretend):
    def __init__(self, told):
        super().__init__()
        self.told = told

    def funds(self):
        if isinstance(self.told, Exception):
            raise self.told
        return self.told


def test_money_is_held_against_what_is_to_be_paid(recruitment):
    came(recruitment, *PEOPLE[:3])
    shows(recruitment, PEOPLE[:3])
    assert waiting_bonus_and_screen_out_total(recruitment) == 0, "Prolific put the rewards aside when it published"
    row = PanelSubmission.objects.first()
    get_or_create_order(recruitment, "bonus", "b1", submission=row, by=None, amount="1.50", currency="USD", reason="x")
    assert waiting_bonus_and_screen_out_total(recruitment) == Decimal("1.50") and kinds(recruitment) == []
    for told in (PanelBusy("Later."), None):
        refresh_cached_funds(recruitment, Account(told))
        assert cached_funds(recruitment) is None
    refresh_cached_funds(recruitment, Account(Funds(Decimal("1.50"), "USD")))
    assert kinds(recruitment) == []
    refresh_cached_funds(recruitment, Account(Funds(Decimal("1.49"), "USD")))
    assert kinds(recruitment) == ["money"]
    refresh_cached_funds(recruitment, Account(Funds(Decimal("1.49"), "GBP")))
    assert kinds(recruitment) == []  # another currency cannot be compared


@pytest.mark.slow
def test_alerts_stand_on_the_page_and_the_doctor_says_them(recruitment):
    came(recruitment, *PEOPLE[:10])
    page = f"/admin/annotators/recruitment/{recruitment.pk}/panel/"
    client = logged_in(user("owner"))
    assert "10 of 10 are finished in heval but not submitted at the panel" in client.get(page).content.decode()
    found = doctor._panels()
    assert (
        found.status == doctor.WARNING
        and recruitment.key in found.message
        and "finished in heval but not submitted at the panel" in found.message
    )
    shows(recruitment, PEOPLE[:10])
    assert "Check these first" not in client.get(page).content.decode()
