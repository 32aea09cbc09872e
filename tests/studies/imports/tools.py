"""Files of evaluation tools, made by hand in the form that the tool documents."""

import io
import json
import zipfile

INSPECT = {
    "version": 2,
    "status": "success",
    "eval": {"model": "openai/small", "task": "facts"},
    "plan": {"steps": []},
    "samples": [
        {
            "id": number,
            "epoch": epoch,
            "input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": f"Question {number}?"}]
            if number == 2
            else f"Question {number}?",
            "target": "yes",
            "output": {
                "choices": [
                    {
                        "message": {
                            "role": "assistant",
                            "content": [{"type": "text", "text": f"Answer {number}.{epoch}"}],
                        }
                    }
                ]
            },
            "store": {"not a number": float("nan")},
        }
        for number in (1, 2)
        for epoch in (1, 2)
    ],
    "reductions": [{"scorer": "match", "samples": []}],
}
INSPECT_OUTPUTS = {("openai/small", str(n), e - 1): f"Answer {n}.{e}" for n in (1, 2) for e in (1, 2)}


def eval_archive(log=INSPECT) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("_journal/start.json", json.dumps({"eval": log["eval"]}))
        for sample in log["samples"]:
            file.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
        file.writestr("header.json", json.dumps({"eval": log["eval"]}))
    return out.getvalue()
