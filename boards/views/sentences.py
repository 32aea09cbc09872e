"""Sentences about a snapshot: what its scores are about, and what checks of the rounds have found."""

from collections.abc import Mapping, Sequence
from typing import Any

from boards.models import Board

PROBES = {
    "first_shown": "Annotators favour the output that is shown first.",
    "neutral_share": "Many answers are ties or neutral.",
    "cycles": "Preferences go in circles.",
    "heavy_voters": "Few people gave a large share of the labels.",
    "separation": "Few systems can be told apart.",
    "drift": "Scores changed over time.",
}


def counted(n: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun.

    >>> counted(1, "round"), counted(1200, "label"), counted(3, "person", "people")
    ('1 round', '1,200 labels', '3 people')
    """
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def population_sentence(result: Mapping[str, Any]) -> str:
    sample = result["sample"]
    n = counted(sample["prompts"], "prompt")
    if result["population"] == Board.Population.SUBSAMPLE:
        return f"Scores hold for people like these, and for exactly this subsample of {n}, drawn with seed {sample['seed']}."
    return f"Scores hold for people and prompts like these: {n}, drawn with seed {sample['seed']}."


def labels_sentence(result: Mapping[str, Any]) -> str:
    """Return how much data the snapshot has, and from when."""
    rounds = result["rounds"]
    overall = result["tables"].get(result["criteria"][0]["key"], {})
    labels = counted(overall.get("labels", 0), "label")
    people = counted(overall.get("annotators", 0), "annotator")
    dates = sorted(date for facts in rounds for date in (facts.get("launched"), facts.get("closed")) if date)
    period = f", from {dates[0]} to {dates[-1]}" if dates else ""
    return f"{labels} by {people} in {counted(len(rounds), 'round')}{period}."


def check_sentences(result: Mapping[str, Any]) -> list[str]:
    """Return what the stored checks say. A snapshot without a check has no sentence about it."""
    return [*_drift(result.get("equating")), *_audit(result.get("audit")), *_sensitivity(result.get("sensitivity"))]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _drift(equating: Any) -> list[str]:
    drift = _mapping(_mapping(equating).get("drift"))
    test = _mapping(drift.get("test"))
    pvalue = test.get("pvalue")
    if pvalue is None:
        reason = drift.get("reason") or _mapping(equating).get("reason")
        return [f"Scores of different rounds are not on one scale: {reason}."] if reason else []
    p = "p < .001" if pvalue < 0.001 else f"p = {pvalue:.3f}".replace("0.", ".", 1)
    if pvalue <= 0.05:
        return [f"Anchors scored differently in different rounds ({p}). Equating takes this out of the scores."]
    return [f"Anchors show no difference between rounds ({p})."]


def _audit(audit: Any) -> list[str]:
    probes: Sequence[Any] = (
        [*audit.values()] if isinstance(audit, Mapping) else audit if isinstance(audit, list) else []
    )
    if not probes:
        return []
    fired = [_mapping(probe).get("name", "") for probe in probes if _mapping(probe).get("fires")]
    if not fired:
        return ["The audit of this snapshot found nothing."]
    return [PROBES.get(name, f"The audit found a problem: {name.replace('_', ' ')}.") for name in fired]


def _sensitivity(sensitivity: Any) -> list[str]:
    facts = _mapping(sensitivity)
    answers, people = facts.get("answers"), facts.get("annotators")
    found = [counted(n, noun) for n, noun in ((answers, "label"), (people, "annotator")) if isinstance(n, int)]
    return [f"The first place would change without {' or without '.join(found)}."] if found else []


def reasons(result: Mapping[str, Any]) -> list[str]:
    """Return why scores have no interval or no rank, each reason once."""
    found: dict[str, None] = {}
    for table in result["tables"].values():
        if table.get("reason"):
            found[table["reason"]] = None
    for row in result["rows"]:
        for score in row["scores"].values():
            if score.get("reason"):
                found[score["reason"]] = None
    return list(found)
