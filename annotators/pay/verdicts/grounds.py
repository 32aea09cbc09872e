"""Rejection grounds: which categories a panel allows, and whether the evidence is sufficient. Panel rules are data."""

from collections.abc import Mapping
from dataclasses import dataclass

from annotators.recruitment.panels import FAILED_CHECKS, NO_ANSWERS, OBSERVED, TOO_FAST, TOO_SLOW, RejectionPolicy

from .evidence import WorkEvidence, format_duration

SHORT_MINUTES = 5  # in a shorter study one failed check is enough
MIN_FAILED_CHECKS = 2
OUTLIER_DEVIATIONS = 3.0  # standard deviations
MESSAGE_PLACEHOLDER = "[Write here in your own words what was wrong.]"


@dataclass(frozen=True, slots=True)
class RejectionGround:
    """A panel's category for one piece of work.

    ``missing``: the missing evidence, '' if the category may be chosen. ``needs_note``: only a person's observation
    supports it, so a note is required.
    """

    category: str
    description: str
    missing: str
    needs_note: bool


def assess_rejection_grounds(
    policy: RejectionPolicy, evidence: WorkEvidence, is_finished: bool
) -> list[RejectionGround]:
    """Return every category of the panel. Unfinished work can be rejected only because no answers are stored."""
    missing_by_kind = _missing_evidence(evidence)
    if not is_finished:
        reason = "not finished in heval; only work without stored answers can be rejected"
        missing_by_kind = dict.fromkeys(missing_by_kind, reason) | {NO_ANSWERS: missing_by_kind[NO_ANSWERS]}
    grounds = []
    for category, description in policy.categories.items():
        names = policy.evidence_for(category)
        measured_names = [name for name in names if name != OBSERVED]
        is_measured = any(not missing_by_kind[name] for name in measured_names)
        rests_on_note = not is_measured and OBSERVED in names
        missing = (
            ""
            if is_measured
            else "; ".join(dict.fromkeys(missing_by_kind[name] for name in names if missing_by_kind[name]))
        )
        grounds.append(
            RejectionGround(
                category, description, "" if rests_on_note and not missing_by_kind[OBSERVED] else missing, rests_on_note
            )
        )
    return grounds


def _missing_evidence(evidence: WorkEvidence) -> Mapping[str, str]:
    """Return what each kind of evidence lacks; '' if it is sufficient."""
    needed = 1 if evidence.minutes is not None and evidence.minutes < SHORT_MINUTES else MIN_FAILED_CHECKS
    failed = len(evidence.failed)
    checks = (
        ""
        if failed >= needed
        else (
            f"{failed} of {evidence.checks} attention checks failed; a study of this length needs {needed}"
            if evidence.checks
            else "the study asked no attention check"
        )
    )
    return {
        FAILED_CHECKS: checks,
        TOO_FAST: _missing_time_evidence(evidence, -1, "fast"),
        TOO_SLOW: _missing_time_evidence(evidence, 1, "slow"),
        NO_ANSWERS: f"{evidence.answers} answers are stored" if evidence.answers else "",
        OBSERVED: "",
    }


def _missing_time_evidence(evidence: WorkEvidence, sign: int, word: str) -> str:
    if evidence.z is None:
        return "the time cannot be compared"
    if sign * evidence.z > OUTLIER_DEVIATIONS:
        return ""
    # In such a small group no one can be that far from the mean, however fast.
    few = "; this is impossible with fewer than 11 people" if evidence.people < 11 else ""
    return f"{sign * evidence.z:.1f} standard deviations too {word}; more than {OUTLIER_DEVIATIONS:.0f} are needed{few}"


def draft_rejection_message(evidence: WorkEvidence) -> str:
    """Draft the beginning of a message to the annotator, from the evidence. A person must write the rest."""
    parts = []
    if evidence.failed:
        parts.append(
            f"{len(evidence.failed)} of the {evidence.checks} questions with a known answer in this study were "
            "not answered as expected."
        )
    if evidence.z is not None and abs(evidence.z) > OUTLIER_DEVIATIONS and evidence.seconds is not None:
        parts.append(
            f"You needed {format_duration(evidence.seconds)} for the whole study, which is much {'less' if evidence.z < 0 else 'more'} "
            "than other people needed."
        )
    if not evidence.answers:
        parts.append("We received no answers from you.")
    return " ".join([*parts, MESSAGE_PLACEHOLDER])
