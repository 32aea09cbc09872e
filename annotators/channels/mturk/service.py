"""The requester's side, over boto3, which is imported when a service is made and never before.

Every write carries a token of its own, and none is believed to have failed because no answer came: what a HIT was made for stands in
its annotation, what a bonus was paid for in its reason, and both are looked up.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit
from xml.parsers import expat

from django.conf import settings

from ...panels import APPROVED, REJECTED, SUBMITTED, UNKNOWN, Busy, Funds, Refused, Seen, Service, Unclear
from . import question
from .money import CURRENCY, PER_HIT, fee_of, hits_for

REGION = "us-east-1"  # the only one; elsewhere the package makes up hosts that do not exist
ENDPOINTS = {
    "live": "https://mturk-requester.us-east-1.amazonaws.com",
    "sandbox": "https://mturk-requester-sandbox.us-east-1.amazonaws.com",
}
LOOPBACK = ("127.0.0.1", "localhost", "::1")
ATTEMPTS = 5
PAGE = 100
LIFETIME = 7 * 86_400
DECIDES_ITSELF_AFTER = 3 * 86_400
LEAST_DURATION = 30 * 60
LONGEST_TITLE, LONGEST_DESCRIPTION = 128, 2000
CLOSED_AT = datetime(2015, 1, 1, tzinfo=UTC)  # any past moment closes a HIT
STATES = {"Submitted": SUBMITTED, "Approved": APPROVED, "Rejected": REJECTED}
LOCALE, APPROVED_SHARE = "00000000000000000071", "000000000000000000L0"
THROTTLED = ("ThrottlingException", "Throttling", "RequestLimitExceeded", "TooManyRequestsException")


def digest(*parts: str, length: int) -> str:
    return sha256("\x1f".join(parts).encode()).hexdigest()[:length]


def endpoint_of(environment: str) -> str:
    """The service's host. MTURK_ENDPOINT_URL may name another one on this machine alone: signed orders go nowhere else."""
    own, wanted = ENDPOINTS[environment], settings.MTURK_ENDPOINT_URL.rstrip("/")
    if wanted in ("", own):
        return own
    if wanted in ENDPOINTS.values():
        raise Refused(f"MTURK_ENDPOINT_URL names the other environment; this link is for the {environment} one.")
    parts = urlsplit(wanted)
    if parts.scheme != "http" or parts.hostname not in LOOPBACK or parts.username:
        raise Refused("MTURK_ENDPOINT_URL may name Mechanical Turk's own hosts or this machine, nothing else.")
    return wanted


def client_of(environment: str, key_id: str, key: str):
    try:
        import boto3
        from botocore.config import Config
    except ImportError:
        raise Refused(
            "The package boto3 is not installed. Install it where heval is, with: pip install 'boto3>=1.44,<2'"
        ) from None
    return boto3.client(
        "mturk", region_name=REGION, endpoint_url=endpoint_of(environment),
        aws_access_key_id=key_id, aws_secret_access_key=key,
        config=Config(retries={"mode": "standard", "total_max_attempts": ATTEMPTS}, connect_timeout=5, read_timeout=20),
    )  # fmt: skip


@contextmanager
def in_our_words():
    """What the package raises, as a panel's service may."""
    from botocore import exceptions as wrong

    try:
        yield
    except wrong.ClientError as error:
        said = error.response.get("Error", {})
        code, words = said.get("Code", ""), said.get("Message") or str(error)
        if code in THROTTLED:
            raise Busy(words) from error
        if code == "ServiceFault" or error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500) >= 500:
            raise Unclear(f"The service failed: {words}") from error
        if "Already" in error.response.get("TurkErrorCode", ""):
            raise Unclear(words) from error  # the token was used: something was made, and is to be looked up
        raise Refused(words) from error
    except (wrong.ParamValidationError, wrong.NoCredentialsError, wrong.PartialCredentialsError) as error:
        raise Refused(str(error)) from error
    except (wrong.EndpointConnectionError, wrong.ConnectTimeoutError) as error:
        raise Busy("The service cannot be reached.") from error  # nothing was sent
    except (wrong.BotoCoreError, wrong.HTTPClientError) as error:
        raise Unclear(f"No answer came: {type(error).__name__}") from error


