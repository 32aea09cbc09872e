"""The analysis of human or machine: cells, the paper's counts by hand, known sensitivity and leaning, planned comparisons."""

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.power import TTestPower

from analysis.protocols.blocks.layouts import merge_nonempty_by_name_and_title
from analysis.protocols.blocks.sentences import build_conclusion_sentences
from analysis.protocols.humanlike.judgements import Cell, read_judgements
from studies.models import Contrast
from tests.analysis.protocols.analysed import analysed, without_groups
from tests.analysis.protocols.human_like_answers import human_like_answers
from tests.builders import add_humanlike, humanlike_draft

pytestmark = pytest.mark.django_db


def live(study):
    return study.sections.get(purpose="live")


def rows_of(study, arm, ratings, texts, is_machine, section, first=0):
    """Frame rows of one arm: ``ratings`` (annotators, texts), ``texts`` their numbers, ``is_machine`` by text."""
    arm = study.arms.get(name=arm)
    (machine,) = [system.name for system in arm.systems.all() if not system.is_human]
    return [
        {
            "assignment": first + person,
            "annotator": f"a{first + person:05}",
            "section": section.position,
            "question": "source",
            "arm": arm.name,
            "condition": arm.condition,
            "domain": arm.domain,
            "position": place + 1,
            "sample": 0,
            "system": machine if is_machine[text] else "human",
            "prompt": f"{arm.domain}{text}",
            "value": (rating - 1) / 3,
            "is_kept": True,
            "is_kept_paper": True,
        }
        for person, (mine, read) in enumerate(zip(ratings, texts, strict=True))
        for place, (rating, text) in enumerate(zip(mine, read, strict=True))
    ]


def made(study, truths, n=130, each=5, seed=0):
    """A frame of annotators with these (d', c) by arm, and the sections."""
    section, rows, rng = live(study), [], np.random.default_rng(seed)
    for number, (arm, (d, c)) in enumerate(sorted(truths.items())):
        drawn = human_like_answers(n, each, d_prime=d, criterion=c, n_texts=100, annotator_sd=0.2, text_sd=0.2, rng=rng)
        rows += rows_of(study, arm, *drawn, section, 1000 * number)
    frame = pd.DataFrame(rows)
    return frame, [section]


def block(blocks, name, mode="recommended"):
    return next(one for one in blocks if one.name == name and one.mode == mode)


def table(blocks, name):
    return next(one for block in blocks for one in block.tables if one["name"] == name)


@pytest.fixture
def small():
    """Two people, two texts each, by hand: (rating, machine?)."""
    study = humanlike_draft(domains=("news",))
    section = live(study)
    rows = rows_of(
        study, "news gpt3 none", [[1, 4, 3], [2, 3, 1]], [[0, 1, 2], [0, 1, 2]], [False, True, False], section
    )
    frame = pd.DataFrame(rows)
    return frame, section


def test_the_papers_columns_by_hand(small):
    frame, section = small
    (row,) = table(analysed("humanlike", frame, [section]), "paper_table_1")["rows"]
    # Person 1: right, right, wrong; person 2: right on all three. Of 6 answers 3 say machine, 2 of them rightly.
    assert row["accuracy"] == pytest.approx((2 / 3 + 1) / 2) and row["overall"] == row["accuracy"]
    assert (row["precision"], row["recall"], row["f1"]) == (pytest.approx(2 / 3), 1.0, pytest.approx(0.8))
    assert (row["human"], row["confident"], row["n"], row["n_rows"]) == (0.5, 0.5, 2, 6)
    assert (row["model"], row["domain"], row["sign"]) == ("gpt3", "news", "")


def test_one_domain_is_not_reported_twice(small):
    frame, section = small
    blocks = analysed("humanlike", frame, [section])
    assert [row["domain"] for row in table(blocks, "detection")["rows"]] == ["all"]
    assert [one["title"] for b in blocks for one in b.figures if one.get("kind") == "bars"] == [
        "Texts right: gpt3, no training"
    ]


