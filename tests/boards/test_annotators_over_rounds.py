"""Answers to test questions are pooled over the rounds of a board: who is judged, left out and barred, and what is stored."""

import random

import pytest
from django.urls import reverse

from analysis.data.rule_input import read_test_answers
from analysis.models import AnnotatorScreening
from analysis.report.build import build_report
from analysis.report.screening.run import request_screening
from annotators.models import Assignment, Barring
from annotators.participation import simulate
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from annotators.places import assign
from annotators.places.barrings import is_barred, lift_barring
from boards.services import rounds
from boards.services.annotators import read_board_screening
from studies.models import ExclusionRule
from studies.services import jobs, lifecycle
from studies.services.known_answers import KnownAnswerRequest, make_test_questions_and_delete_test_runs
from tests.admin_pages import logged_in
from tests.analysis.api.rest import api_of
from tests.boards import builders
from tests.builders import user

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
CAREFUL = ("anna", "ben", "cleo", "dan")
NOISY = "noa"
STRENGTHS = {"human": 1.5, "good": 1.0, "new": 0.5, "newer": 0.0}


@pytest.fixture
def board():
    """A board whose rule needs eight counted answers to test questions; each part of a round has six."""
    owner = user()
    template = builders.rating_template(owner, prompts=30)
    section = template.sections.get()
    section.settings |= {"positive_share": 0.5, "negative_share": 0.5, "neutral": "wrong"}
    section.save(update_fields=["settings"])
    human = template.systems.get()
    request = KnownAnswerRequest(section.questions.get(), {"positive": 15, "negative": 15}, human)
    make_test_questions_and_delete_test_runs(section, request, by=owner)
    ExclusionRule.objects.create(
        study=template, rule="failed_tests", settings={"failed": 2, "counted": 8, "share": None}, position=1
    )
    type(template).objects.filter(pk=template.pk).update(bars_flagged_annotators=True, consent="I take part.")
    template.refresh_from_db()
    board = builders.open_board(owner, template, sample_size=12, labels_per_output=1)
    return board


def play(board, system):
    """Open a round about one more system, let the same people take part, and close and screen it."""
    team = board.teams.first() or builders.team_of(board)[0]
    builders.submit(board, team, system)
    one = rounds.open_round(board, board.owner)
    study = one.study
    strengths = {name: STRENGTHS[name] for name in study.systems.judged().values_list("name", flat=True)}
    for person in (NOISY, *CAREFUL):
        crowd = simulate.CrowdSettings(
            careless=float(person == NOISY), noise=0, spread=0, screened_out=0, acquiescent=0
        )
        shared = simulate.SharedRobotData(study, strengths, crowd)
        list(simulate._take_part(study, person, shared, random.Random(f"{person}, {one.number}")))
    study.refresh_from_db()
    lifecycle.start_closing(study, None, "the robots have finished")
    lifecycle.end_grace_period(study, None)
    study.refresh_from_db()
    request_screening(study, board.owner, "robot")
    jobs.run_waiting_jobs()
    return study


def noisy_person():
    return assign.get_or_create_annotator("robots", NOISY)


def rows_of(study):
    return AnnotatorScreening.objects.filter(study=study).latest("pk").result


def test_people_are_judged_by_all_rounds_and_barred_from_the_next(board):
    first = play(board, "good")
    noisy = noisy_person()
    assert {row["is_failed"] for row in rows_of(first)["rows"]} == {None} and rows_of(first)["pooled"] == []
    assert not Barring.objects.exists()
    second = play(board, "new")
    result = rows_of(second)
    failed = [row for row in result["rows"] if row["is_failed"]]
    assert sum(failed[0]["counted"]) == 12 and len(failed) == 1
    assert {row["study"] for row in result["pooled"]} == {str(first.code), str(second.code)}
    assert "rounds of the board were judged together" in " ".join(result["sentences"])
    barring = Barring.objects.get()
    assert (barring.annotator, barring.study, barring.scope) == (noisy, second, "board")
    third = play(board, "newer")
    assert is_barred(first, noisy.pk) and is_barred(third, noisy.pk)
    assert not Assignment.objects.filter(study=third, annotator=noisy).exists()
    # The next screening judges the same person again, and bars nobody twice.
    assert Barring.objects.count() == 1 and len(rows_of(third)["pooled"]) == 3


def test_a_report_of_a_round_leaves_out_whom_all_rounds_flag_and_stores_which_it_read(board):
    studies = [play(board, "good"), play(board, "new")]
    for study in studies:
        flow = build_report(study, {"origins": ["robot"]})["flow"]
        assert {row["study"] for row in flow["test_answers_of"]} == {str(one.code) for one in studies}
        assert all(row["answers"] > 0 and row["annotators"] > 0 for row in flow["test_answers_of"])
        assert [row["rule"] for row in flow["excluded_assignments"]] == ["failed_tests"]


def test_who_withdraws_or_is_barred_no_longer_leaves_the_fit(board):
    play(board, "good")
    second = play(board, "new")
    noisy = noisy_person()
    before = read_test_answers(second, ["robot"])
    n = before["annotator"].value_counts()
    lift_barring(Barring.objects.get(), "The texts were cut off.", board.owner)
    lifted = read_test_answers(second, ["robot"])
    assert len(before) - len(lifted) == 12 and lifted["annotator"].nunique() == len(n) - 1
    # Nothing that was judged already bars again.
    request_screening(second, board.owner, "robot")
    jobs.run_waiting_jobs()
    assert not is_barred(second, noisy.pk)
    other = Assignment.objects.filter(study=second, submitted_at__isnull=False).exclude(annotator=noisy).first()
    withdraw_annotator_and_erase_texts(other)
    assert read_test_answers(second, ["robot"])["annotator"].nunique() == len(n) - 2


def test_the_boards_page_and_rest_show_the_people_of_all_rounds(board):
    client, api = logged_in(board.owner), api_of(board.owner)
    url = f"/boards/{board.slug}/manage/annotators/"
    assert "Nothing was computed yet" in client.get(url).text
    assert api.get(f"boards/{board.slug}/annotators/").status_code == 404
    play(board, "good")
    play(board, "new")
    found = read_board_screening(board)
    (noisy,) = [one for one in found.people if one.is_barred]
    assert noisy.rounds == (1, 2) and [row["round"] for row in found.pooled] == [1, 2]
    page = client.get(url)
    barring = reverse("study_annotator_barring", args=[noisy.study.pk, noisy.annotator])
    assert barring in page.text and "<td>1, 2</td>" in page.text
    assert "other rounds of its board" in client.get(barring).text
    sent = api.get(f"boards/{board.slug}/annotators/").json()
    assert [row["round"] for row in sent["pooled"]] == [1, 2] and sent["round"] == 2
    (row,) = [row for row in sent["annotators"] if row["barred"]]
    assert row["is_failed"] and row["positive"]["counted"] + row["negative"]["counted"] == 12
    assert logged_in(user("stranger")).get(url).status_code == 404
