"""Robots answer by their settings, through the functions that a browser reaches, and are distinguished from people."""

import random
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from analysis.data.frames import assignments_frame, responses_frame
from analysis.report import stopping
from annotators.models import Assignment, PageVisit, Response
from annotators.participation.simulate import CrowdSettings, default_system_strengths, record_simulated_answers
from studies.protocols import REGISTRY, Protocol
from studies.protocols.base.fields import Field, Robot
from tests import study_command
from tests.builders import choice_study, launched, spa_study, user
from tests.samples import sample_draft

pytestmark = pytest.mark.django_db


def test_robots_answer_every_page_and_are_distinguished_from_people():
    study = spa_study(target_n=10)
    ended = record_simulated_answers(
        study, 12, crowd=CrowdSettings(screened_out=0.2, commenting=0.5), rng=random.Random(3)
    )
    made = Assignment.objects.filter(study=study)
    assert set(made.values_list("origin", flat=True)) == {"robot"}
    assert ended.submitted == made.filter(submitted_at__isnull=False).count()
    assert ended.screened_out == made.filter(released_reason="screened_out").count() > 0
    assert ended.submitted + ended.screened_out + ended.turned_away == 12
    assert not PageVisit.objects.filter(assignment__submitted_at__isnull=False, recorded_at=None).exists()
    assert Response.objects.filter(question__key="comment").exists()
    assert len(responses_frame(study).rows) == 0
    frame = assignments_frame(study, ("robot",)).rows
    assert frame["seconds"].dropna().min() > 30, "their times are those of readers"


@pytest.mark.parametrize("slug", sorted(REGISTRY))
def test_robots_answer_every_protocol(slug):
    """So many pages that a rule across fields is broken by one of them, where the protocol's robots do not know it."""
    study = launched(sample_draft(slug, 4, 5))
    ended = record_simulated_answers(study, 5, crowd=CrowdSettings(screened_out=0), rng=random.Random(3))
    assert ended.submitted == 5 and Response.objects.filter(assignment__study=study).exists()


def test_a_protocol_whose_rules_its_robots_break_is_named(monkeypatch):
    monkeypatch.setattr(type(REGISTRY["ranking"]), "robot_answers", Protocol.robot_answers)
    study = sample_draft("ranking")
    study.sections.update(settings={"allows_ties": False})
    with pytest.raises(
        ValueError, match="The protocol ranking must define plausible answers: give it a method `robot_answers"
    ):
        record_simulated_answers(launched(study), 1)


def test_a_field_that_no_robot_can_answer_is_named():
    class Odd(Field):
        pass

    with pytest.raises(NotImplementedError, match="how to answer a Odd: give this field a method `robot_answer`"):
        Odd().robot_answer(Robot(random.Random(1)), None)


def test_a_protocol_that_does_not_say_enough_for_a_sample_is_named(monkeypatch):
    monkeypatch.setattr(type(REGISTRY["relative"]), "questions", ())
    with pytest.raises(
        AssertionError, match="must have words for each point.* Say in `sample` of studies/protocols/relative"
    ):
        sample_draft("relative")


def test_stronger_systems_get_higher_chances_and_ratings():
    study = spa_study(target_n=30, prompts=20)
    record_simulated_answers(
        study, 30, {"alpha": 0, "beta": 1.5, "gamma": -1.5}, crowd=CrowdSettings(screened_out=0, acquiescent=0)
    )
    frame = responses_frame(study, ("robot",)).rows
    chance = frame[frame["x"].notna()].groupby(["x", "y"])["value"].mean()
    assert chance["beta", "alpha"] == pytest.approx(0.8, abs=0.07) and chance["gamma", "beta"] < 0.15
    assert chance["beta", "alpha"] + chance["alpha", "beta"] == pytest.approx(1, abs=0.03)
    rating = frame[frame["protocol"] == "rating"].groupby("system")["value"].mean()
    assert rating["beta"] > rating["alpha"] > rating["gamma"]


def test_acquiescence_favours_the_system_that_is_named_first():
    study = spa_study(target_n=20, prompts=20, with_rating=False)
    record_simulated_answers(
        study,
        20,
        dict.fromkeys(("alpha", "beta", "gamma"), 0),
        crowd=CrowdSettings(acquiescent=1, acquiescence=0.2, screened_out=0),
    )
    frame = responses_frame(study, ("robot",)).rows
    assert frame.loc[frame["x"].notna(), "value"].mean() == pytest.approx(0.7, abs=0.04)


