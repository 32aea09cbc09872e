"""Ready-made batches hold what their file says, in its order."""

import pytest

from studies.models import Arm, Study
from tests.builders import launched
from tests.studies.imports.files import contents, lines, rows_of, sound, table, texts, wide

BATCHES = [
    wide("r1", "p1", ada="A1", bo="B1"),
    wide("r1", "p2", ada="A2", bo="B2"),
    wide("r2", "p1", ada="A1 anew", bo="B1"),
    wide("r2", "p3", ada="A3", bo="B3"),
]


def test_ready_made_batches_hold_what_the_file_says(spa, put):
    report = sound(put(lines(BATCHES), "b.jsonl", makes_batches=True))
    assert (report.counts["batches"].new, report.counts["outputs"].new) == (2, 7)
    assert contents(spa) == {
        "r1": [("p1", "A1", "B1"), ("p2", "A2", "B2")],
        "r2": [("p1", "A1 anew", "B1"), ("p3", "A3", "B3")],
    }
    assert list(spa.batches.values_list("number", "key", "origin", "wanted")) == [
        (0, "r1", "imported", 1),
        (1, "r2", "imported", 1),
    ]
    # The same prompt with another output is another sample; the same output is the same.
    assert texts(spa)["ada", "p1", 1] == "A1 anew" and ("bo", "p1", 1) not in texts(spa)
    before = rows_of(spa)
    assert not sound(put(lines(BATCHES), "b.jsonl", makes_batches=True)).has_changes
    assert rows_of(spa) == before


def test_ready_made_batches_in_the_long_shape_are_the_same(spa, put, study):
    rows = [
        {
            "batch": row["batch"],
            "prompt_key": row["prompt_key"],
            "prompt_text": row["prompt_text"],
            "system": system,
            "text": text,
        }
        for row in BATCHES
        for system, text in row["outputs"].items()
    ]
    sound(put(table(rows), makes_batches=True))
    assert contents(spa)["r2"] == [("p1", "A1 anew", "B1"), ("p3", "A3", "B3")]
    assert not sound(put(lines(BATCHES), "b.jsonl", makes_batches=True)).has_changes


def test_positions_order_the_items(spa, put):
    rows = [wide("r1", "p1", 2, ada="A", bo="B"), wide("r1", "p2", 1, ada="C", bo="D")]
    sound(put(lines(rows), "b.jsonl", makes_batches=True))
    assert [place[0] for place in contents(spa)["r1"]] == ["p2", "p1"]


def test_a_prompt_twice_in_one_batch_is_a_warning(spa, put):
    rows = [wide("r1", "p1", ada="A", bo="B"), wide("r1", "p1", ada="A again", bo="B")]
    report = sound(put(lines(rows), "b.jsonl", makes_batches=True))
    assert [f.examples for f in report.findings if f.kind == "prompt_twice_in_batch"] == [("r1: p1, 2 times",)]
    assert contents(spa)["r1"] == [("p1", "A", "B"), ("p1", "A again", "B")]


@pytest.mark.parametrize(
    ("rows", "row", "column", "said"),
    [
        ([wide("r1", "p1", ada="A", bo="B")] * 2, 2, "prompt_key", "already has p1 with the same outputs (row 1)"),
        ([wide("", "p1", ada="A", bo="B")], 1, "batch", "must not be empty"),
        ([{k: v for k, v in BATCHES[0].items() if k != "batch"}], 1, "batch", "you ticked"),
        ([wide("r1", "p1", 1, ada="A", bo="B"), wide("r1", "p2", ada="C", bo="D")], 2, "position", "in others (row 1)"),
        (
            [wide("r1", "p1", 1, ada="A", bo="B"), wide("r1", "p2", 1, ada="C", bo="D")],
            2,
            "position",
            "already has the prompt p1 (row 1)",
        ),
        ([wide("r1", "p1", ada="A", bo="B") | {"arm": "none"}], 1, "arm", "no arm “none”"),
        ([wide("r1", "p1", ada="A", bo="B") | {"section": 9}], 1, "section", "no section 9"),
        ([wide("r1", "p1", ada="A", bo="B"), wide("R1", "p2", ada="A", bo="B")], 2, "batch", "only in case"),
        ([wide("r1", "p1", "x", ada="A", bo="B")], 1, "position", "whole number"),
        ([wide("r1", "p1")], 1, None, "without any output"),
    ],
)
def test_a_batch_that_cannot_be_is_refused(spa, put, rows, row, column, said):
    before = rows_of(spa)
    report = put(lines(rows), "b.jsonl", makes_batches=True)
    first = report.problems.first[0]
    assert (first.row, first.column) == (row, column) and said in first.text, list(report.problems)
    assert rows_of(spa) == before


def test_batches_need_a_section_that_shows_items(study, put):
    report = put(lines(BATCHES), "b.jsonl", makes_batches=True)
    assert [str(problem) for problem in report.problems] == [
        "The study has no section that shows items: add one before you import ready-made batches."
    ]


def test_where_several_arms_are_a_batch_names_its_own(spa, put):
    Arm.objects.create(study=spa, name="second")
    assert "is missing; the study has 2: all, second" in str(
        put(lines(BATCHES), "b.jsonl", makes_batches=True).problems.first[0]
    )
    sound(put(lines([row | {"arm": "second"} for row in BATCHES]), "b.jsonl", makes_batches=True))
    assert set(spa.batches.values_list("arm__name", flat=True)) == {"second"}


def test_missing_outputs_and_odd_sizes_are_warnings(spa, put):
    rows = [wide("r1", "p1", ada="A", bo="B"), wide("r1", "p2", ada="A2"), wide("r2", "p1", ada="A", bo="B")]
    found = {f.kind: f.examples for f in sound(put(lines(rows), "b.jsonl", makes_batches=True)).findings}
    assert found["item_incomplete"] == ("r1: p2 lacks bo",)
    assert found["batch_size"] == ("r2: 1 in section 1, whose m is 2",)


def test_a_changed_batch_is_replaced_without_leaving_gaps(spa, put):
    sound(put(lines(BATCHES), "b.jsonl", makes_batches=True))
    changed = [wide("r1", "p4", ada="A4", bo="B4"), *BATCHES[1:]]
    report = put(lines(changed), "b.jsonl", makes_batches=True)
    assert report.problems.count == 1 and "batch r1 has other content in the study" in str(report.problems.first[0])
    sound(put(lines(changed), "b.jsonl", makes_batches=True, replaces_changed=True))
    assert contents(spa)["r1"] == [("p4", "A4", "B4"), ("p2", "A2", "B2")]
    assert sorted(spa.items.values_list("number", flat=True)) == [1, 2, 3, 4]
    assert spa.batches.count() == 2
    assert not sound(put(lines(changed), "b.jsonl", makes_batches=True)).has_changes


def test_a_replaced_batch_with_fewer_items_closes_the_gap(spa, put):
    sound(put(lines(BATCHES), "b.jsonl", makes_batches=True))
    sound(put(lines(BATCHES[1:]), "b.jsonl", makes_batches=True, replaces_changed=True))
    assert sorted(spa.items.values_list("number", flat=True)) == [1, 2, 3]


def test_a_study_of_ready_made_batches_can_be_launched_and_read(spa, put):
    sound(put(lines(BATCHES), "b.jsonl", makes_batches=True))
    Study.objects.filter(pk=spa.pk).update(public_title="T", contact="c", target_n=2, minutes=5)
    launched(Study.objects.get(pk=spa.pk))
    assert Study.objects.get(pk=spa.pk).open_to == 2
