"""What follows the questions, and what stands beside them: the receipt, leaving, asking, another part."""

from django.http import HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.views.decorators.http import require_http_methods, require_safe

from annotators.models import Appeal, Assignment, Inquiry
from annotators.models.identity import full_external_ids, get_person_id
from annotators.pages.presentation import cached_markdown
from annotators.pages.typed_text import TypedAnswer
from annotators.participation import withdrawal as withdrawal
from annotators.participation.parts import get_remaining_parts, parts_overview_context
from annotators.pay.statement import pay_statement, reason_id_retained
from annotators.pay.verdicts.appeals import open_appeal
from annotators.pay.verdicts.status import work_status
from annotators.places import assign
from annotators.places.batch_plan import plan_of
from annotators.places.deadlines import is_cut_off_by_closing, release_if_closed
from annotators.places.receipts import receipt_of
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels import credits
from studies.design.wording import wording_of
from studies.services.lifecycle import ActionRefused
from studies.stimuli.texts import TextRefused, clean_text, is_blank

from .http_responses import add_annotator_headers, allow_form_target, render, render_notice, way_back_of
from .lookup import assignment_or_404, has_ended, has_parts_overview, may_withdraw
from .pages import arm_offer_context

OUTCOME_RELEASE_REASONS = (
    Assignment.Released.SCREENED_OUT,
    Assignment.Released.FAILED_CHECKS,
    Assignment.Released.FULL,
)
# More of one person bury those of the others in the inbox, and fill the disk.
MAX_INQUIRIES = 50


def _outcome(assignment) -> str:
    return "withdrawn" if assignment.withdrawn_at else _first_outcome(assignment)


def _first_outcome(assignment) -> str:
    """How it ended first. A person who leaves afterwards keeps the code that was shown, and the pay: there is one of each."""
    if assignment.submitted_at:
        return "complete"
    if assignment.released_reason in OUTCOME_RELEASE_REASONS:
        return assignment.released_reason
    closed_at = assignment.study.closed_at
    was_closed_before = closed_at and (not assignment.withdrawn_at or assignment.withdrawn_at > closed_at)
    if was_closed_before and is_cut_off_by_closing(assignment):
        return "closed"
    return "withdrawn" if assignment.withdrawn_at else "closed"


@add_annotator_headers
@require_safe
def done_page(request, code):
    """The end, for ever: the receipt or code, the way back to the panel, what happens next."""
    assignment = assignment_or_404(request, code)
    if not has_ended(assignment):
        return HttpResponseRedirect(f"/p/{code}/")
    release_if_closed(assignment)
    return _render_done_page(request, assignment, full_external_ids(assignment))


def _render_done_page(request, assignment, ids) -> HttpResponse:
    code, outcome, ended = assignment.code, _outcome(assignment), _first_outcome(assignment)
    receipt = receipt_of(code)
    credit = credits.credit_status(assignment)
    if credit == credits.GIVEN:
        way_back = REGISTRY[assignment.recruitment.channel].plain_way_back(assignment.recruitment)
    else:
        way_back = way_back_of(assignment.recruitment, ended, ids, receipt)
    words = wording_of(assignment.study, assignment.design_id).study
    more = get_remaining_parts(assignment) if outcome == "complete" else None
    found = work_status(assignment)
    context = {
        "study": words,
        "outcome": outcome,
        "stands": found,
        "receipt": receipt,
        "way_back": way_back,
        "credit": credit,
        # Where there is more to read or to do here, the person decides when to go.
        "goes_by_itself": outcome == "complete"
        and not (found and (found.is_at_panel or found.rejection))
        and not words["debriefing"]
        and not assignment.is_late
        and not (more and more.is_any_left),
        "debriefing": cached_markdown(words["debriefing"]) if words["debriefing"] and outcome == "complete" else "",
        "is_late": assignment.is_late,
        "may_withdraw": may_withdraw(assignment),
        "assignment_path": f"/p/{code}/",
        "submitted_at": assignment.submitted_at,
        "id_stays": outcome == "withdrawn" and get_person_id(assignment.annotator) is not None,
        "pay": pay_statement(assignment),
        "offer": _arm_offer_context(assignment) if outcome == "complete" else None,
        "has_work": outcome == "complete" and has_parts_overview(assignment),
        "more": more,
        "has_ended_before": ended not in ("complete", "withdrawn"),
        "has_agreed": assignment.consented_at is not None,
    }
    allow_form_target(request, way_back)
    return render(request, "annotate/done.html", context)


