import itertools
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from statsmodels.stats import inter_rater

from analysis.stats import agreement, coding
from tests.analysis.stats.draws import rng
from tests.analysis.stats.golden import golden

GOLDEN = golden("coding")
SETS = [None if found is None else set(found) for found in GOLDEN["sets"]]
CODEBOOK = {"form": ["grammar", "genre"], "content": ["factuality", "repetition"], "null": ["vague"]}
LABELS = ["grammar", "genre", "factuality", "repetition", "vague"]


def two_coders(seed, n=80, k=4):
    draw = rng(seed)
    first = draw.integers(0, k, n)
    return first, np.where(draw.random(n) < 0.6, first, draw.integers(0, k, n))


@pytest.mark.parametrize("case", GOLDEN["kappa"], ids=lambda case: str(case["weights"]))
def test_cohen_agrees_with_the_reference(case):
    found = coding.cohen_kappa(GOLDEN["first"], GOLDEN["second"], weights=case["weights"])
    assert_allclose(found.estimate, case["kappa"], atol=1e-9)
    assert (found.n, found.n_rows, found.test) == (60, 120, None)


@pytest.mark.parametrize(("weights", "name"), [(None, None), ("linear", "linear"), ("quadratic", "quadratic")])
@pytest.mark.parametrize("seed", range(3))
def test_cohens_standard_error_agrees_with_statsmodels(seed, weights, name):
    first, second = two_coders(seed)
    table = np.zeros((4, 4))
    np.add.at(table, (first, second), 1)
    reference = inter_rater.cohens_kappa(table, wt=name)
    found = coding.cohen_kappa(first, second, weights=weights)
    assert_allclose([found.estimate, found.detail["se"]], [reference.kappa, reference.std_kappa], rtol=1e-9)
    assert -1 < found.interval.low < found.estimate < found.interval.high < 1


def test_a_matrix_of_disagreements_may_be_given():
    first, second = two_coders(5)
    apart = np.abs(np.subtract.outer(np.arange(4), np.arange(4))).astype(float)
    for weights, matrix in (("linear", apart), ("quadratic", 7 * apart**2), (None, (apart > 0) * 1.0)):
        named, given = (coding.cohen_kappa(first, second, weights=w) for w in (weights, matrix))
        assert_allclose([named.estimate, named.interval.low], [given.estimate, given.interval.low], rtol=1e-12)
    for matrix in (np.zeros((4, 4)), np.ones((4, 4)), -apart, apart[:3, :3]):
        with pytest.raises(ValueError, match="weights"):
            coding.cohen_kappa(first, second, weights=matrix)


def test_cohen_is_blind_to_the_names_of_categories_and_to_who_comes_first():
    first, second = two_coders(6)
    names = np.array(["w", "m", "a", "z"])
    plain = coding.cohen_kappa(first, second)
    for other in (
        coding.cohen_kappa(second, first),
        coding.cohen_kappa(names[first], names[second]),
        coding.cohen_kappa(first[::-1], second[::-1]),
    ):
        assert_allclose([plain.estimate, plain.interval.low], [other.estimate, other.interval.low], rtol=1e-9)
    # Weights know the order, so text needs it.
    ordered = coding.cohen_kappa(names[first], names[second], weights="linear", categories=names)
    assert_allclose(ordered.estimate, coding.cohen_kappa(first, second, weights="linear").estimate, rtol=1e-12)
    with pytest.raises(ValueError, match="categories: weights need"):
        coding.cohen_kappa(names[first], names[second], weights="linear")


