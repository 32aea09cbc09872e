"""Every address of the site with a canary in each of its variable parts: no line of a log holds it, and each line is JSON."""

import io
import json
import logging
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from logging.config import dictConfig
from unittest.mock import patch

import pytest
import yaml
from celery import Celery
from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import Client
from django.urls import get_resolver

from heval_site.runtime import logs
from tests import ROOT
from tests.addresses import addresses
from tests.addresses import filled as addresses_of_world
from tools.proofs.bench.machine import Site

pytestmark = pytest.mark.django_db

CANARY = "cAnArY-Zx7_q"
CANARY_UUID = "0c0ffee0-dead-4bee-8bad-0123456789ab"
VALUES = {"str": CANARY, "slug": CANARY, "path": f"{CANARY}/{CANARY}", "uuid": CANARY_UUID, "int": "1"}
MARKS = (CANARY, CANARY_UUID, CANARY_UUID.replace("-", ""))


def filled(route: str) -> str:
    route = re.sub(r"\(\?P<\w+>.*", CANARY, route)  # the last address of the admin, a regular expression
    return "/" + re.sub(r"<(\w+):\w+>", lambda match: VALUES[match[1]], route)


def endpoints(resolver, before=""):
    """(route, pattern) of every address, those of other packages too."""
    for pattern in resolver.url_patterns:
        route = before + str(pattern.pattern)
        if hasattr(pattern, "url_patterns"):
            yield from endpoints(pattern, route)
        else:
            yield route, pattern


WITH_CANARY = sorted(
    {route for route, _ in endpoints(get_resolver()) if re.search(r"<(str|slug|path|uuid):|\(\?P<", route)}
)


@pytest.fixture
def lines():
    """The lines that the configuration of production writes."""
    stream = io.StringIO()
    config = logs.logging_config("json")
    config["handlers"]["console"]["stream"] = stream
    root = logging.getLogger()
    before = root.handlers[:], root.level
    dictConfig(config)
    yield lambda: stream.getvalue().splitlines()
    root.handlers[:], root.level = before


@pytest.fixture
def clients(django_user_model):
    """A stranger and an administrator."""
    logged_in = Client(raise_request_exception=False)
    logged_in.force_login(django_user_model.objects.create_user("ada", is_staff=True, is_superuser=True))
    return Client(raise_request_exception=False), logged_in


def broken(request, *args, **kwargs):
    raise RuntimeError(f"no page for {kwargs} at {request.path}, {request.build_absolute_uri()}")


def locked(request, *args, **kwargs):
    raise OperationalError(f"no row for {kwargs} at {request.path}")


def away(self, *args, **kwargs):
    raise OperationalError("the connection was refused")


def asked(clients, address: str) -> set[int]:
    return {getattr(client, method)(address).status_code for client in clients for method in ("get", "post", "delete")}


def test_no_address_brings_its_secrets_into_a_log(clients, lines):
    statuses: dict[str, set[int]] = {}
    for route in WITH_CANARY:
        address = filled(route)
        statuses[route] = asked(clients, address)
        statuses[route] |= {clients[0].get(other).status_code for other in (address.rstrip("/"), address + "x/y")}
        with patch.object(BaseDatabaseWrapper, "_cursor", away):
            statuses[route] |= asked(clients, address)
    told = lines()
    assert not [line for line in told if any(mark in line for mark in MARKS)]
    assert all(set(json.loads(line)) >= {"at", "level", "logger", "message"} for line in told)
    assert {302, 403, 404, 405, 503} <= set().union(*statuses.values())
    assert sum("Database unavailable" in line for line in told) > len(WITH_CANARY)
    assert len(WITH_CANARY) > 90


@pytest.mark.parametrize(("view", "status"), [(broken, 500), (locked, 503)])
def test_no_error_repeats_the_secrets_of_its_address(clients, lines, view, status):
    for route, pattern in endpoints(get_resolver()):
        if route in WITH_CANARY and "(?P<" not in route:
            with patch.object(pattern, "callback", view):
                assert clients[0].get(filled(route)).status_code == status, route
    told = lines()
    assert not [line for line in told if any(mark in line for mark in MARKS)]
    assert all(json.loads(line) for line in told) and len(told) > 90


