"""Annotators' pages: no cookie, no session, no script needed. The code in the address is the credential."""

from functools import lru_cache, wraps
from urllib.parse import urlencode

from django.conf import settings
from django.core.signing import BadSignature, TimestampSigner
from django.db import DEFAULT_DB_ALIAS, transaction
from django.db.models import FilteredRelation, Q
from django.http import Http404, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.loader import get_template
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from studies.design import Wording, wording_of
from studies.lifecycle import NotNow
from studies.models import Study

from . import assign
from .at_once import record_at_once, remember
from .channels import REGISTRY, Return
from .identity import keep_identity
from .models import Annotator, Assignment, Inquiry, PageVisit, Recruitment, Response
from .offers import Offer, range_of
from .pages import FEEDBACK, media_names, page_as_shown, page_before, plan_of, shown_of
from .panels import credits
from .pay.promises import lines_of, promises_pay
from .pay.telling import pay_of
from .prepared import Select, columns_of, insert_lightly
from .receipts import receipt_of
from .record import (
    OF_VISIT,
    Closed,
    Conflict,
    Elsewhere,
    Standing,
    Step,
    record_page,
    save_draft,
    standing_at,
    standing_of,
    visits_in,
)
from .show import cached_markdown, shown_page, stored_texts
from .training import told_of
from .verdicts.appeals import open_appeal
from .verdicts.standing import stands
from .work import work_of

