"""The stored proof of the planner holds, and its parts can fail."""

import json
from dataclasses import replace

import numpy as np
import pytest

from analysis.stats.plan_inputs import PROTOCOLS
from tests.calibration import plans


def test_the_promises_of_all_designs_hold_together_in_the_stored_proof():
    stored = json.loads(plans.RECORD.read_text(encoding="utf-8"))
    rows = stored["rows"]
    assert [row["name"] for row in rows] == [design.name for design in plans.DESIGNS] and len(rows) == 30
    assert {row["studies"] for row in rows} == {500} and min(row["runs"] for row in rows) >= 300
    limit = plans.joint_limit(len(rows))
    assert limit == pytest.approx(3.14, abs=0.01)
    assert max(abs(plans.distance(row)) for row in rows) < limit
    assert max(abs(plans.distance(row, "reached_by_report", "imported")) for row in rows) < limit
    assert {design.size.protocol for design in plans.DESIGNS} == set(PROTOCOLS)


@pytest.mark.parametrize("name", ["two_choice, 80 people", "relative, 40 people, 60 prompts", "spa, 40 people"])
def test_a_promise_is_what_other_code_then_finds(name):
    design = next(design for design in plans.DESIGNS if design.name.startswith(name))
    row = plans.test_promise(design, studies=120)
    assert abs(plans.distance(row)) < plans.joint_limit(30)


def test_a_wrong_promise_is_found():
    design = plans.DESIGNS[0]
    row = plans.test_promise(design, studies=120)
    twice_the_variation = replace(design, variation=replace(design.variation, sd_prompts=1.6))
    reached = sum(
        plans.is_reached(design, plans.report_estimate(twice_the_variation, np.random.default_rng(study)))
        for study in range(120)
    )
    assert plans.distance(row | {"reached": reached / 120}) < -plans.joint_limit(30)
