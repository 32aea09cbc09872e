"""Read all data of a report from one snapshot of the database."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from django.db.models import Count

from analysis.coding.samples import CodedSample, read_coded_samples
from analysis.data.codings import coding_rows_sha256_and_count
from analysis.data.flat_rows.selection import Selection
from analysis.data.frames import assignments_frame, frame_sha256, responses_frame
from analysis.data.judged_units import excluded_after_they_were_judged
from analysis.data.planned_labels import PlannedLabels, read_planned_labels_of_claimed_batches
from analysis.data.rule_input import build_rule_input
from analysis.exclusions.applied_rules import AppliedRule, apply_rules, left_out_answer_ids
from analysis.exclusions.applied_rules import kept_assignment_ids as kept_by
from analysis.protocols import REGISTRY
from annotators.counting import Use, select
from annotators.models import Assignment
from studies.design.serialization import canonical_json, frozen_design_mismatch_text, serialize_design, sha256_of
from studies.models import Study

if TYPE_CHECKING:
    from pandas import DataFrame


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
        rows = rows[(rows["purpose"] == "live") & (rows["kind"].isna() | (rows["kind"] == "live"))]
        rows = rows[rows["assignment"].isin(submitted)].copy()
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
    reads_claims = any(
        section.protocol in REGISTRY and REGISTRY[section.protocol].needs_planned_labels for section in sections
    )
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
    )


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
