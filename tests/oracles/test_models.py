"""Fitted models against ordinal, BradleyTerry2, glm, survival, emmeans and pROC."""

import math

import numpy as np
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import best_worst, cell_contrasts, davidson, ratings, signal_detection
from analysis.stats.ratings import _Cumulative
from tests.analysis.stats.davidson.labels import fit_counts, standard_error
from tests.oracles import EXACT, reference

CUMULATIVE, PAIRED, CONDITIONS = reference("cumulative_logit"), reference("paired_comparisons"), reference("conditions")


def strengths(fit):
    """Strengths against the first system."""
    values = np.array([one.estimate for one in fit.strengths])
    return values[1:] - values[0]


def of_ratings(**options):
    rows = CUMULATIVE["data"]
    return ratings.cumulative_logit(rows["rating"], rows["is_x"], rows["person"], system=1.0, reference=0.0, **options)


def test_the_cumulative_logit_is_that_of_clm():
    assert_allclose(of_ratings().estimate, CUMULATIVE["clm"]["beta"], rtol=EXACT)


def test_the_thresholds_and_the_likelihood_are_those_of_clm():
    rows, clm = CUMULATIVE["data"], CUMULATIVE["clm"]
    counts = np.array([np.bincount(rows["rating"][rows["is_x"] == side], minlength=6)[1:] for side in (0, 1)])
    fit = _Cumulative.at(np.array([*clm["thresholds"], clm["beta"]]), counts.astype(float))
    assert_allclose(fit.log_likelihood, clm["log_likelihood"], rtol=EXACT)
    assert_allclose(fit.slope, 0, atol=1e-5)
    assert_allclose(math.sqrt(np.linalg.inv(fit.information)[-1, -1]), clm["se_information"], rtol=EXACT)


def test_one_newton_step_of_the_cumulative_logit_is_close_to_fitting_it_again_without_each_cluster():
    result = of_ratings(prompts=CUMULATIVE["data"]["prompt"])
    for way, ours in (("person", "annotators"), ("prompt", "items")):
        assert_allclose(result.detail[f"variance_{ours}"], CUMULATIVE["refitted"][way], rtol=0.01)


def test_the_cumulative_logit_is_nearer_to_0_than_that_of_one_person():
    """clmm estimates what one person would answer for one prompt. Ours is about all of them together. With normal effects of
    variance v, the two differ by about the factor sqrt(1 + c v), c = (16 sqrt(3) / (15 pi))^2 (Zeger, Liang and Albert 1988).
    The rest is less than a fifth of a standard error, because the two weigh people and prompts differently."""
    clmm = CUMULATIVE["clmm"]
    factor = math.sqrt(1 + (16 * math.sqrt(3) / (15 * math.pi)) ** 2 * sum(clmm["variances"]))
    assert 1.1 < factor < 1.25
    assert of_ratings().estimate < clmm["beta"]
    assert abs(of_ratings().estimate * factor - clmm["beta"]) < 0.2 * clmm["se"]


def test_bradley_and_terry_from_counts():
    expected = PAIRED["bradley_terry"]
    fit = fit_counts(expected["wins"])
    assert_allclose(fit.strengths[1:] - fit.strengths[0], expected["strengths"], rtol=EXACT)
    errors = [standard_error(fit, **{f"of_{system}": 1, "of_0": -1}) for system in (1, 2, 3)]
    assert_allclose(np.square(errors), np.diag(expected["covariance"]), rtol=EXACT)


def test_davidson_from_labels():
    rows, expected = PAIRED["data"], PAIRED["davidson"]
    fit = davidson.fit_davidson(rows["first"], rows["second"], rows["outcome"], rows["person"], n_systems=4)
    assert_allclose([*strengths(fit), fit.tie.detail["log_nu"]], expected["parameters"], rtol=EXACT)
    # One Newton step moves less far than fitting the model again: with twelve people the standard error is 4 % smaller.
    ratio = fit.difference(3, 0).detail["se"] / math.sqrt(expected["refitted"])
    assert 0.95 < ratio < 1.0


def test_davidson_from_counts():
    rows, expected = PAIRED["data"], PAIRED["davidson"]
    wins, ties = np.zeros((4, 4)), np.zeros((4, 4))
    for first, second, outcome in zip(rows["first"], rows["second"], rows["outcome"], strict=True):
        if outcome == 0.5:
            ties[first, second] += 1
            ties[second, first] += 1
        else:
            wins[(first, second) if outcome == 1 else (second, first)] += 1
    fit = fit_counts(wins, ties)
    errors = [standard_error(fit, **{f"of_{system}": 1, "of_0": -1}) for system in (1, 2, 3)]
    assert_allclose(np.square([*errors, standard_error(fit, of_nu=1)]), np.diag(expected["covariance"]), rtol=EXACT)


