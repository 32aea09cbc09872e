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


def render_markdown(
    text: str, *, allows_site_links: bool = False, scrolls_wide_blocks: bool = False, top_heading: int = 0
) -> SafeString:
    """Return safe HTML of a Markdown text: CommonMark and tables, without raw HTML, styles, images and referrers.

    `allows_site_links` keeps links within this site. Use it only for the project's own texts: in other texts a click could
    lead an annotator out of the assignment. `scrolls_wide_blocks` puts wide blocks, tables and code, into boxes that
    scroll. A box can have the focus, so that the keyboard can scroll it. `top_heading` is the level that the text's first
    level of headings gets, and no level is left out; 0 leaves them as they are.
    """
    html = _render_safely(_parser(), text, allows_site_links)
    if top_heading:
        html = mark_safe(_in_order(html, top_heading))  # noqa: S308 - cleaned above; one heading tag in place of another
    return _with_boxes(html) if scrolls_wide_blocks else html


def render_output(text: str, *, shows_addresses: bool = False) -> SafeString:
    """Return safe HTML of an output in Markdown, as close to what its system wrote as can be.

    Single line breaks and formulas (``$x$``, ``\\(x\\)``) stay as typed. Headings are bold paragraphs, because those of a
    page are its own. Links are text: they would lead out of the study, and their address may name the system. It is in
    brackets if `shows_addresses`.
    """
    return _with_boxes(_render_safely(_output_parser(shows_addresses), text, False))


def _render_safely(parser: "MarkdownIt", text: str, has_own_links: bool) -> SafeString:
    if len(text) > MAX_CHARACTERS:
        return format_html("<pre>{}</pre>\n", text)
    # The allow-list makes it safe.
    return mark_safe(_cleaner(has_own_links).clean(parser.render(text)))  # noqa: S308 - the cleaner of this line keeps only tags of its list


def _with_boxes(html: SafeString) -> SafeString:
    # These tags come from the cleaner: it escapes text that looks like a tag.
    for tag, boxed in _BOXES:
        html = mark_safe(html.replace(tag, boxed))  # noqa: S308 - cleaned before; a constant in place of a tag
    return html


_HEADING = re.compile(r"<(/?)h([1-6])>")


def _in_order(html: str, top: int) -> str:
    """Return the HTML with headings that begin at this level and leave out none."""
    open_levels: list[str] = []

    def replaced(match: re.Match[str]) -> str:
        if not match[1]:
            while open_levels and open_levels[-1] >= match[2]:
                open_levels.pop()
            open_levels.append(match[2])
        return f"<{match[1]}h{min(6, top + len(open_levels) - 1)}>"

    return _HEADING.sub(replaced, html)


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("image", _image_text)
    parser.core.ruler.push("alignment_without_style", _alignment_without_style)
    return parser


# A formula. An amount such as "$5 and $10" is not one. The bounds keep hostile texts from taking long.
_FORMULA = re.compile(
    r"\$\$.{1,1000}?\$\$|\$(?![\s$])[^$\n]{0,1000}(?<!\s)\$(?!\d)|\\\(.{1,1000}?\\\)|\\\[.{1,1000}?\\\]", re.DOTALL
)


@cache
def _output_parser(shows_addresses: bool) -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("table")
    parser.core.ruler.push("alignment_without_style", _alignment_without_style)
    parser.inline.ruler.before("escape", "formula", _formula_as_typed)
    parser.add_render_rule("image", _image_text)
    parser.add_render_rule("heading_open", lambda *_: "<p><strong>")
    parser.add_render_rule("heading_close", lambda *_: "</strong></p>\n")
    parser.add_render_rule("link_open", lambda *_: "")
    parser.add_render_rule("link_close", _address_in_brackets if shows_addresses else lambda *_: "")
    return parser


def _formula_as_typed(state: Any, is_silent: bool) -> bool:
    match = _FORMULA.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not is_silent:
        for number, line in enumerate(match[0].split("\n")):
            if number:
                state.push("softbreak", "br", 0)
            state.push("text", "", 0).content = line
    state.pos = match.end()
    return True


def _address_in_brackets(_renderer: Any, tokens: "Sequence[Token]", index: int, _options: Any, _env: Any) -> str:
    opened = next(
        token for token in reversed(tokens[:index]) if token.type == "link_open" and token.level == tokens[index].level
    )
    return "" if opened.info == "auto" else f" ({escape(str(opened.attrs['href']))})"


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
