"""Stated chances about a pair: both orders of naming, exposures, drivers, coherence and ranking."""

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.data.frames import cluster_labels
from analysis.protocols.blocks import Block, ConclusionPhrases, build_planned_conclusions
from analysis.protocols.blocks.cells import interval_bounds
from analysis.protocols.blocks.common_tables import ranking_tables, reliability_table
from analysis.protocols.blocks.comparisons import Comparison, adjust_pvalues_and_add_verdicts_as_in_paper
from analysis.protocols.blocks.layouts import Table, build_table, estimate_row
from analysis.protocols.blocks.systems import SystemOrder
from analysis.protocols.kinds.strengths import named_by_system, plain_fit, without_intervals_if_too_few
from studies.design.draw import has_own_prompts
from studies.design.subjects import in_parentheses, join_words

from . import layouts
from .answers import ESTIMAND, SectionAnswers, read_own_prompts, read_prompt_groups
from .tau import directions_by_exposure_block, find_incoherent_annotators

if TYPE_CHECKING:
    import numpy as np

    from analysis.stats.criteria import Drivers
    from analysis.stats.results import Estimate


# The same comparison after m = 1, 2, 4 ... exposures: each m, and each step within the annotators.


def stated_chance_by_exposure_blocks(answers: Sequence[SectionAnswers], context: AnalysisContext) -> list[Block]:
    """Return the blocks of comparisons that several sections ask about: the chances after each m, and the steps between them."""
    from analysis.stats import multiplicity
    from analysis.stats.exposure import preference_by_n_outputs_seen

    tables: dict[tuple[str, str, str], dict[int, tuple[SectionAnswers, int, bool]]] = {}
    for section_answers in answers:
        kept_answers = section_answers.kept
        for column, compared in enumerate(section_answers.comparisons):
            # An unplanned pair has the direction of its section's first question. Turn it to the direction in the first section.
            is_turned = (compared.y, compared.x, compared.criterion) in tables
            x, y = (compared.y, compared.x) if is_turned else (compared.x, compared.y)
            # If two sections have the same m, use the first.
            tables.setdefault((x, y, compared.criterion), {}).setdefault(
                section_answers.section.m, (kept_answers, column, is_turned)
            )
    incoherent = find_incoherent_annotators([section_answers.kept for section_answers in answers], context.tau)
    levels, trends, steps, directions = [], [], {}, []
    for (x, y, criterion), by_m in tables.items():
        if len(by_m) < 2:
            continue
        columns = [by_m[m] for m in sorted(by_m)]
        xy, yx = _answers_by_annotator(columns)
        study = preference_by_n_outputs_seen(xy, yx, levels=sorted(by_m), level=context.level)
        labels = {"x": x, "y": y, "criterion": criterion}
        coherent = _answers_by_annotator(columns, without=incoherent)
        after_tau = preference_by_n_outputs_seen(*coherent, levels=sorted(by_m), level=context.level)
        directions.append((labels, study, after_tau, {"before": xy + yx - 100, "after": sum(coherent) - 100}))
        of_criterion = f" on {criterion}" if criterion else ""
        pair = f"{x} > {y}" + (f", {criterion}" if criterion else "")
        levels += [
            _add_settings(_in_words(_suffix_family(estimate, pair)), **labels, m=m)
            for estimate, m in zip(study.by_level, study.levels, strict=True)
        ]
        trends += [
            _add_settings(_in_words(replace(estimate, estimand=f"{pair}: {estimate.estimand}")), **labels)
            for estimate in (study.slope, study.diminishing_returns)
            if estimate.status != "not_applicable"
        ]
        for before, after, step in zip(study.levels, study.levels[1:], study.contrasts, strict=False):
            step = replace(
                step,
                estimand=f"P[{x} > {y}]{of_criterion} {layouts.examples_in_words(after)} less {layouts.examples_in_words(before)}",
            )
            key = f"{pair}, m {before} to {after}"
            steps[key] = _add_settings(step, **labels, m_before=before, m_after=after)
    if not steps:
        return []
    family = multiplicity.Family("spa.exposure_steps", tuple(steps))
    judged = multiplicity.adjust_pvalues_and_intervals_of_family(steps, family, star_scheme=context.star_scheme)
    changes = (*judged.values(), *trends)
    by_direction = directions_by_exposure_block(directions, context)
    return [
        Block(
            "spa.exposure_levels",
            "The stated chance by what was seen",
            estimates=tuple(levels),
            tables=[layouts.stated_chance_by_exposure_table(levels)],
            figures=[layouts.stated_chance_by_exposure_figure(levels)],
            note="Conviction (the distance from 50 %) is not tested: noise alone inflates it.",
        ),
        Block(
            "spa.exposures",
            "What more exposure changes",
            estimates=changes,
            tables=[layouts.estimates_table(changes, "exposures", "What more exposure changes", "sure")],
            note=f"Within the annotator. Below 0 after the first number of examples: the overconfidence of {layouts.PAPER}.",
        ),
        *([by_direction] if by_direction else []),
    ]


