"""Claims about systems whose prompts belong to groups, such as documents: false claims and coverage.

``python -m tools.proofs.calibration.prompt_groups [--studies N] [--continue]`` simulates studies without a difference in every cell, with the method of the
reports over groups and, for comparison, over prompts as if they were independent. It stores each cell in
tests/golden/prompt_groups.json when it is finished, and goes on there with ``--continue``. Then
``python -m tools.proofs.calibration --page-only`` writes the page again.
"""

import argparse
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np

from tests import ROOT
from tools.proofs.calibration.claims import ClaimCell, answered, limit, misses, reported_curve

RECORD = ROOT / "tests" / "golden" / "prompt_groups.json"
STUDIES = 2000
TRUTH = 0.5  # x and y are exchangeable
# How much a person, a group and a prompt within its group move the latent preference, whose noise has standard deviation 1.
SD_PEOPLE, SD_GROUPS, SD_PROMPTS = 0.3, 0.8, 0.3


@dataclass(frozen=True, slots=True)
class GroupCell:
    """People who each answer about ten prompts, drawn from as many groups as possible, or about all prompts."""

    people: int
    groups: int
    group_size: int
    answers: str
    is_crossed: bool = False

    @property
    def name(self) -> str:
        who = "who answer about all" if self.is_crossed else "who answer about ten"
        return f"{self.people} people {who}, {self.groups} groups of {self.group_size} prompts, {self.answers}"


CELLS = (
    *(
        GroupCell(people, groups, size, answers)
        for (people, groups), size, answers in product(
            ((20, 5), (20, 8), (40, 10), (20, 30)), (4, 10, 20), ("choice", "five points")
        )
    ),
    *(GroupCell(8, groups, 4, answers, True) for groups in (5, 10) for answers in ("choice", "five points")),
)


def simulated(rng: np.random.Generator, cell: GroupCell) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the values, annotators, prompts and groups of one study without a difference."""
    n_prompts = cell.groups * cell.group_size
    group_of = np.arange(n_prompts) // cell.group_size
    judged = [np.arange(n_prompts) if cell.is_crossed else _drawn(rng, cell) for _ in range(cell.people)]
    annotators, prompts = np.repeat(np.arange(cell.people), [len(one) for one in judged]), np.concatenate(judged)
    preference = (
        SD_PEOPLE * rng.normal(size=cell.people)[annotators]
        + SD_GROUPS * rng.normal(size=cell.groups)[group_of[prompts]]
        + SD_PROMPTS * rng.normal(size=n_prompts)[prompts]
        + rng.normal(size=len(prompts))
    )
    scale = ClaimCell(cell.people, n_prompts, "crossed", "equal", 0, 0, False, cell.answers, "answers", 0)
    return answered(rng, scale, preference), annotators, prompts, group_of[prompts]


def _drawn(rng: np.random.Generator, cell: GroupCell, n: int = 10) -> np.ndarray:
    """Return ten prompts that spread over the groups, as the draw of a study does."""
    groups = np.resize(rng.permutation(cell.groups), n)
    places = np.concatenate([rng.permutation(cell.group_size)[: np.sum(groups == one)] for one in np.unique(groups)])
    return np.sort(groups)[: len(places)] * cell.group_size + places


def measure(cell: GroupCell, studies: int) -> dict[str, Any]:
    rng = np.random.default_rng([12, CELLS.index(cell)])
    missed = {"groups": 0, "prompts": 0}
    for _ in range(studies):
        values, annotators, prompts, groups = simulated(rng, cell)
        weights = np.ones(len(values))
        for name, second in (("groups", groups), ("prompts", prompts)):
            missed[name] += int(misses(reported_curve(values, annotators, second, weights), TRUTH))
    return {"cell": asdict(cell), "name": cell.name, "studies": studies, "false_claims": missed}


def broken_cells(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names of the cells in which the method of the reports makes more false claims than the limit allows."""
    return [row["name"] for row in rows if row["false_claims"]["groups"] / row["studies"] > limit(row["studies"])]


def stored_rows() -> list[dict[str, Any]]:
    return json.loads(RECORD.read_text(encoding="utf-8"))["rows"] if RECORD.exists() else []


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m tools.proofs.calibration.prompt_groups")
    arguments.add_argument("--studies", type=int, default=STUDIES)
    arguments.add_argument("--continue", dest="is_continued", action="store_true", help="keep the cells of this size")
    given = arguments.parse_args()
    rows = {row["name"]: row for row in stored_rows()}
    for cell in CELLS:
        if given.is_continued and rows.get(cell.name, {}).get("studies") == given.studies:
            continue
        rows[cell.name] = row = measure(cell, given.studies)
        shares = ", ".join(f"{name} {n / given.studies:.3f}" for name, n in row["false_claims"].items())
        print(f"{shares}  (limit {limit(given.studies):.3f})  {cell.name}", flush=True)
        kept = [rows[each.name] for each in CELLS if each.name in rows]
        source = "python -m tools.proofs.calibration.prompt_groups; a fixed seed for each cell"
        RECORD.write_text(json.dumps({"source": source, "rows": kept}, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
