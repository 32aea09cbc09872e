import json
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special

from analysis.stats import (
    basic,
    choice,
    choice_simulation,
    clusters,
    detection,
    equivalence,
    generators,
    leaderboard,
    planning,
    power,
    ratings,
    sequential,
    spa,
)
from analysis.stats.planning import _search, _simulation
from tests.analysis.stats.draws import rng
from tests.analysis.stats.golden import golden

GOLDEN = golden("planning")
POWERS = golden("power")


def options(**more):
    return planning.Options(**{"runs": 200, **more})


def same(outcomes, row, estimate):
    """Whether a run's outcome is what the analysis of that run alone says."""
    nothing = (np.nan, np.nan)
    ends = nothing if estimate.interval is None else (estimate.interval.low, estimate.interval.high)
    pvalue = np.nan if estimate.pvalue is None else estimate.pvalue
    mean = np.nan if estimate.estimate is None else estimate.estimate
    found = [outcomes.estimate[row], outcomes.low[row], outcomes.high[row], outcomes.pvalue[row]]
    assert_allclose(found, [mean, *ends, pvalue], rtol=1e-9, atol=1e-12)


# What simulations analyse with must be what data are analysed with.


def awkward(seed=0):
    """Rows with gaps, one value, none, no variance, a ceiling, a near-ceiling of an even number."""
    values = rng(seed).uniform(0.3, 0.9, (8, 20))
    values[1, ::3] = np.nan
    values[2, 1:] = np.nan
    values[3] = np.nan
    values[4] = 0.5
    values[5] = 1.0
    values[5, 0] = 0.25
    values[6, :18] = 1.0
    values[7] = 0.7
    values[7, 5:] = np.nan
    return values


@pytest.mark.parametrize("bounds", [None, (0.0, 1.0)])
def test_all_runs_at_once_give_the_numbers_of_each_run_alone(bounds):
    values = awkward()
    outcomes = planning.one_sample_outcomes(values, null=0.5, bounds=bounds)
    for row in range(len(values)):
        same(outcomes, row, basic.one_sample(values[row], null=0.5, bounds=bounds))
    large = rng(1).integers(0, 5, (6, 150)) / 4
    large[0] = 1.0
    large[0, :3] = 0.5
    outcomes = planning.one_sample_outcomes(large, null=0.6, level=0.9, bounds=bounds)
    for row in range(len(large)):
        same(outcomes, row, basic.one_sample(large[row], null=0.6, level=0.9, bounds=bounds))


def test_equivalence_of_all_runs_is_that_of_each():
    values = rng(2).normal(0.5, 0.15, (40, 25))
    values[0] = 0.5
    outcomes = planning.one_sample_outcomes(values, margin=0.07)
    alone = [equivalence.equivalence(row, null=0.5, margin=0.07) for row in values]
    wanted = [bool(e.status == "ok" and e.detail["is_equivalent"]) for e in alone]
    assert outcomes.is_equivalent.tolist() == wanted and 0 < sum(wanted) < 40


@pytest.mark.parametrize("n_annotators,n_each,n_items", [(30, 5, 40), (8, 6, 12), (5, 8, 10), (1, 6, 6)])
def test_two_ways_of_clustering_at_once_give_the_numbers_of_each_run_alone(n_annotators, n_each, n_items):
    who = np.repeat(np.arange(n_annotators), n_each)
    what = np.arange(n_annotators * n_each) % n_items
    values = (rng(3).random((4, len(who))) < 0.7).astype(float)
    values[3] = 1.0
    outcomes = planning.two_way_outcomes(values, who, what, bounds=(0.0, 1.0))
    for row in range(4):
        same(outcomes, row, clusters.two_way_mean(values[row], who, what, null=0.5, bounds=(0.0, 1.0)))