def _in_words(estimate: "Estimate") -> "Estimate":
    """Return the estimate and its companions with estimands that say what m is."""
    estimand = re.sub(r"\bafter m=(\d+)", lambda found: layouts.examples_in_words(int(found[1])), estimate.estimand)
    return replace(
        estimate,
        estimand=re.sub(r"\bof m\b", "of the number of examples", estimand),
        sensitivity=tuple(map(_in_words, estimate.sensitivity)),
    )


def _suffix_family(estimate: "Estimate", pair: str) -> "Estimate":
    """Return the estimate and its companions in a family per comparison, so that each is adjusted over its own m only."""
    test = estimate.test and replace(estimate.test, family=estimate.test.family and f"{estimate.test.family} ({pair})")
    return replace(
        estimate, test=test, sensitivity=tuple(_suffix_family(companion, pair) for companion in estimate.sensitivity)
    )


def _answers_by_annotator(
    columns_by_m: Sequence[tuple[SectionAnswers, int, bool]], without: Container[str] = ()
) -> tuple["np.ndarray", "np.ndarray"]:
    """Return one comparison's answers in both orders: one row per annotator, one column per section, NaN if missing.

    ``without``: annotators whose row is left out.
    """
    import numpy as np

    people = sorted({person for answers, _, _ in columns_by_m for person in answers.people["annotator"]})
    row_numbers = {person: row for row, person in enumerate(people)}
    answers_by_order = np.full((2, len(people), len(columns_by_m)), np.nan)
    for number, (answers, column, is_turned) in enumerate(columns_by_m):
        rows = [row_numbers[person] for person in answers.people["annotator"]]
        first, second = (answers.yx, answers.xy) if is_turned else (answers.xy, answers.yx)
        answers_by_order[0, rows, number], answers_by_order[1, rows, number] = first[:, column], second[:, column]
    is_shown = [person not in without for person in people]
    return answers_by_order[0][is_shown], answers_by_order[1][is_shown]


def _add_settings(estimate: "Estimate", **settings: Any) -> "Estimate":
    return replace(estimate, settings={**estimate.settings, **settings})


# The stated chance that x is better than y: both orders of naming combined, and one order as in the paper.


