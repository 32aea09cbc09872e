from threading import BoundedSemaphore, Lock

from django.contrib import admin
from django.http import HttpResponse

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
            return super().login(request, extra_context)
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

    def get_app_list(self, request, app_label=None):
        """Return the researchers' most important pages, with descriptive names."""
        apps = {app["app_label"]: app for app in super().get_app_list(request, app_label)}
        for app in apps.values():
            app["name"] = DISPLAY_NAMES.get(app["app_label"], app["name"])
            app["models"].sort(key=lambda model: model["object_name"] != "Study")
            for model in app["models"]:
                model["name"] = DISPLAY_NAMES.get(model["object_name"], model["name"])
        return [apps.pop(label) for label in DISPLAY_NAMES if label in apps] + list(apps.values())
