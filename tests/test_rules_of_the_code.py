"""Rules of the code base, kept by tests: what may import what, where a protocol's name may stand, what never appears."""

import ast
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

from analysis.protocols import REGISTRY as ANALYSES
from annotators.recruitment.channels import REGISTRY as CHANNELS
from studies.protocols import REGISTRY as PROTOCOLS
from tests import ROOT
from tests.blockers import AD_WORDS

PACKAGES = ("heval_site", "studies", "annotators", "analysis")
SOURCES = [
    path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")) if "migrations" not in path.parts
]
TESTS = sorted((ROOT / "tests").rglob("*.py"))
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


MOST_LINES = 400


def test_no_file_is_too_long_to_read():
    paths = [*SOURCES, *sorted((ROOT / "tools").rglob("*.py")), *TESTS]
    lines = {name(path): len(path.read_text().splitlines()) for path in paths}
    too_long = [f"{file}: {n}" for file, n in lines.items() if n > MOST_LINES]
    assert not too_long, "split them by their subjects: " + ", ".join(too_long)


def test_the_contracts_of_imports_hold():
    run = subprocess.run([Path(sys.executable).parent / "lint-imports"], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:]


def circle_in(imports: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_no_module_imports_itself_by_way_of_others():
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True, cache_dir=None)
    imports = {one: graph.find_modules_directly_imported_by(one) & (graph.modules - {one}) for one in graph.modules}
    assert circle_in(imports) == []


def test_the_search_for_circles_finds_one():
    assert circle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert circle_in({"a": {"b", "c"}, "b": {"c"}}) == []


