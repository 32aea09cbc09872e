from django.urls import path

from . import archive_views, between_views, link_views, views

urlpatterns = [
    path("new/archive/", archive_views.archive_upload_page, name="archive_upload"),
    path("<int:pk>/new/invented/", views.invented_report_page, name="new_study_invented"),
    path("<int:pk>/analyses/", views.analysis_list_page, name="analyses"),
    path("<int:pk>/comparisons/", between_views.studies_comparisons_page, name="studies_comparisons"),
    path("<int:pk>/comparisons/<int:number>/", between_views.studies_comparison_page, name="studies_comparison"),
    path(
        "<int:pk>/comparisons/<int:number>/<slug:name>.<str:file_format>",
        between_views.studies_comparison_file,
        name="studies_comparison_file",
    ),
    path("<int:pk>/share/", views.share_page, name="share"),
    path("<int:pk>/share/link/", link_views.make_link_page, name="report_link_make"),
    path("<int:pk>/share/link/<int:number>/revoke/", link_views.revoke_link_page, name="report_link_revoke"),
    path("<int:pk>/share/file/", views.start_export, name="export_start"),
    path("<int:pk>/analyses/run/", views.start_analysis, name="analysis_start"),
    path("<int:pk>/analyses/<int:number>/", views.report_page, name="analysis"),
    path("<int:pk>/analyses/<int:number>/pdf/", views.start_pdf, name="analysis_pdf"),
    path("<int:pk>/analyses/<int:number>/result.json", views.result_json, name="analysis_result"),
    path("<int:pk>/analyses/<int:number>/answer.<str:file_format>", views.answer_file, name="analysis_answer"),
    path(
        "<int:pk>/analyses/<int:number>/tables/<slug:name>.<str:file_format>",
        views.table_file,
        name="analysis_table",
    ),
    path(
        "<int:pk>/analyses/<int:number>/figures/<slug:name>.<str:file_format>",
        views.figure_file,
        name="analysis_figure",
    ),
]

# Pages of people without an account: the token in the address is the only credential.
link_pages = [
    path("<str:token>/", link_views.linked_report_page, name="report_link"),
    path("<str:token>/<path:name>", link_views.linked_file, name="report_link_file"),
]
