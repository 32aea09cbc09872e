"""The page of a background job, its state as JSON, and what other pages show of jobs that wait or run."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import Case, JSONField, Q, QuerySet, When
from django.db.models.functions import Now
from django.http import Http404, HttpResponseNotAllowed, HttpResponseRedirect, JsonResponse
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.http import url_has_allowed_host_and_scheme

from studies.services import jobs

from ..access import Action, check_owner_or_admin_or_404, check_permission_or_404, is_owner_or_admin, is_researcher
from ..models import Job
from . import workflow
from .permissions import ReadOnlyAdmin, StudyFilter, is_request_allowed

# Where the page says what a job does, until it has begun.
STARTS_SOON = "It will start in a moment."
STARTS_AFTER_OTHERS = "It will start after shorter jobs and the long jobs before it."
UNFINISHED_STATES = (Job.State.WAITING, Job.State.RUNNING)
TITLES = {
    "launch": "Launching the study",
    "analyse": "Analysing the answers",
    "export": "Writing a file for download",
    "report_pdf": "Making the PDF of a report",
    "import": "Reading an uploaded file",
    "stopping_check": "Checking the stopping rule",
    "panel_sync": "Asking the panel",
    "panel_notifications": "Reading a notification of the panel",
    "example_study": "Making the example study",
    "rehearsal": "Rehearsing with robots",
    "invented_report": "Making a report with invented answers",
    "estimate_pilot": "Reading a study as a pilot",
    "plan_size": "Simulating the planned study",
    "plan_strategies": "Simulating labelling strategies",
    "plan_test_questions": "Simulating answers to test questions",
    "compute_metrics": "Computing metrics",
    "compare_studies": "Comparing studies",
    "compare_metrics": "Comparing metrics with people",
    "calibrate": "Combining people and judges",
    "check_judge": "Comparing people and the judge",
    "screen_annotators": "Reading the answers to test questions",
    "deliver_event": "Sending an event",
}
# The page of a finished job's result: kind > name of a URL that takes the study's id.
RESULT_URL_NAMES = {"launch": "new_study_link"}
LONGEST = 200  # characters of an outcome in the list; the job's page shows all of it
# The part of a finished job's result that lists show. Outcomes are left to pages that check who may see them.
RESULT_TEXTS = {
    "launch": "{batches} batches drawn",
    "analyse": "analysis {number}",
    "export": "{rows} rows of {table}",
    "report_pdf": "PDF of analysis {number}",
    "import": "{rows} rows, {problems} problems",
}


def job_title(job: Job) -> str:
    """Return the title of a job."""
    return TITLES.get(job.kind, job.kind.replace("_", " ").capitalize())


def job_status_text(job: Job, stored: Any) -> str:
    """Return the result of a job in words, or its progress. ``stored``: the job's result, or None if no words depend on it."""
    if job.state == Job.State.RUNNING:
        doing = job.doing or "Running"
        return f"{doing}, {job.done} of {job.total}" if job.total else doing
    result = stored if isinstance(stored, dict) else {}
    if job.state != Job.State.DONE:
        kept = f" Stored before: {', '.join(result['stored'])}." if result.get("stored") else ""
        texts: dict[str, str] = {
            Job.State.WAITING: "Waiting to start",
            Job.State.FAILED: f"Failed: {job.error}{kept}",
        }
        if job.started_at and job.kind in jobs.kinds() and jobs.kinds()[job.kind].keeps_steps:
            kept = " What it had done before stays."
        return texts.get(job.state, f"Cancelled.{kept}" if kept else "Cancelled, nothing was changed")
    if job.kind == "rehearsal" and "is_ok" in result:
        return "Done: everything was as expected" if result["is_ok"] else "Done: something was not as expected"
    try:
        return f"Done: {RESULT_TEXTS[job.kind].format(**result)}"
    except KeyError:
        return "Done"


def _note_that_its_starter_saw_the_end(request, job: Job) -> None:
    """Store when the person who started an ended job saw that it had ended. The home page then says nothing about it any more."""
    if job.ended_at and job.seen_at is None and job.by_id == request.user.pk:
        Job.objects.filter(pk=job.pk, seen_at=None).update(seen_at=Now())


def _is_allowed(request, action: Action, job: Job) -> bool:
    return (
        is_request_allowed(request, action, job.study_id)
        if job.study_id
        else is_owner_or_admin(request.user, job.by_id)
    )


