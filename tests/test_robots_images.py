"""SPA over images after 1, 2, 4 and 8 of them, under letters A to H: robots that look at the pictures, and the curve in the report."""

import io
import re

import pytest
from PIL import Image

from analysis.report.build import build_report
from annotators.models import Assignment, PageVisit, Response
from annotators.pages.sequence import get_section_itinerary
from studies.models import Exposure, Study
from studies.services import lifecycle
from tests.builders import add_rating, exposures_draft, launched, panel
from tests.players import claimed
from tests.robots import Robot, address, clipped

pytestmark = pytest.mark.django_db

# The chance that raw is better, as people see it after m images: certain too early, then ever more slowly surer.
CHANCES = {1: 0.8, 2: 0.62, 4: 0.7, 8: 0.72}
LEVELS = tuple(CHANCES)


def looking(acquiescence=0.0):
    """A person who knows an artist by the pictures under the artist's letter; ``acquiescence``: added to whatever is asked."""

    def answer(name, kind, values, asked, page, robot):
        if name.endswith(".skip"):
            return None
        first, second = re.search(r"artist (\w+) is better than artist (\w+)\?", asked).groups()
        reds = {letter: painter(robot, letter) for letter in (first, second)}
        assert len(set(reds.values())) == 2
        chance = 0.5 if "As to colour" in asked else CHANCES[len(robot.read[first])]
        share = chance if reds[first] == "raw" else 1 - chance
        return str(clipped(100 * (share + acquiescence + robot.rng.gauss(0, 0.02)), 0, 100))

    return answer


def painter(robot, letter) -> str:
    """One letter means one artist, at each of the pictures under it."""
    (name,) = {seen(robot, src) for src in robot.read[letter]}
    return name


def seen(robot, src) -> str:
    """Who painted a picture; each is fetched once."""
    known = robot.__dict__.setdefault("known", {})
    if src not in known:
        response = robot.client.get(src)
        assert response.status_code == 200 and response["Content-Type"] == "image/webp"
        picture = Image.open(io.BytesIO(response.content))
        known[src] = "raw" if picture.getpixel((20, 20))[0] > 128 else "scrambled"
    return known[src]


@pytest.fixture
def played(settings, tmp_path, same_orders):
    settings.MEDIA_ROOT = tmp_path
    study = launched(exposures_draft(tmp_path, target_n=8, criterion="colour", rules=[("incoherent", {"tau": 1.1})]))
    door = panel(study)
    for number in range(8):
        robot = Robot(address(study, f"w{number}", door), looking(0.2 if number > 5 else 0.0), number)
        assert robot.play() == "Thank you"
        # Eight artists, as far as anybody can tell; no picture twice.
        assert sorted(robot.read) == list("ABCDEFGH")
        assert [len(robot.read[letter]) for letter in "ABCDEFGH"] == [1, 1, 2, 2, 4, 4, 8, 8]
        assert len({src for srcs in robot.read.values() for src in srcs}) == 30
    lifecycle.start_closing(study, by=None), lifecycle.end_grace_period(study, by=None)
    return Study.objects.get(pk=study.pk)


