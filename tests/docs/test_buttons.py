"""Buttons and fields are called in how-to pages as they are on the pages of the site."""

import ast
import re

import pytest

from studies.language.catalogues import message_ids, message_template
from tests import ROOT
from tests.docs.pages import PAGES
from tests.rules import parsed, walk

# Words with stress in how-to pages that name nothing on a page of ours: what is stressed, and what others' pages say.
STRESSED = {
    "not coded", "how it stops", "help", "budget is exhausted", "superuser", "staff status", "the one person of that country",
    "they came by an invitation, prolific or an external question", "they came by another panel", "they came by an open link", "a draft is frozen by its first answers", "mid-rank", "explanation",
    "exclusion group", "a contact and a consent text", "partial completes", "external question",
    "pool", "repeats", "it is never sent an answer", "download csv", "variant", "currency", "url parameters",
    "questions with a known answer were not answered as expected",
}  # fmt: skip
EMPHASIS = re.compile(r"\*\*(?=\S)(.+?)\*\*|(?<!\*)\*(?=[^\s*])([^*]+?)\*(?!\*)", re.DOTALL)


def as_read(words: str) -> str:
    for typed, plain in (("’", "'"), ("“", '"'), ("”", '"'), ("&amp;", "&")):
        words = words.replace(typed, plain)
    return re.sub(r"\s+", " ", words).strip(" .:…,;→").casefold()


@pytest.fixture(scope="module")
def said() -> set[str]:
    """Every piece of words that a template or a string of the code holds; no bare names of columns."""
    found: set[str] = set()
    for path in (ROOT / "templates").rglob("*.html"):
        found |= {
            as_read(piece) for piece in re.split(r"<[^>]*>|\{%.*?%\}|\{\{.*?\}\}|\n", path.read_text(encoding="utf-8"))
        }
    for message in message_template():
        found |= {as_read(piece) for one in message_ids(message) for piece in re.split(r"<[^>]*>", one)}
    for path in (ROOT / "static").glob("*.js"):
        found |= {as_read(piece) for piece in re.findall(r'"([^"\n]+)"', path.read_text(encoding="utf-8"))}
    for path in (
        path for name in ("studies", "annotators", "analysis", "boards") for path in (ROOT / name).rglob("*.py")
    ):
        for node in walk(parsed(path)):
            is_label = isinstance(node, ast.keyword) and node.arg in ("label", "verbose_name")
            node = node.value if is_label else node
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and (is_label or not re.fullmatch(r"[a-z_0-9.]*", node.value))
            ):
                found.add(as_read(node.value))
    return found - {""}


def stressed_in(text: str) -> set[str]:
    """Words with stress. Numbers, code and … stand for anything: what is between them is found by itself."""
    text = re.sub(r"`[^`\n]*`", "…", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))
    return {
        as_read(piece)
        for bold, slanted in EMPHASIS.findall(text)
        for piece in re.split(r"…|\d+(?: of)?", bold or slanted)
    } - {""}


def unsaid(text: str, said: set[str]) -> list[str]:
    """Words with stress that begin nothing which the site says."""
    return sorted(
        piece
        for piece in stressed_in(text) - STRESSED
        if not any(one == piece or (one.startswith(piece) and not one[len(piece)].isalnum()) for one in said)
    )


@pytest.mark.parametrize(
    "name", [name for name in PAGES if name.startswith("how-to/") and not name.startswith("how-to/write-")]
)
def test_buttons_and_fields_are_called_as_they_are_on_the_pages(name, said):
    """How-to pages give stress to what is pressed and filled in. A button that is renamed here is renamed there."""
    assert not unsaid(PAGES[name].text, said), (
        "call it as the page does, or add it to STRESSED where it names nothing of ours"
    )


def test_the_search_for_what_no_page_says_finds_it(said):
    assert unsaid("Set *Opens at*, press **Make\na link** and **Make a lin**; *Retention* is kept.", said) == [
        "make a lin",
        "opens at",
        "retention",
    ]
    assert STRESSED & {word for name in PAGES for word in stressed_in(PAGES[name].text)} == STRESSED
