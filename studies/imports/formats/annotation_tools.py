"""Files of annotation tools: Label Studio, Argilla, Potato and doccano. They hold texts, and what people said about them.

How a word is stored, depends on the question that the study asks under the name of the tool's question: ``state["questions"]`` has the
kind of scale of each.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from studies.stimuli.columns import TEXT, first_named
from studies.stimuli.lines import RowRefused, UnreadableFile
from studies.stimuli.numbers import is_number
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
            for region in annotation["result"]:
                kind = region["type"]
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
                    yield {"annotator": _name(person), "time": annotation.get("created_at") or ""} | answer


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
        if values.get("span_annotations"):
            raise RowRefused(
                "span_annotations", "has spans, which heval cannot read from Potato. Remove them from the file."
            )
        key = task_key(values.get("instance_id", values.get("id")), values, state)
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
    """Lines of doccano: a text with its labels. The lines do not say who labelled."""

    NAME = "texts of doccano; their labels were left out"

    @staticmethod
    def is_row(values: Mapping[str, Any]) -> bool:
        has_labels = any(isinstance(values.get(name), list) for name in ("label", "labels", "entities", "cats"))
        return has_labels and isinstance(values.get("text"), str) and not {"system", "model"} & values.keys()

    @staticmethod
    def rows_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield from text_rows(values.get("id"), {"text": values["text"]}, state)

    @staticmethod
    def answers_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        raise UnreadableFile(
            None, "The file is from doccano, which does not say who gave a label. Send a table with a column annotator."
        )


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


def _name(person: Any) -> str:
    return "" if person is None else str(person)
