"""The paper's tables and figures on a page, from the labels of a board."""

import pytest

from boards.services import snapshots
from boards.views.paper import spread_lines
from tests.boards import builders
from tests.builders import user

pytestmark = pytest.mark.django_db


def test_the_page_shows_scores_spread_and_cost(client):
    board = builders.open_board()
    team, _ = builders.team_of(board)
    builders.submit(board, team, "good", is_anonymous=True)
    builders.play_round(board)
    snapshot = snapshots.take_snapshot(board, board.owner)
    text = client.get(f"/boards/tales/{snapshot.number}/paper/").content.decode()
    assert "Submission 2" in text and ">good<" not in text
    paper = snapshot.result["rows"][0]["scores"]["overall"]["paper"]
    assert f"{paper['estimate']:.1f} +{paper['high'] - paper['estimate']:.1f}" in text
    for words in ("Figure 2", "Figure 3", "majority vote", "24 of 24 outputs", "Bound of the SE"):
        assert words in text
    # Appendix C: 50 / sqrt(300) and 50 / sqrt(800).
    assert "2.89" in text and "1.77" in text
    assert "/paper/" in client.get("/boards/tales/").content.decode()


def test_the_sizes_of_the_dataset_are_those_of_the_template_and_of_the_sample(client):
    owner = user()
    template = builders.rating_template(owner, prompts=12)
    for prompt in template.prompts.all():
        domain = "news" if prompt.key < "p003" else "tales"
        columns = {"domain": domain, "text": "One two three four.", "source": "Five six." if domain == "news" else ""}
        type(prompt).objects.filter(pk=prompt.pk).update(**columns)
    n_news = template.prompts.filter(domain="news").count()
    board = builders.open_board(owner, template, sample_size=6)
    builders.submit(board, builders.team_of(board)[0], "good")
    builders.play_round(board)
    found = {one["domain"]: one for one in snapshots.take_snapshot(board, owner).result["datasets"]}
    in_sample = template.prompts.filter(domain="news", key__in=board.sample_keys).count()
    assert found == {
        "news": {"domain": "news", "prompts": n_news, "sampled": in_sample, "median_words": 6.0 if in_sample else None},
        "tales": {"domain": "tales", "prompts": 12 - n_news, "sampled": 6 - in_sample, "median_words": 4.0},
    }
    assert 0 < n_news < 12
    text = client.get("/boards/tales/1/paper/").text
    assert "as in Table 2" in text and f'<td class="number">{12 - n_news}</td>' in text


def test_a_private_board_shows_it_to_nobody(client):
    board = builders.open_board(visibility="members")
    builders.submit(board, builders.team_of(board)[0], "good")
    builders.play_round(board)
    snapshots.take_snapshot(board, board.owner)
    assert client.get("/boards/tales/1/paper/").status_code == 404


def test_the_spread_is_pooled_over_systems_and_rounds():
    study = {"criterion": "overall", "aggregate": "mean", "sd_multilabel": 4.0}
    lines = spread_lines([study | {"sd_unilabel": 1.0}, study | {"sd_unilabel": 7.0}], {"overall": "overall"})
    assert [(line["n"], line["unilabel_text"], line["multilabel_text"]) for line in lines] == [(2, "5.00", "4.00")]
