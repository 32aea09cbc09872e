"""Scenario states of HELM (scenario_state.json): the requests to one model, and what it answered. https://crfm-helm.readthedocs.io"""

from collections.abc import Iterator, Mapping
from typing import Any

NAME = "a scenario state of HELM"


def is_file(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("request_states"), list) and isinstance(value.get("adapter_spec"), Mapping)


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
