"""The links of the documentation lead somewhere."""

import re

import pytest

from heval_site.views import docs
from tests import ROOT
from tests.docs.pages import PAGES

# Files that the examples tell a reader to write, or that only a server or a user has.
NOT_OURS = {
    "codebook.md",  # of the REST interface
    "studies/protocols/best.py", "analysis/protocols/best.py", "templates/protocols/best.html", "tests/studies/test_best.py", "protocols/best.html",
    "annotators/recruitment/channels/library.py", "tests/annotators/test_library.py",
}  # fmt: skip


@pytest.fixture(scope="module")
def anchors() -> dict[str, set[str]]:
    """The places of each page that can be linked to."""
    return {name: set(re.findall(r'id="([^"]+)"', docs.render_html(page))) for name, page in PAGES.items()}


@pytest.mark.parametrize("name", PAGES)
def test_links_between_pages_resolve(name, anchors):
    page = PAGES[name]
    for link, anchor in docs.LINK.findall(page.text):
        wanted = docs.resolve_link_to_page_name(name, link)
        assert wanted in PAGES, f"{name} links to {link}"
        assert not anchor or anchor[1:] in anchors[wanted], f"{name} links to {link}{anchor}"
    own = re.findall(r"\]\((#[\w-]+)\)", page.text)
    assert not [anchor for anchor in own if anchor[1:] not in anchors[name]]


def test_the_index_leads_to_every_page():
    """The newer decisions are pages of their own, and the page of decisions lists them."""
    listed = set(docs.linked_page_names(PAGES["index"])) - {"index"}
    decisions = {name for name in PAGES if name.startswith("explanation/decisions/")}
    assert set(PAGES) - {"index"} == listed | decisions and not listed & decisions
    assert decisions <= set(docs.linked_page_names(PAGES["explanation/decisions"]))


FILE = re.compile(
    r"`((?:studies|annotators|analysis|heval_site|templates|static|tests|\.ci)/[\w./<>-]+|[\w-]+\.(?:md|toml|yaml|lock)|Makefile|Dockerfile)`"
)


@pytest.mark.parametrize("name", PAGES)
def test_no_page_mentions_a_file_that_is_not_there(name):
    for path in FILE.findall(PAGES[name].text):
        if path in NOT_OURS or "<" in path:
            continue
        where = [ROOT / path, docs.DOCS_FOLDER / path, ROOT / "templates" / path]
        assert any(one.exists() for one in where), f"{name} mentions {path}"


@pytest.mark.parametrize("name", PAGES)
def test_every_page_begins_with_its_title_and_is_short_enough_to_be_rendered(name):
    text = PAGES[name].text
    assert text.startswith("# ")
    assert len(text) < 50_000, "longer texts are shown as typed"
    assert not re.search(r"/home/|/work/|/root/|TODO|lorem", text)