def running_jobs(request, found: QuerySet[Job]) -> list[dict[str, Any]]:
    """Return what ``admin/studies/_jobs.html`` shows of the jobs that wait or run, the oldest first."""
    unfinished = list(found.filter(state__in=UNFINISHED_STATES).defer("result").order_by("pk"))
    has_runner = jobs.is_runner_alive() if unfinished else True
    return [
        {
            "job": job,
            "title": job_title(job),
            "doing": job.doing or (STARTS_AFTER_OTHERS if job.kind in jobs.batch_kinds() else STARTS_SOON),
            "is_stuck": job.state == Job.State.WAITING and not has_runner,
            "may_cancel": _is_allowed(request, Action.CANCEL, job),
            "page_url": reverse("admin:studies_job_page", args=[job.code]),
            "cancel_url": reverse("admin:studies_job_cancel", args=[job.code]),
            "json_url": reverse("admin:studies_job_json", args=[job.code])
            if _is_allowed(request, Action.VIEW, job)
            else "",
        }
        for job in unfinished
    ]


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    list_display = ("job_link", "status_text", "study", "created_at", "by")
    list_filter = ("state", StudyFilter)
    list_select_related = ("study", "by")
    list_per_page = 50
    list_display_links = None
    actions = None

    def has_module_permission(self, request):
        return is_researcher(request.user)

    def has_view_permission(self, request, obj=None):
        return is_researcher(request.user) and (obj is None or _is_allowed(request, Action.VIEW, obj))

    def get_queryset(self, request):
        # A result can have hundreds of kilobytes, and few kinds have one that the list puts into words.
        in_words = Q(kind__in=[*RESULT_TEXTS, "rehearsal"]) | Q(state=Job.State.FAILED)
        result_in_words = Case(When(in_words, then="result"), output_field=JSONField())
        return super().get_queryset(request).defer("result").annotate(result_in_words=result_in_words)

    @admin.display(description="job", ordering="kind")
    def job_link(self, job):
        return format_html('<a href="{}">{}</a>', reverse("admin:studies_job_page", args=[job.code]), job_title(job))

    @admin.display(description="result", ordering="state")
    def status_text(self, job):
        text = job_status_text(job, job.result_in_words)
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"

    def get_urls(self):
        wrap = self.admin_site.admin_view
        return [
            path("<uuid:code>/", wrap(self.job_view), name="studies_job_page"),
            path("<uuid:code>.json", wrap(self.job_json_view), name="studies_job_json"),
            path("<uuid:code>/cancel/", wrap(self.cancel_view), name="studies_job_cancel"),
            *super().get_urls(),
        ]

    def _job(self, request, code) -> Job:
        job = Job.objects.select_related("study", "by").filter(code=code).first()
        if job is None:
            raise Http404("There is no such job.")
        if job.study_id is not None:
            check_permission_or_404(request.user, Action.VIEW, job.study_id)
        else:
            check_owner_or_admin_or_404(request.user, job.by_id)
        return job

    def _may_cancel(self, request, job) -> bool:
        return job.state in UNFINISHED_STATES and _is_allowed(request, Action.CANCEL, job)

    def job_view(self, request, code):
        job = self._job(request, code)
        _note_that_its_starter_saw_the_end(request, job)
        result_url = self._result_url(job)
        if result_url and "open" in request.GET:
            return HttpResponseRedirect(result_url)
        context = {
            **self.admin_site.each_context(request),
            "title": job_title(job),
            "opts": self.opts,
            "job": job,
            "study": job.study,
            "tabs": workflow.study_tabs(request, job.study) if job.study else [],
            "subtitle": job.study.title if job.study else None,
            "outcome": job_status_text(job, job.result),
            "running_jobs": running_jobs(request, Job.objects.filter(pk=job.pk)),
            "result_url": result_url,
            "home": reverse("admin:studies_study_change", args=[job.study_id])
            if job.study_id
            else reverse("admin:index"),
        }
        return TemplateResponse(request, "admin/studies/job.html", context)

    def _result_url(self, job) -> str:
        if job.state != Job.State.DONE:
            return ""
        if isinstance(job.result, dict) and str(job.result.get("url", "")).startswith("/"):
            return job.result["url"]
        if job.kind == "analyse" and job.study and isinstance(job.result, dict) and "number" in job.result:
            return workflow.reverse_or_empty("analysis", job.study.pk, job.result["number"])
        return (
            workflow.reverse_or_empty(RESULT_URL_NAMES[job.kind], job.study_id) if job.kind in RESULT_URL_NAMES else ""
        )

    def job_json_view(self, request, code):
        job = self._job(request, code)
        _note_that_its_starter_saw_the_end(request, job)
        return JsonResponse(
            {
                "code": str(job.code), "kind": job.kind, "state": job.state, "doing": job.doing, "done": job.done,
                "total": job.total, "error": job.error, "url": self._result_url(job),
            }
        )  # fmt: skip

    def cancel_view(self, request, code):
        job = self._job(request, code)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self._may_cancel(request, job):
            messages.warning(request, "This job has already ended. There is nothing to cancel.")
        elif jobs.request_cancel(job, request.user):
            job.refresh_from_db()
            if job.ended_at:
                messages.info(request, "The job is cancelled. It had not started, so nothing was changed.")
            else:
                messages.info(
                    request, "The job will stop at its next step. Its page then says what it had stored before."
                )
        came_from = request.POST.get("next", "")
        is_ours = url_has_allowed_host_and_scheme(came_from, {request.get_host()}, request.is_secure())
        return HttpResponseRedirect(came_from if is_ours else reverse("admin:studies_job_page", args=[job.code]))
