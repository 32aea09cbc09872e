"""The pages after and beside the questions: the end page with the receipt, withdrawal, messages, further parts."""

from django.http import HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.views.decorators.http import require_http_methods, require_safe

from annotators.models import Assignment, Inquiry
from annotators.models.identity import get_person_id, restored_external_ids
from annotators.pages.presentation import render_cached_markdown
from annotators.participation import inquiries, withdrawal
from annotators.participation.parts import get_remaining_parts, parts_overview_context
from annotators.pay.statement import pay_statement, reason_id_retained_on_withdrawal
from annotators.pay.verdicts.appeals import has_open_appeal
from annotators.pay.verdicts.status import barring_status, failed_checks_status, work_status
from annotators.places import assign
from annotators.places.batch_plan import get_batch_plan
from annotators.places.deadlines import is_closed_before_first_answer, release_place_if_study_closed
from annotators.places.receipts import compute_receipt
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels import credits
from studies.design.wording import wording_of
from studies.stimuli.texts import TextRefused, clean_text, is_blank

from .http_responses import (
    add_annotator_headers,
    allow_form_target,
    get_panel_way_back,
    render_notice,
    render_without_context_processors,
)
from .lookup import (
    get_assignment_or_404_and_allow_framing,
    has_assignment_ended,
    has_parts_overview,
    may_withdraw,
    page_frame,
)
from .pages import arm_offer_context

Released = Assignment.Released
# The outcome that decides the page and the code. An upheld objection does not change the code that the person was shown.
OUTCOME_BY_RELEASE: dict[str, str] = {
    Released.SCREENED_OUT: "screened_out",
    Released.FAILED_CHECKS: "failed_checks",
    Released.FAULT: "failed_checks",
    Released.FULL: "full",
}
# More messages from one person would hide those of others in the inbox, and fill the disk.
MAX_INQUIRIES = 50


def _outcome(assignment) -> str:
    return "withdrawn" if assignment.withdrawn_at else _first_outcome(assignment)


def _first_outcome(assignment) -> str:
    """Return how the assignment first ended.

    A person who withdraws afterwards keeps the code that was shown and the pay: each assignment has one code and one
    payment.
    """
    if assignment.submitted_at:
        return "complete"
    if outcome := OUTCOME_BY_RELEASE.get(assignment.released_reason):
        return outcome
    closed_at = assignment.study.closed_at
    was_closed_before = closed_at and (not assignment.withdrawn_at or assignment.withdrawn_at > closed_at)
    if was_closed_before and is_closed_before_first_answer(assignment):
        return "closed"
    return "withdrawn" if assignment.withdrawn_at else "closed"


@add_annotator_headers
@require_safe
def end_page(request, code) -> HttpResponse:
    """Show the end page, at any later time: the receipt or code, the way back to the panel, and what happens next."""
    assignment = get_assignment_or_404_and_allow_framing(request, code)
    if not has_assignment_ended(assignment):
        return HttpResponseRedirect(f"/p/{code}/")
    release_place_if_study_closed(assignment)
    return _render_done_page(request, assignment, restored_external_ids(assignment))


def _render_done_page(request, assignment, ids) -> HttpResponse:
    code, outcome, ended = assignment.code, _outcome(assignment), _first_outcome(assignment)
    receipt = compute_receipt(code)
    credit = credits.credit_status(assignment)
    if credit == credits.GIVEN:
        way_back = REGISTRY[assignment.recruitment.channel].way_back_if_already_credited(assignment.recruitment)
    else:
        way_back = get_panel_way_back(assignment.recruitment, ended, ids, receipt)
    frame = page_frame(assignment)
    study_words, is_limited = frame["study"], frame["is_limited"]
    remaining_parts = get_remaining_parts(assignment) if outcome == "complete" else None
    status, barring, checks = work_status(assignment), None, failed_checks_status(assignment)
    if outcome in ("complete", "withdrawn"):
        barring = barring_status(assignment.study, assignment.annotator_id)
    if is_limited:
        status = barring = checks = None  # they tell what the person answered and wrote
    context = frame | {
        "outcome": outcome,
        "work_status": status,
        "barring": barring,
        "failed_checks": checks,
        "receipt": receipt,
        "way_back": way_back,
        "credit": credit,
        # If there is more to read or to do on this page, the person decides when to leave it.
        "goes_by_itself": outcome == "complete"
        and not (status and (status.is_at_panel or status.rejection))
        and barring is None
        and not study_words["debriefing"]
        and not assignment.is_late
        and not (remaining_parts and remaining_parts.is_any_left),
        "debriefing": render_cached_markdown(study_words["debriefing"])
        if study_words["debriefing"] and outcome == "complete"
        else "",
        "is_late": assignment.is_late,
        "may_withdraw": may_withdraw(assignment),
        "submitted_at": assignment.submitted_at,
        "appeal_stays": outcome == "withdrawn" and has_open_appeal(assignment),
        "id_stays": outcome == "withdrawn" and get_person_id(assignment.annotator) is not None,
        "pay": pay_statement(assignment),
        "offer": _arm_offer_context(assignment) if outcome == "complete" else None,
        "has_work": outcome == "complete" and has_parts_overview(assignment),
        "remaining_parts": remaining_parts,
        "has_ended_before": ended not in ("complete", "withdrawn"),
    }
    allow_form_target(request, way_back)
    return render_without_context_processors(request, "annotate/done.html", context)


def _arm_offer_context(assignment) -> dict | None:
    """Return what this part pays if arms are paid differently, else None."""
    return arm_offer_context(assignment, get_batch_plan(assignment).offer)


