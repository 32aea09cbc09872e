"""Contrasts of cells and models of conditions are regressions with two-way clusters."""

import json

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import cell_contrasts, cluster_models, clusters
from analysis.stats.results import json_safe
from tests.analysis.stats.draws import rng
from tests.analysis.stats.groups.answers import answers


@pytest.mark.parametrize("link", ["identity", "probit", "logit"])
@pytest.mark.parametrize("seed", range(2))
def test_cell_contrasts_are_the_regression_and_their_variances_the_jackknife(seed, link):
    values, arms, _, who, items = answers(seed)
    found = cell_contrasts.cell_contrast(values, arms, {"examples": 1, "none": -1}, who, items, link=link)
    here = arms != "pairs"
    design = sm.add_constant((arms[here] == "examples").astype(float))
    families = {"probit": sm.families.links.Probit(), "logit": sm.families.links.Logit()}
    if link == "identity":
        fit = sm.OLS(values[here], design).fit()
    else:
        fit = sm.GLM(values[here], design, family=sm.families.Binomial(families[link])).fit()
    assert_allclose(found.estimate, fit.params[1], rtol=1e-6)
    data = pd.DataFrame({"v": values, "a": arms, "w": who, "i": items})[here]
    means = data.groupby("a")["v"].mean()
    slope = {
        "identity": lambda share: 1.0,
        "logit": lambda share: 1 / (share * (1 - share)),
        "probit": lambda share: 1 / stats.norm.pdf(stats.norm.ppf(share)),
    }[link]
    gradient = pd.Series({"examples": slope(means["examples"]), "none": -slope(means["none"])})

    def jackknife(column):
        labels = data[column].unique()
        moves = [(data[data[column] != one].groupby("a")["v"].mean() - means) @ gradient for one in labels]
        return (len(labels) - 1) / len(labels) * np.sum(np.square(moves))

    def df(column):
        counts = data.groupby([column, "a"]).size().unstack(fill_value=0)
        shares = (counts * (gradient / counts.sum()) ** 2 * 1).sum(axis=1)
        return shares.sum() ** 2 / (shares**2).sum() - 1

    of_rows = (data["v"] - data["a"].map(means)) * data["a"].map(gradient / data.groupby("a").size())
    parts = jackknife("w"), jackknife("i")
    combined = sum(parts) - (of_rows.groupby([data["w"], data["i"]]).sum() ** 2).sum()
    detail = found.detail
    assert_allclose([detail["variance_annotators"], detail["variance_items"]], parts, rtol=1e-6)
    assert_allclose(detail["variance_two_way"], combined, rtol=1e-6)
    assert_allclose(detail["se"] ** 2, max(*parts, combined), rtol=1e-6)
    if combined > max(parts):
        wanted = combined**2 / (parts[0] ** 2 / df("w") + parts[1] ** 2 / df("i"))
    else:
        wanted = df("w") if parts[0] >= parts[1] else df("i")
    assert_allclose(detail["df"], wanted, rtol=1e-6)


def test_one_cell_is_the_clustered_mean():
    values, arms, _, who, items = answers(3)
    mine = arms == "none"
    one_way = cell_contrasts.cell_contrast(values, arms, {"none": 1}, who, null=0.5)
    wanted = clusters.clustered_mean(values[mine], who[mine], null=0.5)
    assert_allclose([one_way.pvalue, one_way.interval.low], [wanted.pvalue, wanted.interval.low], rtol=1e-9)
    two_way = cell_contrasts.cell_contrast(values, arms, {"none": 1}, who, items, null=0.5)
    wanted = clusters.two_way_clustered_mean(values[mine], who[mine], items[mine], null=0.5)
    assert_allclose([two_way.pvalue, two_way.interval.low], [wanted.pvalue, wanted.interval.low], rtol=1e-9)
    assert (two_way.n, two_way.n_rows) == (wanted.n, wanted.n_rows)


def test_the_edges_of_the_values_are_not_those_of_a_difference():
    values, arms, _, who, items = answers(3)
    for weights in ({"examples": 1, "none": -1}, {"examples": -1, "none": 1}):
        free = cell_contrasts.cell_contrast(values, arms, weights, who, items).interval
        held = cell_contrasts.cell_contrast(values, arms, weights, who, items, bounds=(0, 1)).interval
        assert_allclose([held.low, held.high], [free.low, free.high])
    few = np.repeat(np.arange(6), 2)
    far = cell_contrasts.cell_contrast([1, 0] * 5 + [0, 1], ["a", "b"] * 6, {"a": 1, "b": -1}, few, bounds=(0, 1))
    assert far.interval.clipped and far.interval.high == 1 and -0.2 < far.interval.low < 0 < far.estimate


