"""Who sees and does what: the role in a study stands where Django's own permissions would.

Every list, page, choice and action of the admin asks here. Administrators (superusers) may do everything in every study.
"""

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import F, Q
from django.http import Http404

from ..models import Study, StudyMember

Role = StudyMember.Role
LOOK = frozenset({Role.OWNER, Role.EDITOR, Role.VIEWER})
EDIT = frozenset({Role.OWNER, Role.EDITOR})
OWN = frozenset({Role.OWNER})
CODE_SHOWN = 8  # characters of an assignment's code, so that people may speak of it


def roles_of(request) -> dict[int, str]:
    """The user's role by study id; one query a request."""
    if not hasattr(request, "_study_roles"):
        user = request.user
        is_staff = user.is_active and user.is_staff
        rows = StudyMember.objects.filter(user=user).values_list("study_id", "role") if is_staff else ()
        request._study_roles = dict(rows)
    return request._study_roles


def may(request, study_id: int | None, roles=LOOK) -> bool:
    """Whether the user has one of these roles in the study; without a study, whether in any."""
    user = request.user
    if not (user.is_active and user.is_staff):
        return False
    if user.is_superuser:
        return True
    mine = roles_of(request)
    return mine.get(study_id) in roles if study_id else any(role in roles for role in mine.values())


def visible(request, queryset, path: str = "study", roles=LOOK):
    """The rows of studies in which the user has one of these roles."""
    if request.user.is_superuser:
        return queryset
    mine = [study for study, role in roles_of(request).items() if role in roles]
    return queryset.filter(**{f"{path}__in": mine})


def study_or_404(request, pk, roles=LOOK) -> Study:
    """The study: 404 for who may not see it, as if it were not there; 403 for who may see it but not do this."""
    study = visible(request, Study.objects.all(), "pk").filter(pk=pk).first()
    if study is None:
        raise Http404("There is no such study.")
    if not may(request, study.pk, roles):
        raise PermissionDenied
    return study


def count_save(study_id: int) -> None:
    """A study's version counts the saves of its design: what was prepared for an older one is prepared anew."""
    Study.objects.filter(pk=study_id).update(version=F("version") + 1)


def has_changes(form, formsets=()) -> bool:
    """Whether a page that was sent differs from what it showed. A save without a change leaves no trace."""
    return form.has_changed() or any(formset.has_changed() for formset in formsets)


def row_id(value: str) -> int | None:
    """A row's id from an address, None for what can be none."""
    return int(value) if value.isascii() and value.isdigit() and len(value) < 19 else None


def by_code(term: str, column: str) -> Q:
    """Rows whose assignment is meant: by as much of its code as lists show, or by the whole code of who has it."""
    # The code is an annotator's credential: any other part of it that finds a row would tell it letter by letter.
    return Q(**{f"{column}__startswith" if len(term) <= CODE_SHOWN else column: term})


class OfferedFilters(admin.ModelAdmin):
    """A list is filtered by what it offers: any other column that an address names is refused, whatever is asked of it."""

    def lookup_allowed(self, lookup, value, request):
        offered = self.get_list_filter(request)
        columns = {f"{one}{how}" for one in offered if isinstance(one, str) for how in ("", "__exact", "__isnull")}
        names = columns | {one.parameter_name for one in offered if not isinstance(one, str)}
        return lookup in names and "\0" not in value  # which PostgreSQL would not even compare


class Scoped(OfferedFilters):
    """A ModelAdmin for rows that belong to a study. Rows of a design may be changed in a draft alone."""

    study_path = "study"
    is_design = True
    change_list_template = "admin/studies/list.html"

    def study_of(self, obj) -> Study | None:
        for name in self.study_path.split("__"):
            if name == "pk" or obj is None:
                return obj
            obj = getattr(obj, name)
        return obj

    def get_queryset(self, request):
        return visible(request, super().get_queryset(request), self.study_path)

    def listed_study(self, request) -> Study | None:
        """The study whose rows alone a list shows, where its address names one."""
        if not hasattr(request, "_listed_study"):
            pk = row_id(request.GET.get("study", ""))
            request._listed_study = visible(request, Study.objects.all(), "pk").filter(pk=pk).first() if pk else None
        return request._listed_study

    def get_list_display(self, request):
        # In the list of one study its title would stand in every row.
        columns = super().get_list_display(request)
        return (
            [one for one in columns if one not in ("study", "study_title")] if self.listed_study(request) else columns
        )

    def changelist_view(self, request, extra_context=None):
        study = self.listed_study(request)
        title = str(self.opts.verbose_name_plural).capitalize()
        extra = {"title": title, "subtitle": study.title if study else None, "study": study}
        return super().changelist_view(request, extra | (extra_context or {}))

    def render_change_form(self, request, context, add=False, change=False, form_url="", obj=None):
        if add:  # what is added goes on on its own page, whatever the button
            context |= {"show_save_and_add_another": False, "show_save_and_continue": False}
        return super().render_change_form(request, context, add, change, form_url, obj)

    def has_module_permission(self, request):
        return request.user.is_active and request.user.is_staff

    def has_view_permission(self, request, obj=None):
        if obj is None:
            return self.has_module_permission(request)
        return may(request, self.study_of(obj).pk)

    def has_add_permission(self, request):
        return False

    def has_change_permission(self, request, obj=None):
        if obj is None:
            return may(request, None, EDIT)
        study = self.study_of(obj)
        return may(request, study.pk, EDIT) and (study.is_draft or not self.is_design)

    def has_delete_permission(self, request, obj=None):
        return obj is not None and self.has_change_permission(request, obj)


class ReadOnly(Scoped):
    """A record: it is looked at, never changed here."""

    def has_change_permission(self, request, obj=None):
        return False

    def has_delete_permission(self, request, obj=None):
        return False


class VisibleStudies(admin.SimpleListFilter):
    """A filter by the studies that the user may see."""

    title = "study"
    parameter_name = "study"

    def lookups(self, request, model_admin):
        studies = visible(request, Study.objects.filter(archived_at=None), "pk").order_by("-pk")
        return [(str(pk), title) for pk, title in studies.values_list("pk", "title")[:100]]

    def queryset(self, request, queryset):
        value = self.value()
        if not value:
            return queryset
        path = getattr(queryset.model, "study_path", "study")
        return queryset.filter(**{path: row_id(value)}) if row_id(value) else queryset.none()


class InlineRoles:
    """Permissions of a study's inlines: its roles, and its design in a draft alone."""

    is_design = True
    roles = EDIT

    def _study(self, obj):
        return obj if isinstance(obj, Study) or obj is None else obj.study

    def _may(self, request, obj):
        study = self._study(obj)
        if study is None or study.pk is None:
            return True
        return may(request, study.pk, self.roles) and (study.is_draft or not self.is_design)

    def has_view_permission(self, request, obj=None):
        study = self._study(obj)
        return study is None or study.pk is None or may(request, study.pk)

    def has_add_permission(self, request, obj=None):
        return self._may(request, obj)

    has_change_permission = has_delete_permission = lambda self, request, obj=None: self._may(request, obj)
