"""Studies of the same site as pilots: who may use which, the job that reads their answers, and what it stored."""

import hashlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.core.exceptions import ObjectDoesNotExist
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.urls import reverse

from analysis.data.blinding import check_outcomes_visible
from analysis.data.snapshot import database_snapshot
from analysis.protocols import REGISTRY, HeadlineAnswers
from analysis.report.build import analysis_contexts, validate_parameters
from analysis.report.report_data import read_report_data
from analysis.stats.planning.inputs import KINDS
from annotators.counting import PEOPLES_ORIGINS, Use, select
from annotators.models import Assignment
from studies.access import Action, check_permission_or_404, filter_allowed, get_row
from studies.models import Job, Section, Study, StudyPilot
from studies.services import jobs
from studies.services.drafts import refuse_if_launched
from studies.services.lifecycle import ActionRefused

from .inputs import PLANNED_AS, InvalidPlanInputs

KIND = "estimate_pilot"
PREFIX = "pilot:"
# Answers of these origins say how people answer. Robots and test runs do not.
ORIGINS = PEOPLES_ORIGINS
# Raise it if the same answers give another estimate. Studies are then read again when they are chosen.
VERSION = 2


def pilot_studies(user) -> QuerySet[Study]:
    """Return the studies whose answers may be a pilot: the user may read them, they are submitted, and outcomes are shown."""
    return _readable(user).exclude(_is_blind()).filter(_has_answers(), _is_planned()).order_by("-pk")


def _readable(user) -> QuerySet[Study]:
    return filter_allowed(user, Study.objects.all(), Action.EXPORT)


def _is_blind() -> Q:
    return Q(state__in=Study.COLLECTING_STATES, unblinded_at=None)


def _has_answers() -> Exists:
    return Exists(select(Use.RESULTS, Assignment.objects.filter(study=OuterRef("pk")), ORIGINS))


def _is_planned() -> Exists:
    live = Section.objects.filter(study=OuterRef("pk"), purpose=Section.Purpose.LIVE)
    return Exists(live.filter(protocol__in=PLANNED_AS))


def find_pilot_study(code: str, user) -> Study:
    """Return a study that may be a pilot for this user. ``user`` None is the site itself.

    Raise InvalidPlanInputs for the field ``prior`` with what to do. An unknown study and one that the user may not read have one message.
    """
    studies = Study.objects.all() if user is None else _readable(user)
    try:
        study = studies.get(code=UUID(code))
    except (ValueError, ObjectDoesNotExist):
        raise InvalidPlanInputs(
            {"prior": "You can read no study with this code. Choose a study whose answers you may export."}
        ) from None
    same = Study.objects.filter(pk=study.pk)
    if not same.filter(_is_planned()).exists():
        text = "This study compares no systems, so it says nothing about a difference. Choose a study with a comparing protocol."
    elif not same.filter(_has_answers()).exists():
        text = "No answers of people are submitted in this study. Wait for them, or choose another pilot."
    elif same.filter(_is_blind()).exists():
        text = "The outcomes of this study are still hidden. Close it, or unblind it, to use it as a pilot."
    else:
        return study
    raise InvalidPlanInputs({"prior": text})


def stored_pilot(study: Study) -> StudyPilot | None:
    """Return what heval last read from the answers of a study."""
    return study.pilot_estimates.order_by("-pk").first()


