"""Every address of the site, asked as everybody: one table says who may open it, and a new address without a row fails.

``UPDATE_URLS=1 pytest tests/test_urls.py`` writes the table anew; read the difference before you commit it.
"""

import json
import os
import re
from pathlib import Path

import pytest
from django.apps import apps
from django.core.cache import cache
from django.test import Client
from django.urls import get_resolver

from annotators.models import Assignment
from tests.addresses import ACTORS, addresses, filled

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parent.parent
TABLE = ROOT / "tests" / "golden" / "urls.json"


def client_of(w, actor: str) -> Client:
    client = Client()
    if actor != "anonymous":
        client.force_login(w["people"][actor])
    return client


def test_who_may_open_what(world):
    seen = {}
    clients = {actor: client_of(world, actor) for actor in ACTORS}
    for route in sorted(set(addresses(get_resolver()))):
        address = filled(route, world)
        seen[route] = []
        for actor in ACTORS:
            cache.clear()  # limits of requests are another matter
            response = clients[actor].get(address)
            if response.streaming:
                b"".join(response)  # an export that nobody reads keeps its place
            seen[route].append(response.status_code)
        # readyz says 503 where nobody runs jobs, as here.
        assert route == "readyz" or all(status < 500 for status in seen[route]), (route, seen[route])
    if os.environ.get("UPDATE_URLS"):
        lines = ",\n".join(f"  {json.dumps(route)}: {json.dumps(statuses)}" for route, statuses in seen.items())
        TABLE.write_text('{\n  "route": ' + json.dumps(ACTORS) + ",\n" + lines + "\n}\n")
    stored = json.loads(TABLE.read_text())
    stored.pop("route")
    assert seen == stored


def test_strangers_learn_nothing(world):
    """What belongs to a study is closed to who has no role in it; what lists studies does not list it."""
    stored = json.loads(TABLE.read_text())
    for route, statuses in stored.items():
        if "<" in route and not route.startswith(
            ("p/", "e/", "docs/", "admin/studies/study/new/", "admin/invitation/")
        ):
            assert statuses[0] in (302, 401, 403, 404, 405), route
            assert statuses[1] in (302, 403, 404, 405), route
    stranger = client_of(world, "stranger")
    for address in (
        "/admin/studies/study/",
        "/api/v1/studies/",
        "/admin/annotators/assignment/",
        "/admin/studies/output/",
        "/admin/",
    ):
        content = stranger.get(address).content.decode()
        assert world["study"].title not in content and world["done"].code not in content


def fingerprint() -> dict[str, int]:
    return {
        m._meta.label: m._base_manager.count()
        for m in apps.get_models()
        if m._meta.app_label in ("studies", "annotators", "analysis", "boards")
    }


def test_pages_know_get_and_post_alone():
    """So that the next test need not send them anything else: to a page, PUT is another word for GET."""
    methods = "(PUT|PATCH|DELETE)"
    other = re.compile(
        rf"request\.method [^\n]*{methods}|require_http_methods\([^)]*{methods}|def (put|patch)\(self, request"
    )
    pages = [
        path
        for app in ("studies", "annotators", "analysis", "boards", "heval_site")
        for path in (ROOT / app).rglob("*.py")
        if not {"api", "management", "openapi"} & set(path.parts)
    ]
    assert len(pages) > 300
    assert not [path for path in pages if other.search(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("actor", ["anonymous", "stranger", "coder", "viewer"])
def test_who_may_only_look_changes_nothing(world, actor):
    client, before = client_of(world, actor), fingerprint()
    states = list(Assignment.objects.order_by("pk").values_list("released_at", "reserved_until"))
    for route in sorted(set(addresses(get_resolver()))):
        if route.startswith(
            (
                "p/",
                "e/",
                "admin/login",
                "admin/logout",
                "admin/password",
                "admin/analysis/apitoken",
                "admin/example/",  # makes a study of one's own
                "admin/studies/study/facts",
                "api/",  # the tests of REST send every method of each path as everybody
            )
        ):
            continue
        status = client.post(filled(route, world), {"reason": "none", "note": "x", "places": "1"}).status_code
        assert status < 500, (route, status)
    assert fingerprint() == before
    world["study"].refresh_from_db()
    assert (
        world["study"].state == "launched"
        and list(Assignment.objects.order_by("pk").values_list("released_at", "reserved_until")) == states
    )
