"""The registry of channels: where annotators come from. One module each in this package; there is no list to edit.

A channel reads who arrives from the address, and says how a person is sent back. It writes nothing; a panel's own API, where
one is used, is the business of jobs: a channel only makes the ``Service`` (``annotators.recruitment.panels``) that they call.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote, urlsplit

from annotators.models.registry import REGISTRY
from annotators.recruitment.panels import (
    BulkText,
    ForgedMessage,
    Order,
    PanelService,
    RejectionPolicy,
    SubmissionSnapshot,
    WebhookMessage,
)

if TYPE_CHECKING:
    from annotators.recruitment.panels.stand_in import StandIn

# How a visit may end. Each may have a code or an address of its own at the panel.
OUTCOMES = {
    "complete": "completed",
    "screened_out": "screened out",
    "failed_checks": "failed the checks",
    "full": "no place left",
    "no_consent": "did not agree",
    "withdrawn": "withdrew",
    "closed": "study closed",
    "done": "had taken part before",
}


@dataclass(frozen=True, slots=True)
class Arrival:
    """Who stands at the door, as far as the address tells.

    ``person``: what tells the people of the pool apart; a keyed hash of it is stored ('' on an open link). ``ids``: the panel's ids as the
    address carries them, of which the one under "person" is stored enciphered alone, and nowhere else.
    ``is_preview``: a look without taking part. ``problem``: a message for the annotator when the address is incomplete.
    """

    person: str = ""
    ids: Mapping[str, str] = field(default_factory=dict)
    trust: str = "claimed"
    is_preview: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class WayBack:
    """How a person goes back: a code to copy, an address to follow, both or neither.

    ``fields``: where the way back is a form to be posted, its fields. ``words``: what the person is to do, where no button does it.
    """

    code: str = ""
    url: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    label: str = "Return to the panel"
    words: str = ""

    @property
    def is_one(self) -> bool:
        """Whether it tells a person anything."""
        return bool(self.code or self.url or self.words)

    @property
    def host(self) -> str:
        """The origin that a page's form-action must allow."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""


