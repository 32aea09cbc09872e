"""SONA, used by university pools: a code for each sign-up, and credit instead of money."""

import re
from typing import Any, ClassVar
from urllib.parse import urlencode
from xml.parsers import expat

from django import forms

from annotators.recruitment.channels import Arrival, Channel, WayBack, fill_url_template, is_unfilled, register
from annotators.recruitment.channels.thresholds import ThresholdsForm
from annotators.recruitment.panels import PanelService, RequestRefused, ResultUnclear
from annotators.recruitment.panels.http_client import PanelHttpClient, decrypt_panel_secret
from studies.language import gettext

SURVEY_CODE = re.compile(r"[0-9]{2,7}", re.ASCII)
SITE = re.compile(r"([a-z0-9-]+\.)+sona-systems\.com", re.ASCII)
CREDIT_URL = "https://{site}/webstudy_credit.aspx?experiment_id={experiment_id}&credit_token={credit_token}&survey_code={survey_code}"
REQUIRED_SETTINGS = ("site", "experiment_id")
CREDIT_TOKEN = "credit_token"  # noqa: S105 - the name of a setting
CREDIT_TOKEN_PATTERN = re.compile(r"[A-Za-z0-9-]{1,64}", re.ASCII)


def clean_sona_site(value: str) -> str:
    if not SITE.fullmatch(value.lower()):
        raise forms.ValidationError(
            "This is not the name of a SONA site. Enter only the name, for example yourschool.sona-systems.com"
        )
    return value


def clean_digits(value: str) -> str:
    if not (value.isascii() and value.isdigit()):
        raise forms.ValidationError("This is not a number. Copy the number from SONA's address.")
    return value


class SonaSettings(ThresholdsForm):
    site = forms.CharField(
        max_length=100,
        required=False,
        validators=[clean_sona_site],  # type: ignore[list-item]  # its result is not used
        help_text=("For example yourschool.sona-systems.com"),
    )
    experiment_id = forms.CharField(
        max_length=10,
        required=False,
        validators=[clean_digits],  # type: ignore[list-item]  # its result is not used
        label="experiment_id",
    )

    def clean_site(self):
        return self.cleaned_data["site"].lower()

    def clean(self):
        # Anyone who has it can grant credit, while settings are shown, copied and exported.
        if self.data.get(self.add_prefix(CREDIT_TOKEN)):
            raise forms.ValidationError("The credit token is a secret, not a setting. Store it on the panel page.")
        return super().clean()


@register
class Sona(Channel):
    slug = "sona"
    label = "SONA"
    has_form = True
    help = "People come with the code of their sign-up, and get credit when they reach the last page."
    settings_form = SonaSettings
    secrets: ClassVar = {CREDIT_TOKEN: "credit token"}
    shows_submissions = False
    knows_people_again = False  # each sign-up has a new code
    credits_on_completion = True

    def read_arrival(self, recruitment, parameters):
        survey_code = parameters.get("survey_code", "").strip()
        if is_unfilled(survey_code):
            return Arrival(is_preview=True)
        if not SURVEY_CODE.fullmatch(survey_code):
            return Arrival(
                problem=gettext(
                    "The link is not complete: survey_code should be a number of 2 to 7 digits. Please "
                    "open the study from SONA again."
                )
            )
        # The number is new for each sign-up, but each site counts on its own. Without the study it would match another
        # person.
        scope = [recruitment.settings.get(name, "") for name in ("site", "experiment_id")]
        # With a leading zero it is the same sign-up, but would be counted as a second person.
        return Arrival(
            person=":".join((*scope, str(int(survey_code)))), ids={"person": survey_code, "session": survey_code}
        )

    def way_back(self, recruitment, outcome, external_ids, receipt):
        values = {name: recruitment.settings.get(name, "") for name in REQUIRED_SETTINGS}
        code = external_ids.get("session", "")
        # Read only for people who completed, because their address contains the token.
        if (
            outcome == "complete"
            and code
            and all(values.values())
            and (token := decrypt_panel_secret(recruitment, CREDIT_TOKEN))
        ):
            return WayBack(
                url=fill_url_template(CREDIT_URL, values | {CREDIT_TOKEN: token, "survey_code": code}),
                label=gettext("Get your credit at SONA"),
            )
        return self.way_back_if_already_credited(recruitment)

    def way_back_if_already_credited(self, recruitment):
        site = recruitment.settings.get("site", "")
        return WayBack(url=f"https://{site}/" if site else "", label=gettext("Return to SONA"))

    def links(self, recruitment, base):
        return [("Study URL for SONA: paste it unchanged", f"{base}?survey_code=%SURVEY_CODE%")]

    def rehearsal_entry(self, recruitment, base, number):
        code = str(10_000 + number)
        return self.links(recruitment, base)[0][1].replace("%SURVEY_CODE%", code), code

    def problems(self, recruitment):
        missing = [name for name in REQUIRED_SETTINGS if not recruitment.settings.get(name)]
        problems = (
            [f"SONA gives no credit without {', '.join(missing)}. Enter this in the link's settings."]
            if missing
            else []
        )
        if not decrypt_panel_secret(recruitment, CREDIT_TOKEN):
            problems.append("SONA gives no credit without its credit token. Store it on the panel page.")
        return problems

    def service(self, recruitment, secrets):

        settings, token = recruitment.settings, secrets.get(CREDIT_TOKEN, "")
        if not token or not all(settings.get(name) for name in REQUIRED_SETTINGS):
            return None
        if not CREDIT_TOKEN_PATTERN.fullmatch(token):
            raise RequestRefused(
                "This is not a credit token. Copy the text between credit_token= and the next & in SONA's address."
            )
        return SonaService(settings["site"], settings["experiment_id"], token)


