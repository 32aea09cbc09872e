"""Files that the pages of the documentation tell readers to have."""

import json

from tests.docs.pages import FENCE, PAGES

TUTORIAL = FENCE.findall(PAGES["tutorial/evaluate-a-checkpoint"].text)
(FACTS,) = (code for language, _, code in TUTORIAL if language == "json")
FIELDS = json.loads(next(code for language, _, code in TUTORIAL if language == "text"))


def outputs_of(name, n=20):
    return [dict.fromkeys(FIELDS, f"The {name} answer {i}.") | {"prompt": f"Question {i}?"} for i in range(n)]


def as_lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def write_samples(folder):
    """Write outputs of two systems, in a file each and in one, and what annotators read about the researchers."""
    for name in ("new", "old"):
        (folder / f"{name}.jsonl").write_text(as_lines(outputs_of(name)))
    both = [row | {"system": name} for name in ("new", "old") for row in outputs_of(name)]
    (folder / "outputs.jsonl").write_text(as_lines(both))
    (folder / "facts.json").write_text(FACTS)
