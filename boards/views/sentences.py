"""Sentences about a snapshot: what its scores are about, and what checks of the rounds have found."""

from collections.abc import Mapping, Sequence
from typing import Any

from analysis.protocols.blocks import cells
from boards.models import Board

from .table import signed

ALPHA = 0.05
# What a board's probe has found, by its name.
PROBES = {
    "position": "Annotators favour the output that is shown first.",
    "first_shown": "Annotators favour the output that is shown first.",
    "neutral_share": "Many answers are ties or neutral.",
    "cycles": "Preferences go in circles.",
    "heavy_voter": "One annotator gave a large share of the labels.",
    "separation": "Few systems are shown to differ.",
    "drift": "Scores of the same systems differ between rounds.",
}


def counted(n: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun.

    >>> counted(1, "round"), counted(1200, "label"), counted(3, "person", "people")
    ('1 round', '1,200 labels', '3 people')
    """
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def population_sentence(result: Mapping[str, Any]) -> str:
    """Return what the scores are about: people, and prompts or groups of them."""
    from analysis.stats.cluster_variances import TOO_FEW_ITEMS

    sample = result["sample"]
    n = counted(sample["prompts"], "prompt")
    n_groups = result["tables"].get(result["criteria"][0]["key"], {}).get("groups")
    if n_groups:
        n = f"{n} in {counted(n_groups, 'group')}"
    if result["population"] == Board.Population.SUBSAMPLE:
        return f"Scores hold for people like these, and for exactly this subsample of {n}, drawn with seed {sample['seed']}."
    if n_groups and n_groups < TOO_FEW_ITEMS:
        return f"Scores hold for people like these, and for exactly these {n}: prompts like them need {TOO_FEW_ITEMS} groups."
    sampled = "groups of prompts" if n_groups else "prompts"
    return f"Scores hold for people and {sampled} like these: {n}, drawn with seed {sample['seed']}."


def labels_sentence(result: Mapping[str, Any]) -> str:
    """Return how much data the snapshot has, and from when."""
    rounds = result["rounds"]
    overall = result["tables"].get(result["criteria"][0]["key"], {})
    labels = counted(overall.get("labels", 0), "label")
    people = counted(overall.get("annotators", 0), "annotator")
    dates = sorted(date for facts in rounds for date in (facts.get("launched"), facts.get("closed")) if date)
    period = ""
    if dates:
        period = f", on {dates[0]}" if dates[0] == dates[-1] else f", from {dates[0]} to {dates[-1]}"
    return f"{labels} by {people} in {counted(len(rounds), 'round')}{period}."


def check_sentences(result: Mapping[str, Any]) -> list[str]:
    """Return what the stored checks say about the overall scores. A snapshot without a check has no sentence about it."""
    overall = result["tables"].get(result["criteria"][0]["key"], {})
    return [
        *_equating(overall.get("equating")),
        *_outside(result),
        *_style(overall.get("covariates")),
        *(["Each pair of systems counts alike, however often people saw it."] if overall.get("is_balanced") else []),
        *_audit(result.get("audit")),
        *_first_place(result.get("sensitivity")),
    ]


def pvalue_text(pvalue: float) -> str:
    """Return a p-value in APA style.

    >>> pvalue_text(0.0004), pvalue_text(0.042), pvalue_text(0.0502), pvalue_text(1)
    ('p < .001', 'p = .042', 'p = .0502', 'p > .999')
    """
    return cells.format_equation("p", cells.format_pvalue(pvalue, ALPHA))


def _round_text(label: Any) -> str:
    """Return the name of a round, with its sample on a board with renewed samples."""
    return f"{label[0]} (sample {label[1]})" if isinstance(label, list) else str(label)


def _offset(one: Mapping[str, Any]) -> str:
    """Return how a renewed sample is linked with the one before it.

    >>> _offset({"sample": 2, "systems": 3, "status": "ok", "estimate": 4.25, "low": 1.0, "high": 7.5})
    'Sample 2 gives the same systems 4.2 points more than sample 1 (interval 1.0 to 7.5). The scores shown are corrected for this.'
    """
    if one.get("low") is None:
        return (
            f"Scores on sample {one['sample']} cannot be compared with earlier ones: {one.get('reason') or 'no link'}."
        )
    digits = cells.digits_to_distinguish([one["low"], one["high"]], 1, [0.0])
    numbers = f"(interval {signed(one['low'], digits)} to {signed(one['high'], digits)}). The scores shown are corrected for this."
    if one["low"] <= 0 <= one["high"]:
        return (
            f"It remains open whether sample {one['sample']} gives the same systems more points than sample {one['sample'] - 1}, or less: "
            f"{signed(one['estimate'])} {numbers}"
        )
    more = "more" if one["estimate"] >= 0 else "less"
    return (
        f"Sample {one['sample']} gives the same systems {abs(one['estimate']):.1f} points {more} than sample {one['sample'] - 1} "
        f"{numbers}"
    )


def sample_sentences(result: Mapping[str, Any]) -> list[str]:
    """Return the versions of the sample; none on a board whose sample was never renewed."""
    return [
        f"Sample {one['number']} ({one['date']}, from round {one['first_round']}): {counted(one['prompts'], 'prompt')}, "
        + (f"{one['renewed']} of them new, " if one["renewed"] else "")
        + f"drawn with seed {one['seed']}."
        for one in result.get("samples", ())
    ]


def _outside(result: Mapping[str, Any]) -> list[str]:
    """Return that corrected scores need not be between 0 and 100, if a score or an end of its interval is not."""
    key = result["criteria"][0]["key"]
    scores = [row["scores"].get(key, {}) for row in result["rows"]]
    ends = [score.get(name) for score in scores for name in ("estimate", "low", "high")]
    if all(end is None or 0 <= end <= 100 for end in ends):
        return []
    return [
        "The correction for differences between rounds adds the same number of points to all scores of a round, so that a score or its "
        "interval can lie outside 0 to 100."
    ]


def _equating(equating: Mapping[str, Any] | None) -> list[str]:
    if not equating:
        return []
    groups = equating.get("linked", [])
    found = []
    if len(groups) > 1:
        rounds = "; ".join(", ".join(map(_round_text, group)) for group in groups)
        found.append(f"No anchor links these groups of rounds, so scores hold only within each: {rounds}.")
    found += [_offset(one) for one in equating.get("offsets", ())]
    drift, anchors = equating.get("drift", {}), equating.get("anchors_agree", {})
    if drift.get("pvalue") is not None:
        p = pvalue_text(drift["pvalue"])
        if drift["pvalue"] <= ALPHA:
            found.append(
                f"Anchors scored differently in different rounds ({p}). The scores shown are corrected for this."
            )
        else:
            found.append(f"It is not shown that anchors differ between rounds ({p}).")
    if anchors.get("pvalue") is not None and anchors["pvalue"] <= ALPHA:
        p = pvalue_text(anchors["pvalue"])
        found.append(f"Anchors did not move alike ({p}), so the correction for rounds is uncertain.")
    return found


def _style(covariates: Sequence[Mapping[str, Any]] | None) -> list[str]:
    if not covariates:
        return []
    found = []
    for one in covariates:
        p = f" ({pvalue_text(one['pvalue'])})" if one.get("pvalue") is not None else ""
        found.append(f"{one['name']}{p}")
    return [f"Ratings are corrected for the style of outputs: {', '.join(found)}."]


def _audit(audit: Sequence[Mapping[str, Any]] | None) -> list[str]:
    if not audit:
        return []
    fired = [probe["name"] for probe in audit if probe["fires"]]
    # Drift has a sentence with its correction.
    found = [PROBES.get(name, f"The audit found a problem: {name}.") for name in fired if name != "drift"]
    return found or ([] if fired else ["The audit of these results found nothing."])


def _first_place(sensitivity: Mapping[str, Any] | None) -> list[str]:
    """Return how little the first place rests on. Only a confirmed removal is named."""
    found = []
    for name, noun in (("answers", "label"), ("people", "annotator")):
        removal = (sensitivity or {}).get(name) or {}
        if removal.get("n") and removal.get("is_confirmed"):
            found.append(f"{counted(removal['n'], noun)} of {removal['total']:,}")
    return [f"Without {' or without '.join(found)}, another system would be first."] if found else []


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
