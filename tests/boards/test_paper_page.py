"""The paper's tables and figures on a page, from the labels of a board."""

import pytest

from annotators.models import Recruitment
from boards.services import snapshots
from boards.views.paper import LEFT, RIGHT, _day_figure, spread_lines
from tests.admin_pages import logged_in
from tests.analysis.api.rest import Api
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


def test_experts_have_a_line_of_their_own_and_are_in_no_score(client):
    board = builders.open_board(labels_per_output=3)
    builders.submit(board, builders.team_of(board)[0], "good")
    study = builders.play_round(board).study
    everybody = snapshots.take_snapshot(board, board.owner)
    assert "experts" not in everybody.result and "By experts" not in client.get("/boards/tales/1/paper/").text
    link = Recruitment.objects.create(study=study, channel="open_link", is_for_experts=True)
    experts = study.assignments.filter(submitted_at__isnull=False).order_by("pk")[:3]
    study.assignments.filter(pk__in=[one.pk for one in experts]).update(recruitment=link)
    snapshot = snapshots.take_snapshot(board, board.owner)
    rows = snapshots.read_board_rows(board)
    by_experts = snapshots.read_board_rows(board, of_experts=True)
    assert len(rows) + len(by_experts) == everybody.n_labels and len(rows) == snapshot.n_labels
    assert set(by_experts["annotator"]) == {one.annotator_id for one in experts}
    assert not set(rows["annotator"]) & set(by_experts["annotator"])
    outputs = set(zip(rows["system"], rows["prompt"], strict=True))
    for one in snapshot.result["experts"]:
        own = by_experts[by_experts["system"] == one["submission"]]
        own = own[[(one["submission"], prompt) in outputs for prompt in own["prompt"]]]
        assert one["estimate"] == pytest.approx(100 * own["value"].mean()) and one["low"] <= one["estimate"]
        assert (one["labels"], one["outputs"], one["rounds"]) == (len(own), own["prompt"].nunique(), [1])
        beside = rows[(rows["system"] == one["submission"]) & rows["prompt"].isin(own["prompt"])]
        assert one["crowd"] == pytest.approx(100 * beside["value"].mean())
    assert {one["submission"] for one in snapshot.result["experts"]} == {1, 2}
    text = client.get(f"/boards/tales/{snapshot.number}/paper/").text
    assert "By experts" in text and text.count("stroke-dasharray") == 1 and "The dashed line" in text
    shown = Api().get(f"boards/tales/snapshots/{snapshot.number}/").json()["result"]
    assert shown["experts"] == snapshot.result["experts"]


def test_the_line_of_experts_lies_at_their_score_across_the_rows_of_its_criterion():
    study = {"submission": 2, "score": 60.0, "sd_multilabel": 4.0, "sd_unilabel": 3.0, "aggregate": "mean"}
    studies = [study | {"criterion": key, "round": number} for key in ("binary", "overall") for number in (1, 2, 3)]
    labels = {"binary": "binary", "overall": "overall"}
    # The paper's expert gave .803.
    experts = [
        {"submission": 2, "criterion": "overall", "estimate": 80.3},
        {"submission": 1, "criterion": "overall", "estimate": 10.0},
    ]
    figure = _day_figure(studies, {1: "human", 2: "good"}, labels, experts)
    (line,) = figure["experts"]
    rows = [float(mark["y"]) for mark in figure["marks"]]
    assert rows[2] < float(line["high"]) < rows[3] and rows[5] < float(line["low"])
    assert float(line["x"]) > max(float(mark["wide_high"]) for mark in figure["marks"])
    assert _day_figure(studies, {1: "human", 2: "good"}, labels)["experts"] == []


def test_no_line_of_the_figure_of_days_leaves_it():
    study = {"submission": 2, "score": 60.0, "sd_multilabel": 4.0, "sd_unilabel": 9.0, "aggregate": "mean", "round": 1}
    figure = _day_figure([study | {"criterion": "overall"}], {2: "good"}, {"overall": "overall"})
    (mark,) = figure["marks"]
    assert (
        LEFT <= float(mark["low"]) < float(mark["wide_low"]) < float(mark["wide_high"]) < float(mark["high"]) <= RIGHT
    )


def test_a_link_says_that_it_is_for_experts_until_somebody_has_come_by_it():
    owner = user()
    template = builders.rating_template(owner)
    builders.add_link(template)
    Recruitment.objects.filter(study=template).update(is_for_experts=True)
    board = builders.open_board(owner, template)
    builders.submit(board, builders.team_of(board)[0], "good")
    study = builders.play_round(board).study
    # The links of a round are copies of those of the template.
    link = study.recruitments.get(channel="open_link")
    assert link.is_for_experts
    address = f"/admin/annotators/recruitment/{link.pk}/change/"
    client = logged_in(owner)
    assert 'name="is_for_experts"' in client.get(address).content.decode()
    study.assignments.order_by("pk").update(recruitment=link)
    assert 'name="is_for_experts"' not in client.get(address).content.decode()


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
