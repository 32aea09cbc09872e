"""How far each metric of a snapshot agrees with people, and whether one agrees more than another."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.db import transaction

from analysis.metrics import computed
from analysis.metrics.beside_people import output_scores, pair_scores, score_table
from analysis.metrics.comparison import (
    COMPARED_BY,
    compare_each_two,
    groups_of_prompts,
    metric_rows,
    number_fields,
    people_table,
    scored_metric,
    system_means,
)
from analysis.metrics.scoring import criterion_key, find_criteria, is_about_outputs
from analysis.metrics.store import metrics_in_use
from analysis.metrics.texts.built_in import BUILT_IN
from analysis.models import Metric
from analysis.protocols.blocks.populations import group_noun, noun_of_groups
from boards.access import BoardAction, check_permission_or_404
from boards.models import Board, BoardMetricTable, BoardRound, BoardSnapshot, RoundEntry, Submission
from studies.design.serialization import sha256_of
from studies.models import Job, audit
from studies.services import jobs
from studies.services.lifecycle import ActionRefused

from .snapshots import closed_rounds, read_board_rows

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.metric_comparison import MetricTable
    from analysis.stats.results import Estimate


AGREEMENTS = ("pearson", "spearman", "kendall", "corrected", "accuracy")
TOO_MANY_PAIRS = {
    **dict.fromkeys(("estimate", "low", "high")),
    **{"status": "not_applicable", "reason": "there are too many pairs of outputs", "n": 0, "is_interval": False},
}


def agreements_with_people(
    found: "MetricTable",
    people: Any,
    tables: Mapping[str, Any],
    seed: str,
    *,
    resamples: int,
    level: float,
    item_groups: list[str] | None = None,
) -> list[dict[str, Any]]:
    """Return each metric's agreement with people: over systems, and about single outputs for one prompt."""
    import numpy as np

    from analysis.stats import metrics
    from analysis.stats.seeds import seeded_generator

    more = {
        "soft_pairwise_accuracy": metrics.soft_pairwise_accuracy,
        "segment_tau": metrics.segment_level_kendall_tau,
        "tie_calibrated_accuracy": metrics.tie_calibrated_accuracy,
    }
    rows = []
    for one in found.agreements:
        scores = tables[one.metric]
        is_scored = ~np.isnan(scores).all(axis=0)
        n_prompts, n_systems = len(scores), int(is_scored.sum())
        row = {"metric": one.metric, **{name: number_fields(getattr(one, name)) for name in AGREEMENTS}}
        for name, measure in more.items():
            if name != "soft_pairwise_accuracy" and n_prompts * n_systems * (n_systems - 1) // 2 > metrics.MAX_PAIRS:
                row[name] = TOO_MANY_PAIRS
                continue
            rng = seeded_generator(seed, one.metric, name)
            options: dict[str, Any] = {"rng": rng, "resamples": resamples, "item_groups": item_groups}
            if name != "soft_pairwise_accuracy":
                options["level"] = level
            own = measure(people[:, is_scored], scores[:, is_scored], **options)
            row[name] = number_fields(own)
        rows.append(row)
    return rows


def beside_people(
    people: "DataFrame",
    tables: Mapping[str, "DataFrame"],
    facts: Sequence[Mapping[str, Any]],
    seed: str,
    resamples: int,
    item_groups: list[str] | None = None,
) -> dict[str, Any]:
    """Return what people and each metric say about the systems on average, and the comparison of each two metrics.

    The means are those of the correlations: over the prompts that both scored. A metric's mean is turned so that higher is better.
    """
    scored = [
        scored_metric(
            {"metric": one["key"]} | {name: one[name] for name in ("name", "version", "kind", "is_lower_better")},
            one["key"],
            people,
            tables[one["key"]],
            item_groups,
        )
        for one in facts
    ]
    return {
        "means": [
            {
                "metric": own["key"],
                "rows": [
                    {
                        "submission": int(row["system"]),
                        "people": row["people"],
                        "metric": own["points"] * row["metric"],
                        "n": row["n"],
                    }
                    for row in system_means(one)
                ],
            }
            for own, one in zip(facts, scored, strict=True)
        ],
        "comparisons": [row for name in COMPARED_BY for row in compare_each_two(people, scored, name, seed, resamples)],
    }


