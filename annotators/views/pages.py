"""The pages of questions: show a page, save a draft, store answers, and keep the place longer."""

from collections.abc import Mapping
from dataclasses import replace

from django.conf import settings
from django.http import Http404, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect, QueryDict
from django.views.decorators.http import require_http_methods, require_safe

from annotators.fast_path import insert_missing_without_fsync
from annotators.models import Assignment, Inquiry
from annotators.models.identity import get_person_id, restored_external_ids
from annotators.pages.form_data import (
    PageForm,
    describe_posted_answers,
    nonempty_answer_inputs,
    parse_page_form,
    unseen_images_as_form_data,
)
from annotators.pages.presentation import (
    build_shown_page,
    get_practice_feedback,
    render_cached_markdown,
    responses_as_form_data,
)
from annotators.pages.record import (
    MAX_DRAFT_CHARACTERS,
    NEW_VISIT_COLUMNS,
    AlreadyStored,
    AssignmentClosed,
    ConflictingAnswers,
    DraftTooLong,
    NoSuchPage,
    PageNotStored,
    PageOutOfOrder,
    PageState,
    StaleDraft,
    build_new_visit,
    draft_tab,
    full_page_state,
    get_visible_draft,
    partial_page_state,
    record_page_answers,
    restore_shown_step,
    save_page_draft_and_extend_deadline,
)
from annotators.pages.sequence import FEEDBACK, Step, media_file_names_by_id
from annotators.participation import withdrawal
from annotators.participation.parts import get_remaining_parts, parts_overview_context
from annotators.pay.decisions import has_open_appeal
from annotators.pay.statement import pay_statement, reason_id_retained_on_withdrawal
from annotators.pay.verdict_status import barring_status, failed_checks_status, work_status
from annotators.places import assign
from annotators.places.batch_plan import get_batch_plan
from annotators.places.deadlines import (
    extend_or_revive_place,
    is_closed_before_first_answer,
    release_place_if_study_closed,
)
from annotators.places.places import Offer, compute_receipt
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels import alerts
from studies.design.wording import wording_of
from studies.language import format_number, gettext, gettext_noop, ngettext
from studies.models import Study
from studies.protocols import PageField
from studies.stimuli.texts import TextRefused, clean_text, is_blank

from ..models import PageVisit, Response
from .lookup import (
    add_annotator_headers,
    allow_form_target,
    device_class,
    get_assignment_or_404_and_allow_framing,
    get_page_assignment_or_404_and_allow_framing,
    get_panel_way_back,
    has_assignment_ended,
    has_parts_overview,
    may_withdraw,
    page_frame,
    place_status_with_pay,
    redirect_to_page,
    render_notice,
    render_without_context_processors,
)

DAY_SECONDS = 24 * 60 * 60


@add_annotator_headers
@require_safe
def redirect_to_next_page(request, code) -> HttpResponseRedirect:
    """Redirect to the annotator's next page, or to the end page."""
    assignment = get_page_assignment_or_404_and_allow_framing(request, code)
    if has_assignment_ended(assignment):
        return redirect_to_page(code, None)
    return redirect_to_page(code, full_page_state(assignment).next_key)


@add_annotator_headers
@require_http_methods(["GET", "HEAD", "POST"])
def annotation_page(request, code, key) -> HttpResponse:
    if request.method == "POST":
        return _handle_post(request, code, key)
    assignment = get_page_assignment_or_404_and_allow_framing(request, code, key)
    # Annotators can look at the answers that they sent until the answers are deleted.
    may_look = assignment.submitted_at and not assignment.withdrawn_at and not assignment.limited_address
    if has_assignment_ended(assignment) and not may_look:
        return redirect_to_page(code, None)
    release_place_if_study_closed(assignment)
    state = partial_page_state(assignment, key)
    visit = state.visits.get(key)
    is_hidden = bool(assignment.limited_address) and state.is_recorded(key)
    if key not in state.steps or (visit is None and not state.is_next(key)) or is_hidden:
        return redirect_to_page(code, state.next_key)
    step = state.steps[key]
    if visit is None and request.method == "GET":
        _record_first_visit(state, step, key)
    elif visit is not None:
        step = restore_shown_step(step, visit)
        if assignment.started_at is None and request.method == "GET":
            assign.mark_started_and_extend_deadline(assignment)  # the process crashed after it stored this visit
    return render_page_response(request, state, step, visit)


