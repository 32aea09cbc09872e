"""The numbers of a snapshot: scores with intervals and rank sets for each criterion, on one scale over all rounds."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from analysis.data.frames import SECOND_SAMPLE
from analysis.metrics.scoring import Criterion, board_kind, find_criteria, is_about_outputs
from analysis.protocols.blocks.populations import group_noun, has_groups, noun_of_groups, population_of
from boards.models import Board

from .preferences import (
    add_preferences,
    audit_of_preferences,
    double_labels,
    paper_studies,
    read_styles,
    sensitivity_of_preferences,
    stored_differences,
)
from .submissions import (
    Samples,
    answer_arrays,
    audit_of_scores,
    better_than_best_before,
    count_in_samples,
    effects_of_days,
    renewed_samples,
    sensitivity_of_first_place,
)

if TYPE_CHECKING:
    import numpy as np
    from pandas import DataFrame

    from analysis.stats.results import Estimate

RESAMPLES = 1999
LEVEL = 0.95
# Of a score: its standard error, the largest possible one before there are data, and what shared annotators do to it.
PRECISION = ("se", "worst_case_se", "worst_case_se_clustered", "design_effect")


def compute_board_result(
    board: Board, rows: "DataFrame", new_in_round: Mapping[int, int], last: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return criteria, rows and blocks of a snapshot, as JSON values.

    ``rows``: those of ``read_board_rows``. ``new_in_round``: the round in which each submission was scored first. ``last``: the result of the last
    snapshot, whose claims stay as they were made.
    """
    from analysis.data.frames import frame_sha256
    from analysis.stats.seeds import seed_hex, seeded_generator

    criteria = find_criteria(board.template)
    samples = renewed_samples(board)
    seed = seed_hex("board", board.slug, board.seed, len(rows), frame_sha256(rows))
    by_number: dict[int, dict[str, Any]] = {}
    tables = {}
    kind = board_kind(board.template)
    styles = read_styles(board) if kind == "preferences" and board.controls_style else None
    for criterion in criteria:
        of_criterion = rows[rows["criterion"] == criterion.key]
        rng = seeded_generator(seed, criterion.key)
        if kind == "preferences":
            tables[criterion.key] = add_preferences(board, criterion, of_criterion, by_number, rng, styles)
        else:
            tables[criterion.key] = _add_scores(board, criterion, of_criterion, by_number, rng, samples)
    overall = criteria[0]
    main = rows[rows["criterion"] == overall.key]
    n_systems = len(by_number)
    ordered = sorted(by_number.values(), key=lambda row: (-_estimate(row, overall.key, n_systems), row["submission"]))
    is_new_prompts = board.population == Board.Population.PROMPTS
    rng = seeded_generator(seed, "checks")
    result = {
        "kind": kind,
        **({} if is_about_outputs(board.template) else {"is_of_stated_chances": True}),
        "level": LEVEL,
        "seed": seed,
        "criteria": [
            {"key": one.key, "label": one.label, "is_overall": one.is_overall, "is_mean": one.is_mean}
            for one in criteria
        ],
        "rows": ordered,
        "tables": tables,
    }
    if kind == "preferences":
        return result | {"audit": audit_of_preferences(main, rng), "sensitivity": sensitivity_of_preferences(main)}
    decided = (last or {}).get("better", ())
    return result | {
        "better": better_than_best_before(main, new_in_round, is_new_prompts, decided, samples),
        "audit": audit_of_scores(main, is_new_prompts, rng, samples),
        "sensitivity": sensitivity_of_first_place(main, samples),
        "days": effects_of_days(main, rng, samples),
        "paper": paper_studies(rows, seeded_generator(seed, "paper")),
        "double_labels": double_labels(main, float(board.double_label_share)),
    }


def _estimate(row: Mapping[str, Any], key: str, n_systems: int) -> float:
    """Return the overall score for sorting. A system without a rank comes after those with one.

    A system that won every comparison has a rank and no score, and comes first if its ranks are those of the upper half.
    """
    score = row["scores"].get(key, {})
    if score.get("estimate") is None:
        is_high = score.get("rank_low") is not None and score["rank_low"] + score["rank_high"] <= n_systems
        return 1e9 if is_high else -1e9
    return score["estimate"] - (0 if score["rank_low"] is not None else 1e6)


