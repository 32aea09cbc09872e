"""Words about panels that the database stores, the same for every panel."""

# What a panel may say of a submission, in our words.
WORKING = "working"  # accepted, not sent
SUBMITTED = "submitted"  # sent, not decided
APPROVED = "approved"
REJECTED = "rejected"
RETURNED = "returned"  # given back by the person
EXPIRED = "expired"  # the panel's time ran out
SCREENED_OUT = "screened_out"
UNKNOWN = "unknown"  # a word that we do not know: nothing changes
# A panel's id of a person, a submission or a task.
MAX_EXTERNAL_ID_LENGTH = 64
SUBMISSION_STATES = (WORKING, SUBMITTED, APPROVED, REJECTED, RETURNED, EXPIRED, SCREENED_OUT, UNKNOWN)

# What may be ordered, with the values that each order carries. Amounts are text with two places, as money is written.
OPERATIONS = {
    "publish": ("title", "description", "url", "reward", "currency", "minutes", "places", "name", "lists"),
    "stop": ("task",),
    "extend": ("task", "places"),  # places in all, so that the order given twice is the order given once
    "approve": ("task", "submission", "person", "message"),
    "reject": ("task", "submission", "person", "category", "message"),
    # Approve what was rejected. No panel is given this order any more; those of links that could take it are stored.
    "reverse": ("task", "submission", "person", "message"),
    "bonus": ("task", "submission", "person", "amount", "currency", "reason"),
    "screen_out": ("task", "submission", "person", "amount", "currency"),
    "request_return": ("task", "submission", "person", "message"),
    "bar": ("people", "list"),  # keep people out of what is published with this list, which is made where there is none
}
