"""Files of annotation tools: Label Studio, Argilla, Potato and doccano. They hold texts, and what people said about them.

How a word is stored, depends on the question that the study asks under the name of the tool's question: ``state["questions"]`` has the
kind of scale of each.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from studies.protocols.marks import ERRORS
from studies.stimuli.columns import OUTPUT, TEXT, first_named
from studies.stimuli.lines import RowRefused, UnreadableFile
from studies.stimuli.numbers import is_number
from studies.stimuli.texts import key_from_text

from .conversations import TIE, conversation, is_messages, last_text
from .published import Mqm, part_of

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


class LabelStudio:
    """Tasks of Label Studio, as they are imported there or exported (JSON). https://labelstud.io/guide/task_format"""

    NAME = "tasks of Label Studio; predictions and cancelled annotations were left out"
    NAME_OF_VALUE = {
        "rating": "rating",
        "number": "number",
        "choices": "choices",
        "textarea": "text",
        "pairwise": "selected",
    }

    @staticmethod
    def is_row(values: Mapping[str, Any]) -> bool:
        has_task = bool({"annotations", "predictions", "completions"} & values.keys()) or values.keys() <= {
            "id",
            "data",
            "meta",
        }
        return isinstance(values.get("data"), Mapping) and has_task

    @staticmethod
    def rows_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield from text_rows(values.get("id"), values["data"], state)

    @staticmethod
    def answers_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        data = values["data"]
        key = task_key(values.get("id"), data, state)
        for annotation in values.get("annotations") or []:
            if annotation.get("was_cancelled"):
                state["left_out"] += 1
                continue
            person = annotation.get("completed_by")
            person = person.get("id", person.get("email")) if isinstance(person, Mapping) else person
            said = {"annotator": _name(person), "time": annotation.get("created_at") or ""}
            result, spans = annotation["result"], {}
            for region in result:
                if region["type"] in ("labels", "hypertextlabels"):
                    spans[region["id"]] = region["value"]
            # Words that people gave to a span have its id.
            words: dict[Any, list[str]] = {}
            for region in result:
                if region.get("id") in spans:
                    words.setdefault(region["id"], []).extend(_words(region["value"]))
            marks = [(span["start"], span["end"], span.get("text"), words[name]) for name, span in spans.items()]
            for answer in mark_rows(key, data, marks, state):
                yield said | answer
            for region in result:
                kind = region["type"]
                if region.get("id") in spans:
                    continue
                if kind == "ranker":
                    (ranked,) = region["value"]["ranker"].values()
                    for place, system in enumerate(ranked, 1):
                        ranked_row = {"prompt_key": key, "question": region["from_name"], "system": str(system)}
                        yield said | ranked_row | {"value": place}
                    continue
                if kind not in LabelStudio.NAME_OF_VALUE:
                    raise RowRefused(
                        "annotations",
                        f"has an annotation of the type “{kind}”, which heval cannot hold. Remove it from the file.",
                    )
                question, found = region["from_name"], region["value"][LabelStudio.NAME_OF_VALUE[kind]]
                if kind == "textarea":
                    found = "\n".join(found) if isinstance(found, list) else found
                row = answer_rows(key, data, question, found, state, kind if kind == "textarea" else "")
                for answer in row:
                    yield said | answer


class Argilla:
    """Records of Argilla (``dataset.records.to_json``, ``to_list``): responses by question, in version 1 by person."""

    NAME = "records of Argilla; suggestions of models, drafts and discarded responses were left out"

    @staticmethod
    def is_row(values: Mapping[str, Any]) -> bool:
        return isinstance(values.get("fields"), Mapping) and bool(
            {"responses", "suggestions", "vectors"} & values.keys()
        )

    @staticmethod
    def rows_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield from text_rows(values.get("id"), Argilla.data(values), state)

    @staticmethod
    def answers_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        responses = values.get("responses") or {}
        if isinstance(responses, list):
            given = [
                (name, one | {"value": answer["value"]}) for one in responses for name, answer in one["values"].items()
            ]
        else:
            given = [(name, one) for name, found in responses.items() for one in found]
        data = Argilla.data(values)
        key = task_key(values.get("id"), data, state)
        for name, one in given:
            if one.get("status") not in (None, "submitted"):
                state["left_out"] += 1
                continue
            if isinstance(one["value"], list) and any(isinstance(part, Mapping) for part in one["value"]):
                raise RowRefused(
                    "responses", f"“{name}” is a ranking or has spans, which heval cannot read from Argilla."
                )
            for answer in answer_rows(key, data, name, one["value"], state):
                yield {"annotator": _name(one.get("user_id"))} | answer

    @staticmethod
    def data(values: Mapping[str, Any]) -> dict[str, Any]:
        return {**(values.get("metadata") or {}), **values["fields"]}