def test_the_line_names_the_route(clients, lines):
    with patch.object(BaseDatabaseWrapper, "_cursor", away):
        clients[0].get(f"/e/{CANARY}/appeal/{CANARY}/?who=ada")
    messages = [json.loads(line)["message"] for line in lines()]
    assert len(messages) == 2
    assert all("e/<slug:key>/appeal/<str:token>/" in message for message in messages), messages


def test_no_address_that_leads_somewhere_brings_its_secrets_into_a_log(world, lines):
    client = Client(raise_request_exception=False)
    client.force_login(world["people"]["administrator"])
    statuses = set()
    secrets = [str(world[name].code) for name in ("study", "live", "job")] + [world["door"].key]
    for route in sorted(set(addresses(get_resolver()))):
        address = addresses_of_world(route, world)
        statuses.add(client.get(address).status_code)
        with patch.object(BaseDatabaseWrapper, "_cursor", away):
            client.get(address)
    told = lines()
    assert not [line for line in told if any(secret in line for secret in secrets)]
    assert 200 in statuses and len(told) > 100


def test_the_first_word_of_each_address_with_a_variable_part_is_known():
    first = {route.partition("/")[0] for route, _ in endpoints(get_resolver()) if "<" in route}
    assert first == set(logs.FIRST_WORDS)


def test_a_wrong_host_leaves_one_line(clients, lines):
    assert clients[0].get(f"/p/{CANARY}/", headers={"host": "evil.example"}).status_code == 400
    (line,) = lines()
    assert "evil.example" in line and "ALLOWED_HOSTS" in line and CANARY not in line


@pytest.fixture
def prepared_site(tmp_path, migrated_sqlite):
    """A site whose processes write JSON lines."""
    site = Site(tmp_path / "site", "heval_site.wsgi:application", "heval_site.settings")
    site.environment["LOG_FORMAT"] = "json"
    shutil.copyfile(migrated_sqlite, site.home / "heval.sqlite3")
    return site


def compose_commands() -> dict[str, list[str]]:
    """The commands of Celery's services, as people deploy them."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    return {name: shlex.split(shlex.join(services[name]["command"])) for name in ("worker", "beat")}


@pytest.mark.parametrize("name", ["worker", "beat"])
def test_every_line_of_celery_is_json(prepared_site, redis_url, name, tmp_path):
    command = [part.replace("/tmp/beat", str(tmp_path / "beat")) for part in compose_commands()[name]]
    process = subprocess.Popen(
        [sys.executable, "-m", *command],
        env=prepared_site.environment | {"REDIS_URL": redis_url, "CELERY_BROKER_URL": redis_url},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    control, deadline = Celery(broker=redis_url).control, time.monotonic() + 60
    while not control.ping(timeout=0.2):
        assert process.poll() is None and time.monotonic() < deadline, process.stdout.read()
    time.sleep(1)  # for lines of its first work
    os.kill(process.pid, signal.SIGTERM)
    told = process.communicate(timeout=60)[0].decode().splitlines()
    assert process.returncode == 0, told
    assert all(json.loads(line)["logger"] for line in told)


def test_every_line_of_the_web_server_is_json_and_no_access_log_is_written(prepared_site):
    prepared_site.environment["GUNICORN_CMD_ARGS"] = "--access-logfile - --log-level debug"
    prepared_site.start()
    (prepared_site.home / "heval.sqlite3").write_bytes(b"no database")
    prepared_site.wait(f"/p/{CANARY}/")
    prepared_site.wait(f"/e/{CANARY}/?who={CANARY}")
    prepared_site.stop()
    told = (prepared_site.home / "web.log").read_text().splitlines()
    assert len(told) > 1 and not [line for line in told if CANARY in line]
    assert all(json.loads(line)["logger"] for line in told), told
