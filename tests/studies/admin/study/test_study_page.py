"""The study's page: defined, saved, refused with words, kept from two editors at once."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from studies.admin.study import PARTS
from studies.models import ComparisonFamily, Contrast, ExclusionRule, Output, Section, Study, StudyMember, System, audit
from studies.services import questions
from tests import builders
from tests.admin_pages import changed, errors_of, form_of, forms_of, study_url
from tests.studies.admin.study.saved import page, save

pytestmark = pytest.mark.django_db


def test_who_creates_a_study_becomes_its_owner(client, owner):
    response = client.post("/admin/studies/study/new/", {"empty": "1", "title": "New"}, follow=True)
    study = Study.objects.get()
    assert response.status_code == 200 and "checklist" in response.content.decode()
    assert response.request["PATH_INFO"] == study_url(study) and (study.title, study.guide) == ("New", None)
    assert (study.owner, study.members.get().role, study.arms.get().name) == (owner, "owner", "all")


@pytest.mark.slow
def test_a_save_is_counted_where_something_changed(client, study):
    """That an untouched form changes nothing at all is tested for every form in tests/untouched."""
    for public_title, version in (("Reading", 1), ("Reading", 1), ("Reading more", 2)):
        response = save(client, study, public_title=public_title)
        assert "Saved.</li>" in response.content.decode(), errors_of(response)
        study.refresh_from_db()
        assert (study.public_title, study.version) == (public_title, version)
    save(client, study, **{"systems-0-reference": "maximal"})
    study.refresh_from_db()
    assert study.version == 3


def test_the_checklist_leads_to_the_group_that_has_the_field(client, study):
    Study.objects.filter(pk=study.pk).update(contact="", minutes=None)
    study.arms.update(wanted=90)
    html = page(client, study).content.decode()
    for part, anchor in (("consent", "id_contact"), ("pay", "id_minutes"), ("arms", "arms-group")):
        assert f'href="{study_url(study)}?part={part}#{anchor}"' in html, anchor
        group = client.get(f"{study_url(study)}?part={part}").content.decode()
        assert f'id="{anchor}"' in group and ('id="id_contact"' in group) == (part == "consent")
    assert "2 things are missing" in html and "Complete the design" in html


@pytest.mark.parametrize("address", ["change/", "launch/", "plan/", "new/people/"])
def test_a_draft_without_an_arm_is_shown(client, study, address):
    study.arms.all().delete()
    response = client.get(study_url(study).removesuffix("change/") + address)
    assert response.status_code == 200
    assert ("The study has no arm" in response.content.decode()) == (address in ("change/", "launch/"))


def test_a_problem_of_a_section_leads_to_the_sections_page(client, study):
    section = study.sections.get(protocol="spa")
    section.questions.first().delete()
    html = page(client, study).content.decode()
    assert f"/admin/studies/section/{section.pk}/change/#questions-group" in html


def test_the_burden_of_batches_is_shown_in_words_minutes_and_pay(client, study):
    html = page(client, study).content.decode()
    assert "every batch" in html and "Pay per hour" in html and "smallest" not in html
    # One long text is in some batches only.
    study.prompts.order_by("pk").first().outputs.update(text="word " * 900)
    html = page(client, study).content.decode()
    assert all(words in html for words in ("smallest", "median", "largest")) and "every batch" not in html


@pytest.mark.slow
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


def card_of(html, number):
    """The HTML of one comparison's card, up to the next."""
    return html.split(f'id="contrasts-{number}"')[1].split('id="contrasts-')[0]


