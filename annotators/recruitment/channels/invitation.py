"""A link for each person: it is theirs on every device, and opening it uses nothing up."""

import hmac

from django import forms

from annotators.models.crypto import keyed_hash

from . import Arrival, Channel, register


class InvitationSettings(forms.Form):
    people = forms.IntegerField(
        min_value=1, max_value=10000, initial=20, label="invitations", help_text="How many links there are."
    )
    days = forms.IntegerField(
        min_value=0,
        max_value=365,
        initial=0,
        required=False,
        label="days for each part",
        help_text="For people who do several parts over days: a place is kept so long, and their link leads to a list of their parts. "
        "0: the study's own times, for one sitting.",
    )
    revoked = forms.CharField(
        required=False,
        label="revoked numbers",
        help_text="Numbers of invitations that are no longer good, with commas between.",
    )

    def clean_revoked(self):
        numbers = [number.strip() for number in self.cleaned_data["revoked"].split(",") if number.strip()]
        if not all(number.isascii() and number.isdigit() for number in numbers):
            raise forms.ValidationError("Give whole numbers with commas between, such as 3, 17.")
        return ", ".join(numbers)


def invitation_token(recruitment_key: str, number: int) -> str:
    """128 bits that only this site can make for that person: no table of secrets is kept."""
    return f"{number}-{keyed_hash('invitation', recruitment_key, str(number))[:32]}"


@register
class Invitation(Channel):
    slug = "invitation"
    label = "Personal invitations"
    help = "A link per person. Who is who stays in your own list: heval knows the number of the invitation."
    settings_form = InvitationSettings

    def read_arrival(self, recruitment, parameters):
        sent = parameters.get("i", "")
        number, _, _ = sent.partition("-")
        people = int(recruitment.settings.get("people", 0))
        if not (number.isascii() and number.isdigit() and len(number) < 6 and 1 <= int(number) <= people):
            return Arrival(problem="This link is not complete. Please open the whole link that you were sent.")
        if not hmac.compare_digest(sent.encode(), invitation_token(recruitment.key, int(number)).encode()):
            return Arrival(problem="This link is not complete. Please open the whole link that you were sent.")
        if number in {n.strip() for n in recruitment.settings.get("revoked", "").split(",")}:
            return Arrival(problem="This invitation is no longer good. Please write to the researcher.")
        return Arrival(person=f"{recruitment.key}:{number}", trust="keyed")

    def reserved_seconds(self, recruitment):
        return int(recruitment.settings.get("days") or 0) * 86_400

    def links(self, recruitment, base):
        people = int(recruitment.settings.get("people", 0))
        return [(f"Invitation {n}", f"{base}?i={invitation_token(recruitment.key, n)}") for n in range(1, people + 1)]

    def rehearsal_entry(self, recruitment, base, number):
        return f"{base}?i={invitation_token(recruitment.key, number)}", str(number)

    def problems(self, recruitment):
        return [] if recruitment.settings.get("people") else ["Say how many invitations there are."]
