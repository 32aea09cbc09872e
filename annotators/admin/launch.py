"""The launch page of every draft: what is missing, what it costs, the warnings to acknowledge and the link. Then the page of the links."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from annotators.models import OutcomePay, Recruitment
from annotators.participation import link_actions
from annotators.pay.promises import pay_obstacles
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.channels.generic import NO_WAY_TO_PAY, OpenLink
from annotators.recruitment.links import possible_early_ends, possible_outcomes
from studies.access import Action, check_permission_or_404, get_study
from studies.admin import study_page, workflow
from studies.admin.permissions import is_request_allowed
from studies.admin.texts import facts_of
from studies.design.comparisons import planned_claim_sentences
from studies.design.workload import mean_reward
from studies.imports.study_templates import TEMPLATES_BY_SLUG
from studies.models import Job, Study
from studies.services import lifecycle
from studies.services.drafts import store_facts

from .recruitment import LINKS_SHOWN


def latest_launch_job(study: Study) -> Job | None:
    return study.jobs.filter(kind="launch").order_by("-pk").first()


def page_instead_of_launch(study: Study) -> str:
    """Return the page of the running launch, or of a study that is launched. Return '' if the study can be launched."""
    job = latest_launch_job(study)
    if not (job is not None and job.state in (Job.State.WAITING, Job.State.RUNNING)) and study.is_draft:
        return ""
    target = reverse("admin:studies_job_page", args=[job.code]) if job else None
    return target or reverse("admin:studies_study_change", args=[study.pk])


# Acknowledges all warnings about what a study's template has as in its source.
OF_TEMPLATE = "template"


def launch_context(study: Study, acknowledged: Iterable[str]) -> dict[str, Any]:
    """Return what is missing, the warnings with those that are acknowledged, and the cost."""
    problems, populations = workflow.check_linked_design(study)
    warnings = [problem for problem in problems if not problem.is_blocking]
    template = TEMPLATES_BY_SLUG.get(study.template)
    of_template = [problem for problem in warnings if template and problem.key in template.warnings]
    accepted = set(acknowledged)
    if OF_TEMPLATE in accepted:
        accepted |= {problem.key for problem in of_template}
    job = latest_launch_job(study)
    return {
        "blocking": [problem for problem in problems if problem.is_blocking],
        "warnings": warnings,
        "acknowledged": {problem.key for problem in warnings} & accepted,
        "of_template": of_template,
        "template": template,
        "populations": populations,
        "planned_claims": planned_claim_sentences(study),
        "planned_families": workflow.planned_families(study),
        **workflow.design_forecast(study),
        "cost": estimate_reward_cost(study),
        "failed": job if job is not None and job.state == Job.State.FAILED else None,
    }


def refusal_lines(refused: lifecycle.ActionRefused) -> list[str]:
    """Return why a launch was refused."""
    if not isinstance(refused, lifecycle.NotReady):
        return [str(refused)]
    return [p.text if p.is_blocking else f"Acknowledge this warning: {p.text}" for p in refused.problems]


@dataclass(frozen=True, slots=True)
class RewardCostEstimate:
    places: int
    cap: int | None
    reward: Decimal | None
    total: Decimal | None
    most: Decimal | None
    currency: str


def estimate_reward_cost(study: Study) -> RewardCostEstimate:
    """Return the sum of the annotators' rewards at the target, and at the cap."""
    places = study.target_n or 0
    mean = mean_reward(study)
    return RewardCostEstimate(
        places=places,
        cap=study.cap,
        reward=mean,
        total=mean * places if mean is not None else None,
        most=mean * study.cap if mean is not None and study.cap else None,
        currency=study.currency,
    )


NO_LINK = "No new link: I make it myself"


def chosen_channel(study: Study) -> str | None:
    """Return the channel that the page *People* stored, '' for no new link, or None if nothing is chosen."""
    slug = (study.guide or {}).get("channel")
    return slug if slug == "" or (slug in REGISTRY and REGISTRY[slug].takes_new_links) else None


