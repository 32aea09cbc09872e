"""Start a rehearsal from the running site, and ensure that it ends: by itself, by the time limit, or with its caller."""

import json
import logging
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.conf import settings

import heval_site
from annotators.models import Recruitment
from annotators.pay.promises import outcomes_missing_required_pay_rule
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels.publishing import publishing_obstacles
from annotators.recruitment.panels.rehearsal_jobs import DEFAULT_PEOPLE, MAX_PEOPLE, MIN_PEOPLE
from studies.design.checklist import find_design_problems
from studies.imports.bundle import BundleIncomplete, serialize_bundle
from studies.models import Study
from studies.services.jobs import UserFacingError

from .schema_copy import read_schema_if_sqlite

logger = logging.getLogger("heval.rehearsal")

TIMEOUT_SECONDS = 900
POLL_SECONDS = 1.0
# The copy's address if the site has no https address yet; this name is reserved and has no owner.
PLACEHOLDER_SITE_URL = "https://rehearsal.invalid"
# The copy gets only these variables of our environment: no database, secret or broker of the running site.
PASSED_VARIABLES = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "EXTERNAL_QUESTION_SITES", "RETURN_SITES")


class RehearsalRefused(UserFacingError):
    """The message is a sentence for the researcher."""


def build_rehearsal_plan(recruitment: Recruitment, n_people: int, seed: int) -> dict[str, Any]:
    """Return what the copy is made from: the complete design and the link without secrets and answers.

    Raises RehearsalRefused.
    """
    if not MIN_PEOPLE <= n_people <= MAX_PEOPLE:
        raise RehearsalRefused(
            f"A rehearsal has {MIN_PEOPLE} to {MAX_PEOPLE} people, not {n_people}. Change the number of people."
        )
    channel = REGISTRY.get(recruitment.channel)
    if channel is None:
        raise RehearsalRefused(
            f"This link's channel, {recruitment.channel}, is not installed. Install its package first."
        )
    study = recruitment.study
    if study.state == Study.State.DRAFT and (
        problems := [problem.text for problem in find_design_problems(study) if problem.is_blocking]
    ):
        raise RehearsalRefused(f"The study cannot be launched as it is. Correct this first: {'; '.join(problems)}")
    try:
        bundle = serialize_bundle(study)
    except BundleIncomplete as incomplete:
        raise RehearsalRefused(str(incomplete)) from None
    return {
        "bundle": bundle,
        "people": n_people,
        "seed": seed,
        "tables": read_schema_if_sqlite(),
        "recruitment": {
            "channel": recruitment.channel,
            "key": recruitment.key,
            "settings": recruitment.settings,
            "reward": "" if recruitment.reward is None else str(recruitment.reward),
            "currency": recruitment.currency,
            "wanted": recruitment.wanted,
            "arms": sorted(recruitment.arms.values_list("name", flat=True)),
            # Missing pay rules are listed among the problems before publishing. Here they count as nothing, so that the
            # rest can be tested.
            "promises": {outcome: ["nothing", None] for outcome in outcomes_missing_required_pay_rule(recruitment)}
            | {pay.outcome: [pay.rule, pay.amount and str(pay.amount)] for pay in recruitment.outcome_pays.all()},
        },
    }


def run_rehearsal(
    recruitment: Recruitment,
    n_people: int = DEFAULT_PEOPLE,
    seed: int = 0,
    progress: Callable[[int, int, str], Any] = lambda done, total, doing: None,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> dict[str, Any]:
    """Run the rehearsal in its own process and folder, which always end with this call; return the report.

    Raises RehearsalRefused, and any exception that ``progress`` raises.
    """
    plan = build_rehearsal_plan(recruitment, n_people, seed)
    with TemporaryDirectory(prefix="heval-rehearsal-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        report = _run_child(folder, progress, timeout_seconds)
    return report | {
        "study": recruitment.study.title,
        "channel": str(REGISTRY[recruitment.channel].label),
        "key": recruitment.key,
        "before": publishing_obstacles(recruitment),
    }


def child_environment(folder: Path) -> dict[str, str]:
    variables = {name: os.environ[name] for name in PASSED_VARIABLES if os.environ.get(name)}
    return variables | {
        "HOME": str(folder),
        "HEVAL_HOME": str(folder / "home"),
        "PYTHONPATH": str(Path(heval_site.__file__).resolve().parent.parent),
        "SITE_URL": settings.SITE_URL if settings.SITE_URL.startswith("https://") else PLACEHOLDER_SITE_URL,
        "SSL_REDIRECT": "false",
        "TRUSTED_PROXY_COUNT": "1",
        "DJANGO_SETTINGS_MODULE": "heval_site.settings",
    }


def _run_child(folder: Path, progress, limit: float) -> dict[str, Any]:
    messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
    with (folder / "log").open("w+b") as log:
        child = subprocess.Popen(  # noqa: S603 - this interpreter, our own module, and a folder that we created
            [sys.executable, "-m", "heval_site.rehearsal.child_process", str(folder)],
            cwd=folder,
            env=child_environment(folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )

        def read():
            for line in child.stdout:  # type: ignore[union-attr]  # a pipe
                messages.put(json.loads(line))
            messages.put(None)

        reading = threading.Thread(target=read, daemon=True)
        reading.start()
        try:
            return _wait_for_report(messages, progress, time.monotonic() + limit, limit)
        except _ChildFailed as failed:
            log.seek(0)
            logger.error("A rehearsal failed (%s): %s", failed, log.read()[-4000:].decode("utf-8", "replace"))
            raise RehearsalRefused(
                f"The rehearsal itself failed ({failed}). See the server's log for details."
            ) from None
        finally:
            child.kill()
            child.wait()
            reading.join()
            child.stdin.close()  # type: ignore[union-attr]  # a pipe
            child.stdout.close()  # type: ignore[union-attr]  # it is a pipe


class _ChildFailed(Exception):
    pass


def _wait_for_report(messages: queue.Queue, progress, deadline: float, limit: float) -> dict[str, Any]:
    last = (0, 1, "Starting")
    while True:
        try:
            message = messages.get(timeout=POLL_SECONDS)
        except queue.Empty:
            message = {}
        if message is None:
            raise _ChildFailed("it ended without a report")
        if "report" in message:
            return message["report"]
        if message.get("is_refused"):
            raise RehearsalRefused(f"The study cannot be launched as it is. Correct this first: {message['failed']}")
        if "failed" in message:
            raise _ChildFailed(message["kind"])
        if time.monotonic() > deadline:
            raise RehearsalRefused(f"The rehearsal was stopped after {limit:.0f} seconds. Try again with fewer people.")
        last = tuple(message.get("progress", last))
        progress(*last)
