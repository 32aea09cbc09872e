"""The page of a team: everything with the key in the address, nothing with a login or a cookie."""

import csv
import io
import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from boards.access import replace_team_key, revoke_team
from boards.models import Submission
from boards.services import boards, snapshots, submissions
from boards.views import team_pages
from studies.models import Prompt
from tests.boards import builders

pytestmark = pytest.mark.django_db


class Page:
    """The page of a new team, opened in a browser that has never been here."""

    def __init__(self, board, name="Team A"):
        self.board = board
        self.team, self.key = builders.team_of(board, name)
        self.client = Client(enforce_csrf_checks=True)

    @property
    def address(self):
        return f"/boards/{self.board.slug}/team/{self.key}/"

    def get(self, path=""):
        return self.client.get(self.address + path)

    def post(self, path="", data=None):
        return self.client.post(self.address + path, data or {})

    def send(self, name="good", data=None, filename="outputs.jsonl", **fields):
        data = builders.outputs_file(self.board, name) if data is None else data
        return self.post("", {"name": name, "file": SimpleUploadedFile(filename, data), **fields})


@pytest.fixture
def page():
    return Page(builders.open_board())


def test_a_file_is_submitted_and_listed_without_a_cookie(page):
    answer = page.send("good", description="A model.", url="https://example.org/", is_anonymous="1")
    one = Submission.objects.get(name="good")
    assert (answer.status_code, answer["Location"]) == (302, f"{page.address}#submission-{one.number}")
    assert (one.team, one.description, one.is_anonymous) == (page.team, "A model.", True)
    shown = page.get()
    text = shown.content.decode()
    assert "good" in text and "Waits for the next round" in text and "Publish the name" in text
    for each in (answer, shown):
        assert each["Referrer-Policy"] == "no-referrer" and each["Cache-Control"] == "no-store"
        assert each["X-Robots-Tag"] == "noindex" and not each.cookies
    assert "<script" not in text and "Cookie" not in shown.get("Vary", "")


def test_all_problems_of_a_file_are_listed_and_what_was_typed_is_kept(page):
    data = builders.outputs_file(page.board, "good", p000=None, p001=" ", zzz="extra")
    answer = page.send("My <system>", data, description="Kept & <shown>", url="https://example.org/x", is_anonymous="1")
    text = answer.content.decode()
    assert answer.status_code == 400
    for words in (
        "1 prompt has no output: “p000”",
        "row 1, column “output”: The output is empty",
        "“zzz” is not a prompt of this board",
        'value="My &lt;system&gt;"',
        "Kept &amp; &lt;shown&gt;</textarea>",
        'value="https://example.org/x"',
        'value="1" checked',
        "What you typed is kept",
    ):
        assert words in text, words
    assert not Submission.objects.filter(team=page.team).exists()
    # A taken name and a wrong address are listed with the file's problems, and lead to their fields.
    builders.submit(page.board, page.team, "good")
    text = page.send("good", data, url="no address").content.decode()
    assert '<a href="#name">Name</a>: <bdi>Your team already has a submission named' in text
    assert '<a href="#url">Web address</a>: <bdi>' in text and "1 prompt has no output" in text


def test_many_problems_are_counted(page):
    rows = "".join(json.dumps({"prompt": f"x{n}", "output": "a"}) + "\n" for n in range(150))
    assert "There are 50 more." in page.send("good", rows.encode()).content.decode()


FILES = {
    "empty": (b"", "a.jsonl", ""),
    "not JSON": (b"{x}\n", "a.jsonl", ""),
    "a JSON array of numbers": (b"[1]\n", "a.json", "Write each row as an object"),
    "Latin-1": ("prompt,output\np000,grün\n".encode("latin-1"), "a.csv", "UTF-8"),
    "wrong type": (b"%PDF-1.7", "a.pdf", "is not a table"),
    "no column": (b"prompt,text\np000,a\n", "a.csv", "no column output"),
    "enormous output": (b'{"prompt": "p000", "output": "' + b"x" * 100_001 + b'"}\n', "a.jsonl", "At most 100,000"),
}


@pytest.mark.parametrize(("data", "filename", "words"), FILES.values(), ids=FILES)
def test_a_bad_file_is_refused_with_a_reason(page, data, filename, words):
    answer = page.send("good", data, filename)
    assert answer.status_code == 400
    assert "Nothing was stored" in answer.content.decode() and words in answer.content.decode()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": " "}, 'href="#name"'),
        ({"name": "x" * 101}, "At most 100 are allowed"),
        ({"name": "a\u202eb"}, "invisible character"),
        ({"url": "no address"}, 'href="#url"'),
        ({"description": "x" * 10_001}, "At most 10,000 are allowed"),
        ({"description": "a\0b"}, 'href="#description"'),
        ({"request_token": "a\0b" * 30, "name": "human"}, "or one whose name looks like it"),
    ],
)
def test_a_bad_field_is_refused_by_its_name(page, fields, words):
    answer = page.send(**{"name": "good", "data": builders.outputs_file(page.board, "good")} | fields)
    assert answer.status_code == 400 and words in answer.content.decode(), answer.content.decode()[:3000]


