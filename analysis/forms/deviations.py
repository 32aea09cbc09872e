"""What differs from the design as it was first frozen: who changed what, when, before and after."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from analysis.protocols.blocks.layouts import Table, build_table
from annotators.places.exclusions import EXCLUSION_REASONS
from studies.admin.field_labels import LABELS
from studies.models import Study

# What names a row of a design in its list, and the words for such a row.
ROW_NAMES = ("name", "key", "position", "rule")
KINDS = {"study": "study", "arms": "arm", "questions": "question"}
# Acts after the launch that no design shows: what was before, and after. The data of the act fill the words.
ACTS = {
    "exclude": ("Answers of {n}", "counted", "excluded by hand: {reason}"),
    "reverse exclusion": ("Answers of {n}", "excluded by hand", "counted again"),
    "bar annotator": ("Further batches of {n}", "offered", "barred: {reason}"),
    "lift barring": ("Further batches of {n}", "barred", "offered again: {reason}"),
    "unblind": ("Outcomes", "hidden from researchers", "shown: {reason}"),
    "draw more": ("Places", "as launched", "{places} more opened"),
    "top up": ("Items of section {section}", "as launched", "{items} shown again"),
}
NOTHING = "(nothing)"


def deviations_table(study: Study) -> Table:
    rows = [*_amendments(study), *_acts(study)]
    rows.sort(key=lambda row: row["when"])
    return build_table(
        "deviations",
        "Deviations from the frozen design",
        "when|When (UTC)|text; what|What|text; before|Before|text; after|After|text; who|Who|text; why|Why|text",
        rows,
        "sure",
        "" if rows else "No deviation is on record.",
    )


def _amendments(study: Study) -> Iterator[dict[str, str]]:
    designs = list(study.designs.order_by("version").select_related("by"))
    texts = [_flat(json.loads(design.canonical)) for design in designs] if len(designs) > 1 else []
    for before, after, design in zip(texts, texts[1:], designs[1:], strict=False):
        for path in sorted(path for path in before | after if before.get(path) != after.get(path)):
            yield {
                "when": f"{design.at:%Y-%m-%d %H:%M}",
                "what": _label(path),
                "before": _words(before.get(path)),
                "after": _words(after.get(path)),
                "who": str(design.by or "heval"),
                "why": design.reason,
            }


def _flat(value: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """Return each value of a design by its path. A row of a list is named by its first name; other lists are one value."""
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        value = {str(next((row[name] for name in ROW_NAMES if name in row), n)): row for n, row in enumerate(value)}
    if not isinstance(value, Mapping) or not value:
        return {path: value}
    return {found: leaf for name, inner in value.items() for found, leaf in _flat(inner, (*path, str(name))).items()}


def _label(path: tuple[str, ...]) -> str:
    kind = next((KINDS[part] for part in reversed(path[:-1]) if part in KINDS), "")
    column = LABELS.get(kind, {}).get(path[-1], path[-1].replace("_", " "))
    return " › ".join([part for part in path[:-1] if part != "study"] + [column])


def _words(value: Any) -> str:
    if value in (None, "", [], {}):
        return NOTHING
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _acts(study: Study) -> Iterator[dict[str, str]]:
    """Yield the acts of people, those of one minute that are alike in one row."""
    found: Counter[tuple[str, str, str, tuple[tuple[str, str], ...]]] = Counter()
    events = study.audit_events.filter(verb__in=ACTS, by__isnull=False) | study.audit_events.filter(verb="top up")
    for event in events.select_related("by"):
        data = tuple(sorted((name, str(value)) for name, value in event.data.items()))
        found[(f"{event.at:%Y-%m-%d %H:%M}", event.verb, str(event.by or "heval"), data)] += 1
    for (when, verb, who, data), n in found.items():
        said = dict.fromkeys(("reason", "places", "section", "items"), "") | dict(data)
        said["reason"] = EXCLUSION_REASONS.get(said["reason"], said["reason"])
        said["n"] = "1 assignment" if n == 1 else f"{n} assignments"
        what, before, after = (words.format_map(said) for words in ACTS[verb])
        yield {
            "when": when,
            "what": what,
            "before": before,
            "after": after.rstrip(": "),
            "who": who,
            "why": said["reason"],
        }