def channel_field(study: Study) -> forms.ChoiceField:
    """Return the field of how people come to a draft. It begins with what is chosen, the channel of the last link, or an open link."""
    offered = [channel for channel in REGISTRY.values() if channel.takes_new_links]
    offered.sort(key=lambda channel: (channel.slug != OpenLink.slug, not channel.publishes))
    link = study.recruitments.filter(stopped_at=None).order_by("pk").last()
    usual, chosen = link.channel if link else OpenLink.slug, chosen_channel(study)
    return forms.ChoiceField(
        label="How do people come?",
        choices=[*((one.slug, one.label) for one in offered), ("", NO_LINK)],
        initial=usual if chosen is None else chosen,
        required=False,
    )


def _pay_by_open_link() -> str:
    way = f"{reverse('docs-page', args=['how-to/use-an-open-link'])}#how-people-get-their-pay"
    return format_html('{} <a href="{}">How they get their pay</a>', NO_WAY_TO_PAY, way)


def about_channel(slug: str, reward: Decimal | None) -> str:
    """Return what a researcher should know about a channel before the launch."""
    channel = REGISTRY.get(slug)
    if channel is None:
        return "The launch makes no link."
    pays = bool(reward) and slug == OpenLink.slug
    return format_html("{} {}", channel.help, _pay_by_open_link()) if pays else channel.help


class LinkForm(forms.Form):
    """How people come to a draft, if the page *People* has not asked it, and what those get who cannot take part, if the account has not said it yet."""

    screened_out_pay = forms.DecimalField(
        label="Pay for people whom the first answers screen out",
        min_value=0,
        max_digits=7,
        decimal_places=2,
        required=False,
    )
    full_pay = forms.DecimalField(
        label="Pay for people of a panel who find no place left",
        min_value=0,
        max_digits=7,
        decimal_places=2,
        required=False,
        initial=0,
        help_text="0: they get nothing. You can change it for each link.",
    )

    def __init__(self, study: Study, user, data=None):
        super().__init__(data)
        self.study, self.chosen = study, chosen_channel(study)
        if self.chosen is None:
            field = channel_field(study)
            self.fields = {"channel": field, **self.fields}
            if study.reward:
                field.help_text = _pay_by_open_link()
        facts, channel = facts_of(user), REGISTRY.get(self.chosen or "")
        is_screening = OutcomePay.Outcome.SCREENED_OUT in possible_early_ends(Recruitment(study=study))
        if facts.screened_out_pay is not None or not is_screening or not study.reward:
            del self.fields["screened_out_pay"]
        has_panel = self.chosen is None or (channel is not None and channel.identifies_people)
        if facts.full_pay is not None or not study.reward or not has_panel:
            del self.fields["full_pay"]

    @property
    def channel(self) -> str:
        return self.cleaned_data.get("channel", "") if self.chosen is None else self.chosen

    def clean(self):
        cleaned = super().clean() or {}
        channel = REGISTRY.get(self.channel)
        if channel is None or _find_link(self.study, channel.slug):
            return cleaned  # a link that exists has its own pay
        missing = {name for name in self.fields if cleaned.get(name) is None and name not in self.errors}
        if "screened_out_pay" in missing:
            self.add_error("screened_out_pay", self.fields["screened_out_pay"].error_messages["required"])
        if "full_pay" in missing and channel.identifies_people:
            self.add_error("full_pay", "People of a panel may find no place left. Enter what they get, or 0.")
        return cleaned

    def facts(self) -> dict[str, Any]:
        """Return what is said here once for all links of the account."""
        channel = REGISTRY.get(self.channel)
        unused = {"channel"} if channel is not None and channel.identifies_people else {"channel", "full_pay"}
        return {name: one for name, one in self.cleaned_data.items() if name not in unused and one is not None}


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def launch_page(request, pk) -> HttpResponse:
    """Show what a draft still needs and what it costs. POST makes its link and requests the launch, or neither."""
    study = get_study(request.user, Action.LAUNCH, pk=pk)
    if target := page_instead_of_launch(study):
        return HttpResponseRedirect(target)
    context = launch_context(study, request.POST.getlist("acknowledge"))
    form = LinkForm(study, request.user, request.POST if request.method == "POST" else None)
    launch_errors: list[str] = []
    if request.method == "POST" and form.is_valid():
        try:
            with transaction.atomic():
                if facts := form.facts():
                    store_facts(request.user, facts)
                if channel := form.channel:
                    _get_or_create_link(study, channel, request.user)
                job = lifecycle.request_launch(study, request.user, context["acknowledged"])
            return HttpResponseRedirect(reverse("admin:studies_job_page", args=[job.code]))
        except lifecycle.ActionRefused as refused:
            launch_errors = refusal_lines(refused)
    context |= {"form": form, "launch_errors": launch_errors, "local_url": local_url()}
    if form.chosen is not None:
        context |= {"channel": REGISTRY.get(form.chosen), "about_channel": about_channel(form.chosen, study.reward)}
    if study.guide is None:
        context["guide"] = []  # a draft that was not made on the pages of a new study
    status = 422 if launch_errors or form.errors else 200
    return study_page.render_new_study_page(request, "admin/studies/launch.html", study, "Launch", context, status)


