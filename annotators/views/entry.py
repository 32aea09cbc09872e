"""The entry page of a recruitment link: visitors get a place, return to their pages, or read why there is no place."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.conf import settings
from django.core.signing import BadSignature, TimestampSigner
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.views.decorators.http import require_http_methods

from annotators.fast_path import CompiledSelect, columns_in_model_order, instance_from_row
from annotators.models import Annotator, Assignment, Recruitment
from annotators.pages.presentation import render_cached_markdown
from annotators.participation.parts import get_remaining_parts
from annotators.pay.promises import early_end_pay_lines, is_outcome_paid_before_first_page
from annotators.places import assign
from annotators.places.barrings import is_barred
from annotators.places.places import code_for_form, compute_receipt, new_form_token, new_limited_address, offer_range
from annotators.places.steps import opens_in_steps
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.links import LinkState, recruitment_link_state
from studies.design.wording import Wording, wording_of
from studies.language import activate, gettext
from studies.models import Design, Study

from .appeals import visitor_appeal_path
from .lookup import (
    OUTCOME_BY_NOTICE,
    add_annotator_headers,
    allow_framing,
    device_class,
    get_panel_way_back,
    has_assignment_ended,
    has_parts_overview,
    render_notice,
    render_without_context_processors,
)
from .pages import render_parts_overview

# What a visitor reads at a link that is not open.
NOTICE_BY_STATE = {
    LinkState.PAUSED: "paused",
    LinkState.NOT_YET: "not_open",
    LinkState.INCOMPLETE: "not_open",
}
# A person may press "I cannot wait" until this long after "No place right now".
WAIT_TOKEN_MAX_AGE = 24 * 3600


LINK_COLUMNS = columns_in_model_order(Recruitment)
_select_link = CompiledSelect(
    lambda key: Recruitment.objects.filter(key=key).values_list(
        *LINK_COLUMNS,
        *(f"study__{name}" for name in assign.CLAIM_COLUMNS),
        assign.newest_design_column("pk", "study"),
        assign.newest_design_column("version", "study"),
        "panel_plan",
        "outcome_pays__outcome",
        "arms",
    ),
    str,
)


@dataclass(frozen=True, slots=True)
class _Link:
    """A link with its study, the study's newest design, the outcomes with a pay rule, the chosen arms, and whether it has a plan."""

    recruitment: Recruitment
    design: Design | None
    ruled_outcomes: set[str]
    arms: list[int]
    has_plan: bool


def _find_link(key: str) -> _Link | None:
    """Read a link with one query, which gives a row for each pair of an outcome and an arm."""
    rows = _select_link(key)
    if not rows:
        return None
    columns, (*study, design_pk, version, plan, _, _) = rows[0][: len(LINK_COLUMNS)], rows[0][len(LINK_COLUMNS) :]
    recruitment = instance_from_row(Recruitment, LINK_COLUMNS, columns)
    recruitment.study = instance_from_row(Study, assign.CLAIM_COLUMNS, study)
    outcomes, arms = ({row[at] for row in rows} - {None} for at in (-2, -1))
    return _Link(recruitment, assign.design_from_row(design_pk, version), outcomes, sorted(arms), plan is not None)


