"""Labels, strategies and effort; the paper's Tables 6 and 7 and its kappas from the real labels."""

import csv
import itertools
import json
import math

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import choice
from analysis.stats.choice import Strategy
from analysis.stats.results import plain
from analysis.stats.sequential import beta_binomial_boundaries, hoeffding_boundaries
from tests.analysis.stats.draws import rng
from tests.analysis.stats.golden import golden

GOLDEN = golden("choice")
STRATEGIES = {
    "one": Strategy("one"),
    "mv5": Strategy("majority", 5),
    "mv7": Strategy("majority", 7),
    "max3": Strategy("max_three"),
}
# Whose unanimous pairs the released analysis counted as two labels; every other pair as three.
RELEASED = {"v1_vs_cga": "unless_both_b", "v2_vs_cga_r1": "unless_both_a"}
FILES = {"v1_vs_cga": "dhe_v1_vs_cga.csv", "v2_vs_cga_r1": "dhe_v2_vs_cga_r1.csv"}


def real(shared, batch):
    """The labels of one batch, CGA being system A: chose_a, a_was_first, items, annotators."""
    with (shared / FILES[batch]).open(newline="") as file:
        rows = list(csv.DictReader(file))
    return (
        np.array([row["chosen_model"] == "CGA" for row in rows], float),
        np.array([row["model_a"] == "CGA" for row in rows], float),
        np.array([int(row["pair_id"]) for row in rows]),
        np.array([row["worker"] for row in rows]),
    )


# From labels to decisions


def by_hand(labels, strategy):
    """One item's decision and labels, label by label."""
    used = []
    for label in labels[: strategy.most]:
        used.append(label)
        if strategy.name == "max_three" and len(used) == 2 and used[0] == used[1]:
            break
    votes, against = sum(used), len(used) - sum(used)
    need = strategy.most // 2 + 1
    return (1.0 if votes >= need else 0.0 if against >= need else None), len(used)


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_decisions_follow_from_labels_one_at_a_time(strategy):
    draw = rng(1)
    labels = {item: draw.integers(0, 2, draw.integers(1, 9)).astype(float) for item in range(60)}
    items = np.repeat(list(labels), [len(found) for found in labels.values()])
    values = np.concatenate(list(labels.values()))
    # Rows of several items come mixed; within an item their order is what counts.
    order = np.argsort(draw.random(len(items)) + 1000 * (np.arange(len(items)) - np.searchsorted(items, items)))
    found = choice.item_decisions(values[order], items[order], strategy)
    wanted = [by_hand(labels[item].tolist(), strategy) for item in found.items]
    assert [None if math.isnan(d) else d for d in found.decisions] == [decision for decision, _ in wanted]
    assert found.n_labels.tolist() == [n for _, n in wanted]
    assert found.n_unused == len(values) - sum(n for _, n in wanted)


def test_the_released_count_pays_for_labels_that_nobody_gave():
    values, items = [1, 1, 0, 0, 1, 0, 1], ["p", "p", "q", "q", "r", "r", "r"]
    true, first, second = (
        choice.item_decisions(values, items, Strategy("max_three", counting=counting)) for counting in choice.COUNTINGS
    )
    assert true.n_labels.tolist() == [2, 2, 3]
    assert first.n_labels.tolist() == [2, 3, 3]
    assert second.n_labels.tolist() == [3, 2, 3]
    assert true.decisions.tolist() == first.decisions.tolist() == second.decisions.tolist() == [1, 0, 1]


def test_the_fixed_worker_is_one_person():
    found = choice.item_decisions([1, 0, 1], ["p", "p", "q"], Strategy("fixed"), annotators=["x", "y", "y"], fixed="y")
    assert found.decisions.tolist() == [0.0, 1.0] and found.n_unused == 0
    absent = choice.item_decisions([1], ["p"], Strategy("fixed"), annotators=["x"], fixed="y")
    assert math.isnan(absent.decisions[0]) and absent.n_labels.tolist() == [0]
    with pytest.raises(ValueError, match="annotators"):
        choice.item_decisions([1], ["p"], Strategy("fixed"))


