"""Settle items whose labels agree.

Others go to one more annotator in a top-up batch, if the labelling strategy says so.

Only this module writes ``Item.settled_at`` and creates batches of origin ``top_up``. It locks the study, and it counts
places, not answers. An item with an open place for another label gets no second one, so no item gets a fourth label.
"""

from collections import defaultdict
from collections.abc import Sequence

from django.db import transaction
from django.db.models import F, Max, QuerySet
from django.db.models.functions import Now

from annotators.models import Assignment, Response
from studies.models import FIRST_TEST_NUMBER, Batch, Item, Placement, Section, Study, audit
from studies.protocols import REGISTRY

from .open_places import sections_that_may_need_top_ups


def settle_or_top_up_items() -> int:
    """Settle the items of all running studies. Return the number of items that go to one more annotator."""
    return sum(settle_or_top_up_study_items(study) for study in Study.objects.filter(state__in=Study.RUNNING))


def settle_or_top_up_study_items(study: Study) -> int:
    """Mark decided items, and put undecided items into top-up batches.

    A top-up batch is made when it is full, or when no other place is open. Return the number of items in new batches.
    """
    if not sections_that_may_need_top_ups(study):
        return 0
    with transaction.atomic():
        study = Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study.pk)
        if study.state not in Study.RUNNING:
            return 0
        return sum(_settle_section(study, section) for section in sections_that_may_need_top_ups(study))


def submitted_and_not_replaced_assignments(study: Study) -> QuerySet[Assignment]:
    """Return the assignments whose labels count: submitted in time and not replaced.

    A later withdrawal does not unsettle an item, and its place stays taken.
    """
    return Assignment.objects.filter(
        study=study, submitted_at__isnull=False, released_at=None, replaced_at=None, batch__number__lt=FIRST_TEST_NUMBER
    )


def _settle_section(study: Study, section: Section) -> int:
    # Read places first. If an answer arrives between the two queries, its place still counts as open until the next
    # run.
    places = _place_counts_by_item(study, section)
    labels = _labels(study, section)
    protocol = REGISTRY[section.protocol]
    questions = list(section.questions.values_list("pk", flat=True))
    items = Item.objects.filter(section=section)
    settled = set(items.filter(settled_at__isnull=False).values_list("pk", flat=True))
    decided, reopened, disputed = [], [], []
    for item, (n_answered, all_places) in places.items():
        item_labels = labels.get(item, {})
        if n_answered and all(
            protocol.is_item_settled(section, item_labels.get(question, [])) for question in questions
        ):
            decided.append(item)
        elif n_answered < all_places:
            reopened.append(item)  # an answer is missing, perhaps because an annotator was replaced
        elif item not in settled:
            disputed.append(item)
    items.filter(pk__in=set(decided) - settled).update(settled_at=Now())
    items.filter(pk__in=settled.intersection(reopened)).update(settled_at=None)
    return _top_up(study, section, disputed)


def _labels(study: Study, section: Section) -> dict[int, dict[int, list[str]]]:
    """Return the labels by item and question, in the order of their arrival."""
    rows = (
        Response.objects.filter(
            assignment__in=submitted_and_not_replaced_assignments(study),
            question__section=section,
            item__kind=Item.Kind.LIVE,
        )
        .order_by("received_at", "pk")
        .values_list("item_id", "question_id", "chosen__output__system_id", "choice", "skip_reason")
    )
    labels: dict[int, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for item, question, chosen, choice, skipped in rows:
        labels[item][question].append(str(chosen or choice or f"skipped {skipped}"))
    return labels


def _place_counts_by_item(study: Study, section: Section) -> dict[int, tuple[int, int]]:
    """Return by item (answered places, all places). The place of a replaced person does not count; its copy does."""
    answered: dict[int, int] = defaultdict(int)
    for batch in submitted_and_not_replaced_assignments(study).values_list("batch_id", flat=True):
        answered[batch] += 1
    replaced: dict[int, int] = defaultdict(int)
    for batch in Assignment.objects.filter(study=study, replaced_at__isnull=False, released_at=None).values_list(
        "batch_id", flat=True
    ):
        replaced[batch] += 1
    counts: dict[int, tuple[int, int]] = {}
    placed = Placement.objects.filter(
        item__section=section,
        item__kind=Item.Kind.LIVE,
        item__retired_in=None,
        batch__number__lt=min(study.open_to, FIRST_TEST_NUMBER),
    ).order_by("item__number", "batch__number")
    for item, batch, n_wanted in placed.values_list("item_id", "batch_id", "batch__wanted"):
        n_answered, total = counts.get(item, (0, 0))
        counts[item] = n_answered + answered[batch], total + n_wanted - replaced[batch]
    return counts


def _top_up(study: Study, section: Section, disputed: Sequence[int]) -> int:
    is_any_open = study.batches.filter(claimed__lt=F("wanted"), number__lt=study.open_to).exists()
    n = len(disputed) - len(disputed) % section.m if is_any_open else len(disputed)
    if not n:
        return 0
    chunks = [disputed[start : min(start + section.m, n)] for start in range(0, n, section.m)]
    last = study.batches.filter(number__lt=FIRST_TEST_NUMBER).aggregate(last=Max("number"))["last"]
    arms = dict(
        Placement.objects.filter(item__in=disputed[:n])
        .order_by("-batch__number")
        .values_list("item_id", "batch__arm_id")
    )
    batches = Batch.objects.bulk_create(
        Batch(study=study, arm_id=arms[chunk[0]], number=last + offset, wanted=1, origin=Batch.Origin.TOP_UP)
        for offset, chunk in enumerate(chunks, 1)
    )
    Placement.objects.bulk_create(
        Placement(batch=batch, item_id=item, number=number)
        for batch, chunk in zip(batches, chunks, strict=True)
        for number, item in enumerate(chunk)
    )
    Study.objects.filter(pk=study.pk).update(open_to=last + len(chunks) + 1)
    audit.record("top up", study=study, by=None, section=section.position, items=n, batches=len(chunks))
    return n
