"""How metrics and judges agree with people about each question: computed by a job, stored, and shown by pages and REST."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Count, Max

from analysis.data.blinding import check_outcomes_visible
from analysis.data.frames import SECOND_SAMPLE
from analysis.models import Metric, MetricsComparison
from analysis.protocols.blocks.populations import group_noun, has_groups, noun_of_groups, population_of
from annotators.counting import Use, counted_origins, is_simulated, select
from annotators.models import Assignment, Exclusion
from studies.access import Action, check_permission_or_404
from studies.models import Job, Study
from studies.services import jobs
from studies.services.lifecycle import ActionRefused

from .beside_people import BesidePeople, read_beside_people, score_table, scored_questions
from .store import metrics_in_use

if TYPE_CHECKING:
    import numpy as np
    from pandas import DataFrame


# The table of systems with their score by people and by each metric, as in the Genie paper's Table 3.


def system_table(found: BesidePeople, people: "DataFrame", scores: dict[int, "DataFrame"]) -> list[dict[str, Any]]:
    """Return a row for each system that people judged, from the best to the worst: its score by people and by each metric.

    ``people``: their means, of prompts by systems. ``scores``: the scores of each metric by its id. A score by people is from 0 to 1, with an
    interval over people and prompts for ratings. A metric's score is the mean of all outputs that it scored, on its own scale.
    """
    by_metric = {
        metric.pk: _means_on_own_scale(metric, scores[metric.pk]) for metric in found.metrics if len(scores[metric.pk])
    }
    rows: list[dict[str, Any]] = [
        {
            "system": system,
            "people": _of_people(found, system, float(people[system].mean())),
            "metrics": [{"metric": pk, "mean": means[system]} for pk, means in by_metric.items() if system in means],
        }
        for system in people.columns
    ]
    return sorted(rows, key=lambda row: (-row["people"]["estimate"], row["system"]))


def _of_people(found: BesidePeople, system: str, mean: float) -> dict[str, Any]:
    if found.kind == "preferences":
        # The share of comparisons that the system won depends on its opponents, so it has no interval.
        return {"estimate": mean, "low": None, "high": None}
    from analysis.stats import clusters

    own = found.people[found.people["system"] == system]
    estimate = clusters.mean_of_population(
        own["value"],
        own["annotator"],
        own[SECOND_SAMPLE],
        population="people_and_prompts",
        bounds=(0, 1),
        analysis="metrics.people",
        estimand="mean answer",
    )
    interval = estimate.interval
    return {
        "estimate": mean if estimate.estimate is None else estimate.estimate,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "population": population_of(estimate),
    }


def _means_on_own_scale(metric: Metric, scores: "DataFrame") -> dict[str, float]:
    means = scores.groupby("system")["value"].mean()
    if metric.is_lower_better:
        means = 1 - means if metric.scale_low is not None else -means
    if metric.scale_low is not None and metric.scale_high is not None:
        means = metric.scale_low + means * (metric.scale_high - metric.scale_low)
    return {str(system): float(mean) for system, mean in means.items()}


KIND = "compare_metrics"
# Each two metrics are compared by these: one measure of whole systems, one of single outputs.
COMPARED_BY = ("pearson", "segment_tau")
SYSTEM_MEASURES = ("pearson", "spearman", "kendall", "pairwise_accuracy", "soft_pairwise_accuracy")
OUTPUT_MEASURES = ("segment_tau", "tie_calibrated_accuracy")


@dataclass(frozen=True, slots=True)
class ScoredMetric:
    """A metric beside people: tables of prompts by systems, of the systems that both sides scored.

    ``identity``: how results name the metric. Seeds depend on ``fingerprint``. ``item_groups``: the group of each prompt, or the prompt;
    None without groups.
    """

    identity: Mapping[str, Any]
    fingerprint: str
    people: "DataFrame"
    scores: "DataFrame"
    n_scores: int
    item_groups: list[str] | None = None


def request_comparison(study: Study, by, request_token: str | None = None) -> Job:
    """Submit the job that compares metrics with people. Raise PermissionDenied while answers by system are hidden."""
    check_permission_or_404(by, Action.ANALYSE, study)
    check_outcomes_visible(study, counted_origins(study))
    if not metrics_in_use(study).exists():
        raise ActionRefused("The study has no metric and no judge. Upload scores or compute metrics first.")
    if not scored_questions(study):
        raise ActionRefused(
            "No question of this study gives scores. Compare metrics in a study with ratings, a relative scale, two choices, human or machine, or error marks."
        )
    return jobs.submit(KIND, study=study, by=by, request_token=request_token)


def answers_state(study: Study) -> dict[str, Any]:
    """Return what changes when answers that count arrive, are withdrawn or are excluded."""
    own = select(Use.RESULTS, Assignment.objects.filter(study=study), counted_origins(study))
    found = own.aggregate(n=Count("pk"), last=Max("submitted_at"))
    last_exclusion = Exclusion.objects.filter(assignment__study=study).aggregate(last=Max("pk"))["last"]
    last = found["last"]
    return {"assignments": found["n"], "last": last.isoformat() if last else None, "exclusion": last_exclusion}


def metrics_state(study: Study) -> list[list[Any]]:
    """Return what changes when metrics are added, discarded or replaced."""
    return [[metric.fingerprint, metric.file_sha256, metric.question_id] for metric in metrics_in_use(study)]


def latest_comparisons(study: Study) -> list[MetricsComparison]:
    """Return the last comparison of each question, in the order of the questions."""
    own = MetricsComparison.objects.filter(study=study)
    latest = own.order_by().values("question").annotate(last=Max("pk")).values("last")
    rows = own.filter(pk__in=latest).select_related("question__section", "by")
    return list(rows.order_by("question__section__position", "question__position"))


def is_stale(study: Study, comparisons: list[MetricsComparison]) -> bool:
    """Return whether answers or metrics changed after the comparisons were computed."""
    if not comparisons:
        return False
    now = (answers_state(study), metrics_state(study))
    return any((one.answers_state, one.metrics) != now for one in comparisons)


def compare_with_people(
    study: Study, by, progress: Callable[..., None] = lambda done, total, doing="": None, resamples: int = 999
) -> list[MetricsComparison]:
    """Compare each metric in use with people, about each question that gives scores, and store the results together."""
    check_outcomes_visible(study, counted_origins(study))
    state = {"answers_state": answers_state(study), "metrics": metrics_state(study)}
    questions, made = scored_questions(study), []
    progress(0, len(questions), "Reading answers and scores")
    for place, found in enumerate(read_beside_people(study, questions)):
        question = found.question
        progress(place, len(questions), f"Comparing metrics with people about “{question.key[:40]}”")
        result = compare_question(found, resamples)
        made.append(
            MetricsComparison(
                study=study, question=question, by=by, n_answers=len(found.people), result=result, **state
            )
        )
    progress(len(questions), len(questions), "Storing")
    with transaction.atomic():
        MetricsComparison.objects.bulk_create(made)
    return made


def people_table(answers: "DataFrame", kind: str) -> "DataFrame":
    """Return the mean of the people's answers, of prompts by systems. Of preferences: the share of comparisons that a system won."""
    rows = _of_both_sides(answers, "system", "other") if kind == "preferences" else answers
    return score_table(rows, sorted(rows["system"].unique()), sorted(rows["prompt"].unique()))


