"""Write the warnings of an estimate as sentences: what is wrong, with its numbers, and what to do.

``SENTENCES`` has a template, or a function of the warning, for each code. A field of a template is a key of the warning's
``detail``. Its format ``percent`` prints a share, and a noun, such as ``{n:annotator}``, prints a count ("3 annotators").
"""

from collections.abc import Callable, Container, Iterable, Mapping
from string import Formatter
from typing import TYPE_CHECKING, Any

from . import cells

if TYPE_CHECKING:
    from analysis.stats.results import ResultWarning

# The gravest severity first, each with the label before its sentences.
SEVERITY_LABELS = {"block": "No claim", "warn": "Warning", "info": "Note"}
SEVERITIES = tuple(SEVERITY_LABELS)
MAX_WARNINGS = 3


def _few_clusters(warning: "ResultWarning") -> str:
    from analysis.stats.cluster_variances import FEW_CLUSTERS

    n, noun = warning.detail["n_clusters"], _noun_of_cluster(warning)
    counted, goal = cells.format_count(n, noun), cells.format_count(FEW_CLUSTERS, noun)
    subject = f"Only {counted} {'is' if n == 1 else 'are'} behind this number"
    if warning.severity == "block":
        return f"{subject}, which is too few for a claim. Collect answers for at least {goal}."
    if n < FEW_CLUSTERS:
        return f"{subject}, so its interval is uncertain. Collect answers for at least {goal}."
    effective = cells.format_number(warning.detail["effective"], 0)
    return f"The answers are so unequally divided among {counted} that they count like {effective}. Collect answers for more {cells.plural_noun(noun)}."


def _few_batches(warning: "ResultWarning") -> str:
    n = warning.detail["n_batches"]
    found = "All batches share prompts with others" if n == 1 else f"Batches form only {n} sets that share no prompt"
    return f"{found}, so the claim is about exactly these prompts. Give batches prompts of their own."


def _dominant_annotator(warning: "ResultWarning") -> str:
    noun, share = _noun_of_cluster(warning), cells.format_percent(warning.detail["largest_share"])
    return f"One {noun} has {share} of the answers, so the result depends on it. Collect answers for more {cells.plural_noun(noun)}."


def _betting_instead_of_t(warning: "ResultWarning") -> str:
    detail = warning.detail
    reasons = {
        "no spread": "Answers hardly vary",
        "skewed": "Answers are very uneven",
        "few clusters": "Annotators or prompts are few",
    }
    said = f"{reasons[detail['why']]}, so bets replace the t test."
    if "needed" not in detail:
        # Stored before the advice was computed.
        return f"{said} They are valid but cautious."
    needed = " and ".join(
        cells.format_count(n, "prompt" if name == "item" else name) for name, n in detail["needed"].items()
    )
    narrower = cells.format_percent(1 - detail["width_with_needed"] / detail["width"])
    if detail["is_narrower"]:
        return f"{said} {needed} would narrow the interval by {narrower}."
    return f"{said} Even {needed} would narrow the interval by only {narrower}."


def _small_n_skew(warning: "ResultWarning") -> str:
    skewness = cells.format_number(warning.detail["skewness"])
    more = cells.plural_noun(_noun_of_cluster(warning)) if "cluster" in warning.detail else "annotators"
    return (
        f"The answers are so skewed (skewness {skewness}) that interval and p-value may be wrong. Collect answers "
        f"{'about' if more == 'prompts' else 'from'} more {more}."
    )


def _all_excluded(warning: "ResultWarning") -> str:
    rule = warning.detail.get("rule", "tau")
    return _FORMATTER.format(
        "The rule “{rule}” excludes all {n:annotator}, so nothing can be estimated. Check the settings of the rule.",
        rule=rule,
        n=warning.detail["n"],
    )


def _annotators_ignored(warning: "ResultWarning") -> str:
    n = warning.detail["n"] if "n" in warning.detail else warning.detail["n_annotators"]
    return (
        f"The answers of {cells.format_count(n, 'annotator')} count as independent, so this uncertainty is too small. "
        "Use the recommended estimate."
    )


def _third_labels_miscounted(warning: "ResultWarning") -> str:
    counting = warning.detail["counting"].replace("_", " ")
    return (
        f"Third labels are counted “{counting}”, although only a disagreement needs one, so this effort is wrong. "
        "Count them “on disagreement”."
    )