def receipt_in(answer: str) -> str:
    """Our receipt in what the worker's form sent; '' where there is none.

    A document type declaration is refused, and with it every entity: the words were written by whoever submitted.
    """
    found, name, path = {}, [], []

    def begin(tag, _):
        path.append(tag.rpartition(":")[2])
        if path[-1] == "Answer":
            name.clear()

    def end(_):
        path.pop()

    def words(text):
        if path[-1] == "QuestionIdentifier":
            name.append(text)
        elif path[-1] == "FreeText":
            key = "".join(name).strip()
            found[key] = found.get(key, "") + text

    def refuse(*_):
        raise ValueError("a document type declaration")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = begin, end, words
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(answer, True)
    except (expat.ExpatError, ValueError):
        return ""
    return found.get("receipt", "").strip()[:40]


class MTurkService(Service):
    """One account at one environment.

    A task is what was published together: HITs of at most nine assignments, whose annotation begins with the task's name. The id of a
    HIT that was made by hand is a task too.
    """

    can = frozenset({"publish", "stop", "extend", "approve", "reject", "reverse", "bonus", "bar"})

    def __init__(self, environment: str, wanted: Mapping[str, Any], key_id: str, key: str):
        self.environment, self.wanted = environment, wanted
        self.client = client_of(environment, key_id, key)

    def _call(self, operation: str, **values) -> dict[str, Any]:
        with in_our_words():
            return getattr(self.client, operation)(**values)

    def _all(self, operation: str, key: str, **values) -> Iterator[dict[str, Any]]:
        with in_our_words():
            pages = self.client.get_paginator(operation).paginate(PaginationConfig={"PageSize": PAGE}, **values)
            for page in pages:
                yield from page.get(key, ())

    # Reading

    def balance(self) -> Decimal:
        return Decimal(self._call("get_account_balance")["AvailableBalance"])

    def funds(self) -> Funds:
        return Funds(self.balance(), CURRENCY)

    def check(self) -> str:
        return f"Mechanical Turk, {self.environment}: {self.balance():.2f} USD available"

    def hits(self, task: str) -> list[dict[str, Any]]:
        """The HITs of a task, in the order of their annotations."""
        if not task.startswith("heval-"):
            return [self._call("get_hit", HITId=task)["HIT"]]
        every = self._all("list_hits", "HITs")
        mine = [hit for hit in every if hit.get("RequesterAnnotation", "").startswith(f"{task}:")]
        return sorted(mine, key=lambda hit: hit["RequesterAnnotation"])

    def submissions(self, task):
        for hit in self.hits(task):
            asked = {"HITId": hit["HITId"], "AssignmentStatuses": list(STATES)}
            for assignment in self._all("list_assignments_for_hit", "Assignments", **asked):
                yield self._seen(assignment)

    def submission(self, submission):
        """None also for one that was accepted, returned or abandoned: the service shows these to nobody."""
        try:
            return self._seen(self._call("get_assignment", AssignmentId=submission)["Assignment"])
        except Refused as refused:
            if "does not exist" in str(refused):
                return None
            raise

    def _seen(self, assignment: Mapping[str, Any]) -> Seen:
        word = assignment["AssignmentStatus"]
        return Seen(
            task=assignment["HITId"], submission=assignment["AssignmentId"], person=assignment["WorkerId"],
            state=STATES.get(word, UNKNOWN), word=word, receipt=receipt_in(assignment.get("Answer") or ""),
            started_at=assignment.get("AcceptTime"), submitted_at=assignment.get("SubmitTime"),
            decided_at=assignment.get("ApprovalTime") or assignment.get("RejectionTime"),
            decides_itself_at=assignment.get("AutoApprovalTime"),
        )  # fmt: skip

    # Publishing

    def publish(self, values, token):
        """As many HITs of at most nine as the places need, of one type. Sent again it makes those that are missing."""
        task = f"heval-{digest(token, length=24)}"
        reward, places = self._reward(values), int(values["places"])
        there = {hit["RequesterAnnotation"] for hit in self.hits(task)}
        parts = hits_for(places)
        missing = [n for n, _ in enumerate(parts) if self._annotation(task, token, n) not in there]
        self._afford(reward, sum(parts[n] for n in missing))
        if missing:
            kind = self._type(values, reward)
            asked = question.question_xml(values["url"])
            if self.wanted.get("variant") == "link":
                from . import MTurk, MTurkSandbox

                door = {"live": MTurk, "sandbox": MTurkSandbox}[self.environment]
                asked = question.survey_link_xml(values["url"], f"{next(iter(door.hosts))}/mturk/externalSubmit")
            for n in missing:
                self._hit(kind, asked, parts[n], task, token, n)
        return {"task": task, "hits": [hit["HITId"] for hit in self.hits(task)]}

    def _reward(self, values) -> Decimal:
        if (currency := values.get("currency") or CURRENCY) != CURRENCY:
            raise Refused(f"Mechanical Turk pays in {CURRENCY}, not in {currency}.")
        return Decimal(values["reward"])

    def _afford(self, reward: Decimal, places: int, of_hit: int = PER_HIT) -> None:
        """``of_hit``: how many assignments a HIT has, by which the fee goes. Refused before anything is made: a HIT that cannot be paid is refused by the service in the middle of a study."""
        needed = (reward + fee_of(reward, of_hit)) * places
        if places and needed > (held := self.balance()):
            raise Refused(f"{places} places cost {needed:.2f} USD with fees, and the account has {held:.2f} USD.")

    def _type(self, values, reward: Decimal) -> str:
        asked = {
            "Title": values["title"][:LONGEST_TITLE], "Description": values["description"][:LONGEST_DESCRIPTION],
            "Reward": f"{reward:.2f}", "AutoApprovalDelayInSeconds": DECIDES_ITSELF_AFTER,
            "AssignmentDurationInSeconds": max(3 * 60 * int(values.get("minutes") or 0), LEAST_DURATION),
            "QualificationRequirements": self._requirements(values.get("lists") or ()),
        }  # fmt: skip
        if keywords := self.wanted.get("keywords"):
            asked["Keywords"] = keywords
        return self._call("create_hit_type", **asked)["HITTypeId"]

    def _requirements(self, lists) -> list[dict[str, Any]]:
        """Who may see and accept. In the sandbox nobody has a record, so nothing is demanded of it."""
        found = [
            {"QualificationTypeId": self._list(name), "Comparator": "DoesNotExist", "ActionsGuarded": "DiscoverPreviewAndAccept"}
            for name in lists
        ]  # fmt: skip
        if self.environment == "live":
            if countries := [code.strip() for code in (self.wanted.get("countries") or "").split(",") if code.strip()]:
                places = [{"Country": code} for code in countries]
                found.append({"QualificationTypeId": LOCALE, "Comparator": "In", "LocaleValues": places, "ActionsGuarded": "DiscoverPreviewAndAccept"})  # fmt: skip
            if percent := self.wanted.get("approved_percent"):
                found.append({"QualificationTypeId": APPROVED_SHARE, "Comparator": "GreaterThanOrEqualTo", "IntegerValues": [percent], "ActionsGuarded": "PreviewAndAccept"})  # fmt: skip
        return found

    @staticmethod
    def _annotation(task: str, token: str, n: int) -> str:
        return f"{task}:{digest(token, length=12)}.{n:04d}"

    def _hit(self, kind: str, asked: str, places: int, task: str, token: str, n: int) -> None:
        try:
            self._call(
                "create_hit_with_hit_type", HITTypeId=kind, Question=asked, MaxAssignments=places, LifetimeInSeconds=LIFETIME,
                RequesterAnnotation=self._annotation(task, token, n), UniqueRequestToken=digest(token, "hit", str(n), length=64),
            )  # fmt: skip
        except (Refused, Unclear):
            # It may be there: the package itself sends again what got no answer.
            if not any(hit["RequesterAnnotation"] == self._annotation(task, token, n) for hit in self.hits(task)):
                raise

    def stop(self, values, token):
        """Nobody new. Who has accepted may go on and submit."""
        for hit in self._open(values["task"]):
            self._call("update_expiration_for_hit", HITId=hit["HITId"], ExpireAt=CLOSED_AT)
        if left := len(self._open(values["task"])):
            raise Unclear(f"{left} HITs are still open.")
        return {}

    def _open(self, task: str) -> list[dict[str, Any]]:
        now = datetime.now(UTC)
        return [hit for hit in self.hits(task) if hit["Expiration"] > now]

    def extend(self, values, token):
        """Further places: in new HITs of the same type, so that each keeps the lower fee. A HIT made by hand is enlarged itself."""
        task = values["task"]
        hits = self.hits(task)
        if not hits:
            raise Refused("There is no HIT of this task any more; HITs are deleted after 120 days.")
        first = hits[0]
        reward, places = Decimal(first["Reward"]), self._further(hits, task, token, int(values["places"]))
        if places <= 0:
            return {"task": task}
        if not task.startswith("heval-"):
            if first["MaxAssignments"] <= PER_HIT < first["MaxAssignments"] + places:
                raise Refused(
                    f"A HIT made for {first['MaxAssignments']} assignments cannot be enlarged beyond {PER_HIT}. Publish anew."
                )
            self._afford(reward, places, first["MaxAssignments"] + places)
            self._call(
                "create_additional_assignments_for_hit", HITId=task, NumberOfAdditionalAssignments=places,
                UniqueRequestToken=digest(token, "more", length=64),
            )  # fmt: skip
            return {"task": task}
        there = {hit["RequesterAnnotation"] for hit in hits}
        parts = hits_for(places)
        missing = [n for n, _ in enumerate(parts) if self._annotation(task, token, n) not in there]
        self._afford(reward, sum(parts[n] for n in missing))
        for n in missing:
            self._hit(first["HITTypeId"], first["Question"], parts[n], task, token, n)
        return self._made(task, token, places, {"task": task}) or {"task": task}

    def _further(self, hits: list[dict[str, Any]], task: str, token: str, wanted: int) -> int:
        """How many places an order adds, so that there are ``wanted`` in all: those that it has made itself do not count."""
        mine = f"{task}:{digest(token, length=12)}."
        return wanted - sum(
            hit["MaxAssignments"] for hit in hits if not hit.get("RequesterAnnotation", "").startswith(mine)
        )

    # Deciding

    def approve(self, values, token):
        return self._decide(values, APPROVED, "approve_assignment", (SUBMITTED,))

    def reject(self, values, token):
        if not (values.get("message") or "").strip():
            raise Refused("Mechanical Turk rejects nothing without a message to the worker.")
        return self._decide(values, REJECTED, "reject_assignment", (SUBMITTED,))

    def reverse(self, values, token):
        return self._decide(values, APPROVED, "approve_assignment", (REJECTED,), OverrideRejection=True)

    def _decide(self, values, to: str, operation: str, allowed, **more):
        """Read, decide, and where that is refused read again: somebody else, or our first try, may have decided."""
        seen = self._theirs(values)
        if seen.state == to:
            return {"word": seen.word}
        if seen.state not in allowed:
            raise Refused(f"It is {seen.word.lower()} already.")
        if words := (values.get("message") or "").strip():
            more["RequesterFeedback"] = words
        try:
            self._call(operation, AssignmentId=values["submission"], **more)
        except Refused:
            if self._theirs(values).state != to:
                raise
        return {}

    def _theirs(self, values) -> Seen:
        """The submission, of that person: the id alone may name another's work by now."""
        seen = self.submission(values["submission"])
        if seen is None:
            raise Refused("Mechanical Turk shows no submission under this id: it was not sent, or was returned.")
        if seen.person != values["person"]:
            raise Refused("This assignment is another worker's by now. Nothing was done.")
        return seen

    # Paying and keeping out

    def bonus(self, values, token):
        """Once for a token. The reason carries its mark, by which a payment is found whose answer was lost."""
        amount = self._reward({"currency": values.get("currency"), "reward": values["amount"]})
        if self._paid(values, token):
            return {}
        try:
            self._call(
                "send_bonus", WorkerId=values["person"], AssignmentId=values["submission"], BonusAmount=f"{amount:.2f}",
                Reason=f"{values['reason']} {self._mark(token)}", UniqueRequestToken=digest(token, "bonus", length=64),
            )  # fmt: skip
        except (Refused, Unclear):
            if not self._paid(values, token):
                raise
        return {}

    @staticmethod
    def _mark(token: str) -> str:
        return f"[{digest(token, length=12)}]"

    def _paid(self, values, token: str) -> bool:
        payments = self._all("list_bonus_payments", "BonusPayments", AssignmentId=values["submission"])
        return any(one["WorkerId"] == values["person"] and self._mark(token) in one["Reason"] for one in payments)

    def bar(self, values, token):
        """One worker after the other: the service takes no more at once. Who is on the list stays on it."""
        name = self._list(values["list"]) if values["people"] else ""
        for worker in values["people"]:
            # They are not written to: being kept out of a repeat is no news.
            self._call(
                "associate_qualification_with_worker",
                QualificationTypeId=name,
                WorkerId=worker,
                IntegerValue=1,
                SendNotification=False,
            )
        return {}

    def _list(self, name: str) -> str:
        """The qualification of that name, made where there is none. Searching is not exact and lags behind: names are compared here."""
        if found := self._named(name):
            return found
        try:
            made = self._call(
                "create_qualification_type", Name=name, QualificationTypeStatus="Active",
                Description="Who has taken part already. It only keeps people from being asked twice.",
            )  # fmt: skip
        except (Refused, Unclear):
            if found := self._named(name):
                return found
            raise
        return made["QualificationType"]["QualificationTypeId"]

    def _named(self, name: str) -> str:
        asked = {"Query": name, "MustBeRequestable": False, "MustBeOwnedByCaller": True}
        every = self._all("list_qualification_types", "QualificationTypes", **asked)
        return next((one["QualificationTypeId"] for one in every if one["Name"] == name), "")

    # What came of an order whose answer was lost

    def look(self, order):
        values, token = order.values, order.token
        match order.operation:
            case "publish":
                task = f"heval-{digest(token, length=24)}"
                return self._made(task, token, int(values["places"]), {"task": task})
            case "extend" if values["task"].startswith("heval-"):
                further = self._further(self.hits(values["task"]), values["task"], token, int(values["places"]))
                return self._made(values["task"], token, further, {"task": values["task"]})
            case "extend":
                return None  # sent again with its token it is done once
            case "stop":
                return None if self._open(values["task"]) else {}
            case "approve" | "reverse":
                return {} if self._theirs(values).state == APPROVED else None
            case "reject":
                return {} if self._theirs(values).state == REJECTED else None
            case "bonus":
                return {} if self._paid(values, token) else None
            case "bar":
                return None  # doing it twice is doing it once
        return super().look(order)

    def _made(self, task: str, token: str, places: int, result: dict[str, Any]) -> dict[str, Any] | None:
        """The result where all HITs are there; None also where some are missing: sent again, the order makes only those."""
        hits = [hit for hit in self.hits(task) if f":{digest(token, length=12)}." in hit["RequesterAnnotation"]]
        if len(hits) < len(hits_for(places)):
            return None
        return result | {"hits": [hit["HITId"] for hit in hits]}
