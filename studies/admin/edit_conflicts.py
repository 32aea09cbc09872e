"""Two people edit one form: the second to save sees what changed meanwhile, and loses nothing that they typed.

A form carries a fingerprint of the rows that it edits. heval compares it while it holds the study's lock.
"""

import hashlib

from django.db.models import Model, QuerySet
from django.http import QueryDict
from django.template.response import TemplateResponse

from studies.models import Study

FINGERPRINT_FIELD = "_seen"


def editable_columns_fingerprint(*instances_or_querysets: Model | QuerySet) -> str:
    """Return a hash of the editable columns of these rows."""
    digest = hashlib.sha256()
    for part in instances_or_querysets:
        model = part.model if isinstance(part, QuerySet) else type(part)
        names = ["pk", *(f.attname for f in model._meta.concrete_fields if f.editable and not f.primary_key)]
        if isinstance(part, QuerySet):
            rows = list(part.order_by("pk").values_list(*names))
        else:
            rows = [tuple(getattr(part, name) for name in names)]
        digest.update(repr((model._meta.label, rows)).encode())
    return digest.hexdigest()[:32]


def lock_study(study_id: int) -> None:
    """Lock the study, so that saves of one study run one after the other."""
    Study.objects.select_for_update(no_key=True, of=("self",)).filter(pk=study_id).first()


def request_deletes_draft_rows(request, study: Study) -> bool:
    """Return whether the request deletes rows of a draft. Call it under the lock: the study may have been launched meanwhile."""
    study.refresh_from_db(fields=["state"])
    return study.is_draft and any(name.endswith("-DELETE") for name in request.POST)


def conflict_page(
    request, site, *, opts, original, current_fingerprint: str, differing: list[tuple[str, object, str]]
) -> TemplateResponse:
    """Return status 409 with the stored values beside the typed ones, and both ways to continue."""
    data: QueryDict = request.POST.copy()
    for name in ("csrfmiddlewaretoken", FINGERPRINT_FIELD):
        data.pop(name, None)
    context = {
        **site.each_context(request),
        "title": "Somebody else saved this page while you had it open",
        "opts": opts,
        "original": original,
        "differing": differing,
        "posted": [(name, value) for name, values in data.lists() for value in values],
        "fingerprint_field": FINGERPRINT_FIELD,
        "fingerprint": current_fingerprint,
    }
    return TemplateResponse(request, "admin/studies/conflict.html", context, status=409)


def differing_field_values(form) -> list[tuple[str, object, str]]:
    """Return (label, stored value, typed value) of the fields in which a bound form differs from its instance."""
    rows = []
    for name in form.changed_data:
        if name in form.fields:
            bound = form[name]
            typed = bound.data
            rows.append((bound.label, bound.initial, ", ".join(typed) if isinstance(typed, list) else typed))
    return rows
