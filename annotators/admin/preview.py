"""Preview of the annotators' pages for researchers.

The pages are the real ones; the transaction that creates them is rolled back.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.db import transaction
from django.db.models.functions import Now
from django.http import HttpResponse
from django.urls import reverse

from annotators.models import Assignment, Recruitment
from annotators.pages.record import full_page_state
from annotators.pages.sequence import Step, describe_page_key, get_section_itinerary, media_file_names_by_id
from annotators.participation import link_actions
from annotators.places.assign import get_or_create_annotator
from annotators.places.batch_plan import TEST_POOL, create_test_batch_and_assignment
from annotators.recruitment.channels.generic import OpenLink
from annotators.views import entry, lookup, pages
from studies.access import Action
from studies.admin.permissions import is_request_allowed
from studies.design.wording import page_language_of
from studies.language import activate, active_language, in_language
from studies.models import FIRST_TEST_NUMBER, Arm, Section, Study
from studies.protocols import REGISTRY
from studies.services.lifecycle import ActionRefused

from .launch import chosen_channel

PREVIEW_SEED = 20_230_707  # the same orders each time a page is previewed
PAGES_BEFORE, PAGES_AFTER = ("landing",), ("done", "consent", "withdraw")
PAGE_NAMES = {
    "landing": "Landing page",
    "start": "Instructions",
    "done": "The end",
    "consent": "Consent, to read again",
    "withdraw": "Withdrawal",
}
MAX_NAMED_QUESTIONS = 3  # questions of the page, as its name identifies them


@dataclass(frozen=True, slots=True)
class PreviewPage:
    """One page as HTML, with all pages in order (key and name), and the stored image names by their opaque names."""

    html: str
    keys: tuple[str, ...]
    key: str
    media: dict[str, str]
    names: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def _always_rollback():
    """A transaction that is always rolled back."""
    with transaction.atomic():
        point = transaction.savepoint()
        try:
            yield
        finally:
            transaction.savepoint_rollback(point)


def _create_preview_assignment(study: Study, arm: Arm | None) -> Assignment:
    if study.state == Study.State.DRAFT:
        return create_test_batch_and_assignment(study, arm, seed=PREVIEW_SEED)
    batches = study.batches.filter(number__lt=FIRST_TEST_NUMBER)
    batch = (batches.filter(arm=arm) if arm else batches).order_by("number").first()
    if batch is None:
        raise ActionRefused("There is no batch for this arm. Choose another arm.")
    return Assignment.objects.create(
        study=study,
        batch=batch,
        annotator=get_or_create_annotator(TEST_POOL, ""),
        origin=Assignment.Origin.TEST,
        seed=PREVIEW_SEED,
        design=study.designs.order_by("version").last(),
        started_at=Now(),
    )


def render_preview_page(
    request, study: Study, page_key: str, arm: Arm | None = None, section: Section | None = None
) -> PreviewPage:
    """Render one page of the study. ``section``: instead of a key, the first page on which this section asks.

    Raises ActionRefused if the design cannot be shown yet, KeyError for an unknown page.
    """
    with _always_rollback(), in_language(active_language()):  # the page's language ends with the page
        assignment = _create_preview_assignment(study, arm)
        assignment = Assignment.objects.select_related("study", "recruitment").get(pk=assignment.pk)
        activate(page_language_of(study, assignment.design_id))
        page_state = full_page_state(assignment)
        keys = (*PAGES_BEFORE, *page_state.steps, *PAGES_AFTER)
        if section is not None:
            asking = (key for key, step in page_state.steps.items() if _asks(step, section))
            page_key = next(asking, "")
        page_key = page_key or keys[0]
        makers: dict[str, Callable[[], HttpResponse]] = {
            "landing": lambda: _render_entry_page(request, study),
            "consent": lambda: pages.consent_text_page(request, assignment.code),
            "withdraw": lambda: pages.withdrawal_page(request, assignment.code),
            "done": lambda: _render_done_page(request, assignment),
        }
        if page_key not in makers:
            step = page_state.steps[page_key]
            makers[page_key] = lambda: pages.render_page_response(request, page_state, step, None)
        response = makers[page_key]()
        names = PAGE_NAMES | {
            key: _name(assignment, step) for key, step in page_state.steps.items() if key not in PAGE_NAMES
        }
        return PreviewPage(
            response.content.decode(), keys, page_key, media_file_names_by_id(assignment) | {"": assignment.code}, names
        )


def _asks(step: Step, section: Section) -> bool:
    return step.page.section.position == section.position and bool(step.page.questions)


def render_first_question(request, study: Study, section: Section) -> HttpResponse:
    """Return the first page on which a section asks, for a frame on a page of this site. Nothing on it leads anywhere."""
    page = render_preview_page(request, study, "", section=section)

    def image(name: str) -> str:
        return reverse("admin:studies_media", args=[study.pk, name]) if name else ""

    response = HttpResponse(build_preview_html(page, lambda key: "#", image, "", "", ""))
    response.headers["Content-Security-Policy"] = lookup.content_security_policy(frame_ancestors=("'self'",))
    response.headers["X-Frame-Options"] = "SAMEORIGIN"
    return response


def _name(assignment: Assignment, step: Step) -> str:
    """Name a page in the researcher's terms: the section's position and the keys of its questions."""
    page = step.page
    planned = get_section_itinerary(assignment).sections[page.section.position - 1].planned
    section = f"{planned.position}. {re.split(r':| of | [(]', REGISTRY[planned.protocol].label)[0]}"
    _, _, rest = page.key.partition(".")
    name = f"{section}, {describe_page_key(rest)}" if rest else section
    keys = [question.key for question in page.questions]
    return f"{name}: {', '.join(keys)}" if 0 < len(keys) <= MAX_NAMED_QUESTIONS else name


def _render_entry_page(request, study: Study) -> HttpResponse:
    recruitment = study.recruitments.order_by("pk").first()
    if recruitment is None:
        channel = chosen_channel(study) or OpenLink.slug
        recruitment = Recruitment(study=study, channel=channel, pool=channel)
        if study.is_draft:  # the page promises what the link of the launch will promise
            link_actions.create_link(
                recruitment, request.user if is_request_allowed(request, Action.RECRUIT, study.pk) else None
            )
    return entry.render_entry_page(request, recruitment, lookup.newest_study_wording(study))


def _render_done_page(request, assignment: Assignment) -> HttpResponse:
    Assignment.objects.filter(pk=assignment.pk).update(submitted_at=Now())
    return pages.end_page(request, assignment.code)


_ADDRESS = r'(?P<attribute>href|action|formaction)="/p/{code}/(?P<rest>[^"]*)"'
_IMAGE = r"/p/{code}/m/(?P<name>[0-9A-Za-z_-]+)"


def build_preview_html(
    page: PreviewPage,
    page_url: Callable[[str], str],
    image_url: Callable[[str], str],
    bar_html: str,
    head_html: str,
    csrf_token: str,
) -> str:
    """Return the page's HTML for the preview.

    Links lead to other previewed pages, images use the researcher's address, and a bar is added on top. Annotators'
    forms carry no CSRF token because their pages use no cookie; the admin's forms need one.
    """
    code = re.escape(page.media[""])
    html = re.sub(_IMAGE.format(code=code), lambda match: image_url(page.media.get(match["name"], "")), page.html)
    index = page.keys.index(page.key)
    following = page.keys[index + 1] if index + 1 < len(page.keys) else page.key

    def linked(match: re.Match) -> str:
        key = match["rest"].split("?")[0].strip("/")
        target = key if match["attribute"] == "href" and key in page.keys else following
        if match["attribute"] == "href" and key not in page.keys:
            target = page.key
        return f'{match["attribute"]}="{page_url(target)}"'

    html = re.sub(_ADDRESS.format(code=code), linked, html)
    # A form without an action posts to its own page: the landing page.
    html = re.sub(
        r"<form([^>]*)>", lambda f: f[0] if "action=" in f[1] else f'<form{f[1]} action="{page_url(following)}">', html
    )
    csrf_token = f'<input type="hidden" name="csrfmiddlewaretoken" value="{csrf_token}">'
    # Not for a form that leads back to a panel.
    html = re.sub(r'<form(?=[^>]* method="post")[^>]* action="/(?!/)[^>]*>', lambda match: match[0] + csrf_token, html)
    # The page's script would save drafts and count seconds for an assignment that does not exist.
    html = re.sub(r"<script[^>]*></script>", "", html).replace(page.media[""], "preview")
    html = html.replace("</head>", f"{head_html}</head>", 1)
    return re.sub(r"(<body[^>]*>)", lambda match: match[1] + bar_html, html, count=1)
