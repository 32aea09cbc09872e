"""The people of a rehearsal, and the expected result for each of them."""

from dataclasses import dataclass

from annotators.models.constants import APPROVED, EXPIRED, REJECTED, RETURNED, SCREENED_OUT, SUBMITTED, WORKING

# How an assignment may have ended in heval. NOTHING: there is no row.
NOTHING_STORED = "nothing stored"
FINISHED = "submitted"


@dataclass(frozen=True, slots=True)
class Role:
    """A role of people in a rehearsal. ``label`` says what these people do.

    ``site_states``: allowed states in heval. ``panel_states``: allowed states at the panel. ``classes``: allowed
    statuses in reconciliation, if the panel has a service. ``last_headings``: allowed headings of their last page; with
    an empty tuple any heading is allowed. ``has_way_back``: whether their last page must show a way back to the panel.
    """

    key: str
    label: str
    expected: str
    site_states: tuple[str, ...]
    panel_states: tuple[str, ...]
    classes: tuple[str, ...] = ()
    last_headings: tuple[str, ...] = ()
    has_way_back: bool = True

    @property
    def needs_place(self) -> bool:
        """Whether a place must be free for them."""
        return self.key not in ("never_starts", "full", "declines")


THANKS_HEADINGS = ("Thank you",)
FINISHING_ROLE = Role(
    "finishes",
    "accept and finish",
    "thanked and sent back; confirmed and approved if the panel has a service",
    (FINISHED,),
    (APPROVED,),
    ("decided",),
    THANKS_HEADINGS,
)
ROLES = (
    FINISHING_ROLE,
    Role(
        "lost_reply",
        "finish, and the reply to their last page is lost",
        "sending again is the same work: stored once, approved once",
        (FINISHED,),
        (APPROVED,),
        ("decided",),
        THANKS_HEADINGS,
    ),
    Role(
        "retakes",
        "return the task half-way, accept it again and finish",
        "they continue where they stopped, and are paid once",
        (FINISHED,),
        (APPROVED,),
        ("decided",),
        THANKS_HEADINGS,
    ),
    Role(
        "never_starts",
        "accept and never start",
        "nothing is stored for them",
        (NOTHING_STORED,),
        (EXPIRED,),
        ("left",),
        has_way_back=False,
    ),
    Role(
        "leaves",
        "leave half-way",
        "their place is free again, and their answers stay",
        ("expired", "returned"),
        (EXPIRED,),
        ("left",),
        has_way_back=False,
    ),
    Role(
        "returns",
        "return the task",
        "their place is free again, and their answers stay",
        ("expired", "returned"),
        (RETURNED,),
        ("left",),
        has_way_back=False,
    ),
    Role(
        "unsent",
        "finish here and never reach the panel",
        "their work is kept; if the panel has a service, they are listed for a person to check",
        (FINISHED,),
        (WORKING, EXPIRED),
        ("unsent",),
        THANKS_HEADINGS,
    ),
    Role(
        "screened_out",
        "answer so that they are screened out",
        "ended early, and sent back with their own code",
        ("screened_out",),
        (SUBMITTED, SCREENED_OUT, RETURNED),
        ("turned_away", "left"),
        ("This study is not for you",),
    ),
    Role(
        "full",
        "come when no place is left",
        "informed before any work",
        ("full", NOTHING_STORED),
        (SUBMITTED, SCREENED_OUT, RETURNED),
        ("turned_away", "left", "unknown"),
        ("The study is full", "No place was free", "No place right now"),
    ),
    Role(
        "rejected",
        "finish carelessly, and a person rejects them",
        "rejected only by a person's decision, with a reason",
        (FINISHED,),
        (REJECTED,),
        ("decided",),
        THANKS_HEADINGS,
    ),
    Role(
        "declines",
        "read the consent and do not agree",
        "nothing is stored about them",
        (NOTHING_STORED,),
        (SUBMITTED, SCREENED_OUT, RETURNED),
        ("unknown", "left"),
        ("You did not agree to take part",),
    ),
)
# These people finish without a check of the panel, so no one is approved there.
STATES_WITHOUT_SERVICE = {APPROVED: (SUBMITTED,), REJECTED: (SUBMITTED,)}


def choose_roles(count: int, skipped_keys: set[str]) -> list[Role]:
    """Return this number of people: one per playable role, in the order of ROLES; all others simply finish."""
    first_roles = [role for role in ROLES if role.key not in skipped_keys][:count]
    return [*first_roles, *[FINISHING_ROLE] * (count - len(first_roles))]
