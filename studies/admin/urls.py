from django.urls import path

from . import views

urlpatterns = [
    path("bundle/", views.bundle_upload_page, name="bundle_upload"),
    path("templates/", views.draft_from_template_page, name="study_templates"),
    path("templates/<slug:slug>.json", views.download_template_bundle, name="study_template"),
    path("<uuid:code>/bundle/", views.download_bundle, name="bundle"),
    path("<uuid:code>/import/", views.import_upload_page, name="import"),
    path("<uuid:code>/import/preparation/", views.preparation_page, name="import_preparation"),
    path("<uuid:code>/import/<slug:token>/", views.import_confirmation_page, name="import_confirm"),
]
