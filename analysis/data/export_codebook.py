"""The codebook of exports: the meaning of every column, and the study's questions, scales, systems and arms."""

import json
from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast

from annotators.models import Assignment
from studies.models import Arm, Question, Study, System
from studies.protocols import REGISTRY
from studies.protocols.base.fields import parse_scale

from .codings import describe_coding_samples
from .exports import TABLES
from .flat_rows import Column

SCHEMA = "heval.codebook/1"


def build_export_codebook(study: Study) -> dict[str, Any]:
    """Return the codebook of a study as plain JSON values."""
    tables = {name: table for name, table in TABLES.items() if not table.find_problem(study)}
    return {
        "schema": SCHEMA,
        "study": {"code": str(study.code), "title": study.title, "state": study.state, "language": study.language},
        "rows": {name: table.about for name, table in tables.items()},
        "missing": "Empty in CSV, null in JSON lines. Booleans are 1 and 0 in CSV. Times are ISO 8601 in UTC.",
        "tables": {name: [_column(column) for column in table.columns_of(study)] for name, table in tables.items()},
        "origins": {value: str(label) for value, label in Assignment.Origin.choices},
        "protocols": _protocols(study),
        "questions": _questions(study),
        "samples": describe_coding_samples(study),
        "systems": list(study.systems.order_by("name").values("name", "is_human", "reference")),
        "arms": [
            {
                "name": arm.name,
                "condition": arm.condition,
                "domain": arm.domain,
                "systems": sorted(s.name for s in arm.systems.all()),
            }
            for arm in Arm.objects.filter(study=study).order_by("name").prefetch_related("systems")
        ],
    }


def _column(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type,
        "meaning": column.meaning,
        "unit": column.unit,
        "levels": list(column.levels),
    }


def _protocols(study: Study) -> dict[str, dict[str, str]]:
    """Return what columns mean in the study's protocols, if it differs from their general meaning."""
    used = sorted(set(study.sections.values_list("protocol", flat=True)) & set(REGISTRY))
    return {slug: dict(REGISTRY[slug].column_meanings) for slug in used if REGISTRY[slug].column_meanings}


def _questions(study: Study) -> list[dict[str, Any]]:
    rows = (
        Question.objects.filter(section__study=study)
        .order_by("section__position", "position")
        # Scales are read as text, so that an unreadable scale does not break the codebook.
        .values_list("section__position", "section__protocol", "key", "text", "criterion", Cast("scale", TextField()), "x__name", "y__name")
    )  # fmt: skip
    return [
        {
            "section": section, "protocol": protocol, "question": key, "text": text, "criterion": criterion,
            "x": x, "y": y, "scale": _scale(stored),
        }
        for section, protocol, key, text, criterion, stored, x, y in rows
    ]  # fmt: skip


def _scale(stored: str) -> dict[str, Any]:
    try:
        scale = parse_scale(json.loads(stored))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return {"problem": f"cannot be read: {error}"[:200]}
    described = {"stored_in": scale.answer_column, **scale.as_json()}
    if scale.answer_column == "value" and scale.kind not in ("multiple", "acknowledgement"):
        described |= {"minimum": scale.minimum, "maximum": scale.maximum}
    if scale.kind == "likert":
        described["points"] = {point.key: point.label for point in scale.points}
    return described


def build_export_codebook_markdown(study: Study) -> str:
    """Return the codebook as Markdown."""
    book = build_export_codebook(study)
    lines = [f"# Codebook: {_inline(book['study']['title'])}", "", book["missing"], ""]
    for name, columns in book["tables"].items():
        lines += [
            f"## {name}",
            "",
            book["rows"][name],
            "",
            "| column | type | meaning | levels |",
            "| --- | --- | --- | --- |",
        ]
        lines += [
            f"| {c['name']} | {c['type']}{', ' + c['unit'] if c['unit'] else ''} | {_inline(c['meaning'])} | {', '.join(c['levels'])} |"
            for c in columns
        ]
        lines.append("")
    if book["protocols"]:
        lines += ["## Columns of responses with another meaning in a protocol", ""]
        lines += ["| protocol | column | meaning |", "| --- | --- | --- |"]
        lines += [
            f"| {slug} | {name} | {_inline(meaning)} |"
            for slug, meanings in book["protocols"].items()
            for name, meaning in meanings.items()
        ]
        lines.append("")
    lines += [
        "## Questions",
        "",
        "| section | question | x | y | scale | text |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {q['section']} ({q['protocol']}) | {q['question']} | {_inline(q['x'])} | {_inline(q['y'])} | "
        f"{_inline(json.dumps(q['scale'], ensure_ascii=False))} | {_inline(q['text'])} |"
        for q in book["questions"]
    ]
    lines += ["", "## Systems", ""]
    for system in book["systems"]:
        marks = ["human"] * system["is_human"] + (
            [str(System.Reference(system["reference"]).label)] if system["reference"] else []
        )
        lines.append(f"- {_inline(system['name'])}{' (' + ', '.join(marks) + ')' if marks else ''}")
    lines += ["", "## Arms", ""]
    lines += [
        f"- {_inline(a['name'])}: {a['condition']}{', ' + _inline(a['domain']) if a['domain'] else ''}"
        for a in book["arms"]
    ]
    for sample in book["samples"]:
        lines += ["", f"## Coding sample {sample['sample']}: {sample['kind']}", ""]
        lines += [
            f"{sample['per_arm']} annotators of each arm, origin {sample['origin']}. Rule: {_inline(sample['rule_words'])}.",
            "",
        ]
        lines += ["| label | name | category | meaning |", "| --- | --- | --- | --- |"]
        lines += [
            f"| {key} | {_inline(name)} | {_inline(category)} | {_inline('; '.join(filter(None, descriptions)))} |"
            for category, key, name, *descriptions in sample["codebook"]["labels"]
        ]
    return "\n".join(lines) + "\n"


def _inline(text: str | None) -> str:
    """Return a text that fits in a cell of a Markdown table."""
    return " ".join((text or "").split()).replace("|", "\\|")
