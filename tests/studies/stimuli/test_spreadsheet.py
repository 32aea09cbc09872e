"""CSV files that people open run no formula."""

from decimal import Decimal

import pytest

from studies.stimuli.rows import escape_formula, formula_safe_csv_text


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_text_like_a_formula_gets_an_apostrophe(text):
    assert escape_formula(text) == f"'{text}"


@pytest.mark.parametrize("cell", ["", "a=1", "'=1", " =1", -3.5, Decimal("-1.50"), None, True])
def test_other_texts_and_numbers_stay_as_they_are(cell):
    assert escape_formula(cell) is cell


def test_a_file_quotes_what_csv_needs_and_leaves_out_what_is_unknown():
    rows = [("a", "b"), ("=HYPERLINK(1,2)", None), (-2, 'say "no"')]
    assert formula_safe_csv_text(rows) == 'a,b\n"\'=HYPERLINK(1,2)",\n-2,"say ""no"""\n'
