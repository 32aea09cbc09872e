"""Answers to test questions: right, wrong or not counted, and apart from the answers that count for systems."""

from collections import Counter

import pytest
from pandas import isna

from analysis.data.frames import responses_frame
from analysis.data.rule_input import pilot_agrees, read_test_answers
from annotators.models import Assignment
from annotators.pay.evidence import measure_work_evidence
from studies.protocols.base.fields import TIE
from studies.protocols.base.known_answers import KnownAnswer
from tests.known_answers import answered

pytestmark = pytest.mark.django_db


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["rating", "two_choice", "relative"])
def test_attentive_robots_are_right_and_random_ones_are_not(protocol):
    careful = read_test_answers(answered(protocol), ["robot"])
    assert len(careful) >= 40
    assert set(careful["type"]) == {"positive", "negative", "damaged"}
    counted = careful[careful["is_counted"]]
    assert counted["is_right"].mean() > 0.95
    random_clicks = read_test_answers(answered(protocol, noisy=1.0), ["robot"])
    counted = random_clicks[random_clicks["is_counted"]]
    assert 0.2 < counted["is_right"].mean() < 0.8


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["rating", "two_choice"])
def test_careless_robots_are_right_as_often_as_wanted_in_all_their_batches(protocol):
    study = answered(protocol, robots=16, noisy=0.5, right=0.2, activity=1.0, m=5)
    batches = Counter(study.assignments.values_list("annotator", flat=True))
    assert len(batches) == 16 and min(batches.values()) == 1 and max(batches.values()) > 3
    frame = read_test_answers(study, ["robot"])
    of_person = frame[frame["is_counted"]].groupby("annotator")["is_right"].agg(["mean", "count"])
    careless = of_person[of_person["mean"] < 0.9]
    assert 5 <= len(careless) <= 11 and of_person["mean"].drop(careless.index).mean() > 0.97
    # Their share of right answers, with four standard errors.
    n = careless["count"].sum()
    assert (careless["mean"] * careless["count"]).sum() / n == pytest.approx(0.2, abs=4 * (0.16 / n) ** 0.5)


@pytest.mark.slow
def test_test_questions_are_in_no_estimate():
    study = answered("rating")
    rows = responses_frame(study, ["robot"]).rows
    tests = set(read_test_answers(study, ["robot"])["item"])
    assert tests and not tests & set(rows["item"])
    assert set(rows["system"]) == {"alpha", "beta"}
    assert len(rows) == 12 * 10 * 2


@pytest.mark.slow
def test_a_pilot_only_checks_the_question():
    study = answered("rating", robots=16, pilot_answers=2)
    frame = read_test_answers(study, ["robot"])
    damaged = frame[frame["type"] == "damaged"]
    assert damaged.groupby("item")["is_pilot"].sum().max() == 2
    assert not (damaged["is_pilot"] & damaged["is_counted"]).any()
    assert damaged[~damaged["is_pilot"]]["is_counted"].any()
    assert not frame[frame["type"] != "damaged"]["is_pilot"].any()


@pytest.mark.slow
def test_a_pilot_that_disagrees_leaves_the_question_uncounted():
    study = answered("rating", robots=16, pilot_answers=2, noisy=1.0)
    frame = read_test_answers(study, ["robot"])
    damaged = frame[(frame["type"] == "damaged")]
    for _, rows in damaged.groupby("item"):
        pilot = rows[rows["is_pilot"] & ~rows["is_right"].map(isna)]["is_right"].tolist()
        rest = rows[~rows["is_pilot"]]
        assert rest["is_counted"].any() <= pilot_agrees(pilot)
    assert not pilot_agrees([True] * 8 + [False]) and pilot_agrees([True] * 9 + [False]) and not pilot_agrees([])


@pytest.mark.slow
@pytest.mark.postgres
def test_verdict_evidence_counts_the_same_answers():
    study = answered("two_choice", noisy=1.0)
    frame = read_test_answers(study, ["robot"])
    for assignment in Assignment.objects.filter(study=study, submitted_at__isnull=False):
        own = frame[frame["assignment"] == assignment.pk]
        evidence = measure_work_evidence(assignment)
        assert evidence.checks == own["is_right"].notna().sum()
        assert len(evidence.failed) == (own["is_right"] == False).sum()  # noqa: E712 - a column of truth values and None


@pytest.mark.parametrize(
    ("known", "answer", "right"),
    [
        (KnownAnswer(better=1), {"value": None, "chosen": 1}, True),
        (KnownAnswer(better=1), {"value": None, "chosen": 2}, False),
        (KnownAnswer(better=1), {"value": None, "choice": TIE}, None),
        (KnownAnswer(better=1, is_neutral_counted=True), {"value": None, "choice": TIE}, False),
        (KnownAnswer(better=1, middle=3), {"value": 4, "exposure": 1}, True),
        (KnownAnswer(better=1, middle=3), {"value": 4, "exposure": 2}, False),
        (KnownAnswer(better=1, middle=3), {"value": 2, "exposure": 2}, True),
        (KnownAnswer(better=1, middle=3), {"value": 3, "exposure": 2}, None),
        (KnownAnswer(low=3, high=5, middle=3), {"value": 3}, None),
        (KnownAnswer(low=3, high=5, middle=3, is_neutral_counted=True), {"value": 3}, False),
        (KnownAnswer(low=3, high=5, middle=3), {"value": 4}, True),
        (KnownAnswer(low=3, high=3, middle=3), {"value": 3}, True),
        (KnownAnswer(low=3, high=5, middle=3), {"value": 2}, False),
        (KnownAnswer(low=3, high=5, middle=3, about=7), {"value": 2, "exposure": 8}, None),
        (KnownAnswer(low=3, high=5, middle=3, about=7), {"value": 2, "exposure": 7}, False),
        (KnownAnswer(low=3, high=5), {"value": None}, None),
    ],
)
def test_an_answer_is_right_wrong_or_not_counted(known, answer, right):
    assert known.is_right(**answer) is right
