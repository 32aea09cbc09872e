"""Several comparisons of a plan: corrected as the report corrects them, together and one by one."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.stats.margins import adjust_and_add_verdicts
from analysis.stats.multiplicity import Family
from analysis.stats.planning import study_plans
from analysis.stats.planning.comparisons import Comparisons, PlannedClaim, PlannedFamily, quick_claims
from analysis.stats.planning.inputs import StudySize, Target, Variation
from analysis.stats.results import Estimate, HypothesisTest

SIZE = StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20)
CHAIN = tuple(PlannedClaim(name=f"{x} > {y}", x=x, y=y, family="primary") for x, y in ("ab", "bc", "cd"))


def simulated(claims, *families, size=SIZE, target=None, seed=1, runs=600):
    return study_plans.simulate_claims(
        size, target or Target(tests=3), Variation(), claims, families, seed=seed, runs=runs
    )


@pytest.mark.parametrize("method", ["bonferroni", "holm", "hommel"])
def test_shown_comparisons_are_those_of_the_report(method):
    pvalues = np.random.default_rng(0).random((40, 3)) ** 4
    shown = study_plans.shown_claims(pvalues, pvalues, CHAIN, [PlannedFamily(name="primary", method=method)])
    family = Family("primary", tuple(claim.name for claim in CHAIN), method)
    for row, own in zip(shown, pvalues, strict=True):
        estimates = {
            claim.name: Estimate(
                analysis="a",
                estimand="e",
                unit="u",
                n=9,
                n_rows=9,
                estimate=0.6,
                detail={"sd": 1.0},
                test=HypothesisTest(name="t", null=0.5, statistic=1.0, df=8.0, pvalue=float(p)),
            )
            for claim, p in zip(CHAIN, own, strict=True)
        }  # fmt: skip - one estimate in two lines
        judged = adjust_and_add_verdicts(estimates, family, significance=0.05)
        assert row.tolist() == [judged[claim.name].detail["verdict"] == "different" for claim in CHAIN]


def test_a_family_waits_for_the_one_before():
    claims = (*CHAIN[:2], replace(CHAIN[2], family="secondary"))
    families = [PlannedFamily(name="secondary", after="primary")]
    pvalues = np.array([[0.001, 0.02, 0.001], [0.001, 0.03, 0.001], [0.001, 0.02, 0.06]])
    assert study_plans.shown_claims(pvalues, pvalues, claims, families).tolist() == [
        [True, True, True],
        [True, False, False],
        [True, True, False],
    ]
    # The level of either family can be the smaller one.
    for primary, secondary, p in ((0.05, 0.01, 0.015), (0.01, 0.05, 0.015)):
        own = [replace(claim, significance=secondary if claim.family == "secondary" else primary) for claim in claims]
        row = np.array([[0.001, p / 2, 0.001]])
        assert not study_plans.shown_claims(row, row, own, families)[0, 2]
    nobody = study_plans.shown_claims(pvalues, pvalues, claims, [PlannedFamily(name="secondary", after="no claims")])
    assert not nobody[:, 2].any()


@pytest.mark.slow
def test_one_comparison_has_the_power_of_its_plan_and_the_correction_costs_some():
    found = simulated(CHAIN, PlannedFamily(name="primary", method="holm"))
    alone = study_plans.simulate_part(
        study_plans.PlanPart(kind="planned", size=SIZE, target=Target(), runs=1000, seed=(2,)), Variation()
    )
    first = study_plans.simulate_part(
        study_plans.PlanPart(kind="planned", size=SIZE, target=Target(tests=3), runs=1000, seed=(3,)), Variation()
    )
    for claim in found.claims:
        assert abs(claim.alone - alone.power) < 4 * (claim.alone_error + alone.power_error)
        assert first.power - 0.06 < claim.power < claim.alone
    assert found.all_shown < min(claim.power for claim in found.claims) < found.any_shown
    assert all(claim.power <= claim.alone for claim in simulated(CHAIN).claims)


@pytest.mark.slow
def test_comparisons_with_a_common_system_agree_more_often():
    apart = tuple(replace(claim, x=f"{claim.x}{n}", y=f"{claim.y}{n}") for n, claim in enumerate(CHAIN))
    star = tuple(replace(claim, x=claim.name, y="base") for claim in CHAIN)
    common, separate = (simulated(claims, runs=1000).all_shown for claims in (star, apart))
    assert common > separate + 0.05


@pytest.mark.parametrize("protocol", ["rating", "ranking", "marks", "relative", "spa", "accuracy_between_conditions"])
def test_every_protocol_can_have_several_comparisons(protocol):
    is_spa, is_between = protocol == "spa", protocol.endswith("conditions")
    size = StudySize(
        protocol=protocol,
        people=200 if is_between else 36,
        prompts=40,
        prompts_each=4 if is_spa else 20,
        conditions=4 if is_between else 1,
    )
    target = Target(population="people" if is_spa else "people_and_prompts", difference=0.62)
    found = simulated(CHAIN, size=size, target=target, runs=200)
    one = study_plans.simulate_part(
        study_plans.PlanPart(kind="planned", size=size, target=target, runs=400, seed=(4,)), Variation()
    )
    for claim in found.claims:
        assert abs(claim.alone - one.power) < 4 * (claim.alone_error + one.power_error)


def test_a_margin_counts_by_the_larger_of_two_tests():
    claims = (replace(CHAIN[0], goal="equivalence", margin=0.1), replace(CHAIN[1], goal="noninferiority", margin=0.1))
    found = simulated(claims, size=replace(SIZE, people=100))
    assert [claim.power > 0.5 for claim in found.claims] == [True, True]
    pvalues, larger = np.array([[0.01, 0.03]]), np.array([[0.9, 0.03]])
    holm = [PlannedFamily(name="primary", method="holm")]
    assert study_plans.shown_claims(pvalues, pvalues, claims, holm).tolist() == [[True, True]]
    assert study_plans.shown_claims(pvalues, larger, claims, holm).tolist() == [[True, False]]


def test_live_powers_are_a_lower_bound_and_one_without_other_comparisons():
    holm = quick_claims(SIZE, Target(tests=3), Variation(), CHAIN, [PlannedFamily(name="primary", method="holm")])
    bonferroni = quick_claims(SIZE, Target(tests=3), Variation(), CHAIN, ())
    assert holm[0].power == bonferroni[0].power == bonferroni[0].power_at_most < holm[0].power_at_most
    assert Comparisons().claims_of(Target())[0] == () and len(Comparisons().claims_of(Target(tests=4))[0]) == 4


@pytest.mark.parametrize(
    "data, advice",
    [
        ({"method": "scheffe"}, "is not one of bonferroni, holm, hommel"),
        ({"claims": [{"name": "a", "x": "a", "y": "a"}]}, "compares a with itself"),
        ({"claims": [{"name": "a"}]}, "must be an object with method, claims and families"),
        ([], "must be an object with method, claims and families"),
        ({"claims": [CHAIN[0].as_dict()] * 101}, "101 are more than 100"),
    ],
)
def test_impossible_comparisons_are_refused(data, advice):
    with pytest.raises(ValueError, match=advice):
        Comparisons.from_dict(data)


def test_comparisons_come_back_from_their_record():
    one = Comparisons(claims=CHAIN, families=(PlannedFamily(name="primary", method="hommel"),))
    assert Comparisons.from_dict(one.as_dict()) == one
    with pytest.raises(ValueError, match="no comparison"):
        simulated(())
