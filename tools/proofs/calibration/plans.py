"""What plans promise, beside what simulated studies then find.

Each of 30 designs is planned (`study_plans.simulate_part`). Then studies are simulated by other code, person by person, and
each is analysed by the function that its protocol's report calls. With ``--imported N``, N studies of each design are
also imported from a file of answers, and what counts is the verdict of the report.

``python -m tools.proofs.calibration.plans --studies 500 [--imported N] [--design PART]`` prints each design and stores it in
tests/golden/plans.json when it is finished, and fails if the promises do not hold; with ``--continue`` it keeps the designs of these numbers of
studies.
"""

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from analysis.stats import choice, clusters, detection, margins, ratings
from analysis.stats.planning import closed_forms, study_plans
from analysis.stats.planning.inputs import StudySize, Target, Variation
from analysis.stats.results import Estimate
from tests import ROOT
from tests.analysis.stats.pairs import one_pair

RECORD = ROOT / "tests" / "golden" / "plans.json"
CUTS = (-1.5, -0.5, 0.5, 1.5)
CHOICES = Variation(sd_people=0.18, sd_prompts=0.70)
MAJOR = Variation(sd_people=0.59, sd_prompts=1.04)
POINTS = Variation(sd_people=0.15, sd_prompts=0.52)
EVEN = Variation(sd_people=0.5, sd_prompts=0.3)


@dataclass(frozen=True, slots=True)
class PlannedDesign:
    """A design of which the promise is tested."""

    size: StudySize
    target: Target
    variation: Variation

    @property
    def name(self) -> str:
        """The design in words."""
        size, target = self.size, self.target
        words = f"{size.protocol}, {size.people} people, {size.prompts} prompts, {size.prompts_each} each, {target.difference:g}"
        if target.goal != "difference":
            words += f", {target.goal.replace('_', ' ')} by {target.margin:g}"
        if target.tests > 1:
            words += f", {target.tests} tests"
        return words + (", exactly these prompts" if target.population == "people" else "")


def _design(
    protocol: str, people: int, prompts: int, each: int, difference: float, variation: Variation, **target: Any
) -> PlannedDesign:
    size = StudySize(protocol=protocol, people=people, prompts=prompts, prompts_each=each)
    return PlannedDesign(size, Target(difference=difference, **target), variation)


DESIGNS = (
    _design("two_choice", 36, 60, 20, 0.6, CHOICES),
    _design("two_choice", 12, 10, 10, 0.7, CHOICES),
    _design("two_choice", 80, 40, 5, 0.6, CHOICES),
    _design("two_choice", 20, 200, 10, 0.62, CHOICES),
    _design("two_choice", 24, 24, 12, 0.85, MAJOR),
    _design("two_choice", 40, 50, 20, 0.62, CHOICES, tests=6),
    _design("two_choice", 40, 12, 12, 0.58, CHOICES, population="people"),
    _design("two_choice", 60, 100, 20, 0.5, CHOICES, goal="equivalence", margin=0.1),
    _design("two_choice", 40, 80, 20, 0.5, CHOICES, goal="noninferiority", margin=0.1),
    _design("rating", 36, 60, 20, 0.6, POINTS),
    _design("rating", 12, 10, 10, 0.75, POINTS),
    _design("rating", 24, 48, 10, 0.65, POINTS),
    _design("rating", 60, 30, 5, 0.62, EVEN),
    _design("rating", 30, 20, 10, 0.58, POINTS, population="people"),
    _design("rating", 50, 100, 20, 0.5, POINTS, goal="equivalence", margin=0.08),
    _design("rating", 30, 60, 20, 0.55, POINTS, goal="noninferiority", margin=0.05),
    _design("relative", 36, 60, 20, 0.6, POINTS),
    _design("relative", 12, 12, 12, 0.7, POINTS),
    _design("relative", 24, 40, 10, 0.65, EVEN),
    _design("relative", 40, 60, 15, 0.7, POINTS, goal="superiority_by_margin", margin=0.25),
    _design("relative", 40, 80, 20, 0.5, POINTS, goal="equivalence", margin=0.3),
    _design("relative", 20, 15, 15, 0.6, POINTS, population="people"),
    _design("ranking", 20, 40, 10, 0.65, CHOICES),
    _design("ranking", 40, 20, 10, 0.62, EVEN, tests=3),
    _design("marks", 20, 25, 10, 0.62, POINTS),
    _design("marks", 40, 60, 12, 0.6, POINTS),
    _design("humanlike", 40, 60, 5, 0.57, CHOICES),
    _design("spa", 60, 12, 4, 0.58, CHOICES, population="people"),
    _design("spa", 90, 60, 4, 0.56, EVEN, population="people"),
    _design("spa", 40, 200, 5, 0.62, CHOICES),
)


