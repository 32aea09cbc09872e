import csv
import itertools
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from statsmodels.stats import inter_rater

from analysis.stats import agreement
from analysis.stats.agreement import _alpha, _counts
from analysis.stats.results import plain
from tests.analysis.stats.draws import rng
from tests.analysis.stats.golden import golden

GOLDEN_ALL = golden("agreement")
GOLDEN = GOLDEN_ALL["four_coders"]


def four_coders():
    table = np.array(GOLDEN["matrix"], float)
    return agreement.count_table(np.tile(np.arange(table.shape[1]), len(table)), table.ravel())


def by_pairs(counts, values, distance):
    """Alpha as the definition has it: every ordered pair of ratings, one at a time."""
    ratings = [np.repeat(values, row.astype(int)) for row in counts if row.sum() > 1]
    everything = np.concatenate(ratings)
    n = len(everything)
    observed = sum(
        distance(a, b) / (len(unit) - 1)
        for unit in ratings
        for i, a in enumerate(unit)
        for j, b in enumerate(unit)
        if i != j
    )
    expected = sum(distance(a, b) for i, a in enumerate(everything) for j, b in enumerate(everything) if i != j)
    return 1 - (observed / n) / (expected / (n * (n - 1)))


@pytest.mark.parametrize("level", agreement.LEVELS)
def test_alpha_agrees_with_the_reference(level):
    counts, values = four_coders()
    result = agreement.krippendorff_alpha(counts, values, level_of_measurement=level, rng=rng())
    assert_allclose(result.estimate, GOLDEN[level], atol=1e-9)
    assert (result.n, result.n_rows, result.detail["n_unpairable"]) == (11, 40, 1)
    assert result.interval.low < result.estimate < result.interval.high <= 1


@pytest.mark.parametrize("seed", range(3))
def test_alpha_agrees_with_the_definition(seed):
    draw = rng(seed)
    counts = draw.multinomial(4, [0.3, 0.3, 0.2, 0.2], size=12).astype(float)
    counts[0] = [1, 0, 0, 0]
    values = np.array([0.0, 1.0, 2.5, 7.0])
    marginal = counts[counts.sum(axis=1) > 1].sum(axis=0)
    ranks = dict(zip(values, np.cumsum(marginal) - marginal / 2, strict=True))
    distances = {
        "nominal": lambda a, b: float(a != b),
        "interval": lambda a, b: (a - b) ** 2,
        "ratio": lambda a, b: ((a - b) / (a + b)) ** 2 if a + b else 0.0,
        "ordinal": lambda a, b: (ranks[a] - ranks[b]) ** 2,
    }
    for level, distance in distances.items():
        found = agreement.krippendorff_alpha(counts, values, level_of_measurement=level, rng=rng(), resamples=9)
        assert_allclose(found.estimate, by_pairs(counts, values, distance), atol=1e-10)


@pytest.mark.parametrize("level", agreement.LEVELS)
def test_resampling_counts_is_resampling_units(level):
    counts, values = four_coders()
    usable = counts[counts.sum(axis=1) > 1]
    chosen = rng(5).integers(0, len(usable), len(usable))
    patterns, weights = _counts.patterns_of(usable)
    drawn = np.array([[sum(np.array_equal(usable[c], p) for c in chosen) for p in patterns]], float)
    assert weights.sum() == len(usable)
    direct = agreement.krippendorff_alpha(usable[chosen], values, level_of_measurement=level, rng=rng(), resamples=9)
    distances, _ = _alpha._disagreement(values, len(values), level, None)
    assert_allclose(_alpha._alphas(patterns, drawn, distances)[0], direct.estimate, atol=1e-10)


