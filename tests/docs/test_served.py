"""The documentation is served without a login, and it can be read by all."""

import re
from itertools import pairwise

import pytest
from django.test import override_settings
from django.urls import get_resolver

from heval_site.views import docs
from tests.accessibility import TAGS, violations
from tests.docs.pages import FENCE, PAGES

ELEMENT = re.compile(r"<(\w+)([^>]*)>")
NAMES = re.compile(r"""(?:class|role|scope)="[^"]*"|\b(?:id|tabindex|alt|aria-\w+)(?==)""")


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_served_without_a_login(name, client):
    response = client.get(docs.page_url(name))
    html = response.content.decode()
    assert response.status_code == 200
    assert f"<title>{PAGES[name].title if name != 'index' else 'heval documentation'}" in html
    assert not response.cookies
    assert ".md" not in re.findall(r'href="([^"]*)"', html)
    assert html.count("<h1") == 1
    for code in FENCE.findall(PAGES[name].text):
        assert code[2].strip()


def test_serving_asks_the_database_nothing(client, django_assert_num_queries, db):
    with django_assert_num_queries(0):
        assert client.get("/docs/").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "nothing/",
        "_page/",
        "decisions/",
        "decisions/README/",
        "decisions/jobs-are-rows/",
        "../settings/",
        "%2e%2e/%2e%2e/heval_site/settings.py/",
        "how-to//deploy/",
        "tutorial/first-study.md/",
        "%00/",
    ],
)
def test_what_is_no_page_is_404(path, client):
    assert client.get(f"/docs/{path}").status_code == 404


def test_pages_are_only_looked_at(client):
    assert client.post("/docs/").status_code == 405
    assert client.head("/docs/").status_code == 200


@override_settings(DEBUG=True)
def test_a_changed_file_is_seen_while_debugging(monkeypatch, tmp_path, client):
    (tmp_path / "index.md").write_text("# Here\n\nOne.\n", encoding="utf-8")
    monkeypatch.setattr(docs, "read_pages", lambda: dict(docs_pages(tmp_path)))
    assert "One." in client.get("/docs/").content.decode()
    (tmp_path / "index.md").write_text("# Here\n\nTwo.\n", encoding="utf-8")
    assert "Two." in client.get("/docs/").content.decode()


read_pages = docs.read_pages


def docs_pages(folder):
    return read_pages(folder)


def test_links_headings_and_wide_parts_are_made_usable(tmp_path):
    (tmp_path / "index.md").write_text("# A\n\n[b](how-to/b.md#some-part)\n", encoding="utf-8")
    (tmp_path / "how-to").mkdir()
    (tmp_path / "how-to" / "b.md").write_text(
        "# B\n\n## Some part\n\n| a |\n|---|\n| b |\n\n## Some part\n\n<b>raw</b>\n", encoding="utf-8"
    )
    with (tmp_path / "how-to" / "b.md").open("a") as file:
        file.write('\n![Dots & "lines"](../../../static/docs/report.png)\n\n![elsewhere](https://example.org/x.png)\n')
    pages = read_pages(tmp_path)
    assert list(pages) == ["index", "how-to/b"]
    assert 'href="/docs/how-to/b/#some-part"' in docs.render_html(pages["index"])
    html = docs.render_html(pages["how-to/b"])
    assert 'id="some-part"' in html and 'id="some-part-2"' in html
    assert 'class="scrolled" role="region" tabindex="0"' in html
    assert "&lt;b&gt;" in html
    assert 'src="/static/docs/report.png" alt="Dots &amp; &quot;lines&quot;"' in html and html.count("<img") == 1


def test_documentation_is_reached_by_names_alone():
    routes = [one for one in get_resolver().url_patterns if str(one.pattern).startswith("docs/")]
    assert {one.name for one in routes} == {"docs", "docs-search", "docs-skill", "docs-page"}


def kinds_of_parts(name: str) -> set[str]:
    """The elements of a page with their classes and roles, and which heading follows which: what axe looks at."""
    html = str(docs.render_html(PAGES[name]))
    parts = {f"{tag} {' '.join(sorted(NAMES.findall(rest)))}" for tag, rest in ELEMENT.findall(html)}
    headings = re.findall(r"<(h\d)", html)
    return parts | {f"{one} {next_one}" for one, next_one in pairwise(headings)}


