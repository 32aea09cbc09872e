"""The page of a team: upload outputs, follow them, withdraw and publish. The key in the address is the only credential."""

import json
import re
import uuid
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.exceptions import ValidationError
from django.http import FileResponse, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt

from boards.access import find_team
from boards.models import Submission, Team, numbered_name
from boards.services import images, submissions
from boards.services.images import has_prompt_images, write_prompts_archive
from boards.services.rounds import keys_to_answer
from boards.services.snapshots import (
    PROMPT_COLUMNS,
    SCORED,
    WITHDRAWN,
    find_statuses,
    newest_snapshot,
    prompts_to_answer,
)
from boards.services.submissions import MAX_FILE_BYTES, SubmissionRefused
from studies.imports.tables.run import MAX_BYTES as MAX_ARCHIVE_BYTES
from studies.models import Job
from studies.services.lifecycle import ActionRefused
from studies.services.rate_limits import count_and_check_rate_limit
from studies.stimuli.rows import TableProblem, formula_safe_csv_text

MAX_PER_MINUTE = 60
CHECK_REFRESH_SECONDS = 3
# A form has a few short fields beside its file.
MAX_FORM_BYTES = MAX_FILE_BYTES + 2**20
_REQUEST_TOKEN = re.compile(r"[0-9a-f]{32}")
FIELDS = ("name", "description", "url", "request_token")
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
NO_KEY = (
    "This link does not work",
    "The key in it is wrong, was replaced, or was revoked. Ask the board's owner for a new link.",
)
TOO_MANY = ("Too many requests", "This team sent too many requests in this minute. Wait a minute, then try again.")
NO_FILE = (
    "There is no such file",
    "The prompts are a CSV, a JSON-lines file, or a ZIP if they have images. Go back to the team's page.",
)
NO_SUCH = ("There is no such submission", "This team has no submission with this number. Go back to the team's page.")


