"""Pages outside the admin's classes: importing answers given elsewhere, and a new study's trial, launch and link.

Preview and confirmation of an import are shared with other imports.
"""

from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from annotators.imports import Options, reason_answers_not_importable
from annotators.models import Assignment, OutcomePay, Recruitment
from annotators.participation import link_actions
from annotators.pay.promises import pay_obstacles
from annotators.places.batch_plan import start_test_run
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.channels.generic import OpenLink
from annotators.recruitment.links import possible_early_ends, possible_outcomes
from studies.access import Action, check_permission_or_404, get_study
from studies.admin import launch, study_page, workflow
from studies.admin.permissions import is_request_allowed
from studies.admin.texts import facts_of
from studies.admin.views import render_page
from studies.imports.tables import run
from studies.models import Study
from studies.services import lifecycle
from studies.services.drafts import store_facts
from studies.stimuli.rows import ACCEPTED

from .recruitment import LINKS_SHOWN


class AnswersForm(forms.Form):
    file = forms.FileField(
        label="File",
        help_text="A table (CSV, JSON or a workbook): a row for each answer, for each output, or for each annotator.",
        widget=forms.FileInput(attrs={"accept": ACCEPTED}),
    )


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def answers_upload_page(request, pk) -> HttpResponse:
    """Choose a file of answers. The next page shows what each column is."""
    study = get_study(request.user, Action.EDIT, pk=pk)
    if obstacle := reason_answers_not_importable(study):
        return render_page(request, "import_frozen", study, 409 if request.method == "POST" else 200, fault=obstacle)
    form = AnswersForm(request.POST, request.FILES) if request.method == "POST" else AnswersForm()
    if form.is_bound and form.is_valid():
        file, options = form.cleaned_data["file"], Options(proposes_columns=True)
        try:
            upload = run.store_upload(
                file.chunks(),
                file.name,
                study_id=study.pk,
                user_id=request.user.pk,
                options=options.as_json(),
                kind="answers",
            )
            run.process_or_queue_upload(study, upload, request.user, is_confirmed=False)
        except lifecycle.ActionRefused as refused:
            form.add_error("file", str(refused))
        else:
            return HttpResponseRedirect(reverse("import_confirm", args=[study.pk, upload.token]))
    questions = [
        (section.position, question.key, question.text)
        for section in study.sections.prefetch_related("questions")
        for question in section.questions.all()
    ]
    return render_page(request, "import_answers", study, 400 if form.errors else 200, form=form, questions=questions)


# The last pages of a new study: try it, launch it, and copy its link.


# A site at one of these answers only on its own computer.
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


def qr_code(address: str) -> dict[str, Any]:
    """Return the QR code of an address: its width in squares, and an SVG path of the dark ones."""
    import segno

    rows = list(segno.make(address, micro=False, error="m").matrix_iter(border=2))
    dark = [(x, y) for y, row in enumerate(rows) for x, is_dark in enumerate(row) if is_dark]
    return {"size": len(rows), "path": "".join(f"M{x} {y}h1v1h-1z" for x, y in dark)}


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def new_study_try_page(request, pk) -> HttpResponse:
    """Let a researcher take part in a draft, here or on a phone. POST starts a test run; its address needs no account."""
    study = get_study(request.user, Action.EDIT, pk=pk)
    if not study.is_draft:
        return HttpResponseRedirect(reverse("admin:studies_study_change", args=[pk]))
    refusal = ""
    if request.method == "POST":
        try:
            if not study.sections.exists():
                raise lifecycle.ActionRefused("The study has no question. Choose one first.")
            start_test_run(study, request.user)
            return HttpResponseRedirect(f"{request.path}#run")
        except (lifecycle.ActionRefused, ValueError, TypeError) as refused:
            refusal = f"A test run is not possible yet. {refused}"
    test_runs = study.assignments.filter(origin=Assignment.Origin.TEST, source=None)
    newest = test_runs.filter(submitted_at=None, released_at=None).order_by("-pk").first()
    address = f"{settings.SITE_URL}/p/{newest.code}/" if newest else ""
    context = {
        "refusal": refusal,
        "run": newest,
        "address": address,
        "qr": qr_code(address) if newest else None,
        "is_local": urlsplit(settings.SITE_URL).hostname in LOCAL_HOSTS,
        "n_arms": study.arms.count(),
        "invented": workflow.reverse_or_empty("new_study_invented", pk),
    }
    return study_page.render_new_study_page(
        request, "admin/studies/new/try.html", study, "Try it", context, 422 if refusal else 200
    )


