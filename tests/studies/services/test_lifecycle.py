"""The life of a study: each step once, in its order, audited; a launch is all or nothing."""

import json

import pytest
from django.db import connection
from django.utils import timezone

from studies.design.checklist import find_design_problems
from studies.design.serialization import canonical_json, frozen_design_mismatch_text, serialize_design, sha256_of
from studies.models import AuditEvent, Output, Placement, Question, Study
from studies.services import lifecycle
from studies.services.lifecycle import ActionRefused, NotReady
from tests.builders import add_spa, draft_study, launched, spa_draft, spa_study, user, warnings_of

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


def verbs(study):
    return list(AuditEvent.objects.filter(study=study).order_by("pk").values_list("verb", flat=True))


def test_a_launch_freezes_draws_and_opens():
    researcher = user()
    study = spa_draft(owner=researcher, target_n=5)
    study = launched(study, researcher)
    assert (study.state, study.open_to, study.batches.count()) == ("launched", 5, 5)
    design = study.designs.get()
    assert design.version == 1 and design.by == researcher and design.sha256 == sha256_of(design.canonical)
    assert design.canonical == canonical_json(serialize_design(study)) and frozen_design_mismatch_text(study) == ""
    event = AuditEvent.objects.get(study=study, verb="launch")
    assert event.data["sha256"] == design.sha256 and event.by == researcher


def test_places_equal_the_target():
    study = spa_study(target_n=5, annotators_per_batch=2)
    assert study.batches.count() == 3 and study.open_to == 3


BLOCKING = {
    "no title": lambda s: s.__dict__.update(public_title=" "),
    "no contact": lambda s: s.__dict__.update(contact=""),
    "no target": lambda s: s.__dict__.update(target_n=None),
    "no duration": lambda s: s.__dict__.update(minutes=None),
    "no arm": lambda s: s.arms.get().delete(),
    "no live section": lambda s: s.sections.exclude(purpose="screening").update(purpose="training"),
    "a section asks nothing": lambda s: Question.objects.filter(section__protocol="rating").delete(),
    "a question names no systems": lambda s: Question.objects.filter(section__protocol="spa").update(x=None, y=None),
    "labels missing in a question": lambda s: Question.objects.filter(section__protocol="spa").update(text="Which?"),
    "a wrong scale": lambda s: Question.objects.filter(section__protocol="rating").update(scale={"kind": "percent"}),
    "no such scale": lambda s: Question.objects.filter(section__protocol="rating").update(scale={"kind": "stars"}),
    "no such estimand": lambda s: s.contrasts.update(estimand="glory"),
    "too few prompts": lambda s: (
        Output.objects.filter(prompt__key__gt="p002").delete(),
        s.prompts.filter(key__gt="p002").delete(),
    ),
    "a setting that is not one": lambda s: s.sections.filter(protocol="spa").update(settings={"labels": "greek"}),
    "m of a survey": lambda s: s.sections.filter(protocol="survey").update(m=3),
}


@pytest.mark.parametrize("what", BLOCKING)
def test_a_launch_is_refused_while_something_is_missing(what):
    study = spa_draft()
    assert not [p for p in find_design_problems(study) if p.is_blocking]
    BLOCKING[what](study)
    study.save()
    with pytest.raises(NotReady) as refused:
        lifecycle.launch(study, None, warnings_of(study))
    assert refused.value.problems and all(p.text for p in refused.value.problems)
    assert Study.objects.get(pk=study.pk).is_draft and not study.batches.exists() and not study.designs.exists()


def test_every_warning_is_acknowledged_by_name():
    study = spa_draft(m=2, both=False)
    assert {"one_naming_order:2", "few_prompts:2"} <= set(warnings_of(study))
    with pytest.raises(NotReady) as refused:
        lifecycle.launch(study, None, [])
    assert {p.key for p in refused.value.problems} == set(warnings_of(study))
    lifecycle.launch(study, None, warnings_of(study))
    assert AuditEvent.objects.get(verb="launch").data["acknowledged"] == sorted(warnings_of(study))


