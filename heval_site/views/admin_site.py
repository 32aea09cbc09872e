from threading import BoundedSemaphore, Lock
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import PasswordResetConfirmView
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse_lazy
from django.views.decorators.http import require_safe

from studies.access import Action, get_study
from studies.models import Study
from studies.services.rate_limits import count_and_check_rate_limit

MAX_LOGINS_PER_MINUTE = 20  # from one address
# Hashing a password takes long by design. In each process one thread hashes and one waits for it, so that the other threads
# answer annotators.
_login_places = BoundedSemaphore(2)
_hashing = Lock()

# In this order.
DISPLAY_NAMES = {
    "studies": "Studies",
    "annotators": "Annotators",
    "analysis": "Analyses",
    "boards": "Boards",
    "auth": "Accounts",
    "axes": "Log-ins",
    "ApiToken": "API tokens",
}


class HevalAdminSite(admin.AdminSite):
    site_header = site_title = "heval"
    index_title = "Overview"
    site_url = None
    enable_nav_sidebar = False

    def login(self, request, extra_context=None) -> HttpResponse:
        """Limit log-ins before a password is hashed, because hashing could take all the time of the site."""
        from heval_site.middleware import client_ip_or_ipv6_network, error_response

        if request.method != "POST":
            has_account = get_user_model().objects.exists()
            return super().login(request, {"has_account": has_account} | (extra_context or {}))
        if count_and_check_rate_limit(f"login:{client_ip_or_ipv6_network(request)}", MAX_LOGINS_PER_MINUTE):
            detail = "Too many log-ins came from your network in this minute. Wait a minute, then try again."
            response = error_response(request, 429, title="Too many log-ins", detail=detail)
            response["Retry-After"] = "60"
            return response
        if not _login_places.acquire(blocking=False):
            response = error_response(request, 503, title="Not right now")
            response["Retry-After"] = "2"
            return response
        try:
            with _hashing:
                return super().login(request, extra_context)
        finally:
            _login_places.release()

    def each_context(self, request) -> dict[str, Any]:
        """Return what every page of the admin needs. No page has Django's list of models at its side, so it is not read."""
        return {
            "site_title": self.site_title,
            "site_header": self.site_header,
            "has_permission": self.has_permission(request),
            "is_popup": False,
            "is_nav_sidebar_enabled": False,
        }

    def get_urls(self):
        from .home import load_example_page

        return [
            path("all/", self.admin_view(self.all_records_page), name="all_records"),
            path("components/", self.admin_view(self.components_page), name="components"),
            path("example/", self.admin_view(load_example_page), name="load_example"),
            *super().get_urls(),
        ]

    def index(self, request, extra_context=None) -> TemplateResponse:
        """Show the researcher's own studies first. Django's index of models is one of the account menu's pages."""
        from .home import home_page

        return home_page(request)

    def all_records_page(self, request) -> HttpResponse:
        """Show all lists that the user may see, as Django's index does."""
        entries = {"log_entries": self.get_log_entries(request)}
        return super().index(request, {"title": "All records", "subtitle": None} | entries)

    def components_page(self, request) -> HttpResponse:
        """Show every component of researchers' pages in both colour schemes, for those who change the style."""
        context = self.each_context(request) | {
            "title": "Components",
            "schemes": ["light", "dark"],
            "states": Study.State.values,
        }
        return TemplateResponse(request, "admin/components.html", context)

    def get_app_list(self, request, app_label=None):
        """Return the researchers' most important pages, with descriptive names."""
        apps = {app["app_label"]: app for app in super().get_app_list(request, app_label)}
        for app in apps.values():
            app["name"] = DISPLAY_NAMES.get(app["app_label"], app["name"])
            app["models"].sort(key=lambda model: model["object_name"] != "Study")
            for model in app["models"]:
                model["name"] = DISPLAY_NAMES.get(model["object_name"], model["name"])
        return [apps.pop(label) for label in DISPLAY_NAMES if label in apps] + list(apps.values())


invitation_page = PasswordResetConfirmView.as_view(
    post_reset_login=True,
    post_reset_login_backend="django.contrib.auth.backends.ModelBackend",
    success_url=reverse_lazy("admin:index"),
    extra_context={"title": "Choose a password"},
)


# Addresses of researchers' pages before 2026-11-30. Bookmarks and old messages have them.
STUDY_PAGES = "/admin/studies/study/"
# Models that had pages of a study below their own addresses, and where these are below the study's.
EARLIER_PARTS = {
    "studies/sizeplan": "plan/",
    "annotators/inquiry": "",
    "annotators/recruitment": "",
    "analysis/codingsample": "coding/",
}


def _redirect(request, address: str) -> HttpResponse:
    query = request.META.get("QUERY_STRING", "")
    return HttpResponseRedirect(f"{address}?{query}" if query else address)


@require_safe
@login_required
def redirect_earlier_address(request, page: str) -> HttpResponse:
    """Redirect from /studies/<code>/… to the page of the study, and from /studies/templates/ and the like to those of a new study."""
    first, _, rest = page.partition("/")
    if first in ("bundle", "templates"):
        return _redirect(request, f"{STUDY_PAGES}new/{page}")
    try:
        code = UUID(first)
    except ValueError as fault:
        raise Http404 from fault
    study = get_study(request.user, Action.VIEW_BASICS, code=code)
    return _redirect(request, f"{STUDY_PAGES}{study.pk}/{rest}")


@require_safe
@login_required
def redirect_earlier_admin_address(request, pk: int, part: str, page: str = "") -> HttpResponse:
    """Redirect from a page of a study that was below another model's address in the admin."""
    return _redirect(request, f"{STUDY_PAGES}{pk}/{part}{page}")
