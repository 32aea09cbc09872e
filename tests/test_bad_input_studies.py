"""What researchers' forms, lists and files may hold: each case ends in words that name the field or row, or in what was meant.

What the tests beside each page and importer try already is not tried again.
"""

import gzip
import re
from datetime import UTC, datetime

import pytest
from django import forms
from django.contrib import admin
from django.core.cache import cache
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.validators import MaxValueValidator
from django.db import models
from django.test import Client
from django.urls import get_resolver, reverse

from annotators.models import Annotator, Assignment, Exclusion, Recruitment
from annotators.places.tries import try_out
from studies.design.definition import canonical, design_of
from studies.imports.bundle import BundleRefused, bundle_of, bundle_text, read_bundle
from studies.imports.tables import Options, import_file, import_job
from studies.models import (
    Arm,
    Batch,
    Contrast,
    ExclusionRule,
    Item,
    Output,
    Placement,
    Prompt,
    Question,
    Section,
    Study,
    System,
    rules,
)
from studies.services import jobs, lifecycle
from tests import builders, players
from tests.admin_pages import changed, errors_of, form_of, logged_in, study_url
from tests.test_urls import addresses, filled, world  # noqa: F401 - a fixture

from .analysis.api.rest import api_of
from .studies.imports.files import BAD_FILES, HEAD, IMAGE_ROW, rows_of, table, zipped
from .studies.stimuli.png import png_with_size

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner():
    return builders.user("olga")


@pytest.fixture
def client(owner):
    return logged_in(owner)


@pytest.fixture
def study(owner):
    return builders.spa_draft(
        owner=owner,
        with_surveys=False,
        with_rating=False,
        prompts=5,
        rules=[("incoherent", {"tau": 1.1}), ("too_fast", {"share": 0.5})],
    )


@pytest.fixture
def small(owner):
    """A draft without a section: its page is drawn in no time."""
    return builders.draft_study(owner=owner, systems=("alpha", "beta"), prompts=2)


def address_of(row) -> str:
    return f"/admin/{row._meta.app_label}/{row._meta.model_name}/{row.pk}/change/"


def save(client, row, **changes):
    address = address_of(row)
    return client.post(address, changed(form_of(client.get(address), f"{row._meta.model_name}_form"), **changes))


def saved(client, row, **changes) -> None:
    response = save(client, row, **changes)
    assert response.status_code == 302, errors_of(response)


def refused(client, row, said, **changes) -> None:
    """The form comes back with these words, and what is stored is what was."""
    before = type(row).objects.filter(pk=row.pk).values().get()
    response = save(client, row, **changes)
    assert response.status_code == 200 and said in errors_of(response), errors_of(response)
    assert type(row).objects.filter(pk=row.pk).values().get() == before


# Names

NAMES = {
    "empty": ("", "required"),
    "blank": ("   ", "required"),
    "zero width": ("\u200b\u200d", "nothing in it can be seen"),
    "marks alone": ("\u0301\u0302", "nothing in it can be seen"),
    "NUL": ("a\x00b", "Null characters"),
    "control character": ("a\x07b", "control character (U+0007) at character 2"),
    "zero width within": ("al\u200bpha", "invisible character (U+200B) at character 3"),
    "turned around": ("a\u202eb", "invisible character (U+202E) at character 2"),
    "two lines": ("a\nb", "invisible character (U+000A)"),
    "line separator": ("a\u2028b", "invisible character (U+2028)"),
    "10,000 characters": ("n" * 10_000, "characters (it has 10000)"),
}


@pytest.mark.parametrize(("name", "said"), NAMES.values(), ids=NAMES)
def test_a_name_is_one_line_that_can_be_seen(client, small, name, said):
    before = canonical(design_of(small))
    response = save(client, small, **{"title": name, "systems-0-name": name, "arms-0-name": name})
    assert response.status_code == 200 and errors_of(response).count(said) == 3, errors_of(response)
    assert canonical(design_of(Study.objects.get(pk=small.pk))) == before
    refused(client, small.prompts.first(), said, key=name)


@pytest.mark.parametrize("name", ["P000", "ｐ000", " p000 ", "p000"], ids=["case", "width", "blanks", "the same"])
def test_a_prompts_key_that_reads_like_anothers_is_refused(client, small, name):
    refused(client, small.prompts.get(key="p001"), "another prompt with this key: “p000”", key=name)


