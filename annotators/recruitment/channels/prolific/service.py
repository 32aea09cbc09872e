"""Prolific's service, version 1: orders and submissions. Waits for the network; jobs call it, requests never do."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from django.conf import settings as site

from annotators.models.constants import APPROVED, REJECTED, SCREENED_OUT, UNKNOWN, WORKING
from annotators.recruitment.panels import Busy, Charged, Funds, NotYet, Order, Refused, Seen, Service, Unclear
from annotators.recruitment.panels.wire import Missing, Wire

from .policy import REFUSALS
from .vocabulary import decides_at, state_of
from .webhook import SUBMISSION

HOST = "api.prolific.com"
PAGE_SIZE = 100
PASSING = "PROCESSING"
CONFIRMS = "X-Hook-Secret"  # of the answer to a subscription
# What Prolific calls each way to end; labels of one's own are taken too.
CODE_TYPES = {
    "complete": "COMPLETED", "screened_out": "SCREENED_OUT", "failed_checks": "FAILED_ATTENTION_CHECK", "no_consent": "NO_CONSENT",
    "full": "NO_PLACE_LEFT", "withdrawn": "WITHDREW", "closed": "STUDY_CLOSED", "done": "TOOK_PART_BEFORE",
}  # fmt: skip
# Prolific's states of a study in which nobody new can come.
OVER = {"AWAITING REVIEW", "COMPLETED"}
SOON = 5


def moment(value: Any) -> datetime | None:
    """Prolific's times are in UTC, also where they do not say so."""
    try:
        at = datetime.fromisoformat(value) if value else None
    except (TypeError, ValueError):
        return None
    return at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at


def seen(row: Mapping[str, Any], task: str = "") -> Seen:
    """A submission as the service writes it: a list says ``participant_id``, a single one ``participant``."""
    if not isinstance(row, Mapping) or not row.get("id"):
        raise Busy("Prolific shows a submission without an id.")
    word = str(row.get("status") or "")
    state, submitted = state_of(word), moment(row.get("completed_at"))
    return Seen(
        task=str(row.get("study_id") or task), submission=str(row["id"]), state=state, word=word,
        person=str(row.get("participant_id") or row.get("participant") or ""),
        code=str(row.get("entered_code") or row.get("study_code") or ""),
        started_at=moment(row.get("started_at")), submitted_at=submitted, decides_itself_at=decides_at(state, submitted),
    )  # fmt: skip


def minor(amount: Any) -> int:
    """1.60 as 160: Prolific writes rewards in pence or cents. Raises Refused for less than a cent and for no number."""
    try:
        hundredths = Decimal(str(amount)) * 100
        is_money = 0 < hundredths < 10**8 and hundredths == int(hundredths)
    except InvalidOperation:
        is_money = False
    if not is_money:
        raise Refused(f"{amount} is not an amount of money with two places above zero.")
    return int(hundredths)


def charged(answer: Mapping[str, Any]) -> Charged | None:
    """What a study's cost says of fees, in the fields that Prolific describes: amounts in hundredths, of rewards and of bonuses apart. None
    where one is missing that must be there, or says something else."""
    rewards, bonuses = answer.get("rewards"), answer.get("bonuses") or {}
    if not isinstance(rewards, Mapping) or not isinstance(bonuses, Mapping) or "fees" not in rewards:
        return None
    currencies: set[str] = set()
    try:
        of_rewards = sum(_hundredths(rewards, name, currencies) for name in ("fees", "rep_sample_fees"))
        of_bonuses = _hundredths(bonuses, "fees", currencies)
        tax = sum(_hundredths(rewards, name, currencies) for name in ("tax", "rep_sample_tax"))
        tax += _hundredths(bonuses, "tax", currencies)
    except ValueError:
        return None
    if len(currencies) != 1:
        return None
    return Charged(*(Decimal(amount) / 100 for amount in (of_rewards, of_bonuses, tax)), currencies.pop())


def _hundredths(part: Mapping[str, Any], name: str, currencies: set[str]) -> int:
    """0 where it is left out. Raises ValueError for what is no amount of money."""
    one = part.get(name)
    if one is None:
        return 0
    amount, currency = (one.get("amount"), one.get("currency")) if isinstance(one, Mapping) else (None, None)
    is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
    if not is_number or not 0 <= amount < 10**12 or not (isinstance(currency, str) and currency):
        raise ValueError(name)
    currencies.add(currency)
    return round(amount)


