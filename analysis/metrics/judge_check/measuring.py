"""The job of a check: compare people with the judge, and hold the result against what was declared."""

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import transaction
from django.db.models import Count, Q

from analysis.data.blinding import check_outcomes_visible
from analysis.data.frames import SECOND_SAMPLE, second_sample_labels
from analysis.metrics.beside_people import by_length, facts_of_outputs
from analysis.metrics.calibrated.options import families_by_name
from analysis.metrics.scoring import read_answers_of_questions, scored_protocols, scorer_of
from analysis.metrics.store import metrics_in_use
from analysis.models import (
    CalibratedResult,
    JudgeCheck,
    JudgeCheckOutput,
    JudgeCheckResult,
    Metric,
    MetricsComparison,
    MetricScore,
    PairScore,
)
from analysis.protocols.blocks.populations import (
    group_noun,
    has_groups,
    name_groups_of_plain,
    name_populations_of_plain,
    noun_of_groups,
)
from annotators.counting import Use, counted_origins, is_simulated, select
from annotators.models import Response
from studies.access import Action, check_permission_or_404
from studies.design.draw import DrawnBatch, seeded_random, store_drawn_batches
from studies.design.serialization import canonical_json
from studies.models import Batch, Exposure, Item, Job, Output, Placement, Question, Section, Study, new_seed
from studies.protocols import REGISTRY, DrawnItem
from studies.services import jobs
from studies.services.drafts import locked_draft, record_edit_and_raise_version
from studies.services.lifecycle import ActionRefused
from studies.services.version import version

if TYPE_CHECKING:
    from pandas import DataFrame


# What a result is about: one version of the judge, and one wording of the guideline. Another one makes the result
# stale.


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


# The labels of people beside the judge's, for the sampled outputs.


YES, NO = "yes", "no"
TEST, DEVELOPMENT = JudgeCheckOutput.Part.TEST, JudgeCheckOutput.Part.DEVELOPMENT


@dataclass(frozen=True, slots=True)
class SampledRows:
    """``labels``: a row for each label of a person, with ``output``, ``part``, ``weight``, ``people`` and ``judge`` (labels, the judge's
    may be None), ``annotator``, ``prompt``, ``second_sample`` (the group of the prompt, or the prompt),
    ``system``, ``domain`` and ``length``. ``runs``: the judge's verdicts by output and run."""

    labels: "DataFrame"
    runs: "DataFrame"


def verdict_of(judge: Metric, score: float, threshold: float) -> str:
    """Return the judge's label for a score on its own scale."""
    is_yes = score <= threshold if judge.is_lower_better else score >= threshold
    return YES if is_yes else NO


def read_sampled_rows(check: JudgeCheck, judge: Metric) -> SampledRows:
    import pandas as pd

    sampled = JudgeCheckOutput.objects.filter(judge_check=check)
    parts = pd.DataFrame(
        [(output, part, 1 / p) for output, part, p in sampled.values_list("output_id", "part", "probability")],
        columns=["output", "part", "weight"],
    )
    facts = facts_of_outputs(Output.objects.filter(pk__in=sampled.values("output"))).merge(parts, on="output")
    scores = MetricScore.objects.filter(metric=judge, output__in=sampled.values("output"))
    rows = [(output, run, value) for output, run, value in scores.values_list("output_id", "run", "value")]
    runs = pd.DataFrame(rows, columns=["output", "run", "value"]).sort_values(["output", "run"])
    means = runs.groupby("output")["value"].mean()
    facts["judge"] = [
        verdict_of(judge, means[output], check.threshold) if output in means.index else None
        for output in facts["output"]
    ]
    runs["verdict"] = [verdict_of(judge, value, check.threshold) for value in runs["value"]]
    (answers,) = read_answers_of_questions(check.question.section.study, [check.question])
    answers = answers[["item", "value", "annotator"]]
    section = check.question.section
    exposures = Exposure.objects.filter(item__section=section).values_list("item__number", "output_id")
    by_item = {f"s{section.position}.{number}": output for number, output in exposures}
    answers = answers.assign(
        output=answers["item"].map(by_item), people=[YES if value > 0.5 else NO for value in answers["value"]]
    )
    labels = answers[["output", "annotator", "people"]].merge(facts, on="output")
    labels = labels.sort_values(["prompt", "system", "output", "annotator"]).reset_index(drop=True)
    return SampledRows(labels, runs.merge(facts[["output", "part", "weight", SECOND_SAMPLE]], on="output"))


