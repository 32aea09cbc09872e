"""The client of heval in this process: its requests go to Django's test client instead of a network."""

from datetime import timedelta

import httpx
from django.core.cache import cache
from django.db.models import F, QuerySet
from django.test import Client

from analysis.api.tokens import create_token
from annotators.pages.record import full_page_state
from heval_site.management.client import Site
from heval_site.management.client.http import Connection
from studies.models import Exposure, Study
from studies.services import jobs
from tests.players import answered, claimed, open_page

# What the texts for annotators say about the researchers.
FACTS = {
    "institution": "University of Graz",
    "responsible": "Ada Lovelace",
    "contact": "study@example.org",
    "ethics_contact": "ethics@example.org",
    "storage": "on a server in Graz",
    "retention": "for ten years",
}


def through_django(request: httpx.Request) -> httpx.Response:
    headers = {name: value for name, value in request.headers.items() if name not in ("host", "content-length")}
    content_type = headers.pop("content-type", "application/octet-stream")
    answer = Client().generic(
        request.method, request.url.raw_path.decode(), request.read(), content_type=content_type, headers=headers
    )
    return httpx.Response(answer.status_code, headers=dict(answer.headers), content=answer.getvalue())


def run_jobs(seconds: float) -> None:
    """What happens while the client waits."""
    jobs.run_waiting_jobs()


def site_of(who, *, sleep=run_jobs, send=through_django) -> Site:
    """A site for which ``who`` has a token."""
    token = create_token(who, "test", scope="write")[1]
    return Site(
        "http://localhost",
        connection=Connection("http://localhost", token, transport=httpx.MockTransport(send), sleep=sleep),
    )


def person_choosing(study, n, system, recruitment=None) -> None:
    """A person who takes a place, chooses this system on each page of two choices, and answers the other pages plausibly."""
    assignment = claimed(study, f"person {n}", recruitment)
    while (key := full_page_state(assignment).next_key) is not None:
        _, _, asks = open_page(assignment, key)
        shown = [
            (slot, *one) for slot, ask in asks.items() if ask.field.kind == "exposure" for one in ask.field.exposures
        ]
        wanted = Exposure.objects.filter(pk__in=[pk for _, _, pk in shown], output__system__name=system)
        chosen_pks = set(wanted.values_list("pk", flat=True))
        chosen = {slot: label for slot, label, pk in shown if pk in chosen_pks}
        answered(assignment, key, **chosen)
        assignment.refresh_from_db()


def the_world_goes_on(seconds: float) -> None:
    """What happens while a program waits: jobs run, people answer, and the minute after a closing passes."""
    cache.clear()
    if jobs.run_waiting_jobs():
        return
    minute = timedelta(seconds=61)
    for study in Study.objects.filter(state__in=("launched", "closing")):
        if study.state == "closing":
            QuerySet(Study).filter(pk=study.pk).update(
                launched_at=F("launched_at") - minute, closing_at=F("closing_at") - minute
            )
            jobs.run_due_functions_and_record_heartbeat()
        elif not study.assignments.exists():
            for n in range(study.target_n):
                person_choosing(study, n, "new")
