"""Stopping rules of a collecting study: a job checks them and closes the study when every rule has decided.

A check stores how strong the evidence is, but not its direction. The direction is shown when the study is closed, or after
its owner has chosen *Show outcomes*.
"""

from dataclasses import dataclass
from typing import Any

from django.db import transaction

from analysis.data.planned_labels import (
    PlannedLabels,
    assign_claim_queue_numbers,
    read_planned_labels_of_claimed_batches,
    store_judgements,
)
from analysis.protocols import REGISTRY as ANALYSES
from analysis.protocols import StoppingStatus
from annotators.counting import Use, select
from annotators.models import Assignment
from annotators.places.places import unsettled_items_of_top_up_sections
from studies.models import Batch, Job, Study, audit
from studies.protocols import REGISTRY
from studies.services import jobs, lifecycle

KIND = "stopping_check"
# Maximum number of points of a path that the figure shows.
MAX_FIGURE_POINTS = 240


@dataclass(frozen=True, slots=True)
class StoppingState:
    """The state of all stopping rules at one moment.

    ``is_budget_exhausted``: the target number has submitted, and no item needs another label.
    """

    statuses: tuple[StoppingStatus, ...]
    is_budget_exhausted: bool

    @property
    def is_over(self) -> bool:
        return bool(self.statuses) and (self.is_budget_exhausted or all(status.is_decided for status in self.statuses))

    def summary(self, *, is_blind: bool) -> dict[str, Any]:
        """Return what may be shown while the study is collecting. If outcomes are shown, the running shares are in it."""
        looks = [_blind(status) | ({} if is_blind else _running(status)) for status in self.statuses]
        return {"looks": looks, "is_over": self.is_over}

    def outcomes(self) -> list[dict[str, Any]]:
        """Return the decisions, for the audit log."""
        return [
            {
                "comparison": status.name,
                "rule": status.rule,
                "verdict": status.verdict if status.is_decided else "budget_exhausted",
                "stopped_at": status.stopped_at,
                "unit": status.unit,
                "n": len(status.evidence),
                "threshold": status.threshold,
                "evidence": status.evidence[(status.stopped_at or len(status.evidence)) - 1]
                if status.evidence
                else None,
            }
            for status in self.statuses
        ]


def _blind(status: StoppingStatus) -> dict[str, Any]:
    step = max(1, -(-len(status.evidence) // MAX_FIGURE_POINTS))
    points = [n for n in range(len(status.evidence)) if n % step == 0 or n == len(status.evidence) - 1]
    return {
        "name": status.label or status.name, "rule": status.rule, "unit": status.unit, "threshold": status.threshold, "n": len(status.evidence),
        "points": [[n + 1, round(status.evidence[n], 4)] for n in points], "is_decided": status.is_decided, "remaining": status.remaining,
    }  # fmt: skip


def _running(status: StoppingStatus) -> dict[str, Any]:
    points = status.running.thinned(MAX_FIGURE_POINTS) if status.running else []
    shares = [[n, *(round(value, 4) for value in values)] for n, *values in points]
    return {"running": shares, "stopped_at": status.stopped_at}


def sections_with_stopping_rule(study: Study) -> list[Any]:
    return [
        section
        for section in study.sections.all()
        if section.protocol in REGISTRY and REGISTRY[section.protocol].has_stopping_rule(section)
    ]


def compute_stopping_state(study: Study, claims: PlannedLabels | None = None) -> StoppingState:
    """Return the current state of the study's stopping rules. ``claims`` None: they are read."""
    statuses = _stopping_statuses(study, read_planned_labels_of_claimed_batches(study) if claims is None else claims)
    live = select(Use.TARGET, Assignment.objects.filter(study=study), [Assignment.Origin.LIVE])
    submitted = live.exclude(batch__origin=Batch.Origin.TOP_UP)
    is_full = bool(study.target_n and submitted.count() >= study.target_n)
    return StoppingState(tuple(statuses), is_full and not unsettled_items_of_top_up_sections(study).exists())


def _stopping_statuses(study: Study, claims: PlannedLabels) -> list[StoppingStatus]:
    return [
        status
        for section in sections_with_stopping_rule(study)
        for status in ANALYSES[section.protocol].stopping_statuses(claims, section, str(study.code))
    ]


def robots_have_decided(study: Study) -> bool:
    """Return whether the study's stopping rules would have decided if its robots were people. It changes nothing."""
    if not sections_with_stopping_rule(study):
        return False
    statuses = _stopping_statuses(study, read_planned_labels_of_claimed_batches(study, [Assignment.Origin.ROBOT]))
    return bool(statuses) and all(status.is_decided for status in statuses)


def apply_stopping_rules(study: Study) -> dict[str, Any]:
    """Number the claims, check the rules, and close the study if all have decided. Return what Collect may show.

    Safe to run concurrently: claims are numbered and the study is closed under the study's lock.
    """
    with transaction.atomic():
        study = _locked(study)
        if study.state not in Study.RUNNING:
            return {"looks": [], "is_over": True}
        assign_claim_queue_numbers(study)
    state = _judge_passed_claims_and_compute_state(study)
    if state.is_over:
        with transaction.atomic():
            if _locked(study).state in Study.RUNNING:
                audit.record("decide", study=study, by=None, outcomes=state.outcomes())
                lifecycle.start_closing(study, by=None, reason="the stopping rule has decided")
    return state.summary(is_blind=study.is_blind)


def _judge_passed_claims_and_compute_state(study: Study) -> StoppingState:
    """Return the state, after what it counted of the passed claims is stored."""
    while True:
        claims = read_planned_labels_of_claimed_batches(study)
        state = compute_stopping_state(study, claims)
        passed = frozenset().union(*(status.passed for status in state.statuses))
        is_judged = study.counting_version >= Study.JUDGED_COUNTING
        if not is_judged or store_judgements(study, passed, claims.unjudged, claims.read_at):
            return state


def _locked(study: Study) -> Study:
    return Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study.pk)


@jobs.register(KIND, is_one_per_study=True)
def apply_stopping_rules_and_delete_old_checks(job: Job, progress: jobs.ProgressReporter) -> dict[str, Any]:
    """Check the stopping rules once, and delete earlier finished checks, which are no longer needed."""
    progress(0, 1, "Checking the stopping rule")
    result = apply_stopping_rules(job.study)
    Job.objects.filter(kind=KIND, study=job.study, state=Job.State.DONE, pk__lt=job.pk).delete()
    return result


def submit_stopping_checks() -> int:
    """Submit a check for each open study with a stopping rule and new settled claims. Return the number of waiting jobs."""
    n = 0
    for study in Study.objects.filter(state__in=Study.RUNNING).prefetch_related("sections"):
        if not sections_with_stopping_rule(study):
            continue
        live = Assignment.objects.filter(study=study)
        settled = select(Use.SETTLED, live, [Assignment.Origin.LIVE])
        submitted = select(Use.SUBMITTED, settled).count()
        unsettled = unsettled_items_of_top_up_sections(study).count()
        if count := settled.count():
            job = jobs.submit(
                KIND,
                study=study,
                by=None,
                request_token=f"look-{study.pk}-{submitted}-{count}-{unsettled}{'' if study.is_blind else '-shown'}",
            )
            n += job.state == Job.State.WAITING
    return n
