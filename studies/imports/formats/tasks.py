"""Texts and answers in the files of annotation tools: Label Studio, Argilla, Potato and doccano.

How a word is stored, depends on the question that the study asks under the name of the tool's question: ``state["questions"]`` has the
kind of scale of each.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from studies.stimuli.columns import TEXT, first_named
from studies.stimuli.lines import RowRefused
from studies.stimuli.texts import key_from_text

from .conversations import TIE, conversation, is_messages, last_text

# Columns in which tasks name the systems of two texts side by side, and those in which they have the texts.
PAIRS = (("model_a", "model_b"), ("system_a", "system_b"))
OUTPUTS = ("response", "answer", "output", "text", "completion", "summary", "translation")
SIDES = {
    "left": "shown:A",
    "right": "shown:B",
    "a": "shown:A",
    "b": "shown:B",
    "model_a": "shown:A",
    "model_b": "shown:B",
}
NOT_NUMBERS = ("", "choice", "multiple", "text", "output")


def task_key(number: Any, data: Mapping[str, Any], state: dict[str, Any]) -> str:
    """Return the key of a task's prompt: its number, unless each system's output is a task of its own. Then the prompt's text makes it."""
    if key := data.get("prompt_key"):
        return str(key)
    system = data.get("system") or data.get("model")
    text = data.get(first_named(TEXT, data)) or data.get("source")
    if not (system and isinstance(text, str)):
        return "" if number is None else str(number)
    n = state.setdefault("tasks", Counter())
    n[text, system] += 1
    return key_from_text(text) if n[text, system] == 1 else f"{key_from_text(text)}-{n[text, system]}"


def text_rows(number: Any, data: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the texts of a task: two outputs if it names two systems, and otherwise its columns. A text of no system is the prompt."""
    key = task_key(number, data, state)
    row: dict[str, Any] = {"prompt_key": key} if key else {}
    for name, found in data.items():
        if _is_list_of_outputs(found):
            rest = {other: value for other, value in data.items() if other != name}
            for one in found:
                text = one.get("body") or one.get("title") or one.get("html")
                yield {"prompt_key": key, **rest, "system": one["id"], "text": text}
            return
        if is_messages(found):
            answer = last_text(found, "assistant") if found[-1]["role"] == "assistant" else ""
            row |= {name: answer} if answer else {"prompt": conversation(found)}
        else:
            row[name] = found
    for columns in PAIRS:
        texts = [
            next((row[f"{word}{side}"] for word in OUTPUTS if f"{word}{side}" in row), None) for side in ("_a", "_b")
        ]
        if all(row.get(column) for column in columns) and None not in texts:
            used = {f"{word}{side}" for word in OUTPUTS for side in ("_a", "_b")} | set(columns)
            rest = {name: found for name, found in row.items() if name not in used}
            yield from (
                rest | {"system": row[column], "text": text} for column, text in zip(columns, texts, strict=True)
            )
            return
    if "text" in row and not {"system", "model", "prompt", "prompt_text", "source"} & row.keys():
        row["prompt_text"] = row.pop("text")
    yield row


def _is_list_of_outputs(found: Any) -> bool:
    """Return whether a value is a list that a Ranker of Label Studio ranks."""
    return (
        isinstance(found, list)
        and bool(found)
        and all(isinstance(one, Mapping) and "id" in one and {"title", "body", "html"} & one.keys() for one in found)
    )


def answer_rows(
    key: str, data: Mapping[str, Any], question: str, found: Any, state: Mapping[str, Any], kind: str = ""
) -> Iterator[dict[str, Any]]:
    """Yield the answers to a question: a number, words, or one or several options."""
    asked = state["questions"].get(question, "")
    shown = next(({"shown:A": data[a], "shown:B": data[b]} for a, b in PAIRS if data.get(a) and data.get(b)), {})
    base = {"prompt_key": key, "question": question}
    if asked == "output":
        base |= shown
    elif system := data.get("system") or data.get("model"):
        base["system"] = system
    for one in found if isinstance(found, list) else [found]:
        if kind == "textarea" or asked == "text":
            yield base | {"text": one}
        elif asked not in NOT_NUMBERS or (isinstance(one, int | float) and not isinstance(one, bool)):
            yield base | {"value": one}
        elif asked != "output":
            yield base | {"choice": str(one)} | ({"value": 1} if asked == "multiple" else {})
        elif str(one).lower() == "tie":
            yield base | TIE
        else:
            side = SIDES.get(str(one).lower(), "")
            if side and side not in shown:
                raise RowRefused(
                    question,
                    f"“{one}” does not say which system. Name the systems in model_a and model_b of each task.",
                )
            yield base | {"chosen": shown[side] if side else str(one)}


def ranked_rows(key: str, question: str, places: Iterable[tuple[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the places of a ranking. What is ranked names the systems."""
    for system, place in places:
        yield {"prompt_key": key, "question": question, "system": system, "value": place}


def person_name(person: Any) -> str:
    return "" if person is None else str(person)