def test_fractional_bradley_and_terry_with_its_jackknife():
    rows, expected = PAIRED["data"], PAIRED["fractional"]
    fit = davidson.fit_davidson(rows["first"], rows["second"], rows["stated"], rows["person"], n_systems=4, ties="half")
    n = fit.strengths[0].n_clusters
    assert_allclose(strengths(fit), expected["strengths"], rtol=EXACT)
    differences, covariance = (
        [fit.difference(system, 0) for system in (1, 2, 3)],
        (n - 1) / n * np.array(expected["CR3"]),
    )
    assert_allclose([one.detail["se"] ** 2 for one in differences], np.diag(covariance), rtol=EXACT)
    variance = covariance[0, 0] + covariance[2, 2] - 2 * covariance[0, 2]
    assert_allclose(fit.difference(1, 3).detail["se"] ** 2, variance, rtol=EXACT)
    # Shares of the information give 2 to 3 % more degrees of freedom than Bell and McCaffrey's.
    dfs = [one.detail["df"] for one in differences]
    assert np.all(np.divide(dfs, expected["df_CR3"]) < 1.035)
    assert np.all(np.divide(dfs, expected["df_CR3"]) > 1.0)


def test_best_and_worst_in_turn_are_a_conditional_logit():
    expected = reference("best_worst")
    rows = expected["data"]
    fit = best_worst.best_worst_logit(rows["sets"], rows["best"], rows["worst"], rows["person"], n_systems=5)
    assert_allclose(strengths(fit), expected["strengths"], rtol=EXACT)


def condition_model():
    rows = CONDITIONS["data"]
    return cell_contrasts.condition_by_domain_model(
        rows["correct"], rows["condition"], rows["domain"], rows["person"], reference="none"
    )


def test_cells_of_conditions_and_domains_are_those_of_emmeans_with_cr3():
    """One person is in one cell. So the factor of the jackknife has the people of the cells that are compared."""
    model, expected, n = condition_model(), CONDITIONS["identity"], 32
    cells = {(one.settings["condition"], one.settings["domain"]): one for one in model.cells}
    found = expected["cells"]
    for condition, domain, mean, se in zip(*(found[key] for key in ("condition", "domain", "mean", "se")), strict=True):
        ours = cells[condition, domain]
        assert_allclose(ours.estimate, mean, rtol=EXACT)
        assert_allclose(ours.detail["se"] ** 2, (ours.n - 1) / ours.n * se**2, rtol=EXACT)
    for ours, estimate, se in zip(model.by_domain, *expected["by_domain"].values(), strict=True):
        assert_allclose(ours.estimate, estimate, rtol=EXACT)
        assert_allclose(ours.detail["se"] ** 2, (ours.n - 1) / ours.n * se**2, rtol=EXACT)
    effect = expected["effect"]
    assert_allclose(model.effects[0].estimate, effect["estimate"], rtol=EXACT)
    assert_allclose(model.effects[0].detail["se"] ** 2, (n - 1) / n * effect["se"] ** 2, rtol=EXACT)
    interaction = expected["interaction"]
    statistic = (interaction["estimate"] / interaction["se"]) ** 2 * n / (n - 1)
    assert_allclose(model.interaction.detail["contrasts"], [interaction["estimate"]], rtol=EXACT)
    assert_allclose(model.interaction.test.statistic, statistic, rtol=EXACT)


def test_contrasts_of_cells_have_intervals_as_wide_as_those_of_cr2():
    """Four means are estimated, and 1 / sum w^2 - 1 counts one. So it has 6 to 11 % more degrees of freedom than CR2. The
    jackknife's standard error is larger than CR2's, and the intervals are a little wider."""
    model = condition_model()
    for ours, expected in ((model.effects[0], CONDITIONS["effect"]), (model.by_domain[0], CONDITIONS["news"])):
        assert 1.0 < ours.detail["df"] / expected["df_CR2"] < 1.12
        widths = [stats.t.ppf(0.975, df) * se for se, df in ((ours.detail["se"], ours.detail["df"]), expected.values())]
        assert 1.0 < widths[0] / widths[1] < 1.06
    assert abs(model.interaction.pvalue - CONDITIONS["htz"]["p_val"]) < 0.01


def graded(people):
    rows = reference("auc")["data"]
    options = {"rng": np.random.default_rng(0), "sensitivity_resamples": 99}
    return signal_detection.graded_auc(
        rows["rating"], rows["is_machine"], rows["person"] if people else range(60), **options
    )


def test_the_area_under_the_curve_is_that_of_proc_and_its_jackknife_fits_it_again():
    expected = reference("auc")
    assert_allclose(graded(people=True).estimate, expected["auc"], rtol=EXACT)
    assert_allclose(graded(people=True).detail["se"] ** 2, expected["refitted"], rtol=EXACT)


def test_with_one_rating_per_person_the_variance_of_the_area_is_that_of_delong_times_its_factor():
    """DeLong divides by m for each kind, a jackknife by m - 1, and has the factor (N - 1) / N of all N = 2 m ratings."""
    assert_allclose(
        graded(people=False).detail["se"] ** 2, reference("auc")["delong_variance"] * 59 / 60 * 30 / 29, rtol=EXACT
    )
