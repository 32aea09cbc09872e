"""How batches are drawn from prompts that belong together, and what the checklist counts."""

import doctest
from collections import Counter

import pytest

from analysis.protocols.spa.answers import prompts_by_batch
from studies.design import draw
from studies.design.checklist import check_design
from studies.design.draw import TurnQueue, draw_batches, group_batches_by_shared_prompts
from studies.models import Contrast, Prompt
from tests.builders import add_choice, add_rating, add_relative, add_spa, draft_study, launched

pytestmark = pytest.mark.django_db


def grouped(study, size):
    """Give each ``size`` prompts, in the order of their keys, a group. Return the groups by id."""
    for number, prompt in enumerate(study.prompts.order_by("key")):
        Prompt.objects.filter(pk=prompt.pk).update(group=f"d{number // size}")
    return dict(study.prompts.values_list("pk", "group"))


def shown(batch):
    return [item.prompt for _, item in batch.items]


def test_the_examples_hold():
    assert doctest.testmod(draw).failed == 0


@pytest.mark.parametrize("size", [2, 4, 10])
@pytest.mark.parametrize("add", [add_rating, add_relative], ids=["rating", "relative"])
def test_a_batch_spreads_over_groups_and_every_prompt_is_shown_equally_often(add, size):
    study = draft_study(prompts=40, systems=("a", "b"))
    add(study, m=10)
    groups = grouped(study, size)
    batches = draw_batches(study, 0, 8)
    counts = Counter(prompt for batch in batches for prompt in shown(batch))
    assert len(counts) == 40 and set(counts.values()) == {2}
    most = max(max(Counter(groups[prompt] for prompt in shown(batch)).values()) for batch in batches)
    assert most <= -(-10 * size // 40) + 1  # an equal share, and one more where a batch begins elsewhere in a group


@pytest.mark.parametrize("size", [2, 4, 8])
def test_a_batch_about_all_that_it_showed_holds_whole_groups(size):
    study = draft_study(prompts=40)
    add_spa(study, m=8)
    groups = grouped(study, size)
    for batch in draw_batches(study, 0, 10):
        assert set(Counter(groups[prompt] for prompt in shown(batch)).values()) == {size}


@pytest.mark.parametrize("size", [4, 3])
def test_batches_that_share_a_group_are_one_set(size):
    """Groups of 3 do not fit batches of 4, so chains of shared groups connect the batches."""
    study = draft_study(prompts=40, target_n=10)
    section = add_spa(study, m=4)
    groups = grouped(study, size)
    study = launched(study)
    numbers = list(study.batches.filter(number__lt=10).values_list("number", flat=True))
    prompts = prompts_by_batch(section, numbers)
    assert all(found <= set(groups.values()) for found in prompts.values())
    n = len(set(group_batches_by_shared_prompts(prompts).values()))
    assert n == 10 if size == 4 else n < 5


def test_a_group_shows_all_sets_in_turns():
    sets = [(1, 2), (1, 3), (2, 3)]
    groups = {prompt: f"d{prompt // 3}" for prompt in range(30)}
    queue = TurnQueue(sets, list(range(30)), 5, "test", groups=groups)
    taken = [prompt for _ in range(5) for prompt in queue.take(6, set())]
    of_group: dict[str, set[int]] = {}
    for prompt in taken:
        of_group.setdefault(groups[prompt], set()).add(sum(queue.turns[prompt]) % 3)
    assert sorted(taken) == list(range(30)) and all(len(turns) == 3 for turns in of_group.values())


def test_the_checklist_counts_groups_in_place_of_prompts():
    study = draft_study(prompts=40, systems=("a", "b"), target_n=5)
    add_choice(study, m=8)
    Contrast.objects.update(population=Contrast.Population.PEOPLE_AND_PROMPTS)
    grouped(study, 4)
    assert "10 groups of prompts and " in check_design(study).populations[0]
    grouped(study, 10)
    found = [one.text for one in check_design(study).problems if one.name.startswith("too_few_prompts")]
    assert len(found) == 1 and "with 4 groups of prompts the result is about exactly these" in found[0]