def test_units_that_do_not_vary_by_themselves_are_resampled_together():
    """Every unit twice says no more than once: an interval over all of them would be 1 / sqrt(2) as wide."""
    counts = rng(3).multinomial(3, [0.3, 0.3, 0.4], size=60)
    common = {"level_of_measurement": "ordinal", "resamples": 9999, "rng": rng(4)}
    once, twice = (
        agreement.krippendorff_alpha(table, [1, 2, 3], **common) for table in (counts, np.repeat(counts, 2, 0))
    )
    together = agreement.krippendorff_alpha(
        np.repeat(counts, 2, 0), [1, 2, 3], clusters=np.repeat(np.arange(60), 2), cluster="pair", **common
    )
    assert together.estimate == twice.estimate and (together.n, together.n_clusters) == (120, 60)
    assert together.settings["resampled"] == "pair" and "resampled" not in once.settings
    width, narrow, held = (found.interval.high - found.interval.low for found in (once, twice, together))
    assert_allclose([narrow / width, held / width], [0.5**0.5, 1], rtol=0.05)
    alone = agreement.krippendorff_alpha(
        [[2, 1], [1, 2]], [1, 2], level_of_measurement="nominal", clusters=["p", "p"], cluster="pair", rng=rng()
    )
    assert (alone.status, alone.reason, alone.n) == ("n_lt_2", "one pair has no spread", 2)


def test_clusters_of_units_with_one_rating_are_none():
    counts = np.array([[2, 0], [1, 1], [1, 0], [0, 1]])
    found = agreement.krippendorff_alpha(
        counts, [1, 2], level_of_measurement="nominal", clusters=["q", "p", "r", "p"], resamples=99, rng=rng()
    )
    assert (found.n, found.n_clusters, found.detail["n_unpairable"]) == (2, 2, 2)


def test_two_values_have_one_alpha_at_every_level():
    counts = rng(1).multinomial(5, [0.4, 0.6], size=20)
    found = {
        round(agreement.krippendorff_alpha(counts, [1, 2], level_of_measurement=level, rng=rng()).estimate, 9)
        for level in ("nominal", "ordinal", "interval")
    }
    assert len(found) == 1


def test_a_scale_of_a_hundred_and_one_points_is_no_trouble():
    units, values = np.repeat(np.arange(300), 3), rng(2).integers(0, 101, 900)
    counts, points = agreement.count_table(units, values)
    for level in agreement.LEVELS:
        result = agreement.krippendorff_alpha(counts, points, level_of_measurement=level, rng=rng(), resamples=199)
        assert abs(result.estimate) < 0.1


def test_one_value_or_nothing_pairable_is_not_identified():
    same = agreement.krippendorff_alpha([[3, 0], [2, 0]], [1, 2], level_of_measurement="nominal", rng=rng())
    assert (same.status, same.estimate, same.detail["percent_agreement"]) == ("not_identified", None, 1.0)
    single = agreement.krippendorff_alpha([[1, 0], [0, 1]], [1, 2], level_of_measurement="nominal", rng=rng())
    assert (single.status, single.n) == ("not_identified", 0)
    empty = agreement.krippendorff_alpha(np.empty((0, 2)), [1, 2], level_of_measurement="nominal", rng=rng())
    assert empty.status == "no_data"


def test_agreement_and_alpha_differ_under_prevalence():
    counts = np.array([[10, 0]] * 9 + [[9, 1]])
    result = agreement.krippendorff_alpha(counts, [0, 1], level_of_measurement="nominal", rng=rng())
    assert_allclose(result.detail["percent_agreement"], 0.98)
    assert result.estimate < 0.01


def test_bad_tables_are_named():
    for counts, values, level, word in (
        ([[1, 2]], [1, 2], "metric", "level_of_measurement"),
        ([[1, 2]], [1], "nominal", "values"),
        ([[1, -2]], [1, 2], "nominal", "counts"),
        ([[1, 2]], [2, 1], "nominal", "ascend"),
        ([[1, 2]], [-1, 1], "ratio", "negative"),
    ):
        with pytest.raises(ValueError, match=word):
            agreement.krippendorff_alpha(counts, values, level_of_measurement=level, rng=rng())


