"""All rows of the four papers, what is kept of them, and how they are computed again."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tools.proofs.papers import dynamic, genie, not_gold, spa
from tools.proofs.papers.rows import ROOT, Part, Row

RECORD = ROOT / "tests" / "golden" / "papers.json"
PARTS = (*spa.PARTS, *dynamic.PARTS, *genie.PARTS, *not_gold.PARTS)


def part_name(part: Part) -> str:
    return f"{part.paper}.{part.name}"


def computed(part: Part, folder: Path) -> list[dict[str, Any]]:
    """The rows of one part as they are kept: plain, and without the digits that are a machine's own."""
    rows: list[Row] = part.make(folder) if part.needs_labels else part.make()
    return [plain(row) for row in rows]


def plain(row: Row) -> dict[str, Any]:
    agrees = None if row.agrees is None else bool(row.agrees)
    values = [None if value in (float("inf"), -float("inf")) else float(f"{float(value):.9g}") for value in row.values]
    return asdict(row) | {"agrees": agrees, "values": values}


def kept() -> dict[str, list[dict[str, Any]]]:
    """Rows by part."""
    return json.loads(RECORD.read_text(encoding="utf-8"))["parts"]


def collected(folder: Path, wanted: Callable[[Part], bool]) -> dict[str, list[dict[str, Any]]]:
    """Every part, computed where it is wanted and can be, and as kept where not."""
    before = kept() if RECORD.exists() else {}
    found = {}
    for part in PARTS:
        name = part_name(part)
        can_be = not part.needs_labels or folder.is_dir()
        found[name] = computed(part, folder) if can_be and wanted(part) else before.get(name, [])
    return found


def keep(parts: dict[str, list[dict[str, Any]]]) -> None:
    record = {"source": "python -m tools.proofs.papers --write; fixed seeds, one for each simulation", "parts": parts}
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
