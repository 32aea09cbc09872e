"""The documentation at /docs/: the index and each Markdown file in a folder of ``PARTS`` are public pages.

``templates/docs/decisions`` is for developers, is not served, and is not part of a wheel.

The files link to one another by file name (``../how-to/amend-a-study.md``), so that a checkout is readable too. Here
such links become page addresses. A page is looked up in the list of existing files; no requested address is joined to a
folder.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape, unescape
from itertools import count
from pathlib import Path
from posixpath import dirname, join, normpath

from django.conf import settings
from django.http import Http404, HttpResponse
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import slugify
from django.views.decorators.http import require_safe

from studies.stimuli.markdown import render_markdown

DOCS_FOLDER = settings.DATA / "templates" / "docs"
INDEX = "index"
PARTS = {"tutorial": "Tutorial", "how-to": "How to", "reference": "Reference", "explanation": "Explanation"}
LINK = re.compile(r"\]\(([^)\s]+\.md)(#[\w-]+)?\)")
_HREF = re.compile(r'href="([^":]+\.md)(#[\w-]+)?"')
_PICTURE = re.compile(r"^!\[([^\]\n]+)\]\((?:\.\./)+static/(docs/[\w.-]+)\)$", re.MULTILINE)
_HEADING = re.compile(r"<h([2-4])>(.*?)</h\1>", re.DOTALL)
_WIDE = re.compile(r"<table>.*?</table>|<pre>.*?</pre>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Page:
    """``name``: the path below the folder, without its extension. ``title``: the first heading."""

    name: str
    title: str
    text: str

    @property
    def part(self) -> str:
        return self.name.partition("/")[0] if "/" in self.name else ""

    @property
    def url(self) -> str:
        return page_url(self.name)


def page_url(name: str) -> str:
    return reverse("docs") if name == INDEX else reverse("docs-page", args=[name])


def read_pages(folder: Path = DOCS_FOLDER) -> dict[str, Page]:
    """Return all pages by name, in the order of the index's links. Pages without a link come last."""
    pages = {}
    for path in sorted(folder.rglob("*.md")):
        name = path.relative_to(folder).with_suffix("").as_posix()
        if name != INDEX and name.partition("/")[0] not in PARTS:
            continue
        text = path.read_text(encoding="utf-8")
        pages[name] = Page(name, _title(name, text), text)
    order = linked_page_names(pages[INDEX]) if INDEX in pages else []
    listed = {name: number for number, name in reversed(list(enumerate(order)))}
    names = sorted(pages, key=lambda name: (name != INDEX, listed.get(name, len(order)), name))
    return {name: pages[name] for name in names}


def _title(name: str, text: str) -> str:
    first = text.partition("\n")[0]
    return first.removeprefix("# ").strip() if first.startswith("# ") else name.rpartition("/")[2].replace("-", " ")


def linked_page_names(page: Page) -> list[str]:
    """Return the targets of a page's links, whether they exist or not."""
    return [resolve_link_to_page_name(page.name, link) for link, _ in LINK.findall(page.text)]


def resolve_link_to_page_name(page_name: str, link: str) -> str:
    """Return the page name that a link on the page ``page_name`` refers to."""
    return normpath(join(dirname(page_name), link)).removesuffix(".md")


def render_html(page: Page) -> SafeString:
    """Return the page as HTML, with page links, heading anchors, and wide parts that scroll separately."""

    def linked(match: re.Match) -> str:
        return f'href="{page_url(resolve_link_to_page_name(page.name, match[1]))}{match[2] or ""}"'

    taken: set[str] = set()

    def anchored(match: re.Match) -> str:
        anchor = _unused_anchor(slugify(unescape(re.sub(r"<[^>]+>", "", match[2]))) or "part", taken)
        return f'<h{match[1]} id="{anchor}">{match[2]}</h{match[1]}>'

    # The renderer also serves researchers' texts and shows no images. The documentation's images are alone on a line.
    pictures = _PICTURE.findall(page.text)
    picture_numbers = count()
    text = _PICTURE.sub(lambda _: f"picture-{next(picture_numbers)}-stands-here", page.text)
    html = _HREF.sub(linked, render_markdown(text, allows_site_links=True))
    for number, (alt, name) in enumerate(pictures):
        picture = f'<img class="picture" src="{static(name)}" alt="{escape(alt)}" loading="lazy">'
        html = html.replace(f"picture-{number}-stands-here", picture)
    # An empty corner cell is no heading.
    html = _HEADING.sub(anchored, html).replace("<th></th>", "<td></td>")
    # A scrolling region must be reachable by keyboard and have a name.
    numbers = count(1)
    html = _WIDE.sub(lambda match: _scrollable(match[0], next(numbers)), html)
    return mark_safe(html)  # noqa: S308 - the project's own text, rendered by its own renderer, with heval's markup


