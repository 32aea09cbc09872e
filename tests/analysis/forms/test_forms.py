"""Forms about a study: every element is filled or asked, numbers are the report's, and hostile texts are escaped."""

import json
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from analysis.forms.answers import save_answers
from analysis.forms.facts import collect_facts
from analysis.forms.questions import FORMS, HEDS, QUESTIONS
from analysis.forms.render import bibtex, render_form
from analysis.models import AnalysisRun, ReportAnswer
from analysis.report.planned import preregistration_sentences
from analysis.report.runs import run_analysis
from analysis.report.texts import render_table
from annotators.models import Assignment
from annotators.places.exclusions import exclude_assignments
from studies.models import Arm, Study
from studies.protocols import REGISTRY
from studies.services import copying, lifecycle
from studies.services.lifecycle import FieldsRefused
from tests.analysis.api.rest import api_of
from tests.analysis.report.reported import QUICK, finished
from tests.builders import (
    add_choice,
    add_rating,
    add_section,
    add_spa,
    add_survey,
    draft_study,
    humanlike_draft,
    launched,
    spa_draft,
    spa_study,
    user,
)
from tests.size_plans import planned_size

pytestmark = pytest.mark.django_db
HOSTILE = r"\input{/etc/passwd} $x$ & 100 % <script>alert(1)</script> | # _a_ [l](http://e.example) `c`"


@pytest.fixture
def owner():
    return user()


def rated(owner, **columns):
    study = draft_study(owner=owner, **columns)
    add_rating(study, position=1)
    return study


def reported(owner):
    study = finished(owner)
    run = run_analysis(study, {**QUICK, "origins": ["live"]}, by=owner)
    return study, run


def heds(study):
    return json.loads(render_form(study, "heds", "json"))


def element_ids():
    for _, path, _kind, n_options, _, _ in HEDS["questions"]:
        yield from (f"heds-{path}-{n}" for n in range(1, n_options + 1))
        yield f"heds-{path}-other_text" if n_options else f"heds-{path}"


def of_protocol(protocol):
    def make(owner):
        study = draft_study(owner=owner)
        add_section(study, protocol)
        return study

    return make


def planned(owner):
    study = draft_study(owner=owner)
    add_choice(study, stopping="anytime", margin=0.05)
    Study.objects.filter(pk=study.pk).update(size_plan=planned_size(study))
    return Study.objects.get(pk=study.pk)


PROTOCOLS = [slug for slug, protocol in REGISTRY.items() if protocol.has_items]


@pytest.mark.parametrize(
    "make",
    [
        *map(of_protocol, PROTOCOLS),
        planned,
        lambda owner: humanlike_draft(owner=owner),
        finished,
        lambda owner: reported(owner)[0],
    ],
)
def test_every_element_of_heds_is_filled_or_asked(owner, make):
    study = make(owner)
    facts, elements = collect_facts(study), heds(study)
    assert list(elements) == list(element_ids()) and len(elements) == 569
    assert all(render_form(study, form.slug, "txt") for form in FORMS)
    asked = {question.key for question in facts.questions}
    waiting = {key for key, fact in facts.by_key.items() if fact.is_open and fact.source.startswith("the final report")}
    assert not (waiting and facts.run)
    for _, path, _, n_options, key, _ in HEDS["questions"]:
        ids = [f"heds-{path}-{n}" for n in range(1, n_options + 1)] or [f"heds-{path}"]
        if path == "criteria-criterion":
            assert list(elements[ids[0]]["control"]) == list(facts.criteria) != []
            continue
        for name in facts.criteria if path.startswith("criteria-criterion") else [""]:
            own = f"{key}:{name}" if name else key
            is_filled = any(elements[one]["data"][name] for one in ids)
            assert is_filled or own in asked or own.partition(":")[0] in waiting, own


