"""Filled databases of earlier commits are upgraded without loss, and work afterwards.

python -m tools.proofs.upgrades [--database sqlite|postgres]

The databases are made by the commits themselves, in worktrees: that of 11713900 is a demo with studies, answers, an analysis and a board, and
that of be16bda the site that 11713900 stored of it, prepared at 11713900. This needs a checkout with the whole history
(`git fetch --unshallow`), and packages that both commits can import: those of `requirements-dev.lock` do.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests import ROOT
from tests.golden_site.stored import SECRETS, in_postgres, in_sqlite, into_postgres, into_sqlite
from tools.proofs.bench.machine import Postgres, folder

BEFORE, OLDEST = "11713900", "be16bda"
DEMO = """
import django; django.setup()
from django.contrib.auth import get_user_model
from heval_site.management.demo import get_or_create_demo_studies
from heval_site.management.demo_board import get_or_create_demo_board
from studies.services.jobs import run_waiting_jobs
user = get_user_model().objects.create_superuser("admin", password="not used")
get_or_create_demo_studies(user)
get_or_create_demo_board(user)
run_waiting_jobs()
"""
# Every page of a study and of a board answers; robots answer through annotators' pages; a report is made and shown.
USE = """
import django; django.setup()
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from annotators.models import Response
from boards.models import Board
from studies.models import Study
client = Client(SERVER_NAME="127.0.0.1")
client.force_login(get_user_model().objects.create_superuser("proof", password="not used"))
def page(path):
    answer = client.get(path, follow=True)
    assert answer.status_code == 200, (path, answer.status_code)
for path in ("/", "/admin/", "/boards/", "/admin/studies/study/", "/admin/annotators/recruitment/"):
    page(path)
for board in Board.objects.exclude(state="draft"):
    page(f"/boards/{board.slug}/")
for study in Study.objects.all():
    page(f"/admin/studies/study/{study.pk}/change/")
    page(f"/admin/studies/study/{study.pk}/analyses/")
    for run in study.analyses.all():
        page(f"/admin/studies/study/{study.pk}/analyses/{run.number}/")
before = Response.objects.count()
for study in Study.objects.filter(state="launched"):
    call_command("study", "simulate", str(study.code), "--robots", "3")
assert Response.objects.count() > before, "no robot could answer"
study = Study.objects.filter(state="closed", analyses__isnull=False).first()
call_command("study", "report", str(study.code), "--resamples", "99", "--user", "proof")
page(f"/admin/studies/study/{study.pk}/analyses/{study.analyses.order_by('number').last().number}/")
"""


def run(checkout: Path, home: Path, url: str, *words: str, may_fail: bool = False) -> str:
    """What Python said in a process of its own, with the code of this checkout."""
    environment = {"PATH": os.environ["PATH"], "HEVAL_HOME": str(home), **SECRETS}
    environment |= {"DJANGO_SETTINGS_MODULE": "heval_site.settings", "SITE_URL": "http://127.0.0.1:8000"}
    if url:
        environment |= {"DATABASE_URL": url, "ALLOWED_HOSTS": "127.0.0.1"}
    done = subprocess.run([sys.executable, *words], cwd=checkout, env=environment, capture_output=True, text=True)
    if done.returncode and not may_fail:
        sys.exit(f"{' '.join(words)[:80]} failed in {checkout}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def heval(checkout: Path, home: Path, url: str, *words: str, may_fail: bool = False) -> str:
    module = "management.cli" if (checkout / "heval_site" / "management" / "cli.py").exists() else "cli"
    return run(checkout, home, url, "-m", f"heval_site.{module}", *words, may_fail=may_fail)


def git(*words: str) -> None:
    subprocess.run([shutil.which("git") or "git", *words], cwd=ROOT, check=True)


def made_by_11713900(trees: dict[str, Path], home: Path, url: str) -> None:
    heval(trees[BEFORE], home, url, "prepare")
    run(trees[BEFORE], home, url, "-c", DEMO)


def made_by_be16bda(trees: dict[str, Path], home: Path, url: str) -> None:
    import tests.golden_site.stored as stored

    # The files of that commit, which be16bda wrote; this checkout has them as 11713900 upgraded them.
    # Both databases of one run come here, so the path must not depend on what an earlier call set.
    before = trees[BEFORE] / stored.FOLDER.relative_to(ROOT)
    stored.SQLITE, stored.POSTGRES = (before / path.name for path in (stored.SQLITE, stored.POSTGRES))
    if url:
        into_postgres(url)
    else:
        into_sqlite(home / "heval.sqlite3")
    heval(trees[OLDEST], home, url, "migrate", "--check")
    heval(trees[BEFORE], home, url, "prepare")


def prove(trees: dict[str, Path], home: Path, make: Callable, url: str, new_url: str) -> None:
    from tests.golden_site.compared import is_kept, made_in_postgres, made_in_sqlite

    home.mkdir(0o700)
    make(trees, home, url)
    rows = (lambda: in_postgres(url)) if url else (lambda: in_sqlite(home / "heval.sqlite3"))
    before = rows()
    heval(ROOT, home, url, "prepare")
    is_kept(before, rows())
    new = home / "new"
    new.mkdir(0o700)
    heval(ROOT, new, new_url, "prepare")
    if not url:
        assert made_in_sqlite(home / "heval.sqlite3") == made_in_sqlite(new / "heval.sqlite3")
    elif make is made_by_11713900:  # a list in a constraint is written otherwise once it was restored from a dump
        assert made_in_postgres(url) == made_in_postgres(new_url)
    run(ROOT, home, url, "-c", USE)
    doctor = heval(ROOT, home, url, "doctor", may_fail=True)  # no process runs jobs here
    assert "ok   migrations: all applied" in doctor, doctor
    n = sum(len(rows) for _, rows in before.values())
    print(f"{make.__name__:18} {'PostgreSQL' if url else 'SQLite':10} {len(before)} tables, {n:,} rows", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", choices=("sqlite", "postgres"))
    wanted = parser.parse_args().database
    os.environ |= {"DJANGO_SETTINGS_MODULE": "heval_site.settings", **SECRETS}
    with folder("heval-upgrades-") as work:
        os.environ["HEVAL_HOME"] = str(work)
        import django

        django.setup()
        trees = {commit: work / commit for commit in (OLDEST, BEFORE)}
        server = None
        try:
            for commit, tree in trees.items():
                git("worktree", "add", "--detach", "-q", str(tree), commit)
            for make in (made_by_11713900, made_by_be16bda):
                if wanted != "postgres":
                    prove(trees, work / f"sqlite-{make.__name__}", make, "", "")
                if wanted != "sqlite":
                    server = server or Postgres(work / "postgres")
                    urls = [server.create(f"{name}_{make.__name__}") for name in ("old", "new")]
                    prove(trees, work / f"postgres-{make.__name__}", make, *urls)
        finally:
            if server:
                server.kill()
            for tree in trees.values():
                git("worktree", "remove", "--force", str(tree))


if __name__ == "__main__":
    main()
