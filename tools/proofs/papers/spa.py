"""Ethayarajh and Jurafsky 2022: what the stars of Table 1 imply, and what its design and its rules do.

The answers were not published, so the means and stars are all there is; n = 90 annotators, two-sided t tests, Holm
within five comparisons, stars at .10, .05 and .01.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from analysis.stats import basic, coherence, multiplicity, power_of_means, ratings, spa, vote_ratings
from tools.proofs.papers.rows import Part, Row, decimals, rounds_to, seeded

N = 90
DF = N - 1
# x, y, P[x > y], its stars, the Likert difference, its stars, what the authors expected.
TABLE_1 = (
    ("ada", "human", 0.420, "*", -0.822, "***", "<"),
    ("babbage", "ada", 0.688, "***", 0.644, "***", ">"),
    ("curie", "babbage", 0.630, "***", 0.322, "", ">"),
    ("davinci", "curie", 0.575, "***", 0.244, "", ">"),
    ("human", "davinci", 0.544, "", -0.389, "*", "~"),
)
SYSTEMS = ("ada", "babbage", "curie", "davinci", "human")
PAIRS = [(SYSTEMS.index(x), SYSTEMS.index(y)) for x, y, *_ in TABLE_1]
# Adjusted p-values of each number of stars: from, and below.
BANDS = {"***": (0.0, 0.01), "**": (0.01, 0.05), "*": (0.05, 0.10), "": (0.10, math.inf)}
RUNS = 2000

NOTE_SPREADS = (
    "The paper does not print the standard deviations; a t test and Holm's steps allow only these. All five pairs "
    "cannot have one spread: the fourth pair needs a smaller one than the fifth."
)
NOTE_ORDER = (
    "Every pair was asked in one order only, and the five questions form a circle. One scale without any effect "
    "of the order would give 0. An effect of being named first explains the sum as well as real preferences do, "
    "and the design cannot separate them."
)
NOTE_GUARD = (
    "This does not mean that a reversal occurred. Rounding to five points can move a difference by up to one "
    "point, and no difference in the table is that large."
)
NOTE_POWER = (
    "Observed power is a function of the p-value. A test that is not significant has a t below the critical "
    "value, which limits the power. So a power near 1 at .001 is impossible beside a missing star."
)
NOTE_TILDE = (
    "A test without a significant difference does not show equality. With 90 annotators, equality within five "
    "points could hardly have been shown."
)
NOTE_TAU = (
    "The rule leaves out people whose two answers have a large sum, but not those with a small sum. So the mean "
    "of one order falls below one half although people have no preference. heval's estimate combines both orders "
    "and leaves no one out."
)
NOTE_GAP = (
    "The filter cuts the sum that the test of symmetry uses. So symmetry cannot be tested after it. heval "
    "prints its p with this reason."
)


def pvalue_band(stars: Sequence[str], which: str) -> tuple[float, float]:
    """The raw p-values, from and below, that Holm's steps allow a comparison with these stars among all of `stars`.

    Among comparisons with equal stars the steps are not known, so the widest band is given.
    """
    in_order = sorted(stars, key=lambda mark: BANDS[mark])
    first, last = in_order.index(which), len(stars) - 1 - in_order[::-1].index(which)
    low, high = BANDS[which]
    return low / (len(stars) - first), min(1.0, high / (len(stars) - last))


def critical(pvalue: float) -> float:
    return math.inf if pvalue == 0 else float(special.stdtrit(DF, 1 - pvalue / 2))


def sd_band(distance: float, band: tuple[float, float]) -> tuple[float, float]:
    """The standard deviations at which a mean this far from its null has a p-value in the band."""
    low, high = (abs(distance) * math.sqrt(N) / critical(p) if critical(p) > 0 else math.inf for p in band)
    return low, high


def spread_row(label: str, printed: float, null: float, mark: str, marks: Sequence[str], limit: float) -> Row:
    low, high = sd_band(printed - null, pvalue_band(marks, mark))
    digits = 3 if limit < 1 else 2
    if high >= limit:
        ours = f"sd above {decimals(low, digits)}" if low else "any sd"
    else:
        ours = (
            f"sd below {decimals(high, digits)}"
            if low == 0
            else f"sd {decimals(low, digits)} to {decimals(high, digits)}"
        )
    return Row(
        "Table 1",
        label,
        f"{printed:.3f}{mark}",
        ours,
        "basic.t_test, multiplicity.holm",
        low < limit and low < high,
        NOTE_SPREADS,
        (low, min(high, limit)),
    )


def table_1() -> list[Row]:
    marks = [row[3] for row in TABLE_1]
    likert_marks = [row[5] for row in TABLE_1]
    found = []
    for x, y, mean, mark, _, _, _ in TABLE_1:
        # The largest spread that answers in 0..1 can have around their mean.
        limit = math.sqrt(mean * (1 - mean) * N / DF)
        found.append(spread_row(f"P[{x} > {y}], stars", mean, 0.5, mark, marks, limit))
    for x, y, _, _, delta, mark, _ in TABLE_1:
        found.append(spread_row(f"Likert {x} - {y}, stars", delta, 0.0, mark, likert_marks, 4.0))
    found.append(all_stars())
    for x, y, _, _, delta, _, _ in TABLE_1:
        total = round(delta * N)
        found.append(
            Row(
                "Table 1",
                f"Likert {x} - {y} as a sum over {N} annotators",
                f"{delta:.3f}",
                f"{total}/{N} = {decimals(total / N)}",
                "arithmetic",
                rounds_to(total / N, delta, 3),
                "",
                (total / N,),
            )
        )
    return found + recovered()


def all_stars() -> Row:
    """Spreads from within the bands, sent through our own test, adjustment and stars."""
    shown = []
    for distances, marks in (
        ([row[2] - 0.5 for row in TABLE_1], [row[3] for row in TABLE_1]),
        ([row[4] for row in TABLE_1], [row[5] for row in TABLE_1]),
    ):
        pvalues: list[float | None] = []
        for distance, mark in zip(distances, marks, strict=True):
            low, high = sd_band(distance, pvalue_band(marks, mark))
            # Well inside the band: where it has no lower end half of the upper, where no upper end a quarter more.
            sd = 1.25 * low if math.isinf(high) else high / 2 if low == 0 else (low + high) / 2
            pvalues.append(basic.t_test("one_sample_t", distance, 0.0, sd / math.sqrt(N), DF).pvalue)
        shown += [multiplicity.pvalue_stars(p) for p in multiplicity.holm(pvalues)]
    printed = [row[3] for row in TABLE_1] + [row[5] for row in TABLE_1]
    same = sum(ours == theirs for ours, theirs in zip(shown, printed, strict=True))
    return Row(
        "Table 1",
        "all ten stars from such spreads",
        "10",
        f"{same}",
        "basic.t_test, multiplicity.holm, multiplicity.pvalue_stars",
        same == 10,
        "",
        (float(same),),
    )


def recovered() -> list[Row]:
    """How many expectations the stars bear out, counted as the authors count: no star is indifference."""
    found = []
    for label, distances, place, printed in (
        ("SPA", [(row[2] - 0.5, row[3], row[6]) for row in TABLE_1], "section 6.1", 5),
        ("Likert", [(row[4], row[5], row[6]) for row in TABLE_1], "section 6.1", 2),
    ):
        count = sum(
            (("~" if not mark else ">" if distance > 0 else "<") == wanted) for distance, mark, wanted in distances
        )
        found.append(
            Row(
                place,
                f"expected preferences found, {label}",
                f"{printed} of 5",
                f"{count} of 5",
                "counted",
                count == printed,
                "",
                (count,),
            )
        )
    # The smallest spread that the missing star leaves is the kindest to equality.
    smallest, _ = sd_band(TABLE_1[4][2] - 0.5, pvalue_band([row[3] for row in TABLE_1], TABLE_1[4][3]))
    tost = power_of_means.equivalence_power(N, sd=smallest, margin=0.05)
    found.append(
        Row(
            "Table 1",
            "human and davinci alike: chance to show it within .05, at best",
            "",
            decimals(tost),
            "power_of_means.equivalence_power",
            None,
            NOTE_TILDE,
            (tost,),
        )
    )
    for place, paid, minutes, printed in (("appendix A", 5, 20, 15), ("appendix B", 3, 10, 18)):
        wage = paid * 60 / minutes
        found.append(
            Row(
                place,
                f"wage, ${paid} for {minutes} minutes",
                f"${printed}/h",
                f"${wage:.0f}/h",
                "arithmetic",
                wage == printed,
                "",
                (wage,),
            )
        )
    return found


def scale() -> list[Row]:
    means = [row[2] for row in TABLE_1]
    (cycle,) = coherence.fundamental_cycle_log_odds_sums([means], PAIRS, np.empty((0, 5)), n_systems=5)
    # Two copies of the means are the least that has clusters; only the point estimates are read.
    first, second = (np.tile([pair[side] for pair in PAIRS], 2) for side in (0, 1))
    fit = vote_ratings.paired_ratings(
        *(first, second, np.tile(means, 2), np.repeat([0, 1], 5)),
        n_systems=5,
        ties="half",
        covariates=np.ones((10, 1)),
        rng=np.random.default_rng(0),
    )
    intercept = fit.covariates[0].estimate
    found = [
        Row(
            "Table 1",
            "sum of log-odds around the circle of questions",
            "",
            f"{cycle.estimate:+.3f}",
            "coherence.fundamental_cycle_log_odds_sums",
            None,
            NOTE_ORDER,
            (cycle.estimate,),
        ),
        Row(
            "Table 1",
            "pull towards the system named first, log-odds",
            "",
            f"{intercept:+.3f}",
            "vote_ratings.paired_ratings",
            None,
            NOTE_ORDER,
            (intercept,),
        ),
    ]
    for (x, y, mean, _, _, _, _), pair in zip(TABLE_1, PAIRS, strict=True):
        # Strengths alone, without the pull: what both orders together would have shown under this model.
        ours = float(special.expit(fit.ratings[pair[0]].estimate - fit.ratings[pair[1]].estimate))
        found.append(
            Row(
                "Table 1",
                f"P[{x} > {y}] without that pull",
                f"{mean:.3f}",
                decimals(ours),
                "vote_ratings.paired_ratings",
                None,
                NOTE_ORDER,
                (ours,),
            )
        )
    for x, y, _, _, delta, mark, _ in TABLE_1:
        guard = ratings.rounding_reversal_guard(delta)
        ours = f"{guard.low:+.3f} to {guard.high:+.3f}: reversal " + (
            "possible" if guard.is_reversal_possible else "excluded"
        )
        found.append(
            Row(
                "Table 1",
                f"Likert {x} - {y}, bounds of the true difference",
                f"{delta:.3f}{mark}",
                ours,
                "ratings.rounding_reversal_guard",
                None,
                NOTE_GUARD,
                (guard.low, guard.high),
            )
        )
    return found


def observed_power() -> list[Row]:
    found = []
    for label, column in (("P[{} > {}]", 3), ("Likert {} - {}", 5)):
        marks = [row[column] for row in TABLE_1]
        for row in TABLE_1:
            low, high = pvalue_band(marks, row[column])
            is_bounded = low > 0
            most = power_of_means.t_test_power(
                critical(low if is_bounded else high) / math.sqrt(N), N, significance=0.001
            )
            found.append(
                Row(
                    "Figure 2, section 6.3",
                    f"observed power at .001, {label.format(row[0], row[1])}",
                    "about 1",
                    f"{'at most' if is_bounded else 'at least'} {decimals(most)}",
                    "power_of_means.t_test_power",
                    False if is_bounded else None,
                    NOTE_POWER,
                    (most,),
                )
            )
    needed = power_of_means.n_for_t_test(critical(0.05) / math.sqrt(N), power=0.99, significance=0.001)
    found.append(
        Row(
            "Figure 2",
            "annotators for power .99 at .001, effect of a p of .05",
            f"{N}",
            f"{needed}",
            "power_of_means.n_for_t_test",
            False,
            NOTE_POWER,
            (needed,),
        )
    )
    return found


def tau() -> list[Row]:
    """Sixty annotators without any preference, whose two answers have noise of their own."""
    found = []
    for noise in (0.05, 0.10, 0.20, 0.30):
        draw = seeded(f"spa tau {noise}")
        one, both, gaps, kept_share = [], [], [], []
        for _ in range(RUNS):
            xy, yx = (np.clip(np.rint(100 * (0.5 + draw.normal(0, noise, 60))), 0, 100) for _ in range(2))
            kept = ~spa.tau_incoherence_flags(xy[:, None], yx[:, None]).incoherent
            kept_share.append(float(kept.mean()))
            one.append(spa.pair_preference_paper(xy[kept], is_after_tau=True).pvalue < 0.05)
            both.append(spa.pair_preference_paper(100 * spa.combine_orders(xy, yx)).pvalue < 0.05)
            gaps.append(basic.one_sample_t_test((xy + yx - 100)[kept] / 100, null=0.0).pvalue < 0.05)
        for what, hits, how, note in (
            (
                "false alarms of one order after tau",
                one,
                "spa.tau_incoherence_flags, spa.pair_preference_paper",
                NOTE_TAU,
            ),
            ("false alarms of both orders joined, nobody dropped", both, "spa.combined", ""),
            ("false alarms about symmetry after tau", gaps, "basic.one_sample_t_test", NOTE_GAP),
        ):
            rate = float(np.mean(hits))
            slack = 3 * math.sqrt(0.05 * 0.95 / RUNS)
            is_theirs = hits is not both
            found.append(
                Row(
                    "Figure 5" if hits is gaps else "section 5.2",
                    f"{what}, noise {decimals(noise, 2)}",
                    ".05 (nominal)" if is_theirs else "",
                    decimals(rate),
                    how,
                    rate <= 0.05 + slack if is_theirs else None,
                    note,
                    (rate, float(np.mean(kept_share))),
                )
            )
    return found


PARTS = (
    Part("spa", "table_1", table_1),
    Part("spa", "scale", scale),
    Part("spa", "observed_power", observed_power),
    Part("spa", "tau", tau, is_simulated=True),
)
