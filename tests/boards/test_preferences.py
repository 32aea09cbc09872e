"""Bradley-Terry boards from two choices, and boards of relative scales against the reference."""

import json

import numpy as np
import pandas as pd
import pytest

from annotators.participation.simulate import CrowdSettings
from boards.models import BoardSnapshot
from boards.services import snapshots
from boards.services.preferences import balanced_weights, compare_submissions, style_differences, win_percent
from boards.services.results import compute_board_result
from boards.views import table
from studies.services.lifecycle import ActionRefused
from tests.analysis.report.populations import places_of_numbers
from tests.boards import builders, stored
from tests.builders import user

pytestmark = pytest.mark.django_db
STRENGTH = {1: 1.0, 2: -1.0, 3: 0.0}


def votes(n=1200, *, first_bonus=0.0, people=60, seed=0, style=None):
    rng = np.random.default_rng(seed)
    systems = rng.integers(1, 4, (n, 2))
    systems = systems[systems[:, 0] != systems[:, 1]]
    n = len(systems)
    is_first = rng.random(n) < 0.5
    prompt = rng.integers(0, 30, n)
    strength = np.array([0, *STRENGTH.values()])
    gap = strength[systems[:, 0]] - strength[systems[:, 1]] + np.where(is_first, first_bonus, -first_bonus)
    if style is not None:
        gap = gap + style[systems[:, 0], prompt] - style[systems[:, 1], prompt]
    outcome = (rng.random(n) < 1 / (1 + np.exp(-gap))).astype(float)
    outcome[rng.random(n) < 0.1] = 0.5
    return pd.DataFrame(
        {
            "criterion": "overall", "value": outcome, "system": systems[:, 0], "other": systems[:, 1],
            "is_first": is_first.astype(object), "prompt": [f"p{one}" for one in prompt],
            "domain": np.where(prompt < 15, "news", "fiction"), "annotator": rng.integers(0, people, n),
            "day": "2026-11-01", "round": np.where(np.arange(n) < n // 2, 1, 2),
        }
    )  # fmt: skip


@pytest.fixture
def board():
    owner = user()
    return builders.open_board(owner, builders.choice_template(owner), population="subsample")


@pytest.mark.parametrize("always, places", [(1.0, [1, 3, 2]), (0.0, [3, 2, 1])])
def test_a_system_that_won_or_lost_everything_has_a_rank_and_the_others_their_ratings(board, always, places):
    rows = votes()
    rows.loc[rows["system"] == 1, "value"] = always
    rows.loc[rows["other"] == 1, "value"] = 1 - always
    result = compute_board_result(board, rows, {2: 1, 3: 2})
    assert [row["submission"] for row in result["rows"]] == places
    scores = {row["submission"]: row["scores"]["overall"] for row in result["rows"]}
    place = places.index(1) + 1
    assert (scores[1]["rank_low"], scores[1]["rank_high"], scores[1]["estimate"]) == (place, place, None)
    assert "its distance from the others is unbounded" in scores[1]["reason"]
    assert scores[3]["low"] < scores[3]["estimate"] < scores[3]["high"]
    assert result["tables"]["overall"]["differences"]["systems"] == [2, 3]
    json.dumps(result, allow_nan=False)


def test_a_system_that_one_annotator_alone_compared_has_no_rating_and_the_reason(board, client):
    team, _ = builders.team_of(board)
    for name in ("best", "worst", "third", "of one person")[board.submissions.count() :]:
        builders.submit(board, team, name)
    rows = votes()
    added = rows.head(6).assign(system=4, other=[2, 3, 2, 3, 2, 3], value=[1, 0, 1, 1, 1, 0], annotator=0)
    result = compute_board_result(board, pd.concat([rows, added]), {2: 1, 3: 2})
    snapshot = stored.add_snapshot(board, stored.result(board, {1: {"overall": {}}}) | result)
    address = f"/boards/{board.slug}/"
    shown = {
        row["submission"]: row["scores"]["overall"]
        for row in client.get(f"/api/v1{address}snapshots/1/").json()["rows"]
    }
    fields = ("estimate", "low", "rating", "rank_low", "rank_high", "status")
    assert [shown[4][field] for field in fields] == [None, None, None, 1, 4, "not_identified"]
    assert shown[1]["low"] < shown[1]["estimate"] < shown[1]["high"]
    assert shown[4]["reason"].startswith("one annotator alone gave the answers that connect some systems")
    assert client.get(address).content.decode().count(shown[4]["reason"]) == 1
    found = compare_submissions(snapshot, 4, 1)
    assert (found.estimate, found.reason) == (None, shown[4]["reason"])


def test_ratings_ranks_ties_and_categories(board):
    result = compute_board_result(board, votes(), {2: 1, 3: 2})
    assert result["kind"] == "preferences"
    assert [row["submission"] for row in result["rows"]] == [1, 3, 2]
    best = result["rows"][0]["scores"]["overall"]
    assert best["low"] < best["estimate"] < best["high"] and best["is_best"] and best["rank_high"] == 1
    assert best["estimate"] == pytest.approx(win_percent(1.0), abs=6)
    assert best["rating"] == pytest.approx(1000 + 400 / np.log(10), abs=50)
    table = result["tables"]["overall"]
    assert table["ties"] > 0 and set(table["by_category"]) == {"news", "fiction"}
    assert not any(probe["fires"] for probe in result["audit"])
    assert result["sensitivity"]["first"] == 1 and result["sensitivity"]["answers"]["challenger"] == 3
    json.dumps(result, allow_nan=False)


def test_a_favoured_place_fires(board):
    result = compute_board_result(board, votes(first_bonus=0.5), {2: 1, 3: 2})
    assert {probe["name"] for probe in result["audit"] if probe["fires"]} == {"first_shown"}


@pytest.mark.slow
def test_style_control_takes_length_out(board, monkeypatch):
    rng = np.random.default_rng(4)
    words = rng.integers(20, 400, (4, 30)) * np.array([1, 1, 5, 1])[:, None]
    style = 0.8 * np.log1p(words)
    rows = votes(4000, style=style, seed=5)
    styles = pd.DataFrame(
        {"words": words[1:].ravel(), "marks": 0},
        index=pd.MultiIndex.from_product([[1, 2, 3], [f"p{n}" for n in range(30)]], names=["system", "prompt"]),
    )
    differences, names = style_differences(rows, styles)
    assert names == ("length (log of words)",) and differences.shape == (len(rows), 1)
    monkeypatch.setattr("boards.services.results.read_styles", lambda board: styles)
    plain = compute_board_result(board, rows, {2: 1, 3: 2})
    board.controls_style = True
    controlled = compute_board_result(board, rows, {2: 1, 3: 2})
    of_second = [
        next(row for row in result["rows"] if row["submission"] == 2)["scores"]["overall"]["rating"]
        for result in (plain, controlled)
    ]
    assert of_second[0] > 950 and of_second[1] == pytest.approx(1000 - 400 / np.log(10), abs=70)
    effect = controlled["tables"]["overall"]["covariates"][0]
    assert effect["low"] < 0.8 < effect["high"]


@pytest.mark.slow
def test_pairs_that_were_shown_often_count_no_more_than_others(board):
    rows = votes()
    # The wins of 3 over 1 are repeated, as if people had seen this pair nine times as often.
    often = rows[(rows["system"] == 1) & (rows["other"] == 3) & (rows["value"] == 0)]
    rows = pd.concat([rows, *[often] * 8], ignore_index=True)
    plain = compute_board_result(board, rows, {2: 1, 3: 2})
    board.balances_pairs = True
    balanced = compute_board_result(board, rows, {2: 1, 3: 2})
    assert [result["tables"]["overall"]["is_balanced"] for result in (plain, balanced)] == [False, True]
    gaps = []
    for result in (plain, balanced):
        ratings = {row["submission"]: row["scores"]["overall"]["rating"] for row in result["rows"]}
        gaps.append(ratings[1] - ratings[2])
    # True: 347 points. The repeated pair pulls system 1 down, and less if it counts as one pair of three.
    assert gaps[0] < gaps[1]
    codes = [np.array([0, 1, 0, 0]), np.array([1, 0, 1, 2])]
    weights = balanced_weights(*codes, np.array([1.0, 0.0, np.nan, 0.5]))
    assert weights[[0, 1, 3]].sum() == pytest.approx(3) and weights[0] + weights[1] == pytest.approx(weights[3])
    assert any("counts alike" in text for text in table.check_sentences(balanced))


def test_preferences_claim_no_new_prompts():
    owner = user()
    with pytest.raises(ActionRefused, match="exactly these prompts"):
        builders.open_board(owner, builders.choice_template(owner))


@pytest.mark.slow
def test_two_choices_through_the_whole_product():
    owner = user()
    template = builders.choice_template(owner, prompts=24)
    board = builders.open_board(owner, template, population="subsample")
    team, _ = builders.team_of(board)
    for name in ("weak", "good"):
        builders.submit(board, team, name)
    # People who differ, so that no system wins always.
    divided = CrowdSettings(spread=0.4, noise=0.2, screened_out=0, acquiescent=0)
    one = builders.play_round(board, {"human": 0.3, "weak": -0.3, "good": 0.1}, crowd=divided)
    # 3 systems x 24 prompts x 2 labels, two outputs on a page, on batches of 6.
    assert one.study.target_n == 12
    snapshot = snapshots.take_snapshot(board, owner)
    rows = {row["name"]: row["scores"]["overall"] for row in snapshots.display_rows(snapshot)}
    assert {row["status"] for row in rows.values()} == {"ok"}, rows
    assert rows["weak"]["estimate"] < rows["human"]["estimate"]
    assert snapshot.n_labels == 72


@pytest.mark.slow
def test_a_relative_scale_scores_systems_against_the_reference():
    owner = user()
    board = builders.open_board(owner, builders.relative_template(owner))
    team, _ = builders.team_of(board)
    for name in ("weak", "good"):
        builders.submit(board, team, name)
    one = builders.play_round(board, {"human": 0.0, "weak": -3.0, "good": 0.0})
    assert one.study.target_n == 2 * 12 * 2 / 6
    snapshot = snapshots.take_snapshot(board, owner)
    rows = {row["name"]: row["scores"]["overall"] for row in snapshots.display_rows(snapshot)}
    assert set(rows) == {"weak", "good"}  # the reference is the middle of the scale, not a system
    assert rows["weak"]["estimate"] < 30 < 35 < rows["good"]["estimate"] < 65


def test_pairs_are_compared_in_rating_points(board):
    result = compute_board_result(board, votes(), {2: 1, 3: 2})
    snapshot = BoardSnapshot(number=1, result=result)
    found = compare_submissions(snapshot, 1, 2)
    assert (found.unit, found.systems, found.reason) == ("rating points", 3, "")
    # The true strengths differ by 2 in log-odds.
    assert found.low < 2 * 400 / np.log(10) < found.high
    rating = {row["submission"]: row["scores"]["overall"]["rating"] for row in result["rows"]}
    assert found.estimate == pytest.approx(rating[1] - rating[2])


def test_each_number_of_a_board_of_votes_is_about_its_own_sample(board):
    found = places_of_numbers(compute_board_result(board, votes(), {2: 1, 3: 2}))
    assert len(found) > 5 and set(found.values()) == {"people"}
