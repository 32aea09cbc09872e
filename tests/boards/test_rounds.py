"""Rounds: what they hold, what they cost, when they open, and what happens if something ends in the middle."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404

from annotators.events.subscriptions import subscribe
from boards import access
from boards.models import BoardRound, RoundEntry
from boards.services import boards, rounds, snapshots, submissions
from studies.models import Study
from studies.services.lifecycle import ActionRefused
from tests.boards import builders
from tests.builders import user

pytestmark = pytest.mark.django_db
MONDAY_NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def board_with(*names, **columns):
    board = builders.open_board(**columns)
    team, _ = builders.team_of(board)
    for name in names:
        builders.submit(board, team, name)
    return board


def test_the_subsample_is_drawn_once_and_depends_on_the_seed_only():
    owner = user()
    first = builders.open_board(owner, slug="a", sample_size=5, seed=11)
    second = builders.open_board(owner, slug="b", sample_size=5, seed=11)
    third = builders.open_board(owner, slug="c", sample_size=5, seed=12)
    assert len(first.sample_keys) == 5
    assert first.sample_keys == second.sample_keys != third.sample_keys


def test_a_round_shows_only_the_subsample():
    board = board_with("good", sample_size=6)
    study = rounds.create_round(board, board.owner).study
    assert sorted(study.prompts.values_list("key", flat=True)) == board.sample_keys
    assert study.target_n == 2 * 6 * 2 / 6


def test_members_of_the_board_have_their_role_in_the_rounds():
    board = board_with("good")
    builders.add_member(board, "reader", "viewer")
    study = rounds.create_round(board, board.owner).study
    assert dict(study.members.values_list("user__username", "role")) == {"researcher": "owner", "reader": "viewer"}


def test_links_are_copied_with_their_pay_and_a_new_address():
    owner = user()
    template = builders.rating_template(owner)
    link = builders.add_link(template)
    link.outcome_pays.create(outcome="screened_out", rule="amount", amount="0.20")
    board = builders.open_board(owner, template)
    builders.submit(board, builders.team_of(board)[0], "good")
    copy = rounds.create_round(board, owner).study.recruitments.get()
    assert copy.channel == "open_link" and copy.key != link.key
    assert copy.outcome_pays.get().amount == Decimal("0.20")


def test_a_round_tells_its_template_s_receivers_what_happens(settings):
    settings.SENDS_MAIL = True
    owner, stranger = user(), user("stranger", email="s@example.org")
    template = builders.rating_template(owner)
    template.members.create(user=stranger, role="editor")
    hook, _ = subscribe(template, owner, ["launched", "answers"], url="https://ci.example.org/heval", answers=3)
    subscribe(template, stranger, ["closed"])  # no member of the board, so not of its rounds
    board = builders.open_board(owner, template)
    builders.submit(board, builders.team_of(board)[0], "good")
    study = rounds.open_round(board, owner).study
    copy = study.event_subscriptions.get()
    assert (copy.url, copy.events, copy.answers, copy.by) == (hook.url, ["launched", "answers"], 3, owner)
    # The pipeline checks the events of all rounds with one secret.
    assert bytes(copy.secret) == bytes(hook.secret)
    assert [delivery.event.kind for delivery in copy.deliveries.all()] == ["launched"]


def test_a_budget_per_submission_and_per_month():
    # 3 systems x 12 prompts x 2 labels on batches of 6: 12 places at 1.00.
    board = board_with("good", "weak", budget_per_submission=Decimal("5.00"))
    assert "more than the budget of 5.00 per submission" in rounds.plan_round(board).refusal
    boards.change_board(
        board, board.owner, {"budget_per_submission": Decimal("6.00"), "budget_per_month": Decimal("8.00")}
    )
    board.refresh_from_db()
    # Two submissions would cost 12, more than the month allows. One would cost 8, more than 6 for a submission.
    assert rounds.plan_round(board).refusal
    boards.change_board(board, board.owner, {"budget_per_submission": Decimal("8.00")})
    board.refresh_from_db()
    plan = rounds.plan_round(board)
    assert ([one.name for one in plan.submissions], plan.cost, plan.n_waiting) == (["good"], Decimal("8.00"), 2)
    rounds.open_round(board, board.owner)
    assert "8.00 of this month's budget of 8.00 are spent" in rounds.plan_round(board).refusal
    with pytest.raises(ActionRefused, match="budget"):
        rounds.request_round(board, board.owner)


@pytest.mark.parametrize(
    ("time_zone", "now", "is_spent"),
    [
        ("UTC", datetime(2026, 12, 1, 11, tzinfo=UTC), False),
        ("UTC", datetime(2026, 11, 30, 23, tzinfo=UTC), True),
        # There December began at 11:00 UTC, when this round was planned.
        ("Pacific/Auckland", datetime(2026, 12, 1, 11, tzinfo=UTC), True),
        ("Pacific/Auckland", datetime(2026, 12, 31, 11, tzinfo=UTC), False),
        # November is not over there.
        ("America/Los_Angeles", datetime(2026, 12, 1, 7, tzinfo=UTC), True),
        ("America/Los_Angeles", datetime(2026, 12, 1, 8, tzinfo=UTC), False),
    ],
)
def test_a_month_of_the_budget_is_one_of_the_boards_time_zone(time_zone, now, is_spent):
    board = board_with("good", time_zone=time_zone)
    one = rounds.create_round(board, board.owner)
    BoardRound.objects.filter(pk=one.pk).update(planned_at=datetime(2026, 11, 30, 11, tzinfo=UTC))
    assert rounds.month_cost(board, now=now) == (one.expected_cost if is_spent else 0) and one.expected_cost > 0


def test_a_launch_window_opens_once_a_day():
    board = board_with("good", opens_by_itself=True, launch_weekdays="0", launch_hour=10, time_zone="Europe/Berlin")
    assert rounds.next_launch_at(board, now=MONDAY_NOON).isoformat() == "2026-11-30T10:00:00+01:00"
    assert rounds.is_due(board, now=MONDAY_NOON)
    early = datetime(2026, 11, 30, 8, 59, tzinfo=UTC)
    assert not rounds.is_due(board, now=early)
    sunday = datetime(2026, 11, 29, 12, tzinfo=UTC)
    assert not rounds.is_due(board, now=sunday)
    one = rounds.create_round(board, board.owner)
    BoardRound.objects.filter(pk=one.pk).update(planned_at=MONDAY_NOON)
    assert not rounds.is_due(board, now=MONDAY_NOON.replace(hour=15))
    assert rounds.next_launch_at(board, now=MONDAY_NOON).isoformat() == "2026-12-07T10:00:00+01:00"


def test_a_due_round_is_submitted_once(django_capture_on_commit_callbacks):
    board = board_with("good", opens_by_itself=True, launch_weekdays="0", launch_hour=10)
    assert rounds.submit_due_rounds(now=MONDAY_NOON) == 1
    assert rounds.submit_due_rounds(now=MONDAY_NOON) == 1  # the same job
    from studies.models import Job

    assert Job.objects.filter(kind=rounds.KIND).count() == 1
    assert board.rounds.count() == 0


def test_anchors_fill_their_share():
    board = board_with("a", "b", "c", "d", anchor_share=Decimal("0.50"))
    one = rounds.create_round(board, board.owner)
    assert one.entries.filter(is_new=True).count() == 4
    assert one.entries.filter(is_new=False).count() == 1  # the human reference is all there is
    earlier = board.submissions.get(name="a")
    rounds.choose_anchor(earlier, board.owner, True)
    team = board.teams.get()
    builders.submit(board, team, "e")
    builders.submit(board, team, "f")
    second = rounds.create_round(board, board.owner)
    names = set(second.entries.filter(is_new=False).values_list("submission__name", flat=True))
    assert names == {"human", "a"}
    assert rounds.anchors_needed(board, 4) == 4


def test_an_anchor_that_waits_is_new_in_its_first_round():
    board = builders.open_board(anchor_share="0.90")
    team, _ = builders.team_of(board)
    weak, good = (builders.submit(board, team, name) for name in ("weak", "good"))
    rounds.choose_anchor(weak, board.owner, True)
    entries = dict(rounds.create_round(board, board.owner).entries.values_list("submission__name", "is_new"))
    assert entries == {"human": False, "weak": True, "good": True}


def test_a_submission_is_new_in_one_round_only():
    board = board_with("good")
    rounds.create_round(board, board.owner)
    with pytest.raises(ActionRefused, match="No submission waits"):
        rounds.create_round(board, board.owner)


def test_a_cancelled_round_gives_its_submissions_back():
    board = board_with("good")
    one = rounds.create_round(board, board.owner)
    rounds.cancel_round(one, board.owner)
    assert [one.name for one in rounds.waiting_submissions(board)] == ["good"]
    second = rounds.create_round(board, board.owner)
    assert second.number == 2
    with pytest.raises(ActionRefused, match="already"):
        rounds.cancel_round(one, board.owner)


def facts_of(board, client) -> dict:
    """What anything that reads rounds says of a board."""
    plan = rounds.plan_round(board)
    everything = board.submissions.all()
    client.force_login(board.owner)
    page = client.get(f"/boards/{board.slug}/manage/").context
    return {
        "plan": ([one.name for one in plan.submissions], [one.name for one in plan.anchors], plan.cost, plan.refusal),
        "spent": rounds.month_cost(board),
        "turns": [one.name for one in rounds.waiting_in_turns(board)],
        "states": snapshots.find_statuses(board, everything, None),
        "prompts": rounds.keys_to_answer(board),
        "samples": rounds.samples_of_rounds(board),
        "renewal": rounds.find_renewal_problem(board),
        "draws": snapshots.public_draws(board),
        "can be cancelled": page["has_cancellable"],
        "scored": {one.name for one in page["scored"]},
    }


@pytest.mark.parametrize("is_renewed", [False, True])
def test_a_cancelled_round_leaves_the_board_as_it_was(client, is_renewed):
    board = board_with("a", "b", anchor_share=Decimal("0.40"), budget_per_month=Decimal("200.00"), sample_size=6)
    builders.play_round(board, strengths=dict.fromkeys(("human", "a", "b"), 3))
    for name in "ab":
        rounds.choose_anchor(board.submissions.get(name=name), board.owner, True)
    if is_renewed:
        rounds.renew_sample(board, board.owner, Decimal("0.50"))
    builders.submit(board, board.teams.get(), "c")
    builders.submit(board, builders.team_of(board, "Other")[0], "d")
    board.refresh_from_db()
    before = facts_of(board, client)
    one = rounds.create_round(board, board.owner)
    # Anchors of the earlier sample do not answer the renewed one.
    assert (
        one.entries.filter(submission__is_anchor=True, is_new=False, submission__team__isnull=False).exists()
        is not is_renewed
    )
    during = facts_of(board, client)
    assert {name for name in before if before[name] != during[name]} >= {"plan", "spent", "turns", "states", "samples"}
    rounds.cancel_round(one, board.owner)
    assert facts_of(board, client) == before


def test_a_changed_template_opens_no_round():
    board = board_with("good")
    Study.objects.get(pk=board.template_id).prompts.filter(key="p001").update(text="Another prompt.")
    with pytest.raises(ActionRefused, match="template has changed"):
        rounds.request_round(board, board.owner)


def test_a_round_that_cannot_launch_says_why_and_can_be_opened_later():
    owner = user()
    template = builders.rating_template(owner)
    Study.objects.filter(pk=template.pk).update(minutes=None)
    template.refresh_from_db()
    board = builders.open_board(owner, template)
    builders.submit(board, builders.team_of(board)[0], "good")
    with pytest.raises(ActionRefused):
        rounds.open_round(board, owner)
    one = board.rounds.get()
    assert "duration is missing" in one.problem
    Study.objects.filter(pk=one.study_id).update(minutes=5)
    opened = rounds.open_round(board, owner)
    assert opened.pk == one.pk and opened.launched_at and not opened.problem


def test_a_board_that_closes_while_a_round_runs_still_gets_its_results():
    board = board_with("good")
    one = rounds.open_round(board, board.owner)
    boards.close_board(board, board.owner)
    board.refresh_from_db()
    with pytest.raises(ActionRefused, match="closed"):
        rounds.request_round(board, board.owner)
    with pytest.raises(ActionRefused, match="No round is closed yet"):
        snapshots.take_snapshot(board, board.owner)
    assert Study.objects.get(pk=one.study_id).state == "launched"


def test_a_withdrawn_submission_is_in_no_later_round_and_snapshot():
    board = board_with("good", "weak")
    builders.play_round(board)
    submissions.withdraw(board.submissions.get(name="weak"), by=None)
    snapshot = snapshots.take_snapshot(board, board.owner)
    assert [row["name"] for row in snapshots.display_rows(snapshot)] == ["human", "good"]


@pytest.mark.parametrize("origin", ["live", "robot"])
def test_a_complete_round_is_closed(origin):
    board = board_with("good")
    from annotators.models import Assignment

    one = rounds.open_round(board, board.owner)
    assert rounds.close_complete_rounds() == 0
    Study.objects.get(pk=one.study_id)
    builders_robots(one.study)
    Assignment.objects.filter(study=one.study).update(origin=origin)
    assert rounds.close_complete_rounds() == 1
    assert Study.objects.get(pk=one.study_id).state == "closing"


def builders_robots(study):
    from annotators.participation.simulate import CrowdSettings, record_simulated_answers

    record_simulated_answers(study, study.target_n, {"human": 1, "good": 0}, crowd=CrowdSettings(screened_out=0))


def test_what_scores_depend_on_cannot_change_after_opening():
    board = builders.open_board()
    with pytest.raises(ValidationError, match="cannot change after"):
        boards.change_board(board, board.owner, {"labels_per_output": 3})
    assert boards.change_board(board, board.owner, {"title": "New"}).title == "New"


@pytest.mark.parametrize(
    ("role", "refusal"), [(None, Http404), ("viewer", PermissionDenied), ("editor", PermissionDenied)]
)
def test_roles(role, refusal):
    board = board_with("good")
    person = user("other")
    if role:
        builders.add_member(board, "other", role)
    owners_only = [
        lambda: boards.close_board(board, person),
        lambda: boards.change_board(board, person, {"title": "x"}),
        lambda: access.replace_members(board, person, [(person.pk, "owner")]),
    ]
    editors = [
        lambda: access.create_team(board, person, "Mine"),
        lambda: rounds.request_round(board, person),
        lambda: rounds.create_round(board, person),
        lambda: rounds.choose_anchor(board.submissions.get(name="good"), person, True),
        lambda: snapshots.take_snapshot(board, person),
        lambda: snapshots.request_snapshot(board, person),
    ]
    for act in owners_only + (editors if role != "editor" else []):
        with pytest.raises(refusal):
            act()
    assert not RoundEntry.objects.exists()
    if role == "editor":
        access.create_team(board, person, "Mine")
        rounds.request_round(board, person)


def test_a_board_needs_an_owner():
    board = builders.open_board()
    with pytest.raises(ValidationError, match="at least one owner"):
        access.replace_members(board, board.owner, [(user("other").pk, "viewer")])
    access.replace_members(board, board.owner, [(board.owner.pk, "owner"), (user("other").pk, "viewer")])
    assert board.members.count() == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.sections.all().delete(), "No live section gives scores"),
        (lambda t: t.prompts.filter(pk__in=t.prompts.all()) and t.systems.first().outputs.all().delete(), "no prompt"),
        (lambda t: t.questions_deleted(), "has no question"),
    ],
)
def test_a_template_that_gives_no_scores_opens_no_board(change, words, monkeypatch):
    from studies.models import Question

    owner = user()
    template = builders.rating_template(owner)
    monkeypatch.setattr(
        Study, "questions_deleted", lambda self: Question.objects.filter(section__study=self).delete(), raising=False
    )
    if "No live section" in words:
        Question.objects.filter(section__study=template).delete()
    change(template)
    with pytest.raises(ActionRefused, match=words):
        builders.open_board(owner, template)


def test_a_board_with_one_label_keeps_a_share_of_second_labels():
    board = board_with("good", labels_per_output=1, double_label_share=Decimal("0.25"))
    # 2 systems x 12 prompts x 1.25 labels on batches of 6.
    assert rounds.plan_round(board).places == 5
