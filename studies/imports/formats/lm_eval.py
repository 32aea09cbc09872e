"""Samples of lm-evaluation-harness (samples_TASK_TIME.jsonl): one model's answers to a task. The file does not name the model."""

from collections.abc import Iterator, Mapping
from typing import Any

NAME = "samples of lm-evaluation-harness"


def is_row(values: Mapping[str, Any]) -> bool:
    return "doc_id" in values and ("resps" in values or "filtered_resps" in values)


def rows_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
    row = {
        "prompt_key": str(values["doc_id"]),
        "prompt_text": _prompt(values),
        "output": _first_text(values.get("resps") or values.get("filtered_resps")),
    }
    target = values.get("target")
    if isinstance(target, str) and target.strip():
        row["reference"] = target.strip()
    yield row


def _prompt(values: Mapping[str, Any]) -> str:
    """Return the first argument of the request: a list of lists, or since version 0.4.3 objects with names."""
    found: Any = values.get("arguments")
    while isinstance(found, Mapping | list) and found:
        found = next(iter(found.values())) if isinstance(found, Mapping) else found[0]
    return found if isinstance(found, str) else ""


def _first_text(found: Any) -> str:
    """Return the first generated text. A task of likelihoods has pairs of a number and a truth value instead of a text."""
    while isinstance(found, list) and found:
        found = found[0]
    return found if isinstance(found, str) else ""
