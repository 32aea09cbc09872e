"""The lines of tokens, states, hidden outcomes and the site itself."""

from django.core.exceptions import PermissionDenied, RequestDataTooBig, TooManyFieldsSent
from django.db import IntegrityError, OperationalError
from django.utils import timezone

from heval_site.runtime.requests import IncompleteBody
from studies.models import Job
from studies.models.guards import AppendOnlyViolation
from studies.services.lifecycle import NotReady
from tests.analysis.api.rest import Api, api_of
from tests.messages.lines import only_informs
from tests.messages.rest.scenarios import (
    busy_exports,
    draft,
    failed,
    handled,
    launched,
    posts,
    prompted,
    reads,
    refused_by_site,
    shown,
    unknown_study,
)


def ended_job():
    study = draft()
    job = Job.objects.create(kind="import", study=study, state=Job.State.DONE, ended_at=timezone.now())
    api = api_of(study.owner)
    return shown(api.client.post(f"/api/v1/studies/{study.code}/jobs/{job.code}/cancel/", headers=api.headers))


REST = {
    "The study has no analysis": posts("report-links/", {"analysis": 9}, make=launched),
    "The request did": refused_by_site("application/json; charset=utf-16"),
    "The request had more than … fields": failed(TooManyFieldsSent()),
    "The request was larger": failed(RequestDataTooBig()),
    "The connection ended": failed(IncompleteBody()),
    "The request is not valid": prompted(text=None),
    "The token is missing": lambda: shown(Api("heval_wrong").get("studies/")),
    "This resource does not exist": unknown_study,
    "You do not have permission": handled(PermissionDenied()),
    "The study is not ready": handled(NotReady([])),
    "The design of a launched": posts("systems/", [{"name": "late"}], make=launched),
    "This is a permanent": handled(AppendOnlyViolation("Response")),
    "Another request stored": handled(IntegrityError("unique")),
    "Other exports are running": busy_exports,
    "The database is not available": handled(OperationalError("away")),
    "This address does": reads("secrets/"),
    "The job has already ended": only_informs(ended_job),
    "The study is still": reads("responses/", make=launched),
}