def test_the_rare_fields_of_a_comparison_are_folded_until_one_is_unusual_or_wrong(client, study):
    study.contrasts.all().delete()
    x, y, z = study.systems.order_by("name")
    usual = Contrast.objects.create(study=study, x=x, y=y, population="people_and_prompts", margin=0.1)
    Contrast.objects.create(study=study, x=x, y=z, population="people_and_prompts", role="secondary")
    html = page(client, study).content.decode()
    assert ['<details class="folded" open>' in card_of(html, n) for n in (0, 1, "empty")] == [False, True, False]
    assert all(
        card_of(html, 0).index(f"contrasts-0-{name}") < card_of(html, 0).index("<details") for name in ("x", "margin")
    )
    assert card_of(html, 0).index("contrasts-0-level") > card_of(html, 0).index("<details")
    refused = save(client, study, **{"contrasts-0-level": "0"})
    assert '<details class="folded" open>' in card_of(refused.content.decode(), 0)
    usual.refresh_from_db()
    assert usual.level == 0.05


def test_all_pairs_saves_the_page_and_plans_what_is_missing(client, study, owner):
    study.contrasts.all().delete()
    alpha, beta, gamma = study.systems.order_by("name")
    System.objects.filter(pk=beta.pk).update(reference="reference")
    System.objects.create(study=study, name="best", reference="maximal")
    System.objects.create(study=study, name="planted", reference="test")
    Contrast.objects.create(study=study, x=gamma, y=alpha, section=study.sections.first())
    study.refresh_from_db()
    response = save(client, study, _all_pairs="1", public_title="Reading")
    assert "Comparisons added: 2." in response.content.decode(), errors_of(response)
    assert response.redirect_chain[0][0].endswith("#contrasts-group")
    made = study.contrasts.order_by("pk").values_list("x__name", "y__name", "section", "population")
    assert list(made)[1:] == [("alpha", "beta", None, "people"), ("gamma", "beta", None, "people")]
    assert Study.objects.get(pk=study.pk).public_title == "Reading"
    event = audit.events_of(study).order_by("-pk").first()
    assert (event.by, event.data["comparisons"]) == (owner, 2)
    assert "Comparisons added: 0." in save(client, study, _all_pairs="1").content.decode()
    assert audit.events_of(study).order_by("-pk").first() == event


def test_all_pairs_of_a_refused_page_plans_nothing(client, study):
    study.contrasts.all().delete()
    response = save(client, study, _all_pairs="1", target_n="-1")
    assert response.status_code == 200 and errors_of(response) and not study.contrasts.exists()


def test_more_pairs_than_the_page_can_show_are_refused(client, study, monkeypatch):
    study.contrasts.all().delete()
    monkeypatch.setattr(questions, "MOST_COMPARISONS", 2)
    response = save(client, study, _all_pairs="1", public_title="Reading")
    assert "All pairs of 3 systems are too many" in response.content.decode()
    assert not study.contrasts.exists() and Study.objects.get(pk=study.pk).public_title == "Reading"


def test_a_launched_study_takes_no_more_comparisons(client, study, owner):
    builders.launched(study)
    study.refresh_from_db()
    n = study.contrasts.count()
    response = save(client, study, _all_pairs="1")
    assert "cannot change" in response.content.decode() and study.contrasts.count() == n


def folded_parts(html):
    """The anchors and classes of the groups that are folded."""
    found = re.findall(r'id="(\w+)-group"|<fieldset class="module aligned part-(\w+)|<(details)><summary>\s*<h2', html)
    names = [rows or words for rows, words, _ in found]
    return [names[n - 1] for n, (_, _, fold) in enumerate(found) if fold]


RARE_PARTS = ["words", "consent", "design", "times", "arms", "comparison_families", "exclusion_rules", "members"]


def test_rare_groups_are_folded_until_one_has_an_error(client, study):
    assert folded_parts(page(client, study).content.decode()) == RARE_PARTS
    refused = save(client, study, idle_seconds="-1", **{"arms-0-name": ""}).content.decode()
    assert folded_parts(refused) == [part for part in RARE_PARTS if part not in ("times", "arms")]
    no_arm = save(client, study, **{"arms-0-DELETE": "on"})
    assert "at least one arm" in errors_of(no_arm)
    assert folded_parts(no_arm.content.decode()) == [part for part in RARE_PARTS if part != "arms"]


