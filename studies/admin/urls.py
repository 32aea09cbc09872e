from django.urls import path

from . import new_study, texts, views

urlpatterns = [
    path("new/", new_study.new_study_page, name="new_study"),
    path("<int:pk>/new/file/", new_study.file_page, name="new_study_file"),
    path("<int:pk>/new/question/", new_study.question_page, name="new_study_question"),
    path("<int:pk>/new/texts/", texts.new_study_texts_page, name="new_study_texts"),
    path("facts/", texts.facts_page, name="facts_about_us"),
    path("new/bundle/", views.bundle_upload_page, name="bundle_upload"),
    path("new/templates/", views.draft_from_template_page, name="study_templates"),
    path("new/templates/<slug:slug>.json", views.download_template_bundle, name="study_template"),
    path("<int:pk>/bundle/", views.download_bundle, name="bundle"),
    path("<int:pk>/import/", views.import_upload_page, name="import"),
    path("<int:pk>/import/preparation/", views.preparation_page, name="import_preparation"),
    path("<int:pk>/import/<slug:token>/", views.import_confirmation_page, name="import_confirm"),
]
