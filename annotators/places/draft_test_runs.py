"""Test runs: a researcher takes part in a draft.

The batch and the assignment have the origin ``test`` and are never counted.

Only this module, ``assign`` and ``annotators.imports`` create Assignments. The data of test runs have their own range
of numbers and are deleted at the launch.
"""

from django.db import transaction
from django.db.models import F, Max
from django.db.models.functions import Now

from annotators.models import (
    Annotator,
    Assignment,
    Inquiry,
    OutcomePay,
    PageVisit,
    PanelSecret,
    Recruitment,
    RecruitmentArm,
    Response,
)
from studies.access import Action, check_permission_or_404
from studies.design.checklist import find_design_problems
from studies.design.draw import BatchDraw, DrawnBatch, UnfillableBatch, store_drawn_batches
from studies.models import FIRST_TEST_NUMBER, Arm, Batch, Expected, Exposure, Item, Placement, Study
from studies.models.guards import allowing_erasure
from studies.protocols import REGISTRY
from studies.services.drafts import locked_draft
from studies.services.lifecycle import ActionRefused

from .assign import get_or_create_annotator

TEST_POOL = "test"


def draw_first_batch(study: Study, arm: Arm | None = None) -> DrawnBatch:
    """Return the first batch that the draft's design draws, of this arm if given.

    Raises ActionRefused with the reason.
    """
    if not study.arms.exists():
        raise ActionRefused("The study has no arm. Add one under Arms.")
    if unknown := [section for section in study.sections.all() if section.protocol not in REGISTRY]:
        raise ActionRefused(
            f"The protocol {unknown[0].protocol} of section {unknown[0].position} is not installed. Install it, or delete the section."
        )
    try:
        return next(batch for batch in BatchDraw(study).batches() if arm is None or batch.arm_id == arm.pk)
    except UnfillableBatch as unfillable:
        fields = ("arms", "prompts", "outputs", "systems", "contrasts")
        problems = (
            problem.text for problem in find_design_problems(study) if problem.is_blocking and problem.field in fields
        )
        raise ActionRefused(next(problems, str(unfillable))) from None


@transaction.atomic
def create_test_batch_and_assignment(study: Study, arm: Arm | None = None, seed: int | None = None) -> Assignment:
    """Create a batch and an assignment of origin ``test``.

    The batch and its new items have numbers from FIRST_TEST_NUMBER.
    """
    study = Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study.pk)
    if study.state != Study.State.DRAFT:
        raise ActionRefused("Test runs are possible only in a draft. Open the study's link, or look at the preview.")
    drawn = draw_first_batch(study, arm)
    earlier_pks = set(study.items.values_list("pk", flat=True))
    last = study.batches.filter(number__gte=FIRST_TEST_NUMBER).aggregate(n=Max("number"))["n"]
    number = FIRST_TEST_NUMBER if last is None else last + 1
    batch = store_drawn_batches(study, [drawn], places_per_batch=1, origin=Batch.Origin.TEST, first_number=number)[0]
    new_items = Item.objects.filter(study=study, number__lt=FIRST_TEST_NUMBER).exclude(pk__in=earlier_pks)
    _renumber(new_items)
    options = {} if seed is None else {"seed": seed}
    assignment = Assignment.objects.create(
        study=study,
        batch=batch,
        annotator=get_or_create_annotator(TEST_POOL, ""),
        origin=Assignment.Origin.TEST,
        started_at=Now(),
        **options,
    )
    assignment.refresh_from_db()
    return assignment


def _renumber(items) -> None:
    # Move the numbers out of the range that the launch will use. One UPDATE, because a number must be unique at every
    # step.
    top = Item.objects.filter(pk__in=items.values("pk")).aggregate(n=Max("number"))["n"]
    if top is None:
        return
    numbered_items = Item.objects.filter(section__in=items.values("section"), number__gte=FIRST_TEST_NUMBER)
    start = max(FIRST_TEST_NUMBER, (numbered_items.aggregate(n=Max("number"))["n"] or 0) + 1)
    items.update(number=F("number") + start)


def start_test_run(study: Study, by, arm: Arm | None = None) -> Assignment:
    """Start a test run of this researcher, who answers on the annotators' own pages. Raises ActionRefused."""
    check_permission_or_404(by, Action.EDIT, study)
    if study.archived_at:
        raise ActionRefused("The study is archived. Bring it back first.")
    return create_test_batch_and_assignment(study, arm)


def delete_test_runs(study: Study, by) -> int:
    """Delete the test runs of a draft and return their number."""
    with locked_draft(study.pk, by) as draft:
        return erase_test_run_data(draft)


def erase_test_run_data(study: Study, **signal_kwargs: object) -> int:
    """Delete all data of test runs: answers, visits, assignments, batches, and the items that only they used."""
    tests = Assignment.objects.filter(study=study, origin=Assignment.Origin.TEST)
    batches = Batch.objects.filter(study=study, origin=Batch.Origin.TEST)
    if not tests.exists() and not batches.exists():
        return 0
    with allowing_erasure():
        people = list(tests.values_list("annotator_id", flat=True))
        Response.objects.filter(assignment__in=tests).delete()
        PageVisit.objects.filter(assignment__in=tests).delete()
        Inquiry.objects.filter(assignment__in=tests).delete()
        n, _ = tests.delete()
        Annotator.objects.filter(pk__in=people, pool=TEST_POOL, assignments=None).delete()
        Placement.objects.filter(batch__in=batches).delete()
        batches.delete()
        alone = Item.objects.filter(study=study, number__gte=FIRST_TEST_NUMBER, placements=None)
        Expected.objects.filter(item__in=alone).delete()
        Exposure.objects.filter(item__in=alone).delete()
        alone.delete()
    return n


def delete_draft_recruitments(study: Study, **signal_kwargs: object) -> None:
    """Delete the recruitments of a draft before the draft itself is deleted. Drafts have no real annotators."""
    PanelSecret.objects.filter(recruitment__study=study).delete()
    RecruitmentArm.objects.filter(recruitment__study=study).delete()
    OutcomePay.objects.filter(recruitment__study=study).delete()
    Recruitment.objects.filter(study=study).delete()
