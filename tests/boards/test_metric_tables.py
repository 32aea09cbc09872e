"""Metrics beside people on a board: computed from the texts of its rounds, shown with intervals and as in the paper's Table 3."""

import json
from operator import itemgetter

import pytest
from sacrebleu.metrics import BLEU
from scipy import stats

from analysis.metrics.files import ScoresFileSettings
from analysis.metrics.store import MetricDescription, upload_scores
from boards.models import Board, BoardMetricTable, BoardSnapshot, SubmittedOutput
from boards.services import metric_tables, rounds, snapshots, submissions
from studies.models import Job, Output
from studies.services import jobs
from studies.services.lifecycle import ActionRefused
from tests.analysis.api.rest import Api, api_of
from tests.analysis.metrics.scores import table
from tests.boards import builders

pytestmark = pytest.mark.django_db
JUDGE = MetricDescription("judge", "v1", {"prompt": "Rate it."}, scale_low=1, scale_high=5)
RATED = ScoresFileSettings(scale_low=1, scale_high=5, is_partial=True)
STRENGTHS = builders.STRENGTHS | {"new": 0.5}
# How many words of the reference each system copies.
COPIED = {"good": 7, "new": 5, "middle": 3, "weak": 1}
NAMES = ["bleu", "ter", "exact_match"]


def texts_of(board, name):
    """Outputs that begin like the references, each with an ending of its own."""
    references = Output.objects.filter(system__study=board.template).values_list("prompt__key", "text")
    return {
        key: " ".join([*text.split()[: COPIED[name] + number % 2], "unlike", "anything"])
        for number, (key, text) in enumerate(references)
    }


