"""What a pilot says: components as by the usual methods, draws that cover the truth, and refusals that help."""

import math
from dataclasses import replace

import numpy as np
import pytest

from analysis.stats import agents
from analysis.stats.planning import pilot_estimates, simulated_studies, study_plans
from analysis.stats.planning.closed_forms import components, quick_assurance, quick_plan
from analysis.stats.planning.inputs import PROTOCOLS, StudySize, Target, Variation
from analysis.stats.planning.pilot_estimates import _latent

SIZE = StudySize(protocol="two_choice", people=12, prompts=20, prompts_each=10)


def normal_answers(rng, people, prompts, sd_people, sd_prompts):
    a, p = rng.normal(0, sd_people, people.max() + 1), rng.normal(0, sd_prompts, prompts.max() + 1)
    return 0.2 + a[people] + p[prompts] + rng.standard_normal(len(people))


def pilot(seed=0, size=SIZE, variation=None, target=None, **options):
    rng = np.random.default_rng(seed)
    people, prompts = simulated_studies.assign_prompts(size, rng)
    values = simulated_studies.simulate_answers(
        size, target or Target(), variation or Variation(), people, prompts, runs=1, rng=rng
    )[0]
    return pilot_estimates.estimate_pilot(
        values, people, prompts, protocol=size.protocol, points=size.points, rng=rng, **options
    )


def test_balanced_components_are_those_of_the_analysis_of_variance():
    people, prompts = np.repeat(np.arange(7), 9), np.tile(np.arange(9), 7)
    values = normal_answers(np.random.default_rng(0), people, prompts, 0.8, 1.1).reshape(7, 9)
    by_person, by_prompt = values.mean(axis=1, keepdims=True), values.mean(axis=0, keepdims=True)
    within = np.sum((values - by_person - by_prompt + values.mean()) ** 2) / (6 * 8)
    found = pilot_estimates.crossed_components(values.ravel(), people, prompts)
    assert found.rest == pytest.approx(within)
    assert found.people == pytest.approx(np.var(by_person, ddof=1) - within / 9)
    assert found.prompts == pytest.approx(np.var(by_prompt, ddof=1) - within / 7)


def test_unbalanced_components_agree_with_restricted_maximum_likelihood():
    import pandas as pd
    import statsmodels.formula.api as smf

    rng = np.random.default_rng(1)
    people, prompts = np.nonzero(rng.random((14, 16)) < np.linspace(0.25, 0.95, 14)[:, None])
    frame = pd.DataFrame({"y": normal_answers(rng, people, prompts, 0.7, 0.9), "a": people, "p": prompts, "one": 1})
    model = smf.mixedlm("y ~ 1", frame, groups="one", vc_formula={"a": "0 + C(a)", "p": "0 + C(p)"}).fit()
    oracle = dict(zip(model.model.exog_vc.names, model.vcomp, strict=True))
    found = pilot_estimates.crossed_components(frame["y"], people, prompts)
    assert found.rest == pytest.approx(model.scale, rel=0.03)
    # Both are estimates of the same: they differ by less than half of their own standard errors, a third of the value.
    assert found.people == pytest.approx(oracle["a"], rel=0.15)
    assert found.prompts == pytest.approx(oracle["p"], rel=0.15)


def test_draws_from_five_people_are_wide_and_cover_the_truth():
    rng, hits, ratios = np.random.default_rng(2), [], []
    people, prompts = np.nonzero(rng.random((5, 14)) < 0.7)
    for _ in range(100):
        found = pilot_estimates.crossed_components(normal_answers(rng, people, prompts, 0.6, 0.8), people, prompts)
        _, of_people, of_prompts, _ = found.draws(100, rng)
        ends = [np.quantile(drawn, [0.05, 0.95]) for drawn in (of_people, of_prompts)]
        hits.append([low <= truth**2 <= high for (low, high), truth in zip(ends, (0.6, 0.8), strict=True)])
        ratios.append(math.sqrt(ends[0][1]) / 0.6)
    # Three standard errors of a share of .9 in 100 pilots are .09.
    assert np.mean(hits, axis=0) == pytest.approx([0.9, 0.9], abs=0.09)
    assert np.median(ratios) > 2


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name != "spa"])
def test_the_latent_variation_reproduces_the_components(protocol):
    size = StudySize(protocol=protocol, people=6, prompts=6, prompts_each=6, points=7)
    truth = [(0.5, 0.0, 0.5), (0.6, 0.3, 0.7), (0.85, 0.9, 1.4)]
    of_each = [components(size, Target(difference=d), Variation(sd_people=a, sd_prompts=p)) for d, a, p in truth]
    arrays = [np.array([getattr(one, name) for one in of_each]) for name in ("mean", "people", "prompts", "rest")]
    assert np.transpose(_latent(size, *arrays)) == pytest.approx(np.array(truth), abs=0.01)


