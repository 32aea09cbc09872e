"""An import writes in short transactions. Until the last one nobody sees its answers, and nothing of a stopped import stays."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from analysis.data.exports import TABLES, csv_blocks
from analysis.data.flat_rows import Selection
from analysis.report.build import build_report, default_origins
from annotators.counting import counted_origins
from annotators.imports import import_answers_and_close_draft, run, writing
from annotators.imports.writing import remove_unfinished_imports
from annotators.models import Annotator, Assignment, Response
from annotators.places.batch_plan import start_test_run
from annotators.places.monitor import progress_by_study
from studies.imports.tables import Options, StudyChanged, import_stimuli_file
from studies.imports.tables import run as table_run
from studies.imports.tables import writing as stimuli_writing
from studies.imports.tables.run import KIND
from studies.models import Batch, Exposure, Item, Job, Placement, Study
from studies.services import drafts, jobs, lifecycle
from tests.builders import add_choice, draft_study, user

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]

HEAD = "annotator,prompt_key,shown:A,shown:B,chosen,time\n"
STORED = (Response, Assignment, Placement, Batch, Exposure, Item, Annotator)
# Of each person eight answers, so that a chunk of four rows cuts people in the middle.
PEOPLE, PROMPTS = 3, 8


def choice_draft() -> Study:
    study = draft_study(systems=("alpha", "beta"), owner=user(), consent="", contact="")
    add_choice(study, strategy="any", stopping="none")
    return study


def again(study: Study) -> Study:
    return Study.objects.get(pk=study.pk)


def answers_file(tmp_path: Path, people=range(PEOPLE), name="answers.csv") -> Path:
    rows = [
        f"w{person},p{prompt:03},alpha,beta,{('alpha', 'beta')[(person + prompt) % 2]},2021-05-{17 + person}T15:{prompt:02}:00Z\n"
        for person in people
        for prompt in range(PROMPTS)
    ]
    path = tmp_path / name
    path.write_text(HEAD + "".join(rows))
    return path


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(writing, "CHUNK", 4)
    monkeypatch.setattr(stimuli_writing, "CHUNK", 4)
    monkeypatch.setattr(run, "ROWS_IN_MEMORY", 5)


@pytest.fixture
def after_each_turn(monkeypatch, small_chunks) -> Callable[[Callable[[int], None]], None]:
    """Call a function after each transaction of the import, with the transaction's number."""

    def calls(function: Callable[[int], None]) -> None:
        turns = iter(range(1000))
        monkeypatch.setattr(stimuli_writing, "let_others_write", lambda seconds: function(next(turns)))

    return calls


def addresses_of(study: Study) -> list[str]:
    """Every address that needs nothing but a study, by its id or code."""
    found = []

    def walk(patterns, path: str) -> None:
        for pattern in patterns:
            here = path + str(pattern.pattern).lstrip("^").rstrip("$")
            if isinstance(pattern, URLResolver):
                walk(pattern.url_patterns, here)
            elif isinstance(pattern, URLPattern):
                is_study = not here.startswith("admin/") or here.startswith("admin/studies/study/")
                values = {"code": study.code} | ({"pk": study.pk, "object_id": study.pk} if is_study else {})
                filled = re.sub(
                    r"<(?:\w+:)?(\w+)>", lambda name, values=values: str(values.get(name[1], name[0])), here
                )
                if filled != here and "<" not in filled and "(" not in filled:
                    found.append(f"/{filled}")

    walk(get_resolver().url_patterns, "")
    lists = [reverse(f"admin:{name}", args=[study.pk]) for name in ("annotators_collecting", "annotators_test_run")]
    lists += [
        f"{reverse(f'admin:{name}_changelist')}?study={study.pk}"
        for name in ("annotators_assignment", "annotators_recruitment")
    ]
    # Of messages that a program reads, the study's log gets a line.
    others = ("job", "archive", "inquiries")
    return [address for address in found if not any(one in address for one in others)] + lists


