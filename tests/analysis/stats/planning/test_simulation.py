"""Simulated plans agree with exact ones and keep the level."""

import json
import math

import numpy as np
import pytest
from scipy import special

from analysis.stats import choice, planning, power, sequential
from analysis.stats.planning import _search
from tests.analysis.stats.draws import rng
from tests.analysis.stats.planning.options import GOLDEN, options, within


def test_simulation_agrees_with_the_exact_power_where_there_is_one():
    # Small spreads, since the ends of the scale cut off what is beyond them.
    chosen = options(runs=2000, find_detectable=True)
    plan = planning.simulate_spa_power(
        60, 0.55, annotator_sd=0.12, order_sd=0.1, rounding=1, rng=rng(1), options=chosen
    )
    exact = planning.compute_mean_test_power(0.05, math.sqrt(0.12**2 + 0.1**2 / 2), 60, answers_each=2)
    assert within(plan.power, exact.power, 2000) and plan.labels == exact.labels == 120
    assert plan.power_error == pytest.approx(math.sqrt(plan.power * (1 - plan.power) / 2000))
    assert abs(plan.detectable / exact.detectable - 1) < 0.05 and abs(plan.width / exact.width - 1) < 0.01
    one_each = planning.simulate_choice_power(
        150, 1, 0.3, capability=(1.0, 1.0), spread=0.0, rng=rng(2), options=options(runs=2000)
    )
    assert within(one_each.power, power.proportion_power(0.65, 150), 2000)


def test_under_the_null_a_plan_finds_what_the_level_allows():
    runs = 800
    chosen = options(runs=runs)
    for plan in (
        planning.simulate_spa_power(60, 0.5, rng=rng(3), options=chosen),
        planning.simulate_rating_power(40, 5, 0.0, annotator_taste_sd=0.5, rng=rng(3), options=chosen),
        planning.simulate_rating_power(
            40, 5, 0.0, n_prompts=40, estimator="mean_difference", prompt_taste_sd=0.4, rng=rng(3), options=chosen
        ),
        planning.simulate_human_likeness_power(60, 5, 0.0, n_texts=60, rng=rng(3), options=chosen),
        planning.simulate_choice_power(60, 5, 0.0, annotator_sd=0.15, rng=rng(3), options=chosen),
        planning.simulate_expected_utility_power(20, 3, 0.0, rng=rng(3), options=chosen),
    ):
        assert within(plan.power, 0.05, runs, 3), plan.protocol


def test_the_tau_rule_is_seen_to_break_the_test_before_anybody_is_asked():
    study = {"annotator_sd": 0.0, "order_sd": 0.1, "rounding": 1, "options": options(runs=500)}
    broken = planning.simulate_spa_power(60, 0.5, mode="paper", tau=1.1, rng=rng(4), **study)
    honest = planning.simulate_spa_power(60, 0.5, rng=rng(4), **study)
    assert abs(broken.power - 0.58) < 0.08 and honest.power < 0.09
    assert broken.detail["by_pair"][0]["estimate"] < 0.48


def test_a_family_of_pairs_is_tested_as_one():
    chosen = options(runs=400)
    spread = {"annotator_sd": 0.28, "order_sd": 0.1}
    single = planning.simulate_spa_power(60, 0.6, rng=rng(5), options=chosen, **spread)
    family = planning.simulate_spa_power(60, [0.6, 0.6, 0.5], rng=rng(5), options=chosen, **spread)
    assert family.power < single.power - 0.03
    real = [pair["power"] for pair in family.detail["by_pair"][:2]]
    assert family.power == pytest.approx(np.mean(real)) and family.detail["all_found"] < min(real)
    assert family.detail["by_pair"][2]["power"] < 0.09
    larger = planning.simulate_spa_power(60, 0.6, rng=rng(5), options=options(runs=400, tests=5), **spread)
    assert larger.power < single.power - 0.1
    nobody = planning.simulate_spa_power(60, [0.5] * 5, rng=rng(5), options=chosen, **spread)
    # The share of studies with any false finding.
    assert nobody.power < 0.09 and nobody.detail["all_found"] is None and nobody.effect == 0


