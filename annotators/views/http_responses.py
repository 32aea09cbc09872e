"""How annotators' pages are answered: their headers, notes where there is no page, and the way back."""

from functools import lru_cache, wraps

from django.http import HttpResponse, HttpResponseRedirect
from django.template.loader import get_template

from annotators.models import Recruitment
from annotators.recruitment.channels import REGISTRY, WayBack
from studies.design.wording import Wording, wording_of
from studies.models import Study

# What a person reads where there is no page to answer: (title, words). Written to be true in each case.
NOTICES = {
    "wait": (
        "No place right now",
        "All places are taken at the moment, but one may become free. Please try again in a few minutes.",
    ),
    "full": ("The study is full", "Thank you for coming. All places are taken and no more are needed."),
    "done": ("You have taken part already", "Thank you. Each person can take part once, and you have."),
    "barred": (
        "You cannot take part again",
        "You left this study or could not be included. Thank you for your interest.",
    ),
    "paused": ("The study is paused", "The researchers have paused this study. Please try again later."),
    "closed": ("The study is closed", "Thank you for coming. This study takes no more answers."),
    "no_consent": ("You did not agree to take part", "That is fine. Nothing about you was stored."),
}
OUTCOME_BY_NOTICE = {
    "wait": "full",
    "full": "full",
    "done": "done",
    "barred": "done",  # never the code of another end: it may be worth something
    "paused": "closed",
    "closed": "closed",
    "no_consent": "no_consent",
}


@lru_cache(maxsize=64)
def content_security_policy(form_hosts=(), frame_ancestors=()) -> str:
    """The content security policy of annotators' pages: everything from here, nothing inline."""
    return (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
        f"form-action {' '.join([chr(39) + 'self' + chr(39), *form_hosts])}; "
        f"frame-ancestors {' '.join(frame_ancestors) or chr(39) + 'none' + chr(39)}"
    )


def add_annotator_headers(view):
    """Headers that every annotator's page carries. A view says by whom its page may be framed, and whereto its form may be sent."""

    @wraps(view)
    def wrapped(request, *args, **kwargs):
        request.form_hosts, request.frame_ancestors = (), ()
        response = view(request, *args, **kwargs)
        response.headers.setdefault(
            "Content-Security-Policy", content_security_policy(request.form_hosts, request.frame_ancestors)
        )
        response.headers.setdefault("Cache-Control", "no-store")
        response.headers["X-Robots-Tag"] = "noindex"
        # Else the web server sends it in chunks: three writes for one.
        response.headers.setdefault("Content-Length", str(len(response.content)))
        return response

    return wrapped


def allow_framing(request, channel_slug: str | None) -> None:
    """Every page of a channel may stand in its panel's frame, one that refuses too."""
    request.frame_ancestors = REGISTRY[channel_slug].frame_ancestors if channel_slug in REGISTRY else ()


def render(request, template: str, context: dict, status: int = 200) -> HttpResponse:
    """A page for annotators. It needs nothing that context processors know."""
    return HttpResponse(get_template(template).template.render(context | {"request": request}), status=status)


def render_notice(request, study_words, kind: str, way_back: WayBack | None = None, status: int = 200, **more):
    title, words = NOTICES[kind]
    context = {"study": study_words, "title": title, "words": words, "way_back": way_back, "kind": kind, **more}
    allow_form_target(request, way_back)
    return render(request, "annotate/note.html", context, status=status)


def allow_form_target(request, way_back: WayBack | None) -> None:
    """The page's policy lets its form go where the way back leads, and on within the panel: a browser asks at each redirect."""
    if way_back and way_back.host:
        request.form_hosts = (way_back.host, *request.frame_ancestors) if way_back.fields else (way_back.host,)


def public_wording(study: Study) -> Wording:
    """The words of the study's newest version, for someone who has no assignment yet."""
    latest = study.designs.order_by("version").values_list("pk", flat=True).last()
    return wording_of(study, latest)


def way_back_of(recruitment: Recruitment | None, outcome: str, external_ids, receipt: str = "") -> WayBack:
    if recruitment is None:
        return WayBack(code=receipt)
    return REGISTRY[recruitment.channel].way_back(recruitment, outcome, external_ids, receipt)


class PageRedirect(HttpResponseRedirect):
    """To an address that was made here, of letters, digits and points: Django would take it apart first."""

    def __init__(self, path: str):
        HttpResponse.__init__(self, headers={"Location": path})


def redirect_to_page(code: str, key: str | None) -> PageRedirect:
    return PageRedirect(f"/p/{code}/{key}/" if key else f"/p/{code}/done/")
