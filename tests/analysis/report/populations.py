"""The intervals of a stored report, and the headings above them."""

from collections.abc import Iterator, Mapping
from typing import Any

BOTH = "people and prompts"
# Tables that are made from the estimates of several blocks: those that name the population of each row, and those with a heading.
ROWS_NAME_IT = ("methods", "estimates")
# Quartiles of durations.
NO_INTERVALS = ("times",)


def intervals_of_report(
    report: Mapping[str, Any], *, with_sensitivity: bool = False, with_undefined: bool = False
) -> Iterator[dict[str, Any]]:
    """The estimates of recommended blocks with an interval or a test, and their rank sets, each with its population."""
    for block in report["blocks"]:
        if block["mode"] != "recommended":
            continue
        for one in estimates_of(block["estimates"], with_sensitivity):
            if with_undefined or one["interval"] or one["test"]:
                yield {"population": one["settings"].get("population"), "block": block, **one}
        ranks = (block["other_results"] or {}).get("ranks")
        if ranks and (ranks["low"] or with_undefined):
            yield {"analysis": f"{block['name']}.ranks", "population": ranks["settings"].get("population"), "block": block,
                   "interval": ranks["low"], "estimate": ranks["scores"][0] if ranks["scores"] else None, "mode": "recommended", **{k: ranks[k] for k in ("reason", "settings")}}  # fmt: skip


def estimates_of(estimates: list[dict[str, Any]], with_sensitivity: bool) -> Iterator[dict[str, Any]]:
    for one in estimates:
        yield one
        if with_sensitivity:
            yield from estimates_of(one["sensitivity"], True)


def what_is_fixed(population: str) -> str:
    return "exactly these prompts" if population == "people" else population.partition(", for ")[2]


def has_intervals(table: Mapping[str, Any]) -> bool:
    keys = [one["key"] for one in table["columns"] if one["kind"] == "p" or one["kind"].endswith("interval")]
    return any(row[key] is not None for row in table["rows"] for key in keys)


def places_without_words(report: Mapping[str, Any]) -> list[str]:
    """Where an interval has no population, or is about less than people and prompts and its heading does not say so."""
    found = [f"{one['block']['name']}: {one['analysis']} has no population" for one in intervals_of_report(report, with_sensitivity=True) if not one["population"]]  # fmt: skip
    from_blocks = {one["title"] for block in report["blocks"] for one in block["tables"]}
    for block in report["blocks"]:
        if block["mode"] != "recommended":
            continue
        one_block = {"blocks": [block]}
        fixed = {what_is_fixed(str(one["population"])) for one in intervals_of_report(one_block)} - {""}
        is_all = all(one["population"] != BOTH for one in intervals_of_report(one_block))
        headings = [block["title"], *(one["title"] for one in block["tables"] if has_intervals(one))]
        headings += [one["title"] for one in block["figures"] if one["kind"] == "intervals"]
        for heading in headings if fixed else ():
            wanted = [
                *(f"for {one}" if len(fixed) == 1 else one for one in fixed),
                *([] if is_all else ["in part for "]),
            ]
            found += [
                f"{block['name']}: “{heading}” does not say “{words}”" for words in wanted if words not in heading
            ]
    stated = [one for one in intervals_of_report(report) if one["block"]["name"] in ("spa.pairs", "rating.superiority")]
    for table in report["tables"]:
        # Simulated answers add a mark to the titles.
        if any(title in table["title"] for title in from_blocks) or not has_intervals(table):
            continue
        if table["name"] in ROWS_NAME_IT:
            rows = [row for row in table["rows"] if row.get("mode", "recommended") != "paper"]
            if not any(row["population"] for row in rows):
                found.append(f"{table['name']} names no population")
        elif table["name"] in ("table1", "ways_of_counting"):
            shown = [
                one for one in stated if table["name"] == "ways_of_counting" or one["block"]["name"] == "spa.pairs"
            ]
            if (
                any(one["population"] == "people" for one in shown)
                and "for exactly these prompts" not in table["title"]
            ):
                found.append(f"“{table['title']}” does not say that prompts are fixed")
        elif table["name"] not in NO_INTERVALS:
            found.append(f"{table['name']} has intervals and belongs to no block")
    return found


def numbers_with_intervals(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each dict of a stored result with an interval or a p-value, and where it is."""
    if isinstance(value, dict):
        has_test = isinstance(value.get("test"), dict) and "pvalue" in value["test"]
        if has_test or any(value.get(name) is not None for name in ("low", "pvalue", "interval")):
            yield ".".join(map(str, path)), value
        for name, one in value.items():
            if name not in ("interval", "interval_adjusted", "effect") and not (name == "test" and has_test):
                yield from numbers_with_intervals(one, (*path, name))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from numbers_with_intervals(one, (*path, number))


def population_named(number: Mapping[str, Any]) -> str | None:
    return number.get("population") or (number.get("settings") or {}).get("population")


def places_of_numbers(result: Any) -> dict[str, str | None]:
    """The population that each number of a stored result names, by its place.

    The numbers of the paper's own table are not heval's, and the heading of the tests of single people names them.
    """
    return {
        path: population_named(one)
        for path, one in numbers_with_intervals(result)
        if ".paper" not in path and ".alternative.people." not in path
    }
