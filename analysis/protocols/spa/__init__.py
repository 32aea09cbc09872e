"""What SPA answers say: each pair, both orders, the coherence of pairs, a ranking; ``paper`` and ``recommended`` apart.

A row is a directed answer on 0..1.

Source: Ethayarajh and Jurafsky 2022, sections 5 and 6.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.blocks import Block
from analysis.comparisons import judged
from analysis.context import Context

from .. import ProtocolAnalysis, register
from .answers import ESTIMAND, Answers, answers_of
from .criteria import drivers_block

if TYPE_CHECKING:
    import numpy as np

    from analysis.stats.results import Estimate

RULE = "kept:"


@register
class SPAAnalysis(ProtocolAnalysis):
    slug = "spa"

    def analyse(self, context: Context) -> list[Block]:
        """Blocks for all SPA sections of a study; families run over all of them."""
        answers = [one for section in context.sections for one in [answers_of(context.rows, section)] if one.comparisons]
        if not answers:
            return []
        found = [_pairs(one, context) for one in answers]
        recommended = _judged([pairs for pairs, _ in found], answers, context, "recommended")
        paper = _judged([pairs for _, pairs in found], answers, context, "paper")
        blocks = [
            Block("spa.pairs", "Stated chance that x is better than y", "recommended", estimates=recommended,
                  note="Both orders of naming combined, everybody whom the rules kept that look at no outcome; t test against 50 %."),
            Block("spa.pairs", "Stated chance that x is better than y, as in the paper", "paper", estimates=paper,
                  note="The order named in the comparison alone, after all primary rules; t test against 50 %."),
        ]  # fmt: skip
        blocks += [block for one in answers for block in _about_section(one, context)]
        kept = [one.chosen(one.people["is_kept"].to_numpy(bool)) for one in answers]
        if (drivers := drivers_block(kept, context)) is not None:
            blocks.append(drivers)
        if len(answers) > 1:
            blocks += _exposures(answers, context)
        return blocks


def _pairs(one: Answers, context: Context) -> tuple[list["Estimate"], list["Estimate"]]:
    """The recommended and the paper's estimate of each comparison, not yet adjusted."""
    import numpy as np

    from analysis.stats import equivalence, spa

    kept = one.chosen(one.people["is_kept"].to_numpy(bool))
    level = context.level
    shared = spa.pairs_recommended(
        kept.xy, kept.yx, names=kept.names, batches=kept.people["batch"].to_numpy(), tau=context.tau,
        level=level, resamples=context.resamples, rng=context.rng("pairs", one.section.position),
    )  # fmt: skip
    values = spa.combined(kept.xy, kept.yx)
    recommended = []
    for column, compared in enumerate(one.comparisons):
        estimate = shared[compared.key]
        if compared.margin:
            # Each comparison has a margin of its own, and a level.
            tost = equivalence.equivalence(
                values[:, column], null=0.5, margin=compared.margin, significance=compared.level, bounds=spa.BOUNDS,
                analysis="spa.pair.equivalence", estimand=estimate.estimand,
            )  # fmt: skip
            estimate = replace(estimate, sensitivity=(*estimate.sensitivity, tost))
        recommended.append(compared.named(estimate, ESTIMAND))
    kept = one.chosen(one.people["is_kept_paper"].to_numpy(bool))
    paper = []
    for column, compared in enumerate(one.comparisons):
        asked, estimand = kept.xy[:, column], None
        if np.isnan(one.xy[:, column]).all() and not np.isnan(one.yx[:, column]).all():
            asked, estimand = 100 - kept.yx[:, column], "1 - mean over annotators of P[y > x], asked with y named first"
        estimate = spa.pair_paper(asked, is_after_tau=context.is_after_tau, level=level)
        paper.append(compared.named(replace(estimate, estimand=estimand) if estimand else estimate, ESTIMAND))
    return recommended, paper


def _judged(
    found: Sequence[Sequence["Estimate"]], answers: Sequence[Answers], context: Context, mode: str
) -> tuple["Estimate", ...]:
    found_of = [
        (compared, estimate)
        for one, pairs in zip(answers, found, strict=True)
        for compared, estimate in zip(one.comparisons, pairs, strict=True)
    ]
    return judged(found_of, f"spa.{mode}", context.star_scheme)


