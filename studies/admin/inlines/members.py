"""The table of the people who may see or change a study, each with a role."""

from django import forms
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError

from studies import access
from studies.access import Action
from studies.models import StudyMember

from .base import LabelledDeleteFormSet, StudyRowsInline


class MemberForm(forms.ModelForm):
    username = forms.CharField(max_length=150, help_text="The user name of a colleague who can log in here.")

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.fields["username"].disabled = True
            self.initial["username"] = self.instance.user.get_username()

    def clean_username(self):
        if self.instance.pk:
            return self.cleaned_data["username"]
        model = get_user_model()
        try:
            lookup = {model.USERNAME_FIELD: self.cleaned_data["username"]}
            self.instance.user = model.objects.get(**lookup, is_active=True)
        except model.DoesNotExist:
            raise ValidationError("No active user has this name. Ask an administrator to create the account.") from None
        return self.cleaned_data["username"]


class MemberFormSet(LabelledDeleteFormSet):
    def clean(self):
        super().clean()
        if any(form.errors for form in self.forms):
            return
        access.require_owner_and_distinct_members(self.roles())

    def roles(self) -> list[tuple[int, str]]:
        """Return (user id, role) for each remaining row."""
        remaining = [form for form in self.forms if form.instance.user_id and not form.cleaned_data.get("DELETE")]
        return [(form.instance.user_id, form.cleaned_data["role"]) for form in remaining]


class MemberInline(StudyRowsInline):
    model = StudyMember
    fields = ("username", "role")
    form_class = MemberForm
    formset = MemberFormSet
    is_design = False
    action = Action.SHARE
    verbose_name = "person"
    verbose_name_plural = "people who may see or change this study"

    def get_queryset(self, request):
        return super().get_queryset(request).select_related("user")

    # Methods with the names of the form's own fields show their values on read-only pages.

    @admin.display(description="user name")
    def username(self, member):
        return member.user.get_username()
