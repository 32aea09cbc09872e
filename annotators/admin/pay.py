"""Admin pages for pay: hourly pay, and payments that are due, ordered and paid.

They also add bonuses, order payments and mark them as paid.
"""

from collections.abc import Sequence
from copy import copy
from decimal import Decimal, InvalidOperation

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.utils.html import format_html

from annotators.models import OutcomePay
from annotators.participation import link_actions
from annotators.pay import costs, files, ledger, promises, statement
from annotators.places.places import compute_receipt
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels import sync
from annotators.recruitment.panels.http_client import NoService, get_panel_service, stored_secret_dates
from studies.access import Action, get_study
from studies.admin import study_page
from studies.admin.forms import SettingsFormMixin
from studies.admin.permissions import is_request_allowed
from studies.services.lifecycle import ActionRefused

from ..models import Payment
from .panel import PanelAdmin, TableFileField

# The part of a link's form that sets the pay for an early end.


Outcome, Rule = OutcomePay.Outcome, OutcomePay.Rule
CHECKED_COLUMNS = {"key", "reward", "currency", "opens_at", "closes_at"}
HELP_TEXTS = {
    Outcome.SCREENED_OUT: "Consider how long the first questions take.",
    Outcome.FAILED_CHECKS: (
        "People who fail attention checks are not rejected by default. They did the work up to that point."
    ),
    Outcome.FULL: "They used your link and could not take part.",
    Outcome.FAULT: "People who are still working when the study is closed, and people whose objection to failed checks is upheld.",
    Outcome.WITHDRAWN: "People who leave before the last page. People who finish are always paid.",
}


