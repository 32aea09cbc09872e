"""What runs on an annotator's path, and what never leaves there."""

from threading import Event, Thread

import pytest
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import AnonymousUser
from django.core.files.uploadedfile import SimpleUploadedFile, TemporaryUploadedFile
from django.http import HttpResponse
from django.test import Client, RequestFactory, override_settings
from django.urls import include, path
from django.utils.module_loading import import_string

from heval_site import middleware

pytestmark = pytest.mark.postgres

ON_EVERY_PATH = {
    "heval_site.middleware.Security",
    "heval_site.middleware.StaticFiles",
    "heval_site.middleware.DatabaseUnavailable",
}
HOOKS = ("process_request", "process_response", "process_view", "process_template_response", "__call__")


def probe(request, code=""):
    """A view that does all that makes Django set cookies, where the middlewares for it run."""
    from django.middleware.csrf import get_token

    get_token(request)
    if hasattr(request, "session"):
        request.session["seen"] = True
    return HttpResponse("seen")


urlpatterns = [
    path("p/<str:code>/", probe),
    path("e/<str:code>/", probe),
    path("researchers/", probe),
    path("", include("heval_site.urls")),
]


@pytest.fixture
def ran(monkeypatch):
    """Names of the middlewares of which a hook ran."""
    names = set()

    def watched(cls, name, hook):
        original = getattr(cls, hook)

        def run(self, *args, **kwargs):
            names.add(name)
            return original(self, *args, **kwargs)

        return run

    for name in settings.MIDDLEWARE:
        cls = import_string(name)
        for hook in HOOKS:
            # The __call__ of those that step aside is what steps aside; process_view of Csrf likewise looks at the path.
            steps_aside = issubclass(cls, middleware.ResearcherPathsMixin) and (
                hook == "__call__" or (cls, hook) == (middleware.Csrf, "process_view")
            )
            if hasattr(cls, hook) and not steps_aside:
                monkeypatch.setattr(cls, hook, watched(cls, name, hook))
    return names


@pytest.mark.django_db
@override_settings(ROOT_URLCONF=__name__)
@pytest.mark.parametrize("address", ["/p/some-code/", "/e/some-key/", "/healthz"])
def test_three_middlewares_run_on_annotators_paths(client, ran, address):
    client.get(address)
    assert ran == ON_EVERY_PATH


@pytest.mark.django_db
@override_settings(ROOT_URLCONF=__name__)
def test_all_middlewares_run_for_researchers(client, ran):
    client.get("/researchers/")
    # The lockout's has no hook but its __call__, which the watch leaves alone.
    assert ran == set(settings.MIDDLEWARE) - {"heval_site.middleware.Lockout"}


@pytest.mark.django_db
@override_settings(ROOT_URLCONF=__name__)
@pytest.mark.parametrize("address", ["/p/some-code/", "/e/some-key/"])
@pytest.mark.parametrize("method", ["get", "post", "head", "options", "put"])
def test_no_cookie_is_ever_set_on_an_annotators_path(client, method, address):
    assert client.get("/researchers/").cookies, "the probe sets cookies where it can"
    response = getattr(client, method)(address)
    assert "Set-Cookie" not in response.headers and not response.cookies


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["/p/no-such-code/", "/p/no-such-code/s1.q1/", "/e/no-such-key/", "/p/", "/e/"])
def test_no_cookie_and_no_detail_where_there_is_nothing(client, address):
    response = client.get(address)
    assert response.status_code == 404 and not response.cookies
    assert "There is nothing here" in response.content.decode() and 'href="/"' in response.content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["/admin/login/", "/p/some-code/", "/e/some-key/"])
def test_a_host_that_is_not_ours_is_refused_and_not_echoed(client, address):
    response = client.get(address, headers={"host": "evil.example"})
    assert response.status_code == 400
    assert b"evil" not in response.content and "evil" not in str(response.headers)


@pytest.mark.django_db
def test_a_form_of_a_researcher_needs_its_token(django_user_model):
    client = Client(enforce_csrf_checks=True)
    assert client.post("/admin/login/", {"username": "ada", "password": "x"}).status_code == 403


