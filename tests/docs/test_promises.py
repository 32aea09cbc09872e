"""What texts promise is there: what they install, in which formats reports come, and one list of what is missing."""

import re
import tomllib

import pytest

from studies.protocols import REGISTRY
from tests import ROOT
from tests.docs.pages import DECISIONS, PAGES

TEXTS = {
    name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")
} | {name: page.text for name, page in (PAGES | DECISIONS).items()}
MISSING = re.compile(r"^#+ .*(?:not built|cannot do|not there yet).*$|^Not built yet", re.MULTILINE | re.IGNORECASE)
# Beside what the package declares: a tool of its developers, the interpreter's own installer, and what a shell puts in.
# What people install elsewhere: a tool, and what computes metrics that heval takes as a file.
OTHER_PACKAGES = {"pre-commit", "nltk", "bert-score", "unbabel-comet"}
INSTALLS = re.compile(r"pip3? install ([^`\n|&;)]+)")


def declared_packages() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = [
        *project["dependencies"],
        *(one for extra in project["optional-dependencies"].values() for one in extra),
    ]
    return {re.match(r"[\w.-]+", requirement)[0] for requirement in requirements}


def installed_by_name(text: str) -> list[str]:
    """The packages that the commands of a text take from an index."""
    found = []
    for arguments in INSTALLS.findall(text):
        words = arguments.replace("'", "").replace('"', "").rstrip(".").split()
        for before, word in zip(["", *words], words, strict=False):
            if word.startswith("-") or before in ("-r", "--requirement") or word.endswith(".whl") or "/" in word:
                continue
            found.append(re.match(r"[\w.-]*", word)[0])
    return found


def product_files() -> dict[str, str]:
    folders = ("analysis", "annotators", "boards", "heval_site", "studies", "templates", "tools")
    paths = [
        path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".html", ".toml")
    ]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}


def test_no_text_installs_a_package_that_the_project_does_not_declare():
    """heval itself is on no index: its name there belongs to nobody, or to somebody else, who would get a pipeline's token."""
    wrong, n_commands = [], 0
    for name, text in (TEXTS | product_files()).items():
        names = installed_by_name(text)
        n_commands += len(INSTALLS.findall(text))
        wrong += [(name, package) for package in names if package not in declared_packages() | OTHER_PACKAGES]
    assert n_commands >= 8 and not wrong


@pytest.mark.parametrize(
    "command",
    [
        "pip install heval",
        "pip install --upgrade heval",
        "pip install 'heval[parquet]'",
        "pip install -r requirements.lock heval",
    ],
)
def test_the_search_for_packages_finds_one_of_the_wrong_name(command):
    assert installed_by_name(f"    - run: {command}\n") == ["heval"]
    assert installed_by_name("pip install --no-index --no-deps heval-*.whl\n`pip install 'pyarrow>=22'` here") == [
        "pyarrow"
    ]


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_that_promises_pdf_promises_it_of_figures_or_reports(name):
    lines = [line for line in TEXTS[name].splitlines() if "PDF" in line]
    assert not [line for line in lines if not re.search(r"[Ff]igure|[Rr]eport|“nothing cut”|with the analysis", line)]


def test_pdf_files_are_those_of_figures_and_of_whole_reports():
    from tools.reference import addresses

    with_pdf = [path for path, _, words in addresses.list_project_urls() if "PDF" in words or ".pdf" in path]
    assert sorted(with_pdf) == [
        "admin/studies/study/<pk>/analyses/<number>/figures/<name>.<file_format>",
        "admin/studies/study/<pk>/analyses/<number>/pdf/",
        "admin/studies/study/<pk>/comparisons/<number>/<name>.<file_format>",
        "api/v1/studies/<code>/analyses/<number>/report.pdf",
    ]


def test_what_is_missing_is_listed_once():
    assert [(name, found.group()) for name, text in TEXTS.items() for found in MISSING.finditer(text)] == [
        ("index", "## What heval cannot do yet")
    ]
    assert "(templates/docs/index.md#what-heval-cannot-do-yet)" in TEXTS["README.md"]
    assert not [name for name, text in TEXTS.items() if re.search(r"leads? nowhere|pages are missing", text)]


def test_only_one_protocol_has_its_own_table_of_what_each_rule_changes():
    own = [path for path, text in product_files().items() if "has_own_rule_effects = True" in text]
    assert own == ["analysis/protocols/spa/__init__.py"]
    assert (
        "The report of an SPA section has its own table (`spa.before_after`)"
        in PAGES["explanation/leaving-people-out"].text
    )
    assert "`rule_effects`" in PAGES["explanation/leaving-people-out"].text


def test_the_readme_names_every_protocol():
    named = " ".join(re.findall(r"^- (\*\*.+)", TEXTS["README.md"], re.MULTILINE))
    names = {slug: re.split(r": | of | scale", protocol.label)[0] for slug, protocol in REGISTRY.items()}
    assert len(names) >= 9 and [slug for slug, name in names.items() if name not in named] == []
