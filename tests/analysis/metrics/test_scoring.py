"""Human or machine, and error marks, as scores: by hand, beside judges, and on boards."""

import pandas as pd
import pytest

from analysis.metrics.calibrated.options import CalibrationOptions
from analysis.metrics.calibrated.run import calibrate
from analysis.metrics.files import ScoresFileSettings
from analysis.metrics.scoring import scorer_of
from analysis.metrics.store import MetricDescription, upload_scores
from boards.services import snapshots
from studies.models import Output, Question
from tests.analysis.protocols.mark_answers import frame_of
from tests.boards import builders
from tests.builders import add_marks, draft_study, user

from .collected_studies import STRENGTHS, closed, page_of
from .scores import table

pytestmark = pytest.mark.django_db


def store_judge(study, question, highest, *, is_lower_better=False):
    outputs = Output.objects.filter(system__study=study).values_list("system__name", "prompt__key")
    rows = [
        {"system": system, "prompt": prompt, "judge": number % 5 * highest / 4}
        for number, (system, prompt) in enumerate(outputs)
    ]
    described = MetricDescription("judge", "v1", is_lower_better=is_lower_better, scale_low=0, scale_high=highest)
    chosen = ScoresFileSettings(question=question, scale_low=0, scale_high=highest)
    return upload_scores(study, study.owner, "scores.csv", table(rows), chosen, described)[0]


def combined(study):
    rows = calibrate(study, CalibrationOptions(), study.owner)
    return {row.question.key: row.result for row in rows}


def test_an_output_scores_one_if_the_annotator_says_that_a_human_wrote_it():
    answers = pd.DataFrame({"system": ["human", "a", "a", None, "a"], "value": [0, 1 / 3, 2 / 3, 0, None]})
    question = Question(key="source")
    assert not scorer_of("humanlike").is_scored(Question(key="fluent", scale={"kind": "likert"}))
    scored = scorer_of("humanlike").score_answers(None, question, answers, {})
    assert scored["value"].tolist() == [1, 1, 0] and scored["other"].isna().all()


def test_the_penalty_of_an_output_is_a_share_of_the_highest_penalty():
    section = add_marks(draft_study(systems=("alpha",)), max_marks=4)  # 4 errors of weight 5 give 20
    frame = frame_of(
        section,
        {
            (1, 1, "alpha"): ([("style", 1, "1"), ("accuracy", 5, "2")], 50),
            (2, 1, "alpha"): ([], 90),
            (2, 2, "alpha"): ([("style", 5, "0")] * 4, 10),
        },
    ).assign(domain="news", day="2026-11-27", second_sample="p001")
    errors, score = section.questions.order_by("position")
    answers = frame[frame["question"] == "errors"]
    scored = scorer_of("marks").score_answers(section, errors, answers, {})
    found = {(row.annotator, row.prompt): row.value for row in scored.itertuples()}
    assert found == pytest.approx({("a1", "p001"): 0.7, ("a2", "p001"): 1, ("a2", "p002"): 0})
    assert set(scored["domain"]) == {"news"} and set(scored["day"]) == {"2026-11-27"}
    scored = scorer_of("marks").score_answers(section, score, frame[frame["question"] == "score"], {})
    assert scored["value"].tolist() == [0.5, 0.9, 0.1]
    assert scorer_of("marks").score_answers(section, errors, answers[:0], {}).empty


@pytest.mark.slow
def test_human_or_machine_has_combined_numbers_beside_a_judge_on_the_same_scale():
    study = closed(builders.template_of("humanlike", user("ada"), prompts=60, m=5, systems=tuple(STRENGTHS)))
    store_judge(study, "source", 1)
    found = combined(study)
    assert set(found) == {"source"}  # the reasons give no scores
    systems = {row["system"]: row["result"]["human"]["estimate"] for row in found["source"]["systems"]}
    assert systems["human"] > systems["llama-7b"]
    assert found["source"]["bias_by_system"] and found["source"]["pairs"]
    assert "An answer gives the highest score if it says that a human wrote the output" in page_of(study)


@pytest.mark.slow
def test_penalties_have_combined_numbers_beside_a_judge_of_penalties():
    study = closed(builders.template_of("marks", user("ada"), prompts=20, m=2, systems=tuple(STRENGTHS)))
    store_judge(study, "errors", 30, is_lower_better=True)
    found = combined(study)
    assert set(found) == {"errors", "score"} and found["score"]["status"] == "no_data"
    systems = {row["system"]: row["result"]["human"]["estimate"] for row in found["errors"]["systems"]}
    assert systems["human"] > systems["llama-7b"]
    # A batch of two prompts, three outputs each, costs 1.00, however many errors an output has.
    assert found["errors"]["price"] == pytest.approx(1 / 6)
    assert "An output without an error gets the highest score, and one with the penalty 30 the lowest" in page_of(study)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "places", "criteria"),
    # Three systems and 12 prompts, 2 labels, 6 a batch: 4 items of a prompt show each machine once, or 1 item all systems.
    [("humanlike", 16, ["source"]), ("marks", 4, ["overall", "errors", "score"])],
)
def test_a_board_ranks_systems(protocol, places, criteria):
    owner = user()
    board = builders.open_board(owner, builders.template_of(protocol, owner))
    team, _ = builders.team_of(board)
    for name in ("weak", "good"):
        builders.submit(board, team, name)
    one = builders.play_round(board)
    assert one.study.target_n == places
    snapshot = snapshots.take_snapshot(board, owner)
    assert [row["key"] for row in snapshot.result["criteria"]] == criteria
    rows = {row["name"]: row["scores"][criteria[0]] for row in snapshots.display_rows(snapshot)}
    assert {row["status"] for row in rows.values()} == {"ok"}, rows
    assert rows["weak"]["estimate"] < rows["human"]["estimate"]
