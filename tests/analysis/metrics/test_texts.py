"""Scores of texts: as the libraries give them one by one, in this process or in several."""

import random
import subprocess
import time

import pytest
from rapidfuzz.distance import Levenshtein
from sacrebleu.metrics import TER, lib_ter

from analysis.metrics.texts import edit_distance, processes
from analysis.metrics.texts.built_in import BUILT_IN
from analysis.metrics.texts.processes import ChunkScorer, ScoreFailed, TextsOfPrompt

CHUNK = [
    TextsOfPrompt(["The green house was found.", "A house that is green"], ["Found: the green houses", "", "Is it?"]),
    TextsOfPrompt(["Running water"], ["runs in the water", "Running water", "Running water"]),
]


def one_by_one(name: str) -> list[float]:
    """Every text alone, with a scorer of its own, as the documentation of the libraries shows."""
    from rouge_score.rouge_scorer import RougeScorer
    from sacrebleu import metrics

    scorers = {"bleu": metrics.BLEU(effective_order=True), "chrf": metrics.CHRF(), "ter": metrics.TER()}
    found = []
    for prompt in CHUNK:
        for text in prompt.texts:
            if name in scorers:
                found.append(scorers[name].sentence_score(text, prompt.references).score)
            else:
                variant = BUILT_IN[name].parameters["variant"]
                rouge = RougeScorer([variant], use_stemmer=True)
                found.append(max(rouge.score(one, text)[variant].fmeasure for one in prompt.references))
    return found


def test_shared_work_changes_no_score():
    scores = ChunkScorer(list(BUILT_IN)).score(CHUNK)
    for name in ("bleu", "chrf", "ter", "rouge_1", "rouge_2", "rouge_l"):
        assert scores[name] == one_by_one(name), name
    assert scores["exact_match"] == [0, 0, 0, 0, 1, 1]
    assert scores["token_f1"] == pytest.approx([2 / 3, 0, 2 / 7, 1 / 3, 1, 1])


def test_several_processes_give_the_scores_of_one():
    chunks = [CHUNK, CHUNK[:1], CHUNK[1:]]
    found = dict(processes.score_chunks(["chrf", "token_f1"], chunks, n_processes=2))
    scorer = ChunkScorer(["chrf", "token_f1"])
    assert found == {number: scorer.score(chunk) for number, chunk in enumerate(chunks)}


def test_a_child_process_names_the_text_that_it_cannot_score():
    broken = [TextsOfPrompt(["a"], ["a"]), TextsOfPrompt([], ["b"])]
    with pytest.raises(ScoreFailed) as failed:
        dict(processes.score_chunks(["chrf"], [CHUNK, broken], n_processes=2))
    assert (failed.value.metric, failed.value.chunk, failed.value.place) == ("chrf", 1, 1)
    assert failed.value.message


def test_a_cancelled_job_leaves_no_process_behind(monkeypatch):
    started, popen = [], subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **more: started.append(popen(*args, **more)) or started[-1])
    scored = processes.score_chunks(["token_f1"], [CHUNK] * 50, n_processes=2)
    next(scored)
    before = time.monotonic()
    scored.close()
    assert time.monotonic() - before < 5
    assert [child.returncode for child in started] == [-9, -9]


def test_a_process_that_dies_is_reported(monkeypatch):
    monkeypatch.setattr(processes, "sys", type("Interpreter", (), {"executable": "/bin/false"}))
    with pytest.raises(processes.ProcessEnded):
        dict(processes.score_chunks(["token_f1"], [CHUNK, CHUNK], n_processes=2))


def random_text(draw: random.Random, n_words: int, n_different: int) -> str:
    return " ".join(str(int(draw.paretovariate(0.7)) % n_different) for _ in range(n_words))


def test_a_fast_edit_distance_changes_no_score_of_ter(monkeypatch):
    draw = random.Random(1)
    sizes = [(draw.randint(0, 22), draw.randint(0, 22), draw.choice((2, 5, 30))) for _ in range(150)]
    sizes += [(50, 60, 60), (1, 70, 3), (70, 3, 3), (15, 90, 9)]
    pairs = [(random_text(draw, first, n), random_text(draw, second, n)) for first, second, n in sizes]
    # sacreBLEU searches only near the diagonal, so it does not find the shortest way between these.
    moved, reference = [*range(30, 70), *range(30)], [*range(70)]
    assert edit_distance._Exact(reference)(moved)[0] > Levenshtein.distance(moved, reference)
    assert edit_distance._Distances(reference)(moved)[0] == edit_distance._Exact(reference)(moved)[0]
    pairs.append((" ".join(map(str, moved)), " ".join(map(str, reference))))
    monkeypatch.setattr(lib_ter, "BeamEditDistance", edit_distance._Exact)
    expected = [TER().sentence_score(text, [reference]).score for text, reference in pairs]
    edit_distance.use_fast_edit_distance()
    found = [TER().sentence_score(text, [reference]).score for text, reference in pairs]
    assert found == expected and len(set(found)) > 60


def test_the_scores_of_ter_use_the_fast_edit_distance(monkeypatch):
    monkeypatch.setattr(lib_ter, "BeamEditDistance", edit_distance._Exact)
    asked, editops = [], Levenshtein.editops
    monkeypatch.setattr(Levenshtein, "editops", lambda *texts: asked.append(texts) or editops(*texts))
    assert ChunkScorer(["ter"]).score([TextsOfPrompt(["a b c d e"], ["d e a b c"])]) == {"ter": [20.0]}
    assert asked


def test_the_time_of_ter_is_said_before_it_starts_and_while_it_runs():
    assert processes.seconds_per_output(40, processes.LOW) == pytest.approx(0.003)
    assert processes.seconds_per_output(60, processes.LOW) == pytest.approx(0.006, rel=0.05)
    assert processes.seconds_per_output(640, processes.HIGH) == pytest.approx(22, rel=0.02), (
        "as it grows from 160 to 320"
    )
    assert processes.forecast(10_000, 20, 2) == processes.forecast(0, 500, 2) == ""
    assert processes.forecast(10_000, 80, 2) == "50 seconds to 4 minutes"
    assert processes.forecast(10_000, 160, 2) == "3 minutes to 15 minutes"
    assert processes.time_left(9, 1, 100) == processes.time_left(90, 95, 100) == ""
    assert processes.time_left(60, 100, 10_000) == "about 2 hours left"
