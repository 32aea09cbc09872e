"""Test runs change nothing of a launch: not the checklist, not the draw, not the design. A launch that is refused keeps them."""

import pytest

from annotators.models import Assignment, Response
from annotators.places.batch_plan import start_test_run
from studies.design import checklist
from studies.design.draw import draw_batches
from studies.design.serialization import canonical_json, serialize_design
from studies.design.unfinished import UnfinishedBatches
from studies.design.workload import estimate_stored_or_trial_batch_workloads
from studies.models import FIRST_TEST_NUMBER, Batch, Exposure, Item, Output, Placement, Study
from studies.protocols import REGISTRY
from studies.services import lifecycle
from studies.services.lifecycle import ActionRefused, NotReady
from tests.players import answered, open_page
from tests.samples import sample_draft

pytestmark = pytest.mark.django_db


def add_test_rows(study: Study) -> None:
    """In each section, items of test runs with one to four outputs of every prompt, placed in a batch of a test run."""
    for number, arm in enumerate(study.arms.all()):
        batch = Batch.objects.create(
            study=study, arm=arm, number=FIRST_TEST_NUMBER + 100 + number, wanted=1, origin=Batch.Origin.TEST
        )
        place = 0
        for section in study.sections.all():
            outputs = list(Output.objects.filter(system__study=study).order_by("prompt", "pk"))
            for n in range(len(outputs)):
                shown = [one for one in outputs if one.prompt_id == outputs[n].prompt_id][: n % 4 + 1]
                item = Item.objects.create(
                    study=study, section=section, number=FIRST_TEST_NUMBER + 1000 * number + 100 + n, prompt=outputs[n].prompt, content=f"{number} {n}",
                )  # fmt: skip
                for position, output in enumerate(shown):
                    Exposure.objects.create(item=item, output=output, number=position)
                Placement.objects.create(batch=batch, item=item, number=place)
                place += 1


def everything(study: Study) -> list:
    """What a launch reads of a draft: problems, batches, the design and the loads of batches."""
    study = Study.objects.get(pk=study.pk)
    return [
        [(problem.text, problem.field, problem.is_blocking) for problem in checklist.find_design_problems(study)],
        draw_batches(study, 0, 3),
        canonical_json(serialize_design(study)),
        estimate_stored_or_trial_batch_workloads(study),
    ]


@pytest.mark.parametrize("slug", REGISTRY)
def test_rows_of_test_runs_change_nothing_that_a_launch_reads(slug):
    study = sample_draft(slug, 2, 4)
    before = everything(study)
    add_test_rows(study)
    assert everything(study) == before
    launched = lifecycle.launch(study, study.owner, [problem.key for problem in checklist.find_design_problems(study)])
    assert not launched.items.filter(number__gte=FIRST_TEST_NUMBER).exists()
    assert not launched.batches.filter(origin=Batch.Origin.TEST).exists()


def test_a_refused_launch_keeps_the_test_runs(monkeypatch):
    study = sample_draft("rating", 2, 4)
    run = start_test_run(study, study.owner)
    open_page(run)
    answered(run)
    kept = (Assignment.objects.count(), Response.objects.count())
    assert kept[1] > 0
    Study.objects.filter(pk=study.pk).update(contact="")
    with pytest.raises(NotReady):
        lifecycle.launch(study, study.owner)
    Study.objects.filter(pk=study.pk).update(contact="us@example.org")
    keys = [problem.key for problem in checklist.find_design_problems(Study.objects.get(pk=study.pk))]

    def edit(*_, **__):
        Study.objects.filter(pk=study.pk).update(public_title="Edited meanwhile")
        return []

    with monkeypatch.context() as patched, pytest.raises(ActionRefused, match="edited during the launch"):
        patched.setattr(lifecycle, "draw_batches", edit)
        lifecycle.launch(study, study.owner, keys)
    with monkeypatch.context() as patched, pytest.raises(RuntimeError):
        patched.setattr(UnfinishedBatches, "publish", lambda self: (_ for _ in ()).throw(RuntimeError))
        lifecycle.launch(study, study.owner, keys)
    assert (Assignment.objects.count(), Response.objects.count()) == kept
    assert lifecycle.launch(study, study.owner, keys).state == "launched"
    assert (Assignment.objects.count(), Response.objects.count()) == (0, 0)
