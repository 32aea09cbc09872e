"""The pages on which annotators object: to a rejection, to failed attention checks, or to getting no further batch."""

from django.core.signing import BadSignature, Signer
from django.db.models import Q
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from annotators.models import Annotator, Appeal, Recruitment
from annotators.pages.form_data import TypedAnswer
from annotators.pay.decisions import create_appeal, create_appeal_of_refused_visitor
from annotators.pay.verdict_status import (
    BarringStatus,
    FailedChecksStatus,
    RejectionStatus,
    barring_status,
    failed_checks_status,
    work_status,
)
from studies.language import gettext, gettext_noop
from studies.services.lifecycle import ActionRefused
from studies.stimuli.texts import is_blank

from .lookup import (
    add_annotator_headers,
    allow_framing,
    get_assignment_or_404_and_allow_framing,
    has_assignment_ended,
    newest_study_wording,
    page_frame,
    render_without_context_processors,
)

Subject = Appeal.Subject
# Where the end page shows the objection and its answer.
ANCHORS = {Subject.REJECTION: "work-status", Subject.BARRING: "barring", Subject.CHECKS: "checks"}
NOTHING_TO_OBJECT_TO = {
    Subject.REJECTION: gettext_noop("Your work is not rejected, or you have already objected."),
    Subject.BARRING: gettext_noop("You may do further parts, or you have already objected."),
    Subject.CHECKS: gettext_noop("Your work did not end because of wrong answers, or you have already objected."),
}
MAX_SHOWN_CHARACTERS = 20_000


def _objection_status(assignment, subject: str) -> RejectionStatus | BarringStatus | FailedChecksStatus | None:
    if subject == Subject.BARRING:
        return barring_status(assignment.study, assignment.annotator_id)
    if subject == Subject.CHECKS:
        return failed_checks_status(assignment)
    status = work_status(assignment)
    return status.rejection if status else None


@add_annotator_headers
@require_http_methods(["GET", "HEAD", "POST"])
def appeal_page(request, code) -> HttpResponse:
    """Object once to a rejection, to failed checks or to getting no further batch. A person who did not decide answers."""
    assignment = get_assignment_or_404_and_allow_framing(request, code)
    if assignment.limited_address:
        return HttpResponseRedirect(f"/p/{code}/done/")  # the page would tell what the person wrote
    asked = request.POST.get("about", "")
    subject = Subject(asked) if asked in Subject.values else Subject.REJECTION
    objection = _objection_status(assignment, subject)
    error, text = "", request.POST.get("text", "")
    context = page_frame(assignment) | {"outcome": has_assignment_ended(assignment)}
    if objection is None or not objection.may_appeal:
        is_about = Q(verdict__assignment=assignment) | Q(assignment__annotator=assignment.annotator_id)
        if is_blank(text) or Appeal.objects.filter(is_about, text=text.strip()).exists():
            return HttpResponseRedirect(f"/p/{code}/done/")
        context |= {
            "title": gettext("Your objection was not stored"),
            "reason": gettext(NOTHING_TO_OBJECT_TO[subject]),
            "submitted_values": [TypedAnswer(gettext("Your objection"), text)],
        }
        return render_without_context_processors(request, "annotate/not_stored.html", context, status=409)
    if request.method == "POST":
        try:
            create_appeal(assignment, text, subject)
            return HttpResponseRedirect(f"/p/{code}/done/#{ANCHORS[subject]}")
        except ActionRefused as refused:
            error = str(refused)
    context |= {"objection": objection, "error": error, "text": text[:MAX_SHOWN_CHARACTERS]}
    return render_without_context_processors(request, "annotate/appeal.html", context, status=422 if error else 200)


def _visitor_signer(recruitment: Recruitment) -> Signer:
    """Sign the codes of annotators whom this link refused. The signature has no end: the answer comes days later."""
    return Signer(salt=f"objects:{recruitment.key}")


def visitor_appeal_path(recruitment: Recruitment, annotator: Annotator) -> str:
    """Return the address where a person who is refused at entry objects and reads the answer.

    It opens no page of the study that barred them: the id in a link may be anybody's.
    """
    return reverse("visitor_appeal", args=[recruitment.key, _visitor_signer(recruitment).sign(str(annotator.code))])


@add_annotator_headers
@require_http_methods(["GET", "HEAD", "POST"])
def visitor_appeal_page(request, key, token) -> HttpResponse:
    """Let a person object who came by a link and was refused because of a barring."""
    recruitment = Recruitment.objects.select_related("study").filter(key=key).first()
    if recruitment is None:
        raise Http404
    try:
        code = _visitor_signer(recruitment).unsign(token)
    except BadSignature:
        raise Http404 from None
    annotator = Annotator.objects.filter(code=code).first()
    if annotator is None:
        raise Http404
    allow_framing(request, recruitment.channel)
    study, error, text = recruitment.study, "", ""
    study_wording = newest_study_wording(study).study  # in whose language a refusal is
    if request.method == "POST":
        text = request.POST.get("text", "")
        if Appeal.objects.filter(assignment__annotator=annotator, text=text.strip()).exists():
            return HttpResponseRedirect(request.path)
        try:
            create_appeal_of_refused_visitor(study, annotator, text)
            return HttpResponseRedirect(request.path)
        except ActionRefused as refused:
            error = str(refused)
    context = {
        "study": study_wording,
        "barring": barring_status(study, annotator.pk),
        "appeal_path": request.path,
        "error": error,
        "text": text[:MAX_SHOWN_CHARACTERS],
        "submitted_values": [TypedAnswer(gettext("Your objection"), text[:MAX_SHOWN_CHARACTERS])] if error else [],
    }
    status = 422 if error else 200
    return render_without_context_processors(request, "annotate/visitor_appeal.html", context, status=status)
