"""What researchers do to a study, each act once in a table: its permission, its one line in the log, its refusal that changes nothing.

A function of the code that writes into the log and has no row here, nor a reason to have none, fails.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.core.exceptions import PermissionDenied
from django.http import Http404

from studies import access, copying, drafts, lifecycle, practice, questions
from studies.access import TABLE, Action, Role
from studies.bundle import bundle_text, read_bundle
from studies.lifecycle import NotNow
from studies.models import AuditEvent, Output, Study, StudyMember
from tests import builders

pytestmark = pytest.mark.django_db
World = SimpleNamespace


@dataclass(frozen=True)
class Act:
    """``do(world, by)`` in a ``world`` that ``prepare`` made. ``again`` is refused afterwards, and after ``spoil``: the same, where nothing else is named."""

    action: Action
    verb: str
    prepare: Callable[[Any], World]
    do: Callable[[World, Any], Any]
    again: Callable[[World, Any], Any] | None = None
    spoil: Callable[[World], Any] = lambda world: None
    may_repeat: bool = False


def draft(owner) -> World:
    return World(study=builders.spa_draft(owner=owner, with_surveys=False, with_rating=False, target_n=3, target_cap=9))


def launched(owner) -> World:
    return World(study=builders.launched(draft(owner).study, owner))


def after(*steps):
    def prepare(owner) -> World:
        world = launched(owner)
        for step in steps:
            step(world.study, None)
        return World(study=Study.objects.get(pk=world.study.pk))

    return prepare


def archived(owner) -> World:
    world = draft(owner)
    lifecycle.archive(world.study, None)
    return world


def amended(columns):
    return lambda w, by: lifecycle.amend(w.study, {"study": {None: columns}}, by, "A better address.")


def launch(w, by):
    return lifecycle.launch(w.study, by, builders.warnings_of(w.study))


def step(function, *rest):
    return lambda w, by: function(w.study, by, *rest)


NEW = UUID(int=7)


def write_questions(w, by):
    section = w.study.sections.get()
    x, y = w.study.systems.order_by("name")[:2]
    return questions.write_questions(section, [(x, y)], "Is {x} more vivid than {y}?", by=by, criterion="vivid")


def launch_it(w):
    builders.launched(w.study)


def twice_rated(owner) -> World:
    world = draft(owner)
    world.section = builders.add_rating(world.study)
    return world


def delete_section(w, by):
    return drafts.delete_section(w.section, by)


def trained(owner) -> World:
    study = builders.humanlike_draft(owner=owner, conditions=("none", "examples"))
    section = study.sections.get(purpose="training")
    outputs = Output.objects.filter(system__study=study, system__is_human=True, prompt__key__startswith="news")
    return World(study=study, section=section, outputs=[outputs.first()])


def make_practice(w, by):
    return practice.make_practice(w.section, w.outputs, "Look at the names.", by=by)


def practised(owner) -> World:
    world = trained(owner)
    world.item = make_practice(world, None)
    return world


def delete_practice(w, by):
    return practice.delete_practice(w.item, by)


ACTS = {
    "create": Act(
        Action.CREATE, "create", draft, lambda w, by: drafts.create(Study(title="Another", code=NEW), by)
    ),
    "change a draft": Act(
        Action.EDIT, "edit", draft, lambda w, by: drafts.change(w.study, by, {"title": "Better"}),
        lambda w, by: drafts.change(w.study, by, {"title": "Worse"}, version=99),
    ),
    "write questions": Act(Action.EDIT, "edit", draft, write_questions, spoil=launch_it),
    "delete a section": Act(Action.EDIT, "edit", twice_rated, delete_section, may_repeat=True),
    "make a practice item": Act(Action.EDIT, "edit", trained, make_practice),
    "delete a practice item": Act(Action.EDIT, "edit", practised, delete_practice, may_repeat=True),
    "change roles": Act(Action.SHARE, "change roles", launched, lambda w, by: access.note_roles(w.study, by), may_repeat=True),
    "import a bundle": Act(
        Action.CREATE, "import bundle", draft, lambda w, by: read_bundle(bundle_text(w.study), by), may_repeat=True
    ),
    "launch": Act(Action.LAUNCH, "launch", draft, launch),
    "freeze": Act(Action.EDIT, "freeze", draft, step(lifecycle.freeze)),
    "pause": Act(Action.RUN, "pause", launched, step(lifecycle.pause)),
    "resume": Act(Action.RUN, "resume", after(lifecycle.pause), step(lifecycle.resume)),
    "draw more": Act(
        Action.RUN, "draw more", launched, lambda w, by: lifecycle.draw_more(w.study, 2, by),
        lambda w, by: lifecycle.draw_more(w.study, 99, by),
    ),
    "amend": Act(Action.RUN, "amend", launched, amended({"contact": "new@example.org"}), amended({"target_cap": 1})),
    "close": Act(Action.RUN, "close", launched, step(lifecycle.close)),
    "finish": Act(Action.RUN, "finish", after(lifecycle.close), step(lifecycle.finish)),
    "unblind": Act(Action.UNBLIND, "unblind", launched, step(lifecycle.unblind, "A look.")),
    "archive": Act(Action.ARCHIVE, "archive", draft, step(lifecycle.archive)),
    "restore": Act(Action.ARCHIVE, "restore", archived, step(copying.restore)),
    "delete a draft": Act(Action.ARCHIVE, "delete draft", draft, step(copying.delete_draft), may_repeat=True),
    "clone": Act(Action.CLONE, "clone", draft, step(copying.clone), may_repeat=True),
}  # fmt: skip


def stored() -> dict[str, list[tuple]]:
    """Every row of the three apps, to the last column."""
    models = [model for model in apps.get_models() if model._meta.app_label in ("studies", "annotators", "analysis")]
    return {model._meta.label: list(model._base_manager.order_by("pk").values_list()) for model in models}


@pytest.fixture
def owner():
    return builders.user("olga")


def people_without(action: Action, study: Study):
    """A person of each role that does not allow it, and somebody without any."""
    if TABLE[action].roles is None:
        person = builders.user("an annotator")
        person.is_staff = False
        yield person, PermissionDenied
        return
    for role in set(Role) - TABLE[action].roles:
        person = builders.user(f"a {role}")
        StudyMember.objects.create(study=study, user=person, role=role)
        yield person, PermissionDenied
    yield builders.user("a stranger"), Http404


@pytest.mark.parametrize("name", ACTS)
def test_an_act_is_refused_to_whoever_may_not(name, owner):
    act = ACTS[name]
    world = act.prepare(owner)
    people = list(people_without(act.action, world.study))
    before = stored()
    for person, refusal in people:
        with pytest.raises(refusal):
            act.do(world, person)
        assert stored() == before, person


@pytest.mark.parametrize("name", ACTS)
def test_an_act_writes_one_line_into_the_log(name, owner):
    act = ACTS[name]
    world = act.prepare(owner)
    before = set(AuditEvent.objects.values_list("pk", flat=True))
    act.do(world, owner)
    (event,) = AuditEvent.objects.exclude(pk__in=before)
    assert (event.verb, event.by) == (act.verb, owner)


@pytest.mark.parametrize("name", [name for name, act in ACTS.items() if not act.may_repeat])
def test_a_refused_act_changes_nothing(name, owner):
    act = ACTS[name]
    world = act.prepare(owner)
    act.do(world, None)
    act.spoil(world)
    before = stored()
    with pytest.raises(NotNow):
        (act.again or act.do)(world, owner)
    assert stored() == before
