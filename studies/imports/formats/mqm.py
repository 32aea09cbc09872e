"""Error spans of WMT's MQM evaluations (TSV): a row for each marked error. As texts, each translation counts once, without its marks."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

NAME = "an MQM table of WMT; rows about a translation that came before were left out, and so were the marks"
COLUMNS = ("system", "source", "target", "category", "severity")
_MARK = re.compile(r"</?v>")


def is_row(values: Mapping[str, Any]) -> bool:
    return all(name in values for name in COLUMNS) and any(
        name in values for name in ("seg_id", "globalSegId", "doc_id")
    )


def rows_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
    document = str(values.get("doc") or values.get("doc_id") or "")
    segment = str(values.get("seg_id") or values.get("globalSegId") or values.get("doc_id") or "")
    key = f"{document}:{segment}" if document and segment != document else segment
    seen = state.setdefault("seen", set())
    if (values["system"], key) in seen:
        return
    seen.add((values["system"], key))
    yield {
        "prompt_key": key,
        "prompt_text": "",
        "source": _MARK.sub("", str(values["source"])),
        "group": document,
        "system": values["system"],
        "text": _MARK.sub("", str(values["target"])),
    }