# What a person reads where there is no page to answer: (title, words). Written to be true in each case.
NOTES = {
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
# Who has longer than this need not watch the clock.
DAY_MINUTES = 24 * 60
# So long after "no place right now" somebody may still say that they cannot wait.
WAITED_SECONDS = 24 * 3600
# More of one person bury those of the others in the inbox, and fill the disk.
MOST_INQUIRIES = 50
OUTCOME_OF_NOTE = {
    "wait": "full",
    "full": "full",
    "done": "done",
    "barred": "screened_out",
    "paused": "closed",
    "closed": "closed",
    "no_consent": "no_consent",
}


@lru_cache(maxsize=64)
def policy(form_hosts=(), frame_ancestors=()) -> str:
    """The content security policy of annotators' pages: everything from here, nothing inline."""
    return (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
        f"form-action {' '.join([chr(39) + 'self' + chr(39), *form_hosts])}; "
        f"frame-ancestors {' '.join(frame_ancestors) or chr(39) + 'none' + chr(39)}"
    )


def for_annotators(view):
    """Headers that every annotator's page carries. A view says by whom its page may be framed, and whereto its form may be sent."""

    @wraps(view)
    def wrapped(request, *args, **kwargs):
        request.form_hosts, request.frame_ancestors = (), ()
        response = view(request, *args, **kwargs)
        response.headers.setdefault("Content-Security-Policy", policy(request.form_hosts, request.frame_ancestors))
        response.headers.setdefault("Cache-Control", "no-store")
        response.headers["X-Robots-Tag"] = "noindex"
        # Else the web server sends it in chunks: three writes for one.
        response.headers.setdefault("Content-Length", str(len(response.content)))
        return response

    return wrapped


def framed(request, slug: str | None) -> None:
    """Every page of a channel may stand in its panel's frame, one that refuses too."""
    request.frame_ancestors = REGISTRY[slug].frame_ancestors if slug in REGISTRY else ()


def render(request, template: str, context: dict, status: int = 200) -> HttpResponse:
    """A page for annotators. It needs nothing that context processors know."""
    return HttpResponse(get_template(template).template.render(context | {"request": request}), status=status)


def note(request, study_words, kind: str, way_back: Return | None = None, status: int = 200, **more):
    title, words = NOTES[kind]
    context = {"study": study_words, "title": title, "words": words, "way_back": way_back, "kind": kind, **more}
    _may_send(request, way_back)
    return render(request, "annotate/note.html", context, status=status)


def _may_send(request, way_back: Return | None) -> None:
    """The page's policy lets its form go where the way back leads, and on within the panel: a browser asks at each redirect."""
    if way_back and way_back.host:
        request.form_hosts = (way_back.host, *request.frame_ancestors) if way_back.fields else (way_back.host,)


def public_wording(study: Study) -> Wording:
    """The words of the study's newest version, for someone who has no assignment yet."""
    latest = study.designs.order_by("version").values_list("pk", flat=True).last()
    return wording_of(study, latest)


@for_annotators
@require_http_methods(["GET", "HEAD", "POST"])
def entry(request, key):
    """The door. Looking writes nothing; only Start, pressed by a person, claims a place."""
    recruitment = Recruitment.objects.select_related("study").filter(key=key).first()
    if recruitment is None or recruitment.study.state in (Study.State.DRAFT, Study.State.LAUNCHING):
        raise Http404
    study, channel = recruitment.study, REGISTRY[recruitment.channel]
    framed(request, recruitment.channel)
    wording = public_wording(study)
    words = wording.study
    repeated = [name for name, values in request.GET.lists() if len(values) > 1]
    parameters = request.GET.dict()
    # U+FFFD is what is left of bytes that were no text.
    if repeated or any(c < " " or c == "\ufffd" for value in parameters.values() for c in value):
        return _landing(
            request, recruitment, wording, problem="This link is not right. Please start from the panel again."
        )
    arrival = channel.arrive(recruitment, parameters)
    if arrival.problem or arrival.is_preview:
        shown = {"problem": arrival.problem, "is_preview": arrival.is_preview, "preview_words": channel.preview_words}
        return _landing(request, recruitment, wording, **shown)
    now = timezone.now()
    is_open = (
        not recruitment.stopped_at
        and not (recruitment.opens_at and now < recruitment.opens_at)
        and not (recruitment.closes_at and now > recruitment.closes_at)
    )
    returning = _assignment_of(recruitment, arrival)
    if request.method != "POST":
        if returning is not None and has_work(returning):
            return to_work(request, returning)
        if returning is None and (not is_open or study.state != Study.State.LAUNCHED):
            kind = "paused" if is_open and study.state == Study.State.PAUSED else "closed"
            return note(request, words, kind, _way_back(recruitment, OUTCOME_OF_NOTE[kind], arrival.ids))
        return _landing(request, recruitment, wording, is_returning=returning is not None)
    if "decline" in request.POST:
        return note(request, words, "no_consent", _way_back(recruitment, "no_consent", arrival.ids))
    if "leave" in request.POST:
        turned_away = _turned_away(request, recruitment, arrival)
        return HttpResponseRedirect(f"/p/{turned_away.code}/" if turned_away else request.get_full_path())
    if returning is None and not is_open:
        return note(request, words, "closed", _way_back(recruitment, "closed", arrival.ids))
    if returning is None and words["consent"] and request.POST.get("agree") != "1":
        return _landing(
            request, recruitment, wording, error="Please tick the box if you agree to take part.", status=422
        )
    arms = list(recruitment.arms.values_list("pk", flat=True))
    # One transaction, for one wait for the disk.
    with transaction.atomic():
        annotator = assign.annotator_of(recruitment.pool, arrival.person)
        keep_identity(annotator, arrival.ids.get("person", ""))
        claim = assign.claim_batch(
            study,
            annotator,
            recruitment,
            arms,
            external_ids=dict(arrival.ids),
            trust=arrival.trust,
            is_consented=bool(words["consent"]),
        )
        is_theirs = claim.outcome == "claimed"
        if claim.outcome == "done" and claim.assignment:
            retaken = channel.retaken(claim.assignment.external_ids, arrival.ids)
            is_theirs = retaken is not False
            if retaken:
                assign.rebound(claim.assignment, dict(arrival.ids))
    if is_theirs:
        return HttpResponseRedirect(f"/p/{claim.assignment.code}/")
    kind = claim.outcome
    if kind == "wait" and returning is None and _gains_by_leaving(recruitment, arrival):
        waited = _waits(recruitment).sign(str(annotator.code))
        pays = promises_pay(recruitment, OUTCOME_OF_NOTE[kind])
        return note(request, words, kind, may_retry=True, waited=waited, pays=pays)
    receipt = receipt_of(claim.assignment.code) if claim.assignment and kind != "done" else ""
    return note(
        request,
        words,
        kind,
        _way_back(recruitment, OUTCOME_OF_NOTE[kind], arrival.ids, receipt),
        may_retry=kind in ("wait", "paused"),
    )


def _waits(recruitment: Recruitment) -> TimestampSigner:
    """What it signs was told by this link that there is no place right now."""
    return TimestampSigner(salt=f"waits:{recruitment.key}")


def _gains_by_leaving(recruitment: Recruitment, arrival) -> bool:
    """Whether a panel wants to be told, or pay was promised: only then is somebody who cannot wait written down."""
    back = _way_back(recruitment, OUTCOME_OF_NOTE["wait"], arrival.ids)
    return back.is_one or promises_pay(recruitment, OUTCOME_OF_NOTE["wait"])


def _turned_away(request, recruitment: Recruitment, arrival) -> Assignment | None:
    """Who was told to wait, and cannot. None where it is not they who say so, or where it is long ago."""
    try:
        code = _waits(recruitment).unsign(request.POST.get("waited", ""), max_age=WAITED_SECONDS)
    except BadSignature:
        return None
    annotator = Annotator.objects.filter(code=code).first()
    key = assign.pool_key(recruitment.pool, arrival.person) if arrival.person else ""
    if annotator is None or key not in ("", annotator.external_id):
        return None
    return assign.turn_away(recruitment.study, annotator, recruitment, dict(arrival.ids), arrival.trust)


def _assignment_of(recruitment, arrival):
    """A person's assignment in this study, where the channel knows persons: looking it up writes nothing."""
    if not arrival.person:
        return None
    from .channels import keyed

    return (
        Assignment.objects.filter(
            study=recruitment.study, annotator__pool=recruitment.pool, annotator__external_id=keyed("person", recruitment.pool, arrival.person)
        )
        .exclude(batch=None)
        .order_by("-pk")
        .first()
    )  # fmt: skip


def _landing(request, recruitment, wording: Wording, status=200, **more):
    words = wording.study
    is_varied = any(arm["reward"] is not None or arm["minutes"] for arm in wording.arms.values())
    arms = set(recruitment.arms.values_list("name", flat=True)) if is_varied and recruitment.pk else ()
    offer = range_of(wording, arms, recruitment.reward)
    currency = recruitment.currency or words["currency"]
    context = {
        "study": words,
        "purpose": cached_markdown(words["purpose"]) if words["purpose"] else "",
        "consent": cached_markdown(words["consent"]) if words["consent"] else "",
        "offer": offer,
        "currency": currency,
        "early": lines_of(recruitment, currency) if offer.pays else [],
        "action": f"?{urlencode(request.GET)}" if request.GET else "",
    }
    return render(request, "annotate/landing.html", context | more, status=status)


def _way_back(recruitment: Recruitment | None, outcome: str, external_ids, receipt: str = "") -> Return:
    if recruitment is None:
        return Return(code=receipt)
    return REGISTRY[recruitment.channel].way_back(recruitment, outcome, external_ids, receipt)


def assignment_or_404(request, code: str) -> Assignment:
    try:
        assignment = Assignment.objects.select_related("study", "recruitment").get(code=code)
    except Assignment.DoesNotExist:
        raise Http404 from None
    if assignment.recruitment is not None:
        assignment.recruitment.study = assignment.study
        framed(request, assignment.recruitment.channel)
    return assignment


# What a page and its record read. A study has fifty columns: loading them took longer than anything else in a page.
OF_ASSIGNMENT = columns_of(
    Assignment,
    "id", "code", "study_id", "batch_id", "annotator_id", "design_id", "seed", "origin", "reserved_until", "started_at",
    "submitted_at", "withdrawn_at", "released_at", "released_reason",
)  # fmt: skip
OF_STUDY = columns_of(Study, "id", "idle_seconds", "minutes", "usual_seconds")
_on_page = Select(
    lambda code, before, key: Assignment.objects.filter(code=code)
    .annotate(near=FilteredRelation("visits", condition=Q(visits__key__in=[before, key])))
    .order_by()
    .values_list(
        *OF_ASSIGNMENT, *(f"study__{name}" for name in OF_STUDY), "recruitment__channel", *(f"near__{name}" for name in OF_VISIT)
    ),
    str, str, str,
)  # fmt: skip


def assignment_on_page(request, code: str, key: str = "") -> Assignment:
    """The assignment with what its pages read of it, and the visits around this page; every other column would be loaded when
    asked for. Raises Http404."""
    wanted = (page_before(code, key) if key else "", key)
    rows = _on_page(code, *wanted)
    if not rows:
        raise Http404
    of_study = len(OF_ASSIGNMENT)
    of_channel = of_study + len(OF_STUDY)
    of_visit = of_channel + 1
    assignment = Assignment.from_db(DEFAULT_DB_ALIAS, OF_ASSIGNMENT, rows[0][:of_study])
    assignment.study = Study.from_db(DEFAULT_DB_ALIAS, OF_STUDY, rows[0][of_study:of_channel])
    framed(request, rows[0][of_channel])
    remember(assignment.design_id, assignment.study)
    assignment.around = wanted, visits_in(row[of_visit:] for row in rows if row[of_visit] is not None)
    return assignment


class ToPage(HttpResponseRedirect):
    """To an address that was made here, of letters, digits and points: Django would take it apart first."""

    def __init__(self, path: str):
        HttpResponse.__init__(self, headers={"Location": path})


def to_page(code: str, key: str | None) -> ToPage:
    return ToPage(f"/p/{code}/{key}/" if key else f"/p/{code}/done/")


@for_annotators
@require_safe
def first(request, code):
    """To wherever the annotator is: the next page, or the end."""
    assignment = assignment_on_page(request, code)
    if has_ended(assignment):
        return to_page(code, None)
    return to_page(code, standing_of(assignment).next_key)


def has_ended(assignment: Assignment) -> bool:
    return bool(
        assignment.submitted_at
        or assignment.withdrawn_at
        or assignment.released_reason in assign.ENDS_PARTICIPATION
        or assignment.batch_id is None
    )


@for_annotators
@require_http_methods(["GET", "HEAD", "POST"])
def page(request, code, key):
    if request.method == "POST":
        return _posted(request, code, key)
    assignment = assignment_on_page(request, code, key)
    if has_ended(assignment) and assignment.submitted_at is None:
        return to_page(code, None)
    standing = standing_at(assignment, key)
    visit = standing.visits.get(key)
    if key not in standing.steps or (visit is None and not standing.is_next(key)):
        return to_page(code, standing.next_key)
    step = standing.steps[key]
    if visit is None and request.method == "GET":
        visit = _first_sight(standing, step, key)
    elif visit is not None:
        step = Step(step.protocol, page_as_shown(step.page, visit.shown), step.purpose)
    return page_response(request, standing, step, visit)


def _first_sight(standing: Standing, step: Step, key: str) -> PageVisit:
    """What is shown is written once; of two tabs that open at the same moment the second reads what the first wrote.

    A page begins in the layout that was chosen on the one before.
    """
    assignment = standing.assignment
    before = standing.visits.get(standing.walk.before(key))
    made = PageVisit(assignment=assignment, key=key, shown=shown_of(step.page), layout=before.layout if before else "")
    # Drawn from the assignment's seed, it comes out the same where a power cut has lost it. What is recorded waits for the disk.
    insert_lightly(PageVisit, ("assignment", "key", "shown", "layout", "active_seconds"), made)
    if assignment.started_at is None:
        assign.begin(assignment)
    return made


def _posted(request, code, key):
    if request.FILES:
        return HttpResponse("This page takes no files.", status=400, content_type="text/plain")
    is_answer = "layout" not in request.POST and "save" not in request.POST
    if is_answer and (stored := record_at_once(code, key, request.POST)):
        following, channel = stored
        framed(request, channel)
        return to_page(code, following)
    assignment = assignment_on_page(request, code, key)
    if not is_answer:
        saved = save_draft(assignment, key, request.POST)
        if request.POST.get("save") == "auto":
            return HttpResponse(status=204 if saved else 409)
        return to_page(code, key)
    try:
        outcome = record_page(assignment, key, request.POST)
    except Conflict:
        return _conflict(request, assignment, key)
    except (Elsewhere, Closed):
        return HttpResponseRedirect(f"/p/{code}/")
    if outcome.sent is None:
        return to_page(code, outcome.following)
    standing = standing_at(assignment, key)
    return page_response(request, standing, outcome.step, standing.visits.get(key), sent=outcome.sent, status=422)


def _conflict(request, assignment, key):
    """Another answer for a page that is recorded: told so, and shown what is stored."""
    standing = standing_at(assignment, key)
    visit = standing.visits[key]
    step = standing.steps[key]
    step = Step(step.protocol, page_as_shown(step.page, visit.shown), step.purpose)
    return page_response(request, standing, step, visit, status=409, is_conflict=True)


def page_response(request, standing: Standing, step: Step, visit: PageVisit | None, *, sent=None, status=200, **more):
    """Draw one page: to be answered, to be corrected, or (recorded) to be looked at."""
    assignment = standing.assignment
    asks = step.protocol.asks(step.page)
    stored = None
    if visit is not None and visit.recorded_at:
        responses = Response.objects.filter(assignment=assignment, slot__in=list(asks)) if asks else ()
        stored = stored_texts(asks, step.page, responses)
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
        "kept_minutes": _kept_minutes(assignment),
        "previous": standing.walk.before(step.page.key),
        "general_errors": sent.general if sent else [],
        "instructions": _instructions(assignment) if not step.page.section.position else "",
        "told": told_of(assignment, step.page) if step.protocol is FEEDBACK else (),
        "offer": _own_offer(assignment, plan.offer) if place == 1 else None,
    }
    return render(request, step.protocol.template, context | more, status=status)


