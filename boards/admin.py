"""The list of boards in the admin. It leads to the pages of members, which are the only way to change a board."""

from django.contrib import admin
from django.http import Http404, HttpResponseRedirect
from django.urls import reverse

from studies.access import is_researcher
from studies.admin.permissions import RestrictedLookupAdmin

from .access import boards_of
from .models import Board


@admin.register(Board)
class BoardAdmin(RestrictedLookupAdmin):
    """List the boards that a researcher is a member of."""

    list_display = ("title", "slug", "state", "visibility", "opened_at")
    list_filter = ("state",)
    list_per_page = 50
    actions = None
    change_list_template = "admin/studies/list.html"

    def changelist_view(self, request, extra_context=None):
        text = "There is no board yet. A board compares systems again and again on one task."
        return super().changelist_view(request, {"title": "Boards", "empty_words": text} | (extra_context or {}))

    def get_queryset(self, request):
        return boards_of(request.user).order_by("title")

    def add_view(self, request, form_url="", extra_context=None):
        return HttpResponseRedirect(reverse("board_new"))

    def change_view(self, request, object_id, form_url="", extra_context=None):
        board = self.get_object(request, object_id)
        if board is None:
            raise Http404("This board does not exist.")
        return HttpResponseRedirect(reverse("board_manage", args=[board.slug]))

    def has_module_permission(self, request):
        return is_researcher(request.user)

    def has_view_permission(self, request, obj=None):
        return is_researcher(request.user)

    def has_add_permission(self, request):
        return is_researcher(request.user)

    def has_change_permission(self, request, obj=None):
        return is_researcher(request.user)

    def has_delete_permission(self, request, obj=None):
        return False
