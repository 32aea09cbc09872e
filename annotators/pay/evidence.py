"""What speaks for and against paying a piece of work. heval never rejects by default, by a list or by a job: each rejection is one person's decision about one piece of work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import log, sqrt
from typing import Any

from django.utils import timezone

from annotators.models import Assignment, Response
from annotators.pages.record import full_page_state
from annotators.pages.sequence import answered_checks
from annotators.places.batch_plan import get_batch_plan
from annotators.recruitment.panels import FAILED_CHECKS, NO_ANSWERS, OBSERVED, TOO_FAST, TOO_SLOW, RejectionPolicy
from studies.language import format_duration, gettext, ngettext
from studies.models import Expected, Item
from studies.protocols import REGISTRY
from studies.protocols.base.known_answers import KnownAnswer, known_answer

# Measure one piece of work, as evidence for a decision. The result names no system and decides nothing.


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """A question with a known answer that was answered wrongly. Researchers see it; annotators see only the number.

    ``item``: None for an attention check, which is about no item.
    """

    item: int | None
    question: str
    expected: str
    answered: str


@dataclass(frozen=True, slots=True)
class WorkEvidence:
    """The measurements.

    ``minutes``: as announced to the person.
    ``z``: the time from first to last page, in standard deviations of the logarithm over all ``people`` who finished;
    None if unknown. ``checks``: number of answered attention checks.
    """

    minutes: int | None
    seconds: int | None
    z: float | None
    people: int
    answers: int
    checks: int
    failed: tuple[FailedCheck, ...]

    def as_json(self) -> dict[str, Any]:
        rows = [{name: getattr(check, name) for name in FailedCheck.__slots__} for check in self.failed]
        return {
            "measured_at": timezone.now().isoformat(timespec="seconds"),
            "minutes": self.minutes,
            "seconds": self.seconds,
            "z": None if self.z is None else round(self.z, 2),
            "people": self.people,
            "answers": self.answers,
            "checks": self.checks,
            "failed": len(self.failed),
            "failed_checks": rows,
        }


def measure_work_evidence(assignment: Assignment) -> WorkEvidence:
    """Measure the work now. The number of queries does not depend on the study's length or number of people."""
    checks, failed = _measure_checks(assignment)
    seconds, z, people = _measure_time(assignment)
    minutes = get_batch_plan(assignment).offer.minutes if assignment.batch_id else assignment.study.minutes
    answers = Response.objects.filter(assignment=assignment).count()
    return WorkEvidence(minutes, seconds, z, people, answers, checks, failed)


def _measure_time(assignment: Assignment) -> tuple[int | None, float | None, int]:
    if not (assignment.started_at and assignment.submitted_at):
        return None, None, 0
    finished = Assignment.objects.filter(
        study=assignment.study_id, origin=Assignment.Origin.LIVE, started_at__isnull=False, submitted_at__isnull=False
    )
    duration = (assignment.submitted_at - assignment.started_at).total_seconds()
    # Times are skewed to the right. On the raw scale no one could be three deviations too fast.
    logs = [
        log(max((end - start).total_seconds(), 0.5))
        for start, end in finished.values_list("started_at", "submitted_at")
        if start and end
    ]
    n = len(logs)
    if n < 2:
        return round(duration), None, n
    mean = sum(logs) / n
    spread = sqrt(sum((value - mean) ** 2 for value in logs) / (n - 1))
    return round(duration), (log(max(duration, 0.5)) - mean) / spread if spread > 0 else None, n


def _measure_checks(assignment: Assignment) -> tuple[int, tuple[FailedCheck, ...]]:
    """Return the number of answered attention checks and test questions, and those with a wrong answer.

    Practice items are not checks. Unanswered and skipped questions are not wrong answers.
    """
    instructed = answered_checks(assignment)
    n_answered, failed_checks = _measure_test_questions(assignment)
    return n_answered + len(instructed), failed_checks + _failed_attention_checks(assignment, instructed)


def _failed_attention_checks(
    assignment: Assignment, instructed: Sequence[tuple[Response, bool]]
) -> tuple[FailedCheck, ...]:
    wrong = [response for response, is_right in instructed if not is_right]
    if not wrong:
        return ()
    wordings = dict(get_batch_plan(assignment).checks)
    labels = {pk: {o.key: o.label for o in wording.scale.options} for pk, wording in wordings.items()}
    return tuple(
        FailedCheck(
            None,
            wordings[answer.question_id].text[:200],
            labels[answer.question_id][wordings[answer.question_id].scale.right_key],
            labels[answer.question_id].get(answer.choice, answer.choice),
        )
        for answer in wrong
    )


