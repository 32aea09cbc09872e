"""Read the input of exclusion rules from the database."""

from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from analysis.coding.samples import decided_review_assignment_ids, read_coded_samples, refusal_reasons_by_assignment
from analysis.exclusions import RuleInput
from analysis.exclusions.applied_rules import AppliedRule, apply_rules
from annotators.models import Assignment, PageVisit, Response
from annotators.pages.images import is_about_unseen_image
from annotators.places.exclusions import active_exclusions
from studies.design.workload import estimate_stored_or_trial_batch_workloads
from studies.models import Batch, Exposure, Item, Placement, Question, Section, Study
from studies.protocols import REGISTRY
from studies.protocols.base.scales import parse_scale

from .frames import assignments_frame, responses_frame
from .test_answers import read_test_answers

if TYPE_CHECKING:
    from pandas import DataFrame


def build_rule_input(study: Study, responses: "DataFrame", assignments: "DataFrame") -> RuleInput:
    """Return the frames and people's decisions. Word counts and texts are read only if a rule needs them."""
    return RuleInput(
        responses,
        assignments,
        decisions=_decisions(study),
        allowed=study.batches_per_annotator,
        words_by_batch=lambda: {
            int(burden.batch): burden.words for burden in estimate_stored_or_trial_batch_workloads(study)
        },
        texts_by_batch=lambda: _texts_by_batch(study),
        review_reasons=lambda: _reviews(study),
        live_item_counts=lambda: _live_item_counts(study),
        # Two rules and the report need it.
        attention_check_keys=lambda: _attention_check_keys(study),
        unseen_answers=lambda: _unseen_answers(study),
        test_answers=cache(lambda: read_test_answers(study, sorted(set(assignments["origin"])))),
    )


def apply_rules_now(study: Study, origins: Iterable[str] = (Assignment.Origin.LIVE,)) -> list[AppliedRule]:
    """Apply the study's rules to the stored answers of these origins."""
    frame = assignments_frame(study, origins).rows
    return apply_rules(study, build_rule_input(study, responses_frame(study, origins).rows, frame))


def _unseen_answers(study: Study) -> dict[int, list[int]]:
    """Return the answers that were given about an image which the same page reports as unseen, by assignment."""
    unseen: dict[int, dict[str, set[str]]] = {}
    visits = PageVisit.objects.filter(assignment__study=study).exclude(unseen="")
    for assignment, key, names in visits.values_list("assignment_id", "key", "unseen"):
        unseen.setdefault(assignment, {}).setdefault(key.partition(".")[0], set()).update(names.split(";"))
    found: dict[int, list[int]] = {}
    rows = Response.objects.filter(assignment__in=unseen, item__isnull=False, skip_reason="")
    for pk, assignment, slot, slug in rows.values_list("pk", "assignment_id", "slot", "question__section__protocol"):
        images = unseen[assignment].get(slot.partition(".")[0], set())
        if images and slug in REGISTRY and is_about_unseen_image(slot, REGISTRY[slug], images):
            found.setdefault(assignment, []).append(pk)
    return found


def _decisions(study: Study) -> dict[int, str]:
    """Return the reason of each assignment with an active exclusion by a researcher."""
    active = active_exclusions(Assignment.objects.filter(study=study)).order_by("pk")
    return dict(active.values_list("assignment_id", "reason"))


def _reviews(study: Study) -> dict[int, str]:
    """Return the reviewers' reasons for each reviewed assignment, '' for accepted work."""
    samples = read_coded_samples(study, Assignment.Origin.values)
    return dict.fromkeys(decided_review_assignment_ids(samples), "") | refusal_reasons_by_assignment(samples)


def _texts_by_batch(study: Study) -> dict[int, list[str]]:
    rows = Exposure.objects.filter(item__placements__batch__study=study).values_list(
        "item__placements__batch__number", "output__text"
    )
    texts_by_batch: dict[int, list[str]] = {}
    for batch, text in rows:
        texts_by_batch.setdefault(batch, []).append(text)
    return texts_by_batch


def _attention_check_keys(study: Study) -> dict[tuple[int, str], str]:
    """Return the key of the right answer of each attention check, by section position and question key."""
    rows = Question.objects.filter(section__study=study, section__purpose=Section.Purpose.ATTENTION)
    return {
        (section, key): parse_scale(scale).right_key
        for section, key, scale in rows.values_list("section__position", "key", "scale")
    }


def _live_item_counts(study: Study) -> dict[int, tuple[tuple[int, int], ...]]:
    """Return the numbers of live items by section, only for assignments with fewer items than drawn or with third labels."""
    placed: dict[int, list[tuple[int, int | None]]] = {}
    rows = Placement.objects.filter(batch__study=study, item__kind=Item.Kind.LIVE, item__section__purpose="live")
    for batch, section, retired in rows.values_list("batch_id", "item__section__position", "item__retired_in__version"):
        placed.setdefault(batch, []).append((section, retired))
    asked_by_assignment = {}
    people = Assignment.objects.filter(study=study, batch__isnull=False).exclude(origin=Assignment.Origin.IMPORTED)
    for pk, batch, origin, version in people.values_list("pk", "batch_id", "batch__origin", "design__version"):
        items = placed.get(batch, [])
        counts = Counter(section for section, retired in items if retired is None or retired > (version or 0))
        if origin == Batch.Origin.TOP_UP or counts.total() < len(items):
            asked_by_assignment[pk] = tuple(sorted(counts.items()))
    return asked_by_assignment
