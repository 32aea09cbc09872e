"""The pages on which members make and run a board, and their forms."""

import uuid
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.db.models import Count
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from analysis.metrics import computed
from analysis.metrics.scoring import is_about_outputs, scored_sections
from boards import access
from boards.access import BoardAction, get_board
from boards.models import WEEKDAYS, Board, BoardMember, BoardRound, BoardSample, Submission, Team
from boards.services import boards, labels, metric_tables, rounds, snapshots
from boards.services.boards import CHANGEABLE_WHEN_OPEN
from studies.access import Action, filter_allowed
from studies.access import check_permission_or_404 as check_study_permission_or_404
from studies.admin.jobs import running_jobs
from studies.models import Job, Study
from studies.services.lifecycle import ActionRefused

from .stored import newest_snapshots

GROUPS = (
    ("The board", ("title", "slug", "description", "visibility", "shows_examples")),
    (
        "What is scored",
        (
            "template",
            "output_kind",
            "population",
            "controls_style",
            "balances_pairs",
            "sample_size",
            "seed",
            "labels_per_output",
            "double_label_share",
            "anchor_share",
        ),
    ),
    ("Limits for each team", ("max_waiting_per_team", "max_daily_per_team", "max_megabytes_per_team")),
    ("Budget, in the template's currency", ("budget_per_submission", "budget_per_month")),
    (
        "Rounds",
        ("max_submissions_per_round", "opens_by_itself", "launch_weekdays", "launch_hour", "time_zone"),
    ),
)


class BoardForm(forms.ModelForm):
    """The settings of a board. After it is opened, those that scores depend on are shown and cannot change."""

    launch_weekdays = forms.MultipleChoiceField(
        choices=[(str(number), day) for number, day in enumerate(WEEKDAYS)],
        widget=forms.CheckboxSelectMultiple,
        required=False,
        label="launch window: days",
    )

    class Meta:
        model = Board
        fields = [name for _, names in GROUPS for name in names]
        widgets = {"description": forms.Textarea(attrs={"rows": 4})}

    def __init__(self, *args, user, **kwargs):
        super().__init__(*args, **kwargs)
        self.initial["launch_weekdays"] = [str(day) for day in self.instance.launch_days]
        drafts = Study.objects.filter(state=Study.State.DRAFT, archived_at=None)
        field = self.fields["template"]
        field.queryset = filter_allowed(user, drafts, Action.EDIT).order_by("title")  # type: ignore[attr-defined]  # a choice of rows
        if self.instance.pk and self.instance.state != Board.State.DRAFT:
            for name, one in self.fields.items():
                one.disabled = name not in CHANGEABLE_WHEN_OPEN
            field.queryset = Study.objects.filter(pk=self.instance.template_id)  # type: ignore[attr-defined]  # a choice of rows

    def clean_launch_weekdays(self):
        return ",".join(self.cleaned_data["launch_weekdays"])

    def groups(self):
        """Return the fields in groups with a title."""
        return [(title, [self[name] for name in names]) for title, names in GROUPS]


class BoardBundleForm(forms.Form):
    file = forms.FileField(
        label="File",
        widget=forms.FileInput(attrs={"accept": ".json"}),
        help_text="A bundle of a board, as “Download as one file” of another board makes it.",
    )
    slug = forms.SlugField(
        label="Address", required=False, help_text="The last part of the board's web address. Empty: as in the file."
    )


class TeamForm(forms.Form):
    name = forms.CharField(max_length=100, label="Name of the team or person")


class MemberForm(forms.Form):
    """One member. An empty user is an unused row."""

    user = forms.ModelChoiceField(queryset=get_user_model().objects.none(), required=False, label="Colleague")
    role = forms.ChoiceField(choices=BoardMember.Role, initial=BoardMember.Role.VIEWER, label="Role")
    DELETE = forms.BooleanField(required=False, label="Remove")

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        people = get_user_model().objects.filter(is_active=True, is_staff=True).order_by("username")
        self.fields["user"].queryset = people  # type: ignore[attr-defined]  # a choice of rows


MemberFormSet = forms.formset_factory(MemberForm, extra=2)


class RenewalForm(forms.Form):
    """How much of the sample is renewed. ``after``: the number of the sample that the page showed."""

    share = forms.DecimalField(max_digits=3, decimal_places=2)
    after = forms.IntegerField(min_value=1)


# The pages on which members make and run a board.


