"""Create and edit drafts: check permissions, lock the draft, count each change and log it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from django.db.models import F, Q

from studies import access, signals
from studies.access import Action, check_permission_or_404
from studies.design.serialization import LATER_STUDY_FIELDS, STUDY_FIELDS
from studies.models import Arm, Expected, Exposure, Item, Question, ResearcherFacts, Section, Study, audit

from .lifecycle import ActionRefused


@transaction.atomic
def create_draft_with_default_arm(unsaved_study: Study, by) -> Study:
    """Store a new draft with one arm, owned by ``by``. Raise ActionRefused if its code is taken, or ValidationError."""
    check_permission_or_404(by, Action.CREATE)
    unsaved_study.owner = by
    unsaved_study.full_clean(exclude=["code"], validate_unique=False)
    if Study.objects.filter(code=unsaved_study.code).exists():
        raise ActionRefused("Another study already has this code. Use another code.")
    unsaved_study.save(force_insert=True)
    access.add_owner(unsaved_study, by)
    Arm.objects.create(study=unsaved_study, name="all")
    audit.record_study_event("create", unsaved_study, by=by)
    return unsaved_study


@transaction.atomic
def update_draft(study: Study, by, changes: Mapping[str, Any], version: int | None = None) -> Study:
    """Change columns of a draft. Raise ActionRefused if ``version`` is no longer the draft's version, or ValidationError."""
    check_permission_or_404(by, Action.EDIT, study)
    study = _lock_study(study.pk)
    if version is not None and version != study.version:
        raise ActionRefused(f"The study was changed meanwhile (revision {study.version}). Read it again.")
    changes = {name: value for name, value in changes.items() if getattr(study, name) != value}
    if changes:
        for name, value in changes.items():
            setattr(study, name, value)
        study.full_clean(
            exclude=[name for name in (*STUDY_FIELDS, *LATER_STUDY_FIELDS) if name not in changes],
            validate_unique=False,
        )
        study.save()
        record_edit_and_raise_version(study, by, columns=sorted(changes))
    return study


@transaction.atomic
def store_facts(by, changes: Mapping[str, Any]) -> None:
    """Store what the account ``by`` writes in the texts of its studies."""
    check_permission_or_404(by, Action.CREATE)
    if ResearcherFacts.objects.filter(user=by, **changes).exists():
        return
    ResearcherFacts.objects.update_or_create(user=by, defaults=dict(changes))
    audit.record("edit facts", by=by, columns=sorted(changes))


@contextmanager
def locked_draft(study_id: int, by, *, deletes_test_runs: bool = False) -> Iterator[Study]:
    """Open a transaction that changes rows of a draft. ``deletes_test_runs``: first delete test runs, which refer to the rows."""
    check_permission_or_404(by, Action.EDIT, study_id)
    with transaction.atomic():
        study = _lock_study(study_id)
        refuse_if_launched(study)
        if deletes_test_runs:
            signals.deleting_test_runs.send(Study, study=study)
        yield study


def delete_test_runs(study_id: int, by) -> None:
    """Delete the test runs of a draft, before rows are deleted that they refer to."""
    with locked_draft(study_id, by, deletes_test_runs=True):
        pass


def refuse_if_launched(study: Study) -> None:
    if not study.is_draft:
        raise ActionRefused("The study is launched, so its design cannot change. Clone it to change it.")


def record_edit_and_raise_version(study: Study, by, **details: Any) -> None:
    """Increase the draft's version and log the change. Results for an older version are then computed again."""
    check_permission_or_404(by, Action.EDIT, study)
    Study.objects.filter(pk=study.pk).update(version=F("version") + 1)
    audit.record_study_event("edit", study, by=by, **details)


def delete_section_and_test_runs(section: Section, by) -> None:
    """Delete a section with its questions, its practice items and its test questions."""
    with locked_draft(section.study_id, by, deletes_test_runs=True) as study:
        # Also those of the section whose items it repeats, if their known answers are about its questions.
        made = Item.objects.filter(Q(section=section) | Q(expected__question__section=section)).distinct()
        for item in made.filter(kind__in=[Item.Kind.PRACTICE, Item.Kind.TEST]):
            delete_item_with_exposures_and_expected(item)
        Question.objects.filter(section=section).delete()
        section.section_arms.all().delete()
        section_text = f"section {section.position}"
        section.delete()
        record_edit_and_raise_version(study, by, deleted=section_text)


def delete_item_with_exposures_and_expected(item: Item) -> None:
    Expected.objects.filter(item=item).delete()
    Exposure.objects.filter(item=item).delete()
    item.delete()


def _lock_study(study_id: int) -> Study:
    return Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study_id)
