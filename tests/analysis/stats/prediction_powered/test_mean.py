import json
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import clusters
from analysis.stats.judge_assisted import prediction_powered_differences, prediction_powered_mean
from analysis.stats.prediction_powered import combine, labelled_sample
from tests.analysis.stats.draws import rng
from tests.analysis.stats.golden import golden
from tests.analysis.stats.prediction_powered.worlds import rated_items

GOLDEN = golden("prediction_powered")


def mean_of(world, **options):
    return prediction_powered_mean(**world, **options)


def correlated(draw, n, big, correlation):
    """Human scores, normal with mean 0, of n items, and a judge of these and `big` further ones."""
    quality = draw.normal(0, 1, n + big)
    judge = correlation * quality + math.sqrt(1 - correlation**2) * draw.normal(0, 1, n + big)
    return {"values": quality[:n], "annotators": None, "items": np.arange(n), "judges": judge}


def test_a_declared_weight_gives_the_estimate_of_the_reference():
    case = GOLDEN["ppi"]
    judge = np.r_[case["f_labelled"], case["f_unlabelled"]]
    # The reference corrects by the mean of the unlabelled items, so its weight is smaller.
    weight = case["lam"] * len(judge) / len(case["f_unlabelled"])
    found = prediction_powered_mean(case["y"], None, range(6), judges=judge, weights=[weight])
    assert_allclose(found.combined.estimate, case["theta"])
    # The variances of the two parts have slightly different centres.
    assert_allclose(found.combined.detail["se"], case["se"], rtol=0.03)
    assert (found.weights, found.samples, found.combined.n, found.n_items) == ("declared", "items", 6, 16)


def test_the_estimate_is_that_of_brute_force():
    draw = rng(1)
    prompts = np.repeat(np.arange(60), 2)
    judge, labelled = draw.normal(0, 1, (120, 2)), draw.permutation(120)[:40]
    values, who = judge[labelled] @ [0.6, 0.2] + draw.normal(0, 0.4, 40), draw.integers(0, 9, 40)
    found = prediction_powered_mean(values, who, labelled, judges=judge, prompts=prompts)
    centred, row_prompts = judge - judge.mean(axis=0), prompts[labelled]
    q = np.full(40, 1 / 40)
    of_prompts = [row_prompts == p for p in range(60)]
    v = np.array([[*(q[r] @ centred[labelled[r]]), q[r].sum()] for r in of_prompts])
    u = np.array([q[r] @ values[r] for r in of_prompts])
    slopes = np.array([np.linalg.lstsq(np.delete(v, p, 0), np.delete(u, p))[0][:2] for p in range(60)])
    z = values - np.sum(slopes[row_prompts] * centred[labelled], axis=1)
    estimate = np.sum(q * z)
    assert_allclose(found.combined.estimate, estimate)

    def without(rows):
        return z[~rows].mean()

    mean_slope = q @ slopes[row_prompts]
    changes = []
    present = np.unique(row_prompts)
    for p in range(60):
        rows, own = row_prompts == p, prompts == p
        labels = math.sqrt((len(present) - 1) / len(present)) * (estimate - without(rows)) if rows.any() else 0.0
        judged = math.sqrt(59 / 60) * mean_slope @ (centred.mean(axis=0) - centred[~own].mean(axis=0))
        changes.append(labels + judged)
    by_people = sum((without(who == a) - estimate) ** 2 for a in np.unique(who)) * 8 / 9
    detail = found.combined.detail
    assert_allclose([detail["variance_items"], detail["variance_annotators"]], [np.sum(np.square(changes)), by_people])
    assert found.weights == "least squares"
    assert_allclose([use.weight for use in found.judges], mean_slope)


def test_the_first_number_is_the_headline_of_people_alone():
    world = rated_items(rng(2), sd_people=0.1)
    found = mean_of(world, bounds=(-9, 9), null=0.0)
    wanted = clusters.annotator_prompt_clustered_mean(
        world["values"], world["annotators"], world["items"], null=0.0, bounds=(-9, 9), analysis="x"
    )
    assert_allclose([found.human.estimate, found.human.pvalue], [wanted.estimate, wanted.pvalue])
    assert found.human.interval == wanted.interval
    assert found.combined.test.name == "prediction_powered_t"