@add_annotator_headers
@require_http_methods(["GET", "HEAD", "POST"])
def entry_page(request, key) -> HttpResponse:
    """Show the entry page. GET writes nothing; only the button Start claims a place."""
    link = _find_link(key)
    if link is None:
        raise Http404
    recruitment, study = link.recruitment, link.recruitment.study
    state = recruitment_link_state(study, recruitment, link.ruled_outcomes)
    if state is LinkState.UNPUBLISHED:
        raise Http404
    channel = REGISTRY[recruitment.channel]
    allow_framing(request, recruitment.channel)
    wording = wording_of(study, link.design.pk if link.design else None)
    activate(wording.language)
    study_wording = wording.study
    repeated = [name for name, values in request.GET.lists() if len(values) > 1]
    parameters = request.GET.dict()
    # U+FFFD replaces bytes that are not valid text.
    if repeated or any(
        character < " " or character == "\ufffd" for value in parameters.values() for character in value
    ):
        return render_entry_page(
            request, recruitment, wording, problem=gettext("This link is not valid. Please start from the panel again.")
        )
    arrival = channel.read_arrival(recruitment, parameters)
    if arrival.problem or arrival.is_preview:
        arrival_context = {
            "problem": arrival.problem,
            "is_preview": arrival.is_preview,
            "preview_words": gettext(channel.preview_words),
        }
        return render_entry_page(request, recruitment, wording, **arrival_context)
    form_token = request.POST.get("form", "")
    annotator = assign.find_annotator(recruitment.pool, arrival.person, form_token)
    past_assignments = _past_assignments(recruitment, annotator)
    returning = next((assignment for assignment in reversed(past_assignments) if assignment.batch_id), None)
    # The assignment of a person for whom this link had no place. Its end page shows the code that the person got.
    turned_away = next(
        (
            assignment
            for assignment in past_assignments
            if not assignment.batch_id and assignment.recruitment_id == recruitment.pk
        ),
        None,
    )
    # Anybody could have written this link. A place that this copy of the form has claimed is theirs all the same.
    is_limited = bool(arrival.person) and not channel.link_is_personal
    form_code = code_for_form(recruitment.key, arrival.person, form_token) if is_limited else ""

    def path(assignment: Assignment) -> str:
        shows_all = not is_limited or assignment.code == form_code
        return f"/p/{assignment.code if shows_all else new_limited_address(assignment)}/"

    if request.method != "POST" and returning is not None and not is_limited and has_parts_overview(returning):
        return render_parts_overview(request, returning)
    finished = returning if returning is not None and has_assignment_ended(returning) else None
    remaining_parts = (
        get_remaining_parts(finished) if finished and not finished.withdrawn_at and finished.submitted_at else None
    )
    if finished and not (remaining_parts and remaining_parts.is_any_left):
        return _handle_return_after_end(request, recruitment, finished, arrival, wording, path(finished))
    if request.method != "POST":
        if returning is None and state is not LinkState.OPEN:
            if turned_away is not None:
                return HttpResponseRedirect(f"{path(turned_away)}done/")
            kind = NOTICE_BY_STATE.get(state, "closed")
            way_back = get_panel_way_back(recruitment, OUTCOME_BY_NOTICE[kind], arrival.ids)
            return render_notice(request, study_wording, kind, way_back, may_retry=kind == "paused")
        return render_entry_page(
            request,
            recruitment,
            wording,
            is_returning=returning is not None,
            remaining_parts=remaining_parts,
            own_path=path(returning) if returning else "",
            is_limited=is_limited,
            form_token=new_form_token() if not channel.link_is_personal and not returning else "",
            is_open_link=not arrival.person,
        )
    if "decline" in request.POST:
        if returning is not None:
            # The form is an old copy of this page. A person who has started withdraws on another page, which says what
            # is deleted.
            return HttpResponseRedirect(request.get_full_path())
        if turned_away is not None:
            return HttpResponseRedirect(f"{path(turned_away)}done/")
        return render_notice(
            request, study_wording, "no_consent", get_panel_way_back(recruitment, "no_consent", arrival.ids)
        )
    if "leave" in request.POST:
        leaving = _turn_away_waiting_person(request, recruitment, arrival)
        return HttpResponseRedirect(path(leaving) if leaving else request.get_full_path())
    if returning is None and state not in (LinkState.OPEN, LinkState.PAUSED):
        if turned_away is not None:
            return HttpResponseRedirect(f"{path(turned_away)}done/")
        kind = NOTICE_BY_STATE.get(state, "closed")
        return render_notice(request, study_wording, kind, get_panel_way_back(recruitment, "closed", arrival.ids))
    if returning is None and study_wording["consent"] and request.POST.get("agree") != "1":
        return render_entry_page(
            request,
            recruitment,
            wording,
            error=gettext("Please tick the box if you agree to take part."),
            status=422,
            shares_preferences=request.POST.get("share") == "1",
            form_token=new_form_token() if not channel.link_is_personal else "",
            is_open_link=not arrival.person,
        )
    claim = assign.claim_batch(
        study,
        annotator,
        recruitment,
        link.arms,
        external_ids=dict(arrival.ids),
        trust=arrival.trust,
        is_consented=bool(study_wording["consent"]),
        shares_preferences=study_wording["asks_to_share_preferences"] and request.POST.get("share") == "1",
        code="" if returning else form_code,
        design=link.design,
        is_in_steps=link.has_plan and opens_in_steps(recruitment),
        device=device_class(request),
    )
    if claim.outcome == "claimed" and claim.assignment:
        return HttpResponseRedirect(path(claim.assignment))
    if remaining_parts is not None and finished:
        return _handle_return_after_end(request, recruitment, finished, arrival, wording, path(finished))
    if returning is not None:
        # No place is free for this person. Their own pages say so, and explain what happens to answers sent now.
        assign.update_external_ids(returning, dict(arrival.ids))
        return HttpResponseRedirect(path(returning))
    if claim.outcome in ("closed", "paused") and turned_away is not None:
        return HttpResponseRedirect(f"{path(turned_away)}done/")
    kind = claim.outcome
    if kind == "wait" and _should_record_leaving(recruitment, arrival):
        waiting_token = _wait_signer(recruitment).sign(str(annotator.code))
        pays = is_outcome_paid_before_first_page(recruitment, OUTCOME_BY_NOTICE[kind])
        return render_notice(request, study_wording, kind, may_retry=True, waiting_token=waiting_token, pays=pays)
    receipt = compute_receipt(claim.assignment.code) if claim.assignment and kind != "done" else ""
    return render_notice(
        request,
        study_wording,
        kind,
        get_panel_way_back(recruitment, OUTCOME_BY_NOTICE[kind], arrival.ids, receipt),
        may_retry=kind in ("wait", "paused"),
        appeal_path=visitor_appeal_path(recruitment, annotator) if kind == assign.NO_FURTHER else "",
    )


