"""Stored values about panels, the same for every panel."""

from typing import Any

# The channels by slug.
#
# The modules in ``annotators.recruitment.channels`` register themselves, so models and places can use channels
# without an import.


REGISTRY: dict[str, Any] = {}


def choices() -> list[tuple[str, str]]:
    return [(channel.slug, channel.label) for channel in REGISTRY.values()]


# The states of a submission at a panel, in heval's words.
WORKING = "working"  # accepted, not sent
SUBMITTED = "submitted"  # sent, not decided
APPROVED = "approved"
REJECTED = "rejected"
RETURNED = "returned"  # given back by the person
EXPIRED = "expired"  # the panel's time ran out
SCREENED_OUT = "screened_out"
UNKNOWN = "unknown"  # heval does not know the panel's word, so nothing changes
# The maximum length of a panel's id of a person, a submission or a task.
MAX_EXTERNAL_ID_LENGTH = 64
SUBMISSION_STATES = (WORKING, SUBMITTED, APPROVED, REJECTED, RETURNED, EXPIRED, SCREENED_OUT, UNKNOWN)

# The operations of orders, with the values that each order carries. Amounts are text with two decimal places.
OPERATIONS = {
    "publish": (
        "title",
        "description",
        "url",
        "reward",
        "currency",
        "minutes",
        "places",
        "name",
        "lists",
        "thresholds",
    ),
    "stop": ("task",),
    "extend": ("task", "places"),  # the total number of places, so that the order is idempotent
    "approve": ("task", "submission", "person", "message"),
    "reject": ("task", "submission", "person", "category", "message"),
    # Approve rejected work. No longer sent to any panel; kept for stored orders.
    "reverse": ("task", "submission", "person", "message"),
    "bonus": ("task", "submission", "person", "amount", "currency", "reason"),
    "screen_out": ("task", "submission", "person", "amount", "currency"),
    "request_return": ("task", "submission", "person", "message"),
    "bar": ("people", "list"),  # keep people out of tasks that use this list; create the list if it is missing
}
