from django.urls import path

from . import run, views

urlpatterns = [
    path("<int:pk>/annotators/", views.annotators_page, name="study_annotators"),
    path("<int:pk>/annotators/screen/", views.start_screening, name="study_annotators_screen"),
    path("<int:pk>/annotators/<slug:annotator>/barring/", run.barring_page, name="study_annotator_barring"),
]
