"""Compare two submissions by the simultaneous intervals that a snapshot stores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from boards.models import BoardSnapshot
from studies.services.lifecycle import ActionRefused

METHOD = "max_t"
POINTS, RATING_POINTS = "points", "rating points"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The difference of two overall scores, submission minus baseline, in points of 100 or in points of a rating (``unit``).

    ``low`` and ``high`` hold for all pairs of the snapshot's systems at once with probability ``level``. They are None, with
    a reason, if the snapshot has no interval for this pair.
    """

    submission: int
    baseline: int
    snapshot: int
    criterion: str
    estimate: float | None
    low: float | None
    high: float | None
    level: float
    method: str
    unit: str
    systems: int
    reason: str = ""


def stored_differences(
    systems: Sequence[Any], differences: Any, *, unit: str = POINTS, scale: float = 1.0
) -> dict[str, Any] | None:
    """Return the intervals of all pairs as JSON: for each system, its distance from the first, and half widths to those before it.

    ``differences``: the ``SimultaneousDifferences`` of these systems; ``scale`` brings them into the unit. Half widths are enough, because each interval has the
    difference of two distances in its middle; whole tables would be six times as large.
    """
    if differences is None:
        return None
    halves = scale * (differences.high - differences.low) / 2
    return {
        "level": differences.level,
        "method": METHOD,
        "unit": unit,
        "systems": [int(system) for system in systems],
        "from_first": [float(distance) for distance in scale * differences.estimates[:, 0]],
        "half_widths": [
            [float(half) if known else None for half, known in zip(row[:n], decidable[:n], strict=True)]
            for n, (row, decidable) in enumerate(zip(halves, differences.decidable, strict=True))
        ],
    }


def compare_submissions(snapshot: BoardSnapshot, submission: int, baseline: int) -> Comparison:
    """Return the stored comparison of two submissions of a snapshot. Raise ActionRefused if one of them has no row."""
    result = snapshot.result
    scored = {row["submission"] for row in result["rows"]}
    for number in (submission, baseline):
        if number not in scored:
            raise ActionRefused(f"Snapshot {snapshot.number} has no score of submission {number}. Choose a scored one.")
    overall = result["criteria"][0]["key"]
    table = result["tables"][overall]
    stored = table.get("differences") or {"systems": []}
    places = {number: place for place, number in enumerate(stored["systems"])}
    estimate: float | None = None
    half: float | None = None
    reason = table.get("reason", "")
    if submission in places and baseline in places and submission != baseline:
        one, other = places[submission], places[baseline]
        estimate = stored["from_first"][one] - stored["from_first"][other]
        half = stored["half_widths"][max(one, other)][min(one, other)]
        reason = "" if half is not None else "the difference does not vary"
    elif len(places) > 1:
        reason = (
            "no anchor puts both on one scale" if submission != baseline else "a submission has no baseline in itself"
        )
    return Comparison(
        submission=submission,
        baseline=baseline,
        snapshot=snapshot.number,
        criterion=overall,
        estimate=estimate,
        low=None if estimate is None or half is None else estimate - half,
        high=None if estimate is None or half is None else estimate + half,
        level=stored.get("level", result["level"]),
        method=METHOD,
        unit=stored.get("unit", POINTS),
        systems=len(places),
        reason=reason or ("the snapshot has no interval for this pair" if half is None else ""),
    )
