"""The PDF of a report: made by a job, complete, and the same for the same analysis."""

import pytest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from PIL import ImageFile

from analysis.report import pdf
from analysis.report.pdf import LANDSCAPE, PADDING, file_name, pdf_context, render_pdf
from analysis.report.runs import run_analysis
from annotators.participation.simulate import record_simulated_answers
from studies.models import Job, StudyMember
from studies.services import jobs
from studies.services.lifecycle import ActionRefused
from tests import study_command
from tests.analysis.api.rest import api_of, body_of
from tests.analysis.report.printed import cut_tables, missing, squeezed, text_of_pdf
from tests.analysis.report.reported import finished
from tests.builders import add_section, draft_study, launched, spa_study, user
from tests.conftest import skip_or_fail

pytestmark = pytest.mark.django_db
QUICK = {"resamples": 99}


@pytest.fixture
def weasyprint():
    try:
        import weasyprint

        # What WeasyPrint changes for the whole process is changed back only where a report is printed.
        ImageFile.LOAD_TRUNCATED_IMAGES = False
    except OSError:
        skip_or_fail("the libraries of Pango are not installed")
    return weasyprint


@pytest.fixture
def owner():
    return user()


def collecting(owner):
    """A report without outcomes, which is small."""
    study = spa_study(owner, with_surveys=False)
    return run_analysis(study, QUICK, by=owner)


def test_a_job_makes_the_file_that_page_and_rest_offer(weasyprint, client, owner):
    run = collecting(owner)
    study, api = run.study, api_of(owner)
    address = reverse("api-analysis-pdf", args=[study.code, run.number])
    page = reverse("analysis", args=[study.pk, run.number])
    client.force_login(owner)
    assert api.get(address).status_code == 404
    assert "PDF of this report" in client.get(page).content.decode()
    started = api.post(address, {})
    assert started.status_code == 202
    assert api.post(address, {}).json()["code"] == started.json()["code"], "a second one is not started beside it"
    waiting = api.get(address)
    assert (waiting.status_code, waiting.json()["state"]) == (202, "waiting")
    job = Job.objects.get(code=started.json()["code"])
    assert jobs.claim_and_run_job(job.pk)
    job.refresh_from_db()
    assert (job.state, job.result) == ("done", {"number": 1, "url": address}), job.error
    made = api.get(address)
    assert made.status_code == 200 and made["Content-Type"] == "application/pdf"
    content = body_of(made)
    assert client.post(reverse("analysis_pdf", args=[study.pk, 1])).url == address, "the page leads to the file"
    # The same analysis again gives the same bytes.
    assert content == render_pdf(study.analyses.get()) and content.startswith(b"%PDF")
    assert not ImageFile.LOAD_TRUNCATED_IMAGES
    text = text_of_pdf(content, with_margins=True)
    for words in (study.title, "Contents", "1/", run.at.strftime("%Y-%m-%d %H:%M"), run.result_sha256):
        assert squeezed(words) in text, words
    for words in ("Analyse again", "CSV", "Markdown", "Raw data", "PDF of this"):
        assert squeezed(words) not in text, words
    # Who withdrew meanwhile may be quoted in it.
    record_simulated_answers(study, 1, {"alpha": 0, "beta": 0, "gamma": 0})
    study.assignments.update(withdrawn_at=timezone.now())
    assert api.get(address).status_code == 404


def test_who_may_make_one(weasyprint, client, owner):
    run = collecting(owner)
    viewer = user("viewer")
    StudyMember.objects.create(study=run.study, user=viewer, role="viewer")
    address = reverse("analysis_pdf", args=[run.study.pk, 1])
    for name, status in ((viewer, 403), (user("stranger"), 404), (owner, 302)):
        client.force_login(name)
        assert client.post(address).status_code == status, name
    assert Job.objects.filter(kind=pdf.KIND).count() == 1


def test_without_the_package_the_message_names_it(client, owner, monkeypatch):
    run = collecting(owner)
    monkeypatch.setattr(pdf, "find_spec", lambda name: None)
    refused = api_of(owner).post(reverse("api-analysis-pdf", args=[run.study.code, 1]), {})
    assert refused.status_code == 409 and "weasyprint>=70" in refused.json()["detail"]
    client.force_login(owner)
    shown = client.post(reverse("analysis_pdf", args=[run.study.pk, 1]), follow=True).content.decode()
    assert "weasyprint&gt;=70" in shown
    assert not Job.objects.filter(kind=pdf.KIND).exists()
    monkeypatch.setitem(__import__("sys").modules, "weasyprint", None)
    with pytest.raises(ActionRefused, match="needs the optional package"):
        render_pdf(run)


