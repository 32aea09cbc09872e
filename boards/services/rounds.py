"""Open rounds: clone the template, add outputs, launch; close rounds that are complete."""

import secrets
from collections.abc import Callable
from datetime import datetime

from django.db import transaction
from django.db.models import Max
from django.db.models.functions import Now

from analysis.metrics.scoring import SCORERS
from analysis.metrics.scoring.rows import scored_sections
from annotators.places.monitor import progress_by_study
from annotators.recruitment.link_copies import copy_links
from boards.access import BoardAction, check_permission_or_404
from boards.models import Board, BoardRound, RoundEntry, Submission, SubmittedOutput
from boards.models.names import lookalike_key, numbered_name
from studies.access import replace_member_roles
from studies.models import ArmSystem, Job, Output, Study, System, audit
from studies.services import drafts, jobs, lifecycle
from studies.services.copying import clone_study
from studies.services.lifecycle import ActionRefused

from .planning import is_due, plan_round, refuse_unless_ready

KIND = "board_round"
Progress = Callable[..., object]
# A round is closed when its places are filled. Drop-outs are replaced before.
ENDED = (Study.State.CLOSING, Study.State.CLOSED)


def request_round(board: Board, by, request_token: str | None = None) -> Job:
    """Submit a job that opens the next round. Raise ActionRefused if none can open now."""
    check_permission_or_404(by, BoardAction.RUN, board)
    refuse_unless_ready(board)
    if refusal := plan_round(board).refusal:
        raise ActionRefused(refusal)
    return jobs.submit(KIND, by=by, request_token=request_token, board=board.pk)


def create_round(board: Board, by) -> BoardRound:
    """Make the draft of the next round in one transaction. Raise ActionRefused if none can open now."""
    check_permission_or_404(by, BoardAction.RUN, board)
    with transaction.atomic():
        # One round of a board at a time, so that no submission gets into two.
        board = Board.objects.select_for_update(no_key=True, of=("self",)).select_related("template").get(pk=board.pk)
        refuse_unless_ready(board)
        plan = plan_round(board)
        sample = plan.sample
        if plan.refusal or sample is None:
            raise ActionRefused(plan.refusal)
        number = (board.rounds.aggregate(n=Max("number"))["n"] or 0) + 1
        study = clone_study(board.template, None, f"{board.title}, round {number}", prompt_keys=sample.keys)
        # The clone's seed is random, and follows from nothing that anybody can read.
        drafts.update_draft(study, None, {"target_n": plan.places, "target_cap": None})
        _add_members(board, study)
        copy_links(board.template, study)
        board_round = BoardRound(
            board=board,
            number=number,
            study=study,
            sample=sample.sample,
            expected_cost=plan.cost,
            nonce=secrets.token_hex(16),
            by=by,
        )
        board_round.full_clean()
        board_round.save(force_insert=True)
        _add_entries(board_round, study, plan.submissions, plan.anchors)
        audit.record(
            "make round", by=by, board=board.slug, round=number, submissions=[one.number for one in plan.submissions]
        )
    return board_round


def _add_members(board: Board, study: Study) -> None:
    roles = [(member.user_id, member.role) for member in board.members.all()]
    if roles:
        replace_member_roles(study, None, roles)


def _add_entries(board_round: BoardRound, study: Study, submissions, anchors) -> None:
    """Add the systems of submissions with their outputs to the draft. Systems of the template are there already."""
    sent = [*submissions, *(anchor for anchor in anchors if anchor.team_id is not None)]
    # Hidden names of different teams may be alike, and a study's systems differ.
    taken = {lookalike_key(name) for name in study.systems.values_list("name", flat=True)}
    systems = []
    for one in sent:
        name = numbered_name(one) if lookalike_key(one.name) in taken else one.name
        taken.add(lookalike_key(name))
        systems.append(System(study=study, name=name, is_human=one.is_human))
    System.objects.bulk_create(systems)
    # An arm that names systems shows only those.
    arms = set(ArmSystem.objects.filter(arm__study=study).values_list("arm", flat=True))
    ArmSystem.objects.bulk_create(ArmSystem(arm_id=arm, system=system) for arm in arms for system in systems)
    prompts = dict(study.prompts.values_list("key", "pk"))
    system_of = {one.pk: system for one, system in zip(sent, systems, strict=True)}
    rows = SubmittedOutput.objects.filter(submission__in=system_of, prompt_key__in=list(prompts))
    Output.objects.bulk_create(
        (
            Output(
                system=system_of[row.submission_id],
                prompt_id=prompts[row.prompt_key],
                text=row.text,
                media=row.media,
                is_empty=row.is_empty,
            )
            for row in rows.iterator(chunk_size=2000)
        ),
        batch_size=1000,
    )
    for section in scored_sections(study):
        SCORERS[section.protocol].ask_about_all_systems(section)
    of_template = {system.name: system for system in study.systems.judged()}
    own = [one for one in anchors if one.team_id is None and one.name in of_template]
    new = {one.pk for one in submissions}
    RoundEntry.objects.bulk_create(
        RoundEntry(round=board_round, submission=one, system=system, is_new=one.pk in new)
        for one, system in [
            *((one, system_of[one.pk]) for one in sent),
            *((one, of_template[one.name]) for one in own),
        ]
    )


