"""What a result is about: one version of the judge, and one wording of the guideline. Another one makes the result stale."""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from analysis.metrics.store import metrics_in_use
from analysis.models import JudgeCheck, JudgeCheckResult, Metric
from studies.design.serialization import canonical_json
from studies.models import Question

STALE, OPEN = "stale", "open"
STATE_WORDS = {"good": "good enough", "not_good": "not good enough", STALE: "stale", OPEN: "open"}


@dataclass(frozen=True, slots=True)
class CheckState:
    """The state of a check now: ``good``, ``not_good``, ``stale`` or ``open``, why, and the newest result."""

    state: str
    reason: str
    check: JudgeCheck | None
    result: JudgeCheckResult | None
    judge: Metric | None

    @property
    def words(self) -> str:
        return STATE_WORDS[self.state]

    @property
    def at(self) -> datetime | None:
        return self.result.at if self.result else None


def guideline_sha256(question: Question) -> str:
    """Return the hash of everything that tells people how to judge."""
    section = question.section
    study = section.study
    content = {
        "instructions": study.instructions,
        "arms": sorted(study.arms.values_list("name", "instructions")),
        "explanation": section.settings.get("explanation", ""),
        "questions": [[one.key, one.text, one.help, one.scale] for one in section.questions.order_by("position")],
    }
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def newest_version(check: JudgeCheck) -> Metric | None:
    """Return the newest version in use of the check's judge that gave single outputs scores, or None."""
    of_question = Q(question=None) | Q(question=check.question_id)
    rows = metrics_in_use(check.judge.study).filter(of_question, name=check.judge.name, kind=Metric.Kind.JUDGE)
    return rows.order_by("-pk").first()


def find_state(check: JudgeCheck | None) -> CheckState:
    """Return the state of a check now, from what is stored."""
    if check is None:
        return CheckState(OPEN, "no sample is drawn", None, None, None)
    judge = newest_version(check)
    result = check.results.order_by("-pk").first()
    if result is None:
        return CheckState(OPEN, "no result is computed", check, None, judge)
    if judge is None:
        reason = "the judge was discarded"
    elif judge.fingerprint != result.fingerprint:
        reason = f"the judge has a newer version, {judge.version}"
    elif guideline_sha256(check.question) != result.guideline_sha256:
        reason = "the guideline changed"
    else:
        return CheckState(result.verdict, result.result.get("reason", ""), check, result, judge)
    return CheckState(STALE, reason, check, result, judge)
