"""The part of a link's form that says what an early end pays."""

from django import forms
from django.utils.html import format_html

from studies import audit

from ..models import OutcomePay, Recruitment
from ..pay.promises import is_less, proposed, rewards_of

Outcome, Rule = OutcomePay.Outcome, OutcomePay.Rule
NAMES = tuple((f"ends_{outcome}", f"ends_{outcome}_amount") for outcome in Outcome)
HELP = {
    Outcome.SCREENED_OUT: "Weigh it by how long the first questions take.",
    Outcome.FAILED_CHECKS: "Nobody is refused by default: they did the work as far as they came.",
    Outcome.FULL: "They came by your link and found it closed.",
    Outcome.FAULT: "Whoever is at work when the study is closed over them.",
    Outcome.WITHDRAWN: "Whoever leaves before the last page. Who finished is paid in any case.",
}


def fields() -> dict[str, forms.Field]:
    made: dict[str, forms.Field] = {}
    for outcome, (name, amount) in zip(Outcome, NAMES, strict=True):
        made[name] = forms.ChoiceField(
            required=False, choices=[("", "not said yet"), *Rule.choices], label=outcome.label, help_text=HELP[outcome]
        )
        made[amount] = forms.DecimalField(
            required=False, min_value=0, max_digits=7, decimal_places=2, label=format_html("this much<span class=\"heard\"> ({})</span>", outcome.label)
        )  # fmt: skip
    return made


class Promising:
    """For the form of a link. Pay only rises once people came: it was told to them before they began."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.before = {row.outcome: row for row in OutcomePay.objects.filter(recruitment=self.instance)}
        self.was = Recruitment.objects.filter(pk=self.instance.pk).values("reward", "currency").first()
        for outcome, (name, amount) in zip(Outcome, NAMES, strict=True):
            if row := self.before.get(outcome):
                self.initial |= {name: row.rule, amount: row.amount}

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        self.promises = self._promises(cleaned)
        if self.instance.pk and self.instance.assignments.exclude(origin="test").exists():
            self._refuse_less(cleaned)
        return cleaned

    def _promises(self, cleaned) -> list[OutcomePay]:
        found = []
        for outcome, (name, amount) in zip(Outcome, NAMES, strict=True):
            rule, much = cleaned.get(name), cleaned.get(amount)
            if rule == Rule.AMOUNT and much is None and amount not in self.errors:
                self.add_error(amount, "Say how much.")
            elif rule != Rule.AMOUNT and much is not None:
                self.add_error(amount, f"An amount is paid only where “{Rule.AMOUNT.label}” is chosen.")
            elif rule:
                found.append(OutcomePay(recruitment=self.instance, outcome=outcome, rule=rule, amount=much))
        return found

    def _refuse_less(self, cleaned) -> None:
        told = rewards_of(self.instance, self.was["reward"])
        pays = rewards_of(self.instance, cleaned.get("reward"))
        if "reward" not in self.errors and any(new < old for new, old in zip(pays, told, strict=True)):
            self.add_error("reward", f"People have come: pay can only rise. They were told {told[-1]}.")
        if cleaned.get("currency", "") != self.was["currency"]:
            self.add_error("currency", "People have come, and were told another currency.")
        new = {row.outcome: row for row in self.promises}
        for outcome, (name, _) in zip(Outcome, NAMES, strict=True):
            if name not in self.errors and is_less(new.get(outcome), self.before.get(outcome), told):
                self.add_error(name, "People have come: what they were promised can only rise.")

    def keep_promises(self, by) -> None:
        """After the row is kept; what changed goes into the record."""
        said = {row.outcome: (row.rule, row.amount) for row in self.promises}
        if said == {outcome: (row.rule, row.amount) for outcome, row in self.before.items()}:
            return
        OutcomePay.objects.filter(recruitment=self.instance).delete()
        OutcomePay.objects.bulk_create(self.promises)
        told = {outcome: f"{rule} {amount or ''}".strip() for outcome, (rule, amount) in said.items()}
        audit.record("promise pay", study=self.instance.study, by=by, recruitment=self.instance.key, **told)


def propose(recruitment: Recruitment) -> None:
    """What a new link begins with."""
    for row in proposed():
        row.recruitment = recruitment
        row.save()
