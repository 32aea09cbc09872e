"""CloudResearch Connect: it adds three ids to the link, and accepts returns by its own address or code."""

import re
from urllib.parse import urlencode

from django import forms

from studies.language import format_list, gettext

from . import Arrival, Channel, WayBack, exported_file, is_unfilled, register
from .generic import clean_return_code_or_url
from .thresholds import ThresholdsForm

PARAMETERS = {"person": "participantId", "session": "assignmentId", "task": "projectId"}
ID_PATTERN = re.compile(r"[A-Za-z0-9_-]{4,64}", re.ASCII)
HOST = "connect.cloudresearch.com"
# Connect pays partial completes by a separate redirect, so the redirect for completed work must not be used for them.
PARTIAL_OUTCOMES = ("screened_out", "failed_checks")


def clean_connect_return(value: str) -> str:
    value = clean_return_code_or_url(value)
    if "://" in value and re.split(r"[/?#]", value.partition("://")[2], maxsplit=1)[0].lower() != HOST:
        raise forms.ValidationError(f"This is not an address of Connect. Copy the one that begins with https://{HOST}/")
    if "{" in value:
        raise forms.ValidationError("heval fills in nothing here. Paste the address exactly as Connect shows it.")
    return value


class ConnectSettings(exported_file.FileColumnsForm, ThresholdsForm):
    parts = ThresholdsForm.parts | exported_file.FileColumnsForm.parts

    return_complete = forms.CharField(
        max_length=500,
        required=False,
        validators=[clean_connect_return],  # type: ignore[list-item]  # its result is not used
        label="redirect address or code: completed",
        help_text="As Connect shows it at the end of the project.",
    )
    return_in_part = forms.CharField(
        max_length=500,
        required=False,
        validators=[clean_connect_return],  # type: ignore[list-item]  # its result is not used
        label="redirect address or code: partial completes",
        help_text=(
            "For people who are screened out or fail the checks, if the project has partial completes. "
            "Do not use the one above."
        ),
    )

    def clean(self):
        cleaned = super().clean()
        complete, in_part = cleaned.get("return_complete", ""), cleaned.get("return_in_part", "")
        if complete and complete.casefold() == in_part.casefold():
            self.add_error(
                "return_in_part",
                "This would pay people who did not complete as if they had. Use the other address that Connect shows.",
            )
        return cleaned


@register
class Connect(Channel):
    slug = "connect"
    label = "CloudResearch Connect"
    has_form = True
    help = "Connect adds its ids to the link. People return by the project's own redirect or code."
    settings_form = ConnectSettings

    def read_arrival(self, recruitment, parameters):
        ids = {name: parameters.get(parameter, "").strip() for name, parameter in PARAMETERS.items()}
        if any(map(is_unfilled, ids.values())):
            return Arrival(is_preview=True)
        if not any(ids.values()):
            return Arrival(
                problem=gettext("Please open this study from Connect. The link must have your participant id.")
            )
        if wrong_names := [PARAMETERS[name] for name, value in ids.items() if not ID_PATTERN.fullmatch(value)]:
            # Translators: names of parameters of the link
            message = gettext(
                "The link is not complete: %(names)s should be an id from Connect. Please open the study from Connect "
                "again. If you see this page again, write to the researcher."
            )
            return Arrival(problem=message % {"names": format_list(wrong_names)})
        return Arrival(person=ids["person"], ids=ids)

    def way_back(self, recruitment, outcome, external_ids, receipt):
        name = "return_complete" if outcome == "complete" else "return_in_part" if outcome in PARTIAL_OUTCOMES else ""
        code_or_url = recruitment.settings.get(name, "")
        if "://" in code_or_url:
            return WayBack(url=code_or_url, label=gettext("Return to Connect"))
        return WayBack(code=code_or_url, url=f"https://{HOST}/", label=gettext("Return to Connect"))

    def links(self, recruitment, base):
        return [("Link for Connect (Connect adds its ids)", base)]

    def rehearsal_entry(self, recruitment, base, number):
        ids = {"person": f"PERSON{number:04d}", "session": f"ASSIGNMENT{number:04d}", "task": "PROJECT0001"}
        return f"{base}?{urlencode({PARAMETERS[name]: value for name, value in ids.items()})}", ids["session"]

    def problems(self, recruitment):
        return (
            []
            if recruitment.settings.get("return_complete")
            else ["There is no redirect address or code for people who complete. Add it in the link's settings."]
        )

    def can_read_export_file(self, recruitment):
        return exported_file.has_file_column_settings(recruitment.settings)

    def read_export(self, recruitment, text, task=""):
        return exported_file.parse_submissions_file(recruitment.settings, text, ID_PATTERN)