def test_ratings_are_planned_with_the_analysis_of_ratings():
    made = generators.likert_ratings(20, 4, [0.5, 0.0], runs=3, annotator_taste_sd=0.5, n_prompts=16, rng=rng(4))
    x, y, who = made.ratings[0, ..., 0].ravel(), made.ratings[0, ..., 1].ravel(), np.repeat(np.arange(20), 4)
    captured = captured_outcomes(
        lambda **more: planning.plan_rating(20, 4, 0.5, annotator_taste_sd=0.5, n_prompts=16, **more), seed=4, runs=3
    )
    alone = ratings.superiority(x, y, who, rng=rng(), resamples=99)
    assert_allclose([captured.estimate[0], captured.pvalue[0]], [alone.estimate, alone.pvalue], rtol=1e-9)
    captured = captured_outcomes(
        lambda **more: planning.plan_rating(
            20, 4, 0.5, estimator="mean_difference", annotator_taste_sd=0.5, n_prompts=16, **more
        ),
        seed=4,
        runs=3,
    )
    same(captured, 0, ratings.mean_difference(x, y, who, prompts=made.prompts.ravel(), scale=(1, 5)))
    made = generators.likert_ratings(20, 4, [0.5, 0.0], runs=3, rng=rng(4))
    captured = captured_outcomes(
        lambda **more: planning.plan_rating(20, 4, 0.5, estimator="mean_difference", **more), seed=4, runs=3
    )
    x, y = made.ratings[0, ..., 0].ravel(), made.ratings[0, ..., 1].ravel()
    same(captured, 0, ratings.mean_difference(x, y, who, scale=(1, 5)))


def test_human_likeness_is_planned_with_the_analysis_of_human_likeness():
    made = generators.human_like_ratings(30, 5, d_prime=0.6, n_texts=50, runs=2, rng=rng(5))
    says = detection.says_machine(made.ratings[0].ravel())
    truth, who, texts = made.is_machine[made.texts.ravel()], np.repeat(np.arange(30), 5), made.texts.ravel()
    captured = captured_outcomes(lambda **more: planning.plan_human_likeness(30, 5, 0.6, n_texts=50, **more), 5, 2)
    same(captured, 0, detection.accuracy(detection.is_correct(says, truth), who, texts))
    captured = captured_outcomes(
        lambda **more: planning.plan_human_likeness(30, 5, 0.6, n_texts=50, measure="sensitivity", **more), 5, 2
    )
    same(captured, 0, detection.sensitivity(says, truth, who, texts, resamples=19, rng=rng()))


@pytest.mark.parametrize("n_each", [1, 5])
def test_choices_are_planned_with_the_analysis_of_choices(n_each):
    made = generators.choice_answers(40, n_each, mean_difficulty=0.3, runs=3, rng=rng(6))
    captured = captured_outcomes(lambda **more: planning.plan_choice(40, n_each, 0.3, **more), 6, 3)
    for row in range(3):
        same(captured, row, choice.preference(made.chose_a[row].ravel(), np.repeat(np.arange(40), n_each)))


def test_leaderboards_and_utilities_are_planned_with_their_analyses():
    made = generators.leaderboard_answers(60, [0.8, 0.7], n_annotators=20, runs=2, rng=rng(7))
    captured = captured_outcomes(lambda **more: planning.plan_leaderboard(60, 0.1, n_annotators=20, **more), 7, 2)
    alone = leaderboard.difference(
        made.values[0].ravel(),
        np.repeat(["x", "y"], 60),
        np.tile(np.arange(60), 2),
        made.annotators[0].ravel(),
        x="x",
        y="y",
    )
    same(captured, 0, alone)
    rated = generators.continuous_ratings(25, 3, [0.6, 0.4], violating_share=0.1, runs=2, rng=rng(8))
    captured = captured_outcomes(
        lambda **more: planning.plan_expected_utility(25, 3, 0.2, violating_share=0.1, **more), 8, 2
    )
    ends = [rated.reference_minimum[0][:, None], rated.reference_maximum[0][:, None]]
    means = []
    for system in (0, 1):
        rows = np.concatenate([rated.ratings[0, :, :, system], *ends], axis=1)
        place = np.tile(np.arange(5), 25)
        scaled = ratings.between_references(
            rows.ravel(), np.repeat(np.arange(25), 5), is_minimum=place == 3, is_maximum=place == 4
        )
        means.append(scaled.values.reshape(25, 5)[:, :3].mean(axis=1))
    same(captured, 0, basic.paired(means[0], means[1]))


