"""Health checks: /healthz says that the process lives, /readyz that it can work."""

import logging
from collections.abc import Callable

from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from heval_site.runtime import doctor
from heval_site.runtime.startup import is_migrated

# The root page of the site: what this server is, and where to go next. It reveals no study.


@require_safe
def front_page(request) -> HttpResponse:
    """Explain this server to people who come without a link."""
    return render(request, "front.html", {"title": "Human evaluations"})


logger = logging.getLogger("heval.health")
NO_ANSWER = "This cannot be used now. Run heval doctor for the reason."
UNKNOWN = "This needs the database."


@require_safe
def liveness_check(request) -> HttpResponse:
    """Confirm that the process answers.

    This does not use the database, because a restart of heval would not repair it.
    """
    return HttpResponse("ok\n", content_type="text/plain", headers={"Cache-Control": "no-store"})


@require_safe
def readiness_check(request) -> JsonResponse:
    """Return 200 if a page can be shown, an answer stored and a job started; otherwise 503 with the problems in words."""
    problems = {"database": _problem("database", doctor.database_problem)}
    for name, check in CHECKS.items():
        # These also use the database, and would only wait for it.
        problems[name] = UNKNOWN if problems["database"] == NO_ANSWER else _problem(name, check)
    found = {name: problem for name, problem in problems.items() if problem}
    checks = {name: "failed" if name in found else "ok" for name in problems}
    body = {"ready": not found, "checks": checks, "problems": found}
    return JsonResponse(body, status=503 if found else 200, headers={"Cache-Control": "no-store"})


def _problem(name: str, check: Callable[[], str]) -> str:
    try:
        return check()
    except Exception as error:
        logger.warning("Not ready: %s (%s)", name, type(error).__name__)
        return NO_ANSWER


# Once all migrations were applied, this process does not check them again.
_was_prepared = False


def _migrations_problem() -> str:
    global _was_prepared
    _was_prepared = _was_prepared or is_migrated()
    return "" if _was_prepared else "Some migrations are not applied. Run heval prepare."


CHECKS = {
    "migrations": _migrations_problem,
    "cache": doctor.cache_problem,
    "static files": doctor.static_files_problem,
    "runner": doctor.runner_problem,
}
