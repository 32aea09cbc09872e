from django.urls import path

from . import docs

urlpatterns = [
    path("", docs.show, name="docs"),
    path("<path:name>/", docs.show, name="docs-page"),
]