def test_row_order_of_units_changes_nothing():
    counts, values = four_coders()
    first, second = (
        agreement.krippendorff_alpha(table, values, level_of_measurement="ordinal", rng=rng())
        for table in (counts, counts[::-1])
    )
    assert first.interval == second.interval


def test_split_half_finds_the_reliability_that_was_put_in():
    draw = rng(3)
    truth, n_annotators = draw.normal(0, 1, 400), 10
    scores = truth + draw.normal(0, 2, (n_annotators, 400))
    wanted = 1 / (1 + 4 / n_annotators)
    result = agreement.split_half_reliability(scores, rng=rng())
    assert abs(result.estimate - wanted) < 0.06
    assert result.interval.low < wanted < result.interval.high
    assert (result.n, result.detail["n_annotators"]) == (400, 10)


def test_split_half_tolerates_missing_scores_and_an_odd_annotator():
    draw = rng(4)
    scores = draw.normal(0, 1, 60) + draw.normal(0, 0.5, (9, 60))
    scores[draw.random((9, 60)) < 0.4] = np.nan
    result = agreement.split_half_reliability(scores, rng=rng(), resamples=199)
    assert result.status == "ok" and 0.5 < result.estimate < 1


def test_split_half_of_noise_is_near_zero_and_needs_three_items():
    noise = rng(5).normal(0, 1, (20, 200))
    assert abs(agreement.split_half_reliability(noise, rng=rng(), resamples=99).estimate) < 0.3
    for scores, status in ((np.ones((4, 2)), "not_identified"), (np.ones((4, 9)), "not_identified")):
        assert agreement.split_half_reliability(scores, rng=rng()).status == status
    assert agreement.split_half_reliability(np.full((3, 3), np.nan), rng=rng()).status == "no_data"


@pytest.mark.parametrize("level", ["nominal", "interval", "ratio"])
def test_a_distance_of_ones_own_may_be_the_one_of_a_level(level):
    counts, values = four_coders()
    own = {
        "nominal": lambda a, b: float(a != b),
        "interval": lambda a, b: 0.01 * (a - b) ** 2,
        "ratio": lambda a, b: ((a - b) / (a + b)) ** 2,
    }[level]
    built_in = agreement.krippendorff_alpha(counts, values, level_of_measurement=level, rng=rng())
    for distance in (own, [[own(a, b) for b in values] for a in values]):
        found = agreement.krippendorff_alpha(counts, values, distance=distance, rng=rng())
        assert_allclose(found.estimate, built_in.estimate, atol=1e-12)
        assert_allclose(found.interval.low, built_in.interval.low, atol=1e-12)


def test_alpha_with_any_distance_agrees_with_the_reference_and_the_definition():
    case = GOLDEN_ALL["any_distance"]
    counts, distance = np.array(case["counts"]), np.array(case["distance"])
    found = agreement.krippendorff_alpha(counts, list("abcd"), distance=distance, rng=rng())
    assert_allclose(found.estimate, case["alpha"], atol=1e-9)
    assert_allclose(found.estimate, by_pairs(counts, np.arange(4), lambda a, b: distance[a, b]), atol=1e-10)
    # The unit of the distance says nothing, however small.
    tiny = agreement.krippendorff_alpha(counts, list("abcd"), distance=distance * 1e-15, rng=rng())
    assert_allclose(tiny.estimate, found.estimate, atol=1e-12)
    assert tiny.interval == found.interval


def test_bad_distances_are_named():
    counts = [[1, 1], [2, 0]]
    for given, word in (
        ({}, "exactly one"),
        ({"level_of_measurement": "nominal", "distance": np.eye(2)}, "exactly one"),
        ({"distance": 1 - np.eye(3)}, "distance: shape"),
        ({"distance": [[0, 1], [2, 0]]}, "not symmetric"),
        ({"distance": [[1, 1], [1, 0]]}, "at distance 0 from itself"),
        ({"distance": [[0, -1], [-1, 0]]}, "non-negative"),
        ({"distance": lambda a, b: np.nan}, "finite"),
    ):
        with pytest.raises(ValueError, match=word):
            agreement.krippendorff_alpha(counts, ["a", "b"], rng=rng(), **given)
    with pytest.raises(ValueError, match="values: 1 values"):
        agreement.krippendorff_alpha(counts, ["a"], distance=lambda a, b: 0.0, rng=rng())


