"""Files as researchers have them, with the names of columns that they gave."""

import json

from studies.stimuli.texts import key_from_text
from tests.studies.stimuli.workbooks import workbook

QUESTIONS = ["What is the capital of France?", "Why is the sky blue, and not green?", "Write a poem about rain in May."]
SAID = {
    "gpt-4o": [f"A long answer of the first model to number {n}." for n in range(3)],
    "my-model": [f"Another answer, by the second model, to {n}." for n in range(3)],
}
EXPECTED = {
    (system, key_from_text(QUESTIONS[n])): text for system, texts in SAID.items() for n, text in enumerate(texts)
}


def wide(names=("prompt", "gpt-4o", "my-model")) -> list[list[str]]:
    return [list(names), *([question, SAID["gpt-4o"][n], SAID["my-model"][n]] for n, question in enumerate(QUESTIONS))]


def csv_of(rows, mark=",") -> bytes:
    return "".join(mark.join(f'"{cell}"' if mark in cell else cell for cell in row) + "\n" for row in rows).encode()


def long(prompt, system, output, **more) -> list[dict[str, object]]:
    return [
        {prompt: question, system: name, output: texts[n]} | more
        for n, question in enumerate(QUESTIONS)
        for name, texts in SAID.items()
    ]


def lines(rows) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


# Files of a first-time user and of public tools: name, bytes.
FILES = {
    "a column for each system": ("own.csv", csv_of(wide())),
    "semicolons, byte order mark": ("own.csv", b"\xef\xbb\xbf" + csv_of(wide(), ";")),
    "tabs": ("own.tsv", csv_of(wide(("question", "gpt-4o", "my-model")), "\t")),
    "columns named as outputs": ("own.csv", csv_of(wide(("Instruction", "gpt-4o_output", "my-model output")))),
    "row numbers of pandas": ("own.csv", csv_of([[str(n - 1) if n else "", *row] for n, row in enumerate(wide())])),
    "a workbook": ("own.xlsx", workbook({"Sheet1": wide()})),
    "lines with a model": ("own.jsonl", lines(long("instruction", "model", "output"))),
    "a list, as AlpacaEval": (
        "outputs.json",
        json.dumps(long("instruction", "generator", "output", dataset="helpful_base")).encode(),
    ),
    "a list inside of an object": (
        "own.json",
        json.dumps({"data": long("query", "system", "response")}, indent=1).encode(),
    ),
    "long, in a CSV": (
        "own.csv",
        csv_of([["question", "model_name", "answer"], *map(list, (row.values() for row in long("q", "m", "a")))]),
    ),
}
