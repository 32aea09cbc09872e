"""API views of the panel of a link: its secrets, what it is asked, what is published there, and the orders to it.

Nothing here shows an id of a person at the panel.
"""

from decimal import Decimal
from typing import Any

from django.http import QueryDict
from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.generics import RetrieveAPIView

from annotators.admin.panel import MAX_FILE_SIZE, PanelFileForm, PlanForm, PublishForm, SecretsForm
from annotators.models import PanelOrder, PanelPlan, PanelTask
from annotators.pay.decisions import submissions_to_approve
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels import sync
from annotators.recruitment.panels.alerts import find_panel_alerts
from annotators.recruitment.panels.http_client import (
    get_panel_service,
    has_service_secret,
    store_or_delete_secrets,
    stored_secret_dates,
)
from annotators.recruitment.panels.orders import (
    RewardCost,
    cancel_order,
    order_blocklist_and_publication,
    order_task_stop,
    publishing_obstacles,
    publishing_warnings,
    resolve_order,
    retry_refused_round,
    save_round_plan,
)
from annotators.recruitment.panels.reconcile import (
    count_submissions_and_missing_by_status,
    import_panel_file_and_release_places,
)
from studies.access import Action
from studies.models import Job
from studies.services.lifecycle import ActionRefused, FieldsRefused

from . import serializers as shapes
from .base import JobMixin, PostMixin
from .drafts import check_form
from .links import OfLinkView
from .renderers import FieldError, StrictJSONParser
from .uploads import StrictMultiPartParser, read_settings, require_json_object

MOST_ORDERS = 100


class PanelRoundsSerializer(shapes.StrictMixin, serializers.Serializer):
    people = shapes.StrictIntegerField(min_value=1, max_value=10_000, help_text="How many people the link wants.")
    round_places = shapes.StrictIntegerField(min_value=1, max_value=10_000, help_text="Places of a round.")
    lost_percent = shapes.StrictIntegerField(
        min_value=0, max_value=50, default=0, help_text="Your estimate of places without finished work."
    )


class PanelAlertSerializer(serializers.Serializer):
    kind = serializers.CharField(help_text="What it is about.")
    problem = serializers.CharField(help_text="What is wrong.")
    advice = serializers.CharField(help_text="What to do.")


class PanelTaskSerializer(serializers.Serializer):
    number = serializers.IntegerField(source="pk", help_text="Number of the task, to stop it.")
    name = serializers.CharField(source="external_id", help_text="The panel's id of the task.")
    places = serializers.IntegerField(allow_null=True, help_text="Published places. Null if heval did not publish it.")
    made_at = serializers.DateTimeField(help_text="When heval first knew of it.")
    closed_at = serializers.DateTimeField(allow_null=True, help_text="When it was stopped, or null.")


class PanelOrderSerializer(serializers.Serializer):
    number = serializers.IntegerField(source="pk", help_text="Number of the order, to cancel or decide it.")
    operation = serializers.CharField(help_text="What the panel shall do.")
    state = serializers.ChoiceField(PanelOrder.State.choices, help_text="How far the order is.")
    message = serializers.CharField(source="panel_message", allow_blank=True, help_text="What the panel answered.")
    made_at = serializers.DateTimeField(help_text="When it was ordered.")
    ended_at = serializers.DateTimeField(allow_null=True, help_text="When it was carried out or ended, or null.")


class PanelSerializer(serializers.Serializer):
    """The panel of a link. It shows counts, and no id of a person."""

    channel = serializers.CharField(help_text="How people come, such as prolific.")
    secrets = serializers.DictField(
        child=serializers.DateTimeField(allow_null=True),
        help_text="When each secret of the channel was stored, or null. The secrets themselves are never sent.",
    )
    submissions = serializers.DictField(
        child=serializers.IntegerField(), help_text="Work at the panel, by how it fits the work in heval."
    )
    to_approve = serializers.IntegerField(help_text="Work finished at both, whose approval was not ordered yet.")
    plan = PanelRoundsSerializer(allow_null=True, help_text="The plan of rounds, or null.")
    obstacles = serializers.ListField(child=serializers.CharField(), help_text="What prevents publishing.")
    alerts = PanelAlertSerializer(many=True, help_text="What needs a person.")
    tasks = PanelTaskSerializer(many=True, help_text="Tasks at the panel, the newest first.")
    orders = PanelOrderSerializer(many=True, help_text=f"The newest {MOST_ORDERS} orders to the panel.")


class PanelSecretsSerializer(shapes.StrictMixin, serializers.Serializer):
    secrets = shapes.ObjectField(
        child=shapes.TextField(max_length=500, allow_null=True),
        help_text="Secrets of the channel by name. null deletes one. They are stored encrypted, and never sent back.",
    )


class AskPanelSerializer(shapes.StrictMixin, serializers.Serializer):
    approves = shapes.StrictBooleanField(
        default=False, help_text="true: first approve the work that is finished at both."
    )
    listens = shapes.StrictBooleanField(default=False, help_text="true: also ask the panel for notifications.")


