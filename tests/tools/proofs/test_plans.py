"""The stored proof of the planner holds, and its parts can fail."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from analysis.stats.planning.inputs import PROTOCOLS
from tools.proofs.calibration import plans


def chance_of_report(row):
    """Return the p-value of Fisher's test that reports reach what the plan promises."""
    tables = [(row["promised"], row["runs"]), (row["reached_by_report"], row["imported"])]
    return stats.fisher_exact([[round(share * n), n - round(share * n)] for share, n in tables]).pvalue


def test_the_promises_of_all_designs_hold_together_in_the_stored_proof():
    stored = json.loads(plans.RECORD.read_text(encoding="utf-8"))
    rows = stored["rows"]
    assert [row["name"] for row in rows] == [design.name for design in plans.DESIGNS] and len(rows) == 30
    assert {row["studies"] for row in rows} == {500} and min(row["runs"] for row in rows) >= 300
    limit = plans.joint_limit(len(rows))
    assert limit == pytest.approx(3.14, abs=0.01)
    assert max(abs(plans.distance(row)) for row in rows) < limit
    # Twenty studies of a design are too few for normal errors.
    assert min(chance_of_report(row) for row in rows) > 0.05 / len(rows)
    promised = sum(20 * row["promised"] for row in rows)
    error = sum(20 * row["promised"] * (1 - row["promised"]) for row in rows) ** 0.5
    assert abs(sum(20 * row["reached_by_report"] for row in rows) - promised) < 2 * error
    assert {design.size.protocol for design in plans.DESIGNS} == set(PROTOCOLS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two_choice, 80 people", "relative, 40 people, 60 prompts", "spa, 40 people"])
def test_a_promise_is_what_other_code_then_finds(name):
    design = next(design for design in plans.DESIGNS if design.name.startswith(name))
    row = plans.test_promise(design, studies=120)
    assert abs(plans.distance(row)) < plans.joint_limit(30)


@pytest.mark.slow
def test_a_wrong_promise_is_found():
    design = plans.DESIGNS[0]
    row = plans.test_promise(design, studies=120)
    twice_the_variation = replace(design, variation=replace(design.variation, sd_prompts=1.6))
    reached = sum(
        plans.is_reached(design, plans.report_estimate(twice_the_variation, np.random.default_rng(study)))
        for study in range(120)
    )
    assert plans.distance(row | {"reached": reached / 120}) < -plans.joint_limit(30)