def _measure_test_questions(assignment: Assignment) -> tuple[int, tuple[FailedCheck, ...]]:
    """Return the number of counted answers to test questions, and those with a wrong answer."""
    expected_answers = Expected.objects.filter(item__kind=Item.Kind.TEST, item__placements__batch=assignment.batch_id)
    expected: dict[tuple[int | None, int], tuple[Expected, KnownAnswer]] = {}
    for row in expected_answers.select_related("item__section", "question"):
        settings = REGISTRY[row.item.section.protocol].cleaned_settings(row.item.section)
        expected[row.item_id, row.question_id] = row, known_answer(row, settings)
    if not expected:
        return 0, ()
    answers = Response.objects.filter(assignment=assignment, item__in={item for item, _ in expected}).order_by("pk")
    n_answered, failed = 0, []
    for answer in answers:
        if (found := expected.get((answer.item_id, answer.question_id))) is None:
            continue
        expectation, known = found
        is_right = known.is_right(
            value=None if answer.value is None else float(answer.value),
            exposure=answer.exposure_id,
            chosen=answer.chosen_id,
            choice=answer.choice,
        )
        n_answered += is_right is not None
        if is_right is False:
            failed.append((answer, expectation))
    if not failed:
        return n_answered, ()
    question_texts, letters = _questions_and_letters(assignment)
    return n_answered, tuple(
        FailedCheck(
            expectation.item.number,
            question_texts.get(expectation.question_id, expectation.question.key),
            _expected_text(expectation, letters),
            _answer_text(answer),
        )
        for answer, expectation in failed
    )


def _expected_text(expected: Expected, letters: Mapping[int, str]) -> str:
    if expected.exposure_id:
        return f"the text {letters.get(expected.exposure_id, 'with no known letter')}"
    return f"{expected.low:g}" if expected.low == expected.high else f"{expected.low:g} to {expected.high:g}"


def _answer_text(answer: Response) -> str:
    if answer.chosen_id:
        return f"the text {answer.label}".strip()
    return f"{Decimal(answer.value or 0).normalize():f}"


def _questions_and_letters(assignment: Assignment) -> tuple[dict[int, str], dict[int, str]]:
    """Return the questions and output letters as this person saw them, without system names."""
    question_texts: dict[int, str] = {}
    letters: dict[int, str] = {}
    page_state = full_page_state(assignment)
    for key in page_state.visits:
        if step := page_state.steps.get(key):
            question_texts.update({question.id: question.text[:200] for question in step.page.questions})
            letters.update({exposure: letter for item in step.page.items for letter, exposure in item.exposures})
    return question_texts, letters


def evidence_sentences(evidence: Mapping[str, Any]) -> list[str]:
    """Return the evidence as sentences for the annotator: counts and times, but no questions and no expected answers."""
    if not evidence:  # measurements of the panel, if any, are unknown to heval
        return []
    sentences = []
    if checks := evidence.get("checks"):
        failed = evidence.get("failed", 0)
        text = ngettext(
            "%(failed)s of %(checks)s questions with a known answer was not answered as expected.",
            "%(failed)s of %(checks)s questions with a known answer were not answered as expected.",
            failed,
        )
        sentences.append(text % {"failed": failed, "checks": checks})
    if (seconds := evidence.get("seconds")) is not None:
        # Translators: such as "5 minutes and 2 seconds"
        text = gettext("You needed %(duration)s from your first page to your last page.")
        sentences.append(text % {"duration": format_duration(seconds)})
        if minutes := evidence.get("minutes"):
            text = ngettext("The announced time was %(n)s minute.", "The announced time was %(n)s minutes.", minutes)
            sentences[-1] += " " + text % {"n": minutes}
    if (z := evidence.get("z")) is not None and abs(z) > 3:
        text = (
            gettext("This is much less than others needed. People who finished: %(people)s.")
            if z < 0
            else gettext("This is much more than others needed. People who finished: %(people)s.")
        )
        sentences.append(text % {"people": evidence["people"]})
    if not evidence.get("answers"):
        sentences.append(gettext("No answers from you are stored."))
    return sentences


# Rejection grounds: which categories a panel allows, and whether the evidence is sufficient. Panel rules are data.


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
