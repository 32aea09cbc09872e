"""A section's page: the protocol first, its settings and questions as fields, and the form that generates questions for pairs."""

import re

import pytest
from django import forms
from django.db import connection
from django.test.utils import CaptureQueriesContext

from studies.design.checklist import find_design_problems
from studies.models import Contrast, Question, Section, audit
from studies.protocols import REGISTRY
from studies.protocols.base.fields import parse_scale, values_of_new_row
from studies.services import questions
from tests import builders
from tests.admin_pages import changed, errors_of, form_of, logged_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner():
    return builders.user("olga")


@pytest.fixture
def client(owner):
    return logged_in(owner)


@pytest.fixture
def study(owner):
    return builders.spa_draft(owner=owner)


def url_of(section):
    return f"/admin/studies/section/{section.pk}/change/"


def save(client, section, _continue="1", **changes):
    data = changed(form_of(client.get(url_of(section)), "section_form"), **changes) | {"_continue": [_continue]}
    return client.post(url_of(section), data, follow=True)


def spa(study):
    return study.sections.get(protocol="spa")


def test_a_section_begins_with_its_protocol(client, study):
    url = f"/admin/studies/section/add/?study={study.pk}"
    data = changed(form_of(client.get(url), "section_form"), protocol="rating")
    assert data["study"] == [str(study.pk)]
    response = client.post(url, data, follow=True)
    section = study.sections.get(position=5)
    assert section.protocol == "rating" and section.settings["noun"] == "text"
    assert 'name="settings-noun" value="text"' in response.content.decode()


def test_a_protocol_without_items_begins_with_m_zero(client, study):
    url = f"/admin/studies/section/add/?study={study.pk}"
    client.post(url, changed(form_of(client.get(url), "section_form"), protocol="survey"))
    assert study.sections.get(position=5).m == 0


@pytest.mark.parametrize(("protocol", "kind"), [("spa", "percent"), ("rating", "likert"), ("survey", "choice")])
def test_a_new_question_begins_with_a_scale_that_suits_the_protocol(client, study, protocol, kind):
    section = Section.objects.create(study=study, position=9, protocol=protocol, m=0 if protocol == "survey" else 4)
    fields = form_of(client.get(url_of(section)), "section_form")
    assert fields["questions-__prefix__-scale_kind"] == [kind]
    save(client, section)
    assert not section.questions.exists()
    row = {
        "position": "1", "key": "good", "text": "How good?", "scale_kind": kind, "scale_is_long": "on", "skip_reasons": "",
        "scale_options": "a | A\nb | B" if kind == "choice" else "", "required": "on", "id": "", "section": str(section.pk),
    }  # fmt: skip
    save(
        client,
        section,
        **{"questions-TOTAL_FORMS": "1"} | {f"questions-0-{name}": value for name, value in row.items()},
    )
    assert section.questions.get().scale["kind"] == kind


def test_questions_without_a_name_in_the_data_get_distinct_ones_from_their_words(client, study):
    section = Section.objects.create(study=study, position=9, protocol="rating", m=4)
    asked = (("", "How vivid is it?"), ("", "How vivid is it?"), ("Fluency", "How fluent is it?"), ("", "¿?"))
    rows = {}
    for n, (criterion, text) in enumerate(asked):
        row = {
            "key": "", "criterion": criterion, "text": text, "scale_kind": "likert", "scale_minimum": "1", "scale_maximum": "5",
            "skip_reasons": "", "required": "on", "id": "", "section": str(section.pk),
        }  # fmt: skip
        rows |= {f"questions-{n}-{name}": value for name, value in row.items()}
    save(client, section, **{"questions-TOTAL_FORMS": "4"} | rows)
    names = ["how-vivid-is-it", "how-vivid-is-it-2", "fluency", "question"]
    assert list(section.questions.values_list("key", flat=True)) == names
    # Later questions do not take the name of an earlier one, and a name that was given stays.
    row = {name.replace("questions-0", "questions-4"): value for name, value in rows.items() if "questions-0" in name}
    save(client, section, **{"questions-TOTAL_FORMS": "5"} | row)
    assert list(section.questions.values_list("key", flat=True)) == [*names, "how-vivid-is-it-3"]