def pages_with_every_kind_of_part() -> list[str]:
    chosen, seen = [], set()
    for name in sorted(PAGES, key=lambda name: -len(kinds_of_parts(name))):
        if not kinds_of_parts(name) <= seen:
            chosen.append(name)
            seen |= kinds_of_parts(name)
    return chosen


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "names", [pages_with_every_kind_of_part, pytest.param(lambda: list(PAGES), marks=pytest.mark.slow)]
)
def test_no_page_has_an_accessibility_violation_or_scrolls_sideways(browser, live_server, names):
    colourful = {"index", "reference/environment", "how-to/write-a-protocol"}
    asked = {*names(), *colourful}
    wrong = []
    context = browser.new_context(viewport={"width": 375, "height": 740})
    page = context.new_page()
    for name in PAGES:
        page.set_viewport_size({"width": 375, "height": 740})
        page.emulate_media(color_scheme="light")
        page.goto(live_server.url + docs.page_url(name))
        if (over := page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")) > 0:
            wrong.append(f"{name} is {over} px too wide")
        if name not in asked:
            continue
        # Colours are the costly part, and three pages have them all.
        but = "" if name in colourful else "color-contrast"
        wrong += [f"{name} {found}" for found in violations(page, *TAGS, "best-practice", but=but)]
        if name in colourful:
            page.set_viewport_size({"width": 1280, "height": 800})
            page.emulate_media(color_scheme="dark")
            wrong += [f"{name} in the dark {found}" for found in violations(page, rule="color-contrast")]
    context.close()
    assert not wrong


def test_each_part_of_each_page_is_found_by_its_heading_at_its_anchor(client):
    n = 0
    for page in docs.read_pages().values():
        html = str(docs.render_html(page))
        for part in docs.parts_of(page):
            assert not part.anchor or f'id="{part.anchor}"' in html, (page.name, part.heading)
            n += 1
    assert n > 300
    found = docs.search(docs._all_parts(), "withdraw erase")
    assert found and all(
        "withdraw" in f"{one.part.page.title} {one.part.heading} {one.part.text}".casefold() for one in found
    )


def test_the_documentation_is_searched_without_a_script(client):
    asked = client.get("/docs/search/", {"q": "Prolific <b>codes"})
    assert asked.status_code == 200 and "No part of the documentation" in asked.content.decode()
    assert "&lt;b&gt;codes" in asked.content.decode() and "<b>codes" not in asked.content.decode()
    page = client.get("/docs/search/", {"q": "prolific completion codes"}).content.decode()
    assert '<a href="/docs/how-to/use-prolific/' in page
    assert "Enter words" in client.get("/docs/search/").content.decode()
    assert client.get("/docs/search/", {"q": "x\0y " + "z" * 500}).status_code == 200
    assert 'role="search"' in client.get("/docs/").content.decode() and "<script" not in page


def test_headings_come_before_texts_and_an_excerpt_has_the_words():
    page = docs.Page("how-to/a", "Alpha", "# Alpha\n\nNothing.\n\n## Beta\n\nOne `gamma` here.\n\n## Gamma\n\nText.\n")
    parts = docs.parts_of(page)
    assert [(part.heading, part.anchor) for part in parts] == [("Alpha", ""), ("Beta", "beta"), ("Gamma", "gamma")]
    assert [one.part.heading for one in docs.search(parts, "gamma")] == ["Gamma", "Beta"]
    assert docs.search(parts, "gamma delta") == [] and docs.search(parts, " ") == []
    assert docs.search(parts, "gamma")[1].excerpt == "One gamma here."
    long = docs.parts_of(docs.Page("x", "X", "# X\n\n" + "word " * 200 + "needle " + "word " * 200))
    (found,) = docs.search(long, "NEEDLE")
    assert "needle" in found.excerpt and len(found.excerpt) < 200 and found.excerpt.startswith("… ")
