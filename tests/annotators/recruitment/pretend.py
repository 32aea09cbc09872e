"""A panel in memory that carries out each order once for its token, and fails when a test says so."""

from annotators.models import Recruitment
from annotators.models.constants import OPERATIONS
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels import (
    OrderNotReady,
    PanelBusy,
    PanelService,
    RequestRefused,
    ResultUnclear,
    SubmissionSnapshot,
)


class Pretend(PanelService):
    operations = frozenset(OPERATIONS)

    def __init__(self):
        self.done: dict[str, tuple[str, dict]] = {}  # by token
        self.given = []  # every order that arrived, carried out or not
        self.faults: list[str] = []  # of the next orders: "", "refused", "busy", "not yet", "lost before", "lost after"
        self.is_forgetful = False  # cannot tell what became of an order
        self.shown: dict[str, list] = {}

    def carry_out(self, order):
        self.given.append(order)
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "refused":
            raise RequestRefused("Not in this state.")
        if fault == "busy":
            raise PanelBusy("Too many requests.", 30)
        if fault == "not yet":
            raise OrderNotReady("It is on its way.", 5)
        if fault == "lost before":
            raise ResultUnclear("The connection ended.")
        if order.token not in self.done:
            self.done[order.token] = (order.operation, dict(order.values))
        if fault == "lost after":
            raise ResultUnclear("The connection ended.")
        return {"task": f"T{len(self.done)}"} if order.operation == "publish" else {}

    def find_order_result(self, order):
        if self.is_forgetful:
            raise ResultUnclear("It cannot be told.")
        return {"task": "T1"} if order.token in self.done else None

    def submissions(self, task):
        yield from self.shown.get(task, ())


def recruitment_of(study, **columns) -> Recruitment:
    return Recruitment.objects.create(study=study, channel="generic", pool="panel", **columns)


def speaks(monkeypatch, service: PanelService) -> None:
    """The generic channel has this service as soon as a token is kept, and reads a file of lines "submission,person,state"."""
    channel = type(REGISTRY["generic"])

    def read_export(self, recruitment, text, task=""):
        rows = [line.split(",") for line in text.splitlines()]
        if wrong := [n for n, row in enumerate(rows, 1) if len(row) != 3]:
            raise ValueError(f"Row {wrong[0]} has not three columns.")
        return [SubmissionSnapshot("T", submission, person, state) for submission, person, state in rows]

    monkeypatch.setattr(channel, "secrets", {"token": "API token"})
    monkeypatch.setattr(
        channel, "service", lambda self, recruitment, secrets: service if secrets.get("token") else None
    )
    monkeypatch.setattr(channel, "publishes", True)
    monkeypatch.setattr(channel, "can_read_export_file", lambda self, recruitment: True)
    monkeypatch.setattr(channel, "read_export", read_export)
