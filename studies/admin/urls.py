from django.urls import path

from . import views

urlpatterns = [
    path("bundle/", views.bundle_upload, name="bundle_upload"),
    path("templates/", views.templates, name="study_templates"),
    path("templates/<slug:slug>.json", views.template_file, name="study_template"),
    path("<uuid:code>/bundle/", views.download_bundle, name="bundle"),
    path("<uuid:code>/import/", views.import_stimuli, name="import"),
    path("<uuid:code>/import/preparation/", views.preparation, name="import_preparation"),
    path("<uuid:code>/import/<slug:token>/", views.import_confirm, name="import_confirm"),
]
