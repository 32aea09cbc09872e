"""Acts on studies and drafts, for the tests that play each: by the function that writes the line into the log."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from analysis.api import stimuli
from analysis.data.exports import request_export
from analysis.forms.answers import save_answers
from analysis.models import AnalysisRun
from analysis.report.archive_import import import_archive
from analysis.report.links import create_link, revoke_link
from analysis.report.runs import request_analysis
from annotators.events import subscriptions
from annotators.places.batch_plan import delete_test_runs, start_test_run
from studies import access
from studies.access import Action
from studies.imports.bundle_files import bundle_text, create_draft_from_bundle
from studies.imports.preparation import prepare_stimuli_and_delete_dropped_prompts
from studies.imports.study_templates import archive_own_template, keep_as_template
from studies.imports.tables import Options, import_stimuli_file
from studies.models import EventDelivery, Output, Study, System
from studies.services import copying, drafts, jobs, known_answers, lifecycle, questions
from tests import builders
from tests.analysis.report.archived import archive_file

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


def in_an_archive(owner) -> World:
    world = after(lifecycle.start_closing, lifecycle.end_grace_period)(owner)
    return World(study=world.study, file=archive_file(world.study, Path(mkdtemp()) / "archive.zip"))


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


def with_file(owner) -> World:
    world = draft(owner)
    world.path = Path(mkdtemp()) / "rows.csv"
    world.path.write_text("prompt_key,system,text\np000,alpha,Another tale.\n")
    world.study.systems.get(name="alpha").outputs.filter(prompt__key="p000").delete()
    return world


def asked(owner) -> World:
    world = launched(owner)
    world.job = jobs.submit("analyse", study=world.study, by=owner, parameters={})
    return world


def write_questions(w, by):
    section = w.study.sections.get()
    x, y = w.study.systems.order_by("name")[:2]
    return questions.add_missing_questions(section, [(x, y)], "Is {x} more vivid than {y}?", by=by, criterion="vivid")


def asked_one_way(owner) -> World:
    options = {"with_surveys": False, "with_rating": False, "target_n": 3, "target_cap": 9}
    return World(study=builders.spa_draft(owner=owner, both=False, **options))


def without_comparisons(owner) -> World:
    world = draft(owner)
    world.study.contrasts.all().delete()
    return world


def launch_it(w):
    builders.launched(w.study)
    w.study.refresh_from_db()


def twice_rated(owner) -> World:
    world = draft(owner)
    world.section = builders.add_rating(world.study)
    return world


def delete_section(w, by):
    return drafts.delete_section_and_test_runs(w.section, by)


def trained(owner) -> World:
    study = builders.humanlike_draft(owner=owner, conditions=("none", "examples"))
    section = study.sections.get(purpose="training")
    outputs = Output.objects.filter(system__study=study, system__is_human=True, prompt__key__startswith="news")
    return World(study=study, section=section, outputs=[outputs.first()])


def make_practice(w, by):
    return known_answers.create_practice_item_and_delete_test_runs(w.section, w.outputs, "Look at the names.", by=by)


def practised(owner) -> World:
    world = trained(owner)
    world.item = make_practice(world, None)
    return world


def delete_practice(w, by):
    return known_answers.delete_practice_item_and_test_runs(w.item, by)


def share(w, by):
    return access.replace_member_roles(w.study, by, [(one.user_id, one.role) for one in access.members_of(w.study)])


def kept(owner) -> World:
    world = draft(owner)
    world.template = keep_as_template(world.study, None, "Mine")
    return world


def analysed(owner) -> World:
    """A study with an analysis of robots, whose outcomes are never hidden."""
    world, nothing = launched(owner), dict.fromkeys(("responses_sha256", "code_version", "seed", "result_sha256"), "")
    result = {"outcomes": {"is_hidden": False}}
    world.run = AnalysisRun.objects.create(
        study=world.study, number=1, responses_n=0, parameters={"origins": ["robot"]}, result=result, **nothing
    )
    return world


def linked(owner) -> World:
    world = analysed(owner)
    world.link, _ = create_link(world.run, None)
    return world


def hide_outcomes(w):
    w.run.parameters = {"origins": ["live"]}


EVENTS = "annotators/events/subscriptions"


def heard(owner) -> World:
    world = draft(owner)
    world.subscription = subscriptions.subscribe(world.study, owner, ["closed"], url="https://example.org/hook")[0]
    return world


def sent(owner) -> World:
    world = heard(owner)
    world.delivery = subscriptions.send_test(world.subscription, owner)
    EventDelivery.objects.update(next_at=None)
    return world


ACTS = {
    f"{EVENTS}:subscribe": Act(
        Action.RUN,
        "subscribe to events",
        draft,
        lambda w, by: subscriptions.subscribe(w.study, by, ["closed"], url="https://example.org/hook"),
        may_repeat=True,
    ),
    f"{EVENTS}:unsubscribe": Act(
        Action.RUN,
        "unsubscribe from events",
        heard,
        lambda w, by: subscriptions.unsubscribe(w.subscription, by),
    ),
    f"{EVENTS}:send_test": Act(
        Action.RUN,
        "test event subscription",
        heard,
        lambda w, by: subscriptions.send_test(w.subscription, by),
        may_repeat=True,
    ),
    f"{EVENTS}:send_again": Act(
        Action.RUN, "send event again", sent, lambda w, by: subscriptions.send_again(w.delivery, by)
    ),
    "analysis/report/links:create_link": Act(
        Action.SHARE, "make report link", analysed, lambda w, by: create_link(w.run, by), spoil=hide_outcomes
    ),
    "analysis/report/links:revoke_link": Act(
        Action.SHARE, "revoke report link", linked, lambda w, by: revoke_link(w.link, by)
    ),
    "studies/services/drafts:create_draft_with_default_arm": Act(
        Action.CREATE,
        "create",
        draft,
        lambda w, by: drafts.create_draft_with_default_arm(Study(title="Another", code=NEW), by),
    ),
    "studies/services/drafts:store_facts": Act(
        Action.CREATE,
        "edit facts",
        draft,
        lambda w, by: drafts.store_facts(by, {"institution": "University of Graz"}),
        may_repeat=True,
    ),
    "studies/services/drafts:record_edit_and_raise_version, columns": Act(
        Action.EDIT,
        "edit",
        draft,
        lambda w, by: drafts.update_draft(w.study, by, {"title": "Better"}),
        lambda w, by: drafts.update_draft(w.study, by, {"title": "Worse"}, version=99),
    ),
    "studies/services/drafts:record_edit_and_raise_version, questions": Act(
        Action.EDIT, "edit", draft, write_questions, spoil=launch_it
    ),
    "studies/services/drafts:record_edit_and_raise_version, reverse questions": Act(
        Action.EDIT,
        "edit",
        asked_one_way,
        lambda w, by: questions.add_reverse_questions(w.study.sections.get(), by=by, with_tau=True),
        spoil=launch_it,
    ),
    "studies/services/drafts:record_edit_and_raise_version, all pairs": Act(
        Action.EDIT,
        "edit",
        without_comparisons,
        lambda w, by: questions.add_missing_comparisons(w.study, by),
        spoil=lambda w: System.objects.bulk_create(System(study=w.study, name=f"s{n}") for n in range(21)),
    ),
    "studies/services/drafts:record_edit_and_raise_version, a section deleted": Act(
        Action.EDIT, "edit", twice_rated, delete_section, may_repeat=True
    ),
    "studies/services/drafts:record_edit_and_raise_version, a practice item": Act(
        Action.EDIT, "edit", trained, make_practice
    ),
    "studies/services/drafts:record_edit_and_raise_version, a practice item deleted": Act(
        Action.EDIT, "edit", practised, delete_practice, may_repeat=True
    ),
    "studies/access:replace_member_roles": Act(Action.SHARE, "change roles", launched, share, may_repeat=True),
    "studies/access:invite_colleague": Act(
        Action.SHARE,
        "invite",
        launched,
        lambda w, by: access.invite_colleague(w.study, by, "colleague@example.org", "viewer"),
        may_repeat=True,
    ),
    "studies/imports/bundle_files:create_draft_from_bundle": Act(
        Action.CREATE,
        "import bundle",
        draft,
        lambda w, by: create_draft_from_bundle(bundle_text(w.study), by),
        may_repeat=True,
    ),
    "analysis/report/archive_import:import_archive": Act(
        Action.CREATE,
        "import archive",
        in_an_archive,
        lambda w, by: import_archive(w.file, by, is_copy=True),
        may_repeat=True,
    ),
    "studies/imports/study_templates/__init__:keep_as_template": Act(
        Action.CLONE, "keep template", draft, step(keep_as_template, "Mine"), may_repeat=True
    ),
    "studies/imports/study_templates/__init__:archive_own_template": Act(
        Action.ARCHIVE, "archive template", kept, lambda w, by: archive_own_template(w.template, by), may_repeat=True
    ),
    "studies/services/lifecycle:launch": Act(Action.LAUNCH, "launch", draft, launch),
    "studies/services/lifecycle:freeze_and_close": Act(Action.EDIT, "freeze", draft, step(lifecycle.freeze_and_close)),
    "studies/services/lifecycle:_change_state, pause": Act(Action.RUN, "pause", launched, step(lifecycle.pause)),
    "studies/services/lifecycle:_change_state, resume": Act(
        Action.RUN, "resume", after(lifecycle.pause), step(lifecycle.resume)
    ),
    "studies/services/lifecycle:open_more_places": Act(
        Action.RUN,
        "draw more",
        launched,
        lambda w, by: lifecycle.open_more_places(w.study, 2, by),
        lambda w, by: lifecycle.open_more_places(w.study, 99, by),
    ),
    "studies/services/lifecycle:amend": Act(
        Action.RUN, "amend", launched, amended({"contact": "new@example.org"}), amended({"target_cap": 1})
    ),
    "studies/services/lifecycle:start_closing": Act(Action.RUN, "close", launched, step(lifecycle.start_closing)),
    "studies/services/lifecycle:_change_state, finish": Act(
        Action.RUN, "finish", after(lifecycle.start_closing), step(lifecycle.end_grace_period)
    ),
    "studies/services/lifecycle:unblind": Act(Action.UNBLIND, "unblind", launched, step(lifecycle.unblind, "A look.")),
    "studies/services/lifecycle:archive": Act(Action.ARCHIVE, "archive", draft, step(lifecycle.archive)),
    "studies/services/copying:restore_archived": Act(
        Action.ARCHIVE, "restore", archived, step(copying.restore_archived)
    ),
    "studies/services/copying:delete_or_archive_draft": Act(
        Action.ARCHIVE, "delete draft", draft, step(copying.delete_or_archive_draft), may_repeat=True
    ),
    "studies/services/copying:clone_study": Act(
        Action.CLONE, "clone", draft, step(copying.clone_study), may_repeat=True
    ),
    "studies/services/drafts:record_edit_and_raise_version, texts removed": Act(
        Action.EDIT, "edit", draft, step(copying.remove_texts), may_repeat=True
    ),
    "studies/services/drafts:record_edit_and_raise_version, a system removed": Act(
        Action.EDIT,
        "edit",
        draft,
        lambda w, by: copying.remove_system(w.study, by, w.study.systems.get(name="alpha")),
        may_repeat=True,
    ),
    "studies/imports/preparation:prepare_stimuli_and_delete_dropped_prompts": Act(
        Action.EDIT,
        "prepare stimuli",
        draft,
        lambda w, by: prepare_stimuli_and_delete_dropped_prompts(
            w.study, {"length": {"manner": "characters", "limit": 60}}, by=by
        ),
        lambda w, by: prepare_stimuli_and_delete_dropped_prompts(w.study, {}, by=by),
        spoil=launch_it,
    ),
    "studies/imports/tables/run:import_stimuli_file": Act(
        Action.EDIT,
        "import",
        with_file,
        lambda w, by: import_stimuli_file(w.study, w.path, options=Options(), by=by),
        spoil=launch_it,
    ),
    "studies/services/jobs:request_cancel": Act(
        Action.CANCEL, "cancel job", asked, lambda w, by: jobs.request_cancel(w.job, by), may_repeat=True
    ),
    "analysis/forms/answers:save_answers": Act(
        Action.ANALYSE,
        "answer questions of forms",
        draft,
        lambda w, by: save_answers(w.study, {"ethics": "The board of Graz."}, by),
        may_repeat=True,
    ),
    "analysis/api/stimuli:create_missing_rows": Act(
        Action.EDIT,
        "add systems",
        draft,
        lambda w, by: stimuli.create_missing_rows(w.study, stimuli.SystemSerializer, [{"name": "delta"}], by),
        may_repeat=True,
    ),
}

# What asks for a job, or plays: no line in the log is its own.
ASKED = {
    "request a launch": (Action.LAUNCH, draft, lambda w, by: lifecycle.request_launch(w.study, by)),
    "request an analysis": (Action.ANALYSE, launched, lambda w, by: request_analysis(w.study, by, {})),
    "request an export": (
        Action.ANALYSE,
        launched,
        lambda w, by: request_export(w.study, by=by, table="items", format="parquet"),
    ),
    "try a draft": (Action.EDIT, draft, lambda w, by: start_test_run(w.study, by)),
    "clear test runs": (Action.EDIT, draft, lambda w, by: drafts.delete_test_runs(w.study.pk, by)),
    "delete test runs": (Action.EDIT, draft, lambda w, by: delete_test_runs(w.study, by)),
}