def test_without_items_a_contrast_is_the_jackknife_over_annotators():
    values, arms, _, who, _ = answers(4)
    found = cell_contrasts.cell_contrast(values, arms, {"examples": 1, "none": -1}, who)
    here = arms != "pairs"
    design = np.column_stack([np.ones(here.sum()), arms[here] == "examples"])
    fit = cluster_models.clustered_regression(design, values[here], who[here])
    assert_allclose([found.estimate, found.detail["se"]], [fit.coefficients[1], np.sqrt(fit.covariance[1, 1])])
    assert_allclose(found.detail["df"], fit.df)


def test_labels_swap_and_repetition_of_a_contrast():
    values, arms, _, who, items = answers(5)
    there = cell_contrasts.cell_contrast(values, arms, {"examples": 1, "none": -1}, who, items)
    back = cell_contrasts.cell_contrast(values, arms, {"examples": -1, "none": 1}, who, items)
    assert_allclose([there.estimate, there.pvalue], [-back.estimate, back.pvalue])
    order = rng(1).permutation(len(values))
    again = cell_contrasts.cell_contrast(
        values[order], arms[order], {"none": -1, "examples": 1}, [f"x{900 - w}" for w in who[order]], items[order]
    )
    assert_allclose([there.estimate, there.pvalue], [again.estimate, again.pvalue], rtol=1e-9)
    for what in (items, None):
        once = cell_contrasts.cell_contrast(values, arms, {"examples": 1, "none": -1}, who, what)
        doubled = None if what is None else np.tile(what, 2)
        twice = cell_contrasts.cell_contrast(
            np.tile(values, 2), np.tile(arms, 2), {"examples": 1, "none": -1}, np.tile(who, 2), doubled
        )
        assert_allclose(once.detail["se"], twice.detail["se"], rtol=1e-9)


def test_contrast_edge_cases_are_statuses():
    call = cell_contrasts.cell_contrast
    cells, who = list("aabbaabb"), [1, 1, 2, 2, 3, 3, 4, 4]
    weights = {"a": 1, "b": -1}
    assert call([], [], weights, []).status == "no_data"
    assert call([1, 0], ["a", "a"], weights, [1, 2]).reason == "cell b has no value"
    assert call([1, 0] * 4, cells, {}, who).status == "no_data"
    assert call([1, 0, 1, 0], list("aabb"), weights, [1] * 4).status == "n_lt_2"
    # Annotator 1 alone gave the answers of cell a: leaving them out leaves nothing.
    assert call([1, 0, 1, 0, 1, 1], list("aabbbb"), weights, [1, 1, 2, 2, 3, 3]).status == "not_identified"
    coincide = call([1, 0, 1, 0, 1, 0, 1, 0], cells, weights, who)
    assert (coincide.status, coincide.test, coincide.estimate) == ("zero_variance", None, 0)
    for link in ("probit", "logit"):
        split = call([1, 1, 1, 0, 1, 1, 0, 0], cells, weights, who, link=link)
        assert (split.status, split.estimate) == ("separation", None)
        assert_allclose(split.detail["clopper_pearson"]["a"][1], 1)
        moved = call([1, 1, 1, 0, 1, 1, 0, 0], cells, weights, who, link=link, is_log_linear_corrected=True)
        assert (moved.status, moved.interval) == ("separation", None) and moved.estimate > 0
    few = call([1, 0, 0, 0, 1, 1, 1, 0], cells, weights, who)
    assert few.test is None and [w.severity for w in few.warnings] == ["block"]
    for settings, word in (({"link": "log"}, "link"), ({"bounds": (0, 0.5)}, "values"), ({"level": 1}, "level")):
        with pytest.raises(ValueError, match=word):
            call([1, 0] * 4, cells, weights, who, **settings)
    with pytest.raises(ValueError, match="values: the probit link"):
        call([0.5, 0] * 4, cells, weights, who, link="probit")
    json.dumps(few.as_dict(), allow_nan=False)


def test_the_smallest_detectable_difference_is_beside_a_contrast():
    values, arms, _, who, items = answers(6)
    found = cell_contrasts.cell_contrast(values, arms, {"examples": 1, "none": -1}, who, items)
    df, se = int(found.detail["df"]), found.detail["se"]
    # Noncentral t at the distance found has power .8, with the degrees of freedom rounded down.
    reached = 1 - stats.nct.cdf(stats.t.ppf(0.975, df), df, found.detail["detectable"] / se)
    assert_allclose(reached, 0.8, atol=1e-6)


