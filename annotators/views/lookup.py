"""Find the assignment of a page's address and its status, and build the responses of annotators' pages."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, wraps
from itertools import islice
from typing import Any

from django.conf import settings
from django.db.models import FilteredRelation, Q
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.template.loader import get_template
from django.utils import timezone

from annotators.fast_path import CompiledSelect, columns_in_model_order, instance_from_row
from annotators.models import Assignment, PageVisit, Recruitment
from annotators.pages.record import PREVIOUS_VISIT_COLUMNS, VISIT_COLUMNS
from annotators.pages.sequence import previous_fixed_page_key
from annotators.pay.statement import pay_statement
from annotators.places import assign, places
from annotators.places.deadlines import PlaceStatus, is_closed_before_first_answer, place_status
from annotators.places.places import assignment_code
from annotators.recruitment.channels import REGISTRY, WayBack
from studies.design.wording import Wording, page_language_of, wording_of
from studies.language import ENGLISH, activate, gettext, gettext_noop, in_language
from studies.models import Study

Device = Assignment.Device

# Responses of annotators' pages: headers, rendering, notices, and the way back to the panel.


# The title and text that a person reads if there is no page to answer. Each text must be true in every case of its
# kind.
NOTICES = {
    "wait": (
        gettext_noop("No place right now"),
        gettext_noop("All places are taken at the moment, but one may become free. Please try again in a few minutes."),
    ),
    "full": (
        gettext_noop("The study is full"),
        gettext_noop("Thank you for coming. All places are taken, and no more people are needed."),
    ),
    "unqualified": (
        gettext_noop("This study asks for a test that you have not passed"),
        gettext_noop(
            "Thank you for coming. Only people who lately passed a test in another study can take part. If you pass it, you "
            "can come again by the same link."
        ),
    ),
    "done": (
        gettext_noop("You have already taken part"),
        gettext_noop("Thank you. Each person can take part once, and you have taken part."),
    ),
    "barred": (
        gettext_noop("You cannot take part again"),
        gettext_noop("You left this study, or it could not include you. Thank you for your interest."),
    ),
    "no_further": (
        gettext_noop("No further part for you"),
        gettext_noop(
            "You get no further part of this study or of a group of studies to which it belongs. This does not change your "
            "pay for the parts that you have submitted."
        ),
    ),
    "paused": (
        gettext_noop("The study is paused"),
        gettext_noop("The researchers have paused this study. Please try again later."),
    ),
    "closed": (
        gettext_noop("The study is closed"),
        gettext_noop("Thank you for coming. This study does not take answers any more."),
    ),
    "not_open": (
        gettext_noop("This link is not open yet"),
        gettext_noop("Nobody can start by this link now. Please try again later, or write to the researchers."),
    ),
    "no_consent": (
        gettext_noop("You did not agree to take part"),
        gettext_noop("That is fine. We stored nothing about you."),
    ),
}
OUTCOME_BY_NOTICE = {
    "wait": "full",
    "full": "full",
    "unqualified": "full",
    "done": "done",
    "barred": "done",  # never the code of another outcome, which may be worth money
    "no_further": "done",
    "paused": "closed",
    "closed": "closed",
    "not_open": "closed",
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
        # In English until the view knows the study and activates its language. The next request of this thread may be a researcher's.
        with in_language(ENGLISH):
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
    title, text = map(gettext, NOTICES[notice_kind])
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
    wording = wording_of(study, latest)
    activate(wording.language)
    return wording


def device_class(request) -> str:
    """Return the coarse class of the browser's device by the name that it gives itself: all that is stored about it.

    An iPad calls itself a computer unless it is set to ask for mobile pages.
    """
    agent = request.headers.get("User-Agent", "")
    if "iPad" in agent or "Tablet" in agent or ("Android" in agent and "Mobi" not in agent):
        return Device.TABLET
    if "Mobi" in agent:
        return Device.PHONE
    return Device.COMPUTER if any(name in agent for name in ("Windows", "Macintosh", "Linux", "CrOS")) else ""


def get_panel_way_back(recruitment: Recruitment | None, outcome: str, external_ids, receipt: str = "") -> WayBack:
    if recruitment is None:
        return WayBack(code=receipt)
    return REGISTRY[recruitment.channel].way_back(recruitment, outcome, external_ids, receipt)


def redirect_to_page(code: str, page_key: str | None, fragment: str = "") -> HttpResponseRedirect:
    return HttpResponseRedirect((f"/p/{code}/{page_key}/" if page_key else f"/p/{code}/done/") + fragment)


def _code_or_404(address: str) -> tuple[str, str]:
    """Return the code that an address names, and the address if it shows no stored answers."""
    try:
        code = assignment_code(address)
    except LookupError:
        raise Http404 from None
    return code, "" if code == address else address


def get_assignment_or_404_and_allow_framing(request, address: str) -> Assignment:
    code, limited_address = _code_or_404(address)
    try:
        assignment = Assignment.objects.select_related("study", "recruitment").get(code=code)
    except Assignment.DoesNotExist:
        raise Http404 from None
    assignment.limited_address = limited_address
    activate(page_language_of(assignment.study, assignment.design_id))
    if assignment.recruitment is not None:
        assignment.recruitment.study = assignment.study
        allow_framing(request, assignment.recruitment.channel)
    return assignment


# The columns that showing and recording a page read. Loading all fifty columns of a study was the slowest part of a
# page.
ASSIGNMENT_COLUMNS = columns_in_model_order(
    Assignment,
    "id", "code", "study_id", "batch_id", "annotator_id", "design_id", "seed", "origin", "reserved_until", "started_at",
    "submitted_at", "withdrawn_at", "released_at", "released_reason", "consented_at", "qualified_by_id",
)  # fmt: skip
STUDY_COLUMNS = columns_in_model_order(
    Study, "id", "idle_seconds", "minutes", "usual_seconds", "state", "closing_at", "grace_seconds"
)
_select_page_row = CompiledSelect(
    lambda code, before, key: (
        Assignment.objects.filter(code=code)
        .annotate(
            before=FilteredRelation("visits", condition=Q(visits__key=before)),
            here=FilteredRelation("visits", condition=Q(visits__key=key)),
        )
        .order_by()
        .values_list(
            *ASSIGNMENT_COLUMNS,
            *(f"study__{name}" for name in STUDY_COLUMNS),
            *(f"before__{name}" for name in PREVIOUS_VISIT_COLUMNS),
            *(f"here__{name}" for name in VISIT_COLUMNS),
            "recruitment__channel",
        )
    ),
    str,
    str,
    str,
)


def get_page_assignment_or_404_and_allow_framing(request, address: str, page_key: str = "") -> Assignment:
    """Return the assignment with the columns that its pages read, and the visits of this page and the one before it.

    Other columns are loaded on access. Raises Http404.
    """
    code, limited_address = _code_or_404(address)
    page_keys = (previous_fixed_page_key(code, page_key) if page_key else "", page_key)
    rows = _select_page_row(code, *page_keys)
    if not rows:
        raise Http404
    row = iter(rows[0])
    assignment, study, previous_visit, page_visit = (
        instance_from_row(model, columns, islice(row, len(columns)))
        for model, columns in (
            (Assignment, ASSIGNMENT_COLUMNS),
            (Study, STUDY_COLUMNS),
            (PageVisit, PREVIOUS_VISIT_COLUMNS),
            (PageVisit, VISIT_COLUMNS),
        )
    )
    Assignment.study.field.set_cached_value(assignment, study)
    assignment.limited_address = limited_address
    activate(page_language_of(study, assignment.design_id))
    allow_framing(request, next(row))
    assignment.preloaded_visits = (
        page_keys,
        {visit.key: visit for visit in (previous_visit, page_visit) if visit.pk is not None},
    )
    return assignment


def page_frame(assignment: Assignment) -> dict[str, Any]:
    """Return what the head and the foot of each page of an assignment show."""
    return {
        "study": wording_of(assignment.study, assignment.design_id).study,
        "assignment_path": assignment.path,
        "own_address": f"{settings.SITE_URL}{assignment.path}",
        "is_limited": bool(assignment.limited_address),
        "has_left": assignment.withdrawn_at is not None,
        "has_agreed": assignment.consented_at is not None,
    }


def has_assignment_ended(assignment: Assignment) -> bool:
    return bool(
        assignment.submitted_at
        or assignment.withdrawn_at
        or assignment.released_reason in assign.FINAL_RELEASE_REASONS
        or assignment.batch_id is None
        or is_closed_before_first_answer(assignment)
    )


def may_withdraw(assignment) -> bool:
    until = assignment.study.withdrawal_until
    return (
        not assignment.withdrawn_at
        and not assignment.limited_address
        and assignment.batch_id is not None
        and (until is None or timezone.now().date() <= until)
    )


def has_parts_overview(assignment) -> bool:
    """Return whether the person has a list of parts: the link keeps places for days, and they may still take part."""
    return (
        places.channel_min_reserved_seconds(assignment.recruitment) > 0
        and not assignment.limited_address
        and assignment.batch_id is not None
        and assignment.withdrawn_at is None
        and assignment.released_reason not in assign.FINAL_RELEASE_REASONS
    )


def place_status_with_pay(assignment: Assignment) -> PlaceStatus | None:
    """Return what a page says about the time left.

    After the time is over, add that finishing is paid, if pay was promised.
    """
    status = place_status(assignment)
    if status and status.is_over and (pay := pay_statement(assignment, "complete")) and pay.amount:
        return replace(status, text=status.text + " " + gettext("If you finish, you are still paid."))
    return status