def field_names(outcomes: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple((f"ends_{outcome}", f"ends_{outcome}_amount") for outcome in outcomes)


def outcome_pay_form_fields(outcomes: Sequence[OutcomePay.Outcome]) -> dict[str, forms.Field]:
    fields: dict[str, forms.Field] = {}
    for outcome, (name, amount) in zip(outcomes, field_names(outcomes), strict=True):
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


class PromisesForm(SettingsFormMixin):
    """The part of a link's form with the pay of each early end that can happen. What is stored for the others stays.

    Validation adds the faults of ``link_actions.find_link_errors`` for the link as it would be saved.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.asked = [outcome for outcome in Outcome if f"ends_{outcome}" in self.fields]
        rows = OutcomePay.objects.filter(recruitment=self.instance)
        self.stored = {row.outcome: (row.rule, row.amount) for row in rows}
        for outcome, (name, amount) in zip(self.asked, field_names(self.asked), strict=True):
            if outcome in self.stored:
                self.initial[name], self.initial[amount] = self.stored[outcome]

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        self.promises = self._clean_promises(cleaned)
        changed = copy(self.instance)
        for column in CHECKED_COLUMNS & set(cleaned):
            setattr(changed, column, cleaned[column])
        names: dict[str, str] = {outcome: f"ends_{outcome}" for outcome in Outcome}
        for column, message in link_actions.find_link_errors(changed, self.promises).items():
            name = names.get(column, column)
            if name in self.fields and name not in self.errors:
                self.add_error(name, message)
        return cleaned

    def _clean_promises(self, cleaned) -> dict[str, tuple[str, Decimal | None]]:
        promises: dict[str, tuple[str, Decimal | None]] = {
            outcome: said for outcome, said in self.stored.items() if outcome not in self.asked
        }
        for outcome, (name, amount) in zip(self.asked, field_names(self.asked), strict=True):
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


MAX_ROWS = 400
MAX_FILE_SIZE = 2 * 1024 * 1024


class BonusForm(forms.Form):
    lines = forms.CharField(
        required=False,
        max_length=MAX_FILE_SIZE,
        label="receipt, amount, reason",
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
        help_text=(
            "One per line, for example: ABCDE-FGHJK,1.50,Your explanation helped us much. The annotator "
            "may read the reason."
        ),
    )
    file = TableFileField(MAX_FILE_SIZE, required=False, label="or a table (CSV or a workbook) with such lines")

    def clean(self):
        cleaned = super().clean() or {}
        if cleaned.get("file"):
            cleaned["lines"] = cleaned["file"]
        return cleaned


class PayAdmin(PanelAdmin):
    """Admin views of pay, a part of the admin of recruitments."""

    def get_urls(self):
        wrap = self.admin_site.admin_view
        return [
            path("<int:pk>/pay/", wrap(self.ledger_view), name="annotators_pay"),
            path("<int:pk>/pay/file.csv", wrap(self.payment_file_view), name="annotators_pay_file"),
            *super().get_urls(),
        ]

    def study_urls(self):
        return [path("<int:pk>/pay/", self.admin_site.admin_view(self.study_pay_view), name="annotators_study_pay")]

    def study_pay_view(self, request, pk):
        """Show time and hourly pay by arm, and the cost of each link."""
        study = get_study(request.user, Action.VIEW, pk=pk)
        arms = statement.pay_by_arm(study)
        links = list(study.recruitments.order_by("pk"))
        for recruitment in links:
            recruitment.study = study
        sums = [(recruitment, costs.compute_link_cost(recruitment)) for recruitment in links]
        context = {
            "title": "Pay",
            "arms": arms,
            "chart": statement.build_hourly_pay_chart(arms, study.wage_per_hour),
            "warning": statement.low_wage_warning(study, arms),
            "links": sums,
            "unwritten": any(link_cost.unsettled for _, link_cost in sums),
        }
        return study_page.render_study_page(request, "admin/annotators/study_pay.html", study, context)

    def payment_file_view(self, request, pk):
        """Export payments that are due and not paid by approval, as a CSV file.

        The file contains the panel's ids of people.
        """
        recruitment = self._get_recruitment_or_404(request, pk, Action.PAY)
        answer = HttpResponse(
            files.due_payments_not_by_approval_csv(recruitment, request.user), content_type="text/csv; charset=utf-8"
        )
        answer["Content-Disposition"] = f'attachment; filename="payments-{recruitment.key}.csv"'
        answer["Cache-Control"] = "private, no-store"
        return answer

    def ledger_view(self, request, pk):
        """Show the ledger. POST records what is due, orders it, marks payments, or adds bonuses and compensation."""
        recruitment = self._get_recruitment_or_404(request, pk, Action.PAY if request.method == "POST" else Action.VIEW)
        bonus, bonus_preview = BonusForm(), None
        if request.method == "POST":
            if "see" in request.POST or "add" in request.POST:
                bonus = BonusForm(request.POST, request.FILES)
                bonus_preview = self._read_bonuses(request, recruitment, bonus) if bonus.is_valid() else None
                if bonus_preview is not None and "add" in request.POST:
                    n = ledger.add_extra_payments(recruitment, bonus_preview, Payment.Kind.BONUS, request.user)
                    messages.success(request, f"{n} payment{'' if n == 1 else 's'} recorded as due.")
                    return self._redirect_to_due(pk)
            else:
                try:
                    messages.success(request, self._perform_action(request, recruitment))
                except ActionRefused as words:
                    messages.warning(request, str(words))
                return self._redirect_to_due(pk)
        return study_page.render_study_page(
            request,
            "admin/annotators/pay.html",
            recruitment.study,
            self._pay_context(request, recruitment, bonus, bonus_preview),
            status=400 if bonus.errors else 200,
        )

    def _redirect_to_due(self, pk):
        return HttpResponseRedirect(f"{reverse('admin:annotators_pay', args=[pk])}#due")

    def _read_bonuses(self, request, recruitment, form):
        try:
            return files.parse_bonuses(recruitment, form.cleaned_data["lines"])
        except ValueError as faults:
            for fault in str(faults).split("\n"):
                form.add_error("lines", fault)
            return None

    def _perform_action(self, request, recruitment) -> str:
        """Perform the action and describe the result.

        Raises ActionRefused.
        """
        if "settle" in request.POST:
            summary = ledger.update_ledger(recruitment, by=request.user)
            return (
                f"{summary.due} newly due, {summary.amount} {summary.currency}."
                if summary.due
                else "Nothing new is due."
            )
        if "order" in request.POST:
            try:
                n = ledger.order_due_payments_at_panel(
                    recruitment,
                    get_panel_service(recruitment).operations,
                    _amount(request.POST.get("total", "")),
                    request.user,
                )
            except NoService as error:
                raise ActionRefused(str(error)) from None
            sync.schedule_sync(recruitment, by=request.user)
            return f"{n} payment{'' if n == 1 else 's'} ordered at the panel. Reload this page in a moment."
        ticked = {
            int(text)
            for text in request.POST.getlist("payment")
            if text.isascii() and text.isdigit() and len(text) < 19
        }
        if "paid" in request.POST:
            return f"{ledger.mark_payments_paid_and_erase_withdrawn_ids(recruitment, ticked, request.user)} marked as paid."
        if "cancel" in request.POST:
            return (
                f"{sum(ledger.cancel_extra_payment(recruitment, payment_id, request.user) for payment_id in sorted(ticked))} "
                "taken back."
            )
        if "compensate" in request.POST:
            return (
                f"{costs.add_manual_payments_for_unsent_rewards(recruitment, ticked, request.user)} to be paid by hand."
            )
        raise ActionRefused("No action was chosen. Press one of the buttons on this page.")

    def _pay_context(self, request, recruitment, bonus, bonus_preview) -> dict:
        may_edit = is_request_allowed(request, Action.PAY, recruitment.study_id)
        due = (
            ledger.recruitment_payments(recruitment)
            .filter(state=Payment.State.DUE)
            .select_related("assignment")
            .order_by("pk")
        )
        unsent = costs.rewards_unpayable_by_approval(recruitment)[:MAX_ROWS]
        all_by_hand = due.exclude(way=Payment.Way.APPROVAL)
        by_hand = list(all_by_hand[:MAX_ROWS])
        operations: frozenset[str] = frozenset()
        if may_edit and stored_secret_dates(recruitment):
            try:
                operations = get_panel_service(recruitment).operations
            except NoService:
                operations = frozenset()
        orders = list(ledger.payments_orderable_at_panel(recruitment, operations)) if operations else []
        ended = (
            ledger.recruitment_payments(recruitment)
            .exclude(state=Payment.State.DUE)
            .select_related("assignment")
            .order_by("-pk")
        )
        ended_shown = list(ended[:MAX_ROWS])
        sums, channel = costs.compute_link_cost(recruitment), REGISTRY[recruitment.channel]
        return {
            "title": "Pay",
            "recruitment": recruitment,
            "channel": channel,
            "may_edit": may_edit,
            "money": sums,
            "due_more": _count_hidden(all_by_hand, by_hand),
            "ended_more": _count_hidden(ended, ended_shown),
            "due": [(row, compute_receipt(row.assignment.code)) for row in by_hand],
            "n_approval": due.filter(way=Payment.Way.APPROVAL).count(),
            "unsent": [(row, compute_receipt(row.assignment.code)) for row in unsent],
            "ended": [(row, compute_receipt(row.assignment.code)) for row in ended_shown],
            "orders": orders,
            "orders_total": ledger.total_amount(orders),
            "bulk": files.due_payment_bulk_form_texts(recruitment) if may_edit else [],
            "bonus": bonus,
            "bonus_preview": bonus_preview,
            "bonus_total": sum((extra.amount for extra in bonus_preview), Decimal(0)) if bonus_preview else None,
            "currency": sums.currency,
            "early": promises.early_end_pay_lines(
                recruitment, sums.currency, promises.get_pay_terms(recruitment).newest_wording
            ),
            "missing": promises.outcome_labels_missing_required_pay_rule(recruitment),
            "retained_ids": ledger.ids_retained_for_pay_past_erasure_time(recruitment),
        }


def _count_hidden(rows: QuerySet[Payment], shown_rows: list[Payment]) -> int:
    """Count the rows that are not shown. Count only if a page is full."""
    return rows.count() - len(shown_rows) if len(shown_rows) == MAX_ROWS else 0


def _amount(text: str) -> Decimal:
    try:
        return Decimal(text.strip())
    except InvalidOperation:
        raise ActionRefused(
            "The total is not a number, so nothing was ordered. Enter it as shown, for example 12.50."
        ) from None
