"""The application with a fault that the comparison must see. SABOTAGE says which."""

import os
import secrets
import threading
import time

from heval_site.wsgi import application

# The models can be imported only once the application is made.
# isort: split
from annotators import record
from annotators.models import Response

__all__ = ["application"]


def lose() -> None:
    """Answers are acknowledged at once and written a little later, as a write-behind cache would."""
    now, waiting, lock = record.insert, [], threading.Lock()

    def later(model, columns, rows):
        if model is not Response:
            return now(model, columns, rows)
        with lock:
            waiting.append((columns, rows))
            if len(waiting) == 1:
                threading.Timer(0.5, write).start()

    def write():
        with lock:
            mine, waiting[:] = list(waiting), []
        for columns, rows in mine:
            now(Response, columns, rows)

    record.insert = later


def double() -> None:
    """A page that is sent again is stored again, as an application without a key for its answers would."""
    original = record.record_page

    def again(standing, step, asks, sent):
        rows = record.rows_of(standing.assignment, asks, sent)
        for row in rows:
            row.slot = f"{row.slot}~{secrets.token_hex(4)}"
        record.insert(Response, record.OF_RESPONSE, rows)
        return record.Outcome(standing.next_key)

    def slow(assignment, key, data):
        outcome = original(assignment, key, data)
        time.sleep(0.1)  # between the commit and the word of it: more is killed there
        return outcome

    from annotators import views

    record._replayed = again
    views.record_page = slow


{"lost": lose, "doubled": double}[os.environ["SABOTAGE"]]()