@pytest.mark.shared
def test_the_file_has_the_structure_of_the_official_form(owner, shared):
    official = {
        one["id"]: one
        for one in json.loads((shared / "formats/heds/heds3_fields.json").read_text())
        if one["element"] != "file"  # the button that reads the file
    }
    study = rated(owner)
    elements = heds(study)
    assert set(elements) == set(official)
    for key, element in elements.items():
        kind = official[key]["element"]
        assert (element["number"] or "") == official[key]["number"]
        assert set(element) == {"data", "control", "number"} | (
            {"text"} if kind in ("radio", "checkbox", "email") else set()
        )
        assert all(
            isinstance(value, bool if kind in ("radio", "checkbox") else str) for value in element["data"].values()
        )
    # The words of a language say that its code chooses the right option.
    names = {key: one["value"] for key, one in official.items()}
    study.prompts.update(language="el")
    ticked = [key for key, one in heds(study).items() if "input_languages" in key and one["data"][""] is True]
    assert [names[key] for key in ticked] == ["56. Greek, Modern (1453–)"]


def test_an_answer_fills_every_form_that_asks_and_is_in_no_clone(owner):
    study = spa_study(owner)
    save_answers(study, {"ethics": "Board of Graz, 2026-7", "expertise": "2: students", "paper_section": "4"}, by=owner)
    assert study.audit_events.filter(verb="answer questions of forms", by=owner).count() == 1
    elements = heds(study)
    assert elements["heds-ethics-review_body"]["data"] == {"": "Board of Graz, 2026-7"}
    expertise = "heds-sample_evaluators_design-evaluators-evaluators-expertise"
    assert [elements[f"{expertise}-{n}"]["data"][""] for n in (1, 2, 3)] == [False, True, False]
    assert elements[f"{expertise}-other_text"]["data"][""] == "students"
    for slug in ("arr", "neurips"):
        assert "Board of Graz, 2026-7" in render_form(study, slug, "txt")
    assert "no: students" in render_form(study, "heds", "txt")
    assert save_answers(study, {"ethics": "Board of Graz, 2026-7"}, by=owner) == []
    save_answers(study, {"ethics": " "}, by=owner)
    assert "ethics" in {
        one.key for one in collect_facts(study).questions if collect_facts(study).by_key[one.key].is_open
    }
    clone = copying.clone_study(study, owner)
    assert not ReportAnswer.objects.filter(study=clone).exists()
    with pytest.raises(FieldsRefused, match="no form"):
        save_answers(study, {"horoscope": "Leo"}, by=owner)


def test_numbers_are_those_of_the_report(owner):
    study, run = reported(owner)
    by_key, result = collect_facts(study).by_key, run.result
    assert by_key["methods"].text == result["answer"]["methods"]
    counts = [result["flow"]["arrived"], result["flow"]["submitted"], result["n"]["kept"]]
    assert list(map(int, re.findall(r"\d+", by_key["flow"].text))) == counts
    tables = [one for one in result["tables"] if one["name"].startswith("reliability")]
    assert by_key["agreement"].text == "\n\n".join(render_table(one, "txt").strip() for one in tables) != ""
    results = [f"{one['claim']} {one['apa'] or one['text']} (planned, {one['role']})" for one in result["conclusions"]]
    assert by_key["results"].text.split("\n\n") == results != []
    assert heds(study)["heds-sample_evaluators_design-evaluators-number_of_evaluators"]["data"][""] == str(
        run.result["n"]["kept"]
    )


def test_what_an_earlier_report_lacks_is_open(owner):
    study = finished(owner)
    AnalysisRun.objects.create(
        study=study,
        number=1,
        parameters={"origins": ["live"]},
        responses_n=0,
        responses_sha256="",
        code_version="",
        seed="",
        result={},
        result_sha256="",
    )
    facts = collect_facts(study)
    assert facts.run.number == 1 and facts.by_key["people"].is_open and facts.by_key["flow"].is_open
    assert all(render_form(study, form.slug, "json") for form in FORMS)


def test_only_the_final_report_of_people_is_read(owner):
    study = launched(spa_draft(owner=owner, target_n=3, target_cap=9))
    run_analysis(study, QUICK, by=owner)
    assert collect_facts(study).run is None
    study = Study.objects.get(pk=study.pk)
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    study = Study.objects.get(pk=study.pk)
    run_analysis(study, {**QUICK, "origins": ["robot"]}, by=owner)
    assert collect_facts(study).run is None
    final = run_analysis(study, {**QUICK, "origins": ["live"]}, by=owner)
    assert collect_facts(study).run == final