def _add_scores(
    board: Board,
    criterion: Criterion,
    rows: "DataFrame",
    by_number: dict[int, dict[str, Any]],
    rng: "np.random.Generator",
    samples: Samples | None,
) -> dict[str, Any]:
    """Add the scores of one criterion to the rows of the systems. Return what concerns all systems."""
    if rows.empty:
        return {"status": "no_data", "reason": "no answer to analyse"}
    is_new_prompts = board.population == Board.Population.PROMPTS
    several = samples is not None or rows["round"].nunique() > 1
    found = _equated(rows, is_new_prompts, rng, samples) if several else _of_one_round(rows, is_new_prompts, rng)
    paper = _paper_scores(rows, rng)
    counts = rows.groupby("system").agg(
        labels=("value", "size"), annotators=("annotator", "nunique"), prompts=("prompt", "nunique")
    )
    for number, score in found["scores"].items():
        row = by_number.setdefault(number, {"submission": number, "scores": {}})
        row["scores"][criterion.key] = {
            **estimate_fields(score),
            "rank_low": None,
            "rank_high": None,
            "is_best": None,
            **found["ranks"].get(number, {}),
            **{name: int(value) for name, value in counts.loc[number].items()},
            "paper": paper[number],
        }
    return {
        "annotators": int(rows["annotator"].nunique()),
        "labels": len(rows),
        "prompts": int(rows["prompt"].nunique()),
        **(
            {"groups": int(rows[SECOND_SAMPLE].nunique())} | noun_of_groups(group_noun(rows[SECOND_SAMPLE]))
            if has_groups(rows)
            else {}
        ),
        **found["table"],
        # Only of the overall score: pairs are many.
        **({"differences": found["differences"]} if criterion.is_overall else {}),
    }


def estimate_fields(estimate: "Estimate") -> dict[str, Any]:
    """Return the fields of an estimate that pages show: a number with its interval, or the reason why there is none."""
    interval, detail = estimate.interval, estimate.detail
    precision = {name: detail[name] for name in PRECISION if detail.get(name) is not None}
    return {
        "estimate": estimate.estimate,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "method": interval.method if interval else "",
        "status": estimate.status,
        "reason": estimate.reason,
        "unit": estimate.unit,
        "n": estimate.n,
        "population": population_of(estimate),
        "warnings": [warning.code for warning in estimate.warnings],
        **precision,
    }


def _rank_fields(ranks: Any) -> dict[int, dict[str, Any]]:
    if ranks.low is None:
        return {}
    return {
        int(system): {"rank_low": ranks.low[place], "rank_high": ranks.high[place], "is_best": ranks.best[place]}
        for place, system in enumerate(ranks.systems)
    }


def _of_one_round(rows: "DataFrame", is_new_prompts: bool, rng: "np.random.Generator") -> dict[str, Any]:
    from analysis.stats import leaderboard

    found = leaderboard.leaderboard(
        *answer_arrays(rows),
        rng=rng,
        level=LEVEL,
        items_sampled=is_new_prompts,
        item_groups=rows[SECOND_SAMPLE].to_numpy(),
        resamples=RESAMPLES,
    )
    ranks = found.ranks
    return {
        "scores": {int(system): score for system, score in zip(ranks.systems, found.scores, strict=True)},
        "ranks": _rank_fields(ranks),
        "differences": stored_differences(ranks.systems, found.differences),
        "table": {"status": ranks.status, "reason": ranks.reason, "equating": None},
    }


