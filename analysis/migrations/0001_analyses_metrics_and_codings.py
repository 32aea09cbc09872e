"""Analyses that were run, the tokens of programs, what coders say of explanations, metrics, and judges."""

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import migrations, models
from django.db.models import CheckConstraint, F, Index, Q, UniqueConstraint
from django.db.models.functions import Now

import analysis.models
from studies.migrations._tables import link, moment, optional_link, table
from studies.models.guards import append_only_operation

# PostgreSQL keeps these rows as they were stored.
APPEND_ONLY = [
    "analysisrun",
    "figure",
    "codingsample",
    "codingseat",
    "codingitem",
    "coding",
    "annotatorscreening",
    "metricscore",
    "pairscore",
    "metricscomparison",
    "judgecheck",
    "judgecheckoutput",
    "judgecheckresult",
    "calibratedresult",
    "studiescomparison",
]


class Migration(migrations.Migration):
    initial = True
    replaces = [
        ("analysis", "0001_analyses_and_codings"),
        ("analysis", "0002_guards"),
        ("analysis", "0003_annotators_are_screened"),
        ("analysis", "0004_metrics_and_judges"),
        ("analysis", "0005_metrics_are_compared_with_people"),
        ("analysis", "0006_judge_checks"),
        ("analysis", "0007_calibrated_results_are_stored"),
        ("analysis", "0008_samples_from_answers"),
        ("analysis", "0009_researchers_answer_questions_of_forms"),
        ("analysis", "0010_studies_are_compared"),
        ("analysis", "0011_reports_have_links"),
    ]
    dependencies = [("annotators", "0002_panels_and_pay")]
    operations = [
        table(
            "AnalysisRun",
            {
                "base_manager_name": "objects",
                "ordering": ["-number"],
                "constraints": [UniqueConstraint(fields=["study", "number"], name="analysis_number_once_per_study")],
            },
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
        ),
        table(
            "Figure",
            {
                "base_manager_name": "objects",
                "constraints": [UniqueConstraint(fields=["run", "name"], name="figure_name_once_per_analysis")],
            },
            name=models.CharField(max_length=60),
            svg=models.TextField(),
            pdf=models.BinaryField(),
            run=link("analysis.analysisrun", "figures"),
        ),
        table(
            "ApiToken",
            {
                "constraints": [
                    UniqueConstraint(fields=["hash"], name="api_token_hash_once"),
                    CheckConstraint(condition=~Q(hash=""), name="api_token_is_hashed"),
                ]
            },
            name=models.CharField(max_length=100, help_text="The program that uses the token."),
            hash=models.CharField(max_length=64, editable=False),
            scope=models.CharField(
                max_length=5, default="read", choices=[("read", "read"), ("write", "read and write")]
            ),
            created_at=models.DateTimeField(db_default=Now()),
            expires_at=models.DateTimeField(blank=True, null=True),
            revoked_at=moment(),
            used_at=moment(),
            study=models.ForeignKey(
                "studies.study",
                models.CASCADE,
                blank=True,
                null=True,
                help_text="Only this study. Empty: all studies of the user.",
                related_name="api_tokens",
            ),
            user=models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens"),
        ),
        table(
            "CodingSample",
            {
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
        ),
        table(
            "CodingSeat",
            {
                "base_manager_name": "objects",
                "ordering": ["number"],
                "constraints": [
                    UniqueConstraint(fields=["sample", "number"], name="coding_seat_number_once_per_sample"),
                    UniqueConstraint(fields=["sample", "user"], name="coding_seat_once_per_person"),
                    CheckConstraint(condition=Q(number__gte=1, number__lte=3), name="coding_seat_is_one_of_three"),
                ],
            },
            number=models.PositiveSmallIntegerField(),
            sample=link("analysis.codingsample", "seats"),
            user=link(settings.AUTH_USER_MODEL, "coding_seats"),
        ),
        table(
            "CodingItem",
            {
                "base_manager_name": "objects",
                "ordering": ["number"],
                "constraints": [
                    UniqueConstraint(fields=["sample", "number"], name="coding_item_number_once_per_sample"),
                    UniqueConstraint(fields=["sample", "assignment"], name="coding_item_once_per_annotator"),
                ],
            },
            number=models.PositiveIntegerField(),
            assignment=link("annotators.assignment"),
            response=optional_link("annotators.response"),
            sample=link("analysis.codingsample", "items"),
        ),
        table(
            "Coding",
            {
                "base_manager_name": "objects",
                "ordering": ["item", "coder", "revision"],
                "constraints": [
                    UniqueConstraint(
                        fields=["item", "coder", "revision"], name="coding_revision_once_per_item_and_coder"
                    ),
                    CheckConstraint(
                        condition=Q(
                            Q(("labels", ""), ("is_none", True)),
                            Q(Q(("labels", ""), _negated=True), ("is_none", False)),
                            _connector="OR",
                        ),
                        name="coding_gives_labels_or_says_that_none_applies",
                    ),
                ],
            },
            revision=models.PositiveSmallIntegerField(default=1),
            labels=models.TextField(blank=True, help_text="Keys of the codebook, separated by blanks."),
            is_none=models.BooleanField(default=False),
            at=models.DateTimeField(db_default=Now()),
            coder=link(settings.AUTH_USER_MODEL, "codings"),
            item=link("analysis.codingitem", "codings"),
        ),
        table(
            "AnnotatorScreening",
            {
                "base_manager_name": "objects",
                "indexes": [Index(fields=["study", "origin", "-id"], name="screening_latest_of_study")],
            },
            origin=models.CharField(
                max_length=8, choices=[("live", "Live"), ("robot", "Robot"), ("imported", "Imported"), ("test", "Test")]
            ),
            n_assignments=models.PositiveIntegerField(),
            n_answers=models.PositiveIntegerField(),
            has_agreement=models.BooleanField(),
            rule_settings=models.JSONField(),
            result=models.JSONField(),
            at=models.DateTimeField(db_default=Now()),
            by=optional_link(settings.AUTH_USER_MODEL),
            study=link("studies.study", "screenings"),
        ),
        table(
            "Metric",
            {
                "ordering": ["name", "version", "pk"],
                "base_manager_name": "objects",
                "constraints": [
                    UniqueConstraint(
                        fields=["study", "name", "version", "question"],
                        condition=Q(discarded_at=None),
                        name="metric_version_once_per_question",
                    ),
                    UniqueConstraint(
                        fields=["study", "name", "version"],
                        condition=Q(discarded_at=None, question=None),
                        name="metric_version_once_for_whole_outputs",
                    ),
                    CheckConstraint(condition=~Q(name="") & ~Q(version=""), name="metric_has_a_name_and_a_version"),
                    CheckConstraint(condition=Q(kind__in=["metric", "judge"]), name="metric_is_of_a_known_kind"),
                    CheckConstraint(
                        condition=Q(source__in=["built_in", "plug_in", "upload"]),
                        name="metric_comes_from_a_known_source",
                    ),
                    CheckConstraint(
                        condition=Q(scale_high=None, scale_low=None)
                        | Q(scale_high__isnull=False, scale_low__isnull=False, scale_low__lt=F("scale_high")),
                        name="metric_scale_has_two_ends_or_none",
                    ),
                ],
            },
            kind=models.CharField(max_length=6, choices=[("metric", "automatic metric"), ("judge", "model as judge")]),
            name=models.CharField(max_length=100),
            version=models.CharField(
                max_length=200, help_text="The version of the metric's program, or of the judge's model."
            ),
            parameters=models.JSONField(blank=True, default=dict),
            family=models.CharField(
                "family of models",
                max_length=100,
                blank=True,
                help_text="For a judge: who made its model, so that heval can warn where a judged system has the same maker.",
            ),
            fingerprint=models.CharField(max_length=64, editable=False),
            is_lower_better=models.BooleanField("lower is better", default=False),
            scale_low=models.FloatField("lowest point of the scale", blank=True, null=True),
            scale_high=models.FloatField("highest point of the scale", blank=True, null=True),
            source=models.CharField(
                max_length=8,
                choices=[
                    ("built_in", "computed by heval"),
                    ("plug_in", "computed by an installed plug-in"),
                    ("upload", "uploaded file"),
                ],
            ),
            file_sha256=models.CharField(max_length=64, blank=True, editable=False),
            n_scores=models.PositiveIntegerField(default=0, editable=False),
            at=models.DateTimeField(db_default=Now()),
            discarded_at=moment(),
            by=optional_link(settings.AUTH_USER_MODEL),
            question=optional_link(
                "studies.question", help_text="The question that the scores are about. Empty: the output as a whole."
            ),
            study=link("studies.study", "metrics"),
        ),
        table(
            "MetricScore",
            {
                "base_manager_name": "objects",
                "constraints": [
                    UniqueConstraint(fields=["metric", "output", "run"], name="metric_scores_an_output_once_per_run"),
                    CheckConstraint(
                        condition=Q(value__gte=-1000000000000.0, value__lte=1000000000000.0),
                        name="metric_score_is_finite",
                    ),
                    CheckConstraint(condition=Q(run__gte=1), name="metric_run_is_numbered_from_1"),
                ],
            },
            run=models.PositiveSmallIntegerField(default=1, validators=[MaxValueValidator(32767)]),
            value=models.FloatField(),
            metric=link("analysis.metric", "scores"),
            output=link("studies.output"),
        ),
        table(
            "PairScore",
            {
                "base_manager_name": "objects",
                "constraints": [
                    UniqueConstraint(
                        fields=["metric", "first", "second", "run"], name="judge_scores_a_pair_once_per_order_and_run"
                    ),
                    CheckConstraint(condition=Q(value__gte=0, value__lte=1), name="pair_score_is_a_share"),
                    CheckConstraint(condition=~Q(first=F("second")), name="pair_score_is_about_two_outputs"),
                    CheckConstraint(condition=Q(run__gte=1), name="pair_run_is_numbered_from_1"),
                ],
            },
            run=models.PositiveSmallIntegerField(default=1, validators=[MaxValueValidator(32767)]),
            value=models.FloatField(),
            first=link("studies.output"),
            metric=link("analysis.metric", "pair_scores"),
            second=link("studies.output"),
        ),
        table(
            "MetricsComparison",
            {
                "base_manager_name": "objects",
                "indexes": [Index(fields=["study", "question", "-id"], name="comparison_latest_of_question")],
            },
            metrics=models.JSONField(default=list),
            answers_state=models.JSONField(default=dict),
            n_answers=models.PositiveIntegerField(),
            result=models.JSONField(),
            at=models.DateTimeField(db_default=Now()),
            by=optional_link(settings.AUTH_USER_MODEL),
            question=link("studies.question"),
            study=link("studies.study", "metrics_comparisons"),
        ),
        table(
            "JudgeCheck",
            {
                "base_manager_name": "objects",
                "constraints": [
                    UniqueConstraint(fields=["badge_key"], name="judge_check_has_its_own_badge"),
                    CheckConstraint(
                        condition=Q(n_outputs__gte=F("n_test") + F("n_development"), n_test__gte=1),
                        name="judge_check_sample_fits_its_outputs",
                    ),
                    CheckConstraint(condition=Q(certainty_ratio__gte=1), name="judge_check_prefers_unsure_outputs"),
                    CheckConstraint(
                        condition=(Q(min_agreement=None) | Q(min_agreement__gte=0, min_agreement__lt=1))
                        & (
                            Q(min_true_positive_rate=None)
                            | Q(min_true_positive_rate__gte=0, min_true_positive_rate__lt=1)
                        )
                        & (
                            Q(min_true_negative_rate=None)
                            | Q(min_true_negative_rate__gte=0, min_true_negative_rate__lt=1)
                        )
                        & Q(epsilon__gte=0, epsilon__lte=1),
                        name="judge_check_minimums_are_shares",
                    ),
                    CheckConstraint(
                        condition=Q(needs_alternative_test=True)
                        | Q(min_agreement__isnull=False)
                        | Q(min_true_positive_rate__isnull=False)
                        | Q(min_true_negative_rate__isnull=False),
                        name="judge_check_declares_what_is_enough",
                    ),
                    CheckConstraint(
                        condition=Q(is_from_answers=False) | Q(certainty_ratio=1),
                        name="judge_check_of_answers_reads_no_score",
                    ),
                ],
            },
            threshold=models.FloatField(),
            certainty_ratio=models.FloatField(),
            n_development=models.PositiveIntegerField(),
            n_test=models.PositiveIntegerField(),
            n_outputs=models.PositiveIntegerField(),
            people_per_output=models.PositiveSmallIntegerField(validators=[MaxValueValidator(32767)]),
            seed=models.BigIntegerField(),
            min_agreement=models.FloatField(
                "lowest agreement", blank=True, null=True, validators=[MinValueValidator(0), MaxValueValidator(1)]
            ),
            min_true_positive_rate=models.FloatField(
                "lowest true-positive rate",
                blank=True,
                null=True,
                validators=[MinValueValidator(0), MaxValueValidator(1)],
            ),
            min_true_negative_rate=models.FloatField(
                "lowest true-negative rate",
                blank=True,
                null=True,
                validators=[MinValueValidator(0), MaxValueValidator(1)],
            ),
            needs_alternative_test=models.BooleanField("must pass the alternative annotator test"),
            epsilon=models.FloatField(),
            badge_key=models.CharField(max_length=40, default=analysis.models.new_badge_key),
            at=models.DateTimeField(db_default=Now()),
            by=optional_link(settings.AUTH_USER_MODEL),
            judge=link("analysis.metric", "checks"),
            question=link("studies.question"),
            study=link("studies.study", "judge_checks"),
            is_from_answers=models.BooleanField(default=False),
        ),
        table(
            "JudgeCheckOutput",
            {
                "base_manager_name": "objects",
                "constraints": [
                    UniqueConstraint(fields=["judge_check", "output"], name="judge_check_draws_an_output_once"),
                    CheckConstraint(condition=Q(part__in=["development", "test"]), name="judge_check_part_is_known"),
                    CheckConstraint(
                        condition=Q(probability__gt=0, probability__lte=1), name="judge_check_probability_is_one"
                    ),
                ],
            },
            part=models.CharField(
                max_length=11,
                choices=[
                    ("development", "development: it may be used for changing the judge"),
                    ("test", "test: it decides"),
                ],
            ),
            probability=models.FloatField(),
            judge_check=link("analysis.judgecheck", "outputs"),
            output=link("studies.output"),
        ),
        table(
            "JudgeCheckResult",
            {
                "base_manager_name": "objects",
                "constraints": [
                    CheckConstraint(
                        condition=Q(verdict__in=["good", "not_good", "open"]), name="judge_check_verdict_is_known"
                    ),
                    CheckConstraint(
                        condition=~Q(fingerprint="") & ~Q(guideline_sha256=""),
                        name="judge_check_result_says_what_it_is_about",
                    ),
                ],
            },
            fingerprint=models.CharField(max_length=64),
            guideline_sha256=models.CharField(max_length=64),
            verdict=models.CharField(
                max_length=8, choices=[("good", "good enough"), ("not_good", "not good enough"), ("open", "open")]
            ),
            n_labels=models.PositiveIntegerField(),
            result=models.JSONField(),
            code_version=models.CharField(max_length=80),
            at=models.DateTimeField(db_default=Now()),
            by=optional_link(settings.AUTH_USER_MODEL),
            judge=link("analysis.metric"),
            judge_check=link("analysis.judgecheck", "results"),
        ),
        table(
            "CalibratedResult",
            {
                "base_manager_name": "objects",
                "indexes": [Index(fields=["study", "question", "-id"], name="calibrated_latest_of_question")],
            },
            judges=models.JSONField(default=list),
            options=models.JSONField(default=dict),
            n_assignments=models.PositiveIntegerField(),
            result=models.JSONField(),
            at=models.DateTimeField(db_default=Now()),
            by=optional_link(settings.AUTH_USER_MODEL),
            question=link("studies.question"),
            study=link("studies.study", "calibrated_results"),
        ),
        table(
            "ReportAnswer",
            {"constraints": [UniqueConstraint(fields=["study", "key"], name="report_answer_once_per_study")]},
            key=models.CharField(max_length=120),
            text=models.TextField(blank=True),
            study=models.ForeignKey("studies.study", models.CASCADE, related_name="report_answers"),
        ),
        table(
            "StudiesComparison",
            {
                "ordering": ["-number"],
                "base_manager_name": "objects",
                "constraints": [
                    UniqueConstraint(fields=["study", "number"], name="studies_comparison_number_once_per_study")
                ],
            },
            number=models.PositiveIntegerField(),
            parameters=models.JSONField(default=dict),
            result=models.JSONField(),
            result_sha256=models.CharField(max_length=64),
            figure_svg=models.TextField(),
            figure_pdf=models.BinaryField(),
            at=models.DateTimeField(db_default=Now()),
            by=optional_link(settings.AUTH_USER_MODEL),
            study=link("studies.study", "studies_comparisons"),
        ),
        table(
            "ReportLink",
            {
                "ordering": ["-pk"],
                "constraints": [
                    UniqueConstraint(fields=["hash"], name="report_link_hash_once"),
                    CheckConstraint(condition=~Q(hash=""), name="report_link_is_hashed"),
                ],
            },
            hash=models.CharField(max_length=64, editable=False),
            is_anonymous=models.BooleanField(default=False),
            parts=models.JSONField(blank=True, default=list),
            at=models.DateTimeField(db_default=Now()),
            expires_at=models.DateTimeField(),
            revoked_at=moment(),
            by=optional_link(settings.AUTH_USER_MODEL),
            run=link("analysis.analysisrun", "links"),
        ),
        *(append_only_operation(f"analysis_{name}") for name in APPEND_ONLY),
    ]
