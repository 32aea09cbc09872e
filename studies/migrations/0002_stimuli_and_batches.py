"""What is judged, and what each annotator is given of it."""

from django.core.validators import MaxValueValidator, RegexValidator
from django.db import migrations, models
from django.db.models import CheckConstraint, F, Index, Q, UniqueConstraint

from studies.migrations._tables import link, moment, optional_link, table


class Migration(migrations.Migration):
    replaces = [
        ("studies", "0007_a_reference_is_of_a_kind"),
        ("studies", "0008_batches_hold_imported_answers"),
    ]
    dependencies = [("studies", "0001_studies_and_designs")]
    operations = [
        table(
            "Prompt",
            key=models.CharField(max_length=100),
            text=models.TextField(blank=True),
            source=models.TextField("source document", blank=True),
            media=models.CharField(max_length=80, blank=True, editable=False),
            domain=models.CharField(max_length=50, blank=True),
            language=models.CharField(
                max_length=12,
                blank=True,
                validators=[
                    RegexValidator(
                        "\\A(?:[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*)\\Z",
                        "This is not a language tag. Enter one such as en, de or pt-BR.",
                    )
                ],
            ),
            attributes=models.JSONField(default=dict, blank=True),
            study=link("studies.study", "prompts"),
            options={
                "base_manager_name": "objects",
                "ordering": ["key"],
                "constraints": [
                    CheckConstraint(condition=~Q(key=""), name="prompt_has_a_key"),
                    UniqueConstraint(fields=["study", "key"], name="prompt_key_once_per_study"),
                ],
            },
        ),
        table(
            "Output",
            sample=models.PositiveSmallIntegerField(default=0, validators=[MaxValueValidator(32767)]),
            format=models.CharField(
                max_length=8,
                choices=[
                    ("plain", "plain text"),
                    ("markdown", "Markdown"),
                    ("turns", "turns of a dialogue, one per line, as “speaker: text”"),
                ],
                default="plain",
            ),
            text=models.TextField(blank=True),
            media=models.CharField(max_length=80, blank=True, editable=False),
            alt=models.CharField("description of the image", max_length=300, blank=True),
            is_empty=models.BooleanField(
                "empty", default=False, help_text="The system returned an empty output, and annotators judge it."
            ),
            original=models.TextField(blank=True),
            language=models.CharField(
                max_length=12,
                blank=True,
                validators=[
                    RegexValidator(
                        "\\A(?:[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*)\\Z",
                        "This is not a language tag. Enter one such as en, de or pt-BR.",
                    )
                ],
            ),
            prompt=link("studies.prompt", "outputs"),
            system=link("studies.system", "outputs"),
            options={
                "base_manager_name": "objects",
                "ordering": ["prompt__key", "system__name", "sample"],
                "constraints": [
                    CheckConstraint(
                        condition=(Q(is_empty=False, media="") & ~Q(text=""))
                        | (Q(is_empty=False, text="") & ~Q(media=""))
                        | Q(is_empty=True, media="", text=""),
                        name="output_is_exactly_one_of_text_media_empty",
                    ),
                    UniqueConstraint(
                        fields=["system", "prompt", "sample"], name="output_sample_once_per_system_and_prompt"
                    ),
                ],
            },
        ),
        table(
            "Item",
            number=models.PositiveIntegerField(validators=[MaxValueValidator(999999999)]),
            kind=models.CharField(
                max_length=8, choices=[("live", "Live"), ("test", "Test"), ("practice", "Practice")], default="live"
            ),
            content=models.CharField(max_length=64, help_text="sha256 of prompt, sorted outputs and kind"),
            settled_at=moment(),
            retired_in=optional_link("studies.design", editable=False),
            prompt=link("studies.prompt", "items"),
            section=link("studies.section", "items"),
            study=link("studies.study", "items"),
            options={
                "base_manager_name": "objects",
                "ordering": ["section", "number"],
                "constraints": [
                    UniqueConstraint(fields=["section", "number"], name="item_number_once_per_section"),
                    UniqueConstraint(fields=["section", "content"], name="item_is_the_same_thing_judged_once"),
                ],
            },
        ),
        table(
            "Exposure",
            number=models.PositiveSmallIntegerField(),
            item=link("studies.item", "exposures"),
            output=link("studies.output", "exposures"),
            options={
                "base_manager_name": "objects",
                "ordering": ["item", "number"],
                "constraints": [
                    UniqueConstraint(fields=["item", "output"], name="exposure_output_once_per_item"),
                    UniqueConstraint(fields=["item", "number"], name="exposure_number_once_per_item"),
                ],
            },
        ),
        table(
            "Expected",
            low=models.FloatField(null=True, blank=True),
            high=models.FloatField(null=True, blank=True),
            explanation=models.TextField(blank=True),
            exposure=optional_link("studies.exposure"),
            item=link("studies.item", "expected"),
            question=link("studies.question"),
            options={
                "base_manager_name": "objects",
                "constraints": [
                    UniqueConstraint(fields=["item", "question"], name="expected_once_per_item_and_question"),
                    CheckConstraint(
                        condition=Q(exposure=None, high__gte=F("low"), low__isnull=False)
                        | Q(exposure__isnull=False, high=None, low=None),
                        name="expected_is_a_range_or_an_exposure",
                    ),
                ],
            },
        ),
        table(
            "Batch",
            number=models.PositiveIntegerField(validators=[MaxValueValidator(999999999)]),
            wanted=models.PositiveSmallIntegerField(default=1, validators=[MaxValueValidator(32767)]),
            claimed=models.PositiveSmallIntegerField(default=0),
            origin=models.CharField(
                max_length=11,
                choices=[
                    ("drawn", "Drawn"),
                    ("imported", "Imported"),
                    ("top_up", "Top Up"),
                    ("replacement", "Replacement"),
                    ("answered", "with imported answers"),
                    ("test", "Test"),
                ],
                default="drawn",
            ),
            key=models.CharField(max_length=100, blank=True),
            arm=link("studies.arm", "batches"),
            copy_of=optional_link("studies.batch", "copies"),
            study=link("studies.study", "batches"),
            options={
                "base_manager_name": "objects",
                "ordering": ["number"],
                "verbose_name_plural": "batches",
                "constraints": [
                    CheckConstraint(condition=Q(claimed__lte=F("wanted")), name="batch_claimed_at_most_wanted"),
                    UniqueConstraint(fields=["study", "number"], name="batch_number_once_per_study"),
                    UniqueConstraint(fields=["study", "key"], condition=~Q(key=""), name="batch_key_once_per_study"),
                ],
                "indexes": [
                    Index(
                        fields=["study", "claimed", "number"], condition=Q(claimed__lt=F("wanted")), name="batch_open"
                    )
                ],
            },
        ),
        table(
            "Placement",
            number=models.PositiveSmallIntegerField(),
            batch=link("studies.batch", "placements"),
            item=link("studies.item", "placements"),
            options={
                "base_manager_name": "objects",
                "ordering": ["batch", "number"],
                "constraints": [
                    UniqueConstraint(fields=["batch", "number"], name="placement_number_once_per_batch"),
                    UniqueConstraint(fields=["batch", "item"], name="placement_item_once_per_batch"),
                ],
            },
        ),
    ]
