"""The form with which a person answers an appeal."""

from django import forms

from annotators.pay.verdicts.decisions import MAX_MESSAGE_LENGTH
from studies.admin.forms.cleaning import CleanTextMixin
from studies.admin.forms.fields import choice_field

from ..models import Appeal

DECISIONS_ON_APPEAL = {
    Appeal.Subject.BARRING: [
        ("yes", "The annotator is right: lift the barring"),
        ("no", "The annotator gets no further batch"),
    ],
    Appeal.Subject.CHECKS: [
        ("yes", "The annotator is right: the work ended by a fault of the study, with the pay for that"),
        ("no", "The annotator failed the attention checks"),
    ],
}


class AppealAnswerForm(CleanTextMixin, forms.Form):
    is_upheld = forms.ChoiceField(
        choices=[
            ("yes", "The annotator is right: take back the rejection and pay"),
            ("no", "The rejection stays"),
        ],
        widget=forms.RadioSelect,
        label="Decision",
    )
    answer = forms.CharField(
        max_length=MAX_MESSAGE_LENGTH,
        widget=forms.Textarea(attrs={"rows": 5, "cols": 70}),
        label="your answer to the annotator",
    )
    says_another = forms.BooleanField(
        label="I am not the person who rejected this work at the panel",
        help_text=(
            "Annotators were promised that another person reads their appeal. heval does not know who "
            "rejected this work."
        ),
    )

    def __init__(self, appeal: Appeal, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if appeal.rejected_by_id is not None or appeal.subject != Appeal.Subject.REJECTION:
            del self.fields["says_another"]
        if decisions_on_appeal := DECISIONS_ON_APPEAL.get(appeal.subject):
            choice_field(self, "is_upheld").choices = decisions_on_appeal
