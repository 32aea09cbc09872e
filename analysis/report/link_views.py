"""Read-only links to reports: members make and revoke them, and people without an account read the page and its files.

The token in the address is the only credential. These pages are rendered without the request, so no session or cookie is touched.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from functools import cached_property, partial, wraps
from pathlib import Path
from typing import Any

from axes.helpers import get_client_ip_address
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.staticfiles import finders
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from analysis.models import Figure, ReportLink
from studies.access import Action, get_study
from studies.admin.study_page import render_study_page
from studies.models import Study
from studies.services.lifecycle import ActionRefused
from studies.services.rate_limits import count_and_check_rate_limit
from studies.stimuli.images import MEDIA_TYPE, image_path

from .anonymous import anonymous_result, identifying_words, without_words
from .archive import zip_blocks
from .items import items_context
from .links import create_link, find_link, find_shown_run, revoke_link
from .page import report_context
from .texts import FORMATS, render_answer
from .views import ReportLinkForm, file_response, linkable_numbers, render_share, table_response

# A page asks for each of its figures.
MAX_PER_MINUTE, MAX_WRONG_PER_MINUTE = 600, 60
TABLE_FORMATS = ("csv", "txt", "md", "tex", "json")
STYLES = ("tokens.css", "heval.css", "report.css", "boards.css")
HEADERS = {
    "Cache-Control": "private, no-store",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex",
    # Figures have styles of their own.
    "Content-Security-Policy": "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
}
NO_LINK = (
    "This link does not work",
    "It is wrong, has expired or was revoked. Ask the person who sent it for a new one.",
)
NO_FILE = ("There is no such file", "The page of the report names all its files.")
TOO_MANY = ("Too many requests", "Wait a minute, then open the link again.")


class LinkedReport:
    """What a link shows now: the analysis, its result as the page prints it, and what is read from the study when it is asked for."""

    def __init__(self, link: ReportLink):
        self.link = link
        self.run, self.n_withdrawn_since = find_shown_run(link)
        study = self.run.study
        self.words = identifying_words(study) if link.is_anonymous else None
        self.heading = f"Study {study.code}" if link.is_anonymous else study.title

    @cached_property
    def result(self) -> dict[str, Any]:
        return anonymous_result(self.run.result, self.heading, self.words) if self.words else self.run.result

    @cached_property
    def items(self) -> dict[str, Any] | None:
        shows_comments = ReportLink.Part.COMMENTS in self.link.parts
        items = items_context(self.run.study, self.run.result, is_public=True, shows_comments=shows_comments)
        return without_words(items, self.words) if self.words else items

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Return the texts of the study that the page shows, with their labels. The contact is as it is: somebody ticked it."""
        named = [name for name in self.link.parts if name != ReportLink.Part.COMMENTS]
        texts = {name: getattr(self.run.study, name) for name in named}
        if self.words:
            texts |= {name: without_words(texts[name], self.words) for name in named if name != ReportLink.Part.CONTACT}
        return [(ReportLink.Part(name).label, text) for name, text in texts.items() if text.strip()]

    def html(self, styles: str = "") -> str:
        """Return the page. ``styles``: its style sheets in base64, for a file that needs no other."""
        context = {
            **report_context(self.result),
            "items": self.items,
            "study": self.run.study,
            "run": self.run,
            "link": self.link,
            "heading": self.heading,
            "texts": self.texts,
            "withdrawn_since": self.n_withdrawn_since,
            "replaced": self.link.run if self.link.run_id != self.run.pk else None,
            "n_figures_left_out": len(self.run.result["figures"]) - len(self.result["figures"]),
            "styles": styles,
        }
        return render_to_string("report/link.html", context)

    def files(self) -> Iterator[tuple[str, Callable[[], HttpResponse]]]:
        """Yield each file that the page names, below its address, with what makes it. Images come last: only they need the items."""
        yield "result.json", self._json
        for form in FORMATS:
            yield f"answer.{form}", partial(self._answer, form)
        for table in self.result.get("tables", ()):
            for form in TABLE_FORMATS:
                name = f"{table['name']}.{form}"
                yield f"tables/{name}", partial(table_response, table, form, name)
        for figure in self.result["figures"]:
            for form in ("svg", "pdf"):
                yield f"figures/{figure['name']}.{form}", partial(self._figure, figure["name"], form)
        for url in sorted(self._media()):
            yield url, partial(self._image, url.removeprefix("media/"))

    def _json(self) -> HttpResponse:
        text = json.dumps(self.result, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return file_response(text, "application/json", f"analysis-{self.run.number}.json")

    def _answer(self, form: str) -> HttpResponse:
        return file_response(render_answer(self.result, form), FORMATS[form], f"answer.{form}")

    def _figure(self, name: str, form: str) -> HttpResponse:
        figure = get_object_or_404(Figure, run=self.run, name=name)
        if form == "pdf":
            return file_response(bytes(figure.pdf), "application/pdf", f"{name}.pdf")
        return HttpResponse(figure.svg, content_type="image/svg+xml; charset=utf-8")

    def _media(self) -> set[str]:
        groups = [group for compared in (self.items or {}).get("compared", ()) for group in compared["groups"]]
        texts = [text for group in groups for item in group["items"] for text in item["texts"]]
        return {text["url"] for text in texts if text.get("url")}

    def _image(self, name: str) -> HttpResponse:
        return HttpResponse(image_path(settings.MEDIA_ROOT, name).read_bytes(), content_type=MEDIA_TYPE)

    def archive(self) -> HttpResponse:
        """Return one zip of the page and its files."""
        styles = b64encode(b"\n".join(Path(str(finders.find(name))).read_bytes() for name in STYLES)).decode()
        members = [("report.html", iter([self.html(styles).encode()]))]
        members += [(name, iter([make().content])) for name, make in self.files()]
        name = f"analysis-{self.run.number}.zip"
        return file_response(b"".join(zip_blocks(members)), "application/zip", name)


def notice(title: str, detail: str, status: int) -> HttpResponse:
    return HttpResponse(render_to_string("429.html", {"title": title, "detail": detail}), status=status)


def link_view(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Decorate a view of a report that a token shows. All tokens that show nothing get the same answer."""

    @wraps(view)
    def wrapped(request: HttpRequest, token: str, **parts: Any) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            response = HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
        elif (link := find_link(token)) is None:
            is_over = count_and_check_rate_limit(f"wrong-link:{get_client_ip_address(request)}", MAX_WRONG_PER_MINUTE)
            response = notice(*TOO_MANY, 429) if is_over else notice(*NO_LINK, 404)
        elif count_and_check_rate_limit(f"report-link:{link.pk}", MAX_PER_MINUTE):
            response = notice(*TOO_MANY, 429)
        else:
            response = view(LinkedReport(link), **parts)
        if response.status_code == 429:
            response["Retry-After"] = "60"
        for header, value in HEADERS.items():
            response[header] = value
        return response

    return wrapped


@link_view
def linked_report_page(report: LinkedReport) -> HttpResponse:
    """A report for people with a link, without an account."""
    return HttpResponse(report.html())


@link_view
def linked_file(report: LinkedReport, name: str) -> HttpResponse:
    """Return a file of the report, or all of them as one zip."""
    if name == "report.zip":
        return report.archive()
    make = next((make for known, make in report.files() if known == name), None)
    return notice(*NO_FILE, 404) if make is None else make()


@login_required
@require_POST
@never_cache
def make_link_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Make a link and show its address, which is not stored."""
    study = get_study(request.user, Action.SHARE, pk=pk)
    form = ReportLinkForm(linkable_numbers(study), request.POST)
    if not form.is_valid():
        return render_share(request, study, form, 400)
    sent = dict(form.cleaned_data)
    run = study.analyses.get(number=sent.pop("analysis"))
    try:
        link, token = create_link(run, request.user, **sent)
    except ActionRefused as refused:
        form.add_error("analysis", str(refused))
        return render_share(request, study, form, 409)
    return render_study_page(
        request, "report/link_made.html", study, {"link": link, "url": link_url(token), "here": "Share"}
    )


def link_url(token: str) -> str:
    return f"{settings.SITE_URL}{reverse('report_link', args=[token])}"


@login_required
@require_POST
def revoke_link_page(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    study: Study = get_study(request.user, Action.SHARE, pk=pk)
    link = get_object_or_404(ReportLink.objects.select_related("run__study"), run__study=study, pk=number)
    try:
        revoke_link(link, request.user)
        messages.success(request, f"Link {number} no longer works.")
    except ActionRefused as refused:
        messages.error(request, str(refused))
    return redirect(f"{reverse('share', args=[study.pk])}#links")
