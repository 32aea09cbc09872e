"""The samples of a board: the prompts that rounds score and submissions answer, and the renewal of a share of them."""

import math
import secrets
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from operator import itemgetter
from zoneinfo import ZoneInfo

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Count, Max, Q, Sum
from django.db.models.functions import Now
from django.utils import timezone

from analysis.metrics.scoring import board_kind, scored_protocols, scored_sections, scorer_of
from annotators.events.subscriptions import copy_subscriptions
from annotators.places.monitor import progress_by_study
from annotators.recruitment.links import copy_links
from boards.access import BoardAction, check_permission_or_404
from boards.models import (
    Board,
    BoardRound,
    BoardSample,
    RoundEntry,
    Submission,
    SubmittedOutput,
    lookalike_key,
    numbered_name,
)
from studies.access import replace_member_roles
from studies.design.draw import seeded_random
from studies.design.serialization import canonical_json, serialize_design, sha256_of
from studies.models import ArmSystem, Item, Job, Output, Section, Study, System, audit
from studies.models.fields import new_seed
from studies.protocols import REGISTRY
from studies.services import drafts, jobs, lifecycle
from studies.services.copying import clone_study
from studies.services.lifecycle import ActionRefused


@dataclass(frozen=True, slots=True)
class RoundSample:
    """The prompts of a round. ``previous``: in the first round of a renewed sample, the sample before it, which it scores as well."""

    sample: BoardSample
    previous: BoardSample | None = None

    @property
    def keys(self) -> list[str]:
        before = self.previous.keys if self.previous else []
        return sorted({*self.sample.keys, *before})

    @property
    def renewed(self) -> frozenset[str]:
        return frozenset(self.sample.keys) - frozenset(self.previous.keys) if self.previous else frozenset()


def sampleable_keys(template: Study) -> list[str]:
    """Return the keys of prompts that rounds can show: no practice item shows them, and each system of the template has an output."""
    by_hand = template.items.filter(kind__in=[Item.Kind.PRACTICE])
    prompts = template.prompts.exclude(pk__in=by_hand.values("prompt"))
    for system in template.systems.judged():
        prompts = prompts.filter(outputs__system=system)
    return sorted(set(prompts.order_by().values_list("key", flat=True)))


def draw_first_sample(board: Board, by) -> BoardSample:
    """Draw the subsample with the board's seed."""
    keys = sampleable_keys(board.template)
    chosen = sorted(seeded_random(board.seed, "board", "subsample").sample(keys, board.sample_size or len(keys)))
    return BoardSample.objects.create(board=board, number=1, keys=chosen, seed=board.seed, by=by)


def next_round_sample(board: Board) -> RoundSample | None:
    """Return the prompts of the next round; None before the board is opened."""
    samples = list(board.samples.order_by("-number")[:2])
    if not samples:
        return None
    newest = samples[0]
    # A round that is not launched can still be cancelled, and the next one must link the samples then.
    is_scored = newest.rounds.filter(launched_at__isnull=False).exists()
    return RoundSample(newest, samples[1] if len(samples) > 1 and not is_scored else None)


def samples_of_rounds(board: Board) -> dict[int, RoundSample]:
    """Return the prompts of each round that is not cancelled, by its number."""
    samples = {one.number: one for one in board.samples.all()}
    found, seen = dict[int, RoundSample](), set[int]()
    rounds = BoardRound.objects.filter(board=board, cancelled_at=None).order_by("number")
    for number, sample in rounds.values_list("number", "sample__number"):
        found[number] = RoundSample(samples[sample], None if sample in seen else samples.get(sample - 1))
        seen.add(sample)
    return found


def waiting_submissions(board: Board):
    """Return the submissions that no round has scored or will score, oldest first."""
    rounds = BoardRound.objects.filter(board=board, cancelled_at=None)
    submissions = board.submissions.filter(withdrawn_at=None, team__isnull=False)
    return submissions.exclude(entries__round__in=rounds).order_by("number")


def keys_to_answer(board: Board) -> list[str]:
    """Return the prompts that a submission answers now: those of the next round."""
    found = next_round_sample(board)
    return found.keys if found else []


