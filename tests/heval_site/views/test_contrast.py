"""Contrast by WCAG 2.2 of all colours of text on all grounds, and of the edges of controls, in both schemes."""

import re
from pathlib import Path

import pytest

STATIC = Path(__file__).resolve().parents[3] / "static"
TOKENS = (STATIC / "tokens.css").read_text() + (STATIC / "frame.css").read_text()
# Each of these texts may be on each of these grounds.
TEXTS = {"ink", "quiet", "accent", "accent-strong", "bad"}
GROUNDS = {"paper", "sheet", "wash", "bar", "bad-wash", "warn-wash", "good-wash"}
# What is filled with these has words in --on-accent, if any.
FILLS = {"accent", "accent-strong", "bad", "quiet", "ink"}
EDGES = {"edge", "accent", "bad"}
# A track of a progress bar, and the shade of what scrolls: no text is on them, and no control ends there.
WITHOUT_TEXT = {"line", "edge", "shade"}
TEXT, EDGE = 4.5, 3.0

VARIABLE = re.compile(r"var\(--([\w-]+)\)")
# The thumb of a slider is filled with the accent; the ring around it only parts it from the track.
CONTROL = re.compile(r"(?<![\w-])(input|textarea|select|button|\.button|\.second|\.go-on)(?![\w-])")
RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")


def rules(css: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """The selector and the declarations of each rule, also of those inside a condition."""
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.S)
    return [
        (selector.strip(), [(name, value) for name, value in re.findall(r"([\w-]+)\s*:\s*([^;]+)", body)])
        for selector, body in RULE.findall(css)
    ]


def schemes(css: str) -> dict[str, dict[str, str]]:
    """The colours of each scheme by name. Dark is written twice: for the system's choice and for the researcher's."""
    light, *darks = [
        {name.removeprefix("--"): value for name, value in body if re.fullmatch(r"#\w+", value)}
        for _, body in rules(css)
        if ("--ink" in dict(body))
    ]
    return {"light": light} | {f"dark {n}": light | dark for n, dark in enumerate(darks, 1)}


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:4])
    parts = [int(digits[n : n + 2], 16) / 255 for n in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def faults(css: str, paper: str = "") -> list[str]:
    found = []
    for scheme, colours in schemes(css).items():
        if paper and scheme == "light":
            colours = colours | {"paper": paper}
        pairs = [(text, ground, TEXT) for text in TEXTS for ground in GROUNDS]
        # The bar of a preview has the ink as its ground, in both schemes.
        pairs += [("on-accent", fill, TEXT) for fill in FILLS] + [("paper", "ink", TEXT)]
        pairs += [(edge, ground, EDGE) for edge in EDGES for ground in GROUNDS]
        found += [
            f"{one} on {ground}, {scheme}: {ratio:.2f}"
            for one, ground, least in pairs
            if (ratio := contrast(colours[one], colours[ground])) < least
        ]
    return sorted(found)


def test_the_formula_is_that_of_wcag():
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)  # the known grey that just fails


def test_all_colours_have_enough_contrast():
    assert list(schemes(TOKENS)) == ["light", "dark 1", "dark 2"]
    assert not faults(TOKENS)
    (paper,) = set(re.findall(r"--paper: (#\w+)", (STATIC / "frame.css").read_text())) - {
        schemes(TOKENS)["dark 1"]["paper"]
    }
    assert not faults(TOKENS, paper), "on the paper of researchers' pages"


def test_dark_is_the_same_for_the_system_and_for_a_choice():
    assert schemes(TOKENS)["dark 1"] == schemes(TOKENS)["dark 2"]


@pytest.mark.parametrize(
    ("token", "planted", "found"),
    [
        ("--quiet: #545c64", "--quiet: #7c858d", "quiet on paper, light"),
        ("--edge: #737b83", "--edge: #a3abb3", "edge on sheet, light"),
        ("--accent: #0b5c8a", "--accent: #4a9ccc", "on-accent on accent, light"),
        ("--bad: #ff9c90", "--bad: #a3271b", "bad on sheet, dark 1"),
        ("--warn-wash: #3a3118", "--warn-wash: #8a7740", "quiet on warn-wash, dark 2"),
    ],
)
def test_a_colour_that_is_too_near_its_ground_is_found(token, planted, found):
    assert token in TOKENS
    assert any(one.startswith(found) for one in faults(TOKENS.replace(token, planted)))


def used() -> dict[str, set[str]]:
    """The tokens that style sheets use for texts, for grounds and for edges of controls, through the admin's names for them."""
    sheets = [rules(path.read_text()) for path in sorted(STATIC.glob("*.css"))]
    names: dict[str, str] = {}
    for sheet in sheets:
        for _, body in sheet:
            names |= {
                name.removeprefix("--"): match[1]
                for name, value in body
                if name.startswith("--") and (match := VARIABLE.fullmatch(value.strip()))
            }
    found: dict[str, set[str]] = {"text": set(), "ground": set(), "edge": set(), "literal": set()}
    for sheet in sheets:
        for selector, body in sheet:
            for name, value in body:
                tokens = {names.get(token, token) for token in VARIABLE.findall(value)}
                if name == "color":
                    found["text"] |= tokens
                    found["literal"] |= {f"{selector}: {value}"} if re.search(r"#[0-9a-f]{3}", value) else set()
                elif name in ("background", "background-color"):
                    found["ground"] |= tokens
                elif (
                    re.fullmatch(r"border(-color|-\w+-color)?", name)
                    and CONTROL.search(selector)
                    and "thumb" not in selector
                ):
                    found["edge"] |= tokens
    return found


def test_every_colour_that_style_sheets_use_is_among_those_compared():
    found = used()
    assert found["text"] <= TEXTS | {"on-accent", "paper"}
    assert found["ground"] <= GROUNDS | FILLS | WITHOUT_TEXT
    assert found["edge"] <= EDGES
    assert not found["literal"], "take a colour of tokens.css"
    # None is compared in vain. Django's own style has the strong accent for links under the pointer.
    assert found["text"] >= TEXTS - {"accent-strong"} and found["edge"] >= EDGES
