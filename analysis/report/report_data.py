"""Count the planned answers of the kept annotators that are missing, in total and by section."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Prefetch

from analysis.coding.samples import CodedSample, read_coded_samples
from analysis.data.codings import coding_rows_sha256_and_count
from analysis.data.flat_rows import Selection
from analysis.data.frames import (
    assignments_frame,
    frame_sha256,
    is_counted,
    page_of_slot,
    responses_frame,
    rows_where,
)
from analysis.data.metric_scores import read_metric_scores
from analysis.data.planned_labels import (
    PlannedLabels,
    excluded_after_they_were_judged,
    read_planned_labels_of_claimed_batches,
)
from analysis.data.rule_input import build_rule_input
from analysis.exclusions.screening import AppliedRule, apply_rules, left_out_answer_ids
from analysis.exclusions.screening import kept_assignment_ids as kept_by
from analysis.protocols import REGISTRY
from analysis.protocols.blocks import Block, Conclusion
from analysis.protocols.blocks.cells import contrast_of
from analysis.protocols.blocks.layouts import Table, build_table, estimate_row
from analysis.protocols.blocks.populations import population_of
from annotators.counting import Use, select
from annotators.models import Assignment, PageVisit
from annotators.places.monitor import seconds_of_visits
from studies.design.serialization import canonical_json, frozen_design_mismatch_text, serialize_design, sha256_of
from studies.models import Batch, Item, Placement, Question, Section, Study
from studies.protocols import REGISTRY as PROTOCOLS
from studies.protocols.base.fields import TEXT_KINDS

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.results import Estimate


ANSWER_KEY = ["assignment", "section", "question", "item", "system", "sample"]
COUNTS = ("planned", "given", "skipped", "not_given")


def count_missing_answers(study: Study, kept: list[int], live_answers: "DataFrame") -> dict[str, Any]:
    """Return planned, given, skipped and not given answers of the kept assignments, in total and by live section.

    Free texts are not counted, because many of them are optional. The parts of one answer (marks of an output, boxes of a list) count
    once. Batches of imported answers have only the items that were answered.
    """
    sections = _live_sections(study)
    planned = _planned_by_section(study, sections, set(kept))
    counted_questions = {
        (section.position, question.key) for section in sections for question in section.questions.all()
    }
    given, skipped = _given_and_skipped(live_answers[live_answers["is_kept"]], counted_questions)
    rows = []
    for section in sections:
        counts = {
            "planned": planned.get(section.position, 0),
            "given": given.get(section.position, 0),
            "skipped": skipped.get(section.position, 0),
        }
        counts["not_given"] = max(0, counts["planned"] - counts["given"] - counts["skipped"])
        if counts["planned"]:
            rows.append({"position": section.position, **counts})
    return {name: sum(row[name] for row in rows) for name in COUNTS} | {"sections": rows}


def _live_sections(study: Study) -> list[Section]:
    """Return the live sections with their arms and with all questions but free texts."""
    texts = [
        pk
        for pk, scale in Question.objects.filter(section__study=study).values_list("pk", "scale")
        if isinstance(scale, dict) and scale.get("kind") in TEXT_KINDS
    ]
    questions = Prefetch("questions", Question.objects.exclude(pk__in=texts))
    sections = study.sections.filter(purpose=Section.Purpose.LIVE, protocol__in=list(PROTOCOLS)).order_by("position")
    return list(sections.prefetch_related(questions, "section_arms"))


def _planned_by_section(study: Study, sections: list[Section], kept: set[int]) -> dict[int, int]:
    placed: dict[int, dict[int, list[tuple[int, int | None]]]] = {}
    live = Item.objects.filter(study=study, kind=Item.Kind.LIVE).annotate(outputs=Count("exposures"))
    live_items = {pk: facts for pk, *facts in live.values_list("pk", "section_id", "outputs", "retired_in__version")}
    placements = Placement.objects.filter(batch__study=study).order_by("batch", "number")
    for batch, item in placements.values_list("batch_id", "item_id").iterator():
        if item in live_items:
            section_id, outputs, retired = live_items[item]
            placed.setdefault(batch, {}).setdefault(section_id, []).append((outputs, retired))
    for section in sections:
        section.asked = len(section.questions.all())  # type: ignore[attr-defined]  # an annotation that count_answers reads
    arms_by_section = {section.pk: {row.arm_id for row in section.section_arms.all()} for section in sections}
    planned: dict[int, int] = {}
    people = Assignment.objects.filter(study=study, batch__isnull=False)
    for pk, batch, arm, origin, version in people.values_list(
        "pk", "batch_id", "batch__arm_id", "batch__origin", "design__version"
    ):
        if pk not in kept:
            continue
        for section in sections:
            protocol = PROTOCOLS[section.protocol]
            arms = arms_by_section[section.pk]
            # A batch of third labels has the items of one section and nothing else.
            if (arms and arm not in arms) or (origin == Batch.Origin.TOP_UP and not protocol.has_items):
                continue
            items = placed.get(batch, {}).get(section.reuses_id or section.pk, [])
            outputs_per_item = [outputs for outputs, retired in items if retired is None or retired > (version or 0)]
            n = protocol.count_answers(
                section, outputs_per_item[: section.m] if section.reuses_id else outputs_per_item
            )
            planned[section.position] = planned.get(section.position, 0) + n
    return planned


def _given_and_skipped(
    rows: "DataFrame", counted_questions: set[tuple[int, str]]
) -> tuple[Mapping[int, int], Mapping[int, int]]:
    """Return the numbers of answers given and skipped, by section."""
    import numpy as np

    is_counted = [key in counted_questions for key in zip(rows["section"], rows["question"], strict=True)]
    rows = rows[np.asarray(is_counted, dtype=bool)]
    is_given = rows["value"].notna() | (rows["choice"] != "") | rows["chosen_system"].notna()
    is_skipped = ~is_given & (rows["skip_reason"] != "")
    given, skipped = (
        Counter(rows.loc[mask, ANSWER_KEY].drop_duplicates()["section"].tolist()) for mask in (is_given, is_skipped)
    )
    return given, skipped


# Repeat the planned comparisons with only the answers to the newest version of an amended design.
#
# The recommended estimates use all versions. This table shows whether the amendment changed them. It is descriptive,
# so it has no tests and belongs to no family.


NAME = "design.newest"
NO_ESTIMATE_REASON = "the newest version alone gives no estimate"
TITLE = "The result without earlier versions of the design"


def newest_version_blocks(all_version_blocks: Sequence[Block], newest_only_blocks: Sequence[Block]) -> list[Block]:
    """Return the newest-version estimate of each planned comparison in ``all_version_blocks``.

    ``detail["all_versions"]`` has the estimate and the n from all versions.
    """
    latest = {
        _key(name, conclusion): conclusion.estimate for name, conclusion in _named_conclusions(newest_only_blocks)
    }
    estimates = []
    for name, conclusion in _named_conclusions(all_version_blocks):
        overall = conclusion.estimate
        # Keep a row without an estimate if the newest version has no answers, or if its analysis failed (see the problems).
        newest = latest.get(_key(name, conclusion)) or replace(
            overall,
            status="no_data",
            reason=NO_ESTIMATE_REASON,
            estimate=None,
            interval=None,
            interval_adjusted=None,
            test=None,
            n=0,
            n_clusters=None,
            n_rows=0,
        )
        estimates.append(
            replace(
                newest,
                analysis=NAME,
                estimand=f"{newest.estimand}, from annotators of the newest version of the design",
                interval_adjusted=None,
                test=None,
                effect=None,
                sensitivity=(),
                warnings=(),
                settings={
                    "contrast": contrast_of(overall),
                    "subject": overall.settings["subject"],
                    "symbol": conclusion.wording.symbol,
                    "population": population_of(newest),
                },
                detail={"all_versions": {"estimate": overall.estimate, "n": overall.n}},
            )
        )
    if not estimates:
        return []
    note = "Descriptive comparison with the estimates from all versions, without tests."
    return [Block(NAME, TITLE, estimates=tuple(estimates), tables=[_table(estimates)], note=note)]


def _named_conclusions(blocks: Iterable[Block]) -> Iterator[tuple[str, Conclusion]]:
    """Give each conclusion with the name of its block."""
    return ((block.name, conclusion) for block in blocks for conclusion in block.conclusions)


def _key(name: str, conclusion: Conclusion) -> tuple[Any, ...]:
    return name, contrast_of(conclusion.estimate)["section"], conclusion.name


def _table(estimates: Iterable["Estimate"]) -> Table:
    """Return each planned comparison from all versions and from only the newest version."""
    rows = [
        estimate_row(
            estimate,
            "newest",
            what=estimate.settings["symbol"],
            all=estimate.detail["all_versions"]["estimate"],
            all_n=estimate.detail["all_versions"]["n"],
        )
        for estimate in estimates
    ]
    return build_table(
        "versions",
        TITLE,
        "contrast|Comparison|text; what|Quantity|text; all|All versions|fine_number; all_n|n|integer; newest|Newest version only|fine_number; "
        "interval|95% CI|fine_wide_interval; n|n, newest|integer; unit|n counts|text; reason|Undefined because|text",
        rows,
        "sure",
    )


# Read all data of a report from one snapshot of the database.


@dataclass(frozen=True, slots=True)
class ReportData:
    """The data of a report, read from one snapshot."""

    study: Study
    responses: "DataFrame"
    assignments: "DataFrame"
    applied_rules: list[AppliedRule]
    sections: list[Any]
    design_versions: list[dict[str, Any]]
    design_mismatch: str
    current_design_sha256: str
    data_sha256: str
    coding_samples: list[CodedSample]
    sources: list[dict[str, Any]]
    codings: tuple[str, int]
    retired_items: frozenset[str]
    problems: list[dict[str, Any]]
    n_problems: int
    n_withdrawn: int
    test_answers: "DataFrame"
    claims: PlannedLabels | None = None
    n_excluded_after_judgement: int = 0
    page_seconds: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    metric_scores: "DataFrame | None" = None

    @property
    def submitted(self) -> list[int]:
        return self.assignments.loc[self.assignments["is_submitted"], "assignment"].tolist()

    @property
    def kept(self) -> list[int]:
        return kept_by(self.applied_rules, self.submitted)

    @property
    def live_sections(self) -> dict[str, list[Any]]:
        """Return the live sections, grouped by protocol."""
        by_protocol: dict[str, list[Any]] = {}
        for section in self.sections:
            if section.purpose == "live":
                by_protocol.setdefault(section.protocol, []).append(section)
        return by_protocol

    def live_answers(self) -> "DataFrame":
        """Return live answers of submitted assignments, with columns that say which rules keep each assignment."""
        submitted = self.submitted
        rows = self.responses
        rows = rows_where(rows, is_counted(rows) & rows["assignment"].isin(submitted)).copy(deep=False)
        for column, is_paper in (("is_kept", False), ("is_kept_paper", True)):
            kept = kept_by(self.applied_rules, submitted, include_outcome_rules=is_paper)
            left_out = left_out_answer_ids(self.applied_rules, include_outcome_rules=is_paper)
            rows[column] = rows["assignment"].isin(kept) & ~rows["id"].isin(left_out)
        for rule in self.applied_rules:
            is_flagged = rows["assignment"].isin(rule.failed_assignment_ids) | rows["id"].isin(rule.left_out_answer_ids)
            rows[f"kept:{rule.slug}"] = ~is_flagged
        return rows

    def newest_version_data(self) -> "ReportData | None":
        """Return the data of the newest design version, or None if all submitted assignments have one version."""
        assignments = self.assignments
        versions = assignments.loc[assignments["is_submitted"], "design_version"]
        if versions.nunique() < 2:
            return None
        newest = assignments[assignments["design_version"] == self.design_versions[-1]["version"]]
        ids = newest["assignment"]
        claims = self.claims and replace(self.claims, rows=self.claims.rows[self.claims.rows["assignment"].isin(ids)])
        return replace(
            self, responses=self.responses[self.responses["assignment"].isin(ids)], assignments=newest, claims=claims
        )


def read_report_data(study: Study, origins: list[str]) -> ReportData:
    """Read the data of a report. It makes several queries, so call it inside a snapshot."""
    study = Study.objects.get(pk=study.pk)
    response_frame, assignment_frame = responses_frame(study, origins), assignments_frame(study, origins)
    responses, assignments = response_frame.rows, assignment_frame.rows
    sections = list(study.sections.order_by("position"))
    analyses = [REGISTRY[section.protocol] for section in sections if section.protocol in REGISTRY]
    reads_claims = any(analysis.needs_planned_labels for analysis in analyses)
    counts = Counter(version for version in assignments["design_version"].tolist() if version == version)
    versions = [
        {
            "version": design.version,
            "sha256": design.sha256,
            "at": design.at.isoformat(),
            "reason": design.reason,
            "assignments": counts.get(design.version, 0),
        }
        for design in study.designs.order_by("version")
    ]
    rule_input = build_rule_input(study, responses, assignments)
    applied_rules = apply_rules(study, rule_input)
    return ReportData(
        study,
        responses,
        assignments,
        applied_rules,
        sections,
        versions,
        frozen_design_mismatch_text(study),
        sha256_of(canonical_json(serialize_design(study))),
        frame_sha256(responses),
        read_coded_samples(study, origins),
        imported_answer_files(study) if Assignment.Origin.IMPORTED in origins else [],
        coding_rows_sha256_and_count(Selection(study, tuple(origins))),
        _retired(study),
        [*response_frame.problems, *assignment_frame.problems],
        response_frame.n_problems + assignment_frame.n_problems,
        assignment_frame.n_withdrawn,
        rule_input.test_answers(),
        read_planned_labels_of_claimed_batches(study, origins, applied_rules) if reads_claims else None,
        excluded_after_they_were_judged(study, origins, kept_by(applied_rules, rule_input.submitted)),
        _page_seconds(study, responses) if any(analysis.needs_page_seconds for analysis in analyses) else {},
        read_metric_scores(study) if any(analysis.needs_metric_scores for analysis in analyses) else None,
    )


def _page_seconds(study: Study, responses: "DataFrame") -> Mapping[int, Mapping[str, float]]:
    """Return the seconds of each page without an attention check, which takes time that no label needs."""
    seconds = seconds_of_visits(PageVisit.objects.filter(assignment__study=study))
    checks = responses[responses["purpose"] == Section.Purpose.ATTENTION]
    for assignment, slot in zip(checks["assignment"], checks["slot"], strict=True):
        seconds.get(assignment, {}).pop(page_of_slot(slot), None)
    return seconds


def imported_answer_files(study: Study) -> list[dict[str, Any]]:
    """Return the files of imported answers, each with its hash and its number of assignments."""
    rows = (
        select(Use.ROWS, Assignment.objects.filter(study=study), [Assignment.Origin.IMPORTED])
        .order_by("source")
        .values_list("source__code", "source__arguments", "source__result", "source__created_at")
        .annotate(n=Count("pk"))
    )
    return [
        {
            "job": str(code),
            "filename": (arguments or {}).get("filename", ""),
            "at": at.isoformat() if at else "",
            "assignments": n,
            "sha256": (arguments or {}).get("sha256") or (result or {}).get("sha256") or "",
        }
        for code, arguments, result, at, n in rows
    ]


def _retired(study: Study) -> frozenset[str]:
    """Return the items that amendments retired, in the names that the frames use."""
    rows = study.items.filter(retired_in__isnull=False).values_list("section__position", "number")
    return frozenset(f"s{section}.{number}" for section, number in rows)
