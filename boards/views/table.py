"""The table of a snapshot: texts of cells, and the order of rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