def captured_outcomes(plan, seed, runs):
    """The outcomes of a planner's runs, made in one block so that its generator makes what ours makes."""
    kept, simulate = [], _simulation.simulate

    def watched(*args, **more):
        kept.append(simulate(*args, **more))
        return kept[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_simulation, "BLOCKS", 1)
        patch.setattr(_search, "simulate", watched)
        plan(rng=rng(seed), options=planning.Options(runs=runs))
    return kept[0]


def test_probabilities_are_planned_with_the_analysis_of_probabilities():
    made = generators.spa_answers(30, [0.6, 0.5], annotator_sd=0.2, order_sd=0.15, runs=2, rng=rng(9))
    for mode, tau in [("recommended", None), ("recommended", 1.1), ("paper", None), ("paper", 1.1)]:
        captured = captured_outcomes(
            lambda mode=mode, tau=tau, **more: planning.plan_spa(
                30, [0.6, 0.5], mode=mode, tau=tau, annotator_sd=0.2, order_sd=0.15, **more
            ),
            9,
            2,
        )
        xy, yx = made.xy_percent[1], made.yx_percent[1]
        kept = np.ones(30, dtype=bool) if tau is None else ~spa.tau_flags(xy, yx, tau=tau).incoherent
        if mode == "paper":
            alone = spa.pair_paper(xy[kept, 0])
        else:
            values = spa.combined(xy, yx)[kept, 0]
            alone = basic.one_sample(values, null=0.5, bounds=(0.0, 1.0))
            if tau is None:
                study = spa.pairs_recommended(xy, yx, names=["a", "b"], tau=None, resamples=19, rng=rng())
                assert_allclose(study["a"].pvalue, alone.pvalue)
        found = [captured.estimate[1, 0], captured.low[1, 0], captured.high[1, 0], captured.pvalue[1, 0]]
        assert_allclose(found, [alone.estimate, alone.interval.low, alone.interval.high, alone.pvalue], rtol=1e-9)


# Exact plans.


def test_a_plan_for_a_mean_is_the_table_of_powers():
    for setting, by_n in POWERS["by_sd_and_difference"].items():
        sd, difference = (float(part.split("=")[1]) for part in setting.split("|"))
        for n, by_level in list(by_n.items())[::2]:
            for level, wanted in by_level.items():
                chosen = planning.Options(significance=float(level[2:]))
                assert abs(planning.plan_mean(difference, sd, int(n[2:]), options=chosen).power - wanted) < 6e-4
    for setting, wanted in POWERS["detectable_difference"].items():
        sd, n, family = setting.split("|")
        chosen = planning.Options(tests=5 if "/5" in family else 1)
        assert abs(planning.plan_mean(0.1, float(sd[3:]), int(n[2:]), options=chosen).detectable - wanted) < 6e-5
    plan = planning.plan_mean(0.0, 0.25, 216, margin=0.05)
    assert plan.detail["equivalence_power"] >= 0.8 and abs(plan.power - 0.05) < 1e-9


def test_the_expected_width_is_that_of_intervals():
    values = rng(10).normal(0.6, 0.2, (4000, 12))
    outcomes = planning.one_sample_outcomes(values)
    found = np.mean(outcomes.high - outcomes.low)
    assert abs(planning.plan_mean(0.1, 0.2, 12).width / found - 1) < 0.01
    shares = [np.diff(basic.wilson(k, 30))[0] for k in rng(10).binomial(30, 0.7, 4000)]
    assert abs(planning.plan_share(0.7, 30).width / np.mean(shares) - 1) < 0.01


def test_shares_and_groups_are_planned_exactly():
    plan = planning.plan_share(0.6, 210)
    assert plan.power == power.proportion_power(0.6, 210) and plan.method == "exact" and plan.power_error is None
    assert planning.plan_share(0.9, 4).detectable is None
    arms = planning.plan_two_groups(0.05, 315, 315, sd_x=0.224, answers_each=5)
    assert arms.labels == 3150 and abs(arms.power - 0.798) < 0.001 and arms.width == pytest.approx(0.0701, abs=1e-4)


