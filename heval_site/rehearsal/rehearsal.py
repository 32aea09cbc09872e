"""The steps of a rehearsal in the copy's database: publish, let people come, check, decide, pay, stop, and compare.

Everything uses the product's own code: orders by the pages' functions, checks by the job, people over HTTP. Only time
is moved forward by hand, and the places are used up for people who must come too late.
"""

import json
import logging
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.conf import settings
from django.db.models import F
from django.urls import reverse

import heval_site
from analysis.report.runs import MAX_ROBOTS, with_missing_texts
from annotators.models import Assignment, Recruitment
from annotators.places import assign
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.links import outcomes_missing_required_pay_rule
from annotators.recruitment.panels.orders import publishing_obstacles
from annotators.recruitment.panels.stand_in import DEFAULT_PEOPLE, MAX_PEOPLE, MIN_PEOPLE, StandIn
from studies.design.checklist import find_design_problems
from studies.imports.bundle import BundleIncomplete
from studies.imports.bundle_files import serialize_bundle
from studies.models import Study
from studies.services import lifecycle
from studies.services.jobs import UserFacingError

from .browser import SendRequest
from .context import Person, Progress, RehearsalContext, Role, choose_roles
from .panel import PanelActions, VisitPlayer
from .results import update_ledger_and_record_mismatches
from .schema_copy import read_schema_if_sqlite

# After this time, a check finds people who never reached the panel, and places of people who left are free.
ONE_DAY = timedelta(days=1)


class Rehearsal(RehearsalContext):
    """``asks`` returns a connection to the site for each person, by number.

    ``play`` runs all steps; the findings are in the attributes.
    """

    def __init__(
        self,
        recruitment: Recruitment,
        panel: StandIn,
        senders: Callable[[int], SendRequest],
        seed: int,
        progress: Progress,
    ):
        super().__init__(recruitment, panel, progress)
        self.asks, self.seed = senders, seed

    def unplayable_role_reasons(self) -> dict[str, str]:
        """Return the roles that this study or panel cannot play, each with the reason."""
        out = {}
        if not self._can_screen_out():
            out["screened_out"] = "The study screens nobody out."
        if not self.study.consent:
            out["declines"] = "The study asks for no consent."
        can_reject = self.has_service and self.channel.rejection_policy is not None
        if not can_reject:
            out["rejected"] = "heval does not reject work at this channel."
        elif self.recruitment.settings.get("review") == "automatic":
            out["rejected"] = "The panel approves automatically at once, so nothing is left to reject."
        return out

    def _can_screen_out(self) -> bool:
        for section in self.study.sections.filter(purpose="screening").prefetch_related("questions"):
            for question in section.questions.all():
                if any(option.get("screens_out") for option in (question.scale or {}).get("options", ())):
                    return True
        return False

    def play(self, people: int) -> None:
        visits, orders = VisitPlayer(self, self.asks, self.seed), PanelActions(self)
        out = self.unplayable_role_reasons()
        self.notes += out.values()
        chosen = self._fitting_roles(choose_roles(people, set(out)))
        self.people = [Person(role, n, self.asks(n)) for n, role in enumerate(chosen, 1)]
        self.total = len(self.people) + 6
        if not orders.publish():
            return
        self.report_progress("A visitor looks without accepting")
        visits.play_preview()
        late = [person for person in self.people if person.role.key == "full"]
        for person in self.people:
            if person not in late:
                visits.play_person(person)
        self.report_progress("A day passes, and heval asks the panel")
        self._shift_times_back()
        orders.sync_when_throttled()
        assign.release_expired_places()
        Study.objects.filter(pk=self.study.pk).update(open_to=0)
        for person in late:
            visits.play_person(person)
        if self.has_service:
            self.report_progress("Deciding and paying")
            orders.sync_panel()
            orders.decide_and_pay()
            orders.stop_tasks_and_check()
        self.report_progress("Comparing the results")
        update_ledger_and_record_mismatches(self)

    def _fitting_roles(self, chosen: list[Role]) -> list[Role]:
        """Reduce the people to the available places if the study cannot get more; the last ones are left out."""
        missing = sum(role.needs_place for role in chosen) - lifecycle.count_opened_places_towards_cap(self.study)
        if missing <= 0:
            return chosen
        shortage_text = "The study has fewer places than this rehearsal has people: "
        try:
            lifecycle.open_more_places(self.study, missing, by=None)
        except lifecycle.ActionRefused as refused:
            staying_away = [n for n, role in enumerate(chosen) if role.needs_place][-missing:]
            left_labels = ", ".join(dict.fromkeys(f"“{chosen[n].label}”" for n in staying_away))
            self.notes.append(f"{shortage_text}{missing} are left out (of those who {left_labels}). {refused}")
            return [role for n, role in enumerate(chosen) if n not in staying_away]
        self.notes.append(f"{shortage_text}the copy has {missing} more.")
        return chosen

    def _shift_times_back(self) -> None:
        assignments = Assignment.objects.filter(study=self.study)
        moments = ("claimed_at", "reserved_until", "started_at", "submitted_at")
        assignments.update(**{name: F(name) - ONE_DAY for name in moments})


