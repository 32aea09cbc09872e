"""The registry of channels, which describe where annotators come from.

Each channel is one module in this package; there is no list to edit. A channel reads arrivals from the address and says
how a person returns. It writes nothing. If the panel has an API, the channel only creates the ``PanelService``
(``annotators.recruitment.panels``) that jobs call.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote, urlsplit

from django.utils.text import capfirst

from annotators.models.constants import REGISTRY
from annotators.recruitment.panels import (
    BulkText,
    ForgedMessage,
    Order,
    PanelService,
    RejectionPolicy,
    SubmissionSnapshot,
    WebhookMessage,
)
from studies.language import gettext, gettext_noop

from .thresholds import threshold_lines

if TYPE_CHECKING:
    from annotators.recruitment.panels.stand_in import StandIn

# The ways a visit may end. Each may have its own code or address at the panel.
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
    """A person who arrives, as described by the address.

    ``person``: identifies a person within the pool; stored only as a keyed hash ('' on an open link). ``ids``: the
    panel's ids in the address. Only the one under "person" is stored, encrypted. ``is_preview``: the person looks
    without taking part. ``problem``: a message for the annotator if the address is incomplete.
    """

    person: str = ""
    ids: Mapping[str, str] = field(default_factory=dict)
    trust: str = "claimed"
    is_preview: bool = False
    problem: str = ""


_PLACEHOLDER = re.compile(r"[{}<>\[\]]|%+[^%\s]*%|^\$")
# What programs write in the place of an id that they do not have.
_NO_ID = frozenset({"undefined", "null", "none", "nan", "n/a", "not available"})


def is_unfilled(value: str) -> bool:
    """Return whether the panel left its placeholder in a parameter of the link, such as ``{{%ID%}}``, ``[%MID%]`` or ``undefined``.

    Otherwise everybody who comes by such a link would be one person.
    """
    return bool(_PLACEHOLDER.search(value)) or value.strip().casefold() in _NO_ID


@dataclass(frozen=True, slots=True)
class WayBack:
    """How a person returns to the panel: by a code to copy, an address to follow, both or neither.

    ``fields``: the fields of a form that is posted to the panel. ``instructions``: shown if there is no button.
    """

    code: str = ""
    url: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    label: str = field(default_factory=lambda: gettext("Return to the panel"))
    instructions: str = ""

    @property
    def has_content(self) -> bool:
        """Return whether there is anything to show to the person."""
        return bool(self.code or self.url or self.instructions)

    @property
    def origin(self) -> str:
        """The origin that the page's form-action must allow."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""


@dataclass(frozen=True, slots=True)
class FormLine:
    """What a researcher copies into one field of the panel's form."""

    label: str
    value: str
    help: str = ""


UNKNOWN_PEOPLE = (
    "The study asks for a test that people passed in another study, but this link does not know them again. "
    "Recruit by a panel whose links carry a person's id."
)


