"""Open places: which batches an annotator may be given, and whether another place may become free."""

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from annotators.models import Annotator, Assignment
from studies.models import Batch, Item, Placement, Section, Study
from studies.protocols import REGISTRY


def open_batches(study: Study, annotator: Annotator, arms=(), own=()) -> QuerySet[Batch]:
    """Batches with a free place for this annotator, the next to be claimed first.

    A batch that holds an item already given to them is passed over, whatever became of it; their own released places (``own``)
    may be taken again.
    """
    batches = Batch.objects.filter(study=study, claimed__lt=F("wanted"), number__lt=study.open_to)
    # Read first, and passed on as numbers. As a query within the query it was planned anew for each batch and placement where the
    # database had not counted the rows of a study just launched: minutes for a hundred batches, for people who had been given nothing.
    given = Placement.objects.filter(batch__study=study, batch__assignments__annotator=annotator).order_by()
    given = given.exclude(item__kind=Item.Kind.PRACTICE)  # the same for everybody of an arm, in each of their batches
    if items := list(given.values_list("item", flat=True)):
        met = Placement.objects.filter(batch=OuterRef("pk"), item__in=items)
        batches = batches.filter(Q(pk__in=list(own)) | ~Exists(met))
    if arms:
        batches = batches.filter(arm__in=arms)
    return batches.order_by("claimed", "number")


def can_place_become_free(study: Study) -> bool:
    live = Assignment.objects.filter(study=study, released_at=None, submitted_at=None).exclude(origin="test")
    return live.exists() or unsettled_items(study).exists()


def is_for_one_annotator(study: Study) -> bool:
    """Whether all batches are one annotator's. Nobody can be given several where the study does not say so: no query then."""
    return study.batches_per_annotator > 1 and any(
        REGISTRY[section.protocol].is_for_one_annotator(section)
        for section in study.sections.all()
        if section.protocol in REGISTRY
    )


def settling_sections(study: Study) -> list[Section]:
    """Sections whose items may want more answers than their batches have places."""
    return [
        section
        for section in study.sections.all()
        if section.protocol in REGISTRY and REGISTRY[section.protocol].settles_items(section)
    ]


def unsettled_items(study: Study) -> QuerySet[Item]:
    """Items that may be given to one more annotator: open, of such sections, and not decided."""
    open_now = Placement.objects.filter(
        item=OuterRef("pk"), batch__number__lt=study.open_to, item__section__in=settling_sections(study)
    )
    return Item.objects.filter(Exists(open_now), study=study, kind=Item.Kind.LIVE, settled_at=None, retired_in=None)