# Which outputs people judge: samples of a fixed size with known probabilities.


Unit = TypeVar("Unit", bound=Hashable)


def uncertainties(scores: Mapping[Unit, Sequence[float]], threshold: float) -> dict[Unit, float]:
    """Return how unsure a judge is of each output, from 0 to 1, by the scores of its runs.

    The larger of two numbers counts: the nearness of the mean score to the threshold (1 at the threshold, 0 at the largest distance of
    any output), and 4 p (1 - p), where p is the share of runs with the verdict “yes”.

    >>> uncertainties({"a": [5], "b": [3], "c": [2, 4]}, 3)
    {'a': 0.0, 'b': 1.0, 'c': 1.0}
    """
    distances = {unit: abs(sum(runs) / len(runs) - threshold) for unit, runs in scores.items()}
    largest = max(distances.values(), default=0.0)
    found = {}
    for unit, runs in scores.items():
        p = sum(score >= threshold for score in runs) / len(runs)
        nearness = 1 - distances[unit] / largest if largest else 1.0
        found[unit] = max(nearness, 4 * p * (1 - p))
    return found


def inclusion_probabilities(sizes: Mapping[Unit, float], n: int) -> dict[Unit, float]:
    """Return the probabilities of a sample of ``n`` units, in proportion to their sizes and at most 1. They sum to ``n``.

    >>> inclusion_probabilities({"a": 1, "b": 1, "c": 2}, 2)
    {'a': 0.5, 'b': 0.5, 'c': 1.0}
    """
    certain: set[Unit] = set()
    while True:
        rest = sum(size for unit, size in sizes.items() if unit not in certain)
        share = (n - len(certain)) / rest if rest else 0.0
        beyond = {unit for unit, size in sizes.items() if unit not in certain and size * share >= 1}
        if not beyond:
            return {unit: 1.0 if unit in certain else size * share for unit, size in sizes.items()}
        certain |= beyond


def draw_sample(probabilities: Mapping[Unit, float], n: int, rng: Random) -> list[Unit]:
    """Return ``n`` units by systematic sampling from a random order, which gives each unit exactly its probability."""
    units = list(probabilities)
    rng.shuffle(units)
    start = rng.random()
    drawn: list[Unit] = []
    reached = 0.0
    for unit in units:
        reached += probabilities[unit]
        # The next mark lies at start + the number of units drawn. Rounding must not lose the last unit.
        if reached > start + len(drawn) and len(drawn) < n:
            drawn.append(unit)
    missing = [unit for unit in reversed(units) if unit not in set(drawn)][: n - len(drawn)]
    return [*drawn, *missing]


def deal(units: Sequence[Unit], prompts: Mapping[Unit, int], n_batches: int, rng: Random) -> list[list[Unit]]:
    """Return the units in batches of almost equal size. Outputs for one prompt go to different batches as far as possible."""
    by_prompt: dict[int, list[Unit]] = {}
    for unit in units:
        by_prompt.setdefault(prompts[unit], []).append(unit)
    groups = list(by_prompt.values())
    rng.shuffle(groups)
    batches: list[list[Unit]] = [[] for _ in range(n_batches)]
    for number, unit in enumerate(unit for group in groups for unit in group):
        batches[number % n_batches].append(unit)
    for batch in batches:
        rng.shuffle(batch)
    return batches


# Draw the sample of a check: store it, and make ready-made batches of a draft from it.


KEY_PREFIX = "judge-check-"


@dataclass(frozen=True, slots=True)
class DrawSettings:
    """What a researcher declares before the comparison: the sample, and what is good enough. See ``JudgeCheck``."""

    judge: Metric
    question: Question
    n_test: int
    n_development: int = 0
    people_per_output: int = 3
    threshold: float | None = None
    certainty_ratio: float = 1.0
    seed: int | None = None
    min_agreement: float | None = None
    min_true_positive_rate: float | None = None
    min_true_negative_rate: float | None = None
    needs_alternative_test: bool = False
    epsilon: float = 0.1


def judges_of(study: Study):
    """Return the judges in use that gave single outputs scores."""
    return metrics_in_use(study).filter(kind=Metric.Kind.JUDGE, scores__isnull=False).distinct()


