"""The lines of what boards refuse over REST: a scenario sends a request, and gives the problem in its answer."""

from unittest import mock

from django.core.files.uploadedfile import SimpleUploadedFile

from boards.models import Board
from boards.services import boards, images, submissions
from studies.models import Job
from studies.services import jobs
from studies.services.lifecycle import ActionRefused
from tests.analysis.api.rest import api_of
from tests.boards import builders
from tests.boards.api.rest import api_of_team, body, scored_board
from tests.builders import user
from tests.messages.lines import Shown
from tests.messages.rest.scenarios import shown

API, SERVICES = "boards/api", "boards/services"
MISSING = "00000000-0000-4000-8000-000000000000"


def team_sends(path, sent, method="POST", before=None, make=builders.open_board):
    def scenario():
        board = make()
        api = api_of_team(board)
        if before is not None:
            before(board, api)
        return shown(api.send(method, f"boards/{board.slug}/{path}", sent(board) if callable(sent) else sent))

    return scenario


def member_sends(path, sent, role="owner", make=builders.open_board):
    def scenario():
        board = make()
        who = board.owner if role == "owner" else builders.add_member(board, role, role).user
        return shown(api_of(who).send("POST", f"boards/{board.slug}/{path}", sent(board) if callable(sent) else sent))

    return scenario


def form(file=None):
    """A form with a file, or without one."""

    def scenario():
        board = builders.open_board()
        api = api_of_team(board)
        sent = {"name": "good"} | ({} if file is None else {"file": SimpleUploadedFile("a.jsonl", file)})
        address = f"/api/v1/boards/{board.slug}/submissions/"
        return shown(api.client.post(address, sent, headers=api.headers))

    return scenario


def rows(*sent, **changed):
    """A submission with these rows beside the right ones."""

    def make_body(board):
        one = body(board, "good")
        one["outputs"] = [row | changed.get(row["prompt"], {}) for row in one["outputs"]] + list(sent)
        return one

    return team_sends("submissions/", make_body)


def without(n):
    return team_sends("submissions/", lambda board: body(board, "good") | {"outputs": body(board)["outputs"][n:]})


def submitted(board, api, **options):
    return builders.submit(board, api.team, "good", **options)


def withdrawn(board, api):
    submissions.withdraw(submitted(board, api), by=None)


def too_large():
    with mock.patch.object(submissions, "MAX_FILE_BYTES", 100):
        return form(b"x" * 101)()


def of_reference():
    """A team acts on another one's submission."""
    board, _ = scored_board()
    other = api_of_team(board, "Other")
    return shown(other.post(f"boards/{board.slug}/submissions/2/publish/", {}))


def draft_board():
    owner = user()
    columns = {"slug": "tales", "title": "Tales", "template": builders.rating_template(owner)}
    return boards.create_board(Board(**columns), owner)


def comparing_unscored():
    board, api = scored_board()
    builders.submit(board, api.team, "late")
    return shown(api.get(f"boards/{board.slug}/submissions/4/comparison/?baseline=2"))


def send_images(board, data, name="good", api=None):
    api = api or api_of_team(board)
    address = f"/api/v1/boards/{board.slug}/submissions/"
    form = {"name": name, "file": SimpleUploadedFile("a.zip", data)}
    return api, api.client.post(address, form, headers=api.headers)


def images_sent(row):
    """An archive with two images and a table of one row."""

    def scenario():
        table = f"prompt,image,empty\n{row}\n".encode()
        members = {"m.csv": table, "a.png": builders.png(1), "b.png": builders.png(2)}
        return shown(send_images(builders.open_image_board(), builders.zipped(members))[1])

    return scenario


def images_to_texts():
    board = builders.open_board()
    try:
        images.submit_images(board, builders.team_of(board)[0], "good", "a.zip", [])
    except ActionRefused as refused:
        return [Shown(str(refused))]


def second_check():
    board = builders.open_image_board()
    with mock.patch.object(images, "AT_ONCE_IMAGES", 0):
        api, _ = send_images(board, builders.images_zip(board))
        return shown(send_images(board, builders.images_zip(board, 5), "other", api)[1])


def check_of_lost_file():
    board = builders.open_image_board()
    with mock.patch.object(images, "AT_ONCE_IMAGES", 0):
        api, sent = send_images(board, builders.images_zip(board))
    job = Job.objects.get(code=sent.json()["check"])
    images.path_of_file(job.arguments["upload"]).unlink()
    jobs.run_waiting_jobs()
    answer = api.get(f"boards/{board.slug}/checks/{job.code}/").json()
    return [Shown(one["message"]) for one in answer["errors"]]


