"""Test questions: what is made from a study's texts, and what a batch gets."""

from collections import Counter

import pytest
from django.db import IntegrityError, transaction

from studies.design.draw import BatchDraw, draw_batches
from studies.design.serialization import canonical_json, serialize_design
from studies.models import Arm, Expected, Exposure, Item, Output, Prompt, Question
from studies.protocols import UnfillableBatch
from studies.services.copying import clone_study
from studies.services.known_answers import (
    GivenTestQuestion,
    delete_test_question_and_test_runs,
    make_test_questions_and_delete_test_runs,
    store_given_test_questions_and_delete_test_runs,
)
from studies.services.known_answers import KnownAnswerRequest as Request
from studies.services.lifecycle import ActionRefused
from tests import builders
from tests.known_answers import draft, make

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


@pytest.mark.parametrize("protocol", ["rating", "two_choice", "relative"])
def test_each_type_shows_a_planted_text_and_knows_its_answer(protocol):
    study, section, researcher = draft(protocol)
    made = make(study, section, researcher)
    assert made == {"positive": 6, "negative": 6, "damaged": 6}
    human, test = study.systems.get(name="human"), study.systems.get(reference="test")
    for item in section.items.filter(kind="test").prefetch_related("exposures__output"):
        exposures = list(item.exposures.all())
        assert len(exposures) == 2
        (known,) = Expected.objects.filter(item=item)
        if protocol == "rating":
            planted, is_good = known.about, item.test_type == "positive"
            assert (known.low, known.high) == ((3, 5) if is_good else (1, 3))
        else:
            is_good = item.test_type == "positive"
            planted = next(e for e in exposures if (e.pk == known.exposure_id) == is_good)
        output = planted.output
        match item.test_type:
            case "positive":
                assert (output.system_id, output.prompt_id) == (human.pk, item.prompt_id)
            case "negative":
                assert output.system_id == human.pk and output.prompt_id != item.prompt_id
            case _:
                assert output.system_id == test.pk or output.prompt_id != item.prompt_id


def test_a_negative_text_has_the_length_of_the_text_that_it_replaces():
    study, section, researcher = draft("rating")
    make(study, section, researcher, negative=20)
    right = {
        prompt: len(text.split())
        for prompt, text in Output.objects.filter(system__study=study, system__name="human").values_list(
            "prompt_id", "text"
        )
    }
    for known in Expected.objects.filter(item__section=section).select_related("item", "about__output"):
        assert abs(len(known.about.output.text.split()) - right[known.item.prompt_id]) <= 1


def test_shuffled_words_are_the_words_of_a_text_of_the_study():
    study, section, researcher = draft("rating")
    request = Request(section.questions.first(), {"damaged": 8}, damages=("shuffled",))
    make_test_questions_and_delete_test_runs(section, request, by=researcher)
    originals = {
        frozenset(Counter(text.split()).items()): text
        for text in Output.objects.filter(system__name="alpha").values_list("text", flat=True)
    } | {
        frozenset(Counter(text.split()).items()): text
        for text in Output.objects.filter(system__name="beta").values_list("text", flat=True)
    }
    damaged = Output.objects.filter(system__reference="test")
    assert damaged.count() == 8
    for output in damaged:
        original = originals[frozenset(Counter(output.text.split()).items())]
        assert original != output.text


def test_batches_get_their_share_and_each_batch_of_ten_at_least_one():
    study, section, researcher = draft("rating", prompts=60)
    make(study, section, researcher, positive=20, negative=20)
    types = dict(section.items.filter(kind="test").values_list("pk", "test_type"))
    drawn = draw_batches(study, 0, 40)
    per_batch = [[types[item.item] for _, item in batch.items if item.item] for batch in drawn]
    assert min(map(len, per_batch)) >= 1
    assert all(sum(1 for _, item in batch.items if item.item is None) == 10 for batch in drawn)
    counts = Counter(kind for batch in per_batch for kind in batch)
    # A share of .05 of 400 live items is 20; single batches without any get one more.
    assert 20 <= counts["positive"] <= 32 and 20 <= counts["negative"] <= 32
    shown = Counter(item.item for batch in drawn for _, item in batch.items if item.item)
    assert max(shown.values()) - min(shown[pk] for pk in types) <= 2


