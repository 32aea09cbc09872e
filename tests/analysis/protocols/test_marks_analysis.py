"""What error marks say: counted by hand, with intervals over outputs, and what nobody marked."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.report.build import build_report
from annotators.models import Response
from annotators.participation.simulate import record_simulated_answers
from studies.models import Output, Study
from studies.services import lifecycle
from tests.analysis.protocols.analysed import analysed
from tests.builders import add_marks, draft_study, launched

from .mark_answers import frame_of

pytestmark = pytest.mark.django_db

TEXT = "One is here. Two is “there”! Three is 3.5 m long,\n\nfour, e.g. this one. 五在这里。六也在。"


def draft(*, settings=None, m=1, **columns) -> Study:
    study = draft_study(instructions="", **columns)
    add_marks(study, m=m, **(settings or {}))
    Output.objects.filter(system__study=study).update(text=TEXT)
    return study


def test_a_batch_that_is_left_out_leaves_nothing_in_what_its_person_said_elsewhere():
    section = draft(systems=("alpha", "beta")).sections.get()
    judged = {(person, 1, "alpha"): ([("style", 1, "1")], 50) for person in range(6)}
    frame = frame_of(section, judged)
    alone = {block.name: block for block in analysed("marks", frame, [section])}
    again = frame_of(section, {(n, 1, "alpha"): ([("accuracy", 5, "2")], 20) for n in range(3)})
    again = again.assign(assignment=again["assignment"] + 100, is_kept=False, is_kept_paper=False)
    both = pd.concat([frame, again], ignore_index=True)
    found = {block.name: block for block in analysed("marks", both, [section])}
    assert found.keys() == alone.keys() and found["marks.systems"].estimates[0].estimate == 50
    for name in ("marks.systems", "marks.kinds", "marks.checks", "marks.standard"):
        assert [e.as_dict() for e in found[name].estimates] == [e.as_dict() for e in alone[name].estimates], name


def test_the_report_counts_by_hand():
    section = draft(systems=("alpha", "beta")).sections.get()
    judged = {}
    for person in range(8):
        for prompt in (1, 2):
            judged[person, prompt, "alpha"] = ([("accuracy", 5, "1"), ("style", 1, "2:0-3")], 50 + person)
            judged[person, prompt, "beta"] = ([("style", 1, "1")] if prompt == 1 else [], 70 + 2 * person)
    judged[9, 1, "alpha"] = (
        [("accuracy", 5, "0")] * 2 + [("accuracy", 1, "6")],
        10,
    )  # someone whom a primary rule leaves out
    blocks = {block.name: block for block in analysed("marks", frame_of(section, judged), [section])}
    of = {(e.settings["system"], e.settings["measure"]): e for e in blocks["marks.systems"].estimates}
    assert of["beta", "penalty"].estimate == pytest.approx(0.5) and (
        of["beta", "penalty"].n,
        of["beta", "penalty"].n_rows,
    ) == (8, 16)
    assert of["alpha", "penalty"].estimate == pytest.approx((16 * 6 + 11) / 17) and of["alpha", "penalty"].n == 9
    assert of["beta", "clean"].estimate == pytest.approx(0.5)
    rates = {(e.settings["system"], e.settings["measure"]): e.estimate for e in blocks["marks.kinds"].estimates}
    assert rates["alpha", "Accuracy"] == pytest.approx((16 + 3) / 17) and rates["beta", "Style"] == pytest.approx(0.5)
    assert rates["alpha", "Major"] == pytest.approx(18 / 17) and rates["alpha", "Fluency"] == 0
    (apart,) = blocks["marks.penalty"].estimates
    assert (
        apart.estimate == pytest.approx(5.5)
        and apart.settings["contrast"]["x"] == "beta"
        and apart.n == 8
        and apart.n_rows == 16
    )
    (score,) = blocks["marks.score"].estimates
    assert score.estimate == pytest.approx(20 + 3.5)
    # Two prompts are no sample of prompts. Of each annotator both differences are equal: eight values, 20 to 27.
    assert score.pvalue == pytest.approx(stats.ttest_1samp(np.arange(20, 28), 0).pvalue)
    assert (score.settings["population"], score.detail["n_prompts"]) == ("people", 2)
    standard = {(e.settings["system"], e.settings["measure"]): e for e in blocks["marks.standard"].estimates}
    assert standard["alpha", "penalty"].estimate == 6 and standard["alpha", "penalty"].n == 16
    words = standard["alpha", "penalty"].detail["words"] / 16
    assert standard["alpha", "per_100_words"].estimate == pytest.approx(600 / words)
    marked, grave, scores, together = blocks["marks.checks"].estimates
    # Of p1 and p2, two systems, six sentences each, by eight people or nine.
    assert marked.n == 24 and 0.9 < marked.estimate < 1 and marked.unit == "sentence" and grave.n == 24
    assert scores.unit == "output" and together.n == 8 and together.estimate > 0.8


def test_the_interval_of_agreement_is_over_outputs():
    """The sentences of an output were read by the same two people, and here they are disputed together or not at all."""
    study = draft(systems=("alpha", "beta"), prompts=30)
    Output.objects.filter(system__study=study).update(text="One is here. Two is there. Three is gone.")
    section = study.sections.get()
    sloppy = {prompt: prompt % 3 == 0 for prompt in range(30)}
    both = [("style", 1, "1"), ("style", 1, "2"), ("style", 1, "3")]
    judged = {
        (person, prompt, system): (both if system == "beta" and not (person == 1 and sloppy[prompt]) else [], 50)
        for person in (0, 1)
        for prompt in range(30)
        for system in ("alpha", "beta")
    }
    blocks = {block.name: block for block in analysed("marks", frame_of(section, judged), [section])}
    marked, _, scores, _ = blocks["marks.checks"].estimates
    said = np.array([[(0.0, 0.0), (1.0, 0.0 if sloppy[n] else 1.0)] for n in range(30)]).reshape(60, 2)

    def alpha_of(outputs):
        rows = np.repeat(said[outputs], 3, axis=0)
        shares = np.array([(rows == 1).mean(), (rows == 0).mean()])
        expected = (1 - (shares**2).sum()) * rows.size / (rows.size - 1)
        return 1 - (rows[:, 0] != rows[:, 1]).mean() / expected

    assert marked.estimate == pytest.approx(alpha_of(np.arange(60))) and (marked.n, marked.n_clusters) == (180, 60)
    assert (marked.settings["resampled"], "resampled" in scores.settings) == ("output", False)
    rng = np.random.default_rng(0)
    drawn = np.quantile([alpha_of(rng.integers(0, 60, 60)) for _ in range(1999)], [0.025, 0.975])
    # Over sentences both ends would be nearer by .07 and .09.
    assert (marked.interval.low, marked.interval.high) == pytest.approx(tuple(drawn), abs=0.035)


def test_a_report_on_nothing_says_so():
    section = draft(systems=("alpha", "beta")).sections.get()
    frame = frame_of(section, {(1, 1, "alpha"): ([], 50)})
    blocks = analysed("marks", frame[frame["section"] == 9], [section])
    assert {e.status for block in blocks for e in block.estimates} == {"no_data"}
    alone = {block.name: block for block in analysed("marks", frame, [section])}
    assert {e.status for e in alone["marks.systems"].estimates} == {"n_lt_2"}
    assert {e.status for e in alone["marks.penalty"].estimates} == {"no_data"}


@pytest.mark.slow
def test_robots_that_meet_worse_texts_are_found_out(same_orders):
    study = launched(draft(systems=("alpha", "beta", "gamma"), prompts=48, target_n=24, m=4, annotators_per_batch=2))
    record_simulated_answers(study, 24, {"alpha": 0.0, "beta": 0.0, "gamma": 3.0})
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    result = build_report(Study.objects.get(pk=study.pk), {"resamples": 99, "origins": ["robot"]})
    assert not result["problems"]
    tables = {one["name"]: one["rows"] for one in result["tables"]}
    assert [row["system"] for row in tables["marks_systems"]][0] == "gamma"
    for name in ("marks_score_pairs", "marks_penalty_pairs"):
        verdicts = {row["pair"]: row["verdict"] for row in tables[name]}
        assert verdicts["gamma > beta"] == "different" and verdicts["beta > alpha"] != "different", (name, verdicts)
    claims = {one["claim"] for one in result["conclusions"]}
    assert {
        "gamma was scored higher than beta, for prompts like these.",
        "gamma has fewer or milder errors than beta, for prompts like these.",
    } <= claims
    assert {row["unit"] for row in tables["marks_checks"]} == {"sentence", "output", "annotator"}
    assert Decimal(5) in set(Response.objects.filter(choice__gt="").values_list("value", flat=True))


@pytest.mark.slow
def test_planted_references_stand_apart():
    study = draft(systems=("alpha", "best", "beta", "worst"))
    study.systems.filter(name="best").update(reference="maximal")
    study.systems.filter(name="worst").update(reference="minimal")
    section = study.sections.get()
    judged = {}
    for person in range(8):
        for prompt in (1, 2):
            judged[person, prompt, "alpha"] = ([("accuracy", 5, "1"), ("style", 1, "2:0-3")], 50 + person)
            judged[person, prompt, "beta"] = ([("style", 1, "1")] if prompt == 1 else [], 70 + 2 * person)
    alone = {block.name: block for block in analysed("marks", frame_of(section, judged), [section])}
    for person in range(8):
        for prompt in (1, 2):
            judged[person, prompt, "best"] = ([], 100 - person)
            judged[person, prompt, "worst"] = ([("accuracy", 5, str(1 + person % 6))] * (1 + person % 2), person)
    blocks = {block.name: block for block in analysed("marks", frame_of(section, judged), [section])}

    def pairs(block):
        return {(e.settings["contrast"]["x"], e.settings["contrast"]["y"]) for e in block.estimates}

    planned = set(study.contrasts.values_list("x__name", "y__name"))
    assert len(planned) == 3 and not {("alpha", "beta"), ("beta", "alpha")} & planned
    assert pairs(blocks["marks.score"]) - planned == {("alpha", "beta")}
    assert pairs(blocks["marks.penalty"]) - planned == {("alpha", "beta")}
    for name in ("marks.kinds", "marks.checks"):
        assert [e.as_dict() for e in blocks[name].estimates] == [e.as_dict() for e in alone[name].estimates], name
    for name in ("marks.systems", "marks.standard"):
        (table,) = blocks[name].tables
        assert [(row["system"], row["reference"]) for row in table["rows"]] == [
            ("beta", ""),
            ("alpha", ""),
            ("best", "maximal"),
            ("worst", "minimal"),
        ]
        heads, others = ([column["label"] for column in one["columns"]] for one in (table, alone[name].tables[0]))
        assert "Planted as" in heads and "Planted as" not in others
    (figure,) = blocks["marks.systems"].figures
    assert [row["label"] for row in figure["rows"]] == ["alpha", "beta"]
