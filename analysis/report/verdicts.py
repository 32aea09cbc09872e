"""What a report decides about each planned comparison, for programs: yes, no, or open."""

from collections.abc import Mapping
from typing import Any

from studies.services.lifecycle import FieldsRefused

YES, NO, OPEN = "yes", "no", "open"
OPPOSITE = {YES: NO, NO: YES, OPEN: OPEN}
# A claim in words, by its hypothesis. Only a difference can also be asked the other way round.
WORDS = {
    "difference": "{x} beats {y}",
    "noninferiority": "{x} is not worse than {y}",
    "superiority_by_margin": "{x} beats {y} by the margin",
}


def verdicts_of(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the verdict about each planned comparison of a stored report, in its order."""
    verdicts = []
    for conclusion in result["conclusions"]:
        claimed = conclusion["claimed"]
        words = WORDS[claimed["hypothesis"]].format(x=conclusion["x"], y=conclusion["y"])
        about = f" on {conclusion['about']}" if conclusion["about"] else ""
        verdicts.append(
            {
                "claim": f"{words}{about}",
                "x": conclusion["x"],
                "y": conclusion["y"],
                "about": conclusion["about"],
                "hypothesis": claimed["hypothesis"],
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
    wanted = " ".join(claim.split()).casefold()
    found = []
    for one in verdicts:
        reversed_words = WORDS["difference"].format(x=one["y"], y=one["x"])
        about = f" on {one['about']}" if one["about"] else ""
        if wanted in (one["claim"].casefold(), one["claim"].removesuffix(about).casefold()):
            found.append(one)
        elif one["hypothesis"] == "difference" and wanted in (
            reversed_words.casefold(),
            f"{reversed_words}{about}".casefold(),
        ):
            turned = {"claim": f"{reversed_words}{about}", "x": one["y"], "y": one["x"], "verdict": _turned(one)}
            found.append(one | turned)
    if len(found) == 1:
        return found[0]
    listed = "; ".join(f"“{one['claim']}”" for one in found or verdicts[:20]) or "none"
    if found:
        raise FieldsRefused({"claim": f"Several planned comparisons are named so. Name one of them whole: {listed}."})
    raise FieldsRefused({"claim": f"No planned comparison has this claim. The claims are: {listed}."})


def _turned(one: Mapping[str, Any]) -> str:
    """Return the verdict about the opposite claim. Two systems that are shown to be equally good do not beat each other."""
    return NO if one["is_equivalent"] else OPPOSITE[one["verdict"]]
