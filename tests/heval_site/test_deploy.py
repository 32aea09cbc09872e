"""The pages about running heval on a server are followed: their settings, services, proxies and the restart between releases."""

import http.client
import json
import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from textwrap import dedent

import pytest
import redis
import yaml

from boards.api.base import MAX_IMAGES_FORM_BYTES
from studies.imports.bundle import MAX_BUNDLE_BYTES
from tests import ROOT
from tests.conftest import skip_or_fail
from tools.proofs.bench.machine import Postgres, end, folder, free_port, postgres_programs

pytestmark = pytest.mark.xdist_group("deploy")
HOW_TO = ROOT / "templates/docs/how-to"
NAME = "eval.example.org"
CANARY = "cAnArY-Zx7_q"
CURRENT = "/srv/heval/current/bin/"
UNITS = ("heval-web.socket", "heval-web.service", "heval-worker.service", "heval-batches.service", "heval-beat.service")
PASSWORD = "a password of this test"
STUDY = """
import django
django.setup()
from tests.builders import panel, spa_study
print(panel(spa_study(target_n=4)).key)
"""


def blocks(page: str, language: str) -> list[str]:
    text = (HOW_TO / page).read_text(encoding="utf-8")
    return [
        dedent(found) for found in re.findall(rf"^ *```{language}\b[^\n]*\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    ]


SETTINGS, *UNIT_TEXTS = blocks("deploy-without-containers.md", "ini")
(WRAPPER,) = [text for text in blocks("deploy-without-containers.md", "sh") if text.startswith("#!")]
(NGINX,) = blocks("put-a-proxy-in-front.md", "nginx")
(CADDY,) = blocks("put-a-proxy-in-front.md", "caddyfile")


def command_of(unit: str) -> list[str]:
    """The command of a service, with the programs of this environment."""
    line = re.search(r"^ExecStart=(.*)$", UNIT_TEXTS[UNITS.index(unit)], re.MULTILINE)
    assert line and line[1].startswith(CURRENT)
    return shlex.split(line[1].replace(CURRENT, f"{Path(sys.executable).parent}/").replace("%%", "%"))


def test_the_services_are_those_of_the_containers():
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    web = re.search(r"^CMD (\[.*\])$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    expected = {
        "web": json.loads(web[1]),
        **{name: services[name]["command"] for name in ("worker", "batches", "beat")},
    }
    for name, command in expected.items():
        program, *arguments = command_of(f"heval-{name}.service")
        assert [Path(program).name, *arguments] == command, name


def test_the_units_are_valid(tmp_path):
    if not shutil.which("systemd-analyze"):
        skip_or_fail("There is no systemd-analyze on this machine")
    assert len(UNIT_TEXTS) == len(UNITS)
    for name, text in zip(UNITS, UNIT_TEXTS, strict=True):
        text = text.replace(CURRENT, f"{Path(sys.executable).parent}/").replace("User=heval", "User=root")
        (tmp_path / name).write_text(text)
    verify = ["systemd-analyze", "verify", "--man=no", *(str(tmp_path / name) for name in UNITS)]
    done = subprocess.run(
        verify, capture_output=True, text=True, env=os.environ | {"SYSTEMD_UNIT_PATH": f"{tmp_path}:"}
    )
    assert not [line for line in done.stderr.splitlines() if "heval-" in line], done.stderr


@pytest.mark.parametrize(
    ("text", "pattern", "unit"), [(NGINX, r"client_max_body_size (\d+)m", 2**20), (CADDY, r"max_size (\d+)MB", 10**6)]
)
def test_proxies_let_the_largest_uploads_through(text, pattern, unit):
    assert int(re.search(pattern, text)[1]) * unit > max(MAX_IMAGES_FORM_BYTES, MAX_BUNDLE_BYTES + 2**20)


class Server:
    """A machine that was set up as the page says: PostgreSQL, Redis, the settings, and the services without systemd."""

    def __init__(self, home: Path):
        self.home, self.services = home, {}
        self.postgres = Postgres(home / "postgres")
        self.redis_port, self.port = free_port(), free_port()
        command = [
            "redis-server",
            "--port",
            str(self.redis_port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--dir",
            str(home),
        ]
        self.redis = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        for name in ("state", "static"):
            (home / name).mkdir()
        settings = SETTINGS.replace("postgres://heval:PASSWORD@127.0.0.1:5432/heval", self.postgres.create("heval"))
        settings = settings.replace("127.0.0.1:6379", f"127.0.0.1:{self.redis_port}").replace("/srv/heval", str(home))
        for name in ("SECRET_KEY", "PSEUDONYM_KEY"):
            settings = settings.replace(f"{name}=KEY", f"{name}={name.lower()}-{'0123456789' * 6}")
        assert "KEY\n" not in settings and "PASSWORD" not in settings
        self.settings = home / "heval.env"
        self.settings.write_text(settings)
        # systemd passes on nothing else.
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(ROOT)}
        self.environment |= dict(line.split("=", 1) for line in settings.splitlines())
        self.socket = socket.create_server(("127.0.0.1", self.port), backlog=4096)

    def heval(self, *arguments: str) -> str:
        """A command of heval by the page's wrapper."""
        script = self.home / "heval"
        run = f"{sys.executable} -m heval_site.management.cli"
        text = WRAPPER.replace("/etc/heval.env", str(self.settings))
        text, n = re.subn(r'runuser -u heval -- "[^"]*"', run, text)
        assert n == 1
        script.write_text(text)
        environment = {name: self.environment[name] for name in ("PATH", "HOME", "PYTHONPATH")}
        environment["DJANGO_SUPERUSER_PASSWORD"] = PASSWORD
        done = subprocess.run(["sh", script, *arguments], env=environment, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self, name: str) -> None:
        command = [part.replace("/tmp/beat", f"{self.home}/beat") for part in command_of(f"heval-{name}.service")]
        options = {}
        if name == "web":  # as systemd hands over the port
            command = ["sh", "-c", 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"', "sh", *command]
            options = {"pass_fds": (3,), "preexec_fn": lambda: os.dup2(self.socket.fileno(), 3)}
        with (self.home / f"{name}.log").open("a") as log:
            self.services[name] = subprocess.Popen(
                command, env=self.environment, cwd=self.home, stdout=log, stderr=log, start_new_session=True, **options
            )

    def log(self, name: str) -> str:
        return (self.home / f"{name}.log").read_text()

    def stop(self) -> None:
        for process in [*self.services.values(), self.redis]:
            end(process)
        self.socket.close()
        self.postgres.stop()


@pytest.fixture(scope="module")
def server():
    if postgres_programs() is None or not shutil.which("redis-server"):
        skip_or_fail("PostgreSQL or Redis is not installed on this machine")
    with folder("heval-deploy-") as home:
        made = Server(home)
        try:
            made.heval("prepare")
            made.heval("collectstatic", "--noinput", "--verbosity", "0")
            made.heval("createsuperuser", "--noinput", "--username", "ada", "--email", "ada@example.org")
            for name in ("web", "worker", "batches", "beat"):
                made.start(name)
            certificate = [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                f"/CN={NAME}",
            ]
            paths = ["-keyout", str(home / "key.pem"), "-out", str(home / "certificate.pem")]
            subprocess.run([*certificate, *paths], check=True, capture_output=True)
            yield made
        finally:
            made.stop()


def nginx(server: Server, home: Path, port: int, http_port: int) -> list[str]:
    text = re.sub(r"^ *listen \[::\].*\n", "", NGINX, flags=re.MULTILINE)
    text = text.replace("listen 80;", f"listen 127.0.0.1:{http_port};").replace(
        "listen 443 ", f"listen 127.0.0.1:{port} "
    )
    text = text.replace(f"/etc/letsencrypt/live/{NAME}/fullchain.pem", str(server.home / "certificate.pem"))
    text = text.replace(f"/etc/letsencrypt/live/{NAME}/privkey.pem", str(server.home / "key.pem"))
    text = text.replace("/var/log/nginx", str(home)).replace("127.0.0.1:8000", f"127.0.0.1:{server.port}")
    file = home / "nginx.conf"
    file.write_text(f"daemon off;\npid {home}/nginx.pid;\nuser root;\nevents {{}}\nhttp {{\n{text}\n}}\n")
    subprocess.run(["nginx", "-t", "-c", str(file)], check=True, capture_output=True)
    return ["nginx", "-c", str(file)]


def caddy(server: Server, home: Path, port: int, http_port: int) -> list[str]:
    text = CADDY.replace("{\n", f"{{\n\tadmin off\n\thttp_port {http_port}\n\thttps_port {port}\n", 1)
    text = text.replace(f"{NAME} {{\n", f"{NAME} {{\n\ttls {server.home}/certificate.pem {server.home}/key.pem\n")
    file = home / "Caddyfile"
    file.write_text(text.replace("127.0.0.1:8000", f"127.0.0.1:{server.port}"))
    return ["caddy", "run", "--config", str(file), "--adapter", "caddyfile"]


PROXIES = {"nginx": nginx, "caddy": caddy}


class Proxy:
    def __init__(self, name: str, server: Server, home: Path):
        self.port, self.http_port, self.home = free_port(), free_port(), home
        command = PROXIES[name](server, home, self.port, self.http_port)
        with (home / "proxy.log").open("w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | {"HOME": str(home)})

    def ask(self, path: str, method: str = "GET", body: str | Iterator[bytes] | None = None, **headers: str):
        """The status, the headers and the text of an answer over TLS."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPConnection(NAME, timeout=70)
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=70)
        connection.sock = context.wrap_socket(plain, server_hostname=NAME)
        with suppress(OSError):  # the answer may come before the whole body was sent
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
        connection.close()
        return answer.status, answer.headers, text

    def ask_http(self, path: str):
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=20)
        connection.request("GET", path, headers={"Host": NAME})
        answer = connection.getresponse()
        return answer.status, answer.headers.get("Location", "")

    def logs(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.home.glob("*.log")}

    def wait(self, path: str, status: int, seconds: float = 60) -> str:
        ends = time.monotonic() + seconds
        while True:
            try:
                found, _, text = self.ask(path)
            except OSError as error:
                found, text = 0, str(error)
            if found == status:
                return text
            assert time.monotonic() < ends, (found, text[-500:])
            time.sleep(0.3)


@pytest.fixture(params=PROXIES)
def proxy(request, server, tmp_path):
    if not shutil.which(request.param):
        skip_or_fail(f"{request.param} is not installed on this machine")
    limits = redis.Redis(port=server.redis_port)
    for key in limits.scan_iter("*heval:login:*"):  # of the proxy before
        limits.delete(key)
    made = Proxy(request.param, server, tmp_path)
    made.wait("/healthz", 200)
    yield made
    end(made.process)


def log_in(proxy: Proxy, name: str, **headers: str) -> int:
    _, answered, page = proxy.ask("/admin/login/")
    cookie = answered["Set-Cookie"].partition(";")[0]
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)[1]
    form = f"csrfmiddlewaretoken={token}&username={name}&password={PASSWORD.replace(' ', '+')}"
    sent = {"Cookie": cookie, "Content_Type": "application/x-www-form-urlencoded", "Referer": f"https://{NAME}/"}
    return proxy.ask("/admin/login/", "POST", form, **sent, **headers)[0]


def slowly() -> Iterator[bytes]:
    """The begin of a large body. Caddy notices between two parts that heval has answered."""
    for _ in range(3):
        yield b"0" * 20_000
        time.sleep(1)


def seconds_until_closed(proxy: Proxy) -> float:
    """How long the proxy keeps a connection that sent half of a head."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with context.wrap_socket(socket.create_connection(("127.0.0.1", proxy.port)), server_hostname=NAME) as client:
        client.settimeout(60)
        client.sendall(f"GET /healthz HTTP/1.1\r\nHost: {NAME}\r\n".encode())
        begun = time.monotonic()
        while client.recv(1000):
            pass
        return time.monotonic() - begun


@pytest.mark.slow
def test_a_site_behind_its_proxy(server, proxy):
    with ThreadPoolExecutor() as pool:
        dripping = pool.submit(seconds_until_closed, proxy)
        proxy.wait("/readyz", 200)
        assert "failed" not in server.heval("doctor").lower()
        key = subprocess.run(
            [sys.executable, "-c", STUDY],
            env=server.environment | {"DJANGO_SETTINGS_MODULE": "heval_site.settings"},
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        # An annotator.
        status, headers, page = proxy.ask(f"/e/{key}/?who={CANARY}")
        if status in (302, 303):
            status, headers, page = proxy.ask(headers["Location"].replace(f"https://{NAME}", ""))
        assert status == 200 and "<form" in page and "Set-Cookie" not in headers
        assert "max-age=" in headers["Strict-Transport-Security"]
        style = re.search(r'href="(/static/[^"]+\.css)"', page)[1]
        assert proxy.ask(style)[0] == 200
        assert proxy.ask(f"/p/{CANARY}/")[0] == 404
        # Plain HTTP leads to TLS.
        status, location = proxy.ask_http(f"/p/{CANARY}/")
        assert status in (301, 308) and location.startswith(f"https://{NAME}")
        # What is larger than any upload is refused before it has arrived: by nginx itself, or by heval behind Caddy.
        assert proxy.ask(f"/p/{CANARY}/", "POST", slowly(), Content_Length=str(600 * 10**6))[0] in (400, 413)
        # A researcher, and somebody who guesses from ever other addresses.
        assert log_in(proxy, "ada") == 302
        tried = [log_in(proxy, f"name{n}", X_Forwarded_For=f"203.0.113.{n}") for n in range(41)]  # a minute may end
        assert tried[0] == 200 and 429 in tried
    assert 15 < dripping.result() < 40
    for name, text in proxy.logs().items():
        assert CANARY not in text and key not in text, name
        if name != "proxy.log" or "caddy" in str(proxy.process.args):
            assert all(json.loads(line) for line in text.splitlines()), name
    for name in server.services:
        lines = server.log(name).splitlines()
        assert all(json.loads(line)["logger"] for line in lines) and CANARY not in server.log(name), name


@pytest.mark.slow
def test_no_request_fails_while_the_web_server_restarts(server, proxy):
    proxy.wait("/readyz", 200)
    answers, over = [], threading.Event()

    def ask() -> None:
        while not over.is_set():
            status, _, text = proxy.ask("/readyz")
            answers.append((status, text[:2000] if status != 200 else ""))

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for asker in askers:
        asker.start()
    ends = time.monotonic() + 60
    while len(answers) < 10 and time.monotonic() < ends:
        time.sleep(0.1)
    before = server.services["web"]
    end(before)
    n = len(answers)
    server.start("web")
    proxy.wait("/healthz", 200)
    time.sleep(1)
    over.set()
    for asker in askers:
        asker.join()
    assert before.returncode == 0 and len(answers) > n >= 10
    assert set(answers) == {(200, "")}


@pytest.mark.slow
def test_a_site_that_is_away_says_so_without_a_trace(server, proxy, tmp_path):
    end(server.services["web"])
    port = server.socket.getsockname()[1]
    server.socket.close()
    try:
        status, headers, page = proxy.ask(f"/p/{CANARY}/")
        assert status == 503 and headers["Retry-After"] == "10" and headers["Content-Type"].startswith("text/html")
        assert "not available for a moment" in page
        assert not [name for name, text in proxy.logs().items() if CANARY in text]
        # A request that comes while the container restarts.
        with ThreadPoolExecutor() as pool:
            early = pool.submit(proxy.ask, "/healthz")
            time.sleep(1)
            server.socket = socket.create_server(("127.0.0.1", port), backlog=4096)
            server.start("web")
        assert early.result()[0] == (200 if "caddy" in proxy.process.args else 503)
    finally:
        if server.socket.fileno() == -1:
            server.socket = socket.create_server(("127.0.0.1", port), backlog=4096)
            server.start("web")
    proxy.wait("/healthz", 200)