def test_a_wide_table_is_printed_in_parts():
    heads = [{"text": "System", "is_number": False}, *({"text": f"n{at}", "is_number": True} for at in range(40))]
    row = [{"text": "alpha", "is_number": False}, *({"text": f"{at}.25", "is_number": True} for at in range(40))]
    table = {
        "name": "t",
        "title": "T",
        "heads": heads,
        "rows": [row, row],
        "note": "N",
        "warnings": [],
        "is_narrowed": 0,
    }
    first = pdf._in_parts(table, LANDSCAPE)
    parts = [first, *first["more"]]
    assert [head for part in parts for head in part["heads"][2:]] == heads[1:]
    for part in parts:
        assert [one["text"] for one in part["rows"][1][:2]] == ["2", "alpha"]
        assert sum(PADDING + len(one["text"]) for one in part["rows"][0]) <= LANDSCAPE
    assert [part["note"] for part in parts] == ["", "N"] and {part["name"] for part in parts} == {"t"}
    narrow = {**table, "heads": heads[:5], "rows": [row[:5]]}
    assert pdf._in_parts(narrow, LANDSCAPE) is narrow


@pytest.mark.slow
@pytest.mark.parametrize("source", ["", "https://example.org/texts"])
def test_texts_that_may_not_be_passed_on_are_left_out(owner, source):
    run = run_analysis(finished(owner, stimuli_source=source), QUICK, by=owner)
    shown = render_to_string("report/pdf.html", pdf_context(run))
    assert ("Write the tale number" in shown) is not bool(source) and ("its PDF" in shown) is bool(source)


def test_simulated_answers_and_withdrawals_are_on_the_first_page(owner):
    study = spa_study(owner, with_surveys=False)
    record_simulated_answers(study, 4, {"alpha": 0, "beta": 0.5, "gamma": 1})
    run = run_analysis(study, {**QUICK, "origins": ["robot"]}, by=owner)
    study.assignments.filter(pk=study.assignments.first().pk).update(withdrawn_at=timezone.now())
    text = render_to_string("report/pdf.html", pdf_context(study.analyses.get()))
    head = text.partition("</header>")[0]
    assert '<p class="mark">Simulated answers</p>' in head and "withdrawn since this analysis" in head
    assert file_name(run) == "simulated-analysis-1.pdf"


def test_the_command_writes_a_stored_report(weasyprint, owner, settings, tmp_path):
    run = collecting(owner)
    assert "404" in study_command.refusal("export", run.study.code, "report.pdf", "--analysis", "2")[1]
    settings.MEDIA_ROOT = tmp_path
    for options in (["--analysis", "1"], []):
        written = study_command.exported(run.study, "report.pdf", tmp_path, *options)
        assert written == render_pdf(run.study.analyses.get())


def best_and_worst(owner):
    study = draft_study(owner=owner)
    add_section(study, "best_worst")
    x, y = study.systems.order_by("name")[:2]
    study.contrasts.create(x=x, y=y, expected=">")
    study = launched(study)
    record_simulated_answers(study, 12, {"alpha": 0, "beta": 0.5, "gamma": 1})
    return study


# The stored site has all other protocols (tests/golden_site/test_pdf.py).
@pytest.mark.parametrize("make", [pytest.param(finished, marks=pytest.mark.slow), best_and_worst])
def test_the_whole_report_is_in_the_pdf(weasyprint, owner, monkeypatch, make):
    study = make(owner)
    origins = list(study.assignments.values_list("origin", flat=True).distinct())
    run = run_analysis(study, {**QUICK, "origins": origins}, by=owner)
    documents, write = [], weasyprint.Document.write_pdf
    monkeypatch.setattr(
        weasyprint.Document, "write_pdf", lambda self, *a, **k: documents.append(self) or write(self, *a, **k)
    )
    content = render_pdf(run.study.analyses.get())
    assert missing(run.result, content) == []
    assert cut_tables(documents[0]) == []
    assert any(table.get("more") for table in pdf_context(run)["rest"]), "no table was printed in parts"
    # Figures are drawn as vectors.
    assert b"/Subtype /Image" not in content
