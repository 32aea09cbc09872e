"""Report pages: who may see them, what they print, and that nothing stored can break them."""

import csv
import io
import json
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from analysis.models import AnalysisRun
from analysis.protocols.blocks.sentences import build_conclusion_sentences
from analysis.protocols.rating import RatingAnalysis
from analysis.report.runs import run_analysis
from annotators.models import Assignment
from studies.models import Job, Study, StudyMember
from studies.services import jobs, lifecycle
from tests.analysis.protocols.answers import answer
from tests.analysis.report.reported import finished
from tests.builders import launched, spa_draft, spa_study, user

pytestmark = pytest.mark.django_db
QUICK = {"resamples": 199}
FORM = {"origins": ["live"], "level": "0.95", "resamples": "199", "star_scheme": "10/5/1"}


@pytest.fixture
def owner():
    return user()


@pytest.fixture
def study(owner):
    return finished(owner)


def member(study, name, role):
    one = user(name)
    StudyMember.objects.create(study=study, user=one, role=role)
    return one


def address(name, study, *rest):
    return reverse(name, args=[study.code if name.startswith("api-") else study.pk, *rest])


def test_who_may_look_and_who_may_run(client, study, owner):
    run_analysis(study, QUICK, by=owner)
    pages = [
        address("share", study),
        address("analyses", study),
        address("analysis", study, 1),
        address("analysis_result", study, 1),
        address("analysis_table", study, 1, "table1", "csv"),
        address("analysis_figure", study, 1, "forest", "svg"),
    ]
    for page in pages:
        assert client.get(page).status_code == 302, "anonymous people are sent to log in"
    expected = {"viewer": (200, 403), "editor": (200, 302), "coder": (403, 403), "": (404, 404)}
    for role, (look, run) in expected.items():
        client.force_login(member(study, f"a {role}", role) if role else user("stranger"))
        assert {client.get(page).status_code for page in pages} == {look}, role
        assert client.post(address("analysis_start", study), FORM).status_code == run, role
    assert client.get(address("analysis_start", study)).status_code == 405


EXPORTS = [f"api-export-{table}.{form}" for table in ("responses", "assignments") for form in ("csv", "jsonl")]
EXPORTS += ["api-codebook", "api-codebook-page"]


@pytest.mark.slow
def test_the_page_says_what_can_be_shared_before_anything_is_downloaded(client, study, owner, settings):
    settings.SITE_URL = "https://eval.example.org"
    run_analysis(study, QUICK, by=owner)
    client.force_login(owner)
    response = client.get(address("share", study))
    page = response.content.decode()
    assert "Content-Disposition" not in response.headers and study.designs.get().sha256 in page
    assert f'value="https://eval.example.org{address("analysis", study, 1)}"' in page
    for name in ("bundle", "api-archive"):
        assert f'href="{address(name, study)}" download' in page
        download = client.get(address(name, study))
        assert "attachment" in download.headers["Content-Disposition"]
        assert download.getvalue()  # read to its end, it gives back its place
    for name in EXPORTS:
        assert f'href="{address(name, study)}" download' in page
        assert client.get(address(name, study)).getvalue()
    home = client.get(reverse("admin:studies_study_change", args=[study.pk])).content.decode()
    assert f'<a href="{address("share", study)}">Share</a>' in home


def test_no_archive_is_offered_while_the_study_is_blind(client, owner):
    study = spa_study(owner, target_n=2)
    client.force_login(owner)
    page = client.get(address("share", study)).content.decode()
    assert "still collecting" in page and address("api-archive", study) not in page
    hidden = {name for name in EXPORTS if address(name, study) not in page}
    assert hidden == {"api-export-responses.csv", "api-export-responses.jsonl"}
    assert address("bundle", study) in page and "No analysis has been run yet" in page


@pytest.mark.parametrize(
    ("origins", "is_theirs"), [(("robot",), True), (("robot", "live"), False), (("robot", "imported"), False)]
)
def test_where_robots_alone_answered_the_files_hold_what_they_said(client, study, owner, origins, is_theirs):
    Assignment.objects.filter(study=study).update(origin="robot")
    first = Assignment.objects.filter(study=study).first()
    Assignment.objects.filter(pk=first.pk).update(origin=origins[-1])
    client.force_login(owner)
    page = client.get(address("share", study)).content.decode()
    assert ("Only robots have answered" in page, "Robots and withdrawn annotators are not included" in page) == (
        is_theirs,
        not is_theirs,
    )
    for name in EXPORTS:
        (link,) = re.findall(rf'href="({address(name, study)}[^"]*)" download', page)
        assert link.endswith("?origins=robot") == (is_theirs and "items" not in name and "codebook" not in name)
        rows = client.get(link).getvalue()
        if name == "api-export-assignments.csv":
            assert len(rows.splitlines()) == 1 + (12 if is_theirs else 1)


