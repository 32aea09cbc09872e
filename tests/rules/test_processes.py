"""What a process of the site loads when it starts."""

import os
import subprocess
import sys
from pathlib import Path

from tests import ROOT

WEB_PROCESS = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
import django
django.setup()
from django.conf import settings
settings.ALLOWED_HOSTS = ["testserver"]
import shutil
shutil.copyfile(sys.argv[1], settings.DATABASES["default"]["NAME"])
from django.urls import get_resolver
get_resolver().url_patterns
heavy = ("numpy", "scipy", "pandas", "statsmodels", "matplotlib", "httpx")
at_start = (*heavy, "babel")  # the first page with a date needs it
assert not [m for m in at_start if m in sys.modules], ("start-up", [m for m in at_start if m in sys.modules])
from tests.builders import panel, spa_study
from tests.robots import Robot
study = spa_study(target_n=1)
robot = Robot(f"/e/{panel(study).key}/?who=w")
assert robot.play() == "Thank you"
print([m for m in heavy if m in sys.modules])
"""


def test_a_web_process_never_loads_the_heavy_libraries(migrated_sqlite):
    command = [sys.executable, "-c", WEB_PROCESS, str(migrated_sqlite)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.stdout.strip().splitlines()[-1:] == ["[]"], run.stdout + run.stderr


APPLICATIONS = """
import sys
import django
django.setup()
print(sorted({"studies.admin.study", "heval_site.urls", "rest_framework.serializers", "jinja2", "requests", "yaml", "psycopg"} & set(sys.modules)))
"""
SITE_COMMAND = """
import sys, time
time.sleep = lambda seconds: None  # nobody is there, however long one waits
from heval_site.management import cli
try:
    cli.main(sys.argv[1:])
except SystemExit as end:
    print(end.code, sorted({"heval_site.settings", "studies.models"} & set(sys.modules)))
"""


def printed(code: str, *words: str, home: Path) -> str:
    environment = {"PATH": os.environ["PATH"], "HEVAL_HOME": str(home), "DJANGO_SETTINGS_MODULE": "heval_site.settings"}
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=ROOT,
        env=environment | {"HEVAL_TOKEN": "none"},
        capture_output=True,
        text=True,
    )
    return (done.stdout + done.stderr).strip()


def test_a_command_does_not_load_the_pages(tmp_path):
    assert printed(APPLICATIONS, home=tmp_path / "home") == "[]"


def test_a_command_that_talks_to_a_site_loads_no_settings_and_makes_no_home(tmp_path):
    nowhere = ("--site", "http://127.0.0.1:9")
    for words, code in (
        (("judge", "study", *nowhere), 1),
        (("submit", "board", str(tmp_path / "missing.csv"), *nowhere), 2),
        (("judge",), 2),
        (("submit",), 2),
    ):
        said = printed(SITE_COMMAND, *words, home=tmp_path / "home")
        assert f"{code} []" in said.splitlines(), said
    assert not (tmp_path / "home").exists()


REPORT_MODULES = """
import django, sys
django.setup()
import analysis.report.views, analysis.report.urls, analysis.tasks, analysis.report.plots, annotators.participation.simulate, analysis.report.build
bad = {"numpy", "scipy", "pandas", "matplotlib", "statsmodels"} & set(sys.modules)
sys.exit(f"loaded: {bad}" if bad else 0)
"""


def test_the_modules_of_reports_load_no_numpy(tmp_path):
    environment = os.environ | {"HEVAL_HOME": str(tmp_path), "DJANGO_SETTINGS_MODULE": "heval_site.settings"}
    environment.pop("DATABASE_URL", None)
    done = subprocess.run(
        [sys.executable, "-c", REPORT_MODULES], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


RUNNER = """
import os, pkgutil, importlib
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
import django
django.setup()
from studies.services import jobs
known = set(jobs.kinds()) | set(jobs._periodic)
import analysis, annotators, heval_site, studies
for package in (analysis, annotators, heval_site, studies):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not {"migrations", "management", "server", "wsgi", "celery", "__main__"} & set(module.name.split(".")):
            importlib.import_module(module.name)
everything = set(jobs._kinds) | set(jobs._periodic)
assert {"launch", "analyse", "import"} <= known
print(sorted(everything - known))
"""


def test_who_runs_jobs_knows_every_kind_of_them():
    """A runner imports the ``tasks`` modules alone. What only an address imports was refused there, and nowhere in a test."""
    run = subprocess.run([sys.executable, "-c", RUNNER], cwd=ROOT, capture_output=True, text=True)
    assert run.stdout.strip().splitlines()[-1:] == ["[]"], run.stdout + run.stderr


STATISTICS_OF_RATINGS = """
import sys
import numpy as np
from analysis.stats import mixture, ratings, reliability, spa
scores = np.arange(60) % 7
ratings.sign_and_wilcoxon_tests(scores, scores[::-1] % 4, np.arange(60))
reliability.kendall_w(np.arange(20).reshape(5, 4) % 3)
print("scipy.stats" in sys.modules)
"""


def test_the_statistics_of_ratings_do_not_wait_for_scipy_stats(tmp_path):
    assert printed(STATISTICS_OF_RATINGS, home=tmp_path) == "False"