def test_missing_labels_decide_nothing():
    found = choice.item_decisions([np.nan, 1, np.nan], ["p", "p", "q"], Strategy("one"))
    assert found.decisions[0] == 1 and math.isnan(found.decisions[1])
    empty = choice.item_decisions([], [], Strategy("majority", 3))
    assert empty.items == () and len(empty.decisions) == 0


# Laws: what drawing without replacement gives


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_laws_are_those_of_all_orders_of_the_labels(strategy):
    for wins, n in ((0, 8), (3, 8), (5, 8), (8, 8), (4, 7)):
        law = choice.law_of_labels([wins], [n], strategy)
        orders = list(itertools.permutations([1] * wins + [0] * (n - wins), min(n, strategy.most)))
        outcomes = [by_hand(list(order), strategy) for order in orders]
        share = {key: outcomes.count(key) / len(outcomes) for key in set(outcomes)}
        few = law.labels
        assert_allclose(law.a_at_once[0], share.get((1.0, few), 0), atol=1e-12)
        assert_allclose(law.a_by_third[0], share.get((1.0, 3), 0) if strategy.name == "max_three" else 0, atol=1e-12)
        assert_allclose(law.b_by_third[0], share.get((0.0, 3), 0) if strategy.name == "max_three" else 0, atol=1e-12)


@pytest.mark.parametrize("counting", choice.COUNTINGS)
def test_effort_is_what_relabelling_one_label_at_a_time_costs(counting):
    strategy, draw = Strategy("max_three", counting=counting), rng(2)
    wins, n = rng(3).integers(4, 11, 60), np.full(60, 10)
    rule = hoeffding_boundaries(60, delta=0.05)
    efforts = []
    for _ in range(400):
        values, items = [], []
        for item, won in enumerate(wins):
            drawn = draw.permutation(np.repeat([1.0, 0.0], [won, 10 - won]))
            values.extend(drawn[:3])
            items.extend([item] * 3)
        decided = choice.item_decisions(values, items, strategy)
        successes = np.cumsum(decided.decisions)
        crossed = np.flatnonzero((successes >= rule.upper) | (successes <= rule.lower))
        efforts.append(decided.n_labels[: crossed[0] + 1].sum() if len(crossed) else decided.n_labels.sum())
    fast = choice.resampled_effort(wins, n, strategy, rule=rule, runs=4000, rng=rng(4))
    error = 3.5 * np.std(efforts) * math.sqrt(1 / 400 + 1 / 4000)
    assert abs(np.mean(efforts) - fast.n_labels.mean()) < error


def test_effort_with_certain_answers_is_the_least_there_is():
    rule = hoeffding_boundaries(30, delta=0.001)
    for strategy, labels in ((STRATEGIES["one"], 14), (STRATEGIES["mv7"], 98), (STRATEGIES["max3"], 28)):
        for wins, winner in ((10, 1), (0, -1)):
            found = choice.resampled_effort(np.full(30, wins), np.full(30, 10), strategy, rule=rule, runs=5, rng=rng())
            assert found.n_labels.tolist() == [labels] * 5 and found.winner.tolist() == [winner] * 5
            assert found.n_requests.tolist() == [14] * 5


def test_effort_takes_any_rule():
    wins, n = np.full(400, 7), np.full(400, 10)
    anytime = beta_binomial_boundaries(400, level=0.98)
    honest = choice.resampled_effort(wins, n, Strategy("one"), rule=anytime, runs=300, rng=rng())
    naive = choice.resampled_effort(
        wins, n, Strategy("one"), rule=hoeffding_boundaries(400, delta=0.01), runs=300, rng=rng()
    )
    assert np.all(honest.winner == 1) and honest.n_labels.mean() > naive.n_labels.mean()
    assert honest.settings["rule"].startswith("beta_binomial")


def test_effort_is_reproducible():
    wins, n, rule = np.full(200, 6), np.full(200, 10), hoeffding_boundaries(200, delta=0.01)
    first, second = (choice.resampled_effort(wins, n, STRATEGIES["max3"], rule=rule, rng=rng(7)) for _ in range(2))
    assert np.array_equal(first.n_labels, second.n_labels)


