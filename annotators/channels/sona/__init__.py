"""SONA, the pools of universities: a code for each sign-up, and credit instead of money."""

import re

from django import forms

from .. import Arrival, Channel, Return, filled, register

SURVEY_CODE = re.compile(r"[0-9]{2,7}", re.ASCII)
SITE = re.compile(r"([a-z0-9-]+\.)+sona-systems\.com", re.ASCII)
CREDIT = "https://{site}/webstudy_credit.aspx?experiment_id={experiment_id}&credit_token={credit_token}&survey_code={survey_code}"
FROM_SONA = ("site", "experiment_id", "credit_token")


def clean_site(value: str) -> str:
    if not SITE.fullmatch(value.lower()):
        raise forms.ValidationError("Give the name of your site alone, such as yourschool.sona-systems.com")
    return value


def clean_number(value: str) -> str:
    if not (value.isascii() and value.isdigit()):
        raise forms.ValidationError("This is a number, as it stands in SONA's address.")
    return value


def clean_token(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9-]+", value, re.ASCII):
        raise forms.ValidationError("Copy what stands between credit_token= and the next & in SONA's address.")
    return value


class SonaSettings(forms.Form):
    site = forms.CharField(
        max_length=100, required=False, validators=[clean_site], help_text="Such as yourschool.sona-systems.com"
    )
    experiment_id = forms.CharField(max_length=10, required=False, validators=[clean_number], label="experiment_id")
    credit_token = forms.CharField(
        max_length=64, required=False, validators=[clean_token], label="credit_token",
        help_text="From the completion address that SONA shows. Who completed is led there and can see it; nobody before.",
    )  # fmt: skip

    def clean_site(self):
        return self.cleaned_data["site"].lower()


@register
class Sona(Channel):
    slug = "sona"
    label = "SONA"
    help = "People come with a code of their sign-up, and are given credit when they go back."
    settings_form = SonaSettings

    def arrive(self, recruitment, parameters):
        sent = parameters.get("survey_code", "").strip()
        if "%" in sent:
            return Arrival(is_preview=True)
        if not SURVEY_CODE.fullmatch(sent):
            return Arrival(
                problem="The link is not complete: survey_code should be a number of 2 to 7 digits. Please open the study from SONA again."
            )
        # The number is new for each sign-up, and sites count for themselves: without the study it would name somebody else too.
        of = [recruitment.settings.get(name, "") for name in ("site", "experiment_id")]
        return Arrival(person=":".join((*of, sent)), ids={"person": sent, "session": sent})

    def way_back(self, recruitment, outcome, external_ids, receipt):
        known = {name: recruitment.settings.get(name, "") for name in FROM_SONA}
        code = external_ids.get("session", "")
        if outcome == "complete" and code and all(known.values()):
            return Return(url=filled(CREDIT, known | {"survey_code": code}), label="Get your credit at SONA")
        site = known["site"]
        return Return(url=f"https://{site}/" if site else "", label="Return to SONA")

    def links(self, recruitment, base):
        return [("Study URL for SONA: paste it as it stands", f"{base}?survey_code=%SURVEY_CODE%")]

    def opened(self, recruitment, base, number):
        code = str(10_000 + number)
        return self.links(recruitment, base)[0][1].replace("%SURVEY_CODE%", code), code

    def problems(self, recruitment):
        missing = [name for name in FROM_SONA if not recruitment.settings.get(name)]
        return [f"SONA gives no credit without {', '.join(missing)}."] if missing else []

    def service(self, recruitment, secrets):
        from .service import SonaService

        known = recruitment.settings
        return SonaService(*(known[name] for name in FROM_SONA)) if all(known.get(name) for name in FROM_SONA) else None
