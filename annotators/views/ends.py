"""What follows the questions, and what stands beside them: the receipt, leaving, asking, another part."""

from django.http import HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.views.decorators.http import require_http_methods, require_safe

from annotators.models.identity import ids_of, panel_id
from annotators.pages.show import cached_markdown
from annotators.pages.typed_text import Typed
from annotators.participation import withdraw as withdrawal
from annotators.participation.my_work import more_of, work_of
from annotators.pay.verdicts.appeals import open_appeal
from annotators.pay.verdicts.status import stands
from annotators.places import assign
from annotators.places.batch_plan import plan_of
from annotators.places.deadlines import give_back_if_closed, is_cut_off
from annotators.places.receipts import receipt_of
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels import credits
from studies.design.wording import wording_of
from studies.services.lifecycle import NotNow
from studies.stimuli.texts import TextRefused, clean_text, is_blank

from ..models import Appeal, Assignment, Inquiry
from ..pay.telling import pay_of, why_id_stays
from .pages import own_offer
from .replies import for_annotators, let_send, note, render, way_back_of
from .whose import assignment_or_404, has_ended, has_work, may_withdraw

FIRST_ENDS = (Assignment.Released.SCREENED_OUT, Assignment.Released.FAILED_CHECKS, Assignment.Released.FULL)
# More of one person bury those of the others in the inbox, and fill the disk.
MOST_INQUIRIES = 50


def _outcome(assignment) -> str:
    return "withdrawn" if assignment.withdrawn_at else _first_end(assignment)


def _first_end(assignment) -> str:
    """How it ended first. A person who leaves afterwards keeps the code that was shown, and the pay: there is one of each."""
    if assignment.submitted_at:
        return "complete"
    if assignment.released_reason in FIRST_ENDS:
        return assignment.released_reason
    closed_at = assignment.study.closed_at
    was_closed_before = closed_at and (not assignment.withdrawn_at or assignment.withdrawn_at > closed_at)
    if was_closed_before and is_cut_off(assignment):
        return "closed"
    return "withdrawn" if assignment.withdrawn_at else "closed"


@for_annotators
@require_safe
def done(request, code):
    """The end, for ever: the receipt or code, the way back to the panel, what happens next."""
    assignment = assignment_or_404(request, code)
    if not has_ended(assignment):
        return HttpResponseRedirect(f"/p/{code}/")
    give_back_if_closed(assignment)
    return _end(request, assignment, ids_of(assignment))


def _end(request, assignment, ids) -> HttpResponse:
    code, outcome, ended = assignment.code, _outcome(assignment), _first_end(assignment)
    receipt = receipt_of(code)
    credit = credits.standing(assignment)
    if credit == credits.GIVEN:
        way_back = REGISTRY[assignment.recruitment.channel].home(assignment.recruitment)
    else:
        way_back = way_back_of(assignment.recruitment, ended, ids, receipt)
    words = wording_of(assignment.study, assignment.design_id).study
    more = more_of(assignment) if outcome == "complete" else None
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
        and not (more and more.is_there),
        "debriefing": cached_markdown(words["debriefing"]) if words["debriefing"] and outcome == "complete" else "",
        "is_late": assignment.is_late,
        "may_withdraw": may_withdraw(assignment),
        "assignment_path": f"/p/{code}/",
        "submitted_at": assignment.submitted_at,
        "id_stays": outcome == "withdrawn" and panel_id(assignment.annotator) is not None,
        "pay": pay_of(assignment),
        "offer": _paid(assignment) if outcome == "complete" else None,
        "has_work": outcome == "complete" and has_work(assignment),
        "more": more,
        "has_ended_before": ended not in ("complete", "withdrawn"),
        "has_agreed": assignment.consented_at is not None,
    }
    let_send(request, way_back)
    return render(request, "annotate/done.html", context)


