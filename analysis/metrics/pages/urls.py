from django.urls import path

from . import views

urlpatterns = [
    path("studies/<uuid:code>/metrics/", views.metrics_page, name="study_metrics"),
    path("studies/<uuid:code>/metrics/upload/", views.upload_metric_scores, name="study_metrics_upload"),
    path("studies/<uuid:code>/metrics/compute/", views.start_metrics, name="study_metrics_compute"),
    path("studies/<uuid:code>/metrics/compare/", views.start_comparison, name="study_metrics_compare"),
    path("studies/<uuid:code>/metrics/template.csv", views.scores_template, name="study_metrics_template"),
    path("studies/<uuid:code>/metrics/<int:metric>/discard/", views.discard_metric, name="study_metric_discard"),
]
