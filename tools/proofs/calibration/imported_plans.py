"""Simulated studies of a planned design through the import of a file and the report."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tools.proofs.calibration.plans import CUTS, PlannedDesign, draw_study, stated_chances
from tools.proofs.calibration.studies import X, Y, import_and_report

if TYPE_CHECKING:
    from studies.models import Study

REACHED = {
    "difference": ("different", "different_but_trivial"),
    "equivalence": ("equivalent", "different_but_trivial"),
    "noninferiority": ("noninferior", "noninferior_but_worse", "better"),
    "superiority_by_margin": ("superior_by_margin",),
}


def count_reached_by_reports(design: PlannedDesign, number: int, studies: int) -> int:
    """Return in how many of the studies the report's first sentence claims the goal of the plan; ``number`` makes the seeds."""
    return sum(
        report_verdict(design, np.random.default_rng([12, number, study])) in REACHED[design.target.goal]
        for study in range(studies)
    )


def drafted(design: PlannedDesign) -> "Study":
    """Return a draft of the design with its comparison."""
    from tests import builders

    size, target = design.size, design.target
    study = builders.draft_study(systems=(X, Y), prompts=size.prompts, target_n=size.people, consent="", contact="")
    options: dict[str, Any] = {"position": 1, "m": size.prompts_each}
    if size.protocol == "two_choice":
        builders.add_choice(study, stopping="none", strategy="any", **options)
    elif size.protocol == "spa":
        section = builders.add_spa(study, **options)
        # Ratings of the same texts tell which prompts a person read.
        builders.add_rating(study, position=2, reuses=section, m=size.prompts_each)
    elif size.protocol == "humanlike":
        builders.add_humanlike(study, keys=("source",), **options)
    else:
        getattr(builders, f"add_{size.protocol}")(study, **options)
    study.contrasts.all().delete()
    about = {"level": target.level, "population": target.population}
    if size.protocol == "humanlike":
        study.contrasts.create(**about)  # against chance
        return study
    hypothesis = target.goal if target.goal in ("noninferiority", "superiority_by_margin") else "difference"
    x, y = (study.systems.get(name=name) for name in (X, Y))
    estimand = "score" if size.protocol == "marks" else ""
    study.contrasts.create(x=x, y=y, margin=target.margin, hypothesis=hypothesis, estimand=estimand, **about)
    return study


def answer_rows(design: PlannedDesign, rng: np.random.Generator, study: "Study") -> Iterator[dict[str, Any]]:
    """Yield the rows of the file of answers of one study."""
    protocol = design.size.protocol
    drawn = list(draw_study(design, rng))
    if protocol == "spa":
        yield from _spa_rows(design, rng, study, drawn)
        return
    key = "score" if protocol == "marks" else study.sections.get().questions.order_by("position").first().key
    shown = {"shown:A": X, "shown:B": Y}
    for person, prompt, d, quality in drawn:
        row = {"annotator": f"w{person:04}", "section": 1, "question": key, "prompt_key": f"p{prompt:03}"}
        if protocol == "two_choice":
            yield row | shown | {"chosen": X if d > 0 else Y}
        elif protocol == "rating":
            for system, worth in ((X, quality + d / 2), (Y, quality - d / 2)):
                yield row | {"system": system, "value": 1 + int(np.searchsorted(CUTS, worth))}
        elif protocol == "relative":
            yield row | shown | {"system": X, "value": 1 + int(np.searchsorted(CUTS, d))}
        elif protocol == "ranking":
            for system, rank in ((X, 1 if d > 0 else 2), (Y, 2 if d > 0 else 1)):
                yield row | shown | {"system": system, "value": rank}
        elif protocol == "marks":
            apart = int(5 * round(2 * d))
            for system, score in ((X, 50 + apart - apart // 2), (Y, 50 - apart // 2)):
                yield row | {"system": system, "value": score}
                yield row | {"question": "errors", "system": system, "value": 0}
        else:
            # Texts of even prompts are by x (a program), the others by y (a person); a right answer names the author.
            author, is_machine = (X, True) if prompt % 2 == 0 else (Y, False)
            says_machine = is_machine == (d > 0)
            yield row | {"system": author, "value": 4 if says_machine else 1}


def _spa_rows(
    design: PlannedDesign, rng: np.random.Generator, study: "Study", drawn: list[tuple[int, int, float, float]]
) -> Iterator[dict[str, Any]]:
    xy, yx = stated_chances(design, np.array([d for _, _, d, _ in drawn]), rng)
    for question in study.sections.get(position=1).questions.select_related("x"):
        for person, stated in enumerate(xy if question.x.name == X else yx):
            yield {"annotator": f"w{person:04}", "section": 1, "question": question.key, "value": int(stated)}
    for person, prompt, _, _ in drawn:
        for system in (X, Y):
            about = {"section": 2, "question": "overall", "prompt_key": f"p{prompt:03}", "system": system}
            yield {"annotator": f"w{person:04}"} | about | {"value": int(rng.integers(1, 6))}


def report_verdict(design: PlannedDesign, rng: np.random.Generator) -> str | None:
    """Import one simulated study, compute its report, leave nothing in the database, and return the verdict."""
    from django.db import transaction

    with transaction.atomic():
        study = drafted(design)
        rows = list(answer_rows(design, rng, study))
        report = import_and_report(study, rows)
        transaction.set_rollback(True)
    return report["conclusions"][0]["verdict"]
