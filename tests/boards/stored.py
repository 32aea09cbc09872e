"""Boards with snapshots of given numbers, without rounds, for tests of pages."""

import math
from typing import Any

from boards.models import Board, BoardSnapshot, Submission
from boards.services.snapshots import FORMAT
from studies.design.serialization import canonical_json, sha256_of

from . import builders


def score(estimate: float, *, half: float = 3.0, ranks: tuple[int, int] | None = (1, 1), labels: int = 200) -> dict:
    """A score whose interval is a little longer downwards."""
    return {
        "estimate": estimate,
        "low": estimate - 1.1 * half,
        "high": estimate + half,
        "status": "ok",
        "reason": "",
        "rank_low": ranks and ranks[0],
        "rank_high": ranks and ranks[1],
        "is_best": bool(ranks and ranks[0] == 1),
        "from_best": 0.0,
        "from_best_low": None,
        "from_best_high": None,
        "labels": labels,
        "annotators": 40,
        "prompts": 12,
    }


def result(board: Board, scores: dict[int, dict[str, dict]], **more: Any) -> dict[str, Any]:
    """A result of one round. ``scores``: of each submission, by criterion; the best first."""
    criteria = list(next(iter(scores.values())))
    return {
        "format": FORMAT,
        "board": board.slug,
        "population": board.population,
        "sample": {"prompts": len(board.sample_keys), "seed": board.seed, "keys_sha256": "0" * 64},
        "design_sha256": board.design_sha256,
        "is_simulated": False,
        "rounds": [
            {
                "number": 1,
                "study": "0",
                "launched": "2026-01-05",
                "closed": "2026-01-09",
                "annotators": 40,
                "labels": 600,
                "systems": list(scores),
                "cost": "90.00",
                "currency": "USD",
            }
        ],
        "kind": "scores",
        "level": 0.95,
        "seed": "0" * 64,
        "criteria": [
            {"key": key, "label": key, "is_overall": place == 0, "is_mean": False} for place, key in enumerate(criteria)
        ],
        "rows": [
            {"submission": number, "scores": by_criterion, "round": 1, "cost": f"{10 + number}.50"}
            for number, by_criterion in scores.items()
        ],
        "tables": {
            key: {"status": "ok", "reason": "", "annotators": 40, "labels": 600, "prompts": 12, "warnings": []}
            for key in criteria
        },
    } | more


def add_snapshot(board: Board, stored: dict[str, Any]) -> BoardSnapshot:
    snapshot = BoardSnapshot.objects.create(
        board=board,
        number=board.snapshots.count() + 1,
        result=stored,
        result_sha256=sha256_of(canonical_json(stored)),
        n_labels=600,
    )
    snapshot.refresh_from_db()
    return snapshot


def published_board(**columns: Any) -> Board:
    """A public board with a human reference and three submissions, one of them anonymous, and two snapshots."""
    board = builders.open_board(**columns)
    team, _ = builders.team_of(board, "The makers")
    for name, is_anonymous in (("good", False), ("hidden giant", True), ("weak", False)):
        builders.submit(board, team, name, is_anonymous=is_anonymous, url=f"https://example.org/{name.split()[0]}")
    add_snapshot(board, result(board, {1: {"overall": score(90.0), "fluency": score(80.0)}}))
    add_snapshot(
        board,
        result(
            board,
            {
                1: {"overall": score(80.8, half=2.1, ranks=(1, 2)), "fluency": score(70.0)},
                2: {"overall": score(79.0, ranks=(1, 2)), "fluency": score(90.0)},
                3: {"overall": score(60.0, ranks=(3, 3)), "fluency": score(80.0)},
                4: {"overall": score(20.0, ranks=(4, 4)), "fluency": score(10.0)},
            },
        ),
    )
    return board


def large_board(n_systems: int = 200, n_criteria: int = 4, n_snapshots: int = 12, labels: int = 100_000) -> Board:
    """A board with many systems and snapshots, as a board of years may have."""
    board = builders.open_board(slug="large", title="A large board")
    team, _ = builders.team_of(board)
    Submission.objects.bulk_create(
        Submission(
            board=board,
            number=n,
            team=team,
            name=f"system {n}",
            n_outputs=12,
            sha256="0" * 64,
            filename="outputs.jsonl",
        )
        for n in range(2, n_systems + 1)
    )
    for nth in range(n_snapshots):
        add_snapshot(board, result(board, _many_scores(n_systems, n_criteria, labels // n_systems, nth)))
    return board


def _many_scores(n_systems: int, n_criteria: int, labels: int, nth: int) -> dict[int, dict[str, dict]]:
    keys = ["overall", *(f"criterion {n}" for n in range(1, n_criteria))]
    return {
        number: {
            key: score(
                90 - 70 * number / n_systems + math.sin(number + nth + place),
                ranks=(max(number - 4, 1), min(number + 4, n_systems)),
                labels=labels,
            )
            for place, key in enumerate(keys)
        }
        for number in range(1, n_systems + 1)
    }