def test_watching_a_study_is_planned_exactly():
    rule = sequential.beta_binomial_boundaries(500, margin=0.1)
    at_null, at_p = planning.plan_sequential(0.5, rule), planning.plan_sequential(0.35, rule)
    table = choice_simulation.rule_table(0.35, rule)
    assert (
        at_p.power == table.b_better[-1] > 0.9 and at_p.labels == table.mean_n and at_p.effect == pytest.approx(-0.15)
    )
    assert at_null.power < 0.05 and at_null.detail["equivalent"] > 0.9


@pytest.mark.parametrize("row", GOLDEN["group_sequential"], ids=lambda row: f"{row['shape']}-{row['mean']}")
def test_planned_looks_agree_with_the_reference(row):
    # The standard deviation is the one at which the fixed test has the power it had in the simulation.
    sd = (row["mean"] - 0.5) / power.detectable_effect(200, power=row["fixed"])
    plan = planning.plan_group_sequential(row["mean"] - 0.5, sd, [40, 80, 120, 160, 200], answers_each=2)
    assert abs(plan.power - row["looks"]) < 0.02
    # The spending function asks for more at the early looks than the classical boundaries of the simulation.
    assert -1 < plan.detail["expected_n"] - row["mean_n"] < 8
    assert plan.labels == 2 * plan.detail["expected_n"]
    null = planning.plan_group_sequential(0.0, sd, [40, 80, 120, 160, 200])
    assert abs(null.power - 0.05) < 1e-3 and 197 < null.detail["expected_n"] < 200


# Simulated plans.


def within(found, wanted, runs, errors=3.5):
    return abs(found - wanted) < errors * math.sqrt(max(wanted * (1 - wanted), 0.01) / runs)


def test_simulation_agrees_with_the_exact_power_where_there_is_one():
    # Small spreads, since the ends of the scale cut off what is beyond them.
    chosen = options(runs=2000, find_detectable=True)
    plan = planning.plan_spa(60, 0.55, annotator_sd=0.12, order_sd=0.1, rounding=1, rng=rng(1), options=chosen)
    exact = planning.plan_mean(0.05, math.sqrt(0.12**2 + 0.1**2 / 2), 60, answers_each=2)
    assert within(plan.power, exact.power, 2000) and plan.labels == exact.labels == 120
    assert plan.power_error == pytest.approx(math.sqrt(plan.power * (1 - plan.power) / 2000))
    assert abs(plan.detectable / exact.detectable - 1) < 0.05 and abs(plan.width / exact.width - 1) < 0.01
    one_each = planning.plan_choice(
        150, 1, 0.3, capability=(1.0, 1.0), spread=0.0, rng=rng(2), options=options(runs=2000)
    )
    assert within(one_each.power, power.proportion_power(0.65, 150), 2000)


def test_under_the_null_a_plan_finds_what_the_level_allows():
    runs = 800
    chosen = options(runs=runs)
    for plan in (
        planning.plan_spa(60, 0.5, rng=rng(3), options=chosen),
        planning.plan_rating(40, 5, 0.0, annotator_taste_sd=0.5, rng=rng(3), options=chosen),
        planning.plan_rating(
            40, 5, 0.0, n_prompts=40, estimator="mean_difference", prompt_taste_sd=0.4, rng=rng(3), options=chosen
        ),
        planning.plan_human_likeness(60, 5, 0.0, n_texts=60, rng=rng(3), options=chosen),
        planning.plan_choice(60, 5, 0.0, annotator_sd=0.15, rng=rng(3), options=chosen),
        planning.plan_expected_utility(20, 3, 0.0, rng=rng(3), options=chosen),
    ):
        assert within(plan.power, 0.05, runs, 3), plan.protocol


def test_the_tau_rule_is_seen_to_break_the_test_before_anybody_is_asked():
    study = {"annotator_sd": 0.0, "order_sd": 0.1, "rounding": 1, "options": options(runs=500)}
    broken = planning.plan_spa(60, 0.5, mode="paper", tau=1.1, rng=rng(4), **study)
    honest = planning.plan_spa(60, 0.5, rng=rng(4), **study)
    assert abs(broken.power - 0.58) < 0.08 and honest.power < 0.09
    assert broken.detail["by_pair"][0]["estimate"] < 0.48


