"""Who comes to a rehearsal, and what each of them is expected to come to."""

from dataclasses import dataclass

from annotators.models.constants import APPROVED, EXPIRED, REJECTED, RETURNED, SCREENED_OUT, SUBMITTED, WORKING

# How an assignment may have ended here. NOTHING: there is no row.
NOTHING = "nothing stored"
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
    is_sent_back: bool = True

    @property
    def takes_place(self) -> bool:
        """Whether a place must be free for them."""
        return self.key not in ("never_starts", "full", "declines")


THANKS = ("Thank you",)
FINISHES = Role(
    "finishes",
    "accept and finish",
    "thanked and led back; confirmed and approved where the panel has a service",
    (FINISHED,),
    (APPROVED,),
    ("decided",),
    THANKS,
)
ROLES = (
    FINISHES,
    Role(
        "lost_reply",
        "finish, and the reply to their last page is lost",
        "sent again it is the same work: stored once, approved once",
        (FINISHED,),
        (APPROVED,),
        ("decided",),
        THANKS,
    ),
    Role(
        "retakes",
        "return the task half-way, accept it again and finish",
        "they go on where they were, and are paid once",
        (FINISHED,),
        (APPROVED,),
        ("decided",),
        THANKS,
    ),
    Role(
        "never_starts",
        "accept and never start",
        "nothing is kept for them",
        (NOTHING,),
        (EXPIRED,),
        ("left",),
        is_sent_back=False,
    ),
    Role(
        "leaves",
        "leave half-way",
        "their place is free again, their answers stay",
        ("expired", "returned"),
        (EXPIRED,),
        ("left",),
        is_sent_back=False,
    ),
    Role(
        "returns",
        "return the task",
        "their place is free again, their answers stay",
        ("expired", "returned"),
        (RETURNED,),
        ("left",),
        is_sent_back=False,
    ),
    Role(
        "unsent",
        "finish here and never reach the panel",
        "their work is kept; where the panel has a service they are found and shown to a person",
        (FINISHED,),
        (WORKING, EXPIRED),
        ("unsent",),
        THANKS,
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
        ("full", NOTHING),
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
        THANKS,
    ),
    Role(
        "declines",
        "read the consent and do not agree",
        "nothing is stored about them",
        (NOTHING,),
        (SUBMITTED, SCREENED_OUT, RETURNED),
        ("unknown", "left"),
        ("You did not agree to take part",),
    ),
)
# Finishes without a look of the panel: nobody is approved there.
SENT = {APPROVED: (SUBMITTED,), REJECTED: (SUBMITTED,)}


def cast(people: int, left_out: set[str]) -> list[Role]:
    """So many people: one of each role that can be played, in the order of ROLES, and the others simply finish."""
    one_each = [role for role in ROLES if role.key not in left_out][:people]
    return [*one_each, *[FINISHES] * (people - len(one_each))]
