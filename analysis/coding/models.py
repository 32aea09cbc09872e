"""Models of coding samples and codings. All rows are append-only."""

from django.conf import settings
from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint
from django.db.models.functions import Now

from annotators.models import Assignment, Response
from studies.models import Study
from studies.models.fields import optional_protected_foreign_key, protected_foreign_key
from studies.models.guards import AppendOnlyModel


class CodingSample(AppendOnlyModel):
    """A random sample that two people code, with its codebook and the rule that combines two codings.

    Both are declared before coding.
    """

    class Kind(models.TextChoices):
        EXPLANATIONS = "explanations", "explanations: which topics they mention"
        REJECTIONS = "rejections", "rejections: what is wrong with the work"

    class Rule(models.TextChoices):
        UNION = "union", "a label counts if one of the two coders gave it"
        INTERSECTION = "intersection", "a label counts if both coders gave it"
        BOTH_COUNTED = "both_counted", "both codings count: each label counts once per coder who gave it"
        THIRD = "third", "a third coder decides if the two differ; an undecided label does not count"

    study = protected_foreign_key(Study, "coding_samples")
    number = models.PositiveIntegerField()
    kind = models.CharField(max_length=12, choices=Kind)
    rule = models.CharField(max_length=12, choices=Rule)
    codebook = models.JSONField()
    per_arm = models.PositiveIntegerField()
    origin = models.CharField(max_length=8, choices=Assignment.Origin)
    at = models.DateTimeField(db_default=Now())
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)

    class Meta:
        ordering = ["-pk"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["study", "number"], name="coding_sample_number_once_per_study"),
            CheckConstraint(name="coding_sample_takes_somebody_of_each_arm", condition=Q(per_arm__gte=1)),
            CheckConstraint(
                name="coding_sample_is_of_a_known_kind", condition=Q(kind__in=["explanations", "rejections"])
            ),
            CheckConstraint(
                name="coding_sample_has_a_known_rule",
                condition=Q(rule__in=["union", "intersection", "both_counted", "third"]),
            ),
        ]

    def __str__(self):
        return f"sample {self.number}"


class CodingSeat(AppendOnlyModel):
    """A coder of a sample: two coders, and a third one if the rule needs it."""

    sample = protected_foreign_key(CodingSample, "seats")
    number = models.PositiveSmallIntegerField()
    user = protected_foreign_key(settings.AUTH_USER_MODEL, "coding_seats")

    class Meta:
        ordering = ["number"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["sample", "number"], name="coding_seat_number_once_per_sample"),
            UniqueConstraint(fields=["sample", "user"], name="coding_seat_once_per_person"),
            CheckConstraint(name="coding_seat_is_one_of_three", condition=Q(number__gte=1, number__lte=3)),
        ]


class CodingItem(AppendOnlyModel):
    """An item to code: one explanation, or (``response`` empty) all explanations of one annotator. One item per annotator."""

    sample = protected_foreign_key(CodingSample, "items")
    number = models.PositiveIntegerField()
    assignment = protected_foreign_key(Assignment, "+")
    response = optional_protected_foreign_key(Response)

    class Meta:
        ordering = ["number"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["sample", "number"], name="coding_item_number_once_per_sample"),
            UniqueConstraint(fields=["sample", "assignment"], name="coding_item_once_per_annotator"),
        ]


class Coding(AppendOnlyModel):
    """One coder's labels for one item. ``is_none``: the coder decided that no label applies.

    An item without a row is not coded. To change a coding, a row with a higher revision is added; the highest one counts.
    """

    item = protected_foreign_key(CodingItem, "codings")
    coder = protected_foreign_key(settings.AUTH_USER_MODEL, "codings")
    revision = models.PositiveSmallIntegerField(default=1)
    labels = models.TextField(blank=True, help_text="Keys of the codebook, separated by blanks.")
    is_none = models.BooleanField(default=False)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["item", "coder", "revision"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["item", "coder", "revision"], name="coding_revision_once_per_item_and_coder"),
            CheckConstraint(
                name="coding_gives_labels_or_says_that_none_applies",
                condition=(Q(labels="") & Q(is_none=True)) | (~Q(labels="") & Q(is_none=False)),
            ),
        ]
