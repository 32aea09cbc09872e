"""Submissions of images: one ZIP, all its faults at once, nothing half-stored, and rounds that show the same files."""

import io
import json
import os
import time
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management.base import CommandError
from django.db import IntegrityError, transaction
from django.test import Client

from boards.models import Board, Submission, SubmittedOutput
from boards.services import boards, images, rounds, snapshots, submissions
from boards.services.submissions import SubmissionRefused
from studies.imports.image_storage import delete_old_orphaned_images
from studies.models import Job, Output
from studies.services import jobs
from studies.services.lifecycle import ActionRefused
from studies.stimuli.images import encode_image, store_image
from tests.boards import builders
from tests.boards.submitting import connected, run_submit

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.MEDIA_ROOT.mkdir()
    return settings.MEDIA_ROOT


def files(folder):
    return sorted(path.name for path in folder.glob("??/*"))


def faults(board, team, data):
    found = builders.checked_images(board, team, data)
    assert isinstance(found, list)
    return found


def refused_at_once(board, team, data):
    with pytest.raises(SubmissionRefused) as refused:
        images.submit_images(board, team, "good", "a.zip", [data])
    return [(one.row, one.text) for one in refused.value.problems]


@pytest.fixture
def board():
    return builders.open_image_board()


@pytest.fixture
def team(board):
    return builders.team_of(board)[0]


def test_names_of_files_are_the_keys_of_prompts(board, team, media):
    data = builders.images_zip(board)
    one = builders.checked_images(board, team, data)
    assert one.n_bytes == len(data) and one.n_outputs == 3 and one.outputs.exclude(media="").count() == 3
    assert sorted(one.outputs.values_list("media", flat=True)) == files(media)
    assert images.submit_images(board, team, "good", "b.zip", [data]) == (one, False)
    assert not list((media.parent / "uploads").glob("*.data"))


def test_a_table_names_images_and_empty_outputs(board, team):
    table = b"prompt,image,empty\np000,x/one.png,\np001,x/two.png,\np002,,yes\n"
    data = builders.zipped({"m.csv": table, "x/one.png": builders.png(1), "x/two.png": builders.png(2)})
    one = builders.checked_images(board, team, data)
    assert list(one.outputs.filter(is_empty=True).values_list("prompt_key", flat=True)) == ["p002"]


def test_all_faults_are_named_at_once_and_nothing_is_stored(board, team, media):
    data = builders.zipped(
        {
            "p000.png": builders.png(1),
            "b/p000.webp": builders.png(2),
            "p001.png": b"no image",
            "zzz.png": builders.png(3),
        }
    )
    found = " | ".join(text for _, text in faults(board, team, data))
    for words in (
        "already has an output in “b/p000.webp”",
        "“p001.png”: This is not an image of a known kind",
        "“zzz.png”: “zzz” is not a prompt of this board",
        "1 prompt has no output: “p002”",
    ):
        assert words in found, found
    assert not files(media) and not Submission.objects.filter(team=team).exists()
    assert not list((media.parent / "uploads").glob("*.data"))


def test_faults_of_a_table_have_their_row(board, team):
    table = b"prompt,image,empty\np000,one.png,\np001,,\np002,one.png,yes\np000,gone.png,\n"
    data = builders.zipped({"m.csv": table, "one.png": builders.png(1), "more.png": builders.png(2)})
    found = faults(board, team, data)
    assert {row for row, _ in found} == {None, 3, 4, 5}
    assert any("No row names the image “more.png”" in text for _, text in found)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"../p000.png": b""}, "leads out of the archive"),
        ({"p000.exe": b"x"}, "neither a table nor a PNG"),
        ({"a.csv": b"prompt,image\n", "b.csv": b"prompt,image\n"}, "exactly one table"),
        ({"p000.png": b"\0" * 3_000_000}, "-fold when unpacked"),
    ],
)
def test_an_unsafe_archive_is_refused_before_anything_is_read(board, team, members, words):
    assert any(words in text for _, text in refused_at_once(board, team, builders.zipped(members)))


def test_what_is_no_archive_is_refused(board, team):
    assert "is not a zip archive" in refused_at_once(board, team, b"prompt,output\n")[0][1]


