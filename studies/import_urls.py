from django.urls import path

from . import import_views

urlpatterns = [
    path("bundle/", import_views.bundle_upload, name="bundle_upload"),
    path("templates/", import_views.templates, name="study_templates"),
    path("templates/<slug:slug>.json", import_views.template_file, name="study_template"),
    path("<uuid:code>/bundle/", import_views.bundle, name="bundle"),
    path("<uuid:code>/import/", import_views.import_stimuli, name="import"),
    path("<uuid:code>/import/preparation/", import_views.preparation, name="import_preparation"),
    path("<uuid:code>/import/<slug:token>/", import_views.import_confirm, name="import_confirm"),
]