def imports_of_tests(tree: ast.AST):
    """Lines that import a module of tests, or a test out of one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").split(".")[0] == "tests"):
            names = [node.module or "", *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.split(".")[0] == "tests"]
        else:
            continue
        if any(part.startswith("test_") for name in names for part in name.split(".")):
            yield node.lineno


def test_no_module_imports_a_module_of_tests():
    """What several tests share stands in a module of its own, or in a conftest."""
    found = {name(path) for path in TESTS if list(imports_of_tests(ast.parse(path.read_text())))}
    assert not found, found


@pytest.mark.parametrize(
    "words",
    ["from tests.test_urls import filled", "from .test_urls import filled", "from tests import test_urls", "import tests.test_urls"],
)  # fmt: skip
def test_the_search_for_imported_tests_finds_them(words):
    assert list(imports_of_tests(ast.parse(f"def f():\n    {words}"))) == [2]
    assert not list(imports_of_tests(ast.parse("from tests.urls import filled\nfrom django.test import test_urls")))


def branches_on(tree: ast.AST, slugs: set[str]):
    """Comparisons and match cases with a slug."""
    for node in ast.walk(tree):
        constants = []
        if isinstance(node, ast.Compare):
            for side in (node.left, *node.comparators):
                constants += side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else [side]
        elif isinstance(node, ast.MatchValue):
            constants = [node.value]
        for constant in constants:
            if isinstance(constant, ast.Constant) and constant.value in slugs:
                yield constant.lineno, constant.value


def is_of(path: Path, slug: str) -> bool:
    of_one = ("studies/protocols/", "analysis/protocols/", "annotators/recruitment/channels/")
    return name(path).startswith(of_one) and slug in path.with_suffix("").parts


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_no_branch_on_the_name_of_a_protocol_or_channel(path):
    found = [
        (line, slug)
        for line, slug in branches_on(ast.parse(path.read_text()), set(PROTOCOLS) | set(CHANNELS))
        if not is_of(path, slug)
    ]
    assert not found


def test_the_search_for_branches_finds_one():
    assert list(branches_on(ast.parse("if section.protocol in ('spa', 'x'): pass"), {"spa"})) == [(1, "spa")]
    assert list(branches_on(ast.parse("match p:\n case 'spa': pass"), {"spa"})) == [(2, "spa")]


def test_every_protocol_has_an_analysis():
    lacking = [
        f"Write analysis/protocols/{slug}.py: a ProtocolAnalysis with slug = {slug!r}, which says what the answers mean."
        for slug in sorted(set(PROTOCOLS) - set(ANALYSES))
    ]
    assert not lacking, "\n".join(lacking)
    assert not set(ANALYSES) - set(PROTOCOLS), "an analysis of a protocol that is none"


def names_of_blocks() -> set[str]:
    """What the blocks of protocols' analyses are called, as far as it is written down where they are made."""
    found = set()
    for path in sorted((ROOT / "analysis" / "protocols").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Block" and node.args:
                first = node.args[0].values[0] if isinstance(node.args[0], ast.JoinedStr) else node.args[0]
                if isinstance(first, ast.Constant):
                    found.add(first.value)
    return found


def literals_of_protocols(tree: ast.AST, blocks: set[str]):
    """Strings that begin like a block of a protocol, or like its slug with a dot."""
    starts = tuple({f"{one.partition('.')[0]}." for one in blocks} | {f"{slug}." for slug in PROTOCOLS})
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(starts):
            yield node.lineno, node.value


def test_what_makes_reports_knows_no_block_of_a_protocol():
    blocks = names_of_blocks()
    assert len(blocks) > 20
    found = [
        f"{name(path)}:{line}: {text[:60]}"
        for path in sorted((ROOT / "analysis").rglob("*.py"))
        if not {"protocols", "stats", "migrations"} & set(path.parts) or "blocks" in path.parts
        if path.name != "method_tables.py"  # says of each block which method made it
        for line, text in literals_of_protocols(ast.parse(path.read_text()), blocks)
    ]
    assert not found, "say it in analysis/protocols instead: " + "; ".join(found)
    assert list(literals_of_protocols(ast.parse("a = 'choice.effort'\nb = f'spa.{x}'"), blocks)) == [
        (1, "choice.effort"), (2, "spa."),
    ]  # fmt: skip


@pytest.mark.parametrize("path", TEMPLATES, ids=name)
def test_no_template_branches_on_a_protocol(path):
    words = "|".join(PROTOCOLS)
    assert not re.search(rf"{{%\s*(el)?if[^%]*['\"]({words})['\"]", path.read_text())


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


# What goes out goes through one of these: to a panel, or from a rehearsal to its own site.
MAY_FETCH = {"annotators/recruitment/panels/wire.py", "heval_site/rehearsal/stage.py"}


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_nothing_runs_or_fetches_what_users_give(path):
    banned = BANNED_MODULES if name(path) in MAY_FETCH else BANNED_MODULES | {"httpx"}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in BANNED_CALLS, node.lineno
        if isinstance(node, ast.Import):
            assert not {alias.name for alias in node.names} & banned, node.lineno
        if isinstance(node, ast.ImportFrom):
            assert node.module not in banned, node.lineno


# Who writes CSV: the one writer that guards against formulas, the export that can leave the guard out, and a text that is hashed.
MAY_WRITE_CSV = {"studies/stimuli/spreadsheet.py", "analysis/data/formats.py", "analysis/stats/seeds.py"}


def test_only_the_guarded_writer_makes_csv_files():
    found = {name(path) for path in SOURCES if re.search(r"csv\.(writer|DictWriter)\b", path.read_text())}
    assert found == MAY_WRITE_CSV


# Who may say of a string that it is HTML: the one renderer of Markdown, and the documentation that it renders.
MAY_MARK_SAFE = {"studies/stimuli/markdown.py", "heval_site/views/docs.py"}
UNESCAPED = re.compile(r"\|\s*safe(seq)?\b|\bautoescape\b")


@pytest.mark.parametrize("path", TEMPLATES, ids=name)
def test_no_template_decides_that_something_is_html(path):
    assert not UNESCAPED.search(path.read_text())


@pytest.mark.parametrize("words", ["{{ a|safe }}", "{{ a | safe|upper }}", "{{ a|safeseq }}", "{% autoescape off %}"])
def test_the_search_for_unescaped_words_finds_them(words):
    assert UNESCAPED.search(words)


def marks_safe(tree: ast.AST):
    """Lines that call something HTML without escaping: mark_safe, SafeString(...), autoescape other than True, a method __html__."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            told = [ast.unparse(k.value) for k in node.keywords if k.arg == "autoescape"]
            if called in {"mark_safe", "SafeString", "html_safe", "Markup"} or (told and told != ["True"]):
                yield node.lineno
        elif isinstance(node, ast.FunctionDef) and node.name == "__html__":
            yield node.lineno


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_only_the_renderer_says_what_is_html(path):
    assert not list(marks_safe(ast.parse(path.read_text()))) or name(path) in MAY_MARK_SAFE


@pytest.mark.parametrize(
    "words", ["mark_safe(a)", "safestring.mark_safe(a)", "SafeString(a)", "Markup(a)", "Context(a, autoescape=False)"]
)
def test_the_search_for_what_marks_safe_finds_it(words):
    assert list(marks_safe(ast.parse(words))) == [1]


SILENCED = re.compile(r"#\s*(noqa|type:\s*ignore)(?!: [A-Z]+[0-9]+(, [A-Z]+[0-9]+)* - \w|\[[\w-]+\]  # \w)")


# Who may read a role: the table of permissions, the model itself, and the form by which owners give roles.
MAY_READ_ROLES = {
    "studies/access.py",
    "studies/models/__init__.py",
    "studies/models/members.py",
    "studies/admin/inlines/members.py",
}
ROLES = re.compile(r"\bStudyMember\b|\bmemberships\b|\bstudy\.members\b|\bmembers__|\.is_(superuser|staff)\b")


def test_one_module_decides_who_may_do_what():
    readers = {name(path) for path in SOURCES if ROLES.search(ast.unparse(ast.parse(path.read_text())))}
    assert readers == MAY_READ_ROLES, "ask studies.access instead"


@pytest.mark.parametrize(
    "words",
    [
        "from studies.models import StudyMember", "study.members.all()", "Study.objects.filter(members__role='owner')",
        "if user.is_superuser: pass",
    ],
)  # fmt: skip
def test_the_search_for_roles_finds_them(words):
    assert ROLES.search(words)


def test_a_silenced_line_says_of_what_and_why():
    found = [
        f"{name(path)}:{n}"
        for path in [*SOURCES, *TESTS]
        for n, line in enumerate(path.read_text().splitlines(), 1)
        if SILENCED.search(line) and path != Path(__file__)
    ]
    assert not found


@pytest.mark.parametrize("line", ["x  # noqa", "x  # noqa: S308", "x  # type: ignore", "x  # type: ignore[arg-type]"])
def test_the_search_for_silenced_lines_finds_one(line):
    assert SILENCED.search(line)
    assert not SILENCED.search("x  # noqa: E501, S308 - a reason")


@pytest.mark.parametrize(
    "path",
    [
        p
        for p in [*SOURCES, *TEMPLATES, *sorted((ROOT / "static").rglob("*.*"))]
        if p.suffix in (".py", ".html", ".css", ".js")
    ],
    ids=name,
)
def test_no_address_of_anybody_else_is_loaded(path):
    """No font, script or image of a third party; links that people follow are another matter."""
    text = path.read_text()
    assert not re.search(r"""(src|srcset|@import|url)\s*[=(]\s*['"]?(https?:)?//""", text)


@pytest.mark.parametrize("path", [p for p in TEMPLATES if "annotate" in p.parts or "protocols" in p.parts], ids=name)
def test_no_class_id_or_address_that_blockers_hide(path):
    for attribute in re.findall(r"""(?:class|id|href|src|action|name)="([^"]*)\"""", path.read_text()):
        assert not AD_WORDS.search(attribute), attribute


WEB_PROCESS = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
import django
django.setup()
from django.conf import settings
settings.ALLOWED_HOSTS = ["testserver"]
from django.core.management import call_command
call_command("migrate", verbosity=0)
call_command("createcachetable", verbosity=0)
from django.urls import get_resolver
get_resolver().url_patterns
heavy = ("numpy", "scipy", "pandas", "statsmodels", "matplotlib", "httpx")
assert not [m for m in heavy if m in sys.modules], ("start-up", [m for m in heavy if m in sys.modules])
from tests.builders import panel, spa_study
from tests.robots import Robot
study = spa_study(target_n=1)
robot = Robot(f"/e/{panel(study).key}/?who=w")
assert robot.play() == "Thank you"
print([m for m in heavy if m in sys.modules])
"""


def test_a_web_process_never_loads_the_heavy_libraries():
    run = subprocess.run([sys.executable, "-c", WEB_PROCESS], cwd=ROOT, capture_output=True, text=True)
    assert run.stdout.strip().splitlines()[-1:] == ["[]"], run.stdout + run.stderr


RUNNER = """
import os, pkgutil, importlib
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
import django
django.setup()
from studies.services import jobs
known = set(jobs.kinds()) | set(jobs.periodic._periodic)
import analysis, annotators, heval_site, studies
for package in (analysis, annotators, heval_site, studies):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not {"migrations", "management", "server", "wsgi", "celery", "__main__"} & set(module.name.split(".")):
            importlib.import_module(module.name)
everything = set(jobs.registry._kinds) | set(jobs.periodic._periodic)
assert {"launch", "analyse", "import"} <= known
print(sorted(everything - known))
"""


def test_who_runs_jobs_knows_every_kind_of_them():
    """A runner imports the ``tasks`` modules alone. What only an address imports was refused there, and nowhere in a test."""
    run = subprocess.run([sys.executable, "-c", RUNNER], cwd=ROOT, capture_output=True, text=True)
    assert run.stdout.strip().splitlines()[-1:] == ["[]"], run.stdout + run.stderr