# Metrics beside people on a board: computed for a snapshot over its closed rounds by a job, and stored.
#
# Reference: Genie (Khashabi et al. 2022), Table 3.


KIND = "board_metrics"
FORMAT = "heval.board-metrics/1"
RESAMPLES = 999
Progress = Callable[..., None]


def newest_table(snapshot: BoardSnapshot) -> BoardMetricTable | None:
    return snapshot.metric_tables.first()


def last_names(board: Board) -> list[str] | None:
    """Return the metrics that were computed last; None if a board has never computed any."""
    last = BoardMetricTable.objects.filter(snapshot__board=board).first()
    return last.names if last else None


def _newest_snapshot(board: Board) -> BoardSnapshot:
    snapshot = board.snapshots.select_related("board__template").first()
    if snapshot is None:
        raise ActionRefused("The board has no results yet. Wait until its first round is closed.")
    return snapshot


def rounds_of_snapshot(snapshot: BoardSnapshot) -> list[BoardRound]:
    """Return the rounds that a snapshot is about. All of them are closed."""
    numbers = [facts["number"] for facts in snapshot.result["rounds"]]
    return list(closed_rounds(snapshot.board).filter(number__in=numbers))


def request_metrics(board: Board, by, names: Sequence[str], request_token: str | None = None) -> Job:
    """Submit the job that computes metrics for the newest snapshot. Raise ActionRefused if this cannot be done."""
    check_permission_or_404(by, BoardAction.RUN, board)
    if not is_about_outputs(board.template):
        raise ActionRefused(
            "Annotators state chances about whole systems, so there is no score of an output beside a metric. Use a board of another protocol."
        )
    snapshot = _newest_snapshot(board)
    if names:
        computed.refuse_unless_computable(board.template, names)
    elif not any(metrics_in_use(one.study).exists() for one in rounds_of_snapshot(snapshot)):
        raise ActionRefused("No metric is chosen. Choose one or more.")
    chosen = list(dict.fromkeys(names))
    return jobs.submit(KIND, by=by, request_token=request_token, board=board.pk, names=chosen)


def compute_metrics_of_submission(submission: Submission, progress: Progress, parts_of: jobs.PartsOf) -> int:
    """Compute metrics of a submission that no round needs to have scored. Return their number.

    The metrics are those that were computed last for the board, or else all built-in ones that are installed.
    """
    board, known = submission.board, computed.available_metrics()
    texts = submission.outputs.filter(media="").values_list("prompt_key", "pk", "text")
    outputs = computed.texts_beside_references(
        board.template, submission.name, {key: (pk, text) for key, pk, text in texts}
    )
    chosen = last_names(board)
    names = [name for name in (BUILT_IN if chosen is None else chosen) if name in known and known[name].is_installed]
    found = computed.score_together(names, outputs, progress, parts_of) if outputs else []
    Submission.objects.filter(pk=submission.pk).update(metrics=found)
    return len(found)


def request_again(snapshot: BoardSnapshot, by) -> Job | None:
    """Submit the job for a new snapshot of a board whose metrics were computed before, with the same metrics."""
    names = last_names(snapshot.board)
    if names is None or newest_table(snapshot) is not None:
        return None
    token = f"{KIND}-{snapshot.pk}"
    return jobs.submit(KIND, by=by, request_token=token, board=snapshot.board_id, names=names)


def compute_metric_table(
    board: Board,
    by,
    names: Sequence[str],
    progress: Progress = lambda done, total, doing="": None,
    resamples: int = RESAMPLES,
    parts_of: jobs.PartsOf = jobs.UnstoredParts,
    record_stored: Callable[[str], None] = lambda label: None,
) -> BoardMetricTable:
    """Compute metrics of the newest snapshot's systems and store them beside the scores by people.

    If nothing has changed since the last time, return the stored table. ``parts_of`` and ``record_stored``: as in ``computed.compute_metrics``.
    """
    from analysis.stats.seeds import canonical_json

    check_permission_or_404(by, BoardAction.RUN, board)
    snapshot = _newest_snapshot(board)
    rounds = rounds_of_snapshot(snapshot)
    for one in rounds:
        _compute_missing(one, by, names, progress, parts_of, record_stored)
    progress(0, 1, "Comparing metrics with people")
    result = _Tables(snapshot, rounds, names, resamples).result()
    sha256 = sha256_of(canonical_json(result))
    with transaction.atomic():
        Board.objects.select_for_update(no_key=True, of=("self",)).get(pk=board.pk)
        last = newest_table(snapshot)
        if last is not None and (last.result_sha256, last.names) == (sha256, list(names)):
            return last
        stored = BoardMetricTable.objects.create(
            snapshot=snapshot, names=list(names), result=result, result_sha256=sha256, by=by
        )
        audit.record("compute metrics of board", by=by, board=board.slug, snapshot=snapshot.number, metrics=list(names))
    stored.refresh_from_db()
    return stored