def entry_url(recruitment: Recruitment) -> str:
    return f"{settings.SITE_URL}{reverse('entry', args=[recruitment.key])}"


# Start a rehearsal from the running site, and ensure that it ends: by itself, by the time limit, or with its caller.


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
    return _plan_of_copy(recruitment.study, n_people, seed) | {
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


def _plan_of_copy(study: Study, n_people: int, seed: int) -> dict[str, Any]:
    """Return what every copy is made from. Raises RehearsalRefused if the study cannot be launched."""
    if study.state == Study.State.DRAFT and (
        problems := [problem.text for problem in find_design_problems(study) if problem.is_blocking]
    ):
        raise RehearsalRefused(f"The study cannot be launched as it is. Correct this first: {'; '.join(problems)}")
    try:
        bundle = serialize_bundle(study)
    except BundleIncomplete as incomplete:
        raise RehearsalRefused(str(incomplete)) from None
    return {"bundle": bundle, "people": n_people, "seed": seed, "tables": read_schema_if_sqlite()}


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
    report = _run_in_copy("rehearsal", build_rehearsal_plan(recruitment, n_people, seed), progress, timeout_seconds)
    return report | {
        "study": recruitment.study.title,
        "channel": str(REGISTRY[recruitment.channel].label),
        "key": recruitment.key,
        "before": publishing_obstacles(recruitment),
    }


def run_invented_report(
    study: Study,
    are_systems_equal: bool,
    seed: int = 0,
    progress: Callable[[int, int, str], Any] = lambda done, total, doing: None,
) -> dict[str, Any]:
    """Let robots answer a copy of a draft, and return the report of their answers with its figures, and the settings of the robots.

    The copy has its own process and folder, which end with this call. Raises RehearsalRefused, and any exception that
    ``progress`` raises.
    """
    study = with_missing_texts(study)
    plan = _plan_of_copy(study, min(study.target_n or 0, MAX_ROBOTS), seed)
    return _run_in_copy(
        "report with invented answers", plan | {"are_systems_equal": are_systems_equal}, progress, TIMEOUT_SECONDS
    )


def _run_in_copy(
    what: str, plan: dict[str, Any], progress: Callable[[int, int, str], Any], limit: float
) -> dict[str, Any]:
    """Run the process of a copy, and return its report. ``what`` names it in messages."""
    with TemporaryDirectory(prefix="heval-rehearsal-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        return _run_child(what, folder, progress, limit)


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


def _run_child(what: str, folder: Path, progress, limit: float) -> dict[str, Any]:
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
            return _wait_for_report(what, messages, progress, limit)
        except _ChildFailed as failed:
            log.seek(0)
            logger.error("A %s failed (%s): %s", what, failed, log.read()[-4000:].decode("utf-8", "replace"))
            raise RehearsalRefused(f"The {what} itself failed ({failed}). See the server's log for details.") from None
        finally:
            child.kill()
            child.wait()
            reading.join()
            child.stdin.close()  # type: ignore[union-attr]  # a pipe
            child.stdout.close()  # type: ignore[union-attr]  # it is a pipe


class _ChildFailed(Exception):
    pass


def _wait_for_report(what: str, messages: queue.Queue, progress, limit: float) -> dict[str, Any]:
    last, deadline = (0, 1, "Starting"), time.monotonic() + limit
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
            raise RehearsalRefused(f"The {what} was stopped after {limit:.0f} seconds. Try again with fewer people.")
        last = tuple(message.get("progress", last))
        progress(*last)