def _equated(
    rows: "DataFrame", is_new_prompts: bool, rng: "np.random.Generator", samples: Samples | None
) -> dict[str, Any]:
    from analysis.stats import board_rounds

    counted, sample_of_row = count_in_samples(rows, samples)
    values, systems, prompts, people = answer_arrays(counted)
    found = board_rounds.equated_scores(
        values,
        systems,
        prompts,
        people,
        counted["round"].to_numpy(),
        samples=sample_of_row,
        rng=rng,
        level=LEVEL,
        items_sampled=is_new_prompts,
        item_groups=counted[SECOND_SAMPLE].to_numpy(),
        resamples=RESAMPLES,
    )
    equating = {
        "reference": _round_and_sample(found.reference)["round"],
        "anchors": [int(system) for system in found.anchors],
        "linked": [[_plain(number) for number in group] for group in found.linked],
        "shifts": [
            {**_round_and_sample(number), **estimate_fields(shift)}
            for number, shift in zip(found.rounds, found.shifts, strict=True)
        ],
        "drift": tested_fields(found.drift),
        "anchors_agree": tested_fields(found.anchors_agree),
        "anchor_cells": [
            {
                "submission": int(cell.system),
                **_round_and_sample(cell.round),
                "score": cell.score,
                "se": cell.se,
                "labels": cell.n_answers,
                "annotators": cell.n_annotators,
            }
            for cell in found.anchor_cells
        ],
    }
    if samples is not None:
        equating["offsets"] = [
            {"sample": one.detail["sample"], "systems": one.detail["n_systems"], **tested_fields(one)}
            for one in found.offsets
        ]
    holds_within = {
        int(system): [_plain(number) for number in score.detail.get("holds_within", ())]
        for system, score in zip(found.systems, found.scores, strict=True)
        if score.status != "ok"
    }
    return {
        "scores": {int(system): score for system, score in zip(found.systems, found.scores, strict=True)},
        "ranks": _rank_fields(found.ranks),
        "differences": stored_differences(found.ranks.systems, found.differences),
        "table": {
            "status": found.ranks.status,
            "reason": found.ranks.reason,
            "equating": equating | {"holds_within": {str(number): rounds for number, rounds in holds_within.items()}},
        },
    }


def _round_and_sample(label: Any) -> dict[str, int]:
    """Return the names of a round in results: its number, and on a board with a renewed sample the sample's."""
    return {"round": int(label[0]), "sample": int(label[1])} if isinstance(label, tuple) else {"round": int(label)}


def _plain(label: Any) -> Any:
    return [int(part) for part in label] if isinstance(label, tuple) else int(label)


def tested_fields(estimate: "Estimate") -> dict[str, Any]:
    """Return an estimate with the p-value of its test."""
    return estimate_fields(estimate) | {"pvalue": estimate.pvalue, "test": estimate.test.name if estimate.test else ""}


def _paper_scores(rows: "DataFrame", rng: "np.random.Generator") -> dict[int, dict[str, Any]]:
    """Return the scores as in the paper: the mean of all answers, and the percentile bootstrap over them."""
    from analysis.stats import board_scores

    found = {}
    for system in rows["system"].unique().tolist():
        values, _, prompts, people = answer_arrays(rows[rows["system"] == system])
        score = board_scores.system_score_in_points(
            values, prompts, people, rng=rng, mode="paper", level=LEVEL, resamples=RESAMPLES
        )
        found[int(system)] = estimate_fields(score)
    return found


def expert_scores(rows: "DataFrame", experts: "DataFrame", seed: str) -> list[dict[str, Any]]:
    """Return what experts, and on average the others, say about the outputs that both judged, for each criterion and system.

    The experts' interval is the paper's: it is about these experts, and draws their answers again.
    """
    from analysis.stats.seeds import seeded_generator

    output, found = ["criterion", "system", "prompt"], []
    common = experts[output].drop_duplicates().merge(rows[output].drop_duplicates())
    both, others = experts.merge(common), rows.merge(common)
    for criterion, own in both.groupby("criterion"):
        scores = _paper_scores(own, seeded_generator(seed, "experts", str(criterion)))
        for system in sorted(scores):
            answers = own[own["system"] == system]
            beside = others[(others["criterion"] == criterion) & (others["system"] == system)]
            found.append(
                {
                    "criterion": str(criterion),
                    "submission": system,
                    **{name: scores[system][name] for name in ("estimate", "low", "high")},
                    "crowd": float(100 * beside["value"].mean()),
                    "outputs": int(answers["prompt"].nunique()),
                    "labels": len(answers),
                    "annotators": int(answers["annotator"].nunique()),
                    "rounds": sorted(int(number) for number in answers["round"].unique()),
                }
            )
    return found