def test_settings_are_fields_and_an_untouched_form_keeps_them(client, study):
    section = spa(study)
    before = dict(section.settings)
    response = save(client, section)
    assert "changed successfully" in response.content.decode(), errors_of(response)
    section.refresh_from_db()
    assert section.settings == before
    save(client, section, **{"settings-noun": "artist", "settings-naming": "listed"})
    section.refresh_from_db()
    assert (section.settings["noun"], section.settings["naming"]) == ("artist", "listed")


def test_an_untouched_form_keeps_every_kind_of_scale(client, study):
    section = study.sections.get(purpose="screening")
    scales = {
        "percent": {"kind": "percent", "low": "no chance", "high": "certain"},
        "likert": {"kind": "likert", "labels": ["bad", "middling", "good"], "is_best_first": True},
        "likert5": {"kind": "likert", "minimum": 1, "maximum": 5, "low": "bad", "high": "good"},
        "continuous": {"kind": "continuous", "minimum": 0, "maximum": 1000, "low": "worst"},
        "number": {"kind": "number", "minimum": 18, "maximum": 120},
        "multiple": {"kind": "multiple", "options": [{"key": "a", "label": "A"}, {"key": "b", "label": "B | C"[:1]}]},
        "acknowledgement": {"kind": "acknowledgement", "high": "I am of age."},
        "text": {"kind": "text", "minimum_length": 10, "maximum_length": 500, "is_long": False},
    }
    Question.objects.bulk_create(
        Question(section=section, position=n, key=key, text="?", scale=scale)
        for n, (key, scale) in enumerate(scales.items(), 2)
    )
    response = save(client, section)
    assert "changed successfully" in response.content.decode(), errors_of(response)
    for question in section.questions.exclude(key="fluent"):
        assert parse_scale(question.scale) == parse_scale(scales[question.key]), question.key
    assert section.questions.get(key="fluent").scale == builders.SCREENING["scale"]


@pytest.mark.parametrize("slug", REGISTRY)
def test_a_section_says_what_holds_before_anything_is_chosen(client, study, slug):
    protocol = REGISTRY[slug]
    section = Section.objects.create(study=study, position=9, protocol=slug, m=5 if protocol.has_items else 0)
    html = client.get(url_of(section)).content.decode()
    assert ">M:<" not in html
    words = f"{protocol.item_noun.capitalize()} for each annotator (m)" if protocol.has_items else "Shown (m)"
    assert f">{words}:</label>" in html
    if protocol.has_items:
        assert "From 1 to 100, by default 5." in html
    defaults = values_of_new_row(protocol.settings_form)
    for name, field in protocol.settings_form().fields.items() if protocol.settings_form else ():
        if isinstance(field, forms.IntegerField):
            assert f"From {field.min_value} to {field.max_value}, by default {defaults[name]}." in html, name
        elif isinstance(field, forms.ChoiceField):
            assert f"{dict(field.choices)[defaults[name]]} (default)</option>" in html, name
    assert ('id="id_questions-__prefix__-x"' in html) == protocol.has_directed_questions


def test_where_a_scale_says_nothing_the_field_says_what_holds(client, study):
    section = spa(study)
    Question.objects.filter(section=section, position=1).update(scale={"kind": "continuous"})
    html = client.get(url_of(section)).content.decode()
    field = re.search(r'<input[^>]*name="questions-0-scale_maximum"[^>]*>', html).group()
    assert 'placeholder="100 (default)"' in field and "value=" not in field


@pytest.mark.slow
def test_empty_rows_are_a_link_away_without_a_script(client, study):
    section = study.sections.get(purpose="screening")
    html = client.get(url_of(section)).content.decode()
    assert '<noscript><p><a href="?rows=3">' in html
    opened = client.get(url_of(section) + "?rows=3")
    fields = form_of(opened, "section_form")
    assert fields["questions-TOTAL_FORMS"] == ["4"]
    row = {"questions-2-key": "age", "questions-2-text": "How old are you?", "questions-2-scale_kind": "number"}
    response = client.post(url_of(section) + "?rows=3", changed(fields, **row) | {"_continue": ["1"]}, follow=True)
    assert "changed successfully" in response.content.decode(), errors_of(response)
    assert [question.key for question in section.questions.order_by("position")] == ["fluent", "age"]
    for asked, rows in (("x", 2), ("²", 2), ("-1", 2), ("9" * 30, 22)):
        assert form_of(client.get(url_of(section), {"rows": asked}), "section_form")["questions-TOTAL_FORMS"] == [
            str(rows)
        ]