def launch_round(board_round: BoardRound, by, progress: Progress = lambda *_: None) -> BoardRound:
    """Launch the study of a round. If the checklist refuses, keep the reasons for the members and raise ActionRefused."""
    study = board_round.study
    if study.state not in (Study.State.DRAFT, Study.State.LAUNCHING):
        return _note_launch(board_round)
    warnings = [
        problem.key for problem in lifecycle.blocking_or_unacknowledged_problems(study) if not problem.is_blocking
    ]
    try:
        lifecycle.launch(study, None, warnings, progress)
    except ActionRefused as refused:
        if not BoardRound.objects.filter(pk=board_round.pk, cancelled_at=None).update(problem=str(refused)):
            raise ActionRefused(
                "The round was cancelled before it opened. Its submissions wait for the next one."
            ) from None
        raise
    audit.record("open round", study=study, by=by, board=board_round.board.slug, round=board_round.number)
    return _note_launch(board_round)


def _note_launch(board_round: BoardRound) -> BoardRound:
    BoardRound.objects.filter(pk=board_round.pk, launched_at=None, cancelled_at=None).update(
        launched_at=Now(), problem=""
    )
    board_round.refresh_from_db()
    return board_round


def open_round(board: Board, by, progress: Progress = lambda *_: None) -> BoardRound:
    """Make and launch the next round. A round that was made and not launched, because a process ended, is launched instead."""
    unfinished = board.rounds.filter(launched_at=None, cancelled_at=None).select_related("study", "board").first()
    return launch_round(unfinished or create_round(board, by), by, progress)


@transaction.atomic
def cancel_round(board_round: BoardRound, by) -> None:
    """Give up a round that is not launched. Its submissions wait for the next one."""
    check_permission_or_404(by, BoardAction.RUN, board_round.board)
    changed = BoardRound.objects.filter(pk=board_round.pk, launched_at=None, cancelled_at=None).update(
        cancelled_at=Now()
    )
    if not changed:
        raise ActionRefused("This round is launched or cancelled already. Close its study instead.")
    lifecycle.archive(board_round.study, None)
    audit.record("cancel round", by=by, board=board_round.board.slug, round=board_round.number)


@transaction.atomic
def choose_anchor(submission: Submission, by, is_anchor: bool) -> None:
    """Let later rounds score a submission again, or no longer. Systems of the template are always anchors."""
    check_permission_or_404(by, BoardAction.RUN, submission.board)
    if submission.team_id is None:
        raise ActionRefused("Systems of the template are in every round.")
    # A submission that is withdrawn in the same moment is no anchor afterwards, whichever comes first.
    if not Submission.objects.filter(pk=submission.pk, withdrawn_at=None).update(is_anchor=is_anchor) and is_anchor:
        raise ActionRefused("The submission is withdrawn, so no round can score it.")
    audit.record("choose anchor", by=by, board=submission.board.slug, submission=submission.number, is_anchor=is_anchor)


def submit_due_rounds(*, now: datetime | None = None) -> int:
    """Submit the jobs of boards whose launch window is open and whose budget allows a round. Return their number."""
    n = 0
    for board in Board.objects.filter(state=Board.State.OPEN, opens_by_itself=True).select_related("template"):
        if is_due(board, now=now) and not plan_round(board, now=now).refusal:
            last = board.rounds.aggregate(n=Max("number"))["n"] or 0
            jobs.submit(KIND, by=board.owner, request_token=f"board-{board.pk}-round-{last + 1}", board=board.pk)
            n += 1
    return n


def close_complete_rounds() -> int:
    """Begin to close the studies of rounds whose places are all filled. Return their number."""
    rounds = BoardRound.objects.filter(study__state=Study.State.LAUNCHED).select_related("study")
    studies = [one.study for one in rounds]
    progress = progress_by_study([study.pk for study in studies])
    n = 0
    for study in studies:
        done = progress.get(study.pk)
        # Robots take places, too: the tutorial and the demo have rounds with nobody else.
        if done and study.target_n and done.submitted + done.robots >= study.target_n:
            lifecycle.start_closing(study, None, "all places of the round are filled")
            n += 1
    return n
