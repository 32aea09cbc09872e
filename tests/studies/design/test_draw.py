"""Batches: the same for the same seed, balanced, and never a prompt twice for one person."""

from collections import Counter

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from studies.design.checklist import find_design_problems
from studies.design.draw import (
    ArmSharesRefused,
    PromptQueue,
    UnfillableBatch,
    arm_of_batch,
    build_arm_block,
    draw_batches,
    seeded_random,
    store_drawn_batches,
)
from studies.design.workload import estimate_stored_or_trial_batch_workloads
from studies.models import Arm, ArmSystem, Output, Section
from studies.stimuli.texts import word_count
from tests.builders import add_rating, add_spa, draft_study, humanlike_draft, launched, spa_draft

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


def prompts_of(batch):
    return [item.prompt for _, item in batch.items]


def test_the_same_seed_gives_the_same_batches_and_another_seed_others():
    study = spa_draft(prompts=20)
    once, again = draw_batches(study, 0, 12), draw_batches(study, 0, 12)
    assert once == again
    study.seed += 1
    assert draw_batches(study, 0, 12) != once


@pytest.mark.parametrize("coverage", ["balanced", "independent"])
def test_batch_k_does_not_depend_on_how_many_are_drawn(coverage):
    study = spa_draft(prompts=20, coverage=coverage)
    assert draw_batches(study, 7, 1) == draw_batches(study, 0, 12)[7:8]


def test_the_order_of_rows_does_not_matter():
    study = spa_draft(prompts=20)
    before = [[study.prompts.get(pk=p).key for p in prompts_of(b)] for b in draw_batches(study, 0, 5)]
    moved = study.prompts.get(key="p003")
    outputs = list(Output.objects.filter(prompt=moved).values("system_id", "text"))
    Output.objects.filter(prompt=moved).delete()
    moved.delete()
    moved = type(moved).objects.create(study=study, key="p003")
    Output.objects.bulk_create(Output(prompt=moved, **columns) for columns in outputs)
    assert [[study.prompts.get(pk=p).key for p in prompts_of(b)] for b in draw_batches(study, 0, 5)] == before


@pytest.mark.parametrize("prompts, m, n", [(7, 4, 40), (12, 5, 31), (5, 5, 9), (100, 3, 10)])
def test_balanced_counts_differ_by_at_most_one(prompts, m, n):
    study = spa_draft(prompts=prompts, m=m)
    drawn = draw_batches(study, 0, n)
    counts = Counter(prompt for batch in drawn for prompt in prompts_of(batch))
    assert sum(counts.values()) == m * n
    assert max(counts.values()) - min(counts.get(p.pk, 0) for p in study.prompts.all()) <= 1
    assert all(len(set(prompts_of(batch))) == m for batch in drawn)


def test_a_batch_never_holds_a_prompt_twice_over_all_its_sections():
    study = draft_study(prompts=15)
    for position, m in enumerate((1, 2, 4, 8), 1):
        Section.objects.create(study=study, position=position, protocol="spa", m=m)
    for batch in draw_batches(study, 0, 30):
        assert len(set(prompts_of(batch))) == 15


def test_a_pool_that_is_too_small_is_said():
    study = spa_draft(prompts=3, m=4)
    with pytest.raises(UnfillableBatch):
        draw_batches(study, 0, 1)
    with pytest.raises(UnfillableBatch):
        PromptQueue([1, 2, 3], 0).take(2, excluded={1, 2})


def test_prompts_without_an_output_of_every_system_are_not_drawn():
    study = spa_draft(prompts=6, m=4)
    gone = study.prompts.get(key="p002")
    Output.objects.filter(prompt=gone, system__name="beta").delete()
    assert gone.pk not in {p for b in draw_batches(study, 0, 20) for p in prompts_of(b)}


def test_arms_come_in_permuted_blocks_with_their_own_systems_and_domains():
    study = spa_draft(prompts=12, m=4)
    one = study.arms.get()
    two = Arm.objects.create(study=study, name="two", domain="news")
    study.prompts.filter(key__lt="p006").update(domain="news")
    for system in study.systems.filter(name__in=["alpha", "gamma"]):
        ArmSystem.objects.create(arm=two, system=system)
    drawn = draw_batches(study, 0, 21)
    for start in range(0, 20, 2):
        assert {batch.arm_id for batch in drawn[start : start + 2]} == {one.pk, two.pk}
    news = set(study.prompts.filter(domain="news").values_list("pk", flat=True))
    systems = dict(Output.objects.values_list("pk", "system__name"))
    for batch in drawn:
        shown = {systems[o] for _, item in batch.items for o in item.outputs}
        assert shown == ({"alpha", "gamma"} if batch.arm_id == two.pk else {"alpha", "beta", "gamma"})
        assert batch.arm_id == one.pk or set(prompts_of(batch)) <= news
    assert Counter(arm_of_batch([1, 2, 3], 9, k) for k in range(30)) == {1: 10, 2: 10, 3: 10}


@pytest.mark.parametrize(
    "wanted, block", [((130, 130, 130), 3), ((100, 50, 50), 4), ((None, None, None), 3), ((7, 7, 14), 4)]
)
def test_every_block_holds_every_arm_in_its_share(wanted, block):
    arms = [Arm(name=str(n), wanted=places) for n, places in enumerate(wanted)]
    held = build_arm_block(arms)
    assert len(held) == block
    for start in range(0, 5 * block, block):
        drawn = Counter(arm_of_batch(held, 9, k).name for k in range(start, start + block))
        assert [drawn[arm.name] for arm in arms] == [
            (arm.wanted or 1) * block // sum(a.wanted or 1 for a in arms) for arm in arms
        ]


