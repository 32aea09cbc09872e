"""Fixtures of the tests of planning."""

from functools import partial

import pytest

from analysis.planning import results
from analysis.stats import planning


@pytest.fixture
def few_runs(monkeypatch):
    monkeypatch.setattr(planning, "plan_parts", partial(planning.plan_parts, runs=40, other_runs=10))
    monkeypatch.setattr(planning._group_sequential, "CROSSING_RUNS", 200)
    monkeypatch.setattr(results, "BET_RUNS", 20)
