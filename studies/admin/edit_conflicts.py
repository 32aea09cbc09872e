"""Two editors and one form: who saves second is shown what changed meanwhile, and loses nothing that was typed.

A form carries a fingerprint of the rows it edits. It is compared under the lock of the study.
"""

import hashlib

from django.db.models import Model, QuerySet
from django.http import QueryDict
from django.template.response import TemplateResponse

from studies.models import Study

FINGERPRINT_FIELD = "_seen"


def fingerprint(*parts: Model | QuerySet) -> str:
    """A name for what these rows say now: their editable columns."""
    digest = hashlib.sha256()
    for part in parts:
        model = part.model if isinstance(part, QuerySet) else type(part)
        names = ["pk", *(f.attname for f in model._meta.concrete_fields if f.editable and not f.primary_key)]
        if isinstance(part, QuerySet):
            rows = list(part.order_by("pk").values_list(*names))
        else:
            rows = [tuple(getattr(part, name) for name in names)]
        digest.update(repr((model._meta.label, rows)).encode())
    return digest.hexdigest()[:32]


def lock(study_id: int) -> None:
    """Saves of one study go one after the other."""
    Study.objects.select_for_update(no_key=True, of=("self",)).filter(pk=study_id).first()


def deletes_rows(request, study: Study) -> bool:
    """Whether a page that was sent deletes rows of a draft. Under the lock: the study may have been launched meanwhile."""
    study.refresh_from_db(fields=["state"])
    return study.is_draft and any(name.endswith("-DELETE") for name in request.POST)


def conflict_page(request, site, *, opts, original, current_fingerprint: str, differing: list[tuple[str, object, str]]):
    """409: what was saved meanwhile beside what was typed, and both ways on."""
    data: QueryDict = request.POST.copy()
    for name in ("csrfmiddlewaretoken", FINGERPRINT_FIELD):
        data.pop(name, None)
    context = {
        **site.each_context(request),
        "title": "Somebody saved this while you had it open",
        "opts": opts,
        "original": original,
        "differing": differing,
        "posted": [(name, value) for name, values in data.lists() for value in values],
        "seen_field": FINGERPRINT_FIELD,
        "seen": current_fingerprint,
    }
    return TemplateResponse(request, "admin/studies/conflict.html", context, status=409)


def differing_fields(form) -> list[tuple[str, object, str]]:
    """(label, what is stored, what was typed) of the fields in which a bound form differs from its instance."""
    rows = []
    for name in form.changed_data:
        if name in form.fields:
            bound = form[name]
            typed = bound.data
            rows.append((bound.label, bound.initial, ", ".join(typed) if isinstance(typed, list) else typed))
    return rows