def _instructions(assignment) -> str:
    return cached_markdown(plan_of(assignment).instructions)


def _own_offer(assignment, offer: Offer) -> dict | None:
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


def _kept_minutes(assignment) -> int | None:
    if assignment.reserved_until is None or assignment.released_at:
        return None
    minutes = max(0, int((assignment.reserved_until - timezone.now()).total_seconds() // 60))
    return minutes if minutes < DAY_MINUTES else None


def _outcome(assignment) -> str:
    if assignment.withdrawn_at:
        return "withdrawn"
    if assignment.submitted_at:
        return "complete"
    return {"screened_out": "screened_out", "failed_checks": "failed_checks", "full": "full"}.get(
        assignment.released_reason, "closed"
    )


@for_annotators
@require_safe
def done(request, code):
    """The end, for ever: the receipt or code, the way back to the panel, what happens next."""
    assignment = assignment_or_404(request, code)
    if not has_ended(assignment):
        return HttpResponseRedirect(f"/p/{code}/")
    outcome = _outcome(assignment)
    receipt = receipt_of(code)
    # Who finished before leaving goes back as everybody who finished: they shall be paid.
    ended = "complete" if assignment.submitted_at else outcome
    credit = credits.standing(assignment)
    if credit == credits.GIVEN:
        way_back = REGISTRY[assignment.recruitment.channel].home(assignment.recruitment)
    else:
        way_back = _way_back(assignment.recruitment, ended, assignment.external_ids, receipt)
    words = wording_of(assignment.study, assignment.design_id).study
    may_go_on = (
        outcome == "complete" and assignment.study.batches_per_annotator > 1 and assignment.recruitment is not None
    )
    found = stands(assignment)
    context = {
        "study": words,
        "outcome": outcome,
        "stands": found,
        "receipt": receipt,
        "way_back": way_back,
        "credit": credit,
        # Where there is more to read or to do here, the person decides when to go.
        "goes_by_itself": outcome == "complete"
        and not (found and (found.is_at_panel or found.rejected))
        and not words["debriefing"]
        and not assignment.is_late
        and not may_go_on,
        "debriefing": cached_markdown(words["debriefing"]) if words["debriefing"] and outcome == "complete" else "",
        "is_late": assignment.is_late,
        "may_withdraw": may_withdraw(assignment),
        "assignment_path": f"/p/{code}/",
        "submitted_at": assignment.submitted_at,
        "pay": pay_of(assignment),
        "offer": _paid(assignment) if outcome == "complete" else None,
        "has_work": outcome == "complete" and has_work(assignment),
        "may_go_on": may_go_on,
    }
    _may_send(request, way_back)
    return render(request, "annotate/done.html", context)


def _paid(assignment) -> dict | None:
    """What is paid for this part, where arms are paid differently."""
    return _own_offer(assignment, plan_of(assignment).offer)


def may_withdraw(assignment) -> bool:
    until = assignment.study.withdrawal_until
    return (
        not assignment.withdrawn_at
        and assignment.batch_id is not None
        and (until is None or timezone.now().date() <= until)
    )


def has_work(assignment) -> bool:
    """Whether the person has a list of parts: they came by a recruitment that keeps places for days, and may still take part."""
    return (
        assign.kept_seconds(assignment.recruitment) > 0
        and assignment.batch_id is not None
        and assignment.withdrawn_at is None
        and assignment.released_reason not in assign.ENDS_PARTICIPATION
    )


def to_work(request, assignment) -> HttpResponse:
    return render(request, "annotate/work.html", work_of(assignment))


@for_annotators
@require_safe
def parts(request, code):
    """Someone's parts of the study: done, begun, still to be had, and what they pay. Any of their codes leads here."""
    assignment = assignment_or_404(request, code)
    return to_work(request, assignment) if has_work(assignment) else HttpResponseRedirect(f"/p/{code}/")


@for_annotators
@require_http_methods(["GET", "HEAD", "POST"])
def withdraw(request, code):
    """GET says what is paid, kept and deleted; POST does it."""
    assignment = assignment_or_404(request, code)
    if assignment.withdrawn_at or not may_withdraw(assignment):
        return (
            HttpResponseRedirect(f"/p/{code}/done/") if has_ended(assignment) else HttpResponseRedirect(f"/p/{code}/")
        )
    if request.method == "POST":
        assign.withdraw(assignment)
        return HttpResponseRedirect(f"/p/{code}/done/")
    context = {
        "study": wording_of(assignment.study, assignment.design_id).study,
        "assignment_path": f"/p/{code}/",
        "is_submitted": assignment.submitted_at is not None,
        "pay": pay_of(assignment, "withdrawn"),
        "blanks_ratings": assignment.study.withdrawal_blanks_ratings,
    }
    return render(request, "annotate/withdraw.html", context)


@for_annotators
def more_time(request, code):
    """Keep the place longer: as often as wished. What is typed on the page comes along and is kept as its draft."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    assignment = assignment_or_404(request, code)
    assign.extend(assignment)
    if key := request.GET.get("page", "").replace("\x00", "")[:40]:
        save_draft(assignment, key, request.POST)
    return HttpResponseRedirect(f"/p/{code}/")


@for_annotators
def another(request, code):
    """Another batch for someone who has submitted one: the code says who they are."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    assignment = assignment_or_404(request, code)
    if assignment.submitted_at is None:
        return HttpResponseRedirect(f"/p/{code}/")
    recruitment = assignment.recruitment
    arms = list(recruitment.arms.values_list("pk", flat=True)) if recruitment else []
    claim = assign.claim_batch(
        assignment.study, assignment.annotator, recruitment, arms, origin=assignment.origin, trust=assignment.trust,
        external_ids=assignment.external_ids, is_consented=assignment.consented_at is not None,
    )  # fmt: skip
    if claim.outcome == "claimed":
        return HttpResponseRedirect(f"/p/{claim.assignment.code}/")
    if claim.outcome == "done":
        return HttpResponseRedirect(f"/p/{code}/done/")
    words = wording_of(assignment.study, assignment.design_id).study
    # The page for it takes a form alone, and they have a last page to go back to.
    return note(
        request, words, claim.outcome, may_retry=claim.outcome in ("wait", "paused"), retry_path=request.path, back_path=f"/p/{code}/done/"
    )  # fmt: skip


@for_annotators
@require_http_methods(["GET", "HEAD", "POST"])
def inquire(request, code):
    """Report a text, or ask the researcher: one inbox, blind to systems."""
    assignment = assignment_or_404(request, code)
    error = ""
    if request.method == "POST":
        from studies.texts import TextRefused, clean_text, is_blank

        try:
            text = clean_text(request.POST.get("text", "")).strip()
        except TextRefused as refused:
            text, error = "", str(refused)
        if Inquiry.objects.filter(assignment=assignment).count() >= MOST_INQUIRIES:
            error = f"You have written {MOST_INQUIRIES} messages here. The researcher reads them; please wait for an answer."
        elif not is_blank(text) and len(text) <= 2000:
            kind = Inquiry.Kind.REPORT if request.POST.get("kind") == "report" else Inquiry.Kind.QUESTION
            page_key = request.GET.get("page", "")[:40].replace("\x00", "")
            Inquiry.objects.create(assignment=assignment, kind=kind, text=text, page_key=page_key)
            return render(request, "annotate/inquiry.html", _inquiry_context(assignment, is_sent=True))
        error = error or ("Please write a few words." if is_blank(text) else "Please use at most 2000 characters.")
    # What was refused comes back to be corrected.
    typed = {"text": request.POST.get("text", "")[:20_000], "kind": request.POST.get("kind", "")}
    context = _inquiry_context(assignment, error=error, **typed)
    return render(request, "annotate/inquiry.html", context, status=422 if error else 200)


def _inquiry_context(assignment, **more):
    words = wording_of(assignment.study, assignment.design_id).study
    return {"study": words, "assignment_path": f"/p/{assignment.code}/"} | more


@for_annotators
@require_http_methods(["GET", "HEAD", "POST"])
def appeal(request, code):
    """Object to a rejection, once: somebody else than who rejected answers."""
    assignment = assignment_or_404(request, code)
    found = stands(assignment)
    rejected = found.rejected if found else None
    if rejected is None or not rejected.may_appeal:
        return HttpResponseRedirect(f"/p/{code}/done/")
    error, text = "", request.POST.get("text", "")
    if request.method == "POST":
        try:
            open_appeal(assignment, text)
            return HttpResponseRedirect(f"/p/{code}/done/#stands")
        except NotNow as refused:
            error = str(refused)
    words = wording_of(assignment.study, assignment.design_id).study
    context = {
        "study": words, "rejected": rejected, "error": error, "text": text[:20_000], "outcome": _outcome(assignment),
        "assignment_path": f"/p/{code}/",
    }  # fmt: skip
    return render(request, "annotate/appeal.html", context, status=422 if error else 200)


@for_annotators
@require_safe
def consent(request, code):
    """What was agreed to, to read again and to keep."""
    assignment = assignment_or_404(request, code)
    words = wording_of(assignment.study, assignment.design_id).study
    context = {
        "study": words,
        "consent": cached_markdown(words["consent"]),
        "consented_at": assignment.consented_at,
        "version": assignment.consent_version,
        "assignment_path": f"/p/{code}/",
    }
    return render(request, "annotate/consent.html", context)


@require_safe
def media(request, code, name):
    """An image, without its name, its dates or anything that tells one from another."""
    from studies.media import path_of

    assignment = assignment_or_404(request, code)
    stored = media_names(assignment).get(name) if assignment.batch_id else None
    if stored is None:
        raise Http404
    path = path_of(settings.MEDIA_ROOT, stored)
    response = HttpResponse(path.read_bytes(), content_type="image/webp")
    response.headers["Cache-Control"] = "private, no-store"
    response.headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
    response.headers["Content-Disposition"] = 'inline; filename="image.webp"'
    return response
