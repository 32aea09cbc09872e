"""Prolific's service, version 1: orders and submissions. It waits for the network, so only jobs call it."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from annotators.models.constants import APPROVED, REJECTED, SCREENED_OUT, UNKNOWN, WORKING
from annotators.recruitment.panels import (
    Funds,
    Order,
    OrderNotReady,
    PanelBusy,
    PanelService,
    RequestRefused,
    ResultUnclear,
    SubmissionSnapshot,
)
from annotators.recruitment.panels.http_client import NotFound

from ..thresholds import NAMES, NUMBERS
from .client import (
    REJECTION_POLICY,
    SUBMISSION_EVENT,
    ProlificClient,
    parse_charged_fees,
    quote_id,
    require_json_object,
    to_minor_units,
)
from .files import parse_submission

# Completion codes: what Prolific does when a person enters one.


# Prolific's name for each way to end. Prolific also accepts custom labels.
CODE_TYPES = {
    "complete": "COMPLETED", "screened_out": "SCREENED_OUT", "failed_checks": "FAILED_ATTENTION_CHECK", "no_consent": "NO_CONSENT",
    "full": "NO_PLACE_LEFT", "withdrawn": "WITHDREW", "closed": "STUDY_CLOSED", "done": "TOOK_PART_BEFORE",
}  # fmt: skip


def completion_codes(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each code of a recruitment with the action that Prolific takes when it is entered."""
    codes = []
    for outcome, code_type in CODE_TYPES.items():
        action: dict[str, Any] = {"action": "MANUALLY_REVIEW"}
        if outcome == "complete" and settings.get("review") == "automatic":
            action = {"action": "AUTOMATICALLY_APPROVE"}
        elif outcome == "screened_out" and settings.get("screen_out_pay"):
            action = {
                "action": "FIXED_SCREEN_OUT_PAYMENT",
                "fixed_screen_out_reward": to_minor_units(settings["screen_out_pay"]),
                "slots": int(settings["screen_out_places"]),
            }
        if code := settings.get(f"code_{outcome}"):
            codes.append({"code": code, "code_type": code_type, "actor": "participant", "actions": [action]})
    return codes


# The link's thresholds as filters of Prolific's API.
#
# Prolific lists its filters (``GET filters/``): ranges, and selections among choices with ids. The ids may change, so
# they are looked up by name whenever a study is published.


# Setting: Prolific's id of the filter.
FILTER_IDS = {
    "min_approval_rate": "approval_rate",
    "min_approved_tasks": "approval_numbers",
    "countries": "current-country-of-residence",
    "languages": "fluent-languages",
}
UPPER_ENDS = {"min_approval_rate": 100, "min_approved_tasks": 100_000}


