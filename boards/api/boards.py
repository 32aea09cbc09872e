"""API views of boards: list, create, change, open, close; and the prompts that submissions answer."""

from collections.abc import Callable
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import Max, Q
from django.http import FileResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.generics import ListAPIView, RetrieveAPIView

from analysis.api.base import ApiView, PostMixin
from analysis.api.query import text_filter
from analysis.api.renderers import FieldError
from analysis.api.uploads import require_json_object
from boards.access import BoardAction, boards_of
from boards.models import Board, BoardSample
from boards.services import boards, rounds
from boards.services.boards import settings_of_template
from boards.services.images import prompts_with_images, write_prompts_archive
from studies.models import Study

from . import serializers as shapes
from .base import BoardsAPIView, BoardView


def shown_boards():
    """Return the boards with what a response needs."""
    return Board.objects.select_related("template").annotate(newest_number=Max("snapshots__number"))


class BoardFieldsMixin(ApiView):
    """The body has the settings of a board. They name its template by the code."""

    body_serializer_class = shapes.BoardSerializer

    def check_fields(self, fields: Any, instance: Board | None = None) -> dict[str, Any]:
        columns = super().check_fields(fields, instance)
        if "template" in columns:
            code = columns["template"]["code"]
            columns["template"] = Study.objects.filter(code=code).first()
            if columns["template"] is None:
                raise FieldError("template", f"There is no study {code}. Send the code of your draft.")
            if instance is None:
                columns = settings_of_template(columns["template"]) | columns
        return columns


class CreateBoardView(PostMixin, BoardsAPIView):
    """POST creates a board. Only researchers may do this."""

    serializer_class = shapes.BoardSerializer
    success_status = 201
    create_board: Callable[..., Board]

    def post(self, request):
        if self.caller.user is None:
            raise PermissionDenied("Only a researcher can create a board. Send the token of a researcher.")
        return super().post(request)

    def perform(self, **sent: Any) -> Board:
        return shown_boards().get(pk=self.create_board(**sent).pk)


class BoardsView(BoardFieldsMixin, CreateBoardView, ListAPIView):
    """List the public boards and those that you are a member of, or create a board."""

    summaries = {"GET": "Boards that you can see", "POST": "Create a board"}
    parameters = (text_filter("state", "state", "Only boards in this state.", tuple(Board.State.values)),)

    def get_queryset(self):
        seen = Q(visibility=Board.Visibility.PUBLIC) & ~Q(state=Board.State.DRAFT)
        user, team = self.caller.user, self.caller.team
        self.mine = set(boards_of(user).values_list("pk", flat=True)) if user is not None else set()
        if team is not None:
            seen |= Q(pk=team.board_id)
        return shown_boards().filter(seen | Q(pk__in=self.mine))

    def shows_settings(self, board: Board) -> bool:
        return not self.is_read or board.pk in self.mine

    def create_board(self, **columns: Any) -> Board:
        return boards.create_board(Board(**columns), self.caller.user)


class SettingsView(BoardView):
    """What changes the settings of a board answers them."""

    write_action = BoardAction.EDIT
    serializer_class = shapes.BoardSerializer

    def get_object(self) -> Board:
        return shown_boards().get(pk=self.board.pk)


class BoardDetailView(BoardFieldsMixin, SettingsView, RetrieveAPIView):
    """One board: what it asks, and for members its settings."""

    summaries = {"GET": "A board", "PATCH": "Change settings of a board"}

    def patch(self, request, slug):
        boards.change_board(self.board, self.caller.user, self.check_fields(require_json_object(request), self.board))
        return self.answer(self.get_object())


class OpenBoardView(PostMixin, SettingsView):
    """Open a board: draw its prompts, and take submissions from now on."""

    summaries = {"POST": "Open a board"}

    def perform(self) -> Board:
        boards.open_board(self.board, self.caller.user)
        return self.get_object()


class NoTestQuestionsView(PostMixin, SettingsView):
    """Go on without test questions: delete the rules of the template that need them."""

    summaries = {"POST": "Delete the template's rules about test questions"}

    def perform(self) -> Board:
        boards.delete_rules_about_test_questions(self.board, self.caller.user)
        return self.get_object()


class CloseBoardView(PostMixin, SettingsView):
    """Close a board. It takes no more submissions and opens no more rounds."""

    summaries = {"POST": "Close a board"}

    def perform(self) -> Board:
        boards.close_board(self.board, self.caller.user)
        return self.get_object()


class RenewSampleView(PostMixin, BoardView):
    """Renew a share of the board's prompts. The next round scores both samples, so that scores stay comparable."""

    write_action = BoardAction.EDIT
    summaries = {"POST": "Renew a share of the prompts"}
    serializer_class = shapes.SampleSerializer
    body_serializer_class = shapes.RenewalSerializer
    success_status = 201

    def perform(self, **sent: Any) -> BoardSample:
        return rounds.renew_sample(self.board, self.caller.user, **sent)


class BoardPromptsView(BoardView, ListAPIView):
    """The prompts that each submission answers, without references and without outputs of others."""

    readers = "submitters"
    summaries = {"GET": "Prompts to answer"}
    page_name = "BoardPrompt"
    serializer_class = shapes.PromptToAnswerSerializer

    def list(self, request, slug):
        start = self.values["cursor"][0]
        rows = prompts_with_images(self.board)[start : start + self.rows_needed]
        return self.page_of(enumerate(rows, start + 1))


class PromptsArchiveView(BoardView):
    """The prompts with their images, as one ZIP."""

    readers = "submitters"
    summaries = {"GET": "Prompts to answer with their images in one zip"}
    media_type, response_type = "application/zip", OpenApiTypes.BINARY

    def get(self, request, slug):
        filename = f"{self.board.slug}-prompts.zip"
        return FileResponse(write_prompts_archive(self.board), as_attachment=True, filename=filename)
