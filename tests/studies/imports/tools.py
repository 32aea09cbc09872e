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


def lines(*rows) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


HELM = {
    "adapter_spec": {"model": "org/model-7b", "method": "generation"},
    "request_states": [
        {
            "instance": {"id": f"id{n}", "input": {"text": f"Question {n}?"}, "split": "test", "references": []},
            "train_trial_index": 0,
            "request": {"prompt": f"Examples. Question {n}?", "model": "org/model-7b"},
            "result": {"success": True, "completions": [{"text": f"Answer {n}.", "tokens": []}]},
        }
        for n in (1, 2)
    ],
}
MQM_HEAD = "system\tdoc\tdoc_id\tseg_id\trater\tsource\ttarget\tcategory\tseverity\n"
MQM = MQM_HEAD + "".join(
    f"{system}\ttalk\t1\t{segment}\t{rater}\tSentence {segment}.\t{start}Satz <v>{segment}</v> von {system}.\tStyle\tMinor\n"
    for segment, start in ((1, ""), (2, '"'))
    for system in ("A", "B")
    for rater in ("r1", "r2")
)

# Name of the file, its bytes, and the outputs by system, key and number.
FILES = {
    "a log of Inspect": ("log.json", json.dumps(INSPECT, indent=2).encode(), INSPECT_OUTPUTS),
    "an archive of Inspect": ("log.eval", eval_archive(), INSPECT_OUTPUTS),
    "HELM": ("scenario_state.json", json.dumps(HELM, indent=1).encode(), {("org/model-7b", f"id{n}", 0): f"Answer {n}." for n in (1, 2)}),
    "lm-eval, with lists": (
        "samples_facts_2026.jsonl",
        lines(*(
            {"doc_id": n, "doc": {"q": n}, "target": " yes", "arguments": [[f"Q: {n}?\nA:", {"until": ["\n"]}]], "resps": [[f"Answer number {n} is this."]], "exact_match": 0.0}
            for n in range(3)
        )),
        {("output", str(n), 0): f"Answer number {n} is this." for n in range(3)} | {("reference", str(n), 0): "yes" for n in range(3)},
    ),
    "lm-eval, with objects": (
        "samples_facts_2026.jsonl",
        lines(*(
            {"doc_id": n, "target": "4", "arguments": {"gen_args_0": {"arg_0": f"Q: {n}?", "arg_1": {}}}, "resps": [["Four, of course."]], "filtered_resps": ["4"]}
            for n in range(3)
        )),
        {("output", str(n), 0): "Four, of course." for n in range(3)} | {("reference", str(n), 0): "4" for n in range(3)},
    ),
    "lm-eval, of two models": (
        "samples.jsonl",
        lines(*(
            {"system": system, "doc_id": 1, "target": "4", "arguments": [["Q: 1?", {}]], "resps": [[f"{system} says four."]]}
            for system in ("new", "old")
        )),
        {(system, "1", 0): f"{system} says four." for system in ("new", "old")},
    ),
    "MT-Bench": (
        "model.jsonl",
        lines({"question_id": 81, "answer_id": "x", "model_id": "m", "choices": [{"index": 0, "turns": ["First.", "Second."]}], "tstamp": 1.5}),
        {("m", "81", 0): "Turn 1: First.\n\nTurn 2: Second."},
    ),
    "MQM": (
        "mqm.tsv",
        MQM.encode(),
        {(s, f"talk:{n}", 0): f"{quote}Satz {n} von {s}." for n, quote in ((1, ""), (2, '"')) for s in ("A", "B")},
    ),
    "AlpacaEval": (
        "outputs.json",
        json.dumps([{"instruction": f"Say {n}.", "output": f"It is {n}.", "generator": "one", "dataset": "d"} for n in range(3)]).encode(),
        {("one", n, 0): f"It is {n}." for n in range(3)},
    ),
    "preferences": (
        "dpo.jsonl",
        lines(*(
            {"prompt": f"Say {n}.", "chosen": [{"role": "user", "content": f"Say {n}."}, {"role": "assistant", "content": f"A good answer to {n}."}],
             "rejected": [{"role": "user", "content": f"Say {n}."}, {"role": "assistant", "content": f"A bad answer to {n}."}]}
            for n in range(3)
        )),
        {("chosen", n, 0): f"A good answer to {n}." for n in range(3)} | {("rejected", n, 0): f"A bad answer to {n}." for n in range(3)},
    ),
    "chats": (
        "chats.jsonl",
        lines(*(
            {"id": f"c{n}", "messages": [{"role": "system", "content": "x"}, {"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Yes?"},
                                         {"role": "user", "content": f"Say {n}."}, {"role": "assistant", "content": f"An answer to {n}, as you wish."}]}
            for n in range(3)
        )),
        {("output", f"c{n}", 0): f"An answer to {n}, as you wish." for n in range(3)},
    ),
}  # fmt: skip
