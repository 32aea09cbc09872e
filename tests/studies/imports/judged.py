"""Files of votes, ratings and marks that people gave elsewhere, made by hand in the form that each tool documents."""

import json

from tests.studies.imports.tools import MQM, lines


def said(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}


def talk(*texts: str) -> list[dict[str, str]]:
    return [said(("user", "assistant")[n % 2], text) for n, text in enumerate(texts)]


ARENA = lines(
    *(
        {
            "question_id": f"{n:032x}", "model_a": a, "model_b": b, "winner": winner, "judge": f"arena_user_{n % 2}",
            "conversation_a": talk(f"Say {n}.", f"{a} says {n}."), "conversation_b": talk(f"Say {n}.", f"{b} says {n}."),
            "turn": 1, "anony": True, "language": "English", "tstamp": 1682351591.1322 + n,
        }
        for n, (a, b, winner) in enumerate(
            [("koala", "alpaca", "model_a"), ("alpaca", "koala", "model_a"), ("koala", "alpaca", "tie"), ("koala", "alpaca", "tie (bothbad)")]
        )
    )
)  # fmt: skip
ARENA_VOTES = {
    ("0" * 31 + "0", "0", "koala"),
    ("0" * 31 + "1", "1", "alpaca"),
    ("0" * 31 + "2", "0", "tie"),
    ("0" * 31 + "3", "1", "tie"),
}
MT_JUDGED = lines(
    *(
        {
            "question_id": 81, "model_a": "gpt-4", "model_b": "vicuna", "winner": winner, "judge": judge, "turn": turn,
            "conversation_a": talk("Compose.", "A1.", "Rewrite.", "A2."), "conversation_b": talk("Compose.", "B1.", "Rewrite.", "B2."),
        }
        for judge, turn, winner in (("expert_0", 1, "model_a"), ("expert_0", 2, "model_b"), ("author_1", 1, "tie"), ("author_1", 2, "model_a"))
    )
)  # fmt: skip
ALPACA = json.dumps(
    [
        {
            "instruction": f"Say {n}.", "output_1": f"One says {n}.", "generator_1": "one", "output_2": f"Two says {n}.", "generator_2": "two",
            "annotator": "crowd", "annotator_index": index, "preference": preference, "dataset": "d",
        }
        for n, index, preference in ((0, 3, 1), (0, 4, 2.0), (1, 3, 1.5), (1, 4, None))
    ]
).encode()  # fmt: skip
LABEL_STUDIO = json.dumps(
    [
        {
            "id": n, "project": 7, "predictions": [], "data": {"prompt": "Say it.", "model": model, "response": f"{model} says {n}."},
            "annotations": [
                {
                    "id": 100 * n + person, "completed_by": {"id": person, "email": "x@example.org"} if person == 1 else person,
                    "was_cancelled": person == 3, "created_at": "2026-03-09T21:52:49.513742Z",
                    "result": [
                        {"id": "a", "from_name": "overall", "to_name": "txt", "type": "rating", "value": {"rating": n + person}},
                        {"id": "b", "from_name": "fits", "to_name": "txt", "type": "choices", "value": {"choices": ["yes"]}},
                        {"id": "c", "from_name": "why", "to_name": "txt", "type": "textarea", "value": {"text": ["Short.", "Good."]}},
                    ],
                }
                for person in (1, 2, 3)
            ],
        }
        for n, model in ((1, "ada"), (2, "bo"))
    ]
).encode()  # fmt: skip
ARGILLA = json.dumps(
    [
        {
            "id": f"r{n}", "fields": {"prompt": f"Say {n}.", "response": f"ada says {n}."}, "metadata": {"model": "ada"},
            "suggestions": {"overall": {"value": 1, "score": None, "agent": "llm"}}, "vectors": {}, "status": "completed",
            "responses": {
                "overall": [
                    {"value": 2 + n, "user_id": "b1f0", "status": "submitted"},
                    {"value": 5, "user_id": "c2f0", "status": "discarded"},
                ],
                "fits": [{"value": "yes", "user_id": "b1f0"}],
            },
        }
        for n in (1, 2)
    ]
).encode()  # fmt: skip
ARGILLA_1 = json.dumps(
    [
        {
            "id": "r1", "fields": {"prompt": "Say 1.", "response": "ada says 1."}, "metadata": {"model": "ada"}, "suggestions": [],
            "responses": [{"user_id": "b1f0", "status": "submitted", "values": {"overall": {"value": 3}}}],
        }
    ]
).encode()  # fmt: skip
POTATO = lines(
    *(
        {
            "user_id": person, "system": "ada", "instance_id": f"i{n}", "displayed_text": f"A text number {n}.", "span_annotations": [],
            "label_annotations": {"overall": {"scale_4": "4"}, "fits": {"yes": True, "no": False}, "why": {"text_box": "It reads well."}},
            "behavioral_data": {"time_spent": 12.5},
        }
        for n in (1, 2)
        for person in ("ann", "ben")
    )
)  # fmt: skip
TALE = "A 😀 tale. It had a end."
# A span, and what was said about it: Label Studio repeats the span's id, and counts as browsers do.
LABEL_STUDIO_SPANS = json.dumps(
    [
        {
            "id": 1, "project": 7, "data": {"prompt_key": "p1", "model": "ada", "response": TALE},
            "annotations": [
                {
                    "id": 5, "completed_by": person, "was_cancelled": False, "created_at": "2026-03-09T21:52:49.513742Z",
                    "result": [
                        {"id": "a", "from_name": "error", "to_name": "txt", "type": "labels", "value": {"start": 18, "end": 19, "text": "a", "labels": ["Style"]}},
                        {"id": "a", "from_name": "how", "to_name": "txt", "type": "choices", "value": {"start": 18, "end": 19, "text": "a", "choices": ["Minor"]}},
                        {"id": "b", "from_name": "error", "to_name": "txt", "type": "labels", "value": {"start": 0, "end": 4, "text": "A 😀", "labels": ["Accuracy/Major"]}},
                    ] if person == 1 else [],
                }
                for person in (1, 2)
            ],
        }
    ]
).encode()  # fmt: skip
LABEL_STUDIO_RANKS = json.dumps(
    [
        {
            "id": 3, "project": 7, "data": {"prompt": "Say it.", "items": [{"id": name, "title": name, "body": f"{name} says it."} for name in ("ada", "bo")]},
            "annotations": [
                {
                    "id": 5, "completed_by": 1, "created_at": "2026-03-09T21:52:49.513742Z",
                    "result": [{"id": "a", "from_name": "place", "to_name": "results", "type": "ranker", "value": {"ranker": {"rank": ["bo", "ada"]}}}],
                }
            ],
        }
    ]
).encode()  # fmt: skip
POTATO_SPANS = lines(
    *(
        {
            "user_id": person, "system": "ada", "instance_id": "p1", "displayed_text": TALE, "label_annotations": {},
            "span_annotations": [{"schema": "error", "name": "Style: minor", "start": 17, "end": 18}] if person == "ann" else [],
        }
        for person in ("ann", "ben")
    )
)  # fmt: skip
# The form that version 2 documents has other names; positions are characters.
POTATO_SPANS_2 = POTATO_SPANS.replace(b'"name"', b'"label"').replace(b'"end": 18}', b'"end": 18, "text": "a"}')