def test_who_finds_no_place_is_counted():
    study = spa_study(target_n=3)
    ended = record_simulated_answers(study, 6, crowd=CrowdSettings(screened_out=0))
    assert (ended.submitted, ended.turned_away) == (3, 3)


def test_some_leave_before_the_last_page():
    study = spa_study(target_n=6)
    ended = record_simulated_answers(study, 6, crowd=CrowdSettings(screened_out=0, abandoning=1))
    assert ended.abandoned == 6 and not Assignment.objects.filter(submitted_at__isnull=False).exists()


@pytest.mark.parametrize(
    ("preferences", "message"),
    [
        ({"alpha": 0, "beta": 1, "gamma": 2, "omega": 3}, "no system 'omega'"),
        ({"alpha": 0}, "'beta' has no preference"),
        ({"alpha": 0, "beta": float("nan"), "gamma": 0}, "'beta' must be a finite"),
    ],
)
def test_a_wrong_preference_is_named(preferences, message):
    with pytest.raises(ValueError, match=message):
        record_simulated_answers(spa_study(target_n=3), 1, preferences)


@pytest.mark.slow
def test_the_commands_simulate_and_analyse():
    study = spa_study(user("olga"), target_n=8)
    said = StringIO()
    call_command(
        "study",
        "simulate",
        str(study.code),
        "--robots",
        "8",
        "--prefer",
        "alpha=0",
        "--prefer",
        "beta=2",
        "--prefer",
        "gamma=0",
        "--screened-out",
        "0",
        stdout=said,
    )
    assert "8 submitted, 0 screened out" in said.getvalue() and "beta 2" in said.getvalue()
    _, said = study_command.run("report", study.code, "--origins", "robot", "--resamples", "199")
    assert (
        "beta was preferred to alpha, for exactly these prompts (simulated)." in said
        and "Analysis 1, result SHA-256" in said
    )
    for wrong in (
        ["simulate", "nothing"],
        ["simulate", str(study.code), "--prefer", "alpha"],
        ["simulate", str(study.code), "--acquiescent", "2"],
    ):
        with pytest.raises(CommandError):
            call_command("study", *wrong, stdout=StringIO())


def test_default_preferences_are_half_a_point_apart():
    assert default_system_strengths(spa_study(target_n=2)) == {"alpha": 0, "beta": 0.5, "gamma": 1.0}


def test_robots_can_be_lenient_and_keep_the_middle_that_they_are_given():
    study = launched(sample_draft("rating", 4, 9))
    names = study.systems.judged().values_list("name", flat=True)

    def mean(prefix, **crowd):
        people = study.assignments.count()
        record_simulated_answers(
            study,
            3,
            dict.fromkeys(names, 1.0),
            random.Random(3),
            crowd=CrowdSettings(screened_out=0, **crowd),
            name_prefix=prefix,
        )
        assert study.assignments.count() == people + 3
        own = Response.objects.filter(
            assignment__annotator__in=study.assignments.order_by("-pk").values("annotator")[:3]
        )
        values = own.filter(value__isnull=False).values_list("value", flat=True)
        return sum(map(float, values)) / len(values)

    usual, lenient, given_middle = mean("a"), mean("b", leniency=6.0), mean("c", middle=-5.0)
    assert lenient > usual + 0.5 and given_middle > usual + 0.5


@pytest.mark.parametrize(
    ("rule", "is_decided"), [("anytime", True), ("first", True), ("none", False), ("stays", False)]
)
def test_no_robots_are_sent_after_the_rule_has_decided(rule, is_decided):
    """The command says after how many robots the rule would have decided. The study goes on, with the rule as it was."""
    settings = {"strategy": "one", "stopping": rule, "delta": 0.2}
    study = choice_study(target_n=40, m=4, prompts=160, settings=settings)
    out = StringIO()
    words = ["--robots", "40", "--prefer", "alpha=0", "--prefer", "beta=6", "--screened-out", "0"]
    call_command("study", "simulate", study.title, *words, stdout=out)
    n = study.assignments.filter(submitted_at__isnull=False).count()
    study.refresh_from_db()
    assert study.state == "launched" and not study.audit_events.filter(verb__in=["decide", "close"]).exists()
    assert (f"would have decided after {n} robots" in out.getvalue()) == is_decided
    assert (n < 40) == is_decided
    if is_decided:
        # As the rule of the same study decides when people give these answers.
        study.assignments.update(origin="live")
        assert stopping.apply_stopping_rules(study)["is_over"]
