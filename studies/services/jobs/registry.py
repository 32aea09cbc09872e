"""Register kinds of jobs."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.utils.module_loading import autodiscover_modules


class UnknownKind(LookupError):
    """No app has registered this kind of job."""


class UserFacingError(Exception):
    """An error with a message for the researcher."""


@dataclass(frozen=True, slots=True)
class JobKind:
    name: str
    work: Callable[..., Any]
    exclusive: bool
    user_facing: tuple[type[Exception], ...]
    part: Callable[[dict[str, Any]], Any] | None = None


_kinds: dict[str, JobKind] = {}
_is_loaded = False


def register(
    kind: str,
    *,
    is_one_per_study: bool = False,
    user_facing_errors: tuple[type[Exception], ...] = (),
    part: Callable[[dict[str, Any]], Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function ``work(job, progress)`` for a kind of job. Its result must be serializable as JSON.

    ``is_one_per_study``: only one job of this kind runs at a time for a study. ``user_facing_errors``: exceptions whose message
    the researcher sees; other errors appear only in the log. ``part``: computes a part of the job from its arguments
    (``jobs.compute_parts``). A job runs again after a crash, so the work must be idempotent.
    """

    def registered(work):
        if kind in _kinds and _kinds[kind].work.__module__ != work.__module__:
            raise ValueError(
                f"Two functions want to be the job {kind!r}: in {_kinds[kind].work.__module__} and {work.__module__}."
            )
        _kinds[kind] = JobKind(kind, work, is_one_per_study, (UserFacingError, *user_facing_errors), part)
        return work

    return registered


def autodiscover_tasks() -> None:
    """Import the ``tasks`` module of every app, once."""
    global _is_loaded
    if not _is_loaded:
        autodiscover_modules("tasks")
        _is_loaded = True


def kinds() -> dict[str, JobKind]:
    autodiscover_tasks()
    return dict(_kinds)


def get_job_kind(name: str) -> JobKind:
    autodiscover_tasks()
    try:
        return _kinds[name]
    except KeyError:
        raise UnknownKind(f"There is no job {name!r}. There are: {', '.join(sorted(_kinds))}.") from None


def validate_json_value(value: Any) -> Any:
    """Return the value. Raise ValueError or TypeError if a JSON column of the database cannot store it."""
    text = json.dumps(value, allow_nan=False)
    if "\\u0000" in text:
        raise ValueError("a NUL character cannot be stored")
    return json.loads(text)
