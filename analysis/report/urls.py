from django.urls import path

from . import views

urlpatterns = [
    path("studies/<uuid:code>/analyses/", views.analysis_list_page, name="analyses"),
    path("studies/<uuid:code>/share/", views.share_page, name="share"),
    path("studies/<uuid:code>/share/file/", views.start_export, name="export_start"),
    path("studies/<uuid:code>/analyses/run/", views.start_analysis, name="analysis_start"),
    path(
        "studies/<uuid:code>/analyses/jobs/<uuid:job>/",
        views.analysis_progress_and_cancel_page,
        name="analysis_progress",
    ),
    path("studies/<uuid:code>/analyses/<int:number>/", views.report_page, name="analysis"),
    path("studies/<uuid:code>/analyses/<int:number>/result.json", views.result_json, name="analysis_result"),
    path(
        "studies/<uuid:code>/analyses/<int:number>/tables/<slug:name>.<str:file_format>",
        views.table_file,
        name="analysis_table",
    ),
    path(
        "studies/<uuid:code>/analyses/<int:number>/figures/<slug:name>.<str:file_format>",
        views.figure_file,
        name="analysis_figure",
    ),
]
