"""Make, change, open and close boards, with limits for each team, and read or write a board as one file."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Sum
from django.db.models.functions import Now
from django.utils import timezone

from analysis.data.frames import second_sample_labels
from analysis.metrics.scoring import board_kind, find_scoring_problem, is_about_outputs
from boards.access import BoardAction, check_permission_or_404
from boards.models import Board, BoardMember, Submission, Team
from studies.access import Action
from studies.access import check_permission_or_404 as check_study_permission_or_404
from studies.design.checklist_sizes import exclusion_rule_problems
from studies.imports.bundle import MAX_BUNDLE_BYTES, BundleRefused
from studies.imports.bundle_files import create_draft_from_bundle, parse_bundle_json, serialize_bundle
from studies.imports.study_templates import TEMPLATES_BY_SLUG
from studies.models import Batch, Item, Output, Study, audit, new_seed
from studies.models.design import TEST_QUESTION_RULES
from studies.services import drafts
from studies.services.lifecycle import ActionRefused
from studies.stimuli.images import ZipLimits
from studies.stimuli.texts import advice_on_unknown_name

from .rounds import cancel_round, draw_first_sample, sampleable_keys, template_sha256, waiting_submissions

DAY = timedelta(days=1)


class TooManyToday(ActionRefused):
    """The limit of a day is reached. ``retry_after``: the seconds until the team may send the next submission."""

    def __init__(self, text: str, retry_after: int):
        super().__init__(text)
        self.retry_after = retry_after


def refuse_over_limits(board: Board, team: Team, n_bytes: int = 0) -> None:
    """Raise ActionRefused if the team may send no other submission, or none of this size, now."""
    n_waiting = waiting_submissions(board).filter(team=team).count()
    if n_waiting >= board.max_waiting_per_team:
        raise ActionRefused(
            f"This team has {n_waiting} waiting submissions, and the board allows {board.max_waiting_per_team}. "
            "Wait until a round has scored one, or withdraw one."
        )
    own = board.submissions.filter(team=team)
    n_stored = (own.aggregate(n=Sum("n_bytes"))["n"] or 0) + n_bytes
    if n_stored > board.max_megabytes_per_team * 2**20:
        raise ActionRefused(
            f"The files of this team would have {n_stored / 2**20:,.1f} MB, and the board allows "
            f"{board.max_megabytes_per_team:,} MB. Ask the board's owner to raise the limit."
        )
    now = timezone.now()
    recent = own.filter(received_at__gt=now - DAY).order_by("-received_at").values_list("received_at", flat=True)
    times = list(recent[: board.max_daily_per_team])
    if len(times) == board.max_daily_per_team:
        again = times[-1] + DAY
        raise TooManyToday(
            f"This team sent {len(times)} submissions within 24 hours, as many as the board allows. "
            f"Send the next one after {again:%Y-%m-%d %H:%M} UTC.",
            int((again - now).total_seconds()) + 1,
        )


# Create, open and close boards.


# One member of the archive may be its table.
MAX_IMAGES = ZipLimits().members - 1

# What may change after the board is opened: nothing that a score depends on.
CHANGEABLE_WHEN_OPEN = frozenset(
    {
        "title", "description", "visibility", "shows_examples", "max_submissions_per_round", "max_waiting_per_team",
        "max_daily_per_team", "max_megabytes_per_team", "budget_per_submission", "budget_per_month", "opens_by_itself", "launch_weekdays", "launch_hour", "time_zone", "anchor_share",
    }
)  # fmt: skip


def settings_of_template(template: Study) -> dict[str, Any]:
    """Return the settings that the ready-made template of this draft has for boards; none for other drafts."""
    made_from = TEMPLATES_BY_SLUG.get(template.template)
    return dict(made_from.board or {}) if made_from else {}


@transaction.atomic
def create_board(unsaved: Board, by) -> Board:
    """Store a new board with ``by`` as its owner. Raise ValidationError."""
    check_study_permission_or_404(by, Action.EDIT, unsaved.template)
    unsaved.owner = by
    unsaved.full_clean()
    unsaved.save(force_insert=True)
    if by is not None:
        BoardMember.objects.create(board=unsaved, user=by, role=BoardMember.Role.OWNER)
    audit.record("make board", by=by, board=unsaved.slug, template=str(unsaved.template.code))
    return unsaved


@transaction.atomic
def change_board(board: Board, by, changes: dict[str, Any]) -> Board:
    """Change settings of a board. After it is opened, only those that no score depends on. Raise ValidationError."""
    check_permission_or_404(by, BoardAction.EDIT, board)
    board = Board.objects.select_for_update(no_key=True, of=("self",)).get(pk=board.pk)
    changes = {name: value for name, value in changes.items() if getattr(board, name) != value}
    if board.state != Board.State.DRAFT:
        fixed = {
            name: "This cannot change after the board is opened, because scores depend on it. Make another board."
            for name in changes
            if name not in CHANGEABLE_WHEN_OPEN
        }
        if fixed:
            raise ValidationError(fixed)
    for name, value in changes.items():
        setattr(board, name, value)
    board.full_clean()
    board.save()
    if changes:
        audit.record("change board", by=by, board=board.slug, columns=sorted(changes))
    return board


def find_opening_problems(board: Board) -> list[str]:
    """Return why the board cannot be opened yet."""
    template = board.template
    if not template.is_draft:
        return ["The template is not a draft any more. Clone it, and choose the clone as the template."]
    problems = []
    if template.batches.filter(origin=Batch.Origin.IMPORTED).exists():
        problems.append("The template has ready-made batches, which name systems. Remove them: rounds draw their own.")
    if scoring := find_scoring_problem(template):
        problems.append(scoring)
    elif board_kind(template) == "preferences" and board.population == Board.Population.PROMPTS:
        problems.append(
            "Ratings from preferences hold for people and exactly these prompts. Choose the subsample under “scores hold for”."
        )
    elif board.controls_style and not is_about_outputs(template):
        problems.append(
            "Annotators state chances about whole systems, so length and format of outputs cannot be controlled. Untick “control for style”."
        )
    problems += _find_problems_of_kind(board)
    problems += _find_problem_of_groups(board)
    # What every round would have, too: a round that cannot be launched would say so only when teams have submitted.
    problems += [problem.text for problem in exclusion_rule_problems(template, template.sections.all())]
    n = len(sampleable_keys(template))
    if not n:
        problems.append("The template has no prompt that a system can answer. Import prompts.")
    elif board.sample_size and board.sample_size > n:
        problems.append(
            f"The subsample has {board.sample_size} prompts, but the template has only {n}. Choose fewer, or import more."
        )
    return problems


def lacks_test_questions(template: Study) -> bool:
    """Return whether a template declares a rule about test questions and has none."""
    rules = template.exclusion_rules.filter(rule__in=TEST_QUESTION_RULES)
    return rules.exists() and not Item.objects.filter(study=template, kind=Item.Kind.TEST).exists()


def delete_rules_about_test_questions(board: Board, by) -> None:
    """Delete the rules of the template that need test questions, and what it says of people whom they flag. Raise ActionRefused."""
    check_permission_or_404(by, BoardAction.EDIT, board)
    with drafts.locked_draft(board.template_id, by) as template:
        if board.state != Board.State.DRAFT or not lacks_test_questions(template):
            raise ActionRefused("The template has test questions, or no rule about them. You need not do anything.")
        template.exclusion_rules.filter(rule__in=TEST_QUESTION_RULES).delete()
        drafts.update_draft(template, by, {"bars_flagged_annotators": False})
        drafts.record_edit_and_raise_version(template, by, deleted=["exclusion rules about test questions"])


def _find_problem_of_groups(board: Board) -> list[str]:
    """Return why scores cannot hold for prompts like these, if the prompts belong to very few groups."""
    from analysis.stats.cluster_variances import TOO_FEW_ITEMS

    prompts = board.template.prompts.filter(key__in=sampleable_keys(board.template)).values_list("key", "group")
    if board.population != Board.Population.PROMPTS or not any(group for _, group in prompts):
        return []
    keys, groups = zip(*prompts, strict=True)
    n = len(set(second_sample_labels(keys, groups)))
    if n >= TOO_FEW_ITEMS:
        return []
    noun = (board.template.group_noun if all(groups) else "") or "group"
    return [
        f"The prompts belong to {n} {noun}{'' if n == 1 else 's'}; scores for prompts like these need {TOO_FEW_ITEMS}. "
        f"Import more {noun}s, or choose the subsample under “scores hold for”."
    ]


def _find_problems_of_kind(board: Board) -> list[str]:
    """Return why systems of the template and submissions would differ in more than what they show."""
    own = Output.objects.filter(system__in=board.template.systems.judged())
    if not board.takes_images:
        if own.exclude(media="").exists():
            return ["Systems of the template have images, but teams submit texts. Choose images under “teams submit”."]
        return []
    problems = []
    if own.exclude(text="").exists():
        problems.append(
            "Systems of the template have texts, but teams submit images. Choose texts under “teams submit”."
        )
    if own.exclude(alt="").exists():
        problems.append(
            "Images of the template have descriptions, and submitted ones have none, so annotators could tell them apart. Remove the descriptions."
        )
    if board.controls_style:
        problems.append("Length and format are those of texts. Untick “control for style”.")
    if (board.sample_size or 0) > MAX_IMAGES:
        problems.append(f"An archive has at most {MAX_IMAGES:,} images. Choose a smaller subsample.")
    return problems


@transaction.atomic
def open_board(board: Board, by) -> Board:
    """Draw the subsample, fix the template's design by its hash, and take submissions from now on. Raise ActionRefused with all problems."""
    check_permission_or_404(by, BoardAction.EDIT, board)
    board = Board.objects.select_for_update(no_key=True, of=("self",)).select_related("template").get(pk=board.pk)
    if board.state != Board.State.DRAFT:
        raise ActionRefused(
            "The board is open already. You need not do anything."
            if board.state == Board.State.OPEN
            else "The board is closed and cannot be opened again. Make another board."
        )
    if problems := find_opening_problems(board):
        raise ActionRefused(" ".join(problems))
    sample = draw_first_sample(board, by)
    Board.objects.filter(pk=board.pk).update(
        state=Board.State.OPEN, opened_at=Now(), design_sha256=template_sha256(board.template)
    )
    systems = board.template.systems.judged().order_by("name")
    Submission.objects.bulk_create(
        Submission(board=board, number=number, name=system.name, is_human=system.is_human, is_anchor=True)
        for number, system in enumerate(systems, 1)
    )
    audit.record("open board", by=by, board=board.slug, prompts=len(sample.keys), seed=board.seed)
    board.refresh_from_db()
    return board


