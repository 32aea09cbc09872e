"""Pages to import stimuli into a draft, to prepare them, and to import or export a whole study as one file."""

import hashlib
import json
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.core.files.base import ContentFile
from django.db import transaction
from django.http import Http404, HttpResponse, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from studies.access import (
    Action,
    check_draw_is_readable,
    check_permission_or_404,
    get_study,
    is_allowed,
    roles_by_study_id,
)
from studies.design.checklist import find_design_problems
from studies.imports.bundle import MAX_BUNDLE_BYTES, BundleIncomplete, BundleRefused
from studies.imports.bundle_files import bundle_text, create_draft_from_bundle
from studies.imports.formats import inspect_log
from studies.imports.preparation import prepare_stimuli_and_delete_dropped_prompts, preview_preparation
from studies.imports.study_templates import (
    STUDY_TEMPLATES,
    TEMPLATES_BY_SLUG,
    archive_own_template,
    create_draft_from_own_template,
    create_draft_from_template,
    own_templates_of,
)
from studies.imports.tables import run
from studies.imports.tables.columns import GROUP_COLUMNS, SOURCE
from studies.imports.tables.mapping import parse_mapping
from studies.imports.tables.plan import PROPOSED
from studies.imports.tables.result import ImportReport, RowCounts
from studies.models import Job, OwnTemplate, Study
from studies.services import jobs, lifecycle
from studies.stimuli.rows import ACCEPTED, read_rows
from studies.stimuli.texts import SettingsRefused

from . import study_page
from .forms import CleanTextMixin
from .jobs import running_jobs
from .permissions import parse_row_id
from .preparation_form import PreparationForm
from .workflow import reverse_or_empty

SHOWN_MISSING = 500


def study_page_url(study: Study) -> str:
    """Return the URL of the study's own page."""
    try:
        return reverse("admin:studies_study_change", args=[study.pk])
    except NoReverseMatch:
        return reverse("admin:index")


class FileForm(forms.Form):
    """A file of prompts and outputs, or rows pasted from a spreadsheet."""

    file = forms.FileField(
        required=False,
        label="File",
        help_text="CSV, TSV, a workbook, JSON of any layout, or a zip of one of them and the images that it names. You say on the next page what each column is.",
        widget=forms.FileInput(attrs={"accept": f"{ACCEPTED},{inspect_log.EXTENSION},.xml"}),
    )
    pasted = forms.CharField(
        required=False,
        strip=False,
        label="Or paste rows from a spreadsheet, with their header",
        widget=forms.Textarea(attrs={"rows": 5, "spellcheck": "false"}),
    )

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        if bool(cleaned.get("file")) == bool((cleaned.get("pasted") or "").strip()) and "file" not in self.errors:
            self.add_error("file", "Choose a file, or paste rows from a spreadsheet. Use one of the two.")
        return cleaned

    def options(self) -> dict[str, Any]:
        return {"creates_systems": True, "proposes_columns": True}

    def store_and_read(self, study: Study, by, *, is_guided: bool = False) -> run.Upload:
        """Store the file and read it, or queue it if it is large. Raise ActionRefused if it is empty or too large."""
        file = self.cleaned_data["file"] or ContentFile(self.cleaned_data["pasted"].encode(), name="pasted.csv")
        upload = run.store_upload(
            file.chunks(),
            str(file.name),
            study_id=study.pk,
            user_id=by.pk,
            options=self.options(),
            is_guided=is_guided,
        )
        run.process_or_queue_upload(study, upload, by, is_confirmed=False)
        return upload