class Channel:
    slug = ""
    label = ""
    # The name of the panel for annotators, if the label tells researchers more.
    panel_name = ""
    help = ""
    settings_form: type | None = None
    # False on an open link: people can return only by the address of their own page. The report says so.
    identifies_people = True
    # False if a person has another id, or none, at another link. Then nobody is known to have passed a test elsewhere.
    knows_people_again = True
    # Whether only the person and the panel know the link, so that it leads back to stored answers. False: anybody may guess an id.
    link_is_personal = False
    # False if the panel has closed its service. Existing links continue.
    takes_new_links = True
    # Names and labels of the secrets that ``service`` needs. They are stored apart from settings and never shown.
    secrets: ClassVar[Mapping[str, str]] = {}
    # Whether the panel shows its submissions, by its service or by a file.
    shows_submissions = True
    # Whether ``service`` credits ("approve") everyone who reaches the last page, without a person's decision.
    # ``external_ids`` hold the sign-up as "session". After the credit, people return by ``way_back_if_already_credited``.
    credits_on_completion = False
    # Whether ``service`` can publish.
    publishes = False
    # How the panel pays, by its service or by its own forms (Payment.Way). Empty: people are paid by hand.
    pays_by: frozenset[str] = frozenset()
    # Whether ``service`` shows a submission while its person is working, so that arrivals can be checked.
    shows_active_submissions = False
    # Whether ``service`` can keep people out by a list at the panel ("bar").
    has_blocklist = False
    # The column of the panel's demographic file that contains its participant ids.
    person_column = ""
    # Whether the panel can send notifications (``PanelService.subscribe``, ``read_message``).
    sends_webhooks = False
    # Whether the researcher makes a study at the panel, in a form that asks for its title, link, places and pay.
    has_form = False
    # What to do in this form besides copying.
    form_help = ""
    # What this form also asks about the link.
    link_help = ""
    preview_words = gettext_noop("Nothing is stored. To take part, start from the panel. The link then has your id.")
    # The panel's rejection policy. None if heval cannot reject at this channel.
    rejection_policy: RejectionPolicy | None = None

    @property
    def frame_ancestors(self) -> tuple[str, ...]:
        """Return the origins that may frame the pages of this channel."""
        return ()

    def read_arrival(self, recruitment, parameters: Mapping[str, str]) -> Arrival:
        """Read the address. ``parameters`` holds each query parameter once; repeated parameters were refused before."""
        raise NotImplementedError

    def way_back(self, recruitment, outcome: str, external_ids: Mapping[str, str], receipt: str) -> WayBack:
        """Return the way back after ``outcome`` (one of OUTCOMES).

        ``external_ids`` are as ``read_arrival`` read them, without ids that have been erased.
        """
        return WayBack(code=receipt)

    def way_back_if_already_credited(self, recruitment) -> WayBack:
        """Return the way back for a person whose credit the service has already granted."""
        return WayBack()

    def is_retaken_task(self, earlier_ids: Mapping[str, str], current_ids: Mapping[str, str]) -> bool | None:
        """Compare the panel ids of a finished person who comes again.

        True: their submission never reached the panel, so their way back leads to the new task. False: it is another
        task, for which they did no work. None: unknown.
        """
        return None

    def min_reserved_seconds(self, recruitment) -> int:
        """Return the minimum time for which a place is kept after its claim.

        If above 0, people work over days and have a page that lists their parts.
        """
        return 0

    def links(self, recruitment, base: str) -> list[tuple[str, str]]:
        """Return (label, link) pairs to paste at the panel or to send."""
        return [("Link for annotators", base)]

    def code_lines(self, recruitment, outcomes: Sequence[str]) -> list[FormLine]:
        """Return the codes that the panel's form asks for, for these ways to end."""
        return []

    def form_lines(self, recruitment, base: str, outcomes: Sequence[str]) -> list[FormLine]:
        """Return what to copy to the panel, in the order of its form: exactly what the study needs. ``outcomes``: how visits can end."""
        links = [FormLine(label, link, self.link_help) for label, link in self.links(recruitment, base)]
        help_text = f"{'Where heval publishes, it sends this.' if self.publishes else 'heval cannot send this.'} Set it in the panel's form."
        wanted = [FormLine(capfirst(label), words, help_text) for label, words in threshold_lines(recruitment.settings)]
        if not self.has_form:
            return [*links, *wanted]
        study = recruitment.study
        reward = study.reward if recruitment.reward is None else recruitment.reward
        lines = [
            FormLine("Title", study.public_title),
            FormLine("Description", study.purpose),
            *links,
            *self.code_lines(recruitment, outcomes),
            FormLine("Places", str(recruitment.wanted or study.target_n or "")),
            FormLine("Minutes", str(study.minutes or "")),
            FormLine(f"Reward, {recruitment.currency or study.currency}", "" if reward is None else str(reward)),
            *wanted,
        ]
        return [line for line in lines if line.value]

    def problems(self, recruitment) -> list[str]:
        """Return what is missing before annotators may use this link."""
        return []

    def obstacles(self, recruitment) -> list[str]:
        """Return what is missing of this channel and for the study before annotators may use this link."""
        is_refused = recruitment.study.required_qualification and not self.knows_people_again
        return [*self.problems(recruitment), *([UNKNOWN_PEOPLE] if is_refused else [])]

    def warnings(self, recruitment) -> list[str]:
        """Return what the link allows that a researcher should know. It hinders nobody."""
        return []

    # What a rehearsal needs to simulate the panel.

    def rehearsal_entry(self, recruitment, base: str, number: int) -> tuple[str, str]:
        """Return the address that the panel opens for its n-th person, and the id of their visit.

        The placeholders of the link are filled in.
        """
        return self.links(recruitment, base)[0][1], str(number)

    def stand_in(self, recruitment, base: str) -> "StandIn":
        """Return a stand-in of the panel on this machine.

        If the panel has a service, the stand-in speaks its protocol.
        """
        from annotators.recruitment.panels.stand_in import LinkOnlyStandIn

        return LinkOnlyStandIn(lambda number: self.rehearsal_entry(recruitment, base, number))

    # For jobs and researchers, if the panel supports it.

    def service(self, recruitment, secrets: Mapping[str, str]) -> PanelService | None:
        """Return the panel's service for this recruitment; None if the panel has no service or a required secret is missing.

        Raises RequestRefused for secrets that cannot be right.
        """
        return None

    def can_read_export_file(self, recruitment) -> bool:
        """Return whether ``read_export`` can read the exported file of this link's panel. Pages then offer the import."""
        return False

    def read_export(self, recruitment, text: str, task: str = "") -> list[SubmissionSnapshot]:
        """Return the submissions in a file exported by the panel. Raises ValueError naming the row and the column."""
        raise ValueError("heval cannot read files of this panel. Compare its submissions by hand.")

    def normalize_person_id(self, cell: str) -> str:
        """Return a person's id in a panel's file, in the form in which ``read_arrival`` reads it from an address."""
        return cell.strip()

    def read_message(self, secret: str, headers: Mapping[str, str], raw: bytes) -> WebhookMessage:
        """Read a notification from the panel.

        Raises ForgedMessage if it is not signed with the secret, ValueError if it is not a valid notification.
        """
        raise ForgedMessage("This panel sends no notifications.")

    def bulk_texts(self, orders: Sequence[Order]) -> list[BulkText]:
        """Return orders as text for the panel's own forms. Orders without a form are left out."""
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
    """Return the origins that may frame any channel's pages, for pages that do not know their channel."""
    return tuple(dict.fromkeys(origin for channel in REGISTRY.values() for origin in channel.frame_ancestors))


def fill_url_template(template: str, values: Mapping[str, str]) -> str:
    """Replace each ``{name}`` in an address by its percent-encoded value. Uses names only, never a format string."""
    for name, value in values.items():
        template = template.replace("{" + name + "}", quote(value, safe=""))
    return template