def _about_section(one: Answers, context: Context) -> list[Block]:
    """Order symmetry, coherence and ranking of one section, and what each exclusion rule does to it."""
    from analysis.stats import spa

    kept = one.chosen(one.people["is_kept"].to_numpy(bool))
    values = spa.combined(kept.xy, kept.yx)
    where = one.section.position
    title = f"section {where}, m = {one.section.m}"
    level = context.level
    symmetry = tuple(
        compared.named(spa.order_symmetry(kept.xy[:, column], kept.yx[:, column], level=level), ESTIMAND)
        for column, compared in enumerate(one.comparisons)
    )
    asymmetry = tuple(
        compared.named(spa.tau_asymmetry(kept.xy[:, column], kept.yx[:, column], level=level), ESTIMAND)
        for column, compared in enumerate(one.comparisons)
    )
    blocks = [
        Block("spa.order", f"Gap between the two orders of naming ({title})", "recommended", estimates=symmetry,
              note="p_xy + p_yx - 1, before any rule that looks at sums. Above 0: whoever is named first gains."),
        Block("spa.tau", f"Whether leaving out by tau would move the estimate ({title})", "recommended", estimates=asymmetry),
        _before_after(one, title, context),
    ]  # fmt: skip
    for criterion in dict.fromkeys(compared.criterion for compared in one.comparisons):
        columns = [n for n, compared in enumerate(one.comparisons) if compared.criterion == criterion]
        has_others = any(compared.criterion for compared in one.comparisons)
        about = f"{title}, {criterion or 'overall'}" if has_others else title
        blocks += _structure(kept, values, columns, about, context)
    return [block for block in blocks if block.estimates]


def _before_after(one: Answers, title: str, context: Context) -> Block:
    """Each rule alone, and all primary ones together: the mean after less the mean before, the annotators resampled."""
    from analysis.stats import basic, spa

    masks = {
        name.removeprefix(RULE): one.people[name].to_numpy(bool) for name in one.people.columns if name.startswith(RULE)
    }
    masks["all rules of the recommended estimate"] = one.people["is_kept"].to_numpy(bool)
    masks["all primary rules"] = one.people["is_kept_paper"].to_numpy(bool)
    values = spa.combined(one.xy, one.yx)
    changes = spa.before_after(
        values, masks, names=one.names, level=context.level, resamples=context.resamples,
        rng=context.rng("before_after", one.section.position),
    )  # fmt: skip
    estimates = []
    for rule, mask in masks.items():
        for column, compared in enumerate(one.comparisons):
            change = compared.named(changes[rule][compared.key], ESTIMAND)
            if 0 < mask.sum() < len(mask):
                # Different people, so an ordinary comparison of two groups is right here.
                against = basic.welch(
                    values[~mask, column], values[mask, column], analysis="spa.excluded_against_kept", level=context.level,
                    estimand="mean of those left out - mean of those kept",
                )  # fmt: skip
                change = replace(change, sensitivity=(against,))
            estimates.append(change)
    return Block(
        "spa.before_after", f"Effect of each rule ({title})", "recommended", estimates=tuple(estimates),
        note="Mean after the rule less mean before it; the same people stand on both sides, so the interval resamples them.",
    )  # fmt: skip


def _structure(kept: Answers, values, columns: Sequence[int], title: str, context: Context) -> list[Block]:
    """Coherence of the pairs, ranking of the systems and reliability, on one criterion."""
    import numpy as np

    from analysis.stats import agreement, coherence
    from analysis.stats.bradley_terry import fractional_bradley_terry

    chosen = [kept.comparisons[n] for n in columns]
    systems = list(dict.fromkeys(name for compared in chosen for name in (compared.x, compared.y)))
    systems.sort()
    number = {name: n for n, name in enumerate(systems)}
    pairs = [(number[compared.x], number[compared.y]) for compared in chosen]
    table = values[:, columns]
    what = (kept.section.position, chosen[0].criterion)
    common = {"level": context.level, "resamples": context.resamples}
    blocks = []
    if len(systems) > 2:
        found = coherence.coherence(table, pairs, n_systems=len(systems), rng=context.rng("coherence", *what), **common)
        cycles = [" > ".join(systems[n] for n in (*cycle, cycle[0])) for cycle in found.cycles]
        sums = tuple(_with(total, systems=systems) for total in found.cycle_sums)
        blocks.append(
            Block("spa.coherence", f"Coherence of the pairs ({title})", "recommended",
                  estimates=(*found.transitivity, found.cycle, *sums), verdict={"cycles": cycles, "systems": systems})
        )  # fmt: skip
    first, second, given, people = [], [], [], []
    for column, (x, y) in zip(columns, pairs, strict=True):
        for named, other, answers in ((x, y, kept.xy), (y, x, kept.yx)):
            here = ~np.isnan(answers[:, column])
            n = int(here.sum())
            first += [named] * n
            second += [other] * n
            given.append(answers[here, column] / 100)
            people.append(np.flatnonzero(here))
    given, people = np.concatenate(given), np.concatenate(people)
    first, second = np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64)
    fit = fractional_bradley_terry(first, second, given, people, n_systems=len(systems), level=context.level)
    framed = fractional_bradley_terry(
        first, second, given, people, n_systems=len(systems), framing=True, level=context.level
    )
    strengths = [
        replace(
            strength,
            estimand=f"log-odds of {systems[n]} against {systems[0]}",
            detail={**strength.detail, "system": systems[n]},
        )
        for n, strength in enumerate(fit.strengths)
    ]
    if framed.framing is not None:
        strengths.append(framed.framing)
    blocks.append(
        Block("spa.ranking", f"Ranking of the systems, fractional Bradley-Terry ({title})", "recommended",
              estimates=tuple(strengths),
              verdict={
                  "systems": systems, "status": fit.status, "reason": fit.reason,
                  "probabilities": fit.probabilities, "observed": fit.observed,
                  "components": [[systems[n] for n in group] for group in fit.components],
              },
              note="Strengths in log-odds; an interval is against the reference, the system whose strength is 0.")
    )  # fmt: skip
    reliability = agreement.split_half_reliability(
        table,
        level=context.level,
        resamples=min(999, context.resamples),
        rng=context.rng("halves", *what),
        unit="pair",
    )
    blocks.append(
        Block(
            "spa.reliability", f"Split-half reliability of the pairs ({title})", "recommended", estimates=(reliability,)
        )
    )
    return blocks


