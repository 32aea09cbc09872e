"""Whole studies with a known truth, from the file of answers to the sentences of the report.

A study of one protocol is drafted, its answers are simulated and imported as answers given elsewhere, and the report is
computed. What counts is what its primary sentence claims, and whether the interval beside it contains the truth.

``python -m tools.proofs.calibration.studies --studies N [--cell NAME]`` simulates every cell, or those whose name contains NAME. It
prints a table and stores each cell in tests/golden/studies.json when it is finished, so two processes can share the cells. Then
``python -m tools.proofs.calibration --page-only`` writes the page again.
"""

import argparse
import csv
import json
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tests import ROOT
from tools.proofs.calibration.claims import limit
from tools.proofs.calibration.study_cells import CELLS, StudyCell

if TYPE_CHECKING:
    from studies.models import Study

RECORD = ROOT / "tests" / "golden" / "studies.json"
X, Y = "gpt", "human"
# Where the latent scale is cut into five points.
CUTS = (-1.5, -0.5, 0.5, 1.5)
POINTS = np.arange(-2, 3)
SPA_PROMPTS_PER_BATCH = 4
CATEGORIES = ("accuracy", "fluency", "terms", "style", "coherence", "task")


# Verdicts that claim a difference, and those that claim what a hypothesis by a margin says.
DIFFERENCES = ("different", "different_but_trivial", "noninferior_but_worse", "superior_by_margin", "better", "worse")
CLAIMS_BY_MARGIN = {
    "noninferiority": ("noninferior", "noninferior_but_worse", "better"),
    "superiority_by_margin": ("superior_by_margin",),
}


@dataclass(frozen=True, slots=True)
class StudyOutcome:
    """What the report of one study said: its sentence and verdict, and whether its interval contains the truth.

    ``difference``: the true value less the value that means no difference. ``estimated``: the same of the estimate.
    ``hypothesis``: the claim by a margin that was tested, at whose limit the truth is.
    """

    claim: str
    verdict: str | None
    has_test: bool
    covers: bool | None
    difference: float = 0.0
    estimated: float = 0.0
    warnings: tuple[str, ...] = ()
    hypothesis: str = "difference"

    @property
    def is_claim(self) -> bool:
        return self.verdict in DIFFERENCES

    @property
    def is_false_claim_by_margin(self) -> bool:
        """The report claims that x is not worse, or is better, by more than a margin, although it is not."""
        return self.verdict in CLAIMS_BY_MARGIN.get(self.hypothesis, ())

    @property
    def is_false_claim(self) -> bool:
        """The report claims a difference that does not exist."""
        return self.is_claim and not self.difference

    @property
    def is_wrong_direction(self) -> bool:
        """The report claims the opposite of the true difference."""
        return self.is_claim and self.estimated * self.difference < 0

    @property
    def is_equivalence(self) -> bool:
        """The report claims equivalence; cells with a margin lie beyond it."""
        return self.verdict in ("equivalent", "different_but_trivial")

    @property
    def is_failure(self) -> bool:
        untrue = self.is_false_claim or self.is_wrong_direction or self.is_equivalence or self.is_false_claim_by_margin
        return untrue or self.covers is False


