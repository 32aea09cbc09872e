"""Collect the messages of annotators' pages, and bring the catalogues up to date: ``python -m tools.messages``.

The messages are in the templates of ``annotate/`` and ``protocols/``, and in Python, marked by ``gettext`` and its like
from ``studies.language``. A translation whose message has changed is kept, marked as fuzzy and not used.
"""

from io import BytesIO
from pathlib import Path

from babel.messages import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

from studies.language.catalogues import LOCALE, TEMPLATE, shipped_file, shipped_languages

ROOT = LOCALE.parents[2]
APPS = ("annotators", "studies")
TEMPLATES = ("templates/annotate", "templates/protocols")
KEYWORDS = {"gettext": None, "_": None, "gettext_lazy": None, "gettext_noop": None, "ngettext": (1, 2)}
JINJA = {"newstyle_gettext": "true", "silent": "false"}
COMMENT_TAG = "Translators:"


def collected_template() -> Catalog:
    """Return the messages of all pages, each with the files in which it is."""
    catalogue = Catalog(project="heval", header_comment="# The words of annotators' pages.", fuzzy=False)
    for folder in (*APPS, *TEMPLATES):
        method = "jinja2" if folder in TEMPLATES else "python"
        found = extract_from_dir(
            ROOT / folder,
            method_map=[("**.html" if folder in TEMPLATES else "**.py", method)],
            options_map={"**.html": JINJA},
            keywords=KEYWORDS,
            comment_tags=(COMMENT_TAG,),
            strip_comment_tags=True,
        )
        for name, _, message, comments, _ in sorted(found, key=lambda one: (one[0], one[1])):
            catalogue.add(message, None, [(f"{folder}/{name}", 0)], auto_comments=comments)
    return catalogue


def po_text(catalogue: Catalog) -> str:
    written = BytesIO()
    write_po(written, catalogue, width=100, include_lineno=False, sort_output=False, include_previous=True)
    # The time of writing would change the file although no message has changed.
    lines = written.getvalue().decode().splitlines(keepends=True)
    return "".join(
        line for line in lines if not line.startswith(('"POT-Creation-Date', '"PO-Revision-Date', '"Generated-By'))
    )


def updated_files() -> dict[Path, str]:
    """Return the template and the catalogues as they should be."""
    template = collected_template()
    files = {TEMPLATE: po_text(template)}
    for language in shipped_languages():
        path = shipped_file(language)
        catalogue = read_po(BytesIO(path.read_bytes()), locale=language.replace("-", "_"))
        catalogue.update(template, no_fuzzy_matching=False)
        catalogue.obsolete.clear()
        files[path] = po_text(catalogue)
    return files


def main() -> None:
    for path, text in updated_files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(f"{path.relative_to(ROOT)}: {text.count('msgid ') - 1} messages")


if __name__ == "__main__":
    main()
