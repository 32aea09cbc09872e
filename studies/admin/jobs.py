"""The page of a background job, and its state as JSON."""

from django.contrib import admin, messages
from django.http import Http404, HttpResponseNotAllowed, HttpResponseRedirect, JsonResponse
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html

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
}
# The page of a finished job's result: kind > name of a URL that takes the study's id.
RESULT_URL_NAMES = {"launch": "new_study_link"}
LONGEST = 200  # characters of an outcome in the list; the job's page shows all of it
# The part of a finished job's result that lists show. Outcomes are left to pages that check who may see them.
RESULT_TEXTS = {
    "launch": "{batches} batches drawn",
    "analyse": "analysis {number}",
    "export": "{rows} rows of {table}",
    "import": "{rows} rows, {problems} problems",
}


def job_title(job: Job) -> str:
    """Return the title of a job."""
    return TITLES.get(job.kind, job.kind.replace("_", " ").capitalize())


def job_status_text(job: Job) -> str:
    """Return the result of a job in words, or its progress."""
    if job.state == Job.State.RUNNING:
        doing = job.doing or "Running"
        return f"{doing}, {job.done} of {job.total}" if job.total else doing
    result = job.result if isinstance(job.result, dict) else {}
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


def _is_allowed(request, action: Action, job: Job) -> bool:
    return (
        is_request_allowed(request, action, job.study_id)
        if job.study_id
        else is_owner_or_admin(request.user, job.by_id)
    )


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

    @admin.display(description="job", ordering="kind")
    def job_link(self, job):
        return format_html('<a href="{}">{}</a>', reverse("admin:studies_job_page", args=[job.code]), job_title(job))

    @admin.display(description="result", ordering="state")
    def status_text(self, job):
        text = job_status_text(job)
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
        is_running = job.state in UNFINISHED_STATES
        context = {
            **self.admin_site.each_context(request),
            "title": job_title(job),
            "opts": self.opts,
            "job": job,
            "study": job.study,
            "tabs": workflow.study_tabs(request, job.study) if job.study else [],
            "subtitle": job.study.title if job.study else None,
            "outcome": job_status_text(job),
            "is_running": is_running,
            "doing": job.doing or (STARTS_AFTER_OTHERS if job.kind in jobs.batch_kinds() else STARTS_SOON),
            "is_stuck": job.state == Job.State.WAITING and not jobs.is_runner_alive(),
            "may_cancel": self._may_cancel(request, job),
            "json_url": reverse("admin:studies_job_json", args=[job.code]),
            "cancel_url": reverse("admin:studies_job_cancel", args=[job.code]),
            "result_url": self._result_url(job),
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
                    request, "The job will stop at its next step. This page then says what it had stored before."
                )
        return HttpResponseRedirect(reverse("admin:studies_job_page", args=[job.code]))