SENTENCES: Mapping[str, str | Callable[["ResultWarning"], str]] = {
    "all_excluded": _all_excluded,
    "annotators_ignored": _annotators_ignored,
    "attenuated_by_item_noise": "Noise from only {n_items:item} makes this agreement too low. Collect ratings of more items, or read it as a "
    "lower bound.",
    "betting_instead_of_t": _betting_instead_of_t,
    "ceiling": "{largest_share:percent} of the answers are equal, so a wider betting interval replaces the usual one. Use harder prompts "
    "or more annotators.",
    "circular": "The rule “{rule}” removes answers with a large gap, so the gap cannot be estimated. Use the estimate without this rule.",
    "collinear": "The other criteria explain {explained:percent} of “{criterion}”, so its weight is uncertain. Merge or remove criteria "
    "that overlap.",
    "decided_only": "{share_undecided:percent} of the runs did not decide and are left out, so the mean is too low. Use the recommended "
    "estimate.",
    "dominant_annotator": _dominant_annotator,
    "drift": "The answers changed during collection: after number {at}, no single mean fits them. Find the cause, then collect answers again.",
    "extremum_violation": "{n} of {of} annotators rated the best reference no higher than the worst, so their ratings are left out. Check "
    "the references.",
    "few_batches": _few_batches,
    "prompts_unknown": "The prompts of {n_annotators:annotator} are unknown, so the claim is about exactly these prompts. To know them, {to_know_them}.",
    "few_clusters": _few_clusters,
    "fixed_n_bound": "This bound is valid for one fixed number of labels, but it was checked after each label. Use the recommended estimate.",
    "hindsight": "This decision uses all {n_answers:answer}, so nobody could know it during collection. Use the recommended estimate.",
    "levels_not_paired": "Nobody answered at all compared exposures ({n:annotator} answered at some), so nothing is compared. Show each "
    "annotator all exposures.",
    "narrow_references": "{n} of {of} annotators rated the references almost alike, so their ratings are left out. Choose references that "
    "differ more.",
    "no_references": "No references rescale the ratings, so these are mean ratings, not utilities. Add references, or compare only "
    "systems of this study.",
    "not_identified": "The answers do not determine this number; only a penalty keeps it finite. Collect comparisons that connect all systems.",
    "not_side_by_side": "Differences between annotators or prompts widen this interval. For a narrower one, let each annotator judge both "
    "systems for the same prompt.",
    "open_items": "A third label is missing for {n_open:item}, so only the first {n_used:item} count. Collect the missing labels, then "
    "analyse again.",
    "optional_stopping": "Collection stopped once the evidence was strong, which favours large estimates. Rely on the interval, not on the "
    "estimate alone.",
    "order_not_identified": "One system was always named first, so its position may explain its advantage. Ask the pair in both orders.",
    "perfect_spared": "The model flagged {n:annotator} without any mistake; the screening keeps them. Ask more test questions.",
    "rare_label": "The label was applied in {n_applied} of {n_codings} codings, so its kappa is unstable. Code more texts.",
    "references_not_rated": "{n} of {of} annotators did not rate the references, so their ratings are left out. Ask them about the references.",
    "single_order": "For {n:annotator}, only one order was asked, so the position of a name affects their answers. Ask everyone in both orders.",
    "small_expected": "The smallest expected count is {smallest}, so the chi-square p-value is inaccurate. Merge groups or collect more answers.",
    "small_n_skew": _small_n_skew,
    "tau_asymmetric": "Gaps correlate with answers (r = {correlation}), so the tau rule excludes one side more often. Use the estimate "
    "without this rule.",
    "tau_one_order_bias": "The tau rule with one order biases this number {direction}. Ask both orders, and use the recommended estimate.",
    "third_labels_miscounted": _third_labels_miscounted,
    "undecidable_pairs": "The order of {n:pair} of systems cannot be decided, because their differences hardly vary. Collect more answers "
    "about them.",
    "undecided": "{share_undecided:percent} of the runs did not decide, so the true mean is higher. Simulate with more labels.",
    "undefined_resamples": "{share:percent} of the resamples gave no number, so the interval is uncertain. Collect more answers.",
    "uninformative_prior": "The prior contains no information, so a few test questions decide who is noisy. Ask more test questions.",
}

