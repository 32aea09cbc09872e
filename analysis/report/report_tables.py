"""Tables of every report, for any protocol."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from analysis.exclusions.screening import (
    AppliedRule,
    ModelSettings,
    SimpleSettings,
    boundary_rows,
    count_by_annotator,
    fails_simple_rule,
    fit_and_screen,
    model_sentences,
    pooled_sentences,
    pooled_studies,
)
from analysis.protocols.blocks import Block, cells
from analysis.protocols.blocks.cells import NO_CLAIM, comparison_label, contrast_of, interval_bounds, pvalue_cell
from analysis.protocols.blocks.layouts import Table, build_table, estimate_row, prefixed_cells
from analysis.protocols.blocks.populations import population_of, population_words
from analysis.protocols.blocks.sentences import printed_conclusions
from analysis.protocols.blocks.warning_sentences import SEVERITIES as WARNING_SEVERITIES
from analysis.protocols.blocks.warning_sentences import warning_sentence
from studies.design.subjects import in_parentheses, join_words, question_labels, words_of_section
from studies.models import Item

from .report_data import ReportData

if TYPE_CHECKING:
    import numpy as np
    from pandas import DataFrame

    from analysis.stats.groups import Attrition
    from analysis.stats.results import Estimate


# What may make arms incomparable: they lose different shares of their annotators, or were filled at different times.


NAME = "attrition"
# Shares of people who leave do not depend on prompts alone, but on all that they were asked to do.
POPULATION = "people, for exactly this task"
# Reasons of annotators who left before they saw their arm. Screening comes before the arm's first page.
NEVER_STARTED_REASONS = ("full", "screened_out")
ARRIVAL_NAME = "arrival"
DROPOUT_LABEL, EXCLUDED_LABEL = "left before the last page", "excluded by a primary rule"


def build_attrition_block(
    assignments: "DataFrame",
    applied_rules: list[AppliedRule],
    *,
    level: float,
    resamples: int,
    rng: "np.random.Generator",
) -> Block | None:
    """Return the share lost in each arm, with differences, for dropouts and exclusions, or None for a single arm.

    Annotators who found no place or were screened out did not start. Annotators who are still working are not lost.
    Only outcome-blind rules are used: rules that use outcomes can exclude different shares because outcomes differ.
    """
    from analysis.stats.groups import differential_attrition

    began = assignments[~assignments["released_reason"].isin(NEVER_STARTED_REASONS)]
    arms = sorted(began["arm"].dropna().unique())
    if len(arms) < 2:
        return None
    excluded = _outcome_blind_exclusions(applied_rules)
    submitted = began[began["is_submitted"]]
    losses, estimates = [], []
    for reason, people, is_lost in (
        (DROPOUT_LABEL, began, ~began["is_submitted"] & began["released_at"].notna()),
        (EXCLUDED_LABEL, submitted, submitted["assignment"].isin(excluded)),
    ):
        arm_masks = [people["arm"] == arm for arm in arms]
        lost = differential_attrition(
            [int(is_in_arm.sum()) for is_in_arm in arm_masks],
            [int((is_in_arm & is_lost).sum()) for is_in_arm in arm_masks],
            arms,
            level=level,
            resamples=resamples,
            rng=rng,
        )
        losses.append((reason, lost))
        estimates += [
            replace(estimate, settings={**estimate.settings, "lost": reason, "population": POPULATION})
            for estimate in (*lost.shares, *lost.differences, lost.test)
        ]
    return Block(NAME, "Attrition by arm", estimates=tuple(estimates), tables=[_table(losses)])


def _outcome_blind_exclusions(applied_rules: list[AppliedRule]) -> set[int]:
    return set().union(
        *(rule.failed_assignment_ids for rule in applied_rules if rule.excludes and rule.is_outcome_blind)
    )


def build_arrival_block(
    assignments: "DataFrame", applied_rules: list[AppliedRule], *, resamples: int, rng: "np.random.Generator"
) -> Block | None:
    """Return the places of the arms in the order of arrival, or None for a single arm.

    Only annotators who submitted and are not excluded count, each with their first assignment. Imported answers have no
    arrival.
    """
    from analysis.stats.groups import arrival_order

    is_excluded = assignments["assignment"].isin(_outcome_blind_exclusions(applied_rules))
    counted = assignments[assignments["is_submitted"] & ~is_excluded & (assignments["origin"] != "imported")]
    counted = counted.sort_values(["claimed_at", "assignment"]).drop_duplicates("annotator")
    counted = counted[counted["arm"].notna() & counted["claimed_at"].notna()]
    if counted["arm"].nunique() < 2:
        return None
    since_first = (counted["claimed_at"] - counted["claimed_at"].min()).dt.total_seconds()
    found = arrival_order(since_first.to_numpy(), counted["arm"].tolist(), resamples=resamples, rng=rng)
    test_text = (
        f" Test that arms were filled at the same time: {cells.format_named_pvalue(found.test.test)}."
        if found.test.test
        else ""
    )
    rows = [{"arm": place.settings["condition"], "n": place.n, "place": place.estimate} for place in found.places]
    table = build_table(
        ARRIVAL_NAME,
        "Arrival by arm",
        "arm|Arm|text; n|n annotators|integer; place|Mean place|number",
        rows,
        "sure",
        "The mean place in the order of arrival of those who submitted and are not excluded: 0 is the first, 1 is the last, and 0.5 is expected. "
        "An arm that loses people is filled later, so a change over time can look like an effect of the arm."
        + test_text,
    )
    estimates = tuple(
        replace(one, settings={**one.settings, "population": POPULATION}) for one in (*found.places, found.test)
    )
    return Block(ARRIVAL_NAME, "Arrival by arm", estimates=estimates, tables=[table])


def _table(losses: Sequence[tuple[str, "Attrition"]]) -> Table:
    """Return the share lost in each arm and its difference from the first arm."""
    rows = []
    for reason, lost in losses:
        differences = {difference.settings["condition"]: difference for difference in lost.differences}
        for share in lost.shares:
            difference = differences.get(share.settings["condition"])
            rows.append(
                estimate_row(
                    share,
                    "share",
                    lost=reason,
                    arm=share.settings["condition"],
                    n_lost=share.detail.get("successes", 0),
                    **prefixed_cells("difference", difference),
                    p=pvalue_cell(difference),
                    reason=share.reason or (difference.reason if difference else ""),
                )
            )
    tests = [f"{reason}: {cells.format_named_pvalue(lost.test.test)}" for reason, lost in losses if lost.test.test]
    return build_table(
        "attrition",
        "Attrition by arm",
        "lost|Lost|text; arm|Arm|text; n|n assignments|integer; n_lost|n lost|integer; share|Share|fine_percent; interval|95% CI|fine_interval; "
        "difference|Difference from the first arm|fine_percent; difference_interval|95% CI, difference|fine_interval; p|adj. p|p; "
        "reason|Undefined because|text",
        rows,
        "sure",
        "If arms lose different annotators, the remaining annotators are no longer comparable, despite random assignment. Annotators who found no "
        "place or were screened out did not start and are not counted."
        + (f" Test that all arms lose the same share: {'; '.join(tests)}." if tests else ""),
    )


# Tables about test questions: what annotators answered, and whom the rules flag. They say nothing about systems.


def build_test_question_tables(data: ReportData) -> list[Table]:
    """Return the tables, or nothing if no submitted work has an answer to a test question.

    They use the settings of the declared rules, and the default settings of a rule that the design does not declare.
    """
    answers = data.test_answers
    if answers.empty or not (answers["is_submitted"] & answers["is_own"]).any():
        return []
    declared = {rule.slug: rule.settings for rule in data.applied_rules if not rule.problem}
    counts = count_by_annotator(answers)
    screening = fit_and_screen(counts, ModelSettings.from_stored(declared.get("test_question_model", {})))
    simple = SimpleSettings.from_stored(declared.get("failed_tests", {}))
    judged = [fails_simple_rule(row, simple) for row in counts]
    n_counted = sum(row.n_counted > 0 for row in counts)
    share = f" and {100 * simple.share:g} %" if simple.share else ""
    rows: list[dict[str, Any]] = [
        {
            "rule": f"model {screening.model}",
            "n": n_counted,
            "flagged": int(screening.flagged.sum()) if screening.status == "ok" else None,
            "declared": "yes" if "test_question_model" in declared else "no",
        },
        {
            "rule": f"failed {simple.failed} or more{share}, of at least {simple.counted}",
            "n": sum(is_failed is not None for is_failed in judged),
            "flagged": sum(is_failed is True for is_failed in judged),
            "declared": "yes" if "failed_tests" in declared else "no",
        },
    ]
    if screening.beside is not None:
        flagged = int(screening.beside.flagged.sum())
        rows.insert(1, {"rule": "model rate_fixed2", "n": n_counted, "flagged": flagged, "declared": "no"})
    return [
        _answers_by_type_table(answers[answers["is_submitted"] & answers["is_own"]]),
        build_table(
            "test_question_flags",
            "Annotators flagged by test questions",
            "rule|By|text; declared|Declared|text; n|n annotators|integer; flagged|Flagged|integer",
            rows,
            "more",
            " ".join([*model_sentences(screening), *pooled_sentences(pooled_studies(answers))]),
        ),
        build_table(
            "test_question_boundaries",
            "Flagged at this number of right answers or fewer",
            "n|Counted answers of a type|integer; positive|Positive questions|integer; negative|Negative questions|integer",
            boundary_rows(screening, counts),
            "more",
            f"Model {screening.model}. A dash: no number of right answers is flagged. Negative: also damaged and given questions.",
        ),
    ]


def _answers_by_type_table(answers: "DataFrame") -> Table:
    rows = []
    for test_type in Item.TestType.values:
        own = answers[answers["type"] == test_type]
        if own.empty:
            continue
        counted = own[own["is_counted"]]
        n_right = int(counted["is_right"].astype(bool).sum())
        rows.append(
            {
                "type": test_type,
                "questions": int(own[["item", "question"]].drop_duplicates().shape[0]),
                "annotators": int(own["annotator"].nunique()),
                "answers": len(own),
                "pilot": int(own["is_pilot"].sum()),
                "counted": len(counted),
                "right": n_right,
                "share": n_right / len(counted) if len(counted) else None,
            }
        )
    return build_table(
        "test_questions",
        "Test questions",
        "type|Type|text; questions|Questions|integer; annotators|n annotators|integer; answers|Answers|integer; "
        "pilot|Pilot answers|integer; counted|Counted|integer; right|Right|integer; share|Right|percent",
        rows,
        "more",
        "Not counted: skipped answers, neutral answers if the section says so, pilot answers, and questions with which the pilot disagrees.",
    )


# Tables of every report, for any protocol: exclusions, answers, durations, warnings, and all estimates.


# A warning names at most this number of comparisons and counts the rest.
MAX_NAMED = 3


def exclusion_tables(flow: Mapping[str, Any]) -> list[Table]:
    """Return the tables about exclusions."""
    return [
        exclusion_rules_table(flow),
        rule_overlaps_table(flow),
        exclusions_by_arm_table(flow),
        excluded_assignments_table(flow),
    ]


def answer_and_duration_tables(data: ReportData) -> list[Table]:
    """Return the tables about answers and durations."""
    return [submitted_answer_counts_table(data), duration_quartiles_by_arm_table(data)]


def exclusion_rules_table(flow: Mapping[str, Any]) -> Table:
    """Return one row for each exclusion rule, with its counts."""
    rows = [
        {
            **step,
            "settings": ", ".join(f"{key}: {_setting(value)}" for key, value in sorted(step["settings"].items())),
            "blind": "no" if step["is_outcome_blind"] else "yes",
            "recommended": "yes" if step["role"] != "sensitivity" and step["is_outcome_blind"] else "no",
        }
        for step in flow["rules"]
    ]
    return build_table(
        "rules",
        "Exclusions by rule",
        "label|Rule|text; role|Role|text; settings|Settings|text; blind|Uses outcomes|text; recommended|Applied to recommended|text; "
        "n_in|Before|integer; n_flagged|Flagged|integer; n_unknown|Unknown|integer; n_excluded|Excluded|integer; n_out|After|integer; problem|Problem|text",
        rows,
        "sure",
        "Flagged: all annotators whom the rule flags. Excluded: those not already excluded by a rule above. “Unknown” never excludes. "
        "A rule that uses outcomes applies only to the estimates as published.",
    )


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def rule_overlaps_table(flow: Mapping[str, Any]) -> Table:
    rows = [{"rules": " + ".join(overlap["rules"]), "n": overlap["n"]} for overlap in flow["overlaps"]]
    columns = "rules|Flagged by exactly these rules|text; n|n assignments|integer"
    return build_table("overlaps", "Overlap of the rules", columns, rows, "sure")


def exclusions_by_arm_table(flow: Mapping[str, Any]) -> Table:
    rows = [
        {
            "rule": step["label"],
            "arm": arm,
            **counts,
            "share": counts["n_excluded"] / counts["n_in"] if counts["n_in"] else None,
        }
        for step in flow["rules"]
        if step["n_excluded"]
        for arm, counts in step["by_arm"].items()
    ]
    columns = "rule|Rule|text; arm|Arm|text; n_in|Before|integer; n_excluded|Excluded|integer; share|Share|percent"
    return build_table("rules_by_arm", "Exclusions by arm", columns, rows, "more")


def excluded_assignments_table(flow: Mapping[str, Any]) -> Table:
    columns = "annotator|Annotator|text; rule|First rule|text; evidence|Evidence|text"
    return build_table("left_out", "Excluded assignments", columns, flow["excluded_assignments"], "more")


def submitted_answer_counts_table(data: ReportData) -> Table:
    """Count answers by section and question: stored, given, skipped, erased. The rows keep the position and the key."""
    sections = {section.position: section for section in data.sections}
    labels = {
        position: question_labels(section.questions.select_related("x", "y")) for position, section in sections.items()
    }
    rows = data.responses[data.responses["assignment"].isin(data.submitted)]
    lines = []
    for (section, question), answers in rows.groupby(["section", "question"], sort=True):
        has_choice = (answers["choice"] != "") | answers["chosen_system"].notna()
        is_given = answers["value"].notna() | has_choice | (answers["text"] != "")
        position = int(cast(int, section))  # the stubs of pandas do not know the type of a column
        lines.append(
            {
                "section": position,
                "question": question,
                "asked_in": _section_label(sections[position]),
                "asked": labels[position][cast(str, question)],
                "assignments": int(answers["assignment"].nunique()),
                "rows": len(answers),
                "given": int(is_given.sum()),
                "skipped": int((answers["skip_reason"] != "").sum()),
                "erased": int(answers["is_erased"].sum()),
            }
        )
    columns = (
        "asked_in|Section|text; asked|Question|text; assignments|n assignments|integer; rows|Answers stored|integer; given|Given|integer; "
        "skipped|Skipped|integer; erased|Erased|integer"
    )
    return build_table("answers", "Answers by question", columns, lines, "more", keys=("section", "question"))


def _section_label(section: Any) -> str:
    """Return the name of a section, with its purpose if it counts in no result: "Survey (screening)"."""
    purpose = "" if section.purpose == "live" else section.get_purpose_display().partition(":")[0]
    return words_of_section(section).name + in_parentheses(purpose)


def duration_quartiles_by_arm_table(data: ReportData) -> Table:
    """Return quartiles of the minutes from start to submission, by arm."""
    rows = data.assignments[data.assignments["is_submitted"] & data.assignments["seconds"].notna()]
    lines = []
    for arm, arm_rows in rows.groupby("arm", sort=True):
        low, middle, high = (float(arm_rows["seconds"].quantile(q)) / 60 for q in (0.25, 0.5, 0.75))
        lines.append({"arm": arm, "n": len(arm_rows), "median": middle, "quartiles": [low, high]})
    columns = "arm|Arm|text; n|n assignments|integer; median|Median, minutes|number; quartiles|Quartiles, minutes|wide_interval"
    return build_table("times", "Minutes from start to submission", columns, lines, "more")


def warnings_table(blocks: Iterable[Block]) -> Table:
    """Return one row for each distinct warning, with all the numbers that have it."""
    blocks = list(blocks)
    repeated = _repeated_names(blocks)
    grouped: dict[tuple[str, ...], dict[str, dict[str, None]]] = {}
    for block in blocks:
        for estimate in block.estimates:
            for variant in (estimate, *estimate.sensitivity):
                for warning in variant.warnings:
                    if warning.severity == "info":
                        continue
                    estimand = "" if contrast_of(estimate) else variant.estimand
                    about = join_words(_about(block, estimate, repeated), estimand)
                    key = (warning_sentence(warning), warning.severity, block.mode, warning.code)
                    grouped.setdefault(key, {}).setdefault(about, {})[variant.analysis] = None
    rows = [
        {
            "code": code,
            "text": text,
            "severity": severity,
            "mode": mode,
            "n": sum(map(len, numbers.values())),
            "about": _join_names(numbers, None if severity == "block" else MAX_NAMED),
            "analysis": _join_names(dict.fromkeys(name for names in numbers.values() for name in names), None),
        }
        for (text, severity, mode, code), numbers in sorted(
            grouped.items(), key=lambda pair: WARNING_SEVERITIES.index(pair[0][1])
        )
    ]
    columns = (
        "code|Code|text; text|Warning|text; severity|Severity|text; n|Numbers|integer; about|About|text; analysis|Analyses|text; "
        "mode|Mode|text"
    )
    note = "“block”: do not base a claim on these numbers. The JSON result lists the warnings of each number."
    return build_table("warnings", "Warnings", columns, rows, "more", note)


def _repeated_names(blocks: Iterable[Block]) -> set[tuple[str, str]]:
    """Return the names of blocks that a report has several times, for questions or sections, with their modes."""
    return {name for name, n in Counter((block.name, block.mode) for block in blocks).items() if n > 1}


def _about(block: Block, estimate: "Estimate", repeated: Container[tuple[str, str]]) -> str:
    """Return what an estimate is about, with the title of its block if the report has several of that name."""
    if contrast_of(estimate):
        return comparison_label(estimate)
    named = (estimate.settings.get(name) for name in ("system", "model", "condition", "domain"))
    title = block.title if (block.name, block.mode) in repeated else ""
    return join_words(*(name for name in named if isinstance(name, str)), title)


def _join_names(names: Iterable[str], most: int | None) -> str:
    all_names = list(names)
    first_names = all_names[:most]
    return ", ".join(first_names) + (
        f" and {len(all_names) - len(first_names)} more" if len(all_names) > len(first_names) else ""
    )


def estimates_table(blocks: Sequence[Block]) -> Table:
    """Return every number of the report in one table, with its unit, n and status."""
    repeated = _repeated_names(blocks)
    claimed = {_claim_key(name, conclusion.estimate) for name, conclusion in printed_conclusions(blocks)}
    rows = [
        _line(block, estimate, variant, _claim_key(block.name, estimate) in claimed)
        | {"about": _about(block, estimate, repeated)}
        for block in blocks
        for estimate in block.estimates
        for variant in (estimate, *estimate.sensitivity)
    ]
    return build_table(
        "estimates",
        "All numbers",
        "mode|Mode|text; role|Planned as|text; analysis|Analysis|text; about|About|text; estimand|Estimand|text; estimate|Estimate|number; interval|CI|wide_interval; "
        "level|CI at|text; method|CI by|text; test|Test|text; statistic|Statistic|number; df|df|number; p|p|p; p_adjusted|p, adjusted|p; interval_adjusted|CI, adjusted|wide_interval; family|Family|text; "
        "family_size|Tests in family|integer; effect|d|number; n|n|integer; unit|Unit|text; n_rows|Answers|integer; population|Holds for|text; status|Status|text; reason|Reason|text",
        rows,
        "more",
    )


def _claim_key(block_name: str, estimate: "Estimate") -> tuple[Any, ...]:
    return block_name, contrast_of(estimate).get("key"), estimate.settings.get("key")


def _role(contrast: Mapping[str, Any], is_claimed: bool) -> str:
    """Return whether a number was planned: the role of its planned comparison, that it is another measure beside it, or neither."""
    if contrast.get("is_planned") and not is_claimed:
        return "beside a planned one"
    return cells.role_label(contrast) if contrast else "no comparison"


def _line(block: Block, estimate: "Estimate", variant: "Estimate", is_claimed: bool) -> dict[str, Any]:
    """Return the row of ``variant``, which is the estimate itself or one of its sensitivity variants.

    ``is_claimed``: whether a sentence of the report is about the estimate.
    """
    contrast, test = contrast_of(estimate), variant.test

    def claimable(pvalue: float | None) -> float | str | None:
        return NO_CLAIM if pvalue is not None and variant.supports_no_claim else pvalue

    return {
        "mode": block.mode,
        "analysis": variant.analysis,
        "estimand": variant.estimand,
        "unit": variant.unit,
        "n": variant.n,
        "n_rows": variant.n_rows,
        "estimate": variant.estimate,
        "interval": interval_bounds(replace(variant, interval_adjusted=None)),
        "interval_adjusted": interval_bounds(variant) if variant.interval_adjusted else None,
        "level": f"{100 * variant.interval.level:g} %" if variant.interval else "",
        "method": variant.interval.method if variant.interval else "",
        "test": test.name if test else "",
        "statistic": test and test.statistic,
        "df": test and test.df,
        "p": claimable(test.pvalue if test else None),
        "p_adjusted": claimable(test.pvalue_adjusted if test else None),
        "family": (test and test.family) or "",
        "family_size": test and test.family_size,
        "effect": variant.effect and variant.effect.value,
        "population": "" if block.mode == "paper" else population_words(population_of(variant)),
        "status": variant.status,
        "reason": variant.reason,
        "role": _role(contrast, is_claimed) if variant is estimate else "sensitivity",
    }
