"""What is done to a whole study: launch, pause, resume, close, draw more, amend, unblind, clone, archive, delete.

Each act has a page that says what it means, and a form; only the form does it. The deeds are in lifecycle and copying.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse

from studies.services import copying, lifecycle
from studies.services.steps import is_time_for
from studies.stimuli.markdown import rendered

from ..access import Action, get_study, is_researcher
from ..models import Job, Study
from . import field_labels, life
from .access import may
from .forms.words import CleanWords

State = Study.State


class NoFields(forms.Form):
    pass


class ReasonForm(CleanWords, forms.Form):
    reason = forms.CharField(
        max_length=1000,
        widget=forms.Textarea(attrs={"rows": 3, "cols": 70}),
        help_text="It is kept in the study's log.",
    )


class OptionalReasonForm(ReasonForm):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields["reason"].required = False


class DrawMoreForm(forms.Form):
    places = forms.IntegerField(
        min_value=1, max_value=100_000, initial=10, label="more places", help_text="Open so many more places."
    )


class CloneForm(CleanWords, forms.Form):
    title = forms.CharField(max_length=200, widget=forms.TextInput(attrs={"size": 70}))


@dataclass(frozen=True, slots=True)
class Act:
    """``do(study, user, cleaned)`` gives (message, address to go to or '' for the study's page)."""

    name: str
    label: str
    words: tuple[str, ...]
    do: Callable[[Study, Any, dict], tuple[str, str]]
    form: type[forms.Form] = NoFields
    action: Action = Action.RUN
    is_grave: bool = False

    @property
    def step(self) -> str:
        return {"draw-more": "draw more", "delete": "delete draft"}.get(self.name, self.name)

    def is_offered(self, study: Study) -> bool:
        return is_time_for(self.step, study)


def _pause(study, user, cleaned):
    lifecycle.pause(study, user)
    return "The study is paused: nobody new comes in until you resume it.", ""


def _resume(study, user, cleaned):
    lifecycle.resume(study, user)
    return "The study goes on.", ""


def _close(study, user, cleaned):
    lifecycle.close(study, user, cleaned["reason"])
    study.refresh_from_db()
    return f"The study is closing: nobody new comes in. {life.closing_words(study)}", ""


def _draw_more(study, user, cleaned):
    places = lifecycle.draw_more(study, cleaned["places"], user)
    return f"{places} more places are open.", ""


def _unblind(study, user, cleaned):
    lifecycle.unblind(study, user, cleaned["reason"])
    return "Outcomes are shown from now on, and the report will say since when.", ""


def _clone(study, user, cleaned):
    copy = copying.clone(study, user, cleaned["title"])
    return (
        "This is the copy: a draft with the same design and a new seed. Look at its target and its cap where you change the design.",
        reverse("admin:studies_study_change", args=[copy.pk]),
    )


def _archive(study, user, cleaned):
    lifecycle.archive(study, user)
    return "The study is archived. The list's filter “archived” shows it.", reverse("admin:studies_study_changelist")


def _restore(study, user, cleaned):
    copying.restore(study, user)
    return "The study is back in the list.", ""


def _delete(study, user, cleaned):
    title = study.title
    done = copying.delete_draft(study, user)
    words = {"deleted": f"“{title}” is deleted.", "archived": f"“{title}” is on record, so it was archived instead."}
    return words[done], reverse("admin:studies_study_changelist")


ACTS = {
    act.name: act
    for act in (
        Act(
            "pause", "Pause",
            ("Nobody new can come in until you resume. Those inside go on, and keep their places.",),
            _pause,
        ),
        Act("resume", "Resume", ("Annotators can come in again.",), _resume),
        Act(
            "draw-more", "Open more places",
            ("More batches of the same design are drawn where all are taken. What was drawn before does not change.",),
            _draw_more, DrawMoreForm,
        ),
        Act(
            "close", "Close",
            (
                "No new annotator can come in, ever: a closed study is not opened again, it is cloned.",
                "Those inside may finish within the grace period, which is set on the study's page. Then the answers are complete. The study stays "
                "open for these answers until the end of the grace period, also where nobody is inside.",
            ),
            _close, OptionalReasonForm, is_grave=True,
        ),
        Act(
            "unblind", "Show outcomes now",
            (
                "Outcomes by system are hidden while a study collects, so that nobody stops, adds people or excludes them by what they see.",
                "From the moment you look, its tests are no longer confirmatory. The report says so, with your reason.",
            ),
            _unblind, ReasonForm, Action.UNBLIND, is_grave=True,
        ),
        Act(
            "clone", "Clone",
            (
                "A new draft with the same words, design, systems, prompts and outputs, and a new seed. It has no people: you are its owner.",
                "Who took part here is kept out of it, unless you change that on its page.",
            ),
            _clone, CloneForm, Action.CLONE,
        ),
        Act(
            "archive", "Archive", ("The study leaves the list. Nothing is lost, and it can be brought back.",),
            _archive, action=Action.ARCHIVE,
        ),
        Act("restore", "Bring back", ("The study returns to the list.",), _restore, action=Action.ARCHIVE),
        Act(
            "delete", "Delete draft",
            ("The draft goes, with its systems, prompts, outputs and tries. If anything of it is on record, it is archived instead.",),
            _delete, action=Action.ARCHIVE, is_grave=True,
        ),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Offer:
    label: str
    url: str
    is_grave: bool = False


def offered(request, study: Study) -> list[Offer]:
    """The acts that this user may do now, for the study's page."""
    offers = []
    if is_time_for("launch", study) and may(request, Action.LAUNCH, study.pk):
        offers.append(Offer("Launch…", reverse("admin:studies_launch", args=[study.pk])))
    if is_time_for("amend", study) and may(request, Action.RUN, study.pk):
        offers.append(Offer("Amend", reverse("admin:studies_amend", args=[study.pk])))
    for act in ACTS.values():
        if act.is_offered(study) and may(request, act.action, study.pk):
            offers.append(Offer(act.label, reverse("admin:studies_act", args=[study.pk, act.name]), act.is_grave))
    return offers


def urls(model_admin) -> list:
    site = model_admin.admin_site

    def page(view):
        def wrapped(request, *args, **kwargs):
            return view(request, site, *args, **kwargs)

        return site.admin_view(wrapped)

    return [
        path("<int:pk>/launch/", page(launch), name="studies_launch"),
        path("<int:pk>/amend/", page(amend), name="studies_amend"),
        path("<int:pk>/<slug:name>/do/", page(do), name="studies_act"),
    ]


def render(request, site, template: str, study: Study, context: dict, status: int = 200):
    """A page of one study, with its line of life on top."""
    base = {
        **site.each_context(request),
        "study": study,
        "original": study,
        "opts": Study._meta,
        "subtitle": study.title,
        "life": life.line(study, here=context.get("here", "")),
    }
    return TemplateResponse(request, template, base | context, status=status)


def do(request, site, pk, name):
    """The page of one act; POST does it."""
    act = ACTS.get(name)
    study = get_study(request.user, act.action if act else Action.LOOK, pk=pk)
    home = reverse("admin:studies_study_change", args=[study.pk])
    if act is None or not act.is_offered(study):
        messages.warning(
            request,
            f"That cannot be done now: the study is {_standing(study)}. The buttons below say what can be done.",
        )
        return HttpResponseRedirect(home)
    initial = {"title": f"Copy of {study.title}"[:200]}
    form = act.form(request.POST or None, initial=initial) if request.method == "POST" else act.form(initial=initial)
    if request.method == "POST" and (act.form is NoFields or form.is_valid()):
        cleaned = form.cleaned_data if act.form is not NoFields else {}
        try:
            message, following = act.do(study, request.user, cleaned)
        except lifecycle.NotNow as refused:
            messages.error(request, str(refused))
            return HttpResponseRedirect(request.path)
        messages.success(request, message)
        return HttpResponseRedirect(following or home)
    context = {"title": act.label, "act": act, "form": form, "home": home}
    return render(request, site, "admin/studies/act.html", study, context, 422 if form.errors else 200)


def _standing(study: Study) -> str:
    return "archived" if study.archived_at else f"{'a ' if study.is_draft else ''}{study.state}"


# Launch


def launch_job(study: Study) -> Job | None:
    return study.jobs.filter(kind="launch").order_by("-pk").first()


def launch(request, site, pk):
    """All that stands against a launch, what it will cost, the warnings to be acknowledged by name."""
    study = get_study(request.user, Action.LAUNCH, pk=pk)
    job = launch_job(study)
    is_under_way = job is not None and job.state in (Job.State.WAITING, Job.State.RUNNING)
    if is_under_way or study.state != State.DRAFT:
        target = reverse("admin:studies_job_page", args=[job.code]) if job else None
        return HttpResponseRedirect(target or reverse("admin:studies_study_change", args=[study.pk]))
    found = life.checklist(study)
    blocking = [one for one in found if one.is_blocking]
    warnings = [one for one in found if not one.is_blocking]
    acknowledged = [key for key in request.POST.getlist("acknowledge") if key in {one.key for one in warnings}]
    unmet: list[str] = []
    if request.method == "POST":
        try:
            job = lifecycle.request_launch(study, request.user, acknowledged)
            return HttpResponseRedirect(reverse("admin:studies_job_page", args=[job.code]))
        except lifecycle.NotReady as refused:
            unmet += [one.text if one.is_blocking else f"Please acknowledge: {one.text}" for one in refused.problems]
        except lifecycle.NotNow as refused:
            unmet.append(str(refused))
    elif request.method not in ("GET", "HEAD"):
        return HttpResponseNotAllowed(["GET", "POST"])
    context = {
        "title": "Launch",
        "here": "Launch",
        "blocking": blocking,
        "warnings": warnings,
        "acknowledged": set(acknowledged),
        "unmet": unmet,
        "loads": life.loads(study),
        "cost": cost(study),
        "failed": job if job is not None and job.state == Job.State.FAILED else None,
        "home": reverse("admin:studies_study_change", args=[study.pk]),
    }
    return render(request, site, "admin/studies/launch.html", study, context, 422 if unmet else 200)


@dataclass(frozen=True, slots=True)
class Cost:
    places: int
    cap: int | None
    reward: Decimal | None
    total: Decimal | None
    most: Decimal | None
    currency: str


def cost(study: Study) -> Cost:
    """What the annotators' rewards come to at the target, and at the cap."""
    places = study.target_n or 0
    rewards = [arm.reward if arm.reward is not None else study.reward for arm in study.arms.all()]
    known = [reward for reward in rewards if reward is not None]
    mean = sum(known) / len(known) if known and len(known) == len(rewards) else None
    return Cost(
        places=places,
        cap=study.cap,
        reward=mean,
        total=mean * places if mean is not None else None,
        most=mean * study.cap if mean is not None and study.cap else None,
        currency=study.currency,
    )


# Amend


class AmendForm(CleanWords, forms.Form):
    """The columns that may be amended, as fields, and a reason. ``changes`` is what lifecycle.amend takes."""

    reason = forms.CharField(
        max_length=1000, widget=forms.Textarea(attrs={"rows": 3, "cols": 70}),
        help_text="Why. The report names each version with its reason.",
    )  # fmt: skip

    def __init__(self, study: Study, *args, **kwargs):
        super().__init__(*args, **kwargs)
        from ..models import Question

        self.rows = [("study", None, study, "The study")]
        self.rows += [("arm", arm.pk, arm, f"Arm {arm.name}") for arm in study.arms.all()]
        questions = (
            Question.objects.filter(section__study=study).select_related("section").order_by("section", "position")
        )
        self.rows += [
            ("question", q.pk, q, f"Section {q.section.position}, question {q.key}") for q in questions
        ]  # fmt: skip
        reason = self.fields.pop("reason")
        for kind, pk, row, _ in self.rows:
            for column in sorted(lifecycle.AMENDABLE[kind], key=_column_order(row)):
                field = row._meta.get_field(column).formfield()
                field.label = field_labels.LABELS[kind].get(column, field.label)
                field.help_text = field_labels.HELP.get(kind, {}).get(column, field.help_text)
                if isinstance(field.widget, forms.Textarea):
                    field.widget.attrs.update(rows=3, cols=70)
                if isinstance(field, forms.DateField):
                    field.widget = forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
                name = _amended(kind, pk, column)
                self.fields[name] = field
                self.initial[name] = getattr(row, column)
        self.fields["reason"] = reason

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        for kind, pk, row, _ in self.rows:
            for column in lifecycle.AMENDABLE[kind]:
                name = _amended(kind, pk, column)
                if name not in self.changed_data or name not in cleaned:
                    continue
                try:
                    row._meta.get_field(column).clean(cleaned[name], row)
                except forms.ValidationError as refused:
                    self.add_error(name, refused)
        study = copy(self.rows[0][2])
        for column, value in self.changes().get("study", {}).get(None, {}).items():
            setattr(study, column, value)
        try:
            study.clean()
        except forms.ValidationError as refused:
            for column, errors in refused.error_dict.items():
                if (name := _amended("study", None, column)) in self.fields:
                    self.add_error(name, errors)
        return cleaned

    def groups(self):
        """(heading, fields) of each row, in the order of the page."""
        for kind, pk, _, heading in self.rows:
            names = [name for name in self.fields if name.startswith(_amended(kind, pk, ""))]
            yield heading, [self[name] for name in names], kind == "study"

    def changes(self) -> dict[str, dict[Any, dict[str, Any]]]:
        found: dict[str, dict[Any, dict[str, Any]]] = {}
        for kind, pk, _, _ in self.rows:
            prefix = _amended(kind, pk, "")
            for name in self.changed_data:
                if name.startswith(prefix) and name in self.cleaned_data:
                    found.setdefault(kind, {}).setdefault(pk, {})[name.removeprefix(prefix)] = self.cleaned_data[name]
        return found

    def differences(self) -> list[tuple[str, str, Any, Any]]:
        """(row, column, before, after) of what would change."""
        rows = []
        for kind, pk, row, heading in self.rows:
            for column, value in self.changes().get(kind, {}).get(pk, {}).items():
                label = str(row._meta.get_field(column).verbose_name)
                rows.append((heading, label, getattr(row, column), value))
        return rows


def _amended(kind: str, pk: int | None, column: str) -> str:
    return f"{kind}-{pk or 0}-{column}"


def _column_order(row):
    names = [field.name for field in row._meta.concrete_fields]
    return names.index


def amend(request, site, pk):
    """Change what may be changed after launch: the form, then the difference, then a new version of the design."""
    study = get_study(request.user, Action.RUN, pk=pk)
    home = reverse("admin:studies_study_change", args=[study.pk])
    if not is_time_for("amend", study):
        messages.warning(request, lifecycle.AMENDED_WHEN)
        return HttpResponseRedirect(home)
    form = AmendForm(study, request.POST) if request.method == "POST" else AmendForm(study)
    differences = None
    if request.method == "POST" and form.is_valid():
        differences = form.differences()
        if not differences:
            form.add_error(None, "Nothing would change.")
        elif "confirm" in request.POST:
            try:
                design = lifecycle.amend(study, form.changes(), request.user, form.cleaned_data["reason"])
                messages.success(
                    request, f"Version {design.version} of the design holds for those who come from now on."
                )
                return HttpResponseRedirect(home)
            except lifecycle.NotNow as refused:
                form.add_error(None, str(refused))
                differences = None
    context = {
        "title": "Amend",
        "form": form,
        "differences": differences,
        "posted": [
            (name, value) for name, values in request.POST.lists() for value in values if name != "csrfmiddlewaretoken"
        ],
        "home": home,
        "versions": study.designs.select_related("by").order_by("-version"),
    }
    return render(request, site, "admin/studies/amend.html", study, context, 422 if form.errors else 200)


# Words


def preview_text(request):
    """The Markdown of one field as annotators would see it. Nothing is stored."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    if not is_researcher(request.user):
        raise PermissionDenied
    name = request.POST.get("_preview_field", "")[:200]
    html = rendered(request.POST.get(name, "").replace("\x00", ""))
    return TemplateResponse(request, "admin/studies/words.html", {"html": html, "title": "As annotators will read it"})
