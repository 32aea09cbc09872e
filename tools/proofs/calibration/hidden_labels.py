"""Hidden labels of HANNA: do intervals of people and judges hold the mean of all labels, and how many labels does a judge save?

``python -m tools.proofs.calibration.hidden_labels`` needs the file of real labels beside the repository. It hides all but 100 to 1,000 labels of 1,056 stories, one
label each, in 500 draws for each judge and criterion, and stores the numbers in tests/golden/hidden_labels.json. The file does not
say who gave a label, so stories are the only sample.
"""

import argparse
import csv
import gzip
import itertools
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np

from analysis.stats.judge_assisted import prediction_powered_mean
from tests import ROOT

RECORD = ROOT / "tests" / "golden" / "hidden_labels.json"
FILE = ROOT.parent / "shared" / "data" / "hanna_judges.csv.gz"
CRITERIA = ("relevance", "coherence", "empathy", "surprise")
PEOPLE = ("human1", "human2", "human3")
DRAWS, FEWEST, MOST = 500, 100, 1000


@cache
def stories(path: Path = FILE) -> Mapping[str, Mapping[str, np.ndarray]]:
    """Return the columns of the file by criterion: people's labels, judges' and metrics' scores."""
    with gzip.open(path, "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        criterion: {
            name: np.array([float(row[name] or "nan") for row in rows if row["criterion"] == criterion])
            for name in rows[0]
            if name not in ("system", "prompt", "criterion")
        }
        for criterion in CRITERIA
    }


def judges(path: Path = FILE) -> list[str]:
    """Return the names of the judges and metrics that score every story."""
    columns = stories(path)[CRITERIA[0]]
    return [name for name, scores in columns.items() if name not in PEOPLE and not np.isnan(scores).any()]


def measured(criterion: str, names: Sequence[str], draws: int = DRAWS, path: Path = FILE) -> dict:
    """Return how often the intervals hold the mean of all labels, and what the judges save."""
    columns = stories(path)[criterion]
    labels, scores = (np.stack([columns[name] for name in some], axis=1) for some in (PEOPLE, names))
    truth, n_stories = float(labels.mean()), len(labels)
    rng = np.random.default_rng(int(sha256(f"{criterion} {' '.join(names)}".encode()).hexdigest()[:12], 16))
    held, widths, ratios, saved = [], [], [], []
    for _ in range(draws):
        shown = rng.permutation(n_stories)[: rng.integers(FEWEST, MOST + 1)]
        values = labels[shown, rng.integers(0, 3, len(shown))]
        found = prediction_powered_mean(values, None, shown, judges=scores)
        human, combined = found.human.interval, found.combined.interval
        held.append([human.low <= truth <= human.high, combined.low <= truth <= combined.high])
        widths.append((combined.high - combined.low) / (human.high - human.low))
        ratios.append(found.saved.se_ratio)
        saved.append(found.saved.labels_saved / found.saved.n_labels)
    alone, both = np.mean(held, axis=0)
    return {
        "criterion": criterion,
        "judges": list(names),
        "draws": draws,
        "people_alone": float(alone),
        "with_judges": float(both),
        "widest": round(float(np.max(widths)), 4),
        "se_ratio": round(float(np.mean(ratios)), 4),
        "saved_for_each_label": round(float(np.mean(saved)), 4),
    }


def main() -> None:
    """Measure every judge for every criterion, and the five language models with their first prompt together."""
    arguments = argparse.ArgumentParser(prog="python -m tools.proofs.calibration.hidden_labels")
    arguments.add_argument("--processes", type=int, default=2)
    arguments.add_argument("--file", type=Path, default=FILE)
    given = arguments.parse_args()
    names = judges(given.file)
    alone = [(name,) for name in names]
    together = tuple(name for name in names if name.endswith("_p1"))
    cases = list(itertools.product(CRITERIA, [*alone, together]))
    rows = []
    with ProcessPoolExecutor(given.processes) as pool:
        for row in pool.map(measured, *zip(*cases, strict=True), itertools.repeat(DRAWS), itertools.repeat(given.file)):
            rows.append(row)
            print(json.dumps(row), flush=True)
    source = "python -m tools.proofs.calibration.hidden_labels; fixed seeds, one for each row"
    RECORD.write_text(json.dumps({"source": source, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
