from django.urls import path

from . import new_study, views

urlpatterns = [
    path("new/", new_study.new_study_page, name="new_study"),
    path("<int:pk>/new/file/", new_study.file_page, name="new_study_file"),
    path("new/bundle/", views.bundle_upload_page, name="bundle_upload"),
    path("new/templates/", views.draft_from_template_page, name="study_templates"),
    path("new/templates/<slug:slug>.json", views.download_template_bundle, name="study_template"),
    path("<int:pk>/bundle/", views.download_bundle, name="bundle"),
    path("<int:pk>/import/", views.import_upload_page, name="import"),
    path("<int:pk>/import/preparation/", views.preparation_page, name="import_preparation"),
    path("<int:pk>/import/<slug:token>/", views.import_confirmation_page, name="import_confirm"),
]