class PublishSerializer(shapes.StrictMixin, serializers.Serializer):
    """The task as the panel shows it. Read its cost and warnings with is_dry_run first, and confirm the cost with total."""

    title = shapes.NameField(max_length=120, help_text="Title of the task at the panel. Do not name a system.")
    description = shapes.CleanTextField(max_length=2000, help_text="What people read at the panel.")
    places = shapes.StrictIntegerField(min_value=1, max_value=10_000, help_text="How many people.")
    minutes = shapes.StrictIntegerField(min_value=1, max_value=1440, help_text="Estimated minutes.")
    reward = shapes.StrictDecimalField(
        min_value=0, max_value=10_000, max_digits=7, decimal_places=2, help_text="Pay of each person."
    )
    total = shapes.StrictDecimalField(
        min_value=0,
        max_digits=12,
        decimal_places=2,
        required=False,
        help_text="The rewards of all places, to confirm them. Without it, nothing is published.",
    )
    is_dry_run = shapes.StrictBooleanField(default=False, help_text="true: only say what it costs, and warn.")


class PublicationSerializer(serializers.Serializer):
    order = serializers.IntegerField(allow_null=True, help_text="Number of the order. Null after a dry run.")
    total = serializers.CharField(help_text="The rewards of all places, without fees.")
    currency = serializers.CharField(help_text="Currency of the rewards.")
    warnings = serializers.ListField(child=serializers.CharField(), help_text="What to consider before paying.")
    obstacles = serializers.ListField(child=serializers.CharField(), help_text="What prevents publishing.")


class ResolveOrderSerializer(shapes.StrictMixin, serializers.Serializer):
    was_carried_out = shapes.StrictBooleanField(help_text="What you saw at the panel. false: it is sent again.")


class PanelFileSettingsSerializer(shapes.StrictMixin, serializers.Serializer):
    is_dry_run = shapes.StrictBooleanField(default=False, help_text="true: only count.")


class PanelFileSerializer(serializers.Serializer):
    """A form with the file that the panel exports."""

    file = serializers.FileField(help_text="The panel's exported file.")
    settings = serializers.CharField(required=False, help_text="One JSON object with is_dry_run. Default: {}.")


class ImportedSubmissionsSerializer(serializers.Serializer):
    seen = serializers.IntegerField(help_text="Submissions in the file.")
    new = serializers.IntegerField(help_text="Submissions that heval did not know.")
    changed = serializers.IntegerField(help_text="Submissions whose state changed.")
    released = serializers.IntegerField(help_text="Places that are free again.")
    classes = serializers.DictField(
        child=serializers.IntegerField(), help_text="Submissions by how they fit the work in heval."
    )


class PanelView(OfLinkView):
    """What heval knows about the panel of a link. PATCH stores or deletes secrets."""

    tag = "panels"
    read_action = write_action = Action.PANEL
    serializer_class: Any = PanelSerializer

    def shown(self) -> dict[str, Any]:
        link, stored = self.link, stored_secret_dates(self.link)
        return {
            "channel": link.channel,
            "secrets": {name: stored.get(name) for name in REGISTRY[link.channel].secrets},
            "submissions": count_submissions_and_missing_by_status(link),
            "to_approve": submissions_to_approve(link).count() if has_service_secret(link) else 0,
            "plan": PanelPlan.objects.filter(recruitment=link).first(),
            "obstacles": publishing_obstacles(link),
            "alerts": find_panel_alerts(link),
            "tasks": PanelTask.objects.filter(recruitment=link).order_by("-pk"),
            "orders": PanelOrder.objects.filter(recruitment=link).order_by("-pk")[:MOST_ORDERS],
        }


class PanelDetailView(PanelView, RetrieveAPIView):
    """What heval knows about the panel of a link. PATCH stores or deletes secrets."""

    summaries = {"GET": "The panel of a link", "PATCH": "Store secrets of the panel"}
    body_serializer_class = PanelSecretsSerializer

    def get_object(self) -> dict[str, Any]:
        return self.shown()

    def patch(self, request, code, key):
        secrets = self.check_fields(require_json_object(request))["secrets"]
        known = REGISTRY[self.link.channel].secrets
        if unknown := sorted(set(secrets) - set(known)):
            listed = ", ".join(known) or "none"
            raise FieldsRefused(
                {f"secrets.{unknown[0]}": f"The channel has no such secret. Leave it out. It has: {listed}."}
            )
        sent = {(f"forget_{name}" if text is None else name): text or "on" for name, text in secrets.items()}
        form = SecretsForm(self.link, sent)
        check_form(form)
        store_or_delete_secrets(self.link, form.changes(), by=request.user)
        return self.answer(self.shown())


class AskPanelView(JobMixin, PanelView):
    """Ask the panel what it knows now, and send waiting orders."""

    summaries = {"POST": "Ask the panel; returns the job to poll"}
    body_serializer_class = AskPanelSerializer

    def start_job(self, token: str | None, **steps: bool) -> Job:
        get_panel_service(self.link)
        return sync.schedule_sync(self.link, by=self.request.user, **steps)