def _arm_offer_context(assignment) -> dict | None:
    """What is paid for this part, where arms are paid differently."""
    return arm_offer_context(assignment, plan_of(assignment).offer)


def render_parts_overview(request, assignment) -> HttpResponse:
    return render(request, "annotate/work.html", parts_overview_context(assignment))


@add_annotator_headers
@require_safe
def parts_overview(request, code):
    """Someone's parts of the study: done, begun, still to be had, and what they pay. Any of their codes leads here."""
    assignment = assignment_or_404(request, code)
    return (
        render_parts_overview(request, assignment)
        if has_parts_overview(assignment)
        else HttpResponseRedirect(f"/p/{code}/")
    )


@add_annotator_headers
@require_http_methods(["GET", "HEAD", "POST"])
def withdraw(request, code):
    """GET says what is paid, kept and deleted; POST does it."""
    assignment = assignment_or_404(request, code)
    if assignment.withdrawn_at or not may_withdraw(assignment):
        return (
            HttpResponseRedirect(f"/p/{code}/done/") if has_ended(assignment) else HttpResponseRedirect(f"/p/{code}/")
        )
    if request.method == "POST":
        ids, ended = full_external_ids(assignment), "complete" if assignment.submitted_at else "withdrawn"
        withdrawal.withdraw_annotator(assignment)
        backs = [
            way_back_of(assignment.recruitment, ended, known, receipt_of(code))
            for known in (ids, full_external_ids(assignment))
        ]
        if backs[0] != backs[1]:
            # The address of the panel names the person: after this answer nothing here can name them any more.
            return _render_done_page(request, assignment_or_404(request, code), ids)
        return HttpResponseRedirect(f"/p/{code}/done/")
    context = {
        "study": wording_of(assignment.study, assignment.design_id).study,
        "assignment_path": f"/p/{code}/",
        "has_agreed": assignment.consented_at is not None,
        "is_submitted": assignment.submitted_at is not None,
        # A person who has lost the place already is owed what that end owes: leaving changes nothing in it.
        "pay": pay_statement(assignment, "" if assignment.released_at else "withdrawn"),
        "blanks_ratings": assignment.study.withdrawal_blanks_ratings,
        "id_stays": reason_id_retained(assignment),
        "keeps_visit": bool(assignment.external_ids.get("session")),
        "study_days": assignment.study.erase_after_days,
    }
    return render(request, "annotate/withdraw.html", context)


@add_annotator_headers
def start_another_part(request, code):
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
    return render_notice(
        request,
        words,
        claim.outcome,
        may_retry=claim.outcome in ("wait", "paused"),
        retry_path=request.path,
        back_path=f"/p/{code}/done/",
    )


@add_annotator_headers
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
        if Inquiry.objects.filter(assignment=assignment).count() >= MAX_INQUIRIES:
            error = (
                f"You have written {MAX_INQUIRIES} messages here. The researcher reads them; please wait for an answer."
            )
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


@add_annotator_headers
@require_http_methods(["GET", "HEAD", "POST"])
def appeal(request, code):
    """Object to a rejection, once: somebody else than who rejected answers."""
    assignment = assignment_or_404(request, code)
    found = work_status(assignment)
    rejected = found.rejection if found else None
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
            "typed": [TypedAnswer("Why it should be taken back", text)],
        }
        return render(request, "annotate/not_stored.html", context, status=409)
    if request.method == "POST":
        try:
            open_appeal(assignment, text)
            return HttpResponseRedirect(f"/p/{code}/done/#stands")
        except ActionRefused as refused:
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


@add_annotator_headers
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
