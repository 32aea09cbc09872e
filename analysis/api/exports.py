"""API views of analyses, jobs, exported tables, the codebook and the archive."""

from typing import Any

from django.db import models
from django.http import FileResponse, Http404, HttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.generics import ListAPIView, RetrieveAPIView
from rest_framework.response import Response

from analysis.data import exports
from analysis.data.blinding import check_outcomes_visible
from analysis.data.export_codebook import build_export_codebook, build_export_codebook_markdown
from analysis.data.exports import build_permitted_selection, request_export
from analysis.data.flat_rows import Selection
from analysis.metrics.dataset import script
from analysis.models import AnalysisRun, Figure, ReportLink, StudiesComparison
from analysis.report import pdf
from analysis.report.archive import archive_stream
from analysis.report.between_studies import KIND as COMPARE_STUDIES
from analysis.report.between_studies import request_comparison, visible_comparisons
from analysis.report.link_views import link_url
from analysis.report.links import create_link, revoke_link
from analysis.report.pdf import check_report_visible
from analysis.report.runs import request_analysis
from analysis.report.verdicts import find_claim, planned_claims_of, verdict_of, verdicts_of
from studies.access import Action, check_draw_is_readable
from studies.models import Job, Study
from studies.services import jobs
from studies.services.lifecycle import ActionRefused

from . import serializers as shapes
from .base import MEDIA_TYPES, JobMixin, PostMixin, StudyView, download_response
from .permissions import get_api_token
from .query import ORIGINS, RAW, WITHDRAWN, Parameter, integer_parser, parse_single_line
from .renderers import FieldError
from .uploads import require_json_object
from .waiting import WaitMixin


class AnalysisView(StudyView):
    tag = "analyses"
    queryset = AnalysisRun.objects.select_related("by").prefetch_related(
        models.Prefetch("figures", Figure.objects.defer("svg", "pdf").order_by("name"))
    )


class AnalysesView(JobMixin, AnalysisView, ListAPIView):
    """List the analyses of a study. POST starts one."""

    write_action = Action.ANALYSE
    summaries = {"GET": "Analyses", "POST": "Start an analysis; returns the job to poll"}
    queryset = AnalysisView.queryset.defer("result")
    serializer_class = shapes.AnalysisSerializer
    documented_body = shapes.AnalysisRequestSerializer
    job_kind = "analyse"

    def start_job(self, token: str | None) -> Job:
        return request_analysis(self.study, self.request.user, require_json_object(self.request), token)


class AnalysisDetailView(AnalysisView, RetrieveAPIView):
    """One analysis with its result."""

    summaries = {"GET": "An analysis with its result"}
    lookup_field = "number"
    serializer_class = shapes.AnalysisResultSerializer

    def get_object(self) -> AnalysisRun:
        run = super().get_object()
        check_report_visible(run)
        return run


def _reason_without_analysis(study: Study) -> str:
    if study.is_draft:
        return "The study is a draft: there is a verdict after its launch, its answers and a report."
    return "There is no analysis yet. Start one, or ask a person to make the report."


class VerdictView(StudyView, RetrieveAPIView):
    """What the newest analysis decides about the planned comparisons, or about one claim such as "new beats old"."""

    tag = "analyses"
    summaries = {"GET": "The verdict about each planned comparison, or about one claim"}
    parameters = (
        Parameter("claim", parse_single_line, "One claim in words, as the list has it. Default: all.", "", str),
        Parameter("analysis", integer_parser(1), "Number of the analysis. Default: the newest.", None, int),
    )
    serializer_class = shapes.VerdictSerializer

    def get_object(self) -> dict[str, Any]:
        runs = self.study.analyses.order_by("-number")
        number = self.values["analysis"]
        run = (runs.filter(number=number) if number is not None else runs).first()
        if run is None and number is not None:
            raise Http404
        state: dict[str, Any] = {"state": self.study.state, "analysis": None, "reason": "", "claims": []}
        claim, claims = self.values["claim"], []
        if run is None:
            reason = _reason_without_analysis(self.study)
        else:
            check_report_visible(run)
            claims, outcomes = verdicts_of(run.result), run.result["outcomes"]
            reason = outcomes["reason"] if outcomes["is_hidden"] else run.result.get("no_conclusion", "")
        if claim and claims:
            claims = [verdict_of(claims, claim)]
        elif claim:
            find_claim(planned_claims_of(self.study), claim)
        return state | {"analysis": run and run.number, "reason": reason, "claims": claims}


class ReportLinkView(StudyView):
    tag = "analyses"
    read_action = write_action = Action.SHARE
    queryset = ReportLink.objects.select_related("run__study", "by").defer("run__result")
    serializer_class = shapes.ReportLinkSerializer


