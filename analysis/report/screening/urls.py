from django.urls import path

from . import run, views

urlpatterns = [
    path("studies/<uuid:code>/annotators/", views.annotators_page, name="study_annotators"),
    path("studies/<uuid:code>/annotators/screen/", views.start_screening, name="study_annotators_screen"),
    path("studies/<uuid:code>/annotators/<slug:annotator>/barring/", run.barring_page, name="study_annotator_barring"),
]