def test_keys_of_questions_and_links_that_differ_only_in_case_are_refused(client, study):
    section = study.sections.get(protocol="spa")
    keys = {"questions-0-key": "better", "questions-1-key": "Better"}
    refused(client, section, "Another question of this section has the key “better”", **keys)
    one, other = builders.panel(study, key="autumn"), builders.panel(study)
    refused(client, other, "key already exists", key="AUTUMN")
    saved(client, one, key="Autumn")  # its own


def test_names_are_stored_composed_and_without_blanks_around_them(client, small):
    saved(client, small, **{"systems-0-name": "  cafe\u0301 "})
    assert System.objects.filter(study=small, name="caf\u00e9").exists()


TRADES = {
    "names of systems": ("systems", ["name"], lambda s: s.systems.order_by("pk").values_list("name", flat=True)),
    "names of arms": ("arms", ["name"], lambda s: s.arms.order_by("pk").values_list("name", flat=True)),
    "rules": ("exclusion_rules", ["rule"], lambda s: s.exclusion_rules.order_by("pk").values_list("rule", flat=True)),
    "comparisons": ("contrasts", ["x", "y"], lambda s: s.contrasts.order_by("pk").values_list("x__name", "y__name")),
}


@pytest.mark.parametrize(("rows", "columns", "stored"), TRADES.values(), ids=TRADES)
def test_two_rows_may_trade_what_each_has_for_itself_alone(client, study, rows, columns, stored):
    Arm.objects.create(study=study, name="second")
    before = list(stored(study))
    form = form_of(client.get(study_url(study)), "study_form")
    saved(client, study, **{f"{rows}-{n}-{c}": form[f"{rows}-{1 - n}-{c}"] for n in (0, 1) for c in columns})
    assert list(stored(study)) == [before[1], before[0], *before[2:]]


def test_two_questions_trade_keys_and_a_new_name_may_be_that_of_a_row_that_goes(client, study):
    section = study.sections.get(protocol="spa")
    keys = list(section.questions.order_by("pk").values_list("key", flat=True))
    saved(client, section, **{"questions-0-key": keys[1], "questions-1-key": keys[0]})
    assert list(section.questions.order_by("pk").values_list("key", flat=True)) == [keys[1], keys[0], *keys[2:]]
    # The key of the first, which goes, is that of the second from now on.
    saved(client, section, **{"questions-0-DELETE": "on", "questions-1-key": keys[1]})
    assert list(section.questions.order_by("pk").values_list("key", flat=True)) == keys[1:]


# Numbers and times

WHOLE = {"٣": 3, "３": 3, "3.0": 3, "+3": 3, " 3 ": 3, "3\n": 3, "\u00a03": 3, "007": 7, "-0": 0, "0_3": 3}
NO_WHOLE = ["3.5", "3,0", "1e1", "0x3", "³", "NaN", "inf", "9" * 5000, "three", "3\x00"]


@pytest.mark.parametrize("typed", WHOLE, ids=ascii)
def test_a_whole_number_is_stored_as_one_however_it_is_spelled(client, small, typed):
    link = builders.panel(small)
    saved(client, link, wanted=typed)
    link.refresh_from_db()
    assert link.wanted == WHOLE[typed]


@pytest.mark.parametrize("typed", NO_WHOLE, ids=lambda text: ascii(text)[:12])
def test_what_is_no_whole_number_is_refused(client, small, typed):
    refused(client, builders.panel(small), "Enter a whole number", wanted=typed)
    refused(client, builders.recruitment(small, "invitation"), "Enter a whole number", **{"settings-people": typed})


DECIMALS = {"-0": "0.00", "1e1": "10.00", "٣": "3.00", ".5": "0.50", " 2 ": "2.00"}
NO_DECIMALS = ["NaN", "sNaN", "-NaN", "Infinity", "1e309", "1,1", "1.1.1", "1e-9", "0x1", "9" * 5000]


@pytest.mark.parametrize("typed", DECIMALS, ids=ascii)
def test_money_has_no_sign_and_no_exponent_once_it_is_stored(client, small, typed):
    link = builders.panel(small)
    saved(client, link, reward=typed)
    link.refresh_from_db()
    assert str(link.reward) == DECIMALS[typed]