def test_without_weight_the_combined_estimate_is_the_human_one():
    found = mean_of(rated_items(rng(3)), weights=[0.0])
    assert_allclose(found.combined.estimate, found.human.estimate)
    assert found.fallback == "the judges have no weight"
    assert (found.weights, found.saved.se_ratio, found.saved.labels_saved) == ("none", 1.0, 0.0)


def test_when_people_labelled_everything_judges_change_nothing():
    draw = rng(4)
    values = draw.normal(0, 1, 80)
    found = prediction_powered_mean(values, None, range(80), judges=values + draw.normal(0, 0.3, 80), weights=[0.8])
    assert_allclose(found.combined.estimate, values.mean())
    assert_allclose(found.combined.detail["se"], values.std(ddof=1) / math.sqrt(80), rtol=0.02)


@pytest.mark.parametrize("correlation", [0.3, 0.6, 0.8])
def test_the_standard_errors_ratio_is_that_of_the_theory(correlation):
    draw = rng(5)
    ratios = [mean_of(correlated(draw, 100, 1000, correlation)).saved.se_ratio for _ in range(25)]
    assert_allclose(np.mean(ratios), GOLDEN["coverage"][f"rho={correlation}"]["se_ratio_vs_classic"], atol=0.025)


def test_labels_and_money_saved():
    found = mean_of(rated_items(rng(6), sd_people=0.1), price=0.2)
    saved = found.saved
    assert 0.5 < saved.se_ratio < 0.95
    assert_allclose(saved.labels_saved, 80 * (1 / saved.se_ratio**2 - 1))
    assert_allclose([saved.money_saved, saved.share_saved], [0.2 * saved.labels_saved, 1 - saved.se_ratio**2])
    assert mean_of(rated_items(rng(6), sd_people=0.1)).saved.money_saved is None


def test_a_shift_and_a_scale_of_the_judge_do_not_matter():
    world = rated_items(rng(7), sd_people=0.1, accuracies=(0.8, 0.6))
    plain = mean_of(world)
    other = mean_of(world | {"judges": 40 - 7 * world["judges"]})
    assert_allclose([plain.combined.estimate, plain.saved.se_ratio], [other.combined.estimate, other.saved.se_ratio])
    assert_allclose([use.weight for use in plain.judges], [-7 * use.weight for use in other.judges])


def test_judges_that_copy_one_another_count_as_one():
    world = rated_items(rng(8), sd_people=0.1)
    one, two = mean_of(world), mean_of(world | {"judges": np.repeat(world["judges"], 2, axis=1)})
    assert_allclose([one.combined.estimate, one.saved.se_ratio], [two.combined.estimate, two.saved.se_ratio])


def test_as_many_judges_as_items_have_one_weight_together():
    world = rated_items(rng(9), prompts=30, accuracies=(0.6,) * 30, sd_people=0.1)
    found = mean_of(world)
    assert found.weights == "mean of the judges" and found.saved.se_ratio < 0.9
    assert mean_of(rated_items(rng(9), prompts=30, accuracies=(0.6,) * 3, sd_people=0.1)).weights == "least squares"


def test_the_estimate_is_unbiased_although_the_weight_is_estimated():
    # The label is a square of the score, so the slope of the same labels would go with their mean.
    draw, estimates, same_labels = rng(10), [], []
    for _ in range(500):
        f = draw.exponential(1, 300) - 1
        y = f[:12] ** 2 - 1
        sample = labelled_sample(y, None, np.arange(12), f, prompts=None, names=None)
        estimates.append(combine(sample, np.ones(1)).estimate)
        same_labels.append(y.mean() - np.polyfit(f[:12], y, 1)[0] * (f[:12].mean() - f.mean()))
    errors = [np.mean(one) / (np.std(one) / math.sqrt(500)) for one in (estimates, same_labels)]
    assert abs(errors[0]) < 3 and abs(errors[1]) > 3.5


