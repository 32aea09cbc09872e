"""A study in which people say yes or no about outputs that a judge has scored."""

from django.utils import timezone

from analysis.metrics.judge_check.measuring import YES, DrawSettings, draw_check, verdict_of
from analysis.metrics.store import MetricDescription, store_computed_scores
from analysis.models import JudgeCheck, Metric, MetricScore
from annotators.models import Annotator, Assignment, Response
from studies.models import Design, Output, Placement, Question, Section, Study
from studies.services import lifecycle
from tests.builders import draft_study, launched, user

JUDGE = MetricDescription("judge", "v1", {"prompt": "Is it good?"}, family="alpha", scale_low=1, scale_high=5)


def judged_draft(owner=None, *, prompts=20, m=10, systems=("alpha", "beta")):
    """A draft with a question of two answers and a reason, and a judge whose scores differ between outputs."""
    study = draft_study(systems=systems, prompts=prompts, owner=owner or user("ada"), target_n=3)
    section = Section.objects.create(
        study=study, position=1, protocol="rating", m=m, settings={"scores": "unit", "shown": "one"}
    )
    Question.objects.create(
        section=section,
        position=1,
        key="verdict",
        text="Is it good?",
        scale={"kind": "likert", "labels": ["No", "Yes"]},
    )
    Question.objects.create(section=section, position=2, key="reason", text="Why?", scale={"kind": "text"})
    return study


def store_judge(study, described=JUDGE, score=lambda number: 1 + number % 5):
    outputs = Output.objects.filter(system__study=study).order_by("prompt__key", "system__name")
    return store_computed_scores(
        study,
        study.owner,
        "strict",
        described,
        {output.pk: float(score(number)) for number, output in enumerate(outputs)},
        Metric.Source.UPLOAD,
    )


def chosen(study, judge, **declared):
    question = Question.objects.select_related("section").get(section__study=study, key="verdict")
    return DrawSettings(judge, question, **{"n_test": 20, "min_agreement": 0.5, "seed": 3} | declared)


def checked_study(
    *,
    says=lambda output, person, is_yes: is_yes,
    n_people=6,
    n_test=40,
    group_size=1,
    described=JUDGE,
    score=lambda number: 1 + number % 5,
    **declared,
):
    """A launched study whose people answered about each sampled output: ``says(output, person, judge says yes)``."""
    study = judged_draft()
    for place, key in enumerate(sorted(study.prompts.values_list("key", flat=True))):
        if group_size > 1:
            study.prompts.filter(key=key).update(group=f"report {place // group_size}")
    judge = store_judge(study, described, score)
    check = draw_check(study, study.owner, chosen(study, judge, n_test=n_test, people_per_output=n_people, **declared))
    study.refresh_from_db()
    study = launched(study)
    answer_verdicts(study, check, says, n_people)
    return study, check


def answer_verdicts(study, check, says, n_people):
    """Each of ``n_people`` people submits all batches."""
    question = check.question
    design = Design.objects.get(study=study)
    scores = dict(MetricScore.objects.filter(metric=check.judge).values_list("output", "value"))
    people = Annotator.objects.bulk_create(
        Annotator(pool="tests", external_id=f"{study.pk}-{n}") for n in range(n_people)
    )
    now, rows = timezone.now(), []
    for batch in study.batches.order_by("number"):
        placed = list(
            Placement.objects.filter(batch=batch).values_list("item", "item__exposures", "item__exposures__output")
        )
        for number, person in enumerate(people):
            assignment = Assignment.objects.create(
                study=study,
                batch=batch,
                annotator=person,
                design=design,
                started_at=now,
                submitted_at=now,
                ordinal=batch.number + 1,
            )
            rows += [
                Response(
                    assignment=assignment,
                    question=question,
                    value=int(
                        bool(says(output, number, verdict_of(check.judge, scores[output], check.threshold) == YES))
                    )
                    + 1,
                    slot=f"s1.q1.i{place}.A",
                    item_id=item,
                    exposure_id=exposure,
                    label="A",
                    position=place,
                )
                for place, (item, exposure, output) in enumerate(placed, 1)
            ]
    Response.objects.bulk_create(rows)


def answered_study(owner=None, *, n_people=3, is_closed=True, says=lambda output, person, is_yes: is_yes):
    """A study whose people judged all outputs before anybody thought of checking a judge."""
    study = judged_draft(owner)
    Study.objects.filter(pk=study.pk).update(annotators_per_batch=n_people, target_n=n_people * 4)
    study = launched(Study.objects.get(pk=study.pk))
    judge = store_judge(study)
    question = Question.objects.select_related("section").get(section__study=study, key="verdict")
    answer_verdicts(study, JudgeCheck(judge=judge, question=question, threshold=3.0), says, n_people)
    return closed(study) if is_closed else study, judge


def closed(study):
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    return Study.objects.get(pk=study.pk)
