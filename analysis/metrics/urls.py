from django.urls import path

from .calibrated.views import calibrated_page
from .judge_check import views as judge
from .pages import views

urlpatterns = [
    path("<int:pk>/metrics/", views.metrics_page, name="study_metrics"),
    path("<int:pk>/metrics/upload/", views.upload_metric_scores, name="study_metrics_upload"),
    path("<int:pk>/metrics/compute/", views.start_metrics, name="study_metrics_compute"),
    path("<int:pk>/metrics/compare/", views.start_comparison, name="study_metrics_compare"),
    path("<int:pk>/metrics/template.csv", views.scores_template, name="study_metrics_template"),
    path("<int:pk>/metrics/<int:metric>/discard/", views.discard_metric, name="study_metric_discard"),
    path("<int:pk>/judge/", judge.judge_page, name="judge_check"),
    path("<int:pk>/judge/draw/", judge.draw_sample, name="judge_check_draw"),
    path("<int:pk>/judge/compute/", judge.compute, name="judge_check_compute"),
    path("<int:pk>/calibrated/", calibrated_page, name="study_calibrated"),
]