def test_the_form_says_whose_answers_there_are(client, study, owner):
    Assignment.objects.filter(pk=Assignment.objects.filter(study=study).first().pk).update(origin="robot")
    client.force_login(owner)
    page = " ".join(client.get(address("analyses", study)).content.decode().split())
    said = re.findall(r'(\w+)</label> <span class="quiet">(\d+) submitted, without withdrawals</span>', page)
    assert said == [("Live", "11"), ("Robot", "1"), ("Imported", "0")]
    ticked = re.findall(r'value="(\w+)"[^>]* checked', page)
    assert ticked == ["live"]
    Assignment.objects.filter(study=study).update(origin="robot")
    page = client.get(address("analyses", study)).content.decode()
    assert re.findall(r'value="(\w+)"[^>]* checked', page) == ["robot"]


@pytest.mark.slow
def test_the_form_starts_one_job_and_its_page_leads_to_the_report(client, study, owner):
    client.force_login(owner)
    for _ in range(2):
        answered = client.post(address("analysis_start", study), FORM | {"token": "abc123"})
    job = Job.objects.get(kind="analyse")
    assert answered.url == reverse("admin:studies_job_page", args=[job.code])
    assert b'content="3;url=?open"' in client.get(f"{answered.url}?open").content, "without script it leads on"
    jobs.claim_and_run_job(job.pk)
    assert client.get(f"{answered.url}?open").url == address("analysis", study, 1)
    page = client.get(address("analysis", study, 1)).content.decode()
    run = AnalysisRun.objects.get()
    for printed in (
        run.result_sha256,
        run.responses_sha256,
        run.design_sha256s[0],
        run.code_version,
        run.seed,
        "by researcher",
    ):
        assert printed in page, printed
    assert "beta was preferred to alpha, for exactly these prompts." in page and page.index(">Answer<") < page.index(
        ">Everything<"
    )


def test_a_failed_analysis_says_what_was_wrong(client, study, owner):
    client.force_login(owner)
    failed = jobs.submit("analyse", study=study, by=None, parameters={"level": 9})
    jobs.claim_and_run_job(failed.pk)
    page = client.get(reverse("admin:studies_job_page", args=[failed.code])).content.decode()
    assert "level: 9 is not accepted. Enter a number from 0.5" in page


def test_a_wrong_form_is_shown_again_with_the_field_named(client, study, owner):
    client.force_login(owner)
    answered = client.post(address("analysis_start", study), FORM | {"resamples": "7"})
    assert answered.status_code == 400 and "Resamples:" in answered.content.decode()
    assert not Job.objects.exists()


@pytest.mark.slow
def test_files_print_the_same_numbers_as_the_result(client, study, owner):
    run = run_analysis(study, QUICK, by=owner)
    client.force_login(owner)
    for table in run.result["tables"]:
        rows = list(
            csv.DictReader(
                io.StringIO(client.get(address("analysis_table", study, 1, table["name"], "csv")).content.decode())
            )
        )
        assert len(rows) == len(table["rows"])
        assert client.get(address("analysis_table", study, 1, table["name"], "json")).json() == table
        latex = client.get(address("analysis_table", study, 1, table["name"], "tex")).content.decode()
        assert latex.count(r"\\") >= len(rows) + 1 and r"\toprule" in latex and r"\end{table}" in latex
    table = next(one for one in run.result["tables"] if one["name"] == "table1")
    first = next(
        csv.DictReader(io.StringIO(client.get(address("analysis_table", study, 1, "table1", "csv")).content.decode()))
    )
    assert (
        float(first["p_xy"]) == table["rows"][0]["p_xy"]
        and float(first["p_xy_interval_low"]) == table["rows"][0]["p_xy_interval"][0]
    )
    whole = client.get(address("analysis_result", study, 1))
    assert json.loads(whole.content) == run.result
    assert client.get(address("analysis_figure", study, 1, "forest", "pdf")).content.startswith(b"%PDF")
    for wrong in (("table1", "exe"), ("nothing", "csv")):
        assert client.get(address("analysis_table", study, 1, *wrong)).status_code == 404


