"""A study and its design: who may do what in it, systems, arms, sections, questions, comparisons, exclusion rules."""

import uuid

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import migrations, models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint
from django.db.models.functions import Greatest, Least, Now

import studies.models
import studies.models.design
import studies.protocols
from studies.migrations._tables import link, moment, optional_link, table


class Migration(migrations.Migration):
    initial = True
    # Made by these before 0.1.0. Where the first of them was applied and the last was not, Django finds no way and says so.
    replaces = [
        ("studies", "0001_a_study_has_a_design"),
        ("studies", "0009_a_level_lies_below_one_half"),
    ]
    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL)]
    operations = [
        table(
            "Study",
            code=models.UUIDField(default=uuid.uuid4, editable=False, unique=True),
            title=models.CharField(max_length=200, help_text="For researchers. Annotators do not see it."),
            public_title=models.CharField(
                max_length=200,
                blank=True,
                help_text="The title on annotators' pages. It should not reveal the hypotheses.",
            ),
            language=models.CharField(
                max_length=12,
                default="en",
                validators=[
                    RegexValidator(
                        "\\A(?:[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*)\\Z",
                        "This is not a language tag. Enter one such as en, de or pt-BR.",
                    )
                ],
                help_text="Language of the annotators' pages, such as en or pt-BR.",
            ),
            seed=models.PositiveBigIntegerField(
                default=studies.models.new_seed,
                validators=[MaxValueValidator(4611686018427387904)],
                help_text="All random draws of the study depend on it.",
            ),
            keeps_origin_out=models.BooleanField(
                "exclude annotators of the original study",
                default=True,
                help_text="Only for a study that is a clone.",
            ),
            exclusion_group=models.CharField(
                max_length=50,
                blank=True,
                help_text="A person can take part in only one study of a group.",
            ),
            purpose=models.TextField(
                blank=True, help_text="What the annotator will do, in one or two sentences. Markdown."
            ),
            instructions=models.TextField(blank=True, help_text="Shown on a page before the first item. Markdown."),
            consent=models.TextField(blank=True, help_text="What the annotator agrees to. Markdown."),
            debriefing=models.TextField(blank=True, help_text="Shown after the last page. Markdown."),
            institution=models.CharField(max_length=200, blank=True),
            approval_number=models.CharField(
                max_length=100, blank=True, help_text="The approval number of the ethics board, for the consent form."
            ),
            contact=models.CharField(
                max_length=200, blank=True, help_text="The person whom annotators can write to. Shown on every page."
            ),
            retention=models.CharField(max_length=300, blank=True, help_text="Which data is kept, and for how long."),
            content_warning=models.CharField(max_length=300, blank=True),
            preparation=models.JSONField(
                default=dict,
                blank=True,
                editable=False,
                help_text="How the stimuli were prepared (studies.stimuli.normalising.Preparation).",
            ),
            batches_per_annotator=models.PositiveSmallIntegerField(
                default=1, validators=[MinValueValidator(1), MaxValueValidator(32767)]
            ),
            annotators_per_batch=models.PositiveSmallIntegerField(
                default=1,
                validators=[MinValueValidator(1), MaxValueValidator(32767)],
                help_text="How many annotators receive the same batch.",
            ),
            coverage=models.CharField(
                max_length=12,
                choices=[
                    ("balanced", "balanced: every prompt shown equally often"),
                    ("independent", "independent: each batch is a new random sample"),
                ],
                default="balanced",
            ),
            section_order=models.CharField(
                max_length=16,
                choices=[
                    ("fixed", "as listed"),
                    ("counterbalanced", "random for each annotator (a section stays after the section that it reuses)"),
                ],
                default="fixed",
            ),
            target_kind=models.CharField(
                max_length=10,
                choices=[
                    ("submitted", "annotators who submitted"),
                    ("kept", "annotators kept by the outcome-blind rules"),
                ],
                default="submitted",
            ),
            target_n=models.PositiveIntegerField(
                "target n", null=True, blank=True, validators=[MaxValueValidator(1000000)]
            ),
            target_cap=models.PositiveIntegerField(
                null=True,
                blank=True,
                validators=[MaxValueValidator(1000000)],
                help_text="The study never has more places, even after exclusions. Empty: 1.5 times the target.",
            ),
            replaces_excluded=models.BooleanField(
                "replace excluded annotators",
                default=False,
                help_text="If you exclude an annotator, the place opens again. A target of kept annotators always does this.",
            ),
            currency=models.CharField(
                max_length=3,
                default="USD",
                validators=[
                    RegexValidator(
                        "\\A[A-Z]{3}\\Z", "This is not a currency code. Enter three letters, such as USD or EUR."
                    )
                ],
            ),
            reward=models.DecimalField(
                max_digits=7,
                decimal_places=2,
                null=True,
                blank=True,
                validators=[MinValueValidator(0)],
                help_text="For one batch.",
            ),
            minutes=models.PositiveSmallIntegerField(
                "declared minutes",
                null=True,
                blank=True,
                validators=[MaxValueValidator(1440)],
                help_text="For one batch.",
            ),
            wage_per_hour=models.DecimalField(
                "target hourly pay",
                max_digits=8,
                decimal_places=2,
                null=True,
                blank=True,
                validators=[MinValueValidator(0)],
            ),
            words_per_minute=models.PositiveSmallIntegerField(
                "reading speed, words per minute",
                default=240,
                validators=[MinValueValidator(50), MaxValueValidator(1000)],
            ),
            withdrawal_blanks_ratings=models.BooleanField(
                "withdrawal deletes ratings too",
                default=False,
                help_text="If not set, the ratings stay, without any identity.",
            ),
            withdrawal_until=models.DateField(
                null=True, blank=True, help_text="The last day on which an annotator can withdraw."
            ),
            erase_after_days=models.PositiveSmallIntegerField(
                default=90,
                validators=[MaxValueValidator(3650)],
                help_text="Panel ids are erased this many days after closing, or earlier by payment.",
            ),
            start_window_seconds=models.PositiveIntegerField(
                default=600, validators=[MinValueValidator(60), MaxValueValidator(604800)]
            ),
            idle_seconds=models.PositiveIntegerField(
                null=True,
                blank=True,
                validators=[MinValueValidator(60), MaxValueValidator(2592000)],
                help_text="A place is released after this time without an answer. Empty: 30 minutes or 3 times the declared minutes, whichever is longer.",
            ),
            grace_seconds=models.PositiveIntegerField(
                default=7200,
                validators=[MinValueValidator(0), MaxValueValidator(2592000)],
                help_text="Annotators who have started can finish within this time after closing.",
            ),
            state=models.CharField(
                max_length=9,
                choices=[
                    ("draft", "Draft"),
                    ("launching", "Launching"),
                    ("launched", "Launched"),
                    ("paused", "Paused"),
                    ("closing", "Closing"),
                    ("closed", "Closed"),
                ],
                default="draft",
                editable=False,
            ),
            open_to=models.PositiveIntegerField(
                default=0, editable=False, help_text="Batches with a lower number can be assigned."
            ),
            version=models.PositiveIntegerField(
                default=0, editable=False, help_text="Counts the saves. heval refuses a form with an older number."
            ),
            created_at=models.DateTimeField(db_default=Now(), editable=False),
            launched_at=moment(),
            closing_at=moment(),
            closed_at=moment(),
            archived_at=moment(),
            unblinded_at=moment(),
            clone_of=optional_link("studies.study", "clones", editable=False),
            owner=optional_link(settings.AUTH_USER_MODEL, "owned_studies"),
            usual_seconds=models.PositiveIntegerField(
                null=True,
                editable=False,
                help_text="Median time from start to submission, when enough annotators have submitted.",
            ),
            options={
                "base_manager_name": "objects",
                "verbose_name_plural": "studies",
                "constraints": [
                    CheckConstraint(
                        condition=Q(closed_at=None, closing_at=None, launched_at=None, state__in=["draft", "launching"])
                        | Q(
                            closed_at=None, closing_at=None, launched_at__isnull=False, state__in=["launched", "paused"]
                        )
                        | Q(
                            closed_at=None, closing_at__gte=F("launched_at"), launched_at__isnull=False, state="closing"
                        )
                        | Q(
                            closed_at__gte=F("closing_at"),
                            closing_at__gte=F("launched_at"),
                            launched_at__isnull=False,
                            state="closed",
                        ),
                        name="study_state_agrees_with_its_times",
                    ),
                    CheckConstraint(
                        condition=Q(annotators_per_batch__gte=1, batches_per_annotator__gte=1),
                        name="study_gives_at_least_one_batch",
                    ),
                    CheckConstraint(
                        condition=Q(target_cap=None) | Q(target_n=None) | Q(target_cap__gte=F("target_n")),
                        name="study_cap_is_at_least_its_target",
                    ),
                    CheckConstraint(
                        condition=(Q(reward=None) | Q(reward__gte=0))
                        & (Q(wage_per_hour=None) | Q(wage_per_hour__gte=0)),
                        name="study_pays_nothing_below_zero",
                    ),
                ],
            },
        ),
        table(
            "Design",
            version=models.PositiveSmallIntegerField(),
            canonical=models.TextField(),
            sha256=models.CharField(max_length=64),
            at=models.DateTimeField(db_default=Now()),
            reason=models.TextField(blank=True),
            by=optional_link(settings.AUTH_USER_MODEL),
            study=link("studies.study", "designs"),
            options={
                "base_manager_name": "objects",
                "ordering": ["version"],
                "constraints": [
                    CheckConstraint(
                        condition=Q(version=1) | (Q(version__gt=1) & ~Q(reason="")),
                        name="design_amendment_has_a_reason",
                    ),
                    UniqueConstraint(fields=["study", "version"], name="design_version_once_per_study"),
                ],
            },
        ),
        table(
            "StudyMember",
            role=models.CharField(
                max_length=6,
                choices=[
                    ("owner", "owner: can do everything and manage members"),
                    ("editor", "editor: can define, launch and analyse"),
                    ("viewer", "viewer: can only read"),
                    ("coder", "coder: can only code explanations, blind"),
                ],
            ),
            study=models.ForeignKey("studies.study", on_delete=models.CASCADE, related_name="members"),
            user=models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships"),
            options={"constraints": [UniqueConstraint(fields=["study", "user"], name="member_once_per_study")]},
        ),
        table(
            "System",
            name=models.CharField(max_length=100, help_text="Annotators do not see it."),
            is_human=models.BooleanField("human author", default=False),
            study=link("studies.study", "systems"),
            reference=models.CharField(
                max_length=9,
                choices=[
                    ("reference", "reference"),
                    ("maximal", "maximal reference"),
                    ("minimal", "minimal reference"),
                ],
                blank=True,
                help_text="Reference: the other systems are compared with it. Maximal or minimal reference: its outputs are as good or as bad as possible and are rated among the others.",
            ),
            options={
                "base_manager_name": "objects",
                "ordering": ["name"],
                "constraints": [
                    UniqueConstraint(fields=["study", "name"], name="system_name_once_per_study"),
                    CheckConstraint(condition=~Q(name=""), name="system_has_a_name"),
                ],
            },
        ),
        table(
            "Arm",
            name=models.CharField(max_length=50, default="all"),
            condition=models.CharField(
                max_length=12,
                choices=[
                    ("none", "None"),
                    ("instructions", "Instructions"),
                    ("examples", "Examples"),
                    ("comparison", "Comparison"),
                ],
                default="none",
            ),
            instructions=models.TextField(
                blank=True, help_text="Replaces the study's instructions in this arm. Markdown."
            ),
            domain=models.CharField(
                max_length=50, blank=True, help_text="Show only prompts of this domain. Empty: all domains."
            ),
            wanted=models.PositiveIntegerField(
                null=True,
                blank=True,
                validators=[MaxValueValidator(1000000)],
                help_text="Number of places. Empty: an equal share of the target.",
            ),
            reward=models.DecimalField(
                max_digits=7,
                decimal_places=2,
                null=True,
                blank=True,
                validators=[MinValueValidator(0)],
                help_text="Empty: as in the study.",
            ),
            minutes=models.PositiveSmallIntegerField(
                null=True, blank=True, validators=[MaxValueValidator(1440)], help_text="Empty: as in the study."
            ),
            study=link("studies.study", "arms"),
            options={
                "base_manager_name": "objects",
                "ordering": ["name"],
                "constraints": [
                    UniqueConstraint(fields=["study", "name"], name="arm_name_once_per_study"),
                    CheckConstraint(condition=Q(reward=None) | Q(reward__gte=0), name="arm_pays_nothing_below_zero"),
                ],
            },
        ),
        table(
            "ArmSystem",
            arm=link("studies.arm", "arm_systems"),
            system=link("studies.system"),
            options={
                "base_manager_name": "objects",
                "constraints": [UniqueConstraint(fields=["arm", "system"], name="arm_system_once")],
            },
        ),
        migrations.AddField(
            "arm",
            "systems",
            models.ManyToManyField("studies.system", related_name="+", through="studies.ArmSystem", blank=True),
        ),
        table(
            "Section",
            position=models.PositiveSmallIntegerField(validators=[MaxValueValidator(32767)]),
            protocol=models.CharField(max_length=20, choices=studies.protocols.choices),
            purpose=models.CharField(
                max_length=9,
                choices=[
                    ("live", "live: counts in the results"),
                    ("training", "training: never counts in the results"),
                    ("screening", "screening: decides who can take part"),
                ],
                default="live",
            ),
            m=models.PositiveSmallIntegerField(
                default=5,
                validators=[MaxValueValidator(100)],
                help_text="Exposure samples: the number of prompts in this section. 0 for a survey.",
            ),
            settings=models.JSONField(default=dict, blank=True),
            reuses=optional_link(
                "studies.section",
                "reused_by",
                help_text="Show the first m items of that section again instead of new items.",
            ),
            study=link("studies.study", "sections"),
            options={
                "base_manager_name": "objects",
                "ordering": ["position"],
                "constraints": [
                    CheckConstraint(
                        condition=Q(reuses=None) | ~Q(reuses=F("id")), name="section_does_not_reuse_itself"
                    ),
                    UniqueConstraint(fields=["study", "position"], name="section_position_once_per_study"),
                ],
            },
        ),
        table(
            "SectionArm",
            arm=link("studies.arm"),
            section=link("studies.section", "section_arms"),
            options={
                "base_manager_name": "objects",
                "constraints": [UniqueConstraint(fields=["section", "arm"], name="section_arm_once")],
            },
        ),
        migrations.AddField(
            "section",
            "arms",
            models.ManyToManyField(
                "studies.arm",
                related_name="+",
                through="studies.SectionArm",
                blank=True,
                help_text="Only these arms see the section. Empty: all arms.",
            ),
        ),
        table(
            "Question",
            position=models.PositiveSmallIntegerField(validators=[MaxValueValidator(32767)]),
            key=models.SlugField(),
            text=models.TextField(),
            help=models.TextField(blank=True, help_text="Shown below the question. Markdown."),
            criterion=models.CharField(max_length=50, blank=True),
            scale=models.JSONField(default=dict, blank=True),
            required=models.BooleanField(default=True),
            skip_reasons=models.JSONField(default=list, blank=True),
            section=link("studies.section", "questions"),
            x=optional_link("studies.system"),
            y=optional_link("studies.system"),
            options={
                "base_manager_name": "objects",
                "ordering": ["position"],
                "constraints": [
                    UniqueConstraint(fields=["section", "position"], name="question_position_once_per_section"),
                    UniqueConstraint(fields=["section", "key"], name="question_key_once_per_section"),
                    CheckConstraint(
                        condition=Q(x=None, y=None) | (Q(x__isnull=False, y__isnull=False) & ~Q(x=F("y"))),
                        name="question_has_both_x_and_y_or_neither",
                    ),
                ],
            },
        ),
        table(
            "Contrast",
            estimand=models.CharField(max_length=40, blank=True, help_text="Empty: the default of the section."),
            x_condition=models.CharField(
                max_length=12,
                choices=[
                    ("none", "None"),
                    ("instructions", "Instructions"),
                    ("examples", "Examples"),
                    ("comparison", "Comparison"),
                ],
                blank=True,
            ),
            y_condition=models.CharField(
                max_length=12,
                choices=[
                    ("none", "None"),
                    ("instructions", "Instructions"),
                    ("examples", "Examples"),
                    ("comparison", "Comparison"),
                ],
                blank=True,
            ),
            criterion=models.CharField(max_length=50, blank=True),
            role=models.CharField(
                max_length=11,
                choices=[("primary", "Primary"), ("secondary", "Secondary"), ("exploratory", "Exploratory")],
                default="primary",
            ),
            family=models.CharField(
                max_length=50,
                blank=True,
                help_text="Contrasts of one family are adjusted together. Empty: all contrasts with the same role.",
            ),
            expected=models.CharField(
                max_length=1,
                choices=[("", "no expectation"), (">", "x > y"), ("<", "x < y"), ("~", "x ~ y (equivalent)")],
                blank=True,
            ),
            margin=models.FloatField(
                null=True,
                blank=True,
                validators=[MinValueValidator(0)],
                help_text="Differences smaller than this are equivalent, on the estimand's scale (.05 is 5 points of a probability).",
            ),
            level=models.FloatField(default=0.05, validators=[MinValueValidator(0.0001), MaxValueValidator(0.49)]),
            section=optional_link("studies.section", help_text="Empty: all live sections that can be compared."),
            study=link("studies.study", "contrasts"),
            x=optional_link("studies.system"),
            y=optional_link("studies.system"),
            options={
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
                ],
            },
        ),
        table(
            "ExclusionRule",
            position=models.PositiveSmallIntegerField(default=1, validators=[MaxValueValidator(32767)]),
            rule=models.CharField(max_length=40, choices=studies.models.design.choices),
            settings=models.JSONField(default=dict, blank=True),
            role=models.CharField(
                max_length=11,
                choices=[("primary", "applied to the headline"), ("sensitivity", "shown beside the headline")],
                default="primary",
            ),
            study=link("studies.study", "exclusion_rules"),
            options={
                "base_manager_name": "objects",
                "ordering": ["position", "rule"],
                "constraints": [UniqueConstraint(fields=["study", "rule"], name="exclusion_rule_once_per_study")],
            },
        ),
    ]
