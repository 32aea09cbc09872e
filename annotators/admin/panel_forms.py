"""Forms of the panel page: secrets, exported file, publishing, and the plan of rounds."""

from django import forms

from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels.publishing import done_or_pending_publication_orders
from annotators.recruitment.panels.secrets import stored_secret_dates

from ..models import PanelPlan, Recruitment

MAX_FILE_SIZE = 8 * 1024 * 1024


class SecretsForm(forms.Form):
    """One field per secret of a channel. Stored secrets are never sent back; an empty field changes nothing."""

    def __init__(self, recruitment: Recruitment, *args):
        super().__init__(*args)
        stored_dates = stored_secret_dates(recruitment)
        for name, label in REGISTRY[recruitment.channel].secrets.items():
            self.fields[name] = forms.CharField(
                required=False,
                max_length=500,
                label=label,
                widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
                help_text=f"Stored since {stored_dates[name]:%Y-%m-%d %H:%M} UTC. Leave this empty to keep it."
                if name in stored_dates
                else "Not stored yet.",
            )
            if name in stored_dates:
                self.fields[f"forget_{name}"] = forms.BooleanField(required=False, label=f"forget: {label}")

    def changes(self) -> dict[str, str]:
        values = self.cleaned_data
        new = {name: values[name] for name in values if not name.startswith("forget_") and values[name]}
        return {
            name.removeprefix("forget_"): "" for name in values if name.startswith("forget_") and values[name]
        } | new


class PanelFileForm(forms.Form):
    file = forms.FileField(label="The panel's exported file", widget=forms.FileInput(attrs={"accept": ".csv,.txt"}))

    def clean_file(self):
        file = self.cleaned_data["file"]
        if file.size > MAX_FILE_SIZE:
            raise forms.ValidationError("The file is larger than 8 MB. Export fewer submissions at once.")
        try:
            return file.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise forms.ValidationError("The file is not UTF-8 text. Save it as “CSV UTF-8”.") from None


class PublishForm(forms.Form):
    """The task as the panel will show it.

    ``seen`` holds the values whose cost was shown; the cost of other values must be shown first.
    """

    title = forms.CharField(max_length=120, help_text="The title of the task at the panel. Do not name a system.")
    description = forms.CharField(max_length=2000, widget=forms.Textarea(attrs={"rows": 4}))
    places = forms.IntegerField(min_value=1, max_value=10_000, label="people")
    minutes = forms.IntegerField(min_value=1, max_value=1440, label="estimated minutes")
    reward = forms.DecimalField(min_value=0, max_value=10_000, max_digits=7, decimal_places=2, label="pay per person")
    seen = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, recruitment: Recruitment, data=None):
        study = recruitment.study
        plan = PanelPlan.objects.filter(recruitment=recruitment).first()
        self.before = done_or_pending_publication_orders(recruitment).count()
        reward = recruitment.reward if recruitment.reward is not None else study.reward
        super().__init__(
            data,
            initial={
                "title": study.public_title,
                "description": study.purpose[:2000],
                "places": plan.round_places if plan else recruitment.wanted or study.target_n,
                "minutes": study.minutes,
                "reward": reward,
            },
        )
        self.fields["reward"].help_text = f"In {recruitment.currency or study.currency}."

    @property
    def shown_values(self) -> str:
        """Return the values of the displayed cost, and the number of earlier publications, so that a page sent again publishes
        nothing.
        """
        return "{places} x {reward}, {minutes}, after {before}".format(before=self.before, **self.cleaned_data)


class PlanForm(forms.Form):
    """The plan of rounds. It can be changed later."""

    people = forms.IntegerField(min_value=1, max_value=10_000, label="total number of people wanted by this link")
    round_places = forms.IntegerField(min_value=1, max_value=10_000, label="places per round")
    lost_percent = forms.IntegerField(
        min_value=0,
        max_value=50,
        initial=0,
        label="percentage of places without finished work",
        help_text=(
            "Your estimate. With 0, heval publishes no extra places. From 20 used places on, heval "
            "measures the percentage."
        ),
    )

    def __init__(self, recruitment: Recruitment, data=None):
        self.study = recruitment.study
        plan = PanelPlan.objects.filter(recruitment=recruitment).first()
        defaults = {"people": recruitment.wanted or self.study.target_n, "round_places": 9}
        names = ("people", "round_places", "lost_percent")
        super().__init__(data, initial={name: getattr(plan, name) for name in names} if plan else defaults)

    def clean_people(self):
        people = self.cleaned_data["people"]
        if self.study.target_n and people > self.study.target_n:
            raise forms.ValidationError(
                f"The study needs only {self.study.target_n} people. Enter at most this number."
            )
        return people