def preferences(rng: np.random.Generator, cell: StudyCell) -> np.ndarray:
    """Return the latent preference for x, shape (people, prompts). Its mean over people and prompts like these is ``shift``."""
    by_prompt = rng.normal(size=(1, cell.prompts))
    if cell.group_size:
        by_prompt = by_prompt[:, np.arange(cell.prompts) // cell.group_size]
    return (
        cell.shift
        + cell.sd_people * rng.normal(size=(cell.people, 1))
        + cell.sd_prompts * by_prompt
        + rng.normal(size=(cell.people, cell.prompts))
    )


@cache
def true_difference(cell: StudyCell, n: int = 1_000_000) -> float:
    """Return the true value on the scale of the report less that of "no difference", from independent people and prompts."""
    if not cell.shift:
        return 0.0  # x and y are exchangeable
    rng = np.random.default_rng(1)
    d = cell.shift + math.sqrt(cell.sd_people**2 + cell.sd_prompts**2 + 1) * rng.normal(size=n)
    if cell.protocol == "relative":
        return float(POINTS[np.searchsorted(CUTS, d)].mean())
    if cell.protocol == "rating":
        q = rng.normal(size=n)
        return float(np.sign(np.searchsorted(CUTS, q + d / 2) - np.searchsorted(CUTS, q - d / 2)).mean() / 2)
    if cell.protocol == "two_choice":
        return float((d > 0).mean() - 0.5)
    raise ValueError(f"{cell.protocol}: no cell has a difference")


def margin_of(cell: StudyCell) -> float | None:
    """Return a margin of three decimals that the true difference just exceeds, or the size of the difference at a limit."""
    if cell.hypothesis != "difference":
        return abs(true_difference(cell))
    return math.floor(1000 * abs(true_difference(cell))) / 1000 if cell.has_margin else None


def drafted(cell: StudyCell) -> "Study":
    from tests import builders

    n_prompts = cell.prompts * (SPA_PROMPTS_PER_BATCH if cell.protocol == "spa" else 1)
    study = builders.draft_study(systems=(X, Y), prompts=n_prompts, target_n=cell.people, consent="", contact="")
    if cell.group_size:
        for number, prompt in enumerate(study.prompts.order_by("key")):
            study.prompts.filter(pk=prompt.pk).update(group=f"document {number // cell.group_size}")
    options: dict[str, Any] = {"position": 1, "m": cell.prompts}
    if cell.protocol == "two_choice":
        builders.add_choice(study, stopping="none", strategy="any", **options)
    elif cell.protocol == "spa":
        # Ratings of the same texts tell which prompts a person read.
        spa = builders.add_spa(study, position=1, m=SPA_PROMPTS_PER_BATCH)
        builders.add_rating(study, position=2, reuses=spa, m=SPA_PROMPTS_PER_BATCH)
    elif cell.protocol == "humanlike":
        builders.add_humanlike(study, keys=("source",), **options)
        study.contrasts.create()  # against chance
    else:
        getattr(builders, f"add_{cell.protocol}")(study, **options)
    if cell.protocol not in ("spa", "humanlike"):
        study.contrasts.all().delete()
        x, y = (study.systems.get(name=name) for name in (X, Y))
        study.contrasts.create(x=x, y=y, estimand=cell.estimand, margin=margin_of(cell), hypothesis=cell.hypothesis)
    if cell.is_lower_better:
        question = study.sections.get().questions.get()
        question.scale |= {"is_lower_better": True}
        question.save()
    return study


def answer_rows(rng: np.random.Generator, cell: StudyCell, study: "Study") -> list[dict[str, Any]]:
    """Return the rows of the file of answers."""
    if cell.protocol == "spa":
        return list(_spa_rows(rng, cell, study))
    latent = preferences(rng, cell)
    quality = rng.normal(size=latent.shape)
    section = study.sections.get()
    question = section.questions.order_by("position").first()
    rows: list[dict[str, Any]] = []
    for person in range(cell.people):
        for prompt in range(cell.prompts):
            row = {"annotator": f"w{person:03}", "section": 1, "question": question.key, "prompt_key": f"p{prompt:03}"}
            d, q = float(latent[person, prompt]), float(quality[person, prompt])
            shown = {"shown:A": X, "shown:B": Y}
            if cell.protocol == "rating":
                for system, worth in ((X, q + d / 2), (Y, q - d / 2)):
                    rows.append(row | {"system": system, "value": 1 + int(np.searchsorted(CUTS, worth))})
            elif cell.protocol == "two_choice":
                rows.append(row | shown | {"chosen": X if d > 0 else Y})
            elif cell.protocol == "relative":
                rows.append(row | shown | {"system": X, "value": 1 + int(np.searchsorted(CUTS, d))})
            elif cell.protocol == "ranking":
                for system, rank in ((X, 1 if d > 0 else 2), (Y, 2 if d > 0 else 1)):
                    rows.append(row | shown | {"system": system, "value": rank})
            elif cell.protocol == "marks":
                rows += [row | one for one in _mark_rows(rng, d, q)]
            else:
                # Each text by the one or the other, and nobody can tell by which.
                author = X if (person + prompt) % 2 else Y
                rows.append(row | {"system": author, "value": 1 + int(d > -1) + int(d > 0) + int(d > 1)})
    return rows


def _mark_rows(rng: np.random.Generator, d: float, q: float) -> Iterator[dict[str, Any]]:
    """Yield marks and score of both outputs: the better an output is, the fewer errors are marked in it."""
    for system, worth in ((X, q + d / 2), (Y, q - d / 2)):
        n = min(len(CATEGORIES), rng.poisson(math.exp(0.2 - 0.5 * worth)))
        weights = [5 if rng.random() < 0.25 else 1 for _ in range(n)]
        for category, weight in zip(CATEGORIES, weights, strict=False):
            yield {"system": system, "value": weight, "choice": category, "part": "0"}
        if not n:
            yield {"system": system, "value": 0}
        score = 5 * round((80 - 3 * sum(weights) + 10 * worth) / 5)
        yield {"question": "score", "system": system, "value": min(100, max(0, score))}


def import_and_report(study: "Study", rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the report of a draft after the import of these answers from a file."""
    from analysis.report.build import build_report
    from annotators.imports import import_answers_and_close_draft
    from studies.models import Study

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.csv"
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)), restval="")
            writer.writeheader()
            writer.writerows(rows)
        imported = import_answers_and_close_draft(study, path, by=None)
    if not imported.is_written:
        raise ValueError("; ".join(map(str, list(imported.problems)[:5])))
    return build_report(Study.objects.get(pk=study.pk), {"resamples": 99})


def _spa_rows(rng: np.random.Generator, cell: StudyCell, study: "Study") -> Iterator[dict[str, Any]]:
    """Yield stated chances in both orders. The people of a batch read the same prompts, which move their answers together."""
    directed = study.sections.get(position=1).questions.select_related("x")
    by_batch = cell.sd_prompts * rng.normal(size=cell.prompts)
    for person in range(cell.people):
        batch = person % cell.prompts
        preference = cell.shift + by_batch[batch] + cell.sd_people * rng.normal()
        row = {"annotator": f"w{person:03}"}
        for question in directed:
            toward = preference if question.x.name == X else -preference
            stated = min(100, max(0, 5 * round((50 + toward + 6 * rng.normal()) / 5)))
            yield row | {"section": 1, "question": question.key, "value": stated}
        for prompt in range(batch * SPA_PROMPTS_PER_BATCH, (batch + 1) * SPA_PROMPTS_PER_BATCH):
            for system in (X, Y):
                about = {"section": 2, "question": "overall", "prompt_key": f"p{prompt:03}", "system": system}
                yield row | about | {"value": int(rng.integers(1, 6))}


def simulate_study(cell: StudyCell, seed: int) -> StudyOutcome:
    """Import one simulated study, compute its report, and leave nothing in the database."""
    from django.db import transaction

    rng = np.random.default_rng([int(sha256(cell.name.encode()).hexdigest()[:8], 16), seed])
    with transaction.atomic():
        study = drafted(cell)
        rows = answer_rows(rng, cell, study)
        report = import_and_report(study, rows)
        transaction.set_rollback(True)
    return outcome_of(report, true_difference(cell))


def outcome_of(report: dict[str, Any], difference: float = 0.0) -> StudyOutcome:
    """Return what the first sentence of a report says, and whether it is true."""
    sentence = report["conclusions"][0]
    estimate = next(
        estimate
        for block in report["blocks"]
        if block["mode"] == "recommended"
        for estimate in block["estimates"]
        if (estimate["settings"].get("contrast") or {}).get("is_planned") and "verdict" in estimate["detail"]
    )
    interval, test = estimate["interval"], estimate["test"]
    claim = estimate["settings"].get("claim") or {}
    null = None if test is None else claim.get("null", test["null"])
    if interval is None or null is None:
        covers, estimated = None, 0.0
    else:
        covers = bool(interval["low"] <= null + difference <= interval["high"])
        estimated = estimate["estimate"] - null
    warnings = tuple(warning["code"] for warning in estimate["warnings"])
    return StudyOutcome(
        sentence["claim"],
        sentence["verdict"],
        test is not None,
        covers,
        difference,
        estimated,
        warnings,
        claim.get("hypothesis", "difference"),
    )


def summary(cell: StudyCell, outcomes: Sequence[StudyOutcome]) -> dict[str, Any]:
    """Return the counts of a cell's studies. ``failures``: studies with at least one untrue statement."""
    return {
        # Cells of before there were groups keep their record.
        "cell": {name: value for name, value in asdict(cell).items() if name != "group_size" or value},
        "name": cell.name,
        "studies": len(outcomes),
        "tested": sum(outcome.has_test for outcome in outcomes),
        "missed": sum(outcome.covers is False for outcome in outcomes),
        "false_claims": None if cell.shift else sum(outcome.is_false_claim for outcome in outcomes),
        "false_equivalences": sum(outcome.is_equivalence for outcome in outcomes) if cell.has_margin else None,
        "false_claims_by_margin": None
        if cell.hypothesis == "difference"
        else sum(outcome.is_false_claim_by_margin for outcome in outcomes),
        "wrong_direction": sum(outcome.is_wrong_direction for outcome in outcomes) if cell.shift else None,
        "failures": sum(outcome.is_failure for outcome in outcomes),
        "failures_with_warning": sum(outcome.is_failure and bool(outcome.warnings) for outcome in outcomes),
        "with_warning": sum(bool(outcome.warnings) for outcome in outcomes),
        "warnings": sorted({code for outcome in outcomes for code in outcome.warnings}),
    }


def limits(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the largest share that each count of a cell may have."""
    n = row["studies"]
    return {
        name: limit(n, 0.025) if name in ("wrong_direction", "false_claims_by_margin") else limit(n)
        for name in ("missed", "false_claims", "false_equivalences", "false_claims_by_margin", "wrong_direction")
        if row.get(name) is not None
    }


def broken_limits(row: Mapping[str, Any]) -> list[str]:
    """Return the counts of a cell that are above their limits."""
    return [name for name, most in limits(row).items() if row[name] / row["studies"] > most]


def stored_rows() -> list[dict[str, Any]]:
    return json.loads(RECORD.read_text(encoding="utf-8"))["rows"] if RECORD.exists() else []


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m tools.proofs.calibration.studies")
    arguments.add_argument("--studies", type=int, default=100)
    arguments.add_argument(
        "--cell", default="", help="a part of the name of a cell; by default all cells are simulated"
    )
    given = arguments.parse_args()
    chosen = [cell for cell in CELLS if given.cell in cell.name]
    if not chosen or given.studies < 1:
        arguments.error("no cell has this name, or there is no study to simulate")
    from tests.golden_site.stored import at_site

    at_site()
    from django.db import connection

    connection.creation.create_test_db(verbosity=0)
    for cell in chosen:
        row = summary(cell, [simulate_study(cell, seed) for seed in range(given.studies)])
        # Another process may have stored its cells in the meantime.
        rows = {row["name"]: row for row in stored_rows()} | {cell.name: row}
        counts = ", ".join(
            f"{name} {row[name]} (limit {most * row['studies']:.1f})" for name, most in limits(row).items()
        )
        warned = f"{row['failures_with_warning']} of {row['failures']} failures with a warning"
        print(f"{cell.name}: {row['studies']} studies, {counts}, {warned}", flush=True)
        kept = [rows[each.name] for each in CELLS if each.name in rows]
        source = "python -m tools.proofs.calibration.studies; fixed seeds, one for each study"
        RECORD.write_text(json.dumps({"source": source, "rows": kept}, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
