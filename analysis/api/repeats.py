"""Repeated POSTs: with an Idempotency-Key, the same request is done once, and its repetitions get the first answer.

A key lives for a day, for each caller and address. A request that was refused leaves its key free, because nothing was stored.
"""

import json
from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256
from typing import Any

from django.db.models.functions import Now
from django.http import QueryDict
from django.utils import timezone
from rest_framework.response import Response

from analysis.models import IdempotentRequest
from studies.models import Job

from .renderers import FieldError, JSONRenderer, problem_response
from .serializers import JobSerializer

KEY_HEADER = "Idempotency-Key"
MAX_KEY = 200
LIFETIME = timedelta(days=1)
# A process that died while it answered leaves a row without an answer. Requests take at most a minute.
LONGEST_ANSWER = timedelta(minutes=5)


def answer_once(view: Any, handler: Callable[..., Response], caller: str) -> Callable[..., Response]:
    """Return a handler that answers a repeated request like the first one. ``caller``: a token, user or team."""
    key = view.request.headers.get(KEY_HEADER, "")
    if not key:
        return handler
    if len(key) > MAX_KEY or not key.isascii() or not key.isprintable():
        raise FieldError(
            KEY_HEADER, f"This header must have 1 to {MAX_KEY} visible ASCII characters. Send another key."
        )

    def answer(request: Any, *args: Any, **kwargs: Any) -> Response:
        made = _claim(caller, request, key)
        if isinstance(made, Response):
            return made
        # The job of the same request is the same, even if a process dies before the answer is stored.
        view.request_token = sha256(f"request {made.pk} {key}".encode()).hexdigest()
        try:
            response = handler(request, *args, **kwargs)
        except BaseException:
            made.delete()
            raise
        _store(view, made, response)
        return response

    return answer


def _claim(caller: str, request: Any, key: str) -> IdempotentRequest | Response:
    """Return the row of a new request, or the answer of a repeated one."""
    named = {"caller": caller, "path": request.path[:300], "key": sha256(key.encode()).hexdigest()}
    body = _hash_of_body(request)
    IdempotentRequest.objects.filter(**named, created_at__lt=timezone.now() - LIFETIME).delete()
    row, is_new = IdempotentRequest.objects.get_or_create(**named, defaults={"body": body})
    if is_new:
        return row
    if row.body != body:
        return problem_response(
            422, f"This {KEY_HEADER} was sent with another body before. Send the first body again, or a new key."
        )
    if row.status is None:
        abandoned = IdempotentRequest.objects.filter(
            pk=row.pk, status=None, created_at__lt=timezone.now() - LONGEST_ANSWER
        )
        if abandoned.update(created_at=Now()):
            return row
        return problem_response(
            409,
            "The first request with this key is being answered. Send it again in a second.",
            headers={"Retry-After": "1"},
        )
    if row.made:
        return problem_response(
            409,
            f"The first request with this key made {row.made}, and its secret was shown only then. Revoke it, and send a new key.",
        )
    data = row.answer
    if row.job_id is not None:
        data = JobSerializer(Job.objects.get(pk=row.job_id)).data
    return Response(data, status=row.status, headers={"Idempotency-Replayed": "true"})


def _store(view: Any, row: IdempotentRequest, response: Response) -> None:
    row.status = response.status_code
    if name := view.name_of_secret(response.data):
        row.made = name
    elif response.status_code == 202 and isinstance(response.data, dict) and "code" in response.data:
        row.job = Job.objects.filter(code=response.data["code"]).first()
    if not row.made and row.job is None:
        row.answer = json.loads(JSONRenderer().render(response.data)) if response.data is not None else None
    row.save()


def _hash_of_body(request: Any) -> str:
    """Return a hash of what was sent: of JSON whatever the order of its names, of a form with its files."""
    digest = sha256(request.query_params.urlencode().encode())
    data: Any = request.data
    if isinstance(data, QueryDict):
        for name, values in sorted(data.lists()):
            for value in list[Any](values):
                digest.update(repr(name).encode())
                if hasattr(value, "chunks"):
                    digest.update(repr((value.name, value.size)).encode())
                    for chunk in value.chunks():
                        digest.update(chunk)
                    value.seek(0)
                else:
                    digest.update(repr(value).encode())
    elif isinstance(data, dict | list):
        digest.update(json.dumps(data, sort_keys=True).encode())
    else:  # a body that is read only once, as it is stored
        digest.update(request.META.get("CONTENT_LENGTH", "").encode())
    return digest.hexdigest()


def delete_old_requests() -> int:
    """Delete the keys of yesterday. Return how many they were."""
    return IdempotentRequest.objects.filter(created_at__lt=timezone.now() - LIFETIME).delete()[0]
