"""Each number of a board with an interval or a p-value names its population, which is the page's or has words beside it."""

import pytest

from boards.services.results import compute_board_result
from boards.views.sentences import population_sentence
from tests.analysis.report.populations import numbers_with_intervals, population_named
from tests.boards.test_preferences import board as preference_board  # noqa: F401 - a fixture
from tests.boards.test_preferences import votes
from tests.boards.test_results import NEW, ROUNDS, board, rows_of  # noqa: F401 - the first is a fixture

pytestmark = pytest.mark.django_db
# Places of a result whose page says that they are about exactly these prompts, or whether answers are sound.
SAID_BESIDE = {"days": "Days and weekdays, for exactly these prompts"}
SAMPLE = {"sample": {"prompts": 12, "seed": 5}}


def others(result, population):
    """The places of the numbers that are about something else, and how many there are in all."""
    found = list(numbers_with_intervals(result))
    assert len(found) > 5
    # The numbers of the paper's own table are not heval's: its page says that they resample answers.
    found = [(path, one) for path, one in found if ".paper" not in path]
    return sorted({path.partition(".")[0] for path, one in found if population_named(one) != population})


@pytest.mark.parametrize("population, expected", [("prompts", "people and prompts"), ("subsample", "people")])
def test_a_board_of_scores(board, population, expected):  # noqa: F811
    board.population = population
    result = compute_board_result(board, rows_of(ROUNDS), NEW)
    assert set(others(result, expected)) <= set(SAID_BESIDE)
    words = population_sentence(result | SAMPLE | {"population": population})
    assert ("exactly this subsample" in words) == (population == "subsample")


def test_a_board_of_votes_is_about_its_own_sample(preference_board):  # noqa: F811
    assert others(compute_board_result(preference_board, votes(), {2: 1, 3: 2}), "people") == []


def test_the_page_of_the_paper_says_that_days_are_about_exactly_these_prompts():
    from tests import ROOT

    page = (ROOT / "templates" / "boards" / "paper.html").read_text(encoding="utf-8")
    assert all(words in page for words in SAID_BESIDE.values())
