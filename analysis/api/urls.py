"""The addresses below /api/v1/."""

from django.urls import path, re_path

from . import answers, exports, pay, runs, schema, stimuli, studies

study = "studies/<uuid:code>/"

urlpatterns = [
    path("schema/", schema.Schema.as_view(), name="api-schema"),
    path("docs/", schema.Docs.as_view(), name="api-docs"),
    path("studies/", studies.Studies.as_view(), name="api-studies"),
    path(study, studies.StudyDetail.as_view(), name="api-study"),
    path(f"{study}design/", studies.StudyDesign.as_view(), name="api-design"),
    path(f"{study}progress/", studies.Progress.as_view(), name="api-progress"),
    path(f"{study}sample/", studies.Sample.as_view(), name="api-sample"),
    path(f"{study}systems/", stimuli.Systems.as_view(), name="api-systems"),
    path(f"{study}prompts/", stimuli.Prompts.as_view(), name="api-prompts"),
    path(f"{study}outputs/", stimuli.Outputs.as_view(), name="api-outputs"),
    path(f"{study}batches/", stimuli.Batches.as_view(), name="api-batches"),
    path(f"{study}assignments/", answers.Assignments.as_view(), name="api-assignments"),
    path(f"{study}responses/", answers.Responses.as_view(), name="api-responses"),
    path(f"{study}codings/", answers.Codings.as_view(), name="api-codings"),
    path(f"{study}exclusions/", answers.Exclusions.as_view(), name="api-exclusions"),
    path(f"{study}exclusions/<int:number>/reverse/", answers.ReverseExclusion.as_view(), name="api-exclusion-reverse"),
    path(f"{study}pay/", pay.Pay.as_view(), name="api-pay"),
    path(f"{study}payments/", pay.Payments.as_view(), name="api-payments"),
    path(f"{study}payments.csv", pay.PaymentsFile.as_view(), name="api-payments-file"),
    path(f"{study}analyses/", runs.Analyses.as_view(), name="api-analyses"),
    path(f"{study}analyses/<int:number>/", runs.AnalysisDetail.as_view(), name="api-analysis"),
    path(f"{study}jobs/", runs.Jobs.as_view(), name="api-jobs"),
    path(f"{study}jobs/<uuid:job>/", runs.JobDetail.as_view(), name="api-job"),
    path(f"{study}jobs/<uuid:job>/file/", runs.JobFile.as_view(), name="api-job-file"),
    path(f"{study}exports/", exports.Exports.as_view(), name="api-exports"),
    *(
        path(f"{study}exports/{name}", view.as_view(), name=f"api-export-{name}")
        for name, view in exports.export_views().items()
    ),
    path(f"{study}exports/codebook.json", exports.Codebook.as_view(), name="api-codebook"),
    path(f"{study}exports/codebook.md", exports.CodebookPage.as_view(), name="api-codebook-page"),
    path(f"{study}archive/", exports.Archive.as_view(), name="api-archive"),
    re_path(r"", schema.NotThere.as_view()),
]
