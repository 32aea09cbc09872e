from django.urls import path

from . import docs

urlpatterns = [
    path("", docs.docs_page, name="docs"),
    path("<path:name>/", docs.docs_page, name="docs-page"),
]