def test_options_are_lines(client, study):
    section = study.sections.get(purpose="screening")
    save(client, section, **{"questions-0-scale_options": "yes | Yes\nno | No | screens out\nNot sure"})
    assert section.questions.get().scale["options"] == [
        {"key": "yes", "label": "Yes"},
        {"key": "no", "label": "No", "screens_out": True},
        {"key": "not-sure", "label": "Not sure"},
    ]


def test_ways_not_to_answer_are_lines(client, study):
    save(client, spa(study), **{"questions-0-skip_reasons": "cannot_judge | I cannot judge this"})
    question = spa(study).questions.first()
    assert question.skip_reasons == [{"key": "cannot_judge", "label": "I cannot judge this"}]
    assert "cannot_judge | I cannot judge this" in client.get(url_of(spa(study))).content.decode()


def test_two_questions_change_places(client, study):
    first, second = spa(study).questions.order_by("position")[:2]
    response = save(client, spa(study), **{"questions-0-position": "2", "questions-1-position": "1"})
    assert "changed successfully" in response.content.decode(), errors_of(response)
    assert [q.pk for q in spa(study).questions.order_by("position")[:2]] == [second.pk, first.pk]


def test_the_first_question_goes_and_the_others_close_up(client, study):
    first = spa(study).questions.order_by("position").first()
    save(client, spa(study), **{"questions-0-DELETE": "on"})
    assert list(spa(study).questions.order_by("position").values_list("position", flat=True)) == [1, 2, 3]
    assert not Question.objects.filter(pk=first.pk).exists()


