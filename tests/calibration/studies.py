"""Whole studies without a difference, from the file of answers to the sentences of the report.

A study of one protocol with two systems is drafted, its answers are simulated and imported as answers given elsewhere,
and the report is computed. What counts is what its primary sentence claims: a false claim (a difference, although there is
none), and whether the interval beside it contains the truth.
"""

import csv
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from django.db import transaction

from analysis.report.build import build_report
from annotators.imports import import_answers_and_close_draft
from studies.models import Question, Study
from tests.builders import add_choice, add_ranking, add_rating, add_relative, add_spa, draft_study

X, Y = "gpt", "human"
# Where the latent scale is cut into five points.
CUTS = (-1.5, -0.5, 0.5, 1.5)


@dataclass(frozen=True, slots=True)
class StudyCell:
    """A design, and how much people and prompts differ on the latent scale, whose noise has standard deviation 1."""

    protocol: str
    people: int
    prompts: int
    sd_people: float = 0.3
    sd_prompts: float = 0.6


@dataclass(frozen=True, slots=True)
class StudyOutcome:
    """What the report of one study said: its sentence, whether it claims a difference, and whether its interval covers."""

    claim: str
    verdict: str | None
    has_test: bool
    covers: bool | None

    @property
    def is_false_claim(self) -> bool:
        return self.verdict in ("different", "different_but_trivial")


def preferences(rng: np.random.Generator, cell: StudyCell) -> np.ndarray:
    """Return the latent preference for x, shape (people, prompts). Its mean over people and prompts like these is 0."""
    return (
        cell.sd_people * rng.normal(size=(cell.people, 1))
        + cell.sd_prompts * rng.normal(size=(1, cell.prompts))
        + rng.normal(size=(cell.people, cell.prompts))
    )


def drafted(cell: StudyCell) -> Study:
    study = draft_study(systems=(X, Y), prompts=cell.prompts, target_n=cell.people, consent="", contact="")
    options: dict[str, Any] = {"position": 1, "m": cell.prompts}
    if cell.protocol == "rating":
        add_rating(study, **options)
    elif cell.protocol == "two_choice":
        add_choice(study, stopping="none", strategy="any", **options)
    elif cell.protocol == "relative":
        add_relative(study, **options)
    elif cell.protocol == "ranking":
        add_ranking(study, **options)
    else:
        add_spa(study, **options)
    if cell.protocol == "rating":
        systems = {system.name: system for system in study.systems.all()}
        study.contrasts.create(x=systems[X], y=systems[Y])
    return study


def answer_rows(rng: np.random.Generator, cell: StudyCell, study: Study) -> list[dict[str, Any]]:
    """Return the rows of the file of answers."""
    latent = preferences(rng, cell)
    quality = rng.normal(size=latent.shape)
    question = Question.objects.get(section__study=study)
    rows = []
    for person in range(cell.people):
        for prompt in range(cell.prompts):
            row = {"annotator": f"w{person:03}", "section": 1, "question": question.key, "prompt_key": f"p{prompt:03}"}
            d, q = float(latent[person, prompt]), float(quality[person, prompt])
            if cell.protocol == "rating":
                for system, worth in ((X, q + d / 2), (Y, q - d / 2)):
                    rows.append(row | {"system": system, "value": 1 + int(np.searchsorted(CUTS, worth))})
            elif cell.protocol == "two_choice":
                rows.append(row | {"chosen": X if d > 0 else Y, "shown:A": X, "shown:B": Y})
            elif cell.protocol == "relative":
                point = 1 + int(np.searchsorted(CUTS, d))
                rows.append(row | {"system": X, "value": point, "shown:A": X, "shown:B": Y})
            else:
                for system, rank in ((X, 1 if d > 0 else 2), (Y, 2 if d > 0 else 1)):
                    rows.append(row | {"system": system, "value": rank, "shown:A": X, "shown:B": Y})
    return rows


def simulate_study(cell: StudyCell, seed: int) -> StudyOutcome:
    """Import one simulated study, compute its report, and leave nothing in the database."""
    rng = np.random.default_rng(seed)
    with transaction.atomic():
        study = drafted(cell)
        rows = answer_rows(rng, cell, study)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "answers.csv"
            with path.open("w", newline="") as file:
                writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)), restval="")
                writer.writeheader()
                writer.writerows(rows)
            imported = import_answers_and_close_draft(study, path, by=None)
        if not imported.is_written:
            raise ValueError("; ".join(map(str, list(imported.problems)[:5])))
        report = build_report(Study.objects.get(pk=study.pk), {"resamples": 99})
        transaction.set_rollback(True)
    return outcome_of(report)


def outcome_of(report: dict[str, Any]) -> StudyOutcome:
    """Return what the first sentence of a report says."""
    sentence = report["conclusions"][0]
    estimate = next(
        estimate
        for block in report["blocks"]
        if block["mode"] == "recommended"
        for estimate in block["estimates"]
        if (estimate["settings"].get("contrast") or {}).get("is_planned") and "verdict" in estimate["detail"]
    )
    interval, test = estimate["interval"], estimate["test"]
    null = None if test is None else test["null"]
    covers = None if interval is None or null is None else interval["low"] <= null <= interval["high"]
    return StudyOutcome(sentence["claim"], sentence["verdict"], test is not None, covers)
