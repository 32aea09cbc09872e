"""Ratings over HTTP: robots with scales of their own, planted references, and what the report makes of them."""

import pytest

from analysis.report.build import build_report
from annotators.models import Response
from studies.models import Contrast, Question, Section, Study
from studies.services import lifecycle
from tests.builders import draft_study, launched, panel
from tests.robots import Robot, address, clipped, system_of

pytestmark = pytest.mark.django_db

UTILITY = {"bottom": 0.0, "alpha": 0.3, "beta": 0.6, "top": 1.0}


def rating_with_references(**columns):
    """Two criteria and the overall question on 0 to 100; the best and the worst possible stand among the outputs."""
    study = draft_study(systems=tuple(UTILITY), prompts=6, instructions="", **columns)
    study.systems.filter(name="top").update(reference="maximal")
    study.systems.filter(name="bottom").update(reference="minimal")
    section = Section.objects.create(study=study, position=1, protocol="rating", m=2, settings={"noun": "story"})
    for position, (key, criterion) in enumerate((("fluent", "fluency"), ("whole", "")), 1):
        Question.objects.create(
            section=section,
            position=position,
            key=key,
            criterion=criterion,
            text=f"{key}: how good is story {{label}}?",
            scale={"kind": "continuous", "low": "worst", "high": "best"},
        )
    x, y = study.systems.get(name="beta"), study.systems.get(name="alpha")
    Contrast.objects.create(study=study, x=x, y=y, expected=">")
    Contrast.objects.create(study=study, x=x, y=y, expected=">", estimand="utility", margin=0.05)
    return study


def on_own_scale(low, high, turned=False):
    """A person whose ratings lie between ``low`` and ``high``; ``turned``: who takes the worst for the best."""

    def answer(name, kind, values, asked, page, robot):
        if name.endswith(".skip"):
            return None
        assert kind == "text", (name, kind)
        (system,) = {system_of(text) for text in page.texts[name.rsplit(".", 1)[1]]}
        utility = 1 - UTILITY[system] if turned else UTILITY[system]
        # On fluency both are alike.
        if ".q1." in name and system in ("alpha", "beta"):
            utility = 0.5
        return str(clipped(low + (high - low) * utility + robot.rng.gauss(0, 1), 0, 100))

    return answer


def test_utilities_between_references_are_found_whatever_the_scales(same_orders):
    study = launched(rating_with_references(target_n=14))
    door = panel(study)
    people = [on_own_scale(5 * n, 50 + 4 * n) for n in range(12)]
    people += [on_own_scale(20, 80, turned=True), on_own_scale(48, 52)]
    for number, answer in enumerate(people):
        assert Robot(address(study, f"w{number}", door), answer, number).play() == "Thank you"
    assert Response.objects.count() == 14 * 2 * 2 * 4
    lifecycle.start_closing(study, by=None), lifecycle.end_grace_period(study, by=None)
    result = build_report(Study.objects.get(pk=study.pk), {"resamples": 199})
    assert not result["problems"], result["problems"]
    tables = {one["name"]: one for one in result["tables"]}
    eeu = {(row["where"], row["system"]): row for row in tables["utilities"]["rows"]}
    assert set(eeu) == {(topic, name) for topic in ("fluency", "overall") for name in ("alpha", "beta")}
    for system in ("alpha", "beta"):
        row = eeu["overall", system]
        assert abs(row["eeu"] - UTILITY[system]) < 0.03 and row["n"] == 12, row
    (gone,) = [row for row in tables["references"]["rows"] if "overall" in row["where"]]
    assert (gone["n"], gone["kept"], gone["extremum_violation"], gone["narrow_references"]) == (14, 12, 1, 1)
    assert len(gone["who"].split(", ")) == 2
    said = {one["contrast"]: one for one in result["conclusions"]}
    utility = said["beta > alpha, section 1, whole, utility"]
    assert utility["verdict"] == "different"
    assert utility["claim"] == "beta has a higher expected utility than alpha overall, for prompts like these."
    alike = said["beta > alpha on fluency, section 1, fluent, utility"]
    assert alike["verdict"] == "equivalent" and "within ±0.05" in alike["claim"]
    warned = {row["code"] for row in tables["warnings"]["rows"]}
    assert {"extremum_violation", "narrow_references"} <= warned and "no_references" not in warned
    # What is planted enters no comparison and takes no rank.
    compared = {
        one["settings"]["contrast"]["key"]
        for block in result["blocks"]
        for one in block["estimates"]
        if "contrast" in one["settings"]
    }
    assert not any("top" in key or "bottom" in key for key in compared)
    ranks = {row["system"]: row["rank"] for row in tables["means"]["rows"] if "overall" in row["where"]}
    assert ranks == {"top": None, "beta": 1, "alpha": 2, "bottom": None}
