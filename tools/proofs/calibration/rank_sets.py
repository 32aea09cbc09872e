"""How often the rank sets of equal systems exclude equality, for each kind of answers that a protocol ranks.

    python -m tools.proofs.calibration.rank_sets [--studies 2000] [--cell NAME] [--reports 60]

Each study draws people and prompts anew; systems are equal on average, but each person has a leaning and each prompt an effect on each
system. The sets come from the functions that reports use. A cell that is stored with as many studies is not drawn again. The numbers lie in
tests/golden/rank_sets.json, with the share of the same sets over people only, which holds for exactly these prompts. With ``--reports``, so many whole
studies of two equal systems go from a file of answers to the report, and the table of systems is compared with the sentence beside it.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from scipy import special

from analysis.stats import ranks
from analysis.stats.best_worst import maxdiff_score_rows
from analysis.stats.davidson import fit_davidson
from tests import ROOT

from . import studies
from .study_cells import StudyCell

RECORD = ROOT / "tests" / "golden" / "rank_sets.json"
SOURCE = "python -m tools.proofs.calibration.rank_sets; a fixed seed for each cell"


@dataclass(frozen=True, slots=True)
class RankCell:
    """Answers of one protocol: `people` judge all `systems` for `each` of the `prompts`. Of SPA, prompts are batches."""

    protocol: str
    people: int
    prompts: int
    systems: int
    each: int
    sd_people: float = 0.3
    sd_prompts: float = 0.6

    @property
    def name(self) -> str:
        return f"{self.protocol}, {self.people} people, {self.each} of {self.prompts} prompts, {self.systems} systems"


FEW = ((20, 30, 3, 30), (40, 10, 3, 10), (40, 7, 6, 7), (60, 10, 4, 3))
RATED = (*FEW, (20, 20, 6, 20), (40, 5, 3, 5), (10, 10, 4, 10), (20, 100, 4, 10), (6, 60, 4, 20))
CELLS = (
    *(RankCell("rating", *design) for design in RATED),
    *(RankCell(protocol, *design) for protocol in ("ranking", "marks", "best_worst") for design in FEW),
    # Boards: so many labels of each output, by people drawn at random.
    *(
        RankCell("board", people, prompts, 4, labels)
        for prompts, labels, people in ((40, 2, 30), (100, 1, 30), (20, 5, 12), (15, 20, 30))
    ),
    *(RankCell("spa", people, batches, 4, 1) for people, batches in ((40, 10), (60, 5), (80, 20))),
)


REPORTED = tuple(StudyCell(protocol, *size) for protocol in ("rating", "ranking") for size in ((20, 30), (40, 10)))


def worths(cell: RankCell, rng: np.random.Generator):
    """Latent worths (rows, systems) of judged sets, and the person and prompt of each."""
    chosen = np.concatenate([rng.permutation(cell.prompts)[: cell.each] for _ in range(cell.people)])
    who = np.repeat(np.arange(cell.people), cell.each)
    k = cell.systems
    worth = cell.sd_people * rng.normal(size=(cell.people, k))[who]
    worth = worth + cell.sd_prompts * rng.normal(size=(cell.prompts, k))[chosen] + rng.normal(size=(len(who), k))
    # What a person and a prompt do to all systems alike.
    alike = 0.5 * rng.normal(size=cell.people)[who] + 0.5 * rng.normal(size=cell.prompts)[chosen]
    return worth + alike[:, None], who, chosen


def rating_values(worth, rng):
    return np.clip(np.round(3 + worth), 1, 5)


def ranking_values(worth, rng):
    return -(1.0 + np.argsort(np.argsort(-worth, axis=1), axis=1))


def marks_values(worth, rng):
    return -(rng.poisson(np.exp(0.2 - 0.5 * worth)) * rng.choice([1, 5], size=worth.shape, p=[0.75, 0.25])).astype(
        float
    )


def best_worst_values(worth, rng):
    """The score of each system in an answer: 1 the best, -1 the worst of the set, 0 between; as the report's rows."""
    best, worst = worth.argmax(axis=1), worth.argmin(axis=1)
    sets = np.tile(np.arange(worth.shape[1]), (len(worth), 1))
    rows, systems, scores = maxdiff_score_rows(sets, best, worst, n_systems=worth.shape[1])
    values = np.empty_like(worth)
    values[rows, systems] = scores
    return values


VALUES: dict[str, Callable] = {
    "rating": rating_values,
    "ranking": ranking_values,
    "marks": marks_values,
    "best_worst": best_worst_values,
}


def excludes_equality(sets: ranks.RankSets) -> bool | None:
    """Whether some system is shown to be below another, although all are equal; None without sets."""
    return None if sets.low is None else max(sets.low) > 1


def study(cell: RankCell, rng: np.random.Generator) -> tuple[bool | None, bool | None]:
    """Whether the sets about people and prompts, and those about people only, exclude equality.

    SPA has no rank sets: whether the interval of a strength against the reference excludes 0.
    """
    if cell.protocol == "spa":
        return stated_study(cell, rng)
    if cell.protocol == "board":
        rows, prompts = board(cell, rng)
        both = ranks.rank_confidence_sets_from_rows(*rows, prompts, population="people_and_prompts")
        return excludes_equality(both), excludes_equality(ranks.rank_confidence_sets_from_rows(*rows))
    worth, who, prompts = worths(cell, rng)
    k = cell.systems
    rows = VALUES[cell.protocol](worth, rng).ravel(), np.repeat(who, k), np.tile(np.arange(k), len(who))
    both = ranks.rank_confidence_sets_from_rows(*rows, np.repeat(prompts, k), population="people_and_prompts")
    return excludes_equality(both), excludes_equality(ranks.rank_confidence_sets_from_rows(*rows))