def test_cohen_edge_cases_are_statuses():
    call = coding.cohen_kappa
    assert call([], []).status == "no_data"
    missing = call([1, None, 2], [1, 2, None])
    assert (missing.status, missing.n, missing.detail["n_incomplete"]) == ("not_identified", 1, 2)
    constant = call([1, 1, 1], [1, 1, 1], categories=[1, 2])
    assert (constant.status, constant.detail["percent_agreement"]) == ("not_identified", 1.0)
    assert call([1], [2]).status == "n_lt_2"
    perfect = call([1, 2, 1, 2], [1, 2, 1, 2])
    assert (perfect.status, perfect.estimate, perfect.interval) == ("zero_variance", 1.0, None)
    reversed_ = call([1, 2, 1, 2], [2, 1, 2, 1])
    assert (reversed_.status, reversed_.estimate) == ("zero_variance", -1.0)
    # One coder constant: no agreement beyond chance, and a kappa of 0.
    assert call([1, 1, 1, 1], [1, 2, 1, 2]).estimate == 0
    for arguments, word in (
        (([1], [1, 2]), "second: 2 codes"),
        (([1, 3], [1, 2], [1, 2]), "first and second: row 1 is 3"),
    ):
        with pytest.raises(ValueError, match=word):
            call(arguments[0], arguments[1], categories=arguments[2] if len(arguments) == 3 else None)
    with pytest.raises(ValueError, match="weights: 'cubic'"):
        call([1, 2], [2, 1], weights="cubic")


def test_distances_of_sets_are_what_they_are_called():
    a, b, c = {"x", "y"}, {"x"}, {"y", "z"}
    assert coding.masi_distance(a, b) == pytest.approx(1 - 0.5 * 2 / 3)
    assert coding.masi_distance(a, c) == pytest.approx(1 - 1 / 3 * 1 / 3)
    distance = coding.masi_distance
    assert (distance(set(), set()), distance(a, a), distance(a, {"z"}), distance(a, set())) == (0, 0, 1, 1)
    assert distance(a, c) == distance(c, a)


def test_alpha_of_label_sets_agrees_with_the_reference():
    found = coding.label_set_alpha(GOLDEN["units"], GOLDEN["coders"], SETS, rng=rng())
    assert_allclose(found.estimate, GOLDEN["alpha"]["masi"], atol=1e-9)
    assert found.detail["n_not_coded"] == 1
    assert found.detail["n_empty"] == sum(found == set() for found in SETS)
    assert found.interval.low < found.estimate < found.interval.high
    json.dumps(found.as_dict(), allow_nan=False)


def test_no_label_applies_is_an_answer_and_not_coded_is_none():
    units, coders = [1, 1, 2, 2, 3, 3], list("ababab")
    empty = [{"x"}, {"x"}, {"y"}, {"y"}, set(), set()]
    missing = [{"x"}, {"x"}, {"y"}, {"y"}, None, None]
    differ = [{"x"}, {"x"}, {"y"}, {"y"}, set(), {"x"}]
    found = [coding.label_set_alpha(units, coders, sets, rng=rng()) for sets in (empty, missing, differ)]
    assert [one.n for one in found] == [3, 2, 3]
    assert found[2].estimate < found[0].estimate == 1
    labels = [coding.kappa_by_label(units, coders, sets, ["x", "y"], rng=rng())[0] for sets in (empty, missing, differ)]
    assert [one.detail["prevalence"] for one in labels] == [1 / 3, 1 / 2, 1 / 2]
    assert [one.n for one in labels] == [3, 2, 3]
    half = coding.kappa_by_label(units, coders, [*empty[:5], None], ["x", "y"], rng=rng())[0]
    assert (half.n, half.detail["n_incomplete"], half.detail["prevalence"]) == (2, 1, 1 / 2)


def test_sets_of_one_label_have_the_nominal_alpha():
    draw = rng(2)
    units, coders = np.repeat(np.arange(30), 3), np.tile(list("abc"), 30)
    codes = draw.integers(0, 3, 90)
    counts, values = agreement.value_counts_by_unit(units, codes)
    nominal = agreement.krippendorff_alpha(counts, values, level_of_measurement="nominal", rng=rng())
    found = coding.label_set_alpha(units, coders, [{f"label {code}"} for code in codes], rng=rng())
    assert_allclose(found.estimate, nominal.estimate, atol=1e-12)