def pair_preference_blocks(
    answers: Sequence[SectionAnswers], recommended: tuple["Estimate", ...], context: AnalysisContext
) -> list[Block]:
    """Return the recommended and the paper's blocks of all sections."""
    estimates = [pair for section_answers in answers for pair in _paper_estimates(section_answers, context)]
    paper = adjust_pvalues_and_add_verdicts_as_in_paper(estimates, "spa.paper", context)
    own = {one.section.position: found for one in answers if (found := _own_prompts(one.kept))}
    return [
        Block(
            "spa.pairs",
            "Stated chance that x is better than y",
            estimates=recommended,
            conclusions=build_planned_conclusions(recommended, PHRASES, include_estimand_in_name=False),
            tables=[table for table, _ in own.values()],
            figures=[layouts.forest_figure(recommended, paper)],
            other_results={"own_prompts": {position: prompts for position, (_, prompts) in own.items()}}
            if own
            else None,
            note="Both orders of naming combined, all annotators kept by the outcome-blind rules; tested against 50 %. Batches that share prompts "
            "are one group. With five groups or more, annotators and groups are both clusters.",
        ),
        Block(
            "spa.pairs",
            f"Stated chance that x is better than y, as in {layouts.PAPER}",
            "paper",
            estimates=paper,
            note="Only the order of the comparison, after all primary rules; t test against 50 %.",
        ),
    ]


# Prompts that a table names. The JSON of the block names all.
MOST_PROMPTS = 20


def _own_prompts(answers: SectionAnswers) -> tuple[Table, dict[str, list[str]]] | None:
    """Return which prompts belonged to which system, as a table and as all keys, if systems have prompts of their own."""
    if not has_own_prompts(answers.section):
        return None
    rows, prompts = [], {}
    for system, (keys, groups, by_batch) in sorted(read_own_prompts(answers).items()):
        prompts[system] = names = sorted(keys)
        more = f" and {len(names) - MOST_PROMPTS} more" if len(names) > MOST_PROMPTS else ""
        rows.append(
            {
                "system": system,
                "n_prompts": len(names),
                "n_sets": None if groups is None else len(set(groups.tolist())),
                "n": sum(bool(by_batch[number]) for number in answers.people["batch"]),
                "where": answers.title,
                "prompts": ", ".join(names[:MOST_PROMPTS]) + more,
                "reason": "the prompts of some annotators are not known" if groups is None else "",
            }
        )
    table = build_table(
        "own_prompts",
        "Which prompts belonged to which system",
        "system|System|text; n_prompts|n prompts|integer; n_sets|Sets that share no prompt|integer; n|n annotators|integer; "
        "where|Section|text; prompts|Prompts|text; reason|Undefined because|text",
        rows,
        "first",
        "Each system had prompts of its own, so what prompts add does not cancel out: part of a difference may come from easier prompts. With six "
        "sets or more of both systems, people and the sets of each system are independent samples; otherwise a result is about exactly these prompts.",
    )
    return table, prompts


PHRASES = ConclusionPhrases(
    above_claim="{x} was preferred to {y}{about}.",
    below_claim="{x} was less preferred than {y}{about}.",
    same="{x} and {y} are indistinguishable{about}",
    open="It remains open whether {x} or {y} is preferred{about}.",
    before="On average annotators put the chance that {x} is better than {y} at",
    symbol="P[{x} > {y}]",
    kind="percent",
    subject="{x} and {y}{about}",
    expected=("{x} is better.", "{y} is better.", "the two are equivalent."),
)


def recommended_estimates(answers: SectionAnswers, context: AnalysisContext) -> Iterator[tuple[Comparison, "Estimate"]]:
    """Return the recommended estimate of each comparison, not yet adjusted."""
    from analysis.stats import spa
    from analysis.stats.results import ResultWarning

    kept_answers = answers.kept
    level = context.level
    groups, n_unknown = read_prompt_groups(kept_answers)
    sets = {system: of_system for system, (_, of_system, _) in read_own_prompts(kept_answers).items()}
    # Where the prompts of an annotator are not known, neither are the groups of all prompts.
    own = {
        one.key: (x, y)
        for one in answers.comparisons
        if (x := sets.get(one.x)) is not None and (y := sets.get(one.y)) is not None
    }
    unknown: tuple[ResultWarning, ...] = ()
    if n_unknown:
        to_import = "also import answers about the texts that each annotator read"
        unknown = (ResultWarning("prompts_unknown", "warn", {"n_annotators": n_unknown, "to_know_them": to_import}),)
    shared = spa.pair_preferences_recommended(
        kept_answers.xy,
        kept_answers.yx,
        pair_names=kept_answers.names,
        annotators=cluster_labels(kept_answers.people["annotator"]),
        batches=groups,
        own_prompts=own,
        populations={compared.key: compared.population for compared in answers.comparisons},
        sensitivity_tau=context.tau,
        level=level,
        sensitivity_resamples=context.resamples,
        rng=context.rng("pairs", answers.section.position),
    )
    for compared in answers.comparisons:
        estimate = shared[compared.key]
        # Each comparison has its own margin and level.
        estimate = compared.with_equivalence_tests(estimate, null=0.5)
        estimate = replace(estimate, warnings=(*estimate.warnings, *unknown))
        yield compared, compared.tag_estimate(estimate, ESTIMAND)


