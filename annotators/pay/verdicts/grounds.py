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
    words: str
    missing: str
    needs_note: bool


def list_rejection_grounds(policy: RejectionPolicy, evidence: WorkEvidence, is_finished: bool) -> list[RejectionGround]:
    """Return every category of the panel. Unfinished work can be rejected only because no answers are stored."""
    lacking = _lacking(evidence)
    if not is_finished:
        only = "not finished in heval; only work without stored answers can be rejected"
        lacking = dict.fromkeys(lacking, only) | {NO_ANSWERS: lacking[NO_ANSWERS]}
    made = []
    for category, words in policy.categories.items():
        names = policy.evidence_for(category)
        measured_ones = [name for name in names if name != OBSERVED]
        is_measured = any(not lacking[name] for name in measured_ones)
        rests_on_note = not is_measured and OBSERVED in names
        missing = "" if is_measured else "; ".join(dict.fromkeys(lacking[name] for name in names if lacking[name]))
        made.append(
            RejectionGround(category, words, "" if rests_on_note and not lacking[OBSERVED] else missing, rests_on_note)
        )
    return made


def _lacking(found: WorkEvidence) -> Mapping[str, str]:
    """Return what each kind of evidence lacks; '' if it is sufficient."""
    needed = 1 if found.minutes is not None and found.minutes < SHORT_MINUTES else MIN_FAILED_CHECKS
    failed = len(found.failed)
    checks = (
        ""
        if failed >= needed
        else (
            f"{failed} of {found.checks} attention checks failed; a study of this length needs {needed}"
            if found.checks
            else "the study asked no attention check"
        )
    )
    return {
        FAILED_CHECKS: checks,
        TOO_FAST: _missing_time_evidence(found, -1, "fast"),
        TOO_SLOW: _missing_time_evidence(found, 1, "slow"),
        NO_ANSWERS: f"{found.answers} answers are stored" if found.answers else "",
        OBSERVED: "",
    }


def _missing_time_evidence(found: WorkEvidence, sign: int, word: str) -> str:
    if found.z is None:
        return "the time cannot be compared"
    if sign * found.z > OUTLIER_DEVIATIONS:
        return ""
    # In such a small group no one can be that far from the mean, however fast.
    few = "; this is impossible with fewer than 11 people" if found.people < 11 else ""
    return f"{sign * found.z:.1f} standard deviations too {word}; more than {OUTLIER_DEVIATIONS:.0f} are needed{few}"


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