class Potato:
    """annotated_instances.jsonl of Potato: a row for what one person said about one instance."""

    NAME = "annotations of Potato"

    @staticmethod
    def is_row(values: Mapping[str, Any]) -> bool:
        return isinstance(values.get("label_annotations"), Mapping) and bool({"id", "instance_id"} & values.keys())

    @staticmethod
    def rows_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        key = values.get("instance_id", values.get("id"))
        if key not in state.setdefault("seen", set()):
            state["seen"].add(key)
            yield from text_rows(key, {"text": values.get("displayed_text") or ""}, state)

    @staticmethod
    def answers_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        person = values.get("user_id", values.get("user", values.get("annotator")))
        if person is None and "annotator" not in state["mapped"]:
            raise UnreadableFile(
                None,
                "The file does not say who annotated: Potato names the person's folder. Add a key user_id to each line.",
            )
        key = task_key(values.get("instance_id", values.get("id")), values, state)
        marks = [
            (span["start"], span["end"], span.get("span"), [str(span.get("annotation") or span["name"])])
            for span in values.get("span_annotations") or []
        ]
        for answer in mark_rows(key, {"text": values.get("displayed_text"), **values}, marks, state):
            yield {"annotator": _name(person)} | answer
        for question, labels in values["label_annotations"].items():
            given = {label: said for label, said in labels.items() if said not in (False, None, "", "false", "False")}
            is_words = state["questions"].get(question) == "text"
            is_number_asked = state["questions"].get(question, "") not in NOT_NUMBERS
            found = [
                str(said) if is_words or (is_number_asked and is_number(str(said))) else label
                for label, said in given.items()
            ]
            one_or_all = found[0] if len(found) == 1 else found
            for answer in answer_rows(key, values, question, one_or_all, state):
                yield {"annotator": _name(person)} | answer


class Doccano:
    """Lines of doccano: a text with its labels, which are spans of three parts. A key annotator must say who labelled."""

    NAME = "texts and spans of doccano; other labels were left out"

    @staticmethod
    def is_row(values: Mapping[str, Any]) -> bool:
        has_labels = any(isinstance(values.get(name), list) for name in ("label", "labels", "entities", "cats"))
        # A table of outputs may have lists of labels, too. If a person is named, they are answers.
        is_table = {"system", "model"} & values.keys() and not {"annotator", "user"} & values.keys()
        return has_labels and isinstance(values.get("text"), str) and not is_table

    @staticmethod
    def rows_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        data = {name: values[name] for name in ("text", "system", "model") if name in values}
        yield from text_rows(values.get("id"), data, state)

    @staticmethod
    def answers_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        person = values.get("annotator", values.get("user"))
        if person is None and "annotator" not in state["mapped"]:
            raise UnreadableFile(
                None, "The file is from doccano, which does not say who gave a label. Add a key annotator to each line."
            )
        spans = values.get("label") or values.get("labels") or values.get("entities") or []
        marks = [
            (span["start_offset"], span["end_offset"], None, [span["label"]])
            if isinstance(span, Mapping)
            else (span[0], span[1], None, [span[2]])
            for span in spans
        ]
        for answer in mark_rows(task_key(values.get("id"), values, state), values, marks, state):
            yield {"annotator": _name(person)} | answer


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


def _words(value: Mapping[str, Any]) -> list[str]:
    """Return the words that a region of Label Studio gives: labels, options, or a number of stars."""
    found: Any = next(
        (value[name] for name in ("labels", "hypertextlabels", "choices", "rating", "number") if name in value), []
    )
    return [str(one) for one in (found if isinstance(found, list) else [found])]


def mark_rows(
    key: str, data: Mapping[str, Any], marks: list[tuple[int, int, Any, list[str]]], state: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield error marks: start, end, perhaps the marked text, and words for the severity and the category. No mark says that there is no error."""
    if ERRORS not in state["questions"]:
        if marks:
            raise RowRefused(
                None, "has spans, and the study has no section of error marks. Add one, or remove them from the file."
            )
        return
    base = {"prompt_key": key, "question": ERRORS, "system": data.get("system") or data.get("model") or ""}
    if not marks:
        yield base | {"value": 0}
    text = data.get(first_named(OUTPUT, data)) or data.get("text")
    for start, end, marked, words in marks:
        parts = [part.strip().lower().replace(" ", "-") for word in words for part in re.split("[/:|]", word)]
        weights = [Mqm.WEIGHTS.get(part, part) for part in parts if part in Mqm.WEIGHTS or is_number(part)]
        categories = [part for part in parts if part not in Mqm.WEIGHTS and not is_number(part)]
        if len(weights) != 1 or len(categories) > 1:
            raise RowRefused(
                None,
                f"has a span with “{' / '.join(words)[:60]}”, which is not one severity (minor, major, critical or a weight) and one category.",
            )
        first, last = _in_characters(str(text), start, end, marked)
        yield base | {
            "value": weights[0],
            "choice": categories[0] if categories else "",
            "part": part_of(str(text), first, last - first),
        }


def _in_characters(text: str, start: int, end: int, marked: Any) -> tuple[int, int]:
    """Return a span in characters. Browsers count characters beyond the first plane twice; the marked text, if there is one, shows it."""
    if marked in (None, text[start:end]) and 0 <= start < end <= len(text):
        return start, end
    units = text.encode("utf-16-le")
    before, inside = (units[2 * a : 2 * b].decode("utf-16-le", "replace") for a, b in ((0, start), (start, end)))
    if not inside or (marked is not None and inside != marked):
        raise RowRefused(None, f"has a span from {start} to {end} that is not in the output. Export the file again.")
    return len(before), len(before) + len(inside)


def _name(person: Any) -> str:
    return "" if person is None else str(person)
