"""The page of the statistics that notebooks may use. The list here decides what is public and documented in full."""

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from .markdown import build_page, inline_code, markdown_table

PUBLIC: dict[str, tuple[str, ...]] = {
    "basic": (
        "clopper_pearson_interval",
        "one_sample_t_test",
        "proportion",
        "sign_test",
        "welch_t_test",
        "wilcoxon",
        "wilson_interval",
    ),
    "betting": ("betting_interval", "log_wealth"),
    "effects": ("cohen_d", "hedges_correction"),
    "margins": ("equivalence_test_from_se", "margin_test"),
    "multiplicity": ("adjust_pvalues_and_intervals_of_family", "holm"),
    "clusters": ("annotator_prompt_clustered_mean", "clustered_mean", "two_way_clustered_mean"),
    "cluster_models": ("clustered_regression",),
    "cluster_variances": ("effective_n_clusters", "variance_components"),
    "groups": ("pairwise_comparisons",),
    "cell_contrasts": ("cell_contrast",),
    "between_studies": ("compare_studies",),
    "opinions": ("opinions_of_groups",),
    "unpaired": ("mean_difference", "probability_of_superiority"),
    "ratings": (
        "expected_utility",
        "paired_difference_paper",
        "paired_mean_difference",
        "probability_of_superiority",
        "rating_change_per_position",
        "sign_and_wilcoxon_tests",
    ),
    "spa": ("combine_orders", "gap_preference_correlation", "pair_preference_paper"),
    "prompt_samples": ("two_prompt_samples_mean",),
    "coherence": ("coherence",),
    "choice": ("simulate_effort_to_decision",),
    "sequential": ("hoeffding_decision",),
    "stopping_boundaries": (
        "beta_binomial_boundaries",
        "beta_binomial_log_e_values",
        "group_sequential_design",
        "hoeffding_boundaries",
    ),
    "davidson": ("fit_davidson",),
    "vote_ratings": ("paired_ratings",),
    "ranks": ("rank_confidence_sets_from_rows", "rank_confidence_sets_from_spread", "simultaneous_scores"),
    "detection": ("clustered_accuracy", "marginal_criterion", "marginal_d_prime", "mean_annotator_accuracy"),
    "signal_detection": (
        "accuracy_by_annotator",
        "detection_measures",
        "signal_detection",
    ),
    "agreement": ("fleiss_kappa", "gwet_ac1", "krippendorff_alpha"),
    "reliability": ("split_half_reliability",),
    "coding": ("cohen_kappa",),
    "annotator_models": ("severity",),
    "mixture": ("is_noisy", "noisy_annotator_posterior", "screen_annotators_by_question_type"),
    "judges": ("judge_agreement",),
    "judge_assisted": ("plan_labels_with_judge", "prediction_powered_mean"),
    "metrics": (
        "pairwise_accuracy",
        "segment_level_kendall_tau",
        "soft_pairwise_accuracy",
        "system_level_correlations",
        "tie_calibrated_accuracy",
    ),
    "board_scores": ("design_effect", "double_label_share", "system_score_in_points", "worst_case_se_in_points"),
    "board_rounds": ("equated_scores",),
    "leaderboard": ("leaderboard",),
    "planning.closed_forms": ("quick_plan",),
    "planning.pilot_estimates": ("estimate_pilot",),
    "power_of_means": (
        "anova_power",
        "equivalence_power",
        "t_test_detectable_difference",
        "t_test_power",
        "two_sample_t_test_power",
    ),
    "power_of_shares": ("paired_proportions_power", "proportion_power", "two_proportions_power"),
}


def summary(documented: Any) -> str:
    """Return the first sentence of a docstring."""
    return " ".join((inspect.getdoc(documented) or "").partition("\n\n")[0].split())


def statistics_page() -> str:
    parts = []
    for name, functions in PUBLIC.items():
        module = importlib.import_module(f"analysis.stats.{name}")
        found: list[tuple[str, Callable[..., Any]]] = [(one, getattr(module, one)) for one in functions]
        rows = [(inline_code(one), summary(function)) for one, function in found]
        parts += [f"## {module.__name__}", summary(module), markdown_table(("Function", "What it does"), rows)]
    return build_page(
        "Statistics for notebooks",
        "These functions take arrays and return frozen records, without a database. `help(function)` shows the "
        "parameters, shapes, formulas and sources. Other names of `analysis.stats` may change without a note.",
        "Parameters of these names mean the same everywhere: `level` is the confidence level of the interval, between "
        "0 and 1; `null` the value of the null hypothesis; `bounds` the ends of the scale, to which intervals are "
        "clipped; `rng` the generator of random numbers; `resamples` the number of bootstrap resamples; `annotators`, "
        "`items` and `prompts` label the clusters of each row.",
        *parts,
    )
