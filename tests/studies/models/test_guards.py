"""A launched study's design does not change, and the record is only added to: every way to write is tried."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.db.models import F, ProtectedError
from django.utils import timezone

from analysis.models import Coding, CodingItem, CodingSample, CodingSeat
from annotators.models import Appeal, Response, Verdict
from studies.design.serialization import frozen_design_mismatch_text
from studies.models import (
    Arm,
    AuditEvent,
    Batch,
    ComparisonFamily,
    Contrast,
    Design,
    Exposure,
    Item,
    Output,
    Placement,
    Prompt,
    Question,
    Section,
    Study,
    System,
)
from studies.models.guards import AppendOnlyViolation, StudyFrozen, allowing_erasure
from studies.services import lifecycle
from tests.builders import draft_study, spa_study
from tests.players import submitted

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


@pytest.fixture(scope="module")
def stored_study(module_transaction) -> int:
    return spa_study().pk


@pytest.fixture
def study(stored_study, db):
    return Study.objects.get(pk=stored_study)


@pytest.fixture
def draft():
    return draft_study(title="another")


def saved(row, **columns):
    for name, value in columns.items():
        setattr(row, name, value)
    row.save()


FROZEN = {
    "a system is renamed": lambda s, d: saved(s.systems.first(), name="new"),
    "a system is renamed by update": lambda s, d: s.systems.update(name=F("name")),
    "a system is added": lambda s, d: System.objects.create(study=s, name="new"),
    "systems are added in bulk": lambda s, d: System.objects.bulk_create([System(study=s, name="new")]),
    "systems are changed in bulk": lambda s, d: System.objects.bulk_update(list(s.systems.all()), ["name"]),
    "a system is deleted": lambda s, d: s.systems.first().delete(),
    "systems are deleted": lambda s, d: s.systems.all().delete(),
    "an old row is overwritten": lambda s, d: System(pk=s.systems.first().pk, study=d, name="new").save(),
    "a system is moved out": lambda s, d: saved(s.systems.first(), study=d),
    "a system is moved out by update": lambda s, d: s.systems.update(study=d),
    "a system is moved in": lambda s, d: saved(d.systems.first(), study=s),
    "a system is moved in by update": lambda s, d: d.systems.filter(name="alpha").update(study=s),
    "rows are upserted": lambda s, d: System.objects.bulk_create(
        [System(study=s, name="alpha", is_human=True)],
        update_conflicts=True,
        update_fields=["is_human"],
        unique_fields=["study", "name"],
    ),
    "an arm gets a system": lambda s, d: s.arms.get().systems.add(s.systems.first()),
    "an arm's systems are cleared": lambda s, d: s.arms.get().systems.clear(),
    "an arm's systems are set": lambda s, d: s.arms.get().systems.set(s.systems.all()),
    "a section gets an arm": lambda s, d: s.sections.first().arms.add(s.arms.get()),
    "a section's settings change": lambda s, d: saved(s.sections.last(), settings={"labels": "fixed"}),
    "a section is added": lambda s, d: Section.objects.create(study=s, position=99, protocol="spa"),
    "a question's scale changes": lambda s, d: saved(Question.objects.filter(section__study=s).first(), scale={}),
    "a question's words change without amending": lambda s, d: Question.objects.filter(section__study=s).update(
        text="other"
    ),
    "a family is added": lambda s, d: ComparisonFamily.objects.create(study=s, name="new"),
    "a contrast is added": lambda s, d: Contrast.objects.create(study=s, estimand="new"),
    "a margin is set": lambda s, d: s.contrasts.update(margin=0.1),
    "a prompt changes": lambda s, d: saved(s.prompts.first(), text="other"),
    "a prompt is added": lambda s, d: Prompt.objects.create(study=s, key="new"),
    "an output changes": lambda s, d: saved(Output.objects.filter(system__study=s).first(), text="other"),
    "an output is deleted": lambda s, d: Output.objects.filter(system__study=s).delete(),
    "an item's prompt changes": lambda s, d: s.items.update(prompt=s.prompts.first()),
    "an item is deleted": lambda s, d: s.items.first().delete(),
    "an exposure changes": lambda s, d: Exposure.objects.filter(item__study=s).update(number=F("number") + 10),
    "a batch wants more": lambda s, d: s.batches.update(wanted=9),
    "a placement moves": lambda s, d: Placement.objects.filter(batch__study=s).update(number=F("number") + 10),
    "a placement is deleted": lambda s, d: Placement.objects.filter(batch__study=s).delete(),
    "an arm's pay changes without amending": lambda s, d: s.arms.update(reward=1),
    "the study's seed changes": lambda s, d: saved(Study.objects.get(pk=s.pk), seed=1),
    "the study's target changes by update": lambda s, d: Study.objects.filter(pk=s.pk).update(target_n=1),
    "the study's state is written": lambda s, d: Study.objects.filter(pk=s.pk).update(state="draft"),
    "the study's state is saved": lambda s, d: saved(Study.objects.get(pk=s.pk), state="closed"),
    "the study is deleted": lambda s, d: Study.objects.get(pk=s.pk).delete(),
    "studies are deleted": lambda s, d: Study.objects.filter(pk=s.pk).delete(),
}


@pytest.mark.parametrize("way", FROZEN)
def test_a_launched_design_does_not_change(way, study, draft):
    with pytest.raises((StudyFrozen, ProtectedError)), transaction.atomic():
        FROZEN[way](study, draft)
    assert frozen_design_mismatch_text(study) == ""


def test_a_draft_is_free(draft):
    saved(draft.systems.first(), name="renamed")
    draft.arms.get().systems.add(draft.systems.first())
    Output.objects.filter(system__study=draft).update(text="other")
    Output.objects.filter(system__study=draft).delete()


def test_what_grows_after_launch_grows(study):
    batch = Batch.objects.create(study=study, arm=study.arms.get(), number=500)
    Placement.objects.create(batch=batch, item=study.items.first(), number=0)
    Batch.objects.filter(pk=batch.pk).update(claimed=1)
    Item.objects.filter(study=study).update(settled_at=timezone.now())
    assert frozen_design_mismatch_text(study) == ""


def test_the_hash_finds_what_the_guards_missed(study):
    """Raw SQL past every guard (PostgreSQL's triggers refuse even that)."""
    sql = f"UPDATE studies_contrast SET margin = 0.2 WHERE study_id = {study.pk}"
    if connection.vendor == "postgresql":
        with pytest.raises(Exception, match="does not change"), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql)
    else:
        with connection.cursor() as cursor:
            cursor.execute(sql)
        assert "differs from the frozen version 1" in frozen_design_mismatch_text(study)