def draw_study(design: PlannedDesign, rng: np.random.Generator) -> Iterator[tuple[int, int, float, float]]:
    """Yield (person, prompt, perceived difference, quality) of one study, written apart from the planner.

    Each person gets prompts that the fewest people have had.
    """
    size, variation = design.size, design.variation
    shift = NormalDist().inv_cdf(design.target.difference) * math.sqrt(
        1 + variation.sd_people**2 + variation.sd_prompts**2
    )
    of_prompts = rng.normal(0, variation.sd_prompts, size.prompts)
    if not size.is_about_prompts(design.target.population):
        of_prompts -= of_prompts.mean()
    hardness = rng.normal(0, variation.sd_quality_prompts, size.prompts)
    shown = np.zeros(size.prompts)
    for person in range(size.people):
        own, lenience = rng.normal(0, variation.sd_people), rng.normal(0, variation.sd_quality_people)
        least = np.lexsort((rng.random(size.prompts), shown))[: size.prompts_each]
        shown[least] += 1
        for prompt in least.tolist():
            quality = lenience + hardness[prompt] + rng.normal(0, variation.sd_quality)
            yield person, prompt, shift + own + of_prompts[prompt] + rng.normal(), quality


def report_estimate(design: PlannedDesign, rng: np.random.Generator) -> Estimate:
    """Return the estimate of the function that the protocol's report calls, for one simulated study."""
    size, target = design.size, design.target
    people, prompts, d, quality = (np.array(column) for column in zip(*draw_study(design, rng), strict=True))
    options: dict[str, Any] = {"level": 1 - target.level}
    population = {"population": target.population}
    if size.protocol == "spa":
        return one_pair(
            *stated_chances(design, d, rng), rng=rng, sensitivity_resamples=9, sensitivity_tau=None, **options
        )
    if size.protocol == "two_choice":
        return choice.annotator_weighted_preference_share(d > 0, people, prompts, **population, **options)
    if size.protocol == "rating":
        x, y = (1 + np.searchsorted(CUTS, quality + sign * d / 2) for sign in (1, -1))
        return ratings.probability_of_superiority(x, y, people, prompts=prompts, **population, **options)
    if size.protocol == "relative":
        score = np.searchsorted(CUTS, d) - 2.0
        return ratings.paired_mean_difference(
            score, 0 * score, people, prompts=prompts, scale=(-2, 2), bounds=(-2, 2), **population, **options
        )
    if size.protocol == "humanlike":
        return detection.clustered_accuracy(d > 0, people, prompts, **options)
    if size.protocol == "marks":
        score = np.clip(5 * np.rint(10 * d / 5), -100, 100)
        return clusters.annotator_prompt_clustered_mean(
            score, people, prompts, null=0.0, analysis="marks", **population, **options
        )
    return clusters.annotator_prompt_clustered_mean(
        (d > 0).astype(float), people, prompts, null=0.5, bounds=(0, 1), analysis="ranking", **population, **options
    )


