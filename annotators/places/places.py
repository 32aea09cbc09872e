"""Places of annotators: the addresses of their pages, how long a place is kept, what is open and offered, and receipts."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from secrets import token_urlsafe
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Greatest, Now

from annotators.models import Annotator, Assignment, Recruitment, new_code
from annotators.models.constants import REGISTRY as CHANNELS
from annotators.models.identity import Purpose, decrypt, encrypt, keyed_hash
from studies.design.wording import Wording
from studies.language import format_number, gettext
from studies.models import Batch, Item, Placement, Section, Study
from studies.protocols import REGISTRY

# The addresses of a person's pages: their personal one, and one that shows no stored answers. The second one is for people
# who come again by a link that anybody can write. It is an encrypted code, so nothing is stored for it, and the personal
# address cannot be found from it.

MAX_CODE_LENGTH = 32  # a longer one is encrypted


def new_limited_address(assignment: Assignment) -> str:
    return encrypt(Purpose.ADDRESS, assignment.code).decode().rstrip("=")


def assignment_code(address: str) -> str:
    """Return the code of the assignment that an address of its pages names. Raises LookupError for a forged address."""
    from cryptography.fernet import InvalidToken  # imported late, because most pages do not need it

    if len(address) <= MAX_CODE_LENGTH:
        return address
    try:
        return decrypt(Purpose.ADDRESS, (address + "=" * (-len(address) % 4)).encode())
    except (InvalidToken, ValueError):
        raise LookupError(address) from None


def new_form_token() -> str:
    """Return a secret for the form of an entry page, by which the form's second press is known."""
    return token_urlsafe(16)


def code_for_form(recruitment_key: str, person: str, form_token: str) -> str:
    """Return the code of the place that this form claims: the same for each press, and known only to who saw the form."""
    return keyed_hash("place", recruitment_key, person, form_token)[:32] if form_token else new_code()


# Leases: how long a place is kept for its annotator, by the database's clock.


class NowPlusSeconds(Now):
    """The database's present time plus a number of seconds.

    ``Now() + timedelta`` would call Python from SQLite on each page.
    """

    def __init__(self, seconds: int):
        super().__init__(Value(seconds))

    def as_postgresql(self, compiler, connection, **extra):
        template = "STATEMENT_TIMESTAMP() + %(expressions)s * INTERVAL '1 second'"
        return self.as_sql(compiler, connection, template=template, **extra)

    def as_sqlite(self, compiler, connection, **extra):
        template = "STRFTIME('%%%%Y-%%%%m-%%%%d %%%%H:%%%%M:%%%%f', 'NOW', %(expressions)s || ' seconds')"
        return self.as_sql(compiler, connection, template=template, **extra)


def extended_deadline_expression(seconds: int) -> Greatest:
    """Return the new deadline of a held place: this number of seconds from now, but never before the old deadline."""
    return Greatest(F("reserved_until"), NowPlusSeconds(seconds))


def channel_min_reserved_seconds(recruitment: Recruitment | None) -> int:
    """Return the minimum time for which the recruitment's channel keeps a place; 0 if the study's times apply."""
    return CHANNELS[recruitment.channel].min_reserved_seconds(recruitment) if recruitment else 0


def expired_place_condition() -> Q:
    """Return the condition that the time of a place is over, or that the study is closed after its grace period."""
    # No join, so that the database checks these conditions again after a wait for the row.
    return Q(reserved_until__lt=Now()) | Q(study__in=Study.objects.filter(state=Study.State.CLOSED))


def extend_reservation(assignment: Assignment) -> bool:
    """Keep a held place longer. Return False if the place is not held. This may be repeated without limit."""
    seconds = max(assignment.study.idle_lease_seconds, channel_min_reserved_seconds(assignment.recruitment))
    live = Assignment.objects.filter(pk=assignment.pk, released_at=None, submitted_at=None)
    return bool(live.update(reserved_until=extended_deadline_expression(seconds)))


# Open places: which batches an annotator may get, and whether another place may become free.


def open_batches(study: Study | int, arms=()) -> QuerySet[Batch]:
    """Return the batches with a free place, in the order in which they are claimed."""
    batches = Batch.objects.filter(study=study, claimed__lt=F("wanted"), number__lt=F("study__open_to"))
    return (batches.filter(arm__in=arms) if arms else batches).order_by("claimed", "number")


def claimable_batches(study: Study, annotator: Annotator, arms=(), own_batch_ids=()) -> QuerySet[Batch]:
    """Return the batches with a free place for this annotator, in the order in which they are claimed.

    Batches with an item that the annotator was given before are skipped, even if the place was released. The
    annotator's own released places (``own_batch_ids``) may be taken again.
    """
    batches = open_batches(study, arms)
    # Read the ids first. As a subquery, PostgreSQL without statistics (right after a launch) ran it again for each
    # batch and placement. That took minutes for a hundred batches, even for people who had been given nothing.
    placements = Placement.objects.filter(batch__study=study, batch__assignments__annotator=annotator).order_by()
    placements = placements.exclude(
        item__kind=Item.Kind.PRACTICE
    )  # practice items are the same in all batches of an arm
    if items := list(placements.values_list("item", flat=True)):
        repeated = Placement.objects.filter(batch=OuterRef("pk"), item__in=items)
        batches = batches.filter(Q(pk__in=list(own_batch_ids)) | ~Exists(repeated))
    return batches


