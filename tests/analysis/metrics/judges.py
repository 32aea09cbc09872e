"""Judges whose scores are stored beside the answers of people."""

import random

from analysis.metrics.files import ScoresFileSettings
from analysis.metrics.store import MetricDescription, upload_scores
from annotators.models import Response
from studies.models import Output

from .scores import table


def store_judge(study, *, knows=True, name="judge", family="Llama", skips=()):
    """A judge who knows the answers of people and gives other outputs points like them, or one who gives points at random."""
    given, by_system = {}, {}
    answers = Response.objects.filter(assignment__study=study, item__isnull=False).order_by("pk")
    for system, prompt, value in answers.values_list(
        "exposure__output__system__name", "exposure__output__prompt__key", "value"
    ):
        given.setdefault((system, prompt), []).append(value)
        by_system.setdefault(system, []).append(value)
    chance = random.Random(name)
    rows = []
    outputs = Output.objects.filter(system__study=study).order_by("pk")
    for system, prompt in outputs.values_list("system__name", "prompt__key"):
        known = given.get((system, prompt)) if knows else None
        others = by_system[system] if knows else [1, 2, 3, 4, 5]
        score = float(sum(known) / len(known)) if known else float(chance.choice(others))
        if prompt not in skips:
            rows.append({"system": system, "prompt": prompt, name: score})
    described = MetricDescription("judge", "v1", family=family, scale_low=1, scale_high=5)
    chosen = ScoresFileSettings(scale_low=1, scale_high=5, is_partial=bool(skips))
    return upload_scores(study, study.owner, "scores.csv", table(rows), chosen, described)[0]
