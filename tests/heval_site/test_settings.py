"""The environment is read strictly: what is not understood stops the start, with one line that says why."""

import os
import re
import runpy
import stat
import subprocess
import sys
import threading

import pytest
from django.core.exceptions import ImproperlyConfigured

from heval_site.runtime import environment, home
from tests import ROOT
from tools.reference.environment import environment_variable_defaults

KEY, OTHER_KEY = "k1" + "abcdefghij" * 6, "k2" + "abcdefghij" * 6
DEPLOYED = {
    "DATABASE_URL": "postgres://heval:secret@db:5432/heval",
    "SECRET_KEY": KEY,
    "PSEUDONYM_KEY": OTHER_KEY,
    "SITE_URL": "https://eval.example.org",
    "TRUSTED_PROXY_COUNT": "1",
}
OURS = (
    *DEPLOYED, "DEBUG", "REDIS_URL", "CELERY_BROKER_URL", "ALLOWED_HOSTS", "PORT", "LISTEN", "STATIC_ROOT", "MEDIA_ROOT",
    "LOG_FORMAT", "SSL_REDIRECT", "HSTS_SECONDS", "DATABASE_POOL", "SECRET_KEY_FILE", "WEB_THREADS", "WEB_WORKERS",
)  # fmt: skip


# It is in sys.modules, for these tests run under it; here it is executed once more, apart.
pytestmark = pytest.mark.filterwarnings("ignore:'heval_site.settings' found in sys.modules:RuntimeWarning")


@pytest.fixture
def loaded(monkeypatch, tmp_path):
    """The settings as they come out of an environment."""

    def load(**environment):
        for name in OURS:
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HEVAL_HOME", str(tmp_path / "home"))
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        return runpy.run_module("heval_site.settings")

    return load


