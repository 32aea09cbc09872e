"""The lines of panels: of requests to a service, of orders, and of what a job says of them.

A panel is a table of its answers, by the beginning of a request. What it answers reaches an order, a job or the panel page.
"""

import json
from contextlib import nullcontext
from types import SimpleNamespace
from unittest import mock
from urllib.parse import urlsplit

import httpx

from annotators.models import PanelSubmission, PanelTask
from annotators.recruitment.channels.prolific.service import ProlificService, build_filters
from annotators.recruitment.channels.sona import SonaService
from annotators.recruitment.panels import (
    Order,
    PanelBusy,
    PanelService,
    RequestRefused,
    ResultUnclear,
    SubmissionSnapshot,
    http_client,
    orders,
    sync,
)
from annotators.recruitment.panels.http_client import PanelHttpClient
from tests import builders, players
from tests.annotators.recruitment.pretend import Pretend, recruitment_of
from tests.messages.lines import Shown

PANELS = "annotators/recruitment"
REFUSALS = (RequestRefused, ResultUnclear, PanelBusy, sync.PanelUnavailable)
PERSON = {"submission": "S", "task": "T", "person": "P"}
SUBMISSION = {"id": "S", "study_id": "T", "participant_id": "P", "status": "AWAITING REVIEW"}
ROW, ME = "GET /api/v1/submissions/S/", "GET /api/v1/users/me/"
STUDIES, NEW_STUDY = "GET /api/v1/studies/", "POST /api/v1/studies/"
ONE_WORKSPACE = {"GET /api/v1/workspaces/": {"results": [{"id": "W"}]}}
STUDY = {
    "title": "Rate stories", "description": "You read stories.", "url": "https://eval.example.org/e/k/", "reward": "1.60", "currency": "GBP",
    "minutes": 8, "places": 30, "name": "Stories", "lists": [],
}  # fmt: skip
AGAIN = "Look at the panel before you try again"


def answering(answers):
    """The network: each request gets the answer of the first beginning that fits it."""

    def stream(method, url, **_):
        asked = f"{method} {urlsplit(url).path}"
        answer = next(answer for start, answer in answers.items() if asked.startswith(start))
        if isinstance(answer, Exception):
            raise answer
        status, body = answer if isinstance(answer, tuple) else (200, answer)
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return nullcontext(SimpleNamespace(status_code=status, headers={}, iter_raw=lambda: [raw]))

    return mock.patch.object(httpx, "stream", stream)


def said(act):
    try:
        act()
    except REFUSALS as refused:
        return [Shown(str(refused))]
    return []


def prolific(act, answers, **settings):
    """What an act upon Prolific's service says."""

    def scenario():
        with answering(answers):
            return said(lambda: act(ProlificService("token", settings)))

    return scenario


def ordered(operation, answers, settings=None, **values):
    """What becomes of an order at Prolific."""
    given = STUDY if operation == "publish" else PERSON
    order = Order(operation, "token", given | values)
    return prolific(lambda service: service.carry_out(order), answers, **settings or {})


def lost(operation, answers, **values):
    """What heval finds at Prolific of an order whose answer was lost."""
    order = Order(operation, "token", PERSON | values)
    return prolific(lambda service: service.find_order_result(order), answers)


def filtered(thresholds, *catalogue):
    """What heval says of a link's conditions that Prolific, with this catalogue of filters, does not offer."""
    return lambda: said(lambda: build_filters(thresholds, catalogue))


def asks(answer, is_order=False):
    """What a request says that gets this answer."""

    def scenario():
        with answering({"": answer}), mock.patch.object(http_client, "MAX_ANSWER_BYTES", 1000):
            client = PanelHttpClient(
                "https://panel.example.org", ("panel.example.org",), secret="s3cret", header="Token: "
            )
            return said(lambda: client.send_json("POST", "/", {}) if is_order else client.get_json("/"))

    return scenario


def connects(origin, secret="token"):
    return lambda: said(
        lambda: PanelHttpClient(origin, ("panel.example.org",), secret=secret, header="Authorization: Token ")
    )


def credited(answer):
    """What SONA says of a credit."""

    def scenario():
        with answering({"": answer}):
            service = SonaService("school.sona-systems.com", "1", "a-credit-token")
            return said(lambda: service.carry_out(Order("approve", "token", {"submission": "7"})))

    return scenario


def sona(act):
    return lambda: said(lambda: act(SonaService("school.sona-systems.com", "1", "a-credit-token")))


def erased():
    """An order about a person whose id the panel's link does not hold any more."""
    recruitment = recruitment_of(builders.spa_study(builders.user()))
    work = players.submitted(recruitment.study, "W", recruitment=recruitment, external_ids={"session": "S1"})
    service = Pretend()
    sync.import_submissions_and_release_places(
        recruitment, [SubmissionSnapshot("T", "S1", "W", "submitted")], "service"
    )
    submission = PanelSubmission.objects.get(assignment=work)
    order = orders.get_or_create_order(recruitment, "approve", "token", by=None, submission=submission, message="")
    with mock.patch.object(orders, "submission_id_at_panel", return_value=""):
        orders.send_due_orders(recruitment, service, lambda *_: None)
    order.refresh_from_db()
    return [Shown(order.panel_message)]