def test_values_at_no_distance_are_not_identified():
    found = agreement.krippendorff_alpha([[1, 1], [0, 2]], ["a", "b"], distance=lambda a, b: 0.0, rng=rng())
    assert (found.status, found.reason) == ("not_identified", "no two ratings differ")


def test_equal_units_have_no_interval_of_no_width():
    one = agreement.krippendorff_alpha([[2, 1]], [1, 2], level_of_measurement="nominal", rng=rng())
    assert (one.status, one.interval) == ("n_lt_2", None)
    equal = agreement.krippendorff_alpha([[2, 1]] * 9, [1, 2], level_of_measurement="nominal", rng=rng())
    assert (equal.status, equal.interval) == ("zero_variance", None)
    perfect = agreement.fleiss_kappa([[3, 0], [0, 3]] * 9, rng=rng())
    assert (perfect.status, perfect.estimate, perfect.interval) == ("zero_variance", 1.0, None)


def test_fleiss_and_ac1_agree_with_the_reference():
    for case in GOLDEN_ALL["fleiss"]:
        kappa, ac1 = agreement.fleiss_kappa(case["M"], rng=rng()), agreement.gwet_ac1(case["M"], rng=rng())
        assert_allclose([kappa.estimate, ac1.estimate], [case["kappa"], case["gwet_ac1"]], atol=1e-9)
        assert_allclose(kappa.detail["percent_agreement"], case["P_bar"], atol=1e-12)
        assert_allclose(kappa.detail["expected_agreement"], case["Pe"], atol=1e-12)
    textbook = GOLDEN_ALL["fleiss_textbook"]
    assert_allclose(agreement.fleiss_kappa(textbook["counts"], rng=rng()).estimate, textbook["kappa"], atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_fleiss_with_equal_raters_agrees_with_statsmodels(seed):
    counts = rng(seed).multinomial(6, [0.5, 0.3, 0.2], size=25)
    found = agreement.fleiss_kappa(counts, rng=rng(), resamples=9)
    assert_allclose(found.estimate, inter_rater.fleiss_kappa(counts), atol=1e-12)


def ac1_by_hand(counts):
    """Gwet 2008 as it is written, one item and one category at a time."""
    items = [row for row in counts if sum(row) > 1]
    k, n = len(counts[0]), len(items)
    agreed = sum(sum(c * (c - 1) for c in row) / (sum(row) * (sum(row) - 1)) for row in items) / n
    shares = [sum(row[j] / sum(row) for row in items) / n for j in range(k)]
    chance = sum(p * (1 - p) for p in shares) / (k - 1)
    return (agreed - chance) / (1 - chance)


def test_unequal_raters_weigh_items_alike_and_single_ratings_are_left_out():
    draw = rng(4)
    counts = np.array([draw.multinomial(m, [0.6, 0.3, 0.1]) for m in draw.integers(1, 7, 40)])
    found, ac1 = (call(counts, rng=rng()) for call in (agreement.fleiss_kappa, agreement.gwet_ac1))
    pairable = counts[counts.sum(axis=1) > 1]
    assert (found.n, found.detail["n_unpairable"]) == (len(pairable), 40 - len(pairable))
    assert_allclose(found.detail["prevalence"], (pairable / pairable.sum(axis=1, keepdims=True)).mean(axis=0))
    assert_allclose(ac1.estimate, ac1_by_hand(counts.tolist()), atol=1e-12)
    without = agreement.fleiss_kappa(pairable, rng=rng())
    assert (without.estimate, without.interval) == (found.estimate, found.interval)


def test_the_interval_of_kappa_is_that_of_resampled_items():
    counts = rng(6).multinomial(5, [0.5, 0.5], size=60)
    found = agreement.fleiss_kappa(counts, rng=rng(), resamples=4000)
    draw = rng(7)
    by_rows = [inter_rater.fleiss_kappa(counts[draw.integers(0, 60, 60)]) for _ in range(1500)]
    assert_allclose([found.interval.low, found.interval.high], np.quantile(by_rows, [0.025, 0.975]), atol=0.02)


def test_a_category_that_nobody_chose_changes_ac1_and_not_kappa():
    two, three = [[3, 0], [1, 2], [0, 3]], [[3, 0, 0], [1, 2, 0], [0, 3, 0]]
    kappas = [agreement.fleiss_kappa(table, rng=rng()).estimate for table in (two, three)]
    assert kappas[0] == pytest.approx(kappas[1])
    assert agreement.gwet_ac1(two, rng=rng()).estimate < agreement.gwet_ac1(three, rng=rng()).estimate


def test_kappa_edge_cases_are_statuses():
    constant = agreement.fleiss_kappa([[3, 0], [2, 0]], rng=rng())
    assert (constant.status, constant.detail["percent_agreement"]) == ("not_identified", 1.0)
    # AC1 is defined there; without anything to resample it has no interval.
    assert agreement.gwet_ac1([[3, 0], [2, 0]], rng=rng()).estimate == 1.0
    for call in (agreement.fleiss_kappa, agreement.gwet_ac1):
        assert call(np.empty((0, 2)), rng=rng()).status == "no_data"
        assert call([[0, 0]], rng=rng()).status == "no_data"
        assert call([[1, 0], [0, 1]], rng=rng()).status == "not_identified"
        assert call([[2], [3]], rng=rng()).status == "not_identified"
        assert call([[1, 1]], rng=rng()).status == "n_lt_2"
        with pytest.raises(ValueError, match="counts"):
            call([[0.5, 1]], rng=rng())


def test_a_table_of_categories_counts_what_was_given():
    table, names = agreement.category_table(["i", "j", "i", "k"], ["yes", None, "no", None], categories=["no", "yes"])
    assert (table.tolist(), names) == ([[1, 1], [0, 0], [0, 0]], ("no", "yes"))
    with pytest.raises(ValueError, match="labels: row 1 is 'maybe'"):
        agreement.category_table([1, 2], ["yes", "maybe"], categories=["no", "yes"])
    with pytest.raises(ValueError, match="stands twice"):
        agreement.category_table([1], ["a"], categories=["a", "a"])
    with pytest.raises(ValueError, match="categories: needed"):
        agreement.category_table([1], [frozenset()])


def choices(name, shared):
    with (shared / name).open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [np.array([row[key] for row in rows]) for key in ("pair_id", "worker", "choice", "chosen_model")]


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "kappas", "alphas", "agreed", "share", "n_workers"),
    [
        # The paper prints .69 and .27, coded by place.
        ("dhe_v1_vs_cga.csv", (0.6858, 0.2798), (0.6858, 0.2799), 0.843, 0.8754, 69),
        ("dhe_v2_vs_cga_r1.csv", (0.2734, 0.2458), (0.2736, 0.2459), 0.637, 0.5974, 73),
    ],
)
def test_real_choices_have_two_kappas_at_one_agreement(shared, name, kappas, alphas, agreed, share, n_workers):
    rows = choices(name, shared)
    record = agreement.position_and_system(*rows, rng=rng())
    assert_allclose([record.kappa_position.estimate, record.kappa_system.estimate], kappas, atol=5e-5)
    assert_allclose(record.percent_agreement_position, record.percent_agreement_system, atol=1e-12)
    assert_allclose(record.percent_agreement_position, agreed, atol=5e-4)
    assert_allclose(record.prevalence_system["CGA"], share, atol=1e-9)
    assert record.ac1_system.estimate > record.kappa_system.estimate
    assert (record.n_items, record.n_annotators, record.n_rows, record.n_unpairable) == (500, n_workers, 5000, 0)
    for labels, alpha in zip(rows[2:], alphas, strict=True):
        counts, _ = agreement.category_table(rows[0], labels)
        found = agreement.krippendorff_alpha(counts, [0, 1], level_of_measurement="nominal", rng=rng())
        assert_allclose(found.estimate, alpha, atol=5e-5)
    order = rng(1).permutation(5000)
    again = agreement.position_and_system(*(column[order] for column in rows), rng=rng())
    assert plain(again) == plain(record)


