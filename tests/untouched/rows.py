"""Rows of the database before and after a form is sent back as it was shown."""

import json
import re
from collections.abc import Iterator

from django.apps import apps
from django.contrib import admin
from django.core.cache import cache
from django.db.models import QuerySet
from django.urls import reverse

from studies.design.serialization import canonical_json, serialize_design
from studies.models import Study
from tests.admin_pages import errors_of, forms_of, press

OURS = ("studies", "annotators", "analysis")


def rows() -> dict[str, str]:
    """Every row of every table of the project, the log of the studies included, and every study's canonical design."""
    found = {}
    for model in apps.get_models():
        if model._meta.app_label in OURS and not model._meta.proxy:
            names = [field.attname for field in model._meta.concrete_fields]
            for row in QuerySet(model).order_by("pk").values_list(*names):
                named = dict(zip(names, row, strict=True))
                found[f"{model._meta.label} {named['id']}"] = json.dumps(named, sort_keys=True, default=str)
    for study in Study.objects.all():
        found[f"design {study.pk}"] = canonical_json(serialize_design(study))
    return found


def differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    found = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, "(no row)"), after.get(name, "(no row)")
        if old != new:
            place = max(0, next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0) - 30)
            found.append(f"{name}: …{old[place : place + 90]}… became …{new[place : place + 90]}…")
    return found


def change_pages() -> Iterator[str]:
    """The change page of every row that the admin knows."""
    reverse("admin:index")  # imports the URLs, with which the admin learns its models
    for model in admin.site._registry:
        if model._meta.app_label in OURS:
            for pk in QuerySet(model).order_by("pk").values_list("pk", flat=True):
                yield reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_change", args=[pk])


def save_all(client, urls: list[str]) -> None:
    """Open each page and press Save, by each button in turn; the first page of each kind twice. Fails where a row changes."""
    assert urls
    before, kinds = rows(), set()
    for number, url in enumerate(urls):
        kind = re.sub(r"\d+", "", url)
        turns = (number,) if kind in kinds else (number, number + 1)
        kinds.add(kind)
        for turn in turns:
            page = client.get(url)
            assert page.status_code == 200, url
            own = next(form for form in forms_of(page) if form.attrs.get("id", "").endswith("_form"))
            buttons = [button for button in own.buttons if button[0] in ("_save", "_continue")]
            assert buttons, url
            cache.clear()  # limits of requests are another matter
            response = press(client, url, own, buttons[turn % len(buttons)])
            assert response.status_code == 302, (url, response.status_code, errors_of(response))
        found = differences(before, rows())
        assert not found, (url, found)


def pages_of(*models: str) -> list[str]:
    return [url for url in change_pages() if url.startswith(tuple(f"/admin/{model}/" for model in models))]


def pressed(client, url: str, inputs: set[str], **typed: str):
    """Send the form with these inputs by its first button; ``typed`` is filled in."""
    page = client.get(url)
    form = next(one for one in forms_of(page) if inputs <= set(one.inputs))
    form.fields = [field for field in form.fields if field[0] not in typed] + list(typed.items())
    return press(client, url, form, form.buttons[0])
