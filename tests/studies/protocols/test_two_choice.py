"""Two choices: what is drawn, what is missing, what a page asks and what is stored of it."""

from collections import Counter
from itertools import combinations

import pytest

from annotators.models import PageVisit, Response
from annotators.pages.presentation import responses_as_form_data
from annotators.pages.record import record_page_answers
from studies.design.checklist import find_design_problems
from studies.design.draw import BatchDraw, UnfillableBatch, draw_batches
from studies.models import Contrast, Item, Question, Section
from studies.protocols import REGISTRY
from studies.services import lifecycle
from tests.builders import add_choice, choice_study, draft_study, launched
from tests.players import answered, claimed, form, open_page, submitted

pytestmark = pytest.mark.django_db
CHOICE = REGISTRY["two_choice"]


def draft(*, systems=("alpha", "beta", "gamma"), m=2, margin=0.1, target_n=6, prompts=12, settings=None, **columns):
    study = draft_study(systems=systems, prompts=prompts, target_n=target_n, instructions="", **columns)
    add_choice(study, m=m, margin=margin, **(settings or {}))
    return study


def found(study, blocking=True):
    return {problem.key for problem in find_design_problems(study) if problem.is_blocking == blocking}


# What is drawn


@pytest.mark.parametrize("pairs, n", [("all", 3), ("chain", 2), ("chosen", 2)])
def test_each_prompt_with_each_pair_is_drawn_once_before_any_is_drawn_again(pairs, n):
    study = draft(settings={"pairs": pairs}, m=4)
    batches = draw_batches(study, 0, 12 * n // 4)
    items = Counter((item.prompt, item.outputs) for batch in batches for _, item in batch.items)
    assert len(items) == 12 * n and set(items.values()) == {1}
    assert all(len(item.outputs) == 2 for batch in batches for _, item in batch.items)
    with pytest.raises(UnfillableBatch):
        draw_batches(study, 0, 12 * n // 4 + 1)
    # Every pass has each pair as often as any other.
    systems = {o.pk: o.system_id for s in study.systems.all() for o in s.outputs.all()}
    first = Counter(tuple(systems[o] for o in item.outputs) for b in batches[:3] for _, item in b.items)
    assert set(first.values()) == {12 // n}


def test_where_m_does_not_divide_the_items_the_last_batch_is_shorter_and_nothing_is_drawn_twice():
    study = draft(settings={"pairs": "chain"}, m=5, prompts=7)
    items = Counter()
    with pytest.raises(UnfillableBatch):
        for batch in BatchDraw(study).batches():
            items.update((item.prompt, item.outputs) for _, item in batch.items)
    assert len(items) == 14 and set(items.values()) == {1}


def test_without_a_strategy_items_are_drawn_again():
    study = draft(settings={"strategy": "any"}, systems=("alpha", "beta"), prompts=4)
    items = Counter(item.prompt for batch in draw_batches(study, 0, 10) for _, item in batch.items)
    assert set(items.values()) == {5}


def test_the_chosen_pairs_are_those_of_the_planned_comparisons():
    study = draft(settings={"pairs": "chosen"})
    Contrast.objects.filter(study=study).last().delete()
    section = study.sections.get()
    systems = list(study.systems.order_by("name").values_list("pk", flat=True))
    assert CHOICE.pairs(section, systems) == [tuple(systems[:2])]
    assert CHOICE.pairs(Section(study=study, settings={}), systems) == list(combinations(systems, 2))


# What is missing


@pytest.mark.parametrize(
    "settings, columns, words",
    [
        ({"strategy": "majority"}, {}, "needs 3 annotators per batch, but the study has 1"),
        ({"strategy": "max_three"}, {}, "needs 2 annotators per batch"),
        ({"strategy": "one"}, {"coverage": "independent"}, "needs balanced coverage"),
        ({"strategy": "one"}, {"target_n": 19}, "24 items in batches of 2 give 12 places"),
        ({"strategy": "fixed", "stopping": "none"}, {"target_n": 5}, "Allow 5 batches per annotator"),
        ({"strategy": "fixed"}, {"target_n": 5, "batches_per_annotator": 5}, "a fixed worker is only one"),
        ({"workers": 4}, {}, "An even number may have no majority"),
        ({"stopping": "sometimes"}, {}, "stopping rule"),
        ({"delta": 0}, {}, "delta"),
    ],
)
def test_a_strategy_that_the_study_cannot_keep_is_named(settings, columns, words):
    study = draft(settings={"pairs": "chain"} | settings, **columns)
    assert any(words in problem for problem in found(study)), found(study)


@pytest.mark.parametrize("wrong", [[], {}, ["one"], {"a": 1}, "x", None, 4, True, "\u2028", 1e300])
@pytest.mark.parametrize("name", ["pairs", "strategy", "workers", "allows_tie", "tie", "stopping", "delta", "noun"])
def test_settings_of_any_kind_from_a_file_end_in_words(name, wrong):
    study = draft(settings={"pairs": "chain"} | {name: wrong})
    list(find_design_problems(study))
    section = study.sections.get()
    CHOICE.may_need_top_ups(section), CHOICE.has_stopping_rule(section), CHOICE.is_for_one_annotator(section)
    assert len(draw_batches(study, 0, 2)) == 2


def test_a_sound_draft_has_no_problem():
    assert not found(draft(settings={"pairs": "chain"})) - set()
    # The six people of the draft leave prompts without answers.
    acknowledged = found(draft(settings={"pairs": "chain"}), blocking=False) - {"without_answers:1"}
    assert not any(":1" in key for key in acknowledged)


def test_what_a_question_lacks_is_named():
    study = draft(settings={"pairs": "chain"})
    question = Question.objects.get(section__study=study)
    systems = list(study.systems.all())
    question.help, question.scale, question.x, question.y = "", {"kind": "percent"}, systems[0], systems[1]
    question.save()
    assert any("must have the scale “one of the outputs shown”" in problem for problem in found(study))
    assert any("sides are random" in problem for problem in found(study))
    assert "no_definition:better:1" in found(study, blocking=False)


def test_a_planned_pair_that_is_not_shown_and_a_rule_without_a_comparison_are_named():
    study = draft(settings={"pairs": "chain"})
    first, _, last = study.systems.order_by("name")
    Contrast.objects.create(study=study, x=last, y=first)
    assert any("does not show its pair" in problem for problem in found(study))
    study.contrasts.update(role="secondary")
    assert any("needs a primary contrast" in problem for problem in found(study))


def test_several_arms_cannot_share_third_labels():
    study = draft(settings={"strategy": "max_three", "pairs": "chain"}, annotators_per_batch=2)
    assert not found(study)
    study.arms.create(name="other")
    assert any("in each arm" in problem or "strategy_in_each_arm" in problem for problem in found(study))


def test_an_outputs_scale_is_refused_where_nothing_is_shown():
    study = draft_study(instructions="")
    survey = Section.objects.create(study=study, position=1, protocol="survey", m=0)
    Question.objects.create(section=survey, position=1, key="q", text="?", scale={"kind": "output"})
    assert any("a survey shows none" in problem for problem in found(study))


# What a page asks


def page_of(assignment):
    return open_page(assignment)


def test_a_choice_is_stored_as_the_output_chosen_with_its_letter():
    study = choice_study()
    assignment = claimed(study, "w")
    _, page, asks = page_of(assignment)
    (slot,), (item,) = asks, page.items
    assert slot == "s1.q1.i1" and [label for label, _ in item.exposures] == ["A", "B"]
    answered(assignment, **{slot: "B"})
    (response,) = Response.objects.all()
    assert (response.chosen_id, response.label, response.position, response.item_id) == (
        item.exposures[1][1],
        "B",
        1,
        item.id,
    )
    assert response.value is None and response.choice == ""
    assert responses_as_form_data(asks, page, [response]) == {slot: "B"}


@pytest.mark.parametrize("sent", ["C", "tie", "", "a"])
def test_what_the_page_does_not_offer_is_refused(sent):
    study = choice_study()
    outcome = answered(claimed(study, "w"), **{"s1.q1.i1": sent})
    assert outcome.sent.errors == {"s1.q1.i1": "Please choose one of them."} if sent else outcome.sent.errors
    assert not Response.objects.exists()


def test_a_tie_is_offered_where_the_study_allows_it_and_carries_no_letter():
    study = choice_study(settings={"allows_tie": True, "tie": "No difference"})
    assignment = claimed(study, "w")
    _, page, asks = page_of(assignment)
    assert asks["s1.q1.i1"].field.tie == "No difference"
    answered(assignment, **{"s1.q1.i1": "tie"})
    (response,) = Response.objects.all()
    assert (response.chosen_id, response.choice, response.label) == (None, "tie", "")
    assert responses_as_form_data(asks, page, [response]) == {"s1.q1.i1": "tie"}


def test_cannot_judge_is_offered_where_the_question_says_so():
    study = draft()
    Question.objects.update(skip_reasons=[{"key": "cannot_judge", "label": "I cannot judge this"}])
    study.sections.update(settings=study.sections.get().settings | {"pairs": "chain"})
    assignment = claimed(launched(study), "w")
    key = open_page(assignment)[1].key
    record_page_answers(assignment, key, form(**{"s1.q1.i1.skip": "cannot_judge"}))
    assert Response.objects.get().skip_reason == "cannot_judge"


def test_sides_are_drawn_for_each_person_and_kept():
    study = choice_study(settings={"strategy": "majority", "workers": 15}, annotators_per_batch=15, target_n=15, m=8)
    for n in range(15):
        submitted(study, f"w{n}")
    sides = {}
    for visit in PageVisit.objects.all():
        for _, item, exposures in visit.shown["items"]:
            sides.setdefault(item, []).append(tuple(exposure for _, exposure in exposures))
    assert len(sides) == 8 and all(len(seen) == 15 for seen in sides.values())
    assert all(len(set(seen)) == 2 for seen in sides.values())


def test_two_that_agree_or_three_settle_an_item():
    for labels, is_settled in (
        ([], False),
        (["1"], False),
        (["1", "1"], True),
        (["1", "2"], False),
        (["tie", "tie"], True),
        (["1", "skipped cannot_judge"], False),
        (["1", "2", "1"], True),
        (["1", "2", "tie"], True),
    ):
        assert CHOICE.is_item_settled(None, labels) is is_settled


def test_opening_more_places_than_there_are_items_is_refused_in_words():
    study = choice_study(prompts=4, m=2, target_n=2, target_cap=9)
    with pytest.raises(lifecycle.ActionRefused, match="not enough items left"):
        lifecycle.open_more_places(study, 1, by=None)
    assert Item.objects.filter(study=study).count() == 4
