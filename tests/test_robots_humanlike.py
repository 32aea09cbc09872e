"""Human or machine over HTTP: robots that can tell, and robots that cannot, and a report that knows which were which."""

import random
import re
from itertools import count

import pytest
from django.db import connection

from analysis.report.build import build_report
from annotators.models import Assignment, Response
from annotators.participation.simulate import record_simulated_answers
from studies.models import Contrast, Study
from studies.services import lifecycle
from tests.builders import add_humanlike, humanlike_draft, launched, panel, warnings_of
from tests.robots import Robot

pytestmark = pytest.mark.django_db


def author_of(text):
    """The text says its author's name backwards."""
    return re.search(r"\((\w+)\)", text)[1][::-1]


def judging(d_prime: float, criterion: float, reads_words=True):
    """A person with this sensitivity and leaning: evidence of a machine is normal around plus or minus half of d'."""

    def answer(name, kind, values, asked, page, robot):
        if kind == "textarea":
            return "It goes on for a while and then it stops." if reads_words else "fine"
        label = name.rsplit(".", 1)[1]
        if label in page.texts:
            (author,) = {author_of(text) for text in page.texts[label]}
            side = -0.5 if author == "human" else 0.5
            evidence = side * d_prime + robot.rng.gauss(0, 1) - criterion
            return str(1 + (evidence > -1) + (evidence > 0) + (evidence > 1))
        machine = next(label for label in values if author_of(page.texts[label][0]) != "human")
        return machine if robot.rng.random() < 0.5 + d_prime / 6 else next(v for v in values if v != machine)

    return answer


@pytest.fixture
def same_orders(monkeypatch):
    """Assignments with the same seeds in every run: the orders drawn from them decide which answer gets which noise."""
    seeds = count(1000)
    monkeypatch.setattr(Assignment._meta.get_field("seed"), "_get_default", lambda: next(seeds))


def report_after(truths, n=100, **options):
    """The report on ``n`` robots, each with the (d', c) of their condition, who came by the panel's link."""
    conditions = tuple(truths)
    study = humanlike_draft(conditions=conditions, target_n=n, seed=11, texts=20, m=6, **options)
    if len(conditions) > 1:
        Contrast.objects.create(study=study, x_condition=conditions[1], y_condition=conditions[0], expected=">")
    study = launched(study)
    door = panel(study)
    for number in range(n):
        robot = Robot(f"/e/{door.key}/?who=w{number}&session=s", None, number)
        robot.start()
        condition = (
            Assignment.objects.select_related("batch__arm")
            .get(annotator__pool="panel", submitted_at=None)
            .batch.arm.condition
        )
        robot.answer = judging(*truths[condition])
        robot.rng = random.Random(500 + number)
        assert robot.play() == "Thank you"
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    return study, build_report(Study.objects.get(pk=study.pk), {"resamples": 199})


def rows(result, name):
    return next(one for one in result["tables"] if one["name"] == name)["rows"]


@pytest.mark.slow
def test_the_report_finds_the_sensitivity_of_a_hundred_robots_and_what_training_gave_them(same_orders):
    study, result = report_after({"none": (0.0, 0.4), "examples": (1.4, 0.0)}, domains=("news",))
    assert result["problems"] == [] and result["n"]["submitted"] == 100
    by_condition = {row["condition"]: row for row in rows(result, "detection") if row["domain"] == "all"}
    none, examples = by_condition["none"], by_condition["examples"]
    assert none["d_interval"][0] < 0 < none["d_interval"][1] and 0.2 < none["c"] < 0.6 and none["n"] == 50
    assert 1.1 < examples["d"] < 1.7 and examples["d_p"] < 0.001 and abs(examples["c"]) < 0.25
    (said,) = result["conclusions"]
    assert (
        said["claim"]
        == "Annotators distinguished machine from human texts better under training by examples than under no training, for texts like these."
    )
    assert said["recovered"] == "recovered"
    assert [row["condition"] for row in rows(result, "paper_table_2")] == ["none", "examples"]
    assert {e["unit"] for b in result["blocks"] if b["name"] == "attrition" for e in b["estimates"]} == {"assignment"}


# The other hundred robots are played in the usual run too; and without a preference those of test_robots.py.
@pytest.mark.slow
def test_the_report_finds_none_where_there_is_none(same_orders):
    _, result = report_after({"none": (0.0, 0.0), "instructions": (0.0, 0.0)}, domains=("news",))
    for row in rows(result, "detection"):
        assert row["d_interval"][0] < 0 < row["d_interval"][1] and row["d_p"] > 0.05, row
        assert row["accuracy_interval"][0] < 0.5 < row["accuracy_interval"][1]
    (said,) = result["conclusions"]
    assert said["verdict"] is None and said["claim"].startswith("It remains open")
    assert "Such a study finds a difference of" in said["text"]
    assert {row["sign"] for row in rows(result, "paper_table_1") + rows(result, "paper_table_2")} == {""}