def test_the_bias_of_a_judge_is_on_the_human_scale():
    draw = rng(12)
    values = np.clip(draw.normal(3, 0.8, 60), 1, 5)
    judge = np.clip(20 * (np.r_[values, draw.normal(3, 0.8, 400)] - 1) + 25, 0, 100)
    world = {"values": values, "annotators": np.arange(60) % 12, "items": np.arange(60), "judges": judge}
    (use,) = mean_of(world | {"judges": 1 + judge / 25}, bounds=(1, 5)).judges
    gap = 1 + judge[:60] / 25 - values
    assert_allclose(use.bias.estimate, gap.mean())
    assert use.bias.interval.low > 0 and use.bias.pvalue < 0.001
    (use,) = mean_of(world, bounds=(1, 5)).judges
    assert (use.bias.status, use.bias.reason) == (
        "not_applicable",
        "the judge's scores are outside the declared scale",
    )


def test_skewed_labels_keep_the_interval_that_is_valid_for_them():
    draw = rng(13)
    values = (draw.random(60) > 0.03).astype(float)
    judge = draw.random(500)
    world = {"values": values, "annotators": np.arange(60) % 15, "items": np.arange(60), "judges": judge}
    found = mean_of(world, bounds=(0, 1))
    assert found.human.detail["skewness"] > 0.35 and found.combined.interval == found.human.interval
    assert found.fallback == "the corrected labels are too skewed for a t interval"


TOO_SKEWED = "the judges' scores of all outputs are too skewed for so few labelled ones"


def rare(draw, quality, value, share=0.02):
    return np.where(draw.random(len(quality)) < share, value, quality)


# Scores of a judge made of the quality, and whether they are too skewed for 20 labelled ones of 1,000.
SCORES = {
    "normal": (lambda draw, quality: quality + 0.5 * draw.normal(size=len(quality)), False),
    "five points": (lambda draw, quality: np.clip(np.round(3 + quality), 1, 5), False),
    "half are 1": (lambda draw, quality: (quality > 0).astype(float), False),
    "ranks": (lambda draw, quality: np.argsort(np.argsort(quality)).astype(float), False),
    "huge ones on both sides": (
        lambda draw, quality: rare(draw, quality, 50 * np.sign(draw.normal(size=len(quality)))),
        None,
    ),
    "all alike": (lambda draw, quality: np.ones(len(quality)), False),
    "one in twenty is 1": (lambda draw, quality: (quality > 1.645).astype(float), True),
    "log-normal": (lambda draw, quality: np.exp(1.5 * quality), True),
    "two in a hundred are 50": (lambda draw, quality: rare(draw, quality, 50.0), True),
    "two in a hundred are -50": (lambda draw, quality: rare(draw, quality, -50.0), True),
    "one of all is 5,000": (lambda draw, quality: np.r_[quality[:-1], 5000.0], True),
}


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("estimate", ["mean", "difference"])
@pytest.mark.parametrize("unit", [1.0, -0.001])
def test_scores_of_all_outputs_decide_whether_their_mean_is_skewed(kind, estimate, unit):
    """The labelled part holds none of a few huge scores, so its own skewness cannot show them."""
    make, is_skewed = SCORES[kind]
    draw = rng(21)
    quality = draw.normal(size=1000)
    judge = unit * make(draw, quality)
    # Without the huge ones among the labelled.
    order = np.argsort(np.abs(judge - np.median(judge)) > 10 * abs(unit), kind="stable")
    quality, judge = quality[order], judge[order]
    items = np.repeat(np.arange(20), 4)
    who = np.arange(80) % 8
    values = quality[items] + 0.3 * draw.normal(size=80)
    if estimate == "mean":
        found = prediction_powered_mean(values, who, items, judges=judge)
    else:
        other = draw.normal(size=1000)
        (pair,) = prediction_powered_differences(
            np.r_[values, other[items] + 0.3 * draw.normal(size=80)], np.tile(who, 2), np.r_[items, items + 1000],
            judges=np.r_[judge, unit * other], systems=np.repeat(["a", "b"], 1000), prompts=np.tile(np.arange(1000), 2),
        )  # fmt: skip
        found = pair.result
    if is_skewed is not None and not (estimate == "difference" and kind == "one in twenty is 1"):
        assert (found.fallback == TOO_SKEWED) == is_skewed, found.fallback
    if found.fallback:
        assert found.combined.interval == found.human.interval and found.weights == "none"