class ImportForm(FileForm):
    makes_batches = forms.BooleanField(
        required=False,
        label="The file contains ready-made batches",
        help_text="One for each annotator, with its name in the column “batch”.",
    )
    creates_systems = forms.BooleanField(
        required=False,
        initial=True,
        label="Add systems that the study does not have yet",
        help_text="Otherwise an unknown name is an error.",
    )
    allows_empty = forms.BooleanField(
        required=False,
        label="Allow empty outputs",
        help_text="A blank text then means that the system produced nothing.",
    )
    replaces_changed = forms.BooleanField(
        required=False,
        label="Replace content of the study that differs from the file",
        help_text="Otherwise a text that differs from the study's text is an error.",
    )

    makes_pairs = forms.BooleanField(
        required=False,
        label="Make pairs of single texts of two systems",
        help_text="For texts without common prompts. Each row has a system and a text; the attributes below decide which texts form a pair.",
    )
    pairs_by = forms.CharField(
        required=False,
        max_length=500,
        label="Attributes that are equal within a pair",
        help_text="Names of columns, separated by commas, such as: sentiment, tense, person.",
    )
    max_length_difference = forms.IntegerField(
        required=False, min_value=0, max_value=10_000, initial=1, label="Maximum difference in length, in words"
    )
    max_pairs = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=1_000_000,
        label="Maximum number of pairs",
        help_text="Empty: all possible pairs.",
    )

    groups_by = forms.ChoiceField(
        required=False,
        label="Prompts that belong together",
        choices=[
            ("", "the column “group”, if the file has it"),
            *((name, f"the column “{name}”") for name in GROUP_COLUMNS),
            (SOURCE, "equal source texts"),
        ],
        help_text="What names the document, dialogue or topic of a prompt. Results then count groups in place of prompts.",
    )

    def clean_pairs_by(self) -> list[str]:
        return list(dict.fromkeys(filter(None, (name.strip() for name in self.cleaned_data["pairs_by"].split(",")))))

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("makes_pairs") and cleaned.get("makes_batches"):
            self.add_error(
                "makes_pairs", "A file of single texts cannot contain ready-made batches. Untick one of the two."
            )
        if not cleaned.get("makes_pairs") and cleaned.get("pairs_by"):
            self.add_error(
                "makes_pairs",
                "You entered attributes below. Tick this to make pairs by them, or remove the attributes.",
            )
        return cleaned

    def options(self) -> dict[str, Any]:
        chosen = {name: self.cleaned_data[name] for name in self.fields if name not in ("file", "pasted")}
        return (
            chosen
            | {name: chosen[name] or 0 for name in ("max_length_difference", "max_pairs")}
            | {"proposes_columns": True}
        )


def render_page(request, template_name: str, study: Study | None, status: int = 200, **context: Any) -> HttpResponse:
    template = f"studies/{template_name}.html"
    context |= {"home_url": study_page_url(study) if study else reverse("admin:index")}
    if study is None:
        return TemplateResponse(request, template, admin.site.each_context(request) | context, status=status)
    if "upload" in context and context["upload"].is_guided:
        context |= {"home_url": reverse("new_study_question", args=[study.pk])}
        return study_page.render_new_study_page(request, template, study, "Your file", context, status)
    return study_page.render_study_page(request, template, study, {"here": "Design"} | context, status)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def import_upload_page(request, pk) -> HttpResponse:
    """Show the form for a file and its options. POST stores the file and reads it."""
    study = get_study(request.user, Action.EDIT, pk=pk)
    if not study.is_draft:
        return render_page(request, "import_frozen", study, 409 if request.method == "POST" else 200)
    form = ImportForm(request.POST, request.FILES) if request.method == "POST" else ImportForm()
    if form.is_bound and form.is_valid():
        try:
            upload = form.store_and_read(study, request.user)
        except lifecycle.ActionRefused as refused:
            form.add_error("file", str(refused))
        else:
            return HttpResponseRedirect(reverse("import_confirm", args=[study.pk, upload.token]))
    return render_page(request, "import", study, 400 if form.errors else 200, form=form)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def import_confirmation_page(request, pk, token) -> HttpResponse:
    """Show what the file would change. A confirmed POST writes it."""
    study = get_study(request.user, Action.EDIT, pk=pk)
    upload = run.get_upload(token, study.pk)
    if upload is None:
        raise Http404("This upload does not exist.")
    job = run.job_of(upload)
    if request.method == "POST":
        return _handle_upload_action(request, study, upload, job)
    if job is not None and job.state not in jobs.ENDED:
        shown = running_jobs(request, Job.objects.filter(pk=job.pk))
        return render_page(request, "import_wait", study, upload=upload, job=job, running_jobs=shown)
    if upload.is_guided and upload.is_confirmed:
        # A draft of one's own template may need nothing but its texts.
        is_complete = study.sections.exists() and not any(
            problem.is_blocking for problem in find_design_problems(study)
        )
        launch = reverse_or_empty("study_launch", study.pk) if is_complete else ""
        return HttpResponseRedirect(launch or reverse("new_study_question", args=[study.pk]))
    return _render_report(request, study, upload, job)