BAD = {
    "m below 0": ({"m": "-1"}, "greater than or equal to 0"),
    "m above 100": ({"m": "1000000000"}, "less than or equal to"),
    "m in words": ({"m": "five"}, "whole number"),
    "no noun": ({"settings-noun": ""}, "required"),
    "noun too long": ({"settings-noun": "n" * 31}, "at most 30"),
    "labels unknown": ({"settings-labels": "none"}, "not one of the available choices"),
    "reuses itself or nothing": ({"reuses": "99999"}, "not one of the available choices"),
    "position taken": ({"position": "1"}, "Another section has this position"),
    "no words": ({"questions-0-text": ""}, "required"),
    "invisible words": ({"questions-0-text": "\u200b"}, "no visible character"),
    "key with blanks": ({"questions-0-key": "a b"}, "valid “slug”"),
    "key twice": ({"questions-0-key": "same", "questions-1-key": "same"}, "duplicate data for key"),
    "x without y": ({"questions-0-y": ""}, "two systems or none"),
    "x is y": ({"questions-0-x": "=y"}, "cannot be compared with itself"),
    "an arm of nobody": ({"shown_arms": ["99999"]}, "not one of the available choices"),
}
BAD_SCALES = {
    "one answer": ({"kind": "choice", "options": "yes | Yes"}, "at least two"),
    "no answer": ({"kind": "choice", "options": ""}, "at least two"),
    "key twice": ({"kind": "choice", "options": "a | A\na | B"}, "Two lines have the key"),
    "line without label": ({"kind": "choice", "options": "a |\nb | B"}, "Line 1"),
    "a third part": ({"kind": "choice", "options": "a | A | maybe\nb | B"}, "only “screens out”"),
    "ends reversed": ({"kind": "likert", "minimum": "5", "maximum": "1"}, "below its highest"),
    "too many points": ({"kind": "likert", "minimum": "1", "maximum": "90"}, "at most 20"),
    "labels for other points": ({"kind": "likert", "minimum": "1", "maximum": "5", "labels": "a\nb"}, "2 labels for 5"),
    "an end that is no number": ({"kind": "number", "minimum": "1e3", "maximum": "5"}, "whole number"),
    "lengths reversed": ({"kind": "text", "minimum_length": "50", "maximum_length": "10"}, "is above the maximum"),
    "kind unknown": ({"kind": "stars"}, "not one of the available choices"),
    "control character": ({"kind": "choice", "options": "a | A\x07\nb | B"}, "control character"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_ends_in_words(client, study, name):
    changes, words = BAD[name]
    section = spa(study)
    if name == "x is y":
        changes = {"questions-0-x": section.questions.first().y_id}
    response = save(client, section, **changes)
    assert response.status_code == 200 and words in errors_of(response), errors_of(response)


@pytest.mark.parametrize("name", BAD_SCALES)
def test_a_bad_scale_ends_in_words(client, study, name):
    parts, words = BAD_SCALES[name]
    section = study.sections.get(purpose="screening")
    before = section.questions.get().scale
    response = save(client, section, **{f"questions-0-scale_{part}": value for part, value in parts.items()})
    assert response.status_code == 200 and words in errors_of(response), errors_of(response)
    assert section.questions.get().scale == before


def test_a_survey_has_no_items(client, study):
    assert "enter 0 for m" in errors_of(save(client, study.sections.get(purpose="screening"), m="3"))


def test_a_stale_form_is_a_conflict(client, study):
    section = spa(study)
    opened = form_of(client.get(url_of(section)), "section_form")
    Section.objects.filter(pk=section.pk).update(m=7)
    response = client.post(url_of(section), changed(opened, m="5"))
    html = response.content.decode()
    assert response.status_code == 409 and ">7<" in html and ">5<" in html
    section.refresh_from_db()
    assert section.m == 7


def test_after_launch_a_section_is_read_only_and_says_its_settings_in_words(client, study):
    section = study.sections.get(purpose="screening")
    opened = form_of(client.get(url_of(section)), "section_form")
    builders.launched(study)
    html = client.get(url_of(section)).content.decode()
    assert 'name="m"' not in html and "No (screens out)" in html
    assert client.post(url_of(section), opened).status_code == 403


def test_queries_of_the_page_do_not_grow_with_its_questions(client, study):
    section = spa(study)

    def queries():
        with CaptureQueriesContext(connection) as context:
            assert client.get(url_of(section)).status_code == 200
        return len(context)

    queries()
    few = queries()
    x, y = study.systems.all()[:2]
    Question.objects.bulk_create(
        Question(section=section, position=n, key=f"q{n}", text="?", x=x, y=y, criterion=str(n)) for n in range(10, 22)
    )
    assert queries() == few


# The form that generates questions


def test_both_directions_are_written_with_their_contrasts(study):
    section = spa(study)
    section.questions.all().delete()
    Contrast.objects.filter(study=study).delete()
    done = questions.add_missing_questions(
        section, questions.select_system_pairs(section, "all"), "{x} or {y}?", by=None, with_contrasts=True
    )
    assert done == (6, 3)
    asked = {(q.x.name, q.y.name) for q in section.questions.select_related("x", "y")}
    assert asked == {(a, b) for a in builders.SYSTEMS for b in builders.SYSTEMS if a != b}
    assert questions.add_missing_questions(
        section, questions.select_system_pairs(section, "all"), "{x} or {y}?", by=None, with_contrasts=True
    ) == (0, 0)


def test_neighbours_and_planned_pairs(study):
    section = spa(study)
    names = [(x.name, y.name) for x, y in questions.select_system_pairs(section, "neighbours")]
    assert names == [("alpha", "beta"), ("beta", "gamma")]
    names = [(x.name, y.name) for x, y in questions.select_system_pairs(section, "neighbours", "gamma\nalpha\nbeta")]
    assert names == [("gamma", "alpha"), ("alpha", "beta")]
    names = [(x.name, y.name) for x, y in questions.select_system_pairs(section, "planned")]
    assert names == [("beta", "alpha"), ("gamma", "beta")]


def test_a_contrast_that_exists_reversed_is_not_planned_again(study):
    section = spa(study)
    pairs = [(y, x) for x, y in questions.select_system_pairs(section, "planned")]
    assert questions.add_missing_questions(section, pairs, "{x} {y}", by=None, with_contrasts=True) == (0, 0)


def test_the_pen_writes_from_the_page(client, study):
    section = spa(study)
    response = client.get(url_of(section))
    data = form_of(response, "generate")
    assert data["generate-both"] == ["on"] and "writer {x}" in data["generate-text"][0]
    response = client.post(
        f"/admin/studies/section/{section.pk}/generate-questions/",
        changed(data, **{"generate-which": "neighbours", "generate-order": "alpha\ngamma"}),
        follow=True,
    )
    assert "2 questions, 1 comparison" in errors_of(response)
    assert section.questions.filter(key="alpha-gamma").exists()
    asked = changed(data, **{"generate-which": "all", "generate-size_text": "How much better is {x} than {y}?"})
    client.post(f"/admin/studies/section/{section.pk}/generate-questions/", asked)
    sizes = section.questions.filter(scale__kind="likert").values_list("key", "scale__minimum", "scale__maximum")
    assert set(sizes) >= {("size-alpha-gamma", -3, 3), ("size-gamma-alpha", -3, 3)} and len(sizes) == 6


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"generate-text": "which?"}, "does not contain {x}"),
        ({"generate-size_text": "by how much?"}, "Question of size: The question does not contain {x}"),
        ({"generate-which": "some"}, "not one of"),
        ({"generate-text": ""}, "required"),
        ({"generate-order": "gamma\nnobody"}, "The study has no system “nobody”."),
    ],
)
def test_the_pen_refuses_with_words(client, study, changes, words):
    section = spa(study)
    data = changed(form_of(client.get(url_of(section)), "generate"), **changes)
    response = client.post(f"/admin/studies/section/{section.pk}/generate-questions/", data, follow=True)
    assert words in errors_of(response) and section.questions.count() == 4


