"""The links of the documentation lead somewhere."""

import re

import pytest

from heval_site.views import docs
from tests import ROOT
from tests.docs.pages import DECISIONS, PAGES

# Files that the examples tell a reader to write, or that only a server or a user has.
NOT_OURS = {
    "codebook.md",  # of the REST interface
    "studies/protocols/best.py", "analysis/protocols/best.py", "templates/protocols/best.html", "tests/studies/test_best.py", "protocols/best.html",
    "annotators/recruitment/channels/library.py", "tests/annotators/test_library.py",
}  # fmt: skip


# Links of a served page lead to served pages. Links of a decision may also lead to another decision.
TEXTS = PAGES | DECISIONS


@pytest.fixture(scope="module")
def anchors() -> dict[str, set[str]]:
    """Return the places of each text that can be linked to."""
    return {name: set(re.findall(r'id="([^"]+)"', docs.render_html(page))) for name, page in TEXTS.items()}


@pytest.mark.parametrize("name", TEXTS)
def test_links_between_pages_resolve(name, anchors):
    page = TEXTS[name]
    targets = PAGES if name in PAGES else TEXTS
    for link, anchor in docs.LINK.findall(page.text):
        wanted = docs.resolve_link_to_page_name(name, link)
        assert wanted in targets, f"{name} links to {link}"
        assert not anchor or anchor[1:] in anchors[wanted], f"{name} links to {link}{anchor}"
    own = re.findall(r"\]\((#[\w-]+)\)", page.text)
    assert not [anchor for anchor in own if anchor[1:] not in anchors[name]]


def test_the_index_leads_to_every_page():
    assert set(PAGES) - {"index"} == set(docs.linked_page_names(PAGES["index"])) - {"index"}


def test_no_served_page_names_the_folder_of_decisions():
    assert not [name for name, page in PAGES.items() if "decisions/" in page.text]


def test_the_list_of_decisions_has_each_decision_once_with_its_title():
    listed = re.findall(r"^- \[(.+)\]\(([\w-]+)\.md\)$", DECISIONS["decisions/README"].text, re.MULTILINE)
    titles = {name.removeprefix("decisions/"): page.title for name, page in DECISIONS.items()}
    titles.pop("README")
    assert sorted((slug, title) for title, slug in listed) == sorted(titles.items())


@pytest.mark.parametrize("name", sorted(set(DECISIONS) - {"decisions/README"}))
def test_a_decision_is_short_and_says_when_it_was_made(name):
    lines = DECISIONS[name].text.splitlines()
    assert re.fullmatch(r"Decided on 20\d\d-\d\d-\d\d\.", lines[2])
    assert len(lines) <= 45


FILE = re.compile(
    r"`((?:studies|annotators|analysis|heval_site|templates|static|tests|\.ci)/[\w./<>-]+|[\w-]+\.(?:md|toml|yaml|lock)|Makefile|Dockerfile)`"
)


@pytest.mark.parametrize("name", TEXTS)
def test_no_page_mentions_a_file_that_is_not_there(name):
    for path in FILE.findall(TEXTS[name].text):
        if path in NOT_OURS or "<" in path:
            continue
        where = [ROOT / path, docs.DOCS_FOLDER / path, ROOT / "templates" / path]
        assert any(one.exists() for one in where), f"{name} mentions {path}"


@pytest.mark.parametrize("name", TEXTS)
def test_every_page_begins_with_its_title_and_is_short_enough_to_be_rendered(name):
    text = TEXTS[name].text
    assert text.startswith("# ")
    assert len(text) < 50_000, "longer texts are shown as typed"
    assert not re.search(r"/home/|/work/|/root/|TODO|lorem", text)