def groups_of_prompts(answers: "DataFrame", prompts: Iterable[str]) -> list[str] | None:
    """Return the group of each prompt, or the prompt if it is alone; None without groups."""
    if not has_groups(answers):
        return None
    known = dict(zip(answers["prompt"], answers[SECOND_SAMPLE], strict=True))
    return [known.get(prompt, prompt) for prompt in prompts]


def metric_rows(scores: "DataFrame", pair_scores: "DataFrame") -> "DataFrame":
    """Return the scores of one metric. Verdicts on pairs become shares of won pairs."""
    if not scores.empty:
        return scores
    return _of_both_sides(pair_scores.rename(columns={"first": "system"}), "system", "second")


def _of_both_sides(rows: "DataFrame", system: str, other: str) -> "DataFrame":
    import pandas as pd

    turned = rows.assign(**{system: rows[other], other: rows[system], "value": 1 - rows["value"]})
    return pd.concat([rows, turned], ignore_index=True)


def compare_question(found: BesidePeople, resamples: int = 999) -> dict[str, Any]:
    """Return the agreement of each metric with people about a question, and the comparison of each two metrics.

    The seeds depend on the data only, so that equal data give equal numbers.
    """
    from analysis.stats.seeds import seed_hex

    base: dict[str, Any] = {
        "question": found.question.key,
        "criterion": found.question.criterion,
        "kind": found.kind,
        "n_answers": len(found.people),
        "n_annotators": int(found.people["annotator"].nunique()),
        "is_simulated": is_simulated(found.study),
        "resamples": resamples,
    }
    if found.people.empty:
        reason = "people have not answered this question yet"
        return base | {"status": "no_data", "reason": reason, "metrics": [], "comparisons": []}
    people = people_table(found.people, found.kind)
    seed = seed_hex(str(found.study.code), "metrics", found.question.key, _values(people))
    groups = groups_of_prompts(found.people, people.index)
    scored, rows_of = [], {}
    for metric in found.metrics:
        own_rows = [rows[rows["metric"] == metric.pk] for rows in (found.scores, found.pair_scores)]
        rows_of[metric.pk] = metric_rows(*own_rows)
        scores = score_table(rows_of[metric.pk], list(people.columns), list(people.index))
        scored.append(scored_metric(_identity(metric), metric.fingerprint, people, scores, groups))
    return base | {
        "status": "ok",
        "reason": "",
        "seed": seed,
        "n_systems": people.shape[1],
        "n_prompts": people.shape[0],
        **({} if groups is None else {"n_groups": len(set(groups)), **noun_of_groups(group_noun(groups))}),
        "systems": system_table(found, people, rows_of),
        "metrics": [_agreement(one, seed, resamples) for one in scored],
        "comparisons": [row for name in COMPARED_BY for row in compare_each_two(people, scored, name, seed, resamples)],
    }


