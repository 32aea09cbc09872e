"""One file with the labels of all rounds of a board: what is in it, under which pseudonyms, and who may have it."""

import csv
import io
import random

import pytest
from django.urls import reverse

from annotators.models import Assignment
from annotators.participation import simulate
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from boards.services import labels, rounds, snapshots, submissions
from studies.design.wording import JOINING_SENTENCE, wording_of
from studies.models import Study
from studies.services import jobs, lifecycle
from studies.services.known_answers import KnownAnswerRequest, make_test_questions_and_delete_test_runs
from tests.admin_pages import logged_in
from tests.analysis.api.rest import Api, api_of
from tests.boards import builders
from tests.builders import user

from .api.rest import api_of_team

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
PEOPLE = ("anna", "ben", "cleo")
STRENGTHS = {"human": 1.5, "good": 1.0, "new": 0.5}


def board_with_test_questions(**columns):
    """A board whose rounds plant test questions, with a consent text."""
    owner = user()
    template = builders.rating_template(owner, prompts=20)
    section = template.sections.get()
    section.settings |= {"positive_share": 0.2, "negative_share": 0.2, "neutral": "wrong"}
    section.save(update_fields=["settings"])
    request = KnownAnswerRequest(section.questions.get(), {"positive": 4, "negative": 4}, template.systems.get())
    make_test_questions_and_delete_test_runs(section, request, by=owner)
    Study.objects.filter(pk=template.pk).update(**{"consent": "I take part."} | columns)
    template.refresh_from_db()
    return builders.open_board(owner, template, sample_size=8, labels_per_output=1)


def play(board, system, **options):
    """Score one more system by the same people, and close the round."""
    team = board.teams.first() or builders.team_of(board)[0]
    builders.submit(board, team, system, **options)
    study = rounds.open_round(board, board.owner).study
    strengths = {name: STRENGTHS[name] for name in study.systems.judged().values_list("name", flat=True)}
    crowd = simulate.CrowdSettings(noise=0, spread=0, screened_out=0, acquiescent=0)
    for person in PEOPLE:
        shared = simulate.SharedRobotData(study, strengths, crowd)
        list(simulate._take_part(study, person, shared, random.Random(f"{person}, {system}")))
    study.refresh_from_db()
    lifecycle.start_closing(study, None, "the robots have finished")
    lifecycle.end_grace_period(study, None)
    snapshots.take_snapshot(board, board.owner)
    return study


def written(board, file_format="csv"):
    job = labels.request_labels(board, board.owner, file_format)
    jobs.run_waiting_jobs()
    job.refresh_from_db()
    assert job.result, job.error
    return job


def rows_of(board):
    _, path = labels.find_labels_file(board, written(board).code)
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("joins", [True, False])
def test_labels_of_all_rounds_have_the_pseudonym_that_the_consent_allows_and_no_test_question(joins):
    board = board_with_test_questions(joins_rounds=joins)
    studies = [play(board, "good"), play(board, "new", is_anonymous=True)]
    found = rows_of(board)
    stored = snapshots.read_board_rows(board)
    key = ["round", "submission", "prompt"]
    assert sorted((*(row[name] for name in key), float(row["value"])) for row in found) == sorted(
        (str(row.round), str(row.system), row.prompt, row.value) for row in stored.itertuples()
    )
    # People answered test questions, and none of these answers is in the file.
    for study in studies:
        answers = study.assignments.filter(responses__item__kind="test", responses__value__isnull=False)
        assert answers.exists()
    names = [{row["annotator"] for row in found if row["round"] == number} for number in ("1", "2")]
    assert [len(one) for one in names] == [3, 3]
    assert (names[0] == names[1]) if joins else not names[0] & names[1]
    # A pseudonym of these files says nothing about those of other files.
    exported = {str(code) for code in Assignment.objects.values_list("annotator__code", flat=True)}
    assert not exported & (names[0] | names[1])
    texts = {row["system"]: row["output"] for row in found}
    assert texts["good"].startswith("A good about") and texts["Submission 3"] == ""
    assert {row["is_simulated"] for row in found} == {"1"}


def test_one_consent_that_does_not_say_so_gives_a_person_a_pseudonym_of_the_round():
    board = board_with_test_questions(joins_rounds=True)
    play(board, "good")
    second = play(board, "new")
    one = second.assignments.order_by("pk").first()
    Assignment.objects.filter(pk=one.pk).update(consented_at=None)
    names = {number: {row["annotator"] for row in rows_of(board) if row["round"] == number} for number in ("1", "2")}
    assert len(names["1"] & names["2"]) == 2 and len(names["2"]) == 3