def test_the_condition_model_is_the_saturated_regression():
    values, arms, domains, who, items = answers(7, n_annotators=120)
    model = cell_contrasts.condition_by_domain_model(values, arms, domains, who, items, reference="none")
    means = pd.DataFrame({"v": values, "a": arms, "d": domains}).groupby(["a", "d"])["v"].mean()
    assert len(model.cells) == 6 and len(model.effects) == 2 and len(model.by_domain) == 4
    for cell in model.cells:
        assert_allclose(cell.estimate, means[cell.settings["condition"], cell.settings["domain"]])
        assert cell.test is None
    for effect in model.effects:
        inside = [d.estimate for d in model.by_domain if d.settings["condition"] == effect.settings["condition"]]
        assert_allclose(effect.estimate, np.mean(inside))
        assert effect.test is not None and effect.settings["reference"] == "none"
    assert (model.interaction.detail["df_between"], model.interaction.estimate) == (2, None)
    json.dumps(json_safe(model), allow_nan=False)


def test_the_interaction_is_the_wald_test_of_the_regression():
    values, arms, domains, who, _ = answers(8, n_annotators=180)
    data = pd.DataFrame({"v": values, "a": arms, "d": domains, "w": who})
    fit = smf.ols("v ~ C(a, Treatment('none')) * d", data).fit(
        cov_type="cluster", cov_kwds={"groups": data["w"]}, use_t=True
    )
    names = [name for name in fit.params.index if ":" in name]
    wanted = fit.f_test(np.eye(len(fit.params))[[list(fit.params.index).index(name) for name in names]])
    found = cell_contrasts.condition_by_domain_model(values, arms, domains, who, reference="none").interaction
    # CR1 there, the jackknife here: with 30 annotators in each of six cells their ratio is known.
    ratio = (179 / 180) ** 2 * (30 / 29) ** 2 * (1080 - 6) / (1080 - 1)
    hotelling = (179 - 2 + 1) / 179
    assert_allclose(found.test.statistic / hotelling * ratio, float(np.squeeze(wanted.fvalue)), rtol=1e-9)
    assert found.detail["df_within"] == 178
    assert found.detail["df_between"] == wanted.df_num
    # Where every row has an item of its own, items are rows and two ways are one.
    alone = cell_contrasts.condition_by_domain_model(
        values, arms, domains, who, np.arange(len(values)), reference="none"
    ).interaction
    assert_allclose(alone.test.statistic, float(np.squeeze(wanted.fvalue)) / ratio, rtol=1e-9)


def test_condition_model_edge_cases():
    values, arms, domains, who, items = answers(9, n_annotators=30)
    with pytest.raises(ValueError, match="reference: 'nobody'"):
        cell_contrasts.condition_by_domain_model(values, arms, domains, who, items, reference="nobody")
    one_domain = cell_contrasts.condition_by_domain_model(
        values, arms, ["x"] * len(values), who, items, reference="none"
    )
    assert one_domain.interaction.status == "not_applicable"
    assert_allclose(one_domain.effects[0].estimate, one_domain.by_domain[0].estimate)
    hole = (arms == "pairs") & (domains == "news")
    holed = cell_contrasts.condition_by_domain_model(
        values[~hole], arms[~hole], domains[~hole], who[~hole], items[~hole], reference="none"
    )
    assert holed.interaction.status == "no_data"
    assert [cell.status for cell in holed.cells].count("no_data") == 1
    few = cell_contrasts.condition_by_domain_model(values, arms, domains, who % 5, reference="none")
    assert few.interaction.status == "not_identified"


@pytest.mark.slow
def test_contrasts_and_interactions_keep_their_level_where_annotators_and_texts_differ():
    rejected, runs = np.zeros(3), 1000
    for seed in range(runs):
        draw = rng(seed)
        who = np.repeat(np.arange(160), 5)
        arms, domains = who % 4, who // 4 % 3
        texts = 40 * domains + draw.integers(0, 40, 800)
        lean = draw.normal(0, 0.4, 160)[who] + draw.normal(0, 0.4, 120)[texts]
        model = cell_contrasts.condition_by_domain_model(
            (lean + draw.normal(0, 1, 800) > 0).astype(float), arms, domains, who, texts, reference=0
        )
        rejected += [model.interaction.pvalue < 0.05, model.effects[0].pvalue < 0.05, model.by_domain[0].pvalue < 0.05]
    assert np.all((rejected / runs > 0.02) & (rejected / runs < 0.07)), rejected / runs


def test_contrasts_keep_their_level_with_uneven_activity():
    draw, runs, hits = rng(2), 300, {"people": 0, "people and prompts": 0}
    for _ in range(runs):
        who = np.repeat(np.arange(30), np.minimum(300, 3 + np.floor(2 * draw.pareto(1.1, 30)).astype(int)))
        items, arms = draw.integers(0, 20, len(who)), draw.choice(["a", "b"], len(who))
        lean = draw.normal(0, 0.8, 30)[who] * np.where(arms == "a", 1, -1)
        values = (lean + draw.normal(0, 1, len(who)) > 0).astype(float)
        for used in (None, items):
            found = cell_contrasts.cell_contrast(values, arms, {"a": 1, "b": -1}, who, used)
            hits[found.settings["population"]] += found.pvalue < 0.05
    assert max(hits.values()) / runs <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / runs)