def _unused_anchor(anchor: str, taken: set[str]) -> str:
    free = next(name for n in count(1) if (name := anchor if n == 1 else f"{anchor}-{n}") not in taken)
    taken.add(free)
    return free


def _scrollable(html: str, number: int) -> str:
    kind = "Table" if html.startswith("<table") else "Code"
    return f'<div class="scrolled" role="region" tabindex="0" aria-label="{kind} {number}">{html}</div>'


def pages_by_part(pages: Mapping[str, Page]) -> list[tuple[str, list[Page]]]:
    """Return the parts of the documentation with their pages, in order."""
    return [(title, [page for page in pages.values() if page.part == part]) for part, title in PARTS.items()]


# Search: a part is the text below one heading. It is found if it has all words of the question.


MOST_FOUND, EXCERPT = 30, 160
_PART = re.compile(r"^(#{1,4}) (.+)$", re.MULTILINE)
_MARKUP = re.compile(r"```\w*|[`*|>#]|!?\[([^\]]*)\]\([^)]*\)|^[-:| ]+$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PagePart:
    """The text below one heading of a page, and its anchor; the part above the first one has none."""

    page: Page
    heading: str
    anchor: str
    text: str

    @property
    def url(self) -> str:
        return f"{self.page.url}#{self.anchor}" if self.anchor else self.page.url


@dataclass(frozen=True, slots=True)
class Found:
    part: PagePart
    excerpt: str


def parts_of(page: Page) -> list[PagePart]:
    """Return the parts of a page, with the anchors that its HTML has."""
    taken: set[str] = set()
    starts = list(_PART.finditer(page.text))
    parts = []
    for start, following in zip(starts, [*starts[1:], None], strict=True):
        heading = _plain(start[2])
        anchor = "" if len(start[1]) == 1 else _unused_anchor(slugify(heading) or "part", taken)
        end = following.start() if following else len(page.text)
        parts.append(PagePart(page, heading, anchor, _plain(page.text[start.end() : end])))
    return parts


def _plain(text: str) -> str:
    return " ".join(_MARKUP.sub(lambda match: match[1] or " ", text).split())


def search(parts: Iterable[PagePart], question: str) -> list[Found]:
    """Return the parts that have all words of the question, those with the words in their headings first."""
    words = question.casefold().split()
    ranked = []
    for number, part in enumerate(parts):
        title, heading, text = part.page.title.casefold(), part.heading.casefold(), part.text.casefold()
        if words and all(word in title or word in heading or word in text for word in words):
            weight = sum(8 * (word in heading) + 4 * (word in title) + min(5, text.count(word)) for word in words)
            ranked.append((-weight, number, part))
    return [Found(part, _excerpt(part.text, words)) for _, _, part in sorted(ranked)[:MOST_FOUND]]


def _excerpt(text: str, words: list[str]) -> str:
    places = [place for word in words if (place := text.casefold().find(word)) >= 0]
    start = max(0, min(places, default=0) - EXCERPT // 3)
    start = text.rfind(" ", 0, start) + 1
    shown = text[start : start + EXCERPT].rsplit(" ", 1)[0] if len(text) > start + EXCERPT else text[start:]
    return f"{'… ' if start else ''}{shown}{' …' if start + len(shown) < len(text) else ''}"


@cache
def _cached_pages() -> Mapping[str, Page]:
    # Files do not change while a process runs.
    return read_pages()


@cache
def _all_parts() -> tuple[PagePart, ...]:
    return tuple(part for page in _cached_pages().values() for part in parts_of(page))


@require_safe
def search_page(request) -> HttpResponse:
    """Search the documentation. The words come in the address, so that a search can be linked."""
    question = request.GET.get("q", "")[:200].replace("\0", " ").strip()
    context = {
        "page": Page("search", "Search", ""),
        "question": question,
        "found": search(_all_parts(), question),
        "parts": pages_by_part(_cached_pages()),
    }
    return HttpResponse(render_to_string("docs/search.html", context))


def _render_page(name: str) -> str | None:
    pages = read_pages()
    page = pages.get(name)
    if page is None:
        return None
    context = {"page": page, "html": render_html(page), "parts": pages_by_part(pages), "index": pages.get(INDEX)}
    return render_to_string("docs/_page.html", context)


@cache
def _page_names() -> frozenset[str]:
    return frozenset(_cached_pages())


@cache
def _cached_page(name: str) -> str | None:
    # Files do not change while a process runs. Unknown names are not cached.
    return _render_page(name)


@require_safe
def docs_page(request, name: str = INDEX) -> HttpResponse:
    """Show one page of the documentation."""
    is_cached = not settings.DEBUG and name in _page_names()
    html = _cached_page(name) if is_cached else _render_page(name) if settings.DEBUG else None
    if html is None:
        raise Http404
    return HttpResponse(html, headers={"Cache-Control": "public, max-age=300"})
