"""Wake Celery's workers.

Jobs are rows in the database; a message only says "look".
A request never contacts the broker. It notifies a thread, which sends one message at a time and may wait for the broker
as long as needed. The periodic task finds jobs of lost messages within seconds.
"""

import logging
import threading
import time

from django.conf import settings

from studies import signals

logger = logging.getLogger("heval.broker")
WARNING_INTERVAL_SECONDS = 60  # at most one log line per this time while the broker is down

_wakeup_requested = threading.Event()
_start_lock = threading.Lock()
_thread: threading.Thread | None = None


def connect_worker_wakeup() -> None:
    """Let waiting jobs wake the workers, if a broker is set."""
    if settings.CELERY_BROKER_URL:
        signals.jobs_waiting.connect(wake_workers, dispatch_uid="heval_site.runtime.broker.wake_workers")


def wake_workers(**kwargs: object) -> None:
    """Request one message. Returns at once, whatever the broker does."""
    global _thread
    with _start_lock:
        # A forked process has the variable but not the thread.
        if _thread is None or not _thread.is_alive():
            _thread = threading.Thread(target=_send_for_ever, name="heval-broker", daemon=True)
            _thread.start()
    _wakeup_requested.set()


def _send_for_ever() -> None:
    warned_at = float(-WARNING_INTERVAL_SECONDS)
    while True:
        _wakeup_requested.wait()
        _wakeup_requested.clear()
        try:
            send_wakeup()
        except Exception as error:
            if time.monotonic() - warned_at >= WARNING_INTERVAL_SECONDS:
                warned_at = time.monotonic()
                logger.warning(
                    "The broker cannot be reached (%s); jobs wait for the next periodic check.", type(error).__name__
                )
            time.sleep(1)


def send_wakeup() -> None:
    """Send one message for any free worker, and one for a worker of each class. Raises if the broker cannot be reached."""
    from heval_site.celery import run_one_job_and_trigger_next, wake_workers_of_one_class

    run_one_job_and_trigger_next.apply_async(retry=False, ignore_result=True, expires=60)
    wake_workers_of_one_class()


def is_broker_reachable(timeout_seconds: float = 3) -> bool:
    from heval_site.celery import app

    try:
        with app.connection_for_write(connect_timeout=timeout_seconds) as connection:
            connection.ensure_connection(max_retries=1, timeout=timeout_seconds, interval_start=0, interval_step=0)
    except Exception:
        return False
    return True