def test_position_and_system_are_one_record_of_plain_json():
    draw = rng(2)
    items, people = np.repeat(np.arange(40), 4), np.tile(np.arange(4), 40)
    systems = np.where(draw.random(160) < 0.9, "x", "y").astype(object)
    side = np.repeat(draw.integers(0, 2, 40), 4)
    places = np.where((systems == "x") == (side == 0), "A", "B").astype(object)
    systems[7] = places[7] = None
    record = agreement.position_and_system(items, people, places, systems, rng=rng(), resamples=99)
    assert_allclose(record.percent_agreement_position, record.percent_agreement_system, atol=1e-12)
    assert record.kappa_position.estimate > record.kappa_system.estimate + 0.3
    assert record.kappa_position.n_rows == 159
    assert '"fleiss_kappa.by_system"' in json.dumps(plain(record), allow_nan=False)
    assert set(record.prevalence_position) == {"A", "B"} and sum(record.prevalence_system.values()) == pytest.approx(1)


def test_position_and_system_refuse_what_cannot_be():
    call = agreement.position_and_system
    with pytest.raises(ValueError, match="annotators: row 2 judges an item"):
        call([1, 1, 1], ["a", "b", "a"], list("ABA"), list("xyx"), rng=rng())
    with pytest.raises(ValueError, match="systems: row 1 has a place without a system"):
        call([1, 1], ["a", "b"], ["A", "B"], ["x", None], rng=rng())
    with pytest.raises(ValueError, match="systems: 1 choices where positions has 2"):
        call([1, 1], ["a", "b"], ["A", "B"], ["x"], rng=rng())
    nothing = call([], [], [], [], rng=rng())
    assert (nothing.n_items, nothing.kappa_system.status) == (0, "no_data")
    assert (nothing.percent_agreement_position, nothing.prevalence_system) == (None, {})


