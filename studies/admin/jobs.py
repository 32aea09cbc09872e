"""Long work: a page that shows where it is, and the same as JSON."""

from django.contrib import admin, messages
from django.http import Http404, HttpResponseNotAllowed, HttpResponseRedirect, JsonResponse
from django.template.response import TemplateResponse
from django.urls import path, reverse

from .. import jobs
from ..models import Job
from . import life
from .access import EDIT, ReadOnly, VisibleStudies, may

RUNNING = (Job.State.WAITING, Job.State.RUNNING)
TITLES = {"launch": "Launching the study"}
# Where a finished job's result is looked at: (kind) > name of an address that takes the study's id.
RESULTS = {"launch": "admin:annotators_collecting"}


@admin.register(Job)
class JobAdmin(ReadOnly):
    list_display = ("kind", "study", "state", "doing", "how_far", "created_at", "by")
    list_filter = ("state", VisibleStudies)
    list_select_related = ("study", "by")
    list_per_page = 50
    list_display_links = None
    actions = None

    def has_module_permission(self, request):
        return False  # jobs are met from the page that asked for them

    def has_view_permission(self, request, obj=None):
        if obj is not None and obj.study_id is None:
            return request.user.is_superuser or obj.by_id == request.user.pk
        return request.user.is_active and request.user.is_staff and (obj is None or may(request, obj.study_id))

    @admin.display(description="done")
    def how_far(self, job):
        return f"{job.done} of {job.total}" if job.total else ""

    def get_urls(self):
        wrap = self.admin_site.admin_view
        return [
            path("<uuid:code>/", wrap(self.page), name="studies_job_page"),
            path("<uuid:code>.json", wrap(self.as_json), name="studies_job_json"),
            path("<uuid:code>/cancel/", wrap(self.cancel), name="studies_job_cancel"),
            *super().get_urls(),
        ]

    def _job(self, request, code) -> Job:
        job = Job.objects.select_related("study", "by").filter(code=code).first()
        if job is None or not self.has_view_permission(request, job):
            raise Http404("There is no such job.")
        return job

    def _may_cancel(self, request, job) -> bool:
        return job.state in RUNNING and (
            may(request, job.study_id, EDIT) if job.study_id else job.by_id == request.user.pk
        )

    def page(self, request, code):
        job = self._job(request, code)
        is_running = job.state in RUNNING
        context = {
            **self.admin_site.each_context(request),
            "title": TITLES.get(job.kind, job.kind.replace("_", " ").capitalize()),
            "opts": self.opts,
            "job": job,
            "study": job.study,
            "life": life.line(job.study) if job.study else [],
            "subtitle": job.study.title if job.study else None,
            "is_running": is_running,
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
        return life.address(RESULTS[job.kind], job.study_id) if job.kind in RESULTS else ""

    def as_json(self, request, code):
        job = self._job(request, code)
        return JsonResponse(
            {
                "code": str(job.code), "kind": job.kind, "state": job.state, "doing": job.doing, "done": job.done,
                "total": job.total, "error": job.error, "url": self._result_url(job),
            }
        )  # fmt: skip

    def cancel(self, request, code):
        job = self._job(request, code)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self._may_cancel(request, job):
            messages.warning(request, "This has ended already.")
        elif jobs.cancel(job):
            messages.info(request, "It will stop at its next step. What was done so far is undone.")
        return HttpResponseRedirect(reverse("admin:studies_job_page", args=[job.code]))