def test_a_family_of_pairs_is_tested_as_one():
    chosen = options(runs=400)
    spread = {"annotator_sd": 0.28, "order_sd": 0.1}
    single = planning.plan_spa(60, 0.6, rng=rng(5), options=chosen, **spread)
    family = planning.plan_spa(60, [0.6, 0.6, 0.5], rng=rng(5), options=chosen, **spread)
    assert family.power < single.power - 0.03
    real = [pair["power"] for pair in family.detail["by_pair"][:2]]
    assert family.power == pytest.approx(np.mean(real)) and family.detail["all_found"] < min(real)
    assert family.detail["by_pair"][2]["power"] < 0.09
    larger = planning.plan_spa(60, 0.6, rng=rng(5), options=options(runs=400, tests=5), **spread)
    assert larger.power < single.power - 0.1
    nobody = planning.plan_spa(60, [0.5] * 5, rng=rng(5), options=chosen, **spread)
    # The share of studies with any false finding.
    assert nobody.power < 0.09 and nobody.detail["all_found"] is None and nobody.effect == 0


def test_equivalence_is_planned_by_the_same_test():
    plan = planning.plan_spa(
        90, 0.5, annotator_sd=0.2, order_sd=0.1, rounding=1, margin=0.1, rng=rng(6), options=options(runs=1000)
    )
    wanted = power.equivalence_power(90, sd=math.sqrt(0.2**2 + 0.1**2 / 2), margin=0.1)
    assert within(plan.detail["by_pair"][0]["equivalence_power"], wanted, 1000)


def test_more_annotators_or_less_noise_is_never_worse():
    def at(n, **more):
        return planning.plan_rating(n, 4, 0.3, rng=rng(7), options=options(runs=300), **more)

    few, many = at(20, annotator_taste_sd=0.5), at(60, annotator_taste_sd=0.5)
    quiet = at(20)
    assert few.power < many.power and few.width > many.width and quiet.power > few.power


def test_what_excluded_annotators_cost():
    plan = planning.plan_mean(0.1, 0.3, 90, answers_each=2, excluded_share=0.1)
    assert plan.labels == 200 and plan.power == planning.plan_mean(0.1, 0.3, 90).power
    lost = planning.plan_spa(90, 0.58, excluded_share=0.5, rng=rng(8), options=options(runs=400))
    kept = planning.plan_spa(45, 0.58, rng=rng(8), options=options(runs=400))
    assert lost.labels == 180 and abs(lost.power - kept.power) < 0.12
    with pytest.raises(ValueError, match="excluded_share: 1"):
        planning.plan_mean(0.1, 0.3, 90, excluded_share=1)


def test_the_bill_counts_what_is_paid():
    prices = planning.Prices(pay=0.5, fee_rate=0.2, overhead=10, test_share=0.1, seconds=30)
    plan = planning.plan_mean(0.1, 0.3, 90, options=planning.Options(prices=prices))
    assert (plan.cost.n_labels, plan.cost.n_test) == (100, 10) and plan.cost.total == pytest.approx(70)
    assert plan.hours == pytest.approx(100 * 30 / 3600)
    early = planning.plan_sequential(
        0.65, sequential.beta_binomial_boundaries(500), options=planning.Options(prices=prices)
    )
    assert early.cost.n_labels == math.ceil(round(math.ceil(early.labels) / 0.9, 6)) < 500
    assert planning.plan_mean(0.1, 0.3, 90).cost is None
    json.dumps(plan.as_dict(), allow_nan=False)


