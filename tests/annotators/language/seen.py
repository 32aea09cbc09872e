"""What a person sees and hears of pages: their texts, the names of their elements, and the texts of their scripts."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

from babel.messages import Catalog

from studies.language.catalogues import PLACEHOLDER, TAG, message_ids
from tests.pseudo_language import GREEK, in_pseudo

KEPT = re.compile(f"{PLACEHOLDER.pattern}|{TAG.pattern}")
LATIN_WORD = re.compile(r"[A-Za-zÀ-ÖØ-öø-ÿ]{2,}")
SPOKEN = ("aria-label", "aria-description", "aria-roledescription", "aria-valuetext", "alt", "title", "placeholder")
VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"})
# What is the same in every language:
ALLOWED = re.compile(
    r"\b(?:UTC|USD"  # a time and amounts of money are followed by codes
    r"|Prolific|SONA|Connect|Amazon Mechanical Turk"  # names of panels
    r"|PROLIFIC_PID|STUDY_ID|SESSION_ID|participantId|assignmentId|projectId|survey_code"  # what a link has for a panel
    r"|unseen\.\S+)\b"  # the name of a field that no page sends
)
# Elements with codes and addresses, which people copy.
COPIED = frozenset({"code", "code-like"})


class SeenTexts(HTMLParser):
    """The texts of a page, in the order of its HTML."""

    def __init__(self, html: str):
        super().__init__()
        self.texts: list[str] = []
        self._open: list[tuple[str, bool]] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        found = {name: value or "" for name, value in attrs}
        names = set(found.get("class", "").split())
        is_left_out = bool(self._open and self._open[-1][1]) or bool(names & COPIED)
        is_left_out |= tag == "style" or (tag == "script" and found.get("type") != "application/json")
        if tag not in VOID:
            self._open.append((tag, is_left_out))
        if is_left_out:
            return
        self.texts += [found[name] for name in SPOKEN if found.get(name)]
        if tag == "input" and found.get("type") in ("submit", "button", "reset"):
            self.texts.append(found.get("value", ""))
        for name, value in found.items():
            if name.startswith("data-"):
                self.texts += texts_of_data(value)

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if data.strip() and not (self._open and self._open[-1][1]):
            self.texts += texts_of_data(data) if self._open and self._open[-1][0] == "script" else [data]


def texts_of_data(value: str) -> list[str]:
    """Return the texts in the value of a data attribute: of its JSON, or itself if it is more than a name or a number."""
    try:
        return list(_strings(json.loads(value)))
    except ValueError:
        return [] if re.fullmatch(r"[\w./?=&%:-]*", value, re.ASCII) else [value]


def _strings(value) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _strings(one)


def latin_words(text: str) -> list[str]:
    """Return the words in Latin letters of a text, without the names that a page or a script fills in."""
    without = ALLOWED.sub(" ", re.sub(r"%\(\w+\)s|\{\w+\}", " ", text))
    return LATIN_WORD.findall(without)


@dataclass
class Seen:
    """All pages of a walk. ``faults``: their Latin words, by walk and address. ``lines``: their HTML, each line once."""

    faults: dict[str, list[str]] = field(default_factory=dict)
    lines: dict[str, None] = field(default_factory=dict)
    pages: int = 0

    def add(self, where: str, html: str) -> None:
        self.pages += 1
        texts = SeenTexts(html).texts
        self.lines |= dict.fromkeys(line.strip() for text in texts for line in [" ".join(text.split())])
        self.lines |= dict.fromkeys(" ".join(line.split()) for line in _unescaped_lines(html))
        for text in texts:
            if words := latin_words(text):
                self.faults.setdefault(where, []).append(f"{' '.join(words)!r} in {' '.join(text.split())[:90]!r}")

    def unseen(self, messages: Catalog) -> list[str]:
        """Return the messages that no page showed, in Greek letters, in any of their plural forms."""
        lines = list(self.lines)
        return [
            message_ids(message)[0]
            for message in messages
            if message.id
            and not any(all(_is_shown(part, lines) for part in _parts(form)) for form in message_ids(message))
        ]


def _unescaped_lines(html: str) -> list[str]:
    from html import unescape

    return unescape(html).splitlines()


def _parts(message: str) -> list[str]:
    """Return the texts of a message in Markdown, which a page shows as paragraphs and lists, or the message itself."""
    return [part for part in re.split(r"\n[-\n ]*|\*\*", message) if part] if "\n" in message else [message]


def _is_shown(message: str, lines: list[str]) -> bool:
    """Return whether a message is there as a whole, and not only as words of a longer one."""
    literals, gaps = KEPT.split(" ".join(message.split())), KEPT.findall(message)
    pieces = [in_pseudo(literal) for literal in literals]
    if not any(letter in GREEK for letter in "".join(pieces)):
        return True  # nothing but placeholders and signs
    between = [re.escape(gap) if gap.startswith("<") and "%" not in gap else r".{0,400}?" for gap in gaps]
    parts = [part for pair in zip(map(re.escape, pieces), [*between, ""], strict=True) for part in pair if part]
    # What a page fills in at the beginning or the end can be anything.
    while parts[0].startswith("."):
        parts.pop(0)
    while parts[-1].startswith("."):
        parts.pop()
    # A message with a placeholder may itself be put into another message.
    before = rf"(?<![{GREEK}])" + rf"(?<![{GREEK}] )" * (not gaps) if pieces[0] else ""
    after = rf"(?! ?[{GREEK}])" if pieces[-1][-1:] in set(GREEK) else ""
    pattern, longest = re.compile(before + "".join(parts) + after), max(pieces, key=len)
    return any(longest in line and pattern.search(line) for line in lines)