class PublishView(PostMixin, PanelView):
    """Publish the task at the panel, if ``total`` is what it costs. A dry run says what it costs, and warns."""

    summaries = {"POST": "Publish at the panel"}
    serializer_class = PublicationSerializer
    body_serializer_class = PublishSerializer

    def perform(self, is_dry_run: bool, total: Decimal | None = None, **task: Any) -> dict[str, Any]:
        form = PublishForm(self.link, task)
        check_form(form)
        link, cost = self.link, RewardCost(task["places"], task["reward"])
        if not is_dry_run and total != cost.rewards:
            raise FieldsRefused({"total": f"The rewards are {cost.rewards:.2f}. Send this as “total” to confirm it."})
        currency, order = link.currency or self.study.currency, None
        warnings = publishing_warnings(link, task["reward"], task["minutes"], task["places"])
        if not is_dry_run:
            get_panel_service(link)
            order = order_blocklist_and_publication(link, by=self.request.user, currency=currency, **task)
            sync.schedule_sync(link, by=self.request.user)
        return {
            "order": order and order.pk,
            "total": f"{cost.rewards:.2f}",
            "currency": currency,
            "warnings": warnings,
            "obstacles": publishing_obstacles(link),
        }


class RoundPlanView(PostMixin, PanelView):
    """Plan how the places of the link are opened: in rounds at the panel, or in steps."""

    summaries = {"POST": "Plan rounds"}
    body_serializer_class = PanelRoundsSerializer

    def perform(self, **plan: int) -> dict[str, Any]:
        check_form(PlanForm(self.link, plan))
        save_round_plan(self.link, by=self.request.user, **plan)
        return self.shown()


class RepeatRoundView(PostMixin, PanelView):
    """Order a round again that the panel refused, after its cause is gone."""

    summaries = {"POST": "Order a refused round again"}

    def perform(self) -> dict[str, Any]:
        if not retry_refused_round(self.link, self.request.user):
            raise ActionRefused("There is no refused round. The panel may have accepted it meanwhile.")
        sync.schedule_sync(self.link, by=self.request.user)
        return self.shown()


class StopTaskView(PostMixin, PanelView):
    """Let nobody new come by a task of the panel. People who have started can finish."""

    summaries = {"POST": "Stop a task at the panel"}

    def perform(self) -> dict[str, Any]:
        task = get_object_or_404(PanelTask, recruitment=self.link, pk=self.kwargs["number"])
        order_task_stop(task, by=self.request.user)
        if has_service_secret(self.link):
            sync.schedule_sync(self.link, by=self.request.user)
        return self.shown()


class PanelOrderView(PostMixin, PanelView):
    def decide(self, order: PanelOrder, **sent: Any) -> bool:
        raise NotImplementedError

    def perform(self, **sent: Any) -> dict[str, Any]:
        order = get_object_or_404(PanelOrder, recruitment=self.link, pk=self.kwargs["number"])
        if not self.decide(order, **sent):
            raise ActionRefused("The state of the order has changed, so this is not possible now. Read it again.")
        return self.shown()


class CancelOrderView(PanelOrderView):
    """Take back an order that was not sent to the panel yet."""

    summaries = {"POST": "Cancel an order to the panel"}

    def decide(self, order: PanelOrder, **sent: Any) -> bool:
        return cancel_order(order, by=self.request.user)


class ResolveOrderView(PanelOrderView):
    """Say whether an order was carried out whose result is unclear."""

    summaries = {"POST": "Decide an unclear order"}
    body_serializer_class = ResolveOrderSerializer

    def decide(self, order: PanelOrder, **sent: Any) -> bool:
        return resolve_order(order, sent["was_carried_out"], self.request.user)


class PanelFileView(PostMixin, PanelView):
    """Read the file that the panel exports. It has ids of people, so a token needs the scope “people”."""

    summaries = {"POST": "Read the panel's exported file"}
    needs_people_scope = True
    parser_classes = (StrictJSONParser, StrictMultiPartParser)
    max_file_bytes = MAX_FILE_SIZE
    serializer_class = ImportedSubmissionsSerializer
    body_serializer_class = PanelFileSettingsSerializer
    documented_body = {"multipart/form-data": PanelFileSerializer}

    def read_body(self) -> dict[str, Any]:
        if not isinstance(self.request.data, QueryDict):
            raise FieldError("file", "There is no file. Send multipart/form-data with the panel's file as “file”.")
        return self.check_fields(read_settings(self.request))

    def perform(self, is_dry_run: bool) -> Any:
        if not REGISTRY[self.link.channel].can_read_export_file(self.link):
            raise ActionRefused("This channel has no file to read. Ask the panel instead.")
        form = PanelFileForm({}, self.request.FILES)
        check_form(form)
        file = form.cleaned_data["file"]
        try:
            return import_panel_file_and_release_places(self.link, file, self.request.user, dry_run=is_dry_run)
        except ValueError as refused:
            raise FieldsRefused({"file": str(refused)}) from None