def test_hidden_outcomes_are_on_no_page_and_in_no_file(client, owner):
    study = spa_study(owner, target_n=12)
    answer(study, 6, percent=lambda person, x, y: 90 if x > y else 10)
    run_analysis(study, QUICK, by=owner)
    client.force_login(owner)
    page = client.get(address("analysis", study, 1)).content.decode()
    assert "still collecting" in page and "preferred" not in page and "forest" not in page
    assert json.loads(client.get(address("analysis_result", study, 1)).content)["blocks"] == []
    assert client.get(address("analysis_table", study, 1, "table1", "csv")).status_code == 404


@pytest.mark.slow
def test_a_report_made_while_collecting_leads_to_the_final_one(client, owner):
    study = spa_study(owner, target_n=12)
    answer(study, 6, percent=lambda person, x, y: 90 if x > y else 10)
    run_analysis(study, QUICK, by=owner)
    client.force_login(owner)
    early = address("analysis", study, 1)
    assert "Make the final one when the study is closed" in client.get(early).content.decode()
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    assert f'<a href="{address("analyses", study)}">make the final report</a>' in client.get(early).content.decode()
    run_analysis(Study.objects.get(pk=study.pk), QUICK, by=owner)
    assert f'<a href="{address("analysis", study, 2)}">Read the final report' in client.get(early).content.decode()
    assert "made while the study was collecting" not in client.get(address("analysis", study, 2)).content.decode()


def test_the_page_says_that_no_comparison_is_planned(client, owner):
    draft = spa_draft(owner=owner, target_n=2)
    draft.contrasts.all().delete()
    study = launched(draft, owner)
    answer(study, 2, percent=lambda person, x, y: 50)
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    run_analysis(Study.objects.get(pk=study.pk), QUICK, by=owner)
    client.force_login(owner)
    page = client.get(address("analysis", study, 1)).content.decode()
    assert "The study has no planned comparison" in page and "could be estimated" not in page


def test_a_number_is_under_its_head_in_the_first_column_too(client, study, owner):
    run_analysis(study, QUICK, by=owner)
    client.force_login(owner)
    page = client.get(address("analysis", study, 1)).content.decode()
    assert '<th scope="col" class="number">Rank</th>' in page and '<th scope="row" class="number">1</th>' in page


@pytest.mark.parametrize("n", [0, 1])
def test_hardly_anybody_gives_a_page(client, owner, n):
    study = finished(owner, n=n)
    run_analysis(study, QUICK, by=owner)
    client.force_login(owner)
    page = client.get(address("analysis", study, 1)).content.decode()
    assert ("Nothing can be said of" if n == 0 else "No test was possible") in page


def test_withdrawals_since_then_are_reported(client, study, owner):
    run_analysis(study, QUICK, by=owner)
    client.force_login(owner)
    assert "withdrawn since" not in client.get(address("analysis", study, 1)).content.decode()
    assignment = study.assignments.first()
    type(assignment).objects.filter(pk=assignment.pk).update(withdrawn_at=timezone.now())
    assert (
        "1 assignment was withdrawn since this analysis" in client.get(address("analysis", study, 1)).content.decode()
    )


@pytest.mark.slow
def test_hostile_names_are_printed_and_never_run(client, owner):
    study = finished(owner, systems=("<script>x</script>", '=HYPER("x")', "{{7*7}}\\input{x}%&_"))
    run_analysis(study, QUICK, by=owner)
    client.force_login(owner)
    page = client.get(address("analysis", study, 1)).content.decode()
    # The frame has scripts of its own, each with an address.
    assert page.count("<script") == page.count("<script src=") + page.count('<script type="module" src=')
    assert "&lt;script&gt;" in page and "{{7*7}}" in page
    svg = client.get(address("analysis_figure", study, 1, "forest", "svg")).content.decode()
    assert "<script" not in svg
    latex = client.get(address("analysis_table", study, 1, "table1", "tex")).content.decode()
    assert r"\input" not in latex and r"\textbackslash{}input\{x\}\%\&\_" in latex
    table = client.get(address("analysis_table", study, 1, "table1", "csv")).content.decode()
    assert "'=HYPER" in table