def test_the_consent_says_that_rounds_are_joined():
    owner = user()
    template = builders.rating_template(owner)
    Study.objects.filter(pk=template.pk).update(consent="I take part.", joins_rounds=True)
    board = builders.open_board(owner, Study.objects.get(pk=template.pk))
    builders.submit(board, builders.team_of(board)[0], "good")
    study = rounds.open_round(board, owner).study
    assert wording_of(study, study.designs.get().pk).study["consent"] == f"I take part.\n\n{JOINING_SENTENCE}"


def test_a_file_with_somebody_who_withdrew_is_given_to_nobody():
    board = board_with_test_questions(joins_rounds=True)
    study = play(board, "good")
    before = rows_of(board)
    owner = api_of(board.owner)
    job = labels.find_labels_file(board)[0]
    address = f"boards/tales/labels/{job.code}/"
    assert owner.get(address).status_code == 200
    withdraw_annotator_and_erase_texts(study.assignments.order_by("pk").first())
    assert owner.get(address).status_code == 404 and labels.find_labels_file(board) is None
    after = rows_of(board)
    assert len({row["annotator"] for row in after}) == 2 and len(after) < len(before)
    submission = board.submissions.get(name="good")
    submissions.withdraw(submission, None)
    assert labels.find_labels_file(board) is None
    assert {row["system"] for row in rows_of(board)} == {"human"}


def test_members_get_the_file_by_the_page_and_over_rest():
    board = board_with_test_questions()
    play(board, "good")
    api, team = api_of(board.owner), api_of_team(board, "Team B")
    sent = api.post("boards/tales/labels/", {"format": "jsonl"})
    assert sent.status_code == 202, sent.body
    assert api.post("boards/tales/labels/", {"format": "xml"}).status_code == 400
    assert team.post("boards/tales/labels/", {"format": "csv"}).status_code == 403
    jobs.run_waiting_jobs()
    job = api.get(f"boards/tales/jobs/{sent.json()['code']}/").json()
    address = job["result"]["url"].partition("/api/v1/")[2]
    assert b'"criterion":"overall"' in api.get(address).body
    assert team.get(address).status_code == 403 and Api().get(address).status_code == 401
    client = logged_in(board.owner)
    page = client.get(reverse("board_manage", args=["tales"])).content.decode()
    assert f'Download it as jsonl</a> <span class="quiet">({job["result"]["rows"]} labels' in page
    got = client.get(reverse("board_labels_file", args=["tales", job["code"]]))
    assert b"".join(got.streaming_content) == api.get(address).body
    assert client.get(reverse("board_labels_file", args=["tales", board.template.code])).status_code == 404
    client.post(reverse("board_labels", args=["tales"]), {"format": "parquet"})
    jobs.run_waiting_jobs()
    assert labels.find_labels_file(board)[0].result == {
        **job["result"],
        "format": "parquet",
        "url": labels.find_labels_file(board)[0].result["url"],
    }
    refused = client.post(reverse("board_labels", args=["tales"]), {"format": "xml"}, follow=True)
    assert "is not a format of labels" in refused.content.decode()


def test_stated_chances_have_no_labels_of_outputs():
    owner = user()
    board = builders.open_board(owner, builders.chance_template(owner), population="subsample")
    with pytest.raises(lifecycle.ActionRefused, match="no label of an output"):
        labels.request_labels(board, owner, "csv")


def test_a_pair_with_a_withdrawn_system_is_left_out():
    owner = user()
    board = builders.open_board(owner, builders.choice_template(owner, prompts=6, m=6), population="subsample")
    team, _ = builders.team_of(board)
    for name in ("good", "weak"):
        builders.submit(board, team, name)
    builders.play_round(board)
    before = rows_of(board)
    assert {float(row["value"]) for row in before} <= {0, 0.5, 1}
    pairs = {(row["annotator"], row["unit"]): [] for row in before}
    for row in before:
        pairs[row["annotator"], row["unit"]].append((row["system"], float(row["value"])))
    assert {len(pair) for pair in pairs.values()} == {2}
    assert {sum(value for _, value in pair) for pair in pairs.values()} == {1}
    submissions.withdraw(board.submissions.get(name="weak"), None)
    left = sum(not any(system == "weak" for system, _ in pair) for pair in pairs.values())
    after = rows_of(board)
    assert 0 < len(after) == 2 * left < len(before) and {row["system"] for row in after} == {"human", "good"}