class Channel:
    slug = ""
    label = ""
    help = ""
    settings_form: type | None = None
    # False on an open link: a person can only come back by the page's own address, and the report says so.
    identifies_people = True
    # False: what it led to has ended. Links that exist go on.
    takes_new_links = True
    # Secrets that ``service`` needs, name by name, and what each is called. Kept apart from settings, and never shown again.
    secrets: ClassVar[Mapping[str, str]] = {}
    # Whether the panel shows what was sent to it, by its service or by a file.
    shows_submissions = True
    # Whether who reached the last page is credited by ``service`` ("approve") without anybody's decision. ``external_ids`` name the
    # sign-up as "session", and once it is credited people go back by ``home``.
    credits_on_completion = False
    # Whether ``service`` can publish.
    publishes = False
    # How the panel pays, by its service or by its own forms (Payment.Way); none: people are paid by hand.
    pays_by: frozenset[str] = frozenset()
    # Whether ``service`` shows a submission while its person is at work, so that it can be asked who has just arrived.
    shows_active_submissions = False
    # Whether ``service`` can keep people out by a list of the panel's ("bar").
    has_blocklist = False
    # The column of the panel's demographic file that holds its ids of people.
    person_column = ""
    # Whether the panel can send messages by itself (``Service.listen``, ``read_message``).
    sends_webhooks = False
    # Origins that may frame the pages of this channel.
    frame_ancestors: tuple[str, ...] = ()
    preview_words = "Nothing is stored. To take part, start from the panel: the link then has your id."
    # What the panel lets one refuse; None where refusing is not done through heval.
    rejection_policy: RejectionPolicy | None = None

    def read_arrival(self, recruitment, parameters: Mapping[str, str]) -> Arrival:
        """Read the address. ``parameters`` holds each query parameter once; a repeated one was refused before."""
        raise NotImplementedError

    def way_back(self, recruitment, outcome: str, external_ids: Mapping[str, str], receipt: str) -> WayBack:
        """How a person returns after ``outcome`` (one of OUTCOMES). ``external_ids``: as ``arrive`` read them; ids that are erased by now
        are left out."""
        return WayBack(code=receipt)

    def plain_way_back(self, recruitment) -> WayBack:
        """How a person returns of whom the panel has nothing more to learn: their credit was granted by the service."""
        return WayBack()

    def is_retaken_task(self, earlier_ids: Mapping[str, str], current_ids: Mapping[str, str]) -> bool | None:
        """Someone who has finished comes again, with other ids of the panel. True: what they sent never reached it, so their way back
        leads to the new task. False: it is another task, for which they did nothing. None: the ids do not tell."""
        return None

    def reserved_seconds(self, recruitment) -> int:
        """How long a place is kept at least, from its claim on, whatever its person does. Above 0: people work over days, and have
        a page that lists their parts."""
        return 0

    def links(self, recruitment, base: str) -> list[tuple[str, str]]:
        """(what it is, the link to paste at the panel or to send)."""
        return [("Link for annotators", base)]

    def problems(self, recruitment) -> list[str]:
        """What is missing before people may be sent here."""
        return []

    # What a rehearsal needs to play the panel.

    def rehearsal_entry(self, recruitment, base: str, number: int) -> tuple[str, str]:
        """The address that the panel opens for its n-th person, and what names their visit: the link with its placeholders filled in."""
        return self.links(recruitment, base)[0][1], str(number)

    def stand_in(self, recruitment, base: str) -> "StandIn":
        """The panel on this machine. Where it has a service, a stand-in that speaks its protocol."""
        from annotators.recruitment.panels.stand_in import LinkOnlyStandIn

        return LinkOnlyStandIn(lambda number: self.rehearsal_entry(recruitment, base, number))

    # What jobs and researchers use, where the panel has it.

    def service(self, recruitment, secrets: Mapping[str, str]) -> PanelService | None:
        """The panel's own service for this recruitment; None where there is none, or a secret that it needs is missing. Raises Refused
        for secrets that cannot be right."""
        return None

    def takes_file(self, recruitment) -> bool:
        """Whether ``read_export`` can read the file that this link's panel exports. Pages offer it then."""
        return False

    def read_export(self, recruitment, text: str, task: str = "") -> list[SubmissionSnapshot]:
        """The submissions in a file that the panel exports. Raises ValueError naming the row and the column."""
        raise ValueError("Files of this panel cannot be read.")

    def normalize_person_id(self, cell: str) -> str:
        """The id of a person in a panel's file, as ``arrive`` reads it from an address."""
        return cell.strip()

    def read_message(self, secret: str, headers: Mapping[str, str], raw: bytes) -> WebhookMessage:
        """What the panel sent by itself. Raises Forged where it is not signed with the secret, ValueError for what is no message."""
        raise ForgedMessage("This panel sends no messages.")

    def bulk_texts(self, orders: Sequence[Order]) -> list[BulkText]:
        """Orders as text for the panel's own forms; those for which it has no form are left out."""
        return []


def register(cls):
    if not cls.slug or cls.slug in REGISTRY:
        raise ValueError(f"The channel {cls.slug!r} has no slug or is registered twice.")
    REGISTRY[cls.slug] = cls()
    return cls


def load_channels() -> None:
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")


def all_frame_ancestors() -> tuple[str, ...]:
    """Every origin that frames some channel's pages, for pages that cannot know whose they are."""
    return tuple(dict.fromkeys(origin for channel in REGISTRY.values() for origin in channel.frame_ancestors))


def fill_template(template: str, values: Mapping[str, str]) -> str:
    """An address with ``{name}`` replaced by percent-encoded values: by name alone, never as a format string."""
    for name, value in values.items():
        template = template.replace("{" + name + "}", quote(value, safe=""))
    return template
