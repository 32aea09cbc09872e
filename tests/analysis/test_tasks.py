"""A process that only runs jobs knows the work of every kind of job that the code asks for."""

import ast
import subprocess
import sys

from tests import ROOT
from tests.rules import parsed, walk

APPS = ("studies", "annotators", "analysis", "heval_site")
LISTED = "import django; django.setup(); from studies.services import jobs; print(*jobs.kinds())"


def kinds_asked_for() -> set[str]:
    calls = (
        node
        for app in APPS
        for path in (ROOT / app).rglob("*.py")
        for node in walk(parsed(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute | ast.Name)
        and ast.unparse(node.func) in ("jobs.submit", "submit")
    )
    return {call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant)}


def test_a_process_that_runs_jobs_knows_every_kind_that_is_asked_for():
    run = subprocess.run([sys.executable, "-c", LISTED], cwd=ROOT, capture_output=True, text=True, check=True)
    assert {"analyse", "export", "launch"} <= kinds_asked_for() <= set(run.stdout.split())
