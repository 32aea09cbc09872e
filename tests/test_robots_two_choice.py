"""Two choices over HTTP: a hundred robots with known preferences, and a study that closes itself when it has seen enough."""

import math

import pytest

from analysis.report.build import build_report
from analysis.report.stopping import submit_stopping_checks
from annotators.models import Assignment, Response
from annotators.places.monitor import settle_or_top_up_items
from studies.models import AuditEvent, Study
from studies.services import jobs, lifecycle
from tests.builders import choice_study, panel
from tests.robots import Robot, address, system_of

pytestmark = pytest.mark.django_db


def choosing(quality, ties=0.0):
    """A person who reads both texts and chooses the better one more often, by the difference in log-odds."""

    def answer(name, kind, values, asked, page, robot):
        if name.endswith(".skip"):
            return None
        letters = [value for value in values if value in ("A", "B")]
        systems = {letter: system_of(page.texts[letter][-1]) for letter in letters}
        assert kind == "radio" and len(set(systems.values())) == 2, (name, kind, values, systems)
        assert "better story" in asked or asked == ""
        if "tie" in values and robot.rng.random() < ties:
            return "tie"
        chance = 1 / (1 + math.exp(quality[systems["B"]] - quality[systems["A"]]))
        return "A" if robot.rng.random() < chance else "B"

    return answer


def played(quality, *, n=100, every=10, ties=0.0, **options):
    """The study after at most ``n`` robots; the stopping rule is looked at after every tenth."""
    study = choice_study(m=5, prompts=100 * 5, target_n=100, **options)
    door = panel(study)
    came = 0
    for number in range(n):
        heading = Robot(address(study, f"w{number}", door), choosing(quality, ties), number).play()
        if heading == "The study is closed":
            break
        assert heading == "Thank you", heading
        came += 1
        if came % every == 0:
            settle_or_top_up_items(), submit_stopping_checks(), jobs.run_waiting_jobs()
    study = Study.objects.get(pk=study.pk)
    assert study.state == "closing", study.state
    lifecycle.end_grace_period(study, by=None)
    result = build_report(study, {"resamples": 199})
    assert not result["problems"], result["problems"]
    (row,) = next(one for one in result["tables"] if one["name"] == "choices")["rows"]
    return came, result, row


@pytest.mark.slow
def test_a_hundred_robots_at_most_decide_for_the_better_system(same_orders):
    came, result, row = played({"alpha": 0.0, "beta": 0.9}, margin=0.05)
    assert came < 100 and row["outcome"] == row["logged"] == "x is better" and row["recovered"] == "recovered"
    # Nine tenths of a unit of log-odds are 71 choices in a hundred.
    assert 0.6 < row["share"] < 0.85 and row["interval"][0] > 0.5 and row["stopped"] <= came
    assert (
        result["conclusions"][0]["claim"]
        == f"beta was chosen over alpha on naturalness, for exactly these {5 * came} prompts."
    )
    (event,) = AuditEvent.objects.filter(verb="decide")
    assert event.data["outcomes"][0]["stopped_at"] == row["stopped"]
    assert (
        Response.objects.count() == 5 * came and Assignment.objects.filter(submitted_at__isnull=False).count() == came
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "margin, outcome", [(0.15, "equivalent within the margin"), (0.02, "not decided by all planned annotators")]
)
def test_without_a_preference_it_is_equivalence_or_a_spent_budget(same_orders, margin, outcome):
    came, result, row = played({"alpha": 0.0, "beta": 0.0}, margin=margin)
    assert row["outcome"] == row["logged"] == outcome
    assert (came == 100) == (outcome == "not decided by all planned annotators")
    (said,) = result["conclusions"]
    assert ("indistinguishable" if came < 100 else "remains open") in said["claim"]


def test_robots_may_say_that_neither_is_better():
    study = choice_study(m=3, prompts=12, target_n=4, settings={"allows_tie": True})
    door = panel(study)
    for number in range(4):
        assert (
            Robot(address(study, f"w{number}", door), choosing({"alpha": 0, "beta": 0}, 1.0), number).play()
            == "Thank you"
        )
    assert set(Response.objects.values_list("choice", flat=True)) == {"tie"}


def test_an_annotator_who_comes_while_third_labels_are_wanted_waits_and_is_then_let_in():
    study = choice_study(m=2, prompts=4, target_n=4, annotators_per_batch=2, settings={"strategy": "max_three"})
    door = panel(study)
    first, second = choosing({"alpha": 0, "beta": 50}), choosing({"alpha": 50, "beta": 0})
    for number, answer in enumerate((first, first, second, second)):
        assert Robot(address(study, f"w{number}", door), answer, number).play() == "Thank you"
    late = Robot(address(study, "w9", door), first, 9)
    assert late.play() == "No place right now"
    settle_or_top_up_items()
    assert late.play() == "Thank you"
    assert Robot(address(study, "w10", door), first, 10).play() == "Thank you"
    settle_or_top_up_items()
    assert Robot(address(study, "w11", door), first, 11).play() == "The study is full"
    assert Response.objects.count() == 4 * 3