def test_a_strategy_is_planned_with_the_effort_of_its_rule():
    rule = sequential.hoeffding_boundaries(1500, delta=0.001)
    plans = [
        planning.plan_strategy(0.25, 1500, strategy, rule=rule, rng=rng(9), options=options(runs=150))
        for strategy in (choice.Strategy("one"), choice.Strategy("max_three"), choice.Strategy("majority", 7))
    ]
    assert [plan.power for plan in plans] == sorted(plan.power for plan in plans) and plans[0].power > 0.97
    # One annotator a request is the cheapest, seven the dearest: the paper's order (338, 461, 866).
    assert plans[0].labels < plans[1].labels < plans[2].labels
    assert 230 < plans[0].labels < 400 and plans[0].detail["wrong_share"] == 0
    null = planning.plan_strategy(
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
    planning.plan_choice(30, 4, 0.3, rng=rng(17), options=options(runs=40, find_detectable=True))
    assert len(states) == 2 + planning.HALVINGS and len(set(states[1:])) == 1 and states[0] != states[1]


def test_a_study_that_cannot_find_it_says_so():
    told = []
    chosen = options(runs=60, find_detectable=True, wanted=0.99, tests=50, progress=lambda *at: told.append(at))
    plan = planning.plan_choice(6, 2, 0.1, rng=rng(10), options=chosen)
    assert plan.detectable is None and plan.warnings[0].code == "not_detectable"
    assert told[-1] == (720, 720) and len(told) < 60
    few = planning.plan_rating(4, 3, 0.5, rng=rng(10), options=options(runs=20))
    assert few.power == 0 and few.detail["n_undefined"] == 20
    json.dumps(plan.as_dict(), allow_nan=False)


# The long job.


@pytest.mark.parametrize(
    "runs,n,said", [(2001, 10, "runs: 2001 is not in 1..2000"), (0, 10, "runs: 0"), (2000, 13_000, "at most 1923 runs")]
)
def test_simulations_beyond_the_bounds_are_refused_before_they_start(runs, n, said):
    started = []
    with pytest.raises(ValueError, match=said):
        planning.plan_spa(n, 0.6, rng=rng(), options=options(runs=runs, progress=lambda *at: started.append(at)))
    assert started == []
    with pytest.raises(ValueError, match="too large a study"):
        planning.refuse_size(1, 50_000_001)
    planning.refuse_size(2000, 25_000)


@pytest.mark.parametrize("find_detectable", [False, True])
def test_progress_is_told_in_order_to_the_end(find_detectable):
    told = []
    planning.plan_choice(
        20,
        3,
        0.5,
        rng=rng(),
        options=options(runs=60, find_detectable=find_detectable, progress=lambda *at: told.append(at)),
    )
    totals = {total for _, total in told}
    assert totals == {60 * (1 + (planning.HALVINGS + 1) * find_detectable)}
    done = [at for at, _ in told]
    assert done == sorted(done) and len(set(done)) == len(done) and done[-1] == totals.pop()
    assert len(told) >= planning.BLOCKS


def test_a_cancelled_job_stops_at_the_next_block():
    told = []
    with pytest.raises(planning.Cancelled, match="after 30 of 200 runs"):
        planning.plan_spa(
            20,
            0.6,
            rng=rng(),
            options=options(progress=lambda done, _: told.append(done), is_cancelled=lambda: len(told) == 3),
        )
    assert told == [10, 20, 30]


def test_the_same_seed_gives_the_same_plan_whoever_watches():
    first = planning.plan_spa(30, 0.6, rng=rng(11), options=options(find_detectable=True))
    watched = planning.plan_spa(
        30,
        0.6,
        rng=rng(11),
        options=options(find_detectable=True, progress=lambda *_: None, is_cancelled=lambda: False),
    )
    assert first == watched
    assert first != planning.plan_spa(30, 0.6, rng=rng(12), options=options(find_detectable=True))


@pytest.mark.parametrize(
    "call,named",
    [
        (lambda: planning.plan_spa(9, 0.6, mode="other", rng=rng()), "mode: 'other'"),
        (lambda: planning.plan_rating(9, 2, 0.5, estimator="other", rng=rng()), "estimator: 'other'"),
        (lambda: planning.plan_human_likeness(9, 2, 0.5, measure="other", rng=rng()), "measure: 'other'"),
        (lambda: planning.plan_expected_utility(9, 2, 0.5, utility=0.9, rng=rng()), "difference: 0.5 around 0.9"),
        (lambda: planning.plan_group_sequential(0.1, 0.3, [80, 40]), "looks"),
        (lambda: planning.plan_group_sequential(0.1, 0.3, [1, 40]), "looks"),
        (lambda: planning.plan_group_sequential(0.1, 0.3, [20.5, 40]), "looks"),
        (lambda: planning.plan_group_sequential(0.1, 0.3, [math.nan, 40]), "looks"),
        (lambda: planning.plan_group_sequential(math.nan, 0.3, [20, 40]), "drift: nan"),
        (lambda: planning.plan_mean(math.nan, 0.3, 30), "effect: nan"),
        (lambda: planning.plan_mean(math.inf, 0.3, 30), "effect: inf"),
        (lambda: planning.plan_two_groups(math.nan, 30, 30, sd_x=0.3), "difference: nan"),
        (lambda: planning.plan_mean(0.1, 0.0, 30), "sd: 0"),
        (lambda: planning.Options(tests=0), "tests: 0"),
    ],
)
def test_impossible_designs_are_refused_by_name(call, named):
    with pytest.raises(ValueError, match=named):
        call()


def test_any_analysis_of_single_runs_can_be_simulated():
    def generate(size, generator):
        return generator.normal(0.4, 1, (size, 20)), generator.normal(0, 2, (size, 30))

    def analyse(made):
        return planning.outcomes_of(basic.welch(x, y) for x, y in zip(*made, strict=True))

    outcomes = planning.simulate(generate, analyse, answers=50, runs=600, rng=rng(13))
    wanted = power.two_sample_power(0.4, 20, 30, sd_x=1, sd_y=2)
    assert within(np.mean(outcomes.pvalue < 0.05), wanted, 600)
    assert power.two_sample_power(0.4, 20, 30, variances="equal") > wanted


@pytest.mark.slow
@pytest.mark.parametrize("row", GOLDEN["two_way"], ids=lambda row: f"{row['annotator_sd']}")
def test_two_way_intervals_cover_as_in_the_reference(row):
    n, m, k, runs = row["n_annotators"], row["n_each"], row["n_items"], 2000
    who, what = np.repeat(np.arange(n), m), np.arange(n * m) % k
    random = rng(14)
    values = random.normal(size=(runs, n * m)) + row["annotator_sd"] * random.normal(size=(runs, n))[:, who]
    values += row["item_sd"] * random.normal(size=(runs, k))[:, what]
    outcomes = planning.two_way_outcomes(values, who, what, null=0.0)
    covered = np.mean((outcomes.low <= 0) & (outcomes.high >= 0))
    assert covered >= 0.93 and abs(covered - row["coverage"]) < 0.03
    assert abs(np.mean(outcomes.high - outcomes.low) / row["width"] - 1) < 0.05


@pytest.mark.slow
def test_levels_hold_over_two_thousand_runs():
    chosen = planning.Options(runs=2000)
    for plan in (
        planning.plan_spa(60, 0.5, acquiescence_share=0.3, rng=rng(15), options=chosen),
        planning.plan_rating(30, 5, 0.0, annotator_taste_sd=0.7, rng=rng(15), options=chosen),
        planning.plan_human_likeness(130, 5, 0.0, n_texts=100, measure="sensitivity", rng=rng(15), options=chosen),
        planning.plan_choice(60, 5, 0.0, annotator_sd=0.15, rng=rng(15), options=chosen),
    ):
        assert 0.03 <= plan.power <= 0.07, plan.protocol
    board = planning.plan_leaderboard(300, 0.0, rng=rng(15), options=planning.Options(runs=1000))
    assert 0.02 <= board.power <= 0.07


def test_a_power_is_the_share_of_runs_below_the_adjusted_level():
    plan = planning.plan_choice(60, 5, 0.2, rng=rng(16), options=options(runs=400))
    strict = planning.plan_choice(60, 5, 0.2, rng=rng(16), options=options(runs=400, tests=4))
    assert strict.power < plan.power and strict.width == plan.width
    z = special.ndtri(1 - 0.05 / 8) - special.ndtri(1 - 0.05 / 2)
    expected = special.ndtr(special.ndtri(plan.power) - z)
    assert abs(strict.power - expected) < 0.06
