"""HEDS 3.0 as the JSON file that its official form reads: an object for each element, by the element's id.

A value has the key "", or that of its criterion. An element that is to be ticked is true. The form adds the words of its options
itself when it writes the file again.
"""

from typing import Any

from .facts import Fact, Facts
from .questions import CRITERION, HEDS

LANGUAGES = ("input_languages", "output_languages")
NO_LANGUAGE, OTHER_LANGUAGE = 1, 185


def language_options(text: str) -> tuple[tuple[int, ...], str]:
    """Return the options of language codes, and the words for those that HEDS does not list.

    >>> language_options("de, en-GB, gsw")
    ((42, 56, 185), 'gsw')
    """
    known = HEDS["languages"].split()
    codes = [code.strip() for code in text.split(",") if code.strip()]
    options = {known.index(base) + 2 for code in codes if (base := code.partition("-")[0].lower()) in known}
    others = [code for code in codes if code.partition("-")[0].lower() not in known]
    return tuple(sorted(options | ({OTHER_LANGUAGE} if others else set()))), ", ".join(others)


def heds_json(facts: Facts) -> dict[str, Any]:
    elements: dict[str, Any] = {}
    for number, path, kind, n_options, key, _ in HEDS["questions"]:
        if path == CRITERION:
            control = {name: name == facts.criteria[0] for name in facts.criteria}
            elements[f"heds-{path}"] = {"data": {}, "control": control, "text": {}, "number": None}
            continue
        is_many = path.startswith(CRITERION)
        found = {
            name: facts.by_key[f"{key}:{name}" if name else key] for name in (facts.criteria if is_many else ("",))
        }
        if key in LANGUAGES:
            options, others = language_options(found[""].text)
            found[""] = Fact(others, found[""].source, options)
        if kind not in ("radio", "checkbox"):
            elements[f"heds-{path}"] = _element(number, {name: fact.text for name, fact in found.items()})
            continue
        for option in range(1, n_options + 1):
            chosen = {name: option in fact.options[: 1 if kind == "radio" else None] for name, fact in found.items()}
            elements[f"heds-{path}-{option}"] = _element(number, chosen) | {"text": {}}
        elements[f"heds-{path}-other_text"] = _element(None, {name: fact.text for name, fact in found.items()})
    return elements


def _element(number: str | None, data: dict[str, Any]) -> dict[str, Any]:
    return {"data": data, "control": {}, "number": number}
