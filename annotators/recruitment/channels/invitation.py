"""Personal invitation links. A link works on every device, and opening it does not use it up."""

import hmac

from django import forms

from annotators.models.crypto import keyed_hash

from . import Arrival, Channel, register


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

    def read_arrival(self, recruitment, parameters):
        code = parameters.get("i", "")
        number, _, _ = code.partition("-")
        people = int(recruitment.settings.get("people", 0))
        if not (number.isascii() and number.isdigit() and len(number) < 6 and 1 <= int(number) <= people):
            return Arrival(problem="This link is not complete. Please open the whole link that you were sent.")
        if not hmac.compare_digest(code.encode(), invitation_token(recruitment.key, int(number)).encode()):
            return Arrival(problem="This link is not complete. Please open the whole link that you were sent.")
        if number in {n.strip() for n in recruitment.settings.get("revoked", "").split(",")}:
            return Arrival(problem="This invitation is no longer valid. Please write to the researcher.")
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