# What may be printed of it


def effort(requests, labels, winner=None, strategy=STRATEGIES["one"]):
    requests = np.array(requests)
    return choice.Effort(
        strategy, requests, np.array(labels), np.sign(requests) if winner is None else winner, True, {}
    )


def test_the_paper_averages_what_decided_and_the_recommendation_everything():
    made = effort([10, 0, 20, 30], [10, 50, 20, 30])
    paper, recommended = (choice.effort_summary(made, mode=mode, rng=rng()) for mode in ("paper", "recommended"))
    assert (paper.estimate, paper.n, paper.detail["share_decided"]) == (20.0, 3, 0.75)
    assert (recommended.estimate, recommended.n, recommended.detail["median"]) == (27.5, 4, 20.0)
    assert recommended.detail["quantile_90"] is None
    assert paper.warned("decided_only") and recommended.warned("undecided") and paper.warned("same_requests")
    assert not choice.effort_summary(effort([1, 2], [1, 2]), rng=rng()).warned("undecided")
    miscounted = effort([1, 2], [1, 2], strategy=Strategy("max_three", counting="unless_both_a"))
    assert choice.effort_summary(miscounted, rng=rng()).warned("third_labels_miscounted")


def test_the_interval_is_the_percentile_bootstrap_of_the_mean():
    labels = rng(5).integers(50, 150, 400)
    found = choice.effort_summary(effort(labels, labels), rng=rng(), resamples=4000).interval
    wanted = stats.bootstrap(
        (labels,), np.mean, confidence_level=0.99, method="percentile", rng=rng(1), n_resamples=4000
    )
    assert_allclose([found.low, found.high], wanted.confidence_interval, atol=0.8)


def test_runs_without_a_decision_or_without_spread_have_a_status():
    assert choice.effort_summary(effort([0, 0], [50, 50]), mode="paper", rng=rng()).status == "no_data"
    assert choice.effort_summary(effort([0, 3], [50, 3]), mode="paper", rng=rng()).status == "n_lt_2"
    same = effort([70] * 5, [70] * 5)
    assert choice.effort_summary(same, rng=rng()).status == "zero_variance"
    published = choice.effort_summary(same, mode="paper", rng=rng())
    assert (published.interval.low, published.interval.high) == (70, 70)
    none = choice.effort_summary(effort([0, 0], [50, 50]), rng=rng())
    assert none.detail["median"] is None and none.detail["mean_decided"] is None
    for made in (same, effort([0, 0], [50, 50]), effort([0, 3], [50, 3])):
        for mode in ("paper", "recommended"):
            json.dumps(choice.effort_summary(made, mode=mode, rng=rng()).as_dict(), allow_nan=False)


# Agreement, place, preference


def study(seed=0, n_annotators=40, n_labels=15, preference=0.6, bonus=0.1, lean=0.1):
    draw = rng(seed)
    annotators = np.repeat(np.arange(n_annotators), n_labels)
    items = draw.integers(0, 60, len(annotators))
    first = draw.integers(0, 2, len(annotators)).astype(float)
    own = preference + draw.normal(0, lean, n_annotators)[annotators] + bonus * (first - 0.5)
    return (draw.random(len(annotators)) < own).astype(float), first, items, annotators


def test_the_bonus_of_the_first_place_agrees_with_least_squares():
    chosen, first, _, annotators = study(n_annotators=60)
    found = choice.position_effect(chosen, first, annotators)
    design = sm.add_constant(first)
    # Sixty annotators with as many labels each: the jackknife and the sandwich lie near each other.
    fit = sm.OLS(chosen, design).fit(cov_type="cluster", cov_kwds={"groups": annotators})
    assert_allclose(found.estimate, fit.params[1], atol=1e-10)
    assert_allclose(found.detail["se"], fit.bse[1], rtol=0.05)
    assert found.interval.low < 0.1 < found.interval.high and found.n == 60
    swapped = choice.position_effect(1 - chosen, 1 - first, annotators)
    assert_allclose(swapped.estimate, found.estimate)
    assert_allclose(swapped.detail["balanced_share"], 1 - found.detail["balanced_share"])
    assert_allclose(swapped.pvalue, found.pvalue)