def test_more_labelled_outputs_bear_more_skewed_scores():
    draw, reasons = rng(22), []
    quality = draw.normal(size=4000)
    for n in (20, 60, 200, 800):
        found = prediction_powered_mean(quality[:n], np.arange(n) % 10, np.arange(n), judges=np.exp(0.6 * quality))
        reasons.append(found.fallback == TOO_SKEWED)
    # Scores with the skewness 2.3.
    assert reasons == [True, False, False, False]


def test_a_judge_at_random_is_not_credited_with_another_kind_of_interval():
    reasons = []
    for seed in range(60):
        draw = rng(seed)
        values, judge = (draw.random(60) > 0.25).astype(float), draw.random(500)
        world = {"values": values, "annotators": np.arange(60) % 15, "items": np.arange(60), "judges": judge}
        found = mean_of(world, bounds=(0, 1))
        assert found.fallback or found.human.detail["skewness"] <= 0.35
        reasons.append(found.fallback)
    assert "people alone have no t interval, so the widths cannot be compared" in reasons


def test_edge_cases_are_reasons():
    def found(values, items, judges, annotators=None):
        record = prediction_powered_mean(values, annotators, items, judges=judges, bounds=(0, 1))
        json.dumps(record.as_dict(), allow_nan=False)
        return record

    empty = found([], np.zeros(0, int), [0.1, 0.2])
    assert (
        (empty.combined.status, empty.saved.labels_saved) == ("no_data", None) and empty.fallback and empty.saved.reason
    )
    assert found([0.5], [0], [0.4, 0.1]).combined.status == "n_lt_2"
    assert found([0.5, 0.6, 0.1], [0, 1, 2], [0.4, 0.3, 0.1, 0.2]).fallback == "people labelled fewer than five items"
    few = found([0.5, 0.6, 0.1, 0.3, 0.2, 0.4], range(6), np.arange(9) / 9, annotators=[0, 1, 2, 0, 1, 2])
    assert few.fallback == "fewer than six people gave labels"
    same = found([0.5] * 8, range(8), np.arange(20) / 20)
    assert same.fallback and same.combined.estimate == 0.5


def test_unknown_people_are_said():
    found = mean_of(correlated(rng(14), 40, 200, 0.7))
    assert (found.samples, found.combined.unit, [one.code for one in found.warnings]) == (
        "items",
        "item",
        ["people_unknown"],
    )


def test_bad_input_names_argument_and_row():
    cases = {
        "judges: row 1 has no score of judge 0": {"judges": [0.1, None, 0.3]},
        "judges: row 2 is infinite": {"judges": [0.1, 0.2, math.inf]},
        "items: row 1 is item 3, but judges has 3 rows": {"items": [0, 3]},
        "items: expected 2 positions": {"items": [0]},
        "values: row 1 is 7, outside 0..1": {"values": [0.5, 7]},
        "weights: expected 1 numbers": {"weights": [1, 2]},
        "names: expected 1 different names": {"names": ["a", "b"]},
        "prompts: expected 3 labels": {"prompts": [1]},
        "level": {"level": 95},
    }
    for message, change in cases.items():
        options = {"values": [0.1, 0.2], "items": [0, 1], "judges": [0.1, 0.2, 0.3], "bounds": (0, 1)} | change
        with pytest.raises(ValueError, match=message):
            prediction_powered_mean(options.pop("values"), None, options.pop("items"), **options)


def test_a_missing_label_is_left_out():
    world = rated_items(rng(15))
    world["values"] = np.r_[world["values"], np.nan]
    longer = world | {"annotators": np.r_[world["annotators"], 0], "items": np.r_[world["items"], 299]}
    shorter = {**world, "values": world["values"][:-1]}
    assert_allclose(mean_of(longer).combined.estimate, mean_of(shorter).combined.estimate)
    assert mean_of(longer).human.detail["n_missing"] == 0 and mean_of(longer).combined.n_rows == 80
