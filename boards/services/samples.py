"""The samples of a board: the prompts that rounds score and submissions answer, and the renewal of a share of them."""

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Count

from analysis.metrics.scoring.rows import board_kind
from boards.access import BoardAction, check_permission_or_404
from boards.models import Board, BoardRound, BoardSample, Submission, SubmittedOutput
from studies.design.seeds import seeded_random
from studies.models import Item, Study, audit
from studies.models.fields import new_seed
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
