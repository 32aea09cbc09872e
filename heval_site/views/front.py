"""The root page of the site: what this server is, and where to go next. It reveals no study."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe


@require_safe
def front_page(request) -> HttpResponse:
    """Explain this server to people who come without a link."""
    return render(request, "front.html", {"title": "Human evaluations"})