def _handle_upload_action(request, study, upload, job: Job | None) -> HttpResponse:
    reload = HttpResponseRedirect(request.path)
    report = ImportReport.from_json(upload.report) if upload.report else None
    if not upload.is_confirmed:
        try:
            before, upload.options = upload.options, _sent_options(request.POST, upload, report)
            is_changed = _options_of_reading(upload.options) != _options_of_reading(before)
            if is_changed or any(name in request.POST for name in READ_AGAIN):
                # Nobody has seen the report of other columns, so it is not imported.
                upload.notice = CHANGED_COLUMNS if is_changed and "confirm" in request.POST else ""
                upload.save()  # a job of a large file reads it
                run.process_or_queue_upload(study, upload, request.user, is_confirmed=False)
                return reload
        except (SettingsRefused, lifecycle.ActionRefused) as refused:
            return _render_report(request, study, upload, None, status=400, fault=str(refused))
    if upload.is_confirmed or report is None or not (report.is_sound and report.has_changes):
        return reload
    if refusal := run.importer_of(upload).reason_not_importable(study):
        return render_page(request, "import_frozen", study, 409, fault="" if upload.kind == "stimuli" else refusal)
    upload.save()
    try:
        run.process_or_queue_upload(study, upload, request.user, is_confirmed=True)
    except run.USER_FACING_ERRORS as refused:
        upload = run.get_upload(upload.token, study.pk) or upload
        return _render_report(request, study, upload, None, status=409, fault=str(refused))
    return reload


# The buttons of the page that read the file again.
READ_AGAIN = ("columns", "anew", "groups_by", "sheet")
CHANGED_COLUMNS = "You changed what the columns are, so heval read the file again. Check it, then import."


def _sent_options(sent: QueryDict, upload: run.Upload, report: ImportReport | None) -> dict[str, Any]:
    """Return the options of the upload with what the form of its page says. Raise SettingsRefused."""
    importer = run.importer_of(upload)
    options = upload.options | {name: sent[name] for name in ("groups_by", "sheet") if name in sent}
    if report is not None and report.columns and "role" in sent:
        if change_roles := importer.options_with_roles:
            roles = _chosen_roles(sent, report)
            if roles != [(entry["role"], entry["column"]) for entry in report.columns]:
                options = change_roles(options, roles)
        else:
            options["creates_systems"] = upload.is_guided or "creates_systems" in sent
            if (columns := _chosen_columns(sent, report)) != report.mapping:
                parse_mapping(columns)
                options["columns"] = columns
    if report is not None and report.proposed and "anew" in sent:
        options["columns"] = report.proposed
    if report is not None and report.samples:
        for name, sent_name in {"human_systems": "human", "left_out_systems": "leave_out"}.items():
            options[name] = [system for system in sent.getlist(sent_name) if system in report.samples]
    return importer.checked_options(options)


