"""The page on which a closed study is imported from its archive."""

from django import forms
from django.contrib import admin
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from studies.access import Action, check_permission_or_404

from .archive_import import import_archive
from .archive_rows import ArchiveRefused

# A page imports while its reader waits, and in one transaction, for which others wait on SQLite. About 6,000 answers take two
# seconds. Larger archives are for the command.
MAX_UPLOAD = 2 * 1024**2
MAX_UNPACKED = 64 * 1024**2


class ArchiveForm(forms.Form):
    file = forms.FileField(
        label="Archive",
        help_text="The zip that “Download the archive” gave on the site of the study, of at most 2 MB. The command heval import new reads larger ones.",
        widget=forms.FileInput(attrs={"accept": ".zip"}),
    )
    is_copy = forms.BooleanField(
        required=False,
        label="Import a copy if this site has the study already",
        help_text="The copy has another code. Numbers of its reports that come from resampling differ a little.",
    )

    def clean_file(self):
        file = self.cleaned_data["file"]
        if file.size > MAX_UPLOAD:
            raise forms.ValidationError(
                f"The file has {file.size:,} bytes. This page reads at most {MAX_UPLOAD:,}. Ask the operator to run: heval import new FILE --owner NAME"
            )
        return file


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def archive_upload_page(request: HttpRequest) -> HttpResponse:
    """Import a closed study from its archive."""
    check_permission_or_404(request.user, Action.CREATE)
    form = ArchiveForm(request.POST, request.FILES) if request.method == "POST" else ArchiveForm()
    problem = ""
    if form.is_bound and form.is_valid():
        sent = form.cleaned_data
        try:
            study = import_archive(sent["file"].file, request.user, is_copy=sent["is_copy"], max_bytes=MAX_UNPACKED)
        except ArchiveRefused as refused:
            problem = str(refused)
        else:
            return redirect("analyses", pk=study.pk)
    context = admin.site.each_context(request) | {"home_url": reverse("admin:index"), "form": form, "problem": problem}
    status = 400 if form.errors or problem else 200
    return TemplateResponse(request, "report/import_archive.html", context, status=status)