class LinkForm(forms.Form):
    """How people come to a new study, and what those get who cannot take part, if the account has not said it yet."""

    channel = forms.ChoiceField(label="How do people come?", widget=forms.RadioSelect)
    screened_out_pay = forms.DecimalField(
        label="Pay for people whom the first answers screen out", min_value=0, max_digits=7, decimal_places=2
    )
    full_pay = forms.DecimalField(
        label="Pay for people of a panel who find no place left",
        min_value=0,
        max_digits=7,
        decimal_places=2,
        required=False,
        help_text="Only if you choose a panel. 0 for nothing. You can change it for each link.",
    )

    def __init__(self, study: Study, user, data=None):
        offered = [channel for channel in REGISTRY.values() if channel.takes_new_links]
        offered.sort(key=lambda channel: (channel.slug != OpenLink.slug, not channel.publishes))
        super().__init__(data, initial={"channel": OpenLink.slug})
        self.study = study
        self.fields["channel"].choices = [(one.slug, f"{one.label}: {one.help}") for one in offered]  # type: ignore[attr-defined]  # a choice field
        facts = facts_of(user)
        is_screening = OutcomePay.Outcome.SCREENED_OUT in possible_early_ends(Recruitment(study=study))
        if facts.screened_out_pay is not None or not is_screening or not study.reward:
            del self.fields["screened_out_pay"]
        if facts.full_pay is not None or not study.reward:
            del self.fields["full_pay"]

    def clean(self):
        cleaned = super().clean() or {}
        channel = REGISTRY.get(cleaned.get("channel", ""))
        is_asked = "full_pay" in self.fields and channel is not None and channel.identifies_people
        if is_asked and cleaned.get("full_pay") is None and "full_pay" not in self.errors:
            self.add_error("full_pay", "People of a panel may find no place left. Enter what they get, or 0.")
        return cleaned

    def facts(self) -> dict[str, Any]:
        """Return what is said here once for all links of the account."""
        return {name: value for name, value in self.cleaned_data.items() if name != "channel" and value is not None}


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def new_study_launch_page(request, pk) -> HttpResponse:
    """Show what a new study still needs and what it costs. POST makes its link and requests the launch, or neither."""
    study = get_study(request.user, Action.LAUNCH, pk=pk)
    if target := launch.page_instead_of_launch(study):
        return HttpResponseRedirect(target)
    context = launch.launch_context(study, request.POST.getlist("acknowledge"))
    problems = launch.problems_on_new_study_pages(study, [*context["blocking"], *context["warnings"]])
    context["blocking"] = [problem for problem in problems if problem.is_blocking]
    context["warnings"] = [problem for problem in problems if not problem.is_blocking]
    form = LinkForm(study, request.user, request.POST if request.method == "POST" else None)
    launch_errors: list[str] = []
    if request.method == "POST" and context["blocking"]:
        launch_errors = [problem.text for problem in context["blocking"]]
    elif request.method == "POST" and form.is_valid():
        try:
            with transaction.atomic():
                if facts := form.facts():
                    store_facts(request.user, facts)
                _get_or_create_link(study, form.cleaned_data["channel"], request.user)
                job = lifecycle.request_launch(study, request.user, context["acknowledged"])
            return HttpResponseRedirect(reverse("admin:studies_job_page", args=[job.code]))
        except lifecycle.ActionRefused as refused:
            launch_errors = launch.refusal_lines(refused)
    context |= {"form": form, "launch_errors": launch_errors}
    is_refused = bool(launch_errors or form.errors)
    return study_page.render_new_study_page(
        request, "admin/studies/new/launch.html", study, "Launch", context, 422 if is_refused else 200
    )


def _get_or_create_link(study: Study, channel: str, by) -> Recruitment:
    """Return the study's link of this channel. A new one has the channel's usual settings and asks a panel for the study's target."""
    check_permission_or_404(by, Action.RECRUIT, study)
    if link := study.recruitments.filter(channel=channel, stopped_at=None).first():
        return link
    wanted = study.target_n if REGISTRY[channel].has_form else None
    return link_actions.create_link(Recruitment(study=study, channel=channel, wanted=wanted), by)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD"])
def new_study_link_page(request, pk) -> HttpResponse:
    """Show the links of a launched study, each with what to copy where."""
    study = get_study(request.user, Action.VIEW, pk=pk)
    if not study.launched_at:
        return HttpResponseRedirect(reverse("new_study_launch", args=[pk]))
    may_recruit = is_request_allowed(request, Action.RECRUIT, study.pk)
    context = {
        "title": "Your link",
        "here": "Collect",
        "cards": [_link_card(study, link) for link in study.recruitments.filter(stopped_at=None).order_by("pk")]
        if may_recruit
        else [],
        "may_recruit": may_recruit,
        "add_url": f"{reverse('admin:annotators_recruitment_add')}?study={study.pk}",
    }
    return study_page.render_study_page(request, "admin/annotators/link.html", study, context)


def _link_card(study: Study, link: Recruitment) -> dict[str, Any]:
    link.study = study
    channel, base = REGISTRY[link.channel], f"{settings.SITE_URL}{reverse('entry', args=[link.key])}"
    lines = channel.form_lines(link, base, possible_outcomes(link))
    return {
        "link": link,
        "channel": channel,
        "missing": [*channel.problems(link), *pay_obstacles(link)],
        "lines": lines[:LINKS_SHOWN],
        "n_more": len(lines[LINKS_SHOWN:]),
        # A panel opens the link itself, with ids that it adds.
        "qr": None if channel.identifies_people else qr_code(base),
        "address": base,
    }