def seen(study: Study, client: Client) -> dict[str, object]:
    """What exports, pages, REST and analyses say of a study."""
    everything: dict[str, object] = {}
    for address in addresses_of(study):
        answer = client.get(address, headers={"Accept": "application/json"} if address.startswith("/api") else {})
        content = b"".join(answer.streaming_content) if answer.streaming else answer.content
        text = re.sub(
            r'nonce="[^"]*"|name="(csrfmiddlewaretoken|token)" value="[^"]*"', "", content.decode(errors="replace")
        )
        everything[address] = (answer.status_code, text)
    for table in TABLES:
        for withdrawn in (False, True):
            everything[f"{table} {withdrawn}"] = b"".join(
                csv_blocks(table, Selection(study, ("live", "robot", "imported", "test"), withdrawn))
            )
    everything["origins"] = (counted_origins(study), default_origins(study))
    if not study.is_draft:
        everything["report"] = build_report(study, {"resamples": 99})["n"]
    return everything


def counts() -> dict[str, int]:
    return {model.__name__: model.objects.count() for model in STORED}


@pytest.mark.slow
@pytest.mark.parametrize("is_closed", [False, True])
def test_nobody_sees_an_answer_before_the_last_transaction(tmp_path, after_each_turn, client, monkeypatch, is_closed):
    monkeypatch.setattr("analysis.api.permissions.requests_per_minute", lambda scope: 100_000)
    study = choice_draft()
    if is_closed:
        import_answers_and_close_draft(study, answers_file(tmp_path, [7], "earlier.csv"), by=user())
        study = again(study)
    client.force_login(user("root", is_superuser=True))
    n_earlier = Response.objects.count()
    looks: dict[int, dict[str, object]] = {}

    def look(turn: int) -> None:
        n = Response.objects.count() - n_earlier
        if n in (
            0,
            4,
            PEOPLE * PROMPTS,
        ):  # the first of several steps with this number: nothing, half a person, everything
            looks[n] = looks.get(n) or seen(again(study), client)

    after_each_turn(look)
    import_answers_and_close_draft(study, answers_file(tmp_path), by=user())
    first, *others = looks.values()
    assert len(others) == 2
    for later in others:
        assert [name for name in first if later[name] != first[name]] == []
    # In the end all are seen.
    assert comparable(again(study)).count(b"\n") == (PEOPLE + is_closed) * PROMPTS


class Killed(BaseException):
    """What no code of the product catches to go on."""


def first_and_next_run(after_each_turn, monkeypatch, killed_at: int, runs: Callable[[], object]) -> bool:
    """Run until a transaction, then leave everything as a killed process does. Return False if the import ended before."""

    def kill(turn: int) -> None:
        if turn == killed_at:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(run, "remove_unfinished_import", lambda study, job: None)
        after_each_turn(kill)
        try:
            runs()
        except Killed:
            Job.objects.filter(kind=KIND).exclude(state="done").update(
                state="running", holder="dead", ended_at=None, leased_until=timezone.now() - timedelta(seconds=1)
            )
            return True
        finally:
            after_each_turn(lambda turn: None)
    return False


def visible_state(study: Study) -> list[object]:
    """A short look: what counts."""
    origins = ("live", "robot", "imported", "test")
    # The other tables are computed from the report's data, which take seconds; the slow test compares them.
    streamed = [name for name, table in TABLES.items() if table.is_streamed]
    tables = [b"".join(csv_blocks(table, Selection(study, origins, True))) for table in streamed]
    progress = progress_by_study([study.pk]).get(study.pk)
    return [*tables, counted_origins(study), default_origins(study), progress, study.state, study.designs.count()]


def expected_export(tmp_path: Path) -> bytes:
    study = choice_draft()
    import_answers_and_close_draft(study, answers_file(tmp_path, name="whole.csv"), by=user())
    return comparable(study)


def comparable(study: Study) -> bytes:
    """The exported answers without the names that each study gives to people."""
    rows = [line.split(",") for line in b"".join(csv_blocks("responses", Selection(study))).decode().splitlines()]
    left_out = {rows[0].index("assignment"), rows[0].index("annotator")}
    return "\n".join(",".join(cell for n, cell in enumerate(row) if n not in left_out) for row in rows).encode()


