from django.urls import path

from . import import_views

urlpatterns = [
    # Before the address of a stimuli file, whose last part is a name of any letters.
    path("<uuid:code>/import/answers/", import_views.import_answers, name="import_answers"),
]