def _compute_missing(
    one: BoardRound,
    by,
    names: Sequence[str],
    progress: Progress,
    parts_of: jobs.PartsOf,
    record_stored: Callable[[str], None],
) -> None:
    """Compute the chosen metrics of a round's outputs that its study does not have in the version of today."""
    known = computed.available_metrics()
    stored = set(metrics_in_use(one.study).filter(question=None).values_list("name", "version"))
    missing = [name for name in names if (name, known[name].version()) not in stored]
    if missing:
        about = f"round {one.number}"
        computed.compute_metrics(
            one.study,
            by,
            missing,
            lambda done, total, doing="": progress(done, total, f"{doing}, {about}"),
            parts_of,
            lambda label: record_stored(f"{label} of {about}"),
        )


class _Tables:
    """The tables of one snapshot: a metric is one name and version, in whichever rounds' studies it has scores."""

    def __init__(self, snapshot: BoardSnapshot, rounds: Sequence[BoardRound], names: Sequence[str], resamples: int):
        self.snapshot, self.rounds, self.resamples = snapshot, rounds, resamples
        self.criteria = find_criteria(snapshot.board.template)
        self.chosen = {name: metric for name, metric in computed.available_metrics().items() if name in names}
        entries = RoundEntry.objects.filter(round__in=rounds, submission__withdrawn_at=None)
        self.numbers = {
            (study, system): number
            for study, system, number in entries.values_list("round__study", "system__name", "submission__number")
        }
        # By metric and submission. All criteria have the same.
        self.of_all: dict[str, dict[int, float]] = {}
        # By criterion ("" for the output as a whole), then by name and version.
        self.metrics: dict[str, dict[str, list[Metric]]] = {}
        for one in rounds:
            for metric in metrics_in_use(one.study):
                if self._is_shown(metric):
                    about = criterion_key(metric.question, self.criteria) if metric.question else ""
                    self.metrics.setdefault(about, {}).setdefault(str(metric), []).append(metric)

    def _is_shown(self, metric: Metric) -> bool:
        """Return whether the metric was uploaded, or is one of the chosen ones in the version of today."""
        if metric.source == Metric.Source.UPLOAD:
            return True
        own = self.chosen.get(metric.name)
        return own is not None and metric.version == own.version()

    def result(self) -> dict[str, Any]:
        board = self.snapshot.board
        answers = read_board_rows(board)
        answers = answers[answers["round"].isin([one.number for one in self.rounds])]
        texts = self._texts()
        return {
            "format": FORMAT,
            "snapshot": self.snapshot.number,
            "snapshot_sha256": self.snapshot.result_sha256,
            "kind": self.snapshot.result["kind"],
            "level": self.snapshot.result["level"],
            "resamples": self.resamples,
            "tables": [
                self._table(one.key, answers[answers["criterion"] == one.key], texts)
                for one in self.criteria
                if one.is_overall or one.key in self.metrics
            ],
        }

    def _texts(self) -> dict[int, dict[str, tuple[str, list[str]]]]:
        """Return the text and the references of each submission's outputs, by prompt."""
        found: dict[int, dict[str, tuple[str, list[str]]]] = {}
        for one in self.rounds:
            for output in computed.outputs_with_references(one.study):
                if number := self.numbers.get((one.study_id, output.system)):
                    found.setdefault(number, {})[output.prompt] = (output.text, output.references)
        return found

    def _table(
        self, criterion: str, answers: "DataFrame", texts: Mapping[int, Mapping[str, tuple[str, list[str]]]]
    ) -> dict[str, Any]:
        from analysis.stats.metric_comparison import metric_table
        from analysis.stats.seeds import seed_hex, seeded_generator

        result = self.snapshot.result
        people = people_table(answers_in_points(answers, result, criterion), result["kind"])
        scores = {row["submission"]: row["scores"].get(criterion, {}) for row in result["rows"]}
        # A system that has no score on the common scale is not compared: its answers are on a scale of their own.
        systems = [int(number) for number in people.columns if scores.get(number, {}).get("estimate") is not None]
        parts = ("metrics", "rows", "agreements", "paper", "means", "comparisons")
        base: dict[str, Any] = {"criterion": criterion} | {part: [] for part in parts}
        about = {**self.metrics.get("", {}), **self.metrics.get(criterion, {})}
        if not systems or not about:
            reason = "no metric has scores of these outputs" if systems else "no system has a score by people"
            return base | {"status": "no_data", "reason": reason}
        tables, frames, facts = {}, {}, []
        prompts = sorted({*people.index, *(prompt for own in texts.values() for prompt in own)})
        people = people.reindex(index=prompts, columns=systems)
        groups = groups_of_prompts(answers, prompts)
        for key, metrics in sorted(about.items()):
            table = score_table(self._scores(metrics), systems, prompts)
            if table.notna().any(axis=None):
                facts.append(self._facts(key, metrics[0]))
                tables[key], frames[key] = table.to_numpy(), table
        seed = seed_hex("board metrics", self.snapshot.result_sha256, criterion, tables)
        found = metric_table(
            people.to_numpy(),
            tables,
            rng=seeded_generator(seed),
            human_scores=[_estimate(scores[number], result["level"]) for number in systems],
            level=result["level"],
            resamples=self.resamples,
            item_groups=groups,
        )
        of_all = {one["key"]: self._scores_of_all(one["name"], texts) for one in facts if one["is_of_all"]}
        return base | {
            "status": "ok",
            "reason": "",
            **(
                {}
                if groups is None
                else {"n_groups": len(set(groups)), "n_prompts": len(groups)} | noun_of_groups(group_noun(groups))
            ),
            "seed": seed,
            "metrics": facts,
            "rows": _rows(found, systems, scores, facts),
            "agreements": agreements_with_people(
                found,
                people.to_numpy(),
                tables,
                seed,
                resamples=self.resamples,
                level=result["level"],
                item_groups=groups,
            ),
            "paper": _paper_rows(found, systems, scores, facts, of_all),
            **beside_people(people, frames, facts, seed, self.resamples, groups),
        }

    def _scores(self, metrics: Sequence[Metric]) -> "DataFrame":
        """Return the scores that a metric gave in all rounds, with the numbers of submissions as systems."""
        import pandas as pd

        parts = []
        for metric in metrics:
            rows = metric_rows(output_scores([metric]), pair_scores([metric]))
            numbers = {name: number for (study, name), number in self.numbers.items() if study == metric.study_id}
            parts.append(
                rows.assign(system=rows["system"].map(numbers)).dropna(subset=["system"])[["system", "prompt", "value"]]
            )
        return pd.concat(parts, ignore_index=True).astype({"system": int})

    def _facts(self, key: str, metric: Metric) -> dict[str, Any]:
        own = self.chosen.get(metric.name) if metric.source != Metric.Source.UPLOAD else None
        has_scale = metric.scale_low is not None
        return {
            "key": key,
            "name": metric.name,
            "label": own.label if own else metric.name,
            "version": metric.version,
            "kind": metric.kind,
            "source": metric.source,
            # Scores with a scale are turned and lie between 0 and 1; others only change their sign.
            "is_lower_better": metric.is_lower_better and not has_scale,
            "points": own.points if own else (100.0 if has_scale else 1.0),
            "is_of_all": bool(own and own.make_of_all),
        }

    def _scores_of_all(self, name: str, texts: Mapping[int, Mapping[str, tuple[str, list[str]]]]) -> dict[int, float]:
        """Return the score of all texts of each submission together, as papers report it."""
        make = self.chosen[name].make_of_all
        if name not in self.of_all and make is not None:
            score = make()
            self.of_all[name] = {
                number: score([text for text, _ in own.values()], [references for _, references in own.values()])
                for number, own in texts.items()
            }
        return self.of_all[name]


