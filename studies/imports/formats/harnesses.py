"""What evaluation harnesses write: scenario states of HELM, samples of lm-evaluation-harness, instances of Every Eval Ever."""

from collections.abc import Iterator, Mapping
from typing import Any

from studies.stimuli.lines import UnreadableFile

from .conversations import conversation, is_messages, last_text


class Helm:
    """scenario_state.json: the requests to one model, and what it answered. https://crfm-helm.readthedocs.io"""

    NAME = "a scenario state of HELM"

    @staticmethod
    def is_file(value: Mapping[str, Any]) -> bool:
        return isinstance(value.get("request_states"), list) and isinstance(value.get("adapter_spec"), Mapping)

    @staticmethod
    def rows_of_file(value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        spec = value["adapter_spec"]
        for state in value["request_states"]:
            instance, request = state.get("instance") or {}, state.get("request") or {}
            completions = (state.get("result") or {}).get("completions") or [{}]
            asked = instance.get("input") or {}
            yield {
                "prompt_key": str(instance.get("id", "")),
                "prompt_text": asked.get("text") or request.get("prompt") or "",
                "system": spec.get("model") or request.get("model") or spec.get("model_deployment") or "",
                "sample": int(state.get("train_trial_index") or 0),
                "text": completions[0].get("text", ""),
                "domain": str(instance.get("split") or "")[:50],
            }


class LmEval:
    """samples_TASK_TIME.jsonl: one model's answers to a task. The file does not name the model, but heval's client can, as ``system``."""

    NAME = "samples of lm-evaluation-harness"

    @staticmethod
    def is_row(values: Mapping[str, Any]) -> bool:
        return "doc_id" in values and ("resps" in values or "filtered_resps" in values)

    @staticmethod
    def rows_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        row = {"prompt_key": str(values["doc_id"]), "prompt_text": _prompt(values)}
        text = _first_text(values.get("resps") or values.get("filtered_resps"))
        if system := values.get("system"):
            yield row | {"system": system, "text": text}
            return
        row["output"] = text
        target = values.get("target")
        if isinstance(target, str) and target.strip():
            row["reference"] = target.strip()
        yield row


class EveryEvalEver:
    """Instances of Every Eval Ever: one model's answer to one sample. A sample that has several scores is one output."""

    NAME = "instances of Every Eval Ever; scores were left out"

    @staticmethod
    def is_row(values: Mapping[str, Any]) -> bool:
        return {"schema_version", "evaluation_id", "model_id", "sample_id", "input"} <= values.keys()

    @staticmethod
    def rows_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        messages, output = values.get("messages"), values.get("output")
        task = str(values.get("evaluation_name") or "")
        place = (values["evaluation_id"], task, values["model_id"], str(values["sample_id"]))
        # One evaluation has a row for each score of an instance.
        first = state.setdefault("evaluations", {}).setdefault(place[1:], values["evaluation_id"])
        if first != values["evaluation_id"]:
            raise UnreadableFile(
                None,
                f"The file has two evaluations of “{values['model_id']}” with sample {place[3]}: “{first}” and "
                f"“{values['evaluation_id']}”. Send a file for one of them.",
            )
        if place in state.setdefault("seen", set()):
            return
        state["seen"].add(place)
        row = {
            "prompt_key": str(values["sample_id"]),
            "prompt_text": values["input"]["raw"],
            "system": values["model_id"],
        }
        row["domain"] = task[:50]
        if is_messages(messages):
            yield row | {
                "prompt_text": conversation(messages) or row["prompt_text"],
                "text": last_text(messages, "assistant"),
            }
        for number, text in enumerate((output or {}).get("raw") or []):
            yield row | {"sample": number, "text": text}


class EveryEvalEverSummary:
    """The summary of an evaluation: scores of a model, without what it wrote."""

    NAME = "a summary of Every Eval Ever"

    @staticmethod
    def is_file(value: Mapping[str, Any]) -> bool:
        return {"schema_version", "evaluation_id", "evaluation_results"} <= value.keys()

    @staticmethod
    def rows_of_file(value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        raise UnreadableFile(
            None,
            "The file is a summary of Every Eval Ever, which has scores and no outputs. Send the file of its instances (.jsonl).",
        )


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
