"""What of a decision's evidence goes with the answers of somebody who leaves."""

from collections.abc import Mapping
from typing import Any


def forgotten(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """The evidence without what the person answered: for whoever leaves a study that deletes ratings."""
    return {name: value for name, value in evidence.items() if name != "failed_checks"}
