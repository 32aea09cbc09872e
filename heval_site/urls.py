from django.contrib import admin
from django.urls import include, path

from . import middleware
from .views import health

urlpatterns = [
    # The most frequent addresses come first.
    path("", include("annotators.views.urls")),
    path("", health.front_page, name="front"),
    path("healthz", health.liveness_check, name="healthz"),
    path("readyz", health.readiness_check, name="readyz"),
    path("admin/", admin.site.urls),
    path("api/v1/boards/", include("boards.api.urls")),
    path("api/v1/", include("analysis.api.urls")),
    path("docs/", include("heval_site.views.docs_urls")),
    path("studies/", include("annotators.admin.urls")),
    path("studies/", include("studies.admin.urls")),
    path("boards/", include("boards.views.urls")),
    path("", include("analysis.report.urls")),
    path("", include("analysis.report.screening.urls")),
    path("", include("analysis.metrics.urls")),
]

handler400 = middleware.bad_request
handler403 = middleware.permission_denied
handler404 = middleware.not_found
handler500 = middleware.server_error
