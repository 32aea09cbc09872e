"""Every address of the site, asked as everybody: who may open it stands in one table, and a new address without a row fails.

``UPDATE_URLS=1 pytest tests/test_urls.py`` writes the table anew; read the difference before you commit it.
"""

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest
from django.apps import apps
from django.core.cache import cache
from django.test import Client
from django.urls import get_resolver
from django.utils import timezone

from analysis.coding.codebook import EXPLANATIONS
from analysis.models import ApiToken, CodingItem, CodingSample, CodingSeat
from analysis.report.runs import run_analysis
from annotators.models import Appeal, Assignment, Inquiry, PanelSubmission, Response, Verdict
from annotators.places.exclude import exclude
from annotators.recruitment.panels.orders import give
from studies.models import Output, StudyMember
from studies.services import jobs
from tests.builders import panel, spa_study, user
from tests.players import claimed, submitted

pytestmark = pytest.mark.django_db
TABLE = Path(__file__).parent / "golden" / "urls.json"
ACTORS = ("anonymous", "stranger", "coder", "viewer", "editor", "owner", "administrator")
# Django's and other packages' own pages, tested by them.
LEFT_OUT = (
    "admin/auth/",
    "admin/axes/",
    "admin/contenttypes/",
    "admin/^",
    "admin/(?P<url>",
    "admin/r/",
    "admin/jsi18n/",
)


def addresses(resolver, before=""):
    for pattern in resolver.url_patterns:
        route = before + str(pattern.pattern)
        if hasattr(pattern, "url_patterns"):
            yield from addresses(pattern, route)
        elif not route.startswith(LEFT_OUT):
            yield route


@pytest.fixture
def world():
    people = {name: user(name) for name in ACTORS[1:-1]} | {"administrator": user("administrator", is_superuser=True)}
    study = spa_study(by=people["owner"], target_n=4)
    for role in ("editor", "viewer", "coder"):
        StudyMember.objects.create(study=study, user=people[role], role=role)
    door = panel(study)
    done = submitted(study, "done", recruitment=door, comment="fine")
    live = claimed(study, "live", recruitment=door)
    exclusions = exclude([done], "technical", by=people["owner"])
    run = run_analysis(study, {"resamples": 99}, by=people["owner"])
    job = jobs.submit("analyse", study=study, by=people["owner"])
    token = ApiToken.objects.create(user=people["owner"], name="t", hash="0" * 64)
    sample = CodingSample.objects.create(
        study=study,
        number=1,
        kind="explanations",
        rule="union",
        codebook=EXPLANATIONS.as_json(),
        per_arm=1,
        origin="live",
    )
    CodingSeat.objects.create(sample=sample, number=1, user=people["coder"])
    written = Response.objects.exclude(text="").get(assignment=done)
    CodingItem.objects.create(sample=sample, number=1, assignment=done, response=written)
    order = give(door, "stop", "stop-1", task="T")
    inquiry = Inquiry.objects.create(assignment=live, kind="question", text="?")
    submission = PanelSubmission.objects.create(
        recruitment=door, external_id="S", annotator=done.annotator, assignment=done, state="rejected", source="file"
    )
    why = {"category": "c", "message": "m", "by": people["owner"]}
    verdict = Verdict.objects.create(assignment=done, kind="reject", **why)
    due = timezone.now() + timedelta(days=9)
    appeal = Appeal.objects.create(verdict=verdict, rejected_by=people["owner"], text="Why?", due_at=due)
    return locals()


def filled(route: str, w) -> str:
    """The address with ids that exist."""
    ids = {
        "studies/job": w["job"].pk, "studies/auditevent": w["study"].audit_events.first().pk, "studies/section": w["study"].sections.first().pk,
        "studies/prompt": w["study"].prompts.first().pk, "studies/output": Output.objects.first().pk, "studies/study": w["study"].pk,
        "annotators/assignment": w["done"].pk, "annotators/recruitment": w["door"].pk, "annotators/inquiry": w["inquiry"].pk,
        "analysis/apitoken": w["token"].pk, "analysis/analysisrun": w["run"].pk,
        "analysis/codingsample": w["sample"].pk,
    }  # fmt: skip
    route = route.replace("/study/<int:pk>/", f"/study/{w['study'].pk}/")
    if "exclusion/<int:pk>" in route:
        route = route.replace("<int:pk>", str(w["done"].exclusions.first().pk))
    for place, pk in ids.items():
        if route.startswith(f"admin/{place}/"):
            route = route.replace("<path:object_id>", str(pk)).replace("<int:pk>", str(pk))
    if route.startswith("admin/studies/job/"):
        route = route.replace("<uuid:code>", str(w["job"].code))
    parts = {
        "<uuid:code>": w["study"].code, "<uuid:job>": w["job"].code, "<int:number>": 1, "<str:code>": w["live"].code,
        "<slug:key>": w["door"].key, "<str:key>": "s1", "<int:inquiry>": w["inquiry"].pk, "<slug:token>": "nothing", "<slug:name>": "forest",
        "<slug:slug>": "image_makers", "<int:order>": w["order"].pk, "<int:task>": 1,
        "<int:submission>": w["submission"].pk, "<int:assignment>": w["done"].pk, "<int:appeal>": w["appeal"].pk,
        "<str:form>": "csv", "<str:name>": "nothing.webp", "<path:name>": "index",
    }  # fmt: skip
    for part, value in parts.items():
        route = route.replace(part, str(value))
    assert "<" not in route, route
    return f"/{route}" + ("?who=new" if route.startswith("e/") else "")


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


def test_strangers_are_told_nothing(world):
    """What belongs to a study is closed to who has no role in it; what lists studies does not list it."""
    stored = json.loads(TABLE.read_text())
    for route, statuses in stored.items():
        if "<" in route and not route.startswith(("p/", "e/", "docs/", "studies/templates/")):
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
        if m._meta.app_label in ("studies", "annotators", "analysis")
    }


@pytest.mark.parametrize("actor", ["anonymous", "stranger", "coder", "viewer"])
def test_who_may_only_look_changes_nothing(world, actor):
    client, before = client_of(world, actor), fingerprint()
    states = list(Assignment.objects.order_by("pk").values_list("released_at", "reserved_until"))
    for route in sorted(set(addresses(get_resolver()))):
        if route.startswith(("p/", "e/", "admin/login", "admin/logout", "admin/password", "admin/analysis/apitoken")):
            continue
        for method in ("post", "put", "patch", "delete"):
            options = {} if method == "post" else {"content_type": "application/json"}
            sent = {"reason": "none", "note": "x", "places": "1"}
            status = getattr(client, method)(filled(route, world), sent, **options).status_code
            assert status < 500, (method, route, status)
    assert fingerprint() == before
    world["study"].refresh_from_db()
    assert (
        world["study"].state == "launched"
        and list(Assignment.objects.order_by("pk").values_list("released_at", "reserved_until")) == states
    )
