"""A report as one PDF: the parts of its page with a style sheet for print, made by a job from the stored analysis.

The same analysis, texts and withdrawals give the same bytes on the same machine. WeasyPrint is optional, and slow to import, so
functions import it.
"""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.template.loader import render_to_string
from django.urls import resolve, reverse
from PIL import ImageFile

from analysis.data.blinding import check_outcomes_visible
from analysis.data.exports import export_file_path, new_export_file
from analysis.data.flat_rows import COUNTED_ORIGINS
from analysis.models import AnalysisRun
from annotators.counting import simulated_words
from studies.access import Action, check_permission_or_404
from studies.models import Job
from studies.services import jobs
from studies.services.lifecycle import ActionRefused
from studies.stimuli.images import ImageRefused, image_path

from .page import run_context

KIND = "report_pdf"
NOT_INSTALLED = (
    "A PDF needs the optional package WeasyPrint. Install it in heval's environment: pip install 'weasyprint>=70,<71'"
)
NO_LIBRARIES = (
    "A PDF needs the libraries of Pango and HarfBuzz. On Debian, install them with: "
    "apt-get install libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0"
)
SITE = "http://report.invalid"  # no file is fetched over the network: paths of this site are read from where they are stored
FONTS = "/fonts/"
PAGE_LINK = re.compile(' href="[^#"][^"]*"')  # to pages that need an account. Quotes in texts are escaped.
# The width of a page in characters of a table, in portrait and in landscape format, and what the padding of a column takes.
PORTRAIT, LANDSCAPE, PADDING = 106, 158, 2
UNBROKEN = 32  # characters; longer texts in a table are broken into lines that are at least so wide
# The columns that each part of a table begins with: the number of the row, and at most so many texts that name it.
NUMBERED, NUMBER_WIDTH, MOST_NAMES = {"text": "Row", "is_number": True}, 3 + PADDING, 2


def request_pdf(run: AnalysisRun, by, request_token: str | None = None) -> Job:
    """Return the job that makes the PDF of a report, or submit one. Raises PermissionDenied and ActionRefused."""
    check_permission_or_404(by, Action.ANALYSE, run.study)
    check_report_visible(run)
    if find_spec("weasyprint") is None:
        raise ActionRefused(NOT_INSTALLED)
    if unfinished := _pdf_jobs(run).filter(ended_at=None).first():
        return unfinished
    return jobs.submit(KIND, study=run.study, by=by, request_token=request_token, number=run.number, format="pdf")


def check_report_visible(run: AnalysisRun) -> None:
    """Raise PermissionDenied while the outcomes in the report are hidden. A report that has none can always be shown."""
    if not run.result.get("outcomes", {}).get("is_hidden"):
        check_outcomes_visible(run.study, run.parameters.get("origins") or COUNTED_ORIGINS)


def _pdf_jobs(run: AnalysisRun):
    return Job.objects.filter(study=run.study_id, kind=KIND, arguments__number=run.number).order_by("-pk")


def newest_pdf_job(run: AnalysisRun) -> Job | None:
    """Return the newest job of a report's PDF that waits, runs or has its file. A file is deleted after a week."""
    job = _pdf_jobs(run).exclude(state__in=[Job.State.FAILED, Job.State.CANCELLED]).first()
    return job if job and (job.ended_at is None or export_file_path(job)) else None


def file_name(run: AnalysisRun) -> str:
    mark = simulated_words(run.parameters.get("origins", ())).replace(" ", "-")
    return f"{mark and f'{mark}-'}analysis-{run.number}.pdf"


def write_pdf_file(job: Job, progress: jobs.ProgressReporter) -> dict[str, Any]:
    """Make the PDF of the job's report and store it as a file."""
    progress(0, 1, "Laying out the pages")
    run = job.study.analyses.select_related("study", "by").get(number=job.arguments["number"])
    with new_export_file(job, "pdf") as temporary:
        Path(temporary).write_bytes(render_pdf(run))
    return {"number": run.number, "url": reverse("api-analysis-pdf", args=[job.study.code, run.number])}


def render_pdf(run: AnalysisRun) -> bytes:
    """Return the report as PDF. Raises ActionRefused if a package or a library is missing."""
    try:
        from weasyprint import HTML
    except ModuleNotFoundError:
        raise ActionRefused(NOT_INSTALLED) from None
    except OSError:
        raise ActionRefused(NO_LIBRARIES) from None
    # WeasyPrint lets Pillow accept files that are cut off, in the whole process.
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    fetcher = _fetcher(run)
    page = PAGE_LINK.sub("", render_to_string("report/pdf.html", pdf_context(run)))
    address = reverse("analysis", args=[run.study_id, run.number])
    html = HTML(string=page, base_url=SITE + address, url_fetcher=fetcher)
    content = html.write_pdf(pdf_identifier=run.result_sha256.encode(), pdf_variant="pdf/ua-1")
    if fetcher.failed:
        raise fetcher.failed
    return content


