"""Lines of doccano."""

from collections.abc import Iterator, Mapping
from typing import Any

from studies.stimuli.lines import UnreadableFile

from .spans import mark_rows
from .tasks import person_name, task_key, text_rows


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
            yield {"annotator": person_name(person)} | answer