@pytest.fixture(scope="module")
def stored_board(module_transaction):
    """A board with a reference and four submissions, one of them anonymous, whose metrics and judge are computed."""
    board = builders.open_board(labels_per_output=1, double_label_share="0.30")
    team, _ = builders.team_of(board)
    for name in COPIED:
        sent = builders.outputs_file(board, name, **texts_of(board, name))
        submissions.submit_outputs(board, team, name, "o.jsonl", sent, is_anonymous=name == "new")
    study = builders.play_round(board, STRENGTHS).study
    snapshots.take_snapshot(board, board.owner)
    judged = [
        {"system": name, "prompt": key, "strict": 1 + COPIED[name] // 2 + number % 2}
        for name in COPIED
        for number, key in enumerate(board.sample_keys)
    ]
    upload_scores(study, board.owner, "s.csv", table(judged), RATED, JUDGE)
    metric_tables.compute_metric_table(board, board.owner, NAMES, resamples=49)
    return board.pk


@pytest.fixture
def board(stored_board):
    return Board.objects.select_related("template", "owner").get(pk=stored_board)


@pytest.mark.slow
def test_each_system_has_its_score_by_people_and_its_metrics(board):
    result, snapshot = BoardMetricTable.objects.get().result, BoardSnapshot.objects.get()
    (found,) = result["tables"]
    keys = {one["name"]: one["key"] for one in found["metrics"]}
    assert sorted(keys) == ["bleu", "exact_match", "strict", "ter"]
    overall = {row["submission"]: row["scores"]["overall"] for row in snapshot.result["rows"]}
    assert [row["submission"] for row in found["rows"]] == [row["submission"] for row in snapshot.result["rows"]]
    for row in found["rows"]:
        assert row["human"].items() <= overall[row["submission"]].items()
    by_number = {row["submission"]: row for row in found["rows"]}
    # The reference is what metrics compare with.
    assert {by_number[1]["metrics"][key]["estimate"] for key in keys.values()} == {None}
    good, weak = (by_number[number]["metrics"] for number in (2, 5))
    assert good[keys["bleu"]]["low"] < good[keys["bleu"]]["estimate"] < good[keys["bleu"]]["high"]
    # Errors per word: lower is better, so that the ends of the interval are not turned round.
    assert good[keys["ter"]]["estimate"] < weak[keys["ter"]]["estimate"]
    assert 0 < good[keys["ter"]]["low"] < good[keys["ter"]]["estimate"] < good[keys["ter"]]["high"]
    assert (good[keys["exact_match"]]["estimate"], good[keys["exact_match"]]["n"]) == (0, 12)
    # A judge answers from 1 to 5: 4 and 5 in turn are 87.5 points.
    assert good[keys["strict"]]["estimate"] == pytest.approx(87.5)


def test_the_agreement_is_that_of_the_systems_which_the_metric_scored(board):
    (found,) = BoardMetricTable.objects.get().result["tables"]
    rows = snapshots.read_board_rows(board)
    means = rows.groupby(["system", "prompt"])["value"].mean().groupby("system").mean()
    agreement = {one["metric"].split()[0]: one for one in found["agreements"]}
    by_number = {row["submission"]: row["metrics"] for row in found["rows"]}
    scores = [by_number[number]["bleu sacrebleu 2.6.0, words 2"]["estimate"] for number in (2, 3, 4, 5)]
    expected = stats.pearsonr([means[number] for number in (2, 3, 4, 5)], scores).statistic
    assert agreement["bleu"]["pearson"]["estimate"] == pytest.approx(expected)
    assert agreement["ter"]["pearson"]["estimate"] > 0
    assert agreement["exact_match"]["pearson"]["reason"]
    for one in agreement.values():
        assert 0 <= one["soft_pairwise_accuracy"]["estimate"] <= 1
    assert agreement["bleu"]["segment_tau"]["is_interval"] and agreement["bleu"]["tie_calibrated_accuracy"]["low"] > 0
    assert agreement["exact_match"]["segment_tau"]["reason"]


@pytest.mark.slow
def test_means_are_those_of_the_correlations_and_each_two_metrics_are_compared(board):
    (found,) = BoardMetricTable.objects.get().result["tables"]
    pearson = {one["metric"]: one["pearson"]["estimate"] for one in found["agreements"]}
    for one in found["means"]:
        assert {row["submission"]: row["n"] for row in one["rows"]} == dict.fromkeys((2, 3, 4, 5), 12)
        if pearson[one["metric"]] is not None:
            people, scores = ([row[side] for row in one["rows"]] for side in ("people", "metric"))
            assert stats.pearsonr(people, scores).statistic == pytest.approx(pearson[one["metric"]])
    shown = {row["submission"]: row["metrics"]["strict v1"]["estimate"] for row in found["rows"]}
    (judge,) = (one["rows"] for one in found["means"] if one["metric"] == "strict v1")
    assert {row["submission"]: pytest.approx(row["metric"]) for row in judge} == {n: shown[n] for n in (2, 3, 4, 5)}
    assert len(found["comparisons"]) == 2 * 6
    for row in found["comparisons"]:
        first, second = row["first"]["metric"], row["second"]["metric"]
        if "exact_match" in first + second:
            assert (row["reason"], row["pvalue_adjusted"]) == ("a metric is constant", None)
        elif row["statistic"] == "pearson":
            assert row["estimate"] == pytest.approx(pearson[first] - pearson[second])
    # Holm's method adjusts for the six pairs of metrics. The rounds are drawn with secret seeds, so that p-values differ.
    for statistic in {row["statistic"] for row in found["comparisons"]}:
        tested = [row for row in found["comparisons"] if row["statistic"] == statistic and row["pvalue"] is not None]
        least = 0.0
        for place, row in enumerate(sorted(tested, key=itemgetter("pvalue"))):
            least = max(least, min(1.0, (6 - place) * row["pvalue"]))
            assert row["pvalue_adjusted"] == pytest.approx(least)
    assert any(row["pvalue"] is not None for row in found["comparisons"])


def test_the_figure_is_about_the_chosen_metric_and_older_tables_have_none(board, client):
    page = "/boards/tales/1/metrics/"
    text = client.get(page).content.decode()
    assert "Figure of BLEU" in text and text.count('<circle class="lead"') == 4 and "Each two metrics compared" in text
    assert "Submission 3: metric" in text and "new: metric" not in text
    assert "Figure of TER" in client.get(page, {"metric": "ter sacrebleu 2.6.0, words 2"}).content.decode()
    assert client.get(page, {"metric": "nonsense"}).content.decode() == text
    stored = BoardMetricTable.objects.get()
    (found,) = stored.result["tables"]
    old = stored.result | {
        "tables": [{name: part for name, part in found.items() if name not in ("means", "comparisons")}]
    }
    BoardMetricTable.objects.create(
        snapshot=stored.snapshot, names=NAMES, result=old, result_sha256="0" * 64, by=stored.by
    )
    text, answer = client.get(page).content.decode(), Api().get("boards/tales/metrics/").json()
    assert "BLEU" in text and "Figure of" not in text and "Each two metrics compared" not in text
    assert [answer["tables"][0][part] for part in ("means", "comparisons")] == [[], []]


def test_the_papers_layout_has_scores_of_all_outputs_together(board):
    (found,) = BoardMetricTable.objects.get().result["tables"]
    snapshot = BoardSnapshot.objects.get().result
    paper = {row["submission"]: row for row in found["paper"]}
    references = dict(Output.objects.filter(system__study=board.template).values_list("prompt__key", "text"))
    own = dict(SubmittedOutput.objects.filter(submission__number=2).values_list("prompt_key", "text"))
    expected = BLEU().corpus_score([own[key] for key in own], [[references[key] for key in own]]).score
    assert paper[2]["metrics"]["bleu sacrebleu 2.6.0, words 2"] == pytest.approx(expected)
    for row in snapshot["rows"]:
        of_people = row["scores"]["overall"]["paper"]
        assert paper[row["submission"]]["human"] == {name: of_people[name] for name in ("estimate", "low", "high", "n")}
    first = found["paper"][0]
    assert "human" in first["bold"] and first["human"]["estimate"] == max(
        row["human"]["estimate"] for row in found["paper"]
    )
    for row in found["paper"]:
        assert ("human" in row["bold"]) == (row["human"]["high"] >= first["human"]["low"])
        assert ("ter sacrebleu 2.6.0, words 2" in row["bold"]) == (row["submission"] == 2)


def test_everybody_sees_the_table_of_a_public_board_without_hidden_names(board, client):
    text = client.get("/boards/tales/1/metrics/").content.decode()
    assert "BLEU" in text and "Submission 3" in text and ">new<" not in text and "87.5 +" in text
    assert "Table 3" in text and "lower is better" in text
    assert "/1/metrics/" in client.get("/boards/tales/").content.decode()
    assert "/1/metrics/" in client.get("/boards/tales/1/paper/").content.decode()
    answer = Api().get("boards/tales/metrics/")
    assert '"new"' not in json.dumps(answer.json()) and answer.json()["tables"][0]["rows"][0]["name"] == "human"
    assert Api().get("boards/tales/snapshots/1/metrics/").json() == answer.json()
    assert Api().get("boards/tales/snapshots/2/metrics/").status_code == 404
    submissions.withdraw(board.submissions.get(number=2), by=None)
    text, answer = client.get("/boards/tales/1/metrics/").content.decode(), Api().get("boards/tales/metrics/").json()
    # Its name and its numbers are gone.
    assert "good" not in text + str(answer) and "withdrawn" not in text and "weak" in text
    (found,) = answer["tables"]
    assert {row["submission"] for part in ("rows", "paper") for row in found[part]} == {1, 3, 4, 5}
    assert {row["submission"] for one in found["means"] for row in one["rows"]} == {3, 4, 5}


def test_strangers_do_not_see_the_table_of_a_private_board(board, client):
    Board.objects.update(visibility="members")
    assert client.get("/boards/tales/1/metrics/").status_code == 404
    assert Api().get("boards/tales/metrics/").status_code == 401
    team = Api(builders.team_of(board, "Team B")[1])
    assert team.get("boards/tales/metrics/").status_code == 403
    client.force_login(builders.add_member(board, "vera", "viewer").user)
    assert client.get("/boards/tales/1/metrics/").status_code == 200
    assert client.post("/boards/tales/manage/metrics/compute/", {"names": NAMES}).status_code == 403


def test_a_running_round_changes_nothing(board, client):
    addresses = ("", "1/", "1/metrics/", "1/paper/")
    before = [builders.without_draws(client.get(f"/boards/tales/{address}").content) for address in addresses]
    team = board.teams.first()
    sent = builders.outputs_file(board, "late")
    submissions.submit_outputs(board, team, "late", "o.jsonl", sent)
    running = rounds.open_round(board, board.owner)
    again = metric_tables.compute_metric_table(board, board.owner, NAMES, resamples=49)
    assert BoardMetricTable.objects.get() == again and not running.study.metrics.exists()
    assert [builders.without_draws(client.get(f"/boards/tales/{address}").content) for address in addresses] == before


@pytest.mark.slow
def test_an_editor_computes_metrics_from_the_page_and_a_new_snapshot_computes_them_again(board, client):
    client.force_login(builders.add_member(board, "eva", "editor").user)
    text = client.get("/boards/tales/manage/").content.decode()
    assert "Compute metrics" in text and 'value="bleu" checked' in text
    for _ in range(2):
        client.post("/boards/tales/manage/metrics/compute/", {"names": ["token_f1"], "token": "once"})
    job = Job.objects.get(kind=metric_tables.KIND)
    assert 'Board metrics: <span class="doing">It will start' in client.get("/boards/tales/manage/").content.decode()
    jobs.run_waiting_jobs()
    job.refresh_from_db()
    assert (job.state, job.result["snapshot"]) == ("done", 1), job.error
    assert BoardMetricTable.objects.first().names == ["token_f1"]
    snapshots.request_snapshot(board, board.owner)
    submissions.withdraw(board.submissions.get(number=5), by=None)
    jobs.run_waiting_jobs(1)
    repeated = Job.objects.filter(kind=metric_tables.KIND).exclude(pk=job.pk).get()
    assert repeated.arguments == {"board": board.pk, "names": ["token_f1"]}


def test_a_program_computes_metrics_and_polls_the_job(board):
    api = api_of(board.owner)
    refused = api.post("boards/tales/metrics/", {"names": ["none"]})
    assert refused.status_code == 409 and "is not a metric of this site" in refused.json()["detail"]
    accepted = api.post("boards/tales/metrics/", {"names": ["bleu"]})
    assert accepted.status_code == 202
    assert api.get(f"boards/tales/jobs/{accepted.json()['code']}/").json()["state"] == "waiting"


def test_a_board_without_results_refuses():
    board = builders.open_board(slug="other")
    with pytest.raises(ActionRefused, match="no results yet"):
        metric_tables.request_metrics(board, board.owner, ["bleu"])


def test_metrics_are_computed_when_a_submission_arrives_and_only_its_team_and_members_see_them(client):
    board = builders.open_board(builders.user("another"), slug="verses")
    (team, key), (_, other) = builders.team_of(board), builders.team_of(board, "Team B")
    texts = texts_of(board, "good")
    submissions.submit_outputs(board, team, "good", "o.jsonl", builders.outputs_file(board, "good", **texts))
    job = Job.objects.get(kind=submissions.METRICS_KIND, arguments__board=board.pk)
    assert job.by is None and Api(key).get("boards/verses/submissions/2/").json()["metrics"] is None
    jobs.run_waiting_jobs()
    # No round has opened, so nobody has judged an output.
    assert not board.rounds.exists()
    references = dict(Output.objects.filter(system__study=board.template).values_list("prompt__key", "text"))
    found = {one["name"]: one for one in Api(key).get("boards/verses/submissions/2/").json()["metrics"]}
    keys = sorted(texts)
    expected = BLEU().corpus_score([texts[one] for one in keys], [[references[one] for one in keys]]).score
    assert found["bleu"]["score"] == pytest.approx(expected) and found["bleu"]["n"] == 12
    assert found["ter"]["is_lower_better"] and found["exact_match"]["score"] == 0
    copied = [COPIED["good"] + number % 2 for number in range(12)]
    assert 0 < found["token_f1"]["score"] < 100 and max(copied) < 9
    assert api_of(board.owner).get("boards/verses/submissions/2/").json()["metrics"] == list(found.values())
    # The table of submissions is public, and this one is not in it yet.
    for stranger in (Api(), Api(other)):
        assert stranger.get("boards/verses/submissions/2/").status_code == 404
        assert "metrics" not in json.dumps(stranger.get("boards/verses/submissions/").json())
    words = f"BLEU&nbsp;{expected:.1f}"
    assert words in client.get(f"/boards/verses/team/{key}/").content.decode()
    assert words not in client.get(f"/boards/verses/team/{other}/").content.decode()
    client.force_login(board.owner)
    assert words in client.get("/boards/verses/manage/").content.decode()


@pytest.mark.slow
def test_a_scored_submission_shows_its_metrics_to_its_team_alone():
    board = builders.open_board(builders.user("another"), slug="verses")
    team, key = builders.team_of(board)
    builders.submit(board, team, "good")
    jobs.run_waiting_jobs()
    builders.play_round(board)
    snapshots.take_snapshot(board, board.owner)
    assert "metrics" not in Api().get("boards/verses/submissions/2/").json()
    assert len(Api(key).get("boards/verses/submissions/2/").json()["metrics"]) == 8


def test_without_references_no_metric_is_computed_at_arrival():
    owner = builders.user("another")
    board = builders.open_board(owner, builders.rating_template(owner, systems=()), slug="verses")
    builders.submit(board, builders.team_of(board)[0], "good")
    assert not Job.objects.filter(kind=submissions.METRICS_KIND, arguments__board=board.pk).exists()


def test_metrics_that_were_chosen_last_are_computed_at_arrival(board):
    builders.submit(board, board.teams.get(), "new system")
    jobs.run_waiting_jobs()
    assert [one["name"] for one in board.submissions.get(name="new system").metrics] == NAMES
