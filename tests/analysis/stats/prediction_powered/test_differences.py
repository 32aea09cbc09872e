import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import clusters
from analysis.stats.judge_assisted import (
    judge_bias_by_group,
    prediction_powered_differences,
    prediction_powered_mean,
    prediction_powered_preferences,
)
from tests.analysis.stats.draws import rng

SYSTEMS = ("a", "b", "c")


def three_systems(draw, n=200, labelled=50, favoured="a", bonus=0.0):
    """Ratings of three systems' outputs for the first prompts by the same people, and a judge that gives one system more."""
    prompts, systems = np.tile(np.arange(n), 3), np.repeat(SYSTEMS, n)
    quality = draw.normal(0, 0.8, n)[prompts] + draw.normal(0, 0.6, 3 * n) + 0.3 * (systems == "a")
    items = np.flatnonzero(prompts < labelled)
    who = prompts[items] % 10
    values = quality[items] + draw.normal(0, 0.4, 10)[who] + draw.normal(0, 0.3, len(items))
    judge = quality + bonus * (systems == favoured) + draw.normal(0, 0.4, 3 * n)
    return {
        "values": values,
        "annotators": who,
        "items": items,
        "judges": judge,
        "systems": systems,
        "prompts": prompts,
    }


def bias_of(world, **options):
    world = dict(world)
    return judge_bias_by_group(groups=world.pop("systems"), **world, **options)


def test_the_human_difference_is_the_paired_headline():
    world = three_systems(rng(1))
    pairs = prediction_powered_differences(**world)
    assert [(pair.first, pair.second) for pair in pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    by_system = {name: world["values"][world["systems"][world["items"]] == name] for name in SYSTEMS}
    wanted = clusters.two_way_clustered_mean(by_system["a"] - by_system["b"], np.arange(50) % 10, range(50), null=0.0)
    human = pairs[0].result.human
    assert_allclose([human.estimate, human.pvalue], [wanted.estimate, wanted.pvalue])
    assert_allclose([human.interval.low, human.interval.high], [wanted.interval.low, wanted.interval.high])


def test_a_paired_difference_is_the_mean_of_the_differences():
    world = three_systems(rng(2))
    pair = prediction_powered_differences(**world, weights=[0.7])[0].result
    gaps = world["judges"][:200] - world["judges"][200:400]
    values = world["values"][:50] - world["values"][50:100]
    wanted = prediction_powered_mean(values, np.arange(50) % 10, range(50), judges=gaps, weights=[0.7])
    assert_allclose(pair.combined.estimate, wanted.combined.estimate)
    assert_allclose(pair.combined.detail["se"], wanted.combined.detail["se"])
    assert pair.saved.se_ratio < 0.9


def test_nobody_needs_to_label_both_outputs():
    world = three_systems(rng(3))
    one_each = world["items"] % 3 == world["items"] // 200
    world |= {name: world[name][one_each] for name in ("values", "annotators", "items")}
    pair = prediction_powered_differences(**world)[0].result
    assert pair.human.interval.low < 0.3 < pair.human.interval.high and pair.combined.interval is not None
    assert pair.n_labelled == pair.saved.n_labels < 40


def test_all_pairs_have_bonferronis_intervals():
    for pair in prediction_powered_differences(**three_systems(rng(4))):
        for one in (pair.result.human, pair.result.combined):
            assert_allclose(one.test.pvalue_adjusted, min(1, 3 * one.test.pvalue))
            assert one.interval_adjusted.level == pytest.approx(1 - 0.05 / 3)
            assert one.interval_adjusted.low < one.interval.low


def test_a_judge_of_the_family_of_a_system_is_a_warning():
    families = {"judge 1": "x", "b": "x", "c": "y"}
    pairs = prediction_powered_differences(**three_systems(rng(5)), families=families)
    found = [[dict(one.detail) for one in pair.warnings] for pair in pairs]
    of_b = [{"judge": "judge 1", "system": "b"}]
    assert found == [of_b, [], of_b]


def test_the_bias_and_the_favour_of_each_system():
    world = three_systems(rng(6), favoured="b", bonus=0.9)
    found = {one.group: one for one in bias_of(world, families={"judge 1": "x", "b": "x"})}
    gaps = world["judges"][world["items"]] - world["values"]
    means = [gaps[world["systems"][world["items"]] == name].mean() for name in SYSTEMS]
    assert_allclose([found[name].bias.estimate for name in SYSTEMS], means)
    assert_allclose(found["b"].favour.estimate, means[1] - (means[0] + means[2]) / 2)
    assert found["b"].favour.interval_adjusted.low > 0.5 and found["a"].favour.interval.high < 0
    assert [len(found[name].warnings) for name in SYSTEMS] == [0, 1, 0]
    assert {one.bias.test.family_size for one in found.values()} == {3}


def test_preferences_count_for_the_first_system_by_name():
    draw = rng(7)
    verdicts = (draw.random(300) < 0.7).astype(float)
    judge = np.where(draw.random(300) < 0.9, verdicts, 1 - verdicts)
    is_turned = draw.random(300) < 0.5
    firsts, seconds = np.where(is_turned, "b", "a"), np.where(is_turned, "a", "b")
    shown = [np.where(is_turned, 1 - one, one) for one in (verdicts, judge)]
    (pair,) = prediction_powered_preferences(
        shown[0][:90],
        np.arange(90) % 15,
        range(90),
        judges=shown[1],
        firsts=firsts,
        seconds=seconds,
        prompts=range(300),
    )
    wanted = prediction_powered_mean(
        verdicts[:90], np.arange(90) % 15, range(90), judges=judge, prompts=range(300), null=0.5, bounds=(0, 1)
    )
    assert (pair.first, pair.second) == ("a", "b")
    assert_allclose(
        [pair.result.combined.estimate, pair.result.combined.pvalue], [wanted.combined.estimate, wanted.combined.pvalue]
    )
    assert wanted.saved.se_ratio < 0.95


def test_systems_without_labels_have_a_reason():
    world = three_systems(rng(8))
    is_used = world["items"] < 400
    world |= {name: world[name][is_used] for name in ("values", "annotators", "items")}
    pairs = prediction_powered_differences(**world)
    assert [pair.result.human.status for pair in pairs] == ["ok", "no_data", "no_data"]
    assert pairs[1].result.fallback == "people labelled no output of one of the systems"
    biases = bias_of(world)
    assert (biases[2].bias.status, biases[2].favour.status) == ("no_data", "n_lt_2")
    json.dumps([one.as_dict() for one in (*pairs, *biases)], allow_nan=False)


def test_bad_input_names_argument_and_row():
    world = three_systems(rng(9))
    with pytest.raises(ValueError, match="systems: a difference needs two systems"):
        prediction_powered_differences(**world | {"systems": ["a"] * 600})
    pair = {"judges": [0.5, 1.0], "firsts": ["a", "a"], "seconds": ["b", "b"], "prompts": [0, 1]}
    for message, change in {
        "firsts: row 1 compares a system with itself": {"seconds": ["b", "a"]},
        "judges: row 1 is 3, outside 0..1": {"judges": [0.5, 3]},
    }.items():
        with pytest.raises(ValueError, match=message):
            prediction_powered_preferences([1.0], [0], [0], **pair | change)