def team_page_view(*methods: str) -> Callable[[Callable[..., HttpResponseBase]], Callable[..., HttpResponseBase]]:
    """Return a decorator: find the team before anything of the request is read, and add the headers of a secret address.

    No other site can make a browser send a key that it does not know, so that forms need no other token.
    """

    def decorate(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
        @csrf_exempt
        @wraps(view)
        def wrapped(request: HttpRequest, slug: str, key: str, *args: Any, **kwargs: Any) -> HttpResponseBase:
            response: HttpResponseBase
            if request.method not in methods:
                response = HttpResponse(status=405, headers={"Allow": ", ".join(methods)})
            elif (team := find_team(key)) is None or team.board.slug != slug:
                response = notice(*NO_KEY, status=404)
            elif count_and_check_rate_limit(f"team:{team.pk}", MAX_PER_MINUTE):
                response = notice(*TOO_MANY, status=429)
                response["Retry-After"] = "60"
            else:
                response = view(request, team, key, *args, **kwargs)
            response["Referrer-Policy"] = "no-referrer"
            response["Cache-Control"] = "no-store"
            response["X-Robots-Tag"] = "noindex"
            response["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
            return response

        return wrapped

    return decorate


def notice(title: str, text: str, status: int = 200) -> HttpResponse:
    return _page("boards/team_notice.html", {"title": title, "text": text}, status)


def _page(template: str, context: dict[str, Any], status: int = 200) -> HttpResponse:
    """Render without the request, so that no session or cookie is touched."""
    return HttpResponse(render_to_string(template, context), status=status)


def _address(name: str, team: Team, key: str, *args: int) -> str:
    return reverse(name, args=[team.board.slug, key, *args])


@team_page_view("GET", "HEAD", "POST")
def team_page(request: HttpRequest, team: Team, key: str) -> HttpResponse:
    """What a team has submitted, and the form for the next submission."""
    if request.method != "POST":
        return _team_page(team, key, {"request_token": uuid.uuid4().hex})
    limit = _max_file_bytes(team)
    if int(request.META.get("CONTENT_LENGTH") or 0) > limit + MAX_FORM_BYTES - MAX_FILE_BYTES:
        problem = f"The file is larger than {limit // 2**20} MB. Send a smaller file."
        return _team_page(team, key, {"request_token": uuid.uuid4().hex}, [("file", problem)], status=413)
    typed = {name: request.POST.get(name, "") for name in FIELDS}
    typed["is_anonymous"] = "1" if request.POST.get("is_anonymous") else ""
    file = request.FILES.get("file")
    if file is None:
        problems = [("file", "No file was chosen. Choose the file with the outputs.")]
        return _team_page(team, key, typed, problems, status=400)
    try:
        token = typed["request_token"] if _REQUEST_TOKEN.fullmatch(typed["request_token"]) else None
        how: dict[str, Any] = {
            "description": typed["description"],
            "url": typed["url"],
            "is_anonymous": bool(typed["is_anonymous"]),
            "request_token": token,
        }
        sent = (team.board, team, typed["name"], file.name or "")
        if team.board.takes_images:
            one, _ = images.submit_images(*sent, file.chunks(), **how)
        else:
            one, _ = submissions.submit_outputs(*sent, file.read(MAX_FILE_BYTES + 1), **how)
    except SubmissionRefused as refused:
        problems = [_field_and_text(one) for one in refused.problems]
        return _team_page(team, key, typed, problems, refused.problems.count, 400)
    except ValidationError as refused:
        found = refused.message_dict.items() if hasattr(refused, "error_dict") else [("", refused.messages)]
        return _team_page(team, key, typed, [(name, text) for name, texts in found for text in texts], status=400)
    except ActionRefused as refused:
        wait = getattr(refused, "retry_after", None)
        response = _team_page(team, key, typed, [("", str(refused))], status=429 if wait else 409)
        if wait:
            response["Retry-After"] = str(wait)
        return response
    if isinstance(one, Job):
        return HttpResponseRedirect(reverse("team_check", args=[team.board.slug, key, one.code]))
    return HttpResponseRedirect(f"{_address('team_page', team, key)}#submission-{one.number}")


def _field_and_text(problem: TableProblem) -> tuple[str, str]:
    """Return the form's field that a problem is about, and its text. Problems of rows are about the file."""
    is_of_form = problem.row is None and problem.column in FIELDS
    return (problem.column or "", problem.text) if is_of_form else ("file", str(problem))


def _max_file_bytes(team: Team) -> int:
    return MAX_ARCHIVE_BYTES if team.board.takes_images else MAX_FILE_BYTES


@team_page_view("GET", "HEAD")
def check_page(request: HttpRequest, team: Team, key: str, job: uuid.UUID) -> HttpResponse:
    """The progress of the check of a file; at its end, the submission or what is wrong with the file."""
    found = images.find_check(team.board, team, job)
    if found is None:
        return notice(*NO_SUCH, status=404)
    if found.state in (Job.State.WAITING, Job.State.RUNNING):
        is_refresh_off = request.GET.get("refresh") == "off"
        context = {"board": team.board, "key": key, "job": found, "is_refresh_off": is_refresh_off}
        response = _page("boards/team_check.html", context)
        if not is_refresh_off:
            response["Refresh"] = str(CHECK_REFRESH_SECONDS)
        return response
    result = found.result or {}
    if "submission" in result:
        return HttpResponseRedirect(f"{_address('team_page', team, key)}#submission-{result['submission']}")
    fields = found.arguments["fields"]
    typed = fields | {"is_anonymous": "1" if fields["is_anonymous"] else "", "request_token": uuid.uuid4().hex}
    problems = result.get("problems") or [[None, None, found.error or "The check was cancelled. Send the file again."]]
    listed = [_field_and_text(TableProblem(row, column, text)) for row, column, text in problems]
    return _team_page(team, key, typed, listed, result.get("n_problems", 1))


def _team_page(
    team: Team,
    key: str,
    typed: dict[str, str],
    problems: list[tuple[str, str]] | None = None,
    n_problems: int = 0,
    status: int = 200,
) -> HttpResponse:
    board, snapshot = team.board, newest_snapshot(team.board)
    own = list(board.submissions.filter(team=team).order_by("-number"))
    statuses = find_statuses(board, own, snapshot)
    problems = problems or []
    context = {
        "board": board,
        "team": team,
        "key": key,
        "typed": typed,
        "problems": problems,
        "n_more": max(0, n_problems - len(problems)),
        "wrong": {field for field, _ in problems},
        "takes_submissions": board.state == board.State.OPEN,
        "n_prompts": len(keys_to_answer(board)),
        "max_megabytes": _max_file_bytes(team) // 2**20,
        "has_prompt_images": has_prompt_images(board),
        "checks": images.checks_of(team).filter(state__in=(Job.State.WAITING, Job.State.RUNNING)),
        "level": round(100 * snapshot.result["level"]) if snapshot else None,
        "rows": [_row(one, statuses[one.number]) for one in own],
    }
    return _page("boards/team.html", context, status)


def _row(one: Submission, status: Any) -> dict[str, Any]:
    return {
        "submission": one,
        "status": status,
        "score": status.row["scores"].get(status.overall) if status.state == SCORED else None,
        "may_withdraw": status.state != WITHDRAWN,
        "may_publish": one.is_anonymous and status.state != WITHDRAWN,
    }


def _own_submission(team: Team, number: int) -> Submission | None:
    return team.board.submissions.select_related("board").filter(team=team, number=number).first()


@team_page_view("GET", "HEAD", "POST")
def withdraw_page(request: HttpRequest, team: Team, key: str, number: int) -> HttpResponse:
    """Explain what withdrawing a submission does. A POST withdraws it."""
    return _confirmed(request, team, key, number, "withdraw", lambda one: submissions.withdraw(one, by=None))


@team_page_view("GET", "HEAD", "POST")
def publish_page(request: HttpRequest, team: Team, key: str, number: int) -> HttpResponse:
    """Explain what publishing a name does. A POST publishes it."""
    return _confirmed(request, team, key, number, "publish", submissions.publish)


def _confirmed(
    request: HttpRequest, team: Team, key: str, number: int, act: str, do: Callable[[Submission], bool]
) -> HttpResponse:
    one = _own_submission(team, number)
    if one is None:
        return notice(*NO_SUCH, status=404)
    back = f"{_address('team_page', team, key)}#submission-{number}"
    if request.method == "POST":
        do(one)
    elif not one.withdrawn_at and (act == "withdraw" or one.is_anonymous):
        context = {"board": team.board, "submission": one, "numbered": numbered_name(one), "act": act, "back": back}
        return _page("boards/team_confirm.html", context)
    return HttpResponseRedirect(back)


@team_page_view("GET", "HEAD")
def prompts_file(request: HttpRequest, team: Team, key: str, file_format: str) -> HttpResponseBase:
    """The prompts that a submission answers, as CSV or JSON lines. The CSV file has a column for the outputs."""
    if file_format == "zip" and has_prompt_images(team.board):
        filename = f"{team.board.slug}-prompts.zip"
        return FileResponse(write_prompts_archive(team.board), as_attachment=True, filename=filename)
    if file_format not in ("csv", "jsonl"):
        return notice(*NO_FILE, status=404)
    rows = prompts_to_answer(team.board)
    if file_format == "csv":
        text = formula_safe_csv_text([(*PROMPT_COLUMNS, "output"), *([*row.values(), ""] for row in rows)])
        media_type = "text/csv; charset=utf-8"
    else:
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        media_type = "application/x-ndjson; charset=utf-8"
    name = f"{team.board.slug}-prompts.{file_format}"
    return HttpResponse(
        text, content_type=media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )
