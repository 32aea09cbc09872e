from django.urls import path

from . import views

urlpatterns = [
    path("studies/<uuid:code>/annotators/", views.annotators_page, name="study_annotators"),
    path("studies/<uuid:code>/annotators/screen/", views.start_screening, name="study_annotators_screen"),
]
