"""The first part of a report: its sentences, its table of systems, its paragraph of methods, and their texts to paste."""

import re

import pytest
from django.urls import reverse

from analysis.protocols.blocks import layouts
from analysis.report import page as report_page
from analysis.report.runs import run_analysis
from analysis.report.texts import render_answer, render_table
from studies.imports.study_templates import STUDY_TEMPLATES, create_draft_from_template
from tests.analysis.protocols.answers import answer
from tests.analysis.report.reported import QUICK, closed, finished, report, table
from tests.builders import add_rating, draft_study, launched, recruitment, spa_study, user

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner():
    return user()


def test_the_paragraph_names_task_people_systems_and_analysis(owner):
    study = spa_study(owner, target_n=12, reward="2.50", currency="EUR", minutes=12)
    answer(study, 12, percent=lambda person, x, y: 70 if x > y else 35, recruitment=recruitment(study, "prolific"))
    said = report(closed(study))["answer"]["methods"]
    question = study.sections.get(protocol="spa").questions.first()
    for fact in (
        "12 annotators of 12 who came submitted their answers, and none of them was excluded.",
        "They came by Prolific (12).",
        "One batch paid 2.50 EUR for about 12 minutes.",
        "The study compares alpha",
        f"“{' '.join(re.sub(r'{.}', '…', question.text).split())}”",
        "(0 to 100)",
        "P[x > y]",
        "95 %",
        "The design was frozen before the answers came (SHA-256 ",
    ):
        assert fact in said, (fact, said)


def test_a_report_of_robots_says_so_in_the_paragraph(owner):
    study = finished(owner)
    study.assignments.update(origin="robot")
    said = report(study, origins=["robot"])["answer"]["methods"]
    assert said.startswith("12 robots of 12 who came") and "The answers are simulated." in said and "paid" not in said
    result = report(study, origins=["robot"])
    assert result["confirmatory"]["reasons"][0] == "Only robots answered."
    assert render_answer(result, "txt").startswith("This analysis uses only answers of robots.")


def test_what_is_not_shown_follows_from_the_claims(owner):
    assert report(finished(owner))["answer"]["limits"] == [
        "the results hold for other prompts than these",
        "ratings of the same systems agree: they recover 0 of 2 expectations, the stated chances 2",
    ]
    found = report(closed_ratings(owner))["answer"]
    study = spa_study(owner, systems=("alpha", "beta"), target_n=12)
    answer(study, 12, percent=lambda person, x, y: 50 + (person % 3 - 1) * (1 if x > y else -1) * 20)
    study = closed(study)
    limits = report(study)["answer"]["limits"]
    assert limits[0] == "beta and alpha are equally good" and "for other prompts" in limits[-1]
    study.assignments.update(origin="robot")
    assert report(study, origins=["robot"])["answer"]["limits"][0] == "people think so: robots answered"
    assert found["limits"] == []


def test_hidden_outcomes_have_no_answer(owner):
    study = spa_study(owner, target_n=12)
    answer(study, 6, percent=lambda person, x, y: 90)
    result = report(study)
    assert result["answer"] == {"sentences": []} and not [one for one in result["tables"] if one["place"] == "answer"]


def test_three_systems_of_ratings_have_one_sentence_and_places(owner):
    study = closed_ratings(owner)
    result = report(study)
    (sentence,) = result["answer"]["sentences"]
    assert sentence.startswith("By mean rating: gamma is best; ")
    systems = table(result, "answer")
    assert [row["system"] for row in systems["rows"]][0] == "gamma" and systems["rows"][0]["places"] == "1"
    # The places are those of the table that has all methods.
    of_all = {row["system"]: (row["highest"], row["lowest"]) for row in table(result, "means")["rows"]}
    shown = {row["system"]: tuple(int(n) for n in re.findall(r"\d+", row["places"])) for row in systems["rows"]}
    assert {name: (places[0], places[-1]) for name, places in shown.items()} == of_all


def closed_ratings(owner):
    draft = draft_study(systems=("alpha", "beta", "gamma"), owner=owner, target_n=12)
    add_rating(draft, position=1, m=3)
    study = launched(draft, owner)
    answer(study, 12, rating=lambda person, system: 5 if system == "gamma" else 1 + (person + len(system)) % 3)
    return closed(study)


