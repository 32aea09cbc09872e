import time
from html.parser import HTMLParser

import pytest
from django.template import Context, Template

from studies.stimuli.markdown import MAX_CHARACTERS, render_markdown, render_output

ALLOWED = {
    **{tag: set() for tag in ("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "em", "strong", "code", "pre")},
    **{tag: set() for tag in ("blockquote", "ul", "li", "table", "thead", "tbody", "tr")},
    "ol": {"start"},
    "th": {"align"},
    "td": {"align"},
    "a": {"href", "title", "rel"},
}


class Elements(HTMLParser):
    """Every element that a browser would make of the HTML, with its attributes."""

    def __init__(self, html):
        super().__init__()
        self.found = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_comment(self, data):
        self.found.append(("!--", {}))

    def handle_decl(self, decl):
        self.found.append(("!", {}))


PAYLOADS = [
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<svg><style><img src=x onerror=alert(1)></style></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<object data=javascript:alert(1)>",
    "<embed src=javascript:alert(1)>",
    "<form action=//evil><input name=q></form>",
    "<base href=//evil/>",
    "<meta http-equiv=refresh content='0;url=//evil'>",
    "<link rel=stylesheet href=//evil/x.css>",
    "<style>*{background:url(//evil)}</style>",
    "<p style='position:fixed;inset:0'>x</p>",
    "<a href=javascript:alert(1)>x</a>",
    "<details open ontoggle=alert(1)>",
    "<!--><img src=x onerror=alert(1)>-->",
    "<![CDATA[<img src=x onerror=alert(1)>]]>",
    "<!DOCTYPE html><html>",
    "<?php echo 1 ?>",
    "</p></div></body><script>alert(1)</script>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](javascript&colon;alert(1))",
    "[x](%6aavascript:alert(1))",
    "[x](\x01javascript:alert(1))",
    "[x](vbscript:msgbox(1))",
    "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "[x](data:image/svg+xml,<svg onload=alert(1)>)",
    "[x](file:///etc/passwd)",
    "[x](//evil.example)",
    "[x](/admin/logout/)",
    "[x](\\\\evil.example)",
    "[x]( \n//evil)",
    '[x](https://a.example "\\" onmouseover=alert(1) x=\\"")',
    "[x](https://a.example 'a\" onclick=\"alert(1)')",
    '[x](https://a.example/"onmouseover="alert(1))',
    "[x][1]\n\n[1]: javascript:alert(1)",
    "<javascript:alert(1)>",
    "<https://a.example/\"onclick='alert(1)'>",
    "![x](https://evil.example/pixel.png)",
    "![x](javascript:alert(1))",
    '![x" onerror="alert(1)](y)',
    "![<script>alert(1)</script>](y)",
    "![a][1]\n\n[1]: https://evil.example/pixel.png",
    "```html\n<script>alert(1)</script>\n```",
    '```"><script>alert(1)</script>\nx\n```',
    "``` x onload=alert(1)\ny\n```",
    "`<img src=x onerror=alert(1)>`",
    "    <script>alert(1)</script>",
    "| a |\n|---|\n| <img src=x onerror=alert(1)> |",
    "| <script>alert(1)</script> |\n|:-:|\n| x |",
    "# <script>alert(1)</script>",
    "> <iframe src=//evil>",
    "- <script>alert(1)</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "\\<script>alert(1)\\</script>",
    "<img\x00src=x onerror=alert(1)>",
    "<\u2028script>alert(1)</script>",
    "\uff1cscript\uff1ealert(1)\uff1c/script\uff1e",
    "<a id=x name=getElementById>clobber</a>",
    "<input autofocus onfocus=alert(1)>",
    "<video><source onerror=alert(1)></video>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<template><script>alert(1)</script></template>",
    "<xmp><script>alert(1)</script></xmp>",
    "<textarea></textarea><script>alert(1)</script>",
    "{{ constructor.constructor('alert(1)')() }}",
    "{% include 'settings' %}",
]


@pytest.mark.parametrize("has_own_links", [False, True])
@pytest.mark.parametrize("payload", PAYLOADS + [f"text {payload} *text*" for payload in PAYLOADS])
def test_nothing_but_allowed_elements_and_attributes_comes_out(payload, has_own_links):
    html = render_markdown(payload, allows_site_links=has_own_links)
    for tag, attributes in Elements(html).found:
        assert tag in ALLOWED
        assert set(attributes) <= ALLOWED[tag]
        href = attributes.get("href", "https://")
        is_own = has_own_links and ":" not in href.split("/")[0] and not href.replace("\\", "/").startswith("//")
        assert href.startswith(("https://", "http://", "mailto:")) or is_own
        assert tag != "a" or attributes.get("rel") == "noopener nofollow"
    of_output = {tag for tag, _ in Elements(render_output(payload, shows_addresses=True)).found}
    assert of_output <= {*ALLOWED, "div"} - {"a"}


def test_the_allow_list_holds_when_the_parser_lets_raw_html_through(monkeypatch):
    from markdown_it import MarkdownIt

    monkeypatch.setattr(
        "studies.stimuli.markdown._parser", lambda: MarkdownIt("commonmark", {"html": True}).enable("table")
    )
    for payload in PAYLOADS:
        found = Elements(render_markdown(payload)).found
        assert {tag for tag, _ in found} <= set(ALLOWED)
        assert all(set(attributes) <= ALLOWED[tag] for tag, attributes in found)


def test_the_parser_alone_makes_no_element_of_raw_html():
    from studies.stimuli.markdown import _parser

    assert "<script" not in _parser().render("<script>alert(1)</script>\n\na <b>b</b>")
    assert "<b>" not in _parser().render("a <b>b</b>")


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("*a* **b** `c`", "<p><em>a</em> <strong>b</strong> <code>c</code></p>\n"),
        ("a  \nb", "<p>a<br>\nb</p>\n"),
        ("3. x", '<ol start="3">\n<li>x</li>\n</ol>\n'),
        ("1 < 2 & 3", "<p>1 &lt; 2 &amp; 3</p>\n"),
        (
            "[x](https://a.example/?q=1&r=2 't')",
            '<p><a href="https://a.example/?q=1&amp;r=2" title="t" rel="noopener nofollow">x</a></p>\n',
        ),
        ("<me@a.example>", '<p><a href="mailto:me@a.example" rel="noopener nofollow">me@a.example</a></p>\n'),
        ("![two ships](ships.png)", "<p>two ships</p>\n"),
        ("", ""),
    ],
)
def test_ordinary_markdown_is_rendered(text, html):
    assert render_markdown(text) == html


