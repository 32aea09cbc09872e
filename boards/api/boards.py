"""API views of boards: list, create, change, open, close; and the prompts that submissions answer."""

from django.core.exceptions import PermissionDenied
from django.db.models import Max, Q
from django.http import FileResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.response import Response

from analysis.api.base import document_operation, page_serializer, require_json_object
from analysis.api.query import Parameter, page_parameters, page_response, parse_single_line
from analysis.api.renderers import RowErrors, row_error
from boards.access import BoardAction, boards_of
from boards.models import Board
from boards.services import boards, rounds
from boards.services.images import prompts_with_images, write_prompts_archive
from studies.models import Study

from . import serializers as shapes
from .base import BoardsAPIView, BoardView

TAG = "boards"


class BoardsView(BoardsAPIView):
    """List the public boards and those that you are a member of, or create a board."""

    parameters = (
        *page_parameters(),
        Parameter("state", parse_single_line, "Only boards in this state.", None, str, tuple(Board.State.values)),
    )

    @document_operation(
        "Boards that you can see", page_serializer("Board", shapes.BoardSerializer), parameters=parameters, tag=TAG
    )
    def get(self, request):
        seen = Q(visibility=Board.Visibility.PUBLIC) & ~Q(state=Board.State.DRAFT)
        mine = set(boards_of(self.caller.user).values_list("pk", flat=True)) if self.caller.user is not None else set()
        if self.caller.team is not None:
            seen |= Q(pk=self.caller.team.board_id)
        rows = with_newest_number(Board.objects.filter(seen | Q(pk__in=mine), pk__gt=self.values["cursor"][0]))
        if self.values["state"] is not None:
            rows = rows.filter(state=self.values["state"])
        page = rows.order_by("pk")[: self.values["page_size"] + 1]
        return page_response(
            request, self.values, [(one.pk, shapes.board_json(one, is_member=one.pk in mine)) for one in page]
        )

    @document_operation("Create a board", shapes.BoardSerializer, request=shapes.BoardSerializer, status=201, tag=TAG)
    def post(self, request):
        if self.caller.user is None:
            raise PermissionDenied("Only a researcher can create a board. Send the token of a researcher.")
        columns = validated(shapes.BoardSerializer(data=require_json_object(request)))
        created = boards.create_board(Board(**columns), self.caller.user)
        return board_response(created, status=201)


def with_newest_number(rows):
    return rows.select_related("template").annotate(newest_number=Max("snapshots__number"))


def validated(serializer) -> dict:
    """Return the columns of a request. Raise RowErrors if there is no such template."""
    serializer.is_valid(raise_exception=True)
    columns = dict(serializer.validated_data)
    if "template" in columns:
        code = columns["template"]["code"]
        columns["template"] = Study.objects.filter(code=code).first()
        if columns["template"] is None:
            raise RowErrors([row_error(None, "template", f"There is no study {code}. Send the code of your draft.")])
    return columns


def board_response(board: Board, *, is_member: bool = True, status: int = 200) -> Response:
    shown = with_newest_number(Board.objects.filter(pk=board.pk)).get()
    return Response(shapes.board_json(shown, is_member=is_member), status=status)


class BoardDetailView(BoardView):
    """One board: what it asks, and for members its settings."""

    write_action = BoardAction.EDIT

    @document_operation("A board", shapes.BoardSerializer, tag=TAG)
    def get(self, request, slug):
        return board_response(self.board, is_member=self.is_member)

    @document_operation(
        "Change settings of a board", shapes.BoardSerializer, request=shapes.BoardSerializer(partial=True), tag=TAG
    )
    def patch(self, request, slug):
        columns = validated(shapes.BoardSerializer(self.board, data=require_json_object(request), partial=True))
        return board_response(boards.change_board(self.board, self.caller.user, columns))


class OpenBoardView(BoardView):
    """Open a board: draw its prompts, and take submissions from now on."""

    write_action = BoardAction.EDIT

    @document_operation("Open a board", shapes.BoardSerializer, request={}, tag=TAG)
    def post(self, request, slug):
        return board_response(boards.open_board(self.board, self.caller.user))


class CloseBoardView(BoardView):
    """Close a board. It takes no more submissions and opens no more rounds."""

    write_action = BoardAction.EDIT

    @document_operation("Close a board", shapes.BoardSerializer, request={}, tag=TAG)
    def post(self, request, slug):
        return board_response(boards.close_board(self.board, self.caller.user))


class RenewSampleView(BoardView):
    """Renew a share of the board's prompts. The next round scores both samples, so that scores stay comparable."""

    write_action = BoardAction.EDIT

    @document_operation(
        "Renew a share of the prompts", shapes.SampleSerializer, request=shapes.RenewalSerializer, status=201, tag=TAG
    )
    def post(self, request, slug):
        form = shapes.RenewalSerializer(data=require_json_object(request))
        form.is_valid(raise_exception=True)
        made = rounds.renew_sample(self.board, self.caller.user, **form.validated_data)
        fields = {
            "number": made.number,
            "prompts": len(made.keys),
            "seed": made.seed,
            "share": made.share,
            "at": made.at,
        }
        return Response(shapes.SampleSerializer(fields).data, status=201)


class BoardPromptsView(BoardView):
    """The prompts that each submission answers, without references and without outputs of others."""

    readers = "submitters"
    parameters = page_parameters()

    @document_operation(
        "Prompts to answer",
        page_serializer("BoardPrompt", shapes.PromptToAnswerSerializer),
        parameters=parameters,
        tag=TAG,
    )
    def get(self, request, slug):
        start, size = self.values["cursor"][0], self.values["page_size"]
        rows = prompts_with_images(self.board)[start : start + size + 1]
        return page_response(request, self.values, [(start + place, row) for place, row in enumerate(rows, 1)])


class PromptsArchiveView(BoardView):
    """The prompts with their images, as one ZIP."""

    readers = "submitters"

    @document_operation(
        "Prompts to answer with their images in one zip", OpenApiTypes.BINARY, media_type="application/zip", tag=TAG
    )
    def get(self, request, slug):
        filename = f"{self.board.slug}-prompts.zip"
        return FileResponse(write_prompts_archive(self.board), as_attachment=True, filename=filename)
