"""The table of a snapshot: texts of cells, the order of rows, and sentences about its scores and checks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.protocols.blocks import cells
from boards.models import Board

UNDEFINED = "–"
MINUS = "−"
DEFAULT_ORDER = "rank"
# Begins the name of the order by a criterion.
SCORE = "score-"
# The order by Bradley-Terry ratings.
POINTS = "points"


@dataclass(frozen=True, slots=True)
class Head:
    """``sort``: the value of ``?sort=`` that its link has. ``aria``: how the table is sorted by this column, or ''."""

    text: str
    sort: str
    is_number: bool
    aria: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A system's row as texts. ``may_be_first``: its rank set contains the first rank."""

    number: int
    name: str
    url: str
    team: str
    marks: tuple[str, ...]
    may_be_first: bool
    rank: str
    scores: tuple[str, ...]
    counts: tuple[str, ...]
    scored_in: str


def signed(value: float, digits: int = 1) -> str:
    """Return a number with one digit, or more, and a minus sign.

    >>> signed(-2.25), signed(-0.01), signed(-0.01, 2)
    ('−2.2', '0.0', '−0.01')
    """
    text = f"{value:.{digits}f}"
    return (text if float(text) else text.lstrip("-")).replace("-", MINUS)


def score_text(score: Mapping[str, Any]) -> str:
    """Return a score with the distances to the ends of its interval, which are not equal.

    >>> score_text({"estimate": 80.8, "low": 78.6, "high": 82.9})
    '80.8 +2.1/−2.2'
    >>> score_text({"estimate": 80.8, "low": None, "high": None}), score_text({})
    ('80.8', '–')
    """
    estimate, low, high = (score.get(name) for name in ("estimate", "low", "high"))
    if estimate is None:
        return UNDEFINED
    if low is None or high is None:
        return signed(estimate)
    return f"{signed(estimate)} +{high - estimate:.1f}/{MINUS}{estimate - low:.1f}"


def rating_text(score: Mapping[str, Any]) -> str:
    """Return a Bradley-Terry rating in points, with the distances to the ends of its interval.

    >>> rating_text({"rating": 1071.6, "rating_low": 1050.2, "rating_high": 1092.0}), rating_text({})
    ('1,072 +20/−21', '–')
    """
    rating, low, high = (score.get(name) for name in ("rating", "rating_low", "rating_high"))
    if rating is None:
        return UNDEFINED
    if low is None or high is None:
        return f"{rating:,.0f}"
    return f"{rating:,.0f} +{high - rating:.0f}/{MINUS}{rating - low:.0f}"


def rank_text(score: Mapping[str, Any]) -> str:
    """Return a rank set.

    >>> rank_text({"rank_low": 1, "rank_high": 2}), rank_text({"rank_low": 3, "rank_high": 3}), rank_text({})
    ('1–2', '3', '–')
    """
    low, high = score.get("rank_low"), score.get("rank_high")
    if low is None or high is None:
        return UNDEFINED
    return str(low) if low == high else f"{low}–{high}"


def overall_of(result: Mapping[str, Any], row: Mapping[str, Any]) -> Mapping[str, Any]:
    return row["scores"].get(result["criteria"][0]["key"], {})


def marks_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the words that are shown beside a system's name."""
    names = ("human", "reference", "anchor")
    return tuple(name for name in names if row[f"is_{name}"])


def new_bests(result: Mapping[str, Any]) -> frozenset[int]:
    """Return the submissions that were shown to be better than the best before them."""
    return frozenset(one["submission"] for one in result.get("better") or () if one.get("is_better"))


