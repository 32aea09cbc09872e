"""Any panel that opens a link with parameters and expects a code or an address at the end."""

import hmac
import re
import secrets
from itertools import combinations
from urllib.parse import urlencode

from django import forms
from django.conf import settings
from django.utils.crypto import constant_time_compare

from annotators.models.identity import keyed_hash
from studies.language import gettext, ngettext
from studies.stimuli.texts import is_blank

from . import OUTCOMES, Arrival, Channel, WayBack, exported_file, fill_url_template, is_unfilled, register
from .thresholds import ThresholdsForm

# Codes that say how a visit ended: one for each outcome. No code can be guessed from another.


# As in receipts: easy to copy by hand, without 0, 1, I and O.
ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
CODE_PATTERN = re.compile(r"[A-Za-z0-9_-]{6,64}", re.ASCII)
# Words that people would try first. These are stems, so that COMPLETED and SCREENEDOUT match too.
GUESSABLE_STEMS = (
    "complet",
    "screen",
    "fail",
    "full",
    "consent",
    "withdr",
    "close",
    "done",
    "finish",
    "return",
    "prolific",
)
MIN_DIFFERENCES = 4


def generate_outcome_code() -> str:
    """Generate ten characters. Two codes share a character position only by chance."""
    return "".join(secrets.choice(ALPHABET) for _ in range(10))


def clean_outcome_code(value: str) -> str:
    if not CODE_PATTERN.fullmatch(value):
        raise forms.ValidationError("This code is not valid. Enter 6 to 64 letters and digits, without spaces.")
    if word := next((word for word in GUESSABLE_STEMS if word in re.sub("[^a-z]", "", value.lower())), None):
        raise forms.ValidationError(f"The code contains “{word}” and is easy to guess. Choose another code.")
    if len(set(value.lower())) < 4:
        raise forms.ValidationError("This code repeats itself and is easy to guess. Choose another code.")
    return value


def is_guessable_from_code(code: str, other_code: str) -> bool:
    """Return whether a person who knows one code could find the other in a few attempts."""
    code, other_code = code.casefold(), other_code.casefold()
    if code in other_code or other_code in code:
        return True
    n_differences = sum(a != b for a, b in zip(code, other_code, strict=False)) + abs(len(code) - len(other_code))
    return n_differences < MIN_DIFFERENCES


class OutcomeCodesForm(forms.Form):
    """Add a field ``code_<outcome>`` for each way to end, with a generated value."""

    required_outcomes = ("complete",)

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        for outcome, description in OUTCOMES.items():
            self.fields[f"code_{outcome}"] = forms.CharField(
                required=outcome in self.required_outcomes,
                max_length=64,
                label=f"code: {description}",
                initial=generate_outcome_code,
                validators=[clean_outcome_code],  # type: ignore[list-item]  # its result is not used
            )
        self.order_fields([f"code_{outcome}" for outcome in OUTCOMES])

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        codes = [(name, cleaned[name]) for name in self.fields if name.startswith("code_") and cleaned.get(name)]
        for (name, code), (later_name, other_code) in combinations(codes, 2):
            if later_name not in self.errors and is_guessable_from_code(code, other_code):
                self.add_error(
                    later_name,
                    f"This code is too similar to “{self.fields[name].label}”: people could guess it. "
                    "Choose another code.",
                )
        return cleaned


# Personal invitation links. A link works on every device, and opening it does not use it up.


class InvitationSettings(forms.Form):
    people = forms.IntegerField(
        min_value=1, max_value=10000, initial=20, label="invitations", help_text="The number of links."
    )
    days = forms.IntegerField(
        min_value=0,
        max_value=365,
        initial=0,
        required=False,
        label="days for each part",
        help_text=(
            "For studies with several parts over days: a place is kept for this number of days, and the "
            "link leads to a list of parts. 0: one sitting, with the study's own times."
        ),
    )
    revoked = forms.CharField(
        required=False,
        label="revoked numbers",
        help_text="Numbers of invitations that are no longer valid, separated by commas.",
    )

    def clean_revoked(self):
        numbers = [number.strip() for number in self.cleaned_data["revoked"].split(",") if number.strip()]
        if not all(number.isascii() and number.isdigit() for number in numbers):
            raise forms.ValidationError(
                "These are not numbers of invitations. Enter whole numbers separated by commas, for example 3, 17."
            )
        return ", ".join(numbers)


def invitation_token(recruitment_key: str, number: int) -> str:
    """Return 128 bits that only this site can compute for the person, so no table of secrets is needed."""
    return f"{number}-{keyed_hash('invitation', recruitment_key, str(number))[:32]}"


