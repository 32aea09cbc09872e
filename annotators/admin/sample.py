"""Admin page of a recruitment's sample: declared columns, the panel's demographic file, and the table for a paper."""

from typing import TYPE_CHECKING

from django import forms
from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import path, reverse

from annotators.recruitment import sample
from annotators.recruitment.channels import REGISTRY
from studies.admin import study_page

from ..models import Recruitment, SampleColumn
from .panel import PanelAdminMixin, PanelFileForm

# The base of the mixin below, while types are checked.
if TYPE_CHECKING:
    _Pages = PanelAdminMixin
else:
    _Pages = object

MAX_COLUMNS = 20


class ColumnsForm(forms.Form):
    """One column per line. Columns that are not named here are never stored."""

    numbers = forms.CharField(
        required=False,
        label="numeric columns",
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="One per line, as named in the file's first row, for example: Age",
    )
    categories = forms.CharField(
        required=False,
        label="categorical columns",
        widget=forms.Textarea(attrs={"rows": 5}),
        help_text="One per line, for example: Sex, Country of residence.",
    )
    shown_small = forms.CharField(
        required=False,
        label="columns with small counts shown",
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=(
            "Counts below five can identify a person, so they are hidden. To show them for a column, "
            "name it here, one per line."
        ),
    )

    def __init__(self, study, data=None):
        rows = list(SampleColumn.objects.filter(study=study).order_by("pk"))
        kinds = {"numbers": SampleColumn.Kind.NUMBER, "categories": SampleColumn.Kind.CATEGORY}
        first = {field: "\n".join(row.name for row in rows if row.kind == kind) for field, kind in kinds.items()}
        super().__init__(data, initial=first | {"shown_small": "\n".join(row.name for row in rows if row.shows_small)})

    def clean(self):
        names_by_field = {
            field: [line.strip() for line in self.cleaned_data.get(field, "").splitlines() if line.strip()]
            for field in self.fields
        }
        columns = names_by_field["numbers"] + names_by_field["categories"]
        if long := next((name for name in columns if len(name) > sample.MAX_VALUE_LENGTH), None):
            raise forms.ValidationError(
                f"The column “{long[:40]}…” has more than {sample.MAX_VALUE_LENGTH} characters. Shorten it here and in the file."
            )
        if repeated_name := next(
            (name for name in columns if [other_name.lower() for other_name in columns].count(name.lower()) > 1), None
        ):
            raise forms.ValidationError(f"The column “{repeated_name}” is named twice. Remove one of the two lines.")
        if len(columns) > MAX_COLUMNS:
            raise forms.ValidationError(f"There are {len(columns)} columns. Declare at most {MAX_COLUMNS}.")
        if unknown := [name for name in names_by_field["shown_small"] if name not in columns]:
            raise forms.ValidationError(
                f"Small counts: “{unknown[0]}” is not a declared column. Declare it above, or remove it here."
            )
        kinds = {"numbers": SampleColumn.Kind.NUMBER, "categories": SampleColumn.Kind.CATEGORY}
        self.columns = [
            (name, kind, name in names_by_field["shown_small"])
            for field, kind in kinds.items()
            for name in names_by_field[field]
        ]
        return self.cleaned_data


class SampleFileForm(PanelFileForm):
    person = forms.CharField(max_length=100, label="column with the panel's participant ids")
    field_order = ("person", "file")

    def __init__(self, recruitment: Recruitment, data=None, files=None):
        super().__init__(data, files, initial={"person": REGISTRY[recruitment.channel].person_column})
        self.fields["file"].label = "The panel's demographic file"


class SampleAdminMixin(_Pages):
    """Admin views of the sample, mixed into the admin of recruitments."""

    def get_urls(self):
        wrap = self.admin_site.admin_view
        return [
            path("<int:pk>/demographics/", wrap(self.demographics_view), name="annotators_demographics"),
            path(
                "<int:pk>/demographics/table.csv", wrap(self.demographics_csv_view), name="annotators_demographics_csv"
            ),
            *super().get_urls(),
        ]

    def demographics_view(self, request, pk):
        """Show the sample table. POST declares columns, previews a file, or imports it."""
        recruitment = self._get_recruitment_or_404(request, pk)
        columns, file, joined = ColumnsForm(recruitment.study), SampleFileForm(recruitment), None
        sample_page = HttpResponseRedirect(reverse("admin:annotators_demographics", args=[pk]))
        if "declare" in request.POST:
            columns = ColumnsForm(recruitment.study, request.POST)
            if columns.is_valid():
                sample.replace_demographic_columns(recruitment.study, columns.columns, by=request.user)
                messages.success(request, "The columns are declared. Nothing else is kept from a file.")
                return sample_page
        elif request.method == "POST":
            file = SampleFileForm(recruitment, request.POST, request.FILES)
            if file.is_valid():
                joined = self._read_sample_file(request, recruitment, file)
                if joined is not None and "take" in request.POST:
                    messages.success(request, f"Imported: {joined.people} people of this link, {joined.values} values.")
                    return sample_page
        table = sample.sample_demographics_table(recruitment.study)
        context = {
            "title": "Sample",
            "hidden_forms": [] if table else [file],
            "recruitment": recruitment,
            "columns": columns,
            "file": file,
            "joined": joined,
            "table": table,
            "small": sample.SMALL_COUNT,
        }
        status = 400 if columns.errors or file.errors else 200
        template = "admin/annotators/demographics.html"
        return study_page.render_study_page(
            request, self.admin_site, template, recruitment.study, context, status=status
        )

    def _read_sample_file(self, request, recruitment, form):
        values = form.cleaned_data
        try:
            return sample.import_sample_demographics(
                recruitment, values["file"], values["person"], by=request.user, dry_run="take" not in request.POST
            )
        except ValueError as refused:
            form.add_error("file", str(refused))
            return None

    def demographics_csv_view(self, request, pk):
        recruitment = self._get_recruitment_or_404(request, pk)
        text = sample.sample_demographics_csv(sample.sample_demographics_table(recruitment.study))
        headers = {"Content-Disposition": 'attachment; filename="sample.csv"'}
        return HttpResponse(text, content_type="text/csv; charset=utf-8", headers=headers)