def _record_first_visit(state: PageState, step: Step, key: str) -> None:
    """Store once what the page shows. If two tabs open at the same moment, the second uses what the first stored."""
    assignment = state.assignment
    # No wait for the disk is needed: the page is drawn from the assignment's seed, so ``recreate_lost_visit`` can make
    # a lost visit again. Answers do wait for the disk.
    insert_missing_without_fsync(PageVisit, NEW_VISIT_COLUMNS, build_new_visit(state, step, key))
    if assignment.started_at is None:
        assign.mark_started_and_extend_deadline(assignment)


def _handle_post(request, code, key):
    is_answer = "layout" not in request.POST and "save" not in request.POST
    assignment = get_page_assignment_or_404_and_allow_framing(request, code, key)
    try:
        if not is_answer:
            save_page_draft_and_extend_deadline(assignment, key, request.POST)
            if request.POST.get("save") == "auto":
                return _autosave_response(request, code, key)
            return redirect_to_page(code, key, _next_field_fragment(assignment, key, request.POST))
        outcome = record_page_answers(assignment, key, request.POST, bool(request.FILES))
    except PageNotStored as refusal:
        return _not_stored_response(request, code, key, refusal)
    if outcome.sent is None or outcome.step is None:
        return redirect_to_page(code, outcome.next_key)
    state = partial_page_state(assignment, key)
    return _correction_response(request, state, outcome.step, state.visits.get(key), outcome.sent)


def _next_field_fragment(assignment: Assignment, key: str, data: QueryDict) -> str:
    """Return the place on the page where somebody goes on who pressed Enter in a field, without the page's script.

    A browser does not say in which field. It is taken to be the last field with an answer.
    """
    if data.get("save") != "next":
        return ""
    step = partial_page_state(assignment, key).steps[key]
    fields = build_shown_page(assignment, step.page, step.page_fields(), draft_form_data=dict(data.lists())).all_fields
    answered = [
        n
        for n, field in enumerate(fields)
        if not field.field.is_untouched(field.value) or field.skip_value or any(field.values.values())
    ]
    following = fields[answered[-1] + 1 :] if answered else fields
    group = fields[answered[-1]].group if answered else ""
    following_field = next((field for field in following if field.group != group and not field.field.inputs), None)
    return f"#{following_field.focus_id}" if following_field else "#go"


def _autosave_response(request, code: str, key: str) -> HttpResponse:
    """Answer the page's script after an autosave: how long the place is kept now."""
    assignment = get_page_assignment_or_404_and_allow_framing(request, code, key)
    release_place_if_study_closed(assignment)
    context = {"place_status": place_status_with_pay(assignment), "assignment_path": f"/p/{code}/", "key": key}
    return render_without_context_processors(request, "annotate/_place_timer.html", context)


def _correction_response(request, state: PageState, step: Step, visit: PageVisit | None, form: PageForm):
    """Show the page with the sent answers in its fields, and above it the answers that no field of the page can show."""
    answers = describe_posted_answers(step.page_fields(), request.POST)
    submitted_values = [answer for answer in answers if not answer.is_in_field]
    return render_page_response(request, state, step, visit, form=form, status=422, submitted_values=submitted_values)


