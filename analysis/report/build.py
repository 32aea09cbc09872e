"""Build the report of a study as one JSON value without NaN.

``build_report`` reads the answers, applies the exclusion rules, runs each protocol's analysis and adds the common tables.
Pages, exports and figures all use this stored value; nothing is computed again. The same database, parameters and code give
the same bytes.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from analysis.data.blinding import are_outcomes_hidden
from analysis.data.snapshot import database_snapshot
from analysis.exclusions.flow import exclusion_flow
from analysis.protocols import REGISTRY
from analysis.protocols.blocks import Block, Overview, sentences
from analysis.protocols.blocks.populations import name_populations
from analysis.protocols.blocks.subjects import words_of_section
from analysis.protocols.blocks.tables import (
    Table,
    add_family_notes,
    add_references,
    merge_nonempty_by_name_and_title,
    relabel_interval_columns,
)
from annotators.counting import simulated_words
from studies.models import Study
from studies.services.version import version

from . import no_conclusion
from .attrition import build_arrival_block, build_attrition_block
from .coding_blocks import build_coding_blocks as coding_blocks
from .missing_answers import count_missing_answers
from .newest_version import newest_version_blocks
from .notices import build_dependence_notices, build_notices
from .parameters import validate_parameters
from .planned import compare_plan_with_study, planned_and_reached_table
from .protocol_blocks import analysis_contexts, protocol_blocks
from .report_data import ReportData, read_report_data
from .report_tables import answer_and_duration_tables, estimates_table, exclusion_tables, warnings_table
from .test_question_tables import build_test_question_tables

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
    rules = [[rule.slug, dict(rule.settings), rule.role] for rule in data.applied_rules]
    seed = seed_hex(str(study.code), "report", validated, data.data_sha256, rules, data.current_design_sha256)
    hidden = _hidden(study, validated["origins"])
    problems = [
        {"row": f"rule {rule.slug}", "column": "settings", "text": rule.problem}
        for rule in data.applied_rules
        if rule.problem
    ]
    blocks = [] if hidden else _blocks(data, validated, seed, problems, progress)
    progress(3, 5, "Making tables")
    overview = _overview(data, blocks, validated["star_scheme"])
    result: dict[str, Any] = {
        "schema": SCHEMA,
        "study": {"code": str(study.code), "title": study.title, "state": study.state},
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
            *([] if hidden else build_dependence_notices(data, analysis_contexts(data, validated, seed, []))),
        ],
        "blocks": [block.as_dict() for block in blocks],
        "problems": [*data.problems, *problems],
        "n_problems": data.n_problems + len(problems),
        "conclusions": sentences.build_conclusion_sentences(blocks),
        "no_conclusion": "",
        "summary": [*overview.summary, *sentences.undeclared_population_lines(blocks)],
    }
    if not hidden and not result["conclusions"]:
        contrasts = list(study.contrasts.select_related("x", "y").order_by("pk"))
        result["no_conclusion"] = no_conclusion.explain_no_conclusion(
            contrasts, flow["submitted"], len(data.kept), data.live_answers(), result["problems"]
        )
    compared = {} if hidden else compare_plan_with_study(study, blocks)
    if compared:
        result["planned_and_reached"] = compared
    tables = add_family_notes([*_tables(data, flow, blocks, overview), planned_and_reached_table(compared)], blocks)
    result["tables"] = [
        relabel_interval_columns(table, validated["level"])
        for table in add_references(merge_nonempty_by_name_and_title(tables), blocks)
    ]
    mark = simulated_words(validated["origins"])
    result["methods"] = sentences.methods_section_lines(result)
    result["figures"] = merge_nonempty_by_name_and_title(figure for block in blocks for figure in block.figures)
    if mark:
        # Tables and figures leave the page as files.
        for one in (*result["tables"], *result["figures"]):
            one["title"] = f"{one['title']} ({mark})"
    progress(4, 5, "Writing")
    return json_safe(result)


def _blocks(
    data: ReportData,
    parameters: Mapping[str, Any],
    seed: str,
    problems: list[dict[str, Any]],
    progress: ProgressCallback,
) -> list[Block]:
    from analysis.stats.seeds import seeded_generator

    blocks = protocol_blocks(data, parameters, seed, problems, progress)
    if newest := data.newest_version_data():
        blocks += newest_version_blocks(blocks, protocol_blocks(newest, parameters, seed, problems, progress))
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
        reasons.append(f"It includes answers of {' and '.join(nouns[origin] for origin in others)}.")
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
