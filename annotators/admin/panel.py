"""Admin page of a recruitment's panel: token, comparison with the panel, orders, and cases for a person to decide."""

from collections.abc import Mapping

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import path, reverse

from annotators.models.identity import (
    PERSON_PREFIX,
    external_ids_with_person,
    get_person_ids,
    set_display_ids,
    submission_id_at_panel,
)
from annotators.pay import decisions
from annotators.pay.decisions import appeals_awaiting_answer
from annotators.places.monitor import count_recorded_pages
from annotators.places.places import compute_receipt
from annotators.places.steps import opens_in_steps, step_status
from annotators.recruitment.channels import OUTCOMES, REGISTRY
from annotators.recruitment.channels.thresholds import threshold_lines
from annotators.recruitment.panels import BulkText, Order, alerts, stand_in, sync
from annotators.recruitment.panels.arrival_checks import doubtful_arrivals
from annotators.recruitment.panels.http_client import (
    WEBHOOK_SECRET,
    NoService,
    get_panel_service,
    has_service_secret,
    store_or_delete_secrets,
    stored_secret_dates,
)
from annotators.recruitment.panels.orders import (
    RewardCost,
    blocklist_names,
    cancel_order,
    count_listed_people_and_doubtful_orders,
    done_or_pending_publication_orders,
    is_last_round_refused,
    newest_published_task,
    order_blocklist_and_publication,
    order_task_stop,
    panel_entry_url,
    publishing_obstacles,
    publishing_warnings,
    resolve_order,
    retry_refused_round,
    round_status,
    save_round_plan,
)
from annotators.recruitment.panels.reconcile import (
    MATCH_STATUSES,
    NEEDS_REVIEW,
    count_submissions_and_missing_by_status,
    finished_assignments_missing_at_panel,
    import_panel_file_and_release_places,
    is_same_receipt,
    submissions_with_match_status,
)
from annotators.recruitment.panels.sync import event_source_name
from studies.access import Action, get_row
from studies.admin import study_page
from studies.admin.permissions import StudyScopedAdmin
from studies.design.workload import reward_per_hour
from studies.models import Job
from studies.services.lifecycle import ActionRefused
from studies.stimuli.lines import UnreadableFile
from studies.stimuli.rows import ACCEPTED, text_of_table

from ..models import Assignment, PanelEvent, PanelOrder, PanelPlan, PanelSubmission, PanelTask, Recruitment

# Forms of the panel page: secrets, exported file, publishing, and the plan of rounds.


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


class TableFileField(forms.FileField):
    """A small table in any form that heval reads. Its value is its text; a workbook becomes CSV."""

    def __init__(self, max_size: int, **options):
        super().__init__(widget=forms.FileInput(attrs={"accept": ACCEPTED}), **options)
        self.max_size = max_size

    def clean(self, data, initial=None):
        file = super().clean(data, initial)
        if not file:
            return ""
        if file.size > self.max_size:
            raise forms.ValidationError(
                f"The file is larger than {self.max_size // 2**20} MB. Split it into smaller ones."
            )
        try:
            return text_of_table(file.name, file.read(), self.max_size)
        except UnreadableFile as refused:
            raise forms.ValidationError(refused.text) from None


class PanelFileForm(forms.Form):
    file = TableFileField(MAX_FILE_SIZE, label="The panel's exported file")


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
        if opens_in_steps(recruitment):  # a place that is given back is free again
            self.fields["round_places"].label = "places per step"
            self.fields["lost_percent"].disabled = True
            self.fields["lost_percent"].widget = forms.HiddenInput()

    def clean_people(self):
        people = self.cleaned_data["people"]
        if self.study.target_n and people > self.study.target_n:
            raise forms.ValidationError(
                f"The study needs only {self.study.target_n} people. Enter at most this number."
            )
        return people


MAX_ROWS = 100


