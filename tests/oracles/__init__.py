"""The statistics against R. ``Rscript tests/oracles/reference.R`` writes the numbers; the tests only read them."""

import json
from typing import Any

import numpy as np

from tests import ROOT

# Two programs that compute the same formula, or the same maximum, agree to about this share.
EXACT = 1e-8


def reference(name: str) -> dict[str, Any]:
    """The numbers of one section, with the columns of its data as arrays."""
    numbers = json.loads((ROOT / "tests" / "golden" / "r_reference.json").read_text())
    assert numbers["source"]
    section = numbers[name]
    if "data" in section:
        section["data"] = {column: np.array(values) for column, values in section["data"].items()}
    return section