@pytest.mark.parametrize("case", GOLDEN_ALL["icc"], ids=["shrout_fleiss", "random"])
def test_intraclass_correlations_agree_with_the_reference(case):
    for one in case["expected"]:
        found = agreement.intraclass_correlation(case["scores"], kind=one["kind"], average=one["average"])
        assert_allclose(
            [found.estimate, found.test.statistic, found.pvalue], [one["estimate"], one["F"], one["p"]], rtol=1e-9
        )
        # The reference prints its intervals to two decimals.
        assert_allclose([found.interval.low, found.interval.high], one["ci95_two_decimals"], atol=0.00501)


def test_an_intraclass_interval_holds_its_estimate_or_is_none():
    # Small tables of points, most of them without any agreement: ends that turn round, and divisions by 0.
    n_intervals = n_none = 0
    for seed in range(250):
        draw = rng(seed)
        scores = draw.integers(1, 6, (int(draw.integers(2, 5)), int(draw.integers(2, 6)))).astype(float)
        for kind, average in itertools.product(agreement.ICC_KINDS, (False, True)):
            found = agreement.intraclass_correlation(scores, kind=kind, average=average, level=0.9)
            if found.interval is None:
                n_none += found.status == "ok"
                continue
            n_intervals += 1
            assert found.interval.low <= found.estimate <= found.interval.high, (seed, kind, average)
    assert n_intervals > 1000 and n_none > 0


