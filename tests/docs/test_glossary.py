"""The site uses the words of the glossary, and not the words that they replace."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT
from tests.docs.pages import PAGES
from tests.messages.collected import collected

GLOSSARY = ROOT / "templates/docs/reference/glossary.md"
ENTRY = re.compile(r"^\*\*([^*]+)\*\*", re.MULTILINE)
NOT = re.compile(r"^Not: (.*)$", re.MULTILINE)

# Places that may use a replaced word, with the reason: (file, word).
# A certificate of TLS is not a result of heval.
ALLOWED = {("templates/docs/how-to/put-a-proxy-in-front.md", "certificate")}


def replaced_words() -> list[str]:
    """Return the quoted words of every ``Not:`` line of the glossary."""
    text = GLOSSARY.read_text(encoding="utf-8")
    return [word for line in NOT.findall(text) for word in re.findall(r'"([^"\n]+)"', line)]


def search_pattern(words: list[str]) -> re.Pattern:
    alternatives = "|".join(r"\s+".join(map(re.escape, word.split())) for word in words)
    return re.compile(rf"(?<![\w-])(?:{alternatives})(?![\w-])", re.IGNORECASE)


def blank_out(pattern: str, text: str) -> str:
    """Replace each match by its line ends, so that line numbers stay correct."""
    return re.sub(pattern, lambda match: " " + "\n" * match[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL)


def documents() -> Iterator[tuple[Path, str]]:
    """Yield each page of the documentation without its code."""
    pages = sorted((ROOT / "templates/docs").rglob("*.md")) + sorted(ROOT.glob("*.md"))
    for path in pages:
        if path == GLOSSARY:
            continue
        text = blank_out(r"^```.*?^```$", path.read_text(encoding="utf-8"))
        yield path, blank_out(r"`[^`\n]*`", text)


def template_texts() -> Iterator[tuple[Path, str]]:
    """Yield each HTML template without comments, tags, expressions and scripts. Attributes that people read are kept."""
    for path in sorted((ROOT / "templates").rglob("*.html")):
        text = path.read_text(encoding="utf-8")
        for code in (r"\{#.*?#\}", r"<!--.*?-->", r"<(script|style)\b.*?</\1>", r"\{%.*?%\}", r"\{\{.*?\}\}"):
            text = blank_out(code, text)
        yield path, re.sub(r"<[^>]*>", _read_attributes, text)


def _read_attributes(tag: re.Match) -> str:
    shown = re.findall(r'\b(?:alt|title|placeholder|aria-label)="([^"]*)"', tag[0])
    return " ".join(["", *(text.replace("\n", " ") for text in shown), ""]) + "\n" * tag[0].count("\n")


def message_texts() -> Iterator[tuple[Path, int, str]]:
    for message in collected():
        yield ROOT / f"{message.module}.py", message.line, message.text


def occurrences() -> list[tuple[str, int, str]]:
    """Return (file, line, word) of every replaced word in the documentation, the templates and the messages."""
    pattern = search_pattern(replaced_words())
    matches = [
        (path, text.count("\n", 0, match.start()) + 1, match[0])
        for path, text in (*documents(), *template_texts())
        for match in pattern.finditer(text)
    ]
    matches += [(path, line, match[0]) for path, line, text in message_texts() for match in pattern.finditer(text)]
    return [
        (path.relative_to(ROOT).as_posix(), line, " ".join(word.split()).casefold()) for path, line, word in matches
    ]


@pytest.fixture(scope="module")
def found() -> list[tuple[str, int, str]]:
    return occurrences()


def test_no_text_uses_a_word_that_the_glossary_replaces(found):
    wrong = [f"{file}:{line}: {word}" for file, line, word in found if (file, word) not in ALLOWED]
    assert not wrong, "use the term of templates/docs/reference/glossary.md:\n" + "\n".join(wrong)


def test_every_exception_is_still_needed(found):
    used = {(file, word) for file, _, word in found}
    assert not ALLOWED - used, "remove these lines"


def test_the_search_finds_whole_words_outside_code():
    pattern = search_pattern(["foretold", "head to head"])
    assert pattern.findall("Foretold minutes, head\nto head; `foretold`, unforetold") == [
        "Foretold",
        "head\nto head",
        "foretold",
    ]
    assert not pattern.search(blank_out(r"^```.*?^```$", "```text\nforetold\n```"))


def test_a_term_is_defined_once_and_is_in_order_within_its_group():
    text = PAGES["reference/glossary"].text
    terms = ENTRY.findall(text)
    assert len(terms) == len(set(terms))
    for group in text.split("\n## ")[1:]:
        group_terms = [term.casefold() for term in ENTRY.findall(group)]
        assert group_terms == sorted(group_terms), group.splitlines()[0]


def test_no_preferred_term_is_replaced_by_another():
    words = [word.casefold() for word in replaced_words()]
    assert words
    assert len(words) == len(set(words))
    assert not set(words) & {term.casefold() for term in ENTRY.findall(PAGES["reference/glossary"].text)}