def test_each_step_once_and_in_order():
    study = spa_study()
    with pytest.raises(ActionRefused):
        lifecycle.launch(study, by=None)
    with pytest.raises(ActionRefused):
        lifecycle.resume(study, by=None)
    lifecycle.pause(study, by=None)
    with pytest.raises(ActionRefused):
        lifecycle.pause(study, by=None)
    lifecycle.resume(study, by=None)
    lifecycle.start_closing(study, by=None)
    for step in (lifecycle.start_closing, lifecycle.pause, lifecycle.resume):
        with pytest.raises(ActionRefused):
            step(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    with pytest.raises(ActionRefused):
        lifecycle.end_grace_period(study, by=None)
    assert verbs(study) == ["launch", "pause", "resume", "close", "finish"]
    study.refresh_from_db()
    assert study.launched_at <= study.closing_at <= study.closed_at


def test_the_grace_period_ends_by_itself():
    study = spa_study(grace_seconds=3600)
    lifecycle.start_closing(study, by=None)
    assert lifecycle.end_due_grace_periods() == 0
    from datetime import timedelta

    from django.db.models import QuerySet

    QuerySet(Study).filter(pk=study.pk).update(
        launched_at=timezone.now() - timedelta(hours=5), closing_at=timezone.now() - timedelta(hours=2)
    )
    assert lifecycle.end_due_grace_periods() == 1 and Study.objects.get(pk=study.pk).state == "closed"


def test_drawing_more_goes_on_where_the_draw_stopped():
    study = spa_study(target_n=4, target_cap=20)
    lifecycle.open_more_places(study, 3, by=None)
    twin = spa_study(target_n=7, title="twin")

    def keys(drawn):
        return [
            list(b.placements.values_list("item__prompt__key", flat=True)) for b in drawn.batches.order_by("number")
        ]

    assert keys(study) == keys(twin) and Study.objects.get(pk=study.pk).open_to == 7


def test_an_opening_that_was_stopped_opens_nothing_and_the_next_one_uses_what_it_drew(monkeypatch):
    monkeypatch.setattr(lifecycle, "CHUNK", 1)  # one batch in each transaction
    study, twin = (spa_study(target_n=4, target_cap=20, title=title) for title in ("one", "twin"))
    store, n_stored = lifecycle.store_drawn_batches, []

    def store_twice(*args, **kwargs):
        if len(n_stored) == 2:
            raise KeyboardInterrupt
        n_stored.append(len(store(*args, **kwargs)))

    monkeypatch.setattr(lifecycle, "store_drawn_batches", store_twice)
    with pytest.raises(KeyboardInterrupt):
        lifecycle.open_more_places(study, 5, by=None)
    monkeypatch.setattr(lifecycle, "store_drawn_batches", store)
    assert n_stored == [1, 1] and study.batches.count() == 6
    assert Study.objects.get(pk=study.pk).open_to == 4 and lifecycle.count_opened_places_towards_cap(study) == 4
    assert not AuditEvent.objects.filter(study=study, verb="draw more").exists()
    for opened in (study, twin):
        assert lifecycle.open_more_places(opened, 5, by=None) == 5
        assert Study.objects.get(pk=opened.pk).open_to == 9 == opened.batches.count()
    drawn = [
        list(
            Placement.objects.filter(batch__study=one)
            .order_by("batch__number", "number")
            .values_list("item__prompt__key", "batch__arm__name")
        )
        for one in (study, twin)
    ]
    assert drawn[0] == drawn[1]


@pytest.mark.only_on("postgresql")  # SQLite plans by no counts
def test_what_was_drawn_is_counted_before_anybody_comes():
    def believed():
        with connection.cursor() as cursor:
            cursor.execute("SELECT reltuples::int FROM pg_class WHERE oid = 'studies_placement'::regclass")
            return cursor.fetchone()[0]

    study = spa_study(target_n=6, prompts=40, batches_per_annotator=3)
    assert believed() == Placement.objects.count() > 0
    lifecycle.open_more_places(study, 3, by=None)
    assert believed() == Placement.objects.count()


def test_amendments_make_versions_and_only_some_things_can_be_amended():
    study = spa_study()
    arm = study.arms.get()
    with pytest.raises(ActionRefused, match="Enter a reason"):
        lifecycle.amend(study, {"study": {None: {"contact": "b@example.org"}}}, reason=" ", by=None)
    with pytest.raises(ActionRefused, match="target_n"):
        lifecycle.amend(study, {"study": {None: {"target_n": 3}}}, reason="fewer", by=None)
    for column, value in {"idle_seconds": 5, "public_title": "x" * 300, "grace_seconds": None}.items():
        with pytest.raises(ActionRefused, match=column.replace("_", " ")):
            lifecycle.amend(study, {"study": {None: {column: value}}}, reason="no such value", by=None)
    with pytest.raises(ActionRefused, match="Nothing would change"):
        lifecycle.amend(study, {"study": {None: {"contact": study.contact}}}, reason="nothing", by=None)
    lifecycle.amend(
        study,
        {"study": {None: {"contact": "b@example.org"}}, "arm": {arm.pk: {"reward": 4}}},
        reason="moved",
        by=None,
    )
    with pytest.raises(ActionRefused, match="only rise"):
        lifecycle.amend(study, {"arm": {arm.pk: {"reward": 3}}}, reason="cheaper", by=None)
    item = study.items.first()
    design = lifecycle.amend(study, {"item": {item.pk: {"retired": True}}}, reason="a broken text", by=None)
    assert (
        design.version == 3
        and study.items.get(pk=item.pk).retired_in == design
        and frozen_design_mismatch_text(study) == ""
    )
    assert json.loads(design.canonical)["retired"] == [[item.section.position, item.number]]


def test_a_retired_item_is_not_shown_to_later_people():
    from tests.players import claimed, open_page, submitted

    study = spa_study(target_n=3, prompts=4)
    early = submitted(study, "early", until="s2.read")
    item = study.items.first()
    lifecycle.amend(study, {"item": {item.pk: {"retired": True}}}, reason="broken", by=None)
    assert item.pk in {i.id for i in open_page(early)[1].items}
    late = submitted(study, "late", until="s2.read")
    assert late.design.version == 2 and item.pk not in {i.id for i in open_page(late)[1].items}
    assert claimed(study, "another").design.version == 2


def test_words_of_a_page_come_from_the_version_of_the_assignment():
    from tests.players import claimed, open_page

    study = spa_study(target_n=3)
    early = claimed(study, "early")
    question = Question.objects.get(section__study=study, key="fluent")
    lifecycle.amend(
        study, {"question": {question.pk: {"text": "Do you read English with ease?"}}}, reason="clearer", by=None
    )
    late = claimed(study, "late")
    words = [next(iter(open_page(a)[2].values())).text for a in (early, late)]
    assert words == ["Do you read English fluently?", "Do you read English with ease?"]


def test_the_design_depends_on_no_database_id():
    first = spa_draft(title="same")
    draft_study(title="in between")
    second = spa_draft(title="same")
    assert canonical_json(serialize_design(first)) == canonical_json(serialize_design(second))
    Output.objects.filter(system__study=second).first().delete()
    assert canonical_json(serialize_design(first)) != canonical_json(serialize_design(second))


def test_a_pair_that_nobody_asks_about_is_found():
    study = draft_study()
    add_spa(study, m=4, pairs=[("beta", "alpha")])
    systems = {s.name: s for s in study.systems.all()}
    study.contrasts.create(x=systems["gamma"], y=systems["alpha"])
    assert any("No question asks about gamma and alpha" in p.text for p in find_design_problems(study))


def test_unblinding_is_recorded_once():
    study = spa_study()
    lifecycle.unblind(study, None, "a reviewer asked")
    with pytest.raises(ActionRefused):
        lifecycle.unblind(study, None, "again")
    assert verbs(study) == ["launch", "unblind"]


def test_archiving_is_for_drafts_and_closed_studies():
    study = spa_study()
    with pytest.raises(ActionRefused):
        lifecycle.archive(study, by=None)
    draft = spa_draft(title="draft")
    lifecycle.archive(draft, by=None)
    assert Study.objects.get(pk=draft.pk).archived_at


def test_a_launch_is_asked_for_once_and_again_after_it_failed():
    from studies.services import jobs

    study = spa_draft()
    with pytest.raises(NotReady):
        lifecycle.request_launch(spa_draft(title="bad", contact=""), by=None)
    first = lifecycle.request_launch(study, None, warnings_of(study))
    assert lifecycle.request_launch(study, None, warnings_of(study)).pk == first.pk
    Study.objects.filter(pk=study.pk).update(contact="")  # spoilt before the job runs
    jobs.claim_and_run_job(first.pk, "test")
    first.refresh_from_db()
    assert (
        first.state == "failed"
        and "no contact for annotators" in first.error
        and Study.objects.get(pk=study.pk).is_draft
    )
    Study.objects.filter(pk=study.pk).update(contact="a@example.org")
    second = lifecycle.request_launch(study, None, warnings_of(study))
    assert second.pk != first.pk
    jobs.claim_and_run_job(second.pk, "test")
    assert Study.objects.get(pk=study.pk).state == "launched"