def test_one_way_intraclass_correlation_takes_unequal_annotators():
    draw = rng(3)
    scores = draw.normal(0, 1, 30) + draw.normal(0, 1, (5, 30))
    full = agreement.intraclass_correlation(scores, kind="one_way")
    assert full.interval.method == "f" and full.detail["raters_per_item"] == 5
    for item, gone in enumerate(draw.integers(0, 4, 30)):
        scores[draw.permutation(5)[:gone], item] = np.nan
    scores[:, 0], scores[1:, 1] = np.nan, np.nan
    scores[0, 1] = 1.0
    found = agreement.intraclass_correlation(scores, kind="one_way")
    assert (found.n, found.detail["n_incomplete"], found.interval.method) == (28, 1, "f_approximate")
    columns = [column[~np.isnan(column)] for column in scores.T[2:]]
    sizes = np.array([len(column) for column in columns])
    everything = np.concatenate(columns)
    between = sum(len(c) * (c.mean() - everything.mean()) ** 2 for c in columns) / 27
    within = sum(((c - c.mean()) ** 2).sum() for c in columns) / (len(everything) - 28)
    k0 = (sizes.sum() - (sizes**2).sum() / sizes.sum()) / 27
    assert_allclose(found.estimate, (between - within) / (between + (k0 - 1) * within), rtol=1e-9)
    # The two-way kinds keep complete items only.
    whole = scores[:, ~np.isnan(scores).any(axis=0)]
    for kind in ("absolute", "consistency"):
        left = agreement.intraclass_correlation(scores, kind=kind)
        assert_allclose(left.estimate, agreement.intraclass_correlation(whole, kind=kind).estimate, rtol=1e-12)
        assert left.n == whole.shape[1] and left.detail["n_incomplete"] == 29 - whole.shape[1]


def test_a_stricter_annotator_costs_absolute_agreement_and_no_consistency():
    draw = rng(5)
    scores = draw.normal(50, 10, 40) + draw.normal(0, 2, (3, 40))
    strict = scores - np.array([[0], [0], [15]])
    same, lower = (agreement.intraclass_correlation(s, kind="consistency").estimate for s in (scores, strict))
    assert_allclose(same, lower, rtol=1e-9)
    assert agreement.intraclass_correlation(strict).estimate < agreement.intraclass_correlation(scores).estimate - 0.2
    single, mean = (agreement.intraclass_correlation(strict, average=average) for average in (False, True))
    assert_allclose(mean.estimate, 3 * single.estimate / (1 + 2 * single.estimate), rtol=1e-9)
    assert_allclose(mean.interval.low, 3 * single.interval.low / (1 + 2 * single.interval.low), rtol=1e-9)
    for average, kind in itertools.product((False, True), agreement.ICC_KINDS):
        first = agreement.intraclass_correlation(strict, kind=kind, average=average)
        moved = agreement.intraclass_correlation(3 * strict[::-1] + 1000, kind=kind, average=average)
        assert_allclose(
            [first.estimate, first.interval.low, first.pvalue], [moved.estimate, moved.interval.low, moved.pvalue],
            rtol=1e-7,
        )  # fmt: skip


def test_intraclass_edge_cases_are_statuses():
    call = agreement.intraclass_correlation
    assert call(np.empty((0, 0))).status == "no_data"
    assert call([[np.nan, np.nan]]).status == "no_data"
    assert call([[1, 2, 3]]).status == "not_identified"
    assert call([[1], [2]]).status == "not_identified"
    for kind in agreement.ICC_KINDS:
        assert call(np.full((3, 4), 7.0), kind=kind).status == "zero_variance"
        perfect = call([[1, 2, 3], [1, 2, 3]], kind=kind)
        assert (perfect.status, perfect.estimate, perfect.interval) == ("zero_variance", 1.0, None)
    # Annotators who differ by a constant: consistent, not in absolute agreement.
    shifted = [[1, 2, 3, 5], [3, 4, 5, 7]]
    assert call(shifted, kind="consistency").estimate == 1
    assert 0 < call(shifted).estimate < 1 and call(shifted).interval.low < call(shifted).estimate
    with pytest.raises(ValueError, match="kind"):
        call([[1, 2], [2, 1]], kind="two_way")