def can_places_become_free_or_be_added(study: Study) -> bool:
    live = Assignment.objects.filter(study=study, released_at=None, submitted_at=None).exclude(origin="test")
    return live.exists() or unsettled_items_of_top_up_sections(study).exists()


def is_for_one_annotator(study: Study) -> bool:
    """Return whether one annotator does all batches. No query if the study allows only one batch per annotator."""
    return study.batches_per_annotator > 1 and any(
        REGISTRY[section.protocol].is_for_one_annotator(section)
        for section in study.sections.all()
        if section.protocol in REGISTRY
    )


def sections_that_may_need_top_ups(study: Study) -> list[Section]:
    """Return the sections whose items may need more answers than their batches have places."""
    return [
        section
        for section in study.sections.all()
        if section.protocol in REGISTRY and REGISTRY[section.protocol].may_need_top_ups(section)
    ]


def unsettled_items_of_top_up_sections(study: Study) -> QuerySet[Item]:
    """Return the open, undecided items of such sections, which one more annotator may get."""
    open_now = Placement.objects.filter(
        item=OuterRef("pk"), batch__number__lt=study.open_to, item__section__in=sections_that_may_need_top_ups(study)
    )
    return Item.objects.filter(Exists(open_now), study=study, kind=Item.Kind.LIVE, settled_at=None, retired_in=None)


# The time and pay of taking part: from the study, from an arm, or a recruitment's reward for all arms.


@dataclass(frozen=True, slots=True)
class Offer:
    """The minutes and reward of one arm. ``is_arm_specific``: the arm sets them itself and differs from the study."""

    minutes: int | None
    reward: Decimal | None
    is_arm_specific: bool = False

    @property
    def per_hour(self) -> Decimal | None:
        """Return the pay per hour, or None without a reward or minutes."""
        if not self.reward or not self.minutes:
            return None
        return (self.reward * 60 / self.minutes).quantize(Decimal("0.01"))


def arm_offer(wording: Wording, arm: Mapping[str, Any], link_reward: Decimal | None = None) -> Offer:
    """Return the offer of an arm. ``link_reward`` is the recruitment's pay; it replaces the arm's."""
    study = wording.study
    minutes = arm["minutes"] or study["minutes"]
    paid = next((amount for amount in (link_reward, arm["reward"], study["reward"]) if amount is not None), None)
    is_own = arm["minutes"] not in (None, study["minutes"]) or (link_reward is None and arm["reward"] is not None)
    return Offer(minutes, None if paid is None else Decimal(paid), is_own)


@dataclass(frozen=True, slots=True)
class OfferRange:
    """The range of minutes and rewards over arms, for people who do not have an arm yet."""

    minutes: str
    most_minutes: int
    reward: str
    pays: bool
    per_hour: str
    is_one: bool


def offer_range(wording: Wording, arms: Collection[str] = (), link_reward: Decimal | None = None) -> OfferRange:
    """Return the range from lowest to highest over these arms, or all arms, and an hourly pay that holds for each."""
    offers = [arm_offer(wording, arm, link_reward) for name, arm in wording.arms.items() if not arms or name in arms]
    rewards = sorted({offer.reward for offer in offers if offer.reward is not None})
    minutes = sorted({offer.minutes for offer in offers if offer.minutes})
    hourly = [offer.per_hour for offer in offers]
    known_pays = [pay for pay in hourly if pay is not None]
    least = format_number(min(known_pays)) if known_pays and len(known_pays) == len(hourly) else ""
    return OfferRange(
        _format_range(minutes),
        max(minutes, default=0),
        _format_range(rewards),
        any(rewards),
        # Translators: an amount of money for each hour
        gettext("at least %(amount)s") % {"amount": least} if least and len(set(known_pays)) > 1 else least,
        max(len(rewards), len(minutes)) <= 1,
    )


def _format_range(values: list) -> str:
    """Return the lowest and the highest value in words, with the signs of the page's language."""
    if not values:
        return ""
    low, high = format_number(values[0]), format_number(values[-1])
    # Translators: a range of minutes, or of amounts of money
    return low if values[0] == values[-1] else gettext("%(low)s to %(high)s") % {"low": low, "high": high}


# Receipts: short codes that annotators show to be paid.
#
# A receipt is a keyed hash of the code: fixed and not guessable.


ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"


def compute_receipt(assignment_code: str) -> str:
    """Return the receipt: ten characters in two groups, easy to copy by hand, without 0, 1, I and O."""
    number = int(keyed_hash("receipt", assignment_code)[:20], 16)
    characters = ""
    for _ in range(10):
        number, rest = divmod(number, 32)
        characters += ALPHABET[rest]
    return f"{characters[:5]}-{characters[5:]}"


def normalize_receipt(receipt: str) -> str:
    """Return a typed receipt in the form used for comparison: upper case, without dash and spaces."""
    return "".join(character for character in receipt.upper() if character.isalnum())


def looks_like_receipt(text: str) -> bool:
    return len(normalize_receipt(text)) == 10 and set(normalize_receipt(text)) <= set(ALPHABET)
