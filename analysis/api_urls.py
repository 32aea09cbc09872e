"""The addresses below /api/v1/."""

from django.urls import path, re_path

from . import api

study = "studies/<uuid:code>/"

urlpatterns = [
    path("schema/", api.Schema.as_view(), name="api-schema"),
    path("docs/", api.Docs.as_view(), name="api-docs"),
    path("studies/", api.Studies.as_view(), name="api-studies"),
    path(study, api.StudyDetail.as_view(), name="api-study"),
    path(f"{study}design/", api.StudyDesign.as_view(), name="api-design"),
    path(f"{study}progress/", api.Progress.as_view(), name="api-progress"),
    path(f"{study}sample/", api.Sample.as_view(), name="api-sample"),
    path(f"{study}systems/", api.Systems.as_view(), name="api-systems"),
    path(f"{study}prompts/", api.Prompts.as_view(), name="api-prompts"),
    path(f"{study}outputs/", api.Outputs.as_view(), name="api-outputs"),
    path(f"{study}batches/", api.Batches.as_view(), name="api-batches"),
    path(f"{study}assignments/", api.Assignments.as_view(), name="api-assignments"),
    path(f"{study}responses/", api.Responses.as_view(), name="api-responses"),
    path(f"{study}codings/", api.Codings.as_view(), name="api-codings"),
    path(f"{study}exclusions/", api.Exclusions.as_view(), name="api-exclusions"),
    path(f"{study}exclusions/<int:number>/reverse/", api.ReverseExclusion.as_view(), name="api-exclusion-reverse"),
    path(f"{study}pay/", api.Pay.as_view(), name="api-pay"),
    path(f"{study}payments/", api.Payments.as_view(), name="api-payments"),
    path(f"{study}payments.csv", api.PaymentsFile.as_view(), name="api-payments-file"),
    path(f"{study}analyses/", api.Analyses.as_view(), name="api-analyses"),
    path(f"{study}analyses/<int:number>/", api.AnalysisDetail.as_view(), name="api-analysis"),
    path(f"{study}jobs/", api.Jobs.as_view(), name="api-jobs"),
    path(f"{study}jobs/<uuid:job>/", api.JobDetail.as_view(), name="api-job"),
    path(f"{study}jobs/<uuid:job>/file/", api.JobFile.as_view(), name="api-job-file"),
    path(f"{study}exports/", api.Exports.as_view(), name="api-exports"),
    *(
        path(f"{study}exports/{name}", view.as_view(), name=f"api-export-{name}")
        for name, view in api.export_views().items()
    ),
    path(f"{study}exports/codebook.json", api.Codebook.as_view(), name="api-codebook"),
    path(f"{study}exports/codebook.md", api.CodebookPage.as_view(), name="api-codebook-page"),
    path(f"{study}archive/", api.Archive.as_view(), name="api-archive"),
    re_path(r"", api.NotThere.as_view()),
]