def _paper_estimates(answers: SectionAnswers, context: AnalysisContext) -> Iterator[tuple[Comparison, "Estimate"]]:
    """Return the paper's estimate of each comparison, not yet adjusted."""
    import numpy as np

    from analysis.stats import spa

    kept_answers = answers.select_annotators(answers.people["is_kept_paper"].to_numpy(bool))
    for column, compared in enumerate(answers.comparisons):
        stated, estimand = kept_answers.xy[:, column], None
        if np.isnan(answers.xy[:, column]).all() and not np.isnan(answers.yx[:, column]).all():
            stated, estimand = (
                100 - kept_answers.yx[:, column],
                "1 - mean over annotators of P[y > x], asked with y named first",
            )
        estimate = spa.pair_preference_paper(stated, is_after_tau=context.is_after_tau, level=context.level)
        estimate = replace(estimate, estimand=estimand) if estimand else estimate
        yield compared, compared.tag_estimate(estimate, ESTIMAND)


# Relate overall answers to the criteria, if a section asks an overall question and at least two criteria.
#
# Criteria are questions of their own and are never averaged; this describes which of them move with the overall one.
# It tests nothing.
#
# Source: Ethayarajh and Jurafsky 2022, Limitations, point 3.


OVERALL_CRITERION = ""
MIN_CRITERIA = 2
BLOCK_NAME = "spa.drivers"


def overall_answer_drivers_blocks(kept_answers: Sequence[SectionAnswers], context: AnalysisContext) -> list[Block]:
    """Return one block for all sections with an overall question and criteria, or none if there is no such section.

    ``kept_answers``: those who are kept for the recommended estimates.
    """
    fits = [
        (answers, _fit_drivers(answers, context.level))
        for answers in kept_answers
        if _has_overall_and_criteria(answers)
    ]
    if not fits:
        return []
    rows = [row for answers, drivers in fits for row in _table_rows(answers, drivers)]
    described = "; ".join(
        join_words(answers.title, f"{100 * drivers.r_squared:.0f} %")
        for answers, drivers in fits
        if drivers.r_squared is not None
    )
    table = build_table(
        "drivers",
        "What the overall answers go with",
        "where|Section|text; what|Criterion|text; slope|Points overall for one point on it|number; "
        "interval|95% CI|wide_interval; explained|Described by the other criteria|percent; n|n annotators|integer; "
        "n_rows|Rows|integer; reason|Undefined because|text",
        rows,
        "sure",
        "One row of the fit is one annotator's answers about one pair. Example: .60 means that answers ten points higher on this "
        "criterion, with the others equal, go with six points more overall. The last row is the overall answer if no criterion decides, "
        "in points of 100. People who like a text tend to like everything about it. The table only describes, so nothing is tested."
        + (f" Share of the overall answers' variance that the criteria describe: {described}." if described else ""),
    )
    return [
        Block(
            BLOCK_NAME,
            "What the overall answers go with",
            tables=[table],
            estimates=tuple(estimate for answers, drivers in fits for estimate in _tagged_estimates(answers, drivers)),
            note="Least squares over annotators and pairs, annotators as clusters (CV3); both orders of naming combined. Descriptive.",
        )
    ]


