"""Numbers and times are stored as they are meant, or they are refused at their field."""

from datetime import UTC, datetime

import pytest

from studies.models import design
from tests import builders
from tests.admin_pages import errors_of
from tests.bad_input.studies.forms import refused, save, saved

pytestmark = pytest.mark.django_db


WHOLE = {"٣": 3, "３": 3, "3.0": 3, "+3": 3, " 3 ": 3, "3\n": 3, "\u00a03": 3, "007": 7, "-0": 0, "0_3": 3}
NO_WHOLE = ["3.5", "3,0", "1e1", "0x3", "³", "NaN", "inf", "9" * 5000, "three", "3\x00"]


@pytest.mark.parametrize("typed", WHOLE, ids=ascii)
def test_a_whole_number_is_stored_as_one_however_it_is_spelled(client, small, typed):
    link = builders.panel(small)
    saved(client, link, wanted=typed)
    link.refresh_from_db()
    assert link.wanted == WHOLE[typed]


@pytest.mark.parametrize("typed", NO_WHOLE, ids=lambda text: ascii(text)[:12])
def test_what_is_no_whole_number_is_refused(client, small, typed):
    refused(client, builders.panel(small), "Enter a whole number", wanted=typed)
    refused(client, builders.recruitment(small, "invitation"), "Enter a whole number", **{"settings-people": typed})


DECIMALS = {"-0": "0.00", "1e1": "10.00", "٣": "3.00", ".5": "0.50", " 2 ": "2.00"}
NO_DECIMALS = ["NaN", "sNaN", "-NaN", "Infinity", "1e309", "1,1", "1.1.1", "1e-9", "0x1", "9" * 5000]


@pytest.mark.parametrize("typed", DECIMALS, ids=ascii)
def test_money_has_no_sign_and_no_exponent_once_it_is_stored(client, small, typed):
    link = builders.panel(small)
    saved(client, link, reward=typed)
    link.refresh_from_db()
    assert str(link.reward) == DECIMALS[typed]


@pytest.mark.parametrize("typed", NO_DECIMALS, ids=lambda text: ascii(text)[:12])
def test_what_is_no_money_is_refused(client, small, typed):
    is_long = typed in ("1e309", "1e-9", "9" * 5000)
    refused(client, builders.panel(small), "no more than" if is_long else "Enter a number", reward=typed)


TAUS = {
    "-1": "greater than or equal to 0", "-0.1": "greater than or equal to 0", "2.1": "less than or equal to 2", "1e309": "less than or equal to 2",
    "٣": "less than or equal to 2", "NaN": "Enter a number", "inf": "Enter a number", "-inf": "Enter a number", "1,1": "Enter a number",
    "1.1.1": "Enter a number", "tau": "Enter a number", "": "required", "9" * 5000: "less than or equal to 2",
}  # fmt: skip


@pytest.mark.parametrize("tau", TAUS, ids=lambda text: ascii(text)[:12])
def test_a_tau_that_is_none_is_refused(tau):
    form = design.REGISTRY["incoherent"].settings_form({"tau": tau})
    assert TAUS[tau] in str(form.errors["tau"])


@pytest.mark.slow
def test_a_tau_is_refused_in_its_cell_and_stored_as_a_number_without_a_sign(client, study):
    for typed, stored in (("1.2", 1.2), ("-0", 0.0)):
        saved(client, study, **{"exclusion_rules-0-parameters-tau": typed})
        settings = study.exclusion_rules.get(rule="incoherent").settings
        assert str(settings["tau"]) == str(stored)
    for typed, said in (("1,1", "Enter a number"), ("2.1", "less than or equal to 2")):
        response = save(client, study, **{"exclusion_rules-0-parameters-tau": typed})
        assert response.status_code == 200 and said in errors_of(response)
    assert study.exclusion_rules.get(rule="incoherent").settings == settings


MOMENTS = {
    "2026-03-29T02:30": datetime(2026, 3, 29, 2, 30, tzinfo=UTC),  # in no clock of Berlin
    "2026-10-25T02:30": datetime(2026, 10, 25, 2, 30, tzinfo=UTC),  # twice there
    "2028-02-29T00:00": datetime(2028, 2, 29, tzinfo=UTC),
}


@pytest.mark.parametrize("typed", MOMENTS)
def test_times_are_utc_and_know_no_summer(client, study, typed):
    link = builders.panel(study)
    saved(client, link, opens_at=typed)
    link.refresh_from_db()
    assert link.opens_at == MOMENTS[typed]