def test_each_label_of_two_coders_has_cohens_kappa():
    rows = [(u, c, s) for u, c, s in zip(GOLDEN["units"], GOLDEN["coders"], SETS, strict=True) if c in "ab"]
    found = coding.kappa_by_label(*map(list, zip(*rows, strict=True)), GOLDEN["labels"], rng=rng())
    assert [one.settings["label"] for one in found] == GOLDEN["labels"]
    for one in found:
        assert_allclose(one.estimate, GOLDEN["per_label"][one.settings["label"]], atol=1e-9)
        assert one.estimand == "Cohen's kappa" and one.n == 25
    pairs = [(a, b) for (_, c, a), (_, d, b) in itertools.pairwise(rows) if (c, d) == ("a", "b") and None not in (a, b)]
    both = sum("grammar" in a and "grammar" in b for a, b in pairs)
    one_only = sum(("grammar" in a) != ("grammar" in b) for a, b in pairs)
    assert_allclose(found[0].detail["positive_agreement"], 2 * both / (2 * both + one_only))


def test_each_label_of_coders_who_take_turns_has_fleiss_kappa():
    found = coding.kappa_by_label(GOLDEN["units"], GOLDEN["coders"], SETS, GOLDEN["labels"], rng=rng())
    table = np.zeros((25, 2))
    for unit, labels in zip(GOLDEN["units"], SETS, strict=True):
        if labels is not None:
            table[unit, int("grammar" in labels)] += 1
    wanted = agreement.fleiss_kappa(table, rng=rng())
    assert_allclose(found[0].estimate, wanted.estimate, atol=1e-12)
    assert found[0].estimand == "Fleiss' kappa"
    pairable = table[table.sum(axis=1) > 1]
    assert_allclose(found[0].detail["prevalence"], pairable[:, 1].sum() / pairable.sum())


