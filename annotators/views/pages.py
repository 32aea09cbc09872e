"""A page of questions: shown, saved, sent, and kept for longer."""

from dataclasses import replace

from django.conf import settings
from django.http import Http404, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.views.decorators.http import require_http_methods, require_safe

from annotators.pages.compiled_queries import insert_lightly
from annotators.pages.forms import Sent, read_page, typed_in
from annotators.pages.images import as_sent
from annotators.pages.record import (
    DRAFT_LIMIT,
    OF_NEW_VISIT,
    AlreadyStored,
    Closed,
    Conflict,
    Elsewhere,
    NoSuchPage,
    NotStored,
    Standing,
    Step,
    TooLong,
    as_shown,
    new_visit,
    record_page,
    save_draft,
    standing_at,
    standing_of,
)
from annotators.pages.sequence import FEEDBACK, media_names
from annotators.pages.show import cached_markdown, shown_page, stored_texts
from annotators.pages.training import told_of
from annotators.pages.typed_text import typed_on
from annotators.places import assign
from annotators.places.batch_plan import plan_of
from annotators.places.deadlines import give_back_if_closed, keep_longer
from annotators.places.offers import Offer
from studies.design.wording import wording_of
from studies.models import Study

from ..models import Assignment, PageVisit, Response
from .replies import for_annotators, render, to_page
from .whose import assignment_on_page, assignment_or_404, has_ended, kept_place

DAY_SECONDS = 24 * 60 * 60


@for_annotators
@require_safe
def first(request, code):
    """To wherever the annotator is: the next page, or the end."""
    assignment = assignment_on_page(request, code)
    if has_ended(assignment):
        return to_page(code, None)
    return to_page(code, standing_of(assignment).next_key)


@for_annotators
@require_http_methods(["GET", "HEAD", "POST"])
def page(request, code, key):
    if request.method == "POST":
        return _posted(request, code, key)
    assignment = assignment_on_page(request, code, key)
    # What was sent can be looked at until it is deleted.
    if has_ended(assignment) and (assignment.submitted_at is None or assignment.withdrawn_at):
        return to_page(code, None)
    give_back_if_closed(assignment)
    standing = standing_at(assignment, key)
    visit = standing.visits.get(key)
    if key not in standing.steps or (visit is None and not standing.is_next(key)):
        return to_page(code, standing.next_key)
    step = standing.steps[key]
    if visit is None and request.method == "GET":
        _first_sight(standing, step, key)
    elif visit is not None:
        step = as_shown(step, visit)
        if assignment.started_at is None and request.method == "GET":
            assign.begin(assignment)  # a crash came between this visit and the beginning
    return page_response(request, standing, step, visit)


def _first_sight(standing: Standing, step: Step, key: str) -> None:
    """What is shown is written once; of two tabs that open at the same moment the second reads what the first wrote."""
    assignment = standing.assignment
    # Drawn from the assignment's seed, it comes out the same where a crash has lost it (``lost_visit``). What is recorded waits
    # for the disk.
    insert_lightly(PageVisit, OF_NEW_VISIT, new_visit(standing, step, key))
    if assignment.started_at is None:
        assign.begin(assignment)


def _posted(request, code, key):
    is_answer = "layout" not in request.POST and "save" not in request.POST
    assignment = assignment_on_page(request, code, key)
    try:
        if not is_answer:
            save_draft(assignment, key, request.POST)
            return _autosaved(request, code, key) if request.POST.get("save") == "auto" else to_page(code, key)
        outcome = record_page(assignment, key, request.POST, bool(request.FILES))
    except NotStored as refusal:
        return _not_stored(request, code, key, refusal)
    if outcome.sent is None:
        return to_page(code, outcome.following)
    standing = standing_at(assignment, key)
    return _to_be_corrected(request, standing, outcome.step, standing.visits.get(key), outcome.sent)


def _autosaved(request, code: str, key: str) -> HttpResponse:
    """What the page's script is answered: how long the place is kept now."""
    assignment = assignment_on_page(request, code, key)
    give_back_if_closed(assignment)
    context = {"kept": kept_place(assignment), "assignment_path": f"/p/{code}/", "key": key}
    return render(request, "annotate/_place.html", context)


def _to_be_corrected(request, standing: Standing, step: Step, visit: PageVisit | None, sent: Sent):
    """The page with what was sent in its fields, and beside it what no field of the page can show."""
    typed = [one for one in typed_on(step.protocol.asks(step.page), request.POST) if not one.is_in_field]
    return page_response(request, standing, step, visit, sent=sent, status=422, typed=typed)


# Why answers were not stored, beside Conflict and Closed, whose words depend on more.
REASONS: dict[type[NotStored], str] = {
    AlreadyStored: "This page is stored already. Reload it to see how.",
    Elsewhere: "Another page has to be answered before this one. Please copy what you want to keep, and use it when this page comes.",
    NoSuchPage: "There is no such page in your part of this study. The address may be wrong, or from an earlier time.",
    TooLong: f"This is more than can be saved as a draft ({DRAFT_LIMIT:,} characters). Please make it shorter.",
}


def _reason(refusal: NotStored, assignment: Assignment) -> str:
    if not isinstance(refusal, Closed):
        return REASONS[type(refusal)]
    if assignment.withdrawn_at:
        return "You have left this study. Nothing that you send is stored any more."
    if assignment.submitted_at:
        return "You have finished this part of the study. It takes no more answers."
    if assignment.batch_id is None:
        return "No place was free for you, so there was nothing to answer."
    return "This study has ended for you. It takes no more answers."


