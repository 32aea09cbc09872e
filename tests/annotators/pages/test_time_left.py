"""How much is left: by words and questions, and by the time that others took."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from django.test import Client

from annotators import tasks
from annotators.models import Assignment
from annotators.pages import sequence
from annotators.pages.record import full_page_state
from annotators.places import batch_plan
from studies.models import Study
from tests import builders, players
from tests.analysis.protocols.answers import answer

pytestmark = pytest.mark.django_db


def left(assignment):
    """The minutes that are left, as the annotator's present page says."""
    page = Client().get(f"/p/{assignment.code}/", follow=True).content.decode()
    return int(re.search(r"about (\d+) minute", page)[1])


def test_reading_weighs_more_than_a_comment():
    study = builders.spa_study(minutes=60)
    assignment = players.claimed(study, "w")
    walk = sequence.build_page_sequence(assignment, {})
    shares = [a - b for a, b in zip(walk.left, [*walk.left[1:], 0.0], strict=True)]
    assert walk.left[0] == pytest.approx(1) and min(shares) > 0
    by_key = dict(zip(walk.keys, shares, strict=True))
    comment, ask = walk.keys[-1], "s2.ask"
    assert by_key["s2.read"] > by_key[comment] and by_key[ask] > by_key[comment]


def test_longer_texts_take_more_of_the_time():
    assignment = players.claimed(builders.spa_study(), "w")
    plan, walk = batch_plan.get_batch_plan(assignment), sequence.build_page_sequence(assignment, {})
    shown = [step.page for step in walk.steps.values()]
    after = walk.places["s2.ask"]
    short, long = (
        sequence._parts_left(shown, replace(plan, text_lengths=dict.fromkeys(plan.text_lengths, length)))[after]
        for length in (100, 9000)
    )
    assert long < short / 5


def test_what_others_took_replaces_what_was_declared():
    study = builders.spa_study(minutes=60, target_n=14)
    assignment = players.claimed(study, "w")
    assert left(assignment) == 60
    answer(study, 9, seconds=600)
    assert tasks.update_median_working_times() == 0  # too few
    answer(study, 1, seconds=1_000_000)  # one who slept over it
    assert tasks.update_median_working_times() == 1 and tasks.update_median_working_times() == 0
    assert Study.objects.get(pk=study.pk).usual_seconds == 600
    assert left(assignment) == 10


def test_robots_tries_and_late_answers_say_nothing_of_the_time():
    study = builders.spa_study(minutes=60, target_n=14)
    answer(study, 10, seconds=60, origin="robot")
    late = answer(study, 10, seconds=60)
    Assignment.objects.filter(pk__in=[one.pk for one in late]).update(
        is_late=True, released_at=late[0].submitted_at + timedelta(seconds=1), released_reason="expired"
    )
    assert tasks.update_median_working_times() == 0


def test_the_answer_to_a_practice_text_says_that_it_finishes_where_nothing_comes_after_it():
    study = builders.draft_study(systems=("human", "gpt3"), prompts=8, instructions="")
    builders.add_humanlike(study, position=1, m=2, keys=("source",))
    training = builders.add_humanlike(study, position=2, m=2, purpose="training", keys=("source",))
    for key in ("p000", "p001"):
        builders.add_practice(training, list(study.prompts.get(key=key).outputs.order_by("pk"))[:1], "See.")
    assignment = players.claimed(builders.launched(study), "w")
    said = []
    while key := full_page_state(Assignment.objects.get(pk=assignment.pk)).next_key:
        html = Client().get(f"/p/{assignment.code}/{key}/").content.decode()
        said += re.findall(r'name="go" value="1" id="go">([^<]*)<', html)
        players.answered(assignment, key)
    assert said[-3:] == ["Go on", "Send these answers and go on", "Finish"]
    assert Assignment.objects.get(pk=assignment.pk).submitted_at


@pytest.mark.parametrize("last", ["survey", "spa", "rating"])
def test_the_last_page_says_that_its_answers_finish_and_no_other_does(last):
    """An annotator who is asked to go on waits for a page, and does not know that nothing can be looked at again."""
    study = builders.spa_study(with_surveys=last == "survey", with_rating=last != "spa")
    assignment = players.claimed(study, "w")
    said = []
    for key in sequence.build_page_sequence(assignment, {}).keys:
        html = Client().get(f"/p/{assignment.code}/{key}/").content.decode()
        said += re.findall(r'name="go" value="1" id="go">([^<]*)<', html)
        players.answered(assignment, key)
    assert len(said) > 1 and said[-1] == "Send these answers and finish"
    assert not any("finish" in words for words in said[:-1])
