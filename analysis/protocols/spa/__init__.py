"""What SPA answers say: each pair, both orders, the coherence of pairs, a ranking; ``paper`` and ``recommended`` apart.

The frame holds one row a directed answer on 0..1. ``is_kept`` marks the annotators of the recommended estimates (rules that look
at no outcome), ``is_kept_paper`` those of the paper's; ``kept:<rule>`` what each rule would keep. ``frame.attrs`` holds the seed.

Source: Ethayarajh and Jurafsky 2022, sections 5 and 6.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.blocks import Block
from analysis.comparisons import Comparison, judged

from .. import ProtocolAnalysis, register
from .answers import ESTIMAND, Answers, answers_of
from .criteria import drivers_block

if TYPE_CHECKING:
    import numpy as np
    from pandas import DataFrame

    from analysis.stats.results import Estimate

RULE = "kept:"


def analyse(frame: "DataFrame", sections: Sequence[Any]) -> list[Block]:
    """Blocks for all SPA sections of a study; families run over all of them."""
    answers = [one for section in sections for one in [answers_of(frame, section)] if one.comparisons]
    if not answers:
        return []
    attrs = frame.attrs
    found = [_pairs(one, attrs) for one in answers]
    recommended = _judged([pairs for pairs, _ in found], answers, attrs, "recommended")
    paper = _judged([pairs for _, pairs in found], answers, attrs, "paper")
    blocks = [
        Block("spa.pairs", "Stated chance that x is better than y", "recommended", estimates=tuple(recommended),
              note="Both orders of naming combined, everybody whom the rules kept that look at no outcome; t test against 50 %."),
        Block("spa.pairs", "Stated chance that x is better than y, as in the paper", "paper", estimates=tuple(paper),
              note="The order named in the comparison alone, after all primary rules; t test against 50 %."),
    ]  # fmt: skip
    blocks += [block for one in answers for block in _about_section(one, attrs)]
    kept = [one.chosen(one.people["is_kept"].to_numpy(bool)) for one in answers]
    if (drivers := drivers_block(kept, attrs)) is not None:
        blocks.append(drivers)
    if len(answers) > 1:
        blocks += _exposures(answers, attrs)
    return blocks


def _pairs(one: Answers, attrs: Mapping[str, Any]) -> tuple[list["Estimate"], list["Estimate"]]:
    """The recommended and the paper's estimate of each comparison, not yet adjusted."""
    import numpy as np

    from analysis.stats import equivalence, spa

    kept = one.chosen(one.people["is_kept"].to_numpy(bool))
    level = attrs["level"]
    shared = spa.pairs_recommended(
        kept.xy, kept.yx, names=kept.names, batches=kept.people["batch"].to_numpy(), tau=attrs["tau"],
        level=level, resamples=attrs["resamples"], rng=_rng(attrs, "pairs", one.section.position),
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
        recommended.append(_named(estimate, compared))
    kept = one.chosen(one.people["is_kept_paper"].to_numpy(bool))
    paper = []
    for column, compared in enumerate(one.comparisons):
        asked, estimand = kept.xy[:, column], None
        if np.isnan(one.xy[:, column]).all() and not np.isnan(one.yx[:, column]).all():
            asked, estimand = 100 - kept.yx[:, column], "1 - mean over annotators of P[y > x], asked with y named first"
        estimate = spa.pair_paper(asked, is_after_tau=attrs["is_after_tau"], level=level)
        paper.append(_named(replace(estimate, estimand=estimand) if estimand else estimate, compared))
    return recommended, paper


def _judged(
    found: Sequence[Sequence["Estimate"]], answers: Sequence[Answers], attrs: Mapping[str, Any], mode: str
) -> list["Estimate"]:
    found_of = [
        (compared, estimate)
        for one, pairs in zip(answers, found, strict=True)
        for compared, estimate in zip(one.comparisons, pairs, strict=True)
    ]
    results = judged(found_of, f"spa.{mode}", attrs["star_scheme"])
    return [results[compared.key] for compared, _ in found_of]


def _about_section(one: Answers, attrs: Mapping[str, Any]) -> list[Block]:
    """Order symmetry, coherence and ranking of one section, and what each exclusion rule does to it."""
    from analysis.stats import spa

    kept = one.chosen(one.people["is_kept"].to_numpy(bool))
    values = spa.combined(kept.xy, kept.yx)
    where = one.section.position
    title = f"section {where}, m = {one.section.m}"
    level = attrs["level"]
    symmetry = tuple(
        _named(spa.order_symmetry(kept.xy[:, column], kept.yx[:, column], level=level), compared)
        for column, compared in enumerate(one.comparisons)
    )
    asymmetry = tuple(
        _named(spa.tau_asymmetry(kept.xy[:, column], kept.yx[:, column], level=level), compared)
        for column, compared in enumerate(one.comparisons)
    )
    blocks = [
        Block("spa.order", f"Gap between the two orders of naming ({title})", "recommended", estimates=symmetry,
              note="p_xy + p_yx - 1, before any rule that looks at sums. Above 0: whoever is named first gains."),
        Block("spa.tau", f"Whether leaving out by tau would move the estimate ({title})", "recommended", estimates=asymmetry),
        _before_after(one, title, attrs),
    ]  # fmt: skip
    for criterion in dict.fromkeys(compared.criterion for compared in one.comparisons):
        columns = [n for n, compared in enumerate(one.comparisons) if compared.criterion == criterion]
        has_others = any(compared.criterion for compared in one.comparisons)
        about = f"{title}, {criterion or 'overall'}" if has_others else title
        blocks += _structure(kept, values, columns, about, attrs)
    return [block for block in blocks if block.estimates]


def _before_after(one: Answers, title: str, attrs: Mapping[str, Any]) -> Block:
    """Each rule alone, and all primary ones together: the mean after less the mean before, the annotators resampled."""
    from analysis.stats import basic, spa

    masks = {
        name.removeprefix(RULE): one.people[name].to_numpy(bool) for name in one.people.columns if name.startswith(RULE)
    }
    masks["all rules of the recommended estimate"] = one.people["is_kept"].to_numpy(bool)
    masks["all primary rules"] = one.people["is_kept_paper"].to_numpy(bool)
    values = spa.combined(one.xy, one.yx)
    changes = spa.before_after(
        values, masks, names=one.names, level=attrs["level"], resamples=attrs["resamples"],
        rng=_rng(attrs, "before_after", one.section.position),
    )  # fmt: skip
    estimates = []
    for rule, mask in masks.items():
        for column, compared in enumerate(one.comparisons):
            change = _named(changes[rule][compared.key], compared)
            if 0 < mask.sum() < len(mask):
                # Different people, so an ordinary comparison of two groups is right here.
                against = basic.welch(
                    values[~mask, column], values[mask, column], analysis="spa.excluded_against_kept", level=attrs["level"],
                    estimand="mean of those left out - mean of those kept",
                )  # fmt: skip
                change = replace(change, sensitivity=(against,))
            estimates.append(change)
    return Block(
        "spa.before_after", f"Effect of each rule ({title})", "recommended", estimates=tuple(estimates),
        note="Mean after the rule less mean before it; the same people stand on both sides, so the interval resamples them.",
    )  # fmt: skip


def _structure(kept: Answers, values, columns: Sequence[int], title: str, attrs: Mapping[str, Any]) -> list[Block]:
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
    common = {"level": attrs["level"], "resamples": attrs["resamples"]}
    blocks = []
    if len(systems) > 2:
        found = coherence.coherence(table, pairs, n_systems=len(systems), rng=_rng(attrs, "coherence", *what), **common)
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
    fit = fractional_bradley_terry(first, second, given, people, n_systems=len(systems), level=attrs["level"])
    framed = fractional_bradley_terry(
        first, second, given, people, n_systems=len(systems), framing=True, level=attrs["level"]
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
        level=attrs["level"],
        resamples=min(999, attrs["resamples"]),
        rng=_rng(attrs, "halves", *what),
        unit="pair",
    )
    blocks.append(
        Block(
            "spa.reliability", f"Split-half reliability of the pairs ({title})", "recommended", estimates=(reliability,)
        )
    )
    return blocks


def _exposures(answers: Sequence[Answers], attrs: Mapping[str, Any]) -> list[Block]:
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
        found = m_exposure(xy, yx, levels=sorted(by_m), level=attrs["level"])
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
    judged = multiplicity.adjusted(steps, family, star_scheme=attrs["star_scheme"])
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


def _named(estimate: "Estimate", compared: Comparison) -> "Estimate":
    """The estimate with the comparison it is about among its settings, where the report's tables look for it."""
    return _with(estimate, contrast=compared.as_dict(), key=ESTIMAND)


def _with(estimate: "Estimate", **settings: Any) -> "Estimate":
    return replace(estimate, settings={**estimate.settings, **settings})


def _rng(attrs: Mapping[str, Any], *what: Any):
    from analysis.stats.seeds import generator

    return generator(attrs["seed"], "spa", *what)


@register
class SPAAnalysis(ProtocolAnalysis):
    slug = "spa"

    def analyse(self, frame, sections):
        return analyse(frame, sections)
