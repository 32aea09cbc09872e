"""A board as one file: its settings and its template."""

from decimal import Decimal
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from boards.models import Board
from studies.access import Action, check_permission_or_404
from studies.imports.bundle import (
    MAX_BUNDLE_BYTES,
    BundleRefused,
    create_draft_from_bundle,
    parse_bundle_json,
    serialize_bundle,
)
from studies.models import new_seed

from .boards import create_board

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
    check_permission_or_404(by, Action.CREATE)
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
        problems += [f"board: “{name}” is not a setting of a board. Remove it." for name in unknown]
    return problems
