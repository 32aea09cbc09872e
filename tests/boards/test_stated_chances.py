"""Bradley-Terry boards from SPA: chances that people state about pairs of systems."""

import json

import numpy as np
import pandas as pd
import pytest

from analysis.metrics.beside_people import scored_questions
from analysis.stats import vote_ratings
from annotators.participation.simulate import CrowdSettings
from boards.services import metric_tables, snapshots
from boards.services.boards import find_opening_problems
from boards.services.preferences import win_percent
from boards.services.results import compute_board_result
from studies.models import Question, Section
from studies.services.lifecycle import ActionRefused
from tests.boards import builders
from tests.builders import user

pytestmark = pytest.mark.django_db
DIVIDED = CrowdSettings(spread=0.4, noise=0.2, screened_out=0, acquiescent=0)


def chances(people=40, seed=0, bias=0.0):
    """Each person states both directions of the three pairs: log-odds of the strengths, plus their own error."""
    rng = np.random.default_rng(seed)
    strength = {1: 0.8, 2: -0.8, 3: 0.0}
    rows = [
        (x, y, 1 / (1 + np.exp(-(strength[x] - strength[y] + bias + rng.normal(0, 0.7)))), person)
        for person in range(people)
        for x in strength
        for y in strength
        if x != y
    ]
    frame = pd.DataFrame(rows, columns=["system", "other", "value", "annotator"]).round({"value": 2})
    return frame.assign(
        criterion="overall",
        is_first=True,
        prompt=None,
        domain=None,
        day="2026-11-01",
        round=np.where(frame["annotator"] < people / 2, 1, 2),
    )


@pytest.fixture
def board():
    owner = user()
    return builders.open_board(owner, builders.chance_template(owner), population="subsample")


def test_ratings_are_of_the_stated_chances_and_not_of_votes(board):
    rows = chances()
    result = compute_board_result(board, rows, {2: 1, 3: 2})
    assert (result["kind"], result["is_of_stated_chances"]) == ("preferences", True)
    assert [row["submission"] for row in result["rows"]] == [1, 3, 2]
    scores = {row["submission"]: row["scores"]["overall"] for row in result["rows"]}
    # Errors on the scale of log-odds pull mean chances a little to the middle.
    assert scores[1]["estimate"] == pytest.approx(win_percent(0.8), abs=3)
    assert scores[1]["low"] < scores[1]["estimate"] < scores[1]["high"]
    assert (scores[1]["annotators"], scores[1]["labels"], scores[1]["prompts"]) == (40, 160, None)
    as_votes = vote_ratings.paired_ratings(
        rows["system"] - 1,
        rows["other"] - 1,
        (rows["value"] > 0.5).astype(float),
        rows["annotator"],
        n_systems=3,
        rng=np.random.default_rng(0),
    )
    assert win_percent(as_votes.ratings[0].estimate) > scores[1]["high"], "votes lose how sure people are"
    assert result["tables"]["overall"]["ties"] is None
    assert not any(probe["fires"] for probe in result["audit"] if probe["name"] != "heavy_voter")
    json.dumps(result, allow_nan=False)


def test_people_who_favour_the_system_that_is_named_first_are_found(board):
    result = compute_board_result(board, chances(bias=0.5), {2: 1, 3: 2})
    assert "first_shown" in {probe["name"] for probe in result["audit"] if probe["fires"]}


def test_a_chance_counts_as_a_win_and_a_loss_with_its_weights(board):
    rows = chances(people=12)
    common = {"n_systems": 3, "ties": "half"}
    first, second, value = (rows[name].to_numpy() for name in ("system", "other", "value"))
    once = vote_ratings.paired_ratings(
        first - 1, second - 1, value, rows["annotator"], rng=np.random.default_rng(1), **common
    )
    twice = vote_ratings.paired_ratings(
        np.r_[first, first] - 1,
        np.r_[second, second] - 1,
        np.r_[np.ones(len(value)), np.zeros(len(value))],
        np.r_[rows["annotator"], rows["annotator"]],
        weights=np.r_[value, 1 - value],
        rng=np.random.default_rng(1),
        **common,
    )
    for one, other in zip(once.ratings, twice.ratings, strict=True):
        assert one.estimate == pytest.approx(other.estimate, abs=1e-8)
        assert one.interval.low == pytest.approx(other.interval.low, abs=1e-6)


def test_each_round_asks_about_all_pairs_of_its_systems(client):
    owner = user()
    template = builders.chance_template(owner, prompts=24, m=12)
    section = template.sections.get()
    Question.objects.filter(section=section).update(criterion="style")
    Question.objects.create(
        section=section,
        position=2,
        key="facts",
        text="{x} has better facts than {y}?",
        criterion="facts",
        scale={"kind": "percent"},
    )
    board = builders.open_board(owner, template, population="subsample", labels_per_output=8)
    team, _ = builders.team_of(board)
    for name in ("weak", "good"):
        builders.submit(board, team, name)
    one = builders.play_round(board, {"human": 0.3, "weak": -0.3, "good": 0.1}, crowd=DIVIDED)
    # Each of 24 prompts is read by 8 people, 12 prompts each.
    assert one.study.target_n == 16
    asked = one.study.sections.get().questions.values_list("x__name", "y__name", "criterion", "help")
    assert len(asked) == len(set(asked)) == 12
    assert {text for *_, criterion, text in asked if criterion == "style"} == {"Think of all texts."}
    assert template.sections.get().questions.count() == 2, "the template stays as it is"
    result = snapshots.take_snapshot(board, owner).result
    assert [one["key"] for one in result["criteria"]] == ["overall", "style", "facts"]
    assert [row["name"] for row in snapshots.display_rows(board.snapshots.get())][-1] == "weak"
    assert {row["scores"]["overall"]["annotators"] for row in result["rows"]} == {16}
    assert result["rows"][0]["scores"]["facts"]["labels"] == 4 * 16
    client.force_login(owner)
    page = client.get(f"/boards/{board.slug}/manage/").content.decode()
    assert "Compute the results again" in page and "Compute metrics" not in page


def test_what_stated_chances_cannot_have_is_refused():
    owner = user()
    template = builders.chance_template(owner)
    board = builders.open_board(owner, template, population="subsample")
    with pytest.raises(ActionRefused, match="chances about whole systems"):
        metric_tables.request_metrics(board, owner, ["bleu"])
    assert scored_questions(template) == []
    board.controls_style = True
    assert any("Untick" in problem for problem in find_opening_problems(board))
    Section.objects.create(
        study=template,
        position=2,
        protocol="two_choice",
        m=6,
        settings={"pairs": "all", "stopping": "none", "strategy": "any"},
    )
    assert any("whole systems. Keep one" in problem for problem in find_opening_problems(board))
