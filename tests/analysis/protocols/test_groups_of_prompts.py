"""Where prompts belong to groups, results of every protocol count groups in place of prompts, and say so."""

import json

import numpy as np
import pytest
from django.db import transaction

from analysis.report.build import build_report
from annotators.participation.simulate import record_simulated_answers
from studies.models import Prompt, Study
from studies.protocols import REGISTRY
from tests.builders import add_section, draft_study, launched
from tools.proofs.calibration.studies import answer_rows, drafted, import_and_report
from tools.proofs.calibration.study_cells import StudyCell

pytestmark = pytest.mark.django_db
SPA = {"sd_people": 12.0, "sd_prompts": 8.0}
# Protocols that compare systems, each with what makes a study of it. SPA counts sets of batches, and humanlike texts.
CELLS = {
    "rating": {}, "two_choice": {}, "ranking": {}, "relative": {}, "marks": {"estimand": "score"}, "humanlike": {},
}  # fmt: skip


def report_of(protocol, *, groups, size=4, people=12, noun="", alone=0, **more):
    cell = StudyCell(protocol, people, groups * size, group_size=size, **{**CELLS.get(protocol, {}), **more})
    study = drafted(cell)
    study.group_noun = noun
    study.save()
    for prompt in study.prompts.order_by("pk")[:alone]:
        prompt.group = ""
        prompt.save()
    return import_and_report(study, answer_rows(np.random.default_rng(3), cell, study))


def estimates_of(report):
    for block in report["blocks"]:
        if block["mode"] == "recommended":
            yield from block["estimates"]


def planned(report):
    own = [one for one in estimates_of(report) if (one["settings"].get("contrast") or {}).get("is_planned")]
    return [one for one in own if "verdict" in one["detail"] or "n_groups" in one["detail"]]


def test_every_protocol_that_compares_systems_is_here():
    without = {
        "survey": "compares nothing",
        "spa": "has tests of its own below",
        "best_worst": "needs three systems, and has a test of its own below",
    }
    assert set(CELLS) | set(without) == set(REGISTRY)


@pytest.mark.parametrize("protocol", CELLS)
def test_groups_are_the_second_sample_and_the_sentence_counts_them(protocol):
    report = report_of(protocol, groups=6)
    own = planned(report)
    assert own and all(one["settings"]["population"] == "people and prompts" for one in own)
    assert all(one["detail"].get("n_items", 6) == 6 for one in estimates_of(report))
    assert all((one["detail"]["n_groups"], one["detail"]["n_prompts"]) == (6, 24) for one in own)
    assert report["conclusions"]
    for sentence in report["conclusions"]:
        assert "n = 12 annotators, n = 6 groups of prompts (24 prompts)" in sentence["text"], sentence["text"]
        assert "n = 6 groups of prompts (24 prompts)" in sentence["apa"]
    words = " ".join(warning["text"] for one in report["conclusions"] for warning in one["warnings"])
    assert "6 prompts" not in words


@pytest.mark.parametrize("protocol", CELLS)
@pytest.mark.parametrize(
    "noun",
    # Every protocol with one word in each run, and with all words at night.
    [
        "document",
        *(
            pytest.param(noun, marks=pytest.mark.slow)
            for noun in Study.GroupNoun.values
            if noun not in ("", "document")
        ),
    ],
)
def test_sentences_and_reasons_have_the_word_of_the_file(protocol, noun):
    """Every text of a report about a study whose prompts all have a document says documents, and no other word."""
    for groups in (4, 6):
        with transaction.atomic():
            report = report_of(protocol, groups=groups, noun=noun)
            transaction.set_rollback(True)
        texts = [text for sentence in report["conclusions"] for text in (sentence["text"], sentence["apa"])]
        assert texts and not [text for text in texts if "groups of prompts" in text]
        counted = f"n = 12 annotators, n = 6 {noun}s (24 prompts)" if groups == 6 else f"4 {noun}s are too few"
        assert all(counted in sentence["text"] for sentence in report["conclusions"])
        assert {one["detail"].get("group_noun") for one in planned(report)} == {noun}
        if groups == 6:
            counted = f"count {noun}s in place of prompts: 6 {noun}s with 24 prompts"
            assert f"Results about prompts like these {counted}." in report["methods"]
            notes = [table["note"] for table in report["tables"] if "Comparisons are about" in table["note"]]
            assert all(f"They {counted}." in note for note in notes) and bool(notes) == (protocol != "humanlike")
        warned = json.dumps([one["warnings"] for one in report["conclusions"]])
        assert "group of prompts" not in warned and "groups of prompts" not in warned


def test_a_lone_prompt_is_no_document():
    report = report_of("rating", groups=6, noun="document", alone=1)
    assert "n = 7 groups of prompts (24 prompts)" in report["conclusions"][0]["text"]


@pytest.mark.slow
@pytest.mark.parametrize("protocol", CELLS)
def test_the_interval_is_the_one_of_groups_and_not_of_prompts(protocol):
    """The same answers with and without groups: documents that move all their prompts make the interval wider."""
    with transaction.atomic():
        grouped = planned(report_of(protocol, groups=8, sd_prompts=1.5))[0]
        transaction.set_rollback(True)
    cell = StudyCell(protocol, 12, 32, group_size=4, **{**CELLS[protocol], "sd_prompts": 1.5})
    study = drafted(cell)
    Prompt.objects.filter(study=study).update(group="")
    alone = planned(import_and_report(study, answer_rows(np.random.default_rng(3), cell, study)))[0]
    assert alone["estimate"] == grouped["estimate"]
    if protocol != "humanlike":  # nobody can tell the author of a text, so its documents move nothing
        assert grouped["detail"]["se"] > 1.2 * alone["detail"]["se"]
    assert grouped["detail"]["df"] < alone["detail"]["df"]


@pytest.mark.parametrize("protocol", CELLS)
def test_fewer_than_five_groups_give_no_interval_and_the_reason(protocol):
    report = report_of(protocol, groups=4)
    for one in planned(report):
        assert one["interval"] is None and one["test"] is None and one["status"] == "not_identified"
        assert one["reason"].startswith("4 groups of prompts are too few")
        assert any(other["settings"].get("population") == "people" or other["interval"] for other in one["sensitivity"])
    for sentence in report["conclusions"]:
        assert "4 groups of prompts are too few" in sentence["text"]


@pytest.mark.slow
def test_best_and_worst_count_groups(same_orders):
    study = draft_study(instructions="", systems=("alpha", "beta", "gamma"), prompts=24, target_n=12)
    add_section(study, "best_worst", m=8)
    x, y = study.systems.order_by("name")[:2]
    study.contrasts.create(x=x, y=y)
    for position, prompt in enumerate(study.prompts.order_by("pk")):
        prompt.group = f"d{position // 4}"
        prompt.save()
    study = launched(study)
    record_simulated_answers(study, 12, {"alpha": 0.5, "beta": 0.0, "gamma": 0.0})
    report = build_report(study, {"resamples": 99, "origins": ["robot"]})
    assert not report["problems"]
    own = planned(report)
    assert own and all((one["detail"]["n_groups"], one["detail"]["n_prompts"]) == (6, 24) for one in own)
    assert all(one["detail"].get("n_items", 6) == 6 for one in estimates_of(report))
    assert "n = 12 annotators, n = 6 groups of prompts (24 prompts)" in report["conclusions"][0]["text"]
