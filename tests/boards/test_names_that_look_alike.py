"""No two names that a board shows look alike, and nobody learns a hidden name by trying it."""

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from boards.models import Submission, lookalike_key
from boards.services import rounds, submissions
from tests.analysis.api.rest import Api
from tests.boards import builders
from tests.boards.api.rest import body

pytestmark = pytest.mark.django_db
NAME = "Secret Model 9"
TWINS = {
    "case": "sECRET mODEL 9",
    "blanks": "Secret  Model 9",
    "no-break space": "Secret\u00a0Model 9",
    "wide letters": "Ｓｅｃｒｅｔ Ｍｏｄｅｌ ９",
    "mathematical letters": "𝐒ecret 𝕄odel 9",
    "Cyrillic": "Ѕесrеt Моdеl 9",
    "Greek": "Secret Μοdel 9",
    "a joiner": "Secret\u200d Model 9",
    "a joiner of graphemes": "Sec\u034fret Model 9",
    "a selector": "Secret\ufe0f Model 9",
    "a blank of Braille": "Secret\u2800Model 9",
    "a Korean filler": "Secret\u3164Model 9",
    "zero for o": "Secret M0del 9",
}
PAIRS = {
    "dashes": ("my-model", "my\u2013model"),
    "minus": ("my-model", "my\u2212model"),
    "quotes": ("it's", "it\u2019s"),
    "l and I": ("OpenAI", "OpenAl"),
    "one and l": ("model 1", "model l"),
    "dotless": ("mini", "mını"),
    "Greek capitals": ("APEX", "ΑΡΕΧ"),
    "Cyrillic words": ("cope", "соре"),
}
DIFFERENT = (
    ("model 1", "model 2"),
    ("GPT-4", "GPT-4o"),
    ("secret", "sécret"),
    ("модель", "модем"),
    ("a b", "ab"),
    ("模型", "模形"),
)


@pytest.mark.parametrize("twin", TWINS.values(), ids=TWINS)
def test_a_twin_of_a_shown_name_is_refused_for_every_team(twin):
    board = builders.open_board()
    own, other = builders.team_of(board)[0], builders.team_of(board, "Other")[0]
    builders.submit(board, own, NAME)
    for team in (own, other):
        for is_anonymous in (False, True):
            with pytest.raises(ValidationError, match="or one whose name looks like it"):
                builders.submit(board, team, twin, is_anonymous=is_anonymous)
    with pytest.raises(IntegrityError), transaction.atomic():
        Submission.objects.create(board=board, team=other, number=99, name=twin, n_outputs=1, sha256="0")


@pytest.mark.parametrize(("one", "other"), PAIRS.values(), ids=PAIRS)
def test_pairs_that_look_alike(one, other):
    assert lookalike_key(one) == lookalike_key(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_names_that_differ_to_a_reader_stay_free(one, other):
    assert lookalike_key(one) != lookalike_key(other)


def answers(board, key, name):
    found = []
    for is_anonymous in (False, True):
        sent = Api(key).post(f"boards/{board.slug}/submissions/", body(board, name, is_anonymous=is_anonymous))
        found.append((sent.status_code, sorted(sent.json()), sent.json().get("name")))
    return found


@pytest.mark.parametrize("hide", ["anonymous", "withdrawn"])
def test_a_hidden_name_answers_as_a_free_one(hide):
    board = builders.open_board()
    hidden = builders.submit(board, builders.team_of(board)[0], NAME, is_anonymous=hide == "anonymous")
    if hide == "withdrawn":
        submissions.withdraw(hidden, by=None)
    _, key = builders.team_of(board, "Curious")
    free = [(status, fields, name and NAME) for status, fields, name in answers(board, key, "Another Model")]
    assert answers(board, key, NAME) == free


@pytest.mark.parametrize(
    "name", ["Submission 3", "submission 3 (withdrawn)", "my model (submission 7)", "ЅubmissiΟn 3"]
)
def test_no_name_looks_like_those_of_hidden_submissions(name):
    board = builders.open_board()
    with pytest.raises(ValidationError, match="Pages call hidden submissions by such names"):
        builders.submit(board, builders.team_of(board)[0], name)
    builders.submit(board, builders.team_of(board, "B")[0], "submission of 2026")


def test_the_second_of_two_published_names_gets_its_number():
    board = builders.open_board()
    hidden = [builders.submit(board, builders.team_of(board, team)[0], NAME, is_anonymous=True) for team in "AB"]
    study = rounds.create_round(board, board.owner).study
    assert set(study.systems.values_list("name", flat=True)) == {"human", NAME, f"{NAME} (submission 3)"}
    for one in hidden:
        assert submissions.publish(one)
    assert list(Submission.objects.exclude(team=None).values_list("name", flat=True)) == [
        NAME,
        f"{NAME} (submission 3)",
    ]
