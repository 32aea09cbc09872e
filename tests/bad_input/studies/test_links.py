"""Settings of a link that lead nowhere are refused."""

import re

import pytest

from annotators.models import Recruitment
from tests import builders
from tests.admin_pages import errors_of
from tests.bad_input.studies.forms import save, saved

pytestmark = pytest.mark.django_db


NO_LINKS = {
    "pay below 0": ({"reward": "-1"}, "greater than or equal to 0"),
    "wants more than a million": ({"wanted": "1000001"}, "less than or equal to 1000000"),
    "no currency": ({"currency": "€"}, "three letters"),
    "no such day": ({"opens_at": "2026-02-29T10:00"}, "valid date/time"),
    "year 99999": ({"opens_at": "99999-01-01T00:00"}, "valid date/time"),
    "no time": ({"opens_at": "٢٠٢٦"}, "valid date/time"),
    "closes as it opens": (
        {"opens_at": "2026-05-01T10:00", "closes_at": "2026-05-01T10:00"},
        "would close before it opens",
    ),
    "wants 1e309": ({"wanted": "1e309"}, "whole number"),
    "script": ({"settings-return_complete": "javascript:alert(1)"}, "begins with https"),
    "no scheme": ({"settings-return_complete": "//evil.example.org"}, "begins with https"),
    "http": ({"settings-return_complete": "http://a.example.org"}, "must begin with https"),
    "somebody at": ({"settings-return_complete": "https://a@b.example.org/x"}, "name a host"),
    "open bracket": ({"settings-return_complete": "https://[::1"}, "name a host"),
    "no host": ({"settings-return_complete": "https:///x"}, "name a host"),
    "words of a policy": ({"settings-return_complete": "https://a.example.org;script-src *"}, "name a host"),
    "a comma": ({"settings-return_complete": "https://a.example.org,b.example.org/x"}, "name a host"),
    "a letter no header holds": ({"settings-return_complete": "https://\u0430.example.org/x"}, "name a host"),
    "a tab": ({"settings-return_complete": "https://a.example.org/\tx"}, "name a host"),
    "a backslash": ({"settings-return_complete": "https://a.example.org\\x"}, "name a host"),
    "the visitor's host": ({"settings-return_complete": "https://{person}.example.org"}, "must not depend on"),
    "a secret without its name": ({"settings-key_value": "s3cret"}, "The parameter and its secret"),
    "a name without its secret": ({"settings-key_parameter": "key"}, "the parameter and its secret"),
}


@pytest.mark.parametrize(("changes", "said"), NO_LINKS.values(), ids=NO_LINKS)
def test_settings_of_a_link_that_lead_nowhere_are_refused(client, study, changes, said):
    link = builders.panel(study)
    said = re.compile(re.escape(said), re.IGNORECASE)
    before = Recruitment.objects.filter(pk=link.pk).values().get()
    response = save(client, link, **changes)
    assert response.status_code == 200 and said.search(errors_of(response)), errors_of(response)
    assert Recruitment.objects.filter(pk=link.pk).values().get() == before


@pytest.mark.parametrize(
    "address",
    [
        "https://panel.example.org/done?cc=C1&s={session}",
        "HTTPS://a.b:8443",
        "https://xn--80ak6aa92e.com/#x",
        "C1-{code}",
    ],
)
def test_a_way_back_that_leads_somewhere_is_taken(client, study, address):
    saved(client, builders.panel(study), **{"settings-return_complete": address})