@pytest.mark.parametrize("make", [lambda owner: draft_study(owner=owner, systems=(), prompts=0), rated, spa_study])
def test_without_a_report_forms_have_open_fields(client, owner, make):
    study = make(owner)
    client.force_login(owner)
    page = client.get(reverse("report_forms", args=[study.pk]))
    assert page.status_code == 200 and b'class="missing"' in page.content
    for form in FORMS:
        for file_format in ("txt", "md", "tex", "json"):
            got = client.get(reverse("report_form", args=[study.pk, form.slug, file_format]))
            assert got.status_code == 200 and got.content, (form.slug, file_format)
    assert client.get(reverse("report_form", args=[study.pk, "arr", "bib"])).status_code == 404
    assert "(open: Why was the study made" in render_form(study, "datasheet", "txt")


def test_the_preregistration_has_the_plan(owner):
    study = spa_draft(owner=owner, target_n=30, rules=[("unfinished", {})])
    study.contrasts.update(margin=0.05)
    text = render_form(study, "osf", "txt")
    for one in study.contrasts.all():
        assert f"x is {one.x}, y is {one.y}: x and y differ; expected: x > y; margin 0.05; level 0.05" in text
    assert "The target is 30 annotators who submitted, with at most 45 places." in text
    assert "No data were collected yet." in text
    assert study.exclusion_rules.get().get_rule_display() in text


def test_a_plan_and_a_stopping_rule_are_in_the_preregistration(owner):
    study = planned(owner)
    text, elements = render_form(study, "osf", "txt"), heds(study)
    for sentence in preregistration_sentences(study.size_plan, study.currency):
        assert " ".join(sentence.split()) in text
    assert "has a stopping rule: " in text and "stopping: anytime" in text and "margin 0.05" in text
    assert elements["heds-sample_evaluators_design-sample-statistical_power-value"]["data"][""] == "0.78"


def test_hostile_texts_are_escaped(owner):
    study = rated(owner, title=HOSTILE, consent=HOSTILE, institution=HOSTILE)
    question = study.sections.get().questions.first()
    type(question).objects.filter(pk=question.pk).update(criterion='<b>"x" & y</b>', text=HOSTILE)
    save_answers(study, {"paper_section": HOSTILE}, by=owner)
    for form in FORMS:
        tex = render_form(study, form.slug, "tex")
        assert r"\input" not in tex and "<script>" not in tex and not re.search(r"(?<!\\)[&%#_]", tex), form.slug
        markdown = render_form(study, form.slug, "md")
        assert not re.search(r"(?<!\\)[<>|`\[]", markdown), form.slug
        assert json.loads(render_form(study, form.slug, "json"))
    assert r"\input" not in bibtex(study) and "<script>" not in bibtex(study)
    # The official form shows the names of criteria as HTML.
    assert not re.search(r"[<>&]", "".join(heds(study)["heds-criteria-criterion"]["control"]))


def test_the_page_escapes_and_stores(client, owner):
    study = rated(owner)
    client.force_login(owner)
    url = reverse("report_forms", args=[study.pk])
    assert client.post(url, {"risks": HOSTILE}).status_code == 302
    page = client.get(url).content.decode()
    assert "<script>alert" not in page and "Answered (1)" in page
    refused = client.post(url, {"risks": "a" * 6000})
    assert refused.status_code == 400 and b"Correct these fields" in refused.content
    client.force_login(user("viewer"))
    study.members.create(user=user("viewer"), role="viewer")
    assert client.get(url).status_code == 200 and client.post(url, {"risks": "x"}).status_code == 403


