"""The lines of tokens, states, hidden outcomes and the site itself."""

from django.core.exceptions import PermissionDenied, RequestDataTooBig, TooManyFieldsSent
from django.db import IntegrityError, OperationalError

from heval_site.runtime.requests import IncompleteBody
from studies.models.guards import AppendOnlyViolation
from studies.services.lifecycle import NotReady
from tests.analysis.api.rest import Api
from tests.messages.rest.scenarios import (
    API,
    DATA,
    busy_exports,
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

SITE = {
    "heval_site/middleware:bad_request": [
        (
            "The request did not use the character set UTF-8",
            "Send it as UTF-8",
            refused_by_site("application/json; charset=utf-16"),
        ),
        ("had more than 5,000 fields", "Send it in parts", failed(TooManyFieldsSent())),
        ("was larger than 32 MB", "Send it in parts", failed(RequestDataTooBig())),
        ("ended before all data had arrived", "Please send it again", failed(IncompleteBody())),
    ],
}
STATES = {
    f"{API}:_answer": [
        ("The request is not valid", "Correct what “errors” lists", prompted(text=None)),
        (
            "The token is missing or not valid",
            "Send a valid token in the header: Authorization: Token <token>",
            lambda: shown(Api("heval_wrong").get("studies/")),
        ),
        (
            "This resource does not exist, or you do not have access to it",
            "Check the address, or ask its owner for access",
            unknown_study,
        ),
        ("You do not have permission", "Ask an owner of the study", handled(PermissionDenied())),
        ("The study is not ready", "Correct what “errors” lists first", handled(NotReady([]))),
        (
            "The design of a launched study cannot be changed",
            "Clone the study, or amend",
            posts("systems/", [{"name": "late"}], make=launched),
        ),
        ("This is a permanent record", "Add a new record instead", handled(AppendOnlyViolation("Response"))),
        ("stored the same data at the same time", "Send the request again", handled(IntegrityError("unique"))),
        ("Other exports are running", "Try again in 30 seconds", busy_exports),
        ("The database is not available now", "Try again in a few seconds", handled(OperationalError("away"))),
    ],
    f"{API}:dispatch": [
        ("This address does not exist", "docs/ lists them", reads("secrets/")),
    ],
    f"{DATA}:check_outcomes_visible": [
        (
            "The study is still collecting, so answers by system are hidden",
            "Close or unblind it first",
            reads("responses/", make=launched),
        ),
    ],
}
LINES = SITE | STATES