@pytest.mark.slow
def test_training_answers_enter_no_estimate():
    study = humanlike_draft(conditions=("examples", "comparison"), domains=("news",), target_n=12, seed=3)
    study = launched(study)
    record_simulated_answers(study, 12, {"human": 1.0, "gpt3": 0.0})
    before = build_report(study, {"origins": ["robot"], "resamples": 99})
    practice = Response.objects.filter(assignment__study=study, question__section__purpose="training")
    assert practice.count() == 12 * 3
    # All of them turned round, past the guards of a record that never changes.
    from django.db.models import F
    from django.db.models.query import QuerySet

    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
    assert QuerySet(Response).filter(pk__in=practice.filter(value__isnull=False)).update(value=5 - F("value")) == 18
    after = build_report(Study.objects.get(pk=study.pk), {"origins": ["robot"], "resamples": 99})
    assert before["data"]["sha256"] != after["data"]["sha256"]
    assert numbers(before) == numbers(after)
    live = Response.objects.filter(assignment__study=study, question__key="source", question__section__purpose="live")
    QuerySet(Response).filter(pk__in=live).update(value=5 - F("value"))
    assert numbers(build_report(Study.objects.get(pk=study.pk), {"origins": ["robot"], "resamples": 99})) != numbers(
        after
    )


def numbers(result):
    """Estimates that no resampling touches: the seed follows from all that was read, training too."""
    return [
        (e["analysis"], e["estimate"], e["n"], e["n_rows"])
        for b in result["blocks"]
        for e in b["estimates"]
        if "attrition" not in e["analysis"]
    ]


def test_feedback_during_the_task_is_between_live_sections_and_never_counts():
    """Section 5 of Clark et al. 2021 proposes longer training than before the work."""
    study = humanlike_draft(conditions=("examples",), domains=("news",), target_n=3, texts=20, m=4)
    training, later = study.sections.order_by("position")
    for section, position in ((later, 3), (training, 2)):
        section.position = position
        section.save()
    add_humanlike(study, position=1, m=4)
    assert not [key for key in warnings_of(study) if key.startswith("late_training")]
    door = panel(launched(study))
    for number in range(3):
        robot = Robot(f"/e/{door.key}/?who=w{number}&session=s", judging(1.0, 0.0), number)
        robot.start()
        assert robot.play() == "Thank you"
    trained, judged = set(), set()
    for assignment in Assignment.objects.filter(study=study):
        shown = [visit.key for visit in assignment.visits.order_by("pk") if visit.key.startswith("s")]
        sections = [int(key[1]) for key in shown if key[1].isdigit()]
        assert sections == sorted(sections) and {1, 2, 3} == set(sections)
        answers = Response.objects.filter(assignment=assignment, question__key="source")
        for section, system, prompt, kind in answers.values_list(
            "question__section__position", "exposure__output__system__name", "item__prompt__key", "item__kind"
        ):
            assert (kind == "practice") is (section == 2)
            (trained if section == 2 else judged).add((assignment.pk, system, prompt))
    assert len(trained) == 3 * 3 and len(judged) == 3 * 8
    # No text or prompt whose author was shown is judged by anybody.
    assert not {prompt for _, _, prompt in trained} & {prompt for _, _, prompt in judged}
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    result = build_report(Study.objects.get(pk=study.pk), {"resamples": 99})
    counted = [e for b in result["blocks"] if b["name"] == "humanlike.detection" for e in b["estimates"]]
    assert {e["n_rows"] for e in counted} == {3 * 4}


@pytest.mark.slow
def test_robots_of_the_command_perceive_the_strengths_that_they_are_given():
    study = launched(humanlike_draft(domains=("news",), target_n=60, texts=30, m=8, seed=5))
    assert record_simulated_answers(study, 60, {"human": 1.5, "gpt3": 0.0}).submitted == 60
    result = build_report(study, {"origins": ["robot"], "resamples": 99})
    row = rows(result, "detection")[0]
    low, high = row["d_interval"]
    # Three standard errors: an interval of 95 % misses in one of twenty studies.
    assert abs((low + high) / 2 - 1.5) < 1.5 * (high - low) / 2 and row["d_p"] < 0.001
