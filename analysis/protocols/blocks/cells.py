"""Read the parts of an estimate for tables, figures and sentences, with numbers in APA style."""

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any

from studies.design.subjects import OVERALL, join_words

from .comparisons import NOT_PLANNED

if TYPE_CHECKING:
    from analysis.stats.claims import Claim
    from analysis.stats.results import Estimate, HypothesisTest, Interval


# What a group of prompts is called where the study has no word for it.
GROUP = "group of prompts"

# Format numbers in APA style, for pages, sentences and LaTeX.
#
# Numbers that cannot exceed 1 (probabilities, p, alpha) have no leading zero. p has three decimals and is never
# ".000". An undefined number is a dash.


UNDEFINED = "–"
# The usual level of a test. A p-value beside it is printed with enough decimals to be on its side of it.
LEVEL = 0.05
MAX_DIGITS = 6
MINUS = "−"
# How p-values were adjusted: what such a value is called, and the method in words.
ADJUSTMENT_NAMES = {
    "holm": ("Holm-adjusted p", "Holm's method"),
    "hommel": ("Hommel-adjusted p", "Hommel's method"),
    "bonferroni": ("Bonferroni-adjusted p", "Bonferroni's method"),
    "benjamini_hochberg": ("FDR-adjusted p", "Benjamini and Hochberg's method"),
    "games_howell": ("Games–Howell p", "the procedure of Games and Howell"),
    "tukey_hsd": ("Tukey-adjusted p", "Tukey's procedure"),
    "max_t": ("max-t-adjusted p", "the largest of all t values"),
}
# Readers expect that the interval and the adjusted p agree.
SIMULTANEOUS_NOTE = (
    "p and intervals of the comparisons both account for their number by Bonferroni's method, so they always agree. "
    "Other intervals account for no number."
)
NO_AGREEING_INTERVALS_NOTE = (
    "In families with Holm's or Hommel's method, p accounts for the number by that method, and each interval is that of its "
    "comparison alone."
)
NOT_TESTED_NOTE = (
    "A comparison without p was not tested, because the family before its own was not shown; its numbers only describe."
)
STATISTIC_LETTERS = {
    "one_sample_t": "t",
    "paired_t": "t",
    "clustered_t": "t",
    "clustered_score_t": "t",
    "welch_t": "t",
    "mixed": "t",
    "tost": "t",
    "two_way_t": "t",
    "two_way_score_t": "t",
    "two_way_cluster": "t",
}


def format_number(value: float | None, digits: int = 2) -> str:
    """Format a number with a fixed number of decimals: "0.82", "−1.20".

    >>> format_number(0.817), format_number(-1.2), format_number(0.675), format_number(None)
    ('0.82', '−1.20', '0.68', '–')
    """
    if value is None:
        return UNDEFINED
    text = _plain(value, digits)
    if text.startswith("-"):
        # A value that rounds to zero has no sign.
        text = MINUS + text[1:] if float(text) else text[1:]
    return text