def _add_errors(form, refused: ValidationError) -> None:
    """Add the errors of a service to a form. Those of fields that the form lacks belong to the whole form."""
    if not hasattr(refused, "error_dict"):
        form.add_error(None, refused)
        return
    for name, errors in refused.error_dict.items():
        form.add_error(name if name in form.fields else None, errors)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def new_board_page(request: HttpRequest) -> HttpResponse:
    """Make a board from a draft, or from a bundle."""
    check_study_permission_or_404(request.user, Action.CREATE)
    is_bundle = request.method == "POST" and "bundle" in request.POST
    form = BoardForm(request.POST if request.method == "POST" and not is_bundle else None, user=request.user)
    drafts = form.fields["template"].queryset.exclude(template="")  # type: ignore[attr-defined]  # a choice of rows
    ready_made = [draft for draft in drafts if boards.settings_of_template(draft)]
    if chosen := next((draft for draft in ready_made if str(draft.pk) == request.GET.get("template")), None):
        form.initial.update(boards.settings_of_template(chosen), template=chosen.pk)
        form.initial["launch_weekdays"] = form.initial["launch_weekdays"].split(",")
    bundle_form = BoardBundleForm(request.POST, request.FILES) if is_bundle else BoardBundleForm()
    problems: list[str] = []
    if is_bundle and bundle_form.is_valid():
        try:
            data = bundle_form.cleaned_data["file"].read(boards.MAX_BYTES + 1)
            board = boards.create_board_from_bundle(data, request.user, slug=bundle_form.cleaned_data["slug"])
        except boards.BoardBundleRefused as refused:
            problems = refused.problems
        else:
            return redirect("board_manage", board.slug)
    elif form.is_bound and form.is_valid():
        try:
            board = boards.create_board(form.save(commit=False), request.user)
        except ValidationError as refused:
            _add_errors(form, refused)
        else:
            return redirect("board_manage", board.slug)
    is_wrong = bool(problems or form.errors or bundle_form.errors)
    context = {"form": form, "bundle_form": bundle_form, "problems": problems, "ready_made": ready_made}
    return render_page(request, "new", context, 400 if is_wrong else 200)


def render_page(request: HttpRequest, name: str, context: dict[str, Any], status: int = 200) -> HttpResponse:
    """Return a page for members of a board, in the frame of the researchers' pages."""
    context = admin.site.each_context(request) | context
    return TemplateResponse(request, f"boards/{name}.html", context, status=status)


def _samples_with_new_prompts(board: Board) -> list[tuple[BoardSample, int]]:
    """Return the samples, the newest first, and how many of the prompts of each are new."""
    rows, before = list[tuple[BoardSample, int]](), set[str]()
    for one in board.samples.order_by("number"):
        rows.append((one, len(set(one.keys) - before)))
        before = set(one.keys)
    return rows[::-1]


def _anchors_left_out(board: Board, plan: rounds.RoundPlan) -> list[str]:
    """Return the names of the anchors that the next round does not score."""
    planned = {one.pk for one in (*plan.anchors, *plan.submissions)}
    waiting = rounds.waiting_submissions(board).order_by().values("pk")
    anchors = board.submissions.filter(is_anchor=True, withdrawn_at=None).exclude(pk__in=waiting)
    return [one.name for one in anchors.order_by("number") if one.pk not in planned]