@pytest.mark.parametrize("is_closed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_killed_import_counts_for_nothing_and_is_removed_or_done_again(
    tmp_path, after_each_turn, monkeypatch, is_closed
):
    wanted, killed_at, n_killed = expected_export(tmp_path), 0, 0
    while True:
        study = choice_draft()
        if is_closed:
            import_answers_and_close_draft(study, answers_file(tmp_path, [9], "earlier.csv"), by=user())
            study = again(study)
        before, rows = visible_state(study), counts()

        def runs(study=study):
            return import_answers_and_close_draft(study, answers_file(tmp_path), by=user())

        if not first_and_next_run(after_each_turn, monkeypatch, killed_at, runs):
            break
        study = again(study)
        if (
            study.designs.count() > before[-1]
            or Job.objects.filter(study=study, result__isnull=False).count() > is_closed
        ):
            killed_at += 1  # killed after the last transaction: all is there, and the job is done
            jobs.requeue_or_fail_expired_jobs()
            jobs.run_waiting_jobs()
            assert set(study.jobs.values_list("state", flat=True)) == {"done"}
            continue
        assert visible_state(study) == before
        n_killed += counts() != rows
        if killed_at % 2:
            runs()  # by hand, before anybody has removed the rest
            assert is_closed or comparable(again(study)) == wanted
            assert again(study).assignments.filter(origin="imported").count() == PEOPLE + is_closed
        jobs.requeue_or_fail_expired_jobs()
        jobs.run_waiting_jobs()
        remove_unfinished_imports()
        failed = study.jobs.get(state="failed")
        assert "ended early. Nothing is stored" in failed.error
        if not killed_at % 2:
            assert (counts(), visible_state(again(study))) == (rows, before)
        killed_at += 1
    assert n_killed > 10


def test_a_killed_job_is_done_again_by_its_next_run(tmp_path, after_each_turn, monkeypatch, settings):
    settings.UPLOADS_ROOT = tmp_path / "uploads"
    monkeypatch.setattr(table_run, "SMALL_BYTES", 0)
    wanted, by = expected_export(tmp_path), user()
    for killed_at in (0, 3, 9, 14, 20):
        study = choice_draft()
        data = answers_file(tmp_path).read_bytes()
        upload = table_run.store_upload([data], "a.csv", study_id=study.pk, user_id=by.pk, options={}, kind="answers")
        table_run.process_or_queue_upload(study, upload, by, is_confirmed=False)
        jobs.run_waiting_jobs()
        upload = table_run.get_upload(upload.token, study.pk)
        job = table_run.process_or_queue_upload(study, upload, by, is_confirmed=True)
        assert first_and_next_run(
            after_each_turn, monkeypatch, killed_at, lambda job=job: jobs.claim_and_run_job(job.pk)
        )
        # A second process meets the first one's lease, and edits are refused until it has expired.
        jobs.requeue_or_fail_expired_jobs()
        jobs.run_waiting_jobs()
        job.refresh_from_db()
        assert (job.state, job.attempts, job.result["is_written"]) == ("done", 2, True)
        assert comparable(again(study)) == wanted
        assert study.audit_events.filter(verb="import answers").count() == 1


@pytest.mark.parametrize("turn", [0, 4, 12, 18])
def test_a_cancelled_import_leaves_nothing(tmp_path, after_each_turn, turn):
    study = choice_draft()
    before, rows = visible_state(study), counts()

    def cancels(now: int) -> None:
        if now == turn:
            jobs.request_cancel(Job.objects.get(kind=KIND), user())

    after_each_turn(cancels)
    with pytest.raises(jobs.Cancelled):
        import_answers_and_close_draft(study, answers_file(tmp_path), by=user())
    assert (counts(), visible_state(again(study))) == (rows, before)
    assert Job.objects.get(kind=KIND).state == "cancelled"