APPEND_ONLY = {
    "saved": lambda row: row.save(),
    "updated": lambda row: type(row).objects.filter(pk=row.pk).update(pk=row.pk),
    "deleted": lambda row: row.delete(),
    "deleted by query": lambda row: type(row).objects.filter(pk=row.pk).delete(),
    "deleted raw": lambda row: type(row).objects.filter(pk=row.pk)._raw_delete("default"),
    "upserted": lambda row: type(row).objects.bulk_create(
        [row], update_conflicts=True, update_fields=["id"], unique_fields=["id"]
    ),
    "updated in bulk": lambda row: type(row).objects.bulk_update([row], [row._meta.concrete_fields[1].name]),
}


@pytest.mark.parametrize("way", APPEND_ONLY)
@pytest.mark.parametrize("model", [Response, Design, AuditEvent])
def test_the_record_is_only_added_to(way, model, study):
    submitted(study)
    row = model.objects.first()
    with pytest.raises(AppendOnlyViolation), transaction.atomic():
        APPEND_ONLY[way](row)


@pytest.mark.parametrize("way", APPEND_ONLY)
@pytest.mark.parametrize("model", [CodingSample, CodingSeat, CodingItem, Coding])
def test_what_coders_said_is_only_added_to(way, model, study, django_user_model):
    assignment = submitted(study)
    coder = django_user_model.objects.create(username="coder")
    sample = CodingSample.objects.create(
        study=study, number=1, kind="explanations", rule="union", codebook={}, per_arm=1, origin="live"
    )
    CodingSeat.objects.create(sample=sample, number=1, user=coder)
    item = CodingItem.objects.create(sample=sample, number=1, assignment=assignment)
    Coding.objects.create(item=item, coder=coder, is_none=True)
    with pytest.raises(AppendOnlyViolation), transaction.atomic():
        APPEND_ONLY[way](model.objects.get())