@pytest.mark.parametrize("typed", NO_DECIMALS, ids=lambda text: ascii(text)[:12])
def test_what_is_no_money_is_refused(client, small, typed):
    is_long = typed in ("1e309", "1e-9", "9" * 5000)
    refused(client, builders.panel(small), "no more than" if is_long else "Enter a number", reward=typed)


TAUS = {
    "-1": "greater than or equal to 0", "-0.1": "greater than or equal to 0", "2.1": "less than or equal to 2", "1e309": "less than or equal to 2",
    "٣": "less than or equal to 2", "NaN": "Enter a number", "inf": "Enter a number", "-inf": "Enter a number", "1,1": "Enter a number",
    "1.1.1": "Enter a number", "tau": "Enter a number", "": "required", "9" * 5000: "less than or equal to 2",
}  # fmt: skip


@pytest.mark.parametrize("tau", TAUS, ids=lambda text: ascii(text)[:12])
def test_a_tau_that_is_none_is_refused(tau):
    form = rules.REGISTRY["incoherent"].settings_form({"tau": tau})
    assert TAUS[tau] in str(form.errors["tau"])


def test_a_tau_is_refused_in_its_cell_and_stored_as_a_number_without_a_sign(client, study):
    for typed, stored in (("1.2", 1.2), ("-0", 0.0)):
        saved(client, study, **{"exclusion_rules-0-parameters-tau": typed})
        settings = study.exclusion_rules.get(rule="incoherent").settings
        assert str(settings["tau"]) == str(stored)
    for typed, said in (("1,1", "Enter a number"), ("2.1", "less than or equal to 2")):
        response = save(client, study, **{"exclusion_rules-0-parameters-tau": typed})
        assert response.status_code == 200 and said in errors_of(response)
    assert study.exclusion_rules.get(rule="incoherent").settings == settings


BURDENS = {
    "m 0": (lambda s: s.sections.filter(protocol="spa").update(m=0), "Annotators must see at least one prompt", "m"),
    "more than prompts": (lambda s: s.sections.filter(protocol="spa").update(m=13), "A batch needs 13 prompts", "prompts"),
    "no system": (lambda s: (_no_stimuli(s), s.systems.all().delete()), "There are no systems", "systems"),
    "one system": (lambda s: (_no_stimuli(s), s.systems.exclude(name="alpha").delete()), "There is 1 system", "systems"),
}  # fmt: skip


def _no_stimuli(study):
    study.contrasts.all().delete()
    for section in study.sections.all():
        section.questions.all().delete()
    Output.objects.filter(system__study=study).delete()


@pytest.mark.parametrize(("change", "said", "field"), BURDENS.values(), ids=BURDENS)
def test_what_no_batch_can_be_drawn_from_stands_in_the_checklist_and_stops_the_launch(
    client, study, change, said, field
):
    change(study)
    found = {problem.text: problem.field for problem in lifecycle.problems(study)}
    assert any(said in text and where == field for text, where in found.items()), found
    assert said in client.get(study_url(study)).content.decode()
    response = client.post(study_url(study, "launch/"))
    assert response.status_code == 422 and said in errors_of(response)


MOMENTS = {
    "2026-03-29T02:30": datetime(2026, 3, 29, 2, 30, tzinfo=UTC),  # in no clock of Berlin
    "2026-10-25T02:30": datetime(2026, 10, 25, 2, 30, tzinfo=UTC),  # twice there
    "2028-02-29T00:00": datetime(2028, 2, 29, tzinfo=UTC),
}


# One way over what a column may hold, by the form, by the REST interface and by a bundle.
OVER_LIMITS = {
    "reward": ("-0.01", "greater than or equal to 0"),
    "wage_per_hour": ("-1", "greater than or equal to 0"),
    "minutes": (1441, "less than or equal to 1440"),
    "target_n": (1_000_001, "less than or equal to 1000000"),
    "target_cap": (2**31, "less than or equal to 1000000"),
    "start_window_seconds": (604_801, "less than or equal to 604800"),
    "idle_seconds": (2**31, "less than or equal to 2592000"),
    "grace_seconds": (2**31, "less than or equal to 2592000"),
    "erase_after_days": (3651, "less than or equal to 3650"),
    "annotators_per_batch": (32_768, "less than or equal to 32767"),
    "batches_per_annotator": (32_768, "less than or equal to 32767"),
    "language": ("en_GB!", "language tag"),
    "currency": ("€", "Three letters"),
}


