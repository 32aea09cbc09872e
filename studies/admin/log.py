"""The audit log, read-only."""

import json

from django.contrib import admin
from django.db.models import Q
from django.utils.html import format_html

from studies.models import audit

from ..models import AuditEvent
from .permissions import CODE_SHOWN, ReadOnlyAdmin, StudyFilter, assignment_code_prefix_q, parse_row_id


class LogStudyFilter(StudyFilter):
    def queryset(self, request, queryset):
        # The list itself chooses the rows: events of a draft have no foreign key to it.
        return queryset if (value := self.value()) is None or parse_row_id(value) else queryset.none()


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    list_display = ("at", "verb", "study", "by", "assignment", "details")
    list_filter = (LogStudyFilter, "verb")
    list_select_related = ("study", "by")
    list_display_links = None
    list_per_page = 100
    search_fields = ("verb", "assignment_code")
    search_help_text = "Name of an action, or the first eight characters of an assignment's code"
    actions = None

    def get_queryset(self, request):
        study = self.listed_study(request)
        return audit.events_of(study) if study else super().get_queryset(request)

    def get_search_results(self, request, queryset, search_term):
        for word in search_term.split():
            queryset = queryset.filter(Q(verb__icontains=word) | assignment_code_prefix_q(word, "assignment_code"))
        return queryset, False

    @admin.display(description="assignment")
    def assignment(self, event):
        return event.assignment_code[:CODE_SHOWN] or "–"

    @admin.display(description="details")
    def details(self, event):
        if not event.data:
            return ""
        text = "; ".join(f"{name}: {_plain(value)}" for name, value in event.data.items() if value not in ("", [], {}))
        return format_html('<span class="details">{}</span>', text if len(text) < 300 else text[:299] + "…")


def _plain(value) -> str:
    if isinstance(value, str):
        return value if len(value) != 64 else value[:12]
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False)