def verdict_questions(study: Study) -> list[Question]:
    """Return the live questions with two answers about one output a page."""
    rows = Question.objects.filter(
        section__study=study, section__purpose=Section.Purpose.LIVE, section__protocol__in=scored_protocols()
    )
    rows = rows.select_related("section").order_by("section__position", "position")
    return [
        question
        for question in rows
        if len((question.scale or {}).get("labels", ())) == 2 and _shows_one_output(question.section)
    ]


def _shows_one_output(section: Section) -> bool:
    settings = REGISTRY[section.protocol].cleaned_settings(section)
    return scorer_of(section.protocol).shows_one_output(settings)


def newest_check(study: Study) -> JudgeCheck | None:
    return JudgeCheck.objects.filter(study=study).select_related("judge", "question__section").order_by("-pk").first()


def can_be_checked(study: Study) -> bool:
    """Return whether the page of a check has something to do: a sample is drawn, or the study has a question for one."""
    return JudgeCheck.objects.filter(study=study).exists() or bool(verdict_questions(study))


def draw_check(study: Study, by, chosen: DrawSettings) -> JudgeCheck:
    """Draw and store a sample: of a draft, or of the answers to a launched study. Raise ActionRefused with what is wrong."""
    return _draw_from_answers(study, by, chosen) if study.launched_at else _draw_for_draft(study, by, chosen)


def _draw_for_draft(study: Study, by, chosen: DrawSettings) -> JudgeCheck:
    """Draw and store a sample, and replace the batches of an earlier one."""
    with locked_draft(study.pk, by, deletes_test_runs=True) as draft:
        _check_design(draft, chosen)
        _check_judge_and_arms(draft, chosen)
        threshold = _threshold(chosen)
        n = chosen.n_test + chosen.n_development
        scores = _scores_by_output(chosen)
        if n > len(scores):
            raise ActionRefused(
                f"The sample has {n} outputs, but the judge scored {len(scores)} of this study. Draw fewer, or upload more scores."
            )
        seed = new_seed() if chosen.seed is None else chosen.seed
        sign = -1 if chosen.judge.is_lower_better else 1
        oriented = {output: [sign * score for score in runs] for output, runs in scores.items()}
        unsure = uncertainties(oriented, sign * threshold)
        sizes = {output: 1 + (chosen.certainty_ratio - 1) * unsure[output] for output in scores}
        probabilities = inclusion_probabilities(sizes, n)
        check, sample = _draw_and_store(draft, by, chosen, probabilities, threshold=threshold, seed=seed)
        n_batches = _replace_batches(draft, check, sample)
        Study.objects.filter(pk=draft.pk).update(
            annotators_per_batch=chosen.people_per_output, target_n=n_batches * chosen.people_per_output
        )
        # Everybody who sees the study reads its log, so the seed is only in the check.
        record_edit_and_raise_version(
            draft, by, judge=str(chosen.judge), fingerprint=chosen.judge.fingerprint, outputs=n
        )
    return check


def _draw_and_store(
    study: Study, by, chosen: DrawSettings, probabilities: Mapping[int, float], **columns: Any
) -> tuple[JudgeCheck, list[int]]:
    """Draw outputs with these probabilities, and store them. Return the check and the outputs in their drawn order."""
    n, seed = chosen.n_test + chosen.n_development, columns["seed"]
    sample = draw_sample(probabilities, n, seeded_random(seed, "judge check", "sample"))
    seeded_random(seed, "judge check", "parts").shuffle(sample)
    declared = {field.name: getattr(chosen, field.name) for field in fields(chosen)} | columns
    check = JudgeCheck.objects.create(study=study, by=by, n_outputs=len(probabilities), **declared)
    JudgeCheckOutput.objects.bulk_create(
        (
            JudgeCheckOutput(
                judge_check=check,
                output_id=output,
                part=TEST if place < chosen.n_test else DEVELOPMENT,
                probability=min(1.0, probabilities[output]),
            )
            for place, output in enumerate(sample)
        ),
        batch_size=1000,
    )
    return check, sample


