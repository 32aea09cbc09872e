"""The lines of ready-made batches."""

from tests import builders
from tests.messages.importers.scenarios import batches, brings, file, second_arm
from tests.messages.lines import only_informs
from tests.studies.imports.files import lines, wide


def two_sections(study):
    builders.add_rating(study, position=2, m=2)


IMPORTERS = {
    "the arm … does not see section": batches(
        [wide("b", "p1", ada="a", bo="b") | {"arm": "second"}],
        second_arm,
        lambda s: s.sections.get().arms.set(s.arms.filter(name="all")),
    ),
    "occurs twice for … in batch": batches(
        [
            {"batch": "b", "prompt_key": "p1", "prompt_text": "P", "system": "ada", "text": "a", "sample": n}
            for n in (0, 1)
        ]
    ),
    "the arm … does not see ….": batches(
        [wide("b", "p1", ada="a", bo="b")], lambda s: s.arms.get().systems.set(s.systems.filter(name="ada"))
    ),
    "The study has no section": file(lines([wide("b", "p1", ada="a")]), "t.jsonl", makes_batches=True),
    "is missing: several": batches([wide("b", "p1", ada="a")], two_sections),
    "no section … draws": batches([wide("b", "p1", ada="a") | {"section": 7}]),
    "the study has no arm “…”; it has ….": batches([wide("b", "p1", ada="a") | {"arm": "x"}]),
    "batch … has the arm": batches(
        [wide("b", "p1", ada="a") | {"arm": "all"}, wide("b", "p2", ada="a") | {"arm": "second"}], second_arm
    ),
    "_batch: “…” and “…” differ": batches([wide("b", "p1", ada="a"), wide("B", "p2", ada="a")]),
    "is missing; the study has …: ….": batches([wide("b", "p1", ada="a")], second_arm),
    "is missing; the study has none": batches([wide("b", "p1", ada="a")], lambda s: s.arms.all().delete()),
    "is given in some": batches([wide("b", "p1", ada="a"), wide("b", "p2", 1, ada="a")]),
    "place … of batch": batches([wide("b", "p1", 1, ada="a"), wide("b", "p2", 1, ada="a")]),
    "differs from “…” of the study": batches(
        [wide("B", "p1", ada="a", bo="b")],
        brings(lines([wide("b", "p1", ada="a", bo="b")]), "t.jsonl", makes_batches=True),
    ),
    "batch … has the prompt": batches(
        [{"batch": "b", "prompt_key": "p1", "prompt_text": "P", "outputs": {"ada": None}}]
    ),
    "batch … already has … with the same": batches(
        [wide("b", "p1", 1, ada="a", bo="b"), wide("b", "p1", 2, ada="a", bo="b")]
    ),
    "A batch contains": only_informs(
        batches([wide("b", "p1", 1, ada="a", bo="b"), wide("b", "p1", 2, ada="c", bo="d")])
    ),
    "Items of ready-made": only_informs(batches([wide("b", "p1", ada="a")])),
    "Ready-made batches have more or fewer": only_informs(batches([wide("b", "p1", ada="a", bo="b")])),
    "Ready-made batches have no items": only_informs(
        batches([wide("b", "p1", ada="a", bo="b") | {"section": 1}], two_sections)
    ),
}
