from django.contrib import admin
from django.urls import include, path

from . import front, health, unavailable

urlpatterns = [
    # First what is asked for most.
    path("", include("annotators.urls")),
    path("", front.front, name="front"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("admin/", admin.site.urls),
    path("api/v1/", include("analysis.api_urls")),
    path("docs/", include("heval_site.docs_urls")),
    path("studies/", include("annotators.import_urls")),
    path("studies/", include("studies.import_urls")),
    path("", include("analysis.urls")),
]

handler400 = unavailable.bad_request
handler403 = unavailable.permission_denied
handler404 = unavailable.not_found
handler500 = unavailable.server_error