def test_a_batch_of_single_outputs_gets_both_types():
    study, section, researcher = draft("rating", prompts=60, systems=("alpha",), positive_share=0.1, negative_share=0.1)
    make(study, section, researcher, positive=20, negative=20)
    types = dict(section.items.filter(kind="test").values_list("pk", "test_type"))
    for batch in draw_batches(study, 0, 10):
        assert sorted(types[item.item] for _, item in batch.items if item.item) == ["negative", "positive"]


def test_a_page_with_one_of_several_systems_gets_test_questions_with_one_text():
    study, section, researcher = draft("rating", prompts=60, shown="one", positive_share=0.1, negative_share=0.1)
    assert make(study, section, researcher) == {"positive": 6, "negative": 6, "damaged": 6}
    given = GivenTestQuestion(1, study.prompts.order_by("key").first().key, "Please choose 2.", 2.0, 2.0)
    assert (
        store_given_test_questions_and_delete_test_runs(section, section.questions.get(), [given], by=researcher) == 1
    )
    items = section.items.filter(kind="test")
    assert set(Counter(Exposure.objects.filter(item__in=items).values_list("item", flat=True)).values()) == {1}
    assert not Expected.objects.filter(item__in=items, about__isnull=False).exists()
    types = dict(items.values_list("pk", "test_type"))
    for batch in draw_batches(study, 0, 10):
        kinds = [types[item.item] for _, item in batch.items if item.item]
        assert len(kinds) == 2 and kinds.count("positive") == 1


def test_a_batch_shows_no_prompt_twice_not_even_behind_a_negative_text():
    study, section, researcher = draft("rating", prompts=30)
    make(study, section, researcher, positive=15, negative=15)
    test_prompts = {}
    for item, prompt, own in Exposure.objects.filter(item__section=section).values_list(
        "item_id", "item__prompt_id", "output__prompt_id"
    ):
        test_prompts.setdefault(item, set()).update({prompt, own})
    for batch in draw_batches(study, 0, 30):
        live = {item.prompt for _, item in batch.items if item.item is None}
        for _, item in batch.items:
            if item.item:
                assert not live & test_prompts[item.item]
                live |= test_prompts[item.item]


def test_the_draw_does_not_depend_on_where_it_begins():
    study, section, researcher = draft("relative")
    make(study, section, researcher)
    assert draw_batches(study, 0, 12)[5:] == draw_batches(study, 5, 7)


def test_too_few_prompts_for_test_questions_are_named():
    study, section, researcher = draft("rating", positive_share=0.3)
    make(study, section, researcher, positive=2)
    with pytest.raises(
        UnfillableBatch, match="no test question is left whose prompt is new to the batch.*Make more test"
    ):
        draw_batches(study, 0, 1)


def test_an_arm_gets_test_questions_with_its_own_systems():
    study, section, researcher = draft("rating", systems=("alpha", "beta", "gamma"))
    first = study.arms.get()
    first.systems.set(study.systems.filter(name__in=["alpha", "beta"]))
    second = Arm.objects.create(study=study, name="second")
    second.systems.set(study.systems.filter(name__in=["beta", "gamma"]))
    make(study, section, researcher, positive=10, negative=10)
    arm_systems = {arm.pk: set(arm.systems.values_list("pk", flat=True)) for arm in (first, second)}
    planted = set(Expected.objects.filter(item__section=section).values_list("about_id", flat=True))
    for batch in draw_batches(study, 0, 20):
        for _, item in batch.items:
            if item.item:
                own = Exposure.objects.filter(item=item.item).exclude(pk__in=planted)
                assert {e.output.system_id for e in own} <= arm_systems[batch.arm_id]


