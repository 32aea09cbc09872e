from django.urls import path

from . import views

urlpatterns = [
    path("<int:pk>/report-it/", views.forms_page, name="report_forms"),
    path("<int:pk>/report-it/<slug:form>.<slug:extension>", views.form_file, name="report_form"),
]