def _criteria(answers: SectionAnswers) -> list[str]:
    return list(
        dict.fromkeys(compared.criterion for compared in answers.comparisons if compared.criterion != OVERALL_CRITERION)
    )


def _has_overall_and_criteria(answers: SectionAnswers) -> bool:
    return len(_criteria(answers)) >= MIN_CRITERIA and any(
        compared.criterion == OVERALL_CRITERION for compared in answers.comparisons
    )


def _fit_drivers(answers: SectionAnswers, level: float) -> "Drivers":
    """Fit the answers over (annotator, pair). Pairs with a missing answer on a criterion are left out."""
    import numpy as np

    from analysis.stats import criteria as axes
    from analysis.stats import spa

    values = spa.combine_orders(answers.xy, answers.yx)
    criteria = _criteria(answers)
    values_by_pair: dict[frozenset[str], dict[str, Any]] = {}
    first: dict[frozenset[str], str] = {}
    for column, compared in enumerate(answers.comparisons):
        pair = frozenset((compared.x, compared.y))
        # Turn all questions about a pair to the direction of its first question.
        is_turned = first.setdefault(pair, compared.x) != compared.x
        values_by_pair.setdefault(pair, {})[compared.criterion] = (
            1 - values[:, column] if is_turned else values[:, column]
        )
    nothing = np.full(len(answers.people), np.nan)
    overall = np.concatenate([pair_values.get(OVERALL_CRITERION, nothing) for pair_values in values_by_pair.values()])
    table = np.concatenate(
        [
            np.column_stack([pair_values.get(criterion, nothing) for criterion in criteria])
            for pair_values in values_by_pair.values()
        ]
    )
    people = np.tile(cluster_labels(answers.people["annotator"]), len(values_by_pair))
    return axes.regress_overall_on_criteria(overall, table, people, names=criteria, level=level)


def _tagged_estimates(answers: SectionAnswers, drivers: "Drivers") -> list["Estimate"]:
    named_estimates = [*drivers.coefficients.items(), (OVERALL_CRITERION, drivers.intercept)]
    return [
        replace(estimate, settings={**estimate.settings, "section": answers.section.position, "criterion": name})
        for name, estimate in named_estimates
    ]


def _table_rows(answers: SectionAnswers, drivers: "Drivers") -> list[dict[str, Any]]:
    def row(label: str, estimate: "Estimate", scale: float = 1) -> dict[str, Any]:
        between = interval_bounds(estimate)
        return estimate_row(
            estimate,
            where=answers.title,
            what=label,
            slope=None if estimate.estimate is None else scale * estimate.estimate,
            interval=between and [scale * end for end in between],
            explained=(estimate.detail or {}).get("explained_by_others"),
        )

    rows = [row(name, estimate) for name, estimate in drivers.coefficients.items()]
    return [*rows, row("remainder if no criterion decides", drivers.intercept, 100)]


# Coherence of the pairs, ranking of the systems and reliability of the answers of one section.


