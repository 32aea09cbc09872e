"""What panels were told to do, and what they show."""

from django.conf import settings
from django.db import migrations, models
from django.db.models import CheckConstraint, Index, Q, UniqueConstraint
from django.db.models.functions import Now

from studies.migrations._tables import link, moment, optional_link, table


class Migration(migrations.Migration):
    replaces = [
        ("annotators", "0005_panels_are_told_and_show"),
        ("annotators", "0008_panels_tell_and_keep_apart"),
        ("annotators", "0009_what_a_panel_rejected_may_be_appealed"),
    ]
    dependencies = [
        ("annotators", "0001_annotators_and_answers"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [
        table(
            "PanelSecret",
            name=models.SlugField(max_length=30),
            ciphertext=models.BinaryField(),
            written_at=models.DateTimeField(db_default=Now()),
            recruitment=link("annotators.recruitment", "panel_secrets"),
            options={
                "constraints": [
                    UniqueConstraint(fields=["recruitment", "name"], name="panel_secret_once_per_recruitment")
                ]
            },
        ),
        table(
            "PanelTask",
            external_id=models.CharField(max_length=64),
            places=models.PositiveIntegerField(null=True, blank=True),
            closed_at=moment(),
            made_at=models.DateTimeField(db_default=Now()),
            recruitment=link("annotators.recruitment", "panel_tasks"),
            options={
                "constraints": [
                    UniqueConstraint(fields=["recruitment", "external_id"], name="panel_task_once_per_recruitment"),
                    CheckConstraint(condition=~Q(external_id=""), name="panel_task_has_an_id"),
                ]
            },
        ),
        table(
            "PanelPlan",
            people=models.PositiveIntegerField(),
            round_places=models.PositiveIntegerField(),
            lost_percent=models.PositiveSmallIntegerField(default=0),
            recruitment=models.OneToOneField(
                "annotators.recruitment", on_delete=models.PROTECT, related_name="panel_plan"
            ),
            options={
                "constraints": [
                    CheckConstraint(
                        condition=Q(lost_percent__gte=0, lost_percent__lte=50, people__gte=1, round_places__gte=1),
                        name="panel_plan_is_of_people",
                    )
                ]
            },
        ),
        table(
            "PanelSubmission",
            external_id=models.CharField(max_length=64),
            state=models.CharField(
                max_length=12,
                choices=[
                    ("working", "working"),
                    ("submitted", "submitted"),
                    ("approved", "approved"),
                    ("rejected", "rejected"),
                    ("returned", "returned"),
                    ("expired", "expired"),
                    ("screened_out", "screened_out"),
                    ("unknown", "unknown"),
                ],
            ),
            word=models.CharField(max_length=40, blank=True),
            receipt=models.CharField(max_length=64, blank=True),
            started_at=moment(),
            submitted_at=moment(),
            decided_at=moment(),
            decides_itself_at=moment(),
            source=models.CharField(
                max_length=7, choices=[("service", "the panel's service"), ("file", "a file that the panel exports")]
            ),
            first_seen_at=models.DateTimeField(db_default=Now()),
            seen_at=models.DateTimeField(db_default=Now()),
            annotator=link("annotators.annotator", "panel_submissions"),
            assignment=optional_link("annotators.assignment", "panel_submissions"),
            recruitment=link("annotators.recruitment", "panel_submissions"),
            task=optional_link("annotators.paneltask", "submissions"),
            options={
                "constraints": [
                    UniqueConstraint(
                        fields=["recruitment", "external_id", "annotator"], name="panel_submission_once_per_person"
                    ),
                    CheckConstraint(condition=~Q(external_id=""), name="panel_submission_has_an_id"),
                    CheckConstraint(
                        condition=Q(
                            state__in=(
                                "working",
                                "submitted",
                                "approved",
                                "rejected",
                                "returned",
                                "expired",
                                "screened_out",
                                "unknown",
                            )
                        ),
                        name="panel_submission_state_is_known",
                    ),
                ],
                "indexes": [Index(fields=["recruitment", "state"], name="panel_submission_by_state")],
            },
        ),
        table(
            "PanelOrder",
            operation=models.CharField(
                max_length=20,
                choices=[
                    ("publish", "publish"),
                    ("stop", "stop"),
                    ("extend", "extend"),
                    ("approve", "approve"),
                    ("reject", "reject"),
                    ("reverse", "reverse"),
                    ("bonus", "bonus"),
                    ("screen_out", "screen_out"),
                    ("request_return", "request_return"),
                    ("bar", "bar"),
                ],
            ),
            token=models.CharField(max_length=64),
            values=models.JSONField(default=dict),
            state=models.CharField(
                max_length=9,
                choices=[
                    ("waiting", "to be sent"),
                    ("sent", "sent, no answer yet"),
                    ("done", "carried out"),
                    ("refused", "refused by the panel"),
                    ("unclear", "unclear whether it was carried out"),
                    ("cancelled", "taken back before it was sent"),
                ],
                default="waiting",
            ),
            tries=models.PositiveSmallIntegerField(default=0),
            not_before=moment(),
            words=models.TextField(blank=True),
            result=models.JSONField(default=dict, blank=True),
            made_at=models.DateTimeField(db_default=Now()),
            sent_at=moment(),
            ended_at=moment(),
            by=optional_link(settings.AUTH_USER_MODEL),
            recruitment=link("annotators.recruitment", "panel_orders"),
            submission=optional_link("annotators.panelsubmission", "orders"),
            options={
                "constraints": [
                    UniqueConstraint(fields=["token"], name="panel_order_token_once"),
                    CheckConstraint(
                        condition=Q(
                            operation__in=[
                                "publish",
                                "stop",
                                "extend",
                                "approve",
                                "reject",
                                "reverse",
                                "bonus",
                                "screen_out",
                                "request_return",
                                "bar",
                            ]
                        ),
                        name="panel_order_operation_is_known",
                    ),
                    CheckConstraint(
                        condition=Q(state__in=["waiting", "cancelled"]) | Q(sent_at__isnull=False),
                        name="panel_order_that_left_has_a_time",
                    ),
                    CheckConstraint(
                        condition=Q(ended_at=None, state__in=["waiting", "sent", "unclear"])
                        | Q(ended_at__isnull=False, state__in=["done", "refused", "cancelled"]),
                        name="panel_order_that_ended_has_a_time",
                    ),
                ],
                "indexes": [
                    Index(
                        fields=["recruitment", "not_before"],
                        condition=Q(state__in=["waiting", "sent"]),
                        name="panel_order_to_send",
                    )
                ],
            },
        ),
        table(
            "PanelBar",
            annotator=link("annotators.annotator", "panel_bars"),
            order=link("annotators.panelorder", "bars"),
            options={"constraints": [UniqueConstraint(fields=["order", "annotator"], name="panel_bar_once_per_order")]},
        ),
        table(
            "PanelEvent",
            source=models.CharField(max_length=64),
            external_id=models.CharField(max_length=200),
            kind=models.CharField(max_length=64, blank=True),
            body=models.JSONField(default=dict, blank=True),
            received_at=models.DateTimeField(db_default=Now()),
            handled_at=moment(),
            recruitment=optional_link("annotators.recruitment", "panel_events"),
            options={
                "constraints": [UniqueConstraint(fields=["source", "external_id"], name="panel_event_once_per_source")],
                "indexes": [Index(fields=["recruitment"], condition=Q(handled_at=None), name="panel_event_to_handle")],
            },
        ),
        table(
            "SampleColumn",
            name=models.CharField(max_length=100),
            kind=models.CharField(max_length=8, choices=[("category", "Category"), ("number", "Number")]),
            shows_small=models.BooleanField(default=False),
            declared_at=models.DateTimeField(db_default=Now()),
            study=link("studies.study", "sample_columns"),
            options={"constraints": [UniqueConstraint(fields=["study", "name"], name="sample_column_once_per_study")]},
        ),
        table(
            "SampleValue",
            value=models.CharField(max_length=100),
            annotator=link("annotators.annotator", "sample_values"),
            column=link("annotators.samplecolumn", "values"),
            options={
                "constraints": [
                    UniqueConstraint(fields=["column", "annotator"], name="sample_value_once_per_person"),
                    CheckConstraint(condition=~Q(value=""), name="sample_value_says_something"),
                ]
            },
        ),
    ]
