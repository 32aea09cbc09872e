"""Who comes to a rehearsal, and what each of them is expected to come to."""

from dataclasses import dataclass

from annotators.models.constants import APPROVED, EXPIRED, REJECTED, RETURNED, SCREENED_OUT, SUBMITTED, WORKING

# How an assignment may have ended here. NOTHING: there is no row.
NOTHING_STORED = "nothing stored"
FINISHED = "submitted"


@dataclass(frozen=True, slots=True)
class Role:
    """``label`` says what these people do. ``told``: headings of their last page, one of which they must see ('' where none matters).

    ``here``: how they may stand in our books; ``there``: what the panel may say of them; ``classes``: how reconciliation may class
    them, where the panel has a service. ``is_sent_back``: whether their last page must show a way back to the panel.
    """

    key: str
    label: str
    expected: str
    here: tuple[str, ...]
    there: tuple[str, ...]
    classes: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    has_way_back: bool = True

    @property
    def needs_place(self) -> bool:
        """Whether a place must be free for them."""
        return self.key not in ("never_starts", "full", "declines")


THANKS_HEADINGS = ("Thank you",)
FINISHING_ROLE = Role(
    "finishes",
    "accept and finish",
    "thanked and led back; confirmed and approved where the panel has a service",
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
        "sent again it is the same work: stored once, approved once",
        (FINISHED,),
        (APPROVED,),
        ("decided",),
        THANKS_HEADINGS,
    ),
    Role(
        "retakes",
        "return the task half-way, accept it again and finish",
        "they go on where they were, and are paid once",
        (FINISHED,),
        (APPROVED,),
        ("decided",),
        THANKS_HEADINGS,
    ),
    Role(
        "never_starts",
        "accept and never start",
        "nothing is kept for them",
        (NOTHING_STORED,),
        (EXPIRED,),
        ("left",),
        has_way_back=False,
    ),
    Role(
        "leaves",
        "leave half-way",
        "their place is free again, their answers stay",
        ("expired", "returned"),
        (EXPIRED,),
        ("left",),
        has_way_back=False,
    ),
    Role(
        "returns",
        "return the task",
        "their place is free again, their answers stay",
        ("expired", "returned"),
        (RETURNED,),
        ("left",),
        has_way_back=False,
    ),
    Role(
        "unsent",
        "finish here and never reach the panel",
        "their work is kept; where the panel has a service they are found and shown to a person",
        (FINISHED,),
        (WORKING, EXPIRED),
        ("unsent",),
        THANKS_HEADINGS,
    ),
    Role(
        "screened_out",
        "answer so that they are screened out",
        "ended early, led back with their own code",
        ("screened_out",),
        (SUBMITTED, SCREENED_OUT, RETURNED),
        ("turned_away", "left"),
        ("This study is not for you",),
    ),
    Role(
        "full",
        "come when no place is left",
        "told so before any work",
        ("full", NOTHING_STORED),
        (SUBMITTED, SCREENED_OUT, RETURNED),
        ("turned_away", "left", "unknown"),
        ("The study is full", "No place was free", "No place right now"),
    ),
    Role(
        "rejected",
        "finish carelessly, and a person rejects them",
        "rejected by a person's word alone, with a reason",
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
# Finishes without a look of the panel: nobody is approved there.
STATES_WITHOUT_SERVICE = {APPROVED: (SUBMITTED,), REJECTED: (SUBMITTED,)}


def choose_roles(count: int, skipped: set[str]) -> list[Role]:
    """So many people: one of each role that can be played, in the order of ROLES, and the others simply finish."""
    one_each = [role for role in ROLES if role.key not in skipped][:count]
    return [*one_each, *[FINISHING_ROLE] * (count - len(one_each))]
