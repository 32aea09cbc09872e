"""Analyses that were run, the tokens of programs, and what coders say of explanations."""

from django.conf import settings
from django.db import migrations, models
from django.db.models import CheckConstraint, Q, UniqueConstraint
from django.db.models.functions import Now

from studies.migrations._tables import link, moment, optional_link, table


class Migration(migrations.Migration):
    initial = True
    # Made by these before 0.1.0. Where the first of them was applied and the last was not, Django finds no way and says so.
    replaces = [
        ("analysis", "0001_analyses_are_numbered"),
        ("analysis", "0004_codings_are_append_only"),
    ]
    dependencies = [("annotators", "0004_guards"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]
    operations = [
        table(
            "AnalysisRun",
            number=models.PositiveIntegerField(),
            parameters=models.JSONField(default=dict),
            responses_n=models.PositiveIntegerField(),
            responses_sha256=models.CharField(max_length=64),
            design_sha256s=models.JSONField(default=list),
            code_version=models.CharField(max_length=80),
            seed=models.CharField(max_length=64),
            result=models.JSONField(),
            result_sha256=models.CharField(max_length=64),
            at=models.DateTimeField(db_default=Now()),
            by=optional_link(settings.AUTH_USER_MODEL),
            study=link("studies.study", "analyses"),
            options={
                "base_manager_name": "objects",
                "ordering": ["-number"],
                "constraints": [UniqueConstraint(fields=["study", "number"], name="analysis_number_once_per_study")],
            },
        ),
        table(
            "Figure",
            name=models.CharField(max_length=60),
            svg=models.TextField(),
            pdf=models.BinaryField(),
            run=link("analysis.analysisrun", "figures"),
            options={
                "base_manager_name": "objects",
                "constraints": [UniqueConstraint(fields=["run", "name"], name="figure_name_once_per_analysis")],
            },
        ),
        table(
            "ApiToken",
            name=models.CharField(max_length=100, help_text="The program that uses the token."),
            hash=models.CharField(max_length=64, editable=False),
            scope=models.CharField(
                max_length=5, choices=[("read", "read"), ("write", "read and write")], default="read"
            ),
            created_at=models.DateTimeField(db_default=Now()),
            expires_at=models.DateTimeField(null=True, blank=True),
            revoked_at=moment(),
            used_at=moment(),
            study=models.ForeignKey(
                "studies.study",
                on_delete=models.CASCADE,
                related_name="api_tokens",
                null=True,
                blank=True,
                help_text="Only this study. Empty: all studies of the user.",
            ),
            user=models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"),
            options={
                "constraints": [
                    UniqueConstraint(fields=["hash"], name="api_token_hash_once"),
                    CheckConstraint(condition=~Q(hash=""), name="api_token_is_hashed"),
                ]
            },
        ),
        table(
            "CodingSample",
            number=models.PositiveIntegerField(),
            kind=models.CharField(
                max_length=12,
                choices=[
                    ("explanations", "explanations: which topics they mention"),
                    ("rejections", "rejections: what is wrong with the work"),
                ],
            ),
            rule=models.CharField(
                max_length=12,
                choices=[
                    ("union", "a label counts if one of the two coders gave it"),
                    ("intersection", "a label counts if both coders gave it"),
                    ("both_counted", "both codings count: each label counts once per coder who gave it"),
                    ("third", "a third coder decides if the two differ; an undecided label does not count"),
                ],
            ),
            codebook=models.JSONField(),
            per_arm=models.PositiveIntegerField(),
            origin=models.CharField(
                max_length=8, choices=[("live", "Live"), ("robot", "Robot"), ("imported", "Imported"), ("test", "Test")]
            ),
            at=models.DateTimeField(db_default=Now()),
            by=optional_link(settings.AUTH_USER_MODEL),
            study=link("studies.study", "coding_samples"),
            options={
                "base_manager_name": "objects",
                "ordering": ["-pk"],
                "constraints": [
                    UniqueConstraint(fields=["study", "number"], name="coding_sample_number_once_per_study"),
                    CheckConstraint(condition=Q(per_arm__gte=1), name="coding_sample_takes_somebody_of_each_arm"),
                    CheckConstraint(
                        condition=Q(kind__in=["explanations", "rejections"]), name="coding_sample_is_of_a_known_kind"
                    ),
                    CheckConstraint(
                        condition=Q(rule__in=["union", "intersection", "both_counted", "third"]),
                        name="coding_sample_has_a_known_rule",
                    ),
                ],
            },
        ),
        table(
            "CodingSeat",
            number=models.PositiveSmallIntegerField(),
            sample=link("analysis.codingsample", "seats"),
            user=link(settings.AUTH_USER_MODEL, "coding_seats"),
            options={
                "base_manager_name": "objects",
                "ordering": ["number"],
                "constraints": [
                    UniqueConstraint(fields=["sample", "number"], name="coding_seat_number_once_per_sample"),
                    UniqueConstraint(fields=["sample", "user"], name="coding_seat_once_per_person"),
                    CheckConstraint(condition=Q(number__gte=1, number__lte=3), name="coding_seat_is_one_of_three"),
                ],
            },
        ),
        table(
            "CodingItem",
            number=models.PositiveIntegerField(),
            assignment=link("annotators.assignment"),
            response=optional_link("annotators.response"),
            sample=link("analysis.codingsample", "items"),
            options={
                "base_manager_name": "objects",
                "ordering": ["number"],
                "constraints": [
                    UniqueConstraint(fields=["sample", "number"], name="coding_item_number_once_per_sample"),
                    UniqueConstraint(fields=["sample", "assignment"], name="coding_item_once_per_annotator"),
                ],
            },
        ),
        table(
            "Coding",
            revision=models.PositiveSmallIntegerField(default=1),
            labels=models.TextField(blank=True, help_text="Keys of the codebook, separated by blanks."),
            is_none=models.BooleanField(default=False),
            at=models.DateTimeField(db_default=Now()),
            coder=link(settings.AUTH_USER_MODEL, "codings"),
            item=link("analysis.codingitem", "codings"),
            options={
                "base_manager_name": "objects",
                "ordering": ["item", "coder", "revision"],
                "constraints": [
                    UniqueConstraint(
                        fields=["item", "coder", "revision"], name="coding_revision_once_per_item_and_coder"
                    ),
                    CheckConstraint(
                        condition=(Q(labels="") & Q(is_none=True)) | (~Q(labels="") & Q(is_none=False)),
                        name="coding_gives_labels_or_says_that_none_applies",
                    ),
                ],
            },
        ),
    ]
