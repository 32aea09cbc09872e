"""Records of Argilla."""

from collections.abc import Iterator, Mapping
from typing import Any

from studies.protocols.marks import ERRORS
from studies.stimuli.lines import RowRefused

from .spans import mark_rows
from .tasks import answer_rows, person_name, ranked_rows, task_key, text_rows


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
            for answer in Argilla.answers(key, data, name, one["value"], state):
                yield {"annotator": person_name(one.get("user_id"))} | answer

    @staticmethod
    def answers(
        key: str, data: Mapping[str, Any], name: str, found: Any, state: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        """Yield the answers of a response, by its form: spans, a ranking, or anything else.

        https://github.com/argilla-io/argilla/blob/develop/docs/_source/practical_guides/create_update_dataset/suggestions_and_responses.md
        """
        parts = found if isinstance(found, list) else []
        are_spans = parts == found and all(isinstance(one, Mapping) and "start" in one for one in parts)
        # An empty list can be spans of a text without errors, or no options of a question that the study asks.
        if are_spans and (parts or (ERRORS in state["questions"] and name not in state["questions"])):
            marks = [(one["start"], one["end"], None, [str(one["label"])]) for one in parts]
            yield from mark_rows(key, data, marks, state)
        elif any(isinstance(one, Mapping) for one in parts):
            if not all(isinstance(one, Mapping) and {"value", "rank"} <= one.keys() for one in parts):
                raise RowRefused(
                    "responses",
                    f"“{name}” has parts that are neither ranks nor spans, which heval cannot read. Remove it from the file.",
                )
            yield from ranked_rows(key, name, ((str(one["value"]), one["rank"]) for one in parts))
        elif state["questions"].get(name) == "number" and parts:  # version 2 writes a ranking in its order
            yield from ranked_rows(key, name, ((str(one), place) for place, one in enumerate(parts, 1)))
        else:
            yield from answer_rows(key, data, name, found, state)

    @staticmethod
    def data(values: Mapping[str, Any]) -> dict[str, Any]:
        return {**(values.get("metadata") or {}), **values["fields"]}
