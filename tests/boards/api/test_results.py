"""Boards, rounds, snapshots, teams and comparisons over REST."""

from decimal import Decimal

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from boards.models import Board
from boards.services import preferences, snapshots
from studies.services import jobs
from tests.analysis.api.rest import Api, api_of
from tests.boards import builders
from tests.builders import user

from .rest import api_of_team, errors_of, scored_board

pytestmark = pytest.mark.django_db


def test_a_board_from_its_template_to_its_closing():
    owner = user()
    template = builders.rating_template(owner)
    api = api_of(owner)
    sent = {
        "slug": "tales",
        "title": "Tales",
        "template": str(template.code),
        "visibility": "public",
        "budget_per_month": "50.00",
    }
    made = api.post("boards/", sent)
    assert (made.status_code, made.json()["state"], made.json()["budget_per_month"]) == (201, "draft", "50.00"), (
        made.body
    )
    assert Api().get("boards/").json()["results"] == []
    assert errors_of(api.patch("boards/tales/", {"slug": "new"}))[0][1] == "slug"
    assert api.patch("boards/tales/", {"labels_per_output": 2}).json()["labels_per_output"] == 2
    opened = api.post("boards/tales/open/", {}).json()
    assert (opened["state"], opened["prompts"]) == ("open", 12)
    assert errors_of(api.patch("boards/tales/", {"labels_per_output": 3}))[0][1] == "labels_per_output"
    assert api.post("boards/tales/open/", {}).status_code == 409
    shown = Api().get("boards/").json()["results"]
    assert [row["slug"] for row in shown] == ["tales"]
    assert not {"template", "budget_per_month", "launch_hour"} & set(shown[0])
    assert api.post("boards/tales/close/", {}).json()["state"] == "closed"
    assert [row["slug"] for row in Api().get("boards/?state=open").json()["results"]] == []


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"slug": "no slug!"}, "slug"),
        ({"slug": "new"}, "slug"),
        ({"title": ""}, "title"),
        ({"template": "00000000-0000-4000-8000-000000000000"}, "template"),
        ({"template": "x"}, "template"),
        ({"colour": "red"}, "colour"),
        ({"anchor_share": "0.95"}, "anchor_share"),
        ({"labels_per_output": 0}, "labels_per_output"),
        ({"time_zone": "Mars/Olympus"}, "time_zone"),
        ({"launch_weekdays": "7"}, "launch_weekdays"),
        ({"budget_per_month": "-1.00"}, "budget_per_month"),
        ({"visibility": "secret"}, "visibility"),
        ({"sample_size": 2**40}, "sample_size"),
    ],
)
def test_a_bad_board_is_refused_by_its_field(changed, field):
    owner = user()
    template = builders.rating_template(owner)
    answer = api_of(owner).post("boards/", {"slug": "tales", "title": "T", "template": str(template.code)} | changed)
    assert (answer.status_code, {one for _, one, _ in errors_of(answer)}) == (400, {field}), answer.body
    assert not Board.objects.exists()


def test_a_slug_that_is_taken_is_refused():
    owner = user()
    board = builders.open_board(owner)
    answer = api_of(owner).post("boards/", {"slug": board.slug, "title": "T", "template": str(board.template.code)})
    assert (answer.status_code, errors_of(answer)[0][1]) == (400, "slug")


