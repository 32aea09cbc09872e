"""A report without what says who made it: names, accounts, institution, contact, host, and the titles of the study.

What a researcher typed freely about files and amendments is left out. In all other texts each known name is replaced.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models import Q

from studies.access import members_of
from studies.models import Study

REMOVED = "[removed]"
# What the page reads as names of its own. The name of anything but a table or figure is a text.
STRUCTURE = frozenset({"name", "kind", "key", "place", "paper", "role", "severity", "code", "origins", "state", "url"})
_SEPARATORS = re.compile(r"[,;<>()\n]|(?:\s|^)\S+:\s")
_EMAIL = re.compile(r"[^\s<>,;:()@]+@([^\s<>,;:()@]+)")
FACTS = ("institution", "responsible", "contact", "ethics_contact", "storage")


def identifying_words(study: Study) -> re.Pattern[str]:
    """Return a pattern of the words that say who made a study: members and all who acted on it, its facts, and the site."""
    words = {study.title, study.public_title, study.approval_number, urlsplit(settings.SITE_URL).hostname or ""}
    facts = [study.institution, study.contact]
    accounts = get_user_model().objects.select_related("study_facts").order_by("pk")
    acted = study.audit_events.exclude(by=None).values("by")
    for person in accounts.filter(Q(pk__in=members_of(study).values("user")) | Q(pk__in=acted)):
        words |= {person.get_username(), person.first_name, person.last_name, person.get_full_name()}
        facts.append(person.email)
        if hasattr(person, "study_facts"):
            facts += [getattr(person.study_facts, name) for name in FACTS]
    for text in facts:
        words |= {text, *_SEPARATORS.split(text), *_EMAIL.findall(text), *(one[0] for one in _EMAIL.finditer(text))}
    kept = {" ".join(word.split()) for word in words}
    longest_first = sorted((word for word in kept if len(word) > 1), key=len, reverse=True)
    return re.compile("|".join(map(_whole, longest_first)), re.IGNORECASE)


def _whole(word: str) -> str:
    """Return a pattern of a whole word. Scripts without upper and lower case may write words without spaces between them."""
    before, after = (
        edge if one.isascii() or one.upper() != one.lower() else ""
        for one, edge in ((word[0], r"(?<![^\W_])"), (word[-1], r"(?![^\W_])"))
    )
    return before + r"\s+".join(map(re.escape, word.split())) + after


def without_words(value: Any, words: re.Pattern[str]) -> Any:
    """Return a value of JSON with each of these words in its texts replaced."""
    if isinstance(value, str):
        return words.sub(REMOVED, value)
    if isinstance(value, Mapping):
        is_named = "rows" in value
        return {
            key: one if key in STRUCTURE and (key != "name" or is_named) else without_words(one, words)
            for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [without_words(one, words) for one in value]
    return value


def anonymous_result(stored: Mapping[str, Any], heading: str, words: re.Pattern[str]) -> dict[str, Any]:
    """Return what an anonymous page shows of a stored result: no estimates that no table prints, and no figure that names somebody."""
    shown = without_words({name: part for name, part in stored.items() if name != "blocks"}, words)
    shown["study"] |= {"title": heading}
    shown["figures"] = list(_figures_without(stored["figures"], words))
    shown["data"]["sources"] = [source | {"filename": ""} for source in shown["data"].get("sources", ())]
    shown["design"]["versions"] = [version | {"reason": ""} for version in shown["design"]["versions"]]
    return shown


def _figures_without(figures: list[dict[str, Any]], words: re.Pattern[str]) -> Iterator[dict[str, Any]]:
    """Yield the figures whose texts have none of the words. The job drew them, and a page draws nothing again."""
    yield from (figure for figure in figures if without_words(figure, words) == figure)