def test_equivalence_is_planned_by_the_same_test():
    plan = planning.simulate_spa_power(
        90, 0.5, annotator_sd=0.2, order_sd=0.1, rounding=1, margin=0.1, rng=rng(6), options=options(runs=1000)
    )
    wanted = power.equivalence_power(90, sd=math.sqrt(0.2**2 + 0.1**2 / 2), margin=0.1)
    assert within(plan.detail["by_pair"][0]["equivalence_power"], wanted, 1000)


def test_more_annotators_or_less_noise_is_never_worse():
    def at(n, **more):
        return planning.simulate_rating_power(n, 4, 0.3, rng=rng(7), options=options(runs=300), **more)

    few, many = at(20, annotator_taste_sd=0.5), at(60, annotator_taste_sd=0.5)
    quiet = at(20)
    assert few.power < many.power and few.width > many.width and quiet.power > few.power


def test_what_excluded_annotators_cost():
    plan = planning.compute_mean_test_power(0.1, 0.3, 90, answers_each=2, excluded_share=0.1)
    assert plan.labels == 200 and plan.power == planning.compute_mean_test_power(0.1, 0.3, 90).power
    lost = planning.simulate_spa_power(90, 0.58, excluded_share=0.5, rng=rng(8), options=options(runs=400))
    kept = planning.simulate_spa_power(45, 0.58, rng=rng(8), options=options(runs=400))
    assert lost.labels == 180 and abs(lost.power - kept.power) < 0.12
    with pytest.raises(ValueError, match="excluded_share: 1"):
        planning.compute_mean_test_power(0.1, 0.3, 90, excluded_share=1)


def test_the_bill_counts_what_is_paid():
    prices = planning.Prices(pay=0.5, fee_rate=0.2, overhead=10, test_share=0.1, seconds=30)
    plan = planning.compute_mean_test_power(0.1, 0.3, 90, options=planning.PlanOptions(prices=prices))
    assert (plan.cost.n_labels, plan.cost.n_test) == (100, 10) and plan.cost.total == pytest.approx(70)
    assert plan.hours == pytest.approx(100 * 30 / 3600)
    early = planning.compute_sequential_rule_power(
        0.65, sequential.beta_binomial_boundaries(500), options=planning.PlanOptions(prices=prices)
    )
    assert early.cost.n_labels == math.ceil(round(math.ceil(early.labels) / 0.9, 6)) < 500
    assert planning.compute_mean_test_power(0.1, 0.3, 90).cost is None
    json.dumps(plan.as_dict(), allow_nan=False)


def test_a_strategy_is_planned_with_the_effort_of_its_rule():
    rule = sequential.hoeffding_boundaries(1500, delta=0.001)
    plans = [
        planning.simulate_strategy_power_and_effort(
            0.25, 1500, strategy, rule=rule, rng=rng(9), options=options(runs=150)
        )
        for strategy in (choice.Strategy("one"), choice.Strategy("max_three"), choice.Strategy("majority", 7))
    ]
    assert [plan.power for plan in plans] == sorted(plan.power for plan in plans) and plans[0].power > 0.97
    # One annotator a request is the cheapest, seven the dearest: the paper's order (338, 461, 866).
    assert plans[0].labels < plans[1].labels < plans[2].labels
    assert 230 < plans[0].labels < 400 and plans[0].detail["wrong_share"] == 0
    null = planning.simulate_strategy_power_and_effort(
        0.0,
        300,
        choice.Strategy("one"),
        rule=sequential.beta_binomial_boundaries(300),
        rng=rng(9),
        options=options(runs=400),
    )
    assert null.power < 0.06 and null.detail["wrong_share"] is None and null.labels > 280
    json.dumps(plans[1].as_dict(), allow_nan=False)


