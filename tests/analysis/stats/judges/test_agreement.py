"""Agreement and rates of a judge beside people, against sums written out."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import clusters, judge_probes, judges
from tests.analysis.stats.draws import rng
from tests.analysis.stats.judges.tables import rows

KEYS = ("judge", "people", "annotators", "prompts", "weights")


def given(made, *more):
    return {name: made[name] for name in (*KEYS, *more)}


def kappa(judge, people, weights):
    labels = sorted({*judge, *people})
    joint = np.array([[weights[(judge == a) & (people == b)].sum() for b in labels] for a in labels]) / weights.sum()
    chance = joint.sum(axis=1) @ joint.sum(axis=0)
    return (np.trace(joint) - chance) / (1 - chance)


def test_agreement_is_the_weighted_share_with_the_interval_of_the_headlines():
    made = rows(1)
    found = judges.judge_agreement(**given(made))
    agrees = (made["judge"] == made["people"]).astype(float)
    assert_allclose(found.agreement.estimate, np.average(agrees, weights=made["weights"]))
    headline = clusters.annotator_prompt_clustered_mean(
        agrees, made["annotators"], made["prompts"], weights=made["weights"], null=None, bounds=(0, 1), analysis="x"
    )
    assert found.agreement.interval == headline.interval
    assert (found.agreement.unit, found.agreement.n, found.agreement.n_rows) == ("annotator", 9, 378)
    assert found.agreement.settings["population"] == "people and prompts" and found.agreement.settings["is_weighted"]


def test_the_best_constant_answer_is_beside_it():
    made = rows(2)
    found = judges.judge_agreement(**given(made))
    shares = {label: np.average(made["people"] == label, weights=made["weights"]) for label in (0, 1)}
    assert found.constant == max(shares, key=shares.get)
    assert_allclose(found.constant_agreement.estimate, shares[found.constant])
    assert_allclose(found.advantage.estimate, found.agreement.estimate - found.constant_agreement.estimate)
    assert found.advantage.test.null == 0 and found.advantage.interval.low < found.advantage.estimate
    assert_allclose([one.people for one in found.shares], [shares[0], shares[1]])
    assert_allclose(sum(one.judge for one in found.shares), 1)
    assert sum(one.n_people for one in found.shares) == 378


def test_a_judge_that_always_says_the_same_has_no_advantage():
    made = rows(3) | {"weights": None}
    often = int(made["people"].mean() > 0.5)
    found = judges.judge_agreement(**given(made | {"judge": np.full(378, often)}))
    assert found.advantage.estimate == 0 and found.kappa.estimate == 0
    assert found.advantage.interval.low < 0 < found.advantage.interval.high


def test_kappa_and_its_variance_leave_out_people_and_prompts():
    made = rows(4)
    found = judges.judge_agreement(**given(made)).kappa
    judge, people, weights = made["judge"], made["people"], made["weights"]
    assert_allclose(found.estimate, kappa(judge, people, weights))
    spreads = []
    for labels in (made["annotators"], made["prompts"], made["annotators"] * 100 + made["prompts"]):
        without = [kappa(*(part[labels != one] for part in (judge, people, weights))) for one in np.unique(labels)]
        spreads.append((len(without) - 1) / len(without) * np.sum((np.array(without) - found.estimate) ** 2))
    combined = max(spreads[0] + spreads[1] - spreads[2], *spreads[:2])
    assert_allclose(found.detail["se"] ** 2, combined)
    assert found.test.name == "two_way_t" and found.interval.method == "two_way_cv3_t"


def test_texts_are_labels_and_a_missing_one_is_left_out():
    people, prompts = np.repeat(np.arange(8), 6), np.tile(np.arange(6), 8)
    said = np.array(["good", "bad"], dtype=object)[(people + prompts) % 2]
    judge = said.copy()
    said[0], judge[1] = None, None
    found = judges.judge_agreement(judge, said, annotators=people, prompts=prompts, categories=["bad", "good", "tie"])
    assert (found.agreement.estimate, found.n_missing, found.agreement.n_rows) == (1.0, 2, 46)
    assert [one.label for one in found.shares] == ["bad", "good", "tie"] and found.shares[2].people == 0
    json.dumps(found.as_dict(), allow_nan=False)


def test_labels_are_named_when_they_are_refused():
    common = {"annotators": [1, 2], "prompts": [1, 2]}
    with pytest.raises(ValueError, match="people: row 1 is 'x'"):
        judges.judge_agreement(["a", "b"], ["a", "x"], categories=["a", "b"], **common)
    with pytest.raises(ValueError, match="categories: numbers and texts"):
        judges.judge_agreement(["a", "b"], [1, 2], **common)
    with pytest.raises(ValueError, match="categories: a label occurs twice"):
        judges.judge_agreement([1, 2], [1, 2], categories=[1, 2, 1], **common)
    with pytest.raises(ValueError, match="people: shape"):
        judges.judge_agreement([1, 2], [1, 2, 1], **common)
    with pytest.raises(ValueError, match="weights"):
        judges.judge_agreement([1, 2], [1, 2], weights=[1, 0], **common)


def test_without_people_prompts_are_the_only_sample_and_the_record_says_so():
    made = rows(5)
    found = judges.judge_agreement(**given(made) | {"annotators": None})
    for one in (found.agreement, found.advantage, found.kappa):
        assert (one.unit, one.n, one.settings["population"]) == ("prompt", 14, "prompts")
        assert one.has_warning("people_left_out")
    by_prompt = clusters.clustered_mean(
        made["judge"] == made["people"], made["prompts"], weights=made["weights"], bounds=(0, 1)
    )
    assert found.agreement.interval == by_prompt.interval


def test_no_labels_and_labels_of_one_kind():
    empty = judges.judge_agreement([], [], annotators=[], prompts=[])
    assert empty.constant is None and empty.shares == ()
    assert {one.status for one in (empty.agreement, empty.advantage, empty.kappa)} == {"no_data"}
    people, prompts = np.repeat(np.arange(8), 6), np.tile(np.arange(6), 8)
    same = judges.judge_agreement([1] * 48, [1] * 48, annotators=people, prompts=prompts)
    assert same.agreement.estimate == 1 and same.kappa.status == "not_identified"


def test_few_prompts_are_fixed_and_few_people_are_not_tested():
    people, prompts = np.repeat(np.arange(8), 3), np.tile(np.arange(3), 8)
    said = (people * 2 + prompts) % 3
    found = judges.judge_agreement(prompts % 3, said, annotators=people, prompts=prompts)
    assert found.kappa.settings["population"] == "people" and found.kappa.test is not None
    few = judges.judge_agreement(prompts % 3, said, annotators=people // 2, prompts=prompts)
    assert few.kappa.test is None and few.kappa.interval is not None


# Rates


def test_rates_are_conditional_shares():
    made = rows(6)
    found = judges.true_positive_and_negative_rates(**given(made), positive=1)
    judge, people, w = made["judge"], made["people"], made["weights"]
    share = lambda hit, among: w[hit & among].sum() / w[among].sum()  # noqa: E731 - one line says the definition
    assert_allclose(found.true_positive_rate.estimate, share(judge == 1, people == 1))
    assert_allclose(found.true_negative_rate.estimate, share(judge == 0, people == 0))
    assert_allclose(found.precision.estimate, share(people == 1, judge == 1))
    assert_allclose(found.negative_precision.estimate, share(people == 0, judge == 0))
    assert_allclose(found.prevalence.estimate, w[people == 1].sum() / w.sum())
    assert_allclose(found.judge_prevalence.estimate, w[judge == 1].sum() / w.sum())
    assert found.true_positive_rate.n_rows + found.true_negative_rate.n_rows == found.prevalence.n_rows
    assert found.true_positive_rate.interval.low < found.true_positive_rate.estimate


@pytest.mark.slow
def test_weights_undo_an_unequal_sample():
    made = rows(7, n_people=6, n_prompts=60, n_systems=5)
    whole = judges.true_positive_and_negative_rates(**given(made) | {"weights": None}, positive=1)
    chance = np.where(made["judge"] == 1, 0.3, 0.9)
    draw, estimates, naive = rng(8), [], []
    for _ in range(12):
        is_drawn = (draw.random(300)[made["items"]]) < chance
        part = {name: made[name][is_drawn] for name in ("judge", "people", "annotators", "prompts")}
        estimates.append(
            judges.true_positive_and_negative_rates(
                **part, weights=1 / chance[is_drawn], positive=1
            ).true_positive_rate.estimate
        )
        naive.append(judges.true_positive_and_negative_rates(**part, positive=1).true_positive_rate.estimate)
    assert abs(np.mean(estimates) - whole.true_positive_rate.estimate) < 0.02
    assert abs(np.mean(naive) - whole.true_positive_rate.estimate) > 0.1


def test_rates_without_what_they_are_about():
    people, prompts = np.repeat(np.arange(8), 6), np.tile(np.arange(6), 8)
    found = judges.true_positive_and_negative_rates([0] * 48, [0] * 48, positive=1, annotators=people, prompts=prompts)
    assert (found.true_positive_rate.status, found.precision.status) == ("no_data", "no_data")
    assert found.true_negative_rate.estimate == 1 and found.prevalence.estimate == 0
    assert found.prevalence.interval.high > 0
    json.dumps(found.as_dict(), allow_nan=False)


# Groups


def test_groups_differ_or_do_not():
    made = rows(9, n_people=10, n_prompts=30)
    judge = np.where(made["systems"] == 2, 1 - made["people"], made["judge"])
    found = judge_probes.agreement_by_group(
        **given(made | {"judge": judge}), groups=np.array(["a", "b", "c"])[made["systems"]]
    )
    assert [one.group for one in found.groups] == ["a", "b", "c"]
    agrees, w = judge == made["people"], made["weights"]
    for number, one in enumerate(found.groups):
        own = made["systems"] == number
        assert_allclose(one.agreement.estimate, np.average(agrees[own], weights=w[own]))
        rest = np.average(agrees[~own], weights=w[~own])
        assert_allclose(one.difference.estimate, one.agreement.estimate - rest)
        assert one.difference.test.family_size == 3 and one.difference.test.adjust == "holm"
    assert found.joint.pvalue < 0.001 and found.groups[2].difference.test.pvalue_adjusted < 0.001
    same = judge_probes.agreement_by_group(**given(made), groups=made["systems"])
    assert same.joint.pvalue > 0.05


def test_the_joint_test_of_two_groups_by_prompts_is_the_test_of_their_difference():
    made = rows(10, n_systems=2)
    found = judge_probes.agreement_by_group(**given(made) | {"annotators": None}, groups=made["systems"])
    difference = found.groups[0].difference
    assert_allclose(found.joint.test.statistic, difference.test.statistic**2)
    assert_allclose(found.joint.pvalue, difference.pvalue)


def test_as_many_groups_as_people_have_no_joint_test():
    made = rows(14, n_people=6, n_systems=7)
    for groups, status in ((made["systems"], "not_identified"), (made["systems"] % 3, "ok")):
        assert judge_probes.agreement_by_group(**given(made), groups=groups).joint.status == status


def test_groups_that_cannot_be_compared():
    made = rows(11, n_people=5)
    found = judge_probes.agreement_by_group(**given(made), groups=made["systems"])
    assert found.joint.status == "not_identified" and found.groups[0].difference.test is None
    one = judge_probes.agreement_by_group(**given(rows(12)), groups=np.zeros(378))
    assert (one.joint.status, one.groups[0].difference.status) == ("not_applicable", "not_applicable")
    lonely = judge_probes.agreement_by_group(**given(rows(12)), groups=(rows(12)["annotators"] == 0).astype(int))
    assert lonely.joint.status == "not_identified" and lonely.groups[1].difference.status == "not_identified"
    empty = judge_probes.agreement_by_group([], [], [], annotators=[], prompts=[])
    assert empty.groups == () and empty.joint.status == "no_data"
    with pytest.raises(ValueError, match="groups"):
        judge_probes.agreement_by_group(**given(rows(12)), groups=[1])


def test_names_of_labels_do_not_matter():
    made = rows(13)
    renamed = {name: np.where(made[name] == 1, "x", "y") for name in ("judge", "people")}
    plain, other = (judges.judge_agreement(**given(part)) for part in (made, made | renamed))
    assert_allclose(plain.kappa.estimate, other.kappa.estimate)
    assert plain.agreement.interval == other.agreement.interval