def completion_codes(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each code of a recruitment with what Prolific shall do when it is entered."""
    made = []
    for outcome, code_type in CODE_TYPES.items():
        action: dict[str, Any] = {"action": "MANUALLY_REVIEW"}
        if outcome == "complete" and settings.get("review") == "automatic":
            action = {"action": "AUTOMATICALLY_APPROVE"}
        elif outcome == "screened_out" and settings.get("screen_out_pay"):
            action = {
                "action": "FIXED_SCREEN_OUT_PAYMENT", "fixed_screen_out_reward": minor(settings["screen_out_pay"]),
                "slots": int(settings["screen_out_places"]),
            }  # fmt: skip
        if code := settings.get(f"code_{outcome}"):
            made.append({"code": code, "code_type": code_type, "actor": "participant", "actions": [action]})
    return made


class ProlificService(Service):
    """``settings``: of the recruitment. ``token`` has all rights of its account: it is held by the wire alone."""

    can = frozenset({"publish", "stop", "extend", "approve", "reject", "bonus", "screen_out", "request_return", "bar"})

    def __init__(self, token: str, settings: Mapping[str, Any] | None = None, origin: str = ""):
        self.settings = settings or {}
        self.wire = Wire(origin or site.PROLIFIC_API, (HOST,), secret=token, header="Authorization: Token ")

    # What is asked

    def check(self):
        me = self._get("users/me/")
        held = me.get("available_balance")  # in hundredths
        holds = (
            f"{Decimal(held) / 100:.2f} {me.get('currency_code') or ''}".strip()
            if isinstance(held, int)
            else "an unknown sum"
        )
        return f"{me.get('name') or me.get('email') or me.get('id')}, holding {holds}"

    def funds(self):
        me = self._get("users/me/")
        held = me.get("available_balance")
        return Funds(Decimal(held) / 100, str(me.get("currency_code") or "")) if isinstance(held, int) else None

    def submissions(self, task):
        for row in self._pages(f"submissions/?{urlencode({'study': task, 'page': 1, 'page_size': PAGE_SIZE})}"):
            yield seen(row, task)

    def submission(self, submission):
        try:
            return seen(self._get(f"submissions/{_id(submission)}/"))
        except Missing:
            return None

    def cost(self, task):
        return charged(self._get(f"studies/{_id(task)}/cost/"))

    def workspace(self) -> str:
        """Groups and messages belong to a workspace: the project's, or the only one of the account."""
        if project := self.settings.get("project"):
            found = self._get(f"projects/{_id(project)}/").get("workspace")
            if not found:
                raise Refused("Prolific names no workspace of this project.")
            return str(found)
        every = [str(row.get("id")) for row in self._pages("workspaces/")]
        if len(every) != 1:
            raise Refused(
                f"This account has {len(every)} workspaces. Name the project in the settings of the link: it says which one."
            )
        return every[0]

    def listen(self, url):
        """The workspace's secret is used where it has one: a second one would silence whoever uses the first."""
        workspace = self.workspace()
        asked = urlencode({"workspace_id": workspace})
        kept = next((row for row in self._pages(f"hooks/secrets/?{asked}") if row.get("value")), None)
        kept = kept or self._order("POST", "hooks/secrets/", {"workspace_id": workspace})
        if not kept.get("value"):
            raise Refused("Prolific gave no secret.")
        there = self._pages(f"hooks/subscriptions/?{asked}")
        if not any(
            row.get("target_url") == url and row.get("event_type") == SUBMISSION and row.get("is_enabled")
            for row in there
        ):
            wanted = {"workspace_id": workspace, "event_type": SUBMISSION, "target_url": url}
            made, headers = self.wire.order_answer("POST", "/api/v1/hooks/subscriptions/", wanted)
            if not (confirms := headers.get(CONFIRMS, "")) or not _whole(made, Unclear).get("id"):
                raise Unclear("Prolific's answer does not say how the subscription is confirmed.")
            self._order("POST", f"hooks/subscriptions/{_id(made['id'])}/", {"secret": confirms})
        return str(kept["value"])

    # What is ordered

    def publish(self, values, token):
        """A draft that an earlier try made is published, never a second one beside it."""
        made = self._study_named(token) or self._order("POST", "studies/", self._draft(values, token))
        if not made.get("id"):
            raise Unclear("Prolific gave the new study no id.")
        if made.get("status", "UNPUBLISHED") == "UNPUBLISHED":
            self._order("POST", f"studies/{_id(made['id'])}/transition/", {"action": "PUBLISH"})
        return {"task": made["id"]}

    def _draft(self, values, token) -> dict[str, Any]:
        currency = self._get("users/me/").get("currency_code")
        if currency and currency != values["currency"]:
            raise Refused(f"This account pays in {currency}, and the recruitment says {values['currency']}.")
        minutes = max(1, round(float(values["minutes"])))
        draft = {
            "name": values["title"], "internal_name": _named(values["name"], token), "description": values["description"],
            "external_study_url": values["url"], "prolific_id_option": "url_parameters", "completion_codes": completion_codes(self.settings),
            "total_available_places": int(values["places"]), "estimated_completion_time": minutes, "maximum_allowed_time": 3 * minutes + 2,
            "reward": minor(values["reward"]), "device_compatibility": ["desktop", "tablet", "mobile"], "peripheral_requirements": [],
            "submissions_config": {"max_submissions_per_participant": 1, "max_concurrent_submissions": -1},
        }  # fmt: skip
        groups = [group for group in [self.settings.get("barred_group")] if group] + [
            self._group(name) for name in values.get("lists") or ()
        ]
        if groups:
            # Who is added later is kept out too: Prolific looks at the groups' members of the moment.
            draft["filters"] = [{"filter_id": "participant_group_blocklist", "selected_values": groups}]
        if project := self.settings.get("project"):
            draft["project"] = project
        return draft

    def stop(self, values, token):
        """Nobody new comes; who is working can send."""
        self._order("POST", f"studies/{_id(values['task'])}/transition/", {"action": "STOP"})
        return {}

    def extend(self, values, token):
        self._order("PATCH", f"studies/{_id(values['task'])}/", {"total_available_places": int(values["places"])})
        return {}

    def approve(self, values, token):
        return self._decide(values, APPROVED, {"action": "APPROVE"})

    def reject(self, values, token):
        category, message = values["category"], str(values["message"]).strip()
        if category not in REFUSALS.categories:
            raise Refused(f"Prolific knows no category “{category}”.")
        if len(message) < REFUSALS.least_characters:
            raise Refused(
                f"Prolific wants a reason of at least {REFUSALS.least_characters} characters; this one has {len(message)}."
            )
        return self._decide(values, REJECTED, {"action": "REJECT", "message": message, "rejection_category": category})

    def _decide(self, values, wanted: str, body) -> dict[str, Any]:
        """The id alone could be of another person's work: it is looked at first. A decision that stands already is no error."""
        shown = self._of_person(values)
        if shown.state == wanted:
            return {}
        # The person is on the way back to Prolific, whose side has not closed yet.
        if shown.state == WORKING or shown.word.upper() == PASSING:
            raise NotYet(f"Prolific shows this submission as {shown.word}.", SOON)
        if shown.state == UNKNOWN:
            raise Refused(
                f"Prolific shows this submission as “{shown.word}”: what that means for pay is for a person to find out."
            )
        self._order("POST", f"submissions/{_id(shown.submission)}/transition/", body)
        return {}

    def bonus(self, values, token):
        """Set up, which pays nothing, then paid. Documented: the second step given twice pays twice."""
        shown = self._of_person(values)
        hundredths = minor(values["amount"])
        lines = f"{shown.submission},{hundredths // 100}.{hundredths % 100:02d}\n"
        try:
            made = self._order(
                "POST", "submissions/bonus-payments/", {"study_id": values["task"], "csv_bonuses": lines}
            )
        except Unclear as lost:
            raise Busy(f"Nothing was paid: the bonus was not set up. {lost}") from None
        if made.get("amount") not in (None, hundredths):
            raise Refused(f"Prolific set up {made['amount']} hundredths instead of {hundredths}; it was not paid.")
        if not made.get("id"):
            raise Refused("Prolific gave the bonus no id; it was not paid.")
        self._order("POST", f"bulk-bonus-payments/{_id(made['id'])}/pay/", {})
        return {"bonus": made["id"], "total_in_hundredths": made.get("total_amount")}

    def screen_out(self, values, token):
        shown = self._of_person(values)
        if shown.state == SCREENED_OUT:
            return {}
        body = {"submission_ids": [shown.submission], "increase_places": True}
        if values.get("amount") not in (None, ""):
            body["bonus_per_submission"] = minor(values["amount"]) / 100
        self._order("POST", f"studies/{_id(values['task'])}/screen-out-submissions/", body)
        return {}

    def request_return(self, values, token):
        shown = self._of_person(values)
        self._order(
            "POST",
            f"submissions/{_id(shown.submission)}/request-return/",
            {"request_return_reasons": [values["message"]]},
        )
        return {}

    def bar(self, values, token):
        """Into the participant group that studies are published without. Who is a member already stays one."""
        if values["people"]:
            group = self._group(values["list"])
            self._order(
                "POST", f"participant-groups/{_id(group)}/participants/", {"participant_ids": list(values["people"])}
            )
        return {}

    def _group(self, name: str) -> str:
        """The id of the group of exactly this name, made where there is none."""
        if found := self._group_named(name):
            return found
        words = "Who has taken part already. It only keeps people from being asked twice."
        made = self._order(
            "POST", "participant-groups/", {"name": name, "workspace_id": self.workspace(), "description": words}
        )
        if not made.get("id"):
            raise Unclear("Prolific gave the new group no id.")
        return str(made["id"])

    def _group_named(self, name: str) -> str:
        every = self._pages(f"participant-groups/?{urlencode({'workspace_id': self.workspace()})}")
        return next((str(row["id"]) for row in every if row.get("name") == name and not row.get("is_deleted")), "")

    # What became of an order whose reply was lost

    def look(self, order):
        return getattr(self, f"_look_{order.operation}", super().look)(order)

    def _look_publish(self, order: Order) -> dict[str, Any] | None:
        made = self._study_named(order.token)
        return {"task": made["id"]} if made and made.get("status") != "UNPUBLISHED" else None

    def _look_stop(self, order: Order) -> dict[str, Any] | None:
        return {} if self._get(f"studies/{_id(order.values['task'])}/").get("status") in OVER else None

    def _look_extend(self, order: Order) -> dict[str, Any] | None:
        places = self._get(f"studies/{_id(order.values['task'])}/").get("total_available_places")
        return {} if isinstance(places, int) and places >= int(order.values["places"]) else None

    def _look_approve(self, order: Order) -> dict[str, Any] | None:
        return self._look_decided(order, APPROVED)

    def _look_reject(self, order: Order) -> dict[str, Any] | None:
        return self._look_decided(order, REJECTED)

    def _look_decided(self, order: Order, wanted: str) -> dict[str, Any] | None:
        state = self._of_person(order.values).state
        if state == UNKNOWN:
            raise Unclear("Prolific is still at it.")
        return {} if state == wanted else None

    def _look_screen_out(self, order: Order) -> dict[str, Any] | None:
        done = self._look_decided(order, SCREENED_OUT)
        # Its pay goes out by itself some minutes later: given again in between, it could be paid twice.
        if done is None and order.values.get("amount") not in (None, ""):
            raise Unclear("Prolific does not show it as screened out yet.")
        return done

    def _look_bonus(self, order: Order) -> None:
        row = self._get(f"submissions/{_id(order.values['submission'])}/")
        paid = row.get("bonus_payments")
        numbers = [one for one in paid if isinstance(one, int | float)] if isinstance(paid, list) else []
        shown = ", ".join(f"{one / 100:.2f}" for one in numbers) or "none"
        raise Unclear(
            f"Bonuses are paid some minutes after they are ordered, and which order was paid is not shown. Paid so far on this submission: {shown}."
        )

    def _look_request_return(self, order: Order) -> dict[str, Any] | None:
        return {} if self._get(f"submissions/{_id(order.values['submission'])}/").get("return_requested") else None

    def _look_bar(self, order: Order) -> dict[str, Any] | None:
        group = self._group_named(order.values["list"])
        members = self._pages(f"participant-groups/{_id(group)}/participants/") if group else ()
        return {} if {row.get("participant_id") for row in members} >= set(order.values["people"]) else None

    # The wire

    def _of_person(self, values: Mapping[str, Any]) -> Seen:
        shown = self.submission(values["submission"])
        if shown is None or shown.task != values["task"]:
            raise Refused("Prolific shows no such submission in this study.")
        if shown.person != values["person"]:
            raise Refused("At Prolific this submission is somebody else's.")
        return shown

    def _study_named(self, token: str) -> dict[str, Any] | None:
        project = self.settings.get("project")
        path = f"projects/{_id(project)}/studies/" if project else "studies/"
        return next(
            (row for row in self._pages(path) if str(row.get("internal_name")).endswith(_named("", token))), None
        )

    def _get(self, path: str) -> dict[str, Any]:
        return _whole(self.wire.get_json(f"/api/v1/{path}"), Busy)

    def _order(self, method: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return _whole(self.wire.order_json(method, f"/api/v1/{path}", body), Unclear)

    def _pages(self, path: str) -> Iterator[dict[str, Any]]:
        """Every row, by the links from page to page: a page asked for past the last one is an error at Prolific."""
        passed = set()
        following: str | None = f"/api/v1/{path}"
        while following:
            passed.add(following)
            page = _whole(self.wire.get_json(following), Busy)
            yield from page.get("results") or []
            link = ((page.get("_links") or {}).get("next") or {}).get("href")
            parts = urlsplit(link or "")
            # The host of a link is never followed: the token goes to one host alone.
            following = f"{parts.path}?{parts.query}" if link else None
            if following in passed or (following and not following.startswith("/api/v1/")):
                raise Busy("Prolific's pages lead in a circle.")


def _named(name: str, token: str) -> str:
    return f"{name} [{token}]"


def _id(value: Any) -> str:
    return quote(str(value), safe="")


def _whole(body: Any, otherwise: type[Exception]) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise otherwise("Prolific's answer is not an object.")
    return body
