"""Rankings and error marks over HTTP: people who know what they find, and a report that finds the same."""

import pytest

from analysis.report.build import build_report
from studies.design.checklist import find_design_problems
from studies.models import Study
from studies.services import lifecycle
from tests.builders import add_marks, add_ranking, draft_study, launched, panel
from tests.robots import Robot, address, system_of

from .studies.imports.bundle.bundles import read_again, sha

pytestmark = pytest.mark.django_db
ORDER = {"gamma": 1, "alpha": 2, "beta": 2}  # the other two are equally good
ERRORS = {"alpha": 2, "beta": 1, "gamma": 0}


def reader(name, kind, values, asked, page, robot):
    """Someone who ranks by ORDER and marks as many errors as ERRORS says, minor ones, each in a sentence of its own."""
    label = name.split(".")[3] if name.count(".") > 2 else ""
    if name.startswith("s1."):
        assert kind == "text" and asked == f"The place of {label}"
        (text,) = page.texts[label]
        return str(ORDER[system_of(text)])
    (text,) = page.texts[label]
    errors = ERRORS[system_of(text)]
    if name.startswith("s2.q2."):
        assert kind == "text"
        return str(90 - 20 * errors + robot.rng.randint(-5, 5))
    number, _, part = name.partition(".p")[2].partition(".")
    if number == "0":
        assert kind == "checkbox"
        return None if errors else "1"
    if int(number) > errors:
        return ""
    chosen = {"where": number, "category": "style", "severity": "minor", "words": ""}[part]
    assert chosen in values, (name, values)
    return chosen


def test_a_study_with_both_comes_back_from_its_file():
    study = draft_study(systems=("alpha", "beta"))
    add_ranking(study, position=1, allows_ties=False)
    study.contrasts.all().delete()
    add_marks(study, position=2, categories="a | One\r\nb | Two | It is two", severities="x | Bad | 2.5")
    assert sha(read_again(study)) == sha(study)
    assert not [problem for problem in find_design_problems(study) if problem.is_blocking]


@pytest.mark.slow
def test_what_people_rank_and_mark_is_what_the_report_says(same_orders):
    study = draft_study(instructions="", target_n=8, prompts=16, annotators_per_batch=2)
    add_ranking(study, position=1, m=2)
    study.contrasts.all().delete()
    add_marks(study, position=2, m=2)
    study = launched(study)
    door = panel(study)
    for number in range(8):
        assert Robot(address(study, f"w{number}", door), reader, number).play() == "Thank you"
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    result = build_report(Study.objects.get(pk=study.pk), {"resamples": 99})
    assert not result["problems"], result["problems"]
    tables = {one["name"]: one["rows"] for one in result["tables"]}
    pairs = {row["pair"]: (row["above"], row["ties"], row["below"]) for row in tables["ranking_pairs"]}
    assert pairs == {"alpha > beta": (0, 16, 0), "alpha > gamma": (0, 0, 16), "beta > gamma": (0, 0, 16)}
    assert {row["system"]: row["mean"] for row in tables["ranking_systems"]} == {"gamma": 1, "alpha": 2.5, "beta": 2.5}
    systems = {row["system"]: row for row in tables["marks_systems"]}
    assert {name: row["penalty"] for name, row in systems.items()} == ERRORS
    assert systems["gamma"]["clean"] == 1 and systems["alpha"]["clean"] == 0 and systems["alpha"]["outputs"] == 16
    assert abs(systems["beta"]["score"] - 70) < 4
    kinds = {row["what"]: row for row in tables["marks_kinds"]}
    assert len(kinds) == 10 and {row["outputs"] for row in kinds.values()} == {"16"}
    assert kinds["Style"]["rate0"] == kinds["Minor"]["rate0"] == 2 and kinds["Accuracy"]["rate0"] == 0
    assert (kinds["Style"]["rate1"], kinds["Style"]["rate2"]) == (ERRORS["beta"], ERRORS["gamma"])
    agreed = tables["marks_checks"][0]
    assert agreed["estimate"] == 1 and agreed["unit"] == "sentence"
    scored = {row["pair"]: row for row in tables["marks_score_pairs"]}
    assert scored["gamma > beta"]["verdict"] == "different" and 15 < scored["gamma > beta"]["difference"] < 25
