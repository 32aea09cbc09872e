"""Base classes of the admin. The role in a study replaces Django's own permissions."""

from django.contrib import admin
from django.db.models import Q

from studies import access
from studies.access import Action, is_researcher
from studies.models import Study

CODE_SHOWN = 8  # characters of an assignment's code: enough to refer to it


def is_request_allowed(request, action: Action, study_id: int | None = None) -> bool:
    """Return ``access.is_allowed`` for the user of the request. Read the user's roles once per request."""
    if not hasattr(request, "_study_roles"):
        request._study_roles = access.roles_by_study_id(request.user)
    return access.is_allowed(request.user, action, study_id, request._study_roles)


def changed_fields_and_row_kinds(form, formsets=()) -> list[str]:
    """Return the columns and the kinds of rows that the sent page changes."""
    rows = {str(formset.model._meta.verbose_name_plural) for formset in formsets if formset.has_changed()}
    return sorted({*form.changed_data} | rows)


def parse_row_id(text: str) -> int | None:
    """Return a row's id from a URL, or None if the text cannot be one."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def assignment_code_prefix_q(term: str, column: str) -> Q:
    """Return a filter by assignment: by the first characters of its code, as lists show them, or by the full code."""
    # The code is an annotator's credential. A search by any other part would reveal it letter by letter.
    return Q(**{f"{column}__startswith" if len(term) <= CODE_SHOWN else column: term})


class RestrictedLookupAdmin(admin.ModelAdmin):
    """A list that accepts only the filters that it offers. It refuses every other column that a URL names."""

    def lookup_allowed(self, lookup, value, request):
        offered = self.get_list_filter(request)
        columns = {
            f"{name}{suffix}" for name in offered if isinstance(name, str) for suffix in ("", "__exact", "__isnull")
        }
        filters = {
            filter_class
            for filter_class in offered
            if isinstance(filter_class, type) and issubclass(filter_class, admin.SimpleListFilter)
        }
        names = columns | {str(filter_.parameter_name) for filter_ in filters}
        return lookup in names and "\0" not in value  # PostgreSQL refuses NUL characters


class StudyScopedAdmin(RestrictedLookupAdmin):
    """A ModelAdmin for rows that belong to a study. Rows of a design can only be changed in a draft."""

    action = Action.EDIT
    is_design = True
    change_list_template = "admin/studies/list.html"

    def get_queryset(self, request):
        return access.filter_allowed(request.user, super().get_queryset(request))

    def listed_study(self, request) -> Study | None:
        """Return the study to which the URL limits the list, or None."""
        if not hasattr(request, "_listed_study"):
            pk = parse_row_id(request.GET.get("study", ""))
            request._listed_study = (
                access.filter_allowed(request.user, Study.objects.filter(pk=pk)).first() if pk else None
            )
        return request._listed_study

    def get_list_display(self, request):
        # In the list of one study, every row would repeat its title.
        columns = super().get_list_display(request)
        return (
            [name for name in columns if name not in ("study", "study_title")]
            if self.listed_study(request)
            else columns
        )

    def changelist_view(self, request, extra_context=None):
        study = self.listed_study(request)
        title = str(self.opts.verbose_name_plural).capitalize()
        extra = {"title": title, "subtitle": study.title if study else None, "study": study}
        return super().changelist_view(request, extra | (extra_context or {}))

    def render_change_form(self, request, context, add=False, change=False, form_url="", obj=None):
        if add:  # every button leads to the page of the new row
            context |= {"show_save_and_add_another": False, "show_save_and_continue": False}
        return super().render_change_form(request, context, add, change, form_url, obj)

    def has_module_permission(self, request):
        return is_researcher(request.user)

    def has_view_permission(self, request, obj=None):
        study = access.study_of(obj)
        if obj is None or study is None:
            # Only administrators find a row without a study, such as the log's line about a deleted draft.
            return is_researcher(request.user) and (obj is None or access.is_owner_or_admin(request.user, None))
        return is_request_allowed(request, Action.VIEW, study.pk)

    def has_add_permission(self, request):
        return False

    def has_change_permission(self, request, obj=None):
        if obj is None:
            return is_request_allowed(request, self.action)
        study = access.study_of(obj)
        if study is None:
            return False
        return is_request_allowed(request, self.action, study.pk) and (study.is_draft or not self.is_design)

    def has_delete_permission(self, request, obj=None):
        return obj is not None and self.has_change_permission(request, obj)


class ReadOnlyAdmin(StudyScopedAdmin):
    """A ModelAdmin for records, which nobody may change here."""

    def has_change_permission(self, request, obj=None):
        return False

    def has_delete_permission(self, request, obj=None):
        return False


class StudyFilter(admin.SimpleListFilter):
    """A filter by study. It offers the studies that the user may see."""

    title = "study"
    parameter_name = "study"

    def lookups(self, request, model_admin):
        studies = access.filter_allowed(request.user, Study.objects.filter(archived_at=None)).order_by("-pk")
        return [(str(pk), title) for pk, title in studies.values_list("pk", "title")[:100]]

    def queryset(self, request, queryset):
        value = self.value()
        if not value:
            return queryset
        return (
            queryset.filter(**{access.study_lookup_path(queryset.model): parse_row_id(value)})
            if parse_row_id(value)
            else queryset.none()
        )


class InlinePermissions:
    """Permissions of a study's inlines: by role. Rows of a design can only be changed in a draft."""

    is_design = True
    action = Action.EDIT

    def _study(self, obj):
        return obj if isinstance(obj, Study) or obj is None else obj.study

    def _may(self, request, obj):
        study = self._study(obj)
        if study is None or study.pk is None:
            return True
        return is_request_allowed(request, self.action, study.pk) and (study.is_draft or not self.is_design)

    def has_view_permission(self, request, obj=None):
        study = self._study(obj)
        return study is None or study.pk is None or is_request_allowed(request, Action.VIEW, study.pk)

    def has_add_permission(self, request, obj=None):
        return self._may(request, obj)

    has_change_permission = has_delete_permission = lambda self, request, obj=None: self._may(request, obj)
