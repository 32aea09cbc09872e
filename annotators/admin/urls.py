from django.urls import path

from . import views

urlpatterns = [
    # Before the address of a stimuli file, whose last part is a name of any letters.
    path("<uuid:code>/import/answers/", views.import_answers, name="import_answers"),
]
