"""Score the texts of a study by a metric that needs a dictionary or a model, on a machine of your own, with the network.

python other_metrics.py meteor texts.jsonl scores.csv       pip install nltk && python -m nltk.downloader wordnet
python other_metrics.py bertscore texts.jsonl scores.csv    pip install bert-score
python other_metrics.py bleurt texts.jsonl scores.csv       BLEURT and the folder BLEURT-20 of its checkpoint, from its own page
python other_metrics.py comet texts.jsonl scores.csv        pip install unbabel-comet

The last line that it prints is the version to enter at the upload.
"""

import csv
import json
import re
import sys
from importlib import metadata


def meteor(rows):
    from nltk.corpus import wordnet
    from nltk.translate.meteor_score import meteor_score

    def words(text):
        return re.findall(r"\w+|[^\w\s]", text)

    scores = [meteor_score([*map(words, row["references"])], words(row["text"]), wordnet=wordnet) for row in rows]
    return scores, f"nltk {metadata.version('nltk')}, WordNet {wordnet.get_version()}"


def bertscore(rows):
    from bert_score import score

    texts, references = [row["text"] for row in rows], [row["references"] for row in rows]
    (_, _, f1), version = score(texts, references, lang=rows[0]["language"] or "en", return_hash=True)
    return f1.tolist(), version


def bleurt(rows):
    from bleurt.score import BleurtScorer

    scorer = BleurtScorer("BLEURT-20")
    return best_of_references(
        rows,
        lambda pairs: scorer.score(
            references=[reference for _, reference in pairs], candidates=[row["text"] for row, _ in pairs]
        ),
    ), "BLEURT-20"


def comet(rows):
    from comet import download_model, load_from_checkpoint

    name = "Unbabel/wmt22-comet-da"
    model = load_from_checkpoint(download_model(name))
    return best_of_references(
        rows,
        lambda pairs: (
            model.predict(
                [{"src": row["source"], "mt": row["text"], "ref": reference} for row, reference in pairs],
                batch_size=8,
                gpus=0,
            ).scores
        ),
    ), f"{name}, unbabel-comet {metadata.version('unbabel-comet')}"


def best_of_references(rows, score):
    pairs = [(row, reference) for row in rows for reference in row["references"]]
    scores = iter(score(pairs))
    return [max(next(scores) for _ in row["references"]) for row in rows]


if __name__ == "__main__":
    metric, source, target = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        outputs = [row for row in map(json.loads, file) if row["references"]]
    scores, version = {"meteor": meteor, "bertscore": bertscore, "bleurt": bleurt, "comet": comet}[metric](outputs)
    with open(target, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("system", "prompt", "sample", metric))
        writer.writerows(
            (row["system"], row["prompt"], row["sample"], score) for row, score in zip(outputs, scores, strict=True)
        )
    print(f"Version: {version}")
