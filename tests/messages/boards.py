"""The lines of what boards refuse over REST: a scenario sends a request, and gives the problem in its answer."""

from unittest import mock

from django.core.files.uploadedfile import SimpleUploadedFile

from boards.models import Board
from boards.services import boards, images, metric_tables, submissions
from studies.models import Batch, Job, Output, Study
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


def check_of(api, sent):
    """What the job says that checks sent images."""
    jobs.run_waiting_jobs()
    answer = api.get(f"boards/images/checks/{sent.json()['check']}/").json()
    return [Shown(one["message"]) for one in answer["errors"]]


def with_many_pixels():
    with mock.patch.object(images, "MIN_PIXELS_ALLOWED", 1), mock.patch.object(images, "PIXELS_PER_PROMPT", 1):
        board = builders.open_image_board()
        return check_of(*send_images(board, builders.images_zip(board)))


def over_limit(**columns):
    """A second submission of a team, where one is allowed."""

    def before(board, api):
        one = builders.submit(board, api.team, "first")
        one.board.submissions.filter(pk=one.pk).update(n_bytes=2**20)
        Board.objects.filter(pk=board.pk).update(**columns)

    return team_sends("submissions/", body, before=before)


def images_sent(row):
    """An archive with two images and a table of one row."""

    def scenario():
        table = f"prompt,image,empty\n{row}\n".encode()
        members = {"m.csv": table, "a.png": builders.png(1), "b.png": builders.png(2)}
        return check_of(*send_images(builders.open_image_board(), builders.zipped(members)))

    return scenario


def images_to_texts():
    board = builders.open_board()
    try:
        images.submit_images(board, builders.team_of(board)[0], "good", "a.zip", [])
    except ActionRefused as refused:
        return [Shown(str(refused))]


def second_check():
    board = builders.open_image_board()
    api, _ = send_images(board, builders.images_zip(board))
    return shown(send_images(board, builders.images_zip(board, 5), "other", api)[1])


def check_of_lost_file():
    board = builders.open_image_board()
    api, sent = send_images(board, builders.images_zip(board))
    job = Job.objects.get(code=sent.json()["check"])
    images.path_of_file(job.arguments["upload"]).unlink()
    return check_of(api, sent)


def with_changed_prompts():
    board = builders.open_board()
    api, sent = api_of_team(board), body(board)
    with mock.patch.object(submissions, "keys_to_answer", side_effect=[board.sample_keys, ["another"]]):
        return shown(api.post(f"boards/{board.slug}/submissions/", sent))


def opening(change=lambda template, owner: None, make=builders.rating_template, **columns):
    """Why a board cannot be opened, after its template was changed."""

    def scenario():
        owner = user()
        template = make(owner)
        change(template, owner)
        board = Board.objects.create(
            **{"slug": "tales", "title": "Tales", "template": template, "owner": owner} | columns
        )
        return [Shown(text) for text in boards.find_opening_problems(board)]

    return scenario


def settings_of(**changed):
    def change(template, owner):
        section = template.sections.get()
        section.settings |= changed
        section.save()

    return change


def with_another_kind(template, owner):
    section = builders.choice_template(owner).sections.get()
    section.study, section.position = template, 2
    section.save()


def with_chances(template, owner):
    section = builders.chance_template(owner).sections.get()
    section.study, section.position = template, 2
    section.save()


def with_one_group(template, owner):
    template.prompts.update(group="a report")


def with_images(alt=""):
    def change(template, owner):
        Output.objects.filter(system__study=template).update(text="", media="0" * 64 + ".webp", alt=alt)

    return change


def with_ready_made_batches(template, owner):
    Batch.objects.create(study=template, arm=template.arms.get(), number=1, origin="imported", key="b")


def says_refused(act, make=builders.open_board):
    def scenario():
        board = make()
        try:
            act(board)
        except ActionRefused as refused:
            return [Shown(str(refused))]

    return scenario


def puts_members():
    board = builders.open_board()
    sent = {"members": [{"user": "nobody", "role": "owner"}]}
    return shown(api_of(board.owner).send("PUT", f"boards/{board.slug}/members/", sent))


def closed_board():
    board = builders.open_board()
    return boards.close_board(board, board.owner)


def computing(names=(), make=builders.open_board):
    return says_refused(lambda board: metric_tables.request_metrics(board, board.owner, names), make)


def board_of_chances():
    owner = user()
    return builders.open_board(owner, builders.chance_template(owner), population="subsample")


