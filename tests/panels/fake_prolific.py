"""A stand-in for Prolific's service on this machine: its paths, bodies, states and errors, and what may go wrong on the way.

    with FakeProlific() as fake:
        task = fake.study(); fake.take(task, person); fake.faults.append(("POST /studies/", "drop after"))

A fault is met by the next request that begins as it says, once: "drop before" and "drop after" the effect, "429", "500".
"""

import contextlib
import json
import re
import threading
from itertools import count
from urllib.parse import parse_qs, urlsplit

from .loopback import Loopback

TOKEN = "a-token-of-nobody-0123456789"


class Refusal(Exception):
    def __init__(self, status: int, detail, title="Bad request"):
        self.status, self.detail, self.title = status, detail, title


class FakeProlific(Loopback):
    def __init__(self):
        self.studies, self.submissions, self.groups, self.bulks = {}, {}, {}, {}
        self.calls: list[tuple[str, dict]] = []
        self.faults: list[tuple[str, str]] = []
        self.currency, self.balance, self.largest_page = "GBP", 100_000, 100
        self._numbers, self._lock = count(1), threading.Lock()

    def new_id(self) -> str:
        return f"{next(self._numbers):024x}"

    # The person's side

    def study(self, **columns) -> str:
        made = {
            "id": self.new_id(),
            "status": "ACTIVE",
            "internal_name": "",
            "total_available_places": 10,
            "reward": 160,
        } | columns
        self.studies[made["id"]] = made
        return made["id"]

    def take(self, study: str, person: str, status="ACTIVE") -> str:
        made = {
            "id": self.new_id(), "study_id": study, "participant": person, "status": status, "entered_code": None, "completed_at": None,
            "started_at": "2026-11-20T10:00:00.000000Z", "bonus_payments": [], "return_requested": None,
        }  # fmt: skip
        self.submissions[made["id"]] = made
        return made["id"]

    def send(self, submission: str, code: str) -> None:
        self.submissions[submission] |= {
            "status": "AWAITING REVIEW",
            "entered_code": code,
            "completed_at": "2026-11-20T10:20:00Z",
        }

    def group(self) -> str:
        self.groups[made := self.new_id()] = []
        return made

    # The service

    def answer(self, method: str, path: str, query: dict, body: dict):
        for pattern, act in ROUTES:
            verb, _, shape = pattern.partition(" ")
            if verb == method and (match := re.fullmatch(shape.replace("*", "([^/]+)"), path)):
                return act(self, *match.groups(), body=body, query=query)
        raise Refusal(404, "Not found.", "Not found")

    def me(self, *, body, query):
        return {
            "id": "r",
            "name": "Ada",
            "email": "ada@example.org",
            "currency_code": self.currency,
            "available_balance": self.balance,
        }

    def page_of(self, rows: list, query: dict, path: str):
        number, size = int(query.get("page", 1)), min(int(query.get("page_size", 20)), self.largest_page)
        if number > 1 and (number - 1) * size >= len(rows):
            raise Refusal(404, "Invalid page.", "Not found")
        more = "&".join(f"{k}={v}" for k, v in (query | {"page": number + 1}).items())
        href = f"https://api.prolific.com/api/v1{path}?{more}" if number * size < len(rows) else None
        return {
            "results": rows[(number - 1) * size : number * size],
            "_links": {"next": {"href": href}},
            "meta": {"count": len(rows)},
        }

    def list_studies(self, *, body, query):
        return self.page_of(list(self.studies.values()), query, "/studies/")

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
            raise Refusal(400, {name: ["This field is required."] for name in sorted(missing)})
        if not body["external_study_url"].startswith("https://"):
            raise Refusal(400, {"external_study_url": ["Enter a valid URL."]})
        made = body | {"id": self.new_id(), "status": "UNPUBLISHED"}
        self.studies[made["id"]] = made
        return made

    def found(self, rows: dict, one: str):
        if one not in rows:
            raise Refusal(404, "Not found.", "Not found")
        return rows[one]

    def get_study(self, study, *, body, query):
        return self.found(self.studies, study)

    def change_study(self, study, *, body, query):
        made = self.found(self.studies, study)
        if set(body) - {"internal_name", "total_available_places"}:
            raise Refusal(400, "This study is published: only places can change.")
        if body["total_available_places"] < made["total_available_places"]:
            raise Refusal(400, {"total_available_places": ["The number of places can only be increased."]})
        made |= body
        return made

    def cost(self, study, *, body, query):
        made = self.found(self.studies, study)
        return {"total_cost": made["reward"] * made["total_available_places"] * 4 // 3}

    def transition_study(self, study, *, body, query):
        made = self.found(self.studies, study)
        allowed = {
            "PUBLISH": ("UNPUBLISHED", "ACTIVE"),
            "STOP": ("ACTIVE", "AWAITING REVIEW"),
            "PAUSE": ("ACTIVE", "PAUSED"),
            "START": ("PAUSED", "ACTIVE"),
        }
        before, after = allowed[body["action"]]
        if made["status"] != before:
            raise Refusal(400, f"The study is {made['status']}.")
        if body["action"] == "PUBLISH" and made["reward"] * made["total_available_places"] > self.balance:
            raise Refusal(400, "Your balance is too low.")
        made["status"] = after
        return made

    def list_submissions(self, *, body, query):
        rows = [
            {"id": s["id"], "participant_id": s["participant"], "started_at": s["started_at"], "completed_at": s["completed_at"],
             "status": s["status"], "study_code": s["entered_code"]}
            for s in self.submissions.values() if s["study_id"] == query["study"]
        ]  # fmt: skip
        return self.page_of(rows, query, "/submissions/")

    def get_submission(self, submission, *, body, query):
        return self.found(self.submissions, submission)

    def transition_submission(self, submission, *, body, query):
        made = self.found(self.submissions, submission)
        if body["action"] == "REJECT" and (len(body.get("message", "")) < 100 or "rejection_category" not in body):
            raise Refusal(400, {"message": ["Ensure this field has at least 100 characters."]})
        after = {"APPROVE": "APPROVED", "REJECT": "REJECTED"}[body["action"]]
        if made["status"] not in ("AWAITING REVIEW", after):
            raise Refusal(400, f"Submission is {made['status']}")
        made["status"] = after
        return made

    def request_return(self, submission, *, body, query):
        made = self.found(self.submissions, submission)
        if not body["request_return_reasons"]:
            raise Refusal(400, {"request_return_reasons": ["This field is required."]})
        made["return_requested"] = "2026-11-21T10:00:00Z"
        return made

    def screen_out(self, study, *, body, query):
        for submission in body["submission_ids"]:
            made = self.found(self.submissions, submission)
            if made["status"] != "AWAITING REVIEW":
                raise Refusal(400, f"Submission is {made['status']}")
            made["status"] = "SCREENED OUT"
            if body.get("bonus_per_submission"):
                made["bonus_payments"].append(round(body["bonus_per_submission"] * 100))
        return {"message": "The request to bulk screen out has been made successfully."}

    def set_up_bonuses(self, *, body, query):
        payments = []
        for line in body["csv_bonuses"].strip().splitlines():
            who, amount = line.split(",")
            made = next(
                (
                    s
                    for s in self.submissions.values()
                    if who in (s["id"], s["participant"]) and s["study_id"] == body["study_id"]
                ),
                None,
            )
            if made is None or made["status"] in ("ACTIVE", "RETURNED"):
                raise Refusal(400, f"These ids have not taken part: {who}")
            payments.append((made["id"], round(float(amount) * 100)))
        bulk = self.new_id()
        self.bulks[bulk] = payments
        total = sum(amount for _, amount in payments)
        return {"id": bulk, "amount": total, "fees": total // 3, "vat": 0, "total_amount": total + total // 3}

    def pay(self, bulk, *, body, query):
        for submission, amount in self.found(self.bulks, bulk):  # given again it pays again, as the real one does
            self.submissions[submission]["bonus_payments"].append(amount)
        return {}

    def members(self, group, *, body, query):
        return {
            "results": [
                {"participant_id": person, "datetime_created": "2026-11-21T10:00:00Z"}
                for person in self.found(self.groups, group)
            ]
        }

    def join(self, group, *, body, query):
        members = self.found(self.groups, group)
        members += [person for person in body["participant_ids"] if person not in members]
        return {"results": [{"participant_id": person} for person in members]}

    # The wire

    def handled(self, method: str, target: str, raw: bytes, token: str):
        """(status, headers, body), or None where the connection breaks."""
        parts = urlsplit(target)
        path = parts.path.removeprefix("/api/v1")
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        body = json.loads(raw) if raw else {}
        fault = next((f for f in self.faults if f"{method} {path}".startswith(f[0])), None)
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
                answer = self.answer(method, path, query, body)
        except Refusal as refusal:
            words = {
                "error": {"status": refusal.status, "title": refusal.title, "error_code": 1, "detail": refusal.detail}
            }
            return refusal.status, {}, json.dumps(words).encode()
        return None if kind == "drop after" else (201 if method == "POST" else 200, {}, json.dumps(answer).encode())

    def handle(self, handler):
        raw = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        handled = self.handled(handler.command, handler.path, raw, handler.headers.get("Authorization", ""))
        if handled is None:
            handler.close_connection = True
            return
        status, headers, answer = handled
        handler.send_response(status)
        sent = {"Content-Type": "application/json", "Content-Length": str(len(answer))} | headers
        for name, value in sent.items():
            handler.send_header(name, value)
        handler.end_headers()
        with contextlib.suppress(OSError):
            handler.wfile.write(answer)


ROUTES = (
    ("GET /users/me/", FakeProlific.me),
    ("GET /studies/", FakeProlific.list_studies),
    ("POST /studies/", FakeProlific.create_study),
    ("GET /studies/*/", FakeProlific.get_study),
    ("PATCH /studies/*/", FakeProlific.change_study),
    ("GET /studies/*/cost/", FakeProlific.cost),
    ("POST /studies/*/transition/", FakeProlific.transition_study),
    ("POST /studies/*/screen-out-submissions/", FakeProlific.screen_out),
    ("GET /submissions/", FakeProlific.list_submissions),
    ("POST /submissions/bonus-payments/", FakeProlific.set_up_bonuses),
    ("GET /submissions/*/", FakeProlific.get_submission),
    ("POST /submissions/*/transition/", FakeProlific.transition_submission),
    ("POST /submissions/*/request-return/", FakeProlific.request_return),
    ("POST /bulk-bonus-payments/*/pay/", FakeProlific.pay),
    ("GET /participant-groups/*/participants/", FakeProlific.members),
    ("POST /participant-groups/*/participants/", FakeProlific.join),
)