class ReportLinksView(PostMixin, ReportLinkView, ListAPIView):
    """Read-only links to analyses, for people without an account. Only owners list, make and revoke them."""

    summaries = {"GET": "Read-only links to analyses", "POST": "Make a read-only link; its address is shown only now"}
    body_serializer_class = shapes.ReportLinkRequestSerializer
    result_serializer_class = shapes.ReportLinkMadeSerializer
    success_status = 201

    def perform(self, analysis: int, **sent: Any) -> ReportLink:
        run = self.study.analyses.filter(number=analysis).first()
        if run is None:
            raise FieldError("analysis", f"The study has no analysis {analysis}. Use the number of one in the list.")
        link: Any
        link, token = create_link(run, self.request.user, **sent)
        link.url = link_url(token)
        return link

    def name_of_secret(self, data: Any) -> str:
        return f"link {data['number']}"


class RevokeReportLinkView(PostMixin, ReportLinkView):
    """End a link. It cannot be made to work again."""

    summaries = {"POST": "Revoke a read-only link"}
    lookup_url_kwarg = "link"

    def perform(self) -> ReportLink:
        link = self.get_object()
        revoke_link(link, self.request.user)
        return link


class AnalysisPdfView(JobMixin, AnalysisView):
    """A report as PDF. While its job waits or runs, the answer is 202 with the job. The file is deleted after a week; POST makes it again."""

    read_action = Action.EXPORT
    write_action = Action.ANALYSE
    summaries = {"GET": "The PDF of a report", "POST": "Make the PDF of a report; returns the job to poll"}
    lookup_field = "number"
    media_type, response_type = "application/pdf", OpenApiTypes.BINARY
    other_results_of_read = {202: shapes.JobSerializer}
    throttle_scope = "export"
    job_kind = pdf.KIND

    def get(self, request, code, number):
        run = self.get_object()
        check_report_visible(run)
        job = pdf.newest_pdf_job(run)
        if job and job.ended_at is None:
            return self.answer(job)
        if job is None or (path := exports.export_file_path(job)) is None:
            raise Http404
        name = pdf.file_name(run)
        return FileResponse(path.open("rb"), as_attachment=True, filename=name, content_type=self.media_type)

    def start_job(self, token: str | None) -> Job:
        return pdf.request_pdf(self.get_object(), self.request.user, token)


class StudiesComparisonView(StudyView):
    tag = "analyses"
    queryset = StudiesComparison.objects.all()

    def get_queryset(self):
        rows = visible_comparisons(self.study, self.request.user, get_api_token(self.request))
        return rows.defer("figure_svg", "figure_pdf")


class StudiesComparisonsView(JobMixin, StudiesComparisonView, ListAPIView):
    """List the comparisons of a study with others. POST starts one."""

    write_action = Action.ANALYSE
    summaries = {"GET": "Comparisons with other studies", "POST": "Compare studies; returns the job to poll"}
    serializer_class = shapes.StudiesComparisonSerializer
    body_serializer_class = shapes.StudiesComparisonRequestSerializer
    job_kind = COMPARE_STUDIES

    def start_job(self, token: str | None, **sent: Any) -> Job:
        return request_comparison(self.study, self.request.user, sent, token, get_api_token(self.request))


class StudiesComparisonDetailView(StudiesComparisonView, RetrieveAPIView):
    """One comparison of studies with its result."""

    summaries = {"GET": "A comparison of studies with its result"}
    lookup_field = "number"
    serializer_class = shapes.StudiesComparisonResultSerializer


class JobView(StudyView):
    tag = "analyses"
    queryset = Job.objects.all()
    serializer_class = shapes.JobSerializer
    lookup_field, lookup_url_kwarg = "code", "job"


class JobsView(JobView, ListAPIView):
    """The background jobs of a study."""

    summaries = {"GET": "Jobs"}


class JobDetailView(WaitMixin, JobView):
    """The progress and the result of a job.

    With ``wait`` and the ETag of an earlier answer as If-None-Match, it answers when the job ends or does something else.
    """

    summaries = {"GET": "A job with its progress and result"}
    look_seconds = 1.0

    def watched(self) -> Any:
        job = self.get_object()
        return job.state, job.doing


class JobCancelView(PostMixin, JobView):
    """Cancel a job: one that waits at once, one that runs at its next step. A cancelled import leaves nothing of its file."""

    summaries = {"POST": "Cancel a job"}
    write_action = Action.CANCEL

    def perform(self) -> Job:
        job = self.get_object()
        if not jobs.request_cancel(job, self.request.user):
            raise ActionRefused("The job has already ended. There is nothing to cancel.")
        job.refresh_from_db()
        return job