@pytest.mark.slow
def test_the_next_round_is_planned_and_opened_by_a_job():
    board = builders.open_board()
    team = api_of_team(board)
    builders.submit(board, team.team, "good")
    api = api_of(board.owner)
    plan = api.get("boards/tales/rounds/").json()["plan"]
    assert (plan["submissions"], plan["anchors"], plan["places"], plan["cost"]) == ([2], [1], 8, "8.00")
    assert "plan" not in team.get("boards/tales/rounds/").json()
    first = api.send("POST", "boards/tales/rounds/", {}, **{"Idempotency-Key": "a"})
    again = api.send("POST", "boards/tales/rounds/", {}, **{"Idempotency-Key": "a"})
    assert (first.status_code, first.json()["code"]) == (202, again.json()["code"])
    jobs.run_waiting_jobs()
    job = api.get(f"boards/tales/jobs/{first.json()['code']}/").json()
    assert (job["state"], job["result"]["round"]) == ("done", 1), job
    row = api.get("boards/tales/rounds/").json()["results"][0]
    assert (row["state"], row["submissions"], Decimal(row["expected_cost"])) == ("launched", [1, 2], 8)
    # Nobody else learns of a round before it is closed.
    public = Api().get("boards/tales/rounds/").json()["results"][0]
    assert (public["state"], public["submissions"]) == ("running", None) and "study" not in public
    assert api.post("boards/tales/rounds/1/cancel/", {}).status_code == 409
    assert api.post("boards/tales/rounds/", {}).status_code == 409
    assert api.post("boards/tales/rounds/9/cancel/", {}).status_code == 404


@pytest.mark.slow
def test_snapshots_have_rows_with_names_and_results():
    board, team = scored_board()
    listed = Api().get("boards/tales/snapshots/").json()["results"]
    assert [(one["number"], one["labels"]) for one in listed] == [(1, 72)]
    latest, first = (Api().get(f"boards/tales/snapshots/{name}/") for name in ("latest", "1"))
    assert latest.json() == first.json()
    shown = latest.json()
    assert [row["name"] for row in shown["rows"]] == ["human", "good", "weak"]
    assert shown["result"]["criteria"][0]["key"] == "overall"
    assert "study" not in shown["result"]["rounds"][0]
    assert Api().get("boards/tales/snapshots/2/").status_code == 404
    # A team of a private board reads the scores of its own submissions.
    Board.objects.update(visibility="members")
    assert team.get("boards/tales/snapshots/1/").status_code == 403
    rows = team.get("boards/tales/submissions/").json()["results"]
    assert [row["name"] for row in rows] == ["weak", "good"]
    assert rows[0]["scores"]["overall"]["rank_high"] == 3


def compared(one, other):
    return Api().get(f"boards/tales/submissions/{one}/comparison/?baseline={other}").json()


@pytest.mark.slow
def test_a_comparison_is_the_interval_of_the_leaderboard(monkeypatch):
    kept = []
    original = preferences.stored_differences
    monkeypatch.setattr(
        "boards.services.results.stored_differences", lambda *given: kept.append(given) or original(*given)
    )
    board, _ = scored_board()
    systems, differences = kept[0]
    assert len(systems) == 3 and not np.isnan(differences.low[1:, 0]).any()
    for i, one in enumerate(systems):
        for j, other in enumerate(systems):
            if i != j:
                found = compared(one, other)
                expected = differences.estimates[i, j], differences.low[i, j], differences.high[i, j]
                assert (found["estimate"], found["low"], found["high"]) == pytest.approx(expected)
    best, weak = compared(1, 2), compared(2, 1)
    assert (best["level"], best["method"], best["systems"], best["reason"]) == (0.95, "max_t", 3, "")
    assert weak["high"] < 0 < best["low"]


@pytest.mark.slow
def test_a_comparison_over_two_rounds_uses_a_link_with_an_error():
    board, team = scored_board()
    builders.submit(board, team.team, "middle")
    builders.play_round(board, seed=5)
    snapshot = snapshots.take_snapshot(board, board.owner)
    across = compared(4, 2)
    assert (across["snapshot"], across["systems"]) == (2, 4) and across["low"] < across["estimate"] < across["high"]
    # The width of one interval is random. The link itself must have an error, which the statistics add (tests of `ranks`).
    first, second = snapshot.result["tables"]["overall"]["equating"]["shifts"]
    assert (first["round"], first["low"], second["round"]) == (1, None, 2)
    assert second["low"] < second["estimate"] < second["high"] and second["se"] > 0