@pytest.mark.slow
@pytest.mark.only_on("sqlite")  # PostgreSQL's columns refuse these values themselves
def test_poison_rows_are_listed_and_the_page_is_shown(client, study, owner):
    poison = [
        "value = 9e999", "value = 'abc'", "received_at = 'yesterday'", "value = 1e300", "text = x'fffe41'",
        "text = replace(hex(zeroblob(500000)), '0', 'é')", "slot = '\u202e\u2066'", "value = -1",
    ]  # fmt: skip
    with connection.cursor() as cursor:
        for n, change in enumerate(poison):
            cursor.execute(
                f"UPDATE annotators_response SET {change} WHERE id = (SELECT id FROM annotators_response ORDER BY id LIMIT 1 OFFSET {n})"
            )
    run = run_analysis(study, QUICK, by=owner)
    client.force_login(owner)
    answered = client.get(address("analysis", study, 1))
    assert answered.status_code == 200 and len(answered.content) < 500_000
    page = answered.content.decode()
    listed = [problem["text"] for problem in run.result["problems"]]
    assert sum("outside" in text for text in listed) == 4, listed
    assert any("yesterday" in text for text in listed)
    assert "stored rows that could not be read" in page and "yesterday" in page


def test_a_scale_that_cannot_be_read_costs_its_question_alone(client, study, owner):
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL session_replication_role = replica")  # past the triggers
        cursor.execute("UPDATE studies_question SET scale = '[1]' WHERE key = 'overall'")
    run = run_analysis(study, QUICK, by=owner)
    client.force_login(owner)
    assert (
        "beta was preferred to alpha, for exactly these prompts."
        in client.get(address("analysis", study, 1)).content.decode()
    )
    assert any("unreadable" in problem["text"] for problem in run.result["problems"])
    assert not any("its analysis failed" in problem["text"] for problem in run.result["problems"])


def test_claims_that_cannot_be_counted_cost_their_protocol_alone(client, study, owner, monkeypatch):
    assert study.sections.filter(purpose="live", protocol="rating").exists()

    def broken(self, context):
        raise KeyError("criterion")

    monkeypatch.setattr(RatingAnalysis, "planned_claims", broken)
    result = run_analysis(study, QUICK, by=owner).result
    assert [one["claim"] for one in result["conclusions"]][0] == (
        "beta was preferred to alpha, for exactly these prompts."
    )
    assert {block["name"].partition(".")[0] for block in result["blocks"]}.isdisjoint({"rating"})
    (problem,) = result["problems"]
    assert problem["row"] == "protocol rating" and "could not be counted (KeyError)" in problem["text"]
    client.force_login(owner)
    assert "could not be counted (KeyError)" in client.get(address("analysis", study, 1)).content.decode()


def test_a_report_page_costs_a_fixed_number_of_queries(client, study, owner):
    run_analysis(study, QUICK, by=owner)
    client.force_login(owner)
    client.get(address("analysis", study, 1))
    with CaptureQueriesContext(connection) as seen:
        client.get(address("analysis", study, 1))
    assert len(seen) <= 8, [query["sql"][:90] for query in seen]


def test_warnings_stand_under_the_claim_that_they_weaken(client, owner):
    study = finished(owner, n=5)
    run = run_analysis(study, QUICK, by=owner)
    client.force_login(owner)
    warnings = run.result["conclusions"][0]["warnings"]
    assert [(one["code"], one["severity"]) for one in warnings][0] == ("few_clusters", "block")
    page = client.get(address("analysis", study, 1)).content.decode()
    results = page.partition('id="answer"')[2].partition("</section>")[0]
    first = results.partition("</ul></li>")[0]
    assert '<li class="block"><strong>No claim:</strong> Only 5 annotators are behind this number' in first
    assert first.index('class="claim"') < first.index("% to") < first.index("No claim:")
    # The lines in APA style have them, too, and the table at the end has the sentence and the code.
    assert page.count("<strong>No claim:</strong> Only 5 annotators") >= 2
    table = page.partition('id="table-warnings"')[2].partition("</table>")[0]
    assert "few_clusters" in table and "Only 5 annotators are behind this number" in table


def test_a_report_of_an_earlier_version_has_no_warnings(client, study, owner, monkeypatch):
    def sentences_without_warnings(blocks):
        return [
            {key: value for key, value in one.items() if key != "warnings"}
            for one in build_conclusion_sentences(blocks)
        ]

    monkeypatch.setattr("analysis.protocols.blocks.sentences.build_conclusion_sentences", sentences_without_warnings)
    monkeypatch.setattr("analysis.protocols.blocks.layouts.gravest_warnings_with_sentences", lambda warnings: [])
    run = run_analysis(study, QUICK, by=owner)
    assert run.result["conclusions"] and "warnings" not in run.result["conclusions"][0]
    client.force_login(owner)
    page = client.get(address("analysis", study, 1))
    assert page.status_code == 200 and "claim-warnings" not in page.content.decode()