def test_the_histogram_counts_people_by_texts_right(small):
    frame, section = small
    figures = [one for b in analysed("humanlike", frame, [section]) for one in b.figures if one.get("kind") == "bars"]
    counts = {row["label"]: row["estimate"] for row in figures[0]["rows"] if row["series"] == "annotators"}
    assert counts == {"0 of 3 right": 0, "1 of 3 right": 0, "2 of 3 right": 1, "3 of 3 right": 1}
    guessing = [row["estimate"] for row in figures[0]["rows"] if row["series"] == "by guessing"]
    assert guessing == pytest.approx([0.25, 0.75, 0.75, 0.25])


def test_every_planned_cell_is_there_answered_or_not():
    study = humanlike_draft(machines=("gpt2", "gpt3"), conditions=("none", "examples"), domains=("news", "stories"))
    frame, (section,) = made(study, {"news gpt3 none": (1, 0)}, n=20)
    one = read_judgements(without_groups(frame), section)
    assert len(one.cells) == 8 and len(one.cells_over_domains) == 4 and one.reference_condition("gpt2") == "none"
    blocks = analysed("humanlike", frame, [section])
    rows = {(r["model"], r["condition"], r["domain"]): r for r in table(blocks, "detection")["rows"]}
    assert len(rows) == 12 and rows["gpt2", "none", "news"]["d"] is None and rows["gpt2", "none", "news"]["reason"]
    chance = block(blocks, "humanlike.paper", "paper").estimates[0].test
    assert chance is None or chance.family_size == 8


@pytest.mark.slow
def test_each_section_has_families_and_tables_of_its_own():
    study = humanlike_draft(conditions=("none", "examples"), domains=("news", "stories"), machines=("gpt2", "gpt3"))
    first, second = live(study), add_humanlike(study, position=5)
    Contrast.objects.create(study=study, x_condition="examples", y_condition="none")
    rows, rng = [], np.random.default_rng(3)
    for number, arm in enumerate(study.arms.order_by("name")):
        drawn = human_like_answers(6, 5, d_prime=1, criterion=0, n_texts=20, annotator_sd=0.2, text_sd=0.2, rng=rng)
        for section in (first, second):
            rows += rows_of(study, arm.name, *drawn, section, 1000 * number)
    frame = pd.DataFrame(rows)
    found = analysed("humanlike", frame, [first, second])
    places = {}
    for block in found:
        for test in (estimate.test for estimate in block.estimates):
            if test and test.family:
                places.setdefault((test.family, block.mode), set()).add((block.title, test.family_size, test.adjust))
    assert len(places) > 10 and all(len(told) == 1 for told in places.values())
    tables = merge_nonempty_by_name_and_title(table for block in found for table in block.tables)
    assert len(tables) == len({table["name"] for table in tables}) > 10
    assert len({table["title"] for table in tables}) == len(tables)


@pytest.mark.slow
def test_known_sensitivity_and_leaning_come_out():
    study = humanlike_draft(machines=("gpt2", "gpt3"), domains=("news", "stories"))
    truths = {
        "news gpt2 none": (1.0, 0.0),
        "stories gpt2 none": (1.0, 0.0),
        "news gpt3 none": (0.0, 0.5),
        "stories gpt3 none": (0.0, 0.5),
    }
    frame, sections = made(study, truths, n=200)
    rows = {(r["model"], r["domain"]): r for r in table(analysed("humanlike", frame, sections), "detection")["rows"]}
    old, new = rows["gpt2", "all"], rows["gpt3", "all"]
    assert old["d_interval"][0] < 0.96 < old["d_interval"][1] and old["d_p"] < 0.001
    assert new["d_interval"][0] < 0 < new["d_interval"][1] and new["d_p"] > 0.05
    assert new["c_interval"][0] < 0.48 < new["c_interval"][1] and abs(old["c"]) < 0.15
    assert old["auc"] > 0.7 and new["accuracy"] == pytest.approx(0.5, abs=0.05) and 0.02 < new["detectable"] < 0.15
    # Two machines in the family: the departure that the first step of Holm finds.
    for estimate in block(analysed("humanlike", frame, sections), "humanlike.detection").estimates:
        if estimate.analysis == "humanlike.accuracy":
            n = 2 if estimate.settings["domain"] == "all" else 4
            assert estimate.detail["detectable"] == pytest.approx(findable(estimate.detail, n), rel=1e-4)
    paper = table(analysed("humanlike", frame, sections), "paper_table_1")["rows"]
    assert [row["overall_sign"] for row in paper if row["overall"] is not None] == ["*", ""]
    assert {row["sign"] for row in paper if row["model"] == "gpt2"} == {"*"}