def test_one_tick_asks_both_directions_and_another_one_declares_tau(client, study):
    section = spa(study)
    address = f"/admin/studies/section/{section.pk}/generate-questions/"
    section.questions.filter(key__in=("beta-alpha", "gamma-beta")).delete()
    one = section.questions.order_by("position").first()
    Question.objects.filter(pk=one.pk).update(text="Is {x} better, compared with {y}?", help="Think.")
    assert section.questions.count() == 2
    page = client.get(url_of(section)).content.decode()
    assert "Adds 2 questions, with the same words." in page and "more than tau = 1.1" in page
    refused = client.post(address, {"reverse": "1", "directions-tau": "on"}, follow=True)
    assert "required" in errors_of(refused) and section.questions.count() == 2
    done = client.post(address, {"reverse": "1", "directions-reverse": "on", "directions-tau": "on"}, follow=True)
    assert "Added: 2 questions, 0 comparisons. Exclusion rule declared: tau = 1.1." in errors_of(done)
    reverse = section.questions.get(x=one.y, y=one.x)
    assert (reverse.text, reverse.help, reverse.scale) == ("Is {x} better, compared with {y}?", "Think.", one.scale)
    rule = study.exclusion_rules.get(rule="incoherent")
    assert (rule.role, rule.settings) == ("primary", {"tau": 1.1, "symmetric": False})
    assert section.questions.count() == 4 and not [
        problem for problem in find_design_problems(study) if problem.key.startswith("one_naming_order")
    ]
    assert 'id="directions"' not in client.get(url_of(section)).content.decode(), "nothing is left to add"
    event = audit.events_of(study).order_by("-pk").first()
    assert event.data["wrote"] == f"reverse questions of section {section.position}" and event.data["tau"]


def test_a_section_is_deleted_with_its_questions_and_its_test_runs(client, study, owner):
    from annotators.places.batch_plan import start_test_run

    start_test_run(study, owner)
    section = study.sections.get(protocol="rating")
    url = f"/admin/studies/section/{section.pk}/delete/"
    assert "Question: overall" in client.get(url).content.decode()
    client.post(url, {"post": "yes"})
    assert not study.sections.filter(pk=section.pk).exists()


def test_a_section_that_another_shows_again_is_protected(client, study):
    section = spa(study)
    html = client.get(f"/admin/studies/section/{section.pk}/delete/").content.decode()
    assert "Section that repeats its items" in html
    client.post(f"/admin/studies/section/{section.pk}/delete/", {"post": "yes"})
    assert study.sections.filter(pk=section.pk).exists()