class PanelAdmin(StudyScopedAdmin):
    """Admin views of the panel, a part of the admin of recruitments."""

    def get_urls(self):
        wrap = self.admin_site.admin_view
        return [
            path("<int:pk>/panel/", wrap(self.panel_view), name="annotators_panel"),
            path("<int:pk>/panel/rounds/", wrap(self.panel_rounds_view), name="annotators_panel_rounds"),
            path("<int:pk>/panel/publish/", wrap(self.publish_at_panel_view), name="annotators_panel_publish"),
            path("<int:pk>/panel/task/<int:task>/", wrap(self.stop_panel_task_view), name="annotators_panel_task"),
            path(
                "<int:pk>/panel/order/<int:order>/",
                wrap(self.cancel_or_resolve_panel_order_view),
                name="annotators_panel_order",
            ),
            *super().get_urls(),
        ]

    def _get_recruitment_or_404(self, request, pk, action: Action = Action.PANEL) -> Recruitment:
        recruitment = get_row(request.user, action, Recruitment.objects.select_related("study"), pk=pk)
        if recruitment.channel not in REGISTRY:
            raise Http404("There is no such link.")
        return recruitment

    def panel_view(self, request, pk):
        """Show the panel page.

        POST stores secrets, asks the panel, imports its file, or approves work finished at both.
        """
        recruitment = self._get_recruitment_or_404(request, pk)
        channel = REGISTRY[recruitment.channel]
        secrets, export, dry_run = SecretsForm(recruitment), PanelFileForm(), None
        panel_page = HttpResponseRedirect(reverse("admin:annotators_panel", args=[pk]))
        if request.method == "POST":
            if {"ask", "approve", "listen"} & set(request.POST):
                return self._request_sync(request, recruitment, panel_page)
            if "keep" in request.POST and channel.secrets:
                secrets = SecretsForm(recruitment, request.POST)
                if secrets.is_valid():
                    if changes := secrets.changes():
                        store_or_delete_secrets(recruitment, changes, by=request.user)
                        messages.success(request, "The token is stored and encrypted. No page shows it again.")
                    return panel_page
            elif channel.can_read_export_file(recruitment):
                export = PanelFileForm(request.POST, request.FILES)
                if export.is_valid():
                    dry_run = self._import_file(request, recruitment, export)
                    if dry_run is not None and "take" in request.POST:
                        messages.success(
                            request, f"{dry_run.seen} submission{'' if dry_run.seen == 1 else 's'} imported."
                        )
                        return panel_page
        status = 400 if secrets.errors or export.errors else 200
        return study_page.render_study_page(
            request,
            "admin/annotators/panel.html",
            recruitment.study,
            self._context(recruitment, channel, secrets, export, dry_run),
            status=status,
        )

    def _request_sync(self, request, recruitment, panel_page):
        try:
            get_panel_service(recruitment)
        except NoService as error:
            messages.warning(request, str(error))
        else:
            options = {"approves": "approve" in request.POST, "listens": "listen" in request.POST}
            sync.schedule_sync(recruitment, by=request.user, **options)
            messages.success(request, "The panel is asked now. Reload this page in a moment.")
        return panel_page

    def _import_file(self, request, recruitment, form):
        try:
            return import_panel_file_and_release_places(
                recruitment, form.cleaned_data["file"], request.user, dry_run="take" not in request.POST
            )
        except ValueError as refused:
            form.add_error("file", str(refused))
            return None

    def _context(self, recruitment, channel, secrets, export, dry_run) -> dict:
        counts = count_submissions_and_missing_by_status(recruitment)
        doubtful = list(
            submissions_with_match_status(recruitment)
            .filter(standing__in=NEEDS_REVIEW)
            .select_related("assignment")
            .order_by("pk")[:MAX_ROWS]
        )
        people: list[tuple[Assignment | None, str, PanelSubmission | None]] = [
            (row.assignment, row.standing, row) for row in doubtful
        ]
        people += [
            (assignment, status, None)
            for assignment, status in finished_assignments_missing_at_panel(recruitment)[:MAX_ROWS]
        ]
        pages = count_recorded_pages([assignment for assignment, _, _ in people if assignment is not None])
        may_ask = has_service_secret(recruitment)
        all_orders = PanelOrder.objects.filter(recruitment=recruitment).select_related("submission__assignment")
        orders = list(all_orders.order_by("-pk")[:MAX_ROWS])
        set_display_ids([*doubtful, *(order.submission for order in orders if order.submission)])
        ids = get_person_ids({row.annotator_id for row in doubtful if row.receipt and row.assignment_id})
        return {
            "title": "Panel",
            "recruitment": recruitment,
            "channel": channel,
            "secrets": secrets,
            "export": export,
            "dry_run": dry_run,
            "dry_run_classes": _class_rows(dry_run.classes) if dry_run else [],
            "classes": _class_rows(counts),
            "matched": counts.get("matched", 0),
            "to_approve": decisions.submissions_to_approve(recruitment).count() if may_ask else 0,
            "bulk": _bulk_approval_texts(recruitment, channel) if counts.get("matched") else [],
            "tasks": list(PanelTask.objects.filter(recruitment=recruitment).order_by("-pk")[:MAX_ROWS]),
            "people": [
                (
                    assignment,
                    MATCH_STATUSES[status],
                    row,
                    pages.get(assignment.pk) if assignment else None,
                    _describe_entered_code(recruitment, row, ids),
                )
                for assignment, status, row in people
            ],
            "plan": PanelPlan.objects.filter(recruitment=recruitment).first(),
            "blocklist": count_listed_people_and_doubtful_orders(recruitment)
            if blocklist_names(recruitment) and may_ask
            else None,
            "alerts": alerts.find_panel_alerts(recruitment),
            "doubtful_arrivals": doubtful_arrivals(recruitment),
            "orders": orders,
            "has_service": bool(channel.secrets),
            "takes_file": channel.can_read_export_file(recruitment),
            "may_ask": may_ask,
            "may_publish": channel.publishes and may_ask,
            "thresholds": threshold_lines(recruitment.settings),
            "may_listen": channel.sends_webhooks and may_ask,
            "listens_since": stored_secret_dates(recruitment).get(WEBHOOK_SECRET),
            "last_message": PanelEvent.objects.filter(source=event_source_name(recruitment)).order_by("pk").last(),
            "matched_rows": list(
                submissions_with_match_status(recruitment)
                .filter(standing="matched")
                .select_related("assignment")
                .order_by("pk")[:MAX_ROWS]
            ),
            "appeals": list(appeals_awaiting_answer([recruitment])),
            "rehearsed": stand_in.rehearsal_jobs_of(recruitment).first(),
            "usual_people": stand_in.DEFAULT_PEOPLE,
            "job": Job.objects.filter(kind=sync.KIND, arguments__recruitment=recruitment.pk).first(),
        }

    def publish_at_panel_view(self, request, pk):
        """Show the cost of publishing and what prevents it. Only the values that were shown are published."""
        recruitment = self._get_recruitment_or_404(request, pk)
        if not REGISTRY[recruitment.channel].publishes or not has_service_secret(recruitment):
            raise Http404("heval cannot publish at this panel.")
        form, cost, warnings = PublishForm(recruitment), None, []
        if request.method == "POST":
            data = request.POST.copy()
            form = PublishForm(recruitment, data)
            if form.is_valid():
                task_values = {name: value for name, value in form.cleaned_data.items() if name != "seen"}
                was_shown = form.cleaned_data["seen"] == form.shown_values
                if "publish" in request.POST and was_shown and self._try_publish(request, recruitment, task_values):
                    return HttpResponseRedirect(f"{reverse('admin:annotators_panel', args=[pk])}#orders")
                cost = RewardCost(task_values["places"], task_values["reward"])
                warnings = publishing_warnings(
                    recruitment, task_values["reward"], task_values["minutes"], task_values["places"]
                )
                data["seen"] = form.shown_values
        context = {
            "title": "Publish at the panel",
            "recruitment": recruitment,
            "channel": REGISTRY[recruitment.channel],
            "form": form,
            "cost": cost,
            "warnings": warnings,
            "obstacles": publishing_obstacles(recruitment),
            "link": panel_entry_url(recruitment),
            "thresholds": threshold_lines(recruitment.settings),
            "currency": recruitment.currency or recruitment.study.currency,
            "hourly": reward_per_hour(form.cleaned_data["reward"], form.cleaned_data["minutes"]) if cost else None,
        }
        return study_page.render_study_page(
            request,
            "admin/annotators/publish.html",
            recruitment.study,
            context,
            status=400 if form.errors else 200,
        )

    def _try_publish(self, request, recruitment, task_values) -> bool:
        try:
            order_blocklist_and_publication(
                recruitment, by=request.user, currency=recruitment.currency or recruitment.study.currency, **task_values
            )
        except ActionRefused as error:
            messages.warning(request, str(error))
            return False
        sync.schedule_sync(recruitment, by=request.user)
        messages.success(request, "Publishing is ordered. Reload this page in a moment.")
        return True

    def panel_rounds_view(self, request, pk):
        """Show the rounds. POST saves the plan, or repeats a round that the panel refused."""
        recruitment = self._get_recruitment_or_404(request, pk)
        is_in_steps = opens_in_steps(recruitment)
        if not is_in_steps and not has_service_secret(recruitment):
            raise Http404("heval cannot publish at this panel.")
        form, rounds_url = PlanForm(recruitment), reverse("admin:annotators_panel_rounds", args=[pk])
        if "again" in request.POST:
            if retry_refused_round(recruitment, request.user):
                sync.schedule_sync(recruitment, by=request.user)
                messages.success(request, "The round is ordered again. Reload this page in a moment.")
            else:
                messages.warning(
                    request,
                    "There is no refused round: the panel may have accepted it meanwhile. You need not do anything.",
                )
            return HttpResponseRedirect(rounds_url)
        if request.method == "POST":
            form = PlanForm(recruitment, request.POST)
            if form.is_valid():
                save_round_plan(recruitment, by=request.user, **form.cleaned_data)
                messages.success(
                    request, f"The plan is saved{'' if is_in_steps else '. The next check of the panel follows it'}."
                )
                return HttpResponseRedirect(rounds_url)
        plan = PanelPlan.objects.filter(recruitment=recruitment).select_related("recruitment__study").first()
        task = newest_published_task(recruitment)
        context = {
            "title": "Places in steps" if is_in_steps else "Rounds",
            "recruitment": recruitment,
            "form": form,
            "plan": plan,
            "steps": step_status(plan) if plan and is_in_steps else None,
            "is_in_steps": is_in_steps,
            "now": round_status(plan) if plan and not is_in_steps else None,
            "may_try_again": bool(task and is_last_round_refused(task)),
            "cap": recruitment.study.cap,
        }
        template = "admin/annotators/rounds.html"
        return study_page.render_study_page(
            request, template, recruitment.study, context, status=400 if form.errors else 200
        )

    def stop_panel_task_view(self, request, pk, task):
        """POST: stop recruiting for this task."""
        recruitment = self._get_recruitment_or_404(request, pk)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        row = PanelTask.objects.select_related("recruitment__study").filter(recruitment=recruitment, pk=task).first()
        if row is None:
            raise Http404("There is no such task.")
        order_task_stop(row, by=request.user)
        if has_service_secret(recruitment):
            sync.schedule_sync(recruitment, by=request.user)
        messages.success(request, "The task will be stopped. People who have started can finish.")
        return HttpResponseRedirect(f"{reverse('admin:annotators_panel', args=[pk])}#orders")

    def cancel_or_resolve_panel_order_view(self, request, pk, order):
        """POST: cancel an order, or resolve one whose result is unclear."""
        recruitment = self._get_recruitment_or_404(request, pk)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        row = PanelOrder.objects.select_related("recruitment__study").filter(recruitment=recruitment, pk=order).first()
        if row is None:
            raise Http404("There is no such order.")
        if "cancel" in request.POST:
            is_done = cancel_order(row, by=request.user)
        elif request.POST.get("carried_out") in ("yes", "no"):
            is_done = resolve_order(row, request.POST["carried_out"] == "yes", request.user)
        else:
            is_done = False
        if not is_done:
            messages.warning(
                request, "This is no longer possible: the order's status has changed. Read its new status in the list."
            )
        return HttpResponseRedirect(f"{reverse('admin:annotators_panel', args=[pk])}#orders")


