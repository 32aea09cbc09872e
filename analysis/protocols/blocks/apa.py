"""Format numbers in APA style, for pages, sentences and LaTeX.

Numbers that cannot exceed 1 (probabilities, p, alpha) have no leading zero. p has three decimals and is never ".000". An
undefined number is a dash.
"""

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING

from .cells import claim_of, finite_bounds, interval_bounds, is_not_tested

if TYPE_CHECKING:
    from analysis.stats.results import Estimate, HypothesisTest

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
