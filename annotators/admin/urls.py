from django.urls import path

from . import views

urlpatterns = [
    # This must come before the address of a stimuli file, which ends in an arbitrary name.
    path("<int:pk>/import/answers/", views.answers_upload_page, name="import_answers"),
]
