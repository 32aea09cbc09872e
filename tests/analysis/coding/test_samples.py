"""Samples of explanations and work to be coded, and what is stored of codings."""

import pytest
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from analysis.coding import samples
from analysis.coding.codebook import (
    EXPLANATIONS_CODEBOOK,
    REJECTIONS_CODEBOOK,
    Codebook,
    CodebookRefused,
    parse_codebook,
)
from analysis.coding.models import Coding, CodingItem, CodingSample
from analysis.coding.samples import codable_explanation_responses, explanations_shown_to_coder, read_coded_samples
from analysis.metrics.calibrated.run import price_of_label
from analysis.report.screening.run import screen_annotators
from annotators.models import Assignment, Response
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from studies.models import Item, Study
from studies.services.lifecycle import ActionRefused
from tests.analysis.coding.coded import code_all, made, people, sample_of, tables
from tests.builders import humanlike_draft, user
from tests.messages.checklist.qualification import repeats_practice
from tests.samples import blocking

pytestmark = pytest.mark.django_db


@pytest.mark.slow
def test_a_sample_takes_one_explanation_of_so_many_annotators_of_each_arm(study, coders):
    sample = sample_of(study, coders, per_arm=3)
    items = list(sample.items.select_related("assignment__batch__arm", "response__question"))
    assert [item.number for item in items] == list(range(1, 7))
    arms = [item.assignment.batch.arm.condition for item in items]
    assert sorted(arms) == ["examples"] * 3 + ["none"] * 3 and arms != sorted(arms)
    assert len({item.assignment_id for item in items}) == 6
    assert {item.response.question.key for item in items} <= {"why", "change"}
    again = sample_of(study, coders, per_arm=3)
    assert again.number == 2 and [i.response_id for i in again.items.all()] != [i.response_id for i in items]


def test_practice_and_people_who_left_are_not_sampled(study, coders):
    gone = Assignment.objects.filter(study=study).first()
    withdraw_annotator_and_erase_texts(gone)
    sample = sample_of(study, coders, per_arm=10)
    assert sample.items.count() == 7 and gone.pk not in sample.items.values_list("assignment", flat=True)
    assert {r.question.section.purpose for r in codable_explanation_responses(study, "live")} == {"live"}


def test_an_item_whose_truth_is_shown_is_in_no_sample_agreement_or_price(study, coders):
    """Answers to live questions about practice items, as in a live section that repeats the items of a training section."""
    QuerySet(Study).filter(pk=study.pk).update(reward="1.00")
    study.refresh_from_db()
    sampled = codable_explanation_responses(study, "live").first()
    item, assignment = sampled.item, sampled.assignment
    question = item.section.questions.get(key="source")

    def found():
        stored = screen_annotators(study, "live", None).result["rows"]
        shown = explanations_shown_to_coder(
            CodingSample(study=study, kind="rejections", origin="live"), CodingItem(assignment=assignment)
        )
        is_codable = codable_explanation_responses(study, "live").filter(item=item).exists()
        return is_codable, sum(row["labels"] for row in stored), len(shown), price_of_label(study, question)

    is_codable, n_labels, n_shown, price = found()
    n_about_item = Response.objects.filter(item=item, question=question).count()
    assert is_codable and n_about_item
    QuerySet(Item).filter(pk=item.pk).update(kind=Item.Kind.PRACTICE)
    n_answers = round(8 / price)
    assert found() == (False, n_labels - n_about_item, n_shown - 1, 8 / (n_answers - n_about_item))


def test_a_live_section_cannot_repeat_practice_items():
    study = humanlike_draft(conditions=("examples",), domains=("news",))
    assert not blocking(study)
    repeats_practice(study)
    assert any("repeats practice items" in text for text in blocking(study))


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda s, c: sample_of(s, c[:1]), "two different coders"),
        (lambda s, c: sample_of(s, [c[0], c[0]]), "two different"),
        (lambda s, c: sample_of(s, c, rule="third"), "three different"),
        (lambda s, c: sample_of(s, [c[0], user("sven")]), "sven is not a coder"),
        (lambda s, c: sample_of(s, c, origin="robot"), "has an explanation to code"),
    ],
)
def test_what_cannot_be_sampled_is_refused_with_words(study, coders, change, words):
    with pytest.raises(ActionRefused, match=words):
        change(study, coders)
    assert not CodingSample.objects.exists()


