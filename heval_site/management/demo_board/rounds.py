"""Make the demo board, and play its rounds with robots. Each step looks at what exists, so that a cut-off job goes on where it was."""

import json
from collections.abc import Callable, Sequence
from random import Random

from django.db import transaction

from annotators.participation.simulate import CrowdSettings, record_simulated_answers
from boards import access
from boards.models import Board, BoardRound, BoardSnapshot, Submission, Team
from boards.services import boards, rounds, snapshots, submissions
from heval_site.management.demo_texts import load_demo_texts
from studies.models import ExclusionRule, Job, Output, Prompt, Question, Section, Study, System
from studies.services import drafts, jobs, lifecycle
from studies.services.test_questions import TestQuestionRequest, make_test_questions_and_delete_test_runs

from . import texts
from .systems import Fable, continue_fables
from .world import ANCHORS, BATCHES_PER_ANNOTATOR, DESCRIPTIONS, HUMAN, STRENGTHS, TEAMS, WEEKS, Week

KIND = "demo_board"
SEED = 20261127
TEST_QUESTIONS_OF_A_TYPE = 24
Progress = Callable[[int, int, str], object]


@transaction.atomic
def get_or_create_demo_board(user) -> Board:
    """Return the demo board. If it does not exist, make it. Unless its rounds are over, a job plays them."""
    board = Board.objects.filter(slug=texts.SLUG).first() or create_demo_board(user)
    is_waiting = Job.objects.filter(kind=KIND).exclude(state__in=jobs.ENDED).exists()
    if not is_waiting and board.snapshots.count() < len(WEEKS):
        jobs.submit(KIND, by=user, board=board.pk)
    return board


def load_fables() -> list[Fable]:
    return [Fable(row["key"], row["prompt"], row["outputs"][HUMAN]) for row in load_demo_texts()]


@transaction.atomic
def create_demo_board(user, labels_per_output: int = 3) -> Board:
    """Make the template, open the board, and make its teams."""
    board = boards.create_board(
        Board(
            slug=texts.SLUG,
            title=texts.TITLE,
            description=texts.DESCRIPTION,
            template=_create_template(user),
            visibility=Board.Visibility.PUBLIC,
            shows_examples=True,
            seed=SEED,
            labels_per_output=labels_per_output,
            # So many that each round scores all anchors.
            anchor_share="0.70",
        ),
        user,
    )
    board = boards.open_board(board, user)
    for name in sorted(set(TEAMS.values())):
        access.create_team(board, user, name)
    return board


def _create_template(user) -> Study:
    study = Study(
        title=texts.TEMPLATE_TITLE,
        public_title=texts.PUBLIC_TITLE,
        seed=SEED,
        purpose=texts.PURPOSE,
        instructions=texts.INSTRUCTIONS,
        consent=texts.CONSENT,
        debriefing=texts.DEBRIEFING,
        institution="heval demo",
        contact="research@example.org",
        retention="Answers without any identity are kept.",
        target_n=20,
        reward="2.00",
        minutes=8,
        wage_per_hour="15.00",
        batches_per_annotator=BATCHES_PER_ANNOTATOR,
    )
    study = drafts.create_draft_with_default_arm(study, user)
    human = System.objects.create(study=study, name=HUMAN, is_human=True)
    fables = load_fables()
    prompts = Prompt.objects.bulk_create(
        Prompt(study=study, key=fable.key, text=fable.opening, language="en") for fable in fables
    )
    Output.objects.bulk_create(
        Output(system=human, prompt=prompt, text=fable.ending, language="en")
        for fable, prompt in zip(fables, prompts, strict=True)
    )
    section = Section.objects.create(
        study=study,
        position=1,
        protocol="rating",
        m=10,
        settings={
            "scores": "unit",
            "shown": "one",
            "noun": "ending",
            "positive_share": 0.2,
            "negative_share": 0.2,
            "neutral": "wrong",
        },
    )
    question = Question.objects.create(
        section=section,
        position=1,
        key="quality",
        text=texts.QUESTION,
        scale={"kind": "likert", "labels": list(texts.LABELS)},
    )
    ExclusionRule.objects.create(
        study=study, position=1, rule="failed_tests", settings={"failed": 2, "counted": 4, "share": None}
    )
    counts = dict.fromkeys(("positive", "negative"), TEST_QUESTIONS_OF_A_TYPE)
    make_test_questions_and_delete_test_runs(section, TestQuestionRequest(question, counts, human), by=user)
    return Study.objects.get(pk=study.pk)