@pytest.mark.parametrize("way", APPEND_ONLY)
def test_a_verdict_is_only_added_to(way, study, django_user_model):
    assignment, decider = submitted(study), django_user_model.objects.create(username="decider")
    Verdict.objects.create(assignment=assignment, kind="reject", category="c", message="m", by=decider)
    with pytest.raises(AppendOnlyViolation), transaction.atomic():
        APPEND_ONLY[way](Verdict.objects.get())


def test_an_erasure_blanks_and_nothing_else(study):
    submitted(study, comment="my name is Kim")
    row = Response.objects.exclude(text="").get()
    with pytest.raises(AppendOnlyViolation):
        Response.objects.filter(pk=row.pk).update(text="")
    with allowing_erasure():
        Response.objects.filter(pk=row.pk).update(text="", erased_at=timezone.now())
    with allowing_erasure(), pytest.raises(AppendOnlyViolation):
        Response.objects.filter(pk=row.pk).update(slot="other")
    assert Response.objects.get(pk=row.pk).text == ""


@pytest.mark.only_on("postgresql")  # the triggers are there
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE annotators_response SET value = 1",
        "DELETE FROM annotators_response",
        "UPDATE studies_design SET canonical = ''",
        "DELETE FROM studies_auditevent",
        "UPDATE studies_output SET text = 'x'",
        "INSERT INTO studies_system (study_id, name, is_human, reference) SELECT id, 'new', false, '' FROM studies_study",
        "INSERT INTO studies_comparisonfamily (study_id, name, adjustment, after) SELECT id, 'a', 'holm', '' FROM studies_study",
        "DELETE FROM studies_placement",
        "UPDATE studies_batch SET wanted = 99",
        "UPDATE analysis_coding SET labels = 'other', is_none = false",
        "DELETE FROM analysis_codingitem",
        "UPDATE annotators_verdict SET message = 'x'",
        "UPDATE annotators_appeal SET text = 'x', answered_at = now()",
        "DELETE FROM annotators_appeal",
    ],
)
def test_triggers_refuse_raw_sql(sql, study, django_user_model):
    sample = CodingSample.objects.create(
        study=study, number=1, kind="explanations", rule="union", codebook={}, per_arm=1, origin="live"
    )
    item = CodingItem.objects.create(sample=sample, number=1, assignment=submitted(study))
    coder = django_user_model.objects.create(username="coder")
    Coding.objects.create(item=item, coder=coder, is_none=True)
    rejected = {"assignment": item.assignment, "kind": "reject", "category": "c", "message": "m"}
    verdict = Verdict.objects.create(by=coder, **rejected)
    due = timezone.now() + timedelta(days=9)
    Appeal.objects.create(verdict=verdict, rejected_by=coder, text="Why?", due_at=due)
    with (
        pytest.raises(Exception, match="append-only|does not change"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(sql)


def test_an_amendment_passes_and_is_a_new_version(study):
    question = Question.objects.filter(section__study=study).first()
    design = lifecycle.amend(
        study,
        {"question": {question.pk: {"text": "Do you read English with ease?"}}},
        reason="a typing error",
        by=None,
    )
    assert (design.version, design.reason) == (2, "a typing error")
    assert frozen_design_mismatch_text(study) == ""
    assert Arm.objects.get(study=study).reward is None