@pytest.mark.slow
def test_intervals_of_the_intraclass_correlation_cover():
    draw = rng(0)
    for kind in agreement.ICC_KINDS:
        wanted = 1 / 1.75 if kind == "consistency" else 0.5
        covered = 0
        for _ in range(1500):
            scores = draw.normal(0, 1, 25) + draw.normal(0, 0.5, (6, 1)) + draw.normal(0, np.sqrt(0.75), (6, 25))
            if kind == "one_way":
                scores = draw.normal(0, 1, 25) + draw.normal(0, 1, (6, 25))
            found = agreement.intraclass_correlation(scores, kind=kind).interval
            covered += found.low <= wanted <= found.high
        assert 0.93 < covered / 1500 < 0.97, kind


@pytest.mark.parametrize("n, k, values", [(2, 2, 9), (5, 3, 9), (12, 6, 3), (40, 4, 2)])
def test_concordance_agrees_with_scipys_friedman_test(n, k, values):
    table = rng(n).integers(0, values, (n, k)).astype(float) + np.arange(k) / 2
    found = agreement.concordance(table)
    expected = stats.friedmanchisquare(*table.T) if k > 2 else None
    if expected:
        assert_allclose([found.test.statistic, found.test.pvalue], [expected.statistic, expected.pvalue], rtol=1e-10)
        assert found.test.df == k - 1
    assert_allclose(found.estimate, found.test.statistic / (n * (k - 1)))
    assert found.n == n and found.n_rows == n * k


def test_concordance_is_one_where_all_agree_and_the_mean_of_rank_correlations_where_nothing_ties():
    assert agreement.concordance([[1, 2, 5]] * 4).estimate == pytest.approx(1)
    table = rng(3).permuted(np.tile(np.arange(6.0), (7, 1)), axis=1)
    pairs = [stats.spearmanr(a, b).statistic for a, b in itertools.combinations(table, 2)]
    assert_allclose(agreement.concordance(table).detail["mean_rank_correlation"], np.mean(pairs))
    ties = agreement.concordance([[1, 1, 2], [1, 1, 3], [2, 2, 4]])
    assert ties.estimate == pytest.approx(1), "three who tie the same two agree perfectly"


def test_concordance_without_two_complete_rankings_says_so():
    for table, status in (
        (np.empty((0, 3)), "no_data"), ([[1, 2, 3]], "n_lt_2"), ([[1], [2]], "n_lt_2"), ([[1, 1], [2, 2]], "zero_variance"),
    ):  # fmt: skip
        found = agreement.concordance(table)
        assert (found.status, found.estimate) == (status, None) and found.reason
    gaps = agreement.concordance([[1, 2, np.nan], [1, 2, 3], [1, 2, 3]])
    assert gaps.n == 2 and gaps.detail["n_incomplete"] == 1


@pytest.mark.parametrize(
    ("n_units", "n_values", "most"), [(2000, 3, 4), (30, 6, 9), (30, 30, 9)], ids=["counted", "sorted", "rows"]
)
def test_patterns_are_the_distinct_rows_whichever_way_they_are_found(n_units, n_values, most):
    table = np.random.default_rng(4).integers(0, most + 1, (n_units, n_values)).astype(float)
    table[1] = table[0]
    patterns, weights = _counts.patterns_of(table)
    rows, times = np.unique(table, axis=0, return_counts=True)
    order = np.lexsort(patterns.T[::-1])
    assert np.array_equal(patterns[order], rows) and np.array_equal(weights[order], times)