def test_a_place_that_never_changed_says_nothing():
    fixed = choice.position_effect([1, 0, 1], [1, 1, 1], ["x", "y", "z"])
    assert (fixed.status, fixed.estimate) == ("not_identified", None) and fixed.warned("order_not_identified")
    assert choice.position_effect([], [], []).status == "no_data"
    assert choice.position_effect([1, 0], [1, 0], ["x", "x"]).status == "n_lt_2"
    alone = choice.position_effect([1, 0, 1], [1, 0, 0], ["x", "y", "z"])
    assert alone.status == "not_identified" and alone.estimate == 0.5
    same = choice.position_effect([1, 0] * 8, [1, 0] * 8, np.repeat(np.arange(8), 2))
    assert (same.status, same.estimate) == ("zero_variance", 1.0)
    few = choice.position_effect(*(array[:60] for array in np.array(study())[[0, 1, 3]]))
    assert few.n == 4 and few.test is None and few.interval is not None
    for found in (fixed, alone, same, few):
        json.dumps(found.as_dict(), allow_nan=False)


def test_the_unit_of_a_preference_is_the_annotator():
    chosen, _, _, annotators = study(lean=0.2)
    found = choice.preference(chosen, annotators, margin=0.2)
    means = [chosen[annotators == who].mean() for who in range(40)]
    reference = stats.ttest_1samp(means, 0.5)
    assert_allclose([found.estimate, found.pvalue], [np.mean(means), reference.pvalue])
    assert (found.n, found.n_rows) == (40, 600)
    assert_allclose(found.sensitivity[0].estimate, chosen.mean())
    assert found.sensitivity[-1].analysis == "choice.preference.equivalence"
    once = choice.preference(chosen[::15], annotators[::15])
    assert_allclose(once.pvalue, stats.binomtest(int(chosen[::15].sum()), 40).pvalue)
    assert choice.preference([], []).status == "no_data"
    assert choice.preference([1, 1, 1, 1], [1, 1, 2, 2]).status == "zero_variance"
    swapped = choice.preference(1 - chosen, annotators)
    assert_allclose([swapped.estimate, swapped.pvalue], [1 - found.estimate, found.pvalue])


def test_a_repetition_is_compared_over_annotators():
    chosen, _, _, annotators = study(n_annotators=60)
    second = (annotators >= 28).astype(float)
    found = choice.repetition_difference(chosen, second, annotators, margin=0.15)
    assert_allclose(found.estimate, chosen[second == 1].mean() - chosen[second == 0].mean())
    tost = found.sensitivity[0]
    wanted = max(
        stats.t.sf((found.estimate + 0.15) / found.detail["se"], found.detail["df"]),
        stats.t.cdf((found.estimate - 0.15) / found.detail["se"], found.detail["df"]),
    )
    assert_allclose(tost.pvalue, wanted)
    assert choice.repetition_difference(chosen, np.ones(900), annotators).status == "no_data"
    assert choice.repetition_difference([1, 0], [0, 1], ["x", "x"]).status == "n_lt_2"


def test_agreement_is_coded_twice():
    chosen, first, items, annotators = study(bonus=0.0)
    chosen, once = chosen.copy(), np.unique(annotators * 1000 + items, return_index=True)[1]
    chosen[0] = np.nan
    found = choice.choice_agreement(chosen[once], first[once], items[once], annotators[once], rng=rng(), resamples=99)
    # Swapping the names of the systems, or of the places, changes neither.
    other = choice.choice_agreement(
        1 - chosen[once], 1 - first[once], items[once], annotators[once], rng=rng(), resamples=99
    )
    assert_allclose(found.kappa_system.estimate, other.kappa_system.estimate)
    assert_allclose(found.kappa_position.estimate, other.kappa_position.estimate)
    json.dumps(plain(found.as_dict()), allow_nan=False)


