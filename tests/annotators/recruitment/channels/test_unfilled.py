"""A placeholder that a panel did not fill in is nobody, whatever the channel: otherwise all who come so would be one person."""

import pytest

from annotators.models import Recruitment
from annotators.recruitment.channels import REGISTRY, is_unfilled

PLACEHOLDERS = [
    "{{%PROLIFIC_PID%}}", "{{id}}", "{id}", "[%MID%]", "[MID]", "<id>", "%SURVEY_CODE%", "%%ID%%", "%ID%", "${id}", "$ID",
    "undefined", "null", "None", "NaN", "N/A", " undefined ",
]  # fmt: skip
PEOPLE = ["5f1a" * 6, "A2K7PQ", "w1", "anna@example.org", "50%off", "p_1", "R_3abc", "null7", "nano", "a$b"]
# Each parameter that could name a person, of every channel that reads one.
NAMES = (
    "participant", "PROLIFIC_PID", "STUDY_ID", "SESSION_ID", "participantId", "assignmentId", "projectId", "survey_code", "workerId", "hitId",
)  # fmt: skip


@pytest.mark.parametrize("value", PLACEHOLDERS)
@pytest.mark.parametrize("slug", sorted(slug for slug, channel in REGISTRY.items() if channel.identifies_people))
def test_nobody_comes_by_a_placeholder(slug, value):
    arrival = REGISTRY[slug].read_arrival(Recruitment(channel=slug, settings={}), dict.fromkeys(NAMES, value))
    assert not arrival.person and not arrival.ids and (arrival.is_preview or arrival.problem)


@pytest.mark.parametrize("value", PEOPLE)
def test_ids_of_people_are_no_placeholders(value):
    assert not is_unfilled(value)
    link = Recruitment(channel="generic", settings={})
    assert REGISTRY["generic"].read_arrival(link, {"participant": value}).person == value
