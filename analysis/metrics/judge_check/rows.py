"""The labels of people beside the judge's, for the sampled outputs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.data.frames import SECOND_SAMPLE, second_sample_labels
from analysis.metrics.scoring.rows import read_answers_of_questions
from analysis.models import JudgeCheck, JudgeCheckOutput, Metric, MetricScore
from studies.models import Exposure

if TYPE_CHECKING:
    from pandas import DataFrame

YES, NO = "yes", "no"


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

    sampled = JudgeCheckOutput.objects.filter(judge_check=check).values_list(
        "output_id",
        "part",
        "probability",
        "output__system__name",
        "output__prompt__key",
        "output__prompt__domain",
        "output__prompt__group",
        "output__text",
    )
    facts = pd.DataFrame(
        [
            (output, part, 1 / p, system, prompt, domain, group, len(text))
            for output, part, p, system, prompt, domain, group, text in sampled
        ],
        columns=["output", "part", "weight", "system", "prompt", "domain", "group", "length"],
    )
    facts[SECOND_SAMPLE] = second_sample_labels(facts["prompt"], facts.pop("group"))
    scores = MetricScore.objects.filter(
        metric=judge, output__in=JudgeCheckOutput.objects.filter(judge_check=check).values("output")
    )
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