def with_changed_prompts():
    board = builders.open_board()
    api, sent = api_of_team(board), body(board)
    with mock.patch.object(submissions, "keys_to_answer", side_effect=[board.sample_keys, ["another"]]):
        return shown(api.post(f"boards/{board.slug}/submissions/", sent))


LINES = {
    f"{API}:post": [
        ("Only a researcher can create a board", "Send the token of a researcher", lambda: shown(api_of_team(builders.open_board()).post("boards/", {}))),
        ("cannot be withdrawn", "Close the board instead", member_sends("submissions/1/withdraw/", {})),
        ("so its name stays hidden", "Submit it again", team_sends("submissions/2/publish/", {}, before=withdrawn)),
    ],
    f"{API}:get": [
        ("This parameter is missing", "Send the number of a submission", team_sends("submissions/2/comparison/", None, "GET", submitted)),
        ("has no snapshot yet", "Wait until its first round is closed", team_sends("submissions/2/comparison/?baseline=2", None, "GET", submitted)),
    ],
    f"{API}:validated": [
        (f"There is no study {MISSING}", "Send the code of your draft", lambda: shown(api_of(user()).post("boards/", {"slug": "a", "title": "A", "template": MISSING}))),
    ],
    f"{API}:check": [
        ("Only members of the board", "Ask its owner for a role", team_sends("rounds/", {})),
        ("Your role in this board (viewer)", "Ask an owner for another role", member_sends("rounds/", {}, "viewer")),
    ],
    f"{API}:_team": [
        ("belongs to another team", "Leave this field out", team_sends("submissions/", lambda board: body(board, team="Other"))),
        ("A member submits for a team", "Send the name of a team", member_sends("submissions/", body)),
    ],
    f"{API}:_uploaded_file": [("The form has no file", "Send the outputs as a file", form())],
    f"{API}:_sent_rows": [("There are no outputs", "Send a list", team_sends("submissions/", {"name": "good"}))],
    f"{API}:_row_errors": [
        ("more errors", "Correct these first", rows(*({"prompt": f"x{n}", "output": "a"} for n in range(150)))),
    ],
    f"{API}:require_own_team": [("Only the team of the submission", "Send the key of the team", of_reference)],
    f"{SERVICES}:compare_submissions": [("has no score of submission 4", "Choose a scored one", comparing_unscored)],
    f"{SERVICES}:read_outputs_file": [
        ("The file is larger than", "Send a smaller file", too_large),
    ],
    f"{SERVICES}:take": [
        ("The key of the prompt is empty", "Enter the key", rows({"prompt": " ", "output": "a"})),
        ("“zzz” is not a prompt of this board", "or correct the key", rows({"prompt": "zzz", "output": "a"})),
        ("already has an output in row 1", "Keep one of the two", rows({"prompt": "p000", "output": "a"})),
    ],
    f"{SERVICES}:report_missing": [
        ("1 prompt has no output", "Add one for each", without(1)),
        ("7 prompts have no output", "Add one for each", without(7)),
    ],
    f"{SERVICES}:check_fields": [
        ("This board takes images", "Send a ZIP file", team_sends("submissions/", body, make=builders.open_image_board)),
        ("This board takes texts", "Send CSV or JSON lines", images_to_texts),
    ],
    f"{SERVICES}:_read_images": [("No row names the image “b.png”", "Add a row, or remove", images_sent("p000,a.png,"))],
    f"{SERVICES}:_rows_of_table": [
        ("There is no image", "write “yes” in the column “empty”", images_sent("p000,,")),
        ("is marked as empty, but it has an image", "Remove the mark or the image", images_sent("p000,a.png,yes")),
    ],
    f"{SERVICES}:_find_or_submit_job": [("checking another file", "Wait until it has finished", second_check)],
    f"{SERVICES}:run_check": [("no longer exists", "Upload it again", check_of_lost_file)],
    f"{SERVICES}:store_submission": [("prompts have changed while", "Get the prompts again", with_changed_prompts)],
    f"{SERVICES}:_output_text": [
        ("The output is empty", "write “yes” in the column “empty”", rows(p000={"output": ""})),
        ("is marked as empty, but", "Remove the mark or the output", rows(p000={"empty": True})),
    ],
    f"{SERVICES}:refuse_unless_open": [
        ("The board is not open yet", "Wait until its owner opens it", team_sends("submissions/", {"name": "good", "outputs": [{"prompt": "a", "output": "b"}]}, make=draft_board)),
        ("The board is closed", "Ask its owner", team_sends("submissions/", body, before=lambda board, api: boards.close_board(board, board.owner))),
    ],
}  # fmt: skip