# Why answers were not stored. ConflictingAnswers and AssignmentClosed are missing because their texts depend on more.
NOT_STORED_MESSAGES: dict[type[PageNotStored], str] = {
    AlreadyStored: gettext_noop("This page is already stored. Reload it to see what is stored."),
    PageOutOfOrder: gettext_noop(
        "You must answer another page before this one. Please copy what you want to keep, and use it when this page comes."
    ),
    StaleDraft: gettext_noop(
        "This page has newer answers from another window. Yours were not saved. Copy what you want to keep, and reload this page."
    ),
    NoSuchPage: gettext_noop("There is no such page in your part of this study. Please go on with the next page."),
    DraftTooLong: gettext_noop(
        "Your text is too long to be saved (more than %(n)s characters). Please make it shorter."
    ),
}


def _not_stored_message(refusal: PageNotStored, assignment: Assignment) -> str:
    if isinstance(refusal, AlreadyStored) and assignment.limited_address:
        return gettext(
            "This page is already stored, and this address shows no stored answers. If you sent it twice, all is well. Please go on."
        )
    if not isinstance(refusal, AssignmentClosed):
        return gettext(NOT_STORED_MESSAGES[type(refusal)]) % {"n": format_number(MAX_DRAFT_CHARACTERS)}
    if assignment.withdrawn_at:
        return gettext("You have left this study. We do not store answers that you send now.")
    if assignment.submitted_at:
        return gettext("You have finished this part of the study. You cannot send more answers.")
    if assignment.batch_id is None:
        return gettext("No place was free for you, so there was nothing to answer.")
    return gettext("This study has ended for you. You cannot send more answers.")


def _not_stored_response(request, code: str, key: str, refusal: PageNotStored):
    """Show again the answers that were not stored, with the reason and one way to go on.

    If the page can still be answered, the response is the page itself.
    """
    assignment = get_assignment_or_404_and_allow_framing(request, code)  # load its present state
    state = partial_page_state(assignment, key) if assignment.batch_id else None
    step = state.steps.get(key) if state else None
    visit = state.visits.get(key) if state else None
    asks: Mapping[str, PageField] = {}
    if step and visit:  # never show the questions of a page that was not shown before
        step = restore_shown_step(step, visit)
        asks = step.page_fields()
    submitted_values = describe_posted_answers(asks, request.POST)
    is_stored = isinstance(refusal, AlreadyStored)
    if is_stored and not assignment.limited_address and request.POST.get("save") != "auto":
        return redirect_to_page(code, key)
    if isinstance(refusal, ConflictingAnswers) and state and step:
        return render_page_response(
            request, state, step, visit, status=409, is_conflict=True, submitted_values=submitted_values
        )
    if isinstance(refusal, DraftTooLong) and state and step:
        form = replace(
            parse_page_form(step, asks, request.POST, assignment=assignment),
            errors={},
            non_field_errors=[_not_stored_message(refusal, assignment)],
        )
        return _correction_response(request, state, step, visit, form)
    if not submitted_values and request.POST.get("save") != "auto":
        return HttpResponseRedirect(f"/p/{code}/")
    context = page_frame(assignment) | {
        "title": gettext("This page is already stored") if is_stored else "",
        "outcome": has_assignment_ended(assignment),
        "reason": _not_stored_message(refusal, assignment),
        "is_stale": isinstance(refusal, StaleDraft),
        "submitted_values": submitted_values,
    }
    return render_without_context_processors(request, "annotate/not_stored.html", context, status=409)