def test_deviations_show_who_when_before_and_after(client, owner):
    study = spa_study(owner, target_n=3, target_cap=9)
    before = study.contact
    lifecycle.amend(study, {"study": {None: {"contact": "new@example.org"}}}, owner, "A better address.")
    lifecycle.unblind(study, owner, "A look.")
    rows = json.loads(render_form(study, "osf", "json"))["deviations"]
    amended, unblinded = rows
    assert (amended["before"], amended["after"], amended["who"]) == (before, "new@example.org", str(owner))
    assert amended["why"] == "A better address." and amended["what"] == "contact"
    assert unblinded["after"] == "shown: A look." and re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", unblinded["when"])
    client.force_login(owner)
    page = client.get(reverse("report_forms", args=[study.pk])).content.decode()
    assert "new@example.org" in page and "A better address." in page


def test_exclusions_by_hand_are_deviations(owner):
    study = finished(owner)
    excluded = list(Assignment.objects.filter(study=study)[:2])
    exclude_assignments(excluded, "too_fast", owner)
    (row,) = json.loads(render_form(study, "osf", "json"))["deviations"]
    assert row["what"] == "Answers of 2 assignments" and row["before"] == "counted"
    assert row["after"] == "excluded by hand: answered faster than one can read" and row["who"] == str(owner)


def test_a_draft_with_answers_can_be_deleted(owner):
    study = rated(owner)
    save_answers(study, {"ethics": "Board of Graz"}, by=owner)
    assert copying.delete_or_archive_draft(study, owner) == "deleted"
    assert not ReportAnswer.objects.exists()


def test_more_rows_of_a_design_need_no_more_queries(client, owner):
    client.force_login(owner)
    counts = []
    for n in (1, 4):
        study = draft_study(owner=owner, prompts=4 * n)
        for position in range(1, n + 1):
            add_rating(study, position=position)
        Arm.objects.bulk_create(Arm(study=study, name=f"arm {k}") for k in range(n))
        with CaptureQueriesContext(connection) as queries:
            assert client.get(reverse("report_forms", args=[study.pk])).status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1], counts


def test_questions_have_one_key_each():
    keys = [question.key for question in QUESTIONS]
    assert len(keys) == len(set(keys))
    used = {key for form in FORMS for item in form.items for key in item.keys}
    assert set(keys) <= used


def test_a_survey_alone_has_no_criterion(owner):
    study = draft_study(owner=owner, systems=(), prompts=0)
    add_survey(study, position=1)
    assert collect_facts(study).criteria == () and len(heds(study)) == 569


def test_rest_gives_forms_and_takes_answers(owner):
    study = rated(owner)
    api, path = api_of(owner), f"studies/{study.code}/report-forms/"
    listed = api.get(path).json()
    (ethics,) = [one for one in listed["questions"] if one["key"] == "ethics"]
    assert listed["analysis"] is None and ethics["text"] == "" and listed["deviations"] == []
    stored = api.patch(path, {"answers": {"ethics": HOSTILE}})
    assert stored.status_code == 200, stored.body
    assert [one["text"] for one in stored.json()["questions"] if one["key"] == "ethics"] == [HOSTILE]
    for form in listed["forms"]:
        for extension in ("txt", "md", "tex", "json"):
            assert api.get(f"{path}{form['slug']}.{extension}").status_code == 200
    assert api.get(f"{path}heds.json").json()["heds-ethics-review_body"]["data"][""] == HOSTILE
    assert api.get(f"{path}citation.bib").body.decode() == bibtex(study)
    assert api.get(f"{path}heds.bib").status_code == 404
    for wrong in ({"horoscope": "Leo"}, {"ethics": 7}, {"ethics": "a" * 6000}, {"ethics": "\x00"}, "Leo"):
        refused = api.patch(path, {"answers": wrong})
        assert refused.status_code == 400, (wrong, refused.body)
    assert api_of(owner, scope="read").patch(path, {"answers": {}}).status_code == 403


def test_forms_name_sections_by_m_and_not_by_a_number():
    study = draft_study(systems=("alpha", "beta"), prompts=20)
    for position, m in enumerate((1, 8), 1):
        study.contrasts.all().delete()
        add_spa(study, position=position, m=m)
    said = str(collect_facts(study))
    assert "SPA, after 1 example: P[x > y]" in said and "SPA, after 8 examples: P[x > y]" in said
    assert not re.search(r"[Ss]ection \d", said)