def test_a_board_takes_one_kind_of_outputs(board, team):
    with pytest.raises(ActionRefused, match="takes images"):
        submissions.submit_outputs(board, team, "texts", "a.jsonl", b"{}")
    other = builders.open_board(board.owner)
    with pytest.raises(ActionRefused, match="takes texts"):
        images.submit_images(other, builders.team_of(other)[0], "good", "a.zip", [builders.images_zip(board)])


def test_every_file_is_checked_by_a_job(board, team, media):
    data = builders.images_zip(board)
    job, is_new = images.submit_images(board, team, "good", "a.zip", [data], request_token="t")
    assert isinstance(job, Job) and is_new and not Submission.objects.filter(team=team).exists()
    assert images.submit_images(board, team, "good", "a.zip", [data], request_token="t") == (job, False)
    with pytest.raises(ActionRefused, match="checking another file"):
        images.submit_images(board, team, "other", "a.zip", [data])
    assert jobs.run_waiting_jobs() == 1
    job.refresh_from_db()
    one = Submission.objects.get(team=team)
    assert (job.result, job.done, job.total) == ({"submission": one.number}, 3, 3), job.error
    assert images.run_check(job, lambda *_: None) == {"submission": one.number}
    assert images.submit_images(board, team, "good", "a.zip", [data], request_token="t") == (one, False)
    assert not list((media.parent / "uploads").glob("*.data"))


def test_a_job_lists_what_is_wrong(board, team, media):
    job, _ = images.submit_images(board, team, "good", "a.zip", [builders.zipped({"p000.png": b"no image"})])
    jobs.run_waiting_jobs()
    job.refresh_from_db()
    assert job.result["n_problems"] == 2 and "2 prompts have no output" in job.result["problems"][0][2]
    assert not files(media) and not Submission.objects.filter(team=team).exists()


def test_images_that_wait_for_a_round_are_kept_and_rounds_show_the_same_files(board, team, media):
    one = builders.checked_images(board, team, builders.images_zip(board))
    stored = files(media)
    for path in media.glob("??/*"):
        os.utime(path, (0, 0))
    assert delete_old_orphaned_images(time.time()) == 0 and files(media) == stored
    study = rounds.create_round(board, board.owner).study
    shown = Output.objects.filter(system__study=study, system__name="good").values_list("media", flat=True)
    assert sorted(shown) == sorted(one.outputs.values_list("media", flat=True))
    assert files(media) == stored


@pytest.mark.parametrize(
    ("columns", "words"),
    [({"text": "A text.", "media": ""}, "Systems of the template have texts"), ({"alt": "A cat"}, "have descriptions")],
)
def test_a_template_of_another_kind_is_refused(columns, words):
    template = builders.rating_template(builders.user(), prompts=3)
    Output.objects.update(**{"text": "", "media": "0" * 64 + ".webp"} | columns)
    board = Board(slug="images", title="Images", template=template, output_kind="image")
    assert any(words in text for text in boards.find_opening_problems(boards.create_board(board, template.owner)))


@pytest.mark.only_on("postgresql")
def test_postgresql_refuses_a_mix(board, team):
    one = builders.checked_images(board, team, builders.images_zip(board))
    with pytest.raises(IntegrityError), transaction.atomic():
        SubmittedOutput.objects.bulk_create([SubmittedOutput(submission=one, prompt_key="p", text="A text.")])
    with pytest.raises(IntegrityError), transaction.atomic():
        Board.objects.filter(pk=board.pk).update(output_kind="text")