@pytest.mark.django_db
def test_no_other_site_learns_the_address_and_http_leads_to_https(client, settings):
    settings.SECURE_SSL_REDIRECT, settings.SECURE_HSTS_SECONDS = True, 60
    response = client.get("/p/some-code/")
    assert response.status_code == 301 and response["Location"].startswith("https://")
    response = client.get("/p/some-code/", secure=True)
    assert response["Strict-Transport-Security"].startswith("max-age=60")
    assert response["Referrer-Policy"] == "same-origin"


@pytest.mark.django_db
def test_health_answers_to_any_name_of_the_machine(client):
    assert client.get("/healthz", headers={"host": "10.1.2.3:8000"}).status_code == 200


@pytest.mark.django_db
def test_the_login_page_has_a_policy_and_a_hardened_cookie(client):
    response = client.get("/admin/login/")
    assert response.status_code == 200
    assert "frame-ancestors 'none'" in response["Content-Security-Policy"]
    assert response["X-Frame-Options"] == "DENY"
    assert response["Referrer-Policy"] == "same-origin" and response["X-Content-Type-Options"] == "nosniff"
    assert response.cookies["csrftoken"]["httponly"]


@pytest.mark.parametrize(
    ("proxies", "forwarded", "address"),
    [
        (0, "6.6.6.6", "127.0.0.1"),
        (1, "6.6.6.6, 1.2.3.4", "1.2.3.4"),
        (2, "6.6.6.6, 1.2.3.4, 10.0.0.1", "1.2.3.4"),
        (2, "1.2.3.4", "127.0.0.1"),
        (1, "", "127.0.0.1"),
        (1, "2001:db8:1:2:a:b:c:d", "2001:db8:1:2::"),
        (1, "2001:db8:1:2::9", "2001:db8:1:2::"),
        (1, "fe80::1%eth0", "fe80::"),
        (1, "::ffff:1.2.3.4", "1.2.3.4"),
        (1, "unknown", "unknown"),
    ],
)
def test_a_forwarded_address_is_believed_as_far_as_our_own_proxies_wrote_it(settings, proxies, forwarded, address):
    settings.TRUSTED_PROXY_COUNT = proxies
    assert (
        middleware.client_ip_or_ipv6_network(RequestFactory().get("/", headers={"x-forwarded-for": forwarded}))
        == address
    )


@pytest.mark.django_db
def test_ten_wrong_passwords_lock_and_a_spoofed_address_does_not_unlock(client, django_user_model):
    django_user_model.objects.create_user("ada", password="right password", is_staff=True)
    login = {"username": "ada", "password": "wrong"}
    for n in range(11):
        response = client.post("/admin/login/", login, headers={"x-forwarded-for": f"9.9.9.{n}"})
    assert response.status_code == 429
    response = client.post(
        "/admin/login/", login | {"password": "right password"}, headers={"x-forwarded-for": "8.8.8.8"}
    )
    assert response.status_code == 429 and "_auth_user_id" not in client.session


@pytest.mark.django_db
def test_a_new_address_of_the_same_household_does_not_unlock(client, django_user_model):
    django_user_model.objects.create_user("ada", password="right password", is_staff=True)
    for n in range(11):
        login = {"username": "ada", "password": "wrong"}
        response = client.post(
            "/admin/login/", login, REMOTE_ADDR=f"2001:db8:1:2::{n + 1}", HTTP_USER_AGENT=f"Browser {n}"
        )
    assert response.status_code == 429


@pytest.mark.django_db
def test_the_site_is_born_without_an_account(django_user_model):
    assert not django_user_model.objects.exists()


@pytest.fixture
def kept_files(monkeypatch):
    """How many files of a request were begun on the disk."""
    begun = []
    original = TemporaryUploadedFile.__init__

    def begin(self, *args, **kwargs):
        begun.append(args[0])
        original(self, *args, **kwargs)

    monkeypatch.setattr(TemporaryUploadedFile, "__init__", begin)
    return begun


