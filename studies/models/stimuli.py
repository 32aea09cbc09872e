"""Stimuli: the prompts of a study and the outputs of its systems."""

from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint

from .design import System
from .fields import LANGUAGE_VALIDATORS, SMALLINT_VALIDATORS, protected_foreign_key
from .guards import DesignModel
from .study import Study


class Prompt(DesignModel):
    study = protected_foreign_key(Study, "prompts")
    key = models.CharField(max_length=100)
    text = models.TextField(blank=True)
    source = models.TextField("source document", blank=True)
    media = models.CharField(max_length=80, blank=True, editable=False)
    domain = models.CharField(max_length=50, blank=True)
    group = models.CharField(
        max_length=100,
        blank=True,
        help_text="The document, dialogue or topic of the prompt. Prompts with the same group belong together. Empty: the prompt is alone.",
    )
    language = models.CharField(max_length=12, blank=True, validators=LANGUAGE_VALIDATORS)
    attributes = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["key"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["study", "key"], name="prompt_key_once_per_study"),
            CheckConstraint(name="prompt_has_a_key", condition=~Q(key="")),
        ]

    def __str__(self):
        return self.key


class Output(DesignModel):
    """The output of a system for a prompt. ``original`` keeps the text from before preparation."""

    class Format(models.TextChoices):
        PLAIN = "plain", "plain text"
        MARKDOWN = "markdown", "Markdown"
        CODE = "code", "code, in letters of one width, with its line breaks"
        TURNS = "turns", "turns of a dialogue, one per line, as “speaker: text”"

    study_path = "system__study"

    system = protected_foreign_key(System, "outputs")
    prompt = protected_foreign_key(Prompt, "outputs")
    sample = models.PositiveSmallIntegerField(default=0, validators=SMALLINT_VALIDATORS)
    format = models.CharField(max_length=8, choices=Format, default=Format.PLAIN)
    text = models.TextField(blank=True)
    media = models.CharField(max_length=80, blank=True, editable=False)
    alt = models.CharField("description of the image", max_length=300, blank=True)
    is_empty = models.BooleanField(
        "empty", default=False, help_text="The system returned an empty output, and annotators judge it."
    )
    original = models.TextField(blank=True)
    language = models.CharField(max_length=12, blank=True, validators=LANGUAGE_VALIDATORS)
    warning = models.CharField(
        max_length=200,
        blank=True,
        default="",
        db_default="",
        help_text="What may disturb people. They read this first, open the output themselves, and need not judge it.",
    )

    class Meta:
        ordering = ["prompt__key", "system__name", "sample"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["system", "prompt", "sample"], name="output_sample_once_per_system_and_prompt"),
            CheckConstraint(
                name="output_is_exactly_one_of_text_media_empty",
                condition=(Q(media="", is_empty=False) & ~Q(text=""))
                | (Q(text="", is_empty=False) & ~Q(media=""))
                | Q(text="", media="", is_empty=True),
            ),
        ]

    def __str__(self):
        return f"{self.system} on {self.prompt}"
