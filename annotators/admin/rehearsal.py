"""Admin page of rehearsals: a button to start one, its progress, and the last report."""

from typing import TYPE_CHECKING

from django import forms
from django.contrib import messages
from django.http import HttpResponseRedirect
from django.urls import path, reverse

from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels import rehearsal_jobs
from studies.admin import study_page
from studies.models import Job
from studies.services import jobs

# The base of the mixin below, while types are checked.
if TYPE_CHECKING:
    from .panel import PanelAdminMixin as _Pages
else:
    _Pages = object


class RehearsalForm(forms.Form):
    people = forms.IntegerField(
        min_value=rehearsal_jobs.MIN_PEOPLE,
        max_value=rehearsal_jobs.MAX_PEOPLE,
        initial=rehearsal_jobs.DEFAULT_PEOPLE,
        label="number of robots",
        help_text="One for each way to end (at most eleven). All other robots finish normally.",
    )


class RehearsalAdminMixin(_Pages):
    """Admin views of rehearsals, mixed in beside PanelAdminMixin."""

    def get_urls(self):
        page = path("<int:pk>/rehearsal/", self.admin_site.admin_view(self.rehearsal_view), name="annotators_rehearsal")
        return [page, *super().get_urls()]

    def rehearsal_view(self, request, pk):
        """Show the rehearsal page. POST starts a rehearsal if none is running."""
        recruitment = self._get_recruitment_or_404(request, pk)
        form = RehearsalForm()
        if request.method == "POST":
            form = RehearsalForm(request.POST)
            if form.is_valid():
                rehearsal_jobs.get_or_create_rehearsal_job(recruitment, form.cleaned_data["people"], by=request.user)
                messages.success(request, "The rehearsal is starting.")
                return HttpResponseRedirect(reverse("admin:annotators_rehearsal", args=[pk]))
        rehearsals = rehearsal_jobs.rehearsal_jobs_of(recruitment)
        last, last_done = rehearsals.first(), rehearsals.filter(state=Job.State.DONE).first()
        running = last if last is not None and last.ended_at is None else None
        context = {
            "title": "Rehearsal",
            "recruitment": recruitment,
            "channel": REGISTRY[recruitment.channel],
            "form": form,
            "job": last,
            "is_running": running is not None,
            "is_stuck": running is not None and running.state == Job.State.WAITING and not jobs.is_runner_alive(),
            "done": last_done,
            "report": last_done.result if last_done else None,
        }
        return study_page.render_study_page(
            request,
            self.admin_site,
            "admin/annotators/rehearsal.html",
            recruitment.study,
            context,
            status=400 if form.errors else 200,
        )