def test_a_form_without_a_file_and_a_file_that_is_too_large(page, monkeypatch):
    answer = page.post("", {"name": "good"})
    assert (answer.status_code, "No file was chosen" in answer.content.decode()) == (400, True)
    monkeypatch.setattr(team_pages, "MAX_FORM_BYTES", 100)
    answer = page.send("good")
    assert (answer.status_code, "larger than" in answer.content.decode()) == (413, True)
    monkeypatch.undo()
    monkeypatch.setattr(submissions, "MAX_FILE_BYTES", 100)
    assert "larger than" in page.send("good").content.decode()


def test_a_form_that_is_sent_twice_makes_one_submission(page):
    token = "0" * 32
    page.send("good", request_token=token)
    page.send("other", request_token=token)
    assert Submission.objects.filter(team=page.team).count() == 1


def test_withdrawing_and_publishing_are_confirmed_first(page):
    page.send("good", is_anonymous="1")
    number = Submission.objects.get(name="good").number
    assert "Nobody can undo this" in page.get(f"{number}/publish/").content.decode()
    assert Submission.objects.get(name="good").is_anonymous
    assert page.post(f"{number}/publish/").status_code == 302
    assert not Submission.objects.get(name="good").is_anonymous
    assert page.get(f"{number}/publish/").status_code == 302
    assert "No later round scores it" in page.get(f"{number}/withdraw/").content.decode()
    assert page.post(f"{number}/withdraw/").status_code == 302
    assert Submission.objects.get(name="good").withdrawn_at
    text = page.get().content.decode()
    assert "Withdrawn on" in text and "Withdraw…" not in text
    assert page.post(f"{number}/withdraw/").status_code == 302


def test_a_team_reaches_only_its_own_submissions(page):
    other = Page(page.board, "Team B")
    other.send("theirs")
    number = Submission.objects.get(name="theirs").number
    assert page.post(f"{number}/withdraw/").status_code == 404
    assert page.post("1/withdraw/").status_code == 404
    assert not Submission.objects.filter(withdrawn_at__isnull=False).exists()
    assert "theirs" not in page.get().content.decode()


def test_the_score_is_shown_when_its_round_is_closed(page):
    page.send("good")
    builders.play_round(page.board)
    assert "In round 1" in page.get().content.decode()
    snapshots.take_snapshot(page.board, page.board.owner)
    text = page.get().content.decode()
    assert "points of 100, 95% interval" in text and "24 labels by" in text and "Rank set" in text


def test_prompts_are_downloaded_and_answered_in_the_same_file(page):
    Prompt.objects.filter(study=page.board.template).update(attributes={"gold": "secret"}, source="=SUM(1)")
    lines = [json.loads(line) for line in page.get("prompts.jsonl").content.decode().splitlines()]
    assert [row["prompt"] for row in lines] == page.board.sample_keys
    assert set(lines[0]) == {"prompt", "text", "source", "domain", "language"} and lines[0]["source"] == "=SUM(1)"
    file = page.get("prompts.csv").content.decode()
    rows = list(csv.DictReader(io.StringIO(file)))
    assert rows[0]["source"] == "'=SUM(1)" and "secret" not in file and "human" not in file
    for row in rows:
        row["output"] = "An answer."
    filled = io.StringIO()
    writer = csv.DictWriter(filled, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    assert page.send("filled", filled.getvalue().encode(), "prompts.csv").status_code == 302
    assert page.get("prompts.xlsx").status_code == 404


def test_a_wrong_replaced_or_revoked_key_opens_nothing(page):
    paths = ("", "prompts.csv", "2/withdraw/", "2/publish/")
    page.send("good")
    old = page.key
    page.key = replace_team_key(page.team, page.board.owner)
    assert page.get().status_code == 200
    page.board.slug, kept = "other", page.board.slug
    assert page.get().status_code == 404  # the key of another board
    page.board.slug = kept
    revoke_team(page.team, page.board.owner)
    for key in (old, page.key, "heval_team_" + "A" * 43, "x"):
        page.key = key
        for path in paths:
            answer = page.get(path)
            assert (answer.status_code, "This link does not work" in answer.content.decode()) == (404, True), (
                key,
                path,
            )
    assert page.send("late").status_code == 404 and page.post("2/withdraw/").status_code == 404
    assert not Submission.objects.filter(withdrawn_at__isnull=False).exists()


def test_a_closed_board_and_a_draft_show_no_form(page):
    boards.close_board(page.board, page.board.owner)
    text = page.get().content.decode()
    assert "The board is closed" in text and "<form" not in text
    answer = page.send("late")
    assert (answer.status_code, "takes no more submissions" in answer.content.decode()) == (409, True)


@pytest.mark.usefixtures("in_one_minute")
def test_a_team_is_limited_to_some_requests_a_minute(page, monkeypatch):
    monkeypatch.setattr(team_pages, "MAX_PER_MINUTE", 2)
    assert [page.get().status_code for _ in range(3)] == [200, 200, 429]


def test_other_methods_are_refused(page):
    assert page.client.delete(page.address).status_code == 405
    assert page.client.post(page.address + "prompts.csv").status_code == 405


def test_a_submission_that_no_round_took_does_not_wait_on_a_closed_board(page, client):
    builders.submit(page.board, page.team, "good")
    assert "Waits for the next round" in page.get().content.decode()
    boards.close_board(page.board, page.board.owner)
    assert "Not scored: the board was closed before a round took it" in page.get().content.decode()
    client.force_login(page.board.owner)
    assert "No round will score" in client.get(f"/boards/{page.board.slug}/manage/").content.decode()