def _check_design(study: Study, chosen: DrawSettings) -> None:
    section = chosen.question.section
    with_items = [one for one in study.sections.all() if REGISTRY[one.protocol].has_items]
    if [one.pk for one in with_items] != [section.pk]:
        raise ActionRefused(
            "Only one section may show outputs: the one that asks for the verdict. Delete the others, or use another study."
        )
    if study.batches.filter(origin=Batch.Origin.IMPORTED).exclude(key__startswith=KEY_PREFIX).exists():
        raise ActionRefused(
            "The study has ready-made batches of a file, which the sample would replace. Use a draft without them."
        )


def _check_judge_and_arms(study: Study, chosen: DrawSettings) -> None:
    if study.arms.count() != 1:
        raise ActionRefused(
            "The check needs a study with one arm, so that all people judge alike. Delete the other arms, or use another study."
        )
    if chosen.judge.question_id not in (None, chosen.question.pk):
        raise ActionRefused(
            "The judge's scores are about another question. Choose that question, or upload scores of this one."
        )


def _threshold(chosen: DrawSettings) -> float:
    judge, threshold = chosen.judge, chosen.threshold
    if judge.scale_low is None or judge.scale_high is None:
        if threshold is None:
            raise ActionRefused("The judge has no scale. Enter from which score on its verdict is “yes”.")
        return threshold
    if threshold is None:
        return (judge.scale_low + judge.scale_high) / 2
    if not judge.scale_low <= threshold <= judge.scale_high:
        raise ActionRefused(
            f"The threshold is outside of the judge's scale. Enter a score from {judge.scale_low:g} to {judge.scale_high:g}."
        )
    return threshold


def _scores_by_output(chosen: DrawSettings) -> dict[int, list[float]]:
    """Return the scores of all runs by output, in an order that does not depend on ids of the database."""
    rows = MetricScore.objects.filter(metric=chosen.judge, output__system__in=chosen.judge.study.systems.judged())
    rows = rows.order_by("output__prompt__key", "output__system__name", "output__sample", "run")
    found: dict[int, list[float]] = {}
    for output, value in rows.values_list("output_id", "value").iterator(chunk_size=5000):
        found.setdefault(output, []).append(value)
    return found