def render_page_response(
    request, state: PageState, step: Step, visit: PageVisit | None, *, form=None, status=200, **options
) -> HttpResponse:
    """Render one page: to be answered, to be corrected or, if it is recorded, to be read."""
    assignment = state.assignment
    asks = step.page_fields()
    stored = None
    if visit is not None and visit.recorded_at:
        responses = Response.objects.filter(assignment=assignment, slot__in=list(asks)) if asks else ()
        stored = responses_as_form_data(asks, step.page, responses) | unseen_images_as_form_data(visit.unseen)
    shown_page = build_shown_page(
        assignment,
        step.page,
        asks,
        stored_form_data=stored,
        draft_form_data=get_visible_draft(assignment, visit),
        form=form,
    )
    plan = get_batch_plan(assignment)
    pages = len(state.sequence.keys)
    page_number = state.sequence.places[step.page.key] + 1
    layout = (visit.layout if visit else "") or next(
        (v.layout for v in reversed(list(state.visits.values())) if v.layout), ""
    )
    context = page_frame(assignment) | {
        "page": shown_page,
        "is_recorded": stored is not None,
        "next_key": state.sequence.after(step.page.key) or "done" if stored is not None else "",
        "place": page_number,
        "pages": pages,
        "minutes_left": _minutes_left(assignment.study, state.sequence.left[page_number - 1], plan.offer),
        "layout": layout or step.page.section.settings.get("layout", "side"),
        "place_status": place_status_with_pay(assignment) if stored is None else None,
        "key": step.page.key,
        "seen": draft_tab(get_visible_draft(assignment, visit)),
        "previous": "" if assignment.limited_address else state.sequence.before(step.page.key),
        "general_errors": form.non_field_errors if form else [],
        "instructions": _instructions(assignment) if not step.page.section.position else "",
        "feedback": get_practice_feedback(assignment, step.page) if step.protocol is FEEDBACK else (),
        "offer": arm_offer_context(assignment, plan.offer) if page_number == 1 else None,
    }
    return render_without_context_processors(request, step.protocol.template, context | options, status=status)


def _instructions(assignment) -> str:
    return render_cached_markdown(get_batch_plan(assignment).instructions)


def arm_offer_context(assignment, offer: Offer) -> dict | None:
    """Return the minutes and pay of this annotator's part, if the entry page could not say them; else None."""
    if not offer.is_arm_specific:
        return None
    recruitment = assignment.recruitment
    pays = offer.reward if recruitment is None or recruitment.reward is None else None
    return {"minutes": offer.minutes, "reward": pays, "currency": recruitment.currency if recruitment else ""}


def _minutes_left(study: Study, fraction_left: float, offer: Offer) -> int | None:
    """Estimate the minutes left from the median time of others.

    Use the declared minutes until enough people have submitted, and always if the arm declares its own minutes.
    """
    usual = None if offer.is_arm_specific else study.usual_seconds
    minutes = usual / 60 if usual else offer.minutes
    return max(1, round(minutes * fraction_left)) if minutes else None