def test_texts_to_paste_have_every_sentence_and_are_escaped(owner):
    study = finished(owner, systems=("a_b", "c*|d"))
    result = report(study)
    texts = {name: render_answer(result, name) for name in ("txt", "md", "tex")}
    for conclusion in result["conclusions"]:
        assert f"{conclusion['claim']} {conclusion['text']}" in texts["txt"]
        assert all(warning["text"] in texts["txt"] for warning in conclusion["warnings"])
    assert result["answer"]["methods"] in texts["txt"]
    assert "c\\*\\|d" in texts["md"] and r"a\_b" in texts["tex"] and "a_b" not in texts["tex"]
    systems = (
        table(result, "answer") if any(one["place"] == "answer" for one in result["tables"]) else result["tables"][0]
    )
    rows = render_table(systems, "md").splitlines()
    bars = [len(re.findall(r"(?<!\\)\|", line)) for line in rows if line.startswith("|")]
    assert len(set(bars)) == 1 and len(bars) == 2 + len(systems["rows"])
    title, *plain = render_table(systems | {"note": ""}, "txt").splitlines()
    assert title == systems["title"]
    assert {line.count("\t") for line in plain} == {len(layouts.nonempty_columns(systems)) - 1}


def test_tables_that_are_open_have_at_most_seven_columns_with_the_number_and_its_interval(owner):
    result = report(finished(owner))
    context = report_page.report_context(result)
    shown = [*context["systems"], *context["compared"], *context["reasons"]]
    assert shown and max(len(one["heads"]) for one in shown) <= report_page.MOST_COLUMNS
    narrowed = [one for one in shown if one["is_narrowed"]]
    assert narrowed and {one["name"] for one in narrowed} == {one["name"] for one in context["whole"]}
    (expected,) = context["compared"]
    assert [head["text"] for head in expected["heads"]][:5] == ["System x", "System y", "P[x > y]", "95% CI", "adj. p"]
    # Every table of the result is somewhere on the page.
    everywhere = [*shown, *context["rest"], *(one for paper in context["papers"] for one in paper["tables"])]
    assert sorted(one["name"] for one in everywhere) == sorted(one["name"] for one in result["tables"])


def test_what_is_as_in_a_paper_is_folded_and_open_in_a_study_of_its_template(client, owner):
    study = finished(owner)
    run_analysis(study, QUICK, by=owner)
    client.force_login(owner)
    address = reverse("analysis", args=[study.pk, 1])
    assert "<details><summary>As in Ethayarajh and Jurafsky 2022</summary>" in client.get(address).content.decode()
    stored = dict(study.analyses.get().result)
    assert "template" not in stored["study"]
    stored["study"] = stored["study"] | {"template": "story_writers"}
    assert [paper["is_open"] for paper in report_page.report_context(stored)["papers"]] == [True]
    stored["study"] = stored["study"] | {"template": "human_or_machine"}
    assert [paper["is_open"] for paper in report_page.report_context(stored)["papers"]] == [False]


def test_a_draft_keeps_the_template_of_its_paper(owner):
    kept = {one.slug: create_draft_from_template(one, owner).template for one in STUDY_TEMPLATES}
    assert kept == {one.slug: one.slug if one.is_from_paper else "" for one in STUDY_TEMPLATES}


def test_a_report_of_an_earlier_version_says_what_it_lacks(client, owner, monkeypatch):
    study = finished(owner)
    monkeypatch.setattr("analysis.report.build.build_answer", lambda blocks: ({}, []))
    monkeypatch.setattr("analysis.report.build.methods_paragraph", lambda *facts: "")
    run = run_analysis(study, QUICK, by=owner)
    earlier = {name: value for name, value in run.result.items() if name != "answer"}
    assert report_page.report_context(earlier)["answer"] is None
    client.force_login(owner)
    context_of = report_page.report_context
    monkeypatch.setattr(report_page, "report_context", lambda stored, *shown: context_of(earlier, *shown))
    page = client.get(reverse("analysis", args=[study.pk, 1])).content.decode()
    assert "are not computed in this version of the report" in page and ">Analyse again</button>" in page
    assert "beta was preferred to alpha" in page


def test_the_files_of_the_answer(client, owner):
    study = finished(owner)
    run = run_analysis(study, QUICK, by=owner)
    client.force_login(owner)
    for name, kind in (("txt", "text/plain"), ("md", "text/markdown"), ("tex", "text/x-tex")):
        found = client.get(reverse("analysis_answer", args=[study.pk, 1, name]))
        assert found.content.decode() == render_answer(run.result, name) and found["Content-Type"].startswith(kind)
        assert client.get(reverse("analysis_table", args=[study.pk, 1, "table1", name])).status_code == 200
    assert client.get(reverse("analysis_answer", args=[study.pk, 1, "doc"])).status_code == 404
    client.logout()
    assert client.get(reverse("analysis_answer", args=[study.pk, 1, "md"])).status_code == 302