def estimate_study(study: Study, user) -> StudyPilot:
    """Estimate and store what the answers of a study say, by its first comparison that says enough. Planned comparisons come first.

    Return the stored row if the same answers were read before. Raise Http404 or PermissionDenied if the user may not read the
    answers or outcomes are hidden, and ActionRefused if no comparison says how much people and prompts vary.
    """
    from analysis.stats.planning.pilot_estimates import estimate_pilot
    from analysis.stats.seeds import seeded_generator

    study = get_row(user, Action.EXPORT, Study.objects.all(), pk=study.pk)
    check_outcomes_visible(study, ORIGINS)
    answers, data_sha256 = _headline_answers(study)
    sha256 = hashlib.sha256(f"{VERSION} {data_sha256}".encode()).hexdigest()
    if stored := study.pilot_estimates.filter(sha256=sha256).first():
        return stored
    reasons: list[str] = []
    for planned_as, headline in answers:
        if not len(headline.values):
            continue
        key = headline.comparison.key
        try:
            estimate = estimate_pilot(
                headline.values,
                headline.annotators,
                headline.prompts,
                protocol=planned_as,
                points=headline.points,
                rng=seeded_generator(str(study.code), "pilot", key, data_sha256),
                source=f"study “{study.title[:80]}”, {headline.comparison.label}, {_counts(planned_as, headline)}"[
                    :500
                ],
            )
        except ValueError as refused:
            reasons.append(str(refused))
            continue
        columns = {"comparison": key[:500], "estimate": estimate_as_json(estimate), "by": user}
        return StudyPilot.objects.get_or_create(study=study, sha256=sha256, defaults=columns)[0]
    why = (
        reasons[0] if reasons else "It has no answers about pairs of systems that the rules keep. Choose another study."
    )
    raise ActionRefused(f"The study cannot be a pilot. {why}")


def _headline_answers(study: Study) -> tuple[list[tuple[str, HeadlineAnswers]], str]:
    """Return the answers of all comparisons with the protocol that plans know, planned comparisons first; and the hash of the data."""
    problems: list[dict[str, Any]] = []
    with database_snapshot():
        data = read_report_data(study, list(ORIGINS))
        contexts = analysis_contexts(data, validate_parameters({"origins": list(ORIGINS)}, study), "pilot", problems)
        found = [
            (PLANNED_AS[context.protocol], headline)
            for context in contexts
            if context.protocol in PLANNED_AS
            for headline in REGISTRY[context.protocol].headline_answers(context)
        ]
    return sorted(found, key=lambda pair: not pair[1].comparison.is_planned), data.data_sha256


def _counts(planned_as: str, headline: HeadlineAnswers) -> str:
    people, prompts = len(set(headline.annotators.tolist())), len(set(headline.prompts.tolist()))
    rows = "readings" if KINDS[planned_as] == "chance" else "answers"
    return f"{people} people, {prompts} prompts, {len(headline.values)} {rows}"


def estimate_as_json(estimate: Any) -> dict[str, Any]:
    """Return a `PilotEstimate` as JSON. Of the draws only the two standard deviations differ."""
    return estimate.as_dict() | {"draws": [[draw.sd_people, draw.sd_prompts] for draw in estimate.draws]}


def request_estimate(
    draft: Study, by, code: str, form: Mapping[str, str] | None = None, request_token: str | None = None
) -> Job:
    """Submit the job that reads a study as a pilot of a draft's plans. ``form``: what the page Plan shows beside it afterwards.

    Raise ActionRefused after the launch, and InvalidPlanInputs if this user cannot use the study as a pilot.
    """
    check_permission_or_404(by, Action.EDIT, draft)
    refuse_if_launched(draft)
    pilot = find_pilot_study(code, by)
    return jobs.submit(
        KIND, study=draft, by=by, request_token=request_token, pilot=str(pilot.code), form=dict(form or {})
    )


def estimate_for_job(job: Job) -> dict[str, Any]:
    """Read the study that a job names, and return the prior with its variation and the page that shows it."""
    stored = estimate_study(find_pilot_study(job.arguments["pilot"], job.by), job.by)
    prior, variation = f"{PREFIX}{job.arguments['pilot']}", stored.estimate["variation"]
    numbers = {name: variation[name] for name in ("sd_people", "sd_prompts")}
    query = urlencode(job.arguments["form"] | {"prior": prior} | numbers)
    return {
        "prior": prior,
        "comparison": stored.comparison,
        **numbers,
        "url": f"{reverse('admin:studies_plan', args=[job.study_id])}?{query}",
    }