@pytest.mark.parametrize("wanted, words", [((131, 130), "rounder numbers"), ((10, None), "leave all of them empty")])
def test_places_that_make_no_blocks_are_refused_before_the_launch(wanted, words):
    study = spa_draft()
    study.arms.update(wanted=wanted[0])
    Arm.objects.create(study=study, name="two", wanted=wanted[1])
    assert [p.text for p in find_design_problems(study) if p.field == "arms" and words in p.text]
    with pytest.raises(ArmSharesRefused, match=words):
        draw_batches(study, 0, 1)
    assert estimate_stored_or_trial_batch_workloads(study) == []


def test_arms_whose_places_are_not_the_target_are_pointed_at():
    study = spa_draft(target_n=30)
    study.arms.update(wanted=10)
    Arm.objects.create(study=study, name="two", wanted=10, minutes=90)
    assert {"arms_and_target_differ", "arm_takes_longer"} <= {p.name for p in find_design_problems(study)}


@pytest.mark.parametrize("is_launched", [False, True])
def test_the_burden_of_an_arm_is_that_of_its_own_sections(is_launched):
    study = humanlike_draft(conditions=("none", "examples", "comparison"), domains=("news",), target_n=6)
    if is_launched:
        study = launched(study)
    found = {(burden.questions, burden.words) for burden in estimate_stored_or_trial_batch_workloads(study)}
    # Five texts of 20 words with an answer and a reason each; three practice texts, or pairs, and a guess for each.
    words = [sorted(w for q, w in found if q == n) for n in (10, 13)]
    assert {questions for questions, _ in found} == {10, 13} and len(words[0]) == 1 and len(words[1]) == 2
    assert words[0][0] < words[1][0] < words[1][1] and words[1][1] - words[1][0] == 3 * 20


def test_the_same_thing_judged_is_the_same_item():
    study = spa_draft(prompts=4, m=4, with_surveys=False)
    batches = store_drawn_batches(study, draw_batches(study, 0, 5), places_per_batch=1)
    assert study.items.count() == 4 and len(batches) == 5
    assert {batch.placements.count() for batch in study.batches.all()} == {4}
    store_drawn_batches(study, draw_batches(study, 5, 5), places_per_batch=1)
    assert study.items.count() == 4 and study.batches.count() == 10


def test_several_samples_of_a_system_make_several_items():
    study = spa_draft(prompts=4, m=4, coverage="independent")
    for output in list(Output.objects.filter(system__study=study)):
        Output.objects.create(system=output.system, prompt=output.prompt, sample=1, text=output.text + " again")
    store_drawn_batches(study, draw_batches(study, 0, 20), places_per_batch=1)
    assert 8 < study.items.count() <= 32
    for item in study.items.all():
        assert item.exposures.values("output__system").distinct().count() == 3


def test_a_section_that_reuses_draws_nothing():
    study = draft_study()
    add_rating(study, position=2, reuses=add_spa(study, position=1, m=4), m=1)
    (batch,) = draw_batches(study, 0, 1)
    assert len(batch.items) == 4


def test_writing_takes_few_queries_whatever_the_number():
    study = spa_draft(prompts=40)
    counts = []
    for first, count in ((0, 5), (5, 100)):
        drawn = draw_batches(study, first, count)
        with CaptureQueriesContext(connection) as queries:
            store_drawn_batches(study, drawn, places_per_batch=1)
        counts.append(len(queries))
    assert counts[1] <= counts[0] + 2


def test_streams_of_random_numbers_are_independent_of_each_other():
    assert seeded_random(1, "a").random() == seeded_random(1, "a").random()
    assert (
        len(
            {
                seeded_random(1, "a").random(),
                seeded_random(1, "b").random(),
                seeded_random(2, "a").random(),
                seeded_random(1, "a", 0).random(),
            }
        )
        == 4
    )


def test_the_burden_counts_what_each_arm_shows_and_planted_references_where_they_are_met():
    """By hand: SPA's readers do not meet the planted one, raters do; an arm of two systems asks about two."""
    study = draft_study(systems=("alpha", "beta", "top"))
    add_spa(study, m=4, pairs=[("alpha", "beta")])
    study.systems.filter(name="top").update(reference="maximal")
    add_rating(study, position=2, m=2)
    few = Arm.objects.create(study=study, name="few")
    few.systems.set(study.systems.exclude(name="top"))
    words = {
        kind: {word_count(text) for text in texts.values_list("text", flat=True)}
        for kind, texts in (("output", Output.objects.filter(system__study=study)), ("prompt", study.prompts))
    }
    assert words == {"output": {21}, "prompt": {5}}
    n_rated = 2 * study.sections.get(position=2).questions.count()
    assert {(burden.words, burden.questions) for burden in estimate_stored_or_trial_batch_workloads(study)} == {
        (6 * 5 + 4 * 2 * 21 + 2 * 3 * 21, 2 + 3 * n_rated),
        (6 * 5 + 4 * 2 * 21 + 2 * 2 * 21, 2 + 2 * n_rated),
    }