@pytest.mark.django_db
@pytest.mark.parametrize(
    "address",
    ["/p/some-code/s1/", "/e/some-key/", "/admin/login/", "/admin/studies/study/new/bundle/", "/", "/nowhere/"],
)
def test_a_stranger_fills_no_disk(settings, kept_files, address):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 3 * 2**20
    client = Client(enforce_csrf_checks=True)
    client.cookies["csrftoken"] = "a" * 32  # without one the form's token is not looked for
    response = client.post(address, {"file": SimpleUploadedFile("a.bin", b"0" * 4 * 2**20)})
    assert (response.status_code, kept_files) == (400, []), "refused by what it announces, before it is read"
    assert "The request was larger than 3 MB" in response.content.decode()


@pytest.mark.django_db
def test_a_large_file_of_somebody_who_is_logged_in_is_read(client, settings, kept_files, django_user_model):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 3 * 2**20
    client.force_login(django_user_model.objects.create_user("ada", is_staff=True))
    response = client.post("/admin/studies/study/new/bundle/", {"file": SimpleUploadedFile("a.json", b"0" * 4 * 2**20)})
    assert kept_files == ["a.json"] and "More than 3 MB" not in response.content.decode()


@pytest.fixture
def hashed(monkeypatch):
    """How many passwords are hashed, and how many at once at most. None is ready before ``may_end`` is set."""
    counts = {"all": 0, "now": 0, "most": 0, "may_end": Event()}

    def slow(**kwargs):
        counts["all"] += 1
        counts["now"] += 1
        counts["most"] = max(counts["most"], counts["now"])
        assert counts["may_end"].wait(20)
        counts["now"] -= 1

    monkeypatch.setattr("django.contrib.auth.forms.authenticate", lambda request, **names: slow(**names))
    return counts


@pytest.mark.django_db
@pytest.mark.usefixtures("in_one_minute")
@pytest.mark.parametrize(("proxies", "forges"), [(0, True), (1, True), (1, False)])
def test_new_names_and_forged_addresses_reach_no_hasher(client, hashed, settings, monkeypatch, proxies, forges):
    """The last address is the one that our own proxy wrote."""
    settings.TRUSTED_PROXY_COUNT = proxies
    hashed["may_end"].set()
    monkeypatch.setattr("heval_site.views.admin_site.MAX_LOGINS_PER_MINUTE", 3)
    statuses = []
    for n in range(8):
        forwarded = f"9.9.9.{n}, 1.2.3.4" if forges else "1.2.3.4"
        data = {"username": f"name{n}", "password": "x"}
        statuses.append(client.post("/admin/login/", data, headers={"x-forwarded-for": forwarded}))
    assert [response.status_code for response in statuses] == [200] * 3 + [429] * 5 and hashed["all"] == 3
    assert "Wait a minute" in statuses[-1].content.decode() and statuses[-1]["Retry-After"] == "60"
    # Another client is not locked out with it.
    other = {"headers": {"x-forwarded-for": "5.6.7.8"}} if proxies else {"REMOTE_ADDR": "5.6.7.8"}
    assert client.post("/admin/login/", {"username": "ada", "password": "x"}, **other).status_code == 200


@pytest.mark.django_db
def test_one_password_is_hashed_at_a_time_and_most_threads_stay_free(hashed, monkeypatch):
    monkeypatch.setattr("heval_site.views.admin_site.count_and_check_rate_limit", lambda *_: False)
    statuses = []

    def log_in(n):
        request = RequestFactory().post("/admin/login/", {"username": f"name{n}", "password": "x"})
        request.session, request.user, request._dont_enforce_csrf_checks = {}, AnonymousUser(), True
        statuses.append(admin.site.login(request).status_code)
        if statuses.count(503) == 6:
            hashed["may_end"].set()

    threads = [Thread(target=log_in, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert hashed["most"] == 1 and sorted(statuses) == [200] * 2 + [503] * 6
