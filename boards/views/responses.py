"""Answers of a board's public addresses: who may keep them, when they are unchanged, and who may frame them."""

from datetime import datetime
from hashlib import sha256

from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response
from django.utils.http import http_date

from boards.models import Board

# Short, because a team may withdraw at any time, and its name must then disappear from everywhere.
MAX_AGE = 60
POLICY = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "


def board_response(
    request: HttpRequest,
    board: Board,
    content: str,
    content_type: str = "text/html",
    *,
    changed_at: datetime,
    filename: str = "",
    is_framable: bool = False,
) -> HttpResponse:
    """Return the content, or 304 if the client has it. Results of private boards are never stored by a shared cache."""
    response = HttpResponse(content, content_type=f"{content_type}; charset=utf-8")
    if filename:
        response["Content-Disposition"] = f'attachment; filename="{filename}"'
    return finish(request, board, response, changed_at=changed_at, is_framable=is_framable)


def finish(
    request: HttpRequest, board: Board, response: HttpResponse, *, changed_at: datetime, is_framable: bool = False
) -> HttpResponse:
    """Add the headers that all answers of a board have, and answer 304 if the client has the content."""
    etag = f'"{sha256(response.content).hexdigest()[:32]}"'
    response["ETag"] = etag
    response["Last-Modified"] = http_date(changed_at.timestamp())
    response["Cache-Control"] = f"public, max-age={MAX_AGE}" if board.is_public else "private, no-cache"
    unchanged = get_conditional_response(
        request, etag=etag, last_modified=int(changed_at.timestamp()), response=response
    )
    found = unchanged or response
    # A browser takes the headers of a 304 for the page that it kept, so that they must be the same.
    found["Content-Security-Policy"] = POLICY + ("*" if is_framable else "'none'")
    found.xframe_options_exempt = is_framable
    return found
