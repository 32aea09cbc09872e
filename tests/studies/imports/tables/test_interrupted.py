"""An import of stimuli writes in short transactions. Whatever stops it, the draft ends as it was, or with the whole file."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from analysis.api.stimuli import PromptSerializer, create_missing_rows
from annotators.places.batch_plan import start_test_run
from studies.imports.tables import Options, StudyChanged, import_stimuli_file, run, writing
from studies.imports.tables.run import KIND
from studies.models import AuditEvent, Job, Prompt, Study
from studies.services import drafts, jobs, lifecycle
from tests.builders import add_spa, user
from tests.studies.imports.files import contents, lines, rows_of, sound, wide

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]

# In the study before.
EARLIER = [wide("r1", "p1", ada="A1", bo="B1"), wide("r1", "p2", ada="A2", bo="B2")]
# Then r1 has other outputs and another prompt, p1 has another text, and there is a new system.
FILE = [
    wide("r1", "p1", ada="A1 anew", bo="B1", cy="C1") | {"prompt_text": "Another text"},
    *[wide("r1", f"q{n}", ada=f"A{n}", bo=f"B{n}", cy=f"C{n}") for n in range(3)],
    *[wide("r2", f"q{n}", ada=f"A{n}", bo=f"B{n}", cy=f"C{n}") for n in range(3, 9)],
]
OPTIONS = {"makes_batches": True, "creates_systems": True, "replaces_changed": True}


@pytest.fixture
def draft(study, put) -> Callable[[], Study]:
    def made() -> Study:
        draft = drafts.create_draft_with_default_arm(Study(title="A draft"), user("ola", is_superuser=True))
        for name in ("ada", "bo"):
            draft.systems.create(name=name)
        add_spa(draft, m=2)
        sound(put(lines(EARLIER), "earlier.jsonl", into=draft, makes_batches=True))
        return draft

    return made


@pytest.fixture
def imports(put) -> Callable[[Study], object]:
    return lambda study: put(lines(FILE), "file.jsonl", into=Study.objects.get(pk=study.pk), **OPTIONS)


@pytest.fixture
def after_each_turn(monkeypatch) -> Callable[[Callable[[int], object]], None]:
    """Call a function after each transaction of the import, with the transaction's number."""
    monkeypatch.setattr(writing, "CHUNK", 4)

    def calls(function: Callable[[int], object]) -> None:
        turns = iter(range(1000))
        monkeypatch.setattr(writing, "let_others_write", lambda seconds: function(next(turns)))

    return calls


def state(study: Study) -> tuple:
    study = Study.objects.get(pk=study.pk)
    return (*rows_of(study), study.version, study.audit_events.count())


def comparable(study: Study) -> tuple:
    """Like ``rows_of``, but without hashes of ids, which differ between studies."""
    systems, prompts, outputs, items, batches, places = rows_of(study)
    return systems, prompts, outputs, [number for number, _ in items], batches, places, contents(study)


def unfinished() -> bool:
    return Job.objects.filter(arguments__has_key=lifecycle.UNFINISHED).exists()


class Killed(BaseException):
    """What no code of the product catches to go on."""


def kill_at(turn: int, after_each_turn, monkeypatch, runs: Callable[[], object]) -> bool:
    """Run until after a transaction, then leave everything as a killed process does. Return False if the import ended before."""

    def kill(now: int) -> None:
        if now == turn:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(run, "remove_unfinished_stimuli", lambda study, job: None)
        after_each_turn(kill)
        try:
            runs()
        except Killed:
            Job.objects.filter(kind=KIND).exclude(state="done").update(
                state="running", holder="dead", ended_at=None, leased_until=timezone.now() - timedelta(seconds=1)
            )
            return True
        finally:
            after_each_turn(lambda now: None)
    return False


@pytest.fixture
def wanted(draft, imports) -> tuple:
    study = draft()
    imports(study)
    return comparable(study)


def test_a_killed_import_is_removed_or_done_again(draft, imports, after_each_turn, monkeypatch, wanted):
    turn = n_partly = 0
    while True:
        study = draft()
        before = state(study)
        if not kill_at(turn, after_each_turn, monkeypatch, lambda study=study: imports(study)):
            break
        if comparable(study) == wanted:  # killed after the last transaction: all is there, and the job is done
            jobs.requeue_or_fail_expired_jobs()
            jobs.run_waiting_jobs()
            assert Job.objects.filter(study=study).order_by("pk").last().state == "done"
        elif turn % 2:
            n_partly += state(study) != before
            assert imports(study).is_written  # by hand, before anybody has removed the rest
        else:
            n_partly += state(study) != before
            jobs.requeue_or_fail_expired_jobs()
            jobs.run_waiting_jobs()
            assert state(study) == before
            assert "ended early. Nothing is stored" in Job.objects.get(study=study, state="failed").error
            imports(study)
        assert comparable(study) == wanted and not unfinished()
        turn += 1
    assert n_partly > 10


