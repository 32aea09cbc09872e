"""Thresholds of a link are shown, stored with the order, and sent as filters that Prolific offers."""

import pytest

from annotators.recruitment.channels.prolific.service import ProlificService, build_filters
from annotators.recruitment.channels.prolific.stand_in import TOKEN
from annotators.recruitment.channels.thresholds import MAX_NAMES, ThresholdsForm, declared_thresholds
from annotators.recruitment.panels import Order, RequestRefused
from tests.annotators.recruitment.channels.prolific.submissions import CODES

SETTINGS = {
    "min_approval_rate": 95,
    "min_approved_tasks": None,
    "countries": "united states\nIreland",
    "languages": "English",
}


def publish(fake, settings):
    values = {
        "title": "Rate stories", "description": "You read.", "url": "https://eval.example.org/e/k/", "reward": "1.60",
        "currency": "GBP", "minutes": 8, "places": 30, "name": "Stories", "lists": [],
        "thresholds": declared_thresholds(settings),
    }  # fmt: skip
    return fake.studies[ProlificService(TOKEN, CODES, fake.url).carry_out(Order("publish", "t", values))["task"]]


def test_thresholds_become_the_filters_of_the_study(fake):
    made = publish(fake, SETTINGS)
    assert made["filters"] == [
        {"filter_id": "approval_rate", "selected_range": {"lower": 95, "upper": 100}},
        {"filter_id": "current-country-of-residence", "selected_values": ["1", "2"]},
        {"filter_id": "fluent-languages", "selected_values": ["19"]},
    ]


def test_a_link_without_thresholds_asks_prolific_for_no_filter(fake):
    made = publish(fake, {})
    assert "filters" not in made and not any(call.endswith("/filters/") for call, _ in fake.calls)


def test_an_unknown_name_or_filter_is_refused_before_a_study_is_made(fake):
    with pytest.raises(RequestRefused, match="does not know “Atlantis”"):
        publish(fake, {"countries": "Ireland\nAtlantis"})
    assert not fake.studies
    with pytest.raises(RequestRefused, match="offers no filter"):
        build_filters({"min_approval_rate": 95}, [])


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        ({"min_approval_rate": "101"}, "min_approval_rate"),
        ({"min_approved_tasks": "0"}, "min_approved_tasks"),
        ({"countries": "\n".join(f"c{n}" for n in range(MAX_NAMES + 1))}, "countries"),
    ],
)
def test_the_form_refuses_impossible_thresholds(values, wrong):
    assert list(ThresholdsForm(values).errors) == [wrong]


def test_the_form_cleans_names():
    form = ThresholdsForm({"countries": "  Ireland \n\nIreland\nUnited   States"})
    assert form.is_valid() and form.cleaned_data["countries"] == "Ireland\nUnited States"
