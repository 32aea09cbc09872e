"""The relative scale: what is drawn, what is missing, what a page asks, and what is stored of it."""

from random import Random

import pytest

from annotators.models import Response
from annotators.pages.presentation import build_shown_page, responses_as_form_data
from annotators.pages.record import record_page_answers
from studies.design.checklist import find_design_problems
from studies.design.draw import draw_batches
from studies.models import Contrast, Exposure
from studies.protocols import REGISTRY
from studies.protocols.base.pairs import order_systems
from studies.services.questions import select_system_pairs
from tests.builders import add_rating, add_relative, add_section, draft_study, launched
from tests.players import Perceiving, answered, claimed, form, open_page

pytestmark = pytest.mark.django_db


def draft(*, systems=("alpha", "beta", "gamma"), scale=None, **options):
    study = draft_study(systems=systems, prompts=6, target_n=3, instructions="")
    section = add_relative(study, **options)
    if scale is not None:
        section.questions.update(scale=scale)
    return study


def found(study):
    return [problem.text for problem in find_design_problems(study) if problem.is_blocking]


# What is drawn


def shown(study):
    """The pairs of systems that the first batches show, by name."""
    systems = {output.pk: system.name for system in study.systems.all() for output in system.outputs.all()}
    return {
        frozenset(systems[output] for output in item.outputs)
        for batch in draw_batches(study, 0, 12)
        for _, item in batch.items
    }


@pytest.mark.parametrize(
    "settings, pairs",
    [
        ({"pairs": "all"}, ["alpha beta", "alpha gamma", "beta gamma"]),
        ({"pairs": "chain"}, ["alpha beta", "beta gamma"]),
        ({"pairs": "chain", "order": "beta\nalpha\ngamma"}, ["alpha beta", "alpha gamma"]),
        ({"pairs": "chain", "order": "gamma"}, ["alpha gamma", "alpha beta"]),
        ({"pairs": "reference"}, ["alpha gamma", "beta gamma"]),
        ({"pairs": "chosen"}, ["alpha beta", "beta gamma"]),
    ],
)
def test_the_pairs_are_those_of_the_settings(settings, pairs):
    study = draft(**settings)
    study.systems.filter(name="gamma").update(reference="reference")
    assert shown(study) == {frozenset(pair.split()) for pair in pairs}


def test_planted_ends_stand_in_no_pair_that_no_comparison_names():
    study = draft(systems=("alpha", "beta", "bottom", "top"))
    study.contrasts.exclude(x__name="beta", y__name="alpha").delete()
    study.systems.filter(name="top").update(reference="maximal")
    study.systems.filter(name="bottom").update(reference="minimal")
    assert shown(study) == {frozenset(("alpha", "beta"))}
    assert [(x.name, y.name) for x, y in select_system_pairs(study.sections.get(), "all")] == [("alpha", "beta")]
    systems = {system.name: system for system in study.systems.all()}
    Contrast.objects.create(study=study, x=systems["alpha"], y=systems["top"])
    assert shown(study) == {frozenset(("alpha", "beta")), frozenset(("alpha", "top"))}


def test_an_order_of_ones_own_goes_before_the_names():
    assert order_systems({1: "b", 2: "a", 3: "c"}, " c \n\nb") == [3, 1, 2]
    study = draft(pairs="chain", order="gamma\nnobody")
    assert (
        "Section 1 (Relative scale): The order of the systems names nobody, which is not a system of this study."
        in found(study)
    )


# What is missing

FIVE = ["{second} much", "{second}", "same", "{first}", "{first} much"]


@pytest.mark.parametrize(
    "scale, words",
    [
        ({"kind": "continuous"}, "must have a scale of points"),
        ({"kind": "output"}, "must have a scale of points"),
        ({"kind": "likert", "labels": FIVE[:4]}, "must have a middle point"),
        ({"kind": "likert", "labels": ["{second}", *"abcdefghi", "{first}"]}, "an odd number of points, 3 to 9"),
        ({"kind": "likert"}, "must have words for each point"),
        ({"kind": "likert", "low": "{second}", "high": "{first}"}, "must have words for each point"),
        ({"kind": "likert", "labels": FIVE[::-1]}, "must contain {second} in its first point"),
        ({"kind": "likert", "labels": ["left", "same", "right"]}, "must contain {second} in its first point"),
        ({"kind": "likert", "labels": ["a"]}, "lowest value must be below its highest"),
    ],
)
def test_a_scale_that_is_none_of_this_kind_is_named(scale, words):
    study = draft(scale=scale)
    assert any(words in text and "better" in text for text in found(study)), found(study)


