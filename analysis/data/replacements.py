"""Replace annotators who no longer count: reopen each place once, up to the study's cap."""

from analysis.exclusions.applied_rules import kept_assignment_ids
from annotators.counting import Use, select
from annotators.models import Assignment
from annotators.places import exclusions
from studies.models import Study

from .rule_input import apply_rules_now


def uncounted_submitted_assignment_ids(study: Study) -> set[int]:
    """Return submitted assignments that hold a place but do not count towards the study's target.

    If the target counts kept annotators: those excluded by an outcome-blind rule or by a researcher, and those withdrawn. If it
    counts submitted annotators and replaces excluded ones: only those excluded by a researcher.
    """
    holding = select(Use.HOLDING, Assignment.objects.filter(study=study), [Assignment.Origin.LIVE])
    uncounted = set(exclusions.active_exclusions(holding).values_list("assignment_id", flat=True))
    if study.target_kind == Study.Target.KEPT:
        uncounted |= set(select(Use.WITHDRAWN, holding).values_list("pk", flat=True))
        held = list(select(Use.RESULTS, holding).values_list("pk", flat=True))
        uncounted |= set(held) - set(kept_assignment_ids(apply_rules_now(study), held))
    return uncounted


def create_replacement_places(study: Study) -> int:
    """Open a place for each uncounted annotator without a replacement, up to the cap. Return the number of opened places.

    Each annotator is replaced at most once, even if this runs twice at the same time, or if the result of a rule changes.
    """
    if not select(Use.TARGET, Assignment.objects.filter(study=study)).exists():
        return 0
    return exclusions.open_replacement_places_up_to_cap(study, sorted(uncounted_submitted_assignment_ids(study)))


def create_replacement_places_of_launched_studies() -> int:
    """Open replacements in all launched studies that replace annotators. Return the number of opened places."""
    wanting = Study.objects.filter(state=Study.State.LAUNCHED)
    counting = wanting.filter(target_kind=Study.Target.KEPT) | wanting.filter(replaces_excluded=True)
    return sum(create_replacement_places(study) for study in counting)
