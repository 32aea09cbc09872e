"""What code and templates must never do, and who alone may do what is dangerous."""

import ast
import re
from pathlib import Path

import pytest

from tests import ROOT
from tests.blockers import AD_WORDS

from . import SOURCES, TEMPLATES, TESTS, TOOLS, lines_with, name, parsed, walk

BANNED_CALLS = {"eval", "exec", "compile"}
BANNED_MODULES = {
    "pickle",
    "marshal",
    "shelve",
    "yaml",
    "requests",
    "http.client",
    "urllib.request",
    "urllib3",
    "aiohttp",
    "telnetlib",
    "ftplib",
}


# What goes out goes through one of these: to a panel, from a command to the site that its user names, or from a rehearsal to its own site.
MAY_FETCH = {
    "annotators/recruitment/panels/http_client.py",
    "heval_site/management/client/http.py",
    "heval_site/rehearsal/child_process.py",
}


def runs_or_fetches(tree: ast.AST, banned: set[str]):
    """Lines that run a text as code, or import one of these modules."""
    for node in walk(tree):
        names = set()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            names = {node.func.id} & BANNED_CALLS
        elif isinstance(node, ast.Import):
            names = {alias.name for alias in node.names} & banned
        elif isinstance(node, ast.ImportFrom):
            names = {node.module} & banned
        if names:
            yield node.lineno


def test_nothing_runs_or_fetches_what_users_give():
    found = [
        f"{name(path)}:{line}"
        for path in SOURCES
        for line in runs_or_fetches(
            parsed(path), BANNED_MODULES if name(path) in MAY_FETCH else BANNED_MODULES | {"httpx"}
        )
    ]
    assert not found


@pytest.mark.parametrize("words", ["eval(a)", "import os, pickle", "from yaml import load"])
def test_the_search_for_what_runs_or_fetches_finds_it(words):
    assert list(runs_or_fetches(ast.parse(words), BANNED_MODULES)) == [1]


# Who writes CSV: the one writer that guards against formulas, the export that can leave the guard out, and a text that is hashed.
MAY_WRITE_CSV = {"studies/stimuli/rows.py", "analysis/data/exports.py", "analysis/stats/seeds.py"}


def test_only_the_guarded_writer_makes_csv_files():
    found = {name(path) for path in SOURCES if re.search(r"csv\.(writer|DictWriter)\b", path.read_text())}
    assert found == MAY_WRITE_CSV


# Who may say of a string that it is HTML: the one renderer of Markdown, the documentation that it renders, and the messages of
# annotators' templates, of which a translation may have the tags and no other (``find_message_problems``).
MAY_MARK_SAFE = {
    "studies/stimuli/markdown.py",
    "heval_site/views/docs.py",
    "annotators/pages/jinja.py",
    "annotators/pages/script_texts.py",
}
UNESCAPED = re.compile(r"\|\s*safe(seq)?\b|\bautoescape\b")


def test_no_template_decides_that_something_is_html():
    assert not lines_with(UNESCAPED, TEMPLATES)


@pytest.mark.parametrize("words", ["{{ a|safe }}", "{{ a | safe|upper }}", "{{ a|safeseq }}", "{% autoescape off %}"])
def test_the_search_for_unescaped_words_finds_them(words):
    assert UNESCAPED.search(words)


def marks_safe(tree: ast.AST):
    """Lines that call something HTML without escaping: mark_safe, SafeString(...), autoescape other than True, a method __html__."""
    for node in walk(tree):
        if isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            told = [ast.unparse(k.value) for k in node.keywords if k.arg == "autoescape"]
            if called in {"mark_safe", "SafeString", "html_safe", "Markup"} or (told and told != ["True"]):
                yield node.lineno
        elif isinstance(node, ast.FunctionDef) and node.name == "__html__":
            yield node.lineno


def test_only_the_renderer_says_what_is_html():
    found = {name(path): lines for path in SOURCES if (lines := list(marks_safe(parsed(path))))}
    assert set(found) == MAY_MARK_SAFE, found


@pytest.mark.parametrize(
    "words", ["mark_safe(a)", "safestring.mark_safe(a)", "SafeString(a)", "Markup(a)", "Context(a, autoescape=False)"]
)
def test_the_search_for_what_marks_safe_finds_it(words):
    assert list(marks_safe(ast.parse(words))) == [1]


# Who may read a role: the table of permissions, the model itself, and the form by which owners give roles.
MAY_READ_ROLES = {
    "studies/access.py",
    "studies/models/__init__.py",
    "studies/models/study.py",
    "studies/admin/inlines.py",
}
ROLES = re.compile(r"\bStudyMember\b|\bmemberships\b|\bstudy\.members\b|\bmembers__|\.is_(superuser|staff)\b")


def test_one_module_decides_who_may_do_what():
    readers = {name(path) for path in SOURCES if ROLES.search(ast.unparse(parsed(path)))}
    assert readers == MAY_READ_ROLES, "ask studies.access instead"


@pytest.mark.parametrize(
    "words",
    [
        "from studies.models import StudyMember",
        "study.members.all()",
        "Study.objects.filter(members__role='owner')",
        "if user.is_superuser: pass",
    ],
)
def test_the_search_for_roles_finds_them(words):
    assert ROLES.search(words)


SILENCED = re.compile(r"#\s*(noqa|type:\s*ignore)(?!: [A-Z]+[0-9]+(, [A-Z]+[0-9]+)* - \w|\[[\w-]+(, [\w-]+)*\]  # \w)")


def test_a_silenced_line_says_of_what_and_why():
    found = [
        f"{name(path)}:{n}"
        for path in [*SOURCES, *TESTS, *TOOLS]
        for n, line in enumerate(path.read_text().splitlines(), 1)
        if SILENCED.search(line) and path != Path(__file__)
    ]
    assert not found


@pytest.mark.parametrize("line", ["x  # noqa", "x  # noqa: S308", "x  # type: ignore", "x  # type: ignore[arg-type]"])
def test_the_search_for_silenced_lines_finds_one(line):
    assert SILENCED.search(line)
    assert not SILENCED.search("x  # noqa: E501, S308 - a reason")


STYLES_AND_SCRIPTS = [path for path in sorted((ROOT / "static").rglob("*.*")) if path.suffix in (".css", ".js")]
LOADED = re.compile(r"""(src|srcset|@import|url)\s*[=(]\s*['"]?(https?:)?//""")


def test_no_address_of_anybody_else_is_loaded():
    """No font, script or image of a third party; links that people follow are another matter."""
    assert LOADED.search('<img src="//example.org/a.png">')
    assert not lines_with(LOADED, [*SOURCES, *TEMPLATES, *STYLES_AND_SCRIPTS])


ATTRIBUTE = re.compile(r"""(?:class|id|href|src|action|name)="([^"]*)\"""")


def test_no_class_id_or_address_that_blockers_hide():
    """On the pages of annotators."""
    found = [
        f"{name(path)}: {attribute}"
        for path in TEMPLATES
        if "annotate" in path.parts or "protocols" in path.parts
        for attribute in ATTRIBUTE.findall(path.read_text())
        if AD_WORDS.search(attribute)
    ]
    assert not found
