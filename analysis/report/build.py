"""The parameters of a report, their defaults and their validation."""

import hashlib
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.data.blinding import are_outcomes_hidden
from analysis.data.context import AnalysisContext
from analysis.data.frames import rows_where, validate_origins
from analysis.data.snapshot import database_snapshot
from analysis.exclusions.screening import UNSEEN_RULE, excluding_rules, exclusion_flow, pooled_studies
from analysis.protocols import REGISTRY, HeadlineAnswers, StartedAnalysis
from analysis.protocols.blocks import Block, Overview, add_default_planned_conclusions, cells, sentences
from analysis.protocols.blocks.comparisons import AdjustedByBlock
from analysis.protocols.blocks.layouts import (
    Table,
    add_family_notes,
    add_references,
    merge_nonempty_by_name_and_title,
    relabel_interval_columns,
)
from analysis.protocols.blocks.populations import name_populations
from analysis.protocols.families import adjust_comparisons, planned_claims
from annotators.counting import Use, select, simulated_words
from annotators.models import Assignment
from studies.design.subjects import words_of_section
from studies.models import Study
from studies.services.lifecycle import FieldsRefused
from studies.services.version import version

from . import report_data
from .answer import build_answer, limits_of_claims, methods_paragraph
from .coding_blocks import build_coding_blocks as coding_blocks
from .fragility import claims_fragility
from .items import build_items
from .neighbours import count_prompts_with_shared_source, similar_neighbours
from .next_study import next_study_block
from .opinions import Compared, compare_groups, opinions_block, read_groupings
from .planned import compare_plan_with_study, planned_and_reached_table
from .report_data import ReportData, count_missing_answers, newest_version_blocks, read_report_data
from .report_tables import (
    ARRIVAL_NAME,
    answer_and_duration_tables,
    build_arrival_block,
    build_attrition_block,
    build_test_question_tables,
    estimates_table,
    exclusion_tables,
    warnings_table,
)
from .rule_effects import rule_effects, rule_effects_table

if TYPE_CHECKING:
    from pandas import DataFrame


DEFAULT_PARAMETERS: dict[str, Any] = {"origins": ["live"], "level": 0.95, "resamples": 9999, "star_scheme": "10/5/1"}
# Values of delta for which two choices count the labels that each strategy needs, beside the delta of the design. A report
# without them does not name them, and they do not enter the seed: they add rows and change no other number.
DELTAS, DELTA_LIMITS, MAX_DELTAS = "deltas", (0.0001, 0.2), 5
STAR_SCHEMES = ("10/5/1", "5/1/0.1")


class BadParameters(FieldsRefused):
    """A report parameter is unknown or invalid."""


def default_origins(study: Study) -> list[str]:
    """Return the default origins: imported if the study has imported assignments and no live ones, else live."""
    assignments = Assignment.objects.filter(study=study)
    live, imported = (select(Use.ROWS, assignments, [origin]) for origin in ("live", "imported"))
    is_imported = imported.exists() and not live.exists()
    return ["imported"] if is_imported else list(DEFAULT_PARAMETERS["origins"])


