"""The states of a study in which each step is allowed. The steps and their buttons both use this table."""

from studies.models import Study

State = Study.State
OPEN = frozenset(Study.RUNNING)
STATES = {
    "launch": {State.DRAFT},
    "pause": {State.LAUNCHED},
    "resume": {State.PAUSED},
    "draw more": OPEN,
    "amend": OPEN,
    "close": OPEN,
    "unblind": OPEN | {State.CLOSING},
    "clone": set(State),
    "archive": {State.DRAFT, State.CLOSED},
    "restore": {State.DRAFT, State.CLOSED},
    "delete draft": {State.DRAFT},
}


def is_lifecycle_step_allowed(step: str, study: Study) -> bool:
    """Return whether the study can take this step now."""
    if step in ("clone", "delete draft"):
        return study.state in STATES[step]
    if bool(study.archived_at) != (step == "restore"):
        return False
    return study.state in STATES[step] and not (step == "unblind" and study.unblinded_at)
