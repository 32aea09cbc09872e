"""The page "What the four papers print": what is computed is what is kept, and what is kept is what is printed."""

import json

import pytest

from tools.proofs.papers import page
from tools.proofs.papers.numbers import PARTS, computed, kept, part_name, plain
from tools.proofs.papers.rows import Row, decimals, rounds_to, within
from tools.proofs.papers.spa import BANDS, pvalue_band

BY_NAME = {part_name(part): part for part in PARTS}
SLOW = [name for name, part in BY_NAME.items() if part.is_simulated]
QUICK = [name for name, part in BY_NAME.items() if not part.is_simulated]


def same(ours, theirs):
    """Everything that is printed to the letter, the numbers behind it to the digits that machines share."""
    assert [row["what"] for row in ours] == [row["what"] for row in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        assert mine["values"] == pytest.approx(other["values"], rel=1e-6, abs=1e-9), mine["what"]
        assert {k: v for k, v in mine.items() if k != "values"} == {k: v for k, v in other.items() if k != "values"}


def recomputed(name, request):
    part = BY_NAME[name]
    return computed(part, request.getfixturevalue("shared") if part.needs_labels else None)


def test_every_part_is_kept():
    assert list(kept()) == list(BY_NAME)
    for name, rows in kept().items():
        assert rows, name
        # A number that cannot agree says so, and a disagreement says why.
        assert all(row["published"] or row["agrees"] is None for row in rows)
        assert all(row["note"] for row in rows if row["agrees"] is False)


def test_the_page_says_what_is_kept():
    assert page.text() == page.PAGE.read_text(encoding="utf-8")


def test_the_page_holds_every_row():
    # Notes are broken into lines.
    written = " ".join(page.PAGE.read_text(encoding="utf-8").split())
    for row in sum(kept().values(), []):
        assert f"| {row['what']} | " in written and row["note"] in written
    assert written.count("**no**") == sum(row["agrees"] is False for row in sum(kept().values(), []))


@pytest.mark.parametrize("name", QUICK)
def test_computed_again_it_is_the_same(name, request):
    same(recomputed(name, request), kept()[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_simulated_again_it_is_the_same(name, request):
    same(recomputed(name, request), kept()[name])


def test_a_change_is_noticed():
    rows = kept()["spa.scale"]
    changed = json.loads(json.dumps(rows))
    same(rows, changed)
    for key, value in (("agrees", False), ("ours", "0"), ("values", [1.0]), ("what", "else")):
        with pytest.raises(AssertionError):
            same(rows, [changed[0] | {key: value}, *changed[1:]])
    with pytest.raises(AssertionError):
        same(rows, changed[:-1])


def test_what_agrees_means():
    assert rounds_to(0.6858, 0.69, 2) and not rounds_to(0.6844, 0.69, 2) and rounds_to(0.685, 0.69, 2)
    assert within(487, 2, 501, 23) and not within(622, 5, 866, 9)
    assert within(70, 0, 70, 0) and not within(71, 0, 70, 0)
    assert [decimals(value, 2) for value in (0.5, -0.25, 1.0, 10.25)] == [".50", "-.25", "1.00", "10.25"]
    row = Row("Table 1", "x", "", "inf", "arithmetic", None, "", (float("inf"), 0.1234567891234))
    assert plain(row)["values"] == [None, 0.123456789]


def test_holms_steps_are_undone():
    """Of p-values at either end of their bands, the adjusted ones have the stars that the bands were made for."""
    from analysis.stats.multiplicity import holm, pvalue_stars

    for marks in (["*", "***", "***", "***", ""], ["***", "***", "", "", "*"], ["", "", ""], ["**", "*", ""]):
        for end in (1e-9, 1 - 1e-9):
            bands = [pvalue_band(marks, mark) for mark in marks]
            # Within equal stars only the widest band is known, so all of them get what the strictest step allows.
            found = [low + end * ((high if mark else 1) - low) for (low, high), mark in zip(bands, marks, strict=True)]
            strict = [
                p if mark == "" else min(p, BANDS[mark][1] / len(marks) * (1 - 1e-9)) if marks.count(mark) > 1 else p
                for p, mark in zip(found, marks, strict=True)
            ]
            assert [pvalue_stars(p) for p in holm(strict)] == marks
