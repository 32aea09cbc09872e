"""The demo study: four programs and a human author continue the openings of fables.

`demo.jsonl` has the texts, one prompt per line. `tools/demo_texts` created them and names the source: a translation of
1867 in the public domain.
"""

import json
from importlib.resources import files
from typing import Any

# Each should be preferred to the one before it.
SYSTEMS = ("order-1", "order-2", "order-3", "order-5", "human")


def load_demo_texts() -> list[dict[str, Any]]:
    """Return key, source, prompt and outputs by system of each prompt."""
    lines = files(__name__).joinpath("demo.jsonl").read_text(encoding="ascii").splitlines()
    return [json.loads(line) for line in lines]
