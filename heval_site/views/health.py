"""Health checks: /healthz says that the process lives, /readyz that it can work."""

import logging

from django.core.cache import cache
from django.db import connection
from django.http import HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from heval_site.runtime.startup import is_migrated
from studies.services import jobs

logger = logging.getLogger("heval.health")


@require_safe
def liveness_check(request) -> HttpResponse:
    """Confirm that the process answers.

    This does not use the database, because a restart of heval would not repair it.
    """
    return HttpResponse("ok\n", content_type="text/plain", headers={"Cache-Control": "no-store"})


@require_safe
def readiness_check(request) -> JsonResponse:
    """Return 200 if database, migrations, cache and worker are well; otherwise 503 with the names of the failed checks."""
    results = {"database": _is_well("database", _database)}
    for name, check in CHECKS.items():
        # These also use the database, and would only wait for it.
        results[name] = results["database"] and _is_well(name, check)
    status = 200 if all(results.values()) else 503
    body = {"ready": status == 200, "checks": {name: "ok" if well else "failed" for name, well in results.items()}}
    return JsonResponse(body, status=status, headers={"Cache-Control": "no-store"})


def _is_well(name, check) -> bool:
    try:
        return bool(check())
    except Exception as error:
        logger.warning("Not ready: %s (%s)", name, type(error).__name__)
        return False


def _database() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        return cursor.fetchone() == (1,)


def _cache() -> bool:
    cache.set("heval:readyz", 1, 30)
    return cache.get("heval:readyz") == 1


# Once all migrations were applied, this process does not check them again.
_was_prepared = False


def _migrations() -> bool:
    global _was_prepared
    _was_prepared = _was_prepared or is_migrated()
    return _was_prepared


CHECKS = {"migrations": _migrations, "cache": _cache, "runner": jobs.is_runner_alive}
