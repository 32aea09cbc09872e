"""A scenario of REST sends a request, and gives the problem in its answer. Each error is shown with its row and its field."""

import json
from contextlib import contextmanager, nullcontext
from unittest import mock

from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client, RequestFactory, override_settings
from rest_framework.exceptions import ParseError
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request

from analysis.api.renderers import StrictJSONParser, exception_handler
from heval_site.middleware import bad_request
from studies.models import Study
from tests import builders
from tests.analysis.api.rest import Api, api_of, closed_study
from tests.boards.builders import rating_template
from tests.messages.lines import Shown

OUTPUT = {"system": "alpha", "prompt": "p000", "sample": 5, "text": "A text."}


def draft() -> Study:
    return builders.draft_study(owner=builders.user())


def rated() -> Study:
    """A draft with a section of ratings and the question “overall”."""
    return rating_template(builders.user())


def practised() -> Study:
    """A draft with a training section of ratings."""
    study = rated()
    study.sections.update(purpose="training")
    return study


def launched() -> Study:
    return builders.spa_study(builders.user())


def shown(answer) -> list[Shown]:
    problem = json.loads(answer.content)
    assert answer.status_code == problem["status"] >= 400
    return [Shown(problem["detail"]), *(Shown(f"{_place(error)}: {error['message']}") for error in problem["errors"])]


def _place(error) -> str:
    row = [] if error["row"] is None else [f"row {error['row']}"]
    return ", ".join([*row, *([error["field"]] if error["field"] else [])])


def refuses(method, path="", body=None, make=draft, before=None, **headers):
    """What the owner's token gets from an address of a study."""

    def scenario():
        study = make()
        api = api_of(study.owner)
        if before is not None:
            before(study)
        return shown(api.send(method, f"studies/{study.code}/{path}", body, **headers))

    return scenario


def reads(path, make=draft):
    return refuses("GET", path, make=make)


def posts(path, body, **options):
    return refuses("POST", path, body, **options)


def scores_form(file: bytes | None = None, error: Exception | None = None, **fields):
    """What a form of scores gets; ``error``: what the framework's parser raises."""

    def scenario():
        study = draft()
        api = api_of(study.owner)
        sent = fields | ({} if file is None else {"file": SimpleUploadedFile("s.csv", file)})
        address = f"/api/v1/studies/{study.code}/metrics/"
        with mock.patch.object(MultiPartParser, "parse", side_effect=error) if error else nullcontext():
            return shown(api.client.post(address, sent or {"none": ""}, headers=api.headers))

    return scenario


def imported(**settings):
    """What a form with a file of stimuli gets."""

    def scenario():
        study = draft()
        api = api_of(study.owner)
        sent = {"file": SimpleUploadedFile("s.csv", b"prompt_key\np1\n"), "settings": json.dumps(settings)}
        return shown(api.client.post(f"/api/v1/studies/{study.code}/imports/", sent, headers=api.headers))

    return scenario


def patched(**fields):
    return refuses("PATCH", "", fields)


def prompted(**fields):
    return posts("prompts/", {"key": "new", **fields})


def sends(content_type, body=b"{}"):
    def scenario():
        study = draft()
        api = api_of(study.owner)
        address = f"/api/v1/studies/{study.code}/prompts/"
        return shown(api.client.generic("POST", address, body, content_type=content_type, headers=api.headers))

    return scenario


def unknown_study():
    """Somebody asks for a study in which they have no role."""
    study = draft()
    return shown(api_of(builders.user("other")).get(f"studies/{study.code}/"))


def refused_by_site(content_type):
    """What the site says before REST reads anything."""
    return lambda: [
        Shown(Client().post("/api/v1/studies/", b"{}", content_type=content_type).json()["detail"]),
    ]


def failed(error):
    def scenario():
        answer = bad_request(RequestFactory().post("/api/v1/studies/"), error)
        return [Shown(json.loads(answer.content)["detail"])]

    return scenario


def limited():
    study = draft()
    with mock.patch("analysis.api.permissions.count_in_this_minute", return_value=10**6):
        return shown(api_of(study.owner).get(f"studies/{study.code}/"))


def by_session():
    study = draft()
    client = Client(enforce_csrf_checks=True)
    client.force_login(study.owner)
    return shown(Api(client=client).patch(f"studies/{study.code}/", {"title": "Other"}))


def too_large():
    with override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=100):
        return posts("prompts/", {"key": "a", "text": "x" * 200})()


def handled(error):
    """What REST says of an error that is hard to provoke: of the database, or of a race with another request."""

    def scenario():
        with unatomic():
            answer = exception_handler(error, {})
        return [Shown(answer.data["detail"])]

    return scenario


@contextmanager
def unatomic():
    with mock.patch.object(connection, "in_atomic_block", False):
        yield


def busy_exports():
    study = closed_study(builders.user(), 1)
    with mock.patch("analysis.data.exports._export_slots.acquire", return_value=False):
        return shown(api_of(study.owner).get(f"studies/{study.code}/exports/assignments.csv"))


def parsed(content_type):
    """The parser by itself: the site refuses other character sets before REST reads anything."""
    request = Request(RequestFactory().post("/", b"{}", content_type=content_type), parsers=[StrictJSONParser()])
    request.content_params = {"charset": content_type.partition("charset=")[2]}
    try:
        StrictJSONParser().parse(request, parser_context={"request": request})
    except ParseError as refused:
        return [Shown(str(refused.detail))]
    return []
