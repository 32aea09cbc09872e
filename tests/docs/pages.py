"""The pages of the documentation, and the blocks of code in them."""

import re

from heval_site.views import docs

PAGES = docs.read_pages()
FENCE = re.compile(r"^```(\w+) *([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def words_of(*names: str) -> str:
    return "\n".join(PAGES[name].text for name in names)