@pytest.mark.slow
def test_eight_letters_hide_two_painters_and_the_curve_is_found(played):
    _letters_are_stored_as_they_were_shown(played)
    result = build_report(played, {"resamples": 199})
    assert not result["problems"], result["problems"]
    tables = {one["name"]: one["rows"] for one in result["tables"]}
    levels = tables["exposure_levels"]
    assert [row["what"] for row in levels] == [
        f"raw > scrambled, after {m} example{'' if m == 1 else 's'}" for m in LEVELS
    ]
    for row, chance in zip(levels, CHANCES.values(), strict=True):
        assert abs(row["estimate"] - chance) < 0.05 and row["n"] == 8, row
    steps = {row["what"] if row["p"] is None else row["estimand"]: row for row in tables["exposures"]}
    first = steps["P[raw > scrambled] after 2 examples less after 1 example"]
    last = steps["P[raw > scrambled] after 8 examples less after 4 examples"]
    assert -0.23 < first["estimate"] < -0.13 and first["p"] < 0.01
    assert -0.03 < last["estimate"] < 0.07 and first["n"] == last["n"] == 8
    block = next(one for one in result["blocks"] if one["name"] == "spa.exposures")
    assert [e["test"]["family_size"] for e in block["estimates"]][:3] == [3, 3, 3]
    slope, diminishing = block["estimates"][3:]
    assert "per doubling of the number of examples" in slope["estimand"] and slope["n"] == 8
    assert diminishing["estimate"] == pytest.approx(last["estimate"] - (CHANCES[4] - CHANCES[2]), abs=0.04)
    # The last section asks about a criterion too, on which both are alike; the question without one is the overall one.
    rows = {row["about"]: row for row in tables["table1"]}
    after = [f"after {m} example{'' if m == 1 else 's'}" for m in LEVELS]
    assert list(rows) == [*after[:3], f"overall, {after[3]}", f"colour, {after[3]}"]
    assert abs(rows[f"colour, {after[3]}"]["p_xy"] - 0.5) < 0.03
    # Two of eight say yes to whatever is asked: a gap of .4 each, found by the rule, and the estimate hardly moves.
    for row in tables["gap"]:
        assert 0.05 < row["gap"] < 0.15 and row["above"] == pytest.approx(2 / 8), row
    assert len(tables["gap"]) == 5
    changes = [row for row in tables["before_after"] if row["rule"] == "incoherent"]
    assert [(row["n_before"], row["n_after"]) for row in changes] == [(8, 6)] * 5
    assert all(abs(row["change"]) < 0.04 for row in changes)
    figures = {figure["name"] for figure in result["figures"]}
    assert {"exposure", "exposure_tau", "gap", "rules", "forest"} <= figures
    # The paper's Figures 1 and 5. The two who say yes to everything raise both directions, and tau leaves them out.
    for row, chance in zip(tables["exposure_tau"], CHANCES.values(), strict=True):
        assert (row["before_n"], row["after_n"]) == (8, 6)
        assert abs(row["after_xy"] - chance) < 0.03 and abs(row["after_yx"] - (1 - chance)) < 0.03, row
        assert row["before_xy"] > row["after_xy"] and row["before_yx"] > row["after_yx"], row
    assert {row["n"] for row in tables["tau_values"] if row["tau"] in (1.3, 1.5)} == {6, 8}


def test_letters_go_on_behind_a_section_that_begins_with_a(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    study = exposures_draft(tmp_path, levels=(1, 1, 2), target_n=1)
    study.sections.filter(position=3).update(position=4, m=1)
    add_rating(study, position=3)
    laid = get_section_itinerary(claimed(launched(study))).sections
    letters = [sorted(label for label, _ in one.items[0].exposures) for one in laid]
    assert letters == [["A", "B"], ["C", "D"], ["A", "B"], ["E", "F"]]


def _letters_are_stored_as_they_were_shown(study):
    exposures = dict(Exposure.objects.filter(item__study=study).values_list("pk", "output__system__name"))
    prompts = dict(Exposure.objects.filter(item__study=study).values_list("item", "item__prompt"))
    first_of_section = []
    for assignment in Assignment.objects.filter(study=study):
        seen, names = [], {}
        for visit in PageVisit.objects.filter(assignment=assignment, key__endswith=".read").order_by("key"):
            seen += [prompts[item] for _, item, _ in visit.shown["items"]]
            for _, _, labelled in visit.shown["items"]:
                for label, exposure in labelled:
                    assert names.setdefault(label, exposures[exposure]) == exposures[exposure]
        assert len(seen) == len(set(seen)) == 15 and sorted(names) == list("ABCDEFGH")
        for pair in ("AB", "CD", "EF", "GH"):
            assert {names[letter] for letter in pair} == {"raw", "scrambled"}
            first_of_section.append(names[pair[0]])
        for label, x, y in Response.objects.filter(assignment=assignment).values_list(
            "label", "question__x__name", "question__y__name"
        ):
            assert (names[label[0]], names[label[1]]) == (x, y)
    # Which of two letters raw has is drawn anew for each section.
    assert 0.2 < first_of_section.count("raw") / len(first_of_section) < 0.8