def findable(detail, tests):
    """With power .8, from this standard error and its degrees of freedom, where the least p of so many must be under .05 / so many."""
    n = detail["df"] + 1
    return TTestPower().solve_power(nobs=n, alpha=0.05 / tests, power=0.8) * n**0.5 * detail["se"]


def trained():
    """Examples sharpen the eye, comparison only loosens the answer "machine"."""
    conditions = ("none", "instructions", "examples", "comparison")
    study = humanlike_draft(conditions=conditions, domains=("news", "stories"))
    for condition, expected in (("instructions", "~"), ("examples", ">"), ("comparison", "~")):
        Contrast.objects.create(study=study, x_condition=condition, y_condition="none", expected=expected, margin=0.3)
    of = {"none": (0.0, 0.4), "instructions": (0.0, 0.4), "examples": (0.7, 0.1), "comparison": (0.0, -0.1)}
    return study, made(
        study, {f"{domain} gpt3 {c}": of[c] for domain in ("news", "stories") for c in of}, n=250, seed=4
    )


@pytest.mark.slow
def test_a_better_eye_is_distinguished_from_a_readier_answer():
    study, (frame, sections) = trained()
    blocks = analysed("humanlike", frame, sections)
    found = {(r["x"], r["what"]): r for r in table(blocks, "changes")["rows"]}
    assert (
        found["training by examples", "sensitivity"]["interval"][0] > 0.3
        and found["training by examples", "sensitivity"]["planned"] == "planned"
    )
    assert (
        found["training by comparison", "sensitivity"]["interval"][0]
        < 0
        < found["training by comparison", "sensitivity"]["interval"][1]
    )
    assert (
        found["training by comparison", "criterion"]["interval"][1] < -0.2
        and found["training by comparison", "criterion"]["planned"] == ""
    )
    assert found["training by examples", "accuracy"]["p"] < 0.01 < found["training by comparison", "accuracy"]["p"]
    sensitivities = block(blocks, "humanlike.sensitivity").estimates
    assert len(sensitivities) == 3
    for estimate in sensitivities:
        detail, shown = estimate.detail, found[estimate.settings["subject"]["x"], "sensitivity"]["detectable"]
        assert shown == detail["detectable"] == pytest.approx(findable(detail, 3), rel=1e-4)
    said = build_conclusion_sentences(blocks)
    assert [one["contrast"].partition(" >")[0] for one in said] == ["instructions", "examples", "comparison"]
    wanted = (
        "Annotators distinguished machine from human texts better under training by examples than under no training, "
        "for texts like these."
    )
    assert said[1]["claim"] == wanted
    assert said[1]["recovered"] == "recovered"
    assert (
        " Expected: Annotators distinguished machine from human texts better under training by examples than under no training. That was found."
        in said[1]["text"]
    )
    assert said[2]["verdict"] == "equivalent" and "equally well" in said[2]["claim"] and "±0.30" in said[2]["claim"]


