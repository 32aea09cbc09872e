"""A client of the REST interface for tests, and studies worth reading over it."""

import json
from contextlib import contextmanager

from django.db import connection
from django.test import Client

from analysis.api.tokens import create_token
from analysis.models import AnalysisRun, Figure, StudiesComparison
from studies.models import Study
from studies.services import lifecycle
from tests.builders import spa_study
from tests.players import submitted


class Api:
    """A client that sends one token, or none."""

    def __init__(self, token=None, client=None):
        self.client = client or Client()
        self.headers = {"Authorization": f"Token {token}"} if token else {}

    def send(self, method, path, body=None, **headers):
        sent = {} if body is None else {"data": body if isinstance(body, bytes) else json.dumps(body)}
        address = path if path.startswith("/") else f"/api/v1/{path}"
        answer = self.client.generic(
            method, address, content_type="application/json", headers=self.headers | headers, **sent
        )
        # Read at once, as a server would send it: a stream that nobody reads holds its place.
        answer.body = b"".join(answer.streaming_content) if answer.streaming else answer.content
        return answer

    def get(self, path, **headers):
        return self.send("GET", path, **headers)

    def post(self, path, body, **headers):
        return self.send("POST", path, body, **headers)

    def patch(self, path, body):
        return self.send("PATCH", path, body)


def api_of(who, *, scope="people", study=None, **options) -> Api:
    return Api(create_token(who, "test", scope=scope, study=study, **options)[1])


def body_of(answer) -> bytes:
    return answer.body


def close(study):
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)


def closed_study(owner, people=2, **options) -> Study:
    study = spa_study(owner, **options)
    for n in range(people):
        submitted(study, f"person {n}", comment="fine")
    close(study)
    return Study.objects.get(pk=study.pk)


def analysis_of(study, **parameters) -> AnalysisRun:
    run = AnalysisRun.objects.create(
        study=study,
        number=study.analyses.count() + 1,
        parameters=parameters,
        responses_n=1,
        responses_sha256="0" * 64,
        design_sha256s=[],
        code_version="1",
        seed="1",
        result={"estimate": 0.5, "outcomes": {"is_hidden": False, "reason": ""}, "conclusions": []},
        result_sha256="1" * 64,
    )
    Figure.objects.create(run=run, name="forest", svg="<svg/>", pdf=b"%PDF")
    return run


def comparison_of(*studies) -> StudiesComparison:
    return StudiesComparison.objects.create(
        study=studies[0],
        number=1,
        parameters={"studies": [str(study.code) for study in studies]},
        result={"sentences": []},
        result_sha256="1" * 64,
        figure_svg="<svg/>",
        figure_pdf=b"%PDF",
    )


@contextmanager
def unguarded():
    """A cursor that PostgreSQL's triggers let through, as a damaged backup or a careless administrator would be."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL session_replication_role = replica")
        yield cursor
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL session_replication_role = origin")
