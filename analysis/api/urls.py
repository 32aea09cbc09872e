"""URLs below /api/v1/."""

from django.urls import path, re_path

from analysis.metrics.dataset import SCRIPTS

from . import (
    acts,
    annotators,
    answers,
    base,
    drafts,
    exports,
    forms,
    known_answers,
    links,
    metrics,
    pay,
    plans,
    schema,
    stimuli,
    studies,
)  # fmt: skip

study = "studies/<uuid:code>/"

urlpatterns = [
    path("schema/", schema.SchemaView.as_view(), name="api-schema"),
    path("docs/", schema.DocsView.as_view(), name="api-docs"),
    path("templates/", drafts.TemplatesView.as_view(), name="api-templates"),
    path("studies/", studies.StudiesView.as_view(), name="api-studies"),
    path(study, studies.StudyDetailView.as_view(), name="api-study"),
    path(f"{study}checklist/", acts.ChecklistView.as_view(), name="api-checklist"),
    path(f"{study}launch/", acts.LaunchView.as_view(), name="api-launch"),
    *acts.act_paths(study),
    path(f"{study}members/", acts.MembersView.as_view(), name="api-members"),
    path(f"{study}log/", acts.LogView.as_view(), name="api-log"),
    path(f"{study}bundle/", drafts.BundleView.as_view(), name="api-bundle"),
    path(f"{study}cards/", drafts.CardsView.as_view(), name="api-cards"),
    path(f"{study}question/", drafts.QuestionView.as_view(), name="api-question"),
    path(f"{study}texts/", drafts.TextsView.as_view(), name="api-texts"),
    path(f"{study}links/", links.LinksView.as_view(), name="api-links"),
    path(f"{study}links/<slug:key>/", links.LinkDetailView.as_view(), name="api-link"),
    path(f"{study}links/<slug:key>/stop/", links.StopLinkView.as_view(), name="api-link-stop"),
    path(f"{study}links/<slug:key>/open/", links.ReopenLinkView.as_view(), name="api-link-open"),
    path(f"{study}design/", studies.StudyDesignView.as_view(), name="api-design"),
    path(f"{study}progress/", studies.ProgressView.as_view(), name="api-progress"),
    path(f"{study}demographics/", studies.DemographicsView.as_view(), name="api-demographics"),
    path(f"{study}systems/", stimuli.SystemsView.as_view(), name="api-systems"),
    path(f"{study}prompts/", stimuli.PromptsView.as_view(), name="api-prompts"),
    path(f"{study}outputs/", stimuli.OutputsView.as_view(), name="api-outputs"),
    path(f"{study}imports/", answers.ImportsView.as_view(), name="api-imports"),
    path(f"{study}imports/answers/", answers.AnswerImportsView.as_view(), name="api-answer-imports"),
    path(f"{study}imports/<slug:token>/", answers.ImportDetailView.as_view(), name="api-import"),
    path(f"{study}attention-checks/", known_answers.AttentionChecksView.as_view(), name="api-attention-checks"),
    path(f"{study}test-questions/", known_answers.KnownAnswersView.as_view(), name="api-test-questions"),
    path(f"{study}practice-items/", known_answers.PracticeItemsView.as_view(), name="api-practice-items"),
    path(f"{study}batches/", stimuli.BatchesView.as_view(), name="api-batches"),
    path(f"{study}annotators/", annotators.AnnotatorsView.as_view(), name="api-annotators"),
    path(f"{study}annotators/<slug:annotator>/bar/", annotators.BarView.as_view(), name="api-annotator-bar"),
    path(f"{study}annotators/<slug:annotator>/lift/", annotators.LiftBarringView.as_view(), name="api-annotator-lift"),
    path(f"{study}plans/", plans.PlansView.as_view(), name="api-plans"),
    path(f"{study}plans/numbers/", plans.PlanNumbersView.as_view(), name="api-plan-numbers"),
    path(f"{study}plans/pilots/", plans.PlanPilotsView.as_view(), name="api-plan-pilots"),
    path(f"{study}plans/strategies/", plans.PlanStrategiesView.as_view(), name="api-plan-strategies"),
    path(f"{study}plans/<int:plan>/", plans.PlanDetailView.as_view(), name="api-plan"),
    path(f"{study}plans/<int:plan>/choose/", plans.ChoosePlanView.as_view(), name="api-plan-choose"),
    path(f"{study}metrics/", metrics.MetricsView.as_view(), name="api-metrics"),
    path(f"{study}metrics/compute/", metrics.ComputeMetricsView.as_view(), name="api-metrics-compute"),
    path(f"{study}metrics/comparison/", metrics.MetricsComparisonView.as_view(), name="api-metrics-comparison"),
    path(f"{study}metrics/<int:metric>/discard/", metrics.DiscardMetricView.as_view(), name="api-metric-discard"),
    path(f"{study}assignments/", answers.AssignmentsView.as_view(), name="api-assignments"),
    path(f"{study}responses/", answers.ResponsesView.as_view(), name="api-responses"),
    path(f"{study}codings/", answers.CodingsView.as_view(), name="api-codings"),
    path(f"{study}exclusions/", answers.ExclusionsView.as_view(), name="api-exclusions"),
    path(
        f"{study}exclusions/<int:number>/reverse/", answers.ReverseExclusionView.as_view(), name="api-exclusion-reverse"
    ),
    path(f"{study}pay/", pay.PayReportView.as_view(), name="api-pay"),
    path(f"{study}payments/", pay.PaymentsView.as_view(), name="api-payments"),
    path(f"{study}payments.csv", pay.PaymentsCsvView.as_view(), name="api-payments-file"),
    path(f"{study}analyses/", exports.AnalysesView.as_view(), name="api-analyses"),
    path(f"{study}analyses/<int:number>/", exports.AnalysisDetailView.as_view(), name="api-analysis"),
    path(f"{study}report-links/", exports.ReportLinksView.as_view(), name="api-report-links"),
    path(
        f"{study}report-links/<int:link>/revoke/",
        exports.RevokeReportLinkView.as_view(),
        name="api-report-link-revoke",
    ),
    path(f"{study}analyses/<int:number>/report.pdf", exports.AnalysisPdfView.as_view(), name="api-analysis-pdf"),
    path(f"{study}report-forms/", forms.ReportFormsView.as_view(), name="api-report-forms"),
    path(f"{study}report-forms/<slug:form>.<slug:extension>", forms.ReportFormView.as_view(), name="api-report-form"),
    path(f"{study}comparisons/", exports.StudiesComparisonsView.as_view(), name="api-comparisons"),
    path(f"{study}comparisons/<int:number>/", exports.StudiesComparisonDetailView.as_view(), name="api-comparison"),
    path(f"{study}judge/", metrics.JudgeCheckView.as_view(), name="api-judge-check"),
    path(f"{study}judge/sample/", metrics.JudgeSampleView.as_view(), name="api-judge-sample"),
    path(f"{study}calibrated/", metrics.CalibratedView.as_view(), name="api-calibrated"),
    path(f"{study}jobs/", exports.JobsView.as_view(), name="api-jobs"),
    path(f"{study}jobs/<uuid:job>/", exports.JobDetailView.as_view(), name="api-job"),
    path(f"{study}jobs/<uuid:job>/cancel/", exports.JobCancelView.as_view(), name="api-job-cancel"),
    path(f"{study}jobs/<uuid:job>/file/", exports.JobFileView.as_view(), name="api-job-file"),
    path(f"{study}exports/", exports.ExportsView.as_view(), name="api-exports"),
    *(
        path(f"{study}exports/{name}", view, name=f"api-export-{name}")
        for name, view in exports.build_export_file_and_hash_views().items()
    ),
    *(
        path(
            f"{study}exports/{name}",
            exports.ExportScriptView.as_view(name=name, summaries={"GET": f"The script {name} for the table headline"}),
            name=f"api-export-{name}",
        )
        for name in SCRIPTS
    ),
    path(f"{study}exports/codebook.json", exports.CodebookView.as_view(), name="api-codebook"),
    path(f"{study}exports/codebook.md", exports.CodebookMarkdownView.as_view(), name="api-codebook-page"),
    path(f"{study}exports/archive.zip", exports.ArchiveView.as_view(), name="api-archive"),
    re_path(r"", base.NotFoundView.as_view()),
]