class Silent(Pretend):
    def submissions(self, task):
        raise RequestRefused("The token is unknown (401)")


def synced(act):
    """What a job says of a panel that knows no token."""

    def scenario():
        recruitment = recruitment_of(builders.spa_study(builders.user()))
        PanelTask.objects.create(recruitment=recruitment, external_id="T")
        with mock.patch.object(sync, "get_panel_service", return_value=Silent()):
            return said(lambda: act(recruitment))

    return scenario


UNSET = {"POST /api/v1/submissions/bonus-payments/": {"amount": 5, "id": "B"}, ROW: SUBMISSION}
# Messages of panels' code that pages and their forms show.
FORMS = {
    f"{PANELS}:clean_secret": [
        ("The token is empty, or contains spaces", "Copy it again", connects("https://panel.example.org", "a b")),
    ],
    f"{PANELS}:__init__": [
        (
            "http://other.example.org is not an address of this panel",
            "Correct it",
            connects("http://other.example.org"),
        ),
    ],
    f"{PANELS}:_check": [("The panel answers with a redirect (302)", "Correct the address", asks((302, b"")))],
    f"{PANELS}:grant_credit": [
        (
            "SONA shows the credit as “P”, not as granted",
            "Look at the sign-up at SONA",
            credited(b"<a><Result><credit_status>P</credit_status></Result></a>"),
        ),
    ],
    f"{PANELS}:submissions": [
        (
            "SONA does not show its sign-ups to other programs",
            "Read them at SONA",
            sona(lambda service: service.submissions("T")),
        ),
    ],
    f"{PANELS}:_values_with_ids": [
        ("The panel's id of this work has been erased", "Decide at the panel itself", erased),
    ],
}
LINES = {
    f"{PANELS}:_parse_json": [("The panel's answer is not JSON", AGAIN, asks(b"<html>"))],
    f"{PANELS}:_request": [
        ("The panel's answer is too large", AGAIN, asks(b"1" * 1001, is_order=True)),
        ("The panel cannot be reached (refused)", "Try again later", asks(httpx.ConnectError("refused"))),
        ("its address is not valid", "Correct it", asks(httpx.InvalidURL("a line break"))),
        ("The connection broke before the answer arrived (ReadTimeout)", AGAIN, asks(httpx.ReadTimeout("late"))),
    ],
    f"{PANELS}:_check": [
        ("The panel receives too many requests", "Try again later", asks((429, b""))),
        ("The panel's server failed (500)", AGAIN, asks((500, b"Sorry"))),
    ],
    f"{PANELS}:rows_of_all_pages": [
        (
            "Prolific's page links form a loop",
            "Try again later",
            prolific(
                lambda service: list(service.submissions("T")),
                {"": {"results": [], "_links": {"next": {"href": "https://elsewhere.example.org/"}}}},
            ),
        ),
    ],
    f"{PANELS}:require_json_object": [
        (
            "Prolific's answer is not an object",
            "Look at Prolific",
            prolific(lambda service: service.funds(), {"": [1]}),
        ),
    ],
    f"{PANELS}:to_minor_units": [
        ("0.001 is not a positive amount of money", "Correct the amount", ordered("bonus", UNSET, amount="0.001")),
    ],
    f"{PANELS}:parse_submission": [
        (
            "Prolific shows a submission without an id",
            "Try again later",
            prolific(lambda service: list(service.submissions("T")), {"": {"results": [{"status": "APPROVED"}]}}),
        ),
    ],
    f"{PANELS}:find_workspace_id": [
        (
            "Prolific names no workspace for this project",
            "Correct the project in the link's settings",
            prolific(lambda service: service.subscribe("https://a.example.org"), {"": {}}, project="P"),
        ),
        (
            "This account has 0 workspaces",
            "Enter the project in the link's settings",
            prolific(lambda service: service.subscribe("https://a.example.org"), {"": {"results": []}}),
        ),
    ],
    f"{PANELS}:subscribe": [
        (
            "Prolific returned no secret",
            "Try again later",
            prolific(lambda service: service.subscribe("https://a.example.org"), ONE_WORKSPACE | {"": {}}),
        ),
        (
            "does not say how to confirm the subscription",
            "Try again later",
            prolific(
                lambda service: service.subscribe("https://a.example.org"),
                ONE_WORKSPACE | {"GET /api/v1/hooks/secrets/": {"results": [{"value": "V"}]}, "": {}},
            ),
        ),
        (
            "This panel sends no notifications",
            "heval asks it regularly instead",
            lambda: said(lambda: PanelService().subscribe("https://a.example.org")),
        ),
    ],
    f"{PANELS}:publish": [
        (
            "Prolific returned no id for the new study",
            "Look at Prolific before you publish again",
            ordered("publish", {ME: {"currency_code": "GBP"}, STUDIES: {}, NEW_STUDY: {}}),
        ),
    ],
    f"{PANELS}:_draft": [
        (
            "This account pays in USD, but the link uses GBP",
            "Change the currency of the link",
            ordered("publish", {ME: {"currency_code": "USD"}, STUDIES: {}}),
        ),
    ],
    f"{PANELS}:reject": [
        ("Prolific has no category “RUDE”", "Choose another", ordered("reject", {}, category="RUDE", message="No.")),
        (
            "needs a reason of at least 100 characters; this one has 3",
            "Write a longer one",
            ordered("reject", {}, category="OTHER", message="No."),
        ),
    ],
    f"{PANELS}:_transition_submission": [
        (
            "Prolific shows this submission as ACTIVE",
            "heval tries again by itself",
            ordered("approve", {ROW: SUBMISSION | {"status": "ACTIVE"}}),
        ),
        (
            "Prolific shows this submission as “HELD”",
            "Check at Prolific whether it is paid",
            ordered("approve", {ROW: SUBMISSION | {"status": "HELD"}}),
        ),
    ],
    f"{PANELS}:bonus": [
        (
            "Nothing was paid, because the bonus was not set up",
            "heval tries again by itself",
            ordered("bonus", {ROW: SUBMISSION, "POST": (500, b"")}, amount="0.50"),
        ),
        (
            "Prolific set up 5 hundredths instead of 50",
            "Look at Prolific before you order it again",
            ordered("bonus", UNSET, amount="0.50"),
        ),
        (
            "Prolific returned no id for the bonus; it was not paid",
            "Order it again",
            ordered("bonus", {ROW: SUBMISSION, "POST": {"amount": 50}}, amount="0.50"),
        ),
    ],
    f"{PANELS}:_get_or_create_group": [
        (
            "Prolific returned no id for the new group",
            "Look at your groups at Prolific",
            ordered("bar", ONE_WORKSPACE | {"GET": {"results": []}, "POST": {}}, people=["P"], list="ours"),
        ),
    ],
    f"{PANELS}:_find_decision_result": [
        (
            "Prolific is still processing this submission",
            "Look at it at Prolific later",
            lost("approve", {ROW: SUBMISSION | {"status": "PROCESSING"}}),
        ),
    ],
    f"{PANELS}:_find_screen_out_result": [
        (
            "does not show this submission as screened out yet",
            "Look at it at Prolific later",
            lost("screen_out", {ROW: SUBMISSION}, amount="0.50"),
        ),
    ],
    f"{PANELS}:_find_bonus_result": [
        (
            "Paid so far on this submission: 0.50",
            "Look at Prolific before you pay again",
            lost("bonus", {ROW: SUBMISSION | {"bonus_payments": [50]}}),
        ),
    ],
    f"{PANELS}:_checked_submission": [
        (
            "Prolific shows no such submission in this study",
            "Look for it at Prolific",
            ordered("approve", {ROW: (404, b"")}),
        ),
        (
            "At Prolific this submission belongs to another person",
            "Look at it there",
            ordered("approve", {ROW: SUBMISSION | {"participant_id": "Q"}}),
        ),
    ],
    f"{PANELS}:carry_out": [
        (
            "This panel does not support “stop”",
            "Do it at the panel itself",
            sona(lambda service: service.carry_out(Order("stop", "token"))),
        ),
    ],
    f"{PANELS}:find_order_result": [
        (
            "This panel cannot say whether the order was carried out",
            "Check at the panel",
            sona(lambda service: service.find_order_result(Order("stop", "token"))),
        ),
    ],
    f"{PANELS}:grant_credit": [
        ("contains neither a result nor an error", "Look at the sign-up at SONA", credited(b"<a/>")),
    ],
    f"{PANELS}:refuse": [
        ("declares a document type", "Look at the sign-up at SONA", credited(b"<!DOCTYPE a [<!ENTITY b 'c'>]><a/>")),
    ],
    f"{PANELS}:parse_xml_texts": [("SONA's answer is not XML", "Look at the sign-up at SONA", credited(b"Hello"))],
    f"{PANELS}:build_filters": [
        (
            "Prolific offers no filter “approval rate",
            "Remove it from the link's settings",
            filtered({"min_approval_rate": 95}),
        ),
        (
            "Prolific does not know “Elvish”",
            "Write it in the link's settings as Prolific does",
            filtered({"languages": ["Elvish"]}, {"filter_id": "fluent-languages", "choices": {"1": "Dutch"}}),
        ),
    ],
    f"{PANELS}:send_orders_and_sync_panel": [
        (
            "The panel did not show its submissions",
            "Check the token and the link's settings",
            synced(lambda recruitment: sync.send_orders_and_sync_panel(recruitment, lambda *_: None)),
        ),
    ],
    f"{PANELS}:subscribe_to_webhooks": [
        (
            "The panel does not send notifications",
            "Check the token and the link's settings",
            synced(lambda recruitment: sync.subscribe_to_webhooks(recruitment, by=None)),
        ),
    ],
}
