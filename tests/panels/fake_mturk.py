"""Mechanical Turk's requester service on this machine: its wire protocol, the rules that a study meets, and faults on demand.

What stands for the service is its model as botocore ships it. Codes of errors that the model does not name are ours: callers look at
what came of an order, never at a code. A worker's part is played by ``accept``, ``give_back`` and ``submit``.
"""

import json
import threading
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count

NAMESPACE = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2005-10-01/QuestionFormAnswers.xsd"
SHARE = Decimal("1.2")


class Wrong(Exception):
    """What the service refuses, with its words."""

    def __init__(self, words: str, code: str = "AWS.MechanicalTurk.InvalidParameterValue"):
        super().__init__(words)
        self.code = code


def now() -> float:
    return datetime.now(UTC).timestamp()


class FakeMTurk:
    """``faults``: for an operation the kinds of its next calls: ok, drop_before, drop_after, throttle or fault."""

    def begin(self):
        """As if nothing had ever been asked."""
        self.hits, self.kinds, self.lists, self.listed = {}, {}, {}, {}
        self.assignments, self.bonuses, self.tokens = {}, [], {}
        self.calls, self.asked = Counter(), []
        self.faults: dict[str, list[str]] = {}
        self.balance = Decimal("10000")
        self.numbers, self.lock = count(1), threading.Lock()

    def __init__(self):
        self.begin()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # an answer goes in two writes, and the second would wait

            def log_message(self, *_):
                pass

            def do_POST(self):
                fake.serve(self)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def name(self, prefix: str) -> str:
        return f"{prefix}{next(self.numbers):026d}"

    # The wire

    def serve(self, handler):
        operation = handler.headers["X-Amz-Target"].removeprefix("MTurkRequesterServiceV20170117.")
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        scope = handler.headers["Authorization"]
        assert "/us-east-1/mturk-requester/aws4_request" in scope and "SignedHeaders=content-type;host;" in scope, scope
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
        assert token and len(token) <= 64, "a write without its token"
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
        assert asked["SendNotification"] is False, "workers are not written to"
        self.listed[asked["QualificationTypeId"], asked["WorkerId"]] = asked["IntegerValue"]
        return {}
