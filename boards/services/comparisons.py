"""Compare two submissions by the simultaneous intervals that a snapshot stores."""

from dataclasses import dataclass
from typing import Any

from boards.models import BoardSnapshot
from studies.services.lifecycle import ActionRefused

METHOD = "max_t"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The difference of two overall scores, submission minus baseline, in points.

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
    systems: int
    reason: str = ""


def stored_differences(differences: Any) -> dict[str, Any] | None:
    """Return the intervals of all pairs as JSON: scores, and for each system the half widths to those before it.

    ``differences``: the ``SimultaneousDifferences`` of a leaderboard, in the order of its systems. Half widths are enough,
    because each interval has the difference of the two scores in its middle. This is a sixth of three whole tables.
    """
    if differences is None:
        return None
    halves = (differences.high - differences.low) / 2
    return {
        "level": differences.level,
        "method": METHOD,
        "half_widths": [
            [float(half) if decidable else None for half, decidable in zip(row[:n], known[:n], strict=True)]
            for n, (row, known) in enumerate(zip(halves, differences.decidable, strict=True))
        ],
        # The first column holds every score's distance from the first system.
        "from_first": [float(distance) for distance in differences.estimates[:, 0]],
    }


def compare_submissions(snapshot: BoardSnapshot, submission: int, baseline: int) -> Comparison:
    """Return the stored comparison of two submissions of a snapshot. Raise ActionRefused if one of them has no row."""
    result = snapshot.result
    overall = result["criteria"][0]["key"]
    table = result["tables"][overall]
    stored = table.get("differences")
    places = {number: place for place, number in enumerate(table.get("systems", []))}
    scored = {row["submission"] for row in result["rows"]}
    for number in (submission, baseline):
        if number not in scored:
            raise ActionRefused(f"Snapshot {snapshot.number} has no score of submission {number}. Choose a scored one.")
    common = {
        "submission": submission,
        "baseline": baseline,
        "snapshot": snapshot.number,
        "criterion": overall,
        "level": result["level"],
        "method": METHOD,
        "systems": len(places),
    }
    if not stored or submission not in places or baseline not in places or submission == baseline:
        reason = table.get("reason") or "the snapshot has no interval for this pair"
        return Comparison(**common, estimate=None, low=None, high=None, reason=reason)
    one, other = places[submission], places[baseline]
    estimate = stored["from_first"][one] - stored["from_first"][other]
    half = stored["half_widths"][max(one, other)][min(one, other)]
    if half is None:
        return Comparison(**common, estimate=estimate, low=None, high=None, reason="the difference does not vary")
    return Comparison(**common, estimate=estimate, low=estimate - half, high=estimate + half)