def find_complete(submissions: Collection[Submission], keys: Collection[str]) -> set[int]:
    """Return which of the submissions answer all these prompts. Systems of the template answer all."""
    sent = [one.pk for one in submissions if one.team_id is not None]
    outputs = SubmittedOutput.objects.filter(submission__in=sent, prompt_key__in=list(keys))
    counts = dict(outputs.order_by().values_list("submission").annotate(n=Count("pk")))
    return {one.pk for one in submissions if one.team_id is None or counts.get(one.pk, 0) == len(keys)}


# Renewal


def find_renewal_problem(board: Board) -> str:
    """Return why no share of the sample can be renewed now, or ''."""
    if board.state != Board.State.OPEN:
        return f"The board is {board.state}. Only the sample of an open board can be renewed."
    if board_kind(board.template) == "preferences":
        return "Ratings from preferences hold for exactly these prompts, so the sample cannot be renewed. Make another board."
    if board.population != Board.Population.PROMPTS:
        return "Scores of this board hold for exactly its prompts, so the sample cannot be renewed. Make another board."
    rounds = BoardRound.objects.filter(board=board, cancelled_at=None)
    if rounds.exclude(study__state=Study.State.CLOSED).exists():
        return "A round is running. Wait until it is closed, or cancel it, and renew the sample then."
    newest = board.samples.order_by("-number").first()
    if newest is None or not rounds.filter(sample=newest).exists():
        return "No round has scored the current sample yet. Open a round first, so that the samples can be linked."
    if waiting_submissions(board).exists():
        return "Submissions wait that answer only the current sample. Open a round for them first, and renew the sample then."
    if not unused_keys(board):
        return "All prompts of the template were in the sample, so none can be renewed. Make another board."
    return ""


def unused_keys(board: Board) -> list[str]:
    """Return the prompts of the template that no sample of the board has had."""
    used = {key for keys in board.samples.values_list("keys", flat=True) for key in keys}
    return [key for key in sampleable_keys(board.template) if key not in used]


@transaction.atomic
def renew_sample(board: Board, by, share: Decimal, *, after: int | None = None) -> BoardSample:
    """Replace a share of the board's prompts by unused ones of the template, drawn with a new seed.

    The next round scores both samples, so that scores before and after are linked. Later rounds score only the new one.
    ``after``: the number of the sample that the caller saw. If it has a successor, that one is returned, and nothing is drawn.
    Raise ValidationError for a share that cannot be, and ActionRefused if the board cannot be renewed now.
    """
    check_permission_or_404(by, BoardAction.EDIT, board)
    board = Board.objects.select_for_update(no_key=True, of=("self",)).select_related("template").get(pk=board.pk)
    newest = board.samples.order_by("-number").first()
    if after is not None and newest is not None and newest.number > after:
        return newest
    if not 0 < share < 1:
        raise ValidationError({"share": "This share is not between 0 and 1. Enter a number such as 0.25."})
    problem = find_renewal_problem(board)
    if problem or newest is None:
        raise ActionRefused(problem)
    n = min(len(newest.keys) - 1, round(share * len(newest.keys)))
    if n < 1:
        raise ValidationError({"share": "This share of the sample is less than one prompt. Enter a larger share."})
    unused = unused_keys(board)
    if n > len(unused):
        text = f"{n} new prompts are needed, but only {len(unused)} of the template are unused. Enter a smaller share."
        raise ValidationError({"share": text})
    seed = new_seed()
    draw = seeded_random(seed, "board", "renewal")
    retired = set(draw.sample(sorted(newest.keys), n))
    keys = sorted((set(newest.keys) - retired) | set(draw.sample(unused, n)))
    made = BoardSample.objects.create(
        board=board, number=newest.number + 1, keys=keys, seed=seed, share=Decimal(share), by=by
    )
    audit.record("renew sample of board", by=by, board=board.slug, sample=made.number, seed=seed, prompts=n)
    made.refresh_from_db()
    return made


# Decide which submissions the next round scores, what it costs, and when it opens.


