"""Answers of the stand-in for Prolific's service: paths, bodies, states and errors, kept in memory."""

import re
from datetime import UTC, datetime
from itertools import count


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

    def answer(self, method: str, path: str, query: dict, body: dict):
        for pattern, act in ROUTES:
            verb, _, shape = pattern.partition(" ")
            if verb == method and (match := re.fullmatch(shape.replace("*", "([^/]+)"), path)):
                return act(self, *match.groups(), body=body, query=query)
        raise ApiError(404, "Not found.", "Not found")

    def me(self, *, body, query):
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
        more = "&".join(f"{k}={v}" for k, v in (query | {"page": number + 1}).items())
        href = f"https://api.prolific.com/api/v1{path}?{more}" if number * size < len(rows) else None
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
        made = body | {"id": self.new_id(), "status": "UNPUBLISHED"}
        self.studies[made["id"]] = made
        return made

    def get_or_404(self, rows: dict, one: str):
        if one not in rows:
            raise ApiError(404, "Not found.", "Not found")
        return rows[one]

    def get_study(self, study, *, body, query):
        return self.get_or_404(self.studies, study)

    def change_study(self, study, *, body, query):
        made = self.get_or_404(self.studies, study)
        if set(body) - {"internal_name", "total_available_places"}:
            raise ApiError(400, "This study is published: only places can change.")
        if body["total_available_places"] < made["total_available_places"]:
            raise ApiError(400, {"total_available_places": ["The number of places can only be increased."]})
        made |= body
        return made

    def cost(self, study, *, body, query):
        """Return the cost so far: approved rewards and paid bonuses, one third of these as the fee, and one fifth of
        the fee as tax.
        """
        made = self.get_or_404(self.studies, study)
        mine = [one for one in self.submissions.values() if one["study_id"] == study]
        approved = sum(one["status"] == "APPROVED" for one in mine)
        bonuses = sum(amount for one in mine for amount in one["bonus_payments"])
        sums = {"rewards": approved * made["reward"], "bonuses": bonuses}
        return {name: self.charged_amounts(amount) if amount else None for name, amount in sums.items()}

    def charged_amounts(self, amount: int) -> dict:
        parts = {"rewards": amount, "fees": amount // 3, "tax": amount // 15}
        return {name: {"amount": part, "currency": self.currency} for name, part in parts.items()}

    def transition_study(self, study, *, body, query):
        made = self.get_or_404(self.studies, study)
        allowed = {
            "PUBLISH": ("UNPUBLISHED", "ACTIVE"),
            "STOP": ("ACTIVE", "AWAITING REVIEW"),
            "PAUSE": ("ACTIVE", "PAUSED"),
            "START": ("PAUSED", "ACTIVE"),
        }
        before, after = allowed[body["action"]]
        if made["status"] != before:
            raise ApiError(400, f"The study is {made['status']}.")
        if body["action"] == "PUBLISH" and made["reward"] * made["total_available_places"] > self.balance:
            raise ApiError(400, "Your balance is too low.")
        made["status"] = after
        return made

    def list_submissions(self, *, body, query):
        rows = [
            {
                "id": s["id"],
                "participant_id": s["participant"],
                "started_at": s["started_at"],
                "completed_at": s["completed_at"],
                "status": s["status"],
                "study_code": s["entered_code"],
            }
            for s in self.submissions.values()
            if s["study_id"] == query["study"]
        ]
        return self.paginate(rows, query, "/submissions/")

    def get_submission(self, submission, *, body, query):
        return self.get_or_404(self.submissions, submission)

    def transition_submission(self, submission, *, body, query):
        made = self.get_or_404(self.submissions, submission)
        if body["action"] == "REJECT" and (len(body.get("message", "")) < 100 or "rejection_category" not in body):
            raise ApiError(400, {"message": ["Ensure this field has at least 100 characters."]})
        after = {"APPROVE": "APPROVED", "REJECT": "REJECTED"}[body["action"]]
        if made["status"] not in ("AWAITING REVIEW", after):
            raise ApiError(400, f"Submission is {made['status']}")
        made["status"] = after
        return made

    def request_return(self, submission, *, body, query):
        made = self.get_or_404(self.submissions, submission)
        if not body["request_return_reasons"]:
            raise ApiError(400, {"request_return_reasons": ["This field is required."]})
        made["return_requested"] = now_iso()
        return made

    def screen_out(self, study, *, body, query):
        for submission in body["submission_ids"]:
            made = self.get_or_404(self.submissions, submission)
            if made["status"] != "AWAITING REVIEW":
                raise ApiError(400, f"Submission is {made['status']}")
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
                raise ApiError(400, f"These ids have not taken part: {who}")
            payments.append((made["id"], round(float(amount) * 100)))
        bulk = self.new_id()
        self.bulks[bulk] = payments
        total = sum(amount for _, amount in payments)
        return {"id": bulk, "amount": total, "fees": total // 3, "vat": 0, "total_amount": total + total // 3}

    def pay(self, bulk, *, body, query):
        for submission, amount in self.get_or_404(
            self.bulks, bulk
        ):  # a repeated request pays again, as at the real panel
            self.submissions[submission]["bonus_payments"].append(amount)
        return {}

    def members(self, group, *, body, query):
        return {
            "results": [
                {"participant_id": person, "datetime_created": now_iso()}
                for person in self.get_or_404(self.groups, group)
            ]
        }

    def _check_workspace(self, named) -> None:
        if named.get("workspace_id") not in self.workspaces:
            raise ApiError(404, "There is no such workspace.", "Not found")

    def list_groups(self, *, body, query):
        self._check_workspace(query)
        return self.paginate(
            [{"id": one, "name": name} for one, name in self.group_names.items()], query, "/participant-groups/"
        )

    def create_group(self, *, body, query):
        self._check_workspace(body)
        made = self.new_id()  # two groups may have the same name
        self.groups[made], self.group_names[made] = [], body["name"]
        return {"id": made, "name": body["name"]}

    def join(self, group, *, body, query):
        members = self.get_or_404(self.groups, group)
        if wrong := [person for person in body["participant_ids"] if len(person) != 24]:
            raise ApiError(400, f"{wrong[0]} is no participant.")
        members += [person for person in body["participant_ids"] if person not in members]
        return {"results": [{"participant_id": person} for person in members]}

    def list_workspaces(self, *, body, query):
        return {"results": [{"id": one, "title": "Ours"} for one in self.workspaces]}

    def list_secrets(self, *, body, query):
        return {"results": [row for row in self.hook_secrets.values() if row["workspace_id"] == query["workspace_id"]]}

    def create_secret(self, *, body, query):
        self._check_workspace(body)
        # Only one secret per workspace is in force.
        self.hook_secrets[body["workspace_id"]] = made = {
            "id": self.new_id(),
            "value": f"whsec_{self.new_id()}",
            "workspace_id": body["workspace_id"],
        }
        return made

    def list_subscriptions(self, *, body, query):
        rows = [row for row in self.subscriptions.values() if row["workspace_id"] == query["workspace_id"]]
        return {"results": [{name: value for name, value in row.items() if name != "confirms"} for row in rows]}

    def subscribe(self, *, body, query):
        if not body["target_url"].startswith("https://"):
            raise ApiError(400, {"target_url": ["It must be https."]})
        if body["workspace_id"] not in self.hook_secrets:
            raise ApiError(400, "The workspace has no secret.")
        made = body | {"id": self.new_id(), "is_enabled": False, "confirms": self.new_id()}
        self.subscriptions[made["id"]] = made
        return {name: value for name, value in made.items() if name != "confirms"}

    def confirm_subscription(self, subscription, *, body, query):
        made = self.get_or_404(self.subscriptions, subscription)
        if body["secret"] != made["confirms"]:
            raise ApiError(400, "Wrong secret.")
        made["is_enabled"] = True
        return {}


# Maps each request to the method that answers it; * stands for an id.
ROUTES = (
    ("GET /users/me/", StandInApi.me),
    ("GET /studies/", StandInApi.list_studies),
    ("POST /studies/", StandInApi.create_study),
    ("GET /studies/*/", StandInApi.get_study),
    ("PATCH /studies/*/", StandInApi.change_study),
    ("GET /studies/*/cost/", StandInApi.cost),
    ("POST /studies/*/transition/", StandInApi.transition_study),
    ("POST /studies/*/screen-out-submissions/", StandInApi.screen_out),
    ("GET /submissions/", StandInApi.list_submissions),
    ("POST /submissions/bonus-payments/", StandInApi.set_up_bonuses),
    ("GET /submissions/*/", StandInApi.get_submission),
    ("POST /submissions/*/transition/", StandInApi.transition_submission),
    ("POST /submissions/*/request-return/", StandInApi.request_return),
    ("POST /bulk-bonus-payments/*/pay/", StandInApi.pay),
    ("GET /participant-groups/*/participants/", StandInApi.members),
    ("POST /participant-groups/*/participants/", StandInApi.join),
    ("GET /participant-groups/", StandInApi.list_groups),
    ("POST /participant-groups/", StandInApi.create_group),
    ("GET /workspaces/", StandInApi.list_workspaces),
    ("GET /hooks/secrets/", StandInApi.list_secrets),
    ("POST /hooks/secrets/", StandInApi.create_secret),
    ("GET /hooks/subscriptions/", StandInApi.list_subscriptions),
    ("POST /hooks/subscriptions/", StandInApi.subscribe),
    ("POST /hooks/subscriptions/*/", StandInApi.confirm_subscription),
)