def test_tables_keep_their_alignment_without_style():
    html = render_markdown("| a | b |\n|:-|-:|\n| 1 | 2 |")
    assert '<th align="left">a</th>' in html and '<td align="right">2</td>' in html
    assert "style" not in html


def test_links_within_the_site_are_only_for_own_texts():
    assert "href" not in render_markdown("[x](/docs/)")
    assert 'href="/docs/"' in render_markdown("[x](/docs/)", allows_site_links=True)
    assert "href" not in render_markdown("[x](//evil.example)", allows_site_links=True)
    assert 'href="/%5Cevil.example"' in render_markdown("[x](/\\evil.example)", allows_site_links=True)
    assert [
        own
        for own in ("#a", "./a", "../a/", "a.html", "a/b#c")
        if "href" not in render_markdown(f"[x]({own})", allows_site_links=True)
    ] == []


def test_a_template_takes_what_is_rendered_as_html():
    for text in ("*a* <b>", "<b>" * MAX_CHARACTERS):
        assert Template("{{ html }}").render(Context({"html": render_markdown(text)})) == render_markdown(text)


def test_what_is_too_long_is_shown_as_typed():
    assert render_markdown("<b>" + "*a* " * MAX_CHARACTERS).startswith("<pre>&lt;b&gt;*a* ")


@pytest.mark.parametrize(
    "unit",
    [
        "[",
        "![",
        "*a ",
        "> ",
        "- ",
        "[a](",
        "_a*",
        "<a ",
        "&",
        "**a ",
        "|a",
        "`",
        "\\",
        "[a]: ",
        "$a ",
        "$$a",
        "\\(",
        "\\[",
    ],
)
def test_hostile_texts_take_little_time(unit):
    began = time.process_time()
    render_markdown((unit * MAX_CHARACTERS)[:MAX_CHARACTERS])
    render_output((unit * MAX_CHARACTERS)[:MAX_CHARACTERS])
    assert time.process_time() - began < 6


def test_what_may_be_wider_than_the_page_gets_a_box_that_takes_the_focus_where_it_is_asked_for():
    text = "| a |\n| --- |\n| `<table>` |\n\n```\n<pre></table>\n```\n\n<table><pre>"
    html = render_markdown(text, scrolls_wide_blocks=True)
    assert html.count('<div class="scrolls" tabindex="0"') == html.count("</table></div>") == html.count("<table>") == 1
    assert html.count("<pre") == html.count('<pre tabindex="0"') == 1 and "&lt;table&gt;" in html
    assert "tabindex" not in render_markdown(text) and "scrolls" not in render_markdown(text)


def test_an_output_keeps_its_lines_and_formulas_and_leads_nowhere():
    text = "# Title\n\nOne\ntwo \\(a_1 * b_1 * c\\), $x_1 * y_1$ and $5, $10.\n\n[our *best* model](https://example.org/?model=alpha) <https://a.org>"
    html = render_output(text)
    assert html.startswith(
        "<p><strong>Title</strong></p>\n<p>One<br>\ntwo \\(a_1 * b_1 * c\\), $x_1 * y_1$ and $5, $10.</p>"
    )
    assert "<p>our <em>best</em> model https://a.org</p>" in html and "alpha" not in html
    assert "model (https://example.org/?model=alpha) https://a.org</p>" in render_output(text, shows_addresses=True)
    assert "<br>\nb\\]" in render_output("\\[a\nb\\]")


def test_headings_begin_where_the_page_says_and_leave_out_no_level():
    html = render_markdown("### A\n\n# B\n\n#### C\n\n## D", top_heading=2)
    assert [line[:4] for line in html.splitlines()] == ["<h2>", "<h2>", "<h3>", "<h3>"]
