"""What a report decides about each planned comparison, for programs: yes, no, or open."""

from collections.abc import Mapping
from typing import Any

from analysis.protocols.families import study_claims
from studies.services.lifecycle import FieldsRefused
from studies.stimuli.texts import advice_on_unknown_name

YES, NO, OPEN = "yes", "no", "open"
OPPOSITE = {YES: NO, NO: YES, OPEN: OPEN}
# A claim in words, by its hypothesis. Only a difference can also be asked the other way round.
WORDS = {
    "difference": "{x} beats {y}",
    "noninferiority": "{x} is not worse than {y}",
    "superiority_by_margin": "{x} beats {y} by the margin",
}


def planned_claims_of(study: Any) -> list[dict[str, Any]]:
    """Return the claims of a study's design, as its report will name them."""
    planned = [compared for block in study_claims(study).values() for compared in block]
    rows = (_named(one.subject.x or one.x, one.subject.y or one.y, one.subject.note, one.hypothesis) for one in planned)
    return list({row["claim"]: row for row in rows}.values())


def verdicts_of(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the verdict about each planned comparison of a stored report, in its order."""
    verdicts = []
    for conclusion in result["conclusions"]:
        claimed = conclusion["claimed"]
        verdicts.append(
            _named(conclusion["x"], conclusion["y"], conclusion["about"], claimed["hypothesis"])
            | {
                "role": conclusion["role"],
                "verdict": _by_side(conclusion["side"])
                if claimed["hypothesis"] == "difference"
                else _by_limit(claimed),
                "is_equivalent": conclusion["side"] == "~",
                "pvalue": claimed["pvalue"],
                "sentence": conclusion["claim"],
                "numbers": conclusion["text"],
                "warnings": [warning["text"] for warning in conclusion["warnings"]],
            }
        )
    return verdicts


def _named(x: str, y: str, about: str, hypothesis: str) -> dict[str, Any]:
    words = WORDS[hypothesis].format(x=x, y=y)
    return {
        "claim": f"{words} on {about}" if about else words,
        "x": x,
        "y": y,
        "about": about,
        "hypothesis": hypothesis,
    }


def _by_side(side: str) -> str:
    return {">": YES, "<": NO, "~": NO}.get(side, OPEN)


def _by_limit(claimed: Mapping[str, Any]) -> str:
    """Return whether x is shown to be on the good side of the limit, on the bad side, or neither."""
    limit = claimed["limit"]
    good, bad = (
        claimed["above"] is not None and claimed["above"] >= limit,
        claimed["below"] is not None and claimed["below"] <= limit,
    )
    if claimed["is_lower_better"]:
        good, bad = bad, good
    return YES if good else NO if bad else OPEN


def verdict_of(verdicts: list[dict[str, Any]], claim: str) -> dict[str, Any]:
    """Return the verdict about a claim in words, such as "new beats old" or "new beats old on fluency". Raise FieldsRefused."""
    one = find_claim(verdicts, claim)
    return one | {"verdict": _turned(one)} if one.pop("is_turned") else one


def find_claim(claims: list[dict[str, Any]], claim: str) -> dict[str, Any]:
    """Return the one of these that is named so, and whether it was turned round to get this name. Raise FieldsRefused."""
    by_words: dict[str, list[dict[str, Any]]] = {}
    for one in claims:
        ways = [one | {"is_turned": False}]
        if one["hypothesis"] == "difference":
            ways.append(one | _named(one["y"], one["x"], one["about"], one["hypothesis"]) | {"is_turned": True})
        for way in ways:
            for words in {way["claim"], way["claim"].removesuffix(f" on {way['about']}")}:
                by_words.setdefault(words, []).append(way)
    wanted = " ".join(claim.split())
    found = [way for words, ways in by_words.items() if words.casefold() == wanted.casefold() for way in ways]
    if len(found) == 1:
        return found[0]
    listed = "; ".join(f"“{one['claim']}”" for one in found or claims[:20])
    if found:
        raise FieldsRefused({"claim": f"Several planned comparisons are named so. Name one of them whole: {listed}."})
    if not claims:
        raise FieldsRefused({"claim": "The study has no planned comparison, so it has no claim. Ask without one."})
    advice = advice_on_unknown_name(wanted, by_words)
    raise FieldsRefused({"claim": f"No planned comparison has this claim. {advice} The claims are: {listed}."})


def _turned(one: Mapping[str, Any]) -> str:
    """Return the verdict about the opposite claim. Two systems that are shown to be equally good do not beat each other."""
    return NO if one["is_equivalent"] else OPPOSITE[one["verdict"]]
