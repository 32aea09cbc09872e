"""A stand-in for Prolific's service on this machine: its paths, bodies, states, errors and simulated faults.

with ProlificStandIn() as panel:
    task = panel.add_study(); panel.add_submission(task, person); panel.faults.append(("POST /studies/", "drop after"))

A fault applies once, to the next request that begins as the fault says: "drop before" and "drop after" the effect,
"429", "500".
"""

import base64
import contextlib
import hashlib
import hmac
import json
import threading
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, urlsplit

from annotators.models.constants import UNKNOWN
from annotators.recruitment.panels.stand_in import AcceptedTask, StandIn

from .stand_in_api import ApiError, StandInApi, now_iso
from .vocabulary import COMPLETE_URL, PARAMETERS, STATES

TOKEN = "a-token-of-nobody-0123456789"  # noqa: S105 - the token of a simulated panel


class ProlificStandIn(StandInApi, StandIn):
    secrets = {"token": TOKEN}
    shows_leavers = True

    def __init__(self):
        super().__init__()
        self.calls: list[tuple[str, dict]] = []
        self.faults: list[tuple[str, str]] = []
        self._lock = threading.Lock()

    # The person's side

    def add_study(self, **columns) -> str:
        record: dict[str, Any] = {
            "id": self.new_id(),
            "status": "ACTIVE",
            "internal_name": "",
            "total_available_places": 10,
            "reward": 160,
        } | columns
        self.studies[record["id"]] = record
        return record["id"]

    def add_submission(self, study: str, person: str, status="ACTIVE") -> str:
        record = {
            "id": self.new_id(), "study_id": study, "participant": person, "status": status, "entered_code": None, "completed_at": None,
            "started_at": now_iso(), "bonus_payments": [], "return_requested": None,
        }  # fmt: skip
        self.submissions[record["id"]] = record
        return record["id"]

    def submit_work(self, submission: str, code: str) -> None:
        self.submissions[submission] |= {
            "status": "AWAITING REVIEW",
            "entered_code": code,
            "completed_at": now_iso(),
        }

    # The person's side, as a rehearsal uses it

    def open_account(self, currency):
        self.currency, self.balance = currency, 10**9

    def nth_person_id(self, number):
        return f"{number + 0x5F1A00:024x}"

    def _newest_study(self) -> dict:
        return next(study for study in reversed(self.studies.values()) if study["status"] == "ACTIVE")

    def preview_url(self):
        return self._newest_study()["external_study_url"]

    def accept_task(self, person):
        task = self._newest_study()
        session = self.add_submission(task["id"], person)
        address = task["external_study_url"]
        for name, value in {"person": person, "task": task["id"], "session": session}.items():
            address = address.replace("{{%" + PARAMETERS[name] + "%}}", value)
        return AcceptedTask(person, session, address)

    def use_way_back(self, visit, way_back):
        submission = self.submissions[visit.session]
        if not way_back.url.startswith(COMPLETE_URL):
            return "The way back carries no code. At Prolific the person can only return the study, or be paid by hand."
        entered = way_back.url.removeprefix(COMPLETE_URL)
        codes = {code["code"]: code for code in self.studies[submission["study_id"]].get("completion_codes", [])}
        if entered not in codes:
            return f"Prolific does not know the code {entered}: the study there was published with {', '.join(codes) or 'none'}."
        self.submit_work(visit.session, entered)
        action = codes[entered]["actions"][0]
        if action["action"] == "AUTOMATICALLY_APPROVE":
            submission["status"] = "APPROVED"
        elif action["action"] == "FIXED_SCREEN_OUT_PAYMENT":
            submission["status"] = "SCREENED OUT"
            submission["bonus_payments"].append(action["fixed_screen_out_reward"])
        return ""

    def return_task(self, visit):
        self.submissions[visit.session]["status"] = "RETURNED"

    def expire_task(self, visit):
        self.submissions[visit.session]["status"] = "TIMED-OUT"

    def submission_state(self, visit):
        return STATES.get(self.submissions[visit.session]["status"].replace("-", " "), UNKNOWN)

    def paid_bonus_total(self, visit):
        return Decimal(sum(self.submissions[visit.session]["bonus_payments"])) / 100

    def count_open_tasks(self):
        return sum(study["status"] == "ACTIVE" for study in self.studies.values())

    def lose_next_reply(self, operation):
        self.faults.append((REQUEST_PREFIXES[operation], "drop after"))

    def throttle_next(self, operation):
        self.faults.append((REQUEST_PREFIXES[operation], "429"))

    def signed_notification(self, submission: str, event: str, secret: str) -> dict:
        """Return the body and headers of a notification about this submission."""
        record = self.submissions[submission]
        body = {
            "resource_id": submission,
            "event_type": "submission.status.change",
            "participant_id": record["participant"],
            "status": record["status"],
        }
        raw = json.dumps(body).encode()
        digest = hmac.new(secret.encode(), b"1795229881" + raw, hashlib.sha256).digest()
        headers = {
            "X-Prolific-Request-Signature": base64.b64encode(digest).decode(),
            "X-Prolific-Request-Timestamp": "1795229881",
            "X-Event-ID": event,
        }
        return {"data": raw, "content_type": "application/json", "headers": headers}

    def get_or_create_group_id(self, name: str) -> str:
        """Return the id of the group of this name; create it if needed."""
        group = next((key for key, known_name in self.group_names.items() if known_name == name), None) or self.new_id()
        self.groups.setdefault(group, [])
        self.group_names[group] = name
        return group

    # HTTP

    def respond(self, method: str, target: str, raw: bytes, token: str):
        """Return (status, headers, body), or None if the connection breaks."""
        parts = urlsplit(target)
        path = parts.path.removeprefix("/api/v1")
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        body = json.loads(raw) if raw else {}
        fault = next((candidate for candidate in self.faults if f"{method} {path}".startswith(candidate[0])), None)
        if fault:
            self.faults.remove(fault)
        self.calls.append((f"{method} {path}", body))
        kind = fault[1] if fault else ""
        if kind == "drop before":
            return None
        if kind == "429":
            return 429, {"Retry-After": "7"}, b'{"error": {"title": "Throttled", "detail": "Request was throttled."}}'
        if kind == "500":
            return 500, {}, b"<html><h1>Server Error (500)</h1></html>"
        if token != f"Token {TOKEN}":
            return (
                401,
                {},
                json.dumps({"error": {"title": "Authentication", "detail": f"Not a token: {token}"}}).encode(),
            )
        try:
            with self._lock:
                answer = self.route_request(method, path, query, body)
        except ApiError as refusal:
            error_body = {
                "error": {"status": refusal.status, "title": refusal.title, "error_code": 1, "detail": refusal.detail}
            }
            return refusal.status, {}, json.dumps(error_body).encode()
        headers = (
            {"X-Hook-Secret": self.subscriptions[answer["id"]]["confirms"]}
            if (method, path) == ("POST", "/hooks/subscriptions/")
            else {}
        )
        return (
            None if kind == "drop after" else (201 if method == "POST" else 200, headers, json.dumps(answer).encode())
        )

    def handle(self, handler):
        raw = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        handled = self.respond(handler.command, handler.path, raw, handler.headers.get("Authorization", ""))
        if handled is None:
            handler.close_connection = True
            return
        status, headers, answer = handled
        handler.send_response(status)
        response_headers = {"Content-Type": "application/json", "Content-Length": str(len(answer))} | headers
        for name, value in response_headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        with contextlib.suppress(OSError):
            handler.wfile.write(answer)


# The beginning of the request for an order or a check.
REQUEST_PREFIXES = {
    "publish": "POST /studies/",
    "look": "GET /submissions/",
    "approve": "POST /submissions/",
    "bonus": "POST /submissions/bonus-payments/",
}