def test_a_codebook_is_read_from_lines_and_written_back():
    assert parse_codebook(EXPLANATIONS_CODEBOOK.as_lines(), ["Null"]) == EXPLANATIONS_CODEBOOK
    assert len(EXPLANATIONS_CODEBOOK.labels) == 11 and list(EXPLANATIONS_CODEBOOK.categories) == [
        "Form",
        "Content",
        "Machine capabilities",
        "Null",
    ]
    assert Codebook.from_json(REJECTIONS_CODEBOOK.as_json()) == REJECTIONS_CODEBOOK


@pytest.mark.parametrize(
    "lines, left_out, words",
    [
        (["Form | grammar"], [], "Line 1 is not a label. Write category"),
        (["Form | Bad key | Grammar"], [], "Line 1: the key"),
        (["Form | a | A", "Form | a | B"], [], "Line 2: the key “a” is used twice"),
        ([], [], "at least one line"),
        (["Form | a | A"], ["Null"], "no label has the category “Null”"),
        (["Form | a | A"], ["Form"], "every category is listed"),
        ([f"Form | a{n} | A" for n in range(61)], [], "at most 60"),
    ],
)
def test_what_is_no_codebook_is_refused_with_its_line(lines, left_out, words):
    with pytest.raises(CodebookRefused, match=words):
        parse_codebook(lines, left_out)


def test_no_label_applies_is_an_answer_and_not_coded_is_none(study, coders):
    sample = sample_of(study, coders)
    first, second = sample.items.all()[:2]
    samples.store_coding(first, coders[0], [], True, 0)
    with pytest.raises(ActionRefused, match="at least one label, or choose that no label applies"):
        samples.store_coding(second, coders[0], [], False, 0)
    with pytest.raises(ActionRefused, match="not both"):
        samples.store_coding(second, coders[0], ["grammar"], True, 0)
    with pytest.raises(ActionRefused, match="no label “nonsense”"):
        samples.store_coding(second, coders[0], ["nonsense"], False, 0)
    said = samples.current_codings_by_item(sample)
    assert said[first.pk][1].labels == frozenset() and second.pk not in said
    with pytest.raises(IntegrityError), transaction.atomic():
        Coding.objects.create(item=second, coder=coders[0], labels="", is_none=False)


def test_thinking_again_adds_a_revision_and_two_windows_do_not_overwrite_each_other(study, coders):
    sample = sample_of(study, coders)
    item = sample.items.first()
    samples.store_coding(item, coders[0], ["genre", "grammar"], False, 0)
    assert samples.store_coding(item, coders[0], ["grammar", "genre"], False, 1) is None  # nothing new
    samples.store_coding(item, coders[0], ["intent"], False, 1)
    with pytest.raises(samples.CodingConflict):
        samples.store_coding(item, coders[0], ["vague"], False, 1)
    assert [(c.revision, c.labels) for c in item.codings.all()] == [(1, "grammar genre"), (2, "intent")]
    assert samples.current_codings_by_item(sample)[item.pk][1].labels == {"intent"}


def test_a_third_coder_sees_what_two_differ_on_and_decides(study, coders):
    third = people(study, "thea")[0]
    sample = sample_of(study, [*coders, third], rule="third")
    items = list(sample.items.all())
    code_all(sample, coders[0], lambda item: ["grammar"])
    code_all(sample, coders[1], lambda item: ["factuality"] if item in items[:2] else ["grammar"])
    assert [i.pk for i in samples.items_of_seat(sample, 3, samples.current_codings_by_item(sample))] == [
        i.pk for i in items[:2]
    ]
    samples.store_coding(items[0], third, ["factuality"], False, 0)
    (read,) = read_coded_samples(study, ["live"])
    by_number = {one.assignment: one for one in read.items}
    assert read.counted_codings(by_number[items[0].assignment_id]) == [{"factuality"}]
    assert read.counted_codings(by_number[items[1].assignment_id]) is None
    assert read.counted_codings(by_number[items[5].assignment_id]) == [{"grammar"}]
    note = tables(made(study))["coding_categories_1"]["note"]
    assert note.endswith("1 item waits for the third coder and is not counted.") and "a third coder decides" in note