def argilla(data: dict, *responses, **more) -> bytes:
    """A record of Argilla: a list of responses in version 1, and responses by question in version 2."""
    record = {
        "id": "r1",
        "fields": data,
        "metadata": {"prompt_key": "p1"},
        "suggestions": [],
        "responses": [*responses],
    }
    return json.dumps([record | more]).encode()


def argilla_1(question: str, **values) -> list[dict]:
    return [
        {"user_id": person, "status": "submitted", "values": {question: {"value": value}}}
        for person, value in values.items()
    ]


ARGILLA_SPANS = argilla(
    {"response": TALE, "model": "ada"},
    *argilla_1("error", ann=[{"start": 17, "end": 18, "label": "style/minor"}], ben=[]),
)
SAID = {"prompt": "Say it.", "ada": "ada says it.", "bo": "bo says it."}
ARGILLA_RANKS = argilla(SAID, *argilla_1("place", ann=[{"rank": 1, "value": "bo"}, {"rank": 2, "value": "ada"}]))
ARGILLA_RANKS_2 = argilla(
    SAID, suggestions={}, responses={"place": [{"value": ["bo", "ada"], "user_id": "ann", "status": "submitted"}]}
)
DOCCANO_SPANS = lines(
    {"id": "p1", "text": TALE, "system": "ada", "annotator": "ann", "label": [[17, 18, "style/minor"]]},
    {"id": "p1", "text": TALE, "system": "ada", "annotator": "ben", "label": []},
)
DOCCANO = lines(*({"id": n, "text": f"A text number {n}.", "label": ["good"], "Comments": []} for n in (1, 2)))
SUMMEVAL = lines(
    *(
        {
            "id": f"dm-test-{n}", "model_id": model, "decoded": f"{model} sums up {n}.", "filepath": f"cnndm/{n}.story", "text": f"An article {n}.",
            "references": [f"The highlights of {n}.", "Another."],
            "expert_annotations": [{"coherence": 2 + n, "fluency": place} for place in (3, 4, 5)],
            "turker_annotations": [{"coherence": 1, "fluency": 2} for _ in range(5)],
        }
        for n in (1, 2)
        for model in ("M0", "M1")
    )
)  # fmt: skip
WMT_XML = b"""<?xml version='1.0' encoding='utf-8'?>
<dataset id="newstest2021">
  <doc id="talk" origlang="en">
    <src lang="en"><p><seg id="1">Sentence 1.</seg><seg id="2">Cats &amp; dogs.</seg></p></src>
    <ref lang="de" translator="A"><p><seg id="1">Satz 1.</seg><seg id="2">Katzen und Hunde.</seg></p></ref>
    <hyp lang="de" system="A"><p><seg id="1">Ein Satz 1.</seg><seg id="2">Katzen &amp; Hunde.</seg></p></hyp>
    <hyp lang="de" system="B"><p><seg id="1">Der Satz 1.</seg><seg id="2">Katzen, Hunde.</seg></p></hyp>
  </doc>
</dataset>
"""
APPRAISE = b"".join(
    f"engdeu{person},{system},{segment},{kind},eng,deu,{score},talk,{whole},1663000000.1,1663000009.{score}\n".encode()
    for person, system, segment, kind, score, whole in (
        ("01", "A", 1, "TGT", 80, False), ("01", "B", 1, "TGT", 60, False), ("02", "A", 2, "TGT", 90, False),
        ("02", "A", 1, "BAD", 5, False), ("02", "A", 2, "TGT", 70, True),
    )
)  # fmt: skip
EVERY_EVAL = lines(
    *(
        {
            "schema_version": "0.3.0", "evaluation_id": f"facts/{model}/1", "model_id": model, "evaluation_name": "facts", "sample_id": f"s{n}",
            "interaction_type": "single_turn", "input": {"raw": f"Question {n}?", "reference": ["yes"]}, "output": {"raw": [f"{model} answers {n}."]},
            "messages": None, "answer_attribution": [], "evaluation": {"score": 1.0, "is_correct": True},
        }
        for model in ("org/m", "org/n")
        for n in (1, 2)
        for _score in range(2)
    )
)  # fmt: skip
ARENA_OUTPUTS = {(model, f"{n:032x}", 0): f"{model} says {n}." for n in range(4) for model in ("koala", "alpaca")}
# Name of the file, its bytes, and the outputs by system, key and number, as in tools.FILES.
TEXTS = {
    "Arena": ("arena.jsonl", ARENA, ARENA_OUTPUTS),
    "MT-Bench judgements": (
        "human.jsonl",
        MT_JUDGED,
        {("gpt-4", "81", 0): "Turn 1: A1.\n\nTurn 2: A2.", ("vicuna", "81", 0): "Turn 1: B1.\n\nTurn 2: B2."},
    ),
    "AlpacaEval annotations": (
        "annotations.json",
        ALPACA,
        {(name.lower(), n, 0): f"{name} says {n}." for n in (0, 1) for name in ("One", "Two")},
    ),
    "Label Studio": ("project-7.json", LABEL_STUDIO, {("ada", 0, 0): "ada says 1.", ("bo", 0, 0): "bo says 2."}),
    "Argilla": ("records.json", ARGILLA, {("ada", n - 1, 0): f"ada says {n}." for n in (1, 2)}),
    "SummEval": (
        "model_annotations.aligned.jsonl",
        SUMMEVAL,
        {(model, f"dm-test-{n}", 0): f"{model} sums up {n}." for n in (1, 2) for model in ("M0", "M1")}
        | {("reference", f"dm-test-{n}", 0): f"The highlights of {n}." for n in (1, 2)},
    ),
    "WMT": (
        "newstest2021.en-de.all.xml",
        WMT_XML,
        {
            ("reference A", "talk:1", 0): "Satz 1.", ("reference A", "talk:2", 0): "Katzen und Hunde.",
            ("A", "talk:1", 0): "Ein Satz 1.", ("A", "talk:2", 0): "Katzen & Hunde.",
            ("B", "talk:1", 0): "Der Satz 1.", ("B", "talk:2", 0): "Katzen, Hunde.",
        },
    ),
    "Every Eval Ever": (
        "facts_samples.jsonl",
        EVERY_EVAL,
        {(model, f"s{n}", 0): f"{model} answers {n}." for model in ("org/m", "org/n") for n in (1, 2)},
    ),
}  # fmt: skip
# Rankings and spans.
MARKED = {
    "Label Studio, spans": ("a.json", LABEL_STUDIO_SPANS), "Label Studio, ranks": ("a.json", LABEL_STUDIO_RANKS),
    "Potato, spans": ("a.jsonl", POTATO_SPANS), "Potato, spans of version 2": ("a.jsonl", POTATO_SPANS_2),
    "doccano, spans": ("a.jsonl", DOCCANO_SPANS), "Argilla, spans": ("a.json", ARGILLA_SPANS),
    "Argilla, ranks": ("a.json", ARGILLA_RANKS), "Argilla, ranks of version 2": ("a.json", ARGILLA_RANKS_2),
}  # fmt: skip
PROMPTS = {
    "Potato": ("annotated_instances.jsonl", POTATO, {"i1": "A text number 1.", "i2": "A text number 2."}),
    "doccano": ("admin.jsonl", DOCCANO, {"1": "A text number 1.", "2": "A text number 2."}),
}
ANSWERS = {
    "Arena": ("arena.jsonl", ARENA), "MT-Bench judgements": ("human.jsonl", MT_JUDGED), "AlpacaEval annotations": ("annotations.json", ALPACA),
    "Label Studio": ("project-7.json", LABEL_STUDIO), "Argilla": ("records.json", ARGILLA), "Argilla, version 1": ("records.json", ARGILLA_1),
    "Potato": ("annotated_instances.jsonl", POTATO), "SummEval": ("model_annotations.aligned.jsonl", SUMMEVAL), "Appraise": ("scores.csv", APPRAISE),
    "MQM": ("mqm.tsv", MQM.encode()),
}  # fmt: skip