def test_a_group_in_which_something_is_missing_is_open(client, study):
    Study.objects.filter(pk=study.pk).update(contact="")
    study.contrasts.all().delete()
    assert folded_parts(page(client, study).content.decode()) == [part for part in RARE_PARTS if part != "consent"]
    Study.objects.filter(pk=study.pk).update(public_title="")
    assert "words" not in folded_parts(page(client, study).content.decode())


def stored_rows(study):
    """Every column of the study and of its rows that its page edits, without the version."""
    rows = [
        study.systems,
        study.arms,
        study.sections,
        study.contrasts,
        study.comparison_families,
        study.exclusion_rules,
        study.members,
    ]
    columns = Study.objects.filter(pk=study.pk).values().get()
    columns.pop("version")
    return columns, [list(manager.order_by("pk").values()) for manager in rows]


@pytest.fixture
def full_study(study):
    """A study with a value in every group of its page that may be empty."""
    x, y = study.systems.order_by("name")[:2]
    study.arms.get().systems.set([x, y])
    ComparisonFamily.objects.create(study=study, name="primary", adjustment="holm")
    ExclusionRule.objects.create(study=study, position=1, rule="incoherent", role="primary")
    Study.objects.filter(pk=study.pk).update(
        content_warning="Sad.",
        institution="A house",
        asks_to_share_preferences=True,
        licence="CC0",
        idle_seconds=900,
        wage_per_hour=12,
    )
    return study


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_the_page_saves_its_own_fields_and_leaves_the_others(client, full_study, part):
    url = f"{study_url(full_study)}?part={part}"
    opened = client.get(url)
    form = form_of(opened, "study_form")
    shown = [group.formset.prefix for group in opened.context["inline_admin_formsets"]]
    assert folded_parts(opened.content.decode()) == []
    assert (
        shown == ([part] if f"{part}-TOTAL_FORMS" in form else [])
        and f'?part={part}" aria-current' in opened.content.decode()
    )
    before = stored_rows(full_study)
    assert client.post(url, form).status_code == 302
    assert stored_rows(full_study) == before
    names = {
        "study": ("language", "de"), "words": ("purpose", "Read."), "consent": ("contact", "new@example.org"), "design": ("seed", "9"),
        "target": ("target_n", "5"), "pay": ("reward", "3.10"), "times": ("grace_seconds", "99"), "systems": ("systems-0-name", "omega"),
        "arms": ("arms-0-name", "both"), "sections": ("sections-0-m", "3"), "contrasts": ("contrasts-0-margin", "0.2"),
        "comparison_families": ("comparison_families-0-adjustment", "hommel"), "exclusion_rules": ("exclusion_rules-0-role", "sensitivity"),
        "members": ("members-0-role", "owner"),
    }  # fmt: skip
    name, value = names[part]
    assert client.post(url, changed(form_of(client.get(url), "study_form"), **{name: value})).status_code == 302
    columns, rows = stored_rows(full_study)
    changed_columns = [column for column in columns if columns[column] != before[0][column]]
    changed_rows = [n for n, (old, new) in enumerate(zip(before[1], rows, strict=True)) if old != new]
    assert (changed_columns + changed_rows == []) == (part == "members")
    assert len(changed_columns + changed_rows) <= 1, (changed_columns, changed_rows)
    if part not in shown:
        assert changed_columns == [name]


def test_the_conflict_of_a_part_is_found_and_saved_in_the_part(client, study):
    url = f"{study_url(study)}?part=pay"
    form = changed(form_of(client.get(url), "study_form"), reward="3.10")
    save(client, study, title="Changed by another")
    conflict = client.post(url, form)
    assert conflict.status_code == 409 and "3.10" in conflict.content.decode()
    again = next(one for one in forms_of(conflict) if "_seen" in one.sent())
    assert again.attrs["action"] == url and client.post(url, again.sent()).status_code == 302
    study.refresh_from_db()
    assert (study.title, str(study.reward)) == ("Changed by another", "3.10")


