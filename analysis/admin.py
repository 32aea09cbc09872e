"""Admin pages of REST tokens, and read-only admin pages of stored analyses."""

from django import forms
from django.contrib import admin, messages
from django.http import Http404, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone
from django.utils.html import format_html

from studies.access import filter_allowed, filter_own_unless_admin, is_owner_or_admin, is_researcher
from studies.admin.forms import CleanTextMixin, RowChoiceField, optional_utc_datetime_field
from studies.admin.permissions import ReadOnlyAdmin, RestrictedLookupAdmin, StudyFilter
from studies.models import Study

from .api.tokens import create_token, revoke_token
from .models import AnalysisRun, ApiToken


class TokenForm(CleanTextMixin, forms.ModelForm):
    expires_at = optional_utc_datetime_field()

    def clean_expires_at(self):
        expires_at = self.cleaned_data["expires_at"]
        if expires_at is not None and expires_at <= timezone.now():
            raise forms.ValidationError("This time is in the past. Enter a later time.")
        return expires_at


@admin.register(ApiToken)
class ApiTokenAdmin(RestrictedLookupAdmin):
    """List, create and revoke a researcher's own tokens. Tokens are never edited. Administrators see all tokens."""

    list_display = ("name", "scope", "study", "user", "created_at", "expires_at", "used_at", "revoked", "revoke_link")
    list_select_related = ("study", "user")
    list_display_links = None
    list_per_page = 50
    fields = ("name", "scope", "study", "expires_at", "may_make_tokens")
    actions = None
    change_list_template = "admin/studies/list.html"
    add_form_template = "admin/analysis/token_add.html"

    def changelist_view(self, request, extra_context=None):
        text = "There is no token yet. A token lets a program read or write with your permissions."
        extra = {"title": "API tokens", "empty_words": text}
        return super().changelist_view(request, extra | (extra_context or {}))

    def render_change_form(self, request, context, *args, **kwargs):
        # Every save button leads to the page that shows the token.
        context |= {"title": "Add API token", "show_save_and_add_another": False, "show_save_and_continue": False}
        return super().render_change_form(request, context, *args, **kwargs)

    def get_queryset(self, request):
        return filter_own_unless_admin(request.user, super().get_queryset(request).order_by("-pk"), "user")

    def has_module_permission(self, request):
        return is_researcher(request.user)

    def has_view_permission(self, request, obj=None):
        return is_researcher(request.user) if obj is None else is_owner_or_admin(request.user, obj.user_id)

    def has_add_permission(self, request):
        return self.has_module_permission(request)

    def has_change_permission(self, request, obj=None):
        return False

    def has_delete_permission(self, request, obj=None):
        return False

    def get_form(self, request, obj=None, change=False, **kwargs):
        rows = {
            row.pk: row
            for row in filter_allowed(request.user, Study.objects.filter(archived_at=None)).order_by("-pk")[:200]
        }
        choice = RowChoiceField(
            rows,
            empty="all my studies",
            required=False,
            help_text="Limit the token to this study. Empty: all studies that you can see.",
        )
        form = type("TokenForm", (TokenForm,), {"study": choice})
        help_texts = {"name": "The program that uses the token."}
        return super().get_form(request, obj, change, **kwargs | {"form": form, "help_texts": help_texts})

    def get_urls(self):
        return [
            path("<int:pk>/revoke/", self.admin_site.admin_view(self.revoke_view), name="analysis_apitoken_revoke"),
            *super().get_urls(),
        ]

    def save_model(self, request, obj, form, change):
        token, request.new_token = create_token(
            request.user,
            obj.name,
            scope=obj.scope,
            study=obj.study,
            expires_at=obj.expires_at,
            may_make_tokens=obj.may_make_tokens,
        )
        obj.pk = token.pk
        obj.refresh_from_db()

    def response_add(self, request, obj, post_url_continue=None):
        context = {
            **self.admin_site.each_context(request),
            "title": "Your token",
            "opts": self.opts,
            "token": request.new_token,
            "row": obj,
            "list_url": reverse("admin:analysis_apitoken_changelist"),
        }
        response = TemplateResponse(request, "admin/analysis/token.html", context)
        response.headers["Cache-Control"] = "no-store"
        return response

    def revoke_view(self, request, pk):
        token = self.get_queryset(request).filter(pk=pk).first()
        if token is None:
            raise Http404("This token does not exist.")
        if request.method not in ("GET", "HEAD", "POST"):
            return HttpResponseNotAllowed(["GET", "POST"])
        if request.method == "POST":
            if revoke_token(token, request.user):
                messages.success(request, f"“{token.name}” is revoked. Programs that use it no longer have access.")
            return HttpResponseRedirect(reverse("admin:analysis_apitoken_changelist"))
        context = {
            **self.admin_site.each_context(request),
            "title": f"Revoke “{token.name}”",
            "opts": self.opts,
            "row": token,
        }
        context["list_url"] = reverse("admin:analysis_apitoken_changelist")
        return TemplateResponse(request, "admin/analysis/revoke.html", context)

    @admin.display(description="revoked")
    def revoked(self, token):
        return token.revoked_at or "–"

    @admin.display(description="")
    def revoke_link(self, token):
        if token.revoked_at:
            return ""
        url = reverse("admin:analysis_apitoken_revoke", args=[token.pk])
        return format_html('<a href="{}" aria-label="Revoke {}">Revoke</a>', url, token.name)


@admin.register(AnalysisRun)
class AnalysisRunAdmin(ReadOnlyAdmin):
    list_display = ("number", "study", "at", "by", "responses_n", "code_version", "short_hash")
    list_filter = (StudyFilter,)
    list_select_related = ("study", "by")
    list_per_page = 50
    fields = (
        "study",
        "number",
        "at",
        "by",
        "parameters",
        "responses_n",
        "responses_sha256",
        "design_sha256s",
        "code_version",
        "seed",
        "result_sha256",
    )
    actions = None

    def get_queryset(self, request):
        return super().get_queryset(request).defer("result")

    @admin.display(description="result")
    def short_hash(self, run):
        return run.result_sha256[:12]


from .coding import admin as coding_admin  # noqa: E402, F401 - importing it registers the coding workspace
from .planning import admin as planning_admin  # noqa: E402, F401 - importing it registers the page Plan
