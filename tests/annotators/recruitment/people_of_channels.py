"""How people come by each channel: their addresses, and the panel's ids of them."""

from collections.abc import Callable
from dataclasses import dataclass, field

from annotators.models import (
    Recruitment,
)
from annotators.recruitment.channels import OUTCOMES
from annotators.recruitment.channels.generic import invitation_token


@dataclass
class Case:
    """A link of one channel. ``query``: the parameters of the n-th person's address, and the panel's id of them."""

    slug: str
    query: Callable[[Recruitment, int], tuple[dict[str, str], str]]
    settings: dict = field(default_factory=dict)


def strange(n: int) -> str:
    """Everything that some encoding writes otherwise."""
    return f"Zoë&O'%41+\"=/\\Kq #{n}\u4e2d~marK"


def of_generic(door, n):
    return {"who": strange(n), "sess": f"session-{n}", "task": "task-1"}, strange(n)


def of_generic_by_person(door, n):
    """A panel that has one number for all of it."""
    return {"who": strange(n)}, strange(n)


def of_connect(door, n):
    return {
        "participantId": f"MARKED_pErson-{n}Xq",
        "assignmentId": f"ASSIGN000{n}",
        "projectId": "PROJECT1",
    }, f"MARKED_pErson-{n}Xq"


def of_prolific(door, n):
    person = f"5fac0ffee{n:02}badcafe0dd1e5a"[:24]
    return {"PROLIFIC_PID": person.upper(), "STUDY_ID": "a" * 24, "SESSION_ID": f"{n:024x}".replace("0", "b")}, person


def of_external(door, n):
    ids = {"assignmentId": f"3ASSIGNMENT{n}", "hitId": "3HIT1", "workerId": f"AMARKED{n}WORKERXQ"}
    return ids | {"turkSubmitTo": "https://www.mturk.com"}, ids["workerId"]


def of_another_site(door, n):
    ids = {"assignmentId": f"asg:{n}", "hitId": "task.1", "workerId": f"mark.ed:{n}@w-Xq"}
    return ids | {"turkSubmitTo": SITE}, ids["workerId"]


def of_sona(door, n):
    return {"survey_code": str(7391840 + n)}, str(7391840 + n)


def of_invitation(door, n):
    return {"i": invitation_token(door.key, n)}, invitation_token(door.key, n)


def of_open_link(door, n):
    """Nobody is known: what a panel adds to the address by itself is kept nowhere either."""
    return {"PROLIFIC_PID": strange(n)}, strange(n)


SITE = "https://tasks.example.org"
BACK = {
    f"return_{outcome}": f"https://panel.example.org/{outcome}?p={{person}}&s={{session}}&c={{code}}"
    for outcome in OUTCOMES
}
FILE = {"file_person": "id"}
GENERIC = {"person_parameter": "who", "task_parameter": "task", **FILE, **BACK}
CASES = {
    "generic": Case("generic", of_generic, GENERIC | {"session_parameter": "sess", "file_session": "work"}),
    "generic, by person": Case("generic", of_generic_by_person, GENERIC | {"session_parameter": "who"}),
    "connect": Case("connect", of_connect, {"return_complete": "CODE-1", **FILE}),
    "prolific": Case("prolific", of_prolific, {f"code_{outcome}": f"CODE{n}XYZ" for n, outcome in enumerate(OUTCOMES)}),
    "mturk": Case("mturk", of_external, {"submits": ["withdrawn", "screened_out"]}),
    "mturk_sandbox": Case("mturk_sandbox", of_external, {"variant": "link"}),
    "external_question": Case("external_question", of_another_site, {"site": SITE}),
    "sona": Case("sona", of_sona, {"site": "yourschool.sona-systems.com", "experiment_id": "123"}),
    "invitation": Case("invitation", of_invitation, {"people": 20}),
    "open_link": Case("open_link", of_open_link),
}