def test_the_way_as_it_is_has_nothing_missing():
    assert found(draft()) == []
    assert any("Plan a comparison" in text for text in found_without_contrasts(draft(pairs="chosen")))
    assert any("No system is marked as the reference" in text for text in found(draft(pairs="reference")))


def found_without_contrasts(study):
    study.contrasts.all().delete()
    return found(study)


def test_items_of_a_section_that_shows_no_pairs_cannot_be_shown_again():
    study = draft_study(prompts=6, instructions="")
    rating = add_rating(study, position=1, m=2)
    section = add_relative(study, position=2, m=1)
    section.reuses = rating
    section.save()
    assert (
        "Section 2 (Relative scale): The section whose items are reused does not show pairs, so this section cannot reuse its items."
        in found(study)
    )


@pytest.mark.parametrize("wrong", [[], {}, ["all"], "x", None, 4, True, "\u2028", 1e300])
@pytest.mark.parametrize("name", ["pairs", "order", "noun", "explanation", "source"])
def test_settings_of_any_kind_from_a_file_end_in_words(name, wrong):
    study = draft(**{name: wrong})
    list(find_design_problems(study))
    draw_batches(study, 0, 1)


# A page and what is stored


@pytest.fixture
def assignment():
    return claimed(launched(draft(systems=("alpha", "beta"))), "w")


def test_the_points_name_the_letters_and_the_first_comes_first(assignment):
    _, page, asks = open_page(assignment, "s1.p1")
    (ask,) = asks.values()
    assert [(point.key, point.label) for point in ask.field.points] == [
        ("5", "Story A is much better"),
        ("4", "Story A is better"),
        ("3", "They are about the same"),
        ("2", "Story B is better"),
        ("1", "Story B is much better"),
    ]
    answered(assignment, "s1.p1", **{next(iter(asks)): "2"})
    row = Response.objects.get()
    assert (row.value, row.label, row.exposure_id) == (2, "A", page.items[0].exposures[0][1]) and row.item_id
    assert responses_as_form_data(asks, page, [row]) == {row.slot: "2"}


@pytest.mark.parametrize("sent", ["", "0", "6", "-1", "1.0", "+1", "A", "tie", "١", "5 ", ["1", "2"], "1e0"])
def test_anything_else_is_refused_in_words_and_stores_nothing(assignment, sent):
    _, page, asks = open_page(assignment, "s1.p1")
    (slot,) = asks
    outcome = record_page_answers(assignment, page.key, form(**{slot: sent}))
    assert outcome.sent.errors[slot] in (
        "Please choose one of the points.",
        "Please answer this question.",
        "Please give only one answer.",
    )
    assert not Response.objects.exists()


# What it comes to


def test_robots_of_the_product_answer_it():
    study = launched(draft(systems=("alpha", "beta")))
    _, page, asks = open_page(claimed(study, "w"), "s1.p1")
    (ask,) = asks.values()
    names = dict(Exposure.objects.filter(item__study=study).values_list("pk", "output__system__name"))
    robots = [Perceiving(Random(n), {"alpha": 0.0, "beta": 5.0}) for n in range(20)]
    sent = [int(robot.answers(REGISTRY["relative"], {"s1.q1.i1": ask})["s1.q1.i1"]) for robot in robots]
    first = names[page.items[0].exposures[0][1]]
    assert (min(sent) > 3) if first == "beta" else (max(sent) < 3)


# The source document


@pytest.mark.parametrize("setting", ["hidden", "shown"])
def test_the_first_of_two_sections_can_hide_the_source_document_that_the_second_shows(setting):
    study = draft_study(systems=("alpha", "beta"), prompts=1, target_n=1, instructions="")
    study.prompts.update(text="A headline.", source="The whole document.")
    first = add_relative(study, m=1, source=setting)
    second = add_section(study, "relative", position=first.position + 1, m=1, settings={})
    type(second).objects.filter(pk=second.pk).update(reuses=first)
    assignment = claimed(launched(study), "w")
    pages = {}
    for key in ("s1.p1", "s2.p1"):
        _, page, asks = open_page(assignment, key)
        (pages[key],) = build_shown_page(assignment, page, asks).items
        answered(assignment, key)
    sources = [item.source for item in pages.values()]
    assert sources == ["" if setting == "hidden" else "The whole document.", "The whole document."]
    assert {item.prompt for item in pages.values()} == {"A headline."}
    # Both parts are about the same two outputs, on the same sides.
    first_outputs, second_outputs = (
        [(one.label, one.output.text) for one in item.exposures] for item in pages.values()
    )
    assert first_outputs == second_outputs