def scored_metric(
    identity: Mapping[str, Any],
    fingerprint: str,
    people: "DataFrame",
    scores: "DataFrame",
    item_groups: list[str] | None = None,
) -> ScoredMetric:
    """Return a metric beside people. Both tables have the same prompts and systems; what one side did not score is left out."""
    is_shared = people.notna() & scores.notna()
    systems = list(people.columns[is_shared.any()])
    shared = people.where(is_shared)[systems], scores.where(is_shared)[systems]
    return ScoredMetric(identity, fingerprint, *shared, int(is_shared.sum().sum()), item_groups)


def system_means(one: ScoredMetric) -> list[dict[str, Any]]:
    """Return the mean scores of each system by people and by the metric, over the prompts that both scored."""
    return [
        {
            "system": system,
            "people": float(one.people[system].mean()),
            "metric": float(one.scores[system].mean()),
            "n": int(one.people[system].count()),
        }
        for system in one.people.columns
    ]


def _values(table: "DataFrame") -> dict[str, Any]:
    return {"systems": list(table.columns), "prompts": list(table.index), "values": table.to_numpy()}


def _identity(metric: Metric) -> dict[str, Any]:
    names = {"metric": metric.pk, "name": metric.name, "version": metric.version, "kind": metric.kind}
    return names | {"is_lower_better": metric.is_lower_better}