def test_a_killed_job_is_done_again_by_its_next_run(draft, after_each_turn, monkeypatch, settings, tmp_path, wanted):
    settings.UPLOADS_ROOT = tmp_path / "uploads"
    monkeypatch.setattr(run, "SMALL_BYTES", 0)
    by = user("ola")
    for turn in (0, 1, 5, 9, 12, 17, 18, 19, 20):
        study = draft()
        how = {"study_id": study.pk, "user_id": by.pk, "options": Options(**OPTIONS).as_json()}
        upload = run.store_upload([lines(FILE)], "file.jsonl", **how)
        run.process_or_queue_upload(study, upload, by, is_confirmed=False)
        jobs.run_waiting_jobs()
        upload = run.get_upload(upload.token, study.pk)
        job = run.process_or_queue_upload(study, upload, by, is_confirmed=True)
        was_killed = kill_at(turn, after_each_turn, monkeypatch, lambda job=job: jobs.claim_and_run_job(job.pk))
        jobs.requeue_or_fail_expired_jobs()
        jobs.run_waiting_jobs()
        job.refresh_from_db()
        assert (job.state, job.attempts, job.result["is_written"]) == ("done", 1 + was_killed, True)
        assert comparable(study) == wanted and not unfinished()
        assert study.audit_events.filter(verb="import").count() == 2


@pytest.mark.parametrize("turn", [0, 1, 6, 12, 17])
def test_a_cancelled_import_leaves_nothing(draft, imports, after_each_turn, turn):
    study = draft()
    before = state(study)
    after_each_turn(lambda now: now == turn and jobs.request_cancel(Job.objects.get(kind=KIND, state="running"), None))
    with pytest.raises(jobs.Cancelled):
        imports(study)
    assert state(study)[:-1] == before[:-1] and not unfinished()
    assert Job.objects.filter(kind=KIND, state="cancelled").count() == 1


@pytest.mark.parametrize("turn", [0, 6, 12])
def test_an_edit_of_the_draft_between_two_chunks_ends_the_import(draft, imports, after_each_turn, turn):
    study = draft()
    before = rows_of(study)

    def edits(now: int) -> None:
        if now == turn:
            drafts.update_draft(Study.objects.get(pk=study.pk), user("ola"), {"title": "Another"})

    after_each_turn(edits)
    with pytest.raises(StudyChanged, match="while the file was being read"):
        imports(study)
    assert rows_of(study) == before and not unfinished()
    after_each_turn(lambda now: None)
    assert imports(study).is_written


def test_what_would_break_an_import_is_refused_while_it_writes(draft, imports, after_each_turn, wanted, tmp_path):
    study, refused = draft(), []
    other = tmp_path / "other.csv"
    other.write_text("prompt_key,system,text\nnew,ada,More.\n")

    def tries(now: int) -> None:
        if now != 6:
            return
        draft = Study.objects.get(pk=study.pk)
        for act in (
            lambda: import_stimuli_file(draft, other, options=Options(), by=user("ola")),
            lambda: create_missing_rows(draft, PromptSerializer, [{"key": "x", "text": "A text"}], user("ola")),
            lambda: start_test_run(draft, user("ola")),
            lambda: drafts.delete_section_and_test_runs(draft.sections.get(), user("ola")),
            lambda: lifecycle.launch(draft, user("ola"), ["*"]),
        ):
            with pytest.raises(lifecycle.ActionRefused) as refusal:
                act()
            refused.append(str(refusal.value))

    after_each_turn(tries)
    imports(study)
    assert len(refused) == 5 and comparable(study) == wanted
    assert all("is being imported into this study" in words for words in refused[:4])


def test_rows_that_a_killed_import_left_are_nobody_elses(draft, imports, after_each_turn, monkeypatch):
    study = draft()
    before = state(study)
    assert kill_at(6, after_each_turn, monkeypatch, lambda: imports(study))
    with pytest.raises(lifecycle.ActionRefused, match="is being imported"):
        create_missing_rows(study, PromptSerializer, [{"key": "x", "text": "A text"}], None)
    Job.objects.filter(kind=KIND, state="running").update(state="failed", leased_until=None, ended_at=timezone.now())
    assert run.remove_unfinished_imports_of_stimuli() == 1 and state(study) == before
    assert create_missing_rows(study, PromptSerializer, [{"key": "x", "text": "A text"}], None) == (1, 0)
    assert run.remove_unfinished_imports_of_stimuli() == 0 and study.prompts.filter(key="x").exists()


