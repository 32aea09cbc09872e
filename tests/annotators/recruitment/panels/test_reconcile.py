"""What a panel shows beside what we know: each row of the table, twice, and nothing lost."""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotators import tasks
from annotators.models import Annotator, Assignment, PanelSubmission, PanelTask, Response
from annotators.models.constants import APPROVED, EXPIRED, REJECTED, RETURNED, SCREENED_OUT, SUBMITTED, UNKNOWN, WORKING
from annotators.models.identity import get_person_id
from annotators.pay import ledger
from annotators.places import assign
from annotators.places.places import compute_receipt
from annotators.recruitment.panels import PanelBusy, RequestRefused, ResultUnclear, SubmissionSnapshot, sync
from annotators.recruitment.panels.http_client import store_or_delete_secrets
from annotators.recruitment.panels.reconcile import (
    MATCH_STATUSES,
    NEEDS_REVIEW,
    count_submissions_and_missing_by_status,
    finished_assignments_missing_at_panel,
    import_submissions_and_release_places,
    is_same_receipt,
    submissions_with_match_status,
)
from annotators.recruitment.panels.sync import (
    PanelUnavailable,
    recruitments_to_sync,
    schedule_all_syncs,
    send_orders_and_sync_panel,
)
from studies.models import Batch, Job
from studies.services import jobs
from tests.annotators.recruitment.pretend import Pretend, recruitment_of, speaks
from tests.builders import spa_study, user
from tests.players import claimed, submitted

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
NOW = timezone.now()


@pytest.fixture
def recruitment():
    return recruitment_of(spa_study(user("owner"), target_n=12))


def came(recruitment, person, submission=None, finishes=True) -> Assignment:
    """A person of the panel who came with the panel's id, and finished or not."""
    ids = {"person": person} | ({"session": submission} if submission else {})
    if not finishes:
        return claimed(recruitment.study, person, recruitment, external_ids=ids)
    return submitted(recruitment.study, person, recruitment=recruitment, external_ids=ids)


def long_ago(assignment):
    before = timezone.now() - timedelta(hours=2)
    Assignment.objects.filter(pk=assignment.pk).update(
        claimed_at=before, started_at=before, submitted_at=before + timedelta(minutes=10)
    )


def shown(person, submission, state=SUBMITTED, **more) -> SubmissionSnapshot:
    return SubmissionSnapshot("T", submission, person, state, word=state.upper(), **more)


def standing(recruitment) -> dict:
    return dict(submissions_with_match_status(recruitment).values_list("external_id", "standing"))


def test_who_gave_back_took_it_again_and_sent_it_is_no_riddle(recruitment):
    mine = came(recruitment, "ada", "S-1", finishes=False)
    import_submissions_and_release_places(recruitment, [shown("ada", "S-1", RETURNED)], "service")
    assign.revive_assignment(mine.pk)
    Assignment.objects.filter(pk=mine.pk).update(external_ids={"session": "S-2"}, started_at=NOW, submitted_at=NOW)
    import_submissions_and_release_places(recruitment, [shown("ada", "S-1", RETURNED)], "service")
    assert standing(recruitment) == {"S-1": "left_after_work"}
    import_submissions_and_release_places(recruitment, [shown("ada", "S-1", RETURNED), shown("ada", "S-2")], "service")
    assert standing(recruitment) == {"S-1": "left", "S-2": "matched"}