def _replace_batches(study: Study, check: JudgeCheck, sample: list[int]) -> int:
    """Delete the batches of an earlier sample and make those of this one. Return their number."""
    section = check.question.section
    earlier = Placement.objects.filter(batch__study=study, batch__key__startswith=KEY_PREFIX)
    items = set(earlier.values_list("item_id", flat=True))
    earlier.delete()
    Batch.objects.filter(study=study, key__startswith=KEY_PREFIX).delete()
    unused = Item.objects.filter(pk__in=items, placements=None, expected=None, kind=Item.Kind.LIVE)
    Exposure.objects.filter(item__in=list(unused.values_list("pk", flat=True))).delete()
    unused.delete()
    prompts = dict(Output.objects.filter(pk__in=sample).values_list("pk", "prompt_id"))
    n_batches = -(-len(sample) // section.m)
    batches = deal(sample, prompts, n_batches, seeded_random(check.seed, "judge check", "batches"))
    arm = study.arms.get()
    drawn = [
        DrawnBatch(
            number,
            arm.pk,
            tuple((section.pk, DrawnItem(prompts[output], (output,), Item.Kind.LIVE)) for output in outputs),
        )
        for number, outputs in enumerate(batches)
    ]
    store_drawn_batches(
        study,
        drawn,
        places_per_batch=check.people_per_output,
        origin=Batch.Origin.IMPORTED,
        first_number=0,
        keys=[f"{KEY_PREFIX}{number:05}" for number in range(n_batches)],
    )
    return n_batches


# Draw the sample of a study that has answers. The draw reads no score, and it comes before heval compares scores with
# answers: who has seen the agreement could otherwise draw until it suits.


FEWEST_OUTPUTS = 10


def verdicts_by_output(question: Question) -> dict[int, int]:
    """Return how many people judged each output, in an order that does not depend on ids of the database.

    Withdrawn and unfinished work is left out. Exclusion rules are applied later, when people and the judge are compared.
    """
    study = question.section.study
    answers = Response.objects.filter(
        question=question,
        value__isnull=False,
        item__kind=Item.Kind.LIVE,
        exposure__output__system__in=study.systems.judged(),
    )
    counts = select(Use.RESULTS, answers, counted_origins(study)).values("exposure__output")
    counts = counts.annotate(n=Count("assignment__annotator", distinct=True))
    order = ("prompt__key", "system__name", "sample")
    counts = counts.order_by(*(f"exposure__output__{name}" for name in order))
    return dict(counts.values_list("exposure__output", "n"))


def times_of_comparisons(judge: Metric) -> list[datetime]:
    """Return when heval compared the scores of this version of a judge with answers."""
    study, fingerprint = judge.study_id, judge.fingerprint
    same = set(Metric.objects.filter(study=study, fingerprint=fingerprint).values_list("pk", flat=True))
    compared = MetricsComparison.objects.filter(study=study).values_list("at", "metrics")
    calibrated = CalibratedResult.objects.filter(study=study).values_list("at", "options")
    results = JudgeCheckResult.objects.filter(judge_check__study=study, fingerprint=fingerprint)
    return sorted(
        [
            *(at for at, metrics in compared if any(fingerprint in state for state in metrics)),
            *(at for at, options in calibrated if same & set(options.get("in_use", ()))),
            *results.values_list("at", flat=True),
        ]
    )


def _draw_from_answers(study: Study, by, chosen: DrawSettings) -> JudgeCheck:
    """Draw and store a sample of the outputs that at least ``people_per_output`` people have judged."""
    with transaction.atomic():
        study = Study.objects.select_for_update(no_key=True).get(pk=study.pk)
        check_permission_or_404(by, Action.ANALYSE, study)
        check_outcomes_visible(study, counted_origins(study))
        _check_judge_and_arms(study, chosen)
        if chosen.certainty_ratio != 1:
            raise ActionRefused(
                "A sample from answers reads no score, so all outputs have the same probability. Enter 1 for unsure outputs."
            )
        if compared := times_of_comparisons(chosen.judge):
            raise ActionRefused(
                f"The scores of “{chosen.judge}” were compared with answers on {compared[0]:%Y-%m-%d}. Draw a sample before that: upload "
                "scores of a new version of the judge."
            )
        least, n = chosen.people_per_output, chosen.n_test + chosen.n_development
        judged = [output for output, count in verdicts_by_output(chosen.question).items() if count >= least]
        if n > len(judged):
            raise ActionRefused(
                f"The sample has {n} outputs, but {len(judged)} have at least {least} verdicts. Draw fewer, or ask for fewer verdicts."
            )
        seed = new_seed() if chosen.seed is None else chosen.seed
        columns = {"threshold": _threshold(chosen), "seed": seed, "is_from_answers": True}
        return _draw_and_store(study, by, chosen, dict.fromkeys(judged, n / len(judged)), **columns)[0]


KIND = "check_judge"
MINIMUMS = {
    "agreement": "min_agreement",
    "true_positive_rate": "min_true_positive_rate",
    "true_negative_rate": "min_true_negative_rate",
}


def request_result(study: Study, by, request_token: str | None = None) -> Job:
    """Submit the job. Raise ActionRefused if there is nothing to compute, PermissionDenied while answers by system are hidden."""
    check_permission_or_404(by, Action.ANALYSE, study)
    check = newest_check(study)
    if check is None:
        raise ActionRefused("No sample is drawn yet. Draw one first.")
    if not study.launched_at:
        raise ActionRefused("The study is a draft, so no person has judged an output. Launch it first.")
    check_outcomes_visible(study, counted_origins(study))
    return jobs.submit(KIND, study=study, by=by, request_token=request_token)


def compute_result(study: Study, by) -> JudgeCheckResult:
    """Compute and store the result of the newest version of the judge."""
    check = newest_check(study)
    judge = newest_version(check) if check else None
    if check is None or judge is None:
        raise ActionRefused("The judge is not in use any more. Upload the scores of a version of it.")
    check_outcomes_visible(study, counted_origins(study))
    rows = read_sampled_rows(check, judge)
    test = rows.labels[rows.labels["part"] == TEST]
    is_grouped = not rows.labels.empty and has_groups(rows.labels)
    noun = group_noun(rows.labels[SECOND_SAMPLE]) if is_grouped else ""
    named = partial(name_groups_of_plain, noun=noun) if is_grouped else lambda value: value
    measured = named(name_populations_of_plain(_measure(check, judge, rows, test)))
    criteria = _criteria(check, measured)
    is_of_robots = is_simulated(study)
    verdict, reason = _verdict(criteria, is_simulated=is_of_robots)
    development = rows.labels[rows.labels["part"] == DEVELOPMENT]
    developed = named(name_populations_of_plain(_agreement_and_rates(development)))
    return JudgeCheckResult.objects.create(
        judge_check=check,
        judge=judge,
        fingerprint=judge.fingerprint,
        guideline_sha256=guideline_sha256(check.question),
        verdict=verdict,
        n_labels=len(test),
        code_version=version(),
        by=by,
        result={
            "reason": reason,
            "criteria": criteria,
            "n_outputs": int(test["output"].nunique()),
            "n_people": int(test["annotator"].nunique()),
            "is_simulated": is_of_robots,
            **(
                {"n_groups": test[SECOND_SAMPLE].nunique(), "n_prompts": test["prompt"].nunique()}
                | noun_of_groups(noun)
                if is_grouped
                else {}
            ),
            "test": measured,
            "development": developed | {"differences": _differences(development)},
        },
    )


def _arrays(labels: "DataFrame") -> dict[str, Any]:
    return {
        "annotators": labels["annotator"].to_numpy(),
        "prompts": labels[SECOND_SAMPLE].to_numpy(),
        "weights": labels["weight"].to_numpy(),
    }


def _agreement_and_rates(labels: "DataFrame") -> dict[str, Any]:
    from analysis.stats import judges

    if labels.empty:
        return {"agreement": None, "rates": None, "n_labels": 0}
    agreement = judges.judge_agreement(labels["judge"], labels["people"], categories=[NO, YES], **_arrays(labels))
    rates = judges.true_positive_and_negative_rates(labels["judge"], labels["people"], positive=YES, **_arrays(labels))
    return {"agreement": agreement.as_dict(), "rates": rates.as_dict(), "n_labels": len(labels)}


def _measure(check: JudgeCheck, judge: Metric, rows: SampledRows, test: "DataFrame") -> dict[str, Any]:
    from analysis.stats import judge_probes, judge_standards

    found = _agreement_and_rates(test)
    if test.empty:
        return found
    lengths = by_length(test.drop_duplicates("output").set_index("output")["length"])
    groups = {"domain": test["domain"], "length": test["output"].map(lengths)}
    # A single group says what all outputs together say. Systems are always named.
    named = {"system": test["system"]} | {name: values for name, values in groups.items() if values.nunique() > 1}
    found["groups"] = {
        name: judge_probes.agreement_by_group(test["judge"], test["people"], values, **_arrays(test)).as_dict()
        for name, values in named.items()
    }
    codes = test.assign(code=(test["people"] == YES).astype(float)).groupby(["output", "annotator"])["code"].first()
    table = codes.unstack("annotator")
    by_output = test.drop_duplicates("output").set_index("output").loc[table.index]
    judge_codes = by_output["judge"].map({YES: 1.0, NO: 0.0}).to_numpy(dtype=float)
    prompts = by_output[SECOND_SAMPLE].to_numpy()
    alternative = judge_standards.alternative_annotator_test(
        judge_codes, table.to_numpy(), epsilon=check.epsilon, prompts=prompts
    )
    found["alternative"] = alternative.as_dict()
    found["possible"] = judge_standards.possible_agreement(
        table.to_numpy(), judge=judge_codes, prompts=prompts, weights=by_output["weight"].to_numpy(), panel_sizes=()
    ).as_dict()
    found["probes"] = _probes(judge, rows, test)
    return found


def _probes(judge: Metric, rows: SampledRows, test: "DataFrame") -> dict[str, Any]:
    """Return the probes that the data allow; None for the others."""
    from analysis.stats import judge_probes

    codes = {YES: 1.0, NO: 0.0}
    said, gave = test["people"].map(codes).to_numpy(), test["judge"].map(codes).to_numpy(dtype=float)
    found: dict[str, Any] = dict.fromkeys(("repeat", "order", "length", "family"))
    runs = rows.runs[rows.runs["part"] == TEST]
    if not runs.empty and runs["run"].nunique() > 1:
        verdicts = runs.pivot(index="output", columns="run", values="verdict")
        facts = runs.drop_duplicates("output").set_index("output").loc[verdicts.index]
        found["repeat"] = judge_probes.repeat_probe(
            verdicts.to_numpy(dtype=object), prompts=facts[SECOND_SAMPLE].to_numpy(), weights=facts["weight"].to_numpy()
        ).as_dict()
    has_text = (test["length"] > 0).to_numpy()
    if has_text.any():
        part = test[has_text]
        found["length"] = judge_probes.length_probe(
            gave[has_text], said[has_text], part["length"].to_numpy(), **_arrays(part)
        ).as_dict()
    families = families_by_name({"": judge.family}, set(test["system"]))
    is_own = test["system"].isin(families).to_numpy()
    if is_own.any() and not is_own.all():
        found["family"] = judge_probes.family_probe(gave, said, is_own, **_arrays(test)).as_dict()
    if pairs := _pairs_in_both_orders(judge):
        original, exchanged, prompts = zip(*pairs, strict=True)
        found["order"] = judge_probes.order_probe(list(original), list(exchanged), prompts=list(prompts)).as_dict()
    return found


def _pairs_in_both_orders(judge: Metric) -> list[tuple[float, float, str | None]]:
    """Return the mean preference for the first output of each pair in both orders, and the group of the prompt, or the prompt."""
    rows = PairScore.objects.filter(
        metric__study=judge.study_id, metric__discarded_at=None, metric__fingerprint=judge.fingerprint
    )
    by_order: dict[tuple[int, int], list[float]] = {}
    prompts: dict[tuple[int, int], str | None] = {}
    for first, second, prompt, group, value in rows.values_list(
        "first_id", "second_id", "first__prompt__key", "first__prompt__group", "value"
    ):
        by_order.setdefault((first, second), []).append(value)
        (prompts[first, second],) = second_sample_labels([prompt], [group])
    means = {pair: sum(values) / len(values) for pair, values in by_order.items()}
    return [
        (means[first, second], 1 - means[second, first], prompts[first, second])
        for first, second in sorted(means)
        if first < second and (second, first) in means
    ]


def _criteria(check: JudgeCheck, measured: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what was declared, what was found, and whether it is met (None: undefined)."""
    found = []
    for name, column in MINIMUMS.items():
        minimum = getattr(check, column)
        if minimum is None:
            continue
        source = measured["agreement"] if name == "agreement" else measured["rates"]
        estimate = source[name] if source else None
        interval = estimate["interval"] if estimate else None
        found.append(
            {
                "name": name,
                "minimum": minimum,
                "estimate": estimate["estimate"] if estimate else None,
                "low": interval["low"] if interval else None,
                "high": interval["high"] if interval else None,
                "population": estimate["settings"]["population"] if estimate else None,
                "is_met": interval["low"] > minimum if interval else None,
                "reason": "" if interval else (estimate["reason"] if estimate else "no person judged an output"),
            }
        )
    if check.needs_alternative_test:
        alternative = measured.get("alternative")
        rate = alternative["winning_rate"] if alternative else None
        found.append(
            {
                "name": "alternative_annotator_test",
                "minimum": 0.5,
                "estimate": rate["estimate"] if rate else None,
                "low": None,
                "high": None,
                "is_met": alternative["is_passed"] if alternative else None,
                "reason": rate["reason"] if rate else "no person judged an output",
            }
        )
    return found


def _verdict(criteria: list[dict[str, Any]], *, is_simulated: bool) -> tuple[str, str]:
    """Return the verdict and why. All that was declared must be met."""
    Verdict = JudgeCheckResult.Verdict
    if is_simulated:
        return Verdict.OPEN, "robots gave the answers"
    if any(one["is_met"] is False for one in criteria):
        return Verdict.NOT_GOOD, ""
    undefined = [one["reason"] or "a number is undefined" for one in criteria if one["is_met"] is None]
    return (Verdict.OPEN, undefined[0]) if undefined else (Verdict.GOOD, "")


def _differences(labels: "DataFrame", n: int = 50) -> list[dict[str, Any]]:
    """Return outputs of the development part on which most people and the judge differ, for changing the judge."""
    found = []
    for _, rows in labels.groupby("output", sort=False):
        n_yes = int((rows["people"] == YES).sum())
        first = rows.iloc[0]
        if first["judge"] is not None and (n_yes * 2 > len(rows)) != (first["judge"] == YES) and n_yes * 2 != len(rows):
            found.append(
                {
                    "output": int(first["output"]),
                    "prompt": first["prompt"],
                    "system": first["system"],
                    "judge": first["judge"],
                    "n_yes": n_yes,
                    "n_people": len(rows),
                }
            )
    return found[:n]
