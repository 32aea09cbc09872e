"""Numbers in print: APA style, LaTeX that compiles, CSV that no spreadsheet runs."""

import doctest
from dataclasses import replace

import pytest

from analysis.protocols.blocks import Block, ConclusionPhrases, build_planned_conclusions, cells, layouts
from analysis.protocols.blocks.cells import (
    direction_symbol_as_published,
    expectation_outcome,
    population_note,
    verdict_direction_symbol,
)
from analysis.protocols.blocks.layouts import Table, build_table, csv_text, merge_nonempty_by_name_and_title
from analysis.protocols.blocks.sentences import build_conclusion_sentences
from analysis.protocols.spa.layouts import rule_effects_table
from analysis.report import plots
from analysis.report.report_tables import warnings_table
from analysis.stats.results import Effect, Estimate, HypothesisTest, Interval, ResultWarning


@pytest.mark.parametrize("module", [cells, layouts, plots, layouts])
def test_the_examples_in_the_docs_are_true(module):
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "< .001"),
        (0.00099, "< .001"),
        (0.001, ".001"),
        (0.0346, ".035"),
        (0.9999, "> .999"),
        (1.0, "> .999"),
        (None, "–"),
    ],
)
def test_a_pvalue_is_never_zero_or_one(value, text):
    assert cells.format_pvalue(value) == text


@pytest.mark.parametrize(("value", "text"), [(-0.001, "0.00"), (-0.34, "−0.34"), (12, "12.00")])
def test_a_rounded_nothing_has_no_sign(value, text):
    assert cells.format_number(value) == text


TEST = HypothesisTest(
    name="one_sample_t",
    null=0.5,
    statistic=4.4,
    df=28.0,
    pvalue=0.0001,
    pvalue_adjusted=0.0005,
    adjust="holm",
    stars="***",
)
ESTIMATE = Estimate(
    analysis="a.b",
    estimand="mean",
    estimate=0.63,
    interval=Interval(0.95, 0.57, 0.69, "t"),
    effect=Effect(name="d", value=0.82),
    n=29,
    unit="annotator",
    test=TEST,
    detail={"verdict": "different"},
)


def test_an_estimate_in_one_line():
    line = cells.format_result_line(ESTIMATE, "P")
    assert line == "P = .63, 95% CI [.57, .69], t(28) = 4.40, Holm-adjusted p < .001, d = 0.82, n = 29 annotators"


@pytest.mark.parametrize(
    ("populations", "words"),
    [
        ([], ""),
        ([None, None], ""),
        (["people", None], " Comparisons are about people like these, and exactly these prompts."),
        (["people and prompts"], " Comparisons are about people and prompts like these."),
        (
            ["people", "people and prompts"],
            "; those of fewer than five prompts, of a stopping rule, or declared so, are about",
        ),
    ],
)
def test_a_note_says_which_people_and_prompts_the_comparisons_are_about(populations, words):
    estimates = [replace(ESTIMATE, settings={"population": one} if one else {}) for one in populations]
    note = population_note(estimates)
    assert (words in note) if words else note == ""
    # An estimate without data makes no comparison.
    named = {"analysis": "a.b", "estimand": "mean", "unit": "annotator", "n": 0}
    empty = Estimate(status="no_data", reason="no value", settings={"population": "people"}, **named)
    assert population_note([*estimates, empty]) == note


def test_what_was_found_follows_from_the_verdict_or_the_level():
    estimate = replace(ESTIMATE, settings={"contrast": {"level": 0.05}})
    assert verdict_direction_symbol(estimate) == ">" and direction_symbol_as_published(estimate, 0.5) == ">"
    # One star of the scheme 10/5/1 is no result at the level of the comparison.
    unclear = replace(estimate, detail={"verdict": None}, test=replace(TEST, pvalue_adjusted=0.08, stars="*"))
    assert verdict_direction_symbol(unclear) == "?" and direction_symbol_as_published(unclear, 0.5) == "~"
    assert direction_symbol_as_published(replace(estimate, test=None, detail={}), 0.5) == "?"
    assert verdict_direction_symbol(None) == "" == direction_symbol_as_published(None, 0.5)


@pytest.mark.parametrize(
    ("expected", "found", "outcome"),
    [
        (">", ">", "recovered"),
        ("<", ">", "contradicted"),
        (">", "~", "not shown"),
        (">", "?", "not shown"),
        ("~", "~", "recovered"),
        ("~", "?", "not shown"),
        ("~", "<", "contradicted"),
        ("", ">", ""),
        (">", "", ""),
    ],
)
def test_whether_an_expectation_is_recovered(expected, found, outcome):
    assert expectation_outcome(expected, found) == outcome


def example() -> Table:
    return build_table(
        "t",
        "A title_with 5 %",
        "name|Name|text; p|p|p; ci|95% CI|interval; never|Never|text",
        [{"name": "=cmd()", "p": 0.0001, "ci": [0.1, 0.2]}, {"name": "a & b", "p": None, "ci": None}],
        "first",
        "A note.",
    )


def test_csv_has_full_precision_and_no_formula():
    assert csv_text(example()) == "name,p,ci_low,ci_high,never\n'=cmd(),0.0001,0.1,0.2,\na & b,,,,\n"


def test_latex_is_a_booktabs_table_without_empty_columns():
    text = plots.render_latex_table(example())
    assert r"\begin{tabular}{lrr}" in text and r"\caption{A title\_with 5 \%}" in text
    assert (
        r"a \& b & -- & -- \\" in text and r"=cmd() & \textless{} .001 & [.10, .20] \\" in text and "Never" not in text
    )