# SONA's service: grant credit from server to server, so that it does not depend on a person's last click.


PATH = "/services/SonaAPI.svc/WebstudyCredit"
GRANTED_STATUS = "G"


def grant_credit(
    site: str, experiment_id: str, credit_token: str, survey_code: str, *, origin: str = ""
) -> dict[str, Any]:
    """Grant the credit of one sign-up.

    ``origin``: a stand-in on this machine.
    Only a ``Result`` whose ``credit_status`` is G means granted. Errors come with HTTP 200 too. Raises RequestRefused with
    SONA's message, ResultUnclear if the answer is unclear, PanelBusy if nothing was sent.
    """
    wire = PanelHttpClient(origin or f"https://{site}", (".sona-systems.com",), secret=credit_token)
    query = {"experiment_id": experiment_id, "credit_token": credit_token, "survey_code": survey_code}
    # SONA accepts only GET for this, although it changes something.
    texts = parse_xml_texts(wire.send_order("GET", f"{PATH}?{urlencode(query)}", accepts="application/xml"))
    if (
        "Result" in texts
        and texts.get("credit_status", "").strip() == GRANTED_STATUS
        and not texts.get("Errors", "").strip()
    ):
        return {"credit_status": GRANTED_STATUS}
    if message := " ".join(texts.get("Errors", "").split()):
        raise RequestRefused(message.replace(credit_token, "…")[:500])
    if status := texts.get("credit_status", "").strip():
        raise RequestRefused(f"SONA shows the credit as “{status[:20]}”, not as granted. Look at the sign-up at SONA.")
    raise ResultUnclear("SONA's answer contains neither a result nor an error. Look at the sign-up at SONA.")


def parse_xml_texts(raw: bytes) -> dict[str, str]:
    """Return the text below each element of an answer, by name without namespace. Nil elements are left out."""
    texts: dict[str, str] = {}
    open_elements: list[str] = []

    def begin(tag, attributes):
        is_nil = any(name.rpartition(" ")[2] == "nil" and value in ("true", "1") for name, value in attributes.items())
        open_elements.append("" if is_nil else tag.rpartition(" ")[2])
        if open_elements[-1]:
            texts.setdefault(open_elements[-1], "")

    def words(text):
        for name in {name for name in open_elements if name}:
            texts[name] += text

    def refuse(*declared):
        raise ResultUnclear("SONA's answer declares a document type, which it should not. Look at the sign-up at SONA.")

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler, parser.CharacterDataHandler = begin, words
    parser.EndElementHandler = lambda tag: open_elements.pop()
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(raw, True)
    except expat.ExpatError:
        raise ResultUnclear("SONA's answer is not XML. Look at the sign-up at SONA.") from None
    return texts


class SonaService(PanelService):
    """Approve by granting credit. SONA has no list, so all known states come from SONA's answers to orders."""

    operations = frozenset({"approve"})

    def __init__(self, site: str, experiment_id: str, credit_token: str, origin: str = ""):
        self.site, self.experiment_id, self.origin = site, experiment_id, origin
        self._credit_token = credit_token

    def submissions(self, task):
        raise RequestRefused("SONA does not show its sign-ups to other programs. Read them at SONA.")

    def submission(self, submission):
        return None

    def approve(self, values, token):
        return grant_credit(self.site, self.experiment_id, self._credit_token, values["submission"], origin=self.origin)

    def find_order_result(self, order):
        """Credit is a state of the sign-up, not a sum, so granting it twice changes nothing."""
        return None if order.operation in self.operations else super().find_order_result(order)