class JobFileView(JobView):
    """The file of an export job. It is deleted after a week."""

    tag = "exports"
    read_action = Action.EXPORT
    summaries = {"GET": "The file of an export job"}
    media_type, response_type = "application/octet-stream", OpenApiTypes.BINARY
    other_media_types = tuple(sorted({one.partition(";")[0] for one in MEDIA_TYPES.values()}))
    throttle_scope = "export"
    queryset = Job.objects.filter(kind="export", state=Job.State.DONE)

    def get(self, request, code, job):
        export_job = self.get_object()
        if (path := exports.export_file_path(export_job)) is None:
            raise Http404
        check_outcomes_visible(self.study, export_job.arguments["origins"])
        if exports.TABLES[export_job.arguments["table"]].shows_draw:
            check_draw_is_readable(request.user, self.study)
        table, form = export_job.arguments["table"], export_job.arguments.get("format", "parquet")
        return FileResponse(
            path.open("rb"), as_attachment=True, filename=f"{table}.{form}", content_type=MEDIA_TYPES[form]
        )


class ExportView(StudyView):
    """Stream one table from one snapshot of the database. The header X-Heval-Rows gives the number of rows."""

    tag = "exports"
    read_action = Action.EXPORT
    response_type: Any = OpenApiTypes.STR
    throttle_scope = "export"
    table = form = ""

    def selection(self) -> Selection:
        chosen = [self.values[name] for name in ("origins", "withdrawn") if name in self.values]
        return build_permitted_selection(self.table, self.study, *chosen, by=self.request.user)

    def get(self, request, code):
        blocks = exports.open_export_stream(self.table, self.form, self.selection(), raw=self.values.get("raw", False))
        if request.method == "HEAD":
            blocks.close()
        name = f"{self.table}-{str(self.study.code)[:8]}.{self.form}"
        return download_response(blocks, name, MEDIA_TYPES[self.form], X_Heval_Rows=blocks.n_rows)


class ExportHashView(ExportView):
    """The sha256 and number of rows of an export, to check a download."""

    response_type = shapes.ExportHashSerializer

    def get(self, request, code):
        digest, rows = exports.hash_and_count_export(
            self.table, self.form, self.selection(), raw=self.values.get("raw", False)
        )
        return Response({"sha256": digest, "rows": rows})


def build_export_file_and_hash_views() -> dict[str, Any]:
    """Return a view for each table and format, and one for its hash, each with its own parameters and description."""
    views = {}
    for table, declared in exports.TABLES.items():
        for form in exports.BLOCK_MAKERS if declared.is_streamed else ():
            if form not in declared.formats:
                continue
            content_type = MEDIA_TYPES[form]
            about_people = (ORIGINS, WITHDRAWN) if declared.is_about_people else ()
            parameters = (*about_people, *((RAW,) if form == "csv" else ()))
            own = {"table": table, "form": form, "parameters": parameters}
            file_summary = f"All {table} as {form.upper()}, from one snapshot"
            hash_summary = f"The current sha256 of {table} as {form.upper()}, and its number of rows"
            views[f"{table}.{form}"] = ExportView.as_view(
                **own, summaries={"GET": file_summary}, media_type=content_type.partition(";")[0]
            )
            views[f"{table}.{form}.sha256"] = ExportHashView.as_view(**own, summaries={"GET": hash_summary})
    return views


class ExportScriptView(StudyView):
    """A script that prints the headline of the study from the file headline.csv."""

    tag = "exports"
    media_type, response_type = "text/plain", OpenApiTypes.STR
    name = ""

    def get(self, request, code):
        return HttpResponse(script(self.name), content_type="text/plain; charset=utf-8")


class ExportsView(JobMixin, StudyView):
    """Start an export job. The page Exports lists the tables, each with its formats."""

    tag = "exports"
    write_action = Action.ANALYSE
    summaries = {"POST": "Start an export to a file; returns the job to poll"}
    body_serializer_class = shapes.ExportRequestSerializer
    job_kind = "export"

    def start_job(self, token: str | None, **sent: Any) -> Job:
        return request_export(self.study, by=self.request.user, request_token=token, **sent)


class CodebookView(StudyView):
    """The meaning of every column, with questions, scales, systems and arms, as JSON."""

    tag = "exports"
    summaries = {"GET": "The codebook"}
    response_type = OpenApiTypes.OBJECT

    def get(self, request, code):
        return Response(build_export_codebook(self.study))


class CodebookMarkdownView(StudyView):
    """The codebook in Markdown."""

    tag = "exports"
    summaries = {"GET": "The codebook in Markdown"}
    media_type, response_type = "text/markdown", OpenApiTypes.STR

    def get(self, request, code):
        return HttpResponse(build_export_codebook_markdown(self.study), content_type="text/markdown; charset=utf-8")


class ArchiveView(StudyView):
    """One zip with design, stimuli, answers, analyses, figures and codebook, and a hash of each file."""

    tag = "exports"
    read_action = Action.EXPORT
    summaries = {"GET": "Design, data, results and codebook in one zip"}
    media_type, response_type = "application/zip", OpenApiTypes.BINARY
    throttle_scope = "export"

    def get(self, request, code):
        blocks = archive_stream(self.study, by=request.user)
        if request.method == "HEAD":
            blocks.close()
        return download_response(blocks, f"heval-{str(self.study.code)[:8]}.zip", self.media_type)
