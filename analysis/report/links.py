"""Read-only links to reports for people without an account: who may make them, and which analysis they show."""

import hmac
import re
import secrets
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from hashlib import sha256

from django.db import transaction
from django.db.models import Count, F
from django.db.models.functions import Now
from django.utils import timezone

from analysis.data.blinding import are_outcomes_hidden
from analysis.models import AnalysisRun, ReportLink
from annotators.counting import Use, select
from annotators.models import Assignment
from studies.access import Action, check_permission_or_404
from studies.models import audit
from studies.services import jobs
from studies.services.lifecycle import ActionRefused, FieldsRefused

from .build import settings_of

# Secret scanners recognise a leaked token by this prefix. 256 random bits follow it.
PREFIX = "heval_report_"
_FORM = re.compile(PREFIX + r"[A-Za-z0-9_-]{43}")
DEFAULT_DAYS, MAX_DAYS = 90, 365


def _hash(token: str) -> str:
    return sha256(token.encode()).hexdigest()


@transaction.atomic
def create_link(
    run: AnalysisRun, by, *, days: int = DEFAULT_DAYS, is_anonymous: bool = False, parts: Sequence[str] = ()
) -> tuple[ReportLink, str]:
    """Make a link to an analysis. Return its row and its token, which is not stored and can be shown only now.

    Raise ActionRefused while outcomes are hidden, and FieldsRefused.
    """
    check_permission_or_404(by, Action.SHARE, run.study)
    if not 1 <= days <= MAX_DAYS:
        raise FieldsRefused({"days": f"{days} is not accepted. Enter a number of days from 1 to {MAX_DAYS}."})
    if run.result["outcomes"]["is_hidden"] or are_outcomes_hidden(run.study, run.parameters["origins"]):
        raise ActionRefused(
            f"Analysis {run.number} has no outcomes, or they are hidden now. Close the study or show its outcomes, run the analysis "
            "again, and make a link to the new one."
        )
    token = PREFIX + secrets.token_urlsafe(32)
    link = ReportLink.objects.create(
        run=run,
        hash=_hash(token),
        is_anonymous=is_anonymous,
        parts=sorted(set(parts)) if is_anonymous else ReportLink.Part.values,
        by=by,
        expires_at=timezone.now() + timedelta(days=days),
    )
    facts = {"link": link.pk, "number": run.number, "is_anonymous": is_anonymous, "parts": link.parts, "days": days}
    audit.record_study_event("make report link", run.study, by=by, **facts)
    link.refresh_from_db(fields=["at"])
    return link, token


@transaction.atomic
def revoke_link(link: ReportLink, by) -> None:
    """End a link permanently. Raise ActionRefused if it is revoked already."""
    study = link.run.study
    check_permission_or_404(by, Action.SHARE, study)
    if not ReportLink.objects.filter(pk=link.pk, revoked_at=None).update(revoked_at=Now()):
        raise ActionRefused("This link is revoked already. Nothing was changed.")
    link.refresh_from_db(fields=["revoked_at"])
    audit.record_study_event("revoke report link", study, by=by, link=link.pk, number=link.run.number)


def find_link(token: str) -> ReportLink | None:
    """Return the link of a token. None for a wrong, expired or revoked one, and while outcomes are hidden."""
    if not _FORM.fullmatch(token):
        return None
    hashed = _hash(token)
    link = ReportLink.objects.select_related("run__study", "run__by").filter(hash=hashed).first()
    if link is None or not hmac.compare_digest(link.hash, hashed) or not link.is_live:
        return None
    return None if are_outcomes_hidden(link.run.study, link.run.parameters["origins"]) else link


def find_shown_run(link: ReportLink) -> tuple[AnalysisRun, int]:
    """Return the analysis that a link shows now, and the number of withdrawn assignments that are still in it.

    After a withdrawal it is the first later analysis with the same settings that leaves out the most of those who withdrew. Their
    number is compared rather than times, because somebody can withdraw between the reading of the answers and the end of the job.
    """
    run = link.run
    n_withdrawn = select(Use.WITHDRAWN, run.study.assignments.all(), run.parameters["origins"]).count()
    n_left_out = run.result["data"].get("n_withdrawn", 0)
    if n_withdrawn > n_left_out:
        newest = run.pk
        later = run.study.analyses.filter(number__gt=run.number, result__outcomes__is_hidden=False).order_by("number")
        for pk, parameters, n in later.values_list("pk", "parameters", "result__data__n_withdrawn"):
            if n > n_left_out and settings_of(parameters) == settings_of(link.run.parameters):
                n_left_out, newest = n, pk
        if newest != run.pk:
            run = AnalysisRun.objects.select_related("study", "by").get(pk=newest)
    return run, max(0, n_withdrawn - n_left_out)


def submit_analyses_after_withdrawals() -> int:
    """Submit an analysis with the same settings for each working link whose analysis has answers of people who withdrew since.

    A job is submitted once for each number of withdrawals. Return the number of analyses that are asked for.
    """
    links = ReportLink.objects.filter(revoked_at=None, expires_at__gt=timezone.now())
    withdrawn: Counter[tuple[int, str]] = Counter()
    rows = select(Use.WITHDRAWN, Assignment.objects.filter(study__in=links.values("run__study")))
    for study, origin, n in rows.order_by().values_list("study", "origin").annotate(n=Count("pk")):
        withdrawn[study, origin] = n
    if not withdrawn:
        return 0
    asked = {}
    runs = AnalysisRun.objects.filter(pk__in=links.values("run"), study__in={study for study, _ in withdrawn})
    for run in runs.select_related("study").defer("result").annotate(n_left_out=F("result__data__n_withdrawn")):
        n = sum(withdrawn[run.study_id, origin] for origin in run.parameters["origins"])
        if n > (run.n_left_out or 0):
            asked[_hash(f"{run.study_id} {sorted(settings_of(run.parameters).items())} {n}")] = run
    for token, run in asked.items():
        jobs.submit("analyse", study=run.study, by=None, request_token=token, parameters=settings_of(run.parameters))
    return len(asked)