@pytest.mark.slow
def test_each_row_of_the_table_and_the_second_look_changes_nothing(recruitment):
    people = {name: came(recruitment, name, f"S-{name}") for name in ("sent", "paid", "gone", "auto", "refused")}
    begun = {name: came(recruitment, name, f"S-{name}", finishes=False) for name in ("half", "back", "late", "at it")}
    assign.release_assignment(begun["late"].pk, "expired")
    look = [
        shown("sent", "S-sent", code=compute_receipt(people["sent"].code)),
        shown("paid", "S-paid", APPROVED, decided_at=NOW),
        shown("auto", "S-auto", APPROVED),
        shown("refused", "S-refused", REJECTED),
        shown("gone", "S-gone", RETURNED),
        shown("half", "S-half"),
        shown("back", "S-back", RETURNED),
        shown("late", "S-late", EXPIRED),
        shown("at it", "S-at it", WORKING),
        shown("stranger", "S-stranger"),
        shown("odd", "S-odd", UNKNOWN),
        shown("other", "S-other", SCREENED_OUT),
    ]
    summary = import_submissions_and_release_places(recruitment, look, "service")
    assert standing(recruitment) == {
        "S-sent": "matched", "S-paid": "decided", "S-auto": "decided", "S-refused": "decided", "S-gone": "left_after_work",
        "S-half": "orphan", "S-back": "left", "S-late": "left", "S-at it": "working", "S-stranger": "unknown",
        "S-odd": "unreadable", "S-other": "left",
    }  # fmt: skip
    assert (summary.seen, summary.new, summary.linked, summary.confirmed, summary.released) == (12, 12, 9, 4, 1)
    assert summary.classes == count_submissions_and_missing_by_status(recruitment) and set(summary.classes) <= set(
        MATCH_STATUSES
    )
    for name in ("sent", "paid", "auto", "refused"):
        assert Assignment.objects.get(pk=people[name].pk).trust == "confirmed"
    back = Assignment.objects.get(pk=begun["back"].pk)
    assert back.released_reason == "returned" and back.batch.claimed == 0
    # What was answered stays, and a panel that knows a person is no reason to change what we know.
    assert Response.objects.filter(assignment=people["gone"]).exists()
    assert Assignment.objects.get(pk=people["gone"].pk).released_at is None
    assert Assignment.objects.get(pk=begun["at it"].pk).released_at is None
    before = list(PanelSubmission.objects.order_by("pk").values())
    again = import_submissions_and_release_places(recruitment, look, "service")
    assert (again.seen, again.new, again.changed, again.linked, again.confirmed, again.released) == (12, 0, 0, 0, 0, 0)
    assert list(PanelSubmission.objects.order_by("pk").values()) == before
    assert Batch.objects.filter(study=recruitment.study).count() and tasks.log_miscounted_batches() == 0


def test_a_rehearsal_says_what_would_change_and_changes_nothing(recruitment):
    came(recruitment, "W", "S1")
    back = came(recruitment, "V", "S2", finishes=False)
    look = [shown("W", "S1"), shown("V", "S2", RETURNED), shown("X", "S3")]
    summary = import_submissions_and_release_places(recruitment, look, "service", dry_run=True)
    assert (summary.new, summary.linked, summary.confirmed, summary.released) == (3, 2, 1, 1)
    assert summary.classes == {"matched": 1, "left": 1, "unknown": 1}
    assert not PanelSubmission.objects.exists() and not PanelTask.objects.exists()
    assert Annotator.objects.count() == 2 and not Assignment.objects.filter(trust="confirmed").exists()
    assert Assignment.objects.get(pk=back.pk).released_at is None


def test_one_id_of_the_panel_and_two_people(recruitment):
    """MTurk gives an assignment that was returned to the next worker, under the same id."""
    first, second = came(recruitment, "first", "A1"), came(recruitment, "second", "A1")
    long_ago(first)
    import_submissions_and_release_places(recruitment, [shown("second", "A1")], "service")
    assert standing(recruitment) == {"A1": "matched"}
    assert Assignment.objects.get(pk=second.pk).trust == "confirmed"
    assert [(row.pk, word) for row, word in finished_assignments_missing_at_panel(recruitment)] == [
        (first.pk, "surplus")
    ]
    assert Assignment.objects.get(pk=first.pk).trust == "claimed"
    # Where the panel shows both, both rows stay.
    import_submissions_and_release_places(
        recruitment, [shown("first", "A1", RETURNED), shown("second", "A1")], "service"
    )
    assert (
        count_submissions_and_missing_by_status(recruitment) == {"matched": 1, "surplus": 1}
        and PanelSubmission.objects.count() == 2
    )


def test_finished_here_and_never_sent(recruitment):
    early, recent = came(recruitment, "early", "S1"), came(recruitment, "recent", "S2")
    long_ago(early)
    assert finished_assignments_missing_at_panel(recruitment) == [], (
        "without a token or a file nothing is known of the panel"
    )
    store_or_delete_secrets(recruitment, {"token": "secret-of-the-panel"}, by=None)
    assert [(row.pk, word) for row, word in finished_assignments_missing_at_panel(recruitment)] == [
        (early.pk, "unsent")
    ]
    import_submissions_and_release_places(
        recruitment, [shown("early", "S1", WORKING), shown("recent", "S2", WORKING)], "service"
    )
    assert standing(recruitment) == {"S1": "unsent", "S2": "working"}
    assert recent.pk and count_submissions_and_missing_by_status(recruitment) == {"working": 1, "unsent": 1}
    import_submissions_and_release_places(recruitment, [shown("early", "S1")], "service")
    assert standing(recruitment)["S1"] == "matched"


def test_who_returned_and_took_it_again_keeps_the_place(recruitment):
    assignment = came(recruitment, "W", "S1", finishes=False)
    assert claimed(recruitment.study, "W", recruitment, external_ids={"person": "W", "session": "S2"}) == assignment
    summary = import_submissions_and_release_places(
        recruitment, [shown("W", "S1", RETURNED), shown("W", "S2", WORKING)], "service"
    )
    assert summary.released == 0 and Assignment.objects.get(pk=assignment.pk).released_at is None
    assert PanelSubmission.objects.get(external_id="S2").assignment == assignment