def test_bad_arguments_are_named():
    rule = hoeffding_boundaries(2, delta=0.1)
    for call, word in (
        (lambda: Strategy("two"), "name"),
        (lambda: Strategy("majority", 4), "workers: 4"),
        (lambda: Strategy("majority", 1), "workers: 1"),
        (lambda: Strategy("one", 3), "workers"),
        (lambda: Strategy("one", counting="twice"), "counting"),
        (lambda: choice.item_decisions([0.5], ["p"], Strategy("one")), "values: row 0 is 0.5, neither 0 nor 1"),
        (lambda: choice.item_decisions([2], ["p"], Strategy("one")), "values: row 0 is 2"),
        (lambda: choice.law_of_labels([3], [2], Strategy("one")), "wins"),
        (lambda: choice.law_of_labels([1, 1], [2], Strategy("one")), "n_labels"),
        (lambda: choice.law_of_labels([1], [2], Strategy("majority", 3)), "n_labels: row 0 has 2 labels"),
        (lambda: choice.law_of_labels([1], [2], Strategy("fixed")), "strategy"),
        (lambda: choice.resampled_effort([1], [2], Strategy("one"), rule=rule, rng=rng()), "rule"),
        (lambda: choice.resampled_effort([1, 1], [2, 2], Strategy("one"), rule=rule, runs=0, rng=rng()), "runs"),
        (lambda: choice.position_effect([1], [1, 0], ["x"]), "a_was_first"),
        (lambda: choice.repetition_difference([1], [1, 0], ["x"]), "is_second"),
        (lambda: choice.choice_agreement([1], [1, 0], ["p"], ["x"], rng=rng()), "a_was_first: 2 rows"),
        (lambda: choice.choice_agreement([1], [np.nan], ["p"], ["x"], rng=rng()), "a_was_first: row 0 is missing"),
    ):
        with pytest.raises(ValueError, match=word):
            call()


# The published tables, from the real labels


@pytest.mark.shared
@pytest.mark.parametrize("batch", FILES)
def test_the_published_kappas_are_those_of_the_place_chosen(shared, batch):
    chosen, first, items, annotators = real(shared, batch)
    wanted = GOLDEN["agreement"][batch]
    found = choice.choice_agreement(chosen, first, items, annotators, rng=rng(), resamples=99)
    assert_allclose(found.kappa_position.estimate, wanted["fleiss_by_screen_side"], atol=1e-9)
    assert_allclose(found.kappa_system.estimate, wanted["fleiss_by_model"], atol=1e-9)
    assert_allclose(chosen.mean(), wanted["cga_share"], atol=1e-9)
    decided = choice.item_decisions(chosen, items, Strategy("majority", 11)).decisions
    votes = np.bincount(items - items.min(), chosen)
    assert int(np.sum(votes > 5)) == wanted["pairs_with_cga_majority"] == int(np.nansum(decided))
    assert int(np.sum(np.isnan(decided))) == wanted["pairs_tied"]
    assert len(set(annotators)) == wanted["workers"]
    place = choice.position_effect(chosen, first, annotators)
    assert abs(place.detail["share_first"] - 0.5) < 0.02
    assert choice.preference(chosen, annotators).interval.low > 0.5


