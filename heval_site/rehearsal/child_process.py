"""The process of a rehearsal: ``python -m heval_site.rehearsal.child_process FOLDER``, started only by ``runner``.

Its home, database and secrets are in FOLDER and are deleted with it. It writes JSON lines to its standard output. When
its standard input closes, the parent has ended, and the process deletes the folder and ends.
"""

import json
import logging
import os
import shutil
import ssl
import sys
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from annotators.recruitment.panels.loopback import LoopbackServer

from . import network_guard

if TYPE_CHECKING:
    from annotators.models import Recruitment
    from studies.models import Study

HTTP_TIMEOUT_SECONDS = 60
REPORT_STEPS = 6  # five of the report, then its figures


class PanelProxy(LoopbackServer):
    """Listen before the settings are read, because they name the address. The handler is set when the study exists."""

    target: LoopbackServer

    def handle(self, handler):
        self.target.handle(handler)


class QuietRequestHandler(WSGIRequestHandler):
    def log_message(self, *message):
        pass


def delete_folder_and_exit_with_parent(folder: Path) -> None:
    def watch():
        sys.stdin.buffer.read()
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(3)

    threading.Thread(target=watch, daemon=True).start()


def start_site_server() -> int:
    """Serve the site's own application on this machine; return the port."""
    from heval_site.wsgi import application

    server = WSGIServer(("127.0.0.1", 0), QuietRequestHandler)
    server.set_app(application)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    return server.server_port


def build_http_sender_factory(port: int, site_url: str) -> Callable[[int], Callable]:
    """Return a connection to the site for each person, as through a proxy that ends https."""
    import httpx

    from .browser import HttpReply

    host = urlsplit(site_url)
    trust = ssl.create_default_context()  # created once: httpx would create one per request
    for name in ("httpx", "httpcore"):  # they log each address
        logging.getLogger(name).setLevel(logging.WARNING)

    def sender_of_person(number: int):
        def ask(method: str, path: str, body: bytes | None) -> HttpReply:
            headers = {
                "Accept-Encoding": "identity",
                "Host": host.netloc,
                "X-Forwarded-Proto": host.scheme,
                "X-Forwarded-For": f"198.51.100.{number % 250}",
            }
            if body is not None:
                headers |= {"Content-Type": "application/x-www-form-urlencoded", "Origin": site_url}
            # A new connection and client for each request: no cookies, and nothing from the environment.
            options: dict[str, Any] = {"timeout": HTTP_TIMEOUT_SECONDS, "verify": trust, "trust_env": False}
            answer = httpx.request(method, f"http://127.0.0.1:{port}{path}", content=body, headers=headers, **options)
            html = answer.content.decode("utf-8", "replace")
            reply_headers = answer.headers
            return HttpReply(
                answer.status_code, html, reply_headers.get("Location", ""), reply_headers.get("Set-Cookie", "")
            )

        return ask

    return sender_of_person


def create_database_and_launch_copy(plan: dict[str, Any], progress: Callable[..., None]) -> "Study":
    """Create the tables and the study in this process's database, and launch it. Raises NotReady or BundleRefused."""
    from django.contrib.auth import get_user_model

    from heval_site.runtime.startup import migrate_and_create_cache_and_media_folder
    from studies.design import checklist
    from studies.imports.bundle_files import create_draft_from_bundle
    from studies.services import lifecycle

    from .schema_copy import create_sqlite_schema_and_record_migrations

    progress(0, 1, "Creating a separate database")
    if plan["tables"]:
        create_sqlite_schema_and_record_migrations(plan["tables"])
    migrate_and_create_cache_and_media_folder()
    progress(0, 1, "Launching a copy of the study")
    owner = get_user_model().objects.create_user("rehearsal", is_staff=True)
    study = create_draft_from_bundle(plan["bundle"], owner)
    study.required_qualification = ""  # in this database nobody has passed a test of another study
    study.save()
    accepted = [problem.key for problem in checklist.find_design_problems(study) if not problem.is_blocking]
    return lifecycle.launch(study, owner, accepted)