def test_a_zip_is_sent_over_rest_and_by_the_page_and_a_job_is_followed(board, client):
    key = builders.team_of(board, "Team B")[1]
    data = builders.images_zip(board)
    headers = {"Authorization": f"Token {key}"}
    address = f"/api/v1/boards/{board.slug}/"

    def send(name):
        form = {"name": name, "file": SimpleUploadedFile("a.zip", data)}
        return client.post(f"{address}submissions/", form, headers=headers)

    sent = send("large")
    assert sent.status_code == 202 and sent.json()["submission"] is None
    check = f"{address}checks/{sent.json()['check']}/"
    other = builders.team_of(board, "Team C")[1]
    assert client.get(check, headers={"Authorization": f"Token {other}"}).status_code == 404
    jobs.run_waiting_jobs()
    assert client.get(check, headers=headers).json()["submission"] == Submission.objects.get(name="large").number
    assert send("large").status_code == 200
    page = f"/boards/{board.slug}/team/{key}/"
    bad = SimpleUploadedFile("a.zip", builders.zipped({f"{n}.png": b"x" for n in range(3)}))
    answer = client.post(page, {"name": "bad", "file": bad})
    waiting = client.get(answer["Location"])
    assert waiting["Refresh"] == "3" and "heval is checking" in waiting.content.decode()
    assert "heval is checking" in client.get(page).content.decode()
    jobs.run_waiting_jobs()
    text = client.get(answer["Location"]).content.decode()
    assert "Nothing was stored" in text and "“0” is not a prompt of this board" in text and 'value="bad"' in text


def test_the_body_of_a_request_may_be_the_zip_alone(board, monkeypatch, client):
    data = builders.images_zip(board)
    headers = {"Authorization": f"Token {builders.team_of(board, 'Team B')[1]}"}

    def send(query, body=data):
        address = f"/api/v1/boards/{board.slug}/submissions/{query}"
        return client.post(address, body, content_type="application/zip", headers=headers)

    stored = send("?name=good&is_anonymous=true")
    jobs.run_waiting_jobs()
    one = Submission.objects.get(name="good")
    assert (stored.status_code, one.is_anonymous, one.n_outputs) == (202, True, 3)
    assert send("?name=good").status_code == 200
    refused = {query: send(query).json()["errors"] for query in ("", "?name=", "?name=x&colour=red", "?name=x&url=%00")}
    assert [errors[0]["field"] for errors in refused.values()] == ["name", "name", "colour", "url"]
    assert "is not a zip archive" in send("?name=x", b"no").json()["errors"][0]["message"]
    monkeypatch.setattr("boards.api.base.MAX_ARCHIVE_BYTES", len(data) - 1)
    assert send("?name=x").status_code == 413
    monkeypatch.undo()
    assert send("?name=large").status_code == 202
    texts = builders.open_board(slug="texts")
    headers = {"Authorization": f"Token {builders.team_of(texts)[1]}"}
    answer = client.post("/api/v1/boards/texts/submissions/?name=x", data, "application/zip", headers=headers)
    assert answer.status_code == 409 and "takes texts" in answer.json()["detail"]
    wrong = client.post("/api/v1/boards/texts/submissions/?name=x", {}, "application/json", headers=headers)
    assert wrong.status_code == 400 and wrong.json()["errors"][0]["field"] == "name"


def test_the_command_waits_until_a_job_has_checked_the_images(board, monkeypatch, tmp_path):
    monkeypatch.setenv("HEVAL_TOKEN", builders.team_of(board, "Team B")[1])
    good, bad = tmp_path / "good.zip", tmp_path / "bad.zip"
    good.write_bytes(builders.images_zip(board))
    bad.write_bytes(builders.zipped({f"{key}.png": b"x" for key in board.sample_keys}))
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 2:
            jobs.run_waiting_jobs()

    with connected(sleep=sleep):
        code, printed = run_submit(board.slug, good)
    stored = Submission.objects.get(name="good")
    assert (code, slept) == (0, [3, 3]) and "The site checks the images." in printed
    assert f"Submission {stored.number} “good” is stored: 3 outputs." in printed
    with connected(sleep=lambda seconds: jobs.run_waiting_jobs()), pytest.raises(CommandError) as refused:
        run_submit(board.slug, bad)
    assert "Nothing was stored." in str(refused.value) and "p000" in str(refused.value)
    assert not Submission.objects.filter(name="bad").exists()
    other = tmp_path / "other.zip"
    other.write_bytes(builders.images_zip(board, 7))
    with connected(), pytest.raises(CommandError, match="has not ended yet") as late:
        run_submit(board.slug, other, "--timeout", "1e-9")
    assert late.value.returncode == 12


