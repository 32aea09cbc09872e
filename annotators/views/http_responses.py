"""Responses of annotators' pages: headers, rendering, notices, and the way back to the panel."""

from collections.abc import Callable
from functools import lru_cache, wraps

from django.http import HttpResponse, HttpResponseRedirect
from django.template.loader import get_template

from annotators.models import Recruitment
from annotators.recruitment.channels import REGISTRY, WayBack
from studies.design.wording import Wording, wording_of
from studies.models import Study

# The title and text that a person reads if there is no page to answer. Each text must be true in every case of its
# kind.
NOTICES = {
    "wait": (
        "No place right now",
        "All places are taken at the moment, but one may become free. Please try again in a few minutes.",
    ),
    "full": ("The study is full", "Thank you for coming. All places are taken, and no more people are needed."),
    "done": ("You have already taken part", "Thank you. Each person can take part once, and you have taken part."),
    "barred": (
        "You cannot take part again",
        "You left this study, or it could not include you. Thank you for your interest.",
    ),
    "no_further": (
        "No further part for you",
        "You get no further part of this study or of a group of studies to which it belongs. This does not change your pay "
        "for the parts that you have submitted.",
    ),
    "paused": ("The study is paused", "The researchers have paused this study. Please try again later."),
    "closed": ("The study is closed", "Thank you for coming. This study does not take answers any more."),
    "no_consent": ("You did not agree to take part", "That is fine. We stored nothing about you."),
}
OUTCOME_BY_NOTICE = {
    "wait": "full",
    "full": "full",
    "done": "done",
    "barred": "done",  # never the code of another outcome, which may be worth money
    "no_further": "done",
    "paused": "closed",
    "closed": "closed",
    "no_consent": "no_consent",
}


@lru_cache(maxsize=64)
def content_security_policy(form_hosts=(), frame_ancestors=()) -> str:
    """Return the content security policy of annotators' pages: only content of this site, and nothing inline."""
    return (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
        f"form-action {' '.join([chr(39) + 'self' + chr(39), *form_hosts])}; "
        f"frame-ancestors {' '.join(frame_ancestors) or chr(39) + 'none' + chr(39)}"
    )


def add_annotator_headers(view) -> Callable[..., HttpResponse]:
    """Add the headers of every annotator page.

    A view sets ``request.frame_ancestors`` (who may frame its page) and ``request.form_hosts`` (where its form may be
    sent).
    """

    @wraps(view)
    def wrapped(request, *args, **kwargs):
        request.form_hosts, request.frame_ancestors = (), ()
        response = view(request, *args, **kwargs)
        response.headers.setdefault(
            "Content-Security-Policy", content_security_policy(request.form_hosts, request.frame_ancestors)
        )
        response.headers.setdefault("Cache-Control", "no-store")
        response.headers["X-Robots-Tag"] = "noindex"
        # Without a length the web server sends the page in chunks: three writes instead of one.
        response.headers.setdefault("Content-Length", str(len(response.content)))
        return response

    return wrapped


def allow_framing(request, channel_slug: str | None) -> None:
    """Allow the channel's panel to frame this page. This includes pages with a refusal."""
    request.frame_ancestors = REGISTRY[channel_slug].frame_ancestors if channel_slug in REGISTRY else ()


def render_without_context_processors(request, template: str, context: dict, status: int = 200) -> HttpResponse:
    """Render a page for annotators, without context processors."""
    return HttpResponse(get_template(template).template.render(context | {"request": request}), status=status)  # type: ignore[attr-defined]  # Jinja2


def render_notice(
    request, study_wording, notice_kind: str, way_back: WayBack | None = None, status: int = 200, **options
) -> HttpResponse:
    title, text = NOTICES[notice_kind]
    context = {
        "study": study_wording,
        "title": title,
        "text": text,
        "way_back": way_back,
        "kind": notice_kind,
        **options,
    }
    allow_form_target(request, way_back)
    return render_without_context_processors(request, "annotate/notice.html", context, status=status)


def allow_form_target(request, way_back: WayBack | None) -> None:
    """Allow the page's form to be sent to the way back and within the panel.

    Browsers check the policy at each redirect.
    """
    if way_back and way_back.origin:
        request.form_hosts = (way_back.origin, *request.frame_ancestors) if way_back.fields else (way_back.origin,)


def newest_study_wording(study: Study) -> Wording:
    """Return the texts of the study's newest version, for visitors who have no assignment yet."""
    latest = study.designs.order_by("version").values_list("pk", flat=True).last()
    return wording_of(study, latest)


def get_panel_way_back(recruitment: Recruitment | None, outcome: str, external_ids, receipt: str = "") -> WayBack:
    if recruitment is None:
        return WayBack(code=receipt)
    return REGISTRY[recruitment.channel].way_back(recruitment, outcome, external_ids, receipt)


class PageRedirect(HttpResponseRedirect):
    """A redirect to an address that heval built from letters, digits and dots.

    It skips Django's parsing of the address.
    """

    def __init__(self, path: str):
        HttpResponse.__init__(self, headers={"Location": path})


def redirect_to_page(code: str, page_key: str | None, fragment: str = "") -> PageRedirect:
    return PageRedirect((f"/p/{code}/{page_key}/" if page_key else f"/p/{code}/done/") + fragment)
