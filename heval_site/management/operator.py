"""The command line on the server: the client talks to the site's own application in this process, as a user of the site."""

import os
import time
from collections.abc import Callable

from heval_site.management.client import WrongUse
from heval_site.management.client.http import Connection, wsgi_transport


def connect(study: str, board: str, username: str, on_wait: Callable[[str], object]) -> tuple[Connection, str]:
    """Return a connection as the named user, or as the owner of the study or board; and the code of the study. Raise WrongUse."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "heval_site.settings")
    from heval_site.wsgi import application  # isort: skip - it sets Django up

    from django.conf import settings
    from django.contrib.auth import get_user_model

    from analysis.api.tokens import OPERATOR_KEY
    from heval_site.management.find_study import find_study
    from studies.services import jobs

    found = find_study(study) if study else None
    users = get_user_model().objects
    if username:
        user = users.filter(username=username).first()
    else:
        user = found.owner if found else users.filter(owned_boards__slug=board).first()
    if user is None and username:
        raise WrongUse(f"There is no user {username}. Correct --user.")
    if user is None:
        raise WrongUse("Nobody owns this yet. Add --user NAME, or --site ADDRESS for another site.")

    def as_operator(environ, start_response):
        environ[OPERATOR_KEY] = user
        # Behind a proxy, heval reads from this header that the connection is encrypted.
        environ["HTTP_X_FORWARDED_PROTO"] = environ["wsgi.url_scheme"]
        return application(environ, start_response)

    def sleep(seconds: float) -> None:
        """Run jobs that nobody else runs, also those whose process died, or wait for those who do."""
        if not jobs.is_runner_alive():
            jobs.requeue_or_fail_expired_jobs()
            if jobs.run_waiting_jobs():
                return
        time.sleep(seconds)

    connection = Connection(
        settings.SITE_URL, None, transport=wsgi_transport(as_operator), sleep=sleep, on_wait=on_wait
    )
    return connection, str(found.code) if found else ""
