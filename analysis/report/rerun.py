"""Recompute every analysis of an archive from its rows, and say which of its numbers differ."""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from django.db.models import Q

from analysis.coding.models import Coding
from analysis.models import Metric
from annotators.counting import Use, select
from annotators.models import Assignment, Exclusion
from studies.models import Study
from studies.stimuli import texts

from .archive_rows import MAX_LINE, ArchiveRefused, load_rows, open_member, opened_archive, read_manifest
from .build import BadParameters, build_report, settings_of, version_and_source_hash

FORMAT = "heval.rerun/1"
SHOWN_DIFFERENCES = 20
NO_METRICS = "The archive was written before archives had the scores of metrics, so no report has them here."
# What says where a report was computed, and no result.
OF_THE_PLACE = ("code_version", "libraries")
# Another processor may round the last bits of a sum in another way.
ROUNDING = 1e-9
_RUN = re.compile(r"analyses/([1-9][0-9]{0,8})\.json")


def stored_runs(archive: ZipFile) -> Iterator[dict[str, Any]]:
    """Yield the analyses of an archive in their order, as they were stored."""
    numbers = sorted(int(found[1]) for name in archive.namelist() if (found := _RUN.fullmatch(name)))
    for number in numbers:
        name = f"analyses/{number}.json"
        try:
            run = texts.loads(open_member(archive, name).read(MAX_LINE))
            (
                {**run["parameters"]},
                {**run["result"]["data"]},
                datetime.fromisoformat(run["at"]),
                "" + run["code_version"],
            )
        except (ValueError, KeyError, TypeError) as error:
            raise ArchiveRefused(f"{name} is no analysis ({error}). Download the archive again.") from None
        yield run | {"number": number}


def rerun_archive(path: Path, owner: Any, progress: Callable[[str], object] = lambda text: None) -> dict[str, Any]:
    """Store the study of an archive in this database, recompute its analyses, and return what differs. Raises ArchiveRefused."""
    with opened_archive(path) as archive:
        progress("Reading the archive")
        study = load_rows(archive, owner)
        runs = [_rerun(study, run, progress) for run in stored_runs(archive)]
        has_metrics = Metric._meta.label_lower in read_manifest(archive)["tables"]
    return {
        "format": FORMAT,
        "study": {"code": str(study.code), "title": study.title},
        "heval": version_and_source_hash(),
        "analyses": runs,
        "is_equal": all(run["is_equal"] for run in runs),
        "metrics": {"is_there": has_metrics, "reason": "" if has_metrics else NO_METRICS},
    }


def _rerun(study: Study, run: Mapping[str, Any], progress: Callable[[str], object]) -> dict[str, Any]:
    stored, about = run["result"], {name: run[name] for name in ("number", "at", "code_version")}
    about["is_same_version"] = run["code_version"] == version_and_source_hash()
    try:
        result = build_report(
            study,
            settings_of(run["parameters"]),
            lambda done, total, doing: progress(f"Analysis {run['number']}: {doing}"),
        )
    except BadParameters as refused:
        return about | {"is_equal": False, "error": str(refused)}
    # As the database gives it back.
    result = json.loads(json.dumps(result))
    compared = Comparison()
    compared.compare(_without_place(stored), _without_place(result))
    return about | {
        "is_equal": not compared.n_different,
        "n_values": compared.n_values,
        "n_rounded": compared.n_rounded,
        "n_differences": compared.n_different,
        "differences": compared.differences,
        "missing_people": max(0, result["data"]["n_withdrawn"] - stored["data"].get("n_withdrawn", 0)),
        "later": _later_facts(study, run["at"], result["parameters"]["origins"]),
    }


def _without_place(result: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in result.items() if name not in OF_THE_PLACE}
    return kept | {"methods": [line for line in result.get("methods", ()) if not line.startswith("Computed by heval ")]}


def _later_facts(study: Study, at: str, origins: list[str]) -> dict[str, int]:
    """Return how much of what the archive has is later than an analysis, so that it cannot have used it."""
    submitted = select(Use.SUBMITTED, Assignment.objects.filter(study=study), origins)
    moment = datetime.fromisoformat(at).astimezone()
    return {
        "submissions": sum(time > moment for time in submitted.values_list("submitted_at", flat=True)),
        "exclusions": Exclusion.objects.filter(assignment__study=study, at__gt=at).count(),
        "codings": Coding.objects.filter(item__sample__study=study, at__gt=at).count(),
        "metrics": Metric.objects.filter(Q(at__gt=moment) | Q(discarded_at__gt=moment), study=study).count(),
        "amendments": study.designs.filter(at__gt=at, version__gt=1).count(),
    }


class Comparison:
    """Compare two JSON values part by part, and keep the first differences with their places."""

    def __init__(self) -> None:
        self.n_values = self.n_rounded = self.n_different = 0
        self.differences: list[dict[str, Any]] = []

    def compare(self, stored: Any, computed: Any, place: tuple[str, ...] = ()) -> None:
        if isinstance(stored, dict) and isinstance(computed, dict):
            for name in dict.fromkeys([*stored, *computed]):
                self.compare(stored.get(name, MISSING), computed.get(name, MISSING), (*place, name))
        elif isinstance(stored, list) and isinstance(computed, list):
            for number in range(max(len(stored), len(computed))):
                old, new = (one[number] if number < len(one) else MISSING for one in (stored, computed))
                self.compare(old, new, (*place, _name_of(old, number)))
        else:
            self._compare_values(stored, computed, place)

    def _compare_values(self, stored: Any, computed: Any, place: tuple[str, ...]) -> None:
        self.n_values += 1
        if stored == computed and isinstance(stored, bool) == isinstance(computed, bool):
            return
        if _is_number(stored) and _is_number(computed) and math.isclose(stored, computed, rel_tol=ROUNDING):
            self.n_rounded += 1
            return
        self.n_different += 1
        if len(self.differences) < SHOWN_DIFFERENCES:
            self.differences.append({"place": place_text(place), "stored": stored, "computed": computed})


MISSING = "(missing)"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _name_of(row: Any, number: int) -> str:
    """Return the name of a part of a list, or its number from 1."""
    name = row.get("name") if isinstance(row, dict) else None
    return name if isinstance(name, str) and name else str(number + 1)


def place_text(place: tuple[str, ...]) -> str:
    """Return where a value is in a report.

    >>> place_text(("tables", "means", "rows", "3", "estimate")), place_text(("n", "kept"))
    ('table means, row 3, column estimate', 'n.kept')
    """
    if len(place) > 4 and place[0] == "tables" and place[2] == "rows":
        return f"table {place[1]}, row {place[3]}, column {'.'.join(place[4:])}"
    return ".".join(place)
