"""The job that plans a study's size, and the choice of a plan."""

import json
from dataclasses import replace

import pytest
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, connection, transaction
from django.http import Http404

from analysis import tasks
from analysis.planning import results
from analysis.planning.run import KIND, choose_plan, compute_plan, request_plan, seed_of_job, simulate_plan
from analysis.stats.planning import study_plans
from analysis.stats.planning.inputs import Variation
from studies.models import Job, SizePlan, Study
from studies.models.guards import AppendOnlyViolation
from studies.services import copying, jobs
from studies.services.lifecycle import ActionRefused
from tests.builders import add_choice, choice_study, draft_study, spa_draft, user

from .quick import inputs

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner():
    return user("owner")


@pytest.fixture
def draft(owner):
    study = draft_study(owner=owner)
    add_choice(study, m=4)
    return study


def stored_plan(study, fingerprint="f", **columns):
    result = {"budget": {"finishing": 13}, "plan": {}}
    usual = {"inputs": inputs().as_json(), "seed": 1, "result": result}
    return SizePlan.objects.create(study=study, fingerprint=fingerprint, **usual | columns)


@pytest.mark.slow
def test_a_plan_is_simulated_once_and_then_found(draft, owner, few_runs):
    job = request_plan(draft, owner, inputs())
    assert request_plan(draft, owner, inputs()) == job
    assert jobs.run_waiting_jobs() == 1
    job.refresh_from_db()
    plan = draft.size_plans.get()
    assert job.state == Job.State.DONE and job.result["plan"] == plan.pk
    assert plan.inputs == inputs().as_json() and plan.by == owner
    assert set(plan.result) == {"format", "plan", "budget", "budgets", "sequential", "advice"}
    json.dumps(plan.result, allow_nan=False)
    for name in ("people", "prompts", "protocols"):
        assert len(plan.result["budgets"][name]) == len(plan.result["plan"][name])
    assert [one["name"] for one in plan.result["sequential"]["designs"]] == ["fixed", "group", "group", "anytime"]
    assert compute_plan(draft, owner, inputs()) == plan, "computed again"
    assert request_plan(draft, owner, inputs()) == job
    assert request_plan(draft, owner, inputs(difference=0.7)) != job


def test_a_plan_is_cancelled_after_a_part(draft, owner, few_runs, monkeypatch):
    job = request_plan(draft, owner, inputs())
    simulate = study_plans.simulate_part
    simulated = []

    def simulate_and_cancel(part, variation):
        simulated.append(part)
        jobs.request_cancel(job, owner)
        return simulate(part, variation)

    monkeypatch.setattr(study_plans, "simulate_part", simulate_and_cancel)
    jobs.run_waiting_jobs()
    job.refresh_from_db()
    assert (job.state, len(simulated), draft.size_plans.count()) == (Job.State.CANCELLED, 1, 0)
    assert request_plan(draft, owner, inputs()) != job, "a cancelled job would be returned for ever"


def test_only_editors_plan_and_only_drafts_are_planned(draft, owner):
    with pytest.raises(Http404):
        request_plan(draft, user("stranger"), inputs())
    study = choice_study(by=owner)
    with pytest.raises(ActionRefused, match="launched"):
        request_plan(study, owner, inputs())
    with pytest.raises(ActionRefused, match="launched"):
        choose_plan(study, stored_plan(study), owner)


def test_a_chosen_plan_sets_the_target_and_the_items_on_request(draft, owner):
    plan = stored_plan(draft)
    before = draft.version
    assert choose_plan(draft, plan, owner) == []
    assert (draft.size_plan, draft.target_n, draft.version) == (plan, 6, before + 1)
    assert choose_plan(draft, plan, owner, sets_target=True) == [
        "The target is 13.",
        "Section 1 (Two choices) shows 15 items to each annotator.",
    ]
    assert (draft.target_n, draft.sections.get().m) == (13, 15), "three pairs share the items"


def test_a_target_of_kept_annotators_counts_those_whose_answers_count(draft, owner):
    Study.objects.filter(pk=draft.pk).update(target_kind="kept", annotators_per_batch=5, target_cap=7)
    assert "The cap is 1.5 times the target." in choose_plan(draft, stored_plan(draft), owner, sets_target=True)
    assert (draft.target_n, draft.target_cap) == (15, None), "12 people in whole batches of 5"


def test_the_plan_of_another_study_is_refused(draft, owner):
    other = stored_plan(spa_draft(owner=owner))
    with pytest.raises(ActionRefused, match="another study"):
        choose_plan(draft, other, owner)


@pytest.mark.only_on("postgresql")  # the foreign key of two columns is there
def test_the_database_refuses_the_plan_of_another_study(draft, owner):
    other = stored_plan(spa_draft(owner=owner))
    with pytest.raises(IntegrityError, match="study_chose_a_plan_of_its_own"), transaction.atomic():
        Study.objects.filter(pk=draft.pk).update(size_plan=other)
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def test_plans_are_deleted_with_their_draft_and_never_otherwise(draft, owner):
    choose_plan(draft, stored_plan(draft), owner)
    with pytest.raises(AppendOnlyViolation):
        SizePlan.objects.update(seed=2)
    assert copying.delete_or_archive_draft(draft, owner) == "deleted"
    study = choice_study(by=owner)
    plan = stored_plan(study)
    with pytest.raises(AppendOnlyViolation):
        SizePlan.objects.filter(pk=plan.pk).delete()


@pytest.mark.only_on("postgresql")  # the triggers are there
@pytest.mark.parametrize("sql", ["DELETE FROM studies_sizeplan", "UPDATE studies_sizeplan SET seed = 2"])
def test_the_database_keeps_the_plans_of_a_launched_study(sql, owner):
    stored_plan(choice_study(by=owner))
    with pytest.raises(Exception, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql)


def test_viewers_do_not_plan(draft):
    from studies.models import StudyMember

    viewer = user("viewer")
    StudyMember.objects.create(study=draft, user=viewer, role="viewer")
    with pytest.raises(PermissionDenied):
        request_plan(draft, viewer, inputs())


@pytest.mark.slow
def test_a_shared_plan_has_the_numbers_of_one_process_digit_by_digit(draft, owner, few_runs, monkeypatch):
    """Another process computes every second piece, and the rows of the database keep all digits."""
    compute, by_others = results.compute_piece, []

    def compute_and_let_another_process_help(piece):
        if not by_others or by_others[-1] is None:
            by_others.append(piece)
            jobs.compute_open_part()
            by_others.append(None)
        return compute(piece)

    kind = jobs.kinds()[KIND]
    shared = replace(kind, part=compute_and_let_another_process_help)
    monkeypatch.setitem(jobs._kinds, KIND, shared)
    asked = inputs()
    draws = [Variation(sd_people=0.1 * n, sd_prompts=1 / (3 + n)) for n in range(3)]
    monkeypatch.setattr(tasks, "draws_of", lambda *given: draws)
    job = request_plan(draft, owner, asked)
    jobs.run_waiting_jobs()
    plan = draft.size_plans.get()
    alone = simulate_plan(asked, plan.seed, draws)
    assert plan.result == json.loads(json.dumps(alone))
    assert plan.seed == seed_of_job(job) and len(by_others) > 20
    assert plan.result["plan"]["settings"]["n_draws"] == 3
    for other in (simulate_plan(asked, plan.seed + 1, draws), simulate_plan(asked, plan.seed)):
        assert other["plan"]["planned"] != alone["plan"]["planned"]