def _find_link(study: Study, channel: str) -> Recruitment | None:
    return study.recruitments.filter(channel=channel, stopped_at=None).first()


def _get_or_create_link(study: Study, channel: str, by) -> Recruitment:
    """Return the study's link of this channel. A new one has the channel's usual settings and asks a panel for the study's target."""
    check_permission_or_404(by, Action.RECRUIT, study)
    if link := _find_link(study, channel):
        return link
    wanted = study.target_n if REGISTRY[channel].has_form else None
    return link_actions.create_link(Recruitment(study=study, channel=channel, wanted=wanted), by)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD"])
def link_page(request, pk) -> HttpResponse:
    """Show the links of a launched study, each with what to copy where."""
    study = get_study(request.user, Action.VIEW, pk=pk)
    if not study.launched_at:
        return HttpResponseRedirect(reverse("study_launch", args=[pk]))
    may_recruit = is_request_allowed(request, Action.RECRUIT, study.pk)
    context = {
        "title": "Your link",
        "here": "Collect",
        "cards": [_link_card(study, link) for link in study.recruitments.filter(stopped_at=None).order_by("pk")]
        if may_recruit
        else [],
        "may_recruit": may_recruit,
        "local_url": local_url(),
        "keep_url": reverse("admin:studies_act", args=[pk, "keep-template"])
        if is_request_allowed(request, Action.CLONE, study.pk)
        else "",
        "add_url": f"{reverse('admin:annotators_recruitment_add')}?study={study.pk}",
    }
    return study_page.render_study_page(request, "admin/annotators/link.html", study, context)


# A site at one of these answers only on its own computer.
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


def local_url() -> str:
    """Return the address of the site if only its own computer can open it, or else ''."""
    return settings.SITE_URL if urlsplit(settings.SITE_URL).hostname in LOCAL_HOSTS else ""


def qr_code(address: str) -> dict[str, Any]:
    """Return the QR code of an address: its width in squares, and an SVG path of the dark ones."""
    import segno

    rows = list(segno.make(address, micro=False, error="m").matrix_iter(border=2))
    dark = [(x, y) for y, row in enumerate(rows) for x, is_dark in enumerate(row) if is_dark]
    return {"size": len(rows), "path": "".join(f"M{x} {y}h1v1h-1z" for x, y in dark)}


def _link_card(study: Study, link: Recruitment) -> dict[str, Any]:
    link.study = study
    channel, base = REGISTRY[link.channel], f"{settings.SITE_URL}{reverse('entry', args=[link.key])}"
    lines = channel.form_lines(link, base, possible_outcomes(link))
    return {
        "link": link,
        "channel": channel,
        "warnings": channel.warnings(link),
        "missing": [*channel.obstacles(link), *pay_obstacles(link)],
        "lines": lines[:LINKS_SHOWN],
        "n_more": len(lines[LINKS_SHOWN:]),
        # A panel opens the link itself, with ids that it adds.
        "qr": None if channel.identifies_people else qr_code(base),
        "address": base,
    }
