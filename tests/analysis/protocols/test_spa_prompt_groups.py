"""Stated chances of annotators who read some of the same prompts, the same prompts, or unknown ones."""

import doctest
import math

import numpy as np
import pytest

from analysis.protocols.blocks.sentences import population_phrase
from analysis.protocols.spa import answers
from studies.design.draw import DrawnBatch, DrawnItem, group_batches_by_shared_prompts, store_drawn_batches
from studies.models import Batch, Output
from tests.analysis.protocols.analysed import analysed, block
from tests.analysis.protocols.stated import frame_of
from tests.analysis.stats.draws import rng
from tests.analysis.stats.pairs import one_pair
from tests.builders import add_spa, draft_study

PEOPLE = 12


def test_the_example_is_true():
    assert doctest.testmod(answers).failed == 0


@pytest.mark.parametrize("seed", range(5))
def test_groups_share_no_prompt_and_are_as_small_as_possible(seed):
    draw = rng(seed)
    prompts = {number: set(draw.choice(40, 3, replace=False).tolist()) for number in range(12)}
    groups = group_batches_by_shared_prompts(prompts)
    # What can be reached from a batch by one shared prompt after another.
    for batch in prompts:
        reached, size = {batch}, 0
        while len(reached) > size:
            size = len(reached)
            reached |= {other for other in prompts for one in set(reached) if prompts[one] & prompts[other]}
        assert reached == {other for other in prompts if groups[other] == groups[batch]}


def estimate_of(places):
    """The recommended estimate if each batch, of one annotator, has the prompts at these places."""
    section = add_spa(draft_study(prompts=60), m=2)
    study = section.study
    outputs: dict[int, list[int]] = {}
    for output in Output.objects.filter(system__study=study).order_by("system__name"):
        outputs.setdefault(output.prompt_id, []).append(output.pk)
    prompts = sorted(outputs)
    drawn = [
        DrawnBatch(
            n,
            study.arms.get().pk,
            tuple((section.pk, DrawnItem(prompts[place], tuple(outputs[prompts[place]]))) for place in read),
        )
        for n, read in enumerate(places)
    ]
    if drawn:
        keys = [f"b{n}" for n in range(len(drawn))]
        store_drawn_batches(study, drawn, places_per_batch=1, origin=Batch.Origin.IMPORTED, keys=keys)
    numbers = list(study.batches.order_by("number").values_list("number", flat=True)) or list(range(PEOPLE))
    answers = [(n, "beta", "alpha", 40 + 5 * (n % 7)) for n in numbers]
    return block(analysed("spa", frame_of(section, answers), [section]), "spa.pairs").estimates[0]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("places", "n_groups"),
    [
        # Each batch has prompts of its own.
        ([(2 * n, 2 * n + 1) for n in range(PEOPLE)], PEOPLE),
        # Two batches share one of their two prompts.
        ([(n + n // 2, n + n // 2 + 1) for n in range(PEOPLE)], PEOPLE // 2),
        # A chain: each batch shares one prompt with the next.
        ([(n, n + 1) for n in range(PEOPLE)], 1),
    ],
)
def test_batches_that_share_some_prompts_are_one_cluster(places, n_groups):
    estimate = estimate_of(places)
    assert estimate.detail["n_batches"] == n_groups and not estimate.has_warning("prompts_unknown")
    is_few = n_groups < 5
    assert estimate.settings["population"] == ("people" if is_few else "people and prompts")
    assert population_phrase(estimate) == (", for exactly these prompts" if is_few else ", for prompts like these")
    assert estimate.has_warning("few_batches") == is_few


@pytest.mark.django_db
def test_a_claim_is_about_exactly_these_prompts_if_nobody_knows_who_read_which():
    estimate = estimate_of([])
    assert estimate.settings["population"] == "people" and "n_batches" not in estimate.detail
    assert population_phrase(estimate) == ", for exactly these prompts"
    (warning,) = [warning for warning in estimate.warnings if warning.code == "prompts_unknown"]
    assert warning.severity == "warn" and warning.detail["n_annotators"] == PEOPLE
    assert "import answers about the texts" in warning.detail["to_know_them"]


def test_groups_keep_the_level_where_sets_that_overlap_do_not():
    """People of twelve batches; each batch shares half of its prompts with one other, and prompts move the answers."""
    draw, runs, false = rng(20), 60, {"sets": 0, "groups": 0}
    sets = np.repeat(np.arange(12), 5)
    for _ in range(runs):
        first, second, own = draw.normal(0, 12, 6), draw.normal(0, 12, 6), draw.normal(0, 1, 12)
        by_set = first.repeat(2) + 0.3 * (second.repeat(2) + own)
        xy = np.clip(50 + by_set[sets] + draw.normal(0, 5, len(sets)), 0, 100)
        for name, labels in (("sets", sets), ("groups", sets // 2)):
            found = one_pair(xy, 100 - xy, batches=labels, rng=rng(), sensitivity_resamples=9)
            false[name] += found.pvalue < 0.05
    assert false["groups"] / runs <= 0.06 + 2 * math.sqrt(0.06 * 0.94 / runs) < false["sets"] / runs