def render_parts_overview(request, assignment) -> HttpResponse:
    return render_without_context_processors(request, "annotate/my_work.html", parts_overview_context(assignment))


@add_annotator_headers
@require_safe
def parts_overview_page(request, code) -> HttpResponse:
    """Show a person's parts of the study: done, started, still available, and the pay.

    Any of the person's codes works.
    """
    assignment = get_assignment_or_404_and_allow_framing(request, code)
    return (
        render_parts_overview(request, assignment)
        if has_parts_overview(assignment)
        else HttpResponseRedirect(f"/p/{code}/")
    )


@add_annotator_headers
@require_http_methods(["GET", "HEAD", "POST"])
def withdrawal_page(request, code) -> HttpResponse:
    """Withdraw from the study. GET shows what is paid, kept and deleted; POST withdraws."""
    assignment = get_assignment_or_404_and_allow_framing(request, code)
    if assignment.withdrawn_at or not may_withdraw(assignment):
        return (
            HttpResponseRedirect(f"/p/{code}/done/")
            if has_assignment_ended(assignment)
            else HttpResponseRedirect(f"/p/{code}/")
        )
    if request.method == "POST":
        ids, ended = restored_external_ids(assignment), "complete" if assignment.submitted_at else "withdrawn"
        withdrawal.withdraw_annotator_and_erase_texts(assignment)
        ways_back = [
            get_panel_way_back(assignment.recruitment, ended, known_ids, compute_receipt(code))
            for known_ids in (ids, restored_external_ids(assignment))
        ]
        if ways_back[0] != ways_back[1]:
            # The way back to the panel contains the person's ids. They are deleted now, so this response is the last to
            # use them.
            return _render_done_page(request, get_assignment_or_404_and_allow_framing(request, code), ids)
        return HttpResponseRedirect(f"/p/{code}/done/")
    context = page_frame(assignment) | {
        "is_submitted": assignment.submitted_at is not None,
        # If the place was already released, the pay of that release applies; withdrawing does not change it.
        "pay": pay_statement(assignment, "" if assignment.released_at else "withdrawn"),
        "blanks_ratings": assignment.study.withdrawal_blanks_ratings,
        "appeal_stays": has_open_appeal(assignment),
        "id_stays": reason_id_retained_on_withdrawal(assignment),
        "keeps_visit": bool(assignment.external_ids.get("session")),
        "study_days": assignment.study.erase_after_days,
    }
    return render_without_context_processors(request, "annotate/withdraw.html", context)


@add_annotator_headers
def start_another_part(request, code) -> HttpResponse:
    """Claim another batch for a person who has submitted one. The code identifies the person."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    assignment = get_assignment_or_404_and_allow_framing(request, code)
    if assignment.submitted_at is None or assignment.limited_address:
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
    if claim.outcome == "claimed" and claim.assignment:
        return HttpResponseRedirect(f"/p/{claim.assignment.code}/")
    if claim.outcome == "done":
        return HttpResponseRedirect(f"/p/{code}/done/")
    if claim.outcome == "no_further":
        return HttpResponseRedirect(f"/p/{code}/done/#barring")
    study_wording = wording_of(assignment.study, assignment.design_id).study
    # This address accepts only POST, so "Try again" must be a form. The person can also go back to their last page.
    return render_notice(
        request,
        study_wording,
        claim.outcome,
        may_retry=claim.outcome in ("wait", "paused"),
        retry_path=request.path,
        back_path=f"/p/{code}/done/",
    )


@add_annotator_headers
@require_http_methods(["GET", "HEAD", "POST"])
def inquiry_page(request, code) -> HttpResponse:
    """Send a report or a question to the researchers. All messages go to one inbox, which does not show systems."""
    assignment = get_assignment_or_404_and_allow_framing(request, code)
    error = ""
    if request.method == "POST":
        try:
            text = clean_text(request.POST.get("text", "")).strip()
        except TextRefused as refused:
            text, error = "", str(refused)
        if Inquiry.objects.filter(assignment=assignment).count() >= MAX_INQUIRIES:
            error = f"You have sent {MAX_INQUIRIES} messages. The researchers read them. Please wait for an answer."
        elif not is_blank(text) and len(text) <= 2000:
            kind = Inquiry.Kind.REPORT if request.POST.get("kind") == "report" else Inquiry.Kind.QUESTION
            page_key = request.GET.get("page", "")[:40].replace("\x00", "")
            if inquiries.create_inquiry(assignment, kind, text, page_key):
                return render_without_context_processors(
                    request, "annotate/inquiry.html", page_frame(assignment) | {"is_sent": True}
                )
            error = "You have left this study, so this page stores no message. Please write to the address at the foot."
        error = error or ("Please write a few words." if is_blank(text) else "Please use at most 2000 characters.")
    # Show a refused message again, so that it can be corrected.
    typed_values = {"text": request.POST.get("text", "")[:20_000], "kind": request.POST.get("kind", "")}
    context = page_frame(assignment) | {"error": error} | typed_values
    return render_without_context_processors(request, "annotate/inquiry.html", context, status=422 if error else 200)


@add_annotator_headers
@require_safe
def consent_text_page(request, code) -> HttpResponse:
    """Show the consent text again, to read or to save."""
    assignment = get_assignment_or_404_and_allow_framing(request, code)
    frame = page_frame(assignment)
    context = frame | {
        "consent": render_cached_markdown(frame["study"]["consent"]),
        "consented_at": assignment.consented_at,
        "version": assignment.consent_version,
    }
    return render_without_context_processors(request, "annotate/consent.html", context)
