"""The planned comparisons once more, from those alone who answered the newest version of an amended design.

The recommended estimates take all versions together. Whether the amendment moved them is seen beside what they are without the
versions before; nobody is judged by it, so it has no tests and belongs to no family.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from . import apa
from .tables import Table, contrast_of, estimates_of, label_of, table

Envelope = Mapping[str, Any]
NAME = "design.newest"
NOTHING = "nothing could be estimated from the newest version alone"
TITLE = "The result without earlier versions of the design"
# Where protocols without words of their own (``settings["words"]``) say what a planned comparison comes to.
LEADS = {"spa.pairs": "P[x > y]", "rating.superiority": "P(x rated higher)", "choice.preference": "P(x chosen)"}


def is_amended(design_versions: Iterable[Any]) -> bool:
    """Whether answers of more versions of the design than one are there. Missing ones (NaN) are none."""
    return len({version for version in design_versions if version == version}) > 1


def blocks(whole: Sequence[Mapping[str, Any]], newest: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What ``newest`` has for each planned comparison of ``whole``, both the blocks of an analysis as plain JSON; none where
    nothing was planned. ``detail["all_versions"]`` holds the estimate and the n that it stands beside."""
    latest = {_key(name, one): one for name, one in _planned(newest)}
    found = []
    for name, one in _planned(whole):
        words = one["settings"].get("words")
        # Told too where nobody of the newest version was asked, or where their analysis failed (which is among the problems).
        mine = latest.get(_key(name, one)) or {
            **one, "status": "no_data", "reason": NOTHING, "estimate": None, "interval": None, "n": 0, "n_clusters": None, "n_rows": 0,
        }  # fmt: skip
        found.append(
            {
                **mine, "analysis": NAME, "estimand": f"{mine['estimand']}, from those who answered the newest version of the design",
                "test": None, "effect": None, "sensitivity": [], "warnings": [],
                "settings": {"contrast": contrast_of(one), "symbol": words["symbol"] if words else LEADS[name]},
                "detail": {"all_versions": {"estimate": one["estimate"], "n": one["n"]}},
            }
        )  # fmt: skip
    if not found:
        return []
    return [
        {
            "name": NAME, "title": TITLE, "mode": "recommended", "note": "Set beside the whole, not judged: no tests.",
            "estimates": found, "tables": [], "series": [], "verdict": None, "warnings": [],
        }
    ]  # fmt: skip


def _planned(blocks: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Envelope]]:
    """(block's name, estimate) of what the report's sentences are about."""
    for one in blocks:
        for estimate in one["estimates"] if one["mode"] == "recommended" else ():
            is_said = one["name"] in LEADS or estimate["settings"].get("words")
            if is_said and contrast_of(estimate).get("is_planned"):
                yield one["name"], estimate


def _key(name: str, estimate: Envelope) -> tuple[Any, ...]:
    contrast = contrast_of(estimate)
    return name, contrast.get("section"), contrast["key"], estimate["settings"].get("key")


def newest_table(blocks: Sequence[Mapping[str, Any]]) -> Table | None:
    """Each planned comparison from all versions and from the newest alone."""
    rows = [
        {
            "contrast": label_of(contrast_of(one), True), "what": one["settings"]["symbol"],
            "all": one["detail"]["all_versions"]["estimate"], "all_n": one["detail"]["all_versions"]["n"], "newest": one["estimate"],
            "interval": apa.ends_of(one), "n": one["n"], "unit": one["unit"], "reason": one["reason"],
        }
        for one in estimates_of(blocks, NAME)
    ]  # fmt: skip
    columns = (
        "contrast|Comparison|text; what|What|text; all|All versions|fine_number; all_n|n|integer; newest|Newest version alone|fine_number; "
        "interval|95% CI|fine_wide_interval; n|n, newest|integer; unit|n counts|text; reason|Undefined because|text"
    )
    return table("versions", TITLE, columns, rows, "sure") if rows else None