def pdf_context(run: AnalysisRun) -> dict[str, Any]:
    """Return the context of the page with all rows, and with tables that are too wide in parts."""
    context = run_context(run, shown_rows=None)
    for name in ("systems", "compared", "reasons", "opinions"):
        context[name] = [_in_parts(table, PORTRAIT) for table in context[name]]
    for name in ("whole", "rest"):
        context[name] = [_in_parts(table, LANDSCAPE) for table in context[name]]
    for paper in context["papers"]:
        paper["tables"] = [_in_parts(table, LANDSCAPE) for table in paper["tables"]]
    if run.study.stimuli_source and context["items"]:
        for compared in context["items"]["compared"]:
            for group in compared["groups"]:
                without: dict[str, Any] = {"texts": []} | ({"comments": []} if group["kind"] == "rewritten" else {})
                group["items"] = [item | without for item in group["items"]]
    simulated = simulated_words(run.result["parameters"]["origins"])
    return context | {"is_pdf": True, "simulated": simulated.capitalize()}


def _in_parts(table: dict[str, Any], width: int) -> dict[str, Any]:
    """Return the table with the columns that fit the width. ``more``: tables with the others, each with the columns that name a row."""
    heads, rows = table["heads"], table["rows"]
    # Words of a heading are not broken, numbers and short texts not even between words.
    widths = [
        PADDING
        + max(
            *map(len, head["text"].split(" ")),
            *(len(row[at]["text"]) if head["is_number"] else min(len(row[at]["text"]), UNBROKEN) for row in rows),
            0,
        )
        for at, head in enumerate(heads)
    ]
    if sum(widths) <= width:
        return table
    n_texts = next((at for at, head in enumerate(heads) if head["is_number"]), len(heads))
    n_names = next((n for n in range(min(n_texts, MOST_NAMES), 1, -1) if sum(widths[:n]) <= 0.6 * width), 1)
    groups: list[list[int]] = [[]]
    for at in range(n_names, len(widths)):
        if groups[-1] and sum(widths[one] for one in (*range(n_names), *groups[-1], at)) > width - NUMBER_WIDTH:
            groups.append([])
        groups[-1].append(at)
    if len(groups) == 1:
        return table
    parts = [
        {
            **table,
            "suffix": f"-{number}" if number > 1 else "",
            "part": f" (columns in part {number} of {len(groups)})",
            "heads": [NUMBERED, *heads[:n_names], *(heads[at] for at in group)],
            "rows": [
                [{"text": str(n), "is_number": True}, *row[:n_names], *(row[at] for at in group)]
                for n, row in enumerate(rows, 1)
            ],
            # What is about the whole table comes once, below its last part.
            **({"note": "", "warnings": (), "is_narrowed": False} if number < len(groups) else {}),
        }
        for number, group in enumerate(groups, 1)
    ]
    return parts[0] | {"more": parts[1:]}


def _fetcher(run: AnalysisRun):
    """Return what reads the addresses in the report. WeasyPrint leaves out what it cannot read; ``failed`` keeps the error."""
    import matplotlib
    from weasyprint.urls import URLFetcher, URLFetcherResponse

    svgs = dict(run.figures.values_list("name", "svg"))
    fonts = Path(matplotlib.get_data_path()) / "fonts" / "ttf"

    def read(path: str) -> tuple[bytes, str]:
        if path.startswith(FONTS):
            return (fonts / path.removeprefix(FONTS)).read_bytes(), "font/ttf"
        found = resolve(path)
        if found.url_name == "studies_media":
            return image_path(settings.MEDIA_ROOT, found.kwargs["name"]).read_bytes(), "image/webp"
        return svgs[found.kwargs["name"]].encode(), "image/svg+xml"

    class ReportFetcher(URLFetcher):
        failed: Exception | None = None

        def fetch(self, url: str, headers: Any = None) -> URLFetcherResponse:
            try:
                content, kind = read(urlsplit(url).path)
            except (ImageRefused, FileNotFoundError):
                raise  # an image that is no longer stored: its description is shown
            except Exception as error:
                self.failed = error
                raise
            return URLFetcherResponse(url, content, {"Content-Type": kind})

    return ReportFetcher()
