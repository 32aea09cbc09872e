"""The part of a link's form that sets the pay for an early end."""

from copy import copy
from decimal import Decimal
from typing import TYPE_CHECKING

from django import forms
from django.utils.html import format_html

from annotators.models import OutcomePay
from annotators.participation import link_actions

# The base of the mixin below, while types are checked.
if TYPE_CHECKING:
    _Form = forms.ModelForm
else:
    _Form = object

Outcome, Rule = OutcomePay.Outcome, OutcomePay.Rule
CHECKED_COLUMNS = {"key", "reward", "currency", "opens_at", "closes_at"}
FIELD_NAMES = tuple((f"ends_{outcome}", f"ends_{outcome}_amount") for outcome in Outcome)
HELP_TEXTS = {
    Outcome.SCREENED_OUT: "Consider how long the first questions take.",
    Outcome.FAILED_CHECKS: (
        "People who fail attention checks are not rejected by default. They did the work up to that point."
    ),
    Outcome.FULL: "They used your link and could not take part.",
    Outcome.FAULT: "People who are still working when the study is closed, and people whose objection to failed checks is upheld.",
    Outcome.WITHDRAWN: "People who leave before the last page. People who finish are always paid.",
}


def outcome_pay_form_fields() -> dict[str, forms.Field]:
    fields: dict[str, forms.Field] = {}
    for outcome, (name, amount) in zip(Outcome, FIELD_NAMES, strict=True):
        fields[name] = forms.ChoiceField(
            required=False,
            choices=[("", "not set yet"), *Rule.choices],
            label=outcome.label,
            help_text=HELP_TEXTS[outcome],
        )
        fields[amount] = forms.DecimalField(
            required=False,
            min_value=0,
            max_digits=7,
            decimal_places=2,
            label=format_html('amount<span class="heard"> ({})</span>', outcome.label),
        )
    return fields


class PromisesFormMixin(_Form):
    """Mixin for the link's form: fields for the pay of each early end.

    Validation adds the faults of ``link_actions.find_link_errors`` for the link as it would be saved.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        current_rows = {row.outcome: row for row in OutcomePay.objects.filter(recruitment=self.instance)}
        for outcome, (name, amount) in zip(Outcome, FIELD_NAMES, strict=True):
            if row := current_rows.get(outcome):
                self.initial.update({name: row.rule, amount: row.amount})

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        self.promises = self._clean_promises(cleaned)
        changed = copy(self.instance)
        for column in CHECKED_COLUMNS & set(cleaned):
            setattr(changed, column, cleaned[column])
        names: dict[str, str] = {outcome: name for outcome, (name, _) in zip(Outcome, FIELD_NAMES, strict=True)}
        for column, message in link_actions.find_link_errors(changed, self.promises).items():
            name = names.get(column, column)
            if name in self.fields and name not in self.errors:
                self.add_error(name, message)
        return cleaned

    def _clean_promises(self, cleaned) -> dict[str, tuple[str, Decimal | None]]:
        promises: dict[str, tuple[str, Decimal | None]] = {}
        for outcome, (name, amount) in zip(Outcome, FIELD_NAMES, strict=True):
            rule, value = cleaned.get(name), cleaned.get(amount)
            if rule == Rule.AMOUNT and value is None and amount not in self.errors:
                self.add_error(amount, f"“{Rule.AMOUNT.label}” needs an amount. Enter it here.")
            elif rule != Rule.AMOUNT and value is not None:
                self.add_error(
                    amount, f"Only “{Rule.AMOUNT.label}” has an amount. Choose it, or leave the amount empty."
                )
            elif rule:
                promises[outcome] = (rule, value)
        return promises