def settings_of(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a stored analysis without the job that ran it."""
    return {name: value for name, value in parameters.items() if name != "job"}


def validate_parameters(parameters: Mapping[str, Any] | None, study: Study | None = None) -> dict[str, Any]:
    """Validate the parameters and fill in defaults, with the study's default origins. Raises BadParameters."""
    given = dict(parameters or {})
    if unknown := sorted(set(given) - {*DEFAULT_PARAMETERS, DELTAS}):
        raise BadParameters(
            {unknown[0]: f"there is no such parameter. Use {', '.join([*DEFAULT_PARAMETERS, DELTAS])}."}
        )
    validated = DEFAULT_PARAMETERS | given
    if not isinstance(validated["origins"], list | tuple) or not all(
        isinstance(origin, str) for origin in validated["origins"]
    ):
        raise BadParameters({"origins": 'must be a list of origins. Use, for example, ["live"].'})
    try:
        validated["origins"] = validate_origins(validated["origins"])
    except ValueError as error:
        raise BadParameters({"origins": str(error).removeprefix("origins: ")}) from None
    if not validated["origins"]:
        raise BadParameters({"origins": "the list is empty. Name at least one origin."})
    level, resamples = validated["level"], validated["resamples"]
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0.5 <= level < 1:
        raise BadParameters({"level": f"{level!r} is not accepted. Enter a number from 0.5 to below 1."})
    if isinstance(resamples, bool) or not isinstance(resamples, int) or not 99 <= resamples <= 99_999:
        raise BadParameters({"resamples": f"{resamples!r} is not accepted. Enter an integer from 99 to 99999."})
    if validated["star_scheme"] not in STAR_SCHEMES:
        text = f"{validated['star_scheme']!r} is not a star scheme. Use {' or '.join(STAR_SCHEMES)}."
        raise BadParameters({"star_scheme": text})
    if deltas := validate_deltas(validated.pop(DELTAS, [])):
        validated[DELTAS] = deltas
    if study is not None and "origins" not in given:
        validated["origins"] = default_origins(study)
    return validated


def validate_deltas(deltas: Any) -> list[float]:
    """Return the values from the largest to the smallest. Raises BadParameters."""
    low, high = DELTA_LIMITS
    if not isinstance(deltas, list | tuple) or not all(
        isinstance(delta, int | float) and low <= delta <= high for delta in deltas
    ):
        text = f"{deltas!r} is not accepted. Use a list of numbers from {low:g} to {high:g}."
        raise BadParameters({DELTAS: text})
    if len(found := sorted(set(deltas), reverse=True)) > MAX_DELTAS:
        raise BadParameters({DELTAS: f"the list has {len(found)} values. Use at most {MAX_DELTAS}."})
    return found


# Explain why a report estimates no planned comparison, and what the researcher can do.


NO_ESTIMATE_PREFIX = "No planned comparison could be estimated: "


def explain_no_conclusion(
    contrasts: Sequence[Any],
    n_submitted: int,
    n_kept: int,
    live_answers: "DataFrame",
    problems: Iterable[Mapping[str, Any]],
) -> str:
    """Return the sentence that a report shows instead of conclusions, or '' if no comparison is planned.

    ``live_answers``: the live answers of submitted assignments, with the column ``is_kept``.
    """
    if not contrasts:
        return ""
    if not n_submitted:
        return f"{NO_ESTIMATE_PREFIX}no annotator has submitted answers yet. Run the analysis again when answers are there."
    if not n_kept:
        return (
            f"{NO_ESTIMATE_PREFIX}the exclusion rules exclude all {n_submitted} submitted assignments. Check the "
            "rules' settings and the table “Exclusions by rule”."
        )
    failed = [problem["row"] for problem in problems if str(problem["row"]).startswith("protocol ")]
    if failed:
        return (
            f"{NO_ESTIMATE_PREFIX}the analysis of the {failed[0]} failed. The list of problems below gives the reason."
        )
    kept_rows = live_answers[live_answers["is_kept"]]
    if kept_rows.empty:
        return (
            f"{NO_ESTIMATE_PREFIX}no submitted assignment has answers of a live section. Check in the list of assignments "
            "which questions they saw."
        )
    unshared = [
        contrast
        for contrast in contrasts
        if contrast.x_id and not _judged_both(kept_rows, contrast.x.name, contrast.y.name)
    ]
    if unshared:
        pair_names = "; ".join(f"{contrast.x.name} and {contrast.y.name}" for contrast in unshared[:5])
        return (
            f"{NO_ESTIMATE_PREFIX}no annotator judged both systems of a planned pair ({pair_names}). Show both to the same "
            "annotators in a clone."
        )
    return (
        f"{NO_ESTIMATE_PREFIX}the live sections do not estimate the planned quantities. Plan the quantities of the tables "
        "below in a clone."
    )


def _judged_both(rows: "DataFrame", x: str, y: str) -> bool:
    """Return whether at least one annotator has answers about both systems, in any column that names systems."""
    for _, answers in rows.groupby("annotator", sort=False):
        system_names = {name for column in ("system", "chosen_system", "x", "y") for name in answers[column].dropna()}
        if {x, y} <= system_names:
            return True
    return False


# Notices that a report shows before its numbers.


Notice = dict[str, str]
# As for a test that protects a result: the notice costs little, and a small study finds only large differences.
ARRIVAL_LEVEL = 0.05
ORIGIN_NOUNS = {"live": "people", "robot": "robots", "imported": "people of an imported study", "test": "test runs"}


def make_notice(code: str, text: str, severity: str = "warn") -> Notice:
    return {"code": code, "severity": severity, "text": text}


def build_notices(data: ReportData, parameters: Mapping[str, Any], blocks: Sequence[Block]) -> list[Notice]:
    return [
        *_strict_rule_notices(data),
        *_archive_notices(data),
        *_origin_notices(parameters["origins"]),
        *_amendment_notices(data, blocks),
        *_people_notices(data),
        *_target_notices(data, parameters["origins"]),
        *_outcome_notices(data, blocks),
        *_arrival_notices(blocks),
        *([make_notice("mismatch", data.design_mismatch, "block")] if data.design_mismatch else []),
    ]


def build_dependence_notices(
    data: ReportData, contexts: Sequence[AnalysisContext], headlines: Mapping[str, Sequence[HeadlineAnswers]]
) -> Iterator[Notice]:
    """Give notices of prompts that count as independent and seem to belong together."""
    for correlation in similar_neighbours(data.study, contexts, headlines):
        yield make_notice(
            "neighbours",
            f"Prompts that follow each other got similar answers (correlation {cells.format_number(correlation)}), so intervals may be too "
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


def _archive_notices(data: ReportData) -> Iterator[Notice]:
    if data.study.audit_events.filter(verb="import archive").exists():
        yield make_notice(
            "archive",
            "This study was imported from its archive. This site did not collect its answers, and believes what the archive says about them.",
            "info",
        )


def _origin_notices(origins: Sequence[str]) -> Iterator[Notice]:
    if any(origin != "live" for origin in origins):
        nouns = " and ".join(ORIGIN_NOUNS[origin] for origin in origins)
        yield make_notice("origins", f"This analysis uses {'' if len(origins) > 1 else 'only '}answers of {nouns}.")


def _amendment_notices(data: ReportData, blocks: Iterable[Block]) -> Iterator[Notice]:
    if len(data.design_versions) > 1:
        shares = "; ".join(f"version {v['version']}: {v['assignments']} assignments" for v in data.design_versions)
        is_beside = any(block.name == report_data.NAME for block in blocks)
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


# Run the analysis of every protocol, and adjust their comparisons together.
#
# Each analysis first makes its estimates. Then the comparisons of all protocols are adjusted in their families, and
# each analysis writes its sentences, tables and figures. An error in one protocol must not remove the results of
# others.


logger = logging.getLogger("heval.report")


def protocol_blocks(
    data: ReportData,
    contexts: Sequence[AnalysisContext],
    parameters: Mapping[str, Any],
    problems: list[dict[str, Any]],
    progress: Callable[[int, int, str], Any],
) -> list[Block]:
    """Return the blocks of every protocol with live sections."""
    errors: dict[str, Exception] = {}
    claims = planned_claims({context.protocol: context.sections for context in contexts}, errors)
    for slug, error in errors.items():
        text = (
            f"Its planned comparisons could not be counted ({type(error).__name__}), so it is not analysed, and other claims are adjusted "
            "for fewer tests. The server log has the details."
        )
        problems.append({"row": f"protocol {slug}", "column": "", "text": text})
    contexts = [context for context in contexts if context.protocol not in errors]
    started: dict[str, StartedAnalysis] = {}
    for number, context in enumerate(contexts, 1):
        progress(2, 5, f"Analysing {context.protocol} ({number} of {len(contexts)})")
        with _keeping_other_protocols(context.protocol, problems):
            started[context.protocol] = StartedAnalysis(REGISTRY[context.protocol], context)
    declared = list(data.study.comparison_families.all())
    options = {"claims": claims, "declared": declared, "star_scheme": parameters["star_scheme"]}
    started, adjusted = _adjust_what_can_be(started, problems, options)
    blocks: list[Block] = []
    for slug, analysis in started.items():
        with _keeping_other_protocols(slug, problems):
            blocks += [
                _named_after_its_paper(block, REGISTRY[slug].paper)
                for block in add_default_planned_conclusions(analysis.finish(adjusted))
            ]
    return blocks


def _named_after_its_paper(block: Block, paper: str) -> Block:
    """Return a block that reproduces a paper, with the paper's name in its tables."""
    if block.mode != "paper" or not paper:
        return block
    tables: list[Table] = [{**table, "paper": paper} for table in block.tables]
    return replace(block, tables=tables)


def _adjust_what_can_be(
    started: dict[str, StartedAnalysis], problems: list[dict[str, Any]], options: Mapping[str, Any]
) -> tuple[dict[str, StartedAnalysis], AdjustedByBlock]:
    """Return the analyses whose comparisons can be adjusted, and these adjusted. The claims of others count with p = 1."""

    def adjusted(analyses: Mapping[str, StartedAnalysis]) -> AdjustedByBlock:
        compared = {name: pairs for one in analyses.values() for name, pairs in one.compared.items()}
        return adjust_comparisons(compared, **options)

    try:
        return started, adjusted(started)
    except Exception:
        logger.exception("The comparisons could not be adjusted together")
    sound = {}
    for slug, analysis in started.items():
        with _keeping_other_protocols(slug, problems):
            adjusted({slug: analysis})
            sound[slug] = analysis
    return sound, adjusted(sound)


def analysis_contexts(
    data: ReportData, parameters: Mapping[str, Any], seed: str, problems: list[dict[str, Any]]
) -> list[AnalysisContext]:
    """Return the input of each protocol's analysis."""
    rows = data.live_answers()
    tau = next((rule for rule in data.applied_rules if rule.slug == "incoherent" and not rule.problem), None)
    options = {name: parameters[name] for name in ("level", "resamples", "star_scheme")}
    options[DELTAS] = tuple(parameters.get(DELTAS, ()))
    contexts = []
    for slug, sections in data.live_sections.items():
        if slug not in REGISTRY:
            text = "This protocol is not installed, so its sections are not analysed."
            problems.append({"row": f"protocol {slug}", "column": "", "text": text})
            continue
        contexts.append(
            AnalysisContext(
                protocol=slug,
                rows=rows_where(rows, rows["protocol"] == slug),
                sections=sections,
                seed=seed,
                tau=float(tau.settings.get("tau", 1.1)) if tau else 1.1,
                is_after_tau=bool(tau and tau.excludes and tau.failed_assignment_ids),
                claims=data.claims,
                page_seconds=data.page_seconds,
                metric_scores=data.metric_scores,
                **options,
            )
        )
    return contexts


@contextmanager
def _keeping_other_protocols(slug: str, problems: list[dict[str, Any]], kind: str = "protocol") -> Iterator[None]:
    """Catch an error in the analysis of one protocol, or of one ``kind`` of part, and add it to the problems. The log has the details."""
    try:
        yield
    except Exception as error:
        logger.exception("The analysis of %s failed", slug)
        text = f"The analysis failed ({type(error).__name__}). The server log has the details."
        problems.append({"row": f"{kind} {slug}", "column": "", "text": text})


# Build the report of a study as one JSON value without NaN.
#
# ``build_report`` reads the answers, applies the exclusion rules, runs each protocol's analysis and adds the common
# tables. Pages, exports and figures all use this stored value; nothing is computed again. The same database,
# parameters and code give the same bytes.


SCHEMA = "heval.report/2"
NO_COMPARISON_PLANNED = "No comparison was planned."
STILL_COLLECTING = "The study is still collecting."
LIBRARIES = ("numpy", "scipy", "pandas")
ProgressCallback = Callable[[int, int, str], Any]


def build_report(
    study: Study,
    parameters: Mapping[str, Any] | None = None,
    progress: ProgressCallback = lambda done, total, doing: None,
) -> dict[str, Any]:
    """Return the report of a study as plain JSON: data, exclusions, estimates, tables and sentences.

    While a study is collecting and not unblinded, the report has only quality and progress. Raises BadParameters.
    """
    from analysis.stats.results import json_safe
    from analysis.stats.seeds import seed_hex

    validated = validate_parameters(parameters, study)
    progress(0, 5, "Reading the answers")
    with database_snapshot():
        data = read_report_data(study, validated["origins"])
        missing_answers = count_missing_answers(data.study, data.kept, data.live_answers())
    study = data.study
    progress(1, 5, "Applying the exclusion rules")
    flow = exclusion_flow(data.applied_rules, data.assignments)
    flow["origins"] = dict(sorted(Counter(data.assignments["origin"]).items()))
    if pooled := pooled_studies(data.test_answers):
        flow["test_answers_of"] = pooled
    rules = [[rule.slug, dict(rule.settings), rule.role] for rule in data.applied_rules]
    seeded = {name: value for name, value in validated.items() if name != DELTAS}
    seed = seed_hex(str(study.code), "report", seeded, data.data_sha256, rules, data.current_design_sha256)
    hidden = _hidden(study, validated["origins"])
    problems = [
        {"row": f"rule {rule.slug}", "column": "settings", "text": rule.problem}
        for rule in data.applied_rules
        if rule.problem
    ]
    contexts = [] if hidden else analysis_contexts(data, validated, seed, problems)
    blocks = [] if hidden else _blocks(data, contexts, validated, seed, problems, progress)
    failed = {problem["row"] for problem in problems}
    contexts = [context for context in contexts if f"protocol {context.protocol}" not in failed]
    effects: list[dict[str, Any]] = []
    items: list[dict[str, Any]] = []
    compared_groups: list[Compared] = []
    headlines: dict[str, Sequence[HeadlineAnswers]] = defaultdict(list)
    groupings = [] if hidden else read_groupings(data)
    for context in contexts:
        with _keeping_other_protocols(context.protocol, problems):
            effects += rule_effects(blocks, context, data.applied_rules)
            headlines[context.protocol] = REGISTRY[context.protocol].headline_answers(context)
            items += build_items(context, blocks, headlines[context.protocol])
            compared_groups += compare_groups(context, groupings, blocks)
    opinions = None
    if compared_groups:
        block, opinions = opinions_block(compared_groups)
        blocks.append(block)
    with _keeping_other_protocols("next study", problems, "part"):
        if found := next_study_block(blocks, headlines, study.size_plan):
            blocks.append(found)
    conclusions, fragility = sentences.build_conclusion_sentences(blocks), list[dict[str, Any]]()
    with _keeping_other_protocols("fragility", problems, "part"):
        fragility = claims_fragility(blocks, conclusions, data.responses["annotator"].cat.categories.tolist())
    progress(3, 5, "Making tables")
    overview = _overview(data, blocks, validated["star_scheme"])
    result: dict[str, Any] = {
        "schema": SCHEMA,
        "study": {"code": str(study.code), "title": study.title, "state": study.state}
        | ({"template": study.template} if study.template else {}),
        "parameters": validated,
        "seed": seed,
        "code_version": version_and_source_hash(),
        "libraries": {name: metadata.version(name) for name in LIBRARIES},
        "data": {
            "responses_n": len(data.responses),
            "sha256": data.data_sha256,
            "n_withdrawn": data.n_withdrawn,
            "sources": data.sources,
            "codings_n": data.codings[1],
            "codings_sha256": data.codings[0] if data.codings[1] else "",
        },
        "design": {
            "versions": data.design_versions,
            "mismatch": data.design_mismatch,
            "now_sha256": data.current_design_sha256,
        },
        "outcomes": {"is_hidden": bool(hidden), "reason": hidden},
        "confirmatory": _confirmatory(data, validated),
        "n": {
            "arrived": flow["arrived"],
            "submitted": flow["submitted"],
            "kept": len(data.kept),
            "kept_paper": flow["kept"],
        },
        "missing_answers": missing_answers,
        "flow": flow,
        "sections": [
            {
                "position": s.position,
                "name": words_of_section(s).name,
                "protocol": s.protocol,
                "purpose": s.purpose,
                "m": s.m,
                "questions": s.questions.count(),
            }
            for s in data.sections
        ],
        "families": _families(blocks),
        "notices": [
            *build_notices(data, validated, blocks),
            *([] if hidden else build_dependence_notices(data, contexts, headlines)),
        ],
        "blocks": [block.as_dict() for block in blocks],
        "problems": [*data.problems, *problems],
        "n_problems": data.n_problems + len(problems),
        "conclusions": conclusions,
        "fragility": fragility,
        "no_conclusion": "",
        "summary": [*overview.summary, *sentences.undeclared_population_lines(blocks)],
    }
    if not hidden and not result["conclusions"]:
        contrasts = list(study.contrasts.select_related("x", "y").order_by("pk"))
        result["no_conclusion"] = explain_no_conclusion(
            contrasts, flow["submitted"], len(data.kept), data.live_answers(), result["problems"]
        )
    if opinions:
        result["opinions"] = {name: opinions[name] for name in ("sentences", "n_compared")}
    compared = {} if hidden else compare_plan_with_study(study, blocks)
    if compared:
        result["planned_and_reached"] = compared
    result["answer"], systems = build_answer(blocks)
    if opinions:
        result["answer"]["sentences"] += opinions["heads"]
    if not hidden:
        result["answer"]["methods"] = methods_paragraph(study, result, blocks)
        result["answer"]["limits"] = [*limits_of_claims(result, blocks), *overview.limits]
        result["items"] = sorted(items, key=lambda one: sentences.ROLES.index(one["role"]))
    tables = add_family_notes(
        [
            *systems,
            *_tables(data, flow, blocks, overview),
            planned_and_reached_table(compared),
            rule_effects_table(effects),
        ],
        blocks,
    )
    result["tables"] = [
        relabel_interval_columns(table, validated["level"])
        for table in add_references(merge_nonempty_by_name_and_title(tables), blocks)
    ]
    mark = simulated_words(validated["origins"])
    result["methods"] = sentences.methods_section_lines(result)
    result["figures"] = merge_nonempty_by_name_and_title(figure for block in blocks for figure in block.figures)
    if mark:
        # Claims, tables and figures leave the page one by one.
        for one in (*conclusions, *fragility):
            one["claim"] = f"{one['claim'].removesuffix('.')} ({mark})."
        for one in (*result["tables"], *result["figures"]):
            one["title"] = f"{one['title']} ({mark})"
    progress(4, 5, "Writing")
    return json_safe(result)


def _blocks(
    data: ReportData,
    contexts: Sequence[AnalysisContext],
    parameters: Mapping[str, Any],
    seed: str,
    problems: list[dict[str, Any]],
    progress: ProgressCallback,
) -> list[Block]:
    from analysis.stats.seeds import seeded_generator

    blocks = protocol_blocks(data, contexts, parameters, problems, progress)
    if newest := data.newest_version_data():
        newest_contexts = analysis_contexts(newest, parameters, seed, problems)
        newest_blocks = protocol_blocks(newest, newest_contexts, parameters, problems, progress)
        blocks += newest_version_blocks(blocks, newest_blocks)
    options = {"level": parameters["level"], "resamples": parameters["resamples"]}
    if lost := build_attrition_block(
        data.assignments, data.applied_rules, rng=seeded_generator(seed, "attrition"), **options
    ):
        blocks.append(lost)
    if arrived := build_arrival_block(
        data.assignments, data.applied_rules, resamples=parameters["resamples"], rng=seeded_generator(seed, "arrival")
    ):
        blocks.append(arrived)
    blocks += coding_blocks(data.coding_samples, seed=seed, **options)
    return [name_populations(block) for block in blocks]


def _hidden(study: Study, origins: list[str]) -> str:
    """Return why outcomes are hidden, or '' if they are shown. Outcomes of robots are never hidden."""
    if are_outcomes_hidden(study, origins):
        return (
            "The study is still collecting, so this report shows only quality and progress. Outcomes appear when the study is closed, or when its "
            "owner unblinds it (this is recorded). Looking at outcomes during collection makes p-values wrong."
        )
    return ""


def _confirmatory(data: ReportData, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return whether the tests are confirmatory, with every reason against it."""
    study, reasons = data.study, []
    if not data.design_versions:
        reasons.append("The design was not frozen: the study was not launched.")
    if data.design_mismatch:
        reasons.append(data.design_mismatch)
    if study.unblinded_at and (study.closing_at is None or study.unblinded_at < study.closing_at):
        reasons.append("The study was unblinded while it was collecting.")
    if study.state in Study.COLLECTING_STATES:
        reasons.append(STILL_COLLECTING)
    if "imported" in parameters["origins"]:
        reasons.append(sentences.IMPORTED_EARLIER)
    if others := [origin for origin in parameters["origins"] if origin not in ("live", "imported")]:
        nouns = {"robot": "robots", "test": "test runs"}
        named = " and ".join(nouns[origin] for origin in others)
        are_alone = len(others) == len(parameters["origins"])
        reasons.append(f"Only {named} answered." if are_alone else f"It includes answers of {named}.")
    if not study.contrasts.exists():
        reasons.append(NO_COMPARISON_PLANNED)
    return {"is_confirmatory": not reasons, "reasons": reasons}


def _overview(data: ReportData, blocks: Sequence[Block], star_scheme: str) -> Overview:
    """Merge the protocols' overviews. Protocols that share a builder are built once."""
    builders = dict.fromkeys(REGISTRY[slug].build_overview for slug in data.live_sections if slug in REGISTRY)
    overviews = [builder(blocks, star_scheme) for builder in builders if builder is not None]
    return Overview(
        [table for overview in overviews for table in overview.tables],
        [line for overview in overviews for line in overview.summary],
        [limit for overview in overviews for limit in overview.limits],
    )


def _families(blocks: Iterable[Block]) -> list[dict[str, Any]]:
    estimates = [estimate for block in blocks for estimate in block.estimates]
    tests = (estimate.test for estimate in estimates if estimate.test and estimate.test.family)
    families = sorted({(test.family, test.family_size, test.adjust) for test in tests})
    gates = {
        estimate.test.family: {"after": gate["family"], "is_tested": gate["is_open"]}
        for estimate in estimates
        if estimate.test and (gate := estimate.detail.get("gate"))
    }
    return [{"family": name, "size": size, "adjust": method} | gates.get(name, {}) for name, size, method in families]


def _tables(data: ReportData, flow: Mapping[str, Any], blocks: Sequence[Block], overview: Overview) -> list[Table]:
    return [
        *(table for table in overview.tables if table["place"] == "first"),
        *(table for block in blocks for table in block.tables),
        *(table for table in overview.tables if table["place"] != "first"),
        *exclusion_tables(flow),
        *answer_and_duration_tables(data),
        *build_test_question_tables(data),
        warnings_table(blocks),
        estimates_table(blocks),
    ]


@lru_cache(maxsize=1)
def version_and_source_hash() -> str:
    """Return the version and a hash of the source code, which changes with every line of code."""
    root = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256()
    for package in ("studies", "annotators", "analysis"):
        for path in sorted((root / package).rglob("*.py")):
            if "migrations" not in path.parts:
                digest.update(f"{path.relative_to(root).as_posix()}\x00".encode() + path.read_bytes())
    return f"{version()}+src.{digest.hexdigest()[:12]}"
