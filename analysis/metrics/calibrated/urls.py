from django.urls import path

from . import views

urlpatterns = [path("studies/<uuid:code>/calibrated/", views.calibrated_page, name="study_calibrated")]