def build_filters(thresholds: Mapping[str, Any], catalogue: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return Prolific's filters for these thresholds. ``catalogue``: the filters that Prolific offers.

    Raises RequestRefused if Prolific does not offer a filter or a name, so that no study is published without it.
    """
    offered = {row.get("filter_id"): row for row in catalogue}
    filters: list[dict[str, Any]] = []
    for name, value in thresholds.items():
        filter_id, label = FILTER_IDS[name], (NUMBERS | NAMES)[name]
        row = offered.get(filter_id)
        if row is None:
            raise RequestRefused(f"Prolific offers no filter “{label}” now. Remove it from the link's settings.")
        if name in NUMBERS:
            filters.append({"filter_id": filter_id, "selected_range": {"lower": int(value), "upper": UPPER_ENDS[name]}})
            continue
        ids = {str(choice).casefold(): key for key, choice in (row.get("choices") or {}).items()}
        if unknown := [one for one in value if one.casefold() not in ids]:
            raise RequestRefused(
                f"Prolific does not know “{unknown[0]}” for “{label}”. Write it in the link's settings as Prolific does."
            )
        filters.append({"filter_id": filter_id, "selected_values": [ids[one.casefold()] for one in value]})
    return filters


PAGE_SIZE = 100
PROCESSING_STATUS = "PROCESSING"
CONFIRM_HEADER = "X-Hook-Secret"  # of the answer to a subscription
# Prolific's states of a study that accepts no new people.
ENDED_STATUSES = {"AWAITING REVIEW", "COMPLETED"}
RETRY_SECONDS = 5


class ProlificService(PanelService):
    """Prolific's service. ``settings``: the recruitment's settings."""

    operations = frozenset(
        {"publish", "stop", "extend", "approve", "reject", "bonus", "screen_out", "request_return", "bar"}
    )

    def __init__(self, token: str, settings: Mapping[str, Any] | None = None, origin: str = ""):
        self.settings = settings or {}
        self.client = ProlificClient(token, origin)

    # Queries

    def funds(self):
        account = self.client.get("users/me/")
        balance = account.get("available_balance")
        return (
            Funds(Decimal(balance) / 100, str(account.get("currency_code") or "")) if isinstance(balance, int) else None
        )

    def submissions(self, task):
        for row in self.client.rows_of_all_pages(
            f"submissions/?{urlencode({'study': task, 'page': 1, 'page_size': PAGE_SIZE})}"
        ):
            yield parse_submission(row, task)

    def submission(self, submission):
        try:
            return parse_submission(self.client.get(f"submissions/{quote_id(submission)}/"))
        except NotFound:
            return None

    def charged_fees(self, task):
        return parse_charged_fees(self.client.get(f"studies/{quote_id(task)}/cost/"))

    def find_workspace_id(self) -> str:
        """Return the workspace of groups and messages: the project's, or the account's only one."""
        if project := self.settings.get("project"):
            workspace = self.client.get(f"projects/{quote_id(project)}/").get("workspace")
            if not workspace:
                raise RequestRefused(
                    "Prolific names no workspace for this project. Correct the project in the link's settings."
                )
            return str(workspace)
        workspaces = [str(row.get("id")) for row in self.client.rows_of_all_pages("workspaces/")]
        if len(workspaces) != 1:
            raise RequestRefused(
                f"This account has {len(workspaces)} workspaces. Enter the project in the link's settings to choose one."
            )
        return workspaces[0]

    def subscribe(self, webhook_url):
        """Use the workspace's existing secret. A second secret would break its other users."""
        workspace = self.find_workspace_id()
        query = urlencode({"workspace_id": workspace})
        secret = next(
            (row for row in self.client.rows_of_all_pages(f"hooks/secrets/?{query}") if row.get("value")), None
        )
        secret = secret or self.client.send_order("POST", "hooks/secrets/", {"workspace_id": workspace})
        if not secret.get("value"):
            raise RequestRefused("Prolific returned no secret. Try again later.")
        subscriptions = self.client.rows_of_all_pages(f"hooks/subscriptions/?{query}")
        if not any(
            row.get("target_url") == webhook_url and row.get("event_type") == SUBMISSION_EVENT and row.get("is_enabled")
            for row in subscriptions
        ):
            subscription = {"workspace_id": workspace, "event_type": SUBMISSION_EVENT, "target_url": webhook_url}
            reply, headers = self.client.send_with_headers("POST", "hooks/subscriptions/", subscription)
            if not (confirms := headers.get(CONFIRM_HEADER, "")) or not require_json_object(reply, ResultUnclear).get(
                "id"
            ):
                raise ResultUnclear("Prolific's answer does not say how to confirm the subscription. Try again later.")
            self.client.send_order("POST", f"hooks/subscriptions/{quote_id(reply['id'])}/", {"secret": confirms})
        return str(secret["value"])

    # Orders

    def publish(self, values, token):
        """Publish the draft of an earlier attempt, so that there is never a second study."""
        study = self._find_study(token) or self.client.send_order("POST", "studies/", self._draft(values, token))
        if not study.get("id"):
            raise ResultUnclear("Prolific returned no id for the new study. Look at Prolific before you publish again.")
        if study.get("status", "UNPUBLISHED") == "UNPUBLISHED":
            self.client.send_order("POST", f"studies/{quote_id(study['id'])}/transition/", {"action": "PUBLISH"})
        return {"task": study["id"]}

    def _draft(self, values, token) -> dict[str, Any]:
        currency = self.client.get("users/me/").get("currency_code")
        if currency and currency != values["currency"]:
            raise RequestRefused(
                f"This account pays in {currency}, but the link uses "
                f"{values['currency']}. Change the currency of the link."
            )
        minutes = max(1, round(float(values["minutes"])))
        draft = {
            "name": values["title"],
            "internal_name": _internal_name(values["name"], token),
            "description": values["description"],
            "external_study_url": values["url"],
            "prolific_id_option": "url_parameters",
            "completion_codes": completion_codes(self.settings),
            "total_available_places": int(values["places"]),
            "estimated_completion_time": minutes,
            "maximum_allowed_time": 3 * minutes + 2,
            "reward": to_minor_units(values["reward"]),
            "device_compatibility": ["desktop", "tablet", "mobile"],
            "peripheral_requirements": [],
            "submissions_config": {"max_submissions_per_participant": 1, "max_concurrent_submissions": -1},
        }
        groups = [group for group in [self.settings.get("barred_group")] if group] + [
            self._get_or_create_group(name) for name in values.get("lists") or ()
        ]
        filters: list[dict[str, Any]] = []
        if groups:
            # People added later are kept out too, because Prolific checks the current members of the groups.
            filters.append({"filter_id": "participant_group_blocklist", "selected_values": groups})
        if thresholds := values.get("thresholds"):
            filters += build_filters(thresholds, self.client.rows_of_all_pages("filters/"))
        if filters:
            draft["filters"] = filters
        if project := self.settings.get("project"):
            draft["project"] = project
        return draft

    def stop(self, values, token):
        """Stop recruiting. People who are working can still submit."""
        self.client.send_order("POST", f"studies/{quote_id(values['task'])}/transition/", {"action": "STOP"})
        return {}

    def extend(self, values, token):
        self.client.send_order(
            "PATCH", f"studies/{quote_id(values['task'])}/", {"total_available_places": int(values["places"])}
        )
        return {}

    def approve(self, values, token):
        return self._transition_submission(values, APPROVED, {"action": "APPROVE"})

    def reject(self, values, token):
        category, message = values["category"], str(values["message"]).strip()
        if category not in REJECTION_POLICY.categories:
            raise RequestRefused(f"Prolific has no category “{category}”. Choose another category.")
        if len(message) < REJECTION_POLICY.min_message_length:
            raise RequestRefused(
                f"Prolific needs a reason of at least {REJECTION_POLICY.min_message_length} characters; this "
                f"one has {len(message)}. Write a longer one."
            )
        return self._transition_submission(
            values, REJECTED, {"action": "REJECT", "message": message, "rejection_category": category}
        )

    def _transition_submission(self, values, state: str, body) -> dict[str, Any]:
        """Check the submission first, because its id may now belong to another person.

        An existing equal decision is no error.
        """
        submission = self._checked_submission(values)
        if submission.state == state:
            return {}
        # The person is on the way back to Prolific, which has not closed the submission yet.
        if submission.state == WORKING or submission.word.upper() == PROCESSING_STATUS:
            raise OrderNotReady(
                f"Prolific shows this submission as {submission.word}. heval tries again by itself.", RETRY_SECONDS
            )
        if submission.state == UNKNOWN:
            raise RequestRefused(
                f"Prolific shows this submission as “{submission.word}”. Check at Prolific whether it is paid."
            )
        self.client.send_order("POST", f"submissions/{quote_id(submission.submission)}/transition/", body)
        return {}

    def bonus(self, values, token):
        """Set up the bonus, which pays nothing, then pay it.

        Prolific documents that a repeated second step pays twice.
        """
        submission = self._checked_submission(values)
        hundredths = to_minor_units(values["amount"])
        lines = f"{submission.submission},{hundredths // 100}.{hundredths % 100:02d}\n"
        try:
            bonus = self.client.send_order(
                "POST", "submissions/bonus-payments/", {"study_id": values["task"], "csv_bonuses": lines}
            )
        except ResultUnclear as error:
            raise PanelBusy(
                f"Nothing was paid, because the bonus was not set up. heval tries again by itself. {error}"
            ) from None
        if bonus.get("amount") not in (None, hundredths):
            raise RequestRefused(
                f"Prolific set up {bonus['amount']} hundredths instead of {hundredths}; the bonus was not paid. "
                "Look at Prolific before you order it again."
            )
        if not bonus.get("id"):
            raise RequestRefused("Prolific returned no id for the bonus; it was not paid. Order it again.")
        self.client.send_order("POST", f"bulk-bonus-payments/{quote_id(bonus['id'])}/pay/", {})
        return {"bonus": bonus["id"], "total_in_hundredths": bonus.get("total_amount")}

    def screen_out(self, values, token):
        submission = self._checked_submission(values)
        if submission.state == SCREENED_OUT:
            return {}
        body = {"submission_ids": [submission.submission], "increase_places": True}
        if values.get("amount") not in (None, ""):
            body["bonus_per_submission"] = to_minor_units(values["amount"]) / 100
        self.client.send_order("POST", f"studies/{quote_id(values['task'])}/screen-out-submissions/", body)
        return {}

    def request_return(self, values, token):
        submission = self._checked_submission(values)
        self.client.send_order(
            "POST",
            f"submissions/{quote_id(submission.submission)}/request-return/",
            {"request_return_reasons": [values["message"]]},
        )
        return {}

    def bar(self, values, token):
        """Add people to the participant group that studies exclude. Existing members stay members."""
        if values["people"]:
            group = self._get_or_create_group(values["list"])
            self.client.send_order(
                "POST",
                f"participant-groups/{quote_id(group)}/participants/",
                {"participant_ids": list(values["people"])},
            )
        return {}

    def _get_or_create_group(self, name: str) -> str:
        """Return the id of the group with exactly this name; create it if needed."""
        if group_id := self._find_group_id(name):
            return group_id
        description = "People who have already taken part. The group only prevents repeated invitations."
        group = self.client.send_order(
            "POST",
            "participant-groups/",
            {"name": name, "workspace_id": self.find_workspace_id(), "description": description},
        )
        if not group.get("id"):
            raise ResultUnclear("Prolific returned no id for the new group. Look at your groups at Prolific.")
        return str(group["id"])

    def _find_group_id(self, name: str) -> str:
        groups = self.client.rows_of_all_pages(
            f"participant-groups/?{urlencode({'workspace_id': self.find_workspace_id()})}"
        )
        return next((str(row["id"]) for row in groups if row.get("name") == name and not row.get("is_deleted")), "")

    # Orders whose reply was lost

    def find_order_result(self, order):
        return getattr(self, f"_find_{order.operation}_result", super().find_order_result)(order)

    def _find_publish_result(self, order: Order) -> dict[str, Any] | None:
        study = self._find_study(order.token)
        return {"task": study["id"]} if study and study.get("status") != "UNPUBLISHED" else None

    def _find_stop_result(self, order: Order) -> dict[str, Any] | None:
        return (
            {}
            if self.client.get(f"studies/{quote_id(order.values['task'])}/").get("status") in ENDED_STATUSES
            else None
        )

    def _find_extend_result(self, order: Order) -> dict[str, Any] | None:
        places = self.client.get(f"studies/{quote_id(order.values['task'])}/").get("total_available_places")
        return {} if isinstance(places, int) and places >= int(order.values["places"]) else None

    def _find_approve_result(self, order: Order) -> dict[str, Any] | None:
        return self._find_decision_result(order, APPROVED)

    def _find_reject_result(self, order: Order) -> dict[str, Any] | None:
        return self._find_decision_result(order, REJECTED)

    def _find_decision_result(self, order: Order, wanted_state: str) -> dict[str, Any] | None:
        state = self._checked_submission(order.values).state
        if state == UNKNOWN:
            raise ResultUnclear("Prolific is still processing this submission. Look at it at Prolific later.")
        return {} if state == wanted_state else None

    def _find_screen_out_result(self, order: Order) -> dict[str, Any] | None:
        result = self._find_decision_result(order, SCREENED_OUT)
        # Prolific pays some minutes later. An order repeated in between could be paid twice.
        if result is None and order.values.get("amount") not in (None, ""):
            raise ResultUnclear(
                "Prolific does not show this submission as screened out yet. Look at it at Prolific later."
            )
        return result

    def _find_bonus_result(self, order: Order) -> None:
        row = self.client.get(f"submissions/{quote_id(order.values['submission'])}/")
        paid = row.get("bonus_payments")
        numbers = [amount for amount in paid if isinstance(amount, int | float)] if isinstance(paid, list) else []
        amounts = ", ".join(f"{amount / 100:.2f}" for amount in numbers) or "none"
        raise ResultUnclear(
            f"Prolific pays bonuses some minutes after the order. Paid so far on this submission: {amounts}. "
            "Look at Prolific before you pay again."
        )

    def _find_request_return_result(self, order: Order) -> dict[str, Any] | None:
        return (
            {}
            if self.client.get(f"submissions/{quote_id(order.values['submission'])}/").get("return_requested")
            else None
        )

    def _find_bar_result(self, order: Order) -> dict[str, Any] | None:
        group = self._find_group_id(order.values["list"])
        members = self.client.rows_of_all_pages(f"participant-groups/{quote_id(group)}/participants/") if group else ()
        return {} if {row.get("participant_id") for row in members} >= set(order.values["people"]) else None

    # Look-ups

    def _checked_submission(self, values: Mapping[str, Any]) -> SubmissionSnapshot:
        submission = self.submission(values["submission"])
        if submission is None or submission.task != values["task"]:
            raise RequestRefused("Prolific shows no such submission in this study. Look for it at Prolific.")
        if submission.person != values["person"]:
            raise RequestRefused("At Prolific this submission belongs to another person. Look at it there.")
        return submission

    def _find_study(self, token: str) -> dict[str, Any] | None:
        project = self.settings.get("project")
        path = f"projects/{quote_id(project)}/studies/" if project else "studies/"
        return next(
            (
                row
                for row in self.client.rows_of_all_pages(path)
                if str(row.get("internal_name")).endswith(_internal_name("", token))
            ),
            None,
        )


def _internal_name(name: str, token: str) -> str:
    return f"{name} [{token}]"