@pytest.mark.parametrize("turn", [0, 4, 12])
def test_an_edit_of_the_draft_between_two_chunks_ends_the_import(tmp_path, after_each_turn, turn):
    study = choice_draft()
    rows = counts()
    after_each_turn(lambda now: now == turn and drafts.update_draft(again(study), user(), {"title": "Another"}))
    with pytest.raises(StudyChanged, match="while the file was being read"):
        import_answers_and_close_draft(study, answers_file(tmp_path), by=user())
    assert (counts(), again(study).is_draft, again(study).title) == (rows, True, "Another")
    after_each_turn(lambda now: None)
    assert import_answers_and_close_draft(again(study), answers_file(tmp_path), by=user()).is_written


def test_what_would_break_an_import_is_refused_while_it_writes(tmp_path, after_each_turn):
    study, refused = choice_draft(), []
    other = tmp_path / "more.csv"
    other.write_text("prompt_key,system,text\nnew,alpha,More.\n")
    section = study.sections.get()

    def tries(turn: int) -> None:
        if turn != 12:
            return
        for act in (
            lambda: import_answers_and_close_draft(again(study), answers_file(tmp_path, [8], "b.csv"), by=user()),
            lambda: import_stimuli_file(again(study), other, options=Options(), by=user()),
            lambda: start_test_run(again(study), user()),
            lambda: drafts.delete_section_and_test_runs(section, user()),
        ):
            with pytest.raises(lifecycle.ActionRefused) as refusal:
                act()
            refused.append(str(refusal.value))

    after_each_turn(tries)
    assert import_answers_and_close_draft(study, answers_file(tmp_path), by=user()).is_written
    assert len(refused) == 4 and all("is being imported into this study" in words for words in refused)
    assert comparable(again(study)) == expected_export(tmp_path)


def test_a_process_that_lost_its_lease_writes_and_removes_nothing_more(tmp_path, after_each_turn):
    study, stored = choice_draft(), []

    def loses(turn: int) -> None:
        if turn == 12:
            Job.objects.filter(kind=KIND).update(holder="another process")
            stored.append(counts())

    after_each_turn(loses)
    with pytest.raises(jobs.LeaseLost):
        import_answers_and_close_draft(study, answers_file(tmp_path), by=user())
    assert stored == [counts()]


def test_no_transaction_writes_more_than_a_chunk(tmp_path, after_each_turn):
    study, sizes = choice_draft(), [counts()]
    after_each_turn(lambda turn: sizes.append(counts()))
    import_answers_and_close_draft(study, answers_file(tmp_path), by=user())
    grown = [sum(later.values()) - sum(earlier.values()) for earlier, later in zip(sizes, sizes[1:], strict=False)]
    # Four answers or places; or one item with two exposures; or one person with a batch and an assignment.
    assert max(grown) == writing.CHUNK and sum(grown) == PEOPLE * (PROMPTS * 2 + 3) + PROMPTS * 3


def test_a_file_ten_times_too_large_is_refused_with_one_message(tmp_path, monkeypatch, small_chunks):
    monkeypatch.setattr(run, "MAX_ROWS", 3)
    study = choice_draft()
    rows = counts()
    report = import_answers_and_close_draft(study, answers_file(tmp_path), by=user())
    assert report.problems.count == 1 and "3" in str(report.problems.first[0]) and not report.is_written
    assert counts() == rows and again(study).is_draft


def test_a_person_who_withdraws_meanwhile_ends_the_import(tmp_path, after_each_turn):
    study = choice_draft()
    import_answers_and_close_draft(study, answers_file(tmp_path, [0], "earlier.csv"), by=user())
    study = again(study)
    before = counts()
    assignment = study.assignments.get()
    after_each_turn(
        lambda turn: turn == 3 and Assignment.objects.filter(pk=assignment.pk).update(withdrawn_at=timezone.now())
    )
    with pytest.raises(StudyChanged):
        import_answers_and_close_draft(study, answers_file(tmp_path), by=user())
    assert counts() == before
