"""The lines of ready-made batches."""

from tests import builders
from tests.messages.importers.scenarios import TABLES, batches, brings, file, second_arm
from tests.messages.lines import FILE, NOTHING
from tests.studies.imports.files import lines, wide


def two_sections(study):
    builders.add_rating(study, position=2, m=2)


LINES = {
    f"{TABLES}:add": [
        (
            "the arm second does not see section 1",
            FILE,
            batches(
                [wide("b", "p1", ada="a", bo="b") | {"arm": "second"}],
                second_arm,
                lambda s: s.sections.get().arms.set(s.arms.filter(name="all")),
            ),
        ),
        (
            "ada occurs twice for p1 in batch b",
            "number its places in a column “position”",
            batches(
                [
                    {"batch": "b", "prompt_key": "p1", "prompt_text": "P", "system": "ada", "text": "a", "sample": n}
                    for n in (0, 1)
                ]
            ),
        ),
        (
            "the arm all does not see bo",
            FILE,
            batches(
                [wide("b", "p1", ada="a", bo="b")], lambda s: s.arms.get().systems.set(s.systems.filter(name="ada"))
            ),
        ),
    ],
    f"{TABLES}:_section": [
        (
            "The study has no section that shows items",
            "add one before you import ready-made batches",
            file(lines([wide("b", "p1", ada="a")]), "t.jsonl", makes_batches=True),
        ),
        ("is missing: several sections show items (1, 2)", FILE, batches([wide("b", "p1", ada="a")], two_sections)),
        ("no section 7 draws items; sections that do: 1", FILE, batches([wide("b", "p1", ada="a") | {"section": 7}])),
    ],
    f"{TABLES}:_batch": [
        ("the study has no arm “x”; it has all", FILE, batches([wide("b", "p1", ada="a") | {"arm": "x"}])),
        (
            "batch b has the arm all in row 1",
            FILE,
            batches(
                [wide("b", "p1", ada="a") | {"arm": "all"}, wide("b", "p2", ada="a") | {"arm": "second"}], second_arm
            ),
        ),
        ("“B” and “b” differ only in case", FILE, batches([wide("b", "p1", ada="a"), wide("B", "p2", ada="a")])),
        ("is missing; the study has 2", FILE, batches([wide("b", "p1", ada="a")], second_arm)),
        ("is missing; the study has none", FILE, batches([wide("b", "p1", ada="a")], lambda s: s.arms.all().delete())),
    ],
    f"{TABLES}:_placement": [
        (
            "is given in some rows of batch b and not in others (row 1)",
            FILE,
            batches([wide("b", "p1", ada="a"), wide("b", "p2", 1, ada="a")]),
        ),
        (
            "place 1 of batch b already has the prompt p1 (row 1)",
            FILE,
            batches([wide("b", "p1", 1, ada="a"), wide("b", "p2", 1, ada="a")]),
        ),
    ],
    f"{TABLES}:check_and_count": [
        (
            "“B” differs from “b” of the study only in case",
            FILE,
            batches(
                [wide("B", "p1", ada="a", bo="b")],
                brings(lines([wide("b", "p1", ada="a", bo="b")]), "t.jsonl", makes_batches=True),
            ),
        )
    ],
    f"{TABLES}:_check_items": [
        (
            "batch b has the prompt p1 without any output",
            FILE,
            batches([{"batch": "b", "prompt_key": "p1", "prompt_text": "P", "outputs": {"ada": None}}]),
        ),
        (
            "batch b already has p1 with the same outputs (row 1)",
            FILE,
            batches([wide("b", "p1", 1, ada="a", bo="b"), wide("b", "p1", 2, ada="a", bo="b")]),
        ),
    ],
    f"{TABLES}:_add_findings": [
        (
            "A batch contains the same prompt more than once: its annotator sees it again. b: p1, 2 times",
            NOTHING,
            batches([wide("b", "p1", 1, ada="a", bo="b"), wide("b", "p1", 2, ada="c", bo="d")]),
        ),
        (
            "Items of ready-made batches lack the output of a system. b: p1 lacks bo",
            NOTHING,
            batches([wide("b", "p1", ada="a")]),
        ),
        (
            "Ready-made batches have more or fewer items than their section's m. b: 1 in section 1, whose m is 2",
            NOTHING,
            batches([wide("b", "p1", ada="a", bo="b")]),
        ),
        (
            "Ready-made batches have no items for a section that shows items. b: nothing in section 2",
            NOTHING,
            batches([wide("b", "p1", ada="a", bo="b") | {"section": 1}], two_sections),
        ),
    ],
}
