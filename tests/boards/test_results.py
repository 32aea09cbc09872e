"""The numbers of a snapshot over several rounds: one scale, drift, claims, probes, and what a first place rests on."""

import json

import pytest

from boards.services import metric_tables, snapshots
from boards.services.results import compute_board_result
from tests import ROOT
from tests.analysis.report.populations import places_of_numbers
from tests.boards import builders
from tests.boards.scored_rows import NEW, ROUNDS, TRUTH, rows_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def board():
    return builders.open_board()


def test_a_lenient_round_is_found_and_taken_out(board):
    result = compute_board_result(board, rows_of(ROUNDS, leniency={2: 0.12}), NEW)
    equating = result["tables"]["overall"]["equating"]
    assert equating["anchors"] == [1, 3] and equating["linked"] == [[1, 2, 3]]
    shift = {one["round"]: one["estimate"] for one in equating["shifts"]}
    assert shift[1] == 0 and 8 < shift[2] < 16 and abs(shift[3]) < 5
    assert equating["drift"]["pvalue"] < 0.001
    scores = {row["submission"]: row["scores"]["overall"]["estimate"] for row in result["rows"]}
    assert abs(scores[4] - 62) < 6
    assert [row["submission"] for row in result["rows"]][0] == 1
    assert any(probe["name"] == "drift" and probe["fires"] for probe in result["audit"])
    json.dumps(result, allow_nan=False)


@pytest.mark.parametrize("leniency", [-0.12, 0.12])
def test_metrics_are_compared_with_answers_without_the_shift_of_their_round(board, leniency):
    """Anchors are answered alike in both rounds once the shift is gone. With the wrong sign it would be there twice."""
    rows = rows_of(ROUNDS, leniency={2: leniency})
    points = metric_tables.answers_in_points(rows, compute_board_result(board, rows, NEW), "overall")
    anchors = points[points["system"].isin([1, 3])]
    means = anchors.groupby("round")["value"].mean()
    stored = 100 * rows[rows["system"].isin([1, 3])].groupby("round")["value"].mean()
    assert abs(stored[2] - stored[1]) > 8
    assert means[1] == pytest.approx(stored[1])  # the scale is the first round's
    assert abs(means[2] - means[1]) < 2 and abs(means[3] - means[1]) < 2


def test_without_drift_nothing_is_found(board):
    result = compute_board_result(board, rows_of(ROUNDS, seed=1), NEW)
    assert result["tables"]["overall"]["equating"]["drift"]["pvalue"] > 0.05
    assert not any(probe["fires"] for probe in result["audit"] if probe["name"] == "drift")


def test_rounds_without_an_anchor_are_ranked_apart_and_say_so(board):
    result = compute_board_result(board, rows_of({1: [2, 3], 2: [4, 5]}), NEW)
    table = result["tables"]["overall"]
    assert table["equating"]["linked"] == [[1], [2]]
    assert table["equating"]["holds_within"] == {"4": [2], "5": [2]}
    by_number = {row["submission"]: row["scores"]["overall"] for row in result["rows"]}
    assert by_number[4]["status"] == "not_identified" and by_number[4]["rank_low"] is None
    assert "holds within its rounds" in by_number[4]["reason"]
    assert by_number[3]["rank_low"] == 1
    assert [row["submission"] for row in result["rows"]][:2] == [3, 2]


def test_better_than_the_best_before_is_corrected_and_keeps_its_history(board):
    truth = {1: 0.40, 2: 0.50, 3: 0.52, 4: 0.53, 5: 0.85}
    rows = rows_of(ROUNDS, truth=truth)
    found = {one["submission"]: one for one in compute_board_result(board, rows, NEW)["better"]}
    assert found[2]["is_better"] and found[5]["is_better"]
    assert not found[4]["is_better"] and found[4]["best_before"] in (2, 3)
    assert sum(one["alpha"] for one in found.values() if not one["is_better"]) < 0.05
    before = compute_board_result(board, rows[rows["round"] < 3], {k: v for k, v in NEW.items() if v < 3})["better"]
    assert [one["is_better"] for one in before] == [found[2]["is_better"], found[3]["is_better"], found[4]["is_better"]]


def test_a_first_place_says_what_it_rests_on(board):
    close = {**TRUTH, 5: 0.795}
    found = compute_board_result(board, rows_of({1: [1, 5]}, truth=close, seed=3), {5: 1})["sensitivity"]
    clear = compute_board_result(board, rows_of({1: [1, 2]}, seed=3), {2: 1})["sensitivity"]
    assert found["answers"]["is_confirmed"] and found["answers"]["n"] <= 5
    assert clear["answers"]["n"] is None or clear["answers"]["n"] > found["answers"]["n"]
    assert found["people"]["total"] == 24


