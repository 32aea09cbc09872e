"""The rank sets of equal systems, as they were measured in whole studies of each protocol."""

from tools.proofs.calibration import rank_sets


def test_rank_sets_about_people_and_prompts_keep_their_level_in_every_measured_cell():
    rows = rank_sets.stored()
    assert set(rows) <= {cell.name for cell in rank_sets.CELLS} and len(rows) >= 15
    too_many = {
        name: row["excludes_equality"]
        for name, row in rows.items()
        if row["excludes_equality"] > rank_sets.most(row["studies"])
    }
    assert too_many == {}
    assert sum(row["studies"] == 2000 for row in rows.values()) >= 11
    assert {row["protocol"] for row in rows.values()} == {*rank_sets.VALUES, "spa", "board"}


def test_the_cells_are_hard_enough_to_show_sets_that_take_prompts_as_fixed():
    for protocol in (*rank_sets.VALUES, "spa", "board"):
        own = [row for row in rank_sets.stored().values() if row["protocol"] == protocol]
        assert any(row["people_only"] > 2 * rank_sets.most(row["studies"]) for row in own), protocol


def test_a_cell_gives_the_same_numbers_again():
    cell = rank_sets.CELLS[0]
    assert rank_sets.measured(cell, 5) == rank_sets.measured(cell, 5)
