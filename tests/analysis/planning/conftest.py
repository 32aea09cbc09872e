"""Fixtures of the tests of planning."""

from functools import partial

import pytest

from analysis.planning import results
from analysis.stats.planning import stopping, study_plans


@pytest.fixture
def few_runs(monkeypatch):
    monkeypatch.setattr(study_plans, "plan_parts", partial(study_plans.plan_parts, runs=40, other_runs=10))
    monkeypatch.setattr(stopping, "CROSSING_RUNS", 200)
    monkeypatch.setattr(results, "BET_RUNS", 20)
