"""The relative scale: what is drawn, what is missing, what a page asks, what is stored of it, and what the analysis makes of it."""

from random import Random

import pandas as pd
import pytest

from analysis.claims import Claims
from annotators.models import Response
from annotators.record import record_page
from annotators.show import stored_texts
from studies.design import problems
from studies.draw import drawn_batches
from studies.models import Contrast, Exposure
from studies.pairs import in_order
from studies.protocols import REGISTRY
from studies.protocols.relative.analysis import analyse
from studies.questions import pairs_of
from tests.builders import add_rating, add_relative, draft_study, launched
from tests.players import Perceiving, answered, claimed, form, open_page

pytestmark = pytest.mark.django_db
ATTRS = {"seed": "00", "level": 0.95, "resamples": 199, "star_scheme": "10/5/1"}


def draft(*, systems=("alpha", "beta", "gamma"), scale=None, **options):
    study = draft_study(systems=systems, prompts=6, target_n=3, instructions="")
    section = add_relative(study, **options)
    if scale is not None:
        section.questions.update(scale=scale)
    return study


def found(study):
    return [problem.text for problem in problems(study) if problem.is_blocking]


# What is drawn


def shown(study):
    """The pairs of systems that the first batches show, by name."""
    systems = {output.pk: system.name for system in study.systems.all() for output in system.outputs.all()}
    return {
        frozenset(systems[output] for output in item.outputs)
        for batch in drawn_batches(study, 0, 12)
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
    assert [(x.name, y.name) for x, y in pairs_of(study.sections.get(), "all")] == [("alpha", "beta")]
    systems = {system.name: system for system in study.systems.all()}
    Contrast.objects.create(study=study, x=systems["alpha"], y=systems["top"])
    assert shown(study) == {frozenset(("alpha", "beta")), frozenset(("alpha", "top"))}


def test_an_order_of_ones_own_goes_before_the_names():
    assert in_order({1: "b", 2: "a", 3: "c"}, " c \n\nb") == [3, 1, 2]
    study = draft(pairs="chain", order="gamma\nnobody")
    assert "Section 1: The order of the systems names nobody, which is none of the study's." in found(study)


# What is missing

FIVE = ["{second} much", "{second}", "same", "{first}", "{first} much"]


@pytest.mark.parametrize(
    "scale, words",
    [
        ({"kind": "continuous"}, "must be asked on points"),
        ({"kind": "output"}, "must be asked on points"),
        ({"kind": "likert", "labels": FIVE[:4]}, "must have a point in the middle"),
        ({"kind": "likert", "labels": ["{second}", *"abcdefghi", "{first}"]}, "odd number of points from 3 to 9"),
        ({"kind": "likert"}, "must have words for each of its points"),
        ({"kind": "likert", "low": "{second}", "high": "{first}"}, "must have words for each of its points"),
        ({"kind": "likert", "labels": FIVE[::-1]}, "must name {second} at its first point"),
        ({"kind": "likert", "labels": ["left", "same", "right"]}, "must name {second} at its first point"),
        ({"kind": "likert", "labels": ["a"]}, "lowest value must be below its highest"),
    ],
)
def test_a_scale_that_is_none_of_this_kind_is_named(scale, words):
    study = draft(scale=scale)
    assert any(words in text and "better" in text for text in found(study)), found(study)


def test_the_way_as_it_is_has_nothing_missing():
    assert found(draft()) == []
    assert any("plan a comparison" in text for text in found_without_contrasts(draft(pairs="chosen")))
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
    assert "Section 2: Section 1 does not show pairs: its items cannot be shown here again." in found(study)


@pytest.mark.parametrize("wrong", [[], {}, ["all"], "x", None, 4, True, "\u2028", 1e300])
@pytest.mark.parametrize("name", ["pairs", "order", "noun", "explanation"])
def test_settings_of_any_kind_from_a_file_end_in_words(name, wrong):
    study = draft(**{name: wrong})
    list(problems(study))
    drawn_batches(study, 0, 1)


# A page and what is stored


@pytest.fixture
def assignment():
    return claimed(launched(draft(systems=("alpha", "beta"))), "w")


def test_the_points_name_the_letters_and_the_first_stands_first(assignment):
    _, page, asks = open_page(assignment, "s1.p1")
    (ask,) = asks.values()
    assert [(point.key, point.label) for point in ask.field.points] == [
        ("5", "Story A is much better"), ("4", "Story A is better"), ("3", "They are about the same"), ("2", "Story B is better"),
        ("1", "Story B is much better"),
    ]  # fmt: skip
    answered(assignment, "s1.p1", **{next(iter(asks)): "2"})
    row = Response.objects.get()
    assert (row.value, row.label, row.exposure_id) == (2, "A", page.items[0].exposures[0][1]) and row.item_id
    assert stored_texts(asks, page, [row]) == {row.slot: "2"}


@pytest.mark.parametrize("sent", ["", "0", "6", "-1", "1.0", "+1", "A", "tie", "١", "5 ", ["1", "2"], "1e0"])
def test_anything_else_is_refused_in_words_and_stores_nothing(assignment, sent):
    _, page, asks = open_page(assignment, "s1.p1")
    (slot,) = asks
    outcome = record_page(assignment, page.key, form(**{slot: sent}))
    assert outcome.sent.errors[slot] in (
        "Please choose one of the points.",
        "Please answer this question.",
        "Please give one answer only.",
    )
    assert not Response.objects.exists()


# What it comes to


def frame_of(rows):
    """``rows``: (annotator, item, who stood first, points from 1 to 5)."""
    frame = pd.DataFrame(
        {
            "assignment": who, "annotator": f"a{who}", "section": 1, "question": "better", "system": first, "prompt": f"p{item}",
            "item": f"s1.{item}", "label": "A", "value": (points - 1) / 4, "is_kept": True, "is_kept_paper": True,
        }
        for who, item, first, points in rows
    )  # fmt: skip
    claims = Claims(pd.DataFrame(), tuple((1, item, "alpha\x1fbeta") for item in sorted({row[1] for row in rows})))
    frame.attrs = ATTRS | {"claims": claims}
    return frame


def of(blocks, name, mode="recommended"):
    return next(block for block in blocks if block.name == name and block.mode == mode).estimates


def test_points_are_turned_toward_x_and_hand_computed():
    section = draft(systems=("alpha", "beta")).sections.get()
    # beta is x. Points toward beta: +2, +1, 0, -1 (first alpha: 5 means alpha much better).
    rows = [
        (0, 1, "beta", 5),
        (0, 2, "alpha", 2),
        (1, 1, "alpha", 3),
        (1, 2, "beta", 2),
        (2, 1, "beta", 4),
        (2, 2, "alpha", 1),
    ]
    blocks = analyse(frame_of(rows), [section])
    (score,) = of(blocks, "relative.score")
    assert score.estimate == pytest.approx((2 + 1 + 0 - 1 + 1 + 2) / 6) and score.n == 3 and score.unit == "annotator"
    (above,) = of(blocks, "relative.superiority")
    assert above.estimate == pytest.approx((1 + 1 + 0.5 + 0 + 1 + 1) / 6)
    (paper,) = of(blocks, "relative.score", "paper")
    assert paper.estimate == pytest.approx(score.estimate) and paper.n == 6 and paper.unit == "answer"
    checks = {one.analysis: one for one in of(blocks, "relative.checks")}
    assert checks["relative.ties"].estimate == pytest.approx(1 / 6)
    # beta first: 2, -1, 1; alpha first, toward beta: 1, 0, 2. Half the difference of the means leans to the first.
    assert checks["relative.side"].estimate == pytest.approx((2 / 3 - 1) / 2)
    assert score.settings["contrast"]["x"] == "beta" and paper.test.family_size == 1


def test_a_margin_is_tested_with_one_answer_each_and_with_five_annotators_not_at_all():
    section = draft(systems=("alpha", "beta"), margin=0.5).sections.get()
    one_each = [(who, who % 3, "beta", 3 + (who % 5 == 0) - (who % 5 == 1)) for who in range(40)]
    (score,) = of(analyse(frame_of(one_each), [section]), "relative.score")
    tost = next(one for one in score.sensitivity if one.analysis == "relative.score.equivalence")
    assert tost.pvalue < 0.001 and score.detail["verdict"] == "equivalent"
    few = [(who, item, "beta", 3 + (item == who) - (item == who + 1)) for who in range(5) for item in range(8)]
    few[0] = (0, 0, "beta", 3)
    (score,) = of(analyse(frame_of(few), [section]), "relative.score")
    tost = next(one for one in score.sensitivity if one.analysis == "relative.score.equivalence")
    assert score.status == "ok" and score.test is None and tost.test is None and tost.interval is not None
    assert score.detail["verdict"] == "inconclusive"


def test_a_pair_that_was_not_planned_is_told_as_such():
    study = draft(systems=("alpha", "beta"))
    study.contrasts.all().delete()
    blocks = analyse(frame_of([(0, 1, "beta", 5), (1, 1, "beta", 4)]), [study.sections.get()])
    (score,) = of(blocks, "relative.score")
    assert score.settings["contrast"]["x"] == "alpha" and score.estimate == -1.5
    assert not score.settings["contrast"]["is_planned"]
    tables = {one["name"]: one for block in blocks for one in block.tables}
    for name in ("relative", "relative_checks"):
        assert [row["role"] for row in tables[name]["rows"]] == ["not planned"] and "|Role|" in tables[name]["columns"]


@pytest.mark.parametrize("rows", [[], [(0, 1, "beta", 3)], [(n, 1, "beta", 3) for n in range(8)]])
def test_nothing_one_answer_and_all_the_same_are_no_error(rows):
    section = draft(systems=("alpha", "beta")).sections.get()
    frame = frame_of(rows or [(0, 1, "beta", 3)])
    attrs = frame.attrs
    frame = frame[: len(rows)]
    frame.attrs = attrs
    (score,) = of(analyse(frame, [section]), "relative.score") if rows else [None]
    assert score is None or (score.estimate == 0 and score.test is None)


def test_robots_of_the_product_answer_it():
    study = launched(draft(systems=("alpha", "beta")))
    _, page, asks = open_page(claimed(study, "w"), "s1.p1")
    (ask,) = asks.values()
    names = dict(Exposure.objects.filter(item__study=study).values_list("pk", "output__system__name"))
    robots = [Perceiving(Random(n), {"alpha": 0.0, "beta": 5.0}) for n in range(20)]
    sent = [int(robot.answers(REGISTRY["relative"], {"s1.q1.i1": ask})["s1.q1.i1"]) for robot in robots]
    first = names[page.items[0].exposures[0][1]]
    assert (min(sent) > 3) if first == "beta" else (max(sent) < 3)
