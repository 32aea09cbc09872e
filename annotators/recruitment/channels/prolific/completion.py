"""Completion codes: what Prolific does when a person enters one."""

from collections.abc import Mapping
from typing import Any

from .money import to_minor_units

# Prolific's name for each way to end. Prolific also accepts custom labels.
CODE_TYPES = {
    "complete": "COMPLETED", "screened_out": "SCREENED_OUT", "failed_checks": "FAILED_ATTENTION_CHECK", "no_consent": "NO_CONSENT",
    "full": "NO_PLACE_LEFT", "withdrawn": "WITHDREW", "closed": "STUDY_CLOSED", "done": "TOOK_PART_BEFORE",
}  # fmt: skip


def completion_codes(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each code of a recruitment with the action that Prolific takes when it is entered."""
    codes = []
    for outcome, code_type in CODE_TYPES.items():
        action: dict[str, Any] = {"action": "MANUALLY_REVIEW"}
        if outcome == "complete" and settings.get("review") == "automatic":
            action = {"action": "AUTOMATICALLY_APPROVE"}
        elif outcome == "screened_out" and settings.get("screen_out_pay"):
            action = {
                "action": "FIXED_SCREEN_OUT_PAYMENT",
                "fixed_screen_out_reward": to_minor_units(settings["screen_out_pay"]),
                "slots": int(settings["screen_out_places"]),
            }
        if code := settings.get(f"code_{outcome}"):
            codes.append({"code": code, "code_type": code_type, "actor": "participant", "actions": [action]})
    return codes
