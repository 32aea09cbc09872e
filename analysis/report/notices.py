"""Notices that a report shows before its numbers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from analysis.data.context import AnalysisContext
from analysis.exclusions.applied_rules import UNSEEN_RULE, excluding_rules
from analysis.protocols.blocks import Block, apa

from . import newest_version
from .attrition import ARRIVAL_NAME
from .neighbours import count_prompts_with_shared_source, similar_neighbours
from .report_data import ReportData

Notice = dict[str, str]
# As for a test that protects a result: the notice costs little, and a small study finds only large differences.
ARRIVAL_LEVEL = 0.05
ORIGIN_NOUNS = {"live": "people", "robot": "robots", "imported": "people of an imported study", "test": "test runs"}


def make_notice(code: str, text: str, severity: str = "warn") -> Notice:
    return {"code": code, "severity": severity, "text": text}


def build_notices(data: ReportData, parameters: Mapping[str, Any], blocks: Sequence[Block]) -> list[Notice]:
    return [
        *_strict_rule_notices(data),
        *_origin_notices(parameters["origins"]),
        *_amendment_notices(data, blocks),
        *_people_notices(data),
        *_target_notices(data, parameters["origins"]),
        *_outcome_notices(data, blocks),
        *_arrival_notices(blocks),
        *([make_notice("mismatch", data.design_mismatch, "block")] if data.design_mismatch else []),
    ]


def build_dependence_notices(data: ReportData, contexts: Sequence[AnalysisContext]) -> Iterator[Notice]:
    """Give notices of prompts that count as independent and seem to belong together."""
    for correlation in similar_neighbours(data.study, contexts):
        yield make_notice(
            "neighbours",
            f"Prompts that follow each other got similar answers (correlation {apa.format_number(correlation)}), so intervals may be too "
            "narrow. Next time, give prompts of one document a group.",
        )
    if n := count_prompts_with_shared_source(data.study):
        yield make_notice(
            "shared_source",
            f"{n} prompts share their source with another one, but count as independent. In a new study, give prompts of one source a group.",
        )


def _strict_rule_notices(data: ReportData) -> Iterator[Notice]:
    submitted = set(data.submitted)
    for rule in data.applied_rules:
        n = len(rule.failed_assignment_ids & submitted)
        if rule.excludes and 2 * n > len(submitted):
            yield make_notice(
                "rule_excludes_most",
                f"The exclusion rule “{rule.label.partition(':')[0]}” excludes {n} of {len(submitted)} annotators who submitted. Check "
                "its settings and its evidence in the table “Excluded assignments”.",
                "block",
            )


def _origin_notices(origins: Sequence[str]) -> Iterator[Notice]:
    if any(origin != "live" for origin in origins):
        nouns = " and ".join(ORIGIN_NOUNS[origin] for origin in origins)
        yield make_notice("origins", f"This analysis uses {'' if len(origins) > 1 else 'only '}answers of {nouns}.")


def _amendment_notices(data: ReportData, blocks: Iterable[Block]) -> Iterator[Notice]:
    if len(data.design_versions) > 1:
        shares = "; ".join(f"version {v['version']}: {v['assignments']} assignments" for v in data.design_versions)
        is_beside = any(block.name == newest_version.NAME for block in blocks)
        table_note = " A table below shows the planned comparisons without the earlier versions." if is_beside else ""
        yield make_notice("amended", f"The design was amended ({shares}).{table_note}")
    if n := len(data.retired_items):
        retired_answers = data.responses[
            data.responses["item"].isin(data.retired_items) & data.responses["is_submitted"]
        ]
        yield make_notice(
            "retired",
            f"{n} item{'s were' if n > 1 else ' was'} retired by an amendment. Earlier answers still count, as do answers of annotators "
            f"who had already started: {retired_answers['assignment'].nunique()} submitted assignments have some.",
        )


def _people_notices(data: ReportData) -> Iterator[Notice]:
    submitted = data.assignments[data.assignments["is_submitted"]]
    if unknown := int((~submitted["is_identified"]).sum()):
        yield make_notice(
            "identity",
            f"{unknown} of {len(submitted)} submitted assignments came by an open link, so heval cannot verify that they are different people.",
        )
    if n := data.n_withdrawn:
        yield make_notice(
            "withdrawn",
            f"{n} assignment{'s were' if n > 1 else ' was'} withdrawn by the annotator and not included.",
            "info",
        )
    unseen = submitted[submitted["unseen_pages"] > 0]
    if len(unseen):
        n, n_affected = int(unseen["unseen_pages"].sum()), len(unseen)
        is_left_out = any(rule.slug == UNSEEN_RULE for rule in excluding_rules(data.applied_rules))
        yield make_notice(
            "unseen",
            f"{n} page{'s were' if n > 1 else ' was'} answered by annotators who reported an unseen image "
            f"({n_affected} submitted assignment{'s' if n_affected > 1 else ''}). Answers about these images {'do not count' if is_left_out else 'count'}. "
            "The column “unseen” names them.",
        )
    if n := data.n_excluded_after_judgement:
        yield make_notice(
            "excluded_later",
            f"{n} annotator{'s were' if n > 1 else ' was'} excluded after the stopping rule had counted them. The rule's numbers keep them, "
            "and its sensitivity analysis leaves them out.",
        )


def _target_notices(data: ReportData, origins: Sequence[str]) -> Iterator[Notice]:
    study, submitted, kept = data.study, len(data.submitted), len(data.kept)
    n = kept if study.target_kind == "kept" else submitted
    if study.audit_events.filter(verb="decide").exists():
        yield make_notice(
            "stopped",
            f"The stopping rule closed the study after {n} annotators; the maximum was {study.target_n}.",
            "info",
        )
    elif study.target_n and n < study.target_n and "live" in origins:
        yield make_notice(
            "below_target",
            f"The study has {n} of its target of {study.target_n} annotators, so intervals are wider than planned.",
        )
    if submitted and not kept:
        yield make_notice(
            "all_excluded",
            "The exclusion rules exclude every annotator, so nothing can be estimated. The table “Exclusions by rule” below shows how many each "
            "rule flags.",
            "block",
        )


def _arrival_notices(blocks: Iterable[Block]) -> Iterator[Notice]:
    tests = [e for block in blocks if block.name == ARRIVAL_NAME for e in block.estimates if e.test is not None]
    if any(e.test.pvalue < ARRIVAL_LEVEL for e in tests if e.test):
        yield make_notice(
            "arrival",
            "Arms were filled at different times, so a change over time can look like an effect of the arm. See the table “Arrival by arm”.",
        )


def _outcome_notices(data: ReportData, blocks: Iterable[Block]) -> Iterator[Notice]:
    """Give notices of rules that use outcomes, and of warnings that concern many numbers."""
    for rule in data.applied_rules:
        if rule.role == "primary" and not rule.is_outcome_blind:
            yield make_notice(
                "outcome_rule",
                f"The rule “{rule.label}” uses outcomes, so it applies only to the estimates as published. The recommended estimates show "
                "its effect as a sensitivity analysis.",
            )
    primary = (estimate for block in blocks for estimate in block.estimates)
    codes = {
        warning.code
        for estimate in primary
        for variant in (estimate, *estimate.sensitivity)
        for warning in variant.warnings
    }
    if "tau_one_order_bias" in codes:
        yield make_notice(
            "tau_one_order_bias",
            "The estimates as in Ethayarajh and Jurafsky 2022 use tau and one order. They are biased downwards: do not base a "
            "claim on them.",
            "block",
        )
    if "order_not_identified" in codes:
        yield make_notice(
            "order",
            "Some pairs were asked in only one order. For them, the effect of being named first cannot be separated from being better.",
        )
