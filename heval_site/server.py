"""gunicorn's configuration: `gunicorn -c python:heval_site.server heval_site.wsgi:application`.

Threads, because a request waits for the database; preloaded, because two workers then share what they import.
"""

import gc
import os
import sys
from pathlib import Path

from gunicorn.glogging import Logger

from .runtime import environment as env
from .runtime import logs

_is_embedded = not env.text("DATABASE_URL")
_listen = env.text("LISTEN", "127.0.0.1" if _is_embedded else "0.0.0.0")  # noqa: S104 - as in settings

bind = (
    f"[{_listen}]:{env.integer('PORT', 8000, 1, 65535)}"
    if ":" in _listen
    else f"{_listen}:{env.integer('PORT', 8000, 1, 65535)}"
)
workers = env.integer("WEB_WORKERS", 2, 1, 64)
threads = env.integer("WEB_THREADS", 4, 1, 64)
worker_class = "gthread"
preload_app = True
# An upload is checked and stored within a request; everything longer is a job.
timeout = 60
graceful_timeout = 20
keepalive = 5
# Heartbeat files of the workers: on a disk that is busy they would be taken for dead.
worker_tmp_dir = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - gunicorn makes its file safely
control_socket_disable = True
proc_name = "heval"
# Who spoke to us is settled by TRUSTED_PROXIES; gunicorn itself believes no header.
forwarded_allow_ips = ""


class GunicornLogger(Logger):
    """No line is written for each request: lines would name the addresses that lead to people's answers. Where a logging
    configuration is given, gunicorn takes such a line to be wanted, and puts it together for nobody."""

    access_log_enabled = False


logger_class = GunicornLogger
logconfig_dict = logs.logging_config(env.choice("LOG_FORMAT", "plain" if _is_embedded else "json", "plain", "json"))
chdir = str(Path(__file__).resolve().parent.parent)


def post_fork(server, worker):
    """A connection opened while loading must not be shared by two processes."""
    from django.db import connections

    connections.close_all()


def post_worker_init(worker):
    """gunicorn looks each setting up in a table, dozens of times in a request; a worker's settings no longer change."""
    vars(worker.cfg).update({name: setting.get() for name, setting in worker.cfg.settings.items()})


def when_ready(server):
    """The application is loaded and the address is ours: whoever asks from now on is answered."""
    # What was loaded stays for good: the collector need not look at it, and workers go on sharing its memory. A page makes
    # some thousands of objects that end with it: looked through at each 700, they would be looked through for nothing.
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)
    if text := os.environ.get("HEVAL_ANNOUNCE"):
        # Words for who started it, on the terminal; the log goes elsewhere.
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
