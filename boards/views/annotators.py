"""The page of a board's annotators. It shows the last stored screening of a round and computes nothing."""

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from analysis.exclusions.screening import probability_in_words
from boards.access import BoardAction, get_board
from boards.services.annotators import read_board_screening

from .members import render_page

PAGE_SIZE = 100


@login_required
@require_safe
def annotators_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what the answers to test questions in all rounds say about each person."""
    board = get_board(request.user, BoardAction.VIEW, slug)
    found = read_board_screening(board)
    people = found.people if found else []
    page = Paginator(people, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "board": board,
        "found": found,
        "page": page,
        "rows": [(one, one.probability is not None and probability_in_words(one.probability)) for one in page],
        "n_flagged": sum(one.is_flagged is True for one in people),
    }
    return render_page(request, "annotators", context)