def _wait_signer(recruitment: Recruitment) -> TimestampSigner:
    """Sign the codes of annotators to whom this link showed "No place right now"."""
    return TimestampSigner(salt=f"waits:{recruitment.key}")


def _should_record_leaving(recruitment: Recruitment, arrival) -> bool:
    """Return whether to store that a person could not wait: only if the panel needs to know it or pay was promised."""
    back = get_panel_way_back(recruitment, OUTCOME_BY_NOTICE["wait"], arrival.ids)
    return back.has_content or is_outcome_paid_before_first_page(recruitment, OUTCOME_BY_NOTICE["wait"])


def _turn_away_waiting_person(request, recruitment: Recruitment, arrival) -> Assignment | None:
    """Record that a waiting person gave up. Return None if the token is invalid, too old, or another person's."""
    try:
        code = _wait_signer(recruitment).unsign(request.POST.get("waiting_token", ""), max_age=WAIT_TOKEN_MAX_AGE)
    except BadSignature:
        return None
    annotator = Annotator.objects.filter(code=code).first()
    key = assign.hash_person_id(recruitment.pool, arrival.person) if arrival.person else ""
    if annotator is None or key not in ("", annotator.external_id):
        return None
    return assign.record_turned_away_annotator(
        recruitment.study, annotator, recruitment, dict(arrival.ids), arrival.trust
    )


def _past_assignments(recruitment: Recruitment, annotator: Annotator) -> list[Assignment]:
    """Return the person's assignments in this study, oldest first. Writes nothing."""
    if annotator._state.adding:
        return []
    assignments = Assignment.objects.filter(study=recruitment.study, annotator=annotator)
    return list(
        assignments.exclude(origin=Assignment.Origin.TEST).select_related("study", "recruitment").order_by("pk")
    )


def _handle_return_after_end(
    request, recruitment: Recruitment, ended: Assignment, arrival, wording: Wording, path: str
):
    """Send a person whose part has ended to its end page, which shows the only code that they ever get for it."""
    channel = REGISTRY[recruitment.channel]
    retaken = channel.is_retaken_task(ended.external_ids, arrival.ids)
    if retaken is False:
        # The person came by another task of the panel and did no work for it.
        kind = "done" if ended.submitted_at else "barred"
        appeal_path = ""
        if is_barred(ended.study, ended.annotator_id):
            kind, appeal_path = assign.NO_FURTHER, visitor_appeal_path(recruitment, ended.annotator)
        way_back = get_panel_way_back(recruitment, OUTCOME_BY_NOTICE[kind], arrival.ids)
        return render_notice(request, wording.study, kind, way_back, appeal_path=appeal_path)
    if retaken and not ended.withdrawn_at:
        # GET writes nothing. The panel's new ids are stored when the person presses the button.
        if request.method != "POST":
            return render_entry_page(request, recruitment, wording, is_returning=True, has_ended=True)
        assign.update_external_ids(ended, dict(arrival.ids))
    return HttpResponseRedirect(f"{path}done/")


def render_entry_page(request, recruitment, wording: Wording, status=200, **options) -> HttpResponse:
    study_wording = wording.study
    is_varied = any(arm["reward"] is not None or arm["minutes"] for arm in wording.arms.values())
    arms = set(recruitment.arms.values_list("name", flat=True)) if is_varied and recruitment.pk else ()
    offer = offer_range(wording, arms, recruitment.reward)
    currency = recruitment.currency or study_wording["currency"]
    context = {
        "study": study_wording,
        "purpose": render_cached_markdown(study_wording["purpose"]) if study_wording["purpose"] else "",
        "consent": render_cached_markdown(study_wording["consent"], top_heading=3) if study_wording["consent"] else "",
        "offer": offer,
        "currency": currency,
        "early": early_end_pay_lines(recruitment, currency, wording) if offer.pays else [],
        "action": f"?{urlencode(request.GET)}" if request.GET else "",
        "own_address": f"{settings.SITE_URL}{request.get_full_path()}",
    }
    return render_without_context_processors(request, "annotate/landing.html", context | options, status=status)
