from django.urls import path

from .calibrated.views import calibrated_page
from .judge_check import views as judge
from .pages import views

urlpatterns = [
    path("studies/<uuid:code>/metrics/", views.metrics_page, name="study_metrics"),
    path("studies/<uuid:code>/metrics/upload/", views.upload_metric_scores, name="study_metrics_upload"),
    path("studies/<uuid:code>/metrics/compute/", views.start_metrics, name="study_metrics_compute"),
    path("studies/<uuid:code>/metrics/compare/", views.start_comparison, name="study_metrics_compare"),
    path("studies/<uuid:code>/metrics/template.csv", views.scores_template, name="study_metrics_template"),
    path("studies/<uuid:code>/metrics/<int:metric>/discard/", views.discard_metric, name="study_metric_discard"),
    path("studies/<uuid:code>/judge/", judge.judge_page, name="judge_check"),
    path("studies/<uuid:code>/judge/draw/", judge.draw_sample, name="judge_check_draw"),
    path("studies/<uuid:code>/judge/compute/", judge.compute, name="judge_check_compute"),
    path("judge-badges/<str:key>.svg", judge.badge, name="judge_badge"),
    path("studies/<uuid:code>/calibrated/", calibrated_page, name="study_calibrated"),
]