def _plain(value: float, digits: int) -> str:
    # Round halves up in decimal notation, so that .675 is .68 in a table and 68 % in a sentence.
    return str(Decimal(repr(round(float(value), 12))).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def format_proportion(value: float | None, digits: int = 2) -> str:
    """Format a number that cannot exceed 1 in size, without its leading zero.

    >>> format_proportion(0.63), format_proportion(-0.05, 3), format_proportion(1.0)
    ('.63', '−.050', '1.00')
    """
    text = format_number(value, digits)
    return text.replace("0.", ".", 1) if text.lstrip(MINUS).startswith("0.") else text


def format_percent(value: float | None, digits: int = 0) -> str:
    """Format a share in 0..1 as a percentage: "63 %".

    >>> format_percent(0.634), format_percent(0.634, 1)
    ('63 %', '63.4 %')
    """
    return UNDEFINED if value is None else f"{format_number(100 * value, digits)} %"


def digits_to_distinguish(values: Sequence[float | None], digits: int, references: Sequence[float] = ()) -> int:
    """Return the number of decimals that prints different values differently, at least ``digits``.

    ``references``: values, such as the null, from which each of the values must differ in print if it is another one.

    >>> digits_to_distinguish([55.1, 55.4], 0), digits_to_distinguish([55.1, 60.4], 0), digits_to_distinguish([1.5, 1.5], 2)
    (1, 0, 2)
    >>> digits_to_distinguish([63.0, 50.04], 0, [50]), digits_to_distinguish([63.0, 50.0], 0, [50])
    (2, 0)
    """
    different = {value for value in values if value is not None}
    while digits < MAX_DIGITS and (
        len({format_number(value, digits) for value in different}) < len(different)
        or any(_looks_like(value, reference, digits) for value in different for reference in references)
    ):
        digits += 1
    return digits


def digits_of_estimate_and_bounds(
    estimate: float | None, bounds: Sequence[float] | None, digits: int, references: Sequence[float]
) -> int:
    """Return the decimals that distinguish the three values, and the ends (or the estimate alone) from the ``references``."""
    digits = digits_to_distinguish([estimate, *(bounds or ())], digits)
    return digits_to_distinguish(bounds or [estimate], digits, references)


def exact_digits(value: float, digits: int) -> int:
    """Return the number of decimals that a declared value has, at least ``digits``.

    >>> exact_digits(45, 0), exact_digits(47.5, 0), exact_digits(-0.3, 2)
    (0, 1, 2)
    """
    return next((n for n in range(digits, MAX_DIGITS) if round(value, n) == value), MAX_DIGITS)


def _looks_like(value: float, reference: float, digits: int) -> bool:
    """Return whether a value is printed as another one: as the reference, or beyond it."""
    if math.isclose(value, reference, rel_tol=0, abs_tol=1e-9):
        return False
    printed, limit = Decimal(_plain(value, digits)), Decimal(repr(round(float(reference), 12)))
    return printed == limit or (printed > limit) != (value > reference)


def format_estimate_with_bounds(
    estimate: float | None, bounds: Sequence[float] | None, kind: str = "percent", references: Sequence[float] = ()
) -> tuple[str, str, str]:
    """Format an estimate and the ends of its interval for a sentence, with enough decimals to distinguish them.

    An end that is not one of the ``references`` is not printed like it.

    >>> format_estimate_with_bounds(0.552, [0.551, 0.554]), format_estimate_with_bounds(0.62, [0.5, 0.7]), format_estimate_with_bounds(1.2, None, "number")
    (('55.2 %', '55.1 %', '55.4 %'), ('62 %', '50 %', '70 %'), ('1.20', '–', '–'))
    >>> format_estimate_with_bounds(0.63, [0.503, 0.76], references=[0.5])
    ('63.0 %', '50.3 %', '76.0 %')
    """
    factor, least = (100, 0) if kind == "percent" else (1, 2)
    scaled = None if estimate is None else factor * estimate
    ends = None if bounds is None else [factor * value for value in bounds]
    digits = digits_of_estimate_and_bounds(scaled, ends, least, [factor * value for value in references])
    format_value = format_percent if kind == "percent" else format_number
    middle, low, high = (format_value(value, digits) for value in (estimate, *(bounds or (None, None))))
    return middle, low, high


def format_pvalue(value: float | None, level: float = LEVEL) -> str:
    """Format a p-value: ".034", "< .001". One that is not the level of its test is not printed like it.

    >>> format_pvalue(0.0342), format_pvalue(0.0), format_pvalue(0.9996), format_pvalue(0.0498), format_pvalue(0.05)
    ('.034', '< .001', '> .999', '.0498', '.050')
    """
    if value is None:
        return UNDEFINED
    if value < 0.001:
        return "< .001"
    return "> .999" if value > 0.9995 else format_proportion(value, digits_to_distinguish([value], 3, [level]))


def format_equation(name: str, formatted_value: str) -> str:
    """Return name = value, or name < value if the printed value has a sign.

    >>> format_equation("p", "< .001"), format_equation("p", ".034")
    ('p < .001', 'p = .034')
    """
    return f"{name} {formatted_value}" if formatted_value[:1] in "<>" else f"{name} = {formatted_value}"


def format_interval(
    bounds: Sequence[float] | None, kind: str = "proportion", digits: int = 2, references: Sequence[float] = ()
) -> str:
    """Format [low, high], with more decimals if the two ends would look the same, or one like another value of ``references``.

    >>> format_interval([0.57, 0.69]), format_interval([-1, 0.5], "number"), format_interval(None), format_interval([0.551, 0.554])
    ('[.57, .69]', '[−1.00, 0.50]', '–', '[.551, .554]')
    >>> format_interval([0.503, 0.69], references=[0.5]), format_interval([-0.002, 0.5], "number", references=[0, 0.5])
    ('[.503, .690]', '[−0.002, 0.500]')
    """
    if bounds is None:
        return UNDEFINED
    format_value = format_proportion if kind == "proportion" else format_number
    digits = digits_to_distinguish(bounds, digits, references)
    return f"[{format_value(bounds[0], digits)}, {format_value(bounds[1], digits)}]"


def format_degrees_of_freedom(value: float | None) -> str:
    """Format degrees of freedom: whole numbers as they are, others with one decimal.

    >>> format_degrees_of_freedom(89.0), format_degrees_of_freedom(27.62)
    ('89', '27.6')
    """
    if value is None:
        return ""
    return f"{value:.0f}" if abs(value - round(value)) < 1e-9 else f"{value:.1f}"


def format_confidence_level(estimate: "Estimate") -> str:
    """Return the confidence level of an estimate's interval as text, or '' if it has no interval.

    An interval that is adjusted for several comparisons is called simultaneous: all of them hold jointly at this level.
    """
    if not estimate.interval or not interval_bounds(estimate):
        return ""
    return f"{100 * estimate.interval.level:g} %{' simultaneous' if has_simultaneous_interval(estimate) else ''}"


def has_simultaneous_interval(estimate: "Estimate") -> bool:
    """Return whether the interval that is printed is adjusted for several comparisons."""
    return estimate.interval_adjusted is not None and bool(estimate.test and (estimate.test.family_size or 1) > 1)


def format_test_statistic(test: "HypothesisTest") -> str:
    """Return the statistic, such as t(89) = 6.30, or '' if it has no letter."""
    letter = STATISTIC_LETTERS.get(test.name)
    if letter is None or test.statistic is None:
        return ""
    df = format_degrees_of_freedom(test.df)
    return f"{letter}({df}) = {format_number(test.statistic)}" if df else f"{letter} = {format_number(test.statistic)}"


def format_named_pvalue(test: "HypothesisTest | None", level: float = LEVEL) -> str:
    """Return the p-value of a test at a level with its name, adjusted if the test is: in a family, or behind one."""
    if test is None:
        return ""
    is_adjusted = (test.family_size or 2) > 1 or test.pvalue_adjusted != test.pvalue
    if test.pvalue_adjusted is not None and test.adjust is not None and is_adjusted:
        return format_equation(ADJUSTMENT_NAMES[test.adjust][0], format_pvalue(test.pvalue_adjusted, level))
    return format_equation("p", format_pvalue(test.pvalue, level))


def format_count(n: int, noun: str) -> str:
    """Format a number with its noun.

    >>> format_count(1, "annotator"), format_count(29, "annotator"), format_count(2, "batch"), format_count(2, "group of prompts")
    ('1 annotator', '29 annotators', '2 batches', '2 groups of prompts')
    """
    head, of, rest = noun.partition(" of ")
    if of:
        return f"{format_count(n, head)}{of}{rest}"
    return f"{n} {noun}" if n == 1 else f"{n} {noun}{'es' if noun.endswith(('ch', 's', 'x')) else 's'}"


def listed(names: Sequence[str], last: str = "and") -> str:
    """Join names as a sentence does.

    >>> listed(["a"]), listed(["a", "b", "c"], "or")
    ('a', 'a, b or c')
    """
    return f"{', '.join(names[:-1])} {last} {names[-1]}" if len(names) > 1 else "".join(names)


def plural_noun(noun: str) -> str:
    return format_count(2, noun).removeprefix("2 ")


def format_sample_size(n: int, unit: str) -> str:
    """Format n with its unit.

    >>> format_sample_size(1, "annotator"), format_sample_size(2, "batch")
    ('n = 1 annotator', 'n = 2 batches')
    """
    return f"n = {format_count(n, unit)}"


def format_result_line(estimate: "Estimate", symbol: str, kind: str = "proportion") -> str:
    """Format an estimate in one line: "P = .63, 95% CI [.57, .69], t(28) = 4.40, Holm-adjusted p < .001, d = 0.82, n = 29 annotators"."""
    format_value = format_proportion if kind == "proportion" else format_number
    claim = claim_of(estimate)
    bounds = finite_bounds(claim.interval)
    digits = digits_of_estimate_and_bounds(estimate.estimate, bounds, 2, claim.references)
    parts = [format_equation(symbol, format_value(estimate.estimate, digits))]
    if estimate.interval and bounds:
        kind_of_interval = "simultaneous CI" if has_simultaneous_interval(estimate) else "CI"
        parts.append(
            f"{100 * estimate.interval.level:g}% {kind_of_interval} {format_interval(bounds, kind, digits, claim.references)}"
        )
    if is_not_tested(estimate):
        parts.append("not tested")
    elif estimate.test:
        if claim.limit is not None:
            sign = "≥" if claim.is_lower_better else "≤"
            parts.append(f"H0: {symbol} {sign} {format_value(claim.limit, exact_digits(claim.limit, digits))}")
        pvalue = format_named_pvalue(estimate.test, claim.level)
        parts += [part for part in (format_test_statistic(estimate.test), pvalue) if part]
    if estimate.effect:
        parts.append(format_equation("d", format_number(estimate.effect.value)))
    parts.append(format_sample_size(estimate.n, estimate.unit))
    return ", ".join(parts)


# Read the parts of an estimate for tables, figures and sentences, and compare it with the expectation.


# In the place of a p-value or a verdict of an estimate that a warning of severity "block" concerns.
NO_CLAIM = "no claim"
MARGIN_VERDICT_LABELS = {
    "noninferior": "not worse by more than the margin",
    "noninferior_but_worse": "worse, by less than the margin",
    "superior_by_margin": "better by more than the margin",
}
EXPECTATION_LABELS = {">": "x > y", "<": "x < y", "~": "x ~ y", "": ""}


def interval_bounds(estimate: "Estimate | None") -> list[float] | None:
    """Return the interval that agrees with ``reported_pvalue``, or None if it is missing or not finite."""
    return None if estimate is None else finite_bounds(estimate.interval_adjusted or estimate.interval)


def finite_bounds(interval: "Interval | None") -> list[float] | None:
    """Return the ends of an interval, or None if it is missing or not finite."""
    bounds = [interval.low, interval.high] if interval else []
    return bounds if bounds and all(map(math.isfinite, bounds)) else None


def claim_of(estimate: "Estimate") -> "Claim":
    """Return what may be claimed from an estimate. Sentences, tables and lines in APA style print this record only."""
    from analysis.stats.claims import claim_of_estimate

    return claim_of_estimate(estimate)


def reported_pvalue(estimate: "Estimate | None") -> float | None:
    """Return the p-value of an estimate, adjusted if it has a family. What its family's order left untested has none."""
    if estimate is None or estimate.test is None or is_not_tested(estimate):
        return None
    return estimate.test.pvalue if estimate.test.pvalue_adjusted is None else estimate.test.pvalue_adjusted


def pvalue_cell(estimate: "Estimate | None") -> float | str | None:
    """Return the cell of a table for the reported p-value: "no claim" in its place if a warning forbids a claim."""
    pvalue = reported_pvalue(estimate)
    return NO_CLAIM if pvalue is not None and estimate is not None and estimate.supports_no_claim else pvalue


def significance_stars(estimate: "Estimate | None") -> str:
    return (estimate and estimate.test and estimate.test.stars) or ""


def is_not_tested(estimate: "Estimate") -> bool:
    """Return whether the comparison was not tested, because the family before its own was not shown."""
    return estimate.detail.get("verdict") == "not_tested"


def is_sequential(estimate: "Estimate") -> bool:
    """Return whether a stopping rule decided the number of labels."""
    from analysis.stats import claims

    return claims.is_sequential(estimate)


def verdict_text(estimate: "Estimate", if_open: str = "inconclusive") -> str:
    """Return the verdict of a tested estimate in words."""
    if not estimate.test:
        return ""
    if estimate.supports_no_claim and not is_not_tested(estimate):
        return NO_CLAIM
    claim = claim_of(estimate)
    verdict = str(claim.verdict or if_open)
    return f"{MARGIN_VERDICT_LABELS.get(verdict, verdict.replace('_', ' '))}{unclaimed_phrase(claim)}"


def unclaimed_phrase(claim: "Claim") -> str:
    """Return ", no claim “worse”" if another family gets the level that the claim would use, or ''."""
    by_margin = " by the margin" if "not" in claim.unclaimed else ""
    return f", no claim “{claim.unclaimed}{by_margin}”" if claim.withheld == "gate" else ""


def comparisons_note(estimates: Iterable["Estimate"]) -> str:
    """Return what readers of a table of comparisons must know: which people and prompts they are about, and other limits.

    >>> comparisons_note([])
    ''
    """
    estimates = list(estimates)
    return population_note(estimates) + claims_note(estimates)


def claims_note(estimates: Iterable["Estimate"]) -> str:
    """Return the sentence below a table about the comparisons that were tested for a claim by a margin, or ''."""
    limits = [
        f"{comparison_label(one)}: {claim.limit:g}"
        + (f", by the {100 * claim.interval.level:g} % interval" if claim.interval else "")
        for one in estimates
        if (claim := claim_of(one)).limit is not None and one.test
    ]
    return f" p tests the limit that the margin sets in {'; '.join(dict.fromkeys(limits))}." if limits else ""


def population_note(estimates: Sequence["Estimate"]) -> str:
    """Return the sentence below a table about which people and prompts its comparisons are about, or '' if none says it.

    >>> population_note([])
    ''
    """
    populations = {estimate.settings.get("population") for estimate in estimates if estimate.estimate is not None}
    named = populations & {"people", "people and prompts"}
    if not named:
        return ""
    if named == {"people"}:
        return " Comparisons are about people like these, and exactly these prompts."
    exception = (
        "; those of fewer than five prompts, of a stopping rule, or declared so, are about exactly these"
        if len(named) > 1
        else ""
    )
    counted = groups_phrase(estimate.detail for estimate in estimates)
    return f" Comparisons are about people and prompts like these{exception}." + (
        f" They {counted}." if counted else ""
    )


def groups_phrase(details: Iterable[Mapping[str, Any]]) -> str:
    """Return that the estimates with these details count groups in place of prompts, and how many at most; '' without groups.

    >>> groups_phrase([{"n_groups": 6, "n_prompts": 24, "group_noun": "document"}, {"n_prompts": 24}])
    'count documents in place of prompts: 6 documents with 24 prompts'
    """
    counted = {
        (one["n_prompts"], one["n_groups"], one.get("group_noun", GROUP)) for one in details if "n_groups" in one
    }
    if not counted:
        return ""
    n_prompts, n_groups, noun = max(counted)
    most = "at most " if len(counted) > 1 else ""
    numbers = f"{format_count(n_groups, noun)} with {format_count(n_prompts, 'prompt')}"
    return f"count {plural_noun(noun)} in place of prompts: {most}{numbers}"


def contrast_of(estimate: "Estimate") -> Mapping[str, Any]:
    """Return the comparison of an estimate, or an empty mapping."""
    return estimate.settings.get("contrast") or {}


def compared_names(estimate: "Estimate") -> tuple[str, str]:
    """Return the names of x and y for readers."""
    contrast, subject = contrast_of(estimate), estimate.settings.get("subject") or {}
    return subject.get("x") or contrast["x"], subject.get("y") or contrast["y"]


def subject_note(estimate: "Estimate") -> str:
    """Return what a comparison is about besides x and y, for a cell: "fluency, after 8 examples", or ''."""
    subject = estimate.settings.get("subject") or {}
    return join_words(subject.get("topic", ""), subject.get("circumstance", ""))


def comparison_label(estimate: "Estimate") -> str:
    """Return x > y, with the details that distinguish this comparison from others."""
    return join_words(" > ".join(compared_names(estimate)), subject_note(estimate))


def comparison_x_y_and_criterion_phrase(estimate: "Estimate") -> tuple[str, str, str]:
    """Return x, y and " on <criterion> after 8 examples" (or '') for sentences."""
    subject = estimate.settings.get("subject") or {}
    topic, circumstance = subject.get("topic"), subject.get("circumstance")
    about = f" {topic}" if topic == OVERALL else f" on {topic}" if topic else ""
    about += f" {circumstance}" if circumstance else ""
    return *compared_names(estimate), about


def role_label(contrast: Mapping[str, Any]) -> str:
    """Return the role of a comparison for tables, or that it was not planned."""
    return str(contrast["role"]) if contrast["is_planned"] else NOT_PLANNED


def verdict_direction_symbol(estimate: "Estimate | None") -> str:
    """Return the result: >, <, ~ (equivalent), ? (open), or '' without data or if not tested."""
    if estimate is None or estimate.estimate is None or is_not_tested(estimate):
        return ""
    return claim_of(estimate).side or "?"


def direction_symbol_as_published(estimate: "Estimate | None", null: float) -> str:
    """Return the result as published tables count it: > or < if significant at the level of the comparison, else ~.

    The result is ? if not tested, and '' without data.
    """
    if estimate is None or estimate.estimate is None:
        return ""
    pvalue = reported_pvalue(estimate)
    if pvalue is None:
        return "?"
    return (">" if estimate.estimate > null else "<") if pvalue < claim_of(estimate).level else "~"


def expectation_outcome(expected: str, observed: str) -> str:
    """Return whether the result matches the expectation."""
    if not expected or not observed:
        return ""
    if observed == expected:
        return "recovered"
    if observed == "?" or (observed == "~" and expected != "~"):
        return "not shown"
    return "contradicted"
