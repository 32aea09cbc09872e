"""The application with a fault that the comparison must see. SABOTAGE says which."""

import os
import secrets
import threading
import time

from django.db import connection

from heval_site.wsgi import application

# The models can be imported only once the application is made.
# isort: split
from annotators import fast_path
from annotators.models import Response
from annotators.pages import form_data, record
from annotators.views import pages

__all__ = ["application"]


def response_of(row: form_data.NewResponse) -> Response:
    return Response(**{name: getattr(row, name) for name in row.__slots__})


def lose() -> None:
    """Answers are acknowledged at once and written a little later, as a write-behind cache would."""
    now, waiting, lock = fast_path.update_then_insert_if_all_matched, [], threading.Lock()

    def later(updates, model, columns, rows):
        done = now(updates, model, columns, ())
        if done == len(updates):
            with lock:
                if not waiting:
                    threading.Timer(0.5, write).start()
                waiting.extend(rows)
        return done

    def write():
        with lock:
            mine, waiting[:] = list(waiting), []
        Response.objects.bulk_create(map(response_of, mine))
        # Of a thread that ends here: the pool would never have it back.
        connection.close()

    fast_path.update_then_insert_if_all_matched = later


def double() -> None:
    """A page that is sent again is stored again, as an application without a key for its answers would."""
    original = record.record_page_answers

    def again(standing, step, asks, sent):
        rows = form_data.build_new_responses(standing.assignment.pk, asks, sent)
        for row in rows:
            row.slot = f"{row.slot}~{secrets.token_hex(4)}"
        Response.objects.bulk_create(map(response_of, rows))
        return record.RecordResult(standing.next_key)

    def slow(*sent):
        outcome = original(*sent)
        time.sleep(0.1)  # between the commit and the word of it: more is killed there
        return outcome

    record._resolve_repeat = again
    pages.record_page_answers = slow


{"lost": lose, "doubled": double}[os.environ["SABOTAGE"]]()
