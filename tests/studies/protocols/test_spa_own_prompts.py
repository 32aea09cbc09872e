"""Stated chances about systems that answered different prompts: what is drawn, shown, checked and reported."""

from itertools import islice

import pytest

from analysis.report.build import build_report
from studies.design.checklist import find_design_problems
from studies.design.draw import BatchDraw
from studies.models import Output, Prompt, Study
from studies.services import lifecycle
from tests.builders import QUALITY, add_rating, launched, panel, spa_draft, warnings_of
from tests.robots import Page, Robot, address, preferring, system_of

pytestmark = pytest.mark.django_db


def own_prompts_draft(n_of_each=24, n_of_both=0, **options):
    """Beta answered the first prompts, alpha the last, and both those between."""
    study = spa_draft(
        systems=("alpha", "beta"),
        prompts=2 * n_of_each + n_of_both,
        with_rating=False,
        with_surveys=False,
        spa_settings={"prompts": "own"},
        **options,
    )
    keys = list(Prompt.objects.filter(study=study).order_by("key").values_list("key", flat=True))
    Output.objects.filter(system__name="alpha", prompt__key__in=keys[:n_of_each]).delete()
    Output.objects.filter(system__name="beta", prompt__key__in=keys[n_of_each + n_of_both :]).delete()
    return study


def read_in(study, n_batches):
    """The prompts that each batch shows of each system."""
    systems = dict(Output.objects.filter(system__study=study).values_list("pk", "system__name"))
    batches = []
    for batch in islice(BatchDraw(study).batches(), n_batches):
        shown = {"alpha": set(), "beta": set()}
        for _, item in batch.items:
            (output,) = item.outputs
            shown[systems[output]].add(item.prompt)
        batches.append(shown)
    return batches


def test_a_batch_reads_m_prompts_of_each_system_in_sets_that_stay_together():
    study = own_prompts_draft()
    batches = read_in(study, 30)
    assert all(len(prompts) == 4 for shown in batches for prompts in shown.values())
    for system in ("alpha", "beta"):
        sets = {frozenset(shown[system]) for shown in batches}
        assert len(sets) == 6 and len(set().union(*sets)) == 24, "six sets that share no prompt, over five passes"
    assert len({(frozenset(one["alpha"]), frozenset(one["beta"])) for one in batches}) > 12, "the sets are crossed"
    assert read_in(study, 30) == batches


def test_a_prompt_with_outputs_of_both_belongs_to_one_and_both_get_as_many():
    study = own_prompts_draft(n_of_each=8, n_of_both=16)
    batches = read_in(study, 20)
    alpha, beta = (set().union(*(shown[system] for shown in batches)) for system in ("alpha", "beta"))
    assert not alpha & beta and len(alpha) == len(beta) == 16


def test_the_checklist_says_what_is_lost_and_what_is_missing():
    study = own_prompts_draft()
    section = study.sections.get()
    assert "own_prompts:1" in warnings_of(study)
    assert not [one for one in find_design_problems(study) if one.is_blocking]
    section.m = 25
    section.save(update_fields=["m"])
    blocking = {one.text for one in find_design_problems(study) if one.is_blocking}
    assert any("alpha has 24 prompts of its own" in one for one in blocking), blocking
    section.m = 4
    section.save(update_fields=["m"])
    add_rating(study, reuses=section)
    blocking = [one.text for one in find_design_problems(Study.objects.get(pk=study.pk)) if one.is_blocking]
    assert any("each shows one system only" in one for one in blocking), blocking


def played(study, n):
    door = panel(study)
    for number in range(n):
        robot = Robot(address(study, f"w{number}", door), preferring(QUALITY, system_of), number)
        assert robot.play() == "Thank you"
        assert {label: len(texts) for label, texts in robot.read.items()} == {"A": 4, "B": 4}
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    return build_report(Study.objects.get(pk=study.pk), {"resamples": 99})


def test_a_study_of_own_prompts_has_a_verdict_and_says_whose_prompts_were_whose(same_orders):
    study = launched(own_prompts_draft(target_n=24))
    door = panel(study)
    page = Robot(address(study, "reader", door), preferring(QUALITY, system_of))
    page.play(until="s1.read")
    text = Page(page.responses[-1].content.decode())
    assert "8 prompts, each answered by one of A and B." in " ".join(page.responses[-1].content.decode().split()), text
    result = played(study, 23)
    (pairs,) = [one for one in result["blocks"] if one["name"] == "spa.pairs" and one["mode"] == "recommended"]
    (estimate,) = pairs["estimates"]
    assert estimate["settings"]["estimator"] == "two_prompt_samples" and estimate["n"] == 23
    assert estimate["settings"]["population"] == "people and prompts"
    assert (estimate["detail"]["n_sets_x"], estimate["detail"]["n_sets_y"]) == (6, 6)
    assert 0.55 < estimate["estimate"] < 0.7 and estimate["interval"] and estimate["test"]["pvalue"] < 0.05
    (said,) = result["conclusions"]
    assert said["verdict"] == "different" and "for prompts like these" in said["claim"]
    (table,) = [one for one in result["tables"] if one["name"] == "own_prompts"]
    rows = {row["system"]: row for row in table["rows"]}
    assert all(row["n_prompts"] == 24 and row["n_sets"] == 6 and row["n"] == 23 for row in rows.values())
    named = pairs["other_results"]["own_prompts"]["1"]
    assert named["beta"] == [f"p{n:03}" for n in range(24)] and named["alpha"] == [f"p{n:03}" for n in range(24, 48)]
    assert "cancel out" in table["note"]