@pytest.mark.slow
def test_a_comparison_that_is_not_possible_says_why():
    board, team = scored_board()
    builders.submit(board, team.team, "late")
    address = "boards/tales/submissions/{}/comparison/"
    assert errors_of(Api().get(address.format(2)))[0][1] == "baseline"
    assert Api().get(address.format(2) + "?baseline=4").status_code == 404
    answer = team.get(address.format(4) + "?baseline=2")
    assert (answer.status_code, answer.json()["detail"]) == (
        409,
        "Snapshot 1 has no score of submission 4. Choose a scored one.",
    )
    same = Api().get(address.format(2) + "?baseline=2").json()
    assert same["low"] is None and same["reason"]
    Board.objects.update(visibility="members")
    assert team.get(address.format(2) + "?baseline=1").status_code == 404
    assert team.get(address.format(2) + "?baseline=3").status_code == 200


def test_a_board_without_a_snapshot_compares_nothing():
    board = builders.open_board()
    team = api_of_team(board)
    one = builders.submit(board, team.team, "good")
    answer = team.get(f"boards/tales/submissions/{one.number}/comparison/?baseline={one.number}")
    assert (answer.status_code, "no snapshot yet" in answer.json()["detail"]) == (409, True)
    assert api_of(board.owner).get("boards/tales/snapshots/latest/").status_code == 404


@pytest.mark.slow
def test_a_snapshot_of_before_has_no_interval_for_pairs():
    board, _ = scored_board()
    stored = snapshots.take_snapshot(board, board.owner)
    stored.result["tables"]["overall"].pop("differences")
    found = preferences.compare_submissions(stored, 2, 3)
    assert (found.estimate, found.low, found.reason) == (None, None, "the snapshot has no interval for this pair")


def test_teams_get_a_key_once_and_a_link():
    board = builders.open_board()
    api = api_of(board.owner)
    made = api.post("boards/tales/teams/", {"name": "Team A"}).json()
    assert made["link"].endswith(f"/boards/tales/team/{made['key']}/")
    assert Api(made["key"]).get("boards/tales/prompts/").status_code == 200
    listed = api.get("boards/tales/teams/")
    assert made["key"] not in listed.body.decode() and listed.json()["results"][0]["submissions"] == 0
    assert errors_of(api.post("boards/tales/teams/", {"name": "Team A"}))
    assert errors_of(api.post("boards/tales/teams/", {"name": ""}))[0][1] == "name"
    number = made["number"]
    assert api.post(f"boards/tales/teams/{number}/revoke/", {}).json()["revoked_at"]
    assert Api(made["key"]).get("boards/tales/prompts/").status_code == 401
    new = api.post(f"boards/tales/teams/{number}/key/", {})
    assert (new.json()["revoked_at"], new["Cache-Control"]) == (None, "private, no-store")
    assert Api(new.json()["key"]).get("boards/tales/prompts/").status_code == 200
    assert api.post("boards/tales/teams/99999999999999999999/revoke/", {}).status_code == 404


@pytest.mark.slow
def test_an_anchor_is_chosen():
    board, _ = scored_board()
    api = api_of(board.owner)
    assert api.post("boards/tales/submissions/3/anchor/", {"is_anchor": True}).json()["is_anchor"]
    assert api.post("boards/tales/submissions/1/anchor/", {"is_anchor": True}).status_code == 409
    assert errors_of(api.post("boards/tales/submissions/3/anchor/", {"is_anchor": 1}))[0][1] == "is_anchor"
    answer = api.post("boards/tales/submissions/1/withdraw/", {})
    assert (answer.status_code, "template cannot be withdrawn" in answer.json()["detail"]) == (409, True)


@pytest.mark.slow
def test_the_number_of_queries_does_not_grow_with_submissions(monkeypatch):
    monkeypatch.setattr("analysis.api.permissions.count_in_this_minute", lambda *_: 0)
    board, team = scored_board()
    paths = ("submissions/", "rounds/", "snapshots/latest/", "prompts/")

    def counted():
        found = []
        for path in paths:
            with CaptureQueriesContext(connection) as queries:
                assert team.get(f"boards/tales/{path}").status_code == 200
            found.append(len(queries))
        return found

    before = counted()
    for number in range(5):
        builders.submit(board, team.team, f"more {number}")
    assert counted() == before and max(before) < 12, before
