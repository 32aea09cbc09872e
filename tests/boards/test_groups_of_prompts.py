"""Where prompts belong to groups, scores of a board are about groups like these, and its page says so."""

import numpy as np
import pytest

from analysis.data.frames import SECOND_SAMPLE
from analysis.metrics.scoring import find_criteria, read_scored_rows
from boards.services import boards
from boards.services.results import compute_board_result
from boards.views.table import population_sentence
from studies.services.lifecycle import ActionRefused
from tests.boards import builders
from tests.boards.scored_rows import NEW, ROUNDS, rows_of
from tests.builders import user
from tools.proofs.calibration.studies import answer_rows, drafted, import_and_report
from tools.proofs.calibration.study_cells import StudyCell

pytestmark = pytest.mark.django_db
SAMPLE = {"sample": {"prompts": 100, "seed": 5}, "population": "prompts"}
ONE_ROUND = {1: [1, 2, 3]}


@pytest.fixture
def board():
    return builders.open_board()


def intervals_of(result):
    """The intervals of scores, distances and claims, by place. They need no random draw."""
    found = {}
    for row in result["rows"]:
        score = row["scores"]["overall"]
        found["score", row["submission"]] = (score["estimate"], score["low"], score["high"])
    for one in result["better"]:
        found["better", one["submission"]] = (one["estimate"], one["low"], one["high"])
    for one in (result["tables"]["overall"]["equating"] or {"shifts": ()})["shifts"]:
        found["shift", one["round"]] = (one["estimate"], one["low"], one["high"])
    return {place: values for place, values in found.items() if None not in values}


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [ONE_ROUND, ROUNDS])
def test_intervals_are_those_of_groups(board, rounds):
    rows = rows_of(rounds, prompts=100, group_size=10)
    found = intervals_of(compute_board_result(board, rows, NEW))
    as_prompts = intervals_of(compute_board_result(board, rows.assign(prompt=rows[SECOND_SAMPLE]), NEW))
    alone = intervals_of(compute_board_result(board, rows.assign(second_sample=rows["prompt"]), NEW))
    assert len(found) > 3 and found.keys() == as_prompts.keys()
    for place, values in found.items():
        assert values == pytest.approx(as_prompts[place], abs=1e-6), place
    scores = [place for place in found if place[0] == "score"]
    assert np.mean([(found[one][2] - found[one][1]) / (alone[one][2] - alone[one][1]) for one in scores]) > 1.2


def test_the_page_counts_groups(board):
    words = population_sentence(
        compute_board_result(board, rows_of(ONE_ROUND, prompts=100, group_size=10), NEW) | SAMPLE
    )
    assert (
        words == "Scores hold for people and groups of prompts like these: 100 prompts in 10 groups, drawn with seed 5."
    )
    words = population_sentence(
        compute_board_result(board, rows_of(ONE_ROUND, prompts=100, group_size=25), NEW) | SAMPLE
    )
    assert "exactly these 100 prompts in 4 groups" in words
    assert "group" not in population_sentence(compute_board_result(board, rows_of(ONE_ROUND), NEW) | SAMPLE)


def test_a_board_with_fewer_than_five_groups_is_about_its_subsample():
    owner = user()
    template = builders.rating_template(owner)
    keys = sorted(template.prompts.values_list("key", flat=True))
    for place, key in enumerate(keys):
        template.prompts.filter(key=key).update(group=f"report {place % 4}")
    with pytest.raises(ActionRefused, match="belong to 4 groups.*need 5.*subsample"):
        builders.open_board(owner, template)
    other = builders.open_board(owner, template, slug="other", population="subsample")
    assert other.state == "open" and not boards._find_problem_of_groups(other)


@pytest.mark.parametrize("protocol", ["rating", "marks", "two_choice", "humanlike"])
def test_scored_rows_have_the_groups(protocol):
    more = {"estimand": "score"} if protocol == "marks" else {}
    cell = StudyCell(protocol, 6, 12, group_size=2, **more)
    study = drafted(cell)
    import_and_report(study, answer_rows(np.random.default_rng(3), cell, study))
    rows = read_scored_rows(study, find_criteria(study))
    assert rows["prompt"].nunique() == 12 and rows[SECOND_SAMPLE].nunique() == 6
