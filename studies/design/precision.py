"""Estimate, before the first answer, how the interval of a comparison depends on the numbers of people and prompts."""

import math
from statistics import NormalDist

# Variances of the difference between two systems, relative to the variance of one answer. Measured with mixed models: .30 for prompts and .01 for
# people in ratings of neighbouring systems (WMT 2023, two language pairs), .49 and .03 in choices between neighbouring dialogue systems (5,000
# labels). The smaller value of prompts and the larger value of people promise less from more prompts.
PROMPT_VARIANCE = 0.30
PERSON_VARIANCE = 0.03


def relative_interval_width(n_people: float, n_prompts: int | None, n_differences: float, level: float = 0.95) -> float:
    """Return the expected width of the interval of a difference, in standard deviations of one answer.

    With V_a = v_people / people + 1 / answers and V_p = v_prompts / prompts + 1 / answers, the variance is V_a + V_p - 1 / answers and has
    Satterthwaite's degrees of freedom (V_a + V_p - 1 / answers)² / (V_a² / (people - 1) + V_p² / (prompts - 1)), as in the analysis
    (``analysis.stats.clusters.two_way_jackknife``). Without ``n_prompts`` the interval is about exactly the prompts shown: the
    variance is V_a, with people - 1 degrees of freedom.

    >>> twice = relative_interval_width(24, 24, 144) / relative_interval_width(24, 12, 144)
    >>> round(1 - twice, 2)
    0.25
    """
    residual = 1 / n_differences
    by_people = PERSON_VARIANCE / n_people + residual
    people_df = max(1.0, n_people - 1)
    if n_prompts is None:
        return 2 * t_quantile((1 + level) / 2, people_df) * math.sqrt(by_people)
    by_prompts = PROMPT_VARIANCE / n_prompts + residual
    variance = by_people + by_prompts - residual
    df = max(1.0, variance**2 / (by_people**2 / people_df + by_prompts**2 / max(1.0, n_prompts - 1)))
    return 2 * t_quantile((1 + level) / 2, df) * math.sqrt(variance)


def t_quantile(probability: float, df: float) -> float:
    """Return a quantile of Student's t distribution by its expansion in 1 / df (Abramowitz and Stegun 1964, 26.7.5).

    scipy would be exact, but importing it would slow the start of every process. The error at .975 is below 0.2 % from three degrees of freedom.

    >>> round(t_quantile(0.975, 10), 3)
    2.228
    """
    z = NormalDist().inv_cdf(probability)
    return (
        z
        + (z**3 + z) / (4 * df)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * df**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * df**4)
    )
