"""Warnings beside the claim that they weaken: each code of the statistics has a sentence, and no claim ignores a block."""

import ast
import doctest
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from django.template.loader import render_to_string

from analysis.protocols import best_worst as best_worst_layouts
from analysis.protocols import ranking as ranking_layouts
from analysis.protocols.blocks import Block, Conclusion, ConclusionPhrases, warning_sentences
from analysis.protocols.blocks.cells import pvalue_cell, verdict_text
from analysis.protocols.blocks.layouts import (
    build_table,
    merge_nonempty_by_name_and_title,
    prefixed_cells,
)
from analysis.protocols.blocks.sentences import build_conclusion_sentences
from analysis.protocols.blocks.warning_sentences import (
    INTERNAL,
    SENTENCES,
    gravest_warnings_with_sentences,
    warning_sentence,
)
from analysis.protocols.rating import layouts as rating_layouts
from analysis.report.page import table_context
from analysis.report.plots import render_latex_table
from analysis.report.report_tables import estimates_table
from analysis.stats import margins
from analysis.stats.cluster_variances import betting_warning
from analysis.stats.multiplicity import Family
from analysis.stats.ranks import RankSets
from analysis.stats.results import Estimate, HypothesisTest, Interval, ResultWarning
from tests.golden_site import hashes

ROOT = Path(__file__).resolve().parents[4]
MAX_WORDS = 25
# What a key of a detail holds if it is not a number between 0 and 1, nor a count.
VALUES = {
    "cluster": "annotator",
    "counting": "all_three",
    "criterion": "clarity of the text",
    "direction": "downwards",
    "model": "jeffreys",
    "rule": "incoherent",
    "why": "few clusters",
    "skewness": -1.5,
    "correlation": 0.34,
    "share": 0.123,
    "largest_share": 0.92,
    "share_undecided": 0.005,
    "explained": 0.95,
    "wage": 7.2,
    "target": 9.6,
    "smallest": 2.4,
    "effective": 15.3,
    "meaning": "",
}
# Codes that are no literal where the warning is made.
NAMED_ELSEWHERE = {
    "analysis/protocols/rating/utilities.py": {"extremum_violation", "narrow_references", "references_not_rated"}
}