def create_recruitment(study: "Study", columns: dict[str, Any]) -> "Recruitment":
    """Add the link to the copy. Its secrets are invented later."""
    from annotators.models import OutcomePay, Recruitment

    recruitment = Recruitment.objects.create(
        study=study,
        channel=columns["channel"],
        key=columns["key"],
        settings=columns["settings"],
        reward=columns["reward"] or None,
        currency=columns["currency"],
        wanted=columns["wanted"],
    )
    recruitment.arms.set(study.arms.filter(name__in=columns["arms"]))
    OutcomePay.objects.bulk_create(
        OutcomePay(recruitment=recruitment, outcome=outcome, rule=rule, amount=amount)
        for outcome, (rule, amount) in columns["promises"].items()
    )
    return Recruitment.objects.select_related("study").get(pk=recruitment.pk)


def play_rehearsal(plan: dict[str, Any], panel: PanelProxy, progress: Callable[..., None]) -> dict[str, Any]:
    port = start_site_server()
    from django.conf import settings

    from annotators.recruitment.channels import REGISTRY
    from annotators.recruitment.panels.http_client import store_or_delete_secrets

    from .rehearsal import Rehearsal, entry_url
    from .results import build_report

    recruitment = create_recruitment(create_database_and_launch_copy(plan, progress), plan["recruitment"])
    stand_in = REGISTRY[recruitment.channel].stand_in(recruitment, entry_url(recruitment))
    panel.target = stand_in
    # This is also shown to people who completed if there is no service.
    store_or_delete_secrets(
        recruitment, dict.fromkeys(REGISTRY[recruitment.channel].secrets, "rehearsal") | dict(stand_in.secrets), by=None
    )
    rehearsal = Rehearsal(
        recruitment, stand_in, build_http_sender_factory(port, settings.SITE_URL), plan["seed"], progress
    )
    rehearsal.play(plan["people"])
    for host in dict.fromkeys(network_guard.refused_hosts):
        rehearsal.faults.append(f"Something tried to connect to {host}. A rehearsal may contact only this machine.")
    return build_report(rehearsal)


def answer_as_robots_and_report(plan: dict[str, Any], progress: Callable[..., None]) -> dict[str, Any]:
    """Let robots take the places of the copy, close it, and return its report, its figures and the settings of the robots."""
    import django

    django.setup()
    from random import Random

    from analysis.report.build import build_report
    from analysis.report.plots import render_figure_svg_and_pdf
    from analysis.report.runs import WATERMARK
    from analysis.report.stopping import robots_have_decided
    from annotators.participation.simulate import CrowdSettings, default_system_strengths, record_simulated_answers
    from studies.services import lifecycle

    study = create_database_and_launch_copy(plan, progress)
    strengths = default_system_strengths(study)
    if plan["are_systems_equal"]:
        strengths = dict.fromkeys(strengths, 0.0)
    crowd, steps = CrowdSettings(), plan["people"] + REPORT_STEPS
    ended = record_simulated_answers(
        study,
        plan["people"],
        strengths,
        Random(plan["seed"]),
        crowd=crowd,
        progress=lambda done, total, doing: progress(done, steps, doing),
        has_decided=lambda: robots_have_decided(study),
    )
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    study.refresh_from_db()
    result = build_report(
        study, {"origins": ["robot"]}, lambda done, _, doing: progress(plan["people"] + done, steps, doing)
    )
    progress(steps - 1, steps, "Drawing the figures")
    figures = {
        figure["name"]: render_figure_svg_and_pdf(figure | {"watermark": WATERMARK})[0] for figure in result["figures"]
    }
    robots = {"strengths": strengths, "acquiescent": crowd.acquiescent, "wanted": study.target_n}
    return {"result": result, "figures": figures, "robots": robots, "submitted": ended.submitted}


def main(folder: Path) -> None:
    parent_pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # all other output goes to the log

    def say(**message):
        parent_pipe.write(json.dumps(message) + "\n")
        parent_pipe.flush()

    delete_folder_and_exit_with_parent(folder)
    network_guard.block_outgoing_connections()
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    begun = time.monotonic()
    with PanelProxy() as panel:
        os.environ["PROLIFIC_API"] = panel.url
        try:
            play = partial(play_rehearsal, panel=panel) if "recruitment" in plan else answer_as_robots_and_report
            report = play(plan, progress=lambda *progress: say(progress=progress))
        except Exception as error:
            traceback.print_exc()
            from studies.imports.bundle import BundleRefused
            from studies.services.lifecycle import ActionRefused, NotReady

            refusal = str(error) if isinstance(error, NotReady | ActionRefused | BundleRefused) else ""
            say(failed=refusal, kind=type(error).__name__, is_refused=bool(refusal))
            return
    say(report=report | {"seconds": round(time.monotonic() - begun, 1), "people": plan["people"]})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
