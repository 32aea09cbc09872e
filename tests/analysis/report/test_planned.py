"""A report with a chosen plan says what was planned and what was reached; one without a plan says nothing of it."""

import json

import numpy as np
import pytest

from analysis.report.plots import render_latex_table
from analysis.stats.cluster_variances import two_way_jackknife
from analysis.stats.planning import closed_forms, simulated_studies
from analysis.stats.planning.comparisons import components_of_variances
from analysis.stats.planning.inputs import StudySize, Target, Variation
from studies.services import lifecycle
from tests.analysis.report.reported import closed, finished, report, table
from tests.builders import add_choice, draft_study, launched, user
from tests.players import many
from tests.size_plans import choose, planned_size

pytestmark = pytest.mark.django_db


def answered(is_planned=True):
    study = draft_study(systems=("alpha", "beta"), prompts=30, target_n=12, instructions="")
    add_choice(study, m=5, stopping="none", strategy="any")
    if is_planned:
        choose(study, planned_size(study, people=24, prompts=30, prompts_each=5))
    study = launched(study)
    many(study, 12, 0.7)
    return closed(study)


def test_each_primary_comparison_has_what_was_planned_and_what_was_reached(same_orders):
    result = report(answered())
    compared = result["planned_and_reached"]
    (one,) = compared["comparisons"]
    (share,) = (
        estimate
        for block in result["blocks"]
        if block["name"] == "choice.preference" and block["mode"] == "recommended"
        for estimate in block["estimates"]
    )
    assert one["planned"]["value"] == 0.6 and one["reached"]["value"] == share["estimate"]
    assert one["reached"]["interval"] == [share["interval"]["low"], share["interval"]["high"]]
    assert [one[side]["people"] for side in ("planned", "reached")] == [24, 12]
    assert [one[side]["answers"] for side in ("planned", "reached")] == [120, 60]
    assert set(one["reached"]["components"]) == {"mean", "people", "prompts", "rest"}
    # Half as many people find only a larger difference.
    size = StudySize(protocol="two_choice", people=12, prompts=30, prompts_each=5)
    assert one["reached"]["detectable"] == closed_forms.smallest_difference(size, Target(), Variation())
    shown = table(result, "planned_and_reached")
    rows = {row["quantity"]: (row["planned"], row["reached"]) for row in shown["rows"]}
    assert rows["People"] == ("24", "12") and rows["Pay without fees"][1] == "nothing in the ledger"
    assert rows["Power of the plan"] == (".78, Monte-Carlo error .009", ""), "no power from the observed difference"
    assert rows["Smallest difference found with power .80"][1].endswith("% against 50 %")
    assert "observed power" not in json.dumps(result).lower()
    assert r"Planned \& " not in render_latex_table(shown) and "Planned and reached" in render_latex_table(shown)
    methods = " ".join(result["methods"])
    assert "24 people, 5 prompts each" in methods and "There are 30 prompts." in methods
    assert "with a power of .78: the share of 2,000 simulated studies, with a Monte-Carlo error of .009" in methods
    assert "An inconclusive result would not mean that the systems are equal" in methods


def test_a_report_without_a_plan_or_with_hidden_outcomes_says_nothing_of_it():
    for result in (report(finished(user("owner"))), _while_collecting()):
        assert "planned_and_reached" not in result
        assert not any(one["name"] == "planned_and_reached" for one in result["tables"])


def _while_collecting():
    study = draft_study(title="Collecting", systems=("alpha", "beta"), prompts=12, instructions="")
    add_choice(study, stopping="none")
    choose(study, planned_size(study))
    study = launched(study)
    many(study, 2, 0.7)
    lifecycle.pause(study, None)
    return report(study)


def test_the_variances_of_a_report_give_back_those_of_its_answers():
    size = StudySize(protocol="two_choice", people=24, prompts=36, prompts_each=6)
    target, variation, rng = Target(), Variation(sd_people=0.6), np.random.default_rng(1)
    people, prompts = simulated_studies.assign_prompts(size, rng)
    found = []
    for values in simulated_studies.simulate_answers(size, target, variation, people, prompts, runs=200, rng=rng):
        spread, _ = two_way_jackknife(values.astype(float), np.ones(len(values)), people, prompts)
        parts = components_of_variances(
            0.6, spread.annotators, spread.items, spread.combined, people=24, prompts=36, answers=144
        )
        found.append((parts.people, parts.prompts, parts.rest))
    true = closed_forms.components(size, target, variation)
    assert np.mean(found, axis=0) == pytest.approx([true.people, true.prompts, true.rest], rel=0.12)
    assert components_of_variances(0.6, 0.1, 0.1, 0.1, people=24, prompts=36, answers=24) is None