def _agreement(one: ScoredMetric, seed: str, resamples: int) -> dict[str, Any]:
    from analysis.stats import metrics
    from analysis.stats.seeds import seeded_generator

    def rng(measure: str) -> "np.random.Generator":
        return seeded_generator(seed, one.fingerprint, measure, _values(one.scores))

    people, scores = one.people.to_numpy(), one.scores.to_numpy()
    options: dict[str, Any] = {"resamples": resamples, "item_groups": one.item_groups}
    measures: dict[str, Any] = {}
    if one.n_scores:
        measures |= metrics.system_level_correlations(people, scores, rng=rng("systems"), **options)
        measures["pairwise_accuracy"] = metrics.pairwise_accuracy(people, scores, rng=rng("pairs"), **options)
        measures["soft_pairwise_accuracy"] = metrics.soft_pairwise_accuracy(people, scores, rng=rng("soft"), **options)
        if not _too_many_pairs(people):
            measures["segment_tau"] = metrics.segment_level_kendall_tau(people, scores, rng=rng("outputs"), **options)
            measures["tie_calibrated_accuracy"] = metrics.tie_calibrated_accuracy(
                people, scores, rng=rng("ties"), **options
            )
    reason = "people and the metric scored no output in common" if not one.n_scores else "too many pairs of outputs"
    undefined = {"status": "no_data", "reason": reason, "estimate": None, "low": None, "high": None, "n": 0}
    return dict(one.identity) | {
        "n_outputs": one.n_scores,
        "systems": system_means(one),
        "measures": {
            name: number_fields(measures[name]) if name in measures else dict(undefined)
            for name in (*SYSTEM_MEASURES, *OUTPUT_MEASURES)
        },
    }


def number_fields(estimate: Any) -> dict[str, Any]:
    """Return an estimate as pages need it. Of whole systems: the range over resampled prompts instead of an interval."""
    found: Mapping[str, Any] = estimate.as_dict()
    interval, spread = found["interval"], found["detail"].get("item_range")
    low, high = (interval["low"], interval["high"]) if interval else spread or (None, None)
    return {
        "status": found["status"],
        "reason": found["reason"],
        "estimate": found["estimate"],
        "low": low,
        "high": high,
        "is_interval": interval is not None,
        "n": found["n"],
        "unit": found["unit"],
        "population": population_of(estimate),
        "warnings": [warning["code"] for warning in found["warnings"]],
    }


def _too_many_pairs(table: Any) -> bool:
    from analysis.stats.metrics import MAX_PAIRS

    n, k = table.shape
    return bool(n * k * (k - 1) // 2 > MAX_PAIRS)


def compare_each_two(
    people: "DataFrame", scored: Sequence[ScoredMetric], statistic: str, seed: str, resamples: int
) -> list[dict[str, Any]]:
    """Return the comparison of each two metrics by a measure; Holm adjusts the p-values of one question and measure."""
    from analysis.stats.metric_comparison import compare_metrics
    from analysis.stats.multiplicity import holm
    from analysis.stats.seeds import seeded_generator

    rows = []
    for first, second in combinations((one for one in scored if one.n_scores), 2):
        systems = [name for name in first.people.columns if name in set(second.people.columns)]
        own = people[systems].to_numpy()
        row: dict[str, Any] = {"first": dict(first.identity), "second": dict(second.identity)}
        row |= {"statistic": statistic, "pvalue": None, "pvalue_adjusted": None}
        if not systems or (statistic == "segment_tau" and _too_many_pairs(own)):
            reason = "too many pairs of outputs" if systems else "the two metrics scored no system in common"
            rows.append(row | {"status": "no_data", "reason": reason, "estimate": None, "n": 0})
            continue
        found = compare_metrics(
            own,
            first.scores[systems].to_numpy(),
            second.scores[systems].to_numpy(),
            rng=seeded_generator(seed, statistic, first.fingerprint, second.fingerprint),
            statistic=statistic,
            resamples=resamples,
            item_groups=first.item_groups,
        ).as_dict()
        row |= {name: found[name] for name in ("status", "reason", "estimate", "n")}
        row["population"] = found["settings"]["population"]
        rows.append(row | {"pvalue": found["test"]["pvalue"] if found["test"] else None})
    for row, adjusted in zip(rows, holm([row["pvalue"] for row in rows]), strict=True):
        row["pvalue_adjusted"] = adjusted
    return rows