def _paid(assignment) -> dict | None:
    """What is paid for this part, where arms are paid differently."""
    return own_offer(assignment, plan_of(assignment).offer)


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
        ids, ended = ids_of(assignment), "complete" if assignment.submitted_at else "withdrawn"
        withdrawal.withdraw(assignment)
        backs = [
            way_back_of(assignment.recruitment, ended, known, receipt_of(code)) for known in (ids, ids_of(assignment))
        ]
        if backs[0] != backs[1]:
            # The address of the panel names the person: after this answer nothing here can name them any more.
            return _end(request, assignment_or_404(request, code), ids)
        return HttpResponseRedirect(f"/p/{code}/done/")
    context = {
        "study": wording_of(assignment.study, assignment.design_id).study,
        "assignment_path": f"/p/{code}/",
        "has_agreed": assignment.consented_at is not None,
        "is_submitted": assignment.submitted_at is not None,
        # A person who has lost the place already is owed what that end owes: leaving changes nothing in it.
        "pay": pay_of(assignment, "" if assignment.released_at else "withdrawn"),
        "blanks_ratings": assignment.study.withdrawal_blanks_ratings,
        "id_stays": why_id_stays(assignment),
        "keeps_visit": bool(assignment.external_ids.get("session")),
        "study_days": assignment.study.erase_after_days,
    }
    return render(request, "annotate/withdraw.html", context)


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
        assignment.study,
        assignment.annotator,
        recruitment,
        arms,
        origin=assignment.origin,
        trust=assignment.trust,
        external_ids=assignment.external_ids,
        is_consented=assignment.consented_at is not None,
    )
    if claim.outcome == "claimed":
        return HttpResponseRedirect(f"/p/{claim.assignment.code}/")
    if claim.outcome == "done":
        return HttpResponseRedirect(f"/p/{code}/done/")
    words = wording_of(assignment.study, assignment.design_id).study
    # The page for it takes a form alone, and they have a last page to go back to.
    return note(
        request,
        words,
        claim.outcome,
        may_retry=claim.outcome in ("wait", "paused"),
        retry_path=request.path,
        back_path=f"/p/{code}/done/",
    )


@for_annotators
@require_http_methods(["GET", "HEAD", "POST"])
def inquire(request, code):
    """Report a text, or ask the researcher: one inbox, blind to systems."""
    assignment = assignment_or_404(request, code)
    error = ""
    if request.method == "POST":
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
    has_agreed = assignment.consented_at is not None
    return {"study": words, "assignment_path": f"/p/{assignment.code}/", "has_agreed": has_agreed} | more


@for_annotators
@require_http_methods(["GET", "HEAD", "POST"])
def appeal(request, code):
    """Object to a rejection, once: somebody else than who rejected answers."""
    assignment = assignment_or_404(request, code)
    found = stands(assignment)
    rejected = found.rejected if found else None
    error, text = "", request.POST.get("text", "")
    words = wording_of(assignment.study, assignment.design_id).study
    if rejected is None or not rejected.may_appeal:
        is_kept = Appeal.objects.filter(verdict__assignment=assignment, text=text.strip()).exists()
        if is_blank(text) or is_kept:
            return HttpResponseRedirect(f"/p/{code}/done/")
        context = {
            "study": words,
            "assignment_path": f"/p/{code}/",
            "outcome": has_ended(assignment),
            "title": "Your objection was not stored",
            "reason": "There is nothing to object to, or you have objected before.",
            "typed": [Typed("Why it should be taken back", text)],
        }
        return render(request, "annotate/not_stored.html", context, status=409)
    if request.method == "POST":
        try:
            open_appeal(assignment, text)
            return HttpResponseRedirect(f"/p/{code}/done/#stands")
        except NotNow as refused:
            error = str(refused)
    context = {
        "study": words,
        "rejected": rejected,
        "error": error,
        "text": text[:20_000],
        "outcome": _outcome(assignment),
        "assignment_path": f"/p/{code}/",
        "has_agreed": assignment.consented_at is not None,
    }
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
        "has_agreed": assignment.consented_at is not None,
    }
    return render(request, "annotate/consent.html", context)