@register
class Invitation(Channel):
    slug = "invitation"
    label = "Personal invitations"
    help = (
        "One link per person. Only your own list says who has which link; heval knows only the number of "
        "the invitation."
    )
    settings_form = InvitationSettings
    link_is_personal = True
    knows_people_again = False

    def read_arrival(self, recruitment, parameters):
        code = parameters.get("i", "")
        number, _, _ = code.partition("-")
        people = int(recruitment.settings.get("people", 0))
        if not (number.isascii() and number.isdigit() and len(number) < 6 and 1 <= int(number) <= people):
            return Arrival(problem=gettext("This link is not complete. Please open the whole link that you were sent."))
        if not hmac.compare_digest(code.encode(), invitation_token(recruitment.key, int(number)).encode()):
            return Arrival(problem=gettext("This link is not complete. Please open the whole link that you were sent."))
        if number in {n.strip() for n in recruitment.settings.get("revoked", "").split(",")}:
            return Arrival(problem=gettext("This invitation is no longer valid. Please write to the researcher."))
        return Arrival(person=f"{recruitment.key}:{number}", trust="keyed")

    def min_reserved_seconds(self, recruitment):
        return int(recruitment.settings.get("days") or 0) * 86_400

    def links(self, recruitment, base):
        people = int(recruitment.settings.get("people", 0))
        return [(f"Invitation {n}", f"{base}?i={invitation_token(recruitment.key, n)}") for n in range(1, people + 1)]

    def rehearsal_entry(self, recruitment, base, number):
        return f"{base}?i={invitation_token(recruitment.key, number)}", str(number)

    def problems(self, recruitment):
        return (
            []
            if recruitment.settings.get("people")
            else ["The link has no invitations. Enter their number in the link's settings."]
        )


# A plain link for colleagues, classes and mailing lists. People are not identified, so anyone can take part.


NO_WAY_TO_PAY = (
    "An open link names nobody, so heval cannot pay its people. Ask them to send you the code of their last page."
)


@register
class OpenLink(Channel):
    slug = "open_link"
    label = "Open link"
    help = "Anyone with the link may take part. People can return only by the address of their own page."
    identifies_people = False
    knows_people_again = False

    def read_arrival(self, recruitment, parameters):
        return Arrival(trust="none")

    def warnings(self, recruitment):
        reward = recruitment.study.reward if recruitment.reward is None else recruitment.reward
        return [NO_WAY_TO_PAY] if reward else []


LONGEST_PERSON = 200
PLACEHOLDERS = ("person", "session", "task", "code")
HOST = re.compile(r"[a-z0-9.-]*[a-z0-9](:[0-9]{1,5})?", re.ASCII | re.IGNORECASE)


def clean_return_code_or_url(value: str) -> str:
    """Validate a code to show, or an https address. Raises ValidationError for anything else."""
    value = value.strip()
    if "://" not in value:
        if any(mark in value for mark in "/\\: ") or len(value) > 64:
            raise forms.ValidationError(
                "This is no code or address. Enter a code without spaces, or a full address that begins with https://"
            )
        return value
    scheme, _, rest = value.partition("://")
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "{" in host:
        raise forms.ValidationError(
            "The host of a return address must not depend on the visitor's parameters. Write the host in full."
        )
    # The host also appears in a security header among other words, so it must be a plain host name.
    if (
        scheme.lower() != "https"
        or not HOST.fullmatch(host)
        or "\\" in value
        or any(character.isspace() for character in value)
    ):
        raise forms.ValidationError("This is not a return address. It must begin with https:// and name a host.")
    return value


def is_allowed_return_site(code_or_url: str) -> bool:
    """Return whether this site allows this return address: any address, unless RETURN_SITES lists sites."""
    site = "/".join(code_or_url.split("/")[:3]).lower()
    return "://" not in code_or_url or not settings.RETURN_SITES or site in settings.RETURN_SITES


def validate_return_site(value: str) -> None:
    if not is_allowed_return_site(value.strip()):
        known_sites = ", ".join(settings.RETURN_SITES)
        raise forms.ValidationError(
            f"Only these return sites are allowed: {known_sites}. The operator of this heval site can add more."
        )


class GenericSettings(exported_file.FileColumnsForm, ThresholdsForm):
    parts = ThresholdsForm.parts | exported_file.FileColumnsForm.parts

    person_parameter = forms.SlugField(initial="participant", label="parameter with the person's id")
    session_parameter = forms.SlugField(required=False, label="parameter with the session's id")
    task_parameter = forms.SlugField(required=False, label="parameter with the panel's study id")
    key_parameter = forms.SlugField(required=False, label="secret parameter that only the panel's link has")
    key_value = forms.CharField(required=False, max_length=100, label="value of the secret parameter")

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        for outcome, description in OUTCOMES.items():
            self.fields[f"return_{outcome}"] = forms.CharField(
                required=False,
                max_length=500,
                label=f"code or address: {description}",
                help_text="heval fills in {person}, {session}, {task} and {code}." if outcome == "complete" else "",
                validators=[clean_return_code_or_url, validate_return_site],  # type: ignore[list-item]  # its result is not used
            )
        self.move_file_fields_last()

    def clean(self):
        cleaned = super().clean()
        # Without its secret, every link would count as the panel's own.
        for name, other_name in (("key_parameter", "key_value"), ("key_value", "key_parameter")):
            if cleaned.get(name) and not cleaned.get(other_name) and other_name not in self.errors:
                self.add_error(
                    other_name, "One of the two is missing. Enter both the parameter and its secret, or neither."
                )
        return cleaned