BAD = {
    "no secret key": ({"SECRET_KEY": ""}, "SECRET_KEY is not set"),
    "a short secret key": ({"SECRET_KEY": "short"}, "SECRET_KEY must have at least 50"),
    "a secret key from an example": ({"SECRET_KEY": "django-insecure-" + KEY}, "SECRET_KEY must have"),
    "a secret key of one letter": ({"SECRET_KEY": "a" * 80}, "SECRET_KEY must have"),
    "no pseudonym key": ({"PSEUDONYM_KEY": ""}, "PSEUDONYM_KEY is not set"),
    "one key for both": ({"PSEUDONYM_KEY": KEY}, "must not be the SECRET_KEY"),
    "a key and a file": ({"SECRET_KEY_FILE": "/nowhere"}, "are both set"),
    "a key file that is not there": (
        {"SECRET_KEY": "", "SECRET_KEY_FILE": "/nowhere"},
        "SECRET_KEY_FILE: /nowhere cannot be read",
    ),
    "DEBUG": ({"DEBUG": "true"}, "DEBUG must not be true"),
    "DEBUG in another word": ({"DEBUG": "enabled"}, "DEBUG must be true or false"),
    "another database": ({"DATABASE_URL": "mysql://heval:secret@db/heval"}, "DATABASE_URL must begin with postgres://"),
    "a database without a name": ({"DATABASE_URL": "postgres://heval:secret@db/"}, "DATABASE_URL must name a database"),
    "a database with a broken port": (
        {"DATABASE_URL": "postgres://heval:secret@db:x/heval"},
        "DATABASE_URL must begin",
    ),
    "no site address": ({"SITE_URL": ""}, "SITE_URL must be the address"),
    "a site address without a scheme": ({"SITE_URL": "eval.example.org"}, "SITE_URL must be the address"),
    "a site address with a path": ({"SITE_URL": "https://eval.example.org/heval"}, "SITE_URL must be the address"),
    "a site address over http": ({"SITE_URL": "http://eval.example.org"}, "SITE_URL must begin with https://"),
    "any host": ({"ALLOWED_HOSTS": "*"}, "ALLOWED_HOSTS must list"),
    "any host of a domain": ({"ALLOWED_HOSTS": ".example.org"}, "ALLOWED_HOSTS must list"),
    "a host with a scheme": ({"ALLOWED_HOSTS": "https://eval.example.org"}, "ALLOWED_HOSTS must list"),
    "a port that is a word": ({"PORT": "http"}, "PORT must be a whole number from 1 to 65535"),
    "a port that is none": ({"PORT": "0"}, "PORT must be a whole number"),
    "a port in other digits": ({"PORT": "٨٠"}, "PORT must be a whole number"),
    "too many proxies": ({"TRUSTED_PROXY_COUNT": "9"}, "TRUSTED_PROXY_COUNT must be a whole number"),
    "an old name": ({"TRUSTED_PROXIES": "2"}, "TRUSTED_PROXIES is now TRUSTED_PROXY_COUNT. Rename it"),
    "an old name of a file": ({"TRUSTED_PROXIES_FILE": "/nowhere"}, "TRUSTED_PROXIES is now TRUSTED_PROXY_COUNT"),
    "a negative pool": ({"DATABASE_POOL": "-1"}, "DATABASE_POOL must be a whole number"),
    "another cache": ({"REDIS_URL": "memcached://cache"}, "REDIS_URL must begin with redis://"),
    "another broker": ({"CELERY_BROKER_URL": "filesystem://"}, "CELERY_BROKER_URL must begin with redis://"),
    "a panel elsewhere": (
        {"PROLIFIC_API": "https://api.prolific.example"},
        "PROLIFIC_API must be https://api.prolific.com, or",
    ),
    "a panel in the network": ({"PROLIFIC_API": "http://10.0.0.7:9000"}, "PROLIFIC_API must be"),
    "another log": ({"LOG_FORMAT": "xml"}, "LOG_FORMAT must be plain or json"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_environment_stops_the_start_with_a_reason(loaded, name):
    changes, reason = BAD[name]
    with pytest.raises(ImproperlyConfigured, match=f"^.*{reason}") as raised:
        loaded(**DEPLOYED | changes)
    text = str(raised.value)
    assert "\n" not in text and "secret@" not in text and KEY not in text


def test_the_command_line_says_the_reason_in_one_line_and_ends_with_one(tmp_path):
    environment = {"PATH": os.environ["PATH"], "HEVAL_HOME": str(tmp_path), "DEBUG": "enabled"}
    done = subprocess.run(
        [sys.executable, "-m", "heval_site.management.cli", "check"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr == "heval: DEBUG must be true or false, not 'enabled'.\n"


@pytest.mark.slow
def test_a_deployment_has_nothing_that_django_warns_of(tmp_path):
    environment = {"PATH": os.environ["PATH"], "HEVAL_HOME": str(tmp_path), **DEPLOYED}
    done = subprocess.run(
        [sys.executable, "-m", "heval_site.management.cli", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_a_deployment_is_secure_by_default(loaded):
    found = loaded(**DEPLOYED)
    assert found["ALLOWED_HOSTS"] == ["eval.example.org"]
    assert found["SESSION_COOKIE_NAME"].startswith("__Host-")
    assert found["SESSION_COOKIE_SECURE"] and found["CSRF_COOKIE_SECURE"] and found["SECURE_SSL_REDIRECT"]
    assert found["SECURE_HSTS_SECONDS"] >= 31536000
    database = found["DATABASES"]["default"]
    assert database["CONN_HEALTH_CHECKS"] and database["OPTIONS"]["pool"]["timeout"] < 10
    assert not (found["HEVAL_HOME"]).exists(), "a deployment makes no folder of its own"


def test_options_of_the_database_address_are_kept(loaded):
    found = loaded(**DEPLOYED | {"DATABASE_URL": DEPLOYED["DATABASE_URL"] + "?sslmode=require"})
    assert found["DATABASES"]["default"]["OPTIONS"]["sslmode"] == "require"


def test_the_cache_is_shared_by_all_processes(loaded):
    assert loaded()["CACHES"]["default"]["BACKEND"].endswith("DatabaseCache")
    assert loaded(**DEPLOYED, REDIS_URL="redis://cache:6379/0")["CACHES"]["default"]["BACKEND"].endswith("RedisCache")


def test_redis_is_the_broker_unless_another_is_named(loaded):
    assert loaded()["CELERY_BROKER_URL"] == ""
    assert loaded(**DEPLOYED, REDIS_URL="redis://cache/0")["CELERY_BROKER_URL"] == "redis://cache/0"
    both = loaded(**DEPLOYED, REDIS_URL="redis://cache/0", CELERY_BROKER_URL="amqp://mq")
    assert both["CELERY_BROKER_URL"] == "amqp://mq"


def test_the_embedded_state_keeps_its_own_secrets(loaded):
    first, second = loaded(), loaded()
    assert first["SECRET_KEY"] == second["SECRET_KEY"] != first["PSEUDONYM_KEY"] == second["PSEUDONYM_KEY"]
    file = first["HEVAL_HOME"] / "secret_key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(first["HEVAL_HOME"].stat().st_mode) == 0o700
    assert first["DATABASES"]["default"]["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert "synchronous=FULL" in first["DATABASES"]["default"]["OPTIONS"]["init_command"]


def test_processes_that_start_at_once_agree_on_the_secret(monkeypatch, tmp_path):
    monkeypatch.setenv("HEVAL_HOME", str(tmp_path))
    for round_ in range(20):
        name, gate, found = f"key{round_}", threading.Barrier(8), []

        def keep(name=name, gate=gate, found=found):
            gate.wait()
            found.append(home.get_or_create_site_secret(name))

        threads = [threading.Thread(target=keep) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(found)) == 1 and len(found) == 8 and len(found[0]) >= 50
    assert {path.name for path in tmp_path.iterdir()} == {f"key{n}" for n in range(20)}, "nothing is left behind"


# Each number that heval reads, with its range.
NUMBERS = {
    "PORT": (1, 65535),
    "WEB_WORKERS": (1, 64),
    "WEB_THREADS": (1, 64),
    "DATABASE_POOL": (1, 100),
    "TRUSTED_PROXY_COUNT": (0, 5),
    "HSTS_SECONDS": (0, 2**31),
}


def numbers_in_the_code() -> set[str]:
    text = "".join(path.read_text() for path in (ROOT / "heval_site").glob("*.py"))
    return set(re.findall(r'env\.integer\(["\'](\w+)', text))


def test_every_number_has_its_range_here():
    assert numbers_in_the_code() == set(NUMBERS)


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_out_of_range_is_refused_with_the_range(loaded, name):
    low, high = NUMBERS[name]
    for value in (low, high):
        loaded(**DEPLOYED | {name: str(value)})
    for value in (low - 1, high + 1, "auto", "1.5", "1e1", "١"):
        with pytest.raises(ImproperlyConfigured, match=f"{name} must be a whole number from {low} to {high}, not"):
            loaded(**DEPLOYED | {name: str(value)})


@pytest.mark.parametrize("value", ["0.0.0.0", "127.0.0.1", "::", "::1", "localhost"])
def test_an_address_to_listen_on(loaded, value):
    assert loaded(**DEPLOYED, LISTEN=value)["LISTEN"] == value


@pytest.mark.parametrize("value", ["eval.example.org", "a name", "127.0.0.1:8000", "*", "http://127.0.0.1"])
def test_no_address_to_listen_on(loaded, value):
    with pytest.raises(ImproperlyConfigured, match="LISTEN must be an IP address"):
        loaded(**DEPLOYED, LISTEN=value)


@pytest.mark.slow
def test_the_names_of_variables_are_those_that_the_code_reads():
    # Not set for a site: what heval sets itself, and what the client's MCP server reads on another machine.
    own = {"DJANGO_SETTINGS_MODULE", "HEVAL_ANNOUNCE", "HEVAL_SITE"}
    assert set(environment.NAMES) == set(environment_variable_defaults()) - own


@pytest.mark.parametrize("name", [name for name in environment.NAMES if "_" in name])
def test_a_misspelt_name_is_found(monkeypatch, name):
    """A letter in the wrong case, too few, too many, or two that changed places."""
    for wrong in {
        name[:-1] + name[-1].lower(),
        name[:-1],
        name + "S",
        name[:-2] + name[-1] + name[-2],
        name.lower(),
    } - {name}:
        monkeypatch.setattr(os, "environ", {wrong: "x", f"{name}_FILE": "x", name: "x"})
        found = environment.find_misspelt_names()
        assert wrong in environment.NAMES or found == {wrong: name}, wrong


OTHERS = [
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TERM",
    "USER",
    "SHELL",
    "PWD",
    "HOSTNAME",
    "PYTHONPATH",
    "PYTHONUNBUFFERED",
    "VIRTUAL_ENV",
    "DEBUGINFOD_URLS",
    "POSTGRES_PASSWORD",
    "POSTGRES_USER",
    "POSTGRES_DB",
    "PGHOST",
    "PGPASSWORD",
    "REDIS_HOST",
    "REDIS_PASSWORD",
    "DJANGO_SECRET",
    "SECRET_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "GITHUB_TOKEN",
    "PORTS",
    "DEBUGGER",
    "LISTEN_FDS",
    "LISTEN_PID",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "WEB_CONCURRENCY",
    "GUNICORN_CMD_ARGS",
    "HEVAL_TEST_DATABASE_URL",
    "HEVAL_TEST_REDIS_URL",
    "HEVAL_REQUIRE",
    "HEVAL_ANNOUNCE",
    "DJANGO_SETTINGS_MODULE",
    "MPLCONFIGDIR",
]


def test_variables_of_other_programs_are_no_misspelt_names(monkeypatch):
    monkeypatch.setattr(os, "environ", dict.fromkeys(OTHERS, "x"))
    assert environment.find_misspelt_names() == {}