def _not_stored(request, code: str, key: str, refusal: NotStored):
    """Show again what was sent and is not stored, with the reason and one way on. If the page can still be answered, the reply
    is the page itself."""
    assignment = assignment_or_404(request, code)  # as it is by now
    standing = standing_at(assignment, key) if assignment.batch_id else None
    step = standing.steps.get(key) if standing else None
    visit = standing.visits.get(key) if standing else None
    asks = {}
    if step and visit:  # the questions of a page that was not shown are not shown here either
        step = as_shown(step, visit)
        asks = step.protocol.asks(step.page)
    typed = typed_on(asks, request.POST)
    if isinstance(refusal, AlreadyStored) and request.POST.get("save") != "auto":
        return to_page(code, key)
    if isinstance(refusal, Conflict):
        return page_response(request, standing, step, visit, status=409, is_conflict=True, typed=typed)
    if isinstance(refusal, TooLong):
        sent = replace(read_page(step, asks, request.POST), errors={}, general=[_reason(refusal, assignment)])
        return _to_be_corrected(request, standing, step, visit, sent)
    if not typed and request.POST.get("save") != "auto":
        return HttpResponseRedirect(f"/p/{code}/")
    context = {
        "study": wording_of(assignment.study, assignment.design_id).study,
        "assignment_path": f"/p/{code}/",
        "outcome": has_ended(assignment),
        "reason": _reason(refusal, assignment),
        "typed": typed,
    }
    return render(request, "annotate/not_stored.html", context, status=409)


def page_response(request, standing: Standing, step: Step, visit: PageVisit | None, *, sent=None, status=200, **more):
    """Draw one page: to be answered, to be corrected, or (recorded) to be looked at."""
    assignment = standing.assignment
    asks = step.protocol.asks(step.page)
    stored = None
    if visit is not None and visit.recorded_at:
        responses = Response.objects.filter(assignment=assignment, slot__in=list(asks)) if asks else ()
        stored = stored_texts(asks, step.page, responses) | as_sent(visit.unseen)
    shown = shown_page(assignment, step.page, asks, stored=stored, draft=visit.draft if visit else None, sent=sent)
    plan = plan_of(assignment)
    pages = len(standing.walk.keys)
    place = standing.walk.places[step.page.key] + 1
    words = wording_of(assignment.study, assignment.design_id)
    layout = (visit.layout if visit else "") or next(
        (v.layout for v in reversed(standing.visits.values()) if v.layout), ""
    )
    context = {
        "study": words.study,
        "page": shown,
        "assignment_path": f"/p/{assignment.code}/",
        "is_recorded": stored is not None,
        "following": standing.walk.after(step.page.key) or "done" if stored is not None else "",
        "place": place,
        "pages": pages,
        "minutes_left": _minutes_left(assignment.study, standing.walk.left[place - 1], plan.offer),
        "layout": layout or step.page.section.settings.get("layout", "side"),
        "kept": kept_place(assignment) if stored is None else None,
        "key": step.page.key,
        "has_agreed": assignment.consented_at is not None,
        "previous": standing.walk.before(step.page.key),
        "general_errors": sent.general if sent else [],
        "instructions": _instructions(assignment) if not step.page.section.position else "",
        "told": told_of(assignment, step.page) if step.protocol is FEEDBACK else (),
        "offer": own_offer(assignment, plan.offer) if place == 1 else None,
    }
    return render(request, step.protocol.template, context | more, status=status)


def _instructions(assignment) -> str:
    return cached_markdown(plan_of(assignment).instructions)


def own_offer(assignment, offer: Offer) -> dict | None:
    """What this annotator's part takes and pays, where the first page did not say so yet."""
    if not offer.is_own:
        return None
    recruitment = assignment.recruitment
    pays = offer.reward if recruitment is None or recruitment.reward is None else None
    return {"minutes": offer.minutes, "reward": pays, "currency": recruitment.currency if recruitment else ""}


def _minutes_left(study: Study, part: float, offer: Offer) -> int | None:
    """By what others took, as long as few have submitted by what was declared. Of an arm that takes another time, by that."""
    usual = None if offer.is_own else study.usual_seconds
    minutes = usual / 60 if usual else offer.minutes
    return max(1, round(minutes * part)) if minutes else None


@for_annotators
def more_time(request, code):
    """Keep the place longer: as often as wished. What is typed on the page comes along and is kept as its draft."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    assignment = assignment_or_404(request, code)
    keep_longer(assignment)
    key = request.GET.get("page", "").replace("\x00", "")[:40]
    try:
        if key or typed_in(request.POST):
            save_draft(assignment, key, request.POST)
    except NotStored as refusal:
        return _not_stored(request, code, key, refusal)
    return HttpResponseRedirect(f"/p/{code}/")


@require_safe
def media(request, code, name):
    """An image, without its name, its dates or anything that tells one from another."""
    from studies.stimuli.images import path_of

    assignment = assignment_or_404(request, code)
    stored = media_names(assignment).get(name) if assignment.batch_id else None
    if stored is None:
        raise Http404
    path = path_of(settings.MEDIA_ROOT, stored)
    response = HttpResponse(path.read_bytes(), content_type="image/webp")
    # The name is of this assignment alone and what it names never changes: the same image is not loaded for every page again.
    response.headers["Cache-Control"] = f"private, max-age={DAY_SECONDS}, immutable"
    response.headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
    response.headers["Content-Disposition"] = 'inline; filename="image.webp"'
    return response
