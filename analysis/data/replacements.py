"""Whoever leaves the count is replaced: their place is opened again, once, up to the study's cap."""

from analysis.exclusions.applied_rules import apply_rules, kept_assignment_ids
from annotators.models import Assignment
from annotators.places import exclusions
from studies.models import Study

from .frames import assignments_frame, responses_frame
from .rule_input import build_rule_input


def uncounted_assignment_ids(study: Study) -> set[int]:
    """Submitted assignments that hold a place and do not count towards the study's target.

    Where the target counts people kept: those that a rule of the design finds which does not look at outcomes, those left out by
    hand, and those who withdrew. Where it counts people submitted, and excluded people are replaced: those left out by hand.
    """
    holding = Assignment.objects.filter(
        study=study, origin=Assignment.Origin.LIVE, submitted_at__isnull=False, released_at=None
    )
    out = set(exclusions.active_exclusions(holding).values_list("assignment_id", flat=True))
    if study.target_kind == Study.Target.KEPT:
        out |= set(holding.filter(withdrawn_at__isnull=False).values_list("pk", flat=True))
        assignments = assignments_frame(study).rows
        material = build_rule_input(study, responses_frame(study).rows, assignments)
        stay = set(kept_assignment_ids(apply_rules(study, material), material.submitted))
        out |= set(holding.values_list("pk", flat=True)) & set(material.submitted) - stay
    return out


def open_replacements(study: Study) -> int:
    """Open a place for everyone who left and has no replacement yet, as far as the cap allows. Gives their number.

    Nobody is replaced twice: not when this runs twice at once, and not when a rule that compares people changes its mind.
    """
    waiting = Assignment.objects.filter(study=study, replaced_at=None, submitted_at__isnull=False)
    if not waiting.exists():
        return 0
    return exclusions.reopen_places_up_to_cap(study, sorted(uncounted_assignment_ids(study)))


def open_all_replacements() -> int:
    """The same for all studies that want it and are open."""
    wanting = Study.objects.filter(state=Study.State.LAUNCHED)
    counting = wanting.filter(target_kind=Study.Target.KEPT) | wanting.filter(replaces_excluded=True)
    return sum(open_replacements(study) for study in counting)