@pytest.mark.slow
def test_the_papers_second_table_and_its_groups():
    study, (frame, sections) = trained()
    blocks = analysed("humanlike", frame, sections)
    rows = table(blocks, "paper_table_2")["rows"]
    assert [row["condition"] for row in rows] == [
        "none",
        "none",
        "instructions",
        "instructions",
        "examples",
        "examples",
        "comparison",
        "comparison",
    ]
    assert [row["overall_sign"] for row in rows if row["overall"] is not None] == ["", "", "*", ""]
    tests = [e for e in block(blocks, "humanlike.paper", "paper").estimates if e.analysis == "humanlike.training"]
    # Two cells without training against chance, three conditions in two domains against them.
    assert {e.test.family_size for e in tests} == {8} and {e.test.adjust for e in tests} == {"bonferroni"}
    pairs = {
        (e.settings["x"], e.settings["y"]): e
        for e in block(blocks, "humanlike.groups", "paper").estimates
        if "x" in e.settings
    }
    assert (
        len(pairs) == 6
        and pairs["examples", "none"].test.pvalue < 0.05
        and pairs["examples", "none"].effect.value > 0.2
    )
    anova = next(e for e in block(blocks, "humanlike.groups", "paper").estimates if e.analysis == "humanlike.anova")
    assert (anova.detail["df_between"], anova.detail["df_within"]) == (1, 498)


@pytest.mark.slow
def test_the_domain_model_tests_whether_training_depends_on_the_domain():
    _, (frame, sections) = trained()
    rows = table(analysed("humanlike", frame, sections), "domains")["rows"]
    kinds = [row["what"] for row in rows]
    assert kinds.count("mean over domains") == 3 and kinds.count("in the domain") == 6
    (joint,) = [row for row in rows if row["what"].startswith("depends")]
    assert joint["p"] is not None and joint["estimate"] is None


def test_two_machine_systems_and_chance_can_be_planned():
    study = humanlike_draft(machines=("gpt2", "gpt3"), domains=("news",))
    systems = {system.name: system for system in study.systems.all()}
    Contrast.objects.create(study=study, x=systems["gpt2"], y=systems["gpt3"], expected=">")
    Contrast.objects.create(study=study, estimand="accuracy", role="secondary")
    frame, sections = made(study, {"news gpt2 none": (1.2, 0), "news gpt3 none": (0, 0)}, n=150, seed=7)
    said = build_conclusion_sentences(analysed("humanlike", frame, sections))
    wanted = (
        "Annotators distinguished machine from human texts better under gpt2 than under gpt3, for texts like these."
    )
    assert said[0]["claim"] == wanted
    claims = [one["claim"] for one in said[1:]]
    assert (
        claims[0] == "Annotators were right more often than by guessing (gpt2, no training), for texts like these."
        and "remains open" in claims[1]
    )


def test_people_left_out_by_rules_that_look_at_outcomes_are_left_out_of_the_paper_alone(small):
    frame, section = small
    frame.loc[frame["annotator"] == "a00001", "is_kept_paper"] = False
    blocks = analysed("humanlike", frame, [section])
    assert table(blocks, "paper_table_1")["rows"][0]["n"] == 1
    assert table(blocks, "detection")["rows"][0]["n"] == 2


@pytest.mark.parametrize("keep", [0, 1, 2])
def test_hardly_anybody_is_no_error(small, keep):
    frame, section = small
    frame = frame[frame["assignment"] < keep]
    blocks = analysed("humanlike", frame, [section])
    assert table(blocks, "paper_table_1")["rows"][0]["n"] == keep
    for one in blocks:
        one.as_dict()


def test_everybody_of_one_mind_is_no_error():
    study = humanlike_draft(conditions=("none", "examples"), domains=("news",))
    section = live(study)
    rows = [
        row
        for n, arm in enumerate(("news gpt3 none", "news gpt3 examples"))
        for row in rows_of(study, arm, [[1, 1]] * 8, [[0, 1]] * 8, [False, True], section, 100 * n)
    ]
    frame = pd.DataFrame(rows)
    row = table(analysed("humanlike", frame, [section]), "detection")["rows"][0]
    assert row["reason"] and row["accuracy"] == 0.5


def test_a_cell_says_what_it_is():
    assert Cell("gpt3", "none").key == "gpt3, none" and Cell("gpt3", "none", "news").key == "gpt3, none, news"