def stated_chances(design: PlannedDesign, d: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return what people state in both orders, after they have read all their prompts."""
    opinion = d.reshape(design.size.people, design.size.prompts_each).mean(axis=1)
    scale = math.sqrt(1 + design.variation.sd_prompts**2)
    chance = np.array([NormalDist().cdf(value / scale) for value in opinion])
    return tuple(
        np.clip(5 * np.rint((100 * side + rng.normal(0, 10, len(side))) / 5), 0, 100) for side in (chance, 1 - chance)
    )


def is_reached(design: PlannedDesign, estimate: Estimate) -> bool:
    """Return whether the report claims the goal of the plan."""
    target, null = design.target, design.size.null
    if target.goal == "difference":
        return estimate.pvalue is not None and estimate.pvalue < target.level
    if target.goal == "equivalence":
        tost = margins.equivalence_test_of_estimate(
            estimate, null=null, margin=target.margin, significance=target.level
        )
        return tost is not None and bool(tost.detail.get("is_equivalent"))
    claim = margins.MarginHypothesis(target.goal, null=null, margin=target.margin)
    tested = margins.margin_test(estimate, claim, significance=target.level)
    return tested.pvalue is not None and tested.pvalue < target.level


def test_promise(design: PlannedDesign, studies: int, imported: int = 0) -> dict[str, Any]:
    """Return what the plan promises, and what the studies reached."""
    number = DESIGNS.index(design)
    part = study_plans.PlanPart(kind="planned", size=design.size, target=design.target, runs=2000, seed=(27, number))
    begun = time.perf_counter()
    promised = study_plans.simulate_part(part, design.variation)
    seconds = time.perf_counter() - begun
    reached = sum(
        is_reached(design, report_estimate(design, np.random.default_rng([11, number, study])))
        for study in range(studies)
    )
    row = {
        "name": design.name,
        "promised": promised.power,
        "runs": promised.runs,
        "approximate": closed_forms.quick_plan(design.size, design.target, design.variation).power,
        "reached": reached / studies,
        "studies": studies,
        "bets": promised.by_bets,
        "seconds": round(seconds, 2),
    }
    if imported:
        from tools.proofs.calibration.imported_plans import count_reached_by_reports

        row |= {
            "imported": imported,
            "reached_by_report": count_reached_by_reports(design, number, imported) / imported,
        }
    return row


test_promise.__test__ = False  # it is no test of pytest


def distance(row: dict[str, Any], reached: str = "reached", studies: str = "studies") -> float:
    """Return the difference of the two powers in Monte-Carlo standard errors; the pooled power gives the variance."""
    n, m = row["runs"], row[studies]
    pooled = (n * row["promised"] + m * row[reached]) / (n + m)
    error = math.sqrt(max(pooled * (1 - pooled), 1 / (n + m)) * (1 / n + 1 / m))
    return (row[reached] - row["promised"]) / error


def joint_limit(n_designs: int) -> float:
    """Return the largest distance that all designs together exceed in five of a hundred repetitions."""
    return NormalDist().inv_cdf(1 - 0.05 / (2 * n_designs))


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m tools.proofs.calibration.plans")
    arguments.add_argument("--studies", type=int, default=500)
    arguments.add_argument(
        "--imported", type=int, default=0, help="studies of each design that go through import and report"
    )
    arguments.add_argument("--design", default="", help="a part of the name of a design; by default all are simulated")
    arguments.add_argument(
        "--continue", dest="is_continued", action="store_true", help="keep the designs of these sizes"
    )
    given = arguments.parse_args()
    chosen = [design for design in DESIGNS if given.design in design.name]
    if not chosen or given.studies < 1:
        arguments.error("no design has this name, or there is no study to simulate")
    if given.imported:
        from tests.golden_site.stored import at_site

        at_site()
        from django.db import connection

        connection.creation.create_test_db(verbosity=0)
    limit = joint_limit(len(chosen))
    kept = json.loads(RECORD.read_text(encoding="utf-8"))["rows"]
    rows = {row["name"]: row for row in kept}
    for design in chosen:
        row = rows.get(design.name, {})
        if not given.is_continued or (row.get("studies"), row.get("imported", 0)) != (given.studies, given.imported):
            row = rows[design.name] = test_promise(design, given.studies, given.imported)
            row["distance"] = round(distance(row), 2)
            stored = [rows[one.name] for one in DESIGNS if one.name in rows]
            RECORD.write_text(
                json.dumps({"limit": round(joint_limit(len(DESIGNS)), 2), "rows": stored}, indent=1) + "\n",
                encoding="utf-8",
            )
        print(
            f"{row['distance']:6.2f}  promised {row['promised']:.3f}  approximate {row['approximate']:.3f}  reached {row['reached']:.3f}  "
            f"{row.get('reached_by_report', float('nan')):.2f}  {row['seconds']:5.1f} s  {row['name']}",
            flush=True,
        )
    print(f"limit {limit:.2f}")
    broken = [one.name for one in chosen if abs(rows[one.name]["distance"]) > limit]
    if broken:
        raise SystemExit(f"The promise does not hold: {'; '.join(broken)}")


if __name__ == "__main__":
    main()
