"""The study's page: defined, saved, refused with words, kept from two editors at once."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from studies.models import Contrast, ExclusionRule, Output, Section, Study, StudyMember, System
from tests import builders
from tests.admin_pages import changed, errors_of, form_of, logged_in, study_url

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner():
    return builders.user("olga")


@pytest.fixture
def client(owner):
    return logged_in(owner)


@pytest.fixture
def study(owner):
    return builders.spa_draft(owner=owner, with_surveys=False)


def page(client, study):
    return client.get(study_url(study))


def save(client, study, **changes):
    data = changed(form_of(page(client, study), "study_form"), **changes)
    return client.post(study_url(study), data, follow=True)


def test_who_creates_a_study_becomes_its_owner(client, owner):
    data = changed(form_of(client.get("/admin/studies/study/add/"), "study_form"), title="New", public_title="Reading")
    response = client.post("/admin/studies/study/add/", data, follow=True)
    study = Study.objects.get()
    assert response.status_code == 200 and "checklist" in response.content.decode()
    assert (study.owner, study.members.get().role, study.arms.get().name) == (owner, "owner", "all")


def test_a_save_is_counted_where_something_changed(client, study):
    """That an untouched form changes nothing at all is tested for every form in tests/test_untouched.py."""
    for public_title, version in (("Reading", 1), ("Reading", 1), ("Reading more", 2)):
        response = save(client, study, public_title=public_title)
        assert "Saved.</li>" in response.content.decode(), errors_of(response)
        study.refresh_from_db()
        assert (study.public_title, study.version) == (public_title, version)
    save(client, study, **{"systems-0-reference": "maximal"})
    study.refresh_from_db()
    assert study.version == 3


def test_the_checklist_leads_to_the_field_that_mends_it(client, study):
    Study.objects.filter(pk=study.pk).update(contact="", target_n=None)
    html = page(client, study).content.decode()
    assert f'href="{study_url(study)}#id_contact"' in html and 'id="id_contact"' in html
    assert "2 things are missing" in html and "Complete the design" in html


def test_a_problem_of_a_section_leads_to_the_sections_page(client, study):
    section = study.sections.get(protocol="spa")
    section.questions.first().delete()
    html = page(client, study).content.decode()
    assert f"/admin/studies/section/{section.pk}/change/#questions-group" in html


def test_the_burden_of_batches_is_shown_in_words_minutes_and_pay(client, study):
    html = page(client, study).content.decode()
    for words in ("smallest", "median", "largest", "Pay an hour"):
        assert words in html


def test_contrasts_systems_and_rules_are_written_on_the_page(client, study):
    alpha, gamma = study.systems.get(name="alpha"), study.systems.get(name="gamma")
    n = study.contrasts.count()
    new = {
        "contrasts-TOTAL_FORMS": n + 1, f"contrasts-{n}-x": alpha.pk, f"contrasts-{n}-y": gamma.pk,
        f"contrasts-{n}-expected": "<", f"contrasts-{n}-role": "secondary", f"contrasts-{n}-level": "0.05",
        "systems-TOTAL_FORMS": 4, "systems-3-name": "delta", "systems-3-is_human": "on",
    }  # fmt: skip
    response = save(client, study, **new)
    assert "Saved.</li>" in response.content.decode(), errors_of(response)
    assert Contrast.objects.get(study=study, x=alpha, y=gamma).expected == "<"
    assert System.objects.get(study=study, name="delta").is_human


def test_two_sections_change_places(client, study):
    spa, rating = study.sections.order_by("position")
    Section.objects.filter(pk=rating.pk).update(reuses=None)
    response = save(client, study, **{"sections-0-position": 2, "sections-1-position": 1})
    assert "Saved.</li>" in response.content.decode(), errors_of(response)
    assert list(study.sections.order_by("position").values_list("pk", "position")) == [(rating.pk, 1), (spa.pk, 2)]


def test_an_arm_keeps_its_systems(client, study):
    alpha = study.systems.get(name="alpha")
    save(client, study, **{"arms-0-shown_systems": [str(alpha.pk)]})
    assert list(study.arms.get().systems.all()) == [alpha]
    html = page(client, study).content.decode()
    assert f'name="arms-0-shown_systems" value="{alpha.pk}"' in html


def test_parameters_of_a_rule_are_fields_and_are_checked(client, study, monkeypatch):
    from django import forms

    from studies.models import rules

    class Parameters(forms.Form):
        tau = forms.FloatField(min_value=1, initial=1.1, label="tau")

    rule = rules.Rule("for_this_test", "Incoherent", lambda frame: None, Parameters)
    monkeypatch.setitem(rules.REGISTRY, "for_this_test", rule)
    row = ExclusionRule.objects.create(study=study, rule="for_this_test", settings={"tau": 1.3})
    html = page(client, study).content.decode()
    assert 'name="exclusion_rules-0-parameters-tau" value="1.3"' in html
    save(client, study, **{"exclusion_rules-0-parameters-tau": "1.2"})
    row.refresh_from_db()
    assert row.settings == {"tau": 1.2}
    for wrong in ("0", "-1", "NaN", "1e309", "1,1,1", "", "tau"):
        response = save(client, study, **{"exclusion_rules-0-parameters-tau": wrong})
        assert response.status_code == 200 and "look at these parameters" in errors_of(response), wrong
    row.refresh_from_db()
    assert row.settings == {"tau": 1.2}


# Bad input: each ends in words about the field, nothing is stored.

LONG = "n" * 10_000
BAD_COLUMNS = {
    "empty title": ({"title": ""}, "required"),
    "blank title": ({"title": "   "}, "required"),
    "zero-width title": ({"title": "\u200b\u200d"}, "can be seen"),
    "10k title": ({"title": LONG}, "at most 200 characters"),
    "NUL in a title": ({"title": "a\x00b"}, "Null characters"),
    "control character": ({"institution": "a\x07b"}, "control character"),
    "no language": ({"language": "en_GB!"}, "language tag"),
    "no currency": ({"currency": "€"}, "Three letters"),
    "target 0": ({"target_n": "0"}, "At least 1"),
    "target below 0": ({"target_n": "-3"}, "greater than or equal to 0"),
    "target 1e9 and more": ({"target_n": "99999999999999999999"}, "less than or equal to"),
    "cap below target": ({"target_n": "10", "target_cap": "5"}, "must not be below the target"),
    "reward is NaN": ({"reward": "NaN"}, "number"),
    "reward below 0": ({"reward": "-1"}, "greater than or equal to 0"),
    "reward with a comma": ({"reward": "2,5,0"}, "number"),
    "start window 0": ({"start_window_seconds": "0"}, "greater than or equal to 60"),
    "idle 0": ({"idle_seconds": "0"}, "At least 60"),
    "idle below": ({"idle_seconds": "3"}, "greater than or equal to 60"),
    "a date that is none": ({"withdrawal_until": "2026-02-30"}, "valid date"),
    "a date in words": ({"withdrawal_until": "tomorrow"}, "valid date"),
    "seed too large": ({"seed": str(2**63)}, "less than or equal to"),
    "seed below 0": ({"seed": "-1"}, "greater than or equal to 0"),
    "batches 0": ({"annotators_per_batch": "0"}, "greater than or equal to 1"),
    "no choice": ({"coverage": "sometimes"}, "not one of the available choices"),
    "system without name": ({"systems-0-name": ""}, "required"),
    "blank system": ({"systems-0-name": "\u200b"}, "can be seen"),
    "system name too long": ({"systems-0-name": LONG}, "at most 100 characters"),
    "same system twice": ({"systems-0-name": "beta"}, "another system with this name"),
    "same but for case": ({"systems-0-name": "BETA"}, "another system with this name"),
    "same but for Unicode form": ({"systems-0-name": "caf\u00e9", "systems-1-name": "cafe\u0301"}, "another system"),
    "x is y": ({"contrasts-0-x": "same"}, "not compared with itself"),
    "the same comparison reversed": ({"contrasts-1-x": "first y", "contrasts-1-y": "first x"}, "stands twice"),
    "margin below 0": ({"contrasts-0-margin": "-0.1"}, "greater than or equal to 0"),
    "margin 0": ({"contrasts-0-margin": "0"}, "above 0"),
    "margin infinite": ({"contrasts-0-margin": "1e309"}, "number"),
    "level 0": ({"contrasts-0-level": "0"}, "greater than or equal to"),
    "level NaN": ({"contrasts-0-level": "NaN"}, "number"),
    "x of another study": ({"contrasts-0-x": "999999"}, "not one of the available choices"),
    "x is a word": ({"contrasts-0-x": "alpha"}, "not one of the available choices"),
    "two conditions and two systems": (
        {"contrasts-0-x_condition": "none", "contrasts-0-y_condition": "examples"}, "two systems or two conditions",
    ),
    "one condition": ({"contrasts-0-x": "", "contrasts-0-y": "", "contrasts-0-x_condition": "none"}, "two conditions"),
    "m below 0": ({"sections-0-m": "-1"}, "greater than or equal to 0"),
    "m 1e9": ({"sections-0-m": "1000000000"}, "less than or equal to"),
    "m is no number": ({"sections-0-m": "four"}, "whole number"),
    "wanted below 0": ({"arms-0-wanted": "-1"}, "greater than or equal to 0"),
    "no arm left": ({"arms-0-DELETE": "on"}, "at least one arm"),
    "no owner left": ({"members-0-role": "viewer"}, "at least one owner"),
    "nobody of that name": (
        {"members-TOTAL_FORMS": "2", "members-1-username": "nobody", "members-1-role": "viewer"}, "may log in here",
    ),
    "a member twice": (
        {"members-TOTAL_FORMS": "2", "members-1-username": "olga", "members-1-role": "viewer"}, "twice",
    ),
    "no management form": ({"systems-TOTAL_FORMS": "abc"}, "missing or has been tampered"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_COLUMNS)
def test_bad_input_ends_in_words_and_stores_nothing(client, study, name):
    from studies.design.definition import canonical, design_of

    changes, words = BAD_COLUMNS[name]
    data = form_of(page(client, study), "study_form")
    stand_ins = {
        "same": data["contrasts-0-y"][0], "first x": data["contrasts-0-x"][0], "first y": data["contrasts-0-y"][0],
    }  # fmt: skip
    data |= {field: [stand_ins.get(value, value)] for field, value in changes.items()}
    before = canonical(design_of(study))
    response = client.post(study_url(study), data)
    assert response.status_code in (200, 422), response.status_code
    assert words in errors_of(response), errors_of(response)
    study.refresh_from_db()
    assert canonical(design_of(study)) == before


def test_a_form_opened_before_another_editor_saved_is_not_stored_over_it(client, study, owner):
    opened = form_of(page(client, study), "study_form")
    save(client, study, contact="first@example.org")
    response = client.post(study_url(study), changed(opened, contact="second@example.org"))
    html = response.content.decode()
    assert response.status_code == 409 and "first@example.org" in html and "second@example.org" in html
    study.refresh_from_db()
    assert study.contact == "first@example.org"
    # What was typed is in the page, and may be saved over it after all.
    client.post(study_url(study), form_of(response, number=-1))
    study.refresh_from_db()
    assert study.contact == "second@example.org"


def test_a_colleagues_new_row_is_a_conflict_too(client, study):
    opened = form_of(page(client, study), "study_form")
    System.objects.create(study=study, name="delta")
    assert client.post(study_url(study), opened).status_code == 409


def test_more_fields_than_a_request_may_have_are_refused_with_words(client, study, settings):
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 20
    response = client.post(study_url(study), form_of(page(client, study), "study_form"))
    assert response.status_code in (400, 413) and len(response.content) > 50


QUERIES = [
    "q=%00", "q=%ED%A0%80", "o=99", "o=-99.x", "p=-1", "p=abc", "p=99999999999999999999", "e=1", "_popup=x", "id__in=a",
        "study__owner__password__startswith=a", "owner__password__startswith=p", "state=nonsense", "role=x", "study=abc",
        "study=99999999999999999999", "study=%00", "study=٣", "all=", "_facets=1", "_to_field=password", "verb=%00", "arm=x",
        "recruitment=9999999999999999999999", "format=%00", "is_empty__exact=2", "q=" + "a" * 5000,
]  # fmt: skip
IDS = ["%00", "99999999999999999999", "_5F", "abc", "1/2", "-1", "%ED%A0%80"]


@pytest.mark.parametrize(
    "url",
    ["studies/study", "studies/prompt", "studies/output", "studies/auditevent", "annotators/assignment", "annotators/recruitment"],
)  # fmt: skip
def test_no_query_breaks_a_list(client, study, url):
    got = {query: client.get(f"/admin/{url}/?{query}").status_code for query in QUERIES}
    assert {query: status for query, status in got.items() if status not in (200, 302, 400)} == {}


@pytest.mark.parametrize(
    "url", ["studies/study", "studies/section", "studies/output", "annotators/assignment", "studies/job"]
)
def test_no_id_breaks_a_page(client, study, url):
    got = {pk: client.get(f"/admin/{url}/{pk}/change/").status_code for pk in IDS}
    assert {pk: status for pk, status in got.items() if status not in (302, 404)} == {}


@pytest.mark.parametrize("what", ["launch/", "amend/", "close/do/", "nonsense/do/"])
def test_a_study_that_is_not_there_is_not_found(client, study, what):
    assert client.get(f"/admin/studies/study/99999999999999999999/{what}").status_code == 404


def test_queries_of_the_page_do_not_grow_with_its_rows(client, study):
    def queries():
        with CaptureQueriesContext(connection) as context:
            assert page(client, study).status_code == 200
        return len(context)

    queries()
    few = queries()
    made = System.objects.bulk_create(System(study=study, name=f"extra {n}") for n in range(8))
    Contrast.objects.bulk_create(Contrast(study=study, x=a, y=b) for a, b in zip(made, made[1:], strict=False))
    prompts = list(study.prompts.all())
    Output.objects.bulk_create(Output(system=one, prompt=prompt, text="words") for one in made for prompt in prompts)
    for n in range(5):
        builders.Arm.objects.create(study=study, name=f"arm {n}")
        StudyMember.objects.create(study=study, user=builders.user(f"user{n}"), role="viewer")
    assert queries() == few


@pytest.mark.parametrize("url", ["studies/study", "studies/prompt", "studies/output", "studies/auditevent"])
def test_queries_of_a_list_do_not_grow_with_its_rows(client, owner, study, url):
    def queries():
        with CaptureQueriesContext(connection) as context:
            assert client.get(f"/admin/{url}/").status_code == 200
        return len(context)

    from studies.models import audit

    audit.record("pause", study=study, by=owner)
    queries()
    few = queries()
    for n in range(3):
        more = builders.spa_draft(owner=owner, title=f"study {n}", with_surveys=False)
        audit.record("pause", study=more, by=owner)
    assert queries() == few


def test_the_list_shows_what_one_looks_for(client, study):
    from tests import players

    builders.launched(study)
    players.submitted(study, "1")
    html = client.get("/admin/studies/study/").content.decode()
    for words in ("1 of 6", "launched", "olga", "ago</time>"):
        assert words in html


def test_the_list_of_one_study_names_it_once_and_leads_back(client, study):
    html = client.get(f"/admin/studies/prompt/?study={study.pk}").content.decode()
    assert 'class="field-study' not in html and f"<h2>{study.title}</h2>" in html
    assert html.count(f'href="{study_url(study)}"') == 2
    assert 'class="field-study' in client.get("/admin/studies/prompt/").content.decode()
    stranger = logged_in(builders.user("stranger"))
    assert study.title not in stranger.get(f"/admin/studies/prompt/?study={study.pk}").content.decode()


def test_every_page_leads_to_pages_that_are_there(client, study):
    html = client.get("/admin/studies/study/").content.decode()
    for address in ("/docs/", "/studies/bundle/", "/admin/"):
        assert f'href="{address}"' in html and client.get(address).status_code == 200
    assert 'href="/"' not in html


def test_what_was_refused_is_listed_with_links_under_the_studys_own_title(client, study):
    html = save(client, study, language="klingon!", **{"systems-0-name": ""}).content.decode()
    listed = html.partition('<ul class="refused" tabindex="-1" autofocus>')[2].partition("</ul>")[0]
    assert 'href="#id_language"' in listed and 'href="#id_systems-0-name"' in listed
    assert f"<h1>{study.title}</h1>" in html


def test_an_archived_study_leaves_the_list_and_keeps_its_page(client, study):
    from studies.services import lifecycle

    lifecycle.archive(study, by=None)
    assert study.title not in client.get("/admin/studies/study/").content.decode()
    assert study.title in client.get("/admin/studies/study/?state=archived").content.decode()
    assert client.get(study_url(study)).status_code == 200


def test_markdown_is_shown_as_read_without_saving_and_without_harm(client, study):
    data = changed(form_of(page(client, study), "study_form"), purpose="**Now** <script>alert(1)</script>")
    response = client.post("/admin/studies/study/preview-text/", data | {"_preview_field": ["purpose"]})
    html = response.content.decode()
    assert "<strong>Now</strong>" in html and "<script>alert" not in html
    study.refresh_from_db()
    assert "Now" not in study.purpose


def test_after_launch_the_page_is_read_only(client, study):
    data = form_of(page(client, study), "study_form")
    builders.launched(study)
    html = page(client, study).content.decode()
    for name in ("public_title", "target_n", "systems-0-name", "contrasts-0-x", "arms-0-name"):
        assert f'name="{name}"' not in html
    data.pop("_seen")
    client.post(study_url(study), changed(data, public_title="Other words", systems__0__name="Other"))
    study.refresh_from_db()
    assert study.public_title == "Reading short stories" and not study.systems.filter(name="Other").exists()


def test_after_launch_a_rule_says_the_parameters_that_hold_given_or_not(client, study):
    ExclusionRule.objects.create(study=study, position=1, rule="incomplete", settings={})
    ExclusionRule.objects.create(study=study, position=2, rule="too_fast", settings={"words_per_minute": 650})
    ExclusionRule.objects.create(study=study, position=3, rule="copied_text", settings={})
    builders.launched(study)
    html = page(client, study).content.decode()
    assert "answered at least = 1.0" in html
    assert "fastest reading, words per minute = 650, fastest beside others (robust z) = -3" in html
    assert len(re.findall(r">\s*none\s*<", html)) == 1


def test_members_may_still_change_after_launch(client, study):
    builders.user("vera")
    builders.launched(study)
    data = form_of(page(client, study), "study_form")
    new = {"members-TOTAL_FORMS": "2", "members-1-username": "vera", "members-1-role": "viewer"}
    response = client.post(study_url(study), changed(data, **new), follow=True)
    assert study.members.filter(user__username="vera", role="viewer").exists(), errors_of(response)


# What a column is called is for the data; whoever fills in a form is asked for something, in a unit.
COLUMNS = re.compile(
    r">\s*(Start window seconds|Idle seconds|Grace seconds|Target n|Target kind|Target cap|Erase after days|X condition|Wanted|"
    r"Level|Estimand|Family|Tau|Symmetric|Position|M):?\s*<"
)


def test_forms_ask_in_words_with_a_unit_and_say_what_holds_where_nothing_is_said(client, study):
    ExclusionRule.objects.create(study=study, position=1, rule="incoherent", settings={"tau": 1.1, "symmetric": False})
    recruitment = builders.recruitment(study)
    section = study.sections.get(protocol="spa")
    pages = [study_url(study), f"/admin/studies/section/{section.pk}/change/"]
    pages.append(f"/admin/annotators/recruitment/{recruitment.pk}/change/")
    draft = "".join(client.get(url).content.decode() for url in pages)
    assert not COLUMNS.search(draft), COLUMNS.findall(draft)
    assert (
        "Place in the study:" in draft
        and "Significance level" in draft
        and "largest sum of two answers (tau):" in draft
    )
    builders.launched(study)
    html = page(client, study).content.decode()
    amended = client.get(study_url(study, "amend/")).content.decode()
    for words in (html, amended, draft):
        assert not COLUMNS.search(words), COLUMNS.findall(words)
        assert "Time for a page, in seconds:" in words and "the longer of 30 minutes and 3 times" in words
        assert "By default 600, 10 minutes." in words and "Time to finish after closing, in seconds:" in words


def test_the_defaults_that_help_texts_tell_are_those_that_hold():
    from studies.admin.field_labels import HELP

    for name, told in HELP["study"].items():
        default = Study._meta.get_field(name).default
        if found := re.search(r"By default (\d+)", told):
            assert int(found[1]) == default, name
    assert f"By default {Contrast._meta.get_field('level').default}." == HELP["contrast"]["level"]


def test_no_setting_tells_a_default_that_is_made_anew_each_time():
    """Prolific's codes once offered “<function new_code at 0x…>”."""
    from annotators.recruitment import channels
    from studies import protocols
    from studies.admin.forms.settings import settings_fields
    from studies.models import rules

    forms = [one.settings_form for registry in (channels, protocols, rules) for one in registry.REGISTRY.values()]
    fields = [field for form in forms for field in settings_fields(form).values()]
    assert any(callable(field.initial) for field in fields)
    assert not [field.label for field in fields if " at 0x" in f"{field.help_text} {field.widget.attrs}"]
