"""What a missing setting means never changes, whatever new rows store: stored designs lack the settings that came after them.

``UPDATE_MISSING_SETTINGS=1 pytest tests/studies/protocols/test_missing_settings.py`` adds new settings to the stored table. It never
changes a value that is there.
"""

import hashlib
import json
import os
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.forms import modelform_factory

from annotators.recruitment.channels import REGISTRY as CHANNELS
from studies.admin.section import AddSectionForm
from studies.models import Section
from studies.models.design import REGISTRY as RULES
from studies.protocols import REGISTRY as PROTOCOLS
from studies.protocols.base.fields import values_of_new_row
from tests.builders import draft_study
from tests.golden_site.stored import into_sqlite

TABLE = Path(__file__).parents[2] / "golden" / "missing_settings.json"
KINDS = {"protocol": PROTOCOLS, "rule": RULES, "channel": CHANNELS}


def meanings() -> dict[str, dict]:
    """The value of each missing setting of each settings form, as JSON."""
    return {
        f"{kind} {slug}": {
            name: "generated" if callable(field.initial) else json.loads(json.dumps(field.initial, default=str))
            for name, field in row.settings_form().fields.items()
        }
        for kind, registry in KINDS.items()
        for slug, row in sorted(registry.items())
        if row.settings_form is not None
    }


def stored() -> dict[str, dict]:
    if os.environ.get("UPDATE_MISSING_SETTINGS"):
        before = json.loads(TABLE.read_text()) if TABLE.exists() else {}
        found = {name: values | before.get(name, {}) for name, values in meanings().items()}
        TABLE.write_text(json.dumps(before | found, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    return json.loads(TABLE.read_text())


def is_same(cleaned, meaning) -> bool:
    """A form gives '' or None for what is empty, and texts without spaces around them."""
    return (cleaned or None) == ((meaning.strip() if isinstance(meaning, str) else meaning) or None)


def test_a_missing_setting_means_what_it_meant():
    now = meanings()
    assert now == stored()
    assert sum(map(len, now.values())) > 80


@pytest.mark.parametrize("slug", sorted(name for name, one in PROTOCOLS.items() if one.settings_form))
def test_a_section_that_lacks_a_setting_has_its_old_meaning(slug):
    protocol, meaning = PROTOCOLS[slug], stored()[f"protocol {slug}"]
    new = protocol.settings_of_new_section()
    assert new.keys() == meaning.keys()
    for name, value in meaning.items():
        # All other settings are stored, or none is.
        for settings in ({key: one for key, one in new.items() if key != name}, {}):
            cleaned = protocol.cleaned_settings(SimpleNamespace(settings=settings))
            assert is_same(cleaned[name], value), (name, settings)


def test_a_new_section_stores_every_setting_and_its_own_defaults():
    differing = {
        (slug, name): (protocol.settings_of_new_section()[name], field.initial)
        for slug, protocol in PROTOCOLS.items()
        if protocol.settings_form
        for name, field in protocol.settings_form.base_fields.items()
        if protocol.settings_of_new_section()[name] != field.initial
    }
    assert differing == {("two_choice", "stopping"): ("none", "anytime")}


@pytest.mark.django_db
@pytest.mark.parametrize("slug", sorted(PROTOCOLS))
def test_the_form_of_a_new_section_stores_them(slug):
    form = modelform_factory(Section, form=AddSectionForm, fields=("study", "protocol", "purpose"))(
        {"study": draft_study().pk, "protocol": slug, "purpose": "live"}
    )
    assert form.is_valid(), form.errors
    assert form.save().settings == values_of_new_row(PROTOCOLS[slug].settings_form)


@pytest.mark.slow
def test_designs_of_the_golden_site_keep_their_meaning_and_their_hash(tmp_path):
    into_sqlite(tmp_path / "site.sqlite3")
    with sqlite3.connect(tmp_path / "site.sqlite3") as connection:
        sections = connection.execute("SELECT protocol, settings FROM studies_section").fetchall()
        designs = connection.execute("SELECT canonical, sha256 FROM studies_design").fetchall()
    rows = [(protocol, json.loads(settings)) for protocol, settings in sections]
    for canonical, sha256 in designs:
        assert hashlib.sha256(canonical.encode()).hexdigest() == sha256
        rows += [(one["protocol"], one["settings"]) for one in json.loads(canonical)["sections"]]
    checked = set()
    for slug, settings in rows:
        meaning = stored().get(f"protocol {slug}", {})
        for name, value in meaning.items():
            without = {key: one for key, one in settings.items() if key != name}
            cleaned = PROTOCOLS[slug].cleaned_settings(SimpleNamespace(settings=without))
            assert is_same(cleaned[name], value), (slug, name)
            checked.add((slug, name))
        # Reading the settings adds nothing to what the hash covers.
        before = json.dumps(settings, sort_keys=True)
        PROTOCOLS[slug].cleaned_settings(SimpleNamespace(settings=settings))
        assert json.dumps(settings, sort_keys=True) == before
    # The stored site is older than best-worst.
    assert {slug for slug, _ in checked} == {slug for slug, one in PROTOCOLS.items() if one.settings_form} - {
        "best_worst"
    }
