"""Admin pages for deciding about one piece of work, and for answering appeals."""

from hashlib import sha256

from django import forms
from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpResponseRedirect
from django.urls import path, reverse

from annotators.models.identity import set_display_ids
from annotators.pay import decisions
from annotators.pay.decisions import (
    MAX_MESSAGE_LENGTH,
    WorkUnderReview,
    answer_appeal,
    eligible_appeal_answerers,
    is_appeal_settled,
)
from annotators.pay.evidence import (
    RejectionGround,
    assess_rejection_grounds,
    draft_rejection_message,
    evidence_sentences,
    measure_work_evidence,
)
from annotators.pay.statement import pay_statement
from annotators.places.assign import has_failed_test
from annotators.places.exclusions import active_exclusions
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels import http_client
from annotators.recruitment.panels import sync as panel_work
from annotators.recruitment.panels.http_client import stored_secret_dates
from annotators.recruitment.panels.reconcile import MATCH_STATUSES
from studies.access import Action
from studies.admin import study_page
from studies.admin.forms import CleanTextMixin, choice_field
from studies.language import format_duration
from studies.services.lifecycle import ActionRefused

from ..models import Appeal, Assignment, PanelOrder, Recruitment, Verdict
from .panel import PanelAdmin

# The form with which a person answers an appeal.


