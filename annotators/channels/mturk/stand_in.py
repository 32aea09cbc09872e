"""Mechanical Turk's requester service on this machine: its wire protocol, the rules that a study meets, and faults on demand.

What stands for the service is its model as botocore ships it. Codes of errors that the model does not name are ours: callers look at
what came of an order, never at a code. A worker's part is played by ``accept``, ``give_back`` and ``submit``.
"""

import json
import threading
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from html import escape, unescape
from itertools import count
from urllib.parse import urlencode
from xml.etree import ElementTree

from ...panels import EXPIRED, RETURNED, WORKING
from ...panels.stand_in import StandIn, Visit

NAMESPACE = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2005-10-01/QuestionFormAnswers.xsd"
SHARE = Decimal("1.2")
ORDERED = {
    "publish": "CreateHITWithHITType", "look": "ListAssignmentsForHIT", "approve": "ApproveAssignment", "bonus": "SendBonus",
}  # fmt: skip


class Wrong(Exception):
    """What the service refuses, with its words."""

    def __init__(self, words: str, code: str = "AWS.MechanicalTurk.InvalidParameterValue"):
        super().__init__(words)
        self.code = code


def now() -> float:
    return datetime.now(UTC).timestamp()


class MTurkStandIn(StandIn):
    """``faults``: for an operation the kinds of its next calls: ok, drop_before, drop_after, throttle or fault."""

    secrets = {"key_id": "A-REHEARSAL", "key": "a-key-of-nobody"}

    def __init__(self):
        self.begin()

    def begin(self):
        """As if nothing had ever been asked."""
        self.hits, self.kinds, self.lists, self.listed = {}, {}, {}, {}
        self.assignments, self.bonuses, self.tokens = {}, [], {}
        self.left: dict[str, str] = {}
        self.calls, self.asked = Counter(), []
        self.faults: dict[str, list[str]] = {}
        self.balance = Decimal("10000")
        self.numbers, self.lock = count(1), threading.Lock()

    def name(self, prefix: str) -> str:
        return f"{prefix}{next(self.numbers):026d}"

    # The wire

    def handle(self, handler):
        operation = handler.headers["X-Amz-Target"].removeprefix("MTurkRequesterServiceV20170117.")
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        scope = handler.headers["Authorization"]
        if "/us-east-1/mturk-requester/aws4_request" not in scope or "SignedHeaders=content-type;host;" not in scope:
            words = {"__type": "InvalidSignatureException", "Message": f"Not signed for this service: {scope}"}
            return self.reply(handler, 400, words)
        with self.lock:
            self.asked.append((operation, body))
            fault = (self.faults.get(operation) or ["ok"]).pop(0) if self.faults.get(operation) else "ok"
            if fault in ("throttle", "fault"):
                kind = {"throttle": "ThrottlingException", "fault": "ServiceFault"}[fault]
                return self.reply(
                    handler, 400 if fault == "throttle" else 500, {"__type": kind, "Message": "Later, please."}
                )
            if fault == "drop_before":
                return self.hang_up(handler)
            try:
                status, answer = 200, getattr(self, operation)(body)
                self.calls[operation] += 1
            except Wrong as wrong:
                words = f"{wrong} ({int(now() * 1000)})"
                status, answer = 400, {"__type": "RequestError", "Message": words, "TurkErrorCode": wrong.code}
            if fault == "drop_after":
                return self.hang_up(handler)
            return self.reply(handler, status, answer)

    def hang_up(self, handler):
        handler.close_connection = True
        handler.connection.shutdown(2)

    def reply(self, handler, status: int, answer: dict):
        words = json.dumps(answer).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/x-amz-json-1.1")
        handler.send_header("Content-Length", str(len(words)))
        handler.end_headers()
        handler.wfile.write(words)

    def page(self, asked: dict, key: str, rows) -> dict:
        rows, start, size = list(rows), int(asked.get("NextToken") or 0), asked.get("MaxResults", 10)
        part = rows[start : start + size]
        following = {"NextToken": str(start + size)} if start + size < len(rows) else {}
        return {key: part, "NumResults": len(part)} | following

    def once(self, asked: dict, made: str, code: str):
        """A token that was used is refused, with what it made."""
        token = asked.get("UniqueRequestToken")
        if not token or len(token) > 64:
            raise Wrong("Each write has a token of its own, of at most 64 characters.")
        if token in self.tokens:
            raise Wrong(f'"{self.tokens[token]}" was made with this token already.', code)
        self.tokens[token] = made

    # The worker

    def accept(self, hit: str, worker: str, assignment: str = "") -> str:
        """Gives the assignment's id: a new one, or one that somebody gave back."""
        name = assignment or self.name("3A")
        if name in self.assignments and self.assignments[name].get("AssignmentStatus"):
            raise Wrong("It was submitted.")
        self.assignments[name] = {"AssignmentId": name, "WorkerId": worker, "HITId": hit, "AcceptTime": now()}
        return name

    def submit(self, fields: dict[str, str]) -> None:
        """What the submit host does with the last form."""
        mine = self.assignments[fields["assignmentId"]]
        others = {name: value for name, value in fields.items() if name != "assignmentId"}
        if not others:
            raise Wrong("HIT was not submitted correctly: there is no field besides assignmentId.")
        if mine.get("AssignmentStatus"):
            raise Wrong("It was submitted.")
        cells = "".join(
            f"<Answer><QuestionIdentifier>{escape(name)}</QuestionIdentifier><FreeText>{escape(value)}</FreeText></Answer>"
            for name, value in others.items()
        )
        delay = self.hits[mine["HITId"]]["AutoApprovalDelayInSeconds"]
        mine |= {
            "AssignmentStatus": "Submitted", "SubmitTime": now(), "AutoApprovalTime": now() + delay,
            "Answer": f'<?xml version="1.0" encoding="UTF-8"?><QuestionFormAnswers xmlns="{NAMESPACE}">{cells}</QuestionFormAnswers>',
        }  # fmt: skip

    # The worker, as a rehearsal asks for it

    def person(self, number):
        return f"A{number:013d}"

    def _door(self, hit: str) -> tuple[str, str]:
        """The study's address in a HIT's question, and where its last form goes."""
        words = ElementTree.fromstring(self.hits[hit]["Question"])  # noqa: S314 - our own question, read back
        if (found := next((one.text for one in words.iter() if one.tag.endswith("ExternalURL")), None)) is not None:
            return found, ""
        page = next(one.text for one in words.iter() if one.tag.endswith("HTMLContent"))
        return unescape(page.partition('id="study" href="')[2].partition('"')[0]), page.partition('action="')[
            2
        ].partition('"')[0]

    def _opened(self, hit: str, **ids) -> str:
        address, _ = self._door(hit)
        return f"{address}{'&' if '?' in address else '?'}{urlencode(ids)}"

    def preview(self):
        hit = next(iter(self.hits))
        return self._opened(hit, assignmentId="ASSIGNMENT_ID_NOT_AVAILABLE", hitId=hit)

    def accepted(self, person):
        held = Counter(one["HITId"] for name, one in self.assignments.items() if name not in self.left)
        open_now = [
            hit for hit, row in self.hits.items() if held[hit] < row["MaxAssignments"] and row["Expiration"] > now()
        ]
        if not open_now:
            raise Wrong("No HIT has an assignment left.")
        session = self.accept(open_now[0], person)
        address = self._opened(
            open_now[0], assignmentId=session, hitId=open_now[0], workerId=person, turkSubmitTo="https://www.mturk.com"
        )
        return Visit(person, session, address)

    def sent(self, visit, way):
        _, posts_to = self._door(self.assignments[visit.session]["HITId"])
        fields = dict(way.fields)
        if posts_to and way.code:  # typed into the HIT's own form
            fields = {"assignmentId": visit.session, "receipt": way.code}
        elif not way.url.endswith("/mturk/externalSubmit"):
            return "The last page submits nothing: the person has to return the HIT."
        if fields.get("assignmentId") != visit.session:
            return "The last form names another assignment than the one that was accepted."
        try:
            self.submit(fields)
        except Wrong as wrong:
            return str(wrong)
        return ""

    def given_back(self, visit):
        self.left[visit.session] = RETURNED

    def run_out(self, visit):
        self.left[visit.session] = EXPIRED

    def standing(self, visit):
        word = self.assignments[visit.session].get("AssignmentStatus")
        return word.lower() if word else self.left.get(visit.session, WORKING)

    def bonus(self, visit):
        return sum(
            (Decimal(one["BonusAmount"]) for one in self.bonuses if one["AssignmentId"] == visit.session), Decimal(0)
        )

    def tasks(self):
        """HITs that were made together are one."""
        mine = {
            row["RequesterAnnotation"].partition(":")[0] or hit
            for hit, row in self.hits.items()
            if row["Expiration"] > now()
        }
        return len(mine)

    def loses_reply(self, operation):
        self.faults.setdefault(ORDERED[operation], []).append("drop_after")

    def throttles(self, operation):
        # The package itself tries five times before it says so.
        self.faults.setdefault(ORDERED[operation], []).extend(["throttle"] * 5)

    def decide_itself(self, assignment: str) -> None:
        """The panel's own timer."""
        self.assignments[assignment] |= {"AssignmentStatus": "Approved", "ApprovalTime": now()}

    # HITs

    def CreateHITType(self, asked):
        if len(asked["Reward"].partition(".")[2]) > 2 or not asked["Title"]:
            raise Wrong("The reward has too many places, or the title is empty.")
        alike = json.dumps(asked, sort_keys=True)
        kind = next((name for name, (known, _) in self.kinds.items() if known == alike), None) or self.name("3T")
        self.kinds[kind] = (alike, asked)
        return {"HITTypeId": kind}

    def CreateHITWithHITType(self, asked):
        hit = self.name("3H")
        self.once(asked, hit, "AWS.MechanicalTurk.HitAlreadyExists")
        shared = self.kinds[asked["HITTypeId"]][1]
        self.hits[hit] = {name: value for name, value in shared.items() if name != "QualificationRequirements"} | {
            "HITId": hit, "HITTypeId": asked["HITTypeId"], "CreationTime": now(), "Question": asked["Question"],
            "HITStatus": "Assignable", "MaxAssignments": asked["MaxAssignments"], "Expiration": now() + asked["LifetimeInSeconds"],
            "RequesterAnnotation": asked.get("RequesterAnnotation", ""),
        }  # fmt: skip
        return {"HIT": self.hits[hit]}

    def GetHIT(self, asked):
        if asked["HITId"] not in self.hits:
            raise Wrong(f"Hit {asked['HITId']} does not exist.")
        return {"HIT": self.hits[asked["HITId"]]}

    def ListHITs(self, asked):
        return self.page(asked, "HITs", self.hits.values())

    def UpdateExpirationForHIT(self, asked):
        self.GetHIT(asked)["HIT"]["Expiration"] = asked["ExpireAt"]
        return {}

    def CreateAdditionalAssignmentsForHIT(self, asked):
        hit = self.GetHIT(asked)["HIT"]
        wanted = hit["MaxAssignments"] + asked["NumberOfAdditionalAssignments"]
        if hit["MaxAssignments"] < 10 <= wanted:
            code = "AWS.MechanicalTurk.InvalidMaximumAssignmentsIncrease"
            raise Wrong("A HIT with fewer than ten assignments cannot have ten or more.", code)
        self.once(asked, asked["HITId"], "AWS.MechanicalTurk.RequestAlreadyProcessed")
        hit["MaxAssignments"] = wanted
        return {}

    # Submissions

    def GetAssignment(self, asked):
        found = self.assignments.get(asked["AssignmentId"], {})
        if not found.get("AssignmentStatus"):
            raise Wrong(f"Assignment {asked['AssignmentId']} does not exist.")
        return {"Assignment": found, "HIT": self.hits[found["HITId"]]}

    def ListAssignmentsForHIT(self, asked):
        rows = [one for one in self.assignments.values() if one["HITId"] == asked["HITId"]]
        return self.page(
            asked, "Assignments", [one for one in rows if one.get("AssignmentStatus") in asked["AssignmentStatuses"]]
        )

    def decide(self, asked, to: str, moment: str, allowed):
        found = self.GetAssignment(asked)["Assignment"]
        if found["AssignmentStatus"] not in allowed:
            raise Wrong(
                f"This operation can be called with a status of: {', '.join(allowed)}",
                "AWS.MechanicalTurk.InvalidAssignmentState",
            )
        found |= {"AssignmentStatus": to, moment: now(), "RequesterFeedback": asked.get("RequesterFeedback", "")}
        return {}

    def ApproveAssignment(self, asked):
        allowed = ("Submitted", "Rejected") if asked.get("OverrideRejection") else ("Submitted",)
        self.decide(asked, "Approved", "ApprovalTime", allowed)
        self.balance -= Decimal(self.GetAssignment(asked)["HIT"]["Reward"]) * SHARE
        return {}

    def RejectAssignment(self, asked):
        return self.decide(asked, "Rejected", "RejectionTime", ("Submitted",))

    # Money and lists

    def GetAccountBalance(self, asked):
        return {"AvailableBalance": f"{self.balance:.2f}"}

    def SendBonus(self, asked):
        if self.GetAssignment(asked)["Assignment"]["WorkerId"] != asked["WorkerId"]:
            raise Wrong("This worker did not submit this assignment.")
        self.once(asked, "the bonus", "AWS.MechanicalTurk.RequestAlreadyProcessed")
        kept = {name: asked[name] for name in ("WorkerId", "AssignmentId", "BonusAmount", "Reason")}
        self.bonuses.append(kept | {"GrantTime": now()})
        self.balance -= Decimal(asked["BonusAmount"]) * SHARE
        return {}

    def ListBonusPayments(self, asked):
        return self.page(
            asked, "BonusPayments", [one for one in self.bonuses if one["AssignmentId"] == asked["AssignmentId"]]
        )

    def CreateQualificationType(self, asked):
        if asked["Name"] in {one["Name"] for one in self.lists.values()}:
            raise Wrong("You have already created a QualificationType with this name.")
        name = self.name("3Q")
        self.lists[name] = {
            "QualificationTypeId": name, "CreationTime": now(), "IsRequestable": True, "AutoGranted": False,
        } | {key: asked[key] for key in ("Name", "Description", "QualificationTypeStatus")}  # fmt: skip
        return {"QualificationType": self.lists[name]}

    def ListQualificationTypes(self, asked):
        rows = [one for one in self.lists.values() if asked["Query"].lower() in one["Name"].lower()]
        return self.page(asked, "QualificationTypes", rows)

    def AssociateQualificationWithWorker(self, asked):
        if asked["SendNotification"] is not False:
            raise Wrong("Workers are not to be written to.")
        self.listed[asked["QualificationTypeId"], asked["WorkerId"]] = asked["IntegerValue"]
        return {}
