"""A study and its design: who may do what in it, systems, arms, sections, questions."""

import uuid

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import migrations, models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint
from django.db.models.functions import Now

import studies.models.fields
import studies.protocols
from studies.migrations._tables import link, moment, optional_link, table

LANGUAGE_TAG = RegexValidator(
    "\\A(?:[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*)\\Z", "This is not a language tag. Enter one such as en, de or pt-BR."
)


class Migration(migrations.Migration):
    initial = True
    replaces = [
        ("studies", "0001_studies_and_designs"),
        ("studies", "0005_kinds_of_jobs_say_what_jobs_do"),
        ("studies", "0006_reports_of_rehearsals_say_what_they_hold"),
        ("studies", "0007_studies_know_how_they_are_drawn"),
        ("studies", "0008_comparisons_say_what_they_are_about"),
        ("studies", "0009_comparisons_say_what_they_are_to_show"),
        ("studies", "0010_families_of_comparisons_are_declared"),
        ("studies", "0011_test_questions_have_known_answers"),
        ("studies", "0012_studies_may_bar_flagged_annotators"),
        ("studies", "0013_sections_may_hold_attention_checks"),
        ("studies", "0014_sections_may_be_tests_before_the_work"),
        ("studies", "0015_plans_of_size"),
        ("studies", "0016_plans_belong_to_their_study"),
        ("studies", "0017_pilot_files"),
        ("studies", "0018_parts_of_jobs"),
        ("studies", "0019_answers_of_studies_as_pilots"),
        ("studies", "0020_prompts_may_belong_to_a_group"),
        ("studies", "0021_studies_know_which_answers_count"),
        ("studies", "0022_studies_say_what_may_be_given_away"),
        ("studies", "0023_drafts_keep_what_the_pages_of_a_new_study_chose"),
        ("studies", "0024_researchers_have_facts_for_their_texts"),
        ("studies", "0025_studies_become_templates_of_their_members"),
        ("studies", "0026_jobs_are_seen_by_their_starters"),
        ("studies", "0027_studies_name_the_template_of_their_paper"),
        ("studies", "0028_groups_of_prompts_have_a_name"),
        ("studies", "0029_studies_declare_groups_to_compare"),
    ]
    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL)]
    operations = [
        table(
            "Qualification",
            {
                "ordering": ["name"],
                "base_manager_name": "objects",
                "constraints": [
                    UniqueConstraint(fields=["owner", "name", "valid_days"], name="qualification_name_once_per_owner"),
                    CheckConstraint(condition=~Q(name=""), name="qualification_has_a_name"),
                    CheckConstraint(condition=Q(valid_days__gte=1), name="qualification_is_valid_for_a_day_or_longer"),
                ],
            },
            name=models.CharField(max_length=100),
            valid_days=models.PositiveSmallIntegerField(
                "valid for days",
                default=180,
                help_text="A person who passed the test within this many days skips it in the next study.",
                validators=[MinValueValidator(1), MaxValueValidator(3650)],
            ),
            at=models.DateTimeField(db_default=Now()),
            owner=link(settings.AUTH_USER_MODEL, "qualifications"),
        ),
        table(
            "SizePlan",
            {"ordering": ["-pk"], "base_manager_name": "objects"},
            inputs=models.JSONField(),
            fingerprint=models.CharField(max_length=64),
            seed=models.BigIntegerField(),
            result=models.JSONField(),
            at=models.DateTimeField(db_default=Now()),
            by=optional_link(settings.AUTH_USER_MODEL),
        ),
        table(
            "Study",
            {
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
            code=models.UUIDField(unique=True, default=uuid.uuid4, editable=False),
            title=models.CharField(max_length=200, help_text="For researchers. Annotators do not see it."),
            public_title=models.CharField(
                max_length=200,
                blank=True,
                help_text="The title on annotators' pages. It should not reveal the hypotheses.",
            ),
            language=models.CharField(
                max_length=12,
                default="en",
                help_text="Language of the annotators' pages, such as en or pt-BR.",
                validators=[LANGUAGE_TAG],
            ),
            seed=models.PositiveBigIntegerField(
                default=studies.models.fields.new_seed,
                help_text="All random draws of the study depend on it.",
                validators=[MaxValueValidator(4611686018427387904)],
            ),
            keeps_origin_out=models.BooleanField(
                "exclude annotators of the original study", default=True, help_text="Only for a study that is a clone."
            ),
            exclusion_group=models.CharField(
                max_length=50, blank=True, help_text="A person can take part in only one study of a group."
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
                blank=True,
                default=dict,
                editable=False,
                help_text="How the stimuli were prepared (studies.stimuli.normalising.Preparation).",
            ),
            batches_per_annotator=models.PositiveSmallIntegerField(
                default=1, validators=[MinValueValidator(1), MaxValueValidator(32767)]
            ),
            annotators_per_batch=models.PositiveSmallIntegerField(
                default=1,
                help_text="How many annotators receive the same batch.",
                validators=[MinValueValidator(1), MaxValueValidator(32767)],
            ),
            coverage=models.CharField(
                max_length=12,
                default="balanced",
                choices=[
                    ("balanced", "balanced: every prompt shown equally often"),
                    ("independent", "independent: each batch is a new random sample"),
                ],
            ),
            section_order=models.CharField(
                max_length=16,
                default="fixed",
                choices=[
                    ("fixed", "as listed"),
                    ("counterbalanced", "random for each annotator (a section stays after the section that it reuses)"),
                ],
            ),
            target_kind=models.CharField(
                max_length=10,
                default="submitted",
                choices=[
                    ("submitted", "annotators who submitted"),
                    ("kept", "annotators kept by the outcome-blind rules"),
                ],
            ),
            target_n=models.PositiveIntegerField(
                "target n", blank=True, null=True, validators=[MaxValueValidator(1000000)]
            ),
            target_cap=models.PositiveIntegerField(
                blank=True,
                null=True,
                help_text="The study never has more places, even after exclusions. Empty: 1.5 times the target.",
                validators=[MaxValueValidator(1000000)],
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
                blank=True,
                null=True,
                help_text="For one batch.",
                validators=[MinValueValidator(0)],
                max_digits=7,
                decimal_places=2,
            ),
            minutes=models.PositiveSmallIntegerField(
                "declared minutes",
                blank=True,
                null=True,
                help_text="For one batch.",
                validators=[MaxValueValidator(1440)],
            ),
            wage_per_hour=models.DecimalField(
                "target hourly pay",
                blank=True,
                null=True,
                validators=[MinValueValidator(0)],
                max_digits=8,
                decimal_places=2,
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
                blank=True, null=True, help_text="The last day on which an annotator can withdraw."
            ),
            erase_after_days=models.PositiveSmallIntegerField(
                default=90,
                help_text="Panel ids are erased this many days after closing, or earlier by payment.",
                validators=[MaxValueValidator(3650)],
            ),
            start_window_seconds=models.PositiveIntegerField(
                default=600, validators=[MinValueValidator(60), MaxValueValidator(604800)]
            ),
            idle_seconds=models.PositiveIntegerField(
                blank=True,
                null=True,
                help_text="A place is released after this time without an answer. Empty: 30 minutes or 3 times the declared minutes, whichever is longer.",
                validators=[MinValueValidator(60), MaxValueValidator(2592000)],
            ),
            grace_seconds=models.PositiveIntegerField(
                default=7200,
                help_text="Annotators who have started can finish within this time after closing.",
                validators=[MinValueValidator(0), MaxValueValidator(2592000)],
            ),
            state=models.CharField(
                max_length=9,
                default="draft",
                editable=False,
                choices=[
                    ("draft", "Draft"),
                    ("launching", "Launching"),
                    ("launched", "Launched"),
                    ("paused", "Paused"),
                    ("closing", "Closing"),
                    ("closed", "Closed"),
                ],
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
            drawing_version=models.PositiveSmallIntegerField(
                default=2,
                editable=False,
                help_text="How batches and the order of pages are drawn: 1, each item by itself; 2, balanced within each person.",
            ),
            bars_flagged_annotators=models.BooleanField(
                "flagged annotators get no further batch",
                default=False,
                help_text="Annotators whom a declared rule about test questions flags finish their batch and get no other. The consent text says so.",
            ),
            size_plan=optional_link("studies.sizeplan", editable=False),
            counting_version=models.PositiveSmallIntegerField(
                default=2,
                editable=False,
                help_text="Which answers count: 1, a stopping rule counts every claim with the answers that it had; 2, a claim that the rules exclude when the stopping rule passes it does not count, and no answer about an unseen image does.",
            ),
            asks_to_share_preferences=models.BooleanField(
                "ask whether preferences may be given away",
                default=False,
                help_text="Beside the consent, annotators are asked whether others may train models with their preferences. Without a yes, no export of preferences has theirs.",
            ),
            licence=models.CharField(
                "licence of the data",
                max_length=100,
                blank=True,
                help_text="The licence under which you give the data away, such as cc-by-4.0. Cards of datasets name it.",
            ),
            stimuli_source=models.CharField(
                "source of the texts",
                max_length=300,
                blank=True,
                help_text="Only if you may not pass the prompts and outputs on: where others get them, and their licence. Exports then have hashes of the texts.",
            ),
            guide=models.JSONField(
                null=True,
                editable=False,
                help_text="What was chosen on the pages of a new study, which show it again. Only their drafts have it, and no design.",
            ),
            template=models.SlugField(
                max_length=60,
                blank=True,
                editable=False,
                help_text="The template of a paper from which the draft was made. Its report opens what it shows as in that paper.",
            ),
            group_noun=models.CharField(
                "name of a group of prompts",
                max_length=12,
                blank=True,
                default="",
                choices=[
                    ("", "groups of prompts"),
                    ("document", "documents"),
                    ("dialogue", "dialogues"),
                    ("topic", "topics"),
                    ("source", "sources"),
                ],
                help_text="What reports call the groups if each prompt has one. An import takes it from the name of the column.",
            ),
            compared_groups=models.CharField(
                "compare groups by",
                max_length=300,
                blank=True,
                help_text="The report says whether these groups of people or prompts agree. For example: domain; panel; answer: fluent. Also arm, language, length, and “sample:” and “attribute:” with a name.",
                validators=[
                    RegexValidator(
                        "\\A\\s*(?:panel|arm|language|domain|length|(?:answer|sample|attribute):[^;]*[^;\\s][^;]*)\\s*(?:;\\s*(?:panel|arm|language|domain|length|(?:answer|sample|attribute):[^;]*[^;\\s][^;]*)\\s*)*\\Z",
                        "This is not a list of groups. Separate them by semicolons: panel, arm, language, domain, length, answer:KEY, sample:COLUMN, attribute:NAME.",
                    )
                ],
            ),
        ),
        migrations.AddField("sizeplan", "study", link("studies.study", "size_plans")),
        migrations.AddConstraint(
            "sizeplan", UniqueConstraint(fields=["study", "fingerprint"], name="size_plan_once_per_study_and_inputs")
        ),
        migrations.AddConstraint(
            "sizeplan", CheckConstraint(condition=~Q(fingerprint=""), name="size_plan_has_a_fingerprint")
        ),
        table(
            "Design",
            {
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
            version=models.PositiveSmallIntegerField(),
            canonical=models.TextField(),
            sha256=models.CharField(max_length=64),
            at=models.DateTimeField(db_default=Now()),
            reason=models.TextField(blank=True),
            by=optional_link(settings.AUTH_USER_MODEL),
            study=link("studies.study", "designs"),
        ),
        table(
            "StudyMember",
            {"constraints": [UniqueConstraint(fields=["study", "user"], name="member_once_per_study")]},
            role=models.CharField(
                max_length=6,
                choices=[
                    ("owner", "owner: can do everything and manage members"),
                    ("editor", "editor: can define, launch and analyse"),
                    ("viewer", "viewer: can only read"),
                    ("coder", "coder: can only code explanations, blind"),
                ],
            ),
            study=models.ForeignKey("studies.study", models.CASCADE, related_name="members"),
            user=models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships"),
        ),
        table(
            "System",
            {
                "base_manager_name": "objects",
                "ordering": ["name"],
                "constraints": [
                    UniqueConstraint(fields=["study", "name"], name="system_name_once_per_study"),
                    CheckConstraint(condition=~Q(name=""), name="system_has_a_name"),
                ],
            },
            name=models.CharField(max_length=100, help_text="Annotators do not see it."),
            is_human=models.BooleanField("human author", default=False),
            study=link("studies.study", "systems"),
            reference=models.CharField(
                max_length=9,
                blank=True,
                choices=[
                    ("reference", "reference"),
                    ("maximal", "maximal reference"),
                    ("minimal", "minimal reference"),
                    ("test", "only in test questions"),
                ],
                help_text="Reference: the other systems are compared with it. Maximal or minimal reference: its outputs are as good or as bad as possible and are rated among the others. Only in test questions: its outputs are never compared.",
            ),
        ),
        table(
            "Arm",
            {
                "base_manager_name": "objects",
                "ordering": ["name"],
                "constraints": [
                    UniqueConstraint(fields=["study", "name"], name="arm_name_once_per_study"),
                    CheckConstraint(condition=Q(reward=None) | Q(reward__gte=0), name="arm_pays_nothing_below_zero"),
                ],
            },
            name=models.CharField(max_length=50, default="all"),
            condition=models.CharField(
                max_length=12,
                default="none",
                choices=[
                    ("none", "None"),
                    ("instructions", "Instructions"),
                    ("examples", "Examples"),
                    ("comparison", "Comparison"),
                ],
            ),
            instructions=models.TextField(
                blank=True, help_text="Replaces the study's instructions in this arm. Markdown."
            ),
            domain=models.CharField(
                max_length=50, blank=True, help_text="Show only prompts of this domain. Empty: all domains."
            ),
            wanted=models.PositiveIntegerField(
                blank=True,
                null=True,
                help_text="Number of places. Empty: an equal share of the target.",
                validators=[MaxValueValidator(1000000)],
            ),
            reward=models.DecimalField(
                blank=True,
                null=True,
                help_text="Empty: as in the study.",
                validators=[MinValueValidator(0)],
                max_digits=7,
                decimal_places=2,
            ),
            minutes=models.PositiveSmallIntegerField(
                blank=True, null=True, help_text="Empty: as in the study.", validators=[MaxValueValidator(1440)]
            ),
            study=link("studies.study", "arms"),
        ),
        table(
            "ArmSystem",
            {
                "base_manager_name": "objects",
                "constraints": [UniqueConstraint(fields=["arm", "system"], name="arm_system_once")],
            },
            arm=link("studies.arm", "arm_systems"),
            system=link("studies.system"),
        ),
        migrations.AddField(
            "arm",
            "systems",
            models.ManyToManyField("studies.system", blank=True, related_name="+", through="studies.ArmSystem"),
        ),
        table(
            "Section",
            {
                "base_manager_name": "objects",
                "ordering": ["position"],
                "constraints": [
                    CheckConstraint(
                        condition=Q(reuses=None) | ~Q(reuses=F("id")), name="section_does_not_reuse_itself"
                    ),
                    UniqueConstraint(fields=["study", "position"], name="section_position_once_per_study"),
                    CheckConstraint(
                        condition=Q(pass_mark=None) | Q(pass_mark__gte=1), name="section_pass_mark_is_above_zero"
                    ),
                    CheckConstraint(
                        condition=Q(pass_mark=None) | Q(purpose__in=["training", "screening"]),
                        name="section_with_a_pass_mark_does_not_count_in_the_results",
                    ),
                    CheckConstraint(
                        condition=Q(qualification=None) | Q(pass_mark__isnull=False),
                        name="section_qualifies_only_with_a_pass_mark",
                    ),
                    UniqueConstraint(
                        fields=["study"],
                        condition=Q(pass_mark__isnull=False),
                        name="section_is_the_only_test_of_its_study",
                    ),
                ],
            },
            position=models.PositiveSmallIntegerField(validators=[MaxValueValidator(32767)]),
            protocol=models.CharField(max_length=20, choices=studies.protocols.choices),
            purpose=models.CharField(
                max_length=9,
                default="live",
                choices=[
                    ("live", "live: counts in the results"),
                    ("training", "training: never counts in the results"),
                    ("screening", "screening: decides who can take part"),
                    ("attention", "attention checks: asked on pages of the live sections"),
                ],
            ),
            m=models.PositiveSmallIntegerField(
                default=5,
                help_text="Exposure samples: the number of prompts in this section. 0 for a survey.",
                validators=[MaxValueValidator(100)],
            ),
            settings=models.JSONField(blank=True, default=dict),
            reuses=optional_link(
                "studies.section",
                "reused_by",
                help_text="Show the first m items of that section again instead of new items.",
            ),
            study=link("studies.study", "sections"),
            pass_mark=models.PositiveSmallIntegerField(
                blank=True,
                null=True,
                help_text="Makes the section a test before the work: this many answers must be right, in one of two attempts. Empty: no test.",
                validators=[MinValueValidator(1), MaxValueValidator(100)],
            ),
            qualification=optional_link(
                "studies.qualification",
                "sections",
                help_text="People who passed it lately, in any study that names it, skip the test. Empty: everybody takes it.",
            ),
        ),
        table(
            "SectionArm",
            {
                "base_manager_name": "objects",
                "constraints": [UniqueConstraint(fields=["section", "arm"], name="section_arm_once")],
            },
            arm=link("studies.arm"),
            section=link("studies.section", "section_arms"),
        ),
        migrations.AddField(
            "section",
            "arms",
            models.ManyToManyField(
                "studies.arm",
                blank=True,
                help_text="Only these arms see the section. Empty: all arms.",
                related_name="+",
                through="studies.SectionArm",
            ),
        ),
        table(
            "Question",
            {
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
            position=models.PositiveSmallIntegerField(validators=[MaxValueValidator(32767)]),
            key=models.SlugField(),
            text=models.TextField(),
            help=models.TextField(blank=True, help_text="Shown below the question. Markdown."),
            criterion=models.CharField(max_length=50, blank=True),
            scale=models.JSONField(blank=True, default=dict),
            required=models.BooleanField(default=True),
            skip_reasons=models.JSONField(blank=True, default=list),
            section=link("studies.section", "questions"),
            x=optional_link("studies.system"),
            y=optional_link("studies.system"),
        ),
    ]