ZERO = Decimal(0)


def template_sha256(template: Study) -> str:
    """Return the hash of a template's design. The target and its plan are left out, because each round has its own."""
    design = serialize_design(template)
    design.pop("size_plan", None)
    design["study"] = {
        name: value for name, value in design["study"].items() if name not in ("target_n", "target_cap", "seed")
    }
    return sha256_of(canonical_json(design))


def refuse_unless_ready(board: Board) -> None:
    if board.state != Board.State.OPEN:
        raise ActionRefused(
            f"The board is {board.state}, so no round can open. "
            + ("Open the board first." if board.state == Board.State.DRAFT else "Make another board.")
        )
    if template_sha256(board.template) != board.design_sha256:
        raise ActionRefused(
            "The template has changed since the board was opened, and scores of its rounds would not be comparable. "
            "Undo the change, or make another board."
        )


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """The next round: its submissions, its anchors, its places for annotators, its cost without panels' fees, and its prompts.

    ``n_waiting``: submissions that wait, with those that this round leaves for later. ``refusal``: why no round can open now;
    then ``submissions`` is empty.
    """

    submissions: tuple[Submission, ...]
    anchors: tuple[Submission, ...]
    places: int
    cost: Decimal
    n_waiting: int
    sample: RoundSample | None
    refusal: str = ""


def plan_round(board: Board, *, now: datetime | None = None) -> RoundPlan:
    """Return the next round as it would open now. Teams take turns, as far as the budget allows."""
    in_turns = waiting_in_turns(board)
    waiting, n_waiting = in_turns[: board.max_submissions_per_round], len(in_turns)
    sample = next_round_sample(board)
    if sample is None or not waiting:
        return _no_round(0, "No submission waits for a round.")
    # A submission that waits is not scored yet, so it comes in as a new one even if it is an anchor.
    anchors = list(
        board.submissions.filter(is_anchor=True, withdrawn_at=None)
        .exclude(pk__in=waiting_submissions(board).order_by().values("pk"))
        .annotate(n_rounds=Count("entries", filter=Q(entries__round__cancelled_at=None)))
        .order_by("n_rounds", "number")
    )
    fixed = [anchor for anchor in anchors if anchor.team_id is None]
    # A study shows only prompts that all its systems answer, so an anchor of an earlier sample drops out.
    complete = find_complete(anchors, sample.keys)
    named = [anchor for anchor in anchors if anchor.team_id is not None and anchor.pk in complete]
    spent = month_cost(board, now=now)
    refusal = ""
    for n in range(len(waiting), 0, -1):
        chosen = [*fixed, *named[: max(0, anchors_needed(board, n) - len(fixed))]]
        places = places_of_round(board, n + len(chosen), len(sample.keys))
        cost = places * reward_of_place(board)
        refusal = refusal_of_budget(board, cost, n, spent)
        if not refusal:
            return RoundPlan(tuple(waiting[:n]), tuple(chosen), places, cost, n_waiting, sample)
    return _no_round(n_waiting, refusal)


def waiting_in_turns(board: Board) -> list[Submission]:
    """Return the waiting submissions as rounds take them: one of each team in turn, and of a team the oldest first.

    A team whose last new submission was in an earlier round, or in none, comes first, so that a large board reaches every team.
    """
    new = RoundEntry.objects.filter(round__board=board, round__cancelled_at=None, is_new=True)
    last_round = dict(new.order_by().values_list("submission__team").annotate(last=Max("round__number")))
    turns = Counter[int | None]()
    keyed = []
    for one in waiting_submissions(board):
        keyed.append((turns[one.team_id], last_round.get(one.team_id, 0), one.number, one))
        turns[one.team_id] += 1
    return [one for *_, one in sorted(keyed, key=itemgetter(0, 1, 2))]


def _no_round(n_waiting: int, refusal: str) -> RoundPlan:
    return RoundPlan((), (), 0, ZERO, n_waiting, None, refusal)


def anchors_needed(board: Board, n_submissions: int) -> int:
    """Return how many anchors give the declared share of all systems in a round with this many new submissions."""
    share = float(board.anchor_share)
    return math.ceil(share * n_submissions / (1 - share) - 1e-9)


