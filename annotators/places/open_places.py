"""Open places: which batches an annotator may get, and whether another place may become free."""

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from annotators.models import Annotator, Assignment
from studies.models import Batch, Item, Placement, Section, Study
from studies.protocols import REGISTRY


def claimable_batches(study: Study, annotator: Annotator, arms=(), own_batch_ids=()) -> QuerySet[Batch]:
    """Return the batches with a free place for this annotator, in the order in which they are claimed.

    Batches with an item that the annotator was given before are skipped, even if the place was released. The
    annotator's own released places (``own_batch_ids``) may be taken again.
    """
    batches = Batch.objects.filter(study=study, claimed__lt=F("wanted"), number__lt=study.open_to)
    # Read the ids first. As a subquery, PostgreSQL without statistics (right after a launch) ran it again for each
    # batch and placement. That took minutes for a hundred batches, even for people who had been given nothing.
    placements = Placement.objects.filter(batch__study=study, batch__assignments__annotator=annotator).order_by()
    placements = placements.exclude(
        item__kind=Item.Kind.PRACTICE
    )  # practice items are the same in all batches of an arm
    if items := list(placements.values_list("item", flat=True)):
        repeated = Placement.objects.filter(batch=OuterRef("pk"), item__in=items)
        batches = batches.filter(Q(pk__in=list(own_batch_ids)) | ~Exists(repeated))
    if arms:
        batches = batches.filter(arm__in=arms)
    return batches.order_by("claimed", "number")


def can_places_become_free_or_be_added(study: Study) -> bool:
    live = Assignment.objects.filter(study=study, released_at=None, submitted_at=None).exclude(origin="test")
    return live.exists() or unsettled_items_of_top_up_sections(study).exists()


def is_for_one_annotator(study: Study) -> bool:
    """Return whether one annotator does all batches. No query if the study allows only one batch per annotator."""
    return study.batches_per_annotator > 1 and any(
        REGISTRY[section.protocol].is_for_one_annotator(section)
        for section in study.sections.all()
        if section.protocol in REGISTRY
    )


def sections_that_may_need_top_ups(study: Study) -> list[Section]:
    """Return the sections whose items may need more answers than their batches have places."""
    return [
        section
        for section in study.sections.all()
        if section.protocol in REGISTRY and REGISTRY[section.protocol].may_need_top_ups(section)
    ]


def unsettled_items_of_top_up_sections(study: Study) -> QuerySet[Item]:
    """Return the open, undecided items of such sections, which one more annotator may get."""
    open_now = Placement.objects.filter(
        item=OuterRef("pk"), batch__number__lt=study.open_to, item__section__in=sections_that_may_need_top_ups(study)
    )
    return Item.objects.filter(Exists(open_now), study=study, kind=Item.Kind.LIVE, settled_at=None, retired_in=None)
