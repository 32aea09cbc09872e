"""Acts on a whole study: pause, resume, close, open more places, show outcomes, clone, share, archive, delete.

One table serves the admin, the REST interface and the command line: each makes its form, its address or its options from it.
The functions that perform an act are in ``services``.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from django.core.exceptions import ValidationError

from studies import access
from studies.access import Action
from studies.imports.study_templates import keep_as_template
from studies.models import OwnTemplate, Study
from studies.services import copying, lifecycle
from studies.services.lifecycle import is_lifecycle_step_allowed


@dataclass(frozen=True, slots=True)
class ActField:
    """A value that an act asks for: a line of text, a long text, a whole number (``maximum``) or one of ``choices``."""

    name: str
    label: str = ""
    help: str = ""
    is_required: bool = True
    is_long: bool = False
    max_length: int = 200
    maximum: int = 0
    choices: tuple[tuple[str, str], ...] = ()
    default: Any = None


REASON = ActField("reason", help="The study's log keeps it.", is_long=True, max_length=1000)
COPY_TITLE = ActField("title")
COPY_TEXTS = ActField(
    "texts",
    choices=(
        ("with", "with the texts: its prompts, outputs, test questions and ready-made batches"),
        ("without", "without the texts: you import others"),
    ),
    is_required=False,
    default="with",
)


@dataclass(frozen=True, slots=True)
class Act:
    """An act. ``perform(study, user, **values)`` returns what it made or counted, or None.

    ``name``: its address in the admin and in REST, and its name on the command line.
    """

    name: str
    label: str
    consequences: tuple[str, ...]
    perform: Callable[..., Any]
    fields: tuple[ActField, ...] = ()
    action: Action = Action.RUN
    is_irreversible: bool = False
    # The step of ``lifecycle.STATES`` that says in which states it is allowed.
    step: str = ""

    def is_available(self, study: Study) -> bool:
        return is_lifecycle_step_allowed(self.step or self.name, study)


def _close(study: Study, by, reason: str = "") -> None:
    lifecycle.start_closing(study, by, reason)


def _open_places(study: Study, by, places: int) -> int:
    return lifecycle.open_more_places(study, places, by)


def _clone(study: Study, by, title: str, texts: str = "with") -> Study:
    return copying.clone_study(study, by, title, has_texts=texts != "without")


def _keep_template(study: Study, by, title: str, texts: str = "without") -> OwnTemplate:
    return keep_as_template(study, by, title, has_texts=texts == "with")


def _invite(study: Study, by, account: str, role: str) -> tuple[Any, bool]:
    try:
        return access.invite_colleague(study, by, account, role)
    except ValidationError as refused:
        raise lifecycle.ActionRefused(" ".join(refused.messages)) from None


ACTS = {
    act.name: act
    for act in (
        Act(
            "pause",
            "Pause",
            (
                "No new annotators can start until you resume. Annotators who have started can finish, and keep their places.",
            ),
            lifecycle.pause,
        ),
        Act("resume", "Resume", ("New annotators can start again.",), lifecycle.resume),
        Act(
            "places",
            "Open more places",
            ("heval draws more batches of the same design if all are taken. Earlier batches do not change.",),
            _open_places,
            (ActField("places", "more places", "How many places to open.", maximum=100_000, default=10),),
            step="draw more",
        ),
        Act(
            "close",
            "Close",
            (
                "No new annotators can start. You cannot open a closed study again; you can clone it.",
                "Annotators who have started may finish within the grace period, which is set on the study's page. The study takes their "
                "answers until the grace period ends, even if nobody is still answering.",
            ),
            _close,
            (replace(REASON, is_required=False, default=""),),
            is_irreversible=True,
        ),
        Act(
            "outcomes",
            "Show outcomes now",
            (
                "heval hides outcomes by system while a study collects. So the results cannot influence when you stop, add or exclude people.",
                "Once you see outcomes, the study's tests are no longer confirmatory. The report says so and gives your reason.",
            ),
            lifecycle.unblind,
            (REASON,),
            Action.UNBLIND,
            is_irreversible=True,
            step="unblind",
        ),
        Act(
            "clone",
            "Clone",
            (
                "Make a new draft with the same design, systems and words, and a new seed. You are its only member, as owner.",
                "Annotators of this study cannot take part in the copy, unless you change that on its page.",
            ),
            _clone,
            (COPY_TITLE, COPY_TEXTS),
            Action.CLONE,
        ),
        Act(
            "invite",
            "Invite a colleague",
            (
                "Give a colleague a role in this study. If there is no account of this name, heval makes one, and you get an address to send.",
                "To change or remove roles, use the table of colleagues on the study's page.",
            ),
            _invite,
            (
                ActField(
                    "account",
                    "user name or e-mail address",
                    "Of an account that exists, or of one that heval makes now.",
                    max_length=150,
                ),
                ActField("role", choices=tuple(access.Role.choices), default=access.Role.EDITOR.value),
            ),
            Action.SHARE,
            step="clone",
        ),
        Act(
            "keep-template",
            "Keep as a template",
            (
                "Keep the design as a template: sections, questions, sample size, pay, words and planned comparisons. The study itself does not change.",
                "Members of this study who may clone it can use the template.",
            ),
            _keep_template,
            (
                replace(COPY_TITLE, help="The name of the template in the list of templates."),
                replace(COPY_TEXTS, default="without"),
            ),
            Action.CLONE,
            step="clone",
        ),
        Act(
            "remove-texts",
            "Remove all texts",
            (
                "Remove all prompts and outputs of the draft, with its test runs, and with the practice items, test questions and ready-made "
                "batches that show them. Systems and sections stay.",
            ),
            copying.remove_texts,
            action=Action.EDIT,
            is_irreversible=True,
            step="remove texts",
        ),
        Act(
            "archive",
            "Archive",
            ("The study disappears from the list. Nothing is lost, and you can bring it back.",),
            lifecycle.archive,
            action=Action.ARCHIVE,
        ),
        Act(
            "restore",
            "Bring back",
            ("The study appears in the list again.",),
            copying.restore_archived,
            action=Action.ARCHIVE,
        ),
        Act(
            "delete",
            "Delete draft",
            (
                "Delete the draft with its systems, prompts, outputs and test runs. If it has records that must be kept, it is archived instead.",
            ),
            copying.delete_or_archive_draft,
            action=Action.ARCHIVE,
            is_irreversible=True,
            step="delete draft",
        ),
    )
}
