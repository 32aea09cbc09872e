"""Reports are made for tests, and none says what no report may say."""

import json
import re

from analysis.report.build import build_report
from studies.models import Study
from studies.services import lifecycle
from tests.analysis.protocols.answers import answer
from tests.builders import spa_study

QUICK = {"resamples": 199}
BANNED = (
    r"probability (that|of) .* is 1 ?[-−] ?p", r"marginally significant", r"power (was|is) (≈|about|nearly) ?1", r"\bno difference between\b",
    r"there (is|was) no difference", r"trend towards significance", r"with at least probability", r"p ?= ?\.000", r"\bnan\b",
)  # fmt: skip


def closed(study):
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    return Study.objects.get(pk=study.pk)


def finished(owner, n=12, **options) -> Study:
    """A closed study of stated chances and ratings with ``n`` people who prefer later systems."""
    study = spa_study(owner, target_n=12, **options)
    answer(
        study,
        n,
        percent=lambda person, x, y: 70 + person if x > y else 35,
        rating=lambda person, system: 1 + (person + len(system)) % 5,
    )
    return closed(study)


def report(study, **parameters):
    result = build_report(study, QUICK | parameters)
    text = json.dumps(result, allow_nan=False)
    for banned in BANNED:
        assert not re.search(banned, text, re.IGNORECASE), banned
    return result


def table(result, name):
    return next(one for one in result["tables"] if one["name"] == name)


def pairs(result, mode="recommended"):
    block = next(b for b in result["blocks"] if b["name"] == "spa.pairs" and b["mode"] == mode)
    return {(e["settings"]["contrast"]["x"], e["settings"]["contrast"]["y"]): e for e in block["estimates"]}
