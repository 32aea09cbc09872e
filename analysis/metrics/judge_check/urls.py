from django.urls import path

from . import views

urlpatterns = [
    path("studies/<uuid:code>/judge/", views.judge_page, name="judge_check"),
    path("studies/<uuid:code>/judge/draw/", views.draw_sample, name="judge_check_draw"),
    path("studies/<uuid:code>/judge/compute/", views.compute, name="judge_check_compute"),
    path("judge-badges/<str:key>.svg", views.badge, name="judge_badge"),
]