@login_required
@never_cache
@require_safe
def manage_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what a board waits for, and what its members can do."""
    board = get_board(request.user, BoardAction.VIEW, slug)
    jobs_of_board = Job.objects.filter(
        kind__in=[rounds.KIND, snapshots.KIND, metric_tables.KIND, labels.KIND], arguments__board=board.pk
    )
    last = jobs_of_board.only("state", "error").first()
    is_open = board.state == Board.State.OPEN
    chosen_metrics = metric_tables.last_names(board) or ()
    plan = rounds.plan_round(board) if is_open else None
    all_rounds = board.rounds.select_related("study").annotate(n_systems=Count("entries")).order_by("-number")
    may_run = access.is_allowed(request.user, BoardAction.RUN, board)
    context = {
        "board": board,
        "may": {action.name.lower(): access.is_allowed(request.user, action, board) for action in BoardAction},
        "problems": boards.find_opening_problems(board) if board.state == Board.State.DRAFT else (),
        "lacks_test_questions": board.state == Board.State.DRAFT and boards.lacks_test_questions(board.template),
        "scored_sections": scored_sections(board.template),
        "is_template_changed": is_open and rounds.template_sha256(board.template) != board.design_sha256,
        "plan": plan,
        "anchors_left_out": _anchors_left_out(board, plan) if plan and plan.submissions else (),
        "next_launch": rounds.next_launch_at(board) if is_open else None,
        "month_cost": rounds.month_cost(board),
        "waiting": rounds.waiting_submissions(board).select_related("team"),
        "rounds": all_rounds,
        "has_cancellable": may_run and any(not (one.launched_at or one.cancelled_at) for one in all_rounds),
        "scored": board.submissions.filter(entries__round__cancelled_at=None, entries__isnull=False)
        .select_related("team")
        .annotate(n_rounds=Count("entries"))
        .order_by("number"),
        "teams": board.teams.annotate(n_submissions=Count("submissions")),
        "members": board.members.select_related("user").order_by("user__username"),
        "snapshot": newest_snapshots(board).first(),
        "has_metrics": board.state != Board.State.DRAFT and is_about_outputs(board.template),
        "metrics": [
            {"metric": one, "is_chosen": one.name in chosen_metrics} for one in computed.available_metrics().values()
        ],
        "not_installed": computed.NOT_INSTALLED,
        "label_formats": labels.FORMATS,
        "labels_file": labels.find_labels_file(board),
        "running_jobs": running_jobs(request, jobs_of_board),
        "failed_job": last if last is not None and last.state == Job.State.FAILED else None,
        "team_form": TeamForm(),
        "token": uuid.uuid4().hex,
        "samples": _samples_with_new_prompts(board),
        "n_unused": len(rounds.unused_keys(board)) if is_open else 0,
        "renewal_problem": rounds.find_renewal_problem(board) if is_open else "",
    }
    return render_page(request, "manage", context)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def board_settings_page(request: HttpRequest, slug: str) -> HttpResponse:
    board = get_board(request.user, BoardAction.EDIT, slug)
    form = BoardForm(request.POST if request.method == "POST" else None, instance=board, user=request.user)
    if form.is_bound and form.is_valid():
        changes = {name: form.cleaned_data[name] for name in form.changed_data}
        try:
            # The form has changed its instance, so the service gets the stored row.
            board = boards.change_board(Board.objects.get(pk=board.pk), request.user, changes)
        except ValidationError as refused:
            _add_errors(form, refused)
        else:
            messages.success(request, "The settings are saved.")
            return redirect("board_manage", board.slug)
    context = {"board": Board.objects.get(pk=board.pk), "form": form}
    return render_page(request, "settings", context, 400 if form.errors else 200)


def _act(request: HttpRequest, slug: str, act: Any, done: str) -> HttpResponse:
    """Do an act on a board, and return to its page with a message. A refusal changes nothing."""
    try:
        act()
    except ActionRefused as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, done)
    return redirect("board_manage", slug)


@login_required
@require_POST
def open_board(request, slug) -> HttpResponse:
    board = get_board(request.user, BoardAction.EDIT, slug)
    done = "The board is open. Make a team, and send it its link."
    return _act(request, slug, lambda: boards.open_board(board, request.user), done)


@login_required
@require_POST
def go_without_test_questions(request, slug) -> HttpResponse:
    """Delete the rules of the template that need test questions."""
    board = get_board(request.user, BoardAction.EDIT, slug)
    done = "The template has no rule about test questions any more."
    return _act(request, slug, lambda: boards.delete_rules_about_test_questions(board, request.user), done)


@login_required
@require_POST
def close_board(request, slug) -> HttpResponse:
    board = get_board(request.user, BoardAction.EDIT, slug)
    done = "The board is closed. Rounds that are running end as planned."
    return _act(request, slug, lambda: boards.close_board(board, request.user), done)


@login_required
@require_POST
def open_round(request, slug) -> HttpResponse:
    board = get_board(request.user, BoardAction.RUN, slug)
    token = request.POST.get("token", "")[:64] or None
    return _act(request, slug, lambda: rounds.request_round(board, request.user, token), "The round is being opened.")


@login_required
@require_POST
def renew_sample(request, slug) -> HttpResponse:
    """Renew a share of the prompts. The next round then scores both samples."""
    board = get_board(request.user, BoardAction.EDIT, slug)
    form = RenewalForm(request.POST)
    if not form.is_valid():
        messages.error(request, "This share is not between 0 and 1. Enter a number such as 0.25.")
        return redirect("board_manage", slug)

    def renew() -> None:
        try:
            rounds.renew_sample(board, request.user, form.cleaned_data["share"], after=form.cleaned_data["after"])
        except ValidationError as refused:
            raise ActionRefused(" ".join(refused.messages)) from None

    return _act(request, slug, renew, "The sample is renewed. The next round scores both samples.")


@login_required
@require_POST
def cancel_round(request, slug, number) -> HttpResponse:
    board = get_board(request.user, BoardAction.RUN, slug)
    one = get_object_or_404(BoardRound.objects.select_related("board", "study"), board=board, number=number)
    done = "The round is cancelled. Its submissions wait for the next one."
    return _act(request, slug, lambda: rounds.cancel_round(one, request.user), done)


@login_required
@require_POST
def take_snapshot(request, slug) -> HttpResponse:
    board = get_board(request.user, BoardAction.RUN, slug)
    done = "The results are being computed."
    return _act(request, slug, lambda: snapshots.request_snapshot(board, request.user), done)


@login_required
@require_POST
def compute_metrics(request, slug) -> HttpResponse:
    """Start the job that computes metrics of the newest snapshot's systems."""
    board = get_board(request.user, BoardAction.RUN, slug)
    names, token = request.POST.getlist("names"), request.POST.get("token", "")[:64] or None
    done = "The metrics are being computed."
    return _act(request, slug, lambda: metric_tables.request_metrics(board, request.user, names, token), done)