def test_an_interval_beside_an_adjusted_p_is_said_to_be_none():
    both = build_table("t", "T", "ci|95% CI|wide_interval; p|adj. p, here|p", [], "first", "A note.")
    assert both["note"] == f"A note. {cells.SIMULTANEOUS_NOTE}"
    for columns in ("ci|95% CI|interval; p|p|p", "n|n|integer; p|adj. p|p"):
        assert build_table("t", "T", columns, [], "first")["note"] == ""


def warned(about, severity="warn"):
    warning = ResultWarning("few_clusters", severity, {"cluster": "annotator", "n_clusters": 8, "effective": 7.5})
    return replace(ESTIMATE, estimand=about, analysis=f"of.{about}", warnings=(warning, warning))


def test_a_warning_occurs_once_with_all_the_numbers_that_carry_it():
    names = ["one", "two", "three", "four", "five"]
    blocks = [
        Block("a", "", "recommended", tuple(warned(name) for name in names)),
        Block("a", "", "paper", tuple(warned(name, "block") for name in names)),
        Block("a", "", "paper", (warned("nothing", "info"),)),
    ]
    found = warnings_table(blocks)["rows"]
    assert [(row["code"], row["severity"], row["mode"], row["n"]) for row in found] == [
        ("few_clusters", "block", "paper", 5),
        ("few_clusters", "warn", "recommended", 5),
    ]
    assert found[1]["text"].startswith("Only 8 annotators are behind this number, so its interval is uncertain.")
    # Where no claim may rest on a number its name is not cut.
    assert [row["about"] for row in found] == ["one, two, three, four, five", "one, two, three and 2 more"]
    assert found[0]["analysis"] == "of.one, of.two, of.three, of.four, of.five"


@pytest.mark.parametrize(
    ("expected", "value", "verdict", "said"),
    [
        (">", 0.63, "different", " Expected: beta is the better one. That was found."),
        ("<", 0.63, "different", " Expected: alpha is the better one. The opposite was found."),
        ("<", 0.63, None, " Expected: alpha is the better one. That was not shown."),
        ("~", 0.63, "different", " Expected: they are alike. A difference was found."),
        ("~", 0.53, "different_but_trivial", " A difference was found, by less than matters."),
        ("<", 0.53, "different_but_trivial", " The opposite was found, by less than matters."),
        ("~", 0.51, "equivalent", " Expected: they are alike. That was found."),
        ("", 0.63, "different", "n = 29 annotators."),
    ],
)
def test_what_was_expected_is_said_in_the_protocols_own_words(expected, value, verdict, said):
    wording = ConclusionPhrases(
        above_claim="beta is the better one.",
        below_claim="alpha is the better one.",
        same="they are alike",
        open="Open.",
        before="The share is",
        symbol="P",
        kind="percent",
    )
    contrast = {
        "key": "beta > alpha", "x": "beta", "y": "alpha", "role": "primary", "expected": expected, "is_planned": True, "margin": 0.1,
        "section": 1, "criterion": "", "population": "",
    }  # fmt: skip
    settings = {"contrast": contrast, "key": "share"}
    estimate = replace(ESTIMATE, estimate=value, settings=settings, detail={"verdict": verdict})
    block = Block("a.b", "", "recommended", (estimate,), build_planned_conclusions([estimate], lambda one: wording))
    (one,) = build_conclusion_sentences([block])
    assert one["text"].endswith(said) and one["contrast"] == "beta > alpha, share"


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (0.0042, "fine_probability", ".004"),
        (-0.0042, "fine_percent", "−0.4 %"),
        ([-0.012, 0.0042], "fine_interval", "[−.012, .004]"),
        (0.0042, "fine_number", "0.004"),
        ([-0.012, 1.0], "fine_wide_interval", "[−0.012, 1.000]"),
    ],
)
def test_a_small_difference_is_not_printed_as_none(value, kind, text):
    assert layouts.format_cell(value, kind) == text


def test_what_a_rule_changes_can_be_checked_by_what_is_beside_it():
    contrast = {"x": "a", "y": "b", "section": 1, "is_planned": False}
    change = replace(
        ESTIMATE,
        estimate=-0.0042,
        interval=Interval(0.95, -0.012, 0.004, "b"),
        settings={"rule": "late", "contrast": contrast},
        detail={"before": 0.6478, "after": 0.6436, "n_before": 30, "n_after": 29},
    )
    made = rule_effects_table([change])
    (row,) = made["rows"]
    shown = {column["key"]: layouts.format_cell(row[column["key"]], column["kind"]) for column in made["columns"]}
    assert (shown["before"], shown["after"], shown["change"]) == (".648", ".644", "−.004")
    assert shown["interval"] == "[−.012, .004]"
    head, line = csv_text(made).splitlines()
    assert "interval_low,interval_high" in head and "-0.0042,-0.012,0.004" in line


def test_tables_of_one_name_and_title_are_one_and_others_are_numbered():
    one, two = (build_table("t", "Of both", "n|n|integer", [{"n": n}], "sure", "A note.") for n in (1, 2))
    other, empty = (
        build_table("t", "Of another", "n|n|integer", [{"n": 3}], "sure"),
        build_table("e", "E", "n|n|integer", [], "sure"),
    )
    made = merge_nonempty_by_name_and_title([one, other, empty, two])
    assert [(each["name"], each["title"], [row["n"] for row in each["rows"]]) for each in made] == [
        ("t", "Of both", [1, 2]),
        ("t_2", "Of another", [3]),
    ]
    assert len(one["rows"]) == 1, "what is joined stays as it was"
    with pytest.raises(ValueError, match="other columns"):
        merge_nonempty_by_name_and_title([one, build_table("t", "Of both", "p|p|p", [{"p": 0.5}], "sure")])
