"""The rank sets of equal systems, as they were measured in whole studies of each protocol."""

from tests import ROOT
from tools.proofs.calibration import rank_sets

# Rankings of six systems over seven prompts: 651 of 10,000 studies, where 647 would be 6 % and two standard errors. The page says so.
ABOVE = "ranking, 40 people, 7 of 7 prompts, 6 systems"


def test_rank_sets_about_people_and_prompts_keep_their_level():
    rows = rank_sets.stored()
    assert set(rows) == {cell.name for cell in rank_sets.CELLS}
    assert {row["studies"] for row in rows.values()} == {2000, 10_000} and rows[ABOVE]["studies"] == 10_000
    too_many = {
        name: row["excludes_equality"]
        for name, row in rows.items()
        if row["excludes_equality"] > rank_sets.most(row["studies"])
    }
    assert too_many == {ABOVE: 651}
    said = (ROOT / "templates/docs/explanation/statistics.md").read_text(encoding="utf-8")
    assert "6.5 % of studies" in said and round(too_many[ABOVE] / 100, 1) == 6.5
    for protocol in (*rank_sets.VALUES, "spa", "board"):
        own = [row for row in rows.values() if row["protocol"] == protocol]
        n, share = 2000 * len(own), sum(row["excludes_equality"] / row["studies"] for row in own) / len(own)
        assert n * share <= rank_sets.most(n), protocol


def test_whole_studies_of_equal_systems_hardly_show_a_winner_in_the_table():
    rows = rank_sets.stored("reports")
    assert set(rows) == {cell.name for cell in rank_sets.REPORTED} and {row["studies"] for row in rows.values()} == {60}
    n = sum(row["studies"] for row in rows.values())
    assert sum(row["excludes_equality"] for row in rows.values()) <= rank_sets.most(n)
    # A sentence compares chances, the table means: they may differ, but rarely.
    assert sum(row["beside_an_open_sentence"] for row in rows.values()) <= 0.02 * n


def test_the_cells_are_hard_enough_to_show_sets_that_take_prompts_as_fixed():
    for protocol in (*rank_sets.VALUES, "spa", "board"):
        own = [row for row in rank_sets.stored().values() if row["protocol"] == protocol]
        assert any(row["people_only"] > 2 * rank_sets.most(row["studies"]) for row in own), protocol


def test_a_cell_gives_the_same_numbers_again():
    cell = rank_sets.CELLS[0]
    assert rank_sets.measured(cell, 5) == rank_sets.measured(cell, 5)
