"""A small board with a rating template, for tests."""

import io
import json
import random
import re
import zipfile

from annotators.models import Recruitment
from annotators.participation.simulate import CrowdSettings, record_simulated_answers
from boards import access
from boards.models import Board, BoardMember
from boards.services import boards, images, rounds, submissions
from studies.models import Question, Section
from studies.protocols import REGISTRY
from studies.services import jobs, lifecycle
from tests.builders import add_section, draft_study, user

STRENGTHS = {"human": 1.5, "weak": -1.5, "good": 1.0, "middle": 0.0}


def rating_template(owner, *, prompts=12, m=6, systems=("human",), reward="1.00", shown="one", keys=("overall",)):
    """A draft that rates one output per page on five points, with a human reference."""
    template = draft_study(systems=systems, prompts=prompts, owner=owner, target_n=4, reward=reward)
    section = Section.objects.create(
        study=template, position=1, protocol="rating", m=m, settings={"scores": "unit", "shown": shown}
    )
    for position, key in enumerate(keys, 1):
        Question.objects.create(
            section=section,
            position=position,
            key=key,
            text=f"How good is text {{label}} ({key})?",
            scale={"kind": "likert", "labels": ["bad", "poor", "fair", "good", "great"]},
        )
    return template


def choice_template(owner, *, prompts=12, m=6, systems=("human",), ties=True):
    """A draft that asks which of two outputs is better, with ties."""
    template = draft_study(systems=systems, prompts=prompts, owner=owner, target_n=4, reward="1.00")
    section = Section.objects.create(
        study=template,
        position=1,
        protocol="two_choice",
        m=m,
        settings={"pairs": "all", "allows_tie": ties, "stopping": "none", "strategy": "any"},
    )
    Question.objects.create(
        section=section,
        position=1,
        key="overall",
        text="Which text is better?",
        help="The better text is clearer.",
        scale={"kind": "output"},
    )
    return template


def chance_template(owner, *, prompts=12, m=6, systems=("human",)):
    """A draft of SPA. Its question names no systems: each round asks about all pairs of its own."""
    template = draft_study(systems=systems, prompts=prompts, owner=owner, target_n=4, reward="1.00")
    section = Section.objects.create(study=template, position=1, protocol="spa", m=m)
    Question.objects.create(
        section=section,
        position=1,
        key="overall",
        text="What is the chance that writer {x} is better than writer {y}?",
        help="Think of all texts.",
        scale={"kind": "percent"},
    )
    return template


def relative_template(owner, *, prompts=12, m=6):
    """A draft that compares each output with the hidden reference on five points."""
    template = draft_study(systems=("human",), prompts=prompts, owner=owner, target_n=4, reward="1.00")
    template.systems.update(reference="reference")
    section = Section.objects.create(
        study=template, position=1, protocol="relative", m=m, settings={"pairs": "reference"}
    )
    Question.objects.create(
        section=section,
        position=1,
        key="overall",
        text="Which is better?",
        scale=REGISTRY["relative"].questions[0]["scale"],
    )
    return template


def template_of(protocol, owner, *, prompts=12, m=6, systems=("human",)):
    """A draft with one section of a protocol, with the questions that the protocol begins with."""
    template = draft_study(systems=systems, prompts=prompts, owner=owner, target_n=4, reward="1.00")
    add_section(template, protocol, m=m)
    return template


def open_board(owner=None, template=None, **columns) -> Board:
    owner = owner or user()
    template = template or rating_template(owner)
    defaults = {
        "slug": "tales",
        "title": "Tales",
        "template": template,
        "visibility": "public",
        "labels_per_output": 2,
        "seed": 5,
    }
    board = boards.create_board(Board(**defaults | columns), owner)
    return boards.open_board(board, owner)


def outputs_file(board: Board, word: str = "tale", **changed: str | None) -> bytes:
    """JSON lines with one output for each prompt. ``changed`` replaces texts by key; None leaves the prompt out."""
    texts = {key: f"A {word} about {key}." for key in rounds.keys_to_answer(board)} | changed
    rows = [{"prompt": key, "output": text} for key, text in texts.items() if text is not None]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def open_image_board(owner=None, *, prompts=3, **columns) -> Board:
    """An open board of images without a reference."""
    owner = owner or user()
    template = rating_template(owner, systems=(), prompts=prompts, m=prompts)
    return open_board(owner, template, **{"slug": "images", "output_kind": "image"} | columns)


def png(colour: int) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.new("RGB", (4, 4), (colour, 80, 160)).save(out, "PNG")
    return out.getvalue()


def zipped(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def images_zip(board: Board, first: int = 1) -> bytes:
    """An archive with one image for each prompt. Another ``first`` gives other images."""
    return zipped({f"{key}.png": png(first + 20 * place) for place, key in enumerate(board.sample_keys)})


def checked_images(board: Board, team, data: bytes, name="good", **options):
    """Send a ZIP, and let the job check it. Return the submission, or what is wrong with its rows."""
    job, is_new = images.submit_images(board, team, name, "a.zip", [data], **options)
    assert is_new
    jobs.run_waiting_jobs()
    job.refresh_from_db()
    assert job.result, job.error
    if "problems" in job.result:
        return [(row, text) for row, _, text in job.result["problems"]]
    return board.submissions.get(number=job.result["submission"])


def team_of(board: Board, name="Team A"):
    return access.create_team(board, board.owner, name)


def submit(board: Board, team, name: str, **options):
    return submissions.submit_outputs(board, team, name, "outputs.jsonl", outputs_file(board, name), **options)[0]


def play_round(board: Board, strengths=STRENGTHS, *, crowd=None, seed=1, by=None):
    """Open the next round, let robots fill it, and close it."""
    one = rounds.open_round(board, by or board.owner)
    study = one.study
    finish(study, strengths, crowd=crowd, seed=seed)
    return one


def finish(study, strengths=STRENGTHS, *, crowd=None, seed=1):
    """Let robots fill a round's study, and close it."""
    names = set(study.systems.judged().values_list("name", flat=True))
    record_simulated_answers(
        study,
        study.target_n,
        {name: strengths[name] for name in names},
        random.Random(seed),
        crowd=crowd or CrowdSettings(screened_out=0, acquiescent=0),
    )
    study.refresh_from_db()
    lifecycle.start_closing(study, None, "the robots have finished")
    lifecycle.end_grace_period(study, None)


def without_draws(page: bytes) -> bytes:
    """A page or file without what it says of the draws of rounds, running ones included."""
    page = re.sub(rb"<details><summary>How rounds are drawn.*?</details>", b"", page, flags=re.DOTALL)
    return re.sub(rb' "draws": \[.*?\n \],\n', b"", page, flags=re.DOTALL)


def add_link(template):
    return Recruitment.objects.create(study=template, channel="open_link")


def add_member(board, name, role):
    return BoardMember.objects.create(board=board, user=user(name), role=role)
