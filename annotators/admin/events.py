"""The page Events of a study: where its events are sent, and what was sent."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from annotators.events import subscriptions
from studies.access import Action, get_study, is_allowed
from studies.admin import study_page
from studies.models import EventDelivery, EventSubscription, Study
from studies.models.events import OFFERED_EVENTS
from studies.services.lifecycle import ActionRefused, FieldsRefused

SHOWN_DELIVERIES = 50


class SubscriptionForm(forms.Form):
    url = forms.CharField(
        max_length=500,
        label="Address of a webhook",
        widget=forms.TextInput(attrs={"size": 60}),
        help_text="A public address that begins with https://. heval shows the secret of its signatures once.",
    )
    events = forms.MultipleChoiceField(
        choices=[(kind.value, f"{kind}: {kind.label}") for kind in OFFERED_EVENTS],
        widget=forms.CheckboxSelectMultiple,
        required=False,
        label="When",
    )
    answers = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=1_000_000,
        label="How many people",
        help_text="For “answers”, which is sent once when so many have submitted.",
    )

    def __init__(self, *args: Any, may_run: bool, **options: Any):
        super().__init__(*args, **options)
        if not may_run:
            del self.fields["url"]
        elif settings.SENDS_MAIL:
            self.fields["url"].required = False
            self.fields["url"].help_text += " Leave it empty to get mail yourself."


def _change(study: Study, user, sent) -> str:
    """Do what a button of the list asks for, and return what was done."""
    own = EventSubscription.objects.filter(study=study)
    if number := sent.get("again"):
        deliveries = EventDelivery.objects.filter(subscription__in=own).select_related("subscription__study")
        subscriptions.send_again(get_object_or_404(deliveries, pk=_number(number)), user)
        return "The event is sent again within a minute."
    subscription = get_object_or_404(own.select_related("study"), pk=_number(sent.get("test") or sent.get("delete")))
    if sent.get("test"):
        subscriptions.send_test(subscription, user)
        return "A test event is sent within a minute. Reload this page to see what came of it."
    subscriptions.unsubscribe(subscription, user)
    return "Nothing more is sent there."


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 19 else 0


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def events_page(request, pk) -> HttpResponse:
    """Show subscriptions and deliveries. POST adds a subscription, or does what a button asks for."""
    study = get_study(request.user, Action.VIEW, pk=pk)
    may_run, status, made, secret = is_allowed(request.user, Action.RUN, study), 200, None, ""
    is_new = request.method == "POST" and not {"again", "test", "delete"} & set(request.POST)
    form = SubscriptionForm(request.POST if is_new else None, may_run=may_run)
    try:
        if request.method == "POST" and not is_new:
            messages.success(request, _change(study, request.user, request.POST))
            return HttpResponseRedirect(reverse("study_events", args=[pk]))
        if is_new and form.is_valid():
            made, secret = subscriptions.subscribe(
                study,
                request.user,
                form.cleaned_data["events"],
                url=form.cleaned_data.get("url", "").strip(),
                answers=form.cleaned_data["answers"],
            )
            if not secret:
                messages.success(request, f"heval sends mail to {request.user.email}.")
                return HttpResponseRedirect(reverse("study_events", args=[pk]))
            form = SubscriptionForm(may_run=may_run)
    except FieldsRefused as refused:
        for name, text in refused.errors.items():
            form.add_error(name if name in form.fields else None, text)
    except ActionRefused as refused:
        status = 409
        messages.error(request, str(refused))
    # Others see neither an address, which can be a secret of the receiver, nor the mail of their colleagues.
    shown = EventSubscription.objects.filter(study=study).select_related("by")
    shown = shown if may_run else shown.filter(url="", by=request.user)
    deliveries = EventDelivery.objects.filter(subscription__in=shown).select_related("event", "subscription__by")
    context = {
        "title": "Events",
        "sends_mail": settings.SENDS_MAIL,
        "form": form if may_run or settings.SENDS_MAIL else None,
        "made": made,
        "secret": secret,
        "subscriptions": shown,
        "deliveries": deliveries.order_by("-pk")[:SHOWN_DELIVERIES],
    }
    status = 422 if form.errors else status
    return study_page.render_study_page(request, "admin/annotators/events.html", study, context, status)