def _exposures(answers: Sequence[Answers], context: Context) -> list[Block]:
    """The same comparison after m = 1, 2, 4 ... exposures: each m, and each step within the annotators."""
    from analysis.stats import multiplicity
    from analysis.stats.exposure import m_exposure

    tables: dict[tuple[str, str, str], dict[int, tuple[Answers, int, bool]]] = {}
    for one in answers:
        kept = one.chosen(one.people["is_kept"].to_numpy(bool))
        for column, compared in enumerate(one.comparisons):
            # A pair that no comparison names has the direction of its section's first question: it is turned to that of the first section.
            is_turned = (compared.y, compared.x, compared.criterion) in tables
            x, y = (compared.y, compared.x) if is_turned else (compared.x, compared.y)
            # Where two sections have the same m the first stands for it.
            tables.setdefault((x, y, compared.criterion), {}).setdefault(one.section.m, (kept, column, is_turned))
    levels, more, steps = [], [], {}
    for (x, y, criterion), by_m in tables.items():
        if len(by_m) < 2:
            continue
        xy, yx = _by_person([by_m[m] for m in sorted(by_m)])
        found = m_exposure(xy, yx, levels=sorted(by_m), level=context.level)
        about = {"x": x, "y": y, "criterion": criterion}
        pair = f"{x} > {y}" + (f", {criterion}" if criterion else "")
        levels += [
            _with(_of_pair(one, pair), **about, m=m) for one, m in zip(found.by_level, found.levels, strict=True)
        ]
        more += [
            _with(replace(one, estimand=f"{x} > {y}: {one.estimand}"), **about)
            for one in (found.slope, found.diminishing_returns)
            if one.status != "not_applicable"
        ]
        for before, after, step in zip(found.levels, found.levels[1:], found.contrasts, strict=False):
            step = replace(step, estimand=f"P[{x} > {y}] after m = {after} less after m = {before}")
            key = f"{pair}, m {before} to {after}"
            steps[key] = _with(step, **about, m_before=before, m_after=after)
    if not steps:
        return []
    family = multiplicity.Family("spa.exposure_steps", tuple(steps))
    judged = multiplicity.adjusted(steps, family, star_scheme=context.star_scheme)
    return [
        Block("spa.exposure_levels", "The stated chance by what was seen", "recommended", estimates=tuple(levels),
              note="Conviction (the distance from 50 %) is not tested: noise alone inflates it."),
        Block("spa.exposures", "What more exposure changes", "recommended", estimates=(*judged.values(), *more),
              note="Within the annotator. Below 0 after the first m: the paper's overconfidence."),
    ]  # fmt: skip


def _of_pair(estimate: "Estimate", pair: str) -> "Estimate":
    """The estimate and those beside it in a family that is named by its comparison: each is adjusted over its own m alone."""
    test = estimate.test and replace(estimate.test, family=estimate.test.family and f"{estimate.test.family} ({pair})")
    return replace(estimate, test=test, sensitivity=tuple(_of_pair(one, pair) for one in estimate.sensitivity))


def _by_person(seen: Sequence[tuple[Answers, int, bool]]) -> tuple["np.ndarray", "np.ndarray"]:
    """One comparison's answers in both orders: a row an annotator, a column a section; NaN where there is none."""
    import numpy as np

    people = sorted({person for one, _, _ in seen for person in one.people["annotator"]})
    place = {person: row for row, person in enumerate(people)}
    both = np.full((2, len(people), len(seen)), np.nan)
    for number, (one, column, is_turned) in enumerate(seen):
        rows = [place[person] for person in one.people["annotator"]]
        first, second = (one.yx, one.xy) if is_turned else (one.xy, one.yx)
        both[0, rows, number], both[1, rows, number] = first[:, column], second[:, column]
    return both[0], both[1]


def _with(estimate: "Estimate", **settings: Any) -> "Estimate":
    return replace(estimate, settings={**estimate.settings, **settings})