# Codes without a sentence, each with the reason. The JSON result contains them.
INTERNAL = {
    "calibrated_on_these_data": "info: no claim is about a metric",
    "incomplete_pairs": "info: no claim is about exposures, and the table of exposures has the counts",
    "interval_scale_assumed": "info: it is true of every difference of mean ratings; the share of higher ratings does not assume it",
    "judge_of_own_family": "the page of judges says it beside the numbers",
    "people_left_out": "the pages of judges say which sample is missing",
    "people_unknown": "the page of judges says what unknown annotators rule out",
    "not_one_scale": "info: no claim is about cycles",
    "same_requests": "info: no claim is about simulated runs",
}


def warning_sentence(warning: "ResultWarning") -> str:
    """Return the sentence of a warning. A code that only a protocol of others has gives a sentence with the code.

    >>> from analysis.stats.results import ResultWarning
    >>> warning_sentence(ResultWarning("few_batches", "warn", {"n_batches": 4}))
    'Batches form only 4 sets that share no prompt, so the claim is about exactly these prompts. Give batches prompts of their own.'
    """
    sentence = SENTENCES.get(warning.code)
    if sentence is None:
        name = warning.code.replace("_", " ")
        return f"This number has the warning “{name}”. Read its detail in the JSON result before you use the number."
    return sentence(warning) if callable(sentence) else _FORMATTER.vformat(sentence, (), warning.detail)


def gravest_warnings_with_sentences(warnings: Iterable["ResultWarning"]) -> list[dict[str, str]]:
    """Return the warnings to print beside a claim: at most three, the gravest first, each with its sentence."""
    shown = [warning for warning in warnings if warning.code not in INTERNAL]
    codes = {warning.code for warning in shown}
    texts: dict[str, dict[str, str]] = {}
    for warning in sorted(shown, key=lambda one: SEVERITIES.index(one.severity)):
        if not _is_said_by_another(warning, codes):
            text = _few_of_each(shown) if _is_few(warning) else warning_sentence(warning)
            texts.setdefault(text, {"code": warning.code, "severity": warning.severity, "text": text})
    return list(texts.values())[:MAX_WARNINGS]


def _is_said_by_another(warning: "ResultWarning", codes: Container[str]) -> bool:
    """Return whether a graver warning with one of the codes says what this one says."""
    if warning.code == "betting_instead_of_t":
        return warning.detail["why"] == "few clusters" and "few_clusters" in codes
    return warning.code == "single_order" and "order_not_identified" in codes


def _is_few(warning: "ResultWarning") -> bool:
    """Return whether the warning is about a small number of clusters that still allows a claim."""
    from analysis.stats.cluster_variances import FEW_CLUSTERS

    is_claim_possible = warning.code == "few_clusters" and warning.severity == "warn"
    return is_claim_possible and warning.detail["n_clusters"] < FEW_CLUSTERS


def _few_of_each(warnings: Iterable["ResultWarning"]) -> str:
    """Return one sentence for all small numbers of clusters, such as annotators and prompts."""
    from analysis.stats.cluster_variances import FEW_CLUSTERS

    few = [warning for warning in warnings if _is_few(warning)]
    counted = [cells.format_count(warning.detail["n_clusters"], _noun_of_cluster(warning)) for warning in few]
    counted = list(dict.fromkeys(counted))
    if len(counted) == 1:
        return warning_sentence(few[0])
    listed = f"{', '.join(counted[:-1])} and {counted[-1]}"
    return f"Only {listed} are behind this number, so its interval is uncertain. Collect answers for at least {FEW_CLUSTERS} of each."


def _noun_of_cluster(warning: "ResultWarning") -> str:
    noun = str(warning.detail["cluster"])
    return "prompt" if noun == "item" else noun


class _WarningFormatter(Formatter):
    """Format the fields of a sentence; see the module."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec == "percent":
            return cells.format_percent(value, 0 if value >= 0.01 else 1)
        if format_spec:
            return cells.format_count(value, format_spec)
        return cells.format_number(value) if isinstance(value, float) else str(value)


_FORMATTER = _WarningFormatter()
