"""Any panel: who its link says has come, what proves that it is the panel's own link, and where people go back to."""

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from annotators.models import Assignment, Recruitment
from annotators.recruitment.channels import OUTCOMES, REGISTRY
from annotators.recruitment.channels.generic import GenericSettings, clean_return_code_or_url
from tests.builders import recruitment, spa_study, user

GENERIC = REGISTRY["generic"]
KEYED = {"person_parameter": "who", "session_parameter": "s", "key_parameter": "k", "key_value": "s3cret-of-the-link"}


def link(**settings) -> Recruitment:
    return Recruitment(channel="generic", settings=settings)


def test_the_parameters_that_were_named_are_read_and_no_others():
    arrival = GENERIC.read_arrival(
        link(**KEYED | {"key_parameter": ""}), {"who": " W1 ", "s": "S1", "task": "T", "participant": "X"}
    )
    assert (arrival.person, arrival.ids, arrival.trust) == ("W1", {"person": "W1", "session": "S1"}, "claimed")
    assert GENERIC.read_arrival(link(), {"participant": "W1"}).person == "W1"
    for missing in ({}, {"who": "W1"}, {"participant": " "}):
        assert "not complete" in GENERIC.read_arrival(link(), missing).problem
    # No preview: who reads this came for work, and must learn that the panel's link is wrong.
    for person, cause in (
        ("{{id}}", "did not add your id"),
        ("<id>", "did not add your id"),
        ("x" * 201, "longer than 200"),
    ):
        arrival = GENERIC.read_arrival(link(), {"participant": person})
        assert cause in arrival.problem and not arrival.is_preview and not arrival.person


def test_only_the_panels_own_link_is_keyed_and_another_lets_nobody_in():
    assert GENERIC.read_arrival(link(**KEYED), {"who": "W1", "k": KEYED["key_value"]}).trust == "keyed"
    for wrong in ({}, {"k": ""}, {"k": "S3CRET-of-the-link"}, {"k": KEYED["key_value"] + "x"}, {"k": "schlüssel"}):
        arrival = GENERIC.read_arrival(link(**KEYED), {"who": "W1"} | wrong)
        assert "not from the panel" in arrival.problem and not arrival.person, wrong


@pytest.mark.django_db
def test_trust_in_who_came_is_stored_with_their_work():
    study = spa_study(user("owner"), target_n=4)
    way = recruitment(study, "generic", pool="p", settings=KEYED)
    start = {"start": "1", "agree": "1"}
    assert Client().post(f"/e/{way.key}/?who=W1&k=wrong", start).status_code != 302 and not Assignment.objects.exists()
    assert Client().post(f"/e/{way.key}/?who=W1&k={KEYED['key_value']}", start).status_code == 302
    assert Assignment.objects.get().trust == "keyed"


def test_half_a_key_is_none():
    for half in ({"key_parameter": "k"}, {"key_value": "v"}):
        form = GenericSettings({"person_parameter": "who"} | half)
        assert not form.is_valid() and set(form.errors) == {"key_parameter", "key_value"} - set(half)


@pytest.mark.parametrize(
    "wrong",
    [
        "http://panel.example.org/",
        "https://{session}.example.org/",
        "https://{person}/",
        "https:///x",
        "https://a b.example/",
        "javascript://x",
        "https://panel.example.org;script-src/",
        "https://panel.example.org\\@evil.example/",
        "//evil.example",
        "https://user@evil.example/",
    ],
)
def test_where_people_go_back_to_is_a_host_that_the_researcher_named(wrong):
    with pytest.raises(ValidationError):
        clean_return_code_or_url(wrong)


def test_where_the_site_names_sites_people_are_led_to_no_other(settings):
    ours, other = "https://Panel.example.org/done?c={code}", "https://panel.example.org.evil.example/"
    form = {"person_parameter": "who", "return_complete": other, "return_full": "FULL-9"}
    assert GenericSettings(form).is_valid()  # none is named
    settings.RETURN_SITES = ("https://panel.example.org", "https://other.example:8443")
    refused = GenericSettings(form)
    assert not refused.is_valid() and "https://panel.example.org, https://other.example:8443" in str(
        refused.errors["return_complete"]
    )
    assert GenericSettings(form | {"return_complete": ours}).is_valid()
    # A link that is older than the list leads nobody there, and the checklist says so.
    older = link(return_complete=other, return_full="FULL-9")
    assert GENERIC.way_back(older, "complete", {}, "R-1").code == "R-1"
    assert not GENERIC.way_back(older, "complete", {}, "R-1").url
    assert GENERIC.way_back(older, "full", {}, "R-1").code == "FULL-9"
    assert [words for words in GENERIC.problems(older) if "RETURN_SITES" in words] == [
        "heval does not use the return address for “completed”, because RETURN_SITES does not list its site. Enter another address."
    ]
    assert GENERIC.way_back(link(return_complete=ours), "complete", {}, "R-1").url.endswith("c=R-1")


def test_what_visitors_bring_is_filled_in_as_values_and_nothing_else():
    way = link(
        **{f"return_{outcome}": f"https://panel.example.org/{outcome}?p={{person}}&c={{code}}" for outcome in OUTCOMES}
    )
    ids = {"person": "../a&b=https://evil.example/{code}"}
    for outcome in OUTCOMES:
        url = GENERIC.way_back(way, outcome, ids, "R-1").url
        assert url.startswith(f"https://panel.example.org/{outcome}?p=..%2Fa%26b%3Dhttps%3A%2F%2Fevil.example%2F")
        assert url.endswith("&c=R-1") and url.count("&") == 1
    assert GENERIC.way_back(link(), "complete", ids, "R-1").code == "R-1"
    assert GENERIC.way_back(link(), "screened_out", ids, "R-1") == type(GENERIC.way_back(link(), "full", ids, ""))()