@transaction.atomic
def close_board(board: Board, by) -> Board:
    """Take no more submissions and open no more rounds. Rounds that are running end as planned, and their results still arrive.

    A round that was made and is not launched yet is cancelled, so that none opens after the board has closed.
    """
    check_permission_or_404(by, BoardAction.EDIT, board)
    board = Board.objects.select_for_update(no_key=True, of=("self",)).get(pk=board.pk)
    if board.state != Board.State.OPEN:
        raise ActionRefused(
            f"Only an open board can be closed, and this one is {board.state}. You need not do anything."
        )
    for one in board.rounds.filter(launched_at=None, cancelled_at=None, study__state=Study.State.DRAFT):
        cancel_round(one, by)
    Board.objects.filter(pk=board.pk).update(state=Board.State.CLOSED, closed_at=Now())
    audit.record("close board", by=by, board=board.slug)
    board.refresh_from_db()
    return board


# A board as one file: its settings and its template.


SCHEMA = "heval.board-bundle/1"
MAX_BYTES = MAX_BUNDLE_BYTES
FIELDS = (
    "slug", "title", "description", "visibility", "output_kind", "population", "controls_style", "balances_pairs", "shows_examples", "seed", "sample_size", "labels_per_output",
    "double_label_share", "anchor_share", "max_submissions_per_round", "max_waiting_per_team", "max_daily_per_team", "max_megabytes_per_team", "budget_per_submission", "budget_per_month", "opens_by_itself",
    "launch_weekdays", "launch_hour", "time_zone",
)  # fmt: skip


