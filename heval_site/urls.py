from django.contrib import admin
from django.urls import include, path

from analysis.metrics.judge_check.views import badge
from analysis.planning.admin import study_pages as plan_pages
from analysis.report.urls import link_pages

from . import middleware
from .views import admin_site, agents, docs, health

admin.autodiscover()

urlpatterns = [
    # The most frequent addresses come first.
    path("", include("annotators.views.urls")),
    path("", health.front_page, name="front"),
    path("healthz", health.liveness_check, name="healthz"),
    path("readyz", health.readiness_check, name="readyz"),
    # Pages of a study. Those that need the admin's classes come with the admin.
    path("admin/studies/study/", include("annotators.admin.urls")),
    path("admin/studies/study/", include("studies.admin.urls")),
    path("admin/studies/study/", include("analysis.report.urls")),
    path("admin/studies/study/", include("analysis.forms.urls")),
    path("admin/studies/study/", include("analysis.report.screening.urls")),
    path("admin/studies/study/", include("analysis.metrics.urls")),
    path("admin/studies/study/", include(plan_pages)),
    *(
        path(f"admin/{model}/study/<int:pk>/{page}", admin_site.redirect_earlier_admin_address, {"part": part})
        for model, part in admin_site.EARLIER_PARTS.items()
        for page in ("", "<path:page>")
    ),
    # A colleague who is invited chooses a password, and is logged in.
    path("admin/invitation/<uidb64>/<token>/", admin_site.invitation_page, name="invitation"),
    path("admin/", admin.site.urls),
    path("api/v1/boards/", include("boards.api.urls")),
    path("api/v1/", include("analysis.api.urls")),
    path("docs/", docs.docs_page, name="docs"),
    path("docs/search/", docs.search_page, name="docs-search"),
    path("docs/SKILL.md", agents.skill, name="docs-skill"),
    path("llms.txt", agents.llms_text, name="llms"),
    path("docs/<path:name>/", docs.docs_page, name="docs-page"),
    path("boards/", include("boards.views.urls")),
    path("r/", include(link_pages)),
    path("judge-badges/<str:key>.svg", badge, name="judge_badge"),
    path("studies/<path:page>", admin_site.redirect_earlier_address),
]

handler400 = middleware.bad_request
handler403 = middleware.permission_denied
handler404 = middleware.not_found
handler500 = middleware.server_error