def test_the_papers_scores_are_means_of_all_answers(board):
    rows = rows_of({1: [1, 2]})
    result = compute_board_result(board, rows, {2: 1})
    paper = {row["submission"]: row["scores"]["overall"]["paper"] for row in result["rows"]}
    assert paper[2]["estimate"] == pytest.approx(100 * rows[rows["system"] == 2]["value"].mean())
    assert paper[2]["n"] == 80 and paper[2]["unit"] == "answer"
    mean = paper[2]["estimate"] / 100
    assert paper[2]["worst_case_se"] == pytest.approx(100 * (mean * (1 - mean) / 80) ** 0.5)
    score = result["rows"][-1]["scores"]["overall"]
    # The paper's interval ignores that people and prompts answer alike, so it is too narrow.
    assert paper[2]["high"] - paper[2]["low"] < score["high"] - score["low"]


def test_a_subsample_claims_less_and_is_more_precise(board):
    rows = rows_of({1: [1, 2]})
    wide = compute_board_result(board, rows, {2: 1})["rows"][0]["scores"]["overall"]
    board.population = "subsample"
    narrow = compute_board_result(board, rows, {2: 1})["rows"][0]["scores"]["overall"]
    assert narrow["estimate"] == wide["estimate"]
    assert narrow["high"] - narrow["low"] < wide["high"] - wide["low"]


@pytest.mark.slow
def test_results_of_two_rounds_through_the_whole_product():
    board = builders.open_board()
    team, _ = builders.team_of(board)
    builders.submit(board, team, "weak")
    builders.play_round(board)
    first = snapshots.take_snapshot(board, board.owner)
    builders.submit(board, team, "good")
    builders.play_round(board, seed=2)
    second = snapshots.take_snapshot(board, board.owner)
    assert (first.number, second.number) == (1, 2)
    assert second.result["tables"]["overall"]["equating"]["anchors"] == [1]
    names = [row["name"] for row in snapshots.display_rows(second)]
    assert names[-1] == "weak"
    assert {one["submission"] for one in second.result["better"]} == {2, 3}
    assert [row["round"] for row in second.result["rows"] if row["submission"] in (2, 3)] != [None, None]


def test_the_papers_studies_compare_one_label_with_several(board):
    rows = rows_of({1: [1, 2]}, labels=3)
    entries = compute_board_result(board, rows, {2: 1})["paper"]
    assert {(one["submission"], one["aggregate"]) for one in entries} == {
        (number, aggregate) for number in (1, 2) for aggregate in ("mean", "majority")
    }
    for one in entries:
        assert (one["outputs"], one["labels_per_output"], one["draws"]) == (40, 3, 500)
        # Outputs differ, so one label on many outputs tells more than three labels on a third of them.
        assert one["exact_unilabel"] < one["exact_multilabel"]
        assert one["sd_unilabel"] == pytest.approx(one["exact_unilabel"], rel=0.15)
    assert not compute_board_result(board, rows_of({1: [1, 2]}, labels=1), {2: 1})["paper"]


def test_days_and_weekdays_of_the_same_systems_are_compared(board):
    days = compute_board_result(board, rows_of(ROUNDS, leniency={2: 0.15}), NEW)["days"]
    assert set(days) == {"day", "weekday"}
    assert [one["name"] for one in days["weekday"]["effects"]] == ["1 Monday", "2 Tuesday", "7 Sunday"]
    effects = {one["name"]: one["estimate"] for one in days["day"]["effects"]}
    assert 10 < effects["2026-11-02"] < 20 and abs(effects["2026-11-03"]) < 6
    assert days["day"]["pvalue"] < 0.001
    assert compute_board_result(board, rows_of({1: [1, 2]}), {2: 1})["days"] == {}


@pytest.mark.parametrize("population, expected", [("prompts", "people and prompts"), ("subsample", "people")])
def test_each_number_is_about_the_population_of_the_board(board, population, expected):
    board.population = population
    found = places_of_numbers(compute_board_result(board, rows_of(ROUNDS), NEW))
    # The page says beside the effects of days that they are about exactly these prompts.
    others = {place: named for place, named in found.items() if named != expected and not place.startswith("days")}
    assert len(found) > 5 and others == {}


def test_the_page_of_the_paper_says_that_days_are_about_exactly_these_prompts():
    page = (ROOT / "templates" / "boards" / "paper.html").read_text(encoding="utf-8")
    assert "Days and weekdays, for exactly these prompts" in page