DECISIONS_ON_APPEAL = {
    Appeal.Subject.BARRING: [
        ("yes", "The annotator is right: lift the barring"),
        ("no", "The annotator gets no further batch"),
    ],
    Appeal.Subject.CHECKS: [
        ("yes", "The annotator is right: the work ended by a fault of the study, with the pay for that"),
        ("no", "The annotator gave too many wrong answers"),
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


class RejectForm(CleanTextMixin, forms.Form):
    """A category with evidence, the message to the annotator, and the reviewer's note.

    ``seen`` records the values that were shown for confirmation.
    """

    category = forms.ChoiceField(widget=forms.RadioSelect)
    message = forms.CharField(
        max_length=MAX_MESSAGE_LENGTH,
        widget=forms.Textarea(attrs={"rows": 6, "cols": 70}),
        label="message to the annotator",
        help_text=(
            "Explain what was wrong, so that the annotator understands it. Do not name a system or an expected answer."
        ),
    )
    note = forms.CharField(
        required=False,
        max_length=1000,
        widget=forms.Textarea(attrs={"rows": 3, "cols": 70}),
        label="your observations",
        help_text="For your colleagues and for the person who answers an appeal. The annotator does not see this.",
    )
    seen = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, grounds: list[RejectionGround], min_length: int, *args, **kwargs):
        super().__init__(*args, **kwargs)
        choice_field(self, "category").choices = [
            (
                ground.category,
                f"{ground.category}: {ground.description} ({'based on your observations' if ground.needs_note else 'measured'})",
            )
            for ground in grounds
            if not ground.missing
        ]
        self.fields["message"].help_text += f" Use at least {min_length} characters."

    @property
    def shown_values_hash(self) -> str:
        texts = (self.cleaned_data[name] for name in ("category", "message", "note"))
        return sha256("\x1f".join(" ".join(text.split()) for text in texts).encode()).hexdigest()


class MessageForm(CleanTextMixin, forms.Form):
    message = forms.CharField(
        max_length=MAX_MESSAGE_LENGTH,
        widget=forms.Textarea(attrs={"rows": 3, "cols": 70}),
        label="message to the annotator",
    )


class ReverseRejectionForm(MessageForm):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields["message"].required = False


class VerdictAdmin(PanelAdmin):
    """Admin views of verdicts and appeals, a part of the admin of recruitments."""

    def get_urls(self):
        wrap = self.admin_site.admin_view
        return [
            path(
                "<int:pk>/panel/submission/<int:submission>/",
                wrap(self.verdict_view),
                name="annotators_submission_verdict",
            ),
            path(
                "<int:pk>/panel/assignment/<int:assignment>/",
                wrap(self.verdict_view),
                name="annotators_assignment_verdict",
            ),
            path("<int:pk>/panel/appeal/<int:appeal>/", wrap(self.answer_appeal_view), name="annotators_appeal"),
            *super().get_urls(),
        ]

    def verdict_view(self, request, pk, submission=None, assignment=None):
        """Show the evidence and the possible decisions. A rejection is shown for confirmation before it is ordered."""
        recruitment = self._get_recruitment_or_404(request, pk, Action.REJECT)
        work = (
            decisions.get_work_by_submission(recruitment, submission)
            if submission
            else decisions.get_work_by_assignment(recruitment, assignment)
        )
        if work is None:
            raise Http404("There is no such work.")
        page = _VerdictPage(self, request, work)
        return page.handle_post() if request.method == "POST" else page.render()

    def answer_appeal_view(self, request, pk, appeal):
        recruitment = self._get_recruitment_or_404(request, pk, Action.REJECT)
        rows = Appeal.objects.select_related(
            "verdict__assignment__study",
            "verdict__submission__recruitment__study",
            "barring__by",
            "assignment__study",
            "answered_by",
        )
        of_link = Q(verdict__assignment__recruitment=recruitment) | Q(assignment__recruitment=recruitment)
        row = rows.filter(of_link, pk=appeal).first()
        if row is None:
            raise Http404("There is no such appeal.")
        is_own = row.rejected_by_id == request.user.pk
        form, status = AppealAnswerForm(row), 200
        if request.method == "POST":
            form = AppealAnswerForm(row, request.POST)
            try:
                if form.is_valid():
                    answers = form.cleaned_data
                    back = answer_appeal(
                        row,
                        answers["answer"],
                        answers["is_upheld"] == "yes",
                        request.user,
                        answers.get("says_another", False),
                    )
                    messages.success(request, _answered_message(row, back))
                    if row.verdict is None:
                        return HttpResponseRedirect(request.path)
                    _schedule_panel_sync(recruitment, request.user)
                    return HttpResponseRedirect(_verdict_url(recruitment, row.verdict))
            except ActionRefused as refused:
                form.add_error(None, str(refused))
            status = 422
        is_at_panel = row.verdict is not None and row.verdict.category == Verdict.AT_PANEL
        is_measured_now = is_at_panel or row.subject == Appeal.Subject.CHECKS
        evidence = _current_evidence(row.work) if is_measured_now else row.verdict.evidence if row.verdict else {}
        context = {
            "title": "Appeal",
            "recruitment": recruitment,
            "appeal": row,
            "verdict": row.verdict,
            "form": form,
            "is_own": is_own,
            "others": eligible_appeal_answerers(recruitment.study, row.rejected_by_id),
            "evidence_sentences": evidence_sentences(evidence),
            # A person who failed attention checks objects to these, and not to test questions about items.
            "checks": [
                check
                for check in evidence.get("failed_checks", ())
                if row.subject != Appeal.Subject.CHECKS or check["item"] is None
            ],
            "is_at_panel": is_at_panel,
            "barring": row.barring,
            "attempts": list(row.assignment.qualification_attempts.order_by("number"))
            if row.subject == Appeal.Subject.CHECKS and has_failed_test(row.assignment)
            else [],
            "pay": pay_statement(row.work) if row.subject == Appeal.Subject.CHECKS else None,
            "is_settled": is_appeal_settled(row),
        }
        return study_page.render_study_page(
            request, "admin/annotators/appeal.html", recruitment.study, context, status=status
        )


class _VerdictPage:
    """One piece of work, shown or decided."""

    def __init__(self, pages, request, work: WorkUnderReview):
        self.pages, self.request, self.work = pages, request, work
        self.recruitment, self.assignment = work.recruitment, work.assignment
        self.reason_not_rejectable = decisions.reason_not_rejectable(work)
        self.measured = measure_work_evidence(work.assignment) if work.assignment and work.assignment.batch_id else None
        self.grounds = (
            assess_rejection_grounds(work.rejection_policy, self.measured, bool(work.assignment.submitted_at))
            if work.rejection_policy and self.measured and work.assignment
            else []
        )
        self.forms = {
            "reject": self._reject_form(
                initial={"message": draft_rejection_message(self.measured)} if self.measured else {}
            ),
            "ask": MessageForm(prefix="ask"),
            "back": ReverseRejectionForm(prefix="back"),
        }
        self.needs_confirmation = False
        return_requests = PanelOrder.objects.filter(submission=work.submission, operation="request_return")
        self.was_asked = return_requests.first() if work.submission else None

    def _reject_form(self, *args, **kwargs) -> RejectForm:
        least = self.work.rejection_policy.min_message_length if self.work.rejection_policy else 1
        return RejectForm(self.grounds, least, *args, **kwargs)

    def handle_post(self):
        for name in ("approve", "ask", "back", "reject"):
            if name in self.request.POST or (name == "reject" and "look" in self.request.POST):
                try:
                    message = getattr(self, f"_{name}")()
                except ActionRefused as refused:
                    if name == "approve":
                        messages.error(self.request, str(refused))
                        return HttpResponseRedirect(self.request.path)
                    self.forms[name].add_error(None, str(refused))
                    message = ""
                if not message:
                    return self.render(200 if self.needs_confirmation else 422)
                messages.success(self.request, message)
                _schedule_panel_sync(self.recruitment, self.request.user)
                return HttpResponseRedirect(self.request.path)
        return HttpResponseRedirect(self.request.path)

    def _approve(self) -> str:
        decisions.approve_work(self.work, self.request.user)
        return "Approved."

    def _ask(self) -> str:
        form = self.forms["ask"] = MessageForm(self.request.POST, prefix="ask")
        if not form.is_valid():
            return ""
        decisions.order_return_request(self.work, form.cleaned_data["message"], self.request.user)
        return "The panel will ask the annotator to return the task. Wait five days before you consider a rejection."

    def _back(self) -> str:
        form = self.forms["back"] = ReverseRejectionForm(self.request.POST, prefix="back")
        rejection = decisions.effective_rejection(self.assignment) if self.assignment else None
        if rejection is None:
            raise ActionRefused("This work has no rejection to take back. You need not do anything.")
        if not form.is_valid():
            return ""
        return _reversal_message(
            decisions.create_rejection_reversal(rejection, self.request.user, form.cleaned_data["message"])
        )

    def _reject(self) -> str:
        """Show the rejection on the first press; order it only if exactly the shown values are sent again."""
        data = self.request.POST.copy()
        form = self.forms["reject"] = self._reject_form(data)
        if self.reason_not_rejectable:
            raise ActionRefused(self.reason_not_rejectable)
        if all(ground.missing for ground in self.grounds):
            raise ActionRefused("No category has evidence. Approve the work, or leave it undecided.")
        if not form.is_valid():
            return ""
        answers = form.cleaned_data
        decisions.validate_rejection(self.work, answers["category"], answers["message"], answers["note"])
        if "reject" not in self.request.POST or answers["seen"] != form.shown_values_hash:
            data["seen"] = form.shown_values_hash
            self.needs_confirmation = True
            return ""
        decisions.reject_work(self.work, answers["category"], answers["message"], self.request.user, answers["note"])
        return (
            "Rejected. The annotator reads your reason on their last page, and may appeal. Another editor "
            "must answer the appeal."
        )

    def render(self, status: int = 200):
        work, assignment, request = self.work, self.assignment, self.request
        panel_operations = http_client.available_operations(self.recruitment)
        set_display_ids([work.submission] if work.submission else [])
        verdicts = Verdict.objects.filter(
            **({"assignment": assignment} if assignment else {"submission": work.submission})
        )
        rejection = decisions.effective_rejection(assignment) if assignment else None
        can_be_rejected = not rejection and not self.reason_not_rejectable
        can_be_asked = can_be_rejected and not self.was_asked and "request_return" in panel_operations
        is_any_open = any(not ground.missing for ground in self.grounds)
        is_form_shown = {"back": bool(rejection), "ask": can_be_asked, "reject": can_be_rejected and is_any_open}
        context = {
            "title": "Decide about one piece of work",
            "hidden_forms": [form for name, form in self.forms.items() if not is_form_shown[name]],
            "recruitment": self.recruitment,
            "channel": REGISTRY[self.recruitment.channel],
            "work": work,
            "submission": work.submission,
            "assignment": assignment,
            "match_status": MATCH_STATUSES.get(work.standing),
            "evidence": self.measured,
            "lasted": format_duration(self.measured.seconds)
            if self.measured and self.measured.seconds is not None
            else "",
            "closed": [ground for ground in self.grounds if ground.missing],
            "is_any_open": is_any_open,
            "reason_not_rejectable": self.reason_not_rejectable,
            "is_excluded": assignment is not None and active_exclusions([assignment]).exists(),
            "refusals": work.rejection_policy,
            "verdicts": list(verdicts.select_related("by", "appeal").order_by("pk")),
            "form": self.forms["reject"],
            "ask_form": self.forms["ask"],
            "back_form": self.forms["back"],
            "needs_confirmation": self.needs_confirmation,
            "rejection": rejection,
            "is_approved": decisions.effective_approval(work) is not None,
            "can_be_asked": can_be_asked,
            "was_asked": self.was_asked,
            "panel_operations": panel_operations,
            "others": eligible_appeal_answerers(self.recruitment.study, request.user.pk),
        }
        return study_page.render_study_page(
            request,
            "admin/annotators/verdict.html",
            self.recruitment.study,
            context,
            status=status,
        )


def _current_evidence(assignment) -> dict:
    """Measure the work now, for rejections made at the panel, which have no stored evidence."""
    return measure_work_evidence(assignment).as_json() if assignment.batch_id else {}


def _schedule_panel_sync(recruitment: Recruitment, by) -> None:
    if stored_secret_dates(recruitment):
        panel_work.schedule_sync(recruitment, by=by)


def _verdict_url(recruitment: Recruitment, verdict: Verdict) -> str:
    return reverse("admin:annotators_assignment_verdict", args=[recruitment.pk, verdict.assignment_id])


def _answered_message(appeal: Appeal, back: Verdict | None) -> str:
    if back is not None:
        return f"Answered. {_reversal_message(back)}"
    work = Assignment.objects.select_related("study", "recruitment").get(pk=appeal.work.pk)
    if work.released_reason != Assignment.Released.FAULT or (pay := pay_statement(work)) is None:
        return "Answered."
    return f"Answered. The work now pays {pay.amount} {pay.currency}. Settle the link to record what is still due."


def _reversal_message(back: Verdict) -> str:
    if back.evidence.get("way") == "unsent":
        return "The rejection is taken back before it took effect, and the work is approved."
    if amount := back.evidence.get("compensation"):
        return (
            f"The rejection is taken back. The panel cannot pay any more, so a compensation of {amount} "
            f"{back.evidence['currency']} is due."
        )
    return (
        "The rejection is taken back. heval cannot send this to the panel: approve the work there, or pay "
        "the annotator another way."
    )
