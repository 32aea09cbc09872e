"""Whether a change of the code changes a result: ``python -m tests.golden_site.hashes [DATABASE]``.

Builds the report of every study of a database and prints five hashes for each: of who was counted and left out (``study``), of the
estimates (``blocks``), of the ``tables``, of the ``figures``, and of the ``exports``. Texts and moments are left out. What differs from
the stored results is listed, with both values. DATABASE is a SQLite file, which is copied, or the address of a PostgreSQL server, on
which the stored dump is loaded into a database of its own; by default the stored SQLite file. It is migrated first.
"""

import argparse
import hashlib
import json
import math
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .stored import FOLDER, at_site, into_postgres, into_sqlite, pack, scratch, unpacked

RESULTS = FOLDER / "results.json.xz"
RESAMPLES = 99
# Studies that are reported once more, with other parameters.
ALSO = {
    "robots": {"origins": ["live", "robot"]},
    "one order": {"level": 0.9, "star_scheme": "5/1/0.1", "resamples": 199},
}

# Of a block and of its estimates everything but what is said about them.
BLOCK = ("name", "mode", "estimates", "other_results")
ESTIMATE = (
    "analysis", "mode", "unit", "n", "n_clusters", "n_rows", "status", "estimate", "interval", "interval_adjusted", "test", "effect", "sensitivity", "warnings",
    "detail", "settings",
)  # fmt: skip
# How a number is printed, among the settings of its estimate.
PRINTED = frozenset({"words", "symbol", "scored", "subject"})
# Strings that name something, in tables and figures; any other is a label or a sentence.
NAMES = frozenset(
    {
        "name", "key", "kind", "analysis", "mode", "status", "unit", "rule", "role", "family", "x", "y", "system", "criterion", "question",
        "condition", "domain", "model", "strategy", "annotator", "arm", "p_xy_stars", "paper_stars", "delta_stars",
    }
)  # fmt: skip
NUMBER = re.compile(r"[-−+]?\d*[.,]?\d+( %)?\Z")


def holds_for(conclusion: dict[str, Any]) -> str:
    """Whether the sentence says for what its claim holds, or why nothing was tested or estimated."""
    if re.search(r", for (\w+ like these|exactly th(is|ese))", conclusion["claim"]):
        return "population"
    if re.search(
        r"No test: \w|Nothing can be estimated: \w|Nothing can be said of ",
        f"{conclusion['text']} {conclusion['claim']}",
    ):
        return "reason"
    return ""


def block_of(block: dict[str, Any]) -> dict[str, Any]:
    others = block["other_results"]
    without_reasons = {key: value for key, value in others.items() if key != "reason"} if others else others
    return {key: block[key] for key in BLOCK} | {
        "estimates": [estimate_of(one) for one in block["estimates"]],
        "other_results": without_reasons,
    }


def estimate_of(estimate: dict[str, Any]) -> dict[str, Any]:
    return {key: estimate[key] for key in ESTIMATE} | {
        "sensitivity": [estimate_of(one) for one in estimate["sensitivity"]],
        "settings": {key: value for key, value in estimate["settings"].items() if key not in PRINTED},
    }


def row_of(row: dict[str, Any]) -> dict[str, Any]:
    """A row of a table or a figure: its numbers, and the strings that name something."""
    return {
        key: value for key, value in row.items() if not isinstance(value, str) or key in NAMES or NUMBER.match(value)
    }


def ordered(parts: list[Any]) -> list[Any]:
    """Where order has no meaning: by everything but the numbers, so that a changed number moves nothing."""

    def without_numbers(value):
        if isinstance(value, dict):
            return {key: without_numbers(one) for key, one in value.items()}
        if isinstance(value, list):
            return [without_numbers(one) for one in value]
        return 0.0 if isinstance(value, float) else value

    return sorted(parts, key=lambda part: text_of(without_numbers(part)))


def text_of(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)


def sha256_of(value: Any) -> str:
    return hashlib.sha256(text_of(value).encode()).hexdigest()[:16]


def parts_of(report: dict[str, Any]) -> dict[str, Any]:
    """The parts of a report that are hashed. The seed is one of them: it follows from the design, the answers and the rules."""
    design, data, flow = report["design"], report["data"], report["flow"]
    return {
        "study": {
            "seed": report["seed"],
            "parameters": report["parameters"],
            "n": report["n"],
            "sections": [{key: one for key, one in row.items() if key != "name"} for row in report["sections"]],
            "design": {
                "mismatch": bool(design["mismatch"]),
                "now_sha256": design["now_sha256"],
                "versions": [[one["version"], one["sha256"], one["assignments"]] for one in design["versions"]],
            },
            "data": data | {"sources": [[one["sha256"], one["assignments"]] for one in data["sources"]]},
            "flow": flow
            | {
                "rules": [
                    {key: one for key, one in rule.items() if key not in ("label", "problem")} for rule in flow["rules"]
                ],
                "excluded_assignments": ordered(
                    [[one["annotator"], one["rule"]] for one in flow["excluded_assignments"]]
                ),
            },
            "is_hidden": report["outcomes"]["is_hidden"],
            "is_confirmatory": report["confirmatory"]["is_confirmatory"],
            "notices": ordered([[one["code"], one["severity"]] for one in report["notices"]]),
            "families": report["families"],
            "n_problems": report["n_problems"],
            "conclusions": ordered(
                [
                    [one[key] for key in ("contrast", "role", "status", "verdict", "recovered")] + [holds_for(one)]
                    for one in report["conclusions"]
                ]
            ),
        },
        "blocks": ordered([block_of(block) for block in report["blocks"]]),
        "tables": ordered(
            [
                {
                    "name": one["name"],
                    "columns": [column["key"] for column in one["columns"]],
                    "rows": [row_of(row) for row in one["rows"]],
                }
                for one in report["tables"]
            ]
        ),
        "figures": ordered(
            [
                {key: one[key] for key in ("name", "reference", "limits")}
                | {"rows": [row_of(row) for row in one["rows"]]}
                for one in report["figures"]
            ]
        ),
    }