def _describe_entered_code(recruitment: Recruitment, row: PanelSubmission | None, people: Mapping[int, str]) -> str:
    """Describe the code that a person entered at the panel; '' if unknown."""
    if row is None or not row.receipt:
        return ""
    if row.receipt.startswith(PERSON_PREFIX):
        return "their own id at the panel"
    receipt, ids = "", {}
    if row.assignment:
        receipt, ids = (
            compute_receipt(row.assignment.code),
            external_ids_with_person(row.assignment, people.get(row.annotator_id, "")),
        )
    if receipt and is_same_receipt(row.receipt, receipt):
        return "the receipt of this work"
    channel = REGISTRY[recruitment.channel]
    codes = {outcome: channel.way_back(recruitment, outcome, ids, receipt).code for outcome in OUTCOMES}
    # Several ways to end may share one code.
    if ends := [
        description for outcome, description in OUTCOMES.items() if codes[outcome].casefold() == row.receipt.casefold()
    ]:
        return f"the code of {' or '.join(f'“{description}”' for description in ends)}"
    return f"a code that does not belong to this link ({row.receipt})"


def _bulk_approval_texts(recruitment: Recruitment, channel) -> list[BulkText]:
    """Approvals of all work finished at both and not rejected in heval, as text for the panel's own form."""
    rows = decisions.finished_submissions_awaiting_approval(recruitment).select_related("task").order_by("pk")
    people = get_person_ids(rows.values_list("annotator", flat=True))
    orders = {}
    for row in rows:
        if person := people.get(row.annotator_id):
            task = row.task.external_id if row.task else ""
            values = {"task": task, "submission": submission_id_at_panel(row, person), "person": person, "message": ""}
            # The panel's forms list people, so a person with two submissions to one task appears once.
            orders[task, person] = Order("approve", f"approve-{row.pk}", values)
    return channel.bulk_texts(list(orders.values()))


def _class_rows(counts: dict[str, int]) -> list[tuple[int, str, str, bool]]:
    """Return rows of (count, status, what to do, whether a person must act)."""
    return [(n, *MATCH_STATUSES[name], name in NEEDS_REVIEW) for name, n in counts.items()]