SCORING, PROTOCOLS = "analysis/metrics", "analysis/protocols"
LINES = {
    f"{API}:put": [("is not a researcher of this site", "Send the name", puts_members)],
    f"{API}:post": [
        ("Only a researcher can create a board", "Send the token of a researcher", lambda: shown(api_of_team(builders.open_board()).post("boards/", {}))),
    ],
    f"{API}:perform": [
        ("cannot be withdrawn", "Close the board instead", member_sends("submissions/1/withdraw/", {})),
        ("so its name stays hidden", "Submit it again", team_sends("submissions/2/publish/", {}, before=withdrawn)),
    ],
    f"{API}:get_object": [
        ("This parameter is missing", "Send the number of a submission", team_sends("submissions/2/comparison/", None, "GET", submitted)),
        ("has no snapshot yet", "Wait until its first round is closed", team_sends("submissions/2/comparison/?baseline=2", None, "GET", submitted)),
    ],
    f"{API}:check_fields": [
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
    f"{SERVICES}:_read_images": [
        ("No row names the image “b.png”", "Add a row, or remove", images_sent("p000,a.png,")),
        ("pixels together", "Make them smaller", with_many_pixels),
    ],
    f"{SERVICES}:refuse_over_limits": [
        ("waiting submissions, and the board allows 1", "Wait until a round", over_limit(max_waiting_per_team=1)),
        ("and the board allows 1 MB", "Ask the board's owner", over_limit(max_megabytes_per_team=1)),
        ("within 24 hours, as many as the board allows", "Send the next one after", over_limit(max_daily_per_team=1)),
    ],
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
    f"{SERVICES}:open_board": [
        ("is open already", "You need not do anything", says_refused(lambda board: boards.open_board(board, board.owner))),
        ("cannot be opened again", "Make another board", says_refused(lambda board: boards.open_board(board, board.owner), closed_board)),
    ],
    f"{SERVICES}:close_board": [
        ("this one is closed", "You need not do anything", says_refused(lambda board: boards.close_board(board, board.owner), closed_board)),
    ],
    f"{SERVICES}:find_opening_problems": [
        ("is not a draft any more", "Clone it", opening(lambda template, owner: setattr(template, "state", Study.State.CLOSED))),
        ("has ready-made batches", "Remove them", opening(with_ready_made_batches)),
        ("Ratings from preferences hold", "Choose the subsample", opening(make=builders.choice_template)),
        ("chances about whole systems", "Untick “control for style”", opening(make=builders.chance_template, population="subsample", controls_style=True)),
        ("has no prompt that a system can answer", "Import prompts", opening(lambda template, owner: Output.objects.filter(system__study=template).delete())),
        ("has 13 prompts, but the template has only 12", "Choose fewer", opening(sample_size=13)),
        ("have images, but teams submit texts", "Choose images", opening(with_images())),
        ("belong to 1 group; scores for prompts like these", "Import more groups", opening(with_one_group)),
    ],
    f"{SERVICES}:_find_problems_of_kind": [
        ("have images, but teams submit texts", "Choose images", opening(with_images())),
        ("have texts, but teams submit images", "Choose texts", opening(output_kind="image")),
        ("have descriptions, and submitted ones have none", "Remove the descriptions", opening(with_images("a cat"), output_kind="image")),
        ("are those of texts", "Untick “control for style”", opening(with_images(), output_kind="image", controls_style=True)),
        (f"at most {boards.MAX_IMAGES:,} images", "Choose a smaller subsample", opening(with_images(), output_kind="image", sample_size=boards.MAX_IMAGES + 1)),
    ],
    f"{SCORING}:find_scoring_problem": [
        ("No live section gives scores", "Add ratings", opening(lambda template, owner: template.sections.update(purpose="training"))),
        ("sections with scores and sections with preferences", "Keep one kind", opening(with_another_kind)),
        ("about pairs of outputs and about whole systems", "Keep one of both", opening(with_chances, builders.choice_template, population="subsample")),
        ("Section 1 has no question", "Add one", opening(lambda template, owner: template.sections.get().questions.all().delete())),
    ],
    f"{PROTOCOLS}/relative:find_problem": [
        ("does not show each system with the reference", "Choose these pairs", opening(settings_of(pairs="all"), builders.relative_template)),
    ],
    f"{PROTOCOLS}/two_choice:find_problem": [
        ("have a stopping rule", "Choose no rule", opening(settings_of(stopping="anytime"), builders.choice_template)),
        ("have a labelling strategy", "Choose none", opening(settings_of(strategy="one"), builders.choice_template)),
    ],
    f"{PROTOCOLS}/humanlike:find_problem": [
        ("has no human system", "Add one", opening(make=lambda owner: builders.template_of("humanlike", owner, systems=("weak",)))),
    ],
    f"{SERVICES}:_newest_snapshot": [("has no results yet", "Wait until its first round is closed", computing())],
    f"{SERVICES}:request_metrics": [
        ("No metric is chosen", "Choose one or more", computing(make=lambda: scored_board()[0])),
        ("chances about whole systems", "Use a board of another protocol", computing(make=board_of_chances)),
    ],
    f"{SERVICES}:refuse_unless_open": [
        ("The board is not open yet", "Wait until its owner opens it", team_sends("submissions/", {"name": "good", "outputs": [{"prompt": "a", "output": "b"}]}, make=draft_board)),
        ("The board is closed", "Ask its owner", team_sends("submissions/", body, before=lambda board, api: boards.close_board(board, board.owner))),
    ],
}  # fmt: skip
