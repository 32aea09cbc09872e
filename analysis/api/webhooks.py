"""API views of webhooks: where a study's events are sent, and each delivery. Mail is chosen on the page Events."""

from typing import Any

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.response import Response

from annotators.events import subscriptions
from studies.access import Action
from studies.models import EventDelivery, EventSubscription
from studies.models.events import OFFERED_EVENTS

from .base import PostMixin, StudyView
from .serializers import ListField, NameField, StrictIntegerField, StrictMixin


class WebhookSerializer(serializers.ModelSerializer):
    number = serializers.IntegerField(source="pk", help_text="Names the webhook in addresses.")
    url = serializers.CharField(help_text="Where events are sent.")
    events = serializers.ListField(child=serializers.CharField(), help_text="The events that are sent.")
    answers = serializers.IntegerField(allow_null=True, help_text="After how many people “answers” is sent, or null.")
    by = serializers.CharField(source="by.username", help_text="The account that made it.")
    at = serializers.DateTimeField(help_text="When it was made.")

    class Meta:
        model = EventSubscription
        fields = ("number", "url", "events", "answers", "by", "at")


class WebhookMadeSerializer(WebhookSerializer):
    secret = serializers.CharField(help_text="The key of the signatures. Shown only now.")

    class Meta(WebhookSerializer.Meta):
        fields = (*WebhookSerializer.Meta.fields, "secret")


class NewWebhookSerializer(StrictMixin, serializers.Serializer):
    url = NameField(max_length=500, help_text="A public address that begins with https://.")
    events = ListField(child=NameField(), max_length=20, help_text=f"Some of {', '.join(OFFERED_EVENTS)}.")
    answers = StrictIntegerField(
        required=False, allow_null=True, min_value=1, max_value=1_000_000, help_text="For “answers”: how many people."
    )


class DeliverySerializer(serializers.ModelSerializer):
    number = serializers.IntegerField(source="pk", help_text="Names the delivery in addresses.")
    event = serializers.CharField(source="event.kind", help_text="What happened.")
    id = serializers.UUIDField(source="event.code", help_text="The header webhook-id, the same in each attempt.")
    happened_at = serializers.DateTimeField(source="event.at", help_text="When it happened.")
    state = serializers.CharField(help_text="waiting, delivered or given up.")
    attempts = serializers.IntegerField(help_text="How often it was tried.")
    status = serializers.IntegerField(allow_null=True, help_text="The HTTP status of the last answer, or null.")
    problem = serializers.CharField(allow_blank=True, help_text="Why the last attempt failed, or empty.")
    next_at = serializers.DateTimeField(allow_null=True, help_text="When it is tried next, or null.")

    class Meta:
        model = EventDelivery
        fields = ("number", "event", "id", "happened_at", "state", "attempts", "status", "problem", "next_at")


class WebhookView(StudyView):
    """A webhook. Its address can be a secret of the receiver, so only those who run the study see it."""

    tag = "webhooks"
    read_action = write_action = Action.RUN
    queryset = EventSubscription.objects.exclude(url="").select_related("study", "by")
    serializer_class: Any = WebhookSerializer
    lookup_url_kwarg = "webhook"


class WebhooksView(PostMixin, WebhookView, ListAPIView):
    """The webhooks of a study. POST makes one, and alone shows the secret of its signatures."""

    summaries = {"GET": "Webhooks of a study", "POST": "Make a webhook; its secret is shown only now"}
    body_serializer_class = NewWebhookSerializer
    result_serializer_class = WebhookMadeSerializer
    success_status = 201

    def perform(self, events: list[str], **sent: Any) -> EventSubscription:
        webhook: Any
        webhook, secret = subscriptions.subscribe(self.study, self.request.user, events, **sent)
        webhook.secret = secret
        return webhook

    def name_of_secret(self, data: Any) -> str:
        return f"webhook {data['number']}"


class WebhookDetailView(WebhookView):
    """A webhook. Nothing is sent to it after it is deleted."""

    summaries = {"DELETE": "Delete a webhook"}

    def delete(self, request, code, webhook):
        row = self.get_object()
        shown = self.get_serializer(row).data
        subscriptions.unsubscribe(row, request.user)
        return Response(shown)


class TestWebhookView(PostMixin, WebhookView):
    """Send an event that says only that somebody tries the webhook. The list of deliveries shows what came of it."""

    summaries = {"POST": "Send a test event"}
    result_serializer_class = DeliverySerializer
    success_status = 202

    def perform(self) -> EventDelivery:
        delivery = subscriptions.send_test(self.get_object(), self.request.user)
        return EventDelivery.objects.select_related("event").get(pk=delivery.pk)


class DeliveryView(StudyView):
    tag = "webhooks"
    read_action = write_action = Action.RUN
    serializer_class = DeliverySerializer
    lookup_url_kwarg = "delivery"

    def get_queryset(self):
        webhooks = EventSubscription.objects.filter(study=self.study).exclude(url="")
        webhook = get_object_or_404(webhooks, pk=self.kwargs["webhook"])
        return webhook.deliveries.select_related("event", "subscription__study")


class DeliveriesView(DeliveryView, ListAPIView):
    """What was sent to a webhook, is being sent, or was given up after a day."""

    summaries = {"GET": "Deliveries of a webhook"}


class SendAgainView(PostMixin, DeliveryView):
    """Send an event that has arrived or was given up once more, with the same id."""

    summaries = {"POST": "Send an event again"}
    success_status = 202

    def perform(self) -> EventDelivery:
        subscriptions.send_again(self.get_object(), self.request.user)
        return self.get_object()
