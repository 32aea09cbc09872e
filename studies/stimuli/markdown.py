"""Render Markdown as HTML: for instructions, consent, explanations, outputs and the documentation.

The text may come from a hostile model. The parser does not allow raw HTML, and an allow-list cleans its output again. So a
fault in only one of them is harmless.
"""

import re
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from nh3 import Cleaner

# The parser needs up to 1.5 s for the worst 50,000 characters. Longer texts are shown as typed.
MAX_CHARACTERS = 50_000

_TAGS = {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6"),
    *("em", "strong", "code", "pre", "blockquote", "ul", "ol", "li", "a"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
_ALIGNMENTS = {"left", "center", "right"}
# A path, a fragment or a plain name. To a browser "//host" is the address of another host, also with backslashes. A text
# with a colon before its first slash may be a scheme.
_WITHIN_SITE = re.compile(r"#|\.{0,2}/(?![/\\])|[\w.-]+(?:[/#?]|\Z)")
_SCHEMES = {"http", "https", "mailto"}


_BOXES = (
    ("<pre>", '<pre tabindex="0" role="group" aria-label="Code">'),
    ("<table>", '<div class="scrolls" tabindex="0" role="group" aria-label="Table"><table>'),
    ("</table>", "</table></div>"),
)


def render_markdown(text: str, *, allows_site_links: bool = False, scrolls_wide_blocks: bool = False) -> SafeString:
    """Return safe HTML of a Markdown text: CommonMark and tables, without raw HTML, styles, images and referrers.

    `allows_site_links` keeps links within this site. Use it only for the project's own texts: in other texts a click could
    lead an annotator out of the assignment. `scrolls_wide_blocks` puts wide blocks, tables and code, into boxes that
    scroll. A box can have the focus, so that the keyboard can scroll it.
    """
    if len(text) > MAX_CHARACTERS:
        html = format_html("<pre>{}</pre>\n", text)
    else:
        # The allow-list makes it safe.
        html = mark_safe(_cleaner(allows_site_links).clean(_parser().render(text)))  # noqa: S308 - cleaned in this line
    if scrolls_wide_blocks:
        # These tags come from the cleaner: it escapes text that looks like a tag.
        for tag, boxed in _BOXES:
            html = mark_safe(html.replace(tag, boxed))  # noqa: S308 - a constant in place of a tag
    return html


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("image", _image_text)
    parser.core.ruler.push("alignment_without_style", _alignment_without_style)
    return parser


@cache
def _cleaner(has_own_links: bool) -> "Cleaner":
    from nh3 import Cleaner

    return Cleaner(
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        tag_attribute_values={cell: {"align": _ALIGNMENTS} for cell in ("th", "td")},
        url_schemes=_SCHEMES,
        url_relative=_link_within_site if has_own_links else "deny",
        link_rel="noopener nofollow",
    )


def _link_within_site(url: str) -> str | None:
    return url if _WITHIN_SITE.match(url) else None


def _image_text(_renderer: Any, tokens: "Sequence[Token]", index: int, _options: Any, _env: Any) -> str:
    # A remote image would show its host who reads the page and when. Only its alternative text remains.
    return escape(tokens[index].content)


def _alignment_without_style(state: Any) -> None:
    for token in state.tokens:
        if token.type in {"th_open", "td_open"} and "style" in token.attrs:
            token.attrs["align"] = str(token.attrs.pop("style")).removeprefix("text-align:")