class BoardBundleRefused(Exception):
    """A file from which no board can be made. ``problems`` lists the reasons."""

    def __init__(self, problems: list[str]):
        super().__init__("; ".join(problems))
        self.problems = problems


def serialize_board(board: Board) -> dict[str, Any]:
    """Return a board's settings and its template as plain values. Submissions, rounds, teams and members are not included."""
    settings = {name: getattr(board, name) for name in FIELDS}
    plain = {name: str(value) if isinstance(value, Decimal) else value for name, value in settings.items()}
    template = serialize_bundle(board.template)
    # Who sees the board need not have a role in its template, whose own seed determines no round.
    template["study"]["seed"] = new_seed()
    return {"schema": SCHEMA, "board": plain, "template": template}


def create_board_from_bundle(data: bytes | dict[str, Any], by, *, slug: str = "") -> Board:
    """Make a board and its template from a bundle. Raise BoardBundleRefused with all problems; then nothing was written."""
    check_study_permission_or_404(by, Action.CREATE)
    try:
        value = parse_bundle_json(data) if isinstance(data, bytes | str) else data
    except BundleRefused as refused:
        raise BoardBundleRefused(refused.problems) from None
    problems = _find_problems(value)
    if problems:
        raise BoardBundleRefused(problems)
    settings = value["board"] | ({"slug": slug} if slug else {})
    try:
        with transaction.atomic():
            template = create_draft_from_bundle(value["template"], by)
            return create_board(Board(template=template, **settings), by)
    except BundleRefused as refused:
        raise BoardBundleRefused([f"template: {problem}" for problem in refused.problems]) from None
    except ValidationError as refused:
        errors = refused.message_dict if hasattr(refused, "error_dict") else {"board": refused.messages}
        raise BoardBundleRefused(
            [f"board, {name}: {text}" for name, texts in errors.items() for text in texts]
        ) from None


def _find_problems(value: dict[str, Any]) -> list[str]:
    if value.get("schema") != SCHEMA:
        return [
            f"This is not a bundle of a board: its “schema” is not “{SCHEMA}”. A bundle of a study makes a draft instead."
        ]
    problems = [
        f"“{name}” is missing. It must be an object."
        for name in ("board", "template")
        if not isinstance(value.get(name), dict)
    ]
    if not problems:
        unknown = sorted(set(value["board"]) - set(FIELDS))
        problems += [
            f"board: “{name}” is not a setting of a board. {advice_on_unknown_name(name, set(FIELDS) - set(value['board']))}"
            for name in unknown
        ]
    return problems
