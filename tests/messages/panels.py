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
from tests.messages.lines import Shown, only_informs

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
    "The token is empty": connects("https://panel.example.org", "a b"),
    "is not an address of this panel": connects("http://other.example.org"),
    "The panel answers": asks((302, b"")),
    "SONA shows the credit": credited(b"<a><Result><credit_status>P</credit_status></Result></a>"),
    "SONA does not show": sona(lambda service: service.submissions("T")),
    "The panel's id": erased,
}
PANELS = {
    "The panel's answer is not JSON": asks(b"<html>"),
    "The panel's answer is too": asks(b"1" * 1001, is_order=True),
    "The panel cannot be reached": asks(httpx.ConnectError("refused")),
    "The panel cannot be asked": asks(httpx.InvalidURL("a line break")),
    "The connection broke": asks(httpx.ReadTimeout("late")),
    "The panel receives": asks((429, b"")),
    "The panel's server": asks((500, b"Sorry")),
    "Prolific's page links": prolific(
        lambda service: list(service.submissions("T")),
        {"": {"results": [], "_links": {"next": {"href": "https://elsewhere.example.org/"}}}},
    ),
    "Prolific's answer is not an object": prolific(lambda service: service.funds(), {"": [1]}),
    "is not a positive": ordered("bonus", UNSET, amount="0.001"),
    "Prolific shows a submission": prolific(
        lambda service: list(service.submissions("T")), {"": {"results": [{"status": "APPROVED"}]}}
    ),
    "Prolific names no workspace": prolific(
        lambda service: service.subscribe("https://a.example.org"), {"": {}}, project="P"
    ),
    "This account has … workspaces": prolific(
        lambda service: service.subscribe("https://a.example.org"), {"": {"results": []}}
    ),
    "Prolific returned no secret": prolific(
        lambda service: service.subscribe("https://a.example.org"), ONE_WORKSPACE | {"": {}}
    ),
    "Prolific's answer does": prolific(
        lambda service: service.subscribe("https://a.example.org"),
        ONE_WORKSPACE | {"GET /api/v1/hooks/secrets/": {"results": [{"value": "V"}]}, "": {}},
    ),
    "This panel sends": only_informs(lambda: said(lambda: PanelService().subscribe("https://a.example.org"))),
    "Prolific returned no id for the new study": ordered(
        "publish", {ME: {"currency_code": "GBP"}, STUDIES: {}, NEW_STUDY: {}}
    ),
    "This account pays": ordered("publish", {ME: {"currency_code": "USD"}, STUDIES: {}}),
    "Prolific has no category": ordered("reject", {}, category="RUDE", message="No."),
    "Prolific needs a reason": ordered("reject", {}, category="OTHER", message="No."),
    "Prolific shows this submission as …. heval": ordered("approve", {ROW: SUBMISSION | {"status": "ACTIVE"}}),
    "Prolific shows this submission as “…”. Check": ordered("approve", {ROW: SUBMISSION | {"status": "HELD"}}),
    "Nothing was paid": ordered("bonus", {ROW: SUBMISSION, "POST": (500, b"")}, amount="0.50"),
    "Prolific set up": ordered("bonus", UNSET, amount="0.50"),
    "Prolific returned no id for the bonus": ordered("bonus", {ROW: SUBMISSION, "POST": {"amount": 50}}, amount="0.50"),
    "Prolific returned no id for the new group": ordered(
        "bar", ONE_WORKSPACE | {"GET": {"results": []}, "POST": {}}, people=["P"], list="ours"
    ),
    "Prolific is still": lost("approve", {ROW: SUBMISSION | {"status": "PROCESSING"}}),
    "Prolific does not show": lost("screen_out", {ROW: SUBMISSION}, amount="0.50"),
    "Prolific pays bonuses": lost("bonus", {ROW: SUBMISSION | {"bonus_payments": [50]}}),
    "Prolific shows no such": ordered("approve", {ROW: (404, b"")}),
    "At Prolific this submission": ordered("approve", {ROW: SUBMISSION | {"participant_id": "Q"}}),
    "This panel does": sona(lambda service: service.carry_out(Order("stop", "token"))),
    "This panel cannot say": sona(lambda service: service.find_order_result(Order("stop", "token"))),
    "SONA's answer contains": credited(b"<a/>"),
    "SONA's answer declares": credited(b"<!DOCTYPE a [<!ENTITY b 'c'>]><a/>"),
    "SONA's answer is not XML": credited(b"Hello"),
    "Prolific offers no filter": filtered({"min_approval_rate": 95}),
    "Prolific does not know": filtered(
        {"languages": ["Elvish"]}, {"filter_id": "fluent-languages", "choices": {"1": "Dutch"}}
    ),
    "The panel did": synced(lambda recruitment: sync.send_orders_and_sync_panel(recruitment, lambda *_: None)),
    "The panel does": synced(lambda recruitment: sync.subscribe_to_webhooks(recruitment, by=None)),
}