@login_required
@require_POST
def write_labels(request, slug) -> HttpResponse:
    """Start the job that writes the labels of all rounds into one file."""
    board = get_board(request.user, BoardAction.RUN, slug)
    file_format, token = request.POST.get("format", ""), request.POST.get("token", "")[:64] or None
    done = "The file is being written."
    return _act(request, slug, lambda: labels.request_labels(board, request.user, file_format, token), done)


@login_required
@require_safe
def labels_file(request, slug, job) -> FileResponse:
    board = get_board(request.user, BoardAction.VIEW, slug)
    found = labels.find_labels_file(board, job)
    if found is None:
        raise Http404("This file does not exist, or no longer. Write it again.")
    written, path = found
    return FileResponse(path.open("rb"), as_attachment=True, filename=labels.file_name(board, written))


@login_required
@require_POST
def choose_anchor(request, slug, number) -> HttpResponse:
    board = get_board(request.user, BoardAction.RUN, slug)
    one = get_object_or_404(Submission.objects.select_related("board"), board=board, number=number)
    is_anchor = request.POST.get("is_anchor") == "yes"
    done = f"{one.name} is {'an' if is_anchor else 'no longer an'} anchor."
    return _act(request, slug, lambda: rounds.choose_anchor(one, request.user, is_anchor), done)


def _key_page(request, board: Board, team: Team, key: str) -> HttpResponse:
    """Show the key of a team, which is not stored and can be shown only now."""
    link = f"{settings.SITE_URL}/boards/{board.slug}/team/{key}/"
    return render_page(
        request, "team_key", {"board": board, "team": team, "key": key, "link": link, "site": settings.SITE_URL}
    )


@login_required
@never_cache
@require_POST
def create_team(request, slug) -> HttpResponse:
    board = get_board(request.user, BoardAction.MANAGE_TEAMS, slug)
    form = TeamForm(request.POST)
    if form.is_valid():
        try:
            team, key = access.create_team(board, request.user, form.cleaned_data["name"])
        except ValidationError as refused:
            messages.error(request, " ".join(refused.messages))
        else:
            return _key_page(request, board, team, key)
    else:
        messages.error(request, "Enter the name of the team, with at most 100 characters.")
    return redirect("board_manage", slug)


@login_required
@never_cache
@require_POST
def replace_team_key(request, slug, pk) -> HttpResponse:
    board = get_board(request.user, BoardAction.MANAGE_TEAMS, slug)
    team = get_object_or_404(Team.objects.select_related("board"), board=board, pk=pk)
    return _key_page(request, board, team, access.replace_team_key(team, request.user))


@login_required
@require_POST
def revoke_team(request, slug, pk) -> HttpResponse:
    board = get_board(request.user, BoardAction.MANAGE_TEAMS, slug)
    team = get_object_or_404(Team.objects.select_related("board"), board=board, pk=pk)
    done = f"{team.name} can no longer submit. Its submissions stay."
    return _act(request, slug, lambda: access.revoke_team(team, request.user), done)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def members_page(request: HttpRequest, slug: str) -> HttpResponse:
    board = get_board(request.user, BoardAction.SHARE, slug)
    stored = [{"user": member.user_id, "role": member.role} for member in board.members.order_by("user__username")]
    forms = MemberFormSet(request.POST if request.method == "POST" else None, initial=stored)
    fault = ""
    if forms.is_bound and forms.is_valid():
        rows = [form.cleaned_data for form in forms]
        chosen = [(row["user"].pk, row["role"]) for row in rows if row.get("user") and not row.get("DELETE")]
        try:
            access.replace_members(board, request.user, chosen)
        except ValidationError as refused:
            fault = " ".join(refused.messages)
        else:
            messages.success(request, "The members are saved. Rounds that exist keep the members they have.")
            return redirect("board_manage", slug)
    is_wrong = bool(fault or (forms.is_bound and not forms.is_valid()))
    context = {"board": board, "forms": forms, "fault": fault}
    return render_page(request, "members", context, 400 if is_wrong else 200)


@login_required
@require_safe
def download_bundle(request, slug) -> HttpResponse:
    """Return the board as one file: its settings and its template. Submissions, rounds and keys are not in it."""
    board = get_board(request.user, BoardAction.VIEW, slug)
    response = JsonResponse(boards.serialize_board(board), json_dumps_params={"indent": 1, "ensure_ascii": False})
    response["Content-Disposition"] = f'attachment; filename="{board.slug}.board.json"'
    return response
