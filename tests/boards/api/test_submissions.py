"""Submissions over REST: two ways to send them, every bad input by its name, and what others may know of them."""

import json
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from boards.access import replace_team_key, revoke_team
from boards.models import Submission
from boards.services import boards, snapshots, submissions
from tests.analysis.api.rest import Api, api_of
from tests.boards import builders

from .rest import api_of_team, body, errors_of, outputs, scored_board

pytestmark = pytest.mark.django_db


@pytest.fixture
def board():
    return builders.open_board()


@pytest.fixture
def api(board):
    return api_of_team(board)


def send_form(api, board, data=None, filename="outputs.jsonl", **fields):
    sent = {"name": "good", **fields}
    if data is not None:
        sent["file"] = SimpleUploadedFile(filename, data)
    return api.client.post(f"/api/v1/boards/{board.slug}/submissions/", sent, headers=api.headers)


def post(api, board, sent, **headers):
    return api.post(f"boards/{board.slug}/submissions/", sent, **headers)


def test_a_submission_as_json_and_as_a_file_is_stored_alike(board, api):
    first = post(api, board, body(board, "good", description="A model.", url="https://example.org/", is_anonymous=True))
    # The same name and the same outputs, in whichever way they come, are the same submission.
    again = send_form(api, board, builders.outputs_file(board, "good"))
    assert (first.status_code, again.status_code, again.json()["number"]) == (201, 200, first.json()["number"])
    second = send_form(api, board, builders.outputs_file(board, "good"), name="form", is_anonymous="true")
    assert second.status_code == 201
    one, two = first.json(), second.json()
    assert (one["state"], one["n_outputs"], one["team"], one["url"]) == (
        "waiting",
        12,
        "Team A",
        "https://example.org/",
    )
    assert one["is_anonymous"] and two["is_anonymous"] and two["filename"] == "outputs.jsonl"
    stored = [
        list(Submission.objects.get(name=name).outputs.order_by("prompt_key").values_list("text"))
        for name in ("good", "form")
    ]
    assert stored[0] == stored[1]


def test_a_csv_file_is_read_too(board, api):
    rows = "".join(f'{row["prompt"]},"{row["output"]}"\n' for row in outputs(board))
    assert send_form(api, board, f"prompt,output\n{rows}".encode(), filename="a.csv").status_code == 201


def test_a_form_says_what_its_columns_are(board, api):
    rows = "".join(f'{row["prompt"]},"{row["output"]}"\n' for row in outputs(board))
    text = f"Aufgabe,Antwort\n{rows}".encode()
    wrong = send_form(api, board, text, filename="a.csv", columns=["nobody=Aufgabe"])
    assert wrong.status_code == 400 and "maps no column" in wrong.content.decode()
    both = send_form(api, board, text, filename="a.csv", name="", columns=["text=Antwort"])
    assert {"add: --map prompt_key=Aufgabe" in error["message"] for error in both.json()["errors"]} == {True, False}
    done = send_form(api, board, text, filename="a.csv", columns=["prompt_key=Aufgabe", "text=Antwort"])
    assert done.status_code == 201, done.content


def test_a_member_submits_for_a_team(board, api):
    owner = api_of(board.owner)
    assert errors_of(post(owner, board, body(board)))[0][1] == "team"
    assert "not revoked" in errors_of(post(owner, board, body(board, team="Nobody")))[0][2]
    assert post(owner, board, body(board, team="Team A")).json()["team"] == "Team A"
    assert "another team" in errors_of(post(api, board, body(board, "x", team="Team B")))[0][2]


def test_a_repeated_request_stores_nothing_new(board, api):
    key = {"Idempotency-Key": "nightly-1"}
    first, second = (post(api, board, body(board, "good"), **key) for _ in range(2))
    assert first.json() == second.json() and first.json()["number"]
    assert post(api, board, body(board, "another"), **key).status_code == 422
    # The key belongs to the team: another team's request is another request.
    other = api_of_team(board, "Team B")
    assert post(other, board, body(board, "theirs"), **key).status_code == 201
    # Without a key: the same name and outputs are the same submission.
    assert post(api, board, body(board, "good")).status_code == 200
    assert Submission.objects.filter(team__isnull=False).count() == 2


K = "p000"
# What is wrong, the rows that are sent, and (row, field, words) of what is said.
ROWS = {
    "missing": ({K: None}, (None, None, f"1 prompt has no output: “{K}”")),
    "extra": ({"zzz": "Extra."}, (13, "prompt", "“zzz” is not a prompt of this board")),
    "empty output": ({K: "  "}, (1, "output", "write “yes” in the column “empty”")),
    "enormous output": ({K: "x" * 100_001}, (1, "output", "At most 100,000 are allowed")),
    "number": ({K: 5}, (1, "output", "")),
    "NUL": ({K: "a\0"}, (1, None, "")),
}


