"""The pages on which members make and run a board."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from boards.access import find_team
from boards.models import Board
from boards.services import boards, rounds, snapshots
from studies.models import ExclusionRule, Job, Study
from studies.services import jobs
from studies.services.lifecycle import ActionRefused
from tests.admin_pages import logged_in
from tests.boards import builders
from tests.builders import user

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner():
    return user()


@pytest.fixture
def page(client, owner):
    client.force_login(owner)
    return client


def fields_of(template, **changed):
    return {
        "title": "Tales", "slug": "tales", "description": "", "visibility": "public", "template": template.pk, "output_kind": "text",
        "population": "prompts", "sample_size": "", "seed": "7", "labels_per_output": "2", "double_label_share": "0.10", "anchor_share": "0.20",
        "budget_per_submission": "", "budget_per_month": "", "max_submissions_per_round": "10",
        "max_waiting_per_team": "10", "max_daily_per_team": "10", "max_megabytes_per_team": "2000",
        "launch_weekdays": ["0", "1"], "launch_hour": "10", "time_zone": "UTC",
    } | changed  # fmt: skip


@pytest.mark.slow
def test_a_board_is_made_opened_and_run_from_its_pages(page, owner):
    template = builders.rating_template(owner)
    assert "New board" in page.get("/boards/new/").content.decode()
    made = page.post("/boards/new/", fields_of(template))
    assert made.status_code == 302 and made["Location"] == "/boards/tales/manage/"
    text = page.get("/boards/tales/manage/").content.decode()
    assert "Open the board" in text
    page.post("/boards/tales/manage/open/")
    board = Board.objects.get()
    assert (board.state, board.launch_weekdays) == ("open", "0,1")
    key_page = page.post("/boards/tales/manage/teams/make/", {"name": "Team A"}).content.decode()
    key = key_page.split("/team/")[1].split("/")[0]
    team = find_team(key)
    assert team.name == "Team A"
    assert key not in page.get("/boards/tales/manage/").content.decode()
    builders.submit(board, team, "good")
    text = page.get("/boards/tales/manage/").content.decode()
    assert "needs 8 places" in text and "8.00 USD" in text and "1 anchor (human)" in text
    page.post("/boards/tales/manage/rounds/open/", {"token": "t1"})
    page.post("/boards/tales/manage/rounds/open/", {"token": "t1"})
    assert Job.objects.filter(kind=rounds.KIND).count() == 1
    jobs.run_waiting_jobs()
    one = board.rounds.get()
    assert one.study.state == "launched"
    assert f"/admin/studies/study/{one.study_id}/change/" in page.get("/boards/tales/manage/").content.decode()
    builders.finish(one.study)
    page.post("/boards/tales/manage/snapshots/take/")
    jobs.run_waiting_jobs()
    assert board.snapshots.get().n_labels == 48
    good = board.submissions.get(name="good")
    page.post(f"/boards/tales/manage/anchors/{good.number}/", {"is_anchor": "yes"})
    good.refresh_from_db()
    assert good.is_anchor
    # The declared share asks for one anchor, which is the reference: the page says that the other one is left out.
    builders.submit(board, team, "middle")
    assert "does not score: good. A larger share" in page.get("/boards/tales/manage/").content.decode()
    Board.objects.filter(pk=board.pk).update(anchor_share="0.60")
    text = page.get("/boards/tales/manage/").content.decode()
    assert "2 anchors (human, good)" in text and "does not score" not in text
    new_key = page.post(f"/boards/tales/manage/teams/{team.pk}/key/").content.decode()
    assert "heval_team_" in new_key and find_team(key) is None
    page.post(f"/boards/tales/manage/teams/{team.pk}/revoke/")
    assert "revoked" in page.get("/boards/tales/manage/").content.decode()
    page.post("/boards/tales/manage/close/")
    board.refresh_from_db()
    assert board.state == "closed"


def test_wrong_settings_are_named_and_kept(page, owner):
    template = builders.rating_template(owner)
    wrong = fields_of(template, time_zone="Mars/Base", launch_weekdays=["7"], slug="new", title="Kept")
    answer = page.post("/boards/new/", wrong)
    text = answer.content.decode()
    assert answer.status_code == 400
    assert (
        "not a time zone" in text
        and "7 is not one of the available choices" in text
        and "used by a page of heval" in text
        and "Kept" in text
    )
    assert not Board.objects.exists()


def test_a_board_of_a_foreign_draft_cannot_be_made(page):
    foreign = builders.rating_template(user("other"))
    answer = page.post("/boards/new/", fields_of(foreign))
    assert answer.status_code == 400 and not Board.objects.exists()


def test_settings_change_and_what_scores_depend_on_stays(page, owner):
    board = builders.open_board(owner)
    text = page.get("/boards/tales/manage/settings/").content.decode()
    assert "cannot change any more" in text
    fields = fields_of(board.template, title="New title", labels_per_output="5", budget_per_month="100")
    assert page.post("/boards/tales/manage/settings/", fields).status_code == 302
    board.refresh_from_db()
    assert (board.title, board.labels_per_output, board.budget_per_month) == ("New title", 2, 100)


def test_a_refusal_is_a_message(page, owner):
    builders.open_board(owner)
    page.post("/boards/tales/manage/rounds/open/")
    assert "No submission waits for a round." in page.get("/boards/tales/manage/").content.decode()


def test_members_are_given_roles(page, owner):
    board = builders.open_board(owner)
    other = user("other")
    form = {
        "form-TOTAL_FORMS": "2", "form-INITIAL_FORMS": "1", "form-0-user": owner.pk, "form-0-role": "owner",
        "form-1-user": other.pk, "form-1-role": "editor",
    }  # fmt: skip
    assert page.post("/boards/tales/manage/members/", form).status_code == 302
    assert dict(board.members.values_list("user__username", "role")) == {"researcher": "owner", "other": "editor"}
    answer = page.post("/boards/tales/manage/members/", form | {"form-0-DELETE": "on"})
    assert answer.status_code == 400 and "at least one owner" in answer.content.decode()


def test_strangers_and_people_without_login_see_no_page_of_members(client, owner):
    builders.open_board(owner)
    assert client.get("/boards/tales/manage/").status_code == 302
    client.force_login(user("stranger"))
    for path in ("", "settings/", "members/", "bundle.json"):
        assert client.get(f"/boards/tales/manage/{path}").status_code == 404


def test_a_viewer_sees_and_cannot_act(client, owner):
    board = builders.open_board(owner)
    builders.add_member(board, "reader", "viewer")
    client.force_login(user("reader"))
    text = client.get("/boards/tales/manage/").content.decode()
    assert "Open the round now" not in text and "Make a team" not in text
    assert client.post("/boards/tales/manage/close/").status_code == 403
    assert client.post("/boards/tales/manage/teams/make/", {"name": "x"}).status_code == 403


def test_a_board_leaves_and_returns_as_one_file(page, owner):
    board = builders.open_board(owner, sample_size=5)
    data = page.get("/boards/tales/manage/bundle.json").content
    file = SimpleUploadedFile("tales.board.json", data)
    made = page.post("/boards/new/", {"bundle": "yes", "file": file, "slug": "copy"})
    assert made["Location"] == "/boards/copy/manage/"
    copy = Board.objects.get(slug="copy")
    assert (copy.state, copy.sample_size, copy.seed, copy.template.prompts.count()) == ("draft", 5, board.seed, 12)
    assert copy.template_id != board.template_id
    again = json.dumps(boards.serialize_board(copy))
    assert json.loads(again)["template"]["sections"] == json.loads(data)["template"]["sections"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda value: value.pop("schema"), "not a bundle of a board"),
        (lambda value: value.pop("template"), "“template” is missing"),
        (lambda value: value["board"].update(colour="red"), "“colour” is not a setting"),
        (lambda value: value["board"].update(launch_hour=99), "board, launch_hour"),
        (lambda value: value["template"].pop("sections"), "template:"),
    ],
)
def test_a_wrong_bundle_makes_nothing(owner, change, words):
    board = builders.open_board(owner)
    value = json.loads(json.dumps(boards.serialize_board(board)))
    change(value)
    n_studies = Study.objects.count()
    with pytest.raises(boards.BoardBundleRefused, match=words):
        boards.create_board_from_bundle(json.dumps(value).encode(), owner, slug="copy")
    assert (Board.objects.count(), Study.objects.count()) == (1, n_studies)


@pytest.mark.slow
def test_jobs_of_the_schedule_close_and_publish(owner):
    board = builders.open_board(owner)
    builders.submit(board, builders.team_of(board)[0], "good")
    assert snapshots.submit_due_snapshots() == 0
    builders.play_round(board)
    assert snapshots.submit_due_snapshots() == 1
    jobs.run_waiting_jobs()
    assert board.snapshots.count() == 1
    assert snapshots.submit_due_snapshots() == 0


def test_the_admin_lists_own_boards_and_leads_to_their_pages(page, owner):
    board = builders.open_board(owner)
    builders.open_board(user("other"), slug="foreign", title="Foreign")
    text = page.get("/admin/boards/board/").content.decode()
    assert "Tales" in text and "Foreign" not in text
    assert page.get(f"/admin/boards/board/{board.pk}/change/")["Location"] == "/boards/tales/manage/"
    assert page.get("/admin/boards/board/add/")["Location"] == "/boards/new/"
    foreign = Board.objects.get(slug="foreign")
    assert page.get(f"/admin/boards/board/{foreign.pk}/change/").status_code == 404


def test_a_new_board_says_at_once_that_its_template_has_no_test_questions():
    owner = user("olga")
    template = builders.rating_template(owner)
    ExclusionRule.objects.create(study=template, rule="test_question_model", settings={}, position=1)
    Study.objects.filter(pk=template.pk).update(bars_flagged_annotators=True, consent="I take part.")
    template.refresh_from_db()
    board = boards.create_board(Board(slug="tales", title="Tales", template=template), owner)
    client = logged_in(owner)
    shown = client.get("/boards/tales/manage/").content.decode()
    assert "no section has test questions" in shown and "Open the board</button>" not in shown
    address = reverse("admin:studies_section_test_questions", args=[template.sections.get().pk])
    assert f'href="{address}"' in shown and client.get(address).status_code == 200
    with pytest.raises(ActionRefused, match="no section has test questions"):
        boards.open_board(board, owner)
    viewer = builders.add_member(board, "vera", "viewer").user
    assert "Go on without" not in logged_in(viewer).get("/boards/tales/manage/").content.decode()
    assert logged_in(viewer).post("/boards/tales/manage/no-test-questions/").status_code == 403
    version = template.version
    shown = client.post("/boards/tales/manage/no-test-questions/", follow=True).content.decode()
    assert "no section has test questions" not in shown and "Open the board</button>" in shown
    template.refresh_from_db()
    assert not template.exclusion_rules.exists() and not template.bars_flagged_annotators
    assert template.version > version
    again = client.post("/boards/tales/manage/no-test-questions/", follow=True).content.decode()
    assert "You need not do anything" in again
    client.post("/boards/tales/manage/open/")
    board.refresh_from_db()
    builders.submit(board, builders.team_of(board)[0], "good")
    assert rounds.open_round(board, owner).study.state == "launched"