def board(cell: RankCell, rng: np.random.Generator):
    """Answers about equal systems (values, annotators, systems), and the prompt of each."""
    k, labels = cell.systems, cell.each
    prompt = np.repeat(np.arange(cell.prompts), k * labels)
    system = np.tile(np.repeat(np.arange(k), labels), cell.prompts)
    who = np.concatenate([rng.permutation(cell.people)[:labels] for _ in range(cell.prompts * k)])
    values = 0.15 * rng.normal(size=cell.prompts)[prompt] + 0.08 * rng.normal(size=cell.people)[who]
    values = values + 0.15 * rng.normal(size=(cell.prompts, k))[prompt, system] + 0.15 * rng.normal(size=len(prompt))
    return (values, who, system), prompt


def stated_study(cell: RankCell, rng: np.random.Generator) -> tuple[bool | None, bool | None]:
    """The same of stated chances about all pairs, in both orders. A batch moves the answers of all who read it."""
    k, batch = cell.systems, np.arange(cell.people) % cell.prompts
    worth = 0.3 * rng.normal(size=(cell.people, k)) + 0.3 * rng.normal(size=(cell.prompts, k))[batch]
    x, y = np.nonzero(~np.eye(k, dtype=bool))
    chances = special.expit(worth[:, x] - worth[:, y] + 0.3 * rng.normal(size=(cell.people, len(x))))
    who, pair = (one.ravel() for one in np.indices(chances.shape))
    rows = x[pair], y[pair], chances.ravel(), who
    both, people = (
        fit_davidson(*rows, batches, n_systems=k, ties="half").difference(1, 0).interval
        for batches in (batch[who], None)
    )
    return tuple(None if one is None else not one.low <= 0 <= one.high for one in (both, people))


def measured(cell: RankCell, studies: int) -> dict:
    rng = np.random.default_rng(int(sha256(cell.name.encode()).hexdigest()[:12], 16))
    found = [study(cell, rng) for _ in range(studies)]
    both, people = zip(*found, strict=True)
    return {
        "cell": cell.name,
        "protocol": cell.protocol,
        "studies": studies,
        "without_sets": both.count(None),
        "excludes_equality": both.count(True),
        "people_only": people.count(True),
    }


def reported(cell: StudyCell, n: int) -> dict:
    """How often the table of systems separates two equal systems, and how often it does so beside a sentence that leaves them open."""
    from django.db import transaction

    separated = contradicted = 0
    for seed in range(n):
        rng = np.random.default_rng([int(sha256(cell.name.encode()).hexdigest()[:8], 16), seed, 1])
        with transaction.atomic():
            study = studies.drafted(cell)
            report = studies.import_and_report(study, studies.answer_rows(rng, cell, study))
            transaction.set_rollback(True)
        (sets,) = [one["other_results"]["ranks"] for one in report["blocks"] if "ranks" in (one["other_results"] or {})]
        is_separated = max(sets["low"]) > 1
        separated += is_separated
        contradicted += is_separated and not studies.outcome_of(report).is_claim
    return {"cell": cell.name, "studies": n, "excludes_equality": separated, "beside_an_open_sentence": contradicted}


def most(studies: int) -> float:
    """The largest number of studies whose sets may exclude equality: 6 %, and two Monte-Carlo standard errors."""
    return studies * (0.06 + 2 * np.sqrt(0.06 * 0.94 / studies))


def stored(kind: str = "rows") -> dict[str, dict]:
    rows = json.loads(RECORD.read_text(encoding="utf-8")).get(kind, []) if RECORD.exists() else []
    return {row["cell"]: row for row in rows}


def store(rows: dict[str, dict], reports: dict[str, dict]) -> None:
    kept = [rows[one.name] for one in CELLS if one.name in rows]
    whole = [reports[one.name] for one in REPORTED if one.name in reports]
    record = {"source": SOURCE, "rows": kept, "reports": whole}
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.proofs.calibration.rank_sets")
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--cell", default="", help="a part of the name of a cell; by default all")
    parser.add_argument("--reports", type=int, default=0, help="whole studies of each design, instead of functions")
    given = parser.parse_args()
    rows, reports = stored(), stored("reports")
    if given.reports:
        from tests.golden_site.stored import at_site

        at_site()
        from django.db import connection

        connection.creation.create_test_db(verbosity=0)
        for cell in REPORTED:
            if given.cell in cell.name and reports.get(cell.name, {}).get("studies") != given.reports:
                row = reports[cell.name] = reported(cell, given.reports)
                print(row, flush=True)
                store(rows, reports)
        return
    for cell in CELLS:
        if given.cell not in cell.name or rows.get(cell.name, {}).get("studies") == given.studies:
            continue
        row = rows[cell.name] = measured(cell, given.studies)
        print(
            f"{cell.name}: {row['excludes_equality']} of {given.studies} (at most {most(given.studies):.0f}); over people only {row['people_only']}",
            flush=True,
        )
        store(rows, reports)


if __name__ == "__main__":
    main()