@add_annotator_headers
def extend_or_revive_place_and_save_draft(request, code) -> HttpResponse:
    """Keep the place longer. Annotators may do this any number of times. The form's answers are saved as a draft."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    assignment = get_assignment_or_404_and_allow_framing(request, code)
    extend_or_revive_place(assignment)
    key = request.GET.get("page", "").replace("\x00", "")[:40]
    try:
        if key or nonempty_answer_inputs(request.POST):
            save_page_draft_and_extend_deadline(assignment, key, request.POST)
    except PageNotStored as refusal:
        return _not_stored_response(request, code, key, refusal)
    return HttpResponseRedirect(f"/p/{code}/")


@require_safe
def image_file(request, code, name) -> HttpResponse:
    """Return an image without its name, dates or anything else that identifies its system."""
    from studies.stimuli.images import image_path

    assignment = get_assignment_or_404_and_allow_framing(request, code)
    stored = media_file_names_by_id(assignment).get(name) if assignment.batch_id else None
    if stored is None:
        raise Http404
    path = image_path(settings.MEDIA_ROOT, stored)
    response = HttpResponse(path.read_bytes(), content_type="image/webp")
    # The name belongs to this assignment only and its image never changes, so browsers need not load it again for each
    # page.
    response.headers["Cache-Control"] = f"private, max-age={DAY_SECONDS}, immutable"
    response.headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
    response.headers["Content-Disposition"] = 'inline; filename="image.webp"'
    return response


# The pages after and beside the questions: the end page with the receipt, withdrawal, messages, further parts.


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
MAX_INQUIRY_CHARACTERS = 2000


def _outcome(assignment) -> str:
    return "withdrawn" if assignment.withdrawn_at else _first_outcome(assignment)


def _first_outcome(assignment) -> str:
    """Return how the assignment first ended.

    A person who withdraws afterwards keeps the code that was shown and the pay: each assignment has one code and one
    payment.
    """
    if assignment.submitted_at:
        return "complete"
    if assignment.released_reason == Released.FAULT and assign.has_failed_test(assignment):
        return "screened_out"
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
    credit = alerts.credit_status(assignment)
    if credit == alerts.GIVEN:
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
        "has_failed_test": outcome == "screened_out" and assign.has_failed_test(assignment),
        "is_unqualified": outcome == "full"
        and not assign.has_required_pass(assignment.study, assignment.annotator_id, assignment.claimed_at),
        "is_late": assignment.is_late,
        "may_withdraw": may_withdraw(assignment),
        "submitted_at": assignment.submitted_at,
        "appeal_stays": outcome == "withdrawn" and has_open_appeal(assignment),
        "id_stays": outcome == "withdrawn" and get_person_id(assignment.annotator) is not None,
        "pay": pay_statement(assignment),
        "offer": _arm_offer_context(assignment) if outcome == "complete" else None,
        "has_work": outcome == "complete" and has_parts_overview(assignment),
        "remaining_parts": remaining_parts,
        # The overview of parts says it, too, where there is one.
        "earned": parts_overview_context(assignment)["earned"]
        if remaining_parts and remaining_parts.done > 1 and not has_parts_overview(assignment)
        else None,
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
        device=device_class(request),
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
    """Send a report or a question to the researchers, and read what was sent and answered at this address.

    All messages go to one inbox, which does not show systems.
    """
    assignment = get_assignment_or_404_and_allow_framing(request, code)
    error = ""
    if request.method == "POST":
        try:
            text = clean_text(request.POST.get("text", "")).strip()
        except TextRefused as refused:
            text, error = "", str(refused)
        if Inquiry.objects.filter(assignment=assignment).count() >= MAX_INQUIRIES:
            message = ngettext(
                "You have sent %(n)s message. The researchers read it. Please wait for an answer.",
                "You have sent %(n)s messages. The researchers read them. Please wait for an answer.",
                MAX_INQUIRIES,
            )
            error = message % {"n": MAX_INQUIRIES}
        elif not is_blank(text) and len(text) <= MAX_INQUIRY_CHARACTERS:
            kind = Inquiry.Kind.REPORT if request.POST.get("kind") == "report" else Inquiry.Kind.QUESTION
            page_key = request.GET.get("page", "")[:40].replace("\x00", "")
            if withdrawal.create_inquiry(assignment, kind, text, page_key):
                # A reload must not send it again.
                return HttpResponseRedirect(f"{request.get_full_path().partition('?')[0]}?sent=1")
            error = gettext(
                "You have left this study, so this page stores no message. Please write to the address at the foot."
            )
        if not error and is_blank(text):
            error = gettext("Please write a few words.")
        error = error or ngettext(
            "Please use at most %(n)s character.", "Please use at most %(n)s characters.", MAX_INQUIRY_CHARACTERS
        ) % {"n": MAX_INQUIRY_CHARACTERS}
    # Show a refused message again, so that it can be corrected.
    typed_values = {"text": request.POST.get("text", "")[:20_000], "kind": request.POST.get("kind", "")}
    context = page_frame(assignment) | {"error": error, "is_sent": "sent" in request.GET and not error} | typed_values
    if not assignment.limited_address:
        context["messages"] = Inquiry.objects.filter(assignment=assignment).order_by("-pk")
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
        "shares_preferences": assignment.shares_preferences,
    }
    return render_without_context_processors(request, "annotate/consent.html", context)