@pytest.mark.parametrize("protocol", ["two_choice", "relative"])
def test_a_large_pilot_recovers_what_was_simulated(protocol):
    size = StudySize(protocol=protocol, people=150, prompts=200, prompts_each=60)
    found = pilot(3, size, Variation(sd_people=0.4, sd_prompts=0.8), draws=20)
    assert found.variation.sd_people == pytest.approx(0.4, abs=0.08)
    assert found.variation.sd_prompts == pytest.approx(0.8, abs=0.12)
    assert found.difference_low < 0.6 < found.difference_high
    assert found.low < found.components.mean < found.high


def test_the_assurance_counts_what_a_small_pilot_leaves_open():
    found = pilot(4, source="pilot")
    size, target = replace(SIZE, people=30, prompts=40), Target(difference=0.65)
    assured, at_point = quick_assurance(size, target, found.draws), quick_plan(size, target, found.variation)
    assert assured.low < at_point.power < assured.high
    assert assured.power < at_point.power - 0.01
    part = study_plans.PlanPart(kind="planned", size=size, target=target, runs=1000, seed=(1, 0))
    assert study_plans.simulate_part(part, found.draws).power == pytest.approx(assured.power, abs=0.06)
    assert {one.source for one in found.draws} == {"pilot"}
    with pytest.raises(ValueError, match="draws: no draw was given"):
        quick_assurance(size, target, [])


def rows(people, prompts, values=None):
    who, what = np.repeat(np.arange(people), prompts), np.tile(np.arange(prompts), people)
    return (np.arange(len(who)) * 7 % 3 % 2 if values is None else values(who, what)), who, what


def answers_once(by):
    who = np.arange(12)
    other = who % 4
    return (who % 2, *((who, other) if by == "people" else (other, who)))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (rows(2, 20), "people: a pilot with 2 people does not say how much people vary. Use at least 3"),
        (rows(20, 2), "prompts: a pilot with 2 prompts does not say how much prompts vary"),
        (answers_once("people"), "people: each person gave one answer. Use a pilot in which each"),
        (answers_once("prompts"), "prompts: each prompt has one answer. Use a pilot in which several people"),
        (rows(5, 6, lambda who, what: 0 * who), "values: beyond people and prompts, the answers do not vary"),
        (rows(5, 6, lambda who, what: what % 2), "values: beyond people and prompts, the answers do not vary"),
        (rows(5, 6, lambda who, what: who * what / 4), "values: an answer is not between 0 and 1"),
        (rows(5, 6, lambda who, what: np.where(who == 2, np.nan, 1)), "values: row 12 is missing. Leave it out"),
        (rows(2001, 3), "people: 2001 are more than 2000. Use a part"),
        (([0, 1, 1, 0, 1], [0, 0, 1, 1, 2], [0, 1, 1, 2, 2]), "5 answers of 3 people about 3 prompts do not tell"),
    ],
)
def test_a_pilot_that_says_too_little_is_refused_with_advice(data, message):
    values, people, prompts = data
    with pytest.raises(ValueError, match=message):
        pilot_estimates.estimate_pilot(values, people, prompts, protocol="two_choice", rng=np.random.default_rng(0))


def test_share_and_spread_of_the_papers_agents_are_found_in_their_answers():
    """The agents of Table 3 at difficulty .25: capability .8 to 1, variance of difficulty .1, cut to -1..1."""
    rng = np.random.default_rng(47)
    drawn = agents.draw_agents(0.25, 1000, spread=0.1, capability=(0.8, 1.0), rng=rng)
    items = np.repeat(np.arange(1000), 20)
    people = np.concatenate([rng.choice(len(drawn.capabilities), 20, replace=False) for _ in range(1000)])
    chance = (1 + drawn.capabilities[people] * drawn.difficulties[items]) / 2
    choices = (rng.random(20_000) < chance).astype(float)
    found = pilot_estimates.share_and_spread(choices, people, items, rng=rng)
    assert (found.n_answers, found.n_items) == (20_000, 1000)
    assert found.low < (1 + 0.9 * drawn.difficulties.mean()) / 2 < found.high
    assert 2 * found.spread / 0.9 == pytest.approx(drawn.difficulties.std(), rel=0.08)
    # Where y is chosen more often, the two change places.
    turned = pilot_estimates.share_and_spread(1 - choices, people, items, rng=rng)
    assert turned.share == pytest.approx(found.share) and turned.spread == pytest.approx(found.spread)


def test_items_that_do_not_differ_have_a_spread_near_zero():
    rng = np.random.default_rng(3)
    items, people = np.repeat(np.arange(300), 8), np.tile(np.arange(8), 300)
    found = pilot_estimates.share_and_spread((rng.random(2400) < 0.6).astype(float), people, items, rng=rng)
    assert found.spread < 0.06 and found.share == pytest.approx(0.6, abs=0.03)
