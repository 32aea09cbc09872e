"""The pay report over REST and the command: sums and quarters, pseudonyms alone."""

from decimal import Decimal

import pytest

from analysis.data.flat_rows import assignment_pseudonym
from annotators.models import Payment
from annotators.models.identity import store_person_id
from annotators.pay import ledger
from annotators.places.places import compute_receipt
from tests import study_command
from tests.admin_pages import logged_in
from tests.builders import panel, spa_study, user
from tests.players import submitted

pytestmark = pytest.mark.django_db


@pytest.fixture
def recruitment():
    study = spa_study(user("owner"), target_n=12, wage_per_hour=Decimal("12.00"))
    made = panel(study)
    done = submitted(study, "a", recruitment=made, external_ids={"session": "RAW-SESSION"})
    store_person_id(done.annotator, "RAW-PERSON")
    return made


def test_the_report_names_people_by_pseudonyms(recruitment):
    study, client = recruitment.study, logged_in(user("owner"))
    done = study.assignments.get()
    ledger.update_ledger(recruitment, by=None)
    ledger.add_extra_payments(recruitment, [ledger.ExtraPayment(done, Decimal("1.20"), "=1+1")], "bonus", user("owner"))
    base = f"/api/v1/studies/{study.code}"
    rows = client.get(f"{base}/payments/").json()["results"]
    assert [(row["assignment"], row["kind"], row["amount"], row["state"]) for row in rows] == [
        (assignment_pseudonym(done.code), "base", "2.50", "due"),
        (assignment_pseudonym(done.code), "bonus", "1.20", "due"),
    ]
    file = b"".join(client.get(f"{base}/payments.csv").streaming_content).decode()
    head, first, second = file.splitlines()
    assert (
        head.startswith("number,assignment,link,arm,kind,ordinal,amount")
        and ",2.50,USD,hand,due," in first
        and ",'=1+1," in second
    )
    report = client.get(f"{base}/pay/").json()
    assert (report["currency"], report["declared_per_hour"]) == ("USD", "12.00")
    assert report["arms"][0]["people"] == 1 and set(report["arms"][0]["per_hour"]) == {"q1", "median", "q3"}
    assert (report["links"][0]["due"], report["links"][0]["to_come"]) == ("3.70", "27.50")
    told = f"{rows}{file}{report}"
    assert not any(secret in told for secret in ("RAW-", done.code, compute_receipt(done.code)))


def test_the_command_says_what_is_due_and_writes_it_down_once(recruitment):
    def said(*how) -> str:
        return study_command.run("pay", recruitment.study.code, "--settle", *how)[1]

    assert "1 newly due: 2.50 USD" in said("--dry-run")
    assert not Payment.objects.exists()
    assert (
        "1 newly due: 2.50 USD" in said()
        and "0 newly due: 0.00 USD" in said()
        and "2.50 due, 0.00 unrecorded, 27.50 to come" in said()
    )
    assert "404" in study_command.refusal("pay", recruitment.study.code, "--settle", "--link", "nobody")[1]
