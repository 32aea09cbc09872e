"""The demo study: four programs and a human author continue the openings of fables.

`demo.jsonl` has the texts, one prompt a line. `tools/demo_texts` made them, and says where the fables come from: a
translation of 1867, which is in the public domain.
"""

import json
from importlib.resources import files
from typing import Any

# Each is expected to be preferred to the one before it.
SYSTEMS = ("order-1", "order-2", "order-3", "order-5", "human")


def load_demo_texts() -> list[dict[str, Any]]:
    """Key, source, prompt and the outputs by system of each prompt."""
    lines = files(__name__).joinpath("demo.jsonl").read_text(encoding="ascii").splitlines()
    return [json.loads(line) for line in lines]
