"""Draw the sample of a check: store it, and make ready-made batches of a draft from it."""

from dataclasses import dataclass

from analysis.metrics.store import metrics_in_use
from analysis.models import JudgeCheck, JudgeCheckOutput, Metric, MetricScore
from studies.design.draw import DrawnBatch, store_drawn_batches
from studies.design.seeds import seeded_random
from studies.models import Batch, Exposure, Item, Output, Placement, Question, Section, Study, new_seed
from studies.protocols import REGISTRY, DrawnItem
from studies.services.drafts import locked_draft, record_edit_and_raise_version
from studies.services.lifecycle import ActionRefused

from .sampling import deal, draw_sample, inclusion_probabilities, uncertainties

KEY_PREFIX = "judge-check-"


@dataclass(frozen=True, slots=True)
class DrawSettings:
    """What a researcher declares before the launch: the sample, and what is good enough. See ``JudgeCheck``."""

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
        section__study=study, section__purpose=Section.Purpose.LIVE, section__protocol="rating"
    )
    rows = rows.select_related("section").order_by("section__position", "position")
    return [
        question
        for question in rows
        if len((question.scale or {}).get("labels", ())) == 2
        and REGISTRY["rating"].cleaned_settings(question.section)["shown"] == "one"
    ]


def newest_check(study: Study) -> JudgeCheck | None:
    return JudgeCheck.objects.filter(study=study).select_related("judge", "question__section").order_by("-pk").first()


def draw_check(study: Study, by, chosen: DrawSettings) -> JudgeCheck:
    """Draw and store a sample, and replace the batches of an earlier one. Raise ActionRefused with what is wrong."""
    with locked_draft(study.pk, by, deletes_test_runs=True) as draft:
        _check_design(draft, chosen)
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
        sample = draw_sample(probabilities, n, seeded_random(seed, "judge check", "sample"))
        seeded_random(seed, "judge check", "parts").shuffle(sample)
        check = JudgeCheck.objects.create(
            study=draft,
            judge=chosen.judge,
            question=chosen.question,
            threshold=threshold,
            certainty_ratio=chosen.certainty_ratio,
            n_development=chosen.n_development,
            n_test=chosen.n_test,
            n_outputs=len(scores),
            people_per_output=chosen.people_per_output,
            seed=seed,
            min_agreement=chosen.min_agreement,
            min_true_positive_rate=chosen.min_true_positive_rate,
            min_true_negative_rate=chosen.min_true_negative_rate,
            needs_alternative_test=chosen.needs_alternative_test,
            epsilon=chosen.epsilon,
            by=by,
        )
        Part = JudgeCheckOutput.Part
        JudgeCheckOutput.objects.bulk_create(
            (
                JudgeCheckOutput(
                    judge_check=check,
                    output_id=output,
                    part=Part.TEST if place < chosen.n_test else Part.DEVELOPMENT,
                    probability=min(1.0, probabilities[output]),
                )
                for place, output in enumerate(sample)
            ),
            batch_size=1000,
        )
        n_batches = _replace_batches(draft, check, sample)
        Study.objects.filter(pk=draft.pk).update(
            annotators_per_batch=chosen.people_per_output, target_n=n_batches * chosen.people_per_output
        )
        # Everybody who sees the study reads its log, so the seed is only in the check.
        record_edit_and_raise_version(
            draft, by, judge=str(chosen.judge), fingerprint=chosen.judge.fingerprint, outputs=n
        )
    return check


def _check_design(study: Study, chosen: DrawSettings) -> None:
    section = chosen.question.section
    with_items = [one for one in study.sections.all() if REGISTRY[one.protocol].has_items]
    if [one.pk for one in with_items] != [section.pk]:
        raise ActionRefused(
            "Only one section may show outputs: the one that asks for the verdict. Delete the others, or use another study."
        )
    if study.arms.count() != 1:
        raise ActionRefused(
            "The check needs a study with one arm, so that all people judge alike. Delete the other arms."
        )
    if study.batches.filter(origin=Batch.Origin.IMPORTED).exclude(key__startswith=KEY_PREFIX).exists():
        raise ActionRefused(
            "The study has ready-made batches of a file, which the sample would replace. Use a draft without them."
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
