"""What is compared and who is excluded, what is judged, what annotators are given of it, who did what, long work, templates."""

import uuid

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import migrations, models
from django.db.models import CheckConstraint, F, Index, Q, UniqueConstraint
from django.db.models.functions import Greatest, Least, Now

import studies.models.design
from studies.migrations._tables import link, moment, optional_link, table
from studies.models.guards import append_only_operation, frozen_design_operation, only_on_postgresql

LANGUAGE_TAG = RegexValidator(
    "\\A(?:[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*)\\Z", "This is not a language tag. Enter one such as en, de or pt-BR."
)

# PostgreSQL refuses what the managers refuse: designs and audit are append-only, a launched study's rows are frozen.
OF_SECTION = "SELECT study_id FROM studies_section WHERE id = {row}.section_id"
OF_ARM = "SELECT study_id FROM studies_arm WHERE id = {row}.arm_id"
OF_SYSTEM = "SELECT study_id FROM studies_system WHERE id = {row}.system_id"
OF_ITEM = "SELECT study_id FROM studies_item WHERE id = {row}.item_id"
OF_BATCH = "SELECT study_id FROM studies_batch WHERE id = {row}.batch_id"
# These rows are deleted with their draft.
OF_DRAFTS = """
  IF TG_OP = 'DELETE' AND EXISTS (SELECT 1 FROM studies_study s WHERE s.id = OLD.study_id AND s.state = 'draft') THEN
    RETURN OLD;
  END IF;
"""
OWN_PLAN = """
ALTER TABLE studies_sizeplan ADD CONSTRAINT size_plan_with_its_study UNIQUE (id, study_id);
ALTER TABLE studies_study ADD CONSTRAINT study_chose_a_plan_of_its_own
  FOREIGN KEY (size_plan_id, id) REFERENCES studies_sizeplan (id, study_id) DEFERRABLE INITIALLY DEFERRED;
"""
ANY_PLAN = """
ALTER TABLE studies_study DROP CONSTRAINT study_chose_a_plan_of_its_own;
ALTER TABLE studies_sizeplan DROP CONSTRAINT size_plan_with_its_study;
"""