@pytest.mark.parametrize(
    ("field", "value", "said"), [(name, *rest) for name, rest in OVER_LIMITS.items()], ids=OVER_LIMITS
)
def test_an_amount_beyond_its_limit_is_told_wherever_it_comes_from(client, owner, study, field, value, said):
    response = save(client, study, **{field: str(value)})
    assert response.status_code == 200 and said in errors_of(response)
    answer = api_of(owner).patch(f"studies/{study.code}/", {field: value})
    told = {each["field"]: each["message"] for each in answer.json()["errors"]}
    assert answer.status_code == 400 and said in told[field]
    bundle = bundle_of(study) | {"exclusion_rules": []}
    bundle["study"][field] = value
    with pytest.raises(BundleRefused, match=f"study.{field}: .*{said}"):
        read_bundle(bundle, owner)


ROWS_OVER_LIMITS = [
    ("arms", "reward", "-1", "greater than or equal to 0"),
    ("arms", "wanted", 1_000_001, "less than or equal to 1000000"),
    ("arms", "minutes", 1441, "less than or equal to 1440"),
    ("sections", "position", 32_768, "less than or equal to 32767"),
    ("prompts", "language", "english please", "language tag"),
    ("outputs", "language", "en\n", "language tag"),
    ("outputs", "sample", 32_768, "less than or equal to 32767"),
    ("items", "number", 1_000_000_000, "less than or equal to 999999999"),
    ("batches", "number", 1_000_000_000, "less than or equal to 999999999"),
    ("batches", "wanted", 32_768, "less than or equal to 32767"),
]


@pytest.mark.parametrize(("part", "field", "value", "said"), ROWS_OVER_LIMITS)
def test_a_bundle_with_an_amount_beyond_its_limit_is_refused(owner, study, part, field, value, said):
    spa = study.sections.get(protocol="spa")
    item = Item.objects.create(
        study=study, section=spa, number=1, prompt=study.prompts.first(), kind=Item.Kind.TEST, content="x"
    )
    batch = Batch.objects.create(study=study, arm=study.arms.get(), number=0, origin=Batch.Origin.IMPORTED)
    Placement.objects.create(batch=batch, item=item, number=0)
    bundle = bundle_of(study) | {"exclusion_rules": []}
    bundle[part][0][field] = value
    with pytest.raises(BundleRefused, match=rf"{part}\[0\].{field}: .*{said}"):
        read_bundle(bundle, owner)


@pytest.mark.parametrize("kind", ["prompts", "outputs"])
def test_a_language_that_is_none_is_told_by_the_rest_interface(owner, study, kind):
    row = (
        {"key": "new", "text": "One."}
        if kind == "prompts"
        else {"system": "alpha", "prompt": "p000", "sample": 1, "text": "One."}
    )
    answer = api_of(owner).post(f"studies/{study.code}/{kind}/", [row | {"language": "en_GB!"}])
    assert answer.status_code == 400 and "language tag" in answer.content.decode()


@pytest.mark.postgres
def test_every_number_that_people_give_has_a_limit_that_each_database_holds():
    limits = {
        models.PositiveSmallIntegerField: 32_767,
        models.PositiveIntegerField: 2**31 - 1,
        models.PositiveBigIntegerField: 2**63 - 1,
    }
    given = [Study, Arm, Section, Question, ExclusionRule, Prompt, Output, Item, Batch, Recruitment]
    fields = [f for model in given for f in model._meta.concrete_fields if type(f) in limits and f.editable]
    assert len(fields) > 20
    without = [
        f
        for f in fields
        if not any(v.limit_value <= limits[type(f)] for v in f._validators if isinstance(v, MaxValueValidator))
    ]
    # How many places of a batch are taken is counted, never given.
    assert [str(f) for f in without] == ["studies.Batch.claimed"]


@pytest.mark.parametrize("typed", MOMENTS)
def test_times_are_utc_and_know_no_summer(client, study, typed):
    link = builders.panel(study)
    saved(client, link, opens_at=typed)
    link.refresh_from_db()
    assert link.opens_at == MOMENTS[typed]