def exports_of(study, origins: list[str]) -> dict[str, str]:
    from analysis.data.exports import TABLES, csv_blocks
    from analysis.data.flat_rows import Selection

    return {
        name: hashlib.sha256(b"".join(csv_blocks(name, Selection(study, tuple(origins))))).hexdigest()
        for name, table in TABLES.items()
        if table.is_streamed
    }


def reports(titles: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What is hashed of each study of this database, by its title."""
    from analysis.report.build import build_report
    from studies.models import Study

    from .drafts import GOLDEN

    found = {}
    for study in Study.objects.filter(institution=GOLDEN).exclude(launched_at=None).order_by("pk"):
        if titles and study.title not in titles:
            continue
        for parameters in ({}, *([ALSO[study.title]] if study.title in ALSO else [])):
            report = build_report(study, {"resamples": RESAMPLES} | parameters)
            name = study.title + (" (other parameters)" if parameters else "")
            assert name not in found, f"two studies are called {name}"
            found[name] = parts_of(report) | {"exports": exports_of(study, report["parameters"]["origins"])}
    return found


def stored() -> dict[str, dict[str, Any]]:
    return json.loads(unpacked(RESULTS))


# What another processor computes otherwise in the third digit: beside a headline, models found by a search and ends of intervals
# found by counting resamples, and the rows of the two tables that repeat them.
SEARCHED = re.compile(r"/sensitivity/|/tables/\d+ \((methods|estimates)\)/")
TOLERANCE_OF_SEARCHES = 5e-3


def different(now: Any, before: Any, tolerance: float = 0.0, path: str = "") -> Iterator[str]:
    """A line for each place at which two results differ. ``tolerance``: of numbers, relative to the greater; where it is not 0, what was
    ``SEARCHED`` has one of its own."""
    if isinstance(now, dict) and isinstance(before, dict):
        for key in sorted(now.keys() | before.keys()):
            if key in now and key in before:
                yield from different(now[key], before[key], tolerance, f"{path}/{key}")
            else:
                yield f"{path}/{key}: {'is new' if key in now else 'is gone'}"
    elif isinstance(now, list) and isinstance(before, list) and len(now) == len(before):
        for n, (one, other) in enumerate(zip(now, before, strict=True)):
            name = one.get("name", "") if isinstance(one, dict) else ""
            yield from different(one, other, tolerance, f"{path}/{n}{f' ({name})' if name else ''}")
    elif isinstance(now, list) and isinstance(before, list):
        yield f"{path}: {len(now)} instead of {len(before)}"
    elif now != before and not (
        tolerance
        and isinstance(now, float)
        and isinstance(before, float)
        and math.isclose(now, before, rel_tol=allowed(path, tolerance), abs_tol=allowed(path, tolerance))
    ):
        yield f"{path}: {now!r} instead of {before!r}"


def allowed(path: str, tolerance: float) -> float:
    return max(tolerance, TOLERANCE_OF_SEARCHES) if SEARCHED.search(path) else tolerance


def of_database(database: str = "", titles: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """What is hashed of each study of a database; see the module. Sets Django up, so once in a process."""
    if database.startswith("postgres"):
        with scratch(database, "golden") as url:
            into_postgres(url)
            at_site(url)
            return _migrated_reports(titles)
    home = at_site()
    if database:
        shutil.copy(database, home / "heval.sqlite3")
    else:
        into_sqlite(home / "heval.sqlite3")
    return _migrated_reports(titles)


def _migrated_reports(titles: Sequence[str]) -> dict[str, dict[str, Any]]:
    from django.core.management import call_command
    from django.db import connections

    call_command("migrate", verbosity=0)
    try:
        return reports(titles)
    finally:
        connections.close_all()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden_site.hashes", description=__doc__)
    parser.add_argument("database", nargs="?", default="")
    parser.add_argument("--study", action="append", default=[], help="this study alone, by its title; may be repeated")
    parser.add_argument("--out", type=Path, help="write what is hashed, so that two commits can be compared with diff")
    parser.add_argument("--tolerance", type=float, default=0.0, help="of numbers, relative to the greater one (0)")
    parser.add_argument("--most", type=int, default=40, help="how many differences are listed (40)")
    parser.add_argument("--store", action="store_true", help="store these results instead of comparing")
    given = parser.parse_args()
    found = of_database(given.database, given.study)
    if given.out:
        given.out.write_text(json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False), encoding="utf-8")
    if given.store:
        pack(text_of(found), RESULTS)
    before, changed, lines = stored(), 0, []
    for name, parts in found.items():
        said = []
        for part, value in parts.items():
            there = list(different(value, before.get(name, {}).get(part), given.tolerance, f"{name}/{part}"))
            said.append(f"{part} {sha256_of(value)}{' CHANGED' if there else ''}")
            changed += bool(there)
            lines += there
        print(f"{name:34}", *said)
    print(f"{changed} of {sum(map(len, found.values()))} parts differ from what is stored.")
    left = len(lines) - given.most
    print(*lines[: given.most], *([f"... and {left} more"] if left > 0 else []), sep="\n")
    return bool(changed)


if __name__ == "__main__":
    sys.exit(main())
