"""Who made a judge's model and who made a judged system: a judge may favour its own family."""

import re
from collections.abc import Iterable, Mapping

# A system's name has words of models, numbers and sizes. These words name no family.
_WORDS = re.compile(r"[a-z]+")
MIN_LENGTH = 3


def words_of(text: str) -> set[str]:
    """Return the words of a name: runs of letters in lower case with at least three letters."""
    return {word for word in _WORDS.findall(text.casefold()) if len(word) >= MIN_LENGTH}


def families_by_name(judges: Mapping[str, str], systems: Iterable[str]) -> dict[str, str]:
    """Return the families of judges and systems, by name.

    ``judges``: the family that the upload declared, by the judge's name. A system belongs to a family if its name has all words of the family's name:
    the family "llama" has the system "llama-2-7b". A system with the words of two families belongs to the longer name.
    """
    declared = {judge: family.strip().casefold() for judge, family in judges.items() if words_of(family)}
    found = dict(declared)
    by_length = sorted(set(declared.values()), key=lambda family: (-len(words_of(family)), family))
    for system in systems:
        own = next((family for family in by_length if words_of(family) <= words_of(system)), None)
        if own is not None:
            found[system] = own
    return found