NO_LINKS = {
    "pay below 0": ({"reward": "-1"}, "greater than or equal to 0"),
    "wants more than a million": ({"wanted": "1000001"}, "less than or equal to 1000000"),
    "no currency": ({"currency": "€"}, "Three letters"),
    "no such day": ({"opens_at": "2026-02-29T10:00"}, "valid date/time"),
    "year 99999": ({"opens_at": "99999-01-01T00:00"}, "valid date/time"),
    "no time": ({"opens_at": "٢٠٢٦"}, "valid date/time"),
    "closes as it opens": ({"opens_at": "2026-05-01T10:00", "closes_at": "2026-05-01T10:00"}, "close after it opens"),
    "wants 1e309": ({"wanted": "1e309"}, "whole number"),
    "script": ({"settings-return_complete": "javascript:alert(1)"}, "begins with https"),
    "no scheme": ({"settings-return_complete": "//evil.example.org"}, "begins with https"),
    "http": ({"settings-return_complete": "http://a.example.org"}, "begins with https"),
    "somebody at": ({"settings-return_complete": "https://a@b.example.org/x"}, "names a host"),
    "open bracket": ({"settings-return_complete": "https://[::1"}, "names a host"),
    "no host": ({"settings-return_complete": "https:///x"}, "names a host"),
    "words of a policy": ({"settings-return_complete": "https://a.example.org;script-src *"}, "names a host"),
    "a comma": ({"settings-return_complete": "https://a.example.org,b.example.org/x"}, "names a host"),
    "a letter no header holds": ({"settings-return_complete": "https://\u0430.example.org/x"}, "names a host"),
    "a tab": ({"settings-return_complete": "https://a.example.org/\tx"}, "names a host"),
    "a backslash": ({"settings-return_complete": "https://a.example.org\\x"}, "names a host"),
    "the visitor's host": ({"settings-return_complete": "https://{person}.example.org"}, "cannot come from"),
    "a secret without its name": ({"settings-key_value": "s3cret"}, "The parameter and its secret"),
    "a name without its secret": ({"settings-key_parameter": "key"}, "the parameter and its secret"),
}


@pytest.mark.parametrize(("changes", "said"), NO_LINKS.values(), ids=NO_LINKS)
def test_settings_of_a_link_that_lead_nowhere_are_refused(client, study, changes, said):
    link = builders.panel(study)
    said = re.compile(re.escape(said), re.IGNORECASE)
    before = Recruitment.objects.filter(pk=link.pk).values().get()
    response = save(client, link, **changes)
    assert response.status_code == 200 and said.search(errors_of(response)), errors_of(response)
    assert Recruitment.objects.filter(pk=link.pk).values().get() == before


@pytest.mark.parametrize(
    "address", ["https://panel.example.org/done?cc=C1&s={session}", "HTTPS://a.b:8443", "https://xn--80ak6aa92e.com/#x", "C1-{code}"],
)  # fmt: skip
def test_a_way_back_that_leads_somewhere_is_taken(client, study, address):
    saved(client, builders.panel(study), **{"settings-return_complete": address})