@pytest.mark.parametrize("session", ["S1", None])
def test_where_no_session_tells_a_file_that_is_read_again_takes_no_place_from_who_came_again(recruitment, session):
    """A file that knows people alone says "returned" of them until the panel exports another; so does one of sessions that no link names."""
    gone = [shown("A", "A" if session else "S1", RETURNED)]
    came(recruitment, "A", session, finishes=False)
    assert import_submissions_and_release_places(recruitment, gone, "file").released == 1
    back = came(recruitment, "A", session and "S2", finishes=False)
    assert import_submissions_and_release_places(recruitment, gone, "file").released == 0
    assert Assignment.objects.get(pk=back.pk).released_reason == "" and count_submissions_and_missing_by_status(
        recruitment
    ) == {"left": 1}
    import_submissions_and_release_places(recruitment, [shown("A", "A" if session else "S1")], "file")
    assert count_submissions_and_missing_by_status(recruitment) == {"orphan": 1}


def test_people_are_found_by_their_receipt_where_the_link_had_no_id(recruitment):
    first, second = came(recruitment, "W"), came(recruitment, "V")
    typed = compute_receipt(first.code).lower().replace("-", " ")
    import_submissions_and_release_places(recruitment, [shown("W", "S1", code=typed), shown("V", "S2")], "file")
    assert PanelSubmission.objects.get(external_id="S1").assignment == first
    assert PanelSubmission.objects.get(external_id="S2").assignment == second
    assert is_same_receipt(typed, compute_receipt(first.code)) and not is_same_receipt(
        typed, compute_receipt(second.code)
    )


def test_what_one_source_leaves_out_another_has_said(recruitment):
    came(recruitment, "W", "S1")
    import_submissions_and_release_places(recruitment, [shown("W", "S1", decides_itself_at=NOW, code="ABC")], "service")
    import_submissions_and_release_places(recruitment, [SubmissionSnapshot("", "S1", "W", UNKNOWN)], "file")
    row = PanelSubmission.objects.get()
    assert (row.state, row.receipt, row.decides_itself_at, row.task.external_id) == (SUBMITTED, "ABC", NOW, "T")


def test_a_look_costs_the_same_queries_for_one_and_for_many(recruitment, django_assert_max_num_queries):
    came(recruitment, "W0", "S0")
    for n in (3, 60):
        look = [shown(f"W{i}", f"S{i}") for i in range(n)]
        with django_assert_max_num_queries(34):
            assert import_submissions_and_release_places(recruitment, look, "service").seen == n
    assert count_submissions_and_missing_by_status(recruitment) == {"matched": 1, "unknown": 59}


def test_ids_of_the_panel_go_when_the_study_is_long_over(recruitment):
    came(recruitment, "W", "S1")
    import_submissions_and_release_places(recruitment, [shown("W", "S1", APPROVED), shown("stranger", "S2")], "service")
    stranger = PanelSubmission.objects.get(external_id="S2").annotator
    assert get_person_id(stranger) == "stranger"
    # Of whom something is owed to the id would stay.
    ledger.mark_payments_paid_and_erase_withdrawn_ids(
        recruitment, ledger.recruitment_payments(recruitment).values_list("pk", flat=True), user("owner")
    )
    tasks.erase_due_person_and_panel_ids()
    assert get_person_id(stranger) == "stranger"
    from tests.annotators.closed_studies import closed_long_ago

    closed_long_ago(recruitment.study, 400)
    tasks.erase_due_person_and_panel_ids()
    assert get_person_id(stranger) is None
    ids = set(PanelSubmission.objects.values_list("external_id", flat=True))
    assert len(ids) == 2 and all(name.startswith("erased-") for name in ids)
    assert count_submissions_and_missing_by_status(recruitment) == {"decided": 1, "unknown": 1}
    tasks.erase_due_person_and_panel_ids()
    assert set(PanelSubmission.objects.values_list("external_id", flat=True)) == ids


def test_the_job_reads_the_panel_and_tells_what_it_found(recruitment, monkeypatch):
    panel = Pretend()
    speaks(monkeypatch, panel)
    PanelTask.objects.create(recruitment=recruitment, external_id="T")
    assignment = came(recruitment, "W", "S1")
    panel.shown["T"] = [shown("W", "S1"), shown("X", "S2")]
    assert schedule_all_syncs() == 0
    store_or_delete_secrets(recruitment, {"token": "secret-of-the-panel"}, by=user("owner"))
    assert schedule_all_syncs() == 1 and schedule_all_syncs() == 1
    job = Job.objects.get(kind="panel_sync")
    jobs.claim_and_run_job(job.pk)
    job.refresh_from_db()
    assert (
        job.state == "done" and job.result["confirmed"] == 1 and job.result["classes"] == {"matched": 1, "unknown": 1}
    )
    assert Assignment.objects.get(pk=assignment.pk).trust == "confirmed"


