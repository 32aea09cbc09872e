"""What is shipped: an image and a composition without secrets, and static files that every page can find."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import staticfiles_storage

from heval_site.runtime.static_files import CollectedFilesStorage, collect_changed_static_files
from studies.language.catalogues import LOCALE, TEMPLATE, shipped_languages
from tests import ROOT

STATIC = re.compile(r"{%\s*static\s+['\"]([^'\"]+)['\"]")


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load((ROOT / "compose.yaml").read_text())


def test_every_image_has_a_version(compose):
    images = [service["image"] for service in compose["services"].values()]
    images += re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.M)
    assert len(images) >= 8
    for image in images:
        assert re.search(r":\d", image), image


def test_every_service_tells_its_health_or_ends(compose):
    for name, service in compose["services"].items():
        is_ours = service["image"].startswith("heval:")
        assert "healthcheck" in service or (is_ours and name == "web"), f"{name}: the image's own check is the web's"


def test_our_services_run_without_powers_and_write_to_their_volume_alone(compose):
    ours = [service for service in compose["services"].values() if service["image"].startswith("heval:")]
    assert len(ours) == 5
    for service in ours:
        assert service["read_only"] and service["cap_drop"] == ["ALL"] and service["volumes"] == ["state:/srv/state"]
    assert re.search(r"^USER [1-9]\d*$", (ROOT / "Dockerfile").read_text(), re.M)


def test_the_image_gets_every_file_that_it_copies():
    """What ``.dockerignore`` leaves out is not there for ``COPY``, and the build stops."""
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    lines = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.M)
    copied = {name for line in lines for name in line.split()}
    assert len(copied) > 8 and not copied - sent


def test_only_the_proxy_of_this_machine_reaches_a_port(compose):
    ports = [port for service in compose["services"].values() for port in service.get("ports", ())]
    assert ports == ["127.0.0.1:8000:8000"]


def test_no_secret_and_no_default_for_one_is_shipped(compose):
    text = (ROOT / "compose.yaml").read_text()
    for name in ("POSTGRES_PASSWORD", "SECRET_KEY", "PSEUDONYM_KEY"):
        assert f"{name}:-" not in text
    assert "${POSTGRES_PASSWORD:?" in text
    for name in ("Dockerfile", "compose.yaml", "Makefile", "heval_site/settings.py"):
        assert not re.search(
            r"(SECRET_KEY|PSEUDONYM_KEY|PASSWORD)['\"]?\s*[:=]\s*['\"]?[A-Za-z0-9_\-]{16,}(?![\w(])",
            (ROOT / name).read_text(),
        ), name
    for name in (".env", "state"):
        assert f"!{name}" not in (ROOT / ".dockerignore").read_text()


def test_the_lock_is_hashed_and_names_no_address():
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / name).read_text()
        assert "://" not in text and "--hash=sha256:" in text
        pinned = [line for line in text.splitlines() if re.match(r"[a-z0-9]", line)]
        assert pinned and all("==" in line for line in pinned)


def test_every_static_file_that_a_template_names_is_there():
    named = {name for path in (ROOT / "templates").rglob("*.html") for name in STATIC.findall(path.read_text())}
    assert "heval.css" in named
    assert sorted(name for name in named if not finders.find(name)) == []


def test_static_files_are_collected_once_and_one_that_is_not_collected_keeps_its_name(settings, tmp_path, monkeypatch):
    settings.STATIC_ROOT = tmp_path
    # A storage of its own: the names that it learns must not reach the pages of later tests.
    monkeypatch.setattr(staticfiles_storage, "_wrapped", CollectedFilesStorage())
    assert staticfiles_storage.url("heval.css") == "/static/heval.css"
    collect_changed_static_files()
    ((hashed,), first_page) = tmp_path.glob("heval.????????????.css"), 0
    assert staticfiles_storage.url("heval.css") == f"/static/{hashed.name}"
    assert staticfiles_storage.url("docs/no-such-file.png") == "/static/docs/no-such-file.png"
    collected_at = hashed.stat().st_mtime_ns
    collect_changed_static_files()
    assert hashed.stat().st_mtime_ns == collected_at
    # What a browser loads with a first page of questions, beside its HTML.
    for name in ("tokens.css", "heval.css", "annotate.js", "answers.js", "place.js"):
        first_page += (tmp_path / f"{staticfiles_storage.stored_name(name)}.gz").stat().st_size
    assert first_page < 16 * 1024


# What a wheel's user meets first, and what is read from files beside the code: pages, style, docs, templates of studies, the demo's texts.
INSTALLED = """
import django
django.setup()
from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.management import call_command
from django.test import Client
from studies.imports.study_templates import STUDY_TEMPLATES
from studies.language.catalogues import shipped_text
from heval_site.management.demo_texts import load_demo_texts
settings.ALLOWED_HOSTS.append("testserver")
assert finders.find("heval.css") and all(one.text for one in STUDY_TEMPLATES) and load_demo_texts() and "msgid" in shipped_text("en")
for number in range(2):  # the second time, all is there
    call_command("prepare", verbosity=0)
for address in ("/", "/docs/", "/docs/tutorial/first-study/", "/admin/login/"):
    assert Client().get(address).status_code == 200, address
assert Client().get("/e/nobody/").status_code == 404
print(settings.DATA)
"""


TOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
WHEEL = TOOLS["hatch"]["build"]["targets"]["wheel"]


@pytest.fixture
def installed(tmp_path):
    """The folder that the wheel makes of a checkout, as pyproject.toml says."""
    site = tmp_path / "site"
    excluded = {ROOT / path for path in WHEEL["exclude"]}

    def names_to_leave_out(folder, names):
        return {name for name in names if name == "__pycache__" or Path(folder, name) in excluded}

    for here in WHEEL["only-include"]:
        there = site / WHEEL["sources"].get(here, here)
        shutil.copytree(ROOT / here, there, ignore=names_to_leave_out)
    for here, there in WHEEL["force-include"].items():
        shutil.copy(ROOT / here, site / there)
    return site


def test_the_wheel_has_the_packages_and_the_manual_but_no_decisions(installed):
    assert set(WHEEL["only-include"]) == {*TOOLS["importlinter"]["root_packages"], "templates", "static"}
    data = installed / "heval_site" / "_data"
    assert {path.name for path in (ROOT / "templates/docs").iterdir()} - {"decisions"} == {
        path.name for path in (data / "templates/docs").iterdir()
    }
    assert (data / "static" / "heval.css").exists() and (data / "manage.py").exists()
    languages = installed / LOCALE.relative_to(ROOT)
    assert (languages / TEMPLATE.name).exists()
    assert {path.parent.parent.name for path in languages.glob("*/LC_MESSAGES/*.po")} == set(shipped_languages())


@pytest.mark.slow  # a release is checked in the same way: tools/release.py
def test_the_wheel_works_from_any_folder(installed, tmp_path):
    folder = tmp_path / "anywhere"
    folder.mkdir()
    environment = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "TMPDIR")}
    environment |= {"PYTHONPATH": str(installed), "HEVAL_HOME": str(tmp_path / "home")}
    environment["DJANGO_SETTINGS_MODULE"] = "heval_site.settings"
    run = subprocess.run([sys.executable, "-c", INSTALLED], cwd=folder, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == str(installed / "heval_site" / "_data")
    assert not list(folder.iterdir())