def play_rounds(board: Board, by, progress: Progress = lambda *_: None) -> list[BoardSnapshot]:
    """Play the rounds that are not over yet. Return the snapshots of all rounds, oldest first."""
    for number, week in enumerate(WEEKS, 1):
        progress(number - 1, len(WEEKS), f"Robots rate the submissions of round {number} of {len(WEEKS)}")
        if board.snapshots.count() < number:
            play_round(board, number, week, by)
    progress(len(WEEKS), len(WEEKS), "All rounds are over")
    return list(board.snapshots.order_by("number"))


def play_round(board: Board, number: int, week: Week, by) -> BoardSnapshot:
    """Submit the outputs of a week, open its round, let robots fill it, close it, and take a snapshot."""
    for name in week.submitted:
        submission = submit(board, name)
        if name in ANCHORS and not submission.is_anchor:
            rounds.choose_anchor(submission, by, True)
    one = board.rounds.filter(number=number, launched_at__isnull=False).select_related("study").first()
    one = one or rounds.open_round(board, by)
    study = one.study
    if study.state == Study.State.LAUNCHED:
        let_robots_answer(one, week)
        study.refresh_from_db()
    # The site itself begins to close a round whose places are filled.
    if study.state == Study.State.LAUNCHED:
        lifecycle.start_closing(study, by, "the demo's robots have finished")
        study.refresh_from_db()
    if study.state == Study.State.CLOSING:
        lifecycle.end_grace_period(study, by)
    return snapshots.take_snapshot(board, by)


def submit(board: Board, name: str) -> Submission:
    """Submit the outputs of a system for its team. A repeated submission changes nothing."""
    rows = [{"prompt": key, "output": text} for key, text in continue_fables(name, load_fables(), seed=SEED).items()]
    file = "".join(json.dumps(row) + "\n" for row in rows).encode()
    team = Team.objects.get(board=board, name=TEAMS[name])
    found, _ = submissions.submit_outputs(board, team, name, "outputs.jsonl", file, description=DESCRIPTIONS[name])
    return found


def let_robots_answer(one: BoardRound, week: Week) -> None:
    """Fill the places of a round: first robots that answer at random in all their batches, then the others."""
    study = one.study
    strengths = {name: STRENGTHS[name] for name in _judged_names(study)}
    for robot in range(week.noisy):
        for batch in range(BATCHES_PER_ANNOTATOR):
            record_simulated_answers(
                study,
                1,
                strengths,
                Random(f"{SEED} noisy {one.number} {robot} {batch}"),
                crowd=CrowdSettings(screened_out=0, acquiescent=0, noisy=1),
                name_prefix=f"noisy-{robot}",
            )
    crowd = CrowdSettings(screened_out=0, acquiescent=0, middle=0.0, leniency=week.leniency)
    record_simulated_answers(study, study.target_n or 0, strengths, Random(f"{SEED} {one.number}"), crowd=crowd)


def _judged_names(study: Study) -> Sequence[str]:
    return list(study.systems.judged().order_by("name").values_list("name", flat=True))


def play_rounds_job(job: Job, progress: Progress) -> dict:
    """Play the rounds of the demo board."""
    board = Board.objects.select_related("template").get(pk=job.arguments["board"])
    return {"snapshots": len(play_rounds(board, job.by, progress))}
