"""A form that the page did not make stores nothing."""

import pytest
from django import forms
from django.contrib import admin
from django.urls import get_resolver

from annotators.models import Annotator, Assignment, Exclusion
from annotators.places.batch_plan import start_test_run
from studies.design.serialization import canonical_json, serialize_design
from studies.models import Output, Prompt, Section, Study
from tests import builders, players
from tests.admin_pages import changed, errors_of, form_of, study_url
from tests.bad_input.studies.forms import address_of, refused, save, saved

pytestmark = pytest.mark.django_db


STIMULI = {
    "a language that is none": (Prompt, {"language": "english!"}, "language tag"),
    "another's language that is none": (Output, {"language": "e"}, "language tag"),
    "a hidden domain": (Prompt, {"domain": "ne\u200bws"}, "invisible character"),
    "NUL": (Prompt, {"text": "a\x00b"}, "Null characters"),
    "control character": (Output, {"text": "a\x1bb"}, "control character (U+001B)"),
    "nothing": (Output, {"text": ""}, "exactly one of these"),
    "nothing that is seen": (Output, {"text": "\u200b \u200d"}, "exactly one of these"),
    "empty beside a text": (Output, {"is_empty": "on"}, "exactly one of these"),
    "format unknown": (Output, {"format": "html"}, "not one of the available choices"),
    "description too long": (Output, {"alt": "x" * 301}, "at most 300"),
}


@pytest.mark.parametrize(("model", "changes", "said"), STIMULI.values(), ids=STIMULI)
def test_a_stimulus_that_cannot_be_is_refused(client, study, model, changes, said):
    refused(client, model.objects.first(), said, **changes)


# Whole forms

MANAGEMENT = {
    "a row of nobody": ({"systems-0-id": "999999"}, "correct the error"),
    "a row that is a word": ({"systems-0-id": "abc"}, "correct the error"),
    "a row far away": ({"systems-0-id": "9" * 30}, "correct the error"),
    "no count": ({"systems-TOTAL_FORMS": None}, "tampered"),
    "a rule of nobody": ({"exclusion_rules-0-rule": "nonsense"}, "not one of the available choices"),
    "a rule twice": ({"exclusion_rules-1-rule": "incoherent"}, "duplicate data for rule"),
    "a system of nobody in an arm": ({"arms-0-shown_systems": ["999999"]}, "not one of the available choices"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("changes", "said"), MANAGEMENT.values(), ids=MANAGEMENT)
def test_a_form_that_the_page_did_not_make_stores_nothing(client, study, changes, said):
    before = canonical_json(serialize_design(study))
    response = save(client, study, **changes)
    assert response.status_code == 200 and said in errors_of(response), errors_of(response)
    assert canonical_json(serialize_design(Study.objects.get(pk=study.pk))) == before


def test_more_rows_than_a_request_may_have_are_refused_with_the_number_and_none_is_saved(client, study, settings):
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 1000
    rows = {f"systems-{n}-name": f"system {n}" for n in range(3, 1004)} | {"systems-TOTAL_FORMS": "1004"}
    response = save(client, study, **rows)
    words = response.content.decode()
    assert response.status_code == 400 and "The request had more than 1,000 fields" in words
    assert "Nothing of it is saved" in words and study.systems.count() == 3


@pytest.mark.slow
def test_more_rows_than_a_form_takes_are_refused_with_the_number(client, study, monkeypatch):
    monkeypatch.setattr("django.forms.formsets.DEFAULT_MAX_NUM", 5)  # 1000, which take seconds to draw
    refused(client, study, "at most 5 forms", **{"systems-TOTAL_FORMS": "5000"})
    assert study.systems.count() == 3


def test_an_act_on_more_rows_than_it_takes_says_so(client, study):
    study = builders.launched(study)
    design, batch = study.designs.get(), study.batches.first()
    people = Annotator.objects.bulk_create(Annotator(pool="many", external_id=str(n)) for n in range(1001))
    made = Assignment.objects.bulk_create(
        Assignment(study=study, batch=batch, annotator=one, design=design, ordinal=1) for one in people
    )
    chosen = {"action": "render_exclusion_form", "_selected_action": [made[0].pk], "select_across": "1"}
    response = client.post(f"/admin/annotators/assignment/?study={study.pk}", chosen, follow=True)
    assert "at most 1000 assignments at a time" in errors_of(response) and not Exclusion.objects.exists()


@pytest.mark.slow
def test_a_system_with_outputs_is_not_deleted_and_one_with_answers_cannot_be(client, study):
    response = save(client, study, **{"systems-0-DELETE": "on"})
    assert "has outputs or is named in the design" in errors_of(response) and study.systems.count() == 3
    form = form_of(client.get(study_url(study)), "study_form")
    builders.launched(study)
    players.submitted(study, "1")
    client.post(study_url(study), changed(form, **{"systems-0-DELETE": "on", "_seen": None}))
    assert study.systems.count() == 3 and Study.objects.get(pk=study.pk).contrasts.count() == 2


def test_the_protocol_of_a_section_is_never_another_and_after_launch_nothing_is(client, study, owner):
    section = study.sections.get(protocol="spa")
    start_test_run(study, owner)  # a first answer may hang on it
    saved(client, section, protocol="rating", study="999999")
    section.refresh_from_db()
    assert (section.protocol, section.study_id) == ("spa", study.pk)
    opened = changed(form_of(client.get(address_of(section)), "section_form"), protocol="rating", m="2")
    builders.launched(study)
    assert client.post(address_of(section), opened).status_code == 403
    assert Section.objects.get(pk=section.pk).m == 4


def test_no_form_takes_json():
    """Django's own field for it takes NaN, and breaks on depth and on long numbers."""
    assert get_resolver().url_patterns  # every view, and with it every form, is imported
    found, waiting = set(), [forms.BaseForm]
    while waiting:
        form = waiting.pop()
        waiting.extend(form.__subclasses__())
        if form.__module__.startswith(("studies", "annotators", "analysis")):
            fields = getattr(form, "base_fields", {})
            found |= {f"{form.__name__}.{name}" for name, one in fields.items() if isinstance(one, forms.JSONField)}
    assert not found
    for model, page in admin.site._registry.items():
        shown = page.fields or ()
        written = {name for name in shown if name not in page.readonly_fields} - {"parameters", "design_sha256s"}
        columns = {field.name: field for field in model._meta.concrete_fields}
        kinds = {name: columns[name].get_internal_type() for name in written if name in columns}
        assert "JSONField" not in kinds.values(), (model, kinds)