def test_the_search_for_a_detectable_effect_uses_the_same_random_numbers_throughout(monkeypatch):
    states, simulate = [], planning.simulate

    def watched(*args, **more):
        states.append(json.dumps(more["rng"].bit_generator.state))
        return simulate(*args, **more)

    monkeypatch.setattr(_search, "simulate", watched)
    planning.simulate_choice_power(30, 4, 0.3, rng=rng(17), options=options(runs=40, find_detectable=True))
    assert len(states) == 2 + planning.HALVINGS and len(set(states[1:])) == 1 and states[0] != states[1]


def test_a_study_that_cannot_find_it_says_so():
    told = []
    chosen = options(runs=60, find_detectable=True, wanted=0.99, tests=50, progress=lambda *at: told.append(at))
    plan = planning.simulate_choice_power(6, 2, 0.1, rng=rng(10), options=chosen)
    assert plan.detectable is None and plan.warnings[0].code == "not_detectable"
    assert told[-1] == (720, 720) and len(told) < 60
    few = planning.simulate_rating_power(4, 3, 0.5, rng=rng(10), options=options(runs=20))
    assert few.power == 0 and few.detail["n_undefined"] == 20
    json.dumps(plan.as_dict(), allow_nan=False)


@pytest.mark.slow
@pytest.mark.parametrize("row", GOLDEN["two_way"], ids=lambda row: f"{row['annotator_sd']}")
def test_two_way_intervals_cover_as_in_the_reference(row):
    n, m, k, runs = row["n_annotators"], row["n_each"], row["n_items"], 2000
    who, what = np.repeat(np.arange(n), m), np.arange(n * m) % k
    random = rng(14)
    values = random.normal(size=(runs, n * m)) + row["annotator_sd"] * random.normal(size=(runs, n))[:, who]
    values += row["item_sd"] * random.normal(size=(runs, k))[:, what]
    outcomes = planning.two_way_clustered_mean_outcomes(values, who, what, null=0.0)
    covered = np.mean((outcomes.low <= 0) & (outcomes.high >= 0))
    assert covered >= 0.93 and abs(covered - row["coverage"]) < 0.03
    assert abs(np.mean(outcomes.high - outcomes.low) / row["width"] - 1) < 0.05


@pytest.mark.slow
def test_levels_hold_over_two_thousand_runs():
    chosen = planning.PlanOptions(runs=2000)
    for plan in (
        planning.simulate_spa_power(60, 0.5, acquiescence_share=0.3, rng=rng(15), options=chosen),
        planning.simulate_rating_power(30, 5, 0.0, annotator_taste_sd=0.7, rng=rng(15), options=chosen),
        planning.simulate_human_likeness_power(
            130, 5, 0.0, n_texts=100, measure="sensitivity", rng=rng(15), options=chosen
        ),
        planning.simulate_choice_power(60, 5, 0.0, annotator_sd=0.15, rng=rng(15), options=chosen),
    ):
        assert 0.03 <= plan.power <= 0.07, plan.protocol
    board = planning.simulate_leaderboard_power(300, 0.0, rng=rng(15), options=planning.PlanOptions(runs=1000))
    assert 0.02 <= board.power <= 0.07


def test_a_power_is_the_share_of_runs_below_the_adjusted_level():
    plan = planning.simulate_choice_power(60, 5, 0.2, rng=rng(16), options=options(runs=400))
    strict = planning.simulate_choice_power(60, 5, 0.2, rng=rng(16), options=options(runs=400, tests=4))
    assert strict.power < plan.power and strict.width == plan.width
    z = special.ndtri(1 - 0.05 / 8) - special.ndtri(1 - 0.05 / 2)
    expected = special.ndtr(special.ndtri(plan.power) - z)
    assert abs(strict.power - expected) < 0.06
