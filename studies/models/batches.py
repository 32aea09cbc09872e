"""Batches hold items. Items hold the outputs that an annotator sees together."""

from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint

from .design import Arm, Design, Question, Section
from .fields import (
    NUMBER_VALIDATORS,
    SMALLINT_VALIDATORS,
    optional_noneditable_datetime_field,
    optional_protected_foreign_key,
    protected_foreign_key,
)
from .guards import DesignModel
from .stimuli import Output, Prompt
from .study import Study


class Item(DesignModel):
    """A prompt with the outputs shown for it. The same prompt and outputs are always the same row."""

    class Kind(models.TextChoices):
        LIVE = "live"
        TEST = "test"
        PRACTICE = "practice"

    class TestType(models.TextChoices):
        POSITIVE = "positive", "positive: a good text"
        NEGATIVE = "negative", "negative: the reference of another prompt"
        DAMAGED = "damaged", "damaged: a text that was made worse"
        GIVEN = "given", "given: from a file or by hand"

    may_add_after_launch = True
    mutable_fields = frozenset({"settled_at"})
    amendable_fields = frozenset({"retired_in"})

    study = protected_foreign_key(Study, "items")
    section = protected_foreign_key(Section, "items")
    number = models.PositiveIntegerField(validators=NUMBER_VALIDATORS)
    prompt = protected_foreign_key(Prompt, "items")
    kind = models.CharField(max_length=8, choices=Kind, default=Kind.LIVE)
    test_type = models.CharField(max_length=8, choices=TestType, blank=True, editable=False)
    content = models.CharField(max_length=64, help_text="sha256 of prompt, sorted outputs and kind")
    settled_at = optional_noneditable_datetime_field()
    retired_in = optional_protected_foreign_key(Design, editable=False)

    class Meta:
        ordering = ["section", "number"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["section", "number"], name="item_number_once_per_section"),
            UniqueConstraint(fields=["section", "content"], name="item_is_the_same_thing_judged_once"),
            CheckConstraint(
                name="item_test_type_only_of_test_questions",
                condition=Q(test_type="") | Q(kind="test", test_type__in=["positive", "negative", "damaged", "given"]),
            ),
        ]

    def __str__(self):
        return f"item {self.number}"


class Exposure(DesignModel):
    """One output in an item."""

    study_path = "item__study"
    may_add_after_launch = True

    item = protected_foreign_key(Item, "exposures")
    output = protected_foreign_key(Output, "exposures")
    number = models.PositiveSmallIntegerField()

    class Meta:
        ordering = ["item", "number"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["item", "output"], name="exposure_output_once_per_item"),
            UniqueConstraint(fields=["item", "number"], name="exposure_number_once_per_item"),
        ]


class Expected(DesignModel):
    """The expected answer to a test question or a practice item: a range of values, or the output that is to be chosen.

    ``about``: the output whose rating must be in the range, if the item shows several.
    """

    study_path = "item__study"
    may_add_after_launch = True

    item = protected_foreign_key(Item, "expected")
    question = protected_foreign_key(Question)
    low = models.FloatField(null=True, blank=True)
    high = models.FloatField(null=True, blank=True)
    exposure = optional_protected_foreign_key(Exposure)
    about = optional_protected_foreign_key(Exposure)
    explanation = models.TextField(blank=True)

    class Meta:
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["item", "question"], name="expected_once_per_item_and_question"),
            CheckConstraint(
                name="expected_is_a_range_or_an_exposure",
                condition=Q(low__isnull=False, high__gte=F("low"), exposure=None)
                | Q(low=None, high=None, exposure__isnull=False),
            ),
            CheckConstraint(
                name="expected_is_about_an_output_only_with_a_range",
                condition=Q(about=None) | Q(low__isnull=False),
            ),
        ]


class Batch(DesignModel):
    """The items for one annotator. ``wanted`` is the number of places; ``claimed`` counts assignments that are not released."""

    class Origin(models.TextChoices):
        DRAWN = "drawn"
        IMPORTED = "imported"
        TOP_UP = "top_up"
        REPLACEMENT = "replacement"
        ANSWERED = "answered", "with imported answers"
        TEST = "test"

    may_add_after_launch = True
    mutable_fields = frozenset({"claimed"})

    study = protected_foreign_key(Study, "batches")
    arm = protected_foreign_key(Arm, "batches")
    number = models.PositiveIntegerField(validators=NUMBER_VALIDATORS)
    wanted = models.PositiveSmallIntegerField(default=1, validators=SMALLINT_VALIDATORS)
    claimed = models.PositiveSmallIntegerField(default=0)
    origin = models.CharField(max_length=11, choices=Origin, default=Origin.DRAWN)
    copy_of = optional_protected_foreign_key("self", "copies")
    key = models.CharField(max_length=100, blank=True)

    class Meta:
        ordering = ["number"]
        verbose_name_plural = "batches"
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["study", "number"], name="batch_number_once_per_study"),
            UniqueConstraint(fields=["study", "key"], condition=~Q(key=""), name="batch_key_once_per_study"),
            CheckConstraint(name="batch_claimed_at_most_wanted", condition=Q(claimed__lte=F("wanted"))),
        ]
        indexes = [
            models.Index(
                fields=["study", "claimed", "number"], condition=Q(claimed__lt=F("wanted")), name="batch_open"
            ),
        ]

    def __str__(self):
        return f"batch {self.number}"


class Placement(DesignModel):
    """An item's place in a batch."""

    study_path = "batch__study"
    may_add_after_launch = True

    batch = protected_foreign_key(Batch, "placements")
    item = protected_foreign_key(Item, "placements")
    number = models.PositiveSmallIntegerField()

    class Meta:
        ordering = ["batch", "number"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["batch", "number"], name="placement_number_once_per_batch"),
            UniqueConstraint(fields=["batch", "item"], name="placement_item_once_per_batch"),
        ]
