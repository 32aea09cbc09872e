"""Run the analysis of every protocol, and adjust their comparisons together.

Each analysis first makes its estimates. Then the comparisons of all protocols are adjusted in their families, and each
analysis writes its sentences, tables and figures. An error in one protocol must not remove the results of others.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from analysis.data.context import AnalysisContext
from analysis.protocols import REGISTRY, StartedAnalysis
from analysis.protocols.blocks import Block, add_default_planned_conclusions
from analysis.protocols.blocks.comparisons import AdjustedByBlock
from analysis.protocols.families import adjust_comparisons, planned_claims

from .report_data import ReportData

logger = logging.getLogger("heval.report")


def protocol_blocks(
    data: ReportData,
    parameters: Mapping[str, Any],
    seed: str,
    problems: list[dict[str, Any]],
    progress: Callable[[int, int, str], Any],
) -> list[Block]:
    """Return the blocks of every protocol with live sections."""
    contexts = analysis_contexts(data, parameters, seed, problems)
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
            blocks += add_default_planned_conclusions(analysis.finish(adjusted))
    return blocks


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
    contexts = []
    for slug, sections in data.live_sections.items():
        if slug not in REGISTRY:
            text = "This protocol is not installed, so its sections are not analysed."
            problems.append({"row": f"protocol {slug}", "column": "", "text": text})
            continue
        contexts.append(
            AnalysisContext(
                protocol=slug,
                rows=rows[rows["protocol"] == slug],
                sections=sections,
                seed=seed,
                tau=float(tau.settings.get("tau", 1.1)) if tau else 1.1,
                is_after_tau=bool(tau and tau.excludes and tau.failed_assignment_ids),
                claims=data.claims,
                **options,
            )
        )
    return contexts


@contextmanager
def _keeping_other_protocols(slug: str, problems: list[dict[str, Any]]) -> Iterator[None]:
    """Catch an error in the analysis of one protocol and add it to the problems. The log has the details."""
    try:
        yield
    except Exception as error:
        logger.exception("The analysis of %s failed", slug)
        text = f"The analysis failed ({type(error).__name__}). The server log has the details."
        problems.append({"row": f"protocol {slug}", "column": "", "text": text})
