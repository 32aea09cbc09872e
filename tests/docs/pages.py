"""The pages of the documentation, and the blocks of code in them."""

import re

from heval_site.views import docs

PAGES = docs.read_pages()
DECISIONS_FOLDER = docs.DOCS_FOLDER / "decisions"
FENCE = re.compile(r"^ *```(\w+) *([^\n]*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def read_decisions() -> dict[str, docs.Page]:
    """Return the files about decisions, which are not served, by the names that links resolve to."""
    texts = {f"decisions/{path.stem}": path.read_text(encoding="utf-8") for path in DECISIONS_FOLDER.glob("*.md")}
    return {name: docs.Page(name, text.partition("\n")[0].removeprefix("# "), text) for name, text in texts.items()}


DECISIONS = read_decisions()


def words_of(*names: str) -> str:
    return "\n".join(PAGES[name].text for name in names)