def test_rare_and_unused_labels_say_so():
    units, coders = np.repeat(np.arange(40), 2), np.tile(["a", "b"], 40)
    sets = [{"common"} if row // 2 % 2 else set() for row in range(80)]
    sets[0] = sets[1] = sets[4] = {"rare"}
    common, rare, unused = coding.kappa_by_label(units, coders, sets, ["common", "rare", "unused"], rng=rng())
    assert not common.has_warning("rare_label")
    assert rare.has_warning("rare_label") and 0 < rare.estimate < 1
    assert (unused.status, unused.detail["percent_agreement"]) == ("not_identified", 1.0)
    assert "positive_agreement" not in unused.detail


def test_bad_codings_are_named():
    call = coding.kappa_by_label
    with pytest.raises(ValueError, match="label_sets: row 1 is text"):
        call([1, 1], ["a", "b"], [{"x"}, "x"], ["x"], rng=rng())
    with pytest.raises(ValueError, match="coders: row 2 codes a unit"):
        call([1, 1, 1], ["a", "b", "a"], [{"x"}] * 3, ["x"], rng=rng())
    with pytest.raises(ValueError, match="label_sets: row 1 has 'y', which is not"):
        call([1, 1], ["a", "b"], [{"x"}, {"y"}], ["x"], rng=rng())
    with pytest.raises(ValueError, match="labels: one of them"):
        call([1], ["a"], [{"x"}], ["x", "x"], rng=rng())
    with pytest.raises(ValueError, match="rule"):
        coding.merged_label_counts_of_coded_units([1], ["a"], [{"x"}], ["x"], rule="majority")
    assert call([], [], [], ["x"], rng=rng())[0].status == "no_data"
    assert coding.label_set_alpha([], [], [], rng=rng()).status == "no_data"


def test_the_rule_by_which_coders_are_merged_is_explicit():
    units, coders = [1, 1, 2, 2, 3, 3], list("ababab")
    sets = [{"x"}, {"x", "y"}, {"y"}, None, None, None]
    wanted = {"union": [[1, 1], [0, 1]], "intersection": [[1, 0], [0, 1]], "both_counted": [[2, 1], [0, 1]]}
    assert set(wanted) == set(coding.MERGE_RULES)
    for rule, counts in wanted.items():
        assert coding.merged_label_counts_of_coded_units(units, coders, sets, ["x", "y"], rule=rule).tolist() == counts


def test_shares_of_categories_are_of_labels_and_sum_to_one():
    counts = rng(3).integers(0, 3, (60, 5)).astype(float)
    counts[0] = [0, 0, 0, 0, 4]
    found = coding.label_shares_by_category(counts, LABELS, CODEBOOK, excluded=["null"], rng=rng(), resamples=999)
    assert [one.settings["category"] for one in found] == ["form", "content"]
    assert_allclose(found[0].estimate, counts[:, :2].sum() / counts[:, :4].sum())
    assert_allclose(sum(one.estimate for one in found), 1)
    assert found[0].n_rows == counts[:, :4].sum() and found[0].n == int((counts[:, :4].sum(axis=1) > 0).sum())
    everything = coding.label_shares_by_category(counts, LABELS, CODEBOOK, rng=rng(), resamples=999)
    assert len(everything) == 3 and everything[0].estimate < found[0].estimate
    # The interval is that of resampled comments, with all their labels.
    draw, kept = rng(4), counts[counts[:, :4].sum(axis=1) > 0]
    shares = []
    for _ in range(2000):
        drawn = kept[draw.integers(0, len(kept), len(kept))]
        shares.append(drawn[:, :2].sum() / drawn[:, :4].sum())
    assert_allclose([found[0].interval.low, found[0].interval.high], np.quantile(shares, [0.025, 0.975]), atol=0.02)


def test_conditions_differ_in_shares_with_an_interval():
    draw = rng(5)
    x = (draw.random((150, 5)) < [0.1, 0.1, 0.3, 0.2, 0.1]).astype(float)
    y = (draw.random((150, 5)) < [0.3, 0.2, 0.1, 0.1, 0.1]).astype(float)
    form, content = coding.category_share_differences(
        x, y, LABELS, CODEBOOK, excluded=["null"], rng=rng(), resamples=999
    )
    assert form.interval.high < 0 < content.interval.low
    assert_allclose(form.estimate, form.detail["share_x"] - form.detail["share_y"])
    assert_allclose(form.estimate + content.estimate, 0, atol=1e-12)
    back = coding.category_share_differences(y, x, LABELS, CODEBOOK, excluded=["null"], rng=rng(), resamples=999)
    assert_allclose(back[0].estimate, -form.estimate)


def test_shares_without_labels_or_without_variety_are_statuses():
    nothing = coding.label_shares_by_category(np.zeros((3, 5)), LABELS, CODEBOOK, rng=rng())
    assert {one.status for one in nothing} == {"no_data"}
    only_form = coding.label_shares_by_category([[1, 0, 0, 0, 0]] * 9, LABELS, CODEBOOK, rng=rng(), resamples=99)
    assert [(one.status, one.estimate, one.interval) for one in only_form[:2]] == [
        ("zero_variance", 1.0, None),
        ("zero_variance", 0.0, None),
    ]
    against = coding.category_share_differences(
        np.zeros((3, 5)), [[1, 0, 0, 0, 0]], LABELS, CODEBOOK, rng=rng(), resamples=99
    )
    assert {one.status for one in against} == {"no_data"}
    for labels, codebook, excluded, word in (
        (LABELS, {"form": ["grammar"]}, [], "codebook: label 'genre' is in 0"),
        (LABELS, {**CODEBOOK, "more": ["vague"]}, [], "is in 2"),
        (LABELS, CODEBOOK, ["other"], "excluded"),
        (LABELS[:3], CODEBOOK, [], "labels: 3 labels"),
    ):
        with pytest.raises(ValueError, match=word):
            coding.label_shares_by_category(np.ones((2, 5)), labels, codebook, excluded=excluded, rng=rng())


def test_the_transformed_interval_of_kappa_covers():
    # 150 comments, a label on a tenth of them, kappa .5: this interval covers .944.
    draw, p, kappa = rng(0), 0.1, 0.5
    both = p * p + kappa * p * (1 - p)
    covered = 0
    for _ in range(250):
        cells = draw.multinomial(150, [both, p - both, p - both, 1 - 2 * p + both])
        first, second = np.repeat([1, 1, 0, 0], cells), np.repeat([1, 0, 1, 0], cells)
        interval = coding.cohen_kappa(first, second).interval
        covered += interval is not None and interval.low <= kappa <= interval.high
    assert covered / 250 > 0.91