@pytest.mark.shared
@pytest.mark.parametrize("batch", FILES)
def test_tables_6_and_7_come_out_of_the_real_labels_in_both_conventions(shared, batch):
    chosen, _, items, _ = real(shared, batch)
    votes, n, runs = np.bincount(items - items.min(), chosen), np.bincount(items - items.min()), 1000
    rules = {delta: hoeffding_boundaries(500, delta=delta) for delta in (0.01, 0.001, 0.0001)}
    checked = 0
    for case in (case for case in GOLDEN["effort"] if case["batch"] == batch):
        strategy = STRATEGIES[case["strategy"]]
        if case["counting"] == "as_released":
            strategy = Strategy("max_three", counting=RELEASED[batch])
        made = choice.resampled_effort(
            votes, n, strategy, rule=rules[case["delta"]], reading=case["reading"], runs=runs, rng=rng(checked)
        )
        found = choice.effort_summary(made, mode="paper", rng=rng())
        error = case["sd"] * math.sqrt(1 / 4000 + 1 / runs) / math.sqrt(case["decided"])
        assert abs(found.estimate - case["mean"]) <= 4 * error + 1e-9, case
        share = case["decided"]
        spread = math.sqrt(max(share * (1 - share), 1 / 4000) * (1 / 4000 + 1 / runs))
        assert abs(found.detail["share_decided"] - share) <= 4 * spread, case
        assert found.detail["share_b"] == 0
        if case["reading"] == "stays" and (case["counting"] == "as_released" or case["strategy"] != "max3"):
            # The paper's own mean is over 100 runs, and its interval says how far that may lie.
            mean, low, high = case["published"]
            half = max((high - low) / 2, 1.0)
            assert abs(found.estimate - mean) <= 1.6 * half + 4 * error, case
        checked += 1
    assert checked == 30


@pytest.mark.shared
@pytest.mark.parametrize("batch", FILES)
def test_a_hundred_runs_agree_with_another_implementation(shared, batch):
    chosen, _, items, annotators = real(shared, batch)
    votes, n = np.bincount(items - items.min(), chosen), np.bincount(items - items.min())
    ways = {
        "one_stay": (Strategy("one"), "stays"),
        "one_first": (Strategy("one"), "first"),
        "max3_as_released": (Strategy("max_three", counting=RELEASED[batch]), "stays"),
        "max3_correct": (Strategy("max_three"), "stays"),
    }
    for delta, row in GOLDEN["hundred_runs"][batch].items():
        rule = hoeffding_boundaries(500, delta=float(delta))
        for name, (strategy, reading) in ways.items():
            made = choice.resampled_effort(votes, n, strategy, rule=rule, reading=reading, runs=2000, rng=rng(5))
            found = choice.effort_summary(made, mode="paper", rng=rng())
            spread = float(np.std(made.n_labels[made.n_requests > 0]))
            assert abs(found.estimate - row[name]) <= max(0.05 * row[name], 4 * spread / 10), (delta, name)
    wanted = GOLDEN["most_active"][batch]
    assert np.sort(np.unique(annotators, return_counts=True)[1])[::-1][:5].tolist() == wanted["top5_labels"]
    assert len(np.unique(annotators)) == wanted["workers"] and len(chosen) == wanted["labels"]


@pytest.mark.shared
def test_the_miscount_makes_the_easy_comparison_a_third_dearer(shared):
    chosen, _, items, _ = real(shared, "v1_vs_cga")
    votes, n = np.bincount(items, chosen), np.bincount(items)
    rule = hoeffding_boundaries(500, delta=0.01)
    released, true = (
        choice.resampled_effort(
            votes, n, Strategy("max_three", counting=counting), rule=rule, reading="stays", runs=200, rng=rng()
        )
        for counting in ("unless_both_b", "on_disagreement")
    )
    # The published 30 [30-30] beside what was needed, from the same draws.
    assert set(released.n_labels.tolist()) == {30}
    assert abs(true.n_labels.mean() - 20.4) < 0.2
    assert np.array_equal(released.n_requests, true.n_requests)


def test_a_repetition_is_equivalent_at_the_level_that_was_asked():
    draw, who = np.random.default_rng(2), np.repeat(np.arange(40), 10)
    for level in (0.95, 0.9):
        found = choice.repetition_difference(draw.integers(0, 2, 400), who % 2, who, margin=0.2, level=level)
        (tost,) = found.sensitivity
        assert (
            tost.settings["significance"] == pytest.approx(1 - level)
            and tost.analysis == "choice.repetition.equivalence"
        )
        assert tost.interval.level == pytest.approx(2 * level - 1) and tost.test.df == found.test.df
        assert (tost.detail["low_bound"], tost.detail["high_bound"]) == (-0.2, 0.2)
