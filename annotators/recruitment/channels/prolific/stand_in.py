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
import re
import threading
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from typing import Any
from urllib.parse import parse_qs, urlsplit

from annotators.models.constants import UNKNOWN
from annotators.recruitment.panels.stand_in import AcceptedTask, StandIn

from .client import COMPLETE_URL, PARAMETERS, STATES

# Answers of the stand-in for Prolific's service: paths, bodies, states and errors, kept in memory.


def now_iso() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


class ApiError(Exception):
    def __init__(self, status: int, detail, title="Bad request"):
        self.status, self.detail, self.title = status, detail, title


class StandInApi:
    def __init__(self):
        self.studies, self.submissions, self.groups, self.bulks = {}, {}, {}, {}
        self.group_names: dict[str, str] = {}
        self.workspaces, self.hook_secrets, self.subscriptions = ["5d0c" * 6], {}, {}
        self.currency, self.balance, self.largest_page = "GBP", 100_000, 100
        self._numbers = count(1)

    def new_id(self) -> str:
        return f"{next(self._numbers):024x}"

    def route_request(self, method: str, path: str, query: dict, body: dict):
        for pattern, act in ROUTES:
            verb, _, shape = pattern.partition(" ")
            if verb == method and (match := re.fullmatch(shape.replace("*", "([^/]+)"), path)):
                return act(self, *match.groups(), body=body, query=query)
        raise ApiError(404, "Not found.", "Not found")

    def get_account(self, *, body, query):
        return {
            "id": "r",
            "name": "Ada",
            "email": "ada@example.org",
            "currency_code": self.currency,
            "available_balance": self.balance,
        }

    def paginate(self, rows: list, query: dict, path: str):
        number, size = int(query.get("page", 1)), min(int(query.get("page_size", 20)), self.largest_page)
        if number > 1 and (number - 1) * size >= len(rows):
            raise ApiError(404, "Invalid page.", "Not found")
        query_text = "&".join(f"{name}={value}" for name, value in (query | {"page": number + 1}).items())
        href = f"https://api.prolific.com/api/v1{path}?{query_text}" if number * size < len(rows) else None
        return {
            "results": rows[(number - 1) * size : number * size],
            "_links": {"next": {"href": href}},
            "meta": {"count": len(rows)},
        }

    def list_studies(self, *, body, query):
        return self.paginate(list(self.studies.values()), query, "/studies/")

    def create_study(self, *, body, query):
        needed = {
            "name",
            "description",
            "external_study_url",
            "reward",
            "total_available_places",
            "estimated_completion_time",
        }
        if missing := needed - set(body):
            raise ApiError(400, {name: ["This field is required."] for name in sorted(missing)})
        if not body["external_study_url"].startswith("https://"):
            raise ApiError(400, {"external_study_url": ["Enter a valid URL."]})
        record = body | {"id": self.new_id(), "status": "UNPUBLISHED"}
        self.studies[record["id"]] = record
        return record

    def get_or_404(self, rows: dict, key: str):
        if key not in rows:
            raise ApiError(404, "Not found.", "Not found")
        return rows[key]

    def get_study(self, study, *, body, query):
        return self.get_or_404(self.studies, study)

    def change_study(self, study, *, body, query):
        record = self.get_or_404(self.studies, study)
        if set(body) - {"internal_name", "total_available_places"}:
            raise ApiError(400, "This study is published: only places can change.")
        if body["total_available_places"] < record["total_available_places"]:
            raise ApiError(400, {"total_available_places": ["The number of places can only be increased."]})
        record |= body
        return record

    def get_study_cost(self, study, *, body, query):
        """Return the cost so far: approved rewards and paid bonuses, one third of these as the fee, and one fifth of
        the fee as tax.
        """
        record = self.get_or_404(self.studies, study)
        submissions = [submission for submission in self.submissions.values() if submission["study_id"] == study]
        approved = sum(submission["status"] == "APPROVED" for submission in submissions)
        bonuses = sum(amount for submission in submissions for amount in submission["bonus_payments"])
        sums = {"rewards": approved * record["reward"], "bonuses": bonuses}
        return {name: self.charged_amounts(amount) if amount else None for name, amount in sums.items()}

    def charged_amounts(self, amount: int) -> dict:
        parts = {"rewards": amount, "fees": amount // 3, "tax": amount // 15}
        return {name: {"amount": part, "currency": self.currency} for name, part in parts.items()}

    def transition_study(self, study, *, body, query):
        record = self.get_or_404(self.studies, study)
        allowed = {
            "PUBLISH": ("UNPUBLISHED", "ACTIVE"),
            "STOP": ("ACTIVE", "AWAITING REVIEW"),
            "PAUSE": ("ACTIVE", "PAUSED"),
            "START": ("PAUSED", "ACTIVE"),
        }
        before, after = allowed[body["action"]]
        if record["status"] != before:
            raise ApiError(400, f"The study is {record['status']}.")
        if body["action"] == "PUBLISH" and record["reward"] * record["total_available_places"] > self.balance:
            raise ApiError(400, "Your balance is too low.")
        record["status"] = after
        return record

    def list_submissions(self, *, body, query):
        rows = [
            {
                "id": submission["id"],
                "participant_id": submission["participant"],
                "started_at": submission["started_at"],
                "completed_at": submission["completed_at"],
                "status": submission["status"],
                "study_code": submission["entered_code"],
            }
            for submission in self.submissions.values()
            if submission["study_id"] == query["study"]
        ]
        return self.paginate(rows, query, "/submissions/")

    def get_submission(self, submission, *, body, query):
        return self.get_or_404(self.submissions, submission)

    def transition_submission(self, submission, *, body, query):
        record = self.get_or_404(self.submissions, submission)
        if body["action"] == "REJECT" and (len(body.get("message", "")) < 100 or "rejection_category" not in body):
            raise ApiError(400, {"message": ["Ensure this field has at least 100 characters."]})
        after = {"APPROVE": "APPROVED", "REJECT": "REJECTED"}[body["action"]]
        if record["status"] not in ("AWAITING REVIEW", after):
            raise ApiError(400, f"Submission is {record['status']}")
        record["status"] = after
        return record

    def request_return(self, submission, *, body, query):
        record = self.get_or_404(self.submissions, submission)
        if not body["request_return_reasons"]:
            raise ApiError(400, {"request_return_reasons": ["This field is required."]})
        record["return_requested"] = now_iso()
        return record

    def screen_out(self, study, *, body, query):
        for submission in body["submission_ids"]:
            record = self.get_or_404(self.submissions, submission)
            if record["status"] != "AWAITING REVIEW":
                raise ApiError(400, f"Submission is {record['status']}")
            record["status"] = "SCREENED OUT"
            if body.get("bonus_per_submission"):
                record["bonus_payments"].append(round(body["bonus_per_submission"] * 100))
        return {"message": "The request to bulk screen out has been made successfully."}

    def set_up_bonuses(self, *, body, query):
        payments = []
        for line in body["csv_bonuses"].strip().splitlines():
            person, amount = line.split(",")
            record = next(
                (
                    submission
                    for submission in self.submissions.values()
                    if person in (submission["id"], submission["participant"])
                    and submission["study_id"] == body["study_id"]
                ),
                None,
            )
            if record is None or record["status"] in ("ACTIVE", "RETURNED"):
                raise ApiError(400, f"These ids have not taken part: {person}")
            payments.append((record["id"], round(float(amount) * 100)))
        bulk = self.new_id()
        self.bulks[bulk] = payments
        total = sum(amount for _, amount in payments)
        return {"id": bulk, "amount": total, "fees": total // 3, "vat": 0, "total_amount": total + total // 3}

    def pay_bonuses(self, bulk, *, body, query):
        for submission, amount in self.get_or_404(
            self.bulks, bulk
        ):  # a repeated request pays again, as at the real panel
            self.submissions[submission]["bonus_payments"].append(amount)
        return {}

    def list_group_members(self, group, *, body, query):
        return {
            "results": [
                {"participant_id": person, "datetime_created": now_iso()}
                for person in self.get_or_404(self.groups, group)
            ]
        }

    def _check_workspace(self, fields) -> None:
        if fields.get("workspace_id") not in self.workspaces:
            raise ApiError(404, "There is no such workspace.", "Not found")

    def list_groups(self, *, body, query):
        self._check_workspace(query)
        return self.paginate(
            [{"id": group, "name": name} for group, name in self.group_names.items()], query, "/participant-groups/"
        )

    def create_group(self, *, body, query):
        self._check_workspace(body)
        group = self.new_id()  # two groups may have the same name
        self.groups[group], self.group_names[group] = [], body["name"]
        return {"id": group, "name": body["name"]}

    def add_group_members(self, group, *, body, query):
        members = self.get_or_404(self.groups, group)
        if unknown_ids := [person for person in body["participant_ids"] if len(person) != 24]:
            raise ApiError(400, f"{unknown_ids[0]} is no participant.")
        members += [person for person in body["participant_ids"] if person not in members]
        return {"results": [{"participant_id": person} for person in members]}

    def list_filters(self, *, body, query):
        countries = {"0": "United Kingdom", "1": "United States", "2": "Ireland"}
        return {
            "results": [
                {"filter_id": "approval_rate", "type": "range"},
                {"filter_id": "approval_numbers", "type": "range"},
                {"filter_id": "current-country-of-residence", "type": "select", "choices": countries},
                {"filter_id": "fluent-languages", "type": "select", "choices": {"19": "English", "20": "Dutch"}},
            ]
        }

    def list_workspaces(self, *, body, query):
        return {"results": [{"id": workspace, "title": "Ours"} for workspace in self.workspaces]}

    def list_secrets(self, *, body, query):
        return {"results": [row for row in self.hook_secrets.values() if row["workspace_id"] == query["workspace_id"]]}

    def create_secret(self, *, body, query):
        self._check_workspace(body)
        # Only one secret per workspace is in force.
        self.hook_secrets[body["workspace_id"]] = secret = {
            "id": self.new_id(),
            "value": f"whsec_{self.new_id()}",
            "workspace_id": body["workspace_id"],
        }
        return secret

    def list_subscriptions(self, *, body, query):
        rows = [row for row in self.subscriptions.values() if row["workspace_id"] == query["workspace_id"]]
        return {"results": [{name: value for name, value in row.items() if name != "confirms"} for row in rows]}

    def subscribe(self, *, body, query):
        if not body["target_url"].startswith("https://"):
            raise ApiError(400, {"target_url": ["It must be https."]})
        if body["workspace_id"] not in self.hook_secrets:
            raise ApiError(400, "The workspace has no secret.")
        subscription = body | {"id": self.new_id(), "is_enabled": False, "confirms": self.new_id()}
        self.subscriptions[subscription["id"]] = subscription
        return {name: value for name, value in subscription.items() if name != "confirms"}

    def confirm_subscription(self, subscription, *, body, query):
        record = self.get_or_404(self.subscriptions, subscription)
        if body["secret"] != record["confirms"]:
            raise ApiError(400, "Wrong secret.")
        record["is_enabled"] = True
        return {}


# Maps each request to the method that answers it; * matches an id.
ROUTES = (
    ("GET /users/me/", StandInApi.get_account),
    ("GET /filters/", StandInApi.list_filters),
    ("GET /studies/", StandInApi.list_studies),
    ("POST /studies/", StandInApi.create_study),
    ("GET /studies/*/", StandInApi.get_study),
    ("PATCH /studies/*/", StandInApi.change_study),
    ("GET /studies/*/cost/", StandInApi.get_study_cost),
    ("POST /studies/*/transition/", StandInApi.transition_study),
    ("POST /studies/*/screen-out-submissions/", StandInApi.screen_out),
    ("GET /submissions/", StandInApi.list_submissions),
    ("POST /submissions/bonus-payments/", StandInApi.set_up_bonuses),
    ("GET /submissions/*/", StandInApi.get_submission),
    ("POST /submissions/*/transition/", StandInApi.transition_submission),
    ("POST /submissions/*/request-return/", StandInApi.request_return),
    ("POST /bulk-bonus-payments/*/pay/", StandInApi.pay_bonuses),
    ("GET /participant-groups/*/participants/", StandInApi.list_group_members),
    ("POST /participant-groups/*/participants/", StandInApi.add_group_members),
    ("GET /participant-groups/", StandInApi.list_groups),
    ("POST /participant-groups/", StandInApi.create_group),
    ("GET /workspaces/", StandInApi.list_workspaces),
    ("GET /hooks/secrets/", StandInApi.list_secrets),
    ("POST /hooks/secrets/", StandInApi.create_secret),
    ("GET /hooks/subscriptions/", StandInApi.list_subscriptions),
    ("POST /hooks/subscriptions/", StandInApi.subscribe),
    ("POST /hooks/subscriptions/*/", StandInApi.confirm_subscription),
)


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