def test_made_up_texts_are_no_system_of_the_study():
    study, section, researcher = draft("two_choice")
    before = sorted(BatchDraw(study).systems[study.arms.get().pk])
    study.arms.get().systems.clear()
    everyone = sorted(study.systems.values_list("pk", flat=True))
    make(study, section, researcher, damaged=6)
    assert study.systems.filter(reference="test").count() == 1
    assert sorted(BatchDraw(study).systems[study.arms.get().pk]) == everyone != before
    assert set(study.systems.judged().values_list("pk", flat=True)) == set(everyone)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"counts": {}}, "No test question is requested"),
        ({"reference": None}, "need a reference system"),
        ({"damages": ("burnt",)}, "can be damaged in these ways: shuffled, truncated, other"),
        ({"counts": {"damaged": 1001}}, "at most 1000 test questions"),
    ],
)
def test_a_request_that_cannot_be_met_is_refused(change, text):
    study, section, researcher = draft("rating")
    options = {
        "question": section.questions.first(),
        "counts": {"positive": 2},
        "reference": study.systems.get(name="human"),
    } | change
    with pytest.raises(ActionRefused, match=text):
        make_test_questions_and_delete_test_runs(section, Request(**options), by=researcher)
    assert not section.items.exists()


def test_protocols_without_a_known_answer_are_refused():
    researcher = builders.user()
    study = builders.draft_study(owner=researcher)
    section = builders.add_spa(study)
    with pytest.raises(ActionRefused, match="This protocol cannot have test questions"):
        make_test_questions_and_delete_test_runs(
            section, Request(section.questions.first(), {"damaged": 1}), by=researcher
        )


def test_deleting_one_deletes_the_text_that_only_it_shows():
    study, section, researcher = draft("rating")
    request = Request(section.questions.first(), {"damaged": 3}, damages=("shuffled",))
    make_test_questions_and_delete_test_runs(section, request, by=researcher)
    delete_test_question_and_test_runs(section.items.filter(kind="test").first(), researcher)
    assert section.items.filter(kind="test").count() == 2
    assert Output.objects.filter(system__reference="test").count() == 2
    assert Output.objects.filter(system__study=study).exclude(system__reference="test").count() == 120


def test_a_clone_and_a_bundle_keep_test_questions():
    from studies.imports.bundle_files import create_draft_from_bundle, serialize_bundle

    study, section, researcher = draft("rating")
    make(study, section, researcher)
    copy = clone_study(study, researcher)
    design = serialize_design(study)
    for other in (copy, create_draft_from_bundle(serialize_bundle(study), researcher)):
        own = serialize_design(other)
        assert own["test_questions"] == design["test_questions"]
        assert Item.objects.filter(study=other, test_type="damaged").count() == 6


def test_the_frozen_design_names_the_known_answers():
    study, section, researcher = draft("rating")
    assert "test_questions" not in serialize_design(study)
    make(study, section, researcher)
    before = canonical_json(serialize_design(study))
    Expected.objects.filter(pk=Expected.objects.filter(item__section=section).first().pk).update(high=4)
    assert canonical_json(serialize_design(study)) != before


def test_the_database_refuses_a_type_of_a_live_item_and_a_subject_without_a_range():
    study, section, _ = draft("rating")
    prompt = Prompt.objects.filter(study=study).first()
    with pytest.raises(IntegrityError), transaction.atomic():
        Item.objects.create(study=study, section=section, number=1, prompt=prompt, content="x", test_type="positive")
    item = Item.objects.create(
        study=study, section=section, number=1, prompt=prompt, content="x", kind="test", test_type="given"
    )
    exposure = Exposure.objects.create(item=item, output=prompt.outputs.first(), number=0)
    question = Question.objects.get(section=section)
    with pytest.raises(IntegrityError), transaction.atomic():
        Expected.objects.create(item=item, question=question, exposure=exposure, about=exposure)


def test_a_copy_with_some_prompts_keeps_the_texts_that_its_test_questions_show():
    """The text of a negative one is of another prompt, which the copy would otherwise not have."""
    study, section, researcher = draft("rating")
    make(study, section, researcher, negative=2)
    shown = {study.prompts.order_by("key").first().key}
    copy = clone_study(study, researcher, prompt_keys=shown)
    texts = [
        sorted(Exposure.objects.filter(item__study=one, item__kind="test").values_list("output__text", flat=True))
        for one in (study, copy)
    ]
    assert texts[0] == texts[1] and copy.prompts.count() < study.prompts.count()
