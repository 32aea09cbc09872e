"""gunicorn's configuration: `gunicorn -c python:heval_site.server heval_site.wsgi:application`.

Threads, because requests wait for the database. Preloaded, because two workers then share their imports.
"""

import gc
import os
import sys
from pathlib import Path
from typing import Any

from gunicorn.glogging import Logger

from .runtime import buffering_worker, logs
from .runtime import environment as env

_is_embedded = not env.text("DATABASE_URL")
_listen = env.network_address("LISTEN", "127.0.0.1" if _is_embedded else "0.0.0.0")  # noqa: S104 - as in settings

bind = (
    f"[{_listen}]:{env.integer('PORT', 8000, 1, 65535)}"
    if ":" in _listen
    else f"{_listen}:{env.integer('PORT', 8000, 1, 65535)}"
)
workers = env.integer("WEB_WORKERS", 2, 1, 64)
threads = env.integer("WEB_THREADS", 4, 1, 64)
worker_class = "heval_site.runtime.buffering_worker.BufferingWorker"
worker_connections = buffering_worker.CONNECTIONS
preload_app = True
# Uploads are checked and stored within a request; all longer work is a job.
timeout = 60
graceful_timeout = 20
keepalive = 5
# The workers' heartbeat files. On a busy disk, healthy workers would be considered dead.
worker_tmp_dir = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - gunicorn makes its file safely
control_socket_disable = True
proc_name = "heval"
# TRUSTED_PROXY_COUNT decides which proxies to trust; gunicorn itself trusts no header.
forwarded_allow_ips = ""


class GunicornLogger(Logger):
    """Write no access log, because it would contain the addresses that lead to people's answers.

    If a logging configuration is given, gunicorn assumes an access log and formats each line for nothing.
    """

    access_log_enabled = False


logger_class = GunicornLogger
logconfig_dict = logs.logging_config(env.choice("LOG_FORMAT", "plain" if _is_embedded else "json", "plain", "json"))
chdir = str(Path(__file__).resolve().parent.parent)


def post_fork(server, worker) -> None:
    """Close connections that were opened while loading; two processes must not share them."""
    from django.db import connections

    connections.close_all()
    buffering_worker.allow_many_connections()


def post_worker_init(worker) -> None:
    """Cache the settings, which gunicorn looks up dozens of times per request. A worker's settings no longer change."""
    vars(worker.cfg).update({name: setting.get() for name, setting in worker.cfg.settings.items()})
    if is_heval_served():
        from analysis.api import waiting

        waiting.is_stopping = lambda: not worker.alive


def is_heval_served() -> bool:
    """Return whether the application is heval. A measurement may serve another one."""
    from django.apps import apps

    return apps.ready and apps.is_installed("heval_site")


def refuse_wrong_key() -> None:
    """Compare PSEUDONYM_KEY with the database before the first worker is forked."""
    from django.apps import apps

    if is_heval_served():
        site: Any = apps.get_app_config("heval_site")
        site.prepare_before_fork()


def when_ready(server) -> None:
    """Print the address once the application is loaded and the address is ours."""
    refuse_wrong_key()
    # Loaded objects stay forever: freeze them, so that the collector skips them and workers share their memory.
    gc.collect()
    gc.freeze()
    if text := os.environ.get("HEVAL_ANNOUNCE"):
        # A message for the operator's terminal; the log is separate.
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
