"""The codebook of exports says what the columns mean in each protocol, as its rows show."""

from decimal import Decimal
from unittest.mock import patch

import pytest

from analysis.data.export_codebook import build_export_codebook, build_export_codebook_markdown
from analysis.data.flat_rows import RESPONSE_COLUMNS, Selection
from annotators.pages import form_data, record
from studies.models import Exposure, Study
from studies.protocols import REGISTRY
from studies.protocols.base.fields import parse_scale
from tests.builders import add_marks, add_ranking, add_relative, draft_study, launched
from tests.players import answered, claimed, form, open_page, submitted
from tests.samples import sample_draft

from .exported import export, json_rows

pytestmark = pytest.mark.django_db


def rows_of(study: Study) -> list[dict]:
    return json_rows(export("responses", "jsonl", Selection(study)))


def meanings_in(study: Study, slug: str) -> dict[str, str]:
    return build_export_codebook(study)["protocols"].get(slug, {})


@pytest.mark.parametrize("slug", sorted(REGISTRY))
def test_columns_that_differ_from_their_general_meaning_are_explained(slug):
    study = launched(sample_draft(slug))
    stored = []

    def build_new_responses(assignment_id, asks, form):
        rows = build(assignment_id, asks, form)
        stored.extend((asks[row.slot], form.typed.get(row.slot, ""), row) for row in rows)
        return rows

    build = form_data.build_new_responses
    with patch.object(record, "build_new_responses", build_new_responses):
        submitted(study, "p")
    assert stored
    meanings = meanings_in(study, slug)
    assert set(meanings) <= {column.name for column in RESPONSE_COLUMNS}
    assert all(meaning.endswith(".") for meaning in meanings.values())
    scales = {one.pk: parse_scale(one.scale) for section in study.sections.all() for one in section.questions.all()}
    for ask, typed, row in stored:
        options = {option.key for option in scales[row.question_id].options}
        needed = {
            "value": row.value is not None and (not isinstance(typed, str) or Decimal(typed or 0) != row.value),
            # The output that an answer is about has its letter in the name of the field.
            "system": row.exposure_id and not row.slot.split(".p")[0].endswith(f".{ask.label}"),
            "choice": row.choice and row.choice not in options,
            "part": row.part,
        }
        missing = {name for name, is_needed in needed.items() if is_needed} - set(meanings)
        assert not missing, (row, missing)


def test_the_value_of_a_ranking_is_its_mid_rank():
    study = draft_study(prompts=4, consent="", instructions="")
    add_ranking(study, m=1)
    assignment = claimed(launched(study), "p")
    _, page, asks = open_page(assignment)
    answered(assignment, page.key, **dict(zip(asks, ("1", "1", "2"), strict=True)))
    assert sorted((row["value"], row["text"]) for row in rows_of(study)) == [(1.5, "1"), (1.5, "1"), (3, "2")]
    meanings = meanings_in(study, "ranking")
    assert "mid-rank" in meanings["value"] and "typed" in meanings["text"]
    assert f"| ranking | value | {meanings['value']} |" in build_export_codebook_markdown(study)


@pytest.mark.usefixtures("same_orders")
def test_the_system_of_a_relative_answer_was_shown_first():
    study = draft_study(prompts=12, consent="", instructions="")
    add_relative(study, m=6)
    assignment = claimed(launched(study), "p")
    systems = dict(Exposure.objects.values_list("pk", "output__system__name"))
    first = []
    while assignment.submitted_at is None:
        _, page, asks = open_page(assignment)
        for item in page.items:
            (label, exposure), _other = item.exposures
            first.append((systems[exposure], label))
        answered(assignment, page.key, **dict.fromkeys(asks, "5"))
        assignment.refresh_from_db()
    rows = rows_of(study)
    assert [(row["system"], row["label"], row["value"]) for row in rows] == [(*one, 5) for one in first]
    assert len(set(first)) > 1 and "shown first" in meanings_in(study, "relative")["system"]


def test_the_rows_of_error_marks():
    study = draft_study(systems=("alpha",), prompts=4, consent="", instructions="")
    add_marks(study, m=2)
    assignment = claimed(launched(study), "p")
    for number in range(2):
        _, page, asks = open_page(assignment)
        none, mark, score = (
            next(slot for slot, ask in asks.items() if is_it(slot, ask))
            for is_it in (
                lambda slot, ask: slot.endswith(".p0"),
                lambda slot, ask: slot.endswith(".p1"),
                lambda slot, ask: ask.field.kind == "number",
            )
        )
        book = asks[mark].field.codebook
        category, severity = book.categories[0], book.severities[-1]
        marked = {
            f"{mark}.where": "1",
            f"{mark}.category": category.key,
            f"{mark}.severity": severity.key,
            f"{mark}.words": "0-2",
        }
        sent = form(**({none: "1"} if number else marked), **{score: "70"})
        assert record.record_page_answers(assignment, page.key, sent).sent is None
        assignment.refresh_from_db()
    by_question = [(row["question"], row["choice"], row["part"], row["value"]) for row in rows_of(study)]
    assert by_question == [
        ("errors", category.key, "1:0-2", float(severity.weight)),
        ("score", None, None, 70),
        ("errors", None, None, 0),
        ("score", None, None, 70),
    ]
    assert {"value", "choice", "part"} <= set(meanings_in(study, "marks"))