class Migration(migrations.Migration):
    replaces = [("studies", "0002_stimuli_and_batches"), ("studies", "0003_audit_and_jobs"), ("studies", "0004_guards")]
    dependencies = [("studies", "0001_designs_of_studies")]
    operations = [
        table(
            "Contrast",
            {
                "base_manager_name": "objects",
                "ordering": ["pk"],
                "constraints": [
                    CheckConstraint(
                        condition=(Q(x__isnull=False, x_condition="", y__isnull=False, y_condition="") & ~Q(x=F("y")))
                        | (
                            Q(x=None, y=None)
                            & ~Q(x_condition="")
                            & ~Q(y_condition="")
                            & ~Q(x_condition=F("y_condition"))
                        )
                        | Q(x=None, x_condition="", y=None, y_condition=""),
                        name="contrast_is_of_two_systems_or_two_conditions_or_none",
                    ),
                    CheckConstraint(condition=Q(expected__in=["", "<", ">", "~"]), name="contrast_expected_is_a_sign"),
                    CheckConstraint(condition=Q(margin=None) | Q(margin__gt=0), name="contrast_margin_is_positive"),
                    UniqueConstraint(
                        Least("x", "y"),
                        Greatest("x", "y"),
                        F("study"),
                        F("section"),
                        F("estimand"),
                        F("criterion"),
                        condition=Q(section__isnull=False, x__isnull=False),
                        name="contrast_once_per_section_also_reversed",
                    ),
                    UniqueConstraint(
                        Least("x", "y"),
                        Greatest("x", "y"),
                        F("study"),
                        F("estimand"),
                        F("criterion"),
                        condition=Q(section=None, x__isnull=False),
                        name="contrast_once_per_study_also_reversed",
                    ),
                    UniqueConstraint(
                        Least("x_condition", "y_condition"),
                        Greatest("x_condition", "y_condition"),
                        F("study"),
                        F("section"),
                        F("estimand"),
                        F("criterion"),
                        condition=Q(section__isnull=False, x=None),
                        name="contrast_of_conditions_once_per_section",
                    ),
                    UniqueConstraint(
                        Least("x_condition", "y_condition"),
                        Greatest("x_condition", "y_condition"),
                        F("study"),
                        F("estimand"),
                        F("criterion"),
                        condition=Q(section=None, x=None),
                        name="contrast_of_conditions_once_per_study",
                    ),
                    CheckConstraint(condition=Q(level__gt=0, level__lt=0.5), name="contrast_level_is_below_one_half"),
                    CheckConstraint(
                        condition=Q(population__in=["", "people_and_prompts", "people"]),
                        name="contrast_population_is_a_choice",
                    ),
                    CheckConstraint(
                        condition=Q(hypothesis="difference")
                        | (
                            Q(
                                hypothesis__in=["noninferiority", "superiority_by_margin"],
                                margin__isnull=False,
                                x__isnull=False,
                            )
                            & ~Q(expected="~")
                        ),
                        name="contrast_hypothesis_has_what_it_needs",
                    ),
                ],
            },
            estimand=models.CharField(max_length=40, blank=True, help_text="Empty: the default of the section."),
            x_condition=models.CharField(
                max_length=12,
                blank=True,
                choices=[
                    ("none", "None"),
                    ("instructions", "Instructions"),
                    ("examples", "Examples"),
                    ("comparison", "Comparison"),
                ],
            ),
            y_condition=models.CharField(
                max_length=12,
                blank=True,
                choices=[
                    ("none", "None"),
                    ("instructions", "Instructions"),
                    ("examples", "Examples"),
                    ("comparison", "Comparison"),
                ],
            ),
            criterion=models.CharField(max_length=50, blank=True),
            role=models.CharField(
                max_length=11,
                default="primary",
                choices=[("primary", "Primary"), ("secondary", "Secondary"), ("exploratory", "Exploratory")],
            ),
            family=models.CharField(
                max_length=50,
                blank=True,
                help_text="Contrasts of one family are adjusted together. Empty: all contrasts with the same role.",
            ),
            expected=models.CharField(
                max_length=1,
                blank=True,
                choices=[("", "no expectation"), (">", "x > y"), ("<", "x < y"), ("~", "x ~ y (equivalent)")],
            ),
            margin=models.FloatField(
                blank=True,
                null=True,
                help_text="Differences smaller than this do not matter, on the estimand's scale (.05 is 5 points of a probability).",
                validators=[MinValueValidator(0)],
            ),
            level=models.FloatField(default=0.05, validators=[MinValueValidator(0.0001), MaxValueValidator(0.49)]),
            section=optional_link("studies.section", help_text="Empty: all live sections that can be compared."),
            study=link("studies.study", "contrasts"),
            x=optional_link("studies.system"),
            y=optional_link("studies.system"),
            population=models.CharField(
                max_length=18,
                blank=True,
                choices=[
                    ("", "not declared"),
                    ("people_and_prompts", "People and prompts like these"),
                    ("people", "People like these, exactly these prompts"),
                ],
                help_text="What the result is about: other people and other prompts like these, or other people with exactly these prompts.",
            ),
            hypothesis=models.CharField(
                max_length=21,
                default="difference",
                choices=[
                    ("difference", "x and y differ"),
                    ("noninferiority", "x not worse than y"),
                    ("superiority_by_margin", "x better by margin"),
                ],
                help_text="What the comparison is to show. The last two need a margin and two systems.",
            ),
        ),
        table(
            "ExclusionRule",
            {
                "base_manager_name": "objects",
                "ordering": ["position", "rule"],
                "constraints": [UniqueConstraint(fields=["study", "rule"], name="exclusion_rule_once_per_study")],
            },
            position=models.PositiveSmallIntegerField(default=1, validators=[MaxValueValidator(32767)]),
            rule=models.CharField(max_length=40, choices=studies.models.design.choices),
            settings=models.JSONField(blank=True, default=dict),
            role=models.CharField(
                max_length=11,
                default="primary",
                choices=[("primary", "applied to the headline"), ("sensitivity", "shown beside the headline")],
            ),
            study=link("studies.study", "exclusion_rules"),
        ),
        table(
            "Prompt",
            {
                "base_manager_name": "objects",
                "ordering": ["key"],
                "constraints": [
                    CheckConstraint(condition=~Q(key=""), name="prompt_has_a_key"),
                    UniqueConstraint(fields=["study", "key"], name="prompt_key_once_per_study"),
                ],
            },
            key=models.CharField(max_length=100),
            text=models.TextField(blank=True),
            source=models.TextField("source document", blank=True),
            media=models.CharField(max_length=80, blank=True, editable=False),
            domain=models.CharField(max_length=50, blank=True),
            language=models.CharField(max_length=12, blank=True, validators=[LANGUAGE_TAG]),
            attributes=models.JSONField(blank=True, default=dict),
            study=link("studies.study", "prompts"),
            group=models.CharField(
                max_length=100,
                blank=True,
                help_text="The document, dialogue or topic of the prompt. Prompts with the same group belong together. Empty: the prompt is alone.",
            ),
        ),
        table(
            "Output",
            {
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
            sample=models.PositiveSmallIntegerField(default=0, validators=[MaxValueValidator(32767)]),
            format=models.CharField(
                max_length=8,
                default="plain",
                choices=[
                    ("plain", "plain text"),
                    ("markdown", "Markdown"),
                    ("turns", "turns of a dialogue, one per line, as “speaker: text”"),
                ],
            ),
            text=models.TextField(blank=True),
            media=models.CharField(max_length=80, blank=True, editable=False),
            alt=models.CharField("description of the image", max_length=300, blank=True),
            is_empty=models.BooleanField(
                "empty", default=False, help_text="The system returned an empty output, and annotators judge it."
            ),
            original=models.TextField(blank=True),
            language=models.CharField(max_length=12, blank=True, validators=[LANGUAGE_TAG]),
            prompt=link("studies.prompt", "outputs"),
            system=link("studies.system", "outputs"),
        ),
        table(
            "Item",
            {
                "base_manager_name": "objects",
                "ordering": ["section", "number"],
                "constraints": [
                    UniqueConstraint(fields=["section", "number"], name="item_number_once_per_section"),
                    UniqueConstraint(fields=["section", "content"], name="item_is_the_same_thing_judged_once"),
                    CheckConstraint(
                        condition=Q(test_type="")
                        | Q(kind="test", test_type__in=["positive", "negative", "damaged", "given"]),
                        name="item_test_type_only_of_test_questions",
                    ),
                ],
            },
            number=models.PositiveIntegerField(validators=[MaxValueValidator(999999999)]),
            kind=models.CharField(
                max_length=8, default="live", choices=[("live", "Live"), ("test", "Test"), ("practice", "Practice")]
            ),
            content=models.CharField(max_length=64, help_text="sha256 of prompt, sorted outputs and kind"),
            settled_at=moment(),
            retired_in=optional_link("studies.design", editable=False),
            prompt=link("studies.prompt", "items"),
            section=link("studies.section", "items"),
            study=link("studies.study", "items"),
            test_type=models.CharField(
                max_length=8,
                blank=True,
                editable=False,
                choices=[
                    ("positive", "positive: a good text"),
                    ("negative", "negative: the reference of another prompt"),
                    ("damaged", "damaged: a text that was made worse"),
                    ("given", "given: from a file or by hand"),
                ],
            ),
        ),
        table(
            "Exposure",
            {
                "base_manager_name": "objects",
                "ordering": ["item", "number"],
                "constraints": [
                    UniqueConstraint(fields=["item", "output"], name="exposure_output_once_per_item"),
                    UniqueConstraint(fields=["item", "number"], name="exposure_number_once_per_item"),
                ],
            },
            number=models.PositiveSmallIntegerField(),
            item=link("studies.item", "exposures"),
            output=link("studies.output", "exposures"),
        ),
        table(
            "Expected",
            {
                "base_manager_name": "objects",
                "constraints": [
                    UniqueConstraint(fields=["item", "question"], name="expected_once_per_item_and_question"),
                    CheckConstraint(
                        condition=Q(exposure=None, high__gte=F("low"), low__isnull=False)
                        | Q(exposure__isnull=False, high=None, low=None),
                        name="expected_is_a_range_or_an_exposure",
                    ),
                    CheckConstraint(
                        condition=Q(about=None) | Q(low__isnull=False),
                        name="expected_is_about_an_output_only_with_a_range",
                    ),
                ],
            },
            low=models.FloatField(blank=True, null=True),
            high=models.FloatField(blank=True, null=True),
            explanation=models.TextField(blank=True),
            exposure=optional_link("studies.exposure"),
            item=link("studies.item", "expected"),
            question=link("studies.question"),
            about=optional_link("studies.exposure"),
        ),
        table(
            "Batch",
            {
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
            number=models.PositiveIntegerField(validators=[MaxValueValidator(999999999)]),
            wanted=models.PositiveSmallIntegerField(default=1, validators=[MaxValueValidator(32767)]),
            claimed=models.PositiveSmallIntegerField(default=0),
            origin=models.CharField(
                max_length=11,
                default="drawn",
                choices=[
                    ("drawn", "Drawn"),
                    ("imported", "Imported"),
                    ("top_up", "Top Up"),
                    ("replacement", "Replacement"),
                    ("answered", "with imported answers"),
                    ("test", "Test"),
                ],
            ),
            key=models.CharField(max_length=100, blank=True),
            arm=link("studies.arm", "batches"),
            copy_of=optional_link("studies.batch", "copies"),
            study=link("studies.study", "batches"),
        ),
        table(
            "Placement",
            {
                "base_manager_name": "objects",
                "ordering": ["batch", "number"],
                "constraints": [
                    UniqueConstraint(fields=["batch", "number"], name="placement_number_once_per_batch"),
                    UniqueConstraint(fields=["batch", "item"], name="placement_item_once_per_batch"),
                ],
            },
            number=models.PositiveSmallIntegerField(),
            batch=link("studies.batch", "placements"),
            item=link("studies.item", "placements"),
        ),
        table(
            "AuditEvent",
            {"base_manager_name": "objects", "ordering": ["-pk"]},
            at=models.DateTimeField(db_default=Now()),
            assignment_code=models.CharField(max_length=32, blank=True),
            verb=models.CharField(max_length=50),
            data=models.JSONField(blank=True, default=dict),
            by=optional_link(settings.AUTH_USER_MODEL),
            study=optional_link("studies.study", "audit_events"),
        ),
        table(
            "Job",
            {
                "ordering": ["-pk"],
                "constraints": [
                    UniqueConstraint(fields=["request_token"], name="job_request_token_once"),
                    CheckConstraint(
                        condition=(Q(leased_until__isnull=False, state="running") & ~Q(holder=""))
                        | ~Q(state="running"),
                        name="job_runs_under_a_lease",
                    ),
                    CheckConstraint(
                        condition=Q(ended_at=None, state__in=["waiting", "running"]) | Q(ended_at__isnull=False),
                        name="job_ended_has_a_time",
                    ),
                ],
                "indexes": [Index(fields=["state", "leased_until"], name="job_to_run")],
            },
            code=models.UUIDField(unique=True, default=uuid.uuid4, editable=False),
            kind=models.CharField(max_length=50),
            arguments=models.JSONField(blank=True, default=dict),
            state=models.CharField(
                max_length=9,
                default="waiting",
                choices=[
                    ("waiting", "Waiting"),
                    ("running", "Running"),
                    ("done", "Done"),
                    ("failed", "Failed"),
                    ("cancelled", "Cancelled"),
                ],
            ),
            doing=models.CharField(max_length=200, blank=True),
            done=models.PositiveIntegerField(default=0),
            total=models.PositiveIntegerField(default=0),
            attempts=models.PositiveSmallIntegerField(default=0),
            leased_until=moment(),
            holder=models.CharField(max_length=64, blank=True),
            request_token=models.CharField(max_length=64, blank=True, null=True),
            result=models.JSONField(blank=True, null=True),
            error=models.TextField(blank=True),
            is_cancel_wanted=models.BooleanField(default=False),
            created_at=models.DateTimeField(db_default=Now()),
            started_at=moment(),
            ended_at=moment(),
            by=optional_link(settings.AUTH_USER_MODEL),
            study=optional_link("studies.study", "jobs"),
            seen_at=moment(),
        ),
        table(
            "ComparisonFamily",
            {
                "verbose_name": "family of comparisons",
                "verbose_name_plural": "families of comparisons",
                "ordering": ["pk"],
                "base_manager_name": "objects",
                "constraints": [
                    UniqueConstraint(fields=["study", "name"], name="comparison_family_once_per_study"),
                    CheckConstraint(condition=~Q(name=""), name="comparison_family_has_a_name"),
                    CheckConstraint(condition=~Q(name=F("after")), name="comparison_family_is_not_after_itself"),
                    CheckConstraint(
                        condition=Q(adjustment__in=["bonferroni", "holm", "hommel"]),
                        name="comparison_family_adjustment_is_a_choice",
                    ),
                ],
            },
            name=models.CharField(
                max_length=50,
                help_text="As in the comparisons' field Family, or a role: primary, secondary or exploratory.",
            ),
            adjustment=models.CharField(
                max_length=10,
                default="bonferroni",
                choices=[("bonferroni", "Bonferroni"), ("holm", "Holm"), ("hommel", "Hommel")],
            ),
            after=models.CharField(
                max_length=50,
                blank=True,
                help_text="The name of another family. This one is tested only if all comparisons of that family were shown.",
            ),
            study=link("studies.study", "comparison_families"),
        ),
        table(
            "PilotFile",
            {
                "ordering": ["-pk"],
                "base_manager_name": "objects",
                "constraints": [
                    UniqueConstraint(fields=["study", "sha256"], name="pilot_file_once_per_study"),
                    CheckConstraint(condition=~Q(sha256=""), name="pilot_file_has_a_hash"),
                ],
            },
            sha256=models.CharField(max_length=64),
            name=models.CharField(max_length=200),
            estimate=models.JSONField(),
            at=models.DateTimeField(db_default=Now()),
            by=optional_link(settings.AUTH_USER_MODEL),
            study=link("studies.study", "pilot_files"),
        ),
        table(
            "JobPart",
            {
                "ordering": ["job", "number"],
                "constraints": [
                    UniqueConstraint(fields=["job", "number"], name="job_part_once_per_number"),
                    CheckConstraint(
                        condition=Q(holder="", leased_until=None)
                        | (~Q(holder="") & Q(is_done=False, leased_until__isnull=False)),
                        name="job_part_is_held_under_a_lease",
                    ),
                    CheckConstraint(
                        condition=Q(is_done=True) | Q(result__isnull=True), name="job_part_has_a_result_when_it_is_done"
                    ),
                ],
            },
            number=models.PositiveIntegerField(),
            arguments=models.JSONField(),
            attempts=models.PositiveSmallIntegerField(default=0),
            leased_until=moment(),
            holder=models.CharField(max_length=64, blank=True),
            is_done=models.BooleanField(default=False),
            result=models.JSONField(blank=True, null=True),
            job=models.ForeignKey("studies.job", models.CASCADE, related_name="parts"),
        ),
        table(
            "StudyPilot",
            {
                "ordering": ["-pk"],
                "constraints": [
                    UniqueConstraint(fields=["study", "sha256"], name="study_pilot_once_per_study_and_answers"),
                    CheckConstraint(condition=~Q(sha256=""), name="study_pilot_has_a_hash"),
                ],
            },
            sha256=models.CharField(max_length=64),
            comparison=models.CharField(max_length=500),
            estimate=models.JSONField(),
            at=models.DateTimeField(db_default=Now()),
            by=optional_link(settings.AUTH_USER_MODEL),
            study=link("studies.study", "pilot_estimates"),
        ),
        table(
            "ResearcherFacts",
            {
                "verbose_name_plural": "facts about researchers",
                "constraints": [
                    CheckConstraint(
                        condition=(Q(screened_out_pay=None) | Q(screened_out_pay__gte=0))
                        & (Q(full_pay=None) | Q(full_pay__gte=0)),
                        name="researcher_pays_nothing_below_zero",
                    )
                ],
            },
            institution=models.CharField(max_length=200, blank=True, help_text="Shown to annotators as “Run by”."),
            responsible=models.CharField(
                "responsible person", max_length=200, blank=True, help_text="With an address or a telephone number."
            ),
            contact=models.CharField(
                "contact for annotators",
                max_length=200,
                blank=True,
                help_text="An address that somebody reads. Shown on every page.",
            ),
            ethics_contact=models.CharField(
                "ethics board and its contact",
                max_length=300,
                blank=True,
                help_text="Or who takes complaints if there is no board.",
            ),
            legal_basis=models.CharField(
                max_length=300,
                blank=True,
                default="your consent",
                help_text="Why you may process the data. It ends a sentence.",
            ),
            storage=models.CharField(
                "where the data are stored",
                max_length=300,
                blank=True,
                help_text="Such as: on a server of our university in Graz.",
            ),
            retention=models.CharField(
                "how long they are kept",
                max_length=200,
                blank=True,
                help_text="Such as: for ten years, and then deleted.",
            ),
            screened_out_pay=models.DecimalField(
                "pay for people whom the first answers screen out",
                blank=True,
                null=True,
                help_text="Filled in on new links, in the currency of the study. 0 for nothing.",
                validators=[MinValueValidator(0)],
                max_digits=7,
                decimal_places=2,
            ),
            full_pay=models.DecimalField(
                "pay for people of a panel who find no place left",
                blank=True,
                null=True,
                help_text="Filled in on new links, in the currency of the study. 0 for nothing.",
                validators=[MinValueValidator(0)],
                max_digits=7,
                decimal_places=2,
            ),
            user=models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="study_facts"),
        ),
        table(
            "OwnTemplate",
            {"ordering": ["-pk"]},
            title=models.CharField(max_length=200),
            bundle=models.JSONField(),
            has_texts=models.BooleanField(default=False),
            created_at=models.DateTimeField(db_default=Now()),
            archived_at=moment(),
            by=optional_link(settings.AUTH_USER_MODEL),
            study=link("studies.study", "own_templates"),
        ),
        append_only_operation("studies_design"),
        append_only_operation("studies_auditevent"),
        frozen_design_operation("studies_system"),
        frozen_design_operation("studies_arm"),
        frozen_design_operation("studies_armsystem", OF_ARM),
        frozen_design_operation("studies_section"),
        frozen_design_operation("studies_sectionarm", OF_SECTION),
        frozen_design_operation("studies_question", OF_SECTION),
        frozen_design_operation("studies_contrast"),
        frozen_design_operation("studies_exclusionrule"),
        frozen_design_operation("studies_prompt"),
        frozen_design_operation("studies_output", OF_SYSTEM),
        frozen_design_operation("studies_item", mutable_columns=["settled_at"], allows_inserts=True),
        frozen_design_operation("studies_exposure", OF_ITEM, allows_inserts=True),
        frozen_design_operation("studies_expected", OF_ITEM, allows_inserts=True),
        frozen_design_operation("studies_batch", mutable_columns=["claimed"], allows_inserts=True),
        frozen_design_operation("studies_placement", OF_BATCH, allows_inserts=True),
        frozen_design_operation("studies_comparisonfamily"),
        append_only_operation("studies_qualification"),
        append_only_operation("studies_sizeplan", OF_DRAFTS),
        append_only_operation("studies_pilotfile", OF_DRAFTS),
        append_only_operation("studies_studypilot"),
        only_on_postgresql(OWN_PLAN, ANY_PLAN),
    ]