def reward_of_place(board: Board) -> Decimal:
    """Return the highest reward for one batch, of any arm."""
    arms = board.template.arms.exclude(reward=None).values_list("reward", flat=True)
    return max([board.template.reward or ZERO, *arms])


def places_of_round(board: Board, n_systems: int, n_prompts: int) -> int:
    """Return the places with which each output gets the declared number of labels in each live section, if arms share them alike."""
    template = board.template
    needed = 1
    sections = template.sections.filter(
        purpose=Section.Purpose.LIVE, reuses=None, m__gte=1, protocol__in=scored_protocols()
    )
    n_references = template.systems.filter(reference=System.Reference.ORDINARY).count()
    n_arms = template.arms.count()
    for section in sections.annotate(n_arms=Count("arms")):
        settings = REGISTRY[section.protocol].cleaned_settings(section)
        per_prompt = scorer_of(section.protocol).items_per_prompt(settings, n_systems, n_references)
        items = per_prompt * n_prompts * labels_per_output(board)
        # A section that only some arms see gets only their places.
        n_shown = section.n_arms or 1
        needed = max(needed, math.ceil(items / section.m / n_shown) * (n_arms if section.n_arms else 1))
    per_batch = template.annotators_per_batch
    return math.ceil(needed / per_batch) * per_batch


def labels_per_output(board: Board) -> float:
    """Return the mean number of labels of an output, with the declared share of second labels."""
    return board.labels_per_output if board.labels_per_output > 1 else 1 + float(board.double_label_share)


def refusal_of_budget(board: Board, cost: Decimal, n_submissions: int, spent: Decimal) -> str:
    """Return why the budget does not allow a round, or ''."""
    currency = board.template.currency
    limit = board.budget_per_submission
    if limit is not None and cost > limit * n_submissions:
        return (
            f"A submission would cost {cost / n_submissions:.2f} {currency}, more than the budget of {limit:.2f} per submission. "
            "Raise the budget, or ask for fewer labels."
        )
    limit = board.budget_per_month
    if limit is not None and spent + cost > limit:
        return (
            f"The round would cost {cost:.2f} {currency}, and {spent:.2f} of this month's budget of {limit:.2f} are spent. "
            "Wait for the next month, or raise the budget."
        )
    return ""


def month_cost(board: Board, *, now: datetime | None = None) -> Decimal:
    """Return the expected cost of the rounds that opened in this calendar month, in the board's time zone."""
    local = (now or timezone.now()).astimezone(ZoneInfo(board.time_zone))
    start = local.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    rounds = BoardRound.objects.filter(board=board, cancelled_at=None, planned_at__gte=start)
    return rounds.aggregate(cost=Sum("expected_cost"))["cost"] or ZERO


def next_launch_at(board: Board, *, now: datetime | None = None) -> datetime | None:
    """Return the beginning of the launch window that is open now or comes next; None if rounds do not open by themselves."""
    if not board.opens_by_itself or not board.launch_days:
        return None
    local = (now or timezone.now()).astimezone(ZoneInfo(board.time_zone))
    last = BoardRound.objects.filter(board=board).order_by("-planned_at").values_list("planned_at", flat=True).first()
    for days in range(8):
        day = (local + timedelta(days=days)).replace(hour=board.launch_hour, minute=0, second=0, microsecond=0)
        is_used = last is not None and last >= day
        if day.weekday() in board.launch_days and not is_used and (days or day.date() == local.date()):
            return day
    return None


def is_due(board: Board, *, now: datetime | None = None) -> bool:
    """Return whether the launch window is open and no round has opened in it yet. The window ends with its day."""
    begins = next_launch_at(board, now=now)
    return begins is not None and begins <= (now or timezone.now())


# Open rounds: clone the template, add outputs, launch; close rounds that are complete.


KIND = "board_round"
Progress = Callable[..., object]


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
        copy_subscriptions(board.template, study)
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
        scorer_of(section.protocol).ask_about_all_systems(section)
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
