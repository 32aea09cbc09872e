"""Answers of people and scores of metrics about the same outputs, as rows that the statistics read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models.functions import Length

from analysis.data.blinding import check_outcomes_visible
from analysis.data.frames import SECOND_SAMPLE, second_sample_labels
from analysis.models import Metric, MetricScore, PairScore
from annotators.counting import counted_origins
from studies.models import Output, Question, Section, Study

from .scoring import read_answers_of_questions, scored_protocols, scorer_of
from .store import metrics_in_use

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from pandas import DataFrame, Series

PEOPLE_COLUMNS = ["value", "system", "other", "is_first", "prompt", "domain", SECOND_SAMPLE, "annotator", "day"]


@dataclass(frozen=True, slots=True)
class BesidePeople:
    """One question of a study: the answers of people about it, and the scores that metrics and judges gave.

    ``people``: a row for each kept answer, with ``value`` from 0 to 1 (higher is better for ``system``), ``system``, ``other`` (of a pair, or
    None), ``is_first``, ``prompt``, ``domain``, ``second_sample``, ``annotator``. ``scores``: a row for each metric, output and run, with ``metric`` (its id),
    ``system``, ``prompt``, ``length`` (of the text, in characters), ``run`` and ``value``, turned so that higher is better, and from 0 to 1 if
    the metric has a scale. ``pair_scores``: likewise, with ``first`` and ``second`` system. ``are_people_known``: whether rows say who answered.
    """

    study: Study
    question: Question
    kind: str
    metrics: list[Metric]
    people: "DataFrame"
    scores: "DataFrame"
    pair_scores: "DataFrame"


def scored_questions(study: Study) -> list[Question]:
    """Return the live questions whose answers give scores of outputs, or preferences between two."""
    about_outputs = [slug for slug in scored_protocols() if scorer_of(slug).is_about_outputs]
    questions = Question.objects.filter(section__study=study, section__purpose=Section.Purpose.LIVE)
    questions = questions.filter(section__protocol__in=about_outputs).select_related("section")
    questions = questions.order_by("section__position", "position")
    return [question for question in questions if scorer_of(question.section.protocol).is_scored(question)]


def read_beside_people(study: Study, questions: Sequence[Question]) -> Iterator[BesidePeople]:
    """Yield the answers and scores of each question. Raise PermissionDenied while answers by system are hidden.

    The answers and scores of the study are read once. A metric about the output as a whole belongs to each question.
    """
    check_outcomes_visible(study, counted_origins(study))
    metrics = list(metrics_in_use(study))
    scores, scores_of_pairs = output_scores(metrics), pair_scores(metrics)
    for question, answers in zip(questions, read_answers_of_questions(study, questions), strict=True):
        own = [metric for metric in metrics if metric.question_id in (None, question.pk)]
        yield BesidePeople(
            study,
            question,
            scorer_of(question.section.protocol).kind,
            own,
            answers[PEOPLE_COLUMNS],
            *(
                table[table["metric"].isin([one.pk for one in own])].reset_index(drop=True)
                for table in (scores, scores_of_pairs)
            ),
        )


def all_outputs(study: Study) -> "DataFrame":
    """Return all outputs of the judged systems, judged by people or not, in the columns of ``facts_of_outputs``."""
    outputs = Output.objects.filter(system__in=study.systems.judged())
    return facts_of_outputs(outputs.order_by("system__name", "prompt__key", "sample"))


def facts_of_outputs(outputs: "QuerySet[Output]") -> "DataFrame":
    """Return a row for each output: ``output``, ``system``, ``prompt``, ``domain``, ``length`` and ``second_sample``."""
    import pandas as pd

    values = outputs.values_list(
        "pk", "system__name", "prompt__key", "prompt__domain", "text", "prompt__group", "prompt__study__group_noun"
    )
    frame = pd.DataFrame(
        [(*names, len(text), group, noun) for *names, text, group, noun in values.iterator(chunk_size=2000)],
        columns=["output", "system", "prompt", "domain", "length", "group", "noun"],
    )
    noun = frame.pop("noun")
    frame[SECOND_SAMPLE] = second_sample_labels(frame["prompt"], frame.pop("group"), noun.max() if len(noun) else "")
    return frame


def scaled(metric: Metric, value: float) -> float:
    """Return a score turned so that higher is better, and from 0 to 1 if the metric has a scale."""
    if metric.scale_low is not None and metric.scale_high is not None:
        share = (value - metric.scale_low) / (metric.scale_high - metric.scale_low)
        return 1 - share if metric.is_lower_better else share
    return -value if metric.is_lower_better else value


def output_scores(metrics: list[Metric]) -> "DataFrame":
    """Return the scores of outputs, in the columns of ``BesidePeople.scores``."""
    import pandas as pd

    by_id = {metric.pk: metric for metric in metrics}
    rows = MetricScore.objects.filter(metric__in=by_id).order_by("metric", "output", "run")
    values = rows.values_list(
        "metric_id", "output__system__name", "output__prompt__key", Length("output__text"), "run", "value"
    )
    return pd.DataFrame(
        [
            (pk, system, prompt, length, run, scaled(by_id[pk], value))
            for pk, system, prompt, length, run, value in values.iterator(chunk_size=5000)
        ],
        columns=["metric", "system", "prompt", "length", "run", "value"],
    )


def pair_scores(metrics: list[Metric]) -> "DataFrame":
    """Return the verdicts on pairs, in the columns of ``BesidePeople.pair_scores``."""
    import pandas as pd

    rows = PairScore.objects.filter(metric__in=[metric.pk for metric in metrics]).order_by(
        "metric", "first", "second", "run"
    )
    values = rows.values_list(
        "metric_id", "first__system__name", "second__system__name", "first__prompt__key", "run", "value"
    )
    columns = ["metric", "first", "second", "prompt", "run", "value"]
    return pd.DataFrame(list(values.iterator(chunk_size=5000)), columns=columns)


def score_table(rows: "DataFrame", systems: list[Any], prompts: list[Any]) -> "DataFrame":
    """Return the mean values as a table of prompts by systems; NaN where there is none."""
    table = rows.pivot_table(index="prompt", columns="system", values="value", aggfunc="mean")
    return table.reindex(index=prompts, columns=systems)


# Groups of outputs by the length of their texts, split at the output in the middle.


LONG, SHORT, NO_TEXT = "long texts", "short texts", "outputs without text"


def by_length(lengths: "Series") -> "Series":
    """Return for each output whether its text is longer than that of the output in the middle. Media have no length."""
    is_long = lengths > lengths[lengths > 0].median()
    return is_long.map({True: LONG, False: SHORT}).where(lengths > 0, NO_TEXT)
