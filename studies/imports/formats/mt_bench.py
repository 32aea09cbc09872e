"""Questions and answers of MT-Bench (question.jsonl, MODEL.jsonl): turns of a conversation with one model."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

NAME = "questions or answers of MT-Bench"


def is_row(values: Mapping[str, Any]) -> bool:
    return "question_id" in values and (
        _is_turns(values.get("turns")) or ("model_id" in values and bool(_choices(values)))
    )


def rows_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
    key = {"prompt_key": str(values["question_id"])}
    if _is_turns(values.get("turns")):
        yield {**key, "prompt_text": _joined(values["turns"]), "domain": str(values.get("category") or "")[:50]}
    for number, choice in enumerate(_choices(values)):
        yield {**key, "system": values["model_id"], "sample": number, "text": _joined(choice["turns"])}


def _choices(values: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = values.get("choices")
    return (
        [one for one in found if isinstance(one, Mapping) and _is_turns(one.get("turns"))]
        if isinstance(found, list)
        else []
    )


def _is_turns(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


def _joined(turns: Sequence[str]) -> str:
    return (
        turns[0] if len(turns) == 1 else "\n\n".join(f"Turn {number}: {turn}" for number, turn in enumerate(turns, 1))
    )