@register
class Generic(Channel):
    slug = "generic"
    label = "Any panel, by parameters of the link"
    has_form = True
    help = "Name the parameters that the panel adds to the link, and a code or an address for each way to end."
    settings_form = GenericSettings

    def read_arrival(self, recruitment, parameters):
        link_settings = recruitment.settings
        person = parameters.get(link_settings.get("person_parameter") or "participant", "").strip()
        if is_blank(person):
            return Arrival(
                problem=gettext("The link is not complete: your id is missing. Please start from the panel again.")
            )
        if is_unfilled(person):
            return Arrival(
                problem=gettext(
                    "The panel did not add your id to the link. Please start from the panel again. If you "
                    "see this page again, write to the researcher."
                )
            )
        if len(person) > LONGEST_PERSON:
            message = ngettext(
                "The id in this link is longer than %(n)s character, so it is not valid. Please start from the panel "
                "again. If you see this page again, write to the researcher.",
                "The id in this link is longer than %(n)s characters, so it is not valid. Please start from the panel "
                "again. If you see this page again, write to the researcher.",
                LONGEST_PERSON,
            )
            return Arrival(problem=message % {"n": LONGEST_PERSON})
        trust = "claimed"
        if link_settings.get("key_parameter"):
            if not constant_time_compare(
                parameters.get(link_settings["key_parameter"], ""), link_settings.get("key_value", "")
            ):
                return Arrival(problem=gettext("This link is not from the panel. Please start from the panel again."))
            trust = "keyed"
        ids = {"person": person}
        for name in ("session", "task"):
            parameter = link_settings.get(f"{name}_parameter")
            if parameter and (value := parameters.get(parameter, "")[:200]):
                ids[name] = value
        return Arrival(person=person, ids=ids, trust=trust)

    def way_back(self, recruitment, outcome, external_ids, receipt):
        code_or_url = recruitment.settings.get(f"return_{outcome}", "")
        # A link may be older than the site's list.
        if not code_or_url or not is_allowed_return_site(code_or_url):
            return WayBack(code=receipt) if outcome == "complete" else WayBack()
        # The panel cannot use an address without the person's id.
        if "{person}" in code_or_url and not external_ids.get("person"):
            return WayBack(code=receipt) if outcome == "complete" else WayBack()
        values = {name: external_ids.get(name, "") for name in PLACEHOLDERS} | {"code": receipt}
        if "://" in code_or_url:
            return WayBack(url=fill_url_template(code_or_url, values))
        return WayBack(code=fill_url_template(code_or_url, values))

    def links(self, recruitment, base):
        link_settings = recruitment.settings
        names = [link_settings.get(f"{name}_parameter") for name in ("person", "session", "task")]
        pairs = [f"{name}=…" for name in names if name]
        if link_settings.get("key_parameter"):
            pairs.append(f"{link_settings['key_parameter']}={link_settings.get('key_value', '')}")
        return [("Link for the panel; replace the dots by the panel's placeholders", f"{base}?{'&'.join(pairs)}")]

    def rehearsal_entry(self, recruitment, base, number):
        link_settings = recruitment.settings
        ids = {"person": f"person-{number}", "session": f"session-{number}", "task": "task-1"}
        filled_in = {
            link_settings[f"{name}_parameter"]: value
            for name, value in ids.items()
            if link_settings.get(f"{name}_parameter")
        }
        filled_in.setdefault(link_settings.get("person_parameter") or "participant", ids["person"])
        if link_settings.get("key_parameter"):
            filled_in[link_settings["key_parameter"]] = link_settings.get("key_value", "")
        return f"{base}?{urlencode(filled_in)}", ids["session"]

    def problems(self, recruitment):
        problems = (
            []
            if recruitment.settings.get("return_complete")
            else ["There is no code or address for people who complete. Add it in the link's settings."]
        )
        for outcome, description in OUTCOMES.items():
            if not is_allowed_return_site(recruitment.settings.get(f"return_{outcome}", "")):
                problems.append(
                    f"heval does not use the return address for “{description}”, because RETURN_SITES does not list its site. Enter another address."
                )
        return problems

    def warnings(self, recruitment):
        if recruitment.settings.get("key_parameter"):
            return []
        return [
            "The link has no secret parameter, so anybody who guesses an id can take or continue that person's place. "
            "Add one in the link's settings."
        ]

    def can_read_export_file(self, recruitment):
        return exported_file.has_file_column_settings(recruitment.settings)

    def read_export(self, recruitment, text, task=""):
        return exported_file.parse_submissions_file(recruitment.settings, text)
