"""Webhooks for panels' notifications: verify, store, and leave the work to a job.

The address is among the annotators' pages, which use no cookies. Only the panel's signature counts.
"""

from django.db import transaction
from django.db.models.functions import Now
from django.http import Http404, HttpResponse
from django.views.decorators.http import require_POST

from annotators.models import PanelEvent, Recruitment
from annotators.recruitment.channels import REGISTRY
from studies.services.rate_limits import count_and_check_rate_limit

from . import ForgedMessage, incremental_sync
from .secrets import WEBHOOK_SECRET, decrypt_panel_secret

MAX_BODY_BYTES = 64 * 1024
# A study of hundreds of people sends a few per minute. The panel repeats refused ones, and the regular check finds lost
# ones.
MAX_PER_MINUTE = 600


@require_POST
def receive_webhook(request, key) -> HttpResponse:
    """Store a notification. Idempotent. Its content is not trusted; the state is fetched from the panel."""
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
        return HttpResponse(status=413)
    recruitment = Recruitment.objects.select_related("study").filter(key=key).first()
    channel = REGISTRY.get(recruitment.channel) if recruitment else None
    secret = (
        decrypt_panel_secret(recruitment, WEBHOOK_SECRET) if recruitment and channel and channel.sends_webhooks else ""
    )
    if recruitment is None or channel is None or not secret:
        raise Http404("There is no webhook at this address.")
    if count_and_check_rate_limit(f"webhook:{recruitment.pk}", MAX_PER_MINUTE):
        return HttpResponse(status=429, headers={"Retry-After": "60"})
    try:
        message = channel.read_message(secret, request.headers, request.body)
    except ForgedMessage:
        return HttpResponse(status=401)
    except ValueError as error:
        return HttpResponse(str(error), status=400, content_type="text/plain")
    with transaction.atomic():
        # A panel may notify several links of one event under one id; each link stores its own copy. The person's id is
        # not stored.
        _, is_new = PanelEvent.objects.get_or_create(
            source=incremental_sync.event_source_name(recruitment),
            external_id=message.event_id,
            defaults={
                "recruitment": recruitment,
                "kind": message.kind,
                "body": {"submission": message.submission, "word": message.word},
                "handled_at": None if message.submission else Now(),
            },
        )
        if is_new and message.submission:
            incremental_sync.schedule_incremental_sync(recruitment)
    return HttpResponse(status=200)
