"""The relative scale over HTTP: robots that know how much better one text is, and lean to the text that comes first."""

import pytest

from analysis.report.build import build_report
from annotators.models import Response
from studies.models import Study
from studies.services import lifecycle
from tests.builders import add_relative, draft_study, launched, panel
from tests.robots import Robot, address, clipped, system_of

pytestmark = pytest.mark.django_db


def weighing(quality, leaning=0.0, noise=0.8):
    """A person who sees the difference of quality in points, and adds a leaning to the first."""

    def answer(name, kind, values, asked, page, robot):
        if name.endswith(".skip"):
            return None
        assert kind == "radio" and values[:5] == ["5", "4", "3", "2", "1"], (name, kind, values)
        first, second = (system_of(page.texts[letter][-1]) for letter in "AB")
        assert first != second
        apart = quality[first] - quality[second] + leaning + robot.rng.gauss(0, noise)
        return str(clipped(3 + apart, 1, 5))

    return answer


def test_points_toward_the_better_one_are_found_whichever_side_it_stood(same_orders):
    quality = {"alpha": 0.0, "beta": 0.8, "gamma": 0.8}
    study = draft_study(systems=tuple(quality), prompts=12, target_n=16, instructions="")
    add_relative(study, m=6, margin=0.5)
    study = launched(study)
    door = panel(study)
    for number in range(16):
        robot = Robot(address(study, f"w{number}", door), weighing(quality, leaning=0.4), number)
        assert robot.play() == "Thank you"
    lifecycle.start_closing(study, by=None), lifecycle.end_grace_period(study, by=None)
    result = build_report(Study.objects.get(pk=study.pk), {"resamples": 199})
    assert not result["problems"], result["problems"]
    tables = {one["name"]: one["rows"] for one in result["tables"]}
    rows = {
        (row["x"], row["y"]): row | more
        for row, more in zip(tables["relative"], tables["relative_checks"], strict=True)
    }
    # The sides are drawn: the leaning to the first is found as such, and leaves the points toward x alone.
    for (x, y), truth in {("beta", "alpha"): 0.8, ("gamma", "beta"): 0.0, ("alpha", "gamma"): -0.8}.items():
        row = rows[x, y]
        assert abs(row["score"] - truth) < 0.3 and 0.1 < row["side"] < 0.7, row
        assert row["n_rows"] == 32 and row["n"] <= 16 and 0 < row["ties"] < 0.7
    assert rows["beta", "alpha"]["above"] > 0.65 and rows["beta", "alpha"]["above_p"] < 0.05
    said = {one["claim"]: one["verdict"] for one in result["conclusions"]}
    # What was not planned makes no sentence.
    assert said == {
        "beta was judged better than alpha, for prompts like these.": "different",
        "gamma and beta are indistinguishable within ±0.50, for prompts like these.": "equivalent",
    }
    paper = next(b for b in result["blocks"] if b["name"] == "relative.score" and b["mode"] == "paper")["estimates"]
    assert {e["unit"] for e in paper} == {"answer"} and {e["n"] for e in paper} == {32}
    # A row names the text that stood first, whatever was said of it.
    assert set(Response.objects.values_list("label", flat=True)) == {"A"}
    first = list(Response.objects.values_list("exposure__output__system__name", flat=True))
    assert all(20 < first.count(name) < 44 for name in quality)