def as_lines(result: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Return the rows as texts, in the given order."""
    keys = [criterion["key"] for criterion in result["criteria"]]
    rounds = {facts["number"]: facts for facts in result["rounds"]}
    bests = new_bests(result)
    found = []
    for row in rows:
        overall = row["scores"].get(keys[0], {})
        rating = (rating_text(overall),) if has_ratings(result) else ()
        first = rounds.get(row.get("round"), {})
        cost = f"{row['cost']} {first.get('currency', '')}".strip() if row.get("cost") else UNDEFINED
        found.append(
            Line(
                number=row["submission"],
                name=row["name"],
                url=row["url"],
                team=row["team"],
                marks=(*marks_of(row), *(("new best",) if row["submission"] in bests else ())),
                may_be_first=overall.get("rank_low") == 1,
                rank=rank_text(overall),
                scores=(*(score_text(row["scores"].get(key, {})) for key in keys), *rating),
                counts=(_count(overall.get("labels")), _count(overall.get("annotators")), cost),
                scored_in=f"{first['number']} ({first['closed']})" if first else UNDEFINED,
            )
        )
    return found


def has_ratings(result: Mapping[str, Any]) -> bool:
    return result["kind"] == "preferences"


def categories(result: Mapping[str, Any], facts: Mapping[int, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the ratings within each category of prompts: the overall ones, the best first."""
    overall = result["tables"].get(result["criteria"][0]["key"], {})
    return [
        {
            "name": name or "no category",
            "lines": [
                (rank_text(one), facts[one["submission"]]["name"], score_text(one), rating_text(one))
                for one in sorted(ratings, key=lambda one: -one["estimate"])
            ],
        }
        for name, ratings in sorted(overall.get("by_category", {}).items())
    ]


def _count(value: int | None) -> str:
    return UNDEFINED if value is None else f"{value:,}"


def known_orders(result: Mapping[str, Any]) -> frozenset[str]:
    """Return the orders that can be asked for: by each column, and reversed, with a minus before it."""
    return frozenset(sign + key for key, *_ in _columns(result) for sign in ("", "-"))


def sort_rows(result: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], order: str) -> list[Mapping[str, Any]]:
    """Return the rows in a known order. Rows without a value are last in both directions."""
    key = order.removeprefix("-")
    values = [_sort_value(result, key, row) for row in rows]
    if key == DEFAULT_ORDER:
        values = list(range(len(rows)))
    known = sorted(
        (place for place, value in enumerate(values) if value is not None),
        key=lambda place: values[place],
        reverse=_is_descending(order),
    )
    unknown = [place for place, value in enumerate(values) if value is None]
    return [rows[place] for place in (*known, *unknown)]


def _is_descending(order: str) -> bool:
    """Return whether the largest value is first: of scores in their own order, of others in the reversed one."""
    key = order.removeprefix("-")
    return (key.startswith(SCORE) or key == POINTS) != order.startswith("-")


def _sort_value(result: Mapping[str, Any], key: str, row: Mapping[str, Any]) -> Any:
    if key.startswith(SCORE):
        return row["scores"].get(key.removeprefix(SCORE), {}).get("estimate")
    match key:
        case "name" | "team":
            return row[key].casefold() or None
        case "labels" | "annotators":
            return overall_of(result, row).get(key)
        case "points":
            return overall_of(result, row).get("rating")
        case "cost":
            return float(row["cost"]) if row.get("cost") else None
    return row.get(key)


def _columns(result: Mapping[str, Any]) -> list[tuple[str, str, bool]]:
    """Return key, heading, and whether it has numbers, of each column."""
    return [
        ("rank", "Rank set", True),
        ("name", "System", False),
        *((SCORE + one["key"], one["label"].capitalize(), True) for one in result["criteria"]),
        *([(POINTS, "Rating", True)] if has_ratings(result) else []),
        ("team", "Team", False),
        ("labels", "Labels", True),
        ("annotators", "Annotators", True),
        ("cost", "Cost", True),
        ("round", "Round", True),
    ]


def heads(result: Mapping[str, Any], order: str) -> list[Head]:
    """Return the headings of the columns, with the links that sort by them. A second click reverses the order."""
    found = []
    for key, text, is_number in _columns(result):
        is_chosen = order.removeprefix("-") == key
        aria = ("descending" if _is_descending(order) else "ascending") if is_chosen else ""
        found.append(Head(text, f"-{key}" if order == key else key, is_number, aria))
    return found


# Sentences about a snapshot: what its scores are about, and what checks of the rounds have found.


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
    overall = result["tables"].get(result["criteria"][0]["key"], {})
    n_groups, noun = overall.get("groups"), overall.get("group_noun", "group")
    if n_groups:
        n = f"{n} in {counted(n_groups, noun)}"
    if result["population"] == Board.Population.SUBSAMPLE:
        return f"Scores hold for people like these, and for exactly this subsample of {n}, drawn with seed {sample['seed']}."
    if n_groups and n_groups < TOO_FEW_ITEMS:
        return f"Scores hold for people like these, and for exactly these {n}: prompts like them need {TOO_FEW_ITEMS} {noun}s."
    sampled = ("groups of prompts" if noun == "group" else f"{noun}s") if n_groups else "prompts"
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
