"""Tasks of Label Studio."""

from collections.abc import Iterator, Mapping
from typing import Any

from studies.stimuli.lines import RowRefused

from .spans import mark_rows
from .tasks import answer_rows, person_name, ranked_rows, task_key, text_rows


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
        is_bare = values.keys() <= {"id", "data", "meta"}
        has_task = is_bare or bool({"annotations", "predictions", "completions"} & values.keys())
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
            said = {"annotator": person_name(person), "time": annotation.get("created_at") or ""}
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
                    places = ((str(system), place) for place, system in enumerate(ranked, 1))
                    for answer in ranked_rows(key, region["from_name"], places):
                        yield said | answer
                    continue
                if kind not in LabelStudio.NAME_OF_VALUE:
                    raise RowRefused(
                        "annotations",
                        f"has an annotation of the type “{kind}”, which heval cannot hold. Remove it from the file.",
                    )
                question, found = region["from_name"], region["value"][LabelStudio.NAME_OF_VALUE[kind]]
                if kind == "textarea":
                    found = "\n".join(found) if isinstance(found, list) else found
                for answer in answer_rows(key, data, question, found, state, kind if kind == "textarea" else ""):
                    yield said | answer


def _words(value: Mapping[str, Any]) -> list[str]:
    """Return the words that a region of Label Studio gives: labels, options, or a number of stars."""
    found: Any = next(
        (value[name] for name in ("labels", "hypertextlabels", "choices", "rating", "number") if name in value), []
    )
    return [str(one) for one in (found if isinstance(found, list) else [found])]