@pytest.mark.slow
def test_example_images_hide_what_the_page_hides(board, team, client):
    Board.objects.filter(pk=board.pk).update(shows_examples=True)
    for number, name in enumerate(("good", "weak")):
        builders.checked_images(
            board, team, builders.images_zip(board, 1 + 90 * number), name, is_anonymous=name == "weak"
        )
    round_one = rounds.open_round(board, board.owner)
    address = f"/boards/{board.slug}/examples/1/{{}}.webp"
    assert client.get(address.format(1)).status_code == 404
    builders.finish(round_one.study)
    snapshots.take_snapshot(board, board.owner)
    page = client.get(f"/boards/{board.slug}/examples/").content.decode()
    assert 'alt="Image by good for prompt 1"' in page and "weak" not in page
    assert [client.get(address.format(n)).status_code for n in (1, 2, 3, "prompt")] == [200, 404, 404, 404]
    assert client.get(address.format(1))["Content-Type"] == "image/webp"
    submissions.withdraw(Submission.objects.get(name="good"), by=None)
    assert client.get(address.format(1)).status_code == 404


def test_teams_download_the_images_of_prompts_and_nothing_else(media):
    template = builders.rating_template(builders.user(), systems=(), prompts=3, m=3)
    image = encode_image(builders.png(1))
    store_image(media, image)
    template.prompts.filter(key="p001").update(media=image.name)
    board = builders.open_board(template.owner, template, output_kind="image")
    client, page = Client(), f"/boards/tales/team/{builders.team_of(board)[1]}/"
    assert "prompts.zip" in client.get(page).content.decode()
    archive = zipfile.ZipFile(io.BytesIO(b"".join(client.get(f"{page}prompts.zip").streaming_content)))
    rows = [json.loads(line) for line in archive.read("prompts.jsonl").splitlines()]
    assert [row["image"] for row in rows] == ["", f"images/{image.name}", ""]
    assert archive.read(rows[1]["image"]) == image.data and len(archive.namelist()) == 2
    headers = {"Authorization": f"Token {page.split('/')[4]}"}
    listed = client.get("/api/v1/boards/tales/prompts/", headers=headers).json()["results"]
    assert [row["image"] for row in listed] == ["", f"images/{image.name}", ""]
    same = client.get("/api/v1/boards/tales/prompts/archive/", headers=headers)
    assert zipfile.ZipFile(io.BytesIO(b"".join(same.streaming_content))).namelist() == archive.namelist()
    assert client.get("/api/v1/boards/tales/prompts/archive/").status_code == 401


def decoded(monkeypatch):
    """The images that are decoded from now on."""
    seen = []
    original = images.ImportedImages.stored_name
    monkeypatch.setattr(
        images.ImportedImages, "stored_name", lambda self, member: seen.append(member) or original(self, member)
    )
    return seen


def test_no_request_decodes_an_image_however_small(board, team, monkeypatch, client):
    seen = decoded(monkeypatch)
    key = builders.team_of(board, "Team B")[1]
    headers = {"Authorization": f"Token {key}"}
    data = builders.images_zip(board)
    form = {"name": "by rest", "file": SimpleUploadedFile("a.zip", data)}
    assert client.post(f"/api/v1/boards/{board.slug}/submissions/", form, headers=headers).status_code == 202
    jobs.run_waiting_jobs()
    n = len(seen)
    form = {"name": "by page", "file": SimpleUploadedFile("a.zip", data)}
    assert "/checks/" in client.post(f"/boards/{board.slug}/team/{key}/", form)["Location"]
    address = f"/api/v1/boards/{board.slug}/submissions/?name=alone"
    assert client.post(address, data, content_type="application/zip", headers=headers).status_code == 409
    assert n == len(seen) == 3


@pytest.mark.parametrize("cut", [0, 30], ids=["good", "damaged"])
def test_pixels_are_counted(board, team, monkeypatch, media, cut):
    monkeypatch.setattr(images, "MIN_PIXELS_ALLOWED", 20)
    monkeypatch.setattr(images, "PIXELS_PER_PROMPT", 10)
    seen = decoded(monkeypatch)
    # Three images of 16 pixels, and 30 are allowed.
    sent = {f"{key}.png": builders.png(place)[: -cut or None] for place, key in enumerate(board.sample_keys)}
    found = faults(board, team, builders.zipped(sent))
    assert any("more than 30 pixels together" in text for _, text in found), found
    assert len(seen) == 2 and not files(media)