def answers_in_points(answers: "DataFrame", result: Mapping[str, Any], criterion: str) -> "DataFrame":
    """Return the answers in points, without what separates a round from the first one, so that systems of several rounds compare."""
    table = result["tables"].get(criterion, {})
    shifts: dict[int, list[float]] = {}
    for one in (table.get("equating") or {}).get("shifts", ()):
        if one["estimate"] is not None:
            shifts.setdefault(one["round"], []).append(one["estimate"])
    # A round on two samples has a shift for each; its answers are about both.
    of_round = {number: sum(found) / len(found) for number, found in shifts.items()}
    if result["kind"] == "preferences":
        return answers
    return answers.assign(value=100 * answers["value"] - answers["round"].map(of_round).fillna(0.0))


def _estimate(score: Mapping[str, Any], level: float) -> "Estimate":
    """Return the stored score of a system as an estimate."""
    from analysis.stats.results import Estimate, Interval

    low, high = score.get("low"), score.get("high")
    return Estimate(
        analysis="board.score",
        estimand="score of the system on the board",
        unit=score.get("unit", ""),
        n=score.get("n", 0),
        status=score["status"],
        reason=score["reason"],
        estimate=score["estimate"],
        interval=None if low is None or high is None else Interval(level, low, high, score.get("method", "")),
    )


