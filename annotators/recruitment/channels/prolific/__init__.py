"""Prolific: people come by a link with three ids, and return with a code that says how their visit ended."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from django import forms

from annotators.recruitment.channels import OUTCOMES, Arrival, Channel, FormLine, WayBack, is_unfilled, register
from annotators.recruitment.channels.generic import OutcomeCodesForm
from annotators.recruitment.channels.thresholds import ThresholdsForm
from annotators.recruitment.panels import ForgedMessage
from studies.language import format_list, gettext

from .client import COMPLETE_URL, ID_PATTERN, PARAMETERS, REJECTION_POLICY
from .files import bulk_form_texts, parse_submissions_csv

HOME_URL = "https://app.prolific.com/"
# How a visit ended > the label of its code in Prolific's form.
CODE_LABELS = {
    "complete": "completed",
    "screened_out": "screened out",
    "failed_checks": "failed attention check",
    "no_consent": "no consent",
}


def _review_text(settings: Mapping[str, Any], outcome: str) -> str:
    """Return what Prolific shall do when somebody enters the code of this outcome."""
    if outcome == "complete" and settings.get("review") == "automatic":
        return "approve at once"
    if outcome == "screened_out" and settings.get("screen_out_pay"):
        return f"pay {settings['screen_out_pay']} to each of {settings['screen_out_places']} people at most"
    return "review by hand"


def _pay_text(settings: Mapping[str, Any], outcome: str, promised: Collection[str]) -> str:
    """Return who pays people who come back by the code of this outcome. ``promised``: the ends that the first page promises pay for."""
    if outcome == "complete":
        return (
            "You look at the work, and Prolific pays the reward when it is approved."
            if settings.get("review") != "automatic"
            else "Prolific pays the reward."
        )
    if outcome == "screened_out" and settings.get("screen_out_pay"):
        return ""
    if outcome == "closed" and "fault" in promised:
        return "People who were at work get what the first page promises, listed under Pay; nobody else is paid."
    return (
        "The first page promises pay for it, which heval lists under Pay."
        if outcome in promised
        else "Nobody is paid for it."
    )


def clean_prolific_id(value: str) -> str:
    if not ID_PATTERN.fullmatch(value):
        raise forms.ValidationError(
            "This is not an id of Prolific. Copy its 24 characters: digits and the letters a to f."
        )
    return value


class ProlificSettings(ThresholdsForm, OutcomeCodesForm):
    review = forms.ChoiceField(
        label="people who complete are",
        choices=[("manual", "reviewed by you"), ("automatic", "approved by Prolific at once")],
        initial="manual",
    )
    screen_out_pay = forms.DecimalField(
        required=False,
        min_value=0,
        max_value=1000,
        max_digits=6,
        decimal_places=2,
        label="pay for screened-out people",
        help_text=(
            "A fixed amount that Prolific pays automatically, in the study's currency. Prolific has a "
            "minimum, and the amount must be less than the reward."
        ),
    )
    screen_out_places = forms.IntegerField(
        required=False, min_value=1, max_value=100_000, label="maximum number of screened-out people"
    )
    project = forms.CharField(
        required=False,
        max_length=24,
        validators=[clean_prolific_id],  # type: ignore[list-item]  # its result is not used
        help_text="Prolific's id of the project to publish in. Empty: Prolific's default.",
    )
    barred_group = forms.CharField(
        required=False,
        max_length=64,
        label="participant group to exclude",
        validators=[clean_prolific_id],  # type: ignore[list-item]  # its result is not used
        help_text="The id of a group at Prolific. Its members do not see the study.",
    )

    def clean(self):
        cleaned = super().clean()
        pair = ("screen_out_pay", "screen_out_places")
        for name, other_name in (pair, pair[::-1]):
            if cleaned.get(name) and not cleaned.get(other_name) and other_name not in self.errors:
                self.add_error(
                    other_name,
                    "Prolific needs both the pay and the number of screened-out people. Enter both, or neither.",
                )
        return cleaned


@register
class Prolific(Channel):
    slug = "prolific"
    label = "Prolific"
    help = "People come by the study's address at Prolific, and return with a code for each way to end."
    settings_form = ProlificSettings
    secrets: ClassVar = {"token": "API token"}
    person_column = "Participant id"
    link_is_personal = True
    publishes = has_form = True
    form_help = "Add a completion code there for each code here: its value, its label and what happens."
    link_help = "Record Prolific ids by: URL parameters."
    pays_by = frozenset({"approval", "bonus", "screen_out"})
    sends_webhooks = shows_active_submissions = has_blocklist = True
    rejection_policy = REJECTION_POLICY

    def read_arrival(self, recruitment, parameters):
        texts = {name: parameters.get(parameter, "").strip() for name, parameter in PARAMETERS.items()}
        # The link contains the placeholder itself: someone opened the pasted address without coming from Prolific.
        if any(map(is_unfilled, texts.values())):
            return Arrival(is_preview=True)
        if not any(texts.values()):
            return Arrival(
                problem=gettext("Please open this study from Prolific. The link must have your Prolific id.")
            )
        if wrong_names := [PARAMETERS[name] for name, value in texts.items() if not ID_PATTERN.fullmatch(value)]:
            # Translators: names of parameters of the link
            message = gettext(
                "The link is not complete: %(names)s should be an id of 24 characters. Please open the study from "
                "Prolific again. If you see this page again, return the study there and write to the researcher."
            )
            return Arrival(problem=message % {"names": format_list(wrong_names)})
        ids = {name: value.lower() for name, value in texts.items()}
        return Arrival(person=ids["person"], ids=ids)

    def way_back(self, recruitment, outcome, external_ids, receipt):
        code = recruitment.settings.get(f"code_{outcome}", "")
        return WayBack(code=code, url=COMPLETE_URL + code if code else HOME_URL, label=gettext("Return to Prolific"))

    def links(self, recruitment, base):
        query = "&".join(f"{parameter}={{{{%{parameter}%}}}}" for parameter in PARAMETERS.values())
        return [("Study link for Prolific: paste it unchanged", f"{base}?{query}")]

    def code_lines(self, recruitment, outcomes):
        """Return the codes, each with what Prolific asks about it."""
        asked = [(outcome, recruitment.settings.get(f"code_{outcome}", "")) for outcome in outcomes]
        reward = recruitment.study.reward if recruitment.reward is None else recruitment.reward
        rules = recruitment.outcome_pays.exclude(rule="nothing").values_list("outcome", "rule")
        promised = {outcome for outcome, rule in rules if reward or rule == "amount"}
        return [
            FormLine(
                f"Code: {OUTCOMES[outcome]}",
                code,
                f"Label “{CODE_LABELS.get(outcome, 'other')}”, {_review_text(recruitment.settings, outcome)}. "
                f"{_pay_text(recruitment.settings, outcome, promised)}",
            )
            for outcome, code in asked
            if code
        ]

    def problems(self, recruitment):
        return (
            []
            if recruitment.settings.get("code_complete")
            else ["There is no code for people who complete. Add it in the link's settings."]
        )

    def service(self, recruitment, secrets):
        from .service import ProlificService

        return ProlificService(secrets["token"], recruitment.settings) if secrets.get("token") else None

    def stand_in(self, recruitment, base):
        from .stand_in import ProlificStandIn

        return ProlificStandIn()

    def can_read_export_file(self, recruitment):
        return True

    def read_export(self, recruitment, text, task=""):
        return parse_submissions_csv(text, task)

    def normalize_person_id(self, cell):
        return cell.strip().lower()

    def read_message(self, secret, headers, raw):
        from . import client

        signature = headers.get(client.SIGNATURE, "")
        if not client.is_signature_valid(secret, headers.get(client.TIMESTAMP, ""), raw, signature):
            raise ForgedMessage("The signature is not from Prolific.")
        return client.parse_notification(headers.get(client.EVENT_ID, ""), raw)

    def bulk_texts(self, orders):
        return bulk_form_texts(orders)