def _options_of_reading(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that decide how a file is read. Choices about systems that the page shows do not belong to them."""
    about_systems = ("human_systems", "left_out_systems")
    return {name: part for name, part in options.items() if part and name not in about_systems}


def _systems_to_leave_out(study: Study, report: ImportReport | None, stored: set[str]) -> list[str]:
    """Return the systems of the file that a study without texts does not have, if it has others of them: a template names its systems."""
    read = list(report.samples) if report else []
    others = [name for name in read if name not in stored]
    return others if len(others) < len(read) and not study.prompts.exists() else []


# A page has a list of roles for each of them.
SHOWN_COLUMNS = 100
ROLE_LABELS = {
    "": "leave out",
    "prompt_key": "key of the prompt",
    "prompt_text": "text of the prompt",
    "source": "source text",
    "group": "group: document, dialogue or topic",
    "domain": "domain of the prompt",
    "language": "language of the prompt",
    "system": "name of the system",
    "text": "output",
    "sample": "number of the output",
    "image": "image of the output",
    "prompt_image": "image of the prompt",
}


def _columns_with_choices(study: Study, report: ImportReport | None, importer: run.Importer) -> list[dict[str, Any]]:
    """Return the columns of the file with the roles that a person may give them: (value, label, whether it is chosen)."""
    columns: list[dict[str, Any]] = []
    entries = report.columns if report else []
    if importer.role_labels:
        labels = importer.role_labels(study, [entry["role"] for entry in entries])
        for entry in entries[:SHOWN_COLUMNS]:
            choices = [(value, label, value == entry["role"]) for value, label in labels.items()]
            columns.append(entry | {"choices": choices})
        return columns
    for entry in entries:
        role = entry["role"]
        before, colon, system = role.partition(":")
        labels = ROLE_LABELS | {f"output:{entry['system']}": f"outputs of the system “{entry['system']}”"}
        if role and role not in labels:
            labels[role] = (
                f"outputs of the system “{system}”" if before == "output" else f"{before} “{system}”" if colon else role
            )
        named = system if before == "output" else ""
        columns.append(
            entry | {"named": named, "choices": [(value, label, value == role) for value, label in labels.items()]}
        )
    return columns


def _chosen_roles(sent: QueryDict, report: ImportReport) -> list[tuple[str, str]]:
    """Return the role and the name of each column. Columns that the page does not show keep their roles."""
    roles = sent.getlist("role")[:SHOWN_COLUMNS]
    chosen = [*roles, *(entry["role"] for entry in report.columns[len(roles) :])]
    return [(role, entry["column"]) for role, entry in zip(chosen, report.columns, strict=False)]


def _chosen_columns(sent: QueryDict, report: ImportReport) -> list[str]:
    """Return the mapping that a person chose. A column of outputs may have got another name of its system."""
    names = sent.getlist("named")
    columns = []
    for number, (entry, role) in enumerate(zip(report.columns, sent.getlist("role"), strict=False)):
        named = names[number].replace("=", " ").strip() if number < len(names) else ""
        if named and role.partition(":")[0] == "output":
            role = f"output:{named}"
        if role:
            columns.append(f"{role}={entry['column']}")
    return columns


def _render_report(request, study, upload, job: Job | None, status: int = 200, fault: str = "") -> HttpResponse:
    report = ImportReport.from_json(upload.report) if upload.report else None
    if job is not None and job.state in (Job.State.FAILED, Job.State.CANCELLED):
        fault = (
            fault
            or job.error
            or "The import was cancelled, and nothing was written. To import the file, choose it again."
        )
    importer, stored = run.importer_of(upload), set(study.systems.values_list("name", flat=True))
    proposed = _systems_to_leave_out(study, report, stored) if upload.is_guided else []
    findings = report.findings if report else []
    return render_page(
        request,
        "import_report",
        study,
        status,
        upload=upload,
        report=report,
        fault=fault or upload.fault,
        # Findings about irreversible effects are shown above the button, the others below it.
        first_findings=[finding for finding in findings if finding.kind == "freezes"],
        # Where new systems are shown with their texts, they need no note.
        findings=[
            finding
            for finding in findings
            if finding.kind not in ("freezes", PROPOSED, run.REUSED)
            and not (finding.kind == "new_systems" and report and report.samples)
        ],
        stored_systems=stored,
        left_out_systems=upload.options.get("left_out_systems", proposed),
        proposed_out=proposed,
        reused=[finding for finding in findings if finding.kind == run.REUSED],
        proposed_groups=[finding for finding in findings if finding.kind == PROPOSED],
        again=reverse("new_study_file" if upload.is_guided else importer.page, args=[study.pk]),
        columns=_columns_with_choices(study, report, importer),
        left_out=[entry["column"] for entry in report.columns if not entry["role"]] if report else [],
        more_columns=max(0, len(report.columns) - SHOWN_COLUMNS) if report and importer.role_labels else 0,
        confirm_words="Import only the prompts" if report and report.has_only_prompts else importer.confirm_label,
        counts=[(kind, n) for kind, n in report.counts.items() if kind != "batches" or n != RowCounts()]
        if report
        else [],
        has_old=bool(report and any(count.same or count.changed for count in report.counts.values())),
        has_batches=bool(report and any(row["batch"] for row in report.first)),
        missing=report.missing[:SHOWN_MISSING] if report else [],
        more_missing=max(0, report.missing_count - SHOWN_MISSING) if report else 0,
        may_confirm=bool(
            report
            and report.is_sound
            and report.has_changes
            and not upload.is_confirmed
            and not importer.reason_not_importable(study)
        ),
    )


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def preparation_page(request, pk) -> HttpResponse:
    """Show the form of the preparation, and what it would change. A confirmed POST applies it."""
    study = get_study(request.user, Action.EDIT, pk=pk)
    if not study.is_draft:
        return render_page(request, "import_frozen", study, 409 if request.method == "POST" else 200)
    systems = list(study.systems.order_by("name").values_list("name", flat=True))
    if request.method != "POST":
        form = PreparationForm(systems=systems, stored=study.preparation)
        return render_page(request, "import_preparation", study, form=form, seen="", report=None)
    form = PreparationForm(request.POST, request.FILES, systems=systems, stored=study.preparation)
    report, seen, fault = None, "", ""
    if form.is_valid():
        settings = form.settings()
        try:
            report = preview_preparation(study, settings)
            seen = _seen(study, settings)
            if request.POST.get("act") == "prepare":
                if request.POST.get("seen") == seen:
                    report = prepare_stimuli_and_delete_dropped_prompts(study, settings, by=request.user)
                else:
                    fault = (
                        "The settings or the study changed since the preview. This is the new preview; confirm again."
                    )
        except SettingsRefused as refused:
            form.add_error(None, str(refused))
        except lifecycle.ActionRefused as refused:
            fault, report = str(refused), None
    status = 400 if form.errors else 409 if fault else 200
    return render_page(request, "import_preparation", study, status, form=form, seen=seen, report=report, fault=fault)


def _seen(study: Study, settings: dict) -> str:
    """Return a hash of these settings and this version of the study: it identifies a preview."""
    return hashlib.sha256(json.dumps([study.pk, study.version, settings], sort_keys=True).encode()).hexdigest()[:32]


@login_required
@never_cache
@require_safe
def download_bundle(request, pk) -> HttpResponse:
    """Return the whole study as one file."""
    study = get_study(request.user, Action.VIEW, pk=pk)
    try:
        check_draw_is_readable(request.user, study)
        text = bundle_text(study)
    except (BundleIncomplete, PermissionDenied) as refused:
        status = 403 if isinstance(refused, PermissionDenied) else 409
        return render_page(request, "import_fault", study, status, fault=str(refused))
    headers = {"Content-Disposition": f'attachment; filename="{study.code}.bundle.json"'}
    return HttpResponse(text, content_type="application/json; charset=utf-8", headers=headers)


# Every bundle names its schema.
BUNDLE_MARK = b"heval.bundle/"


def is_readable_table(name: str, data: bytes) -> bool:
    """Return whether the file is a table with several columns and a row, as texts to import are."""
    table = read_rows(name, data)
    return len(table.columns) > 1 and next(iter(table), None) is not None


class BundleForm(forms.Form):
    file = forms.FileField(
        label="Bundle",
        help_text="A file that heval exported from a study, here or on another site (heval.bundle/1).",
        widget=forms.FileInput(attrs={"accept": ".json"}),
    )

    def clean_file(self):
        file = self.cleaned_data["file"]
        if file.size > MAX_BUNDLE_BYTES:
            raise forms.ValidationError(
                f"The file has {file.size:,} bytes. At most {MAX_BUNDLE_BYTES:,} are allowed. Choose a smaller bundle."
            )
        return file


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def bundle_upload_page(request) -> HttpResponse:
    """Make a new draft from a bundle."""
    check_permission_or_404(request.user, Action.CREATE)
    form = BundleForm(request.POST, request.FILES) if request.method == "POST" else BundleForm()
    problems: list[str] = []
    is_table = False
    if form.is_bound and form.is_valid():
        data = form.cleaned_data["file"].read()
        try:
            study = create_draft_from_bundle(data, request.user)
        except BundleRefused as refused:
            problems = refused.problems
            is_table = BUNDLE_MARK not in data and is_readable_table(form.cleaned_data["file"].name, data)
        else:
            return HttpResponseRedirect(study_page_url(study))
    status = 400 if form.errors or problems else 200
    context = {"form": form, "problems": problems, "is_table": is_table}
    return render_page(request, "import_bundle", None, status, **context)


NO_SUCH_TEMPLATE = "This template does not exist. Choose another one."


class OwnTemplateForm(CleanTextMixin, forms.Form):
    title = forms.CharField(max_length=200)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def draft_from_template_page(request) -> HttpResponse:
    """List one's own templates, those of others, and those of papers with their sources and deviations. POST makes a draft of one."""
    check_permission_or_404(request.user, Action.CREATE)
    own, fault = own_templates_of(request.user), ""
    form = OwnTemplateForm(request.POST if "own" in request.POST else None)
    if request.method == "POST" and {"own", "archive"} & set(request.POST):
        template = own.filter(pk=parse_row_id(request.POST.get("archive", request.POST.get("own", ""))) or 0).first()
        if template is None:
            fault = NO_SUCH_TEMPLATE
        elif "archive" in request.POST:
            archive_own_template(template, request.user)
            return HttpResponseRedirect(request.path)
        elif form.is_valid():
            file = FileForm(request.POST, request.FILES) if "file" in request.FILES else None
            try:
                # A file that is refused at once leaves no draft.
                with transaction.atomic():
                    study = create_draft_from_own_template(template, request.user, form.cleaned_data["title"])
                    if file is not None and file.is_valid():
                        upload = file.store_and_read(study, request.user, is_guided=True)
                        return HttpResponseRedirect(reverse("import_confirm", args=[study.pk, upload.token]))
            except (BundleRefused, lifecycle.ActionRefused) as refused:
                fault = str(refused)
            else:
                following = "" if template.has_texts else reverse_or_empty("new_study_file", study.pk)
                return HttpResponseRedirect(following or study_page_url(study))
        else:
            fault = f"{template}: the new study has no usable title. Enter a title of at most 200 characters."
    elif request.method == "POST":
        blueprint = TEMPLATES_BY_SLUG.get(request.POST.get("template", ""))
        if blueprint is not None:
            return HttpResponseRedirect(study_page_url(create_draft_from_template(blueprint, request.user)))
        fault = NO_SUCH_TEMPLATE
    roles = roles_by_study_id(request.user)
    may_archive = {
        one.pk
        for one in own
        if one.by_id == request.user.pk or is_allowed(request.user, Action.ARCHIVE, one.study, roles)
    }
    by_person: dict[str, list[OwnTemplate]] = {}
    for one in sorted(own, key=lambda one: one.by_id != request.user.pk):
        whose = "Your templates" if one.by_id == request.user.pk else f"Templates of {one.by or 'closed accounts'}"
        by_person.setdefault(whose, []).append(one)
    context = {"blueprints": STUDY_TEMPLATES, "by_person": by_person, "may_archive": may_archive, "fault": fault}
    return render_page(request, "templates", None, 400 if fault else 200, **context)


@login_required
@require_safe
def download_template_bundle(request, slug) -> HttpResponse:
    """Return a template as a bundle file, to edit by hand or to import elsewhere."""
    check_permission_or_404(request.user, Action.CREATE)
    blueprint = TEMPLATES_BY_SLUG.get(slug)
    if blueprint is None:
        raise Http404
    headers = {"Content-Disposition": f'attachment; filename="{slug}.bundle.json"'}
    return HttpResponse(blueprint.text, content_type="application/json; charset=utf-8", headers=headers)
