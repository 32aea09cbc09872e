"""Plans with few simulated studies, so that tests are fast. What they store is as complete as that of a real plan."""

import re
from functools import partial
from html import unescape

import pytest

from analysis.planning import results
from analysis.planning.inputs import PlanInputs
from analysis.stats import planning
from analysis.stats.plan_inputs import StudySize, Target


@pytest.fixture
def few_runs(monkeypatch):
    monkeypatch.setattr(planning, "plan_parts", partial(planning.plan_parts, runs=40, other_runs=10))
    monkeypatch.setattr(planning._group_sequential, "CROSSING_RUNS", 200)
    monkeypatch.setattr(results, "BET_RUNS", 20)


def inputs(**target) -> PlanInputs:
    return PlanInputs(StudySize(protocol="two_choice", people=12, prompts=20, prompts_each=5), Target(**target))


def words(response) -> str:
    """The text that a reader sees, without markup."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", response.content.decode())))
