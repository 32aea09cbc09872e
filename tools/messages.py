"""Collect the messages of annotators' pages, and bring the catalogues up to date: ``python -m tools.messages``.

The messages are in the templates of ``annotate/`` and ``protocols/``, and in Python, marked by ``gettext`` and its like
from ``studies.language``. A translation whose message has changed is kept, marked as fuzzy and not used.
"""

import re
from io import BytesIO
from pathlib import Path

from babel.messages import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po

from studies.language.catalogues import LOCALE, TEMPLATE, po_text, shipped_file, shipped_languages

ROOT = LOCALE.parents[2]
APPS = ("annotators", "studies")
TEMPLATES = ("templates/annotate", "templates/protocols")
KEYWORDS = {"gettext": None, "_": None, "gettext_lazy": None, "gettext_noop": None, "ngettext": (1, 2)}
JINJA = {"newstyle_gettext": "true", "silent": "false"}
COMMENT_TAG = "Translators:"
# A comment in a template is directly before its message. (Babel gives it to the first message of the line.)
COMMENTED = re.compile(r'\{# Translators: (.*?) #\}\s*(?:\{\{ _\("(.*?)"[,)]|\{% trans .*?%\}(.*?)\{%)', re.DOTALL)
VALUE = re.compile(r"\{\{ (\w+) \}\}")


def collected_template() -> Catalog:
    """Return the messages of all pages, each with the files in which it is."""
    catalogue = Catalog(project="heval", header_comment="# The words of annotators' pages.", fuzzy=False)
    for folder in (*APPS, *TEMPLATES):
        is_template = folder in TEMPLATES
        method = "jinja2" if is_template else "python"
        said = _comments_in_templates(ROOT / folder) if is_template else {}
        found = extract_from_dir(
            ROOT / folder,
            method_map=[("**.html" if is_template else "**.py", method)],
            options_map={"**.html": JINJA},
            keywords=KEYWORDS,
            comment_tags=() if is_template else (COMMENT_TAG,),
            strip_comment_tags=True,
        )
        for name, _, message, comments, _ in sorted(found, key=lambda one: (one[0], one[1])):
            singular = message if isinstance(message, str) else message[0]
            catalogue.add(message, None, [(f"{folder}/{name}", 0)], auto_comments=[*comments, *said.get(singular, ())])
    return catalogue


def _comments_in_templates(folder: Path) -> dict[str, list[str]]:
    """Return what templates say to translators, by message."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*.html")):
        for comment, message, block in COMMENTED.findall(path.read_text()):
            comments = found.setdefault(message or VALUE.sub(r"%(\1)s", block), [])
            if comment not in comments:
                comments.append(comment)
    return found


def updated_files() -> dict[Path, str]:
    """Return the template and the catalogues as they should be."""
    template = collected_template()
    files = {TEMPLATE: po_text(template)}
    for language in shipped_languages():
        path = shipped_file(language)
        catalogue = read_po(BytesIO(path.read_bytes()), locale=language.replace("-", "_"))
        catalogue.update(template, no_fuzzy_matching=False)
        catalogue.obsolete.clear()
        # Who translated and who read it. Babel knows no such fields.
        files[path] = po_text(catalogue, "".join(re.findall(r'^"X-.*\n', path.read_text(), re.MULTILINE)))
    return files


def main() -> None:
    for path, text in updated_files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(f"{path.relative_to(ROOT)}: {text.count('msgid ') - 1} messages")


if __name__ == "__main__":
    main()
