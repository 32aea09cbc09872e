"""Reference numbers, each file headed by where they come from."""

import json
from typing import Any

from tests import ROOT

FOLDER = ROOT / "tests" / "golden"


def golden(name: str) -> dict[str, Any]:
    """The numbers of tests/golden/stats_<name>.json."""
    numbers = json.loads((FOLDER / f"stats_{name}.json").read_text())
    assert numbers["source"]
    return numbers
