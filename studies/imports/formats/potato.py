"""Annotations of Potato."""

from collections.abc import Iterator, Mapping
from typing import Any

from studies.stimuli.lines import RowRefused, UnreadableFile
from studies.stimuli.numbers import is_number

from .spans import mark_rows
from .tasks import NOT_NUMBERS, answer_rows, person_name, task_key, text_rows


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
        spans = values.get("span_annotations") or []
        marks = [Potato.mark(span) for span in spans]
        for answer in mark_rows(key, {"text": values.get("displayed_text"), **values}, marks, state):
            yield {"annotator": person_name(person)} | answer
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
                yield {"annotator": person_name(person)} | answer

    @staticmethod
    def mark(span: Any) -> tuple[int, int, Any, list[str]]:
        """Return a span with its text and its word, which versions name differently.

        https://github.com/davidjurgens/potato/blob/master/docs/data-export/export_formats.md
        """
        word = next((name for name in ("annotation", "label", "name") if span.get(name)), None)
        if word is None or not {"start", "end"} <= span.keys():
            raise RowRefused(
                "span_annotations",
                "has a span without start, end and label, which heval cannot read from Potato. Add them, or remove the span.",
            )
        return span["start"], span["end"], span.get("span", span.get("text")), [str(span[word])]
