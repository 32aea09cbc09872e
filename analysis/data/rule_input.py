"""Read the input of exclusion rules from the database."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING

from analysis.coding.samples import decided_review_assignment_ids, read_coded_samples, refusal_reasons_by_assignment
from analysis.exclusions import RuleInput
from analysis.exclusions.screening import AppliedRule, apply_rules
from annotators.counting import Use, select
from annotators.models import Assignment, PageVisit, Response
from annotators.pages.form_data import is_about_unseen_image
from annotators.places.barrings import lifted_at_by_annotator
from annotators.places.exclusions import active_exclusions
from studies.design.workload import estimate_stored_or_trial_batch_workloads
from studies.models import Batch, Expected, Exposure, Item, Placement, Question, Section, Study
from studies.protocols import REGISTRY
from studies.protocols.base.fields import parse_scale
from studies.protocols.base.known_answers import known_answer
from studies.services.series import is_in_series, studies_judged_together

from .flat_rows import annotator_pseudonym
from .frames import assignments_frame, responses_frame

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
        rewriting_questions=lambda: set(
            Question.objects.filter(section__study=study, scale__kind="rewrite").values_list("section__position", "key")
        ),
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


# Read the answers to test questions: one row per answer with a known answer, right, wrong or not counted.


COLUMNS = (
    "assignment",
    "annotator",
    "section",
    "item",
    "question",
    "type",
    "is_positive",
    "is_right",
    "is_pilot",
    "is_counted",
    "is_submitted",
    "received_at",
    "study",
    "is_own",
)
# Share of a pilot that must agree with the known answer of a damaged or given test question.
PILOT_AGREEMENT = 0.9
_PILOTED_TYPES = (Item.TestType.DAMAGED, Item.TestType.GIVEN)


def read_test_answers(study: Study, origins: Iterable[str] = ("live",)) -> "DataFrame":
    """Return one row per answer to a test question, in the order in which the answers came.

    In a round of a board, the answers in all its rounds: few people answer many questions in one. The same person has the same
    pseudonym in all rows. ``study``: the code of the study of the answer, and ``is_own`` whether it is this one. In rounds, who
    withdrew from one is left out of all, and so is what a person answered before their barring was lifted: somebody has judged it.
    ``is_right``: True, False, or None if the answer does not count (skipped, or neutral where neutral answers do not count).
    ``is_pilot``: one of the first answers to a damaged or given test question, which only check the question.
    ``is_counted``: whether the answer says something about the annotator. Answers of people who withdrew are not read.
    """
    import pandas as pd

    known = {}
    codes = dict(studies_judged_together(study).values_list("pk", "code"))
    lifted_at: Mapping[int, datetime | None] = {}
    withdrew: Container[int] = ()
    if is_in_series(study):
        lifted_at = lifted_at_by_annotator(study)
        left = select(Use.WITHDRAWN, Assignment.objects.filter(study__in=codes))
        withdrew = set(left.values_list("annotator", flat=True))
    expected = Expected.objects.filter(item__study__in=codes, item__kind=Item.Kind.TEST)
    for row in expected.select_related("item__section", "question"):
        settings = REGISTRY[row.item.section.protocol].cleaned_settings(row.item.section)
        known[row.item_id, row.question_id] = known_answer(row, settings), row, settings
    answers = (
        select(Use.ROWS, Response.objects.filter(assignment__study__in=codes, item__kind=Item.Kind.TEST), origins)
        .order_by("received_at", "pk")
        .values_list(
            "assignment_id",
            "assignment__study_id",
            "assignment__annotator_id",
            "assignment__annotator__code",
            "assignment__submitted_at",
            "item_id",
            "question_id",
            "exposure_id",
            "chosen_id",
            "choice",
            "value",
            "received_at",
        )
    )
    rows = []
    # A test question has the same number in all rounds.
    pilots: dict[tuple[int, int, str], list[bool]] = {}
    n_asked: Counter[tuple[int, int, str]] = Counter()
    names: dict[str, str] = {}
    for (
        assignment,
        study_pk,
        person,
        annotator,
        submitted_at,
        item,
        question,
        exposure,
        chosen,
        choice,
        value,
        received_at,
    ) in answers:
        found = known.get((item, question))
        lifted = lifted_at.get(person)
        if found is None or person in withdrew or (lifted is not None and received_at <= lifted):
            continue
        answer, row, settings = found
        if answer.about is not None and exposure != answer.about:
            continue
        is_right = answer.is_right(
            value=None if value is None else float(value), exposure=exposure, chosen=chosen, choice=choice
        )
        key = (row.item.section.position, row.item.number, row.question.key)
        test_type = row.item.test_type or Item.TestType.GIVEN
        n_pilot = settings["pilot_answers"] if test_type in _PILOTED_TYPES else 0
        n_asked[key] += 1
        is_pilot = n_asked[key] <= n_pilot
        if is_pilot and is_right is not None:
            pilots.setdefault(key, []).append(is_right)
        passed = n_pilot == 0 or pilot_agrees(pilots.get(key, []))
        rows.append(
            (
                assignment,
                names.setdefault(str(annotator), annotator_pseudonym(study, annotator)),
                row.item.section.position,
                f"s{row.item.section.position}.{row.item.number}",
                row.question.key,
                str(test_type),
                test_type == Item.TestType.POSITIVE,
                is_right,
                is_pilot,
                not is_pilot and passed and is_right is not None,
                submitted_at is not None,
                received_at,
                str(codes[study_pk]),
                study_pk == study.pk,
            )
        )
    frame = pd.DataFrame.from_records(rows, columns=list(COLUMNS))
    frame["is_right"] = frame["is_right"].astype("object")
    frame["is_own"] = frame["is_own"].astype(bool)
    return frame


def pilot_agrees(pilot: list[bool]) -> bool:
    """Return whether 90 % or more of the counted pilot answers agree with the known answer. Without any, they do not."""
    return bool(pilot) and sum(pilot) >= PILOT_AGREEMENT * len(pilot)
