"""Rows of checks of judges that the database must refuse, by constraint."""

from analysis.models import JudgeCheck, JudgeCheckOutput, JudgeCheckResult, Metric
from studies.models import Output


def check(w, **columns) -> JudgeCheck:
    judge, _ = Metric.objects.get_or_create(study=w["study"], kind="judge", name="j", version="1", source="upload")
    right = {
        "study": w["study"],
        "judge": judge,
        "question": w["question"],
        "threshold": 0.5,
        "certainty_ratio": 1,
        "n_development": 1,
        "n_test": 2,
        "n_outputs": 3,
        "people_per_output": 3,
        "seed": 1,
        "min_agreement": 0.8,
        "needs_alternative_test": False,
        "epsilon": 0.1,
    }
    return JudgeCheck(**right | columns)


def stored(w, **columns) -> JudgeCheck:
    row = check(w, **columns)
    row.save(force_insert=True)
    return row


def sampled(w, **columns) -> JudgeCheckOutput:
    right = {"judge_check": stored(w), "output": Output.objects.first(), "part": "test", "probability": 0.5}
    return JudgeCheckOutput(**right | columns)


def drawn_twice(w) -> JudgeCheckOutput:
    first = sampled(w)
    first.save(force_insert=True)
    return JudgeCheckOutput(judge_check=first.judge_check, output=first.output, part="development", probability=1)


def result(w, **columns) -> JudgeCheckResult:
    row = stored(w)
    right = {
        "judge_check": row,
        "judge": row.judge,
        "fingerprint": "f",
        "guideline_sha256": "g",
        "verdict": "open",
        "n_labels": 0,
        "result": {},
        "code_version": "1",
    }
    return JudgeCheckResult(**right | columns)


JUDGE_CASES = {
    "judge_check_has_its_own_badge": lambda w: stored(w, badge_key="k") and check(w, badge_key="k"),
    "judge_check_sample_fits_its_outputs": lambda w: check(w, n_outputs=2),
    "judge_check_prefers_unsure_outputs": lambda w: check(w, certainty_ratio=0.5),
    "judge_check_of_answers_reads_no_score": lambda w: check(w, is_from_answers=True, certainty_ratio=2),
    "judge_check_minimums_are_shares": lambda w: check(w, min_true_negative_rate=1.5),
    "judge_check_declares_what_is_enough": lambda w: check(w, min_agreement=None),
    "judge_check_draws_an_output_once": drawn_twice,
    "judge_check_part_is_known": lambda w: sampled(w, part="other"),
    "judge_check_probability_is_one": lambda w: sampled(w, probability=0),
    "judge_check_verdict_is_known": lambda w: result(w, verdict="other"),
    "judge_check_result_says_what_it_is_about": lambda w: result(w, fingerprint=""),
}
