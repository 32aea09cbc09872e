"""Each person meets each pair of systems both ways equally often. Studies that were launched before this keep their draw."""

import hashlib
import json
from collections import Counter
from itertools import combinations

import pytest

from annotators.pages.sequence import _build_itinerary, get_section_itinerary
from annotators.places.batch_plan import frozen_batch_plan, get_batch_plan
from studies.design.draw import draw_batches, seeded_random
from studies.design.serialization import serialize_design
from studies.models import Design, Exposure, Output, Study
from studies.services.copying import clone_study
from tests.builders import (
    add_choice,
    add_ranking,
    add_rating,
    add_relative,
    add_section,
    add_spa,
    draft_study,
    launched,
)
from tests.players import claimed

pytestmark = pytest.mark.django_db
FOUR = ("alpha", "beta", "delta", "gamma")


def draft(add, *, drawing_version=Study.BALANCED_DRAWING, systems=FOUR, **options) -> Study:
    study = draft_study(
        systems=systems, prompts=24, target_n=12, instructions="", seed=7, drawing_version=drawing_version
    )
    add(study, **options)
    return study


def add_best_worst(study, m):
    return add_section(study, "best_worst", m=m, settings={"noun": "story", "set_size": 3})


def orders_of_people(study, n=60) -> list[list[tuple[str, ...]]]:
    """The systems on each item's page, from first to last, for people with different seeds."""
    systems = dict(Exposure.objects.filter(item__study=study).values_list("pk", "output__system__name"))
    assignment = claimed(study, "one")
    plan = get_batch_plan(assignment)
    return [
        [
            tuple(systems[exposure] for _, exposure in item.exposures)
            for section in _build_itinerary(plan, seed).sections
            for item in section.items
        ]
        for seed in range(n)
    ]


def spread(counts: Counter, keys) -> int:
    values = [counts[key] for key in keys]
    return max(values) - min(values)


@pytest.mark.parametrize("add, m", [(add_choice, 10), (add_relative, 9)])
def test_each_person_meets_each_pair_each_way_equally_often(add, m):
    people = orders_of_people(launched(draft(add, m=m)))
    for orders in people:
        assert spread(Counter(first for first, _ in orders), FOUR) <= 1 + m % 2
        for system in FOUR:
            sides = Counter(order.index(system) for order in orders if system in order)
            assert spread(sides, (0, 1)) <= 1
        for x, y in combinations(FOUR, 2):
            assert spread(Counter(order for order in orders if set(order) == {x, y}), ((x, y), (y, x))) <= 1
        assert spread(Counter(system for order in orders for system in order), FOUR) <= m % 2
    assert len({tuple(orders) for orders in people}) == len(people)


@pytest.mark.parametrize("add, m", [(add_ranking, 4), (add_ranking, 6), (add_rating, 5), (add_best_worst, 7)])
def test_each_person_meets_each_system_at_each_position_equally_often(add, m):
    for orders in orders_of_people(launched(draft(add, m=m)), 20):
        for system in FOUR:
            positions = Counter(order.index(system) for order in orders if system in order)
            assert spread(positions, range(len(orders[0]))) <= 1


def test_letters_follow_the_position_and_tell_nothing():
    study = launched(draft(add_choice, m=10))
    for section in get_section_itinerary(claimed(study, "one")).sections:
        assert {tuple(letter for letter, _ in item.exposures) for item in section.items} == {("A", "B")}


def test_first_directions_of_chances_name_each_system_first_equally_often():
    pairs = list(combinations(FOUR, 2))
    study = launched(draft(add_spa, m=4, pairs=pairs))
    plan = get_batch_plan(claimed(study, "one"))
    declared = [question for _, question in plan.sections[0].questions]
    named_first = set()
    for seed in range(40):
        section = _build_itinerary(plan, seed).sections[0].section
        by_key = {question.key: question for question in declared}
        asked = [by_key[question.key] for question in section.questions]
        half = asked[: len(pairs)]
        assert {frozenset((question.x, question.y)) for question in half} == {frozenset(pair) for pair in pairs}
        assert spread(Counter(question.x for question in half), FOUR) <= 1
        named_first.add(tuple(question.x for question in half))
    assert len(named_first) > 30


# The draw of studies that were launched before


def digest_of_draw(study) -> str:
    """A hash of what batches and pages show, by names."""
    names = {
        pk: f"{system}/{prompt}"
        for pk, system, prompt in Output.objects.filter(system__study=study).values_list(
            "pk", "system__name", "prompt__key"
        )
    }
    batches = [[[names[pk] for pk in item.outputs] for _, item in batch.items] for batch in draw_batches(study, 0, 8)]
    return hashlib.sha256(json.dumps(batches).encode()).hexdigest()[:12]


# As the code of commit 6d9ab2f0 drew them, before there were versions.
OLD_DRAWS = {
    add_choice: "6d116bf59cf6",
    add_relative: "6d116bf59cf6",
    add_best_worst: "751543b4092f",
    add_ranking: "4b8da7680af7",
}


@pytest.mark.parametrize("add", OLD_DRAWS, ids=lambda add: add.__name__)
def test_batches_of_earlier_studies_are_drawn_as_they_were(add):
    study = draft(add, m=3, drawing_version=1)
    assert digest_of_draw(study) == OLD_DRAWS[add]
    study.drawing_version = 2
    assert (digest_of_draw(study) == OLD_DRAWS[add]) == (add is add_ranking)


def test_pages_of_earlier_studies_are_drawn_item_by_item():
    study = launched(draft(add_choice, m=10, strategy="any", systems=("alpha", "beta"), drawing_version=1))
    plan = get_batch_plan(claimed(study, "one"))
    n_first = set()
    for seed in range(100):
        items = plan.sections[0].items
        letters = ["A", "B"]
        seeded_random(seed, "labels", 1).shuffle(letters)
        expected = []
        for item, exposures in seeded_random(seed, "items", 1).sample(items, len(items)):
            own = seeded_random(seed, "item", item).sample(letters, 2)
            expected.append((item, tuple(sorted((own[number], exposure) for number, exposure in exposures))))
        (section,) = _build_itinerary(plan, seed).sections
        assert [(item.id, item.exposures) for item in section.items] == expected
        numbers = {exposure: number for _, exposures in items for number, exposure in exposures}
        n_first.add(sum(numbers[item.exposures[0][1]] == 0 for item in section.items))
    assert n_first > {3, 5, 7}
    balanced = orders_of_people(launched(draft(add_choice, m=10, strategy="any", systems=("alpha", "beta"))), 100)
    assert {sum(order[0] == "alpha" for order in orders) for orders in balanced} == {5}


def test_the_frozen_design_says_how_it_is_drawn_and_earlier_hashes_stay():
    earlier, now = draft(add_choice, drawing_version=1), draft(add_choice)
    assert "drawing_version" not in serialize_design(earlier) and serialize_design(now)["drawing_version"] == 2
    study = launched(now)
    design = Design.objects.get(study=study)
    assert json.loads(design.canonical)["drawing_version"] == 2
    assert frozen_batch_plan(study.batches.first().pk, design.pk).wording.is_balanced


def test_a_copy_is_drawn_in_the_newest_way(admin_user):
    assert clone_study(draft(add_choice, drawing_version=1), admin_user).drawing_version == Study.BALANCED_DRAWING