def calls():
    """Each call of ``ResultWarning``: its codes, its severity (warn if it is no literal), and the keys of its detail (None if unknown)."""
    for path in sorted((ROOT / "analysis").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ResultWarning":
                code, severity, detail = (*node.args, None, None)[:3]
                codes = (
                    {code.value}
                    if isinstance(code, ast.Constant)
                    else NAMED_ELSEWHERE[path.relative_to(ROOT).as_posix()]
                )
                keys = {key.value for key in detail.keys if key} if isinstance(detail, ast.Dict) else None
                yield (
                    codes,
                    severity.value if isinstance(severity, ast.Constant) else "warn",
                    set() if detail is None else keys,
                )


CALLS = list(calls())


def test_each_code_has_a_sentence_or_a_reason_for_none():
    codes = {code for some, _, _ in CALLS for code in some}
    assert len(codes) > 40
    assert codes == SENTENCES.keys() | INTERNAL.keys()
    assert not SENTENCES.keys() & INTERNAL.keys() and all(INTERNAL.values())


@pytest.mark.parametrize(
    ("code", "severity", "keys"),
    sorted(
        {
            (code, severity, tuple(sorted(keys)))
            for codes, severity, keys in CALLS
            for code in codes & SENTENCES.keys()
            if keys is not None
        }
    ),
)
def test_a_sentence_needs_only_the_detail_of_its_warning(code, severity, keys):
    warning = ResultWarning(code, severity, {key: VALUES.get(key, 21) for key in keys})
    text = warning_sentence(warning)
    assert len(text.split()) <= MAX_WORDS, text
    # What is wrong, and what to do.
    assert text[0].isupper() or text[0].isdigit(), text
    assert text.count(". ") + text.count(": ") >= 1 and text.endswith("."), text


def test_the_sentences_of_the_stored_reports():
    found = {}

    def walk(value):
        if isinstance(value, dict):
            if value.keys() == {"code", "severity", "detail"}:
                found.setdefault(value["code"], []).append(ResultWarning(**value))
            for each in value.values():
                walk(each)
        elif isinstance(value, list):
            for each in value:
                walk(each)

    walk(hashes.stored())
    assert len(found) > 20 and found.keys() <= SENTENCES.keys() | INTERNAL.keys()
    for warnings in found.values():
        for warning in warnings:
            if warning.code in SENTENCES:
                assert len(warning_sentence(warning).split()) <= MAX_WORDS
    assert "few_clusters" in found


def few(n, effective, severity="warn", cluster="annotator"):
    return ResultWarning("few_clusters", severity, {"cluster": cluster, "n_clusters": n, "effective": effective})


@pytest.mark.parametrize(
    ("warning", "text"),
    [
        (
            few(12, 12.0),
            "Only 12 annotators are behind this number, so its interval is uncertain. Collect answers for at least 20 annotators.",
        ),
        (
            few(1, 1.0, "block", "item"),
            "Only 1 prompt is behind this number, which is too few for a claim. Collect answers for at least 20 prompts.",
        ),
        (
            few(31, 15.4),
            "The answers are so unequally divided among 31 annotators that they count like 15. Collect answers for more annotators.",
        ),
        (
            ResultWarning("undefined_resamples", "warn", {"share": 0.004}),
            "0.4 % of the resamples gave no number, so the interval is uncertain. Collect more answers.",
        ),
        (
            ResultWarning("of_a_plugin", "warn", {"x": 1}),
            "This number has the warning “of a plugin”. Read its detail in the JSON result before you use the number.",
        ),
    ],
)
def test_what_a_sentence_says(warning, text):
    assert warning_sentence(warning) == text


def test_at_most_three_stand_beside_a_claim_the_gravest_first_and_none_twice():
    warnings = [
        ResultWarning("optional_stopping", "info", {"at": 12}),
        ResultWarning("interval_scale_assumed", "info"),
        few(12, 12.0),
        few(12, 12.0),
        ResultWarning("small_n_skew", "warn", {"skewness": 2.0}),
        ResultWarning("drift", "block", {"at": 9}),
    ]
    shown = gravest_warnings_with_sentences(warnings)
    assert [(one["code"], one["severity"]) for one in shown] == [
        ("drift", "block"),
        ("few_clusters", "warn"),
        ("small_n_skew", "warn"),
    ]
    assert [one["code"] for one in gravest_warnings_with_sentences(warnings[:2])] == ["optional_stopping"]
    orders = [ResultWarning("single_order", "info", {"n": 8}), ResultWarning("order_not_identified", "warn")]
    assert [one["code"] for one in gravest_warnings_with_sentences(orders)] == ["order_not_identified"]
    assert [one["code"] for one in gravest_warnings_with_sentences(orders[:1])] == ["single_order"]


def test_few_annotators_and_few_prompts_are_one_sentence():
    bets = ResultWarning("betting_instead_of_t", "info", {"why": "few clusters", "skewness": 0.1})
    (shown,) = gravest_warnings_with_sentences([few(12, 12.0), few(8, 8.0, cluster="item"), bets])
    assert shown["text"] == (
        "Only 12 annotators and 8 prompts are behind this number, so its interval is uncertain. Collect answers for at least 20 of each."
    )
    apart = gravest_warnings_with_sentences([few(12, 12.0), few(4, 4.0, "block", "item"), few(31, 15.4, cluster="run")])
    assert [(one["severity"], one["text"].split(",")[0]) for one in apart] == [
        ("block", "Only 4 prompts are behind this number"),
        ("warn", "Only 12 annotators are behind this number"),
        ("warn", warning_sentence(few(31, 15.4, cluster="run"))),
    ]
    uneven = ResultWarning("betting_instead_of_t", "info", {"why": "skewed", "skewness": 0.9})
    assert [one["code"] for one in gravest_warnings_with_sentences([uneven])] == ["betting_instead_of_t"]


@pytest.mark.parametrize("why", ["no spread", "skewed", "few clusters"])
@pytest.mark.parametrize(
    ("people", "prompts", "needed"),
    [
        (20, 12, "24 annotators and 24 prompts"),
        (200, 6, "12 prompts"),
        (6, 200, "12 annotators"),
        (9, 9, "18 annotators and 18 prompts"),
    ],
)
def test_the_advice_of_bets_names_the_sample_that_helps(why, people, prompts, needed):
    ways = [
        ("annotator", np.full(people, 5.0), np.full(people, 5.0)),
        ("item", np.full(prompts, 5.0), np.full(prompts, 5.0)),
    ]
    warning = betting_warning(why, 0.4, Interval(0.95, 0.6, 1.0, "betting"), (0.0, 1.0), ways)
    text = warning_sentence(warning)
    assert f"{needed} would narrow the interval by " in text and "Even" not in text
    assert len(text.split()) <= MAX_WORDS and warning.severity == "warn"


def test_the_advice_of_bets_says_when_nothing_helps():
    # One person always chose x and one always y: eight such people refute hardly any share.
    ways = [("annotator", np.array([0.0, 5.0]), np.full(2, 5.0))]
    warning = betting_warning("few clusters", 0.0, Interval(0.95, 0.0, 1.0, "betting"), (0.0, 1.0), ways)
    assert warning.detail["needed"] == {"annotator": 8} and not warning.detail["is_narrower"]
    assert "Even 8 annotators would narrow the interval by only " in warning_sentence(warning)
    assert len(warning_sentence(warning).split()) <= MAX_WORDS


CONTRAST = {
    "key": "beta > alpha",
    "x": "beta",
    "y": "alpha",
    "role": "primary",
    "expected": ">",
    "is_planned": True,
    "margin": 0.1,
    "section": 1,
    "criterion": "",
}
WORDING = ConclusionPhrases(
    above_claim="beta is better.",
    below_claim="alpha is better.",
    same="They are alike",
    open="It remains open which one is better.",
    before="The share is",
    symbol="P",
    kind="percent",
)
SKEWED = ResultWarning("small_n_skew", "block", {"n": 29, "skewness": 1.9})


def judged(*warnings, mode="recommended"):
    estimate = Estimate(
        analysis="a.b",
        estimand="share",
        unit="annotator",
        n=29,
        mode=mode,
        estimate=0.63,
        interval=Interval(0.95, 0.57, 0.69, "t"),
        test=HypothesisTest(name="one_sample_t", null=0.5, statistic=4.4, df=28.0, pvalue=0.0001),
        warnings=warnings,
        settings={"contrast": CONTRAST},
        detail={"se": 0.03},
    )
    tost = margins.equivalence_test_of_estimate(estimate, null=0.5, margin=0.1)
    family = Family("primary", ("a",))
    return margins.adjust_and_add_verdicts({"a": replace(estimate, sensitivity=(tost,))}, family)["a"]


def test_a_block_leaves_the_claim_open_and_says_why():
    assert judged().detail["verdict"] == judged(few(12, 12.0)).detail["verdict"] == "different"
    blocked = judged(SKEWED)
    assert blocked.is_blocked and blocked.detail["verdict"] == "inconclusive" and blocked.pvalue == 0.0001
    without_margin = {"a": replace(blocked, sensitivity=(), detail={})}
    alone = margins.adjust_and_add_verdicts(without_margin, Family("primary", ("a",)))["a"]
    assert alone.detail["verdict"] is None, "as for any number without a margin that shows no difference"
    assert judged(SKEWED, mode="paper").detail["verdict"] == "different", (
        "what the paper concludes is reported as it is"
    )

    def said(estimate):
        block = Block("a.b", "", "recommended", (estimate,), (Conclusion(estimate, WORDING, "beta > alpha"),))
        return build_conclusion_sentences([block])[0]

    claimed, open_ = said(judged(few(12, 12.0))), said(blocked)
    assert claimed["claim"] == "beta is better." and [one["severity"] for one in claimed["warnings"]] == ["warn"]
    assert open_["claim"] == WORDING.open and (open_["verdict"], open_["recovered"]) == ("inconclusive", "not shown")
    assert "support no claim: the first warning gives the reason." in open_["text"]
    assert open_["warnings"] == [
        {"code": "small_n_skew", "severity": "block", "text": warning_sentence(SKEWED)},
    ]


def test_a_block_leaves_no_star_and_no_p_in_tables_but_p_in_json():
    blocked, claimed, paper = judged(SKEWED), judged(), judged(SKEWED, mode="paper")
    assert (blocked.test.stars, claimed.test.stars, paper.test.stars) == ("", "***", "***")
    assert (verdict_text(blocked), verdict_text(claimed)) == ("no claim", "different")
    cells = prefixed_cells("p_xy", blocked)
    assert (cells["p_xy_pvalue"], cells["p_xy_stars"]) == ("no claim", "")
    assert pvalue_cell(claimed) == 0.0001 and pvalue_cell(paper) == 0.0001 and pvalue_cell(None) is None
    block = Block("a.b", "", "recommended", (blocked, claimed))
    first, second = block.as_dict()["estimates"]
    assert (first["is_blocked"], first["test"]["pvalue"], second["is_blocked"]) == (True, 0.0001, False)

    rows = [row for row in estimates_table([block])["rows"] if row["analysis"] == "a.b"]
    assert [(row["p"], row["p_adjusted"]) for row in rows] == [("no claim", "no claim"), (0.0001, 0.0001)]
    table = build_table(
        "a", "A", "p|p|p; stars|Stars|text", [{"p": pvalue_cell(blocked), "stars": blocked.test.stars}], "first"
    )
    assert "no claim" in render_latex_table(table) and "*" not in render_latex_table(table)
    concluded = replace(block, conclusions=(Conclusion(blocked, WORDING, "beta > alpha"),))
    assert build_conclusion_sentences([concluded])[0]["apa"].endswith(", no claim")


def test_warnings_about_ranks_are_sentences_below_their_table():
    undecidable, sparse = ResultWarning("undecidable_pairs", "warn", {"n": 2}), few(4, 4.0, "block")
    parts = [
        build_table("ranks", "Ranks", "system|System|text", [{"system": name}], "first", "A note.", warnings)
        for name, warnings in (("alpha", (undecidable,)), ("beta", (sparse, undecidable)))
    ]
    (table,) = merge_nonempty_by_name_and_title(parts)
    assert [one["code"] for one in table["warnings"]] == ["undecidable_pairs", "few_clusters"]
    html = render_to_string("report/_warnings.html", {"warnings": table_context(table)["warnings"]})
    for text in (html, render_latex_table(table)):
        assert "Warning:" in text and "The order of 2 pairs of systems cannot be decided" in text
        assert "No claim:" in text and "Only 4 annotators are behind this number" in text
    del table["warnings"]
    assert table_context(table)["warnings"] == [], "a report from an earlier version"
    assert "Warning" not in render_latex_table(table)


@pytest.mark.parametrize(
    "make",
    [
        lambda sets: rating_layouts.means_table([], sets, "fluency"),
        lambda sets: ranking_layouts.systems_table([], sets, [], "section 1"),
        lambda sets: best_worst_layouts.systems_table([], judged(), sets, "section 1"),
    ],
)
def test_each_table_with_ranks_has_their_warnings(make):
    undecidable = ResultWarning("undecidable_pairs", "warn", {"n": 2})
    common = {"low": None, "high": None, "clusters": (), "level": 0.95, "status": "zero_variance", "reason": "equal"}
    sets = RankSets(systems=("alpha", "beta"), scores=(1.0, 1.0), ranks=(1, 1), warnings=(undecidable,), **common)
    assert [one["code"] for one in make(sets)["warnings"]] == ["undecidable_pairs"]


def test_the_examples_are_true():
    assert doctest.testmod(warning_sentences).failed == 0