def coherence_ranking_and_reliability_blocks(
    kept_answers: SectionAnswers, comparison_columns: Sequence[int], title: str, context: AnalysisContext
) -> list[Block]:
    """Return coherence of the pairs, ranking of the systems and reliability, on one criterion."""
    import numpy as np

    from analysis.stats import coherence, reliability, spa
    from analysis.stats.cluster_variances import TOO_FEW_ITEMS
    from analysis.stats.clusters import without_interval_if_too_few
    from analysis.stats.davidson import first_named_bonus, fit_davidson

    comparisons = [kept_answers.comparisons[n] for n in comparison_columns]
    systems = list(dict.fromkeys(name for compared in comparisons for name in (compared.x, compared.y)))
    systems.sort()
    number = {name: n for n, name in enumerate(systems)}
    pairs = [(number[compared.x], number[compared.y]) for compared in comparisons]
    table = spa.combine_orders(kept_answers.xy, kept_answers.yx)[:, comparison_columns]
    random_key = (kept_answers.section.position, comparisons[0].criterion)
    common: dict[str, Any] = {"level": context.level, "resamples": context.resamples}
    blocks = []
    if len(systems) > 2:
        result = coherence.coherence(
            table, pairs, n_systems=len(systems), rng=context.rng("coherence", *random_key), **common
        )
        cycles = [" > ".join(systems[n] for n in (*cycle, cycle[0])) for cycle in result.cycles]
        sums = tuple(replace(total, settings={**total.settings, "systems": systems}) for total in result.cycle_sums)
        estimates = (*result.transitivity, result.cycle, *sums)
        blocks.append(
            Block(
                "spa.coherence",
                f"Coherence of the pairs{in_parentheses(title)}",
                estimates=estimates,
                other_results={"cycles": cycles, "systems": systems},
                tables=[layouts.coherence_table(estimates, cycles, title)],
            )
        )
    answered = []
    for column, (x, y) in zip(comparison_columns, pairs, strict=True):
        for subject, other, answers in ((x, y, kept_answers.xy), (y, x, kept_answers.yx)):
            people = np.flatnonzero(~np.isnan(answers[:, column]))
            same = np.ones(len(people), dtype=np.int64)
            answered.append((subject * same, other * same, answers[people, column] / 100, people))
    first, second, chances, who = (np.concatenate(column) for column in zip(*answered, strict=True))
    groups, _ = read_prompt_groups(kept_answers)
    declared = {compared.population for compared in comparisons if compared.is_planned}
    if "people" in declared:
        groups = None
    sets = None if groups is None else groups[who]
    settings = {"reference": 0, "framing": False, "level": context.level}
    options: dict[str, Any] = {"n_systems": len(systems), "level": context.level, "second_sample": "batch"}
    # Stated chances without a maximum have no order either.
    how: dict[str, Any] = {"ties": "half", "reference": 0, "ridge": 0.0, "analysis": "spa.ranking"}
    fit = fit_davidson(first, second, chances, who, sets, settings=settings, **how, **options)
    settings = {**settings, "framing": True}
    bonus = first_named_bonus(first, second, chances, who, sets, settings=settings, **options)
    # Groups of unknown prompts are no sample.
    n_groups = TOO_FEW_ITEMS if declared != {"people_and_prompts"} else 0 if groups is None else len(set(groups))
    framing = replace(without_interval_if_too_few(bonus, n_groups, "sets of prompts"), analysis="spa.ranking.framing")
    named = named_by_system(fit.strengths, systems, lambda name: f"log-odds of {name} against {systems[0]}")
    strengths = without_intervals_if_too_few(named, n_groups, "sets of prompts")
    if fit.status == "ok":
        np.fill_diagonal(fit.probabilities, 0.5)
    verdict = plain_fit(fit, systems, probabilities=fit.probabilities, observed=fit.observed)
    note = "Strengths in log-odds; an interval is against the reference, the system whose strength is 0."
    blocks.append(
        Block(
            "spa.ranking",
            f"Ranking of the systems, fractional Bradley-Terry{in_parentheses(title)}",
            estimates=(*strengths, framing),
            other_results=verdict,
            tables=ranking_tables(strengths, verdict, title, note, framing),
            note=note,
            systems=SystemOrder(measure="strength in log-odds", estimates=strengths, about=title),
        )
    )
    halves = reliability.split_half_reliability(
        table,
        level=context.level,
        resamples=min(999, context.resamples),
        rng=context.rng("halves", *random_key),
    ).labelled(unit="pair")
    blocks.append(
        Block(
            "spa.reliability",
            f"Split-half reliability of the pairs{in_parentheses(title)}",
            estimates=(halves,),
            tables=[reliability_table([estimate_row(halves, where=join_words("stated chances", title))])],
        )
    )
    return blocks