STIMULI = {
    "a language that is none": (Prompt, {"language": "english!"}, "language tag"),
    "another's language that is none": (Output, {"language": "e"}, "language tag"),
    "a hidden domain": (Prompt, {"domain": "ne\u200bws"}, "invisible character"),
    "NUL": (Prompt, {"text": "a\x00b"}, "Null characters"),
    "control character": (Output, {"text": "a\x1bb"}, "control character (U+001B)"),
    "nothing": (Output, {"text": ""}, "exactly one of them"),
    "nothing that is seen": (Output, {"text": "\u200b \u200d"}, "exactly one of them"),
    "empty beside a text": (Output, {"is_empty": "on"}, "exactly one of them"),
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


@pytest.mark.parametrize(("changes", "said"), MANAGEMENT.values(), ids=MANAGEMENT)
def test_a_form_that_the_page_did_not_make_stores_nothing(client, study, changes, said):
    before = canonical(design_of(study))
    response = save(client, study, **changes)
    assert response.status_code == 200 and said in errors_of(response), errors_of(response)
    assert canonical(design_of(Study.objects.get(pk=study.pk))) == before


def test_more_rows_than_a_request_may_have_are_refused_with_the_number_and_none_is_saved(client, study, settings):
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 1000
    rows = {f"systems-{n}-name": f"system {n}" for n in range(3, 1004)} | {"systems-TOTAL_FORMS": "1004"}
    response = save(client, study, **rows)
    words = response.content.decode()
    assert response.status_code == 400 and "More than 1,000 fields were sent at once" in words
    assert "Nothing of it is saved" in words and study.systems.count() == 3


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
    chosen = {"action": "exclude_chosen", "_selected_action": [made[0].pk], "select_across": "1"}
    response = client.post(f"/admin/annotators/assignment/?study={study.pk}", chosen, follow=True)
    assert "at most 1000 at a time" in errors_of(response) and not Exclusion.objects.exists()


def test_a_system_with_outputs_is_not_deleted_and_one_with_answers_cannot_be(client, study):
    response = save(client, study, **{"systems-0-DELETE": "on"})
    assert "protected" in errors_of(response) and study.systems.count() == 3
    form = form_of(client.get(study_url(study)), "study_form")
    builders.launched(study)
    players.submitted(study, "1")
    client.post(study_url(study), changed(form, **{"systems-0-DELETE": "on", "_seen": None}))
    assert study.systems.count() == 3 and Study.objects.get(pk=study.pk).contrasts.count() == 2


def test_the_protocol_of_a_section_is_never_another_and_after_launch_nothing_is(client, study, owner):
    section = study.sections.get(protocol="spa")
    try_out(study, owner)  # a first answer may hang on it
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


# Lists and addresses

LISTS = ("studies/study", "studies/prompt", "studies/output", "studies/job", "studies/auditevent", "annotators/assignment",
         "annotators/recruitment", "analysis/apitoken", "analysis/analysisrun")  # fmt: skip
NOT_OFFERED = (
    "id__in=a", "id=1", "pk=1", "study__owner__password__startswith=a", "study__title__contains=s", "at__year=99999", "at__year=0",
    "created_at__gte=x", "seed=7", "user__password=x", "study__id__exact=99999999999999999999", "%00=1", "text__contains=a",
)  # fmt: skip
ODD_VALUES = (
    "q=%00", "q=%ED%A0%80", "q=" + "a" * 5000, "o=99", "o=-99.x", "o=" + "9" * 5000, "p=-1", "p=abc", "p=" + "9" * 5000, "e=1", "_popup=x",
    "_to_field=password", "all=", "_facets=x", "study=%00", "study=٣", "study=-1", "study=99999", "study=99999999999999999999",
    "study=1&study=2", "state=nonsense", "role=%00", "arm=99999999999999999999", "recruitment=x", "verb=%00", "format__exact=%00",
    "is_empty__exact=2", "origin__exact=%00", "channel__exact=x", "scope__exact=x",
)  # fmt: skip


@pytest.fixture
def administrator(study):
    return logged_in(builders.user("root", is_superuser=True))


@pytest.mark.parametrize("page", LISTS)
def test_a_list_is_filtered_by_what_it_offers_and_by_nothing_else(administrator, study, page):
    got = {query: administrator.get(f"/admin/{page}/?{query}").status_code for query in NOT_OFFERED}
    assert got == dict.fromkeys(NOT_OFFERED, 400)
    builders.launched(study)
    players.submitted(study, "1", recruitment=builders.panel(study))
    html = administrator.get(f"/admin/{page}/").content.decode()
    sidebar = html.partition('id="changelist-filter"')[2]
    offered = [one.replace("&amp;", "&") for one in re.findall(r'href="(\?[^"]*)"', sidebar)]
    assert bool(offered) == (page not in ("analysis/apitoken",))
    assert {one: administrator.get(f"/admin/{page}/{one}").status_code for one in offered} == dict.fromkeys(
        offered, 200
    )


@pytest.mark.parametrize("page", LISTS)
def test_a_list_bears_every_value(administrator, page):
    got = {query: administrator.get(f"/admin/{page}/?{query}").status_code for query in ODD_VALUES}
    assert {query: status for query, status in got.items() if status not in (200, 302, 400)} == {}


ODD_IDS = {
    "int": ("0", "99999999999999999999", "9223372036854775808"),
    "path": ("%00", "99999999999999999999", "_5F", "abc", "1/2", "-1", "%ED%A0%80", "9" * 5000, "1%00", "%D9%A3"),
    "str": ("%00", "x" * 3000, "%ED%A0%80"),
    "uuid": ("00000000-0000-0000-0000-000000000000",),
    "slug": ("x" * 3000, "-"),
}


def test_no_id_of_any_address_breaks_its_page(world, monkeypatch):  # noqa: F811 - the fixture
    """Every address of the site with every kind of id that it takes, as an administrator, who is kept from nothing."""
    monkeypatch.setattr("analysis.api.permissions.limit_of", lambda scope: 100_000)
    client = Client(raise_request_exception=False)
    client.force_login(world["people"]["administrator"])
    got = {}
    for route in set(addresses(get_resolver())):
        for kind, part in re.findall(r"(<(?:int|path|str|uuid|slug):\w+>)", route) and re.findall(
            r"(<(\w+):\w+>)", route
        ):
            kind, part = part, kind
            for odd in ODD_IDS[kind]:
                address = filled(route.replace(part, "{odd}"), world).replace("{odd}", odd)
                got[address] = client.get(address).status_code
    assert len(got) > 150
    assert {address[:120]: status for address, status in got.items() if status not in (200, 302, 403, 404, 405)} == {}
    cache.clear()


# Files


@pytest.fixture
def editor(client, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    return client


@pytest.fixture
def shelf(owner):
    """A draft that holds nothing but two systems."""
    return builders.draft_study(owner=owner, systems=("ada", "bo"), prompts=0)


def text_of(response) -> str:
    words = re.sub(r"<[^>]+>", " ", response.content.decode())
    return " ".join(words.replace("&#x27;", "'").replace("&quot;", '"').replace("&amp;", "&").split())


@pytest.mark.parametrize(
    ("data", "name", "row", "said"), [case[1:] for case in BAD_FILES], ids=[case[0] for case in BAD_FILES]
)
def test_a_bad_file_is_told_on_the_page_with_its_row(editor, shelf, data, name, row, said):
    before = rows_of(shelf)
    sent = {"file": SimpleUploadedFile(name, data or b"")}
    response = editor.post(reverse("import", args=[shelf.code]), sent, follow=True)
    assert response.status_code == (200 if data else 400)
    words = text_of(response)
    assert said in words and "Write it into the study" not in words
    assert row is None or re.search(rf"Row Column What is wrong .*\b{row:,}\b", words) or f"line {row}" in words, words[
        :800
    ]
    assert rows_of(shelf) == before


SAME_KEYS = {
    "composed": ("caf\u00e9", "cafe\u0301"), "blanks": ("p1", " p1 "),
}  # fmt: skip
ODD_CELLS = {
    "next line": ("a\x85b", False), "line separator": ("a\u2028b", True), "direction": ("\u202eabc\u202c", True), "marks": ("Z\u0351\u0352", True),
    "template": ("{{ 7*7 }}{% x %}", True), "formula": ("=1+1", True), "None": ("None", True), "NA": ("NA", True), "form feed": ("a\x0cb", False),
    "zero width alone": ("\u200b", False), "an unpaired half": ("\ufffd", True),
}  # fmt: skip


@pytest.fixture
def put(shelf, tmp_path):
    def imported(data, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(data)
        return import_file(shelf, path, options=Options(), by=None)

    return imported


@pytest.mark.parametrize("keys", SAME_KEYS.values(), ids=SAME_KEYS)
def test_keys_that_are_one_are_one_prompt(shelf, put, keys):
    one, other = keys
    report = put((HEAD + f"{one},P,ada,One.\n{other},P,bo,Two.\n").encode())
    assert report.is_written and Output.objects.filter(system__study=shelf, prompt__key=one).count() == 2
    report = put((HEAD + f"{other},P,ada,Another.\n").encode())
    assert "other content" in str(report.problems.first[0])


@pytest.mark.parametrize(("cell", "is_taken"), ODD_CELLS.values(), ids=ODD_CELLS)
def test_a_cell_is_stored_as_it_stands_or_named(shelf, put, cell, is_taken):
    report = put(table([{"prompt_key": "new", "prompt_text": "P", "system": "ada", "text": cell}]))
    assert report.is_written is is_taken
    if is_taken:
        assert Output.objects.get(prompt__key="new").text == cell
    else:
        (problem,) = report.problems
        assert (problem.row, problem.column) == (2, "text") and not shelf.prompts.filter(key="new").exists()


def test_a_picture_that_would_fill_the_memory_is_named_by_its_row(shelf, put):
    row = IMAGE_ROW | {"system": "ada", "prompt_key": "new"}
    report = put(zipped({"t.csv": table([row]), "a.png": png_with_size(25_000, 25_000)}), "t.zip")
    (problem,) = report.problems
    assert (problem.row, problem.column) == (2, "image") and "pixels allowed" in problem.text
    assert not report.is_written and not shelf.prompts.filter(key="new").exists()


def test_an_import_for_which_the_memory_does_not_suffice_is_told_and_undone(editor, shelf, monkeypatch):
    """A worker whose memory is limited gets this error where it would have needed more."""
    from studies.imports.tables import writing

    def no_memory(*_):
        raise MemoryError

    monkeypatch.setattr(import_job, "SMALL_BYTES", 10)
    before = rows_of(shelf)
    sent = {"file": SimpleUploadedFile("t.csv", (HEAD + "new,P,ada,One.\n").encode())}
    page = editor.post(reverse("import", args=[shelf.code]), sent).url
    assert jobs.run_waiting() == 1
    editor.post(page, {"confirm": "1"})
    with monkeypatch.context() as scarce:
        scarce.setattr(writing, "_change_outputs", no_memory)
        assert jobs.run_waiting() == 1
    assert "MemoryError" in text_of(editor.get(page)) and rows_of(shelf) == before
    editor.post(reverse("import", args=[shelf.code]), sent | {"file": SimpleUploadedFile("t.csv", b"prompt_key\nx\n")})
    assert jobs.run_waiting() == 1


BUNDLES = {
    "UTF-16": (lambda text: text.encode("utf-16"), "not UTF-8"),
    "Latin-1": (lambda text: text.replace("Take your time", "\xe9").encode("latin-1"), "not UTF-8"),
    "gzip": (lambda text: gzip.compress(text.encode(), mtime=0), "not UTF-8"),
    "zip": (lambda text: zipped({"a.png": b"x"}), "not UTF-8"),
    "empty": (lambda text: b"", "empty"),
    "blank": (lambda text: b" \n", "empty"),
    "null": (lambda text: b"null", "one JSON object"),
    "a text": (lambda text: b'"x"', "one JSON object"),
    "cut off": (lambda text: text.encode()[:-20], "The file is not JSON at line"),
    "twice": (lambda text: text.encode() * 2, "The file is not JSON at line"),
    "surrogate": (lambda text: text.replace("Take your time", "\\ud800").encode(), "study.instructions: holds half of a surrogate"),
    "NUL": (lambda text: text.replace("Take your time", "\\u0000").encode(), "study.instructions: holds a NUL"),
    "NaN": (lambda text: text.replace('"seed": 7', '"seed": NaN').encode(), "study.seed: holds NaN, which is no number"),
    "deep": (lambda text: b"[" * 100_000, "levels deep"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "said"), BUNDLES.values(), ids=BUNDLES)
def test_a_bundle_that_is_none_is_told_on_the_page_and_makes_no_study(editor, study, data, said):
    sent = {"file": SimpleUploadedFile("b.json", data(bundle_text(study)))}
    response = editor.post(reverse("bundle_upload"), sent)
    assert response.status_code == 400 and said in text_of(response) and Study.objects.count() == 1


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"manner": "characters", "limit": "1000000000"}, "less than or equal to"),
        ({"manner": "characters", "limit": "9" * 5000}, "whole number"),
        ({"manner": "\x00"}, "not one of the available choices"),
        ({"manner": "none", "ends": "x"}, "not one of the available choices"),
        ({"manner": "none", "minimum_words": "-1"}, "greater than or equal to 0"),
        ({"manner": "longest_of_others", "trimmed": ["\x00"]}, "not one of the available choices"),
        ({}, "required"),
    ],
)  # fmt: skip
def test_a_preparation_that_cannot_be_is_refused(editor, study, sent, said):
    address = reverse("import_preparation", args=[study.code])
    response = editor.post(address, {"ends": "whole", "act": "look"} | sent)
    assert response.status_code == 400 and said in text_of(response)
    assert not Contrast.objects.filter(study=study, criterion=said).exists()