def _number(estimate: "Estimate", facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return a metric's score on its own scale: in points, and not turned."""
    found = number_fields(estimate)
    factor = facts["points"] * (-1 if facts["is_lower_better"] else 1)
    ends = [None if found[name] is None else factor * found[name] for name in ("low", "high")]
    if facts["is_lower_better"]:
        ends.reverse()
    value = found["estimate"]
    return found | {"estimate": None if value is None else factor * value, "low": ends[0], "high": ends[1]}


def _rows(
    found: "MetricTable",
    systems: Sequence[int],
    scores: Mapping[int, Mapping[str, Any]],
    facts: Sequence[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    names = ("estimate", "low", "high", "status", "reason", "unit", "n", "rank_low", "rank_high")
    return [
        {
            "submission": systems[row.system],
            "human": {name: scores[systems[row.system]].get(name) for name in names},
            "metrics": {one["key"]: _number(row.metrics[one["key"]], one) for one in facts},
            "best": list(row.best),
        }
        for row in found.rows
    ]


def _paper_rows(
    found: "MetricTable",
    systems: Sequence[int],
    scores: Mapping[int, Mapping[str, Any]],
    facts: Sequence[Mapping[str, Any]],
    of_all: Mapping[str, Mapping[int, float]],
) -> list[dict[str, Any]]:
    """Return the rows of the paper's Table 3: the people's score with its percentile interval, and one number of each metric.

    ``bold``: as in the paper, the highest number of a column, and of the people's column each score whose interval meets that of the highest.
    """
    rows: list[dict[str, Any]] = []
    for one_row in found.rows:
        number = systems[one_row.system]
        own = {one["key"]: _number(one_row.metrics[one["key"]], one)["estimate"] for one in facts}
        own |= {key: by_system.get(number) for key, by_system in of_all.items()}
        human = scores[number].get("paper") or {}
        rows.append(
            {
                "submission": number,
                "human": {name: human.get(name) for name in ("estimate", "low", "high", "n")},
                "metrics": own,
                "bold": [],
            }
        )
    rows.sort(key=lambda row: (row["human"]["estimate"] is None, -(row["human"]["estimate"] or 0), row["submission"]))
    for one in facts:
        key, best = one["key"], min if one["is_lower_better"] else max
        known = [row["metrics"][key] for row in rows if row["metrics"][key] is not None]
        for row in rows:
            # Equal numbers show no best one.
            if len(set(known)) > 1 and row["metrics"][key] == best(known):
                row["bold"].append(key)
    first = rows[0]["human"]
    for row in rows:
        high = row["human"]["high"]
        if row["human"] is first or (high is not None and first["low"] is not None and high >= first["low"]):
            row["bold"].append("human")
    return rows
