"""What can be done on a board: submit outputs, wait for their score, and compare it with a baseline."""

import time
from collections.abc import Mapping
from typing import Any

from .calls import ClientError, NotReachable, Pause, Refused, Steps, TimedOut, WrongUse, ask
from .operations import OPEN_STATES, POLL_SECONDS, WAIT_SECONDS
from .tables import Table, as_upload

CHECK_SECONDS = 3.0


def submit(
    board: str, outputs: Table, fields: Mapping[str, Any], request_key: str = "", timeout: float = WAIT_SECONDS
) -> Steps[dict[str, Any]]:
    """Submit the outputs of one system, and return the submission. A repeat with the same ``request_key`` stores nothing new."""
    at, end = f"boards/{board}/", time.monotonic() + timeout
    sent = {name: value for name, value in fields.items() if value not in (None, "")}
    made = yield from ask("POST", f"{at}submissions/", form=sent, file=as_upload(outputs), request_key=request_key)
    if "check" not in made:
        return made
    while made["state"] in OPEN_STATES:
        if time.monotonic() > end:
            raise TimedOut("The check has not ended yet. Run the same command again to wait on.")
        yield Pause(CHECK_SECONDS, "The site checks the images.")
        made = yield from ask("GET", f"{at}checks/{made['check']}/")
    if made["submission"] is None:
        raise Refused.of(400, {"title": "Nothing was stored.", "errors": made["errors"]})
    return (yield from ask("GET", f"{at}submissions/{made['submission']}/"))


def find_submission(board: str, name: str) -> Steps[dict[str, Any]]:
    """Return the submission with this name, or with this number."""
    found = (yield from ask("GET", f"boards/{board}/submissions/", parameters={"name": name}))["results"]
    if not found and name.isdecimal():
        return (yield from ask("GET", f"boards/{board}/submissions/{name}/"))
    if not found:
        raise WrongUse(f"The board has no submission “{name}” that you can see. Name another.")
    return found[0]


def wait_for_score(
    board: str, number: int, timeout: float = WAIT_SECONDS, poll: float = POLL_SECONDS
) -> Steps[dict[str, Any]]:
    """Wait until a snapshot has the score of a submission, and return the submission. Raise TimedOut."""
    end = time.monotonic() + timeout
    while True:
        try:
            one = yield from ask("GET", f"boards/{board}/submissions/{number}/")
        except NotReachable as error:
            reason = f"{error} Waiting goes on."
        else:
            if one["state"] == "scored":
                return one
            if one["state"] == "withdrawn":
                raise ClientError("The submission was withdrawn, so it gets no score. Submit it again.")
            reason = "It waits for the next round." if one["state"] == "waiting" else f"It is in round {one['round']}."
        if time.monotonic() + poll > end:
            raise TimedOut(
                f"Submission {number} has no score yet. It keeps its place. Run the same command again to wait on."
            )
        yield Pause(poll, reason)


def compare(board: str, number: int, baseline: int) -> Steps[dict[str, Any]]:
    """Return the difference of two scores with its interval."""
    return (
        yield from ask("GET", f"boards/{board}/submissions/{number}/comparison/", parameters={"baseline": baseline})
    )
