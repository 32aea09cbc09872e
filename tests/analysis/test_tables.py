"""Numbers in print: APA style, LaTeX that compiles, CSV that no spreadsheet runs."""

import doctest

import pytest

from analysis import apa, latex, tables
from analysis.tables import Table, csv_text, found_direction, recovered, table


@pytest.mark.parametrize("module", [apa, latex, tables])
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
    assert apa.pvalue(value) == text


@pytest.mark.parametrize(("value", "text"), [(-0.001, "0.00"), (-0.34, "−0.34"), (12, "12.00")])
def test_a_rounded_nothing_has_no_sign(value, text):
    assert apa.number(value) == text


ENVELOPE = {
    "estimate": 0.63, "interval": {"level": 0.95, "low": 0.57, "high": 0.69}, "effect": {"value": 0.82}, "n": 29, "unit": "annotator",
    "test": {"name": "one_sample_t", "statistic": 4.4, "df": 28.0, "pvalue": 0.0001, "pvalue_adjusted": 0.0005, "adjust": "holm", "stars": "***"},
    "detail": {"verdict": "different"},
}  # fmt: skip


def test_an_estimate_in_one_line():
    line = apa.result(ENVELOPE, "P")
    assert line == "P = .63, 95% CI [.57, .69], t(28) = 4.40, Holm-adjusted p < .001, d = 0.82, n = 29 annotators"


def test_what_was_found_follows_from_the_verdict_or_the_stars():
    assert found_direction(ENVELOPE, 0.5, False) == ">" and found_direction(ENVELOPE, 0.5, True) == ">"
    unclear = ENVELOPE | {"detail": {"verdict": None}, "test": ENVELOPE["test"] | {"stars": ""}}
    assert found_direction(unclear, 0.5, False) == "?" and found_direction(unclear, 0.5, True) == "~"
    assert found_direction(ENVELOPE | {"test": None, "detail": {}}, 0.5, True) == "?"
    assert found_direction(None, 0.5, False) == ""


@pytest.mark.parametrize(
    ("expected", "found", "outcome"),
    [(">", ">", "recovered"), ("<", ">", "contradicted"), (">", "~", "not shown"), (">", "?", "not shown"), ("~", "~", "recovered"),
     ("~", "?", "not shown"), ("~", "<", "contradicted"), ("", ">", ""), (">", "", "")],
)  # fmt: skip
def test_whether_an_expectation_is_recovered(expected, found, outcome):
    assert recovered(expected, found) == outcome


def example() -> Table:
    return table(
        "t", "A title_with 5 %", "name|Name|text; p|p|p; ci|95% CI|interval; never|Never|text",
        [{"name": "=cmd()", "p": 0.0001, "ci": [0.1, 0.2]}, {"name": "a & b", "p": None, "ci": None}], "first", "A note.",
    )  # fmt: skip


def test_csv_has_full_precision_and_no_formula():
    assert csv_text(example()) == "name,p,ci_low,ci_high,never\n'=cmd(),0.0001,0.1,0.2,\na & b,,,,\n"


def test_latex_is_a_booktabs_table_without_empty_columns():
    text = latex.latex(example())
    assert r"\begin{tabular}{lrr}" in text and r"\caption{A title\_with 5 \%}" in text
    assert (
        r"a \& b & -- & -- \\" in text and r"=cmd() & \textless{} .001 & [.10, .20] \\" in text and "Never" not in text
    )
