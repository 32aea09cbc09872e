"""Forms of the pages of members."""

from django import forms
from django.contrib.auth import get_user_model

from boards.models import WEEKDAYS, Board, BoardMember
from boards.services.boards import CHANGEABLE_WHEN_OPEN
from studies.access import Action, filter_allowed
from studies.models import Study

GROUPS = (
    ("The board", ("title", "slug", "description", "visibility", "shows_examples")),
    (
        "What is scored",
        (
            "template",
            "output_kind",
            "population",
            "controls_style",
            "balances_pairs",
            "sample_size",
            "seed",
            "labels_per_output",
            "double_label_share",
            "anchor_share",
        ),
    ),
    ("Limits for each team", ("max_waiting_per_team", "max_daily_per_team", "max_megabytes_per_team")),
    ("Budget, in the template's currency", ("budget_per_submission", "budget_per_month")),
    (
        "Rounds",
        ("max_submissions_per_round", "opens_by_itself", "launch_weekdays", "launch_hour", "time_zone"),
    ),
)


class BoardForm(forms.ModelForm):
    """The settings of a board. After it is opened, those that scores depend on are shown and cannot change."""

    launch_weekdays = forms.MultipleChoiceField(
        choices=[(str(number), day) for number, day in enumerate(WEEKDAYS)],
        widget=forms.CheckboxSelectMultiple,
        required=False,
        label="launch window: days",
    )

    class Meta:
        model = Board
        fields = [name for _, names in GROUPS for name in names]
        widgets = {"description": forms.Textarea(attrs={"rows": 4})}

    def __init__(self, *args, user, **kwargs):
        super().__init__(*args, **kwargs)
        self.initial["launch_weekdays"] = [str(day) for day in self.instance.launch_days]
        drafts = Study.objects.filter(state=Study.State.DRAFT, archived_at=None)
        field = self.fields["template"]
        field.queryset = filter_allowed(user, drafts, Action.EDIT).order_by("title")  # type: ignore[attr-defined]  # a choice of rows
        if self.instance.pk and self.instance.state != Board.State.DRAFT:
            for name, one in self.fields.items():
                one.disabled = name not in CHANGEABLE_WHEN_OPEN
            field.queryset = Study.objects.filter(pk=self.instance.template_id)  # type: ignore[attr-defined]  # a choice of rows

    def clean_launch_weekdays(self):
        return ",".join(self.cleaned_data["launch_weekdays"])

    def groups(self):
        """Return the fields in groups with a title."""
        return [(title, [self[name] for name in names]) for title, names in GROUPS]


class BoardBundleForm(forms.Form):
    file = forms.FileField(
        label="File",
        widget=forms.FileInput(attrs={"accept": ".json"}),
        help_text="A bundle of a board, as “Download as one file” of another board makes it.",
    )
    slug = forms.SlugField(
        label="Address", required=False, help_text="The last part of the board's web address. Empty: as in the file."
    )


class TeamForm(forms.Form):
    name = forms.CharField(max_length=100, label="Name of the team or person")


class MemberForm(forms.Form):
    """One member. An empty user is an unused row."""

    user = forms.ModelChoiceField(queryset=get_user_model().objects.none(), required=False, label="Colleague")
    role = forms.ChoiceField(choices=BoardMember.Role, initial=BoardMember.Role.VIEWER, label="Role")
    DELETE = forms.BooleanField(required=False, label="Remove")

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        people = get_user_model().objects.filter(is_active=True, is_staff=True).order_by("username")
        self.fields["user"].queryset = people  # type: ignore[attr-defined]  # a choice of rows


MemberFormSet = forms.formset_factory(MemberForm, extra=2)


class RenewalForm(forms.Form):
    """How much of the sample is renewed. ``after``: the number of the sample that the page showed."""

    share = forms.DecimalField(max_digits=3, decimal_places=2)
    after = forms.IntegerField(min_value=1)