def test_a_task_that_somebody_typed_does_not_keep_the_others_from_being_read(recruitment, monkeypatch):
    """An address names the task and is not signed: one wrong word would have blinded the link for good."""

    class Strict(Pretend):
        def submissions(self, task):
            if task not in self.shown:
                raise RequestRefused("There is no such task.")
            return super().submissions(task)

    panel = Strict()

    monkeypatch.setattr(sync, "get_panel_service", lambda recruitment: panel)
    for person, task in (("W", "T"), ("X", "typed")):
        ids = {"person": person, "session": f"S-{person}", "task": task}
        submitted(recruitment.study, person, recruitment=recruitment, external_ids=ids)
    # Where nothing at all is shown, the page gives the reason: it may be the token.
    with pytest.raises(PanelUnavailable, match="no such task"):
        send_orders_and_sync_panel(recruitment, lambda *_: None)
    panel.shown["T"] = [shown("W", "S-W")]
    assert send_orders_and_sync_panel(recruitment, lambda *_: None).classes == {"matched": 1}
    # A task that the panel has shown before is never passed over in silence.
    panel.shown = {"typed": []}
    with pytest.raises(PanelUnavailable, match="no such task"):
        send_orders_and_sync_panel(recruitment, lambda *_: None)


def test_a_panel_is_watched_until_it_has_decided_and_every_order_is_sent(recruitment, monkeypatch):
    from annotators.models import PanelOrder
    from annotators.recruitment.panels.orders import get_or_create_order
    from tests.annotators.closed_studies import closed_long_ago

    speaks(monkeypatch, Pretend())
    store_or_delete_secrets(recruitment, {"token": "secret-of-the-panel"}, by=None)
    import_submissions_and_release_places(
        recruitment, [shown("W", "S1", decides_itself_at=timezone.now() + timedelta(days=6))], "service"
    )
    closed_long_ago(recruitment.study, 15)
    assert list(recruitments_to_sync()) == [recruitment]
    PanelSubmission.objects.update(decides_itself_at=timezone.now() - timedelta(days=2))
    assert not recruitments_to_sync().exists()
    get_or_create_order(
        recruitment,
        "bonus",
        "b1",
        submission=PanelSubmission.objects.get(),
        by=None,
        amount="1.00",
        currency="USD",
        reason="r",
    )
    assert list(recruitments_to_sync()) == [recruitment]
    PanelOrder.objects.update(state="done", sent_at=NOW, ended_at=NOW)
    assert not recruitments_to_sync().exists()


@pytest.mark.parametrize(
    "trouble", [RequestRefused("The token is not good."), ResultUnclear("No answer."), PanelBusy("Later.")]
)
def test_a_panel_that_falls_silent_half_way_has_shown_nothing(recruitment, trouble):
    class Falling(Pretend):
        def submissions(self, task):
            yield shown("W", "S1")
            raise trouble

    PanelTask.objects.create(recruitment=recruitment, external_id="T")
    came(recruitment, "W", "S1")

    with pytest.MonkeyPatch.context() as patched, pytest.raises(PanelUnavailable, match=str(trouble)):
        patched.setattr(sync, "get_panel_service", lambda recruitment: Falling())
        send_orders_and_sync_panel(recruitment, lambda *_: None)
    assert not PanelSubmission.objects.exists() and not Assignment.objects.filter(trust="confirmed").exists()


def test_what_needs_a_person_is_a_class_with_words():
    assert set(NEEDS_REVIEW) < set(MATCH_STATUSES) and all(
        what and MATCH_STATUSES[name][1] for name, (what, _) in MATCH_STATUSES.items() if name in NEEDS_REVIEW
    )


@pytest.mark.parametrize(
    "odd",
    [
        SubmissionSnapshot("T", "S" * 65, "W", SUBMITTED),
        SubmissionSnapshot("T", "", "W", SUBMITTED),
        SubmissionSnapshot("T", "S", "W\x00", SUBMITTED),
    ],
)
def test_ids_that_cannot_be_kept_are_refused_by_number(recruitment, odd):
    with pytest.raises(ValueError, match="Submission 2: the (submission|person)'s id"):
        import_submissions_and_release_places(recruitment, [shown("V", "S1"), odd], "file")
    assert not PanelSubmission.objects.exists()