def test_a_part_can_be_saved_although_another_part_is_wrong(client, study):
    Study.objects.filter(pk=study.pk).update(target_n=0)
    url = f"{study_url(study)}?part=pay"
    assert client.post(url, changed(form_of(client.get(url), "study_form"), reward="3.10")).status_code == 302
    study.refresh_from_db()
    assert (str(study.reward), study.target_n) == ("3.10", 0)


@pytest.mark.slow
def test_two_sections_change_places(client, study):
    spa, rating = study.sections.order_by("position")
    Section.objects.filter(pk=rating.pk).update(reuses=None)
    response = save(client, study, **{"sections-0-position": 2, "sections-1-position": 1})
    assert "Saved.</li>" in response.content.decode(), errors_of(response)
    assert list(study.sections.order_by("position").values_list("pk", "position")) == [(rating.pk, 1), (spa.pk, 2)]


@pytest.mark.slow
def test_an_arm_keeps_its_systems(client, study):
    alpha = study.systems.get(name="alpha")
    save(client, study, **{"arms-0-shown_systems": [str(alpha.pk)]})
    assert list(study.arms.get().systems.all()) == [alpha]
    html = page(client, study).content.decode()
    assert f'name="arms-0-shown_systems" value="{alpha.pk}"' in html


@pytest.mark.slow
def test_parameters_of_a_rule_are_fields_and_are_checked(client, study, monkeypatch):
    from django import forms

    from studies.models import design

    class Parameters(forms.Form):
        tau = forms.FloatField(min_value=1, initial=1.1, label="tau")

    rule = design.Rule("for_this_test", "Incoherent", lambda frame: None, Parameters)
    monkeypatch.setitem(design.REGISTRY, "for_this_test", rule)
    row = ExclusionRule.objects.create(study=study, rule="for_this_test", settings={"tau": 1.3})
    html = page(client, study).content.decode()
    assert 'name="exclusion_rules-0-parameters-tau" value="1.3"' in html
    save(client, study, **{"exclusion_rules-0-parameters-tau": "1.2"})
    row.refresh_from_db()
    assert row.settings == {"tau": 1.2}
    for wrong in ("0", "-1", "NaN", "1e309", "1,1,1", "", "tau"):
        response = save(client, study, **{"exclusion_rules-0-parameters-tau": wrong})
        assert response.status_code == 200 and "Correct the marked fields" in errors_of(response), wrong
    row.refresh_from_db()
    assert row.settings == {"tau": 1.2}


@pytest.mark.slow
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


@pytest.mark.slow
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


def test_every_page_leads_to_pages_that_are_there(client, study):
    html = client.get("/admin/studies/study/").content.decode()
    for address in ("/docs/", "/admin/studies/study/new/bundle/", "/admin/"):
        assert f'href="{address}"' in html and client.get(address).status_code == 200
    assert 'href="/"' not in html


@pytest.mark.slow
def test_what_was_refused_is_listed_with_links_under_the_studys_own_title(client, study):
    html = save(client, study, language="klingon!", **{"systems-0-name": ""}).content.decode()
    listed = html.partition('<ul class="refused" tabindex="-1" autofocus>')[2].partition("</ul>")[0]
    assert 'href="#id_language"' in listed and 'href="#id_systems-0-name"' in listed
    assert f'<bdi>{study.title}</bdi></a> <span class="state' in html


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
    assert "fastest reading, words per minute = 650, fastest compared with others (robust z) = -3" in html
    assert len(re.findall(r">\s*none\s*<", html)) == 1


def test_members_may_still_change_after_launch(client, study):
    builders.user("vera")
    builders.launched(study)
    data = form_of(page(client, study), "study_form")
    new = {"members-TOTAL_FORMS": "2", "members-1-username": "vera", "members-1-role": "viewer"}
    response = client.post(study_url(study), changed(data, **new), follow=True)
    assert study.members.filter(user__username="vera", role="viewer").exists(), errors_of(response)
