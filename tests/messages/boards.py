"""The lines of what boards refuse over REST: a scenario sends a request, and gives the problem in its answer."""

from unittest import mock

from django.core.files.uploadedfile import SimpleUploadedFile

from boards.models import Board
from boards.services import boards, images, labels, metric_tables, submissions
from studies.models import Batch, Job, Output, Study
from studies.services import jobs
from studies.services.lifecycle import ActionRefused
from tests.analysis.api.rest import api_of
from tests.boards import builders
from tests.boards.api.rest import api_of_team, body, scored_board
from tests.builders import user
from tests.messages.lines import At, Shown
from tests.messages.rest.scenarios import shown

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


def send_images(board, data, name="good", api=None, **fields):
    api = api or api_of_team(board)
    address = f"/api/v1/boards/{board.slug}/submissions/"
    form = {"name": name, "file": SimpleUploadedFile("a.zip", data), **fields}
    return api, api.client.post(address, form, headers=api.headers)


def check_of(api, sent):
    """What the job says that checks sent images."""
    jobs.run_waiting_jobs()
    answer = api.get(f"boards/images/checks/{sent.json()['check']}/").json()
    return [Shown(one["message"]) for one in answer["errors"]]


def with_mapped_columns():
    board = builders.open_image_board()
    return shown(send_images(board, builders.images_zip(board), columns=["prompt_key=id"])[1])


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


def writing_labels(file_format="csv", make=builders.open_board):
    return says_refused(lambda board: labels.request_labels(board, board.owner, file_format), make)


def board_of_chances():
    owner = user()
    return builders.open_board(owner, builders.chance_template(owner), population="subsample")


BOARDS = {
    "This is not a researcher": puts_members,
    "Only a researcher": lambda: shown(api_of_team(builders.open_board()).post("boards/", {})),
    "A system of the template": member_sends("submissions/1/withdraw/", {}),
    "The submission is withdrawn": team_sends("submissions/2/publish/", {}, before=withdrawn),
    "This parameter is missing": team_sends("submissions/2/comparison/", None, "GET", submitted),
    "The board has no snapshot": team_sends("submissions/2/comparison/?baseline=2", None, "GET", submitted),
    "There is no study": lambda: shown(
        api_of(user()).post("boards/", {"slug": "a", "title": "A", "template": MISSING})
    ),
    "Only members of the board": team_sends("rounds/", {}),
    "Your role in this board": member_sends("rounds/", {}, "viewer"),
    "The key belongs": team_sends("submissions/", lambda board: body(board, team="Other")),
    "The table of a ZIP has": At("columns", with_mapped_columns),
    "A member submits": member_sends("submissions/", body),
    "The form has no file": form(),
    "There are no outputs": team_sends("submissions/", {"name": "good"}),
    "Only the team": of_reference,
    "Snapshot … has no score": comparing_unscored,
    "The file is larger": too_large,
    "The key of the prompt": rows({"prompt": " ", "output": "a"}),
    "is not a prompt": rows({"prompt": "zzz", "output": "a"}),
    "…The prompt “…” already": rows({"prompt": "p000", "output": "a"}),
    "prompt has no output": without(1),
    "prompts have no output": without(7),
    "This board takes images": team_sends("submissions/", body, make=builders.open_image_board),
    "This board takes texts": images_to_texts,
    "No row names": images_sent("p000,a.png,"),
    "The images have more than … pixels": with_many_pixels,
    "This team has … waiting": over_limit(max_waiting_per_team=1),
    "The files of this team": over_limit(max_megabytes_per_team=1),
    "This team sent": over_limit(max_daily_per_team=1),
    "There is no image": images_sent("p000,,"),
    "The row is marked as empty, but it has an image": images_sent("p000,a.png,yes"),
    "heval is checking": second_check,
    "The uploaded file": check_of_lost_file,
    "The board's prompts": with_changed_prompts,
    "The output is empty": rows(p000={"output": ""}),
    "The row is marked as empty, but it has an output": rows(p000={"empty": True}),
    "The board is open": says_refused(lambda board: boards.open_board(board, board.owner)),
    "The board is closed and cannot be opened": says_refused(
        lambda board: boards.open_board(board, board.owner), closed_board
    ),
    "The template has test questions": says_refused(
        lambda board: boards.delete_rules_about_test_questions(board, board.owner)
    ),
    "Only an open": says_refused(lambda board: boards.close_board(board, board.owner), closed_board),
    "The template is not a draft": opening(lambda template, owner: setattr(template, "state", Study.State.CLOSED)),
    "The template has ready-made": opening(with_ready_made_batches),
    "Ratings from preferences": opening(make=builders.choice_template),
    "Annotators state chances about whole systems, so length": opening(
        make=builders.chance_template, population="subsample", controls_style=True
    ),
    "The template has no prompt": opening(
        lambda template, owner: Output.objects.filter(system__study=template).delete()
    ),
    "The subsample has … prompts": opening(sample_size=13),
    "find_opening_problems: Systems of the template": opening(with_images()),
    "The prompts belong": opening(with_one_group),
    "_find_problems_of_kind: Systems of the template have images": opening(with_images()),
    "Systems of the template have texts": opening(output_kind="image"),
    "Images of the template": opening(with_images("a cat"), output_kind="image"),
    "Length and format": opening(with_images(), output_kind="image", controls_style=True),
    "An archive has at most … images": opening(with_images(), output_kind="image", sample_size=boards.MAX_IMAGES + 1),
    "No live section": opening(lambda template, owner: template.sections.update(purpose="training")),
    "The template has sections": opening(with_another_kind),
    "The template asks": opening(with_chances, builders.choice_template, population="subsample"),
    "Section … has no question": opening(lambda template, owner: template.sections.get().questions.all().delete()),
    "The relative scale": opening(settings_of(pairs="all"), builders.relative_template),
    "The two choices have a stopping": opening(settings_of(stopping="anytime"), builders.choice_template),
    "The two choices have a labelling": opening(settings_of(strategy="one"), builders.choice_template),
    "Annotators compare human": opening(make=lambda owner: builders.template_of("humanlike", owner, systems=("weak",))),
    "The board has no results": computing(),
    "No metric is chosen": computing(make=lambda: scored_board()[0]),
    "Annotators state chances about whole systems, so there is no score": computing(make=board_of_chances),
    "Annotators state chances about whole systems, so there is no label": writing_labels(make=board_of_chances),
    "No round is closed yet. Wait": writing_labels(),
    "is not a format": writing_labels("xml"),
    "The board is not open": team_sends(
        "submissions/", {"name": "good", "outputs": [{"prompt": "a", "output": "b"}]}, make=draft_board
    ),
    "The board is closed and takes": team_sends(
        "submissions/", body, before=lambda board, api: boards.close_board(board, board.owner)
    ),
}
