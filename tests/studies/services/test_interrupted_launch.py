"""A launch stores its batches in short transactions. One that is stopped in between leaves nothing that counts."""

from collections.abc import Callable

import pytest
from django.db import transaction
from django.utils import timezone

from annotators.imports.writing import remove_unfinished_imports
from annotators.models import Assignment
from annotators.places.batch_plan import delete_test_runs, start_test_run
from studies.design import checklist, unfinished
from studies.models import Batch, Exposure, Item, Job, Placement, Study
from studies.services import databases, drafts, jobs, lifecycle
from tests.builders import add_rating, draft_study

pytestmark = pytest.mark.django_db(transaction=True)
ROWS = (Item, Exposure, Batch, Placement)


class Killed(BaseException):
    """What no code of the product catches to go on."""


def draft() -> Study:
    study = draft_study(systems=("ada", "bob"), prompts=6, target_n=5, annotators_per_batch=1)
    add_rating(study, position=1, m=3)
    return study


def launch(study: Study, job: Job | None = None) -> Study:
    study = Study.objects.get(pk=study.pk)
    return lifecycle.launch(study, None, [problem.key for problem in checklist.find_design_problems(study)], job=job)


def rows_of(study: Study) -> list:
    """What a launch has stored, without ids."""
    return [
        list(study.items.order_by("number").values_list("number", "prompt__key", "kind")),
        sorted(
            Exposure.objects.filter(item__study=study).values_list("item__number", "output__system__name", "number")
        ),
        list(study.batches.order_by("number").values_list("number", "wanted", "origin", "arm__name")),
        sorted(Placement.objects.filter(batch__study=study).values_list("batch__number", "item__number", "number")),
    ]


@pytest.fixture
def wanted() -> list:
    return rows_of(launch(draft()))


@pytest.fixture
def after_each_turn(monkeypatch) -> Callable[[Callable[[int], object]], None]:
    """Call a function after each transaction of the launch, with the transaction's number."""
    monkeypatch.setattr(unfinished, "CHUNK", 4)

    def calls(function: Callable[[int], object]) -> None:
        turns = iter(range(1000))
        monkeypatch.setattr(databases, "let_others_write", lambda seconds: function(next(turns)))

    return calls


def stop_at(turn: int) -> Callable[[int], None]:
    def stop(now: int) -> None:
        assert not transaction.get_connection().in_atomic_block
        if now == turn:
            raise Killed

    return stop


def delete_an_item(study: Study) -> None:
    if item := study.items.filter(placements=None).first():
        drafts.delete_item_with_exposures_and_expected(item)


# 17 turns store six items and five batches, and the last one launches.
TURNS = (0, 1, 4, 7, 10)


@pytest.mark.parametrize("turn", TURNS[:-1])  # a test run has three of the items, which makes the turns fewer
def test_a_stopped_launch_leaves_nothing(after_each_turn, wanted, turn):
    study = draft()
    start_test_run(study, None)
    before = (rows_of(study), Assignment.objects.count())
    after_each_turn(stop_at(turn))
    with pytest.raises(Killed):
        launch(study)
    study.refresh_from_db()
    assert study.is_draft and (rows_of(study), Assignment.objects.count()) == before
    after_each_turn(lambda now: None)
    assert rows_of(launch(study)) == wanted


@pytest.mark.parametrize("turn", TURNS)
def test_a_killed_launch_is_done_again_or_removed(after_each_turn, monkeypatch, wanted, turn):
    for is_done_again in (True, False):
        study = draft()
        job = jobs.submit("launch", study=study, by=None)
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(lifecycle, "delete_in_turns", keep_after_first(lifecycle.delete_in_turns))
            after_each_turn(stop_at(turn))
            launch(study, job)
        after_each_turn(lambda now: None)
        assert Study.objects.get(pk=study.pk).is_draft
        assert not study.batches.exclude(origin=Batch.Origin.TEST).exists()
        if is_done_again:
            assert rows_of(launch(study, job)) == wanted
        else:
            left = study.batches.exists() or study.items.exists()
            Job.objects.filter(pk=job.pk).update(state="failed", ended_at=timezone.now())
            assert remove_unfinished_imports() == left
            assert rows_of(study) == [[], [], [], []]


def keep_after_first(function):
    """A killed process removes what an earlier one left, and nothing of its own."""
    calls = iter(range(10))
    return lambda *arguments: function(*arguments) if next(calls) == 0 else None


def test_items_of_a_test_run_get_the_numbers_that_they_have_without_it(wanted):
    study = draft()
    start_test_run(study, None)
    assert study.items.exists()
    assert rows_of(launch(study)) == wanted and not Assignment.objects.exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda study: Study.objects.filter(pk=study.pk).update(public_title="Edited meanwhile"),
        lambda study: Study.objects.filter(pk=study.pk).update(version=study.version + 1),
        lambda study: study.batches.exists() and delete_test_runs(study, None) or delete_an_item(study),
    ],
)
@pytest.mark.parametrize("turn", [1, 7, 10])
def test_an_edit_between_two_transactions_ends_the_launch(after_each_turn, change, turn):
    study = draft()
    after_each_turn(lambda now: change(study) if now == turn else None)
    with pytest.raises(lifecycle.ActionRefused, match="edited during the launch"):
        launch(study)
    assert Study.objects.get(pk=study.pk).is_draft and rows_of(study) == [[], [], [], []]


def test_nobody_deletes_test_runs_or_starts_one_while_the_job_of_a_launch_runs(after_each_turn, wanted):
    study, refused = draft(), []

    def tries(now: int) -> None:
        for act in (start_test_run, delete_test_runs) if now == 8 else ():
            with pytest.raises(lifecycle.ActionRefused, match="or it is being launched"):
                act(study, None)
            refused.append(act)

    after_each_turn(tries)
    with jobs.running_here("launch", study=study, by=None) as (job, _):
        launch(study, job)
    assert rows_of(study) == wanted and refused == [start_test_run, delete_test_runs]


def test_a_transaction_before_the_last_stores_a_limited_number_of_rows(after_each_turn):
    study, counts = draft(), [0]
    after_each_turn(lambda now: counts.append(sum(model.objects.count() for model in ROWS)))
    launch(study)
    grown = [after - before for before, after in zip(counts, counts[1:], strict=False)]
    assert max(grown) == 4 and sum(grown) == 6 + 12 + 5 + 15
