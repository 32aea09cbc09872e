"""The page at the root of the site: what this server is, and where to go from here. It tells nothing of any study."""

from django.shortcuts import render
from django.views.decorators.http import require_safe


@require_safe
def front(request):
    """What this server is, for whoever comes without a link."""
    return render(request, "front.html", {"title": "Human evaluations"})