def test_a_process_that_lost_its_lease_writes_and_removes_nothing_more(draft, imports, after_each_turn):
    study, stored = draft(), []

    def loses(now: int) -> None:
        if now == 8:
            Job.objects.filter(kind=KIND, state="running").update(holder="another process")
            stored.append(state(study))

    after_each_turn(loses)
    with pytest.raises(jobs.LeaseLost):
        imports(study)
    assert stored == [state(study)]


def test_no_transaction_writes_more_than_a_chunk(draft, imports, after_each_turn):
    study, sizes = draft(), []
    after_each_turn(lambda now: sizes.append(sum(map(len, rows_of(study)[1:]))))
    imports(study)
    grown = [later - earlier for earlier, later in zip(sizes, sizes[1:], strict=False)]
    # The last transaction also replaces the earlier batch: four items and places instead of two.
    assert max(grown[:-1]) == 4 and grown[-1] == 2 + 2


def test_a_stopped_command_stores_nothing_and_says_so(after_each_turn, tmp_path, capsys):
    path = tmp_path / "stories.jsonl"
    path.write_bytes(lines({name: row[name] for name in row if name != "batch"} for row in FILE[1:]))

    def stops(now: int) -> None:
        if now == 5:
            assert Prompt.objects.exists()
            raise KeyboardInterrupt

    owner = user("ola", is_superuser=True)
    after_each_turn(stops)
    with pytest.raises(CommandError, match="was stopped. The study keeps nothing of the file") as stopped:
        call_command("import_study", "new", str(path), "--owner", owner.username, "--create-systems")
    assert stopped.value.returncode == 130
    assert not Prompt.objects.exists() and not unfinished() and not Study.objects.exists()
    assert Job.objects.get(kind=KIND).state == "cancelled"


def test_a_killed_import_into_a_new_study_leaves_no_study(after_each_turn, monkeypatch, tmp_path):
    path = tmp_path / "stories.jsonl"
    path.write_bytes(lines({name: row[name] for name in row if name != "batch"} for row in FILE[1:]))
    how = {"options": Options(creates_systems=True), "by": user("ola", is_superuser=True)}
    turn = 0
    while kill_at(turn, after_each_turn, monkeypatch, lambda: import_stimuli_file(Study(title="New"), path, **how)):
        was_written = Job.objects.filter(kind=KIND).latest("pk").result is not None
        assert Study.objects.count() == 1
        jobs.requeue_or_fail_expired_jobs()
        jobs.run_waiting_jobs()
        assert Study.objects.exists() == was_written and not unfinished()
        if was_written:
            break
        assert "ended early. Nothing is stored" in Job.objects.filter(kind=KIND).latest("pk").error
        turn += 1
    assert turn > 5
    deleted = AuditEvent.objects.filter(verb="delete draft", data__title="New")
    assert (deleted.count(), AuditEvent.objects.filter(verb="import").count()) == (turn, 1)


def test_a_new_study_that_somebody_has_changed_is_kept(after_each_turn, tmp_path):
    path = tmp_path / "stories.jsonl"
    path.write_bytes(lines({name: row[name] for name in row if name != "batch"} for row in FILE[1:]))

    def edits(now: int) -> None:
        if now == 5:
            drafts.update_draft(Study.objects.get(), user("ola"), {"title": "Another"})

    owner = user("ola", is_superuser=True)
    after_each_turn(edits)
    with pytest.raises(StudyChanged):
        import_stimuli_file(Study(title="New"), path, options=Options(creates_systems=True), by=owner)
    assert Study.objects.get().title == "Another" and not Prompt.objects.exists() and not unfinished()


def test_progress_counts_what_is_written(draft, after_each_turn, tmp_path):
    study, seen = draft(), []
    path = tmp_path / "file.jsonl"
    path.write_bytes(lines(FILE))
    after_each_turn(lambda now: seen.append(study.jobs.values_list("done", "total").latest("pk")))
    import_stimuli_file(study, path, options=Options(**OPTIONS), by=None)
    # Nine prompts and the outputs of three systems for ten, but for the one that the study has, and a prompt's new text.
    assert {total for _, total in seen} == {9 + 30 - 1 + 1} and seen[-1][0] == 9 + 30 - 1
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