@pytest.mark.parametrize(("changed", "expected"), ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("as_form", [False, True])
def test_a_bad_row_is_named(board, api, changed, expected, as_form):
    rows = outputs(board, **changed)
    if as_form:
        answer = send_form(api, board, "".join(json.dumps(row) + "\n" for row in rows).encode())
    else:
        answer = post(api, board, {"name": "good", "outputs": rows})
    assert answer.status_code == 400, answer.content
    if not errors_of(answer):  # the whole body is refused before its rows are read
        assert "NUL" in answer.json()["detail"]
    else:
        row, field, words = expected
        found = errors_of(answer)
        assert any(
            one[0] == row and one[1] in (field, one[1] if field is None else field) and words in one[2] for one in found
        ), found
    assert not Submission.objects.filter(team__isnull=False).exists()


def test_all_errors_of_fields_and_rows_are_named_at_once(board, api):
    rows = outputs(board, **{K: " "})
    rows.append(rows[1])
    answer = post(api, board, {"name": " ", "is_anonymous": "yes", "outputs": rows})
    found = errors_of(answer)
    assert {field for row, field, _ in found if row is None} == {"name", "is_anonymous"}
    assert {(1, "output"), (13, "prompt")} <= {(row, field) for row, field, _ in found}
    assert any("already has an output in row 2" in text for _, _, text in found)
    assert post(api, board, body(board, "good")).status_code == 201
    found = errors_of(post(api, board, {"name": "good", "url": "no address", "outputs": rows}))
    assert {(None, "name"), (None, "url"), (1, "output")} <= {(row, field) for row, field, _ in found}


@pytest.mark.parametrize("rows", [[], None, {}, "text", 5])
def test_outputs_that_are_no_list_are_refused(board, api, rows):
    answer = post(api, board, {"name": "good", "outputs": rows})
    assert errors_of(answer)[0][1:] == ("outputs", "There are no outputs. Send a list with one object for each prompt.")


def test_rows_that_are_no_objects_are_refused(board, api):
    answer = post(api, board, {"name": "good", "outputs": [1, "a", None, ["b"]]})
    assert {row for row, _, _ in errors_of(answer)} >= {1, 2, 3, 4}


FILES = {
    "empty": (b"", "a.jsonl", ""),
    "blank": (b"\n\n", "a.jsonl", "only blank lines"),
    "not JSON": (b"{prompt: 1}\n", "a.jsonl", ""),
    "half of a JSON array": (b'[{"prompt": "p000"}', "a.json", "may be cut off"),
    "Latin-1": ("prompt,output\np000,grün\n".encode("latin-1"), "a.csv", "UTF-8"),
    "UTF-16": ("prompt,output\n".encode("utf-16"), "a.csv", ""),
    "wrong type": (b"%PDF-1.7", "a.pdf", "is not a table"),
    "no column": (b"prompt,text\np000,a\n", "a.csv", "no column output"),
}


@pytest.mark.parametrize(("data", "name", "words"), FILES.values(), ids=FILES)
def test_a_bad_file_is_refused_with_a_reason(board, api, data, name, words):
    answer = send_form(api, board, data, filename=name)
    assert answer.status_code == 400, answer.content
    assert any(words in text for _, _, text in errors_of(answer)), errors_of(answer)


def test_a_form_without_a_file_and_a_damaged_form(board, api):
    assert errors_of(send_form(api, board))[0][1:] == (
        "file",
        "The form has no file. Send the outputs as a file named “file”.",
    )
    address = f"/api/v1/boards/{board.slug}/submissions/"
    for content_type, data in (("multipart/form-data", b"x"), ("multipart/form-data; boundary=x", b"--x\r\nbroken")):
        answer = api.client.generic("POST", address, data, content_type=content_type, headers=api.headers)
        assert answer.status_code == 400, answer.content
    answer = api.client.generic("POST", address, b"a=b", content_type="text/csv", headers=api.headers)
    assert answer.status_code == 415
    gzip = {"Content-Encoding": "gzip"}
    answer = api.client.post(address, {"name": "x"}, headers=api.headers | gzip)
    assert answer.status_code == 415


def test_an_enormous_file_is_refused(board, api, monkeypatch):
    monkeypatch.setattr(submissions, "MAX_FILE_BYTES", 1000)
    assert "larger than" in errors_of(send_form(api, board, b"x" * 1001))[0][2]
    monkeypatch.setattr("boards.api.base.MAX_FORM_BYTES", 1000)
    assert send_form(api, board, b"x" * 1001).status_code == 413


def test_more_errors_than_a_response_lists_are_counted(board, api):
    rows = [{"prompt": f"x{n}", "output": "a"} for n in range(150)]
    found = errors_of(post(api, board, {"name": "good", "outputs": rows}))
    assert len(found) == 100 and found[0] == (None, None, "There are 51 more errors. Correct these first.")


def test_a_closed_board_a_revoked_and_a_replaced_key(board, api):
    assert post(api, board, body(board)).status_code == 201
    new = replace_team_key(api.team, board.owner)
    assert post(api, board, body(board, "late")).status_code == 401
    assert post(Api(new), board, body(board, "late")).status_code == 201
    boards.close_board(board, board.owner)
    answer = post(Api(new), board, body(board, "later"))
    assert (answer.status_code, answer.json()["detail"]) == (
        409,
        "The board is closed and takes no more submissions. Ask its owner.",
    )
    revoke_team(api.team, board.owner)
    assert post(Api(new), board, body(board, "last")).status_code == 401


def test_a_name_that_is_taken_is_refused(board, api):
    post(api, board, body(board, "good"))
    other = api_of_team(board, "Team B")
    assert "or one whose name looks like it" in errors_of(post(other, board, body(board, "good")))[0][2]


def test_a_withdrawn_submission_does_not_come_back(board, api):
    number = post(api, board, body(board, "good")).json()["number"]
    api.post(f"boards/{board.slug}/submissions/{number}/withdraw/", {})
    answer = post(api, board, body(board, "good"))
    assert (answer.status_code, "Choose another name" in errors_of(answer)[0][2]) == (400, True)
    assert post(api, board, body(board, "good again")).status_code == 201


@pytest.mark.slow
def test_states_follow_a_submission_from_arrival_to_its_score(board, api):
    def states():
        rows = api.get(f"boards/{board.slug}/submissions/").json()["results"]
        return {row["name"]: (row["state"], row["round"]) for row in rows}

    post(api, board, body(board, "good"))
    assert states() == {"good": ("waiting", None)}
    builders.play_round(board)
    post(api, board, body(board, "late"))
    assert states() == {"good": ("in_round", 1), "late": ("waiting", None)}
    snapshots.take_snapshot(board, board.owner)
    # On a public board, the team sees the scored reference, too.
    assert states() == {"human": ("scored", 1), "good": ("scored", 1), "late": ("waiting", None)}
    assert api.get(f"boards/{board.slug}/submissions/?state=waiting").json()["results"][0]["name"] == "late"
    number = Submission.objects.get(name="late").number
    assert api.post(f"boards/{board.slug}/submissions/{number}/withdraw/", {}).json()["state"] == "withdrawn"
    assert api.post(f"boards/{board.slug}/submissions/{number}/publish/", {}).status_code == 409


def test_others_see_only_scored_submissions_and_no_hidden_name():
    board, api = scored_board()
    post(api, board, body(board, "secret project", is_anonymous=True))
    hidden = post(api, board, body(board, "gone", is_anonymous=True)).json()["number"]
    builders.play_round(board, {"human": 1.5, "secret project": 0.5, "gone": 0.0, "good": 1, "weak": -1})
    snapshots.take_snapshot(board, board.owner)
    waiting = post(api, board, body(board, "not yet")).json()["number"]
    api.post(f"boards/{board.slug}/submissions/{hidden}/withdraw/", {})
    anybody = Api()
    for path in ("submissions/", "snapshots/latest/", "snapshots/2/", "rounds/", "", f"submissions/{hidden}/"):
        text = anybody.get(f"boards/{board.slug}/{path}").body.decode()
        assert "secret" not in text and "gone" not in text and "not yet" not in text, path
        assert not re.search(r'"(filename|sha256|study)"', text), path
    assert anybody.get(f"boards/{board.slug}/submissions/{waiting}/").status_code == 404
    assert anybody.get(f"boards/{board.slug}/submissions/?name=secret project").json()["results"] == []
    shown = anybody.get(f"boards/{board.slug}/submissions/").json()["results"]
    assert [row["name"] for row in shown if row["is_anonymous"]] == [
        "Submission 4",
        "Submission 5 (withdrawn)",
    ]
    assert all((row["team"], row["url"], row["description"]) == ("", "", "") for row in shown if row["is_anonymous"])
    # Its own team reads the name, and may publish it.
    own = api.get(f"boards/{board.slug}/submissions/?name=secret project").json()["results"][0]
    assert own["state"] == "scored"
    assert not api.post(f"boards/{board.slug}/submissions/{own['number']}/publish/", {}).json()["is_anonymous"]
    assert "secret project" in anybody.get(f"boards/{board.slug}/submissions/").body.decode()


def test_prompts_have_what_a_system_is_given_and_nothing_else(board, api):
    from studies.models import Prompt

    Prompt.objects.filter(study=board.template).update(attributes={"gold": "the answer"})
    first = api.get(f"boards/{board.slug}/prompts/?page_size=10").json()
    assert [row["prompt"] for row in first["results"]] == board.sample_keys[:10]
    assert set(first["results"][0]) == {"prompt", "text", "source", "domain", "language", "image"}
    following = first["next"].partition("/api/v1/")[2]
    assert [row["prompt"] for row in api.get(following).json()["results"]] == board.sample_keys[10:]


def test_only_the_prompts_of_the_subsample_are_to_be_answered():
    board = builders.open_board(sample_size=5)
    api = api_of_team(board)
    rows = api.get(f"boards/{board.slug}/prompts/").json()["results"]
    assert [row["prompt"] for row in rows] == board.sample_keys and len(rows) == 5
    assert post(api, board, body(board)).json()["n_outputs"] == 5
