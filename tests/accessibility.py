"""What axe finds on a page, in one way for all tests."""

from pathlib import Path

import axe_playwright_python

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
# Only what is violated leaves the page: what passed is many times as much, and carrying it here took a third of the time.
_RUN = """async (only) => {
  const found = await axe.run(document, { ...only, preload: false, resultTypes: ["violations"], selectors: false });
  return found.violations.flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.html.slice(0, 160)}`));
}"""


def violations(page, *tags: str, rule: str = "", but: str = "") -> list[str]:
    """By the tags given, else by WCAG 2.2 AA; ``rule``: by that rule alone; ``but``: by all others."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)  # past the content policy, which lets no page load a script of this kind
    only = {"type": "rule", "values": [rule]} if rule else {"type": "tag", "values": [*(tags or TAGS)]}
    return page.evaluate(_RUN, {"runOnly": only, "rules": {but: {"enabled": False}} if but else {}})
